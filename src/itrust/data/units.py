"""Which rows belong together: columns that name units or replicate weights, and blocks of time.

Rows of one series depend on their neighbours; a block of time makes a cluster of them. The length
of a block is named, or found from dates and predictions. Labels are never seen.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import (
    AnyArray,
    Argument,
    Code,
    FloatArray,
    InputError,
    IntArray,
    Subject,
    checked_count,
    did_you_mean,
    listed,
    tickets,
)
from itrust.data.column import MICROSECONDS_PER_DAY
from itrust.data.encoding import (
    as_arrow,
    decoded,
    encode_numbers,
    in_narwhals,
    kind_of,
    name_among,
    ranks,
    refuse_missing_rows,
    repeated,
    rows_not_cast,
    same_length,
    texts_of,
    whole_numbers,
)

Days = npt.NDArray[np.datetime64]

MONTHS: dict[str | int, int] = {"month": 1, "quarter": 3, "year": 12}
CALENDAR = ("day", "week", *MONTHS)
AUTO, BLOCKS = "auto", "blocks"
CALLS = (*CALENDAR, BLOCKS)
MIN_BLOCKS, MAX_DAYS = 30, 366
QUIET_LAGS, NOISE = 5, 2.0  # Politis and White's rule for the lag where correlation has died out
WEEK, MONDAY = 7, 3  # 1970-01-01 is a Thursday, three days after a Monday
DATES = Subject("dates")
CALL = re.compile(r"\s*(\w+)\s*\(\s*(.+?)\s*(?:,\s*(\d+)\s*)?\)\s*")
NUMBER = re.compile(r"(\d+)")
MAGIC = re.compile(r"[*?[]")
MAX_COLUMNS = 50  # that are looked at, of those that are no covariates
MAX_ROWS, MAX_UNIT_ROWS = 20_000, 200
MIN_REPEATED = 20  # rows that share their unit with another row
LONG_TEXT = 40  # bytes; longer text that does not repeat soon names nothing


def blocks(dates: object, length: str | int = AUTO, *, p: object = None) -> Days:
    """Give the block of time that each row lies in, to be passed as `cluster=`.

    Rows of one series depend on their neighbours. Blocks that are long against the reach of that
    dependence are nearly independent of each other, and variances by clusters then hold.

    With `length="auto"` a block has ceil(T^(1/3)) days, T being the number of days that have rows:
    the growth at which the variance of a mean over blocks is estimated best (Künsch 1989; Hall,
    Horowitz and Jing 1995). With `p` it is at least as long as the lag after which the daily means
    of the predictions show no correlation beyond noise (five lags in a row below
    2 sqrt(log10(T) / T); Politis and White 2004). At least 30 blocks are left, unless there
    are fewer days, and no block is longer than a year. The rule sees dates and predictions, never
    labels, so that it cannot favour an answer.

    Parameters
    ----------
    dates : column of n dates
        Dates or times, or text such as "2024-03-01". Times with a zone count by UTC.
    length : {"auto", "day", "week", "month", "quarter", "year"} or int
        How long a block is: by the calendar, weeks beginning on Monday; or so many days. "auto",
        the default, finds a number of days.
    p : column of n probabilities, optional
        The predictions, of which "auto" takes account. Default: it goes by the dates alone.

    Returns
    -------
    (n,) array of datetime64[D]
        The first day of each row's block.

    Examples
    --------
    >>> import itrust as it
    >>> it.blocks(["2024-03-01", "2024-03-03", "2024-03-04"], "week")
    array(['2024-02-26', '2024-02-26', '2024-03-04'], dtype='datetime64[D]')
    """
    if length == AUTO:
        length = block_length(dates, p)
    return _in_blocks(_read_days(dates, DATES), length)


def block_length(dates: object, p: object = None) -> int:
    """Give the number of days that `blocks` takes for "auto".

    Parameters
    ----------
    dates : column of n dates
        As for `blocks`.
    p : column of n probabilities, optional
        The predictions. Default: the rule goes by the dates alone.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> import numpy as np
    >>> block_length(np.arange("2023-01-01", "2024-01-01", dtype="datetime64[D]"))
    8
    """
    return _auto_length(_read_days(dates, DATES), p, Subject("p"))


def _in_blocks(days: Days, length: str | int) -> Days:
    """The first day of the block that each day lies in, (n,)."""
    if isinstance(length, str) and length not in CALENDAR:
        problem = f"{{argument}} must be a number of days or one of {listed([AUTO, *CALENDAR])}"
        raise InputError(f"{problem}, not {{value}}", argument="length", value=length)
    if length in MONTHS:
        return days.astype(f"datetime64[{MONTHS[length]}M]").astype("datetime64[D]")
    size = {"day": 1, "week": WEEK}.get(str(length)) or checked_count(length, "length")
    numbers = days.astype(np.int64) + MONDAY
    return (numbers - numbers % size - MONDAY).astype("datetime64[D]")


def _read_days(dates: object, what: Subject, where: str = "") -> Days:
    """The day of each row, (n,); `where` names the column where one is no date: " of 'day'"."""
    array = decoded(as_arrow(dates, what))
    kind = array.type
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_null(kind)):
        array = _from_text(array, what, where)
    zone = getattr(array.type, "tz", None)
    moments = array.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    refuse_missing_rows(moments.is_null().to_numpy(zero_copy_only=False), what)
    numbers = np.asarray(moments.to_numpy(zero_copy_only=False), dtype=np.int64)
    return (numbers // MICROSECONDS_PER_DAY).astype("datetime64[D]")


def _from_text(array: pa.Array, what: Subject, where: str) -> pa.Array:
    """Text such as 2024-03-01 as moments; the first row that holds something else is told."""
    moment, is_text = pa.timestamp("us"), kind_of(array.type) == "text"
    try:
        if is_text:
            return array.cast(moment)
    except pa.ArrowInvalid:
        pass
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    row = rows_not_cast(array, moment)[0] if is_text else int(np.argmax(valid))
    raise what.error(
        "{argument}: blocks of time need dates, but {row}{where} has {value}",
        row=row,
        value=array[row].as_py(),
        hint="(convert it{} to dates such as 2024-03-01)",
        settings=[Code(", for instance with pandas.to_datetime,", "")],
        where=where,
    )


def read_times(values: object, what: Subject, n: int) -> IntArray:
    """The place of each row in time, (n,), from 0: that of its day, or of its number."""
    kind = as_arrow(values, what).type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    times = encode_numbers(values, what) if is_number else _read_days(values, what)
    same_length(what, times.size, n)
    return np.asarray(np.unique(times, return_inverse=True)[1], dtype=np.int64)


def _auto_length(days: Days, predictions: object, what: Subject) -> int:
    """The rule that `blocks` describes."""
    p = None if predictions is None else encode_numbers(predictions, what)
    if p is not None:
        same_length(what, p.size, days.size, "dates")
    if days.size == 0:
        return 1
    numbers = days.astype(np.int64)
    numbers = numbers - numbers.min()
    rows = np.bincount(numbers)
    longest = min(rows.size // MIN_BLOCKS, MAX_DAYS)
    wanted = math.ceil(round(np.count_nonzero(rows) ** (1 / 3), 9))
    if p is not None and longest > 1:
        wanted = max(wanted, _correlated_lag(numbers, rows, p, longest))
    return max(min(wanted, longest), 1)


def _correlated_lag(days: IntArray, rows: IntArray, p: FloatArray, max_lag: int) -> int:
    """The lag up to which daily means of p are correlated beyond noise, `max_lag` at most."""
    seen = rows > 0
    means = np.bincount(days, p) / np.maximum(rows, 1)
    centred = np.where(seen, means - means[seen].mean(), 0.0)
    variance = float(np.square(centred).sum() / seen.sum())
    if variance == 0:
        return 0
    loud = 0
    band = NOISE * math.sqrt(math.log10(seen.sum()))
    for lag in range(1, max_lag + 1):
        pairs = np.count_nonzero(seen[lag:] & seen[:-lag])
        products = float(centred[lag:] @ centred[:-lag])
        if pairs and abs(products / pairs / variance) > band / math.sqrt(pairs):
            loud = lag
        elif lag - loud >= QUIET_LAGS:
            break
    return loud


@dataclass(frozen=True)
class UnitColumn:
    """A column that tells rows of one unit, as it is or by blocks of time."""

    text: str
    column: str
    length: str | int | None = None

    def values(self, columns: Mapping[str, object], argument: str) -> object:
        """The units of the rows; the length of blocks is known."""
        if self.length is None:
            return columns[self.column]
        return _in_blocks(self._days(columns, argument), self.length)

    def settled(self, columns: Mapping[str, object], argument: str, p: object) -> UnitColumn:
        """The same with the length of blocks found from dates and predictions: "blocks(d, 9)"."""
        if self.length != AUTO:
            return self
        length = _auto_length(self._days(columns, argument), p, Subject("prob"))
        return UnitColumn(f"{BLOCKS}({self.column}, {length})", self.column, length)

    def _days(self, columns: Mapping[str, object], argument: str) -> Days:
        what = Subject(argument, self.text)
        return _read_days(columns[self.column], what, f" of {self.column!r}")


def unit_columns(
    named: str | Sequence[str] | None, known: Sequence[str], argument: str
) -> tuple[UnitColumn, ...]:
    """The columns that were named, all of them there; a column called "week(date)" wins."""
    units = tuple(_unit_column(text, known, argument) for text in texts_of(named, argument))
    if twice := [unit.text for unit in repeated(units)]:
        problem = "{argument} names {twice} more than once"
        raise InputError(problem, argument=argument, twice=listed(twice))
    return units


def _unit_column(text: str, known: Sequence[str], argument: str) -> UnitColumn:
    call = None if text in known else CALL.fullmatch(text)
    if call is None:
        return UnitColumn(text, name_among(known, text, argument))
    word, column, days = call.groups()
    if word not in CALLS or (days is not None and word != BLOCKS):
        raise InputError(
            "{argument}: there is no column {value}, and no such block of time; blocks are "
            "day(date), week(date), month(date), quarter(date), year(date), blocks(date) and "
            "blocks(date, 14)",
            argument=argument,
            value=text,
        )
    length = word if word != BLOCKS else AUTO if days is None else int(days)
    return UnitColumn(text, name_among(known, column, argument), length)


def replicate_columns(
    named: str | Sequence[str] | None, known: Sequence[str], taken: Sequence[tuple[str, str]]
) -> list[str]:
    """Columns by names or patterns such as "REPWT*"; `taken` are roles, with their columns."""
    names: dict[str, None] = {}
    for text in texts_of(named, "replicate_weights"):
        names |= dict.fromkeys([text] if text in known else _matching(text, known))
    for role, name in taken:
        if name in names:
            raise InputError(
                "{argument}: {value} is {role} already; name the replicates alone, such as "
                "'REPWT*'",
                argument="replicate_weights",
                value=name,
                role=Argument(role),
            )
    return list(names)


def _matching(pattern: str, known: Sequence[str]) -> list[str]:
    if not MAGIC.search(pattern):
        name_among(known, pattern, "replicate_weights")
    names = [name for name in known if fnmatchcase(name, pattern)]
    if not names:  # patterns of columns that differ in a number at their end only may be meant
        stems = Counter(name.rstrip("0123456789") for name in known if name[-1:].isdigit())
        families = [f"{stem}*" for stem, count in stems.items() if count > 1]
        raise InputError(
            "{argument}: no column matches {value}; {guess}",
            argument="replicate_weights",
            value=pattern,
            guess=did_you_mean(pattern, families or list(known)),
        )
    return sorted(names, key=_natural)


def _natural(name: str) -> list[tuple[int, str]]:
    """Numbers by size, text by its letters."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in NUMBER.split(name)]


