"""Bias by group: predicted and observed rates, intervals and adjusted p-values.

`PartBias` and `PartTable` are what groups and slices have in common.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, product
from typing import Any, TypeVar

import numpy as np

from itrust._core import (
    AnyArray,
    InputError,
    IntArray,
    Result,
    Rng,
    Setting,
    checked_count,
    counted,
    listed,
    place_of,
    signed,
)
from itrust.bias.averages import Question, Redraws, names_of
from itrust.bias.bands import Averages, judged
from itrust.bias.weights import Members
from itrust.data import (
    MAX_VALUES,
    PREDICTION,
    Column,
    Missing,
    OneOf,
    Predicate,
    Sample,
    Scan,
    all_of,
    column_of,
    level_of,
    parts_of,
    value_of,
)
from itrust.engines import EngineChoice
from itrust.nulls import Null

SIGN = "bias = observed - predicted; positive: the model underestimates"
TAKEN_BACK = 2.0  # how fast the price of being singled out fades, in standard errors
FEW_ROWS, FEW_CLUSTERS = 30, 10
PARTS = 4
MAX_GROUPS = 2_000


def near_end(lower: float, upper: float) -> float:
    """The end of an interval next to 0, with its sign; 0 where it includes 0.

    >>> near_end(0.02, 0.3), near_end(-0.3, -0.02), near_end(-0.1, 0.3)
    (0.02, -0.02, 0.0)
    """
    return max(lower, 0.0) + min(upper, 0.0)


@dataclass(frozen=True)
class PartBias(Result):
    """How far the model is off in some of the rows.

    What groups and slices have in common.

    Attributes
    ----------
    where : Predicate
        Which rows: `where.rows(points)` marks those of any sample.
    rows : int
        Number of rows inside, of the whole sample.
    share : float
        Share of the whole sample's weight that is inside.
    predicted : float
        Weighted mean prediction.
    observed : float
        Weighted rate of positive labels.
    lower, upper : float
        Interval of the bias.
    stderr : float
        Standard error of the bias, from how much residuals vary.
    unadjusted_pvalue : float
        P-value if this had been the only part that was looked at.
    pvalue : float
        P-value that goes with the interval, for all parts of the table if the interval is: at most
        the table's `alpha` where the interval excludes 0, and nowhere else.
    """

    where: Predicate
    rows: int
    share: float
    predicted: float
    observed: float
    lower: float
    upper: float
    stderr: float
    unadjusted_pvalue: float
    pvalue: float

    def __repr__(self) -> str:
        kind, told = type(self).__name__, f"bias {signed(self.bias)}, p {self.pvalue:.3g}"
        return f"<{kind}: {self.where}, {told}>"

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that tell which rows are inside, in the order of the predicate."""
        leaves = self.where.leaves()
        return tuple(dict.fromkeys(name for leaf in leaves for name in sorted(leaf.names)))

    @property
    def bias(self) -> float:
        """Observed minus predicted; positive: the model underestimates."""
        return self.observed - self.predicted

    @property
    def at_least(self) -> float:
        """The end of the interval next to 0, with its sign; 0 where the interval includes 0."""
        return near_end(self.lower, self.upper)

    @property
    def estimate(self) -> float:
        """The bias without what being picked out adds to it on average.

        A part that is told because its interval excludes 0 had luck on its side the more narrowly
        it does. So the bias is taken back towards `at_least`: all the way where that is 0, hardly
        at all from two standard errors beyond. For a normal mean this is right to three quarters of
        a standard error on average, whatever the truth. The bias itself where the interval includes
        0, for then nothing picked it.
        """
        least, bias = abs(self.at_least), abs(self.bias)
        if not (least > 0 and self.stderr > 0):
            return self.bias
        back = (bias - least) * math.exp(-TAKEN_BACK * least / self.stderr)
        return math.copysign(bias - back, self.bias)

    def _facts(self) -> Mapping[str, Any]:
        values = {**vars(self), "where": self.where.to_dict()}
        derived = {name: getattr(self, name) for name in ("bias", "at_least", "estimate")}
        return {"names": self.names, **values, **derived}

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [{name: value for name, value in self._facts().items() if name != "where"}]


Part = TypeVar("Part", bound=PartBias)


@dataclass(frozen=True, eq=False, repr=False)
class PartTable(Result, Sequence[Part]):
    """Biases of several parts, judged together.

    Attributes
    ----------
    alpha : float
        The error that is allowed, of intervals and of p-values alike.
    null : Null
        How labels were redrawn.
    draws : int
        How often labels were redrawn.
    seed : int
        What makes the same draws again.
    notes : tuple of str
        Data-quality notes.
    out_of_fold : bool
        Whether the probabilities are predictions of models that saw the labels of other folds.
    """

    alpha: float
    null: Null
    draws: int
    seed: int
    notes: tuple[str, ...]
    out_of_fold: bool

    @property
    def is_exact(self) -> bool:
        """Whether p-values are valid at every sample size; not with clusters or `cv=`."""
        return self.null.exact and not self.out_of_fold

    @property
    @abstractmethod
    def parts(self) -> tuple[Part, ...]:
        """The parts in the order of the table."""

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, key: Any) -> Any:
        return self.parts[key]

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [row for part in self.parts for row in part._rows()]

    def _facts(self) -> Mapping[str, Any]:
        return {
            "alpha": self.alpha,
            "null": self.null.to_dict(),
            "is_exact": self.is_exact,
            "draws": self.draws,
            "seed": self.seed,
            "notes": self.notes,
        }


