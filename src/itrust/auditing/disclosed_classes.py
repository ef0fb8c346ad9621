"""Disclosure control for several classes: few rows of a class in a group are not told.

Rows of a group times the rate of a class are a count, so a group is a row of a table with one
column for each class. Cells of few rows go, and others with them until no row and no column of the
table gives them away by its sum; the same for rows of a group that are not of the class.

A class that has few rows in all is joined with others, until they have enough together: nothing
that depends on which of them a label is, but p-values and the directions of findings, is told of
these. Whatever is told of the other classes and of all rows then tells of the joined ones together
only, so they are one column of the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from itrust._core import BoolArray, IntArray
from itrust.auditing.comparison import Comparison
from itrust.auditing.disclosed_charts import disclosed_bins
from itrust.auditing.disclosed_points import shared_step
from itrust.auditing.disclosure import Disclosure, Withheld
from itrust.auditing.pairs import ClassMatrix
from itrust.auditing.parts import OutcomePart
from itrust.auditing.verdict import ClassEvidence, Evidence, PointBias
from itrust.bias import GroupBias, PartBias, Slice
from itrust.calibration import Finding, TakenFor
from itrust.data import PREDICTION, Everywhere, MulticlassSample, Points, Predicate
from itrust.tasks import Indicator, Ratio, TaskResult

if TYPE_CHECKING:
    from itrust.auditing.audits import Audit

NOT_TOLD = -1  # a number of rows that is withheld; null in JSON
NEAR = 1e-7


def disclosed_classes(audit: Audit, min_cell: int) -> Audit:
    """Take out of an audit what fewer than `min_cell` rows of a class or of others carry."""
    least = Disclosure(min_cell).min_cell  # refuses what is no number of rows
    if audit.whole is not None and audit.withheld is not None:
        return disclosed_classes(audit.whole, max(least, audit.withheld.min_cell))
    whole_pairs = audit.pairs
    assert whole_pairs is not None
    rule = _Rule.of(audit, least)
    kept = tuple(rule.part(k, part) for k, part in enumerate(audit.parts))
    pairs = rule.pairs(whole_pairs)
    evidence = [own for item in audit.evidence for own in rule.evidence(item)]
    tasks = tuple(rule.task(task) for task in audit.tasks)
    missed = audit.missed.groups
    if missed is not None and missed.where is not None and rule.is_few(missed.where):
        missed = replace(missed, where=None)
    unseen = audit.judgement.overlooked
    if unseen is not None and unseen.where is not None and rule.is_few(unseen.where):
        unseen = replace(unseen, where=None)
    top, few_bins = disclosed_bins(audit.overall.curve, least)
    classes = tuple(part.test for part in kept)

    def gone(name: str) -> int:
        """How many entries of one kind fewer there are."""
        counts = {
            "groups": lambda part: len(part.diagnosis.groups or ()),
            "slices": lambda part: len(part.diagnosis.slices),
            "findings": lambda part: len(part.test.findings),
            "bins": lambda part: part.curve.rows.size,
            "shown": lambda part: len(part.diagnosis.shown),
        }
        return int(sum(map(counts[name], audit.parts)) - sum(map(counts[name], kept)))

    places = len(whole_pairs.places) - len(pairs.places)
    withheld = Withheld(
        min_cell=least,
        groups=gone("groups"),
        slices=gone("slices"),
        findings=gone("findings"),
        bins=gone("bins") + few_bins,
        pairs=len(whole_pairs.pairs) - len(pairs.pairs) + places,
        points=sum(_is_point(own) for own in audit.evidence) - sum(map(_is_point, evidence)),
        tasks=sum(task.withheld is not None for task in tasks),
        classes=len(rule.joined),
        shown=gone("shown"),
    )
    return replace(
        audit,
        parts=kept,
        test=replace(
            audit.test,
            classes=classes,
            pairs=tuple(own for own in audit.test.pairs if rule.taken(own)),
            together=rule.findings(audit.test.together),
        ),
        overall=replace(audit.overall, curve=top),
        pairs=pairs,
        missed=replace(audit.missed, groups=missed),
        judgement=replace(audit.judgement, evidence=tuple(evidence), overlooked=unseen),
        tasks=tasks,
        comparison=rule.comparison(audit.comparison),
        withheld=withheld,
        whole=audit,
    )


def _is_point(item: Evidence) -> bool:
    return isinstance(item, ClassEvidence) and isinstance(item.item, PointBias)


@dataclass(frozen=True, eq=False)
class _Rule:
    """What may not be shown."""

    least: int
    points: Points
    sample: MulticlassSample
    codes: IntArray
    classes: tuple[Any, ...]
    cells: frozenset[tuple[Predicate, int]]  # groups of a class
    masks: frozenset[tuple[bytes, int]]  # the same, by their rows: other words do not help
    joined: frozenset[int]  # classes that are told together only

    @classmethod
    def of(cls, audit: Audit, least: int) -> _Rule:
        sample = audit.sample
        points = sample.points
        k = len(audit.classes)
        totals = np.bincount(sample.codes, minlength=k)
        joined = joined_classes(totals, least)
        apart = [j for j in range(k) if j not in joined and totals[j] > 0]
        cells: set[tuple[Predicate, int]] = set()
        masks: set[tuple[bytes, int]] = set()
        table = audit.parts[0].diagnosis.groups
        for _, some in groupby(table or (), key=lambda group: group.names):
            places = [group.where for group in some]
            inside = [np.asarray(place.rows(points), dtype=bool) for place in places]
            counts = np.array([np.bincount(sample.codes[rows], minlength=k) for rows in inside])
            columns = [counts[:, j] for j in apart]
            columns += [counts[:, sorted(joined)].sum(axis=1)] if joined else []
            few = withheld_cells(np.column_stack(columns), least)
            for i, place in enumerate(places):
                hidden = {own for own, off in zip(apart, few[i], strict=False) if off} | joined
                cells |= {(place, j) for j in hidden}
                masks |= {(side.tobytes(), j) for j in hidden for side in (inside[i], ~inside[i])}
        return cls(
            least,
            points,
            sample,
            sample.codes,
            audit.classes,
            frozenset(cells),
            frozenset(masks),
            joined,
        )

    def inside(self, where: Predicate, k: int | None) -> BoolArray:
        """Rows that are meant; a prediction is that of a class."""
        points = self.points
        if k is not None and PREDICTION in where.names:
            points = self.sample.one_class(self.classes[k]).points
        return np.asarray(where.rows(points))

    def is_few(self, where: Predicate, k: int | None = None) -> bool:
        """Whether few rows lie inside, or outside."""
        if isinstance(where, Everywhere) or self.least == 1:
            return False
        return self._are_few(self.inside(where, k))

    def _are_few(self, inside: BoolArray) -> bool:
        rows = int(inside.sum())
        return rows < self.least or 0 < inside.size - rows < self.least

    def _tells(self, inside: BoolArray, k: int) -> bool:
        """Whether few rows of a class, or of others, lie inside or outside."""
        own = self.codes == k
        counts = [int((inside & own).sum()), int((inside & ~own).sum())]
        rest = [int(own.sum()) - counts[0], int((~own).sum()) - counts[1]]
        return min(counts) < self.least or any(0 < count < self.least for count in rest)

    def part(self, k: int, part: OutcomePart) -> OutcomePart:
        if self.least == 1:
            return part
        groups = part.diagnosis.groups
        if groups is not None:
            shown = tuple(own for own in groups if (own.where, k) not in self.cells)
            groups = replace(groups, groups=shown)
        slices = part.diagnosis.slices
        kept = self._slices(k, slices.slices, groups or ())
        curve, _ = disclosed_bins(part.curve, self.least)
        if k in self.joined:
            nothing = slice(0, 0)
            bare = {name: values[nothing] for name, values in vars(curve).items()}
            part = replace(
                part,
                rows=None,
                mean=replace(part.mean, observed=nan, lower=nan, upper=nan, pvalue=nan),
                ece=nan,
            )
            curve, kept = replace(curve, **bare), ()
        return replace(
            part,
            curve=curve,
            test=self.findings(part.test),
            diagnosis=replace(part.diagnosis, groups=groups, slices=replace(slices, slices=kept)),
        )

    def _slices(
        self, k: int, slices: Sequence[Slice], groups: Iterable[GroupBias]
    ) -> tuple[Slice, ...]:
        """Slices that are enough, and that no difference from others tells few rows of."""
        others = [self.inside(group.where, k) for group in groups]
        mine = self.codes == k
        kept = []
        for own in slices:
            inside = self.inside(own.where, k)
            nested = [
                inside ^ other
                for other in others
                if not (inside & ~other).any() or not (other & ~inside).any()
            ]
            near = any(
                0 < int((rows & side).sum()) < self.least
                for rows in nested
                for side in (mine, ~mine)
            )
            if not (self._tells(inside, k) or near or self._names_hidden(own.where, inside, k)):
                kept.append(own)
                others.append(inside)
        return tuple(kept)

    def _names_hidden(self, where: Predicate, inside: BoolArray, k: int) -> bool:
        """Whether these are the rows of a cell that is not told, or a part of it."""
        if k in self.joined or (np.asarray(inside, dtype=bool).tobytes(), k) in self.masks:
            return True
        return any((leaf, k) in self.cells for leaf in where.leaves())

    def findings(self, test: Any) -> Any:
        k = self.classes.index(test.name) if test.name in self.classes else None
        kept = tuple(
            replace(
                own,
                too_low=self._allowed(own.too_low, k),
                too_high=self._allowed(own.too_high, k),
            )
            for own in test.findings
            if not self.is_few(own.where, k)
        )
        names = {own.name for own in kept}
        kept = tuple(replace(own, alike=tuple(n for n in own.alike if n in names)) for own in kept)
        if k in self.joined:
            test = replace(test, positives=NOT_TOLD, statistic=nan)
        return replace(test, findings=kept)

    def _allowed(self, where: Predicate | None, k: int | None) -> Predicate | None:
        return None if where is None or self.is_few(where, k) else where

    def taken(self, pair: TakenFor) -> bool:
        """Whether a pair of classes may be told where it shows."""
        if self.least == 1:
            return True
        codes = [self.classes.index(name) for name in (pair.actual, pair.predicted)]
        if self.joined & set(codes):
            return False
        hidden = any((leaf, k) in self.cells for leaf in pair.where.leaves() for k in codes)
        few = any(self._tells(self.inside(pair.where, k), k) for k in codes)
        whole = isinstance(pair.where, Everywhere)
        return whole or not (hidden or few or self.is_few(pair.where))

    def comparison(self, found: Comparison | None) -> Comparison | None:
        """Models on the same rows, without numbers that few rows stand behind."""
        if found is None or self.least == 1:
            return found
        models = tuple(
            replace(
                model,
                tasks=tuple(self.task(task) for task in model.tasks),
                test=self._test(model.test),
            )
            for model in found.models
        )
        return replace(found, models=models)

    def _test(self, test: Any) -> Any:
        return replace(
            test,
            classes=tuple(self.findings(own) for own in test.classes),
            together=self.findings(test.together),
            pairs=tuple(own for own in test.pairs if self.taken(own)),
        )

    def pairs(self, found: ClassMatrix) -> ClassMatrix:
        """The matrix without classes of few rows, and groups without cells that are hidden."""
        if self.least == 1:
            return found
        gone = {self.classes[k] for k in self.joined}
        code = {name: k for k, name in enumerate(self.classes)}
        given, counts = found.given.copy(), found.rows.copy()
        given[sorted(self.joined)] = nan
        counts[sorted(self.joined)] = NOT_TOLD
        rows = [
            own
            for own in found.places
            if not {(own.where, code[own.label]), (own.where, code[own.taken_for])} & self.cells
        ]
        return replace(
            found,
            pairs=tuple(pair for pair in found.pairs if pair.label not in gone),
            given=given,
            rows=counts,
            places=tuple(rows),
        )

    def evidence(self, item: Evidence) -> list[Evidence]:
        """The piece of evidence as it may be shown, or nothing."""
        if self.least == 1 or not isinstance(item, ClassEvidence):
            if isinstance(item, TaskResult):
                told = self.task(item)
                return [] if told.withheld is not None else [told]
            return [item]
        own = item.item
        k = self.classes.index(item.name)
        if isinstance(own, TakenFor):
            return [item] if self.taken(own) else []
        if k in self.joined and not isinstance(own, Finding):
            return []
        if isinstance(own, PointBias):
            point = self._point(own, k)
            return [] if point is None else [replace(item, item=point)]
        if isinstance(own, Finding):
            if self.is_few(own.where, k):
                return []
            low, high = self._allowed(own.too_low, k), self._allowed(own.too_high, k)
            return [replace(item, item=replace(own, too_low=low, too_high=high))]
        if isinstance(own, PartBias):
            hidden = (own.where, k) in self.cells
            if isinstance(own, Slice):
                inside = self.inside(own.where, k)
                hidden = self._names_hidden(own.where, inside, k) or self._tells(inside, k)
            return [] if hidden else [item]
        return [item]

    def _point(self, point: PointBias, k: int) -> PointBias | None:
        """A point by the levels that enough rows share; numbers of one row are not told."""
        if point.neighbours < self.least:
            return None
        kept = tuple(own for own in point.coordinates if not self.is_few(own.where, k))
        step = shared_step(self.sample.p[:, k], point.prediction, self.least)
        about = point.prediction if step == 0 else round(point.prediction / step) * step
        rows = self.least * max(round(point.neighbours / self.least), 1)
        return replace(point, coordinates=kept, prediction=float(about), neighbours=float(rows))

    def task(self, task: TaskResult) -> TaskResult:
        """A number, unless few rows of the class that it names stand behind it."""
        if self.least == 1 or task.withheld is not None:
            return task
        for leaf in task.task.leaves():
            own = [k for k, name in enumerate(self.classes) if name == leaf.label]
            inside = self.inside(leaf.where, own[0] if own else None)
            parts = [inside]
            if isinstance(leaf, Ratio) and isinstance(leaf.quantity, Indicator):
                asked = self.inside(leaf.quantity.where, None)
                parts += [side for side in (inside & asked, inside & ~asked) if side.any()]
            codes = own or range(len(self.classes))
            if any(self._names_hidden(leaf.where, inside, k) for k in codes):
                return task.without_values(self.least)
            if self._are_few(inside) or any(self._tells(p, k) for p in parts for k in codes):
                return task.without_values(self.least)
        return task


def joined_classes(totals: IntArray, least: int) -> frozenset[int]:
    """Classes that may be told together only: those of few rows, and others until these are enough.

    The rows of all classes sum to the rows that are known, so one class of few rows takes another
    with it. That no row at all is of a class tells of no row.

    Examples
    --------
    >>> import numpy as np
    >>> sorted(joined_classes(np.array([500, 3, 80, 200]), 10))
    [1, 2]
    >>> joined_classes(np.array([500, 0, 80, 200]), 10)
    frozenset()
    """
    few = [int(k) for k in np.flatnonzero((totals > 0) & (totals < least))]
    if not few:
        return frozenset()
    for k in np.argsort(totals, kind="stable").tolist():
        if len(few) > 1 and int(totals[few].sum()) >= least:
            break
        if k not in few and totals[k] > 0:
            few.append(int(k))
    return frozenset(few)


def withheld_cells(counts: IntArray, least: int) -> BoolArray:
    """Which cells of a table of groups by classes may not be told.

    A cell goes where it, or the rest of its row, holds fewer than `least` rows. Then the smallest
    others go until the withheld cells of every row and every column are none, or at least two with
    enough rows in sum, and no withheld cell follows from all sums together.

    Examples
    --------
    >>> import numpy as np
    >>> withheld_cells(np.array([[30, 2, 40], [50, 60, 70], [15, 90, 99]]), 10).sum(axis=1)
    array([2, 2, 0])
    """
    counts = np.asarray(counts)
    if least <= 1:
        return np.zeros(counts.shape, dtype=bool)
    rest = counts.sum(axis=1, keepdims=True) - counts
    gone = (counts < least) | (rest < least)
    while _hide_alone(counts, gone, least) or _hide_beside(counts, gone):
        pass
    return np.asarray(gone)


def _hide_alone(counts: IntArray, gone: BoolArray, least: int) -> bool:
    """Hide one more cell of every row and column whose sum would tell; whether there was one."""
    added = False
    for axis in (0, 1):
        table, hidden = (part if axis else part.T for part in (counts, gone))
        for row, off in zip(table, hidden, strict=True):
            if off.any() and (off.sum() < 2 or row[off].sum() < least) and not off.all():
                off[np.where(off, np.iinfo(np.int64).max, row).argmin()] = True
                added = True
    return added


def _hide_beside(counts: IntArray, gone: BoolArray) -> bool:
    """Hide one more cell beside a hidden one that all sums together tell; whether there was one.

    Sums tell a hidden cell if the equations of rows and columns have it in their row space.
    """
    places = np.argwhere(gone)
    if not len(places):
        return False
    sums = np.zeros((sum(counts.shape), len(places)))
    sums[places[:, 0], np.arange(len(places))] = 1
    sums[counts.shape[0] + places[:, 1], np.arange(len(places))] = 1
    told = np.flatnonzero(np.einsum("ij,ji->i", np.linalg.pinv(sums), sums) > 1 - NEAR)
    for i, j in places[told]:
        row = np.where(gone[i], np.iinfo(np.int64).max, counts[i])
        column = np.where(gone[:, j], np.iinfo(np.int64).max, counts[:, j])
        if not gone[i].all() and row.min() <= column.min():
            gone[i, row.argmin()] = True
            return True
        if not gone[:, j].all():
            gone[column.argmin(), j] = True
            return True
    return False
