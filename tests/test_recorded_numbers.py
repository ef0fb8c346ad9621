"""Numbers of the whole package on small data, as they were once recorded.

Other tests say what is right; this one says that nothing has moved. A change that is not meant to
touch results must leave every number here as it is. One that is meant to writes them again, and the
new recorded_numbers.json belongs into the same commit:

    python tests/test_recorded_numbers.py --record

This writes what has moved and keeps what has not, and it says what it has written. With a word
after it, such as `--record clustered`, only parts that have the word in their name are written.

"As it is" means up to rounding. Another processor adds in another order, which moves numbers by a
relative 1e-8 or so: 1e-6 are allowed. Kernels of low rank take other rows for it, and are good to a
thousandth of the null standard deviation: 5e-4 are allowed. A p-value from draws is a count, and a
draw that ties with the data up to rounding falls on either side of it: two steps of 1 / (1 + draws)
are allowed. P-values of formulas are numbers like all others.

Only numbers are kept: names and sentences may change. Data come from NumPy alone, not from
`itrust.simulate`, so that another design there shows in a case of its own.
"""

import json
import math
import sys
import tempfile
import warnings
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.linear_model import LogisticRegression

import itrust as it
from itrust import nulls, recalibrate, scores, simulate, tasks
from itrust.engines import Factor, Tiles
from itrust.kernels import (
    RBF,
    Constant,
    Delta,
    Laplace,
    Linear,
    LocalKernel,
    Matern,
    RationalQuadratic,
)

pytestmark = pytest.mark.slow

KEPT = Path(__file__).with_name("recorded_numbers.json")
ROUNDED = {"rel_tol": 1e-6, "abs_tol": 1e-8}  # the latter for what is 0 up to rounding
OF_LOW_RANK = {"rel_tol": 5e-4, "abs_tol": 1e-6}
LOW_RANK = ("factor", "files")  # in paths of what is made so
OF_MANY_PVALUES = {"rel_tol": 0.01}  # sums of p-values, each of which may move
STEPS = 2  # by which a p-value from draws may move
DIGITS = 9  # of the audit's numbers where they stand without their names
DRAWS = 99
FEW_DRAWS = 39
SEED = 7


# --- the package: its names, calls and results. What is renamed there is renamed here, once -------

ENGINES = {"tiles": Tiles(128), "factor": Factor()}
ALLOWED = {"alpha": 0.1}  # no default of the package, so that a lost setting shows
MATTERS = {"tolerance": 0.08}
SEEDED = {"draws": DRAWS, "rng": SEED}
# Keys of what two runs need not have in common, and of predicates, which hold the ends of ranges.
UNSHARED = ("elapsed", "seconds", "version", "where", "direction")

