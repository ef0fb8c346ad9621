"""Samples with a known error that several test files judge."""

import numpy as np

import itrust as it


def tilted(n=4_000, seed=0, bias=1.5):
    """p is right on average and wrong with x: logit error `bias` * (x - 1/2), in group a alone."""
    rng = np.random.default_rng(seed)
    x, group, z = rng.random(n), rng.choice(["a", "b"], n), rng.normal(size=n)
    true = 1 / (1 + np.exp(-z - bias * (x - 0.5) * (group == "a")))
    return it.Sample(rng.random(n) < true, 1 / (1 + np.exp(-z)), {"x": x, "group": group})
