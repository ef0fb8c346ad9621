"""A prepared test with its critical score, and the rows that stand for all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    Rng,
    as_seed,
    checked_share,
)
from itrust.calibration.adaptive import PILOT_ROWS, Checks, PreparedTest, as_dictionary
from itrust.calibration.inputs import checked_draws, checked_source, resolved_kernel
from itrust.calibration.pipeline import Scores, score
from itrust.calibration.power.clusters import ClusterLaw
from itrust.calibration.power.regions import Cut, cuts_of, left_out, pairs_of
from itrust.calibration.power.results import Clustering
from itrust.calibration.power.sensitivity import Area, Sensitivity
from itrust.calibration.prepared import Prepared, prepare
from itrust.data import Chunk, Pilot, Points, Predicate, Sample, Scan
from itrust.engines import EngineChoice, as_engine, weight_unit
from itrust.nulls import Bernoulli, RowwiseNull, redrawn_labels

MAX_ROWS = 10**10


@dataclass(frozen=True)
class Demand:
    """How sure a test shall be."""

    alpha: float
    power: float

    def __post_init__(self) -> None:
        checked_share(self.alpha, "alpha")
        checked_share(self.power, "power")

    def allowed(self, draws: int) -> int:
        """Which of the largest draws is the critical one."""
        number = math.floor(self.alpha * (1 + draws) + 1e-9)
        if number < 1:
            raise InputError(
                "{argument} {alpha} needs more than {draws} draws to be reached",
                argument="alpha",
                value=self.alpha,
                details={"alpha": f"{self.alpha:g}", "draws": str(draws)},
            )
        return number


@dataclass(frozen=True, eq=False)
class Region:
    """Some of the rows, and what the checks see of them."""

    where: Predicate
    share: float
    area: Area


@dataclass(frozen=True, eq=False)
class PowerSetting:
    """A test that is ready, its critical score, and the rows that stand for all."""

    prepared: Prepared
    sensitivity: Sensitivity
    pilot: Points
    critical: float
    power: float
    draws: int
    seed: int
    clustering: Clustering | None = None

    @classmethod
    def of(
        cls,
        sample: Sample | Scan,
        demand: Demand,
        checks: Checks | None,
        draws: int,
        rng: Rng,
        engine: EngineChoice,
        clustering: Clustering | None = None,
    ) -> PowerSetting:
        """Prepare the test that `klce_test` would make, and run its draws."""
        source, chosen = checked_source(sample), as_engine(engine)
        draws, seed = checked_draws(draws), as_seed(rng)
        demand.allowed(draws)
        survey = chosen.survey(source, PILOT_ROWS)
        default = resolved_kernel(None, survey)
        prepared = prepare(
            survey, chosen, as_dictionary(checks, survey), Bernoulli(), draws, default
        )
        return cls.from_prepared(prepared, None, demand, draws, seed, clustering)

    @classmethod
    def of_test(
        cls, test: PreparedTest, demand: Demand, clustering: Clustering | None = None
    ) -> PowerSetting:
        """Go on from a test; its draws serve again where they were made from probabilities."""
        result = test.result
        seed = result.seed if result.seed is not None else 0
        reused = test.scores if isinstance(result.null, Bernoulli) else None
        return cls.from_prepared(test.prepared, reused, demand, result.draws, seed, clustering)

    @classmethod
    def from_prepared(
        cls,
        prepared: Prepared,
        scores: Scores | None,
        demand: Demand,
        draws: int,
        seed: int,
        clustering: Clustering | None = None,
    ) -> PowerSetting:
        """Find the critical score; without scores, draw."""
        prepared = prepared.for_null(Bernoulli())
        if not prepared.weights.size:
            raise InputError("every probability is 0 or 1, so no draw differs from another")
        if scores is None:
            scores = score(prepared, Bernoulli(), draws, seed)
        critical = float(np.sort(scores.combined[1:])[-demand.allowed(draws)])
        pilot = prepared.survey.rows.first(PILOT_ROWS)
        shuffled = np.argsort(pilot.tickets)  # so that the first of them stand for all, too
        points, weights = pilot.points.take(shuffled), _weights(pilot)[shuffled]
        law = _law(prepared, clustering)
        sensitivity = Sensitivity.of(prepared, scores, points, weights, critical, law)
        return cls(prepared, sensitivity, points, critical, demand.power, draws, seed, clustering)

    @property
    def is_independent(self) -> bool:
        """Whether labels of different rows are taken as independent."""
        return self.sensitivity.law is None

    def regions(self) -> list[Region]:
        """All rows, then the parts of every covariate; those without rows are left out."""
        return [region for cut in cuts_of(self._points, self.pilot) for region in self._areas(cut)]

    def pairs(self) -> Iterator[Region]:
        """Pairs of parts of two covariates that hold at least 1 % of the rows, some at a time."""
        for cut in pairs_of(self._points, self.pilot):
            yield from self._areas(cut)

    def _areas(self, cut: Cut) -> list[Region]:
        areas = self.sensitivity.areas(cut.members, cut.shares)
        found = zip(cut.parts, cut.shares.tolist(), areas, strict=True)
        return [Region(where, share, area) for where, share, area in found]

    @property
    def left_out(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Covariates that no region, and no pair, is about, because there are too many."""
        return left_out(self._points)

    @property
    def _points(self) -> Points:
        """All rows, or 20,000 random ones that stand for them."""
        return self.prepared.survey.points

    def is_seen(self, area: Area, bias: float, rows: float) -> bool:
        """Whether so many rows show a bias in every direction it can have."""
        if not math.isfinite(rows):
            return True
        return all(
            self._reaches(area, sign * bias, rows)
            for sign in self.sensitivity.directions(area, bias)
        )

    def rows_needed(self, area: Area, shift: float) -> float:
        """Rows at which a shift is seen with the wanted power."""
        low, high = 10.0, float(MAX_ROWS)
        if not self._reaches(area, shift, high):
            return math.inf
        while high / low > 1.002:
            middle = math.sqrt(low * high)
            enough = self._reaches(area, shift, middle)
            low, high = (low, middle) if enough else (middle, high)
        return high

    def _reaches(self, area: Area, shift: float, rows: float) -> bool:
        return bool(self.sensitivity.power(area, np.array([shift]), rows)[0] >= self.power)

    def simulated_power(self, region: Predicate, shift: float, simulations: int) -> float:
        """Share of samples, drawn with the shift, that the test rejects."""
        moved = _Moved(region, shift)
        seed = as_seed(np.random.default_rng([self.seed, 1]))
        combined = score(self.prepared, moved, simulations, seed).combined[1:]
        return float(np.mean(combined > self.critical))


def _law(prepared: Prepared, clustering: Clustering | None) -> ClusterLaw | None:
    """What clusters do to the checks that are made of features."""
    whole = prepared.survey.source.in_memory
    if clustering is None or clustering.is_independent or whole is None:
        return None
    return ClusterLaw.of(clustering, whole, prepared.bank)


def _weights(pilot: Pilot) -> FloatArray:
    """Weights of the pilot rows in units of their size."""
    variances = pilot.variances / weight_unit(pilot) ** 2
    v = pilot.points.p * (1 - pilot.points.p)
    return np.sqrt(np.divide(variances, v, out=np.ones_like(v), where=v > 0))


@dataclass(frozen=True)
class _Moved(RowwiseNull):
    """Labels from probabilities that are shifted in a region."""

    region: Predicate
    shift: float
    exact: ClassVar[bool] = True
    meaning: ClassVar[str] = "labels drawn from shifted probabilities"

    def draw(self, chunk: Chunk, draws: range, seed: int) -> BoolArray:
        """Labels of the rows, (n, draws)."""
        inside = self.region.rows(chunk.points)
        truth = np.where(inside, np.clip(chunk.p + self.shift, 0.0, 1.0), chunk.p)
        return redrawn_labels(truth, chunk.rows, draws, seed)
