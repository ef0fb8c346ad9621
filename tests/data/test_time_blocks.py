import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import itrust as it
from itrust import InputError
from itrust.data import block_length

YEAR = np.arange("2023-01-01", "2024-01-01", dtype="datetime64[D]")


@pytest.mark.parametrize(
    "make",
    [
        list,
        np.array,
        pd.Series,
        pd.to_datetime,
        pa.array,
        lambda days: pd.Series(pd.to_datetime(days)).dt.tz_localize("UTC"),
        lambda days: [dt.date.fromisoformat(day) for day in days],
        lambda days: pd.Categorical(days),
    ],
)
def test_dates_of_every_form_have_the_same_weeks(make):
    days = ["2024-03-03", "2024-03-04", "1969-12-28", "1969-12-29"]
    found = it.blocks(make(days), "week")
    assert found.astype(str).tolist() == ["2024-02-26", "2024-03-04", "1969-12-22", "1969-12-29"]


@pytest.mark.parametrize(
    ("length", "blocks"), [("day", 365), ("week", 53), ("month", 12), ("quarter", 4), ("year", 1)]
)
def test_blocks_of_the_calendar_begin_with_their_first_day(length, blocks):
    found = it.blocks(YEAR, length)
    assert np.unique(found).size == blocks
    assert (found <= YEAR).all()
    stamps = pd.Series(YEAR)
    periods = {"day": "D", "week": "W-SUN", "month": "M", "quarter": "Q", "year": "Y"}
    start = stamps.dt.to_period(periods[length]).dt.start_time
    assert (found == start.to_numpy().astype("datetime64[D]")).all()


def test_seven_days_are_a_week_and_blocks_do_not_depend_on_other_rows():
    assert (it.blocks(YEAR, 7) == it.blocks(YEAR, "week")).all()
    assert (it.blocks(YEAR, 10)[100:] == it.blocks(YEAR[100:], 10)).all()
    lengths = np.unique(it.blocks(YEAR, 10), return_counts=True)[1][1:-1]
    assert (lengths == 10).all()


def test_auto_grows_with_the_cube_root_of_the_days():
    assert block_length(YEAR) == 8  # 365^(1/3) = 7.1
    assert block_length(np.arange("2000-01-01", "2008-01-01", dtype="datetime64[D]")) == 15
    assert (it.blocks(YEAR) == it.blocks(YEAR, 8)).all()


def test_auto_leaves_30_blocks_and_no_less_than_a_day():
    assert block_length(YEAR[:60]) == 2
    assert block_length(YEAR[:10]) == 1
    assert block_length([]) == 1


def test_auto_reaches_as_far_as_predictions_are_correlated():
    rng = np.random.default_rng(0)
    days = np.arange("2000-01-01", "2010-01-01", dtype="datetime64[D]")
    noise = rng.normal(size=days.size + 40)
    moving = np.convolve(noise, np.ones(41), "valid")  # correlated up to lag 40
    p = 1 / (1 + np.exp(-moving / 6))
    assert 25 <= block_length(days, p) <= 60
    assert block_length(days, rng.random(days.size)) <= 20
    assert block_length(days, np.full(days.size, 0.5)) == 16
    trend = np.linspace(0.1, 0.9, days.size)
    assert block_length(days, trend) == days.size // 30


WRONG = [
    ([1, 2, 3], "dates: blocks of time need dates, but row 0 has 1 .convert it, for instance"),
    (["2024-03-01", "soon"], "row 1 has 'soon'"),
    (["2024-03-01", None], r"1 row has no dates \(first: row 1\)"),
    ([True, False], "row 0 has True"),
]


@pytest.mark.parametrize(("dates", "told"), WRONG)
def test_what_is_no_date_is_refused_in_one_sentence(dates, told):
    with pytest.raises(InputError, match=told):
        it.blocks(dates, "week")


def test_lengths_that_do_not_exist_are_refused():
    with pytest.raises(InputError, match="length must be a number of days or one of 'auto', 'day'"):
        it.blocks(YEAR, "fortnight")
    with pytest.raises(InputError, match="length"):
        it.blocks(YEAR, 0)
    with pytest.raises(InputError, match="p has 3 rows, but there are 365 dates"):
        it.blocks(YEAR, p=[0.1, 0.2, 0.3])
