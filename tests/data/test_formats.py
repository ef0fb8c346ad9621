"""Every format gives the rows that a CSV file gives; what cannot be read is one sentence."""

import datetime as dt
import gzip
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import itrust as it
from itrust import InputError
from itrust.data import FORMATS, FilePart, FileSet, known_format
from writers import WRITERS, as_csv, as_spss, as_stata

ROLES = dict(label="y", prob="p", on=["age", "race", "day"])
ROWS = pa.table(
    {
        "y": [0, 1, 1, 0],
        "p": [0.25, 0.5, 0.125, 0.75],
        "age": [31.5, None, 40.0, 22.0],
        "race": ["b", "w", None, "é"],
        "day": [dt.date(2020, 2, 29), dt.date(1999, 12, 31), dt.date(2001, 1, 1), None],
    }
)


def path_of(name):
    (path,) = FileSet.of(name).files
    return path


def read(path, *names):
    source = FileSet.of(path)
    return source.table(list(names) or source.names).to_pydict()


def untouched(path):
    source = FileSet.of(path)
    return pa.concat_tables(source.untouched(source.names), promote_options="permissive")


def sheet(path, *rows, **others):
    """A workbook; sheets after the first by name."""
    pytest.importorskip("fastexcel")
    book = pytest.importorskip("openpyxl").Workbook()
    pages = [(book.active, rows), *((book.create_sheet(k), v) for k, v in others.items())]
    for page, lines in pages:
        for line in lines:
            page.append(line)
        for cell in (cell for line in page.iter_rows() for cell in line):
            if str(cell.value).startswith("#"):
                cell.data_type = "e"
    book.save(path)
    return path


def database(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def facts(sample):
    columns = [(c.name, c.kind, c.values.tolist(), c.levels) for c in sample.columns]
    return repr((sample.y.tolist(), sample.p.tolist(), columns))


NUMBERS = st.floats(-1e9, 1e9).map(lambda number: round(number, 3) + 0.0)
LINE = st.tuples(
    st.integers(0, 1),
    st.floats(0, 1).map(lambda number: round(number, 9)),
    st.none() | NUMBERS,
    st.none() | st.sampled_from(["a", "b c", "é, ü", "x;y", '"']),
    st.none() | st.dates(dt.date(1900, 3, 1), dt.date(2100, 1, 1)),
)
WHOLE = [(0, 0.5, 1.5, "a", dt.date(2020, 1, 2)), (1, 0.25, 2.0, "z", dt.date(1969, 1, 2))]


@pytest.mark.parametrize("name", WRITERS)
@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lines=st.lists(LINE, max_size=6))
def test_every_format_gives_the_sample_of_a_csv_file(name, lines, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    columns = zip(*WHOLE, *lines, strict=True)
    rows = pa.table(dict(zip(ROWS.column_names, map(list, columns), strict=True)))
    as_csv(rows, folder / "a.csv")
    WRITERS[name](rows, folder / name)
    found, expected = (
        it.scan(folder / file, **ROLES, missing="level").load() for file in (name, "a.csv")
    )
    assert facts(found) == facts(expected)


@pytest.mark.parametrize("name", WRITERS)
def test_rows_come_in_batches_that_make_the_whole(name, tmp_path, monkeypatch):
    for module in ("tables",):
        monkeypatch.setattr(f"itrust.data.formats.{module}.BATCH_ROWS", 3)
    monkeypatch.setattr("itrust.data.formats.text.JSON_BLOCK_BYTES", 200)
    rows = pa.concat_tables([ROWS, ROWS])
    WRITERS[name](rows, tmp_path / name)
    path = tmp_path / name
    batches = list(known_format(path).batches(FilePart(path), ["p", "y"]))
    assert all(batch.schema.names == ["p", "y"] for batch in batches)
    assert len(batches) > 1 or path.suffix in (".parquet", ".feather")
    found = pa.Table.from_batches(batches)
    assert found["p"].to_pylist() == rows["p"].to_pylist()
    assert found["y"].to_pylist() == rows["y"].to_pylist()
    assert untouched(path)["race"].to_pylist() == rows["race"].to_pylist()


@pytest.mark.parametrize("name", WRITERS)
def test_a_column_that_is_not_there_is_told_with_its_neighbour(name, tmp_path):
    WRITERS[name](ROWS, tmp_path / name)
    with pytest.raises(InputError, match=rf"{name}: there is no column 'aeg'; did you mean 'age'"):
        it.scan(tmp_path / name, label="y", prob="p", on="aeg")


@pytest.mark.parametrize("name", WRITERS)
def test_files_without_rows_are_told_so(name, tmp_path):
    WRITERS[name](ROWS.slice(0, 0), tmp_path / name)
    told = r"is empty" if "json" in name else f"{name} holds no rows"
    with pytest.raises(InputError, match=told):
        read(tmp_path / name)


WHOLE_FILES = [name for name in WRITERS if name not in ("a.parquet", "a.feather")]


@pytest.mark.parametrize("name", WHOLE_FILES)
@pytest.mark.parametrize("kept", [0.0, 0.301, 0.983])
def test_damaged_files_get_one_sentence(name, kept, tmp_path):
    path = tmp_path / name
    WRITERS[name](pa.concat_tables([ROWS] * 200), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole))])
    with pytest.raises(InputError, match=rf"{name}( cannot be read| is empty| has lost its end)"):
        read(path)


