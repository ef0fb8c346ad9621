"""Several tasks estimated on one population: a result to be shown, kept and handed on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np

from itrust._core import BoolArray, InputError, Result, checked_count
from itrust.balance import Resemblance, disclosed_gaps
from itrust.data import Pilot, Points, Sample
from itrust.tasks.estimated import TaskEstimate
from itrust.tasks.expressions import Leaf, Ratio, Task
from itrust.tasks.quantities import Indicator
from itrust.tasks.regressions import Coefficient

SCHEMA = "itrust-estimate/1"
MIN_CELL = 10


@dataclass(frozen=True)
class EstimateProvenance:
    """How estimates can be made again.

    Attributes
    ----------
    command : str
        The command line, or the lines of Python.
    labelled, population : str or None
        Names of the files.
    labelled_sha256, population_sha256 : str or None
        Their checksums; of several files, of what `sha256sum` prints for them.
    title, model, date : str or None
        What is to stand on the page.
    """

    command: str
    labelled: str | None = None
    labelled_sha256: str | None = None
    population: str | None = None
    population_sha256: str | None = None
    title: str | None = None
    model: str | None = None
    date: str | None = None


@dataclass(frozen=True, eq=False)
class RefusedTask:
    """A number that these rows cannot give, and why.

    Attributes
    ----------
    task : Task
        What was asked for.
    error : InputError
        What is wrong; `str` of it is a sentence.
    """

    task: Task
    error: InputError

    def __repr__(self) -> str:
        return f"<RefusedTask: {self.task}>"


@dataclass(frozen=True, eq=False)
class TaskEstimates(Result):
    """Tasks estimated on one population, and whether labelled rows are like it.

    It is a sequence of `TaskEstimate`, in the order of the tasks.

    Attributes
    ----------
    estimates : tuple of TaskEstimate
        One for each task that is shown.
    fewest : tuple of int
        For each of these, the fewest rows that it tells of, by itself or beside one of those
        before it: labelled rows, those with a positive label, or rows of the population.
    resemblance : Resemblance
        Whether the labelled rows are like the population.
    on : tuple of str
        The covariates that both are compared by.
    seed : int
        What divides labelled rows and permutes rows.
    withheld : tuple of Task
        Those that `disclosed` took out.
    min_cell : int
        Fewest rows behind what is shown; 1 as long as nothing was asked to be taken out.
    provenance : EstimateProvenance or None
        How they can be made again.
    refused : tuple of RefusedTask
        Tasks that these rows cannot give, with the reason; `estimate_tasks` keeps them only where
        it is asked to.
    """

    estimates: tuple[TaskEstimate, ...]
    fewest: tuple[int, ...]
    resemblance: Resemblance
    on: tuple[str, ...]
    seed: int
    withheld: tuple[Task, ...] = ()
    min_cell: int = 1
    provenance: EstimateProvenance | None = None
    refused: tuple[RefusedTask, ...] = ()

    def __repr__(self) -> str:
        told = ", ".join(str(found.task) for found in self.estimates)
        return f"<TaskEstimates: {told or 'none'}>"

    def __len__(self) -> int:
        return len(self.estimates)

    def __iter__(self) -> Iterator[TaskEstimate]:
        return iter(self.estimates)

    @overload
    def __getitem__(self, k: int) -> TaskEstimate: ...
    @overload
    def __getitem__(self, k: slice) -> tuple[TaskEstimate, ...]: ...
    def __getitem__(self, k: int | slice) -> TaskEstimate | tuple[TaskEstimate, ...]:
        return self.estimates[k]

    @property
    def excluded(self) -> int | None:
        """How many rows of the population no number counts; None where too few to be shown."""
        return self.estimates[0].excluded if self.estimates else 0

    def disclosed(self, min_cell: int = MIN_CELL) -> TaskEstimates:
        """Take out what rests on few rows, and the values of single rows.

        Parameters
        ----------
        min_cell : int
            Fewest rows behind anything that is shown; 1 shows everything.

        Returns
        -------
        TaskEstimates
            Numbers that rest on fewer rows, leave out fewer, or tell of fewer beside a number
            before them are named in `withheld` and not shown; gaps say no largest or smallest
            value, and fewer excluded rows are not counted out. So are refusals that name such a
            number of rows.
        """
        checked_count(min_cell, "min_cell")
        least = max(min_cell, self.min_cell)
        if least <= 1:
            return self
        kept = [k for k, rows in enumerate(self.fewest) if rows >= least]
        looked = self.resemblance.disclosed(least)
        shown = []
        for found in (self.estimates[k] for k in kept):
            gaps = disclosed_gaps(found.gaps, least)
            left = found.excluded
            left = None if left is None or 0 < left < least else left
            shown.append(replace(found, gaps=gaps, resemblance=looked, excluded=left))
        gone = [found.task for k, found in enumerate(self.estimates) if k not in kept]
        # A refusal that counts few rows would tell them.
        few = [own for own in self.refused if 0 < (own.error.count or 0) < least]
        gone += [own.task for own in few]
        return replace(
            self,
            estimates=tuple(shown),
            fewest=tuple(self.fewest[k] for k in kept),
            resemblance=looked,
            withheld=(*self.withheld, *gone),
            min_cell=least,
            refused=tuple(own for own in self.refused if own not in few),
        )

    def to_html(self, path: str | os.PathLike[str], *, min_cell: int | None = None) -> Path:
        """Write the estimates as one self-contained page.

        Parameters
        ----------
        path : str or path
            Where to write; written whole or not at all.
        min_cell : int, optional
            Fewest rows behind anything that is shown; default: what `disclosed` was called with,
            otherwise 10.

        Returns
        -------
        Path
            Of the page.
        """
        from itrust.render.page import write_estimates

        return write_estimates(self, path, min_cell=min_cell)

    def _facts(self) -> Mapping[str, Any]:
        from itrust import __version__
        from itrust.render import estimate_facts

        made = self.provenance
        return {
            "schema": SCHEMA,
            "version": __version__,
            "on": self.on,
            "seed": self.seed,
            **estimate_facts(self),
            "withheld": None
            if self.min_cell <= 1
            else {
                "min_cell": self.min_cell,
                "total": len(self.withheld),
                "tasks": [task.formula for task in self.withheld],
            },
            "provenance": None if made is None else dict(vars(made)),
        }

    def _rows(self) -> list[Mapping[str, Any]]:
        return [
            {"task": str(found.task), **row} for found in self.estimates for row in found._rows()
        ]


def collected(
    found: Sequence[TaskEstimate],
    labelled: Sample,
    rows: Pilot,
    seed: int,
    positive: Callable[[Leaf], BoolArray],
) -> TaskEstimates:
    """Put estimates together, with what disclosure control has to know of their rows."""
    tasks = [one.task for one in found]
    here = _fewest([_parts(task, labelled.points, positive) for task in tasks], labelled.n)
    few = _fewest([_parts(task, rows.points) for task in tasks], len(rows.points))
    there = [round(count * rows.n / len(rows.points)) for count in few]
    return TaskEstimates(
        tuple(found),
        tuple(map(min, here, there)),
        min((one.resemblance for one in found), key=lambda one: one.pvalue),
        tuple(column.name for column in labelled.columns),
        seed,
    )


def _parts(
    task: Task, points: Points, positive: Callable[[Leaf], BoolArray] | None = None
) -> list[BoolArray]:
    """Rows that a task tells of: where it counts, what counts there, and positives among them."""
    found: list[BoolArray] = []
    for leaf in dict.fromkeys(task.leaves()):
        inside = leaf.where.rows(points)
        found.append(inside)
        if isinstance(leaf, Coefficient):
            found += _regressed(leaf, inside, points)
        elif isinstance(leaf, Ratio):
            found += _among(leaf, inside, points)
            if positive is not None and leaf.among_positives:
                found.append(inside & positive(leaf))
    return found


def _regressed(leaf: Coefficient, inside: BoolArray, points: Points) -> list[BoolArray]:
    """Rows of every level, and those that alone have another value than most, in any column."""
    found = [inside & level.where.rows(points) for level in leaf.levels_on(points)]
    for column in leaf.columns_on(points):
        values, place, often = np.unique(
            column.quantity.of(points)[inside], return_inverse=True, return_counts=True
        )
        if values.size > 1 and 2 * often.max() > place.size:
            others = inside.copy()
            others[inside] = place != often.argmax()
            found.append(others)
    return found


def _among(ratio: Ratio, inside: BoolArray, points: Points) -> list[BoolArray]:
    what = ratio.quantity
    return [inside & what.where.rows(points)] if isinstance(what, Indicator) else []


def _fewest(parts: Sequence[Sequence[BoolArray]], n: int) -> list[int]:
    """For every task the fewest of n rows that it, all rows and earlier tasks tell apart."""
    found, before = [], [np.ones(n, dtype=bool)]
    for own in parts:
        counts = [n]
        for part in own:
            counts.append(int(part.sum()))
            apart = [
                int(np.sum(some)) for other in before for some in (part & ~other, other & ~part)
            ]
            counts += [count for count in apart if count]
        found.append(min(counts))
        before += own
    return found
