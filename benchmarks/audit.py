"""The whole audit with its page: seconds, peak memory and growth, in memory, from files, on Dask.

`python benchmarks/audit.py`; part of `make bench`. Every cell runs in a process of its own; times
include loading the rows. "Apart" makes the same parts one after the other, each by its own
function, so that every part draws its labels again. ROWS=20000000 sets the largest file.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import itrust as it
import kit
from itrust.tasks import evaluate_tasks

DRAWS = 999
ROWS = int(os.environ.get("ROWS", "20_000_000"))
FOLDER = Path(tempfile.gettempdir()) / "itrust-bench"
ROLES = {"label": "y", "prob": "p", "on": ["age", "income", "region"]}
TASK = 'mean(age | region == "south") - mean(age | region == "west")'
LIMIT = 2_000_000_000  # bytes of address space


def rows_of(n: int, seed: int) -> pa.Table:
    """Two numbers and a category of four; the model misses the old in one region."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n).astype(float)
    income = np.round(np.exp(rng.normal(10.5, 0.7, n)), -2)
    region = rng.choice(["north", "south", "east", "west"], n)
    z = 0.03 * (age - 50) + 0.8 * (np.log(income) - 10.5) + 0.3 * (region == "south")
    z += 0.3 * rng.normal(size=n)
    truth = 1 / (1 + np.exp(-z - 0.15 * ((region == "west") & (age > 60))))
    y = (rng.random(n) < truth).astype(np.int8)
    columns = {"y": y, "p": 1 / (1 + np.exp(-z)), "age": age, "income": income, "region": region}
    return pa.table(columns)


def file_of(n: int) -> Path:
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"audit-{n}.parquet"
    if not path.exists():
        first = rows_of(min(n, 500_000), 0)
        with pq.ParquetWriter(path, first.schema) as writer:
            for k, at in enumerate(range(0, n, 500_000)):
                writer.write_table(rows_of(min(500_000, n - at), k), row_group_size=250_000)
    return path


def told(begun: float, audit: it.auditing.Audit | None) -> dict[str, object]:
    seconds, verdict = time.perf_counter() - begun, None if audit is None else str(audit.verdict)
    return {"seconds": seconds, "peak_mb": kit.peak_mb(), "verdict": verdict}


def warm() -> None:
    """Imports, thread pools and the library of the page, which is made once."""
    small = it.scan(file_of(2_000), **ROLES).load()
    it.audit(small, [TASK], draws=99, rng=0).to_html(FOLDER / "warm.html")


def page(audit: it.auditing.Audit) -> it.auditing.Audit:
    audit.to_html(FOLDER / f"page-{os.getpid()}.html").unlink()
    return audit


def memory(n: int) -> dict[str, object]:
    warm()
    begun = time.perf_counter()
    rows = it.scan(file_of(n), **ROLES).load()
    return told(begun, page(it.audit(rows, [TASK], draws=DRAWS, rng=0)))


def files(n: int) -> dict[str, object]:
    warm()
    begun = time.perf_counter()
    return told(begun, page(it.audit(it.scan(file_of(n), **ROLES), [TASK], draws=DRAWS, rng=0)))


def limited(n: int) -> dict[str, object]:
    """The command with the same page, in a process that may take 2 GB of address space."""
    words = [sys.executable, "-m", "itrust", "audit", str(file_of(n)), "--stream", "--quiet"]
    words += ["--label", "y", "--prob", "p", "--on", "age,income,region", "--task", TASK]
    words += ["--seed", "0", "--report", str(FOLDER / "limited.html")]
    begun = time.perf_counter()
    subprocess.run(
        words,
        check=True,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT)),
    )
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"seconds": seconds, "peak_mb": peak, "verdict": None}


def apart(n: int) -> dict[str, object]:
    """Every part by its own function, without charts and page."""
    warm()
    begun = time.perf_counter()
    rows = it.scan(file_of(n), **ROLES).load()
    settings = {"draws": DRAWS, "rng": 0}
    it.klce_test(rows, **settings)
    it.klce_test(rows.only(), **settings)
    it.local_bias(rows, **settings)
    it.bias_groups(rows, "region", **settings)
    it.bias_slices(rows, **settings)
    evaluate_tasks(rows, [it.tasks.prevalence()], **settings)
    evaluate_tasks(rows, [it.tasks.parse(TASK)], **settings)
    return told(begun, None)


def together(n: int) -> dict[str, object]:
    """The audit alone, without charts and page."""
    warm()
    begun = time.perf_counter()
    rows = it.scan(file_of(n), **ROLES).load()
    return told(begun, it.audit(rows, [TASK], draws=DRAWS, rng=0, charts=False))


def one_process(n: int) -> dict[str, object]:
    warm()
    begun = time.perf_counter()
    scan = it.scan(file_of(n), **ROLES)
    return told(begun, it.audit(scan, [TASK], draws=199, rng=0, charts=False))


def cluster(n: int) -> dict[str, object]:
    from distributed import Client, LocalCluster

    local = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with local, Client(local) as client:
        engine = it.engines.Dask(client)
        small = it.scan(file_of(200_000), **ROLES)
        it.audit(small, [TASK], draws=99, rng=0, charts=False, engine=engine)
        begun = time.perf_counter()
        scan = it.scan(file_of(n), **ROLES)
        return told(begun, it.audit(scan, [TASK], draws=199, rng=0, charts=False, engine=engine))


CELLS = [
    ("memory", 2_000, "memory, page"),
    ("memory", 50_000, "memory, page"),
    ("memory", 1_000_000, "memory, page"),
    ("together", 300_000, "memory, no charts"),
    ("apart", 300_000, "memory, every part by itself, no charts"),
    ("files", 1_000_000, "Parquet, page"),
    ("limited", 5_000_000, "Parquet, page, 2 GB of address space"),
    ("files", ROWS, "Parquet, page"),
    ("one_process", 2_000_000, "Parquet, 199 draws, no charts"),
    ("cluster", 2_000_000, "Parquet, 199 draws, no charts, 2 Dask workers"),
]


def rows(found: dict[tuple[str, int], dict]) -> Iterator[tuple[str, ...]]:
    for name, n, where in CELLS:
        cell = found[name, n] = kit.in_own_process(__file__, name, n)
        per_row = f"{cell['seconds'] / n * 1e6:.1f}"
        yield f"{n:,}", where, f"{cell['seconds']:.1f}", per_row, f"{cell['peak_mb']:.0f}"


def main() -> None:
    for _, n, _ in CELLS:
        file_of(n)
    found: dict[tuple[str, int], dict] = {}
    headings = ("rows", "from", "seconds", "us a row", "MB")
    kit.show(f"audit, {DRAWS} draws unless said, three covariates, a task", headings, rows(found))
    seconds = {key: cell["seconds"] for key, cell in found.items()}
    apart_ratio = seconds["apart", 300_000] / seconds["together", 300_000]
    growth = seconds["files", ROWS] / seconds["files", 1_000_000]
    dask = seconds["cluster", 2_000_000] / seconds["one_process", 2_000_000]
    print(f"every part by itself / the audit: {apart_ratio:.1f}")
    print(f"cost({ROWS:,}) / cost(1,000,000): {growth:.1f} for {ROWS / 1e6:.0f} times the rows")
    print(f"two Dask workers / one process: {dask:.2f}")


WAYS = (memory, files, limited, apart, together, one_process, cluster)

if __name__ == "__main__":
    kit.run(main, **{way.__name__: way for way in WAYS})
