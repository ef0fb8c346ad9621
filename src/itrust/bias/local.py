"""The local bias: where the model is miscalibrated, by how much, and how sure that is.

The paper's normalised estimator, sum K e / sum K with e = y - p, with weights of compact support
(see `neighbours`) and two bands that hold at all points together. The null band tells where the
model is miscalibrated: redrawn labels stay within it. The confidence band tells by how much.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    IntArray,
    Result,
    Rng,
    checked_count,
    listed,
    smallest_tickets,
    tickets,
)
from itrust.bias.averages import Question, Redraws
from itrust.bias.bands import Averages, Band, backed, flagged
from itrust.bias.groups import GroupTable, group_plan
from itrust.bias.slices import SliceTable, slices_of
from itrust.bias.weights import CUT, Neighbours, neighbour_kernel
from itrust.data import Column, Points, Population, Sample, Scan
from itrust.engines import EngineChoice
from itrust.kernels import RBF, LocalKernel

if TYPE_CHECKING:
    from itrust.bias.pictures import BiasCurve, BiasMap

MAX_POINTS = 4_000  # up to here every row is a point
POINTS_OF_MANY = 1_000
MIN_NEIGHBOURS = 20
WIDE = 0.5  # a width of the prediction that takes in nearly all of them


@dataclass(frozen=True, eq=False, repr=False)
class LocalBias(Result):
    """Local bias of a model at m points.

    Attributes
    ----------
    redraws : Redraws
        The rows of the estimate, and how their labels were redrawn.
    points : Points
        Where the bias is estimated.
    rows : (m,) array or None
        Which rows of `sample` the points are; None if they are none of them.
    kernel : LocalKernel
        Who counts as a neighbour, with explicit widths.
    cut : float
        Share of the kernel's largest value below which a row is no neighbour.
    min_neighbours : int
        Effective neighbours below which a point has no value.
    values : (m,) array
        Weighted mean of y - p among neighbours; positive: the model underestimates. NaN where
        hardly any row is near, see `known`.
    stderr : (m,) array
        Standard errors of the values, from how much the neighbours' residuals vary.
    size : (m,) array
        Effective number of neighbours, (sum of weights)^2 / sum of squared weights.
    witness : (m,) array
        The unnormalised sum: mean over all rows of weight times residual.
    null_band : Band
        Redrawn labels stay within it at all points together, with probability 1 - alpha. Where a
        value is outside, the model is miscalibrated somewhere among the point's neighbours; that
        is exact (without clusters), whatever is the case elsewhere. Points are flagged where,
        in addition, `band` excludes 0, which nearly always is the same.
    band : Band
        Confidence band for the smoothed bias (the weighted mean of true minus predicted
        probability), at all points together; approximate.
    pvalues : (m,) array
        P-values for "the model is calibrated for every neighbour", adjusted for all points: at
        most `alpha` where `band` excludes 0, and nowhere else.
    notes : tuple of str
        Data-quality notes about the rows.
    notes_on_points : tuple of str
        Data-quality notes about the points.
    elapsed : float
        Seconds that it took.
    """

    redraws: Redraws
    points: Points
    rows: IntArray | None
    kernel: LocalKernel
    cut: float
    min_neighbours: int
    values: FloatArray
    stderr: FloatArray
    size: FloatArray
    witness: FloatArray
    null_band: Band
    band: Band
    pvalues: FloatArray
    notes: tuple[str, ...]
    notes_on_points: tuple[str, ...]
    elapsed: float

    @property
    def sample(self) -> Sample:
        """The rows of the estimate."""
        return self.redraws.sample

    @property
    def n(self) -> int:
        """Number of rows of the estimate."""
        return self.redraws.n

    def __len__(self) -> int:
        return len(self.points)

    @property
    def alpha(self) -> float:
        """Error that both bands are allowed."""
        return self.redraws.alpha

    @property
    def known(self) -> BoolArray:
        """Points with enough neighbours to say anything, (m,)."""
        return np.isfinite(self.values)

    @cached_property
    def flagged(self) -> BoolArray:
        """Points where the model is miscalibrated: p at most `alpha`, 0 outside `band`, (m,)."""
        return np.asarray(np.nan_to_num(self.pvalues, nan=1.0) <= self.alpha)

    def implied_by(self, pvalue: float) -> LocalBias:
        """One closed test with what would imply it: no mark without that, and bands reach 0.

        Parameters
        ----------
        pvalue : float
            Of the test of calibration.

        Returns
        -------
        LocalBias
            With p-values that are not smaller.
        """
        pvalues = np.maximum(self.pvalues, pvalue)
        return replace(self, pvalues=pvalues, band=backed(self.band, pvalues <= self.alpha))

    def at(self, other: Sample | Population) -> LocalBias:
        """Estimate the same at other points; their labels, if they have any, are not looked at.

        Bands and p-values are made again, for these points together: ask for all at once.

        Parameters
        ----------
        other : Sample or Population
            The points, with every covariate of the sample.

        Returns
        -------
        LocalBias
            With the same rows, widths and draws.
        """
        return self._question(_points_of(other, self.sample)).made()

    def _question(self, points: Points, **changes: Any) -> Question[LocalBias]:
        """The same about other points."""
        changes |= {"points": points, "rows": None}
        asked = [changes.get(name, getattr(self, name)) for name in ASKED]
        return question_at(*asked, begun=time.perf_counter())

    def groups(self, *names: str, **settings: Any) -> GroupTable:
        """Give the bias by group and crossing of groups, from all rows.

        Parameters
        ----------
        *names : str
            Covariates to group by.
        **settings : object
            What `itrust.bias_groups` takes; alpha, draws and seed are this estimate's unless they
            are given.

        Returns
        -------
        GroupTable
            As `itrust.bias_groups` gives it.
        """
        return group_plan(self._again(settings), names, **settings).made()

    def slices(self, **settings: Any) -> SliceTable:
        """Find the regions in which the model is miscalibrated, from all rows.

        Parameters
        ----------
        **settings : object
            As for `itrust.bias_slices`; what is not said about errors and draws stays as it was.

        Returns
        -------
        SliceTable
            In the order of telling.
        """
        return slices_of(self._again(settings), **settings)

    def curve(self, name: str, by: str | Sequence[str] = (), **settings: Any) -> BiasCurve:
        """Give the bias along a covariate, by group, with widths of its own, from all rows.

        Parameters
        ----------
        name : str
            A number or date among the covariates, or "prediction".
        by : str or sequence of str
            Covariates whose combinations of values are groups; default: no groups.
        **settings : object
            Width, points and so on of `itrust.bias_curve`, with alpha, draws and seed from here.

        Returns
        -------
        BiasCurve
            One curve for each group.
        """
        from itrust.bias.pictures import curve_plan

        return curve_plan(self._again(settings), name, by, **settings).made()

    def map(self, first: str, second: str, **settings: Any) -> BiasMap:
        """Give the bias over two covariates, with widths of its own, from all rows.

        Parameters
        ----------
        first, second : str
            Across and up: covariates, or "prediction".
        **settings : object
            Points and so on of `itrust.bias_map`; the draws are made as before by default.

        Returns
        -------
        BiasMap
            Bias and p-value of every cell.
        """
        from itrust.bias.pictures import map_plan

        return map_plan(self._again(settings), first, second, **settings).made()

    def _again(self, settings: dict[str, Any]) -> Redraws:
        """How to redraw for all rows: as here, but for what the settings say (and is taken out)."""
        given = {name: settings.pop(name, None) for name in ("alpha", "draws", "rng")}
        return self.redraws.again(**given)

    def to_arrow(self) -> pa.Table:
        """Give one row for each point: covariates, prediction, bias and bands.

        Returns
        -------
        pyarrow.Table
            A covariate that is called like one of our columns has "(covariate)" after its name.
        """
        own = {
            "prediction": self.points.p,
            "bias": self.values,
            "stderr": self.stderr,
            "neighbours": self.size,
            "null_lower": self.null_band.lower,
            "null_upper": self.null_band.upper,
            "lower": self.band.lower,
            "upper": self.band.upper,
            "pvalue": self.pvalues,
        }
        covariates = {
            f"{c.name} (covariate)" if c.name in own else c.name: cells(c)
            for c in self.points.columns
        }
        return pa.table({**covariates, **own})

    def _facts(self) -> Mapping[str, Any]:
        """Summary and settings; the values are in `to_arrow`."""
        known = self.values[self.known]
        return {
            "points": len(self),
            "known": int(self.known.sum()),
            "flagged_low": int((self.flagged & (self.values > 0)).sum()),
            "flagged_high": int((self.flagged & (self.values < 0)).sum()),
            "smallest": float(known.min()) if known.size else None,
            "largest": float(known.max()) if known.size else None,
            "neighbours": float(np.median(self.size)),
            "n": self.n,
            "on": self.sample.names,
            "kernel": self.kernel.to_dict(),
            "cut": self.cut,
            "min_neighbours": self.min_neighbours,
            "alpha": self.alpha,
            "null": self.redraws.null.to_dict(),
            "draws": self.redraws.draws,
            "seed": self.redraws.seed,
            "notes": [*self.notes_on_points, *self.notes],
        }

    def __repr__(self) -> str:
        return f"<LocalBias: {len(self):,} points, {int(self.flagged.sum()):,} flagged>"


def cells(column: Column) -> Any:
    """Values as people know them: text, numbers, booleans, times; nothing where missing."""
    if column.is_category:
        return pa.array([column.cell(row) for row in range(len(column))])
    if column.kind == "number":
        return column.values
    filled = np.nan_to_num(column.values)
    if column.kind == "boolean":
        return pa.array(filled.astype(bool), mask=column.missing)
    return pa.array(np.rint(filled * 86_400).astype("datetime64[s]"), mask=column.missing)


def local_bias(
    sample: Sample | Scan,
    at: Sample | Population | None = None,
    *,
    min_neighbours: int = MIN_NEIGHBOURS,
    kernel: LocalKernel | None = None,
    cut: float = CUT,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
    engine: EngineChoice = "auto",
) -> LocalBias:
    """Where the model is miscalibrated, and by how much, at every row or at other points.

    b(z) = sum_i w_i K(z, z_i) (y_i - p_i) / sum_i w_i K(z, z_i), with z the prediction and the
    covariates, and K cut to compact support. Cost O(n m draws) for m points at most, less where
    supports are small; memory O(m (draws + min(m, 2048))).

    Parameters
    ----------
    sample : Sample or Scan
        Labels, predictions and covariates. Of more than 100,000 rows, points and widths are chosen
        from as many random ones; the estimate is from all.
    at : Sample or Population, optional
        The points. Default: every row up to 4,000 of them, else 1,000 rows at random.
    min_neighbours : int
        Effective neighbours below which a point has no value.
    kernel : LocalKernel, optional
        Default: widths from (p, x) such that a typical row has 0.7 m^0.8 effective neighbours, m
        being the rows that match it in all categories.
    cut : float
        Rows whose kernel is below this share of its largest value are no neighbours. 0 is the
        paper's estimator: then every row is everybody's neighbour, and a flag means only that
        the model is miscalibrated somewhere.
    alpha : float
        Error that both bands are allowed.
    draws : int
        Number of redrawn sets of labels that both bands and the p-values rest on.
    rng : int, Generator or None
        What makes the same draws again; None: other draws each time.
    engine : "auto", Factor or Dask
        Who goes over the rows.

    Returns
    -------
    LocalBias
        Values, bands and p-values at the points.

    References
    ----------
    Vashistha and Farahi (AISTATS 2025), proposition on the error witness function.

    Examples
    --------
    >>> import itrust as it
    >>> b = it.local_bias(it.simulate.survey(1_500, rng=0).sample, draws=199, rng=0)
    >>> b.values.shape, bool(b.flagged.any())
    ((1500,), True)
    """
    redraws = Redraws.of(sample, alpha=alpha, draws=draws, rng=rng, engine=engine)
    plan = local_plan(redraws, at, min_neighbours=min_neighbours, kernel=kernel, cut=cut)
    return plan.made()


def local_plan(
    redraws: Redraws,
    at: Sample | Population | None = None,
    *,
    min_neighbours: int = MIN_NEIGHBOURS,
    kernel: LocalKernel | None = None,
    cut: float = CUT,
    every: int = MAX_POINTS,
) -> Question[LocalBias]:
    """Choose points and widths; what is summed over the rows then makes a `LocalBias`."""
    checked_count(min_neighbours, "min_neighbours")
    sample, begun = redraws.sample, time.perf_counter()
    if kernel is None:
        chosen = neighbour_kernel(sample.points, n=redraws.n)
    elif isinstance(kernel, LocalKernel):
        chosen = kernel.resolve(sample.points)
    else:
        problem = "{argument} must be a LocalKernel or None, not {value}"
        raise InputError(problem, argument="kernel", value=kernel)
    points, rows = _own_points(redraws, every) if at is None else (_points_of(at, sample), None)
    settings = chosen, cut, int(min_neighbours), redraws.notes
    return question_at(redraws, points, rows, *settings, begun=begun)


def _notes_on_points(points: Points, sample: Sample, kernel: LocalKernel) -> list[str]:
    said = []
    for column in (column for column in points.columns if column.is_category):
        present = {column.levels[int(code)] for code in np.unique(column.values) if code >= 0}
        unseen = sorted(map(str, present - set(sample.column(column.name).levels)))
        if unseen:
            levels = f"{column.name} = {listed(unseen)}"
            said.append(f"no row of the sample has {levels}: unknown there")
    widths = kernel.prob.width if isinstance(kernel.prob, RBF) else None
    if isinstance(widths, tuple) and widths[0] > WIDE and np.ptp(sample.p) > WIDE:
        said.append(
            "with these covariates hardly anybody is near, so neighbours differ widely in their "
            "predictions and covariates; judge fewer covariates for a more local picture"
        )
    return said


def _own_points(redraws: Redraws, every: int) -> tuple[Points, IntArray]:
    """Every row of so many, random ones of more."""
    sample, extract = redraws.sample, redraws.extract
    most = sample.n if sample.n <= every else min(every, POINTS_OF_MANY)
    rows = smallest_tickets(tickets(0, sample.n) if extract is None else extract.tickets, most)
    return sample.points.take(rows), rows


def _points_of(other: object, sample: Sample) -> Points:
    if not isinstance(other, Sample | Population) or other.several:
        kind = f"not a {type(other).__name__}"
        problem = f"{{argument}} must be a Sample or, without labels, a Population(p, x), {kind}"
        raise InputError(problem, argument="points", value=other)
    by_name = {column.name: column for column in other.columns}
    lacking = [name for name in sample.names if name not in by_name]
    if lacking:
        problem, names = "the points lack {lacking}, which the sample has", listed(lacking)
        raise InputError(problem, argument="points", value=lacking, lacking=names)
    for column in sample.columns:
        match = by_name[column.name]
        if match.is_category != column.is_category:
            kinds = f"a {column.kind} in the sample and a {match.kind} among the points"
            problem = f"covariate {{column}} is {kinds}; give it the same kind"
            raise InputError(problem, argument="points", column=column.name)
    return Points(other.p, tuple(by_name[name] for name in sample.names))


ASKED = ("redraws", "points", "rows", "kernel", "cut", "min_neighbours", "notes")


def question_at(*asked: Any, begun: float) -> Question[LocalBias]:
    """What is asked at some points: the first eight of `LocalBias`, in the order of `ASKED`."""
    redraws, points, _, kernel, cut, min_neighbours, _ = asked

    def finished(averages: Averages) -> LocalBias:
        size = np.nan_to_num(averages.size)
        enough = np.flatnonzero(size >= min_neighbours)
        known = averages.take(enough)

        def at_all(part: FloatArray) -> FloatArray:
            filled = np.full(len(points), np.nan)
            filled[enough] = part
            return filled

        *bands, pvalues = flagged(known, redraws.alpha)
        null_band, band = (Band(at_all(own.lower), at_all(own.upper)) for own in bands)
        return LocalBias(
            **dict(zip(ASKED, asked, strict=True)),
            values=at_all(known.values),
            stderr=at_all(known.stderr),
            size=size,
            witness=averages.residual / averages.total,
            null_band=null_band,
            band=band,
            pvalues=at_all(pvalues),
            notes_on_points=tuple(_notes_on_points(points, redraws.sample, kernel)),
            elapsed=time.perf_counter() - begun,
        )

    return Question(redraws, Neighbours(points, kernel, cut), finished, "local bias")
