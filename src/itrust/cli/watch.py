"""`itrust watch start | update | status`: a watch in a file, one batch after the other.

The state keeps which column is what, so that updates name none. It is replaced together with page
and other outputs, or not at all, and by one command at a time (`watch_state`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import itrust as it
from itrust import render
from itrust._core import (
    Setting,
    Write,
    checked_alpha,
    checked_min_cell,
    counted,
    write_all,
    writer_of,
)
from itrust.auditing import Provenance, watch_checks
from itrust.cli import outputs
from itrust.cli import watch_state as state
from itrust.cli.command import CLOSED, DONE
from itrust.cli.console import say, width
from itrust.cli.inputs import opened, text_form
from itrust.cli.options import BY_KEY, WATCH_START, WATCH_STATUS, WATCH_UPDATE, Options
from itrust.cli.roles import needed_columns, read_rows, settle
from itrust.tasks import TaskFinding
from itrust.watch import Waiting, Watch, WatchReport, number_finding, text_of, watch_report


def run(options: Options) -> int:
    """Do what was asked for; the exit code."""
    work = {WATCH_START: _start, WATCH_UPDATE: _update, WATCH_STATUS: _status}
    return work[options.command](options)


def _start(options: Options) -> int:
    tasks = [it.tasks.parse(text) for text in options.task]  # before anything is read
    checked_alpha(options.alpha)
    if len(options.prob) > 1:
        raise it.InputError("{argument}: one model is watched; name it once", argument="prob")
    place = state.state_place(options)
    outputs.refuse_bad_places(options)
    if options.new_model:
        return _go_on(options, place)
    if place.exists():
        raise it.InputError(
            "{argument}: {file} is there already, and a watch is not begun twice; name another "
            "file, go on with another model in it ({new_model}), or delete it to begin anew",
            argument="state",
            file=str(place),
            details={"new_model": Setting("new_model")},
        )
    asked = replace(options, values={**state.ABSENT, **options.values})

    def begun(rows: Any) -> Watch:
        return Watch.start(
            rows,
            tasks,
            alpha=options.alpha,
            tolerance=options.tolerance,
            promise=options.promise.replace("-", " "),
            name=options.name,
        )

    watch, _ = _of_reference(asked, tasks, begun, {})
    if place.exists():  # somebody else has begun one meanwhile
        raise it.InputError("{file} has appeared meanwhile; look at it", file=str(place))
    write_all({place: writer_of(lambda: text_of(watch))})
    return _told(options, watch_report(watch))


def _go_on(options: Options, place: Path) -> int:
    """Another model in a watch that is there; what is not said of columns is as it was."""
    with state.held(place, options) as write:
        before, kept = state.read_state(place)
        _refuse_other_promises(options, before)
        named = {name: getattr(options, name) for name in state.KEPT if _is_given(options, name)}
        asked = replace(options, values={**state.ABSENT, **options.values, **kept.values, **named})
        watch, new = _of_reference(
            asked,
            [own.task for own in before.tasks],
            lambda rows: before.new_model(rows, name=options.name),
            state.carried_over(kept.kinds, asked),
            kept.waiting,
        )
        say(options, *_left_behind(kept.waiting, before.segments[-1].number))
        write({place: writer_of(lambda: text_of(watch))})
    return _told(options, watch_report(watch, waiting=new.waiting))


def _of_reference(
    asked: Options,
    tasks: Sequence[it.tasks.Task],
    begin: Callable[[Any], Watch],
    kinds: state.ColumnKinds,
    waiting: tuple[Waiting, ...] = (),
) -> tuple[Watch, state.Remembered]:
    """A watch of a reference, with what batches need to be read alike."""
    form = replace(text_form(asked), texts=state.text_columns(kinds))
    with opened(asked, form=form) as source:
        read_as = state.as_the_reference(source, asked, kinds)
        dates = [] if asked.date_column is None else [asked.date_column]
        source.require("date_column", *dates)
        roles = settle(source, read_as, not_on=dates)
        state.refuse_no_dates(source, read_as)
        covariates = needed_columns(source, tasks, roles)
        more = [name for name in covariates if name not in roles.on]
        if more:
            say(asked, f"judged on {', '.join(map(repr, more))}, too, which your numbers need")
        (rows,) = read_rows(source, roles, covariates, read_as).values()
        say(asked, *rows.notes)
        with outputs.at_work("itrust.watch.watching"):
            watch = begin(rows)
        order = asked.dates or state.date_order(source)
        asked = replace(asked, values={**asked.values, "dates": order})
        levels = state.levels_of(rows, state.salt_of(watch))
        kept = state.Remembered.of(asked, roles, covariates, levels, state.kinds_of(rows))
    kept = replace(kept, waiting=waiting)
    return watch.with_source(kept.to_dict()), kept


def _is_given(options: Options, name: str) -> bool:
    """Whether something was typed or set, be it the default."""
    option = BY_KEY[name]
    value = options.values.get(name)
    return name in options.typed or value not in (None, (), [], option.default_in(options.command))


def _refuse_other_promises(options: Options, watch: Watch) -> None:
    """A segment has the numbers and the promise of the watch that it goes on with."""
    tasks = [own.task.formula for own in watch.tasks]
    kept = {
        "task": tasks,
        "alpha": watch.alpha,
        "tolerance": watch.tolerance,
        "promise": watch.promise.replace(" ", "-"),
    }
    for name, own in kept.items():
        typed = getattr(options, name)
        if name == "task":
            typed = [it.tasks.parse(text).formula for text in typed]
        if name in options.typed and typed != own:
            told = ", ".join(own) if isinstance(own, list) else own
            raise it.InputError(
                "{argument}: another model keeps what the watch was begun with ({kept}); leave it "
                "out, or begin another watch, without {new_model}",
                argument=name,
                details={"kept": told or "none", "new_model": Setting("new_model")},
            )


def _left_behind(waiting: Sequence[Waiting], segment: int) -> list[str]:
    """What is said of rows that an earlier model predicted."""
    rows = sum(own.rows for own in waiting if own.segment == segment)
    told = "waited for the model before, which predicted them: they will not be counted"
    return [f"{counted(rows, 'row')} {told}"] if rows else []


def _update(options: Options) -> int:
    checked_min_cell(options.min_cell)
    place = state.state_place(options)
    outputs.refuse_bad_places(options)
    with state.held(place, options) as write:
        watch, kept = state.read_state(place)
        asked = replace(
            options, command=WATCH_START, values={**kept.values, "quiet": options.quiet}
        )
        form = replace(text_form(asked), texts=state.text_columns(kept.kinds))
        with opened(options, form=form) as source:
            name = state.batch_name(options, source)
            with state.settled_at_the_start(asked):
                asked = state.as_the_reference(source, asked, kept.kinds)
                roles = settle(source, asked)
                where, times, waits = state.closing_of(
                    source, roles, asked, options, kept.waiting, watch, name
                )
                checksum = source.checksum  # of what is read next
                only = replace(asked, values={**asked.values, "where": where})
                (rows,) = read_rows(source, roles, roles.on, only).values()
            rows = state.with_the_levels_of_the_reference(rows, kept.kinds)
            if asked.where is not None or asked.na_values or asked.missing == "drop":
                say(options, *rows.dropped)
            called = state.free_name(name, state.taken_names(watch), options)
            with outputs.at_work("itrust.watch.watching"):
                watch = _taken_in(watch, rows, called, options.late, times)
            salt, least = state.salt_of(watch), options.min_cell or 1
            say(options, *state.new_level_notes(rows, kept.levels, salt, least))
            if called != name and not options.late:
                told = f"a batch is called {name!r} already; this one is called {called!r}"
                say(options, told)
            segment = watch.segments[-1].number
            others = [own for own in kept.waiting if (own.name, own.segment) != (name, segment)]
            waiting = (*others, *([] if waits is None else [waits]))[-state.MAX_WAITING :]
            kept = replace(kept, waiting=waiting)
            watch = watch.with_source(kept.to_dict())
            made = _provenance(options, source.name, checksum)
            report = watch_report(
                watch, min_cell=options.min_cell, waiting=kept.waiting, provenance=made
            )
            files = _writers(options, report, source.name)
            # The state last: where the command is killed before it, the same update goes again.
            write({**files, place: writer_of(lambda: text_of(watch))})
    return _told(options, report)


def _taken_in(
    watch: Watch, rows: Any, name: str | None, late: bool, times: tuple[str, str] | None
) -> Watch:
    try:
        return watch.update(rows, name=name, at=times, late=late)
    except it.InputError as error:
        if error.argument == "at" and times is not None and not late:
            last = max((own for own in watch.history if own.end), key=lambda own: str(own.end))
            batch = f"batch {last.number}" if last.name is None else f"batch {last.name!r}"
            raise it.InputError(
                "the first of these rows closes on {first}, before the last one that was counted, "
                "on {last} in {batch}; outcomes that came late are taken in with {late} (or are "
                "day and month confused?)",
                argument="date_column",
                details={
                    "first": times[0],
                    "last": last.end,
                    "batch": batch,
                    "late": Setting("late"),
                },
            ) from None
        if error.argument == "batch" and "kind" in error.details:
            told = "{column} is a {found} in the batch and a {kind} in the reference"
            raise error.at(problem=told, hint="write it as it is written there") from None
        raise


def _status(options: Options) -> int:
    checked_min_cell(options.min_cell)
    place = state.state_place(options)
    outputs.refuse_bad_places(replace(options, values={**options.values, "state": None}), [place])
    watch, kept = state.read_state(place)
    made = _provenance(options)
    report = watch_report(watch, min_cell=options.min_cell, waiting=kept.waiting, provenance=made)
    write_all(_writers(options, report, place.name))
    return _told(options, report)


def _provenance(
    options: Options, file: str | None = None, checksum: str | None = None
) -> Provenance:
    words = outputs.dated(options)
    return Provenance(options.echo({"date": words["date"]}), file, checksum, **words)


def _writers(options: Options, report: WatchReport, name: str) -> dict[Path, Write]:
    """What to write where, beside the state; all of it renders the same values of a file."""
    asked: Any = options.gate or "any"  # one of the choices
    return outputs.writers(
        options,
        report=lambda: render.page.page(report),
        json=lambda: outputs.as_json(report.to_dict()),
        junit=lambda: render.watch_junit_xml(report, name, asked=asked),
        summary=lambda: render.watch_markdown(report, name, asked=asked),
    )


def _told(options: Options, report: WatchReport) -> int:
    colour = render.TERMINAL["bad" if report.alarm else "open"]
    words = render.as_text(report, width()), colour, render.watch_headline(report)
    outputs.tell(options, report.to_dict, words)
    if not options.values.get("gate"):
        return DONE
    checks = watch_checks(report, options.gate)
    say(options, render.watch_gate_words(checks))
    few = [own for own in report.numbers if number_finding(own) is TaskFinding.WITHHELD]
    if few and options.gate != "model":
        number = counted(len(few), "number")
        say(options, f"{number} withheld and not judged; all are without --min-cell")
    return CLOSED if any(check.outcome == "failed" for check in checks) else DONE
