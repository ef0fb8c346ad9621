"""Disclosure control: what rests on few rows is in no rendering, and totals do not tell it."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import itrust as it
from itrust.auditing import Audit, Disclosure, Overlooked, PointBias
from itrust.auditing.hiding import too_few
from itrust.data import Between, Everywhere
from itrust.render import as_html, as_text, junit_xml, page, summary_markdown


@given(st.lists(st.integers(0, 40), max_size=8), st.integers(1, 20))
def test_what_is_left_out_cannot_be_told_from_a_total(rows, least):
    few = too_few(rows, least)
    assert all(k in few for k, number in enumerate(rows) if number < least)
    hidden = sum(rows[k] for k in few)
    assert hidden == 0 or hidden >= least or len(few) == len(rows)


@pytest.fixture(scope="module")
def rare() -> Audit:
    rng = np.random.default_rng(5)
    n = 1_200
    place = rng.choice(["north", "south", "centre"], n).astype(object)
    place[:6] = "Tinyville"
    p = rng.uniform(0.2, 0.8, n)
    x = {"place": place, "age": rng.integers(20, 80, n)}
    y = rng.random(n) < np.clip(p + 0.2 * (x["age"] > 60), 0, 1)
    return it.audit(it.Sample(y, p, x), draws=99, rng=0)


RENDERINGS = {
    "json": lambda audit: json.dumps(audit.to_dict()),
    "terminal": as_text,
    "notebook": as_html,
    "page": page.page,
    "markdown": lambda audit: summary_markdown(audit, "file"),
    "junit": lambda audit: junit_xml(audit, "file"),
    "table": lambda audit: str(audit.to_arrow().to_pylist()),
}


@pytest.mark.parametrize("name", RENDERINGS)
def test_groups_of_few_rows_are_in_no_rendering(name, rare):
    assert any("Tinyville" in group.name for group in rare.diagnosis.groups)
    assert any("Tinyville" in found.name for found in rare.test.findings)
    assert "Tinyville" not in RENDERINGS[name](rare.disclosed(10))


def test_what_was_left_out_is_counted(rare):
    shown = rare.disclosed(10)
    hidden = shown.withheld
    assert hidden.groups == 2  # with the next smallest, or the total would tell
    assert hidden.findings == len(rare.test.findings) - len(shown.test.findings) > 0
    assert hidden.regions == 2
    counts = hidden.to_dict()
    total = counts.pop("total")
    assert total == sum(counts.values()) - counts["min_cell"] - counts["shown"]
    text = " ".join(page.page(rare).split())
    assert f"{total} results rest on fewer than 10 rows" in text
    assert f"{total} results withheld" in str(shown)
    assert rare.withheld is None  # the audit itself is as it was
    assert len(rare.diagnosis.groups) == 4


def test_numbers_that_are_shown_are_those_of_the_whole_audit(rare):
    whole, shown = rare.to_dict(), rare.disclosed(10).to_dict()
    by_name = {group["name"]: group for group in whole["parts"][0]["diagnosis"]["groups"]["groups"]}
    for group in shown["parts"][0]["diagnosis"]["groups"]["groups"]:
        assert group == by_name[group["name"]]
    curves = {
        curve["name"]: [_without_neighbours(part) for part in curve["parts"]]
        for curve in whole["parts"][0]["charts"]["curves"]
    }
    for curve in shown["parts"][0]["charts"]["curves"]:
        parts = [_without_neighbours(part) for part in curve["parts"]]
        assert all(part in curves[curve["name"]] for part in parts)


def _without_neighbours(part):
    """These are rounded."""
    return {name: values for name, values in part.items() if name != "neighbours"}


def test_a_large_group_keeps_its_name_beside_a_small_one_that_begins_it():
    rng = np.random.default_rng(0)
    g = np.array(["White"] * 5 + ["White British"] * 300 + ["Other"] * 295, dtype=object)
    p = np.full(600, 0.5)
    y = rng.random(600) < np.where(g == "White British", 0.85, 0.45)
    found = it.audit(it.Sample(y, p, {"g": g}), draws=199, rng=0)
    told = json.dumps(found.disclosed(10).to_dict())
    assert "g = White British" in told
    assert not re.search(r"White(?! British)", told)


def test_what_is_left_out_is_the_same_in_slices_groups_and_recalibration():
    """n less all that is shown of a covariate is 0 or at least min_cell."""
    rng = np.random.default_rng(1)
    g = np.array(["big"] * 340 + ["mid"] * 156 + ["few"] * 4, dtype=object)
    p = np.full(500, 0.5)
    y = rng.random(500) < np.where(g == "big", 0.8, 0.4)
    sample = it.Sample(y, p, {"g": g})
    found = it.audit(sample, draws=199, rng=0, charts=False)
    other = it.Sample(rng.random(500) < 0.5, p, {"g": rng.permutation(g)})
    table = it.recalibrate.compare([it.recalibrate.Platt()], other, sample, draws=199, rng=0)
    shown = found.extended(recalibration=table).disclosed(10)
    groups = {group.name for group in shown.diagnosis.groups}
    rules = {part.rule for part in shown.diagnosis.slices}
    assert "g = big" in groups  # another group than one that is off goes with the small one
    assert groups | rules == {"g = big"}
    kept = {row.slice.rule for row in shown.recalibration if row.slice is not None}
    assert kept <= {"g = big"}


def test_everything_is_shown_when_told_so(rare):
    shown = rare.disclosed(1)
    assert shown.withheld.total == 0
    assert {**shown.to_dict(), "withheld": None} == rare.to_dict()
    assert "Tinyville" in page.page(rare, min_cell=1)


def test_curves_and_maps_rest_on_enough_rows(rare):
    whole, told = (
        rare.to_dict()["parts"][0]["charts"],
        rare.disclosed(60).to_dict()["parts"][0]["charts"],
    )

    def smallest(charts):
        parts = [part for curve in charts["curves"] for part in curve["parts"]] + charts["maps"]
        near = [zip(part["bias"], part["neighbours"], strict=True) for part in parts]
        return min(size for pairs in near for bias, size in pairs if bias is not None)

    assert smallest(whole) < 60 <= smallest(told)
    for line in (part for curve in told["curves"] for part in curve["parts"]):
        assert line["bias"][0] is not None
        assert line["bias"][-1] is not None
        assert len({len(line[name]) for name in ("at", "x", "bias", "lower", "flagged")}) == 1
    for chart in told["maps"]:
        cells = len(chart["across"]["at"]) * len(chart["up"]["at"])
        assert len(chart["bias"]) == len(chart["flagged"]) == cells
        for side in (chart["across"], chart["up"]):
            assert len(side["edges"]) in (0, len(side["at"]) + 1)


def test_a_point_is_told_without_the_group_that_would_give_it_away():
    rng = np.random.default_rng(3)
    n = 900
    g = np.array(["few"] * 8 + ["many"] * (n - 8), dtype=object)
    p = rng.uniform(0.3, 0.7, n)
    sample = it.Sample(rng.random(n) < p + 0.29, p, {"g": g, "h": rng.choice(["a", "b"], n)})
    found = it.audit(sample, draws=99, rng=0, tolerance=0.01, charts=False)
    points = [item for item in found.evidence if isinstance(item, PointBias)]
    assert points
    shown = [item for item in found.disclosed(10).evidence if isinstance(item, PointBias)]
    for before, after in zip(points, shown, strict=True):
        hidden = {own.name for own in before.coordinates} - {own.name for own in after.coordinates}
        rare = {own.name for own in before.coordinates if own.value == "few"}
        assert hidden == rare


def test_what_is_added_after_disclosure_is_disclosed_too():
    rng = np.random.default_rng(1)
    g = np.array(["big"] * 340 + ["mid"] * 156 + ["few"] * 4, dtype=object)
    p = np.full(500, 0.5)
    y = rng.random(500) < np.where(g == "mid", 0.9, 0.5)
    sample = it.Sample(y, p, {"g": g})
    found = it.audit(sample, draws=199, rng=0, charts=False)
    other = it.Sample(rng.random(500) < 0.5, p, {"g": rng.permutation(g)})
    table = it.recalibrate.compare([it.recalibrate.Platt()], other, sample, draws=199, rng=0)
    everything = 1 + max(row.slice.rows for row in table if row.slice is not None)
    for least in (10, everything):
        before = found.extended(recalibration=table).disclosed(least)
        after = found.disclosed(least).extended(recalibration=table)
        assert after.withheld == before.withheld
        assert after.recalibration.to_dict() == before.recalibration.to_dict()
    assert after.withheld.recalibration > 0
    assert all(row.slice is None for row in after.recalibration)


def test_disclosure_twice_counts_all_and_is_never_less_careful(rare):
    once = rare.disclosed(10)
    assert once.withheld.total > 0
    assert once.disclosed(10).withheld == once.withheld
    assert once.disclosed(1).to_dict() == once.to_dict()
    stricter = once.disclosed(450)
    assert stricter.to_dict() == rare.disclosed(450).to_dict()
    assert stricter.withheld.groups == 4


def test_a_point_of_few_neighbours_is_not_in_the_verdict(rare):
    bias = rare.diagnosis.bias
    k = int(np.argmax(bias.size))
    point = PointBias.of(bias, k)
    assert point.neighbours == bias.size[k]
    near = [replace(point, neighbours=size) for size in (59.0, 60.0)]
    judged = replace(rare, judgement=replace(rare.judgement, evidence=tuple(near)))
    shown = judged.disclosed(60)
    assert [item.neighbours for item in shown.evidence] == [60.0]
    none = replace(rare, judgement=replace(rare.judgement, evidence=(near[0],))).disclosed(60)
    assert none.evidence == ()
    assert none.withheld.points == shown.withheld.points
    assert " near " not in none.sentence


def test_no_rendering_names_a_part_or_region_of_few_rows(rare):
    def rows(where):
        return int(where.rows(rare.sample.points).sum())

    parts = [found for found in rare.test.findings if isinstance(found.where, Between)]
    pairs = rare.missed.detectable.pairs
    least = 1 + max(min(rows(found.where) for found in some) for some in (parts, pairs))
    shown = rare.disclosed(least)
    assert 1 < least < 400
    assert min(rows(found.where) for found in shown.test.findings) >= least
    found = shown.missed.detectable
    assert min(rows(region.where) for region in (*found.regions, *found.pairs)) >= least
    assert len(found.pairs) < len(rare.missed.detectable.pairs)
    assert shown.withheld.regions == sum(
        len(getattr(rare.missed.detectable, kind)) - len(getattr(found, kind))
        for kind in ("regions", "pairs")
    )
    small = next(found for found in parts if rows(found.where) < least)
    assert small.name not in {name for found in shown.test.findings for name in found.alike}
    for where, kept in ((small.where, None), (Everywhere(), Everywhere())):
        missed = Overlooked(0.2, where)
        judged = replace(rare, judgement=replace(rare.judgement, overlooked=missed))
        assert judged.disclosed(least).judgement.overlooked == Overlooked(0.2, kept)


def test_the_number_of_checks_is_that_of_the_test(rare):
    checks = len(rare.test.findings)
    shown = rare.disclosed(10)
    assert len(shown.test.findings) < checks == shown.test.checks
    assert f"{checks} checks, p-values adjusted" in " ".join(as_text(shown).split())
    assert f"{checks} checks;" in " ".join(as_text(shown.test).split())
    assert page.content(shown)["findings"]["checks"] == checks


def test_no_number_of_rows_is_refused(rare):
    for wrong in (0, True, 2.5, "ten"):
        with pytest.raises(it.InputError, match="min_cell"):
            Disclosure(wrong)
        with pytest.raises(it.InputError, match="min_cell"):
            rare.disclosed(wrong)


def test_a_group_of_few_rows_is_no_evidence_that_is_shown():
    rng = np.random.default_rng(0)
    g = np.where(np.arange(600) < 9, "rare", np.where(rng.random(600) < 0.5, "a", "b"))
    p = np.full(600, 0.1)
    sample = it.Sample((rng.random(600) < p) | (g == "rare"), p, {"g": g})
    found = it.audit(sample, draws=79, rng=0, charts=False)
    assert any("rare" in item["text"] for item in found.to_dict()["evidence"])
    shown = found.disclosed(10)
    for text in (str(shown), json.dumps(shown.to_dict()), page.page(shown), shown.sentence):
        assert "rare" not in text
