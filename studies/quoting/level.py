"""Pieces of studies/pages/levels.json, for its page and the comparison of nulls."""

from __future__ import annotations

from scipy.stats import binomtest

from quoting.kit import Results, Rows, Shown, fixed, piece, share, table, where

LEVEL, DOUBT = 0.05, 0.001
EXACT, FLIPS = "Bernoulli (exact)", "Rademacher"
NAMED = "the same, `cluster=` named"
BESIDE = {
    "(b) tight clusters at f = .5, rest at .01, n = 500": "tight clusters",
    "(c) rare events, f ~ .02, n = 500": "rare events",
    "(e) n = 30": "n = 30",
}
DRAWN = {
    EXACT: ("`Bernoulli`", "labels from the probabilities"),
    FLIPS: ("`Rademacher`", "signs of residuals flipped"),
    "Spectral": ("`Spectral`", "none: a limit law"),
    "Algorithm 1": (
        "`ResidualBootstrap` (Algorithm 1)",
        "residuals of other rows, with replacement",
    ),
    "permuted": ("`Permutation()`", "residuals in another order"),
    "permuted, centred": ("`Permutation(centred=True)`", "the same, less their mean"),
}


def judged(runs: int) -> Shown:
    """A share of rejections, bold where it cannot be .05."""

    def shown(value: float) -> str:
        excluded = binomtest(round(value * runs), runs, LEVEL).pvalue < DOUBT
        return f"**{share(value)}**" if excluded else share(value)

    return shown


def by_null(found: Results, name: str, show: Shown) -> str:
    rows: Rows = found["tables"][name]["rows"]
    columns = {"design": str} | {key: show for key in rows[0] if key != "design"}
    return table(rows, columns, {"design": ""})


@piece("levels", "calibrated")
def calibrated(found: Results) -> str:
    return by_null(found, "calibrated", judged(found["tables"]["calibrated"]["runs"]))


@piece("levels", "shifted")
def shifted(found: Results) -> str:
    return by_null(found, "shifted", share)


@piece("levels", "broken")
def broken(found: Results) -> str:
    return by_null(found, "broken", judged(found["tables"]["broken"]["runs"]))


@piece("levels", "warned")
def warned(found: Results) -> str:
    heads = {"design": "", "warned": "share of runs that warn"}
    rows = found["tables"]["warned"]["rows"]
    return table(rows, {"design": str, "warned": fixed(3)}, heads)


@piece("levels", "nulls side by side")
def side_by_side(found: Results) -> str:
    """One row a null: its level in three designs, and its power."""
    calibrated, (shifted,) = (found["tables"][name]["rows"] for name in ("calibrated", "shifted"))
    rows = [
        {"null": name, "what a draw is": draw}
        | {title: where(calibrated, design=design)[key] for design, title in BESIDE.items()}
        | {"power, shift +.12": shifted[key]}
        for key, (name, draw) in DRAWN.items()
    ]
    texts = dict.fromkeys(("null", "what a draw is"), str)
    return table(rows, texts | {name: share for name in rows[0] if name not in texts})


@piece("levels", "units, signs flipped")
def units_flipped(found: Results) -> str:
    return share(where(found["tables"]["broken"]["rows"], design=NAMED)[FLIPS])


@piece("levels", "units, labels redrawn")
def units_redrawn(found: Results) -> str:
    return share(where(found["tables"]["broken"]["rows"], design=NAMED)[EXACT])
