"""Texts and values that once broke tasks: refused in a sentence, or as usable as any other."""

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import itrust as it
from itrust import InputError, tasks
from itrust.data import Compared, Level, Not, parse_condition
from itrust.tasks.arithmetic import MAX_DEPTH
from itrust.tasks.expressions import LARGEST_VALUE

TOWN = it.simulate.survey(200, rng=0).sample
AGE = tasks.mean("age")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1e400 * mean(age)", "the number 1e400 is too large at character 1"),
        ("mean(age | age > " + "9" * 5000 + ")", "is too large at character 18"),
        ("mean(age ** age" + " ** age" * 300 + ")", "nested too deeply"),
        ("-" * 300 + "mean(age)", "nested too deeply"),
        ("share(" + "not " * 300 + "age > 1)", "nested too deeply"),
        ("mean(age" + " + age" * 120 + ")", "parts lie within each other"),
        ("mean(age)" + " + mean(age)" * 120, "parts lie within each other"),
        ("mean(" + "log(" * 58 + "age" + " + age" * 60 + ")" * 58 + ")", "parts lie within"),
        ("mean(\u0661 * age)", "no use for '\u0661'"),
        ("mean(`a\ud800`)", "half a character at character 8"),
        ("mean(age | " + "x" * 200_000 + " == 1)", "the task is too long"),
        (" " * 90_000 + "mean(age) -", "expected mean"),
        ("mean(age) ~ 1e400", "the number 1e400 is too large"),
        ("(" * 100_000, "is too long"),
        ("mean(age | race == " + "y" * 5_000 + ")", "stands in quotes"),
    ],
)
def test_what_is_too_deep_too_long_or_too_large_is_pointed_at(text, message):
    with pytest.raises(InputError, match=message) as caught:
        tasks.parse(text)
    told = str(caught.value)
    assert len(told) < 500
    assert told.encode()
    assert told.count("\n") == 2


@pytest.mark.parametrize("size", [1, 30, 90])
@pytest.mark.parametrize("sign", "+-*/")
def test_long_sums_and_products_are_read_back_copied_and_evaluated(size, sign):
    task = tasks.parse(f" {sign} ".join(["mean(age)"] * size))
    assert tasks.parse(task.formula) == task
    assert pickle.loads(pickle.dumps(task)) == copy.deepcopy(task) == task
    assert hash(copy.deepcopy(task)) == hash(task)
    assert repr(task)
    assert task.names == {"age"}


@pytest.mark.parametrize(
    "text",
    [
        "1 + (2 + mean(age))",
        "2 * (3 * mean(age)) / (mean(age) / 4)",
        "-3 * mean(age)",
        "--mean(age)",
        "mean(-age ** 2 + (age + (age + 1)) * -(2 ** age) ** 3)",
        "mean(2 ** age ** 3 - (age - (1 - age)))",
        "share(not not not (age > 1 and not (age > 3 or age is not missing)))",
        "share(age not in (1, 2) or not age == 3)",
        'share(region == "a\nb" or `a\nb` == 1)',
    ],
)
def test_a_text_is_read_back_to_the_same_tree(text):
    task = tasks.parse(text)
    assert tasks.parse(task.formula) == task


def test_what_was_nested_as_deeply_as_it_may_is_read_back():
    for text in ("not (age > 1 and " * 28 + "not age > 2" + ")" * 28, "-" * 58 + "mean(age)"):
        task = tasks.parse(text if "mean" in text else f"share({text})")
        assert tasks.parse(task.formula) == task


@pytest.mark.parametrize("sign", ["+", "-", "*", "/"])
@pytest.mark.parametrize(
    "number", [math.inf, math.nan, 10**400, -(10**400), Fraction(10**400, 3)], ids=type
)
def test_tasks_join_with_finite_numbers_alone(sign, number):
    with pytest.raises(InputError, match="finite number"):
        {"+": AGE.__add__, "-": AGE.__rsub__, "*": AGE.__mul__, "/": AGE.__truediv__}[sign](number)


@pytest.mark.parametrize(
    "tolerance", [math.nan, math.inf, 0, -1, 10**400, -(10**5000), "a"], ids=type
)
def test_a_tolerance_is_a_finite_number_above_0(tolerance):
    with pytest.raises(InputError, match="tolerance must be a number above 0"):
        AGE.matters_at(tolerance)


