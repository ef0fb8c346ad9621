"""Which outcome a task is about: what a text or a condition names, as a sample has it.

A sample of two classes has positives, and a number may do without a name; of several classes every
number names its own, and is read from the sample of that class against the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from itrust._core import Argument, InputError, cut, listed, printable
from itrust.data import Level, MulticlassSample, Rows, Sample, all_of, written
from itrust.tasks.arithmetic import Indicator
from itrust.tasks.expressions import LABEL, Leaf, Ratio, Task, label_apart, leaves_of
from itrust.tasks.regressions import Coefficient

LONG_TASK = 120  # characters of a task in an error


def class_tasks(tasks: Sequence[Task], sample: Rows) -> list[Task]:
    """Say of every part of some tasks which class of a sample it is about.

    Examples
    --------
    >>> import itrust as it
    >>> sample = it.Sample([0, 1, 1], [0.2, 0.7, 0.9], {"age": [30, 41, 52]})
    >>> [str(task) for task in class_tasks([it.tasks.parse("mean(age | y == 1)")], sample)]
    ['mean(age)']
    """
    names = [name for name in (sample_label(sample), LABEL) if name not in sample.names]
    own = []
    for task in tasks:
        with named_in_errors(task):
            own.append(task.mapped(lambda leaf: _of_sample(leaf, sample, names)))
    return own


def classes_of(tasks: Iterable[Task], sample: Any) -> tuple[Any, ...]:
    """Classes that some tasks name, in the order of a sample; None is its only outcome."""
    if not sample.several:
        return (None,)
    named = {leaf.label for leaf in leaves_of(tasks)}
    return tuple(name for name in sample.classes if name in named)


def outcome_of(rows: Any, name: Any) -> Any:
    """Rows of one class against the rest; None is their only outcome."""
    return rows if name is None else rows.one_class(name)


def both_classes(sample: Sample) -> MulticlassSample:
    """A sample whose label has two values, as one of two classes."""
    p = sample.predictions
    several: MulticlassSample = MulticlassSample.made(
        **sample._parts() | {"predictions": np.column_stack([1 - p, p])}
    )
    return several


@contextmanager
def named_in_errors(task: Task) -> Iterator[None]:
    """Say which task an error about a column comes from."""
    try:
        yield
    except InputError as error:
        if error.argument is not None:  # it names the task itself
            raise
        name = cut(printable(str(task), lines=False), LONG_TASK)
        raise error.at(
            problem=f"{{asked}} {{task}}: {error.problem}",
            argument="tasks",
            details={**error.details, "asked": Argument("tasks"), "task": name},
        ) from None


def sample_label(sample: Rows) -> str:
    """What the label is called: the name of its column, or y."""
    return getattr(sample, "label", None) or LABEL


def refuse_other_value(task: Task, sample: Rows) -> None:
    """Refuse a number of rows that are not positive, where only positives are read."""
    problem = (
        "{task} is about the value {value}, and this judges {positives}: make the sample with "
        "{value} as positive"
    )
    for leaf in task.leaves():
        if leaf.label is not None and not sample.several:
            told = {"task": leaf, "positives": sample.positives}
            raise InputError(problem, argument="tasks", value=leaf.label, details=told)


def _labelled(leaf: Leaf, names: Sequence[str]) -> Leaf:
    """A leaf whose condition on the label is its class; other conditions on it are refused."""
    if leaf.label is None and isinstance(leaf, Ratio) and leaf.among_positives:
        label, where = label_apart(leaf.where, names)
        if label is not None:
            leaf = Ratio(leaf.quantity, where, among_positives=True, label=label)
    asked = sorted(name for name in names if any(name in own.names for own in leaf.predicates()))
    if asked:
        problem = (
            "{task} chooses rows by their label {value} in a way that cannot be read; write "
            "{example}"
        )
        example = _example(leaf, _value_of(leaf, names))
        raise InputError(problem, argument="tasks", value=asked[0], task=leaf, example=example)
    return leaf


def _value_of(leaf: Leaf, names: Sequence[str]) -> Any:
    """Some value of the label that a condition asks for, for an example."""
    for predicate in leaf.predicates():
        for part in predicate.leaves():
            if isinstance(part, Level) and part.name in names:
                return part.level
    return "one of the classes" if leaf.label is None else leaf.label


def _example(leaf: Leaf, label: Any) -> str:
    """The form in which a number of this kind names its class."""
    if isinstance(leaf, Coefficient):
        of = 1 if leaf.of is None else leaf.of
        return f"coef({written(label)} ~ {of} ; ...)"
    if not leaf.among_positives:
        return f"prevalence({written(label)} | ...)"
    assert isinstance(leaf, Ratio)
    kind = "share" if isinstance(leaf.quantity, Indicator) else "mean"
    return f"{kind}({leaf.quantity} | {LABEL} == {written(label)} and ...)"


def _of_covariate(leaf: Leaf, sample: Rows) -> Leaf:
    """A leaf whose y is no class, because the sample has a covariate of that name."""
    is_read = isinstance(leaf, Ratio) and leaf.among_positives and leaf.label is not None
    if not is_read or LABEL not in sample.names:
        return leaf
    assert isinstance(leaf, Ratio)
    where = all_of([Level(LABEL, leaf.label), leaf.where])
    return Ratio(leaf.quantity, where, among_positives=True)


def _of_sample(leaf: Leaf, sample: Rows, names: Sequence[str]) -> Leaf:
    given, leaf = leaf, _labelled(_of_covariate(leaf, sample), names)
    if leaf.label is None and not sample.several:
        return leaf
    classes = listed(sample.classes)
    if leaf.label is None:
        leaf = given  # a class that was given as such
    if leaf.label is None:
        problem = (
            "{task} does not say which class it is about; the classes are {classes}: write "
            "{example}"
        )
        example = str(leaf.with_label(sample.classes[0]))
        raise InputError(
            problem, argument="tasks", value=leaf, task=leaf, classes=classes, example=example
        )
    place = _matching(leaf.label, sample.classes)
    if place is None:
        problem = "there is no class {value} in {task}; the classes are {classes}"
        if not sample.several:
            problem = (
                "{task} is about the value {value}, which the label does not have; it has {classes}"
            )
            classes = listed([_plain(value) for value in sample.classes if value is not None])
        value = _plain(leaf.label)
        raise InputError(problem, argument="tasks", value=value, task=leaf, classes=classes)
    if place == 1 and not sample.several:
        return leaf.bare
    name = sample.classes[place]
    return leaf if leaf.label is name else leaf.with_label(name)


def _matching(label: Any, classes: Sequence[Any]) -> int | None:
    """Where a class stands: by its value, or by its text."""
    known = [(k, name) for k, name in enumerate(classes) if name is not None]
    text = getattr(label, "text", str(_plain(label)))
    by_value = [k for k, name in known if name == label]
    return next(iter(by_value or [k for k, name in known if str(name) == text]), None)


def _plain(label: Any) -> Any:
    """A number as people write it."""
    whole = isinstance(label, float) and label.is_integer()
    return int(label) if whole else label
