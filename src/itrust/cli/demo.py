"""The main job on a simulated survey whose truth is known: `itrust demo`."""

from __future__ import annotations

import sys
from pathlib import Path

import itrust as it
from itrust.auditing import Provenance

TOWN = """\
A simulated survey: a model predicts who owns a home from income and age. It does not
know that age counts double in the south and not at all in the west.
"""


GAP = 'mean(age | region == "south") - mean(age | region == "west")'
TASKS = [GAP, 'prevalence(region == "south")']


def main(page: Path | None = None) -> int:
    """Judge the wrong model, say what was known beforehand, repair it; then the right one."""
    town = it.simulate.survey(2_000, rng=2025)
    sample = town.sample
    print(TOWN)
    print(sample)
    print()
    print("Looked at without covariates, the model passes for calibrated:")
    bare = it.Sample(sample.y, sample.p)
    print(f"  ECE {it.scores.ece(sample):.3f}, p-value {it.klce_test(bare, rng=0).pvalue:.3f}")
    print()
    print(it.klce_test(sample, rng=0))
    print()
    print("The same rows in one audit, with two numbers to defend:")
    print()
    audit = it.audit(sample, TASKS, rng=0)
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
    repairs = it.recalibrate.compare(methods, other, sample, draws=199, rng=0)
    print("Repairs, learned from 2,000 other rows of the same town:")
    print(repairs)
    print()
    right = it.klce_test(it.simulate.survey(2_000, rng=2025, trustworthy=True).sample, rng=0)
    print(f"The same town with a model that is right: p-value {right.pvalue:.3f}")
    if page is not None:
        made = Provenance(f"itrust demo --report {page}")
        audit.extended(recalibration=repairs, provenance=made).to_html(page)
        print()
        print(f"The audit as a page: {page.resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
