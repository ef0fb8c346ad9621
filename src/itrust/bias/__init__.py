"""Where, for whom and by how much: local bias, groups, slices, curves."""

from itrust.bias.curves import (
    ALL_ROWS,
    Axis,
    BiasCurve,
    BiasMap,
    CubicFit,
    CurvePart,
    bias_curve,
    bias_map,
    has_order,
)
from itrust.bias.groups import (
    MAX_VALUES,
    SIGN,
    GroupBias,
    GroupTable,
    bias_groups,
    checked_reach,
    names_of,
    rowwise_null,
)
from itrust.bias.local import FEWEST, HeldOut, LocalBias, local_bias
from itrust.bias.neighbours import Neighbours, neighbour_kernel
from itrust.bias.slices import Slice, SliceTable, bias_slices
from itrust.bias.smoothing import BEYOND_DOUBT, Weights

__all__ = [
    "ALL_ROWS",
    "BEYOND_DOUBT",
    "FEWEST",
    "MAX_VALUES",
    "SIGN",
    "Axis",
    "BiasCurve",
    "BiasMap",
    "CubicFit",
    "CurvePart",
    "GroupBias",
    "GroupTable",
    "HeldOut",
    "LocalBias",
    "Neighbours",
    "Slice",
    "SliceTable",
    "Weights",
    "bias_curve",
    "bias_groups",
    "bias_map",
    "bias_slices",
    "checked_reach",
    "has_order",
    "local_bias",
    "names_of",
    "neighbour_kernel",
    "rowwise_null",
]
