"""What tests and pages share: real data when it is there; pages run in a folder of their own."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

# Files that only the folder of the maintainers has; `make data` fetches the others.
PREDICTIONS = ("compas-fig4-calibration.csv", "compas-fig4-test.csv")
KEPT_BY_US = (*PREDICTIONS, "nhanes2.csv")
# Reasons of skips that are not ours, in words of ours.
REASONS = (
    (re.compile(r"could not import '(\w+)"), r"needs the package \1"),
    (re.compile(r"comes with the test extra"), "needs a package of the test extra"),
    (re.compile(r"ITRUST_NO_BROWSER=1"), "needs Chromium, which ITRUST_NO_BROWSER=1 goes without"),
)


@pytest.fixture
def data_folder() -> Path:
    """The folder with the real files; a missing one is a counted skip, in CI a failure."""
    folder = os.environ.get("ITRUST_DATA")
    if not folder:
        _without("needs ITRUST_DATA, a folder of public data sets (`make data` fetches them)")
    return Path(folder)


@pytest.fixture
def data_file() -> Callable[[str], Path]:
    """Files that no loader can fetch, by name; a missing one is a counted skip, too."""
    return kept_file


def kept_file(name: str) -> Path:
    """A file of the folder that ITRUST_DATA names, or a skip."""
    path = Path(os.environ.get("ITRUST_DATA") or "nowhere") / name
    if not path.is_file():
        _without(f"needs {name} in ITRUST_DATA, which no loader fetches")
    return path


def _without(reason: str) -> None:
    if os.environ.get("ITRUST_REQUIRE_DATA") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count aloud what was not tested, by what was missing, however quiet the run is."""
    counts: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        # Where the head of a file skips, its tests are not known.
        kind = "test" if isinstance(report, pytest.TestReport) else "whole file"
        counts[_reason(report), kind] += 1
    for (reason, kind), count in sorted(counts.items()):
        terminalreporter.write_line(f"{count} {kind}{'s' * (count > 1)} skipped: {reason}")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why a test was skipped; the same words for the same want."""
    told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    for pattern, words in REASONS:
        if found := pattern.search(told):
            return found.expand(words)
    return told.removeprefix("Skipped: ")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pages of the documentation are slow: each runs from its first line to its last."""
    for item in items:
        if item.path.suffix == ".md":
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _pages_leave_no_files(request: pytest.FixtureRequest) -> None:
    """Doctests of Markdown pages write into a temporary folder, and draw without a window."""
    page = request.node.path
    if page.suffix != ".md":
        return
    os.environ.setdefault("MPLBACKEND", "Agg")
    folder = request.getfixturevalue("tmp_path")
    request.getfixturevalue("monkeypatch").chdir(folder)
    if ">>> " in (text := page.read_text()):
        find_data(text, request)


@pytest.fixture
def page_data(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Makes sure of the data sets that the code of a page reads, or skips."""
    return lambda text: find_data(text, request)


def find_data(text: str, request: pytest.FixtureRequest) -> None:
    """Skip a page whose data sets are not there."""
    if "it.datasets." in text:
        request.getfixturevalue("data_folder")
    for name in KEPT_BY_US:
        if name in text:
            kept_file(name)
