"""The local bias: where the model is wrong, by how much, and how sure that is.

The paper's normalised estimator, sum K e / sum K with e = y - p, with weights of compact support
(see `neighbours`) and two bands that hold at all points together. The null band tells where the
model is wrong: redrawn labels stay within it. The confidence band tells by how much.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from itrust._core import (
    BoolArray,
    FloatArray,
    InputError,
    IntArray,
    Rng,
    as_seed,
    counted,
    listed,
    smallest_tickets,
    tickets,
)
from itrust._core import html as notebook
from itrust.bias.bands import Band, critical_value, null_band
from itrust.bias.groups import (
    SIGN,
    GroupTable,
    bias_groups,
    bias_notes,
    checked_reach,
    mean_intervals,
    rowwise_null,
)
from itrust.bias.neighbours import CUT, Neighbours, neighbour_kernel
from itrust.bias.slices import SliceTable, bias_slices
from itrust.bias.smoothing import average
from itrust.calibration import step_down
from itrust.data import Column, Points, Population, Sample, checked_sample
from itrust.kernels import LocalKernel
from itrust.nulls import Null, RowwiseNull

if TYPE_CHECKING:
    from itrust.bias.curves import BiasCurve, BiasMap, CubicFit

MAX_POINTS = 4_000  # up to here every row is a point
POINTS_OF_MANY = 2_000
FEWEST = 20  # effective neighbours
MOSTLY = 0.8
WIDE = 0.5  # a width of the prediction that takes in nearly all of them
FACTORS = tuple(2.0**k for k in range(-4, 4))


@dataclass(frozen=True)
class HeldOut:
    """Choose the widths by how well residuals are predicted on rows that were held out.

    The choice sees labels, so it is made on rows of its own, halved: one half predicts the other,
    and the other way round. Those rows take no part in the estimate.

    Parameters
    ----------
    share : float
        Of the rows, to choose on.
    factors : tuple of float
        Multiples of the default widths to choose from.
    """

    share: float = 0.3
    factors: tuple[float, ...] = FACTORS

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InputError(f"share must lie between 0 and 1, not {self.share!r}")
        if not self.factors or min(self.factors) <= 0:
            raise InputError(f"factors must be positive numbers, not {self.factors!r}")


@dataclass(frozen=True, eq=False, repr=False)
class LocalBias:
    """Local bias of a model at m points.

    Attributes
    ----------
    values : (m,) array
        Weighted mean of y - p among neighbours; positive: the model underestimates. NaN where
        hardly anybody is near, see `known`.
    stderr : (m,) array
        From how much the neighbours' residuals vary.
    size : (m,) array
        Effective number of neighbours, (sum of weights)^2 / sum of squared weights.
    witness : (m,) array
        The unnormalised sum: mean over all rows of weight times residual.
    null_band : Band
        Redrawn labels stay within it at all points together, with probability 1 - alpha. A point
        outside is wrong somewhere among its neighbours; that is exact (without clusters),
        whatever is the case elsewhere.
    band : Band
        Confidence band for the smoothed bias (the weighted mean of true minus predicted
        probability), at all points together; approximate.
    pvalues : (m,) array
        For "the model is right for every neighbour", adjusted for all points.
    sample, whole : Sample
        The rows of the estimate, and all rows; they differ if some chose the widths.
    points : Points
    rows : (m,) array or None
        Which rows of `whole` the points are, if they are.
    kernel : LocalKernel
        With its widths.
    """

    sample: Sample
    whole: Sample
    points: Points
    rows: IntArray | None
    kernel: LocalKernel
    cut: float
    fewest: int
    alpha: float
    null: Null
    draws: int
    seed: int
    values: FloatArray
    stderr: FloatArray
    size: FloatArray
    witness: FloatArray
    null_band: Band
    band: Band
    pvalues: FloatArray
    elapsed: float
    notes: tuple[str, ...]
    notes_on_points: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.points)

    @property
    def known(self) -> BoolArray:
        """Points with enough neighbours to say anything, (m,)."""
        return np.isfinite(self.values)

    @cached_property
    def flagged(self) -> BoolArray:
        """Points where the model is wrong: adjusted p-value at most `alpha`, (m,)."""
        return np.asarray(np.nan_to_num(self.pvalues, nan=1.0) <= self.alpha)

    def at(self, other: Sample | Population) -> LocalBias:
        """The same estimate at other points; their labels, if they have any, are not looked at.

        Bands and p-values are made again, for these points together: ask for all at once.
        """
        kept = (
            "sample",
            "whole",
            "kernel",
            "cut",
            "fewest",
            "alpha",
            "null",
            "draws",
            "seed",
            "notes",
        )
        return estimated_at(
            _points_of(other, self.sample), None, **{name: getattr(self, name) for name in kept}
        )

    def groups(self, *names: str, **settings: Any) -> GroupTable:
        """Bias by group and crossing of groups, from all rows: see `itrust.bias_groups`."""
        return bias_groups(self.whole, *names, **self._settings(settings))

    def slices(self, **settings: Any) -> SliceTable:
        """Readable rules where the model is wrong, from all rows: see `itrust.bias_slices`."""
        return bias_slices(self.whole, **self._settings(settings))

    def curve(self, name: str, by: str | Sequence[str] = (), **settings: Any) -> BiasCurve:
        """Bias along a covariate, by group, with its own widths: see `itrust.bias_curve`."""
        from itrust.bias.curves import bias_curve

        return bias_curve(self.whole, name, by, **self._settings(settings))

    def map(self, first: str, second: str, **settings: Any) -> BiasMap:
        """Bias over two covariates, with its own widths: see `itrust.bias_map`."""
        from itrust.bias.curves import bias_map

        return bias_map(self.whole, first, second, **self._settings(settings))

    def cubic(self, name: str, by: str | Sequence[str] = ()) -> CubicFit:
        """The paper's figure: cubic fits of the values at the points against a covariate."""
        from itrust.bias.curves import cubic_fit

        return cubic_fit(self, name, by)

    def _settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Level, draws and seed go along unless they are given."""
        return {"alpha": self.alpha, "draws": self.draws, "rng": self.seed, **settings}

    def to_arrow(self) -> pa.Table:
        """One row a point: covariates, prediction, bias and bands (`.to_pandas()` if you like)."""
        own = ("prediction", "bias", "stderr", "neighbours", "null_lower", "null_upper")
        taken = {*own, "lower", "upper", "pvalue"}
        covariates = {
            f"{c.name} (covariate)" if c.name in taken else c.name: cells(c)
            for c in self.points.columns
        }
        return pa.table(
            {
                **covariates,
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
        )

    def to_dict(self) -> dict[str, Any]:
        """Summary and settings, ready for JSON; the values are in `to_arrow`."""
        known = self.values[self.known]
        return {
            "points": len(self),
            "known": int(self.known.sum()),
            "flagged_low": int((self.flagged & (self.values > 0)).sum()),
            "flagged_high": int((self.flagged & (self.values < 0)).sum()),
            "smallest": float(known.min()) if known.size else None,
            "largest": float(known.max()) if known.size else None,
            "neighbours": float(np.median(self.size)),
            "n": self.sample.n,
            "on": list(self.sample.names),
            "kernel": self.kernel.to_dict(),
            "cut": self.cut,
            "fewest": self.fewest,
            "alpha": self.alpha,
            "null": self.null.to_dict(),
            "draws": self.draws,
            "seed": self.seed,
            "elapsed": self.elapsed,
            "notes": [*self.notes_on_points, *self.notes],
        }

    def _repr_html_(self) -> str:
        low, high = self.flagged & (self.values > 0), self.flagged & (self.values < 0)
        rows = [
            ("too low", _share(low), self._extreme(1).strip()),
            ("too high", _share(high), self._extreme(-1).strip()),
            ("not shown to be wrong", _share(self.known & ~self.flagged), ""),
            ("unknown: too few neighbours", _share(~self.known), ""),
        ]
        return notebook.card(
            f"Local bias at {self._points_text()}",
            notebook.table(["the model is", "at", ""], rows),
            notebook.notes([SIGN, *self.notes_on_points, *self.notes]),
        )

    def __repr__(self) -> str:
        return f"<LocalBias: {len(self):,} points, {int(self.flagged.sum()):,} flagged>"

    def __str__(self) -> str:
        told = [f"Local bias at {self._points_text()}", f"  {SIGN}", ""]
        low, high = self.flagged & (self.values > 0), self.flagged & (self.values < 0)
        names = [c.name for c in self.points.columns]
        prob, x = self.kernel.prob, self.kernel.x
        assert prob is not None
        neighbours = f"{np.median(self.size):,.0f} effective neighbours of a typical point"
        rows = [
            ("rows", f"{self.sample.n:,}; {neighbours}"),
            ("too low", f"shown at {_share(low)}{self._extreme(1)}"),
            ("too high", f"shown at {_share(high)}{self._extreme(-1)}"),
            ("not shown", f"to be wrong by these rows: {_share(self.known & ~self.flagged)}"),
            ("unknown", f"fewer than {self.fewest} effective neighbours: {_share(~self.known)}"),
            ("neighbours", f"in the prediction: {prob.describe(['p'])}"),
            ("", f"in covariates: {x.describe(names)}"),
            ("made with", f"{self.draws:,} draws, seed {self.seed}, {self.elapsed:.2g} s"),
        ]
        told.extend(f"  {name:<12}{text}" for name, text in rows)
        told += [
            "",
            "  shown: the model is wrong for some neighbours of the point. If it is right for all",
            f"  neighbours of some points, at most {self.alpha:g} of samples show any of those.",
            "  Sizes are averages over neighbours, with a band for all points at once.",
        ]
        return "\n".join(
            [*told, *(f"  note: {note}" for note in (*self.notes_on_points, *self.notes))]
        )

    def _points_text(self) -> str:
        if self.rows is None:
            return counted(len(self), "point")
        if len(self) == self.whole.n:
            return "every row"
        return f"{len(self):,} of {self.whole.n:,} rows, drawn at random"

    def _extreme(self, sign: int) -> str:
        """The largest bias of this sign that is shown, and where."""
        wrong = np.flatnonzero(self.flagged & (sign * self.values > 0))
        if not wrong.size:
            return ""
        k = int(wrong[np.argmax(sign * self.values[wrong])])
        ends = f"{self.band.lower[k]:+.3f} to {self.band.upper[k]:+.3f}"
        return f"\n{'':14}most {self.values[k]:+.3f} ({ends}) at {self.where(k)}"

    def where(self, k: int) -> str:
        """A point in words."""
        parts = []
        for column in self.points.columns[:4]:
            cell = column.cell(k)
            shown = column.shown(cell, 4) if isinstance(cell, float) else str(cell)
            parts.append(f"{column.name} {'missing' if cell is None else shown}")
        return ", ".join([*parts, f"prediction {self.points.p[k]:.2f}"])


def _share(mask: BoolArray) -> str:
    return f"{counted(int(mask.sum()), 'point')} ({100 * mask.mean():.1f} %)"


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
    sample: Sample,
    at: Sample | Population | None = None,
    *,
    kernel: LocalKernel | HeldOut | None = None,
    cut: float = CUT,
    fewest: int = FEWEST,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
) -> LocalBias:
    """Where the model is wrong, and by how much, at every row or at other points.

    b(z) = sum_i w_i K(z, z_i) (y_i - p_i) / sum_i w_i K(z, z_i), with z the prediction and the
    covariates, and K cut to compact support. Cost O(n m draws) for m points at most, less where
    supports are small; memory O(m draws).

    Parameters
    ----------
    sample : Sample
    at : Sample or Population, optional
        The points. Default: every row up to 4,000 of them, else 2,000 rows at random.
    kernel : LocalKernel or HeldOut, optional
        Default: widths from (p, x) such that a typical row has 0.7 m^0.8 effective neighbours, m
        being the rows that match it in all categories. `HeldOut()` lets labels of rows set
        log choose the widths.
    cut : float
        Rows whose kernel is below this share of its largest value are no neighbours. 0 is the
        paper's estimator: then every row is everybody's neighbour, and a flag means only that
        the model is wrong somewhere.
    fewest : int
        Effective neighbours below which a point has no value.
    alpha : float
        Of both bands.
    draws : int
    rng : int, Generator or None

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
    checked_sample(sample)
    begun = time.perf_counter()
    draws, seed = checked_reach(draws, alpha), as_seed(rng)
    checked_fewest(fewest)
    fitted, chosen, notes = _with_widths(sample, kernel, cut, seed)
    null = rowwise_null(fitted)
    points, rows = _own_points(sample) if at is None else (_points_of(at, sample), None)
    estimate = estimated_at(
        points,
        rows,
        sample=fitted,
        whole=sample,
        kernel=chosen,
        cut=cut,
        fewest=int(fewest),
        alpha=alpha,
        null=null,
        draws=draws,
        seed=seed,
        notes=(*notes, *bias_notes(fitted, null)),
    )
    return replace(estimate, elapsed=time.perf_counter() - begun)


