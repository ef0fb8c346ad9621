"""Rows at hand: predictions of one outcome or several, labels or none, covariates, and a design.

`Rows` is what everything behind the door takes. Two labels are one outcome; K classes are K
outcomes that are judged together. Rows in messages count from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from itrust._core import (
    Advance,
    AnyArray,
    FloatArray,
    InputError,
    IntArray,
    Rng,
    counted,
    listed,
    shown,
    smallest_tickets,
    tickets,
)
from itrust.data.column import Column, Points, covariate_notes
from itrust.data.design import Design, design_notes
from itrust.data.grammar import as_condition
from itrust.data.predicates import PREDICTION, Predicate, column_of
from itrust.data.probabilities import REST, class_position, read_predictions, rounding_note
from itrust.data.selection import refuse_few_inside
from itrust.data.survey import Census, Extract, Pilot, rows_at_hand, run_tickets, whole_runs
from itrust.data.units import Units

MIN_CLUSTERS_KEPT = 1_000
NOTED_ROWS = 20_000  # random ones, whose covariates are looked at for notes


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Rows:
    """Rows at hand; made by `Sample`, `Population` and their like, which check them.

    Attributes
    ----------
    predictions : (n, K) array of float
        Predicted probabilities by column: of the positive label (K = 1), or of every class.
    codes : (n,) array of int or None
        The place of each label in `classes`; None without labels.
    classes : tuple
        The values that labels have: those that count as 0 and as 1, or the K classes.
    columns : tuple of Column
        The covariates, encoded.
    design : Design
        How the rows were drawn: weights, clusters, strata and replicate weights.
    label : str or None
        Name of the label's column; None if labels came without a name.
    dropped, origin : tuple of str
        Notes on what was done at the door, and on how probabilities were made.
    rounded : tuple of int and float
        How many rows of probabilities summed to 1 only up to rounding, and by how much.
    folds : int
        Of how many models the probabilities are out-of-fold predictions; 0 if they are none.
    units : tuple of Units
        Which rows share the value of a column that has no role.
    first : int
        The number of the first row in the whole, where these are some of more rows.
    other_labels : frozenset
        Labels of rows of a file that count as 0.
    """

    predictions: FloatArray
    codes: Any
    classes: tuple[Any, ...]
    columns: tuple[Column, ...]
    design: Design
    label: str | None = None
    dropped: tuple[str, ...] = ()
    rounded: tuple[int, float] = (0, 0.0)
    origin: tuple[str, ...] = ()
    folds: int = 0
    units: tuple[Units, ...] = ()
    first: int = 0
    other_labels: frozenset[Any] = frozenset()

    several: ClassVar[bool] = False  # whether there are several classes
    labelled: ClassVar[bool] = True
    single: ClassVar[type[Rows]]  # what one outcome of several is

    @classmethod
    def made(cls, **parts: Any) -> Self:
        """Make rows of parts that were checked already."""
        rows = object.__new__(cls)
        rows._freeze(**parts)
        return rows

    @classmethod
    def of_labels(cls, y: FloatArray, p: FloatArray, weights: FloatArray | None) -> Self:
        """Make rows of one outcome without covariates, which were checked already."""
        return cls.made(
            predictions=p[:, None],
            codes=(y == 1).astype(np.int8),
            classes=(0, 1),
            columns=(),
            design=Design(len(p), weights),
        )

    def _freeze(self, **parts: Any) -> None:
        for name, value in parts.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def _parts(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def replaced(self, **parts: Any) -> Self:
        """Make the same rows with other parts, which were checked already."""
        return self.made(**self._parts() | parts)

    __getstate__ = _parts

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._freeze(**state)

    def checked(self) -> Self:
        """Pass these rows on if they are enough: two that count, or one without a label."""
        fewest = 1 if self.codes is None else 2
        if self.n < fewest:
            told = "a sample needs at least {fewest_rows} rows; this one has {count}"
            if self.codes is None:
                told = "a population needs at least 1 row; this one has none"
            raise InputError(told, count=self.n, fewest_rows=fewest)
        if fewest == 2 and self.weights is not None and np.count_nonzero(self.weights) < 2:
            problem = "{argument} are zero in all rows but at most one; two rows must count"
            raise InputError(problem, argument="weights")
        return self

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.predictions)

    def __len__(self) -> int:
        return self.n

    @property
    def rows(self) -> range:
        """Numbers of the rows in the whole."""
        return range(self.first, self.first + self.n)

    @property
    def p(self) -> FloatArray:
        """The predicted probabilities, (n,); of several classes (n, K)."""
        return self.predictions if self.several else self.predictions[:, 0]

    @cached_property
    def y(self) -> FloatArray:
        """The labels of one outcome, 0 or 1, (n,)."""
        if self.several:
            raise AttributeError("several classes have `codes`; one_class(name) has y")
        labels = np.zeros(self.n) if self.codes is None else (self.codes == 1).astype(float)
        labels.flags.writeable = False
        return labels

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the label that count as 0 and as 1; None for a 0 that does not occur."""
        return self.classes

    @property
    def rescaled(self) -> tuple[str, ...]:
        """A note, if rows summed to 1 only up to rounding."""
        return rounding_note(*self.rounded)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Find a covariate by its name.

        Parameters
        ----------
        name : str
            The name of the covariate.

        Returns
        -------
        Column
            Its kind, its values and, if it is a category, its levels.
        """
        return column_of(self.points, name, prediction=False)

    @cached_property
    def points(self) -> Points:
        """The rows without labels and weights; of several classes the prediction is NaN."""
        p = np.broadcast_to(np.nan, self.n) if self.several else self.predictions[:, 0]
        return Points(p, self.columns)

    @property
    def in_memory(self) -> Any:
        """The rows themselves: all are at hand."""
        return self

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

    @cached_property
    def weights_or_ones(self) -> FloatArray:
        """The weights scaled to mean 1, or 1 for every row, (n,)."""
        return np.ones(self.n) if self.weights is None else self.weights / self.weights.mean()

    @property
    def pair_weight(self) -> float:
        """Sum over i != j of w_i w_j with weights of mean 1: n(n - 1) without weights."""
        if self.weights is None:
            return float(self.n) * (self.n - 1)
        ascending = np.sort(self.weights_or_ones)  # sums of positive terms only: no cancellation
        return 2 * float(np.sum(ascending[1:] * np.cumsum(ascending)[:-1]))

    @property
    def residuals(self) -> FloatArray:
        """Observed minus predicted, (n,) or (n, K); positive where predictions are too low."""
        if not self.several:
            return self.y - self.p
        residuals = -self.predictions
        residuals[np.arange(self.n), self.codes] += 1
        return residuals

    @cached_property
    def counts(self) -> IntArray:
        """How many rows have each of the `classes` as their label."""
        assert self.codes is not None
        return np.bincount(self.codes, minlength=len(self.classes))

    @property
    def categories(self) -> list[str]:
        """Names of the covariates that are categories."""
        return [column.name for column in self.columns if column.is_category]

    @property
    def positives(self) -> str:
        """What positives are called: "owner = 1", or "positives" where the label has no name."""
        return "positives" if self.label is None else f"{self.label} = {self.classes[1]}"

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Data-quality notes: rows left out, odd weights, classes never seen, odd columns."""
        said = [*self.dropped, *self.rescaled]
        if self.codes is None:
            return tuple(said)
        chosen: Any = slice(None)
        if self.n > NOTED_ROWS:
            chosen = smallest_tickets(tickets(0, self.n), NOTED_ROWS)
        some = tuple(column.take(chosen) for column in self.columns)
        certain = bool(np.isin(self.predictions, (0.0, 1.0)).all())
        odd = odd_rows(self, self.counts, certain, self.predictions[chosen], some)
        return tuple(dict.fromkeys([*said, *self.origin, *design_notes(self.design), *odd]))

    @cached_property
    def _outcomes(self) -> dict[int, Any]:
        return {}

    def outcome(self, k: int) -> Any:
        """Take one of the outcomes: a class against the rest; of two labels there is one.

        Covariates and design are shared, and each outcome is made once.
        """
        if not self.several:
            return self
        if k not in self._outcomes:
            rest = self.classes[1 - k] if len(self.classes) == 2 else REST
            parts = self._parts() | {
                "predictions": self.predictions[:, k : k + 1],
                "codes": None if self.codes is None else (self.codes == k).astype(np.int8),
                "classes": (rest, self.classes[k]),
                "rounded": (0, 0.0),
            }
            self._outcomes[k] = self.single.made(**parts)
        return self._outcomes[k]

    def chunks(self, size: int) -> Iterator[Self]:
        """All rows in order, uncopied, with the number of the first and weights of mean 1."""
        weights = None if self.weights is None else self.weights_or_ones
        for at in range(0, self.n, size):
            yield self.cut(slice(at, at + size), weights)

    def cut(self, rows: slice, weights: FloatArray | None) -> Self:
        """Take rows that follow each other, with these weights, without copying or checking."""
        cluster = None if self.cluster is None else self.cluster[rows]
        predictions = self.predictions[rows]
        return self.made(
            predictions=predictions,
            codes=None if self.codes is None else self.codes[rows],
            classes=self.classes,
            columns=tuple(column.take(rows) for column in self.columns),
            design=Design(len(predictions), None if weights is None else weights[rows], cluster),
            first=self.first + rows.start,
            other_labels=self.other_labels,
        )

    def pilot(self, size: int) -> Pilot:
        """Choose random rows, `size` at most and always the same ones, without their labels."""
        weights = None if self.weights is None else self.weights_or_ones
        return Pilot(self.points, weights, self.n, tickets(0, self.n)).first(size)

    def extract(self, size: int | None = None, advance: Advance | None = None) -> Extract:  # noqa: ARG002
        """Count the rows and choose random ones, 100,000 or `size` at most, with their labels."""
        weights = None if self.weights is None else self.weights_or_ones
        census, drawn = Census.of(self, weights), tickets(0, self.n)
        if self.n <= rows_at_hand(size):
            return Extract(self, self, drawn, weights, census)
        rows = smallest_tickets(drawn, rows_at_hand(size))
        runs = whole_runs(run_tickets(0, self.n))
        return Extract(
            self,
            self.take(rows).with_all_levels(census),
            drawn[rows],
            None if weights is None else weights[rows],
            census,
            runs=self.take(runs).with_all_levels(census),
        )

    def with_all_levels(self, census: Census) -> Self:
        """Give categories the levels that all rows have, whether these have them or not."""
        columns = tuple(census.counts[column.name].completed(column) for column in self.columns)
        return self.with_columns(columns)

    def take(self, rows: object) -> Self:
        """Keep some rows; names, levels, classes and notes stay.

        Parameters
        ----------
        rows : array of int, array of bool, or slice
            Positions of the rows, or a mask as long as the sample.

        Returns
        -------
        Rows
            Those rows, in the order asked for.

        Examples
        --------
        >>> import itrust as it
        >>> it.Sample([0, 1, 1], [0.2, 0.7, 0.9]).take([True, False, True]).y
        array([0., 1.])
        """
        index = row_index(rows, self.n)
        return self.replaced(
            predictions=self.predictions.T.take(index, axis=1).T,
            codes=None if self.codes is None else self.codes[index],
            columns=tuple(column.take(index) for column in self.columns),
            design=self.design.take(index),
            units=tuple(units.take(index, self.n) for units in self.units),
        ).checked()

    def some_clusters(self, most: int) -> Self:
        """Keep random clusters of a design, whole, where it has more rows than can be worked with.

        They are chosen within every stratum without a look at labels, at least a thousand and two
        of every stratum: a smaller sample of the same design. Replicate weights say nothing of a
        part of the clusters, so all rows are kept there. A note says what was kept.
        """
        design = self.design
        if design.replicate_weights is not None:
            return self
        # Three of the smallest stratum are owed, so that rounding leaves it two.
        smallest = float(design.stratum_sizes.min())
        share = max(most / self.n, MIN_CLUSTERS_KEPT / design.clusters, 3 / smallest)
        if share >= 1:
            return self
        some = self.take(design.parts(np.array([share]), rng=0) == 0)
        note = (
            f"{some.n:,} of {self.n:,} rows were used: those of {some.design.clusters:,} random "
            f"clusters of {design.clusters:,}, chosen without a look at labels"
        )
        if design.cluster is None:
            note = f"{some.n:,} random rows of {self.n:,} were used, chosen within strata"
        return some.replaced(dropped=(*some.dropped, note))

    def where(self, condition: str | Predicate | Mapping[str, Any]) -> Self:
        """Keep the rows that meet a condition on the covariates or the prediction.

        Choosing rows by what is known without labels leaves every test as valid as before. Rows
        whose covariate is missing meet no comparison; "age is missing" names them.

        Parameters
        ----------
        condition : str, Predicate or mapping
            Text in the grammar of tasks, such as `region == "south" and age >= 65`; a predicate,
            such as the `where` of a finding or a slice; or names and values, such as
            `{"region": ["south", "west"]}`. "prediction" stands for the probabilities; of several
            classes there is none, as every class has its own.

        Returns
        -------
        Rows
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
        points = self.points
        if not self.several and PREDICTION not in self.names:
            points = Points(points.p, (*self.columns, Column(PREDICTION, "number", points.p)))
        predicate = as_condition(condition)
        predicate.check(points)
        rows = np.flatnonzero(predicate.rows(points))
        refuse_few_inside(rows.size, self.n, predicate, "condition")
        return self.take(rows)

    def with_columns(self, columns: tuple[Column, ...]) -> Self:
        """Give the same rows other covariates, which were checked already."""
        return self.replaced(columns=columns)

    def with_predictions(self, p: object) -> Self:
        """Give the same rows other probabilities, such as recalibrated ones.

        Parameters
        ----------
        p : column of n probabilities, or (n, K) array, mapping or frame
            In [0, 1], in the order of the rows; for several classes the columns of an array in
            the order of `classes`, those of a mapping or frame by name.

        Returns
        -------
        Rows
            The same labels and covariates with these probabilities.

        Examples
        --------
        >>> import itrust as it
        >>> it.Sample([0, 1], [0.2, 0.7]).with_predictions([0.1, 0.9]).p
        array([0.1, 0.9])
        """
        classes = self.classes if self.several else None
        predictions, rounded = read_predictions(p, self.n, classes)
        return self.replaced(predictions=predictions, rounded=rounded)

    def only(self, *names: str) -> Self:
        """Keep some of the covariates.

        Parameters
        ----------
        *names : str
            Names of the covariates to keep, in the order wanted.

        Returns
        -------
        Rows
            The same rows with these covariates.

        Examples
        --------
        >>> import itrust as it
        >>> it.Sample([0, 1], [0.2, 0.7], {"age": [30, 41], "sex": ["f", "m"]}).only("sex").names
        ('sex',)
        """
        return self.with_columns(tuple(self.column(name) for name in names))

    def with_names(self, names: Sequence[str]) -> Self:
        """Keep some of the covariates: `only`, as a `Scan` has it, too."""
        return self.only(*names)

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
        tuple of Rows
            One for each fraction; rows keep their order.

        Examples
        --------
        >>> import itrust as it
        >>> s = it.Sample([0, 1] * 50, [0.5] * 100)
        >>> [part.n for part in s.split([0.5, 0.25, 0.25], rng=0)]
        [50, 25, 25]
        """
        shares = np.asarray(fractions, dtype=float)
        if shares.ndim != 1 or not shares.size or not (shares > 0).all() or shares.sum() > 1 + 1e-9:
            problem = (
                "{argument} must be a list of positive numbers that sum to at most 1, such as "
                "[0.5, 0.5], not {value}"
            )
            raise InputError(problem, argument="fractions", value=fractions)
        part = self.design.parts(shares, rng)
        rows = [np.flatnonzero(part == k) for k in range(shares.size)]
        for k, chosen in enumerate(rows):
            if chosen.size < 2:
                problem = (
                    f"part {k} of the split would have {chosen.size} of {self.n} rows; each part "
                    "needs at least 2"
                )
                count = chosen.size
                raise InputError(problem, argument="fractions", value=fractions, count=count)
        return tuple(self.take(chosen) for chosen in rows)

    def __repr__(self) -> str:
        classes = f"classes {listed(self.classes)}, " if self.several else ""
        on = listed(self.names) or "none"
        return f"<{type(self).__name__}: {self.n:,} rows, {classes}covariates {on}>"

    def __str__(self) -> str:
        if self.codes is None:
            return repr(self)
        w = self.weights_or_ones
        rates = 100 * np.array([w @ (self.codes == k) for k in range(len(self.classes))]) / w.sum()
        means = 100 * (w @ self.predictions) / w.sum()
        if self.several:
            head = f"Sample of {self.n:,} rows, {len(self.classes)} classes"
            names = [shown(name) for name in self.classes]
            labels = [counted(int(count), "label") for count in self.counts]
            width, digits = (max(map(len, texts)) for texts in (names, labels))
            lines = [
                f"  {name:<{width}}  {label:>{digits}} ({rate:.1f} %), mean prediction {mean:.1f} %"
                for name, label, rate, mean in zip(names, labels, rates, means, strict=True)
            ]
        else:
            positive = f"{int(self.y.sum()):,} positive ({rates[1]:.1f} %)"
            head = f"Sample of {self.n:,} rows: {positive}, mean prediction {means[0]:.1f} %"
            lines = []
        width = max((len(name) for name in self.names), default=0)
        covariates = [f"  {c.name:<{width}}  {c.kind:<8}  {c.extent()}" for c in self.columns]
        notes = [f"  note: {note}" for note in self.notes]
        first = ", ".join([head, *drawn_in_words(self.design)])
        return "\n".join([first, *lines, *covariates, *notes])

    def one_class(self, name: Any) -> Any:
        """Take one class against the rest.

        Nothing is read or encoded again: covariates and design are shared, and the rows of a
        class are made once. Of two classes, those of the second are the usual binary sample.

        Parameters
        ----------
        name : object
            One of `classes`.

        Returns
        -------
        Sample or Population
            Labels that are 1 for this class, its probabilities, and the covariates.

        Examples
        --------
        >>> import itrust as it
        >>> s = it.Sample([0, 2, 1], [[0.6, 0.2, 0.2], [0.1, 0.1, 0.8], [0, 1, 0]])
        >>> s.one_class(2).y
        array([0., 1., 0.])
        """
        return self.outcome(class_position(self.classes, name))


