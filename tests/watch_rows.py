"""Rows of three covariates whose labels follow their probabilities, or do not."""

import numpy as np

import itrust as it


def bias_of(drift, sex, age, region):
    """How far labels lie above the predictions, row by row."""
    match drift:
        case "none":
            return np.zeros(age.size)
        case "everywhere":
            return np.full(age.size, 0.05)
        case "eighth":
            return 0.15 * ((sex == "m") & (region == "south"))
        case "cancelling":
            return np.where((sex == "m") == (age > 50), 0.1, -0.1)
        case "large":
            return np.full(age.size, 0.25)
    raise ValueError(drift)


def make_rows(seed, n=200, drift="none", **more):
    rng = np.random.default_rng(seed)
    sex, region = rng.choice(["f", "m"], n), rng.choice(["east", "north", "south", "west"], n)
    age = rng.uniform(20, 80, n)
    p = 1 / (1 + np.exp(-(rng.normal(0, 0.8, n) + 0.02 * (age - 50) + 0.3 * (sex == "m"))))
    truth = np.clip(p + bias_of(drift, sex, age, region), 0, 1)
    x = {"sex": sex, "age": age, "region": region}
    return it.Sample((rng.random(n) < truth).astype(float), p, x, **more)
