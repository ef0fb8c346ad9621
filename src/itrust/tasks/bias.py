"""What a model does to a task: plug-in and labels, bias with interval, p-value from redraws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import (
    FloatArray,
    InputError,
    Rng,
    as_seed,
    checked_reach,
    counted,
    rounded,
    two_digits,
)
from itrust.bias import Redraws
from itrust.calibration import step_down, unadjusted_pvalues
from itrust.data import Design, Missing, MulticlassSample, Points, Rows, Sample, Scan
from itrust.engines import EngineChoice, Outcome, Plan, Work, run_together
from itrust.nulls import Bernoulli
from itrust.tasks.arithmetic import Callback, Linearised
from itrust.tasks.expressions import LARGEST_VALUE, OfTask, Ratio, Task, TaskRows, leaves_of
from itrust.tasks.outcomes import (
    both_classes,
    class_tasks,
    classes_of,
    named_in_errors,
    outcome_of,
    refuse_other_value,
    sample_label,
)
from itrust.tasks.passes import SumsByKey, TaskPass
from itrust.tasks.regressions import Coefficient, references_of, refuse_label_by_name
from itrust.tasks.scores import TaskConstants
from itrust.tasks.uncertainty import FEW_NOTE, LabelledTask, Located, few_labels, joined_uncertainty

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
    WITHHELD
        Not told: it rests on few rows.
    """

    BIASED = "biased"
    SAFE = "safe to report"
    UNDECIDED = "undecided"
    WITHHELD = "withheld"

    @property
    def closes_gate(self) -> bool:
        """Whether `itrust audit --gate tasks` fails."""
        return self is TaskFinding.BIASED


