"""Whether `audit` and `compare` are called with more than two classes, and what that leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from itrust._core import InputError, Rng, did_you_mean, shown
from itrust.bias import names_of
from itrust.data import MulticlassSample, MulticlassScan, Sample, is_model
from itrust.tasks import Task, as_tasks


class ClassesCommission(NamedTuple):
    """What is to be audited, where labels have classes."""

    sample: MulticlassSample
    names: tuple[str, ...]
    tasks: list[Task]


def of_two(sample: MulticlassSample) -> Sample:
    """The binary sample of two classes, the second against the first, with a note that says so."""
    own = sample.one_class(sample.classes[1])
    first, second = sample.classes
    note = f"labels {shown(second)} count as 1, {shown(first)} as 0"
    made: Sample = own.replaced(dropped=(*own.dropped, *sample.rescaled, note))
    return made


def as_classes(sample: object) -> MulticlassSample | None:
    """A sample of classes, read if it stands in files; None for anything else."""
    if isinstance(sample, MulticlassSample):
        return sample
    # A scan of several classes knows them and loads its rows compactly.
    if isinstance(sample, MulticlassScan):
        loaded: MulticlassSample = sample.load()
        return loaded
    return None


def model_of_classes(model: object, X: object, y: object, pos_label: object) -> bool:
    """Whether a model with its rows has more than two classes, none of which was singled out."""
    if not is_model(model) or X is None or y is None or pos_label is not None:
        return False
    known = getattr(model, "classes_", None)
    if known is not None:
        return len(known) > 2
    if isinstance(y, str):
        return False
    try:
        labels = np.asarray(y).ravel()
        return bool(np.unique(labels[labels == labels]).size > 2)
    except (TypeError, ValueError):
        return False


def classes_asked(
    sample: object,
    X: object,
    y: object,
    tasks: Any,
    on: Any,
    model_settings: Mapping[str, Any],
    rng: Rng,
) -> ClassesCommission | None:
    """Tell a sample, a scan or a model of classes from everything else."""
    found = as_classes(sample)
    if found is None:
        if not model_of_classes(sample, X, y, model_settings.get("pos_label")):
            return None
        return _of_model(sample, X, y, tasks, on, model_settings, rng)
    stray = [name for name, value in model_settings.items() if value is not None]
    if stray or y is not None:
        raise InputError(
            "{argument} goes with a model, as in it.audit(model, X, y, ...); a sample takes what "
            "belongs to its rows when it is made",
            argument=stray[0] if stray else "y",
        )
    if X is not None and not (isinstance(tasks, tuple) and not tasks):
        raise InputError("the tasks stand there twice, by position and by name", argument="tasks")
    names = tuple(found.names) if on is None else known_names(found, on)
    return ClassesCommission(found, names, as_tasks(tasks if X is None else X))


def known_names(sample: MulticlassSample, on: Any) -> tuple[str, ...]:
    """Names of covariates that the sample has, or an error with the closest one."""
    names = names_of(on)
    for name in names:
        if name not in sample.names:
            raise InputError(
                "there is no covariate {value}; {guess}",
                argument="name",
                value=name,
                details={"guess": did_you_mean(name, sample.names)},
            )
    return names


def _of_model(
    model: object,
    X: object,
    y: object,
    tasks: Any,
    on: Any,
    model_settings: Mapping[str, Any],
    rng: Rng,
) -> ClassesCommission:
    own: Any = model
    wanted = as_tasks(tasks)
    columns, by_name = on, isinstance(on, str | int | list | tuple)
    chosen: list[Any] = list(dict.fromkeys(on)) if isinstance(on, list | tuple) else [on]
    if by_name:
        named = set[str]().union(*(task.names for task in wanted))
        columns = [*chosen, *sorted(named - set(chosen))]
    given = {name: value for name, value in model_settings.items() if value is not None}
    made = MulticlassSample.from_estimator(own, X, y, on=columns, rng=rng, **given)
    names = made.names[: len(chosen)] if by_name else made.names
    return ClassesCommission(made, tuple(names), wanted)


def refuse_binary_settings(**given: object) -> None:
    """Raise where something was asked for that exists for two classes only."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                "{argument} is for two classes: take one of them with sample.one_class(name)",
                argument=name,
            )
