"""What `compare` gives, and what users are told of a fit; to show it, no method need be loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from itrust._core import Result, counted, plain
from itrust.bias import Slice
from itrust.calibration import CalibrationResult, MulticlassResult, ReliabilityCurve

if TYPE_CHECKING:
    from itrust.recalibrate.base import Recalibrator
    from itrust.recalibrate.local import Local

NUMBERS = (
    *("name", "brier", "log_loss", "ece", "mce", "smooth_ece"),
    *("klce2", "null_sd", "pvalue"),
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
        Expected calibration error in 10 bins of equal width; of several classes that of the class
        with the largest probability in each row, and so are the next three.
    mce : float
        Maximum calibration error in the same bins.
    smooth_ece : float
        Calibration error without bins.
    curve : ReliabilityCurve
        Observed rate against prediction in ten bins of equal weight.
    test : CalibrationResult or MulticlassResult
        The default test of local calibration, exact because the rows were not used in fitting; of
        several classes that of all at once.
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
    test: CalibrationResult | MulticlassResult
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
            The attributes but for `fitted`, `seconds`, which are other ones every time, and `test`,
            of which `klce2` and `pvalue` stand there.
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
        Number of rows to fit on. A method that learned from random ones of them has fewer
        (`fitted.n_rows_`).
    test_rows : int
        Number of rows that they were judged on.
    draws : int
        Number of draws of each test.
    seed : int
        What the draws came from; the same for every method.
    available_test_rows : int or None
        Number of rows in files that `test_rows` of them were chosen from at random; None where
        methods were judged on all test rows.
    of_classes : bool
        Whether the rows have several classes.
    """

    recalibrations: tuple[Recalibration, ...]
    calibration_rows: int
    test_rows: int
    draws: int
    seed: int
    available_test_rows: int | None = None
    of_classes: bool = False

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

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on random rows, methods that changed nothing, and rows outside."""
        from itrust.recalibrate.local import Local

        found = []
        if self.of_classes:
            found.append(
                "ECE and MCE are of the class with the largest probability in each row; slices "
                "were not searched"
            )
        if self.available_test_rows is not None:
            found.append(
                f"judged on {self.test_rows:,} rows, drawn at random from "
                f"{self.available_test_rows:,} without a look at their labels"
            )
        for own in self.recalibrations:
            if own.fitted is not None and own.fitted.n_rows_ < own.fitted.n_available_:
                found.append(f"{own.name}: fitted on {rows_note(own.fitted)}")
            if not isinstance(own.fitted, Local):
                continue
            if own.unchanged:
                found.append(f"{own.name}: {unchanged_note(own.fitted)}")
            elif own.outside:
                note = outside_note(own.fitted, own.outside, own.at_edge, self.test_rows)
                found.append(f"{own.name}: {note}")
        return tuple(found)

    def _facts(self) -> dict[str, Any]:
        left_out = ("recalibrations", "of_classes")
        facts = {name: value for name, value in vars(self).items() if name not in left_out}
        rows = [own.to_dict() for own in self.recalibrations]
        return {**facts, "notes": list(self.notes), "recalibrations": rows}

    def _rows(self) -> list[dict[str, Any]]:
        rows = [{**own.to_dict(), "seconds": own.seconds} for own in self.recalibrations]
        told = [{name: row[name] for name in row if name != "curve"} for row in rows]
        return [{**row, "slice": row["slice"] and row["slice"]["rule"]} for row in told]

    def __repr__(self) -> str:
        return f"<RecalibrationTable: {', '.join(own.name for own in self)}>"


def rows_note(fitted: Recalibrator, name: str = "") -> str:
    """On how many rows (of what is called so) it was fitted, and whether there were more."""
    rows = f"{counted(fitted.n_rows_, 'row')}{f' of {name}' if name else ''}"
    if fitted.n_available_ == fitted.n_rows_:
        return rows
    return f"{rows}, drawn at random from {fitted.n_available_:,} without a look at their labels"


def unchanged_note(fitted: Local) -> str:
    """Why nothing was changed."""
    fitted = _of_two(fitted)
    pvalue = fitted.steps_[0].pvalue
    if fitted.clusters_ is None:
        test, units = "the exact test", counted(fitted.n_rows_, "row")
    else:
        test, units = "the test", counted(fitted.clusters_, "cluster")
    if pvalue is not None and pvalue > fitted.needed_:
        return (
            f"nothing was changed: {test} of the probabilities as given has a p-value of "
            f"{pvalue:.3g}, and with {units} at most {fitted.needed_:.2g} is needed"
        )
    return (
        f"nothing was changed: {test} rejects, but no correction lowers the log loss in "
        f"cross-validation by more than its standard error"
    )


def outside_note(fitted: Local, outside: int, at_edge: int, rows: int) -> str:
    """How many rows got nothing or a part of what a fit that changes something has learned."""
    fitted = _of_two(fitted)
    verb = "lies" if outside == 1 else "lie"
    done = []
    if fitted.corrections_:
        done.append("no local correction is made there")
    if fitted.map_ is not None:
        done.append("the map of the prediction fades out from there to twice as far")
    told = (
        f"{outside:,} of {counted(rows, 'row')} {verb} far from the calibration rows: "
        f"{', and '.join(done)}"
    )
    if not (at_edge and fitted.corrections_):
        return told
    verb, get = ("lies", "gets") if at_edge == 1 else ("lie", "get")
    return f"{told}; {at_edge:,} {verb} at their edge and {get} a part of the correction"


def _of_two(fitted: Local) -> Local:
    """What was learned: of two classes, of the second."""
    two: Any = fitted.fits_ or (fitted,)
    learned: Local = two[0]
    return learned
