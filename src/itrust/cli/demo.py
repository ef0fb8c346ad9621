"""The main job on a simulated survey whose truth is known: `itrust demo`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import itrust as it
from itrust import render
from itrust._core import Write, wrapped, write_all, writer_of
from itrust.auditing import Audit, Provenance
from itrust.calibration import CalibrationResult
from itrust.cli.console import answer, width
from itrust.cli.options import Options
from itrust.cli.outputs import refuse_bad_places
from itrust.data import known_format
from itrust.render import NARROW

TOWN = """\
A simulated survey of 2,000 households: a model predicts who owns a home from income and age. It \
does not know that age counts double in the south and not at all in the west."""
GAP = 'mean(age | region == "south") - mean(age | region == "west")'
TITLE = "age of owners, south less west"
YOUNG, OLD = 40, 65
ALPHA = 0.05
LABELS = 18  # columns for what stands before a result
NEXT = "Now your own file: labelled rows that the model was not fitted on."


def run(options: Options) -> int:
    """Audit the simulated survey and tell what was found; give the exit code."""
    refuse_bad_places(options)
    page, rows = options.outputs["--report"], options.outputs["--rows"]
    if rows is not None:
        known_format(rows)
    tell(page, rows)
    return 0


def simulated() -> it.simulate.Simulated:
    """The survey of the demo, always the same."""
    return it.simulate.survey(2_000, rng=2025)


def tell(page: Path | None = None, rows: Path | None = None) -> None:
    """Judge a miscalibrated model, recalibrate it, and judge one that is calibrated."""
    town = simulated()
    answer("\n".join([*wrapped(TOWN, width()), ""]))
    gap = it.tasks.parse(GAP).named(TITLE)
    audit = it.audit(town.sample, [gap], rng=0, charts=page is not None)
    other = it.simulate.survey(2_000, rng=7).sample
    methods = [it.recalibrate.Isotonic(), it.recalibrate.Local()]
    learned = it.recalibrate.compare(methods, other, town.sample, draws=199, rng=0)
    better = it.klce_test(it.simulate.survey(2_000, rng=2025, trustworthy=True).sample, rng=0)
    found = [*_audited(audit, town), *_others(learned, better)]
    answer("\n".join(line for name, text in found for line in _beside(name, text)))
    written: dict[Path, Write] = {}
    if page is not None:
        made = Provenance(f"itrust demo --report {page}")
        whole = audit.extended(recalibration=learned, provenance=made)
        written[page] = writer_of(lambda: render.page.page(whole))
    if rows is not None:
        written[rows] = write_rows
    write_all(written)
    answer("\n".join(["", *(f"written: {path}" for path in written), *_next(rows)]))


def _audited(audit: Audit, town: it.simulate.Simulated) -> Iterable[tuple[str, str]]:
    """What the audit found, and what was put into the rows."""
    overall, task = audit.overall, audit.tasks[0]
    yield "overall", f"p {overall.pvalue:.3g}, ECE {overall.ece:.3f}: the model passes"
    yield "given covariates", f"p {audit.test.pvalue:.3g} (exact): {audit.verdict}"
    for finding in audit.test.evidence():
        yield "", str(replace(finding, too_low=None, too_high=None))
    yield "  put in", "; ".join(_truth(town, name) for name in ("south", "west"))
    worst = audit.diagnosis.slices.confirmed[0]
    side = "low" if worst.bias > 0 else "high"
    yield "worst slice", f"{worst.rule}: too {side} by at least {abs(worst.at_least):.3f}"
    values = f"{task.plugin:.1f} with probabilities, {task.from_labels:.1f} with labels"
    yield "your number", f"{TITLE}: {values}: {task.finding}"


def _truth(town: it.simulate.Simulated, name: str) -> str:
    """The bias of the young and of the old in a region, which is known here."""
    region, age = town.sample.column("region"), town.sample.column("age").values
    inside = region.values == region.levels.index(name)
    young, old = (town.bias[inside & rows].mean() for rows in (age < YOUNG, age > OLD))
    return f"{name} {young:+.2f} under {YOUNG} and {old:+.2f} over {OLD}"


def _others(
    learned: it.recalibrate.RecalibrationTable, better: CalibrationResult
) -> Iterable[tuple[str, str]]:
    """The same test after recalibration, and of a model that is calibrated."""
    methods = [
        f"p {row.pvalue:.3g} by {row.name} ({'still' if row.pvalue <= ALPHA else 'not'} rejected)"
        for row in learned.recalibrations[1:]
    ]
    yield "recalibrated", f"with 2,000 other rows: {', '.join(methods)}"
    yield "a good model", f"p {better.pvalue:.3g}: nothing is found where nothing is wrong"


def _beside(name: str, text: str) -> list[str]:
    """A result with its name before it, or above it where there is little room."""
    columns = width()
    if columns < NARROW:
        return [*([name] if name else []), *wrapped(text, columns, "  ")]
    first, *rest = wrapped(text, columns - LABELS)
    return [f"{name:<{LABELS}}{first}", *(f"{'':<{LABELS}}{line}" for line in rest)]


def _next(rows: Path | None) -> list[str]:
    """The command for the reader's own file; with the rows of the demo it can be typed as it is."""
    columns = "--label owner --prob p --on income,age,region"
    command = f"  itrust audit {rows or 'FILE.csv'} {columns} \\\n      --report page.html"
    return [*wrapped(NEXT, width()), command]


def write_rows(path: Path) -> None:
    """Write the rows of the demo, with the columns that the next command names."""
    sample = simulated().sample
    region = sample.column("region")
    columns = {
        "owner": sample.y.astype(int),
        "p": sample.p,
        "income": sample.column("income").values,
        "age": sample.column("age").values,
        "region": np.take(region.levels, region.values),
    }
    known_format(path).write(pa.table(columns), path)
