import json
import math
import re
import tracemalloc

import numpy as np
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import itrust as it
from itrust import InputError, Sample, nulls
from itrust.engines import Engine, Tiles
from itrust.kernels import RBF, Constant, Delta, Laplace, LocalKernel
from oracles import double_loop

KERNEL = LocalKernel(RBF(0.2), RBF(0.5))


def test_klce2_of_two_rows_by_hand():
    s = Sample([0, 1], [0.4, 0.7], [0.0, 1.0])
    expected = -0.4 * 0.3 * math.exp(-0.5 * (0.3 / 0.2) ** 2) * math.exp(-0.5)
    assert it.klce2(s, LocalKernel(RBF(0.2), RBF(1.0))) == pytest.approx(expected, rel=1e-14)


def test_klce2_equals_the_double_loop_for_mixed_covariates_and_weights(mixed_sample):
    s = mixed_sample
    x = {"income": RBF(7.0), "children": Laplace(1.5), "urban": Delta(0.3), "race": Delta()}
    income, children, urban, race = (column.values for column in s.columns)

    def pair(i, j):
        return (
            math.exp(-((s.p[i] - s.p[j]) ** 2) / (2 * 0.15**2))
            * math.exp(-((income[i] - income[j]) ** 2) / (2 * 7.0**2))
            * math.exp(-abs(children[i] - children[j]) / 1.5)
            * (1.0 if urban[i] == urban[j] else 0.3)
            * (1.0 if race[i] == race[j] else 0.0)
        )

    total, absolute = double_loop(s, pair)
    for tile in (7, 16, 512):
        found = it.klce2(s, LocalKernel(RBF(0.15), x), engine=Tiles(tile)) * s.pair_weight
        assert abs(found - total) <= 1e-10 * absolute
    squares = np.sum((s.weights_or_ones * s.residuals) ** 2)
    biased = it.klce2(s, LocalKernel(RBF(0.15), x), biased=True)
    assert biased == pytest.approx((total + squares) / s.n**2, rel=1e-12)


def test_equal_weights_are_no_weights():
    s = it.simulate.papers_level_design(60, rng=0).sample
    weighted = Sample(s.y, s.p, s.columns[0].values, weights=np.full(60, 3.0))
    assert it.klce2(weighted, KERNEL) == pytest.approx(it.klce2(s, KERNEL), rel=1e-12)


def test_a_weight_of_two_in_the_biased_form_is_a_row_twice():
    s = it.simulate.papers_level_design(20, rng=0).sample
    twice = s.take(np.repeat(np.arange(20), np.where(np.arange(20) < 5, 2, 1)))
    weights = np.where(np.arange(20) < 5, 2.0, 1.0)
    weighted = Sample(s.y, s.p, s.columns[0].values, weights=weights)
    assert it.klce2(weighted, KERNEL, biased=True) == pytest.approx(
        it.klce2(twice, KERNEL, biased=True), rel=1e-12
    )


def test_a_constant_covariate_kernel_gives_kce():
    """l = 1 (not k = 1, as the paper's sentence says) is the KCE of Widmann (2019)."""
    s = it.simulate.survey(80, rng=0).sample
    e = s.y - s.p
    k = np.exp(-(np.subtract.outer(s.p, s.p) ** 2) / (2 * 0.1**2))
    np.fill_diagonal(k, 0)
    kce = e @ k @ e / (80 * 79)
    assert it.klce2(s, LocalKernel(RBF(0.1), Constant())) == pytest.approx(kce, rel=1e-11)
    assert it.klce2(Sample(s.y, s.p), LocalKernel(RBF(0.1))) == pytest.approx(kce, rel=1e-11)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_row_order_changes_nothing(seed):
    s = it.simulate.survey(50, rng=1).sample
    order = np.random.default_rng(seed).permutation(50)
    assert it.klce2(s.take(order)) == pytest.approx(it.klce2(s), rel=1e-9)


def test_the_unbiased_statistic_has_mean_zero_on_calibrated_data():
    r = it.klce_test(it.simulate.papers_level_design(40, rng=2).sample, KERNEL, draws=5000, rng=1)
    drawn = r.null_distribution
    assert abs(drawn.mean()) < 4 * drawn.std() / math.sqrt(drawn.size)
    assert (drawn < 0).mean() > 0.3


