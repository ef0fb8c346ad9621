"""What would overturn the finding about a number: sizes of violations, flipped labels.

Labels follow a law pi, and would follow another one, pi0, without the violation. The number is
T(pi0), labels show T(pi), and probabilities give T(p). For each kind of violation pi0 lies between
two functions of pi in every row, so that T(pi0) lies between two ends that the labels tell
(`Form.end`), whether the model is calibrated or not. Labels tell pi with an error, which these
ends can enlarge: a rate of 1 % with odds that may be off by a factor of 3 can be 3 %, and its error
three times as large. So the upper end is taken at labels that are raised until they give the upper
end of the interval of T(pi), and the lower end at labels that are lowered. The interval of the bias
between these ends has every bias that the labels leave possible. The finding stands while it says
what the interval without a violation said. The ends move outwards with the size of the violation,
so there is one size at which the finding ends.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from itrust._core import FloatArray, IntArray, WithFacts
from itrust.data import Sample
from itrust.overturn.forms import Form, Fraction, Joined, RangePrecision, crossing, form_of
from itrust.overturn.results import KINDS, Violation, of_kind
from itrust.tasks import Bounds, OfTask, Task, TaskFinding, TaskResult, TaskRows, class_tasks

DECIDED = (TaskFinding.BIASED, TaskFinding.SAFE)  # findings that could be overturned
PRECISE = 1e-6  # error of a size of a violation
FINE = 1e-9  # error of a share of the way
MOST_SHARE = 0.999  # of the way to labels that are all 1 or 0, where some numbers do not exist


@dataclass(frozen=True, eq=False)
class NumberTipping(WithFacts):
    """The interval of a number's bias under violations of one kind, and where its finding ends.

    Attributes
    ----------
    kind : str
        What is violated, as of `Tipping`.
    neutral : float
        The size that violates nothing.
    sizes : (m,) array
        Sizes of the violation, rising from `neutral`.
    lower, upper : (m,) arrays
        The interval of the bias at each size.
    point : float or None
        The largest size at which the finding stands; None where it is undecided, so that there is
        nothing to overturn. Where `precision` is "bound", it stands at least so long.
    beyond : bool
        Whether the finding stands at the largest of all sizes: `point` is that size then.
    """

    kind: str
    neutral: float
    sizes: FloatArray
    lower: FloatArray
    upper: FloatArray
    point: float | None
    beyond: bool


@dataclass(frozen=True, eq=False)
class NumberRobustness(OfTask):
    """What would overturn the finding about one number.

    Attributes
    ----------
    task : Task
        The number, with its tolerance.
    finding : TaskFinding
        What is found about it without any violation.
    bias, lower, upper : float
        Its bias and the interval of that without any violation.
    tippings : tuple of NumberTipping
        One for each kind of violation.
    flips : FlippedLabels or None
        The fewest labels that would have to be flipped so that the finding is undecided. The
        interval of the bias moves with the estimate from labels and keeps its width. None where
        the finding is undecided, where no flips do it, or where they were not counted.
    precision : RangePrecision
        How well the ends of the intervals are known.
    flips_counted : bool
        Whether flips were counted, for which all rows have to be at hand: files may have too many.
    withheld : int or None
        Where disclosure control withholds the number: the fewest rows that may stand behind what
        is shown. None: it is shown.

    Examples
    --------
    >>> import itrust as it
    >>> sample = it.simulate.credit_book(3_000, rng=0).sample
    >>> r = it.robustness(sample, ["prevalence()"], draws=199, rng=0).numbers[0]
    >>> print(r)
    share of positives: biased up to a factor of 1.15 in the odds or 10.6 % of labels in
      error; about 51 labels flipped from 0 to 1 would make it undecided
    >>> r.flips
    FlippedLabels(at_least=51, at_most=51, to_negative=0, to_positive=51)
    """

    _derived = ("tolerance",)

    task: Task
    finding: TaskFinding
    bias: float
    lower: float
    upper: float
    tippings: tuple[NumberTipping, ...]
    flips: FlippedLabels | None
    precision: RangePrecision
    flips_counted: bool = True
    withheld: int | None = None

    @property
    def is_decided(self) -> bool:
        """Whether there is a finding that could be overturned."""
        return self.finding in DECIDED

    def tipping(self, kind: str) -> NumberTipping:
        """Look one kind of violation up.

        Parameters
        ----------
        kind : str
            Such as "selection".

        Returns
        -------
        NumberTipping
            Its sizes, intervals and the size at which the finding ends.
        """
        return of_kind(self.tippings, kind, "the number is withheld")

    def without_values(self, min_cell: int) -> NumberRobustness:
        """Take out everything that was found, because few rows stand behind it.

        Parameters
        ----------
        min_cell : int
            The fewest rows that may stand behind what is shown.

        Returns
        -------
        NumberRobustness
            The task without numbers.
        """
        numbers: dict[str, Any] = dict.fromkeys(("bias", "lower", "upper"), math.nan)
        return replace(
            self,
            finding=TaskFinding.WITHHELD,
            tippings=(),
            flips=None,
            withheld=min_cell,
            **numbers,
        )

    def __repr__(self) -> str:
        return f"<NumberRobustness: {self.name}, {self.finding}>"


def number_robustness(
    sample: Sample,
    results: Sequence[TaskResult],
    violations: Mapping[str, Violation] = KINDS,
    *,
    is_all: bool = True,
) -> tuple[NumberRobustness, ...]:
    """Find what would overturn the findings about some numbers."""
    labelled, found = TaskRows.labelled(sample), []
    tasks = class_tasks([result.task for result in results], sample)
    for task, result in zip(tasks, results, strict=True):
        form = form_of(task, labelled)
        robustness = NumberRobustness(
            task=result.task,
            finding=result.finding,
            tippings=_tippings(result, form, sample.y, task.bounds(labelled), violations),
            flips=flips_of(form, sample.y, result) if is_all else None,
            flips_counted=is_all,
            precision=form.precision,
            bias=result.bias,
            lower=result.lower,
            upper=result.upper,
        )
        found.append(robustness)
    return tuple(found)


def _tippings(
    result: TaskResult,
    form: Form,
    y: FloatArray,
    possible: Bounds,
    violations: Mapping[str, Violation],
) -> tuple[NumberTipping, ...]:
    """How far violations shift what labels say of a number: its intervals, and where they tip."""
    start, tolerance = form.leaning(y), result.tolerance or 0.0
    is_safe = result.finding is TaskFinding.SAFE
    edge = possible.lower - result.plugin, possible.upper - result.plugin

    def moved(by: float) -> FloatArray:
        """Labels that are moved by one share towards 1 or 0, so that the number moves by this."""
        towards = np.where(start.slope * by > 0, 1.0, 0.0)
        step = np.where(start.slope == 0, 0.0, towards - y)

        def missing(share: float) -> float:
            return float(abs(by) - abs(form.leaning(y + share * step).value - start.value))

        if not (math.isfinite(by) and missing(MOST_SHARE) < 0 < missing(0.0)):
            return y if missing(0.0) <= 0 else y + MOST_SHARE * step
        return np.asarray(y + crossing(missing, 0.0, MOST_SHARE, FINE) * step)

    lowest = form.end(moved(result.lower - result.bias), upper=False)
    highest = form.end(moved(result.upper - result.bias), upper=True)

    def interval(violation: Violation, size: float) -> tuple[float, float]:
        """The interval of the bias under a violation, within what the number can be."""
        origins = violation.null(size).origins
        lower = result.bias + lowest(origins) - start.value
        upper = result.bias + highest(origins) - start.value
        # Rounding must not make an interval narrower.
        return min(max(lower, edge[0]), result.lower), max(min(upper, edge[1]), result.upper)

    def room(violation: Violation, size: float) -> float:
        """How far the interval is from where the finding ends; negative beyond."""
        lower, upper = interval(violation, size)
        return tolerance - max(upper, -lower) if is_safe else max(lower, -upper) - tolerance

    def point(violation: Violation) -> tuple[float | None, bool]:
        neutral, largest = violation.neutral, float(violation.sizes[-1])
        if result.finding not in DECIDED:
            return None, False
        if room(violation, largest) > 0:
            return largest, True
        if not room(violation, neutral) > 0:
            return neutral, False
        found = crossing(lambda size: max(room(violation, size), -1.0), neutral, largest, PRECISE)
        return max(found - PRECISE, neutral), False

    tippings = []
    for kind, own in violations.items():
        ends = np.array([interval(own, float(size)) for size in own.sizes])
        sizes = own.neutral, own.sizes
        tippings.append(NumberTipping(kind, *sizes, ends[:, 0], ends[:, 1], *point(own)))
    return tuple(tippings)


def flips_of(form: Form, y: FloatArray, result: TaskResult) -> FlippedLabels | None:
    """Count the labels whose flips would make a decided number undecided; None for other numbers.

    The interval of the bias moves with the estimate from labels and keeps its width.
    """
    if result.finding not in DECIDED:
        return None
    now, tolerance = result.from_labels, result.tolerance or 0.0
    has_tolerance = result.tolerance is not None
    if result.finding is TaskFinding.BIASED:
        below = result.lower >= tolerance
        end = result.lower - tolerance if below else -result.upper - tolerance
        target = now - end if below else now + end
        return fewest_flips(form, y, target, below=below, strict=has_tolerance)
    both = [
        fewest_flips(form, y, now - (tolerance + result.lower), below=True, strict=True),
        fewest_flips(form, y, now + (tolerance - result.upper), below=False, strict=True),
    ]
    found = [one for one in both if one is not None]
    if not found:
        return None
    best = min(found, key=lambda one: one.at_most)
    least = min(one.at_least for one in found)
    return FlippedLabels(least, best.at_most, best.to_negative, best.to_positive)


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
    elif form.sign in ("+", "-") and {type(form.left), type(form.right)} == {Fraction}:
        least, rows = _divided(form, y, target, below=below, strict=strict)
    else:
        least, rows = 0.0, None
    if not isinstance(form, Fraction):
        # A flip is needed where the number has not reached the value yet, by more than rounding.
        value = form.leaning(y).value
        short = value - target if below else target - value
        least = max(least, float(short > ROUNDING * (1 + abs(value) + abs(target))))
        if rows is None and math.isfinite(least):
            rows = _greedy(form, y, target, below=below, strict=strict)
    return _told(form, y, least, rows)


def _told(form: Form, y: FloatArray, least: float, rows: IntArray | None) -> FlippedLabels | None:
    """The bounds, beside the flips after which nothing is left to divide by."""
    undefined = form.undefined_after(y)
    if rows is None and not math.isfinite(undefined):
        return None
    if rows is None or undefined < rows.size:
        count = int(undefined)
        return FlippedLabels(int(min(least, undefined)), count, count, 0)
    down = int(np.count_nonzero(y[rows]))
    return FlippedLabels(int(min(least, undefined)), rows.size, down, rows.size - down)


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
        gains = np.where(is_free, turn * found.slope * (2 * now - 1), 0.0)
        useful = np.flatnonzero(gains > 0)
        if not useful.size:
            return None
        order = useful[np.argsort(-gains[useful], kind="stable")]
        needed = int(np.searchsorted(np.cumsum(gains[order]), excess)) + 1
        chosen = order[: max(1, needed // 2)]
        now[chosen] = 1 - now[chosen]
        is_free = is_free & (now == y)