@pytest.mark.parametrize("name", [name for name in WHOLE_FILES if not name.endswith("gz")])
def test_a_wrong_ending_gets_one_sentence(name, tmp_path):
    if name not in ("a.jsonl", "a.sqlite"):
        WRITERS[name](ROWS, tmp_path / name)  # which skips where the package is missing
    as_csv(ROWS, tmp_path / name)
    told = "must hold an object a line" if name == "a.jsonl" else "whatever its ending says"
    with pytest.raises(InputError, match=f"{name} .*{told}"):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("a.dta", "pyreadstat", "stata"),
        ("a.sav", "pyreadstat", "spss"),
        ("a.xlsx", "fastexcel", "excel"),
    ],
)
def test_without_its_package_a_format_names_the_line_that_installs_it(
    name, package, extra, tmp_path, monkeypatch
):
    (tmp_path / name).write_bytes(b"anything")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        InputError, match=rf"a.* files takes {package}; pip install 'itrust\[{extra}"
    ):
        read(tmp_path / name)


def test_optional_packages_are_not_loaded_before_a_file_wants_them():
    code = (
        "import sys, itrust.data; "
        "print([name for name in ('pyreadstat', 'fastexcel') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_formats_differ_in_their_endings_and_beginnings():
    endings = [ending for kind in FORMATS for ending in kind.endings]
    assert len(endings) == len(set(endings))
    magic = [start for kind in FORMATS for start in kind.magic]
    assert len(magic) == len(set(magic))


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if not kind.is_written])
def test_formats_that_are_not_written_say_so(kind, tmp_path):
    with pytest.raises(InputError, match=r"are read, not written; take \.csv or \.parquet"):
        kind.write(ROWS, tmp_path / f"a{kind.endings[0]}")
    assert not list(tmp_path.iterdir())


def test_what_lies_beside_data_in_a_folder_is_passed_over(tmp_path):
    as_csv(ROWS, tmp_path / "a.csv")
    for name in ("thumbs.db", "readme.txt", "~$homes.xlsx"):
        (tmp_path / name).write_bytes(b"?")
    assert FileSet.of(tmp_path).files == (tmp_path / "a.csv",)


# Stata and SPSS


