"""Numbers of ours that other packages compute, too: those of the test extra again, all as kept."""

from importlib.metadata import PackageNotFoundError, version

import pytest
from scipy.stats import binom

import reference
from equal import data, kit, rejections
from quoting.kit import ROOT, kept
from quoting.reference import TO_ROUNDING

ROWS = kept("reference")["tables"]["rows"]["rows"]
# What the Makefile installs for the study alone.
LINE = next(
    line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("COMPARED")
)
STUDY_ONLY = set(LINE.split(":=")[1].split())


def named(row):
    return row.what, row.package, row.on


def known(row):
    (found,) = (r for r in ROWS if (r["what"], r["package"], r["data"]) == named(row))
    return found


def test_every_row_is_kept_once_and_agrees():
    assert sorted(map(named, kit.ROWS)) == sorted(
        (row["what"], row["package"], row["data"]) for row in ROWS
    )
    assert all(kit.agrees(row) for row in ROWS)
    assert {row.topic for row in kit.ROWS} == set(reference.TOPICS)


def test_rows_say_how_definitions_differ_where_they_do():
    assert all(row.note for row in kit.ROWS if row.within is None)
    assert all(row["note"] for row in ROWS if row["relative"] > TO_ROUNDING)


def test_packages_of_the_study_alone_are_pinned_at_the_versions_that_were_compared():
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    assert set(pins) >= STUDY_ONLY
    for row in ROWS:
        assert pins[row["package"]] == row["version"], row["package"]


@pytest.mark.parametrize(
    "row",
    [r for r in kit.ROWS if r.on in (data.SURVEY, data.NONE) and r.package not in STUDY_ONLY],
    ids=lambda row: f"{row.what}, {row.package}",
)
def test_ours_is_theirs(row):
    try:
        version(row.package)
    except PackageNotFoundError:
        assert row.package == "svy"  # alone is not in `make oldest` and `make pythons`
        pytest.skip("needs the package svy")
    measured = row.measure()
    assert kit.agrees(measured)
    if row.within is not None and row.within <= 1e-9:
        assert measured["ours"] == pytest.approx(measured["theirs"], rel=1e-9)


def test_a_number_that_is_farther_than_it_may_be_does_not_agree():
    row = kit.Row("scores", "a wrong number", "scipy", data.NONE, 1e-6, "", lambda: (1.0, 1.1))
    assert not kit.agrees(row.measure())
    shorter = kit.Row("scores", "too few", "scipy", data.NONE, 1e-6, "", lambda: (1.0, [1.0, 2.0]))
    with pytest.raises(ValueError, match="too few: 1 numbers of ours, 2 of theirs"):
        shorter.measure()


def test_tests_given_the_prediction_alone_do_not_see_what_cancels():
    """As kept: all hold their level on the right model, and ours alone finds the wrong one."""
    found = kept("reference")["tables"]["rejections"]
    assert [row["test"] for row in found["rows"]] == list(rejections.TESTS)
    for row in found["rows"]:
        allowed = binom.isf(1e-3, found["runs"], rejections.ALPHA) / found["runs"]
        assert row["right"] <= allowed
        assert row["wrong"] > 0.5 if "age" in row["given"] else row["wrong"] < 0.15


def test_the_covariates_are_what_finds_the_wrong_model():
    found = {
        test: rejections.rejected(test, trustworthy=False, runs=3)
        for test in (rejections.given_covariates, rejections.given_prediction)
    }
    assert found[rejections.given_covariates] > found[rejections.given_prediction]
