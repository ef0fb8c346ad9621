import pytest
from jinja2 import Environment, FunctionLoader

from itrust.render.page import library


@pytest.fixture
def bundling(tmp_path, monkeypatch):
    """A cache folder of its own, and how often the library was made."""
    made = []

    def bundled():
        made.append(True)
        return f"// {library.ENTRANCE}\nlet é = 1;\r\n"

    monkeypatch.setattr(library, "cache_folder", lambda: tmp_path / "itrust")
    monkeypatch.setattr(library, "_bundled", bundled)
    library.chart_library.cache_clear()
    yield made
    library.chart_library.cache_clear()


def again():
    """As another process would ask."""
    library.chart_library.cache_clear()
    return library.chart_library()


def kept(folder):
    (file,) = (folder / "itrust").iterdir()
    return file


def test_the_library_is_made_once_and_the_same_afterwards(bundling):
    assert again() == again() == library._bundled()
    assert len(bundling) == 2  # for the cache, and for this test


def test_another_version_of_the_package_makes_another(bundling, monkeypatch):
    again()
    monkeypatch.setattr(library, "version", lambda _: "0.0")
    again()
    assert len(bundling) == 2


@pytest.mark.parametrize("spoiled", [b"", b"// short", b"\xff\xfe\n", None])
def test_a_file_that_is_not_whole_is_made_again(bundling, tmp_path, spoiled):
    first = again()
    file = kept(tmp_path)
    file.write_bytes(file.read_bytes()[:-1] if spoiled is None else spoiled)
    assert again() == first
    assert again() == first
    assert len(bundling) == 2


def test_a_folder_that_cannot_be_written_is_no_error(bundling, tmp_path):
    (tmp_path / "itrust").write_text("a file, no folder")
    again()
    again()
    assert len(bundling) == 2


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
