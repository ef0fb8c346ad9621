"""Several models on the same rows: what each does, and paired differences with uncertainty."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from itrust._core import (
    FloatArray,
    InputError,
    Result,
    Rng,
    WithFacts,
    as_seed,
    checked_reach,
    counted,
    place_of,
    progress_stages,
)
from itrust.auditing.arguments import at_hand, known_names
from itrust.auditing.stages import step_words
from itrust.calibration import (
    CalibrationResult,
    MulticlassResult,
    class_losses,
    klce_test,
    multiclass_test,
    scores,
    top_label,
)
from itrust.data import MulticlassSample, Sample, design_variance
from itrust.tasks import (
    FEW_NOTE,
    LabelLaw,
    Task,
    TaskResult,
    TaskRows,
    Uncertainty,
    as_tasks,
    check_tasks,
    checked_tasks,
    evaluate_tasks,
    few_labels,
    prevalence,
    reestimated,
)


@dataclass(frozen=True, eq=False)
class ModelReport(WithFacts):
    """What was found about one of several models.

    Attributes
    ----------
    name : str
        As it was given to `compare`.
    accuracy : float
        Share of rows whose label is the one with the largest probability.
    brier : float
        Brier score; of several classes the mean of half the sum over classes of (y - p)^2.
    log_loss : float
        Mean of minus the log of the probability that the label was given; infinite if the model
        called a label impossible.
    ece, smooth_ece : float
        Calibration error with ten bins, and without bins; of several classes that of the largest
        probability.
    test : CalibrationResult or MulticlassResult
        Are the probabilities calibrated given the covariates?
    tasks : tuple of TaskResult
        What the model does to the user's numbers, in the order they were given.
    """

    name: str
    accuracy: float
    brier: float
    log_loss: float
    ece: float
    smooth_ece: float
    test: CalibrationResult | MulticlassResult
    tasks: tuple[TaskResult, ...]
    _untold = ("test",)

    def __repr__(self) -> str:
        scores = f"Brier {self.brier:.4f}, ECE {self.ece:.4f}, p {self.test.pvalue:.3g}"
        return f"<ModelReport: {self.name}, {scores}>"

    def _facts(self) -> dict[str, Any]:
        test = {"statistic": self.test.statistic, "pvalue": self.test.pvalue}
        return {**super()._facts(), **test}


@dataclass(frozen=True)
class Difference(WithFacts):
    """First model minus second, on the same rows.

    Attributes
    ----------
    what : str
        A score, or the plug-in estimate of a task.
    first, second : str
        Names of the models.
    value : float
        The difference; NaN where a score is infinite.
    lower, upper : float
        Its interval, which holds for this difference alone.
    note : str
        Why there is no difference, or why its interval is rough; else empty.
    task : Task or None
        The task whose plug-in estimate it is; None: it is a score.
    """

    what: str
    first: str
    second: str
    value: float
    lower: float
    upper: float
    note: str = ""
    task: Task | None = None
    _untold = ("task",)

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.lower > 0 or self.upper < 0


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """Outcome of `compare`.

    Attributes
    ----------
    models : tuple of ModelReport
        One for each model, in the order they were given.
    differences : tuple of Difference
        Every pair of models, every score and task; each interval holds on its own.
    alpha : float
        Of the intervals.
    n : int
        Number of rows.
    draws : int
        Number of redraws of the labels.
    seed : int
        `compare(..., rng=c.seed)` makes the comparison again.
    """

    models: tuple[ModelReport, ...]
    differences: tuple[Difference, ...]
    alpha: float
    n: int
    draws: int
    seed: int

    def __getitem__(self, name: str) -> ModelReport:
        names = [model.name for model in self.models]
        return self.models[place_of(name, names, "there is no model {value}; {guess}")]

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for model in self.models:
            row = model.to_dict()
            tasks = row.pop("tasks")
            for task in tasks:
                row[f"{task['task']}: plug-in"] = task["plugin"]
                row[f"{task['task']}: bias"] = task["bias"]
                row[f"{task['task']}: p"] = task["pvalue"]
            rows.append(row)
        return rows

    def __repr__(self) -> str:
        return f"<Comparison: {', '.join(model.name for model in self.models)}>"


def compare(
    models: Mapping[str, Sample] | Mapping[str, MulticlassSample],
    tasks: Sequence[Task | str] | Task | str = (),
    *,
    on: str | Sequence[str] | None = None,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
    progress: bool | None = None,
) -> Comparison:
    """Compare models on the same labelled rows.

    Parameters
    ----------
    models : mapping of names to samples
        Same labels, covariates and design; different probabilities. Where rows come from a design,
        the variances of the differences are the design's.
    tasks : tasks or their text forms, optional
        Numbers that you want to report, such as "mean(age)".
    on : names of covariates, optional
        What to judge the probabilities on; default: all of the samples.
    alpha : float
        Of the intervals.
    draws : int
        Number of redraws of the labels, for every model the same.
    rng : int, Generator or None
        Seed; None takes a new one, which the result names.
    progress : bool, optional
        Whether to show which model is at work, as for `audit`; default: in a terminal.

    Returns
    -------
    Comparison
        Scores, tests and tasks of each model, and paired differences.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(2_000, rng=0)
    >>> right = it.simulate.survey(2_000, rng=0, trustworthy=True)
    >>> c = it.compare({"model": town.sample, "truth": right.sample}, draws=199, rng=0)
    >>> c["model"].test.pvalue < 0.05 < c["truth"].test.pvalue
    True
    """
    if not isinstance(models, Mapping) or len(models) < 2:
        raise InputError("compare takes a mapping of at least two names to samples")
    names = [str(name) for name in models]
    samples = [at_hand(own) for own in models.values()]
    for name, sample in zip(names, samples, strict=True):
        if sample.several != samples[0].several:
            lacking = name if samples[0].several else names[0]
            raise InputError(
                f"{lacking!r} has no classes, others have; compare takes the same for all"
            )
        _refuse_other_rows(names[0], samples[0], name, sample)
    draws, seed, wanted = checked_reach(draws, alpha), as_seed(rng), as_tasks(tasks)
    if wanted:
        for sample in samples:
            check_tasks(sample, wanted, is_all=True)
    judged_on = [s if on is None else s.only(*known_names(s, on)) for s in samples]
    settings: dict[str, Any] = {"draws": draws, "rng": seed}
    reports = []
    steps = dict.fromkeys(names, 1.0)
    with progress_stages(steps, lambda name: step_words("model", [name]), progress) as begin:
        for name, s, judged in zip(names, samples, judged_on, strict=True):
            begin(name)
            test = multiclass_test if s.several else klce_test
            report = ModelReport(
                name=name,
                **_scores(s),
                test=test(judged, **settings),
                tasks=tuple(evaluate_tasks(s, wanted, alpha=alpha, **settings)) if wanted else (),
            )
            reports.append(report)
    compared = [] if samples[0].several else wanted  # plug-in estimates of classes are no pairs
    differences = tuple(
        replace(part, first=names[a], second=names[b])
        for a, b in combinations(range(len(samples)), 2)
        for part in (
            *_score_differences(samples[a], samples[b], alpha),
            *_plugin_differences(samples[a], samples[b], compared, alpha),
        )
    )
    return Comparison(tuple(reports), differences, float(alpha), samples[0].n, draws, seed)


def _scores(rows: Any) -> dict[str, float]:
    """Accuracy, losses and calibration errors; of several classes, these of the top label."""
    right = top_label(rows).y if rows.several else (rows.p > 0.5) == (rows.y == 1)
    accuracy = float(np.average(right, weights=rows.weights))
    return {"accuracy": accuracy, **scores.main_scores(rows)}


def _squares(p: FloatArray) -> FloatArray:
    """Losses of all rows for the label 0 and for the label 1, (2, n)."""
    return np.stack([np.square(p), np.square(1 - p)])


def _surprise(p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.stack([-np.log1p(-p), -np.log(p)])


LOSSES = {"Brier": _squares, "log loss": _surprise}
SCORE_NAMES = {"Brier": "brier", "log loss": "log_loss"}


def _score_differences(a: Any, b: Any, alpha: float) -> Iterator[Difference]:
    """First minus second in every score, with Student's law and a floor for rare events."""
    w = a.weights_or_ones / a.weights_or_ones.sum()
    law = None if a.several else LabelLaw.of(a, p=(a.p + b.p) / 2)
    of_classes = zip(class_losses(a), class_losses(b), strict=True) if a.several else None
    for what, loss in LOSSES.items():
        if of_classes is not None:
            seen = next(of_classes)
        else:
            one, two = loss(a.p), loss(b.p)
            seen = np.where(a.y == 1, one[1], one[0]), np.where(a.y == 1, two[1], two[0])
        impossible = [int(np.isinf(own)[w > 0].sum()) for own in seen]
        if any(impossible):
            yield Difference(what, "", "", math.nan, math.nan, math.nan, _infinite(impossible))
            continue
        if law is None:
            value, error = _mean_error(a, np.where(w > 0, seen[0] - seen[1], 0.0))
            yield _difference(what, value, error, alpha)
            continue
        with np.errstate(invalid="ignore"):  # infinite less infinite, for labels that nobody has
            value, error = loss_error(a, law, one - two)
        few = error.stderr > 0 and few_labels(prevalence(), a)
        yield replace(_difference(what, value, error, alpha), note=FEW_NOTE if few else "")


