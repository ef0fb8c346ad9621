"""The numbers behind the charts of an audit: curves, maps, histogram and null distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Self

import numpy as np

from itrust._core import (
    AnyArray,
    BoolArray,
    FloatArray,
    WithFacts,
    counted,
    progress_bar,
    smallest_tickets,
    tickets,
)
from itrust.bias import (
    MIN_NEIGHBOURS,
    Axis,
    BiasCurve,
    BiasMap,
    CurvePart,
    Question,
    Redraws,
    curve_plan,
    has_order,
    map_plan,
    pictures_of,
    shares_known,
)
from itrust.calibration import CalibrationResult, EqualMass, ReliabilityCurve, reliability_curve
from itrust.data import PREDICTION, Column, Predicate, Sample, level_of

# What bounds cost and size of the charts, whatever the number of rows and covariates.
MAX_ROWS = 20_000
MAX_AXES, MAX_SPLITS, MAX_GROUPS, MAX_MAPS = 6, 4, 12, 8
POINTS, SIDE, BARS, DRAWS = 40, 18, 40, 199
COLUMNS, NICE = 24, (1, 2, 5, 10)  # bars of predictions, about; steps between their ends
BINS, ROWS_OF_BIN = 10, 40  # of the reliability in a group: most bins, fewest rows of each, about
DIGITS = 5
PLANS = 0.3  # time to settle curves and maps, compared with their estimates

Numbers = tuple[float | None, ...]


@dataclass(frozen=True)
class NullChart:
    """What redrawn labels give, in bars, and what the data gave.

    Attributes
    ----------
    edges : tuple of float
        Ends of the bars, one more than there are bars.
    counts : tuple of int
        Draws in each bar.
    observed : float
        The score of the data.
    largest, median : float
        Of the draws.
    at_least : int
        Number of draws whose score is at least as large as that of the data.
    draws : int
        Number of draws.
    combined : bool
        Whether the score is the largest over all checks; otherwise it is KLCE^2.
    """

    edges: Numbers
    counts: tuple[int, ...]
    observed: float
    largest: float
    median: float
    at_least: int
    draws: int
    combined: bool

    @classmethod
    def of(cls, test: CalibrationResult) -> NullChart | None:
        """Put the draws of a test into bars.

        Parameters
        ----------
        test : CalibrationResult
            Of `klce_test`.

        Returns
        -------
        NullChart or None
            None for a null that is a formula.
        """
        drawn = None if test.refused is not None else test.null_distribution
        if drawn is None:
            return None
        counts, edges = np.histogram(drawn, bins=min(BARS, max(5, drawn.size // 10)))
        return cls(
            edges=_rounded(edges),
            counts=tuple(int(count) for count in counts),
            observed=float(test.score),
            largest=float(drawn.max()),
            median=float(np.median(drawn)),
            at_least=test.at_least,
            draws=test.draws,
            combined=test.is_adaptive,
        )


@dataclass(frozen=True)
class HistogramChart:
    """How many rows have which prediction.

    Attributes
    ----------
    edges : tuple of float
        Ends of the bars, one more than there are bars.
    counts : tuple of int
        Rows in each bar.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, p: FloatArray) -> HistogramChart:
        """Count predictions in about 24 bars between round numbers.

        Parameters
        ----------
        p : (n,) array of float
            Predictions.

        Returns
        -------
        HistogramChart
            All rows are in one of its bars.
        """
        edges = histogram_edges(float(p.min()), float(p.max()))
        return cls.of_counts(edges, np.histogram(p, edges)[0])

    @classmethod
    def of_counts(cls, edges: FloatArray, counts: AnyArray) -> HistogramChart:
        """Take rows that were counted already.

        Parameters
        ----------
        edges : (b + 1,) array
            From `histogram_edges`.
        counts : (b,) array
            Rows in each bar.

        Returns
        -------
        HistogramChart
            With ends that can be read.
        """
        return cls(
            tuple(float(f"{edge:.{DIGITS}g}") for edge in edges),
            tuple(int(count) for count in counts),
        )


def histogram_edges(low: float, high: float) -> FloatArray:
    """Ends of about 24 bars between round numbers."""
    step = nice_step(max(high - low, 0.01) / COLUMNS)
    first, last = math.floor(low / step), math.ceil(high / step)
    edges = np.arange(first, max(last, first + 1) + 1) * step
    edges[[0, -1]] = min(edges[0], low), max(edges[-1], high)  # against rounding
    return np.asarray(edges, dtype=float)


