"""What several test files need: a sample with every kind of column."""

import signal

import numpy as np
import pytest
from hypothesis import settings

import itrust as it

# How long an example takes depends on what else the machine does, and a landing on no luck;
# `make nightly` looks at other examples every night.
settings.register_profile("itrust", deadline=None, derandomize=True)
settings.register_profile("nightly", deadline=None, print_blob=True)
settings.load_profile("itrust")
# A shell starts what runs in the background with Ctrl-C ignored, `nohup` with SIGHUP, and commands
# would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def mixed_sample() -> it.Sample:
    """Forty rows with a number, a date-like count, a boolean and a category."""
    rng = np.random.default_rng(3)
    n = 40
    x = {
        "income": rng.normal(50, 10, n),
        "children": rng.integers(0, 3, n),
        "urban": rng.random(n) < 0.5,
        "race": rng.choice(["a", "b", "c"], n),
    }
    p = rng.uniform(0.05, 0.95, n)
    return it.Sample(rng.random(n) < p, p, x, weights=rng.exponential(size=n))
