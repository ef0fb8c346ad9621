"""The file of a watch: what it holds, described once, written and read by the description.

It is small, versioned and exact: a watch that is read goes on to the bit. It is read as input of
strangers is: whatever does not fit is refused in a sentence with its place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, get_args

import numpy as np

from itrust import __version__
from itrust._core import (
    MAX_JSON_BYTES,
    Array,
    Code,
    FloatArray,
    InputError,
    JSONRecord,
    ListOf,
    ListWith,
    Made,
    Maybe,
    Number,
    OneKind,
    OneWord,
    Record,
    SavedLevel,
    Text,
    Whole,
    inside,
    json_of,
    mended_by,
    same_size,
    strict_json,
    tuple_of,
    unfit,
)
from itrust.data import And, Between, Everywhere, Level, Missing
from itrust.tasks import Ratio, parse
from itrust.terms import Absent, ColumnName, Curve, Inside, Is, Slope, Term, UnitScale
from itrust.watch.batches import BatchSchema
from itrust.watch.bets import MAX_BLOCKS, Blocks, PanelWealth, Recalibrations
from itrust.watch.components import MAX_CHECKS, SHARES, CheckPanel, WatchCheck
from itrust.watch.results import BatchRecord, Onset, Promise, Segment
from itrust.watch.sequences import LeafSequence, SumSequence, TaskSequence
from itrust.watch.watching import Watch

SCHEMA = "itrust-watch/2"
MAX_SOURCE = 1_000_000  # characters of what the maker of a watch keeps with it
MAX_PANELS, MAX_PARTS, MAX_JOINT, MAX_KNOTS = 100_000, 4, 100, 10_000
KINDS = ("number", "boolean", "date", "category")

LEVEL, NAME, DIGEST, MOMENT = Maybe(SavedLevel()), Maybe(Text(200)), Text(64), Maybe(Text(100))
POSITIVE, MEAN, SIZE = Number(1e-100), Number(-1e-9, 1 + 1e-9), Whole(1)
EXTENDED, END = Number(infinite=True), Number(-1e300, 1e300, infinite=True)

TERM = OneKind(
    {
        "curve": Record.of(Curve, order=Whole(1, 3), where=None),
        "slope": Record.of(Slope, column=None, where=None),
        "inside": Record.of(Inside, column=Text(), low=END, high=END, where=None),
        "is": Record.of(Is, column=Text(), level=SavedLevel(), where=None),
        "absent": Record.of(Absent, column=Text(), where=None),
    }
)
CONDITIONS = {
    "everywhere": Record.of(Everywhere),
    "level": Record.of(Level, level=SavedLevel()),
    "missing": Record.of(Missing),
    "between": Record.of(Between, low=END, high=END, holds=OneWord(KINDS)),
}
BOTH = Record.of(And, parts=tuple_of(OneKind(CONDITIONS), at_least=2))
CHECK = Record.of(
    WatchCheck,
    family=OneWord(("overall", *SHARES)),
    where=OneKind({**CONDITIONS, "and": BOTH}),
    parts=tuple_of(ListWith((TERM, Number())), at_most=MAX_PARTS),
    span=POSITIVE,
)
SCALE = Record.of(UnitScale, knots=Array(), heights=Array())
PANEL = Record.of(
    CheckPanel,
    checks=tuple_of(CHECK, at_least=1, at_most=MAX_CHECKS),
    weights=Array(),
    scales=Made(ListOf(ListWith((Maybe(Text()), SCALE))), dict, dict.items),
    joint=tuple_of(Whole(), at_most=MAX_JOINT),
)
BETS = Record.of(
    PanelWealth,
    panel=PANEL,
    log_bets=Array(3, logs=True),
    log_moved=Array(1, logs=True),
    peaks=Array(1, logs=True),
    sides=Array(),
    known=Record.of(Recalibrations, scores=Array(2), information=Array(3)),
    blocks=Record.of(Blocks, first=tuple_of(SIZE, at_most=MAX_BLOCKS), sums=Array(4)),
    rows=Array(),
)
SUMS = Record.of(SumSequence, bound=POSITIVE, squares=Number(0), hoeffding=Number(0))
LEAF = Record.of(
    LeafSequence, leaf=None, above=SUMS, below=SUMS, smallest=EXTENDED, largest=EXTENDED
)
TASK = Made(Text(), parse, lambda task: task.formula)
SEQUENCE = Record.of(TaskSequence, task=TASK, leaves=ListOf(Record(LEAF.entries)))
ONSET = Record.of(Onset, batch=SIZE, lower=SIZE, upper=SIZE, name=NAME, label=LEVEL)
SEGMENT = Record.of(Segment, name=NAME, first=SIZE, reference_rows=SIZE, reference_digest=DIGEST)
BATCH = Record.of(
    BatchRecord,
    number=SIZE,
    name=NAME,
    rows=SIZE,
    mean_label=MEAN,
    mean_prediction=MEAN,
    log_evalue=EXTENDED,
    log_peak=EXTENDED,
    digest=DIGEST,
    start=MOMENT,
    end=MOMENT,
    since=Maybe(ONSET),
)
INPUTS = Record.of(
    BatchSchema,
    columns=tuple_of(Made(ListWith((Text(), OneWord(KINDS))), tuple, list)),
    classes=tuple_of(LEVEL, at_most=MAX_PANELS),
    largest_weight=Number(1e-300),
)
FILE = Record(
    {
        "schema": OneWord((SCHEMA,)),
        "version": Text(),
        "alpha": Number(1e-300, 0.5 - 1e-12),
        "tolerance": Maybe(Number(1e-300, 1 - 1e-12)),
        "promise": OneWord(get_args(Promise)),
        "inputs": INPUTS,
        "wealth": tuple_of(BETS),
        "sequences": ListOf(Record(SEQUENCE.entries)),
        "history": tuple_of(BATCH),
        "segments": tuple_of(SEGMENT, at_least=1),
        "source": JSONRecord(MAX_SOURCE),
    }
)
CURE = "give a file that {} wrote", Code("Watch.save", "itrust watch")


def text_of(watch: Watch) -> str:
    """The whole text of a file; refuses a watch that could not be read again."""
    facts = {**vars(watch), "schema": SCHEMA, "version": __version__, "inputs": watch.schema}
    try:
        text = json.dumps(FILE.write(facts), allow_nan=False, separators=(",", ":")) + "\n"
    except ValueError:
        raise InputError(
            "a file cannot hold this watch: sums of its rows are not finite; take other units for "
            "weights and covariates",
            argument="path",
        ) from None
    if len(text) > MAX_JSON_BYTES:  # all of it is ASCII
        raise InputError(
            "the state of this watch has {value} bytes, and one of more than {most} bytes is not "
            "read again; watch fewer classes or fewer covariates, or begin a new watch",
            argument="path",
            value=len(text),
            most=MAX_JSON_BYTES,
        )
    try:
        watch_of(strict_json(text))
    except InputError as error:
        problem = f"a file cannot hold this watch: {error.problem}"
        raise InputError(problem, argument="path", details=error.details) from None
    return text


def loaded_watch(path: Path) -> Watch:
    """Read a watch from a file."""
    try:
        with mended_by(*CURE):
            return watch_of(json_of(path))
    except InputError as error:
        raise error.at(argument="path", file=str(path)) from None


def watch_of(facts: Any) -> Watch:
    """Make a watch of what a file says; refuse what does not fit."""
    if isinstance(facts, dict) and "schema" in facts:  # before what other schemas have
        FILE.entries["schema"].read(facts["schema"], "schema")
    found = FILE.read(facts, "")
    del found["version"]
    found["schema"] = found.pop("inputs")
    found["sequences"] = tuple(
        _sequence(own, inside("sequences", k), found["schema"])
        for k, own in enumerate(found["sequences"])
    )
    watch = Watch(**found)
    _refuse_columns(watch.schema)
    _refuse_gaps(watch)
    labels = watch.schema.labels
    same_size("wealth", len(watch.wealth), "the classes", len(labels))
    for k, (own, label) in enumerate(zip(watch.wealth, labels, strict=True)):
        place = inside("wealth", k)
        _refuse_panel(own.panel, label, dict(watch.schema.columns), f"{place}.panel")
        _refuse_bets(own, watch, place)
    return watch


def _refuse_columns(schema: BatchSchema) -> None:
    if len(set(schema.names)) < len(schema.names):
        unfit("inputs.columns", "must have different names")
    if len(schema.classes) == 1 or len(set(schema.classes)) < len(schema.classes):
        unfit("inputs.classes", "must be two or more different classes, or none")


def _refuse_gaps(watch: Watch) -> None:
    """Segments must follow each other and hold all batches."""
    if [record.number for record in watch.history] != [*range(1, len(watch.history) + 1)]:
        unfit("history", "must count its batches from 1")
    first = 1
    for number, segment in enumerate(watch.segments):
        own = watch.history[first - 1 : first - 1 + segment.batches]
        told = segment.number, segment.first, segment.batches
        if told != (number, first, len(own)) or {record.segment for record in own} - {number}:
            unfit("segments", "must be a list of segments that fits the history")
        first += segment.batches
    if first != len(watch.history) + 1:
        unfit("history", "must be the batches of all segments")


def _refuse_panel(panel: CheckPanel, label: Any, kinds: dict[str, str], place: str) -> None:
    if panel.label != label:
        unfit(f"{place}.label", f"must be {label!r}")
    if panel.checks[0].parts:
        unfit(f"{place}.checks", "must begin with the overall level")
    for k, check in enumerate(panel.checks):
        names = {*check.covariates, *check.where.names, *_columns_of([check])} - {None}
        if not names <= set(kinds):
            unfit(inside(f"{place}.checks", k), "must read columns of the watch")
    numbers = _columns_of(panel.checks, Curve, Inside)
    if any(kinds.get(str(name)) == "category" for name in numbers - {None}):
        unfit(f"{place}.checks", "must read numbers as numbers, and categories by their levels")
    wanted = {name for name in _columns_of(panel.checks) if kinds.get(str(name)) != "category"}
    if not wanted | {None} <= set(panel.scales):
        unfit(f"{place}.scales", "must be the scales of all numbers that checks read")
    for scale in panel.scales.values():
        shares = scale.heights
        rises = (np.diff(shares) > 0).all() and (np.diff(scale.knots) > 0).all()
        sized = 0 < shares.size == scale.knots.size <= MAX_KNOTS
        if not sized or not rises or not ((shares > 0) & (shares < 1)).all():
            unfit(f"{place}.scales", "must be heights that rise within (0, 1), and rising knots")
    _refuse_shape(panel.weights, (len(panel.checks),), f"{place}.weights")
    if (panel.weights <= 0).any() or not math.isclose(panel.weights.sum(), 1, rel_tol=1e-9):
        unfit(f"{place}.weights", "must be positive numbers that sum to 1")
    if len(set(panel.joint)) < len(panel.joint) or max(panel.joint, default=0) >= len(panel.checks):
        unfit(f"{place}.joint", "must be different checks")


def _columns_of(checks: Sequence[WatchCheck], *kinds: type[Term]) -> set[ColumnName]:
    """Columns that the functions of checks read: all functions, or those of some kinds."""
    return {term.column for c in checks for term, _ in c.parts if isinstance(term, kinds or Term)}


def _refuse_bets(own: PanelWealth, watch: Watch, place: str) -> None:
    begun = PanelWealth.begun(own.panel, watch.promise, moved=watch.tolerance is None)
    arrays = "log_bets", "log_moved", "peaks", "sides", "rows"
    for name in (*arrays, "known.scores", "known.information"):
        read = attrgetter(name)
        _refuse_shape(read(own), read(begun).shape, f"{place}.{name}")
    starts = own.blocks.first
    shape = len(starts), *begun.blocks.sums.shape[1:]
    _refuse_shape(own.blocks.sums, shape, f"{place}.blocks.sums")
    in_order = all(a < b for a, b in pairwise(starts))
    if not in_order or (starts and starts[-1] > watch.segments[-1].batches):
        unfit(f"{place}.blocks.first", "must be batches in order")
    information = own.known.information
    lowest = min(float(np.linalg.eigvalsh(one).min(initial=0.0)) for one in information)
    if lowest < -1e-6 * max(float(np.abs(information).max(initial=0.0)), 1.0):
        unfit(f"{place}.known.information", "must be matrices that are positive")
    if (own.rows < 0).any() or (own.rows != np.round(own.rows)).any():
        unfit(f"{place}.rows", "must be numbers of rows")
    if (np.abs(own.sides) != 1).any():
        unfit(f"{place}.sides", "must be 1 or -1")


def _refuse_shape(array: FloatArray, shape: tuple[int, ...], place: str) -> None:
    if array.shape != shape:
        unfit(place, f"must be an array of shape {list(shape)}, not {list(array.shape)}")


def _sequence(found: dict[str, Any], place: str, schema: BatchSchema) -> TaskSequence:
    """The sums behind a number, each with its leaf."""
    task = found["task"]
    leaves = tuple(dict.fromkeys(task.leaves()))
    ratios = [leaf for leaf in leaves if isinstance(leaf, Ratio)]
    if not leaves or len(ratios) < len(leaves) or not task.names <= set(schema.names):
        unfit(f"{place}.task", "must be a task of means, shares and rates of the columns")
    if any(leaf.label not in schema.labels for leaf in ratios):
        unfit(f"{place}.task", "must be a task of the classes")
    same_size(f"{place}.leaves", len(found["leaves"]), "those of the task", len(leaves))
    pairs = zip(leaves, found["leaves"], strict=True)
    return TaskSequence(
        **{**found, "leaves": tuple(LeafSequence(leaf, **own) for leaf, own in pairs)}
    )
