"""Labels and probabilities in any form: of two labels, or of classes, whose columns go by name.

Every refusal is one sentence. Rows in messages count from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from itrust._core import (
    AnyArray,
    Argument,
    Code,
    FloatArray,
    InputError,
    IntArray,
    Setting,
    Subject,
    counted,
    listed,
    place_of,
    shown,
)
from itrust.data.encoding import (
    Labels,
    as_arrow,
    code_meant,
    code_of,
    encode_numbers,
    frame_columns,
    in_narwhals,
    is_frame,
    labelled,
    levels_and_codes,
    name_among,
    names_of_frame,
    refuse_missing_rows,
    repeated,
    rows_to_columns,
    same_code,
    same_length,
    with_meanings,
)

MAX_CODES = 3  # values outside [0, 1] that may be missing-value codes
KNOWN_CODES = (-1, -2, -7, -8, -9, -99, -999, -9999, 9, 99, 999, 9999)
# Of rows that sum to 1 but for rounding: a softmax in float32, or six digits that sum to 0.999999.
SUM_TOLERANCE = 1e-6 + 1e-12
ROUNDING = 1e-12  # of rows in double precision, which are left as they are
ROUNDED = 0.02  # how far sums of probabilities with two or three digits may lie from 1
PERCENT = (99.0, 101.0)  # sums of rows that are percentages
CLASSES, STAR = "classes", "*"
REST = "another class"  # the value of the label that counts as 0, in one class against the rest
ALL_CLASSES = Code(
    "the probabilities of every class, classes=[...]", "--prob win=p1,tie=pt,loss=p2 or 'p_*'"
)
NAMED_CLASSES = Code("classes=[...]", "names, such as win=p1,tie=pt")
LABEL, PROB = Subject("label"), Subject("prob")


# Two labels.


def read_labels(
    y: object, positive: object, labels: Labels | None = None, *, partial: bool = False
) -> tuple[FloatArray, tuple[Any, ...], Any]:
    """Labels as 0 and 1, their values in sorted order, and the one that counts as 1, if named.

    If `positive` says which value counts as 1, all others count as 0; `labels` are meanings of
    values, one of which may be named instead.
    """
    values, codes = levels_and_codes(as_arrow(y, LABEL))
    refuse_missing_rows(codes < 0, LABEL)
    short = _short(values)
    known = listed(short) if labels is None else with_meanings(short, labels)
    if positive is None:
        if len(values) > 2:
            raise _too_many_labels(short, codes, known)
        if not set(values) <= {0, 1}:
            raise LABEL.error(
                "{argument} has the values {known}",
                value=short,
                hint="say which value counts as 1 with {settings}",
                settings=[Setting("positive", v) for v in (short if len(short) == 2 else (...,))],
                known=known,
            )
        return np.array([float(value == 1) for value in values])[codes], values, None
    if labels is not None:
        positive = same_code(values, code_meant(labels, positive))
    if positive not in values and len(values) > 1 and not partial:
        close = [value for value in values if str(value).lower() == str(positive).lower()][:1]
        raise InputError(
            "{given} is not among the labels {known}{cure}",
            argument="positive",
            value=positive,
            hint="did you mean {}?" if close else None,
            settings=[Setting("positive", value) for value in close],
            given=Setting("positive", positive),
            known=known,
            cure="" if close else "; name one of these",
        )
    return np.array([float(value == positive) for value in values])[codes], values, positive


def label_values(y: object) -> tuple[Any, ...]:
    """The values that labels have, in sorted order."""
    return levels_and_codes(as_arrow(y, LABEL))[0]


def both_values(known: tuple[Any, ...], positive: object, labels: Labels | None) -> tuple[Any, Any]:
    """The label values that count as 0 and 1; None for a 0 that does not occur or is not one."""
    others = [value for value in known if value != positive]
    values = (others[0] if len(others) == 1 else None), positive
    if labels is None:
        return values
    zero, one = (None if value is None else labelled([value], labels)[0] for value in values)
    return zero, one


def one_against_the_rest(known: Sequence[Any], positive: object) -> tuple[str, ...]:
    """What is said where several values of the label count as 0."""
    others = [value for value in known if value != positive]
    if positive is None or len(others) < 2:
        return ()
    said = listed(_short(tuple(others)))
    return (f"the label {shown(_short((positive,))[0])} counts as 1, all others ({said}) as 0",)


def _short(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values for a message: whole numbers as such, although CSV files are read as decimals."""
    whole = all(isinstance(value, float) and value.is_integer() for value in values)
    return tuple(map(int, values)) if whole else values


