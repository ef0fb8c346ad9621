"""Newton's steps for canonical links: solutions, and where there is none."""

import numpy as np
import pytest
from scipy.optimize import minimize

from itrust.tasks.links import LINKS, NewtonStep, solved


def problem(n=200, seed=0):
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    return design, rng.uniform(0.5, 2, n), (rng.random(n) < 0.3).astype(float)


@pytest.mark.parametrize("name", LINKS)
def test_the_solution_is_where_an_optimiser_stops_and_the_equation_is_0(name):
    link, (design, w, s) = LINKS[name], problem()
    found = solved(link, design, w, design.T @ (w * s))
    assert found is not None
    assert np.abs(NewtonStep.at(link, found, design, w, s).slope).max() < 1e-9

    def loss(beta):
        eta = design @ beta
        return float(w @ (link.potential(eta) - s * eta))

    assert minimize(loss, np.zeros(3), tol=1e-10).x == pytest.approx(found, abs=1e-4)


@pytest.mark.parametrize("name", LINKS)
def test_slopes_are_derivatives_of_means_and_means_of_potentials(name):
    link, eta = LINKS[name], np.linspace(-3, 3, 31)
    step = 1e-6
    for of, slope in ((link.potential, link.mean), (link.mean, link.slope)):
        assert (of(eta + step) - of(eta - step)) / (2 * step) == pytest.approx(slope(eta), abs=1e-5)
    assert link.mean(np.array([link.start(0.3)]))[0] == pytest.approx(0.3)


def test_separated_labels_have_no_solution():
    design, w, _ = problem()
    s = (design[:, 1] > 0).astype(float)
    assert solved(LINKS["logit"], design, w, design.T @ (w * s)) is None
    assert solved(LINKS["identity"], design, w, design.T @ (w * s)) is not None
    assert solved(LINKS["logit"], design, 0 * w, design.T @ s) is None


def test_steps_of_parts_add_up():
    link, (design, w, s) = LINKS["logit"], problem()
    beta = np.array([0.1, -0.2, 0.3])
    whole = NewtonStep.at(link, beta, design, w, s)
    parts = [NewtonStep.at(link, beta, design[k], w[k], s[k]) for k in (slice(90), slice(90, None))]
    assert (parts[0] + parts[1]).step() == pytest.approx(whole.step())
    assert np.isnan(NewtonStep(np.ones(2), np.zeros((2, 2))).step()).all()