def checked_fewest(fewest: object) -> None:
    """Refuse what is no number of rows."""
    real = isinstance(fewest, Real) and not isinstance(fewest, bool)
    if not real or not 1 <= fewest < math.inf:  # type: ignore[operator]
        raise InputError(f"fewest must be a number of at least 1, not {fewest!r}")


def _notes_on_points(points: Points, sample: Sample, kernel: LocalKernel) -> list[str]:
    said = []
    for column in points.columns:
        own = sample.column(column.name)
        if column.is_category:
            present = {column.levels[int(code)] for code in np.unique(column.values) if code >= 0}
            unseen = sorted(map(str, present - set(own.levels)))
            if unseen:
                said.append(
                    f"no row of the sample has {column.name} = {listed(unseen)}: unknown there"
                )
    widths = getattr(kernel.prob, "width", None)
    if isinstance(widths, tuple) and widths[0] > WIDE and np.ptp(sample.p) > WIDE:
        said.append(
            "with these covariates hardly anybody is near, so neighbours differ widely in their "
            "predictions and covariates; judge fewer covariates for a more local picture"
        )
    return said


def _own_points(sample: Sample) -> tuple[Points, IntArray]:
    most = sample.n if sample.n <= MAX_POINTS else POINTS_OF_MANY
    rows = smallest_tickets(tickets(0, sample.n), most)
    return sample.points.take(rows), rows


