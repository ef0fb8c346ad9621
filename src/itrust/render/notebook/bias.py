"""Local bias, groups, slices, curves and maps in a notebook."""

from __future__ import annotations

import math

import numpy as np

from itrust._core import counted
from itrust.bias import (
    SIGN,
    BiasCurve,
    BiasMap,
    CubicFit,
    GroupBias,
    GroupTable,
    LocalBias,
    PartBias,
    SliceTable,
)
from itrust.render import html
from itrust.render.showing import as_html
from itrust.render.text.bias import (
    bias_and_interval,
    cells_text,
    extreme,
    part_text,
    points_text,
    rows_of,
    share_of,
    shown_at,
)

GROUP_HEAD = ("group", "rows", "predicted", "observed", "bias", "interval", "p")
PART_HEAD = ("where", "rows", "bias", "interval", "p")


@as_html.register
def _(result: PartBias) -> str:
    table = html.table(PART_HEAD, [part_cells(result)])
    return html.card("Bias in some of the rows", table, html.notes([SIGN]))


@as_html.register
def _(result: GroupTable) -> str:
    return html.card(
        f"Bias in {counted(len(result), 'group')}",
        html.table(GROUP_HEAD, [group_cells(group) for group in result]),
        html.notes([SIGN, *result.notes]),
    )


def group_cells(group: GroupBias) -> tuple[str, ...]:
    """A group as a row of `GROUP_HEAD`."""
    rates = (html.number(rate, ".3f") for rate in (group.predicted, group.observed))
    name = f"{group.name}{' (few rows)' if group.small else ''}"
    return (name, f"{group.rows:,}", *rates, *_judged(group))


def _judged(part: PartBias) -> tuple[str, str, str]:
    """Bias, interval and p-value."""
    if math.isnan(part.bias):
        ends = html.interval(part.lower, part.upper)
        return html.number(part.bias, "+.3f"), ends, html.number(part.pvalue, ".3g")
    return *bias_and_interval(part), html.number(part.pvalue, ".3g")


@as_html.register
def _(result: SliceTable) -> str:
    rows = [
        (*part_cells(part), "confirmed" if part.pvalue <= result.alpha else "not confirmed")
        for part in result
    ]
    return html.card(
        f"{len(result.confirmed)} of {counted(len(result), 'slice')} confirmed",
        html.table(["slice", *PART_HEAD[1:], ""], rows),
        html.notes(["found on one part of the rows, judged on the other", SIGN, *result.notes]),
    )


def part_cells(part: PartBias) -> tuple[str, ...]:
    """A group or slice as a row of `PART_HEAD`."""
    return (str(part.where), rows_of(part), *_judged(part))


@as_html.register
def _(result: LocalBias) -> str:
    rows = [
        ("too low", share_of(shown_at(result, 1)), extreme(result, 1)),
        ("too high", share_of(shown_at(result, -1)), extreme(result, -1)),
        ("not shown to be miscalibrated", share_of(result.known & ~result.flagged), ""),
        ("unknown: too few neighbours", share_of(~result.known), ""),
    ]
    return html.card(
        f"Local bias at {points_text(result)}",
        html.table(["the model is", "at", ""], rows),
        html.notes([SIGN, *result.notes_on_points, *result.notes]),
    )


@as_html.register
def _(result: BiasCurve) -> str:
    rows = [(part.group, f"{part.rows:,}", part_text(result, part)) for part in result.parts]
    return html.card(
        f"Bias along {result.axis.name}",
        html.table(["group", "rows", "shown"], rows),
        html.notes([SIGN, *result.bias.notes]),
    )


@as_html.register
def _(result: BiasMap) -> str:
    across, up = result.axes
    return html.card(
        f"Bias over {across.name} and {up.name}",
        html.table(["the model is", ""], list(cells_text(result))),
        html.notes([SIGN, *result.bias.notes]),
    )


@as_html.register
def _(result: CubicFit) -> str:
    rows = [
        (
            part.group,
            html.number(np.min(part.values), "+.3f"),
            html.number(np.max(part.values), "+.3f"),
        )
        for part in result.groups
    ]
    left_out = [f"{group}: fewer than four known points" for group in result.left_out]
    return html.card(
        f"Cubic fits of the local bias against {result.name}, no error control",
        html.table(["group", "smallest bias", "largest bias"], rows),
        html.notes([SIGN, *left_out]),
    )
