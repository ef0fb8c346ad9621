"""Names that are no names of files, on every option that takes one."""

import os
import sys

import pytest

from itrust import InputError
from itrust.cli.options import AUDIT, DEMO, RECALIBRATE, Kind, Options, options_of
from itrust.cli.outputs import refuse_bad_places
from shell import invoke

WRITTEN = [
    (command, option.name)
    for command in (AUDIT, RECALIBRATE, DEMO)
    for option in options_of(command)
    if option.kind is Kind.WRITTEN
]
LONG = "x" * 300 + ".csv"
SURROGATE = os.fsdecode(b"caf\xe9.csv")
COLUMNS = ["--label", "y", "--prob", "p", "--on", "age"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{k % 2},0.{k % 9 + 1},{k}\n" for k in range(40))
    for name in ("homes.csv", "other.csv", "learned.json"):
        (tmp_path / name).write_text(f"y,p,age\n{rows}")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "away.csv").symlink_to("missing/there.csv")
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    return tmp_path


def refused(command, *args):
    before = sorted(os.listdir())
    result = invoke(command, *args, env={"COLUMNS": "100"})
    told = " ".join(result.stderr.split())
    assert result.exit_code == 2, result.output
    assert "Traceback" not in told
    assert sorted(os.listdir()) == before
    return told


def arguments(command, option, place):
    """A command that is whole but for one option."""
    if command == AUDIT:
        return ["homes.csv", *COLUMNS, f"--{option}", place]
    if command == DEMO:
        return [f"--{option}", place]
    more = ["--apply", "other.csv"] if option == "out" else []
    return ["homes.csv", *COLUMNS, "--method", "platt", *more, f"--{option}", place]


@pytest.mark.parametrize(("command", "option"), WRITTEN)
def test_no_output_goes_where_no_file_can_be(command, option):
    cases = {
        "": f"--{option} names no file: its value is empty",
        "loop.csv": f"--{option}: loop.csv cannot be written: Too many levels of symbolic links",
        "loop.csv/x.csv": "cannot be written: Too many levels of symbolic links",
        LONG: " cannot be written: File name too long",
        SURROGATE: f"--{option} must be UTF-8 text, not 'caf\\udce9.csv'; rename the file",
        "folder.csv": f"--{option}: folder.csv is a folder; name a file in it",
        "pipe.csv": f"--{option}: pipe.csv is not an ordinary file",
        "homes.csv/x.csv": f"--{option}: there is no folder 'homes.csv'",
        "away.csv": f"--{option}: there is no folder '",
        "{folder}/x.csv": f"--{option}: there is no folder '{{folder}}'",
    }
    for place, told in cases.items():
        assert told in refused(command, *arguments(command, option, place)), place
    if option != "out":  # whose ending is looked at first
        assert "/dev/null is not an ordinary file" in refused(
            command, *arguments(command, option, "/dev/null")
        )


READ = [(AUDIT, "FILE"), (AUDIT, "recalibrate"), (RECALIBRATE, "FILE"), (RECALIBRATE, "apply")]


@pytest.mark.parametrize(("command", "option"), [*READ, (RECALIBRATE, "load")])
def test_no_input_is_read_where_no_file_is(command, option, monkeypatch):
    monkeypatch.setattr("itrust.cli.audit._judge", lambda *_: (None, None))
    cases = {
        "": "names no file: its value is empty",
        "loop.csv": "Too many levels of symbolic links",
        LONG: "File name too long",
        SURROGATE: "must be UTF-8 text, not 'caf\\udce9.csv'; rename the file",
        "pipe.csv": "'pipe.csv' is neither a file nor a folder; pipe what it holds into",
        "/dev/null": "'/dev/null' is neither a file nor a folder; pipe what it holds into",
        "homes.csv/x.csv": "there is no file 'homes.csv/x.csv'",
        "folder.csv": "folder.csv holds no ",
    }
    for place, told in cases.items():
        words = {
            "FILE": [place, *COLUMNS, *(["--save", "s.json"] if command == RECALIBRATE else [])],
            "recalibrate": ["homes.csv", *COLUMNS, "--recalibrate", place],
            "apply": ["homes.csv", *COLUMNS, "--apply", place, "--out", "o.csv"],
            "load": ["--load", place, "--apply", "other.csv", "--out", "o.csv"],
        }[option]
        found = refused(command, *words)
        assert (told in found) or (option == "load" and "--load: there is no file" in found), place


