"""How an engine evaluates one kernel for several classes, whose residuals share its features."""

from __future__ import annotations

from dataclasses import dataclass

from itrust._core import InputError
from itrust.engines.auto import Auto
from itrust.engines.dask import Dask
from itrust.engines.factor import Factor
from itrust.engines.protocol import Engine
from itrust.engines.tiles import Tiles


@dataclass(frozen=True)
class SharedKernel:
    """How a kernel is evaluated that several classes share."""

    in_full: bool
    factor: Factor | None
    machines: Dask | None = None


def shared_kernel(engine: Engine) -> SharedKernel:
    """Tell how an engine evaluates a kernel of several classes; refuse those that cannot."""
    if isinstance(engine, Dask):
        # The default was not asked for: without it, numbers are those of engine="auto".
        return SharedKernel(False, None if engine.factor == Factor() else engine.factor, engine)
    if not isinstance(engine, Auto | Factor | Tiles):
        raise InputError(
            "several classes are tested with engine='auto', Tiles(), Factor() or Dask(client), "
            "not {kind}(): a row's class is drawn once for all checks, which other engines are "
            "not told how to do",
            argument="engine",
            value=engine,
            details={"kind": type(engine).__name__},
        )
    factor = engine if isinstance(engine, Factor) else None
    return SharedKernel(isinstance(engine, Tiles), factor)
