"""The variance of a task: closed forms, a floor that is never zero, coverage with few labels."""

import math

import numpy as np
import pytest

import itrust as it
from itrust import tasks
from itrust.data import Design
from itrust.tasks import evaluate_tasks
from itrust.tasks.arithmetic import RATES, Bounds
from itrust.tasks.expressions import TaskRows
from itrust.tasks.uncertainty import (
    ADDED,
    FEW_NOTE,
    LabelLaw,
    LabelledTask,
    Located,
    Uncertainty,
    few_labels,
)


def grouped(rng, n=600, rate=0.034, share=0.2):
    """Rows of which some are of group a, where positives are rare."""
    r = np.where(rng.random(n) < share, "a", "b")
    x = rng.normal(50, 15, n)
    truth = np.where(r == "a", rate, 0.1)
    p = np.clip(truth * np.exp(rng.normal(0, 0.5, n)), 0.001, 0.9)
    return it.Sample(rng.random(n) < truth, p, {"r": r, "x": x})


def test_a_rate_gets_agresti_and_coulls_interval():
    n, k, z = 100, 4, 1.984217  # Student's quantile with 99 degrees of freedom
    sample = it.Sample(np.arange(n) < k, np.full(n, 0.05))
    law = LabelledTask.of(tasks.prevalence(), sample)
    lower, upper = Located(k / n, law.less(), RATES, law.expected.value).interval(0.05)
    centre = (k + z**2 / 2) / (n + z**2)
    half = z * math.sqrt(centre * (1 - centre) / (n + z**2))
    assert law.expected.value == pytest.approx((k + ADDED) / (n + 2 * ADDED))
    assert (lower, upper) == pytest.approx((max(centre - half, 0), centre + half), rel=0.03)


def test_the_law_has_the_mean_of_the_labels_in_every_group():
    sample = grouped(np.random.default_rng(0))
    task = tasks.mean("x", r="a") - tasks.mean("x", r="b")
    law = LabelLaw.of(sample, list(task.ratios()))
    (r,) = [column for column in sample.columns if column.name == "r"]
    for code in (0, 1):
        rows = r.values == code
        assert law.q[rows, 0].sum() == pytest.approx(sample.y[rows].sum())
    assert LabelLaw.of(sample, []).q.mean() == pytest.approx(
        (sample.y.sum() + ADDED) / (sample.n + 2 * ADDED)
    )


@pytest.mark.parametrize("alike", [0.0, 1.0])
def test_the_variance_of_labels_is_that_of_drawn_ones(alike):
    """By a second implementation: draw labels that are independent or one a cluster, and square."""
    rng = np.random.default_rng(0)
    q, unit = np.repeat(rng.uniform(0.05, 0.6, 4), 3), np.repeat(np.arange(4), 3)
    leaning = rng.normal(size=12)
    drawn = rng.random((100_000, 4))[:, unit] if alike else rng.random((100_000, 12))
    sums = ((drawn < q) - q) @ leaning
    told = LabelLaw(q, Design(12, cluster=unit), unit, alike).label_variance(leaning)
    assert told == pytest.approx((sums**2).mean(), rel=0.03)


def test_many_labels_leave_the_rows_own_variance():
    sample = it.simulate.survey(4_000, rng=0).sample
    task = tasks.mean("age")
    shares = task.linear(TaskRows(sample.points, sample.weights_or_ones, sample.y)).slope
    error = LabelledTask.of(task, sample).less()
    assert error.stderr == pytest.approx(math.sqrt(np.square(shares).sum()), rel=0.01)
    assert error.freedom > 500
    assert not few_labels(task, sample)


def test_the_p_value_is_the_level_at_which_the_interval_excludes_0():
    error = Uncertainty(0.3, 7.0, 40)
    for value in (0.2, -0.7, 1.4):
        lower, upper = error.interval(value, error.pvalue(value))
        assert min(abs(lower), abs(upper)) == pytest.approx(0, abs=1e-9)
        assert error.pvalue(value, others=3) == pytest.approx(min(1, 3 * error.pvalue(value)))
    assert error.pvalue(0.0) == 1.0


def test_no_positive_label_is_no_certainty():
    rng = np.random.default_rng(0)
    few = it.Sample(np.zeros(20), rng.uniform(0.01, 0.2, 20), {"x": rng.normal(size=20)})
    population = it.Population(rng.uniform(0.01, 0.2, 300), {"x": rng.normal(size=300)})
    found = tasks.prevalence().estimate(population, labelled=few)
    for way in found.ways.values():
        assert way.width > 0.005
        assert way.lower <= way.value <= way.upper
    assert found.labelled.lower == 0
    assert 0.1 < found.labelled.upper < 0.3  # the rule of three says .14
    assert FEW_NOTE in found.notes


def test_clusters_of_one_label_count_once():
    """Every row four times: clusters give the interval of the rows themselves, nearly."""
    rng = np.random.default_rng(0)
    y, p = rng.random(150) < 0.1, rng.uniform(0.05, 0.15, 150)
    alone = LabelledTask.of(tasks.prevalence(), it.Sample(y, p)).less()
    four = it.Sample(np.repeat(y, 4), np.repeat(p, 4), cluster=np.repeat(np.arange(150), 4))
    named = LabelledTask.of(tasks.prevalence(), four).less()
    assert named.stderr == pytest.approx(alone.stderr, rel=0.1)
    unnamed = LabelledTask.of(tasks.prevalence(), it.Sample(four.y, four.p)).less()
    assert unnamed.stderr < 0.6 * alone.stderr


def test_weights_that_are_multiples_change_nothing():
    sample = grouped(np.random.default_rng(1))
    x = {c.name: c.values for c in sample.columns}
    once, twice = (it.Sample(sample.y, sample.p, x, weights=np.full(600, w)) for w in (1.0, 7.0))
    for task in (tasks.prevalence(), tasks.mean("x")):
        a, b = (LabelledTask.of(task, s).less() for s in (once, twice))
        assert a.stderr == pytest.approx(b.stderr)
        assert a.freedom == pytest.approx(b.freedom)


@pytest.mark.parametrize("text", ['prevalence(r == "a")', "mean(x)", 'mean(x | r == "a")'])
def test_few_positives_are_covered(text):
    """Labels alone, without a population: the plain variance covers in .75 to .9 of runs."""
    task, runs, missed, narrow = tasks.parse(text), 70, 0, 0
    truth = 0.034 if "prevalence" in text else 50.0
    for run in range(runs):
        sample = grouped(np.random.default_rng([3, run]), n=500)
        told = LabelledTask.of(task, sample)
        if math.isnan(told.labels.value):
            continue
        error = told.less()
        if "prevalence" in text:
            rate = Located(told.labels.value, error, RATES, told.expected.value)
            lower, upper = rate.interval(0.05)
        else:
            lower, upper = error.interval(told.labels.value, 0.05)
        missed += not lower <= truth <= upper
        narrow += upper - lower <= 0
    assert missed <= 0.08 * runs
    assert narrow == 0


def test_findings_p_values_and_intervals_agree():
    """Whatever is called biased excludes 0, for any number of tasks and draws, and nothing else."""
    wanted = [
        tasks.prevalence(),
        tasks.mean("x"),
        tasks.prevalence(r="a"),
        tasks.mean("x", r="a") - tasks.mean("x", r="b"),
    ]
    seen = set()
    for run in range(24):
        rng = np.random.default_rng([9, run])
        sample = grouped(rng, n=150, rate=0.15)
        shift = rng.choice([0.0, 0.03, 0.06, 0.1])
        x = {
            c.name: [c.levels[int(v)] for v in c.values] if c.is_category else c.values
            for c in sample.columns
        }
        sample = it.Sample(sample.y, np.clip(sample.p + shift, 0, 1), x)
        for found in evaluate_tasks(sample, wanted[: 1 + run % 4], draws=79, rng=run):
            excluded = found.lower > 0 or found.upper < 0
            assert (found.pvalue <= found.alpha) == excluded
            assert (found.finding is tasks.TaskFinding.BIASED) == excluded
            assert found.lower <= found.bias <= found.upper
            assert found.unadjusted_pvalue <= found.pvalue
            seen.add(excluded)
    assert seen == {True, False}


TEXTS = (
    "share(x >= 65)",
    'share(r == "a" | x >= 50)',
    'prevalence(r == "a")',
    'prevalence(r == "a") - prevalence(r == "b")',
    'prevalence(r == "a") / prevalence(r == "b")',
    "mean(x)",
    'mean(x | r == "a") - mean(x | r == "b")',
)