@dataclass(frozen=True)
class TaskResult(OfTask):
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
        What positives are called, such as "owner = 1"; of several classes, what the label is.
    notes : tuple of str
        Data-quality notes.
    withheld : int or None
        Where disclosure control withholds the number: the fewest rows that may stand behind what
        is shown. Its values are NaN then. None: it is shown.
    """

    _derived = ("finding", "bias", "tolerance", "rows_needed")

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
    withheld: int | None = None

    def __repr__(self) -> str:
        if self.withheld is not None:
            return f"<TaskResult: {self.name}, {self.finding}>"
        bias = rounded(self.bias, self.lower, self.upper, "+")
        return f"<TaskResult: {self.name}, bias {bias}, {self.finding}>"

    @property
    def bias(self) -> float:
        """From labels minus plug-in; positive: the model understates the number."""
        return self.from_labels - self.plugin

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
        if self.withheld is not None:
            return TaskFinding.WITHHELD
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

    def without_values(self, min_cell: int) -> TaskResult:
        """Take out everything that was found, because few rows stand behind it.

        Parameters
        ----------
        min_cell : int
            The fewest rows that may stand behind what is shown.

        Returns
        -------
        TaskResult
            The task with NaN for every number, and without notes.
        """
        numbers = ("plugin", "from_labels", "lower", "upper", "stderr")
        nothing: dict[str, Any] = dict.fromkeys((*numbers, "unadjusted_pvalue", "pvalue"), math.nan)
        return replace(self, few_labels=False, notes=(), withheld=min_cell, **nothing)


def evaluate_tasks(
    sample: Sample | MulticlassSample | Scan,
    tasks: Sequence[Task],
    *,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
) -> tuple[TaskResult, ...]:
    """Evaluate several tasks on the same redraws.

    P-values are adjusted for all of them, and intervals hold for all of them (Bonferroni). They
    are one family: an interval excludes 0 if and only if its p-value is at most `alpha`. Where rows
    come from a design, variances and degrees of freedom are the design's (Taylor linearisation, or
    estimates with every set of replicate weights; clusters less strata, or the rank of the
    replicate weights less one), and labels are not redrawn.

    Of several classes every task names those that it is about, as in `prevalence("tie")`. Rows are
    redrawn from the probabilities of all classes, once for all tasks, and a gap between classes has
    the variance of labels of which each row has one.
    """
    refuse_odd_tasks(tasks)
    redraws, own = _redraws_of(sample, tasks, alpha, draws, rng, engine)
    if not own:
        return ()
    part = task_part(redraws, own)
    sums = None
    if redraws.sample.design.is_simple:
        null, count, seed = redraws.null, redraws.draws, redraws.seed
        (sums,) = run_together(redraws.engine, redraws.survey, [part], null, count, seed)
    return tuple(
        replace(result, task=task) for result, task in zip(part.results(sums), tasks, strict=True)
    )


def _redraws_of(
    sample: Any, tasks: Sequence[Task], alpha: float, draws: int, rng: Rng, engine: EngineChoice
) -> tuple[Redraws, list[Task]]:
    """The rows with all outcomes that tasks name, how they are redrawn, and the tasks of these."""
    if sample.several:
        rows = sample.load() if sample.in_memory is None else sample
        own = class_tasks(tasks, rows)
        check_tasks(rows, own, is_all=True)
        last = rows.classes[-1]
        if len(rows.classes) > 2 or classes_of(own, rows) not in ((), (last,)):
            number = checked_reach(draws, alpha)
            null: Any = Bernoulli()
            return Redraws(rows, null, number, as_seed(rng), float(alpha)), own
        # Two classes are those of the second one.
        sample, tasks = rows.one_class(last), [task.mapped(lambda leaf: leaf.bare) for task in own]
    redraws = Redraws.of(sample, alpha=alpha, draws=draws, rng=rng, engine=engine)
    rows, own = redraws.sample, class_tasks(tasks, redraws.sample)
    if redraws.extract is None and any(leaf.label is not None for leaf in leaves_of(own)):
        value = rows.classes[1]
        own = [
            task.mapped(lambda leaf: leaf if leaf.label is not None else leaf.with_label(value))
            for task in own
        ]
        both: Any = {"sample": both_classes(rows), "null": Bernoulli()}
        return replace(redraws, **both), own
    check_tasks(rows, own, is_all=redraws.extract is None)
    return redraws, own


def task_part(redraws: Redraws, tasks: Sequence[Task]) -> TaskPart:
    """Tasks as a part of a pass over the rows, whose sums make their results."""
    own = class_tasks(tasks, redraws.sample)
    return TaskPart(
        redraws, tuple(own), None if redraws.extract is None else TaskPass.of(redraws, own)
    )


@dataclass(frozen=True, eq=False)
class TaskPart:
    """Tasks as a part of a pass; `passes` are those made before, where not all rows are at hand."""

    redraws: Redraws
    tasks: tuple[Task, ...]
    passes: TaskPass | None

    @property
    def plans(self) -> tuple[Plan, ...]:
        """None: no kernels are tested."""
        return ()

    @property
    def width(self) -> int:
        """Numbers that are kept for each draw."""
        return self.constants.width

    @property
    def _unit(self) -> float:
        """Of weights in the pass."""
        return 1.0 if self.redraws.sample.several else self.redraws.survey.unit

    @cached_property
    def constants(self) -> TaskConstants:
        """The plug-in estimates, which say what is summed over redrawn labels."""
        if self.passes is None:
            return TaskConstants.of(self.tasks, self.redraws.sample, self._unit)
        leaves, fits = self.passes.leaves, self.passes.fits("p")
        return TaskConstants(self.tasks, leaves, tuple(fits[leaf] for leaf in leaves))

    def works(self, block: range) -> list[Work]:
        """Sums over redrawn labels; where not all rows are at hand, of their shares, too."""
        work = self.constants.work(self._unit, self.redraws.n * len(block))
        return [work] if self.passes is None else [work, self.passes.sharing]

    def reduced(self, outcome: Outcome, block: range) -> tuple[Any, ...]:
        """Keep the sums; those of the data once."""
        (drawn, *null), *shares = outcome.works
        return (drawn if block.start == 0 else drawn[:, 1:], *null), *shares

    def finished(self, found: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Put batches of draws side by side."""
        drawn = np.concatenate([columns for (columns, *_), *_ in found], axis=1)
        (_, *null), *shares = found[0]
        return (drawn, *null), *shares

    def results(
        self, sums: tuple[Any, ...] | None, families: Sequence[slice] = (slice(None),)
    ) -> tuple[TaskResult, ...]:
        """Make the results of all tasks, of several families one after the other."""
        sample, scores = self.redraws.sample, None
        if self.passes is None or sums is None:
            facts = self._at_hand()
        else:
            facts = self._streamed(sums[1], self.passes)
        if sums is not None:
            scores = self.constants.scores(sums[0])
            for k, (_, labels, *_) in enumerate(facts):
                if sample.several and labels.error.stderr == 0:  # labels of classes cancel
                    scores[k] = 0.0
        return tuple(
            result
            for own in families
            for result in _results(
                self.redraws, self.tasks[own], facts[own], None if scores is None else scores[own]
            )
        )

    def _at_hand(self) -> list[TaskFacts]:
        sample = self.redraws.sample
        facts: list[TaskFacts] = []
        for task in self.tasks:
            told = LabelledTask.of(task, sample)
            error, bounds = told.less(1.0), task.bounds(told.rows)
            located = Located(told.labels.value, error, bounds, told.smoothed_rate)
            missing = {name: int(Missing(name).rows(sample.points).sum()) for name in task.names}
            few, references = few_labels(task, sample), references_of(task, sample)
            facts.append((told.predicted.value, located, few, missing, references))
        return facts

    def _streamed(self, shares: SumsByKey, passes: TaskPass) -> list[TaskFacts]:
        facts: list[TaskFacts] = []
        for number, (task, (labels, predicted, _)) in enumerate(
            zip(self.tasks, passes.fitted, strict=True)
        ):
            refuse_infinite(task, predicted.value)
            error, rate = joined_uncertainty(shares.of[number]), passes.smoothed_rate(number)
            located = Located(labels.value, error, passes.bounds(task), rate)
            references = passes.solutions.references(task)
            missing = {name: passes.totals.of["missing", name] for name in task.names}
            facts.append((predicted.value, located, passes.few(task), missing, references))
        return facts