EXPLICIT = LocalKernel(RBF(0.2), {"income": RBF(20_000.0), "age": RBF(12.0), "region": Delta(0.3)})
KERNELS = {"default": LocalKernel(), "explicit": EXPLICIT}
ON_AGE = {
    "laplace": Laplace(10.0),
    "matern": Matern(10.0),
    "rational": RationalQuadratic(10.0),
    "linear": Linear(),
    "median": RBF(),
    "gamma": RBF.from_gamma(0.01),
    "sum": RBF(5.0) + RBF(20.0),
}
OWN_PLACES = {"age": RBF(12.0).on("age"), "region": Delta().on("region"), "all": EXPLICIT}
ROWWISE_NULLS = {
    "bernoulli": nulls.Bernoulli(),
    "rademacher": nulls.Rademacher(),
    "spectral": nulls.Spectral(),
}
BOUNDS = {
    "hoeffding": nulls.Hoeffding(),
    "the paper's hoeffding": nulls.Hoeffding(papers_constant=True),
}
NULLS_OF_ALL_ROWS = {
    "bootstrap": nulls.ResidualBootstrap(),
    "permutation": nulls.Permutation(),
    "centred": nulls.Permutation(centred=True),
}
TASKS = {
    "mean": tasks.mean("age"),
    "mean of a group": tasks.mean("income", where={"region": "south"}),
    "mean of a function": tasks.mean(lambda x: x["age"] * (x["region"] == "west"), name="f"),
    "share": tasks.share("age >= 65"),
    "share of a group": tasks.share({"region": "south"}, where="age < 50"),
    "prevalence": tasks.prevalence(),
    "prevalence of groups": tasks.prevalence(region=["south", "west"]),
    "gap": tasks.mean("age", region="south") - tasks.mean("age", region="west"),
    "ratio": tasks.prevalence(region="south") / tasks.prevalence(region="west"),
    "product": 100 * tasks.prevalence(region="south") * tasks.mean("age"),
    "sum": 1 - tasks.prevalence() + tasks.share(region="north"),
    "negative": -tasks.prevalence(region="north"),
    "text": tasks.parse('mean(log(income) | age < 60 and region != "west")'),
    "power": tasks.parse('mean(age ** 2 | not (region == "north" or age > 70))'),
    "list": tasks.parse('share(region in ("north", "south") | income >= 40000)'),
}
TASKS_WITH_GAPS = {
    "missing": tasks.parse("prevalence(lab is missing)"),
    "not missing": tasks.parse("mean(lab | lab is not missing)"),
    "truth value": tasks.parse("share(urban == true)"),
    "date": tasks.parse('prevalence(day >= "2026-03-01")'),
}
REPAIRS = {
    **{name: method() for name, method in recalibrate.METHODS.items() if name != "mcgrad"},
    "platt, raw": recalibrate.Platt(raw=True),
    "temperature, edge": recalibrate.Temperature(edge=0.05),
    "histogram, 5": recalibrate.HistogramBinning(5),
    "multicalibration, discretised": recalibrate.Multicalibration(discretised=True),
}
SCORES = (scores.brier, scores.log_loss, scores.smooth_ece, scores.ece, scores.mce)
BINS = {"width": scores.EqualWidth(7), "mass": scores.EqualMass(7)}


Sample, Population, klce2, null_sd = it.Sample, it.Population, it.klce2, it.null_sd


def scanned(path, names, weights):
    return it.scan(path, label="y", prob="p", on=names, weights=weights)


def with_other_predictions(sample, p):
    return sample.with_predictions(p)


def only(sample, *names):
    return sample.only(*names)


def on_age(kernel):
    """A kernel that sees the age alone, beside the prediction."""
    return LocalKernel(RBF(0.3), {"income": Constant(), "age": kernel, "region": Constant()})


def one_kernel(sample, kernel, null=None, **settings):
    result = it.klce_test(sample, kernel, null, **SEEDED | settings)
    return single_facts(result)


def single_facts(result):
    """The p-value of a formula is no count of draws: rounding may move it."""
    if result.null_distribution is None:
        return {"statistic": result.statistic, "formula": result.pvalue}
    return {
        "statistic": result.statistic,
        "score": result.score,
        "pvalue": result.pvalue,
        "exceedance": result.exceedance,
        "null": digest(result.null_distribution),
    }


def adaptive(sample, places=None, **settings):
    return adaptive_facts(it.klce_test(sample, places, **SEEDED | settings))


def adaptive_facts(result):
    return {
        **single_facts(result),
        "statistic_draws": digest(result.statistic_draws),
        "places": len(result.findings),
        "told": len(result.evidence()),
        "findings": findings_facts(result.findings),
    }


def findings_facts(findings):
    return [
        {
            "weight": f.weight,
            "score": f.score,
            "own_pvalue": f.unadjusted_pvalue,
            "pvalue": f.pvalue,
        }
        for f in findings[:8]
    ]


def multiclass(y, p, x, **settings):
    result = it.multiclass_test(it.MulticlassSample(y, p, x, **settings), **SEEDED)
    return {
        "statistic": result.statistic,
        "null_sd": result.null_sd,
        "score": result.score,
        "pvalue": result.pvalue,
        "null": digest(result.null_distribution),
        "classes": [
            {
                "positives": part.positives,
                "statistic": part.statistic,
                "own_pvalue": part.unadjusted_pvalue,
                "pvalue": part.pvalue,
                "findings": findings_facts(part.findings),
            }
            for part in (result.together, *result.classes)
        ],
    }


def detectable(sample, **settings):
    found = it.detectable(sample, **SEEDED | settings)
    regions = [[region.share, region.up, region.down] for region in found.regions]
    return {"regions": regions, "worst": found.worst.shift, "simulated": found.simulated}


