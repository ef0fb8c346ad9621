"""`itrust audit`: read, settle what is what, audit, tell, write.

What is wrong with columns and tasks is said before the part that audits is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import itrust as it
from itrust import auditing, recalibrate, render
from itrust._core import (
    InputError,
    checked_count,
    checked_min_cell,
    checked_reach,
    counted,
    write_all,
)
from itrust.cli import outputs
from itrust.cli.command import CLOSED, DONE
from itrust.cli.console import complain, say, width
from itrust.cli.inputs import InputFiles, opened
from itrust.cli.options import Options
from itrust.cli.roles import FileRoles, needed_columns, read_rows, settle
from itrust.data import Scan

COMPARED = ("platt", "isotonic", "beta", "local")  # by --recalibrate
MARGIN = "'odds:1.2' or 'label-error:0.02'"


def run(options: Options) -> int:
    """Do all of it; the exit code."""
    tasks = [it.tasks.parse(text) for text in options.task]  # before anything is read
    if options.gate == "tasks" and not tasks:
        raise InputError("{argument} tasks needs a number to judge: name one", argument="gate")
    margins = margins_of(options)
    checked_reach(options.draws, options.alpha)
    checked_min_cell(options.min_cell)
    checked_count(options.seed, "seed", at_least=0)
    outputs.refuse_bad_places(options)
    with opened(options) as source:
        roles = settle(source, options)
        covariates = needed_columns(source, tasks, roles)
        columns = _with_grades(source, roles, covariates, options)
        checksum = source.checksum  # of what is read next: a file that has changed is refused
        rows = _rows(source, roles, columns, options)
        with outputs.at_work("itrust.auditing.audits"):
            audit, comparison = _judge(options, roles, rows, tasks)
        learned = _recalibration(options, roles, covariates, rows)
        words = outputs.dated(options)
        command = options.echo({**roles.typed(source.columns), "date": words["date"]})
        made = auditing.Provenance(command, source.name, checksum, **words)
        added: dict[str, Any] = {"comparison": comparison, "provenance": made}
        if learned is not None:
            added["recalibration"] = learned
        shown = audit.extended(**added).disclosed(options.min_cell)
        facts = shown.to_dict() if _needs_facts(options) else {}
        asked: dict[str, Any] = {"asked": options.gate or "any", "robust_to": margins}
        files = outputs.writers(
            options,
            report=lambda: render.page.page(facts),
            json=lambda: outputs.as_json(facts),
            junit=lambda: render.junit_xml(shown, source.name, **asked),
            summary=lambda: render.summary_markdown(shown, source.name, **asked),
        )
        write_all(files)
    line = render.verdict_line(shown.verdict, width())
    told: list[tuple[str, ...]] = [
        (render.as_text(shown, width()), render.TERMINAL[shown.verdict.tone], line)
    ]
    if shown.comparison is not None:
        told.append(("\n" + render.as_text(shown.comparison, width()),))
    if learned is not None:
        title = f"RECALIBRATION  learned from {options.recalibrate}"
        told.append((f"\n{title}\n{render.as_text(learned, width())}",))
    outputs.tell(options, lambda: facts, *told)
    return _gate(options, shown, roles, margins)


def margins_of(options: Options) -> dict[str, float] | None:
    """Read the margins of the gate; refuse those that have no gate, or nothing to be read from."""
    texts = [part.strip() for text in options.robust_to or () for part in text.split(",")]
    if not texts:
        return None
    dependent = options.cluster or options.strata or options.replicate_weights
    problem = ""
    if not options.gate:
        problem = "is a margin of the gate: give --gate, too"
    elif dependent and options.gate != "tasks":
        problem = (
            "needs independent rows: how a violation would act on rows that go together is not "
            "known; leave it out, or ask about numbers alone with --gate tasks"
        )
    elif options.no_robustness:
        problem = "needs what --no-robustness leaves out; give one of them"
    if problem:
        raise InputError(f"{{argument}} {problem}", argument="robust_to")
    margins: dict[str, float] = {}
    for text in texts:
        name, _, size = text.partition(":")
        name = name.strip()
        if name in margins:
            raise InputError("{argument} names {value} twice", argument="robust_to", value=name)
        try:
            margins[name] = float(size)
        except ValueError:
            problem = f"{{argument}} takes a name and a size, such as {MARGIN}, not {{value}}"
            raise InputError(problem, argument="robust_to", value=text) from None
    auditing.as_margins(margins)
    return margins


def _rows(
    source: InputFiles, roles: FileRoles, covariates: Sequence[str], options: Options
) -> Mapping[str, Any]:
    """The rows of every model's probabilities: in memory, or named where they are too many."""
    for name in ("recalibrate", "grades", "robust_to") if roles.several else ():
        if getattr(options, name):
            raise InputError("{argument} is for two labels; leave it out", argument=name)
    stream = source.streams(options.stream)
    if stream and options.missing == "drop" and len(roles.models) > 1:
        raise InputError(
            "{argument}: of files that are read some rows at a time, one model is judged; models "
            "lack different rows",
            argument="prob",
        )
    rows = read_rows(source, roles, covariates, options, stream=stream)
    if stream and all(own.is_simple for own in rows.values()):
        say(options, "reading some rows at a time")
    elif stream:
        say(options, "rows of a design are read into memory, for clusters have to stay whole")
    return rows


