"""From a survey to scores: every check of a dictionary on the data and on all draws.

There is one way for every test. What can be known before a label is looked at is `Prepared`. Then
several checks are brought to one scale, so that the largest can be compared with its draws; a
single kernel is a dictionary of one check, which is compared as it is.

A check's value is divided by its null standard deviation; then it becomes minus the log of its
approximate null tail, a shifted gamma law with the exact first three moments. The map is the same
for the data and all draws, so a bad approximation costs power, never validity. Where labels are
redrawn from their probabilities, nothing else is done: dividing by the variance of the observed
residuals, too, would hide the very thing that is looked for where events are rare and too many
come true. Draws that keep the size of residuals are divided by the ratio of observed to expected
variance where that exceeds 1, so that checks stay comparable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np

from itrust._core import AnyArray, BoolArray, FloatArray, IntArray, place_of, progress_bar
from itrust.calibration.dictionary.bank import Bank, BankSums, make_bank
from itrust.calibration.dictionary.default import SCANNED, default_dictionary_for
from itrust.calibration.dictionary.entries import Dictionary, Entry
from itrust.calibration.dictionary.scan import CellSums, Grid, RegionLaw
from itrust.calibration.tails import (
    COLUMNS_AT_ONCE,
    largest_of,
    pearson3_log_sf,
    step_down,
    unadjusted_pvalues,
)
from itrust.data import Sample
from itrust.engines import (
    Certificate,
    Drawing,
    Engine,
    KernelOutcome,
    NullMoments,
    Outcome,
    Plan,
    Purpose,
    Survey,
    Tally,
    Work,
    finite,
    run_together,
    work_of_parts,
)
from itrust.kernels import LocalKernel
from itrust.nulls import AnalyticNull, Facts, Null, SimulatedNull, is_symmetric

SMALL_WORK = 2e9  # multiply-adds up to which double precision costs nothing
ROWS_AT_ONCE = 65_536
MOMENT_DRAWS = 199  # that give the scale where rows come in clusters
SLACK = 1.2  # ratio of a spread to that of independent rows up to which the latter is taken


# A kernel of a test: its check, if it is one, its plan, and moments of the form under the null.
PlannedKernel = tuple[Entry | None, Plan, NullMoments | None]


@dataclass(frozen=True, eq=False)
class Prepared:
    """All that can be known before a label is looked at."""

    survey: Survey
    engine: Engine
    dictionary: Dictionary
    bank: Bank
    kernels: tuple[PlannedKernel, ...] = ()
    main: int = 0
    is_alone: bool = False
    null: Null | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The checks that can vary: those made of features, scans of regions, then kernels."""
        grids = (grid.entry for grid in self.bank.grids)
        return (*self.bank.entries, *grids, *(entry for entry, _, _ in self.kernels if entry))

    @cached_property
    def weights(self) -> FloatArray:
        """Of these checks, (E,)."""
        entries = self.entries
        return np.array(replace(self.dictionary, entries=entries).weights() if entries else ())

    @property
    def is_single(self) -> BoolArray:
        """Whether a check is the sum of residuals along a single feature, (E,)."""
        kernels = np.zeros(self.weights.size - self.bank.single.size, dtype=bool)
        return np.concatenate([self.bank.single >= 0, kernels])

    @property
    def main_kernel(self) -> LocalKernel:
        """The kernel that gives the statistic."""
        return self.plans[self.main].kernel

    @property
    def plans(self) -> list[Plan]:
        """How the kernels are evaluated."""
        return [plan for _, plan, _ in self.kernels]

    def works(self, block: range) -> list[Work]:  # noqa: ARG002
        """The bank, unless one kernel is tested by itself."""
        return [] if self.is_alone else [self.bank]

    @property
    def width(self) -> int:
        """Numbers that are kept for each draw, beside those of the plans."""
        return self.bank.kept

    def for_null(self, null: Null | None) -> Prepared:
        """The same checks, brought to one scale as this null needs."""
        studentised = null is not None and null.keeps_residuals
        return replace(self, null=null, bank=replace(self.bank, is_studentised=studentised))

    @property
    def symmetric(self) -> BoolArray:
        """Marks of the checks whose sums over clusters are nearly symmetric, (E,)."""
        return symmetric_checks(self)

    @property
    def draws_give_scale(self) -> bool:
        """Whether scores take their scale from further draws: the null keeps clusters whole."""
        sample, null = self.survey.source.in_memory, self.null
        if null is None or self.is_alone or sample is None or not self.kernels:
            return False
        return null.keeps_clusters and not sample.design.rows_are_independent

    def scaled(self, outcome: Outcome, *, precise: bool = True) -> Batch:
        """One batch on the scale of independent rows; a kernel that is alone as it is."""
        statistic = np.zeros(1)
        if self.kernels:
            statistic = finite(outcome.kernels[self.main].over_pairs / outcome.pair_weight)
        if self.is_alone:
            unknown = np.full(1, np.nan)
            return statistic[None], statistic[None], statistic, unknown, unknown
        kernels = [
            (sums, sums.refined(moments))
            for (entry, _, moments), sums in zip(self.kernels, outcome.kernels, strict=True)
            if entry is not None and moments is not None
        ]
        scaled = on_one_scale(self.bank, outcome.works[0], kernels, precise)
        return *scaled[:2], statistic, *scaled[2:]

    def located(self, sums: BankSums) -> tuple[Entry, ...]:
        """The checks; scans of regions name the region that shows most in the data."""
        found, first = list(self.entries), len(self.bank.entries)
        for k, (grid, cells, expected, variance) in enumerate(grids_of(self.bank, sums), first):
            region, z = grid.best(cells[:, 0] - expected, variance)
            found[k] = replace(grid.entry, where=grid.where(region), direction=int(np.sign(z)))
        return tuple(found)

    def reduced(self, outcome: Outcome, block: range) -> Scores | Batch:
        null = self.null
        checks = self.scaled(outcome, precise=self.draws_give_scale)
        if block.start:
            return checks
        survey, tally = self.survey, outcome.tally
        entries = self.entries if self.is_alone else self.located(outcome.works[0])
        common: dict[str, Any] = {
            "entries": entries,
            "weights": self.weights,
            "is_single": self.is_single,
            "tally": tally,
            "grids": self.bank.grids,
        }
        if not self.kernels:
            return Scores(*checks, **common)
        tail, main = None, outcome.kernels[self.main]
        if isinstance(null, AnalyticNull):
            facts = Facts(
                float(checks[2][0]),
                float(main.over_pairs[0]),
                tally.rows,
                survey.source.weights is not None,
                self.main_kernel.supremum,
                main.spectrum,
            )
            tail = null.tail(facts)
        # A pass tells about rows in files what a sample knows by itself.
        notes = tally.notes if survey.source.in_memory is None else ()
        return Scores(
            *checks,
            **common,
            tail=tail,
            engine=self.engine.describe(survey, self.plans[self.main]),
            certificate=main.certificate(outcome.pair_weight),
            notes=(*notes, *survey.notes, *self.dictionary.notes),
        )

    def finished(self, batches: Sequence[Any]) -> Scores:
        return joined(batches)


