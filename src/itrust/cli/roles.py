"""Which column is what: as the options say, or guessed where it is obvious, and then said aloud."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import InputError, listed
from itrust.cli.console import Log
from itrust.cli.inputs import Source
from itrust.data import read_probabilities

LABELS = ("y", "label", "labels", "target", "outcome", "y_true", "truth", "actual", "observed")
PROBS = (
    *("p", "prob", "proba", "probs", "probability", "score", "prediction", "predicted", "pred"),
    *("y_prob", "y_pred", "y_score", "y_hat", "p_hat", "phat", "yhat"),
)
EVERYTHING = "all"


@dataclass(frozen=True)
class Roles:
    """Columns by their part in an audit."""

    label: str
    probs: tuple[str, ...]
    on: tuple[str, ...]
    weights: str | None = None
    cluster: str | None = None

    @property
    def used(self) -> list[str]:
        """All of them."""
        others = [name for name in (self.weights, self.cluster) if name is not None]
        return [self.label, *self.probs, *self.on, *others]


def settle(
    source: Source,
    log: Log,
    *,
    label: str | None,
    probs: Sequence[str],
    on: Sequence[str],
    weights: str | None = None,
    cluster: str | None = None,
    positive: str | None = None,
    purpose: str = "judge on",
    on_needed: bool = True,
) -> Roles:
    """Check the names that were given and guess those that were not.

    `purpose` says what the covariates are for; unless they are needed, there may be none.
    """
    for remark in source.remarks:
        log.say(remark)
    for option, name in (("--weights", weights), ("--cluster", cluster)):
        if name is not None:
            source.require(option, name)
    taken = {name for name in (weights, cluster) if name is not None}
    if label is None:
        what, fits = ("two", _has_two_values) if positive else ("0/1", _is_binary)
        label = _guess(source, log, "--label", what, LABELS, fits, taken)
    source.require("--label", label)
    chosen = split_names(source, "--prob", probs)
    if not chosen:
        used = taken | {label}
        chosen = (_guess(source, log, "--prob", "[0, 1]", PROBS, _is_probability, used),)
    _refuse_other_numbers(source, chosen)
    taken |= {label, *chosen}
    covariates = _covariates(source, log, on, taken, purpose) if on or on_needed else ()
    return Roles(label, chosen, covariates, weights, cluster)


def _refuse_other_numbers(source: Source, probs: Sequence[str]) -> None:
    """Raise with the name of the column, which is not clear where there are several."""
    if len(probs) < 2:
        return
    rows = source.table(list(probs))
    for name in probs:
        try:
            read_probabilities(rows[name], rows.num_rows)
        except InputError as error:
            raise InputError(f"--prob {name}: {error}") from None


def split_names(source: Source, option: str, given: Sequence[str]) -> tuple[str, ...]:
    """Names from options that repeat or hold several; a column whose name has a comma wins."""
    found: list[str] = []
    for text in given:
        parts = [text] if text in source.columns else [part.strip() for part in text.split(",")]
        found.extend(source.require(option, part) for part in parts if part)
    twice = [name for name in dict.fromkeys(found) if found.count(name) > 1]
    if twice:
        raise InputError(f"{option} names {listed(twice)} more than once")
    return tuple(found)


def _covariates(
    source: Source, log: Log, on: Sequence[str], taken: set[str], purpose: str
) -> tuple[str, ...]:
    rest = [name for name in source.columns if name not in taken]
    if list(on) == [EVERYTHING] and EVERYTHING not in source.columns:
        done = "judged on" if purpose == "judge on" else "repaired by"
        log.say(f"{done} all other columns: {', '.join(rest) or 'there are none'}")
        return tuple(rest)
    if on:
        return split_names(source, "--on", on)
    some = ",".join(rest[:2]) or "COL"
    raise InputError(
        f"name the covariates to {purpose}, such as --on {some}, or --on all; the columns "
        f"left are {listed(rest, most=20) if rest else 'none'}"
    )


def _guess(
    source: Source,
    log: Log,
    option: str,
    what: str,
    words: Sequence[str],
    fits: Callable[[pa.ChunkedArray], bool],
    taken: set[str],
) -> str:
    """The one column that has a telling name and fitting values."""
    named = [name for name in source.columns if name.casefold() in words and name not in taken]
    if named:
        rows = source.table(named)
        named = [name for name in named if fits(rows[name])]
    if len(named) == 1:
        log.say(f"taking {named[0]!r} for {option} ({what} values)")
        return named[0]
    if named:
        raise InputError(f"{listed(named)} could all be {option}; name one")
    free = [name for name in source.columns if name not in taken]
    raise InputError(f"name the column with {option}; the columns are {listed(free, most=20)}")


def _has_two_values(column: pa.ChunkedArray) -> bool:
    return len(pc.unique(column)) == 2


def _is_binary(column: pa.ChunkedArray) -> bool:
    values = set(pc.unique(column).to_pylist())
    return values <= {0, 1} and bool(values)


def _is_probability(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(column.type) or column.null_count:
        return False
    ends = pc.min_max(column).as_py()
    return ends["min"] is not None and ends["min"] >= 0 and ends["max"] <= 1


def positive_value(column: pa.ChunkedArray, text: str | None) -> Any:
    """The label that was meant: columns hold numbers and truth values, options only text."""
    if text is None:
        return None
    for value in pc.unique(column).to_pylist():
        if str(value) == text or (isinstance(value, bool) and str(value).lower() == text.lower()):
            return value
        if isinstance(value, int | float) and _number(text) == value:
            return value
    return text


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
