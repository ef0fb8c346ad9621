"""The evidence: bets on all checks, begun at every batch, in one mixture.

A bet may begin at any batch k. With the weight pi_k of an onset, the sum over onsets of pi_k times
the product of a bet's factors since k obeys A_t = (A_(t-1) + pi_t) L_t, so one number a bet is all
that is kept. Those onsets that are still to come stand for 1 each. The mixture of all bets is a
supermartingale that begins at 1, and by Ville's inequality it ever reaches 1 / alpha with
probability alpha at most. With pi_t = 1 and nothing to come it is a Shiryaev-Roberts sum instead:
its mean is at most the number of batches, so that on average it takes 1 / alpha batches or more
until it reaches 1 / alpha.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from itrust._core import FloatArray
from itrust.watch.bets import (
    LOG_CHANCES,
    MEMORIES,
    RIDGES,
    STAKES,
    BatchRows,
    Recalibrations,
    bet_sums,
    log_factors,
    ratios_of,
)
from itrust.watch.components import CheckPanel
from itrust.watch.results import Onset, Promise, WatchFinding

EARLY = 8.0  # onsets up to about this batch share half of the weight
RECALIBRATED = 0.2  # share of the recalibrations in the stake of a panel
MAX_BLOCKS, RECENT = 48, 32  # groups of batches whose sums are kept, and single ones among them

MatrixPart = tuple[FloatArray, BatchRows]


def log_onset(batch: int, promise: Promise) -> float:
    """Log weight of an onset at a batch of a segment, from 1."""
    if promise is Promise.RUN_LENGTH:
        return 0.0
    return math.log(EARLY) - math.log(batch + EARLY - 1) - math.log(batch + EARLY)


def log_to_come(batches: int, promise: Promise) -> float:
    """Log weight of all onsets after so many batches."""
    if promise is Promise.RUN_LENGTH:
        return -math.inf
    return math.log(EARLY) - math.log(batches + EARLY)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Sums of earlier batches, the older ones in groups, from which an onset is read."""

    first: tuple[int, ...]
    sums: FloatArray

    @classmethod
    def empty(cls, checks: int) -> Self:
        """No batches yet."""
        return cls((), np.zeros((0, 3, 2, checks), dtype=np.float32))

    def after(self, batch: int, sums: FloatArray) -> Blocks:
        """Add a batch; where there are too many groups, join the two shortest neighbours."""
        first = (*self.first, batch)
        held = np.concatenate([self.sums, sums[None].astype(np.float32)])
        if len(first) <= MAX_BLOCKS:
            return Blocks(first, held)
        old = len(first) - RECENT
        lengths = [first[k + 2] - first[k] for k in range(old - 1)]
        at = lengths.index(min(lengths))
        held[at] += held[at + 1]
        return Blocks(first[: at + 1] + first[at + 2 :], np.delete(held, at + 1, axis=0))


@dataclass(frozen=True, eq=False)
class PanelWealth:
    """What the bets of one panel have become."""

    log_bets: FloatArray
    log_moved: FloatArray
    peaks: FloatArray
    sides: FloatArray
    known: Recalibrations
    blocks: Blocks
    rows: FloatArray

    @classmethod
    def begun(cls, panel: CheckPanel, promise: Promise, *, moved: bool) -> Self:
        """Before the first batch."""
        checks = len(panel.checks)
        bets = np.full((2, checks, STAKES.size), -np.inf)
        return cls(
            bets,
            np.full(len(MEMORIES) * len(RIDGES) if moved else 0, -np.inf),
            np.full(checks, log_to_come(0, promise)),
            np.ones(checks),
            Recalibrations.empty(len(panel.joint)),
            Blocks.empty(checks),
            np.zeros(checks),
        )

    def by_check(self, batches: int, promise: Promise) -> FloatArray:
        """Log evidence of every check by itself, (K,)."""
        to_come = log_to_come(batches, promise)
        return _mixed(np.logaddexp(self.log_bets, to_come) + LOG_CHANCES, (0, 2))

    def total(self, panel: CheckPanel, batches: int, promise: Promise) -> float:
        """Log evidence of the whole panel."""
        share = RECALIBRATED if self.log_moved.size else 0.0
        parts = [self.by_check(batches, promise) + np.log(panel.weights * (1 - share))]
        if self.log_moved.size:
            to_come = log_to_come(batches, promise)
            each = math.log(share / self.log_moved.size)
            parts.append(np.logaddexp(self.log_moved, to_come) + each)
        return float(_mixed(np.concatenate(parts), 0))

    def after(
        self,
        panel: CheckPanel,
        parts: Iterable[MatrixPart],
        batch: int,
        promise: Promise,
        tolerance: float = 0.0,
        *,
        restarts: bool = False,
        keeps_blocks: bool = True,
    ) -> PanelWealth:
        """Take in a batch."""
        begun = PanelWealth.begun(panel, promise, moved=bool(self.log_moved.size))
        held = replace(begun, known=self.known) if restarts else self
        sums, ratios, known, rows = _read(panel, held, parts, tolerance)
        held = replace(held, rows=held.rows + rows)
        return held.moved_by(sums, ratios, known, batch, promise, keeps_blocks=keeps_blocks)

    def moved_by(
        self,
        sums: FloatArray,
        ratios: FloatArray,
        known: Recalibrations,
        batch: int,
        promise: Promise,
        *,
        keeps_blocks: bool = True,
    ) -> PanelWealth:
        """Take in a batch whose sums are known."""
        onset = log_onset(batch, promise)
        found = replace(
            self,
            log_bets=np.logaddexp(self.log_bets, onset) + log_factors(sums),
            log_moved=np.logaddexp(self.log_moved, onset) + ratios,
            known=known,
            blocks=self.blocks.after(batch, sums) if keeps_blocks else self.blocks,
        )
        now = found.by_check(batch, promise)
        above, below = _mixed(found.log_bets + LOG_CHANCES, 2)
        side = np.where(above >= below, 1.0, -1.0)
        return replace(
            found,
            peaks=np.maximum(self.peaks, now),
            sides=np.where(now > self.peaks, side, self.sides),
        )


