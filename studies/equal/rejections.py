"""How often tests of calibration reject the simulated survey: a right model, and a wrong one.

The wrong one is off by age and region, in ways that cancel given the prediction.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import itrust as it
from itrust import simulate

N, RUNS, DRAWS, ALPHA = 600, 200, 99, 0.05


def given_covariates(sample: it.Sample, seed: int) -> float:
    return it.klce_test(sample, draws=DRAWS, rng=seed, progress=False).pvalue


def given_prediction(sample: it.Sample, seed: int) -> float:
    alone = it.Sample(sample.y, sample.p)
    return it.klce_test(alone, draws=DRAWS, rng=seed, progress=False).pvalue


def skce(sample: it.Sample, seed: int) -> float:
    from probcal.metrics import skce_test

    return skce_test(sample.y, sample.p, n_boot=DRAWS, random_state=seed).p_value


def hosmer_lemeshow(sample: it.Sample, seed: int) -> float:  # noqa: ARG001
    from probcal.metrics import hosmer_lemeshow

    return hosmer_lemeshow(sample.y, sample.p).p_value


def spiegelhalter(sample: it.Sample, seed: int) -> float:  # noqa: ARG001
    from probcal.metrics import spiegelhalter_z

    return spiegelhalter_z(sample.y, sample.p).p_value


def intercept_and_slope(sample: it.Sample, seed: int) -> float:  # noqa: ARG001
    from probcal.metrics import calibration_test

    return calibration_test(sample.y, sample.p).p_value


TESTS: dict[str, tuple[str, Callable[[it.Sample, int], float]]] = {
    "`it.klce_test`": ("prediction, age, region", given_covariates),
    "`it.klce_test`, without covariates": ("prediction", given_prediction),
    "probcal `skce_test`": ("prediction", skce),
    "probcal `hosmer_lemeshow`": ("prediction", hosmer_lemeshow),
    "probcal `calibration_test` (intercept and slope)": ("prediction", intercept_and_slope),
    "probcal `spiegelhalter_z`": ("prediction", spiegelhalter),
}


def rejected(test: Callable[[it.Sample, int], float], *, trustworthy: bool, runs: int) -> float:
    """Share of samples whose p-value is at most .05; run k has seed k."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", it.AssumptionWarning)
        found = [
            test(simulate.survey(N, rng=seed, trustworthy=trustworthy).sample, seed) <= ALPHA
            for seed in range(runs)
        ]
    return sum(found) / runs


def table(runs: int = RUNS) -> dict[str, object]:
    rows = [
        {
            "test": name,
            "given": given,
            "right": rejected(test, trustworthy=True, runs=runs),
            "wrong": rejected(test, trustworthy=False, runs=runs),
        }
        for name, (given, test) in TESTS.items()
    ]
    return {"n": N, "runs": runs, "draws": DRAWS, "rows": rows}