def prepare(
    survey: Survey, engine: Engine, dictionary: Dictionary, null: Null, draws: int
) -> Prepared:
    """Choose features, landmarks and plans for many checks, without labels."""
    names = survey.source.names
    for name in dictionary.covariates:
        place_of(name, names, "the dictionary reads {value}, which the sample lacks; {guess}")
    default = LocalKernel().resolve(survey.points)
    made_of_features = [entry for entry in dictionary.entries if entry.kernel is None]
    bank = make_bank(made_of_features, survey.pilot, survey.unit)
    work = float(survey.n) * bank.width * (1 + draws)
    precise = np.float64 if work <= SMALL_WORK else np.float32
    bank = replace(bank, dtype=precise, is_studentised=null.keeps_residuals)
    listed: list[tuple[Entry | None, LocalKernel]] = [
        (entry, entry.kernel.resolve(survey.pilot.points, partial=True))
        for entry in dictionary.entries
        if entry.kernel is not None
    ]
    if default not in [kernel for _, kernel in listed]:
        listed.append((None, default))
    kernels: list[PlannedKernel] = []
    main = 0
    for entry, kernel in listed:
        is_main = kernel == default
        purpose = Purpose(null, draws, among_many=True, is_main=is_main)
        plan = engine.plan(survey, kernel, purpose)
        moments = plan.moments(survey)
        can_vary = plan.can_vary(moments)
        if is_main:
            main = len(kernels)
        if can_vary or is_main:
            kernels.append((entry if can_vary else None, plan, moments))
    return Prepared(survey, engine, dictionary, bank, tuple(kernels), main, null=null)


