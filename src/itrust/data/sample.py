"""`Sample`, the one door for data: validated, encoded and frozen.

Everything behind this door trusts what it gets. Rows in messages count from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from itrust._core import (
    AnyArray,
    FloatArray,
    InputError,
    IntArray,
    Rng,
    as_generator,
    counted,
    did_you_mean,
    listed,
    shown,
    smallest_tickets,
    tickets,
)
from itrust.data.column import Column
from itrust.data.intake import (
    MissingRule,
    named_columns,
    read_parts,
    read_probabilities,
    refuse_empty_weights,
    same_index,
    same_length,
)
from itrust.data.rows import Chunk, Points, called_impossible
from itrust.data.source import Pilot


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Sample:
    """Labels, predicted probabilities and covariates of the rows to be judged.

    Parameters
    ----------
    y : column of n labels
        0 and 1, booleans, or any two values with `positive` named.
    p : column of n probabilities of the positive label
        In [0, 1]. A matrix (n, 2) is accepted when `positive` is named: its columns then
        carry the label values as names, or stand in sorted order of the labels, as
        scikit-learn's `predict_proba` gives them.
    x : covariates, optional
        A data frame (pandas, polars, Arrow), a mapping of columns, an array (n, d) or (n,), or
        a list of rows. Text stays a category; dates become days since 1970-01-01. Without
        covariates the tests ask about calibration alone.
    weights : column of n survey weights, optional
        Non-negative, not all zero, and without information on y beyond (x, p).
    cluster : column of n unit names, optional
        Rows of one unit (a person measured twice) need not be independent.
    names : names of the covariates, optional
        For arrays; a frame brings its own.
    positive : value, optional
        The label that counts as 1.
    missing : {"error", "level", "drop"}
        What to do with missing covariates: refuse, treat as a level of its own (for numbers:
        equal only to other missing values), or drop those rows and note how many.

    Examples
    --------
    >>> import itrust as it
    >>> s = it.Sample([0, 1, 1], [0.2, 0.7, 0.9], {"age": [30, 41, 52], "sex": ["f", "m", "f"]})
    >>> print(s)
    Sample of 3 rows: 2 positive (66.7 %), mean prediction 60.0 %
      age  number    30 to 52
      sex  category  'f', 'm'
    """

    y: FloatArray
    p: FloatArray
    columns: tuple[Column, ...]
    weights: FloatArray | None
    cluster: IntArray | None
    values: tuple[Any, Any]
    dropped: tuple[str, ...]

    def __init__(
        self,
        y: object,
        p: object,
        x: object = None,
        weights: object = None,
        cluster: object = None,
        names: Sequence[str] | None = None,
        positive: object = None,
        missing: MissingRule = "error",
    ) -> None:
        columns = x.items() if isinstance(x, Mapping) else [("x", x)]
        roles = [("label", y), ("prob", p), ("weights", weights), ("cluster", cluster)]
        same_index([*roles, *columns])
        self._fill(
            **read_parts(
                y,
                p,
                x,
                weights=weights,
                cluster=cluster,
                names=names,
                positive=positive,
                missing=missing,
            )
        )

    def _fill(self, **parts: Any) -> None:
        _refuse_too_few(parts["y"].size)
        if parts["weights"] is not None:
            refuse_empty_weights(parts["weights"])
        for name, value in parts.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    @classmethod
    def from_frame(
        cls,
        frame: object,
        label: str,
        prob: str,
        on: str | Sequence[str] = (),
        weights: str | None = None,
        cluster: str | None = None,
        positive: object = None,
        missing: MissingRule = "error",
    ) -> Self:
        """Take the named columns of a pandas, polars or Arrow frame.

        >>> import pyarrow as pa
        >>> import itrust as it
        >>> homes = pa.table({"owner": [1, 0], "p": [0.8, 0.3], "race": ["a", "b"]})
        >>> it.Sample.from_frame(homes, label="owner", prob="p", on="race").names
        ('race',)
        """
        roles = {"label": label, "prob": prob, "weights": weights, "cluster": cluster}
        columns, named, chosen = named_columns(frame, roles, on)
        for role in ("label", "prob", "weights"):
            others = [r for r, name in named.items() if r != role and name == named.get(role)]
            if others:
                raise InputError(f"{named[role]!r} cannot be {role} and {others[0]} at once")
            if role != "weights" and named[role] in chosen:
                raise InputError(f"{named[role]!r} is the {role} column; take it out of `on`")
        return cls(
            columns[named["label"]],
            columns[named["prob"]],
            {name: columns[name] for name in chosen},
            weights=columns[named["weights"]] if weights is not None else None,
            cluster=columns[named["cluster"]] if cluster is not None else None,
            positive=positive,
            missing=missing,
        )

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.y.size)

    def __len__(self) -> int:
        return self.n

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """One covariate by name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise InputError(f"there is no covariate {name!r}; {did_you_mean(name, self.names)}")

    @cached_property
    def clusters(self) -> int | None:
        """Number of clusters, None without."""
        return None if self.cluster is None else int(np.unique(self.cluster).size)

    @cached_property
    def points(self) -> Points:
        """The label-free view that kernels see."""
        return Points(self.p, self.columns)

    @property
    def residuals(self) -> FloatArray:
        """Observed minus predicted, e = y - p, shape (n,); positive: underestimated."""
        return self.y - self.p

    @cached_property
    def weights_or_ones(self) -> FloatArray:
        """The weights scaled to mean 1, or 1 for every row, shape (n,); no result needs a scale."""
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
        """What an attentive colleague would say about these rows."""
        said = list(self.dropped)
        for label, value in enumerate(self.values):
            if (self.y == label).all():
                said.append(f"one class only: every label is {shown(value)}, counted as {label}")
        if np.isin(self.p, (0.0, 1.0)).all():
            said.append("every p is 0 or 1: are these predicted classes instead of probabilities?")
        said.extend(remark for column in self.columns for remark in column.remarks())
        return tuple(said)

    @property
    def impossible(self) -> IntArray:
        """Rows whose label the model called impossible: p = 0 and y = 1, or p = 1 and y = 0."""
        return np.flatnonzero(called_impossible(self.y, self.p))

    def chunks(self, size: int) -> Iterator[Chunk]:
        """All rows in order, `size` at a time, without copying."""
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
        """Random rows, always the same ones; labels stay behind."""
        drawn = tickets(0, self.n)
        rows = smallest_tickets(drawn, size)
        v = np.square(self.weights_or_ones) * self.p * (1 - self.p)
        return Pilot(self.points.take(rows), v[rows], drawn[rows], self.n)

    @property
    def in_memory(self) -> Self:
        """The sample itself: all rows are at hand."""
        return self

    def take(self, rows: object) -> Self:
        """Keep some rows: positions, a boolean mask or a slice. Names, levels, notes stay.

        >>> import itrust as it
        >>> it.Sample([0, 1, 1], [0.2, 0.7, 0.9]).take([True, False, True]).y
        array([0., 1.])
        """
        index = _row_index(rows, self.n)
        kept = object.__new__(type(self))
        kept._fill(
            y=self.y[index],
            p=self.p[index],
            columns=tuple(column.take(index) for column in self.columns),
            weights=None if self.weights is None else self.weights[index],
            cluster=None if self.cluster is None else self.cluster[index],
            values=self.values,
            dropped=self.dropped,
        )
        return kept

    def with_columns(self, columns: tuple[Column, ...]) -> Self:
        """The same rows with other covariates, which are checked already."""
        other = object.__new__(type(self))
        kept = ("y", "p", "weights", "cluster", "values", "dropped")
        other._fill(**{name: getattr(self, name) for name in kept}, columns=columns)
        return other

    def with_predictions(self, p: object) -> Self:
        """The same rows with other probabilities, such as repaired ones.

        >>> import itrust as it
        >>> it.Sample([0, 1], [0.2, 0.7]).with_predictions([0.1, 0.9]).p
        array([0.1, 0.9])
        """
        other = object.__new__(type(self))
        kept = ("y", "columns", "weights", "cluster", "values", "dropped")
        checked = read_probabilities(p, self.n)
        other._fill(**{name: getattr(self, name) for name in kept}, p=checked)
        return other

    def only(self, *names: str) -> Self:
        """The same rows with some of the covariates.

        >>> import itrust as it
        >>> it.Sample([0, 1], [0.2, 0.7], {"age": [30, 41], "sex": ["f", "m"]}).only("sex").names
        ('sex',)
        """
        return self.with_columns(tuple(self.column(name) for name in names))

    def split(self, fractions: Sequence[float], rng: Rng = None) -> tuple[Self, ...]:
        """Split at random into parts of the given fractions; clusters are never torn apart.

        Fractions that sum to less than 1 leave the remaining rows out. Rows keep their order.

        >>> import itrust as it
        >>> s = it.Sample([0, 1] * 50, [0.5] * 100)
        >>> [part.n for part in s.split([0.5, 0.25, 0.25], rng=0)]
        [50, 25, 25]
        """
        shares = np.asarray(fractions, dtype=float)
        if (
            shares.ndim != 1
            or shares.size == 0
            or not (shares > 0).all()
            or shares.sum() > 1 + 1e-9
        ):
            raise InputError(
                f"fractions must be a list of positive numbers that sum to at most 1, such as "
                f"[0.5, 0.5], not {fractions!r}"
            )
        if self.cluster is None:
            units, codes = self.n, np.arange(self.n)
        else:
            levels, codes = np.unique(self.cluster, return_inverse=True)
            units = levels.size
        shuffled = as_generator(rng).permutation(units)
        cuts = np.rint(np.cumsum([0.0, *shares]) * units).astype(int)
        part = np.full(units, -1)
        for k, (start, stop) in enumerate(pairwise(cuts)):
            part[shuffled[start:stop]] = k
        rows = [np.flatnonzero(part[codes] == k) for k in range(shares.size)]
        for k, chosen in enumerate(rows):
            if chosen.size < 2:
                raise InputError(
                    f"part {k} of the split would have {chosen.size} of {self.n} rows; "
                    f"each part needs at least 2"
                )
        return tuple(self.take(chosen) for chosen in rows)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for array in (self.y, self.p, self.weights, self.cluster):
            if array is not None:
                array.flags.writeable = False

    def __str__(self) -> str:
        w = self.weights_or_ones
        rates = [100 * float(w @ values / w.sum()) for values in (self.y, self.p)]
        head = (
            f"Sample of {self.n:,} rows: {int(self.y.sum()):,} positive ({rates[0]:.1f} %), "
            f"mean prediction {rates[1]:.1f} %"
        )
        extras = [
            "weighted" if self.weights is not None else "",
            "" if self.clusters is None else counted(self.clusters, "cluster"),
        ]
        width = max((len(name) for name in self.names), default=0)
        lines = [f"  {c.name:<{width}}  {c.kind:<8}  {c.extent()}" for c in self.columns]
        notes = [f"  note: {note}" for note in self.notes]
        return "\n".join([", ".join(filter(None, [head, *extras])), *lines, *notes])

    def __repr__(self) -> str:
        return f"<Sample: {self.n:,} rows, covariates {listed(self.names)}>"


