"""Kernels and nulls that a stream of chunks cannot serve."""

from __future__ import annotations

from itrust._core import InputError
from itrust.kernels import LocalKernel
from itrust.nulls import Null, RowwiseNull, SimulatedNull


def what_needs_all_rows(kernel: LocalKernel, null: Null | None) -> str | None:
    """What about a test rules a stream of chunks out, if anything."""
    if kernel.is_positional:
        return "a precomputed matrix"
    whole = isinstance(null, SimulatedNull) and not isinstance(null, RowwiseNull)
    return f"{type(null).__name__}()" if whole else None


def refuse_what_needs_all_rows(kernel: LocalKernel, null: Null | None) -> None:
    """Refuse kernels and nulls that need all rows at once."""
    needy = what_needs_all_rows(kernel, null)
    if needy:
        raise InputError(
            "{needy} needs all rows at once; use a Sample in memory (scan.load()) with "
            "itrust.engines.Tiles()",
            argument="engine",
            details={"needy": needy},
        )
