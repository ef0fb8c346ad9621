"""Designs that were chosen to break promises, and what holds now: `make study NAME=adversary`.

Writes studies/pages/adversary.md. RUNS=50 gives a quick look, SECTION=estimates,local some parts
(the page is made when all parts have been).
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy: the processes share the cores

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from hard import comparison, dependence, detectable, estimates, families, innocent, local, sizes
from hard.kit import Section

SECTIONS: tuple[Section, ...] = (
    estimates.SECTION,
    detectable.SECTION,
    sizes.SECTION,
    innocent.SECTION,
    families.SECTION,
    comparison.SECTION,
    local.SECTION,
    dependence.SECTION,
)
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "studies" / "pages" / "adversary.md"
BUILD = ROOT / "build" / "adversary"
HEAD = """\
# What hard designs broke, and what holds now

Made by `make study NAME=adversary`. Each section has designs that nobody had used before a promise
was found broken, the truth beside the result, and the number of runs. Seeds start at 1,000: methods
were chosen with smaller ones.
"""


def main() -> None:
    """Make the sections that were asked for, then the page from all that have been made."""
    known = {section.name: section for section in SECTIONS}
    chosen = [name for name in os.environ.get("SECTION", ",".join(known)).split(",") if name]
    strange = [name for name in chosen if name not in known]
    if strange:
        sys.exit(f"there is no section {strange[0]!r}; there are {', '.join(known)}")
    BUILD.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as pool:
        for name in chosen:
            section, begun = known[name], time.perf_counter()
            runs = int(os.environ.get("RUNS", section.runs))
            text = f"## {section.title}\n\n{section.make(pool, runs)}\n"
            (BUILD / f"{name}.json").write_text(json.dumps(text), encoding="utf-8")
            print(f"{text}\n{name}: {time.perf_counter() - begun:.0f} s\n", flush=True)
    made = [BUILD / f"{name}.json" for name in known]
    if all(path.exists() for path in made):
        parts = [json.loads(path.read_text(encoding="utf-8")) for path in made]
        PAGE.write_text("\n".join([HEAD, *parts]), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
