"""Tests of calibration, their findings and their power, as plain text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from itrust._core import counted, signed
from itrust.calibration import (
    CalibrationResult,
    ClassResult,
    Detectable,
    Finding,
    MulticlassResult,
    Refusal,
    RegionPower,
    ReliabilityCurve,
    SampleSize,
    Shape,
    TakenFor,
)
from itrust.data import Everywhere
from itrust.nulls import IntervalNull
from itrust.render.document import (
    Document,
    Notes,
    Section,
    Sentence,
    Table,
    document_of,
    in_one_line,
    interval,
    noted,
    number,
    seconds,
)
from itrust.render.text.verdict import (
    clustering_words,
    coverage_words,
    in_words,
    refusal_words,
    untold,
)

ALPHA = 0.05  # of the evidence that is shown
MAX_TOLD, MAX_NAMES = 5, 12
MAX_TOLD_OF_A_CLASS = 3
MAX_PAIRS = 10  # pairs of groups, those where the least is seen
GAP = "gap = observed - predicted; positive: the model underestimates"
SIGN = "observed - predicted: the lower, the more the model overestimates"


@document_of.register
def _(finding: Finding) -> Document:
    if finding.is_bound:
        return Document(bound_finding_text(finding))
    if finding.label is not None:
        return Document(class_finding_text(finding.label, finding))
    return Document(finding_text(finding))


def finding_text(finding: Finding) -> str:
    """What a finding means, in one sentence without a full stop.

    Directions are centred, so they tell how the bias (observed minus predicted) differs between
    rows, and nothing about its sign in any of them.
    """
    if finding.family == "all classes":
        return f"the shares of the classes are off {_along(finding.shape, finding)}"
    return f"{_shown(finding)}{_extremes(finding)}{_shared(finding)}"


def bound_finding_text(finding: Finding) -> str:
    """What speaks against an interval null, in one sentence without a full stop.

    Directions are not centred where they are never negative: the sentence is about the rows that
    they name, and not about how these differ from others.
    """
    more, other = ("more", "fewer") if finding.direction > 0 else ("fewer", "more")
    low = "low" if finding.direction > 0 else "high"
    if finding.shape is Shape.LEVEL:
        return f"the predictions are too {low} overall"
    if finding.shape in (Shape.GROUP, Shape.PART):
        return f"the predictions are too {low} where {finding.where}"
    where = "" if finding.where == Everywhere() else f" where {finding.where}"
    what = "the prediction" if finding.family == "with prediction" else _what(finding)
    if finding.shape is Shape.TREND:
        bias = f"{more} labels of 1 than predicted where {what} is high, {other} where it is low"
    elif finding.shape is Shape.QUADRATIC:
        bias = f"{more} labels of 1 than predicted at both ends of {what}, {other} between"
    elif finding.shape is Shape.PRODUCT:
        both = " and ".join(finding.covariates)
        bias = f"{more} labels of 1 than predicted where {both} are both high or both low"
    else:
        bias = f"{more} labels of 1 than predicted along {finding.name}"
    return f"{bias}{where}"


def class_finding_text(name: object, finding: Finding) -> str:
    """What a finding means for one class, which is named."""
    way = "low" if finding.direction > 0 else "high"
    if finding.shape is Shape.LEVEL:
        return f"too {way} for {name} overall"
    if finding.shape in (Shape.GROUP, Shape.PART, Shape.REGION):
        there = f"where {finding.where}, compared with elsewhere"
        return f"too {way} for {name} {there}{_shared(finding)}"
    return f"{name}: {finding_text(finding)}"


def _along(shape: Shape, found: Finding | TakenFor) -> str:
    """Where shares are off, or classes are taken for each other."""
    if shape is Shape.LEVEL:
        return "overall"
    if shape is Shape.TREND:
        return f"along {found.covariates[-1]}"
    return f"where {found.where}"


@document_of.register
def _(pair: TakenFor) -> Document:
    taken = f"{pair.actual} is taken for {pair.predicted}"
    if pair.shape is Shape.TREND:
        return Document(f"{taken} the more, the higher {pair.covariates[-1]} is")
    about = "" if math.isnan(pair.moved) else f" (about {100 * pair.moved:.2g} % of all rows there)"
    return Document(f"{taken} {_along(pair.shape, pair)}{about}")


def _extremes(finding: Finding) -> str:
    """Who is under- and who is overestimated most."""
    told = [
        f"most too {way} where {where}"
        for way, where in (("low", finding.too_low), ("high", finding.too_high))
        if where is not None
    ]
    return f" ({'; '.join(told)})" if told else ""


def _shown(finding: Finding) -> str:
    if finding.shape is Shape.REGION:  # judged beside all else that was found
        return f"the bias is {_more(finding)} where {finding.where} than what is plainer explains"
    if finding.shape in (Shape.GROUP, Shape.PART):
        return f"the bias is {_more(finding)} where {finding.where} than elsewhere"
    where = "" if finding.where == Everywhere() else f" where {finding.where}"
    return f"{_sentence(finding, _what(finding))}{where}"


def _shared(finding: Finding) -> str:
    """Who else may carry the bias."""
    if not finding.shared_with:
        return ""
    own = finding.covariates or ("the prediction",)
    together = in_words(list(dict.fromkeys([*own, *finding.shared_with])))
    return f" ({together} go together: these rows cannot tell which of them carries it)"


def _sentence(finding: Finding, what: str) -> str:
    if finding.shape is Shape.PRODUCT:
        both = " and ".join(finding.covariates)
        return f"the bias is {_more(finding)} where {both} are both high or both low than elsewhere"
    if finding.shape is Shape.JOINT:
        return f"small biases along {in_words(finding.covariates)} add up"
    if finding.shape is Shape.KERNEL:
        return finding.name
    told = shape_words(finding.shape, finding.direction > 0, what, bool(finding.covariates))
    return told or f"the bias varies with {what}"


def shape_words(shape: Shape, up: bool, what: str, of_covariate: bool) -> str:
    """What a check of one function of one thing found; nothing for other shapes."""
    match shape:
        case Shape.LEVEL:
            return f"the predictions are too {'low' if up else 'high'} overall"
        case Shape.TREND:
            bias = f"the bias {'rises' if up else 'falls'} with {what}"
            extreme = "not extreme enough" if up else "too extreme"
            return bias if of_covariate else f"the predictions are {extreme}: {bias}"
        case Shape.QUADRATIC:
            return f"the bias is {'higher' if up else 'lower'} at both ends of {what} than between"
        case Shape.IMPOSSIBLE:
            return "labels occurred that the model gave probability 0"
    return ""


def _what(finding: Finding) -> str:
    """What the bias goes along with."""
    names = finding.covariates
    if finding.shape is Shape.FULL:
        return "the prediction and all covariates together" if names else "the prediction"
    if finding.shape is Shape.PAIR:
        others = names if len(names) > 1 else (*names, "the prediction")
        return f"{' and '.join(others)} together"
    return names[-1] if names else "the prediction"


def _more(finding: Finding) -> str:
    return "higher" if finding.direction > 0 else "lower"


@document_of.register
def _(result: CalibrationResult) -> Document:
    title = "Is the model calibrated?   H0: P(y = 1 | p) = p"
    if result.names:
        title = "Is the model calibrated given the covariates?   H0: P(y = 1 | x, p) = p"
    if isinstance(result.null, IntervalNull):
        title = title.replace(" = p", f" within {result.null!r}")
    covariates = _some(result.names) or "none: this asks about calibration alone"
    rows = [
        ("rows", _rows(result)),
        ("covariates", covariates),
        *_result_rows(result),
        *_kernel_rows(result),
        ("null", _null(result)),
        ("made with", _made(result)),
        *_certificate_rows(result),
    ]
    meaning = Sentence(_meaning(result))
    warnings, notes = noted((), result.warnings), noted(result.notes)
    return Document(title, [warnings, Table(("", ""), rows), meaning, notes])


def _result_rows(result: CalibrationResult) -> list[tuple[str, str]]:
    """The p-value, what was found and the statistic: titles and texts."""
    pvalue = ("p-value", f"{pvalue_text(result)}   {_origin(result)}")
    spread = ("under the null", _spread(result))
    if not result.is_adaptive:
        statistic = f"{result.statistic:.6g}   (unbiased, so it may be negative)"
        return [("KLCE^2", statistic), spread, pvalue]
    statistic = f"{result.statistic:.6g}   (default kernel; may be negative)"
    return [pvalue, *_evidence_rows(result), ("KLCE^2", statistic), spread]


def _evidence_rows(result: CalibrationResult) -> list[tuple[str, str]]:
    evidence = result.evidence(ALPHA)
    told = evidence[:MAX_TOLD]
    rows = [
        ("evidence" if k == 0 else "", f"{finding.pvalue:.3g}  {finding}")
        for k, finding in enumerate(told)
    ]
    if len(evidence) > len(told):
        rows.append(("", f"and {len(evidence) - len(told)} more: see .evidence()"))
    if told:
        rows.append(("bias", SIGN))
    elif result.findings:
        if result.pvalue <= ALPHA:
            rows.append(("evidence", untold(result.names)))
        first = result.findings[0]
        rows.append(("most striking", f"{first.pvalue:.3g}  {first}"))
    only = "" if result.judged_on == result.names else f" on {_some(result.judged_on)} only"
    checks = counted(result.checks, "check")
    return [*rows, ("checks", f"{checks}{only}; p-values are adjusted for all of them")]


def _kernel_rows(result: CalibrationResult) -> list[tuple[str, str]]:
    if result.is_adaptive:
        return []
    kernel = result.kernel
    parts = ("kernel on p", kernel.prob, ["p"]), ("kernel on x", kernel.x, result.names)
    return [(title, part.describe(names)) for title, part, names in parts if part]


def _certificate_rows(result: CalibrationResult) -> list[tuple[str, str]]:
    if result.certificate is None:
        return []
    bound, sampled = 100 * result.certificate.bound, 100 * result.certificate.sampled
    at_most = f"at most {bound:.2g} % of its sd" if bound < 100 else "no useful bound"
    text = f"under the null {at_most} (sampled: {sampled:.2g} %)"
    return [("approximation", f"{text}; the p-value is that of the approximate kernel")]


def _rows(result: CalibrationResult) -> str:
    """How many rows, and of what kind."""
    weighted = ", weighted" if result.weighted else ""
    clusters = f", {counted(result.clusters, 'cluster')}" if result.clusters else ""
    return f"{result.n:,}{weighted}{clusters}"


def _null(result: CalibrationResult) -> str:
    """What the statistic was compared with."""
    if isinstance(result.null, IntervalNull):
        return f"{result.null!r}: {result.null.meaning}; sums of labels along directions alone"
    return f"{type(result.null).__name__}: {result.null.meaning}"


def _made(result: CalibrationResult) -> str:
    """What makes the result again."""
    seed = "" if result.seed is None else f"{result.draws:,} draws, seed {result.seed}, "
    return f"{seed}{result.engine}, {seconds(result.elapsed)}"


def pvalue_text(result: CalibrationResult) -> str:
    """The p-value, or what it is below."""
    if result.refused is not None:
        return "none"
    return f"{'below ' if result.pvalue_is_below else ''}{result.pvalue:.4g}"


in_one_line(Refusal, refusal_words)


def kind_text(result: CalibrationResult) -> str:
    """Whether a p-value is exact, or what makes it approximate."""
    if result.is_exact:
        return "exact"
    return "approximate, by clusters" if result.null.keeps_clusters else "approximate"


def _origin(result: CalibrationResult) -> str:
    if result.refused is not None:
        return f"({refusal_words(result.refused)})"
    if result.null_distribution is None:
        return "(a bound, valid at any n)" if result.is_exact else "(approximate)"
    kind = kind_text(result)
    if result.assumption_warnings:
        kind += " if its assumptions hold, see !"
    return f"({kind}; {result.at_least:,} of {result.draws:,} draws are as large)"


def _spread(result: CalibrationResult) -> str:
    summary = result.null_summary()
    if summary is None and result.null_distribution is not None:
        return "not drawn: the null leaves the probabilities room"
    if summary is None:
        return "no draws: a formula"
    return f"sd {summary['sd']:.3g}, 95 % of draws below {summary['q95']:.3g}"


def _meaning(result: CalibrationResult) -> str:
    """What the p-value means, in a sentence."""
    given = f" given {in_words(result.judged_on)}" if result.judged_on else ""
    calibrated = f"If the probabilities were calibrated{given}"
    if isinstance(result.null, IntervalNull):
        calibrated = f"With {result.null.meaning} ({result.null!r})"
    elif not result.null.is_local_calibration:
        calibrated = f"If {result.null.meaning} were what a calibrated model gives (it is not)"
    if result.refused is not None:
        return "Whether the probabilities are calibrated cannot be told with so few clusters."
    what = "evidence this strong" if result.is_adaptive else "a KLCE^2 this large"
    share = f"about {100 * result.pvalue:.3g} %"
    is_bound = result.null_distribution is None and result.is_exact
    if is_bound or isinstance(result.null, IntervalNull):
        share = f"at most {share}"
    return f"{calibrated}, {what} would come up in {share} of samples."


@document_of.register
def _(result: MulticlassResult) -> Document:
    kind = "exact" if result.is_exact else "approximate, by clusters"
    if result.is_exact and result.assumption_warnings:
        kind = "exact if its assumptions hold, see !"
    made = f"{kind}; {result.draws:,} draws, seed {result.seed}, {seconds(result.elapsed)}"
    head = f"{result.n:,} rows, p-value {number(result.pvalue, '.4g')}   ({made})"
    rows = [
        (str(part.name), *_class_numbers(part), number(part.pvalue, ".3g"))
        for part in (result.together, *result.classes)
    ]
    evidence = Table(("", ""), _classes_evidence(result), "evidence (adjusted p-value)")
    refused = [] if result.refused is None else [Sentence(refusal_words(result.refused))]
    title = "Are the class probabilities calibrated given the covariates?"
    return Document(
        f"{title}   H0: P(y = c | x, p) = p_c for every c",
        [
            Sentence(head),
            Table(("class", "rows", "KLCE^2", "p adjusted"), rows),
            *refused,
            evidence,
            noted(result.notes, result.warnings),
        ],
    )


def _class_numbers(part: ClassResult) -> tuple[str, str]:
    """Rows and statistic of a class, unless disclosure control withholds them."""
    if part.positives < 0:
        return "few", "withheld"
    return f"{part.positives:,}", number(part.statistic, ".3g")


def _classes_evidence(result: MulticlassResult) -> list[tuple[str, str]]:
    """Adjusted p-value and sentence of what counts: pairs first, then classes.

    Of two classes only one is told, for the other is its mirror.
    """
    shown = [(pair.pvalue, str(pair)) for pair in result.taken_for()[:MAX_TOLD]]
    for part in result.classes[1:] if len(result.classes) == 2 else result.classes:
        findings = part.evidence()[:MAX_TOLD_OF_A_CLASS]
        shown += [(own.pvalue, class_finding_text(part.name, own)) for own in findings]
    if not shown:
        findings = result.together.evidence()[:MAX_TOLD_OF_A_CLASS]
        shown = [(own.pvalue, str(own)) for own in findings]
    return [(f"{pvalue:.3g}", text) for pvalue, text in shown]


@document_of.register
def _(result: Detectable) -> Document:
    simulated = ""
    if result.simulations:
        simulated = f" (power {result.simulated:.2f} in {result.simulations} simulated samples)"
    pairs = result.worst_pairs[:MAX_PAIRS]
    listed = [Section("pairs", _pairs_title(result, len(pairs)), [_regions(pairs)])]
    return Document(
        f"Smallest bias that these {result.n:,} rows would show with power {result.power:g} at "
        f"alpha {result.alpha:g}",
        [
            _regions(result.regions),
            *(listed if pairs else []),
            Notes(
                [
                    f"worst: {size_text(result.worst.shift)} at {result.worst.where}{simulated}",
                    f"looked {coverage_words(result.coverage)}",
                    *_corners(result),
                    "too low: the truth lies above the prediction. -: no room between 0 and 1.",
                    *_clustering(result),
                    *noted(result.notes).lines,
                ]
            ),
        ],
    )


def _corners(result: Detectable) -> list[str]:
    """How large a bias in a corner of two covariates has to be."""
    sizes = [f"{size_text(shift)} with {100 * share:.2g} %" for share, shift in result.corners]
    told = "a rectangle of two covariates or the prediction is seen, wherever it lies, from a bias"
    return [f"{told} of {in_words(sizes)} of the rows"] if sizes else []


def _regions(regions: Sequence[RegionPower]) -> Table:
    rows = [
        (
            str(region.where),
            f"{100 * region.share:.1f} %",
            size_text(region.up),
            size_text(region.down),
            "few rows" if region.is_small else "",
        )
        for region in regions
    ]
    return Table(("where", "rows", "too low by", "too high by", ""), rows)


def _pairs_title(result: Detectable, shown: int) -> str:
    """Say which pairs of groups are listed."""
    total, rows = result.coverage.pairs, counted(result.coverage.min_rows, "row")
    which = f"the {shown} of {total:,} where the least is seen" if shown < total else "all of them"
    return f"Pairs of groups with at least {rows}, {which}"


def size_text(shift: float) -> str:
    """A shift, where there is one."""
    if math.isnan(shift):
        return "-"
    return signed(shift)[1:] if math.isfinite(shift) else "over 0.5"


@document_of.register
def _(result: SampleSize) -> Document:
    several = len(result.by_region) > 1
    rows = f"{result.rows:,} labelled rows"
    if result.clusters is not None:
        rows += f" in {counted(result.clusters, 'cluster')}"
    place = "" if several else f", {result.where},"
    most = f"; most are needed for {result.where}" if several else ""
    asked = f"with power {result.power:g} at alpha {result.alpha:g}{most}"
    return Document(
        f"{rows} show a bias of {result.bias:g}{place} {asked}",
        [Notes([*_clustering(result), *noted(result.notes).lines])],
    )


def _clustering(result: Detectable | SampleSize) -> list[str]:
    """Say what clusters do to the rows; nothing where rows are independent."""
    if result.clustering is None:
        return []
    rows = result.n if isinstance(result, Detectable) else result.rows
    return [f"approximate, by clusters: {clustering_words(result.clustering, rows)}"]


def _some(names: Sequence[str]) -> str:
    if len(names) <= MAX_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: MAX_NAMES - 2])}, ... {names[-1]} ({len(names)} in all)"


@document_of.register
def _(result: ReliabilityCurve) -> Document:
    rows = [
        (
            f"{row['rows']:,}",
            *(number(row[name], ".3f") for name in ("predicted", "observed")),
            interval(row["lower"], row["upper"], ".3f"),
            number(row["gap"], "+.3f"),
        )
        for row in result.to_arrow().to_pylist()
    ]
    head = ("rows", "predicted", "observed", "interval", "gap")
    return Document("Reliability curve", [Table(head, rows), Notes([GAP])])
