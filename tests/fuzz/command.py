"""The command line in this process, stopped before the heavy work; for targets that start it."""

import os
import time
from pathlib import Path

from fuzz.kit import Outcome
from itrust import InputError
from itrust.cli import audit, demo, recalibrate
from shell import invoke

MAX_SECONDS = 5.0  # of processor time
ROWS = "y,p,age,race\n" + "".join(f"{k % 2},0.{k % 9 + 1},{k},{'ab'[k % 2]}\n" for k in range(30))


def stop(*_args, **_settings):
    """Leave: all that stands before the work has let the input pass."""
    raise SystemExit(0)


def run(folder: Path, *args: str) -> Outcome:
    """What becomes of a command in a folder with files to read."""
    (folder / "homes.csv").write_text(ROWS)
    (folder / "other.csv").write_text(ROWS)
    before = os.getcwd()
    os.chdir(folder)
    kept = audit._judge, recalibrate._fitted, demo.tell
    audit._judge = recalibrate._fitted = demo.tell = stop
    begun = time.process_time()
    try:
        found = invoke(*args, env={"COLUMNS": "80", "ITRUST_DEBUG": ""}, input=ROWS)
    finally:
        audit._judge, recalibrate._fitted, demo.tell = kept
        os.chdir(before)
    if time.process_time() - begun > MAX_SECONDS:
        return Outcome.SLOW
    if found.exit_code == 2 and found.stderr.count("itrust: ") == 1:
        raise InputError("{told}", details={"told": found.stderr})
    if found.exit_code in (0, 1):
        return Outcome.ACCEPTED
    raise RuntimeError(f"exit code {found.exit_code}: {found.stderr[-300:]}")
