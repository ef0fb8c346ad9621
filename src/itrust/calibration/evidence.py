"""From scores to findings: p-values of every check, which checks show the same, and whom about.

A check of a smooth function, of two covariates or of everything says that the bias varies, and not
where. The rows are cut into coarse parts along what the check reads; the two parts that stand out
most are named, from 20,000 rows at most. They describe these rows, and carry no p-value of their
own.

Which covariate carries a bias, beside others that may be wrong, too:
redraws say how a check behaves if the whole model is calibrated. A finding is about one covariate
while others may be off, so it has to stand two trials: redraws, and flips of the signs of the
observed residuals, which keep whatever variance the errors of others have brought in. Covariates
that go together share the blame: once one of them is told, another counts by what it adds, which
is its features less what functions of those told explain of them (and these functions times
p (1 - p), for errors on the scale of logits). One pass over the rows gives all that is needed; the
rest is algebra of a few hundred features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from itrust._core import BoolArray, FloatArray, IntArray
from itrust.calibration.assumptions import spread_rows
from itrust.calibration.dictionary.bank import Bank, WithCells, rows_within_memory
from itrust.calibration.dictionary.entries import Entry, Shape
from itrust.calibration.dictionary.scan import CellsPartial, Grid, RegionLaw
from itrust.calibration.pipeline import Prepared, Scores, correlation_of_draws, pvalues_of
from itrust.calibration.results import JOINT_FAMILIES, Finding, is_region
from itrust.calibration.tails import pearson3_log_sf, step_down, unadjusted_pvalues
from itrust.data import Everywhere, Predicate, Rows, Sample, all_of, column_of, cut_of
from itrust.engines import Drawing, Products, Summing, Work, columns_at_once
from itrust.nulls import Rademacher
from itrust.terms import ColumnName, Features, Inside, Wave

MAX_COMPARED = 80  # checks, from the top, that are compared with each other
ALIKE = 0.5  # correlation of draws
ALIKE_ON_THE_SAME = 0.1  # of checks on the same covariates
SHOWS = 0.2  # p-value up to which a check counts among those that show the same
NEARLY = 0.5  # of the largest score: a plainer check that reaches it stands for the others
ALONE, CROSSED = 5, 3  # parts of a number that is cut by itself, and together with another
MAX_DESCRIBED = 12  # findings
MIN_ROWS = 20
CLEAR = 1.0  # standard errors
PLAIN = (Shape.LEVEL, Shape.GROUP, Shape.PART, Shape.REGION, Shape.IMPOSSIBLE, Shape.KERNEL)


def findings_of(
    scores: Scores, pvalues: tuple[FloatArray, FloatArray] | None = None
) -> tuple[Finding, ...]:
    """What every check shows, the largest score first; p-values are those of `pvalues_of`."""
    adjusted, alone = pvalues_of([scores]) if pvalues is None else pvalues
    order = np.argsort(-scores.observed, kind="stable")
    shows = order.size > 0 and float(adjusted.min()) <= SHOWS
    alike = _alike(scores, order[:MAX_COMPARED], adjusted) if shows else {}
    return tuple(
        finding_of(scores, k, float(alone[k]), float(adjusted[k]), alike.get(k, ()))
        for k in order.tolist()
    )


def finding_of(
    scores: Scores, k: int, alone: float, adjusted: float, alike: tuple[str, ...] = ()
) -> Finding:
    """What one check shows."""
    entry = scores.entries[k]
    return Finding(
        **entry.about,
        family=entry.family,
        direction=int(np.sign(scores.standardised[k, 0]))
        if scores.is_single[k]
        else entry.direction,
        weight=float(scores.weights[k]),
        score=float(scores.observed[k]),
        unadjusted_pvalue=alone,
        pvalue=adjusted,
        alike=alike,
    )


def impossible_labels(score: float, draws: int) -> Finding:
    """Labels that the model gave probability 0, which refute it whatever else is found."""
    return Finding(
        name="impossible labels",
        family="impossible",
        covariates=(),
        where=Everywhere(),
        shape=Shape.IMPOSSIBLE,
        direction=0,
        weight=0.0,
        score=score,
        unadjusted_pvalue=1 / (1 + draws),
        pvalue=1 / (1 + draws),
    )


def _alike(scores: Scores, order: IntArray, adjusted: FloatArray) -> dict[int, tuple[str, ...]]:
    """For the check that stands for its group, the others whose draws go with the group's.

    Groups form around the checks with the largest scores; of each group the plainest check
    stands for all that is nearly as striking as its first. Checks of everything together form
    groups among themselves, so that they hide nothing plainer; checks without a common covariate
    do not group: whether the one says anything beside the other is judged by `attributed`.
    """
    entries = [scores.entries[k] for k in order]
    correlation = correlation_of_draws(scores, order)
    needed = np.array([[_needed(a, b) for b in entries] for a in entries])
    free = np.ones(order.size, dtype=bool)
    speakers = {}
    for first, lead in enumerate(order):
        if not free[first]:
            continue
        together = free & (correlation[first] >= needed[first])
        together[first] = True
        able = [
            at
            for at in np.flatnonzero(together).tolist()
            if scores.log_tails[order[at], 0] >= NEARLY * scores.log_tails[lead, 0]
            and adjusted[order[at]] <= adjusted[lead]
        ]
        speaker = min(able, key=lambda at: entries[at].rank or np.inf)
        # What has nothing in common with this check stands for itself, later.
        together &= correlation[speaker] >= needed[speaker]
        together[[first, speaker]] = True
        free &= ~together
        others = [
            at
            for at in np.flatnonzero(together).tolist()
            if at != speaker and adjusted[order[at]] <= SHOWS
        ]
        speakers[int(order[speaker])] = tuple(entries[at].name for at in others)
    return speakers


def _needed(a: Entry, b: Entry) -> float:
    """Correlation of draws at which two checks are taken to show the same."""
    if (a.family in JOINT_FAMILIES) != (b.family in JOINT_FAMILIES) or a.crossed or b.crossed:
        return np.inf
    first, second = set(a.covariates), set(b.covariates)
    if (first or second) and not first & second:
        return np.inf
    same = bool(first) and first == second
    return ALIKE_ON_THE_SAME if same else ALIKE


def described(findings: Sequence[Finding], sample: Sample | None) -> tuple[Finding, ...]:
    """Name the extremes of findings that do not name their rows by themselves."""
    if sample is None:
        return tuple(findings)
    told = [f.name for f in findings if f.pvalue <= SHOWS and f.shape not in PLAIN]
    chosen = {*told[:MAX_DESCRIBED]}
    if not chosen:
        return tuple(findings)
    weighted = np.flatnonzero(sample.weights_or_ones > 0)
    some = sample.take(weighted[spread_rows(weighted.size)])
    return tuple(_described(f, some) if f.name in chosen else f for f in findings)


def _described(finding: Finding, sample: Sample) -> Finding:
    inside = finding.where.rows(sample.points)
    if finding.shape is Shape.QUADRATIC and not _at_both_ends(finding, sample.take(inside)):
        finding = replace(finding, shape=Shape.SMOOTH)
    z = {part: _z(sample, inside & part.rows(sample.points)) for part in _parts(finding, sample)}
    high, low = max(z, key=lambda k: z[k], default=None), min(z, key=lambda k: z[k], default=None)
    return replace(
        finding,
        too_low=high if high is not None and z[high] > CLEAR else None,
        too_high=low if low is not None and z[low] < -CLEAR else None,
    )


def _at_both_ends(finding: Finding, sample: Sample) -> bool:
    """Whether the bias is higher, or lower, in both outer parts than between them."""
    names = finding.covariates or ("prediction",)
    parts = [own.rows(sample.points) for own in cut_of(column_of(sample.points, names[-1]), ALONE)]
    if len(parts) < 3:
        return False
    middle = np.any(parts[1:-1], axis=0)
    w, e = sample.weights_or_ones, sample.residuals
    variance = np.square(w) * sample.p * (1 - sample.p)
    for end in (parts[0], parts[-1]):
        (low, at_end), (mid, between) = ((w[own].sum(), own) for own in (end, middle))
        if not (low > 0 and mid > 0):
            return False
        gap = float(w[at_end] @ e[at_end] / low - w[between] @ e[between] / mid)
        error = variance[at_end].sum() / low**2 + variance[between].sum() / mid**2
        if finding.direction * gap <= CLEAR * error**0.5:
            return False
    return True


def _parts(finding: Finding, sample: Sample) -> list[Predicate]:
    """Coarse parts along what the check reads: of one column, of two crossed, or of any column."""
    names = finding.covariates or ("prediction",)
    if finding.shape in (Shape.FULL, Shape.JOINT):
        return [part for name in names for part in cut_of(column_of(sample.points, name), ALONE)]
    if finding.shape in (Shape.PAIR, Shape.PRODUCT):
        both = names if len(names) > 1 else (*names, "prediction")
        cuts = [cut_of(column_of(sample.points, name), CROSSED) for name in both[:2]]
        return [all_of(cell) for cell in product(*cuts)]
    return list(cut_of(column_of(sample.points, names[-1]), ALONE))


def _z(sample: Sample, rows: BoolArray) -> float:
    """The sum of residuals in units of its standard deviation; 0 where there are few rows."""
    if np.count_nonzero(rows) < MIN_ROWS:
        return 0.0
    w, p = sample.weights_or_ones[rows], sample.p[rows]
    variance = float(np.sum(w**2 * p * (1 - p)))
    return float(w @ sample.residuals[rows]) / variance**0.5 if variance > 0 else 0.0


JUDGED = 0.2  # findings with larger p-values from redraws keep these
MAX_JUDGED = 60  # findings, from the top
MAX_TOLD = 12  # findings that others are judged beside
TELLING = 0.05  # where covariates can be told apart
GO_TOGETHER = 0.5  # correlation of draws: a covariate is then not judged beside the prediction
SHARING = 0.3  # and of checks that share the blame
MAX_WAVE = 4  # finer functions of a covariate than this are not taken out of others
RIDGE = 1e-6  # of standardised features, so that rounding decides nothing
PREDICTION = "the prediction"


def attributed(
    findings: Sequence[Finding], prepared: Prepared, scores: Scores, seed: int
) -> tuple[Finding, ...]:
    """Judge the findings that redraws call striking once more, each beside those told before.

    A p-value becomes the larger of that from redraws and that from sign flips (step-down max-T on
    the scale of the scores). Findings whose p-value exceeds .2 keep it, as do checks of everything
    together and checks that are kernels.
    """
    number = {entry.name: k for k, entry in enumerate(scores.entries)}
    hidden = {name for finding in findings for name in finding.alike}
    judged = [
        _Candidate(number[f.name], f, tuple(number[name] for name in (f.name, *f.alike)))
        for f in findings
        if f.pvalue <= JUDGED and f.name not in hidden and _can_be_judged(prepared.bank, number, f)
    ][:MAX_JUDGED]
    regions = [f for f in findings if is_region(f) and f.pvalue <= JUDGED]
    if not (judged or regions):
        return tuple(findings)
    numbers = [c.number for c in judged], [number[f.name] for f in regions]
    flips = _Flips.of(prepared, *numbers, scores.statistic.size - 1, seed)
    trial = _Trial(flips, scores, judged, beside_prediction=False).run()
    if trial.prediction_stands:
        strict = _Trial(flips, scores, judged, beside_prediction=True).run()
        trial = strict if strict.prediction_is_all else trial
    beside = trial.regions(dict(zip(numbers[1], regions, strict=True)))
    return tuple(beside.get(finding.name) or trial.verdict(finding) for finding in findings)


def _can_be_judged(bank: Bank, number: dict[str, int], finding: Finding) -> bool:
    """Whether a check is about some covariates, and is made of features."""
    k = number.get(finding.name, len(bank.entries))
    if k >= len(bank.entries) or finding.family in JOINT_FAMILIES:
        return False
    return bool(np.all(bank.features_of(k)[0] < len(bank.features)))


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A finding that is judged: the number of its check, and those of all it stands for."""

    number: int
    finding: Finding
    group: tuple[int, ...]

    @property
    def covariates(self) -> frozenset[str]:
        return frozenset(self.finding.covariates)

    @property
    def columns(self) -> frozenset[str]:
        """All that it reads, the prediction among them."""
        reads = self.is_about_the_prediction or self.finding.family == "with prediction"
        return self.covariates | ({PREDICTION} if reads else set())

    @property
    def is_about_the_prediction(self) -> bool:
        return not self.covariates and self.finding.family != "overall"


