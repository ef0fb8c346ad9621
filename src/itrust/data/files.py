"""Rows in files, larger than memory: `scan` names them, `Scan` hands them out chunk by chunk.

Each batch goes through the same intake as a sample in memory, so the same sentences come out, with
file and row.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from itrust._core import Advance, FloatArray, InputError, Subject, counted, listed, tickets
from itrust.data.class_intake import class_columns, names_several
from itrust.data.encoding import frame_columns
from itrust.data.extract import (
    RUN_ROWS,
    RUNS,
    Census,
    Extract,
    rows_at_hand,
    rows_of_runs,
    whole_runs,
    with_all_levels,
)
from itrust.data.file_set import Batch, FileSet, plain_columns
from itrust.data.formats import AS_SEEN, FilePart, Room, TextForm
from itrust.data.grammar import as_condition
from itrust.data.intake import MissingRule, checked_missing, read_parts
from itrust.data.kinds import PLAIN, Kinds
from itrust.data.predicates import Predicate
from itrust.data.rows import Chunk, Points
from itrust.data.sample import Sample, refuse_positive
from itrust.data.selection import RowSelection, read_na_values
from itrust.data.source import Candidates, Pilot, smallest_of
from itrust.data.units import AUTO, UnitColumn, replicate_columns, unit_columns

WINDOW_ROWS = 65_536  # that are read and checked at once
WRONG_ROLE = "label, prob, on and weights are names of columns, not {value}"


def scan(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | FileSet,
    *,
    label: str,
    prob: str | Mapping[Any, str] | Sequence[str],
    on: str | Sequence[str] = (),
    weights: str | None = None,
    cluster: str | Sequence[str] | None = None,
    strata: str | Sequence[str] | None = None,
    replicate_weights: str | Sequence[str] | None = None,
    replicate_method: str | None = None,
    positive: object = None,
    missing: MissingRule = "error",
    categories: str | Sequence[str] = (),
    numbers: str | Sequence[str] = (),
    value_labels: Mapping[str, Mapping[Any, str]] | None = None,
    na_values: object = None,
    where: str | Predicate | None = None,
    form: TextForm = AS_SEEN,
) -> Scan:
    """Name the rows of files without loading them.

    Works on a scan, in a few passes over the files: `audit`, `klce_test` (Bernoulli, Rademacher,
    Spectral, Hoeffding), `klce2`, `null_sd`, `detectable`, `local_bias`, `bias_groups`,
    `bias_slices`, the scores, and the `fit` of recalibrators. Everything else wants
    `scan(...).load()`. Rows with clusters, strata or replicate weights are loaded by those that
    can use them. Rows in messages count from 0 after the header. In CSV files the first 8 MB decide
    what a column holds.

    Parameters
    ----------
    path : path, pattern ("folder/*.parquet"), folder, list of paths, or FileSet
        Parquet, Feather/Arrow, CSV, TSV and JSON lines (these three also gzipped), Stata, SPSS,
        Excel, SQLite and DuckDB. A sheet or table is named behind its file, as in
        "homes.xlsx::2024"; by default it is the first sheet, or the only table. Names of folders
        such as "year=2020", below the folder that is named, are columns. Files that change after
        the scan was made are refused.
    label : str
        Name of the column of labels.
    prob : str, or mapping, list or pattern for several classes
        Name of the column of predicted probabilities. For several classes, from each class to its
        column, columns that are called as their classes, or a pattern such as "p_*", as for
        `Sample.from_frame`.
    on : str or sequence of str
        Names of the covariates; none by default.
    weights : str, optional
        Name of the column of survey weights. Default: every row counts alike.
    cluster : str or sequence of str, optional
        Name of the column of clusters, several names, or blocks of time such as "week(date)", as
        for `Sample.from_frame`. Default: all rows are independent.
    strata : str or sequence of str, optional
        Name of the column of strata, or several. Default: one stratum.
    replicate_weights : str or sequence of str, optional
        Names of the columns of replicate weights, or a pattern such as "REPWT*". Default: none.
    replicate_method : str, optional
        What the replicate weights were made by, as for `Sample`. Default: there are none.
    positive : object, optional
        The label that counts as 1; all others count as 0. Default: labels are 0 and 1.
    missing : {"error", "level", "drop"}
        What to do with missing values, as for `Sample`; "error" by default.
    categories, numbers : str or sequence of str
        Columns that are codes, or quantities, as for `Sample`.
    value_labels : mapping of str to mapping, optional
        What codes mean, by column, as for `Sample`. Default: what the file says, if it does.
    na_values : number, str, or list of these, optional
        Codes that stand for a missing value, as for `Sample.from_frame`.
    where : str or Predicate, optional
        Which rows count, as for `Sample.from_frame`.
    form : TextForm
        How text is read: separator, decimal sign, order of dates. Default: as the first lines of
        the file look.

    Returns
    -------
    Scan
        The names of the files and columns, checked; no row has been read yet. A `MulticlassScan`
        where `prob` names the columns of several classes.

    Examples
    --------
    >>> import itrust as it, pyarrow as pa, pyarrow.parquet, tempfile, os
    >>> file = os.path.join(tempfile.mkdtemp(), "homes.parquet")
    >>> rows = pa.table({"y": [0, 1, 1], "p": [0.2, 0.7, 0.9], "age": [3, 4, 5]})
    >>> pa.parquet.write_table(rows, file)
    >>> it.scan(file, label="y", prob="p", on="age")
    <Scan: 1 file, covariates 'age'>
    """
    if not isinstance(label, str):
        raise InputError(WRONG_ROLE, argument="label", value=label)
    files, classes = classes_in_files(path, prob, form)
    probs: list[Any] = list(classes.values()) or [prob]
    if classes:
        refuse_positive(positive)
    made = name_rows(
        files,
        label,
        probs[0],
        on,
        weights,
        missing=missing,
        said=Kinds.of(categories, numbers, value_labels),
        na_values=na_values,
        where=where,
        form=form,
        positive=positive,
        beside=tuple(probs[1:]),
    )
    if any(named is not None for named in (cluster, strata, replicate_weights, replicate_method)):
        known = made.file_set.names
        taken = [("label", label), *(("prob", str(name)) for name in probs)]
        taken += [("weights", weights)] if weights else []
        made = replace(
            made,
            cluster=unit_columns(cluster, known, "cluster"),
            strata=unit_columns(strata, known, "strata"),
            replicate_weights=tuple(replicate_columns(replicate_weights, known, taken)),
            replicate_method=replicate_method,
        )
    made = settled_kinds(made)
    if classes:
        from itrust.data.multiclass_files import MulticlassScan

        several: Any = MulticlassScan.of(made, classes)
        return several  # type: ignore[no-any-return]
    return made


def classes_in_files(path: Any, prob: object, form: TextForm) -> tuple[Any, dict[Any, str]]:
    """The files, and the column of each class where a user names several; else none.

    Files are looked at only where a name may be a pattern.
    """
    if isinstance(prob, str) and not ("*" in prob or "=" in prob):
        return path, {}
    if not isinstance(prob, str | Mapping | Sequence):
        return path, {}
    files = path if isinstance(path, FileSet) else FileSet.of(path, form)
    if not names_several(prob, dict.fromkeys(files.names)):
        return path, {}
    return files, class_columns(files.names, prob)


def name_rows(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | FileSet,
    label: str | None,
    prob: str,
    on: str | Sequence[str],
    weights: str | None,
    *,
    missing: MissingRule,
    said: Kinds,
    na_values: object,
    where: str | Predicate | None,
    form: TextForm,
    positive: object = None,
    beside: tuple[str, ...] = (),
) -> Scan:
    """Name rows of files, with a column of labels or without; `settled_kinds` comes last."""
    if on is not None and not isinstance(on, Iterable):
        raise InputError(WRONG_ROLE, argument="on", value=on)
    chosen = [on] if isinstance(on, str) else [str(name) for name in on or ()]
    codes = read_na_values(na_values)
    file_set = FileSet.of(path, replace(form, na_values=(*form.na_values, *codes)))
    twice = [file for file, count in Counter(file_set.files).items() if count > 1]
    if twice:
        raise InputError("{file} stands more than once among the files", file=str(twice[0]))
    made = Scan(
        file_set,
        label,
        prob,
        tuple(chosen),
        weights,
        positive,
        checked_missing(missing),
        kinds=said,
        na_values=codes,
        where=None if where is None else as_condition(where),
        beside=beside,
    )
    _refuse_wrong_roles(made)
    made._refuse_unknown_columns()
    return made


def settled_kinds(made: Scan) -> Scan:
    """The same rows; what the files say of their columns is known, and every file has them."""
    made.file_set.refuse_other_kinds(made.roles)
    label = [] if made.label is None else [made.label]
    return replace(made, kinds=made.file_set.kinds(made.kinds, [*label, *made.names], made.names))


def _refuse_wrong_roles(made: Scan) -> None:
    given = {"label": made.label, "prob": made.prob, "weights": made.weights}
    for argument, name in given.items():
        if not isinstance(name, str) and not (argument in ("label", "weights") and name is None):
            raise InputError(WRONG_ROLE, argument=argument, value=name)
    roles = made.roles
    twice = [name for name in roles if roles.count(name) > 1]
    if twice:
        raise InputError(
            "a column has one role only; {twice} has several",
            details={"twice": listed(dict.fromkeys(twice))},
        )


@dataclass(frozen=True, eq=False, repr=False)
class Scan:
    """Rows of files; made by `scan`, which checks what it is given.

    A scan only names the rows. Nothing that is found out about them is kept in it: who reads them
    hands on what was found (see `itrust.engines.Survey`).

    Attributes
    ----------
    file_set : FileSet
        The files as they were when the scan was made, before anything was read: names and kinds
        of columns, too, belong to that state. A file that has changed since is refused before and
        after every reading of it, here and on other machines.
    label, prob : str
        The columns that hold labels and probabilities. The label is None inside a
        `PopulationScan`, which reads none.
    names : tuple of str
        Names of the covariates.
    weights : str or None
        The column that holds the weights.
    positive : object
        The label that counts as 1; None where labels are 0 and 1.
    missing : {"error", "level", "drop"}
        What to do with missing values.
    parts : tuple of FilePart or None
        The pieces of the files that are read; None for whole files.
    cluster, strata : tuple of UnitColumn
        The columns that tell clusters and strata; empty without them.
    replicate_weights : tuple of str
        The columns of replicate weights.
    replicate_method : str or None
        What these were made by.
    kinds : Kinds
        What the columns are, as far as somebody said so.
    na_values : tuple
        Codes that stand for missing values.
    where : Predicate or None
        Which rows count; None for all.
    rows : range or None
        Numbers of the rows that are meant, out of those of the pieces; None for all.
    beside : tuple of str
        Columns that are read as well: the probabilities of other classes in a `MulticlassScan`.
    """

    file_set: FileSet
    label: str | None
    prob: str
    names: tuple[str, ...]
    weights: str | None
    positive: Any
    missing: MissingRule
    parts: tuple[FilePart, ...] | None = None
    cluster: tuple[UnitColumn, ...] = ()
    strata: tuple[UnitColumn, ...] = ()
    replicate_weights: tuple[str, ...] = ()
    replicate_method: str | None = None
    kinds: Kinds = PLAIN
    na_values: tuple[Any, ...] = ()
    where: Predicate | None = None
    rows: range | None = None
    beside: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """The files, in order."""
        return self.file_set.files

    @property
    def form(self) -> TextForm:
        """How text is read."""
        return self.file_set.form

    @property
    def selection(self) -> RowSelection:
        """Which rows count."""
        return RowSelection(self.na_values, self.where, self.missing == "drop", self.kinds)

    def _condition_columns(self) -> list[str]:
        """The columns that the condition reads."""
        if self.where is None:
            return []
        return self.selection.named(self.file_set.names, "" if self.beside else self.prob)

    def _refuse_unknown_columns(self) -> None:
        """Raise if somebody says something of a column that is not there."""
        if self.kinds.is_said:
            self.kinds.among(self.file_set.names)
        self._condition_columns()

    @property
    def roles(self) -> list[str]:
        """All columns with a role."""
        label = [] if self.label is None else [self.label]
        probs = [self.prob, *self.beside]
        own = [*label, *probs, *self.names, *([self.weights] if self.weights else [])]
        units = (unit.column for unit in (*self.cluster, *self.strata))
        more = dict.fromkeys([*units, *self.replicate_weights])
        return [*own, *(name for name in more if name not in own)]

    @property
    def is_simple(self) -> bool:
        """Whether rows are independent draws from one stratum."""
        return not (self.cluster or self.strata or self.replicate_weights)

    @property
    def clusters(self) -> None:
        """None: rows are independent; clusters are counted in memory only, and refused here."""
        if self.cluster:
            raise clusters_in_files()

    def __repr__(self) -> str:
        files = counted(len(self.files), "file")
        return f"<Scan: {files}, covariates {listed(self.names)}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"a Scan has no {name!r}; scan.load() gives a Sample in memory")

    def load(self) -> Sample:
        """Read all rows into memory.

        Returns
        -------
        Sample
            The same rows, for everything that needs all of them at once.
        """
        room, tables = Room(), []
        for batch in self._batches(every=True):
            room.take(batch.rows, batch.path)
            tables.append(pa.Table.from_batches([batch.rows]))
        if not tables:
            raise self.file_set.without_rows()
        frame = pa.concat_tables(tables, promote_options="permissive")
        return Sample.from_frame(
            frame,
            label=self.label or "",
            prob=self.prob,
            on=self.names,
            weights=self.weights,
            cluster=[unit.text for unit in self.cluster] or None,
            strata=[unit.text for unit in self.strata] or None,
            replicate_weights=self.replicate_weights or None,
            replicate_method=self.replicate_method,
            positive=self.positive,
            missing=self.missing,
            na_values=self.na_values,
            where=self.where,
            categories=self.kinds.categories,
            numbers=self.kinds.numbers,
            value_labels=self.kinds.value_labels,
        )

    @property
    def n(self) -> int:
        """Number of rows that count. Every call reads the files; a `Survey` knows it, too."""
        return sum(batch.rows.num_rows for batch in self._batches())

    @property
    def in_memory(self) -> None:
        """None: the rows are in files."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say of the files; the rest shows when the rows are read."""
        return tuple(self.file_set.notes)

    def only(self, *parts: FilePart) -> Scan:
        """Name the rows of some pieces of the files.

        Parameters
        ----------
        *parts : FilePart
            Files, or some rows of them, that follow each other.

        Returns
        -------
        Scan
            The same columns of these pieces.
        """
        paths = dict.fromkeys(part.path for part in parts)
        return replace(self, file_set=self.file_set.only(*paths), parts=parts)

    def spanning(self, parts: Sequence[FilePart], rows: range) -> Scan:
        """Name the rows with some numbers, which lie in some pieces of the files.

        Parameters
        ----------
        parts : sequence of FilePart
            Consecutive pieces that hold the rows; the first knows the number of its first row.
        rows : range
            Numbers of the rows in the whole.

        Returns
        -------
        Scan
            The same columns of these rows.
        """
        return replace(self.only(*parts), rows=rows)

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Read all rows in order, checked as they come.

        Parameters
        ----------
        size : int
            Number of rows at a time; the last chunk may hold fewer.

        Returns
        -------
        iterator of Chunk
            The rows that count, with their labels.
        """
        held: Chunk | None = None  # until it is known what was dropped after it
        dropped = 0
        for window in self._windows(size * max(1, WINDOW_ROWS // size)):
            dropped += window.dropped
            if not window.rows:
                continue
            parts = window.read(self)
            points, design = Points(parts["p"], parts["columns"]), parts["design"]
            for rows in window.cut(size):
                if held is not None:
                    yield held
                held = Chunk(
                    window.first + rows.start,
                    parts["y"][rows],
                    parts["p"][rows],
                    points.take(rows),
                    None if design.weights is None else design.weights[rows],
                    None if design.cluster is None else design.cluster[rows],
                    other_labels=parts["others"],
                    dropped=dropped,
                )
                dropped = 0
        if held is not None:
            yield replace(held, dropped=held.dropped + dropped)

    def _windows(self, size: int) -> Iterator[Window]:
        """Rows in stretches that end at multiples of `size`, whatever batches files come in.

        So sums over chunks are the same to the last bit for rows in memory and in files.
        """
        first = self.parts[0].start if self.parts else 0
        batches: list[Batch] = []
        held = dropped = 0
        last = None if self.rows is None else self.rows.stop
        # Where a piece ends with its parts, rows that are dropped may follow, which are its own.
        more = self.parts is not None and self.parts[-1].start + (self.parts[-1].rows or 0) != last
        for batch in self._batches():
            if self.rows is not None and first < self.rows.start:  # those of another machine
                skipped, batch = batch.split(self.rows.start - first)
                first += skipped.rows.num_rows
                if not batch.rows.num_rows:  # what was dropped among them was counted there
                    continue
            if last is not None and first + held + batch.rows.num_rows > last:
                batch = batch.split(last - first - held)[0]
            dropped += batch.dropped
            while batch.rows.num_rows:
                room = size - (first + held) % size
                some, batch = batch.split(room)
                batches.append(some)
                held += some.rows.num_rows
                if some.rows.num_rows == room:
                    yield Window(first, tuple(batches), dropped)
                    first, batches, held, dropped = first + held, [], 0, 0
            if first + held == last and more:
                break
        if held or dropped:
            yield Window(first, tuple(batches), dropped)

    @property
    def rows_expected(self) -> float:
        """About how many rows there are, told by the files without reading them; 1 at least."""
        return max(self.file_set.about_rows, 1.0)

    def extract(self, size: int | None = None, advance: Advance | None = None) -> Extract:
        """Count the rows and keep random ones with their labels, in one pass over the files.

        Parameters
        ----------
        size : int, optional
            How many rows are kept at most: those with the smallest tickets; default: 100,000.
        advance : callable, optional
            Told the number of rows that were read.

        Returns
        -------
        Extract
            Every row has been checked on the way.
        """
        most = rows_at_hand(size)
        return self.extract_of([self.harvest(most, advance=advance)], most)

    def harvest(
        self, size: int, max_ticket: float = 1.0, advance: Advance | None = None
    ) -> Harvest:
        """What a first pass over these files, or pieces of them, finds.

        Parameters
        ----------
        size : int
            How many rows are kept at most.
        max_ticket : float
            Rows with a larger ticket are left out.
        advance : callable, optional
            Told the number of rows that were read.

        Returns
        -------
        Harvest
            Rows that may be among the chosen ones, and counts of all.
        """
        bar, census, run_bar = max_ticket, None, 1.0
        found: list[tuple[FloatArray, pa.Table]] = []
        runs: list[tuple[FloatArray, pa.Table]] = []
        for window in self._windows(WINDOW_ROWS):
            if not window.rows:
                continue
            parts = window.read(self)
            own = Census.of(Points(parts["p"], parts["columns"]), parts["design"].weights)
            categories = [column.name for column in parts["columns"] if column.is_category]
            census = own if census is None else census.plus(own, categories)
            if advance:
                advance(window.rows)
            drawn = tickets(window.first, window.rows)
            rows = np.flatnonzero(drawn < bar)
            if rows.size:
                found.append((drawn[rows], window.table.take(pa.array(rows))))
                if sum(lot.size for lot, _ in found) > 2 * size:
                    found = [smallest_of(found, size)]
                    bar = float(found[0][0].max())
            chosen, lots = rows_of_runs(window.first, window.rows, run_bar)
            if chosen.size:
                runs.append((lots, window.table.take(pa.array(chosen))))
                if sum(lot.size for lot, _ in runs) > 2 * RUN_ROWS * RUNS:
                    runs = [_joined(runs)]
                    distinct = np.unique(runs[0][0])
                    run_bar = float(distinct[min(distinct.size, RUNS + 1) - 1])
                    kept = np.flatnonzero(runs[0][0] <= run_bar)
                    runs = [(runs[0][0][kept], runs[0][1].take(pa.array(kept)))]
        return Harvest(*smallest_of(found, size), census, *_joined(runs))

    def extract_of(
        self, found: Sequence[Harvest], size: int, parts: tuple[FilePart, ...] = ()
    ) -> Extract:
        """Put together what passes over several pieces have found.

        Parameters
        ----------
        found : sequence of Harvest
            Of every piece, in the order of the files.
        size : int
            How many rows are kept at most.
        parts : tuple of FilePart
            The pieces, where other machines read them.

        Returns
        -------
        Extract
            With the rows that have the smallest tickets, in the order of the files.
        """
        drawn, rows = smallest_of([(lot.tickets, lot.rows) for lot in found], size)
        if drawn.size < 2:
            raise too_few_rows(int(drawn.size))
        read = self._read(rows)
        categories = [column.name for column in read["columns"] if column.is_category]
        counted = [lot.census for lot in found if lot.census is not None]
        census = reduce(lambda one, other: one.plus(other, categories), counted)
        some = with_all_levels(Sample.of_parts(read, self.label or ""), census)
        lots, stretches = _joined([(lot.lots, lot.stretches) for lot in found])
        chosen = whole_runs(lots)
        runs = None
        if drawn.size < census.n and chosen.size >= 2:
            followed = self._read(stretches.take(pa.array(chosen)))
            runs = with_all_levels(Sample.of_parts(followed, self.label or ""), census)
        return Extract(self, some, drawn, read["design"].weights, census, parts, runs)

    def with_names(self, names: Sequence[str]) -> Scan:
        """Name the same rows with some of the covariates.

        Parameters
        ----------
        names : sequence of str
            Those to keep, in this order.

        Returns
        -------
        Scan
            The same rows.
        """
        return replace(self, names=tuple(names))

    def pilot(self, size: int) -> Pilot:
        """Random rows of all files (which may be sorted), from one pass over them.

        Parameters
        ----------
        size : int
            How many rows are chosen at most: those with the smallest tickets, so that a smaller
            size gives some of the same rows.

        Returns
        -------
        Pilot
            Those rows without labels, and the number of all rows, counted on the way.
        """
        return self.pilot_of([self.candidates(size)], size)

    def pilot_of(self, found: Sequence[Candidates], size: int) -> Pilot:
        """Choose the rows with the smallest tickets among candidates of several pieces.

        Parameters
        ----------
        found : sequence of Candidates
            What a pass over each piece has found.
        size : int
            How many rows are chosen at most.

        Returns
        -------
        Pilot
            Those rows without labels, and how many rows all pieces have.
        """
        drawn, rows = smallest_of([(lot.tickets, lot.rows) for lot in found], size)
        if drawn.size < 2:
            raise too_few_rows(int(drawn.size))
        parts = self._read(rows, with_label=False)
        p, w = parts["p"], 1.0 if parts["design"].weights is None else parts["design"].weights
        points = Points(p, parts["columns"])
        return Pilot(points, w**2 * p * (1 - p), drawn, sum(lot.n for lot in found))

    def candidates(self, size: int, max_ticket: float = 1.0) -> Candidates:
        """The rows with the smallest tickets, from a pass over the files.

        Parameters
        ----------
        size : int
            Largest number of rows.
        max_ticket : float
            Rows with a larger ticket are left out.

        Returns
        -------
        Candidates
            The rows as they are in the files, and how many rows there are.
        """
        start = first = self.parts[0].start if self.parts else 0
        bar, dropped = max_ticket, 0
        found: list[tuple[FloatArray, pa.Table]] = []
        for batch in self._batches():
            drawn = tickets(first, batch.rows.num_rows)
            first += batch.rows.num_rows
            dropped += batch.dropped
            rows = np.flatnonzero(drawn < bar)
            if rows.size:
                part = pa.Table.from_batches([batch.rows]).take(pa.array(rows))
                with batch.located(rows):
                    self._read(part, with_label=False)
                found = [smallest_of([*found, (drawn[rows], part)], size)]
                bar = float(found[0][0].max()) if found[0][0].size == size else max_ticket
        return Candidates(*smallest_of(found, size), n=first - start, dropped=dropped)

    def _read(self, frame: Any, *, with_label: bool = True) -> dict[str, Any]:
        columns = frame_columns(frame if isinstance(frame, pa.Table) else pa.table(frame))
        with_label = with_label and self.label is not None
        labels = columns[self.label] if self.label and with_label else np.zeros(frame.num_rows)
        return read_parts(
            labels,
            columns[self.prob],
            {name: columns[name] for name in self.names},
            weights=columns[self.weights] if self.weights else None,
            cluster=self._units(columns) if with_label and self.cluster else None,
            positive=self.positive if with_label else None,
            missing="level" if self.missing == "drop" else self.missing,
            partial=True,
            kinds=self.kinds,
            label=self.label if with_label else None,
        )

    def _units(self, columns: Mapping[str, object]) -> dict[str, object]:
        """What tells the clusters of some rows; the same unit has the same values everywhere."""
        for unit in self.cluster:
            if unit.length == AUTO:
                raise InputError(
                    "{argument}: the length of {value} is found from all rows; use "
                    "scan(...).load(), or name it, such as week({column})",
                    argument="cluster",
                    value=unit.text,
                    details={"column": unit.column},
                )
        return {unit.text: unit.values(columns, "cluster") for unit in self.cluster}

    def _batches(self, *, every: bool = False) -> Iterator[Batch]:
        """The rows as they are read: those that count, or every one with all that is needed."""
        selection = self.selection
        named = self._condition_columns()
        wanted = [*self.roles, *(name for name in named if name not in self.roles)]
        subjects = {name: Subject("x", name) for name in self.roles}
        for part in self.parts or self.file_set.whole_files():
            offset = part.offset
            with closing(self.file_set.batches(part, wanted)) as batches:
                for batch in batches:
                    rows = plain_columns(batch)
                    place = part.path, offset
                    if every or selection.is_all:
                        yield Batch(*place, rows, self.file_set.snapshot)
                    else:
                        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
                        left = selection.of_batch(columns, subjects, self.prob)
                        table = pa.RecordBatch.from_pydict(left.columns)
                        yield Batch(*place, table, self.file_set.snapshot, left.rows, left.dropped)
                    offset += batch.num_rows


def too_few_rows(rows: int) -> InputError:
    """The error about files with hardly any rows that count."""
    told = "1 row" if rows else "no rows"
    return InputError(f"the files hold {told} that count; a sample needs at least 2")


@dataclass(frozen=True, eq=False)
class Harvest:
    """What a first pass over some files has found."""

    tickets: FloatArray
    rows: pa.Table
    census: Census | None
    lots: FloatArray
    stretches: pa.Table


def _joined(found: Sequence[tuple[FloatArray, pa.Table]]) -> tuple[FloatArray, pa.Table]:
    """Several lots of rows, one after the other."""
    filled = [(lots, rows) for lots, rows in found if lots.size]
    if not filled:
        return np.empty(0), pa.table({})
    tables = pa.concat_tables([rows for _, rows in filled], promote_options="permissive")
    return np.concatenate([lots for lots, _ in filled]), tables


@dataclass(frozen=True, eq=False)
class Window:
    """Consecutive rows of the whole, from one batch of a file or several."""

    first: int
    batches: tuple[Batch, ...]
    dropped: int

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(batch.rows.num_rows for batch in self.batches)

    @cached_property
    def table(self) -> pa.Table:
        """The rows as one table."""
        tables = [pa.Table.from_batches([batch.rows]) for batch in self.batches]
        return pa.concat_tables(tables, promote_options="permissive")

    def read(self, scan: Scan) -> dict[str, Any]:
        """The rows as arrays; what is wrong with one is told with its file and its number there."""
        try:
            return scan._read(self.table)
        except InputError:
            for batch in self.batches:  # only one of them knows the row
                with batch.located():
                    scan._read(pa.Table.from_batches([batch.rows]))
            raise

    def cut(self, size: int) -> Iterator[slice]:
        """Pieces that end at multiples of `size` in the whole."""
        at, stop = 0, self.rows
        while at < stop:
            end = min(stop, at + size - (self.first + at) % size)
            yield slice(at, end)
            at = end


def clusters_in_files() -> InputError:
    """The error about a scan whose rows are not simple, where that matters."""
    return InputError(
        "rows with clusters, strata or replicate weights are tested in memory; use "
        "scan(...).load()",
        argument="sample",
    )
