"""The judge of levels, judged."""

import numpy as np
import pytest
from scipy.stats import binom

from oracles import holds_level

pytestmark = pytest.mark.slow


def passes(rate, times=100, **settings):
    """How often a test that rejects in a share `rate` of runs is believed."""

    def is_believed(seed):
        drawn = iter(np.random.default_rng([4, seed]).random(4_000) < rate)
        return holds_level(lambda _: next(drawn), **settings)

    return sum(is_believed(seed) for seed in range(times))


def test_the_promised_level_is_believed():
    assert passes(0.05) == 100


@pytest.mark.parametrize("rate", [0.08, 0.025])
def test_another_level_is_found_out_nine_times_in_ten(rate):
    assert binom.sf(passes(rate) - 1, 100, 0.1) > 0.001  # believed in one of ten at most
    assert passes(2 * rate if rate > 0.05 else rate / 5) == 0


def test_conservative_tests_are_believed_where_that_is_allowed():
    assert passes(0.01, conservative=True) == 100
    assert passes(0.16, conservative=True) == 0


def test_several_levels_are_judged_together():
    rng = np.random.default_rng(0)
    assert holds_level(lambda _: rng.random(3) < 0.05)
    assert not holds_level(lambda _: rng.random(3) < [0.05, 0.05, 0.15])