def test_codes_stay_numbers_and_what_they_mean_leaves_out_the_missing_ones(tmp_path):
    pd = pytest.importorskip("pandas")
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"race": pd.Series([1, "a", 2, "z", None], dtype=object)})
    labels = {1: "white", 2: "black", 3: "none of these", "a": "refused"}
    pyreadstat.write_dta(
        frame,
        tmp_path / "a.dta",
        variable_value_labels={"race": labels},
        missing_user_values={"race": ["a", "z"]},
    )
    path = tmp_path / "a.dta"
    assert untouched(path)["race"].to_pylist() == [1, None, 2, None, None]
    assert untouched(path)["race"].type == pa.int64()
    assert known_format(path).value_labels(path) == {
        "race": {1: "white", 2: "black", 3: "none of these"}
    }


def test_user_missing_values_and_ranges_of_spss_are_missing(tmp_path):
    rows = pa.table(
        {
            "race": [1.0, 2.0, 8.0, 9.0, None, -5.0],
            "work": ["m", "f", "x", "m", "", "f"],
            "half": [0.5, 1.0, 1.0, 0.5, 0.5, 1.0],
        }
    )
    path = tmp_path / "a.sav"
    as_spss(
        rows,
        path,
        variable_value_labels={
            "race": {1: "white", 2: "black", 8: "unknown", 9: "refused", -5: "other"},
            "work": {"m": "manual", "x": "not asked"},
            "half": {0.5: "a half", 1: "one"},
        },
        missing_ranges={"race": [{"lo": 8, "hi": 99}, -5], "work": ["x"]},
    )
    found = read(path)
    assert found["race"] == [1, 2, None, None, None, None]
    assert found["work"] == ["m", "f", None, "m", None, "f"]
    assert known_format(path).value_labels(path) == {
        "race": {1: "white", 2: "black"},
        "work": {"m": "manual"},
        "half": {0.5: "a half", 1: "one"},
    }


@pytest.mark.parametrize("version", [8, 10, 12, 13, 14, 15])
def test_every_version_of_stata_is_recognised_and_read(version, tmp_path):
    as_stata(ROWS.drop_columns(["race"]), tmp_path / "a.dta", version=version)
    assert read(tmp_path / "a.dta", "y", "p", "age") == ROWS.select(["y", "p", "age"]).to_pydict()
    head = (tmp_path / "a.dta").read_bytes()[:64]
    assert it.data.formats.format_of_bytes(head).title == "Stata"


@pytest.mark.parametrize(
    ("unit", "number", "date"),
    [
        ("d", 0, "1960-01-01"),
        ("d", 21_915, "2020-01-01"),
        ("d", -1, "1959-12-31"),
        ("c", 1_893_474_367_500, "2020-01-01T05:06:07.500000"),
        ("m", 721, "2020-02-01"),
        ("m", -1, "1959-12-01"),
        ("q", 243, "2020-10-01"),
        ("h", 121, "2020-07-01"),
        ("w", 52 * 60 + 2, "2020-01-15"),
    ],
)
def test_times_of_stata_count_from_1960(unit, number, date):
    (found,) = known_format(Path("a.dta")).times(np.array([number], dtype=float), unit)
    assert found == np.datetime64(date)


@pytest.mark.parametrize(
    ("display", "unit"),
    [
        ("%td", "d"),
        ("%d", "d"),
        ("%-tdD_m_Y", "d"),
        ("%tcHH:MM:SS", "c"),
        ("%tC", "C"),
        ("%tm", "m"),
        ("%ty", None),
        ("%9.0g", None),
        ("%-9s", None),
        ("", None),
    ],
)
def test_formats_of_stata_tell_dates(display, unit):
    assert known_format(Path("a.dta")).time_unit(display) == unit


