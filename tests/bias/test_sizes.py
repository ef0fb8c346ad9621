"""Sizes that are quoted are those of the part, although it was singled out."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

import itrust as it


@pytest.fixture(scope="module")
def group():
    rng = np.random.default_rng(5)
    x = {"g": rng.choice(list("ab"), 600)}
    p = rng.uniform(0.2, 0.6, 600)
    sample = it.Sample(rng.random(600) < p + 0.3 * (x["g"] == "a"), p, x)
    return it.bias_groups(sample, "g", draws=39, rng=0)[0]


def test_the_near_end(group):
    assert group.at_least == group.lower > 0
    assert replace(group, lower=-0.2, upper=-0.1).at_least == -0.1
    assert replace(group, lower=-0.2, upper=0.1).at_least == 0.0


def test_an_estimate_lies_between_the_near_end_and_the_bias(group):
    just = replace(group, stderr=0.02, lower=1e-9, upper=2 * group.bias)
    assert just.estimate == pytest.approx(just.at_least, abs=1e-6)
    lower = [just.bias - 0.05, 0.01, 0.03]
    told = [replace(just, lower=own) for own in lower]
    assert told[0].estimate == pytest.approx(just.bias, abs=1e-6)  # far beyond
    assert told[1].at_least < told[1].estimate < told[2].estimate < just.bias
    assert replace(just, lower=-0.1).estimate == just.bias  # not told
    turned = replace(
        told[1], lower=-just.upper, upper=-0.01, predicted=just.observed, observed=just.predicted
    )
    assert turned.estimate == pytest.approx(-told[1].estimate)


@pytest.mark.parametrize("power", [0.02, 0.1, 0.3, 0.5, 0.8, 0.99])
def test_what_being_singled_out_adds_is_taken_back(group, power):
    """A normal mean that is told where it exceeds a bound: raw, up to 2.4 standard errors off."""
    reach, unit = 3.0, 0.01  # standard errors from the estimate to the end of its interval
    truth = reach + float(ndtri(power))
    told = truth + ndtri(1 - power * (np.arange(500) + 0.5) / 500)  # values above what is needed
    estimates = [
        replace(
            group,
            predicted=0.0,
            observed=unit * value,
            lower=unit * (value - reach),
            upper=unit * (value + reach),
            stderr=unit,
        ).estimate
        for value in told.tolist()
    ]
    assert abs(np.mean(estimates) / unit - truth) < 0.75
    if power < 0.5:
        assert told.mean() - truth > 0.8
