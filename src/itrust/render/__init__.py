"""Sentences and pictures: text, notebook, page, Markdown, JUnit, figures."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from itrust.render import notebook as notebook
    from itrust.render import page as page
    from itrust.render import text as text
    from itrust.render.document import Document as Document
    from itrust.render.document import terminal as terminal
    from itrust.render.junit import junit_xml as junit_xml
    from itrust.render.junit import watch_junit_xml as watch_junit_xml
    from itrust.render.markdown import summary_markdown as summary_markdown
    from itrust.render.markdown import watch_markdown as watch_markdown
    from itrust.render.notebook import as_html as as_html
    from itrust.render.notebook import in_notebook as in_notebook
    from itrust.render.showing import as_figure as as_figure
    from itrust.render.text import NARROW as NARROW
    from itrust.render.text import about_findings as about_findings
    from itrust.render.text import action_of as action_of
    from itrust.render.text import as_text as as_text
    from itrust.render.text import check_lines as check_lines
    from itrust.render.text import class_words as class_words
    from itrust.render.text import classes_missed_words as classes_missed_words
    from itrust.render.text import classes_summary as classes_summary
    from itrust.render.text import document_of as document_of
    from itrust.render.text import drift_sentence as drift_sentence
    from itrust.render.text import estimate_facts as estimate_facts
    from itrust.render.text import estimates_told as estimates_told
    from itrust.render.text import evidence_words as evidence_words
    from itrust.render.text import failure_words as failure_words
    from itrust.render.text import fitted as fitted
    from itrust.render.text import gate_words as gate_words
    from itrust.render.text import overturning_facts as overturning_facts
    from itrust.render.text import resemblance_warnings as resemblance_warnings
    from itrust.render.text import sections as sections
    from itrust.render.text import seen as seen
    from itrust.render.text import sentence_of as sentence_of
    from itrust.render.text import step_words as step_words
    from itrust.render.text import summary_of as summary_of
    from itrust.render.text import task_line as task_line
    from itrust.render.text import task_sentence as task_sentence
    from itrust.render.text import task_title as task_title
    from itrust.render.text import told as told
    from itrust.render.text import untold_facts as untold_facts
    from itrust.render.text import validation_sentence as validation_sentence
    from itrust.render.text import verdict_line as verdict_line
    from itrust.render.text import watch_gate_words as watch_gate_words
    from itrust.render.text import watch_headline as watch_headline
    from itrust.render.text import watch_told as watch_told
    from itrust.render.text import watch_words as watch_words
else:
    from itrust._core import loaded_later

    __getattr__ = loaded_later(__name__)

__all__ = []
__dir__ = __all__.copy  # what tab completion offers
