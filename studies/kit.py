"""What the studies of the paper share: their records, their files, and the paper's own test.

A study is a `Study`: `compute` makes plain results from sizes, `describe` puts them beside the
paper's, `picture` draws them. `main` writes NAME.json, NAME.svg and NAME.png, the same bytes for
the same sizes: full size in studies/pages/paper, quick size (QUICK=1) in build/paper. REDRAW=1
takes the results of the last run instead of computing them. The page is made by `paper.py`.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

import itrust as it
from itrust import figures, nulls
from itrust._core import plain, write_whole
from itrust.calibration import CalibrationResult
from itrust.kernels import RBF, Constant, LocalKernel

mpl.use("Agg")  # to files, also where there is a screen

Input = TypeVar("Input")
Output = TypeVar("Output")

ROOT = Path(__file__).parents[1]
FULL, QUICK = ROOT / "studies" / "pages" / "paper", ROOT / "build" / "paper"
LEVEL = 0.05
MINUS = "\N{MINUS SIGN}"
TILE = 2_048
DIGITS = 6  # of the figures that are kept; other versions of the tools may move the last ones


@dataclass(frozen=True)
class Line:
    """One quantity as the paper has it, as its code printed it, and as we found it, twice.

    Cells are text, ready to be read; an empty one means that there is nothing to say.
    """

    quantity: str
    paper: str = ""
    printed: str = ""
    papers_way: str = ""
    exact: str = ""


@dataclass(frozen=True)
class Reading:
    """A place where text, code and mathematics do not agree, and what the evidence says."""

    about: str
    paper: str
    ours: str
    evidence: str


@dataclass(frozen=True)
class Item:
    """A figure or table of the paper, made again.

    `finding` is what to say about any difference; `drawn` tells the picture in words; `columns`
    renames columns of the table, by the fields of `Line`.
    """

    title: str
    claim: str
    settings: Mapping[str, Any]
    lines: Sequence[Line]
    finding: str
    drawn: str
    readings: Sequence[Reading] = ()
    columns: Mapping[str, str] = field(default_factory=dict)


Results = dict[str, Any]


@dataclass(frozen=True)
class Study:
    """One file of results, one description, one picture."""

    name: str
    compute: Callable[..., Results]
    describe: Callable[[Results, Mapping[str, Any]], Item]
    picture: Callable[[Results], Figure]
    full: Mapping[str, Any]
    quick: Mapping[str, Any]
    tiny: Mapping[str, Any]  # for tests

    def run(self, sizes: Mapping[str, Any], folder: Path) -> Item:
        """Compute, and write all files of this study."""
        return self.write(self.compute(**sizes), sizes, folder)

    def redraw(self, folder: Path) -> Item:
        """The description and the picture again, from the results of the last run."""
        kept = json.loads((folder / f"{self.name}.json").read_text(encoding="utf-8"))
        return self.write(kept["results"], kept["sizes"], folder)

    def write(self, results: Results, sizes: Mapping[str, Any], folder: Path) -> Item:
        """NAME.json, NAME.svg and NAME.png: no dates, no versions of tools, no random names."""
        results, sizes = (json.loads(as_json(part)) for part in (results, sizes))
        item = self.describe(results, sizes)
        folder.mkdir(parents=True, exist_ok=True)
        record = {"name": self.name, "sizes": sizes, **asdict(item), "results": results}
        write_whole(folder / f"{self.name}.json", as_json(record) + "\n")
        figure = self.picture(results)
        with mpl.rc_context({"svg.hashsalt": self.name}):
            nothing = {"Date": None, "Creator": None}
            figure.savefig(folder / f"{self.name}.svg", metadata=nothing)
            figure.savefig(folder / f"{self.name}.png", dpi=110, metadata={"Software": None})
        plt.close(figure)
        return item


def as_json(value: Any) -> str:
    """JSON: keys as text, numbers of `DIGITS` significant digits, null where there is none."""
    return json.dumps(_rounded(plain(value)), indent=1, ensure_ascii=False, allow_nan=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def main(study: Study) -> None:
    """Run a study at full size, or at quick size with QUICK=1."""
    hurried = asked("QUICK")
    folder = QUICK if hurried else FULL
    begun = time.perf_counter()
    one_thread()
    try:
        if asked("REDRAW"):
            item = study.redraw(folder)
        else:
            item = study.run(study.quick if hurried else study.full, folder)
    except (it.DatasetError, FileNotFoundError) as error:
        sys.exit(f"{study.name}: {error}")
    print(told(item))
    where = folder.relative_to(ROOT) / study.name
    print(f"wrote {where}.json, .svg and .png in {time.perf_counter() - begun:.0f} s\n", flush=True)


def asked(variable: str) -> bool:
    """Whether the environment asks for it: QUICK=1, REDRAW=1."""
    return os.environ.get(variable, "") not in {"", "0"}


def told(item: Item) -> str:
    """The item as plain text, for whoever ran it."""
    parts = [f"{item.title}\n"]
    for line in item.lines:
        cells = {
            "paper": line.paper,
            "printed": line.printed,
            "paper's way": line.papers_way,
            "exact": line.exact,
        }
        parts.append(
            f"  {line.quantity}: "
            + "; ".join(f"{name} {text}" for name, text in cells.items() if text)
        )
    return "\n".join([*parts, f"\n  {item.finding}"])


def each(function: Callable[[Input], Output], inputs: Iterable[Input]) -> list[Output]:
    """The function of every input, in their order, on all cores (STUDY_WORKERS=1: on one)."""
    workers = int(os.environ.get("STUDY_WORKERS", os.cpu_count() or 1))
    if workers == 1:
        return [function(part) for part in inputs]
    with ProcessPoolExecutor(workers, initializer=one_thread) as pool:
        return list(pool.map(function, inputs))


def one_thread() -> None:
    """Linear algebra on one thread: processes share the cores, and sums keep their order."""
    threadpool_limits(1)


# --- numbers as they are printed -----------------------------------------------------------------


def decimal(value: float, digits: int = 3) -> str:
    """Fixed decimals without a zero before the point: .123."""
    text = f"{abs(value):.{digits}f}"
    sign = MINUS if value < 0 and float(text) else ""
    return sign + (text.removeprefix("0") if "." in text else text)


def significant(value: float, digits: int = 3) -> str:
    """Small numbers by their leading digits: .000346."""
    if value == 0:
        return "0"
    return decimal(value, max(digits - 1 - math.floor(math.log10(abs(value))), 0))


def signed(value: float, digits: int = 3) -> str:
    """A decimal that always shows its sign."""
    return f"{'+' if value >= 0 else MINUS}{decimal(abs(value), digits)}"


def spread(values: np.ndarray) -> float:
    """Standard deviation over runs."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def share(hits: Sequence[bool] | np.ndarray) -> str:
    """Share of runs, with as many digits as they carry."""
    return decimal(float(np.mean(hits)), 3 if len(hits) >= 100 else 2)


