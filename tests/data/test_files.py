import gzip
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import itrust as it
from itrust import InputError, nulls, scores
from itrust.engines import Factor, Tiles

ROLES = dict(label="owner", prob="p", on=["income", "region"])


def table(n=3000, seed=0, trustworthy=False):
    s = it.simulate.survey(n, rng=seed, trustworthy=trustworthy).sample
    region = s.column("region")
    return pa.table(
        {
            "id": np.arange(n),
            "owner": np.where(s.y == 1, "yes", "no"),
            "p": s.p,
            "income": s.column("income").values,
            "region": [region.levels[code] for code in region.values],
            "w": np.linspace(1, 2, n),
        }
    )


def in_memory(rows, **changes):
    return it.Sample.from_frame(rows, **{**ROLES, "positive": "yes", **changes})


def scanned(path, **changes):
    return it.scan(path, **{**ROLES, "positive": "yes", **changes})


def write(rows, path):
    if path.suffix == ".parquet":
        pq.write_table(rows, path, row_group_size=700)
    elif path.suffix == ".feather":
        pa.feather.write_feather(rows, path)
    else:
        plain = path.with_suffix("") if path.suffix == ".gz" else path
        separator = "\t" if plain.suffix == ".tsv" else ","
        pa.csv.write_csv(rows, plain, pa.csv.WriteOptions(delimiter=separator))
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(plain.read_bytes()))
            plain.unlink()
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.csv", "a.tsv", "a.csv.gz"])
def test_every_format_gives_the_answer_of_the_sample_in_memory(tmp_path, name):
    rows = table()
    kernel = it.kernels.LocalKernel(
        it.kernels.RBF(0.1), {"income": it.kernels.RBF(2e4), "region": it.kernels.Delta()}
    )
    mine = it.klce_test(in_memory(rows), kernel, draws=99, rng=0, engine=Factor())
    theirs = it.klce_test(scanned(write(rows, tmp_path / name)), kernel, draws=99, rng=0)
    assert theirs.pvalue == mine.pvalue
    np.testing.assert_allclose(
        theirs.null_distribution, mine.null_distribution, rtol=1e-3, atol=1e-9
    )
    assert theirs.n == mine.n == 3000


def test_folders_patterns_and_lists_are_read_in_order(tmp_path):
    rows = table()
    for k in range(3):
        write(rows.slice(1000 * k, 1000), tmp_path / f"part-{k}.parquet")
    whole = it.klce_test(in_memory(rows), draws=49, rng=0, engine=Factor())
    paths = sorted(tmp_path.iterdir())
    for path in (tmp_path, str(tmp_path / "*.parquet"), paths):
        found = it.klce_test(scanned(path), draws=49, rng=0)
        assert found.pvalue == whole.pvalue
        assert found.statistic == pytest.approx(whole.statistic, rel=1e-3)


def test_a_sorted_file_gives_landmarks_from_its_whole(tmp_path):
    rows = table(30_000).sort_by("income")
    pilot = scanned(write(rows, tmp_path / "a.parquet")).pilot(500).points
    ranks = np.searchsorted(rows["income"].to_numpy(), pilot.columns[0].values) / 30_000
    assert abs(ranks.mean() - 0.5) < 0.06
    assert np.histogram(ranks, 5, (0, 1))[0].min() > 60
    same = in_memory(rows).pilot(500).points
    np.testing.assert_array_equal(np.sort(same.p), np.sort(pilot.p))


def test_weights_and_other_nulls_stream_too(tmp_path):
    rows = table()
    file = write(rows, tmp_path / "a.parquet")
    for null in (nulls.Spectral(), nulls.Rademacher()):
        settings = dict(null=null, draws=99, rng=0)
        mine = it.klce_test(in_memory(rows, weights="w"), engine=Factor(), **settings)
        theirs = it.klce_test(scanned(file, weights="w"), **settings)
        assert theirs.pvalue == pytest.approx(mine.pvalue, rel=0.02)
        assert theirs.weighted
    mine, theirs = in_memory(rows, weights="w"), scanned(file, weights="w")
    assert it.klce2(theirs) == pytest.approx(it.klce2(mine), abs=0.02 * it.null_sd(mine))
    assert it.null_sd(theirs) == pytest.approx(it.null_sd(mine), rel=0.01)


