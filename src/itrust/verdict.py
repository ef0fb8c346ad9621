"""The verdict: statistical evidence and what matters, in one of five words and one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from itrust.bias import LocalBias
from itrust.errors import counted
from itrust.planning import Detectable
from itrust.results import KLCEResult
from itrust.slices import SliceTable
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
    level: float,
    material: float,
) -> Verdict:
    """Follow the table: rejected or not, and whether a bias of `material` is shown or excluded."""
    given = f" given {_in_words(test.names)}" if test.names else ""
    impossible = test.impossible > 0
    if test.pvalue > level and not impossible:
        return _not_rejected(test, detectable, material, given)
    evidence = f"they are wrong{given} (p = {test.pvalue:.3g})"
    shown = [*_impossible(test), *_large(bias, slices, tasks, material)]
    story = [str(finding) for finding in getattr(test, "story", lambda _: ())(level)]
    if shown:
        sentence = f"These probabilities cannot be trusted: {evidence}, {shown[0]}."
        return Verdict(UNTRUSTWORTHY, sentence, tuple(dict.fromkeys([*shown, *story])))
    known = bias.known
    ends = np.abs(np.stack([bias.band.lower[known], bias.band.upper[known]]))
    if known.mean() >= KNOWN_ENOUGH and ends.max(initial=0.0) <= material:
        sentence = (
            f"These probabilities are off{given} (p = {test.pvalue:.3g}), but nowhere that was "
            f"looked at by more than {material:g}."
        )
        return Verdict(BELOW_MATERIAL, sentence, tuple(story))
    sentence = (
        f"These probabilities cannot be trusted: {evidence}; whether by {material:g} or more, "
        f"these rows do not tell."
    )
    return Verdict(SIZE_UNCLEAR, sentence, tuple(story))


def _impossible(test: KLCEResult) -> list[str]:
    if not test.impossible:
        return []
    return [f"{counted(test.impossible, 'label')} that the model called impossible came true"]


def _large(
    bias: LocalBias, slices: SliceTable, tasks: Sequence[TaskResult], material: float
) -> list[str]:
    """Biases of which at least `material` is shown, the largest slice first."""
    told = [
        f"by {part.bias:+.3f} ({part.lower:+.3f} to {part.upper:+.3f}) where {part.rule}"
        for part in slices.confirmed
        if part.lower >= material or part.upper <= -material
    ]
    for sign, end in ((1, bias.band.lower), (-1, -bias.band.upper)):
        least = np.where(bias.known, end, -math.inf)
        if least.size and least.max() >= material:
            k = int(np.argmax(least))
            ends = f"{bias.band.lower[k]:+.3f} to {bias.band.upper[k]:+.3f}"
            side = "low" if sign > 0 else "high"
            told.append(f"by {bias.values[k]:+.3f} ({ends}), too {side}, near {bias.where(k)}")
    told.extend(
        f"by {task.bias:+.4g} for {task.name}"
        for task in tasks
        if task.material is not None and task.finding == "biased"
    )
    return told


def _not_rejected(
    test: KLCEResult, detectable: Detectable | None, material: float, given: str
) -> Verdict:
    worst = math.inf if detectable is None else detectable.worst.shift
    told = f"nothing was found against these probabilities{given} (p = {test.pvalue:.3g})"
    if worst <= material:
        sentence = f"{told[0].upper()}{told[1:]}, and a shift of {material:g} would have been seen."
        return Verdict(NO_EVIDENCE, sentence, ())
    place = "" if detectable is None else f" in {detectable.worst.where}"
    size = f"less than {worst:.2f}" if math.isfinite(worst) else "any size"
    sentence = (
        f"{told[0].upper()}{told[1:]}, but a bias of {size}{place} would be likely to be "
        f"missed: these rows are too few."
    )
    return Verdict(NOT_ENOUGH, sentence, ())


def _in_words(names: Sequence[str]) -> str:
    if len(names) > 6:
        return f"{len(names)} covariates"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
