"""The data and all draws through an engine: which one, and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from itrust._core import FloatArray, InputError, counted, listed, progress_bar
from itrust.data import Sample, Scan
from itrust.engines import Certificate, Dask, Factor, KernelWork, Plan, Tally, Tiles, Totals
from itrust.kernels import Gram, LocalKernel
from itrust.nulls import AnalyticNull, Null, RowwiseNull, SimulatedNull

Engine = Tiles | Factor | Dask | Literal["auto"]

BATCH_BYTES = 2**28  # residual columns held at once
MAX_ROWS_FOR_EXACT = 20_000  # the statistic alone
MAX_ROWS_FOR_TILES = 60_000  # where the rank does not suffice
MAX_DENSE_ROWS = 5_000  # for eigenvalues
# Seconds, measured on two AVX-512 cores; only their ratios matter.
KERNEL_VALUE, FLOP_64, FLOP_32, REDRAW, PLAN = 2e-9, 7e-12, 3.5e-12, 2e-9, 0.04


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What an engine found.

    Attributes
    ----------
    over_pairs : (1 + draws,) array
        Sum over i != j of w_i e_i P_ij w_j e_j for the data, then for every draw.
    pair_weight : float
        Sum over i != j of w_i w_j.
    spectrum, offset : callables
        The limit law is that of sum l_j z_j^2 - offset.
    """

    over_pairs: FloatArray
    pair_weight: float
    n: int
    impossible: int
    engine: str
    certificate: Certificate | None
    spectrum: Callable[[], FloatArray]
    offset: Callable[[], float]
    notes: tuple[str, ...] = ()


def evaluate(
    sample: Sample | Scan,
    kernel: LocalKernel,
    null: Null | None,
    draws: int,
    seed: int,
    engine: Engine,
    progress: bool | None = None,
) -> Evaluation:
    """Run the data and, for a null that draws, its draws.

    Parameters
    ----------
    sample : Sample
    kernel : LocalKernel, resolved
    null : Null or None
        None: the data alone.
    """
    simulated = null if isinstance(null, SimulatedNull) else None
    redraw = simulated if isinstance(simulated, RowwiseNull) else None
    draws = draws if simulated else 0
    if isinstance(engine, Dask):
        return _with_dask(sample, kernel, null, redraw, draws, seed, engine, progress)
    chosen = choose_engine(sample, kernel, null, draws, engine)
    if isinstance(chosen, Tiles):
        assert isinstance(sample, Sample)
        return _with_tiles(sample, kernel, simulated, draws, seed, chosen, progress)
    factor, plan = chosen
    with progress_bar("rows", sample.n, progress) as advance:
        totals = factor.run(sample, [KernelWork(plan)], redraw, draws, seed, advance)
    found = _from_totals(totals, plan, f"factor of rank {plan.rank}")
    if isinstance(sample, Sample):
        pair_weight = sample.pair_weight / (plan.unit**2 if sample.weights is not None else 1.0)
        return replace(found, pair_weight=pair_weight, notes=sample.notes)
    return replace(found, notes=(*found.notes, *sample.remarks))


def _with_dask(
    scan: Sample | Scan,
    kernel: LocalKernel,
    null: Null | None,
    redraw: RowwiseNull | None,
    draws: int,
    seed: int,
    engine: Dask,
    progress: bool | None,
) -> Evaluation:
    if not isinstance(scan, Scan):
        raise InputError("Dask reads files; pass itrust.scan(...) instead of a Sample in memory")
    refuse_what_needs_all_rows(kernel, null)
    parts = engine.survey(scan)
    plan = engine.factor.plan(scan, kernel)
    with progress_bar("rows", scan.n, progress) as advance:
        totals = engine.run(scan, parts, [KernelWork(plan)], redraw, draws, seed, advance)
    return _from_totals(totals, plan, f"factor of rank {plan.rank} on {len(parts)} Dask partitions")


