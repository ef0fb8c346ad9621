"""What validators print about the predictions alone, beside what the test given X says."""

from itrust.calibration.validation.results import (
    DecisionPoint,
    Grade,
    Reason,
    Validation,
    ValidationStatistic,
)
from itrust.calibration.validation.tally import (
    GradeColumn,
    GradeSums,
    Partition,
    TallySums,
    edges_of,
    grade_name,
    refuse_many_grades,
    tallied,
)
from itrust.calibration.validation.validating import THRESHOLDS, validated, validation

__all__ = [
    "THRESHOLDS",
    "DecisionPoint",
    "Grade",
    "GradeColumn",
    "GradeSums",
    "Partition",
    "Reason",
    "TallySums",
    "Validation",
    "ValidationStatistic",
    "edges_of",
    "grade_name",
    "refuse_many_grades",
    "tallied",
    "validated",
    "validation",
]
