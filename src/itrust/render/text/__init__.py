"""Results as plain text of any width, one module for each question."""

from itrust.render.showing import WIDTH
from itrust.render.text import auditing, bias, calibration, recalibrate, scores, tasks
from itrust.render.text.auditing import UNKNOWN, check_lines, sections, seen, task_line, told
from itrust.render.text.layout import NARROW, fitted
from itrust.render.text.verdict import evidence_words, in_words, sentence_of

__all__ = [
    "NARROW",
    "UNKNOWN",
    "WIDTH",
    "auditing",
    "bias",
    "calibration",
    "check_lines",
    "evidence_words",
    "fitted",
    "in_words",
    "recalibrate",
    "scores",
    "sections",
    "seen",
    "sentence_of",
    "task_line",
    "tasks",
    "told",
]