def scanned(
    engine: Engine, survey: Survey, laws: Sequence[Null], draws: int, seed: int
) -> tuple[Scores, ...]:
    """Scores of the scan of regions alone, under some laws."""
    dictionary = default_dictionary_for(survey.points)
    dictionary = dictionary.only(families=[own for own in SCANNED if own in dictionary.families])
    bank = make_bank(dictionary.entries, survey.pilot, survey.unit)
    checks = Prepared(survey, engine, dictionary, bank, null=laws[0])
    return score_laws(checks, laws, draws, seed)


def prepare_one(
    survey: Survey, engine: Engine, kernel: LocalKernel, null: Null | None, draws: int
) -> Prepared:
    """The same for a single kernel, which is a dictionary of one check."""
    dictionary = Dictionary.of_one(kernel, survey.source.names)
    draws = draws if isinstance(null, SimulatedNull) else 0
    plan = engine.plan(survey, kernel, Purpose(null, draws))
    kernels = ((dictionary.entries[0], plan, None),)
    bank = make_bank([], survey.pilot, survey.unit)
    return Prepared(survey, engine, dictionary, bank, kernels, is_alone=True, null=null)


def symmetric_checks(prepared: Prepared) -> BoolArray:
    """Mark the checks whose features all have nearly symmetric sums over clusters, (E,).

    Whether labels of a cluster are independent or all one, the squared skewness of a feature's sum
    must be small and many clusters must carry it. Kernels, which look at small places, are not
    marked, and neither are checks of rows in files or of rows whose clusters are not named. Where
    no event may happen by chance, as in a small group with rare events, flips spread next to
    nothing, and the check would be the most striking one: there the spread that the probabilities
    expect counts where it is larger.
    """
    marked = np.zeros(prepared.weights.size, dtype=bool)
    sample = prepared.survey.source.in_memory
    bank = prepared.bank
    if sample is None or not bank.entries or sample.design.known_by_replicates:
        return marked
    features = _symmetric_features(bank, sample.outcome(bank.outcome))
    for k in range(len(bank.entries)):
        marked[k] = features[bank.features_of(k)[0]].all()
    return marked


def _symmetric_features(bank: Bank, sample: Sample) -> BoolArray:
    """The same for every feature and mixture of features, (R + Q,)."""
    width, units = bank.selector.shape[1], sample.design.units
    order = np.argsort(units, kind="stable")
    alone, together = np.zeros((3, width)), np.zeros((3, width))
    for rows in whole_clusters(units[order], min(bank.max_rows, ROWS_AT_ONCE)):
        chosen = order[rows]
        p, w = sample.p[chosen], sample.weights_or_ones[chosen]
        f = bank.matrix(sample.points.take(chosen)) * w
        v = p * (1 - p)
        first = np.flatnonzero(np.diff(units[chosen], prepend=-1))
        parts = np.square(f) * v, f, np.abs(f), np.abs(f) * p
        spread, mass, size, predicted = (np.add.reduceat(part, first, axis=1) for part in parts)
        third = f**3 @ (v * (1 - 2 * p))
        alone += np.stack([spread.sum(axis=1), third, np.square(spread).sum(axis=1)])
        # If a cluster had one label, its probability being the mean over the feature's size.
        mean = np.divide(predicted, size, out=np.zeros_like(size), where=size > 0)
        variance = mass**2 * mean * (1 - mean)
        skew = variance * mass * (1 - 2 * mean)
        sums = variance.sum(axis=1), skew.sum(axis=1), np.square(variance).sum(axis=1)
        together += np.stack(sums)
    return np.asarray(is_symmetric(*alone) & is_symmetric(*together))


