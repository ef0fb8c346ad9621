"""`drift`: what changed between two audits; two fixed samples are compared, and nothing is watched.

Rows of the two audits are independent, so variances add (Welch). One family: p-values and intervals
hold for all comparisons together (Bonferroni), and a p-value is at most alpha where an interval
excludes 0 and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from itrust._core import InputError, Result, WithFacts, checked_alpha, listed
from itrust.auditing.comparison import LOSSES, SCORE_NAMES, loss_error
from itrust.bias import GroupBias
from itrust.data import Predicate, Sample, short, short_pvalue
from itrust.tasks import LabelLaw, LabelledTask, Task, Uncertainty, few_labels, prevalence

if TYPE_CHECKING:
    from itrust.auditing.audits import Audit

# Why two values have no difference that could be judged.
INFINITE = "the log loss is infinite: a label was called impossible"
WITHHELD = "an audit withholds it"
NO_ESTIMATE = "the labels of an audit give no estimate"
NO_VARIATION = "nothing says how far it may be off"


@dataclass(frozen=True, eq=False)
class Change(WithFacts):
    """One value in two audits: the second less the first.

    Attributes
    ----------
    compared : str
        What it is: "brier" or "log_loss", whatever the covariates; "predicted" or "observed", the
        mean prediction and the rate of positive labels, which change with the rows, too;
        "mean_bias", observed less predicted; "group_bias", the same in one group; "number", one of
        the user from labels; or "number_bias", its bias with probabilities in place of labels.
    first, second : float
        The value in each audit.
    stderr : float
        Standard error of the difference; NaN where there is none.
    freedom : float
        Degrees of freedom of Student's law (Welch and Satterthwaite).
    lower, upper : float
        Interval of the difference, which holds for all comparisons of the drift together.
    unadjusted_pvalue : float
        For "no change", as if this had been the only comparison.
    pvalue : float
        The same, adjusted for all comparisons: at most `alpha` of the drift where the interval
        excludes 0, and nowhere else.
    where : Predicate or None
        The rows, of a group.
    task : Task or None
        The number, of a user's own.
    few_labels : bool
        Whether fewer than ten labels carry the value in one of the audits.
    reason : str or None
        Why there is no difference; None: there is one.
    """

    compared: str
    first: float
    second: float
    stderr: float = math.nan
    freedom: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    unadjusted_pvalue: float = math.nan
    pvalue: float = math.nan
    where: Predicate | None = None
    task: Task | None = None
    few_labels: bool = False
    reason: str | None = None

    @property
    def difference(self) -> float:
        """The second less the first; NaN where they are not compared."""
        return math.nan if self.reason is not None else self.second - self.first

    @property
    def name(self) -> str:
        """Which group or number; empty for what is about all rows."""
        named = self.where if self.where is not None else self.task
        return "" if named is None else str(named)

    def _facts(self) -> dict[str, Any]:
        task = None if self.task is None else str(self.task)
        return {**vars(self), "task": task, "name": self.name, "difference": self.difference}


@dataclass(frozen=True, eq=False, repr=False)
class Drift(Result):
    """Outcome of `drift`: a comparison of two fixed samples, not a monitor.

    Attributes
    ----------
    changes : tuple of Change
        Scores and means, then groups, then the user's numbers.
    n : tuple of two int
        Rows of each audit.
    names : tuple of two str
        What the audits are called.
    alpha : float
        Error that all intervals and p-values together are allowed.
    same_model : bool
        Whether both audits are of one model.
    only_first, only_second : tuple of str
        Groups and numbers that only one of the audits shows; they are not compared.
    """

    changes: tuple[Change, ...]
    n: tuple[int, int]
    names: tuple[str, str]
    alpha: float
    same_model: bool
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[Change, ...]:
        """Changes whose interval excludes 0, the smallest p-value first."""
        found = [part for part in self.changes if part.pvalue <= self.alpha]
        return tuple(sorted(found, key=lambda part: part.pvalue))

    @property
    def comparisons(self) -> int:
        """How many differences were judged: the family that p-values are adjusted for."""
        return sum(part.reason is None for part in self.changes)

    def __repr__(self) -> str:
        return f"<Drift: {len(self.shown)} of {self.comparisons} comparisons show a change>"

    def _facts(self) -> Mapping[str, Any]:
        from itrust.render import drift_sentence

        told = self._by_name("changes", "n", "names", "alpha", "same_model", "comparisons")
        alone = self._by_name("only_first", "only_second")
        return {**told, **alone, "sentence": drift_sentence(self)}

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        rows = (part.to_dict() for part in self.changes)
        return [{key: value for key, value in row.items() if key != "where"} for row in rows]


def drift(
    first: Audit,
    second: Audit,
    *,
    names: tuple[str, str] = ("first", "second"),
    same_model: bool = True,
    alpha: float = 0.05,
) -> Drift:
    """Compare two audits of other rows: what changed, with intervals of the differences.

    Scores that have honest standard errors (Brier score and log loss), mean prediction, observed
    rate and mean bias, the bias of every group that both audits show, and the user's numbers. The
    calibration errors (ECE and the like) are not compared: they grow as rows become fewer, whatever
    the model does. Rows of the two audits must be independent: none, and no cluster, is in both.

    It compares two fixed samples and is no monitor: repeated every month it ends in a false alarm.
    `itrust.Watch` is made for that.

    Parameters
    ----------
    first, second : Audit
        Of `itrust.audit`, judged on the same covariates, of two labels. What disclosure control
        took out of one of them is not compared.
    names : two str
        What to call them, such as ("2023", "2024").
    same_model : bool
        Whether the same model made the probabilities. False: words say that model and rows may
        both have changed.
    alpha : float
        Error that all intervals and p-values together are allowed.

    Returns
    -------
    Drift
        One `Change` for each value; `print(d)`, `d.shown`, `d.to_dict()`.

    Examples
    --------
    >>> import itrust as it
    >>> settings = {"draws": 199, "rng": 0, "charts": False}
    >>> old = it.audit(it.simulate.survey(3_000, rng=0, trustworthy=True).sample, **settings)
    >>> new = it.audit(it.simulate.survey(3_000, rng=1).sample, **settings)
    >>> d = it.drift(old, new, names=("spring", "autumn"))
    >>> d
    <Drift: 2 of 8 comparisons show a change>
    """
    alpha = checked_alpha(alpha)
    _refuse_unlike(first, second)
    called = _checked_names(names)
    if not isinstance(same_model, bool):
        raise InputError(
            "{argument} must be True or False, not {value}", argument="same_model", value=same_model
        )
    sides = first, second
    changes = [*_overall(*sides), *_groups(*sides), *_numbers(*sides)]
    alone = [_names_of(one) - _names_of(other) for one, other in ((first, second), (second, first))]
    family = sum(part.reason is None for part in changes)
    adjusted = [_adjusted(part, alpha, family) for part in changes]
    if any(audit.withheld is not None for audit in sides):
        adjusted = [_about(part, alpha) for part in adjusted]
    return Drift(
        tuple(adjusted),
        (first.n, second.n),
        called,
        alpha,
        same_model,
        *(tuple(sorted(own)) for own in alone),
    )


def _about(change: Change, alpha: float) -> Change:
    """A change in two digits: more of them would tell what disclosure control took out."""
    values = vars(change).items()
    told: dict[str, Any] = {n: short(v, 2) for n, v in values if isinstance(v, float)}
    told["second"] = told["first"] + short(change.second - change.first, 2)
    told |= {n: short_pvalue(getattr(change, n), alpha) for n in ("unadjusted_pvalue", "pvalue")}
    return replace(change, **told)


def _refuse_unlike(first: Audit, second: Audit) -> None:
    """Raise unless both are audits of two labels, of other rows and on the same covariates."""
    from itrust.auditing.audits import Audit

    for argument, audit in (("first", first), ("second", second)):
        if not isinstance(audit, Audit):
            raise InputError(
                "{argument} must be an audit of two labels, from itrust.audit, not a {kind}",
                argument=argument,
                details={"kind": type(audit).__name__},
                hint="of several classes, audit sample.one_class(name) for the class you mean",
            )
    one, two = set(first.test.names), set(second.test.names)
    if one != two:
        raise InputError(
            "the audits are judged on other covariates: {lacking} in one of them only; audit both "
            "with the same {argument}",
            argument="on",
            details={"lacking": listed(sorted(one ^ two))},
        )
    if str(first.sample.values[1]) != str(second.sample.values[1]):
        raise InputError(
            "the audits count other labels as 1, {one} and {two}; name the same as positive",
            details={"one": repr(first.sample.values[1]), "two": repr(second.sample.values[1])},
        )
    if _same_rows(first.sample, second.sample):
        raise InputError(
            "both audits are of the same rows",
            hint="drift compares independent samples; itrust.compare compares models on the same "
            "rows",
        )


def _same_rows(a: Sample, b: Sample) -> bool:
    if a.n != b.n or not np.array_equal(a.y, b.y):
        return False
    columns = {column.name: column for column in b.columns}
    alike = [
        np.array_equal(column.values, columns[column.name].values, equal_nan=True)
        for column in a.columns
        if column.name in columns
    ]
    return all(alike) if alike else bool(np.array_equal(a.p, b.p))


def _checked_names(names: tuple[str, str]) -> tuple[str, str]:
    found = tuple(map(str, names)) if isinstance(names, tuple | list) else ()
    if len(found) != 2 or found[0] == found[1] or not all(name.strip() for name in found):
        raise InputError(
            "{argument} must be two different names, not {value}", argument="names", value=names
        )
    return found[0], found[1]


def _names_of(audit: Audit) -> set[str]:
    groups = {str(group.where) for group in audit.diagnosis.groups or ()}
    return groups | {task.name for task in audit.tasks}


def _scaled(audit: Audit, error: Uncertainty) -> Uncertainty:
    """Make the error of rows at hand that of all rows, whose values the audit holds.

    Only independent rows are ever more than those at hand.
    """
    share = audit.sample.n / audit.n
    return error if share >= 1 else replace(error, stderr=error.stderr * math.sqrt(share))


def _group_error(audit: Audit, group: GroupBias) -> tuple[Uncertainty, bool]:
    """How far the bias of a group may be off, and whether few labels carry it."""
    task, rows = prevalence(group.where), audit.sample
    if rows.design.is_simple:  # those of the group say it all
        task, inside = prevalence(), group.where.rows(rows.points)
        if not inside.any():
            return Uncertainty(0.0, 1.0, 1.0), True
        rows = rows.take(np.flatnonzero(inside))
    return _scaled(audit, LabelledTask.of(task, rows).less(1.0)), few_labels(task, rows)


def _change(
    compared: str, values: tuple[float, float], errors: Sequence[Uncertainty], **more: Any
) -> Change:
    """Second less first; variances of independent rows add."""
    squares = [error.stderr**2 for error in errors]
    if not all(map(math.isfinite, (*values, *squares))):
        return Change(compared, *values, reason=NO_ESTIMATE, **more)
    total = sum(squares)
    if not all(square > 0 for square in squares):
        return Change(compared, *values, reason=NO_VARIATION, **more)
    below = sum(own**2 / error.freedom for own, error in zip(squares, errors, strict=True))
    return Change(compared, *values, math.sqrt(total), total**2 / below, **more)


def _adjusted(part: Change, alpha: float, family: int) -> Change:
    """Add interval and p-values, shared among all comparisons alike so that they agree."""
    if part.reason is not None:
        return part
    error = Uncertainty(part.stderr, part.freedom, part.freedom + 1)
    lower, upper = error.interval(part.difference, alpha / family)
    return replace(
        part,
        lower=lower,
        upper=upper,
        unadjusted_pvalue=error.pvalue(part.difference),
        pvalue=error.pvalue(part.difference, family),
    )


def _overall(*sides: Audit) -> Iterator[Change]:
    """Scores and means of all rows."""
    few = any(few_labels(prevalence(), side.sample) for side in sides)
    laws = [LabelLaw.of(side.sample) for side in sides]
    for title, key in SCORE_NAMES.items():
        one, two = (float(getattr(side.overall, key)) for side in sides)
        if not (math.isfinite(one) and math.isfinite(two)):
            yield Change(key, one, two, reason=INFINITE)
            continue
        errors = [
            _scaled(side, loss_error(side.sample, law, LOSSES[title](side.sample.p))[1])
            for side, law in zip(sides, laws, strict=True)
        ]
        yield _change(key, (one, two), errors, few_labels=few)
    rates = [LabelledTask.of(prevalence(), side.sample) for side in sides]
    means = [side.overall.mean for side in sides]
    kinds = {
        "predicted": ([mean.predicted for mean in means], _of_predictions),
        "observed": ([mean.observed for mean in means], lambda rate: rate.less(0.0)),
        "mean_bias": ([mean.bias for mean in means], lambda rate: rate.less(1.0)),
    }
    for kind, (values, error_of) in kinds.items():
        errors = [_scaled(side, error_of(rate)) for side, rate in zip(sides, rates, strict=True)]
        carried = few and kind != "predicted"
        yield _change(kind, (values[0], values[1]), errors, few_labels=carried)


def _of_predictions(rate: LabelledTask) -> Uncertainty:
    """How far a plug-in may be off; no label is in it."""
    shares = rate.predicted.slope
    moves = None if rate.moves is None else rate.moves[1]
    return rate.law.uncertainty(shares, shares, np.zeros_like(shares), moves)


def _groups(one: Audit, two: Audit) -> Iterator[Change]:
    """The bias of every group that both audits show."""
    others = {str(group.where): group for group in two.diagnosis.groups or ()}
    for group in one.diagnosis.groups or ():
        other = others.get(str(group.where))
        if other is None:
            continue
        found = _group_error(one, group), _group_error(two, other)
        yield _change(
            "group_bias",
            (group.bias, other.bias),
            [error for error, _ in found],
            where=group.where,
            few_labels=any(few for _, few in found),
        )


def _numbers(one: Audit, two: Audit) -> Iterator[Change]:
    """The user's numbers that both audits have: from labels, and the bias of the plug-in."""
    others = {task.name: task for task in two.tasks}
    for task in one.tasks:
        other = others.get(task.name)
        if other is None:
            continue
        pair = task, other
        if any(own.withheld is not None for own in pair):
            for kind in ("number", "number_bias"):
                yield Change(kind, math.nan, math.nan, task=task.task, reason=WITHHELD)
            continue
        numbers, biases = [], []
        for side, own in zip((one, two), pair, strict=True):
            labelled = LabelledTask.of(own.task, side.sample)
            numbers.append(_scaled(side, labelled.less(0.0)))
            biases.append(replace(labelled.less(1.0), stderr=own.stderr))  # that of all rows
        more = {"task": task.task, "few_labels": any(own.few_labels for own in pair)}
        yield _change("number", (task.from_labels, other.from_labels), numbers, **more)
        yield _change("number_bias", (task.bias, other.bias), biases, **more)
