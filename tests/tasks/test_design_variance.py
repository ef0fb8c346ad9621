"""Variances of tasks by the design, against the package svy, by hand, and in simulation."""

import math
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard
from scipy.special import expit, ndtr
from scipy.stats import binomtest
from scipy.stats import t as student

import itrust as it
from itrust import tasks
from itrust.data import Design, design_variance, linear_moves, variance_units
from itrust.tasks import evaluate_tasks, reestimated
from itrust.tasks.expressions import TaskRows
from itrust.tasks.uncertainty import ENOUGH_LABELS, LabelledTask, satterthwaite

svy = pytest.importorskip("svy")  # comes with the test extra; not in `make oldest`

SAME = 1e-6
TEXTS = (
    "prevalence()",
    "prevalence(sex == 2)",
    "mean(age)",
    "mean(age | sex == 1)",
    "prevalence(sex == 1) - prevalence(sex == 2)",
    "mean(age | sex == 1) - mean(age | sex == 2)",
)


@pytest.fixture
def nhanes(data_file):
    return partial(survey, data_file("nhanes2.csv"))


def survey(file, label="highbp", replicates=False):
    """The survey, as a frame for svy and as a sample; probabilities are some, not good ones."""
    frame = pl.read_csv(file, infer_schema_length=None).drop_nulls(label)
    frame = frame.with_columns(
        y=pl.col(label).cast(pl.Float64),
        unit=pl.col("stratum") * 10 + pl.col("psu"),
        weight=pl.col("finalwgt").cast(pl.Float64),
        p=1 / (1 + (3.5 - pl.col("age") / 20).exp()),
    )
    sets = frame.select(pl.col("^brr_.*$") * pl.col("weight")).to_numpy()
    if replicates:
        return frame, sample_of(frame, replicate_weights=sets, replicate_method="brr"), sets
    return frame, sample_of(frame, cluster=frame["unit"], strata=frame["stratum"]), sets


def sample_of(frame, **design):
    x = {"age": frame["age"].to_numpy(), "sex": frame["sex"].to_numpy()}
    return it.Sample(
        frame["y"].to_numpy(), frame["p"].to_numpy(), x, weights=frame["weight"], **design
    )


def people(rng, unit):
    """Rows of clusters, of which some are large: age goes with the cluster, labels with age."""
    n, clusters = unit.size, int(unit.max()) + 1
    age = 45 + 6 * rng.normal(size=clusters)[unit] + 12 * rng.normal(size=n)
    p = expit(-0.3 + (age - 45) / 30 + 0.3 * rng.normal(size=n))
    z = math.sqrt(0.2) * rng.normal(size=clusters)[unit] + math.sqrt(0.8) * rng.normal(size=n)
    return pl.DataFrame(
        {
            "y": (ndtr(z) < p).astype(float),
            "p": p,
            "age": age,
            "sex": rng.integers(1, 3, n),
            "unit": unit,
            "weight": np.exp(0.6 * rng.normal(size=n)),
        }
    )


def unequal():
    rng = np.random.default_rng(1)
    unit = np.repeat(np.arange(150), rng.integers(2, 30, 150))
    frame = people(rng, unit)
    return frame, sample_of(frame, cluster=frame["unit"]), svy.Design(psu="unit", wgt="weight")