@dataclass(frozen=True, eq=False)
class ReliabilityLine(WithFacts):
    """The reliability curve of one group.

    Attributes
    ----------
    where : Predicate
        The rows of the group.
    by : str
        The covariate that makes the groups.
    group : str
        The group in words.
    rows : int
        Number of rows of the group.
    curve : ReliabilityCurve
        In up to ten bins of equal weight.
    """

    where: Predicate
    by: str
    group: str
    rows: int
    curve: ReliabilityCurve

    def _facts(self) -> dict[str, Any]:
        bins = {name: _rounded(part) for name, part in vars(self.curve).items()}
        return {"by": self.by, "group": self.group, "rows": self.rows, "curve": bins}


@dataclass(frozen=True, kw_only=True)
class ChartPoints(WithFacts):
    """Bias at the points of a curve or in the cells of a map.

    Attributes
    ----------
    bias, lower, upper : tuple of float or None
        Bias with its confidence band; None where too few rows are near.
    neighbours : tuple of float
        Effective number of rows nearby.
    pvalue : tuple of float or None
        Adjusted for all points of the curve, or all cells of the map.
    flagged : tuple of bool
        Where the model is shown to be miscalibrated.
    """

    bias: Numbers
    lower: Numbers
    upper: Numbers
    neighbours: Numbers
    pvalue: Numbers
    flagged: tuple[bool, ...]
    _untold = ("where",)  # the rows, which no file tells

    def implied_by(self, pvalue: float) -> Self:
        """Mark nothing that calibration given the covariates implies and that was not rejected.

        Parameters
        ----------
        pvalue : float
            Of the test, which did not reject.

        Returns
        -------
        ChartPoints
            The same with no p-value below that, bands drawn out to 0, and nothing marked.
        """
        return replace(
            self,
            lower=tuple(None if end is None else min(end, 0.0) for end in self.lower),
            upper=tuple(None if end is None else max(end, 0.0) for end in self.upper),
            pvalue=tuple(None if own is None else max(own, pvalue) for own in self.pvalue),
            flagged=(False,) * len(self.flagged),
        )


@dataclass(frozen=True, kw_only=True)
class CurveLine(ChartPoints):
    """Bias along a covariate in one group.

    Attributes
    ----------
    where : Predicate
        The rows of the group.
    group : str
        The group in words, or "all rows".
    by : str or None
        The covariate that makes the groups; None for all rows.
    rows : int
        Number of rows of the group.
    at : tuple of str
        Positions for people.
    x : tuple
        Positions to draw at: numbers, or dates as text.
    null_lower, null_upper : tuple of float or None
        Where redrawn labels stay.
    """

    where: Predicate
    group: str
    by: str | None
    rows: int
    at: tuple[str, ...]
    x: tuple[Any, ...]
    null_lower: Numbers
    null_upper: Numbers


