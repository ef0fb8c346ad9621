"""`KLCEResult`: the facts of one test, and how they read."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from itrust._core import FloatArray, InputError, counted, did_you_mean
from itrust._core import html as notebook
from itrust.calibration.dictionary.entries import Dictionary
from itrust.calibration.multiplicity import TIE
from itrust.engines import Certificate
from itrust.kernels import LocalKernel
from itrust.nulls import AnalyticNull, Null

MAX_IN_DICT, MAX_TOLD, MAX_NAMES = 50, 5, 12
ROUGH = 0.05  # a bound on the approximation above this is worth an alarm


@dataclass(frozen=True, eq=False, repr=False)
class KLCEResult:
    """Outcome of `klce_test`. Facts are stored; the p-value is derived from them.

    Attributes
    ----------
    statistic : float
        KLCE^2, unbiased, so it may be negative.
    score : float
        What is compared with the draws: here the statistic itself.
    null_distribution : (draws,) array or None
        The score of every draw; None for a null that is a formula.
    tail : float or None
        What the formula gives; None for a null that draws.
    n, draws : int
    names : names of the covariates
    kernel : LocalKernel with its widths
    null : Null
    seed : int or None
        `klce_test(sample, kernel=r.kernel, null=r.null, draws=r.draws, rng=r.seed)` makes
        the result again (an `AdaptiveResult` with `kernel=r.dictionary`); None if nothing was
        drawn.
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

    @property
    def score(self) -> float:
        """What is compared with the draws."""
        return self.statistic

    @cached_property
    def at_least(self) -> int:
        """Number of draws whose score is at least as large, ties counted."""
        if self.null_distribution is None:
            return 0
        return int(np.count_nonzero(self.null_distribution >= self.score - self._tie))

    @cached_property
    def _tie(self) -> float:
        """Differences that are rounding errors."""
        values = (self.score,) if self.null_distribution is None else self.null_distribution
        return TIE * max(abs(self.score), float(np.abs(values).max()))

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
        """Share of draws strictly above the score: the p-value of the paper's Algorithm 1.

        It can be 0, and a test that uses it exceeds its level; `pvalue` does not.
        """
        if self.null_distribution is None:
            raise AttributeError(f"{type(self.null).__name__} has a formula instead of draws")
        return float(np.mean(self.null_distribution > self.score + self._tie))

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

    @property
    def _statistic_draws(self) -> FloatArray | None:
        """KLCE^2 of every draw."""
        return self.null_distribution

    def _null_summary(self) -> dict[str, float] | None:
        if self._statistic_draws is None:
            return None
        levels = {"q50": 0.5, "q90": 0.9, "q95": 0.95, "q99": 0.99}
        quantiles = {k: float(np.quantile(self._statistic_draws, q)) for k, q in levels.items()}
        return {"sd": float(self._statistic_draws.std()), **quantiles}

    def _repr_html_(self) -> str:
        rows = [
            ("rows", self._rows_text()),
            ("covariates", _some(self.names) or "none: this asks about calibration alone"),
            *self._finding_rows(),
            ("null", f"{type(self.null).__name__}: {self.null.meaning}"),
            ("made with", self._provenance()),
        ]
        return notebook.card(
            f"p = {self._p_text()}",
            notebook.notes(f"! {alarm}" for alarm in self.alarms),
            notebook.sentence(self._sentence()),
            notebook.table(["", ""], rows),
            notebook.notes(self.notes),
        )

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
                "no draw differs from another: the kernel compares no rows whose labels could "
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
        on = _some(self.names) or "none: this asks about calibration alone"
        rows = [
            ("rows", self._rows_text()),
            ("covariates", on),
            *self._finding_rows(),
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

    def _finding_rows(self) -> list[tuple[str, str]]:
        return [
            ("KLCE^2", f"{self.statistic:.6g}   (unbiased, so it may be negative)"),
            ("under the null", self._null_text()),
            ("p-value", f"{self._p_text()}   {self._p_origin()}"),
        ]

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


@dataclass(frozen=True)
class Finding:
    """What one dictionary entry shows.

    Attributes
    ----------
    name, family : str
    covariates : names
    weight : float
        The share of the test's attention that the entry has.
    score : float
        Minus the log of the entry's approximate null tail, plus the log of its weight.
    unadjusted_pvalue : float
        If this had been the only place to look at.
    pvalue : float
        Adjusted for all places (step-down max-T): the family-wise error is held if the model is
        right wherever it was looked at, approximately if it is only unbiased along an entry.
    says : str
        In which way the model is wrong, for entries with a direction.
    alike : names of entries that say nearly the same, by their draws
    """

    name: str
    family: str
    covariates: tuple[str, ...]
    weight: float
    score: float
    unadjusted_pvalue: float
    pvalue: float
    says: str
    alike: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {**vars(self), "covariates": list(self.covariates), "alike": list(self.alike)}

    def __str__(self) -> str:
        return f"{self.name}: {self.says}" if self.says else self.name


def story_of(findings: Sequence[Finding], alpha: float = 0.05) -> tuple[Finding, ...]:
    """What is wrong at this level, once each.

    Of entries that say the same, one speaks. A pair of covariates is told where it says more than
    one of them does alone, "everything together" where nothing plainer is told.
    """
    score = {finding.name: finding.score for finding in findings}
    hidden = {name for finding in findings for name in finding.alike}
    striking = [f for f in findings if f.pvalue <= alpha and f.name not in hidden]
    plain = [f for f in striking if f.family != "full"] or striking
    # A group of entries counts as much as its most striking one, whoever speaks for it.
    plain.sort(key=lambda f: -max([f.score, *(score[name] for name in f.alike)]))
    told: list[Finding] = []
    for finding in plain:
        seen = set(finding.covariates)
        alone = [set(f.covariates) for f in told if f.family != "with prediction"]
        if not any(covariates and covariates < seen for covariates in alone):
            told.append(finding)
    return tuple(told)


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveResult(KLCEResult):
    """Outcome of `klce_test` over a dictionary: what is wrong, besides whether.

    `statistic` is KLCE^2 of the default kernel; `null_distribution` holds the combined score of
    every draw, and the p-value compares `combined` with it.

    Attributes
    ----------
    combined : float
        The largest score of an entry.
    statistic_draws : (draws,) array
        KLCE^2 of every draw.
    findings : one for each entry, the largest score first
    dictionary : Dictionary
    """

    combined: float
    statistic_draws: FloatArray
    findings: tuple[Finding, ...]
    dictionary: Dictionary

    @property
    def score(self) -> float:
        """The largest score of an entry, which is compared with the draws."""
        return self.combined

    @property
    def _statistic_draws(self) -> FloatArray | None:
        return self.statistic_draws

    def story(self, alpha: float = 0.05) -> tuple[Finding, ...]:
        """What is wrong at this level, once each, in the plainest words; see `story_of`."""
        return story_of(self.findings, alpha)

    def finding(self, name: str) -> Finding:
        """What one entry shows."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        known = [finding.name for finding in self.findings]
        raise InputError(f"there is no entry {name!r}; {did_you_mean(name, known)}")

    def to_dict(self) -> dict[str, Any]:
        """All facts, ready for JSON; of the findings, those with the largest scores."""
        return {
            **super().to_dict(),
            "score": self.score,
            "dictionary": self.dictionary.to_dict(),
            "findings": [finding.to_dict() for finding in self.findings[:MAX_IN_DICT]],
            "story": [finding.name for finding in self.story()],
        }

    def _finding_rows(self) -> list[tuple[str, str]]:
        looked = f"{len(self.findings):,} places"
        rows = [("p-value", f"{self._p_text()}   {self._p_origin()}")]
        told = self.story()[:MAX_TOLD]
        for number, finding in enumerate(told):
            title = "what is wrong" if number == 0 else ""
            rows.append((title, f"{finding.pvalue:.3g}  {finding}"))
        more = len(self.story()) - len(told)
        if more:
            rows.append(("", f"and {more} more: see .story()"))
        if any("bias" in str(finding) for finding in told):
            rows.append(("bias", "observed - predicted: the lower, the more it overestimates"))
        if self.findings and not told:
            first = self.findings[0]
            rows.append(("most striking", f"{first.pvalue:.3g}  {first}"))
        only = "" if self._judged == self.names else f" on {_some(self._judged)} only"
        rows.append(("looked at", f"{looked}{only}; p-values are adjusted for all of them"))
        statistic = f"{self.statistic:.6g}   (default kernel; may be negative)"
        return [*rows, ("KLCE^2", statistic), ("under the null", self._null_text())]

    def _kernel_rows(self) -> list[tuple[str, str]]:
        return []

    @property
    def _judged(self) -> tuple[str, ...]:
        """Covariates that the dictionary looks at, as far as its entries say."""
        seen = self.dictionary.covariates
        return tuple(n for n in self.names if n in seen) if seen else self.names

    def _sentence(self) -> str:
        given = f" given {_in_words(self._judged)}" if self._judged else ""
        right = f"If the probabilities were right{given}"
        if self.at_least == 0:
            return (
                f"{right}, something this striking would be rare: none of {self.draws:,} draws "
                f"has it."
            )
        share = f"{100 * self.pvalue:.3g} %"
        return f"{right}, something this striking would come up in about {share} of samples."


def _some(names: tuple[str, ...]) -> str:
    if len(names) <= MAX_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MAX_NAMES - 2])}, ... {names[-1]} ({len(names)} in all)"


def _in_words(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return names[0]
    if len(names) > 6:
        return f"{len(names)} covariates"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _entry(name: str, text: str) -> list[str]:
    first, *rest = textwrap.wrap(text, 62, break_long_words=False, break_on_hyphens=False)
    return [f"  {name:<16}{first}", *(f"{'':18}{line}" for line in rest)]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 78, initial_indent="  ", subsequent_indent="  ")
