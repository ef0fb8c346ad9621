"""Are the probabilities calibrated, given the covariates? Statistic, test, power, scores."""

from itrust.calibration import scores
from itrust.calibration.adaptive import (
    PreparedTest,
    default_dictionary,
    klce_test,
    prepared_test,
)
from itrust.calibration.dictionary import Dictionary, Entry, Shape
from itrust.calibration.dictionary.terms import fading
from itrust.calibration.folds import Across, Folds, Forward
from itrust.calibration.inputs import checked_draws, cluster_notes, null_warnings
from itrust.calibration.klce import klce2, null_sd
from itrust.calibration.multiclass import multiclass_test
from itrust.calibration.multiclass_results import ClassResult, MulticlassResult
from itrust.calibration.multiplicity import step_down, unadjusted_pvalues
from itrust.calibration.power import detectable, detectable_by, sample_size
from itrust.calibration.power_results import Detectable, RegionPower, SampleSize
from itrust.calibration.results import CalibrationResult, Finding
from itrust.calibration.scores import Bins, EqualMass, ReliabilityCurve, reliability_curve
from itrust.calibration.tails import from_normal_score, normal_score, upper_score
from itrust.calibration.tuning import TunedKernel, tune_widths, tuned_test
from itrust.calibration.witness import FoldResult, WitnessResult, witness_test

__all__ = [
    "Across",
    "Bins",
    "CalibrationResult",
    "ClassResult",
    "Detectable",
    "Dictionary",
    "Entry",
    "EqualMass",
    "Finding",
    "FoldResult",
    "Folds",
    "Forward",
    "MulticlassResult",
    "PreparedTest",
    "RegionPower",
    "ReliabilityCurve",
    "SampleSize",
    "Shape",
    "TunedKernel",
    "WitnessResult",
    "checked_draws",
    "cluster_notes",
    "default_dictionary",
    "detectable",
    "detectable_by",
    "fading",
    "from_normal_score",
    "klce2",
    "klce_test",
    "multiclass_test",
    "normal_score",
    "null_sd",
    "null_warnings",
    "prepared_test",
    "reliability_curve",
    "sample_size",
    "scores",
    "step_down",
    "tune_widths",
    "tuned_test",
    "unadjusted_pvalues",
    "upper_score",
    "witness_test",
]
