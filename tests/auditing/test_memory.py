"""Nothing outlives an audit; two hundred of them are in studies/pages/memory.md."""

import gc
import os
import sys
import threading

import matplotlib.pyplot as plt
import numpy as np
import pytest

import memory

AUDITS = 8


def watched():
    gc.collect()
    return [thing for thing in gc.get_objects() if type(thing) in memory.WATCHED]


def open_files():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_audits_leave_no_samples_no_figures_no_files_and_no_threads(tmp_path, monkeypatch):
    """The first of each kind loads libraries; those after it find everything as it was."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(memory.tempfile, "tempdir", str(temporary))
    shapes = [memory.one_number, memory.clustered, memory.from_csv, memory.from_parquet]

    def audits(seeds):
        for seed in seeds:
            shape = shapes[seed % len(shapes)]
            audit = memory.one_audit(shape, seed, tmp_path, draws=39, max_rows=210)
        memory.look_at(audit)

    audits(range(4))
    before = watched()  # of fixtures of other tests; held, so that no other gets their place
    figures, files, threads = plt.get_fignums(), open_files(), threading.active_count()
    audits(range(4, AUDITS))
    assert [thing for thing in watched() if all(thing is not old for old in before)] == []
    assert plt.get_fignums() == figures
    assert (open_files(), threading.active_count()) == (files, threads)
    assert list(temporary.iterdir()) == []


def test_the_slope_of_a_steady_growth_is_found_through_the_shapes():
    shapes = np.tile(np.arange(len(memory.SHAPES)) * 50.0, 15)
    grown, low, high = memory.slope(shapes + 3.0 * np.arange(len(shapes)))
    assert grown == pytest.approx(3.0)
    assert low <= grown <= high
    flat, low, high = memory.slope(shapes + np.random.default_rng(0).normal(size=len(shapes)))
    assert low < 0 < high
    assert abs(flat) < 0.1
