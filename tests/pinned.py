"""Records that depend on the version of a library are compared where that version is installed."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

PINS = Path(__file__).parents[1] / "constraints.txt"


def only_with_pinned(package: str) -> None:
    """Skip, visibly, where another minor version than that of constraints.txt is installed."""
    wanted = re.search(rf"^{package}==(\d+\.\d+)", PINS.read_text(), re.MULTILINE)[1]
    if not f"{version(package)}.".startswith(f"{wanted}."):
        pytest.skip(f"recorded with {package} {wanted}, not {version(package)}")
