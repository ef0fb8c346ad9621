"""Penalties by hand, by double loops, by finite differences; table 2, which is trained by them."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import itrust as it
import table2
from itrust.kernels import RBF, Constant, LocalKernel

torch = pytest.importorskip("torch")  # an extra; the oldest supported versions are tested without

from itrust.losses import KLCE, MMCE, MMD  # noqa: E402

PENALTIES = [
    MMCE(),
    MMCE(width=0.1),
    MMCE(published=True),
    MMD(),
    MMD(bandwidth=2.0, label_bandwidth=0.5, biased=True),
    KLCE(prob_width=0.3, x_width=[0.5, 2.0]),
    KLCE(prob_width=0.3, x_width=None),
    KLCE(prob_width=0.3, x_width=0.8, biased=True),
]
each_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)


def rows(n: int, seed: int = 0):
    """Labels, probabilities and two covariates; no probability near the kink of MMCE at 0.5."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.47, n) + 0.5 * rng.integers(0, 2, n)
    return rng.integers(0, 2, n), p, rng.normal(size=(n, 2))


def value(penalty, y, p, x=None) -> float:
    return penalty(torch.tensor(p, dtype=torch.float64), y, x).item()


def gradient(penalty, y, p, x=None):
    prob = torch.tensor(p, dtype=torch.float64, requires_grad=True)
    penalty(prob, y, x).backward()
    return prob.grad.numpy()


# Double loops over pairs, each from its definition.


def mmce_by_loops(y, p, width: float) -> float:
    r = [max(q, 1 - q) for q in p]
    c = [float((q > 0.5) == bool(label)) for q, label in zip(p, y, strict=True)]
    total = sum(
        (c[i] - r[i]) * (c[j] - r[j]) * np.exp(-abs(r[i] - r[j]) / width)
        for i in range(len(p))
        for j in range(len(p))
    )
    return np.sqrt(total / len(p) ** 2)


def published_mmce_by_loops(y, p, width: float) -> float:
    """Three means over pairs (right-right, wrong-wrong, right-wrong), each divided once more."""
    r = [max(q, 1 - q) for q in p]
    is_right = [(q > 0.5) == bool(label) for q, label in zip(p, y, strict=True)]
    right = [q for q, good in zip(r, is_right, strict=True) if good]
    wrong = [q for q, good in zip(r, is_right, strict=True) if not good]

    def mean(left, other, a, b):
        return np.mean([a(s) * b(t) * np.exp(-abs(s - t) / width) for s in left for t in other])

    m, n = len(right), len(wrong)
    square = mean(right, right, lambda s: 1 - s, lambda t: 1 - t) / m**2
    square += mean(wrong, wrong, lambda s: s, lambda t: t) / n**2
    square -= 2 * mean(right, wrong, lambda s: 1 - s, lambda t: t) / (m * n)
    return np.sqrt(square)


def mmd_by_loops(y, p, x, bandwidth: float, label_bandwidth: float, biased: bool) -> float:
    """Both labels of both rows, weighed by observation less prediction."""
    total, pairs = 0.0, 0
    for i in range(len(p)):
        for j in range(len(p)):
            if i == j and not biased:
                continue
            pairs += 1
            k = np.exp(-np.sum((x[i] - x[j]) ** 2) / bandwidth)
            for a in (0, 1):
                for b in (0, 1):
                    kernel = k * np.exp(
                        -np.sum((np.eye(2)[a] - np.eye(2)[b]) ** 2) / label_bandwidth
                    )
                    left = (y[i] == a) - (p[i] if a else 1 - p[i])
                    right = (y[j] == b) - (p[j] if b else 1 - p[j])
                    total += kernel * left * right
    return total / pairs


@pytest.mark.parametrize("width", [0.05, 0.4])
def test_mmce_equals_the_double_loop(width):
    y, p, _ = rows(15)
    assert value(MMCE(width), y, p) == pytest.approx(mmce_by_loops(y, p, width), rel=1e-12)


