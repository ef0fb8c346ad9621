"""Rows that are looked at: residuals, and what a smooth function of (p, x) explains of them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from itrust._core import FloatArray, IntArray
from itrust.data import Column, Sample

MAX_ROWS = 20_000
MIN_VARIANCE = 0.05  # of labels: residuals of rarer events are not blown up any further
MAX_FEATURES, ROWS_PER_FEATURE = 80, 8
WAVES_OF_P, MIN_WAVES, MAX_WAVES, WAVES_OF_ALL = 5, 4, 8, 32
MAX_LEVELS, ROWS_PER_LEVEL = 40, 5


def spread_rows(n: int) -> IntArray:
    """All of n rows, or 20,000 of them at equal distances."""
    return np.unique(np.linspace(0, n - 1, MAX_ROWS).astype(np.int64))


class Rows:
    """Some rows of a sample; `numbers` says which.

    `residuals` (m,) are y - p over the standard deviation of the label, `variances` their variances
    if p is right: 1, but less for rare events.
    """

    def __init__(self, sample: Sample, numbers: IntArray) -> None:
        self.sample, self.numbers = sample, numbers
        p = sample.p[numbers]
        scale = np.maximum(p * (1 - p), MIN_VARIANCE)
        self.residuals = (sample.y[numbers] - p) / np.sqrt(scale)
        self.variances = p * (1 - p) / scale

    def at(self, numbers: IntArray) -> Rows:
        """Other rows of the same sample; itself if they are the same ones."""
        same = numbers.size == self.numbers.size and bool((numbers == self.numbers).all())
        return self if same else Rows(self.sample, numbers)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Predictions and covariates of these rows."""
        points = self.sample.points.take(self.numbers)
        return points.prediction, *points.columns

    @cached_property
    def codes(self) -> tuple[IntArray, ...]:
        """For every column the place of each row's value among the distinct ones."""
        return tuple(np.unique(c.values, return_inverse=True)[1] for c in self.columns)

    @cached_property
    def cells(self) -> IntArray:
        """Numbers of the distinct (p, x), (m,)."""
        return self.crossed(self.codes)

    def crossed(self, codes: tuple[IntArray, ...]) -> IntArray:
        """Numbers of the distinct combinations; those that share categories and p are close."""
        first = sorted(
            range(len(codes)), key=lambda k: not self.columns[-len(codes) + k].is_category
        )
        found = np.zeros(self.numbers.size, dtype=np.int64)
        for k in first:
            found = found * (int(codes[k].max()) + 1) + codes[k]
            found = np.unique(found, return_inverse=True)[1]
        return found

    @cached_property
    def places(self) -> FloatArray:
        """Where the rows lie, (m, d): ranks of numbers between 0 and 1; levels are 1 apart."""
        pairs = zip(self.columns, self.codes, strict=True)
        return np.column_stack([c.astype(float) if x.is_category else _ranks(c) for x, c in pairs])

    @cached_property
    def basis(self) -> FloatArray:
        """Orthonormal features of (p, x), coarse ones first, (m, k)."""
        room = max(min(MAX_FEATURES, self.numbers.size // ROWS_PER_FEATURE), 1)
        return np.linalg.qr(np.column_stack(self._features(room)[:room]))[0]

    def _features(self, room: int) -> list[FloatArray]:
        """Smooth functions of every column, then the levels of coarse columns."""
        numbers = [k for k, column in enumerate(self.columns) if not column.is_category]
        found = [np.ones(self.numbers.size)]
        found += [np.cos(np.pi * wave * self.places[:, 0]) for wave in range(1, 1 + WAVES_OF_P)]
        waves = np.clip(WAVES_OF_ALL // len(numbers), MIN_WAVES, MAX_WAVES)
        for wave in range(1, 1 + waves):
            if len(found) < room:
                found += [np.cos(np.pi * wave * self.places[:, k]) for k in numbers[1:]]
        for codes in self.codes:
            size = np.bincount(codes)
            if len(found) < room and 1 < size.size <= MAX_LEVELS:
                frequent = np.flatnonzero(size >= ROWS_PER_LEVEL)[1:]
                found += [(codes == level).astype(float) for level in frequent]
        return found

    def unexplained(self, max_features: int = MAX_FEATURES) -> FloatArray:
        """Residuals less what the first features of (p, x) explain, (m,)."""
        basis = self.basis[:, : max(max_features, 1)]
        left: FloatArray = self.residuals - basis @ (basis.T @ self.residuals)
        return left


def _ranks(codes: IntArray) -> FloatArray:
    """Ranks between 0 and 1, the same for equal values; missing values are the last."""
    count = np.bincount(codes)
    middle: FloatArray = (np.cumsum(count) - count / 2) / codes.size
    return middle[codes]
