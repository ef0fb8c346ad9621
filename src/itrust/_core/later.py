"""Packages that load a name when it is first asked for.

Such a package writes what it offers once, as imports under `if TYPE_CHECKING:`, where editors and
mypy read them, and these lines are also the table of what stands where:

    if TYPE_CHECKING:
        from itrust.auditing.audits import Audit
    else:
        __getattr__ = loaded_later(__name__)
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec


def loaded_later(package: str) -> Callable[[str], object]:
    """Make the `__getattr__` of a package, which loads each name when it is first asked for.

    Examples
    --------
    >>> ask = loaded_later("itrust.tasks")
    >>> ask("Task").__module__
    'itrust.tasks.expressions'
    """

    def ask(name: str) -> object:
        places = names_and_places(package)
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = _loaded(package, *places[name])
        setattr(sys.modules[package], name, found)
        return found

    return ask


def _loaded(package: str, module: str, name: str) -> object:
    if module == package:  # a module of its own
        return import_module(f"{module}.{name}")
    return getattr(__import__(module, fromlist=[name]), name)


@cache
def names_and_places(package: str) -> dict[str, tuple[str, str]]:
    """What a package imports for type checkers: by name, the module and the name there."""
    return {
        alias.asname or alias.name: (str(line.module), alias.name)
        for line in _guarded(ast.parse(_source(package)))
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }


def _guarded(tree: ast.Module) -> Iterator[ast.stmt]:
    for part in tree.body:
        if isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING":
            yield from part.body


def _source(package: str) -> str:
    spec = find_spec(package)
    text = getattr(spec and spec.loader, "get_source", lambda _: None)(package)
    if text is None:
        raise ImportError(f"{package} loads its names by its source, which is not installed")
    return str(text)
