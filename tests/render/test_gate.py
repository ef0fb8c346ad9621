"""The gate, and the two files a build reads: JUnit and a summary in Markdown."""

import re
from xml.etree import ElementTree as Xml

import pytest

import itrust as it
from itrust.auditing import Verdict, gate, tone_of
from itrust.render import junit_xml, summary_markdown
from itrust.render.junit import writable
from itrust.render.markdown import escaped

HOSTILE = "a|b`c`<script>alert(1)</script>@team #1 *x* [l](http://e.org) \x00\x1b\n--> ]]> & \u202e"


@pytest.fixture(scope="module")
def wrong():
    """A model that is shown to be wrong, with a hostile column and level."""
    town = it.simulate.survey(900, rng=1).sample
    region = town.column("region")
    levels = ["north", HOSTILE, "west"]
    x = {HOSTILE: [levels[int(code)] for code in region.values], "age": town.column("age").values}
    sample = it.Sample(town.y, town.p / 3, x)
    return it.audit(sample, ["mean(age)", "prevalence()"], draws=79, rng=0, charts=False)


@pytest.fixture(scope="module")
def few():
    """A right model on too few rows."""
    town = it.simulate.survey(60, rng=3, trustworthy=True).sample
    return it.audit(town, ["mean(age)"], draws=79, rng=0, charts=False)


CLOSED = {Verdict.MISCALIBRATED, Verdict.SIZE_NOT_ESTABLISHED}


def test_the_gate_is_closed_for_what_is_shown_to_be_miscalibrated_and_open_otherwise():
    assert {verdict for verdict in Verdict if verdict.closes_gate} == CLOSED
    assert {verdict for verdict in Verdict if not verdict.conclusive} == {Verdict.INCONCLUSIVE}
    worst_first = sorted(Verdict, key=lambda verdict: -verdict.severity)
    assert set(worst_first[: len(CLOSED)]) == CLOSED


def test_a_verdict_that_is_not_known_is_neither_good_nor_bad():
    assert tone_of("a verdict of a later version") == "open"
    assert {verdict.tone for verdict in CLOSED} == {"bad"}


def test_checks_fail_only_where_the_gate_is_closed(wrong, few):
    assert wrong.verdict is Verdict.MISCALIBRATED
    found = gate(wrong)
    assert found.closed
    outcomes = {check.key: check.outcome for check in found.checks if check.key != "task"}
    assert outcomes["verdict"] == outcomes["test"] == "failed"
    tasks = {check.name: check for check in found.checks if check.key == "task"}
    assert tasks["task prevalence()"].outcome == "failed"
    assert tasks["task prevalence()"].value is wrong.tasks[1]
    assert few.verdict is Verdict.INCONCLUSIVE
    found = gate(few)
    assert not found.closed
    outcomes = {check.key: check.outcome for check in found.checks}
    assert outcomes["verdict"] == outcomes["missed"] == "skipped"
    assert "failed" not in outcomes.values()


def test_junit_is_valid_xml_with_one_case_a_check(wrong, few):
    for audit in (wrong, few):
        text = junit_xml(audit, f"file {HOSTILE}")
        suite = Xml.fromstring(text.encode())[0]
        cases = suite.findall("testcase")
        assert len(cases) == int(suite.get("tests")) == 4 + len(audit.tasks)
        assert len(suite.findall(".//failure")) == int(suite.get("failures"))
        assert len(suite.findall(".//skipped")) == int(suite.get("skipped"))
        assert not re.search("[\x00-\x08\x0b-\x1f]", text)
        assert "<script>" not in text


def test_every_character_becomes_one_that_xml_can_hold():
    strange = "".join(map(chr, [*range(0x20), 0x7F, 0xD800, 0xFFFE, 0xFFFF, 0x1F600]))
    Xml.fromstring(f"<a>{writable(strange)}</a>".encode())


def test_the_summary_escapes_what_the_file_says(wrong):
    text = summary_markdown(wrong.disclosed(10), HOSTILE)
    assert "### itrust: miscalibrated (gate closed)" in text
    assert "<script" not in text
    assert "`" not in text
    assert "@" not in text
    assert "http:" not in text
    assert "[l]" not in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.count("|") in (4, 5)
    assert set(re.findall(r"<(\w+)", text)) <= {"br"}


def test_long_names_are_cut():
    assert len(escaped("x" * 10_000)) == 200


def test_small_groups_and_slices_stay_out_of_the_summary(wrong):
    shown = wrong.diagnosis.shown
    assert shown
    assert "| shown to be miscalibrated |" in summary_markdown(wrong, "f")
    largest = max(part.rows for part in shown)
    text = summary_markdown(wrong.disclosed(largest + 1), "f")
    assert "| shown to be miscalibrated |" not in text
    assert f"Withheld: {len(shown)} more that are about fewer than" in text
