"""Sums and differences of what a page shows do not tell of few rows."""

import json

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import itrust as it
from itrust.auditing.differencing import (
    Told,
    Universe,
    first_to_go,
    least_at_hand,
    telling_values,
)
from itrust.auditing.disclosed_points import shared_step
from itrust.data import Points
from itrust.render import as_text, page

LEAST = 10


def attack(marks, rows, least=LEAST):
    """Whole-number coefficients of shown parts (k, m) whose sum indicates few of the rows (m,).

    An integer programme: stronger than any search by hand, and independent of the package.
    """
    cells = np.unique(np.vstack([marks, np.ones(marks.shape[1])]), axis=1, return_inverse=True)
    matrix, belongs = cells[0], cells[1].ravel()
    own = np.bincount(belongs, weights=rows, minlength=matrix.shape[1])
    limits = [
        LinearConstraint(matrix.T, 0, 1),
        LinearConstraint((matrix @ own)[None, :], 1, least - 1),
    ]
    k = len(matrix)
    found = milp(np.zeros(k), constraints=limits, integrality=np.ones(k), bounds=Bounds(-4, 4))
    return None if found.x is None else np.round(found.x)


def people(n, rng, rare=4):
    place = rng.choice(["north", "south", "west"], n).astype(object)
    race = rng.choice(["white", "black", "asian"], n, p=[0.6, 0.3, 0.1]).astype(object)
    race[:rare] = "rareland"
    age = rng.integers(18, 90, n).astype(float)
    return {"race": rng.permutation(race), "place": place, "age": age}


def random_parts(x, rng, count):
    """Parts as users and searches make them: conditions of up to three covariates."""

    def one():
        name = rng.choice(["race", "place", "age"])
        if name == "age":
            return x["age"] < rng.integers(19, 90)
        level = rng.choice(np.unique(x[name].astype(str)))
        return x[name] == level if rng.random() < 0.7 else x[name] != level

    return [np.all([one() for _ in range(rng.integers(1, 4))], axis=0) for _ in range(count)]


@pytest.mark.parametrize("seed", range(12))
def test_no_integer_programme_finds_few_rows_in_what_is_left(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([80, 300, 1_500]))
    x = people(n, rng)
    points = Points(rng.random(n), it.Sample(rng.integers(0, 2, n), rng.random(n), x).columns)
    universe = Universe.of(points, n, LEAST)
    everyone = {
        c.name: np.array(c.levels, object)[c.values] if c.levels else c.values
        for c in universe.points.columns
    }
    parts = [p for p in random_parts(everyone, rng, 14) if not universe.is_few(p)]
    told = [Told(k, [part]) for k, part in enumerate(parts)]
    while (worst := first_to_go(told, universe)) is not None:
        told = [one for one in told if one.owner != worst]
    real = np.concatenate([np.ones(n), np.zeros(len(universe.points) - n)])
    if told:
        assert attack(np.array([one.parts[0] for one in told]), real) is None


def test_the_attack_finds_what_a_total_gives_away():
    groups = np.eye(3)[:2]  # the third of three groups is not shown
    assert attack(groups, np.array([400, 300, 4])) is not None
    assert attack(groups, np.array([400, 300, 40])) is None


@pytest.fixture(scope="module")
def audited():
    rng = np.random.default_rng(2)
    n = 1_500
    x = people(n, rng)
    p = rng.uniform(0.2, 0.8, n)
    y = rng.random(n) < np.clip(p + 0.25 * ((x["race"] == "black") & (x["age"] < 50)), 0, 1)
    tasks = [
        'prevalence(race == "rareland")',
        'prevalence(race != "rareland")',
        'share(race == "rareland")',
        'mean(age | race == "rareland" or age > 88)',
        'prevalence(race == "white")',
        'prevalence(race == "white" and age < 89)',
        'mean(age | race == "black") - mean(age | race == "rareland")',
        "mean(age)",
        'prevalence(race in ("white", "black"))',
    ]
    return it.audit(it.Sample(y, p, x), tasks, draws=39, rng=0)


def shown_parts(audit):
    """The rows behind everything that is shown with a number of rows, or with a rate."""
    points = audit.sample.points
    wheres = [group.where for group in audit.diagnosis.groups]
    wheres += [part.where for part in audit.diagnosis.slices]
    for found in audit.tasks:
        for ratio in found.task.ratios() if found.withheld is None else ():
            own = list(ratio.predicates())
            wheres += [own[0], own[0] & own[-1]]
    marks = [where.rows(points) for where in wheres]
    rows = audit.overall.curve.rows
    order = np.argsort(points.p, kind="stable")
    if rows.sum() == audit.n:
        marks += [np.isin(np.arange(audit.n), own) for own in np.split(order, np.cumsum(rows)[:-1])]
    return np.array(marks, dtype=float)


