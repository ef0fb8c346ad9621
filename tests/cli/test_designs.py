"""Clusters, strata, replicate weights and blocks of time on the command line."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import itrust as it
from itrust.cli import audit as audit_module
from itrust.cli import recalibrate as recalibrate_module
from shell import invoke

COLUMNS = ["--label", "y", "--prob", "p", "--on", "age"]
N = 240


def rows():
    sample = it.simulate.survey(N, rng=4).sample
    days = np.datetime64("2024-01-01") + np.arange(N)
    return pa.table(
        {
            "y": sample.y.astype(int),
            "p": sample.p,
            "q": 1 - sample.p,
            "age": sample.column("age").values,
            "stratum": np.repeat(np.arange(20), 12),
            "psu": np.tile(np.repeat([1, 2], 6), 20),
            "day": days,
            "w": np.linspace(100, 900, N),
            **{f"rw{k}": np.where((np.arange(N) // 6 + k) % 2, 0, 2) for k in (10, 9, 1)},
        }
    )


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.csv.write_csv(rows(), "homes.csv")


@pytest.fixture
def seen(monkeypatch):
    """The samples that were read, and the work left out."""
    found = []

    def note(sample, *_args, **_settings):
        found.append(sample)
        raise it.InputError("enough")

    monkeypatch.setattr(audit_module.it, "audit", note)
    return found


def told(*args):
    result = invoke(*args, env={"COLUMNS": "400"})
    assert result.exit_code == 2, result.output
    assert not re.search(r"\w='|\w=\[|numpy|frame", result.stderr)  # Python's words
    return " ".join(result.stderr.split())


DESIGN = ["--weights", "w", "--cluster", "stratum,psu", "--strata", "stratum"]
REPLICATES = ["--replicate-weights", "rw*", "--replicate-method", "brr"]


def test_the_whole_design_arrives(seen):
    told("audit", "homes.csv", *COLUMNS, *DESIGN, *REPLICATES)
    (sample,) = seen
    assert (sample.clusters, sample.design.stratum_count) == (40, 20)
    assert sample.design.replicate_weights.shape == (N, 3)
    assert sample.design.were_multiples
    assert sample.design.replicate_weights[0] / 100 == pytest.approx([0, 0, 2])  # 1, 9, 10
    assert str(sample.design.replication) == "brr"


def test_crossed_columns_may_stand_in_one_option_or_in_two(seen):
    told("audit", "homes.csv", *COLUMNS, "--cluster", "stratum", "--cluster", "psu")
    assert seen[0].clusters == 40


def test_blocks_of_time_are_typed_like_columns(seen):
    told("audit", "homes.csv", *COLUMNS, "--cluster", "week(day)")
    told("audit", "homes.csv", *COLUMNS, "--cluster", "psu,month(day)")
    said = told("audit", "homes.csv", *COLUMNS, "--cluster", "blocks(day)")
    assert "blocks(day) are blocks of 7 days" in said
    assert [sample.clusters for sample in seen] == [35, 16, 35]


def test_columns_with_such_a_role_are_no_covariates(seen):
    said = told(
        *("audit", "homes.csv", "--label", "y", "--prob", "p", "--on", "all"),
        *(*DESIGN, *REPLICATES),
    )
    assert seen[0].names == ("q", "age", "day")
    assert "judged on all other columns: q, age, day" in said


def test_every_refusal_names_options_and_lines():
    def said(*args):
        return told("audit", "homes.csv", *COLUMNS, *args)

    assert "--cluster: there is no column 'psv'; did you mean 'psu'?" in said(
        "--cluster", "stratum,psv"
    )
    assert "cluster 1 lies in two strata, 0 (line 2) and 1 (line 14)" in said(
        "--cluster", "psu", "--strata", "stratum"
    )
    assert "name them by both columns, --cluster stratum,psu" in said(
        "--cluster", "psu", "--strata", "stratum"
    )
    assert "stratum 1 of --strata psu has a single cluster (line 2)" in said(
        "--cluster", "psu", "--strata", "psu"
    )
    assert "--replicate-weights needs --replicate-method; say what made" in said(
        "--replicate-weights", "rw*"
    )
    assert "--replicate-method needs --replicate-weights" in said("--replicate-method", "brr")
    assert "--replicate-weights: no column matches 'RW*'; did you mean 'rw*'?" in said(
        "--replicate-weights", "RW*", "--replicate-method", "brr"
    )
    assert "--cluster 'week(age)': blocks of time need dates, but line 2 of 'age' has" in said(
        "--cluster", "week(age)"
    )
    assert "--replicate-method must be one of jk1" in said(
        "--replicate-weights", "rw*", "--replicate-method", "jkn"
    )


def test_a_missing_id_is_told_with_its_line():
    text = Path("homes.csv").read_text().splitlines()
    cells = text[5].split(",")
    cells[4] = ""
    text[5] = ",".join(cells)
    Path("gap.csv").write_text("\n".join(text) + "\n")
    said = told("audit", "gap.csv", *COLUMNS, "--cluster", "stratum")
    assert "gap.csv: 1 row has no stratum (first: line 6); --missing drop leaves them out" in said


def test_settings_hold_lists_and_single_names(seen):
    Path("itrust.toml").write_text(
        'cluster = ["stratum", "psu"]\nstrata = "stratum"\nweights = "w"\n'
        'replicate-weights = "rw*"\nreplicate-method = "fay:0.5"\n'
    )
    told("audit", "homes.csv", *COLUMNS)
    assert seen[0].clusters == 40
    assert str(seen[0].design.replication) == "fay:0.5"


def test_the_echoed_command_makes_the_same_sample_again(monkeypatch):
    args = [*COLUMNS, "--weights", "w", "--cluster", "psu,blocks(day)"]
    echoed = []
    real = audit_module.Options.echo

    def echo(self, settled):
        echoed.append(real(self, settled))
        raise it.InputError("enough")

    monkeypatch.setattr(audit_module, "_judge", lambda *_args: (None, None))
    monkeypatch.setattr(audit_module.Options, "echo", echo)
    told("audit", "homes.csv", *args, *REPLICATES)
    words = shlex.split(echoed[0])
    assert words[words.index("--replicate-weights") + 1] == "rw*"
    assert [words[k + 1] for k, word in enumerate(words) if word == "--cluster"] == [
        "psu",
        "blocks(day, 7)",
    ]
    told(*words[1:])
    assert echoed[1] == echoed[0]


def test_several_models_share_their_blocks(tmp_path):
    result = invoke(
        *("audit", "homes.csv", "--label", "y", "--prob", "p", "--prob", "q", "--on", "age"),
        *("--cluster", "blocks(day)", "--draws", "39", "--json", "a.json"),
    )
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "a.json").read_text())["comparison"]


def test_recalibration_takes_the_design_and_refuses_it_when_nothing_is_fitted(monkeypatch):
    fitted = []
    real = recalibrate_module.read_rows
    monkeypatch.setattr(
        recalibrate_module,
        "read_rows",
        lambda *args, **more: fitted.append(real(*args, **more)) or fitted[-1],
    )
    args = ["--label", "y", "--prob", "p", "--method", "platt", "--save", "learned.json"]
    result = invoke("recalibrate", "homes.csv", *args, *DESIGN, *REPLICATES)
    assert result.exit_code == 0, result.output
    assert fitted[0]["p"].clusters == 40
    load = ["--load", "learned.json", "--apply", "homes.csv", "--out", "out.csv"]
    assert "--strata: with --load nothing is fitted" in told(
        "recalibrate", *load, "--strata", "stratum"
    )
