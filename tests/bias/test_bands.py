"""Intervals of a bias: closed forms, properties, coverage."""

import itertools

import numpy as np
import pytest
from scipy.stats import beta, binom

import itrust as it
from itrust.bias import Members, average, confidence_band, critical_value, null_band
from itrust.data import Between, Everywhere
from itrust.nulls import Bernoulli
from oracles import plausible


def of(y, p, **columns):
    sample = it.Sample(y, p, **columns)
    return average(sample, Members([Everywhere()]), (Bernoulli(),), draws=0, seed=0)


@pytest.mark.parametrize(("events", "rows"), [(0, 200), (1, 200), (4, 200), (20, 200), (150, 300)])
def test_equal_predictions_give_nearly_the_exact_binomial_interval(events, rows):
    found = confidence_band(of(np.arange(rows) < events, np.full(rows, 0.1)), 1.96)
    exact = [
        beta.ppf(0.025, events, rows - events + 1) if events else 0.0,
        beta.ppf(0.975, events + 1, rows - events),
    ]
    rates = found.lower[0] + 0.1, found.upper[0] + 0.1
    # Clopper and Pearson never fall short of their level; a score interval is narrower.
    assert exact[0] - 0.001 <= rates[0] <= exact[0] + 0.008
    assert exact[1] - 0.012 <= rates[1] <= exact[1] + 0.008


def test_the_null_band_is_nearly_the_binomial_quantile():
    band = null_band(of(np.arange(400) % 2, np.full(400, 0.05)), np.array([1.96]), 1.96)
    low, high = binom.ppf([0.025, 0.975], 400, 0.05) / 400 - 0.05
    assert band.lower[0] == pytest.approx(low, abs=1 / 400)
    assert band.upper[0] == pytest.approx(high, abs=1 / 400)


def test_swapping_the_labels_turns_the_interval_round():
    rng = np.random.default_rng(0)
    p, y = rng.uniform(size=80), rng.random(80) < 0.4
    one, other = of(y, p), of(~y, 1 - p)
    a, b = confidence_band(one, 2.5), confidence_band(other, 2.5)
    assert (a.lower, a.upper) == (pytest.approx(-b.upper), pytest.approx(-b.lower))
    a, b = (null_band(found, np.array([2.5]), 2.5) for found in (one, other))
    assert (a.lower, a.upper) == (pytest.approx(-b.upper), pytest.approx(-b.lower))


def test_intervals_hold_the_estimate_and_what_is_possible():
    rng = np.random.default_rng(1)
    for _ in range(50):
        p, y = rng.uniform(size=30) ** 3, rng.random(30) < rng.random()
        found = of(y, p, weights=rng.exponential(size=30))
        band = confidence_band(found, 3.0)
        mean = found.mean_prediction[0]
        assert -mean - 1e-9 <= band.lower[0] <= found.values[0] <= band.upper[0] <= 1 - mean + 1e-9


def halved(averages, reach, at_zero):
    """Ends of the intervals by plain halving of what may hold them."""
    values = averages.values
    mean, ends = averages.mean_prediction, []
    for end in (-mean, 1 - mean):
        near_zero = averages.distance(values, 0 * values) <= at_zero
        between = (np.minimum(values, end) <= 0) & (np.maximum(values, end) >= 0)
        inside = np.where(between & near_zero, 0.0, values)
        outside = np.where(between & ~near_zero, 0.0, end)
        for _ in range(50):
            middle = (inside + outside) / 2
            towards = (middle * values > 0) & (np.abs(middle) < np.abs(values))
            share = np.where(towards, middle / np.where(values == 0, 1.0, values), 1.0)
            near = averages.distance(values, middle) <= at_zero + share * (reach - at_zero)
            inside, outside = np.where(near, middle, inside), np.where(near, outside, middle)
        ends.append(inside)
    return ends


@pytest.mark.parametrize(("reach", "at_zero"), [(1.96, 1.96), (3.1, 2.7), (2.5, 2.9), (9.0, 9.0)])
@pytest.mark.parametrize("by", [{}, {"cluster": np.arange(400) // 5}])
def test_ends_of_intervals_are_those_of_plain_halving(reach, at_zero, by):
    rng = np.random.default_rng(4)
    x = rng.uniform(size=400)
    p = np.where(x < 0.1, rng.choice([0.0, 1.0], 400), rng.beta(1, 4, 400))
    sample = it.Sample(rng.random(400) < np.clip(p + 0.3 * (x > 0.7), 0, 1), p, {"x": x}, **by)
    edges = np.linspace(0, 1, 15)
    regions = [Between("x", a, b, "") for a, b in itertools.combinations(edges, 2)]
    averages = average(sample, Members(regions), (Bernoulli(),), draws=0, seed=0)
    band = confidence_band(averages, reach, at_zero)
    lower, upper = halved(averages, reach, at_zero)
    assert band.lower == pytest.approx(lower, abs=1e-11)
    assert band.upper == pytest.approx(upper, abs=1e-11)


def test_too_few_draws_have_no_critical_value():
    assert critical_value(np.arange(10.0), 0.05) == np.inf
    assert critical_value(np.arange(19.0), 0.05) == 18.0


@pytest.mark.parametrize("truth", ["as predicted", "far off", "cancelling"])
@pytest.mark.slow
def test_the_interval_covers_the_bias_of_a_group(truth):
    rng = np.random.default_rng(7)
    missed, runs = 0, 250
    for _ in range(runs):
        p = rng.uniform(0.01, 0.06, 150) if truth == "far off" else rng.uniform(0.2, 0.7, 150)
        shift = {"as predicted": 0.0, "far off": 0.1, "cancelling": 0.2 * rng.choice([-1, 1], 150)}
        pi = p + shift[truth]
        found = of(rng.random(150) < pi, p)
        band = confidence_band(found, 1.96)
        missed += not band.lower[0] <= (pi - p).mean() <= band.upper[0]
    if truth == "cancelling":  # residuals vary more than labels do: conservative
        assert missed / runs <= 0.06
    else:
        assert plausible(missed, runs)
