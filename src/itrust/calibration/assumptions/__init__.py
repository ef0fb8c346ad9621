"""What an exact p-value rests on, and what of it the data can contradict.

Rows independent given (x, f); labels unseen by the model; weights that carry no information on y
beyond (x, f); covariates that were known before the labels. All but the second can leave traces,
which are looked for here.
"""

from itrust.calibration.assumptions.autocorrelation import Autocorrelation as Autocorrelation
from itrust.calibration.assumptions.autocorrelation import (
    residual_autocorrelation as residual_autocorrelation,
)
from itrust.calibration.assumptions.notes import assumption_notes as assumption_notes
