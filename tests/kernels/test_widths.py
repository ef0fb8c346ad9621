import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itrust.kernels import Median, Scale


def test_median_of_distances_by_hand():
    assert Median()(np.array([0.0, 1.0, 3.0])) == 2.0  # distances 1, 2, 3
    assert Median(0.5)(np.array([0.0, 1.0, 3.0])) == 1.0


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.99])
def test_median_of_a_binary_column_is_not_zero(share):
    column = (np.arange(1000) < 1000 * share).astype(float)
    assert Median()(column) == 1.0


@pytest.mark.parametrize("rule", [Median(), Scale()])
@pytest.mark.parametrize("values", [np.full(5, 3.0), np.array([2.0]), np.array([])])
def test_constant_and_empty_columns_get_a_width_of_one(rule, values):
    assert rule(values) == 1.0


def test_thinned_median_is_that_of_the_whole_and_ignores_row_order():
    rng = np.random.default_rng(0)
    values = rng.normal(size=10_000)
    assert Median()(values) == pytest.approx(0.9539, rel=0.02)  # sqrt(2) * normal quartile
    assert Median()(values) == Median()(np.sort(values))


def test_scale_of_a_normal_column_is_its_standard_deviation_despite_outliers():
    values = np.random.default_rng(0).normal(0, 3, 50_000)
    values[:100] = 1e6
    assert Scale()(values) == pytest.approx(3.0, rel=0.03)


def test_scale_falls_back_when_quartiles_coincide():
    values = np.array([0.0] * 90 + [1.0] * 10)
    assert Scale()(values) == pytest.approx(0.3)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0.1, 10))
def test_widths_are_positive_and_follow_the_unit_of_measurement(values, unit):
    column = np.round(values, 3)
    for rule in (Median(), Scale()):
        width = rule(column)
        assert width > 0
        if np.ptp(column) > 0.01:
            assert rule(column * unit) == pytest.approx(width * unit, rel=1e-6)
