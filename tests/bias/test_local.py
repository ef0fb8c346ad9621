"""The local bias: the paper's estimator, and bands that hold what they promise."""

import numpy as np
import pyarrow.csv
import pytest

import itrust as it
from itrust._core import InputError
from itrust.bias import LocalBias
from itrust.kernels import RBF, Constant, Delta, LocalKernel
from oracles import plausible


def town(n: int = 800, rng: int = 0) -> it.Sample:
    return it.simulate.survey(n, rng=rng).sample


KERNEL = LocalKernel(RBF(0.2), {"income": RBF(20_000), "age": RBF(8), "region": Delta()})


def test_values_equal_the_papers_formula_by_a_double_loop():
    sample = town(120)
    found = it.local_bias(sample, kernel=KERNEL, cut=0.0, min_neighbours=1, draws=19, rng=0)
    income, age, region = (c.values for c in sample.columns)
    for i in range(sample.n):
        above = below = 0.0
        for j in range(sample.n):
            k = np.exp(
                -((sample.p[i] - sample.p[j]) ** 2) / (2 * 0.2**2)
                - (income[i] - income[j]) ** 2 / (2 * 20_000**2)
                - (age[i] - age[j]) ** 2 / (2 * 8**2)
            ) * (region[i] == region[j])
            above, below = above + k * sample.residuals[j], below + k
        assert found.values[i] == pytest.approx(above / below)
        assert found.witness[i] == pytest.approx(above / sample.n)


def test_one_kernel_for_all_gives_the_mean_residual_everywhere():
    sample = town(300)
    everyone = LocalKernel(Constant(), Constant())
    found = it.local_bias(sample, kernel=everyone, draws=19, rng=0)
    assert found.values == pytest.approx(np.full(300, sample.residuals.mean()))
    assert found.size == pytest.approx(np.full(300, 300.0))
    assert found.stderr == pytest.approx(np.full(300, sample.residuals.std() / np.sqrt(300)))


def test_labels_of_the_other_points_are_not_looked_at():
    fit, other = town(800).split([0.5, 0.5], rng=0)
    b = it.local_bias(fit, draws=49, rng=0)
    hidden = it.Population(
        other.p,
        {
            c.name: [c.levels[int(v)] for v in c.values] if c.is_category else c.values
            for c in other.columns
        },
    )
    one, two = b.at(other), b.at(hidden)
    assert np.array_equal(one.values, two.values, equal_nan=True)
    assert np.array_equal(one.band.lower, two.band.lower, equal_nan=True)
    direct = it.local_bias(fit, at=hidden, draws=49, rng=0)
    assert np.array_equal(direct.pvalues, two.pvalues, equal_nan=True)


def test_the_answer_does_not_depend_on_the_order_of_rows():
    sample = town(400)
    order = np.random.default_rng(0).permutation(400)
    one = it.local_bias(sample, kernel=KERNEL, draws=19, rng=0)
    two = it.local_bias(sample.take(order), kernel=KERNEL, draws=19, rng=0)
    assert two.values == pytest.approx(one.values[order], nan_ok=True)
    assert two.stderr == pytest.approx(one.stderr[order], nan_ok=True)


def test_weights_count_as_repeated_rows():
    sample = town(200)
    times = np.random.default_rng(0).integers(1, 4, 200)
    x = {c.name: c.values for c in sample.columns}
    weighted = it.Sample(sample.y, sample.p, x, weights=times)
    repeated = it.Sample(sample.y, sample.p, x).take(np.repeat(np.arange(200), times))
    kernel = LocalKernel(RBF(0.3), RBF([20_000, 10, 1]))
    one = it.local_bias(weighted, kernel=kernel, draws=19, rng=0)
    with pytest.warns(it.AssumptionWarning, match="go together"):
        two = it.local_bias(repeated, at=weighted, kernel=kernel, draws=19, rng=0)
    known = one.known & two.known
    assert one.values[known] == pytest.approx(two.values[known])


def test_points_with_hardly_any_neighbours_say_so():
    sample = it.Sample([0, 1] * 100, [0.5] * 200, {"x": [*range(199), 10_000]})
    b = it.local_bias(sample, kernel=LocalKernel(RBF(0.1), RBF(20.0)), draws=19, rng=0)
    assert not b.known[-1]
    assert np.isnan([b.values[-1], b.stderr[-1], b.pvalues[-1], b.band.upper[-1]]).all()
    assert b.size[-1] == pytest.approx(1.0)
    assert not b.flagged[-1]
    assert "fewer than 20 effective neighbours: 1 point" in str(b)


