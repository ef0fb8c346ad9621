"""How sums at many places spread in a design: against the design's own variance and naive loops."""

import numpy as np
import pytest

from itrust import Sample
from itrust.bias import Members, average, polynomial, spreading_of
from itrust.data import Everywhere, Level
from itrust.nulls import Bernoulli

GROUPS = "abc"
REGIONS = [Everywhere(), *(Level("group", group) for group in GROUPS)]
ROWS = 120


def rows_of(seed=0, **design):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.9, ROWS)
    group = rng.choice(list(GROUPS), ROWS, p=[0.6, 0.3, 0.1])
    return Sample(rng.random(ROWS) < p, p, {"group": group}, **design)


def weights_of(rows=ROWS):
    return np.random.default_rng(3).exponential(size=rows) + 0.1


def inside(sample):
    return np.array([region.rows(sample.points) for region in REGIONS])


CLUSTER = np.random.default_rng(1).permutation(np.arange(ROWS) // 5)  # 24 of them, not in order
DESIGNS = {
    "clusters": {"cluster": CLUSTER},
    "weighted clusters": {"cluster": CLUSTER, "weights": weights_of()},
    "clusters in strata": {"cluster": CLUSTER, "strata": CLUSTER // 4, "weights": weights_of()},
    "rows in strata": {"strata": np.arange(ROWS) // 30, "weights": weights_of()},
}
METHODS = {"jk1": "jk1", "brr": "brr", "fay": "fay:0.5", "bootstrap": "bootstrap"}


def replicated(method, sets=16):
    rng, weights = np.random.default_rng(7), weights_of()
    lifted = {
        "jk1": lambda: np.where(np.arange(ROWS)[:, None] % sets == np.arange(sets), 0.0, 16 / 15),
        "brr": lambda: rng.choice([0.0, 2.0], (ROWS, sets)),
        "fay": lambda: rng.choice([0.5, 1.5], (ROWS, sets)),
        "bootstrap": lambda: rng.poisson(1.0, (ROWS, sets)),
    }[method]()
    factors = weights[:, None] * lifted
    return rows_of(weights=weights, replicate_weights=factors, replicate_method=METHODS[method])


def averaged(sample, draws=0):
    return average(sample, Members(REGIONS), (), draws, 0)


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("shift", [None, 0.0, -0.2])
def test_the_variance_is_that_of_the_design_for_shares_of_rows(name, shift):
    """At the estimate that is the linearised variance of a mean; rows elsewhere stay, with 0."""
    sample = rows_of(**DESIGNS[name])
    found, w = averaged(sample), sample.weights_or_ones
    for place, rows in enumerate(inside(sample)):
        value = w @ (rows * sample.residuals) / (w @ rows)
        assert found.values[place] == pytest.approx(value)
        bias = value if shift is None else shift
        shares = w * rows * (sample.residuals - bias)
        ours = polynomial(found.by_design[:, [place]], np.array([bias]))[0]
        assert ours == pytest.approx(float(sample.design.linearised_variance(shares)))
        if shift is None:
            assert found.stderr[place] == pytest.approx(np.sqrt(ours) / (w @ rows))


def test_the_variance_by_hand_for_two_clusters_a_stratum():
    """Two clusters: n / (n - 1) times squares around the mean is the squared difference."""
    y, p = np.array([1, 0, 0, 1, 1, 1, 0, 0.0]), np.full(8, 0.25)
    cluster, strata = np.arange(8) // 2, np.arange(8) // 4
    found = average(Sample(y, p, cluster=cluster, strata=strata), Members([Everywhere()]), (), 0, 0)
    sums = (y - 0.5).reshape(4, 2).sum(axis=1)  # the estimate is 1/2 - 1/4
    by_hand = (sums[0] - sums[1]) ** 2 + (sums[2] - sums[3]) ** 2
    assert found.values[0] == 0.25
    assert found.stderr[0] == pytest.approx(np.sqrt(by_hand) / 8)
    assert found.freedom == 2


@pytest.mark.parametrize("method", METHODS)
def test_the_variance_of_replicates_is_that_of_the_mean_estimated_again(method):
    sample = replicated(method)
    found, design = averaged(sample), sample.design
    for place, rows in enumerate(inside(sample)):
        value = np.average(sample.residuals[rows], weights=design.weights[rows])
        again = [
            np.average(sample.residuals[rows], weights=design.replicate_weights[rows, k])
            for k in range(16)
        ]
        variance = design.replication.scale(16) * np.square(np.subtract(again, value)).sum()
        assert found.values[place] == pytest.approx(value)
        assert found.stderr[place] == pytest.approx(np.sqrt(variance))


@pytest.mark.parametrize("name", [*DESIGNS, "replicates", "independent rows"])
def test_multipliers_have_the_variance_that_is_said_of_them(name):
    """A sample variance of B normal numbers has the standard error sqrt(2 / B) of itself."""
    sample = replicated("brr") if name == "replicates" else rows_of(**DESIGNS.get(name, {}))
    draws = 4_000
    found = averaged(sample, draws)
    ratio = np.square(found.multiplied).mean(axis=1) / found.by_multipliers
    assert (np.abs(ratio - 1) <= 4 * np.sqrt(2 / draws)).all()
    mean = found.multiplied.mean(axis=1) / np.sqrt(found.by_multipliers)
    assert (np.abs(mean) <= 4 / np.sqrt(draws)).all()


@pytest.mark.parametrize("name", ["clusters in strata", "rows in strata"])
def test_multipliers_vary_around_the_mean_of_a_stratum(name):
    """What all clusters of a stratum share adds no variance: residuals of 1 a cluster, say."""
    sample = rows_of(**DESIGNS[name])
    design = sample.design
    spreading = spreading_of(design, 50, 1, np.float64)
    multipliers = spreading.multipliers(slice(0, ROWS))
    per_unit = np.array([multipliers[design.units == unit][0] for unit in range(design.clusters)])
    assert (multipliers == per_unit[design.units]).all()
    for stratum in range(design.stratum_count):
        assert np.abs(per_unit[design.stratum_of_unit == stratum].sum(axis=0)).max() < 1e-10


@pytest.mark.parametrize("name", ["clusters", "clusters in strata", "rows in strata", "replicates"])
def test_any_block_of_rows_has_the_same_multipliers(name):
    sample = replicated("brr") if name == "replicates" else rows_of(**DESIGNS[name])
    spreading = spreading_of(sample.design, 9, 4, np.float64)
    whole = spreading.multipliers(slice(0, ROWS))
    parts = [spreading.multipliers(slice(at, min(at + 33, ROWS))) for at in range(0, ROWS, 33)]
    assert np.vstack(parts) == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_every_row_its_own_cluster_is_nearly_independent_rows(weighted):
    """Up to n / (n - 1), and a mean over all rows, which is 0 at the estimate."""
    weights = weights_of() if weighted else None
    plain = averaged(rows_of(weights=weights))
    own = averaged(rows_of(weights=weights, cluster=np.arange(ROWS)))
    assert own.values == pytest.approx(plain.values)
    assert own.size == pytest.approx(plain.size)
    assert own.by_multipliers == pytest.approx(plain.by_multipliers)
    assert own.stderr == pytest.approx(plain.stderr * np.sqrt(ROWS / (ROWS - 1)))
    assert (plain.freedom, own.freedom) == (None, ROWS - 1)


def test_what_clusters_carry_equals_a_naive_loop():
    sample = rows_of(**DESIGNS["weighted clusters"])
    found, w = averaged(sample), sample.weights_or_ones
    for place, rows in enumerate(inside(sample)):
        parts = np.zeros(4)
        for unit in np.unique(CLUSTER):
            here = rows & (unit == CLUSTER)
            mass = w[here].sum()
            mean = w[here] @ sample.p[here] / mass if mass else 0.0
            variance = mass**2 * mean * (1 - mean)
            parts += mass**2, variance, variance * mass * (1 - 2 * mean), variance**2
        assert found.carried[:, place] == pytest.approx(parts)
        assert found.size[place] == pytest.approx((w @ rows) ** 2 / parts[0])


def test_the_data_come_first_under_every_law_and_none_may_be_asked_for():
    sample = rows_of(**DESIGNS["weighted clusters"])
    both = average(sample, Members(REGIONS), (Bernoulli(), Bernoulli()), 5, 0)
    assert both.sums.shape == (2, len(REGIONS), 6)
    assert both.sums[0] == pytest.approx(both.sums[1])
    assert both.sums[0, :, 0] == pytest.approx(both.residual)
    assert averaged(sample, 5).sums.shape == (0, len(REGIONS), 6)
