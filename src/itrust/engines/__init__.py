"""Engines that compute e'Pe for the data and many redraws at once."""

from itrust._core import ClusterError
from itrust.engines.auto import Auto, EngineChoice, as_engine
from itrust.engines.cluster import while_wanted
from itrust.engines.dask import Dask, bounds_of, lots_of, pieces_of, seen_here
from itrust.engines.factor import Factor
from itrust.engines.landmarks import make_plan
from itrust.engines.lowrank import LowRankPlan
from itrust.engines.passes import (
    Additive,
    Drawing,
    Job,
    RowwisePartial,
    RowwiseWork,
    Tally,
    Totals,
    Work,
    accumulate,
    accumulate_all,
)
from itrust.engines.plan import (
    Certificate,
    KernelOutcome,
    NullMoments,
    Outcome,
    Plan,
    Purpose,
    Survey,
    amount_of_work,
    columns_at_once,
    finite,
    third_moments,
    weight_unit,
)
from itrust.engines.products import Drawn, Products, Scratch, join
from itrust.engines.protocol import Engine, Part, run_together, work_of_parts
from itrust.engines.threads import available_threads, one_blas_thread, ordered_map
from itrust.engines.tiles import Tiles, exact_features

__all__ = ["Auto", "Certificate", "ClusterError", "Dask", "Engine", "Factor", "Tiles"]
__dir__ = __all__.copy  # what tab completion offers
