from itrust.bias.averages import PlacesPart as PlacesPart
from itrust.bias.averages import Question as Question
from itrust.bias.averages import Redraws as Redraws
from itrust.bias.averages import average as average
from itrust.bias.averages import names_of as names_of
from itrust.bias.averages import spreading_of as spreading_of
from itrust.bias.bands import BEYOND_DOUBT as BEYOND_DOUBT
from itrust.bias.bands import Averages as Averages
from itrust.bias.bands import Band as Band
from itrust.bias.bands import confidence_band as confidence_band
from itrust.bias.bands import critical_value as critical_value
from itrust.bias.bands import null_band as null_band
from itrust.bias.bands import polynomial as polynomial
from itrust.bias.bands import zero_scores as zero_scores
from itrust.bias.groups import MAX_GROUPS as MAX_GROUPS
from itrust.bias.groups import SIGN as SIGN
from itrust.bias.groups import GroupBias as GroupBias
from itrust.bias.groups import GroupTable as GroupTable
from itrust.bias.groups import PartBias as PartBias
from itrust.bias.groups import PartTable as PartTable
from itrust.bias.groups import bias_groups as bias_groups
from itrust.bias.groups import group_plan as group_plan
from itrust.bias.groups import near_end as near_end
from itrust.bias.local import MIN_NEIGHBOURS as MIN_NEIGHBOURS
from itrust.bias.local import LocalBias as LocalBias
from itrust.bias.local import local_bias as local_bias
from itrust.bias.local import local_plan as local_plan
from itrust.bias.pictures import ALL_ROWS as ALL_ROWS
from itrust.bias.pictures import Axis as Axis
from itrust.bias.pictures import BiasCurve as BiasCurve
from itrust.bias.pictures import BiasMap as BiasMap
from itrust.bias.pictures import CurvePart as CurvePart
from itrust.bias.pictures import bias_curve as bias_curve
from itrust.bias.pictures import bias_map as bias_map
from itrust.bias.pictures import curve_plan as curve_plan
from itrust.bias.pictures import has_order as has_order
from itrust.bias.pictures import map_plan as map_plan
from itrust.bias.pictures import pictures_of as pictures_of
from itrust.bias.pictures import shares_known as shares_known
from itrust.bias.slices import Slice as Slice
from itrust.bias.slices import SliceTable as SliceTable
from itrust.bias.slices import bias_slices as bias_slices
from itrust.bias.slices import slices_of as slices_of
from itrust.bias.weights import Members as Members
from itrust.bias.weights import Neighbours as Neighbours
from itrust.bias.weights import Weights as Weights
from itrust.bias.weights import neighbour_kernel as neighbour_kernel

__all__ = [
    "Band",
    "BiasCurve",
    "BiasMap",
    "CurvePart",
    "GroupBias",
    "GroupTable",
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
