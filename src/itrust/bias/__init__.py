"""Where, for whom and by how much: local bias, groups, slices, curves, maps."""

from itrust.bias.axes import ALL_ROWS as ALL_ROWS
from itrust.bias.axes import Axis as Axis
from itrust.bias.axes import Ground as Ground
from itrust.bias.axes import biases_at as biases_at
from itrust.bias.axes import has_order as has_order
from itrust.bias.bands import Band
from itrust.bias.cubic import CubicFit, CubicGroup
from itrust.bias.curves import BiasCurve, CurvePart, bias_curve
from itrust.bias.curves import CurvePlan as CurvePlan
from itrust.bias.groups import MAX_GROUPS as MAX_GROUPS
from itrust.bias.groups import GroupBias, GroupTable, bias_groups
from itrust.bias.groups import GroupPlan as GroupPlan
from itrust.bias.groups import group_plan as group_plan
from itrust.bias.halves import beyond as beyond
from itrust.bias.halves import measured_places as measured_places
from itrust.bias.halves import most_rows as most_rows
from itrust.bias.local import MIN_NEIGHBOURS as MIN_NEIGHBOURS
from itrust.bias.local import HeldOut, LocalBias, local_bias
from itrust.bias.local import local_plan as local_plan
from itrust.bias.maps import BiasMap, bias_map
from itrust.bias.maps import MapPlan as MapPlan
from itrust.bias.neighbours import Neighbours as Neighbours
from itrust.bias.neighbours import neighbour_kernel as neighbour_kernel
from itrust.bias.parts import SIGN as SIGN
from itrust.bias.parts import PartBias, PartTable
from itrust.bias.parts import near_end as near_end
from itrust.bias.places import PlaceSet as PlaceSet
from itrust.bias.places import PlacesPart as PlacesPart
from itrust.bias.redraws import Redraws as Redraws
from itrust.bias.redraws import names_of as names_of
from itrust.bias.slices import Slice, SliceTable, bias_slices
from itrust.bias.slices import slice_plan as slice_plan
from itrust.bias.slices import slices_of as slices_of
from itrust.bias.smoothing import BEYOND_DOUBT as BEYOND_DOUBT
from itrust.bias.smoothing import Weights as Weights

__all__ = [
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
    "PartBias",
    "PartTable",
    "Slice",
    "SliceTable",
    "bias_curve",
    "bias_groups",
    "bias_map",
    "bias_slices",
    "local_bias",
]
__dir__ = __all__.copy  # what tab completion offers
