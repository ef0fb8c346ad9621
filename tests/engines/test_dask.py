"""The pass on real Dask clusters of worker processes, and what becomes of it when they fail."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import distributed
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import itrust as it
from itrust import InputError, nulls
from itrust.data import FilePart, Roles, Scan
from itrust.engines import (
    ClusterError,
    Dask,
    Drawing,
    Factor,
    bounds_of,
    lots_of,
    pieces_of,
    seen_here,
    while_wanted,
)
from itrust.kernels import RBF, LocalKernel

# The cluster's own processes and sockets warn as they please.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

N = 6_000
KERNEL = LocalKernel(RBF(0.1), RBF(1.0))
QUIET = dict(dashboard_address=None, silence_logs=60)


@pytest.fixture(scope="module")
def client():
    """Two processes with nannies, which start a killed worker again."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **QUIET) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three files of several row groups, with gaps in a covariate."""
    path = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 2))
    p = 1 / (1 + np.exp(-x[:, 0]))
    lab = np.where(rng.random(N) < 0.1, np.nan, x[:, 1])
    rows = pa.table({"y": rng.random(N) < p, "p": p, "a": x[:, 0], "b": x[:, 1], "lab": lab})
    for k, (start, stop) in enumerate([(0, 1_500), (1_500, 1_600), (1_600, N)]):
        pq.write_table(rows.slice(start, stop - start), path / f"{k}.parquet", row_group_size=500)
    return path


@pytest.fixture(autouse=True)
def small_partitions(monkeypatch):
    monkeypatch.setattr("itrust.engines.dask.PART_ROWS", 1_000)


def scan(folder, **changes):
    return it.scan(folder, **{"label": "y", "prob": "p", "on": ["a", "b"], **changes})


class Pass:
    """One pass over the rows of the folder, ready to run."""

    def __init__(self, engine, rows):
        self.engine, self.survey = engine, engine.survey(rows)
        self.plan = engine.plan(self.survey, KERNEL)

    def run(self, disturb=None, draws=100):
        """The forms of all columns; something happens when the first partition is done."""
        waiting = [] if disturb is None else [disturb]

        def advance(_rows):
            if waiting:
                waiting.pop()()

        drawing = Drawing(nulls.Bernoulli(), range(draws), 7)
        found = self.engine.run(self.survey, [self.plan], drawing, advance=advance)
        assert not waiting
        assert found.tally.rows == self.survey.n
        return found.kernels[0].over_pairs


def kill(*workers):
    for worker in workers:
        os.kill(worker, signal.SIGKILL)


def under_way(client):
    """Tasks that workers have not forgotten."""
    return sum(client.run(lambda dask_worker: len(dask_worker.state.tasks)).values())


def settles(state, seconds=20.0):
    """Whether something comes true within some time."""
    until = time.monotonic() + seconds
    while not state() and time.monotonic() < until:
        time.sleep(0.02)
    return state()


@pytest.mark.parametrize("null", [nulls.Bernoulli(), nulls.Spectral()])
def test_a_cluster_gives_the_answer_of_one_machine(client, folder, null):
    one = it.klce_test(scan(folder), null=null, draws=60, rng=4)
    many = it.klce_test(scan(folder), null=null, draws=60, rng=4, engine=Dask(client))
    assert many.pvalue == pytest.approx(one.pvalue, rel=1e-9)
    assert many.statistic == pytest.approx(one.statistic, rel=1e-9)
    assert (many.n, many.kernel, many.notes) == (one.n, one.kernel, one.notes)
    assert "6 Dask partitions" in many.engine
    assert [(f.name, f.pvalue) for f in many.findings] == [(f.name, f.pvalue) for f in one.findings]
    if one.null_distribution is not None:
        np.testing.assert_allclose(many.null_distribution, one.null_distribution, rtol=1e-9)