def sample_size(sample, bias, **settings):
    found = it.sample_size(sample, bias, **SEEDED, **settings)
    return {"rows": found.rows, "by_region": list(found.by_region.values())}


def bias(sample, **settings):
    return bias_facts(it.local_bias(sample, **SEEDED | settings))


def bias_elsewhere(sample, places):
    """A bias that is known already, at other places, and the paper's cubics through it."""
    found = it.local_bias(sample, **SEEDED)
    age, region = (found.points.columns[sample.names.index(name)] for name in ("age", "region"))
    cubics = []
    for code in range(len(region.levels)):
        rows = np.flatnonzero((region.values == code) & found.known)
        x, values = age.values[rows], found.values[rows]
        cubics.append(digest(np.polynomial.Polynomial.fit(x, values, 3)(x)))
    return {"at": bias_facts(found.at(places)), "cubic": cubics}


def bias_facts(found):
    return {
        "values": digest(found.values),
        "stderr": digest(found.stderr),
        "size": digest(found.size),
        "witness": digest(found.witness),
        "null_band": band_facts(found.null_band),
        "band": band_facts(found.band),
        "pvalues": digest(found.pvalues),
        "flagged": int(found.flagged.sum()),
    }


def band_facts(band):
    return [digest(band.lower), digest(band.upper)]


def groups_of(sample, *names, **settings):
    return [
        {
            "rows": [group.rows, group.size, group.share],
            "rates": [group.predicted, group.observed],
            "bias": [group.bias, group.lower, group.upper],
            "own_pvalue": group.unadjusted_pvalue,
            "pvalue": group.pvalue,
        }
        for group in it.bias_groups(sample, *names, **SEEDED, **settings)
    ]


def slices_of(sample, **settings):
    table = it.bias_slices(sample, **SEEDED | settings)
    found = [
        {
            "rows": [part.rows, part.share],
            "rates": [part.predicted, part.observed],
            "bias": [part.bias, part.lower, part.upper, part.estimate, part.impact],
            "own_pvalue": part.unadjusted_pvalue,
            "pvalue": part.pvalue,
        }
        for part in table
    ]
    return {"confirmed": len(table.confirmed), "slices": found}


def curve(sample, name, by=(), **settings):
    return [
        {
            "rows": part.rows,
            "grid": digest(part.grid),
            "values": digest(part.values),
            "size": digest(part.size),
            "pvalues": digest(part.pvalues),
            "band": band_facts(part.band),
            "null_band": band_facts(part.null_band),
        }
        for part in it.bias_curve(sample, name, by, points=12, **SEEDED, **settings).parts
    ]


def bias_map(sample, first, second, **settings):
    found = it.bias_map(sample, first, second, points=8, **SEEDED, **settings)
    return {
        "shape": list(found.values.shape),
        "values": digest(found.values),
        "size": digest(found.size),
        "pvalues": digest(found.pvalues),
        "band": band_facts(found.bias.band),
    }


def evaluated(task, sample, **settings):
    return task_facts(task.evaluate(sample, **SEEDED, **settings))


def task_facts(result):
    return {
        "estimates": [result.plugin, result.from_labels],
        "bias": [result.bias, result.lower, result.upper, result.stderr],
        "own_pvalue": result.unadjusted_pvalue,
        "pvalue": result.pvalue,
    }


def estimated(task, population, labelled, **settings):
    found = task.estimate(population, labelled=labelled, **settings)
    ways = found.plugin, found.recalibrated, found.prediction_powered, found.labelled
    numbers = [[way.value, way.stderr, way.lower, way.upper] for way in ways]
    return {"ways": numbers, "power": found.lam}


def reliability(sample, bins=None, **settings):
    found = scores.reliability_curve(sample, bins, **settings)
    parts = found.predicted, found.observed, found.lower, found.upper, found.rows, found.share
    return [part.tolist() for part in parts]


def errors_in_bins(sample, bins):
    return [scores.ece(sample, bins), scores.mce(sample, bins)]


def repaired(method, sample, others):
    told = method.fit(sample).predict(others.p, others)
    return {"first": told[:20], "all": digest(told)}


