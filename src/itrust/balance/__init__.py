"""Are labelled rows like the population, and which weights make them so? Never looks at a label."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from itrust.balance.pairs import RowPair, balance_features, is_plain, pooled, shared_points
    from itrust.balance.resembling import at_hand, compare_rows, permutation_test, resemblance
    from itrust.balance.results import (
        PREDICTION,
        FeatureKind,
        Gap,
        Resemblance,
        RowDifference,
        disclosed_gaps,
        shares_of,
    )
    from itrust.balance.support import LookedAt
    from itrust.balance.weights import Balance, entropy_balance
else:
    from itrust._core import loaded_later

    __getattr__ = loaded_later(__name__)
