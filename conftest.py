"""What tests and pages share: real data when it is there; pages run in a folder of their own."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def data_folder() -> Path:
    """The folder with the real files; a missing one is a visible skip, in CI a failure."""
    folder = os.environ.get("ITRUST_DATA")
    if folder:
        return Path(folder)
    message = "set ITRUST_DATA to the folder with the real data sets"
    if os.environ.get("ITRUST_REQUIRE_DATA") == "1":
        pytest.fail(message)
    pytest.skip(message)


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
    if ">>> " in (text := page.read_text()) and "it.datasets." in text:
        request.getfixturevalue("data_folder")
