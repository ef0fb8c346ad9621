"""The public names of rows at hand, thin constructors of `Rows`: what users bring is checked here.

Everything behind these doors trusts what it gets.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from itrust._core import InputError, IntArray, Rng, Setting, listed
from itrust.data.column import called_impossible
from itrust.data.encoding import Kinds, is_frame
from itrust.data.estimators import Covariates, is_model, predicted_rows
from itrust.data.intake import (
    MissingRule,
    column_names_known,
    read_rows,
    refuse_positive,
    rows_of_frame,
)
from itrust.data.predicates import Predicate
from itrust.data.probabilities import PROB, columns_in
from itrust.data.rows import Rows


def _fill(
    self: Rows, *, categories: object, numbers: object, value_labels: object, **given: Any
) -> None:
    """Read what a user brings into rows that are being made."""
    kinds = Kinds.of(categories, numbers, value_labels)
    rows = read_rows(type(self), kinds=kinds, **given)
    kinds.among(rows.names)
    self._freeze(**rows._parts())


class Sample(Rows):
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

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        """Make a sample of two labels, or a `MulticlassSample` where there are more classes."""
        given: dict[str, Any] = settings | dict(zip(("y", "p", "x", "classes"), args, strict=False))
        several = given.get("classes") is not None or (
            given.get("positive") is None and columns_in(given.get("p")) > 2
        )
        kind: type[Any] = MulticlassSample if cls is Sample and several else cls
        made: Self = super().__new__(kind)
        return made

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
        positive: object = None,
        missing: MissingRule = "error",
        categories: str | Sequence[str] = (),
        numbers: str | Sequence[str] = (),
        value_labels: Mapping[str, Mapping[Any, str]] | None = None,
    ) -> None:
        if self.several:
            refuse_positive(positive)
        elif classes is not None:  # of a class of samples of one's own; `Sample` never gets here
            raise InputError("{argument} is for Sample and MulticlassSample", argument="classes")
        _fill(**locals())  # all arguments, and nothing else

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
        given = {name: value for name, value in locals().items() if name not in ("cls", "frame")}
        rows: Self = rows_of_frame(_KINDS[:2], frame, **given)
        return rows

    @classmethod
    def from_estimator(
        cls,
        model: Any,
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
        roles = {"weights": weights, "cluster": cluster, "strata": strata}
        given, one_class = predicted_rows(
            model,
            X,
            y,
            on=on,
            pos_label=pos_label,
            roles=roles,
            cv=cv,
            rng=rng,
            every_class=cls.several,
        )
        with column_names_known({"label": given["label"]} if given["label"] else {}):
            rows: Self = read_rows(
                _KINDS[int(given["classes"] is not None)],
                **given,
                replicate_weights=replicate_weights,
                replicate_method=replicate_method,
                missing=missing,
            )
        return rows if one_class is None else rows.one_class(one_class)

    @property
    def impossible(self) -> IntArray:
        """Numbers of the rows whose label the model gave probability 0, such as p = 0 and y = 1.

        Rows of weight 0 count nothing.
        """
        p = self.predictions if self.several else np.column_stack([1 - self.p, self.p])
        chosen = p[np.arange(self.n), self.codes]
        return np.flatnonzero(called_impossible(1, chosen, self.weights))


class MulticlassSample(Sample):
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

    several = True
    single = Sample


class Population(Rows):
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

    labelled = False

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        """Make a population with one column of probabilities, or a `MulticlassPopulation`."""
        p = args[0] if args else settings.get("p")
        several = settings.get("classes") is not None or columns_in(p) > 2
        kind: type[Any] = MulticlassPopulation if cls is Population and several else cls
        made: Self = super().__new__(kind)
        return made

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
        _fill(y=None, **locals())

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
        given = {name: value for name, value in locals().items() if name not in ("cls", "frame")}
        rows: Self = rows_of_frame(_KINDS[2:], frame, label=None, **given)
        return rows

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
        Scan
            For `resemblance` and `Task.estimate`; its `load()` gives a Population in memory.

        Examples
        --------
        >>> import itrust as it, pyarrow as pa, pyarrow.parquet, tempfile, os
        >>> file = os.path.join(tempfile.mkdtemp(), "homes.parquet")
        >>> pa.parquet.write_table(pa.table({"p": [0.2, 0.7, 0.9], "age": [3, 4, 5]}), file)
        >>> it.Population.scan(file, prob="p", on="age")
        <Scan: 1 file, no labels, covariates 'age'>
        """
        from itrust.data.files import scanned

        return scanned(path, label=None, prob=prob, on=on, **settings)


class MulticlassPopulation(Population):
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

    several = True
    single = Population


_KINDS: Any = (Sample, MulticlassSample, Population, MulticlassPopulation)
for _kind in (Sample, Population):
    setattr(_kind.__new__, "__wrapped__", _kind.__init__)  # noqa: B010 the signature to read


def checked_sample(sample: object, call: str | None = None) -> Sample:
    """Pass a `Sample` on; refuse anything else and say how to make one, in the call if known."""
    if isinstance(sample, Sample):
        if not sample.several:
            return sample
        problem = "this is a MulticlassSample; use multiclass_test(sample), or "
        raise InputError(f"{problem}sample.one_class(name)", argument="sample", value=sample)
    made = _how_to_make(sample)
    cure = f"make one with {made}" if call is None else f"write it.{call}({made})"
    problem = "expected an itrust.Sample, not {kind}; {cure}"
    raise InputError(problem, argument="sample", value=sample, kind=a_kind(sample), cure=cure)


def of_two_classes(sample: object) -> Sample:
    """Pass a sample of a model on; refuse several classes, and say how to name one of them."""
    if not isinstance(sample, MulticlassSample):
        return checked_sample(sample)
    classes = sample.classes
    raise InputError(
        "the model knows {count} classes, {known}",
        argument="model",
        value=classes,
        count=len(classes),
        hint="pass {} for one class against the rest, or judge all at once with "
        "multiclass_test(sample)",
        settings=[Setting("pos_label", classes[-1])],
        known=listed(classes),
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


def of_one_column(p: object) -> Population:
    """Rows with one column of probabilities; the columns of several classes are refused.

    >>> of_one_column([0.2, 0.7]).n
    2
    """
    if columns_in(p) > 2:
        problem = "{argument} must be one column, not {count}"
        raise PROB.error(problem, count=columns_in(p))
    return Population(p)


def without_labels(population: Population) -> Sample:
    """The rows as a sample whose labels are all 0, for what does not look at labels."""
    parts = population._parts() | {"codes": np.zeros(population.n, dtype=np.int8)}
    return Sample.made(**parts)
