"""One pass over the rows for all classes: every row's class is drawn once and serves all checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from itrust._core import Advance, FloatArray
from itrust.calibration.dictionary.bank import BankSums
from itrust.calibration.multiclass.checks import ClassChecks
from itrust.calibration.multiclass.rows import CheckedRows
from itrust.engines import Additive, Drawn, Products, Scratch, join
from itrust.nulls import CategoryDraws, Rademacher

ClassNull = CategoryDraws | Rademacher

MAX_CHUNK, MIN_CHUNK = 8_192, 1_024
DRAWS_AT_ONCE = 1_024  # in a product
BATCH_BYTES = 2**26  # of the sums of a batch of draws
MIN_COLUMNS = 64


@dataclass(frozen=True, eq=False)
class ClassSums(Additive):
    """Sums over rows, the data first."""

    banks: tuple[BankSums, ...]
    joint: FloatArray
    diagonals: FloatArray
    contrasts: FloatArray


@dataclass(frozen=True, eq=False)
class ContrastMoments(Additive):
    """What the null law of contrasts is made of: sums over all rows."""

    covariance: FloatArray
    with_level: FloatArray
    cubes: FloatArray
    mixed: FloatArray
    weight: FloatArray


def batches(checks: ClassChecks, draws: range) -> Iterator[range]:
    """Cut draws into batches whose sums fit into memory."""
    size = max(MIN_COLUMNS, BATCH_BYTES // (8 * checks.width))
    for at in range(draws.start, max(draws.stop, draws.start + 1), size):
        yield range(at, min(at + size, draws.stop))


def class_sums(
    checks: ClassChecks, null: ClassNull, draws: range, seed: int, advance: Advance | None = None
) -> ClassSums:
    """Sum the residuals of the data and of some draws along all features."""
    work = _SumsWork(checks.without_rows(), null, draws, seed)
    total: ClassSums = checks.rows.total(work, chunk_rows(checks), advance)
    return total


@dataclass(frozen=True, eq=False)
class _SumsWork:
    """What some rows contribute to the sums; workers are sent it."""

    checks: ClassChecks
    null: ClassNull
    draws: range
    seed: int

    def __call__(self, rows: CheckedRows, scratch: Scratch) -> ClassSums:
        return _part(self.checks, self.null, rows, self.draws, self.seed, scratch)


def contrast_moments(checks: ClassChecks) -> ContrastMoments:
    """Sum what the null law of contrasts needs; no label takes part."""
    work = _MomentsWork(checks.without_rows())
    total: ContrastMoments = checks.rows.total(work, chunk_rows(checks))
    return total


@dataclass(frozen=True, eq=False)
class _MomentsWork:
    """What some rows contribute to the moments; workers are sent it."""

    checks: ClassChecks

    def __call__(self, rows: CheckedRows, _: Scratch) -> ContrastMoments:
        return _moments(self.checks, rows)


def chunk_rows(checks: ClassChecks) -> int:
    """Rows at a time, the same in memory and from files."""
    wanted = [bank.max_rows for bank in checks.banks]
    return min(MAX_CHUNK, *wanted, max(MIN_CHUNK, -(-checks.rows.n // 4)))


def _part(
    checks: ClassChecks,
    null: ClassNull,
    data: CheckedRows,
    draws: range,
    seed: int,
    scratch: Scratch,
) -> ClassSums:
    """What some rows contribute."""
    dtype, columns = checks.dtype, 1 + len(draws)
    redraws: _Flipped | _Redrawn
    if isinstance(null, Rademacher):
        redraws = _Flipped(data, null, draws, seed)
    else:
        redraws = _Redrawn(data, null, draws, seed, scratch)
    w = data.weights_or_ones / checks.unit
    along = checks.contrasts.matrix(data.points(0), dtype) * w.astype(dtype)
    none = np.empty((data.n, 0), dtype=dtype)
    blocks = checks.joint.features(data, dtype)
    ends = np.cumsum([0, *checks.joint.ranks])
    squares = []
    for own, _, features in blocks:
        features *= w[own].astype(dtype)
        squares.append(np.einsum("ri,ri->i", features, features)[:, None])
    joint = np.zeros((data.classes, checks.joint.rank, columns))
    diagonals = np.zeros((data.classes, columns))
    contrasts = np.zeros((data.classes, len(along), columns))
    banks = []
    for k in range(data.classes):
        chunk = data.chunk(k)
        part = checks.banks[k].begin(chunk, w, columns)
        shared = Products(along.T, none, chunk.p)
        forms = [
            Products(features.T, square, chunk.p[own], own)
            for (own, _, features), square in zip(blocks, squares, strict=True)
        ]
        join([*part.products, shared, *forms], scratch)
        for at in range(0, columns, DRAWS_AT_ONCE):
            block = slice(at, min(at + DRAWS_AT_ONCE, columns))
            drawn = redraws.of(k, block)
            part.add(drawn)
            contrasts[k, :, block] = shared.of(drawn)[0]
            for (_, number, _), products in zip(blocks, forms, strict=True):
                sums, diagonal = products.of(drawn)
                joint[k, ends[number] : ends[number + 1], block] = sums
                diagonals[k, block] += diagonal[0]
        banks.append(part.finished())
    return ClassSums(tuple(banks), joint, diagonals, contrasts)


class _Redrawn:
    """Labels of some rows and draws: every row has one class, the data first."""

    def __init__(
        self,
        data: CheckedRows,
        null: CategoryDraws,
        draws: range,
        seed: int,
        scratch: Scratch,
    ) -> None:
        self.scratch = scratch
        self.codes = np.empty((data.n, 1 + len(draws)), dtype=np.int16)
        self.codes[:, 0] = data.codes
        self.codes[:, 1:] = null.codes(data.rows, draws, seed, data.p)

    def of(self, code: int, block: slice) -> Drawn:
        """Whether rows have a class, for some columns."""
        shape = len(self.codes), block.stop - block.start
        numbers = self.scratch.array("draws", shape, np.float32)
        np.equal(self.codes[:, block], code, out=numbers, casting="unsafe")
        return Drawn(block, numbers, is_label=True)


class _Flipped:
    """Signs of whole clusters, the same for all classes; the data first."""

    def __init__(
        self,
        data: CheckedRows,
        null: Rademacher,
        draws: range,
        seed: int,
    ) -> None:
        self.data = data
        self.signs = np.ones((data.n, 1 + len(draws)), dtype=np.float32)
        self.signs[:, 1:] -= 2 * null.flips(data.chunk(0), draws, seed).view(np.int8)

    def of(self, code: int, block: slice) -> Drawn:
        """The residuals of a class and their signs, for some columns."""
        residuals = (self.data.codes == code) - self.data.p[:, code]
        return Drawn(block, self.signs[:, block], is_label=False, flipped=residuals)


def _moments(checks: ClassChecks, data: CheckedRows) -> ContrastMoments:
    p, w = data.p, data.weights_or_ones / checks.unit
    phi = checks.contrasts.matrix(data.points(0), np.float64) * w
    cubed = phi**3
    shape = (len(phi), data.classes, data.classes)
    covariance, with_level, mixed = (np.empty(shape) for _ in range(3))
    for g in range(len(phi)):
        covariance[g] = _covariance(np.square(phi[g]), p)
        with_level[g] = _covariance(phi[g] * w, p)
        mixed[g] = (np.square(p) * cubed[g][:, None]).T @ p
    cubes = np.stack([cubed @ p**power for power in (1, 2, 3)], axis=-1)
    return ContrastMoments(covariance, with_level, cubes, mixed, np.abs(phi).sum(axis=1))


def _covariance(weights: FloatArray, p: FloatArray) -> FloatArray:
    """Sum of weights times diag(p) - pp', (K, K)."""
    weighed = p * weights[:, None]
    return np.asarray(np.diag(weighed.sum(axis=0)) - weighed.T @ p)