def _too_many_labels(values: tuple[Any, ...], codes: AnyArray, known: str) -> InputError:
    counts = np.bincount(codes)
    rarest = int(np.flatnonzero(counts == counts.min())[-1])
    swapped = len(values) > 10 and all(isinstance(v, float) and 0 <= v <= 1 for v in values)
    one_class = Setting("positive", 1 if 1 in values else values[-1])
    return LABEL.error(
        "{argument} must have two values, not {known}; the rarest is {value} ({rows}, first in "
        "{row})",
        row=int(np.argmax(codes == rarest)),
        value=values[rarest],
        count=int(counts[rarest]),
        hint="(are {} and {} swapped?)"
        if swapped
        else "(for one class against the rest: {}; for all at once: {})",
        settings=[Argument("label"), Argument("prob")] if swapped else [one_class, ALL_CLASSES],
        known=known,
        rows=counted(int(counts[rarest]), "row"),
    )


def positive_column(p: object, values: tuple[Any, ...], positive: object) -> object:
    """The one column of probabilities; of a matrix (n, 2), the column of the positive label."""
    matrix, names = as_matrix(p)
    if matrix is None or matrix.ndim != 2 or matrix.shape[1] == 1:
        return p
    if matrix.shape[1] != 2:
        raise PROB.error(
            "{argument} must be one column, not an array of shape {value}", value=matrix.shape
        )
    if positive is None:
        raise PROB.error(
            "{argument} has two columns",
            hint="pass the positive label's (p[:, 1] from scikit-learn), or name the label with {}",
            settings=[Setting("positive")],
        )
    known = names or [str(value) for value in values]  # scikit-learn sorts the labels
    if (np.abs(matrix.sum(axis=1) - 1) > SUM_TOLERANCE).any():
        raise _wrong_sum(matrix, tuple(known))
    if str(positive) not in known or len(known) != 2:
        raise PROB.error(
            "{argument} has the two columns {known}, and it is not clear which one is {value}; "
            "pass that column alone",
            value=positive,
            known=listed(known),
        )
    return matrix[:, known.index(str(positive))]


def as_matrix(p: object) -> tuple[AnyArray | None, list[str]]:
    """A two-dimensional input as an array with its column names; None for one column."""
    native = in_narwhals(p)
    if isinstance(native, nw.DataFrame):
        return native.to_numpy(), [str(name) for name in native.columns]
    if isinstance(p, list | tuple):
        if not p or not isinstance(p[0], list | tuple | np.ndarray):
            return None, []
        return np.column_stack([np.asarray(column) for column in rows_to_columns(PROB, p)]), []
    plain = isinstance(p, np.ndarray) and not isinstance(p, np.ma.MaskedArray)
    return (p if plain else None), []  # type: ignore[return-value]


# Probabilities.


def read_probabilities(values: object, n: int) -> FloatArray:
    """Probabilities of the positive label, (n,)."""
    p = encode_numbers(values, PROB)
    same_length(PROB, p.size, n)
    _refuse_outside(p[:, None], None)
    return p


def read_predictions(
    p: object, n: int, classes: tuple[Any, ...] | None
) -> tuple[FloatArray, tuple[int, float]]:
    """Probabilities (n, K) of one outcome or of all classes, and what was done about rounding."""
    if classes is None:
        return read_probabilities(p, n)[:, None], (0, 0.0)
    _, matrix = read_matrix(p, classes)
    same_length(PROB, len(matrix), n)
    return rows_that_sum_to_1(matrix, classes)


