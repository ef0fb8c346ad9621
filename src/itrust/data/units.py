"""Columns of a frame that are no covariates but may name units: people, candidacies, days.

Only whose row is whose is kept, as whole numbers, and of 20,000 rows at most. Values are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import AnyArray, InputError, IntArray, Subject, tickets
from itrust.data.encoding import as_arrow

MAX_COLUMNS = 50
MAX_ROWS, MAX_UNIT_ROWS = 20_000, 200
MIN_REPEATED = 20  # rows that share their unit with another row
LONG_TEXT = 40  # bytes; longer text that does not repeat soon names nothing


@dataclass(frozen=True, eq=False)
class Units:
    """Whose row is whose, by one column."""

    name: str
    rows: IntArray
    codes: IntArray
    is_date: bool = False

    def take(self, index: IntArray, n: int) -> Units:
        """Keep some of n rows, whose new order is that of `index`; a row taken twice stays once."""
        place = np.full(n, -1, dtype=np.int64)
        place[index] = np.arange(index.size)
        moved = place[self.rows]
        kept = np.flatnonzero(moved >= 0)
        kept = kept[np.argsort(moved[kept], kind="stable")]
        return replace(self, rows=moved[kept], codes=self.codes[kept])


def read_units(columns: Mapping[str, object], n: int) -> tuple[Units, ...]:
    """The first 50 columns whose values can be names or dates and repeat; the others are no units.

    >>> read_units({"who": ["b", "a"] * 20, "height": [1.7, 1.8] * 20}, 40)[0].codes[:4].tolist()
    [1, 0, 1, 0]
    """
    found = (_units(name, values, n) for name, values in islice(columns.items(), MAX_COLUMNS))
    return tuple(units for units in found if units is not None)


def _units(name: str, values: object, n: int) -> Units | None:
    subject = Subject("x", name)
    try:
        if n > MAX_ROWS and not may_be_units(as_arrow(_first_rows(values), subject)):
            return None
        array = _names(as_arrow(values, subject))
    except (InputError, pa.ArrowException, TypeError):  # nobody asked for it: it may be anything
        return None
    if array is None or len(array) != n or not _repeats_somewhere(array):
        return None
    codes = _codes(array)
    size = np.bincount(codes[codes >= 0])
    repeated = int(size[size > 1].sum())
    if repeated < MIN_REPEATED or np.count_nonzero(size) < 2:
        return None
    rows = np.flatnonzero(codes >= 0) if n <= MAX_ROWS else _some_units(codes, size)
    return Units(name, rows, codes[rows].astype(np.int32), pa.types.is_temporal(array.type))


def may_be_units(head: pa.Array) -> bool:
    """Whether a column can name units, from its first rows; long text must repeat among them.

    >>> may_be_units(pa.array(["a", "b"])), may_be_units(pa.array(["a" * 50, "b" * 50]))
    (True, False)
    """
    try:
        array = _names(head)
    except pa.ArrowException:  # a type that Arrow cannot compare
        return False
    if array is None:
        return False
    is_text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    if not is_text or (pc.mean(pc.binary_length(array)).as_py() or 0) <= LONG_TEXT:
        return True
    return _repeats(array)


def _first_rows(values: object) -> Any:
    native: Any = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    return native[:MAX_ROWS]


def _repeats_somewhere(array: pa.Array) -> bool:
    """Whether values repeat among the first rows, or among as many at random."""
    if len(array) <= MAX_ROWS or _repeats(array[:MAX_ROWS]):
        return True
    return _repeats(array.take(np.sort(np.argsort(tickets(0, len(array)))[:MAX_ROWS])))


def _repeats(array: pa.Array) -> bool:
    return bool(pc.count_distinct(array).as_py() < len(array) - array.null_count)


def _names(array: pa.Array) -> pa.Array | None:
    """Values that can be names or dates; None for truth values, decimals and whatever else."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_string_view(kind):
        return array.cast(pa.large_string())
    if pa.types.is_floating(kind):  # files hold whole numbers as decimals
        array = pc.if_else(pc.is_nan(array), None, array)
        whole = pc.all(pc.equal(array, pc.round(array))).as_py()
        return array if whole else None
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if text or pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return array
    return None


def _codes(array: pa.Array) -> IntArray:
    """The place of each value among the distinct ones in sorted order; -1 where it is missing."""
    encoded = array.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    place = np.full(order.size + 1, -1, dtype=np.int64)
    place[order] = np.arange(order.size)
    codes: IntArray = place[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return codes


def _some_units(codes: IntArray, size: AnyArray) -> IntArray:
    """Rows of units chosen at random, all of them up to 200 a unit, and 20,000 in all."""
    kept = np.where(size > 1, np.minimum(size, MAX_UNIT_ROWS), 0)
    drawn = np.argsort(tickets(0, size.size))
    chosen = np.zeros(size.size, dtype=bool)
    chosen[drawn[np.cumsum(kept[drawn]) <= MAX_ROWS]] = True
    rows = np.flatnonzero((codes >= 0) & chosen[codes])
    by_unit = rows[np.argsort(codes[rows], kind="stable")]
    first = np.searchsorted(codes[by_unit], codes[by_unit])
    return np.sort(by_unit[np.arange(by_unit.size) - first < MAX_UNIT_ROWS])
