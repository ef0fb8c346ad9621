"""Data with known truth, for the demo, the docs, the tests and the benchmarks.

Every design takes `rng`: a whole number gives the same rows in each call, None others each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

from itrust._core import AnyArray, FloatArray, InputError, Rng, as_generator, place_of
from itrust.data import MulticlassPopulation, MulticlassSample, Population, Sample

__all__ = [
    "ALTERNATIVES",
    "CreditBook",
    "ImputedGroups",
    "Simulated",
    "calibrated",
    "credit_book",
    "imputed_groups",
    "local_alternative",
    "normal_covariates",
    "opposite_groups",
    "outcome_weights",
    "papers_level_design",
    "papers_power_design",
    "rare_events",
    "repeated_units",
    "survey",
    "tight_clusters",
    "uniform_shift",
    "weighted_rows",
]
__dir__ = __all__.copy  # what tab completion offers


@dataclass(frozen=True, eq=False)
class Simulated:
    """A sample whose true probabilities are known.

    Attributes
    ----------
    sample : Sample
        Labels, predictions and covariates.
    truth : (n,) array of float
        P(y = 1 | x, f) of each row.
    """

    sample: Sample
    truth: FloatArray

    @property
    def bias(self) -> FloatArray:
        """True minus predicted probability of each row; positive: the model underestimates."""
        return self.truth - self.sample.p


def survey(n: int = 2_000, rng: Rng = None, *, trustworthy: bool = False) -> Simulated:
    """Simulate home ownership in a made-up town: income, age and region predict it.

    The model knows income and age, but not that age counts double in the south and not at all
    in the west: it underestimates the old in the south and the young in the west, overestimates
    the others there, and is calibrated in the north. Averaged over the town it is nearly
    calibrated.

    Parameters
    ----------
    n : int
        Number of households.
    rng : int, numpy Generator or None
        Draws households and labels; None: other ones in each call.
    trustworthy : bool
        Whether the model predicts the true probabilities; by default it has the bias above.

    Returns
    -------
    Simulated
        With the covariates income (in dollars), age (in years) and region.

    Examples
    --------
    >>> import itrust as it
    >>> town = it.simulate.survey(1_000, rng=0)
    >>> town.sample.names
    ('income', 'age', 'region')
    """
    random = as_generator(rng)
    income = random.lognormal(10.8, 0.5, n)
    age = random.integers(20, 85, n)
    region = random.choice(["north", "south", "west"], n, p=[0.4, 0.3, 0.3])
    slope = 0.03 * (age - 52)
    known = 0.3 + 1.2 * (np.log(income) - 10.8) + slope
    truth = expit(known + slope * np.select([region == "south", region == "west"], [1, -1], 0))
    model = truth if trustworthy else expit(known)
    x = {"income": np.round(income, -2), "age": age, "region": region}
    return Simulated(Sample(random.random(n) < truth, model, x), truth)


def calibrated(x: object, p: FloatArray, rng: Rng = None, **columns: Any) -> Simulated:
    """Draw labels from the predictions themselves: a model that is calibrated everywhere.

    Parameters
    ----------
    x : frame, mapping or array
        Covariates, as `Sample` takes them.
    p : (n,) array of float
        Predictions, which are also the truth.
    rng : int, numpy Generator or None
        Draws the labels; None: other labels in each call.
    **columns : column
        What else `Sample` takes, such as `weights` and `cluster`.

    Returns
    -------
    Simulated
        Its bias is 0 in every row.
    """
    y = as_generator(rng).random(len(p)) < p
    return Simulated(Sample(y, p, x, **columns), np.asarray(p, dtype=float))


def papers_level_design(n: int = 50, rng: Rng = None) -> Simulated:
    """Simulate the paper's type-I design: x normal, f = sigmoid(-1 + x / 2), labels from f.

    Parameters
    ----------
    n : int
        Number of rows, 50 in the paper.
    rng : int, numpy Generator or None
        Draws x and the labels; None: anew in each call.

    Returns
    -------
    Simulated
        One covariate; the model is calibrated.
    """
    random = as_generator(rng)
    x = random.normal(size=n)
    return calibrated(x, expit(-1 + x / 2), random)


def papers_power_design(n: int = 500, d: int = 10, rng: Rng = None) -> Simulated:
    """Simulate the paper's type-II design: truth sigmoid(sum of d normals), the model lacks one.

    Parameters
    ----------
    n : int
        Number of rows.
    d : int
        Number of covariates; the model does not know the last one.
    rng : int, numpy Generator or None
        Draws covariates and labels; None: anew in each call.

    Returns
    -------
    Simulated
        A model that is miscalibrated along the last covariate.
    """
    random = as_generator(rng)
    x = random.normal(size=(n, d))
    truth = expit(x.sum(axis=1))
    return Simulated(Sample(random.random(n) < truth, expit(x[:, :-1].sum(axis=1)), x), truth)


def _alternative_rows(
    n: int, random: np.random.Generator
) -> tuple[dict[str, AnyArray], FloatArray]:
    """Four numbers, two categories, and a model of some of them."""
    x: dict[str, AnyArray] = {name: random.normal(size=n) for name in "abcd"}
    x["group"] = random.choice(["w", "x", "y", "z"], n, p=[0.5, 0.3, 0.15, 0.05])
    x["sex"] = random.choice(["f", "m"], n)
    return x, expit(0.8 * x["a"] - 0.5 * x["b"] + 0.3 * (x["group"] == "x"))


ALTERNATIVES: dict[str, Callable[[dict[str, AnyArray], FloatArray], AnyArray]] = {
    "shift": lambda _, p: np.full(p.size, 0.08),
    "calibration slope": lambda _, p: expit(1.6 * logit(p)) - p,
    "sign flip in a": lambda x, _: 0.12 * np.sign(x["a"]),
    "bump in c": lambda x, _: 0.4 * np.exp(-0.5 * ((x["c"] - 0.8) / 0.15) ** 2),
    "interaction of c and d": lambda x, _: 0.14 * np.sign(x["c"] * x["d"]),
    "one small group": lambda x, _: 0.55 * ((x["group"] == "z") & (x["sex"] == "m")),
    "both ends of c": lambda x, _: 0.18 * (np.abs(x["c"]) > 1) - 0.09,
    "waves in c": lambda x, _: 0.16 * np.sign(np.sin(5 * x["c"])),
    "c against the prediction": lambda x, p: 0.14 * np.sign(x["c"]) * np.sign(p - 0.5),
    "spot in c and d": lambda x, _: 0.4 * ((x["c"] - 0.5) ** 2 + (x["d"] - 0.5) ** 2 < 0.4),
    "interaction of a, c and d": lambda x, _: 0.4 * np.sign(x["a"] * x["c"] * x["d"]),
    "one level": lambda x, _: 0.22 * (x["group"] == "y"),
    "slope within a group": lambda x, _: 0.25 * np.sign(x["c"]) * (x["group"] == "x"),
}


def local_alternative(
    name: str, n: int = 1_000, rng: Rng = None, *, strength: float = 1.0
) -> Simulated:
    """Simulate a model that is miscalibrated in one of the ways named in `ALTERNATIVES`.

    The covariates are four normal numbers and two categories.

    Parameters
    ----------
    name : str
        Which bias: a key of `ALTERNATIVES`.
    n : int
        Number of rows.
    rng : int, numpy Generator or None
        Draws covariates and labels; with None they differ from call to call.
    strength : float
        Multiplies the bias: 0 gives a calibrated model, 1 (the default) the bias of the studies.

    Returns
    -------
    Simulated
        Its truth is kept within [.002, .998].

    Examples
    --------
    >>> local_alternative("one small group", 500, rng=0).sample.names
    ('a', 'b', 'c', 'd', 'group', 'sex')
    """
    place_of(name, [*ALTERNATIVES], "there is no alternative {value}; {guess}", argument="name")
    random = as_generator(rng)
    x, p = _alternative_rows(n, random)
    truth = np.clip(p + strength * ALTERNATIVES[name](x, p), 0.002, 0.998)
    return Simulated(Sample(random.random(n) < truth, p, x), truth)


def normal_covariates(n: int = 200, d: int = 5, rng: Rng = None) -> Simulated:
    """Simulate a calibrated model of d normal numbers that uses half of them.

    Parameters
    ----------
    n, d : int
        How many rows, and how many covariates.
    rng : int, numpy Generator or None
        Randomness of both; None: new draws every time.

    Returns
    -------
    Simulated
        Labels are drawn from the predictions.
    """
    random = as_generator(rng)
    x = random.normal(size=(n, d))
    return calibrated(x, expit(x[:, : -(-d // 2)].sum(axis=1)), random)


def tight_clusters(n: int = 500, rng: Rng = None) -> Simulated:
    """Simulate a calibrated model whose variance and density go together.

    A fifth of the rows sit in ten tight clusters (spread .001, one unit apart) at f = .5, the
    rest far away and apart at f = .01. Resampled residuals mislead a test here.

    Parameters
    ----------
    n : int
        Number of rows, clusters and others together.
    rng : int, numpy Generator or None
        Places the rows and draws the labels; None: anew in each call.

    Returns
    -------
    Simulated
        One covariate.
    """
    random = as_generator(rng)
    tight = n // 5
    inside = random.integers(10, size=tight) + random.normal(0, 0.001, tight)
    outside = 100.0 + 10.0 * np.arange(n - tight)
    p = np.concatenate([np.full(tight, 0.5), np.full(n - tight, 0.01)])
    return calibrated(np.concatenate([inside, outside]), p, random)


def rare_events(n: int = 500, rng: Rng = None) -> Simulated:
    """Simulate a calibrated model of an outcome that happens to one row in fifty.

    Parameters
    ----------
    n : int
        Number of rows; about n / 50 labels are positive, so a sample of 500 rows has ten of them
        to learn from.
    rng : int, numpy Generator or None
        Source of the draws; None takes a new one.

    Returns
    -------
    Simulated
        Two covariates, of which the model uses one.
    """
    random = as_generator(rng)
    x = random.normal(size=(n, 2))
    return calibrated(x, expit(logit(0.02) + 0.5 * x[:, 0]), random)


def weighted_rows(n: int = 300, rng: Rng = None) -> Simulated:
    """Simulate a calibrated model with survey weights that depend on a covariate.

    Parameters
    ----------
    n : int
        Size of the survey.
    rng : int, numpy Generator or None
        Draws the survey; None: another survey in each call.

    Returns
    -------
    Simulated
        Its sample has weights, from the second of two covariates.
    """
    random = as_generator(rng)
    x = random.normal(size=(n, 2))
    return calibrated(x, expit(x[:, 0]), random, weights=np.exp(0.8 * x[:, 1]))


def uniform_shift(n: int = 300, shift: float = 0.12, rng: Rng = None) -> Simulated:
    """Simulate a model that is too low by the same amount everywhere: f uniform on (.05, .85).

    Parameters
    ----------
    n : int
        Number of rows to simulate.
    shift : float
        By how much the truth exceeds the prediction, at most .15.
    rng : int, numpy Generator or None
        Draws predictions, a covariate that plays no part, and labels; None: anew in each call.

    Returns
    -------
    Simulated
        Its bias is `shift` in every row.
    """
    random = as_generator(rng)
    p = random.uniform(0.05, 0.85, n)
    truth = p + shift
    return Simulated(Sample(random.random(n) < truth, p, random.normal(size=n)), truth)


def opposite_groups(n: int = 2_000, rng: Rng = None, *, size: float = 0.6) -> Simulated:
    """Simulate a model that is calibrated at every prediction, and off in every group.

    Half of the rows are young, whatever the prediction. For them the truth is p - size p (1 - p),
    for the old p + size p (1 - p): averaged over both it is p. So no statistic of labels and
    predictions alone can tell the model from a calibrated one.

    Parameters
    ----------
    n : int
        Number of rows.
    rng : int, numpy Generator or None
        Draws predictions, ages and labels; None: anew in each call.
    size : float
        How far groups are off, between 0 (not at all) and 1; 0.6 by default, which is 0.15 at a
        prediction of 1/2.

    Returns
    -------
    Simulated
        With the covariate age, "young" or "old".

    Examples
    --------
    >>> import itrust as it
    >>> found = opposite_groups(4_000, rng=0)
    >>> it.scores.validation(found.sample, draws=199, rng=0).rejected(0.05)
    ()
    >>> it.klce_test(found.sample, draws=199, rng=0).pvalue
    0.005
    """
    if not 0 <= size <= 1:
        raise InputError(
            "{argument} must lie between 0 and 1, not {value}", argument="size", value=size
        )
    random = as_generator(rng)
    p = expit(random.normal(-1.0, 1.2, n))
    young = random.random(n) < 0.5
    truth = p + np.where(young, -size, size) * p * (1 - p)
    x = {"age": np.where(young, "young", "old")}
    return Simulated(Sample(random.random(n) < truth, p, x), truth)


def repeated_units(
    units: int = 60, size: int = 5, share: float = 0.5, rng: Rng = None
) -> Simulated:
    """Simulate a calibrated model on units that are measured repeatedly and share x and f.

    Every row takes its unit's label with probability `share` and its own otherwise, so rows
    are not independent. The sample does not name the units; pass `cluster=` to do so.

    Parameters
    ----------
    units : int
        Number of units, such as persons.
    size : int
        Rows of each unit.
    share : float
        How often a row has the label of its unit: 0 makes rows independent.
    rng : int, numpy Generator or None
        Draws units and labels; None: other ones in each call.

    Returns
    -------
    Simulated
        units * size rows, those of a unit one after the other.
    """
    random = as_generator(rng)
    x = np.repeat(random.normal(size=units), size)
    p = expit(x)
    common = np.repeat(random.random(units), size)
    uniform = np.where(random.random(x.size) < share, common, random.random(x.size))
    return Simulated(Sample(uniform < p, p, x), p)


def outcome_weights(n: int = 300, rng: Rng = None) -> Simulated:
    """Simulate a calibrated model whose weights were built from the outcome.

    That breaks the exactness of every test, for weights must not depend on the label.

    Parameters
    ----------
    n : int
        How many rows to draw.
    rng : int, numpy Generator or None
        What they are drawn from; None: a new source in each call.

    Returns
    -------
    Simulated
        Positive rows have the weight 1.3, the others 1.
    """
    random = as_generator(rng)
    x = random.normal(size=n)
    p = expit(x)
    y = random.random(n) < p
    return Simulated(Sample(y, p, x, weights=np.where(y, 1.3, 1.0)), p)


@dataclass(frozen=True, eq=False)
class CreditBook(Simulated):
    """Loans that were granted, with what is known about everybody who applied.

    Attributes
    ----------
    sample : Sample
        The loans that were granted: whether they defaulted, predictions and covariates.
    truth : (n,) array of float
        P(y = 1 | x) of each loan among all who applied.
    among_approved : (n,) array of float
        The same among those who were approved: what labels follow.
    applicants : Population
        Everybody who applied, with predictions and without labels.
    rate : float
        Share of all who applied that would default; nobody could observe it.
    """

    among_approved: FloatArray
    applicants: Population
    rate: float


EMPLOYMENT = ("permanent", "temporary", "self-employed")
BY_EMPLOYMENT = (-0.35, 0.25, 0.35)  # log odds of default


def credit_book(
    n: int = 6_000, rng: Rng = None, *, selection: float = 1.3, understated: float = 1.0
) -> CreditBook:
    """Simulate loans of which only those have labels that somebody approved.

    The clerk who approves sees something that is not in the file: at the same covariates, those
    who would default are approved less often, by the factor 1 / selection. So the odds of default
    among the approved are those among all who applied, divided by `selection`, in every row. The
    model's probabilities are meant for all who apply.

    Parameters
    ----------
    n : int
        How many apply; more than half of them are approved.
    rng : int, numpy Generator or None
        Draws applicants, who would default, and who is approved; None: anew in each call.
    selection : float
        How much likelier those who would not default are to be approved, at least 1; 1 leaves
        nothing to choose by. 1.3 by default.
    understated : float
        By how much the model understates the odds of default of everybody who applies, above 0; 1,
        the default, is a calibrated model.

    Returns
    -------
    CreditBook
        With the covariates age, income (in thousands) and employment.

    Examples
    --------
    A calibrated model looks as if it overstated the risk, because clerks choose well:

    >>> book = credit_book(rng=0)
    >>> round(float(book.bias.mean()), 3)
    0.0
    >>> round(float(book.sample.y.mean() - book.sample.p.mean()), 3)
    -0.047
    """
    if not selection >= 1:
        raise InputError(
            "{argument} must be at least 1, not {value}", argument="selection", value=selection
        )
    if not understated > 0:
        raise InputError(
            "{argument} must be above 0, not {value}", argument="understated", value=understated
        )
    random = as_generator(rng)
    age = random.integers(21, 76, n)
    income = np.round(np.exp(random.normal(3.4, 0.45, n)), 1)
    work = random.choice(len(EMPLOYMENT), n, p=(0.6, 0.22, 0.18))
    log_income = (np.log(income) - 3.4) / 0.45
    log_odds = -1.1 - 0.6 * log_income - (age - 45) / 40 + np.array(BY_EMPLOYMENT)[work]
    truth = expit(log_odds)
    p = expit(log_odds - np.log(understated))
    y = random.random(n) < truth
    likely = expit(1.3 + 0.8 * log_income)  # what the file tells the clerk
    approved = random.random(n) < likely * np.where(y, 1 / selection, 1.0)
    x = {"age": age, "income": income, "employment": np.array(EMPLOYMENT)[work]}
    own = {name: np.asarray(values)[approved] for name, values in x.items()}
    return CreditBook(
        sample=Sample(y[approved], p[approved], own),
        truth=truth[approved],
        among_approved=expit(log_odds - np.log(selection))[approved],
        applicants=Population(p, x),
        rate=float(truth.mean()),
    )


GROUPS = ("White", "Black", "Hispanic", "Asian", "Other")
SHARES = (0.58, 0.14, 0.18, 0.06, 0.04)
BY_PLACE = (-0.6, 0.9, 0.7, 0.1, 0.0)  # log odds, for one standard deviation of where people live
LOG_INCOME = (11.0, 10.7, 10.75, 11.1, 10.9)
LENIENCE = (0.9, -0.3, 0.1, 0.8, 0.4)  # log odds of approval at the same income


@dataclass(frozen=True, eq=False)
class ImputedGroups:
    """People whose group was imputed, some of whom have told it.

    Attributes
    ----------
    sample : MulticlassSample
        Those who have told their race, a random sample.
    population : MulticlassPopulation
        Those who have not.
    truth : dict of str to float
        Rate of approval of every group, as it would be in many such populations.
    """

    sample: MulticlassSample
    population: MulticlassPopulation
    truth: dict[str, float]


def imputed_groups(n: int = 3_000, rng: Rng = None, *, size: int = 30_000) -> ImputedGroups:
    """Simulate loan applicants whose race was imputed from names and places.

    The probabilities of five groups are exactly right given name and place. But within the
    same place and name, groups differ in income, and lenders approve some more often at the
    same income, which the imputation cannot know: given income or approval, the probabilities are
    wrong, and disparities that are weighted by them come out too small.

    Parameters
    ----------
    n : int
        Number of applicants who have told their race.
    rng : int, numpy Generator or None
        Draws applicants; None: other ones in each call.
    size : int
        Number of applicants who have not.

    Returns
    -------
    ImputedGroups
        With the covariates income (in dollars) and approved ("yes" or "no").

    Examples
    --------
    >>> import itrust as it
    >>> loans = it.simulate.imputed_groups(500, rng=0, size=1_000)
    >>> loans.sample.classes
    ('White', 'Black', 'Hispanic', 'Asian', 'Other')
    >>> loans.truth["White"] > loans.truth["Black"]
    True
    """
    random, everyone = as_generator(rng), n + size
    place, name = random.normal(size=everyone), random.normal(size=(everyone, len(GROUPS)))
    p = softmax(np.log(SHARES) + np.outer(place, BY_PLACE) + 0.9 * name, axis=1)
    group = (random.random(everyone)[:, None] > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    noise = random.normal(0, 0.45, everyone)
    uniform = random.random(everyone)

    def approval(groups: AnyArray) -> tuple[FloatArray, FloatArray]:
        """Incomes, and chances of approval, of members of some groups."""
        log_income = np.array(LOG_INCOME)[groups] - 0.15 * place + noise
        return np.exp(log_income), expit(1.2 * (log_income - 11) + np.array(LENIENCE)[groups])

    income, chance = approval(group)
    x = {"income": np.round(income, -2), "approved": np.where(uniform < chance, "yes", "no")}
    told = slice(0, n)
    sample = MulticlassSample.from_frame(
        {
            "race": np.array(GROUPS)[group[told]],
            **{name: column[told] for name, column in x.items()},
            **{f"p_{name}": p[told, k] for k, name in enumerate(GROUPS)},
        },
        label="race",
        prob={name: f"p_{name}" for name in GROUPS},
        on=list(x),
    )
    rest = {name: column[n:] for name, column in x.items()}
    population = MulticlassPopulation(p[n:], rest, list(GROUPS))
    truth = {
        name: float(np.average(approval(np.full(everyone, k))[1], weights=p[:, k]))
        for k, name in enumerate(GROUPS)
    }
    return ImputedGroups(sample, population, truth)
