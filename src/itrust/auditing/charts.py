"""Numbers behind the charts, as plain lists: curves, maps and the null distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from itrust._core import BoolArray, FloatArray, plain, smallest_tickets, tickets
from itrust.auditing.audits import Audit
from itrust.bias import FEWEST, Axis, BiasMap, CurvePart, bias_curve, bias_map, has_order
from itrust.calibration import KLCEResult
from itrust.data import PREDICTION, Column, Sample

# What bounds cost and size of a page, whatever the number of rows and covariates.
MAX_ROWS = 20_000
MAX_AXES, MAX_SPLITS, MAX_GROUPS, MAX_MAPS = 6, 4, 12, 8
POINTS, SIDE, BARS, DRAWS = 40, 26, 40, 199
DIGITS = 5


class Charts:
    """Makes the curves and maps of one audit, from all rows or from some of many.

    Parameters
    ----------
    audit : Audit
    least : int
        Rows that must stand behind a point or cell.
    hidden : names of groups that are not to be shown
    """

    def __init__(self, audit: Audit, least: int, hidden: set[str]) -> None:
        whole = audit.diagnosis.bias.whole
        self.rows = min(whole.n, MAX_ROWS)
        self.whole_rows = whole.n
        self.sample: Sample = (
            whole if self.rows == whole.n else whole.take(_some_rows(whole.n, self.rows))
        )
        self.least, self.hidden = least, hidden
        self.settings: dict[str, Any] = {
            "fewest": max(FEWEST, least),
            "alpha": audit.alpha,
            "draws": min(audit.draws, max(DRAWS, math.ceil(2 / audit.alpha))),
            "rng": audit.seed,
        }
        self.shares: dict[str, float] = {}
        self.few = {"draws": math.ceil(1 / audit.alpha)}

    @property
    def _ordered(self) -> list[str]:
        named = [c.name for c in self.sample.columns if has_order(c)]
        own = [] if PREDICTION in self.sample.names else [PREDICTION]
        varies = np.unique(self.sample.p[:1_000]).size > 1
        return [*named[: MAX_AXES - 1], *(own if varies else [])]

    @property
    def _levels(self) -> list[str]:
        return [c.name for c in self.sample.columns if 2 <= _level_count(c) <= MAX_GROUPS]

    def curves(self) -> list[dict[str, Any]]:
        """Along each number and the prediction: all rows, then every group of few enough."""
        made = (self._curve(name) for name in self._ordered)
        return [curve for curve in made if curve["parts"]]

    def _known(self, name: str) -> float:
        """Share of the range of a covariate that has enough rows; long tails have few."""
        if name not in self.shares:
            settings = self.settings | self.few
            part = bias_curve(self.sample, name, points=POINTS, **settings).parts[0]
            self.shares[name] = float(np.isfinite(part.values).mean())
        return self.shares[name]

    def _curve(self, name: str) -> dict[str, Any]:
        parts: list[dict[str, Any]] = []
        points = round(POINTS / max(self._known(name), 0.25))
        whole = bias_curve(self.sample, name, points=points, **self.settings)
        for by in [None, *self._levels[:MAX_SPLITS]]:
            found = whole
            if by is not None:
                found = bias_curve(self.sample, name, by, points=points, **self.settings)
            parts.extend(
                self._drawn(found.axis, part, by)
                for part in found.parts
                if part.known and part.rows >= self.least and part.group not in self.hidden
            )
        notes = list(whole.bias.notes_on_points)
        return {"name": name, "kind": _kind(whole.axis), "parts": parts, "notes": notes}

    def _drawn(self, axis: Axis, part: CurvePart, by: str | None) -> dict[str, Any]:
        # Ends without a value would only tell the smallest and largest value of the file.
        some = _inner(np.isfinite(part.values))
        wrong = np.nan_to_num(part.pvalues, nan=1.0) <= self.settings["alpha"]
        return {
            "group": part.group,
            "by": by,
            "rows": part.rows,
            "at": [axis.shown(k) for k in range(some.start, some.stop)],
            "x": _positions(axis, some),
            **_numbers(
                some,
                bias=part.values,
                lower=part.band.lower,
                upper=part.band.upper,
                null_lower=part.null_band.lower,
                null_upper=part.null_band.upper,
                neighbours=part.size,
                pvalue=part.pvalues,
            ),
            "wrong": plain(wrong[some]),
        }

    def maps(self) -> list[dict[str, Any]]:
        """Over pairs of covariates, and of each with the prediction."""
        covariates = [name for name in self._ordered if name != PREDICTION]
        axes = [*covariates, *self._levels]
        pairs = list(combinations(axes, 2))
        if PREDICTION in self._ordered:
            pairs += [(name, PREDICTION) for name in axes]
        made = (self._map_of(first, second) for first, second in pairs[:MAX_MAPS])
        return [picture for picture in made if picture["bias"]]

    def _map_of(self, first: str, second: str) -> dict[str, Any]:
        shares = [self._known(name) for name in (first, second) if name in self._ordered]
        points = round(SIDE / max(min(shares, default=1.0), 0.5))
        return self._map(bias_map(self.sample, first, second, points=points, **self.settings))

    def _map(self, found: BiasMap) -> dict[str, Any]:
        known = np.isfinite(found.values)
        across, up = found.axes
        columns = self._places(across, np.asarray(known.any(axis=0)))
        rows = self._places(up, np.asarray(known.any(axis=1)))
        block = np.ix_(rows, columns)
        band = (
            side.reshape(known.shape) for side in (found.bias.band.lower, found.bias.band.upper)
        )
        lower, upper = (_rounded(side[block].ravel()) for side in band)
        return {
            "across": _side(across, columns),
            "up": _side(up, rows),
            "bias": _rounded(found.values[block].ravel()),
            "lower": lower,
            "upper": upper,
            "neighbours": _rounded(found.size[block].ravel()),
            "pvalue": _rounded(found.pvalues[block].ravel()),
            "wrong": plain(found.flagged[block].ravel()),
        }

    def _places(self, axis: Axis, known: BoolArray) -> list[int]:
        if axis.labels:
            names = (f"{axis.name} = {label}" for label in axis.labels)
            return [k for k, name in enumerate(names) if known[k] and name not in self.hidden]
        inner = _inner(known)
        return list(range(inner.start, inner.stop))


def _some_rows(n: int, most: int) -> Any:
    return np.sort(smallest_tickets(tickets(0, n), most))


def _level_count(column: Column) -> int:
    if has_order(column):
        return 0
    return int(np.unique(column.values[~column.missing]).size)


def _kind(axis: Axis) -> str:
    if axis.labels:
        return "alpha"
    return "date" if axis.column.kind == "date" else "number"


def _positions(axis: Axis, some: slice) -> list[Any]:
    if _kind(axis) == "date":
        return [axis.shown(k) for k in range(some.start, some.stop)]
    return _rounded(axis.positions[some])


def _side(axis: Axis, places: Sequence[int]) -> dict[str, Any]:
    """An axis of a map: labels, and for numbers the edges of the cells."""
    at = [axis.shown(k) for k in places]
    edges: list[float] = []
    if not axis.labels and places:
        centres = axis.positions[places]
        half = np.diff(centres) / 2 if len(places) > 1 else np.array([0.5])
        inner = centres[:-1] + half if len(places) > 1 else np.array([])
        edges = _rounded(np.array([centres[0] - half[0], *inner, centres[-1] + half[-1]]))
    return {"name": axis.name, "kind": _kind(axis), "at": at, "edges": edges}


def _inner(known: BoolArray) -> slice:
    """From the first place with a value to the last."""
    places = np.flatnonzero(known)
    return slice(int(places[0]), int(places[-1]) + 1) if places.size else slice(0, 0)


def _numbers(some: slice, **arrays: FloatArray) -> dict[str, Any]:
    return {name: _rounded(values[some]) for name, values in arrays.items()}


def _rounded(values: FloatArray) -> list[Any]:
    """As many digits as a picture can show."""
    return [None if not math.isfinite(v) else float(f"{v:.{DIGITS}g}") for v in map(float, values)]


def null_picture(test: KLCEResult) -> dict[str, Any] | None:
    """Draws in bars, and where the data lie."""
    drawn = test.null_distribution
    if drawn is None:
        return None
    counts, edges = np.histogram(drawn, bins=min(BARS, max(5, drawn.size // 10)))
    return {
        "edges": _rounded(edges),
        "counts": plain(counts),
        "observed": plain(float(test.score)),
        "largest": plain(float(drawn.max())),
        "median": plain(float(np.median(drawn))),
        "at_least": test.at_least,
        "draws": test.draws,
        "combined": hasattr(test, "combined"),
    }
