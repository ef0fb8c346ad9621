"""What a watch begins with: checks, bets and numbers, settled on the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from itrust._core import InputError, Rng, as_seed
from itrust.data import MulticlassSample, Sample, Scan
from itrust.tasks import Task, parse
from itrust.watch.batches import Reference
from itrust.watch.components import MAX_CHECKS, CheckPanel, settled_panel
from itrust.watch.results import Promise
from itrust.watch.sequences import TaskSequence, begun_sequences
from itrust.watch.state import MAX_SEED
from itrust.watch.wealth import PanelWealth

PILOT = 20_000  # random rows of the reference that settle checks


def begun(
    reference: Reference, tasks: Sequence[Task], promise: Promise, tolerance: float | None
) -> tuple[tuple[CheckPanel, ...], tuple[PanelWealth, ...], tuple[TaskSequence, ...]]:
    """Settle checks, bets and numbers before the first batch."""
    labels = reference.schema.labels
    most = max(12, MAX_CHECKS // len(labels))
    panels, wealth = [], []
    parts: dict[Any, list[Any]] = {}
    wanted = {leaf.label for task in tasks for leaf in task.leaves()}
    for label in labels:
        panel = settled_panel(reference.one(label).pilot(PILOT), label, most=most)
        own = PanelWealth.begun(panel, promise, moved=tolerance is None)
        for points, rows, task_rows in reference.parts(label):
            if tolerance is None:
                matrix = panel.matrix(points)[list(panel.joint)]
                own = replace(own, known=own.known.with_reference(matrix, rows))
            if label in wanted:
                parts.setdefault(label, []).append(task_rows)
        panels.append(panel)
        wealth.append(own)
    return tuple(panels), tuple(wealth), begun_sequences(tasks, parts)


def few_rows(reference: Reference) -> Sample | MulticlassSample:
    """Rows that say what labels are called."""
    rows = reference.rows
    return rows.extract(1_000).some if isinstance(rows, Scan) else rows


def written_tasks(tasks: Sequence[Task]) -> list[Task]:
    """Refuse tasks that no file can hold: those with functions of Python."""
    for task in tasks:
        try:
            same = parse(task.formula) == task
        except InputError:
            same = False
        if not same:
            raise InputError(
                "{task} cannot be written as text, which a watch needs to be saved; write it as a "
                "formula, such as 'mean(log(income))'",
                argument="tasks",
                value=task,
                details={"task": task},
            )
    return list(tasks)


def checked_seed(rng: Rng) -> int:
    """Turn `rng` into a seed; refuse one that a file does not hold."""
    seed = as_seed(rng)
    if seed > MAX_SEED:
        raise InputError(
            "{argument} is at most 2**64 - 1, so that a file can hold it, not {value}",
            argument="rng",
            value=rng,
        )
    return seed


def checked_name(name: object) -> str | None:
    """Pass the name of a batch or of a model on; refuse what is no short text."""
    if name is not None and (not isinstance(name, str) or not name.strip() or len(name) > 200):
        raise InputError(
            "{argument} is a text of 1 to 200 characters, not {value}", argument="name", value=name
        )
    return name
