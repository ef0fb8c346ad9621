"""Words that a reader may not know: explained where they stand, and at the end of the page."""

from __future__ import annotations

from typing import NamedTuple

MINUS = "\N{MINUS SIGN}"


class Word(NamedTuple):
    """A word and a sentence or two for somebody who meets it for the first time."""

    name: str
    meaning: str


WORDS = {
    "calibrated": Word(
        "calibrated given the covariates",
        "Among all rows with the same covariates and a predicted probability of 0.3, three in ten "
        "are positive; and so for every probability.",
    ),
    "bias": Word(
        "bias",
        "The observed rate less the mean prediction, in some rows. Positive: the model is too low.",
    ),
    "shown": Word(
        "shown to be miscalibrated",
        "Chance alone would hardly give what these labels give: the adjusted p-value is at most "
        "alpha, and the interval does not include 0.",
    ),
    "pvalue": Word(
        "p-value, adjusted",
        "How often a calibrated model would look at least as bad as this one does. Adjusted: for "
        "everything that was looked at together, so that looking often finds nothing by itself.",
    ),
    "interval": Word(
        "confidence interval",
        "Where the true value may lie. Of many intervals such as these, 95 % hold it where alpha "
        "is 0.05.",
    ),
    "band": Word(
        "confidence band",
        "Intervals along a curve that hold for all of its points at once. Where too few rows are "
        "near, there is neither a curve nor a band.",
    ),
    "slice": Word(
        "slice",
        "Rows that a rule describes, such as “region = west and age < 40”. The rule was found on "
        "one part of the rows and judged on the other.",
    ),
    "tolerance": Word(
        "tolerance",
        "The bias that would matter: 0.05, unless whoever ran the audit named another one.",
    ),
    "ece": Word(
        "ECE, MCE",
        "Expected calibration error: the mean distance between observed rate and mean prediction "
        "over ten bins of the prediction. MCE: the largest of these distances. Neither looks at "
        "covariates.",
    ),
    "smooth": Word(
        "smooth ECE",
        "The same distance without bins, so that it does not depend on where they begin.",
    ),
    "brier": Word(
        "Brier, log loss",
        "Mean errors of a probability, squared and logarithmic. Smaller is better; they reward "
        "sharp predictions as well as calibrated ones.",
    ),
    "klce": Word(
        "KLCE²",
        "A distance from calibration given the covariates. It is 0 in expectation if the model is "
        "calibrated, so that it may be negative.",
    ),
    "alpha": Word(
        "alpha",
        "How often a calibrated model may be called miscalibrated: 0.05 is one audit in twenty.",
    ),
    "draws": Word(
        "draws",
        "Sets of labels that were drawn anew as if the model were calibrated. What these labels "
        "show is compared with what the draws show.",
    ),
    "power": Word(
        "power",
        "How often an audit such as this one would see a bias of that size, if there were one.",
    ),
    "row": Word(
        "judged on 140 of 260 rows",
        "A slice holds 260 rows; 140 of them are in the half that judges. Its rates, interval and "
        "p-value come from these 140.",
    ),
}
