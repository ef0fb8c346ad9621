"""Tells whether a classifier's probabilities can be trusted for inference.

>>> import itrust as it
>>> sample = it.simulate.survey(2_000, rng=0).sample
>>> it.klce_test(sample, rng=0).pvalue
0.001
"""

__version__ = "0.1.0.dev0"

from itrust import datasets, engine, kernels, nulls, scores, simulate
from itrust.adaptive import default_dictionary, klce_test
from itrust.classes import MulticlassSample
from itrust.dictionary import Dictionary
from itrust.errors import ApproximationWarning, AssumptionWarning, DatasetError, InputError
from itrust.files import Scan, scan
from itrust.klce import klce2, null_sd
from itrust.multiclass import MulticlassResult, multiclass_test
from itrust.planning import Detectable, SampleSize, detectable, sample_size
from itrust.results import AdaptiveResult, KLCEResult
from itrust.sample import Sample
from itrust.tuning import tune_widths, tuned_test
from itrust.witness import Across, Forward, WitnessResult, witness_test

__all__ = [
    "Across",
    "AdaptiveResult",
    "ApproximationWarning",
    "AssumptionWarning",
    "DatasetError",
    "Detectable",
    "Dictionary",
    "Forward",
    "InputError",
    "KLCEResult",
    "MulticlassResult",
    "MulticlassSample",
    "Sample",
    "SampleSize",
    "Scan",
    "WitnessResult",
    "__version__",
    "datasets",
    "default_dictionary",
    "detectable",
    "engine",
    "kernels",
    "klce2",
    "klce_test",
    "multiclass_test",
    "null_sd",
    "nulls",
    "sample_size",
    "scan",
    "scores",
    "simulate",
    "tune_widths",
    "tuned_test",
    "witness_test",
]
