"""The text form of tasks: read back as written, and refused with a pointer."""

import string
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import itrust as it
from itrust import tasks
from itrust._core import InputError
from itrust.tasks.expressions import TaskRows

TOWN = it.simulate.survey(200, rng=0).sample
ROWS = TaskRows(TOWN.points, TOWN.weights_or_ones, TOWN.p)


@pytest.mark.parametrize(
    "text",
    [
        "mean(age)",
        'mean(age | region == "south")',
        'share(region == "south" | age > 40)',
        "prevalence()",
        'prevalence(region in ("south", "west") and age >= 30)',
        'prevalence(not (region == "south"))',
        'mean(age | region == "south" or age < 30) / mean(age)',
        "mean(log(income))",
        "(mean(age) - 2) * 3",
        "mean(age) - (mean(age) - 1)",
        "prevalence(age is missing or age > 3)",
        "prevalence(urban == true)",
        "share(age > 0.123456789) * 1234567.891",
        'prevalence(g == "say ""a""")',
        "mean(`a``b`)",
        "prevalence(code == 007)",
        "mean(10 ** income)",
    ],
)
def test_what_is_written_is_read_back(text):
    task = tasks.parse(text)
    again = tasks.parse(str(task))
    assert str(again) == str(task)
    assert again == task


def test_names_in_backticks_and_precedence():
    x = {"hours per week": np.arange(50.0), "and": np.arange(50.0)}
    sample = it.Sample([0, 1] * 25, [0.5] * 50, x)
    rows = TaskRows(sample.points, sample.weights_or_ones, sample.p)
    task = tasks.parse("mean(`hours per week` * 2 + 1 | `and` < 10 or `and` >= 40 and `and` < 45)")
    inside = np.r_[0:10, 40:45]
    assert task.linear(rows).value == pytest.approx((2 * inside + 1).mean())
    assert str(tasks.mean("hours per week")) == "mean(`hours per week`)"
    assert tasks.parse("1 + 2 * 3 - 4 / 2").linear(rows).value == 5
    assert tasks.parse("-(1 - 3) * 2").linear(rows).value == 4


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("mean(age | region = 1)", "did you mean ==", 19),
        ("mean(age & 3)", "write and", 10),
        ("mean(age | g == \u201ca\u201d)", "use straight quotes", 17),
        ("mean(age", r"expected '\)' to close mean\(", 9),
        ("mean(age | region == south)", 'stands in quotes: "south"', 22),
        ("mean(age)" + " + mean(age)" * 400, "the task is too long", None),
        ("men(age)", "there is no task 'men'; did you mean 'mean'", 1),
        ("mean(age) -", "expected mean", 12),
        ("mean(3)", "mean needs a covariate", 1),
        ("mean(age)) + 2", "the task ends before", 10),
        ('mean(age | "x" == 2)', "expected a covariate", 12),
        ('mean(age | "win")', 'for a class: y == "win"', 12),
        ("prevalence(tie | age > 0)", 'a class stands in quotes: "tie"', 16),
        ("prevalence(tie)", 'a class stands in quotes: "tie"', 15),
        ("mean(age) $ 3", "no use for '\\$'", 11),
        ("mean(age | region == 'south)", "has no end", 22),
        ("__import__('os')", "there is no task '__import__'", 1),
        ("().__class__", "no use for '.'", 3),
        ("mean(age | age is nothing)", "expected 'missing' after is", 19),
        ("prevalence(region in ())", "expected a value", 23),
        ("mean age", r"expected '\(' after mean", 6),
        ("(" * 200 + "mean(age)", "nested too deeply", 61),
        ("mean(age | age > )", "expected a value", 18),
        ("mean(age.real)", "no use for '.'", 9),
    ],
)
def test_errors_point_at_the_character(text, message, column):
    with pytest.raises(InputError, match=message) as caught:
        tasks.parse(text)
    first, shown, pointer = str(caught.value).split("\n")
    if column is None:
        return
    assert f"at character {column}:" in first
    assert len(pointer) <= 95
    assert shown[pointer.index("^") : pointer.index("^") + 1] == text[column - 1 : column]
    assert caught.value.value[:1] == text[column - 1 : column]


def test_braces_in_a_text_stay_as_they_are():
    with pytest.raises(InputError, match=r"\n  mean\(\{value\} \{what\}\)\n") as caught:
        tasks.parse("mean({value} {what})")
    assert caught.value.value == "{"


@pytest.mark.parametrize("text", ["", "   ", 3, None])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(InputError, match="a task is text such as"):
        tasks.parse(text)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=string.printable, max_size=60))
def test_any_text_is_a_task_or_one_refusal(text):
    try:
        task = tasks.parse(text)
    except InputError:
        return
    assert tasks.parse(task.formula) == task


@pytest.mark.parametrize(
    ("text", "name", "tolerance"),
    [
        ("mean(age) ~ 0.5", "mean(age)", 0.5),
        ("Owners' age: mean(age)", "Owners' age", None),
        ('"Age (mean)": mean(age) ~ 2', "Age (mean)", 2.0),
        ('"the ""real"" age": mean(age)', 'the "real" age', None),
        ('mean(age | day == "10:30") ~ 1e-3', 'mean(age | day == "10:30")', 1e-3),
    ],
)
def test_title_and_tolerance_stand_around_the_task(text, name, tolerance):
    task = tasks.parse(text)
    assert (str(task), task.tolerance) == (name, tolerance)
    assert tasks.parse(task.formula) == task


@pytest.mark.parametrize("text", ["mean(age) ~", "mean(age) ~ 0", "mean(age) ~ x", ": mean(age)"])
def test_a_tolerance_is_a_number_above_0_and_a_title_has_words(text):
    with pytest.raises(InputError, match=r"expected|no use"):
        tasks.parse(text)


WORDS = st.sampled_from(
    [
        "mean",
        "share",
        "prevalence",
        "(",
        ")",
        "|",
        "age",
        "region",
        "==",
        "<",
        '"south"',
        "3",
        "and",
        "or",
        "not",
        "in",
        ",",
        "+",
        "-",
        "*",
        "/",
        "is",
        "missing",
        "log",
        "`age`",
        "true",
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(WORDS, max_size=14).map(" ".join))
def test_any_words_of_the_grammar_are_a_task_or_one_refusal(text):
    with suppress(InputError), np.errstate(all="ignore"):
        tasks.parse(text).linear(ROWS)


def test_levels_that_look_like_numbers_are_taken_as_written():
    sample = it.Sample([0, 1] * 10, [0.5] * 20, {"code": ["007", "7"] * 10})
    rows = tasks.parse("prevalence(code == 007)").where.rows(sample.points)
    assert rows.tolist() == [True, False] * 10
