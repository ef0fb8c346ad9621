"""What stands in a wheel and an sdist: nothing that nobody meant to publish, and all that must."""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

PACKAGE = {".py", ".pyi", ".typed"}
# What stands in a folder of the package besides.
DATA = {
    "itrust/render/page": {".css", ".gz", ".j2", ".js", ".json", ".txt"},
    "itrust/auditing/schema": {".json"},
}
RECORDS = {"METADATA", "RECORD", "WHEEL", "entry_points.txt"}
NEEDED = (
    "itrust/__init__.py",
    "itrust/__init__.pyi",
    "itrust/__main__.py",
    "itrust/py.typed",
    "itrust/auditing/schema/itrust-audit-5.json",
    "itrust/render/page/page.html.j2",
    "itrust/render/page/charts/charts.js.gz",
    "itrust/render/page/charts/LICENCES.txt",
)
LEFT_BEHIND = re.compile(
    r"(^|/)(__pycache__|\.git|\.venv[^/]*|\.\w+_cache|\.DS_Store|build|dist|results|test[^/]*\.log)(/|$)"
    r"|(\.pyc|\.so|\.orig|\.rej|\.swp|~)$"
)
LARGEST = 5_000_000  # bytes of a wheel or an sdist


def strays(names: list[str]) -> list[str]:
    """Files of a wheel that are neither the package nor its records.

    >>> strays(["itrust/__init__.py", "itrust/notes.md", "itrust/render/page/page.css", "x.py"])
    ['itrust/notes.md', 'x.py']
    """
    return [name for name in names if not _belongs(PurePosixPath(name))]


def _belongs(path: PurePosixPath) -> bool:
    if path.parts[0] == "itrust":
        return path.suffix in PACKAGE | DATA.get("/".join(path.parts[:3]), set())
    inside = re.fullmatch(r"itrust-[\w.]+\.dist-info", path.parts[0]) is not None
    return inside and (path.parts[1] == "licenses" or path.parts[1] in RECORDS)


def left_behind(names: list[str]) -> list[str]:
    """Files that work on the project leaves, and that belong into no archive.

    >>> left_behind(["a/src/x.py", "a/src/__pycache__/x.pyc", "a/.venv-smoke/y", "a/docs/z.md~"])
    ['a/src/__pycache__/x.pyc', 'a/.venv-smoke/y', 'a/docs/z.md~']
    """
    return [name for name in names if LEFT_BEHIND.search(name)]


def complaints(archive: Path) -> list[str]:
    """What is wrong with a wheel or an sdist."""
    names = names_in(archive)
    found = [f"{archive.name}: left behind: {name}" for name in left_behind(names)]
    if archive.suffix == ".whl":
        found += [f"{archive.name}: nobody meant to publish {name}" for name in strays(names)]
        found += [f"{archive.name}: {name} is missing" for name in NEEDED if name not in names]
    if (size := archive.stat().st_size) > LARGEST:
        found.append(f"{archive.name}: {size:,} bytes are more than {LARGEST:,}")
    return found


def names_in(archive: Path) -> list[str]:
    """The files in a wheel or an sdist."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return [name for name in wheel.namelist() if not name.endswith("/")]
    with tarfile.open(archive) as sdist:
        return [member.name for member in sdist if member.isfile()]


def main() -> None:
    """Look at every archive in a folder, by default `dist`."""
    archives = sorted(Path(sys.argv[1] if len(sys.argv) > 1 else "dist").iterdir())
    found = [line for archive in archives for line in complaints(archive)]
    if found or len(archives) != 2:
        raise SystemExit("\n".join([*found, f"{len(archives)} archives"]))
    for archive in archives:
        print(f"{archive.name}: {len(names_in(archive))} files, {archive.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
