"""What a model does to a task: plug-in and labels, bias with interval, p-value from redraws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from itrust._core import (
    Argument,
    FloatArray,
    InputError,
    Result,
    Rng,
    as_seed,
    checked_reach,
    counted,
    cut,
    printable,
    rounded,
    two_digits,
)
from itrust.bias import Redraws
from itrust.calibration import step_down, unadjusted_pvalues
from itrust.data import (
    Design,
    Missing,
    MulticlassSample,
    MulticlassScan,
    Points,
    Sample,
    Scan,
)
from itrust.engines import EngineChoice, Outcome, Plan, Work, run_together
from itrust.nulls import places_null
from itrust.tasks.bounds import Bounds
from itrust.tasks.classes import (
    ClassSamples,
    TwoClasses,
    class_task,
    refuse_other_value,
    sample_label,
)
from itrust.tasks.differentials import Linearised, value_at
from itrust.tasks.expressions import LARGEST_VALUE, Leaf, Ratio, Task, TaskRows
from itrust.tasks.joint import (
    ClassRows,
    bare,
    class_bounds,
    estimated_twice,
    few_class_labels,
    joined,
    joint_scores,
    joint_task,
    leaves_of,
)
from itrust.tasks.passes import LawSumsOfTasks, TaskPass, task_pass
from itrust.tasks.quantities import Callback
from itrust.tasks.refusals import refuse_label_by_name
from itrust.tasks.regressions import Coefficient, references_of
from itrust.tasks.scores import DrawnSums, TaskConstants
from itrust.tasks.uncertainty import (
    FEW_NOTE,
    LabelledTask,
    Located,
    Uncertainty,
    few_carry,
    few_labels,
)

MAX_TIMES = 1_000.0  # as many rows as there are: more is no advice
SPARE = 1 + 1.28 / 1.96  # an interval so much wider than its half lies inside in 4 of 5 samples
LONG_TASK = 120  # characters of a task in an error
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
        Not told: it rests on few rows, or would give such away.
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
        What positives are called, such as "owner = 1"; of several classes, what the label is.
    notes : tuple of str
        Data-quality notes.
    withheld : int or None
        Where disclosure control withholds the number: the fewest rows that may stand behind what
        is shown. Its values are NaN then. None: it is shown.
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
    withheld: int | None = None

    def __repr__(self) -> str:
        if self.withheld is not None:
            return f"<TaskResult: {self.name}, {self.finding}>"
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
    sample: Sample | MulticlassSample | Scan | MulticlassScan,
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
    if isinstance(sample, MulticlassScan | MulticlassSample):
        settings: dict[str, Any] = {"alpha": alpha, "draws": draws, "rng": rng, "engine": engine}
        rows = sample.load() if isinstance(sample, MulticlassScan) else sample
        return _of_several(rows, tasks, settings)
    redraws = Redraws.of(sample, alpha=alpha, draws=draws, rng=rng, engine=engine)
    refuse_odd_tasks(tasks)
    own = class_tasks(tasks, redraws.sample)
    if redraws.extract is None and any(leaf.label is not None for leaf in leaves_of(*own)):
        value = redraws.sample.values[1]
        own = [task.mapped(lambda leaf: _named(leaf, value)) for task in own]
        found = _evaluated(ClassSamples(TwoClasses(redraws.sample)), own, redraws)
        return _as_asked(found, tasks, redraws.sample.positives)
    check_tasks(redraws.sample, own, is_all=redraws.extract is None)
    if not own:
        return ()
    if not redraws.sample.design.is_simple:
        return _as_asked(SampleTasks(redraws, tuple(own)).results(None), tasks)
    part = task_part(redraws, own)
    (drawn,) = run_together(
        redraws.engine, redraws.survey, [part], redraws.null, redraws.draws, redraws.seed
    )
    return _as_asked(part.results(drawn), tasks)


def _named(leaf: Leaf, value: Any) -> Leaf:
    return leaf.with_label(value) if leaf.label is None else leaf


def class_tasks(tasks: Sequence[Task], sample: Sample | MulticlassSample) -> list[Task]:
    """Say of every task which classes it is about, as a sample has them."""
    found = []
    for task in tasks:
        with _named_in_errors(task):
            found.append(class_task(task, sample))
    return found


def _as_asked(
    found: Sequence[TaskResult], tasks: Sequence[Task], positives: str | None = None
) -> tuple[TaskResult, ...]:
    """Results under the tasks that were asked for."""
    return tuple(
        replace(result, task=task, positives=positives or result.positives)
        for result, task in zip(found, tasks, strict=True)
    )


def _of_several(
    sample: MulticlassSample, tasks: Sequence[Task], settings: Mapping[str, Any]
) -> tuple[TaskResult, ...]:
    """Tasks on several classes; two of them are those of the second one."""
    own = checked_class_tasks(sample, tasks)
    samples, last = ClassSamples(sample), sample.classes[-1]
    if len(sample.classes) == 2 and samples.used(own) in ((), (last,)):
        found = evaluate_tasks(samples.one(last), [bare(task) for task in own], **settings)
    else:
        whole = samples.one(samples.used(own)[0] if own else last)
        alpha, seed = settings["alpha"], as_seed(settings["rng"])
        draws = checked_reach(settings["draws"], alpha, 1)
        redraws = Redraws(whole, places_null(whole), draws, seed, float(alpha))
        found = _evaluated(samples, own, redraws)
    return _as_asked(found, tasks, sample_label(sample))


def _evaluated(
    samples: ClassSamples, tasks: Sequence[Task], redraws: Redraws
) -> tuple[TaskResult, ...]:
    """Tasks whose leaves all name their classes, on redraws of all classes."""
    told = []
    for task in tasks:
        one = joint_task(task, samples)
        told.append(
            _Told(
                plug_in=one.predicted.value,
                labels=one.labels.value,
                error=one.less(1.0),
                bounds=class_bounds(task, one.rows),
                smoothed_rate=one.smoothed_rate,
                few=few_class_labels(task, samples),
                missing=_missing(task, redraws.sample.points),
                references=references_of(task, redraws.sample),
            )
        )
    scores = None
    if tasks and redraws.sample.design.is_simple:
        scores = joint_scores(tasks, samples, redraws.draws, redraws.seed)
    return _results(redraws, tasks, told, scores)


def task_part(redraws: Redraws, tasks: Sequence[Task]) -> SampleTasks | StreamedTasks:
    """Tasks as a part of a pass over the rows, whose sums make their results."""
    own = class_tasks(tasks, redraws.sample)
    if redraws.extract is None:
        return SampleTasks(redraws, tuple(own))
    return StreamedTasks(**vars(task_pass(redraws, own)))


class StreamedTasks(TaskPass):
    """Tasks on rows that are not all at hand."""

    def results(
        self, found: tuple[DrawnSums, LawSumsOfTasks], families: Sequence[slice] = (slice(None),)
    ) -> tuple[TaskResult, ...]:
        """Make the results of all tasks."""
        drawn, shares = found
        totals, leaves = self.totals, self.leaves
        at = {kind: self.values(kind) for kind in ("y", "p")}
        ranges = {
            leaf: leaf.between(float(low), float(high))
            for leaf, low, high in zip(leaves, totals.low, totals.high, strict=True)
        }
        missing = dict(zip(self.names, totals.missing.tolist(), strict=True))
        told = []
        for number, task in enumerate(self.tasks):
            refuse_infinite(task, value_at(task, leaves, at["p"]))
            told.append(
                _Told(
                    plug_in=value_at(task, leaves, at["p"]),
                    labels=value_at(task, leaves, at["y"]),
                    error=shares.tasks[number].uncertainty(),
                    bounds=task.bounds_of(ranges),
                    smoothed_rate=self.law_value(number),
                    few=few_carry(dict.fromkeys(task.leaves()), self.carriers),
                    missing=missing,
                    references=self.solutions.references(task),
                )
            )
        scores = self.constants.scores(drawn)
        return _by_family(self.redraws, self.tasks, told, scores, families)


@dataclass(frozen=True, eq=False)
class SampleTasks:
    """Tasks on rows in memory."""

    redraws: Redraws
    tasks: tuple[Task, ...]

    @property
    def plans(self) -> tuple[Plan, ...]:
        """None: no kernels are tested."""
        return ()

    @property
    def width(self) -> int:
        """Numbers that are kept for each draw."""
        return self.constants.width

    @cached_property
    def constants(self) -> TaskConstants:
        """The plug-in estimates."""
        return TaskConstants.of(self.tasks, self.redraws.sample, self.redraws.survey.unit)

    def works(self, block: range) -> list[Work]:
        """One piece of work for all tasks."""
        large = self.redraws.n * len(block) > TaskConstants.MAX_IN_DOUBLE
        return [self.constants.work(self.redraws.survey.unit, large)]

    def reduced(self, outcome: Outcome, block: range) -> DrawnSums:
        """Keep the sums; those of the data once."""
        found: DrawnSums = outcome.works[0]
        return found if block.start == 0 else found.without_data()

    def finished(self, found: Sequence[DrawnSums]) -> DrawnSums:
        """Put batches of draws side by side."""
        return DrawnSums.joined(found)

    def results(
        self, found: DrawnSums | None, families: Sequence[slice] = (slice(None),)
    ) -> tuple[TaskResult, ...]:
        """Make the results of all tasks."""
        sample, told = self.redraws.sample, []
        for task in self.tasks:
            one = LabelledTask.of(task, sample)
            told.append(
                _Told(
                    plug_in=one.predicted.value,
                    labels=one.labels.value,
                    error=one.less(1.0),
                    bounds=task.bounds(one.rows),
                    smoothed_rate=one.smoothed_rate,
                    few=few_labels(task, sample),
                    missing=_missing(task, sample.points),
                    references=references_of(task, sample),
                )
            )
        scores = None if found is None else self.constants.scores(found)
        return _by_family(self.redraws, self.tasks, told, scores, families)


@dataclass(frozen=True, eq=False)
class _Told:
    """What rows tell about one task, beside redraws."""

    plug_in: float
    labels: float
    error: Uncertainty
    bounds: Bounds
    smoothed_rate: float | None
    few: bool
    missing: Mapping[str, int]  # rows without a covariate
    references: Mapping[str, Any]  # levels that were not chosen


def _by_family(
    redraws: Redraws,
    tasks: Sequence[Task],
    told: Sequence[_Told],
    scores: FloatArray | None,
    families: Sequence[slice],
) -> tuple[TaskResult, ...]:
    """The results of several families of tasks, one after the other."""
    return tuple(
        result
        for own in families
        for result in _results(
            redraws, tasks[own], told[own], None if scores is None else scores[own]
        )
    )


def _results(
    redraws: Redraws, tasks: Sequence[Task], told: Sequence[_Told], scores: FloatArray | None
) -> tuple[TaskResult, ...]:
    """P-values from redraws joined with intervals; scores are (tasks, 1 + draws)."""
    sample = redraws.sample
    own = adjusted = np.zeros(len(tasks))
    if scores is not None:
        # Rows are redrawn where they are independent, and only there: under a design the variance
        # of the design and Student's law give interval and p-value alike.
        own, adjusted = unadjusted_pvalues(np.abs(scores)), step_down(np.abs(scores))
    found = []
    for k, (task, one) in enumerate(zip(tasks, told, strict=True)):
        located = Located(one.labels, one.error, one.bounds, one.smoothed_rate)
        shown = _one_family(located, one.plug_in, float(adjusted[k]), redraws.alpha, len(tasks))
        alone = _one_family(located, one.plug_in, float(own[k]), redraws.alpha)
        if math.isnan(one.labels - one.plug_in):
            notes = ["labels give no estimate: a denominator is 0"]
        elif one.few:
            notes = [FEW_NOTE]
        else:
            notes = _design_notes(sample.design, one.error.freedom)
        notes.extend(reference_notes(one.references))
        notes.extend(_missing_notes(task, one.missing))
        found.append(
            TaskResult(
                task=task,
                plugin=one.plug_in,
                from_labels=one.labels,
                lower=shown.lower,
                upper=shown.upper,
                stderr=one.error.stderr,
                unadjusted_pvalue=alone.pvalue,
                pvalue=shown.pvalue,
                alpha=redraws.alpha,
                n=redraws.n,
                draws=redraws.draws if sample.design.is_simple else 0,
                seed=redraws.seed,
                covariates=covariates_of(task, sample.points),
                few_labels=one.few,
                positives=sample.positives,
                notes=tuple(notes),
            )
        )
    return tuple(found)


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


def _missing(task: Task, points: Points) -> dict[str, int]:
    """How many rows lack each covariate of a task."""
    return {name: int(Missing(name).rows(points).sum()) for name in task.names}


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
    sample: Sample | MulticlassSample, tasks: Sequence[Task]
) -> tuple[list[Linearised], list[Linearised]]:
    """Estimate every task in two ways; refuse what is no task or has no finite value."""
    if isinstance(sample, MulticlassSample):
        own, samples = checked_class_tasks(sample, tasks), ClassSamples(sample)
        return estimated_twice(own, samples)
    refuse_odd_tasks(tasks)
    tasks = positive_tasks(tasks, sample)
    with_p, with_y = TaskRows.predicted(sample), TaskRows.labelled(sample)
    plug_ins = []
    for task in tasks:
        with _named_in_errors(task):
            for leaf in task.leaves():
                leaf.check(sample)
            plug_ins.append(task.linear(with_p))
    for task, plug_in in zip(tasks, plug_ins, strict=True):
        refuse_infinite(task, plug_in.value)
    return plug_ins, [task.linear(with_y) for task in tasks]


def positive_tasks(tasks: Sequence[Task], sample: Sample) -> list[Task]:
    """Take the names of classes out of tasks; those of rows that are not positive are refused."""
    own = class_tasks(tasks, sample)
    for task in own:
        refuse_other_value(task, sample)
    return own


def checked_class_tasks(sample: MulticlassSample, tasks: Sequence[Task]) -> list[Task]:
    """Refuse what is no task, names no class, or has no finite value on these rows."""
    refuse_odd_tasks(tasks)
    own, samples = class_tasks(tasks, sample), ClassSamples(sample)
    for asked, task in zip(tasks, own, strict=True):
        with _named_in_errors(asked):
            leaves = leaves_of(task)
            for leaf in leaves:
                leaf.bare.check(samples.one(leaf.label))
            rows = ClassRows.predicted(samples, samples.used([task]))
            values = [leaf.bare.linear(rows.of(leaf)).value for leaf in leaves]
            plug_in, _ = joined(task, leaves, values)
        refuse_infinite(asked, plug_in)
    return own


def check_tasks(sample: Sample | MulticlassSample, tasks: Sequence[Task], *, is_all: bool) -> None:
    """Refuse what is no task, or cannot be one of these rows."""
    if isinstance(sample, MulticlassSample):
        checked_class_tasks(sample, tasks)
        return
    if is_all:
        checked_tasks(sample, tasks)
        return
    refuse_odd_tasks(tasks)
    tasks = positive_tasks(tasks, sample)
    few = sample.points.take(slice(0, 2))
    for task in tasks:
        with _named_in_errors(task):
            for leaf in task.leaves():
                leaf.where.check(sample.points)
                if isinstance(leaf, Ratio):
                    leaf.quantity.of(few)
                elif isinstance(leaf, Coefficient):
                    refuse_label_by_name(leaf.regression, sample)


@contextmanager
def _named_in_errors(task: Task) -> Iterator[None]:
    """Say which task an error about a column comes from."""
    try:
        yield
    except InputError as error:
        if error.argument is not None:  # it names the task itself
            raise
        name = cut(printable(str(task), lines=False), LONG_TASK)
        raise error.at(
            problem=f"{{asked}} {{task}}: {error.problem}",
            argument="tasks",
            details={**error.details, "asked": Argument("tasks"), "task": name},
        ) from None


def refuse_infinite(task: Task, plug_in: float) -> None:
    """Raise if probabilities give a task no value."""
    if not math.isfinite(plug_in):
        raise InputError(
            "{task} has no finite value when probabilities stand for labels",
            argument="tasks",
            value=task,
            details={"task": task},
        )
    if abs(plug_in) > LARGEST_VALUE:
        raise InputError(
            "{task} is {size}, which is too large; take a larger unit",
            argument="tasks",
            value=task,
            details={"task": task, "size": f"{plug_in:.3g}"},
        )


def refuse_odd_tasks(tasks: Sequence[Task]) -> None:
    """Raise if something is no task, or no more than a number."""
    for task in tasks:
        if not isinstance(task, Task):
            raise InputError(
                "a task is made with tasks.mean, tasks.share, tasks.prevalence, tasks.coefficient "
                "or tasks.parse, not {value}",
                argument="tasks",
                value=task,
            )
        if not list(task.leaves()):
            raise InputError(
                "{task} is a number and no task; use mean, share, prevalence or coef",
                argument="tasks",
                value=task,
                details={"task": task},
            )


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
