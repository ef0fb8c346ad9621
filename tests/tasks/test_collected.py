"""Several estimates as one result: a sequence, disclosure control, a page."""

import json

import numpy as np
import pytest

import itrust as it
from itrust.render.page import estimates_page
from itrust.tasks.collected import _fewest


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


def test_the_fewest_rows_are_those_of_all_sets_and_their_differences():
    rng = np.random.default_rng(0)
    for _ in range(20):
        parts = [[rng.random(30) < share] for share in rng.random(4)]
        known, expected = [set(range(30))], []
        for (part,) in parts:
            own = set(np.flatnonzero(part).tolist())
            sizes = [len(own - other) for other in known] + [len(other - own) for other in known]
            expected.append(min([30, len(own), *(size for size in sizes if size)]))
            known.append(own)
        assert _fewest(parts, 30) == expected


def test_what_tells_of_few_rows_goes_and_is_never_shown_with_less_care(found):
    assert found.disclosed(1) is found
    least = min(found.fewest)
    assert not found.disclosed(least).withheld
    shown = found.disclosed(least + 1)
    gone = [own.task for own, rows in zip(found, found.fewest, strict=True) if rows == least]
    assert list(shown.withheld) == gone
    assert shown.disclosed(2).withheld == shown.withheld
    assert shown.disclosed(2).min_cell == least + 1
    assert all(gap.bound is None for own in shown for gap in own.gaps)


def test_the_dict_is_plain_and_the_page_is_made_of_it(found, tmp_path):
    facts = found.disclosed().to_dict()
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    page = found.to_html(tmp_path / "page.html").read_text()
    assert page == estimates_page(facts) == estimates_page(json.loads(json.dumps(facts)))


def test_a_dict_without_disclosure_control_makes_no_page_by_accident(found):
    with pytest.raises(it.InputError, match="disclosure control"):
        estimates_page(found.to_dict())
    with pytest.raises(it.InputError, match="min_cell=20"):
        estimates_page(found.disclosed(10).to_dict(), min_cell=20)
    assert "not applied" in estimates_page(found.to_dict(), min_cell=1)
    with pytest.raises(it.InputError, match="TaskEstimates"):
        estimates_page({"schema": "itrust-audit/4"})


def test_no_task_is_no_estimate():
    few = it.simulate.survey(50, rng=0).sample
    with pytest.raises(it.InputError, match="name a number"):
        it.tasks.estimate_tasks([], it.Population(few.p), few)