def _refuse_too_few(n: int) -> None:
    if n < 2:
        raise InputError(f"a sample needs at least 2 rows; this one has {n}")


def checked_sample(sample: object) -> Sample:
    """Pass a Sample on; refuse anything else with the way to make one."""
    if type(sample).__name__ == "MulticlassSample":
        raise InputError(
            "this is a MulticlassSample; use multiclass_test(sample), or sample.one_class(name)"
        )
    if not isinstance(sample, Sample):
        raise InputError(
            f"expected an itrust.Sample, not a {type(sample).__name__}; make one with "
            f"Sample(y, p, x) or Sample.from_frame(frame, label=..., prob=..., on=[...])"
        )
    return sample


def _row_index(rows: object, n: int) -> AnyArray:
    if isinstance(rows, slice):
        return np.arange(n)[rows]
    index = np.asarray(rows)
    if index.dtype == bool:
        same_length("the row mask", index.size, n)
        return np.flatnonzero(index)
    if index.ndim != 1 or not (index.size == 0 or np.issubdtype(index.dtype, np.integer)):
        raise InputError("rows must be integer positions, a boolean mask or a slice")
    outside = (index < -n) | (index >= n)
    if outside.any():
        raise InputError(f"there is no row {index[np.argmax(outside)]}; rows are 0 to {n - 1}")
    return index.astype(np.int64)
