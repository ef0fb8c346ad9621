"""What users say of columns: which are categories, which are numbers, and what codes mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import Argument, InputError, Setting, Subject, did_you_mean

Labels = Mapping[Any, str]
CATEGORIES, NUMBERS, LABELS = "categories", "numbers", "value_labels"


@dataclass(frozen=True, eq=False)
class Kinds:
    """What is known of columns beyond their values."""

    categories: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    value_labels: Mapping[str, Labels] = field(default_factory=dict)

    @classmethod
    def of(
        cls, categories: object = (), numbers: object = (), value_labels: object = None
    ) -> Kinds:
        """Read what a user said; a column cannot be both."""
        made = cls(
            _names(categories, CATEGORIES), _names(numbers, NUMBERS), _labels(value_labels or {})
        )
        for argument in (CATEGORIES, LABELS):
            both = [name for name in getattr(made, argument) if name in made.numbers]
            if both:
                problem = "{value} cannot be in {argument} and {other} at once"
                other = {"other": Argument(argument)}
                raise InputError(problem, argument=NUMBERS, value=both[0], details=other)
        return made

    def among(self, known: Sequence[str]) -> None:
        """Refuse a name that no column has."""
        said = [(a, name) for a in (CATEGORIES, NUMBERS, LABELS) for name in getattr(self, a)]
        for argument, name in said:
            if name not in known:
                problem = "{argument}: there is no column {value}; {guess}"
                guess = {"guess": did_you_mean(name, known)}
                raise InputError(problem, argument=argument, value=name, details=guess)

    @property
    def is_said(self) -> bool:
        """Whether anything is known beyond the values."""
        return bool(self.categories or self.numbers or self.value_labels)

    def of_columns(self, names: Sequence[str]) -> dict[str, Any]:
        """What is said of some columns, as arguments."""
        return {
            CATEGORIES: [name for name in self.categories if name in names],
            NUMBERS: [name for name in self.numbers if name in names],
            LABELS: {name: said for name, said in self.value_labels.items() if name in names},
        }

    def labels_of(self, name: str) -> Labels | None:
        """What the codes of a column mean; None where nobody said."""
        return self.value_labels.get(name)


PLAIN = Kinds()


def _names(given: object, argument: str) -> tuple[str, ...]:
    names = () if given is None else (given,) if isinstance(given, str) else given
    names = tuple(names) if isinstance(names, Iterable) else (names,)
    if not all(isinstance(name, str) for name in names):
        problem = "{argument} must be names of columns, not {value}"
        raise InputError(problem, argument=argument, value=given)
    return tuple(dict.fromkeys(names))


def _labels(given: object) -> dict[str, Labels]:
    if not isinstance(given, Mapping) or any(
        not isinstance(labels, Mapping) or not labels for labels in given.values()
    ):
        raise InputError(
            "{argument} must say by column what each code means, such as {'race': {1: 'White'}}, "
            "not {value}",
            argument=LABELS,
            value=given,
        )
    return {
        str(name): {code: str(text) for code, text in labels.items()}
        for name, labels in given.items()
    }


def decoded(array: pa.Array) -> pa.Array:
    """Values in place of a dictionary, and text in a form that all of Arrow's functions take."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(pa.large_string()) if pa.types.is_string_view(array.type) else array


def whole_numbers(array: pa.Array) -> pa.Array:
    """Numbers as whole ones where all of them are: files read codes as decimals."""
    if not (pa.types.is_floating(array.type) or pa.types.is_decimal(array.type)):
        return array
    numbers = array.cast(pa.float64(), safe=False)
    numbers = pc.if_else(pc.is_nan(numbers), None, numbers)
    whole = pc.all(pc.equal(numbers, pc.round(numbers))).as_py()
    exact = (pc.max(pc.abs(numbers)).as_py() or 0.0) < 2**53
    return numbers.cast(pa.int64()) if whole and exact else array


