"""Regions where the model is miscalibrated, judged on all rows.

The regions are those of the scan (`itrust.calibration`): fixed without labels, ranges and levels of
one column, of two, of three. The most striking are told one after the other, simple ones first,
and level and slope of the prediction and what was told are taken out before the next look.
Redrawn labels say how much any region of a calibrated model shows, so intervals and p-values hold
for all regions together, told or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from itrust._core import BoolArray, FloatArray, Rng, checked_count
from itrust.bias.averages import Redraws, average_all
from itrust.bias.bands import backed, confidence_band, rates_of, zero_scores
from itrust.bias.groups import PartBias, PartTable
from itrust.bias.weights import Members
from itrust.calibration import (
    Grid,
    RegionLaw,
    Scores,
    codes_of,
    logistic_fits,
    reach,
    region_scores,
    scanned,
)
from itrust.data import Predicate, Sample, Scan
from itrust.engines import EngineChoice

LEFT = 0.2  # of calibrated models show anywhere what has to be left of a region that is told
MAX_GROUPS = 40  # that are told, those with the largest bias
RIDGE = 0.02  # of the variance, that a fit leaves at least
TINY = 1e-300


@dataclass(frozen=True, repr=False)
class Slice(PartBias):
    """A region, and how far the model is off there.

    Rates, interval and p-values are of all rows, and hold for all regions that were looked at.
    """

    @property
    def impact(self) -> float:
        """Share of the weight times the bias: what the region does to an overall rate."""
        return self.share * self.bias

    @property
    def rule(self) -> str:
        """The region in reading words, such as "age >= 70 and region = south"."""
        return str(self.where)

    def _facts(self) -> Mapping[str, Any]:
        return {"rule": self.rule, **super()._facts(), "impact": self.impact}


@dataclass(frozen=True, eq=False, repr=False)
class SliceTable(PartTable[Slice]):
    """Outcome of `bias_slices`: what stands out, simple regions before others.

    Attributes
    ----------
    slices : tuple of Slice
        What was found, confirmed or not.
    n : int
        Number of rows.
    regions : int
        Number of regions that intervals and p-values hold for together.
    order : tuple of Predicate
        Slices, and groups that were judged before, in the order of telling.
    """

    slices: tuple[Slice, ...]
    n: int
    regions: int
    order: tuple[Predicate, ...] = ()

    @property
    def parts(self) -> tuple[Slice, ...]:
        """The slices."""
        return self.slices

    @property
    def confirmed(self) -> tuple[Slice, ...]:
        """Slices whose adjusted p-value is at most `alpha`."""
        return tuple(part for part in self.slices if part.pvalue <= self.alpha)

    def _facts(self) -> Mapping[str, Any]:
        return {
            "slices": [part.to_dict() for part in self.slices],
            "confirmed": len(self.confirmed),
            "n": self.n,
            "regions": self.regions,
            **super()._facts(),
        }

    def __repr__(self) -> str:
        return f"<SliceTable: {len(self.confirmed)} of {len(self)} slices confirmed>"


def bias_slices(
    sample: Sample | Scan,
    *,
    max_slices: int = 8,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
) -> SliceTable:
    """Find the regions in which the model is miscalibrated, and how far, on all rows.

    A region is a level, a range of a number or date, missing values, or a range of the prediction,
    or what two of these have in common (three, where categories are among them). All of them are
    fixed before labels are looked at; p-values compare the largest bias of any region with the same
    on redrawn labels, and intervals hold for all regions at once. So if the model is calibrated on
    every row, any region is confirmed in at most `alpha` of samples, exactly; and no seed but that
    of the draws matters.

    Parameters
    ----------
    sample : Sample or Scan
        Rows to judge.
    max_slices : int
        Most regions to tell.
    alpha : float
        Chance that any region of a calibrated model is confirmed.
    draws : int
        How often labels are redrawn.
    rng : int, Generator or None
        Seed of the draws; None takes a new one.
    engine : "auto", Factor or Dask
        Who goes over the rows.

    Returns
    -------
    SliceTable
        In the order of telling.

    Examples
    --------
    >>> import itrust as it
    >>> found = it.bias_slices(it.simulate.survey(5_000, rng=0).sample, draws=199, rng=0)
    >>> len(found.confirmed) > 0
    True
    """
    redraws = Redraws.of(sample, alpha=alpha, draws=draws, rng=rng, engine=engine)
    return slices_of(redraws, max_slices=max_slices)


def slices_of(
    redraws: Redraws,
    made: Sequence[Scores] | None = None,
    groups: Sequence[PartBias] = (),
    *,
    max_slices: int = 8,
) -> SliceTable:
    """The table of `bias_slices`; scores of a test on the same rows serve, if there are any.

    Groups that are shown already are told among the regions of one column.
    """
    checked_count(max_slices, "max_slices")
    if made is None:
        null = redraws.laws or (redraws.null,)
        made = scanned(redraws.engine, redraws.survey, null, redraws.draws, redraws.seed)
    grids, independent = made[0].grids, redraws.sample.design.rows_are_independent
    laws = [own.region_law(independent=independent) for own in made] if grids else []
    told: list[Told] = []
    if grids:
        told = _Search(redraws, grids, laws, groups).told(max_slices)
    regions = [own for own in told if isinstance(own, tuple)]
    return SliceTable(
        slices=tuple(_judged(redraws, grids, laws, regions)),
        n=redraws.n,
        regions=sum(grid.depths.size for grid in grids),
        order=tuple(
            grids[own[0]].where(own[1]) if isinstance(own, tuple) else own.where for own in told
        ),
        **redraws.settings,
    )


Region = tuple[int, tuple[int, int]]  # number of the check, and the region of its grid
Told = Region | PartBias  # a region, or a group


class _Search:
    """What stands out in rows at hand, beside level and slope of the prediction and what was told.

    Regions are shown by their sums of residuals. They are told if something is left of these when
    the prediction is recalibrated, and what was told before is taken out.
    """

    def __init__(
        self,
        redraws: Redraws,
        grids: Sequence[Grid],
        laws: Sequence[RegionLaw],
        groups: Sequence[PartBias],
    ) -> None:
        sample = self.sample = redraws.sample
        self.grids = grids
        self.codes = [codes_of(grid, sample.points) for grid in grids]
        self.times = math.sqrt(redraws.n / sample.n)  # z of all rows by that of these
        w = sample.weights_or_ones
        self.w = w = w / math.sqrt(np.mean(np.square(w)))
        p, self.features = _recalibrated(sample)
        self.errors, self.curvature = w * (sample.y - p), np.square(w) * p * (1 - p)
        self.information = w * p * (1 - p)
        self.inverse = self._inverse(self.curvature)
        self.enough = _critical(laws, max(redraws.alpha, LEFT))
        squares = np.square(w) * sample.p * (1 - sample.p)
        if not sample.design.rows_are_independent:
            squares = np.maximum(squares, np.square(w * sample.residuals))
        observed = w * sample.residuals
        z = [self._z(k, observed, squares) for k in range(len(grids))]
        needed = [
            reach(critical, grid.depths)
            for critical, grid in zip(_critical(laws, redraws.alpha), grids, strict=True)
        ]
        # z is 0 where labels vary too little.
        self.shown = [(a != 0) & (np.abs(a) >= b) for a, b in zip(z, needed, strict=True)]
        self.plain = [region_scores(a, grid.depths) for a, grid in zip(z, grids, strict=True)]
        even = w * sample.p * (1 - sample.p)
        beside_level = observed - even * (observed.sum() / max(even.sum(), TINY))
        self.of_prediction = []
        for k, grid in enumerate(grids):
            if grid.entry.crossed == (None,):
                left = region_scores(self._z(k, beside_level, squares), grid.depths)
                able = self.shown[k] & (left >= self.enough[k])
                if able.any():
                    region = self._farthest(k, able, np.abs(z[k]) - needed[k], squares)
                    self.of_prediction.append((k, region))
        largest = sorted(groups, key=lambda own: -abs(own.at_least))[:MAX_GROUPS]
        self.groups = []
        for own in largest:
            inside = own.where.rows(sample.points)
            plain = observed[inside].sum() / math.sqrt(max(squares[inside].sum(), TINY))
            self.groups.append((own, inside, float(self.times * plain)))
        self.group_reach = float(-ndtri(LEFT / (2 * max(len(groups), 1))))

    def told(self, most: int) -> list[Told]:
        """Regions of one column and groups, the most striking first, then those of several.

        The one of the prediction that shows most, and more than the level, comes before them.
        """
        found: list[Told] = [*self.of_prediction]
        for k, region in self.of_prediction:
            self._take_out(self.grids[k].where(region).rows(self.sample.points))
        for columns in (1, 2, 3):
            tier = [
                k
                for k, grid in enumerate(self.grids)
                if len(grid.entry.crossed) == columns and self.shown[k].any()
            ]
            while len(found) < most:
                left = [*(self._groups_left() if columns == 1 else ()), *self._left(tier)]
                if not left:
                    break
                _, told, inside = max(left, key=lambda own: own[0])
                found.append(told)
                self._take_out(inside)
        return found

    def _take_out(self, inside: BoolArray) -> None:
        """Mend the prediction once more, with a level of its own for these rows.

        What was taken out before changes along: of a corner that explains a whole range, the rest
        of the range must not be left with the opposite.
        """
        self.features = np.vstack([self.features, inside])
        steps = self._inverse(self.information) @ (self.features @ self.errors)
        self.errors -= self.information * (steps @ self.features)
        self.inverse = self._inverse(self.curvature)

    def _inverse(self, weights: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.pinv((weights * self.features) @ self.features.T))

    def _z(self, k: int, errors: FloatArray, squares: FloatArray) -> FloatArray:
        grid, codes = self.grids[k], self.codes[k]
        cells, variance = (np.bincount(codes, own, grid.cells) for own in (errors, squares))
        return np.asarray(self.times * grid.regions(cells) * grid.scales(variance))

    def _farthest(
        self, k: int, able: BoolArray, beyond: FloatArray, squares: FloatArray
    ) -> tuple[int, int]:
        """The able region whose bias is at least of the largest size: what a slope comes to."""
        grid, codes = self.grids[k], self.codes[k]
        mass, variance = (
            grid.regions(np.bincount(codes, own, grid.cells)) for own in (self.w, squares)
        )
        sizes = beyond * np.sqrt(variance) / np.maximum(mass, TINY)
        return _largest(np.where(able, sizes, -math.inf))

    def _left(self, tier: Sequence[int]) -> Iterator[tuple[float, Told, BoolArray]]:
        """The region of each check of which most is left: its score, and the rows inside.

        No more than it shows as it is: what is left of a group is left of all others, too, with
        another sign.
        """
        for k in tier:
            grid, codes = self.grids[k], self.codes[k]
            own = np.array(
                [grid.regions(np.bincount(codes, part, grid.cells)) for part in self._parts]
            )
            z = self.times * own[0] / np.sqrt(self._variance(own[1], own[2:]))
            scores = region_scores(z, grid.depths)
            able = self.shown[k] & (scores >= self.enough[k])
            if able.any():
                scores = np.where(able, np.minimum(scores, self.plain[k]), -math.inf)
                region = _largest(scores)
                inside = grid.where(region).rows(self.sample.points)
                yield float(scores[region]), (k, region), inside

    def _groups_left(self) -> Iterator[tuple[float, Told, BoolArray]]:
        """The same for groups."""
        for group, inside, plain in self.groups:
            own = np.array([part[inside].sum() for part in self._parts])
            z = float(self.times * own[0] / np.sqrt(self._variance(own[1], own[2:])))
            if abs(z) >= self.group_reach:
                least = np.array(min(abs(z), abs(plain)))
                depth = np.array(-math.log2(max(group.share, 1e-9)))
                yield float(region_scores(least, depth)), group, inside

    @property
    def _parts(self) -> tuple[FloatArray, ...]:
        """What is summed over rows: errors, their variance, its products with the features."""
        return self.errors, self.curvature, *(self.curvature * self.features)

    def _variance(self, alone: FloatArray, products: FloatArray) -> FloatArray:
        """Variance of sums of errors, of which the fit takes its part."""
        taken = np.einsum("i...,ij,j...->...", products, self.inverse, products)
        return np.asarray(np.maximum(alone - taken, np.maximum(TINY, RIDGE * alone)))


def _largest(scores: FloatArray) -> tuple[int, int]:
    """The region with the largest score."""
    a, b = np.unravel_index(int(scores.argmax()), scores.shape)
    return int(a), int(b)


def _critical(laws: Sequence[RegionLaw], alpha: float) -> FloatArray:
    """Scores that count under every law, by check, (E,)."""
    return np.asarray(np.max([law.critical(alpha) for law in laws], axis=0))


def _recalibrated(sample: Sample) -> tuple[FloatArray, FloatArray]:
    """The prediction with its level and slope mended, (n,), and what they stand on, (2, n)."""
    p, w = sample.p, sample.weights_or_ones
    x = np.stack([np.ones(p.size), np.clip(logit(np.clip(p, 1e-15, 1 - 1e-15)), -7, 7)])
    fits, converged = logistic_fits(
        x.T, np.array([0.0, 1.0]), np.zeros(p.size), w, (w * sample.y)[None]
    )
    return (expit(fits[0] @ x) if converged[0] else p), x


def _judged(
    redraws: Redraws, grids: Sequence[Grid], laws: Sequence[RegionLaw], found: Sequence[Region]
) -> list[Slice]:
    """Regions with their rates and intervals, of all rows."""
    if not found:
        return []
    places = [grids[number].where(at) for number, at in found]
    (averages,) = average_all(
        redraws.source,
        [Members(places)],
        engine=redraws.engine,
        survey=None if redraws.extract is None else redraws.survey,
    )
    labels, squares = averages.central(0.0)[0], averages.squares[0]
    z = np.abs(averages.residual) / np.sqrt(np.maximum(np.maximum(labels, squares), TINY))
    zero, spread = np.abs(zero_scores(averages)), np.sqrt(averages.inflation)
    depths = np.array([grids[number].depths[at] for number, at in found])
    critical = _critical(laws, redraws.alpha)[[number for number, _ in found]]
    needed = reach(critical, depths)
    shown = region_scores(np.minimum(z, zero * spread), depths)
    pvalues = np.array(
        [
            max(law.pvalue(number, float(score)) for law in laws)
            for (number, _), score in zip(found, shown, strict=True)
        ]
    )
    band = backed(confidence_band(averages, needed / spread), pvalues <= redraws.alpha)
    rates = rates_of(averages, band, np.maximum(2 * ndtr(-zero), 2 * ndtr(-z)), pvalues)
    return [
        Slice(
            where=where,
            rows=int(averages.rows[k]),
            share=float(averages.mass[k] / averages.total),
            **own,
        )
        for k, (where, own) in enumerate(zip(places, rates, strict=True))
        if averages.mass[k] > 0
    ]
