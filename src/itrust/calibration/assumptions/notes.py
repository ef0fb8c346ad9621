"""Sentences about assumptions that the data contradict; each is also a Python warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from itrust._core import AssumptionWarning, FloatArray, Setting, counted, in_door_words
from itrust.calibration.assumptions.signs import (
    Dependence,
    ResidualRows,
    dependence,
    leaks,
    outcome_in_weights,
)
from itrust.data import WITHOUT_IT, Sample, Source

TAKES_ROWS = "the p-value takes rows as independent"
WEIGHTED = (
    "the weights go with the labels (correlation {:.2f} with y - p beyond p and the covariates); "
    "if they were built from the outcome, the p-value is not valid"
)

_known: WeakKeyDictionary[Sample, tuple[str, ...]] = WeakKeyDictionary()
_warned: WeakValueDictionary[tuple[int, object], FloatArray] = WeakValueDictionary()


def assumption_notes(source: Source, runs: Sample | None = None) -> tuple[str, ...]:
    """One sentence for each assumption that rows at hand contradict: all rows, or random ones.

    Each is a Python warning once for the same labels, for an audit asks several times, also with
    fewer covariates. Nothing is said of rows in files, of which random ones are to be given. Where
    rows are random ones of many, `runs` are rows that follow each other.
    """
    sample = source.in_memory
    if sample is None:
        return ()
    if sample in _known:
        return _known[sample]
    notes = list(_notes(sample, runs))
    _known[sample] = tuple(note for _, note in notes)
    for what, note in notes:
        if (id(sample.y), what) not in _warned:
            _warned[id(sample.y), what] = sample.y
            warnings.warn(note, AssumptionWarning, stacklevel=4)
    return _known[sample]


def _notes(sample: Sample, runs: Sample | None) -> Iterator[tuple[object, str]]:
    """What was seen, without its size, and its sentence."""
    weighted = outcome_in_weights(sample)
    if weighted is not None:
        yield "weights", WEIGHTED.format(weighted)
    whole = ResidualRows(sample)
    together = dependence(whole, None if runs is None else ResidualRows(runs, np.arange(runs.n)))
    if together is not None:
        yield (together.kind, together.names), dependence_in_words(together)
    repeated = together is not None or sample.cluster is not None
    for name, kind in leaks(whole, repeated=repeated):
        yield (name, kind), _leak_in_words(name, kind)


def dependence_in_words(seen: Dependence) -> str:
    """What goes together, and the column to name as the cluster."""
    agree = f"go together (correlation {seen.correlation:.2f}"
    names = seen.names[0] if len(seen.names) == 1 else list(seen.names) or None
    cluster = in_door_words(Setting("cluster", names))
    if seen.kind == "column":
        columns = " and ".join(repr(name) for name in seen.names)
        joined = "name it" if len(seen.names) == 1 else "name both"
        return (
            f"residuals of rows with the same {columns} {agree}, {counted(seen.units, 'value')}): "
            f"if these are repeated units, {joined} with {cluster}, for {TAKES_ROWS}"
        )
    if seen.kind == "alike":
        return (
            f"{counted(seen.rows, 'row')} have nearly the same p and covariates as another row, "
            f"and their residuals {agree} beyond that of neighbours): if they are repeated units, "
            f"name these with {cluster}, for {TAKES_ROWS}"
        )
    return (
        f"residuals of rows next to each other {agree} beyond that of rows farther off), and no "
        f"column tells why: if their order is time, or neighbours share a unit, name weeks, months "
        f"or units with {cluster}, for {TAKES_ROWS}"
    )


def _leak_in_words(name: str, kind: str) -> str:
    """What a covariate seems to be, and what to do about it."""
    column = repr(name) if name.strip() else "the column without a name"
    out = in_door_words(WITHOUT_IT)
    if kind == "label":
        return (
            f"{column} tells nearly every label: if it was made from the label, or after it, "
            f"{out}, for given the label no probability but 0 and 1 is calibrated"
        )
    if kind == "index":
        return f"{column} counts the rows: unless their order is time, {out}"
    return f"{column} is {kind}, which the test is given anyway: {out}, for it adds nothing"
