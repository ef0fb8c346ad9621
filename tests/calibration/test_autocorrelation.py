import numpy as np
import pytest
from scipy.stats import binomtest, norm

import itrust as it
from itrust.calibration import residual_autocorrelation
from itrust.data import blocks


def series(rng, times=200, rows=5, rho=0.0):
    """Labels whose latent errors are shared by a day and follow the day before."""
    level = np.zeros(times)
    for t in range(1, times):
        level[t] = rho * level[t - 1] + np.sqrt(1 - rho**2) * rng.normal()
    p = rng.uniform(0.1, 0.9, times * rows)
    shared = np.repeat(level, rows) * (0.7 if rho else 0.0)
    own = rng.normal(size=times * rows) * (np.sqrt(1 - 0.49) if rho else 1.0)
    y = (shared + own < norm.ppf(p)).astype(int)
    days = np.datetime64("2024-01-01") + np.repeat(np.arange(times), rows)
    return it.Sample(y, p), days


def test_the_closed_form_of_four_days():
    # r = (1, 1, -1, 1, -1, -1) at p = 0.5, mean 0; days of 2, 1, 1, 2 rows
    s = it.Sample([1, 1, 0, 1, 0, 0], [0.5] * 6)
    found = residual_autocorrelation(s, [1, 1, 2, 3, 4, 4])
    z = np.array([np.sqrt(2), -1.0, 1.0, -np.sqrt(2)])
    products = z[1:] * z[:-1]
    assert (found.lag, found.pairs) == (1, 3)
    assert found.correlation == pytest.approx(products.mean() / (z**2).mean())
    assert found.correlation == pytest.approx(-(2 * np.sqrt(2) + 1) / 3 / 1.5)
    assert found.stderr == pytest.approx(np.sqrt(5) / 3 / 1.5)


def test_order_of_rows_and_gaps_between_days_do_not_matter():
    s, days = series(np.random.default_rng(0))
    found = residual_autocorrelation(s, days)
    mixed = np.random.default_rng(1).permutation(s.n)
    assert residual_autocorrelation(s.take(mixed), days[mixed]).correlation == pytest.approx(
        found.correlation
    )
    weekdays = days + (days - days[0]) // 5 * 2
    assert residual_autocorrelation(s, weekdays) == found
    assert residual_autocorrelation(s, [str(day) for day in days]) == found
    assert residual_autocorrelation(s, blocks(days, "week")).pairs == 28


def test_a_constant_bias_is_no_autocorrelation():
    rng = np.random.default_rng(2)
    y = rng.random(4000) < 0.6
    found = residual_autocorrelation(it.Sample(y, np.full(4000, 0.4)), np.arange(4000) // 4)
    assert abs(found.correlation) < 3 * found.stderr


def test_independent_residuals_have_normal_scores():
    scores = []
    for seed in range(200):
        found = residual_autocorrelation(*series(np.random.default_rng(seed)))
        scores.append(abs(found.correlation / found.stderr))
    assert np.mean(np.array(scores) < 3) >= 0.99
    rejected = int((np.array(scores) > norm.ppf(0.975)).sum())
    assert binomtest(rejected, 200, 0.05).pvalue > 0.01


def test_dependent_days_are_seen_and_fade_with_the_lag():
    s, days = series(np.random.default_rng(3), times=400, rho=0.8)
    first, fifth, tenth = (residual_autocorrelation(s, days, lag) for lag in (1, 5, 10))
    assert first.correlation > 5 * first.stderr
    assert first.correlation > fifth.correlation > tenth.correlation - 2 * tenth.stderr


def test_rows_that_are_sure_are_left_out_and_few_times_are_refused():
    s = it.Sample([1, 0, 1, 1], [1.0, 0.5, 0.5, 0.5])
    assert residual_autocorrelation(s, [1, 2, 3, 4]).pairs == 2
    with pytest.raises(it.InputError, match="order has 2 times with p between 0 and 1, too few"):
        residual_autocorrelation(s, [1, 1, 2, 1])
    with pytest.raises(it.InputError, match="order has 3 rows, but there are 4 labels"):
        residual_autocorrelation(s, [1, 2, 3])
