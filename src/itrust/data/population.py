"""`Population`, the door for rows without labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from itrust._core import FloatArray, InputError, Subject
from itrust.data.class_intake import columns_in, names_several
from itrust.data.column import Column
from itrust.data.design import Design
from itrust.data.design_intake import read_design
from itrust.data.encoding import encode_numbers, same_length
from itrust.data.intake import (
    PROB,
    MissingRule,
    checked_missing,
    column_names_known,
    lacking_nothing,
    named_columns,
    read_covariates,
    read_probabilities,
    refuse_among_covariates,
    same_index,
    settle_missing,
)
from itrust.data.kinds import Kinds
from itrust.data.predicates import Predicate
from itrust.data.rows import Predicted
from itrust.data.sample import Sample
from itrust.data.selection import RowSelection


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Population(Predicted):
    """Predicted probabilities and covariates of rows whose labels are not known.

    Parameters
    ----------
    p : column of n probabilities, or (n, K) matrix
        The predicted probability of the positive label, in [0, 1]. A matrix, mapping or frame of
        three columns or more, or `classes`, gives a `MulticlassPopulation`.
    x : frame, mapping, array or list of rows, optional
        The covariates, in any form that `Sample` takes. Default: there are none.
    classes : sequence, optional
        The classes that the columns of a matrix p belong to, in order. Default: p is one column.
    weights : column of n weights, optional
        How many units of the population each row stands for, up to a factor; not negative.
        Default: every row counts alike.
    names : sequence of str, optional
        Names of the covariates. Default: those of a frame or mapping; x1, x2, ... for arrays.
    missing : {"error", "level", "drop"}
        What to do with missing values: refuse them (the default), take missing covariates as a
        level of their own, or leave out rows that lack anything.
    categories, numbers : str or sequence of str
        Covariates that are codes, or quantities, as for `Sample`.
    value_labels : mapping of str to mapping, optional
        What codes mean, by covariate, as for `Sample`.

    Attributes
    ----------
    p : (n,) array of float
        The predicted probabilities.
    columns : tuple of Column
        The covariates, encoded.
    weights : (n,) array of float or None
        The weights as they were given; None if there were none.
    dropped : tuple of str
        If rows were left out, notes on how many, and why.

    Examples
    --------
    >>> import itrust as it
    >>> it.Population([0.2, 0.7], {"age": [30, 41]})
    <Population: 2 rows, covariates 'age'>
    """

    p: FloatArray
    columns: tuple[Column, ...]
    weights: FloatArray | None
    dropped: tuple[str, ...]

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        """Make a population with one column of probabilities, or a `MulticlassPopulation`.

        Parameters
        ----------
        *args : object
            Probabilities and covariates.
        **settings : object
            As for the class.

        Returns
        -------
        Population
            Empty as yet; or the whole `MulticlassPopulation`.
        """
        p = args[0] if args else settings.get("p")
        if cls is not Population or (settings.get("classes") is None and columns_in(p) < 3):
            return super().__new__(cls)
        made: Self = _several()(*args, **settings)
        return made

    def __init__(
        self,
        p: object,
        x: object = None,
        *,
        classes: Sequence[Any] | None = None,
        weights: object = None,
        names: Sequence[str] | None = None,
        missing: MissingRule = "error",
        categories: str | Sequence[str] = (),
        numbers: str | Sequence[str] = (),
        value_labels: Mapping[str, Mapping[Any, str]] | None = None,
    ) -> None:
        if classes is not None:  # `Population` never gets here
            raise InputError("{argument} is for MulticlassPopulation", argument="classes")
        checked_missing(missing)
        kinds = Kinds.of(categories, numbers, value_labels)
        columns = x.items() if isinstance(x, Mapping) else [("x", x)]
        same_index([("prob", p), ("weights", weights), *columns])
        covariates = read_covariates(x, names, kinds=kinds)
        kinds.among([column.name for column in covariates])
        beside: dict[str, Any] = {"prob": p, "weights": weights}
        kept = lacking_nothing(beside, covariates) if missing == "drop" else None
        if kept is not None:
            beside = {**dict.fromkeys(beside), **kept[1]}
            covariates = tuple(column.take(kept[0].rows) for column in covariates)
        with nullcontext() if kept is None else kept[0].numbered():
            n = encode_numbers(beside["prob"], PROB).size
            if n == 0:
                raise InputError("a population needs at least 1 row; this one has none", count=0)
            for column in covariates:
                same_length(Subject("x", column.name), len(column), n, "probabilities")
            checked = read_probabilities(beside["prob"], n)
            design = read_design(n, weights=beside["weights"])
        settled = settle_missing({"columns": covariates}, missing)
        notes = () if kept is None else (kept[0].note,)
        self._freeze(p=checked, **settled, dropped=notes, weights=design.weights)

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
        """Take columns of a frame as a population.

        Parameters
        ----------
        frame : frame, relation or mapping
            A frame of pandas, polars or Arrow, a mapping of names to columns, or what is read
            whole as for `Sample.from_frame`: a lazy frame, a relation of DuckDB, a reader.
        prob : str, or mapping, list or pattern for several classes
            Name of the column with the predicted probabilities; for several classes as for
            `Sample.from_frame`.
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
        Population
            The rows of the frame that count; a `MulticlassPopulation` for several classes.

        Examples
        --------
        >>> import itrust as it
        >>> it.Population.from_frame({"p": [0.2, 0.7], "sex": ["f", "m"]}, prob="p", on="sex")
        <Population: 2 rows, covariates 'sex'>
        """
        if names_several(prob, frame):
            several: Self = _several().from_frame(
                frame,
                prob=prob,
                on=on,
                weights=weights,
                missing=missing,
                categories=categories,
                numbers=numbers,
                value_labels=value_labels,
                na_values=na_values,
                where=where,
            )
            return several
        roles = {"prob": str(prob), "weights": weights}
        columns, named, chosen = named_columns(frame, roles, on)
        refuse_among_covariates("prob", named["prob"], chosen)
        kinds = Kinds.of(categories, numbers, value_labels)
        kinds.among(list(columns))
        selection = RowSelection.of(na_values, where, missing, kinds)
        roles_of = {
            **{name: Subject("x", name) for name in chosen},
            **{name: Subject(role) for role, name in named.items()},
        }
        with column_names_known(named):
            selected = selection.applied(columns, roles_of, named["prob"])
        columns = selected.columns
        with selected.numbered(), column_names_known(named):
            made = cls(
                columns[named["prob"]],
                {name: columns[name] for name in chosen},
                weights=columns[named["weights"]] if weights is not None else None,
                missing=missing,
                **kinds.of_columns(chosen),
            )
        object.__setattr__(made, "dropped", (*selected.notes, *made.dropped))
        return made

    @staticmethod
    def scan(
        path: Any,
        *,
        prob: str | Mapping[Any, str] | Sequence[str],
        on: str | Sequence[str] = (),
        **settings: Any,
    ) -> Any:
        """Name rows of files without loading them, for populations larger than memory.

        Parameters
        ----------
        path : path, pattern ("folder/*.parquet"), folder, list of paths, or FileSet
            The files, as for `scan`.
        prob : str, or mapping, list or pattern for several classes
            Name of the column with the predicted probabilities; for several classes as for
            `Sample.from_frame`.
        on : str or sequence of str
            Names of the columns that are covariates; none by default.
        **settings : object
            `weights`, `missing`, `categories`, `numbers`, `value_labels`, `na_values`, `where` and
            `form`, as for `scan`.

        Returns
        -------
        PopulationScan
            For `resemblance` and `Task.estimate`; its `load()` gives a Population in memory. A
            `MulticlassPopulationScan` for several classes.

        Examples
        --------
        >>> import itrust as it, pyarrow as pa, pyarrow.parquet, tempfile, os
        >>> file = os.path.join(tempfile.mkdtemp(), "homes.parquet")
        >>> pa.parquet.write_table(pa.table({"p": [0.2, 0.7, 0.9], "age": [3, 4, 5]}), file)
        >>> it.Population.scan(file, prob="p", on="age")
        <PopulationScan: 1 file, covariates 'age'>
        """
        from itrust.data.population_files import scan_population

        return scan_population(path, prob=prob, on=on, **settings)


Population.__new__.__wrapped__ = Population.__init__  # type: ignore[attr-defined]


def _several() -> Any:
    """The class of populations of several classes, which is made of this one."""
    from itrust.data.multiclass_population import MulticlassPopulation

    return MulticlassPopulation


def of_one_column(p: object) -> Population:
    """Rows with one column of probabilities; the columns of several classes are refused.

    >>> of_one_column([0.2, 0.7]).n
    2
    """
    if columns_in(p) > 2:
        raise InputError(
            "{argument} must be one column, not {count}", count=columns_in(p), **PROB.fields
        )
    return Population(p)


def without_labels(population: Population) -> Sample:
    """The rows as a sample whose labels are all 0, for what does not look at labels.

    >>> without_labels(Population([0.2, 0.7], {"age": [30, 41]})).y
    array([0., 0.])
    """
    made = object.__new__(Sample)
    made._fill(
        y=np.zeros(population.n),
        p=population.p,
        columns=population.columns,
        design=Design(population.n, weights=population.weights),
        values=(0, 1),
        label=None,
        dropped=population.dropped,
        origin=(),
        folds=0,
        units=(),
    )
    return made
