"""Which column is what: as the options say, or guessed where it is obvious, and then said aloud."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from itrust._core import InputError, Setting, counted, listed, shown_name
from itrust.cli.columns import said_of_columns, split_names
from itrust.cli.console import Log
from itrust.cli.inputs import InputFiles
from itrust.cli.options import AUDIT, ESTIMATE, RECALIBRATE, WATCH_START, Options
from itrust.data import (
    ALL_CLASSES,
    AUTO,
    MulticlassSample,
    Sample,
    class_columns,
    class_position,
    column_named,
    frame_columns,
    names_several,
    replicate_columns,
    unit_columns,
    without_codes,
)
from itrust.tasks import Task

LABELS = ("y", "label", "labels", "target", "outcome", "y_true", "truth", "actual", "observed")
PROBS = (
    *("p", "prob", "proba", "probs", "probability", "score", "prediction", "predicted", "pred"),
    *("y_prob", "y_pred", "y_score", "y_hat", "p_hat", "phat", "yhat"),
)
OUTER_COMMA = re.compile(r",(?![^()]*\))")  # of "store, blocks(date, 14)": the first
EVERYTHING, NOTHING = "all", "none"
MAX_OTHER_COLUMNS = 50
# What covariates are for, to do and done.
PURPOSES = {
    AUDIT: ("judge on", "judged on"),
    RECALIBRATE: ("recalibrate by", "recalibrated by"),
    ESTIMATE: ("compare rows by", "compared by"),
    WATCH_START: ("judge on", "judged on"),
}


@dataclass(frozen=True)
class FileRoles:
    """Columns by the option that names them."""

    label: str
    prob: tuple[str, ...]
    on: tuple[str, ...]
    weights: str | None = None
    cluster: tuple[str, ...] = ()  # as they are typed: week(date) is about the column `date`
    strata: tuple[str, ...] = ()
    replicate_weights: tuple[str, ...] = ()  # as they are typed, patterns too
    drawn: tuple[str, ...] = ()  # the columns that these three are about
    classes: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)  # by model, as typed

    @property
    def models(self) -> tuple[str, ...]:
        """What the models are called: their column, or how their classes were typed."""
        return tuple(self.classes) or self.prob

    @property
    def used(self) -> list[str]:
        """All of them."""
        weights = [] if self.weights is None else [self.weights]
        return [self.label, *self.prob, *self.on, *weights, *self.drawn]

    def typed(self, columns: Sequence[str]) -> dict[str, Any]:
        """The values of the options that name these columns; no covariates have a word, too."""
        nothing = NOTHING if NOTHING not in columns else ""
        columns_named = {name: part for name, part in vars(self).items() if name != "classes"}
        return {**columns_named, "prob": self.models, "on": self.on or (nothing,)}


def settle(
    source: InputFiles,
    log: Log,
    options: Options,
    *,
    on_needed: bool = True,
    not_on: Iterable[str] = (),
) -> FileRoles:
    """Check the names that were given and guess those that were not.

    Unless covariates are needed, there may be none; `not_on` names columns that are none.
    """
    log.say(*source.notes)
    weights = options.weights
    drawn = _drawn(source, options)
    taken = {*drawn, *([] if weights is None else [source.require("weights", weights)])}
    label = options.label
    classes = class_models(source, options)
    if label is None:
        what, fits = ("two", _has_two_values) if options.positive else ("0/1", _is_binary)
        if classes:
            what, fits = "class", _has_values
        label = _guess(source, log, "label", what, LABELS, fits, taken)
    source.require("label", label)
    chosen = tuple(dict.fromkeys(name for own in classes.values() for name in own.values()))
    if not classes:
        chosen = split_names(source, "prob", options.prob)
    if not chosen:
        used = taken | {label}
        chosen = (_guess(source, log, "prob", "[0, 1]", PROBS, _is_probability, used),)
    taken |= {label, *chosen, *not_on}
    covariates = _covariates(source, log, options, taken) if options.on or on_needed else ()
    return FileRoles(
        label,
        chosen,
        covariates,
        weights,
        cluster=_with_lengths(source, log, "cluster", options.cluster, chosen[0]),
        strata=_with_lengths(source, log, "strata", options.strata, chosen[0]),
        replicate_weights=tuple(options.replicate_weights),
        drawn=drawn,
        classes=classes,
    )


def class_models(source: InputFiles, options: Options) -> dict[str, dict[Any, str]]:
    """By each --prob that names columns of several classes: from classes to columns."""
    known = dict.fromkeys(source.columns)
    several = [names_several(text, known) for text in options.prob]
    if not any(several):
        return {}
    if not all(several):
        raise InputError(
            "{argument}: name one column for every model, or the columns of all classes for every "
            "model",
            argument="prob",
        )
    found = {}
    for text in options.prob:
        with source.located():
            found[text] = class_columns(source.columns, text)
    if options.positive is None:
        return found
    if options.command != AUDIT or any(len(own) > 2 for own in found.values()):
        raise InputError(
            "{argument} is for two labels; with the columns of all classes there is none that "
            "counts as 1",
            argument="positive",
        )
    return {text: _positive_last(own, options.positive) for text, own in found.items()}


def _positive_last(classes: dict[Any, str], positive: str) -> dict[Any, str]:
    """Two classes in the order in which audits take them: the second counts as 1."""
    names = tuple(classes)
    try:
        own = names[class_position(names, positive)]
    except InputError:
        raise InputError(
            "{argument} {value} is not among the classes {classes}",
            argument="positive",
            value=positive,
            details={"classes": listed(names)},
        ) from None
    return {name: classes[name] for name in sorted(names, key=lambda name: name == own)}


def needed_columns(source: InputFiles, tasks: Sequence[Task], roles: FileRoles) -> tuple[str, ...]:
    """Covariates of `--on`, then those that only tasks need."""
    for task in tasks:
        for name in sorted(task.names):
            source.require("task", name)
            if name in (roles.label, *roles.prob):
                raise InputError(
                    "{argument}: {value} is the label or a probability, no covariate",
                    argument="task",
                    value=name,
                    hint="in tasks the label is called y" if name == roles.label != "y" else None,
                )
    more = (name for task in tasks for name in sorted(task.names))
    return tuple(dict.fromkeys([*roles.on, *more]))


def _drawn(source: InputFiles, options: Options) -> tuple[str, ...]:
    """The columns that clusters, strata and replicate weights are about, all of them there."""
    found: dict[str, None] = {}
    for option in ("cluster", "strata"):
        for text in typed_units(source, options.values[option]):
            found[source.require(option, column_named(text, source.columns))] = None
    for text in typed_units(source, options.replicate_weights):
        found |= dict.fromkeys(replicate_columns(text, source.columns, ()))
    return tuple(found)


def typed_units(source: InputFiles, given: Sequence[str]) -> list[str]:
    """Units between commas, as they were typed."""
    if any(not text.strip() for text in given):
        raise InputError("an option names columns, but its value is empty", hint="leave it out")
    return [
        part.strip()
        for text in given  # a column whose name has a comma wins
        for part in ([text] if text in source.columns else OUTER_COMMA.split(text))
        if part.strip()
    ]


def _with_lengths(
    source: InputFiles, log: Log, option: str, given: Sequence[str], prob: str
) -> tuple[str, ...]:
    """Units by name; blocks of time whose length is to be found get it, and it is said aloud."""
    settled = []
    for unit in unit_columns(typed_units(source, given), source.columns, option):
        own = unit
        if unit.length == AUTO:
            frame = source.table([unit.column, prob])
            with source.located():
                own = unit.settled(frame_columns(frame), option, frame[prob])
            log.say(f"{unit.text} are blocks of {counted(int(own.length or 1), 'day')}")
        settled.append(own.text)
    return tuple(settled)


def read_samples(
    source: InputFiles, roles: FileRoles, covariates: Sequence[str], options: Options
) -> dict[str, Sample]:
    """One sample for each column of probabilities, on the same rows."""
    said = said_of_columns(source, options)
    needed = [*roles.used, *covariates, *said.condition_columns(source, roles.prob)]
    frame = _with_other_columns(source, needed)
    if options.missing == "drop" and len(roles.prob) > 1:
        frame = _missing_together(frame, roles.prob, said.na_values)
    positive = positive_value(frame[roles.label].chunks, options.positive)
    kinds = source.kinds(said.kinds, needed, covariates)
    settled: dict[str, Any] = {
        "label": roles.label,
        "weights": roles.weights,
        "cluster": roles.cluster or None,
        "strata": roles.strata or None,
        "replicate_weights": typed_units(source, roles.replicate_weights) or None,
        "replicate_method": options.replicate_method,
        "positive": positive,
        "missing": options.missing,
        "categories": kinds.categories,
        "numbers": kinds.numbers,
        "value_labels": kinds.value_labels,
        "na_values": list(said.na_values),
        "where": said.where,
    }
    with source.located(), _columns_of_classes_named(roles.prob):
        return {
            prob: Sample.from_frame(frame, prob=prob, on=covariates, **settled)
            for prob in roles.prob
        }


@contextmanager
def _columns_of_classes_named(columns: Sequence[str]) -> Iterator[None]:
    """Where a label has several classes and several columns are named, say how they are meant."""
    try:
        yield
    except InputError as error:
        if len(columns) < 3 or ALL_CLASSES not in error.settings:
            raise
        start = _same_letters(columns)
        end = 0 if start else _same_letters([name[::-1] for name in columns])
        classes = [name[start : len(name) - end] or name for name in columns]
        named = ",".join(f"{own}={name}" for own, name in zip(classes, columns, strict=True))
        hint = "(if the columns are of its classes: {}; for one class against the rest: {})"
        cures = (Setting("prob", named), error.settings[0])
        raise error.at(hint=hint, settings=cures) from None


def _same_letters(names: Sequence[str]) -> int:
    """How many letters all names begin with."""
    same = (len(set(letters)) == 1 for letters in zip(*names, strict=False))
    return sum(takewhile(bool, same))


def read_class_samples(
    source: InputFiles, roles: FileRoles, covariates: Sequence[str], options: Options
) -> dict[str, MulticlassSample]:
    """One sample of several classes for each model, on the same rows."""
    said = said_of_columns(source, options)
    needed = [*roles.used, *covariates, *said.condition_columns(source, roles.prob)]
    frame = source.table(needed)
    if options.missing == "drop" and len(roles.classes) > 1:
        frame = _missing_together(frame, roles.prob, said.na_values)
    kinds = source.kinds(said.kinds, needed, covariates)
    with source.located():
        return {
            text: MulticlassSample.from_frame(
                frame,
                label=roles.label,
                prob=columns,
                on=covariates,
                weights=roles.weights,
                cluster=roles.cluster or None,
                strata=roles.strata or None,
                replicate_weights=typed_units(source, roles.replicate_weights) or None,
                replicate_method=options.replicate_method,
                missing=options.missing,
                categories=kinds.categories,
                numbers=kinds.numbers,
                value_labels=kinds.value_labels,
                na_values=list(said.na_values),
                where=said.where,
            )
            for text, columns in roles.classes.items()
        }


def _missing_together(frame: pa.Table, names: Sequence[str], codes: Sequence[Any]) -> pa.Table:
    """Models are compared on the same rows: what one of them lacks, all lack."""
    lacks = pa.array([False] * frame.num_rows)
    blanked = without_codes(frame.select(list(names)), codes)
    for name in names:
        column = blanked[name].combine_chunks()
        is_float = pa.types.is_floating(column.type)
        missing = pc.is_null(column, nan_is_null=True) if is_float else pc.is_null(column)
        lacks = pc.or_(lacks, missing)
    for name in names:
        column = frame[name].combine_chunks()
        blank = pc.if_else(lacks, pa.scalar(None, column.type), column)
        frame = frame.set_column(frame.column_names.index(name), name, blank)
    return frame


def _with_other_columns(source: InputFiles, needed: list[str]) -> pa.Table:
    """The columns that are needed, and those others that may tell which rows share a unit."""
    others = [name for name in source.columns if name not in needed][:MAX_OTHER_COLUMNS]
    try:
        return source.table(needed, source.possible_units(others))
    except InputError:  # nobody asked for the others: they may be anything
        return source.table(needed)


def _covariates(source: InputFiles, log: Log, options: Options, taken: set[str]) -> tuple[str, ...]:
    rest = [name for name in source.columns if name not in taken]
    purpose, done = PURPOSES[options.command]
    if list(options.on) == [EVERYTHING] and EVERYTHING not in source.columns:
        log.say(f"{done} all other columns: {', '.join(map(shown_name, rest)) or 'there are none'}")
        return tuple(rest)
    if list(options.on) == [NOTHING] and NOTHING not in source.columns:
        return ()
    if options.on:
        return split_names(source, "on", options.on)
    if not rest:
        raise InputError(
            f"there is no column left to {purpose}; {{none}} takes the prediction alone",
            argument="on",
            details={"none": Setting("on", NOTHING)},
        )
    raise InputError(
        f"name the covariates to {purpose}, such as {{some}}, or {{all}}; {{none}} takes the "
        "prediction alone; the columns left are {rest}",
        argument="on",
        details={
            "some": Setting("on", ",".join(rest[:2])),
            "all": Setting("on", EVERYTHING),
            "none": Setting("on", NOTHING),
            "rest": listed(rest, max_items=20),
        },
    )


def _guess(
    source: InputFiles,
    log: Log,
    option: str,
    what: str,
    words: Sequence[str],
    fits: Callable[[_Seen], bool],
    taken: set[str],
) -> str:
    """The one column that has a telling name and fitting values."""
    named = [name for name in source.columns if name.casefold() in words and name not in taken]
    if named:
        seen = {name: _Seen() for name in named}
        for batch in source.batches(named):
            for name, own in seen.items():
                own.add(batch[name])
        named = [name for name in named if fits(seen[name])]
    if len(named) == 1:
        log.say(f"taking {named[0]!r} for --{option} ({what} values)")
        return named[0]
    if named:
        raise InputError(
            "{named} could all be {argument}; name one",
            argument=option,
            details={"named": listed(named)},
        )
    free = [name for name in source.columns if name not in taken]
    raise InputError(
        "name the column with {argument}; the columns are {free}",
        argument=option,
        details={"free": listed(free, max_items=20)},
    )


@dataclass
class _Seen:
    """What a column holds, from its rows some at a time; of values, those of the first rows."""

    values: set[Any] = field(default_factory=set)
    ends: list[float] = field(default_factory=list)
    is_float: bool = True

    def add(self, column: pa.Array) -> None:
        """More rows."""
        if len(self.values) <= 2:
            self.values |= set(pc.unique(column.drop_null()).to_pylist())
        self.is_float &= pa.types.is_floating(column.type)
        if self.is_float:
            found = pc.min_max(column).as_py().values()
            present = [value for value in (*self.ends, *found) if value is not None]
            self.ends = [min(present), max(present)] if present else []


def _has_values(seen: _Seen) -> bool:
    return bool(seen.values)


def _has_two_values(seen: _Seen) -> bool:
    return len(seen.values) == 2


def _is_binary(seen: _Seen) -> bool:
    return seen.values <= {0, 1} and bool(seen.values)


def _is_probability(seen: _Seen) -> bool:
    return seen.is_float and bool(seen.ends) and seen.ends[0] >= 0 and seen.ends[1] <= 1


def positive_value(columns: Iterable[pa.Array], text: str | None) -> Any:
    """The label that was meant: columns hold numbers and truth values, options only text."""
    if text is None:
        return None
    for value in (value for column in columns for value in pc.unique(column).to_pylist()):
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
