"""Where, for whom and by how much: local bias, groups, slices, curves, maps."""

from itrust.bias.averages import (
    BEYOND_DOUBT,
    Averages,
    Moments,
    PlaceSet,
    PlacesPart,
    average,
    average_all,
    polynomial,
)
from itrust.bias.bands import (
    Band,
    MeanLaw,
    Shares,
    confidence_band,
    critical_value,
    null_band,
    zero_scores,
)
from itrust.bias.groups import (
    MAX_GROUPS,
    SIGN,
    GroupBias,
    GroupPlan,
    GroupTable,
    PartBias,
    PartTable,
    bias_groups,
    group_plan,
    near_end,
)
from itrust.bias.local import (
    MIN_NEIGHBOURS,
    HeldOut,
    LocalBias,
    beyond,
    local_bias,
    local_plan,
    measured_places,
    most_rows,
)
from itrust.bias.pictures import (
    ALL_ROWS,
    Axis,
    BiasCurve,
    BiasMap,
    CubicFit,
    CubicGroup,
    CurvePart,
    CurvePlan,
    Ground,
    MapPlan,
    bias_curve,
    bias_map,
    has_order,
    pictures_of,
)
from itrust.bias.redraws import Redraws, names_of
from itrust.bias.slices import (
    Searcher,
    Slice,
    SliceTable,
    bias_slices,
    halves_of,
    roundest,
    slice_plan,
    slices_of,
)
from itrust.bias.spreading import spreading_of
from itrust.bias.weights import Members, Neighbours, Weights, neighbour_kernel

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
