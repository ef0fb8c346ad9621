"""More than two classes: probabilities (n, K), residual vectors, draws from the categorical law.

One class at a time is the paper's way: class c against the rest is a binary `Sample`. All
classes together test P(y = c | x, f) = f_c for every c at once, with labels redrawn from the
whole vector of probabilities, so the size of the test is exact and the classes share their draws.
Two classes are one question, which the binary test answers.
"""

from itrust.calibration.multiclass.checks import class_scores, prepare_classes, trace_of_products
from itrust.calibration.multiclass.results import (
    ClassFinding,
    ClassResult,
    MulticlassResult,
    TakenFor,
    taken_for_of,
)
from itrust.calibration.multiclass.testing import (
    ClassDrawing,
    has_classes,
    joint_statistics,
    multiclass_test,
)