@dataclass(frozen=True, eq=False)
class Units:
    """Whose row is whose, of 20,000 at most, by a column that is no covariate: people, days."""

    name: str
    rows: IntArray
    codes: IntArray
    is_date: bool = False

    def take(self, index: IntArray, n: int) -> Units:
        """Keep some of n rows, whose new order is that of `index`; a row taken twice stays once."""
        place = np.full(n, -1, dtype=np.int64)
        place[index] = np.arange(index.size)
        moved = place[self.rows]
        order = np.argsort(moved, kind="stable")
        order = order[moved[order] >= 0]
        return replace(self, rows=moved[order], codes=self.codes[order])


def read_units(columns: Mapping[str, object], n: int) -> tuple[Units, ...]:
    """The first 50 columns whose values can be names or dates and repeat."""
    every = (_units(name, values, n) for name, values in islice(columns.items(), MAX_COLUMNS))
    return tuple(units for units in every if units is not None)


def _units(name: str, values: object, n: int) -> Units | None:
    subject = Subject("x", name)
    try:
        if n > MAX_ROWS and not may_be_units(as_arrow(in_narwhals(values)[:MAX_ROWS], subject)):
            return None
        array = _names(as_arrow(values, subject))
    except (InputError, pa.ArrowException, TypeError):  # nobody asked for it: it may be anything
        return None
    if array is None or len(array) != n or not _repeats_somewhere(array):
        return None
    encoded = array.dictionary_encode()
    codes = ranks(encoded, pc.array_sort_indices(encoded.dictionary).to_numpy())
    size = np.bincount(codes[codes >= 0])
    if int(size[size > 1].sum()) < MIN_REPEATED or np.count_nonzero(size) < 2:
        return None
    rows = np.flatnonzero(codes >= 0) if n <= MAX_ROWS else _some_units(codes, size)
    return Units(name, rows, codes[rows].astype(np.int32), pa.types.is_temporal(array.type))


