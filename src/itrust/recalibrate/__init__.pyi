from itrust.recalibrate.applying import Application as Application
from itrust.recalibrate.applying import write_recalibrated as write_recalibrated
from itrust.recalibrate.base import Recalibrator as Recalibrator
from itrust.recalibrate.binning import BBQ as BBQ
from itrust.recalibrate.binning import HistogramBinning as HistogramBinning
from itrust.recalibrate.binning import Isotonic as Isotonic
from itrust.recalibrate.classifier import RecalibratedClassifier as RecalibratedClassifier
from itrust.recalibrate.comparison import compare as compare
from itrust.recalibrate.local import Local as Local
from itrust.recalibrate.local import untested_correction as untested_correction
from itrust.recalibrate.methods import CLASS_METHODS as CLASS_METHODS
from itrust.recalibrate.methods import METHODS as METHODS
from itrust.recalibrate.methods import OneVsRest as OneVsRest
from itrust.recalibrate.methods import load as load
from itrust.recalibrate.multicalibration import MCGrad as MCGrad
from itrust.recalibrate.multicalibration import Multicalibration as Multicalibration
from itrust.recalibrate.multicalibration import (
    ProportionalMulticalibration as ProportionalMulticalibration,
)
from itrust.recalibrate.results import Recalibration as Recalibration
from itrust.recalibrate.results import RecalibrationTable as RecalibrationTable
from itrust.recalibrate.results import outside_note as outside_note
from itrust.recalibrate.results import rows_note as rows_note
from itrust.recalibrate.results import unchanged_note as unchanged_note
from itrust.recalibrate.scaling import Beta as Beta
from itrust.recalibrate.scaling import DirichletCalibration as DirichletCalibration
from itrust.recalibrate.scaling import MatrixScaling as MatrixScaling
from itrust.recalibrate.scaling import Platt as Platt
from itrust.recalibrate.scaling import Temperature as Temperature
from itrust.recalibrate.scaling import TemperatureScaling as TemperatureScaling
from itrust.recalibrate.scaling import VectorScaling as VectorScaling

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
