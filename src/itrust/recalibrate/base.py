"""`Recalibrator`: what all methods have in common: learn from labelled rows, map (p, x) to p.

A method sees predictions (n, K) and gives such: K = 1 for two labels. What a method cannot learn of
several classes together is learned of each class against the rest.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from itrust import __version__
from itrust._core import (
    BoolArray,
    EntryShape,
    FloatArray,
    InputError,
    Maybe,
    Record,
    Subject,
    Text,
    did_you_mean,
    inside,
    listed,
    mended_by,
    plain,
    progress_stages,
    same_size,
    shown,
    tuple_of,
    unfit,
    write_whole,
)
from itrust.data import (
    Column,
    FileSet,
    Kinds,
    MulticlassPopulation,
    MulticlassSample,
    Rows,
    Sample,
    Scan,
    columns_named,
    of_one_column,
    read_covariates,
    same_length,
)
from itrust.recalibrate.applying import Application, as_probabilities, write_recalibrated
from itrust.recalibrate.rows import (
    CalibrationRows,
    Predictions,
    labelled,
    refuse_other_outcomes,
    rows_in_files,
)
from itrust.recalibrate.saved import (
    ATTRIBUTES,
    CLASSES,
    CURE,
    MAX_BYTES,
    SCHEMA,
    refuse_contradictions,
    whole_record,
)

READING, FITTING = "reading the rows", "fitting"
READ_A_SECOND = 1e6  # rows, about
NEW_COLUMN = "p_recalibrated"

Given = TypeVar("Given", bound=Rows | Scan)


class SavedMethod(EntryShape):
    """One of some methods by their names: what it has learned, or its settings alone."""

    def __init__(self, *methods: type[Recalibrator], fitted: bool = True) -> None:
        self.methods, self.fitted = methods, fitted  # no method: any for two labels

    def read(self, value: Any, place: str) -> Recalibrator:
        """Give the method."""
        from itrust.recalibrate.methods import METHODS

        known = {method.__name__: method for method in self.methods or METHODS.values()}
        name = value.get("method") if isinstance(value, Mapping) else None
        if not isinstance(name, str) or name not in known:
            guess = did_you_mean(str(name), list(known))
            unfit(
                inside(place, "method"),
                f"must be the name of a method, not {shown(name)} ({guess})",
            )
        method = known[name]
        if self.fitted:
            return method._read(value, place)
        entries = {"method": Text(), "settings": Record(method._SETTINGS)}
        return method(**Record(entries).read(value, place)["settings"])

    def write(self, value: Recalibrator) -> dict[str, Any]:
        """Give the record."""
        if self.fitted:
            return value.to_dict()
        settings = Record(value._SETTINGS).write(value.get_params(deep=False))
        return {"method": type(value).__name__, "settings": settings}


FITS: Record = Record({"fits": tuple_of(Maybe(SavedMethod()), at_least=1)})


class Recalibrator(BaseEstimator):  # type: ignore[misc]
    """A recalibration of probabilities, learned from labelled rows that the model has not seen.

    Parameters are settings and never change; `fit` fills attributes with a trailing underscore.
    Copies are made with `sklearn.base.clone`; `save` writes JSON, `load` reads it.

    Attributes
    ----------
    reads_covariates : bool
        Whether the method uses covariates; the others use the prediction alone.
    for_classes : bool
        Whether it is a method for several classes alone.
    columns_ : dict of str to str
        The covariates of the rows that it was fitted on, each with its kind: "number", "boolean",
        "date" or "category".
    missing_levels_ : dict of str to (str or None)
        For each of these covariates the level that stands for a missing value; None if there was
        no missing value in the fit.
    seen_levels_ : dict of str to list
        The levels of each covariate that is a category.
    prob_ : str or None
        The name of the column of probabilities that it was fitted for; None if that had no name.
    n_rows_ : int
        Number of rows that it was fitted on, without rows of weight 0.
    n_available_ : int
        Number of rows that there were: more than `n_rows_` where it was fitted on random ones.
    classes_ : tuple or None
        The classes in the order of the columns of p, if it was fitted on a `MulticlassSample`.
    fits_ : tuple of (Recalibrator or None), or None
        If each class was learned against the rest, what was learned, of two classes of the second
        alone; None for a class that no row has as its label.
    """

    reads_covariates: ClassVar[bool] = False
    for_classes: ClassVar[bool] = False
    prob_: str | None = None
    classes_: tuple[Any, ...] | None = None
    fits_: tuple[Recalibrator | None, ...] | None = None
    _classes_at_once: ClassVar[float] = math.inf  # the fewest that are not each learned apart
    _seconds: ClassVar[float] = 1.0  # that fitting takes on many rows, about
    _SETTINGS: ClassVar[Mapping[str, EntryShape]] = {}  # what a file may say of each parameter
    _LEARNED: ClassVar[Record]  # and of what was learned

    def fit(
        self, sample: Sample | Scan | MulticlassSample, *, progress: bool | None = None
    ) -> Self:
        """Learn from labelled rows; rows of weight 0 are left out.

        Of several classes `Local` and `Temperature` learn all at once; the other methods for two
        labels learn each class against the rest, and rows are divided by their sums. Two classes
        are two labels: the second one is learned, as of a `Sample`.

        Rows in files may be more than fit into memory. Methods that read the prediction alone learn
        from all of them, in one pass: beyond 500,000 rows, those whose predictions agree to four
        digits (of the distance from 0 or 1) are taken together. The others, whose fits go over the
        rows again and again, learn from 500,000 random rows, chosen without a look at labels. Up to
        500,000 rows both give what `fit(scan.load())` gives. Rows with clusters, strata or
        replicate weights, and those of several classes, are loaded.

        Parameters
        ----------
        sample : Sample, MulticlassSample or a scan
            Rows that the model was not trained on, with labels.
        progress : bool, optional
            Whether to show how far the work is, as for `itrust.audit`; default: in a terminal.

        Returns
        -------
        Recalibrator
            The object itself, fitted.

        Raises
        ------
        InputError
            If all labels (that count) are equal: no method can learn from them.
        """
        to_read = rows_in_files(sample)
        stages = {READING: to_read / READ_A_SECOND} if to_read else {}
        stages |= {FITTING: self._seconds}
        with progress_stages(stages, self._words, progress) as begin:
            rows = CalibrationRows(sample, lambda total: begin(READING, total))
            self._check_settings()
            _ = rows.sample if self.reads_covariates or rows.source.several else rows.predictions
            begin(FITTING)
            return self._learn(rows)

    def _words(self, stage: str) -> str:
        return f"{stage} {type(self).__name__}" if stage == FITTING else stage

    def _learn(self, rows: CalibrationRows) -> Self:
        """Fit on rows that may be read already, for several methods."""
        self._check_settings()
        several = rows.source.several
        if self.for_classes and not several:
            raise InputError(
                "{name} is for several classes; fit it on a MulticlassSample, or take a method for "
                "two labels such as Platt() or Local()",
                argument="sample",
                details={"name": type(self).__name__},
            )
        apart = several and len(rows.source.classes) < self._classes_at_once
        if self.reads_covariates or apart:
            self._begin(rows.sample, rows.available)
        else:
            self._begin(rows.predictions, rows.predictions.n)
        if several:
            self.classes_ = rows.source.classes
        if apart:
            self.fits_ = tuple(self._fitted_to(rows.sample, code) for code in self._codes_apart)
        else:
            self._fit(rows.sample if self.reads_covariates else rows.predictions)
        return self

    def _begin(self, rows: Rows | Predictions, available: int) -> None:
        """Keep what columns there were; refuses labels that are all equal."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        if rows.codes.min() == rows.codes.max():
            raise InputError(
                "every label is {value}, so there is nothing to learn from; take more rows for "
                "calibration",
                argument="y",
                value=rows.classes[int(rows.codes[0])],
            )
        columns = rows.columns if self.reads_covariates else ()
        self.columns_ = {column.name: column.kind for column in columns}
        self.missing_levels_ = {column.name: _missing_level(column) for column in columns}
        self.meanings_ = {
            column.name: dict(zip(column.codes, column.levels, strict=False))
            for column in columns
            if column.codes
        }
        self.seen_levels_: dict[str, list[Any]] = {
            column.name: [column.levels[code] for code in np.unique(column.values) if code >= 0]
            for column in columns
            if column.is_category
        }
        self.n_rows_, self.n_available_ = rows.n, available

    # --- several classes, each against the rest ---------------------------------------------------

    def _for_each(self) -> Recalibrator:
        """What is fitted to one class against the rest."""
        return self

    @property
    def _codes_apart(self) -> Sequence[int]:
        """Positions of the classes that are learned: of two the second."""
        size = len(self.classes_ or ())
        return (1,) if size == 2 else range(size)

    def _fitted_to(self, rows: Rows, code: int) -> Recalibrator | None:
        if not (rows.codes == code).any():
            return None
        method: Recalibrator = clone(self._for_each())
        return method._learn(CalibrationRows(rows.outcome(code)))

    def _joined(self, rows: Rows) -> FloatArray:
        """What the fits give, in rows that sum to 1, (n, K)."""
        p = rows.predictions.copy()
        for code, fit in zip(self._codes_apart, self.fits_ or (), strict=True):
            if fit is not None:
                p[:, code] = as_probabilities(fit._predict(rows.outcome(code)))[:, 0]
        if len(self._codes_apart) == 1:
            p[:, 0] = 1 - p[:, 1]
            return p
        sums = p.sum(axis=1, keepdims=True)
        p = np.where(sums > 0, p, rows.predictions)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    # --- use ------------------------------------------------------------------------------------

    def predict(self, p: object, x: object = None) -> FloatArray:
        """Recalibrate probabilities.

        Parameters
        ----------
        p : column of n probabilities, or (n, K) array, mapping or frame
            What the model predicts, each between 0 and 1; of several classes one column for each,
            in the order of `classes_`.
        x : frame, mapping, array, Sample or Population, optional
            The covariates: a frame or mapping with (at least) the columns that `fit` saw, an array
            with them in that order, or a Sample or Population, or its `columns`. Methods that
            use the prediction alone ignore it; the others need it. A missing value is a
            level of its own.

        Returns
        -------
        (n,) or (n, K) array of float
            The recalibrated probabilities, in the order of the rows, and of `classes_` if it was
            fitted on several classes; the rows then sum to 1.

        Notes
        -----
        A level that `fit` has not seen is treated as rows of no particular category are: what was
        learned about the others is not applied to it; `Local` leaves such rows as they are. Levels
        are compared as they are: the text "1" is not the number 1.
        """
        self._check_fitted()
        if isinstance(p, Rows):
            call = ".predict(rows.p, rows)" if p.codes is None else ".apply(sample)"
            raise InputError(
                "predict takes probabilities; for a {kind} use {call}",
                argument="p",
                value=p,
                details={"kind": type(p).__name__, "call": call},
            )
        told = self._recalibrated(self._points(p, x))
        return told[:, 0] if self.classes_ is None else told

    def apply(
        self,
        sample: Given,
        out: str | Path | None = None,
        *,
        column: str = NEW_COLUMN,
        progress: bool | None = None,
    ) -> Given:
        """Recalibrate the probabilities of a sample or a scan, so that it is ready for the test.

        A scan is read, recalibrated and written some rows at a time, in order: every row of its
        files, with all columns as they are and one more. The new file takes its place at the end;
        whatever happens before that, nothing has changed there.

        Parameters
        ----------
        sample : Sample, MulticlassSample or a scan
            Rows that the fit has not seen, with (at least) its covariates; of several classes, with
            the classes of the fit in their order.
        out : str or Path, optional
            For a scan, the file to write: .csv, .tsv, .jsonl (these also with .gz), .parquet or
            .feather. One that is there is replaced. A sample needs none.
        column : str
            For a scan, the name of the new column; "p_recalibrated" by default. Of several classes
            each has one, such as "p_recalibrated_win".
        progress : bool, optional
            For a scan, whether to show how far the work is; default: in a terminal.

        Returns
        -------
        Sample, MulticlassSample or a scan
            The same rows with recalibrated probabilities: of a scan, those of the file written.
        """
        self._check_fitted()
        given = labelled(sample)
        refuse_other_outcomes(given, self.classes_, "sample")
        if not isinstance(given, Scan):
            told: Given = given.with_predictions(self.predict(given.p, given))
            return told
        if out is None or given.parts is not None:
            raise InputError(
                "the recalibrated rows of a scan of whole files go to a file; name it with "
                "{argument}",
                argument="out",
            )
        place = Path(out)
        if place.resolve() in [file.resolve() for file in given.files]:
            raise InputError(
                "{argument} would overwrite {value}, which is read", argument="out", value=str(out)
            )
        roles = given.roles
        new = tuple(f"{column}_{name}" for name in self.classes_ or ()) or (column,)
        made = Application(self, roles.prob, "error" if roles.missing == "error" else "level")
        with given.file_set.located():
            copy = write_recalibrated(
                made,
                given.file_set,
                place,
                new,
                roles.columns,
                na_values=roles.na_values,
                progress=progress,
            )
        form = replace(copy.written, na_values=given.form.na_values)
        new_roles = replace(roles, prob=new)
        written: Any = replace(given, file_set=FileSet.of(place, form), roles=new_roles)
        return cast("Given", written)

    def unseen(self, x: object) -> dict[str, int]:
        """Count rows with a level that `fit` has not seen; missing values are not counted.

        Parameters
        ----------
        x : frame, mapping, array, Sample or Population
            The covariates, as for `predict`.

        Returns
        -------
        dict of str to int
            The number of such rows by covariate; covariates without any are left out.
        """
        self._check_fitted()
        if not self.seen_levels_:
            return {}  # no category to look at, so x is not needed either
        counts = {}
        for column in self._columns(x):
            if column.is_category:
                seen = set(self.seen_levels_[column.name])
                new = [code for code, level in enumerate(column.levels) if level not in seen]
                counts[column.name] = int(np.isin(column.values, new).sum())
        return {name: count for name, count in counts.items() if count}

    def outside(self, p: object, x: object = None) -> BoolArray:
        """Mark the rows that lie outside the calibration rows, where `Local` corrects nothing.

        These are rows more than a third of the range beyond the range that a number, or the logit
        of p, has among the calibration rows; rows with a level or a missing value that they do not
        have; and rows whose values do not go together as theirs do. Rows that are less far out are
        `at_edge`.

        Parameters
        ----------
        p : column of n probabilities, or (n, K) array, mapping or frame
            What the model predicts, as for `predict`.
        x : frame, mapping, array, Sample or Population, optional
            The covariates, as for `predict`.

        Returns
        -------
        (n,) array of bool
            Only `Local` marks rows, whether or not it changes any. The other methods treat a row
            that is far from all that they know as they treat the nearest.
        """
        self._check_fitted()
        return np.asarray(self._far(self._points(p, x)) >= 1)

    def at_edge(self, p: object, x: object = None) -> BoolArray:
        """Mark the rows at the edge of the calibration rows, where corrections of `Local` fade.

        They get a part of the correction: the less, the nearer they are to being `outside`. About 1
        of 100 calibration rows is such a row itself.

        Parameters
        ----------
        p : column of n probabilities, or (n, K) array, mapping or frame
            What the model predicts, as for `predict`.
        x : frame, mapping, array, Sample or Population, optional
            The covariates, as for `predict`.

        Returns
        -------
        (n,) array of bool
            Only `Local` marks rows.
        """
        self._check_fitted()
        far = self._far(self._points(p, x))
        return np.asarray((far > 0) & (far < 1))

    @property
    def unchanged_(self) -> bool:
        """bool: Whether the fit decided to change nothing; most methods cannot."""
        fits = [fit for fit in self.fits_ or () if fit is not None]
        return bool(fits) and all(fit.unchanged_ for fit in fits)

    def _recalibrated(self, rows: Rows) -> FloatArray:
        """Recalibrated probabilities of checked rows, (n, K)."""
        return as_probabilities(self._predict(rows) if self.fits_ is None else self._joined(rows))

    def _far(self, rows: Rows) -> FloatArray:
        """How far checked rows lie from the calibration rows, (n,): 0 among them, 1 outside."""
        if self.fits_ is None:
            return self._distance(rows)
        pairs = zip(self._codes_apart, self.fits_, strict=True)
        far = [fit._distance(rows.outcome(code)) for code, fit in pairs if fit is not None]
        return np.asarray(np.max(far, axis=0))

    # --- what a method is -----------------------------------------------------------------------

    def _fit(self, rows: Any) -> None:
        """Fill the fitted attributes; from `Rows`, or from `Predictions` without covariates."""
        raise NotImplementedError

    def _predict(self, rows: Rows) -> FloatArray:
        """Map checked rows to probabilities, (n, K)."""
        raise NotImplementedError

    def _distance(self, rows: Rows) -> FloatArray:
        """How far rows lie from the calibration rows, (n,); most methods do not know."""
        return np.zeros(rows.n)

    def _check_settings(self) -> None:
        """Refuse settings that no file may have either."""
        for name, shape in self._SETTINGS.items():
            value = getattr(self, name)
            shape.read(value.tolist() if hasattr(value, "tolist") else value, name)

    def _learned(self) -> dict[str, Any]:
        """All that `_predict` needs: attributes that are named as in `_LEARNED`."""
        return {name: getattr(self, f"{name}_") for name in self._LEARNED.entries}

    def _restore(self, learned: Mapping[str, Any]) -> None:
        """The inverse of `_learned`, given values that are as `_LEARNED` describes."""
        for name, value in learned.items():
            setattr(self, f"{name}_", value)
        self._refuse_misfit()

    def _refuse_misfit(self) -> None:
        """Refuse entries of a file that do not fit each other."""

    # --- files ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Give the settings and all that was learned, ready for JSON.

        Returns
        -------
        dict
            Plain numbers, texts and lists; `from_dict` makes the same recalibrator of it.
        """
        self._check_fitted()
        facts = {name: getattr(self, own) for name, own in ATTRIBUTES.items()}
        facts |= {
            "schema": SCHEMA,
            "version": __version__,
            "method": type(self).__name__,
            "settings": self.get_params(deep=False),
            "classes": self.classes_,
            "learned": self._learned() if self.fits_ is None else {"fits": self.fits_},
        }
        return dict(plain(self._shape(self.classes_).write(facts)))

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Self:
        """Make a fitted recalibrator of what `to_dict` gave.

        Parameters
        ----------
        facts : dict
            What `to_dict` of the same class gave. For a file use `itrust.recalibrate.load`, which
            finds the class.

        Returns
        -------
        Recalibrator
            It predicts as the one that gave the facts.

        Raises
        ------
        InputError
            If an entry is missing, unknown, of another kind or out of range, or does not fit the
            others; the message names its place, such as `learned.slope`.
        """
        with mended_by(*CURE):
            return cls._read(facts, "")

    @classmethod
    def _read(cls, facts: Any, place: str) -> Self:
        """A fitted recalibrator of facts that stand at a place of a file."""
        has_classes = isinstance(facts, Mapping) and "classes" in facts
        classes = CLASSES.read(facts["classes"], "classes") if has_classes else None
        entries = cls._shape(classes).read(facts, place)
        made = cls(**entries["settings"])
        refuse_contradictions(entries, f"{place}." if place else "", made.reads_covariates)
        for name, attribute in ATTRIBUTES.items():
            setattr(made, attribute, entries[name])
        if classes is not None:
            made.classes_ = classes
        if classes is not None and len(classes) < cls._classes_at_once:
            made._restore_fits(entries["learned"]["fits"])
        else:
            made._restore(entries["learned"])
        return made

    @classmethod
    def _shape(cls, classes: tuple[Any, ...] | None) -> Record:
        """What a file of this method may say, of two labels or of these classes."""
        together = classes is None or len(classes) >= cls._classes_at_once
        learned, of_classes = cls._LEARNED if together else FITS, classes is not None
        return whole_record(cls.__name__, cls._SETTINGS, learned, of_classes or cls.for_classes)

    def _restore_fits(self, fits: tuple[Recalibrator | None, ...]) -> None:
        same_size("learned.fits", len(fits), "the classes to fit", len(self._codes_apart))
        kind = type(self._for_each())
        for at, fit in enumerate(fits):
            alike = type(fit) is kind and fit.classes_ is None and fit.columns_ == self.columns_
            if fit is not None and not alike:
                unfit(f"learned.fits[{at}]", f"must be a {kind.__name__} of the same columns")
        if all(fit is None for fit in fits):
            unfit("learned.fits", "must have a fit")
        self.fits_ = fits

    def save(self, path: str | Path) -> None:
        """Write JSON, whole or not at all; `itrust.recalibrate.load` reads it.

        Parameters
        ----------
        path : str or Path
            The file; one that is there is replaced.

        Raises
        ------
        InputError
            If `load` would not read it.
        """
        write_whole(Path(path), self.to_json())

    def to_json(self) -> str:
        """Make the text that `save` writes.

        Returns
        -------
        str
            JSON, which ends with a line end.

        Raises
        ------
        InputError
            If `load` would not read it.
        """
        facts = self.to_dict()
        with mended_by(*CURE):
            self._shape(self.classes_).read(facts, "")
        text = json.dumps(facts, indent=1, allow_nan=False) + "\n"
        if len(text) > MAX_BYTES:  # ASCII: JSON escapes all other characters
            raise InputError(
                "what was learned takes {size} bytes, and files of at most {most} are read; fit on "
                "fewer covariates, or on categories of fewer levels",
                details={"size": len(text), "most": MAX_BYTES},
            )
        return text

    # --- rows to recalibrate ----------------------------------------------------------------------

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_rows_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} has learned nothing yet; call fit(sample) first")

    def _points(self, p: object, x: object) -> Rows:
        """Rows of what users give to be recalibrated, checked."""
        return self._rows(p, self._columns(x) if self.columns_ else ())

    def _rows(self, p: object, columns: tuple[Column, ...]) -> Rows:
        """Rows of probabilities, checked here, and of columns that were read."""
        rows: Rows
        if self.classes_ is None:
            rows = of_one_column(p)
        else:
            shape = np.asarray(p, dtype=object).shape if isinstance(p, np.ndarray | list) else ()
            if shape and shape[1:] != (len(self.classes_),):
                raise InputError(
                    "{argument} must have one column for each of the classes {classes}, in this "
                    "order, not the shape {value}",
                    argument="p",
                    value=shape,
                    details={"classes": listed(self.classes_)},
                )
            rows = MulticlassPopulation(p, classes=self.classes_)
        for column in columns:
            same_length(Subject("x", column.name), len(column), rows.n, "probabilities")
        return rows.with_columns(columns)

    @property
    def kinds_(self) -> Kinds:
        """What the covariates of the fit were, so that others are read alike."""
        codes = [
            name
            for name, kind in self.columns_.items()
            if kind == "category"
            and name not in self.meanings_
            and any(type(level) in (int, float) for level in self.seen_levels_[name])
        ]
        numbers = [name for name, kind in self.columns_.items() if kind == "number"]
        return Kinds(tuple(codes), tuple(numbers), self.meanings_)

    def _columns(self, x: object) -> tuple[Column, ...]:
        """The covariates that this recalibrator reads, as it saw them."""
        names = list(self.columns_)
        if x is None:
            raise InputError(
                "this method reads the covariates {names}; pass them as {argument}",
                argument="x",
                details={"names": listed(names)},
            )
        if isinstance(x, Rows):
            x = x.columns
        if isinstance(x, tuple) and x and all(isinstance(column, Column) for column in x):
            columns = x
        elif isinstance(x, np.ndarray | list):
            columns = read_covariates(x, names, partial=True, kinds=self.kinds_)
        else:
            given = columns_named(x, names)
            chosen = {name: given[name] for name in names}
            columns = read_covariates(chosen, None, partial=True, kinds=self.kinds_)
        return self._aligned(columns)

    def _aligned(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        by_name = {column.name: column for column in columns}
        columns_now = []
        for name, kind in self.columns_.items():
            if name not in by_name:
                raise InputError(
                    "{argument} lacks the covariate {value}, which the fit has seen",
                    argument="x",
                    value=name,
                )
            column = by_name[name]
            if column.missing.all():
                column = _all_missing(name, kind, len(column))
            if column.kind != kind and {column.kind, kind} != {"number", "boolean"}:
                raise InputError(
                    "covariate {column} was a {kind} in the fit, and is a {now} now",
                    argument="x",
                    column=name,
                    details={"kind": kind, "now": column.kind},
                )
            columns_now.append(_with_level(column, self.missing_levels_[name]))
        return tuple(columns_now)


def _missing_level(column: Column) -> str | None:
    """The level that `Sample` made of missing values: the last, in one bracket more than others."""
    last = column.levels[-1] if column.levels else None
    is_one = isinstance(last, str) and re.fullmatch(r"\(+missing\)+", last)
    return last if is_one else None


def _all_missing(name: str, kind: Any, n: int) -> Column:
    """A column without any value; Arrow cannot tell what kind it is."""
    if kind == "category":
        return Column(name, kind, np.full(n, -1, dtype=np.int64))
    return Column(name, kind, np.full(n, np.nan))


def _with_level(column: Column, level: str | None) -> Column:
    """Missing values as the level they were in the fit."""
    if level is None or not column.is_category or not column.missing.any():
        return column
    levels = column.levels if level in column.levels else (*column.levels, level)
    codes = np.where(column.missing, levels.index(level), column.values)
    return Column(column.name, column.kind, codes, levels)
