"""One truth on every surface: two dozen audits whose texts, pages and files agree."""

import json
import re
from dataclasses import replace
from html import unescape
from xml.etree import ElementTree as Xml

import numpy as np
import pytest

import itrust as it
from itrust.auditing import Verdict, gate
from itrust.auditing.verdict import judge
from itrust.bias import PartBias
from itrust.render import junit_xml, summary_markdown
from itrust.render import page as pages
from itrust.render.page import page

ALPHA, TOLERANCES = 0.05, (0.05, 0.3, 0.8)
TASKS = ["mean(x) ~ 0.3", 'prevalence(g == "a") - prevalence(g == "b")', "prevalence() ~ 0.1"]


def level(rng, p, x):
    """The mean is off, and nothing along the covariates: overall calibration shows it first."""
    return np.clip(p + rng.choice([0.03, 0.06, 0.1]), 0, 1), x


def slope(rng, p, x):
    """Predictions that are too extreme."""
    return 0.5 + rng.choice([0.6, 0.8]) * (p - 0.5), x


def group(rng, p, x):
    return np.clip(p + 0.25 * (x["g"] == rng.choice(["a", "b"])), 0, 1), x


def trend(rng, p, x):
    return np.clip(p + rng.choice([0.05, 0.1, 0.15]) * x["x"], 0, 1), x


def deep(rng, p, x):
    inside = (x["g"] == "a") & (x["x"] > 0.5)
    return np.clip(p + rng.choice([0.2, 0.4]) * inside, 0, 1), x


def right(rng, p, x):  # noqa: ARG001 - the model is calibrated
    return p, x


KINDS = (level, slope, group, trend, deep, right)


def simulated(seed):
    """Rows, weights and clusters of every kind, in turn."""
    rng = np.random.default_rng([19, seed])
    n = int(rng.choice([60, 120, 240]))
    p = rng.uniform(0.05, 0.95, n) if seed % 3 else rng.beta(0.6, 4, n)
    x = {"x": rng.normal(size=n), "g": rng.choice(["a", "b", "c"], n, p=[0.5, 0.4, 0.1])}
    truth, x = KINDS[seed % len(KINDS)](rng, p, x)
    design = {}
    if seed % 5 == 1:
        design["weights"] = rng.exponential(size=n) + 0.2
    if seed % 7 == 3:
        design["cluster"] = np.arange(n) // 3
    return it.Sample(rng.random(n) < truth, p, x, **design)


def excludes_0(found):
    return found["lower"] > 0 or found["upper"] < 0


def flat(text):
    return " ".join(text.split())


def facts_of(html):
    """The numbers of a page, by their places in the JSON."""
    return re.findall(r'data-fact="([^"]+)" value="([^"]*)"', html)


def shown(html):
    """The texts of the page's elements, without those inside them."""
    return [flat(unescape(text)) for text in re.findall(r">([^<]+)<", html)]


def looked_up(told, path):
    for step in path.split("."):
        told = told[int(step)] if isinstance(told, list) else told[step]
    return told