def again_and_again(make, part, times=2_000):
    for _ in range(times):
        part = make(part)


def test_tasks_made_in_python_may_not_be_deeper_than_texts():
    with pytest.raises(InputError, match=f"more than {MAX_DEPTH} parts within each other"):
        again_and_again(lambda total: total + AGE, AGE)
    with pytest.raises(InputError, match="within each other"):
        again_and_again(lambda task: task.named("again"), AGE)
    with pytest.raises(InputError, match="one character or more"):
        AGE.named("")
    with pytest.raises(InputError, match="conditions within each other"):
        again_and_again(lambda where: Not(where) & Level("age", 2), Level("age", 1))


@pytest.mark.parametrize(
    "where",
    [
        {"age": math.nan},
        {"age": np.float64("inf")},
        {"age": 10**400},
        {"age": -(10**5000)},
        {"age": [1, [2]]},
        {"age": {"a": 1}},
        {"age": np.arange(3)},
        {"age": [math.nan, 1, 2]},
        ["age"],
        3,
    ],
)
@pytest.mark.parametrize("make", [lambda w: tasks.mean("age", where=w), tasks.share])
def test_values_that_no_cell_holds_are_refused(where, make):
    with pytest.raises(InputError):
        make(where)
    with pytest.raises(InputError):
        tasks.prevalence(where)


def test_a_comparison_is_with_a_finite_value():
    with pytest.raises(InputError, match="must be finite, not inf"):
        Compared("age", ">", math.inf)
    with pytest.raises(InputError, match="None stands for missing"):
        Level("age", math.nan)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1e308 * 1e308 * mean(age)", "no finite value when probabilities stand"),
        ("1e200 * mean(age)", "which is too large; take a larger unit"),
        ("mean(10 ** 10 ** age)", "no finite value in"),
        ("mean(10 ** age)", "too large to be summed"),
        ("mean(age) / (mean(age) - mean(age))", "no finite value"),
        ("mean(age) / 5e-324", "no finite value"),
        ("mean(age) / 1e-200", "too large"),
        ('share(age == "2020-02-30")', "is a number; compare it with one"),
    ],
)
def test_numbers_beyond_all_sums_are_refused_without_a_warning(text, message):
    with pytest.raises(InputError, match=message):
        tasks.parse(text).evaluate(TOWN, draws=19, rng=0)


def test_values_up_to_the_bound_are_evaluated():
    scale = LARGEST_VALUE / 1e3
    found = tasks.parse(f"{scale!r} * mean(age)").evaluate(TOWN, draws=19, rng=0)
    usual = AGE.evaluate(TOWN, draws=19, rng=0)
    assert found.plugin / scale == pytest.approx(usual.plugin)
    assert found.upper / scale == pytest.approx(usual.upper)
    assert found.pvalue == pytest.approx(usual.pvalue)


@pytest.mark.parametrize("terms", [2, 30, 90])
def test_a_number_next_to_nothing_is_evaluated(terms):
    found = tasks.parse(" / ".join(["mean(age)"] * terms)).evaluate(TOWN, draws=19, rng=0)
    assert found.plugin == pytest.approx(AGE.evaluate(TOWN, draws=19, rng=0).plugin ** (2 - terms))
    assert 0 <= found.pvalue <= 1


NAMES = st.sampled_from(["age", "income", "`b c`", "region"])
VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(lambda v: repr(abs(v))),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(
        lambda v: '"' + v.replace('"', '""') + '"'
    ),
    st.sampled_from(["true", "false", "007", "1e3"]),
)
LEAVES = st.one_of(
    st.tuples(NAMES, st.sampled_from(["==", "!=", "<", ">="]), VALUES).map(" ".join),
    NAMES.map(lambda name: f"{name} is missing"),
    st.tuples(NAMES, VALUES, VALUES).map(lambda t: f"{t[0]} not in ({t[1]}, -1, {t[2]})"),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda t: f"({t[0]}) and {t[1]}"),
        st.tuples(inner, inner).map(lambda t: f"{t[0]} or {t[1]}"),
        inner.map(lambda text: f"not ({text})"),
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(CONDITIONS)
def test_every_condition_of_the_grammar_is_read_back_to_the_same(text):
    found = parse_condition(text)
    assert parse_condition(found.formula) == found
    assert hash(pickle.loads(pickle.dumps(found))) == hash(found)