@dataclass(frozen=True, repr=False)
class GroupBias(PartBias):
    """How far the model is off in one group.

    Rates, interval and p-values are of all rows of the group.

    Attributes
    ----------
    size : float
        Effective number of rows, fewer than `rows` if weights differ, or of clusters.
    enough : float
        What `size` has to be for the group not to count as small: 30 rows, or 10 clusters.
    """

    size: float
    enough: float = FEW_ROWS

    @property
    def name(self) -> str:
        """The group in reading words, such as "region = south"."""
        return str(self.where)

    @property
    def small(self) -> bool:
        """Whether the group counts for few rows, or clusters: read the interval, not the value."""
        return not self.size >= self.enough  # NaN, without any weight, is small

    def _facts(self) -> Mapping[str, Any]:
        return {"name": self.name, **super()._facts(), "small": self.small}


@dataclass(frozen=True, eq=False, repr=False)
class GroupTable(PartTable[GroupBias]):
    """Outcome of `bias_groups`: a sequence of groups that knows them by name, too.

    `table[0]` is the first group, and `table["region = south"]` the one of that name.

    Attributes
    ----------
    groups : tuple of GroupBias
        Every covariate's groups, then those of their crossings.
    simultaneous : bool
        Whether intervals and p-values hold together, or each on its own.
    """

    groups: tuple[GroupBias, ...]
    simultaneous: bool

    @property
    def parts(self) -> tuple[GroupBias, ...]:
        """The groups."""
        return self.groups

    @property
    def shown(self) -> tuple[GroupBias, ...]:
        """Groups whose interval excludes 0."""
        return tuple(group for group in self.groups if group.pvalue <= self.alpha)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        names = [group.name for group in self.groups]
        return self.groups[place_of(key, names, "there is no group {value}; {guess}")]

    def _facts(self) -> Mapping[str, Any]:
        groups = [group.to_dict() for group in self.groups]
        return {"groups": groups, "simultaneous": self.simultaneous, **super()._facts()}

    def __repr__(self) -> str:
        return f"<GroupTable: {counted(len(self), 'group')}>"


def bias_groups(
    sample: Sample | Scan,
    *names: str,
    pool: int = 0,
    alpha: float = 0.05,
    simultaneous: bool = True,
    crossings: bool = True,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
) -> GroupTable:
    """Bias in every group and every crossing of groups.

    A p-value is the larger of two. One compares the group's mean residual, divided by how much
    residuals vary in it, with the same for redrawn labels (step-down max-T over all groups): exact
    for "the model is calibrated in every row". The other belongs to the interval, and is
    asymptotically valid for "no mean bias in this group". So a p-value is at most `alpha` where
    the interval excludes 0, and nowhere else.

    Parameters
    ----------
    sample : Sample or Scan
        Labels, predictions and covariates.
    *names : str
        Covariates to group by: categories by level, numbers with up to ten values by value, other
        numbers in quarters; "prediction" is one of them. Several names: each alone, then their
        crossings.
    pool : int
        Levels with fewer rows than this are put together. Small groups are flagged in any case.
    alpha : float
        Error that the intervals are allowed.
    simultaneous : bool
        Whether intervals and p-values hold for all groups at once; False: each on its own.
    crossings : bool
        Whether groups of several covariates are looked at, too; False: every name by itself only.
    draws : int
        How often labels are redrawn; p-values are multiples of 1 / (draws + 1).
    rng : int, Generator or None
        Seed of the redrawn labels; None takes a new one.
    engine : "auto", Factor or Dask
        Who goes over the rows.

    Returns
    -------
    GroupTable
        One `GroupBias` for each group with rows.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(2_000, rng=0).sample
    >>> table = it.bias_groups(town, "region", draws=199, rng=0)
    >>> [(group.name, group.rows) for group in table]
    [('region = north', 783), ('region = south', 607), ('region = west', 610)]
    """
    redraws = Redraws.of(sample, alpha=alpha, draws=draws, rng=rng, engine=engine)
    plan = group_plan(redraws, names, pool=pool, simultaneous=simultaneous, crossings=crossings)
    return plan.made()


