"""Results as plain text of any width, one module for each question."""

from itrust.render.text import auditing, recalibrate, scores
from itrust.render.text.auditing import sections, seen, task_line, told
from itrust.render.text.layout import NARROW, WIDTH, fitted, wrapped

__all__ = [
    "NARROW",
    "WIDTH",
    "auditing",
    "fitted",
    "recalibrate",
    "scores",
    "sections",
    "seen",
    "task_line",
    "told",
    "wrapped",
]
