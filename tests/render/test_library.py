import hashlib
import json
from pathlib import Path

import pytest
from jinja2 import Environment, FunctionLoader

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


def template(settings, text="<p>{{ 1 + 1 }}</p>"):
    made = Environment(
        loader=FunctionLoader(lambda _: text),
        bytecode_cache=library.CompiledTemplates(settings),
        **settings,
    )
    return made.get_template("page").render(name="<b>")


def test_a_template_is_compiled_once_for_each_source_and_setting(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "cache_folder", lambda: tmp_path / "itrust")
    compiled = []
    original = Environment._generate
    monkeypatch.setattr(
        Environment, "_generate", lambda *a, **k: compiled.append(True) or original(*a, **k)
    )
    escaping, plain = {"autoescape": True}, {"autoescape": False}
    assert template(escaping) == template(escaping) == "<p>2</p>"
    assert len(compiled) == 1
    text = "{{ name }}"
    assert template(escaping, text) == "&lt;b&gt;"
    assert template(plain, text) == "<b>"
    assert len(compiled) == 3
    for file in (tmp_path / "itrust").iterdir():
        file.write_bytes(file.read_bytes()[:-9])
    assert template(escaping, text) == "&lt;b&gt;"


def test_a_template_needs_no_folder(tmp_path, monkeypatch):
    (tmp_path / "itrust").write_text("a file, no folder")
    monkeypatch.setattr(library, "cache_folder", lambda: tmp_path / "itrust")
    assert template({"autoescape": True}) == "<p>2</p>"
