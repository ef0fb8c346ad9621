"""A recalibrator at work on the rows of files, some at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from itrust._core import FloatArray, InputError, Setting, Write, progress_stages, write_all
from itrust.data import (
    Column,
    FileCopy,
    FileSet,
    MissingRule,
    Points,
    column_names_known,
    prepare_copy,
    read_covariates,
    read_probabilities,
    refuse_among_covariates,
    settled_columns,
)

if TYPE_CHECKING:
    from itrust.recalibrate.base import Recalibrator

LOOKING, WRITING = "looking through the rows", "recalibrating"


class _Applied:
    """What both kinds of applications read and count."""

    def __init__(
        self, learned: Recalibrator, columns: Mapping[Any, str], missing: MissingRule
    ) -> None:
        for column in columns.values():
            refuse_among_covariates("prob", column, list(learned.columns_))
        self.learned, self.columns, self.missing = learned, columns, missing
        self.rows = self.outside = self.at_edge = 0
        self.unseen: Counter[str] = Counter()
        self._moved = 0.0

    def _read(self, frame: pa.Table) -> tuple[FloatArray, tuple[Column, ...]]:
        """Probabilities (n, K) and the covariates of the fit."""
        learned = self.learned
        with _every_row_gets_its_answer():
            told = []
            for column in self.columns.values():
                with column_names_known({"prob": column}):
                    told.append(read_probabilities(frame[column], frame.num_rows))
            x = {name: frame[name] for name in learned.columns_}
            columns = read_covariates(x, None, partial=True, kinds=learned.kinds_)
            settled_columns(columns, self.missing)
        return np.column_stack(told), columns

    def _count(self, columns: tuple[Column, ...], far: FloatArray, moved: FloatArray) -> None:
        self.rows += far.size
        self.outside += int((far >= 1).sum())
        self.at_edge += int(((far > 0) & (far < 1)).sum())
        self.unseen.update(self.learned.unseen(columns))
        self._moved += float(moved.sum())

    @property
    def moved(self) -> float:
        """Mean distance between probabilities before and after."""
        return self._moved / self.rows


class Application(_Applied):
    """Recalibrates rows that come some at a time, and counts what was done to them."""

    def __init__(self, learned: Recalibrator, prob: str, missing: MissingRule) -> None:
        super().__init__(learned, {prob: prob}, missing)
        self._before = self._after = 0.0

    def __call__(self, frame: pa.Table) -> FloatArray:
        """Recalibrate some rows: a table with the probabilities and the covariates of the fit."""
        told, columns = self._read(frame)
        p = told[:, 0]
        found, far = self.learned._placed(Points(p, self.learned._aligned(columns)))
        after = as_probabilities(found)
        self._count(columns, far, np.abs(after - p))
        self._before += float(p.sum())
        self._after += float(after.sum())
        return after

    @property
    def before(self) -> float:
        """Mean probability as given."""
        return self._before / self.rows

    @property
    def after(self) -> float:
        """Mean recalibrated probability."""
        return self._after / self.rows


class ClassApplication(_Applied):
    """The same for several classes: one column for each, in the order of the fit."""

    def __call__(self, frame: pa.Table) -> FloatArray:
        """Recalibrate some rows: a table with the probabilities and the covariates of the fit."""
        p, columns = self._read(frame)
        after, far = self.learned._placed_classes(p, columns)
        # Of what one class gains, others lose as much.
        self._count(columns, far, np.abs(after - p).sum(axis=1) / 2)
        return after


def write_recalibrated(
    made: Callable[[pa.Table], FloatArray],
    source: FileSet,
    out: Path,
    column: str | Sequence[str],
    read: Sequence[str],
    *,
    na_values: Sequence[Any],
    safe_cells: bool = False,
    others: Mapping[Path, Write] | None = None,
    progress: bool | None = None,
) -> FileCopy:
    """Write the rows of files with the recalibrated probabilities, whole or not at all."""
    rows = source.about_rows
    with progress_stages({LOOKING: 1.0, WRITING: 4.0}, show=progress) as begin:
        looked = begin(LOOKING, rows)
        copy = prepare_copy(source, out, column, read, looked, na_values, safe_cells)
        first = {out: lambda path: copy.write(path, made, begin(WRITING, rows))}
        write_all({**first, **(others or {})})
    return copy


def as_probabilities(told: FloatArray) -> FloatArray:
    """Recalibrated probabilities within [0, 1]; refuses what is no number, (n,) -> (n,)."""
    odd = np.isnan(told)
    if odd.any():
        raise InputError(
            "what was learned gives no probability for {row}; fit again, on rows like these",
            argument="x",
            row=int(np.argmax(odd)),
            count=int(odd.sum()),
        )
    return np.clip(told, 0.0, 1.0)


@contextmanager
def _every_row_gets_its_answer() -> Iterator[None]:
    """Dropping rows is no cure here: it is about the rows of the fit."""
    try:
        yield
    except InputError as error:
        drop = Setting("missing", "drop")
        left = tuple(cure for cure in error.settings if cure != drop)
        if error.details.get("cure") == drop:
            lack = "1 row has" if error.count == 1 else "{count} rows have"
            told = f"{lack} no {{title}} (first: {{row}}); fill it in, or leave such rows out"
            raise error.at(problem=told, settings=left) from None
        raise error.at(settings=left) from None
