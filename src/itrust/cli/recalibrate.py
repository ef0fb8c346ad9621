"""`itrust recalibrate`: learn from one file, apply it to another, save what was learned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

import itrust as it
from itrust import recalibrate
from itrust._core import InputError, Setting, Write, counted, did_you_mean, listed, write_all
from itrust.cli.columns import na_values, text_form
from itrust.cli.console import Log, answer
from itrust.cli.exit import load
from itrust.cli.inputs import InputFiles, opened
from itrust.cli.options import STANDARD, Options
from itrust.cli.outputs import refuse_bad_places
from itrust.cli.roles import NOTHING, read_samples, settle
from itrust.data import FORMATS, MissingRule, TextForm, known_format, without_codes

ENDINGS = tuple(known.endings[0] for known in FORMATS if known.is_written)
# Of no use once all is learned.
FITTING = (
    *("label", "weights", "cluster", "strata", "replicate_weights", "replicate_method"),
    *("positive", "where", "category", "number", "value_labels"),
)


def run(options: Options) -> int:
    """Fit or load, then apply and save."""
    if options.file is not None and "load" not in options.typed:
        options = replace(options, values={**options.values, "load": None})  # only a setting
    _refuse_unclear(options)
    log = Log(options.quiet)
    places = options.outputs
    out, save = places["--out"], places["--save"]
    refuse_bad_places(places, [] if options.load is None else [Path(options.load)])
    writers: dict[Path, Write] = {}
    with ExitStack() as stack:
        files: list[Path] = []
        target = None
        if options.apply is not None:
            target = stack.enter_context(opened(options.apply, text_form(options)))
            files += target.places
        if options.load is not None:
            learned, told = recalibrate.load(options.load), f"loaded {options.load}"
            _refuse_contradiction(learned, options)
        else:
            fit = stack.enter_context(opened(str(options.file), text_form(options)))
            files += fit.places
            refuse_bad_places(places, files)
            learned, told = _fitted(fit, options, log)
        refuse_bad_places(places, files)
        answer(told)
        if isinstance(learned, recalibrate.Local) and learned.unchanged_:
            answer(recalibrate.unchanged_note(learned))
        if target is not None and out is not None:
            log.say(*target.notes)
            frame, moved = _applied(learned, target, options, log)
            form = target.written_form(out)
            writers[out] = lambda path: _write_frame(frame, path, form)
        if save is not None:
            writers[save] = learned.save
        write_all(writers)
        if target is not None:
            answer(moved)
    log.say(*(f"written: {path}" for path in writers))
    return 0


def _refuse_unclear(options: Options) -> None:
    if (options.file is None) == (options.load is None):
        raise InputError("name either a file to fit on or --load FILE")
    if (options.apply is None) != (options.out is None):
        raise InputError("--apply FILE and --out FILE go together")
    if options.apply is None and options.save is None:
        raise InputError("nothing to do; add --save FILE, or --apply FILE --out FILE")
    if options.load is not None and not Path(options.load).is_file():
        raise InputError(
            "{argument}: there is no file {value}", argument="load", value=options.load
        )
    out = options.outputs["--out"]
    if out is not None and out.suffix.lower() not in ENDINGS:
        raise InputError(
            f"{{argument}} must end with one of {listed(ENDINGS)}, not {{value}}",
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
        name = next(k for k, method in recalibrate.METHODS.items() if method is type(learned))
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


def _fitted(source: InputFiles, options: Options, log: Log) -> tuple[recalibrate.Recalibrator, str]:
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
    (sample,) = read_samples(source, roles, roles.on, options).values()
    load("itrust.recalibrate.methods")
    rows = counted(sample.n, "row")
    if options.method == "local":  # takes minutes on a million rows
        log.say(f"fitting local on {rows}")
    learned = recalibrate.METHODS[options.method]().fit(sample)
    (learned.prob_,) = roles.prob
    return learned, f"fitted {options.method} on {rows} of {source.name}"


def _prob_of(learned: recalibrate.Recalibrator, options: Options, log: Log) -> str:
    """The column to recalibrate: the one typed, else that of the fit, else of the settings."""
    fitted: str | None = learned.prob_
    if options.load is None and fitted is not None:
        return fitted
    named: str | None = options.prob[0] if options.prob else None
    if fitted is not None and (named is None or "prob" not in options.typed):
        log.say(f"recalibrating {fitted!r}, the column of the fit")
        return fitted
    if named is None:
        raise InputError("name the column of probabilities with {argument}", argument="prob")
    if fitted not in (None, named):
        log.say(f"the fit was on {fitted!r}; it is applied to {named!r}")
    return named


def _applied(
    learned: recalibrate.Recalibrator, source: InputFiles, options: Options, log: Log
) -> tuple[pa.Table, str]:
    """All columns of the file and the recalibrated probabilities, and what was done to them."""
    prob, on = _prob_of(learned, options, log), list(learned.columns_)
    source.require("prob", prob)
    for name in on:
        source.require("on", name)
    if options.column in source.columns:
        raise InputError(
            "{argument}: {file} has a column {value} already",
            argument="column",
            value=options.column,
            file=source.name,
        )
    frame = without_codes(source.table([prob, *on]), na_values(options))
    x = frame.select(on)
    missing: MissingRule = "level" if options.missing == "level" else "error"
    with source.located(), _every_row_gets_its_answer():
        kinds = learned.kinds_.of_columns(on)
        before = it.Population.from_frame(frame, prob=prob, on=on, missing=missing, **kinds).p
    local = learned if isinstance(learned, recalibrate.Local) else None
    for name, count in learned.unseen(x).items():
        log.say(
            f"{counted(count, 'row')} of {source.name} with a level of {name!r} that the fit has "
            f"not seen{'' if local else ': recalibrated as rows of no category are'}"
        )
    outside = int(learned.outside(before, x).sum())
    if local and outside and not local.unchanged_:
        at_edge = int(local.at_edge(before, x).sum())
        answer(recalibrate.outside_note(local, outside, at_edge, frame.num_rows))
    after = learned.predict(before, x)
    moved = float(abs(after - before).mean())
    told = (
        f"recalibrated {counted(frame.num_rows, 'row')} of {source.name}: mean "
        f"{before.mean():.3f} before, {after.mean():.3f} after; moved by {moved:.3f} on average"
    )
    whole = source.untouched()
    out = options.outputs["--out"]
    if source.is_text and out is not None and known_format(out).has_types:
        whole = _typed(whole, frame)
    return whole.append_column(options.column, pa.array(after)), told


@contextmanager
def _every_row_gets_its_answer() -> Iterator[None]:
    """Dropping rows is no cure here: `--missing drop` is about the rows of the fit."""
    try:
        yield
    except InputError as error:
        left = tuple(cure for cure in error.settings if cure != Setting("missing", "drop"))
        raise error.at(settings=left) from None


def _typed(whole: pa.Table, read: pa.Table) -> pa.Table:
    """Text for a file that has types: columns that were read, and whole numbers; the rest stays."""
    for at, name in enumerate(whole.column_names):
        if name in read.column_names:
            whole = whole.set_column(at, name, read[name])
            continue
        try:
            numbers = whole[name].cast(pa.int64())
        except pa.ArrowInvalid:
            continue
        if numbers.cast(pa.string()).equals(whole[name]):  # 001 is a name, not a number
            whole = whole.set_column(at, name, numbers)
    return whole


def _write_frame(frame: pa.Table, path: Path, form: TextForm) -> None:
    try:
        known_format(path, form).write(frame, path)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{{argument}}: a {path.suffix} file cannot hold these columns ({{reason}}); take "
            f".parquet",
            argument="out",
            details={"reason": str(error)},
        ) from None
