"""Pieces of studies/pages/recalibration.json, for its page and the comparison of methods."""

from __future__ import annotations

from quoting.kit import Results, Rows, fixed, piece, span, table, where

METHODS = {
    "none": ("none", ""),
    "Platt": ("`Platt`", "prediction"),
    "temperature": ("`Temperature`", "prediction"),
    "isotonic": ("`Isotonic`", "prediction"),
    "histogram": ("`HistogramBinning`", "prediction"),
    "BBQ": ("`BBQ`", "prediction"),
    "beta": ("`Beta`", "prediction"),
    "multicalibration": ("`Multicalibration`", "groups"),
    "proportional": ("`ProportionalMulticalibration`", "groups"),
    "Local": ("`Local`", "prediction, covariates"),
}
SETS = ("COMPAS", "Housing", "Adult", "Heart")
LARGE = SETS[:3]


def rows_of(found: Results, name: str) -> Rows:
    return found["tables"][name]["rows"]


def percent(value: float) -> str:
    return f"{100 * value:.0f}"


def local_on_large(found: Results) -> list[dict[str, float]]:
    return [r for r in rows_of(found, "all") if r["method"] == "Local" and r["set"] in LARGE]


@piece("recalibration", "judged")
def judged(found: Results) -> str:
    rows = [
        {
            "setting": row["setting"],
            "best other (rejected)": f"{row['best other']} ({row['its rejected']:.2f})",
            "ratio": row["ratio"],
            "Local rejected, least other": "{rejected:.2f} against {least other:.2f}".format(**row),
            "Brier": f"{row['brier']:+.4f}",
        }
        for row in rows_of(found, "judged")
    ]
    return table(rows, dict.fromkeys(rows[0], str) | {"ratio": fixed(2)})


@piece("recalibration", "left")
def left(found: Results) -> str:
    columns = {"setting": str, "floored": fixed(1), "rejected": fixed(2)}
    return table(rows_of(found, "left"), columns, {"floored": "floored KLCE^2 x 10^6"})


@piece("recalibration", "all")
def everything(found: Results) -> str:
    columns = {
        "method": str,
        "brier": fixed(4),
        "klce2": fixed(1),
        "floored": fixed(1),
        "rejected": fixed(2),
        "seconds": fixed(1),
    }
    heads = {"brier": "Brier", "klce2": "KLCE^2 x 10^6"}
    settings = {(row["set"], row["model"], row["given"]): None for row in rows_of(found, "all")}
    parts = []
    for name, model, given in settings:
        rows = [r for r in rows_of(found, "all") if (r["set"], r["model"]) == (name, model)]
        parts += [f"### {name}, {model} (given {given})", table(rows, columns, heads)]
    return "\n\n".join(parts)


@piece("recalibration", "methods side by side")
def side_by_side(found: Results) -> str:
    """Rejected, and the Brier score, of every method on the four forests."""
    rows = []
    for method, (title, reads) in METHODS.items():
        row = {"method": title, "reads": reads or None}
        for name in SETS:
            own = where(rows_of(found, "all"), set=name, model="forest", method=method)
            rejected = fixed(2, bare=True)(own["rejected"])
            row[f"{name}, forest"] = f"{rejected} ({fixed(4, bare=True)(own['brier'])})"
        rows.append(row)
    return table(rows, dict.fromkeys(rows[0], str))


@piece("recalibration", "Local still rejected")
def still_rejected(found: Results) -> str:
    return span([row["rejected"] for row in local_on_large(found)], percent) + " %"


@piece("recalibration", "rejected where a perfect correction exists")
def left_rejected(found: Results) -> str:
    return span([row["rejected"] for row in rows_of(found, "left")], percent) + " %"


@piece("recalibration", "seconds of Local")
def seconds_of_local(found: Results) -> str:
    return span([row["seconds"] for row in local_on_large(found)], lambda s: f"{s:.1f} s")


@piece("recalibration", "seconds of the others")
def seconds_of_others(found: Results) -> str:
    others = [r for r in rows_of(found, "all") if r["method"] in METHODS and r["method"] != "Local"]
    return f"{max(row['seconds'] for row in others):.1f} s"
