"""Tasks of several classes on a population: one class as positives, several by their joint law."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import (
    FloatArray,
    InputError,
    Rng,
    Setting,
    as_seed,
    checked_alpha,
    checked_choice,
    listed,
)
from itrust.balance import PREDICTION, Resemblance, shares_of
from itrust.data import MulticlassSample
from itrust.tasks.bias import checked_class_tasks, reference_notes
from itrust.tasks.classes import ClassSamples
from itrust.tasks.collected import TaskEstimates, collected
from itrust.tasks.estimated import TaskEstimate
from itrust.tasks.expressions import Leaf, Task
from itrust.tasks.joint import (
    ClassRows,
    JointFit,
    JointLaw,
    bare,
    class_bounds,
    few_class_labels,
    joined,
    joint_task,
    leaves_of,
)
from itrust.tasks.population import (
    SUPPORT,
    EstimatePlace,
    EstimateSetting,
    Refusals,
    Ways,
    assembled,
    estimated_at,
    notes_of,
    prepared,
    read_selection,
    refuse_no_value,
    refuse_silence,
    some_rows_note,
)
from itrust.tasks.powering import OneOutcome, powered_leaves, spread
from itrust.tasks.regressions import references_of, refuse_other_levels
from itrust.tasks.transported import Carried, TransportedValue
from itrust.tasks.uncertainty import FEW_NOTE, LabelLaw, kish

MIXED_NOTE = "there is no recalibrated estimate: the number is of several classes"


def class_estimates(
    tasks: Sequence[Task],
    population: Any,
    labelled: MulticlassSample,
    alpha: float,
    selection: object,
    support: str,
    rng: Rng,
    refused: Refusals,
) -> TaskEstimates:
    """Estimate tasks of several classes on a population: see `estimate_tasks`."""
    checked_alpha(alpha)
    checked_choice(support, "support", SUPPORT)
    seed, own = as_seed(rng), dict[int, Task]()
    for k, task in enumerate(tasks):
        with refused.of(k):
            (own[k],) = checked_class_tasks(labelled, [task])
    refused.raise_if_all()
    _refuse_other_classes(population, labelled)
    samples = ClassSamples(labelled)
    known = read_selection(selection, samples.rows)
    found: dict[int, TaskEstimate] = {}
    places: dict[Any, EstimatePlace] = {}
    if support == "exclude":
        for k, task in own.items():
            with refused.of(k):
                _refuse_exclusion(task, samples)
    for name in samples.used(list(own.values())):
        part = population.one_class(name)
        several = {k: t for k, t in refused.left(own).items() if name in samples.used([t])}
        alone = {k: bare(task) for k, task in several.items() if samples.used([task]) == (name,)}
        stripped = {k: alone.get(k) or bare(_only(task, name)) for k, task in several.items()}
        if not stripped:
            continue
        try:
            place = prepared(stripped, part, samples.one(name), known, support, seed, refused)
        except InputError:
            if not refused.are_kept or refused.left(stripped):
                raise
            continue  # no task of this class is left
        place = replace(place, resemblance=_of_class(place.resemblance, name))
        found |= estimated_at(place, alone, part, support, alpha, refused)
        places[name] = place
    for k, task in refused.left(own).items():
        if k not in found:
            names = samples.used([task])
            with refused.of(k):
                mixed = _Mixed(task, {name: places[name] for name in names}, samples)
                found[k] = mixed.estimate(support, alpha, notes_of(population))
    refused.raise_if_all()
    if not places:
        return collected([], samples.rows, None, seed)  # type: ignore[arg-type]
    given = sorted(found)
    asked = [replace(found[k], task=own[k]) for k in given]
    first = next(iter(places.values()))
    kept = collected(
        asked, first.labelled, first.everyone, seed, lambda leaf: samples.one(leaf.label).y > 0
    )
    told = tuple(replace(one, task=tasks[k]) for one, k in zip(kept.estimates, given, strict=True))
    return replace(kept, estimates=told, refused=refused.results())


def _of_class(found: Resemblance, name: Any) -> Resemblance:
    """What was compared, with the prediction called that of its class."""
    own = f"P({name})"

    def called(one: str | None) -> str | None:
        return own if one == PREDICTION else one

    told = tuple(
        replace(one, name=own if one.name == PREDICTION else one.name, other=called(one.other))
        for one in found.compared
    )
    return replace(found, compared=told)


def _refuse_other_classes(population: Any, labelled: MulticlassSample) -> None:
    if not getattr(population, "several", False):
        raise InputError(
            "labelled rows have the classes {classes}, and {argument} has one column of "
            "probabilities; give it those of every class",
            argument="population",
            value=population,
            details={"classes": listed(labelled.classes)},
        )
    if set(population.classes) != set(labelled.classes):
        raise InputError(
            "the population has the classes {theirs} and the labelled rows {ours}; they must be "
            "the same",
            argument="population",
            details={
                "theirs": listed(population.classes),
                "ours": listed(labelled.classes),
            },
        )


def _refuse_exclusion(task: Task, samples: ClassSamples) -> None:
    if len(samples.used([task])) > 1:
        raise InputError(
            "{task} is of several classes, and rows that are unlike every labelled row cannot be "
            "left out for all of them at once; estimate it with {setting}, or one class at a time",
            argument="support",
            value="exclude",
            details={"task": task, "setting": Setting("support", "refuse")},
        )


def _only(task: Task, name: Any) -> Task:
    """The leaves of one class, added up: what is read and checked of that class."""
    first, *others = [leaf for leaf in leaves_of(task) if leaf.label == name]
    total: Task = first
    for leaf in others:
        total = total + leaf
    return total


@dataclass(frozen=True, eq=False)
class _Mixed:
    """A task of several classes, with every class against the rest compared already."""

    task: Task
    places: Mapping[Any, EstimatePlace]
    whole: ClassSamples

    @property
    def names(self) -> list[Any]:
        return list(self.places)

    @cached_property
    def leaves(self) -> list[Leaf]:
        return leaves_of(self.task)

    @cached_property
    def samples(self) -> ClassSamples:
        """Labelled rows with the covariates that the population shares."""
        made = {name: place.labelled for name, place in self.places.items()}
        return ClassSamples(self.whole.source, made)

    def _column(self, leaf: Leaf) -> int:
        return self.names.index(leaf.label)

    def _own(self, name: Any) -> list[Leaf]:
        return [leaf.bare for leaf in self.leaves if leaf.label == name]

    @property
    def is_all(self) -> bool:
        return len(self.names) == len(self.whole.classes)

    def estimate(self, support: str, alpha: float, notes: Sequence[str]) -> TaskEstimate:
        """All ways but the recalibrated one."""
        task, first = self.task, self.places[self.names[0]]
        told = joint_task(task, self.samples)
        refuse_silence(task, told)
        out = ClassRows({name: place.out for name, place in self.places.items()})
        for leaf in self.leaves:
            refuse_other_levels(leaf.bare, told.rows, out.of(leaf))
        there = JointFit.of(task, self.leaves, out)
        refuse_no_value(task, there.value)
        sampling = spread(there.linear.influence)

        def outcome(leaf: Leaf) -> OneOutcome:
            column = self._column(leaf)
            q = told.law.q[:, column]
            return OneOutcome(self.places[leaf.label].labelled, out.of(leaf), q, column)

        share = first.labelled.n / len(first.rows.points) if first.is_part else 0.0
        powered = powered_leaves(task, told, outcome, there.value, sampling, share)
        said = [*first.notes, *notes, *first.labelled.notes, MIXED_NOTE]
        said += reference_notes(references_of(task, first.labelled))
        if few_class_labels(task, self.samples):
            said.append(FEW_NOTE)
        if not first.rows.is_all:
            said.append(some_rows_note(task, first.rows))
        ways = Ways(there.value, sampling, powered, None, self._transported())
        bounds = class_bounds(task, told.rows, out.of(self.leaves[0]))
        gaps = [place.gaps(bare(_only(task, name))) for name, place in self.places.items()]
        looked = [place.resemblance for place in self.places.values()]
        setting = EstimateSetting(
            labelled=first.labelled,
            rows=first.rows,
            everyone=first.everyone,
            transport=first.transport,
            resemblance=min(looked, key=lambda one: one.pvalue),
            gaps=max(gaps, key=shares_of),
            support=support,
            alpha=alpha,
            is_part=first.is_part,
        )
        return assembled(task, told, setting, ways, bounds, said)

    def _transported(self) -> TransportedValue | None:
        """Every leaf by the weights and corrections of its class, joined by the joint law."""
        weighed = {
            name: place.transport.weights(self._own(name)) for name, place in self.places.items()
        }
        weights = {name: own.of_rows for name, own in weighed.items()}
        parts: list[Carried] = []
        for leaf in self.leaves:
            transport, w = self.places[leaf.label].transport, weights[leaf.label]
            part = transport.carried(leaf.bare, w * transport.residuals)
            if part is None:
                return None
            parts.append(part)
        value, slopes = joined(self.task, self.leaves, [part.value for part in parts])
        if not math.isfinite(value) or not np.isfinite(slopes).all():
            return None
        first = self.places[self.names[0]]
        lean = np.zeros((first.labelled.n, len(self.names)))
        for leaf, slope, part in zip(self.leaves, slopes, parts, strict=True):
            lean[:, self._column(leaf)] += slope * part.lean * weights[leaf.label]
        left = np.column_stack([place.transport.residuals for place in self.places.values()])
        error = self._noise(lean, left, weights[self.names[0]])
        sampling = spread(slopes @ np.array([part.shares for part in parts]))
        error = error.plus(sampling)
        for k, name in enumerate(self.names):
            moved = np.divide(
                lean[:, k], weights[name], out=np.zeros(lean.shape[0]), where=weights[name] > 0
            )
            error = error.plus(weighed[name].left_over(moved * left[:, k]))
        balances = [own.balance for own in weighed.values()]
        labels = [
            kish(weights[name] * held)
            for name, place in self.places.items()
            for held in (place.labelled.y, 1 - place.labelled.y)
        ]
        return TransportedValue(
            value=value,
            error=replace(error, units=error.freedom + 1),
            effective=min(balance.effective for balance in balances),
            trimmed=max(balance.trimmed for balance in balances),
            unbalanced=max(balance.unbalanced for balance in balances),
            worst=max(balance.worst for balance in balances),
            labels=min(labels),
            smoothed=math.nan,
        )

    def _noise(self, lean: FloatArray, left: FloatArray, w: FloatArray) -> Any:
        """What labels of the rows may have done; classes of a row go together."""
        laws = [
            LabelLaw.of(place.labelled, self._own(name), place.transport.q.here)
            for name, place in self.places.items()
        ]
        law = JointLaw.joined(laws, is_all=self.is_all)
        shares = np.einsum("nc,nc->n", lean, left)
        if self.places[self.names[0]].transport.selection is not None:
            shares = shares - w * float(shares.sum())
        return law.uncertainty(shares, np.zeros(w.size), lean)
