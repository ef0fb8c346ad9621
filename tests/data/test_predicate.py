"""Row predicates: which rows they mark, their words, and formulas that mark the same rows."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import itrust as it
from itrust._core import InputError
from itrust.data import (
    And,
    Between,
    Column,
    Compared,
    Everywhere,
    Level,
    Missing,
    Not,
    OneOf,
    Or,
    Points,
    all_of,
    as_predicate,
    column_of,
    cut_of,
    level_of,
    parse_condition,
    parts_of,
)

X = {
    "age": [20.0, 30.0, 40.0, np.nan, 60.0, 30.0],
    "region": ["south", "west", None, "south", "north", "west"],
    "day": np.array(["2026-01-01", "2026-01-02", "2026-01-03"] * 2, dtype="datetime64[D]"),
}
P = np.linspace(0.1, 0.9, 6)


def town(missing="level") -> Points:
    return it.Sample([0, 1] * 3, P, X, missing=missing).points


def rows(predicate) -> list[int]:
    return np.flatnonzero(predicate.rows(town())).tolist()


@pytest.mark.parametrize(
    ("predicate", "inside", "words", "formula"),
    [
        (Everywhere(), [0, 1, 2, 3, 4, 5], "everywhere", ""),
        (Level("region", "south"), [0, 3], "region = south", 'region == "south"'),
        (Level("age", 30.0), [1, 5], "age = 30", "age == 30.0"),
        (Level("region", "moon"), [], "region = moon", 'region == "moon"'),
        (Level("day", "2026-01-02"), [1, 4], "day = 2026-01-02", 'day == "2026-01-02"'),
        (
            OneOf("region", ("south", "north")),
            [0, 3, 4],
            "region = any of south, north",
            'region in ("south", "north")',
        ),
        (Missing("age"), [3], "age missing", "age is missing"),
        (Missing("region"), [2], "region missing", "region is missing"),
        (
            Between("age", 30.0, 60.0, "30 to 40"),
            [1, 2, 5],
            "age 30 to 40",
            "age >= 30 and age < 60",
        ),
        (Between("age", -np.inf, 30.0, "< 30"), [0], "age < 30", "age < 30"),
        (Compared("age", ">=", 40), [2, 4], "age >= 40", "age >= 40"),
        (Compared("region", "!=", "south"), [1, 4, 5], "region != south", 'region != "south"'),
        (Compared("prediction", ">", 0.5), [3, 4, 5], "prediction > 0.5", "prediction > 0.5"),
        (
            Level("region", "south") & Compared("age", "<", 30),
            [0],
            "region = south and age < 30",
            'region == "south" and age < 30',
        ),
        (
            (Level("region", "south") | Level("region", "west")) & ~Missing("age"),
            [0, 1, 5],
            "(region = south or region = west) and not (age missing)",
            '(region == "south" or region == "west") and age is not missing',
        ),
    ],
)
def test_rows_words_and_formula(predicate, inside, words, formula):
    assert rows(predicate) == inside
    assert str(predicate) == words
    assert predicate.formula == formula
    json.dumps(predicate.to_dict(), allow_nan=False)


LEAVES = st.one_of(
    st.builds(Level, st.just("region"), st.sampled_from(["south", "west", "north"])),
    st.builds(
        Compared,
        st.just("age"),
        st.sampled_from(["<", "<=", ">", ">=", "!=", "=="]),
        st.integers(10, 70),
    ),
    st.builds(Missing, st.sampled_from(["age", "region", "day"])),
    st.builds(
        lambda low, width: Between("age", low, low + width, "some"),
        st.floats(10, 60),
        st.floats(1, 50),
    ),
    st.builds(  # to the second, as columns hold times
        lambda second: Between("day", 20_454 + second / 86_400, np.inf, "some", "date"),
        st.integers(0, 300_000),
    ),
    st.just(OneOf("region", ("south", "west"))),
)
PREDICATES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(Not, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(PREDICATES)
def test_a_formula_is_read_back_to_the_same_rows(predicate):
    again = parse_condition(predicate.formula)
    assert rows(again) == rows(predicate)
    assert again.names == predicate.names
    assert again.formula == parse_condition(again.formula).formula


def test_joining_is_flat_and_knows_everywhere():
    a, b, c = (Level("region", name) for name in ("south", "west", "north"))
    assert (a & b) & c == a & (b & c) == And((a, b, c))
    assert (a | b) | c == a | (b | c) == Or((a, b, c))
    assert all_of([]) == Everywhere() == Everywhere() & Everywhere()
    assert all_of([a]) == a == a & Everywhere()
    assert (a & Missing("age")).names == {"region", "age"}
    assert Everywhere().names == frozenset()


def test_values_of_a_predicate_by_name():
    found = (Level("region", "south") & Between("age", -np.inf, 30.0, "< 30")).to_dict()
    assert found == {
        "kind": "and",
        "parts": [
            {"kind": "level", "name": "region", "level": "south"},
            {
                "kind": "between",
                "name": "age",
                "low": None,
                "high": 30.0,
                "text": "< 30",
                "holds": "number",
            },
        ],
    }


def test_many_values_are_named_in_part():
    assert str(OneOf("g", tuple("abcde"))) == "g = any of a, b, c and 2 more"


def test_only_a_check_minds_what_other_rows_do_not_have():
    points = town()
    assert not Level("region", "moon").rows(points).any()
    with pytest.raises(InputError, match=r"'region' has no level 'mest' \(did you mean 'west'"):
        (Everywhere() & Level("region", "mest")).check(points)
    with pytest.raises(InputError, match="'region' has no level 'moon'"):
        (~OneOf("region", ("south", "moon"))).check(points)
    with pytest.raises(InputError, match="there is no covariate 'prediction'"):
        Compared("prediction", "<", 0.5).check(points)
    with pytest.raises(InputError, match=r"no covariate 'agee' \(did you mean 'age'"):
        Between("agee", 0.0, 1.0, "").rows(points)
    with pytest.raises(InputError, match="named by text, not 3"):
        column_of(points, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Compared("region", "<", "south").rows(town()), "'region' is a category"),
        (lambda: Compared("age", "<", "old").rows(town()), "'age' is a number; compare it"),
        (lambda: Compared("day", "<", "soon").rows(town()), "'day' is a date; compare it"),
        (lambda: Compared("age", "=", 3), "sign must be one of"),
        (lambda: Level("age", None), "Missing"),
        (lambda: as_predicate(3), "a condition is text such as"),
        (lambda: as_predicate({"age": (20, 30)}), "could be a range or two values"),
    ],
)
def test_what_cannot_be_asked_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_mappings_become_predicates():
    assert as_predicate(None) == as_predicate({}) == Everywhere()
    found = as_predicate({"region": ["south", "west"], "age": None, "day": "2026-01-01"})
    parts = OneOf("region", ("south", "west")), Missing("age"), Level("day", "2026-01-01")
    assert found == And(parts)
    assert as_predicate(found) is found


def test_every_value_of_a_column_is_a_part_that_finds_its_rows():
    points = town()
    for column in points.columns:
        for code in np.unique(column.values[~column.missing]):
            marked = level_of(column, code).rows(points)
            assert marked.tolist() == (column.values == code).tolist(), column.name
    odd = np.array(["2026-01-31T10:20:30.123457", "2026-02-01"], dtype="datetime64[us]")
    times = it.Sample([0, 1], [0.5, 0.5], {"t": odd}).points
    for k, code in enumerate(times.columns[0].values):
        marked = level_of(times.columns[0], code).rows(times)
        assert np.flatnonzero(marked).tolist() == [k]


def test_a_level_that_stands_for_missing_is_missing():
    names = [str(part) for column in town().columns for part in cut_of(column)]
    assert "region missing" in names
    assert "age missing" in names
    assert "region = (missing)" not in names
    assert "day = 2026-01-02" in names


def test_parts_share_no_row_and_leave_none_out():
    rng = np.random.default_rng(0)
    column = Column("a", "number", rng.integers(0, 30, 200).astype(float))
    points = Points(rng.random(200), (column,))
    marked = np.array([part.rows(points) for part in parts_of(column, 4)])
    assert (marked.sum(axis=0) == 1).all()


def millionths(count):
    return count / 1e6


@given(st.lists(st.integers(-(10**12), 10**12).map(millionths), min_size=12), st.integers(2, 10))
def test_parts_are_told_in_order_and_hold_what_they_say(values, parts):
    column = Column("x", "number", np.array(values))
    found = parts_of(column, parts)
    texts = [part.text for part in found]
    assert len({*texts}) == len(texts)
    for part in found:
        low, _, high = part.text.removeprefix("= ").partition(" to ")
        ends = float(low.replace(",", "")), float((high or low).replace(",", ""))
        assert ends[0] <= ends[1]
    rows = np.array([part.rows(Points(np.full(len(values), 0.5), (column,))) for part in found])
    assert (rows.sum(axis=0) == 1).all()


def test_a_cut_is_the_shortest_number_that_makes_it():
    column = Column("x", "number", np.array([0.1234567, 0.2345678, 0.5671234, 0.9030732860520094]))
    assert [part.text for part in parts_of(column, 2)] == ["0.123 to 0.5", "0.5 to 0.903"]
    far = Column("x", "number", np.array([26_143.2148, 26_143.2155, 26_143.3, 26_143.4]))
    for part in parts_of(far, 2):
        low, high = part.text.split(" to ")
        assert float(low) <= float(high)
