"""`itrust recalibrate`: fit a repair on one file, apply it to another, save it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

import itrust as it
from itrust import recalibrate
from itrust._core import InputError, counted, did_you_mean, listed
from itrust.cli.audit import read_samples
from itrust.cli.console import Log, answer
from itrust.cli.inputs import Source, opened
from itrust.cli.outputs import Write, refuse_bad_places, write_whole
from itrust.cli.roles import settle
from itrust.data import MissingRule

SEPARATORS = {".csv": ",", ".tsv": "\t"}
ENDINGS = (*SEPARATORS, ".parquet", ".feather")
FITTING = ("label", "weights", "cluster", "positive")  # of no use once a repair is fitted
ONE_MODEL = "--prob: a repair is for one model; name one column"
WRITTEN_ROWS = 65_536  # at a time


@dataclass(frozen=True)
class Options:
    """What the options ask for; `typed` are those that do not come from settings."""

    file: str | None
    label: str | None
    probs: Sequence[str]
    on: Sequence[str]
    weights: str | None
    cluster: str | None
    positive: str | None
    missing: MissingRule
    method: str
    apply: str | None
    out: Path | None
    column: str
    save: Path | None
    load: Path | None
    quiet: bool
    typed: frozenset[str] = frozenset()


def run(options: Options) -> int:
    """Fit or load, then apply and save."""
    _refuse_unclear(options)
    log = Log(options.quiet)
    places = {"--out": options.out, "--save": options.save}
    refuse_bad_places(places, [] if options.load is None else [options.load])
    writers: dict[Path, Write] = {}
    with ExitStack() as stack:
        files: list[Path] = []
        target = None
        if options.apply is not None:
            target = stack.enter_context(opened(options.apply))
            files += target.files
        if options.load is not None:
            repair, told = recalibrate.load(options.load), f"loaded {options.load}"
            _refuse_contradiction(repair, options)
        else:
            fit = stack.enter_context(opened(str(options.file)))
            files += fit.files
            refuse_bad_places(places, files)
            repair, told = _fitted(fit, options, log)
        refuse_bad_places(places, files)
        answer(told)
        if target is not None and options.out is not None:
            for remark in target.remarks:
                log.say(remark)
            frame, moved = _applied(repair, target, options, log)
            writers[options.out] = lambda path: _write_frame(frame, path)
        if options.save is not None:
            writers[options.save] = repair.save
        write_whole(writers)
        if target is not None:
            answer(moved)
    for path in writers:
        log.say(f"written: {path}")
    return 0


def _refuse_unclear(options: Options) -> None:
    if (options.file is None) == (options.load is None):
        raise InputError("name either a file to fit on or --load REPAIR")
    if (options.apply is None) != (options.out is None):
        raise InputError("--apply FILE and --out FILE go together")
    if options.apply is None and options.save is None:
        raise InputError("nothing to do; add --save REPAIR, or --apply FILE --out FILE")
    if options.load is not None and not options.load.is_file():
        raise InputError(f"--load: there is no file {str(options.load)!r}")
    if options.out is not None and options.out.suffix.lower() not in ENDINGS:
        raise InputError(f"--out must end with one of {listed(ENDINGS)}, not {options.out.name!r}")
    if options.file == "-" and options.apply == "-":
        raise InputError("standard input can be read once; name a file for one of the two")
    if len(options.probs) > 1:
        raise InputError(ONE_MODEL)


def _refuse_contradiction(repair: recalibrate.Recalibrator, options: Options) -> None:
    """Raise if an option that was typed would be ignored, as the saved repair says otherwise."""
    known = tuple(repair.columns_)
    for option in FITTING:
        if option in options.typed:
            raise InputError(f"--{option}: with --load nothing is fitted; leave it out")
    if "method" in options.typed:
        name = next(k for k, method in recalibrate.METHODS.items() if method is type(repair))
        if options.method != name:
            raise InputError(
                f"--method: {options.load} is a repair by {name!r}, not {options.method!r}; leave "
                f"--method out"
            )
    if "on" in options.typed:
        parts = ([text] if text in known else text.split(",") for text in options.on)
        named = [name.strip() for some in parts for name in some]
        if set(named) != set(known):
            reads = f"the covariates {listed(known)}" if known else "no covariate"
            raise InputError(f"--on: {options.load} reads {reads}; leave --on out")


def _fitted(source: Source, options: Options, log: Log) -> tuple[recalibrate.Recalibrator, str]:
    if options.method not in recalibrate.METHODS:
        hint = did_you_mean(options.method, list(recalibrate.METHODS))
        raise InputError(f"--method: there is no {options.method!r}; {hint}")
    roles = settle(
        source,
        log,
        label=options.label,
        probs=options.probs,
        on=options.on,
        weights=options.weights,
        cluster=options.cluster,
        positive=options.positive,
        purpose="repair by",
        on_needed=recalibrate.METHODS[options.method].reads_covariates,
    )
    if len(roles.probs) > 1:
        raise InputError(ONE_MODEL)
    samples = read_samples(source, roles, roles.on, options.positive, options.missing)
    (sample,) = samples.values()
    rows = counted(sample.n, "row")
    if options.method == "local":  # takes minutes on a million rows
        log.say(f"fitting local on {rows}")
    repair = recalibrate.METHODS[options.method]().fit(sample)
    (repair.prob_,) = roles.probs
    return repair, f"fitted {options.method} on {rows} of {source.name}"


def _prob_of(repair: recalibrate.Recalibrator, options: Options, log: Log) -> str:
    """The column to repair: the one that was typed, else that of the fit, else of the settings."""
    if options.load is None and repair.prob_ is not None:
        return repair.prob_
    named = options.probs[0] if options.probs else None
    if repair.prob_ is not None and (named is None or "prob" not in options.typed):
        log.say(f"repairing {repair.prob_!r}, the column that the repair was fitted on")
        return repair.prob_
    if named is None:
        raise InputError("name the column of probabilities with --prob")
    if repair.prob_ not in (None, named):
        log.say(f"the repair was fitted on {repair.prob_!r}; it is applied to {named!r}")
    return named


def _applied(
    repair: recalibrate.Recalibrator, source: Source, options: Options, log: Log
) -> tuple[pa.Table, str]:
    """All columns of the file and the repaired probabilities, and what it did to them."""
    prob, on = _prob_of(repair, options, log), list(repair.columns_)
    source.require("--prob", prob)
    for name in on:
        source.require("--on", name)
    if options.column in source.columns:
        raise InputError(f"--column: {source.name} has a column {options.column!r} already")
    frame = source.table([prob, *on])
    x = frame.select(on)
    try:
        # Every row gets its answer: --missing drop is about the rows of the fit.
        missing: MissingRule = "level" if options.missing == "level" else "error"
        sample = it.Population(frame[prob], x, missing=missing)
    except InputError as error:
        raise InputError(str(error).removesuffix(" or missing='drop'")) from None
    for name, count in repair.unseen(x).items():
        log.say(
            f"{counted(count, 'row')} of {source.name} with a level of {name!r} that the repair "
            f"has not seen: repaired as rows of no category are"
        )
    repaired = repair.predict(sample.p, x)
    moved = float(np.abs(repaired - sample.p).mean())
    told = (
        f"repaired {counted(frame.num_rows, 'row')} of {source.name}: mean {sample.p.mean():.3f} "
        f"before, {repaired.mean():.3f} after; moved by {moved:.3f} on average"
    )
    whole = source.untouched()
    if source.is_text and options.out is not None and options.out.suffix.lower() not in SEPARATORS:
        whole = _typed(whole, frame)
    return whole.append_column(options.column, pa.array(repaired)), told


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


def _write_text(frame: pa.Table, path: Path) -> None:
    """Text as it was read; Arrow would put quotes around all of it."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=SEPARATORS[path.suffix.lower()], lineterminator="\n")
        writer.writerow(frame.column_names)
        for batch in frame.to_batches(WRITTEN_ROWS):
            writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _write_frame(frame: pa.Table, path: Path) -> None:
    ending = path.suffix.lower()
    if ending in SEPARATORS and all(pa.types.is_string(kind) for kind in frame.schema.types[:-1]):
        _write_text(frame, path)
    elif ending in SEPARATORS:
        try:
            pa.csv.write_csv(frame, path, pa.csv.WriteOptions(delimiter=SEPARATORS[ending]))
        except pa.ArrowInvalid as error:
            raise InputError(
                f"--out: a {ending} file cannot hold these columns ({error}); take .parquet"
            ) from None
    elif ending == ".parquet":
        pa.parquet.write_table(frame, path)
    else:
        pa.feather.write_feather(frame, str(path))