def test_published_mmce_equals_three_means_each_divided_twice():
    y, p, _ = rows(15)
    expected = published_mmce_by_loops(y, p, 0.4)
    assert value(MMCE(published=True), y, p) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("biased", [False, True])
def test_mmd_equals_the_double_loop_over_rows_and_labels(biased):
    y, p, x = rows(15)
    found = value(MMD(3.0, 0.7, biased), y, p, x)
    assert found == pytest.approx(mmd_by_loops(y, p, x, 3.0, 0.7, biased), rel=1e-12)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("widths", [0.7, (0.7, 3.0)])
def test_klce_equals_klce2_of_the_package(widths, biased):
    y, p, x = rows(60)
    expected = it.klce2(it.Sample(y, p, x), LocalKernel(RBF(0.2), RBF(widths)), biased=biased)
    assert value(KLCE(0.2, widths, biased), y, p, x) == pytest.approx(expected, abs=1e-14)


def test_klce_without_covariates_is_the_global_error():
    y, p, x = rows(60)
    expected = it.klce2(it.Sample(y, p, x), LocalKernel(RBF(0.2), Constant()))
    assert value(KLCE(0.2, None), y, p) == pytest.approx(expected, abs=1e-14)


def test_mmd_is_klce2_without_a_kernel_on_predictions():
    y, p, x = rows(60)
    kernel = LocalKernel(Constant(), RBF(np.sqrt(25 / 2)))
    expected = 2 * (1 - np.exp(-2)) * it.klce2(it.Sample(y, p, x), kernel)
    assert value(MMD(), y, p, x) == pytest.approx(expected, abs=1e-14)


def test_two_rows_by_hand():
    y, p, x = [1, 0], [0.9, 0.8], [[0.0], [2.0]]  # e = (.1, -.8), r = p, the second row is wrong
    k = np.exp(-0.1 / 0.4)
    assert value(MMCE(), y, p) == pytest.approx(np.sqrt(0.01 + 0.64 - 0.16 * k) / 2)
    assert value(MMCE(published=True), y, p) == pytest.approx(np.sqrt(0.01 + 0.64 - 0.16 * k))
    assert value(MMD(), y, p, x) == pytest.approx(-0.16 * np.exp(-4 / 25) * (1 - np.exp(-2)))
    klce = KLCE(prob_width=0.1, x_width=2.0)
    assert value(klce, y, p, x) == pytest.approx(-0.08 * np.exp(-0.5 - 0.5))


@each_penalty
def test_gradients_are_finite_differences(penalty):
    y, p, x = rows(9, seed=4)
    step = 1e-6
    moves = step * np.eye(len(p))
    slopes = [
        (value(penalty, y, p + m, x) - value(penalty, y, p - m, x)) / (2 * step) for m in moves
    ]
    np.testing.assert_allclose(gradient(penalty, y, p, x), slopes, atol=1e-8)


@each_penalty
def test_gradients_pass_the_check_of_torch(penalty):
    y, p, x = rows(9, seed=5)
    prob = torch.tensor(p, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda q: penalty(q, y, x), (prob,))


@each_penalty
@settings(max_examples=20, deadline=None)
@given(order=st.permutations(range(12)))
def test_the_order_of_rows_does_not_matter(penalty, order):
    y, p, x = rows(12)
    moved = value(penalty, y[order], p[order], x[order])
    assert moved == pytest.approx(value(penalty, y, p, x), abs=1e-14)


@each_penalty
@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([0, 1, 1], [0.0, 1.0, 1.0]),  # no error at all: the root is taken at 0
        ([0, 1], [0.5, 0.5]),  # errors that cancel
        ([1, 0, 1], [0.0, 1.0, 0.0]),  # everything wrong
        ([0, 1, 0, 1], [0.3, 0.3, 0.3, 0.3]),  # ties
    ],
)
def test_gradients_are_finite_where_roots_and_distances_vanish(penalty, y, p):
    x = np.zeros((len(y), 2))
    for dtype in (torch.float32, torch.float64):
        prob = torch.tensor(p, dtype=dtype, requires_grad=True)
        found = penalty(prob, y, x)
        found.backward()
        assert found.dtype == dtype
        assert torch.isfinite(found)
        assert torch.isfinite(prob.grad).all()
        assert prob.grad.abs().max() < 10


