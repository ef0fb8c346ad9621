"""Audits of rows in memory, in files and on Dask are the same audit."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import itrust as it
from itrust.data import survey as extracts
from itrust.tasks import evaluate_tasks

TASKS = ['mean(age | region == "south") - mean(age)', "prevalence(age > 80)"]
N, AT_HAND = 4_500, 2_000
PILOT = 1_000
ROLES = {"label": "y", "prob": "p", "on": ["age", "region", "code"]}


@pytest.fixture
def few_at_hand(monkeypatch):
    monkeypatch.setattr(extracts, "EXTRACT_ROWS", AT_HAND)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Row groups of very different sizes in three files, one without rows."""
    path = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    age, code = rng.integers(18, 90, N).astype(float), rng.integers(1, 6, N)
    region = rng.choice(["north", "south", "west"], N, p=[0.5, 0.48, 0.02])
    p = 1 / (1 + np.exp(-0.03 * (age - 50) - 0.3 * (region == "south")))
    truth = np.clip(p - 0.3 * ((region == "south") & (age > 60)), 0, 1)
    weights = rng.uniform(0.5, 2.0, N)
    rows = pa.table(
        {
            "y": (rng.random(N) < truth).astype(int),
            "p": p,
            "age": age,
            "region": region,
            "code": code,
            "w": weights,
        }
    )
    pq.write_table(rows.slice(0, 1), path / "a.parquet")
    pq.write_table(rows.slice(0, 0), path / "b.parquet")
    pq.write_table(rows.slice(1, 2_500), path / "c.parquet", row_group_size=850)
    pq.write_table(rows.slice(2_501), path / "d.parquet", row_group_size=50_000)
    return path


def audited(rows, **settings):
    engine = it.engines.Factor(pilot=PILOT)
    return it.audit(rows, TASKS, draws=99, rng=0, engine=engine, **settings)


@pytest.fixture(scope="module")
def both(folder):
    scan = it.scan(folder, **ROLES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extracts, "EXTRACT_ROWS", AT_HAND)
        return audited(scan.load()), audited(scan)


def told(audit):
    """All numbers and texts, without times."""

    def plain(value):
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items() if k not in ("elapsed", "engine")}
        return [plain(v) for v in value] if isinstance(value, list | tuple) else value

    return plain(audit.to_dict())


