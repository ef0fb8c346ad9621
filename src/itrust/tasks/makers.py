"""Tasks made in Python: mean, share, prevalence, coefficient; several from text or parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from itrust._core import InputError
from itrust.data import Everywhere, Predicate, as_predicate, parse_condition
from itrust.tasks.arithmetic import Callback, Covariate, Indicator, Quantity
from itrust.tasks.expressions import Ratio, Task
from itrust.tasks.parser import parse, parse_term
from itrust.tasks.regressions import Coefficient
from itrust.tasks.terms import LevelOf, Regression, RegressionTerm

TermLike = str | Mapping[str, Any] | tuple[Any, ...]


def mean(
    quantity: str | Quantity | Callable[[Mapping[str, Any]], Any],
    where: object = None,
    *,
    label: Any = None,
    name: str | None = None,
    **values: Any,
) -> Task:
    """Average of a covariate, or of a function of covariates, among positives.

    E[g(x) | y = 1, where], or E[g(x) | y = label, where] where labels have several classes.

    Parameters
    ----------
    quantity : str or callable
        A covariate, or a function that takes a mapping of covariates to arrays and gives an
        array of numbers.
    where : mapping, str or Predicate, optional
        Which rows count: covariates and the value they must have, a list of values, or None for
        missing; or a condition such as 'race == "Black" and age >= 65'. Default: all rows.
    label : object, optional
        The class whose rows are averaged, such as "tie"; 'y == "tie"' in `where` says the same.
        Default: whatever counts as positive; of several classes one must be named.
    name : str, optional
        What a function is called in texts; default: its own name.
    **values : object
        The mapping of `where` as keywords, such as race="Black".

    Returns
    -------
    Task
        The mean, to be evaluated on a sample or estimated on a population.

    Examples
    --------
    >>> from itrust import tasks
    >>> str(tasks.mean("age", where={"race": "Black"}) - tasks.mean("age", where={"race": "White"}))
    'mean(age | race == "Black") - mean(age | race == "White")'
    >>> str(tasks.mean("age", label="tie", region="south"))
    'mean(age | y == "tie" and region == "south")'
    """
    chosen = _predicate(where, values, "mean")
    return Ratio.among(_as_quantity(quantity, name), chosen, label)


def share(
    condition: object = None, where: object = None, *, label: Any = None, **values: Any
) -> Task:
    """Share of positives for which a condition holds: P(condition | y = 1, where).

    Parameters
    ----------
    condition : mapping, str or Predicate, optional
        What has to hold, as `where` of `mean`; default: what the keywords say.
    where : mapping, str or Predicate, optional
        Among which rows; default: all rows.
    label : object, optional
        The class whose rows count, as for `mean`. Default: whatever counts as positive.
    **values : object
        The mapping of `condition` as keywords, such as race="Black".

    Returns
    -------
    Task
        A number between 0 and 1, unknown until it is evaluated or estimated.

    Examples
    --------
    >>> from itrust import tasks
    >>> str(tasks.share("age >= 65", where={"race": "Black"}))
    'share(age >= 65 | race == "Black")'
    >>> str(tasks.share(race="Black"))
    'share(race == "Black")'
    """
    chosen = _predicate(condition, values, "share")
    if isinstance(chosen, Everywhere):
        problem = "share needs a condition, as in share(race='Black')"
        raise InputError(problem, argument="condition", value=condition)
    return Ratio.among(Indicator(chosen), _predicate(where, {}, "share"), label)


def prevalence(where: object = None, *, label: Any = None, **values: Any) -> Task:
    """Rate of positives, P(y = 1 | where), or of a class, P(y = label | where).

    Parameters
    ----------
    where : mapping, str or Predicate, optional
        Which rows count, as `where` of `mean`; default: all rows.
    label : object, optional
        The class, such as "tie". Default: whatever counts as positive; of several classes one
        must be named.
    **values : object
        Covariates and the value they must have, as keywords.

    Returns
    -------
    Task
        The rate, which joins with other tasks to gaps and ratios.

    Examples
    --------
    >>> from itrust import tasks
    >>> str(tasks.prevalence(race="Black") - tasks.prevalence(race="White"))
    'prevalence(race == "Black") - prevalence(race == "White")'
    >>> str(tasks.prevalence(label="win") - tasks.prevalence(label="loss"))
    'prevalence("win") - prevalence("loss")'
    """
    chosen = _predicate(where, values, "prevalence")
    return Ratio(Indicator(Everywhere()), chosen, among_positives=False, label=label)


def coefficient(
    of: TermLike | Literal[1],
    on: Sequence[TermLike],
    *,
    link: Literal["logit", "identity", "log"] = "logit",
    where: object = None,
    reference: Mapping[str, Any] | None = None,
    label: Any = None,
    **values: Any,
) -> Task:
    """Coefficient of a regression of the label on covariates.

    The coefficients b of a canonical GLM solve sum of w z (y - mean(z'b)) = 0, where z are a
    constant and the terms, and the plug-in has probabilities in place of y. Their difference, the
    bias of the plug-in, is to first order H^-1 times the sum of w z (y - p). Whether the
    regression describes the data well does not matter for it. Standard errors are sandwiches.

    Parameters
    ----------
    of : str, mapping or tuple
        Which coefficient: a covariate; a mapping of a category to its level, such as
        {"race": "Black"}; a tuple of two of these for an interaction; a text as `parse` reads it,
        such as 'race["Black"]' or "log(income)"; or 1 for the constant.
    on : sequence of str or tuple
        The terms: covariates, texts such as "log(income)" or "age:race", or tuples of two. A
        category stands for all its levels but the reference.
    link : {"logit", "identity", "log"}
        Whether log odds, rates, or logs of rates are sums of the terms. The coefficient of a
        level is a log odds ratio, a difference of rates, or the log of a ratio of rates.
    where : mapping, str or Predicate, optional
        Which rows count, as for `mean`; default: all rows.
    reference : mapping of str to object, optional
        The level that the others of a category are compared with; default: the first that occurs.
    label : object, optional
        The class that is regressed, against all others. Default: whatever counts as positive; of
        several classes one must be named.
    **values : object
        The mapping of `where` as keywords, such as region="south".

    Returns
    -------
    Task
        The coefficient, in one over the unit of its covariate.

    Examples
    --------
    >>> from itrust import tasks
    >>> task = tasks.coefficient("age", on=["age", "race", "income"], reference={"race": "White"})
    >>> str(task)
    'coef(age ; age + race against "White" + income)'
    >>> str(tasks.coefficient({"race": "Black"}, on=["age", "race"], link="log", region="south"))
    'coef(race["Black"] ; age + race ; log | region == "south")'
    >>> str(tasks.coefficient("age", on=["age", "region"], label="tie"))
    'coef("tie" ~ age ; age + region)'
    """
    if isinstance(on, str) or not isinstance(on, Sequence):
        problem = "{argument} is a list of covariates such as ['age', 'race'], not {value}"
        raise InputError(problem, argument="on", value=on)
    if not isinstance(reference, Mapping | None):
        problem = "{argument} maps categories to levels, as in {{'race': 'White'}}, not {value}"
        raise InputError(problem, argument="reference", value=reference)
    chosen = _predicate(where, values, "coefficient")
    terms = tuple(_as_term(term, "on") for term in on)
    regression = Regression(terms, link, chosen, tuple((reference or {}).items()))
    return Coefficient(None if of == 1 else _as_term(of, "of"), regression, label)


def _as_term(term: object, argument: str) -> RegressionTerm:
    """A term from a text, a name, a category with its level, or two of these."""
    if isinstance(term, tuple):
        return RegressionTerm(
            tuple(one for part in term for one in _as_term(part, argument).factors)
        )
    if isinstance(term, Mapping) and len(term) == 1:
        ((name, level),) = term.items()
        return RegressionTerm((LevelOf(str(name), level),))
    if isinstance(term, str) and term:
        try:
            return parse_term(term)
        except InputError:  # a name that is no word, such as "hours per week"
            return RegressionTerm((Covariate(term),))
    problem = (
        "{argument} takes names of covariates, {{category: level}}, and tuples of two, not {value}"
    )
    raise InputError(problem, argument=argument, value=term)


def as_tasks(tasks: object) -> list[Task]:
    """Turn one task or several, as such or as text, into a list."""
    several = [tasks] if isinstance(tasks, str | Task) else tasks
    if not isinstance(several, list | tuple):
        problem = "tasks are a list such as ['mean(age)'], not {value}"
        raise InputError(problem, argument="tasks", value=tasks)
    return [parse(task) if isinstance(task, str) else task for task in several]


def _as_quantity(quantity: object, name: str | None) -> Quantity:
    if isinstance(quantity, Quantity) and not isinstance(quantity, Task):
        return quantity
    if isinstance(quantity, str):
        return Covariate(quantity)
    if callable(quantity):
        title = str(name or getattr(quantity, "__name__", "function"))
        return Callback(quantity, title)
    problem = "mean takes the name of a covariate or a function, not a {kind}"
    raise InputError(problem, argument="quantity", value=quantity, kind=type(quantity).__name__)


def _predicate(condition: object, values: Mapping[str, Any], name: str) -> Predicate:
    if condition is not None and values:
        problem = "{name} takes a condition or keywords, not both"
        raise InputError(problem, argument="condition", value=condition, name=name)
    if isinstance(condition, str):
        return parse_condition(condition)
    return as_predicate(values or None if condition is None else condition)
