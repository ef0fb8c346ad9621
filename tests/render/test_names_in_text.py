"""Names with line ends and tabs are spelt out in plain text and in Markdown, as on the page."""

import html

import pytest

from hostile_names import renamed, stand_in_audit
from itrust.auditing import Audit
from itrust.render import as_text, summary_markdown


@pytest.fixture(scope="module")
def broken() -> Audit:
    """An audit in which every name has a line end and a tab."""
    return renamed(stand_in_audit(charts=False), lambda name: f"{name[2:-2]}\n\tx")


def test_the_terminal_spells_names_out(broken):
    text = as_text(broken, 500)
    for name in ("number0", "category1", "level11", "task0"):
        assert rf"{name}\n\tx" in text, name
        assert f"{name} " not in text
    assert "\t" not in text


def test_tables_of_models_and_methods_keep_a_line_for_each(broken):
    for table, kind in ((broken.comparison, "model"), (broken.recalibration, "method")):
        text = as_text(table, 500)
        assert rf"{kind}1\n\tx  " in text
        assert "\t" not in text
        table_text = next(part for part in text.split("\n\n") if " Brier " in part)
        head, *rows = table_text.splitlines()
        assert {len(row) for row in rows} == {len(head)}


def test_markdown_spells_names_out(broken):
    text = html.unescape(summary_markdown(broken, "homes\n.csv"))
    for name in ("number0", "category1", "level11", "task0"):
        assert rf"{name}\n\tx" in text, name
        assert f"{name} " not in text
    assert r"rows of homes\n.csv" in text
