"""The judge of levels, judged."""

import numpy as np
import pytest
from scipy.stats import binom

from oracles import STRICT, holds_level

pytestmark = pytest.mark.slow


TIMES = 60


def passes(rate, **settings):
    """How often a test that rejects in a share `rate` of runs is believed."""

    def is_believed(seed):
        drawn = iter(np.random.default_rng([4, seed]).random(4_000) < rate)
        return holds_level(lambda _: next(drawn), **settings)

    return sum(is_believed(seed) for seed in range(TIMES))


@pytest.mark.parametrize("settings", [{}, {"others": STRICT}])
def test_the_promised_level_is_believed(settings):
    assert passes(0.05, **settings) == TIMES


@pytest.mark.parametrize("settings", [{}, {"others": STRICT}])
@pytest.mark.parametrize("side", [0, 1])
def test_another_level_is_found_out_nine_times_in_ten(side, settings):
    rate = 0.05 * settings.get("others", (2, 1 / 3))[side]
    believed = passes(rate, **settings)
    assert binom.sf(believed - 1, TIMES, 0.1) > 0.001  # in one of ten at most
    assert passes(rate / 5 if side else 2 * rate, **settings) == 0


def test_conservative_tests_are_believed_where_that_is_allowed():
    assert passes(0.01, conservative=True) == TIMES
    assert passes(0.16, conservative=True) == 0


def test_several_levels_are_judged_together():
    rng = np.random.default_rng(0)
    assert holds_level(lambda _: rng.random(3) < 0.05)
    assert not holds_level(lambda _: rng.random(3) < [0.05, 0.05, 0.15])
