"""Tasks: plain ratios, arithmetic, exact and studentised p-values, intervals that cover."""

import numpy as np
import pytest

import itrust as it
from itrust import tasks
from itrust.errors import InputError
from itrust.tasks import Rows, along
from oracles import plausible


@pytest.fixture(scope="module")
def town() -> it.Sample:
    return it.simulate.survey(3_000, rng=1).sample


def columns(sample):
    return (sample.column(name) for name in ("age", "region"))


def test_plug_in_and_labels_are_weighted_means(town):
    age, region = columns(town)
    w = np.random.default_rng(0).exponential(size=town.n)
    x = {"age": age.values, "region": [region.levels[k] for k in region.values]}
    sample = it.Sample(town.y, town.p, x, weights=w)
    south = region.values == region.levels.index("south")
    found = tasks.mean("age", where={"region": "south"}).evaluate(sample, draws=19, rng=0)
    for value, s in ((found.plugin, town.p), (found.from_labels, town.y)):
        assert value == pytest.approx(np.average(age.values[south], weights=(w * s)[south]))
    rate = tasks.prevalence(region="south").evaluate(sample, draws=19, rng=0)
    assert rate.plugin == pytest.approx(np.average(town.p[south], weights=w[south]))
    part = tasks.share(region="south").evaluate(sample, draws=19, rng=0)
    assert part.from_labels == pytest.approx((w * town.y)[south].sum() / (w * town.y).sum())
    assert found.covariates == ("age", "region")


def test_arithmetic_of_tasks_is_that_of_their_values(town):
    a, b = tasks.mean("age"), tasks.prevalence(region="south")
    rows = Rows(town.points, town.weights_or_ones, town.p)
    x, y = a.linear(rows).value, b.linear(rows).value
    for task, value in (
        (a + b, x + y),
        (a - b, x - y),
        (a * b, x * y),
        (a / b, x / y),
        (-a, -x),
        (2 * a - 1, 2 * x - 1),
        (1 / b, 1 / y),
        ((a - b) / (a + b), (x - y) / (x + y)),
    ):
        assert task.linear(rows).value == pytest.approx(value)


@pytest.mark.parametrize("kind", ["linear", "leaning"])
def test_influences_are_derivatives(kind):
    """By a second implementation: move one row's weight, or its stand-in, a little."""
    sample = it.simulate.survey(40, rng=0).sample
    task = (tasks.mean("age", where={"region": ["south", "north"]}) * 2) / (
        tasks.prevalence(region="south") + 1
    )
    w, p = np.full(40, 1.0), sample.p.copy()
    found = getattr(task, kind)(Rows(sample.points, w, p)).influence
    for row in range(0, 40, 7):
        step = np.zeros(40)
        step[row] = 1e-6
        if kind == "linear":
            up, down = (Rows(sample.points, w + s * step, p) for s in (1, -1))
        else:
            up, down = (Rows(sample.points, w, p + s * step) for s in (1, -1))
        slope = (task.linear(up).value - task.linear(down).value) / 2e-6
        assert found[row] == pytest.approx(slope, rel=1e-4, abs=1e-9)


def test_the_bias_of_a_mean_is_a_weighted_sum_of_residuals(town):
    """The identity behind the p-value: theta_y - theta_p = sum (g - theta_p h) e / sum h y."""
    task = tasks.mean("age")
    found = task.evaluate(town, draws=19, rng=0)
    c = task.leaning(Rows(town.points, town.weights_or_ones, town.p)).influence
    scale = town.p.sum() / town.y.sum()
    assert found.bias == pytest.approx(scale * float(c @ town.residuals))


def test_draws_come_in_any_blocks(town, monkeypatch):
    c = np.random.default_rng(0).normal(size=(2, town.n))
    null = it.nulls.Bernoulli()
    whole = along(town, c, null, 50, 3)
    monkeypatch.setattr("itrust.tasks.ROWS_AT_ONCE", 701)
    monkeypatch.setattr("itrust.tasks.DRAWS_AT_ONCE", 7)
    parts = along(town, c, null, 50, 3)
    for a, b in zip(whole, parts, strict=True):
        assert a == pytest.approx(b)
    drawn = np.empty((town.n, 50))
    null.fill(drawn, town, range(50), 3)
    assert whole[0][:, 1:] == pytest.approx(c @ drawn)
    assert whole[1][:, 1:] == pytest.approx(c**2 @ drawn**2)


def test_functions_of_covariates_tell_what_they_read(town):
    task = tasks.mean(lambda x: (x["age"] > 60) * (x["region"] == "south"), name="old south")
    found = task.evaluate(town, draws=19, rng=0)
    same = tasks.parse('share(age > 60 and region == "south")').evaluate(town, draws=19, rng=0)
    assert found.plugin == pytest.approx(same.plugin)
    assert found.pvalue == same.pvalue
    assert found.covariates == ("age", "region")
    assert found.name == "mean(old south)"


