"""The studies of the paper: small runs of each, and the paper's own statistic and p-value."""

import numpy as np
import pytest

import compas
import itrust as it
import kit
import paper
import type1

pytestmark = pytest.mark.slow

BY_NAME = {study.name: study for study in paper.STUDIES}


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    monkeypatch.setenv("STUDY_WORKERS", "1")


def bytes_of(folder, name):
    return [(folder / f"{name}.{kind}").read_bytes() for kind in ("json", "svg", "png")]


@pytest.mark.nightly
@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.usefixtures("data_folder")
def test_the_same_seeds_give_the_same_files(name, tmp_path):
    if name == "table2":
        pytest.importorskip("torch", reason="an extra; not in `make oldest`")
    study = BY_NAME[name]
    for part in ("first", "second"):
        item = study.run(study.tiny, tmp_path / part)
    assert bytes_of(tmp_path / "first", name) == bytes_of(tmp_path / "second", name)
    assert item.lines


@pytest.mark.nightly
def test_two_processes_give_the_files_of_one(tmp_path, monkeypatch):
    study = BY_NAME["type1"]
    for workers in ("1", "2"):
        monkeypatch.setenv("STUDY_WORKERS", workers)
        study.run(study.tiny, tmp_path / workers)
    assert bytes_of(tmp_path / "1", "type1") == bytes_of(tmp_path / "2", "type1")


@pytest.mark.nightly
def test_without_the_published_predictions_a_forest_is_fitted(
    monkeypatch, data_folder, data_file, tmp_path
):
    """On the published subsets; texts then do not claim that printed numbers come back."""
    data_file("compas-fig4-test.csv")
    published = compas.experiment()
    (tmp_path / "compas-two-years.csv").write_bytes(
        (data_folder / "compas-two-years.csv").read_bytes()
    )
    monkeypatch.setenv("ITRUST_DATA", str(tmp_path))
    compas.experiment.cache_clear()
    anew = compas.experiment()
    assert anew.kept == {}
    np.testing.assert_array_equal(anew.test.y, published.test.y)
    np.testing.assert_allclose(
        anew.test.column("age10").values, published.test.column("age10").values
    )
    assert np.abs(anew.test.p - published.test.p).mean() < 0.05
    study = BY_NAME["figure4"]
    item = study.run(study.tiny, tmp_path)
    assert "fitted anew" in item.finding
    compas.experiment.cache_clear()


def test_texts_and_pictures_can_be_made_again_without_computing(tmp_path, monkeypatch):
    study = BY_NAME["type1"]
    study.run(study.tiny, tmp_path)
    before = bytes_of(tmp_path, "type1")
    monkeypatch.setattr(type1, "one_run", None)
    study.redraw(tmp_path)
    assert bytes_of(tmp_path, "type1") == before


def test_the_published_statistic_is_that_of_a_double_loop():
    """REFERENCE: sum over i != j of e K e, divided by (n - 1) / n times the sum of K."""
    s = it.simulate.survey(40, rng=3).sample.only("age")
    age = s.column("age").values
    total = whole = 0.0
    for i in range(40):
        for j in range(40):
            k = np.exp(-((s.p[i] - s.p[j]) ** 2) / 0.3**2 - 0.02 * (age[i] - age[j]) ** 2)
            whole += k
            total += s.residuals[i] * k * s.residuals[j] if i != j else 0.0
    found = kit.PapersTest.of(s, 0.3, 0.02, draws=19, seed=0)
    assert found.equation == pytest.approx(total / (40 * 39), rel=1e-9)
    assert found.published == pytest.approx(total / (39 / 40 * whole), rel=1e-9)


def test_the_papers_pvalue_never_is_zero():
    s = it.simulate.uniform_shift(200, shift=0.3, rng=0).sample
    kernel = kit.papers_kernel(0.2, None)
    null = it.nulls.Permutation(centred=True)
    assert kit.papers_pvalue(s, kernel, null, draws=50, seed=0) == 1 / 50


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.12345, ".123"), (-0.5, "\N{MINUS SIGN}.500"), (-1e-9, ".000"), (2, "2.000")],
)
def test_decimals_have_no_leading_zero(value, shown):
    assert kit.decimal(value) == shown


def test_small_numbers_keep_their_leading_digits():
    assert kit.significant(0.000346123) == ".000346"
    assert kit.significant(0.0) == "0"


def test_a_page_without_results_names_the_command(tmp_path):
    with pytest.raises(FileNotFoundError, match="run make study NAME=figure1"):
        paper.records(tmp_path)


def test_a_study_without_data_ends_with_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("ITRUST_DATA", str(tmp_path))
    monkeypatch.setenv("QUICK", "1")
    compas.experiment.cache_clear()
    with pytest.raises(SystemExit, match=r"lcb: there is no file compas-two-years\.csv"):
        kit.main(BY_NAME["lcb"])
    compas.experiment.cache_clear()
