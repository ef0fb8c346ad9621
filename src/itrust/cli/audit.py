"""`itrust audit`: read, settle what is what, audit, tell, write."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import itrust as it
from itrust.cli.cells import without_small_cells
from itrust.cli.gate import is_closed
from itrust.cli.guard import CLOSED, DONE
from itrust.cli.junit import junit_xml
from itrust.cli.outputs import Write, refuse_bad_places, text_writer, write_whole
from itrust.cli.page import Made, write_page
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
        made = Made(command(wishes, roles), source.name, source.checksum, wishes.seed)
        facts = _facts(audit, comparison, made, wishes.min_cell)
        write_whole(_writers(wishes, audit, made, facts))
    _tell(wishes, audit, comparison, facts)
    for option, path in wishes.files.items():
        if path is not None:
            aside.say(f"{option[2:]} in {path}")
    return _gate(wishes, audit, roles, aside)


def _refuse_bad_numbers(wishes: Wishes) -> None:
    if wishes.min_cell < 0:
        raise it.InputError(f"--min-cell must not be negative, not {wishes.min_cell}")
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
        ("--level", f"{wishes.level:g}"),
        ("--material", f"{wishes.material:g}"),
        ("--draws", wishes.draws),
        ("--seed", wishes.seed),
        ("--missing", None if wishes.missing == "error" else wishes.missing),
    ]
    said = [str(part) for option in options if option[1] is not None for part in option]
    return shlex.join(["itrust", "audit", wishes.file, *said])


def _facts(
    audit: it.Audit, comparison: it.Comparison | None, made: Made, min_cell: int
) -> dict[str, Any]:
    found = without_small_cells(audit.to_dict(), min_cell)
    compared = None if comparison is None else comparison.to_dict()
    about = {"command": made.command, "file": made.file, "sha256": made.sha256}
    return {**found, "made": about, "comparison": compared}


def _writers(
    wishes: Wishes, audit: it.Audit, made: Made, facts: dict[str, Any]
) -> dict[Path, Write]:
    texts = {
        "--json": lambda: _as_json(facts),
        "--junit": lambda: junit_xml(audit, made.file),
        "--summary": lambda: summary_markdown(audit, made.file, wishes.min_cell),
    }
    found: dict[Path, Write] = {}
    for option, path in wishes.files.items():
        if path is not None and option == "--report":
            found[path] = lambda place: write_page(audit, place, made, wishes.min_cell)
        elif path is not None:
            found[path] = text_writer(texts[option]())
    return found


def _as_json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=2, allow_nan=False) + "\n"


def _tell(
    wishes: Wishes, audit: it.Audit, comparison: it.Comparison | None, facts: dict[str, Any]
) -> None:
    if wishes.to_stdout:
        answer(_as_json(facts).rstrip("\n"))
        return
    answer(told(audit, width()), COLOURS.get(audit.verdict.name, ""))
    if comparison is not None:
        answer("\n" + fitted(str(comparison), width()))


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