def odd_rows(
    rows: Rows, counts: IntArray, certain: bool, p: FloatArray, columns: tuple[Column, ...]
) -> list[str]:
    """Say what is odd about labels, probabilities and covariates, of which some are looked at."""
    said = []
    seen = [name for name, count in zip(rows.classes, counts, strict=True) if count]
    if not rows.several and counts.min() == 0:
        label = int(counts.argmax())
        value = rows.classes[label]
        what = "one that counts" if value is None else f"{shown(value)}, counted"
        said.append(f"one class only: every label is {what} as {label}")
    elif len(seen) == 1:
        said.append(f"one class only: every label is {shown(seen[0])}")
    elif len(seen) < len(rows.classes):
        said.append(f"no label is {listed([name for name in rows.classes if name not in seen])}")
    if certain:
        said.append("every p is 0 or 1: are these predicted classes instead of probabilities?")
    return [*said, *(note for own in p.T for note in covariate_notes(Points(own, columns)))]


def drawn_in_words(design: Design) -> list[str]:
    """How rows were drawn, for the first line about a sample."""
    replicates = design.replicate_weights
    said = ["" if design.weights is None else "weighted"]
    if design.cluster is not None:
        said.append(counted(design.clusters, "cluster"))
    if design.strata is not None:
        strata = int(np.unique(design.strata).size)
        said.append(f"{strata:,} {'stratum' if strata == 1 else 'strata'}")
    if replicates is not None:
        sets = counted(replicates.shape[1], "set")
        said.append(f"{sets} of replicate weights ({design.replication})")
    return [text for text in said if text]


def row_index(rows: object, n: int) -> AnyArray:
    """Positions of rows that a user names: positions, a mask or a slice."""
    if isinstance(rows, slice):
        return np.arange(n)[rows]
    index = np.asarray(rows)
    if index.dtype == bool:
        if index.size != n:
            mask = counted(index.size, "row")
            problem = f"the row mask has {mask}, but there are {n:,} labels; align them"
            raise InputError(problem, argument="rows", count=index.size)
        return np.flatnonzero(index)
    if index.ndim != 1 or not (index.size == 0 or np.issubdtype(index.dtype, np.integer)):
        problem = "{argument} must be integer positions, a boolean mask or a slice"
        raise InputError(problem, argument="rows")
    outside = (index < -n) | (index >= n)
    if outside.any():
        problem = f"there is no row {{value}}; rows are 0 to {n - 1}"
        raise InputError(problem, argument="rows", value=int(index[np.argmax(outside)]))
    return index.astype(np.int64)
