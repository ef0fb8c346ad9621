"""Are the probabilities still calibrated? The same question with every batch, at any time."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from itrust.watch.reports import REPORT_SCHEMA as REPORT_SCHEMA
    from itrust.watch.reports import (
        Waiting,
        WatchCondition,
        WatchGate,
        WatchProvenance,
        WatchReport,
        number_finding,
        watch_gate,
        watch_report,
    )
    from itrust.watch.results import (
        BatchRecord,
        LevelSoFar,
        NumberSoFar,
        Onset,
        Promise,
        RaisedAlarm,
        Segment,
        WatchFinding,
        levels_so_far,
    )
    from itrust.watch.state import text_of as text_of
    from itrust.watch.watching import Watch
else:
    from itrust._core import loaded_later

    __getattr__ = loaded_later(__name__)

__all__ = [
    "BatchRecord",
    "LevelSoFar",
    "NumberSoFar",
    "Onset",
    "Promise",
    "RaisedAlarm",
    "Segment",
    "Waiting",
    "Watch",
    "WatchCondition",
    "WatchFinding",
    "WatchGate",
    "WatchProvenance",
    "WatchReport",
    "levels_so_far",
    "number_finding",
    "watch_gate",
    "watch_report",
]
__dir__ = __all__.copy  # what tab completion offers
