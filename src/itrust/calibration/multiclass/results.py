"""What a test of several classes gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from itrust._core import FloatArray, Result, counted, plain
from itrust.calibration.dictionary.entries import Shape
from itrust.calibration.results import Finding, WithFindings, WithRun
from itrust.data import Predicate

TOGETHER = "all together"
MAX_IN_DICT = 10  # findings of a class, and pairs


@dataclass(frozen=True, repr=False)
class ClassFinding(Finding):
    """A finding about one class against the rest; all else is as of a `Finding`.

    Attributes
    ----------
    label : object
        The class. Default: None, of no class.
    """

    label: Any = None

    def __repr__(self) -> str:
        return f"<ClassFinding: {self.label!r}, {self.name!r}, p {self.pvalue:.4g}>"


@dataclass(frozen=True)
class ClassResult(WithFindings):
    """What one class shows against the rest.

    Attributes
    ----------
    name : object
        The class; "all together" for checks over all classes.
    positives : int
        Number of rows of the class.
    statistic : float
        What the class contributes to the statistic of all: KLCE^2 with the kernel on all
        probabilities and covariates.
    unadjusted_pvalue : float
        If this had been the only class.
    pvalue : float
        Adjusted for all classes, for pairs of classes and for all together (step-down max-T).
    findings : tuple of Finding
        What the checks show, the largest scores first; adjusted for the checks of all classes and
        of all pairs. For all together: along which covariates the classes' shares are off.
    """

    name: Any
    positives: int
    statistic: float
    unadjusted_pvalue: float
    pvalue: float
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        return f"<ClassResult: {self.name}, p {self.pvalue:.3g}>"

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            The attributes by name; of the findings, those with the largest scores.
        """
        shown = [finding.to_dict() for finding in self.findings[:MAX_IN_DICT]]
        found: dict[str, Any] = plain({**vars(self), "findings": shown})
        return found


@dataclass(frozen=True, repr=False)
class TakenFor(Result):
    """One class that is taken for another: probability that should have gone to it.

    Attributes
    ----------
    actual : object
        The class whose probability is too low.
    predicted : object
        The class that has this probability instead.
    name : str
        Of the check, such as "region = south".
    covariates : tuple of str
        Names of the covariates it reads; empty for all rows.
    where : Predicate
        The rows it is about; everywhere unless it is about a part of them.
    shape : Shape
        Overall, a group, a part of a number, or a trend.
    direction : int
        Of a trend: 1 if this happens the more, the higher the number is, -1 the lower; else 0.
    moved : float
        Mean probability that should have gone to the actual class, in these rows: the smaller one
        of what the one lacks and the other has too much. NaN for a trend.
    both_sides : bool
        Whether the one class by itself is too low there and the other too high, by 2.58 null
        standard deviations each; else the contrast comes from one of them and a third class.
    score : float
        Minus the log of the check's approximate null tail, plus the log of its weight.
    unadjusted_pvalue : float
        If this had been the only check.
    pvalue : float
        Adjusted for all checks of all classes and pairs (step-down max-T). Up to .2 it is the
        larger of that and of the normal tail of the contrast divided by its observed spread, for
        other classes or covariates may be off, too.
    """

    actual: Any
    predicted: Any
    name: str
    covariates: tuple[str, ...]
    where: Predicate
    shape: Shape
    direction: int
    moved: float
    both_sides: bool
    score: float
    unadjusted_pvalue: float
    pvalue: float

    def __repr__(self) -> str:
        told = f"{self.actual} for {self.predicted}, {self.name}"
        return f"<TakenFor: {told}, p {self.pvalue:.4g}>"

    def _facts(self) -> dict[str, Any]:
        shown = {"where": str(self.where), "shape": self.shape.value, "sentence": str(self)}
        return {**vars(self), **shown}