@dataclass(frozen=True)
class CurveChart:
    """Bias along one covariate: all rows first, then every group.

    A group without any position that has enough of its rows nearby has no line.

    Attributes
    ----------
    name : str
        The covariate, or "prediction".
    kind : {"number", "date"}
        Of its values.
    parts : tuple of CurveLine
        One for all rows, then one for each group.
    notes : tuple of str
        What the reader should know.
    """

    name: str
    kind: str
    parts: tuple[CurveLine, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class MapSide(WithFacts):
    """One axis of a map.

    Attributes
    ----------
    name : str
        The covariate, or "prediction".
    kind : {"level", "number", "date"}
        Of its values.
    at : tuple of str
        Positions for people.
    edges : tuple of float
        Ends of the cells of a number; empty for levels.
    where : tuple of Predicate
        For levels, the rows of each position; empty for numbers and dates.
    """

    name: str
    kind: str
    at: tuple[str, ...]
    edges: Numbers
    where: tuple[Predicate, ...] = ()
    _untold = ("where",)


@dataclass(frozen=True, kw_only=True)
class MapChart(ChartPoints):
    """Bias over two covariates; cells go along `across` first, then along `up`.

    Attributes
    ----------
    across, up : MapSide
        The axes.
    """

    across: MapSide
    up: MapSide


@dataclass(frozen=True)
class Charts(WithFacts):
    """Everything that the charts of an audit show, besides its reliability curve and groups.

    The audit computes and keeps them, so that a page only has to draw, and `to_dict` has them all.

    Attributes
    ----------
    null : NullChart or None
        The null distribution of the test; None for a null that is a formula.
    curves : tuple of CurveChart
        Along each number and the prediction; empty if `audit` was told `charts=False`.
    maps : tuple of MapChart
        Over pairs of covariates; empty if `audit` was told `charts=False`.
    rows : int
        Rows that curves and maps were computed from: 20,000 of many.
    computed : bool
        Whether curves and maps were computed at all.
    histogram : HistogramChart or None
        Of the predictions.
    by_group : tuple of ReliabilityLine
        Reliability in every group; empty if `audit` was told `charts=False`.
    undrawn : tuple of str
        Numbers that no curve is drawn along, because there are more than five.
    """

    null: NullChart | None
    curves: tuple[CurveChart, ...]
    maps: tuple[MapChart, ...]
    rows: int
    computed: bool
    histogram: HistogramChart | None = None
    by_group: tuple[ReliabilityLine, ...] = ()
    undrawn: tuple[str, ...] = ()
    _untold = ("by_group",)

    def __repr__(self) -> str:
        return f"<Charts: {counted(len(self.curves), 'curve')}, {counted(len(self.maps), 'map')}>"

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "reliability_by_group": self.by_group}


def charts_of(
    sample: Sample,
    test: CalibrationResult,
    *,
    alpha: float,
    draws: int,
    seed: int,
    computed: bool = True,
    telling: Sequence[Sequence[str]] = (),
    histogram: HistogramChart | None = None,
) -> Charts:
    """Compute the charts of an audit, from all rows or from 20,000 of more."""
    drawer = _Drawer(sample, alpha, draws, seed, telling)
    curves, maps = drawer.drawn() if computed else ((), ())
    # One closed test with what would imply them.
    if test.refused is None and not test.refutes(alpha):
        curves = tuple(
            replace(curve, parts=tuple(part.implied_by(test.pvalue) for part in curve.parts))
            for curve in curves
        )
        maps = tuple(chart.implied_by(test.pvalue) for chart in maps)
    return Charts(
        null=NullChart.of(test),
        curves=curves,
        maps=maps,
        rows=drawer.rows,
        computed=computed,
        histogram=HistogramChart.of(sample.p) if histogram is None else histogram,
        by_group=drawer.by_group(sample) if computed else (),
        undrawn=tuple(drawer.undrawn) if computed else (),
    )


class _Drawer:
    """Makes curves and maps of some rows."""

    def __init__(
        self,
        whole: Sample,
        alpha: float,
        draws: int,
        seed: int,
        telling: Sequence[Sequence[str]] = (),
    ) -> None:
        self.rows = min(whole.n, MAX_ROWS)
        self.sample = whole
        if self.rows < whole.n:
            self.sample = whole.take(smallest_tickets(tickets(0, whole.n), self.rows))
        self.alpha, self.seed = alpha, seed
        self.draws = min(draws, max(DRAWS, math.ceil(2 / alpha)))
        self.telling = telling
        first = dict.fromkeys(name for names in telling for name in names)
        known = {column.name: column for column in self.sample.columns}
        self.columns = [known[name] for name in {**first, **known} if name in known]

    @cached_property
    def _ordered(self) -> list[str]:
        """Numbers to draw along, those of what was found first, and the prediction."""
        own = PREDICTION not in self.sample.names and has_order(self.sample.points.prediction)
        return [*self._numbers[: MAX_AXES - 1], *([PREDICTION] if own else [])]

    @cached_property
    def _numbers(self) -> list[str]:
        return [c.name for c in self.columns if has_order(c)]

    @property
    def undrawn(self) -> list[str]:
        """Numbers for which there is no room."""
        return self._numbers[MAX_AXES - 1 :]

    @cached_property
    def _levels(self) -> list[str]:
        """Categories to draw by, those of what was found first."""
        unordered = [column for column in self.columns if not has_order(column)]
        counts = {c.name: np.unique(c.values[~c.missing]).size for c in unordered}
        return [name for name, count in counts.items() if 2 <= count <= MAX_GROUPS]

    def drawn(self) -> tuple[tuple[CurveChart, ...], tuple[MapChart, ...]]:
        """Curves along each number and the prediction, and maps; first those of a finding.

        All are settled before anything is estimated, so that they share their passes.
        """
        curves: dict[str, dict[str | None, Question[BiasCurve]]] = {}
        maps: list[Question[BiasMap]] = []
        step = PLANS / max(len(self._ordered) + len(self._pairs), 1)
        with progress_bar("charts", 1 + PLANS) as advance:
            for name in self._ordered:
                curves[name] = self._curve_plans(name)
                advance(step)
            for pair in self._pairs:
                maps.append(self._map_plan(*pair))
                advance(step)
            of_curves = [plan for plans in curves.values() for plan in plans.values()]
            pictures = iter(pictures_of([*of_curves, *maps]))
        lines = [
            self._curve(name, {by: next(pictures) for by in plans})
            for name, plans in curves.items()
        ]
        charts = [_map(picture) for picture in pictures]
        return (
            tuple(curve for curve in lines if curve.parts),
            tuple(chart for chart in charts if chart.bias),
        )

    @cached_property
    def _redraws(self) -> Redraws:
        return Redraws.of(self.sample, alpha=self.alpha, draws=self.draws, rng=self.seed)

    @cached_property
    def _shares(self) -> dict[str, float]:
        """Share of the range of each number that has enough rows; long tails have few."""
        paired = (name for pair in self._pairs for name in pair)
        names = [n for n in dict.fromkeys([*self._ordered, *paired]) if n not in self._levels]
        plans = [curve_plan(self._redraws, name, points=POINTS) for name in names]
        shares = shares_known(plans, MIN_NEIGHBOURS) if names else []
        return dict(zip(names, shares, strict=True))

    def _curve_plans(self, name: str) -> dict[str | None, Question[BiasCurve]]:
        """All rows, then every group of few enough."""
        points = round(POINTS / max(self._shares[name], 0.25))
        splits = [None, *self._levels[:MAX_SPLITS]]
        return {by: curve_plan(self._redraws, name, by or (), points=points) for by in splits}

    def _curve(self, name: str, found: Mapping[str | None, BiasCurve]) -> CurveChart:
        whole = found[None]
        parts = tuple(
            self._line(curve.axis, part, by)
            for by, curve in found.items()
            for part in curve.parts
            if part.known
        )
        return CurveChart(name, _kind(whole.axis), parts, tuple(whole.bias.notes_on_points))

    def _line(self, axis: Axis, part: CurvePart, by: str | None) -> CurveLine:
        # Ends without a value would only tell the smallest and largest value of the file.
        some = _inner(np.isfinite(part.values))
        flagged = np.nan_to_num(part.pvalues, nan=1.0) <= self.alpha
        return CurveLine(
            where=part.where,
            group=part.group,
            by=by,
            rows=part.rows,
            at=tuple(map(axis.shown, some)),
            x=_positions(axis, some),
            bias=_rounded(part.values[some]),
            lower=_rounded(part.band.lower[some]),
            upper=_rounded(part.band.upper[some]),
            null_lower=_rounded(part.null_band.lower[some]),
            null_upper=_rounded(part.null_band.upper[some]),
            neighbours=_rounded(part.size[some]),
            pvalue=_rounded(part.pvalues[some]),
            flagged=tuple(bool(flag) for flag in flagged[some]),
        )

    def by_group(self, whole: Sample) -> tuple[ReliabilityLine, ...]:
        """Reliability in each level of the categories that curves are split by; of all rows."""
        return tuple(
            line
            for name in self._levels[:MAX_SPLITS]
            for line in _reliability_lines(whole, whole.column(name))
        )

    @cached_property
    def _pairs(self) -> list[tuple[str, str]]:
        covariates = [name for name in self._ordered if name != PREDICTION]
        axes = [*covariates, *self._levels]
        pairs = list(combinations(axes, 2))
        if PREDICTION in self._ordered:
            pairs += [(name, PREDICTION) for name in axes]
        if self.telling:
            others = set(axes).difference(*self.telling)
            pairs.sort(key=lambda pair: len(others.intersection(pair)))
        return list(dict.fromkeys([*self._telling_pairs(), *pairs]))[:MAX_MAPS]

    def _telling_pairs(self) -> list[tuple[str, str]]:
        """Pairs that something was found about: of covariates, then with the prediction."""
        axes = [c.name for c in self.columns if has_order(c)] + self._levels
        axes += [PREDICTION] if PREDICTION in self._ordered else []
        place = {name: k for k, name in enumerate(axes)}
        pairs = [
            (one, other) if place[one] < place[other] else (other, one)
            for names in self.telling
            for one, other in combinations([name for name in names if name in place], 2)
        ]
        return sorted(pairs, key=lambda pair: PREDICTION in pair)

    def _map_plan(self, *pair: str) -> Question[BiasMap]:
        shares = [self._shares[name] for name in pair if name not in self._levels]
        points = round(SIDE / max(min(shares, default=1.0), 0.5))
        return map_plan(self._redraws, *pair, points=points)


