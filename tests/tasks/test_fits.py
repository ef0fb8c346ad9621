"""Tasks as M-estimators: gradients by differences, shares as influence."""

import numpy as np
import pytest

import itrust as it
from itrust import tasks
from itrust.balance import pooled
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


class Joined:
    """A task, fitted on some rows: what arithmetic makes of the fits of its leaves."""

    def __init__(self, task, rows):
        self.fit = task.fitted(rows)
        self.value = self.fit.value

    def lean(self, points, weights):
        """What stand-ins of rows move the number by."""
        rows = TaskRows(points, weights, np.zeros(weights.size))
        return self.fit.lean(rows)[:, 0]

    def shares(self, rows):
        return self.fit.linear(rows).slope


@pytest.mark.parametrize("text", TEXTS)
def test_gradients_and_shares_are_derivatives(text):
    sample = it.simulate.survey(600, rng=0).sample
    rng = np.random.default_rng(0)
    task, w = tasks.parse(text), rng.uniform(0.5, 2, 600)
    rows = TaskRows(sample.points, w, sample.p)
    fit = Joined(task, rows)
    assert fit.value == pytest.approx(task.linear(rows).value)
    assert fit.shares(rows) == pytest.approx(task.linear(rows).slope)
    move = rng.normal(size=600) * 1e-6
    moved = task.linear(TaskRows(sample.points, w, sample.p + move)).value - fit.value
    assert moved == pytest.approx(fit.lean(sample.points, w) @ move, rel=1e-3)
    heavier = w * (1 + move)
    moved = task.linear(TaskRows(sample.points, heavier, sample.p)).value - fit.value
    assert moved == pytest.approx(fit.shares(rows) @ move, rel=1e-3)


def test_a_gradient_is_read_at_rows_that_it_was_not_fitted_on():
    many, few = it.simulate.survey(1_000, rng=0).sample, it.simulate.survey(50, rng=1).sample
    fit = Joined(tasks.parse("coef(age ; age + region)"), TaskRows.predicted(many))
    alone = fit.lean(few.points, np.ones(50))
    assert alone.shape == (50,)
    both = pooled(few.points, many.points)
    assert fit.lean(both, np.ones(1_050))[:50] == pytest.approx(alone)
