"""A task on a population without labels, estimated in five ways, each with an interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    IntArray,
    Rng,
    Subject,
    as_seed,
    checked_alpha,
    checked_choice,
    counted,
    listed,
)
from itrust.balance import (
    Gap,
    LookedAt,
    Resemblance,
    RowPair,
    at_hand,
    compare_rows,
    shared_points,
    shares_of,
)
from itrust.bias import Neighbours, Weights, neighbour_kernel
from itrust.data import (
    Everywhere,
    MulticlassSample,
    Pilot,
    Points,
    Population,
    PopulationScan,
    Predicate,
    Sample,
    Scan,
    checked_sample,
    encode_numbers,
)
from itrust.engines import one_blas_thread
from itrust.kernels import LocalKernel
from itrust.tasks.bias import checked_tasks, covariates_of, positive_tasks, reference_notes
from itrust.tasks.bounds import Bounds
from itrust.tasks.collected import RefusedTask, TaskEstimates, collected
from itrust.tasks.differentials import joined_at
from itrust.tasks.estimated import (
    MAX_NEW,
    MAX_UNLIKE,
    Assumption,
    BestReason,
    Estimate,
    TaskEstimate,
)
from itrust.tasks.expressions import Leaf, Ratio, Task, TaskRows
from itrust.tasks.makers import as_tasks
from itrust.tasks.powering import Powered, prediction_powered, spread
from itrust.tasks.regressions import has_regression, references_of, refuse_other_levels
from itrust.tasks.transported import (
    PopulationTotals,
    Transport,
    TransportedValue,
    cross_fitted,
    population_totals,
)
from itrust.tasks.uncertainty import (
    FEW_LABELS,
    FEW_NOTE,
    LabelLaw,
    LabelledTask,
    Located,
    Uncertainty,
    few_labels,
    slopes_of,
)

CHUNK_ROWS, PLACES_AT_ONCE = 8_192, 4_096
# A mean over many points wants little smoothing: noise averages out, smoothing bias does not.
WIDTHS = (0.5, 1.0, 2.0, 4.0)  # of the usual ones; wider where too few rows are near
MIN_NEIGHBOURS = 4  # effective ones, below which a prediction is left as it is
MANY_ALONE = 0.01  # share of the population without neighbours that is worth a note
MAX_PAIRS = 5e8  # of labelled rows and rows of the population, beyond which none are compared
NO_RECALIBRATED = "there is no recalibrated estimate: "
PAIRS_NOTE = f"{NO_RECALIBRATED}pairs of rows are too many"
SOME_NOTE = f"{NO_RECALIBRATED}it would have to read every row of the population at once"
SUPPORT = ("refuse", "exclude")
# Below so many rows, or with so large a difference left, nothing is carried over to a population.
MIN_EFFECTIVE, MAX_IMBALANCE = 10.0, 0.75
LITTLE = 0.1  # effective size over the number of labelled rows that is worth a note
ALIKE, DRAWS = 0.05, 199  # of the test whether labelled rows are like the population
LOOKS_RANDOM = 0.5  # p-value above which the random-sample form is recommended
ROWS_A_FEATURE = 20  # labelled rows, below which the test sees too little for that


def estimate_tasks(
    tasks: Sequence[Task | str] | Task | str,
    population: Population | PopulationScan | Scan,
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
    population : Population, PopulationScan or Scan
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
    refused = Refusals(wanted, are_kept=refusals == "keep")
    with one_blas_thread():  # many small products: threads would wait for each other
        if isinstance(labelled, MulticlassSample):
            from itrust.tasks.class_population import class_estimates

            return class_estimates(
                wanted, population, labelled, alpha, selection, support, rng, refused
            )
        return _estimates_of(wanted, population, labelled, alpha, selection, support, rng, refused)


@dataclass(frozen=True, eq=False)
class Refusals:
    """What becomes of errors about single tasks."""

    tasks: Sequence[Task]
    are_kept: bool = False
    found: dict[int, InputError] = field(default_factory=dict)

    @contextmanager
    def of(self, k: int) -> Iterator[None]:
        """Keep an error as that of a task; raise it unless errors are kept."""
        try:
            yield
        except InputError as error:
            if "task" in error.details:
                error = error.at(details={**error.details, "task": self.tasks[k]})
            if not self.are_kept:
                raise error from None
            self.found.setdefault(k, error)

    def left(self, asked: Mapping[int, Task]) -> dict[int, Task]:
        """Give the tasks that are not refused."""
        return {k: task for k, task in asked.items() if k not in self.found}

    def raise_if_all(self) -> None:
        """Raise the first error where every task is refused."""
        if self.found and len(self.found) == len(self.tasks):
            raise self.found[0]

    def results(self) -> tuple[RefusedTask, ...]:
        """Give the errors as results."""
        return tuple(RefusedTask(self.tasks[k], self.found[k]) for k in sorted(self.found))


def _estimates_of(
    tasks: Sequence[Task],
    population: Population | PopulationScan | Scan,
    labelled: Sample,
    alpha: float,
    selection: object,
    support: str,
    rng: Rng,
    refused: Refusals,
) -> TaskEstimates:
    checked_sample(labelled)
    checked_alpha(alpha)
    checked_choice(support, "support", SUPPORT)
    seed = as_seed(rng)
    own: dict[int, Task] = {}
    for k, task in enumerate(tasks):
        with refused.of(k):
            (own[k],) = positive_tasks([task], labelled)
    refused.raise_if_all()
    known = read_selection(selection, labelled)
    place = prepared(own, population, labelled, known, support, seed, refused)
    found = estimated_at(place, own, population, support, alpha, refused)
    refused.raise_if_all()
    asked = [replace(one, task=tasks[k]) for k, one in found.items()]
    made = collected(asked, place.labelled, place.everyone, seed)
    return replace(made, refused=refused.results())


@dataclass(frozen=True, eq=False)
class EstimatePlace:
    """Labelled rows and a population, compared: what the estimates of all tasks share."""

    labelled: Sample
    everyone: Pilot
    rows: Pilot
    transport: Transport
    resemblance: Resemblance
    looks: Mapping[tuple[Predicate, ...], LookedAt]
    told: Mapping[Task, LabelledTask]
    counts: Callable[[Points], BoolArray] | None
    is_part: bool
    notes: tuple[str, ...]
    seed: int

    def gaps(self, task: Task) -> tuple[Gap, ...]:
        """What no labelled row resembles, among the rows that a task counts."""
        return self.looks[_parts(task)].gaps

    def setting(self, task: Task, support: str, alpha: float) -> EstimateSetting:
        """Where a task is estimated."""
        return EstimateSetting(
            self.labelled,
            self.rows,
            self.everyone,
            self.transport,
            self.resemblance,
            self.gaps(task),
            support,
            alpha,
            self.is_part,
        )

    @property
    def out(self) -> TaskRows:
        """The population with probabilities in place of labels."""
        w = np.ones(len(self.rows.points)) if self.rows.weights is None else self.rows.weights
        points = self.transport.compared.population
        return TaskRows(points, w / w.mean(), points.p)


def prepared(
    asked: Mapping[int, Task],
    population: Population | PopulationScan | Scan,
    labelled: Sample,
    known: FloatArray | None,
    support: str,
    seed: int,
    refused: Refusals,
) -> EstimatePlace:
    """Compare labelled rows with a population, for tasks of positives."""
    rows = at_hand(population, labelled.names)
    told: dict[Task, LabelledTask] = {}
    for k, task in asked.items():
        with refused.of(k):
            _refuse_lack(task, rows.points, labelled)
    shared = {column.name for column in rows.points.columns}
    left_out = [name for name in labelled.names if name not in shared]
    labelled = labelled.with_columns(tuple(c for c in labelled.columns if c.name in shared))
    lacking: list[str] = []
    if left_out:
        lacking.append(
            f"the population lacks {listed(left_out)}: that labelled rows were chosen by it "
            f"is neither seen nor made up for"
        )
    if rows.dropped:
        lacking.append(
            f"left out {counted(rows.dropped, 'row')} of the population with missing values"
        )
    for k, task in refused.left(asked).items():
        with refused.of(k):
            checked_tasks(labelled, [task])
            own = LabelledTask.of(task, labelled)
            refuse_silence(task, own)
            told[task] = own
    tasks = list(told)
    if asked and not tasks:
        raise refused.found[min(asked)]
    compared, everyone = RowPair.of(labelled.points, rows, labelled.weights_or_ones), rows
    is_part = rows.is_all and _are_among(compared.labelled, compared.population)
    resembling = compare_rows(
        compared, labelled.design, alpha=ALIKE, draws=DRAWS, rng=seed, is_needed=False
    )
    looks = _looks(tasks, compared)
    unlike = _Unlike(tuple(looks.values()), labelled.points)
    if support == "exclude":
        rows = _supported(rows, compared, unlike)
        compared = RowPair.of(labelled.points, rows, labelled.weights_or_ones)
    transport = Transport(
        labelled, compared, cross_fitted(labelled, compared.population, seed), known
    )
    return EstimatePlace(
        labelled=labelled,
        everyone=everyone,
        rows=rows,
        transport=transport,
        resemblance=resembling,
        looks=looks,
        told=told,
        counts=unlike.others if support == "exclude" else None,
        is_part=is_part,
        notes=tuple(lacking),
        seed=seed,
    )


def _parts(task: Task) -> tuple[Predicate, ...]:
    """Which rows every part of a task counts."""
    return tuple(dict.fromkeys(leaf.where for leaf in task.leaves())) or (Everywhere(),)


def _looks(tasks: Sequence[Task], compared: RowPair) -> dict[tuple[Predicate, ...], LookedAt]:
    """What of the population no labelled row resembles, for the rows that tasks count."""
    return {parts: LookedAt.of(compared, parts) for parts in dict.fromkeys(map(_parts, tasks))}


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


def estimated_at(
    place: EstimatePlace,
    asked: Mapping[int, Task],
    population: Population | PopulationScan | Scan,
    support: str,
    alpha: float,
    refused: Refusals,
) -> dict[int, TaskEstimate]:
    """Estimate tasks of positives, one by one."""
    left = refused.left(asked)
    totals = _Totals.of([] if place.rows.is_all else list(left.values()), population, place.counts)
    notes = (*place.notes, *notes_of(population), *place.labelled.notes)
    found: dict[int, TaskEstimate] = {}
    for k, task in left.items():
        setting = place.setting(task, support, alpha)
        with refused.of(k):
            found[k] = _estimate(task, place.told[task], setting, totals.only(task), notes)
    return found


def refuse_silence(task: Task, told: LabelledTask) -> None:
    """Refuse a task about which labels say nothing."""
    if math.isnan(told.labels.value):
        raise InputError(
            "no positive label counts for {task}: labelled rows say nothing about it",
            argument="labelled",
            details={"task": task},
        )


@dataclass(frozen=True, eq=False)
class _Totals:
    """Sums over all rows of a population that is too large for memory.

    Regressions have none: random rows serve them, which are a sample of where all come from, too.
    """

    ratios: list[Ratio]
    whole: PopulationTotals | None

    @classmethod
    def of(
        cls,
        tasks: Sequence[Task],
        population: Population | PopulationScan | Scan,
        counts: Callable[[Points], BoolArray] | None,
    ) -> _Totals:
        summed = [task for task in tasks if not has_regression(task)]
        ratios = list(dict.fromkeys(ratio for task in summed for ratio in task.ratios()))
        return cls(ratios, population_totals(ratios, population, counts) if summed else None)

    def only(self, task: Task) -> PopulationTotals | None:
        if self.whole is None or has_regression(task):
            return None
        return self.whole.only(self.ratios, list(dict.fromkeys(task.ratios())))


@dataclass(frozen=True, eq=False)
class EstimateSetting:
    """Where a task is estimated."""

    labelled: Sample
    rows: Pilot
    everyone: Pilot
    transport: Transport
    resemblance: Resemblance
    gaps: tuple[Gap, ...]
    support: str
    alpha: float
    is_part: bool

    @property
    def excluded(self) -> int:
        """How many rows of the population do not count, told from those at hand."""
        left = 1 - len(self.rows.points) / len(self.everyone.points)
        return round(left * self.everyone.n)


def _estimate(
    task: Task,
    told: LabelledTask,
    setting: EstimateSetting,
    totals: PopulationTotals | None,
    notes: Sequence[str],
) -> TaskEstimate:
    labelled, rows = setting.labelled, setting.rows
    compared = setting.transport.compared
    w = np.ones(len(rows.points)) if rows.weights is None else rows.weights
    out = TaskRows(compared.population, w / w.mean(), compared.population.p)
    refuse_other_levels(task, told.rows, out)
    plugin, sampling = _plugin(task, out, totals)
    refuse_no_value(task, plugin)
    powered = prediction_powered(
        task, told, labelled, out, plugin, sampling, is_part=setting.is_part
    )
    said = [*notes, *reference_notes(references_of(task, labelled))]
    if few_labels(task, labelled):
        said.append(FEW_NOTE)
    if totals is None and not rows.is_all:
        said.append(some_rows_note(task, rows))
    recalibrated = None
    if rows.is_all and labelled.n * rows.n <= MAX_PAIRS:
        bent, error, alone = _recalibrated(task, labelled, out, told.law)
        recalibrated = (bent, error)
        if alone > MANY_ALONE:
            said.append(
                f"{100 * alone:.0f} % of the population has no labelled neighbours: recalibration "
                f"leaves its probabilities as they are"
            )
    else:
        said.append(PAIRS_NOTE if rows.is_all else SOME_NOTE)
    ways = Ways(plugin, sampling, powered, recalibrated, setting.transport.value(task, totals))
    return assembled(task, told, setting, ways, _bounds(task, told.rows, out, totals), said)


def refuse_no_value(task: Task, plugin: float) -> None:
    """Refuse a task that probabilities of a population give no value."""
    if not math.isfinite(plugin):
        raise InputError(
            "{task} divides by 0 on the population", argument="population", details={"task": task}
        )


def some_rows_note(task: Task, rows: Pilot) -> str:
    """Say that random rows stand for a population."""
    return (
        f"{len(rows.points):,} random rows of the population serve {task}; its intervals count "
        f"that they are no more"
    )


@dataclass(frozen=True, eq=False)
class Ways:
    """What a task is estimated to be, way by way, before intervals are made."""

    plugin: float
    sampling: float
    powered: Powered
    recalibrated: tuple[float, Uncertainty] | None
    moved: TransportedValue | None


def assembled(
    task: Task,
    told: LabelledTask,
    setting: EstimateSetting,
    ways: Ways,
    bounds: Bounds,
    said: Sequence[str],
) -> TaskEstimate:
    """Make the intervals of all ways, and recommend one."""
    labelled, alpha, said = setting.labelled, setting.alpha, list(said)

    def way(
        value: float, error: Uncertainty, assumes: Assumption, smoothed: float | None
    ) -> Estimate:
        value = bounds.nearest(value)
        lower, upper = Located(value, error, bounds, smoothed).interval(alpha)
        return Estimate(value, error.stderr, lower, upper, assumes)

    recalibrated = None
    if ways.recalibrated is not None:
        recalibrated = way(*ways.recalibrated, Assumption.SMOOTH, told.smoothed_rate)
    moved, refused = _given(ways.moved, setting)
    transported = None
    if moved is not None:
        known = setting.transport.selection is not None
        smoothed = moved.smoothed if told.smoothed_rate is not None else None
        assumes = Assumption.KNOWN if known else Assumption.SELECTED
        transported = way(moved.value, moved.error, assumes, smoothed)
        if moved.effective < LITTLE * labelled.n and known:
            said.append(
                f"weighted by one over their probabilities of labelling, {labelled.n:,} labelled "
                f"rows say as much as {moved.effective:,.0f}"
            )
        if moved.labels < FEW_LABELS and FEW_NOTE not in said:
            said.append(FEW_NOTE)
    random = Assumption.RANDOM if labelled.weights is None else Assumption.WEIGHTED
    best, reason = _recommended(setting, transported, refused)
    powered = ways.powered
    return TaskEstimate(
        task=task,
        plugin=_plain(ways.plugin, ways.sampling, bounds, alpha),
        recalibrated=recalibrated,
        prediction_powered=way(powered.value, powered.error, random, told.smoothed_rate),
        transported=transported,
        labelled=way(told.labels.value, told.less(), random, told.smoothed_rate),
        best_way=best,
        reason=reason,
        resemblance=setting.resemblance,
        effective=math.nan if moved is None else moved.effective,
        trimmed=0 if moved is None else moved.trimmed,
        unbalanced=0 if moved is None else moved.unbalanced,
        gaps=setting.gaps,
        support=setting.support,
        lam=powered.lam,
        n=labelled.n,
        size=setting.everyone.n,
        excluded=setting.excluded,
        alpha=float(alpha),
        notes=tuple(said),
    )


def _given(
    moved: TransportedValue | None, setting: EstimateSetting
) -> tuple[TransportedValue | None, BestReason | None]:
    """The task carried over to the population, or why it is not given."""
    if setting.support == "refuse" and _is_unsupported(setting.gaps):
        return None, BestReason.UNSUPPORTED
    if moved is None or moved.effective < MIN_EFFECTIVE:
        return None, BestReason.UNKNOWN
    if moved.worst > MAX_IMBALANCE:
        return None, BestReason.UNBALANCED
    return moved, None


def _recommended(
    setting: EstimateSetting, transported: Estimate | None, refused: BestReason | None
) -> tuple[str | None, BestReason]:
    """The estimate that is honest, and why.

    A test that does not reject shows little: the random-sample form is taken only where labelled
    rows look more alike than most random samples would, and the test had all rows to see a
    difference by, so that choosing costs no coverage.
    """
    resembling = setting.resemblance
    if len(np.unique(setting.labelled.y)) < 2:
        return None, BestReason.UNKNOWN
    if setting.transport.selection is not None and transported is not None:
        return "transported", BestReason.KNOWN
    sharp = _is_sharp(resembling, setting)
    if resembling.pvalue > LOOKS_RANDOM and sharp and refused is not BestReason.UNSUPPORTED:
        return "prediction_powered", BestReason.RANDOM
    if transported is not None:
        return "transported", BestReason.DIFFERENT if resembling.differs else BestReason.SELECTED
    return None, BestReason.UNKNOWN if refused is None else refused


def _is_sharp(resembling: Resemblance, setting: EstimateSetting) -> bool:
    """Whether the test of resemblance sees what would matter: many rows, each for itself."""
    labelled, population = resembling.tested
    alone = setting.labelled.design.is_simple and setting.labelled.weights is None
    features = len(setting.transport.compared.singles)
    return (
        alone
        and setting.rows.weights is None
        and population >= 2 * labelled
        and labelled >= ROWS_A_FEATURE * features
    )


def _is_unsupported(gaps: Sequence[Gap]) -> bool:
    """Whether so much is unlike every labelled row that no estimate is given."""
    new = [gap for gap in gaps if gap.side in ("level", "missing")]
    return shares_of(new) > MAX_NEW or shares_of(gaps) > MAX_UNLIKE


def read_selection(selection: object, labelled: Sample) -> FloatArray | None:
    """Known probabilities of labelling, from an array or the name of a covariate."""
    if selection is None:
        return None
    if isinstance(selection, str):
        column = labelled.column(selection)
        if column.is_category:
            raise InputError(
                "{argument}: {column} holds levels, not probabilities of labelling",
                argument="selection",
                column=selection,
            )
        values = np.array(column.values, dtype=float)
    else:
        values = encode_numbers(selection, Subject("selection"))
    if values.size != labelled.n:
        raise InputError(
            "{argument} has {count} entries and there are {rows} labelled rows; give the "
            "probability of labelling of every labelled row",
            argument="selection",
            count=int(values.size),
            details={"rows": labelled.n},
        )
    wrong = ~((values > 0) & (values <= 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            "{argument} must be probabilities above 0 and up to 1; {row} has {value}",
            argument="selection",
            row=row,
            value=float(values[row]),
        )
    if labelled.weights is not None:
        raise InputError(
            "labelled rows have weights and {argument} is given as well; say one of them, for "
            "weights are one over the probabilities of labelling",
            argument="selection",
        )
    return values


@dataclass(frozen=True, eq=False)
class _Unlike:
    """Rows that a task counts and that no labelled row resembles."""

    looks: tuple[LookedAt, ...]
    labelled: Points

    def others(self, points: Points) -> BoolArray:
        """Mark the other rows, of any part of the population."""
        alike = shared_points(self.labelled, points)[1]
        return np.asarray(~np.logical_or.reduce([look.lacks(alike) for look in self.looks]))


def _supported(rows: Pilot, compared: RowPair, unlike: _Unlike) -> Pilot:
    """The rows at hand without those that a task counts and no labelled row resembles."""
    kept = unlike.others(compared.population)
    if kept.all():
        return rows
    if not kept.any():
        raise InputError(
            "no labelled row resembles any row of the population", argument="population"
        )
    return rows.take(kept)


def _plugin(task: Task, out: TaskRows, totals: PopulationTotals | None) -> tuple[float, float]:
    """The number with probabilities in place of labels, and its standard error."""
    if totals is None:
        found = task.linear(out)
        return found.value, spread(found.influence)
    ratios, values = list(dict.fromkeys(task.ratios())), totals.values()
    value, slopes = joined_at(task, ratios, values)
    return value, totals.stderr(slopes, values)


def _bounds(task: Task, rows: TaskRows, out: TaskRows, totals: PopulationTotals | None) -> Bounds:
    if totals is None:
        return task.bounds(rows, out)
    known: dict[Leaf, Bounds] = {}
    for k, ratio in enumerate(dict.fromkeys(task.ratios())):
        there = ratio.between(float(totals.low[k]), float(totals.high[k]))
        known[ratio] = ratio.own_bounds(rows).hull(there)
    return task.bounds_of(known)


def _refuse_lack(task: Task, points: Points, labelled: Sample) -> None:
    """Raise unless the population has every covariate that the task reads."""
    own = {column.name for column in points.columns}
    lacking = [name for name in covariates_of(task, labelled.points) if name not in own]
    if lacking:
        raise InputError(
            "the population lacks {lacking}, which {task} reads",
            argument="population",
            value=lacking,
            details={"lacking": listed(lacking), "task": task},
        )


def notes_of(population: object) -> tuple[str, ...]:
    """What was done to rows of a population at the door."""
    found: tuple[str, ...] = getattr(
        population, "dropped" if isinstance(population, Population) else "notes", ()
    )
    return found


def _plain(value: float, stderr: float, bounds: Bounds, alpha: float) -> Estimate:
    reach = float(ndtri(1 - alpha / 2)) * stderr
    lower, upper = bounds.clipped(value - reach, value + reach)
    return Estimate(value, stderr, lower, upper, Assumption.CALIBRATED)


def _recalibrated(
    task: Task, labelled: Sample, out: TaskRows, law: LabelLaw
) -> tuple[float, Uncertainty, float]:
    """Plug-in of p plus local bias, its uncertainty, and the share of rows left as they are.

    Smoothing leaves some of the bias; what it leaves at the labelled rows is taken away, too
    (twicing: Stuetzle and Mittal 1979).
    """
    kernel = neighbour_kernel(labelled.points)
    there = _Smooth.of(labelled, out.points, kernel)
    value, leaning, sampling = _linearised(task, _corrected(task, out, there.bias), labelled)
    here = _Smooth.of(labelled, labelled.points, kernel)
    share = there.shares(leaning)  # of every labelled row's residual in the number
    remainder = float(share @ (labelled.residuals - here.bias))
    share = 2 * share - here.shares(share)
    noise = law.uncertainty(share * here.left_over(), np.zeros(labelled.n), share)
    # As much may be left again as was left once.
    error = noise.plus(spread(sampling)).plus(remainder)
    return value + remainder, error, float(np.mean(there.widths == 0))


def _corrected(task: Task, out: TaskRows, bias: FloatArray) -> TaskRows:
    """Probabilities plus bias; only sums count, so rows may leave [0, 1] if sums are positive."""
    moved = TaskRows(out.points, out.weights, out.stand_in + bias)
    if all(leaf.takes(moved) for leaf in task.leaves()):
        return moved
    return TaskRows(out.points, out.weights, np.clip(moved.stand_in, 0.0, 1.0))


def _linearised(
    task: Task, moved: TaskRows, labelled: Sample
) -> tuple[float, FloatArray, FloatArray]:
    """Value on the population, what its probabilities move, and the shares of its rows.

    Where noise has left next to no positives to divide by, shares are those of half as many as
    the labelled rows let expect.
    """
    leaves = list(dict.fromkeys(task.leaves()))
    labels = TaskRows.labelled(labelled)
    leaning, shares = np.zeros(len(moved.points)), np.zeros(len(moved.points))
    for leaf, slope in zip(leaves, slopes_of(task, leaves, moved), strict=True):
        held = slope * leaf.held(moved, labels)
        leaning += held * leaf.leaning(moved).influence
        shares += held * leaf.linear(moved).influence
    return task.linear(moved).value, leaning, shares


@dataclass(frozen=True, eq=False)
class _Smooth:
    """Local bias of the labelled rows at some places.

    Widths begin at half of the usual ones, and grow where nobody is near.
    """

    labelled: Sample
    points: Points
    kernel: LocalKernel
    bias: FloatArray
    mass: FloatArray
    widths: FloatArray  # 0 where nobody is near at any

    @classmethod
    def of(cls, labelled: Sample, points: Points, kernel: LocalKernel) -> _Smooth:
        bias, mass, widths = (np.zeros(len(points)) for _ in range(3))
        still_open = np.arange(len(points))
        for factor in WIDTHS:
            found = _local(labelled, points, still_open, kernel.widened(factor))
            enough = found.size >= MIN_NEIGHBOURS
            places = still_open[enough]
            bias[places], mass[places] = found.value[enough], found.mass[enough]
            widths[places] = factor
            still_open = still_open[~enough]
            if not still_open.size:
                break
        return cls(labelled, points, kernel, bias, mass, widths)

    def shares(self, slope: FloatArray) -> FloatArray:
        """Shares of the labelled rows' residuals in the sum of `slope` times local bias, (n,)."""
        slope = np.divide(slope, self.mass, out=np.zeros(slope.size), where=self.mass > 0)
        w, share = self.labelled.weights_or_ones, np.zeros(self.labelled.n)
        for factor in WIDTHS:
            chosen = np.flatnonzero(self.widths == factor)
            for some, weights in _neighbours(self.points, chosen, self.kernel.widened(factor)):
                for rows, places, block in _blocks(self.labelled, weights):
                    share[rows] += w[rows] * (slope[some[places]] @ block)
        return share

    def left_over(self) -> FloatArray:
        """Residuals less the local bias of the other rows: noise, without what is removed."""
        w, e = self.labelled.weights_or_ones, self.labelled.residuals
        own = np.divide(w, self.mass, out=np.ones(w.size), where=self.mass > 0)
        left = np.divide(e - self.bias, 1 - own, out=e.copy(), where=own < 0.5)
        return np.asarray(left)


