"""Rows that lack something: which they are, what each column lacks, and the others alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import BoolArray, InputError, IntArray, Setting, Subject, counted
from itrust.data.column import Column
from itrust.data.encoding import as_arrow, columns_of, is_frame

MAX_NAMED = 6  # columns that a note names


@dataclass(frozen=True, eq=False)
class Kept:
    """The rows that lack nothing."""

    rows: IntArray
    lacking: Mapping[str, int]
    n: int

    @property
    def note(self) -> str:
        """How many rows were left out, and what they lack."""
        return left_out_note(self.rows.size, self.n, self.lacking)

    @contextmanager
    def numbered(self) -> Iterator[None]:
        """Give an error about one of these rows its number among all."""
        try:
            yield
        except InputError as error:
            raise error.renumbered(lambda row: int(self.rows[row])) from None


def left_out_note(kept: int, n: int, lacking: Mapping[str, int]) -> str:
    """How many of n rows were left out, and what they lack.

    >>> left_out_note(7, 9, {"age": 2})
    "left out 2 rows of 9 with missing values: 2 lack 'age'"
    """
    said = f"left out {counted(n - kept, 'row')} of {n:,} with missing values"
    return f"{said}: {lack_in_words(lacking)}"


def lack_in_words(lacking: Mapping[str, int]) -> str:
    """By column, how many rows lack a value, the most first.

    >>> lack_in_words({"age": 2, "p": 260})
    "260 lack 'p', 2 lack 'age'"
    """
    most = sorted(lacking.items(), key=lambda item: -item[1])
    told = [
        f"{count:,} lack{'s' if count == 1 else ''} {name!r}" for name, count in most[:MAX_NAMED]
    ]
    if len(most) > MAX_NAMED:
        told.append(f"others lack one of {len(most) - MAX_NAMED:,} more columns")
    return ", ".join(told)


def kept_rows(masks: Mapping[str, BoolArray]) -> Kept | None:
    """The rows that lack nothing; None where no row lacks anything."""
    lacking = {name: int(mask.sum()) for name, mask in masks.items() if mask.any()}
    if not lacking:
        return None
    keep = ~np.any(list(masks.values()), axis=0)
    rows = np.flatnonzero(keep)
    if rows.size < 2:
        raise InputError(
            f"{{setting}} would leave {counted(rows.size, 'row')} of {keep.size:,}: {{lack}}",
            argument="missing",
            value="drop",
            count=int(rows.size),
            details={"setting": Setting("missing", "drop"), "lack": lack_in_words(lacking)},
        )
    return Kept(rows, lacking, keep.size)


def missing_in(array: pa.Array) -> BoolArray:
    """Mark the rows of a column without a value, (n,); NaN is none."""
    is_float = pa.types.is_floating(array.type)
    found = pc.is_null(array, nan_is_null=True) if is_float else pc.is_null(array)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


class Lacking:
    """What comes in beside covariates, as Arrow columns: what lacks where, and some rows of it."""

    def __init__(self, columns: Mapping[str, object]) -> None:
        self.columns: dict[str, Any] = {
            name: _arrays(value, name) for name, value in columns.items() if value is not None
        }

    @property
    def masks(self) -> dict[str, BoolArray]:
        """By column, the rows without a value."""
        found: dict[str, BoolArray] = {}
        for name, value in self.columns.items():
            if isinstance(value, np.ndarray):
                found[name] = np.isnan(value.astype(float)).any(axis=1)
            elif isinstance(value, dict):
                found |= {column: missing_in(array) for column, array in value.items()}
            else:
                found[name] = missing_in(value)
        return found

    def take(self, rows: IntArray) -> dict[str, Any]:
        """Some rows of everything."""
        index = pa.array(rows)
        return {
            name: value[rows]
            if isinstance(value, np.ndarray)
            else {column: array.take(index) for column, array in value.items()}
            if isinstance(value, dict)
            else value.take(index)
            for name, value in self.columns.items()
        }


def _arrays(value: object, argument: str) -> Any:
    """One Arrow column, several by name, or a matrix of numbers as it is."""
    several = is_frame(value)
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.shape[1] > 1:
        if np.issubdtype(value.dtype, np.number):
            return value
        several = True
    if several:
        named = columns_of(value, Subject(argument))
        return {name: as_arrow(column, Subject(argument, name)) for name, column in named.items()}
    return as_arrow(value, Subject(argument))


def covariate_masks(columns: tuple[Column, ...]) -> dict[str, BoolArray]:
    """By covariate, the rows without a value."""
    return {column.name: column.missing for column in columns if column.missing.any()}