def _from_totals(totals: Totals, plan: Plan, engine: str) -> Evaluation:
    checked_tally(totals.tally)
    (sums,) = totals.parts
    pair_weight = totals.tally.pair_weight
    spectrum = sums.spectrum
    return Evaluation(
        over_pairs=finite(sums.over_pairs()),
        pair_weight=pair_weight,
        n=totals.tally.rows,
        impossible=totals.tally.impossible,
        engine=engine,
        certificate=sums.certificate(plan, pair_weight),
        spectrum=spectrum,
        offset=lambda: float(spectrum().sum()),
        notes=tally_notes(totals.tally),
    )


def checked_tally(tally: Tally) -> Tally:
    """Refuse rows in files that a `Sample` would have refused."""
    if len(tally.other_labels) > 1:
        raise InputError(
            f"label must have two values, but besides the positive one there are "
            f"{listed(tally.other_labels)}"
        )
    if tally.pair_weight <= 0:
        raise InputError("weights are zero in all rows but at most one; two rows must count")
    return tally


def tally_notes(tally: Tally) -> tuple[str, ...]:
    """What only a whole pass can know about rows in files."""
    said = (
        [f"dropped {counted(tally.dropped, 'row')} with missing covariates"]
        if tally.dropped
        else []
    )
    if tally.positives in (0, tally.rows):
        said.append(f"one class only: every label counts as {int(tally.positives > 0)}")
    if tally.certain == tally.rows:
        said.append("every p is 0 or 1: are these predicted classes instead of probabilities?")
    return tuple(said)


def checked_engine(engine: object) -> None:
    """Refuse what is no engine."""
    if engine != "auto" and not isinstance(engine, Tiles | Factor | Dask):
        raise InputError(
            f"engine must be 'auto' or one of itrust.engines (Tiles(), Factor(), Dask(client)), "
            f"not {engine!r}"
        )


def choose_engine(
    sample: Sample | Scan,
    kernel: LocalKernel,
    null: Null | None,
    draws: int,
    engine: Tiles | Factor | Literal["auto"],
    most_rows_for_tiles: int | None = None,
    factor_of_auto: Factor | None = None,
) -> Tiles | tuple[Factor, Plan]:
    """Tiles or a factor with its plan, by cost and the label-free certificate.

    `most_rows_for_tiles` counts where the rank does not suffice; `factor_of_auto` has the
    tolerance and rank that "auto" asks for.
    """
    checked_engine(engine)
    if isinstance(engine, Factor) or isinstance(sample, Scan):
        refuse_what_needs_all_rows(kernel, null)
    if isinstance(sample, Scan):
        if isinstance(engine, Tiles):
            raise InputError("tiles need a Sample in memory; use scan.load() or engine='auto'")
        factor = engine
        if factor == "auto":
            factor = factor_of_auto or Factor(tolerance=0.001 if null is None else 0.01)
        return factor, factor.plan(sample, kernel)
    if isinstance(engine, Tiles):
        return engine
    if _needs_all_rows(kernel, null):
        return Tiles()
    dense = not isinstance(null, AnalyticNull) or sample.n <= MAX_DENSE_ROWS
    if engine == "auto" and null is not None and dense and _tile_seconds(sample.n, draws) < PLAN:
        return Tiles()
    factor = engine
    if factor == "auto":
        factor = replace(factor_of_auto or Factor(), pilot=_pilot_rows(sample.n))
    if null is None and engine == "auto":  # the statistic alone: tiles are cheap for long
        if sample.n <= MAX_ROWS_FOR_EXACT:
            return Tiles()
        factor = replace(factor, tolerance=0.001)
    plan = factor.plan(sample, kernel)
    if engine == "auto" and _tiles_are_better(
        sample.n, draws, plan, factor, null, most_rows_for_tiles or MAX_ROWS_FOR_TILES
    ):
        return Tiles()
    return factor, plan


def refuse_what_needs_all_rows(kernel: LocalKernel, null: Null | None) -> None:
    """Refuse kernels and nulls that a stream of chunks cannot serve."""
    needy = _needs_all_rows(kernel, null)
    if needy:
        raise InputError(
            f"{needy} needs all rows at once; use a Sample in memory (scan.load()) with "
            f"itrust.engines.Tiles()"
        )


