"""Pictures of the README, the home page, the guide and the reference: `make pictures`.

Each is drawn by the package, from simulated rows with a fixed seed, so that it comes out alike
every time. Pictures that the code of a page makes stand beside that page; `make pages` makes those.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import itrust as it
from itrust.auditing import Audit
from itrust.bias import LocalBias
from itrust.render.figures import FAINT, STYLE
from itrust.tasks import TaskEstimate

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
DPI = 110
COLOURS = 128
DRAWS = 199
GAP = 'mean(age | region == "south") - mean(age | region == "west")'


class Town:
    """The simulated survey of `itrust demo`, and what was found in it; computed when asked for."""

    sample: it.Sample = it.simulate.survey(2_000, rng=2025).sample

    others: it.Sample = it.simulate.survey(10_000, rng=7).sample

    @property
    def gap(self) -> float:
        """The gap among the others, from their labels."""
        return it.tasks.parse(GAP).evaluate(self.others, rng=0).from_labels

    @cached_property
    def ways(self) -> TaskEstimate:
        """The gap among the others, of whom no label is used."""
        region = self.others.column("region")
        rows = {
            "age": self.others.column("age").values,
            "region": np.take(region.levels, region.values),
        }
        population = it.Population(self.others.p, rows)
        return it.tasks.parse(GAP).estimate(population, labelled=self.sample.only("age", "region"))

    @cached_property
    def bias(self) -> LocalBias:
        """The local bias of all covariates."""
        return it.local_bias(self.sample, draws=DRAWS, rng=0)

    @cached_property
    def audit(self) -> Audit:
        """An audit with one number to report."""
        return it.audit(self.sample, [GAP], draws=DRAWS, rng=0, charts=False)


def first(town: Town) -> Figure:
    """Three panels side by side: looks calibrated, is not, and what it does to a number."""
    figure = plt.figure(figsize=(11.4, 3.7), layout="constrained")
    return _story(town, figure, figure.subfigures(1, 3, width_ratios=(1, 1.25, 1.15)))


def first_narrow(town: Town) -> Figure:
    """The same for telephones, one below the other."""
    figure = plt.figure(figsize=(5.0, 10.4), layout="constrained")
    return _story(town, figure, figure.subfigures(3, 1, height_ratios=(1.3, 1.3, 0.8)))


def _story(town: Town, figure: Figure, panels: Any) -> Figure:
    overall, given, number = (panel.subplots() for panel in panels)
    town.audit.overall.curve.plot(overall)
    overall.get_legend().remove()
    overall.set_title("")
    town.bias.curve("age", by="region").plot(ax=given)
    given.set_title("")
    given.legend(loc="upper right")
    for band in given.collections:
        band.set_alpha(0.09)
    town.ways.plot(ax=number)
    names = ("probabilities\nas they are", "recalibrated", "prediction-\npowered", "labels alone")
    number.set_yticks(range(4), names)
    number.set_xlabel("age of owners, south less west (years)")
    number.axvline(town.gap, color=FAINT, linestyle=":")
    number.set_title("")
    number.annotate(
        " truth", (town.gap, 1), xycoords=("data", "axes fraction"), color=FAINT, fontsize="small"
    )
    titles = (
        "1  Overall, the model passes ...",
        "2  ... but given age and region it does not",
        "3  ... so the gap you publish is wrong",
    )
    for panel, title in zip(panels, titles, strict=True):
        panel.suptitle(title, x=0.03, ha="left", fontweight="bold", fontsize=11)
    return figure


def reliability(town: Town) -> Figure:
    """Observed rates against predictions."""
    figure: Figure = it.scores.reliability_curve(town.sample).plot(sample=town.sample).figure_
    return figure


def null(town: Town) -> Figure:
    """The largest score of redrawn labels, and that of the data."""
    return town.audit.test.plot().figure_  # type: ignore[no-any-return]


def curve(town: Town) -> Figure:
    """Bias along age, by region."""
    return town.bias.curve("age", by="region").plot().figure_  # type: ignore[no-any-return]


def bias_map(town: Town) -> Figure:
    """Bias over age and region."""
    return town.bias.map("age", "region").plot().figure_  # type: ignore[no-any-return]


def groups(town: Town) -> Figure:
    """Bias by region and age group."""
    return town.bias.groups("region", "age").plot().figure_  # type: ignore[no-any-return]


def slices(town: Town) -> Figure:
    """Regions that stand out, with their intervals."""
    return town.bias.slices().plot(max_slices=6).figure_  # type: ignore[no-any-return]


def comparison(town: Town) -> Figure:
    """Two models and one number."""
    chosen = ("age", "region")
    other = it.simulate.survey(2_000, rng=2025, trustworthy=True).sample.only(*chosen)
    models = {"knows income and age": town.sample.only(*chosen), "knows the region, too": other}
    return it.compare(models, [GAP], draws=99, rng=0).plot().figure_  # type: ignore[no-any-return]


def audit(town: Town) -> Figure:
    """An audit on one sheet."""
    return town.audit.plot().figure_  # type: ignore[no-any-return]


def dots(town: Town) -> Figure:
    """One number on rows without labels, estimated in five ways."""
    return town.ways.plot().figure_  # type: ignore[no-any-return]


def points(town: Town) -> Figure:
    """The local bias of all points against their prediction."""
    return town.bias.plot().figure_  # type: ignore[no-any-return]


def task(town: Town) -> Figure:
    """What the model does to one number."""
    return town.audit.tasks[0].plot().figure_  # type: ignore[no-any-return]


def decision(town: Town) -> Figure:
    """What deciding by the prediction is worth, threshold by threshold."""
    found = it.scores.validation(town.sample, draws=1, rng=0)
    return found.plot().figure_  # type: ignore[no-any-return]


def drift(town: Town) -> Figure:
    """What changed from a calibrated model to the one of the demo."""
    before = it.simulate.survey(2_000, rng=3, trustworthy=True).sample
    settings: dict[str, Any] = {"draws": DRAWS, "rng": 0, "charts": False}
    spring, autumn = (it.audit(own, ["mean(age)"], **settings) for own in (before, town.sample))
    found = it.drift(spring, autumn, names=("spring", "autumn"))
    return found.plot().figure_  # type: ignore[no-any-return]


def watch(_: Town) -> Figure:
    """A model in use for 14 weeks, which is miscalibrated in the south from the eighth on."""
    made = it.simulate.survey(3_800, rng=5, trustworthy=True).sample
    region = np.take(made.column("region").levels, made.column("region").values)
    week = np.arange(made.n) // 200 - 4  # the first 1,000 rows are the reference
    shift = 0.2 * ((region == "south") & (week > 7))
    y = np.random.default_rng(0).random(made.n) < np.clip(made.p + shift, 0, 1)
    x = {"age": made.column("age").values, "region": region}

    def rows(held: Any) -> it.Sample:
        return it.Sample(y[held], made.p[held], {name: own[held] for name, own in x.items()})

    found = it.Watch.start(rows(week < 1))
    for number in range(1, 15):
        found = found.update(rows(week == number), name=f"week {number}")
    return found.plot().figure_  # type: ignore[no-any-return]


def robustness(town: Town) -> Figure:
    """What would overturn the evidence against the model of the demo."""
    return it.robustness(town.sample, draws=DRAWS, rng=0).plot().figure_  # type: ignore[no-any-return]


PICTURES: dict[str, Callable[[Town], Figure]] = {
    "first": first,
    "first-narrow": first_narrow,
    "reliability": reliability,
    "null": null,
    "curve": curve,
    "map": bias_map,
    "groups": groups,
    "slices": slices,
    "comparison": comparison,
    "audit": audit,
    "dots": dots,
    "points": points,
    "task": task,
    "decision": decision,
    "drift": drift,
    "watch": watch,
    "robustness": robustness,
}


def draw(folder: Path) -> list[Path]:
    """Draw every picture into a folder, and say which files they are."""
    town, made = Town(), []
    for name, picture in PICTURES.items():
        with mpl.rc_context(STYLE):
            figure = picture(town)
        made.append(folder / f"{name}.png")
        _save(figure, made[-1])
        plt.close(figure)
    return made


def _save(figure: Figure, path: Path) -> None:
    """Write a picture with few colours, which takes a third of the bytes."""
    whole = io.BytesIO()
    figure.savefig(whole, dpi=DPI)
    with Image.open(whole) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    mpl.use("Agg")
    FOLDER.mkdir(exist_ok=True)
    for path in draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
        print(f"{path.name}  {path.stat().st_size // 1000} kB")
