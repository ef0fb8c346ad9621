"""Are the probabilities calibrated, given the covariates? Statistic, test, power, scores."""

from itrust.calibration import scores, validation
from itrust.calibration.adaptive import (
    PreparedTest,
    checked_draws,
    checked_source,
    default_dictionary,
    null_warnings,
    planned_test,
    prepared_test,
    result_of_laws,
)
from itrust.calibration.assumptions import Autocorrelation, residual_autocorrelation
from itrust.calibration.bins import Bins, EqualMass
from itrust.calibration.dictionary import (
    Dictionary,
    Scaling,
    Shape,
    direction_dictionary,
    make_bank,
)
from itrust.calibration.evidence import MAX_DESCRIBED, described, findings_of, log_tails
from itrust.calibration.interval import BoundFinding, BoundScores, IntervalRun, bound_findings
from itrust.calibration.klce import klce2, klce_test, null_sd
from itrust.calibration.learned import (
    Across,
    FoldResult,
    Forward,
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
    taken_for_of,
)
from itrust.calibration.pipeline import Scores, Scoring, symmetric_checks
from itrust.calibration.power import (
    MIN_CLUSTERS,
    Clustering,
    Coverage,
    Detectable,
    IntraClusterCorrelation,
    RegionPower,
    SampleSize,
    design_effect,
    detectable,
    detectable_by,
    intra_cluster_correlation,
    sample_size,
    within_pairs,
    worst_of,
)
from itrust.calibration.results import (
    JOINT_FAMILIES,
    CalibrationResult,
    Finding,
    Refusal,
    evidence_of,
)
from itrust.calibration.scores import (
    ReliabilityCurve,
    class_losses,
    mean_loss,
    reliability_curve,
    top_label,
)
from itrust.calibration.tails import (
    from_normal_score,
    normal_score,
    pearson3_log_sf,
    step_down,
    student_quantile,
    student_tail,
    unadjusted_pvalues,
    upper_score,
)
from itrust.calibration.validation import (
    DecisionPoint,
    Grade,
    Validation,
    ValidationStatistic,
    ValidationTable,
    refuse_many_grades,
)