def test_times_of_both_packages_are_those_that_pyreadstat_gives(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    days = [dt.date(1905, 3, 1), dt.date(2020, 2, 29), None, dt.date(1960, 1, 1)]
    times = [dt.datetime(2020, 2, 29, 23, 59, 58), dt.datetime(1950, 1, 1), None, None]
    rows = pa.table({"day": days, "time": pa.array(times, pa.timestamp("us"))})
    as_stata(rows, tmp_path / "a.dta")
    as_spss(rows, tmp_path / "a.sav")
    for name, reader in (("a.dta", pyreadstat.read_dta), ("a.sav", pyreadstat.read_sav)):
        expected, _ = reader(tmp_path / name, output_format="dict")
        found = untouched(tmp_path / name)
        assert found["day"].to_pylist() == list(expected["day"]) == days
        assert found["time"].to_pylist() == list(expected["time"]) == times


@pytest.mark.parametrize(
    ("display", "unit"),
    [
        *[("DATE11", "D"), ("SDATE10", "D"), ("MOYR8", "D"), ("DATETIME20", "us")],
        *[("YMDHMS16", "us"), ("TIME8", None), ("F8.2", None), ("A12", None), ("MONTH9", None)],
    ],
)
def test_formats_of_spss_tell_dates(display, unit):
    assert known_format(Path("a.sav")).time_unit(display) == unit


def test_numbers_beyond_the_calendar_are_one_sentence(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"day": [1.0, 1e9]})
    write = pytest.importorskip("pyreadstat").write_dta
    write(frame, tmp_path / "a.dta", variable_format={"day": "%td"})
    with pytest.raises(InputError, match=r"'day' holds 1000000000.0, which is no date of the"):
        read(tmp_path / "a.dta")


def test_text_in_another_encoding_is_one_sentence(tmp_path):
    path = tmp_path / "a.dta"
    for version, letter in ((12, b"\x81 "), (14, b"\xe9 ")):  # Windows' letters, then UTF-8
        as_stata(pa.table({"race": ["cafXX", "b"]}), path, version=version)
        path.write_bytes(path.read_bytes().replace(b"XX", letter))
        with pytest.raises(InputError, match=r"a.dta has text that is not in the encoding"):
            read(path)


# Excel


def test_the_first_sheet_is_read_and_the_others_are_told(tmp_path):
    path = sheet(tmp_path / "a.xlsx", ["y", "p"], [1, 0.5], old=[["y", "q"], [0, 0.25]])
    assert read(path) == {"y": [1], "p": [0.5]}
    assert FileSet.of(path).notes == [
        "a.xlsx: reading the sheet 'Sheet'; the others are 'old' (name one as a.xlsx::old)"
    ]
    assert it.scan(path, label="y", prob="p").notes == tuple(FileSet.of(path).notes)
    named = path_of(f"{path}::old")
    assert read(named) == {"y": [0], "q": [0.25]}
    assert FileSet.of(named).notes == []
    with pytest.raises(InputError, match=r"a.xlsx: there is no sheet 'odl'; did you mean 'old'"):
        read(f"{path}::odl")


def test_a_hidden_sheet_is_not_the_first(tmp_path):
    path = sheet(tmp_path / "a.xlsx", ["lists"], ["x"], seen=[["y"], [0]])
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(path)
    book.active = 1
    book.worksheets[0].sheet_state = "hidden"
    book.save(path)
    assert read(path) == {"y": [0]}


def test_a_book_that_was_changed_is_read_again(tmp_path):
    path = sheet(tmp_path / "a.xlsx", ["y"], [0])
    assert read(path) == {"y": [0]}
    sheet(path, ["y"], [1], [1])
    assert read(path) == {"y": [1, 1]}


def test_errors_of_formulas_and_words_for_nothing_are_missing(tmp_path):
    path = sheet(
        tmp_path / "a.xlsx",
        ["age", "race", "gone"],
        [31, "b", "#DIV/0!"],
        ["#N/A", "NA", "#N/A"],
        [None, "#REF!", None],
        ["n/a", " ", None],
        [2.5, "w", None],
    )
    assert read(path) == {
        "age": [31, None, None, None, 2.5],
        "race": ["b", None, None, None, "w"],
        "gone": [None] * 5,
    }


