"""`make release-check`: everything between a commit and an upload, from cheap to dear.

Every step is a target of the Makefile. All are run, each is named aloud with its time, and what
failed is said at the end; a step whose base failed is not run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Step:
    """A target, what it shows, and the target without which it cannot."""

    target: str
    shows: str
    needs: str = ""


# A step of yours goes where its price is; a target of the Makefile is all that it takes.
STEPS = (
    Step("committed", "everything is committed, and the hashes are those of the dependencies"),
    Step("lint", "style"),
    Step("types", "types"),
    Step("dist", "wheel and sdist are built, valid, and hold what they should"),
    Step("smoke", "the wheel, with hashed dependencies, does what the README says", "dist"),
    Step("docs", "the site is built without a warning"),
    Step("installed", "the fast tests and the README, against the installed wheel", "dist"),
    Step("pythons", "the same on every Python that is here", "dist"),
    Step("unit", "all tests"),
    Step("oldest", "all tests with the oldest versions that are allowed"),
    Step("fuzz", "damaged inputs and killed commands"),
)


def make(target: str) -> bool:
    """Whether a target is made; what it prints is shown as it comes."""
    return subprocess.run([os.environ.get("MAKE", "make"), target], cwd=ROOT).returncode == 0


def checked(steps: tuple[Step, ...]) -> dict[str, str]:
    """What became of every step: `passed`, `FAILED` or why it was left out."""
    became: dict[str, str] = {}
    for number, step in enumerate(steps, 1):
        print(f"\n=== {number} of {len(steps)}: {step.target}: {step.shows}", flush=True)
        if became.get(step.needs, "passed").split()[0] != "passed":
            became[step.target] = f"NOT RUN: it needs {step.needs}"
        else:
            start = time.monotonic()
            outcome = "passed" if make(step.target) else "FAILED"
            became[step.target] = f"{outcome} in {time.monotonic() - start:.0f} s"
        print(f"=== {step.target}: {became[step.target]}", flush=True)
    return became


def chosen(names: list[str]) -> tuple[Step, ...]:
    """The steps that are named; all, if none is."""
    known = [step.target for step in STEPS]
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"there is no step {', '.join(unknown)}; there are {', '.join(known)}")
    return tuple(step for step in STEPS if not names or step.target in names)


def notes() -> list[str]:
    """What no step can decide."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    told = (
        "pyproject.toml names no repository ([project.urls], Source): on the page of an index the "
        "README's links to docs/ lead nowhere"
    )
    return [] if "Source" in project["urls"] else [told]


def main() -> None:
    """Run the steps that the command line names, or all."""
    became = checked(chosen(sys.argv[1:]))
    print("\n=== release-check")
    for target, outcome in became.items():
        print(f"{target:<12}{outcome}")
    for note in notes():
        print(f"note: {note}")
    if any(not outcome.startswith("passed") for outcome in became.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
