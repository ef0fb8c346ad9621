"""Put what studies found into the pages that show it: `make tables`.

Nothing is computed: pieces of pages are made from the JSON files in studies/pages.
"""

from __future__ import annotations

from quoting import level, paper, power, recalibration, reference, speed
from quoting.kit import ROOT, keep, write_pages

__all__ = ["MAKERS", "keep", "main"]
MAKERS = (level, paper, power, recalibration, reference, speed)  # importing them names their pieces


def main() -> None:
    changed = write_pages()
    print("\n".join(f"wrote {path.relative_to(ROOT)}" for path in changed) or "nothing to write")


if __name__ == "__main__":
    main()
