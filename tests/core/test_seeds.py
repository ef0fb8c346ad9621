import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chisquare, kstest

from itrust import InputError
from itrust._core import as_generator, as_seed, keyed_bits, keyed_flips, keyed_fractions


def keyed(dtype, seed, rows, draws):
    return keyed_flips(seed, rows, draws) if dtype is bool else keyed_bits(seed, rows, draws, dtype)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.uint16, np.uint32])
@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**70),
    rows=st.tuples(st.integers(0, 50), st.integers(1, 50)),
    draws=st.tuples(st.integers(0, 150), st.integers(1, 150)),
)
def test_any_block_of_bits_is_part_of_the_whole(dtype, seed, rows, draws):
    rows, draws = range(rows[0], sum(rows)), range(draws[0], sum(draws))
    whole = keyed(dtype, seed, range(100), range(300))
    np.testing.assert_array_equal(
        keyed(dtype, seed, rows, draws), whole[rows.start : rows.stop, draws.start : draws.stop]
    )


def test_bits_are_uniform_and_uncorrelated_between_rows_draws_and_seeds():
    u = keyed_bits(5, range(2000), range(100)) / 2.0**32
    assert kstest(u.ravel(), "uniform").pvalue > 1e-3
    v = keyed_bits(6, range(2000), range(100)) / 2.0**32
    assert uncorrelated((u[1:], u[:-1]), (u[:, 1:], u[:, :-1]), (u[:, 32:], u[:, :-32]), (u, v))


def uncorrelated(*pairs):
    return all(
        abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 4.5 / np.sqrt(a.size) for a, b in pairs
    )


def test_bytes_and_flips_are_fair_and_uncorrelated_across_their_blocks():
    b = keyed_bits(5, range(2000), range(256), np.uint8)
    counts = np.bincount(b.ravel(), minlength=256)
    assert chisquare(counts).pvalue > 1e-3
    f = keyed_flips(5, range(2000), range(256))
    assert binomtest(int(f.sum()), f.size).pvalue > 1e-3
    for found in (b, f):
        assert uncorrelated(
            (found[1:], found[:-1]),
            (found[:, 1:], found[:, :-1]),
            (found[:, 128:], found[:, :-128]),
        )
    assert uncorrelated((b, f), (b, keyed_bits(5, range(2000), range(256), np.uint16)))


def test_bits_never_change_between_versions():
    assert keyed_bits(0, range(2), range(2)).tolist() == [
        [3996563402, 4072604408],
        [1975836764, 1667261844],
    ]
    assert keyed_bits(0, range(2), range(2), np.uint8).tolist() == [[52, 64], [220, 55]]
    assert keyed_flips(0, range(1), range(8)).tolist() == [[1, 0, 1, 1, 1, 0, 0, 0]]


def test_seeds_come_from_ints_generators_and_nothing():
    assert as_seed(np.int64(3)) == 3
    assert as_seed(np.random.default_rng(1)) == as_seed(np.random.default_rng(1))
    assert as_seed(None) != as_seed(None)
    assert as_generator(4).random() == np.random.default_rng(4).random()


@pytest.mark.parametrize("rng", [-1, 1.5, "a", True])
def test_other_seeds_are_refused(rng):
    with pytest.raises(InputError, match="rng must be a non-negative int"):
        as_seed(rng)


def test_fractions_are_uniform_and_their_own():
    rows, draws = (index.ravel() for index in np.indices((300, 300)))
    u = keyed_fractions(1, rows, draws)
    assert kstest(u, "uniform").pvalue > 1e-3
    grid = u.reshape(300, 300)
    for a, b in (
        (grid[1:], grid[:-1]),
        (grid[:, 1:], grid[:, :-1]),
        (u, keyed_fractions(2, rows, draws)),
    ):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 4.5 / np.sqrt(u.size)
    bits = keyed_bits(1, range(300), range(300)).ravel()
    assert abs(np.corrcoef(u, bits)[0, 1]) < 4.5 / np.sqrt(u.size)
