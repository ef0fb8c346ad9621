"""Engines that compute e'Pe for the data and many redraws at once."""

from itrust._core import ClusterError
from itrust.engines.dask import Dask, bounds_of, lots_of, pieces_of, seen_here, while_wanted
from itrust.engines.factor import Factor, LowRankPlan, make_plan
from itrust.engines.passes import (
    Additive,
    Drawing,
    Drawn,
    Job,
    Products,
    RowwisePartial,
    RowwiseWork,
    Scratch,
    Tally,
    Totals,
    Work,
    accumulate,
    accumulate_all,
    join,
)
from itrust.engines.plan import (
    Certificate,
    Engine,
    KernelOutcome,
    NullMoments,
    Outcome,
    Part,
    Plan,
    Purpose,
    Survey,
    amount_of_work,
    columns_at_once,
    finite,
    run_together,
    third_moments,
    weight_unit,
    work_of_parts,
)
from itrust.engines.threads import available_threads, one_blas_thread, ordered_map
from itrust.engines.tiles import Auto, EngineChoice, Tiles, as_engine, exact_features

__all__ = ["Auto", "Certificate", "ClusterError", "Dask", "Engine", "Factor", "Tiles"]
__dir__ = __all__.copy  # what tab completion offers
