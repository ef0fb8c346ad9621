"""Are labelled rows like the population, and which weights make them so? Never looks at a label."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from itrust.balance.resembling import (
        LookedAt,
        at_hand,
        compare_rows,
        permutation_test,
        resemblance,
    )
    from itrust.balance.results import (
        PREDICTION,
        FeatureKind,
        Gap,
        Resemblance,
        RowDifference,
        disclosed_gaps,
        shares_of,
    )
    from itrust.balance.weights import (
        Balance,
        RowPair,
        balance_features,
        entropy_balance,
        is_plain,
        pooled,
        shared_points,
    )
else:
    from itrust._core import loaded_later

    __getattr__ = loaded_later(__name__)