@dataclass(frozen=True, eq=False)
class _Local:
    """Local bias at some places."""

    value: FloatArray
    mass: FloatArray
    size: FloatArray


def _local(labelled: Sample, points: Points, places: IntArray, kernel: LocalKernel) -> _Local:
    mass, lean, squares = (np.zeros(places.size) for _ in range(3))
    at = 0
    for some, weights in _neighbours(points, places, kernel):
        here = slice(at, at + some.size)
        for rows, near, block in _blocks(labelled, weights):
            w = labelled.weights_or_ones[rows]
            mass[here][near] += block @ w
            lean[here][near] += block @ (w * labelled.residuals[rows])
            squares[here][near] += block**2 @ w**2
        at += some.size
    value = np.divide(lean, mass, out=np.zeros(places.size), where=mass > 0)
    size = np.divide(mass**2, squares, out=np.zeros(places.size), where=squares > 0)
    return _Local(value, mass, size)


def _neighbours(
    points: Points, places: IntArray, kernel: LocalKernel
) -> Iterator[tuple[IntArray, Neighbours]]:
    """Some places at a time."""
    for at in range(0, places.size, PLACES_AT_ONCE):
        some = places[at : at + PLACES_AT_ONCE]
        yield some, Neighbours(points.take(some), kernel)


def _blocks(labelled: Sample, weights: Weights) -> Any:
    for first in range(0, labelled.n, CHUNK_ROWS):
        chunk = slice(first, first + CHUNK_ROWS)
        for places, rows, block in weights.tiles(labelled.points.take(chunk)):
            yield rows + first, places, block
