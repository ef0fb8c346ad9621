"""Covariates that are the label, the prediction or the row number are told by name."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.special import expit, logit

import itrust as it
from itrust.calibration.assumptions import assumption_notes

rng = np.random.default_rng(0)
P = rng.uniform(0.05, 0.95, 400)
Y = (rng.random(400) < P).astype(int)
NOISE = rng.uniform(-0.49, 0.49, 400)


def told(name, column, y=Y, p=P):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", it.AssumptionWarning)
        return " ".join(assumption_notes(it.Sample(y, p, {name: column})))


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (1 - Y, "the opposite of the label"),
        (Y == 1, "a copy of the label"),
        (np.where(Y, "won", "lost"), "a copy of the label"),
        (2.5 * Y + 1, "a copy of the label"),
    ],
)
def test_the_label_under_another_name_is_refused(column, what):
    for make in (
        lambda: it.Sample(Y, P, {"outcome2": column}),
        lambda: it.Sample.from_frame(
            {"y": Y, "p": P, "outcome2": column}, label="y", prob="p", on="outcome2"
        ),
    ):
        with pytest.raises(it.InputError, match=f"covariate 'outcome2' is {what}; take it out"):
            make()


@pytest.mark.parametrize(("positives", "refused"), [(1, False), (3, False), (5, True)])
def test_a_rare_flag_may_fall_on_a_rare_label(positives, refused):
    y = np.repeat([1, 0], [positives, 100 - positives])  # 100 over 3 is 161,700, over 5 75 million
    with pytest.raises(it.InputError) if refused else nullcontext():
        it.Sample(y, np.full(100, 0.05), {"flag": y == 1})


def test_few_probabilities_between_0_and_1_tell_no_logit():
    p = np.where(np.arange(400) < 2, [0.2] * 400, np.arange(400) % 2)
    score = np.where(np.arange(400) < 2, logit(0.2), NOISE)
    assert it.Sample(Y, p, {"score": score}).notes == ()


@pytest.mark.parametrize(
    "column",
    [
        Y - 0.5 + NOISE,
        np.where(Y, np.where(NOISE > 0, "a", "b"), "c"),
        np.where(np.arange(400) % 100 == 7, 1 - Y, Y),
    ],
)
def test_what_tells_nearly_every_label_is_warned_about(column):
    assert "'late' tells nearly every label" in told("late", column)


@pytest.mark.parametrize(("column", "what"), [(P, "p"), (1 - P, "1 - p"), (np.round(P, 2), "p")])
def test_the_prediction_as_a_covariate_is_warned_about(column, what):
    assert f"'prob2' is {what}, which the test is given anyway" in told("prob2", column)


@pytest.mark.parametrize("column", [logit(P), -logit(P), np.argsort(np.argsort(P))])
def test_what_orders_rows_as_p_does_is_noted(column):
    assert it.Sample(Y, P, {"score": column, "other": NOISE}).notes == (
        "'score' orders the rows as p does, so it adds nothing to p",
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [("Unnamed: 0", "'Unnamed: 0'"), ("", "the column without a name"), ("row_id", "'row_id'")],
)
def test_an_index_is_warned_about(name, shown):
    assert f"{shown} counts the rows" in told(name, np.arange(400))


def test_a_day_that_counts_the_rows_is_only_noted():
    assert told("day", np.arange(400)) == ""
    assert "counts the rows" in it.Sample(Y, P, {"day": np.arange(400), "other": NOISE}).notes[0]


def test_honest_covariates_pass_in_silence():
    for run in range(4):
        some = np.random.default_rng(run)
        for n in (30, 60, 400):
            x = some.normal(0, 4, n)
            y = (some.random(n) < expit(2 * x)).astype(int)
            honest = {
                "x": x,
                "side": x > 0,
                "mostly": np.where(some.random(n) < 0.9, y, 1 - y),
                "level": np.digitize(x, [-4, 0, 4]).astype(str),
            }
            for name, column in honest.items():
                assert repr(name) not in told(name, column, y, expit(2 * x))


def test_a_perfect_model_makes_no_leak_of_its_covariate():
    sure = np.where(Y, 0.999, 0.001)
    assert it.Sample(Y, sure, {"same": Y}).n == 400


def test_few_rows_are_not_refused():
    assert it.Sample(Y[:30], P[:30], {"same": Y[:30]}).n == 30


@pytest.mark.parametrize("label", [0, 1])
def test_nothing_tells_labels_that_are_all_the_same(label):
    assert "tells" not in told("age", np.round(40 + 50 * NOISE), y=np.full(400, label))
