"""Read what users bring, in any form, into plain arrays; every refusal is one sentence.

These functions serve the doors (`Sample` and its like). Rows in messages count from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, get_args

import narwhals.stable.v2 as nw
import numpy as np

from itrust._core import (
    AnyArray,
    Argument,
    Code,
    FloatArray,
    InputError,
    Setting,
    Subject,
    checked_choice,
    counted,
    did_you_mean,
    listed,
    shown,
)
from itrust.data.column import Column
from itrust.data.design_intake import read_design, refuse_odd_units
from itrust.data.dropping import Kept, Lacking, covariate_masks, kept_rows
from itrust.data.encoding import (
    as_arrow,
    by_name,
    columns_of,
    encode,
    encode_numbers,
    frame_columns,
    in_narwhals,
    levels_and_codes,
    refuse_duplicates,
    refuse_missing_rows,
    rows_to_columns,
    same_length,
)
from itrust.data.kinds import PLAIN, Kinds, Labels, code_meant, labelled, same_code, with_meanings
from itrust.data.units import read_units

MAX_CODES = 3  # values outside [0, 1] that may be missing-value codes
ALL_CLASSES = Code(
    "the probabilities of every class, classes=[...]", "--prob win=p1,tie=pt,loss=p2 or 'p_*'"
)
KNOWN_CODES = (-1, -2, -7, -8, -9, -99, -999, -9999, 9, 99, 999, 9999)

MissingRule = Literal["error", "level", "drop"]

LABEL, PROB, WEIGHTS = (Subject(name) for name in ("label", "prob", "weights"))


def checked_missing(missing: object) -> MissingRule:
    """Pass a setting on; refuse one that does not exist."""
    return checked_choice(missing, "missing", get_args(MissingRule))


def same_index(inputs: Iterable[tuple[str, object]]) -> None:
    """Refuse pandas inputs whose indexes differ: rows are matched by position."""
    first_name, first = "", None
    for name, value in inputs:
        is_pandas = type(value).__module__.partition(".")[0] == "pandas"
        index: Any = getattr(value, "index", None) if is_pandas else None
        if first is None:
            first_name, first = name, index
        elif index is not None and len(index) == len(first) and not index.equals(first):
            row = int(np.argmax(np.asarray(index) != np.asarray(first)))
            raise InputError(
                "{first} and {second} have different indexes ({row}: {one} and {other}), but rows "
                "go by position; align them, or .reset_index(drop=True)",
                row=row,
                details={
                    "first": first_name,
                    "second": name,
                    "one": str(first[row]),
                    "other": str(index[row]),
                },
            )


def read_labels(
    y: object, positive: object, *, partial: bool = False
) -> tuple[FloatArray, tuple[Any, ...]]:
    """Labels as 0 and 1, and their values in sorted order.

    If `positive` says which value counts as 1, all others count as 0.
    """
    values, codes = levels_and_codes(as_arrow(y, LABEL))
    refuse_missing_rows(codes < 0, LABEL)
    if len(values) > 2 and (positive is None or not (partial or positive in values)):
        raise _too_many_labels(values, codes, positive)
    if positive is None:
        if not set(values) <= {0, 1}:
            said = _short(values)
            raise InputError(
                "{argument} has the values {known}",
                value=said,
                hint="say which value counts as 1 with {settings}",
                settings=[Setting("positive", v) for v in (said if len(said) == 2 else (...,))],
                details={"known": listed(said)},
                **LABEL.fields,
            )
        positive = 1
    elif positive not in values and len(values) == 2 and not partial:
        raise _unknown_positive(values, positive)
    return np.array([float(value == positive) for value in values])[codes], values


def label_values(y: object) -> tuple[Any, ...]:
    """The values that labels have, in sorted order.

    >>> label_values(["yes", "no", "yes"])
    ('no', 'yes')
    """
    return levels_and_codes(as_arrow(y, LABEL))[0]


def _unknown_positive(values: tuple[Any, ...], positive: object) -> InputError:
    close = [value for value in values if str(value).lower() == str(positive).lower()][:1]
    return InputError(
        "{given} is not among the labels {known}{cure}",
        argument="positive",
        value=positive,
        hint="did you mean {}?" if close else None,
        settings=[Setting("positive", value) for value in close],
        details={
            "given": Setting("positive", positive),
            "known": listed(_short(values)),
            "cure": "" if close else "; name one of these",
        },
    )


def _short(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values for a message: whole numbers as such, although CSV files are read as decimals."""
    whole = all(isinstance(value, float) and value.is_integer() for value in values)
    return tuple(int(value) for value in values) if whole else values


