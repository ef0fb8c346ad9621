"""Data flows one way: a module imports only from the rooms above its own."""

import ast
import subprocess
import sys
from pathlib import Path

import itrust

ROOT = Path(itrust.__file__).parent

# Top to bottom; rooms on one line do not import each other.
LAYERS = [
    ["errors", "typing", "plain", "notebook"],
    ["seeds", "progress", "tails", "multiplicity", "writing"],
    ["columns"],
    ["encoding", "points"],
    ["intake", "readers", "tables", "regions"],
    ["conditions"],
    ["quantities"],
    ["sample"],
    ["files", "classes", "population"],
    ["kernels"],
    ["dictionary"],
    ["engine"],
    ["nulls"],
    ["assumptions", "results", "evaluate"],
    ["klce", "looks"],
    ["adaptive", "witness", "tuning", "sensitivity", "averages"],
    ["planning", "multiclass", "intervals", "neighbours", "search"],
    ["groups"],
    ["slices"],
    ["bias"],
    ["curves"],
    ["tasks"],
    ["grammar", "evaluation"],
    ["estimates"],
    ["verdict", "scores", "simulate", "datasets", "losses"],
    ["audits"],
    ["comparison", "recalibrate", "telling"],
    ["figures", "report"],
    ["itrust"],  # the front door: what stands below it uses the package as users do
    ["demo"],
    ["cli"],
]
# Convenience methods of results, which import what stands below them when they are called.
LAZY = {
    ("bias.py", "curves"),
    ("tasks.py", "grammar"),
    ("tasks.py", "evaluation"),
    ("tasks.py", "estimates"),
    ("audits.py", "itrust"),
    ("audits.py", "telling"),
    ("audits.py", "report"),
}
DEPTH = {room: depth for depth, rooms in enumerate(LAYERS) for room in rooms}


def room_of(path: Path) -> str:
    part = path.relative_to(ROOT).parts[0]
    return part.removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Rooms of the package that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "itrust":
                names = {alias.name for alias in node.names}
                found |= {parts[1]} if len(parts) > 1 else names - {"__version__"}
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found |= {
                parts[1] if len(parts) > 1 else "itrust" for parts in names if parts[0] == "itrust"
            }
    return found


FILES = [path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py"]


def test_every_room_has_its_place():
    assert {room_of(path) for path in FILES} | {"itrust"} == set(DEPTH)


def test_imports_only_look_up():
    wrong = [
        f"{path.relative_to(ROOT)} imports {other}"
        for path in FILES
        for other in imports(path) - {room_of(path)}
        if DEPTH[other] >= DEPTH[room_of(path)] and (path.name, other) not in LAZY
    ]
    assert wrong == []


def test_pictures_are_drawn_with_a_library_that_is_loaded_only_then():
    code = "import sys, itrust; assert 'matplotlib' not in sys.modules; itrust.figures.UNDER"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_kernels_never_see_labels():
    """Widths and kernels must not leak y: nothing above `engine` but the door names Sample."""
    for path in (ROOT / "kernels").rglob("*.py"):
        tree = ast.parse(path.read_text())
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert "Sample" not in names, path
        assert not {"y", "residuals"} & attributes, path


def test_no_public_name_starts_with_test():
    assert not [name for name in itrust.__all__ if name.lower().startswith("test")]
