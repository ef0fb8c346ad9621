"""Many audits in one process: does anything grow? `make study NAME=memory` (Linux).

Writes studies/pages/memory.md. AUDITS=200 is the default; 60 give a quick look.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from matplotlib.figure import Figure
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

import itrust as it
from itrust._core import write_whole
from itrust.auditing import Audit
from itrust.data import Scan

mpl.use("Agg")

AUDITS = int(os.environ.get("AUDITS", "200"))
MIN_ROWS, MAX_ROWS = 200, 2_000
WARM_UP = 50  # libraries are loaded and the allocator finds its size; not judged
PAGE = Path(__file__).parents[1] / "studies" / "pages" / "memory.md"
MEGABYTE = 2**20

# What must not outlive an audit.
WATCHED = (it.Sample, Scan, Audit, Figure)


def rows_of(rng: np.random.Generator, max_rows: int) -> pa.Table:
    """Rows with all roles, their number and their levels as they come."""
    n, levels = int(rng.integers(MIN_ROWS, max_rows + 1)), int(rng.integers(2, 9))
    age, income = rng.normal(50, 15, n), rng.lognormal(3, 0.5, n)
    region = rng.integers(levels, size=n)
    p = 1 / (1 + np.exp(-(age - 50) / 20 - 0.3 * rng.normal(size=n)))
    cluster = rng.integers(max(n // 12, 20), size=n)
    return pa.table(
        {
            "y": (rng.random(n) < p).astype(int),
            "p": p,
            "age": age,
            "income": income,
            "region": [f"region {code}" for code in region],
            "weight": rng.uniform(0.5, 2.0, n),
            "cluster": cluster,
            "stratum": cluster % 4,
        }
    )


def in_memory(table: pa.Table, on: list[str], **roles: str) -> it.Sample:
    return it.Sample.from_frame(table, label="y", prob="p", on=on, **roles)


def one_number(table: pa.Table, _folder: Path, _seed: int) -> it.Sample:
    return in_memory(table, ["age"])


def mixed(table: pa.Table, _folder: Path, _seed: int) -> it.Sample:
    return in_memory(table, ["age", "income", "region"])


def weighted(table: pa.Table, _folder: Path, _seed: int) -> it.Sample:
    return in_memory(table, ["income", "region"], weights="weight")


def clustered(table: pa.Table, _folder: Path, _seed: int) -> it.Sample:
    return in_memory(table, ["age", "region"], cluster="cluster", strata="stratum")


def many_columns(table: pa.Table, _folder: Path, seed: int) -> it.Sample:
    rng = np.random.default_rng(seed)
    x = {f"x{k}": rng.normal(size=len(table)) for k in range(int(rng.integers(4, 13)))}
    return it.Sample(table["y"].to_numpy(), table["p"].to_numpy(), x)


def crossed_folds(table: pa.Table, _folder: Path, seed: int) -> it.Sample:
    X = np.column_stack([table["age"].to_numpy(), table["income"].to_numpy()])
    model = LogisticRegression(max_iter=1_000)
    return it.Sample.from_estimator(model, X, table["y"].to_numpy(), cv=3, rng=seed)


def recalibrated(table: pa.Table, folder: Path, _seed: int) -> it.Sample:
    sample = mixed(table, folder, _seed)
    it.recalibrate.Local().fit(sample).save(folder / "map.json")
    return it.recalibrate.load(folder / "map.json").apply(sample)


def scanned(path: Path) -> Scan:
    return it.scan(path, label="y", prob="p", on=["age", "region"])


def from_csv(table: pa.Table, folder: Path, _seed: int) -> Scan:
    pa.csv.write_csv(table, folder / "rows.csv")
    return scanned(folder / "rows.csv")


def from_parquet(table: pa.Table, folder: Path, _seed: int) -> Scan:
    pa.parquet.write_table(table, folder / "rows.parquet", row_group_size=300)
    return scanned(folder / "rows.parquet")


def from_feather(table: pa.Table, folder: Path, _seed: int) -> Scan:
    pa.feather.write_feather(table, folder / "rows.feather")
    return scanned(folder / "rows.feather")


Shape = Callable[[pa.Table, Path, int], "it.Sample | Scan"]
SHAPES: tuple[Shape, ...] = (
    one_number,
    mixed,
    weighted,
    clustered,
    many_columns,
    crossed_folds,
    recalibrated,
    from_csv,
    from_parquet,
    from_feather,
)


def one_audit(
    shape: Shape, seed: int, folder: Path, draws: int = 99, max_rows: int = MAX_ROWS
) -> Audit:
    """An audit with its page, its JSON and its text."""
    rng = np.random.default_rng([seed, 11])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", it.AssumptionWarning)
        source = shape(rows_of(rng, max_rows), folder, seed)
        task = f"mean({source.names[0]})"
        audit = it.audit(source, task, draws=draws, rng=seed, progress=False)
    audit.to_html(folder / "page.html")
    write_whole(folder / "audit.json", json.dumps(audit.to_dict()))
    write_whole(folder / "audit.txt", str(audit))
    return audit


def look_at(audit: Audit) -> None:
    """Its view in a notebook and its figure, which is closed again, as users have to."""
    audit._repr_html_()
    plt.close(audit.plot().figure_)


class Reading(NamedTuple):
    """What the process holds at one moment, after the garbage collector has run."""

    resident: int  # bytes
    objects: int  # that the garbage collector knows
    watched: int  # of the classes in WATCHED
    figures: int  # that pyplot keeps
    files: int  # open descriptors
    threads: int  # of the system, those of libraries included
    temporary: int  # files and folders in the folder for them


def reading() -> Reading:
    gc.collect()
    objects = gc.get_objects()
    kernel = Path("/proc/self")
    pages = int((kernel / "statm").read_text().split()[1])
    return Reading(
        resident=pages * os.sysconf("SC_PAGE_SIZE"),
        objects=len(objects),
        watched=sum(type(thing) in WATCHED for thing in objects),
        figures=len(plt.get_fignums()),
        files=len(os.listdir(kernel / "fd")),
        threads=len(os.listdir(kernel / "task")),
        temporary=sum(1 for _ in Path(tempfile.gettempdir()).rglob("*")),
    )


def readings(audits: int, folder: Path, show: Callable[[int, Reading], None]) -> list[Reading]:
    """One reading after each audit; every shape comes once in as many audits as there are."""
    order = np.random.default_rng(0)
    shapes: list[Shape] = []
    found = []
    for number in range(audits):
        shapes = shapes or [SHAPES[k] for k in order.permutation(len(SHAPES))]
        look_at(one_audit(shapes.pop(), number, folder))
        found.append(reading())
        show(number + 1, found[-1])
    return found


def slope(values: np.ndarray) -> tuple[float, float, float]:
    """Growth for each audit by least squares, with a 95 % interval.

    Medians of blocks that hold every shape once are fitted, because readings next to each other
    go together, and some shapes need more room than others.
    """
    size = len(SHAPES)
    blocks = np.median(values[: len(values) // size * size].reshape(-1, size), axis=1)
    at = size * (np.arange(len(blocks)) - (len(blocks) - 1) / 2)
    grown = float(at @ blocks / (at @ at))
    rest = blocks - blocks.mean() - grown * at
    error = np.sqrt(rest @ rest / (len(blocks) - 2) / (at @ at))
    reach = float(student.ppf(0.975, len(blocks) - 2) * error)
    return grown, grown - reach, grown + reach


def main() -> None:
    if not Path("/proc/self/statm").exists():
        sys.exit("memory: reads /proc, which is there on Linux only")
    if WARM_UP + 3 * len(SHAPES) > AUDITS:
        sys.exit(f"memory: AUDITS must be at least {WARM_UP + 3 * len(SHAPES)}")
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as top:
        files, temporary = Path(top, "files"), Path(top, "temporary")
        files.mkdir()
        temporary.mkdir()
        tempfile.tempdir = str(temporary)
        found = readings(AUDITS, files, told)
    PAGE.write_text(page(found), encoding="utf-8")
    print(f"wrote {PAGE.name} in {time.perf_counter() - begun:.0f} s")


def told(number: int, now: Reading) -> None:
    if number == 1 or number % 10 == 0:
        print(line(number, now), flush=True)


def line(number: int, now: Reading) -> str:
    cells = (number, f"{now.resident / MEGABYTE:.1f}", f"{now.objects:,}", *now[2:])
    return f"| {' | '.join(map(str, cells))} |"


def page(found: list[Reading]) -> str:
    judged = found[WARM_UP:]
    grown = slope(np.array([now.resident for now in judged]) / 1024)
    objects = slope(np.array([now.objects for now in judged], dtype=float))
    shown = [1, 10, *range(WARM_UP, len(found) + 1, 25)]
    resident = np.array([now.resident for now in judged]) / MEGABYTE
    return TEXT.format(
        audits=len(found),
        judged=len(judged),
        warm_up=WARM_UP,
        shapes=len(SHAPES),
        table="\n".join(line(number, found[number - 1]) for number in shown),
        grown=interval(grown, " kB"),
        objects=interval(objects, ""),
        lowest=f"{resident.min():.0f}",
        highest=f"{resident.max():.0f}",
        constant=constant(judged),
    )


def interval(found: tuple[float, float, float], unit: str) -> str:
    middle, low, high = found
    return f"{middle:+.1f}{unit} (95 % interval {low:+.1f} to {high:+.1f})"


def constant(judged: list[Reading]) -> str:
    """What was the same after every audit, and what was not."""
    names = {
        "watched": "samples, scans, audits and figures that were left",
        "figures": "figures that pyplot keeps",
        "files": "open files",
        "threads": "threads",
        "temporary": "temporary files",
    }
    lines = []
    for field, name in names.items():
        values = sorted({getattr(now, field) for now in judged})
        text = str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"
        lines.append(f"| {name} | {text} |")
    return "\n".join(lines)


TEXT = """\
# Memory of many audits in one process