def _too_many_labels(
    values: tuple[Any, ...], codes: AnyArray, positive: object = None
) -> InputError:
    if positive is not None:
        return _unknown_positive(values, positive)
    counts = np.bincount(codes)
    rarest = int(np.flatnonzero(counts == counts.min())[-1])
    said = _short(values)
    swapped = len(values) > 10 and all(isinstance(v, float) and 0 <= v <= 1 for v in values)
    one_class = Setting("positive", 1 if 1 in said else said[-1])
    return InputError(
        "{argument} must have two values, not {known}; the rarest is {value} ({rows}, first in "
        "{row})",
        row=int(np.argmax(codes == rarest)),
        value=said[rarest],
        count=int(counts[rarest]),
        hint="(are {} and {} swapped?)"
        if swapped
        else "(for one class against the rest: {}; for all at once: {})",
        settings=[Argument("label"), Argument("prob")] if swapped else [one_class, ALL_CLASSES],
        details={"known": listed(said), "rows": counted(int(counts[rarest]), "row")},
        **LABEL.fields,
    )


def positive_column(p: object, values: tuple[Any, ...], positive: object) -> object:
    """The one column of probabilities; of a matrix (n, 2), the column of the positive label."""
    matrix, names = _as_matrix(p)
    if matrix is None or matrix.ndim != 2 or matrix.shape[1] == 1:
        return p
    if matrix.shape[1] != 2:
        raise InputError(
            "{argument} must be one column, not an array of shape {value}",
            value=matrix.shape,
            **PROB.fields,
        )
    if positive is None:
        raise InputError(
            "{argument} has two columns",
            hint="pass the positive label's (p[:, 1] from scikit-learn), or name the label with {}",
            settings=[Setting("positive")],
            **PROB.fields,
        )
    off = np.abs(matrix.sum(axis=1) - 1) > 1e-6
    if off.any():
        row = int(np.argmax(off))
        raise InputError(
            "{argument}: the two columns must sum to 1; {row} has {sum}",
            row=row,
            value=tuple(matrix[row].tolist()),
            details={"sum": str(matrix[row])},
            **PROB.fields,
        )
    known = names or [str(value) for value in values]  # scikit-learn sorts the labels
    if str(positive) not in known or len(known) != 2:
        raise InputError(
            "{argument} has the two columns {known}, and it is not clear which one is {value}; "
            "pass that column alone",
            value=positive,
            details={"known": listed(known)},
            **PROB.fields,
        )
    return matrix[:, known.index(str(positive))]


def _as_matrix(p: object) -> tuple[AnyArray | None, list[str]]:
    """A two-dimensional input as an array with its column names; None for one column."""
    native = in_narwhals(p)
    if isinstance(native, nw.DataFrame):
        return native.to_numpy(), [str(name) for name in native.columns]
    if isinstance(p, list | tuple):
        if not p or not isinstance(p[0], list | tuple | np.ndarray):
            return None, []
        return np.column_stack([np.asarray(column) for column in rows_to_columns(PROB, p)]), []
    return (
        (p, [])
        if isinstance(p, np.ndarray) and not isinstance(p, np.ma.MaskedArray)
        else (None, [])
    )


def _numbers(values: object, what: Subject, n: int) -> FloatArray:
    """A column of n finite numbers."""
    numbers = encode_numbers(values, what)
    same_length(what, numbers.size, n)
    return numbers


def read_probabilities(values: object, n: int) -> FloatArray:
    """Probabilities of the positive label, (n,)."""
    p = _numbers(values, PROB, n)
    outside = (p < 0) | (p > 1)
    if outside.any():
        row = int(np.argmax(outside))
        hint, code = _cure(p)
        count = int(outside.sum())
        more = (
            f", and {counted(count - 1, 'other row')} {'is' if count == 2 else 'are'} outside, too"
        )
        raise InputError(
            "{argument} must lie in [0, 1]; {row} has {value}{more}",
            row=row,
            value=float(p[row]),
            count=count,
            hint=hint,
            settings=code,
            details={"more": more if count > 1 else ""},
            **PROB.fields,
        )
    return p


def _missing_codes(p: FloatArray) -> list[float]:
    """The few values outside [0, 1] that many rows share: codes of missing values, not logits."""
    outside = p[(p < 0) | (p > 1)]
    values, counts = np.unique(outside, return_counts=True)
    few = values.size <= MAX_CODES and outside.size < p.size / 2
    repeated = bool((counts > 1).all()) or bool(np.isin(values, KNOWN_CODES).all())
    return [_plain(value) for value in values] if few and repeated else []


def _plain(value: float) -> float:
    return int(value) if value == int(value) else float(value)


