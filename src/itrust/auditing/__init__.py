"""Everything in one go: the audit, its charts, its verdict, disclosure control, several models."""

from itrust.auditing.audits import Audit, Confidence, Diagnosis, Reliance, audit
from itrust.auditing.charts import Charts, null_picture
from itrust.auditing.comparison import Comparison, ModelReport, compare
from itrust.auditing.disclosure import MIN_CELL, Disclosure, covariate_of, suppressed
from itrust.auditing.verdict import (
    BELOW_MATERIAL,
    NO_EVIDENCE,
    NOT_ENOUGH,
    SIZE_UNCLEAR,
    UNTRUSTWORTHY,
    Verdict,
)

__all__ = [
    "BELOW_MATERIAL",
    "MIN_CELL",
    "NOT_ENOUGH",
    "NO_EVIDENCE",
    "SIZE_UNCLEAR",
    "UNTRUSTWORTHY",
    "Audit",
    "Charts",
    "Comparison",
    "Confidence",
    "Diagnosis",
    "Disclosure",
    "ModelReport",
    "Reliance",
    "Verdict",
    "audit",
    "compare",
    "covariate_of",
    "null_picture",
    "suppressed",
]
