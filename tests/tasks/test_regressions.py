"""Coefficients as tasks: closed forms, statsmodels, properties, refusals in words."""

import re
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import chi2

import itrust as it
from itrust import tasks
from itrust._core import InputError
from itrust.tasks.expressions import TaskRows
from itrust.tasks.regressions import solved
from itrust.terms import LINKS as LINKS_BY_NAME
from oracles import plausible

LINKS = ("logit", "identity", "log")
REGION = ("north", "south", "west")


def rows(n=600, seed=0, **beside):
    rng = np.random.default_rng(seed)
    age, region = rng.uniform(20, 80, n), rng.choice(REGION, n, p=[0.5, 0.3, 0.2])
    urban = rng.random(n) < 0.4
    p = expit(-2 + 0.035 * age + 0.5 * (region == "south") + rng.normal(0, 0.6, n))
    y = rng.random(n) < expit(logit(p) + 0.4 * (region == "west"))
    return it.Sample(y, p, {"age": age, "region": region, "urban": urban}, **beside)


def matrix(sample):
    region = sample.column("region").values
    columns = [sample.column("age").values, region == 1, region == 2]
    return np.column_stack([np.ones(sample.n), *columns]).astype(float)


def value(text, sample, stand_in=None):
    s = sample.y if stand_in is None else stand_in
    return tasks.parse(text).linear(TaskRows(sample.points, sample.weights_or_ones, s)).value


def text_of(of, link="logit"):
    return f"coef({of} ; age + region{'' if link == 'logit' else f' ; {link}'})"


# --- closed forms ---


def test_a_saturated_regression_is_the_log_odds_of_the_means():
    sample = rows(weights=np.random.default_rng(1).uniform(0.5, 2, 600))
    rate = {level: value(f'prevalence(region == "{level}")', sample) for level in REGION}
    for link, scale in (("logit", logit), ("identity", float), ("log", np.log)):
        for level in ("south", "west"):
            found = value(f'coef(region["{level}"] ; region ; {link})', sample)
            assert found == pytest.approx(scale(rate[level]) - scale(rate["north"]), abs=1e-10)
        constant = value(f"coef(1 ; region ; {link})", sample)
        assert constant == pytest.approx(scale(rate["north"]), abs=1e-10)


def test_a_linear_regression_on_one_boolean_is_the_gap_of_two_rates():
    sample = rows(weights=np.random.default_rng(1).uniform(0.5, 2, 600))
    wanted = [
        "coef(urban ; urban ; identity)",
        "prevalence(urban == true) - prevalence(urban == false)",
    ]
    slope, gap = (tasks.parse(text).evaluate(sample, draws=99, rng=0) for text in wanted)
    for name in ("plugin", "from_labels", "bias", "unadjusted_pvalue"):
        found, expected = getattr(slope, name), getattr(gap, name)
        assert found == pytest.approx(expected, abs=1e-10 if name != "unadjusted_pvalue" else 0.1)
    assert slope.stderr == pytest.approx(gap.stderr, rel=0.01)


def test_the_bias_is_the_linearised_sum_of_residuals_where_it_is_small():
    rng = np.random.default_rng(0)
    sample = rows(4_000)
    near = sample.with_predictions(np.clip(sample.p, 0.01, 0.99))
    y = (rng.random(near.n) < near.p).astype(float)
    s = near.p + 1e-4 * (y - near.p)
    fit = tasks.parse(text_of("age")).fit(TaskRows.predicted(near))
    moved = value(text_of("age"), near, s) - value(text_of("age"), near, near.p)
    ones = np.ones(near.n)
    lean = fit.lean(near.points, ones) / fit.mass
    assert moved == pytest.approx(lean @ (s - near.p), rel=1e-3)


# --- oracles ---


