import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.gaussian_process import kernels as reference
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from itrust import InputError, Sample
from itrust.data import encode
from itrust.kernels import (
    RBF,
    Constant,
    Delta,
    GaussianGram,
    Laplace,
    Linear,
    LocalKernel,
    MatchGram,
    Matern,
    Precomputed,
    RationalQuadratic,
)

ALL = slice(None)
X = np.random.default_rng(0).normal(size=(7, 2))
COLUMNS = [encode("a", X[:, 0]), encode("b", X[:, 1])]


def matrix(kernel, columns=COLUMNS):
    return kernel.resolve(columns).gram(columns, columns).block(ALL, ALL)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (RBF(0.7), rbf_kernel(X, gamma=1 / (2 * 0.7**2))),
        (RBF([0.7, 2.0]), rbf_kernel(X / [0.7, 2.0], gamma=0.5)),
        (RBF.from_gamma(25.0), rbf_kernel(X, gamma=25.0)),
        (Laplace(0.7), laplacian_kernel(X, gamma=1 / 0.7)),
        (Laplace.from_gamma(3.0), laplacian_kernel(X, gamma=3.0)),
        (Matern(0.7), reference.Matern(0.7, nu=1.5)(X)),
        (Matern([0.7, 2.0], nu=2.5), reference.Matern([0.7, 2.0], nu=2.5)(X)),
        (RationalQuadratic(0.7, alpha=2.0), reference.RationalQuadratic(0.7, alpha=2.0)(X)),
        (Linear(), X @ X.T),
        (Linear([0.5, 1.0]), (X / [0.5, 1]) @ (X / [0.5, 1]).T),
        (Constant(0.3), np.full((7, 7), 0.3)),
        (RBF(0.7) * Laplace(2.0), rbf_kernel(X, gamma=1 / 0.98) * laplacian_kernel(X, gamma=0.5)),
        (RBF(0.7) + Constant(2.0), rbf_kernel(X, gamma=1 / 0.98) + 2),
        (RBF(0.7).on("b"), rbf_kernel(X[:, 1:], gamma=1 / 0.98)),
    ],
)
def test_kernels_agree_with_scikit_learn(kernel, expected):
    np.testing.assert_allclose(matrix(kernel), expected, rtol=1e-12, atol=1e-14)


KERNELS = [
    RBF(0.5),
    Laplace(0.5),
    Matern(0.5),
    Matern(0.5, nu=2.5),
    RationalQuadratic(0.5, alpha=0.7),
    Linear(),
    Delta(),
    Delta(0.4),
    Constant(2.0),
    RBF(0.3) * Delta(0.2),
    RBF(0.3) + Linear(2.0),
]


@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=25, deadline=None)
@given(values=arrays(float, (8, 2), elements=st.integers(-3, 3)))
def test_kernels_are_symmetric_psd_and_below_their_supremum(kernel, values):
    columns = [encode("a", values[:, 0]), encode("b", values[:, 1])]
    gram = kernel.gram(columns, columns)
    k = gram.block(ALL, ALL)
    np.testing.assert_allclose(k, k.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(k), gram.diagonal(), atol=1e-12)
    assert np.linalg.eigvalsh(k).min() > -1e-9 * max(1.0, np.abs(k).max())
    assert k.max() <= kernel.supremum + 1e-12
    np.testing.assert_array_equal(gram.block(slice(2, 5), slice(1, 8)), k[2:5, 1:8])


def test_suprema_compose():
    assert (RBF(1) * Constant(3.0)).supremum == 3.0
    assert (RBF(1) + Delta()).supremum == 2.0
    assert Linear().supremum == math.inf
    assert LocalKernel(RBF(1), Constant(0.5)).supremum == 0.5


def test_gamma_reads_in_and_out():
    assert RBF.from_gamma([25.0, 0.5]).gamma == pytest.approx((25.0, 0.5))
    assert RBF.from_gamma(0.5).width == pytest.approx(1.0)
    assert Laplace.from_gamma(4.0).gamma == pytest.approx(4.0)
    with pytest.raises(InputError, match="gamma is unknown until the rule"):
        _ = RBF().gamma


