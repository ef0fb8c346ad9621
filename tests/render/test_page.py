import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import itrust as it
from itrust.auditing import Audit, Disclosure, suppressed
from itrust.auditing.disclosure import too_few
from itrust.render import page as report
from itrust.render.page.content import cut
from itrust.render.page.html import embedded, fact, rendered, shown

GAP = 'mean(age | region == "south") - mean(age | region == "west")'
HOSTILE = {
    "</script><script>window.pwned=1</script>": "number",
    "a.b[0]\"'`{{7*7}}": "category",
    "x" * 10_000: "number",
    "\u202e\u05e2\u05d1\u05e8\u05d9\u05ea \u2028 \U0001f642": "category",
}
LEVELS = [
    "<img src=x onerror=window.pwned=2>",
    "<!-- --> &amp; ${1}",
    "\u05d0\u05d1 \U0001f642 " + "y" * 10_000,
]


def hostile_sample(n: int = 900) -> it.Sample:
    rng = np.random.default_rng(0)
    x: dict[str, Any] = {
        name: rng.normal(size=n) if kind == "number" else rng.choice(LEVELS, n)
        for name, kind in HOSTILE.items()
    }
    p = rng.uniform(0.1, 0.9, n)
    first = x["</script><script>window.pwned=1</script>"]
    return it.Sample(rng.random(n) < np.clip(p + 0.3 * np.sign(first), 0, 1), p, x)