@pytest.mark.parametrize(
    ("column", "printed"),
    [
        ("p", 0.002084),
        ("p_platt", 0.000346),
        ("p_temperature", 0.001595),
        ("p_isotonic", 0.000304),
        ("p_bbq", 0.000378),
    ],
)
def test_the_papers_compas_numbers_to_the_digit(data_file, column, printed):
    """Figure 4 by the paper's equation: K = exp(-df^2 / .1^2) exp(-.5 |dx|^2)."""
    frame = pyarrow.csv.read_csv(data_file("compas-fig4-test.csv"))
    on = ["age10", "female", "african_american"]
    s = Sample.from_frame(frame, label="y", prob=column, on=on)
    kernel = LocalKernel(prob=RBF(0.1 / math.sqrt(2)), x=RBF.from_gamma(0.5))
    assert round(it.klce2(s, kernel), 6) == printed
    assert it.klce_test(s, kernel, draws=199, rng=0).pvalue == 0.005


def test_the_pvalue_is_the_same_for_any_tile_and_thread_count():
    s = it.simulate.survey(300, rng=5).sample
    results = [
        it.klce_test(s, rng=3, draws=499, engine=Tiles(tile, threads=threads))
        for tile, threads in ((512, 1), (64, 1), (64, 3), (17, 2), (300, 2))
    ]
    assert len({r.pvalue for r in results}) == 1
    np.testing.assert_array_equal(results[1].null_distribution, results[2].null_distribution)


@pytest.mark.parametrize("kernel", [None, LocalKernel()])
def test_the_pvalue_is_the_same_for_any_number_of_draws_at_a_time(monkeypatch, kernel):
    s = it.simulate.survey(300, rng=5).sample
    batches = []

    def counted(self, *arguments, **settings):
        if arguments[1]:  # flips of signs, for findings, need no kernel
            batches.append(arguments[2].draws)
        return run(self, *arguments, **settings)

    run = Engine.run
    monkeypatch.setattr(Engine, "run", counted)
    whole = it.klce_test(s, kernel, rng=3, draws=499)
    assert batches == [range(499)]
    monkeypatch.setattr("itrust.engines.plan.MIN_COLUMNS", 100)
    monkeypatch.setattr("itrust.engines.plan.BATCH_BYTES", 1)
    batched = it.klce_test(s, kernel, rng=3, draws=499)
    assert batches[1:] == [range(at, min(at + 100, 499)) for at in range(0, 499, 100)]
    assert batched.pvalue == whole.pvalue
    np.testing.assert_allclose(batched.null_distribution, whole.null_distribution, atol=1e-15)


def test_more_draws_extend_the_same_draws():
    s = it.simulate.survey(100, rng=5).sample
    scans = ("ranges", "regions", "triples")  # all draws together give these their scale
    checks = it.default_dictionary(s).without(families=scans)
    few, many = (
        it.klce_test(s, checks, rng=3, draws=draws).null_distribution for draws in (50, 120)
    )
    np.testing.assert_allclose(many[:50], few, atol=1e-15)


def test_the_result_makes_itself_again():
    s = it.simulate.survey(100, rng=5).sample
    r = it.klce_test(s, draws=99)
    again = it.klce_test(s, kernel=r.dictionary, null=r.null, draws=r.draws, rng=r.seed)
    np.testing.assert_array_equal(r.null_distribution, again.null_distribution)


def test_ties_count_as_at_least_as_large():
    """Equal probabilities: many draws equal the data exactly."""
    s = Sample([1, 0, 1, 0], [0.5, 0.5, 0.5, 0.5])
    r = it.klce_test(s, LocalKernel(Constant(), Constant()), draws=999, rng=0)
    # Two of four ones: the smallest value of (sum e)^2, so every draw is at least as large.
    assert r.pvalue == 1.0
    assert r.exceedance == pytest.approx(0.625, abs=0.06)  # not two ones: 1 - 6 / 16


def test_ties_up_to_rounding_are_no_exceedance():
    s = it.simulate.papers_level_design(200, rng=0).sample
    r = it.klce_test(s, LocalKernel(Constant(), Constant()), nulls.Permutation(), draws=99, rng=0)
    assert (r.pvalue, r.exceedance) == (1.0, 0.0)


@pytest.mark.parametrize("scale", [1e-170, 1.0, 1e160])
def test_the_scale_of_weights_is_free(scale):
    s = it.simulate.weighted_rows(50, rng=0).sample
    x = np.column_stack([c.values for c in s.columns])
    scaled = Sample(s.y, s.p, x, weights=s.weights * scale)
    assert it.klce2(scaled) == pytest.approx(it.klce2(s), rel=1e-12)
    assert it.klce_test(scaled, draws=99, rng=0).pvalue == it.klce_test(s, draws=99, rng=0).pvalue


def test_pair_weight_does_not_cancel():
    s = Sample([0, 1, 1], [0.2, 0.5, 0.7], weights=[1e12, 1, 1])
    assert s.pair_weight * s.weights.mean() ** 2 == pytest.approx(4e12 + 2, rel=1e-15)