def test_a_page_cannot_be_solved_for_a_hidden_cell(audited):
    ones = np.ones(audited.n)
    assert attack(shown_parts(audited), ones) is not None  # without disclosure control
    assert attack(shown_parts(audited.disclosed(LEAST)), ones) is None


def test_a_hidden_group_is_not_in_the_span_of_what_is_shown(audited):
    """Linear algebra alone: least squares leaves something of the group's indicator."""
    marks = shown_parts(audited.disclosed(LEAST))
    matrix = np.vstack([marks, np.ones(audited.n)]).T
    for where in {group.where for group in audited.diagnosis.groups if group.rows < LEAST}:
        aim = where.rows(audited.sample.points).astype(float)
        left = aim - matrix @ np.linalg.lstsq(matrix, aim, rcond=None)[0]
        assert np.abs(left).max() > 1e-6


def test_numbers_that_rest_on_few_rows_are_withheld_everywhere(audited):
    shown = audited.disclosed(LEAST)
    told = {found.name: found.withheld for found in shown.tasks}
    for name, withheld in told.items():
        if "rareland" in name:
            assert withheld == LEAST, name
    assert told["mean(age)"] is None
    assert told['prevalence(race == "white")'] is None
    assert shown.withheld.tasks == sum(value is not None for value in told.values())
    facts = shown.to_dict()
    hidden = [task for task in facts["tasks"] if task["withheld"]]
    assert all(
        task[name] is None
        for task in hidden
        for name in ("plugin", "from_labels", "bias", "lower", "upper", "stderr", "pvalue")
    )
    rate = audited.tasks[0].from_labels
    assert f"{rate:.6g}" not in json.dumps(hidden)
    assert as_text(shown).count("withheld: it rests on fewer than 10 rows") == len(hidden)
    assert page.page(shown).count("withheld: it rests on fewer than 10 rows") == len(hidden)


def test_a_withheld_number_neither_closes_the_gate_nor_carries_the_verdict(audited):
    shown = audited.disclosed(LEAST)
    found = it.auditing.gate(shown, "tasks")
    withheld = [check for check in found.checks if check.value in shown.tasks]
    outcomes = {c.name: c.outcome for c in withheld if c.value.withheld}
    assert set(outcomes.values()) == {"skipped"}
    assert not any(getattr(item, "withheld", None) for item in shown.evidence)


def test_models_are_compared_without_numbers_that_are_withheld(audited):
    tasks = [found.task for found in audited.tasks]
    other = audited.sample.with_predictions(np.clip(audited.sample.p + 0.1, 0, 1))
    both = it.compare({"a": audited.sample, "b": other}, tasks, draws=39, rng=0)
    shown = audited.extended(comparison=both).disclosed(LEAST).comparison
    assert all(m.tasks[0].withheld == LEAST for m in shown.models)
    assert not any("rareland" in part.what for part in shown.differences)
    assert "withheld" in str(shown)


def test_neighbours_and_shares_are_multiples_of_the_fewest_rows(audited):
    shown = audited.disclosed(LEAST)
    parts = [line for curve in shown.charts.curves for line in curve.parts]
    near = [size for part in [*parts, *shown.charts.maps] for size in part.neighbours if size]
    assert near
    assert not np.mod(near, LEAST).any()
    regions = [*shown.missed.detectable.regions, *shown.missed.detectable.pairs]
    rows = np.array([region.share for region in regions]) * shown.n
    assert np.allclose(rows / LEAST, np.round(rows / LEAST))


def test_a_point_is_described_by_values_that_enough_rows_have():
    rng = np.random.default_rng(4)
    income = np.round(rng.lognormal(10, 1, 500), 2)
    for value in income[:20]:
        step = shared_step(income, float(value), LEAST)
        assert step > 0
        assert (np.round(income / step) == np.round(value / step)).sum() >= LEAST
        assert step == 10.0 ** round(np.log10(step)) or step / 10 ** np.floor(np.log10(step)) > 1.9
    assert shared_step(np.repeat(income, LEAST), float(income[0]), LEAST) == 0


@pytest.mark.parametrize("share", [0.9, 0.3, 0.01])
def test_rows_at_hand_show_how_many_there_are(share):
    """Of nine rows in all, hardly ever so many are at hand that they count as ten."""
    rng = np.random.default_rng(1)
    at_hand = rng.binomial(LEAST - 1, share, 200_000)
    assert np.mean(at_hand >= least_at_hand(LEAST, share)) < 3e-4


def quick(sample, tasks=(), **more):
    return it.audit(sample, list(tasks), draws=39, rng=0, charts=False, **more).disclosed(LEAST)


def withheld(shown):
    return [found.withheld is not None for found in shown.tasks]


