"""Results of bias and tasks as text and HTML: all are told, and nothing becomes markup."""

import json

import numpy as np
import pytest

import itrust as it
from itrust import tasks

EVIL = "<b>evil</b>"


@pytest.fixture(scope="module")
def sample() -> it.Sample:
    rng = np.random.default_rng(0)
    x = {"age": rng.integers(20, 80, 800), EVIL: rng.choice([EVIL, "other"], 800)}
    p = rng.uniform(0.1, 0.9, 800)
    y = rng.random(800) < np.clip(p + 0.3 * (x["age"] > 50), 0, 1)
    return it.Sample(y, p, x)


@pytest.fixture(scope="module")
def results(sample) -> dict[str, object]:
    bias = it.local_bias(sample, draws=49, rng=0)
    task = tasks.parse(f'mean(age | `{EVIL}` == "{EVIL}")')
    few, rest = sample.split([0.5, 0.5], rng=0)
    x = {c.name: [c.cell(k) for k in range(rest.n)] for c in rest.columns}
    estimate = task.estimate(it.Population(rest.p, x), few)
    groups, slices = bias.groups(EVIL), bias.slices()
    return {
        "bias": bias,
        "groups": groups,
        "group": groups[0],
        "slices": slices,
        "slice": slices[0],
        "curve": bias.curve("age", EVIL),
        "map": bias.map("age", EVIL, points=9),
        "task": task.evaluate(sample, draws=49, rng=0),
        "estimate": estimate,
        "way": estimate.prediction_powered,
    }


NAMES = ("bias", "groups", "group", "slices", "slice", "curve", "map")
NAMES += ("task", "estimate", "way")


@pytest.mark.parametrize("name", NAMES)
def test_every_result_is_told_in_every_way(results, name):
    result = results[name]
    assert len(str(result)) > 20
    made = result._repr_html_()
    assert made.startswith("<div")
    assert made.count("<div") == made.count("</div>")
    assert "<table" in made or "\n" not in str(result)  # parts of results are one line
    assert "<b>" not in made
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.to_arrow().num_rows == len(result.to_pandas()) >= 1


def test_parts_carry_the_rows_they_are_about(sample, results):
    for part in (*results["groups"], *results["slices"]):
        assert part.where.rows(sample.points).sum() == part.rows
        assert set(part.names) == part.where.names
        assert part.to_dict()["where"] == part.where.to_dict()
        assert part.to_dict()["names"] == list(part.names)
    assert [part.where for part in results["curve"].parts] == [
        part.where for part in results["groups"]
    ]


def test_groups_and_slices_of_a_bias_use_what_it_holds(sample, results):
    bias = results["bias"]
    assert bias.groups("age").null is bias.redraws.null
    assert bias.redraws.again() is bias.redraws
    assert bias.groups(EVIL).notes is bias.redraws.notes
    other = bias.groups(EVIL, alpha=0.2, draws=19, rng=5)
    assert (other.alpha, other.draws, other.seed) == (0.2, 19, 5)
    assert sample is bias.sample
