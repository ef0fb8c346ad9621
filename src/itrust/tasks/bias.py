"""What a model does to a task: plug-in and labels, bias with interval, p-value from redraws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import t

from itrust._core import FloatArray, InputError, Rng, counted, plain
from itrust._core import html as notebook
from itrust.bias import BEYOND_DOUBT, Redraws
from itrust.calibration import cluster_notes, normal_score, step_down, unadjusted_pvalues
from itrust.data import Chunk, Missing, Points, Sample, quoted
from itrust.nulls import RowwiseNull
from itrust.tasks.expressions import Combined, Dual, Linear, Named, Ratio, Rows, Task
from itrust.tasks.quantities import Callback

ROWS_AT_ONCE, DRAWS_AT_ONCE = 65_536, 128
FEW_LABELS = 10  # that carry an estimate
TASK_HEAD = ("task", "with labels", "with probabilities", "bias", "interval", "p", "finding")


@dataclass(frozen=True)
class TaskResult:
    """What a model does to one number.

    Attributes
    ----------
    task : Task
    plugin : float
        The estimate with probabilities in place of labels.
    from_labels : float
        The estimate from the labels of the sample.
    lower, upper : float
        Interval of the bias; for all tasks evaluated together.
    stderr : float
        Of the bias.
    unadjusted_pvalue, pvalue : float
        For "no bias for this task", alone and adjusted for all tasks evaluated together.
    covariates : names that the task depends on
    few_labels : bool
        Whether fewer than ten labels carry the estimate.
    uncovered : those among them that the audit did not judge
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
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of the task."""
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
    def finding(self) -> str:
        """What p-value, interval and materiality come to, in words."""
        wrong, size = self.pvalue <= self.alpha, self.tolerance
        least = max(self.lower, -self.upper)
        if math.isnan(self.bias):
            return "labels give no estimate"
        if size is None:
            return "biased" if wrong else "no bias shown"
        if max(-self.lower, self.upper) <= size and not self.few_labels:
            return f"within {size:g}"
        if not wrong:
            return f"no bias shown, {size:g} not excluded"
        return "biased" if least >= size else f"biased, by {size:g} or more not shown"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        kept = (
            "plugin",
            "from_labels",
            "bias",
            "lower",
            "upper",
            "stderr",
            "unadjusted_pvalue",
            "pvalue",
            "alpha",
            "n",
            "draws",
            "seed",
            "tolerance",
        )
        found: dict[str, Any] = plain(
            {
                "task": self.name,
                "finding": self.finding,
                **{name: getattr(self, name) for name in kept},
                "covariates": self.covariates,
                "few_labels": self.few_labels,
                "uncovered": self.uncovered,
                "notes": self.notes,
            }
        )
        return found

    def _html_row(self) -> tuple[str, ...]:
        return (
            self.name,
            notebook.number(self.from_labels),
            notebook.number(self.plugin),
            notebook.number(self.bias, "+.4g"),
            notebook.interval(self.lower, self.upper, "+.4g"),
            notebook.number(self.pvalue, ".3g"),
            self.finding,
        )

    def _repr_html_(self) -> str:
        sign = "bias = with labels - with probabilities; positive: the model understates it"
        return notebook.card(
            "What the model does to one number",
            notebook.table(TASK_HEAD, [self._html_row()]),
            notebook.notes([sign, *self.notes]),
        )

    def __str__(self) -> str:
        lines = [
            self.name,
            f"  with probabilities  {self.plugin:.6g}",
            f"  with labels         {self.from_labels:.6g}",
            f"  bias                {self.bias:+.4g}   ({self.lower:+.4g} to {self.upper:+.4g})",
            f"  p-value             {self.pvalue:.4g}   (H0: no bias for this task)",
            f"  depends on          {', '.join(self.covariates) or 'no covariate'}",
            "  bias = with labels - with probabilities; positive: the model understates it",
            *(f"  note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)


def evaluate_tasks(
    sample: Sample,
    tasks: Sequence[Task],
    *,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
) -> tuple[TaskResult, ...]:
    """Evaluate several tasks on the same redraws.

    P-values are adjusted for all of them, and intervals hold for all of them (Bonferroni).
    """
    redraws = Redraws.of(sample, alpha=alpha, draws=draws, rng=rng)
    null, draws, seed = redraws.null, redraws.draws, redraws.seed
    plug_ins, labels, leanings = checked_tasks(sample, tasks)
    if not tasks:
        return ()
    scores = task_scores(sample, tasks, null, draws, seed)
    own, adjusted = unadjusted_pvalues(np.abs(scores)), step_down(np.abs(scores))
    found = []
    for k, task in enumerate(tasks):
        bias = labels[k].value - plug_ins[k].value
        shares = labels[k].influence - plug_ins[k].influence
        stderr, freedom = _uncertainty(shares, leanings[k].influence, sample)
        wide = float(t.isf(alpha / (2 * len(tasks)), freedom))
        notes = list(cluster_notes(sample, null)[1:])
        if math.isnan(bias):
            notes.insert(0, "labels give no estimate: a denominator is 0")
        elif freedom < FEW_LABELS:
            notes.insert(0, "few labels carry this estimate: the interval is rough")
        notes.extend(_missing_notes(task, sample.points))
        found.append(
            TaskResult(
                task=task,
                plugin=plug_ins[k].value,
                from_labels=labels[k].value,
                lower=bias - wide * stderr,
                upper=bias + wide * stderr,
                stderr=stderr,
                unadjusted_pvalue=math.nan if math.isnan(bias) else float(own[k]),
                pvalue=math.nan if math.isnan(bias) else float(adjusted[k]),
                alpha=float(alpha),
                n=sample.n,
                draws=draws,
                seed=seed,
                covariates=covariates_of(task, sample.points),
                few_labels=freedom < FEW_LABELS,
                notes=tuple(notes),
            )
        )
    return tuple(found)


def _missing_notes(task: Task, points: Points) -> list[str]:
    """Rows that no comparison holds for."""
    said = []
    for name in sorted(task.names):
        missing = int(Missing(name).rows(points).sum())
        if missing and f"{quoted(name)} is" not in str(task):
            told = counted(missing, "row")
            said.append(f"{told} without {name}: no comparison with it holds for them")
    return said


def _uncertainty(shares: FloatArray, leaning: FloatArray, sample: Sample) -> tuple[float, float]:
    """Standard error of a bias, and how many rows or clusters carry it, less one.

    At least what labels drawn from the probabilities would have: a handful of equal labels has
    no variance of its own.
    """
    own = units_of(shares, sample)
    drawn = leaning**2 * sample.p * (1 - sample.p)
    if sample.cluster is None and drawn.sum() > np.square(own).sum():
        squares = drawn
    else:
        squares = np.square(own)
    total = float(squares.sum())
    carried = total**2 / float(np.square(squares).sum()) if total > 0 else 1.0
    correction = own.size / max(own.size - 1, 1)
    return math.sqrt(correction * total), max(carried - 1, 1.0)


def checked_tasks(
    sample: Sample, tasks: Sequence[Task]
) -> tuple[list[Linear], list[Linear], list[Linear]]:
    """Plug-in, from labels, and sensitivity to labels, of every task; refuses what cannot be."""
    w = sample.weights_or_ones
    with_p, with_y = (Rows(sample.points, w, s) for s in (sample.p, sample.y))
    for task in tasks:
        if isinstance(task, Task) and not _ratios(task):
            raise InputError(f"{task} is a number and no task; use mean, share or prevalence")
        if not isinstance(task, Task):
            raise InputError(
                f"a task is made with tasks.mean, tasks.share, tasks.prevalence or tasks.parse, "
                f"not {task!r}"
            )
    plug_ins = [task.linear(with_p) for task in tasks]
    for task, plug_in in zip(tasks, plug_ins, strict=True):
        if not math.isfinite(plug_in.value):
            raise InputError(f"{task} has no finite value when probabilities stand for labels")
    return (
        plug_ins,
        [task.linear(with_y) for task in tasks],
        [task.leaning(with_p) for task in tasks],
    )


def covariates_of(task: Task, points: Points) -> tuple[str, ...]:
    """Names in the order of the sample; a function's are those it reads."""
    names = set(task.names)
    for part in _ratios(task):
        if isinstance(part.quantity, Callback):
            names |= part.quantity.asked_by(points)
    return tuple(column.name for column in points.columns if column.name in names)


