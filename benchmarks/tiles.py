"""The tile engine against plain NumPy in the same run: ratios, peak memory, growth.

`make bench`. Every cell runs in a process of its own, so that peak memory is its own; the best of
the repeats counts on both sides, which is what a quiet machine would show.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import itrust as it
import kit
from baseline import dense_kernel, dense_test, element_wise_test
from itrust.kernels import RBF, LocalKernel

DRAWS = 500
WIDTH_P, WIDTHS_X = 0.1, [1.0, 0.5]
SIZES = (1_000, 2_000, 4_000, 8_000, 20_000)
LARGEST_DENSE = 8_000
ELEMENT_WISE_DRAWS = 25


def data(n: int):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, 2))
    p = 1 / (1 + np.exp(-x[:, 0]))
    return (rng.random(n) < p).astype(float), p, x


def ours(n: int) -> float:
    y, p, x = data(n)
    kernel = LocalKernel(RBF(WIDTH_P), RBF(WIDTHS_X))
    begun = time.perf_counter()
    it.klce_test(
        it.Sample(y, p, x), kernel, draws=DRAWS, rng=0, progress=False, engine=it.engines.Tiles()
    )
    return time.perf_counter() - begun


def dense(n: int) -> float:
    y, p, x = data(n)
    begun = time.perf_counter()
    dense_test(y, p, x, WIDTH_P, WIDTHS_X, DRAWS, np.random.default_rng(0))
    return time.perf_counter() - begun


def element_wise(n: int) -> float:
    """Seconds for all draws: building P, and a few draws projected to all."""
    y, p, x = data(n)
    begun = time.perf_counter()
    matrix = dense_kernel(p, x, WIDTH_P, WIDTHS_X)
    built = time.perf_counter() - begun
    begun = time.perf_counter()
    element_wise_test(y - p, matrix, ELEMENT_WISE_DRAWS, np.random.default_rng(0))
    return built + (time.perf_counter() - begun) / ELEMENT_WISE_DRAWS * DRAWS


def cell(name: str, n: int) -> dict[str, float]:
    """Best seconds and peak megabytes of one way at one size, in this process."""
    run = globals()[name]
    repeats = 1 if n > 4_000 and name != "ours" else 3 if n > 2_000 else 9
    run(min(n, 500))  # imports, thread pools and caches are not what is measured
    seconds = min(run(n) for _ in range(repeats))
    return {"seconds": seconds, "peak_mb": kit.peak_mb()}


def in_own_process(name: str, n: int) -> dict[str, float]:
    return kit.in_own_process(__file__, "cell", name, n)


def rows() -> Iterator[list[str]]:
    before = None
    for n in SIZES:
        mine = in_own_process("ours", n)
        row = [f"{n:,}", f"{mine['seconds']:.3f}", f"{mine['peak_mb']:.0f}"]
        if n <= LARGEST_DENSE:
            plain, literal = in_own_process("dense", n), in_own_process("element_wise", n)
            row += [f"{plain['seconds']:.2f}", f"{plain['peak_mb']:.0f}"]
            row += [f"{plain['seconds'] / mine['seconds']:.1f}x", f"{literal['seconds']:.1f}"]
            row += [f"{literal['seconds'] / mine['seconds']:.0f}x"]
        else:
            row += ["-"] * 5
        exponent = before and np.log(mine["seconds"] / before[1]) / np.log(n / before[0])
        row.append(f"n^{exponent:.1f}" if exponent else "-")
        before = n, mine["seconds"]
        yield row


def main() -> None:
    headings = ("rows", "itrust s", "MB", "dense s", "MB", "ratio", "Alg. 1 s", "ratio", "growth")
    kit.show(f"klce_test, {DRAWS} draws, two covariates", headings, rows())
    print("MB is the peak of the whole process; growth is between this size and the one before.")


if __name__ == "__main__":
    kit.run(main, cell=cell)