def assert_alike(one, other, path=""):
    """Equal, numbers up to rounding; p-values to the last bit."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for name, value in one.items():
            assert_alike(value, other[name], f"{path}/{name}")
    elif isinstance(one, list):
        assert len(one) == len(other), path
        for k, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_alike(a, b, f"{path}[{k}]")
    elif isinstance(one, float) and "pvalue" not in path:
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12), path
    else:
        assert one == other, path


def test_rows_in_files_give_the_audit_of_rows_in_memory(both):
    memory, files = both
    assert memory.n == files.n == N
    assert files.sample.n == AT_HAND
    assert_alike(told(memory), told(files))


def test_what_is_told_of_all_rows_is_of_all_rows(both, folder):
    _, files = both
    whole = it.scan(folder, **ROLES).load()
    assert files.overall.brier == pytest.approx(it.scores.brier(whole))
    assert files.overall.smooth_ece == pytest.approx(it.scores.smooth_ece(whole))
    assert files.overall.ece == pytest.approx(it.scores.ece(whole))
    assert files.overall.mean.observed == pytest.approx(whole.y.mean())
    assert sum(files.charts.histogram.counts) == N
    regions = {group.name: group for group in files.diagnosis.groups}
    codes = whole.column("region").values
    for code, level in enumerate(whole.column("region").levels):
        inside = codes == code
        group = regions[f"region = {level}"]
        assert group.rows == inside.sum()
        assert group.bias == pytest.approx(whole.residuals[inside].mean())
    assert {f"code = {k}" for k in range(1, 6)} <= regions.keys()
    for found, plain in zip(files.tasks, _plain_tasks(whole), strict=True):
        assert (found.plugin, found.from_labels) == pytest.approx(plain)
        assert found.n == N


def _plain_tasks(sample):
    age, region = sample.column("age").values, sample.column("region")
    south, old = region.values == region.levels.index("south"), age > 80
    for s in ((sample.p, sample.y),):
        yield tuple(
            np.average(age[south], weights=v[south]) - np.average(age, weights=v) for v in s
        )
        yield tuple(v[old].mean() for v in s)


def test_slices_are_judged_on_all_rows(both, folder):
    _, files = both
    whole = it.scan(folder, **ROLES).load()
    assert files.diagnosis.slices.confirmed
    for part in files.diagnosis.slices:
        inside = part.where.rows(whole.points)
        assert part.rows == inside.sum()
        assert part.share == pytest.approx(inside.mean())
        assert part.bias == pytest.approx(whole.residuals[inside].mean())


@pytest.mark.usefixtures("few_at_hand")
def test_the_main_p_value_is_that_of_the_test_alone(both, folder):
    _, files = both
    scan = it.scan(folder, **ROLES)
    engine = it.engines.Factor(pilot=PILOT)
    alone = it.klce_test(scan, draws=files.draws, rng=0, engine=engine)
    assert alone.pvalue == files.test.pvalue
    assert [f.name for f in alone.findings[:5]] == [f.name for f in files.test.findings[:5]]


@pytest.fixture(scope="module")
def weighted(folder):
    scan = it.scan(folder, **ROLES, weights="w")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extracts, "EXTRACT_ROWS", AT_HAND)
        return [audited(rows, charts=False) for rows in (scan.load(), scan)]


def test_weights_are_weights_in_files_too(weighted):
    memory, files = weighted
    assert_alike(told(memory)["tasks"], told(files)["tasks"])
    assert memory.test.pvalue == files.test.pvalue
    for one, other in zip(memory.diagnosis.groups, files.diagnosis.groups, strict=True):
        assert one.share == pytest.approx(other.share)
        assert one.pvalue == other.pvalue
        assert one.bias == pytest.approx(other.bias, abs=1e-12)


def test_few_rows_in_files_are_audited_as_if_they_had_been_loaded(folder):
    scan = it.scan(folder, **ROLES)
    memory, files = (audited(rows, charts=False) for rows in (scan.load(), scan))
    assert memory.test.pvalue == files.test.pvalue
    assert memory.diagnosis.bias.values == pytest.approx(files.diagnosis.bias.values, nan_ok=True)


@pytest.mark.usefixtures("few_at_hand")
def test_covariates_of_tasks_alone_are_not_judged(folder):
    found = audited(it.scan(folder, **ROLES), on=["region"], charts=False)
    assert found.test.names == ("region",)
    assert found.tasks[0].uncovered == ("age",)


@pytest.mark.usefixtures("few_at_hand")
def test_an_audit_of_the_prediction_alone_reads_files(folder):
    found = it.audit(it.scan(folder, label="y", prob="p"), draws=99, rng=0, charts=False)
    assert found.n == N
    assert found.test.names == ()


def test_disclosure_counts_all_rows(both):
    _, files = both
    shown = files.disclosed(60)
    kept = {group.name for group in shown.diagnosis.groups}
    assert "region = west" in kept  # 90 rows or so, though fewer than 60 are at hand
    assert not {group.name for group in files.disclosed(300).diagnosis.groups} >= {"region = west"}


@pytest.mark.usefixtures("few_at_hand")
def test_many_levels_are_groups_of_the_most_frequent_ones(tmp_path):
    rng = np.random.default_rng(0)
    n = 5_000
    zips = rng.zipf(1.3, n) % 5_000
    p = rng.uniform(0.2, 0.8, n)
    rows = pa.table({"y": (rng.random(n) < p).astype(int), "p": p, "zip": [f"z{z}" for z in zips]})
    pq.write_table(rows, tmp_path / "zips.parquet", row_group_size=999)
    scan = it.scan(tmp_path / "zips.parquet", label="y", prob="p", on="zip", categories="zip")
    memory, files = (it.audit(r, draws=39, rng=0, charts=False) for r in (scan.load(), scan))
    assert_alike(told(memory)["parts"][0]["diagnosis"], told(files)["parts"][0]["diagnosis"])
    groups = files.diagnosis.groups
    assert len(groups) == 500
    assert any("its 500 most frequent ones are groups" in note for note in groups.notes)


@pytest.mark.usefixtures("few_at_hand")
def test_rows_that_follow_each_other_are_looked_at(tmp_path):
    rng = np.random.default_rng(1)
    n = 30_030  # so that of 601 stretches some are chosen, and the last is not whole
    p, shared = rng.uniform(0.2, 0.8, n), np.repeat(rng.random(n // 5), 5)
    mine = rng.random(n) < 0.5
    y = (np.where(mine, shared, rng.random(n)) < p).astype(int)
    pq.write_table(pa.table({"y": y, "p": p}), tmp_path / "runs.parquet", row_group_size=3_333)
    scan = it.scan(tmp_path / "runs.parquet", label="y", prob="p")
    with pytest.warns(it.AssumptionWarning, match="next to each other"):
        it.audit(scan, draws=99, rng=0, charts=False)
    one, other = scan.extract().runs, scan.load().extract().runs
    assert np.array_equal(one.p, other.p)
    assert one.n == 400 * 50


@pytest.mark.usefixtures("few_at_hand")
def test_an_unfinished_stretch_takes_no_place(monkeypatch):
    """In memory 400 stretches were kept before whole ones were chosen, in files 401."""
    monkeypatch.setattr(extracts, "RUNS", 4)
    for n in range(5_001, 6_000, 7):
        assert extracts.whole_runs(extracts.run_tickets(0, n)).size == 4 * 50, n


@pytest.mark.usefixtures("few_at_hand")
def test_windows_of_any_size_give_the_same_audit(both, folder, monkeypatch):
    monkeypatch.setattr("itrust.data.files.WINDOW_ROWS", 617)
    again = audited(it.scan(folder, **ROLES), charts=False)
    assert again.test.pvalue == both[1].test.pvalue
    assert_alike(told(again)["parts"][0]["diagnosis"], told(both[1])["parts"][0]["diagnosis"])


@pytest.mark.usefixtures("few_at_hand")
def test_more_tasks_than_a_number_has_bits(folder):
    scan = it.scan(folder, **ROLES)
    tasks = [it.tasks.parse(f"prevalence(age == {age})") for age in range(18, 88)]
    memory, files = (evaluate_tasks(rows, tasks, draws=99, rng=0) for rows in (scan.load(), scan))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extracts, "EXTRACT_ROWS", N)
        exact = evaluate_tasks(scan.load(), tasks, draws=99, rng=0)
    for one, other, truth in zip(memory, files, exact, strict=True):
        assert one.pvalue == other.pvalue
        assert one.lower == pytest.approx(other.lower, rel=1e-9)
        # A law that is smoothed on rows at hand is nearly that of all rows.
        assert (one.lower, one.upper) == pytest.approx((truth.lower, truth.upper), abs=0.01)


@pytest.mark.usefixtures("few_at_hand")
def test_a_pilot_of_another_size_has_no_part_in_tasks(folder, weighted):
    scan = it.scan(folder, **ROLES, weights="w")
    engine = it.engines.Factor(pilot=3 * PILOT)
    larger = it.audit(scan, TASKS, draws=99, rng=0, engine=engine, charts=False)
    for one, other in zip(weighted[1].tasks, larger.tasks, strict=True):
        assert one.pvalue == pytest.approx(other.pvalue, abs=0.011)  # a tie may fall either way
        assert one.lower == pytest.approx(other.lower, rel=1e-6)


@pytest.mark.parametrize("cluster", [False, True])
def test_several_categories_of_many_levels_share_the_room_for_groups(cluster, monkeypatch):
    for module in ("auditing.measuring", "bias.groups"):  # of 2,000, which take long
        monkeypatch.setattr(f"itrust.{module}.MAX_GROUPS", 200)
    rng = np.random.default_rng(4)
    n = 1_200
    p = rng.uniform(0.2, 0.8, n)
    x = {f"c{k}": [f"v{v}" for v in rng.integers(0, 60, n)] for k in range(4)}
    design = {"cluster": np.arange(n) // 4} if cluster else {}
    sample = it.Sample(rng.random(n) < p, p, x, categories=list(x), **design)
    groups = it.audit(sample, draws=39, rng=0, charts=False).diagnosis.groups
    assert 190 < len(groups) <= 200
    assert any("most frequent" in note for note in groups.notes)


@pytest.mark.usefixtures("few_at_hand")
def test_levels_with_value_labels_keep_the_order_of_their_codes():
    rng = np.random.default_rng(5)
    code, p = rng.integers(1, 4, N), rng.uniform(0.2, 0.8, N)
    code[rng.integers(0, N)] = 9  # one row, most likely not at hand
    labels = {"c": {1: "zeta", 2: "beta", 3: "alpha", 9: "mid"}}
    sample = it.Sample(rng.random(N) < p, p, {"c": code}, categories=["c"], value_labels=labels)
    levels = sample.column("c").levels
    assert list(sample.extract().some.column("c").levels) == list(levels)
    assert list(levels) == ["zeta", "beta", "alpha", "mid"]


@pytest.mark.usefixtures("few_at_hand")
def test_a_bad_row_is_told_with_its_file(folder, tmp_path):
    rows = pq.read_table(folder / "c.parquet").to_pydict()
    rows["p"][2_321] = 1.5
    pq.write_table(pa.table(rows), tmp_path / "bad.parquet", row_group_size=1_000)
    with pytest.raises(it.InputError, match=r"bad\.parquet.*row 2321.*1\.5"):
        it.audit(it.scan(tmp_path / "bad.parquet", **ROLES), draws=99, rng=0)
    with pytest.raises(it.InputError, match="did you mean 'age'"):
        it.audit(it.scan(folder, **ROLES), on=["agee"], draws=99)
    with pytest.raises(it.InputError, match=r"no covariate"):
        it.audit(it.scan(folder, **ROLES), ["mean(income)"], draws=99)
    with pytest.raises(it.InputError, match="no row of positive weight satisfies"):
        it.audit(it.scan(folder, **ROLES), ["mean(age | age > 200)"], draws=99)
