import math

import numpy as np
import pytest
from scipy.stats import binomtest

import itrust as it
from itrust import InputError, Sample, nulls
from itrust.kernels import RBF, Constant, Linear, LocalKernel
from itrust.nulls import redrawn_labels

KERNEL = LocalKernel(RBF(0.2), RBF(0.5))


def drawn(null, sample, draws=range(4000), seed=0):
    out = np.empty((sample.n, len(draws)))
    null.fill(out, sample, draws, seed)
    return out


def test_redrawn_labels_follow_their_probabilities():
    p = np.array([0.0, 1.0, 0.5, 0.02, 0.999])
    residuals = drawn(nulls.Bernoulli(), Sample([0, 1, 1, 0, 1], p), range(40_000))
    labels = residuals + p[:, None]
    np.testing.assert_allclose(labels, np.rint(labels), atol=1e-12)
    z = (labels.mean(axis=1) - p) / np.sqrt(np.maximum(p * (1 - p), 1e-300) / 40_000)
    assert (np.abs(z[2:]) < 4).all()
    assert (labels[0] == 0).all()
    assert (labels[1] == 1).all()


def test_certain_rows_never_move():
    labels = redrawn_labels(np.array([0.0, 1.0]), range(2), range(200_000), 0)
    assert not labels[0].any()
    assert labels[1].all()


@pytest.mark.parametrize("p", [2.0**-17, 0.5 + 2.0**-17, 1 - 2.0**-17, 3e-6])
def test_probabilities_between_two_digits_are_kept(p):
    """Only the refinement of tied digits tells these from their neighbours 2^-17 away."""
    count = int(redrawn_labels(np.full(4000, p), range(4000), range(4000), 1).sum())
    assert binomtest(count, 4000 * 4000, p).pvalue > 1e-3


def test_label_means_are_right_for_every_size_of_p():
    p = np.concatenate([np.logspace(-2, -0.01, 200), 1 - np.logspace(-2, -0.01, 200)])
    labels = redrawn_labels(p, range(400), range(20_000), 5)
    z = (labels.mean(axis=1) - p) / np.sqrt(p * (1 - p) / 20_000)
    assert np.abs(z).max() < 4.5
    assert 0.8 < z.std() < 1.2


def test_bootstrap_and_permutation_keep_the_residuals():
    s = it.simulate.papers_level_design(30, rng=0).sample
    known = set(s.residuals.tolist())
    assert set(np.unique(drawn(nulls.ResidualBootstrap(), s))) == known
    permuted = drawn(nulls.Permutation(), s)
    np.testing.assert_allclose(
        np.sort(permuted, axis=0), np.sort(s.residuals)[:, None] + 0 * permuted
    )
    assert not np.array_equal(permuted[:, 0], permuted[:, 1])
    centred = drawn(nulls.Permutation(centred=True), s)
    np.testing.assert_allclose(centred.mean(axis=0), 0, atol=1e-12)


def test_every_residual_visits_every_row():
    s = it.simulate.papers_level_design(5, rng=0).sample
    for null in (nulls.ResidualBootstrap(), nulls.Permutation()):
        for row in drawn(null, s):
            assert len(set(row.tolist())) == 5


def test_signs_are_shared_within_a_cluster_and_only_there():
    base = it.simulate.papers_level_design(40, rng=0).sample
    free = drawn(nulls.Rademacher(), base) / base.residuals[:, None]
    s = Sample(base.y, base.p, cluster=np.repeat(np.arange(10), 4))
    tied = drawn(nulls.Rademacher(), s) / s.residuals[:, None]
    assert (np.unique(free), np.unique(tied)) == (pytest.approx([-1, 1]), pytest.approx([-1, 1]))
    assert (tied.reshape(10, 4, -1) == tied.reshape(10, 4, -1)[:, :1]).all()
    assert not (free.reshape(10, 4, -1) == free.reshape(10, 4, -1)[:, :1]).all()


@pytest.mark.parametrize(
    "null", [nulls.Bernoulli(), nulls.ResidualBootstrap(), nulls.Permutation(), nulls.Rademacher()]
)
def test_a_draw_does_not_depend_on_how_many_are_asked_for(null):
    s = it.simulate.papers_level_design(40, rng=0).sample
    np.testing.assert_array_equal(
        drawn(null, s, range(13, 150), seed=9), drawn(null, s, range(200), seed=9)[:, 13:150]
    )


def test_closed_form_moments_are_those_of_the_redraws():
    s = it.simulate.weighted_rows(120, rng=4).sample
    r = it.klce_test(s, KERNEL, draws=4000, rng=0)
    sd = it.null_sd(s, KERNEL)
    assert abs(r.null_distribution.mean()) < 4 * sd / math.sqrt(4000)
    assert r.null_distribution.std() == pytest.approx(sd, rel=0.1)


