"""`LocalKernel`: a kernel on the prediction times a kernel on the covariates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from itrust._core import InputError, listed
from itrust.data import Column, Points
from itrust.kernels.base import Compound, Constant, Delta, Kernel, Median, On
from itrust.kernels.grams import Gram, product
from itrust.kernels.smooth import RBF


@dataclass(frozen=True)
class LocalKernel:
    """A kernel on the prediction times a kernel on the covariates.

    P((f, x), (f', x')) = k(f, f') l(x, x').

    Parameters
    ----------
    prob : Kernel, optional
        k, on the prediction. Default: RBF at the median distance between predictions.
    x : Kernel or mapping of str to Kernel, optional
        l. One kernel sees all covariates; a mapping gives a kernel to each covariate by name, and
        these are multiplied. Default: RBF for numbers and dates at the median distance times the
        square root of their number (so that the joint distance stays comparable), Delta for
        categories and booleans. `Constant()` gives the global calibration error (KCE).

    Examples
    --------
    >>> import itrust as it
    >>> from itrust.kernels import RBF, Delta, LocalKernel
    >>> s = it.Sample([0, 1, 1], [0.2, 0.5, 0.9], {"age": [30, 40, 60], "sex": ["f", "m", "f"]})
    >>> LocalKernel(prob=RBF(0.1), x={"age": RBF(5), "sex": Delta(0.2)})
    LocalKernel(prob=RBF(width=0.1), x=RBF(width=5).on('age') * Delta(0.2).on('sex'))
    >>> LocalKernel().resolve(s.points)
    LocalKernel(prob=RBF(width=0.4), x=RBF(width=20).on('age') * Delta().on('sex'))
    """

    prob: Kernel | None = None
    x: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.x, Mapping):
            if not self.x:
                problem = "x={} names no covariate; use x=Constant() to leave all out"
                raise InputError(problem, argument="x", value=self.x)
            parts = tuple(_checked(k, f"x[{name!r}]").on(name) for name, k in self.x.items())
            object.__setattr__(self, "x", _product(parts))
        for part, where in ((self.prob, "prob"), (self.x, "x")):
            if part is not None:
                _checked(part, where)

    @property
    def supremum(self) -> float:
        """The largest value of the product."""
        return math.prod(part.supremum for part in (self.prob, self.x) if part is not None)

    @property
    def is_positional(self) -> bool:
        """Whether a part knows rows by position only."""
        return any(part.is_positional for part in (self.prob, self.x) if part is not None)

    def resolve(self, points: Points, *, partial: bool = False) -> LocalKernel:
        """Fill in defaults and replace rules for widths by numbers, from (p, x) alone.

        Parameters
        ----------
        points : Points
            Predictions and covariates of the rows; labels are not among them.
        partial : bool
            Whether the kernel may leave covariates out; by default it must name each of them.

        Returns
        -------
        LocalKernel
            With explicit kernels and widths.
        """
        prob = RBF() if self.prob is None else self.prob
        x = default_covariate_kernel(points.columns) if self.x is None else self.x
        if not points.columns and x.reads_columns:
            problem = "{value} needs covariates, but the sample has none; use x=Constant()"
            raise InputError(problem, argument="x", value=x)
        resolved = LocalKernel(prob.resolve([points.prediction]), x.resolve(points.columns))
        unused = [c.name for c in points.columns if c.name not in _named(x, points.columns)]
        if unused and not partial:
            raise InputError(
                "the kernel says nothing about {unused}; give it a kernel (Constant() to leave it "
                "out of the test)",
                argument="x",
                value=unused,
                unused=listed(unused),
            )
        return resolved

    def widened(self, factor: float) -> LocalKernel:
        """Multiply all widths of a resolved kernel.

        Parameters
        ----------
        factor : float
            What to multiply by, on predictions and covariates alike; above 1 the test looks for
            smoother biases.

        Returns
        -------
        LocalKernel
            The kernel with the new widths.
        """
        if self.prob is None or self.x is None:
            raise InputError("LocalKernel must be resolved before its widths can change")
        return LocalKernel(self.prob.widened(factor), self.x.widened(factor))

    def gram(self, points: Points, other: Points | None = None) -> Gram:
        """Bind a resolved kernel to points, or to two sets of points.

        Parameters
        ----------
        points : Points
            Predictions and covariates of n rows.
        other : Points, optional
            Those of m other rows, with the same covariates; default: the same rows.

        Returns
        -------
        Gram
            The matrix of the kernel's values, (n, n) or (n, m), made in blocks.
        """
        other = points if other is None else other
        if self.prob is None or self.x is None:
            raise InputError("LocalKernel must be resolved before it is used")
        predictions = [points.prediction], [other.prediction]
        # Without covariates x reads no column, and any will do to count the rows.
        covariates = (points.columns, _aligned(points, other)) if points.columns else predictions
        return product([self.prob.gram(*predictions), self.x.gram(*covariates)])

    def to_dict(self) -> dict[str, Any]:
        """Give both parts with their settings, ready for JSON.

        Returns
        -------
        dict
            `prob` and `x`, each as `Kernel.to_dict` gives it; None stands for the default.
        """
        return {
            "prob": None if self.prob is None else self.prob.to_dict(),
            "x": None if self.x is None else self.x.to_dict(),
        }


def _aligned(points: Points, other: Points) -> tuple[Column, ...]:
    """The columns of `other` in the order of `points`; refused where names or kinds differ."""
    if other is points:
        return points.columns
    by_name = {column.name: column for column in other.columns}
    for column in points.columns:
        match = by_name.get(column.name)
        if match is None or match.is_category != column.is_category:
            told = "is missing" if match is None else f"is a {match.kind}, not a {column.kind}"
            problem = "covariate {column} {told} in the other sample"
            raise InputError(problem, argument="other", column=column.name, told=told)
    return tuple(by_name[column.name] for column in points.columns)


def default_covariate_kernel(
    columns: Sequence[Column], smooth: Kernel | None = None, exact: Sequence[str] = ()
) -> Kernel:
    """Choose a kernel for numbers, and exact matches for all else and for those that are named.

    Without a kernel for numbers it is the one that `LocalKernel` takes by default.
    """
    numbers = [c.name for c in columns if c.kind in ("number", "date") and c.name not in exact]
    smooth = RBF(Median(math.sqrt(len(numbers) or 1))) if smooth is None else smooth
    parts = [smooth.on(*numbers)] if numbers else []
    return _product([*parts, *(Delta().on(c.name) for c in columns if c.name not in numbers)])


def _product(parts: Sequence[Kernel]) -> Kernel:
    if not parts:
        return Constant()
    return parts[0] if len(parts) == 1 else Compound(tuple(parts))


def _named(kernel: Kernel, columns: Sequence[Column]) -> set[str]:
    """Names of the covariates a kernel speaks about; all of them when it names none."""
    if isinstance(kernel, On):
        return set(kernel.names)
    if isinstance(kernel, Compound):
        return set().union(*(_named(part, columns) for part in kernel.parts))
    return {column.name for column in columns}


def _checked(part: Any, where: str) -> Kernel:
    if not isinstance(part, Kernel):
        problem = "{argument} must be a kernel such as RBF(0.1) or Delta(), not {value}"
        raise InputError(problem, argument=where, value=part)
    return part
