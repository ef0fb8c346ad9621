"""Which parts of the rows an audit may not tell of: few rows, and what would give them away."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from itrust._core import BoolArray, FloatArray, IntArray
from itrust.auditing.differencing import Told, Universe, block_of, first_to_go, telling_values
from itrust.bias import GroupBias, GroupTable, Slice
from itrust.calibration import validation
from itrust.data import MISSING_LEVEL, Level, OneOf, Points, Predicate
from itrust.tasks import Coefficient, Indicator, Leaf, Quantity, Ratio, Task

if TYPE_CHECKING:
    from itrust.auditing.audits import Audit

BINS = "bins"


@dataclass(frozen=True, eq=False)
class Hidden:
    """What is left out of an audit."""

    least: int
    rare: frozenset[Predicate]
    places: frozenset[Predicate]
    slices: frozenset[Predicate]
    tasks: frozenset[Task]
    bins: bool
    grades: frozenset[str]
    universe: Universe
    n: int
    known: Mapping[Predicate, int]

    @classmethod
    def of(cls, audit: Audit, least: int) -> Hidden:
        """Decide for groups, slices, numbers and bins together."""
        table = audit.diagnosis.groups
        groups = () if table is None else table.groups
        graded_by = None if audit.validation is None else audit.validation.graded_by
        universe = Universe.of(audit.sample.points, audit.n, least, graded_by)
        choice = _Withholding(audit, least, universe)
        gone = choice.made()
        return cls(
            least=least,
            rare=frozenset(group.where for group in groups if group.rows < least),
            places=frozenset(group.where for group in groups if group.where in gone),
            slices=frozenset(part.where for part in choice.slices if part.where in gone),
            tasks=frozenset(task for task in choice.tasks if task in gone),
            bins=BINS in gone,
            grades=frozenset(own.where.name for own in choice.grades if own.where in gone),
            universe=universe,
            n=audit.n,
            known={group.where: group.rows for group in groups},
        )

    def covers(self, where: Predicate) -> bool:
        """Whether a part of the rows may not be named: it, or all others, would be few."""
        if where in self.known:
            return self.covers_rows(where, self.known[where])
        at_hand = where.rows(self.universe.points)[: self.universe.real]
        inside, outside = int(at_hand.sum()), int((~at_hand).sum())
        few = self.universe.least
        return self._tells_of_hidden(where) or inside < few or 0 < outside < few

    def covers_rows(self, where: Predicate, inside: int) -> bool:
        """The same, where it is known how many rows lie inside."""
        few = inside < self.least or 0 < self.n - inside < self.least
        return few or self._tells_of_hidden(where)

    def _tells_of_hidden(self, where: Predicate) -> bool:
        return where in self.places or not self.rare.isdisjoint(where.leaves())

    def allows(self, part: Slice, n: int) -> bool:
        """Whether a slice of n rows may be shown; one that leaves out few rows tells them, too."""
        searched = part.rows - part.judged_on
        return (
            min(part.rows, part.judged_on) >= self.least
            and not 0 < searched < self.least
            and not 0 < n - part.rows < self.least
            and part.where not in self.places | self.slices
            and self.rare.isdisjoint(part.where.leaves())
        )


@dataclass(frozen=True)
class GradeOf:
    """Rows of one grade."""

    by: str
    name: str

    def rows(self, points: Points) -> BoolArray:
        """Mark the rows."""
        column = next(own for own in points.columns if own.name == self.by)
        values = np.unique(column.values)
        own = [value for value in values if validation.grade_name(column, value) == self.name]
        marked = np.isin(column.values, own)
        if self.name == MISSING_LEVEL:
            marked |= column.missing
        return np.asarray(marked)


@dataclass(frozen=True)
class GradePart:
    """A grade of the user's column among what is to be shown."""

    names: tuple[str, ...]
    where: GradeOf
    rows: int


def too_few(rows: Sequence[int], least: int, needed: Container[int] = ()) -> set[int]:
    """Positions to leave out of parts that add up to a known total; `needed` ones if need be.

    The total less all that is shown tells how many rows are left out, so these are enough, too.

    >>> sorted(too_few([400, 3, 60], 10)), sorted(too_few([400, 3, 4], 10)), too_few([400], 10)
    ([1, 2], [0, 1, 2], set())
    >>> sorted(too_few([400, 3, 60], 10, needed={2})), sorted(too_few([400, 6, 4], 10))
    ([0, 1], [1, 2])
    """
    few = {k for k, number in enumerate(rows) if number < least}
    others = sorted(set(range(len(rows))) - few, key=lambda k: (k in needed, rows[k]))
    while others and 0 < sum(rows[k] for k in few) < least:
        few.add(others.pop(0))
    return few