def test_cells_that_mix_types_become_text_unless_all_are_numbers(tmp_path):
    path = sheet(
        tmp_path / "a.xlsx",
        ["words", "numbers", "codes", "flags", "days", "times"],
        [1, 0.5, "1", True, dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 12)],
        [2.5, "0.25", "02", False, dt.date(2020, 1, 2), dt.datetime(2020, 1, 2)],
        ["few", 3, "3", True, None, None],
    )
    found = untouched(path)
    assert found["words"].to_pylist() == ["1", "2.5", "few"]
    assert found["numbers"].to_pylist() == [0.5, 0.25, 3.0]
    assert found["codes"].to_pylist() == ["1", "02", "3"]
    assert found["flags"].to_pylist() == [True, False, True]
    assert found["days"].to_pylist() == [dt.date(2020, 1, 1), dt.date(2020, 1, 2), None]
    assert found["times"].to_pylist()[0] == dt.datetime(2020, 1, 1, 12)


def test_empty_rows_and_columns_around_the_table_do_not_count(tmp_path):
    path = sheet(
        tmp_path / "a.xlsx",
        [],
        [None, "y", "p", None, " "],
        [None, 1, 0.5],
        [None, None, None],
        [None, 0, 0.25, None, None],
        [None, " ", None, None, " "],
        [],
    )
    assert read(path) == {"y": [1, None, 0], "p": [0.5, None, 0.25]}
    assert FileSet.of(path).notes == []


def test_columns_without_a_name_are_left_out_aloud(tmp_path):
    path = sheet(tmp_path / "a.xlsx", [None, "y", "p"], [0, 1, 0.5], [1, 0, 0.5])
    assert read(path) == {"y": [1, 0], "p": [0.5, 0.5]}
    assert FileSet.of(path).notes == ["a.xlsx: columns without a name are left out: A"]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "the sheet 'Sheet' is empty"),
        ([["Homes of 2024"], ["y", "p"], [1, 0.5]], "names 1 of 2 columns; if it is a title or a"),
        (
            [["Labels", None, "Scores", None], ["y", "z", "p", "q"], [1, 1, 0.5, 0.5]],
            "names 2 of 4 columns",
        ),
        ([["y", "p", "p"], [1, 0.5, 0.5]], "names of columns must differ; 'p' stands more than"),
        ([["y", "p"]], "a.xlsx holds no rows"),
    ],
)
def test_sheets_that_are_no_table_are_one_sentence(rows, told, tmp_path):
    path = sheet(tmp_path / "a.xlsx", *rows)
    with pytest.raises(InputError, match=told):
        read(path)


# JSON lines


def lines(path, *rows):
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def test_fields_that_are_absent_are_missing_and_types_last(tmp_path, monkeypatch):
    monkeypatch.setattr("itrust.data.formats.text.JSON_BLOCK_BYTES", 10)
    path = lines(tmp_path / "a.jsonl", {"y": 1, "a": None, "b": "x"}, {"y": 0.5, "a": 2}, "", "  ")
    assert read(path) == {"y": [1, 0.5], "a": [None, 2], "b": ["x", None]}


def test_text_that_is_all_dates_is_dates(tmp_path):
    path = lines(
        tmp_path / "a.jsonl",
        {"day": "2020-02-29", "time": "2020-02-29T05:06:07.5", "zone": "2020-02-29T05:06:07Z"},
        {"day": "1999-01-01", "time": None, "zone": "2020-02-29T05:06:07.250Z", "no": "2020"},
    )
    found = read(path)
    assert found["day"] == [dt.datetime(2020, 2, 29), dt.datetime(1999, 1, 1)]
    assert found["time"] == [dt.datetime(2020, 2, 29, 5, 6, 7, 500_000), None]
    assert found["zone"][1] == dt.datetime(2020, 2, 29, 5, 6, 7, 250_000)
    assert found["no"] == [None, "2020"]
    assert untouched(path)["time"].to_pylist() == ["2020-02-29T05:06:07.5", None]


def test_dates_that_turn_into_words_later_are_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("itrust.data.formats.text.JSON_BLOCK_BYTES", 10)
    path = lines(tmp_path / "a.jsonl", {"day": "2020-02-29"}, {"day": "soon"})
    with pytest.raises(InputError, match=r"soon.*; give the column one type"):
        read(path)


