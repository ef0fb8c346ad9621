"""Findings in words: made of shape, direction, covariates and where."""

from dataclasses import replace

import pytest

from itrust.calibration import Finding, Shape
from itrust.data import Between, Everywhere, Level


def finding(shape, direction=0, covariates=("age",), where=None):
    return Finding(
        name="check",
        family="linear",
        covariates=covariates,
        where=where or Everywhere(),
        shape=shape,
        direction=direction,
        weight=0.1,
        score=1.0,
        unadjusted_pvalue=0.1,
        pvalue=0.2,
    )


SOUTH = Level("region", "south")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (finding(Shape.LEVEL, 1, ()), "the predictions are too low overall"),
        (finding(Shape.LEVEL, -1, ()), "the predictions are too high overall"),
        (finding(Shape.TREND, 1), "the bias rises with age"),
        (
            finding(Shape.TREND, -1, ("region", "age"), SOUTH),
            "the bias falls with age where region = south",
        ),
        (
            finding(Shape.TREND, 1, ()),
            "the predictions are not extreme enough: the bias rises with the prediction",
        ),
        (
            finding(Shape.TREND, -1, ()),
            "the predictions are too extreme: the bias falls with the prediction",
        ),
        (finding(Shape.QUADRATIC, 1), "the bias is higher at both ends of age than between"),
        (finding(Shape.CUBIC, 1), "the bias varies with age"),
        (finding(Shape.SMOOTH), "the bias varies with age"),
        (finding(Shape.SMOOTH, 0, ()), "the bias varies with the prediction"),
        (
            finding(Shape.GROUP, -1, ("region",), SOUTH),
            "the bias is lower where region = south than elsewhere",
        ),
        (
            finding(Shape.PART, 1, where=Between("age", 30, 41, "30 to 40")),
            "the bias is higher where age 30 to 40 than elsewhere",
        ),
        (
            finding(Shape.PRODUCT, 1, ("age", "income")),
            "the bias is higher where age and income are both high or both low than elsewhere",
        ),
        (finding(Shape.PAIR, 0, ("age", "income")), "the bias varies with age and income together"),
        (finding(Shape.PAIR), "the bias varies with age and the prediction together"),
        (finding(Shape.FULL), "the bias varies with the prediction and all covariates together"),
        (finding(Shape.KERNEL), "check"),
        (finding(Shape.IMPOSSIBLE, 0, ()), "labels occurred that the model gave probability 0"),
    ],
)
def test_a_finding_reads_as_a_sentence(found, words):
    assert str(found) == words
    assert found.to_dict()["sentence"] == words
    assert words in found._repr_html_()


def test_covariates_that_go_together_are_named():
    shared = replace(finding(Shape.TREND, 1), shared_with=("income", "the prediction"))
    assert str(shared) == (
        "the bias rises with age (age, income and the prediction go together: these rows cannot "
        "tell which of them carries it)"
    )


def test_the_prediction_is_named_where_it_goes_together_with_a_covariate():
    shared = replace(finding(Shape.TREND, 1, ()), shared_with=("loan",))
    assert "(the prediction and loan go together: " in str(shared)


def test_every_shape_has_words():
    for shape in Shape:
        assert str(finding(shape, 1))