@dataclass(eq=False)
class _Withholding:
    """What is to be shown, the most important first; and what of it goes."""

    audit: Audit
    least: int
    universe: Universe
    _marks: dict[Predicate | GradeOf, BoolArray] = field(default_factory=dict)

    def made(self) -> set[object]:
        """The groups, slices and numbers that are left out, by predicate and task."""
        gone: set[object] = {*self._rare_groups(), *self._few_tasks(), *self._few_slices()}
        gone.update(self._few_grades())
        while (more := first_to_go(self._told(gone), self.universe)) is not None:
            gone.add(more)
        while (one := self._telling_task(gone)) is not None:
            gone.add(one)
        return gone

    @property
    def groups(self) -> list[GroupBias]:
        """Those that are shown to be off first, then the largest."""
        table = self.audit.diagnosis.groups
        if table is None:
            return []
        return sorted(table, key=lambda own: (own.pvalue > table.alpha, -own.rows))

    @property
    def slices(self) -> list[Slice]:
        """Those of the diagnosis, then those that recalibration left."""
        table, after = self.audit.diagnosis.slices, self.audit.recalibration
        found = sorted(table, key=lambda own: own.pvalue > table.alpha)
        left = [] if after is None else [row.slice for row in after if row.slice is not None]
        return [*found, *left]

    @property
    def tasks(self) -> list[Task]:
        """The user's numbers, in their order."""
        return [result.task for result in self.audit.tasks]

    @property
    def _graded_by(self) -> str | None:
        found = self.audit.validation
        return None if found is None else found.graded_by

    @cached_property
    def grades(self) -> list[GradePart]:
        """Grades of the user's column, the largest first."""
        found, by = self.audit.validation, self._graded_by
        if found is None or by is None:
            return []
        parts = [GradePart((by,), GradeOf(by, own.name), own.rows) for own in found.grades]
        return sorted(parts, key=lambda own: -own.rows)

    def _few_grades(self) -> Iterator[GradeOf]:
        """By the exact numbers of rows, as groups; rows that do not count are in no grade."""
        rows = [own.rows for own in self.grades]
        if rows:
            few = too_few([*rows, self.audit.n - sum(rows)], self.least)
            yield from (own.where for k, own in enumerate(self.grades) if k in few)

    def _rows(self, where: Predicate | GradeOf) -> BoolArray:
        if where not in self._marks:
            self._marks[where] = where.rows(self.universe.points)
        return self._marks[where]

    def _rare_groups(self) -> Iterator[Predicate]:
        """By the exact numbers of rows, covariate by covariate; the total is that of all rows."""
        table: GroupTable | None = self.audit.diagnosis.groups
        alpha = 0.0 if table is None else table.alpha
        by_names = sorted(self.groups, key=lambda own: own.names)
        for _, some in groupby(by_names, key=lambda own: own.names):
            own = list(some)
            rows = [group.rows for group in own]
            other = self.audit.n - sum(rows)  # without a value, or of a level that is no group
            needed = {k for k, group in enumerate(own) if group.pvalue <= alpha}
            few = too_few([*rows, other], self.least, {*needed})
            yield from (own[k].where for k in few if k < len(own))

    def _few_slices(self) -> Iterator[Predicate]:
        """Slices of few rows, and those that differ by few judged rows from one around them."""
        before: list[Slice] = []
        for part in self.slices:
            own = self._rows(part.where)
            near = (
                0 < abs(other.judged_on - part.judged_on) < self.least
                for other in before
                if _nested(own, self._rows(other.where))
            )
            if self.universe.is_few(own) or self._names_rare(part.where) or any(near):
                yield part.where
            else:
                before.append(part)

    def _few_tasks(self) -> Iterator[Task]:
        for task in self.tasks:
            rare = any(
                self._names_rare(where) for leaf in task.leaves() for where in leaf.predicates()
            )
            if rare or any(self._rests_on_few(leaf) for leaf in task.leaves()):
                yield task

    def _names_rare(self, where: Predicate) -> bool:
        """Whether a predicate tells rows of a rare group apart, which may not be at hand."""
        table: GroupTable | None = self.audit.diagnosis.groups
        rare = [own.where for own in table or () if own.rows < self.least]
        return any(_names_level(leaf, one) for leaf in where.leaves() for one in rare)

    def _rests_on_few(self, leaf: Leaf) -> bool:
        """Whether few rows carry a number, or the values of few rows do all but a constant of it.

        A coefficient rests on the rows of every level, and on those that differ from the most
        frequent value, in all columns of its regression: its value would tell what these have.
        """
        if isinstance(leaf, Ratio):
            return self._ratio_on_few(leaf)
        inside = self._rows(leaf.where)[: self.universe.real]
        if not inside.any() or (self.universe.is_few(inside) and not inside.all()):
            return True
        if not isinstance(leaf, Coefficient):
            return True
        if any(self._names_rare(where) for where in self._levels(leaf)):
            return True
        return any(
            self._values_of_few(column.of(self.audit.sample.points)[inside])
            for column in self._columns(leaf)
        ) or any(
            self.universe.is_few(self._rows(where) & self._rows(leaf.where))
            for where in self._levels(leaf)
        )

    def _columns(self, leaf: Coefficient) -> tuple[Quantity, ...]:
        """The columns of a regression on the rows at hand."""
        return tuple(own.quantity for own in leaf.columns_on(self.audit.sample.points))

    def _levels(self, leaf: Coefficient) -> tuple[Predicate, ...]:
        """All levels of the categories of a regression, those that others are compared with too."""
        return tuple(own.where for own in leaf.levels_on(self.audit.sample.points))

    def _values_of_few(self, values: FloatArray) -> bool:
        """Whether all but few rows have the same value."""
        _, often = np.unique(values, return_counts=True)
        return 0 < values.size - int(often.max()) < self.universe.least

    def _ratio_on_few(self, ratio: Ratio) -> bool:
        at_hand = slice(self.universe.real)
        inside = self._rows(ratio.where)[at_hand]
        counted = inside & (self.audit.sample.y > 0) if ratio.among_positives else inside
        if self.universe.is_few(inside) and not inside.all():  # all rows are told anyway
            return True
        if not inside.any() or (ratio.among_positives and self.universe.is_few(counted)):
            return True
        values = ratio.quantity.of(self.audit.sample.points)[counted if counted.any() else inside]
        return self._values_of_few(values)

    def _told(self, gone: Container[object]) -> list[Told]:
        tasks = [
            Told(task, [part for leaf in task.leaves() for part in self._parts(leaf)])
            for task in self.tasks
            if task not in gone
        ]
        slices = [
            Told(part.where, [self._rows(part.where)])
            for part in self.slices
            if part.where not in gone
        ]
        groups = self._told_groups([own for own in self.groups if own.where not in gone], gone)
        grades = self._told_groups([own for own in self.grades if own.where not in gone], gone)
        bins = [] if BINS in gone else self._bins()
        return [*tasks, *groups, *grades, *bins, *slices]

    def _telling_task(self, gone: Container[object]) -> Task | None:
        """The last of the means that together tell values of few rows."""
        shown = [task for task in self.tasks if task not in gone]
        means = [
            (task, leaf.where, quantity)
            for task in shown
            for leaf in task.leaves()
            for quantity in self._averaged(leaf)
        ]
        if not means:
            return None
        real, sample = self.universe.real, self.audit.sample
        parts = [part[:real] for told in self._told(gone) for part in told.parts]
        parts.append(np.ones(real, dtype=bool))
        inside = np.array([self._rows(where)[:real] for _, where, _ in means])
        quantities = np.array([quantity.of(sample.points) for _, _, quantity in means])
        values = np.where(inside, np.nan_to_num(quantities), 0.0)
        for stand_in in (sample.y, sample.p):
            used = telling_values(
                values * stand_in, np.array(parts) * stand_in, self.universe.least
            )
            if used.any():
                return means[int(np.flatnonzero(used)[-1])][0]
        return None

    def _averaged(self, leaf: Leaf) -> list[Quantity]:
        """Quantities whose sums with labels a number tells: what is averaged, or all columns."""
        if isinstance(leaf, Coefficient):
            return list(self._columns(leaf))
        own = leaf.quantity if isinstance(leaf, Ratio) else None
        return [] if own is None or isinstance(own, Indicator) else [own]

    def _parts(self, leaf: Leaf) -> list[BoolArray]:
        """The rows that a number counts, and those that it counts 1 if all others count 0.

        A regression tells the rates of all cells that its columns of two values mark.
        """
        inside = self._rows(leaf.where)
        if isinstance(leaf, Ratio) and isinstance(leaf.quantity, Indicator):
            return [inside, inside & self._rows(leaf.quantity.where)]
        found = [inside]
        for quantity in self._averaged(leaf):
            values = quantity.of(self.audit.sample.points)
            two = np.unique(values[inside[: self.universe.real]])
            if two.size == 2:
                with np.errstate(all="ignore"):
                    everywhere = quantity.of(self.universe.points)
                found.append(inside & (everywhere == two[1]))
        return found

    def _told_groups(
        self, groups: Sequence[GroupBias | GradePart], gone: Container[object]
    ) -> list[Told]:
        """Groups; those of a covariate that nothing else tells apart are told as one.

        Levels of a covariate that no slice and no number names can only be told together, and there
        may be hundreds.
        """
        others = [part.where for part in self.slices if part.where not in gone]
        others += [
            where
            for task in self.tasks
            if task not in gone
            for number in task.leaves()
            for where in self._asked(number)
        ]
        leaves = {leaf for where in others for leaf in where.leaves()}
        alike: dict[object, list[GroupBias | GradePart]] = {}
        for group in groups:
            own = self._rows(group.where)
            at = int(np.argmax(own))
            read = [leaf for leaf in leaves if leaf.names & frozenset(group.names)]
            key = (
                group.names,
                *(bool(self._rows(leaf)[at]) for leaf in read),
                *self._beside(group, at),
                *self._grade_at(group, at),
            )
            alike.setdefault(key, []).append(group)
        return [
            Told(some[-1].where, [np.any([self._rows(own.where) for own in some], axis=0)])
            for some in alike.values()
        ]

    def _asked(self, leaf: Leaf) -> Iterator[Predicate]:
        """What a number asks of rows; a regression asks for every level."""
        yield from leaf.predicates()
        if isinstance(leaf, Coefficient):
            yield from self._levels(leaf)

    def _grade_at(self, group: GroupBias | GradePart, at: int) -> list[str]:
        """The grade of a row, where bins or groups tell grades apart."""
        by = self._graded_by
        if by is None or by not in group.names or not self._grades_are_told_apart:
            return []
        return [own.where.name for own in self.grades if self._rows(own.where)[at]]

    @cached_property
    def _grades_are_told_apart(self) -> bool:
        """Whether groups of the same column are shown, or bins that share few rows with a grade."""
        if any(self._graded_by in own.names for own in self.groups):
            return True
        real = slice(self.universe.real)
        bins = np.array([part[real] for told in self._bins() for part in told.parts], dtype=float)
        grades = np.array([self._rows(own.where)[real] for own in self.grades], dtype=float)
        return bool(bins.size and (bins @ grades.T < self.universe.least).any())

    def _beside(self, group: GroupBias | GradePart, at: int) -> list[float]:
        """What other columns say of its rows that are told by its own, such as the region."""
        points = self.universe.points
        blocks = self._blocks
        own = {blocks[k] for k, column in enumerate(points.columns) if column.name in group.names}
        return [
            float(column.values[at])
            for column, block in zip(points.columns, blocks, strict=True)
            if block in own and blocks.count(block) > 1 and column.name not in group.names
        ]

    @cached_property
    def _blocks(self) -> list[int]:
        return block_of(self.audit.sample.points)

    def _bins(self) -> list[Told]:
        """Bins of the reliability curve, where they count the rows at hand."""
        rows = self.audit.overall.curve.rows
        p = self.universe.points.p
        if self.universe.real < self.audit.n and self._graded_by is not None:
            ends = validation.edges_of(self.audit.sample)  # which grades may nearly share
        elif self.universe.real < self.audit.n or rows.sum() < self.audit.n:
            return []
        else:
            ends = np.sort(p[: self.universe.real])[np.cumsum(rows) - 1]  # the largest of each bin
        few = too_few(rows.tolist(), self.least)
        bins: IntArray = np.searchsorted(ends, p)
        parts = [bins == k for k in range(rows.size) if k not in few]
        return [Told(BINS, parts)] if parts else []


def _nested(one: BoolArray, other: BoolArray) -> bool:
    return not (one & ~other).any() or not (other & ~one).any()


def _names_level(leaf: Predicate, group: Predicate) -> bool:
    """Whether a leaf names the value of a group, on the same column."""
    if leaf == group:
        return True
    if not isinstance(group, Level) or leaf.names != group.names:
        return False
    named = leaf.levels if isinstance(leaf, OneOf) else (getattr(leaf, "value", None),)
    return group.level in named