def whole_clusters(units: IntArray, size: int) -> Iterator[slice]:
    """Slices of sorted units, of so many rows or of one cluster: none is torn."""
    ends = np.append(np.flatnonzero(np.diff(units)) + 1, units.size)
    at = 0
    while at < units.size:
        # The last end that fits, or the first end there is.
        fits, first = np.searchsorted(ends, [at + size, at], side="right")
        stop = int(ends[max(fits - 1, first)])
        yield slice(at, stop)
        at = stop


# Log tails and standardised values of all checks for the data, which come first, and some draws,
# (E, 1 + draws), the statistic, and the law of every check: its standard deviation and skewness.
Batch = tuple[FloatArray, AnyArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Scores:
    """What every check shows, the data first; what begins a `Batch` begins this."""

    log_tails: FloatArray
    standardised: AnyArray
    statistic: FloatArray
    sd: FloatArray
    skewness: FloatArray
    _: KW_ONLY
    entries: tuple[Any, ...] = ()  # None where it is not an entry of the dictionary
    weights: FloatArray
    is_single: BoolArray
    tally: Tally
    grids: tuple[Grid, ...] = ()
    tail: float | None = None
    engine: str = ""
    certificate: Certificate | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def log_weights(self) -> FloatArray:
        """What is added to the tails, (E,): the sums are the scale of comparison, the scores."""
        return np.asarray(np.log(self.weights))

    @cached_property
    def observed(self) -> FloatArray:
        """The score of every check on the data, (E,)."""
        return np.asarray(self.log_tails[:, 0] + self.log_weights)

    @property
    def is_region(self) -> BoolArray:
        """Marks of the scans of regions, (E,)."""
        marks = [entry is not None and bool(entry.crossed) for entry in self.entries]
        return np.array(marks, dtype=bool)

    def region_law(self, *, independent: bool) -> RegionLaw:
        """How large the scores of scans of regions are if the model is calibrated."""
        some = self.is_region
        scores = self.standardised[some].astype(float)
        return RegionLaw.of(scores, self.log_weights[some], independent=independent)

    @property
    def combined(self) -> FloatArray:
        """The largest score of the data and of every draw, (1 + draws,).

        Maximum and soft maximum have the same power in the study; with the maximum the
        smallest adjusted p-value is that of the whole test.
        """
        if not self.weights.size:
            return np.zeros(self.log_tails.shape[1])
        return largest_of(self.log_tails, self.log_weights)

    def on_scale_of(self, others: Batch, is_symmetric: BoolArray, *, keeps_residuals: bool) -> Self:
        """The same checks on the scale of draws, where no closed form has their moments.

        The moments are those of other draws, so that data and draws are treated alike, and a
        strong bias does not hide itself by what it adds to them. Sums along a single feature have
        mean 0, for every label keeps its probability. Where few events may happen, some draws tell
        little of a tail: there spread and skewness are at least those of independent rows.
        """
        single, symmetric = self.is_single[:, None], is_symmetric[:, None]
        drawn = others[1][:, 1:]
        mean = np.where(single, 0.0, drawn.mean(axis=1, keepdims=True))
        drawn = drawn - mean
        sd = np.sqrt(np.square(drawn).mean(axis=1, keepdims=True))
        sd = np.where(symmetric, sd, np.maximum(sd, 1.0))
        sd = np.where(sd > 0, sd, 1.0)
        if keeps_residuals:
            sd = np.where(sd > 1, np.maximum(sd / SLACK, 1.0), np.minimum(sd * SLACK, 1.0))
        known, seen = self.skewness[:, None], ((drawn / sd) ** 3).mean(axis=1, keepdims=True)
        skewness = np.where(~symmetric & (np.abs(seen) > np.abs(known)), seen, known)
        standardised = (self.standardised - mean) / sd
        log_tails = log_tails_of(standardised, skewness, single)
        some = self.is_region  # their own draws suffice
        if some.any():
            standardised[some] = self.standardised[some]
            log_tails[some] = self.region_law(independent=False).tails(self.standardised[some])
        return replace(
            self,
            log_tails=log_tails,
            standardised=standardised,
            sd=self.sd * sd[:, 0],
            skewness=skewness[:, 0],
        )


def joined(batches: Sequence[Any]) -> Scores:
    """The scores of the first batch with the draws of the others; its law holds for all."""
    first, *others = batches
    parts: dict[str, Any] = {
        name: np.concatenate([getattr(first, name), *(own[at][..., 1:] for own in others)], axis=-1)
        for at, name in enumerate(("log_tails", "standardised", "statistic"))
        if others
    }
    made: Scores = replace(first, **parts)
    some = made.is_region
    if some.any():
        made.log_tails[some] = made.region_law(independent=True).tails(made.standardised[some])
    return made


def grids_of(bank: Bank, sums: BankSums) -> Iterator[tuple[Grid, AnyArray, FloatArray, FloatArray]]:
    """Grids with sums over their cells, what is taken off them, and their null variances."""
    if not bank.grids:
        return
    first = 0
    cells, (expected, variance, squares) = cast("CellSums", sums[3])
    # More variance than expected is taken out of flipped residuals, which keep their squares.
    variance = np.maximum(variance, squares) if bank.is_studentised else variance
    for grid in bank.grids:
        own = slice(first, first + grid.cells)
        yield grid, cells[own], expected[own], variance[own]
        first += grid.cells


def correlation_of_draws(scores: Scores, checks: IntArray) -> FloatArray:
    """Correlation of what some checks show in the draws, whatever its sign, (E, E)."""
    draws = scores.standardised[checks, 1:].astype(np.float64)
    draws[scores.is_single[checks]] **= 2
    draws -= draws.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(draws, axis=1)
    draws /= np.where(norms > 0, norms, 1.0)[:, None]
    return np.asarray(draws @ draws.T)


def pvalues_of(laws: Sequence[Scores]) -> tuple[FloatArray, FloatArray]:
    """P-values of every check, adjusted for all, and as if it were the only one, (E,) each.

    The largest under all laws count.
    """
    adjusted, alone = (
        np.max([by(law.log_tails, law.log_weights) for law in laws], axis=0)
        for by in (step_down, unadjusted_pvalues)
    )
    return adjusted, alone


def score_laws(
    checks: Any, laws: Sequence[Null | None], draws: int, seed: int, progress: bool | None = None
) -> tuple[Any, ...]:
    """Score the data and all draws by every check, of one outcome or many, under some laws."""
    parts = [checks.for_null(law) for law in laws]
    draws = draws if isinstance(laws[0], SimulatedNull) else 0
    survey, engine = checks.survey, checks.engine
    symmetric = checks.symmetric if parts[0].draws_give_scale else None
    amount, tables = work_of_parts(survey, parts[:1], draws) * len(parts), []
    with progress_bar("drawing", amount, progress) as advance:
        for part, null in zip(parts, laws, strict=True):
            (scores,) = run_together(engine, survey, [part], null, draws, seed, advance)
            if null is not None and symmetric is not None:
                drawing = Drawing(null, range(draws, draws + MOMENT_DRAWS), seed)
                others = part.scaled(engine.run(survey, part.plans, drawing, part.works(range(0))))
                keeps = null.keeps_residuals
                scores = scores.on_scale_of(others, symmetric, keeps_residuals=keeps)
            tables.append(scores)
    return tuple(tables)


def score(
    checks: Any, null: Null | None, draws: int, seed: int, progress: bool | None = None
) -> Any:
    """The same under one law."""
    return score_laws(checks, [null], draws, seed, progress)[0]


def on_one_scale(
    bank: Bank,
    sums: BankSums,
    kernels: Sequence[tuple[KernelOutcome, NullMoments]] = (),
    precise: bool = True,
) -> tuple[FloatArray, AnyArray, FloatArray, FloatArray]:
    """Minus the log tails and the standardised values of all checks, (E, columns).

    Beside them their standard deviations and skewness under the null, (E,). Standardised values
    that need not be precise are kept in single precision.
    """
    (all_forms, diagonals, expected, _), single = sums, bank.single >= 0
    sd, skewness = bank.moments.of_forms(expected)
    sd = np.where(single, np.sqrt(expected), sd)
    skewness = np.where(single, bank.moments.skewness_of_singles(expected), skewness)
    scanned = np.ones(len(bank.grids)), np.zeros(len(bank.grids))
    laws = [(sd, skewness), scanned, *(own.of_forms(np.array([k.expected])) for k, own in kernels)]
    sd, skewness = (np.concatenate(part) for part in zip(*laws, strict=True))
    outcomes = [kernel for kernel, _ in kernels]
    is_single = np.concatenate([single, np.zeros(sd.size - single.size, dtype=bool)])[:, None]
    unit = sd[:, None]
    if bank.is_studentised:
        # More variance than expected is taken out; less is not, for rare events would blow up.
        ones = np.ones((len(bank.grids), diagonals.shape[1]))
        squares = np.concatenate([diagonals, ones, *(own.diagonal[None] for own in outcomes)])
        means = np.array([*expected, *ones[:, 0], *(own.expected for own in outcomes)])[:, None]
        ratio = np.maximum(squares[:, :1] / means, 1.0)
        unit = unit * np.where(is_single, np.sqrt(ratio), ratio)
    several = np.flatnonzero(~single)
    scales = np.sqrt(np.asarray(bank.selector.sum(axis=1)).ravel())[single, None]
    columns = all_forms.shape[1]
    log_tails = np.empty((len(unit), columns))
    standardised = np.empty(log_tails.shape, np.float64 if precise else np.float32)
    for at in range(0, columns, COLUMNS_AT_ONCE):  # what is made on the way stays small
        block = slice(at, at + COLUMNS_AT_ONCE)
        forms = all_forms[:, block]
        values = np.empty((single.size, forms.shape[1]))
        values[single] = forms[bank.single[single]] * scales
        # Residuals that keep their size keep their squares, too: those of the data are taken.
        wanted = slice(0, 1) if bank.is_studentised else block
        squares = bank.selector[several] @ np.square(forms)
        values[several] = squares - diagonals[several, wanted]
        none = np.zeros((len(bank.grids), forms.shape[1]))
        values = np.concatenate([values, none, *(own.over_pairs[None, block] for own in outcomes)])
        values = np.divide(values, unit, out=np.zeros_like(values), where=unit > 0)
        log_tails[:, block] = log_tails_of(values, skewness[:, None], is_single)
        standardised[:, block] = values
    for k, (grid, *cells) in enumerate(grids_of(bank, sums), start=single.size):
        standardised[k] = grid.scores(*cells)
    return log_tails, standardised, sd, skewness


def log_tails_of(
    standardised: FloatArray, skewness: FloatArray, is_single: BoolArray
) -> FloatArray:
    """Minus the log of the tails of shifted gamma laws, (E, columns)."""
    tails = np.empty_like(standardised, dtype=np.float64)
    for at in range(0, standardised.shape[1], COLUMNS_AT_ONCE):  # as above
        values = standardised[:, at : at + COLUMNS_AT_ONCE]
        # The sum along a feature is taken in both directions; its longer tail gets its length.
        sign = np.where(is_single, np.sign(values), 1.0)
        some = -pearson3_log_sf(sign * values, np.maximum(sign * skewness, 0.0))
        some -= np.where(is_single, np.log(2), 0.0)
        tails[:, at : at + COLUMNS_AT_ONCE] = np.where(is_single, np.maximum(some, 0.0), some)
    return tails
