"""`PopulationScan`: rows without labels in files, larger than memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from itrust._core import FloatArray, InputError
from itrust.data.file_set import FileSet
from itrust.data.files import Scan, classes_in_files, name_rows, settled_kinds
from itrust.data.formats import AS_SEEN, Room, TextForm
from itrust.data.intake import MissingRule
from itrust.data.kinds import Kinds
from itrust.data.population import Population
from itrust.data.predicates import Predicate
from itrust.data.rows import Chunk, Points
from itrust.data.source import smallest_of


@dataclass(frozen=True, eq=False)
class RowsAtHand:
    """All rows of a population, or random ones of them."""

    points: Points
    weights: FloatArray | None
    n: int
    dropped: int = 0

    @property
    def is_all(self) -> bool:
        """Whether all rows are at hand."""
        return len(self.points) == self.n

    def take(self, rows: Any) -> RowsAtHand:
        """Keep some of the rows at hand; the others no longer count."""
        kept = self.points.take(rows)
        whole = len(kept) if self.is_all else round(self.n * len(kept) / len(self.points))
        w = None if self.weights is None else self.weights[rows]
        return RowsAtHand(kept, w, whole, self.dropped)


@dataclass(frozen=True, eq=False, repr=False)
class PopulationScan:
    """Rows of files without labels; made by `Population.scan`.

    Attributes
    ----------
    scan : Scan
        Names of the files and columns, without one of labels.
    """

    scan: Scan

    def __repr__(self) -> str:
        return repr(self.scan).replace("Scan", "PopulationScan", 1)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""
        return self.scan.names

    @property
    def files(self) -> tuple[Path, ...]:
        """The files, in order."""
        return self.scan.files

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say of the files."""
        return self.scan.notes

    def with_names(self, names: Sequence[str]) -> PopulationScan:
        """Name the same rows with some of the covariates.

        Parameters
        ----------
        names : sequence of str
            Those to keep, in this order.

        Returns
        -------
        PopulationScan
            The same rows.
        """
        return PopulationScan(self.scan.with_names(names))

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Read all rows in order, checked as they come; their labels are all 0 and mean nothing.

        Parameters
        ----------
        size : int
            Number of rows at a time.

        Returns
        -------
        iterator of Chunk
            The rows that count.
        """
        return self.scan.chunks(size)

    def at_hand(self, size: int) -> RowsAtHand:
        """Keep random rows, those with the smallest tickets, in one pass over the files.

        Parameters
        ----------
        size : int
            How many rows at most.

        Returns
        -------
        RowsAtHand
            In the order of the files.
        """
        found = self.scan.candidates(size)
        drawn, rows = smallest_of([(found.tickets, found.rows)], size)
        if not drawn.size:
            raise InputError("a population needs at least 1 row; this one has none", count=0)
        parts = self.scan._read(rows, with_label=False)
        points = Points(parts["p"], parts["columns"])
        return RowsAtHand(points, parts["design"].weights, found.n, found.dropped)

    def load(self) -> Population:
        """Read all rows into memory.

        Returns
        -------
        Population
            The same rows.
        """
        own, room, tables = self.scan, Room(), []
        for batch in own._batches(every=True):
            room.take(batch.rows, batch.path)
            tables.append(pa.Table.from_batches([batch.rows]))
        if not tables:
            raise own.file_set.without_rows()
        return Population.from_frame(
            pa.concat_tables(tables, promote_options="permissive"),
            prob=own.prob,
            on=own.names,
            weights=own.weights,
            missing=own.missing,
            categories=own.kinds.categories,
            numbers=own.kinds.numbers,
            value_labels=own.kinds.value_labels,
            na_values=own.na_values,
            where=own.where,
        )


def scan_population(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | FileSet,
    *,
    prob: str | Mapping[Any, str] | Sequence[str],
    on: str | Sequence[str] = (),
    weights: str | None = None,
    missing: MissingRule = "error",
    categories: str | Sequence[str] = (),
    numbers: str | Sequence[str] = (),
    value_labels: Mapping[str, Mapping[Any, str]] | None = None,
    na_values: object = None,
    where: str | Predicate | None = None,
    form: TextForm = AS_SEEN,
) -> Any:
    """Name rows of files without labels: see `Population.scan`."""
    files, classes = classes_in_files(path, prob, form)
    probs: list[Any] = list(classes.values()) or [prob]
    made = name_rows(
        files,
        None,
        probs[0],
        on,
        weights,
        missing=missing,
        said=Kinds.of(categories, numbers, value_labels),
        na_values=na_values,
        where=where,
        form=form,
        beside=tuple(probs[1:]),
    )
    if classes:
        from itrust.data.multiclass_files import MulticlassPopulationScan

        return MulticlassPopulationScan.of(settled_kinds(made), classes)
    return PopulationScan(settled_kinds(made))


def without_label(rows: Scan) -> PopulationScan:
    """The rows of a scan as a population; its labels are not read."""
    return PopulationScan(replace(rows, label=None, cluster=(), strata=(), positive=None))