def test_an_unseen_category_has_no_neighbours():
    other = it.Population([0.5], {"income": [40_000], "age": [50], "region": ["moon"]})
    assert not it.local_bias(town(), draws=19, rng=0).at(other).known.any()


def test_many_rows_have_some_of_them_as_points():
    b = it.local_bias(town(4_500), draws=19, rng=0)
    assert len(b) == 1_000
    assert b.points.p == pytest.approx(b.sample.p[b.rows])


def test_the_seed_is_all_that_matters():
    one, two = (it.local_bias(town(300), draws=49, rng=5) for _ in range(2))
    assert np.array_equal(one.band.upper, two.band.upper, equal_nan=True)
    assert np.array_equal(one.pvalues, two.pvalues, equal_nan=True)


def test_flags_and_null_band_agree():
    b = it.local_bias(town(1_200), draws=199, rng=0)
    outside = (b.values < b.null_band.lower) | (b.values > b.null_band.upper)
    assert (b.flagged <= outside).all()
    assert b.flagged.sum() >= 0.9 * outside.sum()
    assert (b.flagged == (b.band.at_least != 0))[b.known].all()
    assert ((b.band.lower <= b.values) & (b.values <= b.band.upper))[b.known].all()


def test_known_biases_are_found_with_their_sign():
    simulated = it.simulate.survey(4_000, rng=1)
    b = it.local_bias(simulated.sample, draws=199, rng=0)
    right = np.sign(b.values) == np.sign(simulated.bias)
    assert b.flagged.mean() > 0.15
    assert right[b.flagged].mean() > 0.97


def half_wrong(rng, n: int = 400, shift: float = 0.25) -> tuple[it.Sample, np.ndarray]:
    """Right where x < 0.5, too low elsewhere; and the truth."""
    x, p = rng.random(n), rng.uniform(0.2, 0.6, n)
    truth = p + shift * (x > 0.5)
    return it.Sample(rng.random(n) < truth, p, {"x": x}), truth


def smoothed(b: LocalBias, truth: np.ndarray) -> np.ndarray:
    gram = b.kernel.gram(b.points, b.sample.points).block(slice(None), slice(None))
    weights = np.maximum(gram - b.cut, 0)
    return weights @ (truth - b.sample.p) / weights.sum(axis=1)


GRID = it.Population(np.tile([0.3, 0.5], 25), {"x": np.repeat(np.linspace(0.01, 0.99, 25), 2)})
LOCAL = LocalKernel(RBF(0.15), RBF(0.05))


@pytest.mark.slow
def test_no_point_in_the_right_half_is_flagged_more_often_than_promised():
    rng, runs, wrong = np.random.default_rng(3), 100, 0
    for run in range(runs):
        sample, truth = half_wrong(rng)
        b = it.local_bias(sample, at=GRID, kernel=LOCAL, draws=59, rng=run)
        right = b.known & (np.abs(smoothed(b, truth)) < 1e-12)
        wrong += bool(b.flagged[right].any())
    assert right.sum() >= 10
    assert wrong / runs <= 0.05 or plausible(wrong, runs, doubt=0.02)


@pytest.mark.slow
def test_without_a_cut_points_of_the_right_half_are_blamed():
    rng, tails, ended = np.random.default_rng(3), 0, 0
    for run in range(20):
        sample, truth = half_wrong(rng, 1_500, 0.3)
        gaussian = it.local_bias(sample, at=GRID, kernel=LOCAL, cut=0.0, draws=59, rng=run)
        tails += bool(gaussian.flagged[GRID.columns[0].values < 0.5].any())
        compact = it.local_bias(sample, at=GRID, kernel=LOCAL, draws=59, rng=run)
        right = np.abs(smoothed(compact, truth)) < 1e-12
        ended += bool(compact.flagged[right].any())
    assert tails >= 3
    assert ended <= 3


