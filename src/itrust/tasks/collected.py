"""Several tasks estimated on one population: a result to be shown, kept and handed on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

from itrust._core import InputError, Result
from itrust.balance import Resemblance, disclosed_gaps
from itrust.data import CellKeys, Pilot, Rows
from itrust.tasks.disclosure import ShownNumbers
from itrust.tasks.estimated import TaskEstimate
from itrust.tasks.expressions import Task

SCHEMA = "itrust-estimate/1"


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
class TaskEstimates(Result, Sequence[TaskEstimate]):
    """Tasks estimated on one population, and whether labelled rows are like it.

    It is a sequence of `TaskEstimate`, in the order of the tasks.

    Attributes
    ----------
    estimates : tuple of TaskEstimate
        One for each task that is shown.
    fewest : tuple of int
        For each of these, the fewest rows of the population that it tells of.
    rows : Sample or MulticlassSample
        The labelled rows.
    resemblance : Resemblance
        Whether the labelled rows are like the population.
    on : tuple of str
        The covariates that both are compared by.
    seed : int
        What divides labelled rows and permutes rows.
    withheld : tuple of Task
        Those that `disclosed` took out.
    min_cell : int or None
        Fewest rows behind what is shown; None: everything is shown as it is.
    provenance : EstimateProvenance or None
        How they can be made again.
    refused : tuple of RefusedTask
        Tasks that these rows cannot give, with the reason; `estimate_tasks` keeps them only where
        it is asked to.
    whole : TaskEstimates or None
        The estimates before disclosure control; no rendering reads them.
    """

    estimates: tuple[TaskEstimate, ...]
    fewest: tuple[int, ...]
    rows: Rows
    resemblance: Resemblance
    on: tuple[str, ...]
    seed: int
    withheld: tuple[Task, ...] = ()
    min_cell: int | None = None
    provenance: EstimateProvenance | None = None
    refused: tuple[RefusedTask, ...] = ()
    whole: TaskEstimates | None = None

    def __repr__(self) -> str:
        told = ", ".join(str(found.task) for found in self.estimates)
        return f"<TaskEstimates: {told or 'none'}>"

    def __len__(self) -> int:
        return len(self.estimates)

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

    def disclosed(self, min_cell: int | None, seed: int | None = None) -> TaskEstimates:
        """Make the estimates fit to leave the house, by cell keys, as `Audit.disclosed` does.

        Parameters
        ----------
        min_cell : int or None
            Fewest rows behind anything that is shown; None shows everything as it is.
        seed : int, optional
            Of the noise. Default: one that is made of the labels and predictions.

        Returns
        -------
        TaskEstimates
            Numbers that rest on fewer rows are named in `withheld` and not shown, others carry the
            noise of their rows; gaps say no largest or smallest value, fewer excluded rows are not
            counted out, and no refusal names fewer rows.
        """
        if min_cell is None or (self.min_cell or 0) >= min_cell:
            return self
        if self.whole is not None:
            return self.whole.disclosed(min_cell, seed)
        keys = CellKeys.of(self.rows, min_cell, seed=seed)
        numbers, looked = (
            ShownNumbers(self.rows, keys),
            self.resemblance.disclosed(min_cell, keys.whole),
        )
        shown, gone = [], []
        for found, fewest in zip(self.estimates, self.fewest, strict=True):
            if fewest < min_cell or numbers.is_few(found.task):
                gone.append(found.task)
                continue
            left = found.excluded
            left = None if left is None or 0 < left < min_cell else left
            gaps = disclosed_gaps(found.gaps, min_cell, keys.whole)
            told = replace(found, gaps=gaps, resemblance=looked, excluded=left)
            shown.append(numbers.estimate(told))
        few = [own for own in self.refused if numbers.tells(own.error)]
        gone += [own.task for own in few]
        return replace(
            self,
            estimates=tuple(shown),
            fewest=(),
            resemblance=looked,
            withheld=(*self.withheld, *gone),
            min_cell=min_cell,
            refused=tuple(own for own in self.refused if own not in few),
            whole=self,
        )

    def to_html(self, path: str | os.PathLike[str], *, min_cell: int | None = None) -> Path:
        """Write the estimates as one self-contained page.

        Parameters
        ----------
        path : str or path
            Where to write; written whole or not at all.
        min_cell : int, optional
            Applies disclosure control first, as `disclosed` does. Default: they are shown as
            they are.

        Returns
        -------
        Path
            Of the page.
        """
        from itrust.render.page import write

        return write(self, path, min_cell=min_cell)

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
            if self.min_cell is None
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


def fewest_rows(task: Task, everyone: Pilot) -> int:
    """The fewest rows that a task tells of: where it counts, and what counts there."""
    points, leaves = everyone.points, dict.fromkeys(task.leaves())
    counts = [int(rows.sum()) for leaf in leaves for rows in leaf.sets_on(points)]
    return round(min(len(points), *counts) * everyone.n / len(points))
