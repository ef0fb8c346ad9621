"""Damaged and malicious files: one sentence, before memory, disk or the process goes."""

import gzip
import io
import random
import shutil
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import itrust as it
from fuzz.fuzz_files import one_bit, one_bit_of_a_page
from itrust import InputError
from itrust.cli.inputs import spool
from itrust.data import FileSet, known_format
from itrust.data.formats import base, tables, text
from shell import invoke
from writers import as_excel, as_spss

ROWS = pa.table(
    {"y": [0, 1] * 20, "p": np.linspace(0.1, 0.9, 40), "age": ["a", "bé", "c", "a"] * 10}
)
ROLES = dict(label="y", prob="p", on="age")


def feather(path, table=ROWS, **settings):
    pa.feather.write_feather(table, str(path), **settings)
    return path


def parquet(path, table=ROWS, **settings):
    pa.parquet.write_table(table, path, **settings)
    return path


def rows_of(path):
    source = FileSet.of(path)
    return source.table(source.names)


def with_free_memory(monkeypatch, size):
    for module in (base, tables):
        monkeypatch.setattr(module, "free_memory", lambda: size)
    monkeypatch.setattr(base, "SMALL_BYTES", 0)


@pytest.mark.parametrize("packed", ["uncompressed", "lz4", "zstd"])
def test_any_bit_of_a_feather_file_may_flip(packed, tmp_path):
    """At most a sentence comes of it; without checksums nobody can tell which values are right."""
    sound = feather(tmp_path / "a.feather", compression=packed).read_bytes()
    rng, told = random.Random(0), []
    for _ in range(40):
        (tmp_path / "b.feather").write_bytes(one_bit(rng, sound))
        try:
            it.scan(tmp_path / "b.feather", **ROLES).load()
        except InputError as error:
            told.append(str(error))
    assert told
    assert not any("\n" in sentence for sentence in told)


@pytest.mark.parametrize("settings", [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}])
def test_a_flipped_bit_under_a_page_checksum_never_changes_a_value(settings, tmp_path):
    sound = parquet(tmp_path / "a.parquet", write_page_checksum=True, **settings).read_bytes()
    rng = random.Random(1)
    for _ in range(30):
        (tmp_path / "b.parquet").write_bytes(one_bit_of_a_page(rng, sound))
        with pytest.raises(InputError, match="cannot be read to its end"):
            rows_of(tmp_path / "b.parquet")


def test_parquet_files_of_ours_have_page_checksums(tmp_path):
    """A flipped bit in a column that was copied by `recalibrate --apply` is found."""
    path = tmp_path / "a.parquet"
    known_format(path).write(ROWS, path)
    about = pa.parquet.read_metadata(path).row_group(0).column(1)
    held = bytearray(path.read_bytes())
    held[about.dictionary_page_offset + about.total_compressed_size - 5] ^= 1
    path.write_bytes(held)
    with pytest.raises(InputError, match=r"a.parquet cannot be read to its end"):
        rows_of(path)


def test_a_row_group_with_other_rows_than_it_says_is_refused(tmp_path, monkeypatch):
    path = parquet(tmp_path / "a.parquet")
    whole = pa.parquet.ParquetFile.iter_batches
    some = lambda file, *args, **more: list(whole(file, 10, *args[1:], **more))[:-1]  # noqa: E731
    monkeypatch.setattr(pa.parquet.ParquetFile, "iter_batches", some)
    with pytest.raises(InputError, match=r"row group 1 of a.parquet has other rows than it says"):
        rows_of(path)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".feather"])
def test_what_is_small_is_read_however_little_is_free(ending, tmp_path, monkeypatch):
    path = tmp_path / f"a{ending}"
    known_format(path).write(pa.concat_tables([ROWS] * 2_500), path)
    monkeypatch.setattr(base, "free_memory", lambda: 0.0)
    assert rows_of(path).num_rows == 100_000


def test_dates_beyond_the_calendar_are_one_sentence(tmp_path):
    """They would wrap around where dates become numbers."""
    days = pa.array([0, 2**31 - 1], pa.int32()).view(pa.date32())
    path = parquet(tmp_path / "a.parquet", pa.table({"day": days, "deep": [[1], [2]]}))
    with pytest.raises(InputError, match="column 'day' holds 2147483647, which is no date"):
        rows_of(path)


def test_an_unknown_time_zone_is_one_sentence(tmp_path):
    times = pa.array([0], pa.timestamp("us", "Mars/Utopia"))
    with pytest.raises(InputError, match="time zone 'Mars/Utopia', which is not known here"):
        rows_of(feather(tmp_path / "a.feather", pa.table({"when": times})))


def varint(number):
    held = []
    while number > 127:
        held.append(number & 127 | 128)
        number >>= 7
    return bytes([*held, number])


