"""Columns of any form: frames, mappings, arrays and lists become Arrow, and Arrow a `Column`.

Everything is routed through Arrow, so that a list, a NumPy array, a pandas, polars or Arrow column
are judged by the same few lines. What users say of columns goes before what values look like.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import (
    AnyArray,
    Argument,
    BoolArray,
    Code,
    FloatArray,
    InputError,
    IntArray,
    Row,
    Setting,
    Subject,
    counted,
    first_line,
    listed,
    place_of,
    shown,
)
from itrust.data.column import MICROSECONDS_PER_DAY, Column

# Of their classes: pandas, polars and DuckDB; Arrow; its readers and data sets; its scanners.
FRAME_TRAITS = ("columns", "column_names", "schema", "projected_schema")
# Where rows are made only when they are read, the package that makes them is loaded by then.
FOREIGN_ERRORS = (
    ("duckdb", "Error"),
    ("narwhals.exceptions", "NarwhalsError"),
    ("polars.exceptions", "PolarsError"),
    ("pyarrow", "ArrowException"),
)
NO_COLUMN = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    OverflowError,
    UnicodeEncodeError,  # half of a pair of surrogates
)
KINDS = (
    ("null", pa.types.is_null),
    ("boolean", pa.types.is_boolean),
    ("number", pa.types.is_integer),
    ("number", pa.types.is_floating),
    ("number", pa.types.is_decimal),
    ("date", pa.types.is_temporal),
    ("text", pa.types.is_dictionary),
    ("text", pa.types.is_string),
    ("text", pa.types.is_large_string),
    ("text", pa.types.is_string_view),
)
MAX_TEXT_LEVELS = 1_000
X = Subject("x")
Labels = Mapping[Any, str]
BOTH_AT_ONCE = "{value} cannot be {argument} and {other} at once"
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
        codes, quantities = texts_of(categories, CATEGORIES), texts_of(numbers, NUMBERS)
        made = cls(codes, quantities, _labels(value_labels or {}))
        for argument in (CATEGORIES, LABELS):
            both = [name for name in getattr(made, argument) if name in made.numbers]
            if both:
                other = Argument(argument)
                raise InputError(BOTH_AT_ONCE, argument=NUMBERS, value=both[0], other=other)
        return made

    def among(self, known: Sequence[str]) -> None:
        """Refuse a name that no column has."""
        said = [(a, name) for a in (CATEGORIES, NUMBERS, LABELS) for name in getattr(self, a)]
        for argument, name in said:
            name_among(known, name, argument)

    def of_columns(self, names: Sequence[str]) -> dict[str, Any]:
        """What is said of some columns, as arguments."""
        return {
            CATEGORIES: [name for name in self.categories if name in names],
            NUMBERS: [name for name in self.numbers if name in names],
            LABELS: {name: said for name, said in self.value_labels.items() if name in names},
        }


PLAIN = Kinds()


def texts_of(given: object, argument: str) -> tuple[str, ...]:
    """One name of a column, several or none; anything else is refused."""
    names = () if given is None else (given,) if isinstance(given, str) else given
    names = tuple(names) if isinstance(names, Iterable) else (names,)
    for name in names:
        if not isinstance(name, str):
            problem = "{argument} takes the name of a column or a list of names, not {value}"
            raise InputError(problem, argument=argument, value=name)
    return names


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


def is_frame(value: object) -> bool:
    """Whether something has named columns."""
    # Of the class: a lazy frame would have to think about its own columns.
    return isinstance(value, Mapping) or any(hasattr(type(value), name) for name in FRAME_TRAITS)


def _at_hand(frame: object) -> Any:
    """A frame with all its rows; what is lazy, a relation or a reader is read, once and whole."""
    with _being_read():
        if isinstance(frame, pa.RecordBatchReader):
            return frame.read_all()
        if type(frame).__module__ == "pyarrow._dataset":
            return frame.to_table()  # type: ignore[attr-defined]
        lazy = _as_lazy(frame)
        if lazy is None:
            return frame
        if "duckdb" in type(frame).__module__:  # SELECT may give two columns one name
            refuse_duplicates(frame.columns)  # type: ignore[attr-defined]
        return lazy.collect().to_native()


@contextmanager
def _being_read() -> Iterator[None]:
    """Say in one sentence why a frame gives no rows: a query that fails, a closed connection."""
    known = [(sys.modules[m], name) for m, name in FOREIGN_ERRORS if m in sys.modules]
    try:
        yield
    except MemoryError:  # Arrow has one of its own, and the command a sentence for all
        raise
    except tuple(getattr(module, name) for module, name in known) as error:
        problem = "the rows of the frame cannot be read: {reason}"
        raise InputError(problem, argument="frame", reason=first_line(error)) from error


def _as_lazy(frame: object) -> Any:
    """A lazy frame or a relation as narwhals has it; None for what is neither."""
    if nw.dependencies.is_pandas_dataframe(frame):  # names that agree are refused with a cure later
        return None
    native = nw.from_native(frame, pass_through=True)
    return native if isinstance(native, nw.LazyFrame) else None


def names_of_frame(frame: object) -> list[str]:
    """Names of a frame's columns; no row is read."""
    with _being_read():
        lazy = _as_lazy(frame)
        if lazy is not None:
            return list(lazy.collect_schema().names())
    schema = getattr(frame, "projected_schema", None) or getattr(frame, "schema", None)
    names = schema.names if isinstance(schema, pa.Schema) else getattr(frame, "columns", frame)
    return [str(name) for name in names]  # type: ignore[union-attr]


