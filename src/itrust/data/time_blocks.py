"""Blocks of time as clusters: rows of one series depend on their neighbours.

The length of a block is named, or found from dates and predictions. Labels are never seen.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from itrust._core import Code, FloatArray, InputError, IntArray, Subject, checked_count, listed
from itrust.data.encoding import MICROSECONDS_PER_DAY, as_arrow, encode_numbers
from itrust.data.frames import refuse_missing_rows, same_length

Days = npt.NDArray[np.datetime64]

CALENDAR = ("day", "week", "month", "quarter", "year")
AUTO = "auto"
MIN_BLOCKS, MAX_DAYS = 30, 366
QUIET_LAGS, NOISE = 5, 2.0  # Politis and White's rule for the lag where correlation has died out
WEEK, MONDAY = 7, 3  # 1970-01-01 is a Thursday, three days after a Monday
DATES = Subject("dates")


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
    return in_blocks(read_days(dates, DATES), length)


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
    days = read_days(dates, DATES)
    return auto_length(days, None if p is None else encode_numbers(p, Subject("p")))


def in_blocks(days: Days, length: str | int) -> Days:
    """The first day of the block that each day lies in, (n,)."""
    if isinstance(length, str):
        _refuse_unknown(length)
        if length == "quarter":
            months = days.astype("datetime64[M]").astype(np.int64)
            return (months - months % 3).astype("datetime64[M]").astype("datetime64[D]")
        if length in ("month", "year"):
            return days.astype(f"datetime64[{length[0].upper()}]").astype("datetime64[D]")
    size = {"day": 1, "week": WEEK}.get(str(length)) or checked_count(length, "length")
    numbers = days.astype(np.int64) + MONDAY
    return (numbers - numbers % size - MONDAY).astype("datetime64[D]")


def _refuse_unknown(length: str) -> None:
    if length not in CALENDAR:
        raise InputError(
            "{argument} must be a number of days or one of {known}, not {value}",
            argument="length",
            value=length,
            details={"known": listed([AUTO, *CALENDAR])},
        )


def read_days(dates: object, what: Subject, where: str = "") -> Days:
    """The day of each row, (n,); whatever is no date is refused.

    `where` names the column in the sentence, such as " of 'day'".
    """
    array = as_arrow(dates, what)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_null(kind)):
        array = _from_text(array, what, where)
    zone = array.type.tz if pa.types.is_timestamp(array.type) else None
    moments = array.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    missing = moments.is_null().to_numpy(zero_copy_only=False)
    refuse_missing_rows(missing, what)
    found = np.asarray(moments.to_numpy(zero_copy_only=False), dtype=np.int64)
    return (found // MICROSECONDS_PER_DAY).astype("datetime64[D]")


def read_times(values: object, what: Subject, n: int) -> IntArray:
    """The place of each row in time, (n,), from 0: that of its day, or of its number."""
    array = as_arrow(values, what)
    kind = array.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    times = encode_numbers(values, what) if is_number else read_days(values, what)
    same_length(what, times.size, n)
    return np.asarray(np.unique(times, return_inverse=True)[1], dtype=np.int64)


def _from_text(array: pa.Array, what: Subject, where: str) -> pa.Array:
    """Text such as 2024-03-01 as moments; the first row that holds something else is told."""
    is_text = not any(
        test(array.type)
        for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    )
    try:
        if is_text:
            return array.cast(pa.timestamp("us"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    row = next(row for row, cell in enumerate(array) if cell.is_valid and not _is_date(cell))
    raise InputError(
        "{argument}: blocks of time need dates, but {row}{where} has {value}",
        row=row,
        value=array[row].as_py(),
        hint="(convert it{} to dates such as 2024-03-01)",
        settings=[Code(", for instance with pandas.to_datetime,", "")],
        details={"where": where},
        **what.fields,
    )


def _is_date(cell: pa.Scalar) -> bool:
    if not isinstance(cell.as_py(), str):
        return False
    try:
        cell.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return False
    return True


def auto_length(days: Days, p: FloatArray | None) -> int:
    """The rule that `blocks` describes."""
    if p is not None:
        same_length(Subject("p"), p.size, days.size, "dates")
    if days.size == 0:
        return 1
    numbers = days.astype(np.int64)
    numbers = numbers - numbers.min()
    span = int(numbers.max()) + 1
    rows = np.bincount(numbers)
    longest = min(span // MIN_BLOCKS, MAX_DAYS)
    wanted = math.ceil(round(np.count_nonzero(rows) ** (1 / 3), 9))
    if p is not None and longest > 1:
        wanted = max(wanted, correlated_lag(numbers, rows, p, longest))
    return max(min(wanted, longest), 1)


def correlated_lag(days: IntArray, rows: IntArray, p: FloatArray, max_lag: int) -> int:
    """The lag up to which daily means of p are correlated beyond noise, `max_lag` at most.

    Days are numbered from 0, and `rows` counts those of every day.
    """
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
