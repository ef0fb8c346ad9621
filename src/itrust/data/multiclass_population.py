"""`MulticlassPopulation`: probabilities of several classes for rows without labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from itrust._core import Code, FloatArray, InputError, Subject, listed
from itrust.data.class_intake import (
    class_columns,
    class_position,
    read_matrix,
    rounding_note,
    rows_that_sum_to_1,
)
from itrust.data.column import Column
from itrust.data.design_intake import read_design
from itrust.data.encoding import same_length
from itrust.data.intake import (
    PROB,
    MissingRule,
    checked_missing,
    column_names_known,
    lacking_nothing,
    named_columns,
    read_covariates,
    refuse_among_covariates,
    same_index,
    settle_missing,
)
from itrust.data.kinds import Kinds
from itrust.data.population import Population
from itrust.data.predicates import Predicate
from itrust.data.rows import Points, Predicted
from itrust.data.selection import RowSelection


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MulticlassPopulation(Predicted):
    """Probabilities of K classes and covariates of rows whose labels are not known.

    `Population(p, x, classes=[...])` gives one, too.

    Parameters
    ----------
    p : (n, K) array, mapping or frame
        The predicted probabilities, one column for each class, as for `MulticlassSample`.
    x : frame, mapping, array or list of rows, optional
        The covariates, in any form that `Sample` takes. Default: there are none.
    classes : sequence, optional
        The classes that the columns of p belong to, in order. Needed for an array; of a mapping
        or frame, the order to take its columns in.
    weights : column of n weights, optional
        As for `Population`. Default: every row counts alike.
    names : sequence of str, optional
        Names of the covariates. Default: those of a frame or mapping; x1, x2, ... for arrays.
    missing : {"error", "level", "drop"}
        What to do with missing values, as for `Population`.
    categories, numbers : str or sequence of str
        Covariates that are codes, or quantities, as for `Sample`.
    value_labels : mapping of str to mapping, optional
        What codes mean, by covariate, as for `Sample`.

    Attributes
    ----------
    p : (n, K) array of float
        The predicted probabilities; rows sum to 1.
    classes : tuple
        Names of the classes, in the order of the columns of p.
    columns : tuple of Column
        The covariates, encoded.
    weights : (n,) array of float or None
        The weights as they were given; None if there were none.
    dropped : tuple of str
        If rows were left out, notes on how many, and why.
    rescaled : tuple of str
        A note, if rows summed to 1 only up to rounding.

    Examples
    --------
    >>> import itrust as it
    >>> people = it.Population([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]], {"age": [30, 41]},
    ...                        classes=["win", "tie", "loss"])
    >>> people
    <MulticlassPopulation: 2 rows, classes 'win', 'tie', 'loss', covariates 'age'>
    >>> people.one_class("tie").p
    array([0.3, 0.2])
    """

    p: FloatArray
    classes: tuple[Any, ...]
    columns: tuple[Column, ...]
    weights: FloatArray | None
    dropped: tuple[str, ...]
    rescaled: tuple[str, ...]

    def __init__(
        self,
        p: object,
        x: object = None,
        classes: Sequence[Any] | None = None,
        *,
        weights: object = None,
        names: Sequence[str] | None = None,
        missing: MissingRule = "error",
        categories: str | Sequence[str] = (),
        numbers: str | Sequence[str] = (),
        value_labels: Mapping[str, Mapping[Any, str]] | None = None,
    ) -> None:
        checked_missing(missing)
        kinds = Kinds.of(categories, numbers, value_labels)
        several = {"p": p, "weights": weights, "x": x}
        same_index(
            pair
            for name, value in several.items()
            for pair in (value.items() if isinstance(value, Mapping) else [(name, value)])
        )
        named, matrix = read_matrix(p, classes)
        if named is None:
            raise InputError(
                "{argument} has {count} columns without names",
                count=matrix.shape[1],
                hint="say which classes they belong to with {}, in the order of the columns",
                settings=[Code("classes=[...]", "names, such as win=p1,tie=pt")],
                **PROB.fields,
            )
        covariates = read_covariates(x, names, kinds=kinds)
        kinds.among([column.name for column in covariates])
        beside: dict[str, Any] = {"prob": matrix, "weights": weights}
        kept = lacking_nothing(beside, covariates) if missing == "drop" else None
        if kept is not None:
            beside = {**dict.fromkeys(beside), **kept[1]}
            covariates = tuple(column.take(kept[0].rows) for column in covariates)
        with nullcontext() if kept is None else kept[0].numbered():
            n = len(beside["prob"])
            for column in covariates:
                same_length(Subject("x", column.name), len(column), n, "probabilities")
            checked, off = rows_that_sum_to_1(np.asfortranarray(beside["prob"]), named)
            design = read_design(n, weights=beside["weights"])
        self._fill(
            p=checked,
            classes=named,
            weights=design.weights,
            dropped=() if kept is None else (kept[0].note,),
            rescaled=rounding_note(*off),
            **settle_missing({"columns": covariates}, missing),
        )

    def _fill(self, **parts: Any) -> None:
        if not len(parts["p"]):
            raise InputError("a population needs at least 1 row; this one has none", count=0)
        self._freeze(**parts)

    @classmethod
    def of_parts(cls, **parts: Any) -> Self:
        """Make a population of rows of files that were read and checked already.

        Parameters
        ----------
        **parts : object
            The attributes.

        Returns
        -------
        MulticlassPopulation
            The same rows.
        """
        made = object.__new__(cls)
        made._fill(**parts)
        return made

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        prob: str | Mapping[Any, str] | Sequence[str],
        on: str | Sequence[str] = (),
        weights: str | None = None,
        missing: MissingRule = "error",
        categories: str | Sequence[str] = (),
        numbers: str | Sequence[str] = (),
        value_labels: Mapping[str, Mapping[Any, str]] | None = None,
        na_values: object = None,
        where: str | Predicate | None = None,
    ) -> Self:
        """Take columns of a frame as a population, one of probabilities for every class.

        Parameters
        ----------
        frame : frame, relation or mapping
            As for `Population.from_frame`.
        prob : mapping, sequence of str, or str
            From each class to its column; columns that are called as their classes; or a pattern
            such as "p_*", whose star stands for the class.
        on : str or sequence of str
            Names of the columns that are covariates; none by default.
        weights : str, optional
            The column of weights. Default: every row counts alike.
        missing : {"error", "level", "drop"}
            As for the class: "error" by default.
        categories, numbers : str or sequence of str
            Columns that are codes, or quantities, as for `Sample`.
        value_labels : mapping of str to mapping, optional
            What codes mean, by column, as for `Sample`.
        na_values : number, str, or list of these, optional
            Codes that stand for a missing value, as for `Sample.from_frame`.
        where : str or Predicate, optional
            Which rows count, as for `Sample.from_frame`.

        Returns
        -------
        MulticlassPopulation
            The rows of the frame that count.

        Examples
        --------
        >>> import itrust as it
        >>> it.Population.from_frame({"p_a": [0.2, 0.7], "p_b": [0.8, 0.3]}, prob="p_*").classes
        ('a', 'b')
        """
        columns, named, chosen = named_columns(frame, {"weights": weights}, on)
        classes = class_columns(list(columns), prob)
        for name in classes.values():
            refuse_among_covariates("prob", name, chosen)
        kinds = Kinds.of(categories, numbers, value_labels)
        kinds.among(list(columns))
        selection = RowSelection.of(na_values, where, missing, kinds)
        roles = {
            **{name: Subject("x", name) for name in chosen},
            **dict.fromkeys(classes.values(), PROB),
            **{name: Subject(role) for role, name in named.items()},
        }
        with column_names_known(named):
            selected = selection.applied(columns, roles, "")
        columns = selected.columns
        with selected.numbered(), column_names_known(named):
            made = cls(
                {name: columns[column] for name, column in classes.items()},
                {name: columns[name] for name in chosen},
                weights=columns[named["weights"]] if weights is not None else None,
                missing=missing,
                **kinds.of_columns(chosen),
            )
        object.__setattr__(made, "dropped", (*selected.notes, *made.dropped))
        return made

    @cached_property
    def points(self) -> Points:
        """The covariates as kernels see them; there is no one prediction, so p is NaN."""
        return Points(np.broadcast_to(np.nan, self.n), self.columns)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done at the door."""
        return (*self.dropped, *self.rescaled)

    @cached_property
    def _binary(self) -> dict[int, Population]:
        return {}

    def one_class(self, name: Any) -> Population:
        """Take the probabilities of one class; covariates are shared.

        Parameters
        ----------
        name : object
            One of `classes`.

        Returns
        -------
        Population
            The same rows, made once.
        """
        k = class_position(self.classes, name)
        if k not in self._binary:
            made = object.__new__(Population)
            made._freeze(
                p=self.p[:, k], columns=self.columns, weights=self.weights, dropped=self.dropped
            )
            self._binary[k] = made
        return self._binary[k]

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._freeze(**state)

    def __repr__(self) -> str:
        told = f"classes {listed(self.classes)}, covariates {listed(self.names) or 'none'}"
        return f"<MulticlassPopulation: {self.n:,} rows, {told}>"
