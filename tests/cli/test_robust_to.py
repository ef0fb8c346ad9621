"""`itrust audit --gate --robust-to`: margins that evidence has to survive."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import itrust as it
from shell import invoke

COLUMNS = ["--label", "default", "--prob", "p", "--on", "age,income", "--draws", "79"]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    sample = it.simulate.credit_book(1_500, rng=2, selection=2.2).sample
    x = {name: sample.column(name).values for name in ("age", "income")}
    rows = {"default": sample.y.astype(int), "p": sample.p, **x, "unit": np.arange(sample.n) // 3}
    place = tmp_path_factory.mktemp("book") / "book.csv"
    pa.csv.write_csv(pa.table(rows), place)
    return str(place)


def test_the_gate_asks_for_a_margin(book, tmp_path):
    files = ["--json", str(tmp_path / "a.json"), "--junit", str(tmp_path / "a.xml")]
    closed = invoke("audit", book, *COLUMNS, "--gate", "--robust-to", "odds:1.05", *files)
    assert closed.exit_code == 1
    assert "also with odds off by a factor of 1.05" in " ".join(closed.stderr.split())
    assert "<failure" in (tmp_path / "a.xml").read_text()
    facts = json.loads((tmp_path / "a.json").read_text())
    point = facts["robustness"]["violations"][0]["point"]
    assert 1.05 < point < 2.2
    beyond = ["--robust-to", "label-error:0.01,odds:3", "--summary", str(tmp_path / "a.md")]
    opened = invoke("audit", book, *COLUMNS, "--gate", *beyond, *files)
    assert opened.exit_code == 0
    assert "odds off by a factor of 3 could explain that" in " ".join(opened.stderr.split())
    assert "<failure" not in (tmp_path / "a.xml").read_text()
    assert "gate open" in (tmp_path / "a.md").read_text()
    assert "What would overturn this" in opened.stdout


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--robust-to", "odds:1.2"], "is a margin of the gate"),
        (["--gate", "--robust-to", "odds"], "takes a name and a size"),
        (["--gate", "--robust-to", "odds:many"], "takes a name and a size"),
        (["--gate", "--robust-to", "odds:inf"], "odds must be above 1, not inf"),
        (["--gate", "--robust-to", "odds:0.9"], "odds must be above 1"),
        (["--gate", "--robust-to", "odd:1.2"], "did you mean 'odds'?"),
        (["--gate", "--robust-to", "odds:1.2,odds:1.3"], "twice"),
        (["--gate", "--robust-to", "odds:1.2", "--no-robustness"], "--no-robustness leaves out"),
        (["--gate", "--robust-to", "odds:1.2", "--cluster", "unit"], "needs independent rows"),
    ],
)
def test_nonsense_is_refused_before_anything_is_read(book, options, says):
    found = invoke("audit", book, *COLUMNS, *options)
    assert found.exit_code == 2
    assert says in " ".join(found.stderr.split())
    assert "Traceback" not in found.stderr


def test_what_would_overturn_it_can_be_left_out(book):
    found = invoke("audit", book, *COLUMNS, "--no-robustness")
    assert found.exit_code == 0
    assert "What would overturn this" not in found.stdout