def few_and_many(seed, n=100, many=400):
    """Labelled rows with few positives, and a population."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(60, 12, n + many).round(), 30, 72)
    r = rng.choice(["a", "b"], n + many)
    p = np.clip(0.05 * np.exp((x - 60) / 12 + rng.normal(0, 0.5, n + many)), 0.001, 0.9)
    few, rest = slice(n), slice(n, None)
    sample = it.Sample(rng.random(n) < p[few], p[few], {"x": x[few], "r": r[few]})
    return sample, it.Population(p[rest], {"x": x[rest], "r": r[rest]}), x, r


def possible(text, x, r):
    """What a task can be, by hand."""
    a, b = x[r == "a"], x[r == "b"]
    ranges = {
        TEXTS[3]: (-1, 1),
        TEXTS[4]: (0, math.inf),
        TEXTS[5]: (x.min(), x.max()),
        TEXTS[6]: (a.min() - b.max(), a.max() - b.min()),
    }
    return ranges.get(text, (0, 1))


@pytest.mark.parametrize("text", TEXTS)
def test_no_interval_leaves_what_the_number_can_be(text):
    task = tasks.parse(text)
    for seed in range(4):
        sample, population, x, r = few_and_many(seed, n=60 if seed % 2 else 100)
        labels = task.linear(TaskRows(sample.points, np.ones(sample.n), sample.y)).value
        if not math.isfinite(labels):
            continue
        low, high = possible(text, x, r)
        for way in task.estimate(population, sample).ways.values():
            assert low <= way.lower < way.upper <= high
            assert way.lower <= way.value <= way.upper
        found = task.evaluate(sample, draws=59, rng=seed)
        low, high = possible(text, x[: sample.n], r[: sample.n])
        assert low - found.plugin - 1e-12 <= found.lower < found.upper
        assert found.upper <= high - found.plugin + 1e-12
        assert (found.pvalue <= 0.05) == (found.lower > 0 or found.upper < 0)


def test_ranges_are_those_of_interval_arithmetic():
    whole = Bounds(-math.inf, math.inf)
    assert Bounds(1, 2) - Bounds(0, 1) == Bounds(0, 2)
    assert Bounds(-1, 2) * Bounds(3, 4) == Bounds(-4, 8)
    assert Bounds(0, 1) / Bounds(0, 1) == Bounds(0, math.inf)
    assert Bounds(1, 2) / Bounds(-4, 0) == Bounds(-math.inf, -0.25)
    assert Bounds(0, 1) / Bounds(-1, 1) == whole == Bounds(0, 1) / Bounds(0, 0)
    assert Bounds(0, 1) * Bounds(0, math.inf) == Bounds(0, math.inf)
    assert Bounds(0, 1).clipped(-1, 0.5) == (0, 0.5)
    assert Bounds(3, 3).clipped(2, 4) == (2, 4)  # nothing would be left


def test_a_share_of_few_positives_gets_the_interval_of_as_many_rows():
    """5 of 6: Agresti and Coull's, as if the positives were the sample."""
    n, k, z = 6, 5, 1.984217
    y, old = np.arange(100) < n, np.r_[np.ones(k), np.zeros(1), np.tile([1.0, 0.0], 47)]
    sample = it.Sample(y, np.full(100, 0.06), {"old": old})
    found = tasks.parse("share(old > 0)").estimate(
        it.Population(np.full(200, 0.06), {"old": np.tile([1.0, 0.0], 100)}), sample
    )
    centre = (k + z**2 / 2) / (n + z**2)
    half = z * math.sqrt(centre * (1 - centre) / (n + z**2))
    labels = found.labelled
    assert (labels.lower, labels.upper) == pytest.approx((centre - half, centre + half), abs=0.04)


def test_the_bias_of_a_rate_has_the_interval_of_the_rate():
    """Less the plug-in, which is known where the model has one probability for all rows."""
    n, k, z = 100, 4, 1.984217
    sample = it.Sample(np.arange(n) < k, np.full(n, 0.03))
    found = tasks.prevalence().evaluate(sample, draws=199, rng=0)
    centre = (k + z**2 / 2) / (n + z**2)
    half = z * math.sqrt(centre * (1 - centre) / (n + z**2))
    ends = max(centre - half, 0) - 0.03, centre + half - 0.03
    assert (found.lower, found.upper) == pytest.approx(ends, abs=0.003)


@pytest.mark.parametrize("value", [0.0, 0.04, 0.5, 1.0])
@pytest.mark.parametrize("point", [0.001, 0.03, 0.2, 0.6])
def test_the_p_value_of_a_rate_is_the_level_at_which_the_interval_excludes_it(value, point):
    rate = Located(value, Uncertainty(0.02, 30.0, 80.0), RATES, 0.05)
    p = rate.pvalue(point)
    for alpha in (p * 0.99, min(p * 1.01, 0.999)):
        lower, upper = rate.interval(alpha)
        assert (p <= alpha) == (not lower <= point <= upper) or p > 0.98


def test_one_rule_says_when_few_labels_carry_a_task():
    n = 200
    r = np.where(np.arange(n) < 60, "a", "b")
    y = (np.arange(n) < 8) | (np.arange(n) >= 160)  # 8 positives in a, 40 in b
    sample = it.Sample(y, np.full(n, 0.2), {"r": r, "x": np.arange(n) * 1.0})
    few = ('prevalence(r == "a")', 'prevalence(r == "a") - prevalence(r == "b")')
    few += ('mean(x | r == "a")', 'share(x > 3 | r == "a")')
    for text in few:
        task = tasks.parse(text)
        assert few_labels(task, sample)
        assert FEW_NOTE in task.evaluate(sample, draws=59, rng=0).notes
    for text in ('prevalence(r == "b")', "mean(x)", "share(x < 3)"):
        assert not few_labels(tasks.parse(text), sample)
    nearly_all = it.Sample(np.arange(n) >= 8, np.full(n, 0.9))
    assert few_labels(tasks.prevalence(), nearly_all)
    clusters = it.Sample(y, sample.p, {"r": r}, cluster=np.arange(n) // 20)
    assert few_labels(tasks.prevalence(), clusters)  # positives in three of ten
