"""Rows of several classes in files: `MulticlassScan` names them, and loads them compactly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from itrust._core import (
    Advance,
    AnyArray,
    FloatArray,
    InputError,
    IntArray,
    Subject,
    counted,
    listed,
    tickets,
)
from itrust.data.class_intake import (
    class_numbers,
    class_position,
    numbers_like_labels,
    read_codes,
    rounding_note,
    rows_that_sum_to_1,
)
from itrust.data.column import Column
from itrust.data.design import Design
from itrust.data.design_intake import design_notes, read_design
from itrust.data.encoding import encode
from itrust.data.file_set import Batch
from itrust.data.files import WINDOW_ROWS, Scan, Window, too_few_rows
from itrust.data.formats import FilePart, Room
from itrust.data.frame_roles import settled_unit
from itrust.data.intake import settle_missing
from itrust.data.multiclass import MulticlassSample, class_notes
from itrust.data.multiclass_chunks import FACT_ROWS, ClassChunk, ClassFacts
from itrust.data.multiclass_population import MulticlassPopulation
from itrust.data.population_files import PopulationScan
from itrust.data.selection import SelectionCounts
from itrust.data.source import smallest_of
from itrust.data.units import UnitColumn


@dataclass(frozen=True, eq=False, repr=False)
class ClassScan:
    """Rows of files with a column of probabilities for each class.

    Attributes
    ----------
    scan : Scan
        Names of the files and columns; its `prob` is the column of the first class, and those of
        the others are `beside`.
    class_columns : mapping
        From each class to its column, in order.
    """

    scan: Scan
    class_columns: Mapping[Any, str]

    @classmethod
    def of(cls, rows: Scan, columns: Mapping[Any, str]) -> Self:
        """Name the classes; they are whole numbers where labels are numbers.

        Parameters
        ----------
        rows : Scan
            With the columns of all classes.
        columns : mapping
            From each class to its column.

        Returns
        -------
        MulticlassScan or MulticlassPopulationScan
            The same rows.
        """
        if rows.label is None:
            return cls(rows, dict(columns))
        names = numbers_like_labels(list(columns), _label_type(rows))
        return cls(rows, dict(zip(names, columns.values(), strict=True)))

    @property
    def classes(self) -> tuple[Any, ...]:
        """Names of the classes, in order."""
        return tuple(self.class_columns)

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
        """What there is to say of the files; the rest shows when the rows are read."""
        return self.scan.notes

    @property
    def rows_expected(self) -> float:
        """About how many rows there are, told by the files without reading them; 1 at least."""
        return self.scan.rows_expected

    def with_names(self, names: Sequence[str]) -> Self:
        """Name the same rows with some of the covariates.

        Parameters
        ----------
        names : sequence of str
            Those to keep, in this order.

        Returns
        -------
        MulticlassScan or MulticlassPopulationScan
            The same rows.
        """
        return replace(self, scan=self.scan.with_names(names))

    def _column_of(self, name: Any) -> tuple[Any, str]:
        own = self.classes[class_position(self.classes, name)]
        return own, self.class_columns[own]

    def __repr__(self) -> str:
        files, on = counted(len(self.files), "file"), listed(self.names) or "none"
        told = f"classes {listed(self.classes)}, covariates {on}"
        return f"<{type(self).__name__}: {files}, {told}>"


@dataclass(frozen=True, eq=False)
class ClassSurvey:
    """What one pass over rows in files tells."""

    facts: ClassFacts
    some: MulticlassSample
    tickets: FloatArray
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ClassHarvest:
    """What a first pass over rows in files, or over a piece of them, finds."""

    facts: tuple[ClassFacts, ...]
    rescaled: tuple[int, float]
    tickets: FloatArray
    rows: pa.Table
    counts: SelectionCounts


@dataclass(frozen=True, eq=False, repr=False)
class MulticlassScan(ClassScan):
    """Rows of files with labels of several classes; made by `scan(..., prob={...})`.

    Attributes
    ----------
    scan : Scan
        Names of the files and columns.
    class_columns : mapping
        From each class to its column of probabilities, in order.

    Examples
    --------
    >>> import itrust as it, pyarrow as pa, pyarrow.parquet, tempfile, os
    >>> file = os.path.join(tempfile.mkdtemp(), "games.parquet")
    >>> rows = pa.table({"y": ["tie", "win"], "p_win": [0.3, 0.8], "p_tie": [0.7, 0.2]})
    >>> pa.parquet.write_table(rows, file)
    >>> it.scan(file, label="y", prob="p_*")
    <MulticlassScan: 1 file, classes 'win', 'tie', covariates none>
    >>> it.scan(file, label="y", prob="p_*").load()
    <MulticlassSample: 2 rows, classes 'win', 'tie', covariates none>
    """

    @property
    def label(self) -> str:
        """The column of labels."""
        return self.scan.label or ""

    @property
    def is_simple(self) -> bool:
        """Whether rows are independent draws from one stratum."""
        return self.scan.is_simple

    def one_class(self, name: Any) -> Scan:
        """Name the same rows with one class against the rest.

        Labels of no class count as the rest, and rows that sum to 1 up to rounding stay as they
        are: only `load` looks at all classes.

        Parameters
        ----------
        name : object
            One of `classes`.

        Returns
        -------
        Scan
            For everything that works on files.
        """
        own, column = self._column_of(name)
        kind = _label_type(self.scan)
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        meant = own if not is_text or self.scan.kinds.labels_of(self.label) else str(own)
        return replace(self.scan, prob=column, beside=(), positive=meant)

    def load(self) -> MulticlassSample:
        """Read all rows into memory, some at a time; of text only what tells values apart is kept.

        Takes about 8 bytes for each row and column, beside one column more while it is encoded.

        Returns
        -------
        MulticlassSample
            The rows that count, as `Sample.from_frame` reads them.
        """
        found = gathered(self.scan, self.class_columns)
        p = found.probabilities()
        parts = {
            "codes": found.codes(),
            "p": p,
            "classes": self.classes,
            "design": self._design(found, p),
            "dropped": found.notes,
            "rescaled": rounding_note(*found.rescaled),
            "columns": found.covariates(),
            "units": (),
        }
        return MulticlassSample.of_parts(parts, self.label)

    def chunks(self, size: int) -> Iterator[ClassChunk]:
        """Read all rows in order, checked as they come.

        Parameters
        ----------
        size : int
            Number of rows at a time; chunks end at multiples of it, whatever files rows come from.

        Returns
        -------
        iterator of ClassChunk
            The rows that count; clusters and strata are not read.
        """
        for window, _ in self._windows(size * max(1, WINDOW_ROWS // size)):
            if window.rows:
                chunk = self._read(window)[0]
                for rows in window.cut(size):
                    yield chunk.cut(rows)

    def survey(self, size: int, advance: Advance | None = None) -> ClassSurvey:
        """Count the rows and keep random ones of them, in one pass over the files.

        Parameters
        ----------
        size : int
            How many rows are kept at most: those with the smallest tickets.
        advance : callable, optional
            Told the number of rows that were read.

        Returns
        -------
        ClassSurvey
            Every row has been checked on the way.
        """
        found = self.harvest(size, FACT_ROWS, advance=advance)
        return self.survey_of([found], found.counts, size)

    def harvest(
        self,
        size: int,
        stretch: int,
        max_ticket: float = 1.0,
        advance: Advance | None = None,
    ) -> ClassHarvest:
        """What a first pass over these files, or a piece of them, finds.

        Parameters
        ----------
        size : int
            How many rows are kept at most.
        stretch : int
            Rows that are counted at once.
        max_ticket : float
            Rows with a larger ticket are left out.
        advance : callable, optional
            Told the number of rows that were read.

        Returns
        -------
        ClassHarvest
            Every row has been checked on the way.
        """
        counts, rescaled, bar = SelectionCounts(), (0, 0.0), max_ticket
        facts: list[ClassFacts] = []
        found: list[tuple[FloatArray, pa.Table]] = []
        for window, own in self._windows(stretch):
            counts = counts.plus(own)
            if not window.rows:
                continue
            chunk, (count, largest) = self._read(window)
            rescaled = rescaled[0] + count, max(rescaled[1], largest)
            facts.append(ClassFacts.of(chunk.p, chunk.codes, chunk.weights))
            if advance:
                advance(window.rows)
            drawn = tickets(window.first, window.rows)
            rows = np.flatnonzero(drawn < bar)
            found.append((drawn[rows], window.table.take(pa.array(rows))))
            if sum(lot.size for lot, _ in found) > 2 * size:
                found = [smallest_of(found, size)]
                bar = float(found[0][0].max())
        return ClassHarvest(tuple(facts), rescaled, *smallest_of(found, size), counts)

    def survey_of(
        self, found: Sequence[ClassHarvest], counts: SelectionCounts, size: int
    ) -> ClassSurvey:
        """Put together what passes over several pieces have found.

        Parameters
        ----------
        found : sequence of ClassHarvest
            Of every piece, in the order of the files.
        counts : SelectionCounts
            What became of all rows.
        size : int
            How many rows are kept at most.

        Returns
        -------
        ClassSurvey
            With the rows that have the smallest tickets, in the order of the files.
        """
        if not counts.n:
            raise self.scan.file_set.without_rows()
        if counts.kept < 2:
            raise too_few_rows(counts.kept)
        facts = reduce(lambda one, other: one.plus(other), chain(*(lot.facts for lot in found)))
        rescaled = sum(lot.rescaled[0] for lot in found), max(lot.rescaled[1] for lot in found)
        drawn, table = smallest_of([(lot.tickets, lot.rows) for lot in found], size)
        read, design, _ = read_class_rows(self.scan, self.class_columns, table)
        said = [*self.scan.selection.notes(counts), *rounding_note(*rescaled)]
        parts = {
            "codes": read.codes,
            "p": read.p,
            "classes": self.classes,
            "design": design,
            "dropped": (),
            "rescaled": (),
            "columns": read.columns,
            "units": (),
        }
        some = MulticlassSample.of_parts(parts, self.label)
        odd = class_notes(self.classes, facts.labels, not facts.uncertain, some.p, some.columns)
        notes = dict.fromkeys([*said, *design_notes(design), *odd])
        return ClassSurvey(facts, some, drawn, tuple(notes))

    def counts(self) -> SelectionCounts:
        """Read all rows and tell what becomes of them.

        Returns
        -------
        SelectionCounts
            How many there are, and how many count.
        """
        found = (own for _, own in _selected(self.scan))
        return reduce(lambda one, other: one.plus(other), found, SelectionCounts())

    def spanning(self, parts: Sequence[FilePart], rows: range) -> MulticlassScan:
        """Name the rows with some numbers, which lie in some pieces of the files.

        Parameters
        ----------
        parts : sequence of FilePart
            Consecutive pieces that hold the rows; the first knows the number of its first row.
        rows : range
            Numbers of the rows in the whole.

        Returns
        -------
        MulticlassScan
            The same columns of these rows.
        """
        return replace(self, scan=self.scan.spanning(parts, rows))

    def _windows(self, size: int) -> Iterator[tuple[Window, SelectionCounts]]:
        """Rows in stretches that end at multiples of `size`, and what became of the others."""
        parts, rows = self.scan.parts, self.scan.rows
        first, held = parts[0].start if parts else 0, 0
        batches, counts = list[Batch](), SelectionCounts()
        for batch, own in _selected(self.scan):
            counts = counts.plus(own)
            if rows is not None and first < rows.start:  # those of another machine
                skipped, batch = batch.split(rows.start - first)
                first += skipped.rows.num_rows
            if rows is not None:
                batch = batch.split(rows.stop - first - held)[0]
            while batch.rows.num_rows:
                room = size - (first + held) % size
                some, batch = batch.split(room)
                batches.append(some)
                held += some.rows.num_rows
                if some.rows.num_rows == room:
                    yield Window(first, tuple(batches), 0), counts
                    first, held, batches, counts = first + held, 0, [], SelectionCounts()
            if rows is not None and first + held >= rows.stop:
                break
        if held or counts.n:
            yield Window(first, tuple(batches), 0), counts

    def _read(self, window: Window) -> tuple[ClassChunk, tuple[int, float]]:
        """The rows as arrays; what is wrong with one is told with its file and its number there."""
        try:
            chunk, _, rescaled = read_class_rows(self.scan, self.class_columns, window.table)
        except InputError:
            for batch in window.batches:  # only one of them knows the row
                with batch.located():
                    table = pa.Table.from_batches([batch.rows])
                    read_class_rows(self.scan, self.class_columns, table)
            raise
        return replace(chunk, first=window.first), rescaled

    def _design(self, found: Gathered, p: FloatArray) -> Design:
        rows = self.scan
        probs = dict(zip(self.class_columns.values(), p.T, strict=True))
        columns = {**probs, **{name: found.column(name) for name in found.design_columns}}

        def of_units(units: tuple[UnitColumn, ...], role: str) -> dict[str, object] | None:
            settled = [settled_unit(unit, columns, role, list(probs)) for unit in units]
            return {unit.text: unit.values(columns, role) for unit in settled} or None

        return read_design(
            len(p),
            weights=columns[rows.weights] if rows.weights else None,
            cluster=of_units(rows.cluster, "cluster"),
            strata=of_units(rows.strata, "strata"),
            replicate_weights={name: columns[name] for name in rows.replicate_weights} or None,
            replicate_method=rows.replicate_method,
            as_drawn=rows.where is None and found.counts.kept == found.counts.n,
        )


@dataclass(frozen=True, eq=False, repr=False)
class MulticlassPopulationScan(ClassScan):
    """Rows of files without labels, with probabilities of several classes.

    Made by `Population.scan(..., prob={...})`.

    Attributes
    ----------
    scan : Scan
        Names of the files and columns, without one of labels.
    class_columns : mapping
        From each class to its column of probabilities, in order.
    """

    def one_class(self, name: Any) -> PopulationScan:
        """Name the same rows with the probabilities of one class.

        Parameters
        ----------
        name : object
            One of `classes`.

        Returns
        -------
        PopulationScan
            For everything that works on files.
        """
        return PopulationScan(replace(self.scan, prob=self._column_of(name)[1], beside=()))

    def load(self) -> MulticlassPopulation:
        """Read all rows into memory, some at a time.

        Returns
        -------
        MulticlassPopulation
            The rows that count.
        """
        found = gathered(self.scan, self.class_columns)
        p = found.probabilities()
        weights = found.column(self.scan.weights) if self.scan.weights else None
        return MulticlassPopulation.of_parts(
            p=p,
            classes=self.classes,
            weights=read_design(len(p), weights=weights).weights,
            dropped=found.notes,
            rescaled=rounding_note(*found.rescaled),
            columns=found.covariates(),
        )


def _label_type(rows: Scan) -> pa.DataType:
    return rows.file_set.rows_types([rows.label or ""]).schema.field(0).type


@dataclass(eq=False)
class Gathered:
    """Rows of files as they come: numbers as such, of text a number for each value.

    What was gathered of a column is let go when it is asked for, so that no more than one column
    is in memory twice.
    """

    rows: Scan
    classes: Mapping[Any, str]
    counts: SelectionCounts = field(default_factory=SelectionCounts)
    rescaled: tuple[int, float] = (0, 0.0)
    _p: dict[Any, list[FloatArray]] = field(default_factory=lambda: defaultdict(list))
    _codes: list[AnyArray] = field(default_factory=list)
    _columns: dict[str, list[pa.Array]] = field(default_factory=lambda: defaultdict(list))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done with the rows."""
        return tuple(self.rows.selection.notes(self.counts))

    @property
    def design_columns(self) -> list[str]:
        """The columns that say how rows were drawn."""
        units = [unit.column for unit in (*self.rows.cluster, *self.rows.strata)]
        weights = [self.rows.weights] if self.rows.weights else []
        return list(dict.fromkeys([*weights, *units, *self.rows.replicate_weights]))

    def take(self, batch: Batch) -> None:
        """Check some rows and keep them."""
        table = pa.Table.from_batches([batch.rows])
        names = tuple(self.classes)
        with batch.located():  # covariates and weights are checked, too
            read, _, (count, largest) = read_class_rows(self.rows, self.classes, table)
        if self.rows.label is not None:
            self._codes.append(read.codes.astype(np.min_scalar_type(len(names))))
        for k, name in enumerate(names):
            self._p[name].append(read.p[:, k].copy())  # a view would keep all classes
        before = self.rescaled
        self.rescaled = before[0] + count, max(before[1], largest)
        for name in dict.fromkeys([*self.rows.names, *self.design_columns]):
            self._columns[name].append(_compact(table[name].combine_chunks()))

    def probabilities(self) -> FloatArray:
        """Of all classes, (n, K)."""
        matrix = np.empty((self.counts.kept, len(self.classes)), order="F")
        for k, name in enumerate(self.classes):
            np.concatenate(self._p.pop(name), out=matrix[:, k])
        return matrix

    def codes(self) -> IntArray:
        """The class of each row, (n,)."""
        found = np.concatenate(self._codes).astype(np.int64)
        self._codes.clear()
        return found

    def column(self, name: str) -> pa.ChunkedArray:
        """All values of a column; a column with two roles stays until it is asked for again."""
        used = name in self.rows.names and name in self.design_columns
        chunks = self._columns[name] if used else self._columns.pop(name)
        tables = [pa.table({name: _decoded(chunk)}) for chunk in chunks]
        return pa.concat_tables(tables, promote_options="permissive")[name]

    def covariates(self) -> tuple[Column, ...]:
        """The covariates, encoded as all rows demand."""
        kinds = self.rows.kinds
        columns = tuple(encode(name, self.column(name), kinds=kinds) for name in self.rows.names)
        missing = self.rows.missing
        found: tuple[Column, ...] = settle_missing({"columns": columns}, missing)["columns"]
        return found