@pytest.mark.parametrize(
    ("low", "high", "shift"),
    [(0.2, 0.7, 0.0), (0.02, 0.04, 0.1), (0.3, 0.6, 0.3)],
    ids=["null", "f near 0, truth .12", "far from the null"],
)
@pytest.mark.slow
def test_the_confidence_band_covers_the_smoothed_bias(low, high, shift):
    rng, runs, missed = np.random.default_rng(11), 120, 0
    null_missed = 0
    for run in range(runs):
        x, p = rng.random(400), rng.uniform(low, high, 400)
        truth = p + shift * (1 + np.sin(6 * x)) / 2 + (0.05 if shift == 0.1 else 0.0)
        sample = it.Sample(rng.random(400) < truth, p, {"x": x})
        kernel = LocalKernel(Constant(), RBF(0.08))
        grid = it.Population(np.full(25, 0.5), {"x": np.linspace(0.02, 0.98, 25)})
        b = it.local_bias(sample, at=grid, kernel=kernel, draws=99, rng=run)
        bias = smoothed(b, truth)
        missed += not ((b.band.lower <= bias) & (bias <= b.band.upper)).all()
        half = (b.null_band.upper - b.null_band.lower) / 2
        null_missed += not (np.abs(b.values - bias) <= half).all()
    assert plausible(missed, runs, doubt=0.02)
    if shift == 0.1:
        assert null_missed > 0.2 * runs  # the null band is not a confidence band


@pytest.mark.slow
def test_the_null_band_holds_its_level_on_calibrated_rows():
    runs = 100
    wrong = 0
    for run in range(runs):
        sample = it.simulate.papers_level_design(150, rng=run).sample
        wrong += bool(it.local_bias(sample, draws=59, rng=run).flagged.any())
    assert plausible(wrong, runs, doubt=0.02)


def test_clusters_widen_the_band():
    unit = it.simulate.repeated_units(200, 5, 0.9, rng=0).sample
    x = {"x": unit.columns[0].values}
    names = np.repeat(np.arange(200), 5)
    grid = it.Population([0.5], {"x": [0.0]})
    kernel = LocalKernel(Constant(), RBF(0.5))
    with pytest.warns(it.AssumptionWarning, match="go together"):
        kept = [
            it.local_bias(it.Sample(unit.y, unit.p, x, cluster=c), at=grid, kernel=kernel, rng=0)
            for c in (None, names)
        ]
    widths = [float(b.band.upper[0] - b.band.lower[0]) for b in kept]
    assert widths[1] > 1.5 * widths[0]
    assert kept[1].null_band.upper[0] > 1.5 * kept[0].null_band.upper[0]


def test_something_else_is_told_how_to_become_a_sample():
    with pytest.raises(InputError, match=r"expected an itrust\.Sample"):
        it.local_bias([1, 2, 3])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 1.5}, "alpha must lie between 0 and 1"),
        ({"min_neighbours": 0}, "min_neighbours must be a whole number of at least 1"),
        ({"kernel": "rbf"}, "kernel must be a LocalKernel or None"),
        ({"at": [[1, 2]]}, "points must be a Sample or, without labels, a Population"),
        ({"cut": 1.0}, "cut must be at least 0 and below 1"),
        ({"draws": 0}, "draws"),
        ({"at": it.Population([0.5], {"age": [3]})}, "the points lack 'income', 'region'"),
    ],
)
def test_wrong_settings_get_one_sentence(settings, message):
    with pytest.raises(InputError, match=message):
        it.local_bias(town(60), **settings)


def test_tables_and_words():
    b = it.local_bias(town(600), draws=49, rng=0)
    table = b.to_arrow()
    assert table.num_rows == 600
    assert {"income", "age", "region", "bias", "lower", "upper", "pvalue"} <= {*table.column_names}
    assert b.to_dict()["points"] == 600
    assert "positive: the model underestimates" in str(b)
    assert max(map(len, str(b).splitlines())) <= 100


@pytest.fixture
def compas(data_file):
    def read(name: str) -> it.Sample:
        table = pyarrow.csv.read_csv(data_file(name))
        on = ["age10", "female", "african_american"]
        return it.Sample.from_frame(table, label="y", prob="p", on=on)

    return read("compas-fig4-calibration.csv"), read("compas-fig4-test.csv")


