from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from itrust import InputError
from itrust.data import encode
from itrust.engines import Tiles, available_threads, exact_features
from itrust.kernels import RBF, Delta, Laplace, Precomputed, power_of

ALL = slice(None)


def dense(matrix):
    rows = [encode("row", range(len(matrix)))]
    return Precomputed(matrix).gram(rows, rows)


def dense_forms(matrix, residuals):
    off = matrix - np.diag(np.diag(matrix))
    return np.einsum("ib,ij,jb->b", residuals, off, residuals)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 60),
    columns=st.integers(1, 5),
    tile=st.integers(1, 70),
    seed=st.integers(0, 99),
)
def test_tiles_of_any_size_give_the_dense_answer(n, columns, tile, seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, 3))
    residuals = rng.normal(size=(n, columns))
    matrix = root @ root.T
    gram, expected = dense(matrix), dense_forms(matrix, residuals)
    absolute = dense_forms(np.abs(matrix), np.abs(residuals))
    error = np.abs(Tiles(tile, threads=2).forms(gram, residuals) - expected)
    assert (error <= 1e-12 * absolute).all()


def test_number_of_threads_changes_no_bit():
    rng = np.random.default_rng(0)
    columns = [encode("a", rng.normal(size=700))]
    gram = RBF(0.2).gram(columns, columns)
    residuals = rng.normal(size=(700, 9))
    one = Tiles(100, threads=1).forms(gram, residuals)
    for threads in (2, 3, 8):
        np.testing.assert_array_equal(Tiles(100, threads=threads).forms(gram, residuals), one)


def test_progress_adds_up_to_the_rows_as_the_upper_triangle_does():
    seen = []
    gram = dense(np.eye(25))
    Tiles(10).forms(gram, np.ones((25, 1)), seen.append)
    assert seen == pytest.approx([25 * done / 425 for done in (250, 150, 25)])


def columns_of(seed, n):
    """A number, one with values far apart, and a category with a level that one row has."""
    rng = np.random.default_rng(seed)
    wide = np.where(rng.random(n) < 0.1, 1e6, 1.0) * rng.normal(size=n)
    level = np.where(np.arange(n) == 3, "alone", rng.choice(["a", "b"], n))
    return encode("a", rng.normal(size=n)), encode("wide", wide), encode("g", level.astype(object))


KERNELS = [
    RBF(0.5).on("a"),
    RBF(0.001).on("a"),  # as many features as rows
    RBF(0.5).on("wide"),
    RBF(1.0).on("a", "wide"),
    Delta().on("g"),
    RBF(0.3).on("a") * Delta().on("g"),
    RBF(0.3).on("a", "wide") * Delta().on("g"),
    Laplace(0.3).on("a") * Delta().on("g"),
    RBF(0.3).on("a") * Delta(0.2).on("g"),
    RBF(0.3).on("a") + Delta().on("g"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("n", [20, 300])
def test_categories_and_single_numbers_give_the_dense_answer(kernel, n):
    columns = columns_of(n, n)
    gram = kernel.gram(columns, columns)
    residuals = np.random.default_rng(1).normal(size=(n, 4))
    matrix, absolute = gram.block(ALL, ALL), np.abs(residuals)
    for own, dense in (
        (gram, matrix),
        (power_of(gram, 2), matrix**2),
        (power_of(gram, 3), matrix**3),
    ):
        found = Tiles(64, threads=2).forms(own, residuals)
        error = np.abs(found - dense_forms(dense, residuals))
        assert (error <= 1e-11 * (1 + dense_forms(dense, absolute))).all()


@pytest.mark.parametrize("width", [5.0, 0.5, 0.2])
def test_few_features_are_a_gaussian_kernel_of_one_number(width):
    column = columns_of(0, 700)[:1]
    gram = RBF(width).gram(column, column)
    features = exact_features(gram)
    assert features.shape[1] <= 700 // 8
    assert np.abs(features @ features.T - gram.block(ALL, ALL)).max() < 1e-12


def test_other_kernels_have_no_few_features():
    a, wide, g = columns_of(0, 700)
    for kernel, columns in (
        (RBF(0.001), [a]),
        (RBF(0.5), [wide]),
        (RBF(5.0), [a, wide]),
        (Laplace(5.0), [a]),
        (Delta(), [g]),
    ):
        assert exact_features(kernel.gram(columns, columns)) is None


def test_blas_threads_are_restored():
    before = [pool["num_threads"] for pool in threadpool_info()]
    Tiles(10, threads=2).forms(dense(np.eye(25)), np.ones((25, 1)))
    assert [pool["num_threads"] for pool in threadpool_info()] == before


def test_threads_follow_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert available_threads() == 1
    for value in (" 1 ", "1,2"):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert available_threads() == 1
    for value in ("nonsense", "\u00b2", "-1", ""):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert available_threads() >= 1


def test_blas_threads_are_restored_after_concurrent_use():
    before = [pool["num_threads"] for pool in threadpool_info()]
    gram, residuals = dense(np.eye(300)), np.ones((300, 50))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: Tiles(10, threads=2).forms(gram, residuals), range(12)))
    assert [pool["num_threads"] for pool in threadpool_info()] == before


@pytest.mark.parametrize("settings", [dict(tile=0), dict(threads=0)])
def test_odd_settings_are_refused(settings):
    with pytest.raises(InputError, match="must be at least 1"):
        Tiles(**settings)