# --- the paper's test, as its text and as its code have it ----------------------------------------


def papers_kernel(width: float, gamma: float | None) -> LocalKernel:
    """exp(-df^2 / width^2) exp(-gamma |dx|^2); without gamma the kernel is on f alone."""
    x = Constant() if gamma is None else RBF.from_gamma(gamma)
    return LocalKernel(RBF(width / math.sqrt(2)), x)


@dataclass(frozen=True)
class PapersTest:
    """One sample under the paper's kernel: both statistics and the p-values of its two nulls."""

    equation: float  # KLCE^2 as the paper defines it
    published: float  # the same divided by the mean of the kernel, as its code prints it
    permuted: float  # p of the code's null: residuals permuted, then centred
    algorithm: float  # p of the paper's Algorithm 1
    exact: float  # p with the same kernel, labels redrawn from the probabilities

    @classmethod
    def of(
        cls, sample: it.Sample, width: float, gamma: float | None, draws: int, seed: int
    ) -> PapersTest:
        """Run all three nulls on the same kernel."""
        kernel = papers_kernel(width, gamma)
        centred = papers_pvalue(sample, kernel, nulls.Permutation(centred=True), draws, seed)
        resampled = papers_pvalue(sample, kernel, nulls.ResidualBootstrap(), draws, seed)
        redrawn = quiet_test(sample, kernel, nulls.Bernoulli(), draws, seed)
        equation, published = papers_statistics(sample, kernel)
        return cls(
            equation=equation,
            published=published,
            permuted=centred,
            algorithm=resampled,
            exact=redrawn.pvalue,
        )


def papers_statistics(sample: it.Sample, kernel: LocalKernel) -> tuple[float, float]:
    """KLCE^2 as the paper defines it, and as its code prints it."""
    equation = it.klce2(sample, kernel, engine=it.engines.Tiles())
    return equation, equation / mean_kernel(sample, kernel)


def papers_pvalue(
    sample: it.Sample, kernel: LocalKernel, null: nulls.Null, draws: int, seed: int
) -> float:
    """max(1 / B, share of draws above the statistic), as the published code reports it."""
    return max(1 / draws, quiet_test(sample, kernel, null, draws, seed).exceedance)


def mean_kernel(sample: it.Sample, kernel: LocalKernel) -> float:
    """Mean of K over all pairs, the diagonal included: what the published code divides by.

    Its statistic is sum over i != j of e K e / ((n - 1) / n * sum of K), and the paper's equation
    has n (n - 1) below the same sum.
    """
    gram = kernel.resolve(sample.points).gram(sample.points)
    n = sample.n
    total = sum(
        float(gram.block(slice(a, min(a + TILE, n)), slice(b, min(b + TILE, n))).sum())
        for a in range(0, n, TILE)
        for b in range(0, n, TILE)
    )
    return total / n**2


def quiet_test(
    sample: it.Sample,
    kernel: LocalKernel | it.Dictionary | None,
    null: nulls.Null | None,
    draws: int,
    seed: int,
) -> CalibrationResult:
    """`klce_test` without progress or warnings: studies break assumptions on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", it.AssumptionWarning)
        return it.klce_test(sample, kernel, null, draws=draws, rng=seed, progress=False)


def adaptive_pvalue(sample: it.Sample, draws: int, seed: int) -> float:
    """The exact adaptive test: no width to choose."""
    return quiet_test(sample, None, None, draws, seed).pvalue


# --- pictures -------------------------------------------------------------------------------------


def canvas(
    columns: int, rows: int = 1, size: tuple[float, float] = (3.4, 3.0)
) -> tuple[Figure, Any]:
    """An empty figure in the house's style, with an array of axes."""
    with mpl.rc_context(figures.STYLE):
        figure, axes = plt.subplots(
            rows,
            columns,
            figsize=(size[0] * columns, size[1] * rows),
            layout="constrained",
            squeeze=False,
        )
    return figure, axes


def styled() -> Any:
    """The house's style for everything drawn within."""
    return mpl.rc_context(figures.STYLE)
