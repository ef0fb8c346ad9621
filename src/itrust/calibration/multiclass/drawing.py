"""Who draws the classes of rows that a calibrated model would have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from itrust._core import (
    BoolArray,
    InputError,
)
from itrust.calibration.multiclass.passes import ClassNull
from itrust.calibration.multiclass.rows import CheckedRows, RowsOfClasses
from itrust.data import MulticlassSample
from itrust.nulls import (
    Bernoulli,
    Categorical,
    CategoricalCopula,
    Copula,
    Null,
    Rademacher,
    carriers_of,
)


def drawing_of(null: Null | None, sample: MulticlassSample, rows: CheckedRows) -> ClassDrawing:
    """Who draws: classes of independent rows, signs of clusters, or classes alike within them."""
    if isinstance(null, Bernoulli) or (null is None and rows.units is None):
        return ClassDrawing(Categorical(rows.p))
    if rows.units is None or not (null is None or isinstance(null, Rademacher | Copula)):
        raise InputError(
            "several classes take Bernoulli(), which redraws classes row by row, or Rademacher() "
            "or Copula() where rows have clusters, not {kind}(); other nulls are for one class, "
            "klce_test(sample.one_class(name), null=...)",
            argument="null",
            value=null,
            details={"kind": type(null).__name__},
        )
    binary = [sample.one_class(name) for name in sample.classes]
    if binary[0].design.known_by_replicates:
        raise InputError(
            "a test of all classes needs to know the clusters, not replicate weights alone; name "
            "them, or test one class at a time with klce_test(sample.one_class(name))",
            argument="sample",
        )
    carriers = [carriers_of(one) for one in binary]
    even = np.array([own.symmetric and own.enough for own in carriers])
    too_few = not any(own.enough for own in carriers)  # which the result tells
    if isinstance(null, Rademacher) or (null is None and (too_few or even.all())):
        return ClassDrawing(Rademacher(), even)
    rho = null.rho if isinstance(null, Copula) else None
    alike = CategoricalCopula.alike(rows.p, rows.units, 0.0 if rho is None else rho)
    return ClassDrawing(alike, even, is_open=rho is None)


@dataclass(frozen=True, eq=False)
class ClassDrawing:
    """Who draws, and what is known of clusters.

    `even` tells of every class whether its sums over clusters are nearly symmetric; `is_open`
    whether correlations within clusters are to be found from the labels.
    """

    null: ClassNull
    even: BoolArray | None = None
    is_open: bool = False

    def laws(self, rows: RowsOfClasses, seed: int) -> tuple[ClassNull, ...]:
        """The laws that a calibrated model may follow; a p-value is the largest of theirs."""
        if self.is_open and isinstance(self.null, CategoricalCopula):
            whole = rows.at_hand
            assert whole is not None  # rows in files have no clusters
            return self.null.laws(whole.codes, whole.weights, seed)
        return (self.null,)
