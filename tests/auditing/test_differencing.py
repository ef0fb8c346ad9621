"""Sums and differences of what a page shows do not tell of few rows."""

import json

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import itrust as it
from itrust.auditing.differencing import Told, Universe, first_to_go, least_at_hand
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
    bars = audit.charts.histogram
    marks += [
        (points.p >= low) & (points.p < high)
        for low, high in zip(bars.edges[:-1], bars.edges[1:], strict=True)
    ]
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
