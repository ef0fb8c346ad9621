"""Slices: planted ones are found, and noise is not confirmed."""

import numpy as np
import pytest

import itrust as it
from itrust._core import InputError
from itrust.bias import Searcher
from itrust.data import And, Between, Level
from oracles import plausible
from people import people


def planted_in(rng, n: int, inside, bias: float) -> tuple[it.Sample, np.ndarray]:
    """Numbers, categories and missing values; a bias where `inside(x)`."""
    x = people(rng, n)
    p = np.clip(0.4 + 0.08 * rng.normal(size=n), 0.1, 0.8)
    planted = inside(x)
    return it.Sample(rng.random(n) < p + bias * planted, p, x, missing="level"), planted


PLANTED = {
    "age < 30 and charge = F": lambda x: (x["age"] < 30) & (x["charge"] == "F"),
    "race = b and low income": lambda x: (x["race"] == "b") & (x["income"] < 17_700),
    "lab missing": lambda x: np.isnan(x["lab"]),
}


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.slow
def test_planted_slices_are_found_and_confirmed(name):
    runs, found = 10, 0
    for run in range(runs):
        sample, planted = planted_in(np.random.default_rng(run), 10_000, PLANTED[name], 0.10)
        assert 0.08 < planted.mean() < 0.12
        for part in it.bias_slices(sample, draws=99, rng=run).confirmed:
            rows = part.where.rows(sample.points)
            if part.bias > 0 and (rows & planted).sum() > 0.5 * (rows | planted).sum():
                found += 1
                break
    assert found >= 6  # studies/bias.py has the long run


@pytest.mark.slow
def test_a_right_model_has_a_confirmed_slice_in_at_most_5_percent():
    runs, wrong = 24, 0
    for run in range(runs):
        sample, _ = planted_in(np.random.default_rng([1, run]), 1_500, lambda x: x["age"] < 0, 0.0)
        wrong += bool(it.bias_slices(sample, draws=99, rng=run).confirmed)
    assert wrong / runs <= 0.05 or plausible(wrong, runs, doubt=0.02)


def test_the_words_and_numbers_of_a_large_slice():
    rng = np.random.default_rng(0)
    sample, _ = planted_in(rng, 10_000, PLANTED["age < 30 and charge = F"], 0.2)
    table = it.bias_slices(sample, draws=199, rng=0)
    first = next(part for part in table.confirmed if "charge = F" in part.rule)
    assert "age <" in first.rule
    assert first.lower < 0.2 < first.upper
    rows = first.where.rows(sample.points)
    assert first.rows == rows.sum()
    assert first.impact == pytest.approx(first.share * first.bias)
    assert str(first) == f"{first.rule}: {first.bias:+.3f}, {first.rows:,} rows"
    assert "positive: the model underestimates" in str(table)
    assert table.to_arrow().num_rows == len(table)
    assert table.to_dict()["confirmed"] == len(table.confirmed)


@pytest.mark.slow
def test_judged_rows_are_not_those_of_the_search():
    """The bias that a slice shows where it was found is larger than where it is judged."""
    gaps = []
    for run in range(12):
        sample, _ = planted_in(np.random.default_rng([4, run]), 2_000, lambda x: x["age"] < 0, 0.0)
        for part in it.bias_slices(sample, draws=39, rng=run):
            assert 0 < part.judged_on < part.rows
            gaps.append((np.sign(part.found_bias) * part.bias, abs(part.found_bias)))
    judged, found = np.mean(gaps, axis=0)
    assert len(gaps) > 12
    assert abs(judged) < 0.02  # unbiased on other rows: around the truth, 0
    assert found > judged + 0.05


def test_ranked_by_rows_times_bias():
    table = it.bias_slices(it.simulate.survey(6_000, rng=0).sample, draws=199, rng=0)
    impacts = [abs(part.impact) for part in table.confirmed]
    assert impacts == sorted(impacts, reverse=True)
    assert len(impacts) >= 3
    rows = [part.where.rows(it.simulate.survey(6_000, rng=0).sample.points) for part in table]
    for k, one in enumerate(rows):
        for other in rows[:k]:
            assert (one & other).sum() <= 0.5 * (one | other).sum()


