import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

import itrust as it
from itrust.cli import app
from itrust.cli import audit as audit_module
from itrust.cli import recalibrate as recalibrate_module
from itrust.cli.options import BY_NAME
from itrust.cli.settings import find_settings
from shell import invoke


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sample = it.simulate.survey(60, rng=0).sample
    table = {"owner": sample.y, "p": sample.p, "age": sample.column("age").values}
    pa.csv.write_csv(pa.table(table), "homes.csv")


@pytest.fixture
def options(monkeypatch):
    seen = []
    monkeypatch.setattr(audit_module, "run", lambda found: seen.append(found) or 0)
    return seen


def run(*args):
    return invoke(*args, env={"COLUMNS": "200"})


def test_settings_stand_in_for_options_and_the_command_line_wins(tmp_path, options):
    (tmp_path / "itrust.toml").write_text(
        'label = "owner"\non = ["age"]\ntask = "mean(age)"\nalpha = 0.1\ndraws = 199\n'
        'min-cell = 20\ngate = true\njson = "out/a.json"\npositive = 1\n'
    )
    result = run("audit", "homes.csv", "--alpha", "0.01")
    assert result.exit_code == 0, result.output
    (found,) = options
    assert (found.label, list(found.on), list(found.task)) == ("owner", ["age"], ["mean(age)"])
    assert (found.alpha, found.draws, found.min_cell, found.gate) == (0.01, 199, 20, "any")
    assert found.positive == "1"
    assert found.outputs["--json"] == Path("out/a.json")
    used = "label, on, positive, task, draws, json, min-cell, gate"
    assert result.stderr == f"settings from ./itrust.toml: {used}\n"


@pytest.mark.parametrize("args", [["--quiet"], []], ids=["flag", "setting"])
def test_settings_are_announced_to_those_who_want_quiet(args, tmp_path, options):
    place = tmp_path / "itrust.toml"
    place.write_text("alpha = 0.2\nmethod = 'platt'\n" + ("" if args else "quiet = true\n"))
    names = "alpha" if args else "alpha, quiet"
    assert run("audit", "homes.csv", *args).stderr == f"settings from ./itrust.toml: {names}\n"
    typed = run("audit", "homes.csv", "--alpha", "0.1", "--quiet")
    assert typed.stderr.startswith("settings from ./itrust.toml: ")
    assert "alpha" not in typed.stderr
    assert options[-1].quiet


def test_the_file_of_settings_can_be_named_or_left_out(tmp_path, options):
    (tmp_path / "itrust.toml").write_text("seed = 1")
    (tmp_path / "other.toml").write_text("seed = 2")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "pyproject.toml").write_text("[tool.itrust]\nseed = 3")
    for named in ("none", "other.toml", "more/pyproject.toml"):
        result = run("audit", "homes.csv", "--settings", named)
        assert result.exit_code == 0, result.stderr
        assert (f"settings from {named}: seed" in result.stderr.replace("./", "")) == (
            named != "none"
        )
    assert [found.seed for found in options] == [0, 2, 3]
    missing = run("audit", "homes.csv", "--settings", "missing.toml")
    assert missing.exit_code == 2
    assert "missing.toml cannot be read: No such file" in missing.stderr


def test_help_is_there_whatever_the_settings_are(tmp_path):
    (tmp_path / "itrust.toml").write_text("nonsense")
    assert run("audit", "--help").exit_code == 0


def test_no_output_overwrites_the_settings(tmp_path):
    (tmp_path / "itrust.toml").write_text("seed = 1")
    result = run("audit", "homes.csv", "--json", "itrust.toml")
    assert result.exit_code == 2
    assert "--json would overwrite itrust.toml, which is read" in result.stderr


@pytest.mark.parametrize("text", ['on = "none"', 'on = ["none"]', 'on = ""', "on = []"])
def test_settings_can_say_that_there_are_no_covariates(text, tmp_path):
    (tmp_path / "itrust.toml").write_text(f'label = "owner"\ndraws = 39\n{text}\n')
    result = run("audit", "homes.csv")
    assert result.exit_code == 0, result.output
    assert "judged on the prediction alone" in result.stdout
    assert "judged on age" in run("audit", "homes.csv", "--on", "age").stdout


