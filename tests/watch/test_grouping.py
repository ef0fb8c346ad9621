"""Ranks and parts of numbers: groups of ten rows or more, and no value of a single row."""

import base64
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import itrust as it
from itrust.watch.components import MIN_GROUP, even_parts, rank_scale


def column(values):
    values = np.asarray(values)
    return it.Sample(np.arange(values.size) % 2, np.full(values.size, 0.5), {"x": values}).column(
        "x"
    )


def test_ends_of_parts_have_the_same_few_digits():
    values = np.random.default_rng(0).uniform(20, 80, 900)
    first, *told, last = (part.text for part in even_parts(column(values), 4))
    assert all(re.fullmatch(r"\d\d to \d\d", text) for text in told)
    assert re.fullmatch(r"below \d\d", first)
    assert re.fullmatch(r"\d\d or more", last)
    _, *tenths, _ = (part.text for part in even_parts(column(values), 10))
    assert all(re.fullmatch(r"\d\d\.\d to \d\d\.\d", text) for text in tenths)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (np.arange(100.0), ["below 25", "25 to 49", "50 to 74", "75 or more"]),
        (np.r_[np.zeros(60), np.arange(1.0, 41)], ["= 0", "1 to 15", "16 or more"]),
        (
            np.arange("2024-01-01", 100, dtype="M8[D]"),
            [
                "before 2024-01-26",
                "2024-01-26 to 2024-02-19",
                "2024-02-20 to 2024-03-15",
                "from 2024-03-16 on",
            ],
        ),
    ],
)
def test_whole_numbers_and_dates_are_told_without_their_extremes(values, told):
    assert [part.text for part in even_parts(column(values), 4)] == told


@settings(max_examples=40)
@given(
    st.lists(st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float), min_size=2, max_size=60),
    st.integers(2, 10),
)
def test_every_value_lies_in_one_part_and_every_part_has_ten_rows(values, parts):
    own = column(values)
    found = even_parts(own, parts)
    points = it.Sample(np.arange(len(values)) % 2, np.full(len(values), 0.5), {"x": values}).points
    inside = np.array([part.rows(points) for part in found])
    assert len(found) != 1
    assert len(found) <= parts
    if found:
        assert (inside.sum(axis=0) == 1).all()
        assert inside.sum(axis=1).min() >= MIN_GROUP


@settings(max_examples=40)
@given(st.lists(st.floats(-1e300, 1e300) | st.integers(-3, 3).map(float), max_size=80))
def test_ranks_rise_with_values_and_stay_inside(values):
    scale = rank_scale(np.array(values))
    assert (np.diff(scale.knots) > 0).all()
    assert (np.diff(scale.heights) > 0).all()
    assert (scale.heights > 0).all()
    assert (scale.heights < 1).all()
    assert scale.knots.size <= max(len(values) // MIN_GROUP, 1)


def test_ranks_of_many_rows_are_those_of_all_rows():
    values = np.random.default_rng(0).normal(size=4_000)
    ranks = (values.argsort().argsort() + 0.5) / values.size
    assert np.abs(rank_scale(values)(values) - ranks).max() < 0.01


def numbers(facts):
    """All numbers of a state: plain ones, in arrays and in texts."""
    if isinstance(facts, dict) and "data" in facts:
        yield from np.frombuffer(base64.b64decode(facts["data"]), dtype=facts["type"]).tolist()
    elif isinstance(facts, dict | list):
        for own in facts.values() if isinstance(facts, dict) else facts:
            yield from numbers(own)
    elif isinstance(facts, str):
        yield from (float(own) for own in re.findall(r"\d+(?:\.\d+)?", facts))
    elif isinstance(facts, int | float):
        yield float(facts)


@pytest.mark.parametrize("step", [10.0, 0.01])
def test_no_value_of_a_single_row_is_in_the_state(tmp_path, step):
    rng = np.random.default_rng(0)
    income = np.round(rng.lognormal(10, 1, 120) / step) * step + 3  # no round numbers
    p = rng.uniform(0.1, 0.9, 120)
    rows = it.Sample(rng.random(120) < p, p, {"income": income})
    watch = it.Watch.start(rows, ["mean(income)"])
    facts = json.loads(watch.save(tmp_path / "watch.json").read_text())
    kept = [*numbers(facts["wealth"]), *numbers(facts["sequences"])]
    assert not set(income) & set(kept)
    assert not set(p) & set(kept)
    leaf = watch.sequences[0].leaves[0]
    assert income.max() < leaf.centre + leaf.above.bound < 1.15 * income.max()
