"""Readable rules where the model is wrong: found on some rows, confirmed on others."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import log_ndtr

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    Rng,
    as_seed,
    counted,
    plain,
    smallest_tickets,
    tickets,
)
from itrust._core import html as notebook
from itrust.bias.groups import SIGN, bias_notes, checked_reach, mean_intervals, rowwise_null
from itrust.bias.slice_search import Candidate, Searcher, rows_to_search
from itrust.bias.smoothing import Members, average
from itrust.calibration import step_down, unadjusted_pvalues
from itrust.data import Predicate, Sample, checked_sample
from itrust.nulls import Null, RowwiseNull

MIN_UNITS = 4  # rows or clusters that can be halved
FAR_OUT = 40.0  # normal score beyond which all is alike
MAX_TOLD = 2  # of the slices that were not confirmed
ALIKE = 0.5  # rows in common, of rows in either
ALIKE_SHARE = 0.3  # of the level, spread evenly


@dataclass(frozen=True)
class Slice:
    """A rule, and how far the model is off where it holds.

    Attributes
    ----------
    rule : str
    region : Predicate
        `region.rows(points)` marks the rows of any sample.
    rows : int
        Of the whole sample.
    share : float
        Of the whole sample's weight.
    predicted, observed : float
        On the rows that the rule was not found on.
    lower, upper : float
        Interval of the bias, together for all slices, on those rows.
    judged_on : int
        Number of those rows.
    found_bias : float
        On the rows of the search; exaggerated, for it was looked for.
    unadjusted_pvalue, pvalue : float
        One-sided in the direction that was found; alone, and adjusted for all slices.
    """

    rule: str
    region: Predicate
    rows: int
    share: float
    predicted: float
    observed: float
    lower: float
    upper: float
    judged_on: int
    found_bias: float
    unadjusted_pvalue: float
    pvalue: float

    @property
    def bias(self) -> float:
        """Observed minus predicted; positive: the model underestimates."""
        return self.observed - self.predicted

    @property
    def impact(self) -> float:
        """Share of the weight times the bias: what the slice does to an overall rate."""
        return self.share * self.bias

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        facts = {name: value for name, value in vars(self).items() if name != "region"}
        found: dict[str, Any] = plain({**facts, "bias": self.bias, "impact": self.impact})
        return found

    def _html_row(self) -> tuple[str, ...]:
        return (
            self.rule,
            f"{self.rows:,}",
            notebook.number(self.bias, "+.3f"),
            notebook.interval(self.lower, self.upper),
            notebook.number(self.pvalue, ".3g"),
        )

    def __str__(self) -> str:
        return f"{self.rule}: {self.bias:+.3f}, {counted(self.rows, 'row')}"


@dataclass(frozen=True, eq=False, repr=False)
class SliceTable(Sequence[Slice]):
    """Outcome of `bias_slices`: confirmed slices first, by rows times bias.

    Attributes
    ----------
    slices : tuple of Slice
    alpha : float
    """

    slices: tuple[Slice, ...]
    alpha: float
    n: int
    null: Null
    draws: int
    seed: int
    elapsed: float
    fewest: int
    notes: tuple[str, ...]

    @property
    def confirmed(self) -> tuple[Slice, ...]:
        """Those whose adjusted p-value reaches the level."""
        return tuple(part for part in self.slices if part.pvalue <= self.alpha)

    @property
    def _others(self) -> tuple[Slice, ...]:
        return tuple(part for part in self.slices if part.pvalue > self.alpha)

    def __len__(self) -> int:
        return len(self.slices)

    def __getitem__(self, key: Any) -> Any:
        return self.slices[key]

    def to_dict(self) -> dict[str, Any]:
        """All facts, ready for JSON."""
        return {
            "slices": [part.to_dict() for part in self.slices],
            "confirmed": len(self.confirmed),
            "alpha": self.alpha,
            "n": self.n,
            "null": self.null.to_dict(),
            "draws": self.draws,
            "seed": self.seed,
            "elapsed": self.elapsed,
            "fewest": self.fewest,
            "notes": list(self.notes),
        }

    def to_arrow(self) -> pa.Table:
        """One row a slice (`.to_pandas()` if you like)."""
        return pa.Table.from_pylist([part.to_dict() for part in self.slices])

    def _repr_html_(self) -> str:
        rows = [
            (*part._html_row(), "confirmed" if part.pvalue <= self.alpha else "not confirmed")
            for part in self.slices
        ]
        return notebook.card(
            f"{len(self.confirmed)} of {counted(len(self), 'slice')} confirmed",
            notebook.table(["rule", "rows", "bias", "interval", "p", ""], rows),
            notebook.notes(
                ["found on one half of the rows, judged on the other", SIGN, *self.notes]
            ),
        )

    def __repr__(self) -> str:
        return f"<SliceTable: {len(self.confirmed)} of {len(self)} slices confirmed>"

    def __str__(self) -> str:
        lines = [f"Slices found on one half of {self.n:,} rows and judged on the other"]
        told = [*self.confirmed, *self._others[:MAX_TOLD]]
        for part in told:
            mark = "+" if part.pvalue <= self.alpha else " "
            lines.append(
                f"  {mark} {part.rule}\n      {part.judged_on:,} of {part.rows:,} rows, predicted "
                f"{part.predicted:.3f}, observed {part.observed:.3f}, bias {part.bias:+.3f} "
                f"({part.lower:+.3f} to {part.upper:+.3f}), p {part.pvalue:.3g}"
            )
        if not self.slices:
            lines.append(f"  none: no rule with {self.fewest:,} rows of a half stands out")
        if len(self.slices) > len(told):
            lines.append(f"    and {len(self.slices) - len(told)} more that were not confirmed")
        lines.append(SIGN)
        lines.append(
            f"+ confirmed at alpha {self.alpha:g} on the half that the slice was not found on;"
        )
        lines.append(
            "rates, intervals (two-sided) and p-values (one-sided) are that half's, and hold"
        )
        lines.append("for all slices at once")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def bias_slices(
    sample: Sample,
    *,
    conditions: int = 3,
    most: int = 8,
    fewest: int = 50,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
) -> SliceTable:
    """Find rules under which the model is wrong, and confirm them on rows the search has not seen.

    A rule joins up to `conditions` of: a level, a range of a number or date, a missing value, a
    range of the prediction. Rows are halved at random; each half is searched, and what it shows is
    judged on the other at half of the level. Given the rows of the search that is exact: if the
    model is right on every row, any slice is confirmed in at most `alpha` of samples.

    Parameters
    ----------
    sample : Sample
    conditions : int
        The most a rule may have.
    most : int
        Slices to look for.
    fewest : int
        Rows of the search that a slice must hold, effective ones if there are weights.
    alpha : float
    draws : int
    rng : int, Generator or None

    Examples
    --------
    >>> import itrust as it
    >>> found = it.bias_slices(it.simulate.survey(5_000, rng=0).sample, draws=199, rng=0)
    >>> len(found.confirmed) > 0
    True
    """
    checked_sample(sample)
    for name, value in (("conditions", conditions), ("most", most), ("fewest", fewest)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{name} must be a whole number of at least 1, not {value!r}")
    begun = time.perf_counter()
    draws, seed = checked_reach(draws, alpha, parts=2), as_seed(rng)
    null = rowwise_null(sample)
    units = sample.n if sample.clusters is None else sample.clusters
    halves: tuple[Sample, ...] = ()
    if units >= MIN_UNITS:
        halves = sample.split([0.5, 0.5], rng=np.random.default_rng([seed, 0]))
    judged: list[Slice] = []
    for number in range(len(halves)):
        search, others = halves[number], halves[1 - number]
        found = Searcher(_searchable(search, most), conditions, fewest).candidates(most)
        # Labels of their own for each half; half of the level for each.
        own_seed = as_seed(np.random.default_rng([seed, 1 + number]))
        judged.extend(_judged(found, others, sample, null, draws, own_seed, alpha / 2))
    return SliceTable(
        slices=_apart(judged, sample, alpha),
        alpha=alpha,
        n=sample.n,
        null=null,
        draws=draws,
        seed=seed,
        elapsed=time.perf_counter() - begun,
        fewest=int(fewest),
        notes=bias_notes(sample, null),
    )


def _searchable(search: Sample, most: int) -> Sample:
    rows = smallest_tickets(tickets(0, search.n), rows_to_search(search, most))
    return search if rows.size == search.n else search.take(rows)


def _judged(
    found: Sequence[Candidate],
    others: Sample,
    sample: Sample,
    null: RowwiseNull,
    draws: int,
    seed: int,
    alpha: float,
) -> Iterator[Slice]:
    """Slices found on one half, judged on the other at half of the level."""
    inside = [candidate.region.rows(others.points) for candidate in found]
    held = [c for c, rows in zip(found, inside, strict=True) if others.weights_or_ones[rows].any()]
    if not held:
        return
    weights = Members([candidate.region for candidate in held])
    averages = average(others, weights, null, draws, seed, spread=True, title="slices")
    direction = np.sign([candidate.bias for candidate in held])
    scores = averages.null_scores(studentised=True) * direction[:, None]
    band = mean_intervals(averages, alpha, simultaneous=True)
    attention = _attention(np.array([candidate.worth for candidate in held]))
    # Tails on the log scale, so that what was more striking in the search needs to show less.
    tails = -log_ndtr(-np.minimum(scores, FAR_OUT))
    own, weighed = unadjusted_pvalues(scores), np.log(attention)[:, None] + tails
    adjusted = np.minimum(2 * step_down(weighed), 1.0)
    w = sample.weights_or_ones
    for k, candidate in enumerate(held):
        everywhere = candidate.region.rows(sample.points)
        predicted = float(averages.moments.mean_prediction[k])
        yield Slice(
            rule=str(candidate.region),
            region=candidate.region,
            rows=int(everywhere.sum()),
            share=float(w[everywhere].sum() / w.sum()),
            predicted=predicted,
            observed=predicted + float(averages.values[k]),
            lower=float(band.lower[k]),
            upper=float(band.upper[k]),
            judged_on=int(candidate.region.rows(others.points).sum()),
            found_bias=candidate.bias,
            unadjusted_pvalue=float(own[k]),
            pvalue=float(adjusted[k]),
        )


def _attention(worth: FloatArray) -> FloatArray:
    """Shares of the level: some to every slice alike, the rest by odds from the search, (k,)."""
    odds = np.exp(worth - worth.max())
    return np.asarray(ALIKE_SHARE / worth.size + (1 - ALIKE_SHARE) * odds / odds.sum())


def _apart(judged: list[Slice], sample: Sample, alpha: float) -> tuple[Slice, ...]:
    """Confirmed slices first, by impact; of two that hold nearly the same rows, the first."""
    ranked = sorted(judged, key=lambda part: (part.pvalue > alpha, -abs(part.impact)))
    kept: list[tuple[Slice, BoolArray]] = []
    for part in ranked:
        rows = part.region.rows(sample.points)
        if all((rows & other).sum() <= ALIKE * (rows | other).sum() for _, other in kept):
            kept.append((part, rows))
    return tuple(part for part, _ in kept)