Made by `AUDITS={audits} make study NAME=memory`: {audits} audits one after the other in one
process, each of other rows (200 to 2,000), and each given out as page, JSON, text, notebook view
and figure. Ten shapes take turns in random order: one number; numbers and a category of two to
eight levels; weights; clusters in strata; four to twelve numbers; predictions of a
cross-validation; a recalibration that is saved, loaded and applied; and files in CSV, Parquet and
Feather that are not loaded. After each audit the garbage collector runs, and the process is read
(`/proc`, Linux).

| audits | resident MB | objects | left over | in pyplot | open files | threads | temporary |
|---|---|---|---|---|---|---|---|
{table}

*Objects* are those of Python that its garbage collector knows; *left over* are samples, scans,
audits and figures that are still there though nobody holds them; *in pyplot* are figures that
Matplotlib keeps; *threads* are those of the system, the pools of libraries included.

**Growth over the last {judged} audits.** Resident memory: {grown} for each audit; it stayed
between {lowest} and {highest} MB. Objects: {objects} for each audit. The first {warm_up} audits
load libraries and are not judged. The slope is that of the medians of blocks of {shapes} audits, in
which every shape comes once. Allocators keep freed memory for a while, so resident memory goes up
and down; what leaks would only go up.

After each of these {judged} audits:

| what | how many |
|---|---|
{constant}
"""


if __name__ == "__main__":
    main()
