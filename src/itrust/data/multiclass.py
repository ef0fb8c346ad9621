"""`MulticlassSample`: labels of several classes, read from whatever users bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import AnyArray, FloatArray, InputError, counted, did_you_mean, listed, shown
from itrust.data.encoding import as_arrow, encode_numbers
from itrust.data.intake import MissingRule, frame_columns, same_index
from itrust.data.sample import Sample

SUM_TOLERANCE = 1e-6


class MulticlassSample:
    """Labels of m classes, their probabilities and the covariates.

    Parameters
    ----------
    y : (n,) labels
        Names of classes, or with `classes=None` whole numbers from 0 to m - 1.
    p : (n, m) array, or mapping or frame with one column a class
        Rows sum to 1.
    x, weights, names, missing
        As for `Sample`; rows with missing covariates cannot be dropped here. Rows must be
        independent: clusters are for binary samples.
    classes : sequence, optional
        Names of the columns of p, in order; for a mapping or frame the order to take them in.
        Default: the names of a mapping or frame; else 0 to m - 1 if y has such numbers (0 or
        all of them among them), else the sorted values of y if there are m.

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

    def __init__(
        self,
        y: object,
        p: object,
        x: object = None,
        classes: Sequence[Any] | None = None,
        *,
        weights: object = None,
        names: Sequence[str] | None = None,
        missing: MissingRule = "error",
    ) -> None:
        if missing == "drop":
            raise InputError(
                "missing='drop' is for Sample; leave those rows out of y, p and x before, or "
                "use missing='level'"
            )
        same_index([("y", y), ("p", p), ("weights", weights), ("x", x)])
        columns = _named_columns(p)
        if columns is None:
            self.p = _checked_probabilities(p)
            named = None if classes is None else tuple(classes)
        else:
            named = _in_order(tuple(columns), classes)
            self.p = _checked_probabilities(_stacked([columns[name] for name in named]))
        labels = _labels(y, len(self.p))
        self.classes = _classes(labels, self.p.shape[1], named)
        self.codes = _codes(labels, self.classes)
        self.p.flags.writeable = self.codes.flags.writeable = False
        self._settings = {"weights": weights, "names": names, "missing": missing}
        self._x = x
        self._first = self._binary(0)  # checks the covariates and the weights once

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.p)

    def __len__(self) -> int:
        return self.n

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates."""
        return self._first.names

    def _binary(self, code: int) -> Sample:
        settings: dict[str, Any] = self._settings
        return Sample(self.codes == code, self.p[:, code], self._x, **settings)

    def one_class(self, name: Any) -> Sample:
        """One class against the rest, as a binary sample."""
        if name not in self.classes:
            hint = did_you_mean(str(name), [str(c) for c in self.classes])
            raise InputError(f"there is no class {name!r}; {hint}")
        return self._binary(self.classes.index(name))

    @cached_property
    def impossible(self) -> int:
        """Number of rows whose label the model gave probability 0."""
        return int(np.count_nonzero(self.p[np.arange(self.n), self.codes] == 0))

    @property
    def most_frequent(self) -> Any:
        """The class with the most labels."""
        return self.classes[int(np.bincount(self.codes, minlength=len(self.classes)).argmax())]

    @property
    def notes(self) -> tuple[str, ...]:
        """What an attentive colleague would say about the covariates."""
        return tuple(remark for column in self._first.columns for remark in column.remarks())

    def __repr__(self) -> str:
        on = listed(self.names) or "none"
        return (
            f"<MulticlassSample: {self.n:,} rows, classes {listed(self.classes)}, covariates {on}>"
        )


def _named_columns(p: object) -> dict[Any, object] | None:
    """Columns by name for a mapping or a frame, None for an array."""
    if isinstance(p, Mapping):
        return dict(p)
    return dict(frame_columns(p)) if hasattr(p, "columns") else None


def _in_order(names: tuple[Any, ...], classes: Sequence[Any] | None) -> tuple[Any, ...]:
    if classes is None:
        return names
    wanted = tuple(classes)
    if set(wanted) != set(names) or len(wanted) != len(names):
        raise InputError(
            f"classes must be the names of the columns of p in some order, {listed(names)}, not "
            f"{listed(wanted)}"
        )
    return wanted


def _stacked(columns: list[object]) -> FloatArray:
    read = [encode_numbers(column, f"p, column {k}") for k, column in enumerate(columns)]
    if len({values.size for values in read}) > 1:
        sizes = listed([values.size for values in read])
        raise InputError(f"the columns of p must have the same number of rows, not {sizes}")
    return np.column_stack(read)


def _labels(y: object, n: int) -> list[Any]:
    labels: list[Any] = as_arrow(y, "label").to_pylist()
    if len(labels) != n:
        raise InputError(
            f"y must have one label for each of the {n:,} rows of p, but it has {len(labels):,}"
        )
    if None in labels:
        raise InputError(f"label is missing in row {labels.index(None)}; drop such rows first")
    return labels


def _checked_probabilities(p: object) -> FloatArray:
    try:
        matrix = np.array(p, dtype=float)
    except (TypeError, ValueError):
        raise InputError("p must be a matrix of numbers, one column a class") from None
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise InputError(
            f"p must have one row a label and one column a class, at least two, not shape "
            f"{matrix.shape}"
        )
    if len(matrix) < 2:
        raise InputError(f"a sample needs at least 2 rows; this one has {len(matrix)}")
    wrong = ~((matrix >= 0) & (matrix <= 1))
    if wrong.any():
        row, column = (int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
        raise InputError(
            f"prob must lie in [0, 1]; row {row}, column {column} has {matrix[row, column]:g}"
        )
    sums = matrix.sum(axis=1)
    off = np.abs(sums - 1) > SUM_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise InputError(
            f"the probabilities of a row must sum to 1; those of row {row} sum to {sums[row]:.6g} "
            f"({counted(int(off.sum()), 'row')} in all)"
        )
    return matrix


def _classes(labels: list[Any], m: int, named: tuple[Any, ...] | None) -> tuple[Any, ...]:
    if named is not None:
        if len(named) != m or len(set(named)) != m:
            raise InputError(
                f"classes must name the {m} columns of p, each once, not {listed(named)}"
            )
        return named
    found = set(labels)
    whole = all(isinstance(label, int) for label in found)
    if whole and found <= set(range(m)) and (0 in found or len(found) == m):
        return tuple(range(m))
    if len(found) == m and len({type(label) for label in found}) == 1:
        return tuple(sorted(found))
    raise InputError(
        f"y has {counted(len(found), 'value')} ({listed(sorted(found, key=str))}) and p has {m} "
        f"columns; pass classes=[...] in the order of the columns"
    )


def _codes(labels: list[Any], classes: tuple[Any, ...]) -> AnyArray:
    position = {name: code for code, name in enumerate(classes)}
    by_text = {str(name): code for name, code in position.items()}
    codes = np.array(
        [position.get(label, by_text.get(str(label), -1)) for label in labels], dtype=np.int64
    )
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise InputError(
            f"row {row} has the label {shown(labels[row])}, which is none of the classes "
            f"{listed(classes)}"
        )
    return codes
