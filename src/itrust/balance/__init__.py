"""Are labelled rows like the population, and which weights make them so? Never looks at a label."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from itrust.balance.features import PREDICTION as PREDICTION
    from itrust.balance.features import Feature as Feature
    from itrust.balance.features import Features as Features
    from itrust.balance.features import shared_points as shared_points
    from itrust.balance.resembling import LookedAt as LookedAt
    from itrust.balance.resembling import RowPair as RowPair
    from itrust.balance.resembling import at_hand as at_hand
    from itrust.balance.resembling import compare_rows as compare_rows
    from itrust.balance.resembling import looked_for_support as looked_for_support
    from itrust.balance.resembling import resemblance
    from itrust.balance.results import FeatureKind, Gap, Resemblance, RowDifference
    from itrust.balance.results import disclosed_gaps as disclosed_gaps
    from itrust.balance.results import shares_of as shares_of
    from itrust.balance.support import LabelledSupport as LabelledSupport
    from itrust.balance.weights import Balance, entropy_balance
else:
    from itrust._core import loaded_later

    __getattr__ = loaded_later(__name__)

__all__ = [
    "Balance",
    "FeatureKind",
    "Gap",
    "Resemblance",
    "RowDifference",
    "entropy_balance",
    "resemblance",
]
__dir__ = __all__.copy  # what tab completion offers