def _points_of(other: object, sample: Sample) -> Points:
    if not isinstance(other, Sample | Population):
        raise InputError(
            f"points must be a Sample or, without labels, a Population(p, x), not a "
            f"{type(other).__name__}"
        )
    by_name = {column.name: column for column in other.columns}
    lacking = [name for name in sample.names if name not in by_name]
    if lacking:
        raise InputError(f"the points lack {listed(lacking)}, which the sample has")
    for column in sample.columns:
        match = by_name[column.name]
        if match.is_category != column.is_category:
            raise InputError(
                f"covariate {column.name!r} is a {column.kind} in the sample and a {match.kind} "
                f"among the points; give it the same kind"
            )
    return Points(other.p, tuple(by_name[name] for name in sample.names))


def _with_widths(
    sample: Sample, kernel: LocalKernel | HeldOut | None, cut: float, seed: int
) -> tuple[Sample, LocalKernel, tuple[str, ...]]:
    """Rows to estimate on, the kernel with its widths, and what to say about the choice."""
    if kernel is None:
        return sample, neighbour_kernel(sample.points), ()
    if isinstance(kernel, LocalKernel):
        return sample, kernel.resolve(sample.points), ()
    if not isinstance(kernel, HeldOut):
        raise InputError(f"kernel must be a LocalKernel, HeldOut() or None, not {kernel!r}")
    shares = [kernel.share / 2, kernel.share / 2, 1 - kernel.share]
    first, second, rest = sample.split(shares, rng=np.random.default_rng([seed, 2]))
    base = neighbour_kernel(rest.points)
    losses = [
        _held_out_loss(first, second, base.widened(factor), cut)
        + _held_out_loss(second, first, base.widened(factor), cut)
        for factor in kernel.factors
    ]
    if not np.isfinite(losses).any():
        raise InputError(
            f"{first.n + second.n} rows are too few to choose widths on: no width offered gives "
            f"most of them {FEWEST} neighbours; take the default kernel, or a larger share"
        )
    factor = kernel.factors[int(np.argmin(losses))]
    note = (
        f"widths x {factor:g} chosen on {first.n + second.n:,} rows, which take no part in the "
        f"estimate; {rest.n:,} do"
    )
    return rest, base.widened(factor), (note,)


