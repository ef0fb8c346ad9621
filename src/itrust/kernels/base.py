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
    """A positive semi-definite function of two rows of the columns it is applied to.

    Kernels multiply (`a * b`), add up (`a + b`) and can be given to some covariates alone
    (`a.on("income")`).
    """

    @property
    @abstractmethod
    def supremum(self) -> float:
        """The largest value that the kernel can take; infinity where there is none."""

    @abstractmethod
    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        """Bind the kernel to columns; rules must have been resolved to numbers before.

        Parameters
        ----------
        left : sequence of Column
            The columns of n rows.
        right : sequence of Column
            The same columns of m rows.

        Returns
        -------
        Gram
            The (n, m) matrix of the kernel's values, which is made in blocks.
        """

    @property
    def reads_columns(self) -> bool:
        """Whether the value depends on the columns at all."""
        return True

    @property
    def is_positional(self) -> bool:
        """Whether only the position of a row counts, so that other points have no value."""
        return False

    def resolve(self, columns: Sequence[Column]) -> Kernel:  # noqa: ARG002  most have no rule
        """Replace rules that choose widths by the numbers that they give on some columns.

        Parameters
        ----------
        columns : sequence of Column
            The columns that the kernel is applied to; labels are not among them.

        Returns
        -------
        Kernel
            The kernel with explicit widths; itself where there is no rule.
        """
        return self

    def widened(self, factor: float) -> Kernel:  # noqa: ARG002  most have no width
        """Multiply all widths.

        Parameters
        ----------
        factor : float
            What to multiply by; above 1 the kernel compares rows that are further apart.

        Returns
        -------
        Kernel
            The wider kernel; itself where there are no widths.
        """
        return self

    def on(self, *names: str) -> Kernel:
        """Apply the kernel to some covariates only.

        Parameters
        ----------
        *names : str
            Names of the covariates.

        Returns
        -------
        Kernel
            The kernel that sees only these covariates.
        """
        if not names:
            raise InputError("on needs a name, as in .on('age')", argument="names", value=names)
        for name in names:
            if not isinstance(name, str):
                raise InputError(
                    "on takes names one by one, as in .on('age', 'sex'), not {value}",
                    argument="names",
                    value=name,
                )
        return On(self, names)

    def describe(self, names: Sequence[str]) -> str:  # noqa: ARG002  most do not need them
        """Give the kernel and its settings in words.

        Parameters
        ----------
        names : sequence of str
            Names of the columns that the kernel is applied to.

        Returns
        -------
        str
            One line.
        """
        return repr(self)

    def __mul__(self, other: Kernel) -> Kernel:
        return Product((self, other)) if isinstance(other, Kernel) else NotImplemented

    def __add__(self, other: Kernel) -> Kernel:
        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented

    def to_dict(self) -> dict[str, Any]:
        """Give the name and the settings, ready for JSON.

        Returns
        -------
        dict
            The name under "kernel", then the settings by their names.
        """
        settings = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return {"kernel": type(self).__name__, **settings}


def _plain(value: Any) -> Any:
    if isinstance(value, Kernel):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, int | float | str) else repr(value)


class Compound(Kernel):
    """A kernel that is made of others."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that it is made of."""

    @property
    def reads_columns(self) -> bool:
        return any(part.reads_columns for part in self.parts)

    @property
    def is_positional(self) -> bool:
        return any(part.is_positional for part in self.parts)

    def resolve(self, columns: Sequence[Column]) -> Kernel:
        return self._of(tuple(part.resolve(columns) for part in self.parts))

    def widened(self, factor: float) -> Kernel:
        return self._of(tuple(part.widened(factor) for part in self.parts))

    @abstractmethod
    def _of(self, parts: tuple[Kernel, ...]) -> Kernel:
        """The same combination of other parts."""


@dataclass(frozen=True)
class Product(Compound):
    """The product of kernels; write `a * b`.

    Rows are alike where every factor finds them alike.
    """

    factors: tuple[Kernel, ...]

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.factors

    def _of(self, parts: tuple[Kernel, ...]) -> Kernel:
        return Product(parts)

    @property
    def supremum(self) -> float:
        return math.prod(factor.supremum for factor in self.factors)

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        return product([factor.gram(left, right) for factor in self.factors])

    def describe(self, names: Sequence[str]) -> str:
        return "; ".join(factor.describe(names) for factor in self.factors)

    def __repr__(self) -> str:
        return " * ".join(f"({f!r})" if isinstance(f, Sum) else repr(f) for f in self.factors)


@dataclass(frozen=True)
class Sum(Compound):
    """The sum of kernels; write `a + b`.

    Rows are alike where any one of the terms finds them alike.
    """

    terms: tuple[Kernel, ...]

    def __repr__(self) -> str:
        return " + ".join(repr(term) for term in self.terms)

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        return SumGram(tuple(term.gram(left, right) for term in self.terms))

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.terms

    @property
    def supremum(self) -> float:
        return math.fsum(term.supremum for term in self.terms)

    def _of(self, parts: tuple[Kernel, ...]) -> Kernel:
        return Sum(parts)


@dataclass(frozen=True)
class On(Kernel):
    """A kernel applied to named covariates only; write `kernel.on("income")`.

    Other covariates make no difference to its value.
    """

    kernel: Kernel
    names: tuple[str, ...]

    @property
    def supremum(self) -> float:
        return self.kernel.supremum

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        return self.kernel.gram(self._chosen(left), self._chosen(right))

    @property
    def is_positional(self) -> bool:
        return self.kernel.is_positional

    def resolve(self, columns: Sequence[Column]) -> Kernel:
        return On(self.kernel.resolve(self._chosen(columns)), self.names)

    def widened(self, factor: float) -> Kernel:
        return On(self.kernel.widened(factor), self.names)

    def to_dict(self) -> dict[str, Any]:
        return {**self.kernel.to_dict(), "on": list(self.names)}

    def _chosen(self, columns: Sequence[Column]) -> list[Column]:
        by_name = {column.name: column for column in columns}
        for name in self.names:
            if name not in by_name:
                hint = did_you_mean(name, list(by_name)) if by_name else "it has no covariates"
                raise InputError(
                    "the kernel names {value}, which the sample lacks; {guess}",
                    argument="kernel",
                    value=name,
                    details={"guess": hint},
                )
        return [by_name[name] for name in self.names]

    def describe(self, names: Sequence[str]) -> str:  # noqa: ARG002  it has its own
        text = self.kernel.describe(self.names)
        return text if self.names[0] in text else f"{text} on {', '.join(self.names)}"

    def __repr__(self) -> str:
        inner = (
            f"({self.kernel!r})" if isinstance(self.kernel, Product | Sum) else repr(self.kernel)
        )
        return f"{inner}.on({listed(self.names, max_items=99)})"
