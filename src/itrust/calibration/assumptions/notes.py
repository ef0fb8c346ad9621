"""Sentences about assumptions that the data contradict; each is also a Python warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from itrust._core import (
    AssumptionWarning,
    FloatArray,
    Setting,
    counted,
    in_door_words,
)
from itrust.calibration.assumptions.dependence import Dependence, dependence
from itrust.calibration.assumptions.leaks import Leak, leaks
from itrust.calibration.assumptions.rows import Rows, spread_rows
from itrust.calibration.assumptions.weights import outcome_in_weights
from itrust.data import WITHOUT_IT, Sample, Source

TAKES_ROWS = "the p-value takes rows as independent"

_known: WeakKeyDictionary[Sample, tuple[str, ...]] = WeakKeyDictionary()
_warned: WeakValueDictionary[tuple[int, object], FloatArray] = WeakValueDictionary()


def assumption_notes(source: Source, runs: Sample | None = None) -> tuple[str, ...]:
    """One sentence for each assumption the data contradict.

    Each is a Python warning once for the same labels, for an audit asks several times, also with
    fewer covariates. Rows in files are not looked at: they would have to be read once more. Where
    rows are random ones of many, `runs` are rows that follow each other.
    """
    sample = source.in_memory
    if sample is None:
        return ()
    if sample in _known:
        return _known[sample]
    found = list(_notes(sample, runs))
    _known[sample] = tuple(note for _, note in found)
    for what, note in found:
        if (id(sample.y), what) not in _warned:
            _warned[id(sample.y), what] = sample.y
            warnings.warn(note, AssumptionWarning, stacklevel=4)
    return _known[sample]


def _notes(sample: Sample, runs: Sample | None) -> Iterator[tuple[object, str]]:
    """What was found, without its size, and its sentence."""
    weighted = outcome_in_weights(sample)
    if weighted is not None:
        yield "weights", weighted
    whole = Rows(sample, spread_rows(sample.n))
    together = dependence(whole, None if runs is None else Rows(runs, np.arange(runs.n)))
    if together is not None:
        yield (together.kind, together.names), dependence_in_words(together)
    repeated = together is not None or sample.cluster is not None
    for leak in leaks(whole, repeated=repeated):
        yield leak, leak_in_words(leak)


def dependence_in_words(found: Dependence) -> str:
    """What goes together, and the column to name as the cluster."""
    agree = f"go together (correlation {found.correlation:.2f}"
    names = found.names[0] if len(found.names) == 1 else list(found.names) or None
    cluster = in_door_words(Setting("cluster", names))
    if found.kind == "column":
        told = " and ".join(repr(name) for name in found.names)
        joined = "name it" if len(found.names) == 1 else "name both"
        return (
            f"residuals of rows with the same {told} {agree}, {counted(found.units, 'value')}): "
            f"if these are repeated units, {joined} with {cluster}, for {TAKES_ROWS}"
        )
    if found.kind == "alike":
        return (
            f"{counted(found.rows, 'row')} have nearly the same p and covariates as another row, "
            f"and their residuals {agree} beyond that of neighbours): if they are repeated units, "
            f"name these with {cluster}, for {TAKES_ROWS}"
        )
    return (
        f"residuals of rows next to each other {agree} beyond that of rows farther off), and no "
        f"column tells why: if their order is time, or neighbours share a unit, name weeks, months "
        f"or units with {cluster}, for {TAKES_ROWS}"
    )


def leak_in_words(found: Leak) -> str:
    """What a covariate seems to be, and what to do about it."""
    name = repr(found.name) if found.name.strip() else "the column without a name"
    out = in_door_words(WITHOUT_IT)
    if found.kind == "label":
        return (
            f"{name} tells nearly every label: if it was made from the label, or after it, {out}, "
            f"for given the label no probability but 0 and 1 is calibrated"
        )
    if found.kind == "index":
        return f"{name} counts the rows: unless their order is time, {out}"
    return f"{name} is {found.kind}, which the test is given anyway: {out}, for it adds nothing"
