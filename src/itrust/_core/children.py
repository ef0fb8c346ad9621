"""The Python that runs this, for those who start a child with it."""

from __future__ import annotations

import sys


def interpreter() -> str | None:
    """Path of the interpreter; None where Python lives within a program of its own.

    Such a program, frozen or embedding, would take the arguments of a child for its own.
    """
    return None if getattr(sys, "frozen", False) else sys.executable or None