def test_the_search_finds_the_best_rectangle_of_a_brute_force():
    rng = np.random.default_rng(0)
    x = {"a": rng.integers(0, 5, 600), "g": rng.choice(["u", "v", "w"], 600)}
    p = np.full(600, 0.5)
    inside = (x["a"] >= 1) & (x["a"] < 3) & (x["g"] == "v")
    sample = it.Sample(rng.random(600) < p + 0.4 * inside, p, x)
    searcher = Searcher(sample, max_conditions=2, min_rows=10)
    found = searcher.candidates(1)[0]
    best = 0.0
    for low in range(5):
        for high in range(low + 1, 6):
            for g in "uvw":
                rows = (x["a"] >= low) & (x["a"] < high) & (x["g"] == g)
                e = sample.residuals[rows]
                if rows.sum() >= 10:
                    best = max(best, abs(e.sum()) / np.sqrt((e**2).sum()))
    e = sample.residuals[found.where.rows(sample.points)]
    assert abs(e.sum()) / np.sqrt((e**2).sum()) == pytest.approx(best)
    low_to_high = Between("a", 1.0, 3.0, "from 1 to below 3")
    assert found.where == And((low_to_high, Level("g", "v")))


def test_rare_levels_missing_values_and_dates_are_searched():
    rng = np.random.default_rng(0)
    n = 3_000
    x = {
        "town": rng.choice([f"t{k}" for k in range(80)], n),
        "day": np.datetime64("2026-01-01") + rng.integers(0, 300, n),
        "lab": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
    }
    day = x["day"] >= np.datetime64("2026-07-01")
    p = np.full(n, 0.4)
    sample = it.Sample(rng.random(n) < p + 0.2 * day, p, x, missing="level")
    rules = [part.rule for part in it.bias_slices(sample, draws=99, rng=0).confirmed]
    assert any(rule.startswith("day ") and "2026-0" in rule for rule in rules)


def test_a_sample_without_covariates_is_searched_along_its_prediction():
    town = it.simulate.uniform_shift(3_000, shift=0.2, rng=0).sample
    confirmed = it.bias_slices(it.Sample(town.y, town.p), draws=99, rng=0).confirmed
    assert confirmed
    assert all("prediction" in part.rule for part in confirmed)


def test_clusters_stay_on_one_side(monkeypatch):
    town = it.simulate.uniform_shift(600, rng=0).sample
    clustered = it.Sample(town.y, town.p, cluster=np.arange(600) // 3)
    seen = []
    monkeypatch.setattr(
        "itrust.bias.slices.Searcher",
        lambda search, *_: seen.append(search.cluster) or Searcher(search, 1, 50),
    )
    it.bias_slices(clustered, draws=99, rng=0)
    assert not set(seen[0]) & set(seen[1])
    assert set(seen[0]) | set(seen[1]) == set(range(200))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_conditions": 0}, "max_conditions must be a whole number of at least 1"),
        ({"max_slices": 1.5}, "max_slices must be a whole number"),
        ({"alpha": 2}, "alpha must lie between"),
    ],
)
def test_wrong_settings_get_one_sentence(settings, message):
    with pytest.raises(InputError, match=message):
        it.bias_slices(it.simulate.survey(60, rng=0).sample, **settings)


def test_weights_count_in_search_and_judgement():
    """A bias in rows of weight 0 is no bias."""
    rng = np.random.default_rng(0)
    sample, planted = planted_in(rng, 4_000, PLANTED["age < 30 and charge = F"], 0.4)
    x = {c.name: c.values for c in sample.columns if c.name != "lab"}
    loud = it.bias_slices(it.Sample(sample.y, sample.p, x), draws=99, rng=0)
    silent = it.Sample(sample.y, sample.p, x, weights=np.where(planted, 0.0, 1.0))
    assert loud.confirmed
    assert not it.bias_slices(silent, draws=99, rng=0).confirmed