def rows_that_sum_to_1(
    matrix: FloatArray, classes: tuple[Any, ...]
) -> tuple[FloatArray, tuple[int, float]]:
    """Probabilities that are ones, with rows that sum to 1; how many did not, and by how much."""
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


def _refuse_outside(matrix: FloatArray, classes: tuple[Any, ...] | None) -> None:
    """Raise unless all probabilities, of classes or of one outcome, lie in [0, 1]."""
    wrong = ~((matrix >= 0) & (matrix <= 1))
    if not wrong.any():
        return
    rows = wrong.any(axis=1)
    row = int(np.argmax(rows))
    column = int(np.argmax(wrong[row]))
    others = int(rows.sum()) - 1
    more = f", and {counted(others, 'other row')} {'is' if others == 1 else 'are'} outside, too"
    hint, settings = _cure(matrix)
    raise PROB.error(
        "{argument} must lie in [0, 1]; {row} has {value}{name}{more}",
        row=row,
        value=float(matrix[row, column]),
        count=others + 1,
        hint=hint,
        settings=settings,
        name="" if classes is None else f" for the class {shown(classes[column])}",
        more=more if others else "",
    )


def _cure(matrix: FloatArray) -> tuple[str | None, list[Setting | Code]]:
    """What would make probabilities of missing-value codes, percentages or logits."""
    one, lowest, highest = matrix.shape[1] == 1, matrix.min(), matrix.max()
    codes = _missing_codes(matrix[:, 0]) if one else []
    if codes:
        what = "this looks like a missing-value code"
        what = what if len(codes) == 1 else "these look like missing-value codes"
        settings = [Setting("na_values", codes if len(codes) > 1 else codes[0])]
        cure = f"({what}: {{}} with {{}} leaves such rows out)"
        return cure, [*settings, Setting("missing", "drop")]
    sums = matrix.sum(axis=1)
    percent = 2 < highest <= 100 if one else PERCENT[0] < sums.min() <= sums.max() < PERCENT[1]
    if lowest >= 0 and percent:
        return "divide percentages by 100?", []
    if lowest >= -SUM_TOLERANCE and highest <= 1 + SUM_TOLERANCE:
        return "(clip rounding errors{}?)", [Code(" with numpy.clip(p, 0, 1)", " to [0, 1]")]
    expit = Code("pass logits through scipy.special.expit", "turn logits z into 1 / (1 + exp(-z))")
    softmax = Code("pass logits through scipy.special.softmax", "turn logits into probabilities")
    return "({} first?)", [expit if one else softmax]


def _missing_codes(p: FloatArray) -> list[float]:
    """The few values outside [0, 1] that many rows share: codes of missing values, not logits."""
    outside = p[(p < 0) | (p > 1)]
    values, counts = np.unique(outside, return_counts=True)
    few = values.size <= MAX_CODES and outside.size < p.size / 2
    repeated = bool((counts > 1).all()) or bool(np.isin(values, KNOWN_CODES).all())
    if not (few and repeated):
        return []
    return [int(value) if value == int(value) else float(value) for value in values]


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
    return PROB.error(
        f"the probabilities of a row must sum to 1; those of {{row}} sum to {sums[row]:.9g} "
        f"({counted(int(off.sum()), 'row')} in all); the columns taken are those of {{classes}}",
        row=row,
        value=float(sums[row]),
        count=int(off.sum()),
        hint=hint,
        classes=listed(classes),
    )