def repaired_classifier(X, y):
    model = recalibrate.RecalibratedClassifier(LogisticRegression(), recalibrate.Beta(), on=[0])
    return digest(model.fit(X, y).predict_proba(X)[:, 1])


def repairs_compared(calibration, sample):
    methods = [recalibrate.Isotonic(), recalibrate.Local()]
    return [
        {
            "scores": [repair.brier, repair.log_loss, repair.ece, repair.mce],
            "klce2": [repair.klce2, repair.null_sd],
            "pvalue": repair.pvalue,
            "slice": None if repair.slice is None else [repair.slice.bias, repair.slice.rows],
        }
        for repair in recalibrate.compare(methods, calibration, sample, **SEEDED, **ALLOWED)
    ]


def compared(models, wanted=(), **settings):
    found = it.compare(models, wanted, **SEEDED, **settings)
    reports = [
        {
            "scores": [m.accuracy, m.brier, m.log_loss, m.ece, m.smooth_ece],
            "test": adaptive_facts(m.test),
            "tasks": [task_facts(task) for task in m.tasks],
        }
        for m in found.models
    ]
    return {
        "models": reports,
        "differences": [[d.value, d.lower, d.upper] for d in found.differences],
    }


@cache
def audited(title):
    """Every number of an audit by its path."""
    wanted = ["mean(age)", TASKS["gap"].matters_at(2.0), 'prevalence(region == "south")']
    sample = town(**VARIANTS[title])
    audit = it.audit(sample, wanted, charts=False, progress=False, **SEEDED, **ALLOWED, **MATTERS)
    found = audit.to_dict()
    found["diagnosis"] = found.pop("parts")[0]["diagnosis"]
    for later in ("evidence", "withheld", "robustness"):
        del found[later]
    del found["overall"]["mean"], found["overall"]["statistic"]
    del found["test"]["checks"]
    earlier = {"overall": "reliance", "test": "competency", "missed": "confidence"}
    return numbers_in({earlier.get(name, name): part for name, part in found.items()})


def designs():
    """All simulated data by name; those without a name of their own by what is wrong with them."""
    apart = ("calibrated", "local_alternative", "credit_book")
    names = [name for name in simulate.__all__ if name.islower() and name not in apart]
    return {
        **{name: getattr(simulate, name)(rng=SEED) for name in names},
        "trustworthy": simulate.survey(200, rng=SEED, trustworthy=True),
        **{
            name: simulate.local_alternative(name, 200, rng=SEED, strength=0.5)
            for name in simulate.ALTERNATIVES
        },
    }


# --- data -----------------------------------------------------------------------------------------

VARIANTS = {"plain": {}, "weighted": {"weighted": True}, "clustered": {"clustered": True}}


def rows_of_town(n, seed):
    """Covariates, predictions, labels of a truth that differs by age and region, weights."""
    rng = np.random.default_rng([2025, seed])
    x = {
        "income": np.round(rng.lognormal(10.8, 0.5, n), -2),
        "age": rng.integers(20, 85, n),
        "region": rng.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2]),
    }
    slope = 0.03 * (x["age"] - 52)
    known = 0.2 + 1.1 * (np.log(x["income"]) - 10.8) + slope
    wrong = 2 * slope * np.select([x["region"] == "south", x["region"] == "west"], [1, -1], 0)
    p, truth = (1 / (1 + np.exp(-z)) for z in (known, known + wrong))
    return x, p, rng.random(n) < truth, rng.exponential(size=n) + 0.2


@cache
def town(n=400, seed=0, *, weighted=False, clustered=False):
    """A number, a count and a category."""
    x, p, y, weights = rows_of_town(n, seed)
    units = np.arange(n) // 4 if clustered else None
    return Sample(y, p, x, weights=weights if weighted else None, cluster=units)


@cache
def gappy(n=300):
    """A number with missing values, a truth value and a date beside the town's covariates."""
    x, p, y, weights = rows_of_town(n, seed=3)
    rng = np.random.default_rng(4)
    more = {
        "lab": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        "urban": rng.random(n) < 0.4,
        "day": np.datetime64("2026-01-01") + rng.integers(0, 200, n),
    }
    return Sample(y, p, x | more, weights=weights, missing="level")


