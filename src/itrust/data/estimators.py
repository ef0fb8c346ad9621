"""The door for a classifier with scikit-learn's conventions: its probabilities for some rows.

A model is anything with `predict_proba`: estimators, pipelines, searches. scikit-learn itself is
loaded only where it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol, runtime_checkable

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
    did_you_mean,
    first_line,
    listed,
    shown,
)
from itrust.data.design_intake import read_design
from itrust.data.encoding import as_arrow, levels_and_codes
from itrust.data.frames import by_name, columns_of, same_length
from itrust.data.intake import LABEL, same_index

REST = "another class"  # the value of the label that counts as 0, in one class against the rest
FOLDS_NOTE = (
    "the probabilities are out-of-fold predictions of {folds} models, each fitted to the other "
    "folds: what is judged is how the model is made, and the p-value is approximate"
)
Covariates = str | int | Sequence[str | int] | Mapping[str, object] | object


@runtime_checkable
class Classifier(Protocol):
    """Anything that gives probabilities as scikit-learn's classifiers do."""

    def predict_proba(self, X: Any) -> Any:
        """Probabilities, one column for each of `classes_`."""


@dataclass(frozen=True, eq=False)
class PredictedRows:
    """What a `Sample` is made of, read from a model and its rows."""

    y: object
    p: FloatArray
    x: dict[str, object]
    others: dict[str, object]
    roles: dict[str, object]
    label: str | None
    positive: object
    one_class: object
    notes: tuple[str, ...]
    folds: int = 0
    classes: tuple[Any, ...] = ()


def is_model(value: object) -> bool:
    """Whether something is a model, or a class of models, rather than data.

    >>> is_model([0, 1]), is_model(Classifier)
    (False, True)
    """
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
) -> PredictedRows:
    """Read labels, covariates and a model's probabilities; everything else is checked before."""
    _refuse_no_probabilities(model)
    same_index([("X", X), ("y", y), *roles.items(), ("on", on)])
    labels, codes = levels_and_codes(as_arrow(y, LABEL))
    if (codes < 0).any():
        raise InputError(
            "{count} of the rows have no label (first: {row}); keep labelled rows only",
            row=int(np.argmax(codes < 0)),
            count=int((codes < 0).sum()),
            **LABEL.fields,
        )
    columns, drawn = _columns_and_roles(model, X, roles, codes.size)
    named = {name for name in roles.values() if isinstance(name, str)}
    covariates = _covariates(on, columns, named)
    known = _classes(model, labels, fitted=cv is None)
    every_class = every_class or (len(known) > 2 and pos_label is None)
    positive, notes = (None, ()) if every_class else _positive(known, labels, pos_label)
    folds = 0
    if cv is None:
        matrix = _probabilities(model, X)
    else:
        cluster = drawn.get("cluster")
        groups = None if cluster is None else read_design(codes.size, cluster=cluster).cluster
        matrix, folds = _out_of_fold(model, X, np.array(labels)[codes], cv, groups, rng)
        notes = (*notes, FOLDS_NOTE.format(folds=folds))
    every = _every_column(matrix, known, codes.size) if every_class else None
    p = _column_of(matrix, known, positive, codes.size) if every is None else every
    several = len(known) > 2 and every is None
    return PredictedRows(
        y=np.array([label == positive for label in labels])[codes] if several else y,
        p=p,
        x=covariates,
        others={k: v for k, v in columns.items() if k not in covariates and k not in named},
        roles=drawn,
        label=_name_of(y),
        positive=True if several else positive,
        one_class=positive if several else None,
        notes=notes,
        folds=folds,
        classes=() if every is None else tuple(known),
    )


def _refuse_no_probabilities(model: object) -> None:
    name = model.__name__ if isinstance(model, type) else type(model).__name__
    if isinstance(model, type):
        raise InputError(
            "{name} is a class, not a fitted model; make one and fit it: {name}().fit(X_train, "
            "y_train)",
            argument="model",
            value=model,
            details={"name": name},
        )
    if hasattr(model, "predict_proba"):
        return
    if not any(hasattr(model, trait) for trait in ("decision_function", "classes_")):
        raise InputError(
            "this {name} is no classifier: it has neither predict_proba nor classes_",
            argument="model",
            value=model,
            details={"name": name},
        )
    raise InputError(
        "this {name} has no predict_proba, so it gives no probabilities; "
        "sklearn.calibration.CalibratedClassifierCV({name}(...)) gives a classifier some",
        argument="model",
        value=model,
        details={"name": name},
    )


