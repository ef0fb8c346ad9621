"""Pieces of the paper's results in studies/pages/paper, for other pages."""

from __future__ import annotations

from quoting.kit import Results, piece, share, span

CENTRED = "permuted, centred"


@piece("type1", "levels of the published null")
def published_null(found: Results) -> str:
    """Kernel on predictions, n = 50, every width."""
    cells = found["results"]["by width"].values()
    return span([cell[CENTRED] for cell in cells], share)
