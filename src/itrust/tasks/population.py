"""A task on a population without labels, estimated in five ways, each with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    Rng,
    Setting,
    Subject,
    as_seed,
    checked_alpha,
    checked_choice,
    counted,
    listed,
)
from itrust.balance import (
    PREDICTION,
    Gap,
    LookedAt,
    Resemblance,
    RowPair,
    at_hand,
    compare_rows,
    shared_points,
    shares_of,
)
from itrust.data import (
    Everywhere,
    MulticlassSample,
    Pilot,
    Points,
    Population,
    Predicate,
    Rows,
    Sample,
    Scan,
    checked_sample,
    encode_numbers,
)
from itrust.engines import one_blas_thread
from itrust.tasks.arithmetic import Bounds
from itrust.tasks.bias import checked_tasks, covariates_of, reference_notes
from itrust.tasks.collected import RefusedTask, TaskEstimates, fewest_rows
from itrust.tasks.estimated import (
    MAX_NEW,
    MAX_UNLIKE,
    Assumption,
    BestReason,
    Estimate,
    TaskEstimate,
)
from itrust.tasks.expressions import Leaf, Task, TaskRows, leaves_of
from itrust.tasks.makers import as_tasks
from itrust.tasks.outcomes import class_tasks, classes_of, outcome_of, refuse_other_value
from itrust.tasks.regressions import has_regression, references_of, refuse_other_levels
from itrust.tasks.uncertainty import (
    FEW_LABELS,
    FEW_NOTE,
    LabelledTask,
    Located,
    Uncertainty,
    few_labels,
)
from itrust.tasks.ways import (
    PopulationTotals,
    Transport,
    TransportedValue,
    cross_fitted,
    population_totals,
    prediction_powered,
    recalibrated,
    spread,
    transported,
)

MANY_ALONE = 0.01  # share of the population without neighbours that is worth a note
MAX_PAIRS = 5e8  # of labelled rows and rows of the population, beyond which none are compared
NO_RECALIBRATED = "there is no recalibrated estimate: "
PAIRS_NOTE = f"{NO_RECALIBRATED}pairs of rows are too many"
MIXED_NOTE = f"{NO_RECALIBRATED}the number is of several classes"
SOME_NOTE = f"{NO_RECALIBRATED}it would have to read every row of the population at once"
SUPPORT = ("refuse", "exclude")
# Below so many rows, or with so large a difference left, nothing is carried over to a population.
MIN_EFFECTIVE, MAX_IMBALANCE = 10.0, 0.75
LITTLE = 0.1  # effective size over the number of labelled rows that is worth a note
ALIKE, DRAWS = 0.05, 199  # of the test whether labelled rows are like the population
LOOKS_RANDOM = 0.5  # p-value above which the random-sample form is recommended
ROWS_A_FEATURE = 20  # labelled rows, below which the test sees too little for that


@one_blas_thread()  # many small products: threads would wait for each other
def estimate_tasks(
    tasks: Sequence[Task | str] | Task | str,
    population: Population | Scan,
    labelled: Sample | MulticlassSample,
    *,
    alpha: float = 0.05,
    selection: object = None,
    support: Literal["refuse", "exclude"] = "refuse",
    rng: Rng = 0,
    refusals: Literal["raise", "keep"] = "raise",
) -> TaskEstimates:
    """Estimate tasks on a population whose labels are not known: see `Task.estimate`.

    What tasks share, such as the recalibration and the look at the rows, is done once.

    Parameters
    ----------
    tasks : tasks or their text forms
        The numbers.
    population : Population or Scan
        Rows without labels, with every covariate that the tasks read; of several classes, a
        population with probabilities of the same classes.
    labelled : Sample or MulticlassSample
        Rows with labels.
    alpha : float
        Error that every interval is allowed.
    selection : array of n probabilities or str, optional
        Known probability of labelling of every labelled row, or the covariate that holds it;
        default: it is not known.
    support : {"refuse", "exclude"}
        What to do about rows of the population that are unlike every labelled row.
    rng : int, Generator or None
        Divides labelled rows for the recalibration, and permutes rows.
    refusals : {"raise", "keep"}
        What to do about a task that these rows cannot give: raise the error, or keep it in
        `refused` and give the others. Where no task can be given, the first error is raised.

    Returns
    -------
    TaskEstimates
        A sequence of one `TaskEstimate` for each task, which can be written as a page (`to_html`).

    Examples
    --------
    >>> import itrust as it
    >>> few, many = it.simulate.survey(2_000, rng=0).sample.split([0.3, 0.7], rng=0)
    >>> population = it.Population(many.p, {"age": many.column("age").values})
    >>> wanted = [it.tasks.prevalence(), it.tasks.mean("age")]
    >>> [str(found.task) for found in it.tasks.estimate_tasks(wanted, population, few)]
    ['prevalence()', 'mean(age)']
    >>> wanted = ["prevalence()", 'prevalence(region == "south")']
    >>> kept = it.tasks.estimate_tasks(wanted, population, few, refusals="keep")
    >>> print(len(kept), kept.refused[0].error)
    1 the population lacks 'region', which prevalence(region == "south") reads
    """
    checked_choice(refusals, "refusals", ("raise", "keep"))
    wanted = as_tasks(tasks)
    asked = AskedTasks(wanted, are_kept=refusals == "keep")
    if not labelled.several:
        checked_sample(labelled)
    checked_alpha(alpha)
    checked_choice(support, "support", SUPPORT)
    if not wanted:
        raise InputError("name a number to be estimated; there is none", argument="tasks")
    seed = as_seed(rng)
    for k, task in enumerate(wanted):
        with asked.about(k):
            (own,) = class_tasks([task], labelled)
            refuse_other_value(own, labelled)
            if support == "exclude":
                _refuse_exclusion(own, labelled)
            asked.left[k] = own
    if labelled.several:
        _refuse_other_classes(population, labelled)
    known = read_selection(selection, labelled)
    places, rows, notes = _places(asked, population, labelled, known, support, seed)
    notes += [*population.notes, *outcome_of(rows, next(iter(places))).notes]
    estimates: dict[int, TaskEstimate] = {}
    for name, place in places.items():
        alone = {  # numbers of one class are those of its positives
            k: task.mapped(lambda leaf: leaf.bare)
            for k, task in asked.left.items()
            if classes_of([task], rows) == (name,)
        }
        totals = place.totals(list(alone.values()), outcome_of(population, name))
        for k, task in alone.items():
            sums = None if totals is None else totals.only(task)
            with asked.about(k):
                estimates[k] = _estimate(task, place.labelled, {None: place}, sums, notes, alpha)
    for k, task in list(asked.left.items()):
        if k not in estimates:
            mixed = {name: places[name] for name in classes_of([task], rows)}
            with asked.about(k):
                estimates[k] = _estimate(task, rows, mixed, None, notes, alpha)
    given, everyone = sorted(estimates), next(iter(places.values())).everyone
    return TaskEstimates(
        tuple(replace(estimates[k], task=wanted[k]) for k in given),
        tuple(fewest_rows(asked.left[k], everyone) for k in given),
        rows,
        min((estimates[k].resemblance for k in given), key=lambda one: one.pvalue),
        tuple(column.name for column in rows.columns),
        seed,
        refused=tuple(RefusedTask(wanted[k], error) for k, error in sorted(asked.refused.items())),
    )


@dataclass(frozen=True, eq=False)
class AskedTasks:
    """Tasks by their numbers: those that are left, and errors about the others."""

    tasks: Sequence[Task]
    are_kept: bool
    left: dict[int, Task] = field(default_factory=dict)
    refused: dict[int, InputError] = field(default_factory=dict)

    @contextmanager
    def about(self, k: int) -> Iterator[None]:
        """Keep an error as that of a task; raise it unless errors are kept, and a task is left."""
        try:
            yield
        except InputError as error:
            if "task" in error.details:
                error = error.at(details={**error.details, "task": self.tasks[k]})
            if not self.are_kept:
                raise error from None
            self.refused[k] = error
            self.left.pop(k, None)
            if len(self.refused) == len(self.tasks):
                raise self.refused[0] from None


def _refuse_other_classes(population: Any, labelled: Rows) -> None:
    """Refuse a population that has not the classes of the labelled rows."""
    ours = listed(labelled.classes)
    if not getattr(population, "several", False):
        problem = (
            "labelled rows have the classes {classes}, and {argument} has one column of "
            "probabilities; give it those of every class"
        )
        raise InputError(problem, argument="population", value=population, classes=ours)
    if set(population.classes) != set(labelled.classes):
        problem = (
            "the population has the classes {theirs} and the labelled rows {ours}; they must be "
            "the same"
        )
        theirs = listed(population.classes)
        raise InputError(problem, argument="population", theirs=theirs, ours=ours)


def _refuse_exclusion(task: Task, labelled: Rows) -> None:
    if len(classes_of([task], labelled)) > 1:
        problem = (
            "{task} is of several classes, and rows that are unlike every labelled row cannot be "
            "left out for all of them at once; estimate it with {setting}, or one class at a time"
        )
        setting = Setting("support", "refuse")
        raise InputError(problem, argument="support", value="exclude", task=task, setting=setting)


@dataclass(frozen=True, eq=False)
class EstimatePlace:
    """Labelled rows of one outcome and a population, compared: what estimates of tasks share."""

    labelled: Sample
    everyone: Pilot
    rows: Pilot
    transport: Transport
    resemblance: Resemblance
    looks: Mapping[tuple[Predicate, ...], LookedAt]
    support: str
    is_part: bool

    @classmethod
    def of(
        cls,
        labelled: Sample,
        everyone: Pilot,
        counted_by: Sequence[Sequence[Leaf]],
        known: FloatArray | None,
        support: str,
        seed: int,
    ) -> EstimatePlace:
        """Compare them, for the rows that some tasks count."""
        weights = labelled.weights_or_ones
        compared = RowPair.of(labelled.points, everyone, weights)
        is_part = everyone.is_all and _are_among(compared.labelled, compared.population)
        resembling = compare_rows(
            compared, labelled.design, alpha=ALIKE, draws=DRAWS, rng=seed, is_needed=False
        )
        looks = {own: LookedAt.of(compared, own) for own in dict.fromkeys(map(_parts, counted_by))}
        rows = everyone
        if support == "exclude":
            kept = _others(looks.values(), compared.population, labelled.points)
            if not kept.any():
                problem = "no labelled row resembles any row of the population"
                raise InputError(problem, argument="population")
            rows = everyone if kept.all() else everyone.take(kept)
            compared = RowPair.of(labelled.points, rows, weights)
        corrected = cross_fitted(labelled, compared.population, seed)
        transport = Transport(labelled, compared, *corrected, known)
        return cls(labelled, everyone, rows, transport, resembling, looks, support, is_part)

    def gaps(self, leaves: Sequence[Leaf]) -> tuple[Gap, ...]:
        """What no labelled row resembles, among the rows that some leaves count."""
        return self.looks[_parts(leaves)].gaps

    @property
    def out(self) -> TaskRows:
        """The population with probabilities in place of labels."""
        compared = self.transport.compared
        points, w = compared.population, compared.weights
        return TaskRows(points, w / w.mean(), points.p)

    @property
    def excluded(self) -> int:
        """How many rows of the population do not count, told from those at hand."""
        left = 1 - len(self.rows.points) / len(self.everyone.points)
        return round(left * self.everyone.n)

    def totals(self, tasks: Sequence[Task], population: Any) -> PopulationTotals | None:
        """Sums over all rows of a population of which only some are at hand.

        Regressions have none: random rows serve them, a sample of where all come from, too.
        """
        ratios = [r for task in tasks if not has_regression(task) for r in task.ratios()]
        if self.rows.is_all or not ratios:
            return None
        counts: Callable[[Points], BoolArray] | None = None
        if self.support == "exclude":

            def counts(points: Points) -> BoolArray:
                return _others(self.looks.values(), points, self.labelled.points)

        return population_totals(list(dict.fromkeys(ratios)), population, counts)


def _others(looks: Iterable[LookedAt], points: Points, labelled: Points) -> BoolArray:
    """Mark rows of any part of a population, but those that count and resemble no labelled row."""
    alike = shared_points(labelled, points)[1]
    return np.asarray(~np.logical_or.reduce([look.lacks(alike) for look in looks]))


def _places(
    asked: AskedTasks,
    population: Any,
    labelled: Rows,
    known: FloatArray | None,
    support: str,
    seed: int,
) -> tuple[dict[Any, EstimatePlace], Rows, list[str]]:
    """Every class that tasks name, compared; labelled rows with what both share; and notes."""
    classes = classes_of(asked.left.values(), labelled)
    everyone = at_hand(outcome_of(population, classes[0]), labelled.names)
    for k, task in list(asked.left.items()):
        with asked.about(k):
            _refuse_lack(task, everyone.points, labelled)
    shared = {column.name for column in everyone.points.columns}
    left_out = [name for name in labelled.names if name not in shared]
    labelled = labelled.with_columns(tuple(c for c in labelled.columns if c.name in shared))
    notes: list[str] = []
    if left_out:
        notes.append(
            f"the population lacks {listed(left_out)}: that labelled rows were chosen by it "
            f"is neither seen nor made up for"
        )
    if everyone.dropped:
        notes.append(
            f"left out {counted(everyone.dropped, 'row')} of the population with missing values"
        )
    for k, task in list(asked.left.items()):
        with asked.about(k):
            _, (labels,) = checked_tasks(labelled, [task])
            if math.isnan(labels.value):
                problem = "no positive label counts for {task}: labelled rows say nothing about it"
                raise InputError(problem, argument="labelled", task=task)
    left, places = list(asked.left.values()), {}
    for name in classes_of(left, labelled):
        if name != classes[0]:
            everyone = at_hand(outcome_of(population, name), labelled.names)
        parts = [[leaf for leaf in task.leaves() if leaf.label == name] for task in left]
        place = EstimatePlace.of(
            outcome_of(labelled, name),
            everyone,
            [leaves for leaves in parts if leaves],
            known,
            support,
            seed,
        )
        places[name] = replace(place, resemblance=_of_class(place.resemblance, name))
    return places, labelled, notes


def _of_class(resemblance: Resemblance, name: Any) -> Resemblance:
    """What was compared, with the prediction called that of its class."""
    if name is None:
        return resemblance
    called = {PREDICTION: f"P({name})"}
    compared = tuple(
        replace(
            one,
            name=called.get(one.name, one.name),
            other=one.other and called.get(one.other, one.other),
        )
        for one in resemblance.compared
    )
    return replace(resemblance, compared=compared)


def _parts(leaves: Iterable[Leaf]) -> tuple[Predicate, ...]:
    """Which rows leaves count."""
    return tuple(dict.fromkeys(leaf.where for leaf in leaves)) or (Everywhere(),)


def _are_among(labelled: Points, population: Points) -> bool:
    """Whether every labelled row stands in the population, too, as far as can be seen.

    Rows that only look so make the interval of the random-sample form a little longer.
    """
    if len(labelled) > len(population):
        return False
    here, there = (_keys(points) for points in (labelled, population))
    return bool(np.isin(here, there).all())


def _keys(points: Points) -> FloatArray:
    """A number for each row, the same for the same prediction and covariates, (n,)."""
    rows = [points.p, *(np.nan_to_num(column.values.astype(float)) for column in points.columns)]
    steps = np.random.default_rng(0).uniform(1, 2, len(rows))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(sum(step * own for step, own in zip(steps, rows, strict=True)))


def _estimate(
    task: Task,
    labelled: Rows,
    places: Mapping[Any, EstimatePlace],
    totals: PopulationTotals | None,
    notes: Sequence[str],
    alpha: float,
) -> TaskEstimate:
    """Estimate a task on a population in all ways, and recommend one.

    Every class that it names has a place; numbers of several are not recalibrated.
    """
    first, leaves = next(iter(places.values())), leaves_of([task])
    rows, told = first.rows, LabelledTask.of(task, labelled)
    p = np.column_stack([place.transport.compared.population.p for place in places.values()])
    out = replace(first.out, stand_in=p, classes=tuple(places))
    refuse_other_levels(task, told.rows, out)
    plugin, sampling = _plugin(task, out, totals)
    if not math.isfinite(plugin):
        problem = "{task} divides by 0 on the population"
        raise InputError(problem, argument="population", task=task)
    share = labelled.n / len(rows.points) if first.is_part else 0.0
    powered, powered_error, lam = prediction_powered(
        task, told, labelled, out, plugin, sampling, share
    )
    said = [*notes, *([MIXED_NOTE] if len(places) > 1 else [])]
    said += reference_notes(references_of(task, labelled))
    if few_labels(task, labelled):
        said.append(FEW_NOTE)
    if totals is None and not rows.is_all:
        said.append(
            f"{len(rows.points):,} random rows of the population serve {task}; its intervals count "
            f"that they are no more"
        )
    bounds = _bounds(task, told.rows, out, totals)

    def way(
        value: float, error: Uncertainty, assumes: Assumption, smoothed: float | None
    ) -> Estimate:
        value = bounds.nearest(value)
        lower, upper = Located(value, error, bounds, smoothed).interval(alpha)
        return Estimate(value, error.stderr, lower, upper, assumes)

    smooth = None
    if len(places) == 1 and rows.is_all and labelled.n * rows.n <= MAX_PAIRS:
        bent, error, alone = recalibrated(task, first.labelled, out, told.law)
        smooth = way(bent, error, Assumption.SMOOTH, told.smoothed_rate)
        if alone > MANY_ALONE:
            said.append(
                f"{100 * alone:.0f} % of the population has no labelled neighbours: recalibration "
                f"leaves its probabilities as they are"
            )
    elif len(places) == 1:
        said.append(PAIRS_NOTE if rows.is_all else SOME_NOTE)
    gaps = max(
        (
            place.gaps([leaf for leaf in leaves if leaf.label == name])
            for name, place in places.items()
        ),
        key=shares_of,
    )
    transports = {name: place.transport for name, place in places.items()}
    known = first.transport.selection is not None
    moved, refused = _given(transported(task, labelled, transports, totals), first.support, gaps)
    carried = None
    if moved is not None:
        smoothed = moved.smoothed if told.smoothed_rate is not None else None
        assumes = Assumption.KNOWN if known else Assumption.SELECTED
        carried = way(moved.value, moved.error, assumes, smoothed)
        if moved.effective < LITTLE * labelled.n and known:
            said.append(
                f"weighted by one over their probabilities of labelling, {labelled.n:,} labelled "
                f"rows say as much as {moved.effective:,.0f}"
            )
        if moved.labels < FEW_LABELS and FEW_NOTE not in said:
            said.append(FEW_NOTE)
    random = Assumption.RANDOM if labelled.weights is None else Assumption.WEIGHTED
    resembling = min((place.resemblance for place in places.values()), key=lambda one: one.pvalue)
    best, reason = _recommended(first, resembling, carried, refused)
    return TaskEstimate(
        task=task,
        plugin=_plain(plugin, sampling, bounds, alpha),
        recalibrated=smooth,
        prediction_powered=way(powered, powered_error, random, told.smoothed_rate),
        transported=carried,
        labelled=way(told.labels.value, told.less(), random, told.smoothed_rate),
        best_way=best,
        reason=reason,
        resemblance=resembling,
        effective=math.nan if moved is None else moved.effective,
        trimmed=0 if moved is None else moved.trimmed,
        unbalanced=0 if moved is None else moved.unbalanced,
        gaps=gaps,
        support=first.support,
        lam=lam,
        n=labelled.n,
        size=first.everyone.n,
        excluded=first.excluded,
        alpha=float(alpha),
        notes=tuple(said),
    )


def _given(
    moved: TransportedValue | None, support: str, gaps: Sequence[Gap]
) -> tuple[TransportedValue | None, BestReason | None]:
    """The task carried over to the population, or why it is not given."""
    new = [gap for gap in gaps if gap.side in ("level", "missing")]
    if support == "refuse" and (shares_of(new) > MAX_NEW or shares_of(gaps) > MAX_UNLIKE):
        return None, BestReason.UNSUPPORTED
    if moved is None or moved.effective < MIN_EFFECTIVE:
        return None, BestReason.UNKNOWN
    if moved.worst > MAX_IMBALANCE:
        return None, BestReason.UNBALANCED
    return moved, None


def _recommended(
    place: EstimatePlace,
    resembling: Resemblance,
    carried: Estimate | None,
    refused: BestReason | None,
) -> tuple[str | None, BestReason]:
    """The estimate that is honest, and why.

    A test that does not reject shows little: the random-sample form is taken only where labelled
    rows look more alike than most random samples would, and the test had all rows to see a
    difference by, so that choosing costs no coverage.
    """
    if len(np.unique(place.labelled.y)) < 2:
        return None, BestReason.UNKNOWN
    if place.transport.selection is not None and carried is not None:
        return "transported", BestReason.KNOWN
    # Whether the test of resemblance sees what would matter: many rows, each for itself.
    (labelled, population), alone = resembling.tested, place.labelled.design.is_simple
    sharp = (
        alone
        and place.labelled.weights is None
        and place.rows.weights is None
        and population >= 2 * labelled
        and labelled >= ROWS_A_FEATURE * len(place.transport.compared.singles)
    )
    if resembling.pvalue > LOOKS_RANDOM and sharp and refused is not BestReason.UNSUPPORTED:
        return "prediction_powered", BestReason.RANDOM
    if carried is not None:
        return "transported", BestReason.DIFFERENT if resembling.differs else BestReason.SELECTED
    return None, BestReason.UNKNOWN if refused is None else refused


def read_selection(selection: object, labelled: Rows) -> FloatArray | None:
    """Known probabilities of labelling, from an array or the name of a covariate."""
    if selection is None:
        return None
    if isinstance(selection, str):
        column = labelled.column(selection)
        if column.is_category:
            problem = "{argument}: {column} holds levels, not probabilities of labelling"
            raise InputError(problem, argument="selection", column=selection)
        values = np.array(column.values, dtype=float)
    else:
        values = encode_numbers(selection, Subject("selection"))
    if values.size != labelled.n:
        problem = (
            "{argument} has {count} entries and there are {rows} labelled rows; give the "
            "probability of labelling of every labelled row"
        )
        raise InputError(problem, argument="selection", count=int(values.size), rows=labelled.n)
    wrong = ~((values > 0) & (values <= 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        problem = "{argument} must be probabilities above 0 and up to 1; {row} has {value}"
        raise InputError(problem, argument="selection", row=row, value=float(values[row]))
    if labelled.weights is not None:
        problem = (
            "labelled rows have weights and {argument} is given as well; say one of them, for "
            "weights are one over the probabilities of labelling"
        )
        raise InputError(problem, argument="selection")
    return values


def _plugin(task: Task, out: TaskRows, totals: PopulationTotals | None) -> tuple[float, float]:
    """The number with probabilities in place of labels, and its standard error."""
    if totals is None:
        linear = task.linear(out)
        return linear.value, spread(linear.slope)
    values = totals.values()
    joined = task.at(totals.ratios, values)
    return float(joined.value), totals.stderr(joined.slope, values)


def _bounds(task: Task, rows: TaskRows, out: TaskRows, totals: PopulationTotals | None) -> Bounds:
    if totals is None:
        return task.bounds(rows, out)
    known: dict[Leaf, Bounds] = {}
    for k, ratio in enumerate(totals.ratios):
        there = ratio.between(float(totals.low[k]), float(totals.high[k]))
        known[ratio] = ratio.own_bounds(rows).hull(there)
    return task.bounds_of(known)


def _refuse_lack(task: Task, points: Points, labelled: Rows) -> None:
    """Raise unless the population has every covariate that the task reads."""
    own = {column.name for column in points.columns}
    lacking = [name for name in covariates_of(task, labelled.points) if name not in own]
    if lacking:
        problem = "the population lacks {lacking}, which {task} reads"
        raise InputError(
            problem, argument="population", value=lacking, lacking=listed(lacking), task=task
        )


def _plain(value: float, stderr: float, bounds: Bounds, alpha: float) -> Estimate:
    reach = float(ndtri(1 - alpha / 2)) * stderr
    lower, upper = bounds.clipped(value - reach, value + reach)
    return Estimate(value, stderr, lower, upper, Assumption.CALIBRATED)