def test_a_cluster_gives_interval_nulls_and_tipping_points_in_memory(client, biased):
    """Labels are drawn by the number of their row, so no draw depends on who draws it."""
    memory, lo = biased.load(), np.linspace(0, 0.1, N)
    engine = Dask(client)
    for null in (nulls.Selection(1.1), nulls.Within(lo, lo + 0.8)):
        settings = {"null": null, "draws": 60, "rng": 4}
        here = it.klce_test(memory, **settings)
        for many in (it.klce_test(biased, **settings, engine=own) for own in ("auto", engine)):
            assert many.pvalue == here.pvalue
            np.testing.assert_allclose(many.null_distribution, here.null_distribution, rtol=1e-9)
            assert many.findings[0].name == here.findings[0].name
    one, many = (
        it.robustness(rows, draws=60, rng=4, engine=own)
        for rows, own in ((memory, "auto"), (biased, engine))
    )
    assert one.pvalue == 1 / 61
    for own, other in zip(many.violations, one.violations, strict=True):
        assert own.point == other.point
        np.testing.assert_array_equal(own.pvalues, other.pvalues)
    assert many.prudence.pvalue == one.prudence.pvalue


@pytest.fixture
def classes(tmp_path):
    """Three classes, of which one is taken for another in the north; three files."""
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.full(3, 2.0), N)
    north, age = rng.random(N) < 0.4, rng.normal(50, 10, N)
    age[rng.random(N) < 0.05] = np.nan
    truth = p.copy()
    truth[:, 0] -= 0.4 * p[:, 0] * north
    truth[:, 1] += 0.4 * p[:, 0] * north
    y = (rng.random(N)[:, None] > truth.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    region = np.where(north, "north", "south")
    columns = {f"p_{name}": p[:, k] for k, name in enumerate("abc")}
    own = {"y": np.array(list("abc"))[y], **columns, "age": age, "region": region}
    rows = pa.table({**own, "w": rng.uniform(0.5, 2, N)})
    for k, (start, stop) in enumerate([(0, 1_500), (1_500, 1_600), (1_600, N)]):
        part = rows.slice(start, stop - start)
        pq.write_table(part, tmp_path / f"{k}.parquet", row_group_size=500)
    return tmp_path


def scan_of_classes(folder, **changes):
    settings = {"label": "y", "prob": "p_*", "on": ["age", "region"], "missing": "level"}
    return it.scan(folder, **{**settings, **changes})


@pytest.mark.parametrize(
    "settings", [{}, {"weights": "w", "where": "age < 60", "missing": "drop"}], ids=["all", "some"]
)
def test_a_cluster_gives_the_test_of_several_classes_in_memory(
    client, classes, monkeypatch, settings
):
    monkeypatch.setattr("itrust.engines.dask.WINDOW_ROWS", 512)  # so that all are asked
    rows = scan_of_classes(classes, **settings)
    one = it.klce_test(rows.load(), draws=39, rng=4)
    for name in ("load", "chunks", "harvest"):
        monkeypatch.setattr(Scan, name, lambda *_: pytest.fail("read by the client"))
    many = it.klce_test(rows, draws=39, rng=4, engine=Dask(client))
    assert many.pvalue == one.pvalue == 1 / 40
    assert many.statistic == pytest.approx(one.statistic, rel=1e-9)
    # Weighted sums over cells are in single precision, in another order.
    np.testing.assert_allclose(many.null_distribution, one.null_distribution, rtol=1e-4)
    assert "Dask partitions" in many.engine
    assert (many.n, many.impossible, many.notes) == (one.n, one.impossible, one.notes)
    for own, other in zip(
        (*many.classes, many.together), (*one.classes, one.together), strict=True
    ):
        assert (own.name, own.positives, own.pvalue) == (other.name, other.positives, other.pvalue)
        told, as_told = ([(f.name, f.pvalue) for f in c.findings] for c in (own, other))
        assert told == as_told
    pairs = [[(p.actual, p.predicted, p.name, p.both_sides) for p in r.pairs] for r in (one, many)]
    assert pairs[0] == pairs[1]
    for own, other in zip(many.pairs, one.pairs, strict=True):
        assert own.pvalue == pytest.approx(other.pvalue, rel=1e-9)
        assert own.moved == pytest.approx(other.moved, rel=1e-9, nan_ok=True)


def test_the_first_wrong_row_of_several_classes_is_told_as_on_one_machine(
    client, classes, monkeypatch
):
    monkeypatch.setattr("itrust.engines.dask.WINDOW_ROWS", 512)
    table = pq.read_table(classes / "2.parquet").to_pandas()
    table.loc[[2_003, 4_001], "p_b"] = 1.5
    pq.write_table(pa.Table.from_pandas(table), classes / "2.parquet", row_group_size=500)
    told = []
    for engine in ("auto", Dask(client)):
        with pytest.raises(InputError) as caught:
            it.klce_test(scan_of_classes(classes), draws=9, rng=0, engine=engine)
        told.append(str(caught.value).partition(" for the class 'b'")[0])
    assert told[0] == told[1] == "2.parquet: prob must lie in [0, 1]; row 2003 has 1.5"


def test_what_workers_cannot_do_with_several_classes_is_one_sentence(client, classes):
    rows, engine = scan_of_classes(classes), Dask(client)
    refused = [
        (rows.load(), {}, "Dask tests several classes from files"),
        (rows, {"kernel": KERNEL}, "a kernel is for one class"),
        (rows, {"null": nulls.Bernoulli()}, "no null of one's own"),
        (scan_of_classes(classes, strata="region", on=["age"]), {}, "with independent rows"),
        (scan_of_classes(classes, prob={"a": "p_a", "b": "p_b"}), {}, r"one_class\('b'\)"),
        (scan_of_classes(classes, where="age > 1000", missing="drop"), {}, "no rows that count"),
    ]
    for sample, settings, message in refused:
        with pytest.raises(InputError, match=message):
            it.klce_test(sample, draws=9, rng=0, engine=engine, **settings)


@pytest.fixture
def biased(tmp_path):
    """Rows whose bias is large enough for every way that a verdict can take."""
    rng = np.random.default_rng(2)
    age, region = rng.integers(18, 90, N).astype(float), rng.choice(["n", "s", "w"], N)
    p = 1 / (1 + np.exp(-0.03 * (age - 50)))
    truth = np.clip(p - 0.3 * ((region == "s") & (age > 50)), 0.01, 1)
    rows = pa.table({"y": rng.random(N) < truth, "p": p, "age": age, "region": region})
    pq.write_table(rows, tmp_path / "biased.parquet", row_group_size=700)
    return it.scan(tmp_path / "biased.parquet", label="y", prob="p", on=["age", "region"])


def test_a_cluster_gives_the_audit_of_one_machine(client, biased, monkeypatch):
    monkeypatch.setattr("itrust.data.survey.EXTRACT_ROWS", 3_000)  # fewer than there are
    tasks = ['mean(age | region == "s")', 'coef(region["s"] ; age + region)']
    settings = {"draws": 99, "rng": 4, "charts": False}
    one, many = (
        it.audit(biased, tasks, engine=engine, **settings) for engine in (Factor(), Dask(client))
    )
    assert many.verdict == one.verdict == it.auditing.Verdict.MISCALIBRATED
    assert many.sentence == one.sentence
    assert many.test.pvalue == one.test.pvalue
    groups = [[(g.name, g.rows, g.pvalue) for g in a.diagnosis.groups] for a in (one, many)]
    assert groups[0] == groups[1]
    for own, other in zip(many.tasks, one.tasks, strict=True):
        assert own.pvalue == other.pvalue
        assert own.lower == pytest.approx(other.lower, rel=1e-9)
    np.testing.assert_allclose(many.diagnosis.bias.values, one.diagnosis.bias.values, rtol=1e-9)


@pytest.mark.parametrize(
    "settings", [dict(on=["a", "lab"], missing="drop"), dict(where="a > 0 and b < 1")]
)
def test_rows_that_do_not_count_are_numbered_alike(client, folder, tmp_path, settings):
    table = pq.read_table(folder / "1.parquet")  # no row of it counts
    nothing = pa.array(np.full(len(table), np.nan if "missing" in settings else -1.0))
    at = table.column_names.index("lab" if "missing" in settings else "a")
    pq.write_table(table.set_column(at, table.column_names[at], nothing), tmp_path / "1.parquet")
    files = [
        tmp_path / "1.parquet",
        folder / "0.parquet",
        tmp_path / "1.parquet",
        folder / "2.parquet",
    ]
    files[0] = (tmp_path / "1.parquet").rename(tmp_path / "0.parquet")
    pq.write_table(pq.read_table(files[0]), files[2])
    rows = scan([str(file) for file in files], **settings)
    one = it.klce_test(rows, KERNEL, draws=30, rng=4)
    many = it.klce_test(rows, KERNEL, draws=30, rng=4, engine=Dask(client))
    assert one.n == many.n < N
    assert one.notes == many.notes
    np.testing.assert_allclose(many.null_distribution, one.null_distribution, rtol=1e-9)


def test_workers_killed_in_the_middle_are_started_again_and_change_nothing(client, folder):
    work = Pass(Dask(client), scan(folder))
    undisturbed = work.run()
    disturbed = work.run(lambda: kill(*client.run(os.getpid).values()))
    np.testing.assert_allclose(disturbed, undisturbed, rtol=1e-12)


@pytest.fixture
def lone_workers(tmp_path):
    """Starts processes without a nanny, with the package or as if it were not installed."""
    (tmp_path / "itrust").mkdir()
    absent = "raise ModuleNotFoundError('no itrust', name='itrust')"
    (tmp_path / "itrust" / "__init__.py").write_text(absent)
    started = []

    def start(address, *, installed):
        given = ["--no-nanny", "--no-dashboard", "--nthreads", "1"]
        command = [sys.executable, "-m", "distributed.cli.dask_worker", address, *given]
        env = os.environ if installed else {**os.environ, "PYTHONPATH": str(tmp_path)}
        started.append(subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL))
        return started[-1].pid

    yield start
    for worker in started:
        worker.kill()
        worker.wait()


