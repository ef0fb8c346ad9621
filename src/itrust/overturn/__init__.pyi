from itrust.overturn.forms import RangePrecision as RangePrecision
from itrust.overturn.numbers import FlippedLabels as FlippedLabels
from itrust.overturn.numbers import NumberRobustness as NumberRobustness
from itrust.overturn.numbers import NumberTipping as NumberTipping
from itrust.overturn.numbers import number_robustness as number_robustness
from itrust.overturn.results import KINDS as KINDS
from itrust.overturn.results import PrudentResult as PrudentResult
from itrust.overturn.results import Robustness as Robustness
from itrust.overturn.results import Tipping as Tipping
from itrust.overturn.results import Violation as Violation
from itrust.overturn.results import of_kind as of_kind
from itrust.overturn.tipping import robustness as robustness
from itrust.overturn.tipping import tipping_points as tipping_points

__all__ = [
    "FlippedLabels",
    "NumberRobustness",
    "NumberTipping",
    "PrudentResult",
    "RangePrecision",
    "Robustness",
    "Tipping",
    "robustness",
]
