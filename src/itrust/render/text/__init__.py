"""Results as plain text of any width, one module for each question."""

from itrust.render.showing import WIDTH, as_text
from itrust.render.text import (
    auditing,
    balance,
    bias,
    calibration,
    estimates,
    multiclass,
    recalibrate,
    scores,
    tasks,
    validation,
)
from itrust.render.text.auditing import (
    UNKNOWN,
    about_findings,
    by_cluster,
    check_lines,
    failure_words,
    gate_words,
    judged_on,
    numbers_of,
    sections,
    seen,
    summary_of,
    task_line,
    told,
    verdict_line,
)
from itrust.render.text.balance import resemblance_warnings
from itrust.render.text.bias import rows_of
from itrust.render.text.estimates import estimate_facts, estimates_told
from itrust.render.text.layout import NARROW, fitted
from itrust.render.text.multiclass import (
    class_check_lines,
    class_found,
    classes_judged_on,
    classes_missed_words,
    classes_notes,
    classes_sections,
    classes_summary,
    pair_words,
    place_words,
)
from itrust.render.text.stages import step_words
from itrust.render.text.tasks import task_sentence, task_title
from itrust.render.text.validation import validation_sentence
from itrust.render.text.verdict import (
    action_of,
    class_words,
    evidence_words,
    in_words,
    sentence_of,
)

__all__ = [
    "NARROW",
    "UNKNOWN",
    "WIDTH",
    "about_findings",
    "action_of",
    "as_text",
    "auditing",
    "balance",
    "bias",
    "by_cluster",
    "calibration",
    "check_lines",
    "class_check_lines",
    "class_found",
    "class_words",
    "classes_judged_on",
    "classes_missed_words",
    "classes_notes",
    "classes_sections",
    "classes_summary",
    "estimate_facts",
    "estimates",
    "estimates_told",
    "evidence_words",
    "failure_words",
    "fitted",
    "gate_words",
    "in_words",
    "judged_on",
    "multiclass",
    "numbers_of",
    "pair_words",
    "place_words",
    "recalibrate",
    "resemblance_warnings",
    "rows_of",
    "scores",
    "sections",
    "seen",
    "sentence_of",
    "step_words",
    "summary_of",
    "task_line",
    "task_sentence",
    "task_title",
    "tasks",
    "told",
    "validation",
    "validation_sentence",
    "verdict_line",
]
