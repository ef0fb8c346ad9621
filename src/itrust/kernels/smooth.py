"""Kernels on numbers: RBF, Laplace, Matern, rational quadratic, linear; one width a column.

With missing values (`missing="level"`) each is multiplied by a match of the missing
indicators, and a missing value adds no distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from itrust._core import FloatArray, InputError, counted, listed
from itrust.data import Column, share_codes
from itrust.kernels.base import Kernel, Median, WidthRule
from itrust.kernels.grams import GaussianGram, Gram, MadeGram, MatchGram, distances, product

Widths = float | tuple[float, ...]


@dataclass(frozen=True)
class SmoothKernel(Kernel):
    """A kernel on numbers divided by their widths.

    Parameters
    ----------
    width : float, sequence of float or WidthRule
        One width for all columns, one for each, or a rule that chooses it from the values of each
        column; by default `Median()`, the median distance between two rows.
    """

    width: Any = field(default_factory=Median)
    supremum = 1.0
    _metric: ClassVar[Literal["cityblock", "euclidean"]] = "euclidean"

    def __post_init__(self) -> None:
        if isinstance(self.width, WidthRule):
            return
        try:
            widths = np.asarray(self.width, dtype=float)
        except (TypeError, ValueError):
            widths = np.array(np.nan)
        if widths.ndim > 1 or not (np.isfinite(widths) & (widths > 0)).all():
            raise InputError(
                "a kernel width must be a positive, finite number, one for each column, or a rule "
                "such as Median(), not {value}",
                argument="width",
                value=self.width,
            )
        plain = float(widths) if widths.ndim == 0 else tuple(float(width) for width in widths)
        object.__setattr__(self, "width", plain)

    def resolve(self, columns: Sequence[Column]) -> Self:
        self._check(columns)
        rule = self.width
        if not isinstance(rule, WidthRule):
            return self
        return replace(self, width=tuple(rule(c.values[~c.missing]) for c in columns))

    def widened(self, factor: float) -> Self:
        return replace(self, width=_each(self.width, lambda width: factor * width))

    def gram(self, left: Sequence[Column], right: Sequence[Column]) -> Gram:
        self._check(left)
        scaled = [np.column_stack(self._scaled(columns)) for columns in (left, right)]
        smooth = self._smooth(*scaled)
        if not any(column.missing.any() for column in (*left, *right)):
            return smooth
        flags = [
            [Column(c.name, "boolean", c.missing.astype(float)) for c in side]
            for side in (left, right)
        ]
        return product([smooth, MatchGram(*share_codes(*flags), otherwise=0.0)])

    def _smooth(self, left: FloatArray, right: FloatArray) -> Gram:
        """The matrix on features divided by their widths."""

        def entries(a: FloatArray, b: FloatArray) -> FloatArray:
            return self._profile(distances(a, b, self._metric))

        return MadeGram(left, right, entries, lambda a: self._profile(np.zeros(len(a))))

    def _profile(self, distance: FloatArray) -> FloatArray:
        """The kernel's value at a distance, for kernels that depend on nothing else."""
        raise NotImplementedError

    def _scaled(self, columns: Sequence[Column]) -> list[FloatArray]:
        width = _each(self.width, float)
        widths = width if isinstance(width, tuple) else (width,) * len(columns)
        return [_finite(c.values) / w for c, w in zip(columns, widths, strict=True)]

    def _check(self, columns: Sequence[Column]) -> None:
        name = type(self).__name__
        for column in columns:
            if column.is_category:
                raise InputError(
                    f"{name} needs numbers, but {{column}} is a category; give each covariate its "
                    "kernel, such as x={{column}: Delta(), ...}",
                    argument="x",
                    column=column.name,
                )
        if isinstance(self.width, tuple) and len(self.width) != len(columns):
            widths = f"{name} has {counted(len(self.width), 'width')}"
            problem = f"{widths} for {counted(len(columns), 'column')}: {{names}}"
            names = {"names": listed([column.name for column in columns])}
            raise InputError(problem, argument="width", value=self.width, details=names)

    def describe(self, names: Sequence[str]) -> str:
        if not isinstance(self.width, tuple) or len(self.width) != len(names):
            return repr(self)
        if len(names) == 1:
            return f"{type(self).__name__} of width {_short(self.width)}"
        widths = [f"{_short(w)} for {n}" for n, w in zip(names, self.width, strict=True)]
        return f"{type(self).__name__} of width {', '.join(widths)}"

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={_short(v)}" for k, v in vars(self).items())
        return f"{type(self).__name__}({settings})"


def _finite(values: FloatArray) -> FloatArray:
    """The values, 0 where one is missing; `nan_to_num` costs more than to look."""
    return values if np.isfinite(values).all() else np.nan_to_num(values)


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return _short(value[0]) if len(value) == 1 else f"[{', '.join(map(_short, value))}]"
    if isinstance(value, float):
        return f"{value:.0f}" if 1e4 <= value < 1e9 else f"{value:.4g}"
    return repr(value)