def fay(k=0.5):
    """Twenty strata of two clusters, 32 half samples that count 1.5 and .5 times."""
    rng = np.random.default_rng(2)
    unit = np.repeat(np.arange(40), rng.integers(10, 40, 40))
    frame = people(rng, unit)
    signs = hadamard(32)[:, 1:21][:, unit // 2] * np.where(unit % 2 == 0, 1, -1)
    sets = (frame["weight"].to_numpy() * (1 + (1 - k) * signs)).T
    sample = sample_of(frame, replicate_weights=sets, replicate_method=f"fay:{k}")
    return *with_sets(frame, sets), sample, svy.RepWeights("brr", "set_", 32, fay_coef=k)


def jackknife():
    """Forty clusters, each left out once."""
    rng = np.random.default_rng(3)
    unit = np.repeat(np.arange(40), rng.integers(10, 40, 40))
    frame = people(rng, unit)
    sets = frame["weight"].to_numpy()[:, None] * (unit[:, None] != np.arange(40)) * 40 / 39
    sample = sample_of(frame, replicate_weights=sets, replicate_method="jk1")
    return *with_sets(frame, sets), sample, svy.RepWeights("jackknife", "set_", 40, kind="jk1")


def with_sets(frame, sets):
    named = {f"set_{k + 1}": sets[:, k] for k in range(sets.shape[1])}
    return frame.with_columns(**{name: pl.Series(own) for name, own in named.items()}), sets


def by_svy(frame, design, text, y="y"):
    """Standard error of a task by svy; estimates with replicates spread around the full one."""
    frame = frame.with_columns(top=pl.col(y) * pl.col("age"), y=pl.col(y))
    estimation = svy.Sample(frame, design).estimation
    how = {} if design.rep_wgts is None else {"method": "replication"}
    if how:
        how["variance_center"] = "estimate"

    def estimate(**which):
        if "mean" in text:
            return estimation.ratio("top", "y", **which, **how)
        return estimation.mean("y", **which, **how)

    if " - " in text:
        told = estimate(by="sex").contrast(svy.estd(1) - svy.estd(2)).to_dicts()[0]
        return told["est"], told["se"]
    inside = {} if "sex" not in text else {"where": pl.col("sex") == int(text[-2])}
    told = estimate(**inside).estimates[0]
    return told.est, told.se


def agrees(sample, text, told):
    """Value and standard error are those of svy."""
    mine = LabelledTask.of(tasks.parse(text), sample)
    assert mine.law.labels > ENOUGH_LABELS
    assert mine.labels.value == pytest.approx(told[0], rel=SAME)
    assert mine.less().stderr == pytest.approx(told[1], rel=SAME)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("label", ["highbp", "heartatk"])
def test_linearised_variances_are_those_of_svy(text, label, nhanes):
    frame, sample, _ = nhanes(label)
    design = svy.Design(stratum="stratum", psu="unit", wgt="weight")
    agrees(sample, text, by_svy(frame, design, text))
    assert LabelledTask.of(tasks.parse(text), sample).less().freedom == 31


@pytest.mark.parametrize("text", TEXTS)
def test_variances_of_half_samples_are_those_of_svy(text, nhanes):
    frame, sample, sets = nhanes(replicates=True)
    frame, _ = with_sets(frame, sets)
    design = svy.Design(wgt="weight", rep_wgts=svy.RepWeights("brr", "set_", 32))
    agrees(sample, text, by_svy(frame, design, text))
    assert LabelledTask.of(tasks.parse(text), sample).less().freedom == 31


@pytest.mark.parametrize("text", TEXTS)
def test_variances_of_many_unequal_clusters_are_those_of_svy(text):
    frame, sample, design = unequal()
    agrees(sample, text, by_svy(frame, design, text))
    assert LabelledTask.of(tasks.parse(text), sample).less().freedom == 149


@pytest.mark.parametrize(("made", "freedom"), [(fay, 20), (jackknife, 39)])
@pytest.mark.parametrize("text", TEXTS)
def test_variances_of_replicate_weights_are_those_of_svy(text, made, freedom):
    frame, _, sample, weights = made()
    agrees(sample, text, by_svy(frame, svy.Design(wgt="weight", rep_wgts=weights), text))
    assert LabelledTask.of(tasks.parse(text), sample).less().freedom == freedom


def test_the_bias_of_a_rate_is_the_mean_of_residuals_to_svy_too(nhanes):
    """Labels less plug-in, with the covariance of both: the mean of y - p."""
    for frame, sample, design in (
        (*nhanes()[:2], svy.Design(stratum="stratum", psu="unit", wgt="weight")),
        unequal(),
        (fay()[0], fay()[2], svy.Design(wgt="weight", rep_wgts=fay()[3])),
    ):
        for text in (TEXTS[0], TEXTS[1], TEXTS[4]):
            residuals = frame.with_columns(e=pl.col("y") - pl.col("p"))
            told = by_svy(residuals, design, text, y="e")
            found = tasks.parse(text).evaluate(sample, draws=19)
            assert found.bias == pytest.approx(told[0], rel=SAME)
            assert found.stderr == pytest.approx(told[1], rel=SAME)


def test_the_interval_of_a_bias_is_students_with_the_designs_degrees_of_freedom():
    _, sample, _ = unequal()
    found = tasks.mean("age").evaluate(sample)
    reach = student.isf(0.025, 149) * found.stderr
    assert (found.lower, found.upper) == pytest.approx((found.bias - reach, found.bias + reach))
    assert found.pvalue == pytest.approx(2 * student.sf(abs(found.bias) / found.stderr, 149))
    assert found.draws == 0


@pytest.mark.parametrize("made", [fay, jackknife])
def test_biases_and_products_are_estimated_with_every_set_of_weights(made):
    """A naive loop over sets of weights, for what svy has no word for."""
    frame, sets, sample, _ = made()
    y, p, age, sex = (frame[name].to_numpy() for name in ("y", "p", "age", "sex"))

    def mean(w, s):
        return float((w * s * age).sum() / (w * s).sum())

    def ratio(w, s):
        first, second = (float((w * s)[sex == k].sum() / w[sex == k].sum()) for k in (1, 2))
        return mean(w, s) * first / second

    named = {"mean(age)": mean, "mean(age) * prevalence(sex == 1) / prevalence(sex == 2)": ratio}
    r = sets.shape[1]
    scale = {"fay": 1 / (r * 0.25), "jk1": (r - 1) / r}[sample.design.replication.method]
    w = frame["weight"].to_numpy()
    for text, number in named.items():
        whole = number(w, y) - number(w, p)
        total = 0.0
        for k in range(r):
            total += (number(sets[:, k], y) - number(sets[:, k], p) - whole) ** 2
        found = tasks.parse(text).evaluate(sample, draws=19)
        assert found.bias == pytest.approx(whole)
        assert found.stderr == pytest.approx(math.sqrt(scale * total), rel=1e-9)


def test_two_clusters_by_hand():
    """Means .25 and .75 of two clusters of eight: the variance is (.25)^2 by hand."""
    y = np.r_[np.arange(8) < 2, np.arange(8) < 6].astype(float)
    cluster = np.repeat([0, 1], 8)
    sample = it.Sample(y, np.full(16, 0.5), cluster=cluster)
    shares = tasks.prevalence().linear(TaskRows.labelled(sample)).slope
    # Totals of shares are -2/16 and +2/16: 2 / 1 times the sum of their squares.
    assert design_variance(sample.design, shares) == pytest.approx(2 * 2 * (2 / 16) ** 2)
    twice = Design(4, strata=np.array([0, 0, 1, 1]))
    # Within strata: (1 - 3)^2 / 2 * 2 / 2 * 2 = 4 and (0 - 1)^2 = 1.
    assert design_variance(twice, np.array([1.0, 3.0, 0.0, 1.0])) == pytest.approx(5.0)


def test_variances_of_strata_are_the_plain_loop():
    rng = np.random.default_rng(4)
    unit = np.repeat(np.arange(30), rng.integers(1, 9, 30))
    stratum, shares = unit // 5, rng.normal(size=unit.size)
    told = 0.0
    for h in np.unique(stratum):
        totals = [shares[unit == c].sum() for c in np.unique(unit[stratum == h])]
        m, middle = len(totals), sum(totals) / len(totals)
        told += m / (m - 1) * sum((z - middle) ** 2 for z in totals)
    design = Design(unit.size, cluster=unit, strata=stratum)
    assert design_variance(design, shares) == pytest.approx(told)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), scale=st.floats(0.01, 1_000))
