"""What would overturn the finding about a number: sizes of violations, flipped labels.

Labels follow a law pi, and would follow another one, pi0, without the violation. The number is
T(pi0), labels show T(pi), and probabilities give T(p). For each kind of violation pi0 lies between
two functions of pi in every row, so that T(pi0) lies between two ends that the labels tell
(`Form.reach`), whether the model is calibrated or not. Labels tell pi with an error, which these
ends can enlarge: a rate of 1 % with odds that may be off by a factor of 3 can be 3 %, and its error
three times as large. So the upper end is taken at labels that are raised until they give the upper
end of the interval of T(pi), and the lower end at labels that are lowered. The interval of the bias
between these ends has every bias that the labels leave possible. The finding stands while it says
what the interval without a violation said. The ends move outwards with the size of the violation,
so there is one size at which the finding ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from itrust._core import FloatArray, Result
from itrust.data import Sample
from itrust.overturn.flips import FlippedLabels, fewest_flips
from itrust.overturn.forms import Form, Origins, RangePrecision, Reach, form_of
from itrust.overturn.results import KINDS, Violation, of_kind
from itrust.overturn.roots import crossing
from itrust.tasks import (
    Bounds,
    Linearised,
    Task,
    TaskFinding,
    TaskResult,
    TaskRows,
    class_tasks,
)

SIZES = 9  # of a violation that intervals are told at
PRECISE = 1e-6  # error of a size of a violation
FINE = 1e-9  # error of a share of the way
MOST_SHARE = 0.999  # of the way to labels that are all 1 or 0, where some numbers do not exist


class ViolationFamily(NamedTuple):
    """Violations of one kind, of any size."""

    kind: str
    neutral: float
    sizes: FloatArray
    origins: Callable[[float], Origins]


def known_families() -> tuple[ViolationFamily, ...]:
    """Give all kinds of violations that `robustness` looks at, with some sizes of each."""

    def origins(violation: Violation) -> Callable[[float], Origins]:
        return lambda size: violation.null(size).origins

    shares = np.square(np.linspace(0, 1, SIZES))
    return tuple(
        ViolationFamily(
            kind, own.neutral, np.array([own.size(share) for share in shares]), origins(own)
        )
        for kind, own in KINDS.items()
    )


@dataclass(frozen=True, eq=False)
class NumberTipping:
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

    def to_dict(self) -> dict[str, Any]:
        """Give all facts, ready for JSON.

        Returns
        -------
        dict
            The attributes.
        """
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class NumberRobustness(Result):
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
    def name(self) -> str:
        """Text of the task, or the name it was given."""
        return str(self.task)

    @property
    def tolerance(self) -> float | None:
        """Size of bias that would matter, if the task says so."""
        return self.task.tolerance

    @property
    def is_decided(self) -> bool:
        """Whether there is a finding that could be overturned."""
        return self.finding in (TaskFinding.BIASED, TaskFinding.SAFE)

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
        none = math.nan
        return NumberRobustness(
            self.task,
            TaskFinding.WITHHELD,
            none,
            none,
            none,
            (),
            None,
            self.precision,
            flips_counted=self.flips_counted,
            withheld=min_cell,
        )

    def _facts(self) -> Mapping[str, Any]:
        return {
            "task": self.name,
            "finding": self.finding.value,
            "bias": self.bias,
            "lower": self.lower,
            "upper": self.upper,
            "tolerance": self.tolerance,
            "precision": self.precision.value,
            "tippings": [found.to_dict() for found in self.tippings],
            "flips": None if self.flips is None else dict(vars(self.flips)),
            "flips_counted": self.flips_counted,
            "withheld": self.withheld,
        }

    def __repr__(self) -> str:
        return f"<NumberRobustness: {self.name}, {self.finding}>"


def number_robustness(
    sample: Sample,
    results: Sequence[TaskResult],
    families: Sequence[ViolationFamily] | None = None,
    *,
    is_all: bool = True,
) -> tuple[NumberRobustness, ...]:
    """Find what would overturn the findings about some numbers."""
    tasks = class_tasks([result.task for result in results], sample)
    families = known_families() if families is None else families
    return tuple(
        _one(sample, task, result, families, is_all=is_all)
        for task, result in zip(tasks, results, strict=True)
    )


def _one(
    sample: Sample,
    task: Task,
    result: TaskResult,
    families: Sequence[ViolationFamily],
    *,
    is_all: bool,
) -> NumberRobustness:
    labelled = TaskRows.labelled(sample)
    form = form_of(task, labelled)
    shifted = _Shifted(result, form, sample.y, task.bounds(labelled))
    flips = None
    if is_all and shifted.is_decided:
        flips = flips_of(form, sample.y, result)
    return NumberRobustness(
        task=result.task,
        finding=result.finding,
        tippings=tuple(shifted.tipping(family) for family in families),
        flips=flips,
        flips_counted=is_all,
        precision=shifted.form.precision,
        bias=result.bias,
        lower=result.lower,
        upper=result.upper,
    )


@dataclass(frozen=True, eq=False)
class _Shifted:
    """A number, and how far a violation can shift what labels say of it."""

    result: TaskResult
    form: Form
    y: FloatArray
    possible: Bounds

    @property
    def is_decided(self) -> bool:
        return self.result.finding in (TaskFinding.BIASED, TaskFinding.SAFE)

    @cached_property
    def _start(self) -> Linearised:
        return self.form.leaning(self.y)

    @cached_property
    def _raised(self) -> Reach:
        return self.form.reaching(self._moved(self.result.upper - self.result.bias))

    @cached_property
    def _lowered(self) -> Reach:
        return self.form.reaching(self._moved(self.result.lower - self.result.bias))

    def _moved(self, by: float) -> FloatArray:
        """Labels that are moved by one share towards 1 or 0, so that the number moves by this."""
        start = self._start
        towards = np.where(start.influence * by > 0, 1.0, 0.0)
        step = np.where(start.influence == 0, 0.0, towards - self.y)

        def missing(share: float) -> float:
            moved = self.form.leaning(self.y + share * step).value
            return float(abs(by) - abs(moved - start.value))

        if not (math.isfinite(by) and missing(MOST_SHARE) < 0 < missing(0.0)):
            return self.y if missing(0.0) <= 0 else self.y + MOST_SHARE * step
        share = crossing(missing, 0.0, MOST_SHARE, FINE)
        return np.asarray(self.y + share * step)

    def interval(self, family: ViolationFamily, size: float) -> tuple[float, float]:
        """The interval of the bias under a violation, within what the number can be."""
        found, start, origins = self.result, self._start.value, family.origins(size)
        lower = found.bias + self._lowered.lower(origins) - start
        upper = found.bias + self._raised.upper(origins) - start
        edge = self.possible.lower - found.plugin, self.possible.upper - found.plugin
        # Rounding must not make an interval narrower.
        return min(max(lower, edge[0]), found.lower), max(min(upper, edge[1]), found.upper)

    def room(self, family: ViolationFamily, size: float) -> float:
        """How far the interval is from where the finding ends; negative beyond."""
        lower, upper = self.interval(family, size)
        tolerance = self.result.tolerance or 0.0
        if self.result.finding is TaskFinding.SAFE:
            return tolerance - max(upper, -lower)
        return max(lower, -upper) - tolerance

    def tipping(self, family: ViolationFamily) -> NumberTipping:
        """Intervals at all sizes, and the size where the finding ends."""
        ends = np.array([self.interval(family, float(size)) for size in family.sizes])
        largest = float(family.sizes[-1])
        point, beyond = None, False
        if self.is_decided:
            point, beyond = self._point(family, largest)
        return NumberTipping(
            family.kind, family.neutral, family.sizes, ends[:, 0], ends[:, 1], point, beyond
        )

    def _point(self, family: ViolationFamily, largest: float) -> tuple[float, bool]:
        if self.room(family, largest) > 0:
            return largest, True
        if not self.room(family, family.neutral) > 0:
            return family.neutral, False
        found = crossing(
            lambda size: max(self.room(family, size), -1.0), family.neutral, largest, PRECISE
        )
        return max(found - PRECISE, family.neutral), False


def flips_of(form: Form, y: FloatArray, result: TaskResult) -> FlippedLabels | None:
    """Count the labels whose flips would make a decided number undecided.

    The interval of the bias moves with the estimate from labels and keeps its width.
    """
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
