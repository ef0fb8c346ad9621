import re
from xml.etree import ElementTree as Xml

import pytest

import itrust as it
from itrust.auditing import (
    BELOW_MATERIAL,
    NO_EVIDENCE,
    NOT_ENOUGH,
    SIZE_UNCLEAR,
    UNTRUSTWORTHY,
    suppressed,
)
from itrust.render import checks, is_closed, junit_xml, summary_markdown
from itrust.render.junit import writable
from itrust.render.markdown import escaped

HOSTILE = "a|b`c`<script>alert(1)</script>@team #1 *x* [l](http://e.org) \x00\x1b\n--> ]]> & \u202e"


@pytest.fixture(scope="module")
def wrong():
    """A model that is shown to be wrong, with a hostile column and level."""
    town = it.simulate.survey(900, rng=1).sample
    region = town.column("region")
    levels = ["north", HOSTILE, "west"]
    x = {
        HOSTILE: [levels[int(code)] for code in region.values],
        "age": town.column("age").values,
    }
    sample = it.Sample(town.y, town.p / 3, x)
    return it.audit(sample, ["mean(age)", "prevalence()"], draws=79, rng=0)


@pytest.fixture(scope="module")
def few():
    """A right model on too few rows."""
    town = it.simulate.survey(60, rng=3, trustworthy=True).sample
    return it.audit(town, ["mean(age)"], draws=79, rng=0)


@pytest.mark.parametrize("name", [UNTRUSTWORTHY, SIZE_UNCLEAR])
def test_the_gate_is_closed_for_what_is_shown_to_be_wrong(name):
    assert is_closed(it.Verdict(name, "", ()))


@pytest.mark.parametrize("name", [BELOW_MATERIAL, NO_EVIDENCE, NOT_ENOUGH])
def test_the_gate_is_open_otherwise(name):
    assert not is_closed(it.Verdict(name, "", ()))


def test_checks_fail_only_where_the_gate_is_closed(wrong, few):
    assert wrong.verdict.name == UNTRUSTWORTHY
    outcomes = {check.name: check.outcome for check in checks(wrong)}
    assert outcomes["verdict"] == outcomes["competency"] == "failed"
    assert outcomes["task prevalence()"] == "failed"
    assert few.verdict.name == NOT_ENOUGH
    outcomes = {check.name: check.outcome for check in checks(few)}
    assert outcomes["verdict"] == outcomes["confidence"] == "skipped"
    assert "failed" not in outcomes.values()


def test_junit_is_valid_xml_with_one_case_a_check(wrong, few):
    for audit in (wrong, few):
        text = junit_xml(audit, f"file {HOSTILE}", str)
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
    text = summary_markdown(wrong, HOSTILE, kept(wrong, 10), str)
    assert "### itrust: untrustworthy (gate closed)" in text
    assert "<script" not in text
    assert "`" not in text
    assert "@" not in text
    assert "http:" not in text
    assert "[l]" not in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.count("|") in (4, 5)
    assert set(re.findall(r"<(\w+)", text)) <= {"br"}


def kept(audit, min_cell):
    return suppressed(audit.to_dict(), min_cell)[0]


def test_long_names_are_cut():
    assert len(escaped("x" * 10_000)) == 200


def test_small_slices_stay_out_of_the_summary(wrong):
    shown = wrong.diagnosis.slices.confirmed
    assert shown
    assert "confirmed slice" in summary_markdown(wrong, "f", kept(wrong, 1), str)
    largest = max(part.rows for part in shown)
    text = summary_markdown(wrong, "f", kept(wrong, largest + 1), str)
    assert "confirmed slice" not in text
    assert "withheld" in text