def test_nested_values_are_refused_only_if_they_are_asked_for(tmp_path):
    path = lines(tmp_path / "a.jsonl", {"y": 1, "home": {"rooms": 3}, "ages": [1, 2]})
    assert read(path, "y") == {"y": [1]}
    for name in ("home", "ages"):
        with pytest.raises(InputError, match=f"column '{name}' holds lists or objects; write"):
            read(path, "y", name)
    assert untouched(path).to_pylist() == [{"y": 1, "home": {"rooms": 3}, "ages": [1, 2]}]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (['[{"y": 1}]'], "must hold an object a line, such as"),
        ([{"y": 1}, {"y": "b"}], "column 'y' holds both numbers and text; give it one type"),
        (['{"y": 1, "y": 2}'], "names of columns must differ; 'y' stands more than once"),
        ([{"y": 1}, '{"y": '], "cannot be read to its end"),
        ([" ", ""], "is empty"),
    ],
)
def test_lines_that_are_no_table_are_one_sentence(rows, told, tmp_path):
    with pytest.raises(InputError, match=told):
        read(lines(tmp_path / "a.jsonl", *rows))


def test_json_in_another_encoding(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"race": "\xc3\xa9"}\n')
    assert read(path) == {"race": ["\u00e9"]}
    path.write_bytes(b'{"race": "\xe9"}\n')
    with pytest.raises(InputError, match=r"a.jsonl is not UTF-8 text"):
        read(path)