def _with_grades(
    source: InputFiles, roles: FileRoles, covariates: Sequence[str], options: Options
) -> tuple[str, ...]:
    """The covariates and, where there are some, the grades; they are judged on only if named so."""
    name = options.grades
    if name is None:
        return tuple(covariates)
    source.require("grades", name)
    if name in (roles.label, *roles.prob):
        problem = "{argument}: {value} is the label or a probability, no column of grades"
        raise InputError(problem, argument="grades", value=name)
    if not _needs_validation(options):
        told = "the table by grade is on the page and in the JSON"
        say(options, f"{told}: --report and --json write them")
        return tuple(covariates)
    return tuple(dict.fromkeys([*covariates, name]))


def _judge(
    options: Options, roles: FileRoles, rows: Mapping[str, Any], tasks: Sequence[it.tasks.Task]
) -> tuple[Any, Any]:
    (name, first), *others = rows.items()
    settings: dict[str, Any] = {"alpha": options.alpha, "draws": options.draws, "rng": options.seed}
    audit: Any = it.audit(
        first,
        tasks,
        on=roles.on,
        tolerance=options.tolerance,
        charts=_needs_facts(options),
        validation=_needs_validation(options),
        robustness=not options.no_robustness,
        grades=options.grades if _needs_validation(options) else None,
        progress=False if options.quiet else None,
        **settings,
    )
    if not others:
        return audit, None
    say(options, f"audited: {name!r}, the first of {len(rows)} models; all are compared")
    samples = {
        key: own.extract().some if isinstance(own, Scan) else own for key, own in rows.items()
    }
    if samples[name].n < audit.n:
        say(options, f"models are compared on {samples[name].n:,} random rows")
    return audit, it.compare(samples, tasks, on=roles.on, **settings)


def _recalibration(
    options: Options, roles: FileRoles, covariates: Sequence[str], rows: Mapping[str, Any]
) -> recalibrate.RecalibrationTable | None:
    """Recalibrations learned from another file, judged on the audited rows."""
    if options.recalibrate is None:
        return None
    model = next(iter(roles.models))
    one = roles.only(model)
    with opened(options, "recalibrate") as source:
        source.require("recalibrate", *one.used, *covariates)
        stream = source.streams(options.stream)
        learn = read_rows(source, one, covariates, options, stream=stream)[model]
        return recalibrate.compare(
            {name: recalibrate.METHODS[name]() for name in COMPARED},
            learn.with_names(roles.on),
            rows[model].with_names(roles.on),
            alpha=options.alpha,
            draws=options.draws,
            rng=options.seed,
        )


def _needs_facts(options: Options) -> bool:
    """Whether the page or the JSON is asked for, which hold charts and what validators print."""
    return options.json is not None or options.report is not None


def _needs_validation(options: Options) -> bool:
    return _needs_facts(options) and not options.no_validation


def _gate(options: Options, audit: Any, roles: FileRoles, margins: dict[str, float] | None) -> int:
    if not options.gate:
        return DONE
    first, *others = roles.models
    which = f" ({first!r} is judged, the first --prob)" if others else ""
    gate = auditing.gate(audit, options.gate, margins)
    say(options, f"{render.gate_words(gate)}{which}")
    withheld = 0 if audit.withheld is None else audit.withheld.tasks
    if withheld and options.gate != "model":
        complain(
            f"{counted(withheld, 'number')} withheld and not judged; all are without --min-cell"
        )
    return CLOSED if gate.closed else DONE
