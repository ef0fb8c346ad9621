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


class Application:
    """Recalibrates rows that come some at a time, and counts what was done to them.

    `columns` hold the probabilities: one, or one for each class in the order of the fit.
    """

    def __init__(self, learned: Recalibrator, columns: Sequence[str], missing: MissingRule) -> None:
        for column in columns:
            refuse_among_covariates("prob", column, list(learned.columns_))
        self.learned, self.columns, self.missing = learned, columns, missing
        self.rows = self.outside = self.at_edge = 0
        self.unseen: Counter[str] = Counter()
        self._before = self._after = np.zeros(len(columns))
        self._moved = 0.0

    def __call__(self, frame: pa.Table) -> FloatArray:
        """Recalibrate some rows: a table with the probabilities and the covariates of the fit."""
        learned = self.learned
        p, columns = self._read(frame)
        rows = learned._rows(p if len(self.columns) > 1 else p[:, 0], learned._aligned(columns))
        after, far = learned._recalibrated(rows), learned._far(rows)
        self.rows += rows.n
        self.outside += int((far >= 1).sum())
        self.at_edge += int(((far > 0) & (far < 1)).sum())
        self.unseen.update(learned.unseen(columns))
        self._before = self._before + p.sum(axis=0)
        self._after = self._after + after.sum(axis=0)
        # Of what one class gains, others lose as much.
        self._moved += float(np.abs(after - p).sum()) / min(len(self.columns), 2)
        return after if len(self.columns) > 1 else after[:, 0]

    def _read(self, frame: pa.Table) -> tuple[FloatArray, tuple[Column, ...]]:
        """Probabilities (n, K) and the covariates of the fit."""
        learned = self.learned
        with _every_row_gets_its_answer():
            told = []
            for column in self.columns:
                with column_names_known({"prob": column}):
                    told.append(read_probabilities(frame[column], frame.num_rows))
            x = {name: frame[name] for name in learned.columns_}
            columns = read_covariates(x, None, partial=True, kinds=learned.kinds_)
            settled_columns(columns, self.missing)
        return np.column_stack(told), columns

    @property
    def before(self) -> float:
        """Mean probability as given, of the last column."""
        return float(self._before[-1]) / self.rows

    @property
    def after(self) -> float:
        """Mean recalibrated probability, of the last column."""
        return float(self._after[-1]) / self.rows

    @property
    def moved(self) -> float:
        """Mean distance between probabilities before and after."""
        return self._moved / self.rows


def write_recalibrated(
    made: Callable[[pa.Table], FloatArray],
    source: FileSet,
    out: Path,
    column: str | Sequence[str],
    read: Sequence[str],
    *,
    na_values: Sequence[Any],
    others: Mapping[Path, Write] | None = None,
    progress: bool | None = None,
) -> FileCopy:
    """Write the rows of files with the recalibrated probabilities, whole or not at all."""
    rows = source.about_rows
    with progress_stages({LOOKING: 1.0, WRITING: 4.0}, show=progress) as begin:
        looked = begin(LOOKING, rows)
        copy = prepare_copy(source, out, column, read, looked, na_values)
        first = {out: lambda path: copy.write(path, made, begin(WRITING, rows))}
        write_all({**first, **(others or {})})
    return copy


def as_probabilities(told: FloatArray) -> FloatArray:
    """Recalibrated probabilities within [0, 1]; refuses what is no number, (n, K) -> (n, K)."""
    odd = np.isnan(told).any(axis=1)
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
