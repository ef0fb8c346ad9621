from itrust import datasets as datasets
from itrust import engines as engines
from itrust import kernels as kernels
from itrust import losses as losses
from itrust import nulls as nulls
from itrust import recalibrate as recalibrate
from itrust import simulate as simulate
from itrust import tasks as tasks
from itrust._core import ApproximationWarning as ApproximationWarning
from itrust._core import AssumptionWarning as AssumptionWarning
from itrust._core import DatasetError as DatasetError
from itrust._core import InputError as InputError
from itrust.auditing import Verdict as Verdict
from itrust.auditing import audit as audit
from itrust.auditing import compare as compare
from itrust.auditing import drift as drift
from itrust.balance import resemblance as resemblance
from itrust.bias import bias_curve as bias_curve
from itrust.bias import bias_groups as bias_groups
from itrust.bias import bias_map as bias_map
from itrust.bias import bias_slices as bias_slices
from itrust.bias import local_bias as local_bias
from itrust.calibration import Dictionary as Dictionary
from itrust.calibration import default_dictionary as default_dictionary
from itrust.calibration import detectable as detectable
from itrust.calibration import klce2 as klce2
from itrust.calibration import klce_test as klce_test
from itrust.calibration import multiclass_test as multiclass_test
from itrust.calibration import null_sd as null_sd
from itrust.calibration import sample_size as sample_size
from itrust.calibration import scores as scores
from itrust.data import Design as Design
from itrust.data import MulticlassSample as MulticlassSample
from itrust.data import Population as Population
from itrust.data import Sample as Sample
from itrust.data import blocks as blocks
from itrust.data import scan as scan
from itrust.overturn import robustness as robustness
from itrust.render import figures as figures
from itrust.watch import Watch as Watch

__version__: str
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
]
