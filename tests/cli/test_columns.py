"""Columns as people have them, at the command line: codes, conditions, forms of text."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shell import invoke

N = 1500
RNG = np.random.default_rng(11)
RACE, AGE = RNG.integers(1, 6, N), RNG.integers(18, 90, N)
P = np.round(RNG.uniform(0.15, 0.7, N), 4)
Y = (RNG.random(N) < P + np.where(RACE == 2, 0.2, 0.0)).astype(int)
FRAME = pd.DataFrame({"y": Y, "p": P, "age": AGE, "race": RACE})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("homes.csv", index=False)
    return tmp_path


def run(*args, command="audit"):
    return invoke(command, *args, env={"COLUMNS": "300"})


def refused(*args, command="audit"):
    result = run(*args, command=command)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.split())


def audited(*args):
    """What the terminal tells, and the JSON; the page, too, if it is asked for."""
    result = run(*args, "--draws", "79", "--json", "a.json", "--on", "age,race")
    assert result.exit_code == 0, result.stderr
    with open("a.json") as file:
        return result.stdout, json.load(file)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ((), "race = 2"),
        (("--category", "race"), "race = 2"),
        (("--value-labels", "race: 1=White, 2=Black, 3=Asian"), "race = Black"),
    ],
    ids=["as it is", "category", "value labels"],
)
def test_a_bias_in_one_race_is_found_and_named_however_it_is_coded(options, name):
    told, facts = audited("homes.csv", *options, "--report", "page.html")
    page = Path("page.html").read_text("utf-8")
    assert facts["verdict"] == "miscalibrated"
    assert f"where {name}" in facts["sentence"]
    assert f"the bias is higher where {name} than elsewhere" in told
    assert f"*  {name}" in told
    assert name in page
    groups = {group["name"]: group for group in facts["parts"][0]["diagnosis"]["groups"]["groups"]}
    assert groups[name]["pvalue"] <= 0.05
    assert groups[name]["rows"] == (RACE == 2).sum()
    command = facts["provenance"]["command"]
    for option in options[::2]:
        assert option in command


def test_the_note_on_few_values_names_the_options_of_the_shell():
    told, _ = audited("homes.csv")
    assert "--category race, if quantities, --number race" in " ".join(told.split())


def test_rows_that_count_are_those_of_the_condition_and_lack_nothing():
    frame = FRAME.astype({"p": float, "age": float})
    frame.loc[:59, "p"] = np.nan
    frame.loc[60:99, "p"] = -0.01
    frame.loc[100:120, "age"] = -99
    frame.to_csv("holes.csv", index=False)
    roles = ("--prob", "p", "--on", "age,race")
    assert "60 rows have no p (first: line 2); --missing drop leaves them out" in refused(
        "holes.csv", *roles
    )
    said = refused("holes.csv", *roles, "--missing", "drop")
    assert "line 62 has -0.01, and 39 other rows are outside, too" in said
    assert "missing-value code: --na-values -0.01 with --missing drop" in said
    assert "expit" not in said
    kept = frame[(frame["age"] >= 30) & (frame["p"] >= 0)]
    _, facts = audited(
        *("holes.csv", "--prob", "p", "--missing", "drop"),
        *("--na-values", "-0.01,-99", "--where", "age >= 30"),
    )
    assert facts["n"] == len(kept)
    assert facts["summary"]["predicted"] == pytest.approx(kept["p"].mean())


def test_two_models_are_compared_on_the_rows_that_both_have():
    frame = FRAME.assign(q=np.where(AGE > 80, np.nan, P))
    frame.loc[:20, "p"] = np.nan
    frame.to_csv("two.csv", index=False)
    roles = ("--prob", "p", "--prob", "q", "--missing", "drop")
    _, facts = audited("two.csv", *roles)
    assert facts["n"] == frame.dropna().shape[0]
    assert [model["name"] for model in facts["comparison"]["models"]] == ["p", "q"]


def test_a_european_file_is_read_as_it_looks_and_said_aloud():
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 300, N), "D")
    FRAME.assign(day=days).to_csv(
        "homes.csv", sep=";", decimal=",", date_format="%d.%m.%Y", index=False
    )
    result = run("homes.csv", "--on", "age,day", "--draws", "79")
    assert result.exit_code == 0
    said = " ".join(result.stderr.split())
    assert "columns are separated by semicolons (--sep CHAR says otherwise)" in said
    assert "decimals are written with a comma (--decimal . says otherwise)" in said
    assert "dates are read with the day first (--dates mdy says otherwise)" in said
    written = run(
        *("homes.csv", "--prob", "p", "--method", "platt", "--apply", "homes.csv"),
        *("--out", "new.csv"),
        command="recalibrate",
    )
    assert written.exit_code == 0, written.stderr
    back = pd.read_csv("new.csv", sep=";", decimal=",")
    assert back["p"].tolist() == P.tolist()
    assert back["p_recalibrated"].between(0, 1).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--category", "rase"), "--category: homes.csv has no column 'rase'; did you mean 'race'"),
        (("--where", "agee > 3"), "--where: homes.csv has no column 'agee'; did you mean 'age'"),
        (("--where", "age >"), "age >"),
        (("--where", "age > 900"), "0 rows of 1,500 satisfy 'age > 900'"),
        (("--value-labels", "race=1"), "--value-labels takes a column and what its codes mean"),
        (("--sep", "ab"), "--sep takes one ASCII sign, or tab, not 'ab'"),
        (("--positive", "7"), "--positive 7 is not among the labels 0, 1"),
        (("--number", "race", "--category", "race"), "'race' cannot be --number and --category"),
    ],
)
def test_what_cannot_be_is_one_sentence_in_the_words_of_the_shell(options, told):
    assert told in refused("homes.csv", "--on", "age,race", *options)


def test_one_label_against_the_rest():
    FRAME.assign(y=RACE).to_csv("three.csv", index=False)
    said = refused("three.csv", "--label", "y", "--on", "age")
    assert "(for one class against the rest: --positive 1; for all at once: --prob win=p1" in said
    _, facts = audited("three.csv", "--label", "y", "--positive", "3")
    assert facts["summary"]["observed"] == pytest.approx((RACE == 3).mean())


def test_a_survey_in_stata_brings_its_value_labels_along():
    pyreadstat = pytest.importorskip("pyreadstat")
    meaning = {1: "White", 2: "Black", 3: "Asian", 4: "Native", 5: "Other"}
    frame = FRAME.assign(own=np.where(Y == 1, 1, 2), p=np.where(np.arange(N) < 60, np.nan, P))
    labels = {"race": meaning, "own": {1: "yes", 2: "no"}}
    pyreadstat.write_dta(frame, "survey.dta", variable_value_labels=labels)
    roles = ("survey.dta", "--label", "own", "--prob", "p")
    said = refused(*roles, "--on", "age,race", "--missing", "drop")
    assert "--label own has the values 1 (yes), 2 (no); say which value counts as 1" in said
    for more in ((), ("--category", "race")):
        told, facts = audited(*roles, "--missing", "drop", "--positive", "Yes", *more)
        assert facts["n"] == N - 60
        assert "*  race = Black" in told


def test_a_column_with_a_code_below_0_gets_a_note_until_it_is_named():
    FRAME.assign(age=np.where(AGE < 25, -99, AGE)).to_csv("homes.csv", index=False)
    told, _ = audited("homes.csv")
    assert "is -99 in" in told
    said, _ = audited("homes.csv", "--na-values", "-99", "--missing", "drop")
    assert "is -99 in" not in said
    assert f"missing-value codes: {(AGE < 25).sum()} of 'age'" in " ".join(said.split())


def test_a_file_with_the_wrong_ending_is_told_what_it_is(folder):
    (folder / "a.csv").write_bytes(b"PAR1" + bytes(range(256)) * 4)
    assert "a.csv is a Parquet file, whatever its ending says; rename it" in refused("a.csv")


def test_settings_take_numbers_for_codes(folder):
    (folder / "itrust.toml").write_text("na-values = [-99, 'refused']\ncategory = 'race'\n")
    FRAME.assign(age=np.where(AGE < 25, -99, AGE)).to_csv("homes.csv", index=False)
    _, facts = audited("homes.csv", "--missing", "drop")
    assert facts["n"] == (AGE >= 25).sum()


def test_a_recalibration_reads_codes_as_it_did_in_the_fit():
    fit = ("homes.csv", "--prob", "p", "--on", "race", "--method", "multicalibration")
    first = run(*fit, "--category", "race", "--save", "fit.json", command="recalibrate")
    assert first.exit_code == 0, first.stderr
    applied = run(
        *("--load", "fit.json", "--apply", "homes.csv", "--out", "new.csv"), command="recalibrate"
    )
    assert applied.exit_code == 0, applied.stderr
    back = pd.read_csv("new.csv")
    moved = (back["p_recalibrated"] - back["p"])[RACE == 2].mean()
    assert moved > 0.1


FORGED = "in\nitrust: the gate is open\tcome"


@pytest.mark.parametrize("command", ["audit", "recalibrate"])
def test_no_name_of_a_column_makes_a_line_of_its_own(command):
    FRAME.head(60).assign(**{FORGED: AGE[:60]}).to_parquet("homes.parquet")
    more = ["--draws", "39"] if command == "audit" else ["--save", "s.json"]
    roles = ["--label", "y", "--prob", "p", "--on", "all"]
    result = run("homes.parquet", *roles, *more, command=command)
    assert result.exit_code == 0, result.stderr
    told = result.stdout + result.stderr
    assert r"all other columns: age, race, in\nitrust: the gate is open\tcome" in told
    assert not any(line.startswith("itrust: the gate") or "\t" in line for line in told.split("\n"))
