"""Local bias, groups, slices, curves and maps as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from itrust._core import BoolArray, counted, signed, signed_in
from itrust.bias import (
    SIGN,
    Axis,
    BiasCurve,
    BiasMap,
    CubicFit,
    CurvePart,
    GroupTable,
    LocalBias,
    PartBias,
    Slice,
    SliceTable,
)
from itrust.render.showing import WIDTH, as_text
from itrust.render.text.layout import seconds

MAX_UNCONFIRMED = 2  # slices that were not confirmed and are told all the same
MAX_COORDINATES = 4
CUBIC_POINTS = 5


@as_text.register
def _(result: PartBias, width: int = WIDTH) -> str:  # noqa: ARG001
    return f"{result.where}: {result.bias:+.3f}, {counted(result.rows, 'row')}"


def rows_of(part: PartBias) -> str:
    """How many rows its numbers come from; of a slice, those that judged it."""
    if isinstance(part, Slice):
        return f"{part.judged_on:,} of {part.rows:,}"
    return f"{part.rows:,}"


def bias_and_interval(part: PartBias) -> tuple[str, str]:
    """The bias and its interval, with the digits that the interval can tell."""
    ends = part.lower, part.upper
    bias, lower, upper = (signed_in(value, *ends) for value in (part.bias, *ends))
    return bias, f"{lower} to {upper}"


@as_text.register
def _(result: GroupTable, width: int = WIDTH) -> str:  # noqa: ARG001
    cover = f"{100 * (1 - result.alpha):g} % interval"
    names = max(len("group"), *(len(group.name) for group in result.groups))
    head = (
        f"{'group':<{names}}  {'rows':>8} {'predicted':>9} {'observed':>9} {'bias':>7} "
        f"{cover:>17} {'p-value':>8}"
    )
    lines = [
        f"{g.name:<{names}}  {g.rows:>8,} {g.predicted:>9.3f} {g.observed:>9.3f} "
        f"{g.bias:>+7.3f} {signed(g.lower):>8} {signed(g.upper):>8} {g.pvalue:>8.3g}"
        f"{'  few rows' if g.small else ''}"
        for g in result.groups
    ]
    together = "for all groups at once" if result.simultaneous else "each on its own"
    foot = [
        SIGN,
        f"intervals and p-values hold {together}; p is at most {result.alpha:g} where the",
        *_how_sure(result),
    ]
    return "\n".join([head, *lines, *foot, *_notes(result.notes, "")])


def _how_sure(table: GroupTable) -> list[str]:
    if not table.is_exact:
        why = "by clusters" if table.null.keeps_clusters else "as for out-of-fold predictions"
        return [f"interval excludes 0; both are approximate, {why}"]
    return [
        'interval excludes 0: exact for "calibrated in every row", asymptotically valid for',
        '"no mean bias in the group"',
    ]


@as_text.register
def _(result: SliceTable, width: int = WIDTH) -> str:  # noqa: ARG001
    lines = [f"Slices found on one part of {result.n:,} rows and judged on the other"]
    others = [part for part in result.slices if part not in result.confirmed]
    told = [*result.confirmed, *others[:MAX_UNCONFIRMED]]
    for part in told:
        mark = "+" if part.pvalue <= result.alpha else " "
        lines.append(
            f"  {mark} {part.rule}\n      {part.judged_on:,} of {part.rows:,} rows, predicted "
            f"{part.predicted:.3f}, observed {part.observed:.3f}, bias {part.bias:+.3f} "
            f"({signed(part.lower)} to {signed(part.upper)}), p {part.pvalue:.3g}"
        )
    if not result.slices:
        lines.append(f"  none: no rule with {result.min_rows:,} rows of a half stands out")
    if len(result.slices) > len(told):
        lines.append(f"    and {len(result.slices) - len(told)} more that were not confirmed")
    foot = [
        SIGN,
        f"+ confirmed at alpha {result.alpha:g} on the half that the slice was not found on: the",
        "interval excludes 0. Rates, intervals and p-values are that half's, and hold for",
        "all slices at once",
    ]
    return "\n".join([*lines, *foot, *_notes(result.notes, "")])


@as_text.register
def _(result: LocalBias, width: int = WIDTH) -> str:  # noqa: ARG001
    names = [column.name for column in result.points.columns]
    prob = result.kernel.prob
    near = "any" if prob is None else prob.describe(["p"])
    typical = f"{np.median(result.size):,.0f} effective neighbours of a typical point"
    unshown, redraws = result.known & ~result.flagged, result.redraws
    rows = [
        ("rows", f"{result.n:,}; {typical}"),
        *(
            (told, f"shown at {share_of(shown_at(result, sign))}{_below(extreme(result, sign))}")
            for told, sign in (("too low", 1), ("too high", -1))
        ),
        ("not shown", f"to be miscalibrated by these rows: {share_of(unshown)}"),
        (
            "unknown",
            f"fewer than {result.min_neighbours} effective neighbours: {share_of(~result.known)}",
        ),
        ("neighbours", f"in the prediction: {near}"),
        ("", f"in covariates: {result.kernel.x.describe(names)}"),
        ("made with", f"{redraws.draws:,} draws, seed {redraws.seed}, {seconds(result.elapsed)}"),
    ]
    lines = [f"Local bias at {points_text(result)}", f"  {SIGN}", ""]
    lines += [f"  {name:<12}{text}" for name, text in rows]
    lines += [
        "",
        "  shown: the model is miscalibrated for some neighbours of the point. If it is calibrated",
        f"  for all neighbours of some points, at most {result.alpha:g} of samples show any there.",
        "  Sizes are averages over neighbours, and at least so large for all points at once.",
    ]
    return "\n".join([*lines, *_notes((*result.notes_on_points, *result.notes))])


def _below(text: str) -> str:
    return f"\n{'':14}{text}" if text else ""


def _notes(notes: Sequence[str], indent: str = "  ") -> list[str]:
    return [f"{indent}note: {note}" for note in notes]


def points_text(bias: LocalBias) -> str:
    """Which points a local bias was estimated at."""
    if bias.rows is None:
        return counted(len(bias), "point")
    rows = bias.whole.n if bias.redraws.extract is None else bias.n
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


@as_text.register
def _(result: BiasCurve, width: int = WIDTH) -> str:  # noqa: ARG001
    names = max(len(part.group) for part in result.parts)
    told = (f"  {part.group:<{names}}  {part_text(result, part)}" for part in result.parts)
    head = f"Bias along {result.axis.name}   ({SIGN})"
    return "\n".join([head, *told, *_notes(result.bias.notes)])


def part_text(curve: BiasCurve, part: CurvePart) -> str:
    """Where a group's curve is shown to be off, and by how much."""
    if not part.known:
        few = f"nowhere {curve.bias.min_neighbours} effective neighbours"
        return f"unknown: {counted(part.rows, 'row')}, {few}"
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


@as_text.register
def _(result: BiasMap, width: int = WIDTH) -> str:  # noqa: ARG001
    across, up = result.axes
    lines = [f"Bias over {across.name} and {up.name}   ({SIGN})"]
    lines += [f"  {told:<9} {text}" for told, text in cells_text(result)]
    return "\n".join([*lines, *_notes(result.bias.notes)])


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


@as_text.register
def _(result: CubicFit, width: int = WIDTH) -> str:  # noqa: ARG001
    lines = [f"Cubic fits of the local bias against {result.name}, no error control"]
    names = max((len(part.group) for part in result.groups), default=0)
    for part in result.groups:
        at = np.linspace(part.covariate.min(), part.covariate.max(), CUBIC_POINTS)
        told = (
            f"{result.column.shown(float(x), 4)}: {value:+.3f}"
            for x, value in zip(at, part.at(at), strict=True)
        )
        lines.append(f"  {part.group:<{names}}  {', '.join(told)}")
    lines.extend(f"  {group}: fewer than four known points" for group in result.left_out)
    return "\n".join([*lines, SIGN])
