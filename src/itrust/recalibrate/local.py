"""`Local`: a monotone map, then smooth corrections in (p, x), as many as the test asks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from scipy.special import expit, logit

from itrust._core import (
    Advance,
    EntryShape,
    FloatArray,
    InputError,
    IntArray,
    ListOf,
    Maybe,
    Number,
    Numbers,
    Record,
    Text,
    Whole,
    checked_count,
    checked_share,
    inside,
    progress_stages,
    same_size,
    smallest_tickets,
    tickets,
    unfit,
)
from itrust.calibration import klce_test
from itrust.data import Points, Sample
from itrust.engines import available_threads, one_blas_thread, ordered_map
from itrust.recalibrate.base import (
    Recalibrator,
    held_logit,
    one_class,
)
from itrust.recalibrate.features import BASIS, MAX_FEATURES, Basis
from itrust.recalibrate.ridge import Fit, RowBlock, Sketch, fit_logistic
from itrust.recalibrate.rows import NO_DISTANCE, edge_of
from itrust.recalibrate.saved import COUNT, EDGE, FLAG, POSITIVE, PROBABILITY, SHARE
from itrust.recalibrate.sigmoid import Beta, Platt, Sigmoid, Temperature
from itrust.recalibrate.support import SUPPORT, Support, faded

if TYPE_CHECKING:
    from itrust.recalibrate.multiclass.base import ClassRecalibrator

BLOCK_ROWS = 8_192
BLOCK_NUMBERS = 2**23  # of the features of a block: there are fewer rows where features are many
MAX_NUMBERS_KEPT = 2**25  # of a feature matrix; beyond that features are made again each step
TUNING_ROWS, TESTED_ROWS = 20_000, 20_000
MIN_ROWS = 40  # to divide among learning and judging
MIN_TO_FOLD = 8
HELD_OUT = 1 / 5
MARGIN = 1.0  # standard errors that a correction must gain: the best of many is flattered
ROWS_TO_TRUST = 40_000  # rows per unit of the p-value that is needed: chance harms like 1 / rows
STRICTEST = 0.002
FOLDS = 4
# How long things take, a test of 20,000 rows being 1; for progress alone.
TUNING, CORRECTING = 2.0, 0.4
USUAL_ROUNDS, USUAL_PASSES = 2, 5
TESTS, CHOICES, REFIT = "testing", "choosing corrections", "fitting on all rows"
MONOTONE: tuple[type[Sigmoid] | None, ...] = (None, Temperature, Platt, Beta)  # plain ones first


@dataclass(frozen=True)
class Step:
    """What the calibration rows showed about one stage of the fit."""

    stage: str
    gain: float | None
    pvalue: float | None
    kept: bool


@dataclass(frozen=True)
class Choice:
    """Settings of one correction: the width of its kernel and the penalty of its coefficients."""

    width: float
    ridge: float


@dataclass(frozen=True, eq=False)
class Correction:
    """One local correction on the scale of logits."""

    basis: Basis
    fit: Fit
    choice: Choice

    def __call__(self, z: FloatArray, points: Points) -> FloatArray:
        """Corrected logits of rows with logits z, (n,)."""

        def corrected(rows: slice) -> FloatArray:
            here = Points(expit(z[rows]), points.take(rows).columns)
            return z[rows] + self.fit.added(self.basis.matrix(here))

        return np.concatenate([*side_by_side(corrected, z.size, len(self.basis))])


@dataclass(frozen=True, eq=False)
class _Chain:
    """The whole recalibration: logits of p, monotone or as given, and corrections in turn."""

    edge: float
    monotone: Sigmoid | None
    corrections: tuple[Correction, ...] = ()

    def monotone_logits(self, z: FloatArray) -> FloatArray:
        """Logits after the monotone map of predictions with logits z."""
        return _monotone_logits(self.monotone, np.asarray(expit(z)), self.edge)

    def logits(self, points: Points) -> FloatArray:
        z = _monotone_logits(self.monotone, points.p, self.edge)
        for correction in self.corrections:
            z = correction(z, points)
        return z

    def applied(self, sample: Sample) -> Sample:
        return _moved(sample, self.logits(sample.points))


def _monotone_logits(monotone: Sigmoid | None, p: FloatArray, edge: float) -> FloatArray:
    return held_logit(p, edge) if monotone is None else monotone.logits(p)


class _SavedMonotone(EntryShape):
    """A monotone map, which is a whole recalibration by itself."""

    def read(self, value: Any, place: str) -> Sigmoid:
        """Give the map, fitted."""
        known = {method.__name__: method for method in MONOTONE if method is not None}
        name = value.get("method") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in known:
            unfit(f"{place}.method", f"must be one of {', '.join(known)}")
        return known[name]._read(value, place)


STEP = Record(
    {"stage": Text(), "gain": Maybe(Number()), "pvalue": Maybe(PROBABILITY), "kept": FLAG}
)
CORRECTION = Record(
    {
        "basis": BASIS,
        "coefficients": Numbers(),
        "intercept": Number(),
        "choice": Record({"width": POSITIVE, "ridge": POSITIVE}),
    }
)


class Local(Recalibrator):
    """Corrects what the test finds: local bias, in all covariates at once.

    1. An exact test of p as given, given the covariates and alone. If it does not reject, nothing
       is changed (but predictions of 0 and 1, which become nearly so): a correction that chance
       suggests does harm. The fewer the rows, the smaller the p-value has to be.
    2. A monotone map of p: as given, temperature, Platt or beta, the plainest that no other beats
       by a standard error of the log loss in cross-validation. Never 0 or 1.
    3. Smooth corrections on the scale of logits: a penalised logistic regression on the features
       of a kernel in (p, x), with the logit so far as offset, and width and penalty by
       cross-validation. A correction has to lower the log loss on rows it was not fitted on by a
       standard error, and there is no further one once an exact test on an inner hold-out, a
       fifth of the calibration rows, no longer rejects.
    4. What was kept is fitted again on all calibration rows.
    5. Outside the calibration rows corrections fade to nothing, and farther out the map does.

    Of several classes the map is temperature, vector, matrix or Dirichlet scaling, and a correction
    is a penalised multinomial regression, in which the logit of each class has the features of its
    own probability and x. Of two classes it learns what it learns of a `Sample`.

    Parameters
    ----------
    alpha : float
        Size of the tests inside: corrections are made while the p-value is at most alpha. The
        first test, of the predictions as given, needs n / 40,000 if that is less.
    rounds : int
        The largest number of local corrections.
    features : int
        The largest number of functions of (p, x) in one correction.
    widths : sequence of float
        Widths of the kernel to choose from, as shares of a number's range, which is measured as a
        mean of ranks and values.
    ridges : sequence of float
        Penalties of the coefficients to choose from; a larger one corrects less.
    draws : int
        Number of draws of the tests inside.
    rng : int
        Divides the rows and draws for the tests inside. It is a setting that is saved with the
        others, so it is a whole number and not a Generator.

    Attributes
    ----------
    needed_ : float
        The p-value that the first test needs for anything to be changed: the number of rows (or
        clusters) over 40,000, at most alpha and at least 0.002.
    clusters_ : int or None
        Number of clusters of the calibration rows; None if there were none.
    steps_ : tuple of Step
        What was tried, and what the inner hold-out showed.
    corrections_ : tuple of Correction
        The local corrections that were kept, in order.
    monotone_ : Temperature, Platt, Beta or None
        The monotone map; None: predictions as given.
    edge_ : float
        Predictions of 0 and 1 are read as lying this far from there.
    support_ : Support
        Where the calibration rows lie.

    Notes
    -----
    Missing values are a level of their own; levels beyond the 40 most frequent ones of a category
    get the correction of their row's other covariates.

    A row is outside the calibration rows if a number lies beyond their range by a third of it or
    more (the logit of p by a third and twice what the map moves the end of the range), if it has a
    level, or a missing value, that they do not have, or if its values do not go together as theirs
    do: its Mahalanobis distance, or that of one value from what the others let expect, is 1.5 times
    what 99 % of them keep to. Until there corrections fade smoothly, and `at_edge` marks the rows
    that get a part of them; `outside` marks the rows that get nothing of them. The map of p fades
    from there to twice as far, beyond the range of p at once, but slowly enough to keep its order.
    Both mark rows by where they lie, also where the fit changed nothing. An error that goes on
    outside is not corrected there, not even one of p alone: the calibration rows cannot tell. Where
    you know that it does go on, leave the covariates out, or take `Platt`.

    Cost O(n features^2). No method can be better than its rows: an error learned from n rows
    can be seen by a test on n others.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(6_000, rng=0).sample
    >>> calibration, test = town.split([0.5, 0.5], rng=0)
    >>> recalibrated = it.recalibrate.Local().fit(calibration).apply(test)
    >>> it.klce_test(test, draws=199, rng=0).pvalue
    0.005
    >>> it.klce_test(recalibrated, draws=199, rng=0).pvalue > 0.05
    True
    """

    reads_covariates = True
    _seconds = 20.0
    _SETTINGS: ClassVar[dict[str, EntryShape]] = {
        "alpha": SHARE,
        "rounds": COUNT,
        "features": Whole(1, MAX_FEATURES),
        "widths": ListOf(POSITIVE, at_least=1),
        "ridges": ListOf(POSITIVE, at_least=1),
        "draws": COUNT,
        "rng": Whole(0, 2**128),
    }
    _LEARNED = Record(
        {
            "edge": EDGE,
            "needed": SHARE,
            "clusters": Maybe(COUNT),
            "monotone": Maybe(_SavedMonotone()),
            "corrections": ListOf(CORRECTION, at_most=1_000),
            "support": SUPPORT,
            "steps": ListOf(STEP, at_least=1),
        }
    )

    def __init__(
        self,
        alpha: float = 0.1,
        rounds: int = 3,
        features: int = 150,
        widths: Sequence[float] = (0.1, 0.2, 0.4, 0.8),
        ridges: Sequence[float] = (0.5, 2.0, 8.0, 32.0, 128.0),
        draws: int = 99,
        rng: int = 0,
    ) -> None:
        self.alpha, self.rounds, self.features = alpha, rounds, features
        self.widths, self.ridges, self.draws, self.rng = widths, ridges, draws, rng

    def _fit(self, sample: Sample) -> None:
        self._check_settings()
        self.edge_ = edge_of(sample.p)
        self.clusters_ = sample.clusters
        self.needed_ = min(self.alpha, max(_units(sample) / ROWS_TO_TRUST, STRICTEST))
        chosen = 1 + min(self.rounds, USUAL_ROUNDS) * (TUNING + CORRECTING + 1)
        stages = {TESTS: 2.0, CHOICES: chosen, REFIT: USUAL_ROUNDS * CORRECTING}
        with progress_stages(stages) as begin:
            begin(TESTS, 2.0)
            first = self._first_pvalue(sample)
            self.steps_: tuple[Step, ...] = (Step("as given", None, first, True),)
            chain = _Chain(self.edge_, None)
            if first <= self.needed_:
                with one_blas_thread():  # many small products: threads would wait for each other
                    choices = self._choices(sample, begin(CHOICES, chosen))
                    advance = begin(REFIT, CORRECTING * len(choices))
                    chain = self._monotone_chain(sample)
                    for choice in choices:
                        chain = _corrected(sample, chain, choice, self.features, advance)
        self.monotone_, self.corrections_ = chain.monotone, chain.corrections
        self.support_ = Support.of(
            sample.points, _few(sample).points, self.edge_, chain.monotone_logits
        )

    def _monotone_chain(self, sample: Sample) -> _Chain:
        method = self._monotone_method(sample)
        return _Chain(self.edge_, None if method is None else _fitted(method, sample))

    def _monotone_method(self, sample: Sample) -> type[Sigmoid] | None:
        """The plainest map that no other beats by a standard error; None: as given."""
        some = _few(sample)
        if _units(some) < MIN_TO_FOLD:
            return None
        fold, losses = _folds(some, self.rng), np.zeros((len(MONOTONE), some.n))
        for held in np.unique(fold):
            out = np.flatnonzero(fold == held)
            learn, judge = some.take(np.flatnonzero(fold != held)), some.p[out]
            if one_class(learn):
                return None
            for own, method in zip(losses, MONOTONE, strict=True):
                monotone = None if method is None else _fitted(method, learn)
                own[out] = _losses(some.y[out], _monotone_logits(monotone, judge, self.edge_))
        best = 0
        for number in range(1, len(MONOTONE)):
            if _errors(losses[best] - losses[number], some) > MARGIN:
                best = number
        return MONOTONE[best]

    def _choices(self, sample: Sample, advance: Advance) -> list[Choice]:
        """Corrections that calibration rows ask for; adds to `steps_`."""
        if _units(sample) < MIN_ROWS:
            return []
        learn, judge = sample.split([1 - HELD_OUT, HELD_OUT], rng=self.rng)
        if one_class(learn):
            return []
        chain = self._monotone_chain(learn)
        name = "as given" if chain.monotone is None else type(chain.monotone).__name__.lower()
        pvalue = self._pvalue(chain.applied(judge), self.draws)
        steps = [Step(f"monotone ({name})", None, pvalue, True)]
        choices: list[Choice] = []
        while len(choices) < self.rounds and (not choices or pvalue <= self.alpha):
            choice, gains, rows = self._tuned(learn, chain.logits(learn.points), advance)
            longer = _corrected(learn, chain, choice, self.features, advance)
            if judge.n > TUNING_ROWS:  # more rows than settings were chosen on
                before, after = (_losses(judge.y, c.logits(judge.points)) for c in (chain, longer))
                gains, rows = before - after, judge
            gain = float(np.average(gains, weights=rows.weights_or_ones))
            if _errors(gains, rows) <= MARGIN:
                steps.append(Step(f"local {len(choices) + 1}", gain, None, False))
                break
            chain = longer
            choices.append(choice)
            pvalue = self._pvalue(chain.applied(judge), self.draws)
            steps.append(Step(f"local {len(choices)}", gain, pvalue, True))
        self.steps_ += tuple(steps)
        return choices

    def _tuned(
        self, sample: Sample, z: FloatArray, advance: Advance
    ) -> tuple[Choice, FloatArray, Sample]:
        """Width and ridge with the least log loss on other folds; gains of rows, and the rows."""
        some, z = _few(sample), z[_few_rows(sample)]
        fold, w = _folds(some, self.rng), some.weights_or_ones
        before, step = _losses(some.y, z), TUNING / (len(self.widths) * FOLDS)
        best = (np.inf, Choice(self.widths[0], max(self.ridges)), before)
        for width in self.widths:
            points = Points(np.asarray(expit(z)), some.columns)
            features = Basis.of(points, width, self.features).matrix(points)
            crossed = _crossed(features, some, z, fold, self.ridges, lambda: advance(step))
            for ridge, told in crossed:
                losses = _losses(some.y, told)
                total = float(w @ losses)
                if total < best[0]:
                    best = (total, Choice(width, ridge), losses)
        _, choice, losses = best
        return choice, before - losses, some

    def _first_pvalue(self, sample: Sample) -> float:
        """Of the predictions as given: given the covariates or alone, the smaller one, twice."""
        given = sample.with_predictions(_without_certainty(sample.p, self.edge_))
        ways = [given, given.only()] if given.columns else [given]
        enough = math.ceil(len(ways) / self.needed_) - 1  # fewer draws give no p-value so small
        found = 1.0
        for draws in sorted({self.draws, max(self.draws, enough)}):
            found = min(1.0, len(ways) * min(self._pvalue(way, draws) for way in ways))
            if found > max(self.alpha, len(ways) / (draws + 1)):
                break  # far from what is needed: more draws would only cost time
        return found

    def _pvalue(self, sample: Sample, draws: int) -> float:
        rows = smallest_tickets(tickets(0, sample.n), TESTED_ROWS)
        some = sample.take(rows) if rows.size < sample.n else sample
        result = klce_test(some, draws=draws, rng=self.rng)
        return float(result.pvalue)

    @property
    def unchanged_(self) -> bool:
        """bool: Whether nothing was kept, and predictions but those of 0 and 1 stay as given."""
        if self.several_ is not None:
            return self.several_.unchanged_
        return self.monotone_ is None and not self.corrections_

    def _predict(self, points: Points) -> FloatArray:
        if self.unchanged_:
            return _without_certainty(points.p, self.edge_)
        return self._recalibrated(points, self._distance(points))

    def _placed(self, points: Points) -> tuple[FloatArray, FloatArray]:
        far = self._distance(points)
        if self.unchanged_:
            return _without_certainty(points.p, self.edge_), far
        return self._recalibrated(points, far), far

    def _recalibrated(self, points: Points, far: FloatArray) -> FloatArray:
        """Probabilities of rows that lie so far from the calibration rows."""
        chain = _Chain(self.edge_, self.monotone_, self.corrections_)
        given = np.asarray(logit(_without_certainty(points.p, self.edge_)))
        held = self.support_.of_prediction.held(given)
        moved = chain.monotone_logits(held)
        corrected = chain.logits(Points(np.asarray(expit(held)), points.columns))
        # The map reaches farther than corrections, but for p itself.
        mapped = np.minimum(faded(far - 1), faded(self.support_.of_prediction.distance(given)))
        z = given + mapped * (moved - held) + faded(far) * (corrected - moved)
        # Not surer than the model was, nor than so many rows can tell.
        surest = np.maximum(np.abs(given), np.log(2 * self.n_rows_ - 1))
        return np.asarray(expit(np.clip(z, -surest, surest)))

    def _distance(self, points: Points) -> FloatArray:
        """How far rows lie from the calibration rows."""

        def some(rows: slice) -> FloatArray:
            return self.support_.distance(points.take(rows), self.edge_)

        return np.concatenate([*side_by_side(some, len(points), self.support_.means.size)])

    def _learned(self) -> dict[str, Any]:
        return {
            "edge": self.edge_,
            "needed": self.needed_,
            "clusters": self.clusters_,
            "monotone": None if self.monotone_ is None else self.monotone_.to_dict(),
            "corrections": [
                {
                    "basis": correction.basis.to_dict(),
                    "coefficients": correction.fit.coefficients,
                    "intercept": correction.fit.intercept,
                    "choice": asdict(correction.choice),
                }
                for correction in self.corrections_
            ],
            "support": self.support_.to_dict(),
            "steps": [asdict(step) for step in self.steps_],
        }

    def _restore(self, learned: dict[str, Any]) -> None:
        self.edge_, self.needed_ = learned["edge"], learned["needed"]
        self.clusters_, self.monotone_ = learned["clusters"], learned["monotone"]
        self.corrections_ = tuple(
            self._correction(facts, inside("learned.corrections", at))
            for at, facts in enumerate(learned["corrections"])
        )
        self.support_ = Support.read(learned["support"], "learned.support", self.columns_)
        self.steps_ = tuple(Step(**step) for step in learned["steps"])

    def _correction(self, facts: dict[str, Any], place: str) -> Correction:
        """A correction as a file tells it."""
        basis = Basis.read(facts["basis"], f"{place}.basis", self.columns_)
        coefficients = facts["coefficients"]
        same_size(f"{place}.coefficients", coefficients.size, f"{place}.basis.terms", len(basis))
        fit = Fit(coefficients, facts["intercept"])
        return Correction(basis, fit, Choice(**facts["choice"]))

    @classmethod
    def _machine_type(cls, classes: int) -> type[ClassRecalibrator]:
        from itrust.recalibrate.multiclass.local import LocalClasses

        return super()._machine_type(classes) if classes == 2 else LocalClasses

    def _check_settings(self) -> None:
        checked_share(self.alpha, "alpha")
        for name in ("rounds", "features", "draws"):
            checked_count(getattr(self, name), name)
        if self.features > MAX_FEATURES:
            raise InputError(
                "{argument} must be at most {most}, not {value}",
                argument="features",
                value=self.features,
                details={"most": MAX_FEATURES},
            )
        checked_count(self.rng, "rng", at_least=0)
        for name in ("widths", "ridges"):
            values = getattr(self, name)
            if not isinstance(values, Sequence) or not values or not all(v > 0 for v in values):
                raise InputError(
                    "{argument} must be positive numbers, not {value}", argument=name, value=values
                )


Made = TypeVar("Made")


def side_by_side(make: Callable[[slice], Made], n: int, numbers: int = 1) -> Iterator[Made]:
    """What is made of all rows, some at a time and in order, by all threads.

    `numbers` is how many each row takes while it is made.
    """
    step = min(BLOCK_ROWS, max(BLOCK_NUMBERS // max(numbers, 1), 1))
    pieces = (slice(first, first + step) for first in range(0, n, step))
    return ordered_map(make, pieces, available_threads())


def _moved(sample: Sample, z: FloatArray) -> Sample:
    return sample.with_predictions(expit(z))


def _few_rows(sample: Sample) -> IntArray:
    return smallest_tickets(tickets(0, sample.n), TUNING_ROWS)


def _few(sample: Sample) -> Sample:
    """Random rows, enough to choose settings by."""
    return sample if sample.n <= TUNING_ROWS else sample.take(_few_rows(sample))


def _fitted(method: type[Sigmoid], sample: Sample) -> Sigmoid:
    return method().fit(sample, progress=False)


def _corrected(
    sample: Sample, chain: _Chain, choice: Choice, features: int, advance: Advance
) -> _Chain:
    """The chain with one more correction."""
    z = chain.logits(sample.points)
    basis = Basis.of(_moved(_few(sample), z[_few_rows(sample)]).points, choice.width, features)
    start: Fit | None = None
    sketch: Sketch | None = None
    if sample.n > TUNING_ROWS:
        few = _blocks(_few(sample), z[_few_rows(sample)], basis)
        start = fit_logistic(few, len(basis), choice.ridge)
        sketch = Sketch(few, sample.n / TUNING_ROWS)
    blocks = _counted(_blocks(sample, z, basis), advance, sample.n)
    fit = fit_logistic(blocks, len(basis), choice.ridge, start, sketch)
    added = Correction(basis, fit, choice)
    return _Chain(chain.edge, chain.monotone, (*chain.corrections, added))


def _without_certainty(p: FloatArray, edge: float) -> FloatArray:
    """As given, but what was called impossible or certain is next to it."""
    certain = np.minimum(p, 1 - p) <= NO_DISTANCE
    return np.where(certain, np.clip(p, edge, 1 - edge), p)


def _losses(y: FloatArray, z: FloatArray) -> FloatArray:
    """Log loss of every row."""
    return np.asarray(np.logaddexp(0, z) - y * z)


def _errors(gains: FloatArray, sample: Sample) -> float:
    """The weighted mean of the rows' gains, in standard errors."""
    w = sample.weights_or_ones
    mean = float(np.average(gains, weights=w))
    left = w * (gains - mean)
    if not sample.design.rows_are_independent:
        left = np.asarray(np.bincount(sample.design.drawn_together, weights=left), dtype=float)
    error = float(np.sqrt(np.square(left).sum())) / float(w.sum())
    return mean / error if error else float(np.sign(mean)) * np.inf if mean else 0.0


