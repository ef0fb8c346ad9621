"""What `Local` learns of several classes: a map, then multinomial corrections in (p, x)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from itrust._core import (
    EntryShape,
    FloatArray,
    IntArray,
    ListOf,
    Maybe,
    Numbers,
    Record,
    inside,
    same_size,
    smallest_tickets,
    tickets,
    unfit,
)
from itrust.calibration import multiclass_test
from itrust.engines import one_blas_thread
from itrust.recalibrate.features import BASIS, Basis
from itrust.recalibrate.local import (
    FOLDS,
    HELD_OUT,
    MARGIN,
    MIN_ROWS,
    MIN_TO_FOLD,
    ROWS_TO_TRUST,
    STEP,
    STRICTEST,
    TESTED_ROWS,
    Choice,
    Local,
    Step,
    side_by_side,
)
from itrust.recalibrate.multiclass.one_vs_rest import WrappedMethod
from itrust.recalibrate.multiclass.rows import (
    ClassPoints,
    FittedRows,
    edge_of_classes,
    held_logs,
    probabilities,
    softened,
)
from itrust.recalibrate.multiclass.scaling import (
    RIDGES,
    ClassScaling,
    DirichletCalibration,
    MatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from itrust.recalibrate.multiclass.softmax import (
    SoftmaxRows,
    added_logits,
    class_losses,
    fit_softmax,
)
from itrust.recalibrate.saved import COUNT, EDGE, POSITIVE, SHARE
from itrust.recalibrate.support import SUPPORT, Support, faded

LABELS_TO_TUNE = 30_000  # rows times classes that settings are chosen on
MAX_NUMBERS = 2**25  # of all features of a fit: beyond that it is of random rows
FREE = 1e-8  # ridge of the intercepts
ROUGHLY = 1e-6  # gain of the mean loss that choosing settings does without
MAPS: tuple[ClassScaling | None, ...] = (  # plain ones first
    None,
    TemperatureScaling(),
    VectorScaling(),
    *(MatrixScaling((ridge,)) for ridge in RIDGES),
    *(DirichletCalibration((ridge,)) for ridge in RIDGES),
)
SCALINGS = (TemperatureScaling, VectorScaling, MatrixScaling, DirichletCalibration)


@dataclass(frozen=True, eq=False)
class ClassCorrection:
    """One local correction of the logits of all classes.

    `bases` has the features of every class, `theta` their coefficients and an intercept, (K, m+1).
    """

    bases: tuple[Basis, ...]
    theta: FloatArray
    choice: Choice

    def __call__(self, z: FloatArray, points: ClassPoints) -> FloatArray:
        """Corrected logits of rows with logits z, (n, K)."""

        def corrected(rows: slice) -> FloatArray:
            here = ClassPoints(probabilities(z[rows]), points.take(rows).columns)
            return z[rows] + added_logits(class_features(self.bases, here), self.theta)

        numbers = sum(map(len, self.bases))
        return np.concatenate([*side_by_side(corrected, len(z), numbers)])


def class_features(bases: Sequence[Basis], points: ClassPoints) -> list[FloatArray]:
    """Features of every class, K arrays (n, m)."""
    return [basis.matrix(points.one(code)) for code, basis in enumerate(bases)]


@dataclass(frozen=True, eq=False)
class ClassChain:
    """The whole recalibration: logarithms of p, mapped or as given, and corrections in turn."""

    edge: float
    map: ClassScaling | None
    corrections: tuple[ClassCorrection, ...] = ()

    def mapped(self, p: FloatArray) -> FloatArray:
        """Logits after the map."""
        return held_logs(p, self.edge) if self.map is None else self.map.logits(p)

    def logits(self, points: ClassPoints) -> FloatArray:
        """Logits after all corrections, (n, K)."""
        z = self.mapped(points.p)
        for correction in self.corrections:
            z = correction(z, points)
        return z


class _SavedMap(EntryShape):
    """A map, which is a whole recalibration by itself."""

    def read(self, value: Any, place: str) -> ClassScaling:
        """Give the map, fitted."""
        known = {method.__name__: method for method in SCALINGS}
        name = value.get("method") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in known:
            unfit(f"{place}.method", f"must be one of {', '.join(known)}")
        found: ClassScaling = known[name]._read(value, place)
        return found


CLASS_CORRECTION = Record(
    {
        "bases": ListOf(BASIS, at_least=3),
        "coefficients": ListOf(Numbers(), at_least=3),
        "choice": Record({"width": POSITIVE, "ridge": POSITIVE}),
    }
)


class LocalClasses(WrappedMethod):
    """What `Local` learns of three classes and more; its settings are those of `method`."""

    _seconds = 40.0
    _LEARNED = Record(
        {
            "edge": EDGE,
            "needed": SHARE,
            "clusters": Maybe(COUNT),
            "map": Maybe(_SavedMap()),
            "corrections": ListOf(CLASS_CORRECTION, at_most=1_000),
            "supports": ListOf(SUPPORT, at_least=3),
            "steps": ListOf(STEP, at_least=1),
        }
    )
    method: Local

    def _fit_classes(self, rows: FittedRows) -> None:
        method = self.method
        self.edge_, self.clusters_ = edge_of_classes(rows.p), rows.carrier.clusters
        self.needed_ = min(method.alpha, max(rows.units / ROWS_TO_TRUST, STRICTEST))
        first = self._first_pvalue(rows)
        self.steps_: tuple[Step, ...] = (Step("as given", None, first, True),)
        chain = ClassChain(self.edge_, None)
        if first <= self.needed_:
            with one_blas_thread():  # many small products: threads would wait for each other
                choices = self._choices(rows)
                chain = ClassChain(self.edge_, self._map(rows))
                for choice in choices:
                    chain = self._corrected(rows, chain, choice)
        self.monotone_, self.corrections_ = chain.map, chain.corrections
        some = few_rows(rows, TESTED_ROWS)
        self.supports_ = tuple(
            Support.of(rows.points.one(k), some.points.one(k), self.edge_, np.asarray)
            for k in range(len(rows.classes))
        )

    def _first_pvalue(self, rows: FittedRows) -> float:
        """Of the predictions as given."""
        enough = math.ceil(1 / self.needed_) - 1  # fewer draws give no p-value so small
        found = 1.0
        for draws in sorted({self.method.draws, max(self.method.draws, enough)}):
            found = self._pvalue(rows, softened(rows.p, self.edge_), draws)
            if found > max(self.method.alpha, 1 / (draws + 1)):
                break  # far from what is needed: more draws would only cost time
        return found

    def _pvalue(self, rows: FittedRows, p: FloatArray, draws: int) -> float:
        chosen = smallest_tickets(tickets(0, rows.n), TESTED_ROWS)
        some = rows.take(chosen).told(p[chosen])
        return float(multiclass_test(some, draws=draws, rng=self.method.rng).pvalue)

    def _map(self, rows: FittedRows) -> ClassScaling | None:
        """The plainest map that no other beats by a standard error; None: as given."""
        some = few_rows(rows, LABELS_TO_TUNE // len(rows.classes))
        if some.units < MIN_TO_FOLD:
            return None
        fold, losses = some.folds(self.method.rng, FOLDS), np.zeros((len(MAPS), some.n))
        for held in np.unique(fold):
            out = np.flatnonzero(fold == held)
            learn = some.take(np.flatnonzero(fold != held))
            if learn.has_one_class:
                return None
            for own, plan in zip(losses, MAPS, strict=True):
                chain = ClassChain(self.edge_, _fitted(plan, learn))
                own[out] = class_losses(some.codes[out], chain.mapped(some.p[out]))
        best = 0
        for number in range(1, len(MAPS)):
            if some.errors(losses[best] - losses[number]) > MARGIN:
                best = number
        return _fitted(MAPS[best], rows)

    def _choices(self, rows: FittedRows) -> list[Choice]:
        """Corrections that calibration rows ask for; adds to `steps_`."""
        method = self.method
        if rows.units < MIN_ROWS:
            return []
        learn, judge = rows.split((1 - HELD_OUT, HELD_OUT), method.rng)
        if learn.has_one_class:
            return []
        chain = ClassChain(self.edge_, self._map(learn))
        name = "as given" if chain.map is None else type(chain.map).__name__
        pvalue = self._judged(judge, chain)
        steps = [Step(f"map ({name})", None, pvalue, True)]
        choices: list[Choice] = []
        while len(choices) < method.rounds and (not choices or pvalue <= method.alpha):
            choice, gains, some = self._tuned(learn, chain)
            gain = some.mean(gains)
            if some.errors(gains) <= MARGIN:
                steps.append(Step(f"local {len(choices) + 1}", gain, None, False))
                break
            chain = self._corrected(learn, chain, choice)
            choices.append(choice)
            pvalue = self._judged(judge, chain)
            steps.append(Step(f"local {len(choices)}", gain, pvalue, True))
        self.steps_ += tuple(steps)
        return choices

    def _judged(self, rows: FittedRows, chain: ClassChain) -> float:
        return self._pvalue(rows, probabilities(chain.logits(rows.points)), self.method.draws)

    def _tuned(self, rows: FittedRows, chain: ClassChain) -> tuple[Choice, FloatArray, FittedRows]:
        """Width and ridge with the least log loss on other folds; gains of rows, and the rows."""
        method = self.method
        some = few_rows(rows, LABELS_TO_TUNE // len(rows.classes))
        z, fold = chain.logits(some.points), some.folds(method.rng, FOLDS)
        before = class_losses(some.codes, z)
        best = (np.inf, Choice(method.widths[0], max(method.ridges)), before)
        for width in method.widths:
            points = ClassPoints(probabilities(z), some.carrier.columns)
            features = class_features(self._bases(points, width), points)
            for ridge, told in _crossed(features, some, z, fold, method.ridges):
                losses = class_losses(some.codes, told)
                total = float(some.w @ losses)
                if total < best[0]:
                    best = (total, Choice(width, ridge), losses)
        _, choice, losses = best
        return choice, before - losses, some

    def _bases(self, points: ClassPoints, width: float) -> tuple[Basis, ...]:
        features = self.method.features
        return tuple(Basis.of(points.one(k), width, features) for k in range(points.p.shape[1]))

    def _corrected(self, rows: FittedRows, chain: ClassChain, choice: Choice) -> ClassChain:
        """The chain with one more correction."""
        rows = few_rows(rows, MAX_NUMBERS // (self.method.features * len(rows.classes)))
        z = chain.logits(rows.points)
        points = ClassPoints(probabilities(z), rows.carrier.columns)
        bases = self._bases(points, choice.width)
        problem = SoftmaxRows(class_features(bases, points), rows.codes, z, rows.w)
        theta = fit_softmax(problem, _penalty(problem, choice.ridge), done=ROUGHLY / 100)
        added = ClassCorrection(bases, theta, choice)
        return ClassChain(chain.edge, chain.map, (*chain.corrections, added))

    @property
    def unchanged_(self) -> bool:
        """bool: Whether nothing was kept, and predictions but those of 0 stay as given."""
        return self.monotone_ is None and not self.corrections_

    def _predict_classes(self, points: ClassPoints) -> FloatArray:
        soft = softened(points.p, self.edge_)
        if self.unchanged_:
            return soft
        given = np.log(soft)
        far = self._distances(points)
        chain = ClassChain(self.edge_, self.monotone_, self.corrections_)
        moved = _centred(chain.mapped(soft))
        corrected = _centred(chain.logits(ClassPoints(soft, points.columns)))
        # The map reaches farther than corrections; both fade by the class that is farthest out.
        mapped = faded(far.max(axis=1, keepdims=True) - 1)
        z = _centred(given)
        z = z + mapped * (moved - z) + faded(far) * (corrected - moved)
        # Not surer than the model was, nor than so many rows can tell.
        least = np.minimum(soft, 0.5 / self.n_rows_)
        told = np.maximum(probabilities(z), least)
        return np.asarray(told / told.sum(axis=1, keepdims=True))

    def _distances(self, points: ClassPoints) -> FloatArray:
        """How far rows lie from the calibration rows in each class, (n, K)."""

        def some(rows: slice) -> FloatArray:
            here = points.take(rows)
            own = [s.distance(here.one(k), self.edge_) for k, s in enumerate(self.supports_)]
            return np.column_stack(own)

        numbers = self.supports_[0].means.size
        return np.concatenate([*side_by_side(some, len(points), numbers)])

    def _class_distance(self, points: ClassPoints) -> FloatArray:
        return np.asarray(self._distances(points).max(axis=1))

    def _learned(self) -> dict[str, Any]:
        return {
            "edge": self.edge_,
            "needed": self.needed_,
            "clusters": self.clusters_,
            "map": None if self.monotone_ is None else self.monotone_.to_dict(),
            "corrections": [
                {
                    "bases": [basis.to_dict() for basis in correction.bases],
                    "coefficients": correction.theta,
                    "choice": asdict(correction.choice),
                }
                for correction in self.corrections_
            ],
            "supports": [support.to_dict() for support in self.supports_],
            "steps": [asdict(step) for step in self.steps_],
        }

    def _restore(self, learned: dict[str, Any]) -> None:
        size = len(self.classes_)
        self.edge_, self.needed_ = learned["edge"], learned["needed"]
        self.clusters_, self.monotone_ = learned["clusters"], learned["map"]
        if self.monotone_ is not None and self.monotone_.classes_ != self.classes_:
            unfit("learned.map.classes", "must be the classes of the file")
        self.corrections_ = tuple(
            self._correction(facts, inside("learned.corrections", at))
            for at, facts in enumerate(learned["corrections"])
        )
        same_size("learned.supports", len(learned["supports"]), "classes", size)
        self.supports_ = tuple(
            Support.read(facts, inside("learned.supports", at), self.columns_)
            for at, facts in enumerate(learned["supports"])
        )
        self.steps_ = tuple(Step(**step) for step in learned["steps"])

    def _correction(self, facts: dict[str, Any], place: str) -> ClassCorrection:
        """A correction as a file tells it."""
        size = len(self.classes_)
        same_size(f"{place}.bases", len(facts["bases"]), "classes", size)
        same_size(f"{place}.coefficients", len(facts["coefficients"]), "classes", size)
        bases = tuple(
            Basis.read(own, inside(f"{place}.bases", at), self.columns_)
            for at, own in enumerate(facts["bases"])
        )
        for at, (basis, own) in enumerate(zip(bases, facts["coefficients"], strict=True)):
            where = inside(f"{place}.coefficients", at)
            same_size(where, own.size, "its terms and one more", len(basis) + 1)
        if len({len(basis) for basis in bases}) > 1:
            unfit(f"{place}.bases", "must have equally many terms for every class")
        return ClassCorrection(bases, np.array(facts["coefficients"]), Choice(**facts["choice"]))


def few_rows(rows: FittedRows, most: int) -> FittedRows:
    """Random rows, at most so many, always the same ones."""
    if rows.n <= most:
        return rows
    return rows.take(smallest_tickets(tickets(0, rows.n), most))


def _centred(z: FloatArray) -> FloatArray:
    """Logits less their mean over the classes: probabilities stay, and differences can fade."""
    return np.asarray(z - z.mean(axis=1, keepdims=True))


def _fitted(plan: ClassScaling | None, rows: FittedRows) -> ClassScaling | None:
    if plan is None:
        return None
    return type(plan)(**plan.get_params())._learn_classes(rows)


def _penalty(problem: SoftmaxRows, ridge: float) -> FloatArray:
    found = np.full((len(problem.features), problem.features[0].shape[1] + 1), ridge)
    found[:, -1] = FREE
    return found


def _crossed(
    features: Sequence[FloatArray],
    rows: FittedRows,
    z: FloatArray,
    fold: IntArray,
    ridges: Sequence[float],
) -> Iterator[tuple[float, FloatArray]]:
    """Each ridge, from the largest, and logits of rows by fits that did not see their fold."""
    found = {ridge: np.empty(z.shape) for ridge in sorted(ridges, reverse=True)}
    for held in np.unique(fold):
        out = fold == held
        own = [f[~out] for f in features]
        problem = SoftmaxRows(own, rows.codes[~out], z[~out], rows.w[~out])
        away = [f[out] for f in features]
        start: FloatArray | None = None
        for ridge, told in found.items():
            start = fit_softmax(problem, _penalty(problem, ridge), start, done=ROUGHLY)
            told[out] = z[out] + added_logits(away, start)
    return iter(found.items())
