"""Packages that load a name when it is first asked for.

Such a package writes what it offers once, in its `__init__.pyi`, where editors and mypy read it;
these lines are also the table of what stands where.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import get_data


def offered(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package that loads its names later."""

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

    public = public_names(package)
    return ask, public.copy, public


@cache
def _stub(package: str) -> list[ast.stmt]:
    return ast.parse(get_data(package, "__init__.pyi") or b"").body


@cache
def modules_by_name(package: str) -> dict[str, str]:
    """Where each name comes from that a package offers."""
    imports = (line for line in _stub(package) if isinstance(line, ast.ImportFrom))
    return {alias.name: str(line.module) for line in imports for alias in line.names}


def public_names(package: str) -> list[str]:
    """The names for users, which tab completion offers."""
    lists = [line.value for line in _stub(package) if isinstance(line, ast.Assign)]
    return [name for names in lists for name in ast.literal_eval(names)]
