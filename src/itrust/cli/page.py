"""The HTML page of an audit, made by `itrust.report` when one is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from itrust.audits import Audit


@dataclass(frozen=True)
class Made:
    """What makes an audit again."""

    command: str
    file: str
    sha256: str
    seed: int


def write_page(audit: Audit, path: Path, made: Made, min_cell: int) -> None:
    """Write the page to a file; the command gives a temporary one and moves it in place."""
    report: Any = import_module("itrust.report")
    report.write(audit, path, remade=report.Remade(**vars(made)), min_cell=min_cell)