@pytest.mark.parametrize("penalty", [MMCE(), MMD(biased=True), KLCE(0.1, 0.1, biased=True)])
def test_penalties_over_all_pairs_are_never_negative(penalty):
    assert min(value(penalty, *rows(5, seed)) for seed in range(50)) >= 0


def test_unbiased_klce_averages_over_batches_to_that_of_all_rows():
    y, p, x = rows(6)
    halves = [[i for i in range(6) if bits >> i & 1] for bits in range(64) if bits.bit_count() == 3]
    penalty = KLCE(0.3, 1.0)
    mean = np.mean([value(penalty, y[half], p[half], x[half]) for half in halves])
    assert mean == pytest.approx(value(penalty, y, p, x), abs=1e-14)


def test_only_the_published_mmce_fades_with_the_size_of_the_batch():
    y, p, _ = rows(20)
    for form, kept in ((MMCE(), 1.0), (MMCE(published=True), 1 / 8)):
        repeated = value(form, np.tile(y, 8), np.tile(p, 8))
        assert repeated == pytest.approx(kept * value(form, y, p), rel=1e-12)


def test_only_the_published_mmce_punishes_a_calibrated_model():
    rng = np.random.default_rng(0)
    p = rng.uniform(0, 1, 2_000)
    y = rng.random(2_000) < p
    assert value(MMCE(), y, p) < 0.02
    assert value(MMCE(published=True), y, p) * 2_000 > 0.3


def test_published_mmce_is_zero_where_every_label_is_right():
    assert value(MMCE(published=True), [0, 1], [0.2, 0.9]) == 0


def test_a_penalty_trains_any_torch_model():
    y, _, x = rows(64)
    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    inputs = torch.tensor(x, dtype=torch.float32)
    prob = torch.sigmoid(net(inputs))[:, 0]
    sum(penalty(prob, torch.tensor(y), inputs) for penalty in PENALTIES).backward()
    assert all(torch.isfinite(p.grad).all() for p in net.parameters())


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda p: MMCE()(p, [0, 1]), r"y has shape \(2,\), prob has \(3,\)"),
        (lambda p: MMCE()(p[:1], [0]), "at least 2 rows to compare; this batch has 1"),
        (lambda p: MMCE()(p[:, None], [0, 1, 1]), r"of two columns take prob\[:, 1\]"),
        (lambda p: MMCE()(p * 4, [0, 1, 1]), r"row 1 has 2 \(pass logits through torch.sigmoid"),
        (lambda p: MMCE()(p * torch.nan, [0, 1, 1]), "row 0 has nan"),
        (lambda p: MMCE()(p.tolist(), [0, 1, 1]), "must be a floating torch tensor"),
        (lambda p: MMCE()(p, [1, 2, 1]), "y must be 0 or 1; row 1 has 2"),
        (lambda p: MMD()(p, [0, 1, 1]), "MMD compares rows by their inputs"),
        (
            lambda p: MMD()(p, [0, 1, 1], [[0.0]] * 2),
            r"x must have shape \(3, d\), .* not \(2, 1\)",
        ),
        (
            lambda p: MMD()(p, [0, 1, 1], [[0.0], [np.nan], [0.0]]),
            "x must be finite; row 1 has nan",
        ),
        (lambda p: KLCE()(p, [0, 1, 1]), "leave them out with x_width=None"),
        (lambda p: KLCE(0.1, [1, 2])(p, [0, 1, 1], [[0.0]] * 3), "2 widths for 1 column of x"),
    ],
)
def test_bad_input_to_a_penalty_is_refused_in_one_sentence(call, told):
    with pytest.raises(it.InputError, match=told):
        call(torch.tensor([0.2, 0.5, 0.9]))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: MMCE(width=0), "width must be a number above 0, not 0"),
        (lambda: MMD(bandwidth="wide"), "bandwidth must be a number above 0, not 'wide'"),
        (lambda: KLCE(x_width=[1.0, -1.0]), "x_width must be a number above 0, not -1.0"),
        (lambda: KLCE(x_width="wide"), "x_width must be a number above 0, not 'w'"),
    ],
)
def test_bad_widths_are_refused_in_one_sentence(make, told):
    with pytest.raises(it.InputError, match=told):
        make()


