"""More than two classes: probabilities (n, m), residual vectors, draws from the categorical law.

One class at a time is the paper's way: class c against the rest is a binary `Sample`. All
classes together test P(y = c | x, f) = f_c for every c at once, with labels redrawn from the
whole vector of probabilities, so the level is exact and the classes share their draws.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from itrust.adaptive import BEYOND_DOUBT, default_dictionary, findings
from itrust.columns import Column
from itrust.encoding import as_arrow, encode_numbers
from itrust.engine import Tiles
from itrust.engine.bank import ROWS_FOR_KERNELS
from itrust.engine.factor import KernelWork
from itrust.errors import InputError, counted, did_you_mean, listed, shown
from itrust.evaluate import choose_engine, finite
from itrust.intake import Missing, frame_columns, same_index
from itrust.kernels import RBF, Constant, LocalKernel, Median
from itrust.kernels.local import default_covariate_kernel
from itrust.klce import checked_draws, doubts_about
from itrust.looks import look, prepare
from itrust.multiplicity import TIE, own_pvalues, step_down
from itrust.nulls import Bernoulli, RowwiseNull
from itrust.points import Chunk
from itrust.results import Finding, story_of
from itrust.sample import Sample
from itrust.seeds import Rng, as_seed, keyed_fractions
from itrust.tails import pearson3_log_sf
from itrust.typing import AnyArray, BoolArray, FloatArray

SUM_TOLERANCE = 1e-6
SHARE_OF_ALL = 0.2  # of the attention: all classes together; the rest is for single classes
MOST_DENSE_ROWS = 4_000
MOST_TOLD = 3  # findings of a class in print


class MulticlassSample:
    """Labels of m classes, their probabilities and the covariates.

    Parameters
    ----------
    y : (n,) labels
        Names of classes, or with `classes=None` whole numbers from 0 to m - 1.
    p : (n, m) array, or mapping or frame with one column a class
        Rows sum to 1.
    x, weights, names, missing
        As for `Sample`; rows with missing covariates cannot be dropped here. Rows must be
        independent: clusters are for binary samples.
    classes : sequence, optional
        Names of the columns of p, in order; for a mapping or frame the order to take them in.
        Default: the names of a mapping or frame; else 0 to m - 1 if y has such numbers (0 or
        all of them among them), else the sorted values of y if there are m.

    Examples
    --------
    >>> import itrust as it
    >>> s = it.MulticlassSample(["a", "c", "b"], [[0.6, 0.2, 0.2], [0.1, 0.1, 0.8], [0, 1, 0]],
    ...                         [1.0, 2.0, 3.0], classes=["a", "b", "c"])
    >>> s
    <MulticlassSample: 3 rows, classes 'a', 'b', 'c', covariates 'x1'>
    >>> s.one_class("b").p
    array([0.2, 0.1, 1. ])
    """

    def __init__(
        self,
        y: object,
        p: object,
        x: object = None,
        classes: Sequence[Any] | None = None,
        *,
        weights: object = None,
        names: Sequence[str] | None = None,
        missing: Missing = "error",
    ) -> None:
        if missing == "drop":
            raise InputError(
                "missing='drop' is for Sample; leave those rows out of y, p and x before, or "
                "use missing='level'"
            )
        same_index([("y", y), ("p", p), ("weights", weights), ("x", x)])
        columns = _named_columns(p)
        if columns is None:
            self.p = _checked_probabilities(p)
            named = None if classes is None else tuple(classes)
        else:
            named = _in_order(tuple(columns), classes)
            self.p = _checked_probabilities(_stacked([columns[name] for name in named]))
        labels = _labels(y, len(self.p))
        self.classes = _classes(labels, self.p.shape[1], named)
        self.codes = _codes(labels, self.classes)
        self.p.flags.writeable = self.codes.flags.writeable = False
        self._settings = {"weights": weights, "names": names, "missing": missing}
        self._x = x
        self._first = self._binary(0)  # checks the covariates and the weights once

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.p)

    def __len__(self) -> int:
        return self.n

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""
        return self._first.names

    def _binary(self, code: int) -> Sample:
        settings: dict[str, Any] = self._settings
        return Sample(self.codes == code, self.p[:, code], self._x, **settings)

    def one_class(self, name: Any) -> Sample:
        """One class against the rest, as a binary sample."""
        if name not in self.classes:
            hint = did_you_mean(str(name), [str(c) for c in self.classes])
            raise InputError(f"there is no class {name!r}; {hint}")
        return self._binary(self.classes.index(name))

    @cached_property
    def impossible(self) -> int:
        """Number of rows whose label the model gave probability 0."""
        return int(np.count_nonzero(self.p[np.arange(self.n), self.codes] == 0))

    @property
    def most_frequent(self) -> Any:
        """The class with the most labels."""
        return self.classes[int(np.bincount(self.codes, minlength=len(self.classes)).argmax())]

    @property
    def notes(self) -> tuple[str, ...]:
        """What an attentive colleague would say about the covariates."""
        return tuple(remark for column in self._first.columns for remark in column.remarks())

    def __repr__(self) -> str:
        on = listed(self.names) or "none"
        return (
            f"<MulticlassSample: {self.n:,} rows, classes {listed(self.classes)}, covariates {on}>"
        )


def _named_columns(p: object) -> dict[Any, object] | None:
    """Columns by name for a mapping or a frame, None for an array."""
    if isinstance(p, Mapping):
        return dict(p)
    return dict(frame_columns(p)) if hasattr(p, "columns") else None


def _in_order(names: tuple[Any, ...], classes: Sequence[Any] | None) -> tuple[Any, ...]:
    if classes is None:
        return names
    wanted = tuple(classes)
    if set(wanted) != set(names) or len(wanted) != len(names):
        raise InputError(
            f"classes must be the names of the columns of p in some order, {listed(names)}, not "
            f"{listed(wanted)}"
        )
    return wanted


def _stacked(columns: list[object]) -> FloatArray:
    read = [encode_numbers(column, f"p, column {k}") for k, column in enumerate(columns)]
    if len({values.size for values in read}) > 1:
        sizes = listed([values.size for values in read])
        raise InputError(f"the columns of p must have the same number of rows, not {sizes}")
    return np.column_stack(read)


def _labels(y: object, n: int) -> list[Any]:
    labels: list[Any] = as_arrow(y, "label").to_pylist()
    if len(labels) != n:
        raise InputError(
            f"y must have one label for each of the {n:,} rows of p, but it has {len(labels):,}"
        )
    if None in labels:
        raise InputError(f"label is missing in row {labels.index(None)}; drop such rows first")
    return labels


def _checked_probabilities(p: object) -> FloatArray:
    try:
        matrix = np.array(p, dtype=float)
    except (TypeError, ValueError):
        raise InputError("p must be a matrix of numbers, one column a class") from None
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise InputError(
            f"p must have one row a label and one column a class, at least two, not shape "
            f"{matrix.shape}"
        )
    if len(matrix) < 2:
        raise InputError(f"a sample needs at least 2 rows; this one has {len(matrix)}")
    wrong = ~((matrix >= 0) & (matrix <= 1))
    if wrong.any():
        row, column = (int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
        raise InputError(
            f"prob must lie in [0, 1]; row {row}, column {column} has {matrix[row, column]:g}"
        )
    sums = matrix.sum(axis=1)
    off = np.abs(sums - 1) > SUM_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise InputError(
            f"the probabilities of a row must sum to 1; those of row {row} sum to {sums[row]:.6g} "
            f"({counted(int(off.sum()), 'row')} in all)"
        )
    return matrix


def _classes(labels: list[Any], m: int, named: tuple[Any, ...] | None) -> tuple[Any, ...]:
    if named is not None:
        if len(named) != m or len(set(named)) != m:
            raise InputError(
                f"classes must name the {m} columns of p, each once, not {listed(named)}"
            )
        return named
    found = set(labels)
    whole = all(isinstance(label, int) for label in found)
    if whole and found <= set(range(m)) and (0 in found or len(found) == m):
        return tuple(range(m))
    if len(found) == m and len({type(label) for label in found}) == 1:
        return tuple(sorted(found))
    raise InputError(
        f"y has {counted(len(found), 'value')} ({listed(sorted(found, key=str))}) and p has {m} "
        f"columns; pass classes=[...] in the order of the columns"
    )


def _codes(labels: list[Any], classes: tuple[Any, ...]) -> AnyArray:
    position = {name: code for code, name in enumerate(classes)}
    by_text = {str(name): code for name, code in position.items()}
    codes = np.array(
        [position.get(label, by_text.get(str(label), -1)) for label in labels], dtype=np.int64
    )
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(
            f"row {row} has the label {shown(labels[row])}, which is none of the classes "
            f"{listed(classes)}"
        )
    return codes


@dataclass(frozen=True, eq=False)
class Categorical(RowwiseNull):
    """Redraw the class of every row from its probabilities; says whether it is a given one.

    Draw b of row i is one uniform number for all classes, so exactly one of them is drawn.
    """

    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)
    exact: ClassVar[bool] = True
    meaning: ClassVar[str] = "classes redrawn from their probabilities"

    @classmethod
    def of(cls, p: FloatArray) -> list[Categorical]:
        """One for each class."""
        edges = np.cumsum(p, axis=1) / p.sum(axis=1, keepdims=True)
        edges = np.column_stack([np.zeros(len(p)), edges])
        edges[:, -1] = 1.0
        # A last class of probability 0 must not catch what rounding leaves below 1.
        for column in range(p.shape[1] - 1, 0, -1):
            edges[:, column] = np.where(p[:, column:].sum(axis=1) == 0, 1.0, edges[:, column])
        return [cls(edges[:, k], edges[:, k + 1]) for k in range(p.shape[1])]

    def draw(self, chunk: Chunk, draws: range, seed: int) -> BoolArray:
        """Whether the class was drawn, (n, len(draws))."""
        rows = np.arange(chunk.rows.start, chunk.rows.stop)
        uniform = keyed_fractions(seed, rows[:, None], np.arange(draws.start, draws.stop))
        low, high = (
            edge[chunk.rows.start : chunk.rows.stop, None] for edge in (self.low, self.high)
        )
        return np.asarray((uniform >= low) & (uniform < high))

    def to_dict(self) -> dict[str, Any]:
        """Name and whether it is exact."""
        return {"null": "Categorical", "exact": True}


@dataclass(frozen=True)
class ClassResult:
    """What one class shows against the rest.

    Attributes
    ----------
    name : the class; "all together" for the form over all classes
    positives : int
    statistic : float
        KLCE^2 of the default kernel.
    own_pvalue, pvalue : float
        If this had been the only one; adjusted for all classes (step-down max-T).
    findings : what the dictionary shows, the largest scores first
    """

    name: Any
    positives: int
    statistic: float
    own_pvalue: float
    pvalue: float
    findings: tuple[Finding, ...]

    def story(self, level: float = 0.05) -> tuple[Finding, ...]:
        """What is wrong with this class, once each; adjusted for the places of all classes."""
        return story_of(self.findings, level)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        name = self.name.item() if isinstance(self.name, np.generic) else self.name
        return {**vars(self), "name": name, "findings": [f.to_dict() for f in self.findings[:10]]}


@dataclass(frozen=True, eq=False, repr=False)
class MulticlassResult:
    """Outcome of `multiclass_test`.

    Attributes
    ----------
    statistic : float
        Sum over classes of KLCE^2 with one kernel on all probabilities and covariates.
    null_sd : float
        Its standard deviation if the model is right: the root of 2 sum over i != j of
        P_ij^2 tr(S_i S_j) over the sum of pair weights, S = diag(f) - ff'.
    score, null_distribution
        The combined score of the data and of every draw, which the p-value compares.
    together : ClassResult
        The form over all classes.
    classes : one for each class
    """

    statistic: float
    null_sd: float
    score: float
    null_distribution: FloatArray
    together: ClassResult
    classes: tuple[ClassResult, ...]
    n: int
    names: tuple[str, ...]
    draws: int
    seed: int
    impossible: int
    elapsed: float
    doubts: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def pvalue(self) -> float:
        """(1 + draws at least as large) / (1 + draws)."""
        tie = TIE * max(abs(self.score), float(np.abs(self.null_distribution).max()))
        return (1 + int((self.null_distribution >= self.score - tie).sum())) / (1 + self.draws)

    def to_dict(self) -> dict[str, Any]:
        """All facts, ready for JSON."""
        return {
            "statistic": self.statistic,
            "null_sd": self.null_sd,
            "pvalue": self.pvalue,
            "score": self.score,
            "together": self.together.to_dict(),
            "classes": [result.to_dict() for result in self.classes],
            "n": self.n,
            "on": list(self.names),
            "draws": self.draws,
            "seed": self.seed,
            "impossible": self.impossible,
            "elapsed": self.elapsed,
            "alarms": list(self.doubts),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return f"<MulticlassResult: p {self.pvalue:.4g}, n {self.n:,}>"

    def __str__(self) -> str:
        width = max(len("all together"), *(len(str(c.name)) for c in self.classes))
        title = "Are the class probabilities right given the covariates?"
        kind = "exact if rows are independent, see !" if self.doubts else "exact"
        made = f"{kind}; {self.draws:,} draws, seed {self.seed}, {self.elapsed:.2g} s"
        lines = [
            f"{title}   H0: P(y = c | x, p) = p_c for every c",
            "",
            f"  {self.n:,} rows, p-value {self.pvalue:.4g}   ({made})",
            "",
            f"  {'class':<{width}}  {'rows':>8}  {'KLCE^2':>10}  {'p adjusted':>10}",
            *(
                f"  {c.name!s:<{width}}  {c.positives:>8,}  {c.statistic:>10.3g}  {c.pvalue:>10.3g}"
                for c in (self.together, *self.classes)
            ),
        ]
        told = [(c.name, finding) for c in self.classes for finding in c.story()[:MOST_TOLD]]
        lines.extend(["", "  what is wrong"] if told else [])
        lines.extend(f"  {name}: {finding.pvalue:.3g}  {finding}" for name, finding in told)
        if self.impossible:
            lines.append(
                f"  ! {counted(self.impossible, 'row')} with a label that the model called "
                f"impossible: that alone refutes the null"
            )
        lines.extend(f"  ! {doubt}" for doubt in self.doubts)
        lines.extend(f"  note: {note}" for note in self.notes)
        return "\n".join(lines)


def multiclass_test(
    sample: MulticlassSample,
    *,
    draws: int = 999,
    rng: Rng = None,
) -> MulticlassResult:
    """Test all classes at once: each against the rest by its dictionary, and all together.

    Labels are redrawn from the categorical law of each row, the same draws for every class.

    Parameters
    ----------
    sample : MulticlassSample
    draws : int
    rng : int, Generator or None

    Examples
    --------
    >>> import numpy as np, itrust as it
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=600)
    >>> truth = np.column_stack([np.exp(x), np.exp(-x), np.ones(600)])
    >>> truth /= truth.sum(axis=1, keepdims=True)
    >>> y = [rng.choice(3, p=row) for row in truth]
    >>> right = it.multiclass_test(it.MulticlassSample(y, truth, x), draws=199, rng=0)
    >>> wrong = it.multiclass_test(it.MulticlassSample(y, truth[:, ::-1], x), draws=199, rng=0)
    >>> right.pvalue > 0.05 > wrong.pvalue
    True
    """
    if not isinstance(sample, MulticlassSample):
        raise InputError(
            f"expected an itrust.MulticlassSample, not a {type(sample).__name__}; make one with "
            f"MulticlassSample(y, p, x) where p has one column a class"
        )
    begun = time.perf_counter()
    draws, seed = checked_draws(draws), as_seed(rng)
    doubts = doubts_about(sample.one_class(sample.most_frequent), Bernoulli())
    redraws = Categorical.of(sample.p)
    binary = [sample.one_class(name) for name in sample.classes]
    looked = [
        look(prepare(s, default_dictionary(s), redraw, draws, "auto"), redraw, draws, seed)
        for s, redraw in zip(binary, redraws, strict=True)
    ]
    form, null_sd, skewness = _all_together(sample, binary, redraws, draws, seed)
    tail = -pearson3_log_sf(form / null_sd, np.array(skewness)) if null_sd > 0 else 0 * form
    share = (1 - SHARE_OF_ALL) / len(binary)
    scores = np.vstack(
        [tail + np.log(SHARE_OF_ALL), *(looks.combined + np.log(share) for looks in looked)]
    )
    adjusted, own = step_down(scores), own_pvalues(scores)
    combined = scores.max(axis=0)
    if sample.impossible:  # no draw has such a label
        combined[0] = max(float(combined.max()), 0.0) + BEYOND_DOUBT
    # Findings are adjusted for the places of all classes, which share their draws.
    places = step_down(
        np.vstack([scores[:1], *(looks.scores + np.log(share) for looks in looked)])
    )[1:]
    sizes = np.cumsum([0, *(len(looks.entries) for looks in looked)])
    statistic = finite(form)
    classes = tuple(
        ClassResult(
            name=name,
            positives=int(s.y.sum()),
            statistic=float(looks.statistic[0]),
            own_pvalue=float(own[k]),
            pvalue=float(adjusted[k]),
            findings=findings(looks, places[sizes[k - 1] : sizes[k]]),
        )
        for k, (name, s, looks) in enumerate(
            zip(sample.classes, binary, looked, strict=True), start=1
        )
    )
    together = ClassResult(
        "all together", sample.n, float(statistic[0]), float(own[0]), float(adjusted[0]), ()
    )
    return MulticlassResult(
        statistic=float(statistic[0]),
        null_sd=null_sd,
        score=float(combined[0]),
        null_distribution=combined[1:],
        together=together,
        classes=classes,
        n=sample.n,
        names=sample.names,
        draws=draws,
        seed=seed,
        impossible=sample.impossible,
        elapsed=time.perf_counter() - begun,
        doubts=doubts,
        notes=sample.notes,
    )


def _all_together(
    sample: MulticlassSample,
    binary: list[Sample],
    redraws: list[Categorical],
    draws: int,
    seed: int,
) -> tuple[FloatArray, float, float]:
    """Sum over classes of KLCE^2 for the data and all draws, its null sd and skewness."""
    kernel, wide = _joint(sample, binary)
    chosen = choose_engine(wide[0], kernel, redraws[0], draws, "auto", most_rows_for_tiles=8_000)
    total = np.zeros(1 + draws)
    for s, redraw in zip(wide, redraws, strict=True):
        if isinstance(chosen, Tiles):
            residuals = np.empty((s.n, 1 + draws))
            residuals[:, 0] = s.residuals
            redraw.fill(residuals[:, 1:], s, range(draws), seed)
            residuals *= s.weights_or_ones[:, None]
            total += chosen.forms(kernel.gram(s.points), residuals) / s.pair_weight
        else:
            factor, plan = chosen
            totals = factor.run(s, [KernelWork(plan)], redraw, draws, seed)
            total += totals.parts[0].over_pairs() / totals.tally.pair_weight
    return total, *_null_law(sample, wide[0], kernel)


def _joint(sample: MulticlassSample, binary: list[Sample]) -> tuple[LocalKernel, list[Sample]]:
    """The default kernel on all probabilities and covariates, and samples that have them all."""
    used = set(sample.names)
    columns = []
    for k in range(sample.p.shape[1]):
        name = f"p{k}"
        while name in used:
            name = f"{name}_"
        used.add(name)
        columns.append(Column(name, "number", sample.p[:, k].copy()))
    names = [column.name for column in columns]
    on_p = RBF(Median(float(np.sqrt(len(names))))).on(*names)
    x = default_covariate_kernel(binary[0].columns)
    everything = (*columns, *binary[0].columns)
    kernel = LocalKernel(Constant(), on_p * x if binary[0].columns else on_p)
    wide = [s.with_columns(everything) for s in binary]
    return kernel.resolve(wide[0].points), wide


def _null_law(sample: MulticlassSample, wide: Sample, kernel: LocalKernel) -> tuple[float, float]:
    """Standard deviation (closed form) and skewness of the sum over classes under the null.

    On all rows up to 4,000; beyond that on some, which changes with the root of 1 / pairs.
    """
    step = max(1, -(-sample.n // MOST_DENSE_ROWS))
    rows = np.arange(0, sample.n, step)
    some = wide.take(rows)
    f, w2 = sample.p[rows], np.square(some.weights_or_ones)
    everything = slice(None)
    gram = kernel.gram(some.points).block(everything, everything)
    np.fill_diagonal(gram, 0.0)
    pairs = np.square(gram) * trace_of_products(f) * w2 * w2[:, None]
    variance = 2 * float(pairs.sum())
    few = slice(0, ROWS_FOR_KERNELS)
    triangles = 0.0
    for v in (f * (1 - f))[few].T:  # classes apart: enough for the length of a tail
        root = np.sqrt(v * w2[few])
        a = gram[few, few] * root * root[:, None]
        triangles += 8 * float(np.sum(a * (a @ a)))
    share = (some.n / len(gram[few])) ** 3
    skewness = max(triangles * share / variance**1.5, 0.0) if variance > 0 else 0.0
    scale = some.pair_weight * np.sqrt(wide.n * (wide.n - 1) / (some.n * (some.n - 1)))
    return float(np.sqrt(variance)) / scale, skewness


def trace_of_products(f: FloatArray) -> FloatArray:
    """tr(S_i S_j) for all pairs of rows of f (n, m), with S = diag(f) - ff', (n, n)."""
    inner, squared = f @ f.T, np.square(f) @ f.T
    return np.asarray(inner - squared - squared.T + np.square(inner))
