"""`compare`: repairs side by side, on rows that none of them has seen."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from itrust._core import AnyArray, InputError, Rng, as_seed, plain
from itrust.bias import Slice, bias_slices
from itrust.calibration import KLCEResult, klce_test, null_sd, scores
from itrust.data import Sample, checked_sample, share_codes
from itrust.recalibrate.base import Recalibrator

NONE = "none"
MIN_FOR_SLICES = 40
TOO_MANY_SHARED = 0.5


@dataclass(frozen=True, eq=False)
class Repair:
    """One method on held-out rows.

    Attributes
    ----------
    name : str
    fitted : Recalibrator or None
        None: the probabilities as they were given.
    brier, log_loss, ece, mce : float
    test : KLCEResult
        Exact: the rows were not used in fitting. `.statistic` is KLCE^2 of the default kernel.
    null_sd : float
        What KLCE^2 of a right model would vary by.
    slice : Slice or None
        The confirmed slice with the largest bias.
    seconds : float
        To fit and to predict.
    """

    name: str
    fitted: Recalibrator | None
    brier: float
    log_loss: float
    ece: float
    mce: float
    test: KLCEResult
    null_sd: float
    slice: Slice | None
    seconds: float

    @property
    def klce2(self) -> float:
        """KLCE^2 with the default kernel."""
        return float(self.test.statistic)

    @property
    def pvalue(self) -> float:
        """Of the exact default test."""
        return float(self.test.pvalue)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        names = ("name", "brier", "log_loss", "ece", "mce", "klce2", "null_sd", "pvalue", "seconds")
        facts = {name: getattr(self, name) for name in names}
        worst = None if self.slice is None else self.slice.to_dict()
        return dict(plain({**facts, "slice": worst}))


@dataclass(frozen=True, eq=False, repr=False)
class RepairTable(Sequence[Repair]):
    """Outcome of `compare`, in the order the methods were given, "none" first."""

    repairs: tuple[Repair, ...]
    calibration_rows: int
    test_rows: int
    draws: int
    seed: int

    def __len__(self) -> int:
        return len(self.repairs)

    @overload
    def __getitem__(self, key: int | str) -> Repair: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Repair, ...]: ...
    def __getitem__(self, key: int | str | slice) -> Repair | tuple[Repair, ...]:
        """By position or by name."""
        if isinstance(key, str):
            found = {repair.name: repair for repair in self.repairs}
            if key not in found:
                raise KeyError(f"{key!r}; there are {', '.join(found)}")
            return found[key]
        return self.repairs[key]

    def __iter__(self) -> Iterator[Repair]:
        return iter(self.repairs)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        facts = {k: v for k, v in vars(self).items() if k != "repairs"}
        return {**facts, "repairs": [repair.to_dict() for repair in self.repairs]}

    def to_arrow(self) -> pa.Table:
        """One row a method (`.to_pandas()` if you like)."""
        rows = [repair.to_dict() for repair in self.repairs]
        for row in rows:
            row["slice"] = None if row["slice"] is None else row["slice"]["rule"]
        return pa.Table.from_pylist(rows)

    def __str__(self) -> str:
        width = max(len(repair.name) for repair in self.repairs)
        head = f"{'':<{width}}   Brier  log loss    ECE    MCE     KLCE^2  p-value  seconds"
        lines = [
            f"{r.name:<{width}}  {r.brier:.4f}    {r.log_loss:.4f}  {r.ece:.3f}  {r.mce:.3f}  "
            f"{r.klce2:>+9.2e}  {r.pvalue:>7.3f}  {r.seconds:>7.1f}"
            for r in self.repairs
        ]
        slices = [
            f"  {r.name}: {r.slice.rule}, bias {r.slice.bias:+.3f}" for r in self.repairs if r.slice
        ]
        foot = (
            f"fitted on {self.calibration_rows:,} rows, judged on {self.test_rows:,} others; "
            f"p-values from {self.draws} draws, seed {self.seed}"
        )
        worst = ["worst confirmed slice:", *slices] if slices else ["no confirmed slices"]
        return "\n".join([head, *lines, *worst, foot])

    __repr__ = __str__


def compare(
    methods: Mapping[str, Recalibrator] | Sequence[Recalibrator],
    calibration: Sample,
    test: Sample,
    *,
    alpha: float = 0.05,
    draws: int = 999,
    rng: Rng = None,
    slices: bool = True,
) -> RepairTable:
    """Fit every method on calibration rows and judge it on test rows.

    Parameters
    ----------
    methods : mapping of names to recalibrators, or a sequence of them
        They are cloned; those given stay as they are.
    calibration, test : Sample
        Of the same model, with no row in common.
    alpha : float
        Of the slices.
    draws, rng
        Of the tests; every method sees the same draws' seed.
    slices : bool
        Whether to look for confirmed slices, too; takes about as long as the test.

    Examples
    --------
    >>> import itrust as it
    >>> from itrust.recalibrate import Isotonic, Local, compare
    >>> calibration, test = it.simulate.survey(6_000, rng=0).sample.split([0.5, 0.5], rng=0)
    >>> table = compare([Isotonic(), Local()], calibration, test, draws=199, rng=0, slices=False)
    >>> [(repair.name, repair.pvalue <= 0.05) for repair in table]
    [('none', True), ('Isotonic', True), ('Local', False)]
    """
    checked_sample(calibration)
    checked_sample(test)
    named = _named(methods)
    _refuse_same_rows(calibration, test)
    seed = as_seed(rng)

    def judged(name: str, method: Recalibrator | None) -> Repair:
        begun = time.perf_counter()
        fitted = None if method is None else clone(method).fit(calibration)
        told = test if fitted is None else fitted.apply(test)
        seconds = time.perf_counter() - begun
        result = klce_test(told, draws=draws, rng=seed, progress=False)
        return Repair(
            name=name,
            fitted=fitted,
            brier=scores.brier(told),
            log_loss=scores.log_loss(told),
            ece=scores.ece(told),
            mce=scores.mce(told),
            test=result,
            null_sd=null_sd(told),
            slice=_worst_slice(told, alpha, draws, seed) if slices else None,
            seconds=seconds,
        )

    found = tuple(judged(name, method) for name, method in named.items())
    return RepairTable(found, calibration.n, test.n, draws, seed)


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
                f"{name!r} is a {type(method).__name__}, not a recalibrator such as Local() (with "
                f"its brackets)"
            )
        if name == NONE:
            raise InputError("the name 'none' stands for the probabilities as given; take another")
    return {NONE: None, **methods}


def _worst_slice(sample: Sample, alpha: float, draws: int, seed: int) -> Slice | None:
    if not sample.columns or sample.n < MIN_FOR_SLICES:
        return None
    confirmed = bias_slices(sample, alpha=alpha, draws=draws, rng=seed).confirmed
    return max(confirmed, key=lambda found: abs(found.bias), default=None)


def _refuse_same_rows(calibration: Sample, test: Sample) -> None:
    """A repair judged on the rows it learned from would pass."""
    if calibration.names != test.names:
        raise InputError("calibration and test have different covariates")
    known, asked = (_keys(sample, calibration) for sample in (calibration, test))
    values, counts = np.unique(known, return_counts=True)
    # Rows that occur once in calibration: others may be alike without being the same.
    shared = int(np.isin(asked, values[counts == 1]).sum())
    if shared > max(TOO_MANY_SHARED * test.n, 1):
        raise InputError(
            f"{shared:,} of the {test.n:,} test rows are among the calibration rows; divide them, "
            f"such as with sample.split([0.5, 0.5])"
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
