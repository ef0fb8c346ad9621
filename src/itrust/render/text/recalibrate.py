"""Methods of recalibration side by side, as plain text."""

from __future__ import annotations

import math

from itrust.recalibrate import RecalibrationTable
from itrust.render.showing import WIDTH, as_text
from itrust.render.text.layout import spelt


@as_text.register
def _(result: RecalibrationTable, width: int = WIDTH) -> str:  # noqa: ARG001
    names = max(len(spelt(method.name)) for method in result)
    head = f"{'':<{names}}   Brier  log loss    ECE    MCE     KLCE^2  p-value  seconds"
    lines = [
        f"{spelt(m.name):<{names}}  {m.brier:.4f}  {loss_text(m.log_loss):>8}  {m.ece:.3f}  "
        f"{_largest(m.mce):>5}  {m.klce2:>+9.2e}  {m.pvalue:>7.3f}  {m.seconds:>7.1f}"
        for m in result
    ]
    below = [*slices_text(result), *result.notes, footing(result)]
    return "\n".join([head, *map(spelt, (*lines, *below))])


def _largest(value: float) -> str:
    """The largest calibration error, which may be withheld."""
    return "-" if math.isnan(value) else f"{value:.3f}"


def loss_text(value: float) -> str:
    """A log loss, which is infinite where a label was called impossible."""
    return "infinite" if math.isinf(value) else f"{value:.4f}"


def slices_text(result: RecalibrationTable) -> list[str]:
    """Lines about the worst confirmed slice of each method; none are searched of classes."""
    if result.of_classes:
        return []
    found = [
        f"  {method.name}: {method.slice.rule}, bias at least {method.slice.at_least:+.3f}"
        for method in result
        if method.slice
    ]
    return (
        ["worst confirmed slice, judged on half of the rows:", *found]
        if found
        else ["no confirmed slices"]
    )


def footing(result: RecalibrationTable) -> str:
    """How the numbers were made."""
    return (
        f"fitted on {result.calibration_rows:,} rows, judged on {result.test_rows:,} others; "
        f"p-values from {result.draws} draws, seed {result.seed}"
    )
