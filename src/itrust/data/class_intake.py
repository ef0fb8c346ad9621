"""Read labels and probabilities of several classes; columns go to classes by name, never by order.

These functions serve the doors (`MulticlassSample` and its like). Rows in messages count from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from itrust._core import (
    Code,
    FloatArray,
    InputError,
    IntArray,
    counted,
    did_you_mean,
    listed,
    shown,
)
from itrust.data.encoding import (
    as_arrow,
    encode_numbers,
    frame_columns,
    is_frame,
    levels_and_codes,
    names_of_frame,
    refuse_missing_rows,
    rows_to_columns,
)
from itrust.data.intake import LABEL, PROB
from itrust.data.kinds import Labels, code_of, labelled

# Of rows that sum to 1 but for rounding: a softmax in float32, or six digits that sum to 0.999999.
SUM_TOLERANCE = 1e-6 + 1e-12
ROUNDING = 1e-12  # of rows in double precision, which are left as they are
CLASSES = "classes"
STAR = "*"
ROUNDED = 0.02  # how far sums of probabilities with two or three digits may lie from 1
PERCENT = (99.0, 101.0)  # sums of rows that are percentages


def columns_in(p: object) -> int:
    """How many columns probabilities have; no row is looked at.

    >>> columns_in([0.2, 0.7]), columns_in([[0.2, 0.3, 0.5]]), columns_in({"a": [1], "b": [0]})
    (1, 3, 2)
    """
    if isinstance(p, Mapping):
        return len(p)
    if is_frame(p):
        return len(names_of_frame(p))
    if isinstance(p, list | tuple):
        first = p[0] if p else 0.0
        return len(first) if isinstance(first, list | tuple | np.ndarray) else 1
    shape: tuple[int, ...] = getattr(p, "shape", ())
    return int(shape[1]) if len(shape) == 2 else 1


def read_matrix(
    p: object, classes: Sequence[Any] | None
) -> tuple[tuple[Any, ...] | None, FloatArray]:
    """The classes that the columns are named by, and the probabilities, NaN where missing."""
    wanted = None if classes is None else checked_classes(classes)
    if isinstance(p, Mapping) or is_frame(p):
        columns = _named(p)
        names = checked_classes(tuple(columns))
        if wanted is not None:
            columns = {name: columns[_own(name, names, wanted)] for name in wanted}
            names = wanted
        return names, stacked(columns)
    matrix = _as_numbers(p)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise InputError(
            "{argument} must have one column for each class, at least two, not the shape {value}",
            value=matrix.shape,
            **PROB.fields,
        )
    if wanted is not None and len(wanted) != matrix.shape[1]:
        raise InputError(
            "{argument} must name the {count} columns of prob in order, not {wanted}",
            argument=CLASSES,
            value=wanted,
            count=matrix.shape[1],
            details={"wanted": listed(wanted)},
        )
    return wanted, matrix


def _named(p: object) -> dict[Any, object]:
    """Columns of a mapping or frame by their names as they are: pandas may have numbers."""
    if isinstance(p, Mapping):
        return {_plain(name): column for name, column in p.items()}
    columns = frame_columns(p)
    own: Any = getattr(p, "columns", ()) if type(p).__module__.startswith("pandas") else ()
    names = [_plain(name) for name in own] or list(columns)
    return dict(zip(names, columns.values(), strict=True))


def _plain(name: Any) -> Any:
    """A name without NumPy's clothes."""
    return name.item() if isinstance(name, np.generic) else name


def checked_classes(classes: Sequence[Any]) -> tuple[Any, ...]:
    """Names of two classes or more, each once; refuses anything else."""
    named = None if isinstance(classes, str | bytes) else classes
    try:
        found = tuple(_plain(name) for name in named)  # type: ignore[union-attr]
    except TypeError:
        found = ()
    if not found or any(not isinstance(name, Hashable) or name is None for name in found):
        raise InputError(
            "{argument} must be a list of the names of the classes, not {value}",
            argument=CLASSES,
            value=classes,
        )
    twice = [name for name, count in Counter(found).items() if count > 1]
    if twice:
        raise InputError(
            "{argument} must differ; {twice} stands more than once",
            argument=CLASSES,
            value=found,
            details={"twice": listed(twice)},
        )
    if len(found) < 2:
        raise InputError(
            "there is one class only, {only}; give a column of probabilities for every class, at "
            "least two",
            argument=CLASSES,
            value=found,
            details={"only": shown(found[0])},
        )
    return found