def _columns_and_roles(
    model: object, X: object, roles: Mapping[str, object], n: int
) -> tuple[dict[str, object], dict[str, object]]:
    """Columns of X by name, and what a role is given, by name or as it is."""
    columns = columns_of(X, Subject("X")) if _has_columns(X) else {}
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if isinstance(X, np.ndarray | list) and len(names) == len(columns):
        columns = by_name(list(zip(names, columns.values(), strict=True)))
    rows = len(next(iter(columns.values()))) if columns else n  # type: ignore[arg-type]
    same_length(Subject("X"), rows, n)
    drawn: dict[str, object] = {}
    for role, value in roles.items():
        if isinstance(value, str):
            drawn[role] = columns[_known(value, list(columns), role)]
        elif value is not None:
            drawn[role] = value
    return columns, drawn


def _has_columns(X: object) -> bool:
    """Whether X has columns that can be named; sparse matrices and texts have none."""
    is_list = isinstance(X, list) and bool(X) and isinstance(X[0], list | tuple | np.ndarray)
    is_flat = getattr(X, "ndim", 2) != 2 or hasattr(X, "tocsr")
    return is_list or (hasattr(X, "shape") and not is_flat)


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
    if isinstance(on, str | Integral):
        on = [on]
    if not isinstance(on, list | tuple | set | frozenset) or not all(
        isinstance(key, str | Integral) for key in on
    ):
        return columns_of(on, Subject("on"))
    return {name: columns[name] for name in (_known(key, list(columns), "on") for key in on)}


def _known(key: object, names: list[str], argument: str) -> str:
    if isinstance(key, Integral) and not isinstance(key, bool) and 0 <= int(key) < len(names):
        return names[int(key)]
    if str(key) not in names:
        raise InputError(
            "{argument}: X has no column {value}; {guess}",
            argument=argument,
            value=key,
            details={"guess": did_you_mean(str(key), names)},
        )
    return str(key)


def _classes(model: object, labels: tuple[Any, ...], *, fitted: bool) -> list[Any]:
    """The model's classes in the order of its columns; those of the labels before it is fitted."""
    found = getattr(model, "classes_", None) if fitted else None
    # Before the fit, as `cross_val_predict` sorts them.
    known = np.asarray(found if found is not None else np.unique(np.array(labels))).ravel().tolist()
    strange = [label for label in labels if label not in known]
    if strange:
        raise InputError(
            "y has the label {value}, but the model knows {known}; use the labels that it was "
            "trained with",
            argument="y",
            value=strange[0],
            details={"known": listed(known)},
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
                details={"given": Setting("pos_label", pos_label), "known": listed(known)},
            )
        return pos_label, ()
    if len(known) < 2:
        raise InputError(
            "there is one class only, {value}; two are needed",
            argument="y",
            value=known[0],
        )
    if set(labels) <= {-1, 0, 1}:
        return known[1], ()
    note = f"{shown(known[1])} counts as positive, as the second class of the model; "
    return known[1], (f"{note}pos_label={shown(known[0])} would take the other one",)


def _probabilities(model: Any, X: object) -> AnyArray:
    from sklearn.exceptions import NotFittedError

    try:
        return np.asarray(model.predict_proba(X))
    except NotFittedError:
        name = type(model).__name__
        raise InputError(
            "this {name} is not fitted yet; call model.fit(X_train, y_train) first, on other rows "
            "than these",
            argument="model",
            value=model,
            hint="or pass {} to judge predictions of models that are fitted to folds of these rows",
            settings=[Setting("cv", 5)],
            details={"name": name},
        ) from None
    except InputError:  # which is a ValueError, and has its sentence
        raise
    except (TypeError, ValueError) as error:
        raise _refusal(model, X, error) from error


