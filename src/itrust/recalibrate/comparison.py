"""`compare`: methods of recalibration side by side, on rows that none of them has seen."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from sklearn.base import clone

from itrust._core import AnyArray, InputError, Result, Rng, as_seed, plain
from itrust.bias import Slice, bias_slices
from itrust.calibration import (
    CalibrationResult,
    EqualMass,
    ReliabilityCurve,
    klce_test,
    null_sd,
    reliability_curve,
    scores,
)
from itrust.data import Sample, checked_sample, share_codes
from itrust.recalibrate.base import Recalibrator
from itrust.recalibrate.local import Local
from itrust.recalibrate.notes import outside_note, unchanged_note

NONE = "none"
MIN_FOR_SLICES = 40
TOO_MANY_SHARED = 0.5
NUMBERS = (
    *("name", "brier", "log_loss", "ece", "mce", "smooth_ece"),
    *("klce2", "null_sd", "pvalue", "seconds"),
)


@dataclass(frozen=True, eq=False)
class Recalibration:
    """One method of recalibration, judged on rows that it has not seen.

    All scores are of the recalibrated probabilities of the test rows; `fitted` makes those of
    other rows.

    Attributes
    ----------
    name : str
        Of the method; "none" for the probabilities as they were given.
    fitted : Recalibrator or None
        The fitted method; None for the probabilities as they were given.
    brier : float
        Brier score, smaller is better.
    log_loss : float
        Mean log loss, smaller is better.
    ece : float
        Expected calibration error in 10 bins of equal width.
    mce : float
        Maximum calibration error in the same bins.
    smooth_ece : float
        Calibration error without bins.
    curve : ReliabilityCurve
        Observed rate against prediction in ten bins of equal weight.
    test : CalibrationResult
        The default test of local calibration, exact because the rows were not used in fitting.
    null_sd : float
        Standard deviation that KLCE^2 would have if the probabilities were calibrated.
    slice : Slice or None
        The confirmed slice of which the largest bias is shown; None if there is none, or none was
        searched.
    seconds : float
        Time to fit and to predict.
    outside : int
        Number of test rows that lie outside the calibration rows, where `Local` makes no local
        correction (`Recalibrator.outside`).
    at_edge : int
        Number of test rows at the edge of the calibration rows, which get a part of the correction
        (`Recalibrator.at_edge`).
    """

    name: str
    fitted: Recalibrator | None
    brier: float
    log_loss: float
    ece: float
    mce: float
    smooth_ece: float
    curve: ReliabilityCurve
    test: CalibrationResult
    null_sd: float
    slice: Slice | None
    seconds: float
    outside: int = 0
    at_edge: int = 0

    def __repr__(self) -> str:
        scores = f"Brier {self.brier:.4f}, ECE {self.ece:.4f}, p {self.pvalue:.3g}"
        return f"<Recalibration: {self.name}, {scores}>"

    @property
    def unchanged(self) -> bool:
        """bool: Whether the method decided to change nothing."""
        return self.fitted is not None and self.fitted.unchanged_

    @property
    def klce2(self) -> float:
        """float: KLCE^2 with the default kernel; 0 in expectation if calibrated."""
        return float(self.test.statistic)

    @property
    def pvalue(self) -> float:
        """float: Of the test; small if the recalibrated probabilities are miscalibrated."""
        return float(self.test.pvalue)

    def to_dict(self) -> dict[str, Any]:
        """Give all numbers, ready for JSON.

        Returns
        -------
        dict
            The attributes but for `fitted` and `test`, of which `klce2` and `pvalue` stand there.
        """
        facts = {name: getattr(self, name) for name in NUMBERS}
        worst = None if self.slice is None else self.slice.to_dict()
        where = {"outside": self.outside, "at_edge": self.at_edge}
        more = {"unchanged": self.unchanged, "slice": worst, "curve": dict(vars(self.curve))}
        return dict(plain({**facts, **where, **more}))


@dataclass(frozen=True, eq=False, repr=False)
class RecalibrationTable(Result, Sequence[Recalibration]):
    """Outcome of `compare`: a sequence of methods, each judged on the same test rows.

    `table[0]` is "none", the probabilities as they were given; the others stand in the order in
    which they were given. `table["Local"]` finds a method by its name.

    Attributes
    ----------
    recalibrations : tuple of Recalibration
        The methods.
    calibration_rows : int
        Number of rows that the methods were fitted on.
    test_rows : int
        Number of rows that they were judged on.
    draws : int
        Number of draws of each test.
    seed : int
        What the draws came from; the same for every method.
    """

    recalibrations: tuple[Recalibration, ...]
    calibration_rows: int
    test_rows: int
    draws: int
    seed: int

    def __len__(self) -> int:
        return len(self.recalibrations)

    @overload
    def __getitem__(self, key: int | str) -> Recalibration: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Recalibration, ...]: ...
    def __getitem__(self, key: int | str | slice) -> Recalibration | tuple[Recalibration, ...]:
        """By position or by name."""
        if isinstance(key, str):
            found = {own.name: own for own in self.recalibrations}
            if key not in found:
                raise KeyError(f"{key!r}; there are {', '.join(found)}")
            return found[key]
        return self.recalibrations[key]

    def __iter__(self) -> Iterator[Recalibration]:
        return iter(self.recalibrations)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on methods that changed nothing and on rows outside the calibration rows."""
        found = []
        for own in self.recalibrations:
            if not isinstance(own.fitted, Local):
                continue
            if own.unchanged:
                found.append(f"{own.name}: {unchanged_note(own.fitted)}")
            elif own.outside:
                note = outside_note(own.fitted, own.outside, own.at_edge, self.test_rows)
                found.append(f"{own.name}: {note}")
        return tuple(found)

    def _facts(self) -> dict[str, Any]:
        facts = {name: value for name, value in vars(self).items() if name != "recalibrations"}
        rows = [own.to_dict() for own in self.recalibrations]
        return {**facts, "notes": list(self.notes), "recalibrations": rows}

    def _rows(self) -> list[dict[str, Any]]:
        rows = [own.to_dict() for own in self.recalibrations]
        told = [{name: row[name] for name in row if name != "curve"} for row in rows]
        return [{**row, "slice": row["slice"] and row["slice"]["rule"]} for row in told]

    def __repr__(self) -> str:
        return f"<RecalibrationTable: {', '.join(own.name for own in self)}>"