def test_names_order_and_units_of_weight_do_not_count(seed, scale):
    rng = np.random.default_rng(seed)
    unit = np.repeat(np.arange(20), rng.integers(2, 9, 20))
    frame = people(rng, unit)
    task = tasks.parse("mean(age) - 10 * prevalence(sex == 1)")
    names, order = rng.permutation(1_000)[:20], rng.permutation(unit.size)

    def told(frame, unit, weights):
        frame = frame.with_columns(weight=weights)
        sample = sample_of(frame, cluster=unit, strata=np.where(np.isin(unit, first), "a", "b"))
        found = LabelledTask.of(task, sample).less(1.0)
        return found.stderr, found.freedom

    w, first = frame["weight"].to_numpy(), np.arange(8)
    plain = told(frame, unit, w)
    assert told(frame, unit, w * scale) == pytest.approx(plain)
    assert told(frame[order], unit[order], w[order]) == pytest.approx(plain)
    first = names[:8]
    assert told(frame, names[unit], w) == pytest.approx(plain)


def test_rows_that_are_their_own_clusters_have_the_robust_variance_of_independent_rows():
    frame, _, _ = unequal()
    alone = sample_of(frame)
    own = sample_of(frame, cluster=np.arange(len(frame)))
    for text in TEXTS:
        told = LabelledTask.of(tasks.parse(text), own)
        n, shares = alone.n, LabelledTask.of(tasks.parse(text), alone).labels.slope
        assert told.less().stderr ** 2 == pytest.approx(n / (n - 1) * (shares @ shares))
        rows = LabelledTask.of(tasks.parse(text), alone).less()
        assert told.less().stderr == pytest.approx(rows.stderr, rel=0.02)