def test_json_that_was_written_reads_back(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = ROWS.append_column("gone", pa.array([float("nan"), 1.0, None, 2.0]))
    known_format(path).write(rows, path)
    assert json.loads(path.read_text().splitlines()[0]) == {
        "y": 0, "p": 0.25, "age": 31.5, "race": "b", "day": "2020-02-29", "gone": None
    }  # fmt: skip
    found = it.scan(path, **ROLES, missing="level").load()
    assert facts(found) == facts(it.Sample.from_frame(ROWS, **ROLES, missing="level"))
    again = untouched(path)
    assert again["y"].type == pa.int64()
    assert again["day"].to_pylist() == ["2020-02-29", "1999-12-31", "2001-01-01", None]


def test_what_json_cannot_hold_is_refused(tmp_path):
    for value in (float("inf"), b"x"):
        with pytest.raises(pa.ArrowInvalid, match="JSON has no"):
            known_format(tmp_path / "a.jsonl").write(pa.table({"a": [value]}), tmp_path / "a.jsonl")


def test_a_torn_gzip_is_one_sentence(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    rng = np.random.default_rng(0)
    packed = bytearray(gzip.compress(json.dumps({"y": rng.random(99).tolist()}).encode()))
    packed[60] ^= 255
    path.write_bytes(packed)
    with pytest.raises(InputError, match=r"a.jsonl.gz cannot be read to its end"):
        read(path)


# Databases


HOSTILE = 'x"; DROP TABLE homes; --'


def test_a_table_is_named_where_there_are_several(tmp_path):
    ending = "sqlite"
    path = tmp_path / f"a.{ending}"
    hostile = '"' + HOSTILE.replace('"', '""') + '"'
    statements = [
        'CREATE TABLE homes (y INTEGER, "select" DOUBLE)',
        f"CREATE TABLE {hostile} ({hostile} INTEGER)",
        "INSERT INTO homes VALUES (1, 0.5)",
        f"INSERT INTO {hostile} VALUES (7)",
    ]
    database(path, *statements)
    before = path.read_bytes()
    with pytest.raises(
        InputError,
        match=rf"a.{ending} holds several tables, 'homes', .*; name one .* as a.{ending}::homes",
    ):
        read(path)
    with pytest.raises(
        InputError, match=rf"a.{ending}: there is no table 'home'; did you mean 'homes'"
    ):
        read(f"{path}::home")
    assert read(f"{path}::homes") == {"y": [1], "select": [0.5]}
    assert read(f"{path}::{HOSTILE}") == {HOSTILE: [7]}
    (tmp_path / "sub").mkdir()
    (found,) = FileSet.of(f"{tmp_path}/*.{ending}::homes").files
    assert str(found) == f"{path}::homes"
    assert path.read_bytes() == before


def test_a_database_without_tables_is_one_sentence(tmp_path):
    path = database(tmp_path / "a.sqlite", "CREATE TABLE a (b)", "DROP TABLE a")
    with pytest.raises(InputError, match=r"a\.sqlite holds no table"):
        read(path)


def test_rows_of_sqlite_come_in_one_order_whichever_columns_are_asked_for(tmp_path):
    path = database(
        tmp_path / "a.sqlite",
        "CREATE TABLE homes (y INTEGER, p REAL)",
        "CREATE INDEX by_p ON homes (p)",  # which would serve a query of p alone
        "INSERT INTO homes VALUES (1, 0.9), (2, 0.1), (3, 0.5)",
        "CREATE TABLE sorted (y INTEGER, p REAL PRIMARY KEY) WITHOUT ROWID",
        "CREATE INDEX by_y ON sorted (y)",
        "INSERT INTO sorted SELECT y, p FROM homes",
        "CREATE VIEW both AS SELECT homes.y, homes.p FROM homes JOIN sorted USING (p)",
        "CREATE TABLE odd (rowid, oid, _rowid_)",
        "CREATE INDEX by_oid ON odd (oid)",
        "INSERT INTO odd VALUES (1, 3, 1), (2, 2, 1), (3, 1, 1)",
    )
    assert read(f"{path}::homes", "p") == {"p": [0.9, 0.1, 0.5]}
    for table, names in {"homes": "yp", "sorted": "yp", "both": "yp"}.items():
        whole = read(f"{path}::{table}")
        for name in names:
            assert read(f"{path}::{table}", name)[name] == whole[name]
    assert read(f"{path}::odd", "oid")["oid"] == read(f"{path}::odd")["oid"]


def test_values_of_sqlite_that_mix_types_get_one_that_fits_all(tmp_path):
    path = database(
        tmp_path / "a.db",
        "CREATE TABLE homes (i, r, t, d DATE, s TIMESTAMP, no DATE, b, n)",
        "INSERT INTO homes VALUES (1, 1, 1, '2020-02-29', '2020-02-29', 'soon', x'00', NULL)",
        "INSERT INTO homes VALUES (NULL, 2.5, 'few', NULL, '2020-02-29 05:06:07', NULL, 1, NULL)",
    )
    found = untouched(path)
    assert found.drop_columns(["s"]).to_pydict() == {
        "i": [1, None],
        "r": [1.0, 2.5],
        "t": ["1", "few"],
        "d": [dt.date(2020, 2, 29), None],
        "no": ["soon", None],
        "b": [b"\0", None],
        "n": [None, None],
    }
    assert found["s"].to_pylist()[1] == dt.datetime(2020, 2, 29, 5, 6, 7)
    assert [str(found[name].type) for name in "irn"] == ["int64", "double", "null"]
    with pytest.raises(InputError, match="'b' is of type binary; give numbers, text"):
        it.Sample.from_frame(found.append_column("p", [[0.1, 0.2]]), label="r", prob="p", on="b",
                             positive=1.0, missing="level")  # fmt: skip


def test_text_of_sqlite_that_is_not_utf8_is_one_sentence(tmp_path):
    path = database(
        tmp_path / "a.sqlite", "CREATE TABLE a (t)", "INSERT INTO a VALUES (CAST(x'e9' AS TEXT))"
    )
    with pytest.raises(InputError, match=r"a.sqlite has text that is not UTF-8"):
        read(path)


def test_a_view_is_taken_where_there_is_no_table_and_by_its_name(tmp_path):
    path = database(tmp_path / "a.sqlite", "CREATE VIEW v AS SELECT 1 AS y, 0.5 AS p")
    assert read(path) == read(f"{path}::v") == {"y": [1], "p": [0.5]}
