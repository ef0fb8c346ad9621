"""Checks of every kind on one scale, so that the largest can be compared with its draws.

A check's value is divided by its null standard deviation; then it becomes minus the log of its
approximate null tail, a shifted gamma law with the exact first three moments. The map is the same
for the data and all draws, so a bad approximation costs power, never validity. Where labels are
redrawn from their probabilities, nothing else is done: dividing by the variance of the observed
residuals, too, would hide the very thing that is looked for where events are rare and too many
come true. Draws that keep the size of residuals are divided by the ratio of observed to expected
variance where that exceeds 1, so that checks stay comparable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from itrust._core import AnyArray, BoolArray, FloatArray
from itrust.calibration.dictionary.bank import Bank, BankSums
from itrust.calibration.multiplicity import COLUMNS_AT_ONCE
from itrust.calibration.tails import pearson3_log_sf
from itrust.engines import KernelOutcome, NullMoments

SLACK = 1.2  # ratio of a spread to that of independent rows up to which the latter is taken


@dataclass(frozen=True, eq=False)
class ScaledChecks:
    """Values of all checks for the data and some draws; see `Scores` for what they are."""

    log_tails: FloatArray
    standardised: AnyArray
    statistic: FloatArray
    sd: FloatArray
    skewness: FloatArray

    def without_data(self) -> ScaledChecks:
        """The draws alone."""
        log_tails, standardised = self.log_tails[:, 1:], self.standardised[:, 1:]
        return ScaledChecks(log_tails, standardised, self.statistic[1:], self.sd, self.skewness)

    @classmethod
    def joined(cls, batches: Sequence[ScaledChecks]) -> ScaledChecks:
        """Several batches of draws side by side; the law of the first holds for all."""
        if len(batches) == 1:
            return batches[0]
        log_tails, standardised, statistic = (
            np.concatenate([getattr(batch, name) for batch in batches], axis=-1)
            for name in ("log_tails", "standardised", "statistic")
        )
        return cls(log_tails, standardised, statistic, batches[0].sd, batches[0].skewness)


def null_law(
    bank: Bank, sums: BankSums, kernels: Sequence[tuple[KernelOutcome, NullMoments]]
) -> tuple[FloatArray, FloatArray]:
    """Standard deviation and skewness of every check under the null, (E,) each."""
    expected = sums.expected
    is_single = bank.single >= 0
    sd, skewness = bank.moments.of_forms(expected)
    sd = np.where(is_single, np.sqrt(expected), sd)
    skewness = np.where(is_single, bank.moments.skewness_of_singles(expected), skewness)
    found = [(sd, skewness)]
    found += [moments.of_forms(np.array([kernel.expected])) for kernel, moments in kernels]
    sds, skews = zip(*found, strict=True)
    return np.concatenate(sds), np.concatenate(skews)


def on_one_scale(
    bank: Bank,
    sums: BankSums,
    kernels: Sequence[KernelOutcome],
    law: tuple[FloatArray, FloatArray],
    *,
    precise: bool = True,
) -> tuple[FloatArray, AnyArray]:
    """Minus the log tails and the standardised values of all checks, (E, columns).

    Standardised values that need not be precise are kept in single precision.
    """
    unit, skewness = (value[:, None] for value in law)
    is_single = np.concatenate([bank.single >= 0, np.zeros(len(kernels), dtype=bool)])[:, None]
    if bank.is_studentised:
        unit = unit * _swollen(sums, kernels, is_single)
    columns = sums.forms.shape[1]
    log_tails = np.empty((len(unit), columns))
    standardised = np.empty(log_tails.shape, np.float64 if precise else np.float32)
    for at in range(0, columns, COLUMNS_AT_ONCE):  # what is made on the way stays small
        block = slice(at, at + COLUMNS_AT_ONCE)
        values = _values(bank, sums, kernels, block)
        values = np.divide(values, unit, out=np.zeros_like(values), where=unit > 0)
        log_tails[:, block] = log_tails_of(values, skewness, is_single)
        standardised[:, block] = values
    return log_tails, standardised


def _values(
    bank: Bank, sums: BankSums, kernels: Sequence[KernelOutcome], block: slice
) -> FloatArray:
    """Sums along single features and forms of all other checks, some columns of them."""
    own, several = (np.flatnonzero(which) for which in (bank.single >= 0, bank.single < 0))
    forms = sums.forms[:, block]
    values = np.empty((len(bank.entries), forms.shape[1]))
    scales = np.sqrt(np.asarray(bank.selector.sum(axis=1)).ravel())
    values[own] = forms[bank.single[own]] * scales[own, None]
    # Residuals that keep their size keep their squares, too: those of the data are taken.
    wanted = slice(0, 1) if bank.is_studentised else block
    values[several] = bank.selector[several] @ np.square(forms) - sums.diagonals[several, wanted]
    return np.concatenate([values, *(kernel.over_pairs[None, block] for kernel in kernels)])


def scaled_by_draws(
    checks: ScaledChecks,
    others: ScaledChecks,
    is_single: BoolArray,
    is_symmetric: BoolArray,
    *,
    keeps_residuals: bool = False,
) -> ScaledChecks:
    """The same checks on the scale of draws, where no closed form has their moments.

    The moments are those of other draws, so that data and draws are treated alike, and a strong
    bias does not hide itself by what it adds to them. Sums along a single feature have mean 0, for
    every label keeps its probability. Where few events may happen, some draws tell little of
    a tail: there spread and skewness are at least those of independent rows.
    """
    single, symmetric = is_single[:, None], is_symmetric[:, None]
    mean = np.where(single, 0.0, others.standardised.mean(axis=1, keepdims=True))
    drawn = others.standardised - mean
    sd = np.sqrt(np.square(drawn).mean(axis=1, keepdims=True))
    sd = np.where(symmetric, sd, np.maximum(sd, 1.0))
    sd = np.where(sd > 0, sd, 1.0)
    if keeps_residuals:
        sd = np.where(sd > 1, np.maximum(sd / SLACK, 1.0), np.minimum(sd * SLACK, 1.0))
    known, seen = checks.skewness[:, None], ((drawn / sd) ** 3).mean(axis=1, keepdims=True)
    more = ~symmetric & (np.abs(seen) > np.abs(known))
    skewness = np.where(more, seen, known)
    standardised = (checks.standardised - mean) / sd
    law = checks.sd * sd[:, 0], skewness[:, 0]
    log_tails = log_tails_of(standardised, skewness, single)
    return ScaledChecks(log_tails, standardised, checks.statistic, *law)


def log_tails_of(
    standardised: FloatArray, skewness: FloatArray, is_single: BoolArray
) -> FloatArray:
    """Minus the log of the tails of shifted gamma laws, (E, columns)."""
    tails = np.empty_like(standardised, dtype=np.float64)
    for at in range(
        0, standardised.shape[1], COLUMNS_AT_ONCE
    ):  # what is made on the way stays small
        block = slice(at, at + COLUMNS_AT_ONCE)
        values = standardised[:, block]
        # The sum along a feature is taken in both directions; its longer tail gets its length.
        sign = np.where(is_single, np.sign(values), 1.0)
        some = -pearson3_log_sf(sign * values, np.maximum(sign * skewness, 0.0))
        some -= np.where(is_single, np.log(2), 0.0)
        tails[:, block] = np.where(is_single, np.maximum(some, 0.0), some)
    return tails


def _swollen(sums: BankSums, kernels: Sequence[KernelOutcome], is_single: BoolArray) -> FloatArray:
    """How far residuals vary more than expected, (E, 1), in the units of a check's value.

    More variance than expected is taken out; less is not, for rare events would blow up.
    """
    diagonals = np.concatenate([sums.diagonals, *(kernel.diagonal[None] for kernel in kernels)])
    diagonals = diagonals[:, :1]
    expected = np.array([*sums.expected, *(kernel.expected for kernel in kernels)])[:, None]
    ratio = np.maximum(diagonals / expected, 1.0)
    return np.asarray(np.where(is_single, np.sqrt(ratio), ratio))
