"""Everything in one go: the audit, its charts, its verdict, disclosure control, several models."""

from itrust.auditing.audits import Audit, audit
from itrust.auditing.charts import Charts, CurveChart, CurveLine, MapChart, MapSide, NullChart
from itrust.auditing.comparison import Comparison, Difference, ModelReport, compare
from itrust.auditing.disclosure import MIN_CELL, Disclosure, Withheld
from itrust.auditing.gate import Check, Gate, gate
from itrust.auditing.parts import Diagnosis, Missed, Overall, Provenance
from itrust.auditing.verdict import (
    BAD,
    FAIR,
    GOOD,
    OPEN,
    TONES,
    Coordinate,
    Evidence,
    ImpossibleLabels,
    Judgement,
    Overlooked,
    PointBias,
    Tone,
    Verdict,
    tone_of,
)

__all__ = [
    "BAD",
    "FAIR",
    "GOOD",
    "MIN_CELL",
    "OPEN",
    "TONES",
    "Audit",
    "Charts",
    "Check",
    "Comparison",
    "Coordinate",
    "CurveChart",
    "CurveLine",
    "Diagnosis",
    "Difference",
    "Disclosure",
    "Evidence",
    "Gate",
    "ImpossibleLabels",
    "Judgement",
    "MapChart",
    "MapSide",
    "Missed",
    "ModelReport",
    "NullChart",
    "Overall",
    "Overlooked",
    "PointBias",
    "Provenance",
    "Tone",
    "Verdict",
    "Withheld",
    "audit",
    "compare",
    "gate",
    "tone_of",
]
