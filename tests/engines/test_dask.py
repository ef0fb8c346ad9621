"""The pass on a real Dask cluster of two worker processes."""

import os
import shutil
import signal

import distributed
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import itrust as it
from itrust import InputError, nulls
from itrust.engines import Dask, Drawing

# The cluster's own processes and sockets warn as they please.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Forty thousand rows in three files of several row groups, with gaps in a covariate."""
    path = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    n = 40_000
    x = rng.normal(size=(n, 2))
    p = 1 / (1 + np.exp(-x[:, 0]))
    lab = np.where(rng.random(n) < 0.1, np.nan, x[:, 1])
    rows = pa.table({"y": rng.random(n) < p, "p": p, "a": x[:, 0], "b": x[:, 1], "lab": lab})
    for k, (start, stop) in enumerate([(0, 9_000), (9_000, 10_000), (10_000, n)]):
        pq.write_table(rows.slice(start, stop - start), path / f"{k}.parquet", row_group_size=2500)
    return path


@pytest.fixture(autouse=True)
def small_partitions(monkeypatch):
    monkeypatch.setattr("itrust.engines.dask.PART_ROWS", 5_000)


def scan(folder, **changes):
    return it.scan(folder, **{"label": "y", "prob": "p", "on": ["a", "b"], **changes})


@pytest.mark.parametrize("null", [nulls.Bernoulli(), nulls.Spectral()])
def test_a_cluster_gives_the_answer_of_one_machine(client, folder, null):
    one = it.klce_test(scan(folder), null=null, draws=60, rng=4)
    many = it.klce_test(scan(folder), null=null, draws=60, rng=4, engine=Dask(client))
    assert many.pvalue == pytest.approx(one.pvalue, rel=1e-9)
    assert many.statistic == pytest.approx(one.statistic, rel=1e-9)
    assert (many.n, many.kernel) == (one.n, one.kernel)
    assert "9 Dask partitions" in many.engine
    assert [(f.name, f.pvalue) for f in many.findings] == [(f.name, f.pvalue) for f in one.findings]
    if one.null_distribution is not None:
        np.testing.assert_allclose(many.null_distribution, one.null_distribution, rtol=1e-9)


def test_dropped_rows_are_numbered_alike(client, folder):
    settings = dict(on=["a", "lab"], missing="drop")
    one = it.klce_test(scan(folder, **settings), draws=30, rng=4)
    many = it.klce_test(scan(folder, **settings), draws=30, rng=4, engine=Dask(client))
    assert one.n == many.n < 40_000
    np.testing.assert_allclose(many.null_distribution, one.null_distribution, rtol=1e-9)


def test_a_worker_killed_in_the_middle_changes_nothing(client, folder):
    engine, rows = Dask(client), scan(folder)
    survey = engine.survey(rows)
    plan = engine.plan(survey, it.kernels.LocalKernel().resolve(survey.points))
    drawing = Drawing(nulls.Bernoulli(), range(400), 7)
    undisturbed = engine.run(survey, [plan], drawing)
    killed = []

    def kill(_rows):
        if not killed:
            worker = min(client.run(os.getpid).values())
            killed.append(worker)
            os.kill(worker, signal.SIGKILL)

    disturbed = engine.run(survey, [plan], drawing, advance=kill)
    assert killed
    forms = [found.kernels[0].over_pairs for found in (disturbed, undisturbed)]
    np.testing.assert_allclose(*forms, rtol=1e-12)
    assert disturbed.tally.rows == 40_000


def test_an_address_is_enough(client, folder):
    address = client.scheduler_info()["address"]
    r = it.klce_test(scan(folder), draws=9, rng=0, engine=Dask(address))
    assert r.n == 40_000


def test_wrong_values_and_samples_are_one_sentence(client, folder, tmp_path):
    with pytest.raises(InputError, match=r"Dask reads files; pass itrust.scan"):
        it.klce_test(it.simulate.survey(100, rng=0).sample, engine=Dask(client))
    table = pq.read_table(folder / "0.parquet")
    p = table["p"].to_numpy().copy()
    p[8_999] = 1.5
    pq.write_table(table.set_column(1, "p", [p]), tmp_path / "0.parquet", row_group_size=2500)
    with pytest.raises(InputError, match=r"0.parquet: prob must lie in \[0, 1\]; row 8999 has 1.5"):
        it.klce_test(scan(tmp_path), draws=9, rng=0, engine=Dask(client))


def test_workers_know_what_stands_in_names_of_folders(client, folder, tmp_path):
    for k, part in enumerate(sorted(folder.iterdir())):
        (tmp_path / f"year={2020 + k % 2}" / f"k={k}").mkdir(parents=True)
        shutil.copy(part, tmp_path / f"year={2020 + k % 2}" / f"k={k}")
    rows = scan(tmp_path, on=["a", "year"], where="k != 1")
    one = it.klce_test(rows, draws=19, rng=4)
    many = it.klce_test(rows, draws=19, rng=4, engine=Dask(client))
    assert (many.n, many.pvalue) == (one.n, one.pvalue)
    assert many.n == 39_000


def test_files_that_change_between_passes_are_refused(client, folder, tmp_path):
    """By the workers, who know what their file was, and by whoever hands out the pieces."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    engine, rows = Dask(client), scan(tmp_path)
    survey = engine.survey(rows)
    plan = engine.plan(survey, it.kernels.LocalKernel().resolve(survey.points))
    shutil.copy(folder / "1.parquet", tmp_path / "3.parquet")
    with pytest.raises(InputError, match=r"3\.parquet has appeared in"):
        engine.run(survey, [plan])
    (tmp_path / "3.parquet").unlink()
    os.replace(shutil.copy(folder / "1.parquet", tmp_path / ".new"), tmp_path / "0.parquet")
    with pytest.raises(InputError, match=r"0\.parquet shrank from .* scan it again when nobody"):
        engine.run(survey, [plan])


def test_a_third_label_in_another_partition_counts_as_0_and_is_named(client, tmp_path):
    n = 2000
    p = np.random.default_rng(0).uniform(size=n)
    for name, other in (("a", "no"), ("b", "No")):
        rows = pa.table({"y": ["yes", other] * (n // 2), "p": p, "a": p, "b": p})
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    r = it.klce_test(scan(tmp_path, positive="yes"), draws=9, rng=0, engine=Dask(client))
    assert "all labels but the positive one ('No', 'no') count as 0" in r.notes


def test_what_is_no_cluster_is_one_sentence(folder):
    with pytest.raises(InputError, match="Dask needs a client or a scheduler's address, not None"):
        it.klce_test(scan(folder), draws=9, engine=Dask(None))
    with pytest.raises(InputError, match="no Dask scheduler answers at 'nowhere'"):
        it.klce_test(scan(folder), draws=9, engine=Dask("nowhere"))
