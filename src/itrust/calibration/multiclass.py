"""More than two classes: probabilities (n, m), residual vectors, draws from the categorical law.

One class at a time is the paper's way: class c against the rest is a binary `Sample`. All
classes together test P(y = c | x, f) = f_c for every c at once, with labels redrawn from the
whole vector of probabilities, so the size of the test is exact and the classes share their draws.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    Rng,
    as_seed,
    keyed_fractions,
)
from itrust.calibration.adaptive import BEYOND_DOUBT
from itrust.calibration.attribution import attributed
from itrust.calibration.dictionary.default import default_dictionary_for
from itrust.calibration.evidence import findings_of
from itrust.calibration.inputs import checked_draws, null_warnings
from itrust.calibration.multiclass_results import ClassResult, MulticlassResult
from itrust.calibration.multiplicity import step_down, unadjusted_pvalues
from itrust.calibration.pipeline import Scores, score
from itrust.calibration.prepared import Prepared, prepare, prepare_one
from itrust.calibration.results import Finding
from itrust.calibration.tails import pearson3_log_sf
from itrust.data import Chunk, Column, MulticlassSample, Sample
from itrust.engines import Auto, Purpose
from itrust.kernels import RBF, Constant, LocalKernel, Median, default_covariate_kernel
from itrust.nulls import Bernoulli, RowwiseNull

SHARE_OF_ALL = 0.2  # of the weight: all classes together; the rest is for single classes
MAX_DENSE_ROWS = 4_000
MAX_ROWS_OF_SKEWNESS = 512


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
        Labels, probabilities of every class, and covariates.
    draws : int
        Number of draws; the smallest possible p-value is 1 / (1 + draws).
    rng : int, Generator or None
        Same seed, same p-value.

    Returns
    -------
    MulticlassResult
        P-values of all classes together and of each class, adjusted for all.

    Examples
    --------
    >>> import numpy as np, itrust as it
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=600)
    >>> truth = np.column_stack([np.exp(x), np.exp(-x), np.ones(600)])
    >>> truth /= truth.sum(axis=1, keepdims=True)
    >>> y = [rng.choice(3, p=row) for row in truth]
    >>> good = it.multiclass_test(it.MulticlassSample(y, truth, x), draws=199, rng=0)
    >>> bad = it.multiclass_test(it.MulticlassSample(y, truth[:, ::-1], x), draws=199, rng=0)
    >>> good.pvalue > 0.05 > bad.pvalue
    True
    """
    if not isinstance(sample, MulticlassSample):
        raise InputError(
            "expected an itrust.MulticlassSample, not a {kind}; make one with MulticlassSample(y, "
            "p, x) where p has one column a class",
            argument="sample",
            value=sample,
            details={"kind": type(sample).__name__},
        )
    begun = time.perf_counter()
    draws, seed = checked_draws(draws), as_seed(rng)
    warnings = null_warnings(sample.one_class(sample.most_frequent), Bernoulli())
    redraws = Categorical.of(sample.p)
    binary = [sample.one_class(name) for name in sample.classes]
    prepared = [_prepared(s, redraw, draws) for s, redraw in zip(binary, redraws, strict=True)]
    scored = [score(p, r, draws, seed) for p, r in zip(prepared, redraws, strict=True)]
    form, null_sd, skewness = _all_together(sample, binary, redraws, draws, seed)
    tail = -pearson3_log_sf(form / null_sd, np.array(skewness)) if null_sd > 0 else 0 * form
    log_share = np.log((1 - SHARE_OF_ALL) / len(binary))
    scores = np.vstack(
        [tail + np.log(SHARE_OF_ALL), *(found.combined + log_share for found in scored)]
    )
    combined = scores.max(axis=0)
    if sample.impossible:  # no draw has such a label
        combined[0] = max(float(combined.max()), 0.0) + BEYOND_DOUBT
    findings = _class_findings(prepared, scored, scores, seed)
    together, classes = _class_results(sample, binary, scored, scores, form, findings)
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
        assumption_warnings=warnings,
        notes=sample.notes,
    )


def _prepared(sample: Sample, redraw: Categorical, draws: int) -> Prepared:
    """One class against the rest by its dictionary."""
    engine = Auto()
    survey = engine.survey(sample)
    dictionary = default_dictionary_for(survey.points)
    default = LocalKernel().resolve(survey.pilot.points)
    return prepare(survey, engine, dictionary, redraw, draws, default)


def _class_findings(
    prepared: list[Prepared], scored: list[Scores], scores: FloatArray, seed: int
) -> list[tuple[Finding, ...]]:
    """Findings of every class, adjusted for the checks of all, which share their draws."""
    log_share = np.log((1 - SHARE_OF_ALL) / len(scored))
    table = np.vstack([scores[:1], *(found.log_tails for found in scored)])
    shift = np.concatenate([np.zeros(1), *(found.log_weights + log_share for found in scored)])
    checks = step_down(table, shift)[1:]
    parts = np.split(checks, np.cumsum([len(found.entries) for found in scored])[:-1])
    return [
        attributed(findings_of(found, own), ready, found, seed)
        for ready, found, own in zip(prepared, scored, parts, strict=True)
    ]


def _class_results(
    sample: MulticlassSample,
    binary: list[Sample],
    scored: list[Scores],
    scores: FloatArray,
    form: FloatArray,
    findings: list[tuple[Finding, ...]],
) -> tuple[ClassResult, tuple[ClassResult, ...]]:
    """All classes together and each by itself, with p-values adjusted for all."""
    adjusted, own = step_down(scores), unadjusted_pvalues(scores)
    classes = tuple(
        ClassResult(
            name=name,
            positives=int(s.y.sum()),
            statistic=float(found.statistic[0]),
            unadjusted_pvalue=float(own[k]),
            pvalue=float(adjusted[k]),
            findings=shown,
        )
        for k, (name, s, found, shown) in enumerate(
            zip(sample.classes, binary, scored, findings, strict=True), start=1
        )
    )
    together = ClassResult(
        "all together", sample.n, float(form[0]), float(own[0]), float(adjusted[0])
    )
    return together, classes


def _all_together(
    sample: MulticlassSample,
    binary: list[Sample],
    redraws: list[Categorical],
    draws: int,
    seed: int,
) -> tuple[FloatArray, float, float]:
    """Sum over classes of KLCE^2 for the data and all draws, its null sd and skewness."""
    kernel, wide = _joint(sample, binary)
    purpose = Purpose(redraws[0], draws, among_many=True)
    engine = Auto().settled(Auto().survey(wide[0]), kernel, purpose)
    total = np.zeros(1 + draws)
    for s, redraw in zip(wide, redraws, strict=True):
        prepared = prepare_one(engine.survey(s), engine, kernel, redraw, draws)
        total += score(prepared, redraw, draws, seed).statistic
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
    few = slice(0, MAX_ROWS_OF_SKEWNESS)
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
