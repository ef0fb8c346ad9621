"""Standard streams as a shell hands them over: closed, full, without a reader."""

import json
import os
import subprocess
import sys

import pytest

from itrust.cli import demo
from shell import invoke

LOST = 74
# A library that prints in the middle of an audit.
NOISY = """
import sys, warnings
import itrust.cli.audit as command

judge = command._judge

def noisy(*args):
    print("noise of Python")
    sys.stdout.write("more of it")
    print("a note", file=sys.stderr)
    warnings.warn("a warning")
    return judge(*args)

command._judge = noisy
from itrust.__main__ import main
sys.argv[0] = "itrust"
main()
"""
COLUMNS = "--label y --prob p --on age --draws 39"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("streams")
    rows = "".join(f"{k % 2},0.{k % 9 + 1},{k}\n" for k in range(40))
    (place / "homes.csv").write_text(f"y,p,age\n{rows}")
    (place / "noisy.py").write_text(NOISY)
    return place


def shell(folder, script):
    """Run a line of the shell, in which $ITRUST is the command."""
    command = f"{sys.executable} -m itrust"
    env = {**os.environ, "ITRUST": command, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=600
    )


@pytest.mark.parametrize("closed", ["0<&- 2>&-", pytest.param("", marks=pytest.mark.slow)])
def test_standard_output_holds_the_json_and_nothing_else(closed, folder):
    script = f"$PYTHON -X faulthandler noisy.py audit homes.csv {COLUMNS} --json - {closed}"
    found = shell(folder, script)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["draws"] in (39, 399, 3_999)
    if not closed:
        for noise in ("noise of Python", "more of it"):
            assert noise in found.stderr


CLOSED = "itrust: standard output cannot be written to: it is closed\n"
FULL = "itrust: standard output cannot be written to: No space left on device\n"


@pytest.mark.parametrize("command", ["--help", pytest.param("doctor", marks=pytest.mark.slow)])
def test_output_that_cannot_be_written_is_told(command, folder):
    closed = shell(folder, f"$ITRUST {command} >&-")
    assert (closed.returncode, closed.stderr) == (LOST, CLOSED)
    full = shell(folder, f"$ITRUST {command} > /dev/full")
    assert (full.returncode, full.stderr[-len(FULL) :]) == (LOST, FULL)
    assert "Traceback" not in full.stderr


def test_all_streams_may_be_closed_or_full(folder):
    assert shell(folder, "$ITRUST --version <&- >&- 2>&-").returncode == LOST
    assert shell(folder, "$ITRUST --version > /dev/full 2>&1").returncode == LOST


def test_a_closed_standard_input_is_one_sentence(folder):
    found = shell(folder, "$ITRUST audit - --on age <&-")
    assert found.returncode == 2
    assert found.stderr.startswith("itrust: standard input is closed; ")


def test_help_without_a_reader_is_no_error(folder):
    found = shell(folder, "$ITRUST audit --help | true; exit ${PIPESTATUS[0]}")
    assert found.returncode in (0, 141)
    assert found.stderr == ""


def test_what_is_printed_inside_a_command_is_no_result(monkeypatch):
    monkeypatch.setattr(demo, "run", lambda _: print("noise") or demo.answer("result") or 0)
    result = invoke("demo")
    assert (result.stdout, result.stderr) == ("result\n", "noise\n")


def test_a_log_is_not_replaced_by_an_output_that_a_descriptor_names(folder):
    script = (
        f"echo before > log.txt; $ITRUST audit homes.csv {COLUMNS} -q --json /dev/stdout "
        "> out.txt 2>> log.txt"
    )
    assert shell(folder, script).returncode == 2
    before, told = (folder / "log.txt").read_text().split("\n", 1)
    assert before == "before"
    assert told == "itrust: --json is where standard output goes, /dev/stdout; name another file\n"
