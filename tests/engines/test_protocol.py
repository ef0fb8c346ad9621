"""Every engine surveys, plans, runs and describes; nobody else asks which one it is."""

import ast
import copy
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import itrust as it
from itrust import nulls
from itrust.data import FileSet
from itrust.engines import Auto, Drawing, Engine, Factor, Purpose, Tiles, accumulate_all, as_engine
from itrust.kernels import RBF, LocalKernel

ROOT = Path(it.__file__).parent
NAMES = {"Auto", "Dask", "Factor", "Tiles", "Plan", "LowRankPlan", "TiledPlan"}
WIDE = LocalKernel(RBF(0.5), {"income": RBF(4e4), "age": RBF(30.0), "region": it.kernels.Delta()})


@pytest.fixture
def town():
    return it.simulate.survey(600, rng=0).sample


@pytest.fixture
def scan(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=5_000)
    y = rng.random(5_000) < np.sqrt(p)  # so that there is something to tell
    rows = pa.table({"y": y, "p": p, "a": rng.normal(size=5_000)})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=700)
    return it.scan(tmp_path / "a.parquet", label="y", prob="p", on="a")


@pytest.fixture
def passes(monkeypatch):
    """How often the file is opened for its rows."""
    opened, read = [], FileSet.batches

    def counted(files, part, *settings):
        opened.append(part.path)
        return read(files, part, *settings)

    monkeypatch.setattr(FileSet, "batches", counted)
    return opened


@pytest.mark.parametrize("engine", [Auto(), Tiles(), Factor(tolerance=1e-4)])
def test_engines_give_the_same_forms(town, engine):
    drawing = Drawing(nulls.Bernoulli(), range(30), 5)
    survey = engine.survey(town)
    plan = engine.plan(survey, WIDE, Purpose(nulls.Bernoulli(), 30))
    found = engine.run(survey, [plan], drawing)
    residuals = np.empty((town.n, 31))
    residuals[:, 0] = town.residuals
    nulls.Bernoulli().fill(residuals[:, 1:], town, range(30), 5)
    exact = Tiles().forms(WIDE.gram(town.points), residuals)
    np.testing.assert_allclose(found.kernels[0].over_pairs, exact, atol=1e-3 * exact.std())
    assert found.tally.rows == survey.n == town.n
    assert engine.describe(survey, plan) == plan.describe()


def test_auto_is_what_the_word_means():
    assert as_engine("auto") == Auto()
    assert as_engine(Tiles(64)) == Tiles(64)
    with pytest.raises(it.InputError, match="engine must be 'auto' or one of"):
        as_engine("gpu")


def test_a_smaller_pilot_is_a_part_of_a_larger_one(town, scan):
    for source in (town, scan):
        large, small = source.pilot(400), source.pilot(90)
        np.testing.assert_array_equal(large.first(90).points.p, small.points.p)
        np.testing.assert_array_equal(large.first(90).variances, small.variances)
        assert large.n == small.n
    assert scan.pilot(90).n == 5_000


def test_nothing_is_written_into_a_scan(scan):
    before = copy.copy(vars(scan))
    it.klce_test(scan, draws=9, rng=0)
    it.klce2(scan)
    assert scan.n == 5_000
    assert vars(scan) == before
    with pytest.raises(AttributeError):
        scan.n = 3


@pytest.mark.parametrize(
    ("call", "number"),
    [
        (lambda scan: it.klce_test(scan, draws=9, rng=0), 3),  # the third flips signs for findings
        (lambda scan: it.klce_test(scan, LocalKernel(), draws=9, rng=0), 2),
        (it.klce2, 2),
        (it.null_sd, 2),
        (it.default_dictionary, 1),
        (lambda scan: it.detectable(scan, draws=19, simulations=0, rng=0), 2),
    ],
)
def test_files_are_read_once_for_the_survey_and_once_for_the_run(scan, passes, call, number):
    call(scan)
    assert len(passes) == number


def test_what_needs_all_rows_asks_the_source(scan):
    with pytest.raises(it.InputError, match="the biased form needs a Sample in memory"):
        it.klce2(scan, biased=True)
    with pytest.raises(it.InputError, match="tiles need a Sample in memory"):
        it.null_sd(scan, engine=Tiles())


def test_no_module_outside_the_package_asks_which_engine_it_has():
    asked = []
    for path in ROOT.rglob("*.py"):
        if path.relative_to(ROOT).parts[0] == "engines":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                names = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
                asked += [f"{path.name}: {name}" for name in names & NAMES]
    assert asked == []


def test_an_engine_of_ones_own_takes_two_methods(town):
    """Another way to pass over the rows is one class."""

    class Patient(Engine):
        def __init__(self):
            self.passes = 0

        def _plan(self, survey, kernel, purpose):
            return Factor().plan(survey, kernel, purpose)

        def _pass(self, survey, job, advance):  # noqa: ARG002
            self.passes += 1
            return accumulate_all(job, survey.source.chunks(8_192))

    patient = Patient()
    mine = it.klce_test(town, draws=49, rng=0, engine=patient)
    assert mine.pvalue == it.klce_test(town, draws=49, rng=0, engine=Factor()).pvalue
    assert patient.passes == 2  # the second flips signs, for the findings