@pytest.mark.parametrize("link", LINKS)
def test_values_and_sandwiches_are_those_of_statsmodels(link):
    sm, family = statsmodels(link)
    weights = np.random.default_rng(1).uniform(0.5, 2, 1_500)
    sample, weighted = rows(1_500), rows(1_500, weights=weights)
    cluster = np.repeat(np.arange(300), 5)
    clustered = rows(1_500, cluster=cluster)
    z = matrix(sample)
    theirs = sm.GLM(sample.y, z, family=family).fit(cov_type="HC1")
    grouped = sm.GLM(sample.y, z, family=family).fit(
        cov_type="cluster", cov_kwds={"groups": cluster}
    )
    heavy = sm.GLM(sample.y, z, family=family, freq_weights=weights).fit()
    apart = it.Population(sample.p[:200], frame(sample, slice(0, 200)))
    for j, of in ((1, "age"), (2, 'region["south"]'), (3, 'region["west"]')):
        task = tasks.parse(text_of(of, link))
        own = task.estimate(apart, labelled=sample).labelled
        assert own.value == pytest.approx(theirs.params[j], rel=1e-7)
        assert own.stderr == pytest.approx(theirs.bse[j], rel=0.01)
        by_cluster = task.estimate(apart, labelled=clustered).labelled
        assert by_cluster.stderr == pytest.approx(grouped.bse[j], rel=0.01)
        assert value(str(task), weighted) == pytest.approx(heavy.params[j], rel=1e-7)


def statsmodels(link):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import statsmodels.api as sm
    families = {
        "logit": sm.families.Binomial,
        "identity": sm.families.Gaussian,
        "log": sm.families.Poisson,
    }
    return sm, families[link]()


def frame(sample, some=slice(None)):
    return {
        c.name: np.array(c.levels)[c.values[some]] if c.is_category else c.values[some]
        for c in sample.columns
    }


def test_replicate_weights_refit_the_regression():
    rng = np.random.default_rng(0)
    sets = rng.exponential(size=(300, 20))
    sample = rows(300, weights=np.ones(300), replicate_weights=sets, replicate_method="BRR")
    task = tasks.parse(text_of("age"))
    found = task.evaluate(sample)
    again = [
        task.linear(TaskRows(sample.points, sets[:, r], s)).value
        for s in (sample.y, sample.p)
        for r in range(20)
    ]
    moves = np.subtract(again[:20], again[20:]) - found.bias
    assert found.stderr == pytest.approx(np.sqrt(np.mean(moves**2)), rel=1e-6)


# --- properties ---


@pytest.mark.parametrize("link", LINKS)
def test_units_and_the_order_of_rows_and_terms_change_nothing_else(link):
    sample = rows()
    suffix = "" if link == "logit" else f" ; {link}"
    age = value(f"coef(age ; age + region + urban{suffix})", sample)
    assert value(f"coef(age / 10 ; age / 10 + region + urban{suffix})", sample) == pytest.approx(
        10 * age, rel=1e-8
    )
    assert value(
        f"coef((age - 50) ; urban + region + (age - 50){suffix})", sample
    ) == pytest.approx(age, rel=1e-8)
    turned = sample.take(np.random.default_rng(1).permutation(sample.n))
    assert value(f"coef(age ; age + region + urban{suffix})", turned) == pytest.approx(
        age, rel=1e-8
    )


def test_the_reference_changes_signs_and_nothing_else():
    sample = rows()
    one = value('coef(region["south"] ; age + region against "west")', sample)
    other = value('coef(region["west"] ; age + region against "south")', sample)
    assert one == pytest.approx(-other, rel=1e-9)
    west = value('coef(region["west"] ; age + region)', sample)
    south = value('coef(region["south"] ; age + region)', sample)
    assert one == pytest.approx(south - west, rel=1e-9)


def test_an_interaction_with_everything_is_a_regression_in_each_group():
    sample = rows(2_000)
    both = value("coef(age:urban ; age + urban + age:urban)", sample)
    apart = value("coef(age ; age | urban == true) - coef(age ; age | urban == false)", sample)
    assert both == pytest.approx(apart, rel=1e-7)
    cells = value('coef(region["south"]:urban ; region + urban + urban:region ; identity)', sample)
    rates = {
        (level, city): value(f'prevalence(region == "{level}" and urban == {city})', sample)
        for level in ("north", "south")
        for city in ("true", "false")
    }
    double = rates["south", "true"] - rates["south", "false"]
    double -= rates["north", "true"] - rates["north", "false"]
    assert cells == pytest.approx(double, abs=1e-9)


