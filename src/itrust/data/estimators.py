"""The door for a classifier with scikit-learn's conventions: its probabilities for some rows.

A model is anything with `predict_proba`: estimators, pipelines, searches. scikit-learn itself is
loaded only where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np

from itrust._core import (
    AnyArray,
    FloatArray,
    InputError,
    IntArray,
    Rng,
    Setting,
    Subject,
    as_seed,
    checked_count,
    counted,
    first_line,
    listed,
    shown,
)
from itrust.data.design import read_design
from itrust.data.encoding import (
    as_arrow,
    by_name,
    columns_of,
    levels_and_codes,
    name_among,
    refuse_rows,
    same_length,
)
from itrust.data.intake import same_index
from itrust.data.probabilities import LABEL

FOLDS_NOTE = (
    "the probabilities are out-of-fold predictions of {folds} models, each fitted to the other "
    "folds: what is judged is how the model is made, and the p-value is approximate"
)
Covariates = str | int | Sequence[str | int] | Mapping[str, object] | object


def is_model(value: object) -> bool:
    """Whether something is a model, or a class of models, rather than data."""
    return any(hasattr(value, name) for name in ("predict_proba", "predict", "decision_function"))


def predicted_rows(
    model: object,
    X: object,
    y: object,
    *,
    on: Covariates | None = None,
    pos_label: object = None,
    roles: Mapping[str, object],
    cv: object = None,
    rng: Rng = None,
    every_class: bool = False,
) -> tuple[dict[str, Any], Any]:
    """What `read_rows` takes, and the class that is judged alone where there are more than two."""
    _refuse_no_probabilities(model)
    same_index([("X", X), ("y", y), *roles.items(), ("on", on)])
    labels, codes = levels_and_codes(as_arrow(y, LABEL))
    problem = "{count} of the rows have no label (first: {row}); keep labelled rows only"
    refuse_rows(codes < 0, problem, LABEL)
    columns = _columns(model, X, codes.size)
    drawn = {
        role: columns[_known(value, list(columns), role)] if isinstance(value, str) else value
        for role, value in roles.items()
        if value is not None
    }
    named = {name for name in roles.values() if isinstance(name, str)}
    covariates = _covariates(on, columns, named)
    known = _classes(model, labels, fitted=cv is None)
    several = every_class or len(known) > 2
    together = every_class or (several and pos_label is None)
    positive, notes = (None, ()) if together else _positive(known, labels, pos_label)
    folds = 0
    if cv is None:
        predicted = _probabilities(model, X)
    else:
        cluster = drawn.get("cluster")
        groups = None if cluster is None else read_design(codes.size, cluster=cluster).cluster
        predicted, folds = _out_of_fold(model, X, np.array(labels)[codes], cv, groups, rng)
        notes = (*notes, FOLDS_NOTE.format(folds=folds))
    p = _by_class(predicted, known, codes.size)
    parts = {
        "y": y,
        "p": p if several else p[:, known.index(positive)],
        "x": covariates,
        "others": {k: v for k, v in columns.items() if k not in covariates and k not in named},
        "label": _name_of(y),
        "positive": None if several else positive,
        "origin": notes,
        "folds": folds,
        "classes": tuple(known) if several else None,
    }
    return {**parts, **drawn}, positive if several else None


def _refuse_no_probabilities(model: object) -> None:
    name = getattr(model, "__name__", type(model).__name__)
    if isinstance(model, type):
        problem = "{name} is a class, not a fitted model; make one and fit it: {name}().fit(X, y)"
    elif hasattr(model, "predict_proba"):
        return
    elif hasattr(model, "decision_function") or hasattr(model, "classes_"):
        problem = (
            "this {name} has no predict_proba, so it gives no probabilities; "
            "sklearn.calibration.CalibratedClassifierCV({name}(...)) gives a classifier some"
        )
    else:
        problem = "this {name} is no classifier: it has neither predict_proba nor classes_"
    raise InputError(problem, argument="model", value=model, name=name)


def _columns(model: object, X: object, n: int) -> dict[str, object]:
    """Columns of X by name; sparse matrices and texts have none."""
    is_list = isinstance(X, list) and bool(X) and isinstance(X[0], list | tuple | np.ndarray)
    is_flat = getattr(X, "ndim", 2) != 2 or hasattr(X, "tocsr")
    if not (is_list or (hasattr(X, "shape") and not is_flat)):
        return {}
    columns = columns_of(X, Subject("X"))
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if isinstance(X, np.ndarray | list) and len(names) == len(columns):
        columns = by_name(list(zip(names, columns.values(), strict=True)))
    for column in list(columns.values())[:1]:
        same_length(Subject("X"), len(column), n)  # type: ignore[arg-type]
    return columns


def _covariates(
    on: Covariates | None, columns: dict[str, object], named: set[str]
) -> dict[str, object]:
    """The columns that are judged on: some of X, by name or position, or columns of their own."""
    if on is None:
        if not columns:
            raise InputError(
                "X has no columns that could be named; pass the covariates themselves, such as "
                "on={'age': ages}",
                argument="on",
            )
        return {name: column for name, column in columns.items() if name not in named}
    keys = on if isinstance(on, list | tuple | set | frozenset) else [on]
    if not all(isinstance(key, str | Integral) for key in keys):
        return columns_of(on, Subject("on"))
    return {name: columns[name] for name in (_known(key, list(columns), "on") for key in keys)}


def _known(key: object, names: list[str], argument: str) -> str:
    """A column of X by its name or its position."""
    if isinstance(key, Integral) and not isinstance(key, bool) and 0 <= int(key) < len(names):
        return names[int(key)]
    return name_among(names, str(key), argument)


def _classes(model: object, labels: tuple[Any, ...], *, fitted: bool) -> list[Any]:
    """The model's classes in the order of its columns; those of the labels before it is fitted."""
    classes = getattr(model, "classes_", None) if fitted else None
    if classes is None:
        classes = np.unique(np.array(labels))  # before the fit, as `cross_val_predict` sorts them
    known: list[Any] = np.asarray(classes).ravel().tolist()
    strange = [label for label in labels if label not in known]
    if strange:
        raise InputError(
            "y has the label {value}, but the model knows {known}; use the labels that it was "
            "trained with",
            argument="y",
            value=strange[0],
            known=listed(known),
        )
    return known


