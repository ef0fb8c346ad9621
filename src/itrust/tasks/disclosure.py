"""Numbers as they may be shown: off by what the sets of rows that they are made of are off."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import BoolArray, FloatArray, InputError
from itrust.data import LABELS, PREDICTIONS, Cell, CellKeys, short_pvalue
from itrust.tasks.bias import TaskResult
from itrust.tasks.estimated import Estimate, TaskEstimate
from itrust.tasks.expressions import Leaf, Ratio, Task, TaskRows
from itrust.tasks.outcomes import both_classes, class_tasks

SHARES = {"labels": LABELS, "predictions": PREDICTIONS}


@dataclass(frozen=True, eq=False)
class ShownNumbers:
    """Numbers on some rows, with the noise of their sets of rows."""

    rows: Any  # a sample of two labels or of several classes
    keys: CellKeys

    def is_few(self, task: Task) -> bool:
        """Whether a number rests on few rows: where it counts, what counts there, its positives."""
        few = self.keys.min_cell
        try:
            sets = [part for leaf in self._leaves(task) for part in self._sets(leaf)]
        except InputError:  # none of the rows at hand give it
            return True
        return any(self.keys.cell(inside).rows < few for inside in sets)

    @cached_property
    def rare(self) -> re.Pattern[str]:
        """Names of levels that few rows have, as words of a text."""
        rare = [
            str(level)
            for column in self.rows.columns
            if column.is_category
            for k, level in enumerate(column.levels)
            if self.keys.cell(column.values == k).rows < self.keys.min_cell
        ]
        return re.compile("|".join(rf"(?<!\w){re.escape(own)}(?!\w)" for own in rare) or r"(?!)")

    def tells(self, error: InputError) -> bool:
        """Whether an error counts few rows, or names a level that few have."""
        return 0 < (error.count or 0) < self.keys.min_cell or bool(self.rare.search(str(error)))

    def noise(self, task: Task) -> tuple[float, float, float]:
        """How far a number is off, by labels and by probabilities, and at most."""
        (own,) = class_tasks([task], self.rows)
        leaves = self._leaves(task)
        found, most = list[float](), np.zeros(len(leaves))
        for kind in SHARES:
            parts = [self._leaf(leaf, kind) for leaf in leaves]
            exact, shown = [part[0] for part in parts], [part[1] for part in parts]
            before, after = own.at(leaves, exact), own.at(leaves, shown)
            moved = float(after.value - before.value)
            found.append(moved if math.isfinite(moved) else 0.0)
            most += [part[2] for part in parts]
            if kind == "labels":
                slopes = np.abs(np.nan_to_num(before.slope))
        labels, predictions = found
        return labels, predictions, max(float(slopes @ most), abs(labels) + abs(predictions))

    def result(self, own: TaskResult, which: str = "") -> TaskResult:
        """What a model does to a number; `which` model, where there are several."""
        if self.is_few(own.task):
            return own.without_values(self.keys.min_cell)
        (by_labels, other, most), cell = self.noise(own.task), self._cell(own.task)
        if which:
            other = most * SHARES["predictions"] * cell.unit(which) or other
        labels, plugin = own.from_labels + by_labels, own.plugin + other
        exact = own.bias, own.lower, own.upper
        settings: dict[str, Any] = {"marks": [own.tolerance], "what": which, "slack": most}
        lower, upper = cell.interval(exact, labels - plugin, **settings)
        return replace(
            own,
            from_labels=labels,
            plugin=plugin,
            lower=lower,
            upper=upper,
            stderr=own.stderr + most * (1 + cell.unit("stderr")) / 2,
            notes=tuple(note for note in own.notes if not self.rare.search(note)),
            pvalue=short_pvalue(own.pvalue, own.alpha),
            unadjusted_pvalue=short_pvalue(own.unadjusted_pvalue, own.alpha),
        )

    def estimate(self, own: TaskEstimate) -> TaskEstimate:
        """A number on a population, in all ways."""
        noise, cell = self.noise(own.task), self._cell(own.task)
        ways: dict[str, Any] = {
            name: _moved(way, cell, name, noise) for name, way in own.ways.items()
        }
        notes = tuple(note for note in own.notes if not self.rare.search(note))
        return replace(own, **ways, notes=notes)

    def _leaves(self, task: Task) -> list[Leaf]:
        (own,) = class_tasks([task], self.rows)
        return list(dict.fromkeys(own.leaves()))

    def _cell(self, task: Task) -> Cell:
        """The number itself, as a set: of the rows of its leaves."""
        cells = [
            self.keys.cell(inside) for leaf in self._leaves(task) for inside in self._sets(leaf)
        ]
        return Cell.of(float(min(cell.rows for cell in cells)), task, *(cell.key for cell in cells))

    def _of(self, leaf: Leaf) -> Any:
        """The rows with the class of a leaf against the rest."""
        if leaf.label is None:
            return self.rows
        rows = self.rows if self.rows.several else both_classes(self.rows)
        return rows.one_class(leaf.label)

    def _sets(self, leaf: Leaf) -> Iterator[BoolArray]:
        sample = self._of(leaf)
        yield from leaf.sets_on(sample.points)
        if leaf.among_positives:
            yield np.asarray(leaf.where.rows(sample.points) & (sample.y > 0))

    def _leaf(self, leaf: Leaf, kind: str) -> tuple[float, float, float]:
        """A leaf as it is and as it is shown, and how far it may be off."""
        sample, share = self._of(leaf), SHARES[kind]
        rows = TaskRows.labelled(sample) if kind == "labels" else TaskRows.predicted(sample)
        found = leaf.bare.linear(rows)
        value, cell = float(found.value), self.keys.cell(list(self._sets(leaf))[-1])
        if isinstance(leaf, Ratio) and not leaf.among_positives:
            flipped = not self.rows.several and leaf.label not in (None, self.rows.classes[1])
            cell = self.keys.cell(np.asarray(leaf.where.rows(sample.points)))
            what = self.rows.classes.index(leaf.label) if self.rows.several else ""
            shown = cell.rate if kind == "labels" else cell.predicted
            noisy = 1 - shown(1 - value, what) if flipped else shown(value, what)
            return value, noisy, share * cell.reach
        largest = float(np.abs(found.slope).max()) * self.keys.share
        most = share * cell.reach / max(cell.heaviest, 1.0) * max(cell.rows, 1) * largest
        content, sign = self._content(found.slope)
        noisy = value + sign * most * cell.unit(f"{kind} {content}")
        return value, min(max(noisy, 0.0), 1.0) if leaf.is_rate else noisy, most

    def _content(self, influence: FloatArray) -> tuple[str, float]:
        """What a number is made of, the same for all ways and units to write it, and its sign."""
        shares = np.asarray(influence).reshape(len(self.keys.words), -1).sum(axis=1)
        largest = float(np.abs(shares).max()) or 1.0
        size = float(self.keys.words / 2.0**64 @ shares) / largest
        return f"{abs(size):.6g}", math.copysign(1.0, size)


def _moved(way: Estimate, cell: Cell, name: str, noise: tuple[float, float, float]) -> Estimate:
    labels, _, most = noise
    own = labels if name == "labelled" else most * SHARES["labels"] * cell.unit(name)
    value = way.value + own
    exact = way.value, way.lower, way.upper
    lower, upper = cell.interval(exact, value, slack=most, marks=[1.0], what=name)
    stderr = way.stderr + most * (1 + cell.unit(f"stderr {name}")) / 2
    return replace(way, value=value, lower=lower, upper=upper, stderr=stderr)
