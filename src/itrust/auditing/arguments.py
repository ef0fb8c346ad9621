"""What `audit` is called with: a sample and tasks, or a model with its rows; or a slip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from itrust._core import InputError, Rng, Setting, listed, place_of, shown
from itrust.bias import names_of
from itrust.calibration import validation
from itrust.data import (
    Rows,
    Sample,
    Scan,
    a_kind,
    checked_sample,
    is_binary_scan,
    is_frame,
    is_model,
    names_of_frame,
)
from itrust.tasks import Task, as_tasks

Tasks = Sequence[Task | str] | Task | str


def asked_of(
    sample: object,
    X: object,
    y: object,
    tasks: Tasks,
    on: object,
    grades: object,
    model_settings: Mapping[str, Any],
    rng: Rng,
) -> tuple[Any, tuple[str, ...], list[Task], str | None]:
    """Rows, covariates to judge on, tasks, and the covariate of grades.

    Tells a sample from a model with its rows; a slip is answered with the right call.
    """
    if isinstance(sample, Rows | Scan):
        rows, names, wanted = _of_sample(sample, X, y, tasks, on, model_settings)
        rows, grade = _graded(rows, grades, "level")
        return rows, names, wanted, grade
    if not is_model(sample) or X is None or y is None:
        raise _slip(sample, X, y)
    wanted = as_tasks(tasks)
    columns: Any = on
    by_name = isinstance(on, str | int | list | tuple)
    chosen: list[Any] = list(dict.fromkeys(on)) if isinstance(on, list | tuple) else [on]
    if by_name:
        asked = {grades} if isinstance(grades, str) else set[str]()
        needed = sorted(asked.union(*(task.names for task in wanted)) - set(chosen))
        columns = [*chosen, *needed]
    model: Any = sample
    given = {name: value for name, value in model_settings.items() if value is not None}
    made = at_hand(Sample.from_estimator(model, X, y, on=columns, rng=rng, **given))
    names = made.names[: len(chosen)] if by_name else made.names
    made, grade = _graded(made, grades, given.get("missing", "error"))
    return made, names, wanted, grade


def _graded(source: Any, grades: object, missing: str) -> tuple[Any, str | None]:
    """Rows with grades: a covariate, or a column that becomes one and is not judged on."""
    if grades is None:
        return source, None
    if isinstance(grades, str):
        place_of(
            grades,
            source.names,
            "{argument}: there is no covariate {value}; {guess}",
            argument="grades",
            hint="rows are made with it among their covariates, and on= says which of these "
            "are judged on",
        )
        return source, grades
    if isinstance(source, Scan):
        raise InputError(
            "{argument} of rows in files is the name of a covariate: name the column in on= of "
            "scan(), and those to judge on in on= of audit()",
            argument="grades",
        )
    if missing == "drop" and source.dropped:
        raise InputError(
            "{argument} is a column, but rows with missing values were dropped; make it a "
            "covariate and give its name",
            argument="grades",
        )
    read = validation.read_grades(grades, source.n)
    if missing == "error" and read.missing.any():
        raise InputError(
            "{argument}: {count} of the rows have no grade (first: {row})",
            argument="grades",
            row=int(np.argmax(read.missing)),
            count=int(read.missing.sum()),
            hint="pass {} to make them a grade of their own",
            settings=[Setting("missing", "level")],
        )
    name = read.name
    while name in source.names:
        name += "_"
    column = replace(read, name=name).with_missing_level()
    return source.with_columns((*source.columns, column)), name


def _of_sample(
    sample: Any, X: object, y: object, tasks: Tasks, on: object, settings: Mapping[str, Any]
) -> tuple[Any, tuple[str, ...], list[Task]]:
    stray = [name for name, value in settings.items() if value is not None]
    if stray or y is not None:
        raise InputError(
            "{argument} goes with a model, as in it.audit(model, X, y, ...); a Sample takes what "
            "belongs to its rows when it is made",
            argument=stray[0] if stray else "y",
        )
    if X is not None and not (isinstance(tasks, tuple) and not tasks):
        raise InputError("the tasks stand there twice, by position and by name", argument="tasks")
    wanted = as_tasks(tasks if X is None else X)
    rows = sample if is_binary_scan(sample) else at_hand(sample)
    return rows, tuple(rows.names) if on is None else known_names(rows, on), wanted


def at_hand(rows: object) -> Any:
    """Rows in memory with labels; of two classes the second against the first, with a note."""
    # A scan of several classes knows them and loads its rows compactly.
    if isinstance(rows, Scan) and rows.several:
        rows = rows.load()
    if not isinstance(rows, Rows) or not rows.several:
        return checked_sample(rows)
    if len(rows.classes) > 2:
        return rows
    first, second = rows.classes
    note = f"labels {shown(second)} count as 1, {shown(first)} as 0"
    single = rows.outcome(1)
    return single.replaced(dropped=(*single.dropped, *rows.rescaled, note))


def known_names(rows: Any, on: Any) -> tuple[str, ...]:
    """Names of covariates that the rows have, or an error with the closest one."""
    names = names_of(on)
    for name in names:
        place_of(name, rows.names, "there is no covariate {value}; {guess}", argument="name")
    return names


def refuse_binary_settings(**given: object) -> None:
    """Raise where something was asked for that exists for two classes only."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                "{argument} is for two classes: take one of them with sample.one_class(name)",
                argument=name,
            )


def _slip(first: object, X: object, y: object) -> InputError:
    """The call that was probably meant."""
    if is_model(first):
        given = " without its rows" if X is None else " without the labels"
        return InputError(
            "a model{given} cannot be audited; write it.audit(model, X, y) with rows that it was "
            "not trained on, or it.audit(model, X, y, cv=5)",
            argument="X" if X is None else "y",
            details={"given": given},
        )
    if callable(first) or any(map(is_model, (X, y))) or (_is_table(first) and X is not None):
        return InputError(
            "the first argument is {kind}, not a fitted model; write it.audit(model, X, y), or "
            "it.audit(it.Sample(y, p, X)) with probabilities p",
            argument="sample",
            value=first,
            details={"kind": a_kind(first)},
        )
    if is_frame(first) and not isinstance(first, Mapping):
        return InputError(
            "{kind} does not say which column is what; write it.audit(it.Sample.from_frame(frame, "
            "label=..., prob=..., on=[...])) with its columns {names}",
            argument="sample",
            value=first,
            details={"kind": a_kind(first), "names": listed(names_of_frame(first))},
        )
    if X is not None:
        call = "it.Sample(y, p)" if y is None else "it.Sample(y, p, X)"
        return InputError(
            "labels and probabilities make a Sample first; write it.audit({call})",
            argument="sample",
            value=first,
            details={"call": call},
        )
    try:
        checked_sample(first, "audit")
    except InputError as error:
        return error
    raise AssertionError("a sample is no slip")  # pragma: no cover


def _is_table(value: object) -> bool:
    """A frame, or an array or list of rows."""
    is_rows = isinstance(value, list) and bool(value) and isinstance(value[0], list | tuple)
    return is_frame(value) or is_rows or getattr(value, "ndim", 1) == 2
