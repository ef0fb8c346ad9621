"""Readable rules where the model is miscalibrated: found on some rows, confirmed on others."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from itrust._core import (
    BoolArray,
    FloatArray,
    Rng,
    as_seed,
    checked_count,
    progress_bar,
    smallest_tickets,
    tickets,
)
from itrust.bias.bands import Shares, Verdicts, judged
from itrust.bias.parts import PartBias, PartTable
from itrust.bias.places import PlaceSet, PlacesPart
from itrust.bias.redraws import Redraws
from itrust.bias.slice_search import MAX_CROSSED, Candidate, Searcher, rows_to_search
from itrust.bias.smoothing import Averages, Members
from itrust.data import Sample, Scan
from itrust.engines import EngineChoice, run_together, work_of_parts

MIN_UNITS = 4  # rows or clusters that can be halved
ALIKE = 0.5  # rows in common, of rows in either
ALIKE_SHARE = 0.3  # of the level, spread evenly
HALVES = 2
FOUND_SHARE = 0.8  # of a slice's error, on the side of the bias that was found
SOME_CROSSED = (
    f"too many covariates to search all rules: those with several conditions take the "
    f"{MAX_CROSSED} covariates that show most by themselves"
)


@dataclass(frozen=True, repr=False)
class Slice(PartBias):
    """A rule, and how far the model is off where it holds.

    Rates, interval and p-values are of the rows that the rule was not found on, and hold for all
    slices together. Both are two-sided, with four fifths of the error that a slice is allowed on
    the side of the bias that was found: an interval excludes 0 where the slice is confirmed.

    Attributes
    ----------
    judged_on : int
        Number of the rows that the rule was judged on.
    found_bias : float
        Bias on the rows of the search; exaggerated, for it was looked for.
    """

    judged_on: int
    found_bias: float

    @property
    def impact(self) -> float:
        """Share of the weight times the bias: what the slice does to an overall rate."""
        return self.share * self.bias

    @property
    def rule(self) -> str:
        """The rule in reading words, such as "age >= 70 and region = south"."""
        return str(self.where)

    def _facts(self) -> Mapping[str, Any]:
        return {"rule": self.rule, **super()._facts(), "impact": self.impact}


@dataclass(frozen=True, eq=False, repr=False)
class SliceTable(PartTable[Slice]):
    """Outcome of `bias_slices`: confirmed slices first, by rows times bias.

    Attributes
    ----------
    slices : tuple of Slice
        What was found, confirmed or not.
    n : int
        Number of rows of the sample.
    elapsed : float
        Seconds that it took.
    min_rows : int
        Rows of the search that a slice had to hold.
    """

    slices: tuple[Slice, ...]
    n: int
    elapsed: float
    min_rows: int

    @property
    def parts(self) -> tuple[Slice, ...]:
        """The slices."""
        return self.slices

    @property
    def confirmed(self) -> tuple[Slice, ...]:
        """Slices whose adjusted p-value is at most `alpha`."""
        return tuple(part for part in self.slices if part.pvalue <= self.alpha)

    def _found(self) -> Mapping[str, Any]:
        return {
            "slices": [part.to_dict() for part in self.slices],
            "confirmed": len(self.confirmed),
            "n": self.n,
            "min_rows": self.min_rows,
        }

    def _counted(self) -> str:
        return f"{len(self.confirmed)} of {len(self)} slices confirmed"


def bias_slices(
    sample: Sample | Scan,
    *,
    max_conditions: int = 3,
    max_slices: int = 8,
    min_rows: int = 50,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
) -> SliceTable:
    """Find rules under which the model is miscalibrated, and confirm them on rows not searched.

    A rule joins up to `max_conditions` of: a level, a range of a number or date, a missing value, a
    range of the prediction. Rows are halved at random; each half is searched, and what it shows is
    judged on the other at half of the level. Of more than 100,000 rows that are independent, as
    many random ones are searched, and all others judge what was found. Given the rows of the search
    that is exact: if the model is calibrated on every row, any slice is confirmed in at most
    `alpha` of samples.

    Parameters
    ----------
    sample : Sample or Scan
        Rows to search and judge.
    max_conditions : int
        Most conditions that a rule may join.
    max_slices : int
        Most slices to look for in each half.
    min_rows : int
        Rows of the search that a slice must hold, effective ones if there are weights.
    alpha : float
        Chance that any slice of a calibrated model is confirmed.
    draws : int
        How often labels are redrawn.
    rng : int, Generator or None
        Seed of halves and draws; None takes a new one.
    engine : "auto", Factor or Dask
        Who goes over the rows.

    Returns
    -------
    SliceTable
        Confirmed slices first.

    Examples
    --------
    >>> import itrust as it
    >>> found = it.bias_slices(it.simulate.survey(5_000, rng=0).sample, draws=199, rng=0)
    >>> len(found.confirmed) > 0
    True
    """
    redraws = Redraws.of(sample, alpha=alpha, draws=draws, rng=rng, parts=HALVES, engine=engine)
    return slices_of(
        redraws, max_conditions=max_conditions, max_slices=max_slices, min_rows=min_rows
    )


def slices_of(
    redraws: Redraws, *, max_conditions: int = 3, max_slices: int = 8, min_rows: int = 50
) -> SliceTable:
    """The table of `bias_slices`, with sample and draws that were checked before."""
    begun = time.perf_counter()
    for name, value in (
        ("max_conditions", max_conditions),
        ("max_slices", max_slices),
        ("min_rows", min_rows),
    ):
        checked_count(value, name)
    if redraws.extract is not None:
        plan = slice_plan(
            redraws, max_conditions=max_conditions, max_slices=max_slices, min_rows=min_rows
        )
        part = PlacesPart.of(
            [PlaceSet(plan.weights, True, plan.bar)],
            redraws.n,
            redraws.draws,
            redraws.seed,
            redraws.survey.unit,
        )
        with progress_bar("slices", work_of_parts(redraws.survey, [part], redraws.draws)) as told:
            ((averages,),) = run_together(
                redraws.engine,
                redraws.survey,
                [part],
                redraws.null,
                redraws.draws,
                redraws.seed,
                told,
            )
        return replace(plan.finished(averages), elapsed=time.perf_counter() - begun)
    sample, seed = redraws.sample, redraws.seed
    halves = halves_of(sample, seed, purpose=0)
    confirmed: list[Slice] = []
    for number in range(len(halves)):
        search, others = halves[number], halves[1 - number]
        searcher = Searcher(_searchable(search, max_slices), max_conditions, min_rows)
        found = searcher.candidates(max_slices)
        # Labels of their own for each half; half of the level for each.
        own_seed = as_seed(np.random.default_rng([seed, 1 + number]))
        half = replace(redraws, sample=others, seed=own_seed, alpha=redraws.alpha / HALVES)
        confirmed.extend(_judged(found, half, sample))
    return SliceTable(
        slices=_apart(confirmed, sample, redraws.alpha),
        n=sample.n,
        elapsed=time.perf_counter() - begun,
        min_rows=int(min_rows),
        **_settings(redraws),
    )


def _settings(redraws: Redraws) -> dict[str, Any]:
    """What a table of slices keeps, and a note where not all covariates were crossed."""
    settings = redraws.settings
    if len(redraws.sample.columns) < MAX_CROSSED:  # the prediction is one more
        return settings
    return {**settings, "notes": (*settings["notes"], SOME_CROSSED)}


def slice_plan(
    redraws: Redraws, *, max_conditions: int = 3, max_slices: int = 8, min_rows: int = 50
) -> SlicePlan:
    """Search the rows at hand; all other rows then judge what was found."""
    searcher = Searcher(_searchable(redraws.sample, max_slices), max_conditions, min_rows)
    return SlicePlan(redraws, tuple(searcher.candidates(2 * max_slices)), int(min_rows))


@dataclass(frozen=True, eq=False)
class SlicePlan:
    """Rules found on the rows at hand, before the other rows judge them."""

    redraws: Redraws
    found: tuple[Candidate, ...]
    min_rows: int

    @property
    def weights(self) -> Members:
        """Who meets the rules."""
        return Members([candidate.where for candidate in self.found])

    @property
    def bar(self) -> float:
        """Rows with a larger ticket took no part in the search."""
        assert self.redraws.extract is not None
        return self.redraws.extract.bar

    def finished(self, averages: Averages) -> SliceTable:
        """Make intervals and p-values from the rows that took no part in the search."""
        redraws, sample, extract = self.redraws, self.redraws.sample, self.redraws.extract
        assert extract is not None
        held = np.flatnonzero(averages.moments.mass > 0)
        averages = averages.take(held)
        found = [self.found[k] for k in held.tolist()]
        slices: list[Slice] = []
        if found:
            told = _shared_verdicts(found, averages, redraws.alpha)
            weights = extract.weights
            for k, candidate in enumerate(found):
                here = np.flatnonzero(candidate.where.rows(sample.points))
                weight = float(here.size if weights is None else weights[here].sum())
                share = weight / extract.census.mass
                share += float(averages.moments.mass[k]) / averages.total
                slices.append(_slice(candidate, averages, told, k, here.size, share, times=1))
        return SliceTable(
            slices=_apart(slices, sample, redraws.alpha),
            n=redraws.n,
            elapsed=0.0,
            min_rows=self.min_rows,
            **_settings(redraws),
        )


def halves_of(sample: Sample, seed: int, purpose: int) -> tuple[Sample, ...]:
    """Both halves of the rows, or of the clusters; none where there are too few to halve."""
    units = sample.n if sample.clusters is None else sample.clusters
    if units < MIN_UNITS:
        return ()
    return sample.split([0.5, 0.5], rng=np.random.default_rng([seed, purpose]))


def _searchable(search: Sample, max_slices: int) -> Sample:
    rows = smallest_tickets(tickets(0, search.n), rows_to_search(search, max_slices))
    return search if rows.size == search.n else search.take(rows)


def _judged(found: Sequence[Candidate], half: Redraws, sample: Sample) -> Iterator[Slice]:
    """Slices found on one half, judged on the other at half of the level."""
    others = half.sample
    inside = [candidate.where.rows(others.points) for candidate in found]
    held = [c for c, rows in zip(found, inside, strict=True) if others.weights_or_ones[rows].any()]
    if not held:
        return
    averages = half.averages(
        Members([candidate.where for candidate in held]), spread=True, title="slices"
    )
    told = _shared_verdicts(held, averages, half.alpha)
    w = sample.weights_or_ones
    for k, candidate in enumerate(held):
        everywhere = candidate.where.rows(sample.points)
        share = float(w[everywhere].sum() / w.sum())
        searched = int(everywhere.sum()) - int(averages.rows[k])
        yield _slice(candidate, averages, told, k, searched, share, times=HALVES)


def _shared_verdicts(found: Sequence[Candidate], averages: Averages, alpha: float) -> Verdicts:
    """Intervals and p-values with shares of the level by what the search showed."""
    found_low = np.array([candidate.bias > 0 for candidate in found])
    attention = _attention(np.array([candidate.worth for candidate in found]))
    sides = (np.where(low, FOUND_SHARE, 1 - FOUND_SHARE) for low in (found_low, ~found_low))
    shares = Shares(*(attention * side for side in sides))
    return judged(averages, alpha, shares=shares)


def _slice(
    candidate: Candidate,
    averages: Averages,
    told: Verdicts,
    k: int,
    searched: int,
    share: float,
    *,
    times: int,
) -> Slice:
    """One rule with the numbers of the rows that judged it; p-values are shared `times` times."""
    predicted, judges = float(averages.moments.mean_prediction[k]), int(averages.rows[k])
    return Slice(
        where=candidate.where,
        rows=searched + judges,
        share=share,
        predicted=predicted,
        observed=predicted + float(averages.values[k]),
        lower=float(told.band.lower[k]),
        upper=float(told.band.upper[k]),
        stderr=float(averages.stderr[k]),
        judged_on=judges,
        found_bias=candidate.bias,
        unadjusted_pvalue=float(told.unadjusted[k]),
        pvalue=min(times * float(told.adjusted[k]), 1.0),
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
        rows = part.where.rows(sample.points)
        if all((rows & other).sum() <= ALIKE * (rows | other).sum() for _, other in kept):
            kept.append((part, rows))
    return tuple(part for part, _ in kept)