def contradictions(audit):
    """Every sentence or number that another one denies, in words."""
    told = json.loads(json.dumps(audit.to_dict(), allow_nan=False))
    yield from _hidden(audit)
    verdict, test, overall = told["verdict"], told["test"], told["overall"]
    rejected = test["pvalue"] is not None and test["pvalue"] <= ALPHA
    refuted = rejected or test["impossible"] > 0
    overall_no = overall["pvalue"] is not None and overall["pvalue"] <= ALPHA
    off = verdict.startswith("miscalibrated")
    if off != refuted:
        yield f"{verdict}, but p {test['pvalue']}"
    if overall_no and not off:
        yield f"overall calibration is rejected, but {verdict}"
    if overall["pvalue"] is not None and overall["pvalue"] < max(
        overall["unadjusted_pvalue"], test["pvalue"]
    ):
        yield "overall p below that given the covariates"

    groups = (told["parts"][0]["diagnosis"]["groups"] or {"groups": []})["groups"]
    slices = told["parts"][0]["diagnosis"]["slices"]["slices"]
    parts = [*groups, *slices, *told["tasks"], told["summary"]]
    for part in parts:
        if part["pvalue"] is not None and (part["pvalue"] <= ALPHA) != excludes_0(part):
            yield f"p {part['pvalue']} beside {part['lower']} to {part['upper']}"
    marked = [part for part in parts if part["pvalue"] is not None and part["pvalue"] <= ALPHA]
    if verdict == "no evidence against" and marked:
        yield "no evidence, and something is marked"
    large = [part for part in (*groups, *slices) if excludes_0(part)]
    large = [part for part in large if abs(part["at_least"]) >= told["tolerance"]]
    if verdict.endswith("within tolerance") and large:
        yield f"{verdict}, and {large[0]['at_least']} is shown"
    if excludes_0(told["summary"]) and not refuted and verdict != "inconclusive":
        yield f"the mean is shown to be off, and the verdict is {verdict}"
    rate = next((task for task in told["tasks"] if task["task"] == "prevalence()"), None)
    if rate is not None and excludes_0(rate) and not excludes_0(told["summary"]):
        yield "the rate is biased, and the first line does not show it"
    for chart in (*told["parts"][0]["charts"]["curves"], *told["parts"][0]["charts"]["maps"]):
        for line in chart.get("parts", [chart]):
            if any(line["flagged"]) and not refuted and test["pvalue"] is not None:
                yield "a chart marks what the test does not reject"

    yield from _twice(audit, told)
    yield from _order(audit, told)
    leading = [item["pvalue"] for item in told["evidence"] if item["kind"] == "finding"]
    about = told["test"]["about_findings"]
    if any(pvalue > test["pvalue"] for pvalue in leading) and "it can be larger" not in about:
        yield f"findings with p {leading} beside a test with {test['pvalue']}, and no word why"
    if rejected and not leading and "the test rejects, but no single finding" not in about:
        yield "the test rejects, no finding does, and nobody says so"
    if any(pvalue < test["pvalue"] for pvalue in leading) and not test["impossible"]:
        yield f"a finding with p {min(leading)} below that of the test"

    for task in told["tasks"]:
        if task["withheld"] is not None:
            continue
        reach = max(-task["lower"], task["upper"])
        safe = task["tolerance"] is not None and reach <= task["tolerance"]
        if task["finding"] == "safe to report" and not safe:
            yield f"{task['task']} is called safe"
        if task["finding"] == "biased" and not excludes_0(task):
            yield f"{task['task']} is called biased"
        if not task["sentence"].startswith(task["finding"]):
            yield task["sentence"]

    printed = told["validation"]
    low = [
        own["name"]
        for own in printed["statistics"]
        if (own["exact_pvalue"] if own["exact_pvalue"] is not None else own["pvalue"] or 1) <= ALPHA
    ]
    silent = "neither denies the other" not in printed["sentence"]
    if low and not refuted and test["pvalue"] is not None and silent:
        yield f"{low} are at most alpha, the audit does not reject, and no word why"
    if "no part of the verdict" not in printed["sentence"]:
        yield "what validators print looks like a part of the verdict"

    yield from _texts(audit, told, overall_no, refuted)


def _twice(audit, told):
    """Rows that are told twice, or with two estimates."""
    tables = told["parts"][0]["diagnosis"]
    parts = [*(tables["groups"] or {"groups": []})["groups"], *tables["slices"]["slices"]]
    own_parts, seen = [*(audit.diagnosis.groups or ()), *audit.diagnosis.slices], {}
    for part, own in zip(parts, own_parts, strict=True):
        name = part.get("rule") or part["name"]
        rows = own.where.rows(audit.sample.points).tobytes()
        if rows in seen:
            yield f"{name} and {seen[rows]} are the same rows"
        seen[rows] = name
    numbers = {part.get("rule") or part["name"]: part for part in parts}
    for item in told["evidence"]:
        if item["kind"] in ("group", "slice"):
            own = numbers[item.get("rule") or item["name"]]
            if {**item, **own} != item:
                yield f"evidence has other numbers than the table: {item['text']}"
            bias = f"{abs(own['estimate']):.3f}"
            if bias not in item["text"]:
                yield f"{bias} in the tables, but {item['text']}"
    pictures = pages.pictures_of(pages.facts_of(audit))
    rows = pictures["forest"].sets[0]["parts"][0]["rows"] if "forest" in pictures else []
    if len({row["name"] for row in rows}) != len(rows):
        yield "the forest plot has a name twice"


