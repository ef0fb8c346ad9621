"""The housing survey: models that assign probabilities of ownership, and the number they are for.

Behind figures 1 and 2, which differ in the models, the covariate and the number only.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

import itrust as it
import kit
from itrust import figures

PERSON = ("HHCITSHP", "HHGRAD", "HHSEX", "METRO", "HHMAR", "NUMPEOPLE", "DIVISION")
INPUTS = ("HHAGE", "HINCP", "BLACK", *PERSON)
SCORES = ("accuracy", "Brier score", "ECE")
HOUSEHOLDS = 48_660
FULL = {"splits": 200, "audited": 4_000, "draws": 199}
QUICK = {"splits": 8, "audited": 2_000, "draws": 99}
TINY = {"splits": 2, "audited": 300, "draws": 39, "households": 2_000}
# The paper does not test here. Its widths elsewhere: gamma .5 on age in tens of years (COMPAS), 25
# on race as 0 and 1 (this survey, Table 1).
WIDTH, GAMMAS = 0.1, {"age": 0.5, "black": 25.0}
Printed = Mapping[str, Mapping[str, str]]  # by model and quantity


@functools.cache
def survey() -> dict[str, np.ndarray]:
    """The columns as the published code reads them: integer codes, nothing scaled."""
    table = it.datasets.ahs2019()
    return {name: table[name].to_numpy() for name in table.column_names}


@dataclass(frozen=True)
class Experiment:
    """Models on one split after another, judged by scores, by their number and by the tests."""

    title: str
    claim: str
    models: Mapping[str, tuple[ClassifierMixin, tuple[str, ...]]]  # with the inputs of each
    held_out: float
    covariate: str  # X of the tests: what the number is about
    digits: int  # of the paper's number
    numbers: Mapping[str, str]  # tasks by their names; the first one is the paper's
    paper: Printed
    published: Printed  # by the published code, executed again; it keeps no numbers itself
    published_splits: int
    households: int = HOUSEHOLDS  # the first rows of the file; fewer in tests

    @functools.cached_property
    def truths(self) -> dict[str, float]:
        """Every number with labels in place of probabilities, on all rows."""
        labels = survey()["OWNER"][: self.households].astype(float)
        everyone = self.sample(labels, np.arange(labels.size))
        return {
            name: it.tasks.parse(formula).evaluate(everyone, draws=19, rng=0).plugin
            for name, formula in self.numbers.items()
        }

    def predictions(self, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Probabilities of every model on the rows of this split that it was not fitted on."""
        data = survey()
        rows = np.arange(self.households)
        train, test = train_test_split(rows, test_size=self.held_out, random_state=seed)
        found = {}
        for name, (model, inputs) in self.models.items():
            x = np.column_stack([data[column] for column in inputs]).astype(float)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # as published
                fitted = clone(model).fit(x[train], data["OWNER"][train])
            found[name] = fitted.predict_proba(x[test])[:, 1]
        return found, test

    def sample(self, p: np.ndarray, rows: np.ndarray) -> it.Sample:
        """Labels, probabilities and X, with X as the number's formula names it."""
        data = survey()
        x = {
            "age": {"age": data["HHAGE"][rows]},
            "black": {"black": np.where(data["BLACK"][rows] == 1, "yes", "no")},
        }[self.covariate]
        return it.Sample(data["OWNER"][rows], p, x)

    def papers_sample(self, p: np.ndarray, rows: np.ndarray) -> it.Sample:
        """The same with X as the published code would have it: tens of years, or 0 and 1."""
        data = survey()
        x = {"age": data["HHAGE"][rows] / 10, "black": data["BLACK"][rows]}[self.covariate]
        return it.Sample(data["OWNER"][rows], p, {self.covariate: x.astype(float)})

    def realisation(self, audited: int, draws: int, seed: int) -> dict[str, dict[str, float]]:
        """Scores and number on all held-out rows; the tests on some labelled ones."""
        predictions, test = self.predictions(seed)
        few = np.random.default_rng([seed, 1]).choice(test.size, audited, replace=False)
        found = {}
        for name, p in predictions.items():
            whole, some = self.sample(p, test), self.sample(p[few], test[few])
            papers = self.papers_sample(p[few], test[few])
            tested = kit.PapersTest.of(papers, WIDTH, GAMMAS[self.covariate], draws, seed)
            found[name] = {
                "accuracy": float(np.mean((p > 0.5) == whole.y)),
                "Brier score": it.scores.brier(whole),
                "ECE": it.scores.ece(whole, it.scores.EqualWidth(10)),
                "permuted": tested.permuted <= kit.LEVEL,
                "Algorithm 1": tested.algorithm <= kit.LEVEL,
                "adaptive": kit.adaptive_pvalue(some, draws, seed) <= kit.LEVEL,
            }
            for number, formula in self.numbers.items():
                task = it.tasks.parse(formula)
                audit = task.evaluate(some, draws=draws, rng=seed)
                found[name] |= {
                    number: task.evaluate(whole, draws=19, rng=0).plugin,
                    f"{number}: bias": audit.bias,
                    f"{number}: half width": (audit.upper - audit.lower) / 2,
                    f"{number}: flagged": audit.pvalue <= kit.LEVEL,
                }
        return found

    def compute(
        self, splits: int, audited: int, draws: int, households: int = HOUSEHOLDS
    ) -> kit.Results:
        """Every quantity of every model, one value a split."""
        some = replace(self, households=households)
        run = functools.partial(some.realisation, audited, draws)
        found = kit.each(run, range(splits))
        models = {
            name: {key: [part[name][key] for part in found] for key in found[0][name]}
            for name in self.models
        }
        return {"truth": some.truths, "models": models}

    def settings(self, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """How it was made, for the reader."""
        unit, source = {
            "age": ("age / 10", "figure 4"),
            "black": ("race as 0 and 1", "Table 1 on this survey"),
        }[self.covariate]
        return {
            "data": f"American Housing Survey 2019, {HOUSEHOLDS:,} households, "
            f"{self.held_out:.0%} held out",
            "splits": sizes["splits"],
            "labelled rows of a test": sizes["audited"],
            "draws": sizes["draws"],
            "paper's kernel": f"w = {WIDTH}, gamma = {GAMMAS[self.covariate]:g} on {unit} (as in "
            f"its {source}; the paper does not test here)",
        }

    def item(
        self, results: kit.Results, sizes: Mapping[str, Any], finding: str, **told: Any
    ) -> kit.Item:
        """What came out, beside the paper and its published code; `told` are fields of `Item`."""
        return kit.Item(
            title=self.title,
            claim=self.claim,
            settings=self.settings(sizes),
            columns={"printed": f"Published code, run again ({self.published_splits} splits)"},
            lines=self.lines(results),
            finding=finding,
            **told,
        )

    def lines(self, results: kit.Results) -> list[kit.Line]:
        """Side by side, by model and quantity."""
        lines = []
        for name, values in values_of(results).items():
            claimed, theirs = self.paper.get(name, {}), self.published.get(name, {})
            lines += [
                kit.Line(
                    f"{name}: {score}",
                    claimed.get(score, "not shown"),
                    theirs.get(score, ""),
                    kit.decimal(values[score].mean(), 4),
                )
                for score in SCORES
            ]
            for k, number in enumerate(self.numbers):
                places = self.digits if k == 0 else 4
                mean, sd = values[number].mean(), kit.spread(values[number])
                bias, half = (values[f"{number}: {key}"].mean() for key in ("bias", "half width"))
                lines.append(
                    kit.Line(
                        f"{name}: {number} (truth {kit.decimal(results['truth'][number], places)})",
                        claimed.get(number, "not shown"),
                        theirs.get(number, ""),
                        f"{kit.decimal(mean, places)} (sd {kit.decimal(sd, places)})",
                        f"bias {kit.signed(bias, places)} ± {kit.decimal(half, places)}; "
                        f"flagged in {kit.share(values[f'{number}: flagged'])} of audits",
                    )
                )
            lines.append(
                kit.Line(
                    f"{name}: rejected given {self.covariate}",
                    "not tested",
                    "",
                    f"permuted {kit.share(values['permuted'])}, "
                    f"Algorithm 1 {kit.share(values['Algorithm 1'])}",
                    kit.share(values["adaptive"]),
                )
            )
        return lines


def values_of(results: kit.Results) -> dict[str, dict[str, np.ndarray]]:
    """Arrays over splits, by model and quantity."""
    return {
        name: {key: np.array(values) for key, values in quantities.items()}
        for name, quantities in results["models"].items()
    }


def picture(results: kit.Results) -> Figure:
    """Histograms over splits: three scores, and the paper's number with its truth."""
    found = values_of(results)
    number, truth = next(iter(results["truth"].items()))
    figure, axes = kit.canvas(4, size=(3.0, 2.8))
    with kit.styled():
        for ax, key in zip(axes[0], (*SCORES, number), strict=True):
            values = [model[key] for model in found.values()]
            low, high = min(v.min() for v in values), max(v.max() for v in values)
            edges = np.linspace(low, high, 41)
            for k, (name, part) in enumerate(zip(found, values, strict=True)):
                ax.hist(
                    part,
                    edges,
                    color=figures.CYCLE[k + 1],
                    alpha=0.35,
                    histtype="stepfilled",
                    label=name,
                )
                ax.hist(part, edges, color=figures.CYCLE[k + 1], histtype="step", lw=1.2)
            ax.set_title(key)
            ax.set_yticks([])
            ax.spines["left"].set_visible(False)
            ax.locator_params(axis="x", nbins=4)
        axes[0, 3].axvline(truth, color=figures.INK, ls="--", lw=1.2, label="truth")
        figure.legend(*axes[0, 3].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def study(
    name: str,
    experiment: Experiment,
    describe: Callable[[kit.Results, Mapping[str, Any]], kit.Item],
) -> kit.Study:
    """The study of one experiment, at the sizes of both."""
    return kit.Study(name, experiment.compute, describe, picture, FULL, QUICK, TINY)