# What rows tell about one task, beside redraws: its plug-in and what labels give, whether few of
# these carry it, how many rows lack each covariate, and levels that were not chosen.
TaskFacts = tuple[float, Located, bool, Mapping[str, int], Mapping[str, Any]]


def _results(
    redraws: Redraws, tasks: Sequence[Task], facts: Sequence[TaskFacts], scores: FloatArray | None
) -> tuple[TaskResult, ...]:
    """P-values from redraws joined with intervals; scores are (tasks, 1 + draws)."""
    sample = redraws.sample
    alone = adjusted = np.zeros(len(tasks))
    if scores is not None:
        # Rows are redrawn where they are independent, and only there: under a design the variance
        # of the design and Student's law give interval and p-value alike.
        alone, adjusted = unadjusted_pvalues(np.abs(scores)), step_down(np.abs(scores))
    results = []
    for k, (task, (plug_in, labels, few, missing, references)) in enumerate(
        zip(tasks, facts, strict=True)
    ):
        place = labels, plug_in
        pvalue, lower, upper = _one_family(*place, float(adjusted[k]), redraws.alpha, len(tasks))
        unadjusted, _, _ = _one_family(*place, float(alone[k]), redraws.alpha)
        if math.isnan(labels.value - plug_in):
            notes = ["labels give no estimate: a denominator is 0"]
        elif few:
            notes = [FEW_NOTE]
        else:
            notes = _design_notes(sample.design, labels.error.freedom)
        notes.extend(reference_notes(references))
        notes.extend(_missing_notes(task, missing))
        results.append(
            TaskResult(
                task=task,
                plugin=plug_in,
                from_labels=labels.value,
                lower=lower,
                upper=upper,
                stderr=labels.error.stderr,
                unadjusted_pvalue=unadjusted,
                pvalue=pvalue,
                alpha=redraws.alpha,
                n=redraws.n,
                draws=redraws.draws if sample.design.is_simple else 0,
                seed=redraws.seed,
                covariates=covariates_of(task, sample.points),
                few_labels=few,
                positives=sample_label(sample) if sample.several else sample.positives,
                notes=tuple(notes),
            )
        )
    return tuple(results)


def _design_notes(design: Design, freedom: float) -> list[str]:
    """Say so where a design leaves few degrees of freedom."""
    if design.is_simple or freedom >= FEW_FREEDOM:
        return []
    return [
        f"few clusters carry this estimate ({freedom:.2g} degrees of freedom): the interval is wide"
    ]


def reference_notes(references: Mapping[str, Any]) -> list[str]:
    """Say which levels others are compared with, where nobody chose them."""
    return [
        f"levels of {name} are compared with {level}, the first one"
        for name, level in references.items()
    ]


