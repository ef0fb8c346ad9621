import importlib
from pathlib import Path

import pytest

import itrust
from itrust._core.later import loaded_later, names_and_places

ROOT = Path(itrust.__file__).parent
LAZY = [
    ".".join(["itrust", *path.parent.relative_to(ROOT).parts])
    for path in sorted(ROOT.rglob("__init__.py"))
    if "__getattr__ = loaded_later" in path.read_text()
]


def modules_of(package):
    folder = Path(importlib.import_module(package).__file__).parent
    return {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}


def test_the_packages_that_load_later_were_found():
    assert {"itrust", "itrust._core", "itrust.auditing", "itrust.tasks"} <= set(LAZY)


@pytest.mark.parametrize("package", LAZY)
def test_every_name_on_offer_can_be_loaded(package):
    loaded = importlib.import_module(package)
    places = names_and_places(package)
    own = {"__version__"} if package == "itrust" else set()
    needs_torch = {"losses"} if importlib.util.find_spec("torch") is None else set()
    assert set(loaded.__all__) - own <= set(places)
    for name in set(places) - needs_torch:
        assert getattr(loaded, name) is not None


@pytest.mark.parametrize("package", LAZY)
def test_no_name_on_offer_is_that_of_another_module(package):
    """Whoever loads the module would put it in place of the name."""
    offered = names_and_places(package).items()
    taken = {name for name, (module, _) in offered if module != package} & modules_of(package)
    assert taken == set()


def test_an_unknown_name_is_no_attribute():
    assert not hasattr(itrust, "adit")
    with pytest.raises(AttributeError, match=r"'itrust\.tasks' has no attribute 'adit'"):
        loaded_later("itrust.tasks")("adit")


def test_a_package_without_its_source_says_so(monkeypatch):
    monkeypatch.setattr("itrust._core.later.find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"nowhere\.at_all loads its names by its source"):
        loaded_later("nowhere.at_all")("name")
