"""Tells whether a classifier's probabilities can be trusted for inference.

>>> import itrust as it
>>> sample = it.simulate.survey(2_000, rng=0).sample
>>> it.klce_test(sample, rng=0).pvalue
0.001

Every name is loaded when it is first asked for, so importing the package costs next to nothing.
Classes of results stand in the packages that make them, such as `itrust.calibration`.
"""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from itrust import datasets, engines, kernels, losses, nulls, recalibrate, simulate, tasks
    from itrust._core import ApproximationWarning, AssumptionWarning, DatasetError, InputError
    from itrust.auditing import Verdict, audit, compare, drift
    from itrust.balance import resemblance
    from itrust.bias import bias_curve, bias_groups, bias_map, bias_slices, local_bias
    from itrust.calibration import (
        Dictionary,
        default_dictionary,
        detectable,
        klce2,
        klce_test,
        multiclass_test,
        null_sd,
        sample_size,
        scores,
        tune_widths,
        tuned_test,
        witness_test,
    )
    from itrust.data import Design, MulticlassSample, Population, Sample, blocks, scan
    from itrust.overturn import robustness
    from itrust.render import figures
    from itrust.watch import Watch
else:
    from itrust._core.later import loaded_later
    from itrust._core.memory import spare_address_space

    spare_address_space()
    __getattr__ = loaded_later(__name__)

__all__ = [
    "ApproximationWarning",
    "AssumptionWarning",
    "DatasetError",
    "Design",
    "Dictionary",
    "InputError",
    "MulticlassSample",
    "Population",
    "Sample",
    "Verdict",
    "Watch",
    "__version__",
    "audit",
    "bias_curve",
    "bias_groups",
    "bias_map",
    "bias_slices",
    "blocks",
    "compare",
    "datasets",
    "default_dictionary",
    "detectable",
    "drift",
    "engines",
    "figures",
    "kernels",
    "klce2",
    "klce_test",
    "local_bias",
    "losses",
    "multiclass_test",
    "null_sd",
    "nulls",
    "recalibrate",
    "resemblance",
    "robustness",
    "sample_size",
    "scan",
    "scores",
    "simulate",
    "tasks",
    "tune_widths",
    "tuned_test",
    "witness_test",
]


def __dir__() -> list[str]:
    return sorted(__all__)