def _units(sample: Sample) -> int:
    """Rows, or clusters of them."""
    return sample.n if sample.clusters is None else sample.clusters


def _blocks(sample: Sample, z: FloatArray, basis: Basis) -> Callable[[], Iterator[RowBlock]]:
    """All rows in pieces; kept if they are few, else made again whenever they are asked for."""

    def block(rows: slice) -> RowBlock:
        here = Points(expit(z[rows]), sample.points.take(rows).columns)
        return RowBlock(basis.matrix(here), sample.y[rows], z[rows], sample.weights_or_ones[rows])

    def fresh() -> Iterator[RowBlock]:
        return side_by_side(block, sample.n, len(basis))

    if sample.n * len(basis) > MAX_NUMBERS_KEPT:
        return fresh
    kept = list(fresh())
    return lambda: iter(kept)


def _counted(
    blocks: Callable[[], Iterator[RowBlock]], advance: Advance, n: int
) -> Callable[[], Iterator[RowBlock]]:
    """The same rows; progress is told of those that are done with, in all passes over them."""

    def counted() -> Iterator[RowBlock]:
        for block in blocks():
            yield block
            advance(CORRECTING * block.y.size / (n * USUAL_PASSES))

    return counted


def _folds(sample: Sample, rng: int, number: int = FOLDS) -> IntArray:
    """The fold of every row; clusters are never torn apart."""
    drawn = np.random.default_rng(rng)
    codes = sample.design.drawn_together
    return np.asarray((drawn.permutation(int(codes.max()) + 1) % number)[codes])


def _crossed(
    features: FloatArray,
    sample: Sample,
    z: FloatArray,
    fold: IntArray,
    ridges: Sequence[float],
    fold_is_done: Callable[[], None],
) -> Iterator[tuple[float, FloatArray]]:
    """Each ridge, from the largest, and logits of rows by fits that did not see their fold."""
    found = {ridge: np.empty(z.size) for ridge in sorted(ridges, reverse=True)}
    w = sample.weights_or_ones
    for held in np.unique(fold):
        out = fold == held
        block = RowBlock(features[~out], sample.y[~out], z[~out], w[~out])
        start: Fit | None = None
        for ridge, told in found.items():
            start = fit_logistic(partial(_only, block), features.shape[1], ridge, start)
            told[out] = z[out] + start.added(features[out])
        fold_is_done()
    return iter(found.items())


def _only(block: RowBlock) -> Iterator[RowBlock]:
    return iter((block,))
