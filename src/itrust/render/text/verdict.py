"""Verdicts and their evidence in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import Any

from itrust._core import counted
from itrust.auditing import ImpossibleLabels, Judgement, PointBias, Verdict
from itrust.bias import Slice
from itrust.calibration import Finding
from itrust.data import Everywhere, Predicate
from itrust.tasks import TaskResult

MANY_NAMES = 6


def sentence_of(judgement: Judgement) -> str:
    """Say what an audit comes to, in one sentence that can be quoted in a report.

    Parameters
    ----------
    judgement : Judgement
        The verdict with the values behind it.

    Returns
    -------
    str
        A sentence, and a second one where a task is biased all the same.
    """
    return SENTENCES[judgement.verdict](judgement)


def _miscalibrated(judgement: Judgement) -> str:
    first = _first(judgement) if judgement.evidence else ""
    if not judgement.refuted:
        return f"These probabilities cannot be trusted for {first}."
    shown = first or "by more than the tolerance where too few rows stand behind it to be shown"
    return (
        f"These probabilities cannot be trusted: they are miscalibrated{_given(judgement)}, "
        f"{shown}."
    )


def _size_not_established(judgement: Judgement) -> str:
    return (
        f"These probabilities cannot be trusted: they are miscalibrated{_given(judgement)}; "
        f"whether by {judgement.tolerance:g} or more, these rows do not tell (the confidence "
        f"band reaches {judgement.reach or 0.0:.2f}). More labelled rows would tell."
    )


def _within_tolerance(judgement: Judgement) -> str:
    return (
        f"These probabilities are miscalibrated{_given(judgement)}, but at none of the points "
        f"that were checked by more than {judgement.tolerance:g}."
    )


def _no_evidence(judgement: Judgement) -> str:
    return (
        f"No evidence was found against these probabilities{_given(judgement)}, and a bias of "
        f"{judgement.tolerance:g} would have been seen.{_biased_task(judgement)}"
    )


def _inconclusive(judgement: Judgement) -> str:
    told = f"No evidence was found against these probabilities{_given(judgement)}"
    missed = judgement.overlooked
    if missed is None or not math.isfinite(missed.shift):
        why = "but how small a bias these rows would have shown is not known"
    else:
        where = "in a group that is not shown" if missed.where is None else _place(missed.where)
        why = (
            f"but a bias below {missed.shift:.3f} {where} would probably have been missed: there "
            f"are too few rows"
        )
    return f"{told}, {why}.{_biased_task(judgement)}"


SENTENCES: dict[Verdict, Callable[[Judgement], str]] = {
    Verdict.MISCALIBRATED: _miscalibrated,
    Verdict.SIZE_NOT_ESTABLISHED: _size_not_established,
    Verdict.WITHIN_TOLERANCE: _within_tolerance,
    Verdict.NO_EVIDENCE: _no_evidence,
    Verdict.INCONCLUSIVE: _inconclusive,
}


def _given(judgement: Judgement) -> str:
    names = judgement.names
    given = f" given {in_words(names)}" if names else ""
    return f"{given} (p = {judgement.pvalue:.3g})"


def _place(where: Predicate) -> str:
    return str(where) if isinstance(where, Everywhere) else f"where {where}"


def _biased_task(judgement: Judgement) -> str:
    if not judgement.evidence:
        return ""
    return f" One task is biased all the same: {_first(judgement)}."


def _first(judgement: Judgement) -> str:
    return evidence_words(judgement.evidence[0], judgement.tolerance)


def in_words(names: Sequence[str]) -> str:
    """Join names of covariates, or count them where they are many.

    >>> in_words(["age", "income", "region"]), in_words(list("abcdefg"))
    ('age, income and region', '7 covariates')
    """
    if len(names) > MANY_NAMES:
        return f"{len(names)} covariates"
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


@singledispatch
def evidence_words(item: Any, tolerance: float = 0.0) -> str:
    """Say what one piece of evidence shows.

    Parameters
    ----------
    item : Slice, PointBias, TaskResult, Finding or ImpossibleLabels
        What carries a verdict.
    tolerance : float
        The size of bias that a slice had to show to be told.

    Returns
    -------
    str
        A part of a sentence.
    """
    del tolerance
    raise TypeError(f"nothing says how a {type(item).__name__} reads as evidence")


@evidence_words.register
def _slice_words(item: Slice, tolerance: float = 0.0) -> str:
    likely = abs(item.estimate(tolerance))
    return f"{_at_least(item.at_least)} where {item.rule} (estimate {likely:.3f})"


@evidence_words.register
def _point_words(item: PointBias, tolerance: float = 0.0) -> str:  # noqa: ARG001
    at = ", ".join(f"{own.name} {own.shown}" for own in item.coordinates)
    near = ", ".join(part for part in (at, f"prediction {item.prediction:.2f}") if part)
    told = f"{_at_least(item.at_least)} near {near}"
    if item.bias is None:
        return told
    size = math.copysign(1, item.at_least) * item.bias
    return f"{told} (estimate {size:.3f}, from the half of the rows that did not choose the place)"


@evidence_words.register
def _task_words(item: TaskResult, tolerance: float = 0.0) -> str:  # noqa: ARG001
    return (
        f"{item.name}: {item.plugin:.4g} with probabilities, {item.from_labels:.4g} with labels "
        f"(p = {item.pvalue:.3g})"
    )


@evidence_words.register
def _finding_words(item: Finding, tolerance: float = 0.0) -> str:  # noqa: ARG001
    return str(item)


@evidence_words.register
def _impossible_words(item: ImpossibleLabels, tolerance: float = 0.0) -> str:  # noqa: ARG001
    return f"{counted(item.count, 'label')} that the model called impossible came true"


def _at_least(bias: float) -> str:
    """The smallest size that is shown, with its direction in words."""
    return f"too {'low' if bias > 0 else 'high'} by at least {abs(bias):.3f}"