def test_delta_matches_categories_column_by_column():
    columns = [encode("a", ["u", "u", "v"]), encode("b", [1, 2, 2])]
    np.testing.assert_array_equal(matrix(Delta(), columns), np.eye(3))
    expected = [[1, 0.3, 0.09], [0.3, 1, 0.3], [0.09, 0.3, 1]]
    np.testing.assert_allclose(matrix(Delta(0.3), columns), expected)


def test_missing_numbers_match_only_missing_numbers():
    columns = [encode("a", [0.0, 1.0, None, None])]
    k = matrix(RBF(1.0), columns)
    near = math.exp(-0.5)
    np.testing.assert_allclose(k, [[1, near, 0, 0], [near, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]])


def test_widths_come_from_present_values_only():
    assert RBF().resolve([encode("a", [0.0, 4.0, None, None])]).width == (4.0,)


def test_products_are_fused_into_one_exponential_and_one_match():
    columns = [*COLUMNS, encode("c", list("uvuvuvu")), encode("d", list("ssttsst"))]
    kernel = RBF(0.5).on("a") * Delta().on("c") * RBF(2.0).on("b") * Delta().on("d")
    gram = kernel.gram(columns, columns)
    assert [type(factor) for factor in gram.parts] == [GaussianGram, MatchGram]
    parts = [RBF(0.5).on("a"), RBF(2.0).on("b"), Delta().on("c"), Delta().on("d")]
    expected = math.prod(part.gram(columns, columns).block(ALL, ALL) for part in parts)
    np.testing.assert_allclose(gram.block(ALL, ALL), expected, atol=1e-14)


def test_far_away_points_lose_no_digits():
    values = np.array([0.0, 0.5, 1e7, 1e7 + 0.5])
    k = matrix(RBF(1.0), [encode("a", values)])
    assert k[0, 1] == pytest.approx(math.exp(-0.125), rel=1e-12)
    assert k[2, 3] == pytest.approx(math.exp(-0.125), rel=1e-12)


def test_default_kernel_gives_every_covariate_its_kind():
    x = {
        "age": [20, 30, 50],
        "income": [1.0, 2.0, 4.0],
        "sex": list("fmf"),
        "u": [True, False, True],
    }
    s = Sample([0, 1, 1], [0.2, 0.5, 0.9], x)
    kernel = LocalKernel().resolve(s.points)
    root = math.sqrt(2)
    assert kernel.prob == RBF([0.4])
    numbers, *others = kernel.x.parts
    assert numbers == RBF([20 * root, 2 * root]).on("age", "income")
    assert others == [Delta().on("sex"), Delta().on("u")]


def test_local_kernel_between_two_samples():
    a = Sample([0, 1], [0.2, 0.5], {"c": ["u", "v"]})
    b = Sample([0, 1, 1], [0.2, 0.5, 0.7], {"c": ["v", "w", "u"]})
    k = LocalKernel(RBF(0.1), Delta()).gram(a.points, b.points).block(ALL, ALL)
    expected = [[0, 0, math.exp(-12.5)], [math.exp(-4.5), 0, 0]]
    np.testing.assert_allclose(k, expected, atol=1e-15)


def test_samples_are_matched_by_name_and_refused_by_kind():
    a = Sample([0, 1], [0.2, 0.5], {"u": [1.0, 2.0], "v": [30.0, 40.0]})
    b = Sample([0, 1], [0.2, 0.5], {"v": [30.0, 40.0], "u": [1.0, 2.0]})
    kernel = LocalKernel(RBF(0.1), {"u": RBF(1.0), "v": RBF(5.0)})
    k = kernel.gram(a.points, b.points).block(ALL, ALL)
    np.testing.assert_allclose(np.diag(k), 1.0)
    c = Sample([0, 1], [0.2, 0.5], {"u": ["x", "y"], "v": [30.0, 40.0]})
    with pytest.raises(InputError, match="'u' is a category, not a number in the other sample"):
        kernel.gram(a.points, c.points)
    with pytest.raises(InputError, match="'v' is missing in the other sample"):
        kernel.gram(a.points, Sample([0, 1], [0.2, 0.5], {"u": [1.0, 2.0]}).points)


