"""Whom a finding is about: named from coarse parts, only where they stand out."""

from dataclasses import replace

import numpy as np
import pytest

import itrust as it
from itrust.calibration import MAX_DESCRIBED, described
from itrust.data import Everywhere


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    n = 1_500
    x = {"age": rng.uniform(20, 80, n), "g": rng.choice(["a", "b"], n)}
    p = rng.uniform(0.3, 0.7, n)
    truth = p + 0.25 * np.where(x["g"] == "a", 1, -1) * (x["age"] - 50) / 30
    return it.Sample(rng.random(n) < truth, p, x)


def test_the_rows_that_are_named_are_off_in_that_direction(sample):
    found = [f for f in it.klce_test(sample, draws=99, rng=0).findings if f.pvalue <= 0.05]
    told = [f for f in found if f.too_low is not None]
    assert told
    for finding in told:
        inside = finding.where.rows(sample.points)
        for part, sign in ((finding.too_low, 1), (finding.too_high, -1)):
            if part is not None:
                rows = inside & part.rows(sample.points)
                assert rows.sum() >= 20
                assert sign * sample.residuals[rows].mean() > 0
    pair = next(f for f in told if f.name == "g x age")
    assert str(pair.too_low).startswith("g = a and age ")
    assert "most too low where g = a and age " in str(pair)


def test_groups_and_the_overall_level_name_themselves(sample):
    findings = it.klce_test(sample, draws=99, rng=0).findings
    plain = [f for f in findings if f.family == "overall" or f.name.startswith("g = ")]
    assert plain
    assert all(f.too_low is None and f.too_high is None for f in plain)


def test_only_some_findings_are_described_and_none_without_rows(sample):
    first = it.klce_test(sample, draws=99, rng=0).findings[0]
    many = [
        replace(first, name=str(k), where=Everywhere(), pvalue=0.01, too_low=None, too_high=None)
        for k in range(2 * MAX_DESCRIBED)
    ]
    told = described(many, sample)
    assert sum(f.too_low is not None for f in told) <= MAX_DESCRIBED
    assert described(many, None) == tuple(many)
