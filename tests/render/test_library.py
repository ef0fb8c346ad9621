import hashlib
import json
from pathlib import Path

import pytest

import charts
from itrust.render.page import library

FOLDER = Path(library.__file__).parent / charts.FOLDER.name  # of the package that is tested
RECORD = json.loads((FOLDER / "charts.json").read_text())
LICENCES = (FOLDER / "LICENCES.txt").read_text()


def test_the_library_is_the_recorded_one():
    script = library.chart_library()
    assert hashlib.sha256(script.encode()).hexdigest() == RECORD["sha256"]
    assert len(script.encode()) == RECORD["bytes"]
    assert "window.vegaEmbed=" in script[-100:]  # minified


def test_the_library_begins_with_the_licences_of_all_that_is_in_it():
    assert library.chart_library().startswith(f"/*\n{LICENCES}*/\n")
    assert charts.named(LICENCES) == RECORD["packages"]
    assert "*/" not in LICENCES


@pytest.mark.slow
def test_the_library_is_what_the_command_makes():
    pytest.importorskip("vl_convert", reason="the extra `charts` is not installed")
    script = charts.bundle(LICENCES)
    assert script == library.chart_library()
    assert json.loads(charts.record(script, charts.contents())) == RECORD