def compare(
    methods: Mapping[str, Recalibrator] | Sequence[Recalibrator],
    calibration: Sample,
    test: Sample,
    *,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
    slices: bool = True,
) -> RecalibrationTable:
    """Fit every method on calibration rows and judge it on test rows.

    Parameters
    ----------
    methods : mapping of str to Recalibrator, or sequence of Recalibrator
        What to compare; without names each has that of its class. The methods are cloned.
    calibration : Sample
        Rows to fit on, which the model was not trained on.
    test : Sample
        Rows to judge on: of the same model, with the same covariates, and no row in common.
    alpha : float
        Size of the test that confirms a slice.
    draws : int
        Number of draws of each test from its null distribution.
    rng : int, numpy Generator or None
        Randomness of the tests, the same draws for every method; None: other draws in each call.
    slices : bool
        Whether to search for confirmed slices as well, which takes about as long as the test.

    Returns
    -------
    RecalibrationTable
        One row for each method, the probabilities as given first.

    Examples
    --------
    >>> import itrust as it
    >>> from itrust.recalibrate import Isotonic, Local, compare
    >>> calibration, test = it.simulate.survey(6_000, rng=0).sample.split([0.5, 0.5], rng=0)
    >>> table = compare([Isotonic(), Local()], calibration, test, draws=199, rng=0, slices=False)
    >>> [(method.name, method.pvalue <= 0.05) for method in table]
    [('none', True), ('Isotonic', True), ('Local', False)]
    """
    checked_sample(calibration)
    checked_sample(test)
    named = _named(methods)
    _refuse_same_rows(calibration, test)
    seed = as_seed(rng)

    def judged(name: str, method: Recalibrator | None) -> Recalibration:
        begun = time.perf_counter()
        fitted = None if method is None else clone(method).fit(calibration)
        told = test if fitted is None else fitted.apply(test)
        seconds = time.perf_counter() - begun
        result = klce_test(told, draws=draws, rng=seed, progress=False)
        return Recalibration(
            name=name,
            fitted=fitted,
            brier=scores.brier(told),
            log_loss=scores.log_loss(told),
            ece=scores.ece(told),
            mce=scores.mce(told),
            smooth_ece=scores.smooth_ece(told),
            curve=reliability_curve(told, EqualMass(10)),
            test=result,
            null_sd=null_sd(told),
            slice=_worst_slice(told, alpha, draws, seed) if slices else None,
            seconds=seconds,
            outside=0 if fitted is None else int(fitted.outside(test.p, test).sum()),
            at_edge=0 if fitted is None else int(fitted.at_edge(test.p, test).sum()),
        )

    found = tuple(judged(name, method) for name, method in named.items())
    return RecalibrationTable(found, calibration.n, test.n, draws, seed)


