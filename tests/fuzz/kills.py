"""Kill real commands at random times and look at their outputs.

    python tests/fuzz/kills.py --seed 0

The outputs of a command tell which of two inputs they are from. Whenever the command is killed,
each of them must be whole, from the one input or from the other.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

SETS = ("one", "two")
AUDIT = ["--label", "y", "--on", "age", "--draws", "19", "--alpha", "0.2", "--seed", "1", "--quiet"]
ENDS = {".html": "</html>", ".json": "}", ".xml": "</testsuites>"}
# Runs a command in a process that kills itself before it moves a file in.
VICTIM = """
import os, signal, sys
at, *args = sys.argv[1:]
real, moves = os.replace, 0
def dying(source, place):
    global moves
    if os.path.dirname(source) == os.getcwd():
        moves += 1
        if moves - 1 == int(at):
            os.kill(os.getpid(), signal.SIGKILL)
    real(source, place)
os.replace = dying
sys.argv = ["itrust", *args]
from itrust.__main__ import main
main()
"""


@dataclass(frozen=True)
class Command:
    """A command that writes several files, from one of two inputs."""

    name: str
    outputs: dict[str, str]

    def args(self, which):
        file, column = f"fit{which}.csv", f"prob{which}"
        more = AUDIT
        if self.name == "recalibrate":
            more = ["--apply", file, "--method", "platt", "--label", "y", "--quiet"]
        named = [part for pair in self.outputs.items() for part in pair]
        return [self.name, file, "--prob", column, *more, *named]

    def inputs_of_outputs(self, folder):
        """The input that each output is from; an error where a file is not whole."""
        return [_input_of(folder / name) for name in self.outputs.values()]


COMMANDS = (
    Command(
        "audit",
        {
            "--report": "page.html",
            "--json": "audit.json",
            "--junit": "junit.xml",
            "--summary": "summary.md",
        },
    ),
    Command("recalibrate", {"--out": "better.csv", "--save": "learned.json"}),
)


def _input_of(path):
    text = path.read_text()
    names = [which for which in SETS if f"fit{which}" in text or f"prob{which}" in text]
    assert len(names) == 1, (path, names)
    assert text.rstrip().endswith(ENDS.get(path.suffix, "")), path
    assert path.suffix != ".csv" or text.count("\n") == 121, path
    return names[0]


def inputs(folder):
    rng = random.Random(5)
    rows = [(rng.random(), rng.randint(20, 80)) for _ in range(120)]
    lines = [f"{int(rng.random() < p)},{p:.3f},{age}" for p, age in rows]
    for which in SETS:
        text = "\n".join([f"y,prob{which},age", *lines, ""])
        (folder / f"fit{which}.csv").write_text(text)


def strays(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def killed_at_a_move(folder, args, at):
    """Exit code of a command that dies before its move number `at`."""
    command = [sys.executable, "-c", VICTIM, str(at), *args]
    return subprocess.run(command, cwd=folder, capture_output=True).returncode


def killed_at_some_time(folder, args, seconds):
    """Exit code of a command that is killed some time after its first temporary file is seen."""
    before = len(strays(folder))
    command = [sys.executable, "-m", "itrust", *args]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=folder, **quiet) as process:
        while process.poll() is None and len(strays(folder)) == before:
            time.sleep(0.001)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
    return process.returncode


def kills(command, folder, rng, times):
    """Kill a command at every move and at random times; what was found, counted."""
    for which in SETS:
        words = [sys.executable, "-m", "itrust", *command.args(which)]
        subprocess.run(words, cwd=folder, capture_output=True, check=True)
        assert set(command.inputs_of_outputs(folder)) == {which}
    found = Counter()
    for number in range(len(command.outputs) + times):
        if number < len(command.outputs):
            code = killed_at_a_move(folder, command.args("one"), number)
        else:
            args = command.args(SETS[number % 2])
            code = killed_at_some_time(folder, args, rng.uniform(0, 0.1))
        found["killed"] += code == -signal.SIGKILL
        found["mixed"] += len(set(command.inputs_of_outputs(folder))) > 1
    found["left over"] = len(strays(folder))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--random", type=int, default=16, help="random kills of each command")
    given = parser.parse_args()
    rng, folder = random.Random(given.seed), Path(tempfile.mkdtemp())
    try:
        inputs(folder)
        for command in COMMANDS:
            found = kills(command, folder, rng, given.random)
            print(f"{command.name}: every file whole;", dict(found))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
