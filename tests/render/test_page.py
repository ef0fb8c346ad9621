import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import itrust as it
from itrust._core import cut, rounded
from itrust.auditing import Audit, Missed, Provenance, Verdict
from itrust.calibration import RegionPower
from itrust.data import Everywhere, Level
from itrust.render import as_html, as_text, seen
from itrust.render import page as report
from itrust.render.page import WORDS, MarkedFacts, embedded, facts_of, pictures_of, shown

MINUS = "\N{MINUS SIGN}"
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


class Called(Level):
    """A group that goes by one word."""

    def __str__(self) -> str:
        return self.name


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
    made = Provenance("itrust audit survey.csv --seed 0", "survey.csv", "ab" * 32)
    return report.page(survey.extended(provenance=made))


@pytest.fixture(scope="module")
def hostile() -> Audit:
    return it.audit(hostile_sample(), draws=99, rng=0)


class Numbers(HTMLParser):
    """Numbers of the audit as people read them, by their path."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.shown: dict[str, str] = {}
        self.path: str | None = None
        self.feed(text)

    def handle_starttag(self, _tag, attrs):
        self.path = dict(attrs).get("data-fact")

    def handle_endtag(self, _tag):
        self.path = None

    def handle_data(self, data):
        if self.path is not None:
            self.shown[self.path] = data


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


def shown_text(text: str) -> str:
    return " ".join("".join(Reader(text).text).split())


def chart_data(text: str) -> dict[str, Any]:
    """What the scripts of the page draw."""
    return json.loads(next(block for block in Reader(text).blocks if block.startswith("{")))


def in_interval(found: Any, path: str) -> str:
    """A number of a task, with the digits that the interval of its bias can tell."""
    place, name = path.rsplit(".", 1)
    task = at(found, place)
    sign = "+" if name in ("bias", "lower", "upper") else "-"
    return rounded(task[name], task["lower"], task["upper"], sign).replace("-", MINUS)


def test_numbers_that_people_read_are_those_of_the_json(survey, text):
    """What stands between the tags is compared, not the attribute beside it."""
    found = json.loads(json.dumps(survey.to_dict()))
    seen = Numbers(text).shown
    assert {"pvalue", "overall.pvalue", "seed", "n", "alpha"} <= seen.keys()
    for path, told in seen.items():
        value = at(found, path)
        number = told.replace("\N{MINUS SIGN}", "-").replace(",", "")
        if value is None:
            assert told == "\N{EN DASH}", path
        elif path.startswith("tasks.") and not path.endswith(("pvalue", "tolerance")):
            assert told == in_interval(found, path), path
        elif path.startswith("robustness.") and path.endswith(".point"):
            # Rounded down, so that nothing is said to stand too long.
            is_share, number = number.endswith("%"), number.rstrip("% \N{NO-BREAK SPACE}")
            unit = 10.0 ** -len(number.partition(".")[2])
            assert 0 <= value * (100 if is_share else 1) - float(number) + 1e-6 < unit + 2e-6, path
        elif number.endswith("%"):
            assert float(number[:-1]) == pytest.approx(100 * value, abs=0.06), path
        elif isinstance(value, str):
            assert told == value, path
        elif path.endswith((".at_least", ".estimate")) and number[0] not in "+-":
            assert float(number) == pytest.approx(abs(value), rel=6e-3, abs=6e-4), path  # a size
        else:
            assert float(number) == pytest.approx(value, rel=6e-3, abs=6e-4), path
    for k, group in enumerate(found["parts"][0]["diagnosis"]["groups"]["groups"]):
        told = seen[f"parts.0.diagnosis.groups.groups.{k}.observed"]
        assert told == f"{group['observed']:.3f}"
    words = shown_text(text)
    assert found["sentence"] in words
    assert all(item["text"] in words for item in found["evidence"])


def test_the_worst_slice_has_its_estimate_and_what_is_shown(survey):
    table = survey.diagnosis.slices
    rates = {"predicted": 0.1, "observed": 0.2, "lower": 0.01, "upper": 0.19, "stderr": 0.03}
    part = replace(table[0], **rates, pvalue=0.001, rows=443)
    slices = replace(table, slices=(part,))
    first = survey.parts[0]
    whole = replace(first, diagnosis=replace(first.diagnosis, slices=slices))
    words = shown_text(report.page(replace(survey, parts=(whole,))))
    assert 0.03 < part.estimate < 0.07
    assert f"too low by about {part.estimate:.3f} (at least 0.010)" in words
    assert "Predicted 0.100, observed 0.200; 443 rows" in words


def test_curves_maps_and_bars_that_are_drawn_are_those_of_the_json(survey, text):
    charts = json.loads(json.dumps(survey.to_dict()))["parts"][0]["charts"]
    drawn = chart_data(text)
    assert {"forest", "curve", "map", "reliability", "histogram", "null"} <= drawn.keys()
    assert [own for own in drawn["curve"]["sets"] if own["kind"] != "levels"] == charts["curves"]
    assert drawn["map"]["sets"] == [{"parts": charts["maps"]}]
    assert [own["name"] for own in charts["groups"]] == ["region"]
    first, *others = drawn["reliability"]["sets"][0]["parts"]
    assert first["curve"] == drawn["reliability"]["baseline"] == charts["reliability"]
    assert others == charts["reliability_by_group"]
    for name in ("histogram", "null"):
        (own,) = drawn[name]["sets"][0]["parts"]
        assert charts[name].items() <= own.items()
    assert (len(charts["curves"]), len(charts["maps"])) == (3, 6)
    age = next(curve for curve in charts["curves"] if curve["name"] == "age")
    own = it.bias_curve(survey.sample, "age", points=40, draws=99, rng=0).parts[0]
    assert age["parts"][0]["rows"] == own.rows
    assert sum(charts["null"]["counts"]) == survey.draws
    assert first["curve"]["observed"] == pytest.approx(survey.overall.curve.observed.tolist())


def refuse(*_, **__):
    raise AssertionError("computed while rendering")


NUMERIC = [
    *("itrust.auditing.charts.pictures_of", "itrust.auditing.charts.curve_plan"),
    *("itrust.auditing.audits.measured_together", "itrust.auditing.audits.charts_of"),
    *("itrust.auditing.measuring.planned_test", "itrust.auditing.measuring.local_plan"),
    *("itrust.auditing.measuring.group_plan", "itrust.auditing.measuring.slices_of"),
    *("itrust.auditing.measuring.detectable_by", "itrust.auditing.measuring.run_together"),
    "itrust.bias.averages.average_all",
    *("itrust.calibration.klce_test", "itrust.bias.local_bias", "itrust.bias.bias_curve"),
    *("itrust.engines.Tiles.__init__", "itrust.engines.Factor.__init__"),
    "itrust.kernels.LocalKernel.__init__",
]


def test_a_page_is_made_without_computing_anything(survey, monkeypatch):
    kept = json.loads(json.dumps(survey.to_dict()))
    for name in NUMERIC:
        monkeypatch.setattr(name, refuse)
    with pytest.raises(AssertionError, match="computed while rendering"):
        it.audit(survey.sample, draws=99, rng=0)
    live, stored = report.page(survey), report.page(kept)
    assert live == stored


def test_a_dict_is_shown_only_if_disclosure_control_was_as_strict(survey):
    whole = json.loads(json.dumps(survey.to_dict()))
    with pytest.raises(it.InputError, match="has not been through disclosure control"):
        report.page(whole, min_cell=10)
    assert report.page(whole).startswith("<!doctype html>")
    kept = json.loads(json.dumps(survey.disclosed(5).to_dict()))
    with pytest.raises(it.InputError, match=r"min_cell=10; use disclosed\(10\)"):
        report.page(kept, min_cell=10)
    for settings in ({}, {"min_cell": 5}, {"min_cell": 2}):
        assert facts_of(kept, **settings)["withheld"]["min_cell"] == 5


def test_a_stricter_page_applies_disclosure_again(survey):
    shown = survey.disclosed(5)
    for settings, least in (({}, 5), ({"min_cell": 2}, 5), ({"min_cell": 300}, 300)):
        told = facts_of(shown, **settings)["withheld"]
        assert told == survey.disclosed(least).withheld.to_dict()


@pytest.mark.parametrize(
    ("everywhere", "worst", "sentence"),
    [
        (
            0.05,
            0.1,
            "a bias of 0.050 everywhere, or of 0.100 where a = b, would be seen with power",
        ),
        (0.05, np.inf, "everywhere would be seen with power 0.8, but none below 0.5 where a = b"),
        (0.05, np.nan, "a bias of 0.050 everywhere would be seen with power 0.8"),
        (np.inf, np.inf, "no bias below 0.5 would be seen: too few rows"),
        (np.nan, 0.1, "a bias of 0.100 where a = b would be seen with power 0.8"),
        (np.nan, np.inf, "no room for a bias everywhere; none below 0.5 where a = b would be seen"),
        (np.nan, np.nan, "no room for a bias everywhere"),
    ],
)
def test_what_would_be_seen_is_one_sentence_everywhere(survey, everywhere, worst, sentence):
    regions = (
        RegionPower(Everywhere(), 1.0, everywhere, everywhere),
        RegionPower(Level("a", "b"), 0.5, worst, worst),
    )
    found = replace(survey.missed.detectable, regions=regions, pairs=(), power=0.8)
    audit = replace(survey, missed=replace(survey.missed, detectable=found))
    assert sentence in seen(Missed(found, None))
    assert audit.to_dict()["missed"]["sentence"] == seen(audit.missed)
    assert shown_text(report.page(audit)).count(seen(Missed(found, None))) == 2
    assert seen(Missed(found, None)) in " ".join(as_text(audit).split())
    assert seen(Missed(found, None)) in as_html(audit)


def test_the_worst_pair_is_told_beside_the_worst_group(survey):
    regions = (
        RegionPower(Everywhere(), 1.0, 0.1, 0.1),
        RegionPower(Level("a", "b"), 0.5, 0.2, 0.1),
    )
    pair = RegionPower(Level("a", "b") & Level("c", "d"), 0.1, 0.3, 0.4)
    small = RegionPower(Level("a", "b") & Level("c", "e"), 0.1, 0.3, 0.2)
    found = replace(survey.missed.detectable, regions=regions, pairs=(small, pair))
    told = "of 0.100 everywhere, of 0.200 where a = b, or of 0.400 where a = b and c = d, would be"
    assert told in seen(Missed(found, None))
    hidden = replace(found, pairs=(small, replace(pair, up=np.inf)))
    assert "but none below 0.5 where a = b and c = d" in seen(Missed(hidden, None))


def test_pairs_of_groups_have_a_table_of_the_worst(survey, text):
    found = survey.missed.detectable
    assert "Table: smallest bias that would have been seen in pairs of groups" in text
    assert str(found.worst_pairs[0].where) in shown_text(text)
    assert len(survey.to_dict()["missed"]["detectable"]["pairs"]) == min(50, len(found.pairs))


def test_a_group_that_is_called_everywhere_is_a_group(survey):
    regions = (
        RegionPower(Everywhere(), 1.0, 0.1, 0.1),
        RegionPower(Called("everywhere", "yes"), 0.5, 0.2, 0.2),
    )
    found = replace(survey.missed.detectable, regions=regions)
    assert "of 0.200 where everywhere" in seen(Missed(found, None))


def test_what_the_audit_says_in_words_stands_under_the_verdict(survey):
    kept = survey.to_dict()
    task = {"title": "mean <age>", "finding": "safe to report", "sentence": "Report it."}
    said = {
        "summary": {"text": "1,500 rows; mean prediction 0.5, observed rate 0.6"},
        "action": "Recalibrate it first.",
        "overall": {**kept["overall"], "pvalue": 0.07, "unadjusted_pvalue": 0.01},
        "tasks": [{**kept["tasks"][0], **task}],
    }
    made = report.page({**kept, **said})
    words = shown_text(made)
    assert words.index("observed rate 0.6") < words.index(kept["sentence"])
    assert words.index(kept["sentence"]) < words.index("Recalibrate it first.")
    assert words.index("mean <age>") < words.index("Report it.")
    assert "p = 0.07 (exact); the predictions alone give 0.01" in words
    assert '<span class="finding good">safe to report</span>' in made


def test_a_page_has_the_title_and_the_model_that_it_was_given(survey):
    made = Provenance("itrust audit x.csv", title="Wave <3>", model="gbm & co 2.1")
    page = report.page(survey.extended(provenance=made))
    assert (
        f"<title>Wave &lt;3&gt;: gbm &amp; co 2.1: {survey.verdict} (itrust audit)</title>" in page
    )
    assert '<p class="brand"><bdi>Wave &lt;3&gt;</bdi></p>' in page
    assert 'model <bdi class="model">gbm &amp; co 2.1</bdi>' in page
    assert f"<title>{survey.verdict} (itrust audit)</title>" in report.page(survey)


def test_five_pieces_of_evidence_are_told_and_the_others_folded(survey):
    kept = survey.to_dict()
    many = [{"kind": "point", "text": f"evidence {k}"} for k in range(70)]
    made = report.page({**kept, "evidence": many})
    listed = made[made.index('id="evidence"') :].split("</ul>", 1)[0]
    assert [f"evidence {k}<" in listed for k in range(6)] == [True] * 5 + [False]
    assert "Table: 65 more" in made
    assert "evidence 69" in shown_text(made)


def test_the_forest_holds_confirmed_slices_and_groups_the_largest_shown_bias_first(survey):
    kept = json.loads(json.dumps(survey.to_dict()))
    group = kept["parts"][0]["diagnosis"]["groups"]["groups"][0]
    more = [{**group, "name": f"g = {k}", "lower": 0.0001 * k, "upper": 0.9} for k in range(40)]
    kept["parts"][0]["diagnosis"]["groups"]["groups"] = more
    rows = pictures_of(facts_of(kept))["forest"].sets[0]["parts"][0]["rows"]
    confirmed = kept["parts"][0]["diagnosis"]["slices"]["confirmed"]
    kinds = [row["kind"] for row in rows]
    assert kinds == ["slice"] * confirmed + ["group"] * (30 - confirmed)
    assert rows[confirmed]["name"] == "g = 39"
    assert f"{10 + confirmed} more are in the tables below" in shown_text(report.page(kept))
    ends = [max(row["lower"], -row["upper"]) for row in rows[confirmed:]]
    assert ends == sorted(ends, reverse=True)


def test_the_bias_stands_next_to_the_name(text):
    for name in ("table-groups", "table-slices"):
        table = text[text.index(f'id="{name}"') :].split("</thead>", 1)[0]
        assert re.findall(r'class="sort">([^<]+)', table)[1:3] == ["bias", "interval"]


def test_every_word_that_is_linked_is_explained(text):
    linked = set(re.findall(r'href="#word-(\w+)"', text))
    assert linked <= WORDS.keys()
    assert {"calibrated", "pvalue", "band", "slice", "tolerance", "ece", "brier"} <= linked
    for key, word in WORDS.items():
        assert f'id="word-{key}"' in text
        assert word["meaning"] in shown_text(text)


def test_digits_come_from_the_interval_and_nothing_is_rounded_to_nothing():
    assert rounded(55.9604, 55.1, 56.8) == "56.0"
    assert rounded(-0.0004, -0.9, -0.0004, "+") == "-0.0004"
    assert rounded(0.0, -1.0, 1.0, "+") == "0.0"


def test_a_verdict_of_a_later_version_is_shown_without_alarm(survey):
    kept = {**survey.to_dict(), "verdict": "something new"}
    made = report.page(kept)
    assert "Something new" in shown_text(made)
    assert '<section class="verdict open"' in made
    assert f'<section class="verdict {Verdict(survey.verdict).tone}"' in report.page(survey)


def test_first_things_come_first(text):
    order = ["verdict", "tasks", "key-title", "groups", "chart-forest", "curves", "maps"]
    order += ["reliability", "missed", "evidence", "null", "method", "words", "again"]
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
    charts = [own for _, own in reader.elements if "chart" in (own.get("class") or "").split()]
    assert len(charts) >= 6
    assert {own["id"].removeprefix("chart-") for own in charts} == chart_data(text).keys()
    assert all(own["role"] == "img" and own["aria-label"] for own in charts)
    tags = [tag for tag, _ in reader.elements]
    assert tags.count("figure") == len(charts)
    ids = {own.get("id") for _, own in reader.elements}
    for own in charts:  # a table on the page, or a place for that of the view
        tables, place = set(own["data-table"].split()), own["id"].replace("chart", "place", 1)
        assert tables <= ids
        assert tables or place in ids
    saved = [own["data-of"] for _, own in reader.elements if own.get("data-save") == "csv"]
    assert sorted(saved) == sorted(own["id"] for own in charts)
    assert {"main", "nav", "header", "footer", "h1"} <= set(tags)


@pytest.mark.slow
def test_names_from_the_file_stay_text(hostile):
    made = report.page(hostile)
    reader = Reader(made)
    tags = {tag for tag, _ in reader.elements}
    assert "img" not in tags
    assert sum(tag == "script" for tag, _ in reader.elements) == 3
    shown_text = "".join(reader.text)
    assert "<script>window.pwned=1</script>" in shown_text
    assert "{{7*7}}" in shown_text
    block = next(block for block in reader.blocks if block.startswith("{"))
    assert not set("<>&\u2028\u2029") & set(block)
    assert (
        json.loads(block)["curve"]["sets"][0]["name"] == "</script><script>window.pwned=1</script>"
    )
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


@pytest.mark.slow
def test_page_does_not_grow_with_the_rows():
    sizes = []
    for n in (400, 1_600):
        found = it.audit(it.simulate.survey(n, rng=3).sample, draws=79, rng=0)
        sizes.append(len(report.page(found)))
    assert sizes[1] < 1.2 * sizes[0]


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
    assert float(facts(made)["pvalue"]) == found.test.pvalue
    assert ("Approximate here" in made) == (kind == "cluster")
    assert ("times from the probabilities themselves" in made) == (kind != "cluster")
    assert "<caption>With power" in made
    assert ("rows of a cluster go together" in made) == (kind == "cluster")
    assert ("400 in 100 clusters" in str(found)) == (kind == "cluster")


@pytest.mark.slow
def test_models_and_recalibrators_are_shown_when_given(survey):
    other = it.simulate.survey(1_500, rng=1, trustworthy=True).sample
    found = it.compare({"<m>": survey.sample, "truth": other}, draws=99, rng=0)
    learn = it.simulate.survey(500, rng=2).sample
    methods = {"<platt>": it.recalibrate.Platt()}
    repairs = it.recalibrate.compare(methods, learn, survey.sample, draws=199, rng=0)
    worst = replace(survey.diagnosis.slices[0], lower=-0.2, upper=-0.034)
    rows = (replace(repairs[0], slice=worst), *repairs[1:])
    repairs = replace(repairs, recalibrations=rows)
    made = report.page(survey.extended(comparison=found, recalibration=repairs))
    assert 'id="models"' in made
    assert "&lt;platt&gt;" in made
    assert f"{repairs[1].brier:.4f}" in made
    assert f"(at least {MINUS}0.034)" in shown_text(made)
    assert "&lt;m&gt;" in made
    plain = report.page(survey)
    assert 'id="models"' not in plain
    assert 'id="recalibration"' not in plain
    with pytest.raises(it.InputError, match="recalibration must come from"):
        survey.extended(recalibration=3)


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
    with pytest.raises(it.InputError, match="cannot be written"):
        report.write(survey, tmp_path / "nowhere" / "report.html")
    with pytest.raises(it.InputError, match="is not an ordinary file"):
        report.write(survey, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_only_audits_have_pages():
    with pytest.raises(it.InputError, match="made of an Audit"):
        report.page("audit")


def test_numbers_for_people():
    assert shown(True) == "True"
    assert shown(123456789, "whole") == "123456789"
    assert shown(0.95, "cover") == "95 %"
    assert "&lt;" in MarkedFacts({"a": "<"}).number("a")