def _ratios(task: Task) -> list[Ratio]:
    if isinstance(task, Ratio):
        return [task]
    if isinstance(task, Named):
        return _ratios(task.task)
    return [*_ratios(task.left), *_ratios(task.right)] if isinstance(task, Combined) else []


def units_of(influence: FloatArray, sample: Sample) -> FloatArray:
    """Shares of rows, or summed over clusters."""
    if sample.cluster is None:
        return influence
    _, unit = np.unique(sample.cluster, return_inverse=True)
    return np.asarray(np.bincount(unit, influence), dtype=float)


def spread_of(influence: FloatArray, sample: Sample) -> float:
    """Standard error from the rows' shares; rows of a cluster are summed first."""
    shares = units_of(influence, sample)
    correction = shares.size / max(shares.size - 1, 1)
    return math.sqrt(correction * float(np.square(shares).sum()))


def task_scores(
    sample: Sample, tasks: Sequence[Task], null: RowwiseNull, draws: int, seed: int
) -> FloatArray:
    """Bias of every task in its own standard errors, data first, (k, 1 + draws).

    The bias itself is taken, F of the ratios with labels less F of those with probabilities, and
    divided by its standard error at those labels, or by that of labels drawn from the
    probabilities where it is larger; then brought to the normal scale by its skewness under the
    null, so that tasks compare.
    """
    ratios = list(dict.fromkeys(ratio for task in tasks for ratio in _ratios(task)))
    rows = Rows(sample.points, sample.weights_or_ones, sample.p)
    plug_ins = [ratio.linear(rows).value for ratio in ratios]
    lean = np.zeros((len(ratios), sample.n))
    below = np.zeros((len(ratios), sample.n))
    for k, ratio in enumerate(ratios):
        lean[k], below[k] = ratio.parts_of_bias(rows, plug_ins[k])
    sums, squares, masses = along(sample, lean, below, null, draws, seed)
    scores = np.zeros((len(tasks), 1 + draws))
    v = sample.p * (1 - sample.p)
    expected = (lean * v) @ lean.T
    for k, task in enumerate(tasks):
        labelled = np.array([ratio.among_positives for ratio in ratios])[:, None]
        mass = np.where(labelled & (masses > 0), masses, _denominators(ratios, rows)[:, None])
        leaves = {ratio: j for j, ratio in enumerate(ratios)}
        moved = task.dual(
            [
                Dual(plug_ins[j] + sums[j] / mass[j], _unit(len(ratios), j, 1 + draws))
                for j in range(len(ratios))
            ],
            leaves,
        )
        start = task.dual(
            [Dual(np.array([plug_ins[j]]), _unit(len(ratios), j, 1)) for j in range(len(ratios))],
            leaves,
        )
        slope = moved.slope / mass
        drawn = np.einsum("jb,jlb,lb->b", slope, squares, slope)
        null_variance = np.einsum("jb,jl,lb->b", slope, expected, slope)
        at_null = (start.slope[:, 0] / _denominators(ratios, rows)) @ lean
        third = float(at_null**3 @ (v * (1 - 2 * sample.p)))
        second = float(at_null**2 @ v)
        skewness = third / second**1.5 if second > 0 and sample.cluster is None else 0.0
        scale = drawn if sample.cluster is not None else np.maximum(drawn, null_variance)
        bias = np.nan_to_num(moved.value - start.value[0])
        known = scale > 0
        z = np.where(known, bias / np.sqrt(np.where(known, scale, 1.0)), 0.0)
        scores[k] = normal_score(np.nan_to_num(z), np.array(skewness))
        if second <= 0 and abs(bias[0]) > 0:  # labels that were called impossible
            scores[k] = 0.0
            scores[k, 0] = BEYOND_DOUBT
    return scores


