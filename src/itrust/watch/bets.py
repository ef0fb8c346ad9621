r"""Bets on checks, begun at every batch, and the evidence that their mixture is.

For a check phi with |phi| <= 1 and a stake l > 0 on the side s = +-1, let t = s l phi. While the
probability of a label lies within `tolerance` m of p, it is at most q = min(p + m, 1) where t > 0
and at least q = max(p - m, 0) where t < 0, and the law at q is the worst one, so that

    E exp(t (y - p) - |t| |q - p|) <= exp(K(t)),

K being the cumulant function of y - q, whose second derivative at r is the variance of a label with
the odds of q times e^r. Where r moves q away from 1/2 this is at most v = q (1 - q), else at most v
e^|r|. So K(t) <= phi^2 v l^2 / 2 in rows of the first kind (b) and phi^2 v (e^l - 1 - l) in those
of the second (a), and

    exp(l u - (e^l - 1 - l) a - l^2 / 2 b),   u = sum of s phi (y - p) - |phi| |q - p|,

is a supermartingale for every l: three sums for each check and side serve all stakes.

Rows of one cluster may depend on each other in any way. By Jensen, E exp of a mean is at most the
mean of E exp, which is at most 1 + (e^l - 1 - l) times the mean of phi^2 v: the same form, with
means over each cluster in place of its rows and every row of the second kind.

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
from itrust.data import Points
from itrust.watch.components import CheckPanel
from itrust.watch.results import Onset, Promise, WatchFinding, exp_of

# Stakes l and how likely each is beforehand: a bias d in rows of variance v is met by l = d / v.
STAKES = np.array([0.01, 0.03, 0.08, 0.18, 0.36, 0.70, 1.40])
CHANCES = np.array([0.04, 0.08, 0.16, 0.24, 0.24, 0.16, 0.08])
LOG_CHANCES = np.log(CHANCES / 2)  # of each side


# Labels, predictions and, in clusters, the share of a row's stake that each row has.
BatchRows = tuple[FloatArray, FloatArray, FloatArray | None]


def bet_sums(matrix: FloatArray, rows: BatchRows, tolerance: float = 0.0) -> FloatArray:
    """Add up u, a and b for both sides of every check."""
    y, p, given = rows
    up, down = np.maximum(matrix, 0.0), np.maximum(-matrix, 0.0)
    high, low = np.minimum(p + tolerance, 1.0), np.maximum(p - tolerance, 0.0)
    share = np.ones(y.shape) if given is None else given
    terms = [(y - p) * share, (high - p) * share, (p - low) * share]
    e_up, above_up, below_up = _sums(up, terms)
    e_down, above_down, below_down = _sums(down, terms)
    signed = e_up - e_down
    u = np.stack([signed - above_up - below_down, -signed - below_up - above_down], axis=-2)
    # Whether the worst probability is moved towards 1/2, upwards and downwards.
    rises = (high < 0.5) if given is None else np.ones(high.shape, dtype=bool)
    falls = (low > 0.5) if given is None else np.ones(low.shape, dtype=bool)
    v_high, v_low = high * (1 - high) * share, low * (1 - low) * share
    kinds = [v_high * rises, v_high * ~rises, v_low * falls, v_low * ~falls]
    first, second = _sums(np.square(up), kinds), _sums(np.square(down), kinds)
    a = np.stack([first[0] + second[2], first[2] + second[0]], axis=-2)
    b = np.stack([first[1] + second[3], first[3] + second[1]], axis=-2)
    return np.stack([u, a, b])


def _sums(functions: FloatArray, terms: Sequence[FloatArray]) -> list[FloatArray]:
    """Sums over rows of functions times each of some terms, (..., K) each."""
    products = functions @ np.stack(terms, axis=-1)
    return [products[..., k] for k in range(len(terms))]


def log_factors(sums: FloatArray) -> FloatArray:
    """What every bet is multiplied by, (3, ..., 2, K) -> (..., 2, K, L), as logarithms."""
    u, a, b = sums[..., None].astype(np.float64)
    return np.asarray(
        STAKES * u - (np.expm1(STAKES) - STAKES) * a - np.square(STAKES) / 2 * b, dtype=np.float64
    )


MEMORIES = (math.inf, math.inf, 24.0, 6.0)  # batches; the first one begins with the reference
RIDGES = (30.0, 300.0)
MAX_MOVE = 3.0  # of a logit


@dataclass(frozen=True, eq=False)
class Recalibrations:
    """What is known of earlier rows."""

    scores: FloatArray
    information: FloatArray

    @classmethod
    def empty(cls, functions: int) -> Self:
        """Nothing is known yet."""
        m = len(MEMORIES)
        return cls(np.zeros((m, functions)), np.zeros((m, functions, functions)))

    def moves(self) -> FloatArray:
        """Theta of every memory and ridge, (M * R, D)."""
        size = self.scores.shape[1]
        ridges = np.array(RIDGES)[None, :, None, None] * np.eye(size)
        found = np.linalg.solve(
            self.information[:, None] + ridges,
            np.broadcast_to(self.scores[:, None, :, None], (len(MEMORIES), len(RIDGES), size, 1)),
        )
        return np.asarray(found.reshape(-1, size), dtype=np.float64)

    def faded(self) -> Recalibrations:
        """What is left of earlier batches when one more comes, by each memory."""
        keep = np.array([1 - 1 / memory for memory in MEMORIES])
        return Recalibrations(keep[:, None] * self.scores, keep[:, None, None] * self.information)

    def plus(
        self, phi: FloatArray, rows: BatchRows, memories: slice = slice(None)
    ) -> Recalibrations:
        """What is known with some rows more, in all memories or in some."""
        y, p, given = rows
        share = 1.0 if given is None else given
        scores, information = self.scores.copy(), self.information.copy()
        scores[memories] += phi @ ((y - p) * share)
        information[memories] += (phi * (p * (1 - p) * share)) @ phi.T
        return Recalibrations(scores, information)


def ratios_of(moves: FloatArray, phi: FloatArray, rows: BatchRows) -> FloatArray:
    """Log-likelihood ratios of moved logits against p."""
    y, p, share = rows
    t = np.clip(moves @ phi, -MAX_MOVE, MAX_MOVE)
    each = t * y - np.log1p(p * np.expm1(t))
    return np.asarray(each @ (np.ones(y.size) if share is None else share))


EARLY = 8.0  # onsets up to about this batch share half of the weight
RECALIBRATED = 0.2  # share of the recalibrations in the stake of a panel
MAX_BLOCKS = 48  # groups of batches whose sums are kept
RECENT = 32  # single batches among them


def log_onset(batch: int, promise: Promise) -> float:
    """Log weight of an onset at a batch of a segment, from 1."""
    if promise == "run length":
        return 0.0
    return math.log(EARLY) - math.log(batch + EARLY - 1) - math.log(batch + EARLY)


def log_to_come(batches: int, promise: Promise) -> float:
    """Log weight of all onsets after so many batches."""
    if promise == "run length":
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
        sums_of_all = np.concatenate([self.sums, sums[None].astype(np.float32)])
        if len(first) <= MAX_BLOCKS:
            return Blocks(first, sums_of_all)
        old = len(first) - RECENT
        lengths = [first[k + 2] - first[k] for k in range(old - 1)]
        at = lengths.index(min(lengths))
        sums_of_all[at] += sums_of_all[at + 1]
        return Blocks(first[: at + 1] + first[at + 2 :], np.delete(sums_of_all, at + 1, axis=0))


@dataclass(frozen=True, eq=False)
class PanelWealth:
    """What the bets on the checks of one panel have become."""

    panel: CheckPanel
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
        return cls(
            panel,
            np.full((2, checks, STAKES.size), -np.inf),
            np.full(len(MEMORIES) * len(RIDGES) if moved else 0, -np.inf),
            np.full(checks, log_to_come(0, promise)),
            np.ones(checks),
            Recalibrations.empty(len(panel.joint)),
            Blocks.empty(checks),
            np.zeros(checks),
        )

    @property
    def share(self) -> float:
        """The share of the checks in the stake of the panel; recalibrations have the rest."""
        return 1 - RECALIBRATED if self.log_moved.size else 1.0

    def by_check(self, batches: int, promise: Promise) -> FloatArray:
        """Log evidence of every check by itself, (K,)."""
        to_come = log_to_come(batches, promise)
        return _mixed(np.logaddexp(self.log_bets, to_come) + LOG_CHANCES, (0, 2))

    def total(self, batches: int, promise: Promise) -> float:
        """Log evidence of the whole panel."""
        parts = [self.by_check(batches, promise) + np.log(self.panel.weights * self.share)]
        if self.log_moved.size:
            to_come = log_to_come(batches, promise)
            each = math.log(RECALIBRATED / self.log_moved.size)
            parts.append(np.logaddexp(self.log_moved, to_come) + each)
        return float(_mixed(np.concatenate(parts), 0))

    def with_reference(self, points: Points, rows: BatchRows) -> PanelWealth:
        """Let the first memory begin with rows of the reference."""
        phi = self.panel.matrix(points)[list(self.panel.joint)]
        return replace(self, known=self.known.plus(phi, rows, slice(1)))

    def after(
        self,
        parts: Iterable[tuple[FloatArray, BatchRows]],
        batch: int,
        promise: Promise,
        tolerance: float = 0.0,
        *,
        restarts: bool = False,
    ) -> PanelWealth:
        """Take in a batch."""
        has_moves, joint = bool(self.log_moved.size), list(self.panel.joint)
        begun = PanelWealth.begun(self.panel, promise, moved=has_moves)
        before = replace(begun, known=self.known) if restarts else self
        counts, sums = np.zeros(self.rows.shape), np.zeros((3, 2, self.rows.size))
        ratios, known = np.zeros(self.log_moved.size), self.known
        if has_moves:
            moves, known = known.moves(), known.faded()
        for matrix, rows in parts:
            counts += np.count_nonzero(matrix, axis=1)
            sums += bet_sums(matrix, rows, tolerance)
            if has_moves:
                phi = matrix[joint]
                ratios += ratios_of(moves, phi, rows)
                known = known.plus(phi, rows)
        counted = replace(before, rows=before.rows + counts)
        return counted.moved_by(sums, ratios, known, batch, promise)

    def moved_by(
        self,
        sums: FloatArray,
        ratios: FloatArray,
        known: Recalibrations,
        batch: int,
        promise: Promise,
    ) -> PanelWealth:
        """Take in a batch whose sums are known."""
        onset = log_onset(batch, promise)
        found = replace(
            self,
            log_bets=np.logaddexp(self.log_bets, onset) + log_factors(sums),
            log_moved=np.logaddexp(self.log_moved, onset) + ratios,
            known=known,
            blocks=self.blocks.after(batch, sums),
        )
        now = found.by_check(batch, promise)
        above, below = _mixed(found.log_bets + LOG_CHANCES, 2)
        side = np.where(above >= below, 1.0, -1.0)
        return replace(
            found,
            peaks=np.maximum(self.peaks, now),
            sides=np.where(now > self.peaks, side, self.sides),
        )

    def findings(self, panels: int, promise: Promise) -> list[WatchFinding]:
        """All checks with their largest evidence."""
        above, second, first = self.blocks.sums[:, :, 0, :].astype(float).sum(axis=0)
        found = []
        for k, check in enumerate(self.panel.checks):
            weight = float(self.panel.weights[k]) * self.share / panels
            log_evalue = float(self.peaks[k])
            pvalue = min(1.0, math.exp(min(0.0, -log_evalue - math.log(weight))))
            found.append(
                WatchFinding(
                    check.name,
                    check.family,
                    check.covariates,
                    check.shape,
                    check.where,
                    self.panel.label,
                    int(self.sides[k]),
                    weight,
                    exp_of(log_evalue),
                    pvalue if promise == "ever" else None,
                    int(self.rows[k]),
                    float(above[k]),
                    math.sqrt(second[k] + first[k]),
                )
            )
        return found


def _mixed(logs: FloatArray, axis: int | tuple[int, ...]) -> FloatArray:
    """Log of the sum of exponentials; minus infinity for nothing."""
    top = logs.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        found = np.log(np.exp(logs - top).sum(axis=axis))
    return np.asarray(found + np.squeeze(top, axis=axis))


def total_of(wealth: Sequence[PanelWealth], batches: int, promise: Promise) -> float:
    """Log evidence of all panels, which have equal shares."""
    logs = [own.total(batches, promise) for own in wealth]
    return float(np.logaddexp.reduce(logs)) - math.log(len(logs))


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
    kept = np.flatnonzero(best >= math.log(alpha) + mixture)
    top = int(np.argmax(best))
    lowest, highest = (int(kept[0]), int(kept[-1])) if kept.size else (top, top)
    return blocks.first[top], blocks.first[lowest], max(ends[highest] - 1, blocks.first[top])


def since_of(
    wealth: Sequence[PanelWealth],
    batches: Sequence[tuple[int, str | None]],
    alpha: float,
    promise: Promise,
) -> Onset:
    """Since when, by the check that carries most of the evidence after batches of some names."""
    logs = [own.by_check(len(batches), promise) + np.log(own.panel.weights) for own in wealth]
    leading = int(np.argmax([each.max() for each in logs]))
    own, check = wealth[leading], int(np.argmax(logs[leading]))
    found = onset_of(own.blocks, check, len(batches), alpha, promise)
    best, lower, upper = (batches[k - 1][0] for k in found)
    name = batches[found[0] - 1][1]
    return Onset(best, lower, upper, name, own.panel.checks[check].name, own.panel.label)
