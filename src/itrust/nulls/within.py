"""Nulls that give the label's probability room around the prediction: what would overturn it.

A label of probability pi is 1{U < pi}, U uniform. Where pi may lie anywhere between lo and hi, a
sum of phi_i y_i is at most the sum of phi_i 1{U_i < hi_i} over phi_i > 0 and of phi_i 1{U_i < lo_i}
over the others: for every phi at once. So two label matrices of the same uniform numbers bound all
one-sided sums of every law inside the interval jointly.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from itrust._core import FloatArray, InputError
from itrust.nulls.base import Null

Bound = FloatArray | Callable[[FloatArray], FloatArray]


class IntervalNull(Null):
    """The label's probability lies anywhere between two bounds, a law of its own in every row.

    The p-value of `klce_test` is valid at every n for every such law: it compares sums of labels
    along many directions, each with the law that favours it most. Kernels and other quadratic
    forms do not take part, for they are not monotone in the labels. Rows must be independent.
    """

    exact: ClassVar[bool] = True

    @abstractmethod
    def bounds(self, p: FloatArray, rows: range | None = None) -> tuple[FloatArray, FloatArray]:
        """Give the interval of every row.

        Parameters
        ----------
        p : (n,) array of float
            The predicted probabilities.
        rows : range, optional
            Numbers of these rows in the whole; default: they are the whole.

        Returns
        -------
        tuple of two (n,) arrays
            The smallest and the largest probability of label 1.
        """

    def refuse_other_rows(self, n: int) -> None:
        """Refuse a sample that the bounds were not made for.

        Parameters
        ----------
        n : int
            Number of rows of the sample.
        """


class ReversibleNull(IntervalNull):
    """An interval null that also tells what labels with a violation leave open without it."""

    def origins(self, seen: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give the smallest and the largest probability without the violation.

        Parameters
        ----------
        seen : (n,) array of float
            Probabilities of label 1 with it.

        Returns
        -------
        tuple of two (n,) arrays
            All probabilities whose `bounds` hold `seen` lie between them. The first is a convex
            function of `seen` and the second a concave one, so that they hold for means, too.
            Unless a null says otherwise they are its `bounds`.
        """
        return self.bounds(seen)


@dataclass(frozen=True, eq=False)
class Within(IntervalNull):
    """The label's probability lies between bounds of one's own.

    Parameters
    ----------
    lo, hi : (n,) array of float, or callable
        The bounds of every row, or functions that make them from an array of predictions.

    Examples
    --------
    >>> import itrust as it
    >>> null = it.nulls.Within(lambda p: 0.8 * p, lambda p: 0.8 * p + 0.2)
    >>> lo, hi = null.bounds([0.1, 0.5])
    >>> lo.round(2).tolist(), hi.round(2).tolist()
    ([0.08, 0.4], [0.28, 0.6])
    """

    lo: Bound
    hi: Bound
    meaning: ClassVar[str] = "every label's probability anywhere between two bounds"

    def __post_init__(self) -> None:
        for argument in ("lo", "hi"):
            value = getattr(self, argument)
            if not callable(value):
                object.__setattr__(self, argument, _array(value, argument))

    def bounds(self, p: FloatArray, rows: range | None = None) -> tuple[FloatArray, FloatArray]:
        p = _array(p, "p")
        if rows is None:
            self.refuse_other_rows(p.size)
        first = 0 if rows is None else rows.start
        lo, hi = (self._one(name, p, first) for name in ("lo", "hi"))
        wrong = np.flatnonzero(lo > hi)
        if wrong.size:
            at = int(wrong[0])
            problem = f"{{argument}} must not exceed hi; {{row}} has {{value}} and {hi[at]:g}"
            raise InputError(problem, argument="lo", row=first + at, value=float(lo[at]))
        return lo, hi

    def refuse_other_rows(self, n: int) -> None:
        for argument, bound in (("lo", self.lo), ("hi", self.hi)):
            if not callable(bound) and bound.shape != (n,):
                problem = f"one value for every row of the sample, {n:,} in all; it has {{value}}"
                problem = f"{{argument}} must have {problem}"
                raise InputError(problem, argument=argument, value=bound.size)

    def _one(self, argument: str, p: FloatArray, first: int) -> FloatArray:
        bound: Bound = getattr(self, argument)
        if callable(bound):
            made = _array(bound(p), argument)
            if made.shape not in ((), p.shape):
                raise InputError(
                    f"{{argument}} must give one number for every prediction it is given, "
                    f"{p.size:,} here; it gave an array of shape {{value}}",
                    argument=argument,
                    value=made.shape,
                )
            values = np.broadcast_to(made, p.shape)
        else:
            values = bound[first : first + p.size]
        wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
        if wrong.size:
            problem = "{argument} must lie in [0, 1]; {row} has {value}"
            at = int(wrong[0])
            raise InputError(problem, argument=argument, row=first + at, value=float(values[at]))
        return values

    def to_dict(self) -> dict[str, Any]:
        lo, hi = ("function" if callable(bound) else "array" for bound in (self.lo, self.hi))
        return {"null": "Within", "exact": self.exact, "lo": lo, "hi": hi}

    def __repr__(self) -> str:
        kinds = self.to_dict()
        return f"<Within, lo: {kinds['lo']}, hi: {kinds['hi']}>"


