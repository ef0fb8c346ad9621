"""More than two classes: probabilities (n, K), residual vectors, draws from the categorical law.

One class at a time is the paper's way: class c against the rest is a binary `Sample`. All
classes together test P(y = c | x, f) = f_c for every c at once, with labels redrawn from the
whole vector of probabilities, so the size of the test is exact and the classes share their draws.
Two classes are one question, which the binary test answers.
"""

from itrust.calibration.multiclass.door import has_classes, multiclass_test
from itrust.calibration.multiclass.results import (
    ClassFinding,
    ClassResult,
    MulticlassResult,
    TakenFor,
    taken_for_of,
)

__all__ = [
    "ClassFinding",
    "ClassResult",
    "MulticlassResult",
    "TakenFor",
    "has_classes",
    "multiclass_test",
    "taken_for_of",
]
