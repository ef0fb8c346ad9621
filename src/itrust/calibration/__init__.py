"""Are the probabilities calibrated, given the covariates? Statistic, test, power, scores."""

from itrust.calibration import scores
from itrust.calibration.adaptive import default_dictionary, klce_test
from itrust.calibration.dictionary.entries import Dictionary, Entry
from itrust.calibration.dictionary.terms import fading
from itrust.calibration.evaluate import Engine
from itrust.calibration.klce import checked_draws, cluster_notes, doubts_about, klce2, null_sd
from itrust.calibration.multiclass import MulticlassResult, multiclass_test
from itrust.calibration.multiplicity import step_down, unadjusted_pvalues
from itrust.calibration.power import Detectable, SampleSize, detectable, sample_size
from itrust.calibration.results import AdaptiveResult, Finding, KLCEResult
from itrust.calibration.scores import Bins, EqualMass, ReliabilityCurve, reliability_curve
from itrust.calibration.tails import from_normal_score, normal_score, upper_score
from itrust.calibration.tuning import tune_widths, tuned_test
from itrust.calibration.witness import Across, Forward, WitnessResult, witness_test

__all__ = [
    "Across",
    "AdaptiveResult",
    "Bins",
    "Detectable",
    "Dictionary",
    "Engine",
    "Entry",
    "EqualMass",
    "Finding",
    "Forward",
    "KLCEResult",
    "MulticlassResult",
    "ReliabilityCurve",
    "SampleSize",
    "WitnessResult",
    "checked_draws",
    "cluster_notes",
    "default_dictionary",
    "detectable",
    "doubts_about",
    "fading",
    "from_normal_score",
    "klce2",
    "klce_test",
    "multiclass_test",
    "normal_score",
    "null_sd",
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
