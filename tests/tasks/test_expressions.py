"""Tasks: plain ratios, arithmetic, exact and studentised p-values, intervals that cover."""

from dataclasses import replace
from datetime import date, datetime

import numpy as np
import pytest

import itrust as it
from itrust import tasks
from itrust._core import InputError
from itrust.bias import Redraws
from itrust.data import Compared
from itrust.engines import run_together
from itrust.tasks import TaskFinding, evaluate_tasks, task_part
from itrust.tasks.expressions import TaskRows
from oracles import holds_level, plausible


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
    rows = TaskRows(town.points, town.weights_or_ones, town.p)
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


@pytest.mark.parametrize("kind", ["shares", "lean"])
def test_influences_are_derivatives(kind):
    """By a second implementation: move one row's weight, or its stand-in, a little."""
    sample = it.simulate.survey(40, rng=0).sample
    task = (tasks.mean("age", where={"region": ["south", "north"]}) * 2) / (
        tasks.prevalence(region="south") + 1
    )
    w, p = np.full(40, 1.0), sample.p.copy()
    rows = TaskRows(sample.points, w, p)
    found = getattr(task.fitted(rows), kind)(rows).reshape(40)
    for row in range(0, 40, 7):
        step = np.zeros(40)
        step[row] = 1e-6
        if kind == "shares":
            up, down = (TaskRows(sample.points, w + s * step, p) for s in (1, -1))
        else:
            up, down = (TaskRows(sample.points, w, p + s * step) for s in (1, -1))
        slope = (task.linear(up).value - task.linear(down).value) / 2e-6
        assert found[row] == pytest.approx(slope, rel=1e-4, abs=1e-9)


def test_the_bias_of_a_mean_is_a_weighted_sum_of_residuals(town):
    """The identity behind the p-value: theta_y - theta_p = sum (g - theta_p h) e / sum h y."""
    task = tasks.mean("age")
    found = task.evaluate(town, draws=19, rng=0)
    rows = TaskRows.predicted(town)
    c = task.fitted(rows).lean(rows)[:, 0]
    scale = town.p.sum() / town.y.sum()
    assert found.bias == pytest.approx(scale * float(c @ town.residuals))