def _positive(
    known: list[Any], labels: tuple[Any, ...], pos_label: object
) -> tuple[Any, tuple[str, ...]]:
    """The label that counts as 1, and a note where nobody said which and it is not plain."""
    if pos_label is not None:
        if pos_label not in known:
            raise InputError(
                "{given} is none of the classes {known}",
                argument="pos_label",
                value=pos_label,
                given=Setting("pos_label", pos_label),
                known=listed(known),
            )
        return pos_label, ()
    if len(known) < 2:
        problem = "there is one class only, {value}; two are needed"
        raise InputError(problem, argument="y", value=known[0])
    if set(labels) <= {-1, 0, 1}:
        return known[1], ()
    note = f"{shown(known[1])} counts as positive, as the second class of the model; "
    return known[1], (f"{note}pos_label={shown(known[0])} would take the other one",)


@contextmanager
def _predicting(problem: str, hint: str | None = None, **about: Any) -> Iterator[None]:
    """Say in one sentence why a model gives no probabilities."""
    try:
        yield
    except InputError:  # which is a ValueError, and has its sentence
        raise
    except (TypeError, ValueError) as error:
        reason = first_line(error)
        raise InputError(problem, hint=hint, reason=reason, **about) from error


def _probabilities(model: Any, X: object) -> AnyArray:
    from sklearn.exceptions import NotFittedError

    name = type(model).__name__
    columns, trained = getattr(X, "columns", None), getattr(model, "feature_names_in_", ())
    lacks = [] if columns is None else [column for column in trained if column not in columns]
    hint = "it needs the columns that it was trained with, prepared in the same way"
    if lacks:
        hint = f"it was trained with {listed(lacks)}, which X lacks"
    with _predicting(f"this {name} gives no probabilities for X: {{reason}}", hint, argument="X"):
        try:
            return np.asarray(model.predict_proba(X))
        except NotFittedError:
            raise InputError(
                f"this {name} is not fitted yet; call model.fit(X_train, y_train) first, on other "
                "rows than these",
                argument="model",
                value=model,
                hint="or pass {} to judge predictions of models that are fitted to folds of these "
                "rows",
                settings=[Setting("cv", 5)],
            ) from None


def _out_of_fold(
    model: Any, X: object, labels: AnyArray, cv: object, groups: IntArray | None, rng: Rng
) -> tuple[AnyArray, int]:
    """Predictions for each fold by a model that was fitted to the others, and how many there are.

    Folds have the same shares of the labels, and clusters stay whole.
    """
    from sklearn import model_selection as folding

    if isinstance(cv, Integral):
        folds = checked_count(cv, "cv", at_least=2)
        rarest = int(np.unique(labels, return_counts=True)[1].min())
        clusters = labels.size if groups is None else int(np.unique(groups).size)
        words = f"{counted(rarest, 'row')} with the rarer label"
        count, words = min((rarest, words), (clusters, counted(clusters, "cluster")))
        if count < folds:
            raise InputError(
                f"{{given}} is too many: there {'is' if count == 1 else 'are'} {words}",
                argument="cv",
                value=folds,
                count=count,
                given=Setting("cv", folds),
            )
        kind = folding.StratifiedKFold if groups is None else folding.StratifiedGroupKFold
        splitter = kind(folds, shuffle=True, random_state=as_seed(rng) % 2**32)
    elif not isinstance(cv, str) and (hasattr(cv, "split") or isinstance(cv, Iterable)):
        splitter = folding.check_cv(cv, labels, classifier=True)
    else:
        raise InputError(
            "{argument} must be a number of folds such as 5, or a splitter of scikit-learn, not "
            "{value}",
            argument="cv",
            value=cv,
        )
    folds = int(splitter.get_n_splits(X, labels, groups))
    name = type(model).__name__
    problem = f"there are no out-of-fold predictions of this {name}: {{reason}}"
    with _predicting(problem, argument="cv", value=cv):
        predicted = folding.cross_val_predict(
            model, X, labels, cv=splitter, groups=groups, method="predict_proba"
        )
    return np.asarray(predicted), folds


def _by_class(predicted: AnyArray, known: list[Any], n: int) -> FloatArray:
    """The probabilities of all classes, (n, K); one column alone is that of the second of two."""
    p: FloatArray = np.array(predicted, dtype=float, order="F")
    if len(known) == 2 and (p.ndim == 1 or p.shape[1:] == (1,)):
        p = np.column_stack([1 - p.ravel(), p.ravel()])
    if p.shape[1:] != (len(known),):
        problem = "predict_proba gives an array of shape {value}, but there are {count} classes"
        raise InputError(problem, argument="model", value=p.shape, count=len(known))
    same_length(Subject("predict_proba"), len(p), n)
    return p


def _name_of(y: object) -> str | None:
    """The name of a column of labels that has one."""
    columns: Any = getattr(y, "columns", ())
    name = getattr(y, "name", None) or (next(iter(columns)) if len(columns) == 1 else None)
    return name if isinstance(name, str) and name else None
