"""Checks of every kind on one scale, so that the largest can be compared with its draws.

A check's value is divided by its null standard deviation, and by the ratio of observed to expected
residual variance where that exceeds 1 (which, for checks of one feature and many rows, makes it
hold for "no bias along this check", too; checks of several features promise the sharp null alone);
then it becomes minus the log of its approximate null tail, a shifted gamma law with the
exact first three moments. The map is the same for the data and all draws, so a bad approximation
costs power, never validity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from itrust._core import FloatArray
from itrust.calibration.dictionary.bank import Bank, BankSums
from itrust.calibration.tails import pearson3_log_sf
from itrust.engines import KernelOutcome, NullMoments


@dataclass(frozen=True, eq=False)
class ScaledChecks:
    """Values of all checks for the data and some draws; see `Scores` for what they are.

    Attributes
    ----------
    log_tails, standardised : (E, 1 + draws) arrays
        Minus the log of the approximate null tails, and the values behind them.
    statistic : (1 + draws,) array
        KLCE^2 of the main kernel.
    sd, skewness : (E,) arrays
        Of every check's value under the null.
    """

    log_tails: FloatArray
    standardised: FloatArray
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
) -> tuple[FloatArray, FloatArray]:
    """Minus the log tails and the standardised values of all checks, (E, columns)."""
    values = bank.selector @ np.square(sums.forms) - sums.diagonals
    scales = np.sqrt(np.asarray(bank.selector.sum(axis=1)).ravel())
    own = np.flatnonzero(bank.single >= 0)
    values[own] = sums.forms[bank.single[own]] * scales[own, None]
    is_single = np.concatenate([bank.single >= 0, np.zeros(len(kernels), dtype=bool)])[:, None]
    values = np.concatenate([values, *(kernel.over_pairs[None] for kernel in kernels)])
    diagonals = np.concatenate([sums.diagonals, *(kernel.diagonal[None] for kernel in kernels)])
    expected = np.array([*sums.expected, *(kernel.expected for kernel in kernels)])[:, None]
    sd, skewness = (value[:, None] for value in law)
    # More variance than expected is taken out; less is not, for rare events would blow up.
    swollen = np.maximum(diagonals / expected, 1.0)
    unit = sd * np.where(is_single, np.sqrt(swollen), swollen)
    standardised = np.divide(values, unit, out=np.zeros_like(values), where=unit > 0)
    # The sum along a feature is taken in both directions; its longer tail gets its length.
    sign = np.where(is_single, np.sign(standardised), 1.0)
    tails = -pearson3_log_sf(sign * standardised, np.maximum(sign * skewness, 0.0))
    tails -= np.where(is_single, np.log(2), 0.0)
    return np.where(is_single, np.maximum(tails, 0.0), tails), standardised