class Reader(HTMLParser):
    """What a browser would see: elements with attributes, and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.blocks: list[str] = []
        self.inside: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = tag if tag in ("script", "style") else None
        if self.inside:
            self.blocks.append("")

    def handle_endtag(self, _tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.blocks[-1] += data
        else:
            self.text.append(data)


@pytest.fixture(scope="module")
def survey() -> Audit:
    sample = it.simulate.survey(1_500, rng=1).sample
    return it.audit(sample, [GAP, "mean(age)"], draws=99, rng=0)


@pytest.fixture(scope="module")
def text(survey) -> str:
    remade = report.Remade("itrust audit survey.csv --seed 0", "survey.csv", "ab" * 32, 0)
    return report.page(survey, remade=remade)


@pytest.fixture(scope="module")
def hostile() -> Audit:
    return it.audit(hostile_sample(), draws=99, rng=0)


def at(found: Any, path: str) -> Any:
    for step in path.split("."):
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found


def facts(text: str) -> dict[str, str]:
    """Every number on the page by its place in the JSON, as it stands there."""
    elements = Reader(text).elements
    return {own["data-fact"]: own["value"] for _, own in elements if "data-fact" in own}


def raw(found: Any, path: str) -> str:
    value = at(found, path)
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def test_numbers_on_the_page_equal_the_json(survey, text):
    found = survey.to_dict()
    told = facts(text)
    for path, value in told.items():
        assert value == raw(found, path)
    for k, task in enumerate(found["tasks"]):
        assert float(told[f"tasks.{k}.bias"]) == task["bias"]
    groups = len(found["diagnosis"]["groups"]["groups"])
    assert sum(path.endswith(".observed") and "groups" in path for path in told) == groups
    assert {"pvalue", "statistic", "reliance.pvalue", "seed", "n", "alpha"} <= told.keys()
    assert found["sentence"] in "".join(Reader(text).text)


def test_first_things_come_first(text):
    order = ["verdict", "tasks-title", "worst-title", "reliability", "null", "carried", "curves"]
    order += ["maps", "groups", "slices", "method", "again"]
    places = [text.index(f'id="{name}"') for name in order]
    assert places == sorted(places)


def test_page_is_complete_in_itself(text):
    assert len(text.encode()) < 3_000_000
    elements = Reader(text).elements
    for tag, own in elements:
        assert "src" not in own, tag
        assert own.get("href", "#").startswith("#"), own
        assert tag not in ("link", "iframe", "object", "embed", "base", "img"), tag
        assert not [name for name in own if name.startswith("on")], own
    ids = [own["id"] for _, own in elements if "id" in own]
    assert len(ids) == len(set(ids))


def test_only_the_scripts_of_the_page_may_run(text):
    policy = next(
        own["content"]
        for tag, own in Reader(text).elements
        if tag == "meta" and own.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy
    allowed = re.findall(r"sha256-([^']+)", policy)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    made = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert made == allowed
    assert len(made) == 2


def test_charts_have_tables_and_names(text):
    reader = Reader(text)
    charts = [own for _, own in reader.elements if own.get("class") == "chart"]
    assert len(charts) == 4
    assert all(own["role"] == "img" and own["aria-label"] for own in charts)
    tags = [tag for tag, _ in reader.elements]
    assert tags.count("figure") == len(charts)
    assert tags.count("details") >= len(charts)
    assert {"main", "nav", "header", "footer", "h1"} <= set(tags)


def test_names_from_the_file_stay_text(hostile):
    made = report.page(hostile)
    reader = Reader(made)
    tags = {tag for tag, _ in reader.elements}
    assert "img" not in tags
    assert sum(tag == "script" for tag, _ in reader.elements) == 3
    shown_text = "".join(reader.text)
    assert "<script>window.pwned=1</script>" in shown_text
    assert "{{7*7}}" in shown_text
    block = next(block for block in reader.blocks if block.startswith('{"alpha"'))
    assert not set("<>&\u2028\u2029") & set(block)
    assert json.loads(block)["curves"][0]["name"] == "</script><script>window.pwned=1</script>"
    assert "\u202e" not in made
    assert "x" * 200 not in made
    assert "y" * 200 not in made
    assert len(made.encode()) < 3_000_000


@given(st.text())
def test_embedded_json_reads_back_and_ends_no_script(value):
    told = embedded({"name": value})
    assert json.loads(told) == {"name": value}
    assert not set("<>&\u2028\u2029") & set(told)


@given(st.text(max_size=60), st.integers(8, 40))
def test_cut_text_is_short_enough(value, most):
    assert len(cut(value, most)) <= most


@given(st.lists(st.integers(0, 40), max_size=8), st.integers(1, 20))
def test_what_is_left_out_cannot_be_told_from_a_total(rows, least):
    few = too_few(rows, least)
    assert all(k in few for k, number in enumerate(rows) if number < least)
    assert len(few) != 1 or len(rows) == 1


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


def test_groups_of_few_rows_are_neither_on_the_page_nor_in_the_json(rare):
    assert any("Tinyville" in group.name for group in rare.diagnosis.groups)
    told, left_out = suppressed(rare.to_dict(), 10)
    assert left_out == sum(told["suppressed"][k] for k in ("groups", "slices", "bins", "regions"))
    assert told["suppressed"]["groups"] == 2  # with the next smallest, or the total would tell
    assert "Tinyville" not in json.dumps(told)
    made = report.page(rare)
    assert "Tinyville" not in made
    text = " ".join("".join(Reader(made).text).split())
    assert f"{left_out} entries rest on fewer than 10 rows" in text
    for path, value in facts(made).items():
        assert value == raw(told, path)


def test_a_large_group_keeps_its_name_beside_a_small_one_that_begins_it():
    rng = np.random.default_rng(0)
    g = np.array(["White"] * 5 + ["White British"] * 300 + ["Other"] * 295, dtype=object)
    p = np.full(600, 0.5)
    y = rng.random(600) < np.where(g == "White British", 0.85, 0.45)
    found = it.audit(it.Sample(y, p, {"g": g}), draws=199, rng=0)
    told = json.dumps(suppressed(found.to_dict(), 10)[0])
    assert "g = White British" in told
    assert not re.search(r"White(?! British)", told)


def test_what_is_left_out_is_the_same_in_slices_groups_and_repairs():
    """n less all that is shown of a covariate is 0 or at least min_cell."""
    rng = np.random.default_rng(1)
    g = np.array(["big"] * 340 + ["mid"] * 156 + ["few"] * 4, dtype=object)
    p = np.full(500, 0.5)
    y = rng.random(500) < np.where(g == "big", 0.8, 0.4)
    sample = it.Sample(y, p, {"g": g})
    found = it.audit(sample, draws=199, rng=0)
    told = suppressed(found.to_dict(), 10)[0]
    shown = {group["name"]: group["rows"] for group in told["diagnosis"]["groups"]["groups"]}
    rules = {part["rule"]: part["rows"] for part in told["diagnosis"]["slices"]["slices"]}
    assert "g = big" in rules  # another group than the one a slice names goes with the small one
    assert set(shown) | set(rules) == {"g = big"}
    other = it.Sample(rng.random(500) < 0.5, p, {"g": rng.permutation(g)})
    repairs = it.recalibrate.compare([it.recalibrate.Platt()], other, sample, draws=199, rng=0)
    kept = Disclosure.of(found.to_dict(), 10).repairs(repairs.to_dict())
    names = {row["slice"]["rule"] for row in kept["recalibrations"] if row["slice"] is not None}
    assert names <= {"g = big"}


def test_everything_is_shown_when_told_so(rare):
    told, left_out = suppressed(rare.to_dict(), 1)
    assert left_out == 0
    told["diagnosis"]["slices"].pop("withheld")
    assert told == {**rare.to_dict(), "suppressed": told["suppressed"]}
    assert "Tinyville" in report.page(rare, min_cell=1)


def test_curves_and_maps_rest_on_enough_rows(rare):
    told = report.content(rare, min_cell=60)
    for curve in told["curves"]:
        for part in curve["parts"]:
            near = zip(part["bias"], part["neighbours"], strict=True)
            assert all(size >= 60 for bias, size in near if bias is not None)
    for picture in told["maps"]:
        near = zip(picture["bias"], picture["neighbours"], strict=True)
        assert all(size >= 60 for bias, size in near if bias is not None)


def test_suppression_refuses_what_is_no_number_of_rows(rare):
    for wrong in (0, True, 2.5, "ten"):
        with pytest.raises(it.InputError, match="min_cell"):
            suppressed(rare.to_dict(), wrong)


def test_page_does_not_grow_with_the_rows():
    sizes = []
    for n in (600, 2_400):
        found = it.audit(it.simulate.survey(n, rng=3).sample, draws=99, rng=0)
        sizes.append(len(json.dumps(report.content(found))))
    assert sizes[1] < 1.5 * sizes[0]


def test_content_is_plain_json(survey):
    told = report.content(survey)
    assert json.loads(json.dumps(told, allow_nan=False)) == told


@pytest.mark.parametrize("kind", ["bare", "levels", "weights", "cluster", "dates", "missing"])
def test_every_kind_of_sample_has_a_page(kind):
    rng = np.random.default_rng(8)
    n = 400
    p = rng.uniform(0.1, 0.9, n)
    y = rng.random(n) < p
    days = np.datetime64("2020-01-01") + rng.integers(0, 900, n)
    number = rng.normal(size=n)
    samples = {
        "bare": lambda: it.Sample(y, p),
        "levels": lambda: it.Sample(y, p, {"sex": rng.choice(["f", "m"], n)}),
        "weights": lambda: it.Sample(y, p, {"a": number}, weights=rng.exponential(size=n)),
        "cluster": lambda: it.Sample(y, p, {"a": number}, cluster=np.arange(n) // 4),
        "dates": lambda: it.Sample(y, p, {"day": days, "a": number}),
        "missing": lambda: it.Sample(
            y, p, {"a": np.where(number > 1, np.nan, number)}, missing="level"
        ),
    }
    found = it.audit(samples[kind](), draws=99, rng=0)
    made = report.page(found)
    told = suppressed(found.to_dict(), 10)[0]
    assert float(facts(made)["pvalue"]) == told["pvalue"]
    assert ("Approximate here" in made) == (kind == "cluster")


def test_models_and_repairs_are_shown_when_given(survey):
    other = it.simulate.survey(1_500, rng=1, trustworthy=True).sample
    found = it.compare({"<m>": survey.sample, "truth": other}, draws=99, rng=0)
    learn = it.simulate.survey(500, rng=2).sample
    methods = {"<platt>": it.recalibrate.Platt()}
    repairs = it.recalibrate.compare(methods, learn, survey.sample, draws=199, rng=0)
    made = report.page(survey, comparison=found, repair=repairs)
    assert 'id="models"' in made
    assert "&lt;platt&gt;" in made
    assert f"{repairs[1].brier:.4f}" in made
    assert "&lt;m&gt;" in made
    plain = rendered(report.content(survey))
    assert 'id="models"' not in plain
    assert 'id="repair"' not in plain
    with pytest.raises(it.InputError, match="repair must come from"):
        report.page(survey, repair=3)


def test_files_are_written_whole_or_not_at_all(survey, tmp_path, monkeypatch):
    place = tmp_path / "report.html"
    assert survey.to_html(place) == place
    before = place.read_text()
    assert before.startswith("<!doctype html>")

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(it.InputError, match="No space left"):
        report.write(survey, place)
    assert place.read_text() == before
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_folder_that_is_not_there_is_one_sentence(survey, tmp_path):
    for place in (tmp_path / "nowhere" / "report.html", tmp_path):
        with pytest.raises(it.InputError, match="cannot be written"):
            report.write(survey, place)
    assert list(tmp_path.iterdir()) == []


def test_only_audits_have_pages():
    with pytest.raises(it.InputError, match="made of an Audit"):
        report.page("audit")


def test_numbers_for_people():
    assert shown(True) == "True"
    assert shown(123456789, "whole") == "123456789"
    assert shown(0.95, "cover") == "95 %"
    assert "&lt;" in fact({"a": "<"}, "a")