def _unit(size: int, position: int, columns: int) -> FloatArray:
    slope = np.zeros((size, columns))
    slope[position] = 1.0
    return slope


def _denominators(ratios: Sequence[Ratio], rows: Rows) -> FloatArray:
    return np.array([ratio.denominator(rows) for ratio in ratios])


def along(
    sample: Sample,
    lean: FloatArray,
    below: FloatArray,
    null: RowwiseNull,
    draws: int,
    seed: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums over rows for the data and all draws, data first.

    Of c e (k, 1 + draws); of c c' e^2 (k, k, 1 + draws), with clusters of the products of their
    sums; of h y (k, 1 + draws), with clusters the data's. Cost O(k^2 n draws); memory O(rows at
    once x draws at once).
    """
    count = len(lean)
    sums, masses = np.zeros((count, 1 + draws)), np.zeros((count, 1 + draws))
    squares = np.zeros((count, count, 1 + draws))
    pairs = [(j, k) for j in range(count) for k in range(j, count)]
    for chunk in sample.chunks(ROWS_AT_ONCE):
        here = slice(chunk.first, chunk.first + chunk.y.size)
        c, h = lean[:, here], below[:, here]
        products = np.array([c[j] * c[k] for j, k in pairs])
        for columns, e in _residuals(chunk, null, draws, seed):
            sums[:, columns] += c @ e
            masses[:, columns] += h @ (e + chunk.p[:, None])
            for (j, k), part in zip(pairs, products @ e**2, strict=True):
                squares[j, k, columns] += part
                if j != k:
                    squares[k, j, columns] += part
    if sample.cluster is not None:
        units = np.array([units_of(own * sample.residuals, sample) for own in lean])
        squares[:] = (units @ units.T)[:, :, None]
        masses[:] = masses[:, :1]
    return sums, squares, masses


def _residuals(
    chunk: Chunk, null: RowwiseNull, draws: int, seed: int
) -> Iterator[tuple[slice, FloatArray]]:
    """Of the data, then of some draws at a time, with the columns they belong to."""
    yield slice(0, 1), (chunk.y - chunk.p)[:, None]
    for at in range(0, draws, DRAWS_AT_ONCE):
        block = range(at, min(at + DRAWS_AT_ONCE, draws))
        drawn = null.draw(chunk, block, seed)
        e = drawn - chunk.p[:, None] if drawn.dtype == bool else drawn
        yield slice(1 + at, 1 + block.stop), np.asarray(e)


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
