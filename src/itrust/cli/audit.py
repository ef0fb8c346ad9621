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
from itrust import recalibrate, report
from itrust.cli.gate import is_closed
from itrust.cli.guard import CLOSED, DONE
from itrust.cli.junit import junit_xml
from itrust.cli.outputs import Write, refuse_bad_places, text_writer, write_whole
from itrust.cli.roles import Roles, positive_value, settle
from itrust.cli.source import Source, opened
from itrust.cli.summary import summary_markdown
from itrust.cli.voice import Aside, answer, width
from itrust.intake import Missing
from itrust.telling import fitted, told

COLOURS = {
    "untrustworthy": "bold red",
    "untrustworthy, size unclear": "bold red",
    "not enough data": "bold yellow",
    "detectable, below material": "bold green",
    "no evidence against": "bold green",
}
STDOUT = Path("-")
COMPARED = ("platt", "isotonic", "beta", "local")  # by --repair


@dataclass(frozen=True)
class Wishes:
    """What the options ask for, columns as they were typed."""

    file: str
    label: str | None
    probs: Sequence[str]
    on: Sequence[str]
    weights: str | None
    cluster: str | None
    positive: str | None
    missing: Missing
    tasks: Sequence[str]
    level: float
    material: float
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
    def files(self) -> dict[str, Path | None]:
        """Outputs that are files."""
        return {option: None if path == STDOUT else path for option, path in self.outputs.items()}


@dataclass(frozen=True, eq=False)
class Found:
    """All that was found, and how to find it again."""

    audit: it.Audit
    comparison: it.Comparison | None
    repairs: recalibrate.RepairTable | None
    made: report.Remade


def run(wishes: Wishes) -> int:
    """Do all of it; the exit code."""
    aside = Aside(wishes.quiet)
    tasks = [it.grammar.parse(text) for text in wishes.tasks]  # before anything is read
    _refuse_bad_numbers(wishes)
    refuse_bad_places(wishes.files, [])
    with opened(wishes.file) as source, _told_in_the_result():
        refuse_bad_places(wishes.files, source.files)
        roles = settle(
            source,
            aside,
            label=wishes.label,
            probs=wishes.probs,
            on=wishes.on,
            weights=wishes.weights,
            cluster=wishes.cluster,
            positive=wishes.positive,
        )
        covariates = _needed(source, tasks, roles)
        samples = read_samples(source, roles, covariates, wishes.positive, wishes.missing)
        audit, comparison = _judge(wishes, roles, samples, tasks, aside)
        repairs = _repairs(wishes, roles, covariates, samples)
        made = report.Remade(command(wishes, roles), source.name, source.checksum, wishes.seed)
        found = Found(audit, comparison, repairs, made)
        facts = _facts(found, wishes.min_cell)
        write_whole(_writers(wishes, found, facts))
    _tell(wishes, found, facts)
    for option, path in wishes.files.items():
        if path is not None:
            aside.say(f"{option[2:]} in {path}")
    return _gate(wishes, audit, roles, aside)


def _refuse_bad_numbers(wishes: Wishes) -> None:
    if wishes.min_cell < 1:
        raise it.InputError(f"--min-cell must be at least 1 row, not {wishes.min_cell}")
    if wishes.seed < 0:
        raise it.InputError(f"--seed must not be negative, not {wishes.seed}")


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
    missing: Missing,
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
    wishes: Wishes,
    roles: Roles,
    samples: dict[str, it.Sample],
    tasks: Sequence[it.tasks.Task],
    aside: Aside,
) -> tuple[it.Audit, it.Comparison | None]:
    first, *others = samples.values()
    settings: dict[str, Any] = {"level": wishes.level, "draws": wishes.draws, "rng": wishes.seed}
    audit = it.audit(
        first,
        tasks,
        on=roles.on,
        material=wishes.material,
        progress=False if wishes.quiet else None,
        **settings,
    )
    if not others:
        return audit, None
    aside.say(f"audited: {roles.probs[0]!r}, the first of {len(samples)} models; all are compared")
    return audit, it.compare(samples, tasks, on=roles.on, **settings)