@pytest.mark.parametrize(("p", "rate"), [(0.0, 0.2), (1.0, 0.8)])
def test_slices_of_impossible_labels_are_confirmed_in_either_direction(p, rate):
    rng = np.random.default_rng(0)
    half = np.arange(2_000) < 1_000
    predicted = np.where(half, p, 0.5)
    y = rng.random(2_000) < np.where(half, rate, 0.5)
    sample = it.Sample(y, predicted, {"x": rng.normal(size=2_000)})
    found = it.bias_slices(sample, draws=99, rng=0).confirmed
    assert any(abs(part.bias) > 0.15 for part in found)


@pytest.mark.parametrize(
    "values",
    [
        1_000_000 + np.arange(400),
        1_099_511_627_776 + 1_000 * np.arange(400),
        1 - 10.0 ** -np.linspace(1, 9, 400),
        5e-324 * np.arange(400),
        1e300 * np.linspace(-1, 1, 400),
    ],
)
def test_the_printed_rule_is_the_rule(values):
    rng = np.random.default_rng(0)
    half = np.arange(400) < 200
    sample = it.Sample(rng.random(400) < 0.3 + 0.5 * half, np.full(400, 0.5), {"v": values})
    for part in Searcher(sample, max_conditions=1, min_rows=20).candidates(4):
        words = str(part.where).removeprefix("v ")
        low = high = None
        if words.startswith("< "):
            high = float(words[2:])
        elif words.startswith(">= "):
            low = float(words[3:])
        else:
            low, high = (float(end) for end in words.removeprefix("from ").split(" to below "))
        inside = np.ones(400, dtype=bool)
        inside &= True if low is None else sample.columns[0].values >= low
        inside &= True if high is None else sample.columns[0].values < high
        assert (inside == part.where.rows(sample.points)).all()


def test_times_of_one_day_are_told_apart():
    rng = np.random.default_rng(0)
    when = np.datetime64("2026-01-01T08:00:00") + 60 * rng.integers(0, 600, 400)
    sample = it.Sample(rng.random(400) < 0.5, np.full(400, 0.5), {"t": when})
    names = [group.name for group in it.bias_groups(sample, "t", draws=19, rng=0)]
    assert len(set(names)) == 4


def test_a_covariate_that_is_nearly_always_missing_is_no_trouble():
    x = {"a": [1.0, *[np.nan] * 199], "b": np.arange(200.0)}
    sample = it.Sample([0, 1] * 100, [0.5] * 200, x, missing="level")
    table = it.bias_slices(sample, draws=39, rng=0)
    assert all(np.isfinite([part.bias, part.lower, part.upper]).all() for part in table)
    # The one known value makes no cell of its own, and missing ones are no rule beside it.
    assert not [part.rule for part in table if "a" in part.names]
    off = it.Sample(np.arange(200) % 4 > 0, [0.5] * 200, x, missing="level")
    rules = [part.rule for part in it.bias_slices(off, draws=39, rng=0).confirmed]
    assert rules
    assert not [rule for rule in rules if "nan" in rule]


def test_a_covariate_called_prediction_does_not_hide_the_prediction():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 3_000)
    y = rng.random(3_000) < np.where(p < 0.4, p + 0.3, p)
    sample = it.Sample(y, p, {"prediction": rng.normal(size=3_000)})
    rules = [part.rule for part in it.bias_slices(sample, draws=99, rng=0).confirmed]
    assert any(rule.startswith("p (the model's) < 0.4") for rule in rules)


@pytest.mark.slow
def test_many_covariates_leave_enough_rows_to_search_in():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3_000, 120))
    y = rng.random(3_000) < 0.4 + 0.3 * (x[:, 77] > 0.5)
    found = it.bias_slices(it.Sample(y, np.full(3_000, 0.4), x), max_slices=2, draws=99, rng=0)
    assert any("x78 >=" in part.rule for part in found.confirmed)


@pytest.mark.parametrize("alpha", ["x", None, 0.8, True])
def test_a_level_that_is_none_is_refused_as_it_was_given(alpha):
    with pytest.raises(InputError, match=f"not {alpha!r}"):
        it.bias_slices(it.simulate.survey(60, rng=0).sample, alpha=alpha)
