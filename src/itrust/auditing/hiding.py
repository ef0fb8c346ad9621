"""Which parts of the rows an audit may not tell of: few rows, and what would give them away."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from itrust._core import BoolArray, IntArray
from itrust.auditing.charts import HistogramChart
from itrust.auditing.differencing import Told, Universe, first_to_go
from itrust.bias import GroupBias, GroupTable, Slice
from itrust.data import Predicate
from itrust.tasks import Indicator, Ratio, Task

if TYPE_CHECKING:
    from itrust.auditing.audits import Audit

HISTOGRAM = "histogram"


@dataclass(frozen=True, eq=False)
class Hidden:
    """What is left out of an audit.

    Attributes
    ----------
    least : int
        Fewest rows behind what is shown.
    rare : frozenset of Predicate
        Groups of fewer rows.
    places : frozenset of Predicate
        All groups that are left out: these, and others that would tell of few rows.
    slices : frozenset of Predicate
        Rules of slices that are left out.
    tasks : frozenset of Task
        The user's numbers that are left out.
    histogram : bool
        Whether the histogram of predictions is left out.
    universe : Universe
        All rows, or random ones of them.
    n : int
        Number of all rows.
    known : mapping of Predicate to int
        Rows of the groups, out of all.
    """

    least: int
    rare: frozenset[Predicate]
    places: frozenset[Predicate]
    slices: frozenset[Predicate]
    tasks: frozenset[Task]
    histogram: bool
    universe: Universe
    n: int
    known: Mapping[Predicate, int]

    @classmethod
    def of(cls, audit: Audit, least: int) -> Hidden:
        """Decide for groups, slices, numbers and the histogram together.

        Parameters
        ----------
        audit : Audit
            The whole audit.
        least : int
            Fewest rows behind what is shown.

        Returns
        -------
        Hidden
            What may not be shown.
        """
        table = audit.diagnosis.groups
        groups = () if table is None else table.groups
        universe = Universe.of(audit.sample.points, audit.n, least)
        choice = _Withholding(audit, least, universe)
        gone = choice.made()
        return cls(
            least=least,
            rare=frozenset(group.where for group in groups if group.rows < least),
            places=frozenset(group.where for group in groups if group.where in gone),
            slices=frozenset(part.where for part in choice.slices if part.where in gone),
            tasks=frozenset(task for task in choice.tasks if task in gone),
            histogram=HISTOGRAM in gone,
            universe=universe,
            n=audit.n,
            known={group.where: group.rows for group in groups},
        )

    def covers(self, where: Predicate) -> bool:
        """Whether a part of the rows may not be named: it, or all others, would be few.

        Parameters
        ----------
        where : Predicate
            The part.

        Returns
        -------
        bool
            True also for parts of hidden groups.
        """
        if where in self.known:
            return self.covers_rows(where, self.known[where])
        at_hand = where.rows(self.universe.points)[: self.universe.real]
        inside, outside = int(at_hand.sum()), int((~at_hand).sum())
        few = self.universe.least
        return self._tells_of_hidden(where) or inside < few or 0 < outside < few

    def covers_rows(self, where: Predicate, inside: int) -> bool:
        """The same, where it is known how many rows lie inside.

        Parameters
        ----------
        where : Predicate
            The part.
        inside : int
            Its rows, out of all.

        Returns
        -------
        bool
            Whether it may not be named.
        """
        few = inside < self.least or 0 < self.n - inside < self.least
        return few or self._tells_of_hidden(where)

    def _tells_of_hidden(self, where: Predicate) -> bool:
        return where in self.places or not self.rare.isdisjoint(where.leaves())

    def allows(self, part: Slice, n: int) -> bool:
        """Whether a slice of n rows may be shown; one that leaves out few rows tells them, too.

        Parameters
        ----------
        part : Slice
            Found in one part of the rows and judged on another.
        n : int
            Number of all rows.

        Returns
        -------
        bool
            Whether enough rows stand behind all its numbers, and nothing follows from them.
        """
        searched = part.rows - part.judged_on
        return (
            min(part.rows, part.judged_on) >= self.least
            and not 0 < searched < self.least
            and not 0 < n - part.rows < self.least
            and part.where not in self.places | self.slices
            and self.rare.isdisjoint(part.where.leaves())
        )


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
    _marks: dict[Predicate, BoolArray] = field(default_factory=dict)

    def made(self) -> set[object]:
        """The groups, slices and numbers that are left out, by predicate and task."""
        gone: set[object] = {*self._rare_groups(), *self._few_tasks()}
        few = (part.where for part in self.slices if self.universe.is_few(self._rows(part.where)))
        gone |= {*few}
        while (more := first_to_go(self._told(gone), self.universe)) is not None:
            gone.add(more)
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

    def _rows(self, where: Predicate) -> BoolArray:
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

    def _few_tasks(self) -> Iterator[Task]:
        for task in self.tasks:
            if any(self._rests_on_few(ratio) for ratio in task.ratios()):
                yield task

    def _rests_on_few(self, ratio: Ratio) -> bool:
        """Whether few rows carry a ratio, or the values of few rows do all but a constant of it."""
        at_hand = slice(self.universe.real)
        inside = self._rows(ratio.where)[at_hand]
        counted = inside & (self.audit.sample.y > 0) if ratio.among_positives else inside
        if inside.sum() < self.universe.least or 0 < counted.sum() < self.universe.least:
            return True
        values = ratio.quantity.of(self.audit.sample.points)[inside]
        _, often = np.unique(values, return_counts=True)
        return 0 < values.size - int(often.max()) < self.universe.least

    def _told(self, gone: Container[object]) -> list[Told]:
        tasks = [
            Told(task, [part for ratio in task.ratios() for part in self._parts(ratio)])
            for task in self.tasks
            if task not in gone
        ]
        slices = [
            Told(part.where, [self._rows(part.where)])
            for part in self.slices
            if part.where not in gone
        ]
        groups = self._told_groups([own for own in self.groups if own.where not in gone], gone)
        bars = [] if HISTOGRAM in gone else self._bars()
        return [*tasks, *groups, *slices, *bars]

    def _parts(self, ratio: Ratio) -> list[BoolArray]:
        """The rows that a ratio counts, and those that it counts 1 if all others count 0."""
        inside = self._rows(ratio.where)
        if isinstance(ratio.quantity, Indicator):
            return [inside, inside & self._rows(ratio.quantity.where)]
        values = ratio.quantity.of(self.audit.sample.points)
        two = np.unique(values[inside[: self.universe.real]])
        if two.size != 2:
            return [inside]
        with np.errstate(all="ignore"):
            everywhere = ratio.quantity.of(self.universe.points)
        return [inside, inside & (everywhere == two[1])]

    def _told_groups(self, groups: list[GroupBias], gone: Container[object]) -> list[Told]:
        """Groups; those of a covariate that nothing else tells apart are told as one.

        Levels of a covariate that no slice and no number names can only be told together, and there
        may be hundreds.
        """
        others = [part.where for part in self.slices if part.where not in gone]
        others += [
            where
            for task in self.tasks
            if task not in gone
            for ratio in task.ratios()
            for where in ratio.predicates()
        ]
        leaves = {leaf for where in others for leaf in where.leaves()}
        alike: dict[object, list[GroupBias]] = {}
        for group in groups:
            own = self._rows(group.where)
            at = int(np.argmax(own))
            read = [leaf for leaf in leaves if leaf.names & frozenset(group.names)]
            key = (group.names, *(bool(self._rows(leaf)[at]) for leaf in read))
            alike.setdefault(key, []).append(group)
        return [
            Told(some[-1].where, [np.any([self._rows(own.where) for own in some], axis=0)])
            for some in alike.values()
        ]

    def _bars(self) -> list[Told]:
        """The histogram of predictions, where its bars count the rows at hand."""
        chart: HistogramChart | None = self.audit.charts.histogram
        joined = chart and chart.joined(self.least)
        if joined is None or self.universe.real < self.audit.n:
            return []
        p, edges = self.universe.points.p, np.array(joined.edges)
        bar: IntArray = np.clip(np.searchsorted(edges, p, "right") - 1, 0, edges.size - 2)
        return [Told(HISTOGRAM, [bar == k for k in range(edges.size - 1)])]
