"""A watch made again from its file, and refused where its parts do not fit each other."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from itrust._core import InputError
from itrust.data import Between, Everywhere, Level, Missing, Predicate, all_of
from itrust.tasks import Ratio, parse
from itrust.terms import Absent, ColumnName, Curve, Inside, Is, Shape, Slope, Term, UnitScale
from itrust.watch.batches import BatchSchema
from itrust.watch.bets import MEMORIES, RIDGES, STAKES, Recalibrations
from itrust.watch.components import SHARES, CheckPanel, WatchCheck
from itrust.watch.results import BatchRecord, Onset, Promise, RaisedAlarm, Segment
from itrust.watch.sequences import LeafSequence, SumSequence, TaskSequence, numbers_of
from itrust.watch.state import KINDS, MAX_SEED, MAX_SOURCE, SCHEMA, FilePlace, place_in
from itrust.watch.watching import Watch
from itrust.watch.wealth import MAX_BLOCKS, Blocks, PanelWealth

MAX_PANELS, MAX_PANEL_CHECKS, MAX_PARTS = 100_000, 400, 4
MAX_DEPTH = 3  # of predicates within each other


def loaded_watch(path: Path) -> Watch:
    """Read a watch from a file."""
    try:
        whole = place_in(path)
        whole["schema"].word(SCHEMA)
        return watch_in(whole)
    except InputError as error:
        raise (error if error.file else error.at(file=str(path))) from None


def watch_in(whole: FilePlace) -> Watch:
    """Make a watch of what a file says; refuse what does not fit."""
    schema = _schema(whole)
    promise = Promise(whole["promise"].word(*(str(word) for word in Promise)))
    tolerance = whole["tolerance"].maybe(lambda own: own.number(1e-300, 1 - 1e-12))
    segments = tuple(_segment(own, k) for k, own in enumerate(whole["segments"].entries()))
    history = tuple(_record(own, k + 1) for k, own in enumerate(whole["history"].entries()))
    _refuse_gaps(whole, segments, history)
    panels, wealth = [], []
    batches = segments[-1].batches
    own_panels = whole["panels"].entries(len(schema.labels))
    for own, label in zip(own_panels, schema.labels, strict=True):
        panel = _panel(own, label, schema)
        panels.append(panel)
        wealth.append(_wealth(own, panel, batches, moved=tolerance is None))
    source = whole["source"]
    if not isinstance(source.value, dict) or len(json.dumps(source.value)) > MAX_SOURCE:
        source.refuse(f"a record of at most {MAX_SOURCE:,} characters")
    return Watch(
        whole["alpha"].number(1e-300, 0.5 - 1e-12),
        tolerance,
        promise,
        whole["seed"].whole(0, MAX_SEED),
        schema,
        tuple(panels),
        tuple(wealth),
        tuple(_sequence(own, schema) for own in whole["tasks"].entries()),
        history,
        segments,
        source.value,
    )


def _schema(whole: FilePlace) -> BatchSchema:
    columns = tuple(
        (own[0].text(), own[1].word(*KINDS))
        for own in (column.entries(2) for column in whole["columns"].entries())
    )
    names = [name for name, _ in columns]
    if len(set(names)) < len(names):
        whole["columns"].refuse("a list of columns with different names")
    classes = tuple(own.level() for own in whole["classes"].entries())
    if len(classes) > MAX_PANELS or len(classes) == 1 or len(set(classes)) < len(classes):
        whole["classes"].refuse("a list of different classes, or an empty one")
    return BatchSchema(
        columns,
        classes,
        whole["positive"].level(),
        whole["weighted"].flag(),
        whole["clustered"].flag(),
        whole["largest_weight"].number(1e-300),
    )


def _segment(own: FilePlace, number: int) -> Segment:
    return Segment(
        own["number"].whole(number, number),
        own["name"].maybe(lambda name: name.text(200)),
        own["first"].whole(1),
        own["batches"].whole(0),
        own["reference_rows"].whole(1),
        own["reference_digest"].text(64),
        tuple(
            RaisedAlarm(
                alarm["batch"].whole(1), alarm["log_evalue"].log(), alarm["since"].maybe(_onset)
            )
            for alarm in own["alarms"].entries()
        ),
    )


def _onset(own: FilePlace) -> Onset:
    return Onset(
        own["batch"].whole(1),
        own["lower"].whole(1),
        own["upper"].whole(1),
        own["name"].maybe(lambda name: name.text(200)),
        own["check"].text(),
        own["label"].level(),
    )


def _record(own: FilePlace, number: int) -> BatchRecord:
    return BatchRecord(
        own["number"].whole(number, number),
        own["name"].maybe(lambda name: name.text(200)),
        own["rows"].whole(1),
        own["mean_label"].number(-1e-9, 1 + 1e-9),
        own["mean_prediction"].number(-1e-9, 1 + 1e-9),
        own["log_evalue"].log(),
        own["log_peak"].log(),
        own["segment"].whole(0),
        own["late"].flag(),
        own["digest"].text(64),
        own["start"].maybe(lambda at: at.text(100)),
        own["end"].maybe(lambda at: at.text(100)),
        own["impossible"].whole(0),
        own["raised"].flag(),
    )


def _refuse_gaps(
    whole: FilePlace, segments: tuple[Segment, ...], history: tuple[BatchRecord, ...]
) -> None:
    """Segments must follow each other and hold all batches."""
    if not segments:
        whole["segments"].refuse("a list of one segment or more")
    first = 1
    for segment in segments:
        own = history[first - 1 : first - 1 + segment.batches]
        alarms = [record.number for record in own if record.raised]
        fits = (
            segment.first == first
            and len(own) == segment.batches
            and all(record.segment == segment.number for record in own)
            and alarms == [alarm.batch for alarm in segment.alarms]
        )
        if not fits:
            whole["segments"].refuse("a list of segments that fits the history")
        first += segment.batches
    if first != len(history) + 1:
        whole["history"].refuse("a list of the batches of all segments")


def _panel(own: FilePlace, label: Any, schema: BatchSchema) -> CheckPanel:
    if own["label"].level() != label:
        own["label"].refuse(f"{label!r}")
    kinds = dict(schema.columns)
    checks = tuple(_check(check, kinds) for check in own["checks"].entries())
    if not 1 <= len(checks) <= MAX_PANEL_CHECKS or checks[0].parts:
        own["checks"].refuse("a list of checks, the overall level first")
    weights = own["weights"].array((len(checks),))
    if (weights <= 0).any() or not math.isclose(weights.sum(), 1, rel_tol=1e-9):
        own["weights"].refuse("an array of positive numbers that sum to 1")
    joint = tuple(k.whole(0, len(checks) - 1) for k in own["joint"].entries())
    if len(set(joint)) < len(joint) or len(joint) > 100:
        own["joint"].refuse("a list of different checks")
    scales: dict[ColumnName, UnitScale] = {}
    for part in own["scales"].entries():
        column, knots, fractions = part.entries(3)
        name = column.maybe(lambda text: text.word(*kinds))
        scales[name] = _scale(knots, fractions)
    read = {term.column for check in checks for term, _ in check.parts}
    wanted = {name for name in read if name is None or kinds[name] != "category"}
    if not wanted | {None} <= set(scales):
        own["scales"].refuse("a list of the scales of all numbers that checks read")
    return CheckPanel(label, checks, weights, scales, joint)


def _scale(knots: FilePlace, fractions: FilePlace) -> UnitScale:
    size = len(knots["shape"].entries(1)) and knots["shape"].entries(1)[0].whole(1, 10_000)
    values, shares = knots.array((size,)), fractions.array((size,))
    inside = (shares > 0).all() and (shares < 1).all() and (np.diff(shares) > 0).all()
    if not inside or not (np.diff(values) > 0).all():
        fractions.refuse("an array that rises within (0, 1), beside knots that rise")
    return UnitScale(values, shares)


def _check(own: FilePlace, kinds: dict[str, str]) -> WatchCheck:
    parts = []
    for part in own["parts"].entries():
        term, centre = part.entries(2)
        parts.append((_term(term, kinds), centre.number()))
    if len(parts) > MAX_PARTS:
        own["parts"].refuse(f"a list of at most {MAX_PARTS} functions")
    return WatchCheck(
        own["name"].text(),
        own["family"].word("overall", *SHARES),
        tuple(name.word(*kinds) for name in own["covariates"].entries()),
        Shape(own["shape"].word(*(shape.value for shape in Shape))),
        _predicate(own["where"], kinds),
        tuple(parts),
        own["span"].number(1e-100),
    )


def _term(own: FilePlace, kinds: dict[str, str]) -> Term:
    kind, column, *more = own.entries(least=2)
    name = column.maybe(lambda text: text.word(*kinds))
    match kind.word("line", "curve", "slope", "within", "is", "absent"), more:
        case "line", []:
            _refuse_category(column, kinds)
            return Curve(name, 1)
        case "curve", [order]:
            _refuse_category(column, kinds)
            return Curve(name, order.whole(2, 3))
        case "slope", [] if name is None:
            return Slope()
        case "within", [low, high] if name is not None:
            _refuse_category(column, kinds)
            return Inside(name, _end(low, -math.inf), _end(high, math.inf))
        case "is", [level] if name is not None:
            return Is(name, level.level())
        case "absent", [] if name is not None:
            return Absent(name)
    return own.refuse("a function of a column")


def _refuse_category(column: FilePlace, kinds: dict[str, str]) -> None:
    if column.value is not None and kinds[column.value] == "category":
        column.refuse("a number's column")


def _end(own: FilePlace, otherwise: float) -> float:
    found = own.maybe(lambda end: end.number(-1e300, 1e300))
    return otherwise if found is None else found


def _predicate(own: FilePlace, kinds: dict[str, str], depth: int = 1) -> Predicate:
    kind, *more = own.entries(least=1)
    match kind.word("everywhere", "level", "missing", "between", "and"), more:
        case "everywhere", []:
            return Everywhere()
        case "level", [name, level]:
            return Level(name.word(*kinds), level.level())
        case "missing", [name]:
            return Missing(name.word(*kinds))
        case "between", [name, low, high, text, holds]:
            ends = _end(low, -math.inf), _end(high, math.inf)
            held: Any = holds.word(*KINDS)
            return Between(name.word(*kinds), *ends, text.text(), held)
        case "and", [_, _, *_] if depth < MAX_DEPTH:
            return all_of([_predicate(part, kinds, depth + 1) for part in more])
    return own.refuse("a condition")


def _wealth(own: FilePlace, panel: CheckPanel, batches: int, *, moved: bool) -> PanelWealth:
    checks, joint = len(panel.checks), len(panel.joint)
    bets = len(MEMORIES) * len(RIDGES) if moved else 0
    starts = tuple(start.whole(1) for start in own["block_starts"].entries())
    inside = all(a < b for a, b in pairwise(starts))
    if len(starts) > MAX_BLOCKS or not inside or (starts and starts[-1] > batches):
        own["block_starts"].refuse("a list of batches in order")
    information = own["information"].array((len(MEMORIES), joint, joint))
    lowest = [float(np.linalg.eigvalsh(one).min(initial=0.0)) for one in information]
    if min(lowest) < -1e-6 * max(float(np.abs(information).max(initial=0.0)), 1.0):
        own["information"].refuse("an array of matrices that are positive")
    rows = own["rows"].array((checks,))
    if (rows < 0).any() or (rows != np.round(rows)).any():
        own["rows"].refuse("an array of numbers of rows")
    sides = own["sides"].array((checks,))
    if (np.abs(sides) != 1).any():
        own["sides"].refuse("an array of 1 and -1")
    return PanelWealth(
        own["bets"].array((2, checks, STAKES.size), logs=True),
        own["moved"].array((bets,), logs=True),
        own["peaks"].array((checks,), logs=True),
        sides,
        Recalibrations(own["scores"].array((len(MEMORIES), joint)), information),
        Blocks(starts, own["block_sums"].array((len(starts), 3, 2, checks)).astype(np.float32)),
        rows,
    )


def _sequence(own: FilePlace, schema: BatchSchema) -> TaskSequence:
    text = own["task"].text()
    task = parse(text)
    leaves = tuple(dict.fromkeys(task.leaves()))
    unknown = sorted(task.names - set(schema.names))
    if unknown or not leaves or not all(isinstance(leaf, Ratio) for leaf in leaves):
        own["task"].refuse("a task of means, shares and rates of the columns")
    if any(leaf.label not in schema.labels for leaf in leaves):
        own["task"].refuse("a task of the classes")
    entries = own["leaves"].entries(len(leaves))
    found = []
    for leaf, entry in zip(leaves, entries, strict=True):
        empty = LeafSequence(leaf, 0.0, SumSequence(1.0), SumSequence(1.0))
        numbers = {name: _end(entry[name], value) for name, value in numbers_of(empty).items()}
        found.append(
            LeafSequence(leaf, above=_sums(entry["above"]), below=_sums(entry["below"]), **numbers)
        )
    return TaskSequence(task, tuple(found), own["batches"].whole(0), own["rows"].whole(0))


def _sums(own: FilePlace) -> SumSequence:
    bound, total, squares, hoeffding = own.entries(4)
    return SumSequence(bound.number(1e-100), total.number(), squares.number(0), hoeffding.number(0))
