"""What is said about wrong input does not wait for what the work would need."""

import subprocess
import sys

import pytest

HEAVY = ("scipy", "sklearn", "matplotlib", "rich", "jinja2")
EVERYTHING = ("numpy", "pyarrow", "narwhals", "pandas", *HEAVY)
CODE = """
import sys
from itrust.cli import app
for args in {runs!r}:
    code = app._code(args)
    print("\\n>", code, *(m for m in {watched!r} if m in sys.modules))
"""


def loaded(folder, *runs, watched=HEAVY):
    """Exit codes of commands that follow each other, and which modules are there after each."""
    code = CODE.format(runs=runs, watched=watched)
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    return [line[2:] for line in found.stdout.splitlines() if line.startswith("> ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("homes")
    rows = [f"{k % 2},{0.3 + 0.01 * (k % 40)},{20 + k}" for k in range(40)]
    (made / "homes.csv").write_text("\n".join(["y,p,age", *rows]) + "\n")
    (made / "above.csv").write_text("\n".join(["y,p,age", "1,1.2,30", *rows]) + "\n")
    return made


def test_help_and_wrong_options_load_nothing_heavy(folder):
    runs = [["--help"], ["audit", "--help"], ["--version"], ["audit", "homes.csv", "--onn"]]
    assert loaded(folder, *runs, watched=EVERYTHING) == ["0", "0", "0", "2"]


COLUMNS = ["--label", "y", "--prob", "p"]


def test_wrong_columns_and_tasks_are_told_before_the_heavy_part_is_loaded(folder):
    runs = [
        ["tasks", "mean(age)"],
        ["audit", "none.csv", "--on", "age"],
        ["audit", "homes.csv", *COLUMNS, "--on", "agee"],
        ["audit", "homes.csv", *COLUMNS, "--on", "age", "--task", "men(age)"],
        ["audit", "homes.csv", *COLUMNS, "--on", "age", "--task", "mean(agee)"],
        ["audit", "above.csv", *COLUMNS, "--on", "age"],
        ["estimate", "homes.csv", "homes.csv", *COLUMNS, "--on", "age"],
        ["estimate", "homes.csv", "homes.csv", *COLUMNS, "--on", "agee", "--task", "mean(age)"],
    ]
    assert loaded(folder, *runs) == ["0", *["2"] * 7]


@pytest.mark.slow
def test_an_audit_without_a_page_needs_no_scikit_learn(folder):
    run = ["audit", "homes.csv", *COLUMNS, "--on", "age", "--draws", "79"]
    assert loaded(folder, run, watched=("sklearn", "matplotlib", "jinja2")) == ["0"]


WHOLE = """
import gc, sys
from itrust.__main__ import main
sys.argv = ["itrust", *{run!r}]
try:
    main()
except SystemExit as leaving:
    print("\\n>", leaving.code, gc.isenabled(), *(m for m in {watched!r} if m in sys.modules))
import pandas, pyarrow
print(">", pyarrow.table({{"a": [1]}}).to_pandas().a.tolist())
"""


def test_the_command_loads_neither_pandas_nor_the_parts_of_scipy_that_take_long(folder):
    run = ["audit", "homes.csv", *COLUMNS, "--on", "age", "--draws", "79", "--report", "page.html"]
    run.append("--no-validation")  # whose isotonic regression is that of scipy.optimize
    watched = ("pandas", "scipy.stats", "scipy.optimize", "scipy.spatial")
    code = WHOLE.format(run=run, watched=watched)
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    told = [line[2:] for line in found.stdout.splitlines() if line.startswith("> ")]
    assert told[0] == "0 True"
    assert told[1] == "[1]"


def test_import_and_help_load_nothing_heavy():
    """What costs time is loading, and modules can be counted on a busy machine."""
    shown = "print(*(name for name in {!r} if name in sys.modules), len(sys.modules))"
    for code in ("import itrust", "import itrust.__main__, itrust.cli.command"):
        found = subprocess.run(
            [sys.executable, "-c", f"import sys; {code}; {shown.format(('numpy', *HEAVY))}"],
            capture_output=True,
            text=True,
            check=True,
        )
        *heavy, number = found.stdout.split()
        assert heavy == []
        assert int(number) < 400


def test_a_sample_needs_no_scipy():
    code = "import sys, itrust; itrust.Sample; print(*(m for m in {!r} if m in sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", code.format(HEAVY)], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == []
