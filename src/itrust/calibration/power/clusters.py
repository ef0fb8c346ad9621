"""Power where rows of a cluster go together: which correlation is assumed, and what it does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr, stdtrit

from itrust._core import FloatArray, InputError, IntArray, Setting, tickets
from itrust.calibration.clustering import (
    can_go_together,
    design_effect,
    intra_cluster_correlation,
)
from itrust.calibration.dictionary.bank import Bank
from itrust.calibration.power.results import Clustering
from itrust.data import Sample, Source

MAX_CLUSTERS = 4_096  # that stand for all


def assumed_clustering(source: Source, icc: object, *, careful: bool) -> Clustering | None:
    """Settle how alike labels of a cluster are taken to be."""
    sample = source.in_memory
    stated = None if icc is None else _checked(icc)
    if sample is not None and sample.design.known_by_replicates:
        raise InputError(
            "{argument} has replicate weights alone, which do not tell how far rows of a cluster "
            "go together",
            argument="sample",
            hint="name the clusters with {settings}",
            settings=(Setting("cluster"),),
        )
    if sample is None or sample.cluster is None:
        if stated is None:
            return None
        raise InputError(
            "{argument} is about rows of a cluster, and there are no clusters",
            argument="icc",
            value=icc,
            hint="name them with {settings}",
            settings=(Setting("cluster"),),
        )
    least, correlation = stated or 0.0, None
    if stated is None and can_go_together(sample):
        try:
            correlation = intra_cluster_correlation(sample)
        except InputError as error:
            raise error.at(hint="state it with {settings}", settings=(Setting("icc"),)) from None
        value = correlation.upper if careful else correlation.estimate
        stated = min(max(value, 0.0), 1.0)
        least = 0.0 if careful else stated
    used = stated or 0.0
    noise = sample.weights_or_ones * np.sqrt(_variances(sample))
    return Clustering(
        icc=used,
        least_icc=least,
        clusters=sample.design.clusters,
        freedom=sample.design.freedom,
        design_effect=float(design_effect(noise, sample.design, used)),
        correlation=correlation,
    )


def _checked(icc: object) -> float:
    try:
        number = float(icc)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 1:
        raise InputError(
            "{argument} must lie between 0 and 1, not {value}", argument="icc", value=icc
        )
    return number


def _variances(sample: Sample) -> FloatArray:
    return sample.p * (1 - sample.p)


@dataclass(frozen=True, eq=False)
class ClusterLaw:
    """What clusters do to sums along features: their variances, and how well these are known."""

    least: float
    icc: float
    freedom: float
    sums: FloatArray
    alone: FloatArray
    pilot: IntArray
    n: int

    @classmethod
    def of(cls, clustering: Clustering, sample: Sample, bank: Bank) -> ClusterLaw:
        """Sum the features of a sample over its clusters, or over some that stand for them."""
        assert sample.cluster is not None
        unit = np.unique(sample.cluster, return_inverse=True)[1]
        clusters = int(unit.max()) + 1
        chosen = np.arange(clusters)
        if clusters > MAX_CLUSTERS:
            some = np.random.default_rng(0).choice(clusters, MAX_CLUSTERS, replace=False)
            chosen = np.sort(some)
        place = np.full(clusters, -1)
        place[chosen] = np.arange(chosen.size)
        rows = np.flatnonzero(place[unit] >= 0)
        deviations = sample.weights_or_ones / bank.unit * np.sqrt(_variances(sample))
        sums = np.zeros((chosen.size, bank.selector.shape[1]))
        alone = np.zeros(bank.selector.shape[1])
        for at in range(0, rows.size, bank.max_rows):
            own = rows[at : at + bank.max_rows]
            noise = deviations[own, None] * bank.matrix(sample.points.take(own)).T
            counted = (np.ones(own.size), (place[unit[own]], np.arange(own.size)))
            sums += np.asarray(csr_array(counted, shape=(chosen.size, own.size)) @ noise)
            alone += np.square(noise).sum(axis=0)
        times = clusters / chosen.size
        return cls(
            least=clustering.least_icc,
            icc=clustering.icc,
            freedom=clustering.freedom,
            sums=np.sqrt(times) * sums,
            alone=times * alone,
            pilot=unit[np.argsort(tickets(0, sample.n))],
            n=sample.n,
        )

    @cached_property
    def effects(self) -> FloatArray:
        """Design effects of the sums along every feature, (R,)."""
        together = np.square(self.sums).sum(axis=0)
        ratio = np.divide(together, self.alone, out=np.ones_like(together), where=self.alone > 0)
        return np.asarray(1 + np.maximum(self.least * (ratio - 1), self.icc * (ratio - 1)))

    def covariances(
        self, columns: IntArray, independent: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Null covariances of sums along some features, at both ends of the correlation."""
        own = self.sums[:, columns]
        shared = own.T @ own - independent
        return independent + self.least * shared, independent + self.icc * shared

    def effect(self, columns: IntArray, scales: FloatArray, independent: FloatArray) -> float:
        """Design effect of a check of several features: the ratio of the norms of covariances."""
        parts = (independent, *self.covariances(columns, independent))
        alone, *both = (np.linalg.norm(scales[:, None] * part * scales) for part in parts)
        return float(max(both) / alone) if alone > 0 else 1.0

    def shared(self, v: FloatArray) -> SharedNoise:
        """What rows of a cluster share, among the first of those that stand for all."""
        number = v.size
        unit = np.unique(self.pilot[:number], return_inverse=True)[1]
        sums = csr_array((np.sqrt(v), (unit, np.arange(number))))
        return SharedNoise(v, sums, self.least * self.n / number, self.icc * self.n / number)

    def student(self, normal: FloatArray, times: float) -> FloatArray:
        """How much larger Student's quantiles are than normal ones, with so many times the rows."""
        found = -stdtrit(self.freedom_with(times), ndtr(-normal))
        return np.maximum(found / normal, 1.0)

    def freedom_with(self, times: float) -> float:
        """Degrees of freedom with so many times the rows, at least 1."""
        return max(self.freedom * times, 1.0)


@dataclass(frozen=True, eq=False)
class SharedNoise:
    """Noise of labels of some rows, part of which rows of a cluster share."""

    v: FloatArray
    sums: csr_array
    least: float
    most: float

    def variance(self, shares: FloatArray) -> FloatArray:
        """Variance of sums of shares times residuals, the larger one of both ends."""
        alone = self.v @ np.square(shares)
        pairs = np.square(self.sums @ shares).sum(axis=0) - alone
        return np.asarray(alone + np.maximum(self.least * pairs, self.most * pairs))

    def effect(self, matrix: FloatArray) -> float:
        """How much larger the standard deviation of a form over pairs of rows is."""
        pairs = matrix - np.diag(np.diagonal(matrix))
        alone = pairs * self.v
        together = np.asarray(self.sums.T @ (self.sums @ pairs)).T - alone
        size = float(np.sum(alone * alone.T))
        if not size > 0:
            return 1.0
        found = (alone + count * together for count in (self.least, self.most))
        sizes = [float(np.sum(part * part.T)) / size for part in found]
        return float(np.sqrt(max(*sizes, 1.0 if self.least == 0 else 1e-12)))
