"""`itrust recalibrate`: fit a repair on one file, apply it to another, save it."""

from __future__ import annotations

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
from itrust.cli.audit import read_samples
from itrust.cli.outputs import Write, refuse_bad_places, write_whole
from itrust.cli.roles import settle
from itrust.cli.source import Source, opened
from itrust.cli.voice import Aside, answer
from itrust.errors import InputError, counted, did_you_mean, listed
from itrust.intake import Missing

ENDINGS = (".csv", ".parquet", ".feather")


@dataclass(frozen=True)
class Wishes:
    """What the options ask for."""

    file: str | None
    label: str | None
    probs: Sequence[str]
    on: Sequence[str]
    weights: str | None
    cluster: str | None
    positive: str | None
    missing: Missing
    method: str
    apply: str | None
    out: Path | None
    column: str
    save: Path | None
    load: Path | None
    quiet: bool


def run(wishes: Wishes) -> int:
    """Fit or load, then apply and save."""
    _refuse_unclear(wishes)
    aside = Aside(wishes.quiet)
    places = {"--out": wishes.out, "--save": wishes.save}
    refuse_bad_places(places, [] if wishes.load is None else [wishes.load])
    writers: dict[Path, Write] = {}
    with ExitStack() as stack:
        files: list[Path] = []
        target = None
        if wishes.apply is not None:
            target = stack.enter_context(opened(wishes.apply))
            files += target.files
        if wishes.load is not None:
            repair, told = recalibrate.load(wishes.load), f"loaded {wishes.load}"
            prob, on = _prob_of(wishes), tuple(repair.columns_)
        else:
            fit = stack.enter_context(opened(str(wishes.file)))
            files += fit.files
            refuse_bad_places(places, files)
            repair, told, prob, on = _fitted(fit, wishes, aside)
        refuse_bad_places(places, files)
        answer(told)
        if target is not None and wishes.out is not None:
            frame, moved = _applied(repair, target, prob, on, wishes)
            writers[wishes.out] = lambda path: _write_frame(frame, path)
        if wishes.save is not None:
            writers[wishes.save] = repair.save
        write_whole(writers)
        if target is not None:
            answer(moved)
    for path in writers:
        aside.say(f"written: {path}")
    return 0


def _refuse_unclear(wishes: Wishes) -> None:
    if (wishes.file is None) == (wishes.load is None):
        raise InputError("name either a file to fit on or --load REPAIR")
    if (wishes.apply is None) != (wishes.out is None):
        raise InputError("--apply FILE and --out FILE go together")
    if wishes.apply is None and wishes.save is None:
        raise InputError("nothing to do; add --save REPAIR, or --apply FILE --out FILE")
    if wishes.load is not None and not wishes.load.is_file():
        raise InputError(f"--load: there is no file {str(wishes.load)!r}")
    if wishes.out is not None and wishes.out.suffix.lower() not in ENDINGS:
        raise InputError(f"--out must end with one of {listed(ENDINGS)}, not {wishes.out.name!r}")
    if wishes.file == "-" and wishes.apply == "-":
        raise InputError("standard input can be read once; name a file for one of the two")
    if len(wishes.probs) > 1:
        raise InputError("--prob: a repair is for one model; name one column")


def _fitted(
    source: Source, wishes: Wishes, aside: Aside
) -> tuple[recalibrate.Recalibrator, str, str, tuple[str, ...]]:
    if wishes.method not in recalibrate.METHODS:
        hint = did_you_mean(wishes.method, list(recalibrate.METHODS))
        raise InputError(f"--method: there is no {wishes.method!r}; {hint}")
    roles = settle(
        source,
        aside,
        label=wishes.label,
        probs=wishes.probs,
        on=wishes.on,
        weights=wishes.weights,
        cluster=wishes.cluster,
        positive=wishes.positive,
    )
    samples = read_samples(source, roles, roles.on, wishes.positive, wishes.missing)
    (sample,) = samples.values()
    repair = recalibrate.METHODS[wishes.method]().fit(sample)
    told = f"fitted {wishes.method} on {counted(sample.n, 'row')} of {source.name}"
    return repair, told, roles.probs[0], roles.on


def _prob_of(wishes: Wishes) -> str:
    if not wishes.probs:
        raise InputError("name the column of probabilities with --prob")
    return wishes.probs[0]


def _applied(
    repair: recalibrate.Recalibrator,
    source: Source,
    prob: str,
    on: Sequence[str],
    wishes: Wishes,
) -> tuple[pa.Table, str]:
    """All columns of the file and the repaired probabilities, and what it did to them."""
    source.require("--prob", prob)
    for name in on:
        source.require("--on", name)
    if wishes.column in source.columns:
        raise InputError(f"--column: {source.name} has a column {wishes.column!r} already")
    frame = source.table(source.columns)
    x = frame.select(list(on))
    sample = it.Population(frame[prob], x, missing=wishes.missing)
    if sample.n != frame.num_rows:
        raise InputError("--missing drop would leave rows without a repaired probability")
    repaired = repair.predict(sample.p, x)
    moved = float(np.abs(repaired - sample.p).mean())
    told = (
        f"repaired {counted(frame.num_rows, 'row')} of {source.name}: mean {sample.p.mean():.3f} "
        f"before, {repaired.mean():.3f} after; moved by {moved:.3f} on average"
    )
    return frame.append_column(wishes.column, pa.array(repaired)), told


def _write_frame(frame: pa.Table, path: Path) -> None:
    ending = path.suffix.lower()
    if ending == ".csv":
        pa.csv.write_csv(frame, path)
    elif ending == ".parquet":
        pa.parquet.write_table(frame, path)
    else:
        pa.feather.write_feather(frame, str(path))
