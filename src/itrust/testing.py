"""Assertions about models, for pytest, unittest or a plain script; none of these is needed here.

>>> import itrust as it
>>> from itrust.testing import assert_trustworthy
>>> sample = it.simulate.survey(2_000, rng=0).sample
>>> try:
...     assert_trustworthy(sample)
... except AssertionError as error:
...     print(str(error).splitlines()[0])
gate closed: the model is judged miscalibrated, size not established
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from itrust._core import InputError, Rng, checked_choice, checked_min_cell
from itrust.auditing import Asked, Audit, Verdict, as_margins, audit, gate
from itrust.bias import names_of
from itrust.data import Covariates, MissingRule, Sample, Scan, is_frame
from itrust.tasks import Task, as_tasks

__all__ = ["assert_trustworthy"]
__dir__ = __all__.copy  # what tab completion offers


def assert_trustworthy(
    model: object,
    X: object = None,
    y: object = None,
    *,
    on: Covariates | None = None,
    tasks: Sequence[Task | str] | Task | str = (),
    label: str | None = None,
    prob: str | None = None,
    pos_label: object = None,
    weights: object = None,
    cluster: object = None,
    strata: object = None,
    missing: MissingRule = "error",
    cv: object = None,
    alpha: float = 0.05,
    tolerance: float = 0.05,
    asked: Asked = "any",
    require: Verdict | str | None = None,
    robust_to: Mapping[str, float] | None = None,
    min_cell: int | None = None,
    draws: int = 999,
    rng: Rng = 0,
) -> Audit:
    """Audit a model, and raise AssertionError unless it may be used.

    It fails exactly where `itrust audit --gate` closes: if the model is shown to be miscalibrated
    by more than the tolerance, or by an amount that is not established, or if a task is shown to
    be biased. A calibrated model fails with probability alpha at most, over rows; with a fixed
    `rng` the same rows give the same answer. Rows that are too few to show anything fail nothing;
    pass `require` if that should not do.

    Parameters
    ----------
    model : classifier, Sample, Scan or frame
        A fitted classifier with its rows X and y; or labels and probabilities: a Sample, rows of
        files, or a frame (with `label` and `prob`).
    X : (n, d) array or frame, optional
        The features of rows that the classifier was not fitted to. Default: there is no
        classifier.
    y : column of n labels, optional
        Their labels. Default: there is no classifier.
    on : names of covariates, or columns, optional
        What to judge the probabilities on, as for `itrust.audit`. Default: all covariates, all
        columns of X, or none of a frame.
    tasks : tasks or their text forms
        Numbers that must not be biased, such as "mean(age)"; by default there are none.
    label, prob : str, optional
        Of a frame, the columns of labels and probabilities. Default: it is no frame.
    pos_label : object, optional
        The label that counts as 1, for a classifier or a frame. Default: the second class of the
        classifier; labels of a frame are 0 and 1.
    weights, cluster, strata : column of n values or name of a column, optional
        For a classifier or a frame, as for `Sample`. Default: every row counts alike, and rows are
        independent.
    missing : {"error", "level", "drop"}
        For a classifier or a frame, what to do with missing covariates; "error" by default.
    cv : int or splitter of scikit-learn, optional
        For a classifier, judge out-of-fold predictions, as for `itrust.audit`. Default: it is
        fitted.
    alpha : float
        Error that is allowed: how often a calibrated model may fail.
    tolerance : float
        The size of local bias that would matter.
    asked : {"model", "tasks", "any"}
        What can fail: the verdict on the model, a task, or either.
    require : Verdict or str, optional
        The worst verdict that passes, besides. "no evidence against" does not let pass an
        inconclusive audit or a bias within the tolerance; "calibrated within tolerance" lets
        pass nothing else. Default: whatever leaves the gate open.
    robust_to : mapping of str to float, optional
        Violations that evidence has to survive before it fails anything, each by itself, as for
        `itrust.auditing.gate`: {"odds": 1.2, "label-error": 0.02}. Not with `require`. Default:
        evidence counts as it is.
    min_cell : int, optional
        Applies disclosure control to what the message tells, as `Audit.disclosed` does; tasks that
        are withheld are not judged. Default: everything is told as it is.
    draws : int
        Number of redraws of the labels.
    rng : int, Generator or None
        Seed; 0 by default, so that a build does not depend on chance.

    Returns
    -------
    Audit
        All that was found, if it passes, without charts.

    Raises
    ------
    AssertionError
        If the model or a task is not good enough; it says what was found, the evidence and what
        to do.
    InputError
        If rows, columns or settings are wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(2_000, 2))
    >>> y = np.random.default_rng(1).random(2_000) < 1 / (1 + np.exp(-X[:, 0]))
    >>> model = LogisticRegression().fit(X[:1_000], y[:1_000])
    >>> audit = assert_trustworthy(model, X[1_000:], y[1_000:], draws=199)
    >>> audit.verdict.closes_gate
    False
    """
    __tracebackhide__ = True  # pytest points at the test, not in here
    worst = None if require is None else _verdict(require)
    checked_min_cell(min_cell)
    checked_choice(asked, "asked", get_args(Asked))
    if as_margins(robust_to) and require is not None:
        raise InputError(
            "{argument} is about what closes the gate, and require asks for more than that; leave "
            "one of them out",
            argument="robust_to",
        )
    rows: dict[str, Any] = {
        "pos_label": pos_label,
        "weights": weights,
        "cluster": cluster,
        "strata": strata,
    }
    settings: dict[str, Any] = {"alpha": alpha, "tolerance": tolerance, "draws": draws, "rng": rng}
    settings |= {"tasks": tasks, "charts": False, "validation": False, "progress": False}
    settings["robustness"] = robust_to is not None
    if is_frame(model) and not isinstance(model, Sample | Scan) and X is None:
        names = names_of(() if on is None else on)
        source = _from_frame(model, label, prob, names, tasks, missing, **rows)
        found = audit(source, on=names, **settings)
    elif label is not None or prob is not None:
        argument = "prob" if label is None else "label"
        raise InputError(
            "{argument} goes with a frame, as in assert_trustworthy(frame, label=..., prob=...)",
            argument=argument,
        )
    else:
        first: Any = model
        found = audit(first, X, y, on=on, missing=missing, cv=cv, **rows, **settings)
    shown = found.disclosed(min_cell)
    outcome = gate(shown, asked, robust_to)
    if outcome.closed or (worst is not None and found.verdict.severity > worst.severity):
        from itrust.render import failure_words

        raise AssertionError(failure_words(shown, outcome, worst))
    return found


def _verdict(require: Verdict | str) -> Verdict:
    words = checked_choice(require, "require", [verdict.value for verdict in Verdict])
    return Verdict(words)


def _from_frame(
    frame: object,
    label: str | None,
    prob: str | None,
    names: tuple[str, ...],
    tasks: Any,
    missing: MissingRule,
    *,
    pos_label: object,
    **roles: Any,
) -> Sample:
    """The rows of a frame, with the covariates that are judged on or named by tasks."""
    if label is None or prob is None:
        raise InputError(
            "a frame does not say which column is what; pass label=... and prob=..., the names of "
            "its columns",
            argument="label" if label is None else "prob",
        )
    more = sorted(set[str]().union(*(task.names for task in as_tasks(tasks))) - set(names))
    chosen = [*names, *more]
    return Sample.from_frame(
        frame, label=label, prob=prob, on=chosen, positive=pos_label, missing=missing, **roles
    )