@pytest.mark.parametrize("weights", [None, "w"])
def test_scores_stream_too(tmp_path, weights):
    rows = table()
    mine = in_memory(rows, weights=weights)
    theirs = scanned(write(rows, tmp_path / "a.parquet"), weights=weights)
    for score in (scores.brier, scores.log_loss, scores.ece, scores.mce, scores.smooth_ece):
        assert score(theirs) == pytest.approx(score(mine), rel=1e-9)
    curve, own = scores.reliability_curve(theirs), scores.reliability_curve(mine)
    np.testing.assert_allclose(curve.upper, own.upper)
    bins = scores.EqualMass(5)
    assert scores.ece(theirs, bins) == pytest.approx(scores.ece(mine, bins), rel=1e-9)


def test_missing_values_are_refused_dropped_or_a_level(tmp_path):
    rows = table()
    income = rows["income"].to_pylist()
    income[2500] = None
    region = rows["region"].to_pylist()
    region[7] = None
    rows = rows.set_column(3, "income", [income]).set_column(4, "region", [region])
    file = write(rows, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a.parquet: .*'region' in 1 row \(first: row 7\)"):
        it.klce_test(scanned(file), draws=9)
    for missing in ("drop", "level"):
        mine = it.klce_test(in_memory(rows, missing=missing), draws=49, rng=0, engine=Factor())
        theirs = it.klce_test(scanned(file, missing=missing), draws=49, rng=0)
        assert (theirs.n, theirs.pvalue) == (mine.n, mine.pvalue)


def test_load_brings_everything_into_memory(tmp_path):
    rows = table()
    s = scanned(write(rows, tmp_path / "a.csv")).load()
    assert s.n == 3000
    np.testing.assert_allclose(s.p, in_memory(rows).p)


def broken(rows, column, row, value):
    values = rows[column].to_pylist()
    values[row] = value
    return rows.set_column(rows.column_names.index(column), column, [values])


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("p", 1.2, r"prob must lie in \[0, 1\]; row 2999 has 1.2"),
        ("income", float("inf"), r"covariate 'income' must be finite; row 2999 has inf"),
        ("p", None, r"1 row has no prob \(first: row 2999\)"),
    ],
)
def test_a_wrong_value_at_the_very_end_is_found_with_its_row(
    tmp_path, name, column, value, message
):
    file = write(broken(table(), column, 2999, value), tmp_path / name)
    with pytest.raises(InputError, match=rf"{name}: {message}"):
        it.klce_test(scanned(file), draws=9, rng=0)


def test_labels_beside_the_positive_one_count_as_0_and_are_named(tmp_path):
    rows = table()
    rows = pa.concat_tables([rows, broken(rows.slice(0, 1), "owner", 0, "maybe")])
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=1000)
    streamed = it.klce_test(scanned(tmp_path / "a.parquet"), draws=9, rng=0)
    assert "all labels but the positive one ('maybe', 'no') count as 0" in streamed.notes
    loaded = scanned(tmp_path / "a.parquet").load()
    assert "the label 'yes' counts as 1, all others ('maybe', 'no') as 0" in loaded.notes
    assert streamed.pvalue == it.klce_test(loaded, draws=9, rng=0).pvalue


def test_files_that_end_in_the_middle_are_one_sentence(tmp_path):
    for name in ("a.parquet", "a.feather", "a.csv.gz"):
        file = write(table(), tmp_path / name)
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        with pytest.raises(InputError, match=rf"{name} cannot be read to its end .* is it whole"):
            it.klce_test(scanned(file), draws=9, rng=0)
    text = write(table(), tmp_path / "a.csv")
    text.write_text(text.read_text()[:-40] + "\n")
    with pytest.raises(InputError, match=r"a.csv cannot be read to its end .*columns"):
        it.klce_test(scanned(text), draws=9, rng=0)