def _order(audit, told):
    """Evidence that is not told from plain to fine, or with another slope."""
    order = "impossible labels", "overall", "slope", "part", "finding"
    kinds = [
        order.index("part" if item["kind"] in ("group", "slice") else item["kind"])
        for item in told["evidence"]
        if item["kind"] != "task"
    ]
    if kinds != sorted(kinds) and audit.judgement.refuted:
        yield f"the evidence is told in another order: {kinds}"
    (slope,) = (own for own in told["validation"]["statistics"] if own["name"] == "slope")
    own = told["parts"][0]["slope"]
    if any(slope[name] != own[name] for name in ("value", "lower", "upper")):
        yield f"two slopes: {slope} and {own}"
    for item in told["evidence"]:
        if re.search(r"\((?![^()]* and )[^()]* go together", item["text"]):
            yield f"something goes together with itself: {item['text']}"
        if item["kind"] == "slope" and item["lower"] <= 1 <= item["upper"]:
            yield f"a slope that may be 1 is told: {item['text']}"


def _hidden(audit, min_cell=30):
    """Groups that disclosure control withholds and some file names all the same."""
    shown_now = audit.disclosed(min_cell)
    groups = [] if audit.diagnosis.groups is None else audit.diagnosis.groups.groups
    kept = {group.name for group in shown_now.diagnosis.groups or ()}
    told = shown_now.to_dict()  # numbers are shown as they were asked for
    texts = [item["text"] for item in told["evidence"] if item["kind"] != "task"]
    texts += [found["sentence"] for found in told["test"]["findings"]]
    for name in {group.name for group in groups} - kept:
        for text in texts:
            if re.search(rf"\bwhere {re.escape(name)}(?! and)", text):
                yield f"{name} is withheld, and told: {text}"
    if {check.key: check.outcome for check in gate(shown_now).checks} != {
        check.key: check.outcome for check in gate(audit).checks
    }:
        yield "disclosure control changes the gate"


def _texts(audit, told, overall_no, refuted):
    """What terminal, page, Markdown and JUnit say beside the JSON."""
    terminal, html = flat(str(audit)), page(audit)
    markdown, suite = summary_markdown(audit, "f"), Xml.fromstring(junit_xml(audit, "f"))[0]
    first = told["summary"]["text"]
    for name, text in {"terminal": terminal, "markdown": flat(markdown)}.items():
        if told["verdict"] not in text:
            yield f"{name} does not say {told['verdict']}"
    if not terminal.startswith(f"{first} VERDICT {told['verdict']} {told['sentence']}"):
        yield "the terminal begins with something else"
    if first not in flat(html) or told["sentence"] not in flat(
        html.replace("&gt;", ">").replace("&lt;", "<")
    ):
        yield "the page has another sentence"
    if told["validation"]["sentence"] not in flat(unescape(html)):
        yield "the page has other words about what validators print"
    yield from _nowhere(told, terminal, html)
    about = told["test"]["about_findings"]
    leading = [item["pvalue"] for item in told["evidence"] if item["kind"] == "finding"][:3]
    if leading and max(leading) <= told["pvalue"]:
        about = ""
    if about and not (about in terminal and about in flat(markdown).replace("&#39;", "'")):
        yield f"terminal or Markdown do not say: {about}"
    if re.search(r"\bgiven\s*([.,;:(]|$)", f"{told['sentence']} {told['action']} {terminal}"):
        yield "given nothing"
    for part, no in (("Overall calibration (reliance)", overall_no), ("(competency)", refuted)):
        after = terminal.split(part)[1].lstrip()
        word = "no p-value" if audit.test.refused else "rejected" if no else "not rejected"
        if not after.startswith(word):
            yield f"{part}: {after[:40]}"
    counts = {int(number.replace(",", "")) for number in re.findall(r"^([\d,]+) rows", first)}
    if counts != {told["n"], told["summary"]["rows"]}:
        yield f"rows {counts}, {told['n']}"
    for path, value in facts_of(html):
        own = looked_up(told, path)
        if value != ("" if own is None else own if isinstance(own, str) else json.dumps(own)):
            yield f"page {path}: {value}, JSON {own}"
    for asked in ("model", "tasks", "any"):
        found = gate(audit, asked)
        model = told["verdict"] in ("miscalibrated", "miscalibrated, size not established")
        tasks = any(task["finding"] == "biased" for task in told["tasks"])
        if found.closed != {"model": model, "tasks": tasks, "any": model or tasks}[asked]:
            yield f"gate {asked}"
        if found.closed != any(check.outcome == "failed" for check in found.checks):
            yield f"gate {asked}: no check says why"
    state = "closed" if gate(audit).closed else "open"
    if f"(gate {state})" not in markdown:
        yield "the summary has another gate"
    if (int(suite.get("failures")) > 0) != gate(audit).closed:
        yield "JUnit has another gate"
    for case in suite.findall("testcase"):
        message = case.find("skipped")
        if case.get("name").startswith("task") and message is not None:
            told_there = message.get("message")
            yield from [] if told_there.startswith(("undecided", "withheld")) else [told_there]