def test_pyproject_of_a_parent_is_found(tmp_path, monkeypatch, options):
    (tmp_path / "pyproject.toml").write_text('[tool.itrust]\nlabel = "owner"\nseed = 5\n')
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert run("audit", "../homes.csv").exit_code == 0
    assert (options[0].label, options[0].seed) == ("owner", 5)


def test_the_nearest_settings_count_and_other_projects_have_none(tmp_path):
    (tmp_path / "itrust.toml").write_text("seed = 1\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text('[project]\ndependencies = ["itrust"]\n')
    assert find_settings(inner).values == {"seed": 1}
    (inner / "itrust.toml").write_text("seed = 2\n")
    assert find_settings(inner).values == {"seed": 2}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lable = 'y'", "itrust.toml: there is no setting 'lable'; did you mean 'label'?"),
        ("alpha = '0.1'", "itrust.toml: alpha must be a number, not '0.1'"),
        ("draws = 99.5", "itrust.toml: draws must be a whole number, not 99.5"),
        ("seed = true", "itrust.toml: seed must be a whole number, not True"),
        ("gate = 1", "itrust.toml: gate must be true, false or one of model, tasks, any, not 1"),
        ("on = [1]", "itrust.toml: on must be text or a list of texts, not [1]"),
        ("alpha = ", "itrust.toml cannot be read"),
        ("missing = 'no'", "Invalid value for '--missing'"),
    ],
)
def test_wrong_settings_get_one_sentence(text, told, tmp_path):
    (tmp_path / "itrust.toml").write_text(text)
    result = run("audit", "homes.csv")
    assert result.exit_code == 2
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_settings_are_the_options_of_the_commands_that_read_them():
    reading = [app.commands[name] for name in ("audit", "recalibrate", "estimate")]
    reading += app.commands["watch"].commands.values()
    options = {
        parameter.opts[0].removeprefix("--")
        for command in reading
        for parameter in command.params
        if parameter.param_type_name == "option"
    }
    assert set(BY_NAME) == options - {"settings"}


def test_settings_of_a_recalibration_are_relative_to_their_file(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(recalibrate_module, "run", lambda found: seen.append(found) or 0)
    (tmp_path / "itrust.toml").write_text(
        'method = "platt"\nsave = "r.json"\napply = "-"\nout = "o.csv"\ncolumn = "q"\n'
        'load = "old.json"\n'
    )
    assert run("recalibrate", "homes.csv", "--column", "z").exit_code == 0
    assert run("recalibrate").exit_code == 0
    fitted, loaded = seen
    assert (fitted.method, fitted.apply, fitted.column) == ("platt", "-", "z")
    assert fitted.outputs == {"--out": Path("o.csv"), "--save": Path("r.json")}
    assert fitted.typed == {"file", "column"}
    assert loaded.load == "old.json"
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert run("recalibrate").exit_code == 0
    assert seen[-1].load == os.path.join("..", "old.json")


def test_a_dash_in_settings_is_standard_output(tmp_path):
    (tmp_path / "itrust.toml").write_text(
        'label = "owner"\nprob = "p"\non = "age"\ndraws = 79\njson = "-"\n'
    )
    result = run("audit", "homes.csv")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["draws"] == 79
    assert not (tmp_path / "-").exists()


def test_settings_leave_other_commands_alone(tmp_path):
    (tmp_path / "itrust.toml").write_text("nonsense = 1")
    assert run("tasks").exit_code == 0


def test_an_audit_from_settings_alone(tmp_path):
    (tmp_path / "itrust.toml").write_text(
        'label = "owner"\nprob = "p"\non = "age"\ndraws = 79\njson = "a.json"\n'
    )
    assert run("audit", "homes.csv").exit_code == 0
    found = json.loads((tmp_path / "a.json").read_text())
    assert (found["on"], found["draws"]) == (["age"], 79)
