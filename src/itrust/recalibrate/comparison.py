"""`compare`: methods of recalibration side by side, on rows that none of them has seen."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from itrust._core import AnyArray, InputError, Rng, as_seed, progress_bar, progress_stages
from itrust.bias import Slice, bias_slices
from itrust.calibration import EqualMass, klce_test, null_sd, reliability_curve, scores, top_label
from itrust.data import MulticlassSample, Rows, Sample, Scan, rows_at_hand, share_codes
from itrust.recalibrate.base import READ_A_SECOND, Recalibrator
from itrust.recalibrate.results import Recalibration, RecalibrationTable
from itrust.recalibrate.rows import (
    CalibrationRows,
    random_rows,
    refuse_other_outcomes,
    rows_in_files,
    unseen,
)

NONE = "none"
MIN_FOR_SLICES = 40
TOO_MANY_SHARED = 0.5


def compare(
    methods: Mapping[str, Recalibrator] | Sequence[Recalibrator],
    calibration: Sample | Scan | MulticlassSample,
    test: Sample | Scan | MulticlassSample,
    *,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
    slices: bool = True,
    progress: bool | None = None,
) -> RecalibrationTable:
    """Fit every method on calibration rows and judge it on test rows.

    Of rows in files, methods learn as `Recalibrator.fit` says, and they are judged on 100,000
    random ones, chosen without a look at labels. Of several classes the log loss is of all classes,
    the Brier score half the squared distance from the label, the test that of all classes at once;
    other scores are of the class with the largest probability, and slices are not searched.

    Parameters
    ----------
    methods : mapping of str to Recalibrator, or sequence of Recalibrator
        What to compare; without names each has that of its class. The methods are cloned.
    calibration : Sample, MulticlassSample or a scan
        Rows to fit on, which the model was not trained on.
    test : Sample, MulticlassSample or a scan
        Rows to judge on: of the same model, with the same covariates, and no row in common.
    alpha : float
        Size of the test that confirms a slice.
    draws : int
        Number of draws of each test from its null distribution.
    rng : int, numpy Generator or None
        Randomness of the tests, the same draws for every method; None: other draws in each call.
    slices : bool
        Whether to search for confirmed slices as well, which takes about as long as the test.
    progress : bool, optional
        Whether to show which method is at work, as for `itrust.audit`; default: in a terminal.

    Returns
    -------
    RecalibrationTable
        One row for each method, the probabilities as given first.

    Examples
    --------
    >>> import itrust as it
    >>> from itrust.recalibrate import Isotonic, Local, compare
    >>> calibration, test = it.simulate.survey(6_000, rng=0).sample.split([0.5, 0.5], rng=0)
    >>> table = compare([Isotonic(), Local()], calibration, test, draws=199, rng=0, slices=False)
    >>> [(method.name, method.pvalue <= 0.05) for method in table]
    [('none', True), ('Isotonic', True), ('Local', False)]
    """
    named = _named(methods)
    seed = as_seed(rng)
    reads_alone = any(own is not None and not own.reads_covariates for own in named.values())
    to_read = (1 + reads_alone) * rows_in_files(calibration) + rows_in_files(test)
    stages: dict[str | None, float] = {None: to_read / READ_A_SECOND} if to_read else {}
    stages |= dict.fromkeys(named, 1.0)
    with progress_stages(stages, _step_words, progress) as begin:
        advance = begin(None, to_read) if to_read else unseen
        learn = CalibrationRows(calibration, lambda _: advance)
        judge, test_rows = random_rows(test, rows_at_hand(), advance)
        _refuse_others(learn.sample, judge)
        if reads_alone:
            _ = learn.predictions
        searched = slices and not judge.several

        def judged(name: str, method: Recalibrator | None) -> Recalibration:
            begun = time.perf_counter()
            fitted = None
            if method is not None:
                with progress_bar("fitting", 1.0):
                    fitted = clone(method)._learn(learn)
            told = judge if fitted is None else fitted.apply(judge)
            return Recalibration(
                name=name,
                fitted=fitted,
                seconds=time.perf_counter() - begun,
                slice=_worst_slice(told, alpha, draws, seed) if searched else None,
                outside=0 if fitted is None else int(fitted.outside(judge.p, judge).sum()),
                at_edge=0 if fitted is None else int(fitted.at_edge(judge.p, judge).sum()),
                **_scored(told, draws, seed),
            )

        recalibrations = []
        for name, method in named.items():
            begin(name, 1 + searched + (method is not None))
            recalibrations.append(judged(name, method))
    return RecalibrationTable(
        tuple(recalibrations), learn.n, judge.n, draws, seed, test_rows, of_classes=judge.several
    )


def _scored(rows: Any, draws: int, seed: int) -> dict[str, Any]:
    """Scores and the test; of several classes, curves are of the largest probability."""
    result = klce_test(rows, draws=draws, rng=seed)
    one = top_label(rows) if rows.several else rows
    return {
        **scores.main_scores(rows),
        "mce": scores.mce(one),
        "curve": reliability_curve(one, EqualMass(10)),
        "test": result,
        "null_sd": result.null_sd if rows.several else null_sd(rows),
    }


def _step_words(name: str | None) -> str:
    if name is None:
        return "reading the rows"
    return "judging the probabilities as given" if name == NONE else f"recalibrating by {name}"


def _named(
    methods: Mapping[str, Recalibrator] | Sequence[Recalibrator],
) -> dict[str, Recalibrator | None]:
    if isinstance(methods, Recalibrator):
        methods = [methods]
    if not isinstance(methods, Mapping):
        by_name: dict[str, Recalibrator] = {}
        for method in methods:
            name, number = type(method).__name__, 2
            while name in by_name:
                name, number = f"{type(method).__name__} ({number})", number + 1
            by_name[name] = method
        methods = by_name
    for name, method in methods.items():
        if not isinstance(method, Recalibrator):
            raise InputError(
                "{name} is a {kind}, not a recalibrator such as Local() (with its brackets)",
                argument="methods",
                value=method,
                details={"name": repr(name), "kind": type(method).__name__},
            )
        if name == NONE:
            raise InputError(
                "the name {value} stands for the probabilities as given; take another",
                argument="methods",
                value=name,
            )
    return {NONE: None, **methods}


def _worst_slice(sample: Any, alpha: float, draws: int, seed: int) -> Slice | None:
    if not sample.columns or sample.n < MIN_FOR_SLICES:
        return None
    confirmed = bias_slices(sample, alpha=alpha, draws=draws, rng=seed).confirmed
    return max(confirmed, key=lambda found: abs(found.at_least), default=None)


def _refuse_others(calibration: Rows, test: Rows) -> None:
    """Refuse rows of other classes or covariates, and rows that a method has learned from."""
    refuse_other_outcomes(test, calibration.classes if calibration.several else None, "test")
    if calibration.names != test.names:
        raise InputError(
            "calibration and test have different covariates", argument="test", value=test.names
        )
    known, asked = (_keys(rows, calibration) for rows in (calibration, test))
    values, counts = np.unique(known, return_counts=True)
    # Rows that occur once in calibration: others may be alike without being the same.
    shared = int(np.isin(asked, values[counts == 1]).sum())
    if shared > max(TOO_MANY_SHARED * test.n, 1):
        raise InputError(
            "{count} of the {rows} test rows are among the calibration rows; divide them, such as "
            "with sample.split([0.5, 0.5])",
            argument="test",
            count=shared,
            details={"rows": test.n},
        )


def _keys(rows: Rows, other: Rows) -> AnyArray:
    """Rows as bytes, (n,): equal rows, equal bytes in both."""
    columns = [rows.codes.astype(float), *rows.predictions.T]
    for column, known in zip(rows.columns, other.columns, strict=True):
        _, codes = share_codes([known], [column])
        columns.append(codes.astype(float) if column.is_category else column.values)
    # Adding 0 makes one zero of two, whose bytes differ.
    matrix = np.ascontiguousarray(np.nan_to_num(np.column_stack(columns), nan=-1e300) + 0.0)
    return matrix.view(np.dtype((np.void, matrix.dtype.itemsize * matrix.shape[1]))).ravel()
