from itrust._core import Provenance as Provenance
from itrust.auditing.audits import Audit as Audit
from itrust.auditing.audits import audit as audit
from itrust.auditing.charts import Charts as Charts
from itrust.auditing.charts import CurveChart as CurveChart
from itrust.auditing.charts import CurveLine as CurveLine
from itrust.auditing.charts import HistogramChart as HistogramChart
from itrust.auditing.charts import MapChart as MapChart
from itrust.auditing.charts import MapSide as MapSide
from itrust.auditing.charts import NullChart as NullChart
from itrust.auditing.charts import ReliabilityLine as ReliabilityLine
from itrust.auditing.comparison import Comparison as Comparison
from itrust.auditing.comparison import Difference as Difference
from itrust.auditing.comparison import ModelReport as ModelReport
from itrust.auditing.comparison import compare as compare
from itrust.auditing.disclosure import Withheld as Withheld
from itrust.auditing.drifting import Change as Change
from itrust.auditing.drifting import Drift as Drift
from itrust.auditing.drifting import drift as drift
from itrust.auditing.gating import MARGINS as MARGINS
from itrust.auditing.gating import Asked as Asked
from itrust.auditing.gating import Check as Check
from itrust.auditing.gating import Gate as Gate
from itrust.auditing.gating import as_margins as as_margins
from itrust.auditing.gating import gate as gate
from itrust.auditing.gating import watch_checks as watch_checks
from itrust.auditing.overturning import NOT_REJECTED as NOT_REJECTED
from itrust.auditing.overturning import Overturning as Overturning
from itrust.auditing.pairs import ClassMatrix as ClassMatrix
from itrust.auditing.pairs import PairBias as PairBias
from itrust.auditing.pairs import PairGroup as PairGroup
from itrust.auditing.parts import FAMILY as FAMILY
from itrust.auditing.parts import Diagnosis as Diagnosis
from itrust.auditing.parts import GroupPower as GroupPower
from itrust.auditing.parts import MeanBias as MeanBias
from itrust.auditing.parts import Missed as Missed
from itrust.auditing.parts import OutcomePart as OutcomePart
from itrust.auditing.parts import Overall as Overall
from itrust.auditing.schemas import SCHEMA as SCHEMA
from itrust.auditing.schemas import check_json as check_json
from itrust.auditing.schemas import json_schema as json_schema
from itrust.auditing.schemas import read_json as read_json
from itrust.auditing.verdict import ClassEvidence as ClassEvidence
from itrust.auditing.verdict import Evidence as Evidence
from itrust.auditing.verdict import ImpossibleLabels as ImpossibleLabels
from itrust.auditing.verdict import Judgement as Judgement
from itrust.auditing.verdict import Overlooked as Overlooked
from itrust.auditing.verdict import Verdict as Verdict
from itrust.auditing.verdict import tone_of as tone_of

__all__ = [
    "Audit",
    "Change",
    "Charts",
    "Check",
    "ClassEvidence",
    "ClassMatrix",
    "Comparison",
    "CurveChart",
    "CurveLine",
    "Diagnosis",
    "Difference",
    "Drift",
    "Gate",
    "GroupPower",
    "HistogramChart",
    "Judgement",
    "MapChart",
    "MapSide",
    "MeanBias",
    "Missed",
    "ModelReport",
    "NullChart",
    "OutcomePart",
    "Overall",
    "Overturning",
    "PairBias",
    "PairGroup",
    "Provenance",
    "ReliabilityLine",
    "Verdict",
    "Withheld",
    "audit",
    "check_json",
    "compare",
    "drift",
    "gate",
    "json_schema",
    "read_json",
    "watch_checks",
]
