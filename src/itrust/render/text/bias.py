"""Local bias, groups, slices, curves and maps in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from itrust._core import BoolArray, counted, signed, signed_in
from itrust.bias import (
    SIGN,
    Axis,
    BiasCurve,
    BiasMap,
    CurvePart,
    GroupTable,
    LocalBias,
    PartBias,
    SliceTable,
)
from itrust.render.document import (
    Document,
    Notes,
    Sentence,
    Table,
    document_of,
    interval,
    noted,
    number,
    seconds,
)

MAX_COORDINATES = 4
PART_HEAD = ("where", "rows", "bias", "interval", "p")
RATES = ("predicted", "observed")
PICKED = "a bias that is shown is told smaller than that: what is picked out looks too large"


@document_of.register
def _(part: PartBias) -> Document:
    return Document(f"{part.where}: {part.estimate:+.3f}, {counted(part.rows, 'row')}")


def bias_and_interval(part: Any) -> tuple[str, str]:
    """The bias and its interval, with the digits that the interval can tell."""
    ends, size = (part.lower, part.upper), getattr(part, "estimate", part.bias)
    if not np.isfinite(size):
        return number(size, "+.3f"), interval(*ends)
    bias, lower, upper = (signed_in(value, *ends) for value in (size, *ends))
    return bias, f"{lower} to {upper}"


def part_cells(part: PartBias, *, rates: bool = False) -> tuple[str, ...]:
    """A group or slice as a row of `PART_HEAD`, with `RATES` behind the rows if asked for."""
    means = (number(rate, ".3f") for rate in (part.predicted, part.observed)) if rates else ()
    pvalue = number(part.pvalue, ".3g")
    return (str(part.where), f"{part.rows:,}", *means, *bias_and_interval(part), pvalue)


def _signs(parts: Iterable[PartBias]) -> list[str]:
    """What a bias is, and how the told one differs."""
    return [SIGN, *([PICKED] if any(part.at_least for part in parts) else [])]


@document_of.register
def _(result: GroupTable) -> Document:
    few = ["few rows" if group.small else "" for group in result]
    cells = [(group.name, *part_cells(group, rates=True)[1:]) for group in result]
    rows = [(*row, note) for row, note in zip(cells, few, strict=True)] if any(few) else cells
    head = ("group", "rows", *RATES, *PART_HEAD[2:], *([""] if any(few) else []))
    together = "for all groups at once" if result.simultaneous else "each on its own"
    hold = f"intervals and p-values hold {together}"
    cover = f"{hold}; p is at most {result.alpha:g} where the interval excludes 0"
    if result.is_exact:
        kind = (
            ': exact for "calibrated in every row", asymptotically valid for "no mean bias in '
            'the group"'
        )
    else:
        why = "by clusters" if result.null.keeps_clusters else "as for out-of-fold predictions"
        kind = f"; both are approximate, {why}"
    return Document(
        f"Bias in {counted(len(result), 'group')}",
        [Table(head, rows), Notes([*_signs(result), f"{cover}{kind}", *noted(result.notes).lines])],
    )


@document_of.register
def _(result: SliceTable) -> Document:
    others = [part for part in result.slices if part not in result.confirmed]
    rows = [
        ("+" if part.pvalue <= result.alpha else "", *part_cells(part, rates=True))
        for part in (*result.confirmed, *others)
    ]
    meaning = (
        f"+ confirmed at alpha {result.alpha:g}: the interval excludes 0. Intervals and p-values "
        f"hold for all {result.regions:,} regions at once"
    )
    if not result.slices:
        looked = counted(result.regions, "region") if result.regions else "no region: too few rows"
        meaning = f"none stands out; looked at {looked}"
    return Document(
        f"Slices of {result.n:,} rows: {len(result.confirmed) or 'none'} confirmed",
        [
            Table(("", "slice", "rows", *RATES, *PART_HEAD[2:]), rows),
            Notes([*_signs(result), meaning, *noted(result.notes).lines]),
        ],
    )


@document_of.register
def _(result: LocalBias) -> Document:
    names = [column.name for column in result.points.columns]
    prob = result.kernel.prob
    near = "any" if prob is None else prob.describe(["p"])
    typical = f"{np.median(result.size):,.0f} effective neighbours of a typical point"
    unshown, redraws = result.known & ~result.flagged, result.redraws
    shown = []
    for side, sign in (("too low", 1), ("too high", -1)):
        most = extreme(result, sign)
        share = share_of(shown_at(result, sign))
        shown.append((side, f"shown at {share}{most and '; '}{most}"))
    rows = [
        ("rows", f"{result.n:,}; {typical}"),
        *shown,
        ("not shown", f"to be miscalibrated by these rows: {share_of(unshown)}"),
        (
            "unknown",
            f"fewer than {result.min_neighbours} effective neighbours: {share_of(~result.known)}",
        ),
        ("neighbours", f"in the prediction: {near}"),
        ("", f"in covariates: {result.kernel.x.describe(names)}"),
        ("made with", f"{redraws.draws:,} draws, seed {redraws.seed}, {seconds(result.elapsed)}"),
    ]
    meaning = (
        "shown: the model is miscalibrated for some neighbours of the point. If it is calibrated "
        f"for all neighbours of some points, at most {result.alpha:g} of samples show any there. "
        "Sizes are averages over neighbours, and at least so large for all points at once."
    )
    notes = noted([*result.notes_on_points, *result.notes]).lines
    return Document(
        f"Local bias at {points_text(result)}",
        [Sentence(SIGN), Table(("", ""), rows), Notes([meaning, *notes])],
    )


def points_text(bias: LocalBias) -> str:
    """Which points a local bias was estimated at."""
    if bias.rows is None:
        return counted(len(bias), "point")
    rows = bias.sample.n if bias.redraws.extract is None else bias.n
    if len(bias) == rows:
        return "every row"
    return f"{len(bias):,} of {rows:,} rows, drawn at random"


def shown_at(bias: LocalBias, sign: int) -> BoolArray:
    """Points where the model is shown to be too low (1) or too high (-1), (m,)."""
    return np.asarray(bias.flagged & (sign * bias.values > 0))


def share_of(marked: BoolArray) -> str:
    """How many points, and which share of all."""
    return f"{counted(int(marked.sum()), 'point')} ({100 * marked.mean():.1f} %)"


def extreme(bias: LocalBias, sign: int) -> str:
    """The place where the largest bias of this sign is shown; nothing where none is."""
    if not shown_at(bias, sign).any():
        return ""
    k = int(np.nanargmax(sign * bias.band.at_least))
    return f"most, by at least {_size(bias.band.at_least[k])}, at {point_text(bias, k)}"


def _size(bias: float) -> str:
    """A size without its sign."""
    return signed(abs(bias))[1:]


def point_text(bias: LocalBias, k: int) -> str:
    """A point of a local bias: its first covariates and the prediction."""
    parts = []
    for column in bias.points.columns[:MAX_COORDINATES]:
        cell = column.cell(k)
        shown = column.shown(cell, 4) if isinstance(cell, float) else str(cell)
        parts.append(f"{column.name} {'missing' if cell is None else shown}")
    return ", ".join([*parts, f"prediction {bias.points.p[k]:.2f}"])


@document_of.register
def _(result: BiasCurve) -> Document:
    rows = [(part.group, f"{part.rows:,}", part_text(result, part)) for part in result.parts]
    return Document(
        f"Bias along {result.axis.name}",
        [Table(("group", "rows", "shown"), rows), Notes([SIGN, *noted(result.bias.notes).lines])],
    )


def part_text(curve: BiasCurve, part: CurvePart) -> str:
    """Where a group's curve is shown to be off, and by how much."""
    if not part.known:
        return f"unknown: nowhere {curve.bias.min_neighbours} effective neighbours"
    shown = np.nan_to_num(part.pvalues, nan=1.0) <= curve.bias.alpha
    if not shown.any():
        return "not shown to be miscalibrated by these rows"
    return "; ".join(_stretches(curve.axis, part, shown))


