"""What groups and slices have in common: some rows, and how far the model is off there."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from itrust._core import Result, signed
from itrust.data import Predicate
from itrust.nulls import Null

SIGN = "bias = observed - predicted; positive: the model underestimates"
TAKEN_BACK = 2.0  # how fast the price of being singled out fades, in standard errors


def near_end(lower: float, upper: float) -> float:
    """The end of an interval next to 0, with its sign; 0 where it includes 0.

    >>> near_end(0.02, 0.3), near_end(-0.3, -0.02), near_end(-0.1, 0.3)
    (0.02, -0.02, 0.0)
    """
    return max(lower, 0.0) + min(upper, 0.0)


@dataclass(frozen=True)
class PartBias(Result):
    """How far the model is off in some of the rows.

    What groups and slices have in common.

    Attributes
    ----------
    where : Predicate
        Which rows: `where.rows(points)` marks those of any sample.
    rows : int
        Number of rows inside, of the whole sample.
    share : float
        Share of the whole sample's weight that is inside.
    predicted : float
        Weighted mean prediction.
    observed : float
        Weighted rate of positive labels.
    lower, upper : float
        Interval of the bias.
    stderr : float
        Standard error of the bias, from how much residuals vary.
    unadjusted_pvalue : float
        P-value if this had been the only part that was looked at.
    pvalue : float
        P-value that goes with the interval, for all parts of the table if the interval is: at most
        the table's `alpha` where the interval excludes 0, and nowhere else.
    """

    where: Predicate
    rows: int
    share: float
    predicted: float
    observed: float
    lower: float
    upper: float
    stderr: float
    unadjusted_pvalue: float
    pvalue: float

    def __repr__(self) -> str:
        kind, told = type(self).__name__, f"bias {signed(self.bias)}, p {self.pvalue:.3g}"
        return f"<{kind}: {self.where}, {told}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that tell which rows are inside, in the order of the predicate."""
        leaves = self.where.leaves()
        return tuple(dict.fromkeys(name for leaf in leaves for name in sorted(leaf.names)))

    @property
    def bias(self) -> float:
        """Observed minus predicted; positive: the model underestimates."""
        return self.observed - self.predicted

    @property
    def at_least(self) -> float:
        """The end of the interval next to 0, with its sign; 0 where the interval includes 0."""
        return near_end(self.lower, self.upper)

    def estimate(self, tolerance: float = 0.0) -> float:
        """Give the bias without what being singled out adds to it on average.

        A part that is told because `at_least` exceeds `tolerance` had luck on its side the more
        narrowly it does. So the bias is taken back towards `at_least`: all the way where it just
        reaches the tolerance, hardly at all from two standard errors beyond it. For a normal mean
        this is right to three quarters of a standard error on average, whatever the truth.

        Parameters
        ----------
        tolerance : float
            What `at_least` had to exceed for the part to be told; 0 counts where it does not, for
            then an interval that excludes 0 is all that singles the part out.

        Returns
        -------
        float
            The bias itself where the interval includes 0.
        """
        least, bias = abs(self.at_least), abs(self.bias)
        if not (least > 0 and self.stderr > 0):
            return self.bias
        needed = tolerance if least >= tolerance else 0.0
        back = (bias - least) * math.exp(-TAKEN_BACK * (least - needed) / self.stderr)
        return math.copysign(bias - back, self.bias)

    def _facts(self) -> Mapping[str, Any]:
        values = {**vars(self), "where": self.where.to_dict()}
        return {"names": self.names, **values, "bias": self.bias, "at_least": self.at_least}

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [{name: value for name, value in self._facts().items() if name != "where"}]


Part = TypeVar("Part", bound=PartBias)


@dataclass(frozen=True, eq=False, repr=False)
class PartTable(Result, Sequence[Part]):
    """Biases of several parts, judged together.

    Attributes
    ----------
    alpha : float
        The error that is allowed, of intervals and of p-values alike.
    null : Null
        How labels were redrawn.
    draws : int
        How often labels were redrawn.
    seed : int
        What makes the same draws again.
    notes : tuple of str
        Data-quality notes.
    out_of_fold : bool
        Whether the probabilities are predictions of models that saw the labels of other folds.
    """

    alpha: float
    null: Null
    draws: int
    seed: int
    notes: tuple[str, ...]
    out_of_fold: bool

    @property
    def is_exact(self) -> bool:
        """Whether p-values are valid at every sample size; not with clusters or `cv=`."""
        return self.null.exact and not self.out_of_fold

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The parts in the order of the table."""

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, key: Any) -> Any:
        return self.parts[key]

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [row for part in self.parts for row in part._rows()]

    @abstractmethod
    def _found(self) -> Mapping[str, Any]:
        """What only tables of this kind say."""

    @abstractmethod
    def _counted(self) -> str:
        """How many parts there are, in words."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._counted()}>"

    def _facts(self) -> Mapping[str, Any]:
        return {
            **self._found(),
            "alpha": self.alpha,
            "null": self.null.to_dict(),
            "is_exact": self.is_exact,
            "draws": self.draws,
            "seed": self.seed,
            "notes": self.notes,
        }
