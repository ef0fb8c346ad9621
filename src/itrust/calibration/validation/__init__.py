"""What validators print about the predictions alone, beside what the test given X says."""

from itrust.calibration.validation.results import (
    DecisionPoint,
    Grade,
    Reason,
    Validation,
    ValidationStatistic,
    ValidationTable,
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
    thresholds_of,
)
from itrust.calibration.validation.validating import validated, validation

__all__ = [
    "DecisionPoint",
    "Grade",
    "GradeColumn",
    "GradeSums",
    "Partition",
    "Reason",
    "TallySums",
    "Validation",
    "ValidationStatistic",
    "ValidationTable",
    "edges_of",
    "grade_name",
    "refuse_many_grades",
    "tallied",
    "thresholds_of",
    "validated",
    "validation",
]