def marked_charts(told):
    """Lines of curves, and maps, with a filled mark."""
    curves = [line for curve in told["parts"][0]["charts"]["curves"] for line in curve["parts"]]
    return [own for own in (*curves, *told["parts"][0]["charts"]["maps"]) if any(own["flagged"])]


def _nowhere(told, terminal, html):
    """Words that deny a filled mark, or marks that no words speak of."""
    pictures, bias = marked_charts(told), told["parts"][0]["diagnosis"]["local_bias"]
    points = bias["flagged_low"] + bias["flagged_high"]
    words = " ".join(shown(html))
    if re.search(r"\bnowhere\b", words, re.IGNORECASE) and (pictures or points):
        yield f"the page says nowhere, with {len(pictures)} marked pictures and {points} points"
    for name, text in {"terminal": terminal, "page": words}.items():
        if name == "page" and "In no group and no slice" not in words:
            continue  # a group or slice is told
        if pictures and not re.search("marked on the (curve|map)", text, re.IGNORECASE):
            yield f"{len(pictures)} pictures have marks, and the {name} does not say so"
    if "marked on the" in terminal and not pictures:
        yield "the terminal speaks of marks that are not there"


@pytest.mark.slow
def test_two_dozen_audits_do_not_contradict_themselves():
    verdicts, findings = set(), set()
    for seed in range(24):
        charts = seed % 9 == 0
        tolerance = TOLERANCES[seed // 2 % 3]
        settings = {"draws": 79, "rng": seed, "charts": charts, "tolerance": tolerance}
        found = it.audit(simulated(seed), TASKS, **settings)
        for least in (None, 10):  # disclosure control contradicts nothing either
            assert [*contradictions(found.disclosed(least))] == [], (seed, least)
        verdicts.add(found.verdict)
        findings |= {task.finding for task in found.tasks}
    assert len(verdicts) >= 3  # every verdict has a test of its own
    assert len(findings) == 3


def test_a_mean_that_is_off_is_not_missed_because_a_covariate_was_named():
    """1,882 games: mean prediction .577 against .547, about 2.8 standard errors."""
    rng = np.random.default_rng(3)
    p = np.clip(rng.beta(6, 4.4, 1_882), 0.05, 0.95)
    season = rng.integers(2010, 2021, p.size).astype(float)
    y = rng.random(p.size) < p
    spread = np.sqrt(np.sum(p * (1 - p)))
    surplus = round((np.sum(y - p) / spread + 2.8) * spread)
    y[rng.choice(np.flatnonzero(y), surplus, replace=False)] = False
    found = it.audit(it.Sample(y, p, {"season": season}), draws=199, rng=0, charts=False)
    assert found.test.pvalue <= 0.05
    assert found.verdict.startswith("miscalibrated")
    assert found.overall.pvalue <= 0.05
    assert found.overall.mean.upper < 0
    assert [*contradictions(found)] == []


def test_where_the_test_given_the_covariates_does_not_reject_overall_is_not_called_rejected():
    """Overall calibration would be rejected by itself: all say "not rejected", the same way."""
    seen = 0
    for seed in range(60):
        rng = np.random.default_rng([20, seed])
        p = rng.uniform(0.2, 0.8, 200)
        x = {f"x{k}": rng.normal(size=200) for k in range(6)}
        sample = it.Sample(rng.random(200) < np.clip(p + 0.09, 0, 1), p, x)
        alone, given = (it.klce_test(own, draws=79, rng=0) for own in (sample.only(), sample))
        if alone.pvalue > 0.04 or given.pvalue < 0.08:
            continue
        found = it.audit(sample, ["prevalence()"], draws=79, rng=0, charts=False)
        if not found.overall.test.pvalue <= 0.05 < found.test.pvalue:  # with more draws
            continue
        assert not found.verdict.startswith("miscalibrated")
        assert found.verdict is Verdict.INCONCLUSIVE
        assert [*contradictions(found)] == []
        seen += 1
        if seen == 2:
            return
    raise AssertionError(f"{seen} of 60 samples are such")


def test_a_slice_that_is_a_group_is_told_by_the_group():
    rng = np.random.default_rng(0)
    n = 1_200
    p = rng.uniform(0.2, 0.8, n)
    x = {"region": rng.choice(["north", "south", "west"], n), "age": rng.normal(size=n)}
    off = np.where(x["region"] == "west", -0.2, 0.0)
    sample = it.Sample(rng.random(n) < np.clip(p + off, 0, 1), p, x)
    found = it.audit(sample, draws=79, rng=0, charts=False)
    apart = it.bias_slices(sample, draws=79, rng=0)
    (alike,) = (part for part in apart.confirmed if part.rule == "region = west")
    assert "region = west" not in [part.rule for part in found.diagnosis.slices]
    (west,) = (group for group in found.diagnosis.groups if group.name == "region = west")
    assert found.diagnosis.told[0] == west
    assert next(item for item in found.evidence if isinstance(item, PartBias)) == west
    assert west.bias == pytest.approx(alike.bias)
    for text in (str(found), summary_markdown(found, "f"), page(found)):
        told = flat(text.replace("\N{MINUS SIGN}", "-"))
        assert f"{west.estimate:+.3f}" in told
        assert f"{west.lower:+.3f}" in told
        assert f"{alike.lower:+.3f}" not in told
    assert [*contradictions(found)] == []


def test_a_rejection_without_a_finding_says_so_everywhere():
    """The test rejects; sign flips leave no check that stands by itself."""
    found = it.audit(simulated(2), draws=79, rng=2, charts=False, tolerance=0.8)
    assert found.test.pvalue <= ALPHA
    doubtful = tuple(replace(one, pvalue=max(one.pvalue, 0.2)) for one in found.test.findings)
    test = replace(found.test, findings=doubtful)
    parts = (replace(found.parts[0], test=test),)
    judged = judge(test, parts, found.missed, found.tasks, alpha=ALPHA, tolerance=0.8)
    silent = replace(found, test=test, parts=parts, judgement=judged)
    words = "the test rejects, but no single finding stands out"
    assert words in flat(str(silent))
    assert words in flat(page(silent))
    assert words in flat(summary_markdown(silent, "f"))
    assert words in silent.to_dict()["test"]["about_findings"]
    assert [*contradictions(silent)] == []


@pytest.mark.parametrize("kind", [slope, right])
def test_audits_without_covariates_do_not_contradict_themselves(kind):
    rng = np.random.default_rng(5)
    p = rng.uniform(0.05, 0.95, 1_500)
    truth, _ = kind(rng, p, {})
    found = it.audit(it.Sample(rng.random(1_500) < truth, p), draws=79, rng=0, charts=False)
    assert found.verdict.startswith("miscalibrated") == (kind is slope)
    assert [*contradictions(found)] == []
    assert "Calibration given the prediction alone" in str(found)


def test_marks_on_curves_and_maps_are_not_denied_by_the_words():
    """A bias that no group, slice or point shows, and pictures do."""
    made = it.audit(it.simulate.survey(700, rng=1).sample, draws=79, rng=0)
    first, known = made.parts[0], made.diagnosis
    quiet = replace(known, groups=None, slices=replace(known.slices, slices=()))
    quiet = replace(quiet, bias=known.bias.implied_by(1.0))
    parts = (replace(first, diagnosis=quiet),)
    judged = judge(made.test, parts, made.missed, (), alpha=ALPHA, tolerance=0.05)
    found = replace(made, parts=parts, judgement=judged)
    assert not found.diagnosis.shown
    assert not found.diagnosis.bias.flagged.any()
    assert marked_charts(found.to_dict())
    assert [*contradictions(found)] == []
    assert "marked on the" in flat(str(found))
