"""The main job on a simulated survey whose truth is known: `itrust demo`."""

from __future__ import annotations

from pathlib import Path

import itrust as it
from itrust.auditing import Provenance
from itrust.cli.options import Options
from itrust.cli.outputs import refuse_bad_places

TOWN = """\
A simulated survey: a model predicts who owns a home from income and age. It does not
know that age counts double in the south and not at all in the west.
"""


GAP = 'mean(age | region == "south") - mean(age | region == "west")'
TASKS = [GAP, 'prevalence(region == "south")']


def run(options: Options) -> int:
    """Audit the simulated survey and tell what was found; give the exit code."""
    refuse_bad_places(options.outputs, [])
    tell(options.outputs["--report"])
    return 0


def tell(page: Path | None = None) -> None:
    """Judge a miscalibrated model, recalibrate it, and judge one that is calibrated.

    Parameters
    ----------
    page : Path, optional
        Where to write the audit as a page.
    """
    town = it.simulate.survey(2_000, rng=2025)
    sample = town.sample
    print(TOWN)
    print(sample)
    print()
    print("Without covariates, the model passes for calibrated:")
    bare = it.Sample(sample.y, sample.p)
    print(f"  ECE {it.scores.ece(sample):.3f}, p-value {it.klce_test(bare, rng=0).pvalue:.3f}")
    print()
    print(it.klce_test(sample, rng=0))
    print()
    print("The same rows in one audit, with two numbers to defend:")
    print()
    audit = it.audit(sample, TASKS, rng=0, charts=page is not None)
    print(audit)
    print()
    print("What was known beforehand (bias = observed - predicted; positive: too low):")
    region, age = sample.column("region"), sample.column("age").values
    for name in region.levels:
        inside = region.values == region.levels.index(name)
        for ages, rows in (("under 40", age < 40), ("over 65", age > 65)):
            chosen = inside & rows
            told = f"{name}, {ages}"
            print(f"  {told:<18}{chosen.sum():>5,} rows  true bias {town.bias[chosen].mean():+.3f}")
    print()
    other = it.simulate.survey(2_000, rng=7).sample
    methods = [it.recalibrate.Isotonic(), it.recalibrate.Local()]
    recalibration = it.recalibrate.compare(methods, other, sample, draws=199, rng=0)
    print("Recalibrated with 2,000 other rows of the same town:")
    print(recalibration)
    print()
    better = it.klce_test(it.simulate.survey(2_000, rng=2025, trustworthy=True).sample, rng=0)
    print(f"The same town with a model that is calibrated: p-value {better.pvalue:.3f}")
    if page is not None:
        made = Provenance(f"itrust demo --report {page}")
        audit.extended(recalibration=recalibration, provenance=made).to_html(page)
        print()
        print(f"The audit as a page: {page.resolve()}")
