"""Results that are names and numbers draw themselves, one row each."""

import math
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

import itrust as it
from itrust.render.text.tasks import WAYS

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
            classes,
            "adjusted p-value",
            lambda r: [str(r.together.name), *(str(part.name) for part in r.classes)],
            lambda r: [r.together.pvalue, *(part.pvalue for part in r.classes)],
        ),
        (
            estimated,
            "estimate, 95 % interval",
            lambda r: [WAYS[name] + " (recommended)" * (name == r.best_way) for name in r.ways],
            lambda r: [way.value for way in r.ways.values()],
        ),
        (compared, "Brier score", lambda r: [m.name for m in r], lambda r: [m.brier for m in r]),
    ],
    ids=["detectable", "size", "classes", "estimate", "recalibrations"],
)
def test_every_row_is_drawn_with_its_name_and_number(make, label, names, values):
    result = make()
    display = result.plot()
    assert label in display.ax_.get_xlabel()
    labels = [text.get_text().split("\n")[0] for text in display.ax_.get_yticklabels()]
    assert labels == names(result)
    drawn = [line.get_xdata()[0] for line in display.ax_.lines if line.get_marker() == "o"]
    wanted = [value if math.isfinite(value) else math.nan for value in values(result)]
    assert drawn == pytest.approx(wanted, nan_ok=True)
    mpl.pyplot.close(display.figure_)


def test_shifts_that_are_never_seen_are_words():
    found = it.detectable(sample(), simulations=0, **FEW)
    assert not math.isfinite(found.worst.shift)
    display = found.plot()
    assert "not seen" in [text.get_text() for text in display.ax_.texts]
    mpl.pyplot.close(display.figure_)


def test_several_scores_share_their_rows_and_given_axes_take_the_first():
    table = compared()
    display = table.plot()
    assert [ax.get_xlabel() for ax in display.axes_] == [
        "Brier score",
        "ECE",
        "p given the covariates",
    ]
    _, ax = mpl.pyplot.subplots()
    assert table.plot(ax=ax).axes_ == [ax]
    mpl.pyplot.close("all")


def test_a_comparison_without_tasks_shows_scores():
    two = it.compare({"one": sample(), "two": sample().with_predictions([0.5] * 400)}, **FEW)
    display = two.plot()
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["one", "two"]
    assert len(display.axes_) == 3
    mpl.pyplot.close("all")


def test_an_audit_of_classes_shows_the_mean_bias_of_each():
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 300)
    y = [int(np.random.default_rng([1, k]).choice(3, p=row)) for k, row in enumerate(p)]
    rows = it.MulticlassSample(y, p, {"age": np.arange(300.0)})
    display = it.audit(rows, draws=79, rng=0, charts=False).plot()
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["0", "1", "2"]
    assert "for all classes at once" in display.ax_.get_xlabel()
    mpl.pyplot.close("all")


def test_a_number_that_is_not_known_is_a_dash():
    table = compared()
    display = replace(table, recalibrations=(replace(table[0], ece=math.nan),)).plot()
    assert "-" in [text.get_text() for text in display.axes_[1].texts]
    mpl.pyplot.close("all")