@dataclass(frozen=True, eq=False)
class _Flips(Work):
    """Sums along 1, some features and these times p (1 - p), for the data and flips of signs.

    `products` are those of the features with each other; both are made by a pass over the rows.
    """

    bank: Bank
    chosen: IntArray
    twice: IntArray
    functions: dict[ColumnName, list[int]]
    grids: tuple[Grid, ...]
    unit: float
    outcome: int | None = 0
    forms: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    products: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    cells: Any = ()

    @classmethod
    def of(
        cls, prepared: Prepared, entries: Sequence[int], scans: Sequence[int], draws: int, seed: int
    ) -> _Flips:
        """Flip the signs of the residuals and sum along the features, or cells, of some entries."""
        bank, engine, survey = prepared.bank, prepared.engine, prepared.survey
        columns = {name for k in entries for name in bank.entries[k].covariates}
        grids = tuple(bank.grids[k - len(bank.entries)] for k in scans)
        functions = _functions(bank, {None, *columns})
        own = {int(at) for k in entries for at in bank.features_of(k)[0]}
        chosen = np.array(sorted(own.union(*functions.values())), dtype=np.int64)
        plain = np.array(sorted({at for some in functions.values() for at in some}), dtype=np.int64)
        twice = np.searchsorted(chosen, plain)
        work = cls(bank, chosen, twice, functions, grids, bank.unit, bank.outcome)
        size = columns_at_once(survey, [], work.width)
        sums: list[Any] = []
        for at in range(0, draws, size):
            drawing = Drawing(Rademacher(), range(at, min(at + size, draws)), seed)
            sums += engine.run(survey, [], drawing, [work]).works
        first, products, cells = sums[0]
        parts = [first[:, :1], *(own[0][:, 1:] for own in sums)]
        if grids:
            (flipped, moments), times = cells
            flipped = np.concatenate(
                [flipped[:, :1], *(own[2][0][0][:, 1:] for own in sums)], axis=1
            )
            cells = flipped, moments, times
        return replace(work, forms=np.concatenate(parts, axis=1), products=products, cells=cells)

    @property
    def max_rows(self) -> int:
        return rows_within_memory(8 * self.width)

    @property
    def width(self) -> int:
        return 2 + self.chosen.size + self.twice.size + sum(own.cells for own in self.grids) // 2

    @cached_property
    def _features(self) -> Features:
        return self.bank.features.take(self.chosen)

    def begin(self, chunk: Rows, weights: FloatArray, columns: int) -> Summing:
        dtype = self.bank.dtype
        values = self._features.matrix(chunk.points, dtype)
        variances, ones = (chunk.p * (1 - chunk.p)).astype(dtype), np.ones((1, chunk.n), dtype)
        matrix = np.concatenate([ones, values, variances[None], values[self.twice] * variances])
        weighted = matrix * weights.astype(matrix.dtype)
        products = (weighted @ matrix.T).astype(np.float64)
        forms, none = np.zeros((len(matrix), columns)), np.empty((chunk.n, 0), dtype=matrix.dtype)
        target = Products(weighted.T, none, chunk.p), forms, forms[:0]
        if not self.grids:
            return Summing([target], lambda: (forms, products, ()))
        cells = CellsPartial(self.grids, chunk, weights, columns)
        times = cells.counted @ weighted.T.astype(np.float64)
        return WithCells([target], lambda: (forms, products, (cells.finished(), times)), cells)

    @cached_property
    def _sizes(self) -> FloatArray:
        diagonal = np.diag(self.products)
        return np.asarray(np.sqrt(np.where(diagonal > 0, diagonal, 1.0)))

    def places(self, features: Iterable[int]) -> list[int]:
        """Where some features of the bank stand among the sums."""
        return [1 + int(at) for at in np.searchsorted(self.chosen, list(features))]

    def functions_of(self, column: ColumnName) -> list[int]:
        """Where the functions of a column stand, and these times p (1 - p)."""
        plain = self.places(self.functions.get(column, []))
        first = 2 + self.chosen.size  # of those times p (1 - p)
        times = np.searchsorted(self.twice, np.array(plain, dtype=np.int64) - 1)
        return [*plain, *(first + int(at) for at in times)]

    def beside(self, own: list[int], others: Iterable[int]) -> FloatArray:
        """Sums along features less what others explain of them, (r, 1 + draws)."""
        return self._less(
            self.forms[own], lambda others: self.products[np.ix_(others, own)], others
        )

    def _less(
        self, sums: FloatArray, across: Callable[[list[int]], FloatArray], others: Iterable[int]
    ) -> FloatArray:
        level = [0, 1 + self.chosen.size]
        others = list(dict.fromkeys([*level, *others]))
        sizes, products = self._sizes, self.products
        within = products[np.ix_(others, others)] / np.outer(sizes[others], sizes[others])
        within += RIDGE * np.eye(len(others))
        taken = np.linalg.solve(within, across(others) / sizes[others, None])
        return np.asarray(sums - (taken / sizes[others, None]).T @ self.forms[others])

    def regions(self, others: Iterable[int]) -> Iterator[tuple[FloatArray, Predicate, int]]:
        """Scores of each scan's regions beside others, the region that shows most and its sign."""
        cells, (_, _, squares), times = self.cells
        left = self._less(cells, lambda others: times[:, others].T, others)
        ends = np.cumsum([0, *(grid.cells for grid in self.grids)])
        for grid, own in zip(self.grids, pairwise(ends.tolist()), strict=True):
            some, variance = left[slice(*own)], squares[slice(*own)]
            region, z = grid.best(some[:, 0], variance)
            found = grid.scores(some.astype(np.float32), np.zeros(len(some)), variance)
            yield found, grid.where(region), int(np.sign(z))

    def log_tails(self, k: int, others: Iterable[int]) -> FloatArray:
        """Minus the log of an entry's tail among flips, beside others, (1 + draws,)."""
        features, scales = self.bank.features_of(k)
        own = self.places(features)
        is_level = not any(self.bank.features.products[at] for at in features)
        sums = self.forms[own] if is_level else self.beside(own, others)
        return log_tails(sums * scales[:, None])


