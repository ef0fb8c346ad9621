"""`MulticlassSample`: labels of several classes, read from whatever users bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from itrust._core import (
    FloatArray,
    IntArray,
    Rng,
    Subject,
    counted,
    listed,
    shown,
    smallest_tickets,
    tickets,
)
from itrust.data.class_intake import (
    class_columns,
    class_position,
    numbers_like_labels,
    read_codes,
    read_matrix,
    rounding_note,
    rows_that_sum_to_1,
)
from itrust.data.column import Column
from itrust.data.design import Design
from itrust.data.design_intake import design_notes, read_design, refuse_odd_units
from itrust.data.encoding import as_arrow, same_length
from itrust.data.estimators import REST, Classifier, Covariates, PredictedRows, predicted_rows
from itrust.data.frame_roles import read_frame
from itrust.data.intake import (
    LABEL,
    PROB,
    MissingRule,
    checked_missing,
    column_names_known,
    lacking_nothing,
    read_covariates,
    refuse_empty_weights,
    same_index,
    settle_missing,
)
from itrust.data.kinds import PLAIN, Kinds
from itrust.data.oddities import covariate_notes, refuse_copies_of_classes
from itrust.data.predicates import Predicate
from itrust.data.rows import Points, Predicted, called_impossible
from itrust.data.sample import (
    NOTED_ROWS,
    Sample,
    covariate_lines,
    drawn_in_words,
    refuse_too_few,
    row_index,
    rows_meeting,
    split_rows,
)
from itrust.data.units import Units, read_units


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MulticlassSample(Predicted):
    """Labels of K classes, the probabilities of all of them, and the covariates.

    `Sample(y, p, x, classes=[...])` gives one, too. It is checked when it is made and never
    changes. Columns of p belong to classes by name: those of a mapping or a frame by their own
    names, those of an array by `classes`.

    Parameters
    ----------
    y : column of n labels
        Values that are among the classes.
    p : (n, K) array, mapping or frame
        The predicted probabilities, one column for each class. Rows sum to 1; those that do so
        only up to rounding (1e-6, as a softmax in float32) are rescaled, and a note says so.
    x : frame, mapping, array or list of rows, optional
        The covariates, as for `Sample`. Default: there are none.
    classes : sequence, optional
        The classes that the columns of p belong to, in order; of a mapping or frame, the order to
        take its columns in. Default: the names of a mapping or frame; for an array 0 to K - 1,
        and labels must be these numbers then.
    weights, cluster, strata : columns of n values, optional
        As for `Sample`. Default: every row counts alike, and rows are independent.
    replicate_weights : (n, R) array, frame or mapping, optional
        As for `Sample`. Default: none.
    replicate_method : str, optional
        As for `Sample`. Default: there are no replicate weights.
    names : sequence of str, optional
        Names of the covariates. Default: those of a frame or mapping; x1, x2, ... for arrays.
    missing : {"error", "level", "drop"}
        What to do with missing values, as for `Sample`; "error" by default.
    categories, numbers : str or sequence of str
        Covariates that are codes, or quantities, as for `Sample`.
    value_labels : mapping of str to mapping, optional
        What codes mean, by covariate, as for `Sample`.

    Attributes
    ----------
    p : (n, K) array of float
        The predicted probabilities; rows sum to 1.
    codes : (n,) array of int
        For each row the position of its label in `classes`.
    classes : tuple
        Names of the classes, in the order of the columns of p.
    columns : tuple of Column
        The covariates, encoded.
    design : Design
        How the rows were drawn: weights, clusters, strata and replicate weights.
    label : str or None
        Name of the label's column; None if labels came without a name.
    dropped : tuple of str
        Notes on what was done at the door: rows that were left out.
    rescaled : tuple of str
        A note, if rows summed to 1 only up to rounding.
    origin : tuple of str
        Notes on how the probabilities were made, where a model made them (`from_estimator`).
    folds : int
        Of how many models the probabilities are out-of-fold predictions; 0 if they are none.
    units : tuple of Units
        Which rows share the value of a column that has no role, as for `Sample`.

    Examples
    --------
    >>> import itrust as it
    >>> s = it.MulticlassSample(["a", "c", "b"], [[0.6, 0.2, 0.2], [0.1, 0.1, 0.8], [0, 1, 0]],
    ...                         [1.0, 2.0, 3.0], classes=["a", "b", "c"])
    >>> s
    <MulticlassSample: 3 rows, classes 'a', 'b', 'c', covariates 'x1'>
    >>> s.one_class("b").p
    array([0.2, 0.1, 1. ])
    """

    p: FloatArray
    codes: IntArray
    classes: tuple[Any, ...]
    columns: tuple[Column, ...]
    design: Design
    label: str | None
    dropped: tuple[str, ...]
    rescaled: tuple[str, ...]
    origin: tuple[str, ...]
    folds: int
    units: tuple[Units, ...]

    def __init__(
        self,
        y: object,
        p: object,
        x: object = None,
        classes: Sequence[Any] | None = None,
        *,
        weights: object = None,
        cluster: object = None,
        strata: object = None,
        replicate_weights: object = None,
        replicate_method: object = None,
        names: Sequence[str] | None = None,
        missing: MissingRule = "error",
        categories: str | Sequence[str] = (),
        numbers: str | Sequence[str] = (),
        value_labels: Mapping[str, Mapping[Any, str]] | None = None,
    ) -> None:
        kinds = Kinds.of(categories, numbers, value_labels)
        self._read(
            y,
            p,
            x,
            classes,
            weights=weights,
            cluster=cluster,
            strata=strata,
            replicate_weights=replicate_weights,
            replicate_method=replicate_method,
            names=names,
            missing=missing,
            kinds=kinds,
        )
        kinds.among(self.names)

    def _read(
        self,
        y: object,
        p: object,
        x: object,
        classes: Sequence[Any] | None,
        *,
        label: str | None = None,
        origin: tuple[str, ...] = (),
        folds: int = 0,
        **settings: Any,
    ) -> None:
        roles = ("weights", "cluster", "strata", "replicate_weights")
        several = {"p": p, **{name: settings.get(name) for name in roles}, "x": x}
        columns = [
            pair
            for name, value in several.items()
            for pair in (value.items() if isinstance(value, Mapping) else [(name, value)])
        ]
        same_index([("label", y), *columns])
        parts = read_class_parts(y, p, x, classes, label=label, **settings)
        self._fill(**parts, label=label, origin=origin, folds=folds)

    def _fill(self, **parts: Any) -> None:
        refuse_too_few(len(parts["p"]))
        if parts["design"].weights is not None:
            refuse_empty_weights(parts["design"].weights)
        self._freeze(**parts)

    @classmethod
    def of_parts(cls, parts: dict[str, Any], label: str | None) -> Self:
        """Make a sample of rows of files that were read and checked already.

        Parameters
        ----------
        parts : dict
            As `read_class_parts` gives them.
        label : str or None
            Name of the label's column.

        Returns
        -------
        MulticlassSample
            A covariate that is a copy of the label is refused, as everywhere.
        """
        refuse_copies_of_classes(parts["codes"], parts["p"], parts["columns"], parts["classes"])
        made = object.__new__(cls)
        made._fill(**parts, label=label, origin=(), folds=0)
        return made

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        label: str,
        prob: str | Mapping[Any, str] | Sequence[str],
        on: str | Sequence[str] = (),
        weights: str | None = None,
        cluster: str | Sequence[str] | None = None,
        strata: str | Sequence[str] | None = None,
        replicate_weights: str | Sequence[str] | None = None,
        replicate_method: str | None = None,
        missing: MissingRule = "error",
        categories: str | Sequence[str] = (),
        numbers: str | Sequence[str] = (),
        value_labels: Mapping[str, Mapping[Any, str]] | None = None,
        na_values: object = None,
        where: str | Predicate | None = None,
    ) -> Self:
        """Take the named columns of a frame, one of probabilities for every class.

        Parameters
        ----------
        frame : frame, relation or mapping
            As for `Sample.from_frame`.
        label : str
            The column of labels.
        prob : mapping, sequence of str, or str
            From each class to its column; columns that are called as their classes; or a pattern
            such as "p_*", whose star stands for the class.
        on : str or sequence of str
            The columns that are covariates. Default: none.
        weights : str, optional
            The column of survey weights. Default: every row counts alike.
        cluster, strata : str or sequence of str, optional
            As for `Sample.from_frame`. Default: rows are independent, of one stratum.
        replicate_weights : str or sequence of str, optional
            The columns of replicate weights, or a pattern. Default: none.
        replicate_method : str, optional
            What the replicate weights were made by, as for `Sample`. Default: there are none.
        missing : {"error", "level", "drop"}
            What to do with missing values, as for `Sample`; "error" by default.
        categories, numbers : str or sequence of str
            Columns that are codes, or quantities, as for `Sample`.
        value_labels : mapping of str to mapping, optional
            What codes mean, by column, as for `Sample`; also of the label.
        na_values : number, str, or list of these, optional
            Codes that stand for a missing value, as for `Sample.from_frame`.
        where : str or Predicate, optional
            Which rows count, as for `Sample.from_frame`; it may read any column of the frame.

        Returns
        -------
        MulticlassSample
            The rows of the frame that count, checked and encoded.

        Examples
        --------
        >>> import itrust as it
        >>> games = {"result": ["tie", "win"], "p1": [0.3, 0.8], "pt": [0.7, 0.2], "day": [1, 2]}
        >>> it.MulticlassSample.from_frame(games, label="result", prob={"win": "p1", "tie": "pt"},
        ...                                on="day")
        <MulticlassSample: 2 rows, classes 'win', 'tie', covariates 'day'>
        """
        found: dict[Any, str] = {}

        def columns_of_classes(names: list[str]) -> list[str]:
            found.update(class_columns(names, prob))
            return list(found.values())

        rows = read_frame(
            frame,
            label=label,
            prob=columns_of_classes,
            on=on,
            weights=weights,
            cluster=cluster,
            strata=strata,
            replicate_weights=replicate_weights,
            missing=missing,
            kinds=Kinds.of(categories, numbers, value_labels),
            na_values=na_values,
            where=where,
        )
        made = object.__new__(cls)
        with rows.told():
            labels = as_arrow(rows.columns[rows.label], LABEL)
            classes = numbers_like_labels(list(found), labels.type)
            columns = (rows.columns[name] for name in rows.prob)
            made._read(
                labels,
                dict(zip(classes, columns, strict=True)),
                rows.covariates,
                classes,
                **rows.weights,
                **rows.settings,
                replicate_method=replicate_method,
                missing=missing,
            )
        object.__setattr__(made, "dropped", (*rows.notes, *made.dropped))
        return made

    @classmethod
    def from_estimator(
        cls,
        model: Classifier,
        X: object,
        y: object,
        *,
        on: Covariates | None = None,
        weights: object = None,
        cluster: object = None,
        strata: object = None,
        replicate_weights: object = None,
        replicate_method: str | None = None,
        missing: MissingRule = "error",
        cv: object = None,
        rng: Rng = None,
    ) -> Self:
        """Take labels, and the probabilities of all classes that a classifier gives to their rows.

        Parameters
        ----------
        model : classifier with predict_proba
            As for `Sample.from_estimator`, of two classes or more. Its `classes_` say which
            column of `predict_proba` belongs to which class.
        X : (n, d) array or frame
            The features, as the model takes them.
        y : column of n labels
            Values that the model knows.
        on : names, positions or columns, optional
            The covariates, as for `Sample.from_estimator`. Default: all columns of X without
            another role.
        weights, cluster, strata : column of n values or name of a column of X, optional
            As for `Sample`. Default: every row counts alike, and rows are independent.
        replicate_weights : (n, R) array, frame or mapping, optional
            As for `Sample`. Default: none.
        replicate_method : str, optional
            As for `Sample`. Default: there are no replicate weights.
        missing : {"error", "level", "drop"}
            What to do with missing covariates, as for `Sample`; "error" by default.
        cv : int or splitter of scikit-learn, optional
            Judge out-of-fold predictions, as for `Sample.from_estimator`. Default: the model is
            fitted, and nothing is fitted here.
        rng : int, numpy.random.Generator or None
            The seed of the folds. Default: other folds in every call.

        Returns
        -------
        MulticlassSample
            The rows with the model's probabilities; its notes say how they were made.

        Examples
        --------
        >>> import itrust as it
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> it.MulticlassSample.from_estimator(GaussianNB(), X, y, on=[0, 1], cv=5, rng=0)
        <MulticlassSample: 150 rows, classes 0, 1, 2, covariates 'x1', 'x2'>
        """
        given = {"weights": weights, "cluster": cluster, "strata": strata}
        rows = predicted_rows(model, X, y, on=on, roles=given, cv=cv, rng=rng, every_class=True)
        drawn = {"replicate_weights": replicate_weights, "replicate_method": replicate_method}
        return cls.of_predictions(rows, missing=missing, **drawn)

    @classmethod
    def of_predictions(cls, rows: PredictedRows, **settings: Any) -> Self:
        """Make a sample of what a model predicted.

        Parameters
        ----------
        rows : PredictedRows
            With the columns of all classes.
        **settings : object
            Replicate weights, and what to do with missing values.

        Returns
        -------
        MulticlassSample
            With notes on how the probabilities were made.
        """
        made = object.__new__(cls)
        with column_names_known({"label": rows.label} if rows.label else {}):
            made._read(
                rows.y,
                rows.p,
                rows.x,
                rows.classes,
                **rows.roles,
                **settings,
                others=rows.others,
                label=rows.label,
                origin=rows.notes,
                folds=rows.folds,
            )
        return made

    @property
    def weights(self) -> FloatArray | None:
        """The weights as they were given, (n,); None if every row counts alike."""
        return self.design.weights

    @property
    def cluster(self) -> IntArray | None:
        """The number of each row's cluster, (n,); None if rows are independent."""
        return self.design.cluster

    @property
    def strata(self) -> IntArray | None:
        """The number of each row's stratum, (n,); None if there is one."""
        return self.design.strata

    @cached_property
    def clusters(self) -> int | None:
        """Number of clusters; None if rows are independent."""
        return None if self.cluster is None else self.design.clusters

    @cached_property
    def weights_or_ones(self) -> FloatArray:
        """The weights scaled to mean 1, or 1 for every row, shape (n,)."""
        return np.ones(self.n) if self.weights is None else self.weights / self.weights.mean()

    @cached_property
    def points(self) -> Points:
        """The covariates as kernels see them; there is no one prediction, so p is NaN."""
        return Points(np.broadcast_to(np.nan, self.n), self.columns)

    @property
    def in_memory(self) -> Self:
        """The sample itself: all rows are at hand."""
        return self

    @property
    def residuals(self) -> FloatArray:
        """Observed minus predicted, 1 for the class of a row less p, shape (n, K)."""
        found = -self.p
        found[np.arange(self.n), self.codes] += 1
        return found

    @cached_property
    def _binary(self) -> dict[int, Sample]:
        return {}

    def one_class(self, name: Any) -> Sample:
        """Make a sample of one class against the rest.

        Nothing is read or encoded again: covariates and design are shared, and the sample of a
        class is made once. Of two classes, that of the second is the usual binary sample.

        Parameters
        ----------
        name : object
            One of `classes`.

        Returns
        -------
        Sample
            Labels that are 1 for this class, its probabilities, and the covariates.

        Examples
        --------
        >>> import itrust as it
        >>> s = it.Sample([0, 2, 1], [[0.6, 0.2, 0.2], [0.1, 0.1, 0.8], [0, 1, 0]])
        >>> s.one_class(2).y
        array([0., 1., 0.])
        """
        k = class_position(self.classes, name)
        if k not in self._binary:
            made = object.__new__(Sample)
            rest = self.classes[1 - k] if len(self.classes) == 2 else REST
            made._fill(
                y=(self.codes == k).astype(float),
                p=self.p[:, k],
                columns=self.columns,
                design=self.design,
                values=(rest, self.classes[k]),
                label=self.label,
                dropped=self.dropped,
                origin=self.origin,
                folds=self.folds,
                units=self.units,
            )
            self._binary[k] = made
        return self._binary[k]

    @cached_property
    def impossible(self) -> int:
        """Number of rows whose label the model gave probability 0, less those of weight 0."""
        chosen = self.p[np.arange(self.n), self.codes]
        return int(np.count_nonzero(called_impossible(1, chosen, self.weights)))

    @cached_property
    def counts(self) -> IntArray:
        """How many rows have each class as their label, (K,)."""
        return np.bincount(self.codes, minlength=len(self.classes))

    @property
    def most_frequent(self) -> Any:
        """The class with the most labels."""
        return self.classes[int(self.counts.argmax())]

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Data-quality notes: rows left out, classes never seen, columns that look odd."""
        said = [*self.dropped, *self.rescaled, *self.origin, *design_notes(self.design)]
        certain = bool(np.isin(self.p, (0.0, 1.0)).all())
        rows: Any = slice(None)
        if self.n > NOTED_ROWS:
            rows = smallest_tickets(tickets(0, self.n), NOTED_ROWS)
        some = tuple(column.take(rows) for column in self.columns)
        odd = class_notes(self.classes, self.counts, certain, self.p[rows], some)
        return tuple(dict.fromkeys([*said, *odd]))

    def take(self, rows: object) -> Self:
        """Keep some rows; names, levels, classes and notes stay.

        Parameters
        ----------
        rows : array of int, array of bool, or slice
            Positions of the rows, or a mask as long as the sample.

        Returns
        -------
        MulticlassSample
            Those rows, in the order asked for.
        """
        index = row_index(rows, self.n)
        p = np.empty((index.size, len(self.classes)), order="F")
        for k in range(len(self.classes)):
            p[:, k] = self.p[index, k]
        return self._with(
            p=p,
            codes=self.codes[index],
            columns=tuple(column.take(index) for column in self.columns),
            design=self.design.take(index),
            units=tuple(units.take(index, self.n) for units in self.units),
        )

    def _with(self, **parts: Any) -> Self:
        made = object.__new__(type(self))
        made._fill(**{field.name: getattr(self, field.name) for field in fields(self)} | parts)
        return made

    def where(self, condition: str | Predicate | Mapping[str, Any]) -> Self:
        """Keep the rows that meet a condition on the covariates.

        Parameters
        ----------
        condition : str, Predicate or mapping
            As for `Sample.where`; there is no "prediction", as every class has its own.

        Returns
        -------
        MulticlassSample
            Those rows, in their order; at least 2.

        Examples
        --------
        >>> import itrust as it
        >>> s = it.Sample([0, 2, 1], [[0.6, 0.2, 0.2], [0.1, 0.1, 0.8], [0, 1, 0]],
        ...               {"age": [20, 30, 40]})
        >>> s.where("age >= 30").codes
        array([2, 1])
        """
        return self.take(rows_meeting(condition, self.points))

    def with_columns(self, columns: tuple[Column, ...]) -> Self:
        """Give the same rows other covariates.

        Parameters
        ----------
        columns : tuple of Column
            The covariates, which have been checked already.

        Returns
        -------
        MulticlassSample
            The same labels and probabilities with these covariates.
        """
        return self._with(columns=columns)

    def with_predictions(self, p: object) -> Self:
        """Give the same rows other probabilities, such as recalibrated ones.

        Parameters
        ----------
        p : (n, K) array, mapping or frame
            The columns of an array in the order of `classes`; those of a mapping or frame by name.

        Returns
        -------
        MulticlassSample
            The same labels and covariates with these probabilities.
        """
        _, matrix = read_matrix(p, self.classes)
        same_length(PROB, len(matrix), self.n)
        checked, off = rows_that_sum_to_1(matrix, self.classes)
        return self._with(p=checked, rescaled=rounding_note(*off))

    def only(self, *names: str) -> Self:
        """Keep some of the covariates.

        Parameters
        ----------
        *names : str
            Names of the covariates to keep, in the order wanted.

        Returns
        -------
        MulticlassSample
            The same rows with these covariates.
        """
        return self.with_columns(tuple(self.column(name) for name in names))

    def split(self, fractions: Sequence[float], *, rng: Rng = None) -> tuple[Self, ...]:
        """Split at random into parts; clusters stay whole and are drawn within their strata.

        Parameters
        ----------
        fractions : sequence of float
            The share of the rows, or of the clusters, in each part. If they sum to less than 1,
            the other rows are left out.
        rng : int, numpy.random.Generator or None
            The seed of the split; the same rows as of a `Sample` with the same design.

        Returns
        -------
        tuple of MulticlassSample
            One for each fraction; rows keep their order.
        """
        return tuple(self.take(rows) for rows in split_rows(self.design, fractions, rng))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._freeze(**state)

    def __repr__(self) -> str:
        on = listed(self.names) or "none"
        return (
            f"<MulticlassSample: {self.n:,} rows, classes {listed(self.classes)}, covariates {on}>"
        )

    def __str__(self) -> str:
        w = self.weights_or_ones
        head = f"Sample of {self.n:,} rows, {len(self.classes)} classes"
        names = [shown(name) for name in self.classes]
        width = max(len(name) for name in names)
        counts = [counted(int(count), "label") for count in self.counts]
        digits = max(len(count) for count in counts)
        lines = [
            f"  {name:<{width}}  {counts[k]:>{digits}} "
            f"({100 * float(w @ (self.codes == k) / w.sum()):.1f} %), "
            f"mean prediction {100 * float(w @ self.p[:, k] / w.sum()):.1f} %"
            for k, name in enumerate(names)
        ]
        first = ", ".join([head, *drawn_in_words(self.design)])
        return "\n".join([first, *lines, *covariate_lines(self.columns, self.notes)])


def class_notes(
    classes: Sequence[Any],
    counts: IntArray,
    certain: bool,
    p: FloatArray,
    columns: tuple[Column, ...],
) -> list[str]:
    """Say what is odd about labels, probabilities and covariates."""
    said = []
    seen = [name for name, count in zip(classes, counts, strict=True) if count]
    if len(seen) == 1:
        said.append(f"one class only: every label is {shown(seen[0])}")
    elif len(seen) < len(classes):
        said.append(f"no label is {listed([name for name in classes if name not in seen])}")
    if certain:
        said.append("every p is 0 or 1: are these predicted classes instead of probabilities?")
    return [*said, *(note for own in p.T for note in covariate_notes(Points(own, columns)))]


def read_class_parts(
    y: object,
    p: object,
    x: object,
    classes: Sequence[Any] | None,
    *,
    names: Sequence[str] | None = None,
    weights: object = None,
    cluster: object = None,
    strata: object = None,
    replicate_weights: object = None,
    replicate_method: object = None,
    missing: MissingRule = "error",
    others: Mapping[str, object] | None = None,
    kinds: Kinds = PLAIN,
    label: str | None = None,
    as_drawn: bool = True,
) -> dict[str, Any]:
    """Everything a `MulticlassSample` is made of, read as `read_parts` does for two classes."""
    checked_missing(missing)
    named, matrix = read_matrix(p, classes)
    covariates = read_covariates(x, names, kinds=kinds)
    roles = {
        "weights": weights,
        "cluster": cluster,
        "strata": strata,
        "replicate_weights": replicate_weights,
    }
    beside: dict[str, Any] = {"label": y, "prob": matrix, **roles}
    kept = lacking_nothing(beside, covariates) if missing == "drop" else None
    if kept is not None:
        refuse_odd_units(roles)
        as_drawn = False
        beside = {**dict.fromkeys(beside), **kept[1]}
        covariates = tuple(column.take(kept[0].rows) for column in covariates)
        others = {}  # columns that nobody asked for still have all rows
    with nullcontext() if kept is None else kept[0].numbered():
        matrix = np.asfortranarray(beside["prob"])
        meanings = kinds.labels_of(label or "")
        found, codes = read_codes(beside["label"], named, matrix.shape[1], meanings)
        n = codes.size
        same_length(PROB, len(matrix), n)
        checked, off = rows_that_sum_to_1(matrix, found)
        for column in covariates:
            same_length(Subject("x", column.name), len(column), n)
        design = read_design(
            n,
            **{role: beside[role] for role in roles},
            replicate_method=replicate_method,
            as_drawn=as_drawn,
        )
    parts = {
        "p": checked,
        "codes": codes,
        "classes": found,
        "columns": covariates,
        "design": design,
        "dropped": () if kept is None else (kept[0].note,),
        "rescaled": rounding_note(*off),
        "units": read_units(others or {}, n),
    }
    settled: dict[str, Any] = settle_missing(parts, missing)
    refuse_copies_of_classes(codes, checked, settled["columns"], found)
    return settled
