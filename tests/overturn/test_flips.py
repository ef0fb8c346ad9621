"""The fewest flipped labels: closed forms, brute force over all subsets, bounds."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import itrust as it
from itrust.overturn.forms import form_of
from itrust.overturn.numbers import FlippedLabels, fewest_flips
from itrust.tasks import TaskRows, parse

EXACT = [
    "prevalence()",
    "prevalence(c == 'a')",
    "mean(x)",
    "mean(x | c == 'a')",
    "share(c == 'a')",
    "share(c == 'a' | x > 0)",
    "prevalence(c == 'a') - prevalence(c == 'b')",
    "prevalence(c == 'a') - prevalence()",
    "prevalence(c == 'a') / prevalence(c == 'b')",
    "2 * mean(x) - 1",
    "mean(x | c == 'a') - mean(x | c == 'b')",
    "mean(x | c == 'a') + prevalence(c == 'b')",
]
BOUNDED = [
    "mean(x | c == 'a') - mean(x)",
    "mean(x | c == 'a') * prevalence(c == 'b')",
    "mean(x) - prevalence(c == 'a')",
    "share(c == 'a') / share(x > 0 | c == 'a')",
]


def small_sample(seed: int, n: int, weighted: bool) -> it.Sample:
    rng = np.random.default_rng(seed)
    x, c = rng.normal(size=n).round(1), np.array(["a", "b"])[np.arange(n) % 2]
    y = rng.random(n) < 0.5
    y[:2] = True
    weights = rng.integers(1, 4, n).astype(float) if weighted else None
    return it.Sample(y, rng.uniform(0.2, 0.8, n), {"x": x, "c": c}, weights=weights)


def by_brute_force(task, sample, target: float, below: bool, strict: bool = False) -> int | None:
    """Try every subset of the labels, the smallest first."""
    rows = TaskRows.labelled(sample)
    for count in range(sample.n + 1):
        for chosen in itertools.combinations(range(sample.n), count):
            y = sample.y.copy()
            y[list(chosen)] = 1 - y[list(chosen)]
            value = task.linear(TaskRows(rows.points, rows.weights, y)).value
            gap = (value - target) * (1 if below else -1)
            if math.isnan(gap) or (gap < -1e-9 if strict else gap <= 1e-9):
                return count
    return None


def found_for(task, sample, target: float, below: bool, strict: bool = False):
    form = form_of(task, TaskRows.labelled(sample))
    return fewest_flips(form, sample.y, target, below=below, strict=strict)


@pytest.mark.parametrize("text", EXACT)
@pytest.mark.parametrize("below", [True, False])
def test_the_fewest_flips_are_those_of_brute_force(text, below):
    task = parse(text)
    compared = 0
    for seed, weighted in itertools.product(range(2), [False, True]):
        sample = small_sample(seed, 9, weighted)
        now = task.linear(TaskRows.labelled(sample)).value
        for share in (0.1, 0.45, 0.9):
            target = now + (-1 if below else 1) * share * max(abs(now), 0.3)
            found = found_for(task, sample, target, below)
            told = by_brute_force(task, sample, target, below)
            assert (None if found is None else found.at_most) == told
            assert found is None or found.is_exact
            compared += told is not None and told > 0
    assert compared >= 5


@pytest.mark.parametrize("text", ["prevalence()", "mean(x)", EXACT[-2]])
def test_the_fewest_flips_of_fourteen_rows_are_those_of_brute_force(text):
    task, sample = parse(text), small_sample(3, 14, weighted=False)
    now = task.linear(TaskRows.labelled(sample)).value
    target = now - {"prevalence()": 0.35, "mean(x)": 0.9}.get(text, 2.0)
    found = found_for(task, sample, target, below=True)
    assert found.is_exact
    assert found.at_most == by_brute_force(task, sample, target, below=True) > 1


@pytest.mark.parametrize("text", BOUNDED)
@pytest.mark.parametrize("below", [True, False])
def test_bounds_hold_the_fewest_flips_of_brute_force(text, below):
    task, compared = parse(text), 0
    for seed in range(4):
        sample = small_sample(10 + seed, 9, weighted=seed % 2 == 1)
        now = task.linear(TaskRows.labelled(sample)).value
        for share in (0.15, 0.5):
            target = now + (-1 if below else 1) * share * max(abs(now), 0.3)
            found = found_for(task, sample, target, below)
            told = by_brute_force(task, sample, target, below)
            if told is None:
                assert found is None
            elif found is not None:
                assert min(1, told) <= found.at_least <= told <= found.at_most
                compared += 1
    assert compared >= 4


def test_a_value_that_is_reached_is_enough_unless_it_must_be_passed():
    sample = small_sample(0, 10, weighted=False)
    positives = int(sample.y.sum())
    task, target = parse("prevalence()"), (positives - 2) / 10
    assert found_for(task, sample, target, below=True).at_most == 2
    assert found_for(task, sample, target, below=True, strict=True).at_most == 3
    assert found_for(task, sample, positives / 10, below=True).at_most == 0
    assert found_for(task, sample, positives / 10, below=False, strict=True).at_most == 1


def test_a_value_that_no_labels_give_is_not_reached():
    sample = small_sample(0, 10, weighted=False)
    assert found_for(parse("prevalence()"), sample, -0.1, below=True) is None


def test_a_mean_without_positives_is_undefined():
    # No positive has a mean below the smallest value: all of them have to go.
    sample = small_sample(0, 10, weighted=False)
    found = found_for(parse("mean(x)"), sample, -100.0, below=True)
    positives = int(sample.y.sum())
    assert found == FlippedLabels(positives, positives, positives, 0)


def test_flips_of_a_rate_go_by_weight():
    y, weights = [1, 1, 1, 1, 0], [1.0, 5.0, 1.0, 3.0, 2.0]
    sample = it.Sample(y, [0.5] * 5, {"x": np.arange(5.0)}, weights=weights)
    # 10 of 12 are positive; without those of weight 5 and 3, 2 of 12 are.
    found = found_for(parse("prevalence()"), sample, 2 / 12, below=True)
    assert found == FlippedLabels(2, 2, 2, 0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 0.5), st.booleans())
def test_one_flip_less_is_not_enough(seed, moved, below):
    sample = small_sample(seed, 60, weighted=seed % 2 == 0)
    task = parse("mean(x | c == 'a') - mean(x | c == 'b')")
    now = task.linear(TaskRows.labelled(sample)).value
    nearer, further = (now + (-1 if below else 1) * by for by in (moved, moved + 0.1))
    few, many = (found_for(task, sample, target, below) for target in (nearer, further))
    assert 0 < few.at_least <= few.at_most
    assert few.at_least <= many.at_least
    assert few.at_most <= few.at_least + 1
    assert few.to_negative + few.to_positive == few.at_most
