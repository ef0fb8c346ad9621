"""A reliability curve, as plain text."""

from __future__ import annotations

from itrust.calibration import ReliabilityCurve
from itrust.render.showing import WIDTH, as_text

GAP = "gap = observed - predicted; positive: the model underestimates"


@as_text.register
def _(result: ReliabilityCurve, width: int = WIDTH) -> str:  # noqa: ARG001
    head = f"{'rows':>9} {'predicted':>10} {'observed':>9} {'interval':>16} {'gap':>8}"
    lines = [
        f"{row['rows']:>9,} {row['predicted']:>10.3f} {row['observed']:>9.3f} "
        f"{row['lower']:>8.3f} {row['upper']:>7.3f} {row['gap']:>+8.3f}"
        for row in result.to_arrow().to_pylist()
    ]
    return "\n".join([head, *lines, GAP])
