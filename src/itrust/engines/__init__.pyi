from itrust._core import ClusterError as ClusterError
from itrust.engines.dask import Dask as Dask
from itrust.engines.dask import bounds_of as bounds_of
from itrust.engines.dask import lots_of as lots_of
from itrust.engines.dask import pieces_of as pieces_of
from itrust.engines.dask import seen_here as seen_here
from itrust.engines.dask import while_wanted as while_wanted
from itrust.engines.factor import Factor as Factor
from itrust.engines.factor import LowRankPlan as LowRankPlan
from itrust.engines.factor import make_plan as make_plan
from itrust.engines.passes import Additive as Additive
from itrust.engines.passes import Drawing as Drawing
from itrust.engines.passes import Drawn as Drawn
from itrust.engines.passes import FunctionWork as FunctionWork
from itrust.engines.passes import Job as Job
from itrust.engines.passes import Products as Products
from itrust.engines.passes import Scratch as Scratch
from itrust.engines.passes import Summing as Summing
from itrust.engines.passes import Tally as Tally
from itrust.engines.passes import Totals as Totals
from itrust.engines.passes import Work as Work
from itrust.engines.passes import accumulate as accumulate
from itrust.engines.passes import accumulate_all as accumulate_all
from itrust.engines.passes import added as added
from itrust.engines.passes import available_threads as available_threads
from itrust.engines.passes import join as join
from itrust.engines.passes import one_blas_thread as one_blas_thread
from itrust.engines.passes import ordered_map as ordered_map
from itrust.engines.plan import Certificate as Certificate
from itrust.engines.plan import Engine as Engine
from itrust.engines.plan import KernelOutcome as KernelOutcome
from itrust.engines.plan import NullMoments as NullMoments
from itrust.engines.plan import Outcome as Outcome
from itrust.engines.plan import Part as Part
from itrust.engines.plan import Plan as Plan
from itrust.engines.plan import Purpose as Purpose
from itrust.engines.plan import Survey as Survey
from itrust.engines.plan import amount_of_work as amount_of_work
from itrust.engines.plan import columns_at_once as columns_at_once
from itrust.engines.plan import finite as finite
from itrust.engines.plan import run_together as run_together
from itrust.engines.plan import third_moments as third_moments
from itrust.engines.plan import weight_unit as weight_unit
from itrust.engines.plan import work_of_parts as work_of_parts
from itrust.engines.tiles import Auto as Auto
from itrust.engines.tiles import EngineChoice as EngineChoice
from itrust.engines.tiles import Tiles as Tiles
from itrust.engines.tiles import as_engine as as_engine
from itrust.engines.tiles import exact_features as exact_features

__all__ = [
    "Auto",
    "Certificate",
    "ClusterError",
    "Dask",
    "Engine",
    "Factor",
    "Tiles",
]
from itrust.engines.passes import rowwise_work as rowwise_work
