"""`itrust audit`: read, settle what is what, audit, tell, write."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import itrust as it
from itrust import recalibrate
from itrust.auditing import Audit, Comparison, Disclosure, Provenance
from itrust.cli.console import Log, answer, width
from itrust.cli.exit import CLOSED, DONE
from itrust.cli.inputs import Source, opened
from itrust.cli.outputs import Write, refuse_bad_places, text_writer, write_whole
from itrust.cli.roles import Roles, positive_value, settle
from itrust.data import MissingRule
from itrust.render import fitted, junit_xml, summary_markdown, told
from itrust.render.page import write

STDOUT = Path("-")
COMPARED = ("platt", "isotonic", "beta", "local")  # by --repair


@dataclass(frozen=True)
class Options:
    """What the options ask for, columns as they were typed."""

    file: str
    label: str | None
    probs: Sequence[str]
    on: Sequence[str]
    weights: str | None
    cluster: str | None
    positive: str | None
    missing: MissingRule
    tasks: Sequence[str]
    alpha: float
    tolerance: float
    draws: int
    seed: int
    min_cell: int
    repair: str | None
    outputs: dict[str, Path | None]
    gate: bool
    quiet: bool

    @property
    def to_stdout(self) -> bool:
        """Whether JSON takes the place of the page."""
        return self.outputs["--json"] == STDOUT

    @property
    def needs_facts(self) -> bool:
        """Whether the page or the JSON is asked for, which hold the charts, too."""
        return any(self.outputs[name] is not None for name in ("--json", "--report"))

    @property
    def files(self) -> dict[str, Path | None]:
        """Outputs that are files."""
        return {option: None if path == STDOUT else path for option, path in self.outputs.items()}


def run(options: Options) -> int:
    """Do all of it; the exit code."""
    log = Log(options.quiet)
    tasks = [it.tasks.parse(text) for text in options.tasks]  # before anything is read
    _refuse_bad_numbers(options)
    refuse_bad_places(options.files, [])
    with opened(options.file) as source, _told_in_the_result():
        refuse_bad_places(options.files, source.files)
        roles = settle(
            source,
            log,
            label=options.label,
            probs=options.probs,
            on=options.on,
            weights=options.weights,
            cluster=options.cluster,
            positive=options.positive,
        )
        covariates = _needed(source, tasks, roles)
        samples = read_samples(source, roles, covariates, options.positive, options.missing)
        audit, comparison = _judge(options, roles, samples, tasks, log)
        repairs = _repairs(options, roles, covariates, samples)
        made = Provenance(command(options, roles), source.name, source.checksum)
        whole = audit.extended(comparison=comparison, recalibration=repairs, provenance=made)
        shown = Disclosure(options.min_cell).apply(whole)
        facts = shown.to_dict() if options.needs_facts else {}
        write_whole(_writers(options, shown, facts))
    _tell(options, shown, facts)
    for option, path in options.files.items():
        if path is not None:
            log.say(f"{option[2:]} in {path}")
    return _gate(options, audit, roles, log)


def _refuse_bad_numbers(options: Options) -> None:
    if options.min_cell < 1:
        raise it.InputError(f"--min-cell must be at least 1 row, not {options.min_cell}")
    if options.seed < 0:
        raise it.InputError(f"--seed must not be negative, not {options.seed}")


@contextmanager
def _told_in_the_result() -> Iterator[None]:
    """Python's warnings off: the page and the JSON hold the same sentences as alarms and notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", it.AssumptionWarning)
        warnings.simplefilter("ignore", it.ApproximationWarning)
        yield


def _needed(source: Source, tasks: Sequence[it.tasks.Task], roles: Roles) -> tuple[str, ...]:
    """Covariates to judge on, then those that only tasks need."""
    for task in tasks:
        for name in sorted(task.names):
            source.require("--task", name)
            if name in (roles.label, *roles.probs):
                raise it.InputError(f"--task: {name!r} is the label or a probability, no covariate")
    more = (name for task in tasks for name in sorted(task.names))
    return tuple(dict.fromkeys([*roles.on, *more]))


def read_samples(
    source: Source,
    roles: Roles,
    covariates: Sequence[str],
    positive: str | None,
    missing: MissingRule,
) -> dict[str, it.Sample]:
    """One sample for each column of probabilities, on the same rows."""
    frame = source.table([*roles.used, *covariates])
    return {
        prob: it.Sample.from_frame(
            frame,
            label=roles.label,
            prob=prob,
            on=covariates,
            weights=roles.weights,
            cluster=roles.cluster,
            positive=positive_value(frame[roles.label], positive),
            missing=missing,
        )
        for prob in roles.probs
    }