def test_an_error_about_a_damaged_row_does_not_quote_it(tmp_path):
    text = write(table(), tmp_path / "a.csv")
    first, *rest = text.read_text().splitlines()
    text.write_text("\n".join([first, *rest[:20], "secret,0.4389", *rest[20:], ""]))
    width = len(first.split(","))
    told = rf"\(CSV parse error: (Row #22: )?Expected {width} columns, got 2\); is it whole"
    with pytest.raises(InputError, match=told):
        scanned(text).load()


@pytest.mark.parametrize("ending", ["parquet", "feather", "arrow", "csv", "jsonl", "xlsx", "db"])
def test_a_file_without_a_byte_is_empty(tmp_path, ending):
    (tmp_path / f"a.{ending}").touch()
    with pytest.raises(InputError, match=rf"^a\.{ending} is empty$"):
        scanned(tmp_path / f"a.{ending}").load()


def test_text_far_down_in_a_number_column_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("itrust.data.formats.text.CSV_BLOCK_BYTES", 2000)
    text = write(table(), tmp_path / "a.csv")
    lines = text.read_text().splitlines()
    lines[2500] = lines[2500].replace(lines[2500].split(",")[3], "n.a.")
    text.write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"a.csv cannot .*'n.a.'.*give the column one type"):
        it.klce_test(scanned(text), draws=9, rng=0)


def test_a_type_that_changes_between_files_is_one_sentence(tmp_path):
    rows = table(50)
    write(rows, tmp_path / "a.parquet")
    as_text = rows.set_column(3, "income", [[str(v) for v in rows["income"].to_pylist()]])
    write(as_text, tmp_path / "b.parquet")
    with pytest.raises(
        InputError, match=r"b.parquet: column 'income' is text, but number in a.parq"
    ):
        scanned(tmp_path)


def test_whole_numbers_in_one_file_and_decimals_in_another_are_both_numbers(tmp_path):
    rows = table(2000)
    write(rows.slice(0, 1000), tmp_path / "a.parquet")
    whole = np.rint(rows["income"].to_numpy()).astype(int)
    write(rows.set_column(3, "income", [whole]).slice(1000), tmp_path / "b.parquet")
    assert it.klce_test(scanned(tmp_path), draws=9, rng=0).n == 2000


def test_row_groups_without_rows_are_passed_over(tmp_path):
    rows = table(2000)
    with pq.ParquetWriter(tmp_path / "a.parquet", rows.schema) as writer:
        for part in (rows.slice(0, 0), rows.slice(0, 1000), rows.slice(0, 0), rows.slice(1000)):
            writer.write_table(part)
    assert it.klce_test(scanned(tmp_path / "a.parquet"), draws=9, rng=0).n == 2000


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder, "holds no CSV, TSV, .* or SQLite file"),
        (lambda folder: folder / "none.parquet", "there is no file"),
        (lambda folder: str(folder / "*.parquet"), "no file matches"),
        (lambda folder: shutil.copy(__file__, folder / "a.docx"), "the ending must be one of"),
        (lambda _folder: [], "the list of files is empty"),
        (lambda _folder: None, "scan takes paths, not a NoneType"),
        (lambda folder: (shutil.copy(__file__, folder / "a.docx"), str(folder / "*"))[1], "ending"),
    ],
)
def test_what_is_no_file_is_one_sentence(tmp_path, make, message):
    with pytest.raises(InputError, match=message):
        scanned(make(tmp_path))


def test_wrong_columns_and_engines_are_one_sentence(tmp_path):
    file = write(table(50), tmp_path / "a.parquet")
    with pytest.raises(
        InputError, match=r"a.parquet: there is no column 'incom'; did you mean 'incom"
    ):
        scanned(file, on="incom")
    with pytest.raises(InputError, match="'p' is the prob column; take it out"):
        scanned(file, on="p")
    with pytest.raises(InputError, match="tiles need a Sample in memory"):
        it.klce_test(scanned(file), engine=Tiles())
    with pytest.raises(InputError, match=r"Permutation\(\) needs all rows at once"):
        it.klce_test(scanned(file), null=nulls.Permutation())
    empty = write(table(50).slice(0, 0), tmp_path / "b.parquet")
    with pytest.raises(InputError, match="the files hold no rows"):
        it.klce_test(scanned(empty))


