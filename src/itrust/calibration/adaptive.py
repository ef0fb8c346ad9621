"""`klce_test`: adaptive over a dictionary of kernels by default, with one kernel if it is named."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from itrust._core import FloatArray, InputError, IntArray, Rng, as_seed, counted
from itrust.calibration.dictionary.default import default_dictionary_for
from itrust.calibration.dictionary.entries import Dictionary, Entry
from itrust.calibration.evaluate import Engine, checked_engine
from itrust.calibration.klce import (
    checked_draws,
    checked_null,
    checked_source,
    cluster_notes,
    doubts_about,
    resolved_kernel,
    single_kernel_test,
)
from itrust.calibration.multiplicity import step_down, unadjusted_pvalues
from itrust.calibration.pipeline import Looks, look, prepare
from itrust.calibration.results import AdaptiveResult, Finding, KLCEResult
from itrust.data import Sample, Scan
from itrust.engines import Dask, Factor
from itrust.kernels import Kernel, LocalKernel
from itrust.nulls import Null, RowwiseNull

COMPARED = 80  # entries, from the top, that are looked at for saying the same
ALIKE = 0.5  # correlation of draws
ALIKE_ON_THE_SAME = 0.1  # of entries on the same covariates
BEYOND_DOUBT = 690.0  # minus the log of a tail that is next to nothing
NEARLY = 0.5  # of the largest score: a plainer entry that reaches it speaks for the others

WRONG_KERNEL = (
    "kernel must be a LocalKernel(prob=..., x=...), a Dictionary or a mapping of names to kernels, "
    "not {!r}"
)

Places = Dictionary | Mapping[str, LocalKernel | Kernel]


def klce_test(
    sample: Sample | Scan,
    kernel: LocalKernel | Places | None = None,
    null: Null | None = None,
    draws: int = 999,
    rng: Rng = None,
    engine: Engine = "auto",
    *,
    progress: bool | None = None,
) -> KLCEResult:
    """Test whether the probabilities are right given the covariates.

    By default a whole dictionary of kernels is tried at once (`default_dictionary`), and the
    largest score is compared with its redraws, so the level is exact and no width has to be
    guessed; the result says where the model is wrong. `statistic` is KLCE^2 of the default
    kernel either way.

    Parameters
    ----------
    sample : Sample or Scan
    kernel : LocalKernel, Dictionary or mapping of names to kernels, optional
        One kernel, `LocalKernel()` being the default one; or a dictionary of one's own.
    null : Null, optional
        Default: `Bernoulli()`, exact at every n; with clusters `Rademacher()`, approximate.
        Other nulls take one kernel.
    draws : int
        Number of draws; the smallest possible p-value is 1 / (1 + draws).
    rng : int, Generator or None
        Same seed, same p-value: for any number of threads and any tile size.
    engine : "auto", Tiles, Factor or Dask
        `Tiles` takes a kernel as it is, cost n^2; `Factor` an approximation with a certified
        error, cost n. The p-value is exact for either. "auto" takes the cheaper one that
        keeps the error at 1 %: tiles up to a few thousand rows, the factor beyond that and for
        scans. One kernel whose rank does not suffice takes tiles up to 60,000 rows.
    progress : bool, optional
        Default: a bar in a terminal once the work has taken a second.

    Returns
    -------
    AdaptiveResult, or KLCEResult (of which it is a kind) for one kernel

    Examples
    --------
    >>> import itrust as it
    >>> r = it.klce_test(it.simulate.survey(1_000, rng=0).sample, draws=199, rng=0)
    >>> r.pvalue
    0.005
    >>> print(r.story()[0].name)
    age: trend where region = south
    """
    checked_source(sample)
    checked_engine(engine)
    draws, seed = checked_draws(draws), as_seed(rng)
    null = checked_null(null, sample)
    if isinstance(kernel, Dictionary | Mapping) and not isinstance(null, RowwiseNull):
        raise InputError(
            f"{type(null).__name__}() takes one kernel; a dictionary needs Bernoulli() or "
            f"Rademacher()"
        )
    if isinstance(null, RowwiseNull) and (
        kernel is None or isinstance(kernel, Dictionary | Mapping)
    ):
        dictionary = as_dictionary(kernel, sample, engine)
        default = resolved_kernel(None, sample, engine)
        return _adaptive_test(sample, dictionary, default, null, draws, seed, engine, progress)
    if kernel is not None and not isinstance(kernel, LocalKernel):
        raise InputError(WRONG_KERNEL.format(kernel))
    return single_kernel_test(sample, kernel, null, draws, seed, engine, progress)


def as_dictionary(places: object, sample: Sample | Scan, engine: Engine) -> Dictionary:
    """The dictionary that was asked for, None being the default one."""
    if places is None:
        return default_dictionary(sample, engine)
    if isinstance(places, Mapping):
        return Dictionary.of(places)
    if isinstance(places, Dictionary):
        return places
    raise InputError(WRONG_KERNEL.format(places))


def default_dictionary(sample: Sample | Scan, engine: Engine = "auto") -> Dictionary:
    """The places `klce_test` looks at by default, from predictions and covariates alone.

    >>> import itrust as it
    >>> print(it.default_dictionary(it.simulate.survey(500, rng=0).sample))
    Dictionary of 56 entries
      overall          0.05  'overall level'
      prediction       0.07  'prediction: slope', 'prediction: bend', ... (4 in all)
      linear           0.48  'income: trend', 'age: trend', ... (5 in all)
      curved           0.07  'income: bend', 'income: twist', ... (4 in all)
      smooth           0.06  'income alone', 'income alone, fine', ... (5 in all)
      parts            0.06  'income 7000 to 25900', 'income 26000 to 31900', ... (20 in all)
      with prediction  0.04  'income x prediction', 'age x prediction', ... (3 in all)
      pairs            0.07  'income x age: trend', 'region x income', ... (10 in all)
      full             0.07  'everything together', 'everything together, width x 2', ... (4 in all)
    """
    checked_source(sample)
    if isinstance(engine, Dask) and isinstance(sample, Scan):
        engine.survey(sample)  # so that the pilot rows are sampled on the workers
        engine = engine.factor
    if isinstance(sample, Sample):
        return default_dictionary_for(sample.points)
    size = engine.pilot if isinstance(engine, Factor) else Factor.pilot
    return default_dictionary_for(sample.pilot(size)[0])


def _adaptive_test(
    sample: Sample | Scan,
    dictionary: Dictionary,
    default: LocalKernel,
    null: RowwiseNull,
    draws: int,
    seed: int,
    engine: Engine,
    progress: bool | None,
) -> AdaptiveResult:
    begun = time.perf_counter()
    prepared = prepare(sample, dictionary, null, draws, engine, default)
    doubts = doubts_about(sample, null)
    looks = look(prepared, null, draws, seed, progress)
    combined = looks.combined
    found = findings(looks)
    if looks.impossible:  # no draw has such a label, so this outranks every score
        combined[0] = max(float(combined.max()), 0.0) + BEYOND_DOUBT
        found = (_impossible(looks.impossible, float(combined[0]), draws), *found)
    combined.flags.writeable = looks.statistic.flags.writeable = False
    return AdaptiveResult(
        statistic=float(looks.statistic[0]),
        null_distribution=combined[1:],
        tail=None,
        n=looks.n,
        draws=draws,
        names=sample.names,
        kernel=looks.kernel,
        null=null,
        seed=seed,
        engine=looks.engine,
        certificate=looks.certificate,
        elapsed=time.perf_counter() - begun,
        weighted=sample.weights is not None,
        clusters=sample.clusters,
        impossible=looks.impossible,
        doubts=doubts,
        notes=(*looks.notes, *cluster_notes(sample, null)),
        combined=float(combined[0]),
        statistic_draws=looks.statistic[1:],
        findings=found,
        dictionary=dictionary,
    )


def _impossible(rows: int, score: float, draws: int) -> Finding:
    """Labels that the model gave probability 0, which refute it whatever else is found."""
    return Finding(
        name="impossible labels",
        family="impossible",
        covariates=(),
        weight=0.0,
        score=score,
        unadjusted_pvalue=1 / (1 + draws),
        pvalue=1 / (1 + draws),
        says=f"{counted(rows, 'row')} with a label that the model gave probability 0",
    )


def findings(looks: Looks, adjusted: FloatArray | None = None) -> tuple[Finding, ...]:
    """What every entry shows, the largest score first.

    `adjusted` are p-values (E,) that count more than these entries; default: these.
    """
    scores = looks.scores
    adjusted = step_down(scores) if adjusted is None else adjusted
    own = unadjusted_pvalues(scores)
    order = np.argsort(-scores[:, 0], kind="stable")
    alike = _alike(looks, order[:COMPARED], adjusted)
    found = []
    for k in order:
        entry = looks.entries[k]
        lean = np.sign(looks.standard[k, 0]) if looks.single[k] else 0
        says = "" if lean == 0 else entry.leans[0 if lean > 0 else 1]
        found.append(
            Finding(
                name=entry.name,
                family=entry.family,
                covariates=entry.covariates,
                weight=float(looks.weights[k]),
                score=float(scores[k, 0]),
                unadjusted_pvalue=float(own[k]),
                pvalue=float(adjusted[k]),
                says=says,
                alike=alike.get(int(k), ()),
            )
        )
    return tuple(found)


def _alike(looks: Looks, order: IntArray, adjusted: FloatArray) -> dict[int, tuple[str, ...]]:
    """For the entry that speaks for its group, the others whose draws go with the group's.

    Groups form around the entries with the largest scores; of each group the plainest entry
    speaks that is nearly as striking as its first. Entries on everything together form groups
    among themselves, so that they hide nothing plainer.
    """
    draws = looks.standard[order, 1:].copy()
    draws[looks.single[order]] **= 2
    draws -= draws.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(draws, axis=1)
    draws /= np.where(norms > 0, norms, 1.0)[:, None]
    correlation = draws @ draws.T
    entries = [looks.entries[k] for k in order]
    needed = np.array([[_needed(a, b) for b in entries] for a in entries])
    free = np.ones(order.size, dtype=bool)
    speakers = {}
    for first, lead in enumerate(order):
        if not free[first]:
            continue
        together = free & (correlation[first] >= needed[first])
        together[first] = True
        able = [
            at
            for at in np.flatnonzero(together).tolist()
            if looks.tails[order[at], 0] >= NEARLY * looks.tails[lead, 0]
            and adjusted[order[at]] <= adjusted[lead]
        ]
        speaker = min(able, key=lambda at: entries[at].rank or np.inf)
        # Who has nothing in common with the speaker speaks for himself, later.
        together &= correlation[speaker] >= needed[speaker]
        together[[first, speaker]] = True
        free &= ~together
        others = [at for at in np.flatnonzero(together).tolist() if at != speaker]
        speakers[int(order[speaker])] = tuple(entries[at].name for at in others)
    return speakers


def _needed(a: Entry, b: Entry) -> float:
    """Correlation of draws at which two entries are taken to say the same."""
    if (a.family == "full") != (b.family == "full"):
        return np.inf
    same = bool(a.covariates) and set(a.covariates) == set(b.covariates)
    return ALIKE_ON_THE_SAME if same else ALIKE