def _needs_all_rows(kernel: LocalKernel, null: Null | None) -> str | None:
    """What about the task rules a stream of chunks out, if anything."""
    if kernel.is_positional:
        return "a precomputed matrix"
    whole = isinstance(null, SimulatedNull) and not isinstance(null, RowwiseNull)
    return f"{type(null).__name__}()" if whole else None


def _pilot_rows(n: int) -> int:
    """With few rows, choosing landmarks from many would take longer than using them."""
    return min(Factor.pilot, max(1_500, n // 3))


def _tile_seconds(n: int, draws: int) -> float:
    return n**2 / 2 * (KERNEL_VALUE + 2 * (1 + draws) * FLOP_64)


def _tiles_are_better(
    n: int, draws: int, plan: Plan, factor: Factor, null: Null | None, most_rows: int
) -> bool:
    if isinstance(null, AnalyticNull) and n > MAX_DENSE_ROWS:
        return False
    if plan.error > factor.tolerance:
        return n <= most_rows
    landmarks = len(plan.landmarks) / max(len(plan.blocks), 1)
    rank = plan.rank / max(len(plan.blocks), 1)
    row = landmarks * (KERNEL_VALUE + 2 * rank * FLOP_32)
    row += 2 * rank * (rank + 1 + draws) * FLOP_32 + draws * REDRAW
    return n * row > _tile_seconds(n, draws)


def _with_tiles(
    sample: Sample,
    kernel: LocalKernel,
    null: SimulatedNull | None,
    draws: int,
    seed: int,
    tiles: Tiles,
    progress: bool | None,
) -> Evaluation:
    n = sample.n
    gram = kernel.gram(sample.points)
    batch = max(64, BATCH_BYTES // (8 * n))
    batches = [range(at, min(at + batch, draws)) for at in range(0, max(draws, 1), batch)]
    sums = []
    with progress_bar("redrawing", len(batches) * n * (n + tiles.tile) / 2, progress) as advance:
        for block in batches:
            # The data are a column of the same product as the draws, so that ties stay ties.
            data = int(block.start == 0)
            residuals = np.empty((n, data + len(block)))
            residuals[:, :data] = sample.residuals[:, None]
            if null:
                null.fill(residuals[:, data:], sample, block, seed)
            if sample.weights is not None:
                residuals *= sample.weights_or_ones[:, None]
            sums.append(tiles.forms(gram, residuals, advance))
    return Evaluation(
        over_pairs=finite(np.concatenate(sums)),
        pair_weight=sample.pair_weight,
        n=n,
        impossible=int(sample.impossible.size),
        engine=str(tiles),
        certificate=None,
        spectrum=lambda: _eigenvalues(sample, gram),
        offset=lambda: 0.0,  # the diagonal is zero, and so is the sum of the eigenvalues
        notes=sample.notes,
    )


def _eigenvalues(sample: Sample, gram: Gram) -> FloatArray:
    """Eigenvalues of w_i w_j P_ij sqrt(v_i v_j) with a zero diagonal."""
    if sample.n > MAX_DENSE_ROWS:
        raise InputError(
            f"Spectral() takes up to {MAX_DENSE_ROWS:,} rows with tiles, this sample has "
            f"{sample.n:,}; use Bernoulli(), which is exact, or itrust.engines.Factor()"
        )
    root = sample.weights_or_ones * np.sqrt(sample.p * (1 - sample.p))
    matrix = gram.block(slice(None), slice(None))
    matrix *= root[:, None]
    matrix *= root
    np.fill_diagonal(matrix, 0.0)
    return np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)


def finite(sums: FloatArray) -> FloatArray:
    """Pass sums on; refuse what overflowed."""
    if not np.isfinite(sums).all():
        raise InputError("the statistic is not finite; rescale the columns that the kernel sees")
    return sums
