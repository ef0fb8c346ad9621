"""What validators print, in words; what each statistic asks is said on the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from itrust._core import counted
from itrust.calibration import Validation
from itrust.render.document import Document, Notes, Table, document_of, interval, number

if TYPE_CHECKING:
    from itrust.auditing import Audit


TITLES = {
    "intercept": "calibration intercept",
    "slope": "calibration slope",
    "ici": "ICI",
    "e50": "E50",
    "e90": "E90",
    "emax": "Emax",
    "hosmer_lemeshow": "Hosmer-Lemeshow",
    "spiegelhalter": "Spiegelhalter's z",
    "brier": "Brier score",
    "miscalibration": "miscalibration",
    "discrimination": "discrimination",
    "uncertainty": "uncertainty",
    "log_loss": "log loss",
    "log_miscalibration": "miscalibration (log)",
    "log_discrimination": "discrimination (log)",
    "log_uncertainty": "uncertainty (log)",
    "auc": "AUC",
    "gini": "Gini",
}
IDEAL = {"intercept": "0", "slope": "1", "spiegelhalter": "0"}  # of a calibrated model
BY_THEMSELVES = (
    "P-values are unadjusted, except where it is said, each with an error of its own, for "
    "documentation; they are no part of the verdict."
)
UNLESS_WEIGHTED = (
    ", unless weights go with the label among rows of the same prediction, as where events and "
    "others were drawn at different rates: then rely on the first ones of intercept and slope, and "
    "on no other."
)
FROM_FOLDS = "Predictions come from folds of these rows, so exact p-values are approximate here."
ALONE = (
    "All of it looks at the predictions alone; calibration given covariates is another question."
)


def chance(value: float | None) -> str:
    """A p-value for people; 0 is a rounding of what no double holds.

    >>> chance(0.5372), chance(0.0), chance(None)
    ('0.537', '<1e-300', '-')
    """
    if value is None:
        return "-"
    return "<1e-300" if value == 0 else f"{value:.3g}"


def calibrated_value(own: Mapping[str, Any]) -> str:
    """What a calibrated model would show: known, or the mean of the redraws."""
    if own["value"] is None:
        return "-"
    if own["name"] == "hosmer_lemeshow":
        return str(own["freedom"])
    return IDEAL.get(own["name"]) or number(own["expected"])


@document_of.register
def _(result: Validation) -> Document:
    found = result.to_dict()
    statistics = [
        (
            TITLES[own["name"]],
            number(own["value"]),
            "" if own["lower"] is None else interval(own["lower"], own["upper"], ".4g"),
            calibrated_value(own),
            chance(own["pvalue"]),
            chance(own["exact_pvalue"]),
        )
        for own in found["statistics"]
    ]
    grades = [
        (
            own.name,
            f"{own.rows:,}",
            f"{own.events:,}",
            *map(number, (own.predicted, own.observed)),
            *map(chance, (own.binomial, own.jeffreys, own.adjusted)),
        )
        for own in result.grades
    ]
    decision = [
        (f"{own.threshold:g}", number(own.net_benefit), number(own.treat_all), f"{own.rows:,}")
        for own in result.decision
    ]
    rates = ("grade", "rows", "events", "predicted", "observed", "binomial", "Jeffreys", "adjusted")
    none = [] if grades else ["no grade has enough rows to be shown"]
    return Document(
        validation_head(found),
        [
            Table(("statistic", "value", "interval", "calibrated", "p", "exact p"), statistics),
            Table(rates, grades),
            Table(("threshold", "net benefit", "act on all", "rows"), decision),
            Notes([*none, *validation_notes(found), ALONE]),
        ],
    )


def validation_head(found: Mapping[str, Any]) -> str:
    """Say what is there, in one line."""
    weighted = ", weighted" if found["weighted"] else ""
    return (
        f"{counted(found['n'], 'row')}{weighted}, {found['events']:,} with label 1; intervals of "
        f"{100 * found['confidence']:g} %, each by itself; p-values unadjusted"
    )


def validation_notes(found: Mapping[str, Any]) -> list[str]:
    """Say how the numbers were made, and why some are missing."""
    notes = []
    knots = found["knots"]
    curve = (
        f"a restricted cubic spline of logit p with {knots} knots" if knots else "a line in logit p"
    )
    notes.append(f"The smooth curve is a logistic regression on {curve}.")
    if found["draws"] and not found["clustered"]:
        notes.append(
            f"Exact p-values, and what a calibrated model would show, are from {found['draws']:,} "
            f"redraws of the labels from the probabilities. Where the two p-values differ, rely on "
            f"the exact one{UNLESS_WEIGHTED if found['weighted'] else '.'}"
        )
        if found["weighted"]:
            notes.append(
                "Rows have weights, and are redrawn as so many rows as they are worth, so that "
                "exact p-values are approximate here."
            )
        if found.get("folds"):
            notes.append(FROM_FOLDS)
    if found["clustered"]:
        notes.append("Intervals and p-values are by the design, and asymptotically valid.")
    if found["certain"] is None:
        notes.append("Some predictions are exactly 0 or 1, too few to be counted here.")
    elif found["certain"]:
        rows = counted(found["certain"], "prediction")
        left = "Where the label agrees, the fits of intercept, slope and curve leave them out."
        notes.append(f"{rows} of exactly 0 or 1 have no logit, and none is moved. {left}")
    if found["gathered"]:
        notes.append(
            "Rows are gathered in cells of nearly equal predictions, which moves statistics by "
            "less than 0.0001, Spiegelhalter's z by less than 0.01; groups of Hosmer and Lemeshow "
            "may be cut by 100,000 random rows."
        )
    by_reason: dict[str, list[str]] = {}
    told = [(TITLES[own["name"]], own["reason"]) for own in found["statistics"]]
    told += [("grades", own["reason"]) for own in found["grades"]]
    for title, reason in told:
        if reason is not None:
            by_reason.setdefault(reason, []).append(title)
    for reason, names in by_reason.items():
        notes.append(f"{', '.join(dict.fromkeys(names))}: {reason}.")
    return notes


def validation_sentence(audit: Audit) -> str:
    """Say how what validators print goes with the verdict, so that neither denies the other."""
    found = audit.validation
    if found is None:
        return ""
    tested, marked = len(found.tested), [TITLES[own.name] for own in found.rejected(audit.alpha)]
    grades = [own for own in found.grades if own.adjusted_two_sided is not None]
    few = sum((own.adjusted_two_sided or 0.0) <= audit.alpha for own in grades)
    if few:
        told = counted(len(grades), "grade")
        marked.append(f"{few} of {told} (two-sided, adjusted for all grades)")
    given = "the covariates" if audit.test.names else "the prediction"
    if not tested:
        return f"None of these has a p-value here. {BY_THEMSELVES}"
    some = f"At most {audit.alpha:g}, each by itself: the p-values of {', '.join(marked)}."
    none = f"None of these {tested} p-values is at most {audit.alpha:g}"
    if audit.judgement.refuted and not marked:
        told = (
            f"{none}, and yet the audit rejects calibration given {given}: a model can pass all of "
            "them and be miscalibrated."
        )
    elif audit.judgement.refuted:
        told = f"{some} The audit rejects calibration given {given}."
    elif not marked:
        told = f"{none}. That is no proof that the model is calibrated."
    elif audit.test.refused is not None:
        told = f"{some} The audit has no p-value for these rows."
    else:
        told = (
            f"{some} The audit does not reject calibration given {given}, and neither denies the "
            f"other: these are {tested} tests of other questions, of which a calibrated model "
            f"fails about {tested * audit.alpha:.2g} on average, and the audit controls the error "
            "of all of its checks together."
        )
    return f"{told} {BY_THEMSELVES}"
