"""People with numbers, categories and missing values, in whom slices are planted."""

from __future__ import annotations

import numpy as np


def people(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    return {
        "age": rng.integers(18, 80, n),
        "income": rng.lognormal(10, 0.5, n),
        "sex": rng.choice(["f", "m"], n),
        "race": rng.choice(list("abcd"), n, p=[0.5, 0.3, 0.15, 0.05]),
        "charge": rng.choice(["F", "M"], n),
        "lab": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
    }
