"""`itrust estimate`: read labelled rows, name the population, compare both, estimate, tell, write.

What is wrong with columns and tasks is said before the part that estimates is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import itrust as it
from itrust import render
from itrust._core import InputError, checked_alpha, checked_count, checked_min_cell, write_all
from itrust.cli import outputs
from itrust.cli.command import DONE
from itrust.cli.console import say, width
from itrust.cli.inputs import InputFiles, na_values, opened
from itrust.cli.options import STANDARD, Options
from itrust.cli.roles import FileRoles, condition_of, kinds_said, needed_columns, read_rows, settle

if TYPE_CHECKING:
    from itrust.tasks import RefusedTask, Task


def run(options: Options) -> int:
    """Do all of it; the exit code."""
    tasks = [it.tasks.parse(text) for text in options.task]  # before anything is read
    _refuse_unclear(options, tasks)
    outputs.refuse_bad_places(options)
    with ExitStack() as stack:
        labelled, population = (
            stack.enter_context(opened(options, name)) for name in ("file", "population")
        )
        roles = _settled(labelled, population, options)
        needed_columns(labelled, tasks, roles)  # columns that no file has are mistyped
        population.require("prob", *roles.prob)
        population.require("on", *roles.on)
        refused = _refused(population, tasks)
        given = [task for task in tasks if not any(own.task is task for own in refused)]
        covariates = needed_columns(labelled, given, roles)
        sums = labelled.checksum, population.checksum  # of what is read next
        selection = [] if options.selection is None else [options.selection]
        (rows,) = read_rows(labelled, roles, [*covariates, *selection], options).values()
        everyone = _population(labelled, population, rows, covariates, roles, options)
        with outputs.at_work("itrust.tasks.population"):
            estimates = it.tasks.estimate_tasks(
                given,
                everyone,
                rows,
                alpha=options.alpha,
                selection=options.selection,
                support=options.support,
                rng=options.seed,
                refusals="keep",
            )
        refused += estimates.refused
        order = [own for task in tasks for own in refused if own.task is task]
        words = outputs.dated(options)
        command = options.echo({**roles.typed(labelled.columns), "date": words["date"]})
        made = it.tasks.EstimateProvenance(
            command, labelled.name, sums[0], population.name, sums[1], *words.values()
        )
        shown = replace(estimates, refused=tuple(order), provenance=made)
        shown = shown.disclosed(options.min_cell)
        facts = shown.to_dict()
        files = outputs.writers(
            options, report=lambda: render.page.page(facts), json=lambda: outputs.as_json(facts)
        )
        write_all(files)
    if shown.refused:
        few = f"{len(shown.refused)} of {len(tasks)} numbers"
        say(options, f"no estimate for {few}; the text says why")
    outputs.tell(options, lambda: facts, (render.as_text(shown, width()),))
    return DONE


def _refuse_unclear(options: Options, tasks: Sequence[Task]) -> None:
    checked_alpha(options.alpha)
    checked_min_cell(options.min_cell)
    checked_count(options.seed, "seed", at_least=0)
    if not tasks:
        problem = "name the number that you want with {argument}, such as 'prevalence()'"
        raise InputError(problem, argument="task")
    if len(options.prob) > 1:
        raise InputError(
            "{argument}: one model is used at a time; name one column, or those of all classes in "
            "one {argument}",
            argument="prob",
        )
    if options.file == options.population == STANDARD:
        raise InputError("standard input can be read once; name a file for one of the two")


def _settled(labelled: InputFiles, population: InputFiles, options: Options) -> FileRoles:
    """Which column is what in the labelled rows; covariates are columns of both files."""
    label = options.label
    if label is not None and label not in labelled.columns and label in population.columns:
        raise InputError(
            "{argument}: {file} has no column {value}, but {other} has one; labelled rows come "
            "first, then the population",
            argument="label",
            value=label,
            file=labelled.name,
            other=population.name,
        )
    beside = {"selection": labelled, "population_weights": population}
    named = {option: getattr(options, option) for option in beside if getattr(options, option)}
    for option, name in named.items():
        beside[option].require(option, name)
    alone = [name for name in labelled.columns if name not in population.columns]
    roles = settle(labelled, options, not_on=[*named.values(), *alone])
    if options.selection in (roles.label, *roles.prob, *roles.on):
        raise InputError(
            "{argument}: {value} has another role already; give the column that holds the "
            "probability of labelling",
            argument="selection",
            value=options.selection,
        )
    if roles.label in population.columns:
        ignored = f"its column {roles.label!r} is ignored"
        say(options, f"labels in {population.name} are not read: {ignored}")
    return roles


def _refused(population: InputFiles, tasks: Sequence[Task]) -> list[RefusedTask]:
    """Tasks whose columns the population lacks, which leave others alone if there are some."""
    refused = []
    for task in tasks:
        try:
            population.require("task", *sorted(task.names))
        except InputError as error:
            refused.append(it.tasks.RefusedTask(task, error))
    if len(refused) == len(tasks):
        raise refused[0].error
    return refused


def _population(
    labelled: InputFiles,
    population: InputFiles,
    rows: Any,
    covariates: Sequence[str],
    roles: FileRoles,
    options: Options,
) -> Any:
    """Name the rows of the population; what is said of columns holds for both files.

    With several classes the rows are read, once for all classes: they have to sum to 1.
    """
    where, conditions = condition_of(labelled, options)
    population.require("where", *conditions)
    said = kinds_said(labelled, options)
    kinds = labelled.file_set.kinds(said, [*roles.used, *covariates], covariates)
    (prob,) = roles.models.values()
    if rows.several:  # as the labelled rows call them
        prob = dict(zip(rows.classes, prob.values(), strict=True))
    everyone: Any = it.Population.scan(
        population.file_set,
        prob=prob,
        on=covariates,
        weights=options.population_weights,
        missing=options.missing,
        na_values=list(na_values(options)),
        where=where,
        form=population.file_set.form,
        **kinds.of_columns(covariates),
    )
    if not everyone.several:
        return everyone
    with population.located():
        return everyone.load()
