"""The facts of one test: of two labels (`CalibrationResult`), of classes (`MulticlassResult`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import FloatArray, Result, WithFacts, counted, place_of
from itrust.calibration.dictionary.entries import Dictionary, Shape
from itrust.calibration.tails import TIE
from itrust.data import Predicate
from itrust.engines import Certificate
from itrust.kernels import LocalKernel
from itrust.nulls import AnalyticNull, Null

MAX_IN_DICT = 50  # findings
JOINT_FAMILIES = frozenset({"full", "joint"})  # checks of many covariates at once
ROUGH = 0.05  # a bound on the approximation above this is worth a warning


@dataclass(frozen=True, repr=False)
class Finding(Result):
    """What one check shows.

    Attributes
    ----------
    name : str
        Of the check, such as "age: trend".
    family : str
        Checks of a family share its weight.
    covariates : tuple of str
        Names of the covariates it reads; empty for the prediction alone.
    where : Predicate
        The rows it is about; everywhere unless it is about a part of them.
    shape : Shape
        The kind of bias it looks for.
    direction : int
        +1 or -1 for the side the bias lies on, in the sense of the shape; 0 where there is none.
    weight : float
        The share of the test's weight that the check has.
    score : float
        Minus the log of the check's approximate null tail, plus the log of its weight; with one
        kernel, KLCE^2.
    unadjusted_pvalue : float
        If this had been the only check, by redraws: how often a calibrated model shows as much.
    pvalue : float
        Adjusted for all checks (step-down max-T). Up to .2 it is the larger of two: redraws say
        how the check behaves if the whole model is calibrated; flips of the signs of the observed
        residuals, how it behaves if others are wrong and this is not, beside what was told before
        it. Checks of everything together and kernels have the first only.
    alike : tuple of str
        Names of the checks that show nearly the same, by their draws.
    shared_with : tuple of str
        Covariates that go together with those of this check so closely that these rows cannot
        tell which of them carries the bias.
    too_low, too_high : Predicate or None
        Where these rows lie most above and below the predictions, in coarse parts along what the
        check reads; None where the check names its rows by itself, or none stand out. They only
        describe.
    label : object
        The class that this is about, against the rest; None where there is one outcome.
    is_bound : bool
        Whether this speaks against an interval null. The direction then is +1 where labels of 1 are
        more frequent along the check than the null allows, and -1 where they are fewer; p-values
        are for the whole null.
    """

    name: str
    family: str
    covariates: tuple[str, ...]
    where: Predicate
    shape: Shape
    direction: int
    weight: float
    score: float
    unadjusted_pvalue: float
    pvalue: float
    alike: tuple[str, ...] = ()
    shared_with: tuple[str, ...] = ()
    too_low: Predicate | None = None
    too_high: Predicate | None = None
    label: Any = None
    is_bound: bool = False

    def __repr__(self) -> str:
        about = "" if self.label is None else f"{self.label!r}, "
        return f"<Finding: {about}{self.name!r}, p {self.pvalue:.4g}>"

    def _facts(self) -> dict[str, Any]:
        left_out = {"is_bound"} if self.label is not None else {"is_bound", "label"}
        return {
            **{name: value for name, value in vars(self).items() if name not in left_out},
            "where": str(self.where),
            "too_low": None if self.too_low is None else str(self.too_low),
            "too_high": None if self.too_high is None else str(self.too_high),
            "shape": self.shape.value,
            "sentence": str(self),
        }


def is_region(finding: Finding) -> bool:
    """Whether a finding is the region of a scan."""
    return finding.shape is Shape.REGION


def evidence_of(findings: Sequence[Finding], alpha: float = 0.05) -> tuple[Finding, ...]:
    """The findings that count at this alpha, each thing once.

    In a fixed order: of the prediction, of one covariate, of several; the most striking first
    among these. Of checks that show the same, one stands for all. A pair of covariates counts where
    it shows more than one of them does alone; checks of many covariates at once, such as
    "everything together", where nothing plainer is found.
    """
    score = {finding.name: finding.score for finding in findings}
    hidden = {name for finding in findings for name in finding.alike}
    striking = [f for f in findings if f.pvalue <= alpha and f.name not in hidden]
    plain = [f for f in striking if f.family not in JOINT_FAMILIES] or striking

    # A group of checks counts as much as its most striking one, whichever stands for it.
    def turn(finding: Finding) -> tuple[bool, float]:
        return is_region(finding), -max([finding.score, *(score[name] for name in finding.alike)])

    def columns(finding: Finding) -> int:
        return len(set(finding.covariates)) + (finding.family == "with prediction")

    told: list[Finding] = []
    for finding in sorted(plain, key=turn):
        seen = set(finding.covariates)
        alone = [set(f.covariates) for f in told if f.family != "with prediction"]
        # What a region adds to all that is simpler was judged by `attributed`.
        if is_region(finding) or not any(others and others < seen for others in alone):
            told.append(finding)
    return tuple(sorted(told, key=columns))


class WithFindings:
    """What results with findings have in common.

    Attributes
    ----------
    findings : tuple of Finding
        What every check shows, the largest score first.
    """

    findings: tuple[Finding, ...]

    def evidence(self, alpha: float = 0.05) -> tuple[Finding, ...]:
        """Give the findings that count at this alpha, each thing once, in the plainest form.

        Parameters
        ----------
        alpha : float
            Adjusted p-values up to this count.

        Returns
        -------
        tuple of Finding
            The most striking first; empty where nothing was found.
        """
        return evidence_of(self.findings, alpha)

    def finding(self, name: str) -> Finding:
        """Give what one check shows.

        Parameters
        ----------
        name : str
            Of the check, as in the dictionary.

        Returns
        -------
        Finding
            Its scores and p-values.
        """
        names = [finding.name for finding in self.findings]
        problem = "there is no check {value}; {guess}"
        return self.findings[place_of(name, names, problem, argument="name")]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WithRun(Result):
    """What every test tells about its run.

    Attributes
    ----------
    n, draws : int
        Number of rows and of draws.
    names : tuple of str
        Names of the covariates.
    elapsed : float
        Seconds that the test took.
    assumption_warnings, notes : tuple of str
        Where the data contradict the assumptions of the null; data-quality notes.
    """

    n: int
    draws: int
    names: tuple[str, ...]
    elapsed: float
    assumption_warnings: tuple[str, ...]
    notes: tuple[str, ...]
    statistic: float
    score: float
    null_distribution: FloatArray | None
    seed: int | None
    impossible: int
    checks: int = 1
    engine: str = ""
    weighted: bool = False
    clusters: int | None = None
    refused: Refusal | None = None

    @property
    def pvalue(self) -> float:
        """(1 + draws at least as large) / (1 + draws); NaN where `refused` says why."""
        return math.nan if self.refused else (1 + self.at_least) / (1 + self.draws)

    def refutes(self, alpha: float) -> bool:
        """Whether calibration is refuted: by the test, or by labels that were called impossible.

        Parameters
        ----------
        alpha : float
            Error that is allowed.

        Returns
        -------
        bool
            False where there is no p-value and no impossible label.
        """
        return self.pvalue <= alpha or self.impossible > 0

    @cached_property
    def at_least(self) -> int:
        """Number of draws whose score is at least as large, ties counted."""
        if self.null_distribution is None:
            return 0
        return int(np.count_nonzero(self.null_distribution >= self.score - self._tie))

    @cached_property
    def _tie(self) -> float:
        """Differences that are rounding errors."""
        values = (self.score,) if self.null_distribution is None else self.null_distribution
        return TIE * max(abs(self.score), float(np.abs(values).max()))


@dataclass(frozen=True)
class Refusal(Result):
    """Why there is no p-value: clusters are too few for any null to hold its level."""

    clusters: int
    effective: float
    needed: float
    by_replicates: bool = False

    def __repr__(self) -> str:
        told = f"{self.effective:.3g} of {self.needed:.3g} effective clusters"
        return f"<Refusal: {told}>"


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationResult(WithFindings, WithRun):
    """Outcome of `klce_test`. Facts are stored; the p-value is derived from them.

    Attributes
    ----------
    statistic : float
        KLCE^2 of the kernel, unbiased, so it may be negative.
    score : float
        What is compared with the draws: the largest score of all checks; with one kernel, the
        statistic itself.
    null_distribution : (draws,) array or None
        The score of every draw; None for a null that is a formula.
    statistic_draws : (draws,) array or None
        KLCE^2 of every draw; None for a null that is a formula.
    tail : float or None
        What the formula gives; None for a null that draws.
    findings : tuple of Finding
        What every check shows, the largest score first; with one kernel, one.
    checks : int
        Number of checks that p-values are adjusted for, shown or not.
    dictionary : Dictionary
        The checks.
    is_adaptive : bool
        Whether checks were brought to one scale and the largest taken; False for one kernel.
    n : int
        Number of rows.
    draws : int
        Number of draws; 0 for a formula.
    names : tuple of str
        Names of the covariates.
    kernel : LocalKernel
        The kernel of the statistic, with its widths.
    null : Null
        What the draws were made by, or whose formula was used.
    seed : int or None
        `klce_test(sample, kernel=r.dictionary, null=r.null, draws=r.draws, rng=r.seed)` makes
        the result again (for one kernel with `kernel=r.kernel`); None if nothing was drawn.
    engine : str
        How the kernel was evaluated.
    certificate : Certificate or None
        How far an approximate kernel can be from the true one.
    elapsed : float
        Seconds.
    weighted : bool
        Whether rows have weights.
    clusters : int or None
        Number of clusters; None where rows are independent.
    impossible : int
        Rows with a label that the model gave probability 0.
    independent : bool
        Whether rows are independent, as far as the design says, and no probability was made from
        labels of other rows (`cv=` of `Sample.from_estimator`).
    refused : Refusal or None
        Why there is no p-value (NaN), where there is none.
    assumption_warnings : tuple of str
        Where the data contradict the assumptions of the null.
    notes : tuple of str
        Data-quality notes, and what the test has left out.
    """

    statistic_draws: FloatArray | None
    tail: float | None
    findings: tuple[Finding, ...]
    dictionary: Dictionary
    is_adaptive: bool
    kernel: LocalKernel
    null: Null
    certificate: Certificate | None
    independent: bool = True

    @property
    def is_exact(self) -> bool:
        """Whether the p-value is valid at every sample size; not with clusters or `cv=`."""
        return self.null.exact and self.independent

    @property
    def pvalue(self) -> float:
        """(1 + draws at least as large) / (1 + draws), or the formula's tail.

        A formula that is an approximation reports nothing below its own depth. NaN where `refused`
        says why there is none.
        """
        if self.refused is None and isinstance(self.null, AnalyticNull) and self.tail is not None:
            return max(self.tail, self.null.depth)
        return super().pvalue

    @property
    def pvalue_is_below(self) -> bool:
        """Whether the p-value is a bound: the formula is not trusted below it."""
        return self.tail is not None and self.tail < self.pvalue

    @property
    def exceedance(self) -> float:
        """Share of draws strictly above the score: the p-value of the paper's Algorithm 1.

        It can be 0, and a test that uses it exceeds its alpha; `pvalue` does not.
        """
        if self.null_distribution is None:
            raise AttributeError(f"{type(self.null).__name__} has a formula instead of draws")
        return float(np.mean(self.null_distribution > self.score + self._tie))

    @property
    def judged_on(self) -> tuple[str, ...]:
        """Covariates that the checks read, as far as the dictionary tells."""
        seen = self.dictionary.covariates
        return tuple(n for n in self.names if n in seen) if seen else self.names

    @property
    def warnings(self) -> tuple[str, ...]:
        """What overrides the p-value or takes away its meaning."""
        said = list(self.assumption_warnings)
        if self.impossible:
            told = counted(self.impossible, "row")
            said.append(
                f"{told} with a label that the model called impossible (p = 0 and y = 1, or p = 1 "
                f"and y = 0): that alone refutes the null, whatever the p-value (probabilities "
                f"rounded to 0 or 1, as forests give them, need smoothing first)"
            )
        if self.certificate and self.certificate.bound > ROUGH:
            what = "check of all covariates together" if self.is_adaptive else "kernel"
            said.append(
                f"the {what} could not be approximated well: p-values hold, but a bias "
                f"that it alone would see may be missed (in Python engine=Tiles() computes it in "
                f"full, which takes long for many rows; fewer covariates are easier)"
            )
        drawn = self.null_distribution
        if drawn is not None and np.ptp(drawn) <= self._tie:
            said.append(
                "no draw differs from another: the kernel compares no rows whose labels could "
                "vary, so this test cannot detect anything and its p-value says nothing"
            )
        return tuple(said)

    def null_summary(self) -> dict[str, float] | None:
        """Give the spread of KLCE^2 under the null.

        Returns
        -------
        dict or None
            Standard deviation and quantiles of the draws; None for a formula.
        """
        if self.statistic_draws is None:
            return None
        levels = {"q50": 0.5, "q90": 0.9, "q95": 0.95, "q99": 0.99}
        quantiles = {k: float(np.quantile(self.statistic_draws, q)) for k, q in levels.items()}
        return {"sd": float(self.statistic_draws.std()), **quantiles}

    def _facts(self) -> dict[str, Any]:
        """Draws are summarised (the seed makes them again); of findings, the largest scores."""
        return {
            **self._by_name("statistic", "pvalue", "pvalue_is_below", "score", "n", "draws"),
            "on": self.names,
            "kernel": self.kernel.to_dict(),
            "null": self.null.to_dict(),
            "null_summary": self.null_summary(),
            "seed": self.seed,
            "engine": self.engine,
            "certificate": self.certificate,
            **self._by_name("weighted", "clusters", "impossible", "warnings", "notes"),
            "is_exact": self.is_exact,
            "null_meaning": self.null.meaning,
            "refused": self.refused,
            "is_adaptive": self.is_adaptive,
            "checks": self.checks,
            "dictionary": self.dictionary,
            "findings": self.findings[:MAX_IN_DICT],
            "evidence": [finding.name for finding in self.evidence()],
        }

    def _rows(self) -> list[dict[str, Any]]:
        """One row for each finding."""
        columns = ("name", "family", "where", "shape", "direction", "weight", "score")
        more = ("unadjusted_pvalue", "pvalue", "sentence")
        facts = [finding.to_dict() for finding in self.findings]
        return [{name: fact[name] for name in (*columns, *more)} for fact in facts]

    def __repr__(self) -> str:
        below = "below " if self.pvalue_is_below else ""
        p = f"{below}{self.pvalue:.4g}"
        return f"<CalibrationResult: statistic {self.statistic:.6g}, p {p}, n {self.n:,}>"


TOGETHER = "all together"
MAX_OF_CLASS = 10  # findings of a class, and pairs


@dataclass(frozen=True)
class ClassResult(WithFindings, WithFacts):
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

    def _facts(self) -> dict[str, Any]:
        positives = None if self.positives < 0 else self.positives  # withheld
        told = {"positives": positives, "findings": self.findings[:MAX_OF_CLASS]}
        return {**vars(self), **told}


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
        some of them. That of the draws with two classes.
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
        tuple of Finding
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
            replace(finding, label=part.name)
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
        once: dict[frozenset[Any], TakenFor] = {}
        for pair in self.pairs:
            both = frozenset([pair.actual, pair.predicted])
            if pair.pvalue <= alpha and pair.both_sides and both <= shown:
                once.setdefault(both, pair)
        return tuple(once.values())

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
            "together": self.together,
            "classes": self.classes,
            "pairs": self.taken_for()[:MAX_OF_CLASS],
            "n": self.n,
            "on": self.names,
            **self._by_name("draws", "seed", "checks", "engine", "weighted", "clusters"),
            **self._by_name("impossible", "is_exact", "warnings", "notes"),
            "refused": self.refused,
        }

    def _rows(self) -> list[dict[str, Any]]:
        """One row for all classes together and one for each class."""
        columns = ("name", "positives", "statistic", "unadjusted_pvalue", "pvalue")
        parts = (self.together, *self.classes)
        rows = [{name: getattr(part, name) for name in columns} for part in parts]
        return [{**row, "name": str(row["name"])} for row in rows]

    def __repr__(self) -> str:
        return f"<MulticlassResult: p {self.pvalue:.4g}, n {self.n:,}>"
