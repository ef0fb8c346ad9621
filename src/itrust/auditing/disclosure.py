"""Disclosure control: what rests on few rows is taken out of an audit before it is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from itrust._core import FloatArray, InputError
from itrust.auditing.disclosed_charts import (
    about_curve,
    about_rows,
    disclosed_bins,
    disclosed_charts,
)
from itrust.auditing.disclosed_points import disclosed_point
from itrust.auditing.hiding import Hidden
from itrust.auditing.overturning import disclosed_overturning
from itrust.auditing.parts import Overall
from itrust.auditing.validating import disclosed_validation
from itrust.auditing.verdict import Evidence, Judgement, PointBias
from itrust.bias import GroupBias, GroupTable, Slice, SliceTable
from itrust.calibration import (
    CalibrationResult,
    Detectable,
    Finding,
    RegionPower,
    ReliabilityCurve,
)
from itrust.data import Predicate
from itrust.recalibrate import Recalibration, RecalibrationTable
from itrust.tasks import TaskResult

if TYPE_CHECKING:
    from itrust.auditing.audits import Audit
    from itrust.auditing.comparison import Comparison
    from itrust.balance import Resemblance

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
    tasks : int
        Numbers of the user.
    grades : int
        Grades of the user's column; groups of the prediction are among the bins.
    population : int
        Comparisons with the population, and parts of it that no row resembles.
    pairs : int
        Pairs of classes.
    classes : int
        Classes whose rows are not told: those of few rows, and others that would tell them.
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
    tasks: int = 0
    grades: int = 0
    population: int = 0
    pairs: int = 0
    classes: int = 0
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

        These are groups, slices, numbers of the user, findings about such groups and parts, bins of
        the reliability curve, regions of `missed.detectable`, points of curves and of the
        evidence, cells of maps, and slices and bins in the comparison of recalibrators; bars of the
        histogram are joined with their neighbours. A part that leaves out fewer rows is as telling
        as one that holds them.

        What is shown must not tell of few rows by sums and differences either. So the rows of
        groups, slices, numbers and bins are taken together, and where few rows follow from some
        of them, the least important goes, too: slices before bins, bins before the user's grades,
        these before groups, groups before numbers, and small groups before large ones and those
        that are shown to be miscalibrated. Means of a quantity must not tell the values of few
        rows either. Shares of regions, numbers of neighbours, bars of the histogram and curves of
        groups and recalibrations are rounded to multiples of `min_cell` rows and two digits, true
        and false positives of the decision curve to multiples of `min_cell` rows, and the values
        that describe a point to what that many rows have. The largest calibration error is
        withheld where a bin has few rows.

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
        hidden = Hidden.of(audit, self.min_cell)
        kept_groups, few_groups = _groups(groups, hidden)
        kept_slices, few_slices = _slices(slices, hidden)
        kept = replace(audit.diagnosis, groups=kept_groups, slices=kept_slices)
        test, few_findings = _findings(audit.test, hidden)
        overall, few_bins = _overall(audit.overall, hidden)
        detectable, few_regions = _regions(audit.missed.detectable, hidden)
        charts, few_curves, few_points = disclosed_charts(audit.charts, hidden)
        table, few_recalibrations = _recalibration(audit.recalibration, hidden)
        judgement, few_evidence = _judgement(audit.judgement, hidden, test)
        tasks = _tasks(audit.tasks, hidden)
        resemblance, few_compared = _resemblance(audit.resemblance, hidden)
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
            tasks=sum(task.withheld is not None for task in tasks),
            grades=len(hidden.grades),
            population=few_compared,
            shown=len(audit.diagnosis.shown) - len(kept.shown),
        )
        return replace(
            audit,
            overall=overall,
            test=test,
            parts=(
                replace(
                    audit.parts[0], test=test, diagnosis=kept, charts=charts, curve=overall.curve
                ),
            ),
            missed=replace(audit.missed, detectable=detectable),
            judgement=judgement,
            tasks=tasks,
            validation=disclosed_validation(
                audit.validation, hidden, 0 < few_bins < audit.overall.curve.rows.size
            ),
            comparison=_comparison(audit.comparison, hidden),
            recalibration=table,
            resemblance=resemblance,
            robustness=disclosed_overturning(audit.robustness, tasks, hidden),
            withheld=withheld,
            whole=audit,
        )


def _groups(table: GroupTable | None, hidden: Hidden) -> tuple[GroupTable | None, int]:
    if table is None:
        return None, 0
    shown = tuple(group for group in table.groups if group.where not in hidden.places)
    return replace(table, groups=shown), len(table.groups) - len(shown)


def _slices(table: SliceTable, hidden: Hidden) -> tuple[SliceTable, int]:
    shown = tuple(part for part in table.slices if hidden.allows(part, table.n))
    return replace(table, slices=shown), len(table.slices) - len(shown)


def _findings(test: CalibrationResult, hidden: Hidden) -> tuple[CalibrationResult, int]:
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


def _allowed(found: Finding, where: Predicate | None, hidden: Hidden) -> Predicate | None:
    """A part that a finding names, unless it, or what of it the finding is about, is few rows."""
    if where is None or hidden.covers(where) or hidden.covers(found.where & where):
        return None
    return where


def _overall(overall: Overall, hidden: Hidden) -> tuple[Overall, int]:
    """Overall calibration without bins of few rows; without the largest error of such a bin."""
    curve, few = disclosed_bins(overall.curve, hidden.least)
    if hidden.bins:
        few += curve.rows.size
        curve = ReliabilityCurve(**{name: part[:0] for name, part in vars(curve).items()})
    points = hidden.universe.points.p[: hidden.universe.real]
    told = overall.mce if _bins_hold_enough(points, hidden) else math.nan
    return replace(overall, curve=curve, mce=told), few


def _bins_hold_enough(p: FloatArray, hidden: Hidden) -> bool:
    """Whether each of the ten bins that the largest error is taken over holds enough rows."""
    rows, _ = np.histogram(p, 10, (0, 1))
    return not ((rows > 0) & (rows < hidden.universe.least)).any()


def _predicted(row: Recalibration, hidden: Hidden) -> FloatArray:
    """Recalibrated probabilities of the rows at hand."""
    points = hidden.universe.points.take(slice(hidden.universe.real))
    return points.p if row.fitted is None else row.fitted.predict(points.p, points.columns)


def _about_outside(rows: int, least: int) -> int:
    """How many rows lie outside; 0 where they are too few to be told."""
    return 0 if rows < least else int(about_rows(rows, least))


def _regions(found: Detectable | None, hidden: Hidden) -> tuple[Detectable | None, int]:
    if found is None:
        return None, 0
    regions = tuple(
        region
        for k, region in enumerate(found.regions)
        if k == 0  # everywhere
        or not hidden.covers(region.where)
    )
    n = hidden.n
    pairs = tuple(
        pair for pair in found.pairs if not hidden.covers_rows(pair.where, round(pair.share * n))
    )
    few = len(found.regions) - len(regions) + len(found.pairs) - len(pairs)
    told = [tuple(_about(region, hidden) for region in some) for some in (regions, pairs)]
    return replace(found, regions=told[0], pairs=told[1]), few


def _about(region: RegionPower, hidden: Hidden) -> RegionPower:
    """A region with its share in multiples of the fewest rows, on the same side of "small"."""
    if hidden.least == 1 or region.share == 1:
        return region
    unit = hidden.least / hidden.n
    nearest = round(region.share / unit)
    ways = (replace(region, share=k * unit) for k in (nearest, nearest + 1, nearest - 1))
    return next(way for way in ways if way.is_small == region.is_small)


def _tasks(tasks: Sequence[TaskResult], hidden: Hidden) -> tuple[TaskResult, ...]:
    return tuple(
        task.without_values(hidden.least) if task.task in hidden.tasks else task for task in tasks
    )


def _resemblance(found: Resemblance | None, hidden: Hidden) -> tuple[Resemblance | None, int]:
    if found is None:
        return None, 0
    shown = found.disclosed(hidden.least)
    few = len(found.compared) - len(shown.compared) + len(found.gaps) - len(shown.gaps)
    return shown, few


def _comparison(found: Comparison | None, hidden: Hidden) -> Comparison | None:
    if found is None:
        return None
    return replace(
        found,
        models=tuple(replace(model, tasks=_tasks(model.tasks, hidden)) for model in found.models),
        differences=tuple(part for part in found.differences if part.task not in hidden.tasks),
    )


def _judgement(
    judgement: Judgement, hidden: Hidden, test: CalibrationResult
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
                kept.append(disclosed_point(item, hidden))
        elif isinstance(item, Finding):
            kept += [shown[item.name]] if item.name in shown else []
        elif isinstance(item, TaskResult):
            kept += [] if item.task in hidden.tasks else [item]
        elif isinstance(item, GroupBias):
            kept += [] if item.where in hidden.places else [item]
        elif not isinstance(item, Slice) or hidden.allows(item, hidden.n):
            kept.append(item)
    missed = judgement.overlooked
    if missed is not None and missed.where is not None and hidden.covers(missed.where):
        missed = replace(missed, where=None)
    if missed is not None and missed.share < 1:
        rows = about_rows(missed.share * hidden.n, hidden.least)
        missed = replace(missed, share=min(rows / hidden.n, 1.0))
    return replace(judgement, evidence=tuple(kept), overlooked=missed), few


def _recalibration(
    table: RecalibrationTable | None, hidden: Hidden
) -> tuple[RecalibrationTable | None, int]:
    if table is None:
        return None, 0
    gone = [
        k
        for k, row in enumerate(table.recalibrations)
        if row.slice is not None and not hidden.allows(row.slice, table.test_rows)
    ]
    curves = [disclosed_bins(row.curve, hidden.least) for row in table]
    rows = tuple(
        replace(
            row,
            slice=None if k in gone else row.slice,
            curve=about_curve(curves[k][0], hidden.least),
            mce=row.mce if _bins_hold_enough(_predicted(row, hidden), hidden) else math.nan,
            outside=_about_outside(row.outside, hidden.least),
            at_edge=_about_outside(row.at_edge, hidden.least),
        )
        for k, row in enumerate(table)
    )
    return replace(table, recalibrations=rows), len(gone) + sum(few for _, few in curves)