def _functions(bank: Bank, columns: Iterable[ColumnName]) -> dict[ColumnName, list[int]]:
    """Plain functions of each column among the features: lines, curves, broad waves, levels."""
    found: dict[ColumnName, list[int]] = {column: [] for column in columns}
    for at, feature in enumerate(bank.features.products):
        if len(feature) == 1 and feature[0].column in found:
            (term,) = feature
            fine = isinstance(term, Inside) or (isinstance(term, Wave) and term.order > MAX_WAVE)
            if not fine:
                found[term.column].append(at)
    return found


def log_tails(sums: FloatArray) -> FloatArray:
    """Minus the log of the tail of the squared length, by the spread of the flips."""
    spread = sums[:, 1:] @ sums[:, 1:].T / max(sums.shape[1] - 1, 1)
    if np.trace(spread) <= 0:
        return np.zeros(sums.shape[1])
    if len(sums) == 1:
        z = np.abs(sums[0]) / np.sqrt(spread[0, 0])
        return np.asarray(-log_ndtr(-z) - np.log(2))
    squared = spread @ spread
    variance = 2 * float(np.trace(squared))
    skewness = 8 * float(np.trace(squared @ spread)) / variance**1.5
    values = (np.square(sums).sum(axis=0) - np.trace(spread)) / np.sqrt(variance)
    return np.asarray(-pearson3_log_sf(values, np.array(skewness)))