def test_one_worker_is_enough_and_none_is_one_sentence(folder, lone_workers):
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", **QUIET
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        other, useless = (
            lone_workers(cluster.scheduler_address, installed=installed)
            for installed in (True, False)
        )
        engine = Dask(client, patience=1)
        client.wait_for_workers(3, timeout=30)
        with pytest.raises(ClusterError, match=r"worker at tcp://.* has no itrust, this .* has"):
            engine.survey(scan(folder))
        assert len(client.nthreads()) == 3  # no task was sent, of which that one would have died
        kill(useless)
        work = Pass(engine, scan(folder))
        undisturbed = work.run()
        np.testing.assert_allclose(work.run(lambda: kill(other)), undisturbed, rtol=1e-12)
        begun = time.monotonic()
        with pytest.raises(ClusterError, match="no Dask worker is left, and none came within 1 s"):
            work.run(lambda: cluster.scale(0))
        with pytest.raises(ClusterError, match="no Dask worker is left"):
            engine.survey(scan(folder))
        assert time.monotonic() < begun + 60


def test_a_closed_scheduler_or_client_is_one_sentence(folder):
    with distributed.LocalCluster(n_workers=1, processes=False, **QUIET) as cluster:
        client = distributed.Client(cluster)
        engine = Dask(client)
        work = Pass(engine, scan(folder))
        client.close()
        with pytest.raises(ClusterError, match="the Dask client is closed; connect a new one"):
            work.run()
        client = distributed.Client(cluster.scheduler_address)
        work = Pass(Dask(client), scan(folder))
        with pytest.raises(ClusterError, match="the connection to the Dask scheduler was lost"):
            work.run(cluster.close)
        with pytest.raises(ClusterError, match="the connection to the Dask scheduler was lost"):
            it.klce_test(scan(folder), draws=9, engine=Dask(client))
        client.close()


