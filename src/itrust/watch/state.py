"""A watch as the text of its file: small, versioned, exact."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from itrust import __version__
from itrust._core import MAX_JSON_BYTES, InputError, strict_json
from itrust.watch.components import CheckPanel, WatchCheck
from itrust.watch.packing import packed_array, packed_level, packed_predicate, packed_term
from itrust.watch.reading import FilePlace
from itrust.watch.results import BatchRecord, Onset, Segment
from itrust.watch.sequences import LeafSequence, SumSequence, TaskSequence, numbers_of
from itrust.watch.wealth import PanelWealth

if TYPE_CHECKING:
    from itrust.watch.watching import Watch

SCHEMA = "itrust-watch/1"
MAX_SEED = 2**64 - 1
MAX_SOURCE = 1_000_000  # characters of what the maker of a watch keeps with it


def text_of(watch: Watch) -> str:
    """The whole text of a file."""
    schema = watch.schema
    source = json.dumps(watch.source, allow_nan=False)
    if len(source) > MAX_SOURCE:
        raise InputError(
            "what is kept with a watch has at most {most} characters of JSON, not {value}",
            argument="source",
            value=len(source),
            details={"most": MAX_SOURCE},
        )
    facts = {
        "schema": SCHEMA,
        "version": __version__,
        "alpha": watch.alpha,
        "tolerance": watch.tolerance,
        "promise": str(watch.promise),
        "seed": watch.seed,
        "columns": [list(column) for column in schema.columns],
        "classes": [packed_level(name) for name in schema.classes],
        "positive": packed_level(schema.positive),
        "weighted": schema.weighted,
        "clustered": schema.clustered,
        "largest_weight": schema.largest_weight,
        "panels": [
            _panel(panel, own) for panel, own in zip(watch.panels, watch.wealth, strict=True)
        ],
        "tasks": [_sequence(own) for own in watch.sequences],
        "history": [_record(record) for record in watch.history],
        "segments": [_segment(segment) for segment in watch.segments],
        "source": watch.source,
    }
    try:
        text = json.dumps(facts, allow_nan=False, separators=(",", ":")) + "\n"
    except ValueError:
        raise InputError(
            "a file cannot hold this watch: sums of its rows are not finite; take other units for "
            "weights and covariates",
            argument="path",
        ) from None
    _refuse_unreadable(text)
    return text


def _refuse_unreadable(text: str) -> None:
    """What is written must be read again: refuse it before it replaces what can be."""
    from itrust.watch.loading import watch_in

    if len(text) > MAX_JSON_BYTES:  # all of it is ASCII
        raise InputError(
            "the state of this watch has {value} bytes, and one of more than {most} bytes is not "
            "read again; watch fewer classes or fewer covariates, or begin a new watch",
            argument="path",
            value=len(text),
            details={"most": MAX_JSON_BYTES},
        )
    try:
        watch_in(FilePlace(strict_json(text)))
    except InputError as error:
        raise InputError(
            f"a file cannot hold this watch: {error.problem}",
            argument="path",
            details=error.details,
        ) from None


def _log(value: float) -> float | str:
    """A logarithm; infinities are words."""
    if math.isfinite(value):
        return value
    return "infinite" if value > 0 else "nothing"


def _check(check: WatchCheck) -> dict[str, Any]:
    return {
        "name": check.name,
        "family": check.family,
        "covariates": list(check.covariates),
        "shape": check.shape.value,
        "where": packed_predicate(check.where),
        "parts": [[packed_term(term), centre] for term, centre in check.parts],
        "span": check.span,
    }


def _panel(panel: CheckPanel, own: PanelWealth) -> dict[str, Any]:
    return {
        "label": packed_level(panel.label),
        "checks": [_check(check) for check in panel.checks],
        "weights": packed_array(panel.weights),
        "scales": [
            [name, packed_array(scale.knots), packed_array(scale.heights)]
            for name, scale in panel.scales.items()
        ],
        "joint": list(panel.joint),
        "bets": packed_array(own.log_bets),
        "moved": packed_array(own.log_moved),
        "peaks": packed_array(own.peaks),
        "sides": packed_array(own.sides),
        "rows": packed_array(own.rows),
        "scores": packed_array(own.known.scores),
        "information": packed_array(own.known.information),
        "block_starts": list(own.blocks.first),
        "block_sums": packed_array(own.blocks.sums),
    }


def _sequence(own: TaskSequence) -> dict[str, Any]:
    return {
        "task": own.task.formula,
        "batches": own.batches,
        "rows": own.rows,
        "leaves": [_leaf(leaf) for leaf in own.leaves],
    }


def _leaf(own: LeafSequence) -> dict[str, Any]:
    numbers = {
        name: value if math.isfinite(value) else None for name, value in numbers_of(own).items()
    }
    return {"above": _sums(own.above), "below": _sums(own.below), **numbers}


def _sums(own: SumSequence) -> list[float]:
    return [own.bound, own.total, own.squares, own.hoeffding]


def _record(record: BatchRecord) -> dict[str, Any]:
    logs = {"log_evalue": _log(record.log_evalue), "log_peak": _log(record.log_peak)}
    return {**asdict(record), **logs}


def _onset(since: Onset | None) -> dict[str, Any] | None:
    return None if since is None else {**asdict(since), "label": packed_level(since.label)}


def _segment(segment: Segment) -> dict[str, Any]:
    alarms = [
        {
            "batch": alarm.batch,
            "log_evalue": _log(alarm.log_evalue),
            "since": _onset(alarm.since),
        }
        for alarm in segment.alarms
    ]
    return {**asdict(segment), "alarms": alarms}