def as_numbers(array: pa.Array, what: Subject) -> pa.Array:
    """Text that holds numbers as numbers; the first cell that holds none is refused."""
    array = decoded(array)
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return array
    trimmed = pc.utf8_trim_whitespace(array)
    cells = pc.if_else(pc.equal(trimmed, ""), None, trimmed)
    try:
        return cells.cast(pa.float64())
    except pa.ArrowInvalid:
        bad = rows_not_cast(cells, pa.float64())
        raise InputError(
            "{subject} holds text that is no number; {row} has {value}{more}",
            row=bad[0],
            value=cells[bad[0]].as_py(),
            count=len(bad),
            hint="leave it out of {}, or name missing-value codes with {}",
            settings=[Argument(NUMBERS), Setting("na_values", ...)],
            details={"more": f", and so have {len(bad) - 1:,} more" if len(bad) > 1 else ""},
            **what.fields,
        ) from None


def rows_not_cast(array: pa.Array, kind: pa.DataType) -> list[int]:
    """Rows whose value Arrow cannot turn into a type."""

    def is_cast(cell: pa.Scalar) -> bool:
        try:
            return cell.cast(kind) is not None
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return False

    return [row for row, cell in enumerate(array) if not is_cast(cell)]


def labelled(levels: Sequence[Any], labels: Labels) -> tuple[str, ...]:
    """The names of codes; a code without one keeps its number, and names that repeat get theirs.

    >>> labelled([1, 2, 7, 8], {1: "White", "2": "Black", 8: "White"})
    ('White (1)', 'Black', '7', 'White (8)')
    """
    by_code = {code_of(code): text for code, text in labels.items()}
    named = [by_code.get(code_of(level), _written(level)) for level in levels]
    often = Counter(by_code.values())  # of all meanings: parts of a file have the same names
    return tuple(
        f"{text} ({_written(level)})" if often[text] > 1 else text
        for text, level in zip(named, levels, strict=True)
    )


def all_labelled(array: pa.Array, labels: Labels) -> bool:
    """Whether every value of a column has a meaning.

    >>> all_labelled(pa.array([1, 2, None]), {1: "no", 2: "yes"})
    True
    """
    known = {code_of(code) for code in labels}
    values = pc.unique(array).to_pylist()
    return all(value is None or value != value or code_of(value) in known for value in values)


def _written(level: Any) -> str:
    return f"{level:.15g}" if isinstance(level, float) else str(level)


def code_of(value: Any) -> Any:
    """A code by which 1, 1.0 and "1" are the same.

    >>> code_of("1"), code_of("one")
    (1.0, 'one')
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def code_meant(labels: Labels, text: Any) -> Any:
    """The code whose meaning a text is; the text itself where it is none.

    >>> code_meant({0: "no", 1: "yes"}, "yes"), code_meant({0: "no", 1: "yes"}, 1)
    (1, 1)
    """
    codes = [code for code, meaning in labels.items() if meaning == text]
    if not codes and isinstance(text, str):
        folded = text.strip().casefold()
        codes = [code for code, meaning in labels.items() if meaning.strip().casefold() == folded]
    return codes[0] if codes else text


def same_code(values: Sequence[Any], asked: Any) -> Any:
    """The value that is the code asked for, though it may be written as text; else what was asked.

    >>> same_code([0.0, 1.0], "1")
    1.0
    """
    return next((value for value in values if code_of(value) == code_of(asked)), asked)


def with_meanings(values: Sequence[Any], labels: Labels) -> str:
    """Codes with what they mean, for a message.

    >>> with_meanings([1, 2, 7], {1: "yes", 2: "no"})
    '1 (yes), 2 (no), 7'
    """
    by_code = {code_of(code): text for code, text in labels.items()}
    meanings = {value: by_code.get(code_of(value)) for value in values}
    words = [f"{_written(v)} ({text})" if text else _written(v) for v, text in meanings.items()]
    return ", ".join(words)