def _read(
    panel: CheckPanel, held: PanelWealth, parts: Iterable[MatrixPart], tolerance: float
) -> tuple[FloatArray, FloatArray, Recalibrations, FloatArray]:
    """Sums of a batch, its likelihood ratios, what is known after it, and rows of every check."""
    counts = np.zeros(len(panel.checks))
    sums, ratios = np.zeros((3, 2, len(panel.checks))), np.zeros(held.log_moved.size)
    has_moves, joint = bool(held.log_moved.size), list(panel.joint)
    moves = held.known.moves() if has_moves else None
    known = held.known.faded() if has_moves else held.known
    for matrix, rows in parts:
        counts += np.count_nonzero(matrix, axis=1)
        sums += bet_sums(matrix, rows, tolerance)
        if moves is not None:
            phi = matrix[joint]
            ratios += ratios_of(moves, phi, rows)
            known = known.plus(phi, rows)
    return sums, ratios, known, counts


def _mixed(logs: FloatArray, axis: int | tuple[int, ...]) -> FloatArray:
    """Log of the sum of exponentials; minus infinity for nothing."""
    top = logs.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        found = np.log(np.exp(logs - top).sum(axis=axis))
    return np.asarray(found + np.squeeze(top, axis=axis))


MAX_LOG = 700.0  # beyond it a float overflows


def total_of(
    panels: Sequence[CheckPanel], wealth: Sequence[PanelWealth], batches: int, promise: Promise
) -> float:
    """Log evidence of all panels, which have equal shares."""
    logs = [own.total(panel, batches, promise) for panel, own in zip(panels, wealth, strict=True)]
    return float(np.logaddexp.reduce(logs)) - math.log(len(logs))


def findings_of(
    panel: CheckPanel, own: PanelWealth, panels: int, promise: Promise
) -> list[WatchFinding]:
    """All checks of a panel with their largest evidence."""
    share = (1 - RECALIBRATED if own.log_moved.size else 1.0) / panels
    found = []
    for k, check in enumerate(panel.checks):
        weight, log_evalue = float(panel.weights[k]) * share, float(own.peaks[k])
        pvalue = min(1.0, math.exp(min(0.0, -log_evalue - math.log(weight))))
        found.append(
            WatchFinding(
                check.name,
                check.family,
                check.covariates,
                check.shape,
                check.where,
                panel.label,
                int(own.sides[k]),
                weight,
                exp_of(log_evalue),
                pvalue if promise is Promise.EVER else None,
                int(own.rows[k]),
            )
        )
    return found


def exp_of(log: float) -> float:
    """The exponential, without overflow: what is finite stays finite."""
    return math.inf if log == math.inf else math.exp(min(log, MAX_LOG))


def leading_check(
    panels: Sequence[CheckPanel], wealth: Sequence[PanelWealth], batches: int, promise: Promise
) -> tuple[int, int]:
    """Which panel, and which of its checks, carries most of the evidence now."""
    best, found = -math.inf, (0, 0)
    for number, (panel, own) in enumerate(zip(panels, wealth, strict=True)):
        logs = own.by_check(batches, promise) + np.log(panel.weights)
        k = int(np.argmax(logs))
        if logs[k] > best:
            best, found = float(logs[k]), (number, k)
    return found


def onset_of(
    blocks: Blocks, check: int, batches: int, alpha: float, promise: Promise
) -> tuple[int, int, int]:
    """The onset that a check points to, within its segment, with the ends of its interval."""
    sums = np.moveaxis(blocks.sums[..., check : check + 1], 0, 1)  # (3, B, 2, 1)
    factors = log_factors(sums)[:, :, 0, :]  # (B, 2, L)
    ratios = factors[::-1].cumsum(axis=0)[::-1]
    best = ratios.max(axis=(1, 2))
    ends = [*blocks.first[1:], batches + 1]
    weights = [
        np.logaddexp.reduce([log_onset(k, promise) for k in range(first, end)])
        for first, end in zip(blocks.first, ends, strict=True)
    ]
    weights = np.array(weights) - np.logaddexp.reduce(weights)
    mixture = np.logaddexp.reduce((ratios + LOG_CHANCES + weights[:, None, None]).ravel())
    held = np.flatnonzero(best >= math.log(alpha) + mixture)
    top = int(np.argmax(best))
    lowest, highest = (int(held[0]), int(held[-1])) if held.size else (top, top)
    return blocks.first[top], blocks.first[lowest], max(ends[highest] - 1, blocks.first[top])


def since_of(
    panels: Sequence[CheckPanel],
    wealth: Sequence[PanelWealth],
    batches: int,
    names: Sequence[tuple[int, str | None]],
    alpha: float,
    promise: Promise,
) -> Onset:
    """The onset in numbers of all batches."""
    panel, check = leading_check(panels, wealth, batches, promise)
    found = onset_of(wealth[panel].blocks, check, batches, alpha, promise)
    best, lower, upper = (names[k - 1][0] for k in found)
    own = panels[panel]
    return Onset(best, lower, upper, names[found[0] - 1][1], own.checks[check].name, own.label)
