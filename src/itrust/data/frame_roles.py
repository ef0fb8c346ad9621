"""Columns of a frame by their roles: labels, probabilities of one class or more, and the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from itrust._core import Argument, InputError, Subject
from itrust.data.design_intake import refuse_odd_units
from itrust.data.intake import (
    MissingRule,
    checked_missing,
    column_names_known,
    named_columns,
    refuse_among_covariates,
)
from itrust.data.kinds import Kinds
from itrust.data.predicates import Predicate
from itrust.data.selection import RowSelection, Selected
from itrust.data.units import UnitColumn, replicate_columns, unit_columns


@dataclass(frozen=True, eq=False)
class FrameRows:
    """What a sample is made of, read from the columns of a frame."""

    columns: dict[str, Any]
    named: dict[str, str]
    label: str
    prob: tuple[str, ...]
    names: tuple[str, ...]
    drawn: dict[str, Any]
    used: frozenset[str]
    kinds: Kinds
    selected: Selected

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done with the rows."""
        return self.selected.notes

    @property
    def settings(self) -> dict[str, Any]:
        """What the intake needs to know beside labels, probabilities, covariates and weights."""
        others = {k: column for k, column in self.columns.items() if k not in self.used}
        return {
            **{role: values for role, values in self.drawn.items() if role != "weights"},
            "others": others,
            "label": self.label,
            "kinds": self.kinds,
            "as_drawn": self.selected.rows is None,
        }

    @property
    def covariates(self) -> dict[str, Any]:
        """The covariates by name."""
        return {name: self.columns[name] for name in self.names}

    @property
    def weights(self) -> dict[str, Any]:
        """The weights, where there are any."""
        return {role: values for role, values in self.drawn.items() if role == "weights"}

    @contextmanager
    def told(self) -> Iterator[None]:
        """Give errors the names of columns, and rows their numbers in the frame."""
        with self.selected.numbered(), column_names_known(self.named):
            yield


def read_frame(
    frame: object,
    *,
    label: str,
    prob: Callable[[list[str]], Sequence[str]] | str,
    on: str | Sequence[str],
    weights: str | None,
    cluster: str | Sequence[str] | None,
    strata: str | Sequence[str] | None,
    replicate_weights: str | Sequence[str] | None,
    missing: MissingRule,
    kinds: Kinds,
    na_values: object,
    where: str | Predicate | None,
) -> FrameRows:
    """Find the columns that a user named, and the rows that count."""
    roles = {"label": label, "prob": prob if isinstance(prob, str) else None, "weights": weights}
    columns, named, chosen = named_columns(frame, roles, on)
    names = list(columns)
    probs = [prob] if isinstance(prob, str) else list(prob(names))
    units = {
        "cluster": unit_columns(cluster, names, "cluster"),
        "strata": unit_columns(strata, names, "strata"),
    }
    taken = [("label", named["label"]), *(("prob", name) for name in probs)]
    taken += [("weights", named["weights"])] if "weights" in named else []
    replicates = replicate_columns(replicate_weights, names, taken)
    taken += [(role, unit.column) for role, found in units.items() for unit in found]
    _refuse_two_roles(taken, chosen, replicates)
    kinds.among(names)
    selection = RowSelection.of(na_values, where, checked_missing(missing), kinds)
    subjects = {
        **{name: Subject("x", name) for name in chosen},
        **{name: Subject("replicate_weights", name) for name in replicates},
        **{name: Subject(role) for role, name in taken},
    }
    with column_names_known(named):
        selected = selection.applied(columns, subjects, probs[0] if len(probs) == 1 else "")
    if selected.rows is not None:
        _refuse_odd_units(columns, units, selection.na_values)
    columns = selected.columns
    drawn: dict[str, Any] = {}
    if "weights" in named:
        drawn["weights"] = columns[named["weights"]]
    if replicates:
        drawn["replicate_weights"] = {name: columns[name] for name in replicates}
    with selected.numbered(), column_names_known(named):
        drawn |= _units(units, columns, probs)
    used = frozenset([*(name for _, name in taken), *chosen, *replicates])
    return FrameRows(
        columns, named, named["label"], tuple(probs), tuple(chosen), drawn, used, kinds, selected
    )


def _refuse_two_roles(
    taken: Sequence[tuple[str, str]], chosen: Sequence[str], replicates: Sequence[str]
) -> None:
    """Raise if a column has two roles, of which one is its own."""
    for role in ("label", "prob", "weights"):
        for name in [own for r, own in taken if r == role]:
            others = [r for r, other in taken if r != role and other == name]
            if others:
                raise InputError(
                    "{value} cannot be {argument} and {other} at once",
                    argument=role,
                    value=name,
                    details={"other": Argument(others[0])},
                )
            if role != "weights":
                refuse_among_covariates(role, name, chosen)
    for name in replicates:
        refuse_among_covariates("replicate_weights", name, chosen)


def _units(
    units: Mapping[str, Sequence[UnitColumn]], columns: Mapping[str, Any], probs: Sequence[str]
) -> dict[str, dict[str, object]]:
    """Clusters and strata of the rows."""
    return {
        role: {
            unit.text: unit.values(columns, role)
            for unit in (settled_unit(unit, columns, role, probs) for unit in found)
        }
        for role, found in units.items()
        if found
    }


def settled_unit(
    unit: UnitColumn, columns: Mapping[str, Any], role: str, probs: Sequence[str]
) -> UnitColumn:
    """Blocks of time as long as the predictions of any class need them."""
    looked_at = probs[1:] if len(probs) == 2 else probs
    found = [unit.settled(columns, role, columns[name]) for name in looked_at]
    return max(found, key=lambda own: own.length if isinstance(own.length, int) else 0)


def _refuse_odd_units(
    columns: Mapping[str, object],
    units: Mapping[str, Sequence[UnitColumn]],
    na_values: tuple[Any, ...],
) -> None:
    """Raise where clusters and strata allow no variance before rows are left out.

    Blocks of time are known after that only, and are passed over.
    """
    drawn: dict[str, object] = {}
    for role, found in units.items():
        if found and all(unit.length is None for unit in found):
            subjects = {unit.column: Subject(role, unit.column) for unit in found}
            own = {name: columns[name] for name in subjects}
            blanked = RowSelection(na_values).applied(own, subjects, "").columns
            drawn[role] = {unit.text: blanked[unit.column] for unit in found}
    if drawn:
        refuse_odd_units(drawn)
