"""Which class a task is about: what a text or a condition names, as a sample has it.

A sample of two classes has positives, and a number may do without a name; of several classes every
number names its own, and is read from the sample of that class against the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from itrust._core import FloatArray, InputError, IntArray, listed
from itrust.data import Level, MulticlassSample, Sample, all_of, written
from itrust.tasks.expressions import LABEL, Leaf, Ratio, Task, label_apart
from itrust.tasks.quantities import Indicator
from itrust.tasks.regressions import Coefficient


class SeveralClasses(Protocol):
    """Rows whose labels have several classes, as `MulticlassSample` has them."""

    @property
    def classes(self) -> tuple[Any, ...]:
        """Names of the classes."""

    @property
    def p(self) -> FloatArray:
        """Their probabilities, (n, K)."""

    @property
    def codes(self) -> IntArray:
        """Which of them each row has, (n,)."""

    def one_class(self, name: Any) -> Sample:
        """Rows with one class against the rest."""


@dataclass(frozen=True, eq=False)
class ClassSamples:
    """Every class against the rest, each made once; rows and design are the same in all."""

    source: SeveralClasses
    _made: dict[Any, Sample] = field(default_factory=dict, repr=False)

    @property
    def classes(self) -> tuple[Any, ...]:
        """Names of the classes, in order."""
        return self.source.classes

    @property
    def rows(self) -> Sample:
        """The rows with the first class against the rest, where only covariates count."""
        return next(iter(self._made.values()), None) or self.one(self.classes[0])

    def one(self, name: Any) -> Sample:
        """The rows with one class against the rest."""
        if name not in self._made:
            self._made[name] = self.source.one_class(name)
        return self._made[name]

    def used(self, tasks: Iterable[Task]) -> tuple[Any, ...]:
        """Classes that some tasks name, in the order of the sample."""
        named = {leaf.label for task in tasks for leaf in task.leaves()}
        return tuple(name for name in self.classes if name in named)

    def codes_of(self, names: Sequence[Any]) -> list[int]:
        """Where some classes stand."""
        return [self.classes.index(name) for name in names]


@dataclass(frozen=True, eq=False)
class TwoClasses:
    """A sample whose label has two values, as one of two classes."""

    sample: Sample

    @property
    def classes(self) -> tuple[Any, Any]:
        """The values of the label that count as 0 and as 1."""
        return self.sample.values

    @property
    def p(self) -> FloatArray:
        """Probabilities of both, (n, 2)."""
        return np.column_stack([1 - self.sample.p, self.sample.p])

    @property
    def codes(self) -> IntArray:
        """Which of both each row has, (n,)."""
        return self.sample.y.astype(np.int64)

    def one_class(self, name: Any) -> Sample:
        """The sample itself, or the one whose positives are the other value."""
        own = self.sample
        if name == own.values[1]:
            return own
        return own.replaced(
            codes=1 - own.codes, predictions=1 - own.predictions, classes=own.classes[::-1]
        )


def class_task(task: Task, sample: Sample | MulticlassSample) -> Task:
    """Say which class of a sample every part of a task is about.

    Examples
    --------
    >>> import itrust as it
    >>> sample = it.Sample([0, 1, 1], [0.2, 0.7, 0.9], {"age": [30, 41, 52]})
    >>> str(class_task(it.tasks.parse("mean(age | y == 1)"), sample))
    'mean(age)'
    """
    names = [name for name in (sample_label(sample), LABEL) if name not in sample.names]
    if isinstance(sample, MulticlassSample):
        return task.mapped(lambda leaf: _of_several(leaf, sample, names))
    return task.mapped(lambda leaf: _of_two(leaf, sample, names))


def sample_label(sample: Sample | MulticlassSample) -> str:
    """What the label is called: the name of its column, or y."""
    return getattr(sample, "label", None) or LABEL


def refuse_other_value(task: Task, sample: Sample) -> None:
    """Refuse a number of rows that are not positive, where only positives are read."""
    for leaf in task.leaves():
        if leaf.label is not None:
            raise InputError(
                "{task} is about the value {value}, and this judges {positives}: make the sample "
                "with {value} as positive",
                argument="tasks",
                value=leaf.label,
                details={"task": leaf, "positives": sample.positives},
            )


def _labelled(leaf: Leaf, names: Sequence[str]) -> Leaf:
    """A leaf whose condition on the label is its class; other conditions on it are refused."""
    if leaf.label is None and isinstance(leaf, Ratio) and leaf.among_positives:
        label, where = label_apart(leaf.where, names)
        if label is not None:
            leaf = Ratio(leaf.quantity, where, among_positives=True, label=label)
    asked = sorted(name for name in names if any(name in own.names for own in leaf.predicates()))
    if asked:
        raise InputError(
            "{task} chooses rows by their label {value} in a way that cannot be read; write "
            "{example}",
            argument="tasks",
            value=asked[0],
            details={"task": leaf, "example": _example(leaf, _value_of(leaf, names))},
        )
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


def _of_covariate(leaf: Leaf, sample: Sample | MulticlassSample) -> Leaf:
    """A leaf whose y is no class, because the sample has a covariate of that name."""
    is_read = isinstance(leaf, Ratio) and leaf.among_positives and leaf.label is not None
    if not is_read or LABEL not in sample.names:
        return leaf
    assert isinstance(leaf, Ratio)
    where = all_of([Level(LABEL, leaf.label), leaf.where])
    return Ratio(leaf.quantity, where, among_positives=True)


def _of_several(leaf: Leaf, sample: MulticlassSample, names: Sequence[str]) -> Leaf:
    given, leaf = leaf, _labelled(_of_covariate(leaf, sample), names)
    if leaf.label is None:
        leaf = given  # a class that was given as such
    if leaf.label is None:
        raise InputError(
            "{task} does not say which class it is about; the classes are {classes}: write "
            "{example}",
            argument="tasks",
            value=leaf,
            details={
                "task": leaf,
                "classes": listed(sample.classes),
                "example": str(leaf.with_label(sample.classes[0])),
            },
        )
    found = _matching(leaf.label, sample.classes)
    if found is None:
        raise InputError(
            "there is no class {value} in {task}; the classes are {classes}",
            argument="tasks",
            value=_plain(leaf.label),
            details={"task": leaf, "classes": listed(sample.classes)},
        )
    name = sample.classes[found]
    return leaf if leaf.label is name else leaf.with_label(name)


def _of_two(leaf: Leaf, sample: Sample, names: Sequence[str]) -> Leaf:
    leaf = _labelled(_of_covariate(leaf, sample), names)
    if leaf.label is None:
        return leaf
    found = _matching(leaf.label, sample.values)
    if found is None:
        known = [_plain(value) for value in sample.values if value is not None]
        raise InputError(
            "{task} is about the value {value}, which the label does not have; it has {values}",
            argument="tasks",
            value=_plain(leaf.label),
            details={"task": leaf, "values": listed(known)},
        )
    return leaf.bare if found == 1 else leaf.with_label(sample.values[0])


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
