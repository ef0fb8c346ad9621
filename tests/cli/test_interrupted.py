"""Real commands that are killed or told to end while they write; `make fuzz` kills more."""

import os
import subprocess
import sys

import pytest

from fuzz.kills import COMMANDS, inputs, killed_at_a_move, killed_at_some_time, strays
from shell import invoke

AUDIT, RECALIBRATE = COMMANDS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(command):
    result = invoke(*command.args("one"))
    assert result.exit_code == 0, result.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_command_that_is_killed_while_it_writes_leaves_whole_files(command, folder):
    written(command)
    killed_at_some_time(folder, command.args("two"), 0.02)
    assert set(command.inputs_of_outputs(folder)) <= {"one", "two"}
    assert all(name.startswith(".itrust-") for name in strays(folder))


@pytest.mark.slow
def test_a_command_that_is_killed_between_two_files_leaves_old_and_new_ones(folder):
    written(RECALIBRATE)
    assert killed_at_a_move(folder, RECALIBRATE.args("two"), 1) == -9
    assert RECALIBRATE.inputs_of_outputs(folder) == ["two", "one"]
    written(RECALIBRATE)
    assert RECALIBRATE.inputs_of_outputs(folder) == ["one", "one"]


@pytest.mark.slow
def test_ctrl_c_twice_leaves_nothing(folder):
    """The first request comes while it writes a file, the second while it cleans up."""
    written(RECALIBRATE)
    code = (
        "import os, sys\n"
        "from itrust.recalibrate import applying\n"
        "def stop(*_):\n"
        "    try:\n"
        "        os.kill(os.getpid(), 2)\n"
        "    finally:\n"
        "        os.kill(os.getpid(), 2)\n"
        "applying.Application.__call__ = stop\n"
        "from itrust.__main__ import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code, *RECALIBRATE.args("two")]
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, "Traceback" in run.stderr) == (130, False), run.stderr
    assert RECALIBRATE.inputs_of_outputs(folder) == ["one", "one"]
    assert strays(folder) == []


def test_a_full_disk_is_one_sentence_and_changes_nothing(folder, monkeypatch):
    written(RECALIBRATE)
    before = {path.name: path.stat().st_ino for path in folder.iterdir()}
    real = os.fsync

    def full(number, left=[2]):  # noqa: B006
        left[0] -= 1
        if left[0] == 0:
            raise OSError(28, "No space left on device")
        real(number)

    monkeypatch.setattr(os, "fsync", full)
    result = invoke(*RECALIBRATE.args("two"))
    assert result.exit_code == 2
    assert "itrust: learned.json cannot be written: No space left on device" in result.stderr
    assert {path.name: path.stat().st_ino for path in folder.iterdir()} == before


def test_a_link_to_itself_is_refused_before_the_work(folder):
    (folder / "loop.json").symlink_to("loop.json")
    result = invoke(*RECALIBRATE.args("one")[:-1], "loop.json")
    assert result.exit_code == 2
    assert "loop.json" in result.stderr
    assert "Too many levels of symbolic links" in result.stderr
