import gc

import numpy as np
import pytest

import itrust as it
from itrust import nulls, simulate
from itrust.engines import Drawing, Drawn, Products, Scratch, accumulate, join

RNG = np.random.default_rng(0)
N, DRAWS = 60, 9
P, E = RNG.random(N), RNG.normal(size=N)
LABELS = RNG.random((N, DRAWS)) < P[:, None]
SIGNS = np.where(RNG.random((N, DRAWS)) < 0.5, -1.0, 1.0)
ROWS = np.flatnonzero(RNG.random(N) < 0.4)

KINDS = {
    "labels": (Drawn(slice(0, DRAWS), LABELS.astype(np.float32), True), LABELS - P[:, None]),
    "signs": (Drawn(slice(0, DRAWS), SIGNS.astype(np.float32), False, E), SIGNS * E[:, None]),
    "residuals": (Drawn(slice(0, DRAWS), SIGNS * 0.3, False), SIGNS * 0.3),
}


def pieces(dtype):
    """Features and squares of all rows and of some, of two sizes."""
    found = []
    for rows in (slice(None), ROWS, slice(None), ROWS):
        n = P[rows].size
        f, q = RNG.normal(size=(n, 1 + len(found))), RNG.random((n, 2))
        found.append((rows, f.astype(dtype), q.astype(dtype)))
    return found


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_products_are_sums_of_residuals_and_of_their_squares(kind, dtype, joined):
    drawn, residuals = KINDS[kind]
    parts = pieces(dtype)
    products = [Products(f, q, P[rows], rows) for rows, f, q in parts]
    if joined:
        join(products, Scratch())
        assert len({id(one.stack) for one in products}) == 2
    for one, (rows, f, q) in zip(products, parts, strict=True):
        forms, squares = one.of(drawn)
        tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-9}
        np.testing.assert_allclose(forms, f.T @ residuals[rows], **tolerance)
        np.testing.assert_allclose(squares, q.T @ np.square(residuals[rows]), **tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_labels_or_residuals_for_whoever_asks(kind):
    drawn, residuals = KINDS[kind]
    values = drawn.as_type(float) - P[:, None] if drawn.is_label else drawn.as_type(float)
    np.testing.assert_allclose(values, residuals, rtol=1e-6, atol=1e-12)
    for dtype in (np.float32, np.float64):
        again = drawn.as_type(dtype)
        assert again.dtype == dtype
        assert again is drawn.as_type(dtype)
        np.testing.assert_allclose(again, drawn.as_type(float), rtol=1e-6)


def test_signs_that_are_all_turned_give_the_same_squares_to_the_last_bit():
    """Else draws that mirror the data would not tie with them."""
    f = RNG.normal(size=(N, 5)).astype(np.float32)
    for numbers in (SIGNS, -SIGNS):
        drawn = Drawn(slice(0, DRAWS), numbers.astype(np.float32), False, E)
        forms, _ = Products(f, f[:, :0], P).of(drawn)
        if numbers is SIGNS:
            first = np.square(forms)
    np.testing.assert_array_equal(first, np.square(forms))


def test_scratch_is_used_again_and_grows():
    scratch = Scratch()
    small = scratch.array("a", (2, 3), np.float32)
    assert np.shares_memory(small, scratch.array("a", (3, 2), np.float32))
    assert not np.shares_memory(small, scratch.array("b", (2, 3), np.float32))
    assert scratch.array("a", (4, 5), np.float32).shape == (4, 5)
    assert scratch.array("a", (2, 2), np.float64).dtype == np.float64


@pytest.mark.parametrize("null", [nulls.Bernoulli(), nulls.Rademacher()])
def test_a_chunk_leaves_nothing_to_the_garbage_collector(null):
    """Features of a million rows would pile up until it comes."""
    s = simulate.survey(600, rng=0).sample
    engine = it.engines.Factor()
    survey = engine.survey(s)
    plan = engine.plan(survey, it.kernels.LocalKernel().resolve(s.points))
    job = [plan.work], Drawing(null, range(20), 0)
    (chunk,) = s.chunks(s.n)
    accumulate(job, chunk)
    gc.collect()
    gc.disable()
    try:
        accumulate(job, chunk)
        assert not any(type(one) is Products for one in gc.get_objects())
    finally:
        gc.enable()