def _stretches(axis: Axis, part: CurvePart, shown: BoolArray) -> Iterator[str]:
    """Neighbouring positions where the bias has one sign, and the largest that is shown."""
    sign = np.where(shown, np.sign(part.values), 0.0)
    edges = np.flatnonzero(np.diff(sign, prepend=0.0, append=0.0))
    for start, stop in pairwise(edges):
        if sign[start] == 0:
            continue
        ends = [axis.shown(int(k)) for k in (start, stop - 1)]
        least = np.abs(part.band.at_least)
        peak = int(start + np.argmax(least[start:stop]))
        where = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
        told = f"too {'low' if sign[start] > 0 else 'high'} by at least {_size(least[peak])}"
        yield f"{where}: {told} at {axis.shown(peak)} (p {part.pvalues[peak]:.2g})"


@document_of.register
def _(result: BiasMap) -> Document:
    across, up = result.axes
    return Document(
        f"Bias over {across.name} and {up.name}",
        [Table(("", ""), list(cells_text(result))), Notes([SIGN, *noted(result.bias.notes).lines])],
    )


def cells_text(result: BiasMap) -> Iterator[tuple[str, str]]:
    """In how many cells the model is shown to be too low or too high, and where most."""
    across, up = result.axes
    for told, sign in (("too low", 1), ("too high", -1)):
        shown = result.flagged & (sign * result.values > 0)
        text = f"shown in {int(shown.sum()):,} of {counted(shown.size, 'cell')}"
        if shown.any():
            least = sign * result.bias.band.at_least.reshape(shown.shape)
            row, column = np.unravel_index(int(np.nanargmax(least)), shown.shape)
            where = f"{across.name} {across.shown(int(column))}, {up.name} {up.shown(int(row))}"
            text += f"; most, by at least {_size(least[row, column])}, at {where}"
        yield told, text
    unknown = int(np.isnan(result.values).sum())
    yield "unknown", f"{counted(unknown, 'cell')} with too few rows nearby"