def _missing_notes(task: Task, missing: Mapping[str, int]) -> list[str]:
    """Rows that no comparison holds for, unless the task asks for them itself."""
    asked = {
        leaf.name
        for number in task.leaves()
        for predicate in number.predicates()
        for leaf in predicate.leaves()
        if isinstance(leaf, Missing)
    }
    said = []
    for name in sorted(task.names - asked):
        if missing[name]:
            told = counted(missing[name], "row")
            said.append(f"{told} without {name}: no comparison with it holds for them")
    return said


def _one_family(
    labels: Located, plug_in: float, redrawn: float, alpha: float, tasks: int = 1
) -> tuple[float, float, float]:
    """Join the p-value of redraws and the interval: it excludes 0 if and only if p is small.

    The p-value is the larger of the two; an interval that excludes 0 where redraws do not is drawn
    out to it. Both only become more careful, so level and coverage are kept.
    """
    if math.isnan(labels.value):
        return math.nan, math.nan, math.nan
    lower, upper = (end - plug_in for end in labels.interval(alpha / tasks))
    if redrawn > alpha:
        lower, upper = min(lower, 0.0), max(upper, 0.0)
    return max(redrawn, labels.pvalue(plug_in, tasks)), lower, upper


def checked_tasks(sample: Rows, tasks: Sequence[Task]) -> tuple[list[Linearised], list[Linearised]]:
    """Estimate every task in two ways; refuse what is no task or has no finite value."""
    refuse_odd_tasks(tasks)
    own = class_tasks(tasks, sample)
    with_p, with_y = TaskRows.predicted(sample), TaskRows.labelled(sample)
    plug_ins = []
    for task in own:
        refuse_other_value(task, sample)
        with named_in_errors(task):
            for leaf in leaves_of([task]):
                leaf.bare.check(outcome_of(sample, leaf.label))
            plug_ins.append(task.linear(with_p))
    for task, plug_in in zip(own, plug_ins, strict=True):
        refuse_infinite(task, plug_in.value)
    return plug_ins, [task.linear(with_y) for task in own]


def check_tasks(sample: Rows, tasks: Sequence[Task], *, is_all: bool) -> None:
    """Refuse what is no task, or cannot be one of these rows."""
    if is_all or sample.several:
        checked_tasks(sample, tasks)
        return
    refuse_odd_tasks(tasks)
    few = sample.points.take(slice(0, 2))
    for task in class_tasks(tasks, sample):
        refuse_other_value(task, sample)
        with named_in_errors(task):
            for leaf in task.leaves():
                leaf.where.check(sample.points)
                if isinstance(leaf, Ratio):
                    leaf.quantity.of(few)
                elif isinstance(leaf, Coefficient):
                    refuse_label_by_name(leaf.regression, sample)


def refuse_infinite(task: Task, plug_in: float) -> None:
    """Raise if probabilities give a task no value."""
    if not math.isfinite(plug_in):
        problem = "{task} has no finite value when probabilities stand for labels"
        raise InputError(problem, argument="tasks", value=task, task=task)
    if abs(plug_in) > LARGEST_VALUE:
        problem = "{task} is {size}, which is too large; take a larger unit"
        size = f"{plug_in:.3g}"
        raise InputError(problem, argument="tasks", value=task, task=task, size=size)


def refuse_odd_tasks(tasks: Sequence[Task]) -> None:
    """Raise if something is no task, or no more than a number."""
    for task in tasks:
        if not isinstance(task, Task):
            problem = (
                "a task is made with tasks.mean, tasks.share, tasks.prevalence, tasks.coefficient "
                "or tasks.parse, not {value}"
            )
            raise InputError(problem, argument="tasks", value=task)
        if not list(task.leaves()):
            problem = "{task} is a number and no task; use mean, share, prevalence or coef"
            raise InputError(problem, argument="tasks", value=task, task=task)


def covariates_of(task: Task, points: Points) -> tuple[str, ...]:
    """Names in the order of the sample; a function's are those it reads."""
    names = set(task.names)
    for ratio in task.ratios():
        if isinstance(ratio.quantity, Callback):
            names |= ratio.quantity.asked_by(points)
    return tuple(column.name for column in points.columns if column.name in names)


def covered(result: TaskResult, judged: Sequence[str]) -> TaskResult:
    """Note the covariates of a task that were not judged."""
    left_out = tuple(name for name in result.covariates if name not in judged)
    if not left_out:
        return result
    note = (
        f"this task depends on {', '.join(left_out)}, which the audit did not judge: its verdict "
        f"does not cover this number"
    )
    return replace(result, uncovered=left_out, notes=(*result.notes, note))
