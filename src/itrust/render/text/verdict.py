"""Verdicts and their evidence in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from itrust._core import Setting, counted, in_door_words, rounded_up, shown_name, signed_in
from itrust.auditing import (
    ClassEvidence,
    ImpossibleLabels,
    Judgement,
    MeanBias,
    Overlooked,
    Verdict,
)
from itrust.bias import PartBias
from itrust.calibration import Clustering, Coverage, Finding, Refusal, TakenFor, ValidationStatistic
from itrust.data import PREDICTION, Everywhere, Predicate
from itrust.render.text.tasks import task_title, task_values
from itrust.tasks import TaskResult

MANY_NAMES = 6
LARGE_SHARE = 0.5  # of the rarer label's rate; a tolerance from here on says little
OWN_PVALUES = (
    "a finding's p-value also asks whether other findings explain it, so it can be larger than "
    "that of the test"
)


def sentence_of(judgement: Judgement) -> str:
    """Say what an audit comes to, in one sentence that can be quoted in a report."""
    return WORDS[judgement.verdict][0](judgement)


def action_of(judgement: Judgement) -> str:
    """Say what to do next."""
    told = WORDS[judgement.verdict][1](judgement)
    if judgement.tolerance < LARGE_SHARE * judgement.rate:
        return told
    smaller = in_door_words(Setting("tolerance", float(f"{judgement.rate / 5:.1g}")))
    return (
        f"{told} A tolerance of {judgement.tolerance:g} is large beside a rate of "
        f"{judgement.rate:.2g}: name a smaller one, such as {smaller}."
    )


def _miscalibrated(judgement: Judgement) -> str:
    shown = "by more than the tolerance where too few rows stand behind it to be shown"
    if judgement.evidence:
        shown = _first(judgement)
    return f"The model is miscalibrated{_given(judgement)}: {shown}."


def _size_not_established(judgement: Judgement) -> str:
    return (
        f"{_off(judgement)} Whether by {judgement.tolerance:g} or more is not established: "
        f"{_band(judgement, 'only ')}."
    )


def _within_tolerance(judgement: Judgement) -> str:
    return (
        f"{_off(judgement)} It is not off by more than {judgement.tolerance:g}: {_band(judgement)}."
    )


def _off(judgement: Judgement) -> str:
    """That the model is miscalibrated, and what shows it most."""
    told = f"The model is miscalibrated{_given(judgement)}"
    if judgement.evidence:
        return f"{told}: {_first(judgement)}."
    if judgement.is_attributed:  # by what may not be shown
        return f"{told}."
    carrier = untold(judgement.names, judgement.classes)
    return f"{told}. {carrier[0].upper()}{carrier[1:]}."


def _band(judgement: Judgement, only: str = "") -> str:
    """Where the band lies within the tolerance."""
    share = judgement.share_within
    where = f"{only}{math.floor(100 * share)} %" if share >= 0.01 else f"{only}fewer than 1 %"
    where = "all" if share == 1 else where if share else "none"
    return (
        f"the confidence band of the bias, averaged over similar rows, lies within "
        f"{judgement.tolerance:g} at {where} of the points that were checked"
    )


def _calibrated(judgement: Judgement) -> str:
    told = (
        f"The model is calibrated{_named(judgement)} within {judgement.tolerance:g}: "
        f"{_band(judgement)}, and the test does not reject (p = {judgement.pvalue:.3g})."
    )
    places = [item for item in judgement.evidence if not isinstance(item, TaskResult)]
    if not places:  # numbers have sentences of their own
        return told
    shown = evidence_words(places[0])
    return f"{told} A smaller bias is shown by itself: {shown}."


def _no_evidence(judgement: Judgement) -> str:
    missed = judgement.overlooked
    coverage = None if missed is None else missed.coverage
    where = "" if coverage is None else f" {coverage_words(coverage)}"
    if coverage is not None and not (coverage.groups or coverage.tenths or coverage.pairs):
        where = " if all rows had it"
    if judgement.classes:
        where = " for every class, in all rows and in every large group of one covariate"
    together = "" if missed is None else _approximately(missed)
    return (
        f"No evidence was found against the model{_given(judgement)}, and a bias of "
        f"{judgement.tolerance:g} would have been seen{where}{together}."
    )


def _recalibrate(judgement: Judgement) -> str:
    return (
        f"Recalibrate the model (itrust recalibrate; in Python itrust.recalibrate) before you use "
        f"it for {_or_anything(judgement)}."
    )


def _recalibrate_or_label(judgement: Judgement) -> str:
    units = "rows" if judgement.clusters is None else "clusters"
    return (
        f"Label more {units} to learn whether the bias reaches {judgement.tolerance:g}, or "
        f"recalibrate."
    )


def _use(judgement: Judgement) -> str:
    return (
        f"Use the model for {_or_anything(judgement)}, wherever a bias below "
        f"{judgement.tolerance:g} does not matter."
    )


def _decide(judgement: Judgement) -> str:
    """What would decide: rows, or the tolerance that these rows can show."""
    missed = judgement.overlooked
    if judgement.refused is not None:
        return "Label rows of more clusters; until then read the intervals, which are rough."
    if judgement.is_contrary:
        return (
            "Decide by the question that is yours: what is shown by itself has its own error "
            "control. Other labelled rows would tell whether the model is miscalibrated."
        )
    if missed is None or math.isnan(missed.shift):
        return "Read the intervals of groups and numbers; the test alone does not tell."
    if missed.rows_needed is None:
        return "Label more rows there: with these, a bias of any size could go unseen."
    units = "rows" if missed.clustering is None else "rows in clusters"
    return (
        f"About {missed.rows_needed:,} {units} like these would show a bias of "
        f"{judgement.tolerance:g} there; these suffice for a tolerance of "
        f"{rounded_up(missed.shift)}."
    )


def _or_anything(judgement: Judgement) -> str:
    if not judgement.names:
        return "averages over all rows"
    any_of = "any of these " if len(judgement.names) > MANY_NAMES else ""
    return f"numbers that depend on {any_of}{in_words(judgement.names, 'or')}"


def _approximately(missed: Overlooked) -> str:
    """What a promise rests on where rows come in clusters."""
    own = missed.clustering
    if own is None:
        return ""
    at_most = "" if own.correlation is None else "at most "
    return (
        f" (approximate, by {counted(own.clusters, 'cluster')} with an intra-cluster correlation "
        f"of {at_most}{own.icc:.2g})"
    )


def clustering_words(own: Clustering, rows: int) -> str:
    """Say how alike labels of a cluster are taken to be, and how many rows are left of them.

    Examples
    --------
    >>> clustering_words(Clustering(0.05, 0.05, 60, 59, 1.95), 1_200)
    'rows of a cluster go together (intra-cluster correlation 0.05): 1,200 rows count as 615'
    """
    found = own.correlation
    value = f"{own.icc:.2g}"
    if found is not None:
        value = f"{max(found.estimate, 0.0):.2g}, "
        value += f"at most {own.icc:.2g}" if own.icc != found.estimate else "as estimated"
    left = rows / own.design_effect
    return (
        f"rows of a cluster go together (intra-cluster correlation {value}): {rows:,} rows count "
        f"as {left:,.0f}"
    )


def refusal_words(refusal: Refusal) -> str:
    """Say why there is no p-value, what is there and what would suffice.

    Examples
    --------
    >>> refusal_words(Refusal(60, 6.25, 10.0))
    '60 clusters carry as much as 6.2 equal ones, and at least 10 are needed'
    """
    needed = f"at least {refusal.needed:g} are needed"
    if refusal.by_replicates:
        told = counted(refusal.clusters, "cluster")
        return f"these replicate weights stand for {told}, and {needed}"
    if refusal.effective > 0.95 * refusal.clusters:
        return f"there are {counted(refusal.clusters, 'cluster')}, and {needed}"
    told = counted(refusal.clusters, "cluster")
    return f"{told} carry as much as {refusal.effective:.2g} equal ones, and {needed}"


def _inconclusive(judgement: Judgement) -> str:
    missed = judgement.overlooked
    if judgement.refused is not None:
        told = f"The test gives no p-value{_named(judgement)}: {refusal_words(judgement.refused)}."
        return f"{told}{_shown_anyway(judgement)}"
    if judgement.is_contrary:
        return (
            f"All checks together do not reject calibration{_given(judgement)}, but a bias is "
            f"shown by itself: {_against(judgement)}."
        )
    told = f"No evidence was found against the model{_given(judgement)}"
    if missed is None or math.isnan(missed.shift):
        why = "but how small a bias these rows would have shown is not known"
        why += "" if judgement.unknown is None else f": {judgement.unknown}"
        return f"{told}, {why}."
    where = "in a group that is not shown" if missed.where is None else _place(missed.where)
    if missed.where is not None and missed.share < 1:
        where += f" ({100 * missed.share:.2g} % of the rows)"
    size = f"up to {missed.shift:.2g}" if math.isfinite(missed.shift) else "of any size"
    if missed.of_class is not None:
        size = f"of {class_words(missed.of_class)} {size}"
    why = f"but a bias {size} {where} could have gone unseen{_approximately(missed)}"
    return f"{told}, {why}.{_seen(missed, judgement.tolerance)}"


def _shown_anyway(judgement: Judgement) -> str:
    if not judgement.is_contrary:
        return ""
    return f" A bias is shown by itself: {_against(judgement)}."


def _against(judgement: Judgement) -> str:
    """The first thing that shows a bias by itself, and how many others do."""
    if not judgement.evidence:
        return "in rows that are too few to be shown"
    others = len(judgement.evidence) - 1
    shown = evidence_words(judgement.evidence[0])
    return f"{shown}{f' (and {others} more)' if others else ''}"


def _seen(missed: Overlooked, tolerance: float) -> str:
    """In how many regions a bias of the tolerance would have been seen, if in any."""
    covered = missed.coverage
    if covered is None or not missed.seen + missed.seen_pairs:
        return ""
    places = [f"{missed.seen:,} of {_singles(covered)}"]
    if covered.pairs:
        places.append(f"{missed.seen_pairs:,} of {counted(covered.pairs, 'pair')} of them")
    return (
        f" A bias of {tolerance:g} would have been seen in {' and in '.join(places)} with at least "
        f"{counted(covered.min_rows, 'row')}."
    )


def _singles(covered: Coverage) -> str:
    """How many single regions there are."""
    if not covered.tenths:
        return counted(covered.groups, "single group")
    if not covered.groups:
        return f"{covered.tenths:,} tenths of numbers"
    return f"{covered.groups + covered.tenths:,} single groups and tenths of numbers"


def coverage_words(covered: Coverage) -> str:
    """Say which regions were looked at.

    >>> coverage_words(Coverage(60, 16, 0, 57, paired_groups=True, paired_fifths=False))
    'in every single group and every pair of groups with at least 60 rows'
    """
    singles = [
        *(["every single group"] if covered.groups else []),
        *(["every tenth of a number"] if covered.tenths else []),
    ]
    paired = " or ".join(
        [
            *(["groups"] if covered.paired_groups else []),
            *(["fifths of numbers"] if covered.paired_fifths else []),
        ]
    )
    places = [*singles, *([f"every pair of {paired}"] if covered.pairs else [])]
    if not places:
        return "in all rows together"
    told = f"in {in_words(places)} with at least {counted(covered.min_rows, 'row')}"
    if not covered.uncrossed:
        return told
    uncrossed = f"pairs with {_others(covered.uncrossed)}"
    if covered.uncut:
        uncrossed = f"{_others(covered.uncut)}, and {uncrossed},"
    return f"{told}; {uncrossed} were not looked at"


def _others(names: Sequence[str]) -> str:
    return in_words(names) if len(names) <= MANY_NAMES else f"the last {len(names)} covariates"


WORDS: dict[Verdict, tuple[Callable[[Judgement], str], Callable[[Judgement], str]]] = {
    Verdict.MISCALIBRATED: (_miscalibrated, _recalibrate),
    Verdict.SIZE_NOT_ESTABLISHED: (_size_not_established, _recalibrate_or_label),
    Verdict.WITHIN_TOLERANCE: (_within_tolerance, _use),
    Verdict.CALIBRATED: (_calibrated, _use),
    Verdict.NO_EVIDENCE: (_no_evidence, _use),
    Verdict.INCONCLUSIVE: (_inconclusive, _decide),
}  # a sentence to be quoted, and what to do next


def _named(judgement: Judgement) -> str:
    return f" given {in_words(judgement.names)}" if judgement.names else ""


def _given(judgement: Judgement) -> str:
    named = _named(judgement)
    return named if math.isnan(judgement.pvalue) else f"{named} (p = {judgement.pvalue:.3g})"


def untold(names: Sequence[str], classes: Sequence[Any] = ()) -> str:
    """Say that calibration is refuted while no check holds by itself."""
    what = "which covariate" if len(names) > 1 else "what"
    if classes:
        return (
            f"the test of all classes rejects, but no single class or finding stands out: which "
            f"class{' and ' + what if names else ''} carries the bias cannot be told from these "
            f"rows"
        )
    return (
        f"the test rejects, but no single finding stands out: {what} carries the bias cannot be "
        f"told from these rows"
    )


def _place(where: Predicate) -> str:
    return str(where) if isinstance(where, Everywhere) else f"where {where}"


def _first(judgement: Judgement) -> str:
    """Level and slope, what these come to, and what is next; of several classes those of one."""
    told, first = [], judgement.evidence[0]
    for item in judgement.evidence:
        inner: Any = item
        if isinstance(item, ClassEvidence):
            if not (isinstance(first, ClassEvidence) and item.name == first.name):
                continue
            inner = item.item
        told.append(evidence_words(item))
        of_prediction = isinstance(inner, PartBias) and inner.names == (PREDICTION,)
        if not (of_prediction or isinstance(inner, MeanBias | ValidationStatistic)):
            break
    return "; ".join(told)


def in_words(names: Sequence[str], last: str = "and") -> str:
    """Join names of covariates, or count them where they are many.

    >>> in_words(["age", "income", "region"]), in_words(list("abcdefg"))
    ('age, income and region', '7 covariates')
    """
    if len(names) > MANY_NAMES:
        return f"{len(names)} covariates"
    names = [shown_name(name) for name in names]
    return f" {last} ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def evidence_words(item: Any) -> str:
    """Say what one piece of evidence shows."""
    match item:
        case PartBias():
            return _part_words(item)
        case MeanBias():
            return f"{_off_by(item.bias, item)} on average over all rows"
        case ValidationStatistic():
            return _slope_words(item)
        case TaskResult():
            plugin, labels = task_values(item)
            values = f"{plugin} with probabilities, {labels} with labels (p = {item.pvalue:.3g})"
            return f"{task_title(item)} is {values}"
        case ImpossibleLabels():
            return f"{counted(item.count, 'label')} that the model called impossible came true"
        case ClassEvidence(name, inner):
            if isinstance(inner, ValidationStatistic):
                return _slope_words(inner, f" of {class_words(name)}")
            told = evidence_words(inner)
            if name is None or isinstance(inner, TakenFor):
                return told
            is_clause = isinstance(inner, Finding | ValidationStatistic)
            lead, between = ("for ", "") if is_clause else ("", "is ")
            return f"{lead}{class_words(name)} {between}{told}"
    return str(item)  # findings and pairs of classes


def _part_words(item: PartBias) -> str:
    return f"{_off_by(item.estimate, item)} where {item.where}"


def _off_by(estimate: float, item: PartBias | MeanBias) -> str:
    """The direction in words, the size without what being picked out adds, and what is shown."""
    ends = item.lower, item.upper
    way = "low" if item.bias > 0 else "high"
    return f"too {way} by about {_size(estimate, *ends)} (at least {_size(item.at_least, *ends)})"


def _slope_words(slope: ValidationStatistic, of: str = "") -> str:
    value, *ends = (float(own or 0) for own in (slope.value, slope.lower, slope.upper))
    lower, upper = map(_beside_1, ends)
    way = "too extreme" if value < 1 else "not extreme enough"
    return f"the probabilities{of} are {way} (slope {value:.2f}, {lower} to {upper})"


def _beside_1(end: float) -> str:
    """An end of an interval that does not hold 1, which is never told as 1."""
    texts = [f"{end:.{places}f}" for places in range(2, 7)]
    return next((text for text in texts if float(text) != 1), texts[0])


def class_words(name: object) -> str:
    """The name of a class, in quotes where it is a text.

    >>> class_words("tie"), class_words(3)
    ("'tie'", 'class 3')
    """
    return repr(name) if isinstance(name, str) else f"class {name}"


def _size(bias: float, lower: float, upper: float) -> str:
    """A bias without its sign, with the digits of its interval."""
    return signed_in(abs(bias), lower, upper)[1:]