def _cure(p: FloatArray) -> tuple[str, list[Setting | Code]]:
    codes = _missing_codes(p)
    if codes:
        what = (
            "these look like missing-value codes"
            if len(codes) > 1
            else ("this looks like a missing-value code")
        )
        said: Any = codes if len(codes) > 1 else codes[0]
        return f"({what}: {{}} with {{}} leaves such rows out)", [
            Setting("na_values", said),
            Setting("missing", "drop"),
        ]
    if p.min() >= 0 and 2 < p.max() <= 100:
        return "divide percentages by 100?", []
    if p.min() >= -1e-6 and p.max() <= 1 + 1e-6:
        return "(clip rounding errors{}?)", [Code(" with numpy.clip(p, 0, 1)", " to [0, 1]")]
    expit = Code("pass logits through scipy.special.expit", "turn logits z into 1 / (1 + exp(-z))")
    return "({} first?)", [expit]


def refuse_empty_weights(weights: FloatArray) -> None:
    """Raise unless at least two rows count."""
    if np.count_nonzero(weights) < 2:
        raise InputError(
            "{argument} are zero in all rows but at most one; two rows must count",
            **WEIGHTS.fields,
        )


def named_columns(
    frame: object, roles: Mapping[str, str | None], on: str | Sequence[str]
) -> tuple[dict[str, object], dict[str, str], list[str]]:
    """Columns of a frame, names of those with a role, and covariates; all of them are there."""
    columns = frame_columns(frame)
    chosen = [on] if isinstance(on, str) else [str(name) for name in on or ()]
    named = {role: str(name) for role, name in roles.items() if name is not None}
    for role, name in (*named.items(), *(("on", name) for name in chosen)):
        if name not in columns:
            raise InputError(
                "{argument}: the frame has no column {value}; {guess}",
                argument=role,
                value=name,
                details={"guess": did_you_mean(name, list(columns))},
            )
    refuse_duplicates(chosen)
    return columns, named, chosen


def refuse_among_covariates(role: str, name: str, covariates: Sequence[str]) -> None:
    """Raise if a column with a role of its own is a covariate, too."""
    if name in covariates:
        raise InputError(
            f"{{value}} is the {role} column; take it out of {{on}}",
            argument="on",
            value=name,
            details={"on": Code("`on`", "--on")},
        )


@contextmanager
def column_names_known(named: Mapping[str, str]) -> Iterator[None]:
    """Give an error about an argument the name of the column that it came from."""
    try:
        yield
    except InputError as error:
        name = named.get(error.argument or "")
        if name is None or error.column is not None:
            raise
        raise error.at(column=name) from None


def read_parts(
    y: object,
    p: object,
    x: object,
    *,
    names: Sequence[str] | None = None,
    weights: object = None,
    cluster: object = None,
    strata: object = None,
    replicate_weights: object = None,
    replicate_method: object = None,
    positive: object = None,
    missing: MissingRule = "error",
    partial: bool = False,
    others: Mapping[str, object] | None = None,
    kinds: Kinds = PLAIN,
    label: str | None = None,
    as_drawn: bool = True,
) -> dict[str, Any]:
    """Everything a sample, or with `partial` a chunk of one, is made of.

    Unless rows are all `as_drawn`, their strata and clusters need not allow a variance.

    `others` are columns without a role, of which only units are kept; `label` is the name of the
    label's column, if it has one.
    """
    checked_missing(missing)
    covariates = read_covariates(x, names, partial=partial, kinds=kinds)
    roles = {
        "weights": weights,
        "cluster": cluster,
        "strata": strata,
        "replicate_weights": replicate_weights,
    }
    beside = {"label": y, "prob": p, **roles}
    kept = lacking_nothing(beside, covariates) if missing == "drop" else None
    if kept is not None:
        refuse_odd_units(roles)
        as_drawn = False
        rows, beside = kept[0].rows, {**dict.fromkeys(beside), **kept[1]}
        covariates = tuple(column.take(rows) for column in covariates)
        others = {}  # columns that nobody asked for still have all rows
    with nullcontext() if kept is None else kept[0].numbered():
        parts = _parts(
            covariates,
            beside,
            replicate_method,
            positive,
            partial=partial,
            as_drawn=as_drawn and not partial,
            labels=kinds.labels_of(label or ""),
        )
    parts["dropped"] = (*(() if kept is None else (kept[0].note,)), *parts["dropped"])
    parts["units"] = read_units(others or {}, parts["y"].size)
    return settle_missing(parts, missing)


