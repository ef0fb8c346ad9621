"""More than two classes: probabilities (n, m), residual vectors, draws from the categorical law.

One class at a time is the paper's way: class c against the rest is a binary `Sample`. All
classes together test P(y = c | x, f) = f_c for every c at once, with labels redrawn from the
whole vector of probabilities, so the level is exact and the classes share their draws.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from itrust._core import BoolArray, FloatArray, InputError, Rng, as_seed, counted, keyed_fractions
from itrust.calibration.adaptive import BEYOND_DOUBT, default_dictionary, findings
from itrust.calibration.dictionary.bank import ROWS_FOR_KERNELS
from itrust.calibration.evaluate import choose_engine, evaluate
from itrust.calibration.klce import checked_draws, doubts_about
from itrust.calibration.multiplicity import TIE, step_down, unadjusted_pvalues
from itrust.calibration.pipeline import MAX_ROWS_FOR_TILES, look, prepare
from itrust.calibration.results import Finding, story_of
from itrust.calibration.tails import pearson3_log_sf
from itrust.data import Chunk, Column, MulticlassSample, Sample
from itrust.engines import Tiles
from itrust.kernels import RBF, Constant, LocalKernel, Median, default_covariate_kernel
from itrust.nulls import Bernoulli, RowwiseNull

SHARE_OF_ALL = 0.2  # of the attention: all classes together; the rest is for single classes
MAX_DENSE_ROWS = 4_000
MAX_TOLD = 3  # findings of a class in print


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
    unadjusted_pvalue, pvalue : float
        If this had been the only one; adjusted for all classes (step-down max-T).
    findings : what the dictionary shows, the largest scores first
    """

    name: Any
    positives: int
    statistic: float
    unadjusted_pvalue: float
    pvalue: float
    findings: tuple[Finding, ...]

    def story(self, alpha: float = 0.05) -> tuple[Finding, ...]:
        """What is wrong with this class, once each; adjusted for the places of all classes."""
        return story_of(self.findings, alpha)

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
        told = [(c.name, finding) for c in self.classes for finding in c.story()[:MAX_TOLD]]
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
    adjusted, own = step_down(scores), unadjusted_pvalues(scores)
    combined = scores.max(axis=0)
    if sample.impossible:  # no draw has such a label
        combined[0] = max(float(combined.max()), 0.0) + BEYOND_DOUBT
    # Findings are adjusted for the places of all classes, which share their draws.
    places = step_down(
        np.vstack([scores[:1], *(looks.scores + np.log(share) for looks in looked)])
    )[1:]
    sizes = np.cumsum([0, *(len(looks.entries) for looks in looked)])
    classes = tuple(
        ClassResult(
            name=name,
            positives=int(s.y.sum()),
            statistic=float(looks.statistic[0]),
            unadjusted_pvalue=float(own[k]),
            pvalue=float(adjusted[k]),
            findings=findings(looks, places[sizes[k - 1] : sizes[k]]),
        )
        for k, (name, s, looks) in enumerate(
            zip(sample.classes, binary, looked, strict=True), start=1
        )
    )
    together = ClassResult(
        "all together", sample.n, float(form[0]), float(own[0]), float(adjusted[0]), ()
    )
    return MulticlassResult(
        statistic=float(form[0]),
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
    chosen = choose_engine(wide[0], kernel, redraws[0], draws, "auto", MAX_ROWS_FOR_TILES)
    engine = chosen if isinstance(chosen, Tiles) else chosen[0]
    total = np.zeros(1 + draws)
    for s, redraw in zip(wide, redraws, strict=True):
        found = evaluate(s, kernel, redraw, draws, seed, engine)
        total += found.over_pairs / found.pair_weight
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
    step = max(1, -(-sample.n // MAX_DENSE_ROWS))
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
