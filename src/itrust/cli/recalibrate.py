"""`itrust recalibrate`: learn from one file, apply it to another, save what was learned."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from itrust import recalibrate
from itrust._core import InputError, Write, counted, listed, place_of, write_all, writer_of
from itrust.cli.console import answer, say
from itrust.cli.inputs import InputFiles, na_values, opened
from itrust.cli.options import STANDARD, Options
from itrust.cli.outputs import refuse_bad_places
from itrust.cli.roles import class_models, read_rows, settle
from itrust.data import FORMATS, class_columns, names_several

ENDINGS = (
    *(known.endings[0] for known in FORMATS if known.is_written),
    *(f"{known.endings[0]}.gz" for known in FORMATS if known.is_text),
)
# Of no use once all is learned.
FITTING = (
    *("label", "weights", "cluster", "strata", "replicate_weights", "replicate_method"),
    *("positive", "where", "category", "number", "value_labels", "on", "method"),
)
NEITHER = "name either a file to fit on or --load FILE"
NOTHING_TO_DO = "nothing to do; add --save FILE, or --apply FILE --out FILE"
NO_FILE = "{argument}: there is no file {value}"
ENDS = f"{{argument}} must end with one of {listed(ENDINGS, 99)}, not {{value}}"
FITTED_ALREADY = "{argument}: with --load nothing is fitted; leave it out"
ONE_MODEL = (
    "{argument}: one model is recalibrated at a time; name one column, or the classes of one"
)
FITTED_ON = (
    "rows that are fitted on are recalibrated, too: they will look better calibrated than others; "
    "judge on other rows"
)
COLUMNS = "columns of all classes, such as win=p1,tie=pt,loss=p2 or 'p_*'"


def run(options: Options) -> int:
    """Fit or load, then apply and save."""
    if options.file is not None and "load" not in options.typed:
        options = replace(options, values={**options.values, "load": None})  # only a setting
    _refuse_unclear(options)
    places = options.outputs
    out, save = places["--out"], places["--save"]
    refuse_bad_places(options, [None if options.load is None else Path(options.load)])
    with ExitStack() as stack:
        target = None
        if options.apply is not None:
            target = stack.enter_context(opened(options, "apply"))
        if options.load is not None:
            learned, told = recalibrate.load(options.load), f"loaded {options.load}"
        else:
            fit = stack.enter_context(opened(options))
            learned, told = _fitted(fit, options)
            if target is not None and fit.tables & target.tables:
                say(options, FITTED_ON)
        answer(told)
        if isinstance(learned, recalibrate.Local) and learned.unchanged_:
            answer(recalibrate.unchanged_note(learned))
        writers: dict[Path, Write] = {} if save is None else {save: writer_of(learned.to_json)}
        done = []
        if target is not None and out is not None:
            say(options, *target.notes)
            done = _apply(learned, target, options, out, writers)
        else:
            write_all(writers)
    for text in done:
        answer(text)
    say(options, *(f"written: {path}" for path in (out, save) if path is not None))
    return 0


def _refuse_unclear(options: Options) -> None:
    load, out, has_rows = options.load, options.outputs["--out"], options.apply is not None
    fitting = [name for name in FITTING if load is not None and name in options.typed]
    both = options.file == options.apply == STANDARD
    wrong_end = out is not None and not out.name.lower().endswith(ENDINGS)
    for is_wrong, argument, problem in (
        ((options.file is None) == (load is None), "load", NEITHER),
        (has_rows != (options.out is not None), "apply", "--apply FILE and --out FILE go together"),
        (not has_rows and options.save is None, "save", NOTHING_TO_DO),
        (load is not None and not os.path.isfile(load), "load", NO_FILE),
        (wrong_end, "out", ENDS),
        (both, "file", "standard input can be read once; name a file for one of the two"),
        (len(options.prob) > 1, "prob", ONE_MODEL),
        (bool(fitting), "".join(fitting[:1]), FITTED_ALREADY),
    ):
        if is_wrong:
            raise InputError(problem, argument=argument, value=getattr(options, argument))


def _fitted(source: InputFiles, options: Options) -> tuple[recalibrate.Recalibrator, str]:
    several, name = bool(class_models(source, options)), options.method
    methods: dict[str, Any] = recalibrate.CLASS_METHODS if several else recalibrate.METHODS
    if name not in methods:
        problem = f"there is no {{value}}{' for several classes' * several}; {{guess}}"
        if name in recalibrate.CLASS_METHODS:
            problem = f"{{value}} is for several classes; --prob names the {COLUMNS}"
        place_of(name, list(methods), f"{{argument}}: {problem}", argument="method")
    roles = settle(source, options, on_needed=methods[name].reads_covariates)
    stream = source.streams(options.stream)
    if stream:
        say(options, f"reading {source.name} some rows at a time")
    ((model, rows),) = read_rows(source, roles, roles.on, options, stream=stream).items()
    if name == "local" and not stream:  # takes minutes on a million rows
        say(options, f"fitting local on {counted(rows.n, 'row')}")
    learned = methods[name]().fit(rows)
    learned.prob_ = model
    classes = f": {len(rows.classes)} classes" if several else ""
    return learned, f"fitted {name} on {recalibrate.rows_note(learned, source.name)}{classes}"


def _prob_of(learned: recalibrate.Recalibrator, options: Options) -> str:
    """The column to recalibrate: the one typed, else that of the fit, else of the settings."""
    fitted: str | None = learned.prob_
    if options.load is None and fitted is not None:
        return fitted
    named: str | None = options.prob[0] if options.prob else None
    if fitted is not None and (named is None or "prob" not in options.typed):
        columns = "column" if learned.classes_ is None else "columns"
        say(options, f"recalibrating {fitted!r}, the {columns} of the fit")
        return fitted
    if named is None:
        what = "column of probabilities" if learned.classes_ is None else COLUMNS
        raise InputError(f"name the {what} with {{argument}}", argument="prob")
    if fitted not in (None, named):
        say(options, f"the fit was on {fitted!r}; it is applied to {named!r}")
    return named


def _columns_of(learned: recalibrate.Recalibrator, prob: str, source: InputFiles) -> dict[Any, str]:
    """The columns of the classes that were learned, in their order."""
    wrong = "{argument}: what was learned is about several classes; name the " + COLUMNS
    if not names_several(prob, dict.fromkeys(source.columns)):
        raise InputError(wrong, argument="prob")
    with source.located():
        columns = class_columns(source.columns, prob)
    by_text = {str(name): column for name, column in columns.items()}
    classes = learned.classes_ or ()
    lacking = [str(name) for name in classes if str(name) not in by_text]
    if lacking:
        problem = "there is no column for the class {value}, which was learned; name the"
        raise InputError(f"{{argument}}: {problem} {COLUMNS}", argument="prob", value=lacking[0])
    return {name: by_text[str(name)] for name in classes}


def _apply(
    learned: recalibrate.Recalibrator,
    source: InputFiles,
    options: Options,
    out: Path,
    others: dict[Path, Write],
) -> list[str]:
    """Write all columns of the file and the recalibrated probabilities; give what was done."""
    prob = _prob_of(learned, options)
    columns = {prob: prob} if learned.classes_ is None else _columns_of(learned, prob, source)
    needed = [*columns.values(), *learned.columns_]
    source.require("prob", *columns.values())
    source.require("on", *learned.columns_)
    # Missing covariates of rows to recalibrate are a level or refused; no row is left out.
    missing: Any = "level" if options.missing == "level" else "error"
    made = recalibrate.Application(learned, tuple(columns.values()), missing)
    new = [f"{options.column}_{name}" for name in columns]
    with source.located():
        recalibrate.write_recalibrated(
            made,
            source.file_set,
            out,
            options.column if learned.classes_ is None else new,
            needed,
            na_values=na_values(options),
            others=others,
        )
    unseen = "that the fit has not seen"
    if not isinstance(learned, recalibrate.Local):
        unseen += ": recalibrated as rows of no category are"
    for column, count in made.unseen.items():
        rows = f"{counted(count, 'row')} of {source.name}"
        say(options, f"{rows} with a level of {column!r} {unseen}")
    done = []
    if isinstance(learned, recalibrate.Local) and made.outside and not learned.unchanged_:
        done = [recalibrate.outside_note(learned, made.outside, made.at_edge, made.rows)]
    moved = f"{made.moved:.3f} of the probability moved between classes"
    if learned.classes_ is None:
        before, after = f"mean {made.before:.3f} before", f"{made.after:.3f} after"
        moved = f"{before}, {after}; moved by {made.moved:.3f} on average"
    return [*done, f"recalibrated {counted(made.rows, 'row')} of {source.name}: {moved}"]
