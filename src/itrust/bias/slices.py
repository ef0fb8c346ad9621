"""Readable rules where the model is miscalibrated: found on some rows, confirmed on others.

The search proves nothing by itself. Every covariate, and the prediction, is cut into a few parts.
For each pair of them, sums over all cells give those of every rectangle at once; the most striking
rectangle, simple rules preferred, is taken, narrowed by a further condition where that pays, and
its bias subtracted before the next look.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from itrust._core import (
    BoolArray,
    FloatArray,
    IntArray,
    Rng,
    as_seed,
    checked_count,
    smallest_tickets,
    tickets,
)
from itrust.bias.averages import Question, Redraws
from itrust.bias.bands import Averages, judged
from itrust.bias.groups import PartBias, PartTable
from itrust.bias.weights import NOBODY, Members
from itrust.data import (
    MAX_VALUES,
    OTHER_NAME,
    PREDICTION,
    Between,
    Column,
    Missing,
    Predicate,
    Sample,
    Scan,
    all_of,
    level_of,
)
from itrust.engines import EngineChoice
from itrust.terms import SEARCHED_LEVELS, frequent_values

PARTS = 16
MAX_CROSSED = 40  # covariates, the most striking by themselves, that are taken together
MIN_ROWS = 5_000  # to search in, however many covariates there are
THRIFT = 0.6  # how much more a complex rule has to show
FAINT = 3.0  # standard errors below which a rule is not worth a test
FAINT_PART = 1.5  # and below which it is not worth a further condition
BEAM = 12  # rules that are given a further condition
MAX_CELLS = 3e9  # looked at in all; above, some rows stand for all
WORTH_DIGITS = 6  # so that rounding of sums does not choose between rules for the same rows
MIN_UNITS = 4  # rows or clusters that can be halved
ALIKE = 0.5  # rows in common, of rows in either
ALIKE_SHARE = 0.3  # of the level, spread evenly
HALVES = 2
FOUND_SHARE = 0.8  # of a slice's error, on the side of the bias that was found
SOME_CROSSED = (
    f"too many covariates to search all rules: those with several conditions take the "
    f"{MAX_CROSSED} covariates that show most by themselves"
)


@dataclass(frozen=True, repr=False)
class Slice(PartBias):
    """A rule, and how far the model is off where it holds.

    Rates, interval and p-values are of the rows that the rule was not found on, and hold for all
    slices together. Both are two-sided, with four fifths of the error that a slice is allowed on
    the side of the bias that was found: an interval excludes 0 where the slice is confirmed.

    Attributes
    ----------
    judged_on : int
        Number of the rows that the rule was judged on.
    found_bias : float
        Bias on the rows of the search; exaggerated, for it was looked for.
    """

    judged_on: int
    found_bias: float

    @property
    def impact(self) -> float:
        """Share of the weight times the bias: what the slice does to an overall rate."""
        return self.share * self.bias

    @property
    def rule(self) -> str:
        """The rule in reading words, such as "age >= 70 and region = south"."""
        return str(self.where)

    def _facts(self) -> Mapping[str, Any]:
        return {"rule": self.rule, **super()._facts(), "impact": self.impact}


@dataclass(frozen=True, eq=False, repr=False)
class SliceTable(PartTable[Slice]):
    """Outcome of `bias_slices`: confirmed slices first, by rows times bias.

    Attributes
    ----------
    slices : tuple of Slice
        What was found, confirmed or not.
    n : int
        Number of rows of the sample.
    min_rows : int
        Rows of the search that a slice had to hold.
    """

    slices: tuple[Slice, ...]
    n: int
    min_rows: int

    @property
    def parts(self) -> tuple[Slice, ...]:
        """The slices."""
        return self.slices

    @property
    def confirmed(self) -> tuple[Slice, ...]:
        """Slices whose adjusted p-value is at most `alpha`."""
        return tuple(part for part in self.slices if part.pvalue <= self.alpha)

    def _facts(self) -> Mapping[str, Any]:
        return {
            "slices": [part.to_dict() for part in self.slices],
            "confirmed": len(self.confirmed),
            "n": self.n,
            "min_rows": self.min_rows,
            **super()._facts(),
        }

    def __repr__(self) -> str:
        return f"<SliceTable: {len(self.confirmed)} of {len(self)} slices confirmed>"


def bias_slices(
    sample: Sample | Scan,
    *,
    max_conditions: int = 3,
    max_slices: int = 8,
    min_rows: int = 50,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
) -> SliceTable:
    """Find rules under which the model is miscalibrated, and confirm them on rows not searched.

    A rule joins up to `max_conditions` of: a level, a range of a number or date, a missing value, a
    range of the prediction. Rows are halved at random; each half is searched, and what it shows is
    judged on the other at half of the level. Of more than 100,000 rows that are independent, as
    many random ones are searched, and all others judge what was found. Given the rows of the search
    that is exact: if the model is calibrated on every row, any slice is confirmed in at most
    `alpha` of samples.

    Parameters
    ----------
    sample : Sample or Scan
        Rows to search and judge.
    max_conditions : int
        Most conditions that a rule may join.
    max_slices : int
        Most slices to look for in each half.
    min_rows : int
        Rows of the search that a slice must hold, effective ones if there are weights.
    alpha : float
        Chance that any slice of a calibrated model is confirmed.
    draws : int
        How often labels are redrawn.
    rng : int, Generator or None
        Seed of halves and draws; None takes a new one.
    engine : "auto", Factor or Dask
        Who goes over the rows.

    Returns
    -------
    SliceTable
        Confirmed slices first.

    Examples
    --------
    >>> import itrust as it
    >>> found = it.bias_slices(it.simulate.survey(5_000, rng=0).sample, draws=199, rng=0)
    >>> len(found.confirmed) > 0
    True
    """
    redraws = Redraws.of(sample, alpha=alpha, draws=draws, rng=rng, parts=HALVES, engine=engine)
    return slices_of(
        redraws, max_conditions=max_conditions, max_slices=max_slices, min_rows=min_rows
    )


def slices_of(
    redraws: Redraws, *, max_conditions: int = 3, max_slices: int = 8, min_rows: int = 50
) -> SliceTable:
    """The table of `bias_slices`, with sample and draws that were checked before."""
    settings = {"max_conditions": max_conditions, "max_slices": max_slices, "min_rows": min_rows}
    for name, value in settings.items():
        checked_count(value, name)
    if redraws.extract is not None:
        return slice_plan(redraws, **settings).made()
    sample, seed = redraws.sample, redraws.seed
    halves = halves_of(sample, seed, purpose=0)
    slices: list[Slice] = []
    for number, (search, others) in enumerate(zip(halves, halves[::-1], strict=True)):
        searcher = Searcher(_searchable(search, max_slices), max_conditions, min_rows)
        found = searcher.candidates(max_slices)
        # Labels of their own for each half; half of the level for each.
        own_seed = as_seed(np.random.default_rng([seed, 1 + number]))
        half = replace(redraws, sample=others, seed=own_seed, alpha=redraws.alpha / HALVES)
        if found:
            (averages,) = half.averages(_places(found), title="slices")
            slices.extend(_judged(found, averages, half, sample))
    return _table(slices, redraws, min_rows)


def _table(slices: Iterable[Slice], redraws: Redraws, min_rows: int) -> SliceTable:
    """Confirmed slices first, by impact; of two that hold nearly the same rows, the first."""
    sample, settings = redraws.sample, redraws.settings
    if len(sample.columns) >= MAX_CROSSED:  # the prediction is one more
        settings["notes"] = (*settings["notes"], SOME_CROSSED)
    apart: list[tuple[Slice, BoolArray]] = []
    for part in sorted(slices, key=lambda part: (part.pvalue > redraws.alpha, -abs(part.impact))):
        rows = part.where.rows(sample.points)
        if all((rows & other).sum() <= ALIKE * (rows | other).sum() for _, other in apart):
            apart.append((part, rows))
    return SliceTable(
        slices=tuple(part for part, _ in apart),
        n=redraws.n,
        min_rows=int(min_rows),
        **settings,
    )


def slice_plan(
    redraws: Redraws, *, max_conditions: int = 3, max_slices: int = 8, min_rows: int = 50
) -> Question[SliceTable]:
    """Search the rows at hand; all other rows then judge what was found."""
    sample, extract = redraws.sample, redraws.extract
    assert extract is not None
    searcher = Searcher(_searchable(sample, max_slices), max_conditions, min_rows)
    found = searcher.candidates(2 * max_slices)

    def finished(averages: Averages) -> SliceTable:
        return _table(_judged(found, averages, redraws, sample), redraws, min_rows)

    return Question(redraws, _places(found, extract.bar), finished, "slices")


def _places(found: Sequence[Rule], above: float = NOBODY) -> Members:
    return Members([candidate.where for candidate in found], above)


def halves_of(sample: Sample, seed: int, purpose: int) -> tuple[Sample, ...]:
    """Both halves of the rows, or of the clusters; none where there are too few to halve."""
    units = sample.n if sample.clusters is None else sample.clusters
    if units < MIN_UNITS:
        return ()
    return sample.split([0.5, 0.5], rng=np.random.default_rng([seed, purpose]))


def _searchable(search: Sample, max_slices: int) -> Sample:
    """As many rows as can be looked at within reasonable time."""
    crossed = min(len(search.columns) + 1, MAX_CROSSED)
    looks = crossed * (crossed + 1) / 2 + len(search.columns)
    most = max(int(MAX_CELLS / (5 * looks * max_slices)), MIN_ROWS)
    rows = smallest_tickets(tickets(0, search.n), most)
    return search if rows.size == search.n else search.take(rows)


def _judged(
    found: Sequence[Rule], averages: Averages, judges: Redraws, sample: Sample
) -> Iterator[Slice]:
    """Rules with the numbers of the rows that judged them, all or one half of them.

    Shares of the level: some to every slice alike, the rest by odds from the search. `sample` has
    all rows, or those at hand.
    """
    held = np.flatnonzero(averages.mass > 0)
    averages, found = averages.take(held), [found[k] for k in held.tolist()]
    if not found:
        return
    low = np.array([candidate.bias > 0 for candidate in found])
    worth = np.array([candidate.worth for candidate in found])
    odds = np.exp(worth - worth.max())
    attention = ALIKE_SHARE / worth.size + (1 - ALIKE_SHARE) * odds / odds.sum()
    sides = (np.where(side, FOUND_SHARE, 1 - FOUND_SHARE) for side in (low, ~low))
    above, below = (attention * side for side in sides)
    all_rates = judged(averages, judges.alpha, shares=(above, below))
    extract, w = judges.extract, sample.weights_or_ones
    for k, (candidate, rates) in enumerate(zip(found, all_rates, strict=True)):
        here, judged_on = np.flatnonzero(candidate.where.rows(sample.points)), int(averages.rows[k])
        if extract is None:
            rows, share = here.size, float(w[here].sum() / w.sum())
            rates["pvalue"] = min(HALVES * rates["pvalue"], 1.0)
        else:
            rows = here.size + judged_on
            weight = float(here.size if extract.weights is None else extract.weights[here].sum())
            share = weight / extract.census.mass
            share += float(averages.mass[k]) / averages.total
        yield Slice(
            where=candidate.where,
            rows=rows,
            share=share,
            judged_on=judged_on,
            found_bias=candidate.bias,
            **rates,
        )


@dataclass(frozen=True, eq=False)
class _Axis:
    """One covariate in cells, and the conditions that can be made of them."""

    name: str
    codes: IntArray
    cells: int
    conditions: tuple[Predicate, ...]
    members: FloatArray  # (conditions, cells)
    price: FloatArray  # (conditions,): log of how many conditions are as complex

    @classmethod
    def of(cls, column: Column) -> _Axis | None:
        """None for a column with nothing to choose."""
        missing = column.missing
        values, counts = np.unique(column.values[~missing], return_counts=True)
        if column.kind in ("number", "date") and values.size > 2:
            edges = _edges(column, values, counts)
            codes = np.searchsorted(edges, column.values, side="right") - 1
            known, levels = len(edges) - 1, list[Predicate]()
            chosen = list(_ranges(column, edges, values))
        else:
            frequent = frequent_values(column)[0][:SEARCHED_LEVELS]
            known, levels = len(frequent), [level_of(column, value) for value in frequent]
            number = dict(zip(frequent.tolist(), range(known), strict=True))
            rare = known + int(missing.any())  # after the cell of missing values
            own, where = np.unique(column.values, return_inverse=True)
            codes = np.array([number.get(value, rare) for value in own.tolist()], dtype=np.int64)
            codes, chosen = codes[where], []
        codes[missing] = known
        levels += [Missing(column.name)] if missing.any() else []
        cells = known + int(missing.any())
        if not values.size or cells < 2:
            return None
        first = cells - len(levels)
        chosen += [
            (level, range(first + k, first + k + 1), math.log(cells))
            for k, level in enumerate(levels)
        ]
        members = np.zeros((len(chosen), cells + 1))  # the last cell: rare levels
        for row, (_, inside, _) in zip(members, chosen, strict=True):
            row[inside] = 1.0
        conditions, _, price = zip(*chosen, strict=True)
        return cls(column.name, codes, cells + 1, conditions, members, np.array(price))


def _edges(column: Column, values: FloatArray, counts: IntArray) -> list[float]:
    """Ends of cells with about equally many rows, at round numbers where there is room."""
    if values.size <= PARTS:
        inner = [float(v) for v in values[1:]]
    else:
        ranks = np.cumsum(counts) / counts.sum()
        around = [[(k - 0.25) / PARTS, (k + 0.25) / PARTS] for k in range(1, PARTS)]
        ends = values[np.searchsorted(ranks, np.array(around) - 1e-12)]
        if column.kind == "date":  # midnight before a cut, where that keeps the order
            midnight = np.floor(ends[:, 1])
            cuts = set(np.where(midnight > ends[:, 0], midnight, ends[:, 1]).tolist())
        else:
            cuts = {roundest(low, high) for low, high in ends}
        inner = sorted(cut for cut in cuts if values[0] < cut <= values[-1])
    return [-math.inf, *inner, math.inf]


def roundest(low: float, high: float) -> float:
    """The number with the fewest digits above `low`, up to `high`.

    >>> roundest(0.3169, 0.3272), roundest(24_706.5, 31_059.7), roundest(2.0, 2.0)
    (0.32, 30000.0, 2.0)
    """
    if not low < high:
        return float(high)
    largest = math.floor(math.log10(max(abs(low), abs(high))))
    for power in range(largest, largest - 17, -1):
        step = 10.0**power
        if step == 0:
            break
        # 2.3 / 0.1 is a little below 23; what is that close counts as equal.
        candidate = float(f"{(math.floor(low / step + 1e-6) + 1) * step:.12g}")
        if low < candidate <= high:
            return candidate
    return float(high)


def _ranges(
    column: Column, edges: list[float], values: FloatArray
) -> Iterator[tuple[Predicate, range, float]]:
    """Below, at or above a cut, and between two cuts; one value where cells hold one each."""
    last = len(edges) - 1
    texts = [_exactly(column, edge) if math.isfinite(edge) else "" for edge in edges]
    one_sided = math.log(max(2 * (last - 1), 1))
    two_sided = max(one_sided, math.log(max(last * (last - 1) / 2, 1))) + 0.7
    for low, high in combinations(range(last + 1), 2):
        if high - low == last:
            continue
        price = one_sided if low == 0 or high == last else two_sided
        if values.size == last <= MAX_VALUES and high == low + 1:
            one = level_of(column, float(values[low]))
            yield one, range(low, high), min(price, math.log(last))
            continue
        text = f"from {texts[low]} to below {texts[high]}"
        text = f"< {texts[high]}" if low == 0 else f">= {texts[low]}" if high == last else text
        where = Between(column.name, edges[low], edges[high], text, column.kind)
        yield where, range(low, high), price


def _exactly(column: Column, end: float) -> str:
    """A cut with as many digits as it takes to be the cut."""
    if column.kind == "date":
        return column.shown(end, 17)
    return next(
        text
        for digits in (6, 9, 12, 17)
        if float(text := column.shown(end, digits)) == end or digits == 17
    )


class Rule(NamedTuple):
    """Conditions and what they show where they were found."""

    worth: float
    standard: float
    conditions: tuple[Predicate, ...]
    bias: float = 0.0

    @property
    def where(self) -> Predicate:
        return all_of(self.conditions)


@dataclass(frozen=True, eq=False)
class Searcher:
    """Rows to search in, cut into cells."""

    sample: Sample
    max_conditions: int
    min_rows: int

    @cached_property
    def axes(self) -> tuple[_Axis, ...]:
        """Covariates, and the prediction, that differ between rows."""
        taken = PREDICTION in self.sample.names
        prediction = Column(OTHER_NAME if taken else PREDICTION, "number", self.sample.p)
        columns = [*self.sample.columns, prediction]
        found = (_Axis.of(column) for column in columns)
        return tuple(axis for axis in found if axis is not None)

    def candidates(self, max_rules: int) -> list[Rule]:
        """The most striking rules, one after the other."""
        found: list[Rule] = []
        w, residuals = self.sample.weights_or_ones, self.sample.residuals.copy()
        for _ in range(max_rules):
            best = self._best(w, residuals)
            if not best:
                break
            for rule in best:
                if len(found) < max_rules and all(rule.where != known.where for known in found):
                    found.append(rule._replace(bias=self._mean(rule, self.sample.residuals)[1]))
            inside, mean = self._mean(best[0], residuals)
            residuals[inside] -= mean
        return found

    def _mean(self, rule: Rule, residuals: FloatArray) -> tuple[BoolArray, float]:
        """Rows under a rule, and their weighted mean residual."""
        inside, w = rule.where.rows(self.sample.points), self.sample.weights_or_ones
        return inside, float(w[inside] @ residuals[inside] / w[inside].sum())

    def _best(self, w: FloatArray, e: FloatArray) -> list[Rule]:
        """The rule with the largest worth, and the best with a single condition."""
        sums = self._sums(w, e, np.ones(e.size, dtype=bool))
        alone = [self._in_pair(axis, None, sums, 0.0) for axis in self.axes]
        found = [f for f in alone if f is not None and f.standard >= FAINT_PART]
        worth = [-math.inf if f is None else f.worth for f in alone]
        striking = [self.axes[k] for k in sorted(np.argsort(worth)[::-1][:MAX_CROSSED])]
        if self.max_conditions > 1:
            pairs = combinations(striking, 2)
            crossed = (self._in_pair(a, b, sums, FAINT_PART) for a, b in pairs)
            found.extend(f for f in crossed if f is not None)
        beam = sorted(found, key=lambda f: -f.worth)
        best = [f for f in beam if f.standard >= FAINT][:1]
        for _ in range(2, self.max_conditions):
            longer = [self._narrowed(short, striking, w, e) for short in beam[:BEAM]]
            beam = sorted((f for f in longer if f is not None), key=lambda f: -f.worth)
            best.extend(f for f in beam[:1] if f.standard >= FAINT)
        best.sort(key=lambda f: -f.worth)
        single = [f for f in found if len(f.conditions) == 1 and f.standard >= FAINT]
        return [*best[:1], *sorted(single, key=lambda f: -f.worth)[:1]]

    def _sums(self, w: FloatArray, e: FloatArray, inside: BoolArray) -> FloatArray:
        """What is summed: w e, its variance by p and by itself, w, w^2, (5, n)."""
        p = self.sample.p
        told = np.stack([w * e, w**2 * p * (1 - p), (w * e) ** 2, w, w**2])
        return np.where(inside, told, 0.0)

    def _in_pair(self, a: _Axis, b: _Axis | None, sums: FloatArray, faintest: float) -> Rule | None:
        """The best rectangle of two covariates, or the best condition on one."""
        names = math.log(len(self.axes)) * (1 if b is None else 2)
        if b is None:
            cells = np.stack([np.bincount(a.codes, s, minlength=a.cells) for s in sums])
            told, prices = cells @ a.members.T, a.price + names
        else:
            code = a.codes * b.cells + b.codes
            cells = np.stack([np.bincount(code, s, minlength=a.cells * b.cells) for s in sums])
            tables = cells.reshape(-1, a.cells, b.cells)
            told = a.members @ tables @ b.members.T
            prices = a.price[:, None] + b.price + names
        standard = self._standard(told)
        worth = np.where(standard >= faintest, standard**2 / 2 - THRIFT * prices, -np.inf)
        worth = worth.round(WORTH_DIGITS)
        at = np.unravel_index(int(np.argmax(worth)), worth.shape)
        if not np.isfinite(worth[at]):
            return None
        axes = [a] if b is None else [a, b]
        regions = tuple(axis.conditions[int(k)] for axis, k in zip(axes, at, strict=True))
        return Rule(float(worth[at]), float(standard[at]), regions)

    def _standard(self, told: FloatArray) -> FloatArray:
        """Mean residual in standard errors; 0 where too few rows are."""
        lean, by_p, by_itself, mass, squares = told
        size = np.divide(mass**2, squares, out=np.zeros_like(mass), where=squares > 1e-12)
        variance = np.maximum(by_p, by_itself)
        enough = (size >= self.min_rows) & (variance > 0)
        scale = np.sqrt(np.where(enough, variance, 1.0))
        return np.asarray(np.where(enough, np.abs(lean) / scale, 0.0))

    def _narrowed(
        self, rule: Rule, axes: Sequence[_Axis], w: FloatArray, e: FloatArray
    ) -> Rule | None:
        """A rule with one more condition."""
        taken, sums = rule.where.names, self._sums(w, e, rule.where.rows(self.sample.points))
        price = rule.standard**2 / 2 - rule.worth  # of the conditions so far
        best: Rule | None = None
        for axis in axes:
            more = None if axis.name in taken else self._in_pair(axis, None, sums, FAINT)
            if more is not None and (best is None or more.worth - price > best.worth):
                both = (*rule.conditions, *more.conditions)
                best = Rule(round(more.worth - price, WORTH_DIGITS), more.standard, both)
        return best