def test_a_statistic_that_overflows_is_refused():
    s = it.simulate.papers_level_design(20, rng=0).sample
    huge = Sample(s.y, s.p, s.columns[0].values * 1e200)
    with np.errstate(all="ignore"), pytest.raises(InputError, match="statistic is not finite"):
        it.klce_test(huge, LocalKernel(RBF(0.1), it.kernels.Linear()), draws=9, rng=0)


@pytest.mark.parametrize("kernel", [None, LocalKernel()])
def test_no_matrix_of_all_pairs_of_rows_is_held(kernel):
    rng = np.random.default_rng(0)
    n = 4000
    x = {"a": rng.normal(size=n), "b": rng.normal(size=n), "c": list("uv" * (n // 2))}
    s = Sample(rng.random(n) < 0.5, rng.uniform(size=n), x)
    tracemalloc.start()
    try:
        r = it.klce_test(s, kernel, draws=1, rng=0, engine=Tiles(threads=1))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert r.engine == "tiles of 512"
    assert peak < 8 * n**2 / 3


def test_rows_that_are_certain_leave_nothing_to_draw():
    s = Sample([0, 1, 1], [0.0, 1.0, 1.0])
    r = it.klce_test(s, draws=19, rng=0)
    assert (r.statistic, r.pvalue, r.impossible) == (0.0, 1.0, 0)


def test_clusters_make_sign_flips_the_default_and_are_told():
    s = it.simulate.repeated_units(40, rng=0).sample
    s = Sample(s.y, s.p, s.columns[0].values, cluster=np.repeat(np.arange(40), 5))
    r = it.klce_test(s, KERNEL, draws=99, rng=0)
    assert r.null == nulls.Rademacher()
    assert "approximate" in str(r)
    assert any("approximate, by clusters" in note for note in r.notes)
    ignoring = it.klce_test(s, KERNEL, nulls.Bernoulli(), draws=99, rng=0)
    assert any("ignores the clusters" in warning for warning in ignoring.warnings)


def test_few_clusters_and_clusters_that_nothing_crosses_are_told():
    s = it.simulate.survey(200, rng=0).sample
    region = s.column("region").values
    few = it.klce_test(Sample(s.y, s.p, cluster=region), draws=99, rng=0)
    assert any("3 clusters are few" in note for note in few.warnings)
    assert str(few.refused).startswith("3 clusters carry as much as 2.8 equal ones")
    torn = Sample(s.y, s.p, {"region": region.astype(str)}, cluster=region)
    assert any(
        "cannot detect anything" in a
        for a in it.klce_test(torn, LocalKernel(), draws=99, rng=0).warnings
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(kernel=RBF(0.1)), r"kernel must be a LocalKernel"),
        (dict(null="bernoulli"), r"null must be one of itrust.nulls, .* not 'bernoulli'"),
        (dict(draws=0), r"draws must be a whole number of at least 1, not 0"),
        (dict(draws=10.5), r"draws must be a whole number"),
        (dict(draws=True), r"draws must be a whole number"),
        (dict(rng=-3), r"rng must be a non-negative int"),
        (dict(engine="gpu"), r"engine must be 'auto' or one of itrust.engines .*, not 'gpu'"),
    ],
)
def test_wrong_arguments_get_one_sentence(arguments, message):
    with pytest.raises(InputError, match=message):
        it.klce_test(it.simulate.papers_level_design(20, rng=0).sample, **arguments)


def test_a_kernel_without_match_gives_no_evidence_and_says_so():
    s = Sample([0, 1, 1], [0.2, 0.5, 0.9], ["a", "b", "c"])
    r = it.klce_test(s, LocalKernel(), draws=19, rng=0)
    assert r.pvalue == 1.0
    assert any("cannot detect anything" in warning for warning in r.warnings)


@pytest.mark.parametrize("function", [it.klce2, it.klce_test, it.null_sd])
def test_what_is_no_sample_is_refused_with_the_right_call(function):
    said = f"expected an itrust.Sample, not a dict; write it.{function.__name__}(it.Sample.from_fr"
    with pytest.raises(InputError, match=re.escape(said)):
        function({"y": [0, 1]})


def test_missing_covariates_are_tested_as_a_level():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(400) < 0.5, np.nan, rng.normal(size=400))
    p = np.full(400, 0.5) + 0.001 * rng.normal(size=400)
    y = rng.random(400) < np.where(np.isnan(x), 0.7, 0.3)
    s = Sample(y, p, {"lab": x}, missing="level")
    assert it.klce_test(s, draws=199, rng=0).pvalue == 0.005


def test_to_dict_survives_json():
    r = it.klce_test(it.simulate.survey(60, rng=0).sample, draws=19)
    again = json.loads(json.dumps(r.to_dict()))
    assert again == r.to_dict()
    assert {"statistic", "pvalue", "n", "draws", "kernel", "null", "seed", "engine"} <= set(again)