def read_class_rows(
    rows: Scan, classes: Mapping[Any, str], table: pa.Table
) -> tuple[ClassChunk, Design, tuple[int, float]]:
    """Check some rows of files and read them."""
    names = tuple(classes)
    matrix = np.empty((table.num_rows, len(names)), order="F")
    for k, (name, column) in enumerate(classes.items()):
        matrix[:, k] = class_numbers(table[column], name)
    matrix, rescaled = rows_that_sum_to_1(matrix, names)
    parts = rows._read(table, with_label=False)
    codes: IntArray = np.zeros(table.num_rows, dtype=np.int64)
    if rows.label is not None:
        labels = rows.kinds.labels_of(rows.label)
        codes = read_codes(table[rows.label], names, len(names), labels)[1]
    design = parts["design"]
    chunk = ClassChunk(0, matrix, codes, parts["columns"], design.weights)
    return chunk, design, rescaled


def _compact(array: pa.Array) -> pa.Array:
    """Text as numbers with a dictionary; everything else takes little room as it is."""
    is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    return array.dictionary_encode() if is_text else array


def _decoded(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def gathered(rows: Scan, classes: Mapping[Any, str]) -> Gathered:
    """Read all rows, some at a time, check them, and keep what is needed of them."""
    found, room = Gathered(rows, classes), Room()
    for batch, counts in _selected(rows):
        found.counts = found.counts.plus(counts)
        if batch.rows.num_rows:
            room.take(batch.rows, batch.path)
            found.take(batch)
    if not found.counts.n:
        raise rows.file_set.without_rows()
    if found.counts.kept < 2 and rows.label is not None:
        raise too_few_rows(found.counts.kept)
    return found


def _selected(rows: Scan) -> Iterator[tuple[Batch, SelectionCounts]]:
    """The rows that count, some at a time, and what became of the others."""
    selection = rows.selection
    subjects = {name: Subject("x", name) for name in rows.roles}
    for whole in rows._batches(every=True):
        rest = whole
        while rest.rows.num_rows:
            batch, rest = rest.split(WINDOW_ROWS)
            n = batch.rows.num_rows
            if selection.is_all:
                yield batch, SelectionCounts(n, n, n)
                continue
            columns = dict(zip(batch.rows.schema.names, batch.rows.columns, strict=True))
            left = selection.of_batch(columns, subjects, "")
            table = pa.RecordBatch.from_pydict(left.columns)
            yield replace(batch, rows=table, numbers=left.rows), left.counts
