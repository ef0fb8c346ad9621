"""Where, for whom and by how much: local bias, groups, slices, curves, maps."""

from itrust.bias.axes import ALL_ROWS, Axis, has_order
from itrust.bias.bands import Band
from itrust.bias.cubic import CubicFit, CubicGroup
from itrust.bias.curves import BiasCurve, CurvePart, bias_curve
from itrust.bias.groups import MAX_VALUES, GroupBias, GroupTable, bias_groups
from itrust.bias.local import MIN_NEIGHBOURS, HeldOut, LocalBias, local_bias
from itrust.bias.maps import BiasMap, bias_map
from itrust.bias.neighbours import Neighbours, neighbour_kernel
from itrust.bias.parts import SIGN, PartBias, PartTable
from itrust.bias.redraws import Redraws, checked_alpha, checked_reach, names_of
from itrust.bias.slices import Slice, SliceTable, bias_slices
from itrust.bias.smoothing import BEYOND_DOUBT, Weights

__all__ = [
    "ALL_ROWS",
    "BEYOND_DOUBT",
    "MAX_VALUES",
    "MIN_NEIGHBOURS",
    "SIGN",
    "Axis",
    "Band",
    "BiasCurve",
    "BiasMap",
    "CubicFit",
    "CubicGroup",
    "CurvePart",
    "GroupBias",
    "GroupTable",
    "HeldOut",
    "LocalBias",
    "Neighbours",
    "PartBias",
    "PartTable",
    "Redraws",
    "Slice",
    "SliceTable",
    "Weights",
    "bias_curve",
    "bias_groups",
    "bias_map",
    "bias_slices",
    "checked_alpha",
    "checked_reach",
    "has_order",
    "local_bias",
    "names_of",
    "neighbour_kernel",
]
