"""Data flows one way: a package imports only from the packages above its own, by the front door."""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import itrust

ROOT = Path(itrust.__file__).parent

# Top to bottom; packages on one line do not import each other.
LAYERS = [
    ["_core"],
    ["data"],
    ["terms"],
    ["kernels", "nulls"],
    ["engines"],
    ["calibration"],
    ["bias"],
    ["recalibrate"],
    ["balance"],
    ["tasks"],
    ["overturn"],
    ["watch"],
    ["auditing"],
    ["render"],
    ["integrations"],
    ["cli"],
]
# Modules at the root: what they may import stands above this package.
ROOT_MODULES = {"datasets": "data", "losses": "data", "simulate": "kernels", "testing": "render"}
DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names}
DEPTH |= {name: DEPTH[below] + 0.5 for name, below in ROOT_MODULES.items()}
# The front door stands before `cli`, which uses the package as users do.
DEPTH |= {"itrust": DEPTH["cli"] - 0.5, "__main__": DEPTH["cli"] + 1}
# Results know how to show themselves: they call `render` when they are asked.
SHOWS_RESULTS = {
    ("_core/result.py", "render"),
    ("auditing/audits.py", "render"),
    ("auditing/multiclass/audits.py", "render"),
    ("auditing/drifting.py", "render"),
    ("watch/reports.py", "render"),
    ("tasks/collected.py", "render"),
    ("auditing/stages.py", "render"),  # the same for steps while they are at work
}

FILES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> set[tuple[str, ...]]:
    """Modules of the package that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = tuple(node.module.split("."))
            if parts == ("itrust",):
                found |= {(alias.name,) for alias in node.names if alias.name != "__version__"}
            elif parts[0] == "itrust":
                found.add(parts[1:])
        elif isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
            found |= {parts[1:] or ("itrust",) for parts in names if parts[0] == "itrust"}
    return found


def test_every_package_has_its_place():
    assert {package_of(path) for path in FILES} == set(DEPTH) - {"itrust"}
    assert len([path for path in FILES if path.parent == ROOT]) + 1 <= 6


def test_imports_only_look_up():
    wrong = [
        f"{path.relative_to(ROOT)} imports {other[0]}"
        for path in FILES
        for other in imports(path)
        if other[0] != package_of(path)
        and DEPTH[other[0]] >= DEPTH[package_of(path)]
        and (str(path.relative_to(ROOT)), other[0]) not in SHOWS_RESULTS
    ]
    assert wrong == []


def test_packages_are_entered_by_the_front_door():
    """Others take what `__init__` offers; `render.page` is a package of its own."""
    wrong = [
        f"{path.relative_to(ROOT)} imports {'.'.join(other)}"
        for path in FILES
        for other in imports(path)
        if len(other) > 1 and other[0] != package_of(path) and other != ("render", "page")
    ]
    assert wrong == []


def test_pictures_are_drawn_with_a_library_that_is_loaded_only_then():
    code = "import sys, itrust; assert 'matplotlib' not in sys.modules; itrust.figures.UNDER"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_kernels_never_see_labels():
    """Widths and kernels must not leak y: nothing above `engines` but the door names Sample."""
    for path in (ROOT / "kernels").rglob("*.py"):
        tree = ast.parse(path.read_text())
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert "Sample" not in names, path
        assert not {"y", "residuals"} & attributes, path


def test_no_public_name_starts_with_test():
    assert not [name for name in itrust.__all__ if name.lower().startswith("test")]


def classes(path: Path) -> list[str]:
    return [n.name for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.ClassDef)]


def test_no_class_name_is_defined_twice():
    where: dict[str, list[str]] = {}
    for path in FILES:
        for name in classes(path):
            where.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}


def test_no_module_but_the_engines_asks_which_engine_it_has():
    known = {name for path in (ROOT / "engines").rglob("*.py") for name in classes(path)}
    engines = {name for name in known if issubclass(_engine_class(name), itrust.engines.Engine)}
    assert {"Tiles", "Factor", "Dask"} <= engines
    asked = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in FILES
        if package_of(path) != "engines"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("isinstance", "issubclass")
        and {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & engines
    ]
    assert asked == []


def _engine_class(name: str) -> type:
    return getattr(itrust.engines, name, object)


def test_the_front_door_has_few_names():
    assert len(itrust.__all__) <= 44
    assert sorted(itrust.__all__) == itrust.__dir__()


def test_tab_completion_offers_only_what_is_meant():
    needs_torch = {"losses"} if importlib.util.find_spec("torch") is None else set()
    spaces = [getattr(itrust, name) for name in set(itrust.__all__) - needs_torch]
    offered = {
        space.__name__: sorted(set(dir(space)) - set(space.__all__))
        for space in spaces
        if inspect.ismodule(space)
    }
    assert {name: more for name, more in offered.items() if more} == {}


def test_the_architecture_page_shows_this_house():
    page = (Path(__file__).parents[1] / "ARCHITECTURE.md").read_text()
    tree = page.split("```")[1]
    packages = set(re.findall(r"^  (\w+)/ ", tree, re.MULTILINE))
    modules = {name for name in ROOT_MODULES if re.search(rf"^  .*\b{name}  ", tree, re.MULTILINE)}
    assert packages | modules == set(DEPTH) - {"itrust", "__main__"}
    spoken = re.findall(rf"`((?:{'|'.join(DEPTH)})/[\w/.]*)`", page)
    assert [place for place in spoken if not (ROOT / place).exists()] == []
