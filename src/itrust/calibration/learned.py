"""Tests that learn from labels on some rows and are exact on others: tuned widths, a witness.

Tuned widths are the honest form of the paper's greedy search, whose widths were chosen on the rows
they were tested on. A witness is a learned direction: a regressor says where the model errs, for
high dimension and for errors that no dictionary has an entry for. Given the rows it was learned
from, its test on other rows is exact; so is the combination of folds that are tested in a row, each
by a witness that saw the folds before it alone.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import chdtrc

from itrust._core import (
    FloatArray,
    InputError,
    IntArray,
    Result,
    Rng,
    as_seed,
    checked_count,
    checked_share,
)
from itrust.calibration.adaptive import checked_draws, cluster_notes, null_warnings
from itrust.calibration.klce import klce_test
from itrust.calibration.results import CalibrationResult
from itrust.calibration.tails import unadjusted_pvalues
from itrust.data import Column, Sample, checked_sample
from itrust.engines import EngineChoice
from itrust.kernels import RBF, Constant, Delta, Kernel, LocalKernel, Median
from itrust.nulls import Null, fitting_null
from itrust.terms import COLUMN_LEVELS, plain_features

MAX_ROWS = 800  # that the search for widths uses
FACTORS = (1.0, 0.125, 0.25, 0.5, 2.0, 4.0)  # of the usual width
SWEEPS = 3
FAINT = 1e-12  # match of different categories that counts as none
DRAWS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class TunedKernel:
    """A kernel chosen with labels; test it on other rows."""

    kernel: LocalKernel
    ratio: float
    start: float
    rows: int


def tune_widths(sample: Sample) -> TunedKernel:
    """Choose widths that make KLCE^2 large over its standard deviation, one column at a time.

    The labels of these rows are used: never test the kernel on them. Numbers get a multiple of
    their median distance or are left out, categories match exactly, by half, or are left
    out. The standard deviation is that under the alternative, sqrt(4 var(h_i) / n + null
    variance) with h_i the mean of e_i P_ij e_j over j. Uses 800 rows at most; cost 800^2
    for each of about 21 tries a column.

    Parameters
    ----------
    sample : Sample
        Labels, probabilities and covariates.

    Returns
    -------
    TunedKernel
        The kernel and how much it gained.

    Examples
    --------
    >>> import itrust as it
    >>> tuned = it.tune_widths(it.simulate.survey(300, rng=0).sample)
    >>> bool(tuned.ratio > tuned.start)
    True
    """
    checked_sample(sample)
    rows = np.unique(np.linspace(0, sample.n - 1, MAX_ROWS).astype(int))
    part = sample.take(rows)
    numbers = max(sum(column.kind in ("number", "date") for column in part.columns), 1)
    choices = [
        _choices(part.points.prediction, 1),
        *(_choices(column, numbers) for column in part.columns),
    ]
    chosen = [0] * len(choices)
    logs = np.sum([scales[0] * matrix for _, scales, matrix in choices], axis=0)
    best = start = _ratio(part, logs)
    for _ in range(SWEEPS):
        before = best
        for number, (_, scales, matrix) in enumerate(choices):
            rest = logs - scales[chosen[number]] * matrix
            for option, scale in enumerate(scales):
                tried = rest + scale * matrix
                if option != chosen[number] and (ratio := _ratio(part, tried)) > best:
                    best, logs, chosen[number] = ratio, tried, option
        if best <= before:
            break
    prob, *kernels = (kernels[k] for (kernels, *_), k in zip(choices, chosen, strict=True))
    x = dict(zip(sample.names, kernels, strict=True)) if sample.names else Constant()
    return TunedKernel(LocalKernel(prob, x), best, start, part.n)


def tuned_test(
    sample: Sample,
    *,
    null: Null | None = None,
    share: float = 0.5,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
) -> CalibrationResult:
    """Tune the widths on a random part of the rows, test them on the others.

    Parameters
    ----------
    sample : Sample
        Labels, probabilities and covariates.
    null : Null, optional
        As for `klce_test`.
    share : float
        Share of the rows to tune on.
    draws : int
        Number of draws; the smallest possible p-value is 1 / (1 + draws).
    rng : int, Generator or None
        Chooses the rows to tune on, and makes the draws.
    engine : "auto", Tiles, Factor or Dask
        As for `klce_test`.

    Returns
    -------
    CalibrationResult
        Of the test with one kernel on the rows that were not tuned on.

    Examples
    --------
    >>> import itrust as it
    >>> r = it.tuned_test(it.simulate.survey(1_000, rng=0).sample, draws=199, rng=0)
    >>> r.n, r.pvalue
    (500, 0.025)
    """
    checked_sample(sample)
    share = checked_share(share, "share")
    draws, seed = checked_draws(draws), as_seed(rng)
    first, second = sample.split([share, 1 - share], rng=seed)
    tuned = tune_widths(first)
    result = klce_test(second, tuned.kernel, null, draws, seed, engine)
    note = (
        f"widths tuned on {first.n:,} other rows, where KLCE^2 over its standard deviation rose "
        f"from {tuned.start:.2g} to {tuned.ratio:.2g}"
    )
    return replace(result, notes=(*result.notes, note))


def _choices(column: Column, columns: int) -> tuple[list[Kernel], list[float], FloatArray]:
    """The kernels that a column may get, the usual one first; their logs: a matrix and scales."""
    if column.kind in ("category", "boolean"):
        differ = np.not_equal.outer(column.values, column.values).astype(float)
        return ([Delta(), Delta(0.5), Constant()], [np.log(FAINT), np.log(0.5), 0.0], differ)
    width = Median(float(np.sqrt(columns)))(column.values[~column.missing])
    filled = np.nan_to_num(column.values) / width
    squares = np.square(np.subtract.outer(filled, filled))
    squares[np.not_equal.outer(column.missing, column.missing)] = -2 * np.log(FAINT)
    kernels: list[Kernel] = [*(RBF(factor * width) for factor in FACTORS), Constant()]
    return kernels, [*(-0.5 / factor**2 for factor in FACTORS), 0.0], squares


def _ratio(sample: Sample, logs: FloatArray) -> float:
    """KLCE^2 over its standard deviation under the alternative, for a kernel given by logs."""
    kernel = np.exp(logs)
    np.fill_diagonal(kernel, 0.0)
    w = sample.weights_or_ones
    e, v = w * sample.residuals, w**2 * sample.p * (1 - sample.p)
    smoothed = e * (kernel @ e)
    variance = 4 * sample.n * float(smoothed.var()) + 2 * float(v @ np.square(kernel) @ v)
    return float(smoothed.sum()) / np.sqrt(variance) if variance > 0 else 0.0


@dataclass(frozen=True)
class Folds(ABC):
    """How rows are divided between learning and testing."""

    number: int = 5
    meaning: ClassVar[str]

    def __post_init__(self) -> None:
        checked_count(self.number, "folds", at_least=2)

    @abstractmethod
    def roles(self) -> Iterator[tuple[Sequence[int], int]]:
        """Give the folds to learn from and the fold to test on, in turn.

        Returns
        -------
        iterator
            Of pairs: numbers of the folds to learn from, number of the fold to test on.
        """

    @abstractmethod
    def combined(self, pvalues: FloatArray) -> float:
        """Combine the p-values of all tested folds into one.

        Parameters
        ----------
        pvalues : (k,) array
            One for each tested fold.

        Returns
        -------
        float
            Valid if each of them is.
        """


@dataclass(frozen=True)
class Forward(Folds):
    """Learn from the folds before k, test on k; Fisher's combination.

    Each p-value is valid given all folds before it, which is what Fisher's sum needs.

    Parameters
    ----------
    number : int
        Number of folds, of which all but the first are tested on.
    """

    meaning: ClassVar[str] = "learned from the folds before, combined by Fisher's sum"

    def roles(self) -> Iterator[tuple[Sequence[int], int]]:  # noqa: D102
        return ((range(k), k) for k in range(1, self.number))

    def combined(self, pvalues: FloatArray) -> float:  # noqa: D102
        return float(chdtrc(2 * pvalues.size, -2 * np.log(pvalues).sum()))


@dataclass(frozen=True)
class Across(Folds):
    """Learn from all other folds, test on k; the smallest p-value times the number of folds.

    The p-values depend on each other (a witness has seen the labels that another is tested
    on), so sums of them are not valid; Bonferroni's bound is.

    Parameters
    ----------
    number : int
        Number of folds; each is tested on once.
    """

    meaning: ClassVar[str] = "learned from all other folds, smallest p-value times their number"

    def roles(self) -> Iterator[tuple[Sequence[int], int]]:  # noqa: D102
        everyone = range(self.number)
        return (([j for j in everyone if j != k], k) for k in everyone)

    def combined(self, pvalues: FloatArray) -> float:  # noqa: D102
        return min(1.0, pvalues.size * float(pvalues.min()))


@dataclass(frozen=True)
class FoldResult:
    """The test of one witness on one fold.

    Attributes
    ----------
    learned_from, tested_on : int
        Number of rows that the witness was learned from, and of those it was tested on.
    correlation : float
        Of the witness with the residuals it had not seen.
    pvalue : float
        One-sided: a good witness has the sign of the residuals.
    """

    learned_from: int
    tested_on: int
    correlation: float
    pvalue: float


@dataclass(frozen=True, eq=False, repr=False)
class WitnessResult(Result):
    """Outcome of `witness_test`.

    Attributes
    ----------
    parts : tuple of FoldResult
        One for each fold that was tested on.
    folds : Folds
        How rows were divided, and how the p-values are combined.
    regressor : str
        Name of the regressor that was learned.
    n : int
        Number of rows.
    names : tuple of str
        Names of the covariates.
    null : Null
        What the draws were made by.
    draws : int
        Number of draws for each fold.
    seed : int
        Makes the same folds and draws again.
    out_of_fold : bool
        Whether the probabilities are out-of-fold predictions of these rows.
    elapsed : float
        Seconds that learning and testing took.
    assumption_warnings, notes : tuple of str
        Where the data contradict the assumptions of the null; data-quality notes.
    """

    parts: tuple[FoldResult, ...]
    folds: Folds
    regressor: str
    null: Null
    n: int
    draws: int
    names: tuple[str, ...]
    seed: int
    elapsed: float
    assumption_warnings: tuple[str, ...]
    notes: tuple[str, ...]
    out_of_fold: bool = False

    @property
    def pvalue(self) -> float:
        """Of all folds together."""
        return self.folds.combined(np.array([part.pvalue for part in self.parts]))

    @property
    def is_exact(self) -> bool:
        """Whether the p-value is valid at every sample size; not with clusters or `cv=`."""
        return self.null.exact and not self.out_of_fold

    @property
    def warnings(self) -> tuple[str, ...]:
        """What takes away the meaning of the p-value."""
        return self.assumption_warnings

    def _facts(self) -> dict[str, Any]:
        return {
            "pvalue": self.pvalue,
            "folds": {"kind": type(self.folds).__name__, "number": self.folds.number},
            "parts": self._rows(),
            "regressor": self.regressor,
            "n": self.n,
            "on": self.names,
            "null": self.null.to_dict(),
            **{name: getattr(self, name) for name in ("draws", "seed", "warnings", "notes")},
        }

    def _rows(self) -> list[dict[str, Any]]:
        """One row for each fold."""
        return [vars(part) for part in self.parts]

    def __repr__(self) -> str:
        return f"<WitnessResult: p {self.pvalue:.4g}, n {self.n:,}>"


def witness_test(
    sample: Sample,
    regressor: Any = None,
    *,
    folds: Folds | None = None,
    draws: int = 999,
    rng: Rng = None,
) -> WitnessResult:
    """Learn where the model errs on some rows, test that direction exactly on others.

    Use it beside `klce_test` when errors may follow a rule that no dictionary has, such as
    interactions of three and more covariates, and rows are many; the dictionary is the
    better test for simple errors and few rows (studies/pages/power.md).

    Parameters
    ----------
    sample : Sample
        Labels, probabilities and covariates.
    regressor : scikit-learn regressor, optional
        Learns y - p from the prediction and the covariates (one column a level, missing
        numbers marked). Default: gradient boosting with small trees.
    folds : Forward or Across, optional
        Default: `Forward(5)`.
    draws : int
        Number of draws for each fold.
    rng : int, Generator or None
        Chooses the folds, and makes the draws.

    Returns
    -------
    WitnessResult
        The p-value of all folds together, and what each fold shows.

    Examples
    --------
    >>> import itrust as it
    >>> r = it.witness_test(it.simulate.survey(1_000, rng=0).sample, draws=199, rng=0)
    >>> r.pvalue < 0.05
    True
    """
    checked_sample(sample)
    folds = Forward() if folds is None else folds
    if not isinstance(folds, Folds):
        raise InputError(
            "{argument} must be Forward(5) or Across(5), not {value}", argument="folds", value=folds
        )
    if regressor is not None and (isinstance(regressor, type) or not hasattr(regressor, "predict")):
        raise InputError(
            "{argument} must be a scikit-learn regressor such as Ridge(), not {value}",
            argument="regressor",
            value=regressor,
        )
    begun = time.perf_counter()
    draws, seed = checked_draws(draws), as_seed(rng)
    null = fitting_null(sample)
    warnings = null_warnings(sample, null)
    if regressor is None:
        from sklearn.ensemble import HistGradientBoostingRegressor  # slow to load

        # Small trees: errors of a decent model are faint.
        trees = {"max_iter": 60, "max_depth": 3, "min_samples_leaf": 20, "early_stopping": False}
        regressor = HistGradientBoostingRegressor(**trees, random_state=seed % 2**32)
    rows = _fold_rows(sample, folds.number, seed)
    parts = []
    for learned, tested in folds.roles():
        seen = np.concatenate([rows[k] for k in learned])
        # Bits of their own for each fold, so that no draw of one says anything about another's.
        fold_seed = as_seed(np.random.default_rng([seed, tested]))
        fold = sample.take(rows[tested])
        direction = _witness(regressor, sample.take(seen), fold)
        parts.append(_tested(direction, seen.size, fold, draws, fold_seed))
    return WitnessResult(
        parts=tuple(parts),
        folds=folds,
        regressor=type(regressor).__name__,
        n=sample.n,
        names=sample.names,
        null=null,
        draws=draws,
        seed=seed,
        out_of_fold=sample.folds > 0,
        elapsed=time.perf_counter() - begun,
        assumption_warnings=warnings,
        notes=(*sample.notes, *cluster_notes(sample, null)),
    )


def _fold_rows(sample: Sample, number: int, seed: int) -> list[IntArray]:
    """Rows of each fold, at random; clusters stay whole."""
    codes = sample.design.drawn_together
    units, unit = np.unique(codes, return_inverse=True)
    if units.size < 2 * number:
        what = "rows" if sample.cluster is None else "clusters"
        raise InputError(
            "{value} folds need at least {least} {what}; this sample has {units}",
            argument="folds",
            value=number,
            details={"least": str(2 * number), "what": what, "units": str(units.size)},
        )
    fold = np.empty(units.size, dtype=np.int64)
    order = np.random.default_rng([seed, number]).permutation(units.size)
    fold[order] = np.arange(units.size) * number // units.size
    return [np.flatnonzero(fold[unit] == k) for k in range(number)]


def _witness(regressor: Any, learned: Sample, tested: Sample) -> FloatArray:
    """What a regressor that was fitted to the residuals of some rows says of others, (n,)."""
    from sklearn.base import clone

    features = plain_features(learned.points, COLUMN_LEVELS)
    model = clone(regressor)
    kind = type(model).__name__
    try:
        model.fit(features.matrix(learned.points).T, learned.residuals)
    except (TypeError, ValueError) as error:
        raise InputError(
            "{kind} is no regressor that can be fitted to residuals ({error})",
            argument="regressor",
            value=model,
            details={"kind": kind, "error": error},
        ) from error
    values = np.asarray(model.predict(features.matrix(tested.points).T), dtype=float)
    if not np.isfinite(values).all():
        raise InputError(
            "{kind} predicts values that are not finite; choose another regressor",
            argument="regressor",
            value=model,
            details={"kind": kind},
        )
    return values.reshape(tested.n)


def _tested(
    direction: FloatArray, learned_from: int, sample: Sample, draws: int, seed: int
) -> FoldResult:
    """Compare sums of residuals along a direction; the largest p-value of laws that are open."""
    direction = direction * sample.weights_or_ones
    (chunk,) = sample.chunks(sample.n)
    observed, pvalues = float(direction @ sample.residuals), []
    for law in fitting_null(sample).laws(sample, seed):
        sums = [observed]
        for at in range(0, draws, DRAWS_AT_ONCE):
            drawn = law.draw(chunk, range(at, min(at + DRAWS_AT_ONCE, draws)), seed)
            shift = direction @ sample.p if drawn.dtype == bool else 0.0
            sums.extend((direction @ drawn - shift).tolist())
        pvalues.append(float(unadjusted_pvalues(np.array([sums]))[0]))
    norm = float(np.linalg.norm(direction) * np.linalg.norm(sample.residuals))
    correlation = observed / norm if norm > 0 and math.isfinite(norm) else 0.0
    return FoldResult(learned_from, sample.n, correlation, max(pvalues))
