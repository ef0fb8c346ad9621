"""Rows without labels."""

import numpy as np
import polars as pl
import pytest

import itrust as it
from itrust._core import InputError


def test_takes_what_a_sample_takes():
    frame = pl.DataFrame(
        {"p": [0.1, 0.9, 0.5], "age": [30, 40, 50], "sex": ["f", None, "f"], "w": [1.0, 2.0, 0.5]}
    )
    found = it.Population.from_frame(
        frame, prob="p", on=["age", "sex"], weights="w", missing="level"
    )
    assert found.names == ("age", "sex")
    assert found.points.columns[1].levels == ("f", "(missing)")
    assert found.weights == pytest.approx([1.0, 2.0, 0.5])
    assert len(found) == found.n == 3
    dropped = it.Population.from_frame(frame, prob="p", on="sex", missing="drop")
    assert (dropped.n, dropped.dropped) == (
        2,
        ("left out 1 row of 3 with missing values: 1 lacks 'sex'",),
    )


def test_is_frozen():
    found = it.Population(np.array([0.1, 0.2]))
    with pytest.raises(ValueError, match="read-only"):
        found.p[0] = 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: it.Population([0.1, 1.2]), r"prob must lie in \[0, 1\]; row 1 has 1.2"),
        (lambda: it.Population([0.1, 0.2], {"a": [1]}), "but there are 2 probabilities"),
        (lambda: it.Population([]), "at least 1 row"),
        (lambda: it.Population([0.1], {"a": [None]}), "holds no value in any row"),
        (lambda: it.Population.from_frame({"p": [0.1]}, prob="q"), "there is no column 'q'"),
        (
            lambda: it.Population.from_frame({"p": [0.1]}, prob="p", on="a"),
            "on: there is no column",
        ),
    ],
)
def test_wrong_input_gets_one_sentence(call, message):
    with pytest.raises(InputError, match=message):
        call()
