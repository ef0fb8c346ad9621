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


def estimated():
    labelled = sample()
    columns = {"age": labelled.column("age").values}
    return it.tasks.mean("age").estimate(it.Population(labelled.p, columns), labelled.only("age"))


def test_every_row_is_drawn_with_its_name_and_number():
    result = estimated()
    display = result.plot()
    assert "estimate, 95 % interval" in display.ax_.get_xlabel()
    labels = [text.get_text().split("\n")[0] for text in display.ax_.get_yticklabels()]
    assert labels == [
        WAYS[name] + " (recommended)" * (name == result.best_way) for name in result.ways
    ]
    drawn = [line.get_xdata()[0] for line in display.ax_.lines if line.get_marker() == "o"]
    assert drawn == pytest.approx([way.value for way in result.ways.values()])
    mpl.pyplot.close(display.figure_)


def test_what_is_a_few_numbers_by_name_has_no_picture():
    two = it.compare({"one": sample(), "two": sample().with_predictions([0.5] * 400)}, **FEW)
    for result in (two, it.detectable(sample(), simulations=0, **FEW)):
        with pytest.raises(it.InputError, match="has no picture"):
            result.plot()


def test_an_audit_of_classes_shows_the_mean_bias_of_each():
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 300)
    y = [int(np.random.default_rng([1, k]).choice(3, p=row)) for k, row in enumerate(p)]
    rows = it.MulticlassSample(y, p, {"age": np.arange(300.0)})
    display = it.audit(rows, draws=79, rng=0, charts=False).plot()
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["0", "1", "2"]
    assert "3 classes" in display.figure_.get_suptitle()
    mpl.pyplot.close("all")


def test_a_number_that_is_not_known_is_a_dash():
    result = estimated()
    labelled = replace(result.labelled, value=math.nan)
    display = replace(result, labelled=labelled).plot()
    assert "-" in [text.get_text() for text in display.ax_.texts]
    mpl.pyplot.close("all")