def _refusal(model: object, X: object, error: Exception) -> InputError:
    """The sentence for a model that does not take the rows; columns that X lacks are named."""
    columns, trained = getattr(X, "columns", None), getattr(model, "feature_names_in_", None)
    lacks = [] if columns is None or trained is None else [c for c in trained if c not in columns]
    return InputError(
        "this {name} gives no probabilities for {argument}: {reason}",
        argument="X",
        hint=f"it was trained with {listed(lacks)}, which X lacks"
        if lacks
        else "it needs the columns that it was trained with, prepared in the same way",
        details={"name": type(model).__name__, "reason": first_line(error)},
    )


def _out_of_fold(
    model: Any, X: object, labels: AnyArray, cv: object, groups: IntArray | None, rng: Rng
) -> tuple[AnyArray, int]:
    """Predictions for each fold by a model that was fitted to the others, and how many there are.

    Folds have the same shares of the labels, and clusters stay whole.
    """
    from sklearn.model_selection import (
        StratifiedGroupKFold,
        StratifiedKFold,
        check_cv,
        cross_val_predict,
    )

    if isinstance(cv, Integral):
        folds = checked_count(cv, "cv", at_least=2)
        rarest = int(np.unique(labels, return_counts=True)[1].min())
        _refuse_many_folds(folds, rarest, "row with the rarer label", "rows with the rarer label")
        if groups is not None:
            _refuse_many_folds(folds, int(np.unique(groups).size), "cluster", "clusters")
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = kind(folds, shuffle=True, random_state=as_seed(rng) % 2**32)
    elif not isinstance(cv, str) and (hasattr(cv, "split") or isinstance(cv, Iterable)):
        splitter = check_cv(cv, labels, classifier=True)
    else:
        raise InputError(
            "{argument} must be a number of folds such as 5, or a splitter of scikit-learn, not "
            "{value}",
            argument="cv",
            value=cv,
        )
    folds = int(splitter.get_n_splits(X, labels, groups))
    try:
        found = cross_val_predict(
            model, X, labels, cv=splitter, groups=groups, method="predict_proba"
        )
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(
            "there are no out-of-fold predictions of this {name}: {reason}",
            argument="cv",
            value=cv,
            details={"name": type(model).__name__, "reason": first_line(error)},
        ) from error
    return np.asarray(found), folds


def _refuse_many_folds(folds: int, available: int, one: str, several: str) -> None:
    if available < folds:
        raise InputError(
            f"{{given}} is too many: there {'is' if available == 1 else 'are'} {available} "
            f"{one if available == 1 else several}",
            argument="cv",
            value=folds,
            count=available,
            details={"given": Setting("cv", folds)},
        )


def _every_column(matrix: AnyArray, known: list[Any], n: int) -> FloatArray:
    """The columns of all classes, (n, K); of one column, the probability of the second class."""
    if len(known) == 2:
        second = _column_of(matrix, known, known[1], n)
        if matrix.ndim == 1 or matrix.shape[1] == 1:
            return np.column_stack([1 - second, second])
    else:
        _column_of(matrix, known, known[-1], n)  # raises unless there is a column for each
    return np.array(matrix, dtype=float, order="F")


def _column_of(matrix: AnyArray, known: list[Any], positive: object, n: int) -> FloatArray:
    """The column of the positive label; of one column, the probability of the second class."""
    place = known.index(positive)
    if matrix.ndim == 1 or matrix.shape[1:] == (1,):
        p = np.asarray(matrix, dtype=float).ravel()
        p = p if place == 1 else 1 - p
    elif matrix.ndim == 2 and matrix.shape[1] == len(known):
        p = np.asarray(matrix[:, place], dtype=float)
    else:
        raise InputError(
            "predict_proba gives an array of shape {value}, but there are {count} classes",
            argument="model",
            value=matrix.shape,
            count=len(known),
        )
    same_length(Subject("predict_proba"), p.size, n)
    return p


def _name_of(y: object) -> str | None:
    """The name of a column of labels that has one."""
    columns: Any = getattr(y, "columns", ())
    name = getattr(y, "name", None) or (next(iter(columns)) if len(columns) == 1 else None)
    return name if isinstance(name, str) and name else None
