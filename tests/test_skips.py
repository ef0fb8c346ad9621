"""What is not tested is counted aloud, by what was missing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TINY = {
    "test_some.py": """
        import pytest

        def test_runs(): pass

        @pytest.mark.parametrize("x", [1, 2, 3])
        def test_public(x, data_folder): pass

        def test_kept(data_file): assert data_file("nhanes2.csv").name == "nhanes2.csv"

        def test_package(): pytest.importorskip("no_such_package.part")

        def test_browser(): pytest.skip("ITRUST_NO_BROWSER=1")

        @pytest.mark.skipif(True, reason="reads /proc")
        def test_other(): pass
    """,
    "test_whole.py": """
        import pytest

        pytest.importorskip("no_such_package")

        def test_never(): assert False
    """,
}
COUNTED = [
    "3 tests skipped: needs ITRUST_DATA, a folder of public data sets (`make data` fetches them)",
    "1 test skipped: needs nhanes2.csv in ITRUST_DATA, which no loader fetches",
    "1 test skipped: needs the package no_such_package",
    "1 whole file skipped: needs the package no_such_package",
    "1 test skipped: needs Chromium, which ITRUST_NO_BROWSER=1 goes without",
    "1 test skipped: reads /proc",
]


@pytest.fixture
def folder(tmp_path) -> Path:
    for name, text in TINY.items():
        (tmp_path / name).write_text(re.sub(r"^ {8}", "", text, flags=re.MULTILINE))
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess:
    left_out = ("ITRUST_DATA", "ITRUST_REQUIRE_DATA", "PYTEST_ADDOPTS")
    variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # others take seconds to load
    environment = {name: own for name, own in os.environ.items() if name not in left_out}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("-qq", "-rN"), ("-p", "xdist", "-n", "2", "-q")], ids=str)
def test_skips_are_counted_by_what_was_missing(folder, options):
    done = run(folder, *options)
    assert done.returncode == 0, done.stdout
    told = [
        line for line in done.stdout.splitlines() if re.match(r"\d+ (test|whole file)s? skip", line)
    ]
    assert sorted(told) == sorted(COUNTED)


def test_nothing_is_said_where_nothing_is_skipped(folder):
    assert "skipped" not in run(folder, "-k", "runs", "--ignore=test_whole.py").stdout


def test_where_data_are_required_their_lack_fails(folder):
    done = run(
        folder, "-q", "-k", "public or kept", "--ignore=test_whole.py", ITRUST_REQUIRE_DATA="1"
    )
    assert done.returncode == 1
    assert "4 failed" in done.stdout or "3 errors" in done.stdout


def test_what_is_there_is_used(folder):
    (folder / "nhanes2.csv").write_text("age\n1\n")
    done = run(
        folder, "-q", "-k", "public or kept", ITRUST_DATA=str(folder), ITRUST_REQUIRE_DATA=""
    )
    assert "4 passed" in done.stdout