def _reliability_lines(sample: Sample, column: Column) -> list[ReliabilityLine]:
    """Every level with rows for two bins and, in a design, with more than one cluster."""
    lines = []
    counts = sample.weights_or_ones > 0
    for value in np.unique(column.values[~column.missing]):
        where = level_of(column, float(value))
        rows = np.flatnonzero(where.rows(sample.points) & counts)
        bins = min(BINS, rows.size // ROWS_OF_BIN)
        if bins < 2:
            continue
        part = sample.take(rows)
        if not (part.design.is_simple or part.design.freedom > 0):
            continue
        curve = reliability_curve(part, EqualMass(bins))
        lines.append(ReliabilityLine(where, column.name, str(where), part.n, curve))
    return lines


def nice_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least this."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in NICE if step * power >= least * (1 - 1e-9))


def _map(found: BiasMap) -> MapChart:
    known = np.isfinite(found.values)
    across, up = found.axes
    columns = _places(across, np.asarray(known.any(axis=0)))
    rows = _places(up, np.asarray(known.any(axis=1)))
    block = np.ix_(rows, columns)

    def cells(values: FloatArray) -> Numbers:
        return _rounded(values.reshape(known.shape)[block].ravel())

    return MapChart(
        across=_side(across, columns),
        up=_side(up, rows),
        bias=cells(found.values),
        lower=cells(found.bias.band.lower),
        upper=cells(found.bias.band.upper),
        neighbours=cells(found.size),
        pvalue=cells(found.pvalues),
        flagged=tuple(bool(flag) for flag in found.flagged[block].ravel()),
    )


def _places(axis: Axis, known: BoolArray) -> list[int]:
    """Levels with a value; of a number, from the first place with a value to the last."""
    if axis.labels:
        return [int(k) for k in np.flatnonzero(known)]
    return _inner(known)


def _kind(axis: Axis) -> str:
    if axis.labels:
        return "level"
    return "date" if axis.column.kind == "date" else "number"


def _positions(axis: Axis, some: list[int]) -> tuple[Any, ...]:
    if _kind(axis) == "date":
        return tuple(map(axis.shown, some))
    return _rounded(axis.positions[some])


def _side(axis: Axis, places: Sequence[int]) -> MapSide:
    """Labels and, for numbers, the edges of the cells."""
    at = tuple(axis.shown(k) for k in places)
    if axis.labels:
        where = tuple(level_of(axis.column, float(axis.column.values[k])) for k in places)
        return MapSide(axis.name, _kind(axis), at, (), where)
    edges: Numbers = ()
    if places:
        centres = axis.positions[list(places)]
        half = np.diff(centres) / 2 if len(places) > 1 else np.array([0.5])
        inner = centres[:-1] + half if len(places) > 1 else np.array([])
        edges = _rounded(np.array([centres[0] - half[0], *inner, centres[-1] + half[-1]]))
    return MapSide(axis.name, _kind(axis), at, edges)


def _inner(known: BoolArray) -> list[int]:
    """From the first place with a value to the last."""
    places = np.flatnonzero(known)
    return list(range(int(places[0]), int(places[-1]) + 1)) if places.size else []


def _rounded(values: FloatArray) -> Numbers:
    """As many digits as a picture can show."""
    return tuple(
        None if not math.isfinite(v) else float(f"{v:.{DIGITS}g}") for v in map(float, values)
    )
