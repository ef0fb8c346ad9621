"""Everything in one go: the audit, its charts, its verdict, disclosure control, several models."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from itrust.auditing.audits import Audit, audit
    from itrust.auditing.charts import (
        Charts,
        CurveChart,
        CurveLine,
        HistogramChart,
        MapChart,
        MapSide,
        NullChart,
        ReliabilityLine,
    )
    from itrust.auditing.comparison import Comparison, Difference, ModelReport, compare
    from itrust.auditing.disclosure import MIN_CELL, Disclosure, Withheld
    from itrust.auditing.drifting import Change, ComparedValue, Drift, NotCompared, drift
    from itrust.auditing.gating import Asked as Asked
    from itrust.auditing.gating import Check, Gate, gate
    from itrust.auditing.margins import Margin
    from itrust.auditing.margins import as_margins as as_margins
    from itrust.auditing.multiclass.audits import MulticlassAudit
    from itrust.auditing.multiclass.comparison import ClassesComparison, ClassesReport
    from itrust.auditing.multiclass.disclosure import ClassesWithheld
    from itrust.auditing.multiclass.parts import FAMILY as FAMILY
    from itrust.auditing.multiclass.parts import (
        ClassesMissed,
        ClassesOverall,
        ClassPart,
        TopLabel,
    )
    from itrust.auditing.multiclass.taken import ClassMatrix, PairBias, PairGroup
    from itrust.auditing.overturning import Overturning, Untold
    from itrust.auditing.parts import Diagnosis, MeanBias, Missed, Overall, Provenance, Unknown
    from itrust.auditing.schemas import CLASSES_SCHEMA as CLASSES_SCHEMA
    from itrust.auditing.schemas import SCHEMA as SCHEMA
    from itrust.auditing.schemas import check_json, json_schema, read_json
    from itrust.auditing.stages import AuditStep as AuditStep
    from itrust.auditing.stages import Stage as Stage
    from itrust.auditing.verdict import BAD as BAD
    from itrust.auditing.verdict import FAIR as FAIR
    from itrust.auditing.verdict import GOOD as GOOD
    from itrust.auditing.verdict import OPEN as OPEN
    from itrust.auditing.verdict import TONES as TONES
    from itrust.auditing.verdict import ClassEvidence, Judgement, Verdict
    from itrust.auditing.verdict import Evidence as Evidence
    from itrust.auditing.verdict import ImpossibleLabels as ImpossibleLabels
    from itrust.auditing.verdict import Overlooked as Overlooked
    from itrust.auditing.verdict import PointBias as PointBias
    from itrust.auditing.verdict import PointCoordinate as PointCoordinate
    from itrust.auditing.verdict import Tone as Tone
    from itrust.auditing.verdict import tone_of as tone_of
else:
    from itrust._core import loaded_later

    __getattr__ = loaded_later(__name__)

__all__ = [
    "MIN_CELL",
    "Audit",
    "Change",
    "Charts",
    "Check",
    "ClassEvidence",
    "ClassMatrix",
    "ClassPart",
    "ClassesComparison",
    "ClassesMissed",
    "ClassesOverall",
    "ClassesReport",
    "ClassesWithheld",
    "ComparedValue",
    "Comparison",
    "CurveChart",
    "CurveLine",
    "Diagnosis",
    "Difference",
    "Disclosure",
    "Drift",
    "Gate",
    "HistogramChart",
    "Judgement",
    "MapChart",
    "MapSide",
    "Margin",
    "MeanBias",
    "Missed",
    "ModelReport",
    "MulticlassAudit",
    "NotCompared",
    "NullChart",
    "Overall",
    "Overturning",
    "PairBias",
    "PairGroup",
    "Provenance",
    "ReliabilityLine",
    "TopLabel",
    "Unknown",
    "Untold",
    "Verdict",
    "Withheld",
    "audit",
    "check_json",
    "compare",
    "drift",
    "gate",
    "json_schema",
    "read_json",
]
__dir__ = __all__.copy  # what tab completion offers
