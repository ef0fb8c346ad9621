"""`itrust audit`: read, settle what is what, audit, tell, write.

What is wrong with columns and tasks is said before the part that audits is loaded.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import itrust as it
from itrust import auditing, recalibrate, render
from itrust._core import Write, checked_count, checked_reach, counted, write_all, writer_of
from itrust.cli.columns import text_form
from itrust.cli.console import Log, answer, complain, width
from itrust.cli.exit import CLOSED, DONE, load
from itrust.cli.inputs import InputFiles, opened
from itrust.cli.margins import margins_of
from itrust.cli.options import Options
from itrust.cli.outputs import refuse_bad_places
from itrust.cli.roles import FileRoles, needed_columns, read_class_samples, read_samples, settle
from itrust.cli.streaming import read_scan, streams
from itrust.cli.streams import after_writing
from itrust.data import Scan

if TYPE_CHECKING:
    from itrust.auditing import Audit, ClassesComparison, Comparison, MulticlassAudit

    AnyAudit = Audit | MulticlassAudit
    AnyComparison = Comparison | ClassesComparison

TODAY = "today"  # of --date
COMPARED = ("platt", "isotonic", "beta", "local")  # by --recalibrate


def run(options: Options) -> int:
    """Do all of it; the exit code."""
    log = Log(options.quiet)
    tasks = [it.tasks.parse(text) for text in options.task]  # before anything is read
    if options.gate == "tasks" and not tasks:
        raise it.InputError("{argument} tasks needs a number to judge: name one", argument="gate")
    margins = margins_of(options)
    checked_reach(options.draws, options.alpha, parts=2)
    checked_count(options.min_cell, "min_cell")
    checked_count(options.seed, "seed", at_least=0)
    refuse_bad_places(options.outputs, [options.settings])
    with opened(str(options.file), text_form(options)) as source, told_in_the_result():
        refuse_bad_places(options.outputs, source.places)
        roles = settle(source, log, options)
        covariates = needed_columns(source, tasks, roles)
        columns = _with_grades(source, roles, covariates, options, log)
        log.say(*source.about_checksum)
        checksum = source.checksum  # of what is read next: a file that has changed is refused
        rows = _rows(source, roles, columns, options, log)
        page = ["itrust.render.page"] if options.report is not None else []
        load("itrust.auditing.audits", "itrust.render.text", *page)
        with small_products():
            audit, comparison = _judge(options, roles, rows, tasks, log)
        learned = _recalibration(options, roles, covariates, rows)
        words = {"title": options.title, "model": options.model, "date": dated(options.date)}
        command = options.echo({**roles.typed(source.columns), "date": words["date"]})
        made = auditing.Provenance(command, source.name, checksum, **words)
        added: dict[str, Any] = {"comparison": comparison, "provenance": made}
        if learned is not None:
            added["recalibration"] = learned
        whole = audit.extended(**added)
        shown = whole.disclosed(options.min_cell)
        facts = shown.to_dict() if _needs_facts(options) else {}
        write_all(_writers(options, shown, facts, margins))
    with after_writing(options.outputs.values()):
        _tell(options, shown, facts)
    log.say(*(f"{option[2:]} in {path}" for option, path in options.outputs.items() if path))
    return _gate(options, shown, roles, log, margins)


def _rows(
    source: InputFiles, roles: FileRoles, covariates: Sequence[str], options: Options, log: Log
) -> Mapping[str, Any]:
    """The rows of every model's probabilities: in memory, or named where they are too many."""
    if roles.classes:
        for name in ("recalibrate", "grades", "robust_to"):
            if getattr(options, name):
                raise it.InputError("{argument} is for two labels; leave it out", argument=name)
        return read_class_samples(source, roles, covariates, options)
    if not streams(source.places, options.stream):
        return read_samples(source, roles, covariates, options)
    if options.missing == "drop" and len(roles.prob) > 1:
        raise it.InputError(
            "{argument}: of files that are read some rows at a time, one model is judged; models "
            "lack different rows",
            argument="prob",
        )
    one = (replace(roles, prob=(prob,)) for prob in roles.prob)
    scans = {own.prob[0]: read_scan(source, own, covariates, options) for own in one}
    if all(scan.is_simple for scan in scans.values()):
        log.say("reading some rows at a time")
    else:
        log.say("rows of a design are read into memory, for clusters have to stay whole")
    return scans


@contextmanager
def small_products() -> Iterator[None]:
    """Threads of BLAS off: within products as small as an audit's they wait for each other."""
    from itrust.engines import one_blas_thread

    with one_blas_thread():
        yield


