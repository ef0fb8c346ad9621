"""Saved recalibrations: sound files are read back, all others are refused with their place."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import itrust as it
from itrust import InputError
from itrust.recalibrate import METHODS, MCGrad, Platt, load
from itrust.recalibrate.saved import MAX_BYTES
from itrust.terms import interpolated

EXAMPLE = json.loads((Path(__file__).parent / "saved" / "schema-3.json").read_text())
SAVED = {name: own["facts"] for name, own in EXAMPLE["methods"].items()}
P = np.array([0, 1, 0.5, 5e-324, 1e-300, 1e-17, 1 - 2.0**-53, 0.3])
X = {
    "age": [1e308, -1.7e308, 5e-324, np.nan, 50.0, 0.0, 1e15, 40.0],
    "region": ["north", "moon", None, "", "south", "north", None, "south"],
    "urban": [True, False, True, True, False, False, True, True],
}


def of_class(name):
    return METHODS[name]


def changed(name, way, value):
    """The example of a method with one entry replaced."""
    facts = copy.deepcopy(SAVED[name])
    *before, last = way
    holder = facts
    for step in before:
        holder = holder[step]
    holder[last] = value
    return facts


@pytest.mark.parametrize("name", SAVED)
def test_a_file_of_this_schema_gives_the_probabilities_it_gave_when_written(name, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(SAVED[name]))
    again = load(path)
    found = again.predict(EXAMPLE["p"], EXAMPLE["x"])
    np.testing.assert_allclose(found, EXAMPLE["methods"][name]["predicted"], rtol=0, atol=1e-14)
    again.save(tmp_path / "again.json")
    assert load(tmp_path / "again.json").to_dict() == again.to_dict()


@pytest.mark.parametrize(
    ("name", "way", "value", "message"),
    [
        ("platt", ("learned", "slope"), None, "learned.slope must be a number, not null"),
        ("platt", ("learned", "slope"), True, "learned.slope must be a number, not true"),
        ("platt", ("learned", "slope"), float("nan"), "learned.slope must be a finite number"),
        (
            "platt",
            ("learned", "slope"),
            1e101,
            "learned.slope must be a finite number, not 1e[+]101",
        ),
        ("platt", ("learned", "slope"), 10**400, "not a whole number of very many digits"),
        ("platt", ("learned", "edge"), 0, "learned.edge must be a number above 0 and at most 0.5"),
        ("platt", ("learned", "more"), 1, "learned has an unknown entry 'more'"),
        ("platt", ("settings", "rae"), 1, "unknown entry 'rae' .did you mean 'raw'"),
        ("platt", ("settings", "raw"), 1, "settings.raw must be true or false, not 1"),
        ("platt", ("rows",), 0, "rows must be a whole number from 1 to"),
        ("platt", ("prob",), "\ud800", "prob must be text of whole characters"),
        ("platt", ("columns",), {"age": "number"}, "columns must be empty"),
        ("platt", ("method",), "Beta", "method must be 'Platt', not 'Beta'"),
        ("platt", ("available_rows",), 3, "available_rows must be at least rows"),
        ("temperature", ("learned", "inverse"), -1, "learned.inverse must be a number from 0 to"),
        ("beta", ("learned", "a"), -0.5, "learned.a must be a finite number of at least 0"),
        (
            "isotonic",
            ("learned", "knots", 1),
            0.0,
            r"learned.knots\[1\] must be at least the entry",
        ),
        ("isotonic", ("learned", "heights"), [0.5], "learned.heights must be as long as"),
        ("isotonic", ("learned", "knots"), [], "learned.knots must have 1 or more entries, not 0"),
        ("histogram", ("learned", "rates"), [0.5], "must have one entry more than learned.edges"),
        ("histogram", ("learned", "rates", 0), 1.5, r"learned.rates\[0\] must be a number from 0"),
        ("bbq", ("learned", "weights", 0), 0.9, "learned.weights must sum to 1"),
        ("bbq", ("learned", "edges", 1), [0.5], r"rates\[1\] must have one entry more than"),
        ("multicalibration", ("learned", "patches", 0, 2), 10, r"patches\[0\]\[2\] must be below"),
        (
            "multicalibration",
            ("learned", "patches", 0, 0),
            [9],
            r"patches\[0\]\[1\] must be as long",
        ),
        ("multicalibration", ("learned", "cells", 0, "name"), "agf", "the names of columns"),
        ("multicalibration", ("learned", "cells", 0, "levels"), ["x"], "must be numbers"),
        ("multicalibration", ("learned", "levels"), [0.5], "as long as settings.bins"),
        ("proportional", ("learned", "patches", 0, 3), 2.0, r"\[3\] must be a number from -1 to 1"),
        ("proportional", ("seen_levels",), {}, "seen_levels must have the categories of columns"),
        ("local", ("learned", "supports", 0, "precision", 0, 0), 0.0, "positive definite"),
        ("local", ("learned", "supports", 0, "usual"), [1.0], "2 or more entries"),
        ("local", ("learned", "supports", 0, "places", 0, "range"), None, "range must be a record"),
        ("local", ("learned", "corrections", 0, "coefficients"), [[]], "as long as"),
        (
            "local",
            ("learned", "corrections", 0, "bases", 0, "terms", 0, 0, 0),
            77,
            "do not have: 77",
        ),
        (
            "local",
            ("learned", "corrections", 0, "bases", 0, "coordinates", 0, "name"),
            "a",
            "null and",
        ),
        ("local", ("learned", "map"), {"method": "Local"}, "learned.map.method must be"),
        ("local", ("learned", "steps"), [], "learned.steps must have 1 or more"),
        ("local", ("seen_levels", "region"), [{"date": "x"}], "must be a date such as"),
    ],
)
def test_an_entry_that_does_not_fit_is_named_with_its_place(name, way, value, message):
    with pytest.raises(InputError, match=message):
        of_class(name).from_dict(changed(name, way, value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": NaN}', "is damaged: NaN is no number"),
        ('{"schema": 1, "schema": 2}', "the entry 'schema' stands there twice"),
        ('{"rows": 1e999}', "the number 1e999 cannot be held"),
        (
            '{"rows": ' + "9" * 5000 + "}",
            "the number 999999999999999999999999999999... cannot be held",
        ),
        ("[" * 100_000, "nested too deeply"),
        ("\ufeff{}", "is not JSON"),
        (b"\xff\xfe{", "not UTF-8 text at byte 1"),
        (b" " * (MAX_BYTES + 1), "more than 67,108,864 bytes"),
    ],
)
def test_what_is_no_strict_json_of_bounded_size_is_refused(text, message, tmp_path):
    path = tmp_path / "r.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_what_load_would_refuse_is_not_saved(tmp_path):
    made = Platt.from_dict(SAVED["platt"])
    made.slope_ = float("inf")
    with pytest.raises(InputError, match=r"learned\.slope must be a number, not null"):
        made.save(tmp_path / "r.json")
    assert not any(tmp_path.iterdir())


def numbers_of(facts, way=()):
    """The ways to all learned numbers."""
    if isinstance(facts, dict | list):
        own = facts.items() if isinstance(facts, dict) else enumerate(facts)
        return [found for name, part in own for found in numbers_of(part, (*way, name))]
    return [way] if type(facts) in (int, float) else []


EXTREMES = [0.0, 1.0, -1.0, 0.5, 2, 1e100, -1e100, 1e99, 1.7e308, -1.7e308, 5e-324, 1e-300, 1e6]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_file_that_is_accepted_gives_probabilities_for_all_rows(data):
    name = data.draw(st.sampled_from(sorted(SAVED)))
    facts = copy.deepcopy(SAVED[name])
    ways = numbers_of(facts["learned"], ("learned",))
    tops = sorted({way[:3] for way in ways}, key=str)
    for top in data.draw(st.lists(st.sampled_from(tops), min_size=1, max_size=4)):
        *before, last = data.draw(st.sampled_from([way for way in ways if way[:3] == top]))
        holder = facts
        for step in before:
            holder = holder[step]
        holder[last] = data.draw(st.sampled_from(EXTREMES))
    try:
        learned = of_class(name).from_dict(facts)
    except InputError:
        return
    told = learned.predict(P, X)
    assert ((told >= 0) & (told <= 1)).all()


COEFFICIENTS = {
    "platt": [("slope",), ("intercept",)],
    "beta": [("a",), ("b",), ("c",)],
    "local": [("corrections", 0, "coefficients", 0, -1), ("corrections", 0, "coefficients", 0, 0)],
}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(COEFFICIENTS)),
    st.lists(st.floats(-1e100, 1e100), min_size=3, max_size=3),
    st.floats(5e-324, 0.499),
)
def test_coefficients_of_any_size_give_probabilities(name, sizes, edge):
    facts = changed(name, ("learned", "edge"), edge)
    for way, size in zip(COEFFICIENTS[name], sizes, strict=False):
        holder = facts["learned"]
        for step in way[:-1]:
            holder = holder[step]
        holder[way[-1]] = abs(size) if way[-1] in ("a", "b") else size
    told = of_class(name).from_dict(facts).predict(P, X)
    assert ((told >= 0) & (told <= 1)).all()


def test_numbers_that_are_none_are_refused_as_the_last_line_of_defence():
    made = Platt.from_dict(SAVED["platt"])
    made.slope_ = float("nan")
    with pytest.raises(InputError, match="gives no probability for row 0"):
        made.predict([0.5])


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6),
)
def test_straight_lines_stay_between_the_heights_for_numbers_of_any_size(knots, values):
    knots = np.unique(knots)
    heights = np.linspace(0.2, 0.9, knots.size)
    found = interpolated(np.array(values), knots, heights)
    at = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, knots.size - 1)
    low, high = heights[at], heights[np.minimum(at + 1, knots.size - 1)]
    assert ((found >= low) & (found <= high)).all()


def test_straight_lines_are_those_of_numpy_where_its_slopes_are_finite():
    rng = np.random.default_rng(0)
    knots, heights = np.sort(rng.normal(size=30)), np.sort(rng.random(30))
    values = rng.normal(scale=2, size=500)
    np.testing.assert_allclose(
        interpolated(values, knots, heights), np.interp(values, knots, heights), atol=1e-15
    )


def test_rows_that_are_all_alike_are_among_the_calibration_rows():
    """No spread at all: what is usual is a distance of 0, which nothing is divided by."""
    y = np.r_[np.ones(180), np.zeros(20)]
    learned = it.recalibrate.Local().fit(it.Sample(y, np.full(200, 0.3)))
    told = learned.predict([0.3, 0.30001, 0.9])
    assert np.isfinite(told).all()
    assert told[0] > 0.5


def test_what_mcgrad_learns_is_not_saved():
    facts = {**SAVED["platt"], "method": "MCGrad", "settings": {}, "learned": {"model": "{}"}}
    with pytest.raises(InputError, match="what MCGrad learns is not saved"):
        MCGrad.from_dict(facts)
