"""Models on the same rows: scores, tasks and paired differences."""

import numpy as np
import pytest
import scipy.stats

import itrust as it
from itrust._core import InputError
from itrust.auditing import Comparison
from itrust.auditing.comparison import _score_differences
from itrust.render import as_text
from itrust.tasks import FEW_NOTE
from oracles import plausible


def with_p(sample: it.Sample, p: np.ndarray) -> it.Sample:
    x = {
        c.name: [c.levels[int(v)] for v in c.values] if c.is_category else c.values
        for c in sample.columns
    }
    return it.Sample(sample.y, p, x)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    town = it.simulate.survey(1_500, rng=0)
    models = {"model": town.sample, "truth": with_p(town.sample, town.truth)}
    gap = 'mean(age | region == "south") - mean(age | region == "west")'
    return it.compare(models, [gap], draws=99, rng=0)


def test_scores_and_tasks_are_those_of_each_model(comparison):
    town = it.simulate.survey(1_500, rng=0)
    truth = with_p(town.sample, town.truth)
    found = comparison["truth"]
    assert found.brier == it.scores.brier(truth)
    assert found.accuracy == np.mean((truth.p > 0.5) == truth.y)
    assert found.test.pvalue == it.klce_test(truth, draws=99, rng=0).pvalue
    assert comparison["model"].tasks[0].pvalue == 0.01
    assert found.tasks[0].pvalue > 0.05


def test_differences_are_paired(comparison):
    town = it.simulate.survey(1_500, rng=0)
    gap = (town.sample.y - town.sample.p) ** 2 - (town.sample.y - town.truth) ** 2
    (brier,) = [part for part in comparison.differences if part.what == "Brier"]
    assert brier.value == pytest.approx(gap.mean())
    half = 1.961545 * gap.std(ddof=1) / np.sqrt(1_500)  # Student's quantile
    assert (brier.lower, brier.upper) == pytest.approx(
        (brier.value - half, brier.value + half), rel=0.01
    )
    assert brier.clear
    loss = next(part for part in comparison.differences if part.what == "log loss")
    expected = it.scores.log_loss(town.sample) - it.scores.log_loss(with_p(town.sample, town.truth))
    assert loss.value == pytest.approx(expected)


def test_words_and_tables(comparison):
    assert "model - truth" in str(comparison)
    assert comparison.to_arrow().num_rows == 2
    assert len(comparison.to_dict()["differences"]) == 3
    with pytest.raises(InputError, match="did you mean 'truth'"):
        comparison["trut"]


def test_few_events_and_few_clusters_are_covered():
    """A normal quantile and the rows' own variance cover in .83 and .89 of runs."""
    runs = 70
    for rows, rate, clusters in ((400, 0.012, None), (240, 0.3, 6)):
        missed = 0
        for run in range(-1, runs):
            rng = np.random.default_rng([4, run + 1])
            n = rows if run >= 0 else 100_000
            x = rng.normal(size=n)
            first = 1 / (1 + np.exp(-np.log(rate / (1 - rate)) - x))
            second = 1 / (1 + np.exp(-np.log(rate / (1 - rate)) - 0.6 * x))
            unit = None if clusters is None else np.arange(n) // (rows // clusters)
            own = 0.0 if unit is None else 1.2 * rng.normal(size=n)[unit]
            truth = first / (first + (1 - first) * np.exp(-own))
            y = rng.random(n) < truth
            a, b = (it.Sample(y, p, cluster=unit) for p in (first, second))
            parts = list(_score_differences(a, b, 0.05))
            if run < 0:
                expected = [part.value for part in parts]
                continue
            missed += not parts[0].lower <= expected[0] <= parts[0].upper
        assert missed <= 0.08 * runs, clusters


def test_a_plain_mean_of_differences_in_the_weights():
    rng = np.random.default_rng(0)
    y, a, b, w = rng.random(300) < 0.4, rng.random(300), rng.random(300), rng.random(300)
    parts = _score_differences(it.Sample(y, a, weights=w), it.Sample(y, b, weights=w), 0.05)
    brier, loss = parts
    assert brier.value == pytest.approx(np.average((y - a) ** 2 - (y - b) ** 2, weights=w))
    surprise = [-np.log(np.where(y, p, 1 - p)) for p in (a, b)]
    assert loss.value == pytest.approx(np.average(surprise[0] - surprise[1], weights=w))


def test_labels_that_were_called_impossible_have_no_difference_in_log_loss():
    rng = np.random.default_rng(0)
    y, p = rng.random(200) < 0.4, rng.uniform(0.1, 0.9, 200)
    sure = p.copy()
    sure[np.flatnonzero(y)[:3]] = 0.0
    found = it.compare({"sure": it.Sample(y, sure), "fair": it.Sample(y, p)}, draws=19, rng=0)
    assert found["sure"].log_loss == np.inf
    assert np.isfinite(found["fair"].log_loss)
    brier, loss = found.differences
    assert np.isnan(loss.value)
    assert not loss.clear
    assert "the first model called 3 labels impossible" in loss.note
    assert loss.note in " ".join(as_text(found, 200).split())
    assert "infinite" in found._repr_html_()
    told = found.to_dict()
    assert told["differences"][1]["value"] is None
    assert told["differences"][1]["note"] == loss.note
    assert told["models"][0]["log_loss"] is None
    assert np.isfinite(brier.value)
    # A probability of 0 for a label that nobody has is no harm.
    sure = p.copy()
    sure[np.flatnonzero(~y)[:3]] = 0.0
    fine = it.compare({"sure": it.Sample(y, sure), "fair": it.Sample(y, p)}, draws=19, rng=0)
    assert np.isfinite(fine.differences[1].value)


