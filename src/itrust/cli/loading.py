"""Modules are loaded without what the command has no use for: most of a small audit is loading."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec


class _NoPandas(MetaPathFinder):
    """Says that pandas is not there."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: object = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)
        return None


@contextmanager
def arrow_alone() -> Iterator[None]:
    """Let Arrow look for pandas now, in vain: files need none, and it takes long to load.

    Arrow looks once, when it first makes an array of NumPy. Whoever needs pandas later can load it
    as ever.
    """
    hiding = _NoPandas()
    sys.meta_path.insert(0, hiding)
    try:
        yield
        from pyarrow import array

        array([0]).to_numpy(zero_copy_only=False)
    finally:
        sys.meta_path.remove(hiding)


@contextmanager
def nothing_collected() -> Iterator[None]:
    """No garbage is looked for: loading leaves little, and looking takes a sixth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
