"""What a look at labelled rows and a population found: light enough for whoever only shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from itrust._core import Result

PREDICTION = "p"  # the name of the prediction


class FeatureKind(StrEnum):
    """What a function of a covariate is."""

    TREND = "trend"
    QUADRATIC = "quadratic"
    CUBIC = "cubic"
    LEVEL = "level"
    MISSING = "missing"
    PRODUCT = "product"


@dataclass(frozen=True)
class Gap:
    """A part of the population that no labelled row resembles.

    Attributes
    ----------
    name : str or None
        The covariate, `p` for the prediction; None for rows that only lie far from all others.
    level : object
        The level that no labelled row has; None for numbers.
    side : {"above", "below", "level", "missing", "far"}
        Where it lies.
    bound : float or None
        The largest or smallest value of labelled rows.
    share : float
        Of the population, or of the rows that a task counts, by weights.
    rows : int
        How many of the population's rows that were looked at lie there: it has at least so many.
    """

    name: str | None
    level: Any
    side: str
    bound: float | None
    share: float
    rows: int


@dataclass(frozen=True)
class RowDifference(Result):
    """One way in which labelled rows differ from the population.

    Attributes
    ----------
    name : str
        The covariate; `p` for the prediction.
    kind : FeatureKind
        A trend compares means, a level shares, a quadratic and a cubic how values are spread.
    level : object
        The level, for shares; None for numbers.
    other : str or None
        For a product the second covariate.
    labelled, population : float
        Mean or share on either side; for a product that of the product, in standard units.
    z : float
        Their difference in standard deviations that permuted rows have.
    pvalue : float
        Adjusted for all features of its kind.
    rows : int
        Fewest rows of either side that the means or shares tell of: those with the level and
        those without, or those with another value than most.
    is_date : bool
        Whether the means are days since 1970-01-01.
    """

    name: str
    kind: FeatureKind
    level: Any
    other: str | None
    labelled: float
    population: float
    z: float
    pvalue: float
    rows: int
    is_date: bool = False

    def _facts(self) -> Mapping[str, Any]:
        return {**vars(self), "kind": self.kind.value}


@dataclass(frozen=True, eq=False)
class Resemblance(Result):
    """Whether labelled rows are like a population, on the prediction and the covariates.

    Attributes
    ----------
    pvalue : float
        Exact, of "labelled rows are drawn like the population"; NaN within an estimate whose rows
        are too few to be compared.
    differences : tuple of RowDifference
        Covariates that differ at `alpha`, the clearest first; every covariate once.
    compared : tuple of RowDifference
        The clearest comparison of every covariate, whether it differs or not.
    n, size : int
        Number of labelled rows and of rows of the population.
    effective : float
        Effective sample size of the weights that make labelled rows like the population.
    trimmed : int
        How many of these weights were cut.
    unbalanced : int
        How many features the weights leave different by more than a tenth of a standard deviation.
    gaps : tuple of Gap
        Parts of the population that no labelled row resembles.
    alpha : float
        At which labelled rows are said to differ.
    draws : int
        Number of permutations.
    seed : int
        What permutations were drawn by.
    tested : tuple of two int
        How many labelled rows and rows of the population were permuted.
    notes : tuple of str
        How weights and clusters were met.
    """

    pvalue: float
    differences: tuple[RowDifference, ...]
    compared: tuple[RowDifference, ...]
    n: int
    size: int
    effective: float
    trimmed: int
    unbalanced: int
    gaps: tuple[Gap, ...]
    alpha: float
    draws: int
    seed: int
    tested: tuple[int, int]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        says = "differ" if self.differs else "show no difference"
        return f"<Resemblance: labelled rows {says}, p = {self.pvalue:.3g}>"

    @property
    def differs(self) -> bool:
        """Whether labelled rows are shown to differ from the population."""
        return self.pvalue <= self.alpha

    @property
    def unlike(self) -> float:
        """Share of the population that no labelled row resembles."""
        return shares_of(self.gaps)

    def disclosed(self, min_cell: int) -> Resemblance:
        """Take out what rests on few rows, and the values of single rows.

        Parameters
        ----------
        min_cell : int
            Fewest rows behind a comparison or a gap that is shown; 1 shows everything.

        Returns
        -------
        Resemblance
            Levels of fewer rows, or that fewer rows lack, and numbers of which fewer rows have
            another value than most, are left out, and gaps say no largest or smallest value.
        """
        if min_cell <= 1:
            return self
        return replace(
            self,
            differences=tuple(one for one in self.differences if one.rows >= min_cell),
            compared=tuple(one for one in self.compared if one.rows >= min_cell),
            gaps=disclosed_gaps(self.gaps, min_cell),
        )

    def _facts(self) -> Mapping[str, Any]:
        facts = {
            **vars(self),
            "differs": self.differs,
            "unlike": self.unlike,
            "population": self.size,
            "differences": [own.to_dict() for own in self.differences],
            "compared": [own.to_dict() for own in self.compared],
            "gaps": [vars(gap) for gap in self.gaps],
        }
        del facts["size"]
        return facts

    def _rows(self) -> list[Mapping[str, Any]]:
        return [
            {**row, "level": None if row["level"] is None else str(row["level"])}
            for row in (own.to_dict() for own in self.compared)
        ]


def shares_of(gaps: Sequence[Gap]) -> float:
    """Share of the population that some gaps make up."""
    return float(sum(gap.share for gap in gaps))


def disclosed_gaps(gaps: Sequence[Gap], min_cell: int) -> tuple[Gap, ...]:
    """Take out gaps of few rows, and the values of single rows.

    Rows that were looked at count: a share of random ones would promise rows that may not be.
    """
    return tuple(replace(gap, bound=None) for gap in gaps if gap.rows >= min_cell)