@dataclass(eq=False)
class _Trial:
    """Candidates are told one after the other, the most striking beside those told first.

    The prediction is what covariates have in common, so each of several guilty ones may lose to
    it alone. Covariates are judged beside it where it holds beside them and explains all that they
    show, as it does if a model is too sure of itself; else not.
    """

    flips: _Flips
    scores: Scores
    candidates: list[_Candidate]
    beside_prediction: bool
    told: list[_Candidate] = field(default_factory=list)
    pvalues: dict[str, float] = field(default_factory=dict)
    shared: dict[str, tuple[str, ...]] = field(default_factory=dict)
    rivals: dict[str, list[_Candidate]] = field(default_factory=dict)

    def verdict(self, finding: Finding) -> Finding:
        """A finding with what the trial has shown."""
        pvalue = self.pvalues.get(finding.name, finding.pvalue)
        return replace(finding, pvalue=pvalue, shared_with=self.shared.get(finding.name, ()))

    @property
    def prediction_stands(self) -> bool:
        """Whether the prediction was told and holds beside every covariate that was."""
        shown = [c for c in self.told if self.pvalues[c.finding.name] <= TELLING]
        first = next((c for c in shown if c.is_about_the_prediction), None)
        if first is None:
            return False
        # Of all at once the prediction may be a function.
        return all(
            self._is_striking(first, self._functions(c, frozenset())) for c in shown if c.covariates
        )

    @property
    def prediction_is_all(self) -> bool:
        """Whether no covariate was told beside the prediction, except those that go with it."""
        at = next((k for k, c in enumerate(self.told) if c.is_about_the_prediction), len(self.told))
        return not any(
            self.pvalues[c.finding.name] <= TELLING and not self._go_together(c, self.told[at])
            for c in self.told[at + 1 :]
            if c.covariates
        )

    def run(self) -> _Trial:
        """Tell all that can be told."""
        left, last = list(self.candidates), 0.0
        while left and last <= JUDGED:
            flipped = step_down(np.array([self._scored(candidate) for candidate in left]))
            for candidate, p in zip(left, flipped.tolist(), strict=True):
                self.pvalues[candidate.finding.name] = max(candidate.finding.pvalue, last, p)
            best = min(left, key=self._turn)
            last = self.pvalues[best.finding.name]
            left.remove(best)
            self.rivals[best.finding.name] = [
                c for c in left if self.pvalues[c.finding.name] <= TELLING
            ]
            self.told.append(best)
            if len(self.told) == MAX_TOLD:
                break
            if best.covariates and best.finding.family != "with prediction":
                # What reads it and more will not be told.
                left = [c for c in left if not best.covariates < c.covariates]
        self._share()
        return self

    def regions(self, findings: dict[int, Finding]) -> dict[str, Finding]:
        """Findings of scans beside all that was told; the first stands for the others.

        So a region is told where nothing simpler explains it, of one column before two or three.
        """
        if not findings:
            return {}
        shown = [c for c in self.told if self.pvalues[c.finding.name] <= TELLING]
        beside = [at for c in shown for at in self._functions(c, frozenset())]
        scanned, places, signs = zip(*self.flips.regions(beside), strict=True)
        weights = np.log(self.scores.weights[list(findings)])
        law = RegionLaw.of(np.array(scanned), weights, independent=False)
        scores = law.tails(np.array(scanned)) + weights[:, None]
        judged = [
            # Of what is explained, the region stays that with the largest bias of all.
            replace(f, pvalue=max(f.pvalue, p), where=where, direction=sign)
            if p <= JUDGED
            else replace(f, pvalue=max(f.pvalue, p))
            for f, p, where, sign in zip(
                findings.values(), step_down(scores).tolist(), places, signs, strict=True
            )
        ]
        columns = [len(grid.entry.crossed) for grid in self.flips.grids]
        order = sorted(
            range(len(judged)), key=lambda k: (judged[k].pvalue, columns[k], -scores[k, 0])
        )
        lead, *others = (judged[k] for k in order)
        lead = replace(lead, alike=tuple(f.name for f in others))
        return {f.name: f for f in (lead, *others)}

    def _turn(self, candidate: _Candidate) -> tuple[float, float]:
        """The smallest p-value first; of equal ones, the most striking among redraws."""
        striking = float(self.scores.observed[list(candidate.group)].max())
        return self.pvalues[candidate.finding.name], -striking

    def _scored(self, candidate: _Candidate) -> FloatArray:
        tails = self.flips.log_tails(candidate.number, self._beside(candidate))
        return np.asarray(tails + np.log(self.scores.weights[candidate.number]))

    def _beside(self, candidate: _Candidate, told: Sequence[_Candidate] | None = None) -> list[int]:
        """Functions that are taken out of a candidate's features: those of what was told."""
        found: list[int] = []
        for other in self.told if told is None else told:
            if not self._go_together(candidate, other):
                found.extend(self._functions(other, candidate.covariates))
        return found

    def _functions(self, told: _Candidate, spared: frozenset[str]) -> Iterator[int]:
        """All functions of a finding's covariates but those that are spared, and its own features.

        A cell of two categories that was told is so taken out of their levels, too.
        """
        if told.is_about_the_prediction:
            yield from self.flips.functions_of(None)
        for name in sorted(told.covariates - spared):
            yield from self.flips.functions_of(name)
        if not told.covariates <= spared:
            yield from self.flips.places(self.flips.bank.features_of(told.number)[0])

    def _go_together(self, a: _Candidate, b: _Candidate) -> bool:
        """Whether one is about the prediction and the other about what it nearly is."""
        if not (a.covariates or b.covariates):
            return True
        if b.is_about_the_prediction and not self.beside_prediction:
            return True
        if a.is_about_the_prediction == b.is_about_the_prediction:
            return False
        return self._correlation(a, b) >= GO_TOGETHER

    def _correlation(self, a: _Candidate, b: _Candidate) -> float:
        """The largest correlation of draws between what two findings stand for."""
        correlation = correlation_of_draws(self.scores, np.array([*a.group, *b.group]))
        return float(correlation[: len(a.group), len(a.group) :].max())

    def _share(self) -> None:
        """Find what cannot be told apart from what was told."""
        for at, lead in enumerate(self.told):
            if self.pvalues[lead.finding.name] > TELLING:
                continue
            before = self.told[:at]
            beside = self._beside(lead, before)
            rivals = [
                c
                for c in self.rivals[lead.finding.name]
                if self.pvalues[c.finding.name] > TELLING and (c.covariates or lead.covariates)
            ]
            rivals += [c for c in before if self._go_together(lead, c) and lead.covariates]
            rivals = [
                c
                for c in rivals
                if not c.columns & lead.columns and self._correlation(lead, c) >= SHARING
            ]
            names = [
                name
                for rival in rivals
                if not self._is_striking(lead, [*beside, *self._functions(rival, lead.covariates)])
                for name in sorted(rival.covariates) or [PREDICTION]
            ]
            if names:
                self.shared[lead.finding.name] = tuple(dict.fromkeys(names))

    def _is_striking(self, candidate: _Candidate, others: Iterable[int]) -> bool:
        """Whether a check shows something beside others, as if it were the only one."""
        tails = self.flips.log_tails(candidate.number, others)
        return float(unadjusted_pvalues(tails[None])[0]) <= TELLING
