"""What a model does to a task: plug-in and labels, bias with interval, p-value from redraws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from itrust._core import FloatArray, InputError, Result, Rng, counted, rounded, two_digits
from itrust.bias import Redraws
from itrust.calibration import step_down, unadjusted_pvalues
from itrust.data import Design, Missing, Points, Sample
from itrust.tasks.differentials import Linearised
from itrust.tasks.expressions import Task, TaskRows
from itrust.tasks.quantities import Callback
from itrust.tasks.scores import task_scores
from itrust.tasks.uncertainty import FEW_NOTE, LabelledTask, Located, few_labels

MAX_TIMES = 1_000.0  # as many rows as there are: more is no advice
SPARE = 1 + 1.28 / 1.96  # an interval so much wider than its half lies inside in 4 of 5 samples
FEW_FREEDOM = 10  # degrees of freedom below which intervals of a design are told to be rough


class TaskFinding(StrEnum):
    """Whether a number may be reported: what p-value, interval and tolerance come to.

    Attributes
    ----------
    BIASED
        The interval of its bias excludes 0 and, where a tolerance is set, shows at least that.
    SAFE
        The interval lies within the tolerance of the number.
    UNDECIDED
        Neither; also where labels give no estimate, or too few of them for "safe".
    """

    BIASED = "biased"
    SAFE = "safe to report"
    UNDECIDED = "undecided"

    @property
    def closes_gate(self) -> bool:
        """Whether `itrust audit --gate tasks` fails."""
        return self is TaskFinding.BIASED


@dataclass(frozen=True)
class TaskResult(Result):
    """What a model does to one number.

    Attributes
    ----------
    task : Task
        The number that is judged, with its tolerance.
    plugin : float
        The estimate with probabilities in place of labels.
    from_labels : float
        The estimate from the labels of the sample.
    lower, upper : float
        Interval of the bias, within what labels could say less the plug-in; it holds for all tasks
        that were evaluated together, and excludes 0 if and only if `pvalue` is at most `alpha`.
    stderr : float
        Standard error of the bias.
    unadjusted_pvalue : float
        P-value for "no bias for this task", as if it had been the only one.
    pvalue : float
        The same, adjusted for all tasks that were evaluated together; two-sided. For independent
        rows the larger of the one from redraws and the one of the interval; where rows come from a
        design (clusters, strata or replicate weights), that of the interval.
    alpha : float
        Error that the intervals are allowed.
    n : int
        Number of rows.
    draws : int
        How often labels were redrawn; 0 where rows come from a design.
    seed : int
        What makes the same draws again.
    covariates : tuple of str
        Covariates that the task depends on.
    few_labels : bool
        Whether fewer than ten labels carry the estimate.
    uncovered : tuple of str
        Covariates of the task that the audit did not judge.
    positives : str
        What positives are called, such as "owner = 1".
    notes : tuple of str
        Data-quality notes.
    """

    task: Task
    plugin: float
    from_labels: float
    lower: float
    upper: float
    stderr: float
    unadjusted_pvalue: float
    pvalue: float
    alpha: float
    n: int
    draws: int
    seed: int
    covariates: tuple[str, ...]
    few_labels: bool = False
    uncovered: tuple[str, ...] = ()
    positives: str = "positives"
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        bias = rounded(self.bias, self.lower, self.upper, "+")
        return f"<TaskResult: {self.name}, bias {bias}, {self.finding}>"

    @property
    def name(self) -> str:
        """Text of the task, or the name it was given."""
        return str(self.task)

    @property
    def bias(self) -> float:
        """From labels minus plug-in; positive: the model understates the number."""
        return self.from_labels - self.plugin

    @property
    def tolerance(self) -> float | None:
        """Size of bias that would matter, if the task says so."""
        return self.task.tolerance

    @property
    def is_shown(self) -> bool:
        """Whether a bias is shown, of whatever size: the interval excludes 0."""
        return self.pvalue <= self.alpha

    @property
    def reach(self) -> float:
        """The smallest tolerance that the interval lies within: what these rows can show."""
        return max(-self.lower, self.upper)

    @property
    def finding(self) -> TaskFinding:
        """What p-value, interval and tolerance come to."""
        size = self.tolerance
        if math.isnan(self.bias):
            return TaskFinding.UNDECIDED
        if size is not None and self.reach <= size and not self.few_labels:
            return TaskFinding.SAFE
        shown = max(self.lower, -self.upper) >= (size or 0.0)
        return TaskFinding.BIASED if self.is_shown and shown else TaskFinding.UNDECIDED

    @property
    def rows_needed(self) -> int | None:
        """Labelled rows that would probably decide; to two digits.

        Where no bias is shown: rows with which a number without bias is called safe in four of
        five samples. Where one is shown: rows with which it is decided whether it reaches the
        tolerance, if it is as large as estimated. None where the number is decided, where it has
        no tolerance, where few labels carry it, or where the estimate lies so near the tolerance
        that no reasonable number of rows tells them apart.
        """
        undecided = self.finding is TaskFinding.UNDECIDED and not self.few_labels
        if not undecided or self.tolerance is None or math.isnan(self.bias):
            return None
        room = abs(abs(self.bias) - self.tolerance) if self.is_shown else self.tolerance
        half = SPARE * max(self.upper - self.bias, self.bias - self.lower)
        if not room > 0 or not math.isfinite(half) or half > MAX_TIMES**0.5 * room:
            return None
        return two_digits(max(self.n * (half / room) ** 2, self.n + 1))

    def _facts(self) -> Mapping[str, Any]:
        return {
            **vars(self),
            "task": self.name,
            "finding": self.finding.value,
            "bias": self.bias,
            "tolerance": self.tolerance,
            "rows_needed": self.rows_needed,
        }


def evaluate_tasks(
    sample: Sample,
    tasks: Sequence[Task],
    *,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
) -> tuple[TaskResult, ...]:
    """Evaluate several tasks on the same redraws.

    P-values are adjusted for all of them, and intervals hold for all of them (Bonferroni). They
    are one family: an interval excludes 0 if and only if its p-value is at most `alpha`. Where rows
    come from a design, variances and degrees of freedom are the design's (Taylor linearisation, or
    estimates with every set of replicate weights; clusters less strata, or the rank of the
    replicate weights less one), and labels are not redrawn.

    Parameters
    ----------
    sample : Sample
        Labels, predictions and covariates.
    tasks : sequence of Task
        The numbers.
    alpha : float
        Error that the intervals are allowed together.
    draws : int
        Number of redraws, which all tasks share.
    rng : int, Generator or None
        Seed of the redraws; None takes another each time.

    Returns
    -------
    tuple of TaskResult
        One for each task, in their order.
    """
    redraws = Redraws.of(sample, alpha=alpha, draws=draws, rng=rng)
    plug_ins, labels = checked_tasks(sample, tasks)
    if not tasks:
        return ()
    own, adjusted = _redrawn(redraws, tasks)
    found = []
    for k, task in enumerate(tasks):
        bias = labels[k].value - plug_ins[k].value
        told = LabelledTask.of(task, sample)
        error = told.less(1.0)
        located = Located(labels[k].value, error, task.bounds(told.rows), told.smoothed_rate)
        few, plug_in = few_labels(task, sample), plug_ins[k].value
        shown = _one_family(located, plug_in, float(adjusted[k]), redraws.alpha, len(tasks))
        alone = _one_family(located, plug_in, float(own[k]), redraws.alpha)
        if math.isnan(bias):
            notes = ["labels give no estimate: a denominator is 0"]
        elif few:
            notes = [FEW_NOTE]
        else:
            notes = _design_notes(sample.design, error.freedom)
        notes.extend(_missing_notes(task, sample.points))
        found.append(
            TaskResult(
                task=task,
                plugin=plug_in,
                from_labels=labels[k].value,
                lower=shown.lower,
                upper=shown.upper,
                stderr=error.stderr,
                unadjusted_pvalue=alone.pvalue,
                pvalue=shown.pvalue,
                alpha=redraws.alpha,
                n=sample.n,
                draws=redraws.draws if sample.design.is_simple else 0,
                seed=redraws.seed,
                covariates=covariates_of(task, sample.points),
                few_labels=few,
                positives=sample.positives,
                notes=tuple(notes),
            )
        )
    return tuple(found)


def _redrawn(redraws: Redraws, tasks: Sequence[Task]) -> tuple[FloatArray, FloatArray]:
    """P-values from redraws, unadjusted and adjusted, (k,) each; 0 where there are no redraws.

    Rows are redrawn where they are independent, and only there: under a design the variance of the
    design and Student's law give interval and p-value alike.
    """
    if not redraws.sample.design.is_simple:
        return np.zeros(len(tasks)), np.zeros(len(tasks))
    scores = np.abs(task_scores(redraws, tasks))
    return unadjusted_pvalues(scores), step_down(scores)


def _design_notes(design: Design, freedom: float) -> list[str]:
    """Say so where a design leaves few degrees of freedom."""
    if design.is_simple or freedom >= FEW_FREEDOM:
        return []
    return [
        f"few clusters carry this estimate ({freedom:.2g} degrees of freedom): the interval is wide"
    ]


def _missing_notes(task: Task, points: Points) -> list[str]:
    """Rows that no comparison holds for, unless the task asks for them itself."""
    asked = {
        leaf.name
        for ratio in task.ratios()
        for predicate in ratio.predicates()
        for leaf in predicate.leaves()
        if isinstance(leaf, Missing)
    }
    said = []
    for name in sorted(task.names - asked):
        missing = int(Missing(name).rows(points).sum())
        if missing:
            told = counted(missing, "row")
            said.append(f"{told} without {name}: no comparison with it holds for them")
    return said


class _Shown(NamedTuple):
    """P-value and interval that agree."""

    pvalue: float
    lower: float
    upper: float


def _one_family(
    labels: Located, plug_in: float, redrawn: float, alpha: float, tasks: int = 1
) -> _Shown:
    """Join the p-value of redraws and the interval: it excludes 0 if and only if p is small.

    The p-value is the larger of the two; an interval that excludes 0 where redraws do not is drawn
    out to it. Both only become more careful, so level and coverage are kept.
    """
    if math.isnan(labels.value):
        return _Shown(math.nan, math.nan, math.nan)
    lower, upper = (end - plug_in for end in labels.interval(alpha / tasks))
    if redrawn > alpha:
        lower, upper = min(lower, 0.0), max(upper, 0.0)
    return _Shown(max(redrawn, labels.pvalue(plug_in, tasks)), lower, upper)


def checked_tasks(
    sample: Sample, tasks: Sequence[Task]
) -> tuple[list[Linearised], list[Linearised]]:
    """Estimate every task in two ways; refuse what is no task or has no finite value.

    Parameters
    ----------
    sample : Sample
        Rows with labels.
    tasks : sequence of Task
        What to estimate on them.

    Returns
    -------
    two lists of Linearised
        Plug-in estimates, and estimates from labels.
    """
    with_p, with_y = TaskRows.predicted(sample), TaskRows.labelled(sample)
    for task in tasks:
        if not isinstance(task, Task):
            raise InputError(
                "a task is made with tasks.mean, tasks.share, tasks.prevalence or tasks.parse, "
                "not {value}",
                argument="tasks",
                value=task,
            )
        if not list(task.ratios()):
            raise InputError(
                "{task} is a number and no task; use mean, share or prevalence",
                argument="tasks",
                value=task,
                details={"task": task},
            )
    plug_ins = [task.linear(with_p) for task in tasks]
    for task, plug_in in zip(tasks, plug_ins, strict=True):
        if not math.isfinite(plug_in.value):
            raise InputError(
                "{task} has no finite value when probabilities stand for labels",
                argument="tasks",
                value=task,
                details={"task": task},
            )
    return plug_ins, [task.linear(with_y) for task in tasks]


def covariates_of(task: Task, points: Points) -> tuple[str, ...]:
    """Names in the order of the sample; a function's are those it reads."""
    names = set(task.names)
    for ratio in task.ratios():
        if isinstance(ratio.quantity, Callback):
            names |= ratio.quantity.asked_by(points)
    return tuple(column.name for column in points.columns if column.name in names)


def covered(result: TaskResult, judged: Sequence[str]) -> TaskResult:
    """Note the covariates of a task that were not judged.

    Parameters
    ----------
    result : TaskResult
        What was found about the task.
    judged : sequence of str
        Covariates that were judged.

    Returns
    -------
    TaskResult
        With `uncovered` and a note, where there is something to note.
    """
    left_out = tuple(name for name in result.covariates if name not in judged)
    if not left_out:
        return result
    note = (
        f"this task depends on {', '.join(left_out)}, which the audit did not judge: its verdict "
        f"does not cover this number"
    )
    return replace(result, uncovered=left_out, notes=(*result.notes, note))