@dataclass(frozen=True, eq=False, repr=False)
class MulticlassResult(WithRun):
    """Outcome of `klce_test` for several classes.

    Attributes
    ----------
    statistic : float
        Sum over classes of KLCE^2 with one kernel on all probabilities and covariates. With two
        classes, KLCE^2 of the second one, as for a `Sample`.
    null_sd : float
        Its standard deviation if the model is calibrated: the root of 2 sum over i != j of
        P_ij^2 tr(S_i S_j) over the sum of pair weights, S = diag(f) - ff'; beyond 1,500 rows from
        some of them. That of the draws with two classes, or with a kernel of one's own.
    score : float
        The combined score of the data.
    null_distribution : (draws,) array
        The combined score of every draw, which the p-value compares.
    together : ClassResult
        All classes together: the kernel on everything, and functions of the covariates.
    classes : tuple of ClassResult
        One for each class.
    pairs : tuple of TakenFor
        Contrasts between two classes, the largest scores first.
    n : int
        Number of rows.
    names : tuple of str
        Names of the covariates.
    impossible : int
        Rows with a label that the model gave probability 0.
    checks : int
        Number of checks that p-values are adjusted for.
    draws, seed : int
        Number of draws, and the seed that makes the same ones again.
    engine : str
        How the kernel was evaluated.
    weighted : bool
        Whether rows have weights.
    clusters : int or None
        Number of clusters; None where rows are independent.
    refused : Refusal or None
        Why there is no p-value (NaN), where there is none.
    is_exact : bool
        Whether the p-value is valid at every sample size; not with clusters.
    elapsed : float
        Seconds that the test took.
    assumption_warnings, notes : tuple of str
        Where the data contradict the assumptions of the null; data-quality notes.
    """

    null_sd: float
    null_distribution: FloatArray
    together: ClassResult
    classes: tuple[ClassResult, ...]
    seed: int
    pairs: tuple[TakenFor, ...] = ()
    is_exact: bool = True

    def evidence(self, alpha: float = 0.05) -> tuple[Finding, ...]:
        """Give the findings of all classes that count at this alpha, each with its class.

        Parameters
        ----------
        alpha : float
            P-values up to this count; they are adjusted for the checks of all classes.

        Returns
        -------
        tuple of ClassFinding
            The most striking first; of two classes those of the second, for the first is its
            mirror. Where no class shows anything, each `Finding` of all classes together.

        Examples
        --------
        >>> import itrust as it
        >>> sample = it.Sample([0, 1, 2] * 40, [[0.8, 0.1, 0.1]] * 120)
        >>> for finding in it.klce_test(sample, draws=99, rng=0).evidence():
        ...     print(f"{finding.pvalue:.2f}  {finding}")
        0.01  too high for 0 overall
        0.01  too low for 1 overall
        0.01  too low for 2 overall
        """
        classes = self.classes[1:] if len(self.classes) == 2 else self.classes
        told = [
            ClassFinding(**vars(finding), label=part.name)
            for part in classes
            for finding in part.evidence(alpha)
        ]
        if not told:
            return self.together.evidence(alpha)
        return tuple(sorted(told, key=lambda finding: (finding.pvalue, -finding.score)))

    def taken_for(self, alpha: float = 0.05) -> tuple[TakenFor, ...]:
        """Give the classes that are taken for others, each pair once, where it shows most.

        Parameters
        ----------
        alpha : float
            Adjusted p-values up to this count.

        Returns
        -------
        tuple of TakenFor
            The most striking first; only those where one class is too low and the other too high,
            and where either class is shown to be miscalibrated by itself.
        """
        shown = {own.name for own in self.classes if own.pvalue <= alpha}
        both = [pair for pair in self.pairs if {pair.actual, pair.predicted} <= shown]
        return taken_for_of(both, alpha)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What overrides the p-value or takes away its meaning."""
        if not self.impossible:
            return self.assumption_warnings
        told = counted(self.impossible, "row")
        return (
            *self.assumption_warnings,
            f"{told} with a label that the model called impossible: that alone refutes the null",
        )

    def _facts(self) -> dict[str, Any]:
        return {
            **self._by_name("statistic", "null_sd", "pvalue", "score"),
            "together": self.together.to_dict(),
            "classes": [result.to_dict() for result in self.classes],
            "pairs": [pair.to_dict() for pair in self.taken_for()[:MAX_IN_DICT]],
            "n": self.n,
            "on": self.names,
            **self._by_name("draws", "seed", "checks", "engine", "weighted", "clusters"),
            **self._by_name("impossible", "is_exact", "warnings", "notes"),
            "refused": None if self.refused is None else self.refused.to_dict(),
        }

    def _rows(self) -> list[dict[str, Any]]:
        """One row for all classes together and one for each class."""
        columns = ("name", "positives", "statistic", "unadjusted_pvalue", "pvalue")
        parts = (self.together, *self.classes)
        rows = [{name: getattr(part, name) for name in columns} for part in parts]
        return [{**row, "name": str(row["name"])} for row in rows]

    def __repr__(self) -> str:
        return f"<MulticlassResult: p {self.pvalue:.4g}, n {self.n:,}>"


def taken_for_of(pairs: Sequence[TakenFor], alpha: float = 0.05) -> tuple[TakenFor, ...]:
    """The contrasts that count at this alpha, each pair of classes once."""
    told: dict[frozenset[Any], TakenFor] = {}
    for pair in pairs:
        if pair.pvalue <= alpha and pair.both_sides:
            told.setdefault(frozenset([pair.actual, pair.predicted]), pair)
    return tuple(told.values())
