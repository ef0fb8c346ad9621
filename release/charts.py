"""`make charts`: the chart library of the page, as the package carries it.

vl-convert-python holds Vega, Vega-Lite, Vega-Embed and what they need, and bundles them without a
network. The bundle stands in the package, behind the licences of everything in it, so that users
need not install vl-convert (84 MB) for it. `charts.json` records what it was made of.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "src/itrust/render/page/charts"
ENTRANCE = "window.vegaEmbed = vegaEmbed;"  # what page.js calls
MODULE = re.compile(rb"Original file: /npm/([\w.-]+)@([\w.-]+)/(.*?)sourceMappingURL", re.DOTALL)
IMPORT = re.compile(rb'(?:from|import)\s*"/npm/([\w.-]+)@')
NAMED = re.compile(r"^    ([\w.-]+) (\d[\w.-]*)  ", re.MULTILINE)


def bundle(licences: str) -> str:
    """One script: the licences as a comment, then everything that draws charts."""
    import vl_convert

    return f"/*\n{licences}*/\n{vl_convert.javascript_bundle(ENTRANCE)}"


def contents() -> dict[str, str]:
    """Versions of the packages in the bundle, by name, read from the modules of vl-convert.

    It holds several versions of Vega-Lite, of which the bundle has the newest.
    """
    import vl_convert

    library = next(Path(vl_convert.__file__).parent.glob("vl_convert.abi3.*")).read_bytes()
    versions: dict[bytes, bytes] = {}
    needs: dict[bytes, set[bytes]] = {}
    for name, number, text in MODULE.findall(library):
        if _key(number) >= _key(versions.get(name, b"0")):
            versions[name], needs[name] = number, set(IMPORT.findall(text))
    found, waiting = set[bytes](), {b"vega-embed", b"vega-lite", b"vega"}
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= needs[name] - found
    return {name.decode(): versions[name].decode() for name in sorted(found)}


def _key(number: bytes) -> list[int]:
    return [int(part) for part in number.split(b".")]


def named(licences: str) -> dict[str, str]:
    """Versions of the packages that the file of licences lists, by name."""
    return dict(NAMED.findall(licences))


def record(script: str, packages: dict[str, str]) -> str:
    """What stands beside the bundle: its checksum and what it was made of."""
    facts = {
        "made by": "make charts",
        "vl-convert-python": version("vl-convert-python"),
        "sha256": hashlib.sha256(script.encode()).hexdigest(),
        "bytes": len(script.encode()),
        "packages": packages,
    }
    return json.dumps(facts, indent=2) + "\n"


def main() -> None:
    """Write the bundle and its record; refused where a package has no licence in the file."""
    licences = (FOLDER / "LICENCES.txt").read_text(encoding="utf-8")
    packages = contents()
    if missing := set(packages.items()) ^ set(named(licences).items()):
        names = ", ".join(sorted(f"{name} {number}" for name, number in missing))
        raise SystemExit(f"LICENCES.txt and the bundle differ in {names}: look up their licences")
    script = bundle(licences)
    (FOLDER / "charts.js.gz").write_bytes(gzip.compress(script.encode(), 9, mtime=0))
    (FOLDER / "charts.json").write_text(record(script, packages), encoding="utf-8")
    print(f"{FOLDER.name}/charts.js.gz: {len(packages)} packages, {len(script.encode()):,} bytes")


if __name__ == "__main__":
    main()
