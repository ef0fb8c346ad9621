import hashlib
import http.server
import threading
from dataclasses import replace

import pytest

import fetch_data
from itrust import DatasetError, InputError, Sample, datasets
from itrust.datasets import ADULT, AHS2019, COMPAS, HEART, Dataset, keep_columns, load


@pytest.mark.parametrize(
    ("read", "dataset", "rows", "label", "ones"),
    [
        (datasets.compas, COMPAS, 7_214, ("is_recid", 1), 3_471),
        (datasets.ahs2019, AHS2019, 48_660, ("OWNER", 1), 30_726),
        (datasets.adult, ADULT, 48_842, ("income", "<=50K"), 37_155),
        (datasets.heart, HEART, 918, ("HeartDisease", 1), 508),
    ],
)
def test_real_files_have_their_documented_columns(data_folder, read, dataset, rows, label, ones):
    table = read(data_home=data_folder)
    assert table.num_rows == rows
    assert table.column_names == list(dataset.columns)
    name, positive = label
    assert sum(value == positive for value in table[name].to_pylist()) == ones


def test_question_marks_of_adult_are_missing(data_folder):
    table = datasets.adult(data_home=data_folder)
    incomplete = {i for c in table.columns for i, v in enumerate(c.is_null().to_pylist()) if v}
    assert len(incomplete) == 3_620


def test_a_real_file_goes_straight_into_a_sample(data_folder):
    table = datasets.adult(data_home=data_folder)
    table = table.append_column("p", [[0.76] * table.num_rows])
    arguments = dict(label="income", prob="p", on=["age", "workclass"], positive="<=50K")
    with pytest.raises(InputError, match="missing values: 'workclass' in 2,799 rows"):
        Sample.from_frame(table, **arguments)
    s = Sample.from_frame(table, **arguments, missing="level")
    assert s.column("workclass").levels[-1] == "(missing)"


def test_the_environment_names_the_folder(data_folder, monkeypatch):
    monkeypatch.setenv("ITRUST_DATA", str(data_folder))
    assert datasets.heart().num_rows == 918


SOURCE = b"name,age,dob\r\nAnn,31,1990-01-01\r\nBo,44,1980-02-02\r\n"


def tiny(url="http://127.0.0.1:9/x.csv", content=SOURCE, **changes):
    sha = hashlib.sha256(content).hexdigest()
    return replace(Dataset("tiny.csv", url, sha, "ours", {"age": "years"}), **changes)


@pytest.fixture
def server(tmp_path):
    """A loopback server that counts what it served."""
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "x.csv").write_bytes(SOURCE)
    served = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(tmp_path / "www"))

        def log_message(self, *args):
            served.append(args)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", served
        httpd.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("ITRUST_DATA", raising=False)
    monkeypatch.setattr("itrust.datasets.cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


def test_download_checks_caches_and_reads(server, cache):
    url, served = server
    dataset = tiny(f"{url}/x.csv")
    assert load(dataset).to_pydict() == {"age": [31, 44]}
    assert (cache / "tiny.csv").read_bytes() == SOURCE
    load(dataset)
    assert len(served) == 1


def test_personal_columns_never_reach_the_disk(server, cache, monkeypatch):
    def write(path, content):
        assert content == b"age\n31\n44\n"
        path.write_bytes(content)

    monkeypatch.setattr(datasets, "write_whole", write)
    url, _ = server
    kept = hashlib.sha256(b"age\n31\n44\n").hexdigest()
    dataset = tiny(f"{url}/x.csv", personal=True, kept_sha256=kept)
    assert load(dataset).to_pydict() == {"age": [31, 44]}
    assert [path.name for path in cache.iterdir()] == ["tiny.csv"]
    assert (cache / "tiny.csv").read_bytes() == b"age\n31\n44\n"


@pytest.mark.parametrize("personal", [False, True])
def test_other_bytes_are_refused_and_nothing_is_kept(server, cache, personal):
    url, _ = server
    with pytest.raises(DatasetError, match="no longer has the published bytes"):
        load(tiny(f"{url}/x.csv", content=b"other", personal=personal))
    assert not cache.exists() or not list(cache.iterdir())


def test_a_damaged_cache_is_mended(server, cache):
    url, served = server
    dataset = tiny(f"{url}/x.csv")
    load(dataset)
    (cache / "tiny.csv").write_text("name,age,dob\nAnn,99,x\n")
    assert load(dataset).to_pydict() == {"age": [31, 44]}
    assert len(served) == 2


def test_a_missing_page_is_one_sentence(server, cache):  # noqa: ARG001
    url, _ = server
    with pytest.raises(DatasetError, match=r"could not download tiny.csv .*HTTPError.*ITRUST_DATA"):
        load(tiny(f"{url}/nothing.csv"))


def test_neither_network_nor_folder_is_one_sentence(cache):
    with pytest.raises(DatasetError, match=r"could not download .* connect to the network, or set"):
        load(tiny())
    assert not cache.exists() or not list(cache.iterdir())


def test_a_folder_without_the_file_is_one_sentence(tmp_path):
    with pytest.raises(DatasetError, match=r"there is no file heart.csv in the folder"):
        datasets.heart(data_home=tmp_path)


def test_a_changed_file_is_one_sentence(tmp_path):
    (tmp_path / "heart.csv").write_text("Age\n1\n")
    with pytest.raises(DatasetError, match="is not the published file: its SHA-256 is"):
        datasets.heart(data_home=tmp_path)


def test_our_cut_of_compas_writes_the_known_bytes(data_folder):
    """Cutting the kept file again is the identity, so form and line ends are those we promise."""
    kept = (data_folder / COMPAS.file).read_bytes()
    assert keep_columns(kept, list(COMPAS.columns)) == kept


def test_data_for_the_tests_are_fetched_by_the_loader(server, cache, monkeypatch, capsys):
    url, served = server
    monkeypatch.setattr("fetch_data.cache_folder", lambda: cache)
    monkeypatch.setenv("ITRUST_DATA", "nowhere")
    assert fetch_data.main([tiny(f"{url}/x.csv")]) == 0
    assert capsys.readouterr().out == f"{cache}\n"
    assert load(tiny(), cache).num_rows == 2
    assert len(served) == 1


def test_data_that_cannot_be_fetched_are_one_sentence(cache, capsys):  # noqa: ARG001
    assert fetch_data.main([tiny()]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("could not download tiny.csv")
    assert told.err.count("\n") == 1