def test_rows_of_weight_0_do_not_count():
    sample = rows(500)
    w = np.ones(500)
    w[400:] = 0
    kept = rows(500, weights=w)
    assert value(text_of("age"), kept) == pytest.approx(
        value(text_of("age"), sample.take(np.arange(400)))
    )


# --- how it is written ---


@pytest.mark.parametrize(
    "text",
    [
        "coef(age ; age + race + income)",
        'coef(race["Black"] ; age + race against "White" ; identity | region == "south")',
        "coef(1 ; age ; log)",
        'coef(age:race["b ""c"""] ; age + race + age:race)',
        "coef(log(income) / 2 ; age + log(income) / 2)",
        "coef((age - 40) ** 2 ; age + (age - 40) ** 2)",
        "coef(`hours per week` ; `hours per week` + `a``b` against 7)",
        "100 * (coef(age ; age | x > 1) - coef(age ; age | x <= 1))",
        'coef(a["x"]:b["y"] ; a against "z" + a:b against true)',
    ],
)
def test_texts_are_read_back_to_the_same_task(text):
    task = tasks.parse(text)
    assert task.formula == text
    assert tasks.parse(task.formula) == task
    assert hash(tasks.parse(text)) == hash(task)


def test_the_order_in_which_references_are_said_does_not_matter():
    text = 'coef(a ; a + b against "x" + c + a:c + b:c)'
    late = 'coef(a ; a + b + c against "y" + a:c + b against "x":c)'
    task = tasks.parse(late)
    assert task.formula == 'coef(a ; a + b against "x" + c against "y" + a:c + b:c)'
    assert tasks.parse(task.formula) == task != tasks.parse(text)


def test_python_and_text_make_the_same_task():
    made = tasks.coefficient(
        ("age", {"race": "b"}),
        on=["age", "race", ("age", "race"), "hours per week", "log(income)"],
        link="log",
        reference={"race": "w"},
        region="south",
    )
    text = (
        'coef(age:race["b"] ; age + race against "w" + age:race + `hours per week` + log(income) '
        '; log | region == "south")'
    )
    assert made == tasks.parse(text)
    assert str(made) == text
    assert tasks.coefficient(1, on=["age"]) == tasks.parse("coef(1 ; age)")


def test_the_reference_is_said_where_nobody_chose_it():
    found = tasks.parse(text_of("age")).evaluate(rows(), draws=99, rng=0)
    assert "levels of region are compared with north, the first one" in found.notes
    chosen = tasks.parse('coef(region["south"] ; age + region against "west")')
    told = chosen.evaluate(rows(), draws=99, rng=0)
    assert told.notes == ()
    assert "region = south against west in a logistic regression" in str(told)


# --- refusals ---

REFUSED = {
    "coef(age ; age + prediction)": "the model's prediction, and a prediction on the right side",
    "coef(age ; age + copy)": "copy is the model's prediction",
    "coef(age ; age + sure)": "equals the label in every row",
    "coef(age ; age + owner)": "'owner' is the label that the regression explains",
    "coef(age ; age + 2 * age)": r"2 \* age is told by 'age'",
    "coef(age ; age + same)": "same is the same in all rows",
    "coef(age ; age + region + south)": "south is told by .*region",
    "coef(age ; age + part)": "the covariates tell the labels apart",
    'coef(kind["b"] ; age + kind)': r'of the rows with kind\["b"\], all are positive',
    'coef(kind["c"] ; age + kind ; log | kind != "b")': "no row with kind.* is positive",
    "coef(age ; age + holes)": "holes has no finite value in 10 rows .first: row 0.",
    "coef(age ; age | age < 21)": "has 2 coefficients and",
    "coef(region ; age + region)": "is a category: say which level's",
    'coef(region["nord"] ; region)': "has no level 'nord' .did you mean 'north'",
    'coef(region["north"] ; region)': "has no coefficient of its own: it is the reference",
    'coef(age["x"] ; age)': "is a number and has no levels",
    'coef(age ; age against "x")': "is a number and has no reference level",
    'coef(age ; age + region against "x")': "has no level 'x'",
    'coef(age ; age + region against "west" | region != "west")': "the reference level; choose",
    "coef(age ; age + nobody)": "there is no covariate 'nobody'",
    "coef(age ; many + age)": "at most 200 coefficients, and this one would have 201",
    "coef(age ; region)": "'age' is not a term of the regression on region",
    "coef(age ; age + age)": "stands twice",
    "coef(age:age ; age:age)": "stands twice",
    "coef(age ; age:region:urban)": "an interaction is of two covariates",
    "coef(age ; age + 3)": "reads a covariate, and '3' reads none",
    "coef(age ; age ; probit)": "expected logit, identity or log after ;",
    "coef(age ; age + age / 0)": "no finite value",
    "coef(age, region)": "expected ';'",
    "coef(age ; (age + 1) against 2)": "only a covariate by itself has a reference level",
    'coef(age ; age + a against "b" + age:a against "c")': "a category has one reference level",
    'coef(region["south"] ; age + region["south"])': "expected '\\)'",
    "mean(age[1])": r"there is no use for '\[' in a task: use \( \)",
    "mean(age) ; 2": "there is no use for ';'",
}


