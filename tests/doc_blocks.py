"""Code blocks of Markdown pages: found, run in order in one folder, their output compared.

A `python` block without `>>>` is executed, all of a page in one namespace; one with `>>>` is a
doctest, which pytest runs by itself. A `sh` or `console` block is run by bash. A `text` block right
after such a block is what it prints: times are not compared, and `...` stands for anything. `toml`,
`yaml` and `json` are parsed; a title (title="itrust.toml" behind the language) also puts the block
into the folder. Nothing else is allowed, so that nothing is skipped in silence.

`make pages` writes what blocks print now into the pages whose text says something else, and puts
pictures that they save beside the pages that show them.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import matplotlib as mpl
import matplotlib.image
import numpy as np
import yaml

from fences import DATA, RUN, Block, blocks_of, says
from itrust.cli import demo
from itrust.cli.settings import NAME, PROJECT, find_settings

PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+\.png)\)")
ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}  # pages that use MLflow
STORE = ("MLFLOW_ALLOW_FILE_STORE", "MLFLOW_TRACKING_URI")  # a page says itself where runs are kept
GATE_CLOSED = 1


def complaints(page: str, blocks: list[Block]) -> list[str]:
    """Blocks that no test would look at."""
    found, last = [], None
    for block in blocks:
        place = f"{page}, line {block.line}"
        if block.language == "text":
            if not (block.follows and last and last.is_run):
                found.append(f"{place}: a text block must come right after the code that prints it")
        elif block.language not in RUN + DATA:
            found.append(f"{place}: no test knows blocks of {block.language or 'no language'!r}")
        if block.title and block.language not in DATA:
            found.append(f"{place}: only {', '.join(DATA)} blocks can be put into a file")
        last = block
    return found


class Runner:
    """Runs the blocks of one page in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, object] = {"__name__": "__main__"}
        self.printed = ""
        self.settings = 0

    def run(self, block: Block) -> None:
        """Run one block, or compare it with what the last one printed."""
        if block.is_doctest:
            return
        if block.language == "text":
            self._compare(block)
        elif block.language == "python":
            self.printed = self._python(block)
        elif block.language in ("sh", "console"):
            self.printed = self._shell(self._commands(block))
        else:
            self._data(block)

    def _python(self, block: Block) -> str:
        code = compile("\n" * block.line + block.body, "page", "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, self.names)
        return out.getvalue()

    @staticmethod
    def _commands(block: Block) -> str:
        if block.language == "sh":
            return block.body
        lines = block.body.splitlines()
        assert all(line.startswith("$ ") for line in lines), "a console block holds '$ ' lines only"
        return "\n".join(line[2:] for line in lines)

    def _shell(self, commands: str, allowed: tuple[int, ...] = (0,)) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=self.folder,
            env={**os.environ, "PATH": path, "COLUMNS": "80"},
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode in allowed, f"{commands}\nleft with {done.returncode}: {done.stderr}"
        return done.stdout

    def _compare(self, block: Block) -> None:
        same = says(block.body, self.printed)
        assert same, f"line {block.line} says\n{block.body}\nbut what is printed is\n{self.printed}"

    def _data(self, block: Block) -> None:
        if block.title:
            (self.folder / block.title).write_text(block.body)
        if block.language == "json":
            json.loads(block.body)
        elif block.language == "yaml":
            self._workflow(yaml.safe_load(block.body))
        else:
            self._read_settings(block)

    def _read_settings(self, block: Block) -> None:
        """Settings are read as the command reads them."""
        self.settings += 1
        place = self.folder / f"settings-{self.settings}"
        place.mkdir()
        (place / (PROJECT if "tool" in tomllib.loads(block.body) else NAME)).write_text(block.body)
        assert find_settings(place).path is not None

    def _workflow(self, found: object) -> None:
        """Try the steps of a workflow that call the command; a closed gate is an answer, too."""
        jobs = found.get("jobs", {}) if isinstance(found, dict) else {}
        for step in [step for job in jobs.values() for step in job["steps"]]:
            command = step.get("run", "")
            if re.search(r"^\s*itrust ", command, re.MULTILINE):
                self._shell(command, (0, GATE_CLOSED) if "--gate" in command else (0,))


class Rewriter(doctest.DocTestRunner):
    """Runs the doctests of a page and keeps what they print instead of what they should."""

    def __init__(self) -> None:
        super().__init__(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        self.printed: list[tuple[str, str]] = []

    def report_failure(self, out, test, example, got) -> None:  # noqa: ARG002
        indent = " " * example.indent
        new = "".join(f"{indent}{line}\n" for line in got.splitlines())
        old = "".join(f"{indent}{line}\n" for line in example.want.splitlines())
        source = "".join(f"{indent}{line}\n" for line in _prompted(example.source))
        self.printed.append((source + old, source + new))

    def report_unexpected_exception(self, out, test, example, exc_info) -> None:  # noqa: ARG002
        raise exc_info[1]


def _prompted(source: str) -> list[str]:
    first, *rest = source.splitlines()
    return [f">>> {first}", *(f"... {line}" for line in rest)]


def rewritten(page: Path, folder: Path) -> str:
    """The text of a page with what its blocks and doctests print now."""
    text = page.read_text()
    runner, last = Runner(folder), None
    for block in blocks_of(text):
        follows = block.language == "text" and block.follows and last is not None and last.is_run
        if follows and not says(block.body, runner.printed):
            text = text.replace(f"```text\n{block.body}```", f"```text\n{runner.printed}```", 1)
        elif block.language in (("python",) if page == README else RUN + DATA):
            runner.run(block)  # commands of the README are for the reader's own files
        last = block
    doctests = Rewriter()
    doctests.run(doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0))
    for old, new in doctests.printed:
        text = text.replace(old, new, 1)
    return text


def pictures_of_the_code(text: str) -> list[str]:
    """Pictures that a page shows and that its own code makes."""
    return [name for name in PICTURE.findall(text) if f'savefig("{name}"' in text]


def look_alike(old: Path, new: Path) -> bool:
    """Whether two pictures show the same; fonts may differ a little."""
    first, second = mpl.image.imread(old), mpl.image.imread(new)
    return first.shape == second.shape and bool(np.abs(first - second).mean() < 0.01)


def keep_pictures(page: Path, folder: Path) -> None:
    """Put pictures that the code of a page has made beside it, where they are new or differ."""
    for name in pictures_of_the_code(page.read_text()):
        shown = page.parent / name
        if not shown.exists() or not look_alike(shown, folder / name):
            shutil.copyfile(folder / name, shown)
            print(f"drawn: {shown.relative_to(ROOT)}")


def main(pages: list[str]) -> None:
    """Rewrite pages, by default all of docs and the README, and their pictures."""
    mpl.use("Agg")
    os.environ.update(QUIET)
    chosen = [Path(page) for page in pages] or [*sorted(DOCS.rglob("*.md")), README]
    here = Path.cwd()
    for page in [path.resolve() for path in chosen]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            if page == README:  # whose commands and code take the rows of the demo
                demo.write_rows(Path("homes.csv"))
            for variable in STORE:
                os.environ.pop(variable, None)
            try:
                text = rewritten(page, Path(folder))
                keep_pictures(page, Path(folder))
            finally:
                os.chdir(here)
        if text != page.read_text():
            page.write_text(text)
            print(f"rewritten: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