@pytest.mark.parametrize("offset", [10**6, 2**62, 2**63 - 1, 2**65])
def test_a_page_that_lies_outside_of_its_file_is_one_sentence(offset, tmp_path):
    path = parquet(tmp_path / "a.parquet", ROWS.select(["p"]), use_dictionary=False)
    held = path.read_bytes()
    start = pa.parquet.read_metadata(path).row_group(0).column(0).data_page_offset
    rest = len(held) - 8 - int.from_bytes(held[-8:-4], "little")
    footer = held[rest:-8]
    known, other = (b"\x26" + varint(2 * number) for number in (start, offset))
    assert known in footer
    footer = footer.replace(known, other)
    path.write_bytes(held[:rest] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(InputError, match=r"a.parquet cannot be read to its end"):
        rows_of(path)


@pytest.mark.parametrize("nested", ["[" * 3000 + "]" * 3000, '{"a":\n' * 3000 + "1" + "}" * 3000])
def test_json_that_is_nested_deeply_is_one_sentence(nested, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"y": 1, "p": 0.5, "deep": {nested}}}\n')
    with pytest.raises(InputError, match=r"a.jsonl has values that are nested more than 64 deep"):
        assert FileSet.of(path).names


def test_brackets_in_json_text_are_no_nesting(tmp_path):
    path = tmp_path / "a.jsonl"
    text = "[{" * 100 + '\\"' + "}" * 7
    path.write_text(f'{{"y": 1, "p": 0.5, "note": "{text}", "list": [[1], []]}}\n' * 3)
    assert FileSet.of(path).table(["note"])["note"][0].as_py() == text.replace("\\", "")


def test_a_line_without_an_end_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "JSON_BLOCK_BYTES", 2**10)
    monkeypatch.setattr(text, "MAX_LINE_BYTES", 2**12)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"y": 1}\n{"y": "' + b"x" * 10**4))
    with pytest.raises(InputError, match=r"a line of more than 4.1 kB"):
        assert FileSet.of(path).names


def test_wide_texts_of_spss_are_read_few_rows_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MAX_BYTES", 2**12)
    table = pa.table({"y": list(range(9)), "text": [f"{k}" * 1000 for k in range(9)]})
    as_spss(table, tmp_path / "a.zsav")
    source = FileSet.of(tmp_path / "a.zsav")
    batches = list(source.rows(source.names))
    assert [batch.num_rows for batch in batches] == [3, 3, 3]
    assert pa.Table.from_batches(batches)["text"].to_pylist() == table["text"].to_pylist()


def test_a_workbook_with_a_cell_far_away_does_not_end_the_process(tmp_path):
    """A cell is kept for every place in between: some hundred gigabytes."""
    openpyxl = pytest.importorskip("openpyxl")
    as_excel(ROWS, tmp_path / "a.xlsx")
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    book.active["XFD1048576"] = 3
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(InputError, match="no cell far away from the others"):
        assert FileSet.of(tmp_path / "a.xlsx").names


def test_a_workbook_that_unpacks_to_more_than_memory_is_refused(tmp_path, monkeypatch):
    as_excel(ROWS, tmp_path / "a.xlsx")
    with zipfile.ZipFile(tmp_path / "a.xlsx", "a", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/more.xml", b" " * 10**7)
    with_free_memory(monkeypatch, 10**6)
    with pytest.raises(InputError, match=r"a.xlsx unpacks to more than the 1 MB of memory"):
        assert FileSet.of(tmp_path / "a.xlsx").names


def test_rows_that_do_not_fit_into_memory_are_told_and_can_be_streamed(tmp_path, monkeypatch):
    path = parquet(tmp_path / "a.parquet", pa.concat_tables([ROWS] * 500))
    with_free_memory(monkeypatch, 5 * 10**5)
    scanned = it.scan(path, **ROLES)
    with pytest.raises(InputError, match=r"rows of a.parquet do not fit into memory.*without load"):
        scanned.load()
    with pytest.raises(InputError, match="do not fit into memory"):
        rows_of(path)
    assert scanned.extract(100).census.n == 20_000


def kept(held, folder):
    return spool(io.BytesIO(held), folder, "standard input")


def test_gzipped_text_stays_gzipped_and_other_files_are_unpacked(tmp_path):
    assert kept(gzip.compress(b"y,p\n1,0.5\n"), tmp_path).name == "standard input.csv.gz"
    held = parquet(tmp_path / "a.parquet").read_bytes()
    found = kept(gzip.compress(held), tmp_path)
    assert found.name == "standard input.parquet"
    assert found.read_bytes() == held


@pytest.mark.parametrize(
    ("held", "told"),
    [
        (gzip.compress(gzip.compress(b"y,p\n")), "is gzipped twice; unpack it once"),
        (gzip.compress(b""), "standard input is empty"),
        (gzip.compress(b"y,p\n1,0.5\n")[:-3], "cannot be read to its end"),
        (b"", "standard input is empty"),
    ],
    ids=["twice", "nothing packed", "cut off", "nothing"],  # not the bytes: these hold the time
)
def test_standard_input_that_holds_no_table_is_one_sentence(held, told, tmp_path):
    with pytest.raises(InputError, match=told):
        kept(held, tmp_path)


def test_standard_input_that_fills_the_disk_is_one_sentence(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(InputError, match=r"standard input .*No space left on device"):
        kept(b"y,p\n1,0.5\n", tmp_path)


def test_the_command_refuses_a_damaged_file_with_2(tmp_path):
    path = feather(tmp_path / "a.feather", compression="uncompressed")
    path.write_bytes(path.read_bytes().replace("bé".encode(), b"b\xff\xff"))
    done = invoke("audit", str(path), "--label", "y", "--prob", "p", "--on", "age")
    assert done.exit_code == 2
    assert "a.feather cannot be read to its end" in done.stderr
