"""Since when? The onset that the leading check's bets point to, and those that are not ruled out.

For a check and an onset k the likelihood ratio of a stake is the product of its factors since k.
Were k and the stake the truth, the mixture of all onsets and stakes over their ratio would be a
supermartingale under the drifted law, so it would ever exceed 1 / alpha with probability at most
alpha. So an onset stays in the set while its best stake's ratio is alpha times the mixture or more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from itrust.watch.bets import LOG_CHANCES, log_factors
from itrust.watch.components import CheckPanel
from itrust.watch.results import Onset, Promise
from itrust.watch.wealth import Blocks, PanelWealth, log_onset


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
