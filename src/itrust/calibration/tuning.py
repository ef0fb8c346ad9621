"""Widths that labels have chosen: tuned for power on some rows, tested on the others.

The honest form of the paper's greedy search, whose widths were chosen on the rows they were
tested on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from itrust._core import FloatArray, Rng, as_seed, checked_share
from itrust.calibration.door import klce_test
from itrust.calibration.inputs import checked_draws
from itrust.calibration.results import CalibrationResult
from itrust.data import Column, Sample, checked_sample
from itrust.engines import EngineChoice
from itrust.kernels import RBF, Constant, Delta, Kernel, LocalKernel, Median
from itrust.nulls import Null

MAX_ROWS = 800  # that the search uses
FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
SWEEPS = 3
FAINT = 1e-12  # match of different categories that counts as none


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
    letters = [_Choice.of(part.points.prediction, 1), *_choices(part.columns)]
    chosen = [letter.usual for letter in letters]
    logs = sum((letter.log_kernel(k) for letter, k in zip(letters, chosen, strict=True)), 0.0)
    best = start = _ratio(part, np.asarray(logs))
    for _ in range(SWEEPS):
        before = best
        for number, letter in enumerate(letters):
            rest = logs - letter.log_kernel(chosen[number])
            for option in range(len(letter.options)):
                if option == chosen[number]:
                    continue
                tried = rest + letter.log_kernel(option)
                ratio = _ratio(part, np.asarray(tried))
                if ratio > best:
                    best, logs, chosen[number] = ratio, tried, option
        if best <= before:
            break
    kernels = [letter.options[k] for letter, k in zip(letters, chosen, strict=True)]
    x = dict(zip(sample.names, kernels[1:], strict=True)) if sample.names else Constant()
    return TunedKernel(LocalKernel(kernels[0], x), best, start, part.n)


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


@dataclass(frozen=True, eq=False)
class _Choice:
    """A column and the kernels it may get; the log of each kernel is the same matrix scaled."""

    options: tuple[Kernel, ...]
    scales: tuple[float, ...]
    matrix: FloatArray  # squared distance over that of the usual width, or 1 where values differ
    usual: int

    @classmethod
    def of(cls, column: Column, columns: int) -> _Choice:
        if column.kind in ("category", "boolean"):
            differ = np.not_equal.outer(column.values, column.values).astype(float)
            options = Delta(), Delta(0.5), Constant()
            return cls(options, (np.log(FAINT), np.log(0.5), 0.0), differ, 0)
        present = column.values[~column.missing]
        width = Median(float(np.sqrt(columns)))(present)
        filled = np.nan_to_num(column.values) / width
        squares = np.square(np.subtract.outer(filled, filled))
        squares[np.not_equal.outer(column.missing, column.missing)] = -2 * np.log(FAINT)
        widths: list[Kernel] = [RBF(factor * width) for factor in FACTORS]
        scales = [-0.5 / factor**2 for factor in FACTORS]
        return cls((*widths, Constant()), (*scales, 0.0), squares, FACTORS.index(1.0))

    def log_kernel(self, option: int) -> FloatArray:
        return self.scales[option] * self.matrix


def _choices(columns: Sequence[Column]) -> list[_Choice]:
    numbers = sum(column.kind in ("number", "date") for column in columns)
    return [_Choice.of(column, max(numbers, 1)) for column in columns]


def _ratio(sample: Sample, logs: FloatArray | Any) -> float:
    """KLCE^2 over its standard deviation under the alternative, for a kernel given by logs."""
    kernel = np.exp(logs)
    np.fill_diagonal(kernel, 0.0)
    w = sample.weights_or_ones
    e, v = w * sample.residuals, w**2 * sample.p * (1 - sample.p)
    smoothed = e * (kernel @ e)
    total = float(smoothed.sum())
    spread = 4 * sample.n * float(smoothed.var())
    null_variance = 2 * float(v @ np.square(kernel) @ v)
    variance = spread + null_variance
    return total / np.sqrt(variance) if variance > 0 else 0.0
