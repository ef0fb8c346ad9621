"""Numbers so far: sums as tasks have them, and intervals that hold at all times, under drift."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

import itrust as it
from itrust import tasks
from itrust.watch.sequences import GRID, LOG_WEIGHTS, PENALTY, SumSequence, begun_sequences, radius

TASKS = [
    "prevalence()",
    'prevalence(sex == "m") - prevalence(sex == "f")',
    "mean(age)",
    'mean(age | sex == "m") / mean(age)',
    'share(region == "south")',
]


def sequences_of(sample, texts=TASKS):
    return begun_sequences([tasks.parse(text) for text in texts], {None: [sample]})


@settings(max_examples=150, deadline=None)
@given(st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1), st.integers(0, GRID.size - 1))
def test_a_factor_has_mean_1_at_most_at_any_probability(a, p, truth, k):
    mean = 0.0
    for sign in (1, -1):
        mean = sum(
            chance * math.exp(sign * GRID[k] * a * (y - truth) - PENALTY[k] * (a * (y - p)) ** 2)
            for y, chance in ((1, truth), (0, 1 - truth))
        )
        assert mean <= 1 + 1e-12
    beyond = sum(
        chance * math.exp(GRID[k] * 5 * a * (y - truth) - GRID[k] ** 2 * (5 * a) ** 2 / 8)
        for y, chance in ((1, truth), (0, 1 - truth))
    )
    assert beyond <= 1 + 1e-12


def test_the_radius_solves_its_equation_and_grows():
    x, squares, hoeffding, alpha = radius(50.0, 3.0, 0.01), 50.0, 3.0, 0.01
    logs = GRID * x - PENALTY * squares - GRID**2 / 2 * hoeffding + LOG_WEIGHTS
    assert np.isclose(np.logaddexp.reduce(logs), -math.log(alpha))
    assert radius(51.0, 3.0, 0.01) > x > radius(50.0, 3.0, 0.02)
    assert radius(1e8, 0.0, 0.025) < 6 * 1e4  # about the root of the sum of squares


def test_numbers_equal_those_of_tasks_on_all_rows(drawn):
    parts = [drawn(seed, 150) for seed in range(4)]
    own = sequences_of(parts[0])
    for part in parts:
        own = tuple(one.after({None: part}) for one in own)
    y, p = (np.concatenate([getattr(part, name) for part in parts]) for name in "yp")
    x = {
        name: np.concatenate([[part.column(name).cell(k) for k in range(part.n)] for part in parts])
        for name in parts[0].names
    }
    whole = it.Sample(y, p, x)
    for one, text in zip(own, TASKS, strict=True):
        so_far, result = one.so_far(0.05), tasks.parse(text).evaluate(whole, draws=19, rng=0)
        assert np.isclose(so_far.with_probabilities, result.plugin)
        assert np.isclose(so_far.with_labels, result.from_labels)
        assert so_far.lower <= so_far.bias <= so_far.upper
        assert (so_far.batches, so_far.rows) == (4, 600)


def test_a_prevalence_has_the_closed_form(drawn):
    sample = drawn(5, 400)
    (own,) = sequences_of(sample, ["prevalence()"])
    so_far = own.after({None: sample}).so_far(0.05)
    e = sample.residuals
    off = radius(float(e @ e), 0.0, 0.025) / sample.n
    np.testing.assert_allclose([so_far.lower, so_far.upper], [e.mean() - off, e.mean() + off])


def test_rows_beyond_the_bound_and_clusters_are_counted_with_care():
    a, e = np.array([1.0, -2.0, 8.0]), np.array([0.5, 0.5, -0.5])
    alone = SumSequence(2.0).after(a, e, None)
    assert (alone.total, alone.squares, alone.hoeffding) == (-4.5, 1.25, 16.0)
    joined = SumSequence(3.0).after(a, e, np.array([0, 0, 1]))
    assert (joined.total, joined.squares, joined.hoeffding) == (-4.5, 0.25, 16.0)


def test_nothing_is_said_before_a_row_counts(drawn):
    sample = drawn(6, 300)
    women = sample.where('sex == "f"')
    (own,) = sequences_of(sample, ['prevalence(sex == "m")'])
    so_far = own.after({None: women}).so_far(0.05)
    assert math.isnan(so_far.with_labels)


def test_coefficients_are_refused_in_words(reference):
    with pytest.raises(it.InputError, match="cannot be watched: a confidence sequence is known"):
        it.Watch.start(reference, [tasks.coefficient("age", ["age", "sex"])])


def test_functions_of_python_are_refused_in_words(reference):
    task = tasks.mean(lambda x: x["age"] ** 2, name="square")
    with pytest.raises(it.InputError, match="cannot be written as text"):
        it.Watch.start(reference, [task])


@pytest.mark.slow
@pytest.mark.parametrize("drift", ["none", "moving"])
def test_intervals_hold_at_all_times_with_and_without_drift(drift, reference):
    runs, held = 40, 0
    begun_at = sequences_of(reference, ["prevalence()", "mean(age)"])
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        own, true, fine = begun_at, begun_at, True
        for k in range(16):
            age, p = rng.uniform(20, 80, 80), rng.uniform(0.05, 0.95, 80)
            bias = 0.0 if drift == "none" else 0.2 * math.sin(k / 3) * np.sign(age - 50)
            truth = np.clip(p + bias, 0, 1)
            y = (rng.random(80) < truth).astype(float)
            points = it.Population(p, {"age": age}).points
            rows = [
                SimpleNamespace(points=points, y=labels, p=p, n=80, weights=None, cluster=None)
                for labels in (y, truth)
            ]
            own = tuple(one.after({None: rows[0]}) for one in own)
            true = tuple(one.after({None: rows[1]}) for one in true)
            for one, other in zip(own, true, strict=True):
                found = one.so_far(0.1)
                (leaf,) = other.leaves
                predicted, exact = leaf.values()
                fine &= found.lower <= exact - predicted <= found.upper
        held += fine
    assert binomtest(held, runs, 0.8, alternative="less").pvalue > 0.01  # two numbers at .9 each
