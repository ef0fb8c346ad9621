"""Methods for several classes side by side, on rows that none of them has seen."""

from __future__ import annotations

import time

import numpy as np
from sklearn.base import clone

from itrust._core import AnyArray, InputError, progress_stages
from itrust.calibration import (
    EqualMass,
    class_losses,
    mean_loss,
    multiclass_test,
    reliability_curve,
    scores,
    top_label,
)
from itrust.data import MulticlassSample
from itrust.recalibrate.base import Recalibrator
from itrust.recalibrate.multiclass.rows import refuse_other_classes
from itrust.recalibrate.results import Recalibration, RecalibrationTable


def compare_classes(
    methods: dict[str, Recalibrator | None],
    calibration: MulticlassSample,
    test: object,
    draws: int,
    seed: int,
    progress: bool | None,
) -> RecalibrationTable:
    """Fit every method on calibration rows and judge it on test rows, all of several classes."""
    judge = _same_classes(calibration, test)

    def judged(name: str, method: Recalibrator | None) -> Recalibration:
        begun = time.perf_counter()
        fitted, told = None, judge
        if method is not None:
            fitted = clone(method).fit(calibration, progress=False)
            told = fitted.apply(judge)
        seconds = time.perf_counter() - begun
        result = multiclass_test(told, draws=draws, rng=seed)
        top = top_label(told)
        brier, log_loss = (mean_loss(told, losses) for losses in class_losses(told))
        return Recalibration(
            name=name,
            fitted=fitted,
            brier=brier,
            log_loss=log_loss,
            ece=scores.ece(top),
            mce=scores.mce(top),
            smooth_ece=scores.smooth_ece(top),
            curve=reliability_curve(top, EqualMass(10)),
            test=result,
            null_sd=result.null_sd,
            slice=None,
            seconds=seconds,
            outside=0 if fitted is None else int(fitted.outside(judge.p, judge).sum()),
            at_edge=0 if fitted is None else int(fitted.at_edge(judge.p, judge).sum()),
        )

    found = []
    with progress_stages(dict.fromkeys(methods, 1.0), _step_words, progress) as begin:
        for name, method in methods.items():
            begin(name)
            found.append(judged(name, method))
    return RecalibrationTable(tuple(found), calibration.n, judge.n, draws, seed)


def _step_words(name: str) -> str:
    return f"recalibrating by {name}"


def _same_classes(calibration: MulticlassSample, test: object) -> MulticlassSample:
    if not isinstance(test, MulticlassSample):
        raise InputError(
            "calibration has several classes, and test is a {kind}; make a MulticlassSample of it",
            argument="test",
            details={"kind": type(test).__name__},
        )
    refuse_other_classes(test.classes, calibration.classes, "test")
    if calibration.names != test.names:
        raise InputError(
            "calibration and test have different covariates", argument="test", value=test.names
        )
    shared = int(np.isin(_keys(test), _keys(calibration)).sum())
    if test.n > 1 and len(np.unique(test.p, axis=0)) == test.n and shared > test.n / 2:
        raise InputError(
            "{count} of the {rows} test rows are among the calibration rows; divide them before",
            argument="test",
            count=shared,
            details={"rows": test.n},
        )
    return test


def _keys(sample: MulticlassSample) -> AnyArray:
    """Labels and probabilities of rows as bytes, (n,)."""
    rows = np.ascontiguousarray(np.column_stack([sample.codes.astype(float), sample.p]) + 0.0)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
