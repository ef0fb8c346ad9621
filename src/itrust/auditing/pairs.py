"""Which class is taken for which: probability that rows of one class give to another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from itrust._core import AnyArray, FloatArray, IntArray, Result, WithFacts
from itrust.bias import GroupBias, near_end
from itrust.calibration import student_quantile, student_tail
from itrust.data import Design, MulticlassSample, Predicate, design_variance
from itrust.nulls import class_edges

MAX_WORK = 2e9  # rows times classes times draws
FEWEST_DRAWS = 199
PURPOSE = 25  # of the seed
MAX_PLACES = 40  # groups with two classes that are off, which are kept


@dataclass(frozen=True)
class PairBias(WithFacts):
    """Rows of one class and the probability that they give to another.

    Attributes
    ----------
    label : object
        The class of the rows.
    taken_for : object
        The class whose probability is looked at.
    rows : int
        Number of rows of the class `label`.
    given : float
        Mean probability of `taken_for` among these rows.
    expected : float
        What that would be on average if the model were calibrated.
    lower, upper : float
        Interval of `bias`; excludes 0 if and only if `pvalue` is at most `alpha`. Holds for all
        pairs of classes at once.
    pvalue : float
        For "the pair is as the model says", adjusted for all pairs.
    alpha : float
        Error that all intervals together are allowed.
    """

    label: Any
    taken_for: Any
    rows: int
    given: float
    expected: float
    lower: float
    upper: float
    pvalue: float
    alpha: float
    _derived = ("bias", "at_least")

    @property
    def bias(self) -> float:
        """Given less expected; positive: rows of `label` are taken for `taken_for` too often."""
        return self.given - self.expected

    @property
    def at_least(self) -> float:
        """The end of the interval next to 0, with its sign; 0 where the interval includes 0."""
        return near_end(self.lower, self.upper)

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes 0."""
        return self.pvalue <= self.alpha

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "label": str(self.label), "taken_for": str(self.taken_for)}


@dataclass(frozen=True)
class PairGroup(WithFacts):
    """A group of rows where probability of one class should have gone to another.

    There the first class is shown to be too high and the second too low, both adjusted for all
    groups and classes.

    Attributes
    ----------
    taken_for : object
        The class that is too high.
    label : object
        The class that is too low.
    where : Predicate
        The group.
    rows : int
        Its rows.
    too_high, too_low : float
        How far the two classes are off, both positive.
    at_least : float
        What is shown of both.
    pvalue : float
        The larger of the two classes'.
    """

    taken_for: Any
    label: Any
    where: Predicate
    rows: int
    too_high: float
    too_low: float
    at_least: float
    pvalue: float

    def _facts(self) -> dict[str, Any]:
        texts = ("label", "taken_for", "where")
        return {**vars(self), **{name: str(getattr(self, name)) for name in texts}}


@dataclass(frozen=True, eq=False, repr=False)
class ClassMatrix(Result):
    """Probability that rows of one class give to another, beside what the model expects.

    For classes A and B, the mean of p_A among rows of class B is compared with
    sum p_A p_B / sum p_B, which it would be on average if the model were calibrated. A class that
    is too rare by a constant factor leaves that as it is, so the matrix tells which classes are
    mixed up, not which are too frequent.

    Attributes
    ----------
    classes : tuple
        Names of the classes.
    pairs : tuple of PairBias
        Every class beside every other, by `label`, then by `taken_for`.
    given, expected : (K, K) array
        The matrix: rows of class i give class j this probability, and should on average.
    rows : (K,) array of int
        Rows of each class; -1 where they are withheld.
    places : tuple of PairGroup
        Groups where one class is shown to be too high and another too low, the largest first.
    statistic : float
        The largest absolute standard score of all sums of p_A (y_B - p_B).
    canonical_pvalue : float
        For "residuals have nothing to do with any of the probabilities", from redrawn labels.
    alpha : float
        Error that all intervals together are allowed.
    draws, seed : int
        How often labels were redrawn, and what makes the same draws again.
    """

    classes: tuple[Any, ...]
    pairs: tuple[PairBias, ...]
    given: FloatArray
    expected: FloatArray
    rows: IntArray
    places: tuple[PairGroup, ...]
    statistic: float
    canonical_pvalue: float
    alpha: float
    draws: int
    seed: int

    @property
    def shown(self) -> tuple[PairBias, ...]:
        """Pairs whose interval excludes 0, the largest shown bias first."""
        off = (pair for pair in self.pairs if pair.is_shown)
        return tuple(sorted(off, key=lambda pair: -abs(pair.at_least)))

    def pair(self, label: Any, taken_for: Any) -> PairBias | None:
        """Give what was found about a pair of classes.

        Parameters
        ----------
        label, taken_for : object
            The class of the rows, and the other.

        Returns
        -------
        PairBias or None
            None where nothing may be told of it, or both are the same.
        """
        own = (pair for pair in self.pairs if (pair.label, pair.taken_for) == (label, taken_for))
        return next(own, None)

    def _facts(self) -> dict[str, Any]:
        return {
            "classes": [str(name) for name in self.classes],
            "rows": [None if rows < 0 else int(rows) for rows in self.rows],
            **self._by_name("given", "expected", "pairs"),
            "shown": len(self.shown),
            **self._by_name("places", "alpha", "draws", "seed"),
        }

    def _rows(self) -> list[dict[str, Any]]:
        return [pair.to_dict() for pair in self.pairs]

    def __repr__(self) -> str:
        return f"<ClassMatrix: {len(self.shown)} of {len(self.pairs)} pairs of classes shown>"


