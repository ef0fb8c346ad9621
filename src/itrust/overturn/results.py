"""What a look at robustness found: p-value curves over the size of a violation, and where they tip.

A p-value is valid for every law inside its interval, and intervals grow with the size. So a curve
that is replaced by its running maximum stays valid at every size, and never falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from itrust._core import FloatArray, InputError, Result, listed
from itrust.calibration import Finding
from itrust.nulls import LabelError, ReversibleNull, Selection, Tolerance

SIZES = 9


@dataclass(frozen=True)
class Violation:
    """One way in which labels may differ from what a calibrated model gives."""

    neutral: float
    end: float
    null: Callable[[float], ReversibleNull]

    def size(self, share: float) -> float:
        """The size at this share of the way from neutral to the end; odds on the log scale."""
        if self.neutral:
            return float(self.neutral * (self.end / self.neutral) ** share)
        return float(share * self.end)

    @property
    def sizes(self) -> FloatArray:
        """Some sizes, most of them small, that intervals of numbers are told at."""
        return np.array([self.size(share) for share in np.square(np.linspace(0, 1, SIZES))])


Named = TypeVar("Named", bound=Any)  # what is said of one kind of violation


def of_kind(found: Sequence[Named], kind: str, why: str = "it is not told") -> Named:
    """Look one kind of violation up."""
    for own in found:
        if own.kind == kind:
            return own
    known = [own.kind for own in found] or list(KINDS)
    if kind in known:
        raise InputError("nothing is known of {value}: {why}", argument="kind", value=kind, why=why)
    problem = "there is no kind of violation {value}; the kinds are {known}"
    raise InputError(problem, argument="kind", value=kind, known=listed(known))


KINDS: Mapping[str, Violation] = {
    "selection": Violation(1.0, 10.0, Selection),
    "label_error": Violation(0.0, 0.5, LabelError),
    "false_positives": Violation(0.0, 0.5, lambda rate: LabelError(false_positives=rate)),
    "false_negatives": Violation(0.0, 0.5, lambda rate: LabelError(false_negatives=rate)),
    "tolerance": Violation(0.0, 0.5, Tolerance),
}


@dataclass(frozen=True, eq=False, repr=False)
class Tipping(Result):
    """How large a violation would have to be to explain the evidence away.

    Attributes
    ----------
    kind : {"selection", "label_error", "false_positives", "false_negatives", "tolerance"}
        What is violated.
    neutral : float
        The size that leaves no room: 1 for odds, else 0.
    sizes : (m,) array
        Sizes that were looked at, ascending, the neutral one first.
    pvalues : (m,) array
        P-value of each: valid for every law inside its interval. They never fall: each is the
        largest of those at its own and at smaller sizes, and none below the point is larger than
        that at the point, whose laws include theirs.
    point : float or None
        The largest size that is still rejected at alpha; None where calibration itself is not.
    beyond : bool
        Whether the end of the range is still rejected, so that the tipping point is larger.
    finding : Finding or None
        What carried the rejection at the point.
    """

    kind: str
    neutral: float
    sizes: FloatArray
    pvalues: FloatArray
    point: float | None
    beyond: bool
    finding: Finding | None

    def pvalue_at(self, size: float) -> float:
        """Give a p-value for any size.

        Parameters
        ----------
        size : float
            At least the neutral one.

        Returns
        -------
        float
            That of the next size that was looked at, which is valid and at most too large; 1 beyond
            all of them.
        """
        if not size >= self.neutral:
            problem = "{argument} must be at least {neutral}, not {value}"
            raise InputError(problem, argument="size", value=size, neutral=f"{self.neutral:g}")
        at = int(np.searchsorted(self.sizes, size * (1 - 1e-12), side="left"))
        return float(self.pvalues[at]) if at < self.sizes.size else 1.0

    def at_least(self, wider: Tipping) -> Tipping:
        """Take over what is known of a kind of violation whose laws include those of this one.

        Parameters
        ----------
        wider : Tipping
            On the same scale of sizes.

        Returns
        -------
        Tipping
            Itself where its own point is as large.
        """
        if wider.point is None or (self.point is not None and self.point >= wider.point):
            return self
        known = wider.pvalue_at(wider.point)
        sizes = np.union1d(self.sizes, wider.point)
        own = np.array([self.pvalue_at(float(size)) for size in sizes])
        return replace(
            self,
            sizes=sizes,
            pvalues=np.where(sizes <= wider.point, np.minimum(own, known), own),
            point=wider.point,
            beyond=wider.beyond,
            finding=wider.finding,
        )

    def _rows(self) -> list[dict[str, Any]]:
        """One row for each size."""
        return [
            {"kind": self.kind, "size": float(size), "pvalue": float(pvalue)}
            for size, pvalue in zip(self.sizes, self.pvalues, strict=True)
        ]

    def __repr__(self) -> str:
        told = "none" if self.point is None else f"{self.point:.3g}"
        return f"<Tipping: {self.kind}, {'more than ' if self.beyond else ''}{told}>"


@dataclass(frozen=True, eq=False, repr=False)
class PrudentResult(Result):
    """Whether the model underestimates somewhere; that it overestimates does not count.

    Attributes
    ----------
    pvalue : float
        Of "no probability is too low", valid at every n.
    finding : Finding or None
        The clearest underestimation; None where no direction can vary.
    impossible : int
        Rows with label 1 that the model gave probability 0.
    """

    pvalue: float
    finding: Finding | None
    impossible: int

    def __repr__(self) -> str:
        return f"<PrudentResult: p {self.pvalue:.4g}>"


@dataclass(frozen=True, eq=False, repr=False)
class Robustness(Result):
    """What would overturn the evidence: outcome of `robustness`.

    Attributes
    ----------
    n : int
        Number of rows.
    alpha : float
        Error that is allowed.
    draws : int
        Number of draws.
    seed : int
        The same seed makes the same draws.
    names : tuple of str
        Names of the covariates.
    pvalue : float
        Of calibration itself along the same directions: at the neutral sizes.
    checks : int
        Number of directions along which labels were compared; p-values are adjusted for all.
    impossible : int
        Rows with a label that the model gave probability 0.
    violations : tuple of Tipping
        One for each kind of violation.
    prudence : PrudentResult
        Whether underestimation alone is shown.
    numbers : tuple
        One for each number of a task; empty without tasks.
    elapsed : float
        Seconds.
    warnings, notes : tuple of str
        Where the data contradict the assumptions; data-quality notes.
    """

    n: int
    alpha: float
    draws: int
    seed: int
    names: tuple[str, ...]
    pvalue: float
    checks: int
    impossible: int
    violations: tuple[Tipping, ...]
    prudence: PrudentResult
    numbers: tuple[Any, ...] = ()
    elapsed: float = math.nan
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def violation(self, kind: str) -> Tipping:
        """Give what one kind of violation needs.

        Parameters
        ----------
        kind : str
            Such as "selection".

        Returns
        -------
        Tipping
            Its curve and its tipping point.
        """
        return of_kind(self.violations, kind)

    def _facts(self) -> Mapping[str, Any]:
        return {name: fact for name, fact in super()._facts().items() if name != "elapsed"}

    def _rows(self) -> list[dict[str, Any]]:
        """One row for each kind of violation."""
        names = ("kind", "neutral", "point", "beyond")
        return [{name: getattr(tipping, name) for name in names} for tipping in self.violations]

    def __repr__(self) -> str:
        told = ", ".join(repr(tipping)[10:-1] for tipping in self.violations)
        return f"<Robustness: p {self.pvalue:.4g}; {told}>"