def test_means_do_not_tell_the_value_of_one_positive_by_a_difference():
    """Of sixteen rows one is positive: the total less the other groups would be its income."""
    rng = np.random.default_rng(0)
    n = 900
    g = rng.choice(["a", "b", "c"], n, p=[0.5, 0.48, 0.02]).astype(object)
    p = rng.uniform(0.02, 0.3, n)
    y = rng.random(n) < p
    y[g == "c"] = False
    y[np.flatnonzero(g == "c")[0]] = True
    sample = it.Sample(y, p, {"g": g, "inc": rng.integers(1_000, 9_000, n).astype(float)})
    parts = ["mean(inc)", 'mean(inc | g == "a")', 'mean(inc | g == "b")']
    assert withheld(quick(sample, parts)) == [False, False, True]
    assert withheld(quick(sample, ["mean(inc)", 'mean(inc | g != "c")'])) == [False, True]


@pytest.mark.parametrize(
    "tasks",
    [
        ["mean(inc)", "mean(inc * (1 - flag))"],
        ["mean(inc)", "mean(inc + 1000000 * flag)"],
        ["mean(ch)", "share(ch == 1)"],
        ["mean(x)"],
    ],
)
def test_formulas_do_not_tell_the_values_of_few_rows(tasks):
    rng = np.random.default_rng(1)
    n = 400
    p = rng.uniform(0.2, 0.8, n)
    y = rng.random(n) < p
    y[:3] = True
    flag = np.arange(n) < 3
    x = np.where(np.arange(n) == 0, 77_777.0, np.where(~y & (np.arange(n) < 60), 1.0, 0.0))
    ch = np.where(flag, 7.0, rng.integers(0, 2, n).astype(float))
    columns = {"inc": rng.integers(1_000, 9_000, n).astype(float), "flag": flag, "ch": ch, "x": x}
    shown = quick(it.Sample(y, p, columns), tasks, on=["inc"])
    assert sum(withheld(shown)) == 1


def test_a_swap_of_few_rows_is_a_difference_too():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 400)
    sample = it.Sample(rng.random(400) < p, p, {"age": np.arange(400.0)})
    tasks = ["prevalence(age >= 50 and age < 250)", "prevalence(age >= 51 and age < 251)"]
    assert withheld(quick(sample, tasks)) == [False, True]


def test_a_city_is_not_told_by_its_region_and_the_other_cities():
    rng = np.random.default_rng(0)
    region = np.repeat(["N", "S"], 200).astype(object)
    city = np.repeat(["n1", "n2", "n3", "s1", "s2", "s3"], [100, 96, 4, 100, 80, 20])
    p = rng.uniform(0.1, 0.9, 400)
    sample = it.Sample(rng.random(400) < p, p, {"region": region, "city": city.astype(object)})
    names = {group.name for group in quick(sample).diagnosis.groups}
    assert not {"region = N", "city = n1", "city = n2"} <= names


def test_curves_of_groups_do_not_tell_bins_by_the_curve_of_all():
    rng = np.random.default_rng(0)
    levels = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    p = np.r_[np.repeat(levels, 200), np.repeat(levels, [4, 60, 60, 60, 60])]
    sex = np.repeat(["f", "m"], [1_000, 244]).astype(object)
    found = it.audit(it.Sample(rng.random(p.size) < p, p, {"sex": sex}), draws=39, rng=0)
    shown = found.disclosed(LEAST)
    lines = [line.curve for line in shown.charts.by_group]
    assert lines
    for curve in lines:
        assert not np.mod(curve.rows, LEAST).any()
        assert all(float(f"{rate:.2g}") == rate for rate in curve.observed)
    assert not np.mod(shown.charts.histogram.counts, LEAST).any()


def test_the_largest_error_of_a_bin_of_one_row_is_withheld():
    rng = np.random.default_rng(0)
    p = np.append(rng.uniform(0.05, 0.75, 500), 0.93)
    sample = it.Sample(np.append(rng.random(500) < 0.4, False), p, {"a": rng.normal(size=501)})
    found = it.audit(sample, draws=39, rng=0, charts=False)
    assert found.overall.mce == pytest.approx(0.93)
    assert found.disclosed(LEAST).to_dict()["overall"]["mce"] is None
    assert found.disclosed(1).overall.mce == found.overall.mce


def test_all_rows_are_told_however_few_they_are():
    sample = it.Sample([0, 1, 0, 1, 0], [0.2, 0.6, 0.3, 0.5, 0.4], {"a": [1.0, 2, 3, 4, 5]})
    shown = quick(sample, ["prevalence()"])
    assert withheld(shown) == [False]
    assert shown.overall.mean.observed == 0.4


def test_sums_of_values_without_a_difference_of_few_rows_tell_nothing():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(3, 500))
    parts = (rng.random((6, 500)) < 0.5).astype(float)
    assert not telling_values(values, parts, LEAST).any()
    few = values[0].copy()
    few[:5] = 0
    assert telling_values(np.vstack([values, few]), parts, LEAST)[[0, 3]].all()
