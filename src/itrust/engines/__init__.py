"""Engines that compute e'Pe for the data and many redraws at once."""

from itrust._core import ClusterError
from itrust.engines.auto import Auto
from itrust.engines.auto import EngineChoice as EngineChoice
from itrust.engines.auto import as_engine as as_engine
from itrust.engines.certificate import Certificate
from itrust.engines.dask import Dask
from itrust.engines.dask_classes import class_survey as class_survey
from itrust.engines.dask_classes import class_total as class_total
from itrust.engines.dask_classes import partitions_of as partitions_of
from itrust.engines.factor import Factor
from itrust.engines.landmarks import make_plan as make_plan
from itrust.engines.lowrank import LowRankPlan as LowRankPlan
from itrust.engines.moments import NullMoments as NullMoments
from itrust.engines.moments import third_moments as third_moments
from itrust.engines.outcome import KernelOutcome as KernelOutcome
from itrust.engines.outcome import Outcome as Outcome
from itrust.engines.outcome import finite as finite
from itrust.engines.passes import Additive as Additive
from itrust.engines.passes import Drawing as Drawing
from itrust.engines.passes import Job as Job
from itrust.engines.passes import Tally as Tally
from itrust.engines.passes import Totals as Totals
from itrust.engines.passes import Work as Work
from itrust.engines.passes import accumulate_all as accumulate_all
from itrust.engines.plan import Plan as Plan
from itrust.engines.plan import Purpose as Purpose
from itrust.engines.plan import amount_of_work as amount_of_work
from itrust.engines.plan import columns_at_once as columns_at_once
from itrust.engines.products import Drawn as Drawn
from itrust.engines.products import Products as Products
from itrust.engines.products import Scratch as Scratch
from itrust.engines.products import join as join
from itrust.engines.protocol import Engine
from itrust.engines.rowwise import RowwiseWork as RowwiseWork
from itrust.engines.shared_kernel import SharedKernel as SharedKernel
from itrust.engines.shared_kernel import shared_kernel as shared_kernel
from itrust.engines.sharing import Part as Part
from itrust.engines.sharing import run_together as run_together
from itrust.engines.sharing import work_of_parts as work_of_parts
from itrust.engines.stream import ordered_map as ordered_map
from itrust.engines.survey import Survey as Survey
from itrust.engines.survey import weight_unit as weight_unit
from itrust.engines.tally import tally_notes as tally_notes
from itrust.engines.threads import available_threads as available_threads
from itrust.engines.threads import one_blas_thread as one_blas_thread
from itrust.engines.tiles import Tiles

__all__ = [
    "Auto",
    "Certificate",
    "ClusterError",
    "Dask",
    "Engine",
    "Factor",
    "Tiles",
]
__dir__ = __all__.copy  # what tab completion offers
