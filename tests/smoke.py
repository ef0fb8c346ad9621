"""The README's examples, word by word, with nothing but the package: `python smoke.py README.md`.

It is run in an empty folder. What the examples print is compared with what the README says.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import subprocess
import sys
import warnings
from pathlib import Path

from fences import Block, blocks_of, says

DEMO = "itrust demo --report report.html --rows homes.csv"  # what `make demo` runs


def shell(commands: str) -> str:
    """What commands print, the package's own being the one beside this Python."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    settings = {**os.environ, "PATH": path, "COLUMNS": "80"}
    done = subprocess.run(
        ["sh", "-euc", commands], env=settings, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{commands}\nended with {done.returncode}: {done.stderr}")
    return done.stdout


def python(block: Block) -> str:
    """What a block of Python prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(block.body, "README.md", "exec"), {"__name__": "__main__"})
    return out.getvalue()


def failed_doctests(text: str) -> int:
    """How many lines of the session at the prompt print something else; they are shown."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    session = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
    return doctest.DocTestRunner(optionflags=flags).run(session).failed


def run(text: str) -> list[str]:
    """Run every example; the names of those that were run, in order."""
    told, printed, last = [], "", None
    for block in blocks_of(text):
        if block.language == "text":
            if not says(block.body, printed):
                raise SystemExit(f"line {last}: README says\n{block.body}\nand not\n{printed}")
            told.append(f"line {last} prints what it should")
        elif block.is_run:
            printed, last = (
                (python(block) if block.language == "python" else shell(block.body)),
                block.line,
            )
            told.append(f"line {last} ({block.language}) was run")
    if failed_doctests(text):
        raise SystemExit("the README's session prints something else")
    return [*told, "the session at the prompt prints what it should"]


def main() -> None:
    """Make the rows that the examples take, then run these."""
    warnings.simplefilter("error")
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    if "miscalibrated" not in shell(DEMO):
        raise SystemExit("the demo's verdict is another one")
    for line in run(text):
        print(f"README: {line}")


if __name__ == "__main__":
    main()
