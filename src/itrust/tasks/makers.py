"""Tasks made in Python: mean, share, prevalence; and several of them from text or parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from itrust._core import InputError
from itrust.data import Everywhere, Predicate, as_predicate, parse_condition
from itrust.tasks.expressions import Ratio, Task
from itrust.tasks.parser import parse
from itrust.tasks.quantities import Callback, Covariate, Indicator, Quantity


def mean(
    quantity: str | Quantity | Callable[[Mapping[str, Any]], Any],
    where: object = None,
    *,
    name: str | None = None,
    **values: Any,
) -> Task:
    """Average of a covariate, or of a function of covariates, among positives.

    E[g(x) | y = 1, where].

    Parameters
    ----------
    quantity : str or callable
        A covariate, or a function that takes a mapping of covariates to arrays and gives an
        array of numbers.
    where : mapping, str or Predicate, optional
        Which rows count: covariates and the value they must have, a list of values, or None for
        missing; or a condition such as 'race == "Black" and age >= 65'. Default: all rows.
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
    """
    chosen = _predicate(where, values, "mean")
    return Ratio(_as_quantity(quantity, name), chosen, among_positives=True)


def share(condition: object = None, where: object = None, **values: Any) -> Task:
    """Share of positives for which a condition holds: P(condition | y = 1, where).

    Parameters
    ----------
    condition : mapping, str or Predicate, optional
        What has to hold, as `where` of `mean`; default: what the keywords say.
    where : mapping, str or Predicate, optional
        Among which rows; default: all rows.
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
        raise InputError(
            "share needs a condition, as in share(race='Black')",
            argument="condition",
            value=condition,
        )
    return Ratio(Indicator(chosen), _predicate(where, {}, "share"), among_positives=True)


def prevalence(where: object = None, **values: Any) -> Task:
    """Rate of positives: P(y = 1 | where).

    Parameters
    ----------
    where : mapping, str or Predicate, optional
        Which rows count, as `where` of `mean`; default: all rows.
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
    """
    chosen = _predicate(where, values, "prevalence")
    return Ratio(Indicator(Everywhere()), chosen, among_positives=False)


def as_tasks(tasks: object) -> list[Task]:
    """Turn one task or several, as such or as text, into a list.

    Parameters
    ----------
    tasks : Task, str or sequence of them
        The numbers.

    Returns
    -------
    list of Task
        Texts are parsed.
    """
    several = [tasks] if isinstance(tasks, str | Task) else tasks
    if not isinstance(several, list | tuple):
        raise InputError(
            "tasks are a list such as ['mean(age)'], not {value}", argument="tasks", value=tasks
        )
    return [parse(task) if isinstance(task, str) else task for task in several]


def _as_quantity(quantity: object, name: str | None) -> Quantity:
    if isinstance(quantity, Quantity):
        return quantity
    if isinstance(quantity, str):
        return Covariate(quantity)
    if callable(quantity):
        title = str(name or getattr(quantity, "__name__", "function"))
        return Callback(quantity, title)
    raise InputError(
        "mean takes the name of a covariate or a function, not a {kind}",
        argument="quantity",
        value=quantity,
        details={"kind": type(quantity).__name__},
    )


def _predicate(condition: object, values: Mapping[str, Any], name: str) -> Predicate:
    if condition is not None and values:
        raise InputError(
            "{name} takes a condition or keywords, not both",
            argument="condition",
            value=condition,
            details={"name": name},
        )
    if isinstance(condition, str):
        return parse_condition(condition)
    return as_predicate(values or None if condition is None else condition)