def unlabelled(n=500):
    x, p, _, weights = rows_of_town(n, seed=5)
    return Population(p, x, weights=weights)


def two_models(**variant):
    """The town's model, and one that leans to the middle."""
    sample = town(**variant)
    return {"first": sample, "second": with_other_predictions(sample, 0.1 + 0.8 * sample.p)}


# --- numbers as they are kept ---------------------------------------------------------------------


def digest(values):
    """A long array in a few numbers, of which one knows the order."""
    flat = np.asarray(values, dtype=float).ravel()
    known = np.flatnonzero(np.isfinite(flat))
    kept = flat[known]
    return {
        "size": [flat.size, known.size],
        "sums": [kept.sum(), kept @ kept, kept @ (known + 1.0) / flat.size],
        "ends": [kept.min(), kept.max()] if kept.size else [],
        "first": flat[:3],
    }


def plain(value):
    """As JSON gives it back; NaN and infinity, which it has no words for, as text."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(part) for part in value]
    value = value.item() if isinstance(value, np.generic) else value
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def numbers_in(value, path=""):
    """Every number of a nested value by its path; truth values, texts and times are left out."""
    if isinstance(value, dict):
        parts = [(key, part) for key, part in value.items() if key not in UNSHARED]
    elif isinstance(value, list | tuple):
        parts = list(enumerate(value))
    else:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return {path: value} if is_number else {}
    return {
        place: number
        for key, part in parts
        for place, number in numbers_in(part, f"{path}.{key}".strip(".")).items()
    }


def differences(found, kept, draws, path=""):
    """Where two nested values differ by more than rounding, in words."""
    if isinstance(found, list) and isinstance(kept, list):
        found, kept = (dict(enumerate(side)) for side in (found, kept))
    if isinstance(found, dict) and isinstance(kept, dict):
        told = [f"{path}: {key!r} is new" for key in found if key not in kept]
        told += [f"{path}: {key!r} is lost" for key in kept if key not in found]
        for key in (key for key in kept if key in found):
            told += differences(found[key], kept[key], draws, f"{path}.{key}".strip("."))
        return told
    same = found == kept or close(found, kept, path)
    same = same or ("pvalue" in path and a_few_draws_apart(found, kept, draws))
    same = same or ("exceedance" in path and a_few_draws_apart(found, kept, draws - 1))
    return [] if same else [f"{path}: {found!r}, recorded {kept!r}"]


def are_numbers(*values):
    return all(type(value) in (int, float) for value in values)


def close(found, kept, path=""):
    allowed = OF_LOW_RANK if any(word in path for word in LOW_RANK) else ROUNDED
    if "pvalues.sums" in path:
        allowed = OF_MANY_PVALUES
    return are_numbers(found, kept) and math.isclose(found, kept, **allowed)


def a_few_draws_apart(found, kept, draws):
    """Whether both are p-values that count draws, by nearly the same count."""
    if not are_numbers(found, kept):
        return False
    counts = [value * (1 + draws) for value in (found, kept)]
    are_counts = all(
        abs(count - round(count)) < 1e-5 and 0 <= round(count) <= 1 + draws for count in counts
    )
    return are_counts and abs(round(counts[0]) - round(counts[1])) <= STEPS


def unmatched(found, kept, draws):
    """Numbers of one ascending list that the other lacks, in words."""
    new, lost, found, kept = [], [], list(found), list(kept)
    while found and kept:
        if close(found[-1], kept[-1]):
            found.pop()
            kept.pop()
        elif found[-1] > kept[-1]:
            new.append(found.pop())
        else:
            lost.append(kept.pop())
    new, lost = new + found[::-1], lost + kept[::-1]
    for number in tuple(new):
        near = [other for other in lost if a_few_draws_apart(number, other, draws)]
        if near:
            new.remove(number)
            lost.remove(max(near))
    return [*(f"{n!r} is new" for n in new), *(f"{n!r} is lost" for n in lost)]


# --- cases ----------------------------------------------------------------------------------------

CASES = {}


def case(function):
    CASES[function.__name__.removeprefix("record_")] = function
    return function


@case
def record_statistic():
    """KLCE^2 and its standard deviation if the model is right."""
    found = {"missing values": [klce2(gappy()), null_sd(gappy())]}
    for title, (kind, kernel) in product(("plain", "weighted"), KERNELS.items()):
        sample = town(**VARIANTS[title])
        for name, engine in ENGINES.items():
            found[f"{title}, {kind}, {name}"] = [
                klce2(sample, kernel, engine=engine),
                null_sd(sample, kernel, engine=engine),
            ]
        found[f"{title}, {kind}, biased"] = klce2(sample, kernel, biased=True)
    return found


@case
def record_statistic_of_every_kernel():
    return {name: klce2(town(200), on_age(kernel)) for name, kernel in ON_AGE.items()}


@case
def record_nulls():
    """Every null with one kernel, on every engine that takes it."""
    found = {}
    for (name, engine), (kind, kernel) in product(ENGINES.items(), KERNELS.items()):
        whole = NULLS_OF_ALL_ROWS if name == "tiles" else {}
        of_variant = {
            "plain": ROWWISE_NULLS | BOUNDS | whole,
            "weighted": ROWWISE_NULLS | whole,
            "clustered": ROWWISE_NULLS,
        }
        for title, chosen in of_variant.items():
            for null_name, null in chosen.items():
                told = one_kernel(town(150, **VARIANTS[title]), kernel, null, engine=engine)
                found[f"{null_name}, {title}, {kind}, {name}"] = told
    return found


@case
def record_adaptive_test():
    """The default test over its dictionary, and one over places of one's own."""
    return {
        **{title: adaptive(town(**variant)) for title, variant in VARIANTS.items()},
        **{name: adaptive(town(weighted=True), engine=engine) for name, engine in ENGINES.items()},
        "missing values": adaptive(gappy()),
        "no covariates": adaptive(only(town())),
        "own places": adaptive(town(), OWN_PLACES),
    }


