"""The verdict: statistical evidence and what matters, in one of five words and one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust._core import counted
from itrust.bias import LocalBias, SliceTable
from itrust.calibration import Detectable, KLCEResult
from itrust.tasks import TaskResult

UNTRUSTWORTHY = "untrustworthy"
BELOW_MATERIAL = "detectable, below material"
SIZE_UNCLEAR = "untrustworthy, size unclear"
NO_EVIDENCE = "no evidence against"
NOT_ENOUGH = "not enough data"
KNOWN_ENOUGH = 0.9  # share of points with a band, to say that all is within it


@dataclass(frozen=True)
class Verdict:
    """What the audit comes to.

    Attributes
    ----------
    name : {"untrustworthy", "detectable, below material", "untrustworthy, size unclear",
            "no evidence against", "not enough data"}
    sentence : str
        To be quoted in a report.
    carried_by : tuple of str
        The findings behind it.
    """

    name: str
    sentence: str
    carried_by: tuple[str, ...]

    @property
    def trustworthy(self) -> bool:
        """Whether nothing that matters speaks against the model."""
        return self.name in (NO_EVIDENCE, BELOW_MATERIAL)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"name": self.name, "sentence": self.sentence, "carried_by": list(self.carried_by)}

    def __str__(self) -> str:
        return f"{self.name}: {self.sentence}"


def verdict_on(
    test: KLCEResult,
    bias: LocalBias,
    slices: SliceTable,
    detectable: Detectable | None,
    tasks: Sequence[TaskResult],
    *,
    alpha: float,
    tolerance: float,
) -> Verdict:
    """Follow the table: rejected or not, and whether a bias of `tolerance` is shown or excluded."""
    given = f" given {_in_words(test.names)}" if test.names else ""
    impossible = test.impossible > 0
    beyond = [_for_task(task) for task in tasks if task.tolerance and task.finding == "biased"]
    if test.pvalue > alpha and not impossible and not beyond:
        return _not_rejected(test, detectable, tasks, tolerance, given)
    if test.pvalue > alpha and not impossible:
        sentence = f"These probabilities cannot be trusted for {beyond[0]}."
        return Verdict(UNTRUSTWORTHY, sentence, tuple(beyond))
    evidence = f"they are wrong{given} (p = {test.pvalue:.3g})"
    shown = [*_impossible(test), *_large(bias, slices, tasks, tolerance)]
    story = [str(finding) for finding in getattr(test, "story", lambda _: ())(alpha)]
    if shown:
        sentence = f"These probabilities cannot be trusted: {evidence}, {shown[0]}."
        return Verdict(UNTRUSTWORTHY, sentence, tuple(dict.fromkeys([*shown, *story])))
    known = bias.known
    ends = np.abs(np.stack([bias.band.lower[known], bias.band.upper[known]]))
    if known.mean() >= KNOWN_ENOUGH and ends.max(initial=0.0) <= tolerance:
        sentence = (
            f"These probabilities are off{given} (p = {test.pvalue:.3g}), but nowhere that was "
            f"looked at by more than {tolerance:g}."
        )
        return Verdict(BELOW_MATERIAL, sentence, tuple(story))
    sentence = (
        f"These probabilities cannot be trusted: {evidence}; whether by {tolerance:g} or more, "
        f"these rows do not tell (the confidence band reaches {ends.max(initial=0.0):.2f}); more "
        f"labelled rows would."
    )
    return Verdict(SIZE_UNCLEAR, sentence, tuple(story))


def _impossible(test: KLCEResult) -> list[str]:
    if not test.impossible:
        return []
    return [f"{counted(test.impossible, 'label')} that the model called impossible came true"]


def _large(
    bias: LocalBias, slices: SliceTable, tasks: Sequence[TaskResult], tolerance: float
) -> list[str]:
    """Biases of which at least `tolerance` is shown, the largest slice first."""
    told = [
        f"{_amount(part.bias, part.lower, part.upper)} where {part.rule}"
        for part in slices.confirmed
        if part.lower >= tolerance or part.upper <= -tolerance
    ]
    for end in (bias.band.lower, -bias.band.upper):
        least = np.where(bias.known, end, -math.inf)
        if least.size and least.max() >= tolerance:
            k = int(np.argmax(least))
            ends = bias.band.lower[k], bias.band.upper[k]
            told.append(f"{_amount(bias.values[k], *ends)} near {bias.where(k)}")
    told.extend(_for_task(task) for task in tasks if task.tolerance and task.finding == "biased")
    return told


def _amount(bias: float, lower: float, upper: float) -> str:
    """A size with its direction in words."""
    side, sign = ("low", 1) if bias > 0 else ("high", -1)
    near, far = sorted((sign * lower, sign * upper))
    return f"too {side} by {abs(bias):.3f} ({near:.3f} to {far:.3f})"


def _for_task(task: TaskResult) -> str:
    return (
        f"{task.name}: {task.plugin:.4g} with probabilities, {task.from_labels:.4g} with labels "
        f"(p = {task.pvalue:.3g})"
    )


def _not_rejected(
    test: KLCEResult,
    detectable: Detectable | None,
    tasks: Sequence[TaskResult],
    tolerance: float,
    given: str,
) -> Verdict:
    # Rows of a cluster count for less than `detectable` takes them for.
    seen = None if test.clusters else detectable
    worst = math.inf if seen is None else seen.worst.shift
    off = [_for_task(task) for task in tasks if task.finding.startswith("biased")]
    more = f" One number is off all the same: {off[0]}." if off else ""
    told = f"Nothing was found against these probabilities{given} (p = {test.pvalue:.3g})"
    if worst <= tolerance:
        sentence = f"{told}, and a shift of {tolerance:g} would have been seen.{more}"
        return Verdict(NO_EVIDENCE, sentence, tuple(off))
    if seen is None or not math.isfinite(worst):
        sentence = f"{told}, but what these rows would have shown is not known.{more}"
    else:
        place = "everywhere" if seen.worst.where == "everywhere" else f"where {seen.worst.where}"
        sentence = (
            f"{told}, but a bias below {worst:.3f} {place} would be likely to be missed: these "
            f"rows are too few.{more}"
        )
    return Verdict(NOT_ENOUGH, sentence, tuple(off))


def _in_words(names: Sequence[str]) -> str:
    if len(names) > 6:
        return f"{len(names)} covariates"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