def in_narwhals(value: object) -> Any:
    """A frame or column as narwhals has it; anything else as it is."""
    return nw.from_native(value, eager_only=True, allow_series=True, pass_through=True)


def same_length(what: Subject, length: int, n: int, others: str = "labels") -> None:
    """Refuse a column that is not as long as the labels, or the others it goes with."""
    if length != n:
        raise what.error(
            f"{{subject}} has {counted(length, 'row')}, but there are {n:,} {others}; align them",
            count=length,
        )


def refuse_rows(
    bad: BoolArray, problem: str, what: Subject, values: AnyArray | None = None, **more: Any
) -> None:
    """Raise if rows are marked: tells how many they are, which is the first, and its value."""
    if bad.any():
        row, count = int(np.argmax(bad)), int(bad.sum())
        value = None if values is None else float(values[row])
        raise what.error(problem, row=row, value=value, count=count, **more)


def refuse_missing_rows(missing: BoolArray, what: Subject) -> None:
    """Raise if rows have no value, and say what leaves them out."""
    have = "row has" if missing.sum() == 1 else "rows have"
    problem = f"{{count}} {have} no {{title}} (first: {{row}}); {{cure}} leaves them out"
    refuse_rows(missing, problem, what, cure=Setting("missing", "drop"))


def frame_columns(frame: object) -> dict[str, object]:
    """Columns of a frame or mapping by name; names must differ."""
    if isinstance(frame, Mapping):
        return by_name([(str(name), values) for name, values in frame.items()])
    if not isinstance(frame, pa.Table | pa.RecordBatch):
        frame = _at_hand(frame)
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return by_name(list(zip(frame.column_names, frame.columns, strict=True)))
    if hasattr(frame, "compute") or hasattr(frame, "collect"):  # of a kind that is not known
        raise InputError("the frame is lazy; call .compute() or .collect() first", argument="frame")
    names = [str(name) for name in getattr(frame, "columns", ())]
    refuse_duplicates(names)  # before narwhals, whose message names no cure
    native = in_narwhals(frame)
    if not isinstance(native, nw.DataFrame):
        problem = f"expected a data frame or a mapping, not a {type(frame).__name__}"
        raise InputError(problem, argument="frame", value=frame)
    return by_name(list(zip(names, native.iter_columns(), strict=True)))