def class_matrix(sample: MulticlassSample, *, alpha: float, draws: int, seed: int) -> ClassMatrix:
    """Compare the probabilities that rows of each class give to the others with the model's own.

    With r = sum w p_A p_B / sum w p_B the difference is
    sum w (p_A - r)(y_B - p_B) / sum w y_B exactly, so its law under calibration is that of a sum of
    independent terms, with the categorical variance. The largest standard score of all pairs in
    every redraw, and Bonferroni's normal bound, both give critical values; the larger counts for
    p-values and intervals alike. Cost O(n K draws).
    """
    p, codes, k = sample.p, sample.codes, len(sample.classes)
    design, weights = sample.design, sample.weights_or_ones
    number = int(min(draws, max(FEWEST_DRAWS, MAX_WORK // (sample.n * k))))
    law = _PairLaw.of(p, weights)
    sums, mass = _sums(p * weights[:, None], weights, codes[None], k)
    _, plain_scores = law.scores(sums, mass)
    biggest, biggest_plain = _largest_drawn(law, p, weights, number, seed)
    freedom = math.inf if design.rows_are_independent else float(design.freedom)
    tested = k * (k - 1)
    least = -np.sort(-biggest)[math.floor(alpha * (1 + number) + 1e-9) - 1]
    reach = max(float(least), float(student_quantile(alpha / (2 * tested), freedom)))
    stderr = _standard_errors(sample, design, weights, law)
    total, counts = mass[0], np.bincount(codes, minlength=k)
    with np.errstate(invalid="ignore", divide="ignore"):
        given = np.where(total > 0, sums[0] / total, np.nan)  # (A, B)
        error = stderr / total
        bias = given - law.expected
        away = np.where(error > 0, np.abs(bias) / error, 0.0)
    pairs = []
    for b in range(k):
        for a in range(k):
            if a == b or not total[b] > 0:
                continue
            by_draws = (1 + int((biggest >= away[a, b] - 1e-9).sum())) / (1 + number)
            by_law = 2 * tested * float(student_tail(away[a, b], freedom))
            half = reach * error[a, b]
            pvalue = min(max(by_draws, by_law), 1.0)
            shown = pvalue <= alpha
            # Both critical values are exceeded together, but for ties of draws.
            lower, upper = bias[a, b] - half, bias[a, b] + half
            if not shown and (lower > 0 or upper < 0):
                lower, upper = min(lower, 0.0), max(upper, 0.0)
            pairs.append(
                PairBias(
                    label=sample.classes[b],
                    taken_for=sample.classes[a],
                    rows=int(counts[b]),
                    given=float(given[a, b]),
                    expected=float(law.expected[a, b]),
                    lower=float(lower),
                    upper=float(upper),
                    pvalue=pvalue,
                    alpha=alpha,
                )
            )
    largest = float(np.abs(plain_scores).max())
    canonical = (1 + int((biggest_plain >= largest - 1e-9).sum())) / (1 + number)
    return ClassMatrix(
        classes=tuple(sample.classes),
        pairs=tuple(pairs),
        given=np.ascontiguousarray(given.T),
        expected=np.ascontiguousarray(law.expected.T),
        rows=counts,
        places=(),
        statistic=largest,
        canonical_pvalue=canonical if design.rows_are_independent else math.nan,
        alpha=alpha,
        draws=number,
        seed=seed,
    )


@dataclass(frozen=True, eq=False)
class _PairLaw:
    """Means and standard deviations of sums over rows if the model is calibrated, (A, B) each."""

    expected: FloatArray  # sum w p_A p_B / sum w p_B
    sd: FloatArray  # of sum w (p_A - expected) (y_B - p_B)
    moments: FloatArray  # sum w p_A p_B
    moment_sd: FloatArray  # of sum w p_A (y_B - p_B)
    mass: FloatArray  # sum w p_B, (B,)

    @classmethod
    def of(cls, p: FloatArray, w: FloatArray) -> _PairLaw:
        moments = (p * w[:, None]).T @ p
        mass = w @ p
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = np.where(mass > 0, moments / mass, 0.0)
        v = np.square(w)[:, None] * p * (1 - p)  # (n, B)
        second = np.square(p).T @ v
        first, zeroth = p.T @ v, v.sum(axis=0)
        variance = second - 2 * expected * first + np.square(expected) * zeroth
        floor = 1e-12 * max(float(second.max()), 1e-300)
        sd = np.sqrt(np.where(variance > floor, variance, 0.0))
        return cls(expected, sd, moments, np.sqrt(np.maximum(second, 0.0)), mass)

    def scores(self, sums: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Standard scores of sums of w p_A y_B (draws, A, B) and of w y_B (draws, B)."""
        centred = sums - self.expected * mass[:, None, :]
        np.einsum("daa->da", centred)[:] = 0.0  # a class beside itself is no pair
        out = [
            np.where(sd > 0, part / np.where(sd > 0, sd, 1.0), 0.0)
            for part, sd in ((centred, self.sd), (sums - self.moments, self.moment_sd))
        ]
        return out[0], out[1]


def _sums(
    weighted: FloatArray, w: FloatArray, codes: IntArray, k: int
) -> tuple[FloatArray, FloatArray]:
    """Sums of w p_A over rows of each class, (draws, A, B), and of w, (draws, B)."""
    draws, n = codes.shape
    rows = (codes + k * np.arange(draws)[:, None]).ravel()
    order = np.argsort(rows, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=k * draws))])
    member = csr_array((np.ones(rows.size), order % n, ends), shape=(k * draws, n))
    sums = np.asarray(member @ weighted).reshape(draws, k, k)
    return sums.transpose(0, 2, 1), np.asarray(member @ w).reshape(draws, k)


def _largest_drawn(
    law: _PairLaw, p: FloatArray, w: FloatArray, draws: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """The largest absolute scores of every redraw: of pairs, and of all sums, (draws,)."""
    k, n = p.shape[1], len(p)
    edges = class_edges(p)
    weighted = p * w[:, None]
    rng = np.random.default_rng([seed, PURPOSE])
    block = max(1, int(4e6 // (n * k)))
    largest, plain_largest = [], []
    for begin in range(0, draws, block):
        number = min(block, draws - begin)
        codes = np.array([(rng.random(n)[:, None] >= edges).sum(axis=1) for _ in range(number)])
        of_pairs, of_sums = law.scores(*_sums(weighted, w, codes, k))
        largest.append(np.abs(of_pairs).max(axis=(1, 2)))
        plain_largest.append(np.abs(of_sums).max(axis=(1, 2)))
    return np.concatenate(largest), np.concatenate(plain_largest)


def _standard_errors(
    sample: MulticlassSample, design: Design, w: FloatArray, law: _PairLaw
) -> FloatArray:
    """Of sum w (p_A - expected)(y_B - p_B): what rows show, and at least what the model says."""
    p, k = sample.p, len(sample.classes)
    found = np.zeros((k, k))
    for b in range(k):
        residual = w * ((sample.codes == b) - p[:, b])
        shares: AnyArray = (p - law.expected[:, b]) * residual[:, None]
        if design.is_simple:
            found[:, b] = np.square(shares).sum(axis=0)
        else:
            found[:, b] = [design_variance(design, column) for column in shares.T]
    return np.asarray(np.maximum(np.sqrt(found), law.sd))


def pair_groups(
    classes: Sequence[Any], tables: Sequence[Sequence[GroupBias]], alpha: float
) -> tuple[PairGroup, ...]:
    """Find the groups where one class is shown to be too high and another too low."""
    by_place: dict[Predicate, list[tuple[Any, GroupBias]]] = {}
    for name, groups in zip(classes, tables, strict=True):
        for group in groups:
            if group.pvalue <= alpha:
                by_place.setdefault(group.where, []).append((name, group))
    found = [pair for own in by_place.values() for pair in _pairs_of(own)]
    return tuple(sorted(found, key=lambda pair: -pair.at_least)[:MAX_PLACES])


def _pairs_of(shown: Sequence[tuple[Any, GroupBias]]) -> Iterator[PairGroup]:
    """Every class that is too high beside every one that is too low."""
    for name, high in shown:
        for other, low in shown:
            if high.bias < 0 < low.bias:
                yield PairGroup(
                    taken_for=name,
                    label=other,
                    where=high.where,
                    rows=high.rows,
                    too_high=-high.bias,
                    too_low=low.bias,
                    at_least=min(-high.at_least, low.at_least),
                    pvalue=max(high.pvalue, low.pvalue),
                )
