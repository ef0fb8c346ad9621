"""The study of watching: its shortcut is the watch, and a small run makes its page."""

import importlib

import numpy as np
import pytest

import itrust as it

study = importlib.import_module("watch")


@pytest.mark.parametrize("title", ["+.15 in one eighth", "bias .03 everywhere, tolerance .05"])
def test_batches_computed_together_raise_the_alarm_that_updates_raise(title):
    cell = next(cell for cell in study.CELLS if cell.title == title)
    short = study.Cell(cell.part, title, cell.drift, 24, cell.tolerance)
    found = study.watched(short, seed=3)
    reference, _ = study.settled(0)
    watch = it.Watch.start(reference, tolerance=cell.tolerance)
    rng = np.random.default_rng([3, 24, len(title)])
    rows = study.drawn(rng, 24 * study.ROWS, cell.drift, short.after * study.ROWS).sample
    for k in range(24):
        watch = watch.update(rows.take(np.arange(k * study.ROWS, (k + 1) * study.ROWS)))
        if watch.alarm:
            break
    assert (len(watch.history) if watch.alarm else 0) == found["alarm"]


def test_a_page_is_made_of_a_few_runs():
    cells = [
        study.Cell(c.part, c.title, c.drift, 14, c.tolerance, c.promise, c.cluster, target=c.target)
        for c in study.CELLS
    ]
    found = {f"{cell.part}: {cell.title}": [study.one_run(cell, 0)] for cell in cells}
    found = {title: study.by_run(study.by_name(runs)) for title, runs in found.items()}
    text = study.page(found)
    assert text.count("\n| ") >= 3 + len(study.CELLS)
    assert any(cell.promise == "run length" for cell in cells)
