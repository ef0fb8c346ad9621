"""`itrust estimate`: read labelled rows, name the population, compare both, estimate, tell, write.

What is wrong with columns and tasks is said before the part that estimates is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import itrust as it
from itrust import render
from itrust._core import (
    Write,
    checked_alpha,
    checked_choice,
    checked_count,
    did_you_mean,
    write_all,
    writer_of,
)
from itrust.cli.audit import dated, small_products, told_in_the_result
from itrust.cli.columns import said_of_columns, text_form
from itrust.cli.console import Log, answer, width
from itrust.cli.exit import DONE, load
from itrust.cli.inputs import InputFiles, opened
from itrust.cli.options import STANDARD, Options
from itrust.cli.outputs import refuse_bad_places
from itrust.cli.roles import FileRoles, needed_columns, read_class_samples, read_samples, settle
from itrust.cli.streams import after_writing
from itrust.data import PREDICTION, PopulationScan
from itrust.tasks import EstimateProvenance, RefusedTask

if TYPE_CHECKING:
    from itrust.tasks import Task, TaskEstimates


def run(options: Options) -> int:
    """Do all of it; the exit code."""
    log = Log(options.quiet)
    tasks = [it.tasks.parse(text) for text in options.task]  # before anything is read
    _refuse_unclear(options, tasks)
    refuse_bad_places(options.outputs, [options.settings])
    with ExitStack() as stack:
        form = text_form(options)
        labelled, population = (
            stack.enter_context(opened(str(name), form))
            for name in (options.file, options.population)
        )
        stack.enter_context(told_in_the_result())
        refuse_bad_places(options.outputs, [*labelled.places, *population.places])
        roles = _settled(labelled, population, log, options)
        needed_columns(labelled, tasks, roles)  # columns that no file has are mistyped
        _refuse_without_columns(population, roles)
        given, lacking = _with_columns(population, tasks)
        covariates = needed_columns(labelled, given, roles)
        log.say(*labelled.about_checksum, *population.about_checksum)
        sums = labelled.checksum, population.checksum  # of what is read next
        own = [] if options.selection is None else [options.selection]
        rows = _labelled(labelled, roles, [*covariates, *own], options)
        everyone = _population(labelled, population, _prob(roles, rows), covariates, roles, options)
        page = ["itrust.render.page"] if options.report is not None else []
        load("itrust.tasks.population", "itrust.render.text", *page)
        with small_products():
            found = it.tasks.estimate_tasks(
                given,
                everyone,
                rows,
                alpha=options.alpha,
                selection=options.selection,
                support=options.support,
                rng=options.seed,
                refusals="keep",
            )
        found = replace(found, refused=_in_order(tasks, [*found.refused, *lacking]))
        date = dated(options.date)
        made = EstimateProvenance(
            options.echo({**roles.typed(labelled.columns), "date": date}),
            labelled.name,
            sums[0],
            population.name,
            sums[1],
            options.title,
            options.model,
            date,
        )
        shown = replace(found, provenance=made).disclosed(options.min_cell)
        facts = shown.to_dict()
        write_all(_writers(options, facts))
    with after_writing(options.outputs.values()):
        _tell(options, shown, facts)
    if shown.refused:
        log.say(f"no estimate for {len(shown.refused)} of {len(tasks)} numbers; the text says why")
    log.say(*(f"{option[2:]} in {path}" for option, path in options.outputs.items() if path))
    return DONE


def _refuse_unclear(options: Options, tasks: Sequence[Task]) -> None:
    checked_alpha(options.alpha)
    checked_choice(options.support, "support", ("refuse", "exclude"))
    checked_count(options.min_cell, "min_cell")
    checked_count(options.seed, "seed", at_least=0)
    if not tasks:
        raise it.InputError(
            "name the number that you want with {argument}, such as 'prevalence()'",
            argument="task",
        )
    if len(options.prob) > 1:
        raise it.InputError(
            "{argument}: one model is used at a time; name one column, or those of all classes in "
            "one {argument}",
            argument="prob",
        )
    if options.file == options.population == STANDARD:
        raise it.InputError("standard input can be read once; name a file for one of the two")


def _settled(labelled: InputFiles, population: InputFiles, log: Log, options: Options) -> FileRoles:
    """Which column is what in the labelled rows; covariates are columns of both files."""
    label = options.label
    if label is not None and label not in labelled.columns and label in population.columns:
        raise it.InputError(
            "{argument}: {file} has no column {value}, but {other} has one; labelled rows come "
            "first, then the population",
            argument="label",
            value=label,
            file=labelled.name,
            details={"other": population.name},
        )
    known = {"selection": labelled, "population_weights": population}
    for option, source in known.items():
        name = getattr(options, option)
        if name is not None:
            source.require(option, name)
    beside = {options.selection, options.population_weights} - {None}
    alone = [name for name in labelled.columns if name not in population.columns]
    roles = settle(labelled, log, options, not_on=[*beside, *alone])
    if options.selection in (roles.label, *roles.prob, *roles.on):
        raise it.InputError(
            "{argument}: {value} has another role already; give the column that holds the "
            "probability of labelling",
            argument="selection",
            value=options.selection,
        )
    if roles.label in population.columns:
        log.say(f"labels in {population.name} are not read: its column {roles.label!r} is ignored")
    return roles


def _refuse_without_columns(population: InputFiles, roles: FileRoles) -> None:
    """Raise unless the population has the probabilities and every covariate of --on."""
    for name in roles.prob:
        population.require("prob", name)
    for name in roles.on:
        if name not in population.columns:
            raise _without_column(population, "on", name)


def _without_column(population: InputFiles, option: str, name: str) -> it.InputError:
    return it.InputError(
        "{argument}: the population, {file}, has no column {value}; {guess}",
        argument=option,
        value=name,
        file=population.name,
        details={"guess": did_you_mean(name, population.columns)},
    )


def _with_columns(
    population: InputFiles, tasks: Sequence[Task]
) -> tuple[list[Task], list[RefusedTask]]:
    """Tasks whose columns the population has, and the others; an error where there are others only.

    What is refused of one task leaves the others alone.
    """
    given, lacking = [], []
    for task in tasks:
        gone = [name for name in sorted(task.names) if name not in population.columns]
        if gone:
            lacking.append(RefusedTask(task, _without_column(population, "task", gone[0])))
        else:
            given.append(task)
    if not given:
        raise lacking[0].error
    return given, lacking


def _in_order(tasks: Sequence[Task], refused: Sequence[RefusedTask]) -> tuple[RefusedTask, ...]:
    """In the order in which the tasks were given."""
    return tuple(sorted(refused, key=lambda own: [own.task is task for task in tasks].index(True)))


def _labelled(
    labelled: InputFiles, roles: FileRoles, covariates: Sequence[str], options: Options
) -> it.Sample | it.MulticlassSample:
    if not roles.classes:
        (rows,) = read_samples(labelled, roles, covariates, options).values()
        return rows
    (several,) = read_class_samples(labelled, roles, covariates, options).values()
    return several


def _prob(roles: FileRoles, rows: it.Sample | it.MulticlassSample) -> str | dict[Any, str]:
    """The column of probabilities, or those of the classes as the labelled rows call them."""
    if not isinstance(rows, it.MulticlassSample):
        return roles.prob[0]
    (columns,) = roles.classes.values()
    return dict(zip(rows.classes, columns.values(), strict=True))


def _population(
    labelled: InputFiles,
    population: InputFiles,
    prob: str | dict[Any, str],
    covariates: Sequence[str],
    roles: FileRoles,
    options: Options,
) -> Any:
    """Name the rows of the population; what is said of columns holds for both files.

    With several classes the rows are read, once for all classes: they have to sum to 1.
    """
    said = said_of_columns(labelled, options)
    for name in sorted(said.where.names) if said.where is not None else ():
        if name != PREDICTION or name in labelled.columns:
            population.require("where", name)
    kinds = labelled.kinds(said.kinds, [*roles.used, *covariates], covariates)
    found: Any = it.Population.scan(
        population.file_set,
        prob=prob,
        on=covariates,
        weights=options.population_weights,
        missing=options.missing,
        na_values=list(said.na_values),
        where=said.where,
        form=population.form,
        **kinds.of_columns(covariates),
    )
    if isinstance(found, PopulationScan):
        return found
    with population.located():
        return found.load()


def _writers(options: Options, facts: dict[str, Any]) -> dict[Path, Write]:
    """What to write where; both render the same values."""
    texts = {
        "--report": lambda: render.page.estimates_page(facts),
        "--json": lambda: _as_json(facts),
    }
    places = options.outputs.items()
    return {path: writer_of(texts[option]) for option, path in places if path is not None}


def _as_json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=2, allow_nan=False) + "\n"


def _tell(options: Options, shown: TaskEstimates, facts: dict[str, Any]) -> None:
    if options.on_standard_output("json"):
        answer(_as_json(facts).rstrip("\n"))
        return
    answer(render.estimates_told(shown, width()))
