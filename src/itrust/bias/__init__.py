"""Where, for whom and by how much: local bias, groups, slices, curves, maps."""

from itrust.bias.averages import (
    PlaceSet,
    PlacesPart,
    Question,
    Redraws,
    average,
    names_of,
    spreading_of,
)
from itrust.bias.bands import (
    BEYOND_DOUBT,
    Averages,
    Band,
    MeanLaw,
    Moments,
    Shares,
    confidence_band,
    critical_value,
    null_band,
    polynomial,
    zero_scores,
)
from itrust.bias.groups import (
    MAX_GROUPS,
    SIGN,
    GroupBias,
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
    Ground,
    PicturePlan,
    bias_curve,
    bias_map,
    curve_plan,
    has_order,
    map_plan,
    pictures_of,
)
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