def test_dropped_rows_are_told_and_rows_keep_their_numbers(tmp_path):
    rows = table()
    for row in (3, 5, 2999, *range(1400, 2100)):  # the last row, and a whole row group
        rows = broken(rows, "income", row, None)
    file = write(rows, tmp_path / "a.parquet")
    r = it.klce_test(scanned(file, missing="drop"), draws=9, rng=0)
    assert r.n == 2297
    assert "left out 703 rows of 3,000 with missing values: 703 lack 'income'" in r.notes
    file = write(broken(rows, "p", 100, 1.5), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b.parquet: prob must lie in \[0, 1\]; row 100 has 1.5"):
        it.klce_test(scanned(file, missing="drop"), draws=9, rng=0)


def test_values_that_look_like_row_numbers_are_left_alone(tmp_path):
    rows = table(100).set_column(1, "owner", [["row 3", "row 4"] * 50])
    file = write(rows, tmp_path / "a.parquet")
    with pytest.raises(
        InputError, match="no label is the positive one; the labels are 'row 3', 'row 4'"
    ):
        it.klce_test(scanned(file, positive="yes"), draws=9)


def test_categories_text_and_dates_of_several_forms_go_together(tmp_path):
    rows = table(2000)
    days = np.arange(2000).astype("datetime64[D]")
    rows = rows.append_column("day", pa.array(days))
    write(rows.slice(0, 1000), tmp_path / "a.parquet")
    other = rows.set_column(4, "region", rows["region"].dictionary_encode())
    other = other.set_column(6, "day", pa.array(days.astype("datetime64[ms]")))
    write(other.slice(1000), tmp_path / "b.feather")
    with pytest.raises(InputError, match="several formats, Feather and Parquet"):
        scanned(tmp_path)  # one may be made from the other
    both = [tmp_path / "a.parquet", tmp_path / "b.feather"]
    found = it.klce_test(scanned(both, on=["region", "day"]), draws=9, rng=0)
    assert found.n == 2000


def test_a_column_that_is_empty_at_first_is_still_a_number(tmp_path, monkeypatch):
    monkeypatch.setattr("itrust.data.formats.text.CSV_BLOCK_BYTES", 2000)
    rows = table(2000)
    income = [None] * 1000 + rows["income"].to_pylist()[1000:]
    file = write(rows.set_column(3, "income", [income]), tmp_path / "a.csv")
    kernel = it.klce_test(scanned(file, missing="level"), draws=9, rng=0).kernel
    assert "RBF" in repr(kernel.x)


def test_hidden_files_are_skipped_and_doubles_refused(tmp_path):
    write(table(1500), tmp_path / "a.parquet")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    write(table(1500), tmp_path / ".ipynb_checkpoints" / "a-checkpoint.parquet")
    (tmp_path / "notes.txt").write_text("some words")
    assert it.klce_test(scanned(tmp_path), draws=9, rng=0).n == 1500
    with pytest.raises(InputError, match="stands more than once among the files"):
        scanned([tmp_path / "a.parquet", tmp_path / "a.parquet"])


def test_files_without_rows_or_weight_are_one_sentence(tmp_path):
    rows = table(1500)
    none = scanned(write(rows.slice(0, 0), tmp_path / "a.parquet"))
    for call in (scores.brier, scores.smooth_ece, scores.ece):
        with pytest.raises(InputError, match="no rows with a positive weight"):
            call(none)
    with pytest.raises(InputError, match=r"a\.parquet holds no rows"):
        none.load()
    weightless = rows.set_column(5, "w", [[0.0] * 1500])
    zero = scanned(write(weightless, tmp_path / "b.parquet"), weights="w")
    with pytest.raises(InputError, match="weights are zero in all rows"):
        it.klce_test(zero, draws=9, rng=0)


def test_the_unit_of_weights_is_free(tmp_path):
    rows = table()
    plain = it.klce2(scanned(write(rows, tmp_path / "a.parquet"), weights="w"))
    for unit in (1e-22, 1e20):
        scaled = rows.set_column(5, "w", [rows["w"].to_numpy() * unit])
        found = it.klce2(scanned(write(scaled, tmp_path / "b.parquet"), weights="w"))
        assert found == pytest.approx(plain, rel=1e-3)


def test_what_a_scan_lacks_points_to_load(tmp_path):
    scan = scanned(write(table(50), tmp_path / "a.parquet"))
    with pytest.raises(AttributeError, match=r"a Scan has no 'take'; scan.load\(\) gives a Sample"):
        scan.take([0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(missing="dropp"), "missing must be one of 'error', 'level', 'drop', not 'dropp'"),
        (dict(label=None), "are names of columns, not None"),
    ],
)
def test_wrong_settings_of_a_scan_are_one_sentence(tmp_path, arguments, message):
    file = write(table(50), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=message):
        scanned(file, **arguments)


