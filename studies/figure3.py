"""Figure 3 of the paper, type-II error against dimension: `make study NAME=figure3`."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import itrust as it
import kit
from itrust import figures, nulls, simulate

DIMENSIONS = (10, 20, 30, 40, 50)
FULL = {"runs": 300, "draws": 199, "rows": (500, 1_000), "dimensions": DIMENSIONS}
QUICK = {"runs": 12, "draws": 99, "rows": (500, 1_000), "dimensions": (10, 30, 50)}
TINY = {"runs": 2, "draws": 19, "rows": (60,), "dimensions": (10,)}

WIDTH, GAMMA = 5.0, 0.04  # of the published notebook: width 5 for f and for x
PRINTED = {
    "500": {"10": 0.006, "20": 0.069, "30": 0.242, "40": 0.426, "50": 0.534},
    "1000": {"10": 0.0, "20": 0.001, "30": 0.012, "40": 0.051, "50": 0.150},
}
PERMUTED, ALGORITHM, REDRAWN = "residuals permuted", "Algorithm 1", "labels redrawn, same kernel"
ADAPTIVE, ORACLE = "adaptive", "oracle"
STYLES = {
    "printed": {"color": figures.FAINT, "marker": "x", "ls": ":"},
    PERMUTED: {"color": figures.CYCLE[1], "marker": "s", "ls": "--"},
    ALGORITHM: {"color": figures.CYCLE[3], "marker": "v", "ls": "--"},
    REDRAWN: {"color": figures.CYCLE[2], "marker": "^", "ls": "-."},
    ADAPTIVE: {"color": figures.INK, "marker": "o", "ls": "-"},
    ORACLE: {"color": figures.CYCLE[5], "marker": "D", "ls": ":"},
}


def one_run(n: int, d: int, draws: int, seed: int) -> dict[str, bool]:
    """Which tests miss that the model lacks the last covariate."""
    sample = simulate.papers_power_design(n, d, seed).sample
    kernel = kit.papers_kernel(WIDTH, GAMMA)
    # The oracle knows where to look: the trend along the covariate that the model lacks.
    everything = it.default_dictionary(sample)
    trend = tuple(entry for entry in everything.entries if entry.name == f"x{d}: trend")
    knowing = replace(everything, entries=trend)
    pvalues = {
        PERMUTED: kit.papers_pvalue(sample, kernel, nulls.Permutation(), draws, seed),
        ALGORITHM: kit.papers_pvalue(sample, kernel, nulls.ResidualBootstrap(), draws, seed),
        REDRAWN: kit.quiet_test(sample, kernel, nulls.Bernoulli(), draws, seed).pvalue,
        ADAPTIVE: kit.adaptive_pvalue(sample, draws, seed),
        ORACLE: kit.quiet_test(sample, knowing, None, draws, seed).pvalue,
    }
    return {name: p > kit.LEVEL for name, p in pvalues.items()}


def type_two(n: int, d: int, runs: int, draws: int) -> dict[str, float]:
    found = kit.each(functools.partial(one_run, n, d, draws), range(runs))
    print(f"N = {n}, d = {d}", flush=True)
    return {name: float(np.mean([run[name] for run in found])) for name in found[0]}


def compute(runs: int, draws: int, rows: Sequence[int], dimensions: Sequence[int]) -> kit.Results:
    """Type-II error by rows, dimension and test."""
    return {str(n): {str(d): type_two(n, d, runs, draws) for d in dimensions} for n in rows}


def lines(errors: kit.Results) -> list[kit.Line]:
    made = []
    for n, by_dimension in errors.items():
        for d, found in by_dimension.items():
            printed = PRINTED.get(n, {}).get(d)
            shown = {name: kit.decimal(error) for name, error in found.items()}
            made.append(
                kit.Line(
                    f"N = {n}, d = {d}",
                    "figure only",
                    "" if printed is None else kit.decimal(printed),
                    f"permuted {shown[PERMUTED]}; Algorithm 1 {shown[ALGORITHM]}",
                    f"{shown[ADAPTIVE]} (same kernel {shown[REDRAWN]}, oracle {shown[ORACLE]})",
                )
            )
    return made


def picture(errors: kit.Results) -> Figure:
    figure, axes = kit.canvas(len(errors), size=(4.2, 3.4))
    with kit.styled():
        for ax, (n, by_dimension) in zip(axes[0], errors.items(), strict=True):
            for name, style in STYLES.items():
                found = {
                    d: PRINTED.get(n, {}).get(d) if name == "printed" else errors_at[name]
                    for d, errors_at in by_dimension.items()
                }
                label = "printed by the published code" if name == "printed" else name
                ax.plot([*map(int, found)], [*found.values()], label=label, ms=4.5, lw=1.4, **style)
            ax.set_title(f"N = {n}")
            ax.set_xlabel("dimension of X")
            ax.set_ylim(-0.03, 1.03)
            ax.set_xticks([*map(int, by_dimension)])
        axes[0, 0].set_ylabel("type-II error at level .05")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def describe(errors: kit.Results, sizes: Mapping[str, Any]) -> kit.Item:
    n, d = str(sizes["rows"][0]), str(sizes["dimensions"][-1])
    last = errors[n][d]
    off = (
        max(
            abs(found[PERMUTED] - PRINTED[rows][dimension])
            for rows, by_dimension in errors.items()
            for dimension, found in by_dimension.items()
            if dimension in PRINTED.get(rows, {})
        )
        if set(errors) & set(PRINTED)
        else 0.0
    )
    noise = 2 * math.sqrt(0.25 / sizes["runs"] + 0.25 / 1_000)
    return kit.Item(
        title="Figure 3. Type-II error against the dimension of X",
        claim="The test misses more as the dimension grows and less as rows are added.",
        settings={
            "design": "x normal in d dimensions, truth sigmoid(sum of x), the model lacks the last",
            "runs a cell": sizes["runs"],
            "draws": sizes["draws"],
            "paper's kernel": "exp(-df^2 / 25) exp(-.04 |dx|^2); residuals permuted, not centred",
        },
        lines=lines(errors),
        finding=f"With the null of the published code our errors are within {kit.decimal(off)} of "
        f"the printed ones in every cell (binomial error at {sizes['runs']} and 1,000 runs: up to "
        f"{kit.decimal(noise)}). They are the price of one wide kernel, and with that kernel an "
        f"exact null misses even more ({kit.decimal(last[REDRAWN])} at N = {n}, d = {d}): the "
        "overall mean of the residuals then dominates the statistic, which permuting holds fixed. "
        "The cure is not another null but more kernels. The adaptive test, exact, "
        f"misses {kit.decimal(last[ADAPTIVE])} at N = {n}, d = {d}; the oracle, which looks at the "
        f"trend along the missing covariate alone, {kit.decimal(last[ORACLE])}. That trend is one "
        "of the places the dictionary holds for every covariate, so this design suits it; the "
        "power study has thirteen others.",
        readings=[
            kit.Reading(
                "Which null made the figure?",
                "The supplement: Algorithm 1, residuals drawn with replacement. The published "
                "code: residuals permuted, each used once.",
                f"The figure is the code's. With Algorithm 1 as written the error at N = "
                f"{n}, d = {d} is {kit.decimal(last[ALGORITHM])}, with "
                f"permutation {kit.decimal(last[PERMUTED])}.",
                "Both nulls on the same samples and kernel, above. A mean of the residuals that "
                "is not 0 stays in every permutation, so its share of the statistic cancels; "
                "drawing with replacement lets it vary and hides the rest.",
            )
        ],
        drawn="Type-II error against dimension for 500 and 1,000 rows, by test.",
    )


STUDY = kit.Study("figure3", compute, describe, picture, FULL, QUICK, TINY)

if __name__ == "__main__":
    kit.main(STUDY)
