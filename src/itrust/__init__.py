"""Tells whether a classifier's probabilities can be trusted for inference.

>>> import itrust as it
>>> sample = it.simulate.survey(2_000, rng=0).sample
>>> it.klce_test(sample, rng=0).pvalue
0.001
"""

__version__ = "0.1.0.dev0"

from itrust import datasets, engine, grammar, kernels, nulls, recalibrate, scores, simulate, tasks
from itrust.adaptive import default_dictionary, klce_test
from itrust.audits import Audit, audit
from itrust.bias import HeldOut, LocalBias, local_bias
from itrust.classes import MulticlassSample
from itrust.comparison import Comparison, compare
from itrust.curves import BiasCurve, BiasMap, bias_curve, bias_map
from itrust.dictionary import Dictionary
from itrust.errors import ApproximationWarning, AssumptionWarning, DatasetError, InputError
from itrust.files import Scan, scan
from itrust.groups import GroupTable, bias_groups
from itrust.klce import klce2, null_sd
from itrust.multiclass import MulticlassResult, multiclass_test
from itrust.planning import Detectable, SampleSize, detectable, sample_size
from itrust.population import Population
from itrust.results import AdaptiveResult, KLCEResult
from itrust.sample import Sample
from itrust.slices import SliceTable, bias_slices
from itrust.tuning import tune_widths, tuned_test
from itrust.verdict import Verdict
from itrust.witness import Across, Forward, WitnessResult, witness_test

__all__ = [
    "Across",
    "AdaptiveResult",
    "ApproximationWarning",
    "AssumptionWarning",
    "Audit",
    "BiasCurve",
    "BiasMap",
    "Comparison",
    "DatasetError",
    "Detectable",
    "Dictionary",
    "Forward",
    "GroupTable",
    "HeldOut",
    "InputError",
    "KLCEResult",
    "LocalBias",
    "MulticlassResult",
    "MulticlassSample",
    "Population",
    "Sample",
    "SampleSize",
    "Scan",
    "SliceTable",
    "Verdict",
    "WitnessResult",
    "__version__",
    "audit",
    "bias_curve",
    "bias_groups",
    "bias_map",
    "bias_slices",
    "compare",
    "datasets",
    "default_dictionary",
    "detectable",
    "engine",
    "figures",
    "grammar",
    "kernels",
    "klce2",
    "klce_test",
    "local_bias",
    "multiclass_test",
    "null_sd",
    "nulls",
    "recalibrate",
    "report",
    "sample_size",
    "scan",
    "scores",
    "simulate",
    "tasks",
    "tune_widths",
    "tuned_test",
    "witness_test",
]


def __getattr__(name: str) -> object:
    """Load what draws pictures and pages only when it is asked for."""
    if name in ("figures", "report"):
        import importlib

        return importlib.import_module(f"itrust.{name}")
    raise AttributeError(f"module 'itrust' has no attribute {name!r}")
