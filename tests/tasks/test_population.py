"""Tasks on a population without labels: coverage, width, and a peer where it has the estimand."""

import warnings

import numpy as np
import pytest

import itrust as it
from itrust import tasks
from itrust._core import InputError
from itrust.tasks.expressions import TaskRows
from oracles import plausible

WAYS = ("recalibrated", "prediction_powered", "transported", "labelled")


def unlabelled(sample: it.Sample) -> it.Population:
    x = {
        c.name: [c.levels[int(v)] for v in c.values] if c.is_category else c.values
        for c in sample.columns
    }
    return it.Population(sample.p, x, weights=sample.weights)


def truth_of(task, many: it.simulate.Simulated) -> float:
    ones = np.ones(many.sample.n)
    return task.linear(TaskRows(many.sample.points, ones, many.truth)).value


@pytest.mark.slow
def test_intervals_cover_and_prediction_powered_ones_are_shorter():
    many = it.simulate.survey(300_000, rng=99)
    wanted = {
        "age": tasks.mean("age"),
        "gap": tasks.parse('mean(age | region == "south") - mean(age | region == "west")'),
    }
    truths = {name: truth_of(task, many) for name, task in wanted.items()}
    runs, missed = 24, {(name, way): 0 for name in wanted for way in WAYS}
    widths = dict.fromkeys(missed, 0.0)
    plugin_missed = 0
    for run in range(runs):
        few, rest = it.simulate.survey(2_000, rng=run).sample.split([0.2, 0.8], rng=run)
        population = unlabelled(rest)
        for name, task in wanted.items():
            found = task.estimate(population, labelled=few)
            for way in WAYS:
                own = getattr(found, way)
                missed[name, way] += not own.lower <= truths[name] <= own.upper
                widths[name, way] += own.width / runs
            if name == "gap":
                plugin_missed += not found.plugin.lower <= truths[name] <= found.plugin.upper
    for key, count in missed.items():
        assert plausible(count, runs, doubt=0.02), key
    assert plugin_missed > 0.9 * runs  # the probabilities are wrong, and their interval with them
    for name in wanted:
        assert widths[name, "prediction_powered"] < 0.9 * widths[name, "labelled"]


def test_prediction_powered_prevalence_is_that_of_ppi_python():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ppi_py import ppi_mean_ci
    rng = np.random.default_rng(0)
    p = rng.beta(2, 3, 4_000)
    y = rng.random(4_000) < np.clip(p + 0.1, 0, 1)
    few, rest = it.Sample(y[:500], p[:500]), it.Population(p[500:])
    found = tasks.prevalence().estimate(rest, labelled=few)
    theirs = ppi_mean_ci(few.y, few.p, rest.p, alpha=0.05)
    lower, upper = float(theirs[0][0]), float(theirs[1][0])
    assert found.prediction_powered.value == pytest.approx((lower + upper) / 2, abs=2e-3)
    assert found.prediction_powered.width == pytest.approx(upper - lower, rel=0.02)
    assert found.prediction_powered.width < found.labelled.width


def test_useless_probabilities_leave_the_labels_alone():
    rng = np.random.default_rng(0)
    few = it.Sample(rng.random(400) < 0.4, rng.random(400), {"x": rng.normal(size=400)})
    population = it.Population(rng.random(4_000), {"x": rng.normal(size=4_000)})
    found = tasks.prevalence().estimate(population, labelled=few)
    assert found.lam < 0.15
    assert found.prediction_powered.width == pytest.approx(found.labelled.width, rel=0.02)


def test_recalibration_moves_a_calibrated_model_little_and_another_much():
    for trustworthy in (True, False):
        town = it.simulate.survey(4_000, rng=3, trustworthy=trustworthy)
        few, rest = town.sample.split([0.5, 0.5], rng=0)
        task = tasks.parse('mean(age | region == "south") - mean(age | region == "west")')
        found = task.estimate(unlabelled(rest), labelled=few)
        moved = abs(found.recalibrated.value - found.plugin.value)
        assert moved < 2.0 if trustworthy else moved > 4.0


@pytest.mark.slow
def test_weights_make_a_biased_sample_of_labels_right():
    """Old people are labelled twice as often; weights undo that."""
    many = it.simulate.survey(200_000, rng=7)
    task = tasks.prevalence()
    truth = truth_of(task, many)
    runs, missed = 30, 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        sample = it.simulate.survey(3_000, rng=run).sample
        age = sample.column("age").values
        chance = np.where(age > 52, 0.4, 0.2)
        chosen = rng.random(3_000) < chance
        kept = sample.take(chosen)
        few = it.Sample(kept.y, kept.p, {"age": age[chosen]}, weights=1 / chance[chosen])
        rest = sample.take(~chosen)
        other = 1 / (1 - chance[~chosen])
        population = it.Population(rest.p, {"age": age[~chosen]}, weights=other)
        found = task.estimate(population, labelled=few)
        missed += not found.prediction_powered.lower <= truth <= found.prediction_powered.upper
    assert plausible(missed, runs, doubt=0.02)


def test_words_and_refusals():
    few, rest = it.simulate.survey(800, rng=0).sample.split([0.5, 0.5], rng=0)
    found = tasks.mean("age").estimate(unlabelled(rest), labelled=few)
    assert "if labelled rows are a random sample" in str(found)
    assert "prediction-powered" in found._repr_html_()
    assert [row["way"] for row in found.to_arrow().to_pylist()] == ["plugin", *WAYS]
    assert "if the probabilities are calibrated" in str(found.plugin)
    assert found.to_dict()["prediction_powered"]["assumes"].startswith("labelled rows")
    with pytest.raises(InputError, match="population must be a Population"):
        tasks.mean("age").estimate(rest, labelled=few)
    with pytest.raises(InputError, match="the population lacks 'age', which mean"):
        tasks.mean("age").estimate(it.Population([0.5], {"income": [3]}), labelled=few)
    part = it.Population(rest.p, {"age": rest.column("age").values})
    assert tasks.mean("age").estimate(part, labelled=few).recalibrated.width > 0
    nobody = it.Sample(np.zeros(100), np.full(100, 0.3), {"age": np.arange(100)})
    with pytest.raises(InputError, match="no positive label counts"):
        tasks.mean("age").estimate(it.Population([0.5], {"age": [3]}), labelled=nobody)


def test_nobody_near_is_told():
    few, rest = it.simulate.survey(800, rng=0).sample.split([0.5, 0.5], rng=0)
    x = {"income": [50_000] * 10, "age": [50] * 10, "region": ["moon"] * 10}
    found = tasks.prevalence().estimate(it.Population([0.4] * 10, x), labelled=few)
    assert "100 % of the population has no labelled neighbours" in found.notes[-1]
    assert found.recalibrated.value == found.plugin.value
    assert rest.n == 400


@pytest.mark.slow
def test_recalibration_counts_noise_and_not_the_bias_it_removes():
    """A large smooth bias: the interval covers, and is no wider than that of labels."""
    runs, missed, wider = 40, 0, 0
    for run in range(runs):
        rng = np.random.default_rng([6, run])
        x = rng.random(2_000)
        p, truth = np.full(2_000, 0.5), 0.1 + 0.8 * x
        y = rng.random(2_000) < truth
        few = it.Sample(y[:600], p[:600], {"x": x[:600]})
        found = tasks.prevalence().estimate(it.Population(p[600:], {"x": x[600:]}), labelled=few)
        missed += not found.recalibrated.lower <= 0.5 <= found.recalibrated.upper
        wider += found.recalibrated.width > found.labelled.width
    assert plausible(missed, runs, doubt=0.02)
    assert wider < 0.1 * runs