def test_replicate_weights_tell_clusters_and_their_scale_does_not_count():
    frame, sets, sample, _ = jackknife()
    unit = frame["unit"].to_numpy()
    found = variance_units(sample.design)
    assert all(np.unique(found[unit == c]).size == 1 for c in range(40))
    assert np.unique(found).size == 40
    shares = tasks.mean("age").linear(TaskRows.labelled(sample)).slope
    other = Design(
        sample.n,
        weights=sample.weights,
        replicate_weights=7 * sets,
        replication=sample.design.replication,
    )
    assert linear_moves(other, shares) == pytest.approx(linear_moves(sample.design, shares))
    # A jackknife of a sum of shares that is 0 is nearly the linearised variance.
    plain = Design(sample.n, weights=sample.weights, cluster=unit)
    assert design_variance(sample.design, shares) == pytest.approx(
        design_variance(plain, shares), rel=0.1
    )


def test_a_set_of_weights_without_an_estimate_counts_by_its_shares():
    """All positives of a group are in one cluster: without it there is no mean among them."""
    frame, sets, _, _ = jackknife()
    unit, sex = frame["unit"].to_numpy(), frame["sex"].to_numpy()
    y = np.where(sex == 1, frame["y"].to_numpy() * (unit == 3), frame["y"].to_numpy())
    frame = frame.with_columns(y=y)
    sample = sample_of(frame, replicate_weights=sets, replicate_method="jk1")
    task = tasks.parse("mean(age | sex == 1)")
    again = reestimated(task, TaskRows.labelled(sample), sets)
    assert np.isnan(again).sum() == 1
    found = task.evaluate(sample, draws=19)
    assert math.isfinite(found.stderr)
    assert found.stderr > 0


def test_degrees_of_freedom_of_unequal_variances():
    rng = np.random.default_rng(0)
    stratum = np.repeat([0, 1, 2], [2, 3, 7])
    assert satterthwaite(np.ones(40), np.zeros(40, dtype=int)) == pytest.approx(39)
    assert satterthwaite(np.ones(62), np.repeat(np.arange(31), 2)) == pytest.approx(31)
    variances = rng.uniform(0.1, 3, 12)
    draws = rng.normal(size=(200_000, 12)) * np.sqrt(variances)
    design = Design(12, cluster=np.arange(12), strata=stratum)
    seen = design.linearised_variance(draws)
    assert satterthwaite(variances, stratum) == pytest.approx(
        2 * seen.mean() ** 2 / seen.var(), rel=0.03
    )
    one = np.r_[100.0, np.full(39, 0.01)]
    assert satterthwaite(one, np.zeros(40, dtype=int)) < 1.1


