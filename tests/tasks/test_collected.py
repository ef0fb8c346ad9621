"""Several estimates as one result: a sequence, disclosure control, a page."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import itrust as it
from itrust import InputError, tasks
from itrust.render.page import page as estimates_page


@pytest.fixture(scope="module")
def found():
    town = it.simulate.survey(900, rng=3).sample
    age = town.column("age").values
    few = town.take(np.flatnonzero(age < np.random.default_rng(0).normal(50, 15, town.n)))
    everyone = it.Population(town.p, {"age": age})
    wanted = ["prevalence()", "prevalence(age < 60)", "share(age > 30 | age < 60)"]
    return it.tasks.estimate_tasks([it.tasks.parse(text) for text in wanted], everyone, few)


def test_estimates_are_a_sequence_in_the_order_of_the_tasks(found):
    assert [str(own.task) for own in found] == [str(found[k].task) for k in range(len(found))]
    assert [str(own.task) for own in found[:2]] == ["prevalence()", "prevalence(age < 60)"]
    assert found.to_arrow().num_rows == sum(len(own.ways) for own in found)
    assert found.resemblance is found[0].resemblance


def test_what_rests_on_few_rows_goes_and_is_never_shown_with_less_care(found):
    assert found.disclosed(None) is found
    inside = [own.task.parts[0] if own.task.parts else own.task for own in found]
    assert len(inside) == 3
    young = int((found.rows.column("age").values < 60).sum())
    assert not found.disclosed(50).withheld
    shown = found.disclosed(young + 1)
    assert list(map(str, shown.withheld)) == [str(own.task) for own in found[1:]]
    assert shown.disclosed(2) is shown
    assert all(gap.bound is None for own in shown for gap in own.gaps)


def test_what_is_shown_is_near_what_is_known_and_never_that(found):
    for own, exact in zip(found.disclosed(10), found, strict=True):
        for name, way in own.ways.items():
            known = exact.ways[name]
            assert 0 < abs(way.value - known.value) < 0.02
            assert way.lower <= known.lower < known.upper <= way.upper


def test_the_dict_is_plain_and_the_page_is_made_of_it(found, tmp_path):
    facts = found.to_dict()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    page = found.to_html(tmp_path / "page.html").read_text()
    assert page == estimates_page(facts) == estimates_page(json.loads(json.dumps(facts)))


def test_a_dict_without_disclosure_control_makes_no_page_by_accident(found):
    with pytest.raises(it.InputError, match="min_cell=20"):
        estimates_page(found.disclosed(10).to_dict(), min_cell=20)
    assert "not applied" in estimates_page(found.to_dict())
    with pytest.raises(it.InputError, match="TaskEstimates"):
        estimates_page({"schema": "itrust-audit/4"})


def test_no_task_is_no_estimate():
    few = it.simulate.survey(50, rng=0).sample
    with pytest.raises(it.InputError, match="name a number"):
        it.tasks.estimate_tasks([], it.Population(few.p), few)


def test_a_coefficient_is_about_every_level():
    rng = np.random.default_rng(1)
    n = 400
    x = {
        "age": rng.uniform(20, 80, n),
        "region": np.where(np.arange(n) < 7, "isle", rng.choice(["north", "south"], n)),
        "debts": np.where(np.arange(n) % 40 == 0, 2.0, 0.0),
    }
    p = rng.uniform(0.2, 0.8, n)
    few = it.Sample(rng.random(n) < p, p, x)
    wanted = ["coef(age ; age)", "coef(age ; age + debts)", "coef(age ; age + region)"]
    found = it.tasks.estimate_tasks(
        [it.tasks.parse(text) for text in wanted], it.Population(p, x), few
    )
    assert found.fewest == (n, n, 7)
    assert [str(task) for task in found.disclosed(10).withheld] == wanted[2:]


def test_a_gap_of_few_rows_is_not_told_however_large_its_share_of_the_rows_that_count():
    rng = np.random.default_rng(2)
    n, isles = 3_000, 220

    def drawn(size, judges):
        region = np.where(np.arange(size) < isles, "isle", "land")
        job = np.where(np.arange(size) < judges, "judge", rng.choice(["clerk", "cook"], size))
        p = rng.uniform(0.2, 0.8, size)
        return p, {"region": region, "job": job}

    q, x = drawn(500, 0)
    few = it.Sample(rng.random(500) < q, q, x)
    task = it.tasks.parse('prevalence(region == "isle")')
    for judges, is_told in ((4, False), (12, True)):
        everyone = it.Population(*drawn(n, judges))
        found = it.tasks.estimate_tasks([task], everyone, few, support="exclude")
        assert found[0].gaps[0].rows == judges
        assert found[0].gaps[0].share == judges / isles
        assert n * found[0].gaps[0].share > 10  # of all rows it would seem to be many
        shown = found.disclosed(10)
        assert bool(shown[0].gaps) is bool(shown.resemblance.gaps) is is_told
        page = re.sub("<script>.*?</script>", "", estimates_page(shown), flags=re.DOTALL)
        for told in (str(shown), json.dumps(shown.to_dict()), page):
            assert ("judge" in told) is is_told


@pytest.mark.parametrize("support", ["refuse", "exclude"])
def test_the_page_says_what_the_rule_about_unlike_rows_is(support):
    """Whatever the page says is refused is, and what it says stays in does."""
    rng = np.random.default_rng(0)
    q, p = rng.uniform(0.2, 0.8, 300), rng.uniform(0.2, 0.8, 1_000)
    few = it.Sample(rng.random(300) < q, q, {"job": rng.choice(["clerk", "cook"], 300)})
    refused = []
    for judges in (8, 14):
        job = np.where(np.arange(1_000) < judges, "judge", rng.choice(["clerk", "cook"], 1_000))
        found = it.tasks.estimate_tasks(
            [it.tasks.prevalence()], it.Population(p, {"job": job}), few, support=support
        )
        refused.append(found[0].best is None)
        page = " ".join(estimates_page(found).split())
        told = "more than 10 % of the rows that a number counts, or more than 1 % of them have"
        assert (told in page) is (support == "refuse")
        assert ("no labelled row resembles are left out" in page) is (support == "exclude")
    assert refused == [False, support == "refuse"]


def test_a_refusal_that_counts_few_rows_is_withheld(found):
    few, many = (
        tasks.RefusedTask(
            tasks.mean("age"), InputError("{rows} rows", count=n, details={"rows": n})
        )
        for n in (3, 30)
    )
    with_both = replace(found, refused=(few, many))
    assert len(with_both.to_dict()["refused"]) == 2
    shown = with_both.disclosed(10)
    assert shown.refused == (many,)
    assert few.task in shown.withheld
