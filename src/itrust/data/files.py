"""Rows in files, larger than memory: `scan` names them, and hands them out some at a time.

Each batch goes through the same intake as rows in memory, so the same sentences come out, with file
and row.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import attrgetter
from typing import Any, Self, TypeAlias, TypeGuard

import pyarrow as pa

from itrust._core import Advance, InputError, IntArray, Subject, counted, listed, tickets
from itrust.data.design import design_notes
from itrust.data.encoding import frame_columns, kind_of, repeated
from itrust.data.file_set import Batch, FileSet, plain_columns
from itrust.data.formats import AS_SEEN, SHARE, FilePart, TextForm, room_for, room_left
from itrust.data.intake import WRONG_ROLE, MissingRule, Roles, refuse_copies, rows_of_columns
from itrust.data.predicates import Predicate
from itrust.data.probabilities import class_position, numbers_like_labels, rounding_note
from itrust.data.rows import Rows, odd_rows
from itrust.data.sample import MulticlassPopulation, MulticlassSample, Population, Sample
from itrust.data.selection import SelectionCounts, read_na_values, selection_notes
from itrust.data.survey import (
    Census,
    ChosenRows,
    Extract,
    Pilot,
    Smallest,
    rows_at_hand,
    rows_of_runs,
    run_tickets,
    whole_runs,
)

WINDOW_ROWS = 65_536  # that are read and checked at once


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
        Excel and SQLite. A sheet or table is named behind its file, as in
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
        The names of the files and columns, checked; no row has been read yet.

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
    named: Scan = scanned(**locals())  # all arguments, and nothing else
    return named


def scanned(path: Any, *, form: TextForm = AS_SEEN, na_values: object = None, **named: Any) -> Any:
    """Name rows of files, with a column of labels or without."""
    codes = read_na_values(na_values)
    file_set = FileSet.of(path, replace(form, na_values=(*form.na_values, *codes)))
    if twice := repeated(file_set.files):
        raise InputError("{file} stands more than once among the files", file=str(twice[0]))
    roles = Roles.of(file_set.names, na_values=codes, in_files=True, **named)
    file_set.refuse_other_kinds(roles.columns)
    label = [] if roles.label is None else [roles.label]
    kinds = file_set.kinds(roles.kinds, [*label, *roles.names], roles.names)
    classes = roles.classes
    if classes and label:
        classes = numbers_like_labels(classes, _type_of(file_set, label[0]))
    roles = replace(roles, kinds=kinds, classes=classes)
    return Scan(file_set, roles)


def _type_of(file_set: FileSet, name: str) -> pa.DataType:
    return file_set.rows_types([name]).schema.field(0).type


@dataclass(frozen=True, eq=False, repr=False)
class FileRows:
    """What a `Scan` does for everything that reads its rows.

    Attributes
    ----------
    file_set : FileSet
        The files as they were when they were named; one that has changed since is refused.
    roles : Roles
        Which column is what, and which rows count.
    parts : tuple of FilePart or None
        The pieces of the files that are read; None for whole files.
    rows : range or None
        Numbers of the rows that are meant, out of those of the pieces; None for all.
    """

    file_set: FileSet
    roles: Roles
    parts: tuple[FilePart, ...] | None = None
    rows: range | None = None

    label = property(attrgetter("roles.label"), doc="The column of labels.")
    classes = property(attrgetter("roles.classes"), doc="Names of the classes; of two labels none.")
    names = property(attrgetter("roles.names"), doc="Names of the covariates.")
    weights = property(attrgetter("roles.weights"), doc="The column of weights.")
    missing = property(attrgetter("roles.missing"), doc="What to do with missing values.")
    several = property(attrgetter("roles.several"), doc="Whether there are several classes.")
    files = property(attrgetter("file_set.files"), doc="The files, in order.")
    form = property(attrgetter("file_set.form"), doc="How text is read.")

    @property
    def prob(self) -> str:
        """The column of probabilities, of several classes of the first."""
        return self.roles.prob[0]

    @property
    def kind(self) -> type[Rows]:
        """What they are in memory."""
        kind: type[Rows] = KINDS[2 * (self.label is None) + self.several]
        return kind

    @property
    def is_simple(self) -> bool:
        """Whether rows are independent draws from one stratum."""
        return not (self.roles.cluster or self.roles.strata or self.roles.replicate_weights)

    @property
    def clusters(self) -> None:
        """None: rows are independent; clusters are counted in memory only, and refused here."""
        if self.roles.cluster:
            raise clusters_in_files()

    @property
    def in_memory(self) -> None:
        """None: the rows are in files."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say of the files; the rest shows when the rows are read."""
        return tuple(self.file_set.notes)

    @property
    def n(self) -> int:
        """Number of rows that count. Every call reads the files."""
        return self.selected().kept

    @property
    def rows_expected(self) -> float:
        """About how many rows there are, told by the files without reading them; 1 at least."""
        return max(self.file_set.about_rows, 1.0)

    def __repr__(self) -> str:
        classes = f"classes {listed(self.classes)}, " if self.classes else ""
        labels = "no labels, " if self.label is None else ""
        files, on = counted(len(self.files), "file"), listed(self.names) or "none"
        return f"<Scan: {files}, {labels}{classes}covariates {on}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        kind = self.kind.__name__
        raise AttributeError(f"a Scan has no {name!r}; scan.load() gives a {kind} in memory")

    def load(self) -> Any:
        """Read all rows into memory.

        Returns
        -------
        Sample, MulticlassSample, Population or MulticlassPopulation
            The same rows, for everything that needs all of them at once.
        """
        room, tables = room_for(SHARE), []
        for batch, _ in self._batches(every=True):
            room = room_left(room, batch.rows, batch.path)
            tables.append(pa.Table.from_batches([batch.rows]))
        if not tables:
            raise self.file_set.without_rows()
        table = pa.concat_tables(tables, promote_options="permissive")
        del tables
        with self.file_set.located():
            return rows_of_columns(self.kind, self.roles, frame_columns(table))

    def one_class(self, name: Any) -> Self:
        """Name the same rows with one class against the rest.

        Labels of no class count as the rest, and rows that sum to 1 up to rounding stay as they
        are: only who reads all classes looks at these.

        Parameters
        ----------
        name : object
            One of `classes`.

        Returns
        -------
        Scan
            For everything that works on files.
        """
        k = class_position(self.classes, name)
        positive = self.classes[k]
        if self.label is None:
            positive = None
        elif not self.roles.kinds.value_labels.get(self.label):
            is_text = kind_of(_type_of(self.file_set, self.label)) == "text"
            positive = str(positive) if is_text else positive
        return self._with_roles(prob=(self.roles.prob[k],), classes=(), positive=positive)

    def _with_roles(self, **changed: Any) -> Self:
        return replace(self, roles=replace(self.roles, **changed))

    def with_names(self, names: Sequence[str]) -> Self:
        """Name the same rows with some of the covariates."""
        return self._with_roles(names=tuple(names))

    def without_label(self) -> Self:
        """Name the same rows as a population; labels are not read."""
        return self._with_roles(label=None, cluster=(), strata=(), positive=None)

    def only(self, *parts: FilePart) -> Self:
        """Name the rows of some pieces of the files, which follow each other."""
        paths = dict.fromkeys(part.path for part in parts)
        return replace(self, file_set=self.file_set.only(*paths), parts=parts)

    def spanning(self, parts: Sequence[FilePart], rows: range) -> Self:
        """Name the rows with some numbers, which lie in some consecutive pieces of the files."""
        return replace(self.only(*parts), rows=rows)

    def chunks(self, size: int) -> Iterator[Any]:
        """Read all rows in order, checked as they come; chunks end at multiples of `size`."""
        for window in self._windows(size * max(1, WINDOW_ROWS // size)):
            if window.rows:
                rows = window.read(self)
                yield from (rows.cut(some, rows.weights) for some in window.cut(size))

    def _windows(self, size: int) -> Iterator[Window]:
        """Rows in stretches that end at multiples of `size`: sums are as in memory to the bit."""
        first = self.parts[0].start if self.parts else 0
        batches: list[Batch] = []
        held, counts = 0, SelectionCounts()
        last = None if self.rows is None else self.rows.stop
        for batch, own in self._batches():
            if self.rows is not None and first < self.rows.start:  # those of another machine
                skipped, batch = batch.split(self.rows.start - first)
                first += skipped.rows.num_rows
                if not batch.rows.num_rows:  # what was left out among them was counted there
                    continue
            if last is not None and first + held + batch.rows.num_rows > last:
                batch, own = batch.split(last - first - held)[0], SelectionCounts()
            counts = counts.plus(own)
            while batch.rows.num_rows:
                room = size - (first + held) % size
                some, batch = batch.split(room)
                batches.append(some)
                held += some.rows.num_rows
                if some.rows.num_rows == room:
                    yield Window(first, tuple(batches), counts)
                    first, batches, held, counts = first + held, [], 0, SelectionCounts()
            if first + held == last:
                break
        if held or counts.n:
            yield Window(first, tuple(batches), counts)

    def selected(self) -> SelectionCounts:
        """Read all rows and tell what becomes of them."""
        counts = (own for _, own in self._batches())
        return reduce(SelectionCounts.plus, counts, SelectionCounts())

    def extract(self, size: int | None = None, advance: Advance | None = None) -> Extract:
        """Count the rows and keep random ones with their labels, in one pass over the files."""
        most = rows_at_hand(size)
        return self.extract_of([self.harvest(most, advance=advance)], most)

    def pilot(self, size: int) -> Pilot:
        """Random rows of all files (which may be sorted), without labels, from one pass."""
        return self.pilot_of([self.harvest(size, counted=False)], size)

    def harvest(
        self,
        size: int,
        max_ticket: float = 1.0,
        advance: Advance | None = None,
        counted: bool = True,
    ) -> ChosenRows:
        """Read these rows, and keep those with the smallest tickets, `size` at most.

        All are checked and counted, or only those that may be kept, without their labels.
        """
        census, counts, rounded = None, SelectionCounts(), (0, 0.0)
        chosen, runs, bare = Smallest(size, max_ticket), Smallest(rows_of_runs()), None
        for window in self._windows(WINDOW_ROWS):
            counts = counts.plus(window.counts)
            if not window.rows:
                continue
            some = chosen.add(tickets(window.first, window.rows), window.table)
            if not counted:
                bare = bare or self.without_label()
                if some.size:
                    window.read(bare, some)
                continue
            rows = window.read(self)
            here = Census.of(rows, rows.weights)
            census = here if census is None else census.plus(here, rows.categories)
            rounded = rounded[0] + rows.rounded[0], max(rounded[1], rows.rounded[1])
            if advance:
                advance(window.rows)
            runs.add(run_tickets(window.first, window.rows), window.table)
        return ChosenRows(chosen.settle(), counts, runs.settle(), census, rounded)

    def extract_of(
        self, pieces: Sequence[ChosenRows], size: int, parts: tuple[FilePart, ...] = ()
    ) -> Extract:
        """Put together what was found in several pieces, in the order of the files."""
        chosen = self._chosen(pieces, size)
        some = self._read(chosen.table).checked()
        counted = [piece.census for piece in pieces if piece.census is not None]
        census = reduce(lambda one, other: one.plus(other, some.categories), counted)
        refuse_copies(some)
        stretches, runs = Smallest.of([piece.runs for piece in pieces], rows_of_runs()), None
        whole = whole_runs(stretches.drawn)
        if chosen.drawn.size < census.n and whole.size:
            runs = self._read(stretches.table.take(pa.array(whole))).with_all_levels(census)
        counts = reduce(SelectionCounts.plus, [piece.counts for piece in pieces])
        rounded = sum(piece.rounded[0] for piece in pieces), max(p.rounded[1] for p in pieces)
        odd = odd_rows(some, census.labels, not census.uncertain, some.predictions, some.columns)
        selected, levels = (
            tuple(selection_notes(counts, self.roles.where)),
            some.with_all_levels(census),
        )
        said = [*selected, *rounding_note(*rounded), *design_notes(some.design), *odd]
        notes = tuple(dict.fromkeys(said))
        return Extract(
            self, levels, chosen.drawn, some.weights, census, parts, runs, notes, selected
        )

    def pilot_of(self, pieces: Sequence[ChosenRows], size: int) -> Pilot:
        """Choose the rows with the smallest tickets among candidates of several pieces."""
        chosen = self._chosen(pieces, size)
        rows = self.without_label()._read(chosen.table)
        counts = reduce(SelectionCounts.plus, [piece.counts for piece in pieces])
        notes = tuple(selection_notes(counts, self.roles.where))
        return Pilot(rows.points, rows.weights, counts.kept, chosen.drawn, counts.left_out, notes)

    def _chosen(self, pieces: Sequence[ChosenRows], size: int) -> Smallest:
        """The rows with the smallest tickets, which are at least as many as are needed."""
        chosen, labelled = Smallest.of([piece.rows for piece in pieces], size), self.kind.labelled
        count = int(chosen.drawn.size)
        if count < 1 + labelled:
            there = "1 row" if count else "no rows"
            needs = f"a {'sample' if labelled else 'population'} needs at least {1 + labelled} row"
            problem = f"the files hold {there} that count; {needs}{'s' * labelled}"
            raise InputError(problem, count=count)
        return chosen

    def _read(self, table: pa.Table) -> Any:
        """Some rows, read and checked; those that lack something and are to be left out are."""
        missing = "level" if self.missing == "drop" else self.missing
        return self.roles.read(self.kind, frame_columns(table), partial=True, missing=missing)

    def _batches(self, *, every: bool = False) -> Iterator[tuple[Batch, SelectionCounts]]:
        """The rows as they are read: those that count and what became of others; or every one."""
        roles = self.roles
        named = roles.condition_columns(self.file_set.names)
        subjects = {name: Subject("x", name) for name in roles.columns}
        wanted = list(dict.fromkeys([*roles.columns, *named]))
        for part in self.parts or map(FilePart, self.file_set.files):
            offset = part.offset
            with closing(self.file_set.batches(part, wanted)) as batches:
                for batch in batches:
                    rows, n = plain_columns(batch), batch.num_rows
                    whole = Batch(part.path, offset, rows, self.file_set)
                    if every or roles.keeps_all:
                        yield whole, SelectionCounts(n, n, n)
                    else:
                        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
                        left = roles.applied(columns, subjects, partial=True)
                        kept = pa.RecordBatch.from_pydict(left.columns)
                        yield replace(whole, rows=kept, numbers=left.rows), left.counts
                    offset += n


@dataclass(frozen=True, eq=False)
class Window:
    """Consecutive rows of the whole, from one batch of a file or several."""

    first: int
    batches: tuple[Batch, ...]
    counts: SelectionCounts

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(batch.rows.num_rows for batch in self.batches)

    @cached_property
    def table(self) -> pa.Table:
        """The rows as one table."""
        tables = [pa.Table.from_batches([batch.rows]) for batch in self.batches]
        return pa.concat_tables(tables, promote_options="permissive")

    def read(self, scan: FileRows, some: IntArray | None = None) -> Rows:
        """The rows, or some of them; what is wrong with one has its file and its number there."""
        try:
            table = self.table if some is None else self.table.take(pa.array(some))
            rows: Rows = scan._read(table)
        except InputError:
            for batch in self.batches:  # only one of them knows the row
                with batch.located():
                    scan._read(pa.Table.from_batches([batch.rows]))
            raise
        return rows.replaced(first=self.first)

    def cut(self, size: int) -> Iterator[slice]:
        """Pieces that end at multiples of `size` in the whole."""
        at, stop = 0, self.rows
        while at < stop:
            end = min(stop, at + size - (self.first + at) % size)
            yield slice(at, end)
            at = end


class Scan(FileRows):
    """Rows of files; made by `scan` and `Population.scan`, which check what they are given.

    They have two labels, several classes (`scan(..., prob={...})`), or no labels.

    Examples
    --------
    >>> import itrust as it, pyarrow as pa, pyarrow.parquet, tempfile, os
    >>> file = os.path.join(tempfile.mkdtemp(), "games.parquet")
    >>> rows = pa.table({"y": ["tie", "win"], "p_win": [0.3, 0.8], "p_tie": [0.7, 0.2]})
    >>> pa.parquet.write_table(rows, file)
    >>> it.scan(file, label="y", prob="p_*")
    <Scan: 1 file, classes 'win', 'tie', covariates none>
    >>> it.scan(file, label="y", prob="p_*").load()
    <MulticlassSample: 2 rows, classes 'win', 'tie', covariates none>
    """


Source: TypeAlias = Rows | Scan  # whoever needs all rows at once asks `in_memory`
KINDS: tuple[type[Rows], ...] = (Sample, MulticlassSample, Population, MulticlassPopulation)


def is_binary_scan(source: object) -> TypeGuard[Scan]:
    """Whether these are rows of files with two labels."""
    return isinstance(source, Scan) and source.label is not None and not source.several


def clusters_in_files() -> InputError:
    """The error about a scan whose rows are not simple, where that matters."""
    problem = "rows with clusters, strata or replicate weights are tested in memory; use "
    return InputError(f"{problem}scan(...).load()", argument="sample")