def test_ctrl_c_stops_the_workers(client, folder):
    work = Pass(Dask(client), scan(folder))

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work.run(stop)
    assert settles(lambda: not under_way(client))
    np.testing.assert_allclose(work.run(), work.run(), rtol=1e-12)  # and they can work again


def test_a_task_that_is_taken_back_stops_before_its_end(client):
    def slow():
        for _ in while_wanted(range(10_000)):
            time.sleep(0.02)

    def is_known():  # this task, whatever other tests have left behind
        return any(client.run(lambda dask_worker: key in dask_worker.state.tasks).values())

    task = client.submit(slow, pure=False)
    key = task.key
    assert settles(is_known, 60)
    client.cancel(task)
    assert settles(lambda: not is_known(), 60)


def test_an_address_is_enough(client, folder):
    address = client.scheduler_info()["address"]
    assert it.klce2(scan(folder), KERNEL, engine=Dask(address)) == pytest.approx(
        it.klce2(scan(folder), KERNEL, engine=Dask(client)), rel=1e-12
    )


def test_the_first_wrong_row_is_told_as_on_one_machine(client, folder, tmp_path):
    table = pq.read_table(folder / "2.parquet")
    y = np.array(["yes", "no"] * (len(table) // 2), dtype=object)
    for name, wrong in (("a", 3_003), ("b", 3)):
        labels = y.copy()
        labels[wrong] = None
        rows = table.set_column(0, "y", [pa.array(labels)])
        pq.write_table(rows, tmp_path / f"{name}.parquet", row_group_size=500)
    rows = scan(tmp_path, positive="yes")
    told = []
    for engine in ("auto", Dask(client)):
        with pytest.raises(InputError) as caught:
            it.klce_test(rows, KERNEL, draws=9, rng=0, engine=engine)
        told.append((str(caught.value), vars(caught.value)))
    assert told[0] == told[1]
    assert told[0][1]["row"] == 3_003
    assert told[0][1]["file"] == "a.parquet"


def test_an_error_does_not_take_back_what_was_asked_before(client):
    """Whose error, if it has one, is the first that one machine would meet."""

    def wrong(seconds):
        time.sleep(seconds)
        raise InputError("wrong after {value} s", value=seconds)

    with Dask(client)._cluster() as cluster:
        with pytest.raises(InputError, match=r"wrong after 1\.0 s"):
            cluster.answers(cluster.map(wrong, [1.0, 0.0]))
        asked = [*cluster.map(time.sleep, [1.0]), *cluster.map(wrong, [0.0])]
        with pytest.raises(InputError, match=r"wrong after 0\.0 s"):
            cluster.answers(asked)


def test_wrong_values_and_samples_are_one_sentence(client, folder, tmp_path):
    with pytest.raises(InputError, match=r"Dask reads files; pass itrust.scan"):
        it.klce_test(it.simulate.survey(100, rng=0).sample, engine=Dask(client))
    table = pq.read_table(folder / "0.parquet")
    p = table["p"].to_numpy().copy()
    p[1_499] = 1.5
    pq.write_table(table.set_column(1, "p", [p]), tmp_path / "0.parquet", row_group_size=500)
    with pytest.raises(InputError, match=r"0.parquet: prob must lie in \[0, 1\]; row 1499 has 1.5"):
        it.klce_test(scan(tmp_path), draws=9, rng=0, engine=Dask(client))


def test_workers_know_what_stands_in_names_of_folders(client, folder, tmp_path):
    for k, part in enumerate(sorted(folder.iterdir())):
        (tmp_path / f"year={2020 + k % 2}" / f"k={k}").mkdir(parents=True)
        shutil.copy(part, tmp_path / f"year={2020 + k % 2}" / f"k={k}")
    rows = scan(tmp_path, on=["a", "year"], where="k != 1")
    one = it.klce_test(rows, draws=19, rng=4)
    many = it.klce_test(rows, draws=19, rng=4, engine=Dask(client))
    assert (many.n, many.pvalue) == (one.n, one.pvalue)
    second = pq.read_metadata(sorted(folder.iterdir())[1]).num_rows
    assert many.n == scan(folder).n - second


def test_files_that_change_between_passes_are_refused(client, folder, tmp_path):
    """By the workers, who know what their file was."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    engine, rows = Dask(client), scan(tmp_path)
    survey = engine.survey(rows)
    plan = engine.plan(survey, it.kernels.LocalKernel().resolve(survey.points))
    os.replace(shutil.copy(folder / "1.parquet", tmp_path / ".new"), tmp_path / "0.parquet")
    with pytest.raises(InputError, match=r"0\.parquet shrank from .* scan it again when nobody"):
        engine.run(survey, [plan])


def test_a_file_that_workers_do_not_see_is_one_sentence(client, folder, tmp_path):
    file = tmp_path / "0.parquet"
    pq.write_table(pq.read_table(folder / "0.parquet"), file)
    piece = scan(tmp_path).only(FilePart(file))
    file.unlink()
    with pytest.raises(InputError, match=r"a Dask worker finds no 0.parquet in .*; workers must"):
        client.submit(seen_here, piece, pure=False).result()


def test_a_third_label_in_another_partition_counts_as_0_and_is_named(client, tmp_path):
    n = 2000
    p = np.random.default_rng(0).uniform(size=n)
    for name, other in (("a", "no"), ("b", "No")):
        rows = pa.table({"y": ["yes", other] * (n // 2), "p": p, "a": p, "b": p})
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    r = it.klce_test(scan(tmp_path, positive="yes"), KERNEL, draws=9, rng=0, engine=Dask(client))
    assert "all labels but the positive one ('No', 'no') count as 0" in r.notes


def test_what_is_no_cluster_is_one_sentence(folder):
    with pytest.raises(InputError, match="Dask needs a client or a scheduler's address, not None"):
        it.klce_test(scan(folder), draws=9, engine=Dask(None))
    with pytest.raises(InputError, match="no Dask scheduler answers at 'nowhere'"):
        it.klce_test(scan(folder), draws=9, engine=Dask("nowhere"))
    with pytest.raises(InputError, match="patience must be a number above 0"):
        Dask("nowhere", patience=0)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_small_files_share_a_task(client, folder, tmp_path, kind):
    table = pq.read_table(folder / "0.parquet").drop_columns("lab")
    for k in range(60):
        rows = table.slice(25 * k, 25)
        if kind == "csv":
            rows = rows.set_column(0, "y", [rows["y"].cast(pa.int8())])
            pa.csv.write_csv(rows, tmp_path / f"{k:03}.csv")
        else:
            pq.write_table(rows, tmp_path / f"{k:03}.parquet")
    engine = Dask(client)
    many = it.klce_test(scan(tmp_path), KERNEL, draws=20, rng=0, engine=engine)
    assert "2 Dask partitions" in many.engine
    one = it.klce_test(scan(tmp_path), KERNEL, draws=20, rng=0)
    np.testing.assert_allclose(many.null_distribution, one.null_distribution, rtol=1e-9)


def test_a_large_row_group_is_shared(client, tmp_path):
    n, file = 100_000, tmp_path / "one.parquet"
    rng = np.random.default_rng(0)
    p = rng.random(n)
    rows = pa.table({"y": rng.random(n) < p, "p": p, "a": rng.normal(size=n)})
    pq.write_table(rows, file, row_group_size=n)
    many, one = (Pass(engine, scan(file, on="a")) for engine in (Dask(client), Factor()))
    assert [(part.start, part.rows) for part in many.survey.parts] == [(0, n)]
    assert len(bounds_of(many.survey.parts)) == 16
    np.testing.assert_allclose(many.run(draws=0), one.run(draws=0), rtol=1e-9)


@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=30).filter(any),
    st.integers(1, 50),
    st.integers(1, 500),
)
def test_pieces_hold_every_row_and_every_part_once_and_whole_chunks(rows, chunk, enough):
    starts = np.cumsum([0, *rows[:-1]]).tolist()
    parts = [
        FilePart(Path(f"{k}.csv"), start=start, rows=size)
        for k, (start, size) in enumerate(zip(starts, rows, strict=True))
    ]
    files = SimpleNamespace(only=lambda *paths: SimpleNamespace(files=paths))
    whole = Scan(files, Roles("y", ("p",), (), ()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("itrust.engines.dask.PART_ROWS", enough)
        pieces = pieces_of(whole, parts, chunk)
    assert [row for piece in pieces for row in piece.rows] == list(range(sum(rows)))
    assert all(piece.rows.start % chunk == 0 for piece in pieces)
    for piece in pieces:
        assert piece.parts[0].start <= piece.rows.start
        assert piece.parts[-1].start + piece.parts[-1].rows >= piece.rows.stop
    empty = [part for piece in pieces for part in piece.parts if not part.rows]
    assert sorted(empty, key=lambda part: parts.index(part)) == [p for p in parts if not p.rows]


@given(st.lists(st.integers(0, 300), max_size=40), st.integers(1, 500))
def test_lots_keep_the_order_and_are_about_even(sizes, enough):
    parts = [FilePart(str(k), rows=size) for k, size in enumerate(sizes)]
    lots = lots_of(parts, sizes, enough)
    assert [part for lot in lots for part in lot] == parts
    held = [sum(part.rows for part in lot) for lot in lots]
    if sum(sizes):
        assert min(held) > 0
        assert len(lots) <= -(-sum(sizes) // enough)
        assert max(held) <= enough + max(sizes)