def _own(name: Any, names: tuple[Any, ...], wanted: tuple[Any, ...]) -> Any:
    """The column of a class, which may be text where the class is a number."""
    place = class_positions(names).get(name)
    if place is None:
        place = class_positions(names).get(code_of(name))
    if place is None or len(names) != len(wanted):
        raise InputError(
            "{argument} must be the names of the columns of prob in some order, {names}, not "
            "{wanted}",
            argument=CLASSES,
            value=wanted,
            details={"names": listed(names), "wanted": listed(wanted)},
        )
    return names[place]


def class_positions(classes: Sequence[Any]) -> dict[Any, int]:
    """The place of each class by its name, and by its number where that is plain: 1, 1.0 and "1".

    >>> class_positions(["1", "2"])[2.0]
    1
    """
    by_code = Counter(code_of(name) for name in classes)
    found = {code_of(n): k for k, n in enumerate(classes) if by_code[code_of(n)] == 1}
    return {**found, **{name: k for k, name in enumerate(classes)}}


def class_position(classes: tuple[Any, ...], name: Any) -> int:
    """The place of a class that a user names; refuses one that there is not."""
    places = class_positions(classes)
    asked = _plain(name)
    if isinstance(asked, Hashable):
        for key in (asked, code_of(asked)):
            if key in places:
                return places[key]
    raise InputError(
        "there is no class {value}; {guess}",
        argument="name",
        value=name,
        details={"guess": did_you_mean(str(name), [str(c) for c in classes])},
    )


def stacked(columns: Mapping[Any, object]) -> FloatArray:
    """Columns of numbers as one array (n, K), NaN where missing."""
    read = {name: class_numbers(values, name) for name, values in columns.items()}
    sizes = {values.size for values in read.values()}
    if len(sizes) > 1:
        told = listed([values.size for values in read.values()])
        raise InputError(
            f"the columns of {{argument}} must have the same number of rows, not {told}",
            **PROB.fields,
        )
    matrix = np.empty((sizes.pop(), len(read)), order="F")
    for k, values in enumerate(read.values()):
        matrix[:, k] = values
    return matrix


def class_numbers(values: object, name: Any) -> FloatArray:
    """The probabilities of one class, NaN where missing; what is wrong is told with its name."""
    try:
        return encode_numbers(values, PROB, lacking=True)
    except InputError as error:
        raise error.at(
            problem=f"class {{name}}: {error.problem}",
            details={**error.details, "name": shown(name)},
        ) from None


def _as_numbers(p: object) -> FloatArray:
    if isinstance(p, np.ma.MaskedArray):
        p = np.ma.filled(p.astype(float), np.nan)
    if isinstance(p, list | tuple) and p and isinstance(p[0], list | tuple):
        rows_to_columns(PROB, p)  # of different lengths: one sentence
    try:
        return np.array(p, dtype=float, order="F")
    except (TypeError, ValueError):
        raise InputError(
            "{argument} must be a matrix of numbers, one column for each class", **PROB.fields
        ) from None


