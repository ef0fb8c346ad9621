"""Tasks of several classes on a population: one class as positives, gaps between classes."""

from dataclasses import fields

import numpy as np
import pytest

import itrust as it
from itrust import InputError, tasks

NAMES = ("win", "tie", "loss")
GAP = 'prevalence("win") - prevalence("loss")'


def rows(n, seed):
    """Classes, probabilities that give too little to the first class, and covariates."""
    rng = np.random.default_rng(seed)
    age, region = rng.normal(50, 10, n), rng.choice(["south", "north"], n)
    height = np.column_stack([0.04 * (age - 50), 0.4 * (region == "south"), np.full(n, -0.5)])
    p = np.exp(height) / np.exp(height).sum(axis=1, keepdims=True)
    height[:, 0] += 0.6
    true = np.exp(height) / np.exp(height).sum(axis=1, keepdims=True)
    codes = (rng.random(n)[:, None] > true.cumsum(axis=1)).sum(axis=1)
    return codes, p, {"age": age, "region": region}


def labelled(n=400, seed=0, chosen=None):
    codes, p, x = rows(n, seed)
    if chosen is not None:
        kept = chosen(x)
        codes, p, x = codes[kept], p[kept], {name: own[kept] for name, own in x.items()}
    return it.MulticlassSample(np.array(NAMES)[codes], p, x, classes=list(NAMES))


def people(n=2_000, seed=7):
    codes, p, x = rows(n, seed)
    return it.Population(p, x, classes=NAMES), codes


def test_a_task_of_one_class_is_that_of_the_class_against_the_rest():
    (population, _), few = people(), labelled()
    found = tasks.parse('mean(age | y == "tie")').estimate(population, few)
    wanted = tasks.parse("mean(age)").estimate(population.one_class("tie"), few.one_class("tie"))
    for field in fields(found):
        if field.name not in ("task", "resemblance"):
            assert getattr(found, field.name) == getattr(wanted, field.name), field.name
    assert str(found.task) == 'mean(age | y == "tie")'


def test_a_gap_between_classes_is_estimated_by_its_joint_law():
    (population, _), few = people(), labelled()
    found = tasks.parse(GAP).estimate(population, few)
    gap = (few.codes == 0).astype(float) - (few.codes == 2)
    there = population.p[:, 0] - population.p[:, 2]
    assert found.plugin.value == pytest.approx(there.mean())
    assert found.plugin.stderr == pytest.approx(there.std(ddof=1) / np.sqrt(2_000), rel=1e-6)
    assert found.labelled.value == pytest.approx(gap.mean())
    assert found.labelled.stderr == pytest.approx(gap.std(ddof=1) / 20, rel=0.05)
    here = few.p[:, 0] - few.p[:, 2]
    value = gap.mean() + found.lam * (there.mean() - here.mean())
    assert found.prediction_powered.value == pytest.approx(value)
    left = gap - found.lam * here
    stderr = np.hypot(left.std(ddof=1) / 20, found.lam * found.plugin.stderr)
    assert found.prediction_powered.stderr == pytest.approx(stderr, rel=0.05)
    assert found.recalibrated is None
    assert any("several classes" in note for note in found.notes)


def test_estimates_of_all_classes_go_together():
    (population, _), few = people(), labelled()
    wanted = [tasks.parse(f'prevalence("{name}")') for name in NAMES]
    wanted[1] = wanted[1].named("Ties", 0.01)
    found = tasks.estimate_tasks([*wanted, tasks.parse(GAP)], population, few)
    for way in ("plugin", "labelled"):
        assert sum(getattr(one, way).value for one in found[:3]) == pytest.approx(1.0)
        assert getattr(found[3], way).value == pytest.approx(
            getattr(found[0], way).value - getattr(found[2], way).value
        )
    assert [str(one.task) for one in found] == [*map(str, wanted), GAP]


def test_intervals_on_a_population_cover_and_the_plug_in_does_not():
    """Labelled rows are the older ones: carried over, the gap is where all labels put it."""
    truth = rows(100_000, 99)[0]
    truth = (truth == 0).mean() - (truth == 2).mean()
    held, random, plugin, runs = 0, 0, 0, 12
    for seed in range(runs):
        population, _ = people(1_500, 50 + seed)
        rng = np.random.default_rng(seed)
        old = labelled(
            900, seed, lambda x, rng=rng: rng.random(900) < 1 / (1 + np.exp((45 - x["age"]) / 6))
        )
        carried = tasks.parse(GAP).estimate(population, old).transported
        held += carried.lower <= truth <= carried.upper
        plain = tasks.parse(GAP).estimate(population, labelled(400, 200 + seed))
        random += plain.prediction_powered.lower <= truth <= plain.prediction_powered.upper
        plugin += plain.plugin.lower <= truth <= plain.plugin.upper
    assert held >= runs - 2
    assert random >= runs - 2
    assert plugin == 0


def test_coefficients_of_two_classes_are_compared_on_a_population():
    (population, codes), few = people(), labelled(600)
    text = 'coef("win" ~ age ; age) - coef("loss" ~ age ; age)'
    found = tasks.parse(text).estimate(population, few)
    everyone = it.MulticlassSample(
        np.array(NAMES)[codes], population.p, rows(2_000, 7)[2], classes=list(NAMES)
    )
    (whole,) = tasks.bias.evaluate_tasks(everyone, [tasks.parse(text)], draws=19, rng=0)
    for way in (found.prediction_powered, found.transported):
        assert abs(way.value - whole.from_labels) < 4 * way.stderr
        assert way.lower < way.value < way.upper


def test_a_population_of_other_classes_is_refused_in_a_sentence():
    (population, _), few = people(), labelled()
    task = tasks.parse(GAP)
    with pytest.raises(InputError, match="give it those of every class"):
        task.estimate(population.one_class("tie"), few)
    other = it.Population(population.p, classes=["win", "draw", "loss"])
    with pytest.raises(InputError, match="they must be the same"):
        task.estimate(other, few)
    with pytest.raises(InputError, match="cannot be left out for all of them"):
        task.estimate(population, few, support="exclude")
    with pytest.raises(InputError, match="does not say which class"):
        tasks.prevalence().estimate(population, few)