def test_dates_booleans_and_missing_values():
    rng = np.random.default_rng(0)
    n = 300
    x = {
        "day": np.datetime64("2026-01-01") + rng.integers(0, 100, n),
        "urban": rng.random(n) < 0.5,
        "lab": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        "g": rng.choice(np.array(["a", None], dtype=object), n),
    }
    sample = it.Sample(rng.random(n) < 0.5, np.full(n, 0.5), x, missing="level")
    for text in (
        'prevalence(day >= "2026-02-01")',
        "prevalence(urban == true) - prevalence(urban == false)",
        "prevalence(lab is missing)",
        "mean(lab | not (lab is missing))",
        "mean(lab | lab is not missing)",
        "share(g is missing)",
        "prevalence(lab < 0)",
    ):
        assert np.isfinite(tasks.parse(text).evaluate(sample, draws=19, rng=0).plugin), text
    with pytest.raises(InputError, match=r"lab has no finite value in .* leave them out"):
        tasks.mean("lab").evaluate(sample)
    late = tasks.parse('prevalence(day >= "2026-02-01")').evaluate(sample, draws=19, rng=0)
    inside = x["day"] >= np.datetime64("2026-02-01")
    assert late.from_labels == pytest.approx(sample.y[inside].mean())


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (tasks.mean("agee"), "there is no covariate 'agee'; did you mean 'age'"),
        (tasks.mean("region"), "is a category and has no mean"),
        (tasks.prevalence(region="sout"), "has no level 'sout'; did you mean 'south'"),
        (tasks.parse("prevalence(age > 200)"), "no row satisfies age > 200"),
        (tasks.parse('prevalence(age == "old")'), "'age' is a number"),
        (tasks.parse('prevalence(region < "south")'), "'region' is a category, so it has no <"),
        (tasks.mean("age") / (tasks.prevalence() - tasks.prevalence()), "divides by 0"),
        (tasks.mean(lambda x: x["age"][:3]), "must give one number for each of"),
        (tasks.parse("mean(log(age - 500))"), "has no finite value"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(task, message, town):
    with np.errstate(all="ignore"), pytest.raises(InputError, match=message):
        task.evaluate(town)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tasks.mean(3),
        lambda: tasks.share(),
        lambda: tasks.mean("age", where="race"),
        lambda: tasks.mean("age") + "x",
        lambda: tasks.mean("age").matters_at(-1),
    ],
)
def test_wrong_parts_are_refused(make):
    with pytest.raises(InputError):
        make()


def test_a_sample_without_positives_says_so():
    sample = it.Sample(np.zeros(50), np.full(50, 0.2), {"x": np.arange(50.0)})
    found = tasks.mean("x").evaluate(sample, draws=19, rng=0)
    assert np.isnan(found.from_labels)
    assert "no positive label counts" in found.notes[0]
    assert found.finding == "labels give no estimate"


def test_the_sharp_null_holds_its_level():
    runs, wrong = 300, 0
    both = [tasks.mean("x1"), tasks.parse("prevalence(x2 > 0) - prevalence(x2 <= 0)")]
    for run in range(runs):
        sample = it.simulate.rare_events(300, rng=run).sample
        found = tasks.evaluate_tasks(sample, both, draws=59, rng=run)
        wrong += min(result.pvalue for result in found) <= 0.05
    assert plausible(wrong, runs)


def cancelling(rng, n: int = 400) -> it.Sample:
    """Wrong in every row and never in the prevalence: p is .05 or .95, the truth a coin."""
    p = np.where(rng.random(n) < 0.5, 0.05, 0.95)
    return it.Sample(rng.random(n) < 0.5, p, {"x": rng.normal(size=n)})


def test_a_task_without_bias_is_not_blamed_for_a_wrong_model():
    runs, wrong, plain = 300, 0, 0
    task = tasks.prevalence()
    for run in range(runs):
        sample = cancelling(np.random.default_rng(run))
        wrong += task.evaluate(sample, draws=59, rng=run).pvalue <= 0.05
        c = task.leaning(Rows(sample.points, sample.weights_or_ones, sample.p)).influence
        sums, _ = along(sample, c[None], it.nulls.Bernoulli(), 59, run)
        plain += np.mean(np.abs(sums[0]) >= abs(sums[0, 0])) <= 0.05
    assert plausible(wrong, runs)
    assert plain > 0.2 * runs  # without studentising


def test_the_interval_covers_the_bias():
    """Of a mean among positives, a gap, and with weights; the truth from two million rows."""
    many = it.simulate.survey(2_000_000, rng=99)
    wanted = [tasks.mean("age"), tasks.prevalence(region="south") - tasks.prevalence(region="west")]
    ones = np.ones(many.sample.n)
    truth = [
        task.linear(Rows(many.sample.points, ones, many.truth)).value
        - task.linear(Rows(many.sample.points, ones, many.sample.p)).value
        for task in wanted
    ]
    runs, missed = 300, np.zeros(2)
    for run in range(runs):
        sample = it.simulate.survey(600, rng=run).sample
        found = tasks.evaluate_tasks(sample, wanted, draws=19, rng=run)
        missed += [not r.lower <= t <= r.upper for r, t in zip(found, truth, strict=True)]
    assert all(plausible(int(count), runs) for count in missed)


def test_clusters_widen_the_interval():
    units = it.simulate.repeated_units(100, 5, 0.9, rng=0).sample
    x = {"x": units.columns[0].values}
    task = tasks.prevalence()
    alone = task.evaluate(it.Sample(units.y, units.p, x), draws=39, rng=0)
    named = task.evaluate(
        it.Sample(units.y, units.p, x, cluster=np.repeat(np.arange(100), 5)), draws=39, rng=0
    )
    assert named.stderr > 1.5 * alone.stderr


def test_words_of_a_result(town):
    task = tasks.mean("age").named("age of owners", material=1.0)
    found = task.evaluate(town, draws=39, rng=0)
    assert found.name == "age of owners"
    assert found.material == 1.0
    assert found.finding.startswith("biased, by 1 or more not shown")
    assert "positive: the model understates it" in str(found)
    assert found.to_dict()["finding"] == found.finding
    gap = 'mean(age | region == "south") - mean(age | region == "west")'
    wide = tasks.parse(gap)
    assert str(wide) == gap
    assert wide.matters_at(2).evaluate(town, draws=39, rng=0).finding == "biased"
    assert wide.matters_at(20).evaluate(town, draws=39, rng=0).finding == "within 20"
