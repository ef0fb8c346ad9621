"""Real commands that are killed or told to end while they write; `make fuzz` kills more."""

import os
import random
import signal
import subprocess
import sys

import pytest

from fuzz.kills import COMMANDS, NEXT, inputs, killed_at_a_move, killed_at_some_time, strays
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


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_command_that_is_killed_while_it_writes_leaves_one_set_of_files(command, folder):
    written(command)
    killed_at_some_time(folder, command.args("two"), random.Random(3), True, 0.0)
    assert command.state(folder) in ("one", "two")
    assert [name for name in strays(folder) if not name.endswith(".lock")] == []


@pytest.mark.slow
def test_where_all_is_killed_the_next_command_says_that_it_mends_it(folder):
    written(RECALIBRATE)
    assert killed_at_a_move(folder, RECALIBRATE.args("two"), "both", 2) == -signal.SIGKILL
    assert RECALIBRATE.state(folder) == "mixed"
    result = invoke(*NEXT)
    assert result.exit_code == 0
    assert "while it replaced 'better.csv', 'learned.json'; these" in " ".join(
        result.stderr.split()
    )
    assert RECALIBRATE.state(folder) == "one"
    assert strays(folder) == []
    assert "earlier" not in invoke(*NEXT).stderr


@pytest.mark.slow
def test_where_the_keeper_is_killed_the_command_says_so_and_changes_nothing(folder):
    written(RECALIBRATE)
    assert killed_at_a_move(folder, RECALIBRATE.args("two"), "keeper", 1) == 2
    assert RECALIBRATE.state(folder) == "one"
    assert strays(folder) == []


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
    assert RECALIBRATE.state(folder) == "one"
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
    result = invoke(*NEXT[:-1], "loop.json")
    assert result.exit_code == 2
    assert "loop.json" in result.stderr
    assert "Too many levels of symbolic links" in result.stderr
