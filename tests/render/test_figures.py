"""Figures are drawn from kept data, into any axes, with labels that come from the columns."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

import itrust as it
from itrust import figures
from itrust._core import InputError, Result
from itrust.render import document_of

PAGE = Path(it.__file__).parent / "render" / "page" / "page.css"
HOSTILE = "$x_{1}$ <script> " + "é" * 120


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def town() -> it.Sample:
    return it.simulate.survey(900, rng=0).sample


def texts(figure) -> str:
    found = figure.findobj(mpl.text.Text)
    return "\n".join(text.get_text() for text in found if text.get_visible())


FEW = {"draws": 49, "rng": 0}
MAKERS = {
    "reliability": it.scores.reliability_curve,
    "null": lambda s: it.klce_test(s, draws=99, rng=0),
    "curve": lambda s: it.bias_curve(s, "age", **FEW),
    "curves": lambda s: it.bias_curve(s, "age", "region", **FEW),
    "map": lambda s: it.bias_map(s, "age", "income", points=10, **FEW),
    "groups": lambda s: it.bias_groups(s, "region", **FEW),
    "slices": lambda s: it.bias_slices(s, **FEW),
}


def drawn(name, sample, ax=None):
    settings = {"sample": sample} if name == "reliability" else {}
    return MAKERS[name](sample).plot(ax, **settings)


SIGNED = {"reliability", "curve", "curves", "map", "groups"}


@pytest.mark.parametrize("name", MAKERS)
def test_every_display_draws_alone_and_into_given_axes(name, town, tmp_path):
    display = drawn(name, town)
    display.figure_.savefig(tmp_path / "alone.png", dpi=40)
    figure, ax = plt.subplots()
    into = drawn(name, town, ax)
    assert into.figure_ is figure
    assert into.ax_ is ax
    figure.savefig(tmp_path / "given.png", dpi=40)
    assert (tmp_path / "alone.png").stat().st_size > 2_000
    if name in SIGNED:
        assert "model underestimates" in texts(display.figure_)
        assert "model overestimates" in texts(display.figure_)


def test_drawing_again_computes_nothing(town, monkeypatch):
    kept = {name: drawn(name, town) for name in MAKERS}

    def refuse(*_, **__):
        raise AssertionError("computed while drawing")

    for module in (
        "bias.averages.average_all",
        "engines.Engine.run",
        "calibration.scores.reliability_curve",
    ):
        monkeypatch.setattr(f"itrust.{module}", refuse)
    monkeypatch.setattr("itrust.bias.averages.average_all", refuse)
    for display in kept.values():
        assert display.plot() is display


def test_labels_come_from_the_columns(town):
    display = drawn("map", town)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("age", "income")
    assert "region = south" in texts(drawn("curves", town).figure_)
    assert display.figure_.axes[1].get_ylabel().endswith("model underestimates")


def test_empty_regions_stay_blank_and_miscalibrated_ones_are_marked():
    sample = it.simulate.survey(4_000, rng=0).sample
    display = it.bias_map(sample, "age", "region", draws=99, rng=0).plot()
    markers = {line.get_marker() for line in display.ax_.lines if line.get_xdata().size}
    assert markers == {"^", "v"}  # signs can be told apart without colour
    blank = it.bias_map(sample, "age", "income", draws=49, rng=0).plot()
    mesh = blank.ax_.collections[0]
    assert (
        np.ma.getmaskarray(mesh.get_array()).ravel().sum()
        == np.isnan(blank.result.values).sum()
        > 0
    )


def test_what_is_shown_has_the_colours_of_the_page():
    style = PAGE.read_text()
    assert f"--low: {figures.LOW}; --high: {figures.HIGH};" in style
    steps = " ".join(f"--d{k}: {color};" for k, color in enumerate(figures.style.SIZES))
    assert steps in style


def test_signs_are_told_apart_by_marker_in_a_forest():
    rng = np.random.default_rng(0)
    g = np.repeat(["too low", "too high", "right"], 300)
    p = np.full(900, 0.5)
    shift = np.repeat([0.2, -0.2, 0.0], 300)
    sample = it.Sample(rng.random(900) < p + shift, p, {"g": g})
    display = it.bias_groups(sample, "g", draws=99, rng=0).plot()
    markers = [line.get_marker() for line in display.ax_.lines if line.get_marker() != "None"]
    assert sorted(markers) == ["^", "o", "v"]


def test_names_from_the_users_file_are_text_and_nothing_else(tmp_path):
    rng = np.random.default_rng(0)
    x = {HOSTILE: rng.normal(size=300), "g": rng.choice([HOSTILE, "b"], 300)}
    y = rng.random(300) < np.where(x["g"] == "b", 0.5, 0.1)
    sample = it.Sample(y, np.full(300, 0.5), x)
    for display in (
        it.bias_curve(sample, HOSTILE, "g", draws=19, rng=0).plot(),
        it.bias_map(sample, HOSTILE, "g", points=8, draws=19, rng=0).plot(),
        it.bias_groups(sample, "g", draws=19, rng=0).plot(),
        it.bias_slices(sample, draws=39, rng=0).plot(),
    ):
        display.figure_.savefig(tmp_path / "x.png", dpi=40)
        named = [t for t in display.figure_.findobj(mpl.text.Text) if "$x" in t.get_text()]
        assert named, type(display.result).__name__  # the name is there, dollars and all
        assert not any(text.get_parse_math() for text in named)
        assert not any(HOSTILE in text.get_text() for text in named)  # cut


def test_a_legend_has_groups_whose_name_begins_with_an_underscore():
    rng = np.random.default_rng(0)
    x = {"age": rng.normal(size=300), "_g": rng.choice(["a", "b"], 300)}
    sample = it.Sample(rng.random(300) < 0.5, np.full(300, 0.5), x)
    ax = Figure().subplots()
    it.bias_curve(sample, "age", "_g", draws=19, rng=0).plot(ax)
    legend = ax.get_legend()
    assert [text.get_text().strip() for text in legend.get_texts()] == ["_g = a", "_g = b"]


RESULTS = {
    "test": lambda s: it.klce_test(s, draws=99, rng=0),
    "curve": lambda s: it.bias_curve(s, "age", draws=49, rng=0),
    "map": lambda s: it.bias_map(s, "age", "income", points=8, draws=49, rng=0),
    "groups": lambda s: it.bias_groups(s, "region", draws=49, rng=0),
    "slices": lambda s: it.bias_slices(s, draws=49, rng=0),
    "audit": lambda s: it.audit(s, draws=79, rng=0, charts=False),
    "bias": lambda s: it.local_bias(s, draws=19, rng=0),
    "task": lambda s: it.tasks.mean("age").matters_at(2.0).evaluate(s, draws=49, rng=0),
    "validation": lambda s: it.scores.validation(s, draws=19, rng=0),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_knows_its_display(name, town, monkeypatch):
    result = RESULTS[name](town)
    for module in ("bias.slices.average_all", "engines.Engine.run"):
        monkeypatch.setattr(f"itrust.{module}", None)
    figure, ax = plt.subplots()
    display = figures.draw(result, ax=ax)
    assert display.result is result
    assert display.figure_ is figure
    assert figures.draw(result).figure_ is not figure


def test_what_has_no_picture_says_so(town):
    with pytest.raises(InputError, match="a Sample has no picture"):
        figures.draw(town)


def test_an_observed_value_far_off_leaves_the_draws_readable(town):
    display = it.klce_test(town, draws=99, rng=0).plot()
    low, high = display.ax_.get_xlim()
    drawn = display.result.null_distribution
    assert high - low < 4 * np.ptp(drawn)


def test_a_formula_has_no_draws_to_show(town):
    result = it.klce_test(town, it.kernels.LocalKernel(), null=it.nulls.Spectral())
    with pytest.raises(InputError, match="has a formula and no draws to show"):
        result.plot()


def test_settings_of_matplotlib_are_left_alone(town):
    before = dict(mpl.rcParams)
    drawn("groups", town)
    assert dict(mpl.rcParams) == before


def test_nothing_found_is_a_picture_too():
    rng = np.random.default_rng(0)
    sample = it.Sample(rng.random(100) < 0.5, np.full(100, 0.5))
    table = it.bias_slices(sample, draws=39, rng=0)
    assert len(table) == 0
    assert "none stands out; looked at no region: too few rows" in str(table)
    assert "no rule stands out" in texts(table.plot().figure_)


def test_axes_must_be_axes(town):
    with pytest.raises(InputError, match="ax must be matplotlib Axes"):
        it.scores.reliability_curve(town).plot(plt.figure())


def test_long_group_names_can_be_told_apart():
    rng = np.random.default_rng(0)
    x = {
        "a long name of a covariate": rng.choice(["one long level", "another long level"], 400),
        "another long name": rng.choice(["yes", "no"], 400),
    }
    sample = it.Sample(rng.random(400) < 0.5, np.full(400, 0.5), x)
    display = it.bias_groups(sample, *x, draws=19, rng=0).plot()
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert len(set(labels)) == len(labels)
    few = display.result.plot(max_groups=3)
    assert "5 more groups not drawn" in texts(few.figure_)


def test_a_single_flagged_point_is_drawn():
    sample = it.simulate.survey(4_000, rng=0).sample
    display = it.bias_curve(sample, "age", "region", draws=99, rng=0).plot()
    marked = [line for line in display.axes_[1].lines if line.get_marker() in "^v"]
    assert len(marked) == 2
    assert all(line.get_linestyle() == "None" for line in marked)


def test_curves_in_small_axes_of_a_figure_keep_their_room(town):
    figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
    for ax in axes:
        it.bias_curve(town, "age", by="region", draws=19, rng=0).plot(ax=ax)
    figure.draw_without_rendering()
    assert all(ax.get_position().width > 0.2 for ax in axes)


def test_curve_and_band_break_where_there_is_no_estimate():
    rng = np.random.default_rng(0)
    age = np.concatenate([rng.uniform(20, 30, 300), rng.uniform(60, 70, 300)])
    sample = it.Sample(rng.random(600) < 0.5, np.full(600, 0.5), {"age": age})
    display = it.bias_curve(sample, "age", draws=19, rng=0).plot()
    values = display.result.parts[0].values
    assert np.isnan(values).any()
    (band,) = display.ax_.collections
    assert len(band.get_paths()) == 2


def test_a_comparison_has_a_panel_for_every_task():
    town = it.simulate.survey(500, rng=0)
    x = {"age": town.sample.column("age").values}
    models = {
        "model": it.Sample(town.sample.y, town.sample.p, x),
        "truth": it.Sample(town.sample.y, town.truth, x),
    }
    found = it.compare(models, ["mean(age)", "prevalence(age > 50)"], draws=39, rng=0)
    display = found.plot()
    assert len(display.axes_) == 2
    assert "mean(age)" in texts(display.figure_)
    assert "accuracy" in display.ax_.get_yticklabels()[0].get_text()
    figure, ax = plt.subplots()
    assert found.plot(ax).figure_ is figure


def test_every_kind_of_result_has_a_document():
    def kinds(kind):
        return {kind, *(found for each in kind.__subclasses__() for found in kinds(each))}

    whole = [kind for kind in kinds(Result) if not kind.__subclasses__()]
    assert len(whole) >= 20
    without = [kind for kind in whole if document_of.dispatch(kind) is document_of.dispatch(object)]
    assert without == []


def test_local_bias_marks_the_points_that_are_shown(town):
    bias = it.local_bias(town, draws=99, rng=0)
    display = bias.plot()
    drawn = sum(len(found.get_offsets()) for found in display.ax_.collections)
    assert drawn == bias.known.sum()
    plt.close("all")


def test_the_tolerance_of_a_task_is_in_the_picture(town):
    task = it.tasks.mean("age").matters_at(5.0).evaluate(town, draws=49, rng=0)
    display = task.plot()
    low, high = display.ax_.get_xlim()
    assert low < -5 < 5 < high
    assert "tolerance 5" in display.ax_.get_xlabel()
    plt.close("all")
