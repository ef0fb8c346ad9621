import numpy as np
import pytest

from itrust import simulate

DESIGNS = [
    simulate.survey,
    simulate.papers_level_design,
    simulate.papers_power_design,
    simulate.tight_clusters,
    simulate.rare_events,
    simulate.weighted_rows,
    simulate.uniform_shift,
    simulate.repeated_units,
    simulate.outcome_weights,
]


@pytest.mark.parametrize("design", DESIGNS)
def test_labels_follow_the_truth(design):
    sums = [(s.sample.y - s.truth).sum() for s in (design(rng=run) for run in range(30))]
    one = design(rng=0)
    shared = 2 if design is simulate.repeated_units else 1  # correlation 1/4 in units of 5
    sd = np.sqrt(30 * shared * np.sum(one.truth * (1 - one.truth)))
    assert abs(sum(sums)) < 4.5 * sd


@pytest.mark.parametrize("design", DESIGNS)
def test_same_seed_same_sample(design):
    a, b = design(rng=3).sample, design(rng=3).sample
    np.testing.assert_array_equal(a.y, b.y)
    np.testing.assert_array_equal(a.p, b.p)


def test_the_survey_is_wrong_in_the_south_only():
    town = simulate.survey(5000, rng=0)
    region = town.sample.column("region")
    south = region.values == region.levels.index("south")
    assert np.abs(town.bias[~south]).max() == 0
    assert np.abs(town.bias[south]).mean() > 0.05
    assert simulate.survey(100, rng=0, trustworthy=True).bias.tolist() == [0.0] * 100


def test_tight_clusters_are_as_described():
    s = simulate.tight_clusters(500, rng=0).sample
    x = s.columns[0].values
    assert (s.p == 0.5).sum() == 100
    assert np.abs(x[s.p == 0.5] - np.rint(x[s.p == 0.5])).max() < 0.01
    assert np.diff(np.sort(x[s.p == 0.01])).min() >= 1.0