def test_null_sd_by_hand():
    s = Sample([0, 1], [0.5, 0.2], [0.0, 1.0])
    p12 = math.exp(-0.5) * math.exp(-0.5 * (0.3 / 0.2) ** 2)
    expected = math.sqrt(2 * 2 * p12**2 * 0.25 * 0.16) / 2
    assert it.null_sd(s, LocalKernel(RBF(0.2), RBF(1.0))) == pytest.approx(expected)


def test_spectral_tail_of_a_rank_one_kernel_is_one_chi_square():
    # P = 1 everywhere and equal v: the sum over pairs is (sum e)^2 - sum e^2, in the limit
    # v n (chi2_1 - 1).
    from scipy.stats import chi2

    n = 1000
    y = np.zeros(n)
    y[:560] = 1
    s = Sample(y, np.full(n, 0.5))
    r = it.klce_test(s, LocalKernel(Constant(), Constant()), nulls.Spectral())
    value = r.statistic * n * (n - 1) / (0.25 * n) + 1
    assert r.pvalue == pytest.approx(chi2.sf(value, 1), rel=0.02)


def test_spectral_and_redraws_agree_in_the_body():
    s = it.simulate.survey(800, rng=3).sample
    exact = it.klce_test(s, LocalKernel(), draws=9_999, rng=0)
    limit = it.klce_test(s, null=nulls.Spectral())
    values = np.quantile(exact.null_distribution, [0.5, 0.9, 0.99])
    gram = exact.kernel.gram(s.points)
    root = np.sqrt(s.p * (1 - s.p))
    matrix = root[:, None] * gram.block(slice(None), slice(None)) * root
    np.fill_diagonal(matrix, 0.0)
    spectrum = np.linalg.eigvalsh(matrix)
    facts = [
        nulls.Facts(value, value * s.pair_weight, s.n, False, 1.0, lambda: spectrum)
        for value in values
    ]
    tails = [nulls.Spectral().tail(fact) for fact in facts]
    np.testing.assert_allclose(tails, [0.5, 0.1, 0.01], rtol=0.25)
    assert limit.statistic == pytest.approx(exact.statistic, rel=1e-3)  # tiles, and a factor


@pytest.mark.parametrize("seed", range(40))
def test_spectral_survives_heteroscedastic_data(seed):
    rng = np.random.default_rng(seed)
    p = np.concatenate([np.full(30, 0.5), np.full(270, 0.01)])
    s = Sample(rng.random(300) < p, p, rng.normal(size=300))
    exact = it.klce_test(s, LocalKernel(), draws=299, rng=0)
    assert it.klce_test(s, null=nulls.Spectral()).pvalue == pytest.approx(exact.pvalue, abs=0.15)


def test_spectral_reports_no_number_below_its_depth():
    y = np.ones(300)
    r = it.klce_test(Sample(y, np.full(300, 0.3)), null=nulls.Spectral())
    assert r.tail < 1e-6
    assert r.pvalue == 1e-6
    assert "below 1e-06" in str(r)
    assert "approximate" in str(r)


def test_spectral_says_how_many_rows_it_takes():
    s = Sample(np.tile([0, 1], 2501), np.full(5002, 0.5))
    with pytest.raises(InputError, match=r"Spectral\(\) takes up to 5,000 rows with tiles"):
        it.klce_test(s, null=nulls.Spectral(), engine=it.engines.Tiles())


def test_hoeffding_by_hand_with_both_constants():
    s = Sample([1] * 11, [0.5] * 11)
    right = it.klce_test(s, LocalKernel(Constant(2.0), Constant()), nulls.Hoeffding())
    assert right.statistic == pytest.approx(0.5)
    assert right.pvalue == pytest.approx(math.exp(-5 * 0.25**2 / 2))
    printed = it.klce_test(
        s, LocalKernel(Constant(2.0), Constant()), nulls.Hoeffding(papers_constant=True)
    )
    assert printed.pvalue == pytest.approx(math.exp(-11 * 0.25**2 / 2))
    threshold = nulls.Hoeffding().threshold(0.05, 11, 2.0)
    assert math.exp(-5 * (threshold / 2) ** 2 / 2) == pytest.approx(0.05)


def test_hoeffding_is_one_for_a_negative_statistic():
    s = it.Sample([0, 1], [0.5, 0.5], [0.0, 0.1])
    assert it.klce_test(s, KERNEL, nulls.Hoeffding()).pvalue == 1.0


def test_hoeffding_refuses_what_it_does_not_cover():
    s = it.simulate.weighted_rows(20, rng=0).sample
    with pytest.raises(InputError, match="unweighted rows"):
        it.klce_test(s, KERNEL, nulls.Hoeffding())
    s = it.simulate.papers_level_design(20, rng=0).sample
    with pytest.raises(InputError, match="bounded kernel"):
        it.klce_test(s, LocalKernel(RBF(0.1), Linear()), nulls.Hoeffding())


def test_nulls_describe_themselves():
    assert nulls.Permutation(centred=True).to_dict() == {
        "null": "Permutation",
        "exact": False,
        "centred": True,
    }
    assert nulls.Bernoulli().to_dict()["exact"] is True
