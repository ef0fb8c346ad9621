"""Functions of covariates: trends, levels, waves, ranks and products; their names and limits."""

from itrust.terms.functions import (
    Absent,
    Curve,
    Described,
    Features,
    Inside,
    Is,
    Power,
    Precision,
    Product,
    ProductName,
    Shape,
    Slope,
    Term,
    Wave,
    frequent_values,
    plain_features,
)
from itrust.terms.limits import (
    CHECKED_LEVELS,
    CLASS_GROUP_LEVELS,
    COLUMN_LEVELS,
    DIRECTION_LEVELS,
    GROUP_LEVELS,
    SEARCHED_LEVELS,
    SHOWN_LEVELS,
    WATCHED_CROSSED,
    WATCHED_LEVELS,
)
from itrust.terms.scales import (
    ColumnName,
    Reading,
    UnitScale,
    columns_by_name,
    fading,
    interpolated,
    read,
    scales_of,
)