def test_few_clusters_of_a_domain_leave_few_degrees_of_freedom():
    frame, _, _ = unequal()
    unit = frame["unit"].to_numpy()
    frame = frame.with_columns(sex=np.where(unit < 6, 1, 2))
    sample = sample_of(frame, cluster=unit)
    error = LabelledTask.of(tasks.parse("prevalence(sex == 1)"), sample).less()
    assert error.freedom < 8
    pairs = frame.filter(pl.col("unit") < 16)
    drawn = {"cluster": pairs["unit"], "strata": pairs["unit"] // 2}
    found = tasks.prevalence().evaluate(sample_of(pairs, **drawn), draws=19)
    assert any("8 degrees of freedom" in note for note in found.notes)


def test_differences_of_models_have_the_variance_of_the_design(nhanes):
    """Brier scores and plug-ins; svy gives the mean of a difference on constructed columns."""
    cases = (
        (*nhanes()[:2], svy.Design(stratum="stratum", psu="unit", wgt="weight")),
        (fay()[0], fay()[2], svy.Design(wgt="weight", rep_wgts=fay()[3])),
    )
    for frame, sample, design in cases:
        p, y = frame["p"].to_numpy(), frame["y"].to_numpy()
        other = sample.with_predictions(p**1.2)
        found = it.compare({"a": sample, "b": other}, "prevalence()", draws=19, rng=0)
        told = {one.what: one for one in found.differences}
        columns = {"Brier": (p - y) ** 2 - (p**1.2 - y) ** 2, "prevalence(), plug-in": p - p**1.2}
        for what, values in columns.items():
            value, stderr = by_svy(frame.with_columns(e=values), design, "prevalence()", y="e")
            reach = student.isf(0.025, sample.design.freedom) * stderr
            one = told[what]
            assert one.value == pytest.approx(value, rel=SAME)
            assert (one.lower, one.upper) == pytest.approx((value - reach, value + reach), rel=SAME)


def test_bins_of_a_reliability_curve_are_worth_as_many_rows_as_the_design_says():
    """Wilson's interval with the size that svy's standard error stands for, and Student's law."""
    frame, sample, design = unequal()
    curve = it.scores.reliability_curve(sample, it.scores.EqualWidth(4))
    place = np.ceil(frame["p"].to_numpy() * 4).astype(int)
    one, n = place == 2, frame["weight"].to_numpy()
    told = svy.Sample(frame.with_columns(here=one), design)
    found = told.estimation.mean("y", where=pl.col("here")).estimates[0]
    rows = n[one].sum() ** 2 / (n[one] ** 2).sum()
    size = min(rows, found.est * (1 - found.est) / found.se**2)
    z2 = student.isf(0.025, 149) ** 2
    centre = (found.est + z2 / (2 * size)) / (1 + z2 / size)
    half = math.sqrt(z2 * (found.est * (1 - found.est) / size + z2 / (4 * size**2)))
    half /= 1 + z2 / size
    k = int(np.argmin(np.abs(curve.observed - found.est)))
    assert curve.observed[k] == pytest.approx(found.est)
    assert (curve.lower[k], curve.upper[k]) == pytest.approx((centre - half, centre + half))
    alone = it.scores.reliability_curve(sample_of(frame), it.scores.EqualWidth(4))
    assert curve.upper[k] - curve.lower[k] > alone.upper[k] - alone.lower[k]


def test_bins_without_a_positive_count_clusters():
    y, cluster = np.r_[np.zeros(40), np.tile([0.0, 1.0], 20)], np.arange(80) // 4
    p = np.repeat([0.1, 0.6], 40)
    named = it.scores.reliability_curve(it.Sample(y, p, cluster=cluster), it.scores.EqualWidth(2))
    z2 = student.isf(0.025, 19) ** 2
    assert named.upper[0] == pytest.approx((z2 / 10) / (1 + z2 / 10))  # ten clusters, no positive


def test_a_population_takes_the_design_of_the_labelled_rows():
    frame, _, sample, _ = jackknife()
    rng = np.random.default_rng(5)
    many = people(rng, np.arange(3_000))
    population = it.Population(many["p"], {"age": many["age"], "sex": many["sex"]})
    task = tasks.mean("age")
    found = task.estimate(population, labelled=sample)
    labels = LabelledTask.of(task, sample)
    assert found.labelled.stderr == pytest.approx(labels.less().stderr)
    sampling = found.plugin.stderr
    powered = math.hypot(labels.less(found.lam).stderr, found.lam * sampling)
    assert found.prediction_powered.stderr == pytest.approx(powered)
    rows = task.estimate(population, labelled=sample_of(frame))
    assert found.labelled.stderr > 1.2 * rows.labelled.stderr
    assert found.recalibrated.stderr != pytest.approx(rows.recalibrated.stderr)


def hard(name, rng):
    """Calibrated models on designs that are hard for a variance."""
    rho, rate, strata, sizes = {
        "one label a cluster": (1.0, None, None, np.full(60, 4)),
        "rare and shared": (0.5, 0.05, None, np.full(60, 20)),
        "few and unequal": (0.2, 0.2, None, rng.integers(2, 40, 40)),
        "pairs in strata": (0.1, 0.3, 31, np.full(62, 12)),
    }[name]
    unit = np.repeat(np.arange(sizes.size), sizes)
    x = 0.5 * rng.normal(size=sizes.size)[unit] + rng.normal(size=unit.size)
    p = np.exp(rng.uniform(np.log(0.001), np.log(0.03), sizes.size))[unit]
    if rate is not None:
        p = expit(np.log(rate / (1 - rate)) + 0.4 * x)
    z = math.sqrt(rho) * rng.normal(size=sizes.size)[unit]
    z += math.sqrt(1 - rho) * rng.normal(size=unit.size)
    r = rng.choice(["a", "b"], unit.size)
    named = {} if strata is None else {"strata": unit // 2}
    return it.Sample(ndtr(z) < p, p, {"x": x, "r": r}, cluster=unit, **named)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["one label a cluster", "rare and shared", "few and unequal", "pairs in strata"]
)
def test_calibrated_models_are_seldom_called_biased(name):
    runs, wrong = 100, np.zeros(3, dtype=int)
    wanted = [
        tasks.prevalence(),
        tasks.mean("x"),
        tasks.prevalence(r="a") - tasks.prevalence(r="b"),
    ]
    for run in range(runs):
        sample = hard(name, np.random.default_rng([7, run]))
        for k, task in enumerate(wanted):
            found = evaluate_tasks(sample, [task], draws=19, rng=0)[0]
            excluded = found.lower > 0 or found.upper < 0
            assert excluded == (found.pvalue <= found.alpha)
            wrong[k] += excluded
    for count in wrong:
        assert binomtest(int(count), runs, 0.065, alternative="greater").pvalue > 0.02
