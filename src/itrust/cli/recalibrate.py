"""`itrust recalibrate`: learn from one file, apply it to another, save what was learned."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from itrust import recalibrate
from itrust._core import InputError, Write, counted, did_you_mean, listed, write_all, writer_of
from itrust.cli.columns import na_values, text_form
from itrust.cli.console import Log, answer
from itrust.cli.exit import load
from itrust.cli.inputs import InputFiles, opened
from itrust.cli.options import STANDARD, Options
from itrust.cli.outputs import cells_notes, refuse_bad_places
from itrust.cli.recalibrate_classes import CLASSES_WANTED, apply_classes, fitted_classes
from itrust.cli.recalibrate_notes import missing_rule, outside_notes, unseen_notes
from itrust.cli.roles import NOTHING, read_samples, settle
from itrust.cli.streaming import read_scan, streams
from itrust.cli.streams import after_writing
from itrust.data import FORMATS, Sample, Scan

ENDINGS = tuple(known.endings[0] for known in FORMATS if known.is_written)
PACKED = tuple(f"{known.endings[0]}.gz" for known in FORMATS if known.may_be_gzipped)
# Of no use once all is learned.
FITTING = (
    *("label", "weights", "cluster", "strata", "replicate_weights", "replicate_method"),
    *("positive", "where", "category", "number", "value_labels"),
)
FITTED_ON = (
    "rows that are fitted on are recalibrated, too: they will look better calibrated than others; "
    "judge on other rows"
)


def run(options: Options) -> int:
    """Fit or load, then apply and save."""
    if options.file is not None and "load" not in options.typed:
        options = replace(options, values={**options.values, "load": None})  # only a setting
    _refuse_unclear(options)
    log = Log(options.quiet)
    places = options.outputs
    out, save = places["--out"], places["--save"]
    loaded = None if options.load is None else Path(options.load)
    refuse_bad_places(places, [options.settings, loaded])
    with ExitStack() as stack:
        files: list[Path] = []
        target = None
        if options.apply is not None:
            within = options.folder_of("apply")
            target = stack.enter_context(opened(options.apply, text_form(options), within))
            files += target.places
        if options.load is not None:
            learned, told = recalibrate.load(options.load), f"loaded {options.load}"
            _refuse_contradiction(learned, options)
        else:
            fit = stack.enter_context(opened(str(options.file), text_form(options)))
            files += fit.places
            refuse_bad_places(places, files)
            learned, told = _fitted(fit, options, log)
            if target is not None and fit.tables & target.tables:
                log.say(FITTED_ON)
        refuse_bad_places(places, files)
        answer(told)
        if isinstance(learned, recalibrate.Local) and learned.unchanged_:
            answer(recalibrate.unchanged_note(learned))
        writers: dict[Path, Write] = {} if save is None else {save: writer_of(learned.to_json)}
        if target is not None and out is not None:
            log.say(*target.notes)
            if learned.classes_ is not None:
                prob = _prob_of(learned, options, log)
                done = apply_classes(learned, prob, target, options, out, writers, log)
            else:
                done = _apply(learned, target, options, out, writers, log)
        else:
            write_all(writers)
            done = []
    with after_writing((out, save)):
        for text in done:
            answer(text)
    log.say(*(f"written: {path}" for path in (out, save) if path is not None))
    return 0


def _refuse_unclear(options: Options) -> None:
    if (options.file is None) == (options.load is None):
        raise InputError("name either a file to fit on or --load FILE")
    if (options.apply is None) != (options.out is None):
        raise InputError("--apply FILE and --out FILE go together")
    if options.apply is None and "safe_cells" in options.typed:
        raise InputError(
            "{argument} is about the file of --apply FILE --out FILE; leave it out",
            argument="safe_cells",
        )
    if options.apply is None and options.save is None:
        raise InputError("nothing to do; add --save FILE, or --apply FILE --out FILE")
    if options.load is not None and not os.path.isfile(options.load):
        raise InputError(
            "{argument}: there is no file {value}", argument="load", value=options.load
        )
    out = options.outputs["--out"]
    if out is not None and not out.name.lower().endswith((*ENDINGS, *PACKED)):
        raise InputError(
            f"{{argument}} must end with one of {listed((*ENDINGS, *PACKED), 99)}, not {{value}}",
            argument="out",
            value=out.name,
        )
    if options.file == options.apply == STANDARD:
        raise InputError("standard input can be read once; name a file for one of the two")
    _refuse_several(options.prob)


def _refuse_several(models: Sequence[str]) -> None:
    if len(models) > 1:
        raise InputError(
            "{argument}: one model is recalibrated at a time; name one column", argument="prob"
        )


def _refuse_contradiction(learned: recalibrate.Recalibrator, options: Options) -> None:
    """Raise if an option that was typed would be ignored, as what was saved says otherwise."""
    known = tuple(learned.columns_)
    for option in FITTING:
        if option in options.typed:
            raise InputError(
                "{argument}: with --load nothing is fitted; leave it out", argument=option
            )
    if "method" in options.typed:
        name = _method_name(learned)
        if options.method != name:
            raise InputError(
                f"{{argument}}: {{file}} was fitted by {name!r}, not {{value}}; leave --method out",
                argument="method",
                value=options.method,
                file=str(options.load),
            )
    if "on" in options.typed:
        parts = ([text] if text in known else text.split(",") for text in options.on)
        named = {name.strip() for some in parts for name in some} - {""}
        if named == {NOTHING} and NOTHING not in known:
            named = set()
        if named != set(known):
            raise InputError(
                "{argument}: {file} reads {reads}; leave --on out",
                argument="on",
                file=str(options.load),
                details={"reads": f"the covariates {listed(known)}" if known else "no covariate"},
            )


def _method_name(learned: recalibrate.Recalibrator) -> str:
    """What --method calls it."""
    methods = recalibrate.METHODS if learned.classes_ is None else recalibrate.CLASS_METHODS
    known = {method: name for name, method in methods.items()}
    return known.get(type(learned), type(learned).__name__)


def _fitted(source: InputFiles, options: Options, log: Log) -> tuple[recalibrate.Recalibrator, str]:
    several = fitted_classes(source, options, log)
    if several is not None:
        return several
    if options.method in recalibrate.FOR_CLASSES:
        raise InputError(
            "{argument}: {value} is for several classes, whose columns --prob names, such as "
            "win=p1,tie=pt,loss=p2 or 'p_*'",
            argument="method",
            value=options.method,
        )
    if options.method not in recalibrate.READS_COVARIATES:
        raise InputError(
            "{argument}: there is no {value}; {guess}",
            argument="method",
            value=options.method,
            details={"guess": did_you_mean(options.method, list(recalibrate.READS_COVARIATES))},
        )
    needed = recalibrate.READS_COVARIATES[options.method]
    roles = settle(source, log, options, on_needed=needed)
    _refuse_several(roles.prob)
    rows: Sample | Scan
    if streams(source.places, options.stream):
        log.say(f"reading {source.name} some rows at a time")
        rows = read_scan(source, roles, roles.on, options)
    else:
        (rows,) = read_samples(source, roles, roles.on, options).values()
        if options.method == "local":  # takes minutes on a million rows
            log.say(f"fitting local on {counted(rows.n, 'row')}")
    load("itrust.recalibrate.methods")
    learned = recalibrate.METHODS[options.method]().fit(rows)
    (learned.prob_,) = roles.prob
    return learned, f"fitted {options.method} on {recalibrate.rows_note(learned, source.name)}"


def _prob_of(learned: recalibrate.Recalibrator, options: Options, log: Log) -> str:
    """The column to recalibrate: the one typed, else that of the fit, else of the settings."""
    fitted: str | None = learned.prob_
    if options.load is None and fitted is not None:
        return fitted
    named: str | None = options.prob[0] if options.prob else None
    if fitted is not None and (named is None or "prob" not in options.typed):
        columns = "column" if learned.classes_ is None else "columns"
        log.say(f"recalibrating {fitted!r}, the {columns} of the fit")
        return fitted
    if named is None:
        told = "name the column of probabilities with {argument}"
        raise InputError(told if learned.classes_ is None else CLASSES_WANTED, argument="prob")
    if fitted not in (None, named):
        log.say(f"the fit was on {fitted!r}; it is applied to {named!r}")
    return named


def _apply(
    learned: recalibrate.Recalibrator,
    source: InputFiles,
    options: Options,
    out: Path,
    others: dict[Path, Write],
    log: Log,
) -> list[str]:
    """Write all columns of the file and the recalibrated probabilities; give what was done."""
    prob, on = _prob_of(learned, options, log), list(learned.columns_)
    source.require("prob", prob)
    for name in on:
        source.require("on", name)
    made = recalibrate.Application(learned, prob, missing_rule(options))
    with source.located():
        copy = recalibrate.write_recalibrated(
            made,
            source.file_set,
            out,
            options.column,
            [prob, *on],
            na_values=na_values(options),
            safe_cells=options.safe_cells,
            others=others,
        )
    log.say(*cells_notes(copy.cells, out.name))
    log.say(*unseen_notes(made, source.name))
    done = (
        f"recalibrated {counted(made.rows, 'row')} of {source.name}: mean {made.before:.3f} "
        f"before, {made.after:.3f} after; moved by {made.moved:.3f} on average"
    )
    return [*outside_notes(made), done]