def survey(n: int = 300, seed: int = 1):
    """Labels with a bend that a straight line in the log odds cannot follow."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * [1.0, 10.0] + [0.0, 50.0]
    chance = expit(X[:, 0] + 1.5 * (np.abs(X[:, 0]) - 0.8) + (X[:, 1] - 50) / 20)
    return X, (rng.random(n) < chance).astype(int)


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def trained(penalty, X, y, x, **settings):
    """Probabilities by the regression of the study."""
    slopes, offset = table2.trained(penalty, standardised(X), y, x, **settings)
    return expit(standardised(X) @ slopes + offset)


@pytest.mark.parametrize(
    ("penalty", "compared_by"),
    [
        (MMCE(), standardised),
        (MMD(bandwidth=1.0, biased=True), standardised),
        (KLCE(prob_width=0.3, x_width=0.3, biased=True), lambda X: X[:, :1]),
    ],
    ids=["MMCE", "MMD", "KLCE"],
)
@pytest.mark.slow
def test_training_lowers_the_penalty(penalty, compared_by):
    """On all rows at once, where the optimum cannot have a larger penalty than that without."""
    X, y = survey()
    x, settings = compared_by(X), dict(strength=20.0, epochs=120, batch=len(y), rate=0.05)
    before, after = (
        value(penalty, y, trained(own, X, y, x, **settings), x) for own in (None, penalty)
    )
    assert 0 <= after < 0.9 * before


def test_mini_batches_lower_the_penalty():
    X, y = survey()
    penalty, x = KLCE(prob_width=0.3, x_width=0.3), X[:, :1]
    settings = dict(strength=20.0, epochs=30, batch=32, rate=0.02)
    before, after = (
        value(penalty, y, trained(own, X, y, x, **settings), x) for own in (None, penalty)
    )
    assert after < 0.9 * before


def test_without_penalty_it_is_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    X, y = survey()
    found = trained(None, X, y, X, epochs=200, batch=300, rate=0.05)
    expected = LogisticRegression(C=np.inf).fit(X, y).predict_proba(X)[:, 1]
    np.testing.assert_allclose(found, expected, atol=5e-3)


def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads():
    X, y = survey(97)  # the last row joins the batch before it
    threads = torch.get_num_threads()
    fitted = []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            torch.manual_seed(number)  # the global generator has no part in it
            fitted.append(trained(KLCE(), X, y, X, epochs=3, seed=5))
            assert torch.get_num_threads() == number
    finally:
        torch.set_num_threads(threads)
    assert fitted[0].tobytes() == fitted[1].tobytes()
    assert (trained(KLCE(), X, y, X, epochs=3, seed=6) != fitted[0]).any()


WITHOUT_TORCH = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocker())
import itrust

try:
    import itrust.losses
except ImportError as error:
    print(error)
"""


def test_the_core_needs_no_torch_and_the_losses_say_so():
    call = [sys.executable, "-c", WITHOUT_TORCH]
    told = subprocess.run(call, check=True, capture_output=True, text=True)
    assert told.stdout.strip() == "itrust.losses needs torch: pip install itrust[torch]"


def test_the_package_does_not_import_torch():
    code = "import sys, itrust; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