def lacking_nothing(
    beside: Mapping[str, object], covariates: tuple[Column, ...]
) -> tuple[Kept, dict[str, Any]] | None:
    """The rows that have everything, and what comes beside the covariates there."""
    matrix, _ = _as_matrix(beside.get("prob"))  # a list of rows, or a frame with two columns
    is_matrix = matrix is not None and matrix.ndim == 2
    given = Lacking({**beside, "prob": matrix} if is_matrix else beside)
    beside_x = given.masks
    own = covariate_masks(covariates)
    twice = {name: own[name] | beside_x[name] for name in own if name in beside_x}
    masks = {**beside_x, **own, **twice}
    n = next(iter(masks.values())).size
    if any(mask.size != n for mask in masks.values()):
        return None  # columns of different lengths are told as such, later
    kept = kept_rows(masks)
    return None if kept is None else (kept, given.take(kept.rows))


def _parts(
    covariates: tuple[Column, ...],
    beside: Mapping[str, Any],
    replicate_method: object,
    positive: object,
    *,
    partial: bool,
    as_drawn: bool,
    labels: Labels | None,
) -> dict[str, Any]:
    if labels is not None:
        known, _ = levels_and_codes(as_arrow(beside["label"], LABEL))
        positive = None if positive is None else same_code(known, code_meant(labels, positive))
    try:
        y, found = read_labels(beside["label"], positive, partial=partial)
    except InputError as error:
        if labels is None or "known" not in error.details:
            raise
        told = with_meanings(_short(known), labels)
        raise error.at(details={**error.details, "known": told}) from None
    n = y.size
    prob = read_probabilities(positive_column(beside["prob"], found, positive), n)
    for column in covariates:
        same_length(Subject("x", column.name), len(column), n)
    values = _both_values(found, 1 if positive is None else positive)
    if labels is not None:
        values = _named_values(values, labels)
    return {
        "y": y,
        "p": prob,
        "columns": covariates,
        "design": read_design(
            n,
            weights=beside["weights"],
            cluster=beside["cluster"],
            strata=beside["strata"],
            replicate_weights=beside["replicate_weights"],
            replicate_method=replicate_method,
            partial=partial,
            as_drawn=as_drawn,
        ),
        "values": values,
        "others": frozenset(value for value in found if value != values[1]),
        "dropped": () if partial else one_against_the_rest(found, positive),
    }


def _both_values(found: tuple[Any, ...], positive: object) -> tuple[Any, Any]:
    """The label values that count as 0 and 1; None for a 0 that does not occur or is not one."""
    others = [value for value in found if value != positive]
    return (others[0] if len(others) == 1 else None), positive


def _named_values(values: tuple[Any, Any], labels: Labels) -> tuple[Any, Any]:
    zero, one = (None if value is None else labelled([value], labels)[0] for value in values)
    return zero, one


def one_against_the_rest(found: Sequence[Any], positive: object) -> tuple[str, ...]:
    """What is said where several values of the label count as 0."""
    others = [value for value in found if value != positive]
    if positive is None or len(others) < 2:
        return ()
    said = listed(_short(tuple(others)))
    return (f"the label {shown(_short((positive,))[0])} counts as 1, all others ({said}) as 0",)


def read_covariates(
    x: object,
    names: Sequence[str] | None,
    *,
    partial: bool = False,
    kinds: Kinds = PLAIN,
) -> tuple[Column, ...]:
    """Covariates of any form, encoded; nothing is settled about missing values yet."""
    columns = columns_of(x)
    if names is not None:
        names = [names] if isinstance(names, str) else [str(name) for name in names]
        if len(names) != len(columns):
            told = counted(len(names), "name"), counted(len(columns), "covariate")
            raise InputError(f"names gives {told[0]} for {told[1]}", argument="names")
        columns = by_name(list(zip(names, columns.values(), strict=True)))
    return tuple(
        encode(name, values, partial=partial, kinds=kinds) for name, values in columns.items()
    )


def settle_missing(parts: dict[str, Any], missing: MissingRule) -> dict[str, Any]:
    """Refuse missing covariates unless they are to be a level; rows to drop are gone by now."""
    columns: tuple[Column, ...] = parts["columns"]
    counts = {c.name: int(c.missing.sum()) for c in columns if c.missing.any()}
    if counts and missing == "error":
        told = ", ".join(f"{name!r} in {counted(count, 'row')}" for name, count in counts.items())
        first = next(c for c in columns if c.name in counts)
        raise InputError(
            "covariates have missing values: {told} (first: {row}{where})",
            argument="x",
            column=first.name,
            row=int(np.argmax(first.missing)),
            count=counts[first.name],
            hint="pass {settings}",
            settings=[Setting("missing", "level"), Setting("missing", "drop")],
            details={"told": told, "where": f" of {first.name!r}" if len(counts) > 1 else ""},
        )
    return {**parts, "columns": tuple(c.with_missing_level() for c in columns)}
