"""Tasks as M-estimators: gradients by differences, shares as influence."""

import numpy as np
import pytest

import itrust as it
from itrust import tasks
from itrust.tasks.expressions import TaskRows

TEXTS = (
    "prevalence()",
    'prevalence(region == "south")',
    "mean(age)",
    "mean(age | income < 60000)",
    "coef(age ; age + region)",
    'coef(region["west"] ; age + region ; log | age < 70)',
    "coef(1 ; age ; identity)",
    "mean(age) * coef(age ; age) + 1 / prevalence()",
)


@pytest.mark.parametrize("text", TEXTS)
def test_gradients_and_shares_are_derivatives(text):
    sample = it.simulate.survey(600, rng=0).sample
    rng = np.random.default_rng(0)
    task, w = tasks.parse(text), rng.uniform(0.5, 2, 600)
    rows = TaskRows(sample.points, w, sample.p)
    fit = tasks.fit_task(task, rows)
    assert fit.value == pytest.approx(task.linear(rows).value)
    assert fit.shares(rows) == pytest.approx(task.linear(rows).influence)
    move = rng.normal(size=600) * 1e-6
    moved = task.linear(TaskRows(sample.points, w, sample.p + move)).value - fit.value
    assert moved == pytest.approx(w @ (fit.gradient(sample.points) * move) / w.sum(), rel=1e-3)
    heavier = w * (1 + move)
    moved = task.linear(TaskRows(sample.points, heavier, sample.p)).value - fit.value
    assert moved == pytest.approx(fit.shares(rows) @ move, rel=1e-3)


def test_a_gradient_is_read_at_rows_that_it_was_not_fitted_on():
    many, few = it.simulate.survey(1_000, rng=0).sample, it.simulate.survey(50, rng=1).sample
    fit = tasks.fit_task(tasks.parse("coef(age ; age + region)"), TaskRows.predicted(many))
    both = it.simulate.survey(1_000, rng=0).sample
    assert fit.gradient(few.points).shape == (50,)
    assert fit.gradient(both.points) == pytest.approx(fit.gradient(many.points))
