import numpy as np
import pytest

from itrust import InputError, simulate

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


def test_the_survey_is_right_in_the_north_and_on_the_whole_only():
    town = simulate.survey(20_000, rng=0)
    region = town.sample.column("region")
    north = region.values == region.levels.index("north")
    assert np.abs(town.bias[north]).max() == 0
    assert np.abs(town.bias[~north]).mean() > 0.07
    tenths = np.digitize(town.sample.p, np.linspace(0, 1, 11))
    gaps = [town.bias[tenths == k].mean() for k in range(3, 10)]
    assert np.abs(gaps).max() < 0.03
    assert simulate.survey(100, rng=0, trustworthy=True).bias.tolist() == [0.0] * 100


def test_tight_clusters_are_as_described():
    s = simulate.tight_clusters(500, rng=0).sample
    x = s.columns[0].values
    assert (s.p == 0.5).sum() == 100
    assert np.abs(x[s.p == 0.5] - np.rint(x[s.p == 0.5])).max() < 0.01
    assert np.diff(np.sort(x[s.p == 0.01])).min() >= 1.0


def test_imputed_groups_are_right_on_average_and_wrong_given_approval():
    loans = simulate.imputed_groups(40_000, rng=0, size=100)
    s, column = loans.sample, loans.sample.column("approved")
    approved = column.values == column.levels.index("yes")
    noise = np.sqrt((s.p * (1 - s.p)).sum(axis=0)) / s.n
    assert (np.abs(s.residuals.mean(axis=0)) < 4 * noise).all()
    for k, rate in enumerate(loans.truth.values()):
        own = approved[s.codes == k]
        assert abs(own.mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / own.size)
    given = s.residuals[approved].mean(axis=0)
    assert given[0] > 0.04
    assert given[1] < -0.04


def test_the_odds_of_a_credit_book_are_divided_by_the_selection():
    book = simulate.credit_book(4_000, rng=3, selection=1.6)
    odds = (one / (1 - one) for one in (book.truth, book.among_approved))
    np.testing.assert_allclose(np.divide(*odds), 1.6)


def test_labels_of_a_credit_book_follow_the_law_of_the_approved():
    misses = []
    for seed in range(20):
        book = simulate.credit_book(3_000, rng=seed, selection=1.5)
        spread = np.sqrt((book.among_approved * (1 - book.among_approved)).sum())
        misses.append((book.sample.y - book.among_approved).sum() / spread)
    assert abs(np.mean(misses)) < 3 / np.sqrt(20)
    assert 0.6 < np.std(misses) < 1.5


def test_a_credit_book_tells_the_rate_of_all_who_applied():
    book = simulate.credit_book(20_000, rng=1)
    assert book.applicants.p.mean() == pytest.approx(book.rate)
    assert len(book.applicants.p) == 20_000 > book.sample.n > 10_000
    too_low = simulate.credit_book(20_000, rng=1, understated=2.0)
    assert too_low.rate == book.rate
    assert (too_low.bias > 0).all()


@pytest.mark.parametrize("setting", [{"selection": 0.9}, {"understated": 0.0}])
def test_a_credit_book_refuses_odd_settings(setting):
    (name,) = setting
    with pytest.raises(InputError, match=f"{name} must be"):
        simulate.credit_book(100, rng=0, **setting)
