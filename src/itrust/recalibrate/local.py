"""`Local`: a map of p, then smooth corrections in (p, x), as many as the test asks for.

Predictions and logits are (n, K), K = 1 for two labels; the logits of each outcome have features of
its own probability and the covariates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from itrust._core import (
    Advance,
    EntryShape,
    FloatArray,
    IntArray,
    Maybe,
    Number,
    Record,
    Whole,
    progress_stages,
    same_size,
    tuple_of,
    unfit,
)
from itrust.calibration import klce_test
from itrust.data import Column, Points, Rows, Sample
from itrust.engines import available_threads, one_blas_thread, ordered_map
from itrust.recalibrate.base import Recalibrator, SavedMethod
from itrust.recalibrate.features import BASIS, MAX_FEATURES, Basis
from itrust.recalibrate.rows import (
    MIN_TO_FOLD,
    CalibrationRows,
    edge_of,
    folds,
    held_logits,
    losses,
    one_label,
    points_of,
    probabilities,
    random_of,
    softened,
    units,
    unseen,
)
from itrust.recalibrate.saved import COUNT, EDGE, POSITIVE, PROBABILITY, SHARE, matrix_of
from itrust.recalibrate.scaling import (
    RIDGES,
    Beta,
    DirichletCalibration,
    MatrixScaling,
    Platt,
    ScaleMap,
    Temperature,
    TemperatureScaling,
    VectorScaling,
)
from itrust.recalibrate.support import SUPPORT, Support, faded
from itrust.terms import (
    LINKS,
    MultinomialRows,
    RegressionRows,
    added_logits,
    fit_glm,
    fit_multinomial,
    summed,
)

BLOCK_ROWS = 8_192
BLOCK_NUMBERS = 2**23  # of the features of a block: there are fewer rows where features are many
MAX_NUMBERS = 2**25  # of features that are held: beyond that they are made again each step
TUNING_ROWS, TESTED_ROWS = 20_000, 20_000
LABELS_TO_TUNE = 30_000  # rows times classes that settings are chosen on
MIN_ROWS = 40  # to divide among learning and judging
HELD_OUT = 1 / 5
MARGIN = 1.0  # standard errors that a correction must gain: the best of many is flattered
ROWS_TO_TRUST = 40_000  # rows per unit of the p-value that is needed: chance harms like 1 / rows
STRICTEST = 0.002
# Gains of the mean loss that are not worth a step: of two labels, of classes, and of these where
# settings are chosen.
DONE, DONE_CLASSES, ROUGHLY = 1e-7, 1e-8, 1e-6
FREE = 1e-8  # ridge of the intercept, against labels that one feature tells apart
# How long things take, a test of 20,000 rows being 1; for progress alone.
TUNING, CORRECTING = 2.0, 0.4
USUAL_ROUNDS, USUAL_PASSES = 2, 5
TESTS, CHOICES, REFIT = "testing", "choosing corrections", "fitting on all rows"
# Plain ones first.
MAPS: tuple[ScaleMap | None, ...] = (None, Temperature(), Platt(), Beta())
CLASS_MAPS: tuple[ScaleMap | None, ...] = (
    *(None, TemperatureScaling(), VectorScaling()),
    *(MatrixScaling((ridge,)) for ridge in RIDGES),
    *(DirichletCalibration((ridge,)) for ridge in RIDGES),
)
# Untested corrections are made many times.
UNTESTED_WIDTHS, UNTESTED_RIDGES = (0.4, 1.0), (2.0, 16.0, 128.0)
FEW_FEATURES, MANY_FEATURES, MANY_ROWS = 60, 150, 5_000

Fitter = Callable[[float, "FloatArray | None"], FloatArray]  # ridge and start -> theta (K, m)
Choice = tuple[float, float]  # of a correction: the width of its kernel and its ridge
Made = TypeVar("Made")


@dataclass(frozen=True)
class Step:
    """What the calibration rows showed about one stage of the fit."""

    stage: str
    gain: float | None
    pvalue: float | None
    kept: bool


@dataclass(frozen=True, eq=False)
class Correction:
    """One local correction of the logits of all outcomes.

    `bases` has the features of every outcome; coefficients are (K, m + 1), the last ones of a
    constant. They were fitted with this width of the kernel and this penalty.
    """

    bases: tuple[Basis, ...]
    coefficients: FloatArray
    width: float
    ridge: float

    def __call__(self, z: FloatArray, columns: tuple[Column, ...]) -> FloatArray:
        """Corrected logits of rows with logits z, (n, K)."""

        def corrected(rows: slice) -> FloatArray:
            here = tuple(column.take(rows) for column in columns)
            return z[rows] + added_logits(designs(self.bases, z[rows], here), self.coefficients)

        numbers = sum(map(len, self.bases))
        return np.concatenate([*side_by_side(corrected, len(z), numbers)])


def designs(bases: Sequence[Basis], z: FloatArray, columns: tuple[Column, ...]) -> list[FloatArray]:
    """Features and a constant of every outcome, K arrays (n, m + 1)."""
    points = points_of(probabilities(z), columns)
    return [basis.design(own) for basis, own in zip(bases, points, strict=True)]


@dataclass(frozen=True, eq=False)
class _Chain:
    """The whole recalibration: logits of p, mapped or as given, and corrections in turn."""

    edge: float
    map: ScaleMap | None = None
    corrections: tuple[Correction, ...] = ()

    def mapped(self, p: FloatArray) -> FloatArray:
        """Logits after the map, (n, K)."""
        return held_logits(p, self.edge) if self.map is None else self.map._logits(p)

    def logits(self, p: FloatArray, columns: tuple[Column, ...]) -> FloatArray:
        """Logits after all corrections, (n, K)."""
        z = self.mapped(p)
        for correction in self.corrections:
            z = correction(z, columns)
        return z

    def of(self, rows: Rows) -> FloatArray:
        return self.logits(rows.predictions, rows.columns)


STEP = Record.of(Step, pvalue=Maybe(PROBABILITY))
CORRECTION = Record.of(
    Correction,
    bases=tuple_of(BASIS, at_least=1),
    coefficients=matrix_of(Number()),
    width=POSITIVE,
    ridge=POSITIVE,
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
    map_ : Recalibrator or None
        The map of the predictions, of two labels monotone; None: predictions as given.
    edge_ : float
        Predictions of 0 and 1 are read as lying this far from there.
    supports_ : tuple of Support
        Where the calibration rows lie, for each outcome: one for two labels.

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
    _classes_at_once = 3
    _seconds = 20.0
    _SETTINGS: ClassVar[dict[str, EntryShape]] = {
        "alpha": SHARE,
        "rounds": COUNT,
        "features": Whole(1, MAX_FEATURES),
        "widths": tuple_of(POSITIVE, at_least=1),
        "ridges": tuple_of(POSITIVE, at_least=1),
        "draws": COUNT,
        "rng": Whole(0, 2**128),
    }
    _LEARNED = Record(
        {
            "edge": EDGE,
            "needed": SHARE,
            "clusters": Maybe(COUNT),
            "map": Maybe(
                SavedMethod(*dict.fromkeys(type(own) for own in (*MAPS, *CLASS_MAPS) if own))
            ),
            "corrections": tuple_of(CORRECTION, at_most=1_000),
            "supports": tuple_of(SUPPORT, at_least=1),
            "steps": tuple_of(STEP, at_least=1),
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

    def _fit(self, rows: Rows) -> None:
        self.edge_ = edge_of(rows.predictions)
        self.clusters_ = rows.clusters
        self.needed_ = min(self.alpha, max(units(rows.design) / ROWS_TO_TRUST, STRICTEST))
        chosen = 1 + min(self.rounds, USUAL_ROUNDS) * (TUNING + CORRECTING + 1)
        stages = {TESTS: 2.0, CHOICES: chosen, REFIT: USUAL_ROUNDS * CORRECTING}
        with progress_stages(stages) as begin:
            begin(TESTS, 2.0)
            first = self._first_pvalue(rows)
            self.steps_: tuple[Step, ...] = (Step("as given", None, first, True),)
            chain = _Chain(self.edge_)
            if first <= self.needed_:
                with one_blas_thread():  # many small products: threads would wait for each other
                    choices = self._choices(rows, begin(CHOICES, chosen))
                    advance = begin(REFIT, CORRECTING * len(choices))
                    chain = _Chain(self.edge_, self._map(rows))
                    for choice in choices:
                        chain = self._corrected(rows, chain, choice, advance)
        self.map_, self.corrections_ = chain.map, chain.corrections
        some = random_of(rows, TUNING_ROWS)
        pairs = zip(*(points_of(own.predictions, own.columns) for own in (rows, some)), strict=True)
        self.supports_ = tuple(
            Support.of(every, few, self.edge_, _in_order(chain)) for every, few in pairs
        )

    def _map(self, rows: Rows) -> ScaleMap | None:
        """The plainest map that no other beats by a standard error; None: as given."""
        some = random_of(rows, _rows_to_tune(rows))
        if units(some.design) < MIN_TO_FOLD:
            return None
        maps = CLASS_MAPS if rows.several else MAPS
        fold, judged = folds(some.design, self.rng), np.zeros((len(maps), some.n))
        for number in np.unique(fold):
            out = np.flatnonzero(fold == number)
            learn = some.take(np.flatnonzero(fold != number))
            if one_label(learn):
                return None
            for losses_of, plan in zip(judged, maps, strict=True):
                chain = _Chain(self.edge_, _fitted(plan, learn))
                z = chain.mapped(some.predictions[out])
                losses_of[out] = losses(some.codes[out], z)
        best = 0
        for number in range(1, len(maps)):
            if errors(judged[best] - judged[number], some) > MARGIN:
                best = number
        return _fitted(maps[best], rows)

    def _choices(self, rows: Rows, advance: Advance) -> list[Choice]:
        """Corrections that calibration rows ask for; adds to `steps_`."""
        if units(rows.design) < MIN_ROWS:
            return []
        learn, judge = rows.split([1 - HELD_OUT, HELD_OUT], rng=self.rng)
        if one_label(learn):
            return []
        chain = _Chain(self.edge_, self._map(learn))
        name = "as given" if chain.map is None else type(chain.map).__name__
        pvalue = self._pvalue(_moved(judge, chain.of(judge)), self.draws)
        steps = [Step(f"map ({name})", None, pvalue, True)]
        choices: list[Choice] = []
        while len(choices) < self.rounds and (not choices or pvalue <= self.alpha):
            choice, gains, some = self._tuned(learn, chain, advance)
            longer = self._corrected(learn, chain, choice, advance)
            if judge.n > _rows_to_tune(rows):  # more rows than settings were chosen on
                before, after = (losses(judge.codes, own.of(judge)) for own in (chain, longer))
                gains, some = before - after, judge
            gain = float(np.average(gains, weights=some.weights_or_ones))
            if errors(gains, some) <= MARGIN:
                steps.append(Step(f"local {len(choices) + 1}", gain, None, False))
                break
            chain = longer
            choices.append(choice)
            pvalue = self._pvalue(_moved(judge, chain.of(judge)), self.draws)
            steps.append(Step(f"local {len(choices)}", gain, pvalue, True))
        self.steps_ += tuple(steps)
        return choices

    def _tuned(
        self, rows: Rows, chain: _Chain, advance: Advance
    ) -> tuple[Choice, FloatArray, Rows]:
        """Width and ridge with the least log loss on other folds; gains of rows, and the rows."""
        some = random_of(rows, _rows_to_tune(rows))
        z, w, fold = chain.of(some), some.weights_or_ones, folds(some.design, self.rng)
        before, step = losses(some.codes, z), TUNING / (len(self.widths) * len(np.unique(fold)))
        best = (np.inf, (self.widths[0], max(self.ridges)), before)
        for width in self.widths:
            own = designs(self._bases(some, z, width), z, some.columns)
            moved = {ridge: np.empty(z.shape) for ridge in sorted(self.ridges, reverse=True)}
            for number in np.unique(fold):
                out = fold == number
                inner, away = [x[~out] for x in own], [x[out] for x in own]
                fit = fitter(inner, some.codes[~out], w[~out], z[~out], ROUGHLY)
                start = None
                for ridge, logits in moved.items():
                    start = fit(ridge, start)
                    logits[out] = z[out] + added_logits(away, start)
                advance(step)
            for ridge, logits in moved.items():
                after = losses(some.codes, logits)
                total = float(w @ after)
                if total < best[0]:
                    best = (total, (width, ridge), after)
        _, choice, after = best
        return choice, before - after, some

    def _bases(self, rows: Rows, z: FloatArray, width: float) -> tuple[Basis, ...]:
        points = points_of(probabilities(z), rows.columns)
        return tuple(Basis.of(own, width, self.features) for own in points)

    def _corrected(self, rows: Rows, chain: _Chain, choice: Choice, advance: Advance) -> _Chain:
        """The chain with one more correction."""
        if rows.several:
            rows = random_of(rows, MAX_NUMBERS // (self.features * len(rows.classes)))
            few = rows
        else:
            few = random_of(rows, TUNING_ROWS)
        width, ridge = choice
        z = chain.of(few)
        bases = self._bases(few, z, width)
        if rows.several:
            own = designs(bases, z, rows.columns)
            fit = fitter(own, rows.codes, rows.weights_or_ones, z, DONE_CLASSES)
            theta = fit(ridge, None)
        else:
            theta = _fitted_in_blocks(rows, few, chain, bases[0], ridge, advance)[None]
        added = Correction(bases, theta, width, ridge)
        return _Chain(chain.edge, chain.map, (*chain.corrections, added))

    def _first_pvalue(self, rows: Rows) -> float:
        """Of the predictions as given: given the covariates or alone, the smaller one, twice."""
        given = rows.replaced(predictions=softened(rows.predictions, self.edge_))
        ways = [given, given.only()] if given.columns and not rows.several else [given]
        enough = math.ceil(len(ways) / self.needed_) - 1  # fewer draws give no p-value so small
        smallest = 1.0
        for draws in sorted({self.draws, max(self.draws, enough)}):
            smallest = min(1.0, len(ways) * min(self._pvalue(way, draws) for way in ways))
            if smallest > max(self.alpha, len(ways) / (draws + 1)):
                break  # far from what is needed: more draws would only cost time
        return smallest

    def _pvalue(self, rows: Any, draws: int) -> float:
        some = random_of(rows, TESTED_ROWS)
        return float(klce_test(some, draws=draws, rng=self.rng).pvalue)  # type: ignore[call-overload]

    @property
    def unchanged_(self) -> bool:
        """bool: Whether nothing was kept, and predictions but those of 0 and 1 stay as given."""
        if self.fits_ is not None:
            return super().unchanged_
        return self.map_ is None and not self.corrections_

    def _predict(self, rows: Rows) -> FloatArray:
        soft = softened(rows.predictions, self.edge_)
        if self.unchanged_:
            return soft
        chain = _Chain(self.edge_, self.map_, self.corrections_)
        far, near = self._distances(rows), soft
        given = before = _centred(np.log(soft) if rows.several else held_logits(soft, 0.0))
        mapped = faded(far.max(axis=1, keepdims=True) - 1)
        if not rows.several:  # beyond the range of p the map goes on as at its end, and fades
            seen = self.supports_[0].of_prediction
            before, near = seen.held(given), probabilities(seen.held(given))
            mapped = np.minimum(mapped, faded(seen.distance(given)))
        moved = _centred(chain.mapped(near))
        corrected = _centred(chain.logits(near, rows.columns))
        # The map reaches farther than corrections; of classes the one that is farthest out counts.
        z = given + mapped * (moved - before) + faded(far) * (corrected - moved)
        # Not surer than the model was, nor than so many rows can tell.
        if not rows.several:
            surest = np.maximum(np.abs(given), np.log(2 * self.n_rows_ - 1))
            return probabilities(np.clip(z, -surest, surest))
        told = np.maximum(probabilities(z), np.minimum(soft, 0.5 / self.n_rows_))
        return np.asarray(told / told.sum(axis=1, keepdims=True))

    def _distances(self, rows: Rows) -> FloatArray:
        """How far rows lie from the calibration rows in each outcome, (n, K)."""
        points = points_of(rows.predictions, rows.columns)

        def some(part: slice) -> FloatArray:
            pairs = zip(self.supports_, points, strict=True)
            return np.column_stack([own.distance(p.take(part), self.edge_) for own, p in pairs])

        return np.concatenate([*side_by_side(some, rows.n, self.supports_[0].means.size)])

    def _distance(self, rows: Rows) -> FloatArray:
        return np.asarray(self._distances(rows).max(axis=1))

    def _refuse_misfit(self) -> None:
        if self.map_ is not None and self.map_.classes_ != self.classes_:
            unfit("learned.map.classes", "must be the classes of the file")
        size = len(self.classes_ or (None,))
        same_size("learned.supports", len(self.supports_), "classes", size)
        for at, support in enumerate(self.supports_):
            support.refuse_misfit(f"learned.supports[{at}]", self.columns_)
        for number, correction in enumerate(self.corrections_):
            place = f"learned.corrections[{number}]"
            bases, coefficients = correction.bases, correction.coefficients
            same_size(f"{place}.bases", len(bases), "classes", size)
            same_size(f"{place}.coefficients", len(coefficients), "classes", size)
            for at, basis in enumerate(bases):
                where = f"{place}.bases[{at}]"
                basis.refuse_misfit(where, self.columns_)
                terms, wanted = f"{where}.terms and one more", len(basis) + 1
                same_size(f"{place}.coefficients[{at}]", coefficients.shape[1], terms, wanted)


# --- fits -------------------------------------------------------------------------------------


def fitter(
    own: Sequence[FloatArray], codes: IntArray, w: FloatArray, z: FloatArray, done: float
) -> Fitter:
    """Penalised regressions of labels on the designs of all outcomes, with logits z as offset."""
    size = own[0].shape[1]

    def penalties(ridge: float) -> FloatArray:
        return np.append(np.full(size - 1, ridge), FREE)

    if len(own) > 1:
        many = MultinomialRows(own, codes, w, z)
        return lambda ridge, start: fit_multinomial(
            many, np.tile(penalties(ridge), (len(own), 1)), start, done=done
        )
    block = RegressionRows(own[0], codes, w, z[:, 0])

    def fit(ridge: float, start: FloatArray | None) -> FloatArray:
        begun = None if start is None else start[0]
        link = LINKS["logit"]
        return fit_glm(link, lambda: (block,), penalties(ridge), begun, done=DONE)[0][None]

    return fit


def _fitted_in_blocks(
    rows: Rows, few: Rows, chain: _Chain, basis: Basis, ridge: float, advance: Advance
) -> FloatArray:
    """The same for two labels and any number of rows; second derivatives are those of few rows."""
    link, penalty = LINKS["logit"], np.append(np.full(len(basis), ridge), FREE)
    start = curve = None
    if few.n < rows.n:
        some = _blocks(few, chain, basis)
        start = fit_glm(link, some, penalty, done=DONE)[0]
        curve = rows.n / few.n * summed(link, start, some).curve
    every = _blocks(rows, chain, basis)

    def counted() -> Iterator[RegressionRows]:
        for block in every():
            yield block
            advance(CORRECTING * block.s.size / (rows.n * USUAL_PASSES))

    return fit_glm(link, counted, penalty, start, done=DONE, curve=curve)[0]


def _blocks(rows: Rows, chain: _Chain, basis: Basis) -> Callable[[], Iterator[RegressionRows]]:
    """All rows in pieces; kept if they are few, else made again whenever they are asked for."""
    z, w = chain.of(rows), rows.weights_or_ones

    def block(part: slice) -> RegressionRows:
        here = tuple(column.take(part) for column in rows.columns)
        (design,) = designs((basis,), z[part], here)
        return RegressionRows(design, rows.codes[part], w[part], z[part, 0])

    def fresh() -> Iterator[RegressionRows]:
        return side_by_side(block, rows.n, len(basis))

    if rows.n * len(basis) > MAX_NUMBERS:
        return fresh
    kept = list(fresh())
    return lambda: iter(kept)


def _fitted(plan: ScaleMap | None, rows: Rows) -> ScaleMap | None:
    if plan is None:
        return None
    return type(plan)(**plan.get_params())._learn(CalibrationRows(rows))


def _in_order(chain: _Chain) -> Callable[[FloatArray], FloatArray]:
    """The map of the logits of two labels, (n,) -> (n,); of classes they are taken as they are."""

    def mapped(z: FloatArray) -> FloatArray:
        return chain.mapped(probabilities(z[:, None]))[:, 0]

    return np.asarray if chain.map is None or chain.map.classes_ else mapped


def _rows_to_tune(rows: Rows) -> int:
    return LABELS_TO_TUNE // len(rows.classes) if rows.several else TUNING_ROWS


def _moved(rows: Rows, z: FloatArray) -> Rows:
    return rows.replaced(predictions=probabilities(z))


def _centred(z: FloatArray) -> FloatArray:
    """Logits less their mean over the classes: probabilities stay, and differences can fade."""
    return z if z.shape[1] == 1 else np.asarray(z - z.mean(axis=1, keepdims=True))


def errors(gains: FloatArray, rows: Rows) -> float:
    """The weighted mean of the rows' gains, in standard errors."""
    w = rows.weights_or_ones
    mean = float(np.average(gains, weights=w))
    left = w * (gains - mean)
    if not rows.design.rows_are_independent:
        left = np.asarray(np.bincount(rows.design.drawn_together, weights=left), dtype=float)
    error = float(np.sqrt(np.square(left).sum())) / float(w.sum())
    return mean / error if error else float(np.sign(mean)) * np.inf if mean else 0.0