def test_the_file_that_standard_output_goes_to_is_no_output(folder, monkeypatch):
    with (folder / "both.txt").open("w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(InputError, match="--report is where standard output goes, both"):
            refuse_bad_places(Options(AUDIT, None, {"report": "both.txt"}))


def test_the_file_that_standard_error_goes_to_is_no_output(folder, monkeypatch):
    with (folder / "log.txt").open("a") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with pytest.raises(InputError, match=r"--json is where standard error goes, log\.txt"):
            refuse_bad_places(Options(AUDIT, None, {"json": "log.txt"}))


@pytest.mark.parametrize("place", ["dmg.html/", "dmg.html//", "dmg.html/."])
def test_an_output_that_ends_as_a_folder_is_not_taken_for_a_file(folder, place):
    told = "--report: there is no folder 'dmg.html"
    assert told in refused(AUDIT, *arguments(AUDIT, "report", place))
    (folder / "itrust.toml").write_text(f"report = '{place}'\n")
    assert told in refused(AUDIT, "homes.csv", *COLUMNS)
    (folder / "dmg.html").write_text("a page")
    assert told in refused(AUDIT, *arguments(AUDIT, "report", place))


def test_a_folder_that_is_gone_is_told(folder):
    (folder / "gone").mkdir()
    os.chdir("gone")
    (folder / "gone").rmdir()
    result = invoke("demo", "--report", "page.html", env={"COLUMNS": "100"})
    assert result.exit_code == 2
    assert "--report: page.html cannot be written: No such file or directory" in result.stderr


# Values that are no files.


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--seed", "1e400"], "--seed takes a whole number, not '1e400'"),
        (["--seed", "9" * 5000], "--seed takes a whole number, not '99999"),
        (["--seed", "-1"], "--seed must be a whole number of at least 0, not -1"),
        (["--draws", "9" * 20], "--draws takes at most 10,000,000, not '99999"),
        (["--draws", "0"], "--draws must be a whole number of at least 1, not 0"),
        (["--alpha", "nan"], "--alpha takes a number, not 'nan'"),
        (["--alpha", "1e400"], "--alpha takes a number, not '1e400'"),
        (["--tolerance", "-inf"], "--tolerance takes a number, not '-inf'"),
        (["--min-cell", ""], "--min-cell takes a whole number, not ''"),
        (["--alpha", "0.1", "--alpha", "0.2"], "--alpha is given 2 times; give it once"),
        (["--label", "y", "--label", "y"], "--label is given 3 times; give it once"),
        (["--json", "-", "--json=a.json"], "--json is given 2 times; give it once"),
        (["--gate", "--gate", "model"], "--gate is given 2 times; give it once"),
        (["--settings", "none", "--settings", "none"], "--settings is given 2 times"),
        (["--title", os.fsdecode(b"\xff")], "--title must be UTF-8 text, not '\\udcff'"),
        (["--task", os.fsdecode(b"mean(\xff)")], "--task must be UTF-8 text, not 'mean("),
        (["--gate", LONG * 20], "itrust: "),
        (["--where", ""], "a condition is text such as"),
        (["--label", ""], "--label is given 2 times"),
        (["--weights", ""], "has no column ''"),
    ],
)
def test_hostile_values_get_one_sentence(args, told):
    assert told in refused("audit", "homes.csv", *COLUMNS, *args)


def test_flags_and_options_that_may_be_repeated_are_not_counted(monkeypatch):
    monkeypatch.setattr("itrust.cli.audit.run", lambda _: 0)
    words = [
        "--on",
        "age",
        "--on",
        "p",
        "-q",
        "-q",
        "--task",
        "mean(age)",
        "--task",
        "share(age > 1)",
    ]
    assert invoke("audit", "homes.csv", *words).exit_code == 0