def test_the_papers_figure_to_three_digits(compas):
    """REFERENCE.md: fitted on subset 2, read on subset 3, one RBF with gamma .5 on (x, f)."""
    kernel = LocalKernel(RBF.from_gamma(0.5), RBF.from_gamma(0.5))
    b = it.local_bias(
        compas[0], at=compas[1], kernel=kernel, cut=0.0, min_neighbours=1, draws=19, rng=0
    )
    expected = {  # by whether one is African-American, and a woman
        (1, 0): [-0.009, 0.012, 0.008, -0.016, -0.053, -0.101],
        (1, 1): [0.014, 0.023, 0.025, 0.016, -0.008, -0.051],
        (0, 0): [0.001, 0.024, 0.020, 0.001, -0.023, -0.041],
        (0, 1): [0.031, 0.023, 0.020, 0.013, -0.009, -0.055],
    }
    age, female, black = (column.values for column in b.points.columns)
    for group, printed in expected.items():
        rows = (black == group[0]) & (female == group[1])
        cubic = np.polynomial.Polynomial.fit(age[rows], b.values[rows], 3)
        assert cubic(np.arange(2.0, 8.0)) == pytest.approx(printed, abs=6e-4)


def test_extra_columns_of_other_points_are_ignored_and_kinds_must_match():
    b = it.local_bias(town(300), draws=19, rng=0)
    x = {"age": [50], "extra": [1], "region": ["south"], "income": [40_000]}
    assert len(b.at(it.Population([0.5], x))) == 1
    with pytest.raises(InputError, match="'age' is a number in the sample and a category among"):
        b.at(it.Population([0.5], {**x, "age": ["old"]}))


def test_a_level_that_no_row_has_is_named():
    x = {"income": [40_000], "age": [50], "region": ["moon"]}
    b = it.local_bias(town(300), at=it.Population([0.5], x), draws=19, rng=0)
    assert "no row of the sample has region = 'moon'" in b.notes_on_points[0]


def test_covariates_may_be_called_like_columns_of_the_table():
    rng = np.random.default_rng(0)
    x = {"bias": rng.normal(size=200), "prediction": rng.normal(size=200)}
    b = it.local_bias(it.Sample(rng.random(200) < 0.5, np.full(200, 0.5), x), draws=19, rng=0)
    assert {"bias (covariate)", "prediction (covariate)"} <= {*b.to_arrow().column_names}
    assert b.curve("prediction").axis.positions.min() < 0


def test_notes_are_about_the_points_that_were_asked_for():
    b = it.local_bias(town(300), draws=19, rng=0)
    x = {"income": [40_000], "age": [50], "region": ["moon"]}
    assert "moon" in b.at(it.Population([0.5], x)).notes_on_points[0]
    assert not b.notes_on_points


def test_threads_change_nothing_to_the_last_bit(monkeypatch):
    monkeypatch.setattr("itrust.bias.averages.CHUNK_ROWS", 300)
    sample, found = town(1_500), []
    for threads in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        found.append(it.local_bias(sample, draws=39, rng=0))
    assert np.array_equal(found[0].values, found[1].values, equal_nan=True)
    assert np.array_equal(found[0].band.lower, found[1].band.lower, equal_nan=True)
    assert np.array_equal(found[0].pvalues, found[1].pvalues, equal_nan=True)


def test_numbers_of_numpy_are_numbers():
    b = it.local_bias(town(300), alpha=np.float32(0.1), min_neighbours=np.int64(5), draws=19, rng=0)
    assert b.min_neighbours == 5
    for wrong in (np.nan, np.inf, "x"):
        with pytest.raises(InputError, match="min_neighbours must be a whole number"):
            it.local_bias(town(60), min_neighbours=wrong)


def test_tables_hold_dates_and_booleans_as_such():
    rng = np.random.default_rng(0)
    x = {"day": np.datetime64("2026-01-01") + rng.integers(0, 99, 200), "b": rng.random(200) < 0.5}
    b = it.local_bias(it.Sample(rng.random(200) < 0.5, np.full(200, 0.5), x), draws=19, rng=0)
    table = b.to_arrow()
    assert str(table.schema.field("day").type).startswith("timestamp")
    assert str(table.schema.field("b").type) == "bool"


@pytest.mark.parametrize("weighted", [False, True])
def test_no_value_leaves_the_null_band_whose_p_value_does_not_say_so(weighted):
    """Rare events with heavy weights: a reach beyond the end of a skewed law has no end."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=800)
    p = 1 / (1 + np.exp(5.3 - 0.7 * x))
    weights = rng.pareto(1.5, 800) + 0.01 if weighted else None
    sample = it.Sample(rng.random(800) < p, p, {"x": x}, weights=weights)
    b = it.local_bias(sample, draws=99, rng=0)
    outside = (b.values < b.null_band.lower) | (b.values > b.null_band.upper)
    assert (b.pvalues[outside] <= 0.05).all()
    assert np.nanmin(b.null_band.lower) >= -1
    assert not outside.any()
