import json
import threading
from functools import reduce

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import itrust as it
from itrust import InputError, Sample, nulls, simulate
from itrust.engines import Drawing, Factor, Purpose, Tiles, accumulate, added
from itrust.kernels import RBF, Constant, Delta, LocalKernel, Precomputed
from oracles import holds_level

KERNEL = LocalKernel(RBF(0.1), RBF([1.0, 0.5]))


def two_numbers(n=3000, seed=0, **columns):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    p = 1 / (1 + np.exp(-x[:, 0]))
    return Sample(rng.random(n) < p, p, x, **columns)


def mixed(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    x = {
        "income": rng.normal(size=n),
        "lab": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
        "race": rng.choice(list("abc"), n, p=[0.7, 0.25, 0.05]),
        "urban": rng.random(n) < 0.5,
    }
    p = rng.uniform(0.02, 0.9, n)
    weights = rng.exponential(size=n)
    return Sample(rng.random(n) < p, p, x, weights=weights, missing="level")


@pytest.mark.parametrize(
    ("sample", "kernel"),
    [
        pytest.param(two_numbers(), KERNEL, id="two numbers"),
        pytest.param(mixed(), LocalKernel(), id="mixed, weighted, missing"),
        pytest.param(simulate.survey(3000, rng=1).sample, LocalKernel(), id="survey"),
    ],
)
def test_factor_and_tiles_agree_within_the_certificate(sample, kernel):
    exact = it.klce_test(sample, kernel, draws=300, rng=0, engine=Tiles())
    fast = it.klce_test(sample, kernel, draws=300, rng=0, engine=Factor())
    certificate = fast.certificate
    sd = exact.null_distribution.std()
    assert certificate.bound < 0.012
    error = exact.null_distribution - fast.null_distribution
    assert error.std() / sd <= certificate.bound
    assert certificate.sampled / 5 < error.std() / sd < 5 * certificate.sampled
    low, high = certificate.worst_case
    assert low - 1e-6 * sd <= exact.statistic - fast.statistic <= high + 1e-6 * sd
    assert fast.pvalue == pytest.approx(exact.pvalue, abs=0.01)


def test_a_constant_kernel_has_rank_one_and_no_error():
    s = two_numbers()
    r = it.klce_test(s, LocalKernel(Constant(), Constant()), draws=9, rng=0, engine=Factor())
    e = s.residuals
    assert r.certificate.rank == 1
    assert r.certificate.bound < 1e-5  # rounding of float32
    assert r.statistic == pytest.approx((e.sum() ** 2 - e @ e) / (s.n * (s.n - 1)), rel=1e-4)


def test_a_small_tolerance_is_kept_in_double_precision():
    s = two_numbers(1500)
    kernel = LocalKernel(RBF(0.5), RBF(3.0))
    fast = it.klce_test(s, kernel, draws=50, rng=0, engine=Factor(tolerance=1e-7))
    exact = it.klce_test(s, kernel, draws=50, rng=0, engine=Tiles())
    assert fast.certificate.precision == "float64"
    sd = exact.null_distribution.std()
    np.testing.assert_allclose(fast.null_distribution, exact.null_distribution, atol=1e-6 * sd)


def test_threads_and_chunks_change_no_pvalue():
    s = two_numbers()
    engines = [Factor(threads=1), Factor(threads=3), Factor(chunk=500), Factor(chunk=10_000)]
    results = [it.klce_test(s, KERNEL, draws=199, rng=3, engine=engine) for engine in engines]
    assert len({r.pvalue for r in results}) == 1
    np.testing.assert_array_equal(results[0].null_distribution, results[1].null_distribution)


def test_sums_of_parts_are_the_sum_of_the_whole():
    s = mixed()
    kernel = LocalKernel().resolve(s.points)
    plan = Factor().plan(Factor().survey(s), kernel)
    (whole,) = s.chunks(s.n)
    job = [plan.work], Drawing(nulls.Bernoulli(), range(20), 5)
    parts = [accumulate(job, chunk) for chunk in s.chunks(700)]
    tally, (sums,) = reduce(added, parts)
    tally_once, (sums_once,) = accumulate(job, whole)
    found, once = plan.outcome(sums), plan.outcome(sums_once)
    np.testing.assert_allclose(found.over_pairs, once.over_pairs, rtol=1e-4)
    assert found.trace_left == pytest.approx(once.trace_left, rel=1e-4)
    assert tally.rows == tally_once.rows
    assert tally.pair_weight == pytest.approx(tally_once.pair_weight)


def test_categories_split_the_landmarks_into_blocks():
    s = mixed()
    plan = Factor().plan(Factor().survey(s), LocalKernel().resolve(s.points))
    assert len(plan.blocks) > 6  # race x urban x missing indicator
    covered = np.concatenate([landmarks for landmarks, _ in plan.blocks])
    assert np.unique(covered).size == covered.size
    race = plan.landmarks.columns[2].values
    for landmarks, _ in plan.blocks:
        assert np.unique(race[landmarks]).size == 1


def test_rows_of_unseen_categories_are_certified_as_lost():
    s = mixed(2000)
    survey = Factor(pilot=60).survey(s)
    plan = Factor(pilot=60).plan(survey, LocalKernel().resolve(s.points))
    found = Factor(pilot=60).run(survey, [plan])
    assert found.kernels[0].certificate(found.pair_weight).bound > 0.1


@pytest.mark.parametrize("null", [nulls.Rademacher(), nulls.Bernoulli()])
def test_row_wise_nulls_draw_the_same_on_both_paths(null):
    s = two_numbers(1000, cluster=np.repeat(np.arange(250), 4))
    wide = LocalKernel(RBF(0.3), RBF(2.0))
    tiles, factor = (
        it.klce_test(s, wide, null, draws=40, rng=2, engine=engine).null_distribution
        for engine in (Tiles(), Factor(tolerance=1e-4))
    )
    np.testing.assert_allclose(factor, tiles, atol=1e-3 * tiles.std())


def test_spectral_null_by_factor_is_that_of_the_dense_matrix():
    s = two_numbers(2000)
    dense = it.klce_test(s, KERNEL, nulls.Spectral(), engine=Tiles())
    small = it.klce_test(s, KERNEL, nulls.Spectral(), engine=Factor())
    assert small.pvalue == pytest.approx(dense.pvalue, rel=0.05)
    assert it.null_sd(s, KERNEL, engine=Factor()) == pytest.approx(it.null_sd(s, KERNEL), rel=0.01)


@pytest.mark.slow
def test_the_level_is_exact_for_a_kernel_of_any_rank():
    """A crude kernel is still a kernel: rank 6, whatever the certificate says."""
    crude = Factor(max_rank=6, pilot=60)

    def rejects(run):
        sample = two_numbers(150, run)
        return it.klce_test(sample, KERNEL, draws=99, rng=run, engine=crude).pvalue <= 0.05

    assert holds_level(rejects)


def test_high_dimension_falls_back_to_tiles_and_the_cap_is_told():
    rng = np.random.default_rng(0)
    s = Sample(rng.random(4000) < 0.5, rng.uniform(size=4000), rng.normal(size=(4000, 10)))
    assert it.klce_test(s, draws=19, rng=0).engine == "tiles of 512"
    capped = it.klce_test(s, draws=19, rng=0, engine=Factor(max_rank=64))
    assert capped.certificate.rank == 64
    assert capped.certificate.bound > 0.05
    assert capped.certificate.sampled < capped.certificate.bound
    assert "under the null" in str(capped)
    json.dumps(capped.to_dict())


@pytest.mark.slow
def test_auto_takes_tiles_for_few_rows_and_the_factor_for_many():
    assert it.klce_test(two_numbers(500), draws=19, rng=0).engine == "tiles of 512"
    assert "factor of rank" in it.klce_test(two_numbers(20_000), draws=99, rng=0).engine
    big = two_numbers(25_000)
    exact, fast = (it.klce2(big, KERNEL, engine=engine) for engine in (Tiles(), "auto"))
    assert abs(exact - fast) < 0.003 * it.null_sd(big, KERNEL)


def test_what_needs_all_rows_is_refused_or_sent_to_tiles():
    s = two_numbers(600)
    matrix = LocalKernel(Constant(), Precomputed(np.eye(600)))
    assert it.klce_test(s, matrix, draws=9, rng=0).engine == "tiles of 512"
    assert it.klce_test(s, KERNEL, nulls.Permutation(), draws=9, rng=0).engine == "tiles of 512"
    with pytest.raises(InputError, match="a precomputed matrix needs all rows at once"):
        it.klce_test(s, matrix, engine=Factor())
    with pytest.raises(InputError, match=r"ResidualBootstrap\(\) needs all rows at once"):
        it.klce_test(s, KERNEL, nulls.ResidualBootstrap(), engine=Factor())
    with pytest.raises(InputError, match="tolerance in"):
        Factor(tolerance=0.0)


@pytest.mark.slow
def test_confident_rows_that_are_wrong_are_seen():
    """The null variance vanishes there, but landmarks must not."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        n = 10_000
        rare = rng.random(n) < 0.05
        p = np.where(rare, 0.001, rng.uniform(0.2, 0.8, n))
        y = rng.random(n) < np.where(rare, 0.2, p)
        x = {"a": rng.normal(size=n), "c": np.where(rare, "rare", "common")}
        r = it.klce_test(Sample(y, p, x), draws=99, rng=0, engine=Factor())
        assert r.pvalue == 0.01
        certain = np.where(rare, 0.0, p)
        r = it.klce_test(Sample(y, certain, x), draws=99, rng=0, engine=Factor())
        assert r.pvalue == 0.01


def test_predictions_of_0_and_1_that_are_wrong_have_their_statistic():
    rng = np.random.default_rng(0)
    p = rng.integers(0, 2, 3000).astype(float)
    s = Sample(1 - p, p, rng.normal(size=3000))
    fast, exact = (it.klce2(s, engine=engine) for engine in (Factor(), Tiles()))
    assert fast == pytest.approx(exact, rel=0.05)


def test_a_kernel_too_narrow_for_any_rank_has_no_bound_and_says_so():
    s = two_numbers()
    r = it.klce_test(s, LocalKernel(RBF(1e-7), RBF(1e-7)), draws=9, rng=0, engine=Factor())
    assert r.certificate.bound > 1
    assert any("could not be approximated" in warning for warning in r.warnings)
    assert r.to_dict()["certificate"]["bound"] is None or r.certificate.bound < np.inf
    with pytest.warns(it.ApproximationWarning, match="could only be approximated"):
        it.klce2(s, LocalKernel(RBF(0.001), RBF(0.001)), engine=Factor(max_rank=20))


def test_the_statistic_does_not_depend_on_the_seed():
    s = two_numbers(20_000)
    first, second = (it.klce_test(s, KERNEL, draws=9, rng=rng).statistic for rng in (0, 1))
    assert first == second


@pytest.mark.slow
def test_spectral_has_an_engine_at_every_size(monkeypatch):
    """Just below the rows whose eigenvalues are taken from the matrix itself, and above."""
    monkeypatch.setattr("itrust.engines.tiles.MAX_DENSE_ROWS", 1_500)
    for n in (1_470, 1_560, 1_920):
        assert 0 < it.klce_test(two_numbers(n), KERNEL, nulls.Spectral()).pvalue <= 1


def test_an_interrupt_leaves_no_thread_and_no_limit_behind():
    before = [pool["num_threads"] for pool in threadpool_info()]
    others = set(threading.enumerate())  # of libraries that other tests have loaded

    def interrupt(_rows):
        raise KeyboardInterrupt

    s = two_numbers(20_000)
    factor = Factor(chunk=500, threads=2)
    survey = factor.survey(s)
    plan = factor.plan(survey, KERNEL)
    with pytest.raises(KeyboardInterrupt) as kept:  # a kept traceback keeps frames alive
        factor.run(survey, [plan], Drawing(nulls.Bernoulli(), range(50)), advance=interrupt)
    assert kept.tb is not None
    assert [pool["num_threads"] for pool in threadpool_info()] == before
    assert set(threading.enumerate()) <= others


def test_exact_matches_alone_are_factored_exactly():
    rng = np.random.default_rng(0)
    s = Sample(rng.random(900) < 0.4, np.full(900, 0.4), list(rng.choice(list("abcd"), 900)))
    kernel = LocalKernel(Constant(), Delta())
    fast, exact = (it.klce2(s, kernel, engine=engine) for engine in (Factor(), Tiles()))
    assert fast == pytest.approx(exact, rel=1e-4)


def test_too_many_rows_for_tiles_run_with_the_capped_kernel_and_say_so(monkeypatch):
    monkeypatch.setattr("itrust.engines.tiles.MAX_ROWS_FOR_TILES", 1000)
    rng = np.random.default_rng(0)
    s = Sample(rng.random(6000) < 0.5, rng.uniform(size=6000), rng.normal(size=(6000, 8)))
    r = it.klce_test(s, LocalKernel(RBF(0.1), RBF(0.8)), draws=99, rng=0)
    assert "factor" in r.engine
    assert r.certificate.bound > 0.01
    assert 0 < r.certificate.sampled < r.certificate.bound


def test_the_biased_form_has_the_same_unit_on_both_paths():
    s = mixed(1000)
    fast, exact = (it.klce2(s, biased=True, engine=engine) for engine in (Factor(), Tiles()))
    assert fast == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("n", [2, 3, 20, 99])
def test_a_handful_of_rows_is_factored_exactly(n):
    s = two_numbers(n, seed=5)
    fast, exact = (
        it.klce_test(s, KERNEL, draws=19, rng=0, engine=engine) for engine in (Factor(), Tiles())
    )
    assert fast.statistic == pytest.approx(exact.statistic, abs=0.02 * it.null_sd(s, KERNEL))
    assert fast.pvalue == pytest.approx(exact.pvalue, abs=1.01 / 20)  # one draw, at most


def test_kernels_that_only_lend_power_are_cut_by_what_they_add_to_the_spread():
    """Next to the certificate's cut, a fraction of the rank costs 5 % of the standard deviation."""
    s = two_numbers(4000)
    engine, narrow = Factor(max_rank=128), LocalKernel(RBF(0.1), RBF([0.6, 0.6]))
    survey = engine.survey(s)
    certified = engine.plan(survey, narrow, Purpose(nulls.Bernoulli(), 99))
    rough = engine.plan(survey, narrow, Purpose(nulls.Bernoulli(), 99, is_main=False))
    assert 2 * rough.rank < certified.rank
    some = s.points.take(np.arange(1000))
    root = np.sqrt(some.p * (1 - some.p))
    cut = (certified.matrix(some) - rough.matrix(some)) * root * root[:, None]
    whole = certified.matrix(some) * root * root[:, None]
    for matrix in (cut, whole):
        np.fill_diagonal(matrix, 0.0)
    assert 0.01 < np.linalg.norm(cut) / np.linalg.norm(whole) < 0.06


def test_the_main_kernel_is_rough_among_many_on_many_rows_unless_asked_otherwise():
    main = Purpose(nulls.Bernoulli(), 999, among_many=True)
    assert Factor()._asked_for(main, 30_000).tolerance == 0.01
    assert Factor()._asked_for(main, 50_000).tolerance == 0.05
    assert Factor()._asked_for(Purpose(nulls.Bernoulli(), 999), 10**7).tolerance == 0.01
    assert Factor(tolerance=0.002)._asked_for(main, 10**7).tolerance == 0.002
    other = Factor(tolerance=0.2)._asked_for(Purpose(is_main=False), 10)
    assert (other.tolerance, other.max_rank) == (0.2, 128)


def test_features_do_not_depend_on_the_rows_beside_them():
    """Up to the rounding of kernel values: else chunks of other sizes would give other numbers."""
    s = two_numbers(3000)
    engine = Factor()
    plan = engine.plan(engine.survey(s), KERNEL, Purpose(nulls.Bernoulli(), 99))
    ((_, _, whole),) = plan.features(s.points)
    ((_, _, part),) = plan.features(s.points.take(np.arange(700, 1900)))
    np.testing.assert_allclose(whole[:, 700:1900], part, atol=5e-5)