@pytest.fixture(scope="module")
def awkward():
    sample, rng = rows(400), np.random.default_rng(3)
    y = sample.y
    kind = np.where((rng.random(400) < 0.2) & (y == 1), "b", "a")
    kind = np.where((rng.random(400) < 0.2) & (y == 0), "c", kind)
    data = {
        **frame(sample),
        "copy": 1 - sample.p,
        "same": np.full(400, 7.0),
        "south": np.array(sample.column("region").values == 1, dtype=float),
        "part": y + rng.uniform(0, 0.9, 400),
        "kind": kind,
        "holes": np.where(np.arange(400) % 40 == 0, np.nan, 1.0) * rng.normal(size=400),
        "many": rng.permutation(np.arange(400) % 201).astype(str),
        "sure": np.where(np.arange(400) == 0, 1 - y, y),
    }
    columns = {"y": np.where(y, "yes", "no"), "p": sample.p, **data}
    frame_ = {"owner": columns.pop("y"), **columns}
    on = [name for name in frame_ if name not in ("owner", "p")]
    return it.Sample.from_frame(
        frame_, label="owner", prob="p", on=on, positive="yes", missing="level"
    )


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_is_refused_with_the_reason(text, awkward):
    sample = awkward.take(np.arange(1, 400)) if "sure" in text else awkward
    with pytest.raises(InputError, match=REFUSED[text]):
        tasks.parse(text).evaluate(sample, draws=19, rng=0)


DISGUISED = {
    "percent": lambda p: 100 * p,
    "odds": lambda p: np.log(p / (1 - p)),
    "rounded": lambda p: np.round(p, 3),
    "order": lambda p: -np.argsort(np.argsort(p)).astype(float),
}


@pytest.mark.parametrize("n", [60, 600])
@pytest.mark.parametrize("name", DISGUISED)
def test_a_prediction_under_another_form_is_refused(name, n):
    sample = rows(n)
    x = {"age": sample.column("age").values, name: DISGUISED[name](sample.p)}
    with pytest.raises(InputError, match=f"{name} orders the rows as the model's prediction does"):
        tasks.parse(f"coef(age ; age + {name})").check(it.Sample(sample.y, sample.p, x))


