"""Disclosure control: what rests on few rows is taken out of an audit before it is shown."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from itrust._core import InputError
from itrust.auditing.charts import (
    Charts,
    CurveChart,
    CurveLine,
    MapChart,
    MapSide,
    ReliabilityLine,
)
from itrust.auditing.verdict import Evidence, Judgement, PointBias
from itrust.bias import GroupBias, GroupTable, Slice, SliceTable
from itrust.calibration import CalibrationResult, Detectable, Finding, ReliabilityCurve
from itrust.data import Points, Predicate
from itrust.recalibrate import RecalibrationTable

if TYPE_CHECKING:
    from itrust.auditing.audits import Audit

MIN_CELL = 10


@dataclass(frozen=True)
class Withheld:
    """How many entries of an audit are not shown, because few rows stand behind them.

    Attributes
    ----------
    min_cell : int
        Rows that have to stand behind what is shown.
    groups, slices, findings, bins, regions : int
        Groups, slices, findings of the test, bins of the reliability curve, and regions of
        `missed.detectable`.
    curves : int
        Lines of charts and levels of maps.
    points : int
        Points of curves and of the evidence, and cells of maps.
    recalibration : int
        Slices and bins in the comparison of recalibrators.
    shown : int
        Of the groups and slices, those that are shown to be miscalibrated.
    """

    min_cell: int
    groups: int = 0
    slices: int = 0
    findings: int = 0
    bins: int = 0
    regions: int = 0
    curves: int = 0
    points: int = 0
    recalibration: int = 0
    shown: int = 0

    @property
    def total(self) -> int:
        """Number of entries that are not shown."""
        counted = {part.name for part in fields(self)} - {"min_cell", "shown"}
        return sum(getattr(self, name) for name in counted)

    def to_dict(self) -> dict[str, int]:
        """Give the counts, ready for JSON.

        Returns
        -------
        dict
            Every attribute, and "total".
        """
        return {**vars(self), "total": self.total}


@dataclass(frozen=True)
class Disclosure:
    """A rule for what of an audit may be shown: at least `min_cell` rows stand behind it.

    Parameters
    ----------
    min_cell : int
        Fewest rows behind a group, slice, bin, region, point or cell that is shown; 1 shows
        everything.

    Examples
    --------
    >>> import itrust as it
    >>> from itrust.auditing import Disclosure
    >>> found = it.audit(it.simulate.survey(500, rng=0).sample, draws=79, rng=0, charts=False)
    >>> Disclosure(min_cell=200).apply(found).withheld.groups
    2
    """

    min_cell: int = MIN_CELL

    def __post_init__(self) -> None:
        least = self.min_cell
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            raise InputError(f"min_cell must be a whole number of rows, 1 or more, not {least!r}")

    def apply(self, audit: Audit) -> Audit:
        """Take out of an audit what fewer than `min_cell` rows stand behind.

        These are groups, slices, findings about such groups and parts, bins of the reliability
        curve, regions of `missed.detectable`, points of curves and of the evidence, cells of maps,
        and slices and bins in the comparison of recalibrators; bars of the histogram are joined
        with their neighbours. Where one group of a covariate, or one bin, would be all that is left
        out, totals would give it away, so another one goes, too: the smallest that is not shown to
        be miscalibrated.
        A slice, part or region that leaves out fewer rows than that is as telling as one that holds
        them. Tasks are shown as the user asked for them, and scores of models are about all rows.

        An audit that this was applied to before is never shown with less care than then: the
        larger `min_cell` counts, and `withheld` tells all that is left out of the whole audit.

        Parameters
        ----------
        audit : Audit
            Not changed.

        Returns
        -------
        Audit
            A copy whose `withheld` says how many entries were left out. It still holds the
            sample: the copy is for being shown, not for being handed on as an object.
        """
        if audit.whole is not None and audit.withheld is not None:
            # Once taken out, a group no longer tells which others have to go with it.
            return Disclosure(max(self.min_cell, audit.withheld.min_cell)).apply(audit.whole)
        groups, slices = audit.diagnosis.groups, audit.diagnosis.slices
        hidden = _Hidden.of(groups, self.min_cell, audit.sample.points, audit.n)
        kept_groups, few_groups = _groups(groups, hidden)
        kept_slices, few_slices = _slices(slices, hidden)
        kept = replace(audit.diagnosis, groups=kept_groups, slices=kept_slices)
        test, few_findings = _findings(audit.test, hidden)
        curve, few_bins = _bins(audit.overall.curve, self.min_cell)
        detectable, few_regions = _regions(audit.missed.detectable, hidden)
        charts, few_curves, few_points = _charts(audit.charts, hidden)
        table, few_recalibrations = _recalibration(audit.recalibration, hidden)
        judgement, few_evidence = _judgement(audit.judgement, hidden, test)
        withheld = Withheld(
            min_cell=self.min_cell,
            groups=few_groups,
            slices=few_slices,
            findings=few_findings,
            bins=few_bins,
            regions=few_regions,
            curves=few_curves,
            points=few_points + few_evidence,
            recalibration=few_recalibrations,
            shown=len(audit.diagnosis.shown) - len(kept.shown),
        )
        return replace(
            audit,
            overall=replace(audit.overall, curve=curve),
            test=test,
            missed=replace(audit.missed, detectable=detectable),
            diagnosis=kept,
            judgement=judgement,
            charts=charts,
            recalibration=table,
            withheld=withheld,
            whole=audit,
        )


@dataclass(frozen=True)
class _Hidden:
    """Groups that are left out: `rare` ones of few rows, and all `places` that tell of them."""

    least: int
    rare: frozenset[Predicate]
    places: frozenset[Predicate]
    points: Points  # all rows, or random ones of them: few of these are taken for few of all
    n: int
    known: Mapping[Predicate, int]  # rows of the groups, out of all

    @classmethod
    def of(cls, table: GroupTable | None, least: int, points: Points, n: int) -> _Hidden:
        """Decide covariate by covariate."""
        groups = () if table is None else table.groups
        alpha = 0.0 if table is None else table.alpha
        by_covariate: dict[tuple[str, ...], list[GroupBias]] = {}
        for group in groups:
            by_covariate.setdefault(group.names, []).append(group)
        hidden: set[Predicate] = set()
        for own in by_covariate.values():
            needed = {k for k, group in enumerate(own) if group.pvalue <= alpha}
            few = too_few([group.rows for group in own], least, needed)
            hidden |= {own[k].where for k in few}
        rare = frozenset(group.where for group in groups if group.rows < least)
        known = {group.where: group.rows for group in groups}
        return cls(least, rare, frozenset(hidden), points, n, known)

    def covers(self, where: Predicate) -> bool:
        """Whether a part of the rows may not be named: it, or all others, would be few."""
        if where in self.known:
            return self.covers_rows(where, self.known[where])
        inside = int(where.rows(self.points).sum())
        outside = len(self.points) - inside
        return self.covers_rows(where, inside if outside >= self.least else self.n - outside)

    def covers_rows(self, where: Predicate, inside: int) -> bool:
        """The same, where it is known how many rows lie inside."""
        return (
            inside < self.least
            or 0 < self.n - inside < self.least
            or where in self.places
            or not self.rare.isdisjoint(where.leaves())
        )

    def allows(self, part: Slice, n: int) -> bool:
        """Whether a slice of n rows may be shown; one that leaves out few rows tells them, too."""
        return (
            min(part.rows, part.judged_on) >= self.least
            and not 0 < n - part.rows < self.least
            and part.where not in self.places
        )


def too_few(rows: Sequence[int], least: int, needed: Container[int] = ()) -> set[int]:
    """Positions to leave out of parts that add up to a known total; `needed` ones if need be.

    >>> sorted(too_few([400, 3, 60], 10)), sorted(too_few([400, 3, 4], 10)), too_few([400], 10)
    ([1, 2], [1, 2], set())
    >>> sorted(too_few([400, 3, 60], 10, needed={2}))
    [0, 1]
    """
    few = {k for k, number in enumerate(rows) if number < least}
    if len(few) == 1 and len(rows) > 1:  # the total less the others would tell it
        others = [k for k in range(len(rows)) if k not in few]
        few.add(min(others, key=lambda k: (k in needed, rows[k])))
    return few


def _groups(table: GroupTable | None, hidden: _Hidden) -> tuple[GroupTable | None, int]:
    if table is None:
        return None, 0
    shown = tuple(group for group in table.groups if group.where not in hidden.places)
    return replace(table, groups=shown), len(table.groups) - len(shown)


def _slices(table: SliceTable, hidden: _Hidden) -> tuple[SliceTable, int]:
    shown = tuple(part for part in table.slices if hidden.allows(part, table.n))
    return replace(table, slices=shown), len(table.slices) - len(shown)


def _findings(test: CalibrationResult, hidden: _Hidden) -> tuple[CalibrationResult, int]:
    """Findings about few rows go, and their names among those that say the same."""
    findings = test.findings
    gone = {found.name for found in findings if hidden.covers(found.where)}
    shown = tuple(
        replace(
            found,
            alike=tuple(name for name in found.alike if name not in gone),
            too_low=_allowed(found, found.too_low, hidden),
            too_high=_allowed(found, found.too_high, hidden),
        )
        for found in findings
        if found.name not in gone
    )
    return replace(test, findings=shown), len(gone)


def _allowed(found: Finding, where: Predicate | None, hidden: _Hidden) -> Predicate | None:
    """A part that a finding names, unless it, or what of it the finding is about, is few rows."""
    if where is None or hidden.covers(where) or hidden.covers(found.where & where):
        return None
    return where


def _bins(curve: ReliabilityCurve, least: int) -> tuple[ReliabilityCurve, int]:
    few = too_few(curve.rows.tolist(), least)
    kept = np.array([k for k in range(curve.rows.size) if k not in few], dtype=int)
    return ReliabilityCurve(**{name: part[kept] for name, part in vars(curve).items()}), len(few)


def _regions(found: Detectable | None, hidden: _Hidden) -> tuple[Detectable | None, int]:
    if found is None:
        return None, 0
    shown = tuple(
        region
        for k, region in enumerate(found.regions)
        if k == 0  # everywhere
        or not hidden.covers(region.where)
    )
    n = hidden.n
    pairs = tuple(
        pair for pair in found.pairs if not hidden.covers_rows(pair.where, round(pair.share * n))
    )
    few = len(found.regions) - len(shown) + len(found.pairs) - len(pairs)
    return replace(found, regions=shown, pairs=pairs), few


def _judgement(
    judgement: Judgement, hidden: _Hidden, test: CalibrationResult
) -> tuple[Judgement, int]:
    """The judgement without evidence that is hidden elsewhere, and how many points that were."""
    shown = {found.name: found for found in test.findings}
    kept: list[Evidence] = []
    few = 0
    for item in judgement.evidence:
        if isinstance(item, PointBias):
            if item.neighbours < hidden.least:
                few += 1
            else:
                kept.append(_point(item, hidden))
        elif isinstance(item, Finding):
            kept += [shown[item.name]] if item.name in shown else []
        elif isinstance(item, GroupBias):
            kept += [] if item.where in hidden.places else [item]
        elif not isinstance(item, Slice) or hidden.allows(item, hidden.n):
            kept.append(item)
    missed = judgement.overlooked
    if missed is not None and missed.where is not None and hidden.covers(missed.where):
        missed = replace(missed, where=None)
    return replace(judgement, evidence=tuple(kept), overlooked=missed), few


def _point(point: PointBias, hidden: _Hidden) -> PointBias:
    """A point without the covariates that put it into a rare group."""
    kept = tuple(own for own in point.coordinates if own.where not in hidden.rare)
    return replace(point, coordinates=kept)


def _recalibration(
    table: RecalibrationTable | None, hidden: _Hidden
) -> tuple[RecalibrationTable | None, int]:
    if table is None:
        return None, 0
    gone = [
        k
        for k, row in enumerate(table.recalibrations)
        if row.slice is not None and not hidden.allows(row.slice, table.test_rows)
    ]
    curves = [_bins(row.curve, hidden.least) for row in table]
    rows = tuple(
        replace(row, slice=None if k in gone else row.slice, curve=curves[k][0])
        for k, row in enumerate(table)
    )
    return replace(table, recalibrations=rows), len(gone) + sum(few for _, few in curves)


POINTWISE = ("bias", "lower", "upper", "null_lower", "null_upper", "neighbours", "pvalue")


def _charts(charts: Charts, hidden: _Hidden) -> tuple[Charts, int, int]:
    """Charts without lines and levels of hidden groups and without points of few neighbours."""
    curves = [_curve(curve, hidden) for curve in charts.curves]
    maps = [_map(chart, hidden) for chart in charts.maps]
    lines = [_reliability(line, hidden) for line in charts.by_group]
    kept = replace(
        charts,
        curves=tuple(curve for curve, *_ in curves if curve.parts),
        maps=tuple(chart for chart, *_ in maps if chart.bias),
        histogram=charts.histogram and charts.histogram.joined(hidden.least),
        by_group=tuple(line for line, *_ in lines if line is not None),
    )
    gone = [numbers for _, *numbers in (*curves, *maps, *lines)]
    return kept, sum(lines for lines, _ in gone), sum(points for _, points in gone)


def _reliability(line: ReliabilityLine, hidden: _Hidden) -> tuple[ReliabilityLine | None, int, int]:
    if line.rows < hidden.least or line.where in hidden.places:
        return None, 1, 0
    curve, few = _bins(line.curve, hidden.least)
    if not curve.rows.size:
        return None, 1, few
    return replace(line, curve=curve), 0, few


def _curve(curve: CurveChart, hidden: _Hidden) -> tuple[CurveChart, int, int]:
    kept = [
        part
        for part in curve.parts
        if part.rows >= hidden.least and part.where not in hidden.places
    ]
    lines = [_line(part, hidden.least) for part in kept]
    shown = tuple(line for line, _ in lines if line.at)
    return (
        replace(curve, parts=shown),
        len(curve.parts) - len(shown),
        sum(points for _, points in lines),
    )


def _line(line: CurveLine, least: int) -> tuple[CurveLine, int]:
    """A line without the values of points that have few neighbours; nor its ends without any."""
    few = _few(line.bias, line.neighbours, least)
    if not few:
        return line, 0
    blank = _blanked(line, few)
    known = [k for k, value in enumerate(blank.bias) if value is not None]
    inner = slice(known[0], known[-1] + 1) if known else slice(0, 0)
    names = ("at", "x", *POINTWISE, "flagged")
    changes: dict[str, Any] = {name: getattr(blank, name)[inner] for name in names}
    return replace(blank, **changes), len(few)


def _few(bias: Sequence[float | None], near: Sequence[float | None], least: int) -> set[int]:
    pairs = enumerate(zip(bias, near, strict=True))
    return {k for k, (value, size) in pairs if value is not None and (size or 0) < least}


def _blanked(chart: Any, few: set[int]) -> Any:
    """The same with nothing at some points."""
    changes: dict[str, Any] = {
        name: tuple(None if k in few else v for k, v in enumerate(getattr(chart, name)))
        for name in POINTWISE
        if hasattr(chart, name)
    }
    flagged = tuple(flag and k not in few for k, flag in enumerate(chart.flagged))
    return replace(chart, flagged=flagged, **changes)


def _map(chart: MapChart, hidden: _Hidden) -> tuple[MapChart, int, int]:
    few = _few(chart.bias, chart.neighbours, hidden.least)
    if few:
        chart = _blanked(chart, few)
    columns, rows = _shown_levels(chart.across, hidden), _shown_levels(chart.up, hidden)
    width = len(chart.across.at)
    cells = [row * width + column for row in rows for column in columns]
    if few:  # ends of a number without a value tell its smallest and largest value
        known = {k for k in cells if chart.bias[k] is not None}
        columns = _inner(chart.across, columns, {k % width for k in known})
        rows = _inner(chart.up, rows, {k // width for k in known})
        cells = [row * width + column for row in rows for column in columns]
    gone = sum(len(side.at) for side in (chart.across, chart.up)) - len(columns) - len(rows)
    names = ("bias", "lower", "upper", "neighbours", "pvalue", "flagged")
    changes: dict[str, Any] = {
        name: tuple(getattr(chart, name)[k] for k in cells) for name in names
    }
    across, up = _taken(chart.across, columns), _taken(chart.up, rows)
    return replace(chart, across=across, up=up, **changes), gone, len(few)


def _shown_levels(side: MapSide, hidden: _Hidden) -> list[int]:
    if not side.where:
        return list(range(len(side.at)))
    return [k for k, where in enumerate(side.where) if where not in hidden.places]


def _inner(side: MapSide, shown: list[int], known: set[int]) -> list[int]:
    if side.where:
        return [k for k in shown if k in known]
    return [k for k in shown if known and min(known) <= k <= max(known)]


def _taken(side: MapSide, kept: Sequence[int]) -> MapSide:
    edges = side.edges
    if edges and len(kept) < len(side.at):
        edges = edges[kept[0] : kept[-1] + 2] if kept else ()
    return replace(
        side,
        at=tuple(side.at[k] for k in kept),
        edges=edges,
        where=tuple(side.where[k] for k in kept) if side.where else (),
    )
