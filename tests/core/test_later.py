import importlib
from pathlib import Path

import pytest

import itrust
from itrust._core.later import modules_by_name

ROOT = Path(itrust.__file__).parent
LAZY = [
    ".".join(["itrust", *path.parent.relative_to(ROOT).parts])
    for path in sorted(ROOT.rglob("__init__.py"))
    if "offered(__name__)" in path.read_text()
]


@pytest.mark.parametrize("package", LAZY)
def test_every_name_on_offer_can_be_loaded(package):
    loaded = importlib.import_module(package)
    modules = modules_by_name(package)
    needs_torch = {"losses"} if importlib.util.find_spec("torch") is None else set()
    assert set(getattr(loaded, "__all__", ())) - {"__version__"} <= set(modules)
    for name in set(modules) - needs_torch:
        assert getattr(loaded, name) is not None


@pytest.mark.parametrize("package", LAZY)
def test_no_name_on_offer_is_that_of_another_module(package):
    """Whoever loads the module would put it in place of the name."""
    folder = Path(importlib.import_module(package).__file__).parent
    taken = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
    names = modules_by_name(package).items()
    assert {name for name, module in names if module != package} & taken == set()


def test_an_unknown_name_is_no_attribute():
    assert not hasattr(itrust, "adit")
    with pytest.raises(AttributeError, match=r"'itrust\.tasks' has no attribute 'adit'"):
        _ = itrust.tasks.adit