def group_plan(
    redraws: Redraws,
    names: tuple[str, ...],
    *,
    pool: int = 0,
    simultaneous: bool = True,
    crossings: bool = True,
    most: int | None = None,
) -> Question[GroupTable]:
    """Choose the groups; what is summed over the rows then makes a `GroupTable`."""
    sample = redraws.sample
    checked_count(pool, "pool", at_least=0)
    if not isinstance(simultaneous, bool):
        problem = "{argument} must be True or False, not {value}"
        raise InputError(problem, argument="simultaneous", value=simultaneous)
    chosen = names_of(names[0] if len(names) == 1 else names)
    if not chosen:
        problem = "name the covariates to group by: {known}"
        known = {"known": listed([*sample.names, PREDICTION])}
        raise InputError(problem, argument="names", value=names, details=known)
    valued, notes = [], []
    for covariate in (Valued.of(redraws, name) for name in chosen):
        frequent = covariate if most is None else covariate.most_frequent(most)
        valued.append(frequent)
        if frequent.values.size < covariate.values.size:
            name, levels = covariate.column.name, f"{covariate.values.size:,} levels"
            notes.append(f"{name!r} has {levels}: its {most:,} most frequent ones are groups")
    groups = group_predicates(valued, pool, deepest=len(valued) if crossings else 1)
    if len(groups) > MAX_GROUPS:  # most crossings of rare levels have no rows
        possible = len(groups)
        groups = [where for where in groups if where.rows(sample.points).any()]
        if redraws.extract is not None and len(groups) < possible:
            notes.append(f"groups without any of {sample.n:,} random rows are left out")
    if len(groups) > MAX_GROUPS:
        made = counted(len(groups), "group")
        raise InputError(
            f"{{chosen}} make {made}, more than {MAX_GROUPS:,}",
            argument="names",
            value=chosen,
            hint="name fewer covariates, or pass {} to put rare levels together",
            settings=[Setting("pool", 30)],
            chosen=", ".join(chosen),
        )

    def finished(averages: Averages) -> GroupTable:
        some = np.flatnonzero(averages.rows)
        averages = averages.take(some)
        rates = judged(averages, redraws.alpha, simultaneous=simultaneous)
        shares, sizes = averages.mass / averages.total, averages.size
        table = tuple(
            GroupBias(
                where=groups[number],
                rows=int(averages.rows[k]),
                size=float(sizes[k]),
                enough=FEW_ROWS if sample.cluster is None else FEW_CLUSTERS,
                share=float(shares[k]),
                **rates[k],
            )
            for k, number in enumerate(some.tolist())
        )
        settings = redraws.settings | {"notes": (*redraws.notes, *notes)}
        return GroupTable(groups=table, simultaneous=simultaneous, **settings)

    return Question(redraws, Members(groups), finished, "groups")


@dataclass(frozen=True, eq=False)
class Valued:
    """A covariate with how often each of its values occurs among all rows."""

    column: Column
    values: AnyArray
    counts: IntArray
    has_missing: bool

    @classmethod
    def of(cls, redraws: Redraws, name: str) -> Valued:
        """Look the values up: among rows in memory, or as a pass counted them."""
        column = column_of(redraws.sample.points, name)
        extract = redraws.extract
        known = None if extract is None else extract.census.counts.get(name)
        if known is None or known.values is None:
            missing = column.missing
            values, counts = np.unique(column.values[~missing], return_counts=True)
            return cls(column, values, counts, bool(missing.any()))
        # Categories have the levels of all rows.
        ordered = column.levels if column.is_category else sorted(known.values)
        counts = np.array([known.values[value] for value in ordered], dtype=np.int64)
        values = np.arange(len(ordered)) if column.is_category else np.array(ordered)
        return cls(column, values, counts, int(counts.sum()) < redraws.n)

    @property
    def is_cut(self) -> bool:
        """Whether it is a number with so many values that its quarters are groups."""
        return not self.column.is_category and self.values.size > MAX_VALUES

    def most_frequent(self, most: int) -> Valued:
        """The same with the values that occur most often."""
        if self.is_cut or self.values.size <= most:
            return self
        kept = np.sort(np.argsort(-self.counts, kind="stable")[:most])
        return replace(self, values=self.values[kept], counts=self.counts[kept])


def group_predicates(valued: Sequence[Valued], pool: int, deepest: int) -> list[Predicate]:
    """Every column's groups, then those of every crossing of up to `deepest` columns."""
    by_column, most = [list(_levels(column, pool)) for column in valued], 100 * MAX_GROUPS
    crossed = (
        all_of(parts)
        for depth in range(1, deepest + 1)
        for chosen in combinations(by_column, depth)
        for parts in product(*chosen)
    )
    groups = list(islice(crossed, most + 1))
    if len(groups) > most:
        problem, hint = "these covariates make too many groups", "name fewer, or pass {}"
        raise InputError(problem, argument="names", hint=hint, settings=[Setting("pool", 30)])
    return groups


def _levels(own: Valued, pool: int) -> Iterator[Predicate]:
    column = own.column
    if own.is_cut:
        yield from parts_of(column, PARTS)
    else:
        pairs = zip(own.values, own.counts, strict=True)
        rare = [value for value, rows in pairs if rows < pool]
        together = rare if len(rare) > 1 else []
        yield from (level_of(column, value) for value in own.values if value not in together)
        if together:
            yield OneOf(column.name, tuple(value_of(column, value) for value in together))
    if own.has_missing:
        yield Missing(column.name)
