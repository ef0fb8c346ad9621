"""What would overturn it: how far selection, errors of labels or a tolerance would have to go."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from itrust.overturn.forms import RangePrecision
    from itrust.overturn.numbers import FlippedLabels, NumberRobustness, NumberTipping
    from itrust.overturn.numbers import number_robustness as number_robustness
    from itrust.overturn.results import KINDS as KINDS
    from itrust.overturn.results import PrudentResult, Robustness, Tipping
    from itrust.overturn.results import null_of as null_of
    from itrust.overturn.results import of_kind as of_kind
    from itrust.overturn.tipping import robustness
    from itrust.overturn.tipping import tipping_points as tipping_points
else:
    from itrust._core import loaded_later

    __getattr__ = loaded_later(__name__)

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
__dir__ = __all__.copy  # what tab completion offers
