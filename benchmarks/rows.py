"""The factor engine over rows in memory, in files and on a cluster: `make bench`.

Every cell runs in a process of its own, so that its peak memory is its own. Times are whole
calls: sample made, landmarks chosen, rows passed. FILE_ROWS=2000000 shortens the file cell.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import itrust as it
import kit
from baseline import dense_test
from itrust.engines import Drawing, Purpose, one_blas_thread
from itrust.kernels import RBF, Delta, LocalKernel

DRAWS = 500
WIDTH_P, WIDTHS_X = 0.1, [1.0, 0.5]
KERNEL = LocalKernel(RBF(WIDTH_P), RBF(WIDTHS_X))
FILE_ROWS = int(os.environ.get("FILE_ROWS", "20_000_000"))
CLUSTER_ROWS = min(FILE_ROWS, 5_000_000)
FOLDER = Path(tempfile.gettempdir()) / "itrust-bench"


def data(n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    p = 1 / (1 + np.exp(-x[:, 0]))
    return rng.random(n) < p, p, x


def measured(call, repeats: int = 3):
    """Best seconds, and the last result."""
    best = np.inf
    for _ in range(repeats):
        begun = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - begun)
    return best, result


def told(seconds: float, result) -> dict[str, object]:
    certificate = result.certificate
    return {
        "seconds": seconds,
        "peak_mb": kit.peak_mb(),
        "rank": certificate.rank if certificate else None,
        "bound": certificate.bound if certificate else None,
    }


def warm() -> None:
    y, p, x = data(3_000)
    it.klce_test(it.Sample(y, p, x), KERNEL, draws=9, rng=0, engine=it.engines.Factor())


def memory(n: int, null: str) -> dict[str, object]:
    warm()
    y, p, x = data(n)
    chosen = it.nulls.Spectral() if null == "spectral" else None

    def call():
        return it.klce_test(it.Sample(y, p, x), KERNEL, chosen, draws=DRAWS, rng=0)

    return told(*measured(call, 2 if n >= 500_000 else 5))


def dense(n: int, _null: str) -> dict[str, object]:
    y, p, x = data(n)
    begun = time.perf_counter()
    dense_test(y, p, x, WIDTH_P, WIDTHS_X, DRAWS, np.random.default_rng(0))
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "peak_mb": kit.peak_mb(), "rank": None, "bound": None}


def survey(_n: int, _null: str) -> dict[str, object]:
    """American Housing Survey: ownership given income and race, a model that knows neither."""
    warm()
    frame = it.datasets.ahs2019()
    age = frame["HHAGE"].to_numpy().astype(float)
    y = frame["OWNER"].to_numpy() == 1
    bins = np.digitize(age, np.arange(20, 90, 5))
    p = (np.bincount(bins, y) / np.maximum(np.bincount(bins), 1))[bins]
    black = np.where(frame["BLACK"].to_numpy() == 1, "black", "other")
    x = {"income": frame["HINCP"].to_numpy(), "race": black}
    kernel = LocalKernel(RBF(0.1), {"income": RBF(0.14), "race": Delta()})

    def call():
        return it.klce_test(it.Sample(y, p, x), kernel, draws=DRAWS, rng=0)

    return told(*measured(call, 5))


def files(n: int, _null: str) -> dict[str, object]:
    warm()
    scan = it.scan(FOLDER / f"{n}.parquet", label="y", prob="p", on=["a", "b"])
    return told(*measured(lambda: it.klce_test(scan, KERNEL, it.nulls.Spectral()), 1))


def one_process(n: int, _null: str) -> dict[str, object]:
    warm()
    scan = it.scan(FOLDER / f"{n}.parquet", label="y", prob="p", on=["a", "b"])
    return told(*measured(lambda: it.klce_test(scan, KERNEL, draws=200, rng=0), 1))


def cluster(n: int, _null: str) -> dict[str, object]:
    import dask
    from distributed import Client, LocalCluster

    # Dask's default makes workers hand every freed array back to the system (docs/howto/dask.md).
    spawn = "distributed.nanny.pre-spawn-environ"
    keep = {f"{spawn}.MALLOC_{name}_THRESHOLD_": 2**28 for name in ("TRIM", "MMAP")}
    dask.config.set(keep)
    local = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with local, Client(local) as client:
        engine = it.engines.Dask(client)
        small = it.scan(FOLDER / "100000.parquet", label="y", prob="p", on=["a", "b"])
        it.klce_test(small, KERNEL, draws=9, rng=0, engine=engine)  # workers import what they need
        scan = it.scan(FOLDER / f"{n}.parquet", label="y", prob="p", on=["a", "b"])

        def call():
            return it.klce_test(scan, KERNEL, draws=200, rng=0, engine=engine)

        return told(*measured(call, 1))


def profile(n: int, null: str) -> dict[str, object]:
    """Where the time goes, on one thread: `python benchmarks/rows.py profile 200000 exact`."""
    factor = it.engines.Factor(threads=1)
    survey = factor.survey(it.Sample(*data(n)))
    plan = factor.plan(survey, KERNEL, Purpose(it.nulls.Bernoulli(), DRAWS))
    drawing = Drawing(it.nulls.Bernoulli(), range(0 if null == "spectral" else DRAWS))
    watch = cProfile.Profile(time.process_time)
    watch.runcall(factor.run, survey, [plan], drawing)
    pstats.Stats(watch).sort_stats("tottime").print_stats(12)
    return {}


def write_file(n: int) -> None:
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{n}.parquet"
    if path.exists():
        return
    with pq.ParquetWriter(
        path,
        pa.schema(
            [("y", pa.bool_()), ("p", pa.float64()), ("a", pa.float64()), ("b", pa.float64())]
        ),
    ) as writer:
        for k, first in enumerate(range(0, n, 500_000)):
            y, p, x = data(min(500_000, n - first), k)
            rows = pa.table({"y": y, "p": p, "a": x[:, 0], "b": x[:, 1]})
            writer.write_table(rows, row_group_size=250_000)


def limits() -> str:
    """What a row costs at least: exponentials, multiply-adds and random bits at measured peak."""
    with one_blas_thread():
        a = np.random.default_rng(0).random((2048, 512), dtype=np.float32)
        b = np.random.default_rng(0).random((512, 512), dtype=np.float32)
        gemm = measured(lambda: a @ b, 20)[0] / (2 * 2048 * 512 * 512)
        values = np.full((256, 512), -1.0, dtype=np.float32)
        exp = measured(lambda: np.exp(values), 20)[0] / values.size
        stream = np.random.PCG64DXSM(0)
        byte = measured(lambda: stream.random_raw(100_000), 20)[0] / 800_000
    factor = it.engines.Factor()
    survey = factor.survey(it.Sample(*data(200_000)))
    plan = factor.plan(survey, KERNEL, Purpose(it.nulls.Bernoulli(), DRAWS))
    marks, rank = len(plan.landmarks), plan.rank
    flops = 2 * marks * rank + rank * rank  # features, and C, which is symmetric
    spectral = marks * exp + flops * gemm
    exact = spectral + 2 * rank * DRAWS * gemm + DRAWS * byte
    return (
        f"one core: {1e-9 / gemm:.0f} GFlop/s (float32), {exp * 1e9:.2f} ns an exponential, "
        f"{byte * 1e9:.2f} ns a random byte; {marks} landmarks, rank {rank}\n"
        f"so a million rows on two cores need at least {spectral * 5e5:.2f} s (spectral), "
        f"{exact * 5e5:.2f} s ({DRAWS} draws)"
    )


CELLS = [
    ("dense", 8_000, "exact", "plain NumPy"),
    ("memory", 8_000, "exact", "in memory"),
    ("survey", 48_660, "exact", "housing survey"),
    ("memory", 100_000, "exact", "in memory"),
    ("memory", 1_000_000, "exact", "in memory"),
    ("memory", 100_000, "spectral", "in memory"),
    ("memory", 1_000_000, "spectral", "in memory"),
    ("files", FILE_ROWS, "spectral", "Parquet"),
    ("one_process", CLUSTER_ROWS, "200 draws", "Parquet"),
    ("cluster", CLUSTER_ROWS, "200 draws", "Parquet, 2 Dask workers"),
]


def rows(found: dict[tuple[str, int, str], dict]) -> Iterator[tuple[str, ...]]:
    """One for each cell, which is kept in `found` as well."""
    for name, n, null, where in CELLS:
        if name == "survey" and not os.environ.get("ITRUST_DATA"):
            print("housing survey left out: set ITRUST_DATA")
            continue
        cell = found[name, n, null] = kit.in_own_process(__file__, name, n, null)
        bound = f"{100 * cell['bound']:.2g} %" if cell["bound"] is not None else "-"
        numbers = (
            f"{cell['seconds']:.3f}",
            f"{cell['seconds'] / n * 1e6:.2f}",
            f"{cell['peak_mb']:.0f}",
        )
        yield f"{n:,}", where, null, *numbers, str(cell["rank"] or "-"), bound


def main() -> None:
    for n in {100_000, FILE_ROWS, CLUSTER_ROWS}:
        write_file(n)
    found = {}
    headings = ("rows", "from", "null", "seconds", "us a row", "MB", "rank", "bound")
    title = f"klce_test, {DRAWS} draws unless said, two covariates"
    kit.show(title, headings, rows(found))
    seconds = {key: cell["seconds"] for key, cell in found.items()}
    exact = {n: seconds["memory", n, "exact"] for n in (8_000, 100_000, 1_000_000)}
    per_row = seconds["memory", 1_000_000, "spectral"] / 1e6
    pair = (
        seconds["cluster", CLUSTER_ROWS, "200 draws"],
        seconds["one_process", CLUSTER_ROWS, "200 draws"],
    )
    streamed = seconds["files", FILE_ROWS, "spectral"] / FILE_ROWS
    print(f"8,000 rows: {seconds['dense', 8_000, 'exact'] / exact[8_000]:.0f}x plain NumPy")
    print(f"cost(1e6) / cost(1e5): {exact[1_000_000] / exact[100_000]:.1f}")
    print(f"a row from Parquet / in memory: {streamed / per_row:.2f}")
    print(f"two Dask workers / one process: {pair[0] / pair[1]:.2f}")
    print(limits())


WAYS = (memory, dense, survey, files, one_process, cluster, profile)

if __name__ == "__main__":
    kit.run(main, **{way.__name__: way for way in WAYS})
