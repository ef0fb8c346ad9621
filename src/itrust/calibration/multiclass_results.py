"""What a test of several classes gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust._core import FloatArray, counted, plain
from itrust.calibration.multiplicity import TIE
from itrust.calibration.results import Finding, WithFindings, WithRun

MAX_IN_DICT = 10  # findings of a class


@dataclass(frozen=True)
class ClassResult(WithFindings):
    """What one class shows against the rest.

    Attributes
    ----------
    name : object
        The class; "all together" for the form over all classes.
    positives : int
        Number of rows of the class.
    statistic : float
        KLCE^2 of the default kernel.
    unadjusted_pvalue : float
        If this had been the only class.
    pvalue : float
        Adjusted for all classes (step-down max-T).
    findings : tuple of Finding
        What the checks show, the largest scores first; adjusted for the checks of all classes.
        Empty for the form over all classes.
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


@dataclass(frozen=True, eq=False, repr=False)
class MulticlassResult(WithRun):
    """Outcome of `multiclass_test`.

    Attributes
    ----------
    statistic : float
        Sum over classes of KLCE^2 with one kernel on all probabilities and covariates.
    null_sd : float
        Its standard deviation if the model is calibrated: the root of 2 sum over i != j of
        P_ij^2 tr(S_i S_j) over the sum of pair weights, S = diag(f) - ff'.
    score : float
        The combined score of the data.
    null_distribution : (draws,) array
        The combined score of every draw, which the p-value compares.
    together : ClassResult
        The form over all classes.
    classes : tuple of ClassResult
        One for each class.
    n : int
        Number of rows.
    names : tuple of str
        Names of the covariates.
    impossible : int
        Rows with a label that the model gave probability 0.
    draws, seed : int
        Number of draws, and the seed that makes the same ones again.
    elapsed : float
        Seconds that the test took.
    assumption_warnings, notes : tuple of str
        Where the data contradict the assumptions of the null; data-quality notes.
    """

    statistic: float
    null_sd: float
    score: float
    null_distribution: FloatArray
    together: ClassResult
    classes: tuple[ClassResult, ...]
    seed: int
    impossible: int

    @property
    def pvalue(self) -> float:
        """(1 + draws at least as large) / (1 + draws)."""
        tie = TIE * max(abs(self.score), float(np.abs(self.null_distribution).max()))
        return (1 + int((self.null_distribution >= self.score - tie).sum())) / (1 + self.draws)

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
            "n": self.n,
            "on": self.names,
            **self._by_name("draws", "seed", "impossible", "warnings", "notes"),
        }

    def _rows(self) -> list[dict[str, Any]]:
        """One row for all classes together and one for each class."""
        columns = ("name", "positives", "statistic", "unadjusted_pvalue", "pvalue")
        parts = (self.together, *self.classes)
        rows = [{name: getattr(part, name) for name in columns} for part in parts]
        return [{**row, "name": str(row["name"])} for row in rows]

    def __repr__(self) -> str:
        return f"<MulticlassResult: p {self.pvalue:.4g}, n {self.n:,}>"