@dataclass(frozen=True)
class Selection(ReversibleNull):
    """Rows may have been chosen by something that also tells about the label, by odds up to this.

    The odds of label 1 among the rows at hand are those of the prediction times or divided by
    `odds` at most: from p / (p + odds (1 - p)) to odds p / (odds p + 1 - p). Probabilities of 0
    and 1 stay what they are.

    Parameters
    ----------
    odds : float
        At least 1; 1 leaves no room.

    Examples
    --------
    >>> import itrust as it
    >>> lo, hi = it.nulls.Selection(1.5).bounds([0.0, 0.5])
    >>> lo.tolist(), hi.tolist()
    ([0.0, 0.4], [0.0, 0.6])
    """

    odds: float
    meaning: ClassVar[str] = "odds of a label multiplied or divided by at most as much"

    def __post_init__(self) -> None:
        _check(self.odds, "odds", 1.0, np.inf, "an odds ratio of at least 1")

    def bounds(self, p: FloatArray, rows: range | None = None) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002
        p = _array(p, "p")
        lo = p / (p + self.odds * (1 - p))
        hi = self.odds * p / (self.odds * p + (1 - p))
        return np.minimum(lo, p), np.maximum(hi, p)  # rounding must not leave p outside


@dataclass(frozen=True)
class LabelError(ReversibleNull):
    """Labels may be in error, each with a probability up to this.

    So the probability of label 1 lies between p (1 - false_negatives) and
    p + (1 - p) false_positives.

    Parameters
    ----------
    rate : float, optional
        Largest probability that a label is in error, whatever it should be. Default: those of
        `false_positives` and `false_negatives`, which are 0 unless they are given.
    false_positives : float, optional
        Largest probability that a row that should have label 0 has 1; default: `rate`.
    false_negatives : float, optional
        Largest probability that a row that should have label 1 has 0; default: `rate`.

    Examples
    --------
    >>> import itrust as it
    >>> lo, hi = it.nulls.LabelError(false_positives=0.1).bounds([0.0, 0.5])
    >>> lo.tolist(), hi.round(2).tolist()
    ([0.0, 0.5], [0.1, 0.55])
    """

    rate: float | None = None
    false_positives: float | None = None
    false_negatives: float | None = None
    meaning: ClassVar[str] = "labels in error with at most this probability"

    def __post_init__(self) -> None:
        if all(value is None for value in vars(self).values()):
            problem = "LabelError needs a rate, false_positives or false_negatives"
            raise InputError(problem, argument="rate")
        for name, value in vars(self).items():
            if value is not None:
                _check(value, name, 0.0, 1.0, "a probability of an error, from 0 to 1")

    @property
    def rates(self) -> tuple[float, float]:
        """Largest probability of a false positive and of a false negative."""
        rate = self.rate or 0.0
        up = rate if self.false_positives is None else self.false_positives
        down = rate if self.false_negatives is None else self.false_negatives
        return float(up), float(down)

    def bounds(self, p: FloatArray, rows: range | None = None) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002
        p = _array(p, "p")
        up, down = self.rates
        return p - p * down, np.minimum(p + (1 - p) * up, 1.0)

    def origins(self, seen: FloatArray) -> tuple[FloatArray, FloatArray]:
        seen = _array(seen, "seen")
        up, down = self.rates
        low = np.zeros_like(seen) if up == 1 else np.maximum((seen - up) / (1 - up), 0.0)
        high = np.ones_like(seen) if down == 1 else np.minimum(seen / (1 - down), 1.0)
        return np.minimum(low, seen), np.maximum(high, seen)


@dataclass(frozen=True)
class Tolerance(ReversibleNull):
    """The local bias is at most this, everywhere: a rejection shows a larger one somewhere.

    Parameters
    ----------
    bias : float
        Largest absolute difference between the label's probability and the prediction.

    Examples
    --------
    >>> import itrust as it
    >>> lo, hi = it.nulls.Tolerance(0.05).bounds([0.0, 0.5])
    >>> lo.tolist(), hi.round(2).tolist()
    ([0.0, 0.45], [0.05, 0.55])
    """

    bias: float
    meaning: ClassVar[str] = "a local bias of at most this everywhere"

    def __post_init__(self) -> None:
        _check(self.bias, "bias", 0.0, 1.0, "a bias from 0 to 1")

    def bounds(self, p: FloatArray, rows: range | None = None) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002
        p = _array(p, "p")
        return np.maximum(p - self.bias, 0.0), np.minimum(p + self.bias, 1.0)


@dataclass(frozen=True)
class Prudent(IntervalNull):
    """The prediction may be too high and never too low: only underestimation counts.

    Examples
    --------
    >>> import itrust as it
    >>> lo, hi = it.nulls.Prudent().bounds([0.2, 0.5])
    >>> lo.tolist(), hi.tolist()
    ([0.0, 0.0], [0.2, 0.5])
    """

    meaning: ClassVar[str] = "probabilities of label 1 at most as high as predicted"

    def bounds(self, p: FloatArray, rows: range | None = None) -> tuple[FloatArray, FloatArray]:  # noqa: ARG002
        p = _array(p, "p")
        return np.zeros(p.shape), p


def _array(values: object, argument: str) -> FloatArray:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            "{argument} must be numbers, not {value}", argument=argument, value=values
        ) from None


def _check(value: object, argument: str, least: float, most: float, what: str) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    number = float(value) if is_number else np.nan  # type: ignore[arg-type]
    if not least <= number <= most or np.isinf(number):
        raise InputError(f"{{argument}} is {what}, not {{value}}", argument=argument, value=value)
