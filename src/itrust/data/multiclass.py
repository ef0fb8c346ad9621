"""`MulticlassSample`: labels of several classes, read from whatever users bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import (
    AnyArray,
    FloatArray,
    InputError,
    Setting,
    Subject,
    counted,
    did_you_mean,
    listed,
)
from itrust.data.encoding import as_arrow, encode_numbers
from itrust.data.frames import frame_columns, is_frame
from itrust.data.intake import MissingRule, same_index
from itrust.data.sample import Sample, refuse_too_few

SUM_TOLERANCE = 1e-6


class MulticlassSample:
    """Labels of m classes, their probabilities and the covariates.

    Rows must be independent: clusters are for samples of two classes.

    Parameters
    ----------
    y : column of n labels
        Names of classes, or whole numbers from 0 to m - 1.
    p : (n, m) array, mapping or frame
        The predicted probabilities, one column for each class; rows sum to 1.
    x : frame, mapping, array or list of rows, optional
        The covariates, as for `Sample`. Default: there are none.
    classes : sequence, optional
        Names of the columns of p, in order; for a mapping or frame the order to take them in.
        Default: the names of a mapping or frame; else 0 to m - 1 if y has such numbers (0 or
        all of them among them), else the sorted values of y if there are m.
    weights : column of n survey weights, optional
        Not negative, at least two of them above 0. Default: every row counts alike.
    names : sequence of str, optional
        Names of the covariates. Default: those of a frame or mapping; x1, x2, ... for arrays.
    missing : {"error", "level"}
        What to do with missing covariates: refuse them (the default) or take them as a level of
        their own. Rows cannot be dropped here, as labels and matrix would no longer fit.

    Attributes
    ----------
    p : (n, m) array of float
        The predicted probabilities.
    classes : tuple
        Names of the classes, in the order of the columns of p.
    codes : (n,) array of int
        For each row the position of its label in `classes`.

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
                "{setting} is for Sample",
                argument="missing",
                value=missing,
                details={"setting": Setting("missing", missing)},
                hint="leave those rows out of y, p and x before, or use {}",
                settings=[Setting("missing", "level")],
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
        """Make a sample of one class against the rest.

        Parameters
        ----------
        name : object
            One of `classes`.

        Returns
        -------
        Sample
            Labels that are 1 for this class, its probabilities, and the covariates.
        """
        if name not in self.classes:
            raise InputError(
                "there is no class {value}; {guess}",
                argument="name",
                value=name,
                details={"guess": did_you_mean(str(name), [str(c) for c in self.classes])},
            )
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
        """Data-quality notes on the covariates."""
        return tuple(note for column in self._first.columns for note in column.notes())

    def __repr__(self) -> str:
        on = listed(self.names) or "none"
        return (
            f"<MulticlassSample: {self.n:,} rows, classes {listed(self.classes)}, covariates {on}>"
        )


def _named_columns(p: object) -> dict[Any, object] | None:
    """Columns by name for a mapping or a frame, None for an array."""
    if isinstance(p, Mapping):
        return dict(p)
    return dict(frame_columns(p)) if is_frame(p) else None


def _in_order(names: tuple[Any, ...], classes: Sequence[Any] | None) -> tuple[Any, ...]:
    if classes is None:
        return names
    wanted = tuple(classes)
    if set(wanted) != set(names) or len(wanted) != len(names):
        raise InputError(
            "{argument} must be the names of the columns of p in some order, {names}, not {wanted}",
            argument="classes",
            value=wanted,
            details={"names": listed(names), "wanted": listed(wanted)},
        )
    return wanted


def _stacked(columns: list[object]) -> FloatArray:
    read = [encode_numbers(column, Subject(f"p, column {k}")) for k, column in enumerate(columns)]
    if len({values.size for values in read}) > 1:
        sizes = listed([values.size for values in read])
        raise InputError(
            f"the columns of p must have the same number of rows, not {sizes}", argument="p"
        )
    return np.column_stack(read)


def _labels(y: object, n: int) -> list[Any]:
    labels: list[Any] = as_arrow(y, Subject("label")).to_pylist()
    if len(labels) != n:
        raise InputError(
            f"y must have one label for each of the {n:,} rows of p, but it has {{count}}",
            argument="y",
            count=len(labels),
        )
    if None in labels:
        raise InputError(
            "label is missing in {row}; drop such rows first",
            argument="y",
            row=labels.index(None),
            count=labels.count(None),
        )
    return labels


def _checked_probabilities(p: object) -> FloatArray:
    try:
        matrix = np.array(p, dtype=float)
    except (TypeError, ValueError):
        raise InputError(
            "{argument} must be a matrix of numbers, one column a class", argument="p"
        ) from None
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise InputError(
            "{argument} must have one row a label and one column a class, at least two, not shape "
            "{value}",
            argument="p",
            value=matrix.shape,
        )
    refuse_too_few(len(matrix))
    wrong = ~((matrix >= 0) & (matrix <= 1))
    if wrong.any():
        row, column = (int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
        raise InputError(
            f"prob must lie in [0, 1]; {{row}}, column {column} has {matrix[row, column]:g}",
            argument="p",
            row=row,
            value=float(matrix[row, column]),
            count=int(wrong.any(axis=1).sum()),
        )
    sums = matrix.sum(axis=1)
    off = np.abs(sums - 1) > SUM_TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise InputError(
            f"the probabilities of a row must sum to 1; those of {{row}} sum to {sums[row]:.6g} "
            f"({counted(int(off.sum()), 'row')} in all)",
            argument="p",
            row=row,
            value=float(sums[row]),
            count=int(off.sum()),
        )
    return matrix


def _classes(labels: list[Any], m: int, named: tuple[Any, ...] | None) -> tuple[Any, ...]:
    if named is not None:
        if len(named) != m or len(set(named)) != m:
            raise InputError(
                f"{{argument}} must name the {m} columns of p, each once, not {{named}}",
                argument="classes",
                value=named,
                details={"named": listed(named)},
            )
        return named
    found = set(labels)
    whole = all(isinstance(label, int) for label in found)
    if whole and found <= set(range(m)) and (0 in found or len(found) == m):
        return tuple(range(m))
    if len(found) == m and len({type(label) for label in found}) == 1:
        return tuple(sorted(found))
    raise InputError(
        f"y has {counted(len(found), 'value')} ({{found}}) and p has {m} columns; pass "
        f"classes=[...] in the order of the columns",
        argument="y",
        details={"found": listed(sorted(found, key=str))},
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
            "{row} has the label {value}, which is none of the classes {classes}",
            argument="y",
            row=row,
            value=labels[row],
            count=int((codes < 0).sum()),
            details={"classes": listed(classes)},
        )
    return codes
