"""`Recalibrator`: what all methods have in common: learn from labelled rows, map (p, x) to p."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from itrust import __version__
from itrust._core import (
    BoolArray,
    EntryShape,
    FloatArray,
    InputError,
    Record,
    Subject,
    listed,
    mended_by,
    packed,
    plain,
    progress_stages,
    write_whole,
)
from itrust.data import (
    Column,
    FileSet,
    Kinds,
    MulticlassSample,
    Points,
    Population,
    Sample,
    Scan,
    checked_sample,
    columns_named,
    of_one_column,
    read_covariates,
    refuse_formula_names,
    same_length,
)
from itrust.recalibrate.applying import Application, as_probabilities, write_recalibrated
from itrust.recalibrate.rows import CalibrationRows, Predictions, rows_in_files
from itrust.recalibrate.saved import (
    CLASSES,
    CURE,
    MAX_BYTES,
    SCHEMA,
    refuse_contradictions,
    whole_record,
)

if TYPE_CHECKING:
    from itrust.recalibrate.multiclass.base import ClassRecalibrator

READING, FITTING = "reading the rows", "fitting"
READ_A_SECOND = 1e6  # rows, about
NEW_COLUMN = "p_recalibrated"
NEARLY_ONE = 1 - 2.0**-53  # the largest number below 1: its logit is finite


class Recalibrator(BaseEstimator):  # type: ignore[misc]
    """A recalibration of probabilities, learned from labelled rows that the model has not seen.

    Parameters are settings and never change; `fit` fills attributes with a trailing underscore.
    Copies are made with `sklearn.base.clone`; `save` writes JSON, `load` reads it.

    Attributes
    ----------
    reads_covariates : bool
        Whether the method uses covariates; the others use the prediction alone.
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
    several_ : Recalibrator or None
        What it learned of them: `predict`, `apply` and the others ask it. None for two labels.
    """

    reads_covariates: ClassVar[bool] = False
    prob_: str | None = None
    classes_: tuple[Any, ...] | None = None
    several_: ClassRecalibrator | None = None
    _seconds: ClassVar[float] = 1.0  # that fitting takes on many rows, about
    _SETTINGS: ClassVar[Mapping[str, EntryShape]] = {}  # what a file may say of each parameter
    _LEARNED: ClassVar[Record]  # and of what was learned
    _for_classes: ClassVar[bool] = False  # whether it is a method for several classes alone

    def fit(
        self, sample: Sample | Scan | MulticlassSample, *, progress: bool | None = None
    ) -> Self:
        """Learn from labelled rows; rows of weight 0 are left out.

        Of a sample of several classes `Local` and both forms of multicalibration learn all classes
        at once; the other methods for two labels learn each class against the rest, as `OneVsRest`
        does, but for `Temperature`, of which `TemperatureScaling` is the form for classes.

        Rows in files may be more than fit into memory. Methods that read the prediction alone learn
        from all of them, in one pass: beyond 500,000 rows, those whose predictions agree to four
        digits (of the distance from 0 or 1) are taken together. The others, whose fits go over the
        rows again and again, learn from 500,000 random rows, chosen without a look at labels. Up to
        500,000 rows both give what `fit(scan.load())` gives. Rows with clusters, strata or
        replicate weights are loaded.

        Parameters
        ----------
        sample : Sample, Scan or MulticlassSample
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
        if isinstance(sample, MulticlassSample):
            self._check_settings()
            machine = self._machine(len(sample.classes))
            self._adopt(machine.fit(sample, progress=progress))
            return self
        to_read = rows_in_files(sample)
        stages = {READING: to_read / READ_A_SECOND} if to_read else {}
        stages |= {FITTING: self._seconds}
        with progress_stages(stages, self._words, progress) as begin:
            rows = CalibrationRows(sample, lambda total: begin(READING, total))
            rows.ready(self.reads_covariates)
            begin(FITTING)
            return self._learn(rows)

    def _words(self, stage: str) -> str:
        return f"{stage} {type(self).__name__}" if stage == FITTING else stage

    def _learn(self, rows: CalibrationRows) -> Self:
        """Fit on rows that may be read already, for several methods."""
        sample = rows.sample
        self._begin(sample.columns, sample.y, sample.values, sample.n, rows.available)
        self._fit(sample)
        return self

    def _begin(
        self, columns: tuple[Column, ...], y: FloatArray, values: Any, n: int, available: int
    ) -> None:
        """Keep what columns there were; refuses labels that are all equal."""
        self._forget_classes()
        if y.min() == y.max():
            raise InputError(
                "every label is {value}, so there is nothing to learn from; take more rows for "
                "calibration",
                argument="y",
                value=values[int(y[0])],
            )
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
        self.prob_ = None
        self.n_rows_, self.n_available_ = n, available

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
        if self.several_ is not None:
            return self.several_.predict(p, x)
        if isinstance(p, Sample):
            raise InputError(
                "predict takes probabilities; for a Sample use .apply(sample)",
                argument="p",
                value=p,
            )
        if isinstance(p, Population):
            raise InputError(
                "predict takes probabilities; for a Population use .predict(rows.p, rows)",
                argument="p",
                value=p,
            )
        return as_probabilities(self._predict(self._points(p, x)))

    @overload
    def apply(self, sample: Sample) -> Sample: ...
    @overload
    def apply(self, sample: MulticlassSample) -> MulticlassSample: ...
    @overload
    def apply(
        self,
        sample: Scan,
        out: str | Path,
        *,
        column: str = NEW_COLUMN,
        safe_cells: bool = False,
        progress: bool | None = None,
    ) -> Scan: ...
    def apply(
        self,
        sample: Sample | Scan | MulticlassSample,
        out: str | Path | None = None,
        *,
        column: str = NEW_COLUMN,
        safe_cells: bool = False,
        progress: bool | None = None,
    ) -> Sample | Scan | MulticlassSample:
        """Recalibrate the probabilities of a sample or a scan, so that it is ready for the test.

        A scan is read, recalibrated and written some rows at a time, in order: every row of its
        files, with all columns as they are and one more. The new file takes its place at the end;
        whatever happens before that, nothing has changed there.

        Parameters
        ----------
        sample : Sample, Scan or MulticlassSample
            Rows that the fit has not seen, with (at least) its covariates; of several classes, with
            the classes of the fit in their order.
        out : str or Path, optional
            For a scan, the file to write: .csv, .tsv, .jsonl (these also with .gz), .parquet or
            .feather. One that is there is replaced. A sample needs none.
        column : str
            For a scan, the name of the new column; "p_recalibrated" by default.
        safe_cells : bool
            For a scan and a .csv or .tsv file, whether text that a spreadsheet program would take
            for a formula (it begins with =, +, - or @ and is no number) gets an apostrophe before
            it, in cells and in names of columns. By default all cells are as they were.
        progress : bool, optional
            For a scan, whether to show how far the work is; default: in a terminal.

        Returns
        -------
        Sample, Scan or MulticlassSample
            The same rows with recalibrated probabilities: of a scan, those of the file written.
        """
        if self.several_ is not None:
            return self.several_.apply(sample)  # type: ignore[arg-type]
        if isinstance(sample, MulticlassSample):
            self._check_fitted()
            raise InputError(
                "this {name} was fitted on two labels, and the sample has the classes {classes}; "
                "fit it on a MulticlassSample",
                argument="sample",
                details={"name": type(self).__name__, "classes": listed(sample.classes)},
            )
        if not isinstance(sample, Scan):
            checked_sample(sample)
            return sample.with_predictions(self.predict(sample.p, sample))
        self._check_fitted()
        if out is None or sample.parts is not None:
            raise InputError(
                "the recalibrated rows of a scan of whole files go to a file; name it with "
                "{argument}",
                argument="out",
            )
        place = Path(out)
        if place.resolve() in [file.resolve() for file in sample.files]:
            raise InputError(
                "{argument} would overwrite {value}, which is read", argument="out", value=str(out)
            )
        if safe_cells:
            refuse_formula_names([*sample.roles.columns, column])
        made = Application(self, sample.prob, "error" if sample.missing == "error" else "level")
        with sample.file_set.located():
            copy = write_recalibrated(
                made,
                sample.file_set,
                place,
                column,
                sample.roles.columns,
                na_values=sample.roles.na_values,
                safe_cells=safe_cells,
                progress=progress,
            )
        form = replace(copy.written, na_values=sample.form.na_values)
        roles = replace(sample.roles, prob=(column,))
        return replace(sample, file_set=FileSet.of(place, form), roles=roles)

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
        if self.several_ is not None:
            return self.several_.outside(p, x)
        return np.asarray(self._distance(self._points(p, x)) >= 1)

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
        if self.several_ is not None:
            return self.several_.at_edge(p, x)
        far = self._distance(self._points(p, x))
        return np.asarray((far > 0) & (far < 1))

    def _distance(self, points: Points) -> FloatArray:
        """How far rows lie from the calibration rows, (n,): 0 among them, 1 and more outside."""
        return np.zeros(len(points))

    def _placed(self, points: Points) -> tuple[FloatArray, FloatArray]:
        """Recalibrated probabilities of checked rows and their distances, each (n,)."""
        return self._predict(points), self._distance(points)

    @property
    def unchanged_(self) -> bool:
        """bool: Whether the fit decided to change nothing; most methods cannot."""
        return False

    @abstractmethod
    def _fit(self, sample: Sample) -> None:
        """Fill the fitted attributes."""

    @abstractmethod
    def _predict(self, points: Points) -> FloatArray:
        """Map checked rows to probabilities."""

    @abstractmethod
    def _learned(self) -> dict[str, Any]:
        """All that `_predict` needs, JSON-safe."""

    @abstractmethod
    def _restore(self, learned: dict[str, Any]) -> None:
        """The inverse of `_learned`, given values that are as `_LEARNED` describes."""

    def to_dict(self) -> dict[str, Any]:
        """Give the settings and all that was learned, ready for JSON.

        Returns
        -------
        dict
            Plain numbers, texts and lists; `from_dict` makes the same recalibrator of it.
        """
        self._check_fitted()
        learned = self if self.several_ is None else self.several_
        named = {} if self.classes_ is None else {"classes": [packed(c) for c in self.classes_]}
        return {
            "schema": SCHEMA,
            "version": __version__,
            "method": type(self).__name__,
            "settings": self._saved_settings(),
            **named,
            "columns": dict(self.columns_),
            "missing_levels": dict(self.missing_levels_),
            "seen_levels": {
                name: [packed(level) for level in own] for name, own in self.seen_levels_.items()
            },
            "meanings": {
                name: [[packed(code), text] for code, text in own.items()]
                for name, own in self.meanings_.items()
            },
            "prob": self.prob_,
            "rows": self.n_rows_,
            "available_rows": self.n_available_,
            "learned": plain(learned._learned()),
        }

    def _saved_settings(self) -> dict[str, Any]:
        found: dict[str, Any] = plain(self.get_params(deep=False))
        return found

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
        found = cls._shape(facts).read(facts, place)
        settings = found["settings"].items()
        made = cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in settings})
        filled: Recalibrator = made
        if found.get("classes") is not None and not cls._for_classes:
            filled = made._machine(len(found["classes"]))
        refuse_contradictions(found, f"{place}." if place else "", filled.reads_covariates)
        filled._fill_from(found)
        if filled is not made:
            made._adopt(filled)
        return made

    @classmethod
    def _shape(cls, facts: Any) -> Record:
        """What a file of this method may say, of two labels or of several classes."""
        has_classes = cls._for_classes or (isinstance(facts, Mapping) and "classes" in facts)
        learned = cls._LEARNED
        if has_classes and not cls._for_classes:
            named = CLASSES.read(facts["classes"], "classes")
            learned = cls._machine_type(len(named))._LEARNED
        return whole_record(cls.__name__, cls._SETTINGS, learned, has_classes)

    def _fill_from(self, found: Mapping[str, Any]) -> None:
        """Take over the checked entries of a file."""
        self.columns_, self.n_rows_ = found["columns"], found["rows"]
        self.n_available_ = found.get("available_rows", self.n_rows_)
        self.missing_levels_, self.seen_levels_ = found["missing_levels"], found["seen_levels"]
        self.meanings_ = {name: dict(own) for name, own in found.get("meanings", {}).items()}
        self.prob_ = found["prob"]
        if "classes" in found:
            self.classes_ = tuple(found["classes"])
        self._restore(found["learned"])

    @classmethod
    def _machine_type(cls, classes: int) -> type[ClassRecalibrator]:  # noqa: ARG003
        """What learns so many classes by this method for two labels; by default one by one."""
        from itrust.recalibrate.multiclass.one_vs_rest import OneVsRest

        return OneVsRest

    def _machine(self, classes: int) -> ClassRecalibrator:
        """The same, with the settings of this one."""
        made: ClassRecalibrator = self._machine_type(classes)(clone(self))
        return made

    def _check_settings(self) -> None:
        """Refuse settings that no fit can have; a method that has none takes all."""

    def _adopt(self, machine: Recalibrator) -> None:
        """Have what was learned of several classes, and be asked for it."""
        self._forget_classes()
        fitted = {name: own for name, own in vars(machine).items() if name.endswith("_")}
        for name, own in fitted.items():
            setattr(self, name, own)
        self.several_ = machine

    def _forget_classes(self) -> None:
        if self.several_ is not None:
            for name in [name for name in vars(self) if name.endswith("_")]:
                delattr(self, name)

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
            self._shape(facts).read(facts, "")
        text = json.dumps(facts, indent=1, allow_nan=False) + "\n"
        if len(text) > MAX_BYTES:  # ASCII: JSON escapes all other characters
            raise InputError(
                "what was learned takes {size} bytes, and files of at most {most} are read; fit on "
                "fewer covariates, or on categories of fewer levels",
                details={"size": len(text), "most": MAX_BYTES},
            )
        return text

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_rows_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} has learned nothing yet; call fit(sample) first")

    def _points(self, p: object, x: object) -> Points:
        if not self.columns_:
            return of_one_column(p).points
        checked = of_one_column(p).p
        columns = self._columns(x)
        for column in columns:
            same_length(Subject("x", column.name), len(column), checked.size, "probabilities")
        return Points(checked, columns)

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
        if isinstance(x, MulticlassSample):
            x = x.one_class(x.classes[0])
        if isinstance(x, Sample | Population):
            x = x.columns
        if isinstance(x, tuple) and x and all(isinstance(column, Column) for column in x):
            columns = x
        elif isinstance(x, np.ndarray | list):
            columns = read_covariates(x, names, partial=True, kinds=self.kinds_)
        else:
            found = columns_named(x, names)
            chosen = {name: found[name] for name in names}
            columns = read_covariates(chosen, None, partial=True, kinds=self.kinds_)
        return self._aligned(columns)

    def _placed_classes(
        self, p: FloatArray, columns: tuple[Column, ...]
    ) -> tuple[FloatArray, FloatArray]:
        """Recalibrated rows of several classes, (n, K), and how far out they lie, (n,)."""
        learner = self if self.several_ is None else self.several_
        return learner._placed_classes(p, columns)

    def _aligned(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        by_name = {column.name: column for column in columns}
        found = []
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
            found.append(_with_level(column, self.missing_levels_[name]))
        return tuple(found)


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


class PredictionRecalibrator(Recalibrator):
    """A method that reads the prediction alone, so that it can learn from any number of rows."""

    def _learn(self, rows: CalibrationRows) -> Self:
        found = rows.predictions
        self._begin((), found.y, found.values, found.n, found.n)
        self._fit_predictions(found)
        return self

    def _fit(self, sample: Sample) -> None:
        self._fit_predictions(Predictions.of(sample))

    @abstractmethod
    def _fit_predictions(self, rows: Predictions) -> None:
        """Fill the fitted attributes."""


def one_class(sample: Sample) -> bool:
    """Whether all labels that count are equal."""
    counted = sample.y[sample.weights_or_ones > 0]
    return bool(counted.min() == counted.max())


def held_logit(p: FloatArray, edge: float) -> FloatArray:
    """Logits of probabilities held within [edge, 1 - edge]; finite for every edge above 0."""
    return np.asarray(logit(np.clip(p, edge, min(1 - edge, NEARLY_ONE))))
