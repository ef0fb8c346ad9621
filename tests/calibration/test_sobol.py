"""Points that fill a cube evenly are those of SciPy."""

import numpy as np
import pytest
from scipy.stats import qmc

from itrust.calibration.power import sobol_points


@pytest.mark.parametrize(
    ("dimensions", "count", "seed"), [(6, 256, 0), (1, 2, 5), (3, 64, 1), (2, 1, 0)]
)
def test_points_are_those_of_scipy(dimensions, count, seed):
    expected = qmc.Sobol(dimensions, seed=np.random.default_rng(seed)).random(count)
    np.testing.assert_array_equal(sobol_points(dimensions, count, seed), expected)