def _held_out_loss(fit: Sample, held: Sample, kernel: LocalKernel, cut: float) -> float:
    """Weighted squared error of the local bias as a prediction of residuals; 0 where unknown.

    Infinite where most are: such widths would leave next to nothing to look at.
    """
    rows = smallest_tickets(tickets(0, held.n), POINTS_OF_MANY)
    null = rowwise_null(fit)
    weights = Neighbours(held.points.take(rows), kernel, cut)
    averages = average(fit, weights, null, draws=0, seed=0, title="widths")
    enough = np.nan_to_num(averages.moments.size) >= FEWEST
    if enough.mean() < MOSTLY:
        return math.inf
    predicted = np.where(enough, np.nan_to_num(averages.values), 0.0)
    w, e = held.weights_or_ones[rows], held.residuals[rows]
    return float(w @ (e - predicted) ** 2 / w.sum())


def estimated_at(
    points: Points,
    rows: IntArray | None,
    *,
    sample: Sample,
    whole: Sample,
    kernel: LocalKernel,
    cut: float,
    fewest: int,
    alpha: float,
    null: Null,
    draws: int,
    seed: int,
    notes: tuple[str, ...],
) -> LocalBias:
    """The local bias at these points; everything has been checked and resolved."""
    begun = time.perf_counter()
    assert isinstance(null, RowwiseNull)
    averages = average(sample, Neighbours(points, kernel, cut), null, draws, seed)
    size = np.nan_to_num(averages.moments.size)
    enough = np.flatnonzero(size >= fewest)
    kept = averages.take(enough)
    scores = np.abs(kept.null_scores(studentised=False))
    critical = critical_value(scores[:, 1:].max(axis=0, initial=0.0), alpha)

    def at_all(part: FloatArray) -> FloatArray:
        filled = np.full(len(points), np.nan)
        filled[enough] = part
        return filled

    flags, sizes = (
        Band(at_all(band.lower), at_all(band.upper))
        for band in (null_band(kept, critical), mean_intervals(kept, alpha, simultaneous=True))
    )
    return LocalBias(
        sample=sample,
        whole=whole,
        points=points,
        rows=rows,
        kernel=kernel,
        cut=cut,
        fewest=fewest,
        alpha=alpha,
        null=null,
        draws=draws,
        seed=seed,
        values=at_all(kept.values),
        stderr=at_all(kept.stderr),
        size=size,
        witness=averages.sums[:, 0] / sample.weights_or_ones.sum(),
        null_band=flags,
        band=sizes,
        pvalues=at_all(step_down(scores)),
        elapsed=time.perf_counter() - begun,
        notes=notes,
        notes_on_points=tuple(_notes_on_points(points, sample, kernel)),
    )