def _mean_error(rows: Any, values: FloatArray) -> tuple[float, Uncertainty]:
    """A weighted mean over rows, and how far it may be off by their design."""
    w, design = rows.weights_or_ones / rows.weights_or_ones.sum(), rows.design
    value, sets = float(w @ values), design.replicate_weights
    shares, freedom = w * (values - value), rows.n - 1.0
    if design.is_simple:
        variance = float(shares @ shares) * rows.n / freedom
    else:
        moves = None if sets is None else values @ sets / sets.sum(axis=0) - value
        variance, freedom = design_variance(design, shares, moves), float(design.freedom)
    return value, Uncertainty(math.sqrt(variance), freedom, freedom + 1)


def loss_error(sample: Sample, law: LabelLaw, losses: FloatArray) -> tuple[float, Uncertainty]:
    """A mean loss, or difference of losses, (2, n), of labelled rows, and how far it may be off.

    Labels that would be infinitely bad, which nobody has, count as 0.
    """
    if_none, if_one = np.where(np.isfinite(losses), losses, 0.0)
    w = sample.weights_or_ones / sample.weights_or_ones.sum()
    own, leaning = np.where(sample.y == 1, if_one, if_none), if_one - if_none
    value, expected = float(w @ own), if_none + law.q[:, 0] * leaning
    sets, moves = sample.design.replicate_weights, None
    if sets is not None:
        moves = own @ sets / sets.sum(axis=0) - value
    error = law.uncertainty(w * (own - value), w * (expected - w @ expected), w * leaning, moves)
    return value, error


