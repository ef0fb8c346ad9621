"""Numbers where labelled rows are no random sample: closed forms, coverage, refusals."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.stats import chi2

import itrust as it
from itrust import tasks
from itrust.balance import RowPair, at_hand
from itrust.render.page import page as estimates_page
from itrust.render.text.balance import percent
from itrust.tasks import BestReason, estimate_tasks
from itrust.tasks.ways import Transport, cross_fitted, population_totals, spread, transported
from oracles import plausible

SLOPE = tasks.parse('coef(region["south"] ; age + region against "west")')
GAP = tasks.parse('prevalence(region == "south") - prevalence(region == "west")')


def selected(seed, slope=0.05, rows=2_000, labelled=500):
    """The survey, in which the young are likelier to be labelled; the rows and who is labelled."""
    made = it.simulate.survey(rows, rng=seed)
    age = made.sample.column("age").values
    share = np.exp(-slope * age)
    rng = np.random.default_rng([seed, 7])
    chosen = np.sort(rng.choice(rows, labelled, replace=False, p=share / share.sum()))
    return made, made.sample.take(chosen), chosen


def covariates(sample):
    return {
        c.name: np.array(c.levels)[c.values] if c.is_category else c.values for c in sample.columns
    }


def unlabelled(sample):
    return it.Population(sample.p, covariates(sample), weights=sample.weights)


def transport(labelled, population, q=None, selection=None):
    rows = at_hand(population, labelled.names)
    pair = RowPair.of(labelled.points, rows, labelled.weights_or_ones)
    here, there = (labelled.p, population.p) if q is None else q
    return Transport(labelled, pair, here, there, selection)


def carried(own, task):
    return transported(task, own.labelled, {None: own})


def test_it_is_the_augmented_mean_by_hand():
    made, few, _ = selected(0)
    everyone = unlabelled(made.sample)
    own = transport(few, everyone)
    w = own.weights([])[0]
    found = carried(own, tasks.prevalence())
    assert np.isclose(found.value, everyone.p.mean() + w @ (few.y - few.p))
    age, older = few.column("age").values, made.sample.column("age").values
    w = own.weights(list(tasks.mean("age").ratios()))[0]
    above = (older * everyone.p).mean() + w @ (age * (few.y - few.p))
    below = everyone.p.mean() + w @ (few.y - few.p)
    assert np.isclose(carried(own, tasks.mean("age")).value, above / below)


def test_a_straight_line_is_the_corrected_least_squares_by_hand():
    made, few, _ = selected(0)
    everyone = unlabelled(made.sample)
    own, task = transport(few, everyone), tasks.parse("coef(age ; age ; identity)")
    w = own.weights(list(task.leaves()))[0]
    here, there = (
        np.column_stack([np.ones(rows.n), rows.column("age").values]) for rows in (few, made.sample)
    )
    moment = there.T @ everyone.p / everyone.n + here.T @ (w * (few.y - few.p))
    curve = there.T @ there / everyone.n
    found = carried(own, task)
    assert np.isclose(found.value, np.linalg.solve(curve, moment)[1])
    # The variance has both parts; few labels carry the number, so the floor of tasks adds to it.
    g = np.linalg.solve(curve, here.T)[1]
    left = everyone.p - there @ np.linalg.solve(curve, moment)
    noise = np.square(w * g * (few.y - few.p)).sum()
    sampling = np.square(np.linalg.solve(curve, there.T)[1] * left / everyone.n).sum()
    assert 1 <= found.error.stderr / np.sqrt(noise + sampling) < 1.2


def test_a_coefficient_of_levels_alone_is_a_gap():
    """Both sums are the same; with known probabilities so are the weights."""
    made, few, _ = selected(3)
    pi = np.random.default_rng(0).uniform(0.1, 0.9, few.n)
    slope = tasks.parse('coef(region["south"] ; region against "west" ; identity)')
    for rows in (few, few.take(np.arange(0, few.n, 2))):
        own = transport(rows, unlabelled(made.sample), selection=pi[: rows.n])
        one, other = carried(own, slope), carried(own, GAP)
        assert np.isclose(one.value, other.value)
        assert np.isclose(one.error.stderr, other.error.stderr, rtol=0.02)
    # Arithmetic joins both kinds.
    assert np.isclose(carried(own, slope - GAP).value, 0, atol=1e-9)


def test_coefficients_leave_out_levels_that_no_labelled_row_has():
    made, few, _ = selected(1)
    everyone, task = unlabelled(made.sample), tasks.parse('coef(age ; age + region against "west")')
    x = {name: np.array(column) for name, column in covariates(everyone).items()}
    x["region"] = np.where(np.arange(everyone.n) % 10 == 0, "moon", x["region"])
    new = it.Population(everyone.p, x)
    with pytest.raises(it.InputError, match=r'of region\["moon"\], and no labelled row'):
        task.estimate(new, few)
    found = task.estimate(new, few, support="exclude")
    assert found.best_way == "transported"
    assert found.size == 2_000
    assert 200 <= found.excluded < 220
    assert "region = moon" in str(found)


def test_random_rows_of_a_large_population_serve_regressions(monkeypatch):
    made, few, _ = selected(1)
    everyone, task = unlabelled(made.sample), tasks.parse("coef(age ; age)")
    whole = task.estimate(everyone, few)
    monkeypatch.setattr("itrust.balance.resembling.AT_HAND", 1_000)
    some, mean = estimate_tasks([task, tasks.mean("age")], everyone, few)
    assert "1,000 random rows of the population serve coef(age ; age)" in str(some)
    assert np.isclose(some.plugin.stderr / whole.plugin.stderr, np.sqrt(2), rtol=0.1)
    assert abs(some.transported.value - whole.transported.value) < whole.transported.stderr
    assert some.recalibrated is None
    assert "serve" not in str(mean)


def test_with_labelled_rows_as_population_it_is_the_estimate_from_labels():
    """Weights are then equal, and probabilities cancel."""
    few = it.simulate.survey(400, rng=0).sample
    slope = tasks.parse("coef(age ; age + region)")
    for task in (tasks.prevalence(), tasks.mean("age"), GAP, slope):
        found = carried(transport(few, unlabelled(few)), task)
        labels = tasks.expressions.TaskRows.labelled(few)
        assert np.isclose(found.value, task.linear(labels).value)
        assert np.isclose(found.effective, 400)


def test_probabilities_that_are_the_labels_leave_no_noise():
    made, few, chosen = selected(1)
    y = made.sample.y
    found = carried(transport(few, unlabelled(made.sample), (y[chosen], y)), tasks.prevalence())
    assert np.isclose(found.value, y.mean())


def test_known_probabilities_weigh_rows_by_one_over_them():
    made, few, _ = selected(2)
    pi = np.random.default_rng(0).uniform(0.1, 0.9, few.n)
    found = carried(transport(few, unlabelled(made.sample), selection=pi), tasks.prevalence())
    assert np.isclose(found.value, made.sample.p.mean() + np.average(few.y - few.p, weights=1 / pi))
    estimate = tasks.prevalence().estimate(unlabelled(made.sample), few, selection=pi)
    assert estimate.best_way == "transported"
    assert estimate.reason is BestReason.KNOWN
    assert "as given" in " ".join(str(estimate).split())


def test_order_of_rows_and_units_of_covariates_do_not_matter():
    made, few, _ = selected(3)
    found = carried(transport(few, unlabelled(made.sample)), tasks.prevalence())
    order = np.random.default_rng(0).permutation(few.n)
    turned = carried(transport(few.take(order), unlabelled(made.sample)), tasks.prevalence())

    def in_months(sample):
        x = {"age": 12 * sample.column("age").values, "income": sample.column("income").values}
        return x | {"region": [str(sample.column("region").cell(k)) for k in range(sample.n)]}

    scaled = carried(
        transport(
            it.Sample(few.y, few.p, in_months(few)),
            it.Population(made.sample.p, in_months(made.sample)),
        ),
        tasks.prevalence(),
    )
    for other in (turned, scaled):
        assert np.isclose(other.value, found.value, atol=1e-6)
        assert np.isclose(other.error.stderr, found.error.stderr, rtol=1e-3)


@pytest.fixture(scope="module")
def truths():
    many = it.simulate.survey(200_000, rng=99)
    rows = tasks.expressions.TaskRows(many.sample.points, np.ones(200_000), many.truth)
    return {task: task.linear(rows).value for task in (GAP, SLOPE)}


def test_transported_intervals_cover(truths):
    """Misses are as many as alpha says, and the squares of scores as large as they should be."""
    runs, scores, missed = 24, dict.fromkeys(truths, 0.0), dict.fromkeys(truths, 0)
    for seed in range(runs):
        made, few, _ = selected(seed)
        pair = RowPair.of(few.points, at_hand(unlabelled(made.sample), few.names), np.ones(few.n))
        own = Transport(few, pair, *cross_fitted(few, pair.population, seed))
        for task, truth in truths.items():
            found = carried(own, task)
            scores[task] += ((found.value - truth) / found.error.stderr) ** 2
            missed[task] += found.error.pvalue(found.value - truth) <= 0.05
    for task in truths:
        assert 0.001 < chi2.sf(scores[task], runs) < 0.999
        assert plausible(missed[task], runs)


def test_the_transported_estimate_is_recommended_where_that_of_random_samples_is_wrong(truths):
    """The gap of south and west grows with age, and the young are labelled."""
    off = dict.fromkeys(truths, 0)
    for seed in range(3):
        made, few, _ = selected(seed, rows=3_000, labelled=800)
        for found in estimate_tasks([*truths], unlabelled(made.sample), few):
            truth = truths[found.task]
            assert found.resemblance.differs
            assert found.resemblance.differences[0].name == "age"
            assert found.best is found.transported
            assert abs(found.best.value - truth) < 3.5 * found.best.stderr
            assert found.best.lower < found.best.value < found.best.upper
            off[found.task] += found.prediction_powered.upper < truth
    assert [*off.values()] == [3, 3]


def test_random_labels_get_the_random_form_or_one_hardly_wider():
    widths, ways = [], set()
    for seed in range(6):
        made = it.simulate.survey(2_000, rng=seed).sample
        few, _ = made.split([0.3, 0.7], rng=seed)
        found = tasks.prevalence().estimate(unlabelled(made), few)
        widths.append(found.transported.width / found.prediction_powered.width)
        ways.add(found.best_way)
        assert (found.best_way == "prediction_powered") == (found.resemblance.pvalue > 0.5)
    assert np.mean(widths) < 1.1
    assert "prediction_powered" in ways


def test_a_part_without_support_is_refused_or_excluded_and_named():
    made = it.simulate.survey(1_500, rng=0).sample
    young = made.take(np.flatnonzero(made.column("age").values < 45))
    everyone = unlabelled(made)
    found = tasks.prevalence().estimate(everyone, young)
    assert found.transported is None
    assert found.best is None
    assert found.reason is BestReason.UNSUPPORTED
    assert "report none of them" in str(found)
    assert "age above 44" in str(found)
    left = tasks.prevalence().estimate(everyone, young, support="exclude")
    assert left.best_way == "transported"
    assert left.size == everyone.n == 1_500
    assert left.excluded > 800
    assert "age above 44 (57 %)" in str(left)
    here = tasks.parse("prevalence(age < 44)").estimate(everyone, young)
    assert here.transported is not None
    assert here.gaps == ()


def test_rows_of_files_give_what_rows_in_memory_give(tmp_path, monkeypatch):
    made, few, _ = selected(4)
    everyone = unlabelled(made.sample)
    x = covariates(everyone)
    pa.parquet.write_table(pa.table({"score": everyone.p, **x}), tmp_path / "all.parquet")
    files = it.Population.scan(
        tmp_path / "all.parquet", prob="score", on=["income", "age", "region"]
    )
    wanted = [tasks.prevalence(), tasks.mean("age"), GAP]
    memory, streamed = (estimate_tasks(wanted, rows, few) for rows in (everyone, files))
    assert [one.to_dict() for one in memory] == [one.to_dict() for one in streamed]
    # Fewer rows at hand than there are: the plug-in is that of all, the rest is near.
    monkeypatch.setattr("itrust.balance.resembling.AT_HAND", 1_200)
    for rows in (everyone, files):
        for some, whole in zip(estimate_tasks(wanted, rows, few), memory, strict=True):
            assert np.isclose(some.plugin.value, whole.plugin.value)
            assert np.isclose(some.plugin.stderr, whole.plugin.stderr)
            assert abs(some.transported.value - whole.transported.value) < whole.transported.stderr
            assert some.recalibrated is None
            assert "every row of the population at once" in " ".join(some.notes)
            assert "pairs" not in " ".join(some.notes)
            assert some.size == 2_000
    monkeypatch.undo()
    monkeypatch.setattr("itrust.tasks.population.MAX_PAIRS", 1e5)
    (paired,) = estimate_tasks(wanted[:1], everyone, few)
    assert paired.recalibrated is None
    assert "pairs of rows are too many" in " ".join(paired.notes)


def test_sums_over_chunks_are_those_over_all_rows():
    made, _, _ = selected(5)
    ratios = list(GAP.ratios())
    totals = population_totals(ratios, unlabelled(made.sample))
    out = tasks.expressions.TaskRows.predicted(made.sample)
    assert np.allclose(totals.values(), [ratio.linear(out).value for ratio in ratios])
    influence = GAP.linear(out).slope
    error = totals.stderr(np.array([1.0, -1.0]), totals.values())
    assert np.isclose(error, spread(influence))


def test_clusters_widen_the_interval():
    made, few, _ = selected(6, labelled=400)
    unit = np.repeat(np.arange(40), 10)
    y = np.repeat(few.y[::10], 10)  # one label a cluster
    x = {c.name: np.array(c.levels)[c.values] if c.is_category else c.values for c in few.columns}
    alone, together = (it.Sample(y, few.p, x, cluster=own) for own in (None, unit))
    widths = [
        carried(transport(own, unlabelled(made.sample)), tasks.prevalence()).error.stderr
        for own in (alone, together)
    ]
    assert widths[1] > 1.8 * widths[0]


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ([0.5], "has 1 entries and there are 500 labelled rows"),
        (np.zeros(500), "above 0 and up to 1; row 0 has 0.0"),
        ("region", "holds levels"),
    ],
)
def test_selection_is_checked(selection, message):
    made, few, _ = selected(7)
    with pytest.raises(it.InputError, match=message):
        tasks.prevalence().estimate(unlabelled(made.sample), few, selection=selection)


def test_selection_beside_weights_is_refused():
    made, few, _ = selected(8)
    x = {"age": few.column("age").values}
    weighted = it.Sample(few.y, few.p, x, weights=np.ones(few.n))
    with pytest.raises(it.InputError, match="say one of them"):
        tasks.prevalence().estimate(unlabelled(made.sample), weighted, selection=np.ones(few.n))
    with pytest.raises(it.InputError, match="must be one of"):
        tasks.prevalence().estimate(unlabelled(made.sample), few, support="ignore")


def test_a_number_without_some_rows_says_so_wherever_it_stands():
    """Sentences, head, dict, page, notebook and picture: the rows that it is for, and of which."""
    made = it.simulate.survey(1_500, rng=0).sample
    young = made.take(np.flatnonzero(made.column("age").values < 45))
    wanted = [tasks.prevalence(), tasks.parse("prevalence(age < 44)")]
    found = estimate_tasks(wanted, unlabelled(made), young, support="exclude").disclosed(10)
    whole = found[0]
    less = f"less {whole.excluded:,} that no labelled row resembles"
    facts, page = found.to_dict(), estimates_page(found)
    plain = re.sub("<[^>]*>", "", page)
    share = f"for the {percent(1 - whole.gaps[0].share)} of the rows it counts that labelled rows"
    for told in (str(found), found._repr_html_(), plain):
        assert f"population of 1,500 rows ({less})" in " ".join(told.split())
        assert " ".join(told.split()).count(share) >= 1
    for told in (str(whole), whole._repr_html_(), facts["estimates"][0]["sentence"]):
        assert share in " ".join(told.split())
    assert less in " ".join(str(whole).split())
    assert facts["population"] == facts["estimates"][0]["population"] == 1_500
    assert facts["excluded"] == facts["estimates"][1]["excluded"] == whole.excluded
    assert "rows like labelled ones" in repr(whole)
    title = whole.plot().figure_.get_suptitle()
    assert f"{1_500 - whole.excluded} of 1,500 rows" in title
    assert "would have published" not in plain + str(found)
    # A number that counts none of these rows is for all that it counts.
    assert facts["estimates"][1]["scope"] == ""
    assert "that labelled rows resemble" not in facts["estimates"][1]["sentence"]


def test_few_excluded_rows_are_not_counted():
    made = it.simulate.survey(1_500, rng=0).sample
    few = made.take(np.arange(600))
    x = covariates(made)
    x["region"] = np.where(np.arange(1_500) < 4, "moon", x["region"])
    found = estimate_tasks([tasks.prevalence()], it.Population(made.p, x), few, support="exclude")
    assert 4 <= found.excluded < 10
    shown = found.disclosed(10)
    assert shown.excluded is None
    assert "(less a few that no labelled row resembles)" in " ".join(str(shown).split())
    assert "(less a few that no labelled row resembles)" in estimates_page(shown)
    assert found.disclosed(20).excluded is None


def test_more_labels_never_refuse_a_small_group():
    """Random labels; a rare level has forty of them, whatever the others have."""
    rng = np.random.default_rng(0)
    for others in (500, 5_000):
        rare = np.r_[np.ones(120, dtype=bool), np.zeros(3 * others, dtype=bool)]
        x = {"place": np.where(rare, "isle", "land"), "z": rng.normal(size=rare.size)}
        p = rng.uniform(0.2, 0.8, rare.size)
        chosen = np.sort(
            np.r_[rng.choice(120, 40, False), 120 + rng.choice(3 * others, others, False)]
        )
        y = rng.random(rare.size) < p
        few = it.Sample(y[chosen], p[chosen], {name: own[chosen] for name, own in x.items()})
        task = tasks.parse('prevalence(place == "isle")')
        assert task.estimate(it.Population(p, x), few).transported is not None


def test_rows_that_cannot_be_balanced_are_wide_or_refused_and_say_so():
    """The young are far likelier: what weights leave is in the interval, up to a limit."""
    made, few, _ = selected(0, slope=0.12, labelled=300)
    found = tasks.prevalence().estimate(unlabelled(made.sample), few)
    assert found.transported is not None
    assert found.unbalanced > 0
    assert "weights leave" in str(found)
    assert found.transported.stderr > 2 * found.prediction_powered.stderr
    young = few.take(np.flatnonzero(few.column("age").values < 30))
    refused = tasks.prevalence().estimate(unlabelled(made.sample), young)
    assert refused.best_way is None
    assert refused.reason.name in ("UNBALANCED", "UNSUPPORTED", "UNKNOWN")


def test_weights_and_clusters_too_few_to_test_leave_the_estimates():
    made, few, _ = selected(0)
    heavy = np.ones(few.n)
    heavy[0] = 1_000
    weighted = it.Sample(few.y, few.p, covariates(few), weights=heavy)
    found = tasks.prevalence().estimate(unlabelled(made.sample), weighted)
    assert np.isnan(found.resemblance.pvalue)
    assert found.best_way in ("transported", None)
    assert "could not be tested" in str(found.resemblance.notes)


def test_labels_of_one_kind_recommend_nothing():
    made, few, _ = selected(0)
    ones = it.Sample(np.ones(few.n), few.p, covariates(few))
    found = tasks.prevalence().estimate(unlabelled(made.sample), ones)
    assert (found.best_way, found.reason.name) == (None, "UNKNOWN")


def test_a_population_without_a_covariate_is_told():
    made, few, _ = selected(0)
    there = {name: own for name, own in covariates(made.sample).items() if name != "age"}
    found = tasks.prevalence().estimate(it.Population(made.sample.p, there), few)
    assert any("the population lacks 'age'" in note for note in found.notes)


def test_codes_as_text_on_one_side_are_refused():
    made, few, _ = selected(0)
    code = lambda sample: np.round(sample.column("age").values / 20)  # noqa: E731
    ours = it.Sample(few.y, few.p, {"cls": code(few)}, categories="cls")
    there = it.Population(made.sample.p, {"cls": [f"{own:g}" for own in code(made.sample)]})
    with pytest.raises(it.InputError, match="numbers on one side and text on the other"):
        tasks.prevalence().estimate(there, ours)


def test_rows_on_both_sides_add_their_covariance():
    """With every labelled row in the population the random-sample form is as wide as its noise."""
    scores = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=300)
        p = 1 / (1 + np.exp(-4 * z))
        few = it.Sample(rng.random(300) < p, p, {"z": z})
        found = tasks.prevalence().estimate(it.Population(p, {"z": z}), few, rng=seed)
        powered = found.prediction_powered
        scores.append((powered.value - 0.5) / powered.stderr)
    assert 0.75 < np.std(scores) < 1.25