def _named(
    methods: Mapping[str, Recalibrator] | Sequence[Recalibrator],
) -> dict[str, Recalibrator | None]:
    if isinstance(methods, Recalibrator):
        methods = [methods]
    if not isinstance(methods, Mapping):
        by_name: dict[str, Recalibrator] = {}
        for method in methods:
            name, number = type(method).__name__, 2
            while name in by_name:
                name, number = f"{type(method).__name__} ({number})", number + 1
            by_name[name] = method
        methods = by_name
    for name, method in methods.items():
        if not isinstance(method, Recalibrator):
            raise InputError(
                "{name} is a {kind}, not a recalibrator such as Local() (with its brackets)",
                argument="methods",
                value=method,
                details={"name": repr(name), "kind": type(method).__name__},
            )
        if name == NONE:
            raise InputError(
                "the name {value} stands for the probabilities as given; take another",
                argument="methods",
                value=name,
            )
    return {NONE: None, **methods}


def _worst_slice(sample: Sample, alpha: float, draws: int, seed: int) -> Slice | None:
    if not sample.columns or sample.n < MIN_FOR_SLICES:
        return None
    confirmed = bias_slices(sample, alpha=alpha, draws=draws, rng=seed).confirmed
    return max(confirmed, key=lambda found: abs(found.at_least), default=None)


def _refuse_same_rows(calibration: Sample, test: Sample) -> None:
    """A method that is judged on the rows it learned from would look calibrated."""
    if calibration.names != test.names:
        raise InputError(
            "calibration and test have different covariates", argument="test", value=test.names
        )
    known, asked = (_keys(sample, calibration) for sample in (calibration, test))
    values, counts = np.unique(known, return_counts=True)
    # Rows that occur once in calibration: others may be alike without being the same.
    shared = int(np.isin(asked, values[counts == 1]).sum())
    if shared > max(TOO_MANY_SHARED * test.n, 1):
        raise InputError(
            "{count} of the {rows} test rows are among the calibration rows; divide them, such as "
            "with sample.split([0.5, 0.5])",
            argument="test",
            count=shared,
            details={"rows": test.n},
        )


def _keys(sample: Sample, other: Sample) -> AnyArray:
    """Rows as bytes, (n,): equal rows, equal bytes in both samples."""
    columns = [sample.y, sample.p]
    for column, known in zip(sample.columns, other.columns, strict=True):
        _, codes = share_codes([known], [column])
        columns.append(codes.astype(float) if column.is_category else column.values)
    # Adding 0 makes one zero of two, whose bytes differ.
    rows = np.ascontiguousarray(np.nan_to_num(np.column_stack(columns), nan=-1e300) + 0.0)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