@dataclass(frozen=True, repr=False)
class RBF(SmoothKernel):
    """Gaussian kernel exp(-sum_j (x_j - x'_j)^2 / (2 width_j^2)).

    >>> RBF.from_gamma(25.0).width
    0.1414213562373095
    >>> RBF(0.1).gamma
    49.99999999999999
    """

    @classmethod
    def from_gamma(cls, gamma: float | Sequence[float]) -> Self:
        """Make the kernel from scikit-learn's convention exp(-gamma d^2).

        The width of a column is 1 / sqrt(2 gamma).

        Parameters
        ----------
        gamma : float or sequence of float
            One for all columns or one for each, above 0.

        Returns
        -------
        RBF
            The kernel with these widths.
        """
        return cls(1 / np.sqrt(2 * _positive_gamma(gamma)))

    @property
    def gamma(self) -> Widths:
        """The widths as scikit-learn's gamma; an error while a rule stands for them."""
        return _each(self.width, lambda width: 1 / (2 * width**2), "gamma")

    def _smooth(self, left: FloatArray, right: FloatArray) -> Gram:
        return GaussianGram(left, right)


@dataclass(frozen=True, repr=False)
class Laplace(SmoothKernel):
    """exp(-sum_j |x_j - x'_j| / width_j): rougher than RBF, heavier tails.

    >>> Laplace.from_gamma(2.0).width
    0.5
    """

    _metric = "cityblock"

    @classmethod
    def from_gamma(cls, gamma: float | Sequence[float]) -> Self:
        """Make the kernel from scikit-learn's convention exp(-gamma |d|).

        Parameters
        ----------
        gamma : float or sequence of float
            One over the width, above 0. Several numbers are for as many columns, in the order in
            which the sample has them.

        Returns
        -------
        Laplace
            The kernel with these widths.
        """
        return cls(1 / _positive_gamma(gamma))

    @property
    def gamma(self) -> Widths:
        """The widths as scikit-learn's gamma; an error while a rule stands for them."""
        return _each(self.width, lambda width: 1 / width, "gamma")

    def _profile(self, distance: FloatArray) -> FloatArray:
        return np.exp(-distance)


@dataclass(frozen=True, repr=False)
class Matern(SmoothKernel):
    """Matern kernel of smoothness nu = 3/2 or 5/2 of the scaled Euclidean distance r.

    nu = 3/2: (1 + a) exp(-a) with a = sqrt(3) r; nu = 5/2: (1 + a + a^2/3) exp(-a) with
    a = sqrt(5) r (Rasmussen and Williams 2006, eq. 4.17).

    Parameters
    ----------
    nu : {1.5, 2.5}
        Smoothness: differentiable once or twice.
    """

    nu: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu not in (1.5, 2.5):
            problem = "Matern has nu = 1.5 or 2.5, not {value}"
            raise InputError(problem, argument="nu", value=self.nu)

    def _profile(self, distance: FloatArray) -> FloatArray:
        a = math.sqrt(2 * self.nu) * distance
        return (1 + a if self.nu == 1.5 else 1 + a + a**2 / 3) * np.exp(-a)


@dataclass(frozen=True, repr=False)
class RationalQuadratic(SmoothKernel):
    """(1 + r^2 / (2 alpha))^(-alpha) of the scaled distance r: a mixture of RBF widths.

    Parameters
    ----------
    alpha : float
        The smaller, the more widths are mixed, above 0; infinitely large it would be RBF.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.alpha < math.inf:
            problem = "RationalQuadratic needs alpha > 0, not {value}"
            raise InputError(problem, argument="alpha", value=self.alpha)

    def _profile(self, distance: FloatArray) -> FloatArray:
        return (1 + distance**2 / (2 * self.alpha)) ** -self.alpha


@dataclass(frozen=True, repr=False)
class Linear(SmoothKernel):
    """sum_j x_j x'_j / width_j^2, on values as they are: it has no supremum.

    A missing value counts as 0 here: rows that lack every column are compared with no row.

    Parameters
    ----------
    width : float, sequence of float or WidthRule
        What the values are divided by; 1 by default.
    """

    width: Any = 1.0
    supremum = math.inf

    def _smooth(self, left: FloatArray, right: FloatArray) -> Gram:
        return MadeGram(left, right, lambda a, b: a @ b.T, lambda a: np.square(a).sum(axis=1))


def _positive_gamma(gamma: float | Sequence[float]) -> FloatArray:
    values = np.asarray(gamma, dtype=float)
    if (np.isfinite(values) & (values > 0)).all():
        return values
    told = "{argument} must be positive and finite, not {value}"
    raise InputError(told, argument="gamma", value=gamma)


def _each(width: Any, convert: Callable[[float], float], what: str = "width") -> Widths:
    """Convert the width of each column, or the one of all; refuse a rule in their place."""
    if isinstance(width, WidthRule):
        problem = "{argument} is unknown until the rule {value} has seen the data, in resolve()"
        raise InputError(problem, argument=what, value=width)
    return tuple(map(convert, width)) if isinstance(width, tuple) else convert(width)
