"""`itrust check-json`: whether a file is the JSON of an audit, as this version writes it."""

from __future__ import annotations

from itrust._core import counted, printable
from itrust.auditing import read_json
from itrust.cli.console import answer
from itrust.cli.inputs import SPOOLED, standard_input
from itrust.cli.options import STANDARD


def check(file: str) -> None:
    """Say what the file holds; anything else is an `InputError`, which names the place."""
    found = read_json(standard_input() if file == STANDARD else file)
    name = SPOOLED if file == STANDARD else printable(file)
    told = f"{found['schema']} of itrust {printable(found['version'])}"
    answer(f"{name}: {told}, {counted(int(found['n']), 'row')}, {found['verdict']}")
