"""Recalibration: every method of the paper under one interface, and `Local`.

>>> import itrust as it
>>> calibration, test = it.simulate.survey(6_000, rng=0).sample.split([0.5, 0.5], rng=0)
>>> local = it.recalibrate.Local().fit(calibration)
>>> local.predict(test.p, test).shape
(3000,)
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from itrust.recalibrate.applying import Application as Application
    from itrust.recalibrate.applying import ClassApplication as ClassApplication
    from itrust.recalibrate.applying import write_recalibrated as write_recalibrated
    from itrust.recalibrate.base import Recalibrator
    from itrust.recalibrate.binning import BBQ, HistogramBinning, Isotonic
    from itrust.recalibrate.classifier import RecalibratedClassifier
    from itrust.recalibrate.comparison import compare
    from itrust.recalibrate.local import Local
    from itrust.recalibrate.mcgrad import MCGrad
    from itrust.recalibrate.methods import CLASS_METHODS, METHODS, load
    from itrust.recalibrate.multicalibration import Multicalibration, ProportionalMulticalibration
    from itrust.recalibrate.multiclass.base import ClassRecalibrator as ClassRecalibrator
    from itrust.recalibrate.multiclass.one_vs_rest import OneVsRest
    from itrust.recalibrate.multiclass.scaling import (
        DirichletCalibration,
        MatrixScaling,
        TemperatureScaling,
        VectorScaling,
    )
    from itrust.recalibrate.names import FOR_CLASSES as FOR_CLASSES
    from itrust.recalibrate.names import READS_COVARIATES as READS_COVARIATES
    from itrust.recalibrate.notes import outside_note as outside_note
    from itrust.recalibrate.notes import rows_note as rows_note
    from itrust.recalibrate.notes import unchanged_note as unchanged_note
    from itrust.recalibrate.results import Recalibration, RecalibrationTable
    from itrust.recalibrate.sigmoid import Beta, Platt, Temperature
    from itrust.recalibrate.untested import UntestedCorrection as UntestedCorrection
    from itrust.recalibrate.untested import untested_correction as untested_correction
else:
    from itrust._core import loaded_later

    __getattr__ = loaded_later(__name__)

__all__ = [
    "BBQ",
    "CLASS_METHODS",
    "METHODS",
    "Beta",
    "DirichletCalibration",
    "HistogramBinning",
    "Isotonic",
    "Local",
    "MCGrad",
    "MatrixScaling",
    "Multicalibration",
    "OneVsRest",
    "Platt",
    "ProportionalMulticalibration",
    "RecalibratedClassifier",
    "Recalibration",
    "RecalibrationTable",
    "Recalibrator",
    "Temperature",
    "TemperatureScaling",
    "VectorScaling",
    "compare",
    "load",
]
__dir__ = __all__.copy  # what tab completion offers
