"""A learned direction: a regressor says where the model errs, and rows it has not seen decide.

For high dimension and for errors that no dictionary has an entry for. Given the rows a witness
was learned from, its test on other rows is exact; so is the combination of folds that are tested
in a row, each by a witness that saw the folds before it alone.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from itrust._core import FloatArray, InputError, IntArray, Rng, as_seed
from itrust.calibration.folds import Folds, Forward
from itrust.calibration.inputs import checked_draws, checked_null, cluster_notes, null_warnings
from itrust.calibration.multiplicity import unadjusted_pvalues
from itrust.calibration.results import WithRun
from itrust.data import Sample, checked_sample
from itrust.nulls import Null, RowwiseNull, fitting_null
from itrust.terms import COLUMN_LEVELS, Features, plain_features

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

DRAWS_AT_ONCE = 256


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
class WitnessResult(WithRun):
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
    seed: int
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
            "parts": [vars(part) for part in self.parts],
            "regressor": self.regressor,
            "n": self.n,
            "on": self.names,
            "null": self.null.to_dict(),
            **self._by_name("draws", "seed", "warnings", "notes"),
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
    better test for simple errors and few rows (docs/studies/power.md).

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
    null = checked_null(None, sample)
    assert isinstance(null, RowwiseNull)
    warnings = null_warnings(sample, null)
    model = regressor if regressor is not None else default_regressor(seed)
    rows = _fold_rows(sample, folds.number, seed)
    parts = []
    for learned, tested in folds.roles():
        seen = np.concatenate([rows[k] for k in learned])
        # Bits of their own for each fold, so that no draw of one says anything about another's.
        own_seed = as_seed(np.random.default_rng([seed, tested]))
        witness = _learn(model, sample.take(seen))
        parts.append(_tested(witness, seen.size, sample.take(rows[tested]), draws, own_seed))
    return WitnessResult(
        parts=tuple(parts),
        folds=folds,
        regressor=type(model).__name__,
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


def default_regressor(seed: int = 0) -> HistGradientBoostingRegressor:
    """Gradient boosting with small trees: errors of a decent model are faint."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # slow to load

    return HistGradientBoostingRegressor(
        learning_rate=0.1,
        max_iter=60,
        max_depth=3,
        min_samples_leaf=20,
        early_stopping=False,
        random_state=seed % 2**32,
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


@dataclass(frozen=True, eq=False)
class _Witness:
    """A fitted regressor and how it reads rows."""

    features: Features
    model: Any

    def __call__(self, sample: Sample) -> FloatArray:
        values = np.asarray(self.model.predict(self.features.matrix(sample.points).T), dtype=float)
        if not np.isfinite(values).all():
            raise InputError(
                "{kind} predicts values that are not finite; choose another regressor",
                argument="regressor",
                value=self.model,
                details={"kind": type(self.model).__name__},
            )
        return values.reshape(sample.n)


def _learn(regressor: Any, sample: Sample) -> _Witness:
    from sklearn.base import clone

    features = plain_features(sample.points, COLUMN_LEVELS)
    model = clone(regressor)
    try:
        model.fit(features.matrix(sample.points).T, sample.residuals)
    except (TypeError, ValueError) as error:
        raise InputError(
            "{kind} is no regressor that can be fitted to residuals ({error})",
            argument="regressor",
            value=model,
            details={"kind": type(model).__name__, "error": error},
        ) from error
    return _Witness(features, model)


def _tested(
    witness: _Witness, learned_from: int, sample: Sample, draws: int, seed: int
) -> FoldResult:
    """The largest p-value of the laws that the rows leave open."""
    direction = witness(sample) * sample.weights_or_ones
    laws = fitting_null(sample).laws(sample, seed)
    found = [_sums(direction, sample, law, draws, seed) for law in laws]
    values = found[0]
    norm = float(np.linalg.norm(direction) * np.linalg.norm(sample.residuals))
    return FoldResult(
        learned_from=learned_from,
        tested_on=sample.n,
        correlation=values[0] / norm if norm > 0 and math.isfinite(norm) else 0.0,
        pvalue=max(float(unadjusted_pvalues(sums[None])[0]) for sums in found),
    )


def _sums(
    direction: FloatArray, sample: Sample, null: RowwiseNull, draws: int, seed: int
) -> FloatArray:
    """Sums of residuals along a direction, the data first, (1 + draws,)."""
    (chunk,) = sample.chunks(sample.n)
    sums = [float(direction @ sample.residuals)]
    for at in range(0, draws, DRAWS_AT_ONCE):
        drawn = null.draw(chunk, range(at, min(at + DRAWS_AT_ONCE, draws)), seed)
        shift = direction @ sample.p if drawn.dtype == bool else 0.0
        sums.extend((direction @ drawn - shift).tolist())
    return np.array(sums)