@case
def record_files():
    """Rows that stay in a Parquet file, in several row groups."""
    x, p, y, weights = rows_of_town(700, seed=1)
    rows = pa.table({"y": y, "p": p, "w": weights, **x})
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "town.parquet"
        pa.parquet.write_table(rows, path, row_group_size=200)
        for title, own in (("plain", None), ("weighted", "w")):
            scan = scanned(path, list(x), own)
            found[title] = {
                "test": adaptive(scan),
                "nulls": [one_kernel(scan, EXPLICIT, null) for null in ROWWISE_NULLS.values()],
                "statistic": [klce2(scan), klce2(scan, EXPLICIT), null_sd(scan)],
                "scores": [score(scan) for score in SCORES],
                "loaded": [scan.n, klce2(scan.load())],
            }
    return found


@case
def record_multiclass():
    rng = np.random.default_rng(6)
    x = rng.normal(size=300)
    p = np.exp(np.column_stack([x, -x, 0 * x]))
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random(300)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    p[:, 0] += 0.15 * (x > 0)
    p /= p.sum(axis=1, keepdims=True)
    weights = rng.exponential(size=300)
    return {"plain": multiclass(y, p, x), "weighted": multiclass(y, p, x, weights=weights)}


@case
def record_planning():
    return {
        "detectable": detectable(town(), simulations=0),
        "simulated": detectable(only(town(), "region"), simulations=50, **ALLOWED),
        "weighted": detectable(only(town(weighted=True), "region"), simulations=50),
        "sample size": sample_size(town(150), 0.1),
        "everywhere": sample_size(town(), 0.05, where="everywhere", power=0.9, **ALLOWED),
    }


@case
def record_local_bias():
    return {
        **{title: bias(town(**variant), **ALLOWED) for title, variant in VARIANTS.items()},
        "missing values": bias(gappy(), min_neighbours=8),
        "the paper's": bias(town(), kernel=EXPLICIT, cut=0.0),
        "other points": bias(town(), at=unlabelled(60)),
        "elsewhere": bias_elsewhere(town(), unlabelled(60)),
    }


@case
def record_groups():
    alone = {"simultaneous": False, "crossings": False}
    return {
        **{
            title: groups_of(town(**v), "region", "age", **ALLOWED) for title, v in VARIANTS.items()
        },
        "each alone": groups_of(gappy(), "lab", "urban", "prediction", **alone),
        "pooled": groups_of(town(), "region", pool=150),
    }


