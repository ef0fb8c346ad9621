"""One Newton: regressions against scikit-learn, a naive minimum and closed forms."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from itrust.terms import (
    LINKS,
    MultinomialRows,
    RegressionRows,
    fit_glm,
    fit_multinomial,
    minimised,
    summed,
)

LOGIT = LINKS["logit"]


def problem(n=300, k=3, seed=0):
    """Columns, the last one of ones, labels, weights and an offset."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, k))
    y = (rng.random(n) < 1 / (1 + np.exp(-features[:, 0]))).astype(float)
    return np.column_stack([features, np.ones(n)]), y, rng.random(n), rng.normal(size=n)


def blocks_of(*arrays, pieces=1):
    rows = np.array_split(np.arange(arrays[0].shape[0]), pieces)
    made = [RegressionRows(*(array[some] for array in arrays)) for some in rows]
    return lambda: iter(made)


def ridge(size, k=3):
    return np.append(np.full(k, size), 1e-8)


def test_a_regression_without_offset_is_scikit_learns():
    x, y, w, _ = problem()
    ours, is_settled = fit_glm(LOGIT, blocks_of(x, y, w), ridge(2.0), done=1e-12)
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=1_000).fit(x[:, :-1], y, w)
    assert is_settled
    np.testing.assert_allclose(ours, [*theirs.coef_[0], theirs.intercept_[0]], atol=1e-6, rtol=0)


def test_a_regression_of_counts_is_scikit_learns():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(400, 2)), np.ones(400)])
    counts = rng.poisson(np.exp(x @ [0.5, -1.0, 0.3])).astype(float)
    ours, _ = fit_glm(LINKS["log"], blocks_of(x, counts, np.ones(400)), np.zeros(3), done=1e-16)
    theirs = PoissonRegressor(alpha=0, tol=1e-10, max_iter=1_000).fit(x[:, :-1], counts)
    np.testing.assert_allclose(ours, [*theirs.coef_, theirs.intercept_], atol=1e-6)


def test_an_offset_and_a_penalty_minimise_their_loss():
    x, y, w, offset = problem()

    def loss(theta):
        z = offset + x @ theta
        return w @ (np.logaddexp(0, z) - y * z) + 0.35 * theta[:3] @ theta[:3]

    ours = fit_glm(LOGIT, blocks_of(x, y, w, offset), ridge(0.7), done=1e-10)[0]
    assert loss(ours) <= minimize(loss, np.zeros(4), tol=1e-12).fun + 1e-7


def test_blocks_do_not_change_the_regression():
    parts = problem()
    one = fit_glm(LOGIT, blocks_of(*parts), ridge(1.0), done=1e-7)[0]
    many = fit_glm(LOGIT, blocks_of(*parts, pieces=7), ridge(1.0), done=1e-7)[0]
    np.testing.assert_allclose(one, many, atol=1e-10)


def test_moments_stand_for_labels():
    x, y, w, offset = problem()
    with_labels = fit_glm(LOGIT, blocks_of(x, y, w, offset), ridge(1.0), done=1e-16)[0]
    none = blocks_of(x, np.zeros(y.size), w, offset)
    by_moment = fit_glm(LOGIT, none, ridge(1.0), done=1e-16, moment=x.T @ (w * y))[0]
    np.testing.assert_allclose(by_moment, with_labels, atol=1e-12)


def test_second_derivatives_of_few_rows_lead_to_the_same_minimum():
    x, y, w, offset = problem(4_000)
    exact = fit_glm(LOGIT, blocks_of(x, y, w, offset), ridge(1.0), done=1e-14)[0]
    few = blocks_of(x[:400], y[:400], w[:400], offset[:400])
    curve = 10 * summed(LOGIT, np.zeros(4), few).curve
    blocks = blocks_of(x, y, w, offset)
    rough, is_settled = fit_glm(LOGIT, blocks, ridge(1.0), done=1e-14, curve=curve)
    assert is_settled
    np.testing.assert_allclose(rough, exact, atol=1e-6)


def test_labels_that_are_told_apart_do_not_overflow():
    x = np.linspace(-1, 1, 40)
    y = (x > 0).astype(float)
    design = np.column_stack([100 * x, np.ones(40)])
    rows = blocks_of(design, y, np.ones(40), 500 * x)
    assert np.isfinite(fit_glm(LOGIT, rows, np.array([0.01, 1e-8]), done=1e-7)[0]).all()
    _, is_settled = fit_glm(LOGIT, blocks_of(design, y, np.ones(40)), np.zeros(2), done=1e-30)
    assert not is_settled


def test_columns_that_say_the_same_have_no_answer():
    x = np.ones((4, 2))
    rows = blocks_of(x, np.array([0.0, 1, 1, 1]), np.ones(4))
    assert not fit_glm(LOGIT, rows, np.zeros(2), done=1e-12)[1]


def test_steps_that_go_too_far_are_halved():
    """Newton's own step for sqrt(1 + t^2) is -t - t^3: from t = 3 it leads away for ever."""

    def bowl(theta):
        loss = float(np.sqrt(1 + theta @ theta))
        gradient = theta / loss
        return loss, lambda: (gradient, -gradient * loss**3)

    theta, is_settled = minimised(bowl, np.array([3.0]), done=1e-14)
    assert is_settled
    assert abs(theta[0]) < 1e-6


@pytest.mark.parametrize("size", [0.5, 20.0])
def test_several_classes_equal_scikit_learn(size):
    rng = np.random.default_rng(0)
    features, w = rng.normal(size=(500, 4)), rng.uniform(0.5, 2, 500)
    z = features @ rng.normal(size=(4, 3))
    codes = (rng.random((500, 1)) > softmax(z, axis=1).cumsum(axis=1)).sum(axis=1)
    design = np.column_stack([features, np.ones(500)])
    rows = MultinomialRows([design] * 3, codes, w, np.zeros((500, 3)))
    theta = fit_multinomial(rows, np.tile([*[size] * 4, 1e-8], (3, 1)), done=1e-10)
    model = LogisticRegression(C=1 / size, tol=1e-10, max_iter=5_000)
    model.fit(features, codes, sample_weight=w)
    np.testing.assert_allclose(theta[:, :-1], model.coef_, atol=1e-5)
    np.testing.assert_allclose(
        softmax(design @ theta.T, axis=1), model.predict_proba(features), atol=1e-5
    )


def test_columns_of_each_class_and_an_offset_equal_a_naive_minimum():
    rng = np.random.default_rng(1)
    n, size, m = 200, 3, 3
    designs = [rng.normal(size=(n, m)) for _ in range(size)]
    offset, codes, w = rng.normal(size=(n, size)), rng.integers(0, size, n), rng.uniform(1, 2, n)
    penalty = rng.uniform(1, 3, (size, m))

    def loss(flat):
        theta = flat.reshape(size, m)
        z = offset + np.column_stack([x @ t for x, t in zip(designs, theta, strict=True)])
        logs = log_softmax(z, axis=1)[np.arange(n), codes]
        return -w @ logs + np.sum(penalty * theta**2) / 2

    naive = minimize(loss, np.zeros(size * m), method="BFGS", options={"gtol": 1e-4}).x
    ours = fit_multinomial(MultinomialRows(designs, codes, w, offset), penalty, done=1e-10)
    np.testing.assert_allclose(ours.ravel(), naive, atol=1e-5)