def side_by_side(make: Callable[[slice], Made], n: int, numbers: int = 1) -> Iterator[Made]:
    """What is made of all rows, some at a time and in order, by all threads.

    `numbers` is how many each row takes while it is made.
    """
    step = min(BLOCK_ROWS, max(BLOCK_NUMBERS // max(numbers, 1), 1))
    pieces = (slice(first, first + step) for first in range(0, n, step))
    return ordered_map(make, pieces, available_threads())


# --- corrections for those who have a guard of their own ------------------------------------------


def untested_correction(sample: Sample) -> Callable[[Points], FloatArray]:
    """Learn a correction of two labels if cross-validation says that it lowers the log loss.

    `Local` asks exact tests whether to change anything, for whoever uses its probabilities has
    nothing else. An estimate that is corrected by labels stays right whatever the correction is,
    and makes it many times; so cross-validation alone decides here, in a tenth of the time.
    """
    features = FEW_FEATURES if sample.n < MANY_ROWS else MANY_FEATURES
    settings = Local(features=features, widths=UNTESTED_WIDTHS, ridges=UNTESTED_RIDGES)
    chain = _Chain(edge_of(sample.predictions))
    with one_blas_thread():
        choice, gains, rows = settings._tuned(sample, chain, unseen)
        if errors(gains, rows) > MARGIN:
            chain = settings._corrected(sample, chain, choice, unseen)

    def corrected(points: Points) -> FloatArray:
        if not chain.corrections:
            return points.p
        return probabilities(chain.logits(points.p[:, None], points.columns))[:, 0]

    return corrected
