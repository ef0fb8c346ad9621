"""What an exact p-value rests on, and what of it the data can contradict.

Rows independent given (x, f); labels unseen by the model; weights that carry no information on y
beyond (x, f); covariates that were known before the labels. All but the second can leave traces,
which are looked for here.
"""

from itrust.calibration.assumptions.notes import assumption_notes, dependence_in_words
from itrust.calibration.assumptions.signs import (
    Autocorrelation,
    Dependence,
    ResidualRows,
    UnitSums,
    dependence,
    neighbour_correlation,
    outcome_in_weights,
    residual_autocorrelation,
    spread_rows,
)
