"""Results as HTML in a notebook: everything is shown, nothing from the file becomes markup."""

import base64
import re
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import itrust as it
from itrust._core import rounded
from itrust.auditing import Audit
from itrust.render.document import LIGHT, LONG, MAX_ROWS, Document, Sentence, Table, html

mpl.use("Agg")
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def audit() -> Audit:
    rng = np.random.default_rng(2)
    n = 600
    p = rng.uniform(0.1, 0.9, n)
    x = {EVIL: rng.choice([EVIL, "other"], n), "age": rng.integers(20, 80, n)}
    sample = it.Sample(rng.random(n) < np.clip(p + 0.3 * (x["age"] > 50), 0, 1), p, x)
    return it.audit(sample, ["mean(age)"], draws=99, rng=0)


def test_results_are_rich_html_without_markup_from_the_file(audit):
    bare = it.klce_test(audit.sample, kernel=it.kernels.LocalKernel(), draws=99, rng=0)
    both = it.compare({EVIL: audit.sample, "same": audit.sample}, ["mean(age)"], draws=99, rng=0)
    diagnosis = audit.diagnosis
    results = [audit, audit.test, bare, both, audit.tasks[0]]
    for result in [*results, diagnosis.groups, diagnosis.slices, diagnosis.bias]:
        made = result._repr_html_()
        assert made.startswith("<div")
        assert "<script" not in made
        assert "<table" in made
        assert made.count("<div") == made.count("</div>")


def test_the_view_has_the_picture_and_leaves_no_figure_open(audit):
    plt.close("all")
    made = audit.tasks[0]._repr_html_()
    code = re.search(r'src="data:image/png;base64,([^"]+)"', made)[1]
    image = base64.b64decode(code)
    assert image.startswith(b"\x89PNG")
    assert len(image) < 30_000
    assert plt.get_fignums() == []


def test_without_matplotlib_the_view_has_no_picture(audit, monkeypatch):
    monkeypatch.setitem(sys.modules, "itrust.render.figures", None)
    made = audit.tasks[0]._repr_html_()
    assert "<img" not in made
    assert "<table" in made


def test_what_cannot_be_drawn_has_no_picture(audit):
    exact = it.klce_test(audit.sample, kernel=it.kernels.LocalKernel(), null=it.nulls.Hoeffding())
    assert "<img" not in exact._repr_html_()


def test_results_are_short_in_one_line(audit):
    diagnosis = audit.diagnosis
    for result in (
        *(audit, audit.test, audit.test.findings[0], audit.tasks[0], audit.overall.curve),
        *(audit.charts, diagnosis.bias, diagnosis.groups, diagnosis.slices, diagnosis.groups[0]),
    ):
        assert re.fullmatch(r"<\w+: .{1,150}>", repr(result)), repr(result)


def test_the_verdict_and_the_tasks_are_told(audit):
    made = audit._repr_html_()
    assert f"VERDICT  {audit.verdict}" in made
    assert LIGHT[audit.verdict.tone] in made
    assert "mean age among positives" in made
    task = audit.tasks[0]
    assert rounded(task.bias, task.lower, task.upper, "+") in made
    assert task.finding in made
    assert audit.summary.split(";")[0] in made


def test_long_tables_and_texts_are_cut():
    made = html(Document("", [Table(["a"], [[str(k)] for k in range(100)])]))
    assert made.count("<tr>") == 1 + MAX_ROWS
    assert "and 40 more" in made
    assert html(Document("", [Sentence("x" * 10_000)])).count("x" * LONG) == 0
    assert "<table" not in html(Document("", [Table(["a"], [])]))
