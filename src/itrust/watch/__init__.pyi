from itrust.watch.reports import REPORT_SCHEMA as REPORT_SCHEMA
from itrust.watch.reports import Waiting as Waiting
from itrust.watch.reports import WatchReport as WatchReport
from itrust.watch.reports import number_finding as number_finding
from itrust.watch.reports import watch_report as watch_report
from itrust.watch.results import BatchRecord as BatchRecord
from itrust.watch.results import NumberSoFar as NumberSoFar
from itrust.watch.results import Onset as Onset
from itrust.watch.results import Promise as Promise
from itrust.watch.results import Segment as Segment
from itrust.watch.results import WatchFinding as WatchFinding
from itrust.watch.state import text_of as text_of
from itrust.watch.watching import Watch as Watch

__all__ = [
    "BatchRecord",
    "NumberSoFar",
    "Onset",
    "Promise",
    "Segment",
    "Waiting",
    "Watch",
    "WatchFinding",
    "WatchReport",
    "number_finding",
    "watch_report",
]
