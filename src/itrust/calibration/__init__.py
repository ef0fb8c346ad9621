"""Are the probabilities calibrated, given the covariates? Statistic, test, power, scores."""

from itrust.calibration import scores
from itrust.calibration.adaptive import PreparedTest as PreparedTest
from itrust.calibration.adaptive import default_dictionary
from itrust.calibration.adaptive import planned_test as planned_test
from itrust.calibration.adaptive import prepared_test as prepared_test
from itrust.calibration.adaptive import result_of_laws as result_of_laws
from itrust.calibration.assumptions import Autocorrelation as Autocorrelation
from itrust.calibration.assumptions import (
    residual_autocorrelation as residual_autocorrelation,
)
from itrust.calibration.bins import Bins as Bins
from itrust.calibration.bins import EqualMass as EqualMass
from itrust.calibration.bins import Sums as Sums
from itrust.calibration.bins import bin_sums as bin_sums
from itrust.calibration.dictionary import (
    Dictionary,
    Entry,
    Scaling,
    Shape,
    direction_dictionary,
    make_bank,
)
from itrust.calibration.inputs import checked_draws as checked_draws
from itrust.calibration.inputs import checked_source as checked_source
from itrust.calibration.inputs import few_clusters as few_clusters
from itrust.calibration.inputs import null_warnings as null_warnings
from itrust.calibration.interval import BoundFinding
from itrust.calibration.interval import BoundScores as BoundScores
from itrust.calibration.interval import IntervalRun as IntervalRun
from itrust.calibration.interval import bound_findings as bound_findings
from itrust.calibration.interval import refuse_dependence as refuse_dependence
from itrust.calibration.klce import klce2, klce_test, null_sd
from itrust.calibration.learned import (
    Across,
    FoldResult,
    Folds,
    Forward,
    TunedKernel,
    WitnessResult,
    tune_widths,
    tuned_test,
    witness_test,
)
from itrust.calibration.multiclass import (
    ClassFinding,
    ClassResult,
    MulticlassResult,
    TakenFor,
    multiclass_test,
)
from itrust.calibration.multiclass import taken_for_of as taken_for_of
from itrust.calibration.multiclass.scores import class_losses as class_losses
from itrust.calibration.multiclass.scores import mean_loss as mean_loss
from itrust.calibration.multiclass.scores import top_label as top_label
from itrust.calibration.multiplicity import step_down as step_down
from itrust.calibration.multiplicity import unadjusted_pvalues as unadjusted_pvalues
from itrust.calibration.pipeline import Scoring as Scoring
from itrust.calibration.power import MIN_CLUSTERS as MIN_CLUSTERS
from itrust.calibration.power import (
    Clustering,
    Coverage,
    Detectable,
    IntraClusterCorrelation,
    RegionPower,
    SampleSize,
    detectable,
    intra_cluster_correlation,
    sample_size,
)
from itrust.calibration.power import design_effect as design_effect
from itrust.calibration.power import detectable_by as detectable_by
from itrust.calibration.power import within_pairs as within_pairs
from itrust.calibration.power import worst_of as worst_of
from itrust.calibration.results import JOINT_FAMILIES as JOINT_FAMILIES
from itrust.calibration.results import CalibrationResult, Finding
from itrust.calibration.results import Refusal as Refusal
from itrust.calibration.scores import ReliabilityCurve as ReliabilityCurve
from itrust.calibration.scores import curve_of_bins as curve_of_bins
from itrust.calibration.scores import reliability_curve as reliability_curve
from itrust.calibration.scores import residuals_in_cells as residuals_in_cells
from itrust.calibration.scores import smooth_ece_of_cells as smooth_ece_of_cells
from itrust.calibration.scores import surprise as surprise
from itrust.calibration.tails import from_normal_score as from_normal_score
from itrust.calibration.tails import normal_score as normal_score
from itrust.calibration.tails import student_quantile as student_quantile
from itrust.calibration.tails import student_tail as student_tail
from itrust.calibration.tails import upper_score as upper_score
from itrust.calibration.validation import DecisionPoint as DecisionPoint
from itrust.calibration.validation import Grade as Grade
from itrust.calibration.validation import GradeColumn as GradeColumn
from itrust.calibration.validation import Partition as Partition
from itrust.calibration.validation import Reason as Reason
from itrust.calibration.validation import TallySums as TallySums
from itrust.calibration.validation import Validation as Validation
from itrust.calibration.validation import ValidationStatistic as ValidationStatistic
from itrust.calibration.validation import ValidationTable as ValidationTable
from itrust.calibration.validation import edges_of as edges_of
from itrust.calibration.validation import grade_name as grade_name
from itrust.calibration.validation import refuse_many_grades as refuse_many_grades
from itrust.calibration.validation import tallied as tallied
from itrust.calibration.validation import validated as validated

__all__ = [
    "Across",
    "BoundFinding",
    "CalibrationResult",
    "ClassFinding",
    "ClassResult",
    "Clustering",
    "Coverage",
    "Detectable",
    "Dictionary",
    "Finding",
    "FoldResult",
    "Forward",
    "IntraClusterCorrelation",
    "MulticlassResult",
    "RegionPower",
    "SampleSize",
    "Shape",
    "TakenFor",
    "WitnessResult",
    "default_dictionary",
    "detectable",
    "intra_cluster_correlation",
    "klce2",
    "klce_test",
    "multiclass_test",
    "null_sd",
    "sample_size",
    "scores",
    "tune_widths",
    "tuned_test",
    "witness_test",
]
__dir__ = __all__.copy  # what tab completion offers
