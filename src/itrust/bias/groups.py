"""Bias by group: predicted and observed rates, intervals and adjusted p-values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import ndtri

from itrust._core import FloatArray, InputError, Rng, as_seed, counted, did_you_mean, listed, plain
from itrust._core import html as notebook
from itrust.bias.bands import Band, confidence_band, critical_value
from itrust.bias.smoothing import Averages, Members, average
from itrust.calibration import (
    checked_draws,
    cluster_notes,
    doubts_about,
    step_down,
    unadjusted_pvalues,
)
from itrust.data import (
    PREDICTION,
    Column,
    Missing,
    OneOf,
    Predicate,
    Sample,
    all_of,
    checked_sample,
    column_of,
    level_of,
    parts_of,
    value_of,
)
from itrust.nulls import Bernoulli, Null, Rademacher, RowwiseNull

FEW_ROWS = 30
PARTS = 4
MAX_VALUES = 10  # of a number, up to which each is a group
MAX_GROUPS = 2_000
SIGN = "bias = observed - predicted; positive: the model underestimates"


@dataclass(frozen=True)
class GroupBias:
    """How far the model is off in one group.

    Attributes
    ----------
    name : str
    region : Predicate
        `region.rows(points)` marks the rows of any sample.
    rows : int
    size : float
        Effective number of rows: fewer than `rows` if weights differ.
    share : float
        Of the total weight.
    predicted, observed : float
        Weighted mean prediction and rate of positive labels.
    lower, upper : float
        Interval of the bias.
    unadjusted_pvalue : float
        If this had been the only group.
    pvalue : float
        Adjusted for all groups of the table.
    """

    name: str
    region: Predicate
    rows: int
    size: float
    share: float
    predicted: float
    observed: float
    lower: float
    upper: float
    unadjusted_pvalue: float
    pvalue: float

    @property
    def bias(self) -> float:
        """Observed minus predicted; positive: the model underestimates."""
        return self.observed - self.predicted

    @property
    def small(self) -> bool:
        """Whether the group counts for fewer than 30 rows: read the interval, not the value."""
        return not self.size >= FEW_ROWS  # NaN, without any weight, is small

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        facts = {name: value for name, value in vars(self).items() if name != "region"}
        found: dict[str, Any] = plain({**facts, "bias": self.bias, "small": self.small})
        return found


@dataclass(frozen=True, eq=False, repr=False)
class GroupTable(Sequence[GroupBias]):
    """Outcome of `bias_groups`: a sequence of groups that knows them by name, too.

    Attributes
    ----------
    groups : tuple of GroupBias
    alpha : float
        Of the intervals.
    simultaneous : bool
        Whether the intervals hold together, or each on its own.
    """

    groups: tuple[GroupBias, ...]
    alpha: float
    simultaneous: bool
    null: Null
    draws: int
    seed: int
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self.groups[key]
        for group in self.groups:
            if group.name == key:
                return group
        raise InputError(
            f"there is no group {key!r}; {did_you_mean(key, [g.name for g in self.groups])}"
        )

    def to_dict(self) -> dict[str, Any]:
        """All facts, ready for JSON."""
        return {
            "groups": [group.to_dict() for group in self.groups],
            "alpha": self.alpha,
            "simultaneous": self.simultaneous,
            "null": self.null.to_dict(),
            "draws": self.draws,
            "seed": self.seed,
            "notes": list(self.notes),
        }

    def to_arrow(self) -> pa.Table:
        """One row a group (`.to_pandas()` if you like)."""
        return pa.Table.from_pylist([group.to_dict() for group in self.groups])

    def _repr_html_(self) -> str:
        rows = [
            (
                f"{g.name}{' (few rows)' if g.small else ''}",
                f"{g.rows:,}",
                notebook.number(g.predicted, ".3f"),
                notebook.number(g.observed, ".3f"),
                notebook.number(g.bias, "+.3f"),
                notebook.interval(g.lower, g.upper),
                notebook.number(g.pvalue, ".3g"),
            )
            for g in self.groups
        ]
        head = ["group", "rows", "predicted", "observed", "bias", "interval", "p"]
        return notebook.card(
            f"Bias in {counted(len(self), 'group')}",
            notebook.table(head, rows),
            notebook.notes([SIGN, *self.notes]),
        )

    def __repr__(self) -> str:
        return f"<GroupTable: {counted(len(self), 'group')}>"

    def __str__(self) -> str:
        cover = f"{100 * (1 - self.alpha):g} % interval"
        width = max(len("group"), *(len(group.name) for group in self.groups))
        head = (
            f"{'group':<{width}}  {'rows':>8} {'predicted':>9} {'observed':>9} {'bias':>7} "
            f"{cover:>17} {'p-value':>8}"
        )
        lines = [
            f"{g.name:<{width}}  {g.rows:>8,} {g.predicted:>9.3f} {g.observed:>9.3f} "
            f"{g.bias:>+7.3f} {g.lower:>+8.3f} {g.upper:>+8.3f} {g.pvalue:>8.3g}"
            f"{'  few rows' if g.small else ''}"
            for g in self.groups
        ]
        together = "for all groups at once" if self.simultaneous else "each on its own"
        return "\n".join(
            [
                head,
                *lines,
                SIGN,
                f"intervals hold {together}; p-values, adjusted for all, are exact for",
                '"right in every row"; for "no mean bias in the group" they want many rows',
                *(f"note: {note}" for note in self.notes),
            ]
        )


def bias_groups(
    sample: Sample,
    *names: str,
    pool: int = 0,
    alpha: float = 0.05,
    simultaneous: bool = True,
    crossings: bool = True,
    draws: int = 999,
    rng: Rng = None,
) -> GroupTable:
    """Bias in every group and every crossing of groups.

    A p-value compares the group's mean residual, divided by how much residuals vary in it, with the
    same for redrawn labels: exact for "the model is right in every row", and right for many
    rows for "no mean bias in this group". Adjusted by step-down max-T over all groups.

    Parameters
    ----------
    sample : Sample
    *names : covariates
        Categories by level, numbers with up to ten values by value, other numbers in quarters;
        "prediction" is one of them. Several names: each alone, then their crossings.
    pool : int
        Levels with fewer rows are put together. Small groups are flagged in any case.
    alpha : float
        Of the intervals.
    simultaneous : bool
        False: every interval on its own.
    crossings : bool
        False: every name by itself only.
    draws : int
    rng : int, Generator or None

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(2_000, rng=0).sample
    >>> table = it.bias_groups(town, "region", draws=199, rng=0)
    >>> [(group.name, group.rows) for group in table]
    [('region = north', 783), ('region = south', 607), ('region = west', 610)]
    """
    checked_sample(sample)
    draws, seed = checked_reach(draws, alpha), as_seed(rng)
    if isinstance(pool, bool) or not isinstance(pool, int | np.integer) or pool < 0:
        raise InputError(f"pool must be a whole number of rows, 0 or more, not {pool!r}")
    if not isinstance(simultaneous, bool):
        raise InputError(f"simultaneous must be True or False, not {simultaneous!r}")
    chosen = names_of(names[0] if len(names) == 1 else names)
    if not chosen:
        raise InputError(f"name the covariates to group by: {listed([*sample.names, PREDICTION])}")
    columns = [column_of(sample.points, name) for name in chosen]
    regions = group_regions(columns, pool, deepest=len(columns) if crossings else 1)
    null = rowwise_null(sample)
    inside = [np.count_nonzero(region.rows(sample.points)) for region in regions]
    kept = [(region, rows) for region, rows in zip(regions, inside, strict=True) if rows]
    if len(kept) > MAX_GROUPS:
        raise InputError(
            f"{', '.join(chosen)} make {counted(len(kept), 'group')}, more than {MAX_GROUPS:,}; "
            f"name fewer covariates, or pass pool=30 to put rare levels together"
        )
    averages = average(
        sample,
        Members([region for region, _ in kept]),
        null,
        draws,
        seed,
        spread=True,
        title="groups",
    )
    scores = np.abs(averages.null_scores(studentised=True))
    band = mean_intervals(averages, alpha, simultaneous=simultaneous)
    own, adjusted = unadjusted_pvalues(scores), step_down(scores)
    total = float(sample.weights_or_ones.sum())
    moments, values = averages.moments, averages.values
    found = tuple(
        GroupBias(
            name=str(region),
            region=region,
            rows=int(rows),
            size=float(moments.size[k]),
            share=float(moments.mass[k]) / total,
            predicted=float(moments.mean_prediction[k]),
            observed=float(moments.mean_prediction[k] + values[k]),
            lower=float(band.lower[k]),
            upper=float(band.upper[k]),
            unadjusted_pvalue=float(own[k]),
            pvalue=float(adjusted[k]),
        )
        for k, (region, rows) in enumerate(kept)
    )
    return GroupTable(found, alpha, simultaneous, null, draws, seed, bias_notes(sample, null))


def rowwise_null(sample: Sample) -> RowwiseNull:
    """Redrawn labels, or signs flipped by cluster if the sample has clusters."""
    return Bernoulli() if sample.cluster is None else Rademacher()


def names_of(names: object) -> tuple[str, ...]:
    """One name or several, each once."""
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"name covariates by text, such as 'sex' or ['sex', 'race'], not {names!r}"
        )
    return tuple(dict.fromkeys(names))


def checked_reach(draws: object, alpha: object, parts: int = 1) -> int:
    """Refuse a level that is none, or that so few draws, for each of `parts`, cannot reach."""
    allowed = float(alpha) if isinstance(alpha, Real) and not isinstance(alpha, bool) else 0.0
    if not 0 < allowed < 1:
        raise InputError(f"alpha must lie between 0 and 1, not {alpha!r}")
    if allowed >= 0.5:
        raise InputError(f"alpha is the error that is allowed, such as 0.05, not {alpha!r}")
    number = checked_draws(draws)
    smallest = parts / (1 + number)
    if allowed < smallest - 1e-9:
        raise InputError(
            f"alpha {allowed:g} cannot be reached with {counted(number, 'draw')}, whose smallest "
            f"p-value is {smallest:.3g}; take at least {math.ceil(parts / allowed) - 1:,}"
        )
    return number


def bias_notes(sample: Sample, null: Null) -> tuple[str, ...]:
    """What an attentive colleague would say beside a table of biases."""
    said = [*sample.notes, *doubts_about(sample, null)]
    if sample.impossible.size:
        said.append(
            f"{counted(sample.impossible.size, 'row')} with a label that the model called "
            f"impossible (p = 0 and y = 1, or p = 1 and y = 0): the model is wrong there, "
            f"whatever the size"
        )
    if sample.clusters is not None:
        said.append(
            f"signs of residuals are flipped by cluster, {sample.clusters:,} of them: p-values and "
            f"bands are approximate; sizes count clusters"
        )
        said.extend(cluster_notes(sample, null)[1:])  # few clusters
    return tuple(said)


def mean_intervals(averages: Averages, alpha: float, *, simultaneous: bool) -> Band:
    """Intervals of the bias at all places: together by a multiplier bootstrap, or each alone."""
    if not simultaneous:
        return confidence_band(averages, float(ndtri(1 - alpha / 2)))
    maxima: FloatArray = np.abs(averages.multiplier_scores()).max(axis=0, initial=0.0)
    return confidence_band(averages, critical_value(maxima, alpha))


def group_regions(columns: Sequence[Column], pool: int, deepest: int) -> list[Predicate]:
    """Every column's groups, then those of every crossing of up to `deepest` columns."""
    by_column = [list(_levels(column, pool)) for column in columns]
    found: list[Predicate] = []
    for depth in range(1, deepest + 1):
        for chosen in combinations(by_column, depth):
            for parts in product(*chosen):
                found.append(all_of(parts))
                if len(found) > 100 * MAX_GROUPS:
                    raise InputError(
                        "these covariates make too many groups; name fewer, or pass pool=30"
                    )
    return found


def _levels(column: Column, pool: int) -> Iterator[Predicate]:
    values, counts = np.unique(column.values[~column.missing], return_counts=True)
    if not column.is_category and values.size > MAX_VALUES:
        yield from parts_of(column, PARTS)
    else:
        rare = [value for value, rows in zip(values, counts, strict=True) if rows < pool]
        together = rare if len(rare) > 1 else []
        yield from (level_of(column, value) for value in values if value not in together)
        if together:
            yield OneOf(column.name, tuple(value_of(column, value) for value in together))
    if column.missing.any():
        yield Missing(column.name)