def read_codes(
    y: object, named: tuple[Any, ...] | None, k: int, labels: Labels | None = None
) -> tuple[tuple[Any, ...], IntArray]:
    """The classes, and the place of every label among them, (n,)."""
    levels, found = levels_and_codes(as_arrow(y, LABEL))
    refuse_missing_rows(found < 0, LABEL)
    classes = _numbered_classes(levels, k) if named is None else named
    places = class_positions(classes)
    meanings = labelled(levels, labels) if labels is not None else levels
    place = np.array(
        [
            places.get(level, places.get(code_of(level), places.get(meaning, -1)))
            for level, meaning in zip(levels, meanings, strict=True)
        ],
        dtype=np.int64,
    )
    codes: IntArray = place[found]
    if (place < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(
            "{row} has the label {value}, which is none of the classes {classes}{more}",
            row=row,
            value=levels[found[row]],
            count=int((codes < 0).sum()),
            details={"classes": listed(classes), "more": _more(int((codes < 0).sum()))},
            **LABEL.fields,
        )
    return classes, codes


def _more(count: int) -> str:
    return f" ({count:,} rows have such labels)" if count > 1 else ""


def _numbered_classes(levels: tuple[Any, ...], k: int) -> tuple[int, ...]:
    """0 to k - 1, if that is what labels are: one that starts at 0, so that none starts at 1."""
    numbers = [level for level in levels if isinstance(level, int | float)]
    if len(numbers) == len(levels) and set(levels) <= set(range(k)) and 0 in levels:
        return tuple(range(k))
    raise InputError(
        "{argument} has {values} ({found}) and prob has {k} columns without names",
        hint="say which column belongs to which label with {}, in the order of the columns",
        settings=[Code("classes=[...]", "names, such as win=p1,tie=pt")],
        details={
            "values": counted(len(levels), "value"),
            "found": listed(_short(levels)),
            "k": k,
        },
        **LABEL.fields,
    )


def _short(values: tuple[Any, ...]) -> tuple[Any, ...]:
    whole = all(isinstance(value, float) and value.is_integer() for value in values)
    return tuple(int(value) for value in values) if whole else values


def numbers_like_labels(names: Sequence[Any], label: pa.DataType) -> tuple[Any, ...]:
    """Classes as whole numbers where their names are the texts of such and labels are numbers.

    >>> numbers_like_labels(["0", "1"], pa.int64()), numbers_like_labels(["0", "1"], pa.string())
    ((0, 1), ('0', '1'))
    """
    is_number = pa.types.is_integer(label) or pa.types.is_floating(label)
    texts = all(isinstance(name, str) and name.lstrip("-").isdecimal() for name in names)
    numbers = tuple(int(name) for name in names) if is_number and texts else ()
    return numbers if len(set(numbers)) == len(names) else tuple(names)


def rows_that_sum_to_1(
    matrix: FloatArray, classes: tuple[Any, ...]
) -> tuple[FloatArray, tuple[int, float]]:
    """Probabilities that are ones, with rows that sum to 1."""
    refuse_missing_rows(np.asarray(np.isnan(matrix).any(axis=1)), PROB)
    _refuse_outside(matrix, classes)
    deviations = np.abs(matrix.sum(axis=1) - 1)
    largest = float(deviations.max(initial=0.0))
    if largest > SUM_TOLERANCE:
        raise _wrong_sum(matrix, classes)
    rounded = deviations > ROUNDING
    if not rounded.any():
        return matrix, (0, 0.0)
    some = matrix[rounded]
    matrix = matrix.copy(order="F")
    if matrix.shape[1] == 2:
        matrix[rounded, 0] = 1 - some[:, 1]
    else:
        matrix[rounded] = some / some.sum(axis=1, keepdims=True)
    return matrix, (int(rounded.sum()), largest)


def rounding_note(count: int, largest: float) -> tuple[str, ...]:
    """What was done with rows that summed to 1 only up to rounding.

    >>> rounding_note(3, 4.2e-7)
    ('the probabilities of 3 rows summed to 1 only up to 4.2e-07: they were rescaled',)
    """
    if not count:
        return ()
    said = f"the probabilities of {counted(count, 'row')} summed to 1 only up to {largest:.2g}"
    return (f"{said}: they were rescaled",)


def _refuse_outside(matrix: FloatArray, classes: tuple[Any, ...]) -> None:
    wrong = ~((matrix >= 0) & (matrix <= 1))
    if not wrong.any():
        return
    rows = wrong.any(axis=1)
    row = int(np.argmax(rows))
    column = int(np.argmax(wrong[row]))
    hint, settings = _cure(matrix)
    raise InputError(
        "{argument} must lie in [0, 1]; {row} has {value} for the class {name}{more}",
        row=row,
        value=float(matrix[row, column]),
        count=int(rows.sum()),
        hint=hint,
        settings=settings,
        details={
            "name": shown(classes[column]),
            "more": f", and so have {int(rows.sum()) - 1:,} more" if rows.sum() > 1 else "",
        },
        **PROB.fields,
    )


def _cure(matrix: FloatArray) -> tuple[str | None, list[Code]]:
    """What would make probabilities of percentages or logits."""
    sums = matrix.sum(axis=1)
    if matrix.min() >= 0 and PERCENT[0] < sums.min() <= sums.max() < PERCENT[1]:
        return "divide percentages by 100?", []
    if matrix.min() >= -SUM_TOLERANCE and matrix.max() <= 1 + SUM_TOLERANCE:
        return "(clip rounding errors{}?)", [Code(" with numpy.clip(p, 0, 1)", " to [0, 1]")]
    softmax = Code("pass logits through scipy.special.softmax", "turn logits into probabilities")
    return "({} first?)", [softmax]


def _wrong_sum(matrix: FloatArray, classes: tuple[Any, ...]) -> InputError:
    sums = matrix.sum(axis=1)
    deviations = np.abs(sums - 1)
    off = deviations > SUM_TOLERANCE
    row = int(np.argmax(off))
    hint = None
    if deviations.max() <= ROUNDED + ROUNDING:
        hint = "divide each row by its sum, if probabilities were rounded"
    elif round(sums[row]) > 1:
        hint = "are these columns of more than one model? name those of one, each with its class"
    return InputError(
        f"the probabilities of a row must sum to 1; those of {{row}} sum to {sums[row]:.9g} "
        f"({counted(int(off.sum()), 'row')} in all); the columns taken are those of {{classes}}",
        row=row,
        value=float(sums[row]),
        count=int(off.sum()),
        hint=hint,
        details={"classes": listed(classes)},
        **PROB.fields,
    )


def class_columns(names: Sequence[str], prob: object) -> dict[Any, str]:
    """The column of each class, as a user names them.

    Examples
    --------
    >>> class_columns(["y", "p_win", "p_tie", "age"], "p_*")
    {'win': 'p_win', 'tie': 'p_tie'}
    >>> class_columns(["y", "p1", "pt"], "win=p1,tie=pt")
    {'win': 'p1', 'tie': 'pt'}
    """
    known = [str(name) for name in names]
    if isinstance(prob, Mapping):
        pairs = [(_plain(name), column) for name, column in prob.items()]
    elif isinstance(prob, str):
        pairs = list(_pairs(prob, known) if STAR not in prob else _matched(prob, known))
    elif isinstance(prob, Sequence):
        pairs = [(name, name) for name in prob]
    else:
        pairs = []
    if not pairs:
        raise InputError(
            "{argument} must name a column for each class, such as {'win': 'p1', 'tie': 'pt'} or "
            "'p_*', not {value}",
            value=prob,
            **PROB.fields,
        )
    for _, column in pairs:
        if column not in known:
            raise InputError(
                "{argument}: there is no column {value}; {guess}",
                value=column,
                details={"guess": did_you_mean(str(column), known)},
                **PROB.fields,
            )
    twice = [name for name, count in Counter(column for _, column in pairs).items() if count > 1]
    if twice:
        raise InputError(
            "{argument}: {value} cannot be the column of two classes", value=twice[0], **PROB.fields
        )
    checked_classes([name for name, _ in pairs])
    return {name: str(column) for name, column in pairs}


def names_several(prob: object, frame: object) -> bool:
    """Whether a user names columns of several classes rather than one column of a frame.

    >>> names_several("p", {"p": [0.5]}), names_several("p_*", {}), names_several("a*", {"a*": [1]})
    (False, True, False)
    """
    if isinstance(prob, str):
        return (STAR in prob or "=" in prob) and prob not in names_of_frame(frame)
    return isinstance(prob, Mapping | Sequence)


def _matched(pattern: str, known: Sequence[str]) -> list[tuple[str, str]]:
    before, _, after = pattern.partition(STAR)
    if STAR in after:
        raise InputError(
            "{argument}: {value} has more than one star; one stands for the class, as in 'p_*'",
            value=pattern,
            **PROB.fields,
        )
    least = len(before) + len(after)
    found = [
        (name[len(before) : len(name) - len(after)], name)
        for name in known
        if name.startswith(before) and name.endswith(after) and len(name) > least
    ]
    if len(found) < 2:
        told = f"only {found[0][1]!r} matches" if found else "no column matches"
        raise InputError(
            f"{{argument}}: {told} {{value}}; {{guess}}",
            value=pattern,
            details={"guess": f"columns are {listed(known)}"},
            **PROB.fields,
        )
    return found


def _pairs(text: str, known: Sequence[str]) -> list[tuple[str, str]]:
    """Classes and columns between commas."""
    if text in known or "=" not in text:
        return []
    found = []
    for part in text.split(","):
        name, sign, column = part.partition("=")
        if not (sign and name.strip() and column.strip()):
            raise InputError(
                "{argument}: {value} is no class with its column, as in 'win=p1,tie=pt'",
                value=part.strip(),
                **PROB.fields,
            )
        found.append((name.strip(), column.strip()))
    return found
