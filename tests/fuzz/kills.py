"""Kill real commands at every move of a file and at random times, and look at their outputs.

    python tests/fuzz/kills.py --seed 0

The outputs of a command tell which of two inputs they are from. Whatever is killed, there must be
all outputs of the one or all of the other, and nothing else: at once where the process that moves
files in or the one that started it lives, otherwise after the next command that writes there.
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

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

SETS = ("one", "two")
DYING = HERE.parent / "dying_keeper.py"
NEXT = ("recalibrate", "fitone.csv", "--method", "platt", "--label", "y", "--prob", "probone")
NEXT += ("--save", "next.json")
SAID = ("an earlier run was stopped", "that an earlier run, which was stopped, had left")
# Runs a command in a process that dies at a move of its own, or whose keeper does.
VICTIM = """
import os, signal, sys
from itrust._core import keeper
who, at, *args = sys.argv[1:]
moves = 0
def dying(call):
    def move(source, *rest):
        global moves
        if os.path.dirname(source) == os.getcwd():
            moves += 1
            if moves - 1 == int(at):
                os.kill(os.getpid(), signal.SIGKILL)
        call(source, *rest)
    return move
if who == "no keeper":
    keeper.Keeper.start = classmethod(lambda *_: None)
    os.rename, os.replace = dying(os.rename), dying(os.replace)
elif who != "nobody":
    os.environ["ITRUST_KILL"] = f"{at} {who} {keeper.replacement.__file__}"
    keeper.replacement.__file__ = os.environ["ITRUST_DYING"]
sys.argv = ["itrust", *args]
from itrust.__main__ import main
main()
"""


@dataclass(frozen=True)
class Command:
    """A command that writes a set of files, from one of two inputs."""

    name: str
    outputs: tuple[str, ...]

    def args(self, which):
        if self.name == "audit":
            settings = [
                "--label",
                "y",
                "--on",
                "age",
                "--draws",
                "19",
                "--alpha",
                "0.2",
                "--seed",
                "1",
                "--quiet",
            ]
            flags = ("--report", "--json", "--junit", "--summary")
            given = [f"fit{which}.csv", "--prob", f"prob{which}", *settings]
        else:
            settings = ["--method", "platt", "--label", "y", "--quiet"]
            flags = ("--out", "--save")
            given = [f"fit{which}.csv", "--apply", f"fit{which}.csv", "--prob", f"prob{which}"]
            given += settings
        named = [part for pair in zip(flags, self.outputs, strict=True) for part in pair]
        return [self.name, *given, *named]

    def state(self, folder):
        """Which input the outputs are from, or that they are mixed."""
        found = {_told(folder / name) for name in self.outputs}
        return found.pop() if len(found) == 1 else "mixed"


COMMANDS = (
    Command("audit", ("page.html", "audit.json", "junit.xml", "summary.md")),
    Command("recalibrate", ("better.csv", "learned.json")),
)


def _told(path):
    """The input that an output names: its file or its column."""
    text = path.read_text()
    names = [which for which in SETS if f"fit{which}" in text or f"prob{which}" in text]
    assert len(names) == 1, (path, names)
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


def started(folder, args, who="nobody", at=0):
    # Its own group, which may be killed as a whole; pipes, which stay open while a keeper lives.
    return subprocess.Popen(
        [sys.executable, "-c", VICTIM, who, str(at), *args],
        cwd=folder,
        env={**os.environ, "ITRUST_DYING": str(DYING)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def killed_at_a_move(folder, args, who, at):
    with started(folder, args, who, at) as process:
        process.communicate()
    return process.returncode


def killed_at_some_time(folder, args, rng, writing, whole):
    """Some time after the first temporary file is seen, or at any time; one process or its group.

    Returns the exit code.
    """
    with started(folder, args) as process:
        if writing:
            while process.poll() is None and not strays(folder):
                time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.25 if writing else whole))
        if process.poll() is None:
            if rng.random() < 0.5:
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return process.returncode


def looked_at(folder, command, found, before, may_mix=False):
    """Count what is there at once, and after the next run where anything is left."""
    now = command.state(folder)
    kind = {"mixed": "mixed", before: "old set"}.get(now, "new set")
    found[kind] += 1
    if now == "mixed" and not may_mix:
        found["FAILED: mixed"] += 1
    if not strays(folder):
        return
    found["with strays"] += 1
    (folder / "next.json").unlink(missing_ok=True)
    run = subprocess.run(
        [sys.executable, "-m", "itrust", *NEXT], cwd=folder, capture_output=True, text=True
    )
    told = " ".join(run.stderr.split())
    wrong = {
        "the next run failed": run.returncode != 0,
        "it left strays": bool(strays(folder)),
        "it left a mixture": command.state(folder) == "mixed",
        "it said nothing": now == "mixed" and not any(words in told for words in SAID),
    }
    for what, so in wrong.items():
        found[f"FAILED: {what}"] += so
    found["mended by the next run"] += not any(wrong.values())


def kills(command, folder, rng, random_kills):
    """All kills of one command; a table of what was found, by kind of kill."""
    table = {}
    for which in SETS:  # the second time modules are cached, so that times are typical
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "itrust", *command.args(which)], cwd=folder, capture_output=True
        )
        whole = time.monotonic() - begun
        assert done.returncode == 0, done.stderr
        assert command.state(folder) == which

    def one(kind, kill, may_mix=False):
        before = command.state(folder)
        args = command.args(SETS[1 - SETS.index(before)])
        found = table.setdefault((command.name, kind), Counter())
        found["kills"] += kill(args) != 0
        looked_at(folder, command, found, before, may_mix)

    for who in ("keeper", "both", "no keeper"):
        for at in range(len(command.outputs) + 1):  # the journal moves first
            one(
                f"at a move: {who}",
                lambda args, who=who, at=at: killed_at_a_move(folder, args, who, at),
                may_mix=who != "keeper",
            )
    for writing in (True, False):
        for _ in range(random_kills):
            one(
                "at random, while writing" if writing else "at random, at any time",
                lambda args, writing=writing: killed_at_some_time(
                    folder, args, rng, writing, whole
                ),
            )
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--random", type=int, default=16, help="random kills of each kind")
    given = parser.parse_args()
    rng, folder = random.Random(given.seed), Path(tempfile.mkdtemp())
    table = {}
    try:
        inputs(folder)
        for command in COMMANDS:
            table |= kills(command, folder, rng, given.random)
    finally:
        shutil.rmtree(folder)
    total = sum(table.values(), Counter())
    columns = ("kills", "old set", "new set", "mixed", "with strays", "mended by the next run")
    print(f"{'':38}" + "  ".join(columns))
    for (name, kind), found in [*table.items(), (("all", ""), total)]:
        cells = "  ".join(f"{found[column]:>{len(column)}}" for column in columns)
        print(f"{name + ': ' + kind if kind else name:38}{cells}")
    failures = {what: count for what, count in total.items() if what.startswith("FAILED") and count}
    print("\n".join(f"{what}: {count}" for what, count in failures.items()) or "no failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
