"""What validators print about the predictions alone, beside what the test given X says."""

from itrust.calibration.bins import CELLS, FINENESS, PredictionCells, fine_cell
from itrust.calibration.validation.results import (
    DecisionPoint,
    Grade,
    Reason,
    Validation,
    ValidationStatistic,
    ValidationTable,
)
from itrust.calibration.validation.statistics import (
    grade_tests,
    quantile_of,
    restricted_cubic,
    validated,
    validation,
)
from itrust.calibration.validation.tally import (
    Partition,
    TallySums,
    edges_of,
    grade_name,
    read_grades,
    refuse_many_grades,
    tallied,
)
