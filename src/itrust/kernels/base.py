"""Kernels as small immutable values that compose: `a * b`, `a + b`, `a.on("income")`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from itrust._core import InputError, did_you_mean, listed
from itrust.data import Column
from itrust.kernels.grams import Gram, SumGram, product


class Kernel(ABC):
    """A positive semi-definite function of two rows of the columns it is applied to."""

    @property
    @abstractmethod
    def supremum(self) -> float:
        """The largest value the kernel can take; infinity where there is none."""

    @abstractmethod
    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        """Bind the kernel to columns; rules must have been resolved to numbers before."""

    @property
    def reads_columns(self) -> bool:
        """Whether the value depends on the columns at all."""
        return True

    @property
    def is_positional(self) -> bool:
        """Whether only the position of a row counts, so that other points have no value."""
        return False

    def resolve(self, columns: Sequence[Column]) -> Kernel:  # noqa: ARG002  most have no rule
        """Replace width rules by the numbers they give on these columns."""
        return self

    def widened(self, factor: float) -> Kernel:  # noqa: ARG002  most have no width
        """Multiply the widths, where there are any."""
        return self

    def on(self, *names: str) -> Kernel:
        """Apply the kernel to the named covariates only."""
        if not names:
            raise InputError("on needs a name, as in .on('age')")
        for name in names:
            if not isinstance(name, str):
                raise InputError(
                    f"on takes names one by one, as in .on('age', 'sex'), not {name!r}"
                )
        return On(self, names)

    def describe(self, names: Sequence[str]) -> str:  # noqa: ARG002  most do not need them
        """The kernel and its settings for people, applied to the columns of these names."""
        return repr(self)

    def __mul__(self, other: Kernel) -> Kernel:
        return Product((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __add__(self, other: Kernel) -> Kernel:
        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def to_dict(self) -> dict[str, Any]:
        """Name and settings, ready for JSON."""
        settings = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return {"kernel": type(self).__name__, **settings}


def _plain(value: Any) -> Any:
    if isinstance(value, Kernel):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, int | float | str) else repr(value)


@dataclass(frozen=True)
class Product(Kernel):
    """The product of kernels."""

    factors: tuple[Kernel, ...]

    @property
    def supremum(self) -> float:
        """Product of the suprema."""
        return math.prod(factor.supremum for factor in self.factors)

    @property
    def reads_columns(self) -> bool:
        """Whether any factor does."""
        return any(factor.reads_columns for factor in self.factors)

    @property
    def is_positional(self) -> bool:
        """Whether any factor is."""
        return any(factor.is_positional for factor in self.factors)

    def resolve(self, columns: Sequence[Column]) -> Kernel:
        """Resolve every factor."""
        return Product(tuple(factor.resolve(columns) for factor in self.factors))

    def widened(self, factor: float) -> Kernel:
        """Widen every factor."""
        return Product(tuple(part.widened(factor) for part in self.factors))

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        """Bind every factor."""
        return product([factor.gram(left, right) for factor in self.factors])

    def describe(self, names: Sequence[str]) -> str:
        """Every factor in turn."""
        return "; ".join(factor.describe(names) for factor in self.factors)

    def __repr__(self) -> str:
        return " * ".join(f"({f!r})" if isinstance(f, Sum) else repr(f) for f in self.factors)


@dataclass(frozen=True)
class Sum(Kernel):
    """The sum of kernels."""

    terms: tuple[Kernel, ...]

    @property
    def supremum(self) -> float:
        """Sum of the suprema."""
        return math.fsum(term.supremum for term in self.terms)

    @property
    def reads_columns(self) -> bool:
        """Whether any term does."""
        return any(term.reads_columns for term in self.terms)

    @property
    def is_positional(self) -> bool:
        """Whether any term is."""
        return any(term.is_positional for term in self.terms)

    def resolve(self, columns: Sequence[Column]) -> Kernel:
        """Resolve every term."""
        return Sum(tuple(term.resolve(columns) for term in self.terms))

    def widened(self, factor: float) -> Kernel:
        """Widen every term."""
        return Sum(tuple(part.widened(factor) for part in self.terms))

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        """Bind every term."""
        return SumGram(tuple(term.gram(left, right) for term in self.terms))

    def __repr__(self) -> str:
        return " + ".join(repr(term) for term in self.terms)


@dataclass(frozen=True)
class On(Kernel):
    """A kernel applied to named covariates only; write `kernel.on("income")`."""

    kernel: Kernel
    names: tuple[str, ...]

    @property
    def supremum(self) -> float:
        """That of the kernel inside."""
        return self.kernel.supremum

    @property
    def is_positional(self) -> bool:
        """As the kernel inside."""
        return self.kernel.is_positional

    def resolve(self, columns: Sequence[Column]) -> Kernel:
        """Resolve on the named columns."""
        return On(self.kernel.resolve(self._chosen(columns)), self.names)

    def widened(self, factor: float) -> Kernel:
        """Widen the kernel inside."""
        return On(self.kernel.widened(factor), self.names)

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        """Bind to the named columns."""
        return self.kernel.gram(self._chosen(left), self._chosen(right))

    def to_dict(self) -> dict[str, Any]:
        """Settings of the kernel inside and the covariates it sees."""
        return {**self.kernel.to_dict(), "on": list(self.names)}

    def _chosen(self, columns: Sequence[Column]) -> list[Column]:
        by_name = {column.name: column for column in columns}
        for name in self.names:
            if name not in by_name:
                hint = did_you_mean(name, list(by_name)) if by_name else "it has no covariates"
                raise InputError(f"the kernel names {name!r}, which the sample lacks; {hint}")
        return [by_name[name] for name in self.names]

    def describe(self, names: Sequence[str]) -> str:  # noqa: ARG002  it has its own
        """The kernel inside, on its own covariates."""
        text = self.kernel.describe(self.names)
        return text if self.names[0] in text else f"{text} on {', '.join(self.names)}"

    def __repr__(self) -> str:
        inner = (
            f"({self.kernel!r})" if isinstance(self.kernel, Product | Sum) else repr(self.kernel)
        )
        return f"{inner}.on({listed(self.names, most=99)})"
