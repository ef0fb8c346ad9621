"""`KLCEResult`: the facts of one test, and how they read."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from itrust.engine import Certificate
from itrust.errors import counted
from itrust.kernels import LocalKernel
from itrust.nulls import AnalyticNull, Null
from itrust.typing import FloatArray

ROUGH = 0.05  # a bound on the approximation above this is worth an alarm
TIE = 1e-9  # draws within this share of the largest value count as ties with the data


@dataclass(frozen=True, eq=False, repr=False)
class KLCEResult:
    """Outcome of `klce_test`. Facts are stored; the p-value is derived from them.

    Attributes
    ----------
    statistic : float
        KLCE^2, unbiased, so it may be negative.
    null_distribution : (draws,) array or None
        KLCE^2 of every draw; None for a null that is a formula.
    tail : float or None
        What the formula gives; None for a null that draws.
    n, draws : int
    names : names of the covariates
    kernel : LocalKernel with its widths
    null : Null
    seed : int or None
        `klce_test(sample, kernel=r.kernel, null=r.null, draws=r.draws, rng=r.seed)` makes
        the result again; None if nothing was drawn.
    engine : str
    certificate : Certificate or None
        How far an approximate kernel can be from the true one.
    elapsed : float
        Seconds.
    weighted : bool
    clusters : int or None
    impossible : int
        Rows with a label the model gave probability 0.
    doubts : what speaks against the assumptions of the null
    notes : what the reader should know about the data
    """

    statistic: float
    null_distribution: FloatArray | None
    tail: float | None
    n: int
    draws: int
    names: tuple[str, ...]
    kernel: LocalKernel
    null: Null
    seed: int | None
    engine: str
    certificate: Certificate | None
    elapsed: float
    weighted: bool
    clusters: int | None
    impossible: int
    doubts: tuple[str, ...]
    notes: tuple[str, ...]

    @cached_property
    def at_least(self) -> int:
        """Number of draws at least as large as the statistic, ties counted."""
        if self.null_distribution is None:
            return 0
        return int(np.count_nonzero(self.null_distribution >= self.statistic - self._tie))

    @cached_property
    def _tie(self) -> float:
        """Differences that are rounding errors."""
        values = (self.statistic,) if self.null_distribution is None else self.null_distribution
        return TIE * max(abs(self.statistic), float(np.abs(values).max()))

    @property
    def pvalue(self) -> float:
        """(1 + draws at least as large) / (1 + draws), or the formula's tail.

        A formula that is an approximation reports nothing below its own depth.
        """
        if isinstance(self.null, AnalyticNull) and self.tail is not None:
            return max(self.tail, self.null.depth)
        return (1 + self.at_least) / (1 + self.draws)

    @property
    def exceedance(self) -> float:
        """Share of draws strictly above the statistic: the p-value of the paper's Algorithm 1.

        It can be 0, and a test that uses it exceeds its level; `pvalue` does not.
        """
        if self.null_distribution is None:
            raise AttributeError(f"{type(self.null).__name__} has a formula instead of draws")
        return float(np.mean(self.null_distribution > self.statistic + self._tie))

    def to_dict(self) -> dict[str, Any]:
        """All facts, ready for JSON; draws are summarised (the seed makes them again)."""
        return {
            "statistic": self.statistic,
            "pvalue": self.pvalue,
            "pvalue_is_below": self.tail is not None and self.tail < self.pvalue,
            "n": self.n,
            "draws": self.draws,
            "on": list(self.names),
            "kernel": self.kernel.to_dict(),
            "null": self.null.to_dict(),
            "null_summary": self._null_summary(),
            "seed": self.seed,
            "engine": self.engine,
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "elapsed": self.elapsed,
            "weighted": self.weighted,
            "clusters": self.clusters,
            "impossible": self.impossible,
            "alarms": list(self.alarms),
            "notes": list(self.notes),
        }

    def _null_summary(self) -> dict[str, float] | None:
        if self.null_distribution is None:
            return None
        levels = {"q50": 0.5, "q90": 0.9, "q95": 0.95, "q99": 0.99}
        quantiles = {k: float(np.quantile(self.null_distribution, q)) for k, q in levels.items()}
        return {"sd": float(self.null_distribution.std()), **quantiles}

    def __repr__(self) -> str:
        return f"<KLCEResult: statistic {self.statistic:.6g}, p {self._p_text()}, n {self.n:,}>"

    @property
    def alarms(self) -> tuple[str, ...]:
        """What overrides the p-value or takes away its meaning, in words."""
        said = list(self.doubts)
        if self.impossible:
            told = counted(self.impossible, "row")
            said.append(
                f"{told} with a label that the model called impossible (p = 0 and y = 1, or p = 1 "
                f"and y = 0): that alone refutes the null, whatever the p-value (probabilities "
                f"rounded to 0 or 1, as forests give them, need smoothing first)"
            )
        if self.certificate and self.certificate.bound > ROUGH:
            said.append(
                "the kernel could not be approximated well at this rank: the p-value is exact, but "
                "for a blurred kernel that may have less power (engine=Tiles() takes it as it is; "
                "wider kernels or fewer covariates are easier)"
            )
        if self._is_degenerate:
            said.append(
                "no draw differs from the data: the kernel compares no rows whose labels could "
                "vary, so this test cannot see anything and its p-value says nothing"
            )
        return tuple(said)

    @property
    def _is_degenerate(self) -> bool:
        drawn = self.null_distribution
        if drawn is None:
            return False
        return bool(np.ptp(drawn) <= self._tie)

    def __str__(self) -> str:
        on = ", ".join(self.names) or "none: this asks about calibration alone"
        rows = [
            ("rows", self._rows_text()),
            ("covariates", on),
            ("KLCE^2", f"{self.statistic:.6g}   (unbiased, so it may be negative)"),
            ("under the null", self._null_text()),
            ("p-value", f"{self._p_text()}   {self._p_origin()}"),
            *self._kernel_rows(),
            ("null", f"{type(self.null).__name__}: {self.null.meaning}"),
            ("made with", self._provenance()),
            *self._certificate_rows(),
        ]
        title = (
            "Is the model calibrated given the covariates?   H0: P(y = 1 | x, p) = p"
            if self.names
            else "Is the model calibrated?   H0: P(y = 1 | p) = p"
        )
        alarms = [line for alarm in self.alarms for line in _wrapped(f"! {alarm}")]
        body = [line for name, text in rows for line in _entry(name, text)]
        ending = [self._sentence(), *(f"note: {note}" for note in self.notes)]
        tail = [line for text in ending for line in _wrapped(text)]
        return "\n".join([title, "", *alarms, *([""] if alarms else []), *body, "", *tail])

    def _certificate_rows(self) -> list[tuple[str, str]]:
        if self.certificate is None:
            return []
        bound, sampled = 100 * self.certificate.bound, 100 * self.certificate.sampled
        at_most = f"at most {bound:.2g} % of its sd" if bound < 100 else "no useful bound"
        text = f"under the null {at_most} (sampled: {sampled:.2g} %)"
        return [("approximation", f"{text}; the p-value is exact for the approximate kernel")]

    def _kernel_rows(self) -> list[tuple[str, str]]:
        parts = ("kernel on p", self.kernel.prob, ["p"]), ("kernel on x", self.kernel.x, self.names)
        return [(title, kernel.describe(names)) for title, kernel, names in parts if kernel]

    def _rows_text(self) -> str:
        weighted = ", weighted" if self.weighted else ""
        clusters = f", {counted(self.clusters, 'cluster')}" if self.clusters else ""
        return f"{self.n:,}{weighted}{clusters}"

    def _p_text(self) -> str:
        if isinstance(self.null, AnalyticNull) and self.tail is not None:
            below = self.tail < self.null.depth
            return f"below {self.null.depth:g}" if below else f"{self.tail:.4g}"
        return f"{self.pvalue:.4g}"

    def _p_origin(self) -> str:
        if self.null_distribution is None:
            return "(a bound, valid at any n)" if self.null.exact else "(approximate)"
        kind = "exact" if self.null.exact else "approximate"
        if self.doubts:
            kind += " if rows are independent, see !"
        return f"({kind}; {self.at_least:,} of {self.draws:,} draws are as large)"

    def _null_text(self) -> str:
        summary = self._null_summary()
        if summary is None:
            return "no draws: a formula"
        return f"sd {summary['sd']:.3g}, 95 % of draws below {summary['q95']:.3g}"

    def _provenance(self) -> str:
        seed = "" if self.seed is None else f"{self.draws:,} draws, seed {self.seed}, "
        return f"{seed}{self.engine}, {self.elapsed:.2g} s"

    def _sentence(self) -> str:
        given = f" given {_in_words(self.names)}" if self.names else ""
        right = f"If the probabilities were right{given}"
        if not self.null.is_local_calibration:
            right = f"If {self.null.meaning} were what a right model gives (it is not)"
        if self.null_distribution is None:
            at_most = " at most" if self.null.exact else ""
            return f"{right}, a KLCE^2 this large would have probability {self._p_text()}{at_most}."
        if self.at_least == 0:
            return (
                f"{right}, a KLCE^2 this large would be rare: none of {self.draws:,} draws has it."
            )
        share = f"{100 * self.pvalue:.3g} %"
        return f"{right}, a KLCE^2 this large would come up in about {share} of samples."


def _in_words(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _entry(name: str, text: str) -> list[str]:
    first, *rest = textwrap.wrap(text, 62, break_long_words=False, break_on_hyphens=False)
    return [f"  {name:<16}{first}", *(f"{'':18}{line}" for line in rest)]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 78, initial_indent="  ", subsequent_indent="  ")
