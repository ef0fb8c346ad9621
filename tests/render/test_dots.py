"""Results that are names and numbers draw themselves, one row each."""

import math

import matplotlib as mpl
import numpy as np
import pytest

import itrust as it

mpl.use("Agg")
FEW = {"draws": 39, "rng": 0}


def sample():
    return it.simulate.survey(400, rng=0).sample


def classes():
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 200)
    y = [int(np.random.default_rng([1, k]).choice(3, p=row)) for k, row in enumerate(p)]
    return it.multiclass_test(it.MulticlassSample(y, p, np.arange(200.0)), **FEW)


def compared():
    fit, test = sample().split([0.5, 0.5], rng=0)
    return it.recalibrate.compare([it.recalibrate.Platt()], fit, test, **FEW)


def estimated():
    labelled = sample()
    columns = {"age": labelled.column("age").values}
    return it.tasks.mean("age").estimate(it.Population(labelled.p, columns), labelled.only("age"))


@pytest.mark.parametrize(
    ("make", "label", "names", "values"),
    [
        (
            lambda: it.detectable(sample(), simulations=0, **FEW),
            "smallest bias seen",
            lambda r: [str(region.where) for region in (*r.regions, *r.worst_pairs[:10])],
            lambda r: [region.shift for region in (*r.regions, *r.worst_pairs[:10])],
        ),
        (
            lambda: it.sample_size(sample(), **FEW),
            "rows that show a bias of 0.05",
            lambda r: [*r.by_region],
            lambda r: [*r.by_region.values()],
        ),
        (
            lambda: it.witness_test(sample(), **FEW),
            "p-value",
            lambda r: ["all folds", *(f"fold {k + 1}" for k in range(len(r.parts)))],
            lambda r: [r.pvalue, *(part.pvalue for part in r.parts)],
        ),
        (
            classes,
            "adjusted p-value",
            lambda r: [str(r.together.name), *(str(part.name) for part in r.classes)],
            lambda r: [r.together.pvalue, *(part.pvalue for part in r.classes)],
        ),
        (
            lambda: it.tasks.mean("age").evaluate(sample(), **FEW),
            "bias (with labels",
            lambda r: [r.name],
            lambda r: [r.bias],
        ),
        (
            estimated,
            "mean(age)",
            lambda r: ["plug-in", "recalibrated", "prediction-powered", "labels alone"],  # noqa: ARG005
            lambda r: [way.value for way in r.ways.values()],
        ),
        (compared, "Brier score", lambda r: [m.name for m in r], lambda r: [m.brier for m in r]),
    ],
    ids=["detectable", "size", "witness", "classes", "task", "estimate", "recalibrations"],
)
def test_every_row_is_drawn_with_its_name_and_number(make, label, names, values):
    result = make()
    display = result.plot()
    assert label in display.ax_.get_xlabel()
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == names(result)
    drawn = [line.get_xdata()[0] for line in display.ax_.lines if line.get_marker() == "o"]
    wanted = [value if math.isfinite(value) else math.nan for value in values(result)]
    assert drawn == pytest.approx(wanted, nan_ok=True)
    mpl.pyplot.close(display.figure_)