def _judge(
    options: Options,
    roles: Roles,
    samples: dict[str, it.Sample],
    tasks: Sequence[it.tasks.Task],
    log: Log,
) -> tuple[Audit, Comparison | None]:
    first, *others = samples.values()
    settings: dict[str, Any] = {"alpha": options.alpha, "draws": options.draws, "rng": options.seed}
    audit = it.audit(
        first,
        tasks,
        on=roles.on,
        tolerance=options.tolerance,
        charts=options.needs_facts,
        progress=False if options.quiet else None,
        **settings,
    )
    if not others:
        return audit, None
    log.say(f"audited: {roles.probs[0]!r}, the first of {len(samples)} models; all are compared")
    return audit, it.compare(samples, tasks, on=roles.on, **settings)


def _repairs(
    options: Options, roles: Roles, covariates: Sequence[str], samples: dict[str, it.Sample]
) -> recalibrate.RecalibrationTable | None:
    """Repairs learned from another file, judged on the audited rows."""
    if options.repair is None:
        return None
    prob = roles.probs[0]
    with opened(options.repair) as source:
        refuse_bad_places(options.files, source.files)
        for name in (*roles.used, *covariates):
            if name not in roles.probs[1:]:
                source.require("--repair", name)
        one = replace(roles, probs=(prob,))
        learn = read_samples(source, one, covariates, options.positive, options.missing)[prob]
    chosen = {name: recalibrate.METHODS[name]() for name in COMPARED}
    return recalibrate.compare(
        chosen,
        learn.only(*roles.on),
        samples[prob].only(*roles.on),
        alpha=options.alpha,
        draws=options.draws,
        rng=options.seed,
    )


def command(options: Options, roles: Roles) -> str:
    """The command that makes this audit again, guesses and settings spelt out."""
    typed: list[tuple[str, object]] = [
        ("--label", roles.label),
        *(("--prob", name) for name in roles.probs),
        *(("--on", name) for name in roles.on),
        ("--weights", roles.weights),
        ("--cluster", roles.cluster),
        ("--positive", options.positive),
        *(("--task", text) for text in options.tasks),
        ("--repair", options.repair),
        ("--alpha", repr(options.alpha)),
        ("--tolerance", repr(options.tolerance)),
        ("--draws", options.draws),
        ("--seed", options.seed),
        ("--min-cell", options.min_cell),
        ("--missing", None if options.missing == "error" else options.missing),
    ]
    said = [str(part) for option in typed if option[1] is not None for part in option]
    return shlex.join(["itrust", "audit", options.file, *said])


def _writers(options: Options, shown: Audit, facts: dict[str, Any]) -> dict[Path, Write]:
    """What to write where; all of it renders the same values."""
    name = str(None if shown.provenance is None else shown.provenance.file)
    texts = {
        "--json": lambda: _as_json(facts),
        "--junit": lambda: junit_xml(shown, name),
        "--summary": lambda: summary_markdown(shown, name),
    }
    return {
        path: (lambda place: write(facts, place))
        if option == "--report"
        else text_writer(texts[option]())
        for option, path in options.files.items()
        if path is not None
    }


def _as_json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=2, allow_nan=False) + "\n"


def _tell(options: Options, shown: Audit, facts: dict[str, Any]) -> None:
    if options.to_stdout:
        answer(_as_json(facts).rstrip("\n"))
        return
    answer(told(shown, width()), shown.verdict.tone.terminal)
    if shown.comparison is not None:
        answer("\n" + fitted(str(shown.comparison), width()))
    if shown.recalibration is not None:
        title = f"RECALIBRATION  learned from {options.repair}"
        answer("\n" + fitted(f"{title}\n{shown.recalibration}", width()))


def _gate(options: Options, audit: Audit, roles: Roles, log: Log) -> int:
    if not options.gate:
        return DONE
    which = f" ({roles.probs[0]!r} is judged, the first --prob)" if len(roles.probs) > 1 else ""
    if audit.verdict.closes_gate:
        log.say(f"gate closed: {audit.verdict}{which}")
        return CLOSED
    why = "" if audit.verdict.conclusive else "; too few rows to tell, which is no proof of trust"
    log.say(f"gate open: {audit.verdict}{why}{which}")
    return DONE