def may_be_units(head: pa.Array) -> bool:
    """Whether a column can name units, from its first rows; long text must repeat among them."""
    try:
        array = _names(head)
    except pa.ArrowException:  # a type that Arrow cannot compare
        return False
    if array is None or kind_of(array.type) != "text":
        return array is not None
    return (pc.mean(pc.binary_length(array)).as_py() or 0) <= LONG_TEXT or _repeats(array)


def _repeats_somewhere(array: pa.Array) -> bool:
    """Whether values repeat among the first rows, or among as many at random."""
    if len(array) <= MAX_ROWS or _repeats(array[:MAX_ROWS]):
        return True
    return _repeats(array.take(np.sort(np.argsort(tickets(0, len(array)))[:MAX_ROWS])))


def _repeats(array: pa.Array) -> bool:
    return bool(pc.count_distinct(array).as_py() < len(array) - array.null_count)


def _names(array: pa.Array) -> pa.Array | None:
    """Values that can be names or dates; None for truth values, decimals and whatever else."""
    array = whole_numbers(decoded(array))  # files hold whole numbers as decimals
    dates = pa.types.is_date(array.type) or pa.types.is_timestamp(array.type)
    names = dates or pa.types.is_integer(array.type) or kind_of(array.type) == "text"
    return array if names else None


def _some_units(codes: IntArray, size: AnyArray) -> IntArray:
    """Rows of units chosen at random, all of them up to 200 a unit, and 20,000 in all."""
    wanted = np.where(size > 1, np.minimum(size, MAX_UNIT_ROWS), 0)
    drawn = np.argsort(tickets(0, size.size))
    chosen = np.zeros(size.size, dtype=bool)
    chosen[drawn[np.cumsum(wanted[drawn]) <= MAX_ROWS]] = True
    rows = np.flatnonzero((codes >= 0) & chosen[codes])
    by_unit = rows[np.argsort(codes[rows], kind="stable")]
    first = np.searchsorted(codes[by_unit], codes[by_unit])
    return np.sort(by_unit[np.arange(by_unit.size) - first < MAX_UNIT_ROWS])