def _infinite(impossible: Sequence[int]) -> str:
    """Which of the two models has an infinite score, and why."""
    told = [
        f"the {place} model called {counted(count, 'label')} impossible"
        for place, count in zip(("first", "second"), impossible, strict=True)
        if count
    ]
    return f"no difference, the log loss is infinite: {' and '.join(told)}"


def _plugin_differences(
    a: Sample, b: Sample, wanted: Sequence[Task], alpha: float
) -> Iterator[Difference]:
    """First minus second in the plug-in estimate of every task; no label is in it."""
    if not wanted:
        return
    law, sets = LabelLaw.of(a), a.design.replicate_weights
    plug_ins = [checked_tasks(sample, wanted)[0] for sample in (a, b)]
    for task, first, second in zip(wanted, *plug_ins, strict=True):
        shares, value = first.slope - second.slope, first.value - second.value
        moves = None
        if sets is not None:
            again = [reestimated(task, TaskRows.predicted(sample), sets) for sample in (a, b)]
            moves = again[0] - again[1] - value
        error = law.uncertainty(shares, shares, np.zeros(a.n), moves)
        yield replace(_difference(f"{task}, plug-in", value, error, alpha), task=task)


def _difference(what: str, value: float, error: Uncertainty, alpha: float) -> Difference:
    lower, upper = error.interval(value, alpha)
    return Difference(what, "", "", value, lower, upper)


def _refuse_other_rows(first: str, a: Any, name: str, b: Any) -> None:
    """Paired differences need the same rows."""
    if a.n != b.n:
        raise InputError(f"{first!r} has {a.n:,} rows and {name!r} {b.n:,}; compare takes the same")
    if a.several and a.classes != b.classes:
        raise InputError(
            f"{first!r} and {name!r} have different classes, or the same in another order; name "
            f"them with classes=[...]"
        )
    if (a.codes != b.codes).any():
        row = int(np.argmax(a.codes != b.codes))
        raise InputError(f"{first!r} and {name!r} have different labels in row {row}")
    if a.names != b.names:
        raise InputError(f"{first!r} and {name!r} have different covariates")
    for one, two in zip(a.columns, b.columns, strict=True):
        same = one.values == two.values
        if one.levels != two.levels or not (same | (one.missing & two.missing)).all():
            raise InputError(f"{first!r} and {name!r} differ in the covariate {one.name!r}")
    for what in ("weights", "cluster", "strata", "replicate_weights"):
        one, two = getattr(a.design, what), getattr(b.design, what)
        if (one is None) != (two is None) or (one is not None and not np.array_equal(one, two)):
            raise InputError(f"{first!r} and {name!r} have different {what.replace('_', ' ')}")
    if a.design.replication != b.design.replication:
        raise InputError(f"{first!r} and {name!r} have replicate weights of different methods")