@contextmanager
def told_in_the_result() -> Iterator[None]:
    """Python's warnings off: the page and the JSON hold the same sentences."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", it.AssumptionWarning)
        warnings.simplefilter("ignore", it.ApproximationWarning)
        yield


def _with_grades(
    source: InputFiles, roles: FileRoles, covariates: Sequence[str], options: Options, log: Log
) -> tuple[str, ...]:
    """The covariates and, where there are some, the grades; they are judged on only if named so."""
    name = options.grades
    if name is None:
        return tuple(covariates)
    source.require("grades", name)
    if name in (roles.label, *roles.prob):
        raise it.InputError(
            "{argument}: {value} is the label or a probability, no column of grades",
            argument="grades",
            value=name,
        )
    if not _needs_validation(options):
        log.say("the table by grade is on the page and in the JSON: --report and --json write them")
        return tuple(covariates)
    return tuple(dict.fromkeys([*covariates, name]))


def _judge(
    options: Options,
    roles: FileRoles,
    rows: Mapping[str, Any],
    tasks: Sequence[it.tasks.Task],
    log: Log,
) -> tuple[AnyAudit, AnyComparison | None]:
    first, *others = rows.values()
    settings: dict[str, Any] = {"alpha": options.alpha, "draws": options.draws, "rng": options.seed}
    audit: AnyAudit = it.audit(
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
    log.say(f"audited: {roles.models[0]!r}, the first of {len(rows)} models; all are compared")
    samples = {
        name: own.extract().some if isinstance(own, Scan) else own for name, own in rows.items()
    }
    compared = samples[roles.models[0]].n
    if compared < audit.n:
        log.say(f"models are compared on {compared:,} random rows")
    return audit, it.compare(samples, tasks, on=roles.on, **settings)


def _recalibration(
    options: Options,
    roles: FileRoles,
    covariates: Sequence[str],
    rows: Mapping[str, Any],
) -> recalibrate.RecalibrationTable | None:
    """Recalibrations learned from another file, judged on the audited rows."""
    if options.recalibrate is None:
        return None
    prob = roles.prob[0]
    within = options.folder_of("recalibrate")
    with opened(options.recalibrate, text_form(options), within) as source:
        refuse_bad_places(options.outputs, source.places)
        for name in (*roles.used, *covariates):
            if name not in roles.prob[1:]:
                source.require("recalibrate", name)
        own = replace(roles, prob=(prob,))
        learn: it.Sample | Scan
        if streams(source.places, options.stream):
            learn = read_scan(source, own, covariates, options)
        else:
            learn = read_samples(source, own, covariates, options)[prob]
        chosen = {name: recalibrate.METHODS[name]() for name in COMPARED}
        return recalibrate.compare(
            chosen,
            learn.with_names(roles.on),
            rows[prob].with_names(roles.on),
            alpha=options.alpha,
            draws=options.draws,
            rng=options.seed,
        )


def dated(asked: str | None) -> str | None:
    """The date for the page; today's by its digits, so that the echoed command gives the same."""
    return datetime.now(UTC).strftime("%Y-%m-%d") if asked == TODAY else asked


def _needs_facts(options: Options) -> bool:
    """Whether the page or the JSON is asked for, which hold charts and what validators print."""
    return options.json is not None or options.report is not None


def _needs_validation(options: Options) -> bool:
    return _needs_facts(options) and not options.no_validation


def _writers(
    options: Options, shown: AnyAudit, facts: dict[str, Any], margins: dict[str, float] | None
) -> dict[Path, Write]:
    """What to write where; all of it renders the same values."""
    asked: dict[str, Any] = {"asked": options.gate or "any", "robust_to": margins}
    name = str(None if shown.provenance is None else shown.provenance.file)
    texts = {
        "--report": lambda: render.page.page(facts),
        "--json": lambda: _as_json(facts),
        "--junit": lambda: render.junit_xml(shown, name, **asked),
        "--summary": lambda: render.summary_markdown(shown, name, **asked),
    }
    places = options.outputs.items()
    return {path: writer_of(texts[option]) for option, path in places if path is not None}


def _as_json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=2, allow_nan=False) + "\n"


def _tell(options: Options, shown: AnyAudit, facts: dict[str, Any]) -> None:
    if options.on_standard_output("json"):
        answer(_as_json(facts).rstrip("\n"))
        return
    line = render.verdict_line(shown.verdict, width())
    answer(render.as_text(shown, width()), shown.verdict.tone.terminal, line)
    if shown.comparison is not None:
        answer("\n" + render.fitted(str(shown.comparison), width()))
    learned = getattr(shown, "recalibration", None)
    if learned is not None:
        title = f"RECALIBRATION  learned from {options.recalibrate}"
        answer("\n" + render.fitted(f"{title}\n{learned}", width()))


def _gate(
    options: Options, audit: AnyAudit, roles: FileRoles, log: Log, margins: dict[str, float] | None
) -> int:
    if not options.gate:
        return DONE
    several = len(roles.models) > 1
    which = f" ({roles.models[0]!r} is judged, the first --prob)" if several else ""
    found = auditing.gate(audit, options.gate, margins)
    log.say(f"{render.gate_words(found)}{which}")
    withheld = 0 if audit.withheld is None else audit.withheld.tasks
    if withheld and options.gate != "model":
        complain(f"{counted(withheld, 'number')} withheld and not judged; --min-cell 1 judges all")
    return CLOSED if found.closed else DONE
