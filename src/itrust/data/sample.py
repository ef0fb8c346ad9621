"""`Sample`, the one door for data: validated, encoded and frozen.

Everything behind this door trusts what it gets. Rows in messages count from 0.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from itrust._core import (
    Advance,
    AnyArray,
    FloatArray,
    InputError,
    IntArray,
    Rng,
    Setting,
    counted,
    listed,
    shown,
    smallest_tickets,
    tickets,
)
from itrust.data.class_intake import columns_in, names_several
from itrust.data.column import Column
from itrust.data.design import Design
from itrust.data.design_intake import design_notes
from itrust.data.encoding import is_frame
from itrust.data.estimators import REST, Classifier, Covariates, is_model, predicted_rows
from itrust.data.extract import Extract, extract_of_sample
from itrust.data.frame_roles import read_frame
from itrust.data.grammar import as_condition
from itrust.data.intake import (
    MissingRule,
    column_names_known,
    read_parts,
    read_probabilities,
    refuse_empty_weights,
    same_index,
)
from itrust.data.kinds import Kinds
from itrust.data.oddities import covariate_notes, refuse_copies_of_the_label
from itrust.data.predicates import PREDICTION, Predicate
from itrust.data.rows import Chunk, Points, Predicted, called_impossible
from itrust.data.source import Pilot
from itrust.data.units import Units

MIN_CLUSTERS_KEPT = 1_000
NOTED_ROWS = 20_000  # random ones, whose covariates are looked at for notes


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Sample(Predicted):
    """Labels, predicted probabilities and covariates of the rows to be judged.

    A sample is checked when it is made and never changes. Everything that judges a model takes
    one. A column may be a list, a NumPy array, or a column of pandas, polars or Arrow.

    Parameters
    ----------
    y : column of n labels
        0 and 1, booleans, or any two values if `positive` says which one counts as 1.
    p : column of n probabilities, or (n, K) matrix
        The predicted probability of the positive label, in [0, 1]. A matrix (n, 2) is accepted if
        `positive` is named: its columns carry the values of the label as names, or stand in their
        sorted order, as scikit-learn's `predict_proba` gives them. A matrix, mapping or frame of
        three columns or more, or `classes`, gives a `MulticlassSample`.
    x : frame, mapping, array or list of rows, optional
        The covariates: a frame of pandas, polars or Arrow, a mapping of names to columns, an
        array (n, d) or (n,), or a list of rows. Text is taken as a category; dates become days
        since 1970-01-01. Default: no covariates, so that tests ask about calibration alone.
    classes : sequence, optional
        The classes that the columns of a matrix p belong to, in order: all of them are judged, in
        a `MulticlassSample`. Default: two labels, of which one counts as 1.
    weights : column of n survey weights, optional
        Not negative, at least two of them above 0, and without information on the label beyond
        x and p. Default: every row counts alike.
    cluster : column of n names of units, or several columns, optional
        Rows of one unit, such as a person measured twice, need not be independent. Several columns
        (a frame, a mapping or an array (n, k)) are crossed: a state and a year name an election.
        At least two clusters. Default: all rows are independent.
    strata : column of n names of strata, or several columns, optional
        Clusters were drawn within each stratum by itself: each lies in one, and each stratum has
        two or more, not all of weight 0. Default: one stratum.
    replicate_weights : (n, R) array, frame or mapping, optional
        R sets of weights, each of which stands for another draw of clusters, in full or as
        multiples of `weights`. They are taken as multiples if their means over the R sets, row by
        row, are nearer to 1 than to the weights, in squares; a note says which was assumed.
        Default: none, so that variances come from clusters and strata.
    replicate_method : str, optional
        What the replicate weights were made by: "jk1", "jk2", "brr", "fay:0.5", "sdr" or
        "bootstrap". Needed with replicate weights, and only with them.
    names : sequence of str, optional
        Names of the covariates. Default: those of a frame or mapping; x1, x2, ... for arrays.
    positive : object, optional
        The value of the label that counts as 1; all others count as 0. Default: labels are 0 and 1.
    missing : {"error", "level", "drop"}
        What to do with missing values. "error", the default, refuses them. "level" takes missing
        covariates as a level of their own; a missing number is then similar to other missing ones
        only. "drop" leaves out rows without a covariate, a label, a probability, a weight or a
        unit, and notes how many lack what.
    categories, numbers : str or sequence of str
        Names of covariates that are codes (race 1 to 5), or quantities, whatever their values
        look like. Default: text is a category, and a number with three to ten values is checked
        both as a number and value by value.
    value_labels : mapping of str to mapping, optional
        What the codes of a covariate mean, such as {"race": {1: "White", 2: "Black"}}; it is then
        a category whose levels have these names. Default: codes stand for themselves.

    Attributes
    ----------
    y : (n,) array of float
        The labels, 0 or 1.
    p : (n,) array of float
        The predicted probabilities.
    columns : tuple of Column
        The covariates, encoded.
    design : Design
        How the rows were drawn: weights, clusters, strata and replicate weights.
    values : tuple of two objects
        The values of the label that count as 0 and as 1; None for a 0 that does not occur.
    label : str or None
        Name of the label's column; None if labels came without a name.
    dropped : tuple of str
        Notes on what was done at the door: rows that were left out, labels that count together.
    origin : tuple of str
        Notes on how the probabilities were made, where a model made them (`from_estimator`).
    folds : int
        Of how many models the probabilities are out-of-fold predictions; 0 if they are none.
    units : tuple of Units
        Which rows share the value of a column that has no role, for columns of a frame that may
        name units; numbers only, and of 20,000 rows at most.

    Examples
    --------
    >>> import itrust as it
    >>> s = it.Sample([0, 1, 1], [0.2, 0.7, 0.9], {"age": [30, 41, 52], "sex": ["f", "m", "f"]})
    >>> print(s)
    Sample of 3 rows: 2 positive (66.7 %), mean prediction 60.0 %
      age  number    30 to 52
      sex  category  'f', 'm'
    >>> it.Sample(["tie", "win"], [[0.8, 0.1, 0.1], [0.2, 0.3, 0.5]],
    ...           classes=["win", "tie", "loss"])
    <MulticlassSample: 2 rows, classes 'win', 'tie', 'loss', covariates none>
    """

    y: FloatArray
    p: FloatArray
    columns: tuple[Column, ...]
    design: Design
    values: tuple[Any, Any]
    label: str | None
    dropped: tuple[str, ...]
    origin: tuple[str, ...]
    folds: int
    units: tuple[Units, ...]

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        """Make a sample of two classes, or a `MulticlassSample` where there are more.

        Parameters
        ----------
        *args : object
            Labels, probabilities and covariates.
        **settings : object
            As for the class.

        Returns
        -------
        Sample
            Empty as yet; or the whole `MulticlassSample`.
        """
        given: dict[str, Any] = {**dict(zip(("y", "p", "x"), args, strict=False)), **settings}
        several = given.get("classes") is not None or (
            given.get("positive") is None and columns_in(given.get("p")) > 2
        )
        if cls is not Sample or not several:
            return super().__new__(cls)
        refuse_positive(settings.pop("positive", None))
        made: Self = _several()(*args, **settings)
        return made

    def __init__(
        self,
        y: object,
        p: object,
        x: object = None,
        *,
        classes: Sequence[Any] | None = None,
        weights: object = None,
        cluster: object = None,
        strata: object = None,
        replicate_weights: object = None,
        replicate_method: object = None,
        names: Sequence[str] | None = None,
        positive: object = None,
        missing: MissingRule = "error",
        categories: str | Sequence[str] = (),
        numbers: str | Sequence[str] = (),
        value_labels: Mapping[str, Mapping[Any, str]] | None = None,
    ) -> None:
        if classes is not None:  # of a class of samples of one's own; `Sample` never gets here
            raise InputError("{argument} is for Sample and MulticlassSample", argument="classes")
        roles = {"weights": weights, "cluster": cluster, "strata": strata}
        self._read(
            y,
            p,
            x,
            roles,
            replicate_weights=replicate_weights,
            replicate_method=replicate_method,
            names=names,
            positive=positive,
            missing=missing,
            kinds=Kinds.of(categories, numbers, value_labels),
        )
        self._kinds_are_of_covariates(categories, numbers, value_labels)

    def _read(
        self,
        y: object,
        p: object,
        x: object,
        roles: Any,
        label: str | None = None,
        origin: tuple[str, ...] = (),
        folds: int = 0,
        **settings: Any,
    ) -> None:
        several = {**roles, "replicate_weights": settings.get("replicate_weights"), "x": x}
        columns = [
            pair
            for name, value in several.items()
            for pair in (value.items() if isinstance(value, Mapping) else [(name, value)])
        ]
        same_index([("label", y), ("prob", p), *columns])
        parts = read_parts(y, p, x, **roles, **settings, label=label)
        del parts["others"]
        refuse_copies_of_the_label(parts["y"], parts["p"], parts["columns"])
        self._fill(**parts, label=label, origin=origin, folds=folds)

    @classmethod
    def of_parts(cls, parts: dict[str, Any], label: str) -> Self:
        """Make a sample of rows of files that were read and checked already.

        Parameters
        ----------
        parts : dict
            From `read_parts`.
        label : str
            Name of the label's column.

        Returns
        -------
        Sample
            A covariate that is a copy of the label is refused, as everywhere.
        """
        parts = {name: part for name, part in parts.items() if name != "others"}
        refuse_copies_of_the_label(parts["y"], parts["p"], parts["columns"])
        made = object.__new__(cls)
        made._fill(**parts, label=label, origin=(), folds=0)
        return made

    def _kinds_are_of_covariates(self, *said: Any) -> None:
        Kinds.of(*said).among(self.names)

    def _fill(self, **parts: Any) -> None:
        refuse_too_few(parts["y"].size)
        if parts["design"].weights is not None:
            refuse_empty_weights(parts["design"].weights)
        self._freeze(**parts)

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
        positive: object = None,
        missing: MissingRule = "error",
        categories: str | Sequence[str] = (),
        numbers: str | Sequence[str] = (),
        value_labels: Mapping[str, Mapping[Any, str]] | None = None,
        na_values: object = None,
        where: str | Predicate | None = None,
    ) -> Self:
        """Take the named columns of a frame: labels, probabilities, covariates and the rest.

        Of the other columns, those that may name units (whole numbers, text and dates that repeat)
        are kept as `units`, so that the test can look for rows of one unit whose labels agree.

        Parameters
        ----------
        frame : frame, relation or mapping
            Of pandas, polars or Arrow, or names to columns; or a lazy frame of polars or Dask, a
            relation of DuckDB, a reader or data set of Arrow: these are read whole.
        label : str
            The column of labels.
        prob : str, or mapping, list or pattern for several classes
            The column of predicted probabilities. For several classes, from each class to its
            column ({"win": "p1", "tie": "pt", "loss": "p2"}), a list of columns that are called
            as their classes, or a pattern such as "p_*", whose star stands for the class.
        on : str or sequence of str
            The columns that are covariates. Default: none.
        weights : str, optional
            The column of survey weights. Default: every row counts alike.
        cluster : str or sequence of str, optional
            The column that names the unit of each row, or several that are crossed. "week(date)"
            takes blocks of time by a column of dates: day, week, month, quarter, year, or blocks,
            whose length `itrust.blocks` finds ("blocks(date, 14)": 14 days). A column that has such
            a name wins. Default: all rows are independent.
        strata : str or sequence of str, optional
            The column that names the stratum of each row, or several. Default: one stratum.
        replicate_weights : str or sequence of str, optional
            The columns of replicate weights: names, or a pattern such as "REPWT*", whose columns
            are taken in the order of their numbers. Default: none.
        replicate_method : str, optional
            What the replicate weights were made by, as for `Sample`. Default: there are none.
        positive : object, optional
            The value of the label that counts as 1; all others count as 0. Default: labels are 0
            and 1.
        missing : {"error", "level", "drop"}
            What to do with missing values, as for `Sample`; "error" by default.
        categories, numbers : str or sequence of str
            Columns that are codes, or quantities, as for `Sample`.
        value_labels : mapping of str to mapping, optional
            What codes mean, by column, as for `Sample`; also of the label.
        na_values : number, str, or list of these, optional
            Codes that stand for a missing value in any column that is used, such as [-99, "NA"].
            Default: only empty cells and NaN are missing.
        where : str or Predicate, optional
            Which rows count, such as 'age >= 18'; it may read any column of the frame. Default:
            all.

        Returns
        -------
        Sample
            The rows of the frame that count, checked and encoded; a `MulticlassSample` where
            `prob` names the columns of several classes.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import itrust as it
        >>> homes = pa.table({"owner": [1, 0], "p": [0.8, 0.3], "race": ["a", "b"]})
        >>> it.Sample.from_frame(homes, label="owner", prob="p", on="race").names
        ('race',)
        >>> games = pa.table({"y": ["tie", "win"], "p_win": [0.3, 0.8], "p_tie": [0.7, 0.2]})
        >>> it.Sample.from_frame(games, label="y", prob="p_*")
        <MulticlassSample: 2 rows, classes 'win', 'tie', covariates none>
        """
        kinds = Kinds.of(categories, numbers, value_labels)
        given: dict[str, Any] = {
            "label": label,
            "on": on,
            "weights": weights,
            "cluster": cluster,
            "strata": strata,
            "replicate_weights": replicate_weights,
            "missing": missing,
            "na_values": na_values,
            "where": where,
        }
        if names_several(prob, frame):
            refuse_positive(positive)
            said = {"categories": categories, "numbers": numbers, "value_labels": value_labels}
            method = {"replicate_method": replicate_method}
            several: Self = _several().from_frame(frame, prob=prob, **given, **said, **method)
            return several
        rows = read_frame(frame, prob=str(prob), kinds=kinds, **given)
        made = object.__new__(cls)
        with rows.told():
            made._read(
                rows.columns[rows.label],
                rows.columns[rows.prob[0]],
                rows.covariates,
                rows.weights,
                **rows.settings,
                replicate_method=replicate_method,
                positive=positive,
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
        pos_label: object = None,
        weights: object = None,
        cluster: object = None,
        strata: object = None,
        replicate_weights: object = None,
        replicate_method: str | None = None,
        missing: MissingRule = "error",
        cv: object = None,
        rng: Rng = None,
    ) -> Self:
        """Take labels, and the probabilities that a fitted classifier gives to their rows.

        The rows should be ones that the model was not trained on. Nothing can tell whether it was:
        probabilities for rows of the training set look better than they are.

        Parameters
        ----------
        model : classifier with predict_proba
            Anything with scikit-learn's conventions: an estimator, a pipeline, a search. Its
            `classes_` say which column of `predict_proba` belongs to which label.
        X : (n, d) array or frame
            The features, as the model takes them.
        y : column of n labels
            Values that the model knows.
        on : names, positions or columns, optional
            The covariates: names (or positions) of columns of X; or a frame or mapping of columns,
            which need not be features of the model. Columns of an array have the names that the
            model was fitted with, else x1, x2, ... Default: all columns of X without another role.
        pos_label : object, optional
            The value of the label that counts as 1; of more than two classes, that one is judged
            against the rest. Default: the second of the model's two classes, as in scikit-learn;
            of more than two, all are judged.
        weights, cluster, strata : column of n values or name of a column of X, optional
            As for `Sample`. Default: every row counts alike, and rows are independent.
        replicate_weights : (n, R) array, frame or mapping, optional
            As for `Sample`. Default: none.
        replicate_method : str, optional
            As for `Sample`. Default: there are no replicate weights.
        missing : {"error", "level", "drop"}
            What to do with missing covariates, as for `Sample`; "error" by default.
        cv : int or splitter of scikit-learn, optional
            Judge out-of-fold predictions: clones of the model are fitted to all folds but one and
            predict that one. A number of folds gives random folds with equal shares of the labels,
            in which clusters stay whole; weights do not enter the fits. The p-value is approximate
            then, which a note says. Default: the model is fitted, and nothing is fitted here.
        rng : int, numpy.random.Generator or None
            The seed of the folds. Default: other folds in every call.

        Returns
        -------
        Sample
            The rows with the model's probabilities; its notes say how they were made. A
            `MulticlassSample` where the model knows more than two classes and none is named.

        Examples
        --------
        >>> import numpy as np
        >>> import itrust as it
        >>> from sklearn.linear_model import LogisticRegression
        >>> X = np.random.default_rng(0).normal(size=(400, 2))
        >>> y = np.random.default_rng(1).random(400) < 1 / (1 + np.exp(-X[:, 0]))
        >>> model = LogisticRegression().fit(X[:200], y[:200])
        >>> it.Sample.from_estimator(model, X[200:], y[200:])
        <Sample: 200 rows, covariates 'x1', 'x2'>
        """
        given = {"weights": weights, "cluster": cluster, "strata": strata}
        rows = predicted_rows(model, X, y, on=on, pos_label=pos_label, roles=given, cv=cv, rng=rng)
        drawn = {"replicate_weights": replicate_weights, "replicate_method": replicate_method}
        if rows.classes:
            several: Self = _several().of_predictions(rows, missing=missing, **drawn)
            return several
        made = object.__new__(cls)
        with column_names_known({"label": rows.label} if rows.label else {}):
            made._read(
                rows.y,
                rows.p,
                rows.x,
                rows.roles,
                **drawn,
                positive=rows.positive,
                missing=missing,
                others=rows.others,
                label=rows.label,
                origin=rows.notes,
                folds=rows.folds,
            )
        if rows.one_class is not None:
            made._freeze(values=(REST, rows.one_class))
        return made

    @property
    def positives(self) -> str:
        """What positives are called: "owner = 1", or "positives" where the label has no name."""
        return "positives" if self.label is None else f"{self.label} = {self.values[1]}"

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
        return None if self.cluster is None else int(np.unique(self.cluster).size)

    @property
    def residuals(self) -> FloatArray:
        """Observed minus predicted, y - p, shape (n,); positive where predictions are too low."""
        return self.y - self.p

    @cached_property
    def weights_or_ones(self) -> FloatArray:
        """The weights scaled to mean 1, or 1 for every row, shape (n,)."""
        return np.ones(self.n) if self.weights is None else self.weights / self.weights.mean()

    @property
    def pair_weight(self) -> float:
        """Sum over i != j of w_i w_j with weights of mean 1: n(n - 1) without weights."""
        if self.weights is None:
            return float(self.n) * (self.n - 1)
        ascending = np.sort(self.weights_or_ones)  # sums of positive terms only: no cancellation
        return 2 * float(np.sum(ascending[1:] * np.cumsum(ascending)[:-1]))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Data-quality notes: rows left out, odd weights, one class only, columns that look odd."""
        said = [*self.dropped, *self.origin, *design_notes(self.design)]
        for label, value in enumerate(self.values):
            if (self.y == label).all():
                what = "one that counts" if value is None else f"{shown(value)}, counted"
                said.append(f"one class only: every label is {what} as {label}")
        if np.isin(self.p, (0.0, 1.0)).all():
            said.append("every p is 0 or 1: are these predicted classes instead of probabilities?")
        looked_at = self.points if self.n <= NOTED_ROWS else self.pilot(NOTED_ROWS).points
        return (*said, *covariate_notes(looked_at))

    @property
    def impossible(self) -> IntArray:
        """Numbers of the rows whose label the model gave probability 0, such as p = 0 and y = 1.

        Rows of weight 0 count nothing.
        """
        return np.flatnonzero(called_impossible(self.y, self.p, self.weights))

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Go through all rows in order without copying them.

        Parameters
        ----------
        size : int
            Number of rows at a time.

        Returns
        -------
        iterator of Chunk
            Pieces of `size` rows; the last one may be shorter.
        """
        for first in range(0, self.n, size):
            rows = slice(first, first + size)
            yield Chunk(
                first,
                self.y[rows],
                self.p[rows],
                self.points.take(rows),
                None if self.weights is None else self.weights_or_ones[rows],
                None if self.cluster is None else self.cluster[rows],
            )

    def pilot(self, size: int) -> Pilot:
        """Choose random rows, always the same ones; their labels stay behind.

        Parameters
        ----------
        size : int
            How many rows at most; of fewer rows all are chosen.

        Returns
        -------
        Pilot
            The chosen rows in their order, and the number of all rows.
        """
        drawn = tickets(0, self.n)
        rows = smallest_tickets(drawn, size)
        v = np.square(self.weights_or_ones) * self.p * (1 - self.p)
        return Pilot(self.points.take(rows), v[rows], drawn[rows], self.n)

    def extract(self, size: int | None = None, advance: Advance | None = None) -> Extract:  # noqa: ARG002
        """Count the rows and choose random ones with their labels; of few rows all.

        Parameters
        ----------
        size : int, optional
            How many rows at most; default: 100,000.
        advance : callable, optional
            For files, which take longer.

        Returns
        -------
        Extract
            The same as from files.
        """
        return extract_of_sample(self, size)

    def with_names(self, names: Sequence[str]) -> Self:
        """Keep some of the covariates: `only`, as a `Scan` has it, too.

        Parameters
        ----------
        names : sequence of str
            Those to keep, in this order.

        Returns
        -------
        Sample
            The same rows.
        """
        return self.only(*names)

    @property
    def in_memory(self) -> Self:
        """The sample itself: all rows are at hand."""
        return self

    def take(self, rows: object) -> Self:
        """Keep some rows; names, levels and notes stay.

        Parameters
        ----------
        rows : array of int, array of bool, or slice
            Positions of the rows, or a mask as long as the sample.

        Returns
        -------
        Sample
            Those rows, in the order asked for.

        Examples
        --------
        >>> import itrust as it
        >>> it.Sample([0, 1, 1], [0.2, 0.7, 0.9]).take([True, False, True]).y
        array([0., 1.])
        """
        index = row_index(rows, self.n)
        kept = object.__new__(type(self))
        kept._fill(
            y=self.y[index],
            p=self.p[index],
            columns=tuple(column.take(index) for column in self.columns),
            design=self.design.take(index),
            values=self.values,
            label=self.label,
            dropped=self.dropped,
            origin=self.origin,
            folds=self.folds,
            units=tuple(units.take(index, self.n) for units in self.units),
        )
        return kept

    def some_clusters(self, most: int) -> Self:
        """Keep random clusters of a design, whole, where it has more rows than can be worked with.

        They are chosen within every stratum and without a look at labels, the same ones in every
        call, at least a thousand, and at least two of every stratum. What holds for the rows as
        they were drawn holds for these: they are a smaller sample of the same design. So all rows
        are kept where strata have few clusters each, and where replicate weights are all that is
        known, which say nothing of a part of the clusters.

        Parameters
        ----------
        most : int
            How many rows to keep, about.

        Returns
        -------
        Sample
            With a note; itself, where there are no more rows.
        """
        design = self.design
        if design.replicate_weights is not None:
            return self
        # Three of the smallest stratum are owed, so that rounding leaves it two.
        smallest = float(design.stratum_sizes.min())
        share = max(most / self.n, MIN_CLUSTERS_KEPT / design.clusters, 3 / smallest)
        if share >= 1:
            return self
        kept = self.take(design.parts(np.array([share]), rng=0) == 0)
        said = (
            f"{kept.n:,} of {self.n:,} rows were used: those of {kept.design.clusters:,} random "
            f"clusters of {design.clusters:,}, chosen without a look at labels"
        )
        if design.cluster is None:
            said = f"{kept.n:,} random rows of {self.n:,} were used, chosen within strata"
        object.__setattr__(kept, "dropped", (*kept.dropped, said))
        return kept

    def where(self, condition: str | Predicate | Mapping[str, Any]) -> Self:
        """Keep the rows that meet a condition on the covariates or the prediction.

        Choosing rows by what is known without labels leaves every test as valid as before. Rows
        whose covariate is missing meet no comparison; "age is missing" names them.

        Parameters
        ----------
        condition : str, Predicate or mapping
            Text in the grammar of tasks, such as `region == "south" and age >= 65`; a predicate,
            such as the `where` of a finding or a slice; or names and values, such as
            `{"region": ["south", "west"]}`. "prediction" stands for the probabilities.

        Returns
        -------
        Sample
            Those rows, in their order; at least 2.

        Examples
        --------
        >>> import itrust as it
        >>> town = it.simulate.survey(1_000, rng=0).sample
        >>> town.where('region == "south" and age < 40').n
        82
        >>> town.where('regoin == "south"')
        Traceback (most recent call last):
        itrust.InputError: there is no covariate 'regoin' (did you mean 'region'?)
        """
        called = [] if PREDICTION in self.names else [Column(PREDICTION, "number", self.p)]
        return self.take(rows_meeting(condition, Points(self.p, (*self.columns, *called))))

    def with_columns(self, columns: tuple[Column, ...]) -> Self:
        """Give the same rows other covariates.

        Parameters
        ----------
        columns : tuple of Column
            The covariates, which have been checked already.

        Returns
        -------
        Sample
            The same labels and probabilities with these covariates.
        """
        other = object.__new__(type(self))
        kept = ("y", "p", "design", "values", "label", "dropped", "origin", "folds", "units")
        other._fill(**{name: getattr(self, name) for name in kept}, columns=columns)
        return other

    def with_predictions(self, p: object) -> Self:
        """Give the same rows other probabilities, such as recalibrated ones.

        Parameters
        ----------
        p : column of n probabilities
            In [0, 1], in the order of the rows.

        Returns
        -------
        Sample
            The same labels and covariates with these probabilities.

        Examples
        --------
        >>> import itrust as it
        >>> it.Sample([0, 1], [0.2, 0.7]).with_predictions([0.1, 0.9]).p
        array([0.1, 0.9])
        """
        other = object.__new__(type(self))
        kept = ("y", "columns", "design", "values", "label", "dropped", "origin", "folds", "units")
        checked = read_probabilities(p, self.n)
        other._fill(**{name: getattr(self, name) for name in kept}, p=checked)
        return other

    def only(self, *names: str) -> Self:
        """Keep some of the covariates.

        Parameters
        ----------
        *names : str
            Names of the covariates to keep, in the order wanted.

        Returns
        -------
        Sample
            The same rows with these covariates.

        Examples
        --------
        >>> import itrust as it
        >>> it.Sample([0, 1], [0.2, 0.7], {"age": [30, 41], "sex": ["f", "m"]}).only("sex").names
        ('sex',)
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
            The seed of the split. Default: another split in every call.

        Returns
        -------
        tuple of Sample
            One for each fraction; rows keep their order.

        Examples
        --------
        >>> import itrust as it
        >>> s = it.Sample([0, 1] * 50, [0.5] * 100)
        >>> [part.n for part in s.split([0.5, 0.25, 0.25], rng=0)]
        [50, 25, 25]
        """
        return tuple(self.take(rows) for rows in split_rows(self.design, fractions, rng))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for array in (self.y, self.p):
            array.flags.writeable = False

    def __str__(self) -> str:
        w = self.weights_or_ones
        rates = [100 * float(w @ values / w.sum()) for values in (self.y, self.p)]
        head = (
            f"Sample of {self.n:,} rows: {int(self.y.sum()):,} positive ({rates[0]:.1f} %), "
            f"mean prediction {rates[1]:.1f} %"
        )
        first = ", ".join([head, *drawn_in_words(self.design)])
        return "\n".join([first, *covariate_lines(self.columns, self.notes)])


def _strata_in_words(strata: IntArray) -> str:
    count = np.unique(strata).size
    return f"{count:,} {'stratum' if count == 1 else 'strata'}"


Sample.__new__.__wrapped__ = Sample.__init__  # type: ignore[attr-defined]  # the signature to read


def rows_meeting(condition: str | Predicate | Mapping[str, Any], points: Points) -> IntArray:
    """Numbers of the rows that meet a condition; refuses to leave fewer than two."""
    predicate = as_condition(condition)
    predicate.check(points)
    rows = np.flatnonzero(predicate.rows(points))
    if rows.size < 2:
        raise InputError(
            "{count} of {all} rows meet the condition {formula}; a sample needs at least 2",
            argument="condition",
            value=condition,
            count=rows.size,
            details={"all": len(points), "formula": predicate.formula},
        )
    return rows


def split_rows(design: Design, fractions: Sequence[float], rng: Rng) -> list[IntArray]:
    """Numbers of the rows of each part of a random split; each has two at least."""
    shares = np.asarray(fractions, dtype=float)
    if shares.ndim != 1 or shares.size == 0 or not (shares > 0).all() or shares.sum() > 1 + 1e-9:
        raise InputError(
            "{argument} must be a list of positive numbers that sum to at most 1, such as "
            "[0.5, 0.5], not {value}",
            argument="fractions",
            value=fractions,
        )
    part = design.parts(shares, rng)
    rows = [np.flatnonzero(part == k) for k in range(shares.size)]
    for k, chosen in enumerate(rows):
        if chosen.size < 2:
            raise InputError(
                f"part {k} of the split would have {chosen.size} of {design.n} rows; each part "
                f"needs at least 2",
                argument="fractions",
                value=fractions,
                count=chosen.size,
            )
    return rows


def drawn_in_words(design: Design) -> list[str]:
    """How rows were drawn, for the first line about a sample."""
    replicates = design.replicate_weights
    said = [
        "weighted" if design.weights is not None else "",
        "" if design.cluster is None else counted(design.clusters, "cluster"),
        "" if design.strata is None else _strata_in_words(design.strata),
        ""
        if replicates is None
        else counted(replicates.shape[1], "set") + f" of replicate weights ({design.replication})",
    ]
    return [text for text in said if text]


def covariate_lines(columns: Sequence[Column], notes: Sequence[str]) -> list[str]:
    """One line for each covariate and each note."""
    width = max((len(column.name) for column in columns), default=0)
    lines = [f"  {c.name:<{width}}  {c.kind:<8}  {c.extent()}" for c in columns]
    return [*lines, *(f"  note: {note}" for note in notes)]


def refuse_positive(positive: object) -> None:
    """Raise if one label is to count as 1 where all classes are judged."""
    if positive is not None:
        raise InputError(
            "{argument} is for one column of probabilities; with the columns of all classes, "
            "sample.one_class({value}) judges that class against the rest",
            argument="positive",
            value=positive,
        )


def _several() -> Any:
    """The class of samples of several classes, which is made of this one."""
    from itrust.data.multiclass import MulticlassSample

    return MulticlassSample


def refuse_too_few(n: int) -> None:
    """Raise unless there are two rows."""
    if n < 2:
        told = "a sample needs at least {fewest_rows} rows; this one has {count}"
        raise InputError(told, count=n, details={"fewest_rows": 2})


def checked_sample(sample: object, call: str | None = None) -> Sample:
    """Pass a `Sample` on; refuse anything else and say how to make one, in the call if known."""
    if isinstance(sample, Sample):
        return sample
    if type(sample).__name__ == "MulticlassSample":
        raise InputError(
            "this is a MulticlassSample; use multiclass_test(sample), or sample.one_class(name)",
            argument="sample",
            value=sample,
        )
    made = _how_to_make(sample)
    raise InputError(
        "expected an itrust.Sample, not {kind}; {verb} {cure}",
        argument="sample",
        value=sample,
        details={
            "kind": a_kind(sample),
            "verb": "make one with" if call is None else "write",
            "cure": made if call is None else f"it.{call}({made})",
        },
    )


def of_two_classes(sample: object) -> Sample:
    """Pass a sample of a model on; refuse several classes, and say how to name one of them."""
    classes = getattr(sample, "classes", None)
    if classes is None or isinstance(sample, Sample):
        return checked_sample(sample)
    raise InputError(
        "the model knows {count} classes, {known}",
        argument="model",
        value=classes,
        count=len(classes),
        hint="pass {} for one class against the rest, or judge all at once with "
        "multiclass_test(sample)",
        settings=[Setting("pos_label", classes[-1])],
        details={"known": listed(classes)},
    )


def a_kind(value: object) -> str:
    """The kind of a value with its article.

    >>> a_kind([0, 1]), a_kind(1)
    ('a list', 'an int')
    """
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' or name == 'ndarray' else 'a'} {name}"


def _how_to_make(value: object) -> str:
    """The call that makes a sample of what was given instead of one."""
    if is_model(value):
        return "it.Sample.from_estimator(model, X, y)"
    if isinstance(value, str | os.PathLike):
        return "it.scan(path, label=..., prob=..., on=[...]).load()"
    if is_frame(value):
        return "it.Sample.from_frame(frame, label=..., prob=..., on=[...])"
    return "it.Sample(y, p, x)"


def row_index(rows: object, n: int) -> AnyArray:
    """Positions of rows that a user names: positions, a mask or a slice."""
    if isinstance(rows, slice):
        return np.arange(n)[rows]
    index = np.asarray(rows)
    if index.dtype == bool:
        if index.size != n:
            raise InputError(
                f"the row mask has {counted(index.size, 'row')}, but there are {n:,} labels; align "
                f"them",
                argument="rows",
                count=index.size,
            )
        return np.flatnonzero(index)
    if index.ndim != 1 or not (index.size == 0 or np.issubdtype(index.dtype, np.integer)):
        raise InputError(
            "{argument} must be integer positions, a boolean mask or a slice", argument="rows"
        )
    outside = (index < -n) | (index >= n)
    if outside.any():
        raise InputError(
            f"there is no row {{value}}; rows are 0 to {n - 1}",
            argument="rows",
            value=int(index[np.argmax(outside)]),
        )
    return index.astype(np.int64)