def test_sums_over_redraws_equal_a_plain_product(town, monkeypatch):
    wanted = [tasks.mean("age", where={"region": "south"}), tasks.prevalence(region="west")]
    redraws = Redraws.of(town, alpha=0.05, draws=50, rng=3)
    part = task_part(redraws, wanted)

    def found():
        return run_together(redraws.engine, redraws.survey, [part], redraws.null, 50, 3)[0][0]

    whole = found()
    monkeypatch.setattr("itrust.engines.factor.Factor._chunk_rows", lambda *_: 701)
    monkeypatch.setattr("itrust.engines.passes.DRAWS_AT_ONCE", 7)
    for value, same in zip(found(), whole, strict=True):
        assert value == pytest.approx(same, rel=1e-9, abs=1e-6)
    drawn = np.empty((town.n, 50))
    redraws.null.fill(drawn, town, range(50), 3)
    rows = TaskRows.predicted(town)
    fits = [task.fit(rows) for task in wanted]
    c, d = (fit.lean(rows.points, rows.weights) for fit in fits)
    h = rows.weights * wanted[0].terms_of(rows.points, rows.weights)[1]
    sums, squares, masses = np.split(whole[0], (2, 5))
    assert sums[:, 1:] == pytest.approx(np.array([c, d]) @ drawn)
    assert squares[1, 1:] == pytest.approx((c * d) @ drawn**2)
    assert masses[0, 1:] == pytest.approx(h @ (drawn + town.p[:, None]))


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
        (tasks.mean("agee"), "there is no covariate 'agee' .did you mean 'age'"),
        (tasks.mean("region"), "is a category and has no mean"),
        (tasks.prevalence(region="sout"), "has no level 'sout' .did you mean 'south'"),
        (tasks.parse("prevalence(age > 200)"), "no row of positive weight satisfies age > 200"),
        (tasks.parse("5"), "is a number and no task"),
        (tasks.parse('prevalence(age == "old")'), "'age' is a number"),
        (tasks.parse('prevalence(region < "south")'), "'region' is a category, so it has no <"),
        (tasks.mean("age") / (tasks.prevalence() - tasks.prevalence()), "no finite value when"),
        (tasks.mean(lambda x: x["age"][:3]), "must give one number for each of"),
        (tasks.parse("mean(log(age - 500))"), "has no finite value"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(task, message, town):
    with np.errstate(all="ignore"), pytest.raises(InputError, match=message):
        task.evaluate(town)


def test_an_error_about_a_column_names_the_task_that_reads_it(town):
    wanted = ["prevalence()", 'mean(age | region == "sout")']
    told = r"tasks mean\(age \| region == \"sout\"\): 'region' has no level 'sout' \(did you mean"
    with pytest.raises(InputError, match=told) as caught:
        tasks.checked_tasks(town, tasks.as_tasks(wanted))
    assert caught.value.argument == "tasks"
    with pytest.raises(InputError, match=told):
        tasks.check_tasks(town, tasks.as_tasks(wanted), is_all=False)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tasks.mean(3),
        lambda: tasks.share(),
        lambda: tasks.mean("age", where="race"),
        lambda: tasks.share({"g": "a"}, u=True),
        lambda: tasks.share(age=(65, 85)),
        lambda: tasks.mean("age", where=3),
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
    assert "labels give no estimate" in found.notes[0]
    assert np.isnan(found.pvalue)
    assert found.finding is TaskFinding.UNDECIDED
    assert "labels give no estimate" in str(found)


@pytest.mark.slow
def test_the_sharp_null_holds_its_level():
    both = [tasks.mean("x1"), tasks.parse("prevalence(x2 > 0) - prevalence(x2 <= 0)")]

    def rejects(run):
        sample = it.simulate.rare_events(300, rng=run).sample
        found = evaluate_tasks(sample, both, draws=59, rng=run)
        return min(result.pvalue for result in found) <= 0.05

    assert holds_level(rejects, conservative=True)  # the larger of two p-values


def cancelling(rng, n: int = 400) -> it.Sample:
    """Wrong in every row and never in the prevalence: p is .05 or .95, the truth a coin."""
    p = np.where(rng.random(n) < 0.5, 0.05, 0.95)
    return it.Sample(rng.random(n) < 0.5, p, {"x": rng.normal(size=n)})


@pytest.mark.slow
def test_a_task_without_bias_is_not_blamed_for_a_wrong_model():
    runs, wrong, plain = 300, 0, 0
    task = tasks.prevalence()
    for run in range(runs):
        sample = cancelling(np.random.default_rng(run))
        wrong += task.evaluate(sample, draws=59, rng=run).pvalue <= 0.05
        rows = TaskRows.predicted(sample)
        c = task.fitted(rows).lean(rows)[:, 0]
        drawn = np.empty((sample.n, 59))
        it.nulls.Bernoulli().fill(drawn, sample, range(59), run)
        sums = np.append(c @ sample.residuals, c @ drawn)
        plain += np.mean(np.abs(sums) >= abs(sums[0])) <= 0.05
    assert plausible(wrong, runs)
    assert plain > 0.2 * runs  # without studentising


@pytest.mark.slow
def test_the_interval_covers_the_bias():
    """Of a mean among positives, a gap, and with weights; the truth from half a million rows."""
    many = it.simulate.survey(500_000, rng=99)
    wanted = [tasks.mean("age"), tasks.prevalence(region="south") - tasks.prevalence(region="west")]
    ones = np.ones(many.sample.n)
    truth = [
        task.linear(TaskRows(many.sample.points, ones, many.truth)).value
        - task.linear(TaskRows(many.sample.points, ones, many.sample.p)).value
        for task in wanted
    ]
    runs, missed = 120, np.zeros(2)
    for run in range(runs):
        sample = it.simulate.survey(600, rng=run).sample
        found = evaluate_tasks(sample, wanted, draws=19, rng=run)
        missed += [not r.lower <= t <= r.upper for r, t in zip(found, truth, strict=True)]
    assert all(plausible(int(count), runs, doubt=0.02) for count in missed)


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
    gap = 'mean(age | region == "south") - mean(age | region == "west")'
    wide = tasks.parse(gap)
    found = wide.named("gap in age", tolerance=7.0).evaluate(town, draws=39, rng=0)
    assert found.name == "gap in age"
    assert found.tolerance == 7.0
    assert found.finding is TaskFinding.UNDECIDED
    assert found.is_shown
    words = "a bias is shown, but not whether it reaches the tolerance of 7; about "
    assert words in " ".join(str(found).split())
    assert found.rows_needed > town.n
    assert "positive: the model understates it" in str(found)
    told = found.to_dict()
    assert told["finding"] == "undecided"
    assert told["rows_needed"] == found.rows_needed
    assert str(wide) == gap
    assert wide.matters_at(2).evaluate(town, draws=39, rng=0).finding == TaskFinding.BIASED
    within = wide.matters_at(20).evaluate(town, draws=39, rng=0)
    assert within.finding is TaskFinding.SAFE
    assert "safe to report: its bias lies within the tolerance of 20" in " ".join(
        str(within).split()
    )
    assert "safe to report" in within._repr_html_()
    assert within.reach <= 20


@pytest.mark.parametrize(
    ("lower", "upper", "tolerance", "finding"),
    [
        (0.2, 0.6, None, TaskFinding.BIASED),
        (0.2, 0.6, 0.1, TaskFinding.BIASED),
        (0.2, 0.6, 0.3, TaskFinding.UNDECIDED),
        (0.2, 0.6, 0.6, TaskFinding.SAFE),
        (-0.2, 0.6, None, TaskFinding.UNDECIDED),
        (-0.2, 0.6, 0.5, TaskFinding.UNDECIDED),
        (-0.2, 0.6, 0.7, TaskFinding.SAFE),
    ],
)
def test_the_table_of_findings(town, lower, upper, tolerance, finding):
    task = tasks.prevalence() if tolerance is None else tasks.prevalence().matters_at(tolerance)
    found = replace(
        task.evaluate(town, draws=39, rng=0),
        plugin=0.0,
        from_labels=(lower + upper) / 2,
        lower=lower,
        upper=upper,
        pvalue=0.01 if lower > 0 else 0.4,
    )
    assert found.finding is finding
    needed = found.rows_needed
    assert (needed is None) == (finding is not TaskFinding.UNDECIDED or tolerance is None)
    if needed is not None:  # an interval that shrinks with the root of the rows decides there
        half = (upper - lower) / 2 * (town.n / needed) ** 0.5
        room = abs(found.bias - tolerance) if lower > 0 else tolerance
        assert half < room


@pytest.mark.slow
def test_the_rows_that_are_asked_for_decide_more_often_than_not():
    task, decided = tasks.prevalence().matters_at(0.05), []
    for run in range(60):
        rng = np.random.default_rng([9, run])

        def made(n, rng=rng):
            p = rng.uniform(0.2, 0.8, n)
            return it.Sample(rng.random(n) < p, p)

        found = task.evaluate(made(250), draws=39, rng=run)
        if found.rows_needed is not None and not found.is_shown:
            again = task.evaluate(made(found.rows_needed), draws=39, rng=run)
            decided.append(again.finding is TaskFinding.SAFE)
    assert len(decided) > 20
    assert np.mean(decided) > 0.6  # .8 is aimed at


def test_rare_events_that_are_understated_are_seen():
    """A draw without any positive has no residual variance of its own, and must not win."""
    p = np.full(100, 0.01)
    for positives, rejected in ((0, False), (2, False), (10, True), (60, True)):
        sample = it.Sample(np.arange(100) < positives, p)
        assert (tasks.prevalence().evaluate(sample, draws=199, rng=0).pvalue <= 0.05) == rejected


def test_a_rare_task_does_not_take_the_others_power():
    rng = np.random.default_rng(0)
    g = np.where(np.arange(2_100) < 100, "rare", "plain")
    p = np.where(g == "rare", 0.01, 0.4)
    y = rng.random(2_100) < np.where(g == "rare", 0.01, 0.45)
    sample = it.Sample(y, p, {"g": g})
    plain, rare = tasks.prevalence(g="plain"), tasks.prevalence(g="rare")
    alone = plain.evaluate(sample, draws=199, rng=0)
    both = evaluate_tasks(sample, [plain, rare], draws=199, rng=0)
    assert alone.pvalue <= 0.01
    assert both[0].pvalue <= 0.02


@pytest.mark.slow
def test_a_gap_of_means_without_bias_is_not_blamed():
    """Two groups off by the same amount, the prevalence wrong in one of them only."""
    task = tasks.mean("x", where={"g": "a"}) - tasks.mean("x", where={"g": "b"})

    def blames(run):
        rng = np.random.default_rng([5, run])
        g = rng.choice(["a", "b"], 1_500)
        x = rng.choice([0.0, 1.0], 1_500)
        p = np.full(1_500, 0.2)
        # Among positives x = 1 has share 0.6 in both groups; predicted: 0.5 in both.
        level = np.where(g == "a", 0.4, 0.2)
        truth = level * np.where(x == 1, 1.2, 0.8)
        sample = it.Sample(rng.random(1_500) < truth, p, {"x": x, "g": g})
        return task.evaluate(sample, draws=59, rng=run).pvalue <= 0.05

    assert holds_level(blames, conservative=True)


def test_a_handful_of_equal_labels_is_no_certainty():
    few = it.Sample(np.zeros(30), np.full(30, 0.02))
    found = tasks.prevalence().matters_at(0.05).evaluate(few, draws=39, rng=0)
    assert found.upper > 0.01
    assert found.finding is not TaskFinding.SAFE
    lone = it.Sample(np.arange(300) == 7, np.full(300, 0.01), {"x": np.arange(300.0)})
    alone = tasks.mean("x").matters_at(5).evaluate(lone, draws=39, rng=0)
    assert alone.finding is not TaskFinding.SAFE


@pytest.mark.slow
def test_clusters_keep_the_level_of_a_task():
    task = tasks.prevalence() - 2 * tasks.mean("x")

    def rejects_and_misses(run):
        units = it.simulate.repeated_units(60, 5, 0.5, rng=run).sample
        x = {"x": (units.columns[0].values > 0) * 1.0}
        sample = it.Sample(units.y, units.p, x, cluster=np.repeat(np.arange(60), 5))
        found = task.evaluate(sample, draws=59, rng=run)
        return found.pvalue <= 0.05, not found.lower <= 0 <= found.upper

    assert holds_level(rejects_and_misses, conservative=True)


def test_missing_levels_satisfy_no_comparison_and_are_told_of():
    g = np.array(["a", "b", None] * 40, dtype=object)
    sample = it.Sample([0, 1] * 60, [0.5] * 120, {"g": g}, missing="level")
    found = tasks.parse('share(g != "a")').evaluate(sample, draws=39, rng=0)
    assert found.plugin == pytest.approx(1 / 3)
    assert "40 rows without g: no comparison with it holds for them" in found.notes


def test_times_and_dates_are_compared_as_such():
    when = np.datetime64("2026-02-01T00:00:00") + np.arange(100) * np.timedelta64(3_600, "s")
    sample = it.Sample([0, 1] * 50, [0.5] * 100, {"t": when})
    for value, rows in (
        ("2026-02-02", 76),
        ("2026-02-02T12:00", 64),
        (date(2026, 2, 2), 76),
        (datetime(2026, 2, 2, 12), 64),
        (np.datetime64("2026-02-02T12:00"), 64),
    ):
        assert Compared("t", ">=", value).rows(sample.points).sum() == rows, value
    for wrong in ("today", "NaT", "", "2026-02-31", 3):
        with pytest.raises(InputError, match="'t' is a date; compare it with one"):
            Compared("t", ">=", wrong).rows(sample.points)


def test_conditions_are_text_in_python_too(town):
    one = tasks.share("age >= 65", where='region == "south"').evaluate(town, draws=39, rng=0)
    two = tasks.parse('share(age >= 65 | region == "south")').evaluate(town, draws=39, rng=0)
    assert one == two
    assert tasks.mean("age", region="south") == tasks.mean("age", where={"region": "south"})


def test_powers_of_covariates(town):
    found = tasks.parse("mean(age ** 2)").evaluate(town, draws=39, rng=0)
    same = tasks.mean(lambda x: x["age"] ** 2, name="squared").evaluate(town, draws=39, rng=0)
    assert found.plugin == pytest.approx(same.plugin)
