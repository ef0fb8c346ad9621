"""Packages that load a name when it is first asked for.

Such a package writes what it offers once, as imports under `if TYPE_CHECKING:`, where editors and
mypy read them; these lines are also the table of what stands where.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import get_data


def loaded_later(package: str) -> Callable[[str], object]:
    """Make the `__getattr__` of a package, which loads each name when it is first asked for."""

    def ask(name: str) -> object:
        module = modules_by_name(package).get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if module == package:  # a module of its own
            value: object = import_module(f"{package}.{name}")
        else:
            value = getattr(__import__(module, fromlist=[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return ask


@cache
def modules_by_name(package: str) -> dict[str, str]:
    """Where each name comes from that a package imports for type checkers."""
    lines = ast.parse(get_data(package, "__init__.py") or b"").body
    (guarded,) = (line.body for line in lines if isinstance(line, ast.If))
    imports = (line for line in guarded if isinstance(line, ast.ImportFrom))
    return {alias.name: str(line.module) for line in imports for alias in line.names}