def test_precomputed_stands_for_its_matrix():
    s = Sample([0, 1, 1], [0.2, 0.5, 0.9])
    m = np.array([[1, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 1]])
    np.testing.assert_array_equal(
        LocalKernel(Constant(), Precomputed(m)).gram(s.points).block(ALL, ALL), m
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF(0.0), "width must be a positive, finite number, .* not 0.0"),
        (lambda: RBF([1.0, -1.0]), "width must be a positive"),
        (lambda: RBF.from_gamma(-1), "gamma must be positive and finite, not -1"),
        (lambda: Matern(1.0, nu=0.5), "nu = 1.5 or 2.5, not 0.5"),
        (lambda: RationalQuadratic(1.0, alpha=0), "alpha > 0"),
        (lambda: Delta(1.5), "between 0 and 1 off the match, not 1.5"),
        (lambda: Constant(-1.0), "not negative"),
        (lambda: Precomputed([[1, 2]]), r"square matrix, not one of shape \(1, 2\)"),
        (
            lambda: Precomputed([[1, 2], [3, 1]]),
            r"symmetric matrix; entry \(0, 1\) is 2, entry \(1, 0\)",
        ),
        (lambda: RBF("median"), r"or a rule such as Median\(\), not 'median'"),
        (lambda: RBF(1.0).on(["age"]), r"on takes names one by one, .* not \['age'\]"),
        (lambda: LocalKernel(x={}), r"x={} names no covariate"),
        (lambda: LocalKernel(prob=0.1), r"prob must be a kernel such as RBF\(0.1\)"),
        (lambda: LocalKernel(x={"a": "rbf"}), r"x\['a'\] must be a kernel"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (RBF(1.0), "RBF needs numbers, but 'sex' is a category; give each covariate its kernel"),
        (RBF([1.0, 2.0, 3.0]).on("age"), "RBF has 3 widths for 1 column: 'age'"),
        ({"age": RBF(1.0)}, "says nothing about 'sex'"),
        (
            {"age": RBF(1.0), "sx": Delta()},
            "names 'sx', which the sample lacks; did you mean 'sex'",
        ),
        (Precomputed(np.eye(2)), "matrix has 2 rows, the sample 3"),
    ],
)
def test_kernels_that_do_not_fit_the_sample_are_refused(x, message):
    s = Sample([0, 1, 1], [0.2, 0.5, 0.9], {"age": [20, 30, 50], "sex": list("fmf")})
    with pytest.raises(InputError, match=message):
        LocalKernel(RBF(0.1), x).resolve(s.points).gram(s.points)


def test_kernels_on_covariates_need_covariates():
    with pytest.raises(
        InputError, match=r"RBF\(width=1\) needs covariates, but the sample has none"
    ):
        LocalKernel(RBF(0.1), RBF(1.0)).resolve(Sample([0, 1], [0.2, 0.5]).points)


def test_to_dict_names_widths():
    kernel = LocalKernel(RBF(0.1), {"age": RBF(5.0), "sex": Delta(0.2)})
    assert kernel.to_dict()["prob"] == {"kernel": "RBF", "width": 0.1}
    factors = kernel.to_dict()["x"]["factors"]
    assert factors[1] == {"kernel": "Delta", "otherwise": 0.2, "on": ["sex"]}


@pytest.mark.parametrize("kernel", [RBF(0.05), Laplace(0.05), RBF(0.5) * RBF(2.0)])
def test_blocks_in_single_precision_have_its_digits_and_no_number_too_small_for_it(kernel):
    column = [encode("a", np.random.default_rng(0).uniform(0, 3, 200))]
    gram = kernel.gram(column, column)
    exact = gram.block(ALL, ALL)
    for dtype, error in ((np.float32, 1.5e-7), (np.float64, 1e-15)):
        values = gram.block_as(ALL, ALL, dtype)
        assert values.dtype == dtype
        np.testing.assert_allclose(values, exact, atol=error, rtol=0)
        assert values[values > 0].min() > 1e-21
