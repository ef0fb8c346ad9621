"""Engines that compute e'Pe for the data and many redraws at once."""

from itrust.engines.auto import Auto, EngineChoice, as_engine
from itrust.engines.certificate import Certificate
from itrust.engines.dask import Dask
from itrust.engines.factor import Factor
from itrust.engines.moments import NullMoments, third_moments
from itrust.engines.outcome import KernelOutcome, Outcome, finite
from itrust.engines.passes import Additive, Drawing, Drawn, Products, Tally, Work
from itrust.engines.plan import Plan, Purpose, amount_of_work, columns_at_once
from itrust.engines.protocol import Engine
from itrust.engines.stream import ordered_map
from itrust.engines.survey import Survey, weight_unit
from itrust.engines.tally import tally_notes
from itrust.engines.threads import available_threads, one_blas_thread
from itrust.engines.tiles import Tiles

__all__ = [
    "Additive",
    "Auto",
    "Certificate",
    "Dask",
    "Drawing",
    "Drawn",
    "Engine",
    "EngineChoice",
    "Factor",
    "KernelOutcome",
    "NullMoments",
    "Outcome",
    "Plan",
    "Products",
    "Purpose",
    "Survey",
    "Tally",
    "Tiles",
    "Work",
    "amount_of_work",
    "as_engine",
    "available_threads",
    "columns_at_once",
    "finite",
    "one_blas_thread",
    "ordered_map",
    "tally_notes",
    "third_moments",
    "weight_unit",
]
