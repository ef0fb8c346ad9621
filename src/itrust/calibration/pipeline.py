"""Every entry of a dictionary on the data and on all draws, brought to one scale.

An entry's value is divided by its null standard deviation, and by the ratio of observed to expected
residual variance where that exceeds 1 (which, for entries of one feature and many rows, makes it
hold for "no bias along this entry", too; entries of several features promise the sharp null alone);
then it becomes minus the log of its approximate null tail, a shifted gamma law with the
exact first three moments. The map is the same for the data and all draws, so a bad approximation
costs power, never validity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from itrust._core import (
    Advance,
    AnyArray,
    BoolArray,
    FloatArray,
    InputError,
    did_you_mean,
    progress_bar,
)
from itrust.calibration.dictionary.bank import (
    Bank,
    BankSums,
    Shapes,
    make_bank,
    planned_shape,
    third_moments,
    tiled_shape,
)
from itrust.calibration.dictionary.entries import Dictionary, Entry
from itrust.calibration.evaluate import (
    Engine,
    checked_tally,
    choose_engine,
    finite,
    refuse_what_needs_all_rows,
    tally_notes,
)
from itrust.calibration.tails import pearson3_log_sf
from itrust.data import Chunk, Points, Sample, Scan
from itrust.engines import (
    Certificate,
    Dask,
    Factor,
    KernelWork,
    Plan,
    Sums,
    Tiles,
    Totals,
    Work,
    weight_unit,
)
from itrust.kernels import LocalKernel
from itrust.nulls import RowwiseNull

MAX_ROWS_FOR_TILES = 8_000  # where the rank does not suffice
SMALL_WORK = 2e10  # multiply-adds up to which double precision costs nothing
BATCH_BYTES = 2**28
FAINT_DIAGONAL = 0.1  # of the squared norm, below which traces need no correction
CHUNK_BYTES = 2**26
# For kernels other than the default one, which lend power and no number to the report:
ROUGHLY, RANK_OF_OTHERS = 0.05, 128


@dataclass(frozen=True, eq=False)
class Looks:
    """What every entry shows, data first.

    Attributes
    ----------
    entries : those with null variance
    weights : (E,) array
        Of the entries; they sum to 1.
    tails : (E, 1 + draws) array
        Minus the log of the approximate null tail.
    standard : (E, 1 + draws) array
        The standardised values behind them.
    single : (E,) array
        Whether an entry is the sum of residuals along a single feature, which has a sign.
    sd, skewness : (E,) arrays
        Of every entry's value under the null, all rows: of the sum along a single feature, else
        of the form.
    statistic : (1 + draws,) array
        KLCE^2 of the default kernel.
    """

    entries: tuple[Entry, ...]
    weights: FloatArray
    tails: FloatArray
    standard: FloatArray
    single: BoolArray
    sd: FloatArray
    skewness: FloatArray
    statistic: FloatArray
    kernel: LocalKernel
    n: int
    impossible: int
    engine: str
    certificate: Certificate | None
    notes: tuple[str, ...]

    @cached_property
    def scores(self) -> FloatArray:
        """Tails plus the logs of the weights, (E, 1 + draws): the scale of comparison."""
        return self.tails + np.log(self.weights)[:, None]

    @property
    def combined(self) -> FloatArray:
        """The largest score of the data and of every draw, (1 + draws,).

        Maximum and soft maximum have the same power in the study; with the maximum the
        smallest adjusted p-value is that of the whole test.
        """
        if not self.entries:
            return np.zeros(self.statistic.size)
        return np.array(self.scores.max(axis=0))


@dataclass(frozen=True, eq=False)
class _Kernel:
    """A kernel, how it is evaluated, and its null moments on pilot rows."""

    entry: Entry | None  # None: only for the statistic
    kernel: LocalKernel
    how: Tiles | Plan
    shape: Shapes


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that can be known before a label is looked at."""

    sample: Sample | Scan
    bank: Bank
    kernels: tuple[_Kernel, ...]
    main: int  # which of the kernels is the default one
    factor: Factor
    engine: Engine
    weights: FloatArray
    notes: tuple[str, ...]

    @property
    def columns_at_once(self) -> int:
        """Draws in work at a time."""
        rows = len(self.bank.features) + len(self.bank.entries) + 1
        rows += sum(k.how.rank for k in self.kernels if isinstance(k.how, Plan))
        if isinstance(self.sample, Sample) and self._tiled:
            rows += self.sample.n
        return max(256, BATCH_BYTES // (8 * rows))

    @property
    def _tiled(self) -> bool:
        return any(isinstance(k.how, Tiles) for k in self.kernels)

    @property
    def is_single(self) -> BoolArray:
        """Entries that are the sum of residuals along a single feature, (E,)."""
        found = np.zeros(self.weights.size, dtype=bool)
        found[: self.bank.single.size] = self.bank.single >= 0
        return found

    @property
    def works(self) -> list[Work]:
        """What one pass over the rows sums up."""
        plans = [KernelWork(k.how) for k in self.kernels if isinstance(k.how, Plan)]
        return [self.bank, *plans]


def prepare(
    sample: Sample | Scan,
    dictionary: Dictionary,
    null: RowwiseNull,
    draws: int,
    engine: Engine,
    default: LocalKernel | None = None,
) -> Prepared:
    """Choose features, landmarks and engines from predictions and covariates alone.

    `default` is the default kernel with its widths, where it is known already.
    """
    if isinstance(engine, Dask):
        if not isinstance(sample, Scan):
            raise InputError(
                "Dask reads files; pass itrust.scan(...) instead of a Sample in memory"
            )
        engine.survey(sample)
    strange = [name for name in dictionary.covariates if name not in sample.names]
    if strange:
        hint = did_you_mean(strange[0], sample.names)
        raise InputError(f"the dictionary looks at {strange[0]!r}, which the sample lacks; {hint}")
    factor = engine.factor if isinstance(engine, Dask) else engine
    factor = factor if isinstance(factor, Factor) else Factor()
    pilot, variances = sample.pilot(factor.pilot)
    unit = weight_unit(pilot, variances)
    variances = variances / unit**2
    made_of_features = [entry for entry in dictionary.entries if entry.kernel is None]
    bank = make_bank(made_of_features, pilot, variances, unit)
    work = float(sample.n) * (len(bank.features) + len(bank.entries)) * (1 + draws)
    bank = replace(bank, dtype=np.float64 if work <= SMALL_WORK else np.float32)
    default = default or LocalKernel().resolve(pilot)
    asked = (null, draws, engine, factor)
    kernels, main = _kernels(sample, dictionary, default, pilot, variances, *asked)
    entries = (*bank.entries, *(k.entry for k in kernels if k.entry))
    weights = replace(dictionary, entries=entries).weights() if entries else ()
    wide = len(bank.features) + len(bank.entries)
    chunk = int(np.clip(CHUNK_BYTES // (8 * max(wide, 1)), 256, factor.chunk))
    return Prepared(
        sample=sample,
        bank=bank,
        kernels=kernels,
        main=main,
        factor=replace(factor, chunk=chunk),
        engine=engine,
        weights=np.array(weights),
        notes=dictionary.notes,
    )


def _kernels(
    sample: Sample | Scan,
    dictionary: Dictionary,
    default: LocalKernel,
    pilot: Points,
    variances: FloatArray,
    null: RowwiseNull,
    draws: int,
    engine: Engine,
    factor: Factor,
) -> tuple[tuple[_Kernel, ...], int]:
    """Entries that are kernels, and the default kernel for the statistic."""
    listed: list[tuple[Entry | None, LocalKernel]] = [
        (entry, entry.kernel.resolve(pilot, partial=True))
        for entry in dictionary.entries
        if entry.kernel is not None
    ]
    if default not in [kernel for _, kernel in listed]:
        listed.append((None, default))
    found: list[_Kernel] = []
    main = 0
    for entry, kernel in listed:
        rough = replace(
            factor,
            tolerance=max(factor.tolerance, ROUGHLY),
            max_rank=min(factor.max_rank, RANK_OF_OTHERS),
        )
        how = _how(sample, kernel, null, draws, engine, factor if kernel == default else rough)
        shape = _shape(sample, kernel, how, pilot, variances)
        if kernel == default:
            main = len(found)
        alive = how.rank > 0 if isinstance(how, Plan) else bool(shape.variance[0] > 0)
        if alive or kernel == default:
            found.append(_Kernel(entry if alive else None, kernel, how, shape))
    return tuple(found), main


def _shape(
    sample: Sample | Scan,
    kernel: LocalKernel,
    how: Tiles | Plan,
    pilot: Points,
    variances: FloatArray,
) -> Shapes:
    """Null moments: of all rows with tiles, else of some, which the pass makes good for."""
    if isinstance(how, Plan):
        return planned_shape(how, pilot, variances, third_moments(pilot.p, variances))
    assert isinstance(sample, Sample)
    w = sample.weights_or_ones / weight_unit(*sample.pilot(Factor.pilot))
    v = w**2 * sample.p * (1 - sample.p)
    return tiled_shape(kernel.gram(sample.points), how, v, third_moments(sample.p, v))


def _how(
    sample: Sample | Scan,
    kernel: LocalKernel,
    null: RowwiseNull,
    draws: int,
    engine: Engine,
    factor: Factor,
) -> Tiles | Plan:
    if isinstance(engine, Dask):
        refuse_what_needs_all_rows(kernel, null)
        return factor.plan(sample, kernel)
    if isinstance(engine, Tiles) or engine != "auto":
        chosen = choose_engine(
            sample, kernel, null, draws, engine if isinstance(engine, Tiles) else factor
        )
    else:
        chosen = choose_engine(sample, kernel, null, draws, "auto", MAX_ROWS_FOR_TILES, factor)
    return chosen if isinstance(chosen, Tiles) else chosen[1]


def look(
    prepared: Prepared, null: RowwiseNull, draws: int, seed: int, progress: bool | None = None
) -> Looks:
    """Take the data and all draws past every entry."""
    size = prepared.columns_at_once
    batches = [range(at, min(at + size, draws)) for at in range(0, draws, size)]
    found: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    first: _Batch | None = None
    tiled = sum(isinstance(k.how, Tiles) for k in prepared.kernels)
    amount = prepared.sample.n * len(batches) * (1 + tiled)
    with progress_bar("looking", amount, progress) as advance:
        for block in batches:
            batch = _batch(prepared, null, block, seed, advance)
            first = first or batch
            keep = slice(0 if block.start == 0 else 1, None)
            tails, standard = _on_one_scale(prepared, batch)
            found.append((tails[:, keep], standard[:, keep], batch.statistic[keep]))
    assert first is not None
    tails, standard, statistic = (np.concatenate(p, axis=-1) for p in zip(*found, strict=True))
    law = _law(prepared, first)
    bank, main = prepared.bank, prepared.kernels[prepared.main]
    entries = (*bank.entries, *(k.entry for k in prepared.kernels if k.entry))
    tally = first.totals.tally
    source = prepared.sample
    notes = source.notes if isinstance(source, Sample) else (*tally_notes(tally), *source.remarks)
    certificate, engine = None, str(main.how)
    if isinstance(main.how, Plan):
        certificate = first.sums[prepared.main].certificate(main.how, first.pair_weight)
        engine = f"factor of rank {main.how.rank}"
        if isinstance(prepared.engine, Dask) and isinstance(source, Scan):
            parts = prepared.engine.survey(source)
            engine = f"{engine} on {len(parts)} Dask partitions"
    return Looks(
        entries=entries,
        weights=prepared.weights,
        tails=tails,
        standard=standard,
        single=prepared.is_single,
        sd=law[0],
        skewness=law[1],
        statistic=finite(statistic),
        kernel=main.kernel,
        n=tally.rows,
        impossible=tally.impossible,
        engine=engine,
        certificate=certificate,
        notes=(*notes, *prepared.notes),
    )


@dataclass(frozen=True, eq=False)
class _Batch:
    """Sums over all rows for the data and some draws."""

    totals: Totals
    bank: BankSums
    sums: dict[int, Sums]  # of the kernels with a plan
    forms: FloatArray  # (kernels, columns), without the diagonal
    diagonals: FloatArray
    expected: FloatArray
    statistic: FloatArray
    pair_weight: float


def _batch(
    prepared: Prepared, null: RowwiseNull, block: range, seed: int, advance: Advance
) -> _Batch:
    redraw = _From(null, block.start)
    if isinstance(prepared.engine, Dask):
        assert isinstance(prepared.sample, Scan)
        engine = replace(prepared.engine, factor=prepared.factor)
        parts = prepared.engine.survey(prepared.sample)
        totals = engine.run(
            prepared.sample, parts, prepared.works, redraw, len(block), seed, advance
        )
    else:
        totals = prepared.factor.run(
            prepared.sample, prepared.works, redraw, len(block), seed, advance
        )
    checked_tally(totals.tally)
    with_plan = [k for k, kernel in enumerate(prepared.kernels) if isinstance(kernel.how, Plan)]
    sums = dict(zip(with_plan, totals.parts[1:], strict=True))
    count = len(prepared.kernels)
    forms, diagonals, expected = (
        np.zeros((count, 1 + len(block))),
        np.zeros((count, 1 + len(block))),
        np.zeros(count),
    )
    for k, found in sums.items():
        forms[k], diagonals[k], expected[k] = found.over_pairs(), found.diagonal, found.expected
    if len(sums) < count:
        _with_tiles(prepared, null, block, seed, (forms, diagonals, expected), advance)
    pair_weight = totals.tally.pair_weight
    if isinstance(prepared.sample, Sample):  # without cancellation
        unit = prepared.bank.unit if prepared.sample.weights is not None else 1.0
        pair_weight = prepared.sample.pair_weight / unit**2
    statistic = forms[prepared.main] / pair_weight
    return _Batch(totals, totals.parts[0], sums, forms, diagonals, expected, statistic, pair_weight)


def _with_tiles(
    prepared: Prepared,
    null: RowwiseNull,
    block: range,
    seed: int,
    found: tuple[FloatArray, FloatArray, FloatArray],
    advance: Advance,
) -> None:
    """Fill in the rows of the kernels that are taken as they are."""
    sample = prepared.sample
    assert isinstance(sample, Sample)
    forms, diagonals, expected = found
    weights = sample.weights_or_ones / prepared.bank.unit
    residuals = np.empty((sample.n, 1 + len(block)))
    residuals[:, 0] = sample.residuals
    null.fill(residuals[:, 1:], sample, block, seed)
    residuals *= weights[:, None]
    squares = np.square(residuals)
    v = weights**2 * sample.p * (1 - sample.p)
    for k, kernel in enumerate(prepared.kernels):
        if isinstance(kernel.how, Tiles):
            gram = kernel.kernel.gram(sample.points)
            diagonal = gram.diagonal()
            forms[k] = kernel.how.forms(gram, residuals)
            diagonals[k], expected[k] = diagonal @ squares, float(diagonal @ v)
            advance(sample.n)


@dataclass(frozen=True)
class _From:
    """The draws of a null from a later number on."""

    null: RowwiseNull
    first: int

    def draw(self, chunk: Chunk, draws: range, seed: int) -> AnyArray:
        return self.null.draw(chunk, range(draws.start + self.first, draws.stop + self.first), seed)


def _law(prepared: Prepared, batch: _Batch) -> tuple[FloatArray, FloatArray]:
    """Standard deviation and skewness of every entry under the null, (E,) each."""
    bank, expected = prepared.bank, batch.bank.expected
    is_single = bank.single >= 0
    sd, skewness = bank.shapes.of_forms(expected)
    sd = np.where(is_single, np.sqrt(expected), sd)
    skewness = np.where(is_single, bank.shapes.skewness_of_singles(expected), skewness)
    found = [(sd, skewness)]
    for k, kernel in enumerate(prepared.kernels):
        if kernel.entry is not None:
            shape = kernel.shape
            if k in batch.sums:  # the pass has seen all rows, the shape only some
                sums, ratio = batch.sums[k], batch.expected[k] / shape.expected[0]
                triangles = shape.triangles * ratio**3
                if sums.diagonal2 < FAINT_DIAGONAL * sums.norm2:  # then all rows can tell
                    triangles = np.array(
                        [8 * sum(float(np.trace(c @ c @ c)) for c in sums.moments)]
                    )
                shape = replace(
                    shape,
                    expected=batch.expected[[k]],
                    variance=np.array([2 * sums.norm2]),
                    triangles=triangles,
                    pairs=shape.pairs * ratio**2,
                )
            found.append(shape.of_forms(batch.expected[[k]]))
    sds, skews = zip(*found, strict=True)
    return np.concatenate(sds), np.concatenate(skews)


def _on_one_scale(prepared: Prepared, batch: _Batch) -> tuple[FloatArray, FloatArray]:
    """Minus the log tails and the standardised values of all entries, (E, columns)."""
    bank, sums = prepared.bank, batch.bank
    kernels = [k for k, kernel in enumerate(prepared.kernels) if kernel.entry is not None]
    values = bank.selector @ np.square(sums.forms) - sums.diagonals
    is_single = prepared.is_single
    scales = np.sqrt(np.asarray(bank.selector.sum(axis=1)).ravel())
    own = np.flatnonzero(bank.single >= 0)
    values[own] = sums.forms[bank.single[own]] * scales[own, None]
    values = np.concatenate([values, batch.forms[kernels]])
    diagonals = np.concatenate([sums.diagonals, batch.diagonals[kernels]])
    expected = np.concatenate([sums.expected, batch.expected[kernels]])[:, None]
    sd, skewness = (value[:, None] for value in _law(prepared, batch))
    # More variance than expected is taken out; less is not, for rare events would blow up.
    swollen = np.maximum(diagonals / expected, 1.0)
    unit = sd * np.where(is_single[:, None], np.sqrt(swollen), swollen)
    standard = np.divide(values, unit, out=np.zeros_like(values), where=unit > 0)
    # The sum along a feature is taken in both directions; its longer tail gets its length.
    sign = np.where(is_single[:, None], np.sign(standard), 1.0)
    log_tails = pearson3_log_sf(sign * standard, np.maximum(sign * skewness, 0.0))
    tails = -log_tails - np.where(is_single, np.log(2), 0.0)[:, None]
    return np.where(is_single[:, None], np.maximum(tails, 0.0), tails), standard
