"""From options to rows: which column is what, as options say or as is obvious, and the rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import itrust as it
from itrust._core import InputError, Setting, counted, listed, shown_name
from itrust.cli.console import say
from itrust.cli.inputs import InputFiles, na_values
from itrust.cli.options import AUDIT, ESTIMATE, RECALIBRATE, WATCH_START, Options
from itrust.data import (
    AUTO,
    PREDICTION,
    Kinds,
    Predicate,
    Sample,
    class_columns,
    class_position,
    frame_columns,
    may_be_units,
    names_several,
    parse_condition,
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
# Whether the values of a column are such as a role wants.
FITS: dict[str, Callable[[set[Any]], bool]] = {
    "0/1": lambda values: values <= {0, 1},
    "two": lambda values: len(values) <= 2,
    "class": lambda _: True,
    "[0, 1]": lambda values: all(isinstance(v, float) and not (v < 0 or v > 1) for v in values),
}
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
    models: Mapping[str, Any]  # by what --prob calls them: a column, or columns by class
    on: tuple[str, ...]
    weights: str | None = None
    cluster: tuple[str, ...] = ()  # as they are typed: week(date) is about the column `date`
    strata: tuple[str, ...] = ()
    replicate_weights: tuple[str, ...] = ()  # as they are typed, patterns too
    drawn: tuple[str, ...] = ()  # the columns that these three are about

    @property
    def several(self) -> bool:
        """Whether models have a column for each of several classes."""
        return any(isinstance(columns, dict) for columns in self.models.values())

    @property
    def prob(self) -> tuple[str, ...]:
        """The columns of probabilities, of all models and classes."""
        return tuple(dict.fromkeys(name for own in self.models.values() for name in _columns(own)))

    @property
    def used(self) -> list[str]:
        """All of them."""
        weights = [] if self.weights is None else [self.weights]
        return [self.label, *self.prob, *self.on, *weights, *self.drawn]

    def only(self, model: str) -> FileRoles:
        """The same for one of the models."""
        return replace(self, models={model: self.models[model]})

    def typed(self, columns: Sequence[str]) -> dict[str, Any]:
        """The values of the options that name these columns; no covariates have a word, too."""
        nothing = NOTHING if NOTHING not in columns else ""
        return {**vars(self), "prob": tuple(self.models), "on": self.on or (nothing,)}


def _columns(model: str | Mapping[Any, str]) -> Iterable[str]:
    return [model] if isinstance(model, str) else model.values()


def settle(
    source: InputFiles, options: Options, *, on_needed: bool = True, not_on: Iterable[str] = ()
) -> FileRoles:
    """Check the names that were given and guess those that were not.

    Unless covariates are needed, there may be none; `not_on` names columns that are none.
    """
    say(options, *source.notes)
    weights = [] if options.weights is None else [options.weights]
    source.require("weights", *weights)
    units = {
        option: unit_columns(typed_units(source, getattr(options, option)), source.columns, option)
        for option in ("cluster", "strata")
    }
    replicates = typed_units(source, options.replicate_weights)
    drawn = [unit.column for some in units.values() for unit in some]
    drawn += replicate_columns(replicates, source.columns, ())
    taken, label = {*drawn, *weights}, options.label
    models: dict[str, Any] = class_models(source, options)
    if label is None:
        what = "class" if models else "two" if options.positive else "0/1"
        label = _guess(source, options, "label", what, LABELS, taken)
    source.require("label", label)
    if not models:
        chosen = split_names(source, "prob", options.prob)
        chosen = chosen or (_guess(source, options, "prob", "[0, 1]", PROBS, taken | {label}),)
        models = {name: name for name in chosen}
    roles = FileRoles(label, models, (), options.weights, drawn=tuple(dict.fromkeys(drawn)))
    taken |= {label, *roles.prob, *not_on}
    texts: dict[str, Any] = {
        option: tuple(_with_length(source, options, option, unit, roles.prob[0]) for unit in some)
        for option, some in units.items()
    }
    on = _covariates(source, options, taken) if options.on or on_needed else ()
    return replace(roles, on=on, replicate_weights=tuple(options.replicate_weights), **texts)


def class_models(source: InputFiles, options: Options) -> dict[str, dict[Any, str]]:
    """By each --prob that names columns of several classes: from classes to columns."""
    known = dict.fromkeys(source.columns)
    several = [names_several(text, known) for text in options.prob]
    if not any(several):
        return {}
    if not all(several):
        problem = "name one column for every model, or the columns of all classes for every model"
        raise InputError(f"{{argument}}: {problem}", argument="prob")
    with source.located():
        models = {text: class_columns(source.columns, text) for text in options.prob}
    if options.positive is None:
        return models
    if options.command != AUDIT or any(len(columns) > 2 for columns in models.values()):
        raise InputError(
            "{argument} is for two labels; with the columns of all classes there is none that "
            "counts as 1",
            argument="positive",
        )
    return {text: _positive_last(columns, options.positive) for text, columns in models.items()}


def _positive_last(classes: dict[Any, str], positive: str) -> dict[Any, str]:
    """Two classes in the order in which audits take them: the second counts as 1."""
    names = list(classes)
    try:
        last = names.pop(class_position(tuple(names), positive))
    except InputError:
        raise InputError(
            "{argument} {value} is not among the classes {classes}",
            argument="positive",
            value=positive,
            classes=listed(names),
        ) from None
    return {name: classes[name] for name in (*names, last)}


def needed_columns(source: InputFiles, tasks: Sequence[Task], roles: FileRoles) -> tuple[str, ...]:
    """Covariates of `--on`, then those that only tasks need."""
    more = list(dict.fromkeys(name for task in tasks for name in sorted(task.names)))
    source.require("task", *more)
    for name in more:
        if name in (roles.label, *roles.prob):
            raise InputError(
                "{argument}: {value} is the label or a probability, no covariate",
                argument="task",
                value=name,
                hint="in tasks the label is called y" if name == roles.label != "y" else None,
            )
    return tuple(dict.fromkeys([*roles.on, *more]))


def typed_units(source: InputFiles, given: Sequence[str]) -> list[str]:
    """Units between commas, as they were typed; a column whose name has a comma wins."""
    if any(not text.strip() for text in given):
        raise InputError("an option names columns, but its value is empty", hint="leave it out")
    split = ([text] if text in source.columns else OUTER_COMMA.split(text) for text in given)
    return [part.strip() for parts in split for part in parts if part.strip()]


def _with_length(source: InputFiles, options: Options, option: str, unit: Any, prob: str) -> str:
    """A unit as it is typed; blocks of time whose length is to be found get it, said aloud."""
    if unit.length != AUTO:
        return str(unit.text)
    frame = source.table([unit.column, prob])
    with source.located():
        settled = unit.settled(frame_columns(frame), option, frame[prob])
    say(options, f"{unit.text} are blocks of {counted(int(settled.length or 1), 'day')}")
    return str(settled.text)


def kinds_said(source: InputFiles, options: Options) -> Kinds:
    """What options say of the kinds of columns; refuses names of columns that are not there."""
    category = split_names(source, "category", options.category)
    number = split_names(source, "number", options.number)
    labels: dict[str, dict[Any, str]] = {}
    for text in options.value_labels:
        name, meanings = _labels(source, text)
        labels.setdefault(name, {}).update(meanings)
    return Kinds.of(category, number, labels)


def condition_of(
    source: InputFiles, options: Options, probs: Sequence[str] = ()
) -> tuple[Predicate | None, list[str]]:
    """The condition on rows that count, if there is one, and its columns, all of them there."""
    if options.where is None:
        return None, []
    try:
        where = parse_condition(options.where)
    except InputError as error:
        raise error.at(argument="where") from None
    names = sorted(where.names)
    if PREDICTION in names and PREDICTION not in source.columns:
        names.remove(PREDICTION)
        if len(probs) > 1:
            problem = "with several models it is not clear which prediction is meant"
            raise InputError(f"{{argument}}: {problem}; name its column", argument="where")
    source.require("where", *names)
    return where, names


def split_names(source: InputFiles, option: str, given: Sequence[str]) -> tuple[str, ...]:
    """Names from options that repeat or hold several; a column whose name has a comma wins."""
    split = ([text] if text in source.columns else text.split(",") for text in given)
    names = [text if text in source.columns else text.strip() for some in split for text in some]
    names = [name for name in names if name]
    source.require(option, *names)
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        problem = "{argument} names {twice} more than once"
        raise InputError(problem, argument=option, twice=listed(twice))
    return tuple(names)


def _labels(source: InputFiles, text: str) -> tuple[str, dict[str, str]]:
    """A column and what its codes mean, from a text such as 'race: 1=White, 2=Black'."""
    name, _, rest = text.partition(":")
    split = (pair.partition("=") for pair in rest.split(",") if pair.strip())
    meanings = {code.strip(): meaning.strip() for code, _, meaning in split}
    if not meanings or not all((*meanings, *meanings.values())):
        raise InputError(
            "{argument} takes a column and what its codes mean, such as 'race: 1=White, 2=Black', "
            "not {value}",
            argument="value_labels",
            value=text,
        )
    source.require("value_labels", name.strip())
    return name.strip(), meanings


def read_rows(
    source: InputFiles,
    roles: FileRoles,
    covariates: Sequence[str],
    options: Options,
    *,
    stream: bool = False,
) -> dict[str, Any]:
    """The rows of every model, the same for all: in memory, or named to be read as a stream."""
    said, codes = kinds_said(source, options), na_values(options)
    where, conditions = condition_of(source, options, roles.prob)
    needed = [*roles.used, *covariates, *conditions]
    frame = None if stream else with_other_columns(source, needed)
    if frame is not None and options.missing == "drop" and len(roles.models) > 1:
        frame = _missing_together(frame, roles.prob, codes)
    kinds = source.file_set.kinds(said, needed, covariates)
    settled: dict[str, Any] = {
        "label": roles.label,
        "on": covariates,
        "weights": roles.weights,
        "cluster": roles.cluster or None,
        "strata": roles.strata or None,
        "replicate_weights": typed_units(source, roles.replicate_weights) or None,
        "replicate_method": options.replicate_method,
        "positive": None if roles.several else _positive(source, roles.label, options.positive),
        "missing": options.missing,
        "categories": kinds.categories,
        "numbers": kinds.numbers,
        "value_labels": kinds.value_labels,
        "na_values": list(codes),
        "where": where,
    }
    if frame is None:
        files = source.file_set
        return {
            name: it.scan(files, prob=prob, form=files.form, **settled)
            for name, prob in roles.models.items()
        }
    with source.located():
        return {
            name: Sample.from_frame(frame, prob=prob, **settled)
            for name, prob in roles.models.items()
        }


def _missing_together(frame: pa.Table, names: Sequence[str], codes: Sequence[Any]) -> pa.Table:
    """Models are compared on the same rows: what one of them lacks, all lack."""
    lacks = pa.repeat(False, frame.num_rows)
    for column in without_codes(frame.select(list(names)), codes).columns:
        is_float = pa.types.is_floating(column.type)
        lacks = pc.or_(lacks, pc.is_null(column, nan_is_null=is_float))
    for name in names:
        blank = pc.if_else(lacks, pa.scalar(None, frame[name].type), frame[name])
        frame = frame.set_column(frame.column_names.index(name), name, blank)
    return frame


def with_other_columns(source: InputFiles, needed: list[str]) -> pa.Table:
    """The columns that are needed, and those others that may tell which rows share a unit."""
    others = [name for name in source.columns if name not in needed][:MAX_OTHER_COLUMNS]
    try:
        head = source.file_set.head(others) if others else None
        units = [] if head is None else [name for name in others if may_be_units(head[name])]
        return source.table(needed, units)
    except InputError:  # nobody asked for the others: they may be anything
        return source.table(needed)


def _covariates(source: InputFiles, options: Options, taken: set[str]) -> tuple[str, ...]:
    rest = [name for name in source.columns if name not in taken]
    purpose, done = PURPOSES[options.command]
    if list(options.on) == [EVERYTHING] and EVERYTHING not in source.columns:
        names = ", ".join(map(shown_name, rest)) or "there are none"
        say(options, f"{done} all other columns: {names}")
        return tuple(rest)
    if list(options.on) == [NOTHING] and NOTHING not in source.columns:
        return ()
    if options.on:
        return split_names(source, "on", options.on)
    problem = f"there is no column left to {purpose}; {{none}} takes the prediction alone"
    if rest:
        problem = (
            f"name the covariates to {purpose}, such as {{some}}, or {{all}}; {{none}} takes the "
            "prediction alone; the columns left are {rest}"
        )
    words = {"some": ",".join(rest[:2]), "all": EVERYTHING, "none": NOTHING}
    cures = {name: Setting("on", value) for name, value in words.items()}
    raise InputError(problem, argument="on", details=cures, rest=listed(rest, max_items=20))


def _guess(
    source: InputFiles,
    options: Options,
    option: str,
    what: str,
    words: Sequence[str],
    taken: set[str],
) -> str:
    """The one column that has a telling name and, in the first rows, fitting values."""
    free = [name for name in source.columns if name not in taken]
    telling = [name for name in free if name.casefold() in words]
    head = (source.file_set.head(telling) if telling else None) or pa.table({})
    values = {name: set(head[name].unique().to_pylist()) - {None} for name in head.schema.names}
    named: list[str] = [name for name, seen in values.items() if seen and FITS[what](seen)]
    if len(named) == 1:
        say(options, f"taking {named[0]!r} for --{option} ({what} values)")
        return named[0]
    problem = "name the column with {argument}; the columns are {free}"
    if named:
        problem = "{named} could all be {argument}; name one"
    raise InputError(problem, argument=option, named=listed(named), free=listed(free, max_items=20))


def _positive(source: InputFiles, label: str, text: str | None) -> Any:
    """The label that was meant: columns hold numbers and truth values, options only text."""
    if text is None:
        return None
    seen = [v for b in source.file_set.rows([label]) for v in pc.unique(b[label]).to_pylist()]
    values = tuple(value for value in dict.fromkeys(seen) if value is not None)
    truth = {str(value).lower(): value for value in values if isinstance(value, bool)}
    with suppress(InputError):
        return values[class_position(values, truth.get(text.lower(), text))]
    return text
