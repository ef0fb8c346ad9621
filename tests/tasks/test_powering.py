"""Prediction-powered coefficients beside ppi-python; levels of the population; coverage."""

import warnings

import numpy as np
import pytest
from scipy.special import expit

import itrust as it
from itrust import tasks
from itrust._core import InputError
from oracles import plausible


def drawn(n, seed, off=0.4):
    """Predictions that know more than the regression, and are off for one level."""
    rng = np.random.default_rng(seed)
    age, group = rng.uniform(2, 8, n), rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    eta = -2 + 0.4 * age + 0.5 * (group == "b") + 2 * rng.normal(size=n)
    y = (rng.random(n) < expit(eta)).astype(float)
    p = expit(0.8 * eta + off * (group == "c"))
    return y, p, {"age": age, "group": group}


def split(y, p, x, n):
    few = it.Sample(y[:n], p[:n], {name: own[:n] for name, own in x.items()})
    return few, it.Population(p[n:], {name: own[n:] for name, own in x.items()})


@pytest.fixture
def peer(monkeypatch):
    """ppi-python as plain Python: to compile its loops takes longer than to run them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ppi_py import ppi
    for name in ("_logistic_get_stats", "_ols_get_stats", "safe_expit"):
        own = getattr(ppi, name)
        monkeypatch.setattr(ppi, name, getattr(own, "py_func", own))
    return ppi


@pytest.mark.parametrize("link", ["logit", "identity"])
def test_intervals_are_those_of_ppi_python(link, peer):
    theirs = {"logit": peer.ppi_logistic_ci, "identity": peer.ppi_ols_ci}[link]
    y, p, x = drawn(5_000, 0)
    n = 1_500
    few, rest = split(y, p, x, n)
    z = np.column_stack([np.ones(y.size), x["age"], x["group"] == "b", x["group"] == "c"])
    z = z.astype(float)
    for j, of in ((1, "age"), (2, 'group["b"]'), (3, 'group["c"]')):
        found = tasks.parse(f"coef({of} ; age + group ; {link})").estimate(rest, labelled=few)
        own, lam = found.prediction_powered, found.lam
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of scikit-learn, about how it is called
            ends = theirs(z[:n], y[:n], p[:n], z[n:], p[n:], alpha=0.05, lam=lam)
        low, high = (float(end[j]) for end in ends)
        assert 0.2 < lam <= 1
        assert own.width == pytest.approx(high - low, rel=0.02)
        assert own.width < 0.97 * found.labelled.width
        if link == "logit":  # theirs solves the same equation, and another one for least squares
            assert own.value == pytest.approx((low + high) / 2, abs=0.01 * own.width)


def test_intervals_cover_and_the_plug_in_does_not():
    task, runs = tasks.parse('coef(group["c"] ; age + group ; identity)'), 24
    y, p, x = drawn(100_000, 99, off=0.8)
    truth = task.linear(it.tasks.TaskRows.labelled(it.Sample(y, p, x))).value
    missed = dict.fromkeys(("prediction_powered", "labelled", "plugin"), 0)
    for seed in range(runs):
        few, rest = split(*drawn(1_200, seed, off=0.8), 400)
        found = task.estimate(rest, labelled=few)
        for way in missed:
            own = getattr(found, way)
            missed[way] += not own.lower <= truth <= own.upper
    assert plausible(missed["prediction_powered"], runs, doubt=0.02)
    assert plausible(missed["labelled"], runs, doubt=0.02)
    assert missed["plugin"] > 0.8 * runs


def test_differences_of_coefficients_are_powered_together():
    few, rest = split(*drawn(3_000, 0), 800)
    gap = tasks.parse("coef(age ; age | group == 'a') - coef(age ; age | group == 'b')")
    parts = [part.estimate(rest, labelled=few) for part in (gap.left, gap.right)]
    found = gap.estimate(rest, labelled=few)
    width = np.hypot(*(part.prediction_powered.width for part in parts))
    assert found.prediction_powered.width == pytest.approx(width, rel=0.02)
    mixed = tasks.parse("mean(age) + 0 * coef(age ; age)").estimate(rest, labelled=few)
    mean = tasks.mean("age").estimate(rest, labelled=few)
    for way in ("prediction_powered", "labelled", "recalibrated", "plugin"):
        one, other = getattr(mixed, way), getattr(mean, way)
        assert one.value == pytest.approx(other.value, rel=1e-3)
        assert one.width == pytest.approx(other.width, rel=0.02)


def test_levels_of_one_side_are_refused_by_name():
    y, p, x = drawn(1_000, 0)
    x["group"] = np.where(np.arange(1_000) % 60 == 59, "d", x["group"])
    task = tasks.parse('coef(group["b"] ; age + group)')
    x["group"] = np.where((x["group"] == "d") & (np.arange(1_000) < 500), "a", x["group"])
    few, rest = split(y, p, x, 500)
    with pytest.raises(InputError, match=r'group\["d"\], and no labelled row'):
        task.estimate(rest, labelled=few)
    back = [own[::-1] for own in (y, p)]
    few, rest = split(*back, {name: own[::-1] for name, own in x.items()}, 500)
    with pytest.raises(InputError, match=r'group\["d"\], and no row of the population'):
        task.estimate(rest, labelled=few)
    inside = tasks.parse("""coef(group["b"] ; age + group | group in ("a", "b"))""")
    assert inside.estimate(rest, labelled=few).n == 500
