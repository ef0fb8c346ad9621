"""Slices: planted ones are found, and noise is not confirmed."""

import numpy as np
import pytest

import itrust as it
from itrust.errors import InputError
from itrust.regions import Between, Every, Level
from itrust.search import Searcher
from oracles import plausible


def people(rng, n: int, inside, bias: float) -> tuple[it.Sample, np.ndarray]:
    """Numbers, categories and missing values; a bias where `inside(x)`."""
    x = {
        "age": rng.integers(18, 80, n),
        "income": rng.lognormal(10, 0.5, n),
        "sex": rng.choice(["f", "m"], n),
        "race": rng.choice(list("abcd"), n, p=[0.5, 0.3, 0.15, 0.05]),
        "charge": rng.choice(["F", "M"], n),
        "lab": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
    }
    p = np.clip(0.4 + 0.08 * rng.normal(size=n), 0.1, 0.8)
    planted = inside(x)
    return it.Sample(rng.random(n) < p + bias * planted, p, x, missing="level"), planted


PLANTED = {
    "age < 30 and charge = F": lambda x: (x["age"] < 30) & (x["charge"] == "F"),
    "race = b and low income": lambda x: (x["race"] == "b") & (x["income"] < 17_700),
    "lab missing": lambda x: np.isnan(x["lab"]),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_slices_are_found_and_confirmed(name):
    runs, found = 16, 0
    for run in range(runs):
        sample, planted = people(np.random.default_rng(run), 10_000, PLANTED[name], 0.10)
        assert 0.08 < planted.mean() < 0.12
        for part in it.bias_slices(sample, draws=99, rng=run).confirmed:
            rows = part.region.rows(sample.points)
            if part.bias > 0 and (rows & planted).sum() > 0.5 * (rows | planted).sum():
                found += 1
                break
    assert found >= 12  # studies/bias.py has the long run


def test_a_right_model_has_a_confirmed_slice_in_at_most_5_percent():
    runs, wrong = 100, 0
    for run in range(runs):
        sample, _ = people(np.random.default_rng([1, run]), 1_500, lambda x: x["age"] < 0, 0.0)
        wrong += bool(it.bias_slices(sample, draws=99, rng=run).confirmed)
    assert wrong / runs <= 0.05 or plausible(wrong, runs)


def test_the_words_and_numbers_of_a_large_slice():
    rng = np.random.default_rng(0)
    sample, _ = people(rng, 10_000, PLANTED["age < 30 and charge = F"], 0.2)
    table = it.bias_slices(sample, draws=199, rng=0)
    first = table.confirmed[0]
    assert "age <" in first.rule
    assert "charge = F" in first.rule
    assert first.lower < 0.2 < first.upper
    rows = first.region.rows(sample.points)
    assert first.rows == rows.sum()
    assert first.impact == pytest.approx(first.share * first.bias)
    assert str(first) == f"{first.rule}: {first.bias:+.3f}, {first.rows:,} rows"
    assert "positive: the model underestimates" in str(table)
    assert table.to_arrow().num_rows == len(table)
    assert table.to_dict()["confirmed"] == len(table.confirmed)


def test_judged_rows_are_not_those_of_the_search():
    """The bias that a slice shows where it was found is larger than where it is judged."""
    gaps = []
    for run in range(20):
        sample, _ = people(np.random.default_rng([4, run]), 2_000, lambda x: x["age"] < 0, 0.0)
        for part in it.bias_slices(sample, draws=39, rng=run):
            assert 0 < part.judged_on < part.rows
            gaps.append(np.sign(part.found_bias) * part.bias)
    assert len(gaps) > 20
    assert abs(np.mean(gaps)) < 0.02  # unbiased on other rows: around the truth, 0


def test_ranked_by_rows_times_bias():
    table = it.bias_slices(it.simulate.survey(6_000, rng=0).sample, draws=199, rng=0)
    impacts = [abs(part.impact) for part in table.confirmed]
    assert impacts == sorted(impacts, reverse=True)
    assert len(impacts) >= 3
    rows = [part.region.rows(it.simulate.survey(6_000, rng=0).sample.points) for part in table]
    for k, one in enumerate(rows):
        for other in rows[:k]:
            assert (one & other).sum() <= 0.5 * (one | other).sum()


def test_the_search_finds_the_best_rectangle_of_a_brute_force():
    rng = np.random.default_rng(0)
    x = {"a": rng.integers(0, 5, 600), "g": rng.choice(["u", "v", "w"], 600)}
    p = np.full(600, 0.5)
    inside = (x["a"] >= 1) & (x["a"] < 3) & (x["g"] == "v")
    sample = it.Sample(rng.random(600) < p + 0.4 * inside, p, x)
    searcher = Searcher(sample, conditions=2, fewest=10)
    found = searcher.candidates(1)[0]
    best = 0.0
    for low in range(5):
        for high in range(low + 1, 6):
            for g in "uvw":
                rows = (x["a"] >= low) & (x["a"] < high) & (x["g"] == g)
                e = sample.residuals[rows]
                if rows.sum() >= 10:
                    best = max(best, abs(e.sum()) / np.sqrt((e**2).sum()))
    assert found.standard == pytest.approx(best)
    low_to_high = Between("a", 1.0, 3.0, "from 1 to below 3")
    assert found.region == Every((low_to_high, Level("g", "v")))


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


def test_clusters_are_not_torn_and_no_covariate_is_needed():
    town = it.simulate.uniform_shift(600, rng=0).sample
    assert it.bias_slices(it.Sample(town.y, town.p), draws=99, rng=0) is not None
    clustered = it.Sample(town.y, town.p, cluster=np.arange(600) // 3)
    assert "cluster" in " ".join(it.bias_slices(clustered, draws=99, rng=0).notes)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"conditions": 0}, "conditions must be a whole number of at least 1"),
        ({"most": 1.5}, "most must be a whole number"),
        ({"level": 2}, "level must lie between"),
    ],
)
def test_wrong_settings_get_one_sentence(settings, message):
    with pytest.raises(InputError, match=message):
        it.bias_slices(it.simulate.survey(60, rng=0).sample, **settings)


def test_weights_count_in_search_and_judgement():
    rng = np.random.default_rng(0)
    sample, _ = people(rng, 4_000, PLANTED["age < 30 and charge = F"], 0.2)
    x = {c.name: c.values for c in sample.columns if not c.is_category}
    silent = np.where(sample.column("age").values < 30, 0.0, 1.0)
    weighted = it.Sample(sample.y, sample.p, x, weights=silent, missing="level")
    for part in it.bias_slices(weighted, draws=49, rng=0):
        assert part.share > 0


@pytest.mark.parametrize(("p", "rate"), [(0.0, 0.2), (1.0, 0.8)])
def test_slices_of_impossible_labels_are_confirmed_in_either_direction(p, rate):
    rng = np.random.default_rng(0)
    half = np.arange(2_000) < 1_000
    predicted = np.where(half, p, 0.5)
    y = rng.random(2_000) < np.where(half, rate, 0.5)
    sample = it.Sample(y, predicted, {"x": rng.normal(size=2_000)})
    found = it.bias_slices(sample, draws=99, rng=0).confirmed
    assert any(abs(part.bias) > 0.15 for part in found)
