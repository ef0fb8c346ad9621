"""One description reads, checks and writes: what is written is read to the same."""

import datetime as dt
import json
import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itrust._core import (
    Array,
    ByName,
    InputError,
    ListOf,
    ListWith,
    Maybe,
    Number,
    Numbers,
    OneKind,
    OneWord,
    Record,
    SavedLevel,
    Text,
    Whole,
    json_of,
    mended_by,
    shape_of,
    strict_json,
    tuple_of,
)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Point:
    x: float
    n: int
    names: tuple[str, ...]
    colour: Colour
    before: "Point | None" = None


@dataclass(frozen=True)
class Line:
    ends: tuple[float, ...]


POINT = Record.of(
    Point,
    x=Number(infinite=True),
    before=Maybe(Record.of(Point, x=Number(infinite=True), before=Whole())),
)
FIGURE = OneKind({"point": POINT, "line": Record.of(Line)})


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (Number(), 0.1),
        (Number(infinite=True), -math.inf),
        (SavedLevel(), dt.date(2026, 1, 31)),
        (SavedLevel(), dt.datetime(2026, 1, 31, 6)),
        (Maybe(Text()), None),
        (ListOf(Whole()), [1, 2]),
        (tuple_of(Whole()), (1, 2)),
        (ListWith((Text(), Whole())), ("a", 3)),
        (ByName(OneWord(("a", "b"))), {"column": "b"}),
        (POINT, Point(math.inf, 3, ("a",), Colour.RED)),
        (FIGURE, Line((1.0, 2.0))),
        (Record({"a": Whole(), "b": Text()}, frozenset({"b"})), {"a": 1}),
    ],
)
def test_what_is_written_is_json_and_read_to_the_same(shape, value):
    written = json.loads(json.dumps(shape.write(value), allow_nan=False))
    assert shape.read(written, "here") == value


@given(
    st.lists(st.lists(st.floats(-1e150, 1e150), min_size=2, max_size=2), max_size=5),
    st.sampled_from([np.float32, np.float64]),
)
def test_arrays_are_read_to_the_bit(rows, kind):
    with np.errstate(over="ignore"):
        values = np.array(rows, dtype=kind).reshape(-1, 2)
    values[~np.isfinite(values)] = 0
    found = Array(2).read(json.loads(json.dumps(Array(2).write(values))), "here")
    np.testing.assert_array_equal(found, values)
    assert found.dtype == kind


SOUND = Array().write(np.arange(3.0))


@pytest.mark.parametrize(
    ("shape", "value", "message"),
    [
        (Whole(0, 9), 10, "here must be a whole number from 0 to 9, not 10"),
        (Whole(), True, "here must be a whole number, not true"),
        (Numbers(apart=True), [1, 1], r"here\[1\] must be above the entry before it"),
        (POINT, {"x": 1}, "here lacks the entry 'n'"),
        (POINT, POINT.write(Point(1, 2, (), Colour.RED)) | {"z": 1}, "has an unknown entry 'z'"),
        (FIGURE, {"ends": []}, "here must be a record with a kind"),
        (FIGURE, {"kind": "lin", "ends": []}, "here.kind must be 'point' or 'line', not 'lin'"),
        (FIGURE, {"kind": "line", "ends": [1, "a"]}, r"here.ends\[1\] must be a number, not 'a'"),
        (Array(2), SOUND, "here.shape must have 2 entries"),
        (Array(), SOUND | {"shape": [4]}, "here.data must have the bytes of all numbers"),
        (Array(), SOUND | {"data": "?"}, "here.data must be base64"),
        (Array(), Array().write(np.array([np.nan])), "here must be an array of finite numbers"),
        (Array(), Array().write(np.array([-np.inf])), "here must be an array of finite numbers"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(shape, value, message):
    with pytest.raises(InputError, match=message):
        shape.read(value, "here")


def test_logarithms_of_nothing_are_kept_where_they_are_asked_for():
    logs = np.array([-np.inf, 2.0])
    np.testing.assert_array_equal(Array(logs=True).read(Array().write(logs), "here"), logs)


def test_types_without_a_shape_are_no_fault_of_the_file():
    with pytest.raises(TypeError, match="no shape for"):
        shape_of(complex)
    with pytest.raises(TypeError, match="no kind for a dict"):
        FIGURE.write({})


def test_a_cure_is_added_by_who_reads_and_the_file_is_named_once(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"n": NaN}')
    with pytest.raises(InputError) as caught, mended_by("write it anew"):
        json_of(path)
    assert str(caught.value) == f"{path} is damaged: NaN is no number (write it anew)"
    with pytest.raises(InputError, match=r"^model is not JSON: expecting value in line 1$"):
        strict_json("", "model")