@case
def record_slices():
    return {
        **{title: slices_of(town(800, **v), **ALLOWED) for title, v in VARIANTS.items()},
        "missing values": slices_of(gappy(), max_slices=4),
    }


@case
def record_curves():
    return {
        **{title: curve(town(**v), "age", "region", **ALLOWED) for title, v in VARIANTS.items()},
        "prediction": curve(town(), "prediction"),
        "width": curve(gappy(), "lab", "urban", width=0.5, min_neighbours=5),
    }


@case
def record_maps():
    return {
        **{title: bias_map(town(**v), "age", "income", **ALLOWED) for title, v in VARIANTS.items()},
        "levels": bias_map(town(), "age", "region"),
        "prediction": bias_map(town(), "prediction", "region"),
    }


@case
def record_tasks_on_a_sample():
    found = {
        f"{name}, {title}": evaluated(task, town(**variant), **ALLOWED)
        for (name, task), (title, variant) in product(TASKS.items(), VARIANTS.items())
    }
    return found | {name: evaluated(task, gappy()) for name, task in TASKS_WITH_GAPS.items()}


@case
def record_tasks_on_a_population():
    many = unlabelled()
    found = {name: estimated(task, many, town()) for name, task in TASKS.items()}
    others = {title: town(**variant) for title, variant in VARIANTS.items()}
    for title, sample in (others | {"age alone": only(town(), "age")}).items():
        found[f"mean, {title}"] = estimated(TASKS["mean"], many, sample, **ALLOWED)
    return found


@case
def record_scores():
    found = {}
    for title in ("plain", "weighted"):
        sample = town(**VARIANTS[title])
        found[title] = {
            "scores": [score(sample) for score in SCORES],
            "narrow": reliability(sample, confidence=0.8),
            "bins": {
                n: [errors_in_bins(sample, b), reliability(sample, b)] for n, b in BINS.items()
            },
        }
    return found


@case
def record_repairs():
    """Every method, learned from some rows and applied to others."""
    found = {
        f"{name}, {title}": repaired(method, town(**VARIANTS[title]), town(300, seed=2))
        for (name, method), title in product(REPAIRS.items(), ("plain", "weighted"))
    }
    found["local, missing values"] = repaired(REPAIRS["local"], gappy(), gappy())
    rng = np.random.default_rng(14)
    X = rng.normal(size=(400, 3))
    y = rng.random(400) < 1 / (1 + np.exp(1 - X[:, 0] ** 2))
    return found | {"classifier": repaired_classifier(X, y)}


@case
def record_repairs_compared():
    return repairs_compared(town(seed=2), town())


@case
def record_models_compared():
    wanted = ["mean(age)", TASKS["gap"]]
    found = {title: compared(two_models(**v), wanted, **ALLOWED) for title, v in VARIANTS.items()}
    return found | {"on age": compared(two_models(), on="age")}


@case
def record_designs():
    return {
        name: [digest(made.sample.y), digest(made.sample.p), digest(made.truth)]
        for name, made in designs().items()
        if hasattr(made.sample, "y")  # of several classes there are codes
    }


@case
def record_many_rows():
    """More than the package takes one by one: low rank, some points in place of all rows."""
    sample, few = town(6_000, seed=5), {"draws": FEW_DRAWS}
    return {
        "statistic": [klce2(sample), null_sd(sample)],
        "test": adaptive(sample, **few),
        "one kernel": [one_kernel(sample, kernel, **few) for kernel in KERNELS.values()],
        "local bias": bias(sample, **few),
        "slices": slices_of(sample, **few),
    }


@case
def record_audit_by_path():
    return {title: audited(title) for title in VARIANTS}


@case
def record_audit_by_size():
    """The same numbers without their names, which may change."""
    return {
        title: sorted(float(f"{number:.{DIGITS}g}") for number in audited(title).values())
        for title in VARIANTS
    }


# --- the comparison -------------------------------------------------------------------------------


