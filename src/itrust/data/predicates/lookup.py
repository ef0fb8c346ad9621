"""Columns by name, and values as a column holds them."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import numpy as np

from itrust._core import BoolArray, InputError, did_you_mean
from itrust.data.column import Column
from itrust.data.predicates.grammar import WrittenNumber, in_backticks
from itrust.data.rows import Points

PREDICTION = "prediction"  # as if it were a covariate; one that is called so goes before
OTHER_NAME = "p (the model's)"  # of the prediction then
ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
MICROSECONDS_OF_A_DAY = 86_400_000_000


def column_of(points: Points, name: object, *, prediction: bool = True) -> Column:
    """Find a covariate, or the prediction, by name; refuse a name that neither has."""
    known = [column.name for column in points.columns]
    if not isinstance(name, str):
        example = (known or ["age"])[0]
        raise InputError(
            "a covariate is named by text, not {value}",
            argument="name",
            value=name,
            hint=f"such as {example!r}",
        )
    for column in points.columns:
        if column.name == name:
            return column
    if prediction and name in (PREDICTION, OTHER_NAME):
        return Column(PREDICTION, "number", points.p)
    offered = [*known, PREDICTION] if prediction else known
    hint = did_you_mean(name, offered) if offered else "there are none"
    raise InputError(
        "there is no covariate {value}",
        value=name,
        hint=f"{hint}{in_backticks(name, known)}",
    )


def missing_rows(column: Column) -> BoolArray:
    """Mark the rows without a value, also where missing values are a level of their own, (n,)."""
    if is_missing_level(column, len(column.levels) - 1):
        return np.asarray(column.missing | (column.values == len(column.levels) - 1))
    return column.missing


def is_missing_level(column: Column, code: int) -> bool:
    """Whether a category's level stands for missing values; such a level is put last.

    >>> import numpy as np
    >>> column = Column("race", "category", np.array([0, -1]), ("a",)).with_missing_level()
    >>> column.levels, is_missing_level(column, 0), is_missing_level(column, 1)
    (('a', '(missing)'), False, True)
    """
    if not column.is_category or not 0 <= code == len(column.levels) - 1:
        return False
    last = str(column.levels[code])
    return last.startswith("(") and last.strip("()") == "missing"


def position_of(column: Column, value: object) -> int | None:
    """The position of a category's level, by value, text or code; None if it has none.

    >>> import numpy as np
    >>> codes = Column("code", "category", np.array([0, 1]), ("007", "7"))
    >>> position_of(codes, 7), position_of(codes, WrittenNumber("007")), position_of(codes, 8)
    (1, 0, None)
    """
    text = value.text if isinstance(value, WrittenNumber) else str(value)
    same_value = [k for k, level in enumerate(column.levels) if level == value]
    same_text = [k for k, level in enumerate(column.levels) if str(level) == text]
    same_code = [k for k, code in enumerate(column.codes) if code == value or str(code) == text]
    # 007 is not 7 where both are levels: a number in a formula is taken as it was written.
    first, second = same_value, same_text
    if isinstance(value, WrittenNumber):
        first, second = same_text, same_value
    return next(iter([*first, *second, *same_code]), None)


def code_of(column: Column, value: Any, sign: str = "==") -> float:
    """A value as the column holds it; refuses what cannot be compared with the column."""
    if column.is_category:
        if sign not in ("==", "!="):
            raise InputError(
                f"{{column}} is a category, so it has no {sign}; use == or !=", column=column.name
            )
        position = position_of(column, value)
        if position is None:
            raise InputError(
                "{column} has no level {value}",
                column=column.name,
                value=value,
                hint=did_you_mean(str(value), [str(level) for level in column.levels]),
            )
        return position
    if column.kind == "date":
        return _days(column, value)
    if isinstance(value, str) or not isinstance(value, int | float | np.number | np.bool_):
        raise InputError(
            f"{{column}} is a {column.kind}; compare it with one, not {{value}}",
            column=column.name,
            value=value,
        )
    return float(value)


def _days(column: Column, value: Any) -> float:
    """A date or time as days since 1970-01-01."""
    text = str(value) if isinstance(value, date | np.datetime64) else value
    if isinstance(text, str) and ISO.fullmatch(text.strip()):
        try:
            instant = np.datetime64(text.strip().replace(" ", "T"), "us").astype(int)
        except ValueError:
            pass  # such as the 31st of February
        else:
            return float(instant) / MICROSECONDS_OF_A_DAY
    raise InputError(
        "{column} is a date; compare it with one, as in '2026-01-31', not {value}",
        column=column.name,
        value=value,
    )


def value_of(column: Column, code: float) -> object:
    """What a column holds, as it is written: a level, a number, or a date as text.

    >>> import numpy as np
    >>> value_of(Column("race", "category", np.array([0]), ("a", "b")), 1)
    'b'
    """
    if column.is_category:
        return column.levels[int(code)]
    return date_text(float(code)) if column.kind == "date" else float(code)


def date_text(days: float) -> str:
    """Days since 1970-01-01 as text that is read back to the same number.

    >>> date_text(20_484.0), date_text(20_484.25)
    ('2026-01-31', '2026-01-31T06:00:00')
    """
    instant = str(np.datetime64(round(days * MICROSECONDS_OF_A_DAY), "us"))
    return instant.removesuffix(".000000").removesuffix("T00:00:00")
