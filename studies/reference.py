"""Our numbers against those of other packages: `make study NAME=reference`.

Writes studies/pages/reference.json, and its tables into the pages that show them. It needs the
packages that the Makefile installs for it, COMPAS (downloaded, or in the folder that ITRUST_DATA
names) and nhanes2.csv in that folder. It fails where a number is farther from theirs than its row
allows. SECTION=rows leaves the simulation of the tests out, which takes minutes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import itrust as it
from equal import inference, recalibration, rejections, scores, surveys, validation
from equal.data import TOLD
from equal.kit import ROWS, agrees
from quote import keep

TOPICS = {  # importing them makes their rows
    "scores": scores,
    "validation": validation,
    "recalibration": recalibration,
    "surveys": surveys,
    "inference": inference,
}


def rows() -> dict[str, Any]:
    """Every row, measured; the end of the study if one does not agree."""
    found = []
    for row in sorted(ROWS, key=lambda row: list(TOPICS).index(row.topic)):
        found.append(row.measure())
        print("{what}, {package} {version}, {data}: {relative:.1e}".format(**found[-1]), flush=True)
    apart = [row for row in found if not agrees(row)]
    for row in apart:
        print("not equal: {what}, {package}: {ours} and {theirs}".format(**row), file=sys.stderr)
    if apart:
        sys.exit(1)
    return {"data": TOLD, "rows": found}


SECTIONS: dict[str, Callable[[], dict[str, Any]]] = {"rows": rows, "rejections": rejections.table}


def main() -> None:
    try:
        for name in os.environ.get("SECTION", ",".join(SECTIONS)).split(","):
            keep("reference", {name: SECTIONS[name]()})
    except (it.DatasetError, FileNotFoundError, ModuleNotFoundError) as error:
        sys.exit(f"reference: {error}")


if __name__ == "__main__":
    main()