def numbers_of(name):
    """One case as JSON gives it back; what it warns of is for other tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plain(CASES[name]())


@cache
def recorded():
    return json.loads(KEPT.read_text(encoding="utf-8"))


def moved(name, found, kept, part=""):
    """Where one case, or a part of it, differs from the recorded one, in words."""
    draws = FEW_DRAWS if name == "many_rows" else DRAWS
    if name == "audit_by_size":
        return unmatched(found, kept, draws)
    return differences(found, kept, draws, f"{name}.{part}".strip("."))


def both_sides(name):
    return numbers_of(name), recorded()[name]


def in_words(told):
    return "\n".join([f"{len(told)} differences", *told[:20]])


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("audit")])
def test_numbers_are_as_recorded(name):
    told = moved(name, numbers_of(name), recorded()[name])
    assert not told, in_words(told)


@pytest.mark.parametrize("title", VARIANTS)
def test_an_audit_has_the_recorded_numbers_whatever_they_are_called(title):
    told = moved("audit_by_size", *(by[title] for by in both_sides("audit_by_size")))
    assert not told, in_words(told)


@pytest.mark.parametrize("title", VARIANTS)
def test_an_audit_has_the_recorded_numbers_where_they_have_their_names(title):
    """A path that one side lacks was renamed: the test above knows its number."""
    found, kept = (by[title] for by in both_sides("audit_by_path"))
    shared = found.keys() & kept.keys()
    assert len(shared) > len(kept) / 2
    told = moved(
        "audit_by_path", *({path: side[path] for path in shared} for side in (found, kept))
    )
    assert not told, in_words(told)


def test_the_comparison_tells_rounding_from_a_change():
    rounded = [
        ({"value": 1.0000005}, {"value": 1.0}),
        ({"value": 1e-17}, {"value": 0.0}),
        ({"pvalue": 0.03}, {"pvalue": 0.05}),
        ({"pvalue": 0.1234567}, {"pvalue": 0.12345671}),
        ({"exceedance": 3 / 99}, {"exceedance": 2 / 99}),
        ({"factor": [1.00005]}, {"factor": [1.0]}),
    ]
    changed = [
        ({"value": 1.000002}, {"value": 1.0}),
        ({"value": 0.03}, {"value": 0.05}),
        ({"pvalue": 0.02}, {"pvalue": 0.05}),
        ({"pvalue": 0.1234567}, {"pvalue": 0.1234667}),
        ({"pvalue": "nan"}, {"pvalue": 0.5}),
        ({"factor": [1.002]}, {"factor": [1.0]}),
        ({"other": 1.0}, {"value": 1.0}),
        ({"values": [1.0, 2.0]}, {"values": [1.0]}),
    ]
    assert not any(differences(*pair, DRAWS) for pair in rounded)
    assert all(differences(*pair, DRAWS) for pair in changed)
    assert unmatched([0.02, 0.5, 3.0], [0.04, 0.5, 3.0000001], DRAWS) == []
    assert unmatched([0.02, 0.5], [0.06, 0.5], DRAWS) == ["0.02 is new", "0.06 is lost"]


def test_every_case_is_recorded_and_no_other():
    assert recorded().keys() == CASES.keys()


def merged(name, found, kept, word):
    """The recorded parts of a case that have not moved, and the others as they are now."""
    if not isinstance(found, dict) or not isinstance(kept, dict):
        return found if kept is None or (word in name and moved(name, found, kept)) else kept
    fresh = [
        key
        for key in found
        if key not in kept or (word in f"{name}: {key}" and moved(name, found[key], kept[key], key))
    ]
    for key in fresh:
        print(f"{name}: {key!r} is written again")
    return {key: found[key] if key in fresh else kept[key] for key in found}


def record(word=""):
    before = recorded() if KEPT.exists() else {}
    found = {name: merged(name, numbers_of(name), before.get(name), word) for name in CASES}
    lines = [f"{json.dumps(name)}: {json.dumps(found[name], allow_nan=False)}" for name in CASES]
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"wrote {KEPT}: {len(numbers_in(found)):,} numbers in {len(found)} cases")


if __name__ == "__main__":
    if sys.argv[1:2] != ["--record"] or len(sys.argv) > 3:
        sys.exit(f"usage: python {sys.argv[0]} --record [WORD]")
    record(*sys.argv[2:])