@pytest.mark.parametrize(("role", "wrong"), [("label", 1), ("prob", 2), ("on", 3), ("weights", 0)])
def test_a_wrong_name_is_told_with_its_role(tmp_path, role, wrong):
    with pytest.raises(InputError, match=f"are names of columns, not {wrong}") as told:
        scanned(write(table(50), tmp_path / "a.parquet"), **{role: wrong})
    assert (told.value.argument, told.value.value) == (role, wrong)


def test_one_class_is_told(tmp_path):
    rows = table(200)
    rows = rows.set_column(1, "owner", [["no"] * 200])
    r = it.klce_test(scanned(write(rows, tmp_path / "a.parquet")), draws=9, rng=0)
    assert r.notes == ("one class only: every label counts as 0",)


def drawn(n=3000):
    days = np.datetime64("2024-01-01") + np.arange(n) // 10
    design = {
        "shop": np.array(["u", "v", "w"])[np.arange(n) % 3],
        "stratum": np.arange(n) // 300,
        "psu": np.arange(n) // 30 % 2 + 1,
        "day": days,
        **{f"rw{k}": np.where((np.arange(n) // 30 + k) % 2, 0.0, 2.0) for k in (11, 2, 1)},
    }
    rows = table(n)
    for name, values in design.items():
        rows = rows.append_column(name, pa.array(values))
    return rows


DRAWN = dict(
    weights="w",
    cluster=["stratum", "psu"],
    strata="stratum",
    replicate_weights="rw*",
    replicate_method="brr",
)


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.csv"])
def test_load_carries_the_whole_design(tmp_path, name):
    file = write(drawn(), tmp_path / name)
    loaded, memory = scanned(file, **DRAWN).load(), in_memory(drawn(), **DRAWN)
    assert loaded.cluster.tolist() == memory.cluster.tolist()
    assert loaded.strata.tolist() == memory.strata.tolist()
    assert np.allclose(loaded.design.replicate_weights, memory.design.replicate_weights)
    assert str(loaded.design.replication) == "brr"
    weeks = scanned(file, cluster=["shop", "week(day)"]).load()
    assert weeks.clusters == in_memory(drawn(), cluster=["shop", "week(day)"]).clusters == 129
    assert scanned(file, cluster="blocks(day)").load().clusters < 300


@pytest.mark.parametrize(
    "design",
    [
        dict(cluster="shop"),
        dict(strata="stratum"),
        dict(replicate_weights="rw*", replicate_method="brr"),
    ],
)
def test_designs_in_files_are_refused_where_they_matter(tmp_path, design):
    source = scanned(write(drawn(), tmp_path / "a.parquet"), **design)
    for call in (it.klce_test, it.klce2, it.null_sd):
        with pytest.raises(InputError, match=r"tested in memory; use scan\(...\).load\(\)"):
            call(source)
    assert scores.ece(source) >= 0


def test_wrong_columns_of_a_design_are_refused_before_a_row_is_read(tmp_path):
    file = write(drawn(), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="no column 'shp'; did you mean 'shop'"):
        scanned(file, cluster="shp")
    with pytest.raises(InputError, match=r"no column matches 'RW\*'; did you mean 'rw\*'"):
        scanned(file, replicate_weights="RW*", replicate_method="brr")
