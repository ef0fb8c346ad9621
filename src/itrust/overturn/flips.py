"""How many labels would have to be flipped until a number has moved so far."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from itrust._core import FloatArray, IntArray
from itrust.overturn.forms import Form, Fraction, Joined

ROUNDING = 1e-12  # of sums, beside the size of what is summed
WORK = 4_000_000  # rows that are sorted while bounds are narrowed
FEWEST_SPLITS, MOST_SPLITS = 8, 400


@dataclass(frozen=True)
class FlippedLabels:
    """The fewest labels that would have to be flipped, or bounds of that.

    Attributes
    ----------
    at_least : int
        No fewer will do.
    at_most : int
        So many will: equal to `at_least` where the number is known exactly.
    to_negative, to_positive : int
        How many of those `at_most` are positives that become negatives, and the reverse.
    """

    at_least: int
    at_most: int
    to_negative: int
    to_positive: int

    @property
    def is_exact(self) -> bool:
        """Whether the fewest are known."""
        return self.at_least == self.at_most


def fewest_flips(
    form: Form, y: FloatArray, target: float, *, below: bool, strict: bool = False
) -> FlippedLabels | None:
    """Find the fewest labels whose flips bring a number to a value, or leave it undefined.

    A fraction N(y) / D(y) is at most t if and only if N(y) - t D(y) is at most 0. That is a sum
    over the labels, of which every flip takes its own amount whatever the others do, so the flips
    that take most, one after the other, are fewest: exact. For a sum or a difference of two
    fractions of different rows, t is divided between both sides, and the division is searched by
    branch and bound. For other numbers the flips that promise most are made until it is enough,
    which bounds the fewest from above; from below they are bounded by 1.

    Examples
    --------
    Three of ten labels are 1. For a rate of at most 0.1 two of them have to be 0:

    >>> import numpy as np
    >>> rate = Fraction(np.ones(10), 0.0, np.zeros(10), 10.0)
    >>> fewest_flips(rate, np.arange(10) < 3.0, 0.1, below=True)
    FlippedLabels(at_least=2, at_most=2, to_negative=2, to_positive=0)
    """
    y = np.asarray(y, dtype=float)
    if isinstance(form, Fraction):
        rows = _fewest(form, y, target, below=below, strict=strict)
        least = math.inf if rows is None else float(rows.size)
    elif isinstance(form, Joined) and _is_sum(form):
        least, rows = _divided(form, y, target, below=below, strict=strict)
    else:
        least, rows = 0.0, None
    if not isinstance(form, Fraction):
        least = max(least, float(_is_short(form, y, target, below=below)))
        if rows is None and math.isfinite(least):
            rows = _greedy(form, y, target, below=below, strict=strict)
    return _told(form, y, least, rows)


def _told(form: Form, y: FloatArray, least: float, rows: IntArray | None) -> FlippedLabels | None:
    """The bounds, beside the flips after which nothing is left to divide by."""
    undefined = form.undefined_after(y)
    most = math.inf if rows is None else float(rows.size)
    if rows is None and not math.isfinite(undefined):
        return None
    if rows is None or undefined < most:
        count = int(undefined)
        return FlippedLabels(int(min(least, undefined)), count, count, 0)
    down = int(np.count_nonzero(y[rows]))
    return FlippedLabels(int(min(least, undefined)), rows.size, down, rows.size - down)


def _is_short(form: Form, y: FloatArray, target: float, *, below: bool) -> bool:
    """Whether the number has not reached the value yet, by more than rounding: a flip is needed."""
    value = form.leaning(y).value
    slack = ROUNDING * (1 + abs(value) + abs(target))
    return bool((value - target if below else target - value) > slack)


def _is_sum(form: Joined) -> bool:
    sides = isinstance(form.left, Fraction) and isinstance(form.right, Fraction)
    return sides and form.sign in ("+", "-")


def _fewest(
    form: Fraction, y: FloatArray, target: float, *, below: bool, strict: bool
) -> IntArray | None:
    """The rows whose flips take most from N - t D, as many as are needed; None if all are few."""
    turn = 1.0 if below else -1.0
    carried = turn * (form.top - target * form.bottom)
    start = turn * (form.top0 - target * form.bottom0)
    excess = start + float(carried @ y)
    slack = ROUNDING * (abs(start) + float(np.abs(carried).sum()))
    if excess < -slack or (excess <= slack and not strict):
        return np.zeros(0, dtype=np.int64)
    gains = carried * (2 * y - 1)
    useful = np.flatnonzero(gains > 0)
    order = useful[np.argsort(-gains[useful], kind="stable")]
    taken = np.cumsum(gains[order])
    enough = taken > excess + slack if strict else taken >= excess - slack
    if not enough.any():
        return None
    return np.asarray(order[: int(np.argmax(enough)) + 1])


def _divided(
    form: Joined, y: FloatArray, target: float, *, below: bool, strict: bool
) -> tuple[float, IntArray | None]:
    """The fewest flips by branch and bound over what the left side has to come to.

    Left side at most t, and right side at most target - t: flips of the left side become fewer
    with t, those of the right side more. Between two values of t each side needs what it needs at
    its own end, at least. Where labels count on both sides, a flip may serve both, so the larger
    of the two numbers is what bounds the fewest, and none of the sets is known to be enough.
    """
    left, right = form.left, form.right
    assert isinstance(left, Fraction)
    assert isinstance(right, Fraction)
    turned = form.sign == "-"
    apart = form.apart

    def of_left(value: float) -> IntArray | None:
        return _fewest(left, y, value, below=below, strict=False)

    def of_right(value: float) -> IntArray | None:
        rest = target - value
        return _fewest(right, y, -rest if turned else rest, below=below != turned, strict=strict)

    def total(one: IntArray | None, other: IntArray | None) -> float:
        if one is None or other is None:
            return math.inf
        return float(one.size + other.size if apart else max(one.size, other.size))

    here, there = left.leaning(y).value, right.leaning(y).value
    alone = target - (-there if turned else there)  # where the right side stays as it is
    ends = [(t, of_left(t), of_right(t)) for t in (alone, here)]
    most, best = math.inf, None

    def noted(one: IntArray | None, other: IntArray | None) -> None:
        nonlocal most, best
        if apart and one is not None and other is not None and total(one, other) < most:
            most, best = total(one, other), np.concatenate([one, other])

    for _, one, other in ends:
        noted(one, other)
    # `ends` run from "left does all" to "right does all": the left needs fewest at the last.
    heap = [(total(ends[1][1], ends[0][2]), 0, ends[0], ends[1])]
    splits = min(max(WORK // max(y.size, 1), FEWEST_SPLITS), MOST_SPLITS)
    for number in range(1, splits + 1):
        least, _, first, last = heap[0]
        if least >= most or math.isinf(least):
            break
        middle = (first[0] + last[0]) / 2
        if not min(first[0], last[0]) < middle < max(first[0], last[0]):
            break  # nothing lies between two neighbouring numbers
        heapq.heappop(heap)
        between = (middle, of_left(middle), of_right(middle))
        noted(between[1], between[2])
        heapq.heappush(heap, (total(between[1], first[2]), 2 * number, first, between))
        heapq.heappush(heap, (total(last[1], between[2]), 2 * number + 1, between, last))
    return min(heap[0][0], most), best


def _greedy(
    form: Form, y: FloatArray, target: float, *, below: bool, strict: bool
) -> IntArray | None:
    """Flip the labels that promise most, half of what seems needed at a time."""
    turn = 1.0 if below else -1.0
    now, is_free = y.copy(), form.moved_by
    while True:
        found = form.leaning(now)
        excess = turn * (found.value - target)
        if math.isnan(excess) or excess < 0 or (excess == 0 and not strict):
            return np.flatnonzero(now != y)
        gains = np.where(is_free, turn * found.influence * (2 * now - 1), 0.0)
        useful = np.flatnonzero(gains > 0)
        if not useful.size:
            return None
        order = useful[np.argsort(-gains[useful], kind="stable")]
        needed = int(np.searchsorted(np.cumsum(gains[order]), excess)) + 1
        chosen = order[: max(1, needed // 2)]
        now[chosen] = 1 - now[chosen]
        is_free = is_free & (now == y)