# Several classes.


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
        return names, _stacked(columns)
    matrix = _as_numbers(p)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        problem = (
            "{argument} must have one column for each class, at least two, not the shape {value}"
        )
        raise PROB.error(problem, value=matrix.shape)
    if wanted is not None and len(wanted) != matrix.shape[1]:
        raise InputError(
            "{argument} must name the {count} columns of prob in order, not {wanted}",
            argument=CLASSES,
            value=wanted,
            count=matrix.shape[1],
            wanted=listed(wanted),
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
        names = tuple(_plain(name) for name in named)  # type: ignore[union-attr]
    except TypeError:
        names = ()
    if not names or any(not isinstance(name, Hashable) or name is None for name in names):
        problem = "{argument} must be a list of the names of the classes, not {value}"
        raise InputError(problem, argument=CLASSES, value=classes)
    if twice := repeated(names):
        problem = f"{{argument}} must differ; {listed(twice)} stands more than once"
        raise InputError(problem, argument=CLASSES, value=names)
    if len(names) < 2:
        problem = (
            f"there is one class only, {shown(names[0])}; give a column of probabilities for "
            "every class, at least two"
        )
        raise InputError(problem, argument=CLASSES, value=names)
    return names


def _own(name: Any, names: tuple[Any, ...], wanted: tuple[Any, ...]) -> Any:
    """The column of a class, which may be text where the class is a number."""
    places = class_positions(names)
    place = places.get(name, places.get(code_of(name)))
    if place is None or len(names) != len(wanted):
        raise InputError(
            "{argument} must be the names of the columns of prob in some order, {names}, not "
            "{wanted}",
            argument=CLASSES,
            value=wanted,
            names=listed(names),
            wanted=listed(wanted),
        )
    return names[place]


def class_positions(classes: Sequence[Any]) -> dict[Any, int]:
    """The place of each class by its name, and by its number where that is plain: 1, 1.0 and "1".

    >>> class_positions(["1", "2"])[2.0]
    1
    """
    by_code = Counter(code_of(name) for name in classes)
    places = {code_of(n): k for k, n in enumerate(classes) if by_code[code_of(n)] == 1}
    return {**places, **{name: k for k, name in enumerate(classes)}}


def class_position(classes: tuple[Any, ...], name: Any) -> int:
    """The place of a class that a user names; refuses one that there is not."""
    places = class_positions(classes)
    asked = _plain(name)
    if isinstance(asked, Hashable):
        for key in (asked, code_of(asked)):
            if key in places:
                return places[key]
    return place_of(name, classes, "there is no class {value}; {guess}", argument="name")


def _stacked(columns: Mapping[Any, object]) -> FloatArray:
    """Columns of numbers as one array (n, K), NaN where missing."""
    numbers = []
    for name, values in columns.items():
        try:
            numbers.append(encode_numbers(values, PROB, lacking=True))
        except InputError as error:
            problem, details = f"class {{name}}: {error.problem}", error.details
            raise error.at(problem=problem, details=details | {"name": shown(name)}) from None
    sizes = [values.size for values in numbers]
    if len(set(sizes)) > 1:
        told = listed(sizes)
        raise PROB.error(
            f"the columns of {{argument}} must have the same number of rows, not {told}"
        )
    return np.array(numbers).T


def _as_numbers(p: object) -> FloatArray:
    if isinstance(p, np.ma.MaskedArray):
        p = np.ma.filled(p.astype(float), np.nan)
    matrix, _ = as_matrix(p)  # rows of different lengths: one sentence
    try:
        return np.array(p if matrix is None else matrix, dtype=float, order="F")
    except (TypeError, ValueError):
        raise PROB.error(
            "{argument} must be a matrix of numbers, one column for each class"
        ) from None


def read_codes(
    y: object, named: tuple[Any, ...] | None, k: int, labels: Labels | None = None
) -> tuple[tuple[Any, ...], IntArray]:
    """The classes, and the place of every label among them, (n,)."""
    levels, codes = levels_and_codes(as_arrow(y, LABEL))
    refuse_missing_rows(codes < 0, LABEL)
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
    positions: IntArray = place[codes]
    if (place < 0).any():
        strange = positions < 0
        row, count = int(np.argmax(strange)), int(strange.sum())
        raise LABEL.error(
            "{row} has the label {value}, which is none of the classes {classes}{more}",
            row=row,
            value=levels[codes[row]],
            count=count,
            classes=listed(classes),
            more=f" ({count:,} rows have such labels)" if count > 1 else "",
        )
    return classes, positions


def _numbered_classes(levels: tuple[Any, ...], k: int) -> tuple[int, ...]:
    """0 to k - 1, if that is what labels are: one that starts at 0, so that none starts at 1."""
    numbers = [level for level in levels if isinstance(level, int | float)]
    if len(numbers) == len(levels) and set(levels) <= set(range(k)) and 0 in levels:
        return tuple(range(k))
    raise LABEL.error(
        "{argument} has {values} ({known}) and prob has {k} columns without names",
        hint="say which column belongs to which label with {}, in the order of the columns",
        settings=[NAMED_CLASSES],
        values=counted(len(levels), "value"),
        known=listed(_short(levels)),
        k=k,
    )


def nameless_columns(count: int) -> InputError:
    """The error about columns of probabilities without labels or names that tell classes."""
    return PROB.error(
        "{argument} has {count} columns without names",
        count=count,
        hint="say which classes they belong to with {}, in the order of the columns",
        settings=[NAMED_CLASSES],
    )


def numbers_like_labels(names: Sequence[Any], label: pa.DataType) -> tuple[Any, ...]:
    """Classes as whole numbers where their names are the texts of such and labels are numbers.

    >>> numbers_like_labels(["0", "1"], pa.int64()), numbers_like_labels(["0", "1"], pa.string())
    ((0, 1), ('0', '1'))
    """
    is_number = pa.types.is_integer(label) or pa.types.is_floating(label)
    texts = all(isinstance(name, str) and name.lstrip("-").isdecimal() for name in names)
    numbers = tuple(int(name) for name in names) if is_number and texts else ()
    return numbers if len(set(numbers)) == len(names) else tuple(names)


def class_columns(names: Sequence[str], prob: object) -> dict[Any, str]:
    """The column of each class, as a user names them.

    >>> class_columns(["y", "p_win", "p_tie", "age"], "p_*")
    {'win': 'p_win', 'tie': 'p_tie'}
    >>> class_columns(["y", "p1", "pt"], "win=p1,tie=pt")
    {'win': 'p1', 'tie': 'pt'}
    """
    known = [str(name) for name in names]
    pairs: list[tuple[Any, Any]] = []
    if isinstance(prob, Mapping):
        pairs = [(_plain(name), column) for name, column in prob.items()]
    elif isinstance(prob, str):
        pairs = list(_pairs(prob, known) if STAR not in prob else _matched(prob, known))
    elif isinstance(prob, Sequence):
        pairs = [(name, name) for name in prob]
    if not pairs:
        raise PROB.error(
            "{argument} must name a column for each class, such as {'win': 'p1', 'tie': 'pt'} or "
            "'p_*', not {value}",
            value=prob,
        )
    for _, column in pairs:
        name_among(known, column, PROB.argument)
    if twice := repeated(column for _, column in pairs):
        raise PROB.error("{argument}: {value} cannot be the column of two classes", value=twice[0])
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
        raise PROB.error(
            "{argument}: {value} has more than one star; one stands for the class, as in 'p_*'",
            value=pattern,
        )
    least = len(before) + len(after)
    pairs = [
        (name[len(before) : len(name) - len(after)], name)
        for name in known
        if name.startswith(before) and name.endswith(after) and len(name) > least
    ]
    if len(pairs) < 2:
        told = f"only {pairs[0][1]!r} matches" if pairs else "no column matches"
        guess = f"columns are {listed(known)}"
        raise PROB.error(f"{{argument}}: {told} {{value}}; {{guess}}", value=pattern, guess=guess)
    return pairs


def _pairs(text: str, known: Sequence[str]) -> list[tuple[str, str]]:
    """Classes and columns between commas."""
    if text in known or "=" not in text:
        return []
    pairs = []
    for part in text.split(","):
        name, sign, column = part.partition("=")
        if not (sign and name.strip() and column.strip()):
            raise PROB.error(
                "{argument}: {value} is no class with its column, as in 'win=p1,tie=pt'",
                value=part.strip(),
            )
        pairs.append((name.strip(), column.strip()))
    return pairs