@pytest.mark.slow
def test_intervals_of_differences_cover():
    runs, missed = 30, 0
    rng = np.random.default_rng(0)
    x = rng.normal(size=300_000)
    truth = 1 / (1 + np.exp(-x))
    a, b = np.clip(truth + 0.1, 0, 1), 1 / (1 + np.exp(-0.7 * x))
    expected = np.mean((truth - a) ** 2 - (truth - b) ** 2)
    for run in range(runs):
        rows = np.random.default_rng(run).integers(300_000, size=400)
        y = np.random.default_rng([run, 1]).random(400) < truth[rows]
        models = {"a": it.Sample(y, a[rows]), "b": it.Sample(y, b[rows])}
        part = it.compare(models, draws=19, rng=run).differences[0]
        missed += not part.lower <= expected <= part.upper
    assert plausible(missed, runs, doubt=0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.take(slice(50)), "'a' has 100 rows and 'b' 50"),
        (
            lambda s: it.Sample(1 - s.y, s.p, {"x": s.columns[0].values}),
            "different labels in row 0",
        ),
        (lambda s: it.Sample(s.y, s.p), "different covariates"),
        (lambda s: it.Sample(s.y, s.p, {"x": -s.columns[0].values}), "differ in the covariate 'x'"),
        (
            lambda s: it.Sample(s.y, s.p, {"x": s.columns[0].values}, weights=np.ones(100)),
            "different weights",
        ),
    ],
)
def test_other_rows_are_refused(change, message):
    rng = np.random.default_rng(0)
    sample = it.Sample(rng.random(100) < 0.5, rng.random(100), {"x": rng.normal(size=100)})
    with pytest.raises(InputError, match=message):
        it.compare({"a": sample, "b": change(sample)}, draws=19)


def test_one_model_is_no_comparison():
    with pytest.raises(InputError, match="at least two names"):
        it.compare({"a": it.simulate.survey(50, rng=0).sample})


def test_models_are_judged_on_the_named_covariates_only():
    town = it.simulate.survey(400, rng=0).sample
    other = it.Sample(town.y, np.full(town.n, 0.5), {c.name: c.values for c in town.columns})
    models = {"a": it.Sample(town.y, town.p, {c.name: c.values for c in town.columns}), "b": other}
    found = it.compare(models, ["mean(income)"], on="age", draws=79, rng=0)
    assert found["a"].test.names == ("age",)
    assert found["a"].test.pvalue == it.klce_test(models["a"].only("age"), draws=79, rng=0).pvalue


def test_few_labels_are_told_of_evenly_and_only_where_labels_count():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = np.arange(200) < 6
    one = it.Sample(y, np.full(200, 0.03), {"x": x})
    two = with_p(one, np.clip(0.03 * np.exp(x), 0.001, 0.9))
    found = it.compare({"one": one, "two": two}, ["mean(x)"], draws=59, rng=0)
    notes = {part.what: part.note for part in found.differences}
    assert notes["Brier"] == notes["log loss"] == FEW_NOTE
    assert notes["mean(x), plug-in"] == ""


def test_replicate_weights_give_the_error_of_differences_of_class_models():
    """JK1 over 40 groups of alike rows; the jackknife of the mean difference, written out."""
    rng = np.random.default_rng(4)
    groups, size = 40, 10
    unit = np.repeat(np.arange(groups), size)
    p = rng.dirichlet([2, 2, 2], groups)[unit]
    other = rng.dirichlet([2, 2, 2], groups)[unit]
    y = np.array([rng.choice(3, p=row) for row in p])
    sets = np.where(unit[:, None] == np.arange(groups), 0.0, groups / (groups - 1))
    design = {"weights": np.ones(y.size), "replicate_weights": sets, "replicate_method": "jk1"}
    design["cluster"] = unit
    models = {"a": it.Sample(y, p, **design), "b": it.Sample(y, other, **design)}
    found = it.compare(models, draws=39, rng=0).differences[0]
    loss = [np.square(np.eye(3)[y] - own).sum(axis=1) / 2 for own in (p, other)]
    gap = loss[0] - loss[1]
    again = np.array([gap[unit != k].mean() for k in range(groups)])
    error = np.sqrt((groups - 1) / groups * np.square(again - gap.mean()).sum())
    half = scipy.stats.t.ppf(0.975, groups - 1) * error
    assert found.value == pytest.approx(gap.mean())
    assert (found.upper - found.lower) / 2 == pytest.approx(half, rel=1e-6)
    assert error > 1.4 * gap.std() / np.sqrt(gap.size)  # what rows by themselves would say