def _repairs(
    wishes: Wishes, roles: Roles, covariates: Sequence[str], samples: dict[str, it.Sample]
) -> recalibrate.RepairTable | None:
    """Repairs learned from another file, judged on the audited rows."""
    if wishes.repair is None:
        return None
    prob = roles.probs[0]
    with opened(wishes.repair) as source:
        refuse_bad_places(wishes.files, source.files)
        for name in (*roles.used, *covariates):
            if name not in roles.probs[1:]:
                source.require("--repair", name)
        one = replace(roles, probs=(prob,))
        learn = read_samples(source, one, covariates, wishes.positive, wishes.missing)[prob]
    chosen = {name: recalibrate.METHODS[name]() for name in COMPARED}
    return recalibrate.compare(
        chosen,
        learn.only(*roles.on),
        samples[prob].only(*roles.on),
        level=wishes.level,
        draws=wishes.draws,
        rng=wishes.seed,
    )


def command(wishes: Wishes, roles: Roles) -> str:
    """The command that makes this audit again, guesses and settings spelt out."""
    options: list[tuple[str, object]] = [
        ("--label", roles.label),
        *(("--prob", name) for name in roles.probs),
        *(("--on", name) for name in roles.on),
        ("--weights", roles.weights),
        ("--cluster", roles.cluster),
        ("--positive", wishes.positive),
        *(("--task", text) for text in wishes.tasks),
        ("--repair", wishes.repair),
        ("--level", repr(wishes.level)),
        ("--material", repr(wishes.material)),
        ("--draws", wishes.draws),
        ("--seed", wishes.seed),
        ("--min-cell", wishes.min_cell),
        ("--missing", None if wishes.missing == "error" else wishes.missing),
    ]
    said = [str(part) for option in options if option[1] is not None for part in option]
    return shlex.join(["itrust", "audit", wishes.file, *said])


def _facts(found: Found, min_cell: int) -> dict[str, Any]:
    whole = found.audit.to_dict()
    facts, _ = report.suppressed(whole, min_cell)
    discretion = report.Discretion.of(whole, min_cell)
    compared = None if found.comparison is None else discretion.reworded(found.comparison.to_dict())
    repaired = None if found.repairs is None else discretion.repairs(found.repairs.to_dict())
    about = {name: getattr(found.made, name) for name in ("command", "file", "sha256")}
    return {**facts, "made": about, "comparison": compared, "repair": repaired}


def _writers(wishes: Wishes, found: Found, facts: dict[str, Any]) -> dict[Path, Write]:
    audit, name = found.audit, str(found.made.file)
    words = report.Discretion.of(audit.to_dict(), wishes.min_cell).words

    def page(place: Path) -> None:
        report.write(
            audit,
            place,
            remade=found.made,
            repair=found.repairs,
            comparison=found.comparison,
            min_cell=wishes.min_cell,
        )

    texts = {
        "--json": lambda: _as_json(facts),
        "--junit": lambda: junit_xml(audit, name, words),
        "--summary": lambda: summary_markdown(audit, name, facts, words),
    }
    return {
        path: page if option == "--report" else text_writer(texts[option]())
        for option, path in wishes.files.items()
        if path is not None
    }


def _as_json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=2, allow_nan=False) + "\n"


def _tell(wishes: Wishes, found: Found, facts: dict[str, Any]) -> None:
    if wishes.to_stdout:
        answer(_as_json(facts).rstrip("\n"))
        return
    answer(told(found.audit, width()), COLOURS.get(found.audit.verdict.name, ""))
    if found.comparison is not None:
        answer("\n" + fitted(str(found.comparison), width()))
    if found.repairs is not None:
        answer("\n" + fitted(f"REPAIRS  learned from {wishes.repair}\n{found.repairs}", width()))


def _gate(wishes: Wishes, audit: it.Audit, roles: Roles, aside: Aside) -> int:
    if not wishes.gate:
        return DONE
    which = f" ({roles.probs[0]!r} is judged, the first --prob)" if len(roles.probs) > 1 else ""
    if is_closed(audit.verdict):
        aside.say(f"gate closed: {audit.verdict.name}{which}")
        return CLOSED
    too_few = audit.verdict.name == "not enough data"
    why = "; too few rows to show anything, which is no proof of trust" if too_few else ""
    aside.say(f"gate open: {audit.verdict.name}{why}{which}")
    return DONE