@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_a_covariate_that_the_prediction_leans_on_is_no_prediction(noise):
    """Its rank correlation is .99 and more; years have few values, whatever the model made of them.

    A model of years alone orders rows as years do.
    """
    rng = np.random.default_rng(0)
    score, years = rng.normal(size=600), rng.integers(20, 80, 600)
    p = expit(score + noise * rng.normal(size=600))
    ranks = [np.argsort(np.argsort(values)) for values in (score, p)]
    assert 0.95 < np.corrcoef(ranks)[0, 1] < 0.999
    tasks.parse("coef(score ; score)").check(it.Sample(rng.random(600) < p, p, {"score": score}))
    p = expit((years - 50) / 20)
    tasks.parse("coef(years ; years)").check(it.Sample(rng.random(600) < p, p, {"years": years}))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tasks.coefficient("age", on="age"), "is a list of covariates"),
        (lambda: tasks.coefficient("age", on=[]), "a regression needs a covariate"),
        (lambda: tasks.coefficient("age", on=["age"], link="probit"), "link must be one of"),
        (lambda: tasks.coefficient("age", on=["age", 3]), "on takes names of covariates"),
        (lambda: tasks.coefficient("age", on=["age"], reference="x"), "maps categories to levels"),
        (lambda: tasks.coefficient("age", on=["age"], reference={"b": 1}), "no term"),
        (lambda: tasks.coefficient("age", on=["age", 'race["b"]']), "is one level"),
    ],
)
def test_odd_arguments_are_refused(call, words):
    with pytest.raises(InputError, match=re.escape(words)):
        call()


# --- statistical ---


def rare(seed, off=0.0):
    """Rare events, a category of 40 rows, weights: the hardest that is not refused."""
    rng = np.random.default_rng(seed)
    region = rng.permutation(["west"] * 40 + ["south"] * 300 + ["north"] * 360)
    age = rng.uniform(20, 80, 700)
    odds = -4 + 0.03 * age + 1.5 * (region == "west")
    y = rng.random(700) < expit(odds + off * (age - 50))
    w = np.exp(rng.normal(0, 0.5, 700))
    return it.Sample(y, expit(odds), {"age": age, "region": region}, weights=w)


def test_the_pvalue_holds_its_level_and_intervals_cover():
    """Judged at three levels, and by the squares of scores, which tell a wrong standard error."""
    wanted = [tasks.parse(text) for text in (text_of("age"), text_of('region["west"]'))]
    runs = 40
    found = [
        it.tasks.evaluate_tasks(rare(seed), wanted, draws=99, rng=seed) for seed in range(runs)
    ]
    for one in (one for some in found for one in some):
        assert (one.pvalue <= 0.05) == (not one.lower <= 0 <= one.upper)
    for own in zip(*found, strict=True):
        pvalues = np.array([one.unadjusted_pvalue for one in own])
        for level in (0.05, 0.2, 0.5):
            count = int((pvalues <= level).sum())
            assert plausible(count, runs, level) or count < level * runs
        squares = sum((one.bias / one.stderr) ** 2 for one in own)
        assert 0.001 < chi2.sf(squares, runs) < 0.999


def test_a_wrong_slope_is_seen_where_events_are_rare():
    task = tasks.parse(text_of("age"))
    found = [task.evaluate(rare(seed, off=0.05), draws=99, rng=seed) for seed in range(5)]
    assert sum(one.pvalue <= 0.05 for one in found) >= 4


def problem(n=200, seed=0):
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    return design, rng.uniform(0.5, 2, n), (rng.random(n) < 0.3).astype(float)


@pytest.mark.parametrize("name", LINKS)
def test_the_solution_is_where_an_optimiser_stops_and_the_equation_is_0(name):
    link, (design, w, s) = LINKS_BY_NAME[name], problem()
    beta, curve = solved(link, design, w, design.T @ (w * s))
    assert curve == pytest.approx(
        (design * (w * link.variance(link.mean(design @ beta)))[:, None]).T @ design
    )
    assert np.abs(design.T @ (w * (s - link.mean(design @ beta)))).max() < 1e-9

    def loss(beta):
        eta = design @ beta
        return float(w @ (link.potential(eta) - s * eta))

    assert minimize(loss, np.zeros(3), tol=1e-10).x == pytest.approx(beta, abs=1e-4)


def test_separated_labels_have_no_solution():
    design, w, _ = problem()
    s = (design[:, 1] > 0).astype(float)
    assert solved(LINKS_BY_NAME["logit"], design, w, design.T @ (w * s)) is None
    assert solved(LINKS_BY_NAME["identity"], design, w, design.T @ (w * s)) is not None
    assert solved(LINKS_BY_NAME["logit"], design, 0 * w, design.T @ s) is None