def by_name(columns: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Columns by name; names must differ."""
    refuse_duplicates([name for name, _ in columns])
    return dict(columns)


def name_among(known: Sequence[str], name: str, argument: str, hint: str = "") -> str:
    """A name that some columns have; any other is refused."""
    problem = "{argument}: there is no column {value}; {guess}{more}"
    place_of(name, known, problem, argument=argument, more=hint)
    return name


def repeated(names: Iterable[Any]) -> list[Any]:
    """Names that stand more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def refuse_duplicates(names: Sequence[str]) -> None:
    """Raise if a name stands more than once."""
    if twice := repeated(names):
        problem = "column names must differ; {twice} stands more than once"
        raise InputError(problem, argument="x", twice=listed(twice))


def columns_of(x: object, what: Subject = X) -> dict[str, object]:
    """Columns of any form by name; columns of arrays are named x1, x2, ..."""
    if x is None or (isinstance(x, list | tuple) and not x):
        return {}
    if is_frame(x):
        return frame_columns(x)
    columns: Sequence[object] = [x]
    if isinstance(x, list | tuple):
        if isinstance(x[0], list | tuple | np.ndarray):
            columns = rows_to_columns(what, x)
        elif any(getattr(item, "ndim", 0) > 0 for item in x):
            raise InputError(
                "{argument} is a list of columns; name them in a mapping, such as {'age': ages}",
                argument=what.argument,
            )
    elif isinstance(native := in_narwhals(x), nw.Series):
        if not isinstance(x, pa.ChunkedArray):
            return {str(native.name or "x1"): native}
    elif isinstance(x, np.ndarray) and x.ndim > 1:
        if x.ndim > 2:
            problem = "{argument} must be a frame or an array (n, d), not of shape {value}"
            raise InputError(problem, argument=what.argument, value=x.shape)
        columns = list(x.T)
    return {f"x{k}": column for k, column in enumerate(columns, start=1)}


def rows_to_columns(what: Subject, rows: Sequence[Sequence[object]]) -> list[list[object]]:
    """Columns of rows that are equally long."""
    width = len(rows[0])
    for number, row in enumerate(rows):
        length = len(row) if hasattr(row, "__len__") else 1
        if length != width:
            problem = f"{{subject}}: {{row}} has {counted(length, 'value')}, {{first}} has {width}"
            raise what.error(problem, row=number, count=length, first=Row(0))
    return [list(column) for column in zip(*rows, strict=True)]


def as_arrow(values: object, what: Subject) -> pa.Array:
    """Turn any column of single values into one Arrow array, or say why it cannot be."""
    try:
        array = _arrow(values, what)
    except NO_COLUMN as error:
        raise _why_not_a_column(values, what, error) from None
    if pa.types.is_nested(array.type):
        problem = "{subject} must hold one value a row; {row} has {value}"
        raise what.error(problem, row=0, value=array[0].as_py())
    return array


def _arrow(values: object, what: Subject) -> pa.Array:
    native = in_narwhals(values)
    if isinstance(native, nw.DataFrame):
        if len(native.columns) != 1:
            problem = "{subject} must be one column, not a frame with the columns {names}"
            raise what.error(problem, names=listed(native.columns))
        native = native[native.columns[0]]
    if isinstance(native, nw.Series):
        try:
            values = native.to_arrow()
        except (TypeError, ValueError):  # a column type Arrow does not know, such as sparse
            values = pa.array(native.to_numpy(), from_pandas=True)
    if isinstance(values, pa.ChunkedArray):
        values = values.unify_dictionaries().combine_chunks()
    if isinstance(values, pa.Array):
        return values
    if isinstance(values, np.ma.MaskedArray):
        return pa.array(np.ma.getdata(values), mask=np.ma.getmaskarray(values))
    if not (hasattr(values, "__arrow_array__") or hasattr(values, "categories")):
        values = _one_dimensional(values, what)
    return pa.array(values, from_pandas=True)


def _one_dimensional(values: object, what: Subject) -> AnyArray | list[Any]:
    """Lists keep their Python objects (NumPy would turn [1, "a"] into text); the rest is NumPy."""
    if isinstance(values, list | tuple | range):
        return list(values)
    array = np.asarray(values)
    if array.ndim == 0:
        raise what.error(
            f"{{subject}} must be a column of values, not a {type(values).__name__}",
            value=values,
            hint="list(...) of something iterable, .toarray() of something sparse; for column "
            "names use Sample.from_frame",
        )
    if array.ndim > 2 or (array.ndim == 2 and array.shape[1] != 1):
        problem = "{subject} must be one column of values, not an array of shape {value}"
        raise what.error(problem, value=array.shape)
    return array.ravel()


def _why_not_a_column(values: object, what: Subject, error: Exception) -> InputError:
    """Name the first row whose type differs from the first value's type."""
    cells = dict(enumerate(values)) if isinstance(values, Iterable) else {}
    present = [row for row, cell in cells.items() if _family(cell) is not None]
    other = [row for row in present if _family(cells[row]) is not _family(cells[present[0]])]
    if not other:
        return what.error(
            "{subject} has values that are no numbers, text, booleans or dates ({reason})",
            reason=str(error),
        )
    first, cell = cells[present[0]], cells[other[0]]
    return what.error(
        f"{{subject}} mixes types: {{first_row}} has {{first}} ({type(first).__name__}), {{row}} "
        f"has {{value}} ({type(cell).__name__}); convert it to one type",
        row=other[0],
        value=cell,
        first_row=Row(present[0]),
        first=shown(first),
    )


def _family(cell: object) -> type | None:
    """Integers and decimals mix; text, booleans and dates do not; what is missing has no type."""
    if cell is None or (np.isscalar(cell) and cell != cell):  # NaN is unlike itself
        return None
    is_number = isinstance(cell, int | float | np.integer | np.floating)
    return float if is_number and not isinstance(cell, bool) else type(cell)


def encode(name: str, values: object, *, partial: bool = False, kinds: Kinds = PLAIN) -> Column:
    """Encode one covariate: numbers and dates as float64, text and categories as levels.

    A column without any value is refused unless it is only a part of one.
    """
    what = Subject("x", name)
    array, labels = as_arrow(values, what), kinds.value_labels.get(name)
    if labels is not None or name in kinds.categories:
        levels, codes = levels_and_codes(whole_numbers(array))
        column = Column(name, "category", codes, levels)
        if labels is not None:
            column = replace(column, levels=labelled(levels, labels), codes=levels)
    elif name in kinds.numbers:
        column = _encoded(name, as_numbers(array, what), what)
        column = replace(column, declared=column.kind == "number")
    else:
        column = _encoded(name, array, what)
    if not partial and len(column) and column.missing.all():
        problem = "{subject} holds no value in any row"
        raise what.error(problem, hint="leave it out", is_empty=True)
    if not column.is_category:
        _refuse_infinite(column.values, what)
    return column


def encode_numbers(values: object, what: Subject, *, lacking: bool = False) -> FloatArray:
    """Encode a column that must hold finite numbers in every row; `lacking` lets NaN pass."""
    array = as_arrow(values, what)
    if kind_of(array.type) not in ("null", "boolean", "number"):
        row = int(np.argmax(array.is_valid().to_numpy(zero_copy_only=False)))
        raise what.error(
            "{subject} must be numbers; {row} has {value}",
            row=row,
            value=array[row].as_py(),
            hint="(convert the column{})",
            settings=[Code(", for instance with float or pandas.to_numeric", " to numbers")],
        )
    column = _encoded(what.argument, array, what)
    if not lacking:
        refuse_missing_rows(column.missing, what)
    _refuse_infinite(column.values, what)
    return column.values


def _refuse_infinite(values: FloatArray, what: Subject) -> None:
    problem = "{subject} must be finite; {row} has {value}"
    refuse_rows(np.isinf(values), problem, what, values, hint="remove or cap it")


def kind_of(kind: pa.DataType) -> str:
    """What an Arrow type holds, in a word."""
    return next((word for word, test in KINDS if test(kind)), str(kind))


def _encoded(name: str, array: pa.Array, what: Subject) -> Column:
    kind, holds = array.type, kind_of(array.type)
    if holds == "text":
        return _category(name, array, what)
    if holds == "null":
        return Column(name, "number", np.full(len(array), np.nan))
    if holds == "boolean":
        return Column(name, "boolean", _floats(array.cast(pa.int8())))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        moments = array.cast(pa.timestamp("us", getattr(kind, "tz", None)), safe=False)
        return Column(name, "date", _floats(moments.cast(pa.int64())) / MICROSECONDS_PER_DAY)
    if pa.types.is_duration(kind):
        spans = array.cast(pa.duration("us"), safe=False).cast(pa.int64())
        return Column(name, "number", _floats(spans) / MICROSECONDS_PER_DAY)
    if holds != "number":
        raise what.error(f"{{subject}} is of type {kind}; give numbers, text, booleans or dates")
    return Column(name, "number", _floats(array))


def _floats(array: pa.Array) -> FloatArray:
    """Copy to float64, missing as NaN."""
    numbers = array.cast(pa.float64(), safe=False)
    return np.array(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def levels_and_codes(array: pa.Array) -> tuple[tuple[Any, ...], AnyArray]:
    """Distinct values, sorted or in their declared order, and each row's position (-1: missing)."""
    ordered = None
    if pa.types.is_dictionary(array.type):
        array = _comparable_levels(array)
        ordered = array.dictionary.to_pylist() if array.type.ordered else None
    array = decoded(array)
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        with suppress(pa.ArrowInvalid):  # finer than microseconds: objects of pandas
            array = array.cast(pa.timestamp("us", array.type.tz))
    if pa.types.is_floating(array.type):
        array = pa.array(array.to_numpy(zero_copy_only=False), from_pandas=True)  # NaN is missing
    encoded = array.dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    if ordered is not None:
        position = {level: k for k, level in enumerate(ordered)}
        order = np.argsort([position[level] for level in encoded.dictionary.to_pylist()])
    levels = encoded.dictionary.take(pa.array(order)).to_pylist()
    return tuple(levels), ranks(encoded, order)


def ranks(encoded: pa.DictionaryArray, order: AnyArray) -> IntArray:
    """The place of each row's value in an order of the distinct ones; -1 where it is missing."""
    rank = np.full(order.size + 1, -1, dtype=np.int64)  # the last stands for missing
    rank[order] = np.arange(order.size)
    return np.asarray(rank[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)])


def _comparable_levels(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Turn levels that Arrow cannot compare, such as intervals, into their text."""
    kind = array.type.value_type
    if not (pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType)):
        return array
    levels = pa.array([str(level) for level in array.dictionary.to_pandas()])
    return pa.DictionaryArray.from_arrays(array.indices, levels, ordered=array.type.ordered)


def _category(name: str, array: pa.Array, what: Subject) -> Column:
    levels, codes = levels_and_codes(array)
    if len(levels) > MAX_TEXT_LEVELS and not pa.types.is_dictionary(array.type):
        row = int(np.argmax(codes >= 0))
        raise what.error(
            "{subject} is text with {levels} different values ({row} has {value}); leave it out, "
            "group it, or say what it is with {number} or {category}",
            row=row,
            value=levels[codes[row]],
            levels=len(levels),
            number=Setting("numbers", [name]),
            category=Setting("categories", [name]),
        )
    return Column(name, "category", codes, levels)


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


def whole(value: Any) -> Any:
    """Whole numbers as such: files may hold them as decimals, and True is 1 as in Python."""
    return int(value) if isinstance(value, bool | int | float) and value % 1 == 0 else value


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
        raise what.error(
            "{subject} holds text that is no number; {row} has {value}{more}",
            row=bad[0],
            value=cells[bad[0]].as_py(),
            count=len(bad),
            hint="leave it out of {}, or name missing-value codes with {}",
            settings=[Argument(NUMBERS), Setting("na_values", ...)],
            more=f", and so have {len(bad) - 1:,} more" if len(bad) > 1 else "",
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
    """The names of codes; a code without one keeps its number, and names that repeat get theirs."""
    by_code = {code_of(code): text for code, text in labels.items()}
    named = [by_code.get(code_of(level), _written(level)) for level in levels]
    often = Counter(by_code.values())  # of all meanings: parts of a file have the same names
    return tuple(
        f"{text} ({_written(level)})" if often[text] > 1 else text
        for text, level in zip(named, levels, strict=True)
    )


def all_labelled(array: pa.Array, labels: Labels) -> bool:
    """Whether every value of a column has a meaning."""
    known = {code_of(code) for code in labels}
    values = pc.unique(array).to_pylist()
    return all(value is None or value != value or code_of(value) in known for value in values)


def _written(level: Any) -> str:
    return f"{level:.15g}" if isinstance(level, float) else str(level)


def code_of(value: Any) -> Any:
    """A code by which 1, 1.0 and "1" are the same."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def code_meant(labels: Labels, text: Any) -> Any:
    """The code whose meaning a text is; the text itself where it is none."""
    codes = [code for code, meaning in labels.items() if meaning == text]
    if not codes and isinstance(text, str):
        folded = text.strip().casefold()
        codes = [code for code, meaning in labels.items() if meaning.strip().casefold() == folded]
    return codes[0] if codes else text


def same_code(values: Sequence[Any], asked: Any) -> Any:
    """The value that is the code asked for, if written as text; else what was asked."""
    return next((value for value in values if code_of(value) == code_of(asked)), asked)


def with_meanings(values: Sequence[Any], labels: Labels) -> str:
    """Codes with what they mean, for a message: 1 (yes), 2 (no), 7."""
    by_code = {code_of(code): text for code, text in labels.items()}
    meanings = {value: by_code.get(code_of(value)) for value in values}
    words = [f"{_written(v)} ({text})" if text else _written(v) for v, text in meanings.items()]
    return ", ".join(words)
