"""An audit as it may be shown: noise of the sets of rows, and nothing of sets of few rows.

One walk through the values of an audit. Whatever is about a set of rows has a method here, which
takes the noise of that set (`data/disclosure.py`); all else is walked through as it is. The same
function serves every outcome: two labels, each of several classes, the largest of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property, singledispatchmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from itrust import calibration
from itrust._core import BoolArray, WithFacts
from itrust.auditing import charts
from itrust.auditing.comparison import SCORE_NAMES, Comparison, Difference, ModelReport
from itrust.auditing.pairs import ClassMatrix, PairBias, PairGroup
from itrust.auditing.parts import GroupPower, MeanBias, OutcomePart, Overall
from itrust.auditing.verdict import ClassEvidence, ImpossibleLabels, Overlooked
from itrust.balance import Resemblance
from itrust.bias import GroupBias, LocalBias, PartBias
from itrust.data import (
    LABELS,
    PREDICTION,
    PREDICTIONS,
    Cell,
    CellKeys,
    Compared,
    Everywhere,
    Level,
    OneOf,
    Points,
    Predicate,
    Rows,
    short,
    short_pvalue,
)
from itrust.kernels import LocalKernel
from itrust.nulls import Null
from itrust.overturn import NumberRobustness
from itrust.recalibrate import Recalibration
from itrust.tasks import ShownNumbers, Task, TaskResult

if TYPE_CHECKING:
    from itrust.auditing.audits import Audit

OPAQUE = (Rows, Points, Predicate, Task, LocalKernel, Null, calibration.Dictionary, LocalBias)
NOTES = frozenset({"notes", "assumption_warnings", "warnings"})
SCORES = frozenset({"accuracy", "brier", "log_loss", "ece", "smooth_ece"})
COUNTS = frozenset({"impossible", "certain", "contrary", "outside", "at_edge"})
NUMBERS = SCORES | COUNTS | {"mce", "statistic", "hoeffding_bound"}
HIDDEN = object()  # in place of what is not shown
FEW = "(few rows)"  # in place of the name of a level
NOT_TOLD = -1  # a number of rows that is withheld; null in JSON


@dataclass(frozen=True)
class Withheld(WithFacts):
    """What disclosure control did to an audit.

    Attributes
    ----------
    min_cell : int
        Rows that have to stand behind what is shown; whatever is shown carries the noise of cell
        keys.
    seed : int or None
        Of the noise; None: made of the labels and predictions.
    total : int
        How many entries are not shown, because they rest on fewer rows.
    findings, tasks : int
        Of them, findings of the test and numbers of the user.
    shown : int
        Of the groups and slices among them, those that are shown to be miscalibrated.
    """

    min_cell: int
    seed: int | None = field(repr=False)
    total: int
    findings: int
    tasks: int
    shown: int
    _untold = ("seed",)


def disclosed(audit: Audit, min_cell: int, seed: int | None = None) -> Audit:
    """An audit as it may be shown; once it was, never with less care."""
    whole = audit if audit.whole is None else audit.whole
    if audit.withheld is not None:
        min_cell = max(min_cell, audit.withheld.min_cell)
        seed = audit.withheld.seed if seed is None else seed
    keys = CellKeys.of(whole.sample, min_cell, whole.n, seed)
    walk = _Walk(whole, keys)
    shown: Audit = walk.walked(whole, "sample", "provenance", "whole", "withheld")
    gone = walk.gone
    withheld = Withheld(
        min_cell,
        seed,
        total=len(gone),
        findings=sum(isinstance(own, calibration.Finding) for own in gone),
        tasks=sum(task.withheld is not None for task in shown.tasks),
        shown=sum(
            isinstance(own, PartBias) and any(own in part.diagnosis.shown for part in whole.parts)
            for own in gone
        ),
    )
    return replace(shown, withheld=withheld, whole=whole)


@dataclass(frozen=True, eq=False)
class _Walk:
    """What of an audit is shown, about one outcome."""

    audit: Audit
    keys: CellKeys
    outcome: Any = ""  # which rates these are: "" of two labels, the place of a class, or "top"
    seen: dict[int, Any] = field(default_factory=dict)
    cells: dict[Any, Cell] = field(default_factory=dict)
    gone: list[Any] = field(default_factory=list)

    def __call__(self, own: Any) -> Any:
        """A value as it is shown; the same object is always shown alike."""
        if not is_dataclass(own):
            return self._shown(own)
        if id(own) not in self.seen:
            shown = self.seen[id(own)] = self._shown(own)
            if shown is HIDDEN or (isinstance(shown, TaskResult) and shown.withheld):
                self.gone.append(own)
        return self.seen[id(own)]

    def of(self, outcome: Any) -> _Walk:
        """The same about another outcome."""
        return replace(self, outcome=outcome)

    def of_class(self, name: Any) -> _Walk:
        """The same about a class; of two labels, and of all classes together, nothing changes."""
        classes = self.audit.classes
        return self.of(classes.index(name)) if name in classes else self

    def walked(self, own: Any, /, *kept: str, **changes: Any) -> Any:
        """A value with all its fields as they are shown, but those that are given or kept."""
        for part in fields(own):
            value = getattr(own, part.name)
            if part.name in changes or part.name in kept or not part.init:
                continue
            if part.name in NOTES:
                shown: Any = tuple(note for note in value if not self.numbers.rare.search(note))
            elif part.name in NUMBERS and value is not None:
                shown = self.number(part.name, value)
            else:
                shown = self(value)
            if shown is not value:
                changes[part.name] = None if shown is HIDDEN else shown
        return replace(own, **changes) if changes else own

    def number(self, name: str, value: float) -> float:
        """A score over all rows, a statistic or a count, wherever it stands."""
        if name in COUNTS:
            return self.set_of(value, name).count if value else 0
        if name in SCORES:
            return self.everyone.score(value, f"{name} {self.outcome}")
        # The largest calibration error may be that of a bin of few rows.
        return math.nan if name == "mce" else short(value)

    def set_of(self, rows: float, *content: object) -> Cell:
        """A set whose rows are not at hand; the key of all rows keeps its noise secret."""
        return Cell.of(rows, self.everyone.key, *content)

    @property
    def least(self) -> int:
        """Fewest rows of a set that is shown."""
        return self.keys.min_cell

    def is_few(self, name: Any) -> bool:
        """Whether few rows have a class; not asked of two labels."""
        classes = self.audit.classes
        return name in classes and self.labelled(classes.index(name)).rows < self.least

    def labelled(self, code: int) -> Cell:
        """The rows of a class, or of label 1."""
        return self.keys.cell(np.asarray(self.audit.sample.codes == code))

    @cached_property
    def everyone(self) -> Cell:
        """All rows."""
        return self.keys.cell(np.ones(self.audit.sample.n, dtype=bool), self.audit.n)

    @cached_property
    def numbers(self) -> ShownNumbers:
        """The user's numbers."""
        return ShownNumbers(self.audit.sample, self.keys)

    def inside(self, where: Predicate) -> BoolArray:
        """The rows at hand that are meant; a prediction is that of the outcome."""
        sample = self.audit.sample
        if sample.several and isinstance(self.outcome, int):
            sample = sample.outcome(self.outcome)
        return np.asarray(where.rows(sample.points))

    def cell(self, where: Predicate, rows: float | None = None) -> Cell:
        """The set of rows that is meant."""
        key = where, rows, self.outcome if PREDICTION in where.names else None
        if key not in self.cells:
            self.cells[key] = self.keys.cell(self.inside(where), rows)
        return self.cells[key]

    def few(self, where: Predicate | None, rows: float | None = None) -> bool:
        """Whether rows, or a level that names them, are few."""
        if where is None or isinstance(where, Everywhere):
            return False
        least = self.least
        for leaf in where.leaves():
            named: list[Predicate] = [leaf]
            if isinstance(leaf, OneOf):
                named = [Level(leaf.name, level) for level in leaf.levels]
            if any(self.cell(own, rows if own == where else None).rows < least for own in named):
                return True
            if isinstance(leaf, Compared) and 0 < self.cell(~leaf).rows < least:
                return True
        return self.cell(where, rows).rows < least

    def chance(self, pvalue: Any) -> Any:
        """A p-value of a part, if there is one."""
        return None if pvalue is None else short_pvalue(pvalue, self.audit.alpha)

    @singledispatchmethod
    def _shown(self, own: Any) -> Any:
        if isinstance(own, (*OPAQUE, type)):
            return own
        if isinstance(own, tuple):
            shown = [self(part) for part in own]
            if all(part is other for part, other in zip(own, shown, strict=True)):
                return own
            kind: Any = type(own) if isinstance(own, calibration.ValidationTable) else tuple
            return kind(part for part in shown if part is not HIDDEN)
        if isinstance(own, Mapping):
            return {name: self(part) for name, part in own.items()}
        return self.walked(own) if is_dataclass(own) else own

    @_shown.register(PartBias)
    def _(self, own: PartBias) -> Any:
        if self.few(own.where, own.rows):
            return HIDDEN
        cell = self.cell(own.where, own.rows)
        ratio = cell.count / cell.rows
        changes: dict[str, Any] = {"rows": cell.count, "share": min(own.share * ratio, 1.0)}
        if isinstance(own, GroupBias):
            changes["size"] = own.size * ratio
        return replace(
            own,
            **changes,
            **self._biased(own, cell),
            stderr=cell.score(own.stderr, "stderr"),
            unadjusted_pvalue=self.chance(own.unadjusted_pvalue),
            pvalue=self.chance(own.pvalue),
        )

    @_shown.register(MeanBias)
    def _(self, own: MeanBias) -> Any:
        return replace(own, **self._biased(own, self.everyone), pvalue=self.chance(own.pvalue))

    def _biased(self, own: Any, cell: Cell) -> dict[str, Any]:
        """Rate, mean prediction and the interval of their difference."""
        observed = cell.rate(own.observed, self.outcome)
        predicted = cell.predicted(own.predicted, self.outcome)
        exact, marks = (own.bias, own.lower, own.upper), [self.audit.tolerance]
        lower, upper = cell.interval(exact, observed - predicted, marks=marks, what=self.outcome)
        return {"observed": observed, "predicted": predicted, "lower": lower, "upper": upper}

    @_shown.register(calibration.ReliabilityCurve)
    def _(self, own: calibration.ReliabilityCurve) -> Any:
        bins = []
        for values in zip(*vars(own).values(), strict=True):
            one = dict(zip(vars(own), map(float, values), strict=True))
            if one["rows"] < self.least:
                self.gone.append(one)
                continue
            cell = self.set_of(one["rows"], one["predicted"], one["observed"])
            rate = cell.rate(one["observed"], self.outcome)
            exact = one["observed"], one["lower"], one["upper"]
            lower, upper = cell.interval(exact, rate, marks=[1.0])
            one |= {"observed": rate, "lower": lower, "upper": upper, "rows": cell.count}
            one["predicted"] = cell.predicted(one["predicted"], self.outcome)
            one["share"] *= cell.count / cell.rows
            bins.append(one)
        arrays = {
            name: np.array([one[name] for one in bins], dtype=part.dtype)
            for name, part in vars(own).items()
        }
        return calibration.ReliabilityCurve(**arrays)

    @_shown.register(Overall)
    def _(self, own: Overall) -> Any:
        return (self.of("top") if self.audit.classes else self).walked(own)

    @_shown.register(OutcomePart)
    def _(self, own: OutcomePart) -> Any:
        walk = self.of_class(own.name)
        if not self.is_few(own.name):
            code = walk.outcome if self.audit.classes else 1
            return walk.walked(own, rows=self.labelled(code).count)
        self.gone.append(own)
        told, diagnosis = math.nan, own.diagnosis
        groups = diagnosis.groups and replace(diagnosis.groups, groups=())
        slices = replace(diagnosis.slices, slices=())
        nothing = {name: part[:0] for name, part in vars(own.curve).items()}
        return replace(
            own,
            rows=None,
            mean=replace(walk(own.mean), observed=told, lower=told, upper=told, pvalue=told),
            ece=told,
            curve=calibration.ReliabilityCurve(**nothing),
            test=walk(own.test),
            diagnosis=replace(diagnosis, groups=groups, slices=slices),
        )

    @_shown.register(ImpossibleLabels)
    def _(self, own: ImpossibleLabels) -> Any:
        return ImpossibleLabels(int(self.number("impossible", own.count)))

    @_shown.register(charts.NullChart)
    def _(self, own: charts.NullChart) -> Any:
        return replace(own, observed=short(own.observed))

    @_shown.register(calibration.ClassResult)
    def _(self, own: calibration.ClassResult) -> Any:
        walk, rows = self.of_class(own.name), own.positives
        if own.name in self.audit.classes:
            rows = NOT_TOLD if self.is_few(own.name) else self.labelled(walk.outcome).count
        return walk.walked(own, positives=rows)

    @_shown.register(calibration.Finding)
    def _(self, own: calibration.Finding) -> Any:
        if self.few(own.where):
            return HIDDEN
        sides = {name: getattr(own, name) for name in ("too_low", "too_high")}
        alike = tuple(name for name in own.alike if not self.numbers.rare.search(name))
        told: dict[str, Any] = {n: None if self.few(where) else where for n, where in sides.items()}
        return replace(own, alike=alike, score=short(own.score), **told)

    @_shown.register(calibration.TakenFor)
    def _(self, own: calibration.TakenFor) -> Any:
        if self.few(own.where) or self.is_few(own.actual) or self.is_few(own.predicted):
            return HIDDEN
        what = f"{own.predicted} for {own.actual}"
        moved = self.cell(own.where).score(own.moved, what)
        return replace(own, moved=moved, score=short(own.score))

    @_shown.register(calibration.RegionPower)
    @_shown.register(GroupPower)
    @_shown.register(Overlooked)
    def _(self, own: Any) -> Any:
        if own.where is None or isinstance(own.where, Everywhere):
            return own
        if self.few(own.where, own.share * self.audit.n):
            nowhere = {"where": None, "share": short(own.share, 1)}
            return HIDDEN if isinstance(own, calibration.RegionPower) else replace(own, **nowhere)
        cell = self.cell(own.where, own.share * self.audit.n)
        return replace(own, share=min(own.share * cell.count / max(cell.rows, 1), 1.0))

    @_shown.register(TaskResult)
    def _(self, own: TaskResult) -> Any:
        return self.numbers.result(own, str(self.outcome))

    @_shown.register(NumberRobustness)
    def _(self, own: NumberRobustness) -> Any:
        task = next(self(result) for result in self.audit.tasks if result.task == own.task)
        if task.withheld is not None:
            return own.without_values(task.withheld)
        low, high = task.lower - own.lower, task.upper - own.upper
        tippings = tuple(
            replace(tipping, lower=tipping.lower + low, upper=tipping.upper + high)
            for tipping in own.tippings
        )
        flips = own.flips
        if flips is not None:
            noise = self.set_of(flips.at_most, own.task).count - flips.at_most
            counts = {name: max(n + noise, 1) if n else 0 for name, n in vars(flips).items()}
            flips = replace(flips, **counts)
        ends = {"bias": task.bias, "lower": task.lower, "upper": task.upper}
        return replace(own, **ends, tippings=tippings, flips=flips)

    @_shown.register(Comparison)
    def _(self, own: Comparison) -> Any:
        models = self(own.models)
        known = [{model.name: model for model in some} for some in (own.models, models)]
        shown = (self._difference(part, *known) for part in own.differences)
        return replace(own, models=models, differences=tuple(d for d in shown if d is not None))

    def _difference(self, own: Difference, *models: Mapping[str, ModelReport]) -> Difference | None:
        """A difference of two models, moved as these are."""
        before, after = (
            _told_of(told[own.first], own) - _told_of(told[own.second], own) for told in models
        )
        if own.task is not None and math.isnan(after):
            return None
        moved = own.value + after - before
        cell, exact = self.everyone, (own.value, own.lower, own.upper)
        slack = max(cell.reach, abs(after - before)) if math.isfinite(moved) else 0.0
        what = f"{own.what} {own.first} {own.second}"
        lower, upper = cell.interval(exact, moved, slack=slack, what=what)
        return replace(own, value=moved, lower=lower, upper=upper)

    @_shown.register(ModelReport)
    def _(self, own: ModelReport) -> Any:
        is_own = own.test.statistic == self.audit.test.statistic  # told as the audit tells it
        return (self if is_own else self.of(own.name)).walked(own)

    @_shown.register(Recalibration)
    def _(self, own: Recalibration) -> Any:
        few = {n: 0 for n in ("outside", "at_edge") if getattr(own, n) < self.least}
        return self.of(own.name).walked(own, "fitted", **few)

    @_shown.register(Resemblance)
    def _(self, own: Resemblance) -> Any:
        told = own.disclosed(self.least, self.everyone.key)
        return self.walked(told, "differences", "compared")

    @_shown.register(ClassMatrix)
    def _(self, own: ClassMatrix) -> Any:
        given, rows = own.given.copy(), own.rows.copy()
        for code in range(len(own.classes)):
            cell = self.labelled(code)
            few = cell.rows < self.least
            rows[code] = NOT_TOLD if few else cell.count
            for other, value in enumerate(map(float, own.given[code])):
                given[code, other] = math.nan if few else cell.predicted(value, f"given {other}")
        return self.walked(own, given=given, rows=rows)

    @_shown.register(PairBias)
    def _(self, own: PairBias) -> Any:
        classes = self.audit.classes
        if self.is_few(own.label):
            return HIDDEN
        cell, other = self.labelled(classes.index(own.label)), classes.index(own.taken_for)
        given = cell.predicted(own.given, f"given {other}")
        exact, what = (own.bias, own.lower, own.upper), f"given {other}"
        lower, upper = cell.interval(exact, given - own.expected, what=what)
        pvalue = self.chance(own.pvalue)
        return replace(own, rows=cell.count, given=given, lower=lower, upper=upper, pvalue=pvalue)

    @_shown.register(PairGroup)
    def _(self, own: PairGroup) -> Any:
        shown: list[Any] = []
        for name in (own.label, own.taken_for):
            walk, groups = self.of_class(name), self.audit[name].diagnosis.groups or ()
            shown += [walk(group) for group in groups if group.where == own.where]
        few = self.is_few(own.label) or self.is_few(own.taken_for)
        if few or HIDDEN in shown or len(shown) < 2:
            return HIDDEN
        low, high = shown
        return replace(
            own,
            rows=low.rows,
            too_high=-high.bias,
            too_low=low.bias,
            at_least=min(-high.at_least, low.at_least),
            pvalue=max(high.pvalue, low.pvalue),
        )

    @_shown.register(ClassEvidence)
    def _(self, own: ClassEvidence) -> Any:
        item, by_test = self.of_class(own.name)(own.item), isinstance(own.item, calibration.Finding)
        if item is HIDDEN or (self.is_few(own.name) and not by_test):
            return HIDDEN
        return replace(own, item=item)

    @_shown.register(calibration.ValidationStatistic)
    def _(self, own: calibration.ValidationStatistic) -> Any:
        if own.value is None:
            return own
        value = self.everyone.score(own.value, own.name)
        ends: dict[str, Any] = {"lower": own.lower, "upper": own.upper}
        if own.lower is not None and own.upper is not None:
            exact = own.value, own.lower, own.upper
            told = self.everyone.interval(exact, value, marks=[1.0], what=own.name)
            ends = {name: _short_beside(end, 1.0) for name, end in zip(ends, told, strict=True)}
        pvalues = {name: self.chance(getattr(own, name)) for name in ("pvalue", "exact_pvalue")}
        return replace(own, value=value, **ends, **pvalues)

    @_shown.register(calibration.Validation)
    def _(self, own: calibration.Validation) -> Any:
        counts = {name: getattr(own, name) for name in ("certain", "contrary")}
        few = {name: None for name, k in counts.items() if k and k < self.least}
        return self.walked(own, events=self.labelled(1).count, **few)

    @_shown.register(calibration.Grade)
    def _(self, own: calibration.Grade) -> Any:
        if own.rows < self.least:
            return HIDDEN
        inside = self._graded(own.name)
        if inside is None:
            cell = self.set_of(own.rows, own.predicted, own.observed)
        else:  # the same rows may be a group
            cell = self.keys.cell(inside, own.rows)
        observed = cell.rate(own.observed)
        pvalues: dict[str, Any] = {
            name: self.chance(value)
            for name, value in vars(own).items()
            if isinstance(value, float) and name not in ("predicted", "observed")
        }
        predicted, events = cell.predicted(own.predicted), round(observed * cell.count)
        numbers: dict[str, Any] = {"rows": cell.count, "observed": observed, "predicted": predicted}
        return replace(own, **numbers, events=events, **pvalues)

    def _graded(self, name: str) -> BoolArray | None:
        """The rows at hand with a grade, where grades are levels of a covariate."""
        graded = self.audit.validation and self.audit.validation.graded_by
        for column in self.audit.sample.columns:
            for value in np.unique(column.values) if column.name == graded else ():
                if calibration.grade_name(column, value) == name:
                    same = column.missing if value != value else column.values == value
                    return np.asarray(same)
        return None

    @_shown.register(calibration.DecisionPoint)
    def _(self, own: calibration.DecisionPoint) -> Any:
        rate, acted = self.everyone.rate(own.rate), own.true_positives + own.false_positives
        if own.rows < self.least or not acted:
            return replace(own, true_positives=0.0, false_positives=0.0, rate=rate, rows=0)
        cell = self.set_of(own.rows, own.true_positives, own.false_positives)
        right = cell.rate(own.true_positives / acted)
        acted *= cell.count / cell.rows
        true, false = right * acted, (1 - right) * acted
        told = {"true_positives": true, "false_positives": false}
        return replace(own, **told, rate=rate, rows=cell.count)

    @_shown.register(charts.HistogramChart)
    def _(self, own: charts.HistogramChart) -> Any:
        p, ends = self.audit.sample.p, np.array(own.edges)
        bars = np.clip(np.searchsorted(ends, p, side="right") - 1, 0, len(own.counts) - 1)
        cells = [self.keys.cell(bars == k, rows) for k, rows in enumerate(own.counts)]
        return replace(own, counts=tuple(c.count if c.rows >= self.least else 0 for c in cells))

    @_shown.register(charts.ReliabilityLine)
    def _(self, own: charts.ReliabilityLine) -> Any:
        if self.few(own.where, own.rows):
            return HIDDEN
        return replace(own, rows=self.cell(own.where, own.rows).count, curve=self(own.curve))

    @_shown.register(charts.CurveChart)
    def _(self, own: charts.CurveChart) -> Any:
        parts = [self._line(own.name, part) for part in own.parts]
        shown = tuple(part for part in parts if part is not None)
        self.gone.extend(part for part, told in zip(own.parts, parts, strict=True) if told is None)
        return replace(own, parts=shown) if shown else HIDDEN

    def _line(self, name: str, own: charts.CurveLine) -> charts.CurveLine | None:
        if self.few(own.where, own.rows):
            return None
        cell = self.cell(own.where, own.rows)
        shown = self._points(own, [(f"{cell.key} {name} {at}", None) for at in own.at])
        known = any(value is not None for value in shown.bias)
        return replace(shown, rows=cell.count) if known else None

    @_shown.register(charts.MapChart)
    def _(self, own: charts.MapChart) -> Any:
        across, up = self._side(own.across), self._side(own.up)
        pairs = [(i, j) for i in range(len(up.at)) for j in range(len(across.at))]
        few = [FEW in (up.at[i], across.at[j]) for i, j in pairs]
        bias = tuple(None if gone else own.bias[k] for k, gone in enumerate(few))
        levels = bool(own.across.where and own.up.where)
        places = [
            (
                f"{across.name} {across.at[j]} {up.name} {up.at[i]}",
                own.across.where[j] & own.up.where[i] if levels else None,
            )
            for i, j in pairs
        ]
        return self._points(replace(own, across=across, up=up, bias=bias), places)

    def _side(self, own: charts.MapSide) -> charts.MapSide:
        """An axis without the names of levels that few rows have."""
        gone = [k for k, where in enumerate(own.where) if self.few(where)]
        self.gone.extend(own.where[k] for k in gone)
        return replace(own, at=tuple(FEW if k in gone else at for k, at in enumerate(own.at)))

    def _points(self, own: Any, places: list[tuple[str, Predicate | None]]) -> Any:
        """Points of a curve or cells of a map, each with the noise of the rows near it."""
        names = [n for n in vars(own) if n in POINTWISE]
        told: list[dict[str, Any]] = []
        for k, (place, where) in enumerate(places):
            one = {name: getattr(own, name)[k] for name in names}
            near = one["neighbours"] or 0.0
            if one["bias"] is not None and near < self.least:
                self.gone.append(place)
            if one["bias"] is None or near < self.least:
                one = dict.fromkeys(names)
            else:
                one |= self._point(one, self.set_of(near, place), where)
            told.append(one)
        shown = {name: tuple(one[name] for one in told) for name in names}
        pairs = zip(own.flagged, shown["bias"], strict=False)
        flagged = tuple(bool(flag) and bias is not None for flag, bias in pairs)
        return replace(own, **shown, flagged=flagged)

    def _point(self, one: dict[str, Any], cell: Cell, where: Predicate | None) -> dict[str, Any]:
        moved = cell.moved("labels", LABELS) - cell.moved("predictions", PREDICTIONS)
        if where is not None:  # a group of two levels, told as such
            inside, sample = self.inside(where), self.audit.sample
            w, cell = sample.weights_or_ones[inside], self.cell(where)
            rate, mean = (float(np.average(v[inside], weights=w)) for v in (sample.y, sample.p))
            moved = cell.rate(rate) - rate - cell.predicted(mean) + mean
        value = one["bias"] + moved
        exact, what = tuple(one[n] for n in ("bias", "lower", "upper")), "point"
        lower, upper = cell.interval(exact, value, what=what)
        ends = {"bias": value, "lower": lower, "upper": upper}
        shown = {name: short(number, 5) for name, number in ends.items()}
        return shown | {"neighbours": cell.count, "pvalue": self.chance(one["pvalue"])}


POINTWISE = frozenset(
    {"bias", "lower", "upper", "null_lower", "null_upper", "neighbours", "pvalue"}
)


def _short_beside(value: float, mark: float) -> float:
    """A number with few digits, on the same side of a mark."""
    return next(
        (told for told in (short(value, digits) for digits in range(3, 9)) if told != mark), value
    )


def _told_of(model: ModelReport, own: Difference) -> float:
    """What a difference is of: a score, or the plug-in estimate of a task."""
    if own.task is None:
        return float(getattr(model, SCORE_NAMES[own.what]))
    return next((task.plugin for task in model.tasks if task.task == own.task), math.nan)
