"""What all methods have in common: one interface, hard input, files, the comparison."""

import json
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import itrust as it
from designs import tilted
from itrust._core import InputError
from itrust.recalibrate import METHODS, Isotonic, Local, Multicalibration, Platt, compare, load
from itrust.recalibrate.rows import edge_of

OURS = {name: method for name, method in METHODS.items() if name != "mcgrad"}
every_method = pytest.mark.parametrize("method", OURS.values(), ids=OURS)


@pytest.fixture(scope="module")
def town():
    return it.simulate.survey(1_200, rng=3).sample.split([0.5, 0.5], rng=0)


@every_method
def test_methods_keep_to_the_interface(method, town, tmp_path):
    calibration, test = town
    fix = method().fit(calibration)
    told = fix.predict(test.p, test)
    assert told.shape == (test.n,)
    assert told.min() >= 0
    assert told.max() <= 1
    assert clone(fix).get_params() == fix.get_params()
    assert not hasattr(clone(fix), "n_rows_")
    path = tmp_path / "recalibration.json"
    fix.save(path)
    again = load(path)
    np.testing.assert_array_equal(again.predict(test.p, test), told)
    assert repr(again) == repr(fix)
    assert again.get_params() == fix.get_params()
    json.loads(path.read_text(), parse_constant=pytest.fail)  # no NaN, no infinity
    np.testing.assert_array_equal(fix.apply(test).p, told)


@every_method
def test_frames_arrays_and_samples_give_the_same_answer(method):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y, p = rng.integers(0, 2, 300), rng.random(300)
    fix = method().fit(it.Sample(y, p, x, names=["a", "b"]))
    by_array = fix.predict(p, x)
    frame = pd.DataFrame({"other": ["text"] * 300, "b": x[:, 1], "a": x[:, 0]})
    for same in (frame, pa.table(frame), {"a": x[:, 0], "b": x[:, 1]}, it.Sample(y, p, frame)):
        np.testing.assert_array_equal(fix.predict(p, same), by_array)
    np.testing.assert_array_equal(fix.predict(list(p), x.tolist()), by_array)


@every_method
def test_hard_input_gives_probabilities(method):
    rng = np.random.default_rng(1)
    x = {"c": rng.choice(["u", "v"], 60), "z": rng.normal(size=60)}
    y = np.tile([0, 1], 30)
    cases = {
        "exactly 0 and 1": rng.choice([0.0, 1.0, 0.5], 60),
        "classes": rng.choice([0.0, 1.0], 60),
        "constant": np.full(60, 0.3),
        "one half": np.full(60, 0.5),
        "told apart": 0.2 + 0.6 * y,
        "upside down": 0.8 - 0.6 * y,
    }
    for p in cases.values():
        told = method().fit(it.Sample(y, p, x)).predict(p, x)
        assert np.isfinite(told).all()
        assert ((told >= 0) & (told <= 1)).all()


@every_method
def test_ten_rows_are_enough_to_answer(method):
    y, p = np.array([0, 1] * 5), np.linspace(0.05, 0.95, 10)
    x = {"c": list("ababababab"), "z": np.arange(10.0)}
    fix = method().fit(it.Sample(y, p, x))
    told = fix.predict([0.0, 0.5, 1.0], {"c": ["a", "b", "new"], "z": [-5.0, 4.0, 99.0]})
    assert np.isfinite(told).all()


@every_method
def test_rows_without_weight_do_not_count(method):
    sample = tilted(600)
    w = np.arange(600) % 2.0
    every = it.Sample(sample.y, sample.p, _values(sample), weights=w)
    a, b = (method().fit(s).predict(sample.p, _values(sample)) for s in (every, every.take(w > 0)))
    np.testing.assert_allclose(a, b, atol=1e-5)


def _values(sample):
    return {
        c.name: np.array(c.levels)[c.values] if c.is_category else c.values for c in sample.columns
    }


@every_method
def test_labels_that_are_all_equal_are_refused(method):
    with pytest.raises(InputError, match="every label is 1, so there is nothing to learn"):
        method().fit(it.Sample([1, 1, 1], [0.2, 0.3, 0.9]))


@every_method
def test_a_method_that_learned_nothing_says_so(method):
    with pytest.raises(NotFittedError, match=r"call fit\(sample\) first"):
        method().predict([0.5])


@every_method
def test_only_a_sample_is_a_sample(method):
    with pytest.raises(InputError, match=r"expected an itrust\.Sample"):
        method().fit([0, 1])


@pytest.mark.parametrize("method", [Local, Multicalibration])
def test_covariates_are_asked_for_by_name(method):
    fix = method().fit(tilted(300))
    with pytest.raises(InputError, match="reads the covariates 'x', 'group'; pass them as x"):
        fix.predict([0.5])
    with pytest.raises(InputError, match=r"no column 'group'; did you mean 'groups'\?"):
        fix.predict([0.5], {"x": [0.1], "groups": ["a"]})
    with pytest.raises(InputError, match=r"'group' was a category in the fit, and is a number now"):
        fix.predict([0.5], {"x": [0.1], "group": [1.0]})
    with pytest.raises(InputError, match="x lacks the covariate 'group'"):
        fix.predict([0.5, 0.5], it.Sample([0, 1], [0.5, 0.5], {"x": [0.1, 0.2]}))
    with pytest.raises(InputError, match="'x' has 300 rows, but there are 1 probabilities"):
        fix.predict([0.5], tilted(300).columns)


@pytest.mark.parametrize("method", [Local, Multicalibration])
def test_an_unseen_category_is_not_recalibrated_as_another(method):
    """It gets what rows of no particular group get, the same for all unseen levels."""
    fix = method().fit(tilted(3_000, bias=4.0))
    seen, new, other = (
        fix.predict([0.5] * 3, {"x": [0.05, 0.5, 0.95], "group": [g] * 3}) for g in "azy"
    )
    np.testing.assert_array_equal(new, other)
    assert np.abs(new - 0.5).max() < np.abs(seen - 0.5).max() - 0.05


def test_missing_values_are_a_level_of_their_own():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(2_000) < 0.3, np.nan, rng.random(2_000))
    p = np.full(2_000, 0.5)
    y = rng.random(2_000) < np.where(np.isnan(x), 0.9, 0.5)
    fix = Local().fit(it.Sample(y, p, {"x": x}, missing="level"))
    told = fix.predict([0.5, 0.5], {"x": [np.nan, 0.4]})
    assert told[0] > 0.8
    assert abs(told[1] - 0.5) < 0.08
    assert fix.predict([0.5], {"x": [np.nan]})[0] == told[0]  # a row by itself, too
    assert fix.predict([0.5], {"x": [None]})[0] == told[0]


@pytest.mark.parametrize("method", [Local, Multicalibration])
def test_a_missing_category_is_the_same_in_every_batch(method, tmp_path):
    rng = np.random.default_rng(0)
    g = rng.choice(np.array(["a", "(missing)", None], dtype=object), 3_000)
    rate = np.select([g == "a", g == "(missing)"], [0.5, 0.1], 0.9)
    sample = it.Sample(rng.random(3_000) < rate, np.full(3_000, 0.5), {"g": g}, missing="level")
    method().fit(sample).save(tmp_path / "r.json")
    fix = load(tmp_path / "r.json")
    together = fix.predict([0.5] * 3, {"g": ["a", "(missing)", None]})
    np.testing.assert_allclose(together, [0.5, 0.1, 0.9], atol=0.06)
    for level, told in zip(["a", "(missing)", None], together, strict=True):
        assert fix.predict([0.5], {"g": [level]})[0] == pytest.approx(told, rel=1e-12)


@pytest.mark.parametrize("method", [Local, Multicalibration])
@pytest.mark.parametrize(
    "levels",
    [
        [1, 2],
        [1.5, 2.5],
        [True, False],
        pd.to_datetime(["2020-01-01", "2021-05-05"]),
        pd.to_datetime(["2020-01-01", "2021-05-05"]).astype("datetime64[ns]"),
    ],
)
def test_levels_of_any_type_survive_the_file(method, levels, tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 800)
    g = pd.Categorical.from_codes(codes, pd.Index(levels))
    y = rng.random(800) < np.where(codes, 0.9, 0.2)
    sample = it.Sample(y, np.full(800, 0.5), {"g": g})
    fix = method().fit(sample)
    fix.save(tmp_path / "r.json")
    told = load(tmp_path / "r.json").predict(sample.p, {"g": g})
    np.testing.assert_array_equal(told, fix.predict(sample.p, {"g": g}))
    assert told[codes == 1].mean() > 0.75


def test_levels_that_no_file_can_hold_are_refused():
    from itrust._core import packed

    with pytest.raises(InputError, match="is a complex, which JSON cannot hold"):
        packed(1j)


def test_another_kind_of_column_is_refused():
    days = pd.date_range("2020-01-01", periods=300)
    fix = Local().fit(it.Sample([0, 1] * 150, [0.5] * 300, {"d": days}))
    with pytest.raises(InputError, match=r"'d' was a date in the fit, and is a number now"):
        fix.predict([0.5], {"d": [18_000]})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "schema must be 'itrust-recalibration/3', not"),
        (
            '{"schema": "itrust-recalibration/2", "method": "Local"}',
            "schema must be 'itrust-recalibration/3', not",
        ),
        ('{"schema": "itrust-recalibration/3", "method": "Plat"}', "did you mean 'Platt'"),
        ('{"schema": "itrust-recalibration/3", "method": "Platt"}', "lacks the entry 'version'"),
        (
            '{"schema": "itrust-recalibration/3", "method": "os.system"}',
            "must be the name of a method, not 'os.system'",
        ),
    ],
)
def test_other_files_are_refused(content, message, tmp_path):
    path = tmp_path / "recalibration.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        load(path)
    with pytest.raises(InputError, match=r"cannot read .*none\.json"):
        load(tmp_path / "none.json")


def test_a_failed_save_leaves_the_old_file(tmp_path, town):
    path = tmp_path / "recalibration.json"
    path.write_text("old")
    fix = Platt().fit(town[0])
    fix.slope_ = object()
    with pytest.raises(InputError, match=r"learned\.slope must be a number"):
        fix.save(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="cannot be written"):
        Platt().fit(town[0]).save(tmp_path / "none" / "r.json")


def test_the_edge_is_half_the_way_to_the_next_prediction():
    assert edge_of(np.array([0.0, 0.02, 0.5, 1 - 1e-17])[:, None]) == pytest.approx(0.01)
    assert edge_of(np.array([0.3, 0.7])[:, None]) == pytest.approx(0.15)
    assert edge_of(np.array([0.0, 1.0])[:, None]) == pytest.approx(0.01)
    assert edge_of(np.linspace(0.2, 0.8, 100)[:, None]) == pytest.approx(0.005)


@pytest.mark.nightly
def test_compare_judges_on_other_rows_by_the_exact_test():
    calibration, test = tilted(6_000).split([0.5, 0.5], rng=0)
    table = compare({"steps": Isotonic(), "ours": Local()}, calibration, test, draws=199, rng=0)
    assert [method.name for method in table] == ["none", "steps", "ours"]
    assert table["none"].pvalue == table["steps"].pvalue == 0.005
    assert table["ours"].pvalue > 0.05
    assert table["ours"].slice is None
    assert table["none"].slice is not None
    own = Local().fit(calibration).apply(test)
    assert table["ours"].brier == it.scores.brier(own)
    assert table["ours"].log_loss == it.scores.log_loss(own)
    assert table["ours"].klce2 == pytest.approx(it.klce2(own), rel=1e-12)
    assert table["ours"].mce == it.scores.mce(own)
    assert table["ours"].pvalue == it.klce_test(own, draws=199, rng=0).pvalue
    facts = json.loads(json.dumps(table.to_dict()))
    assert facts["recalibrations"][2]["name"] == "ours"
    assert table.to_arrow().num_rows == 3
    assert "worst confirmed slice" in str(table)
    assert f"{table['ours'].brier:.4f}" in table._repr_html_()
    assert repr(table) == "<RecalibrationTable: none, steps, ours>"
    assert all(len(line) < 90 for line in str(table).splitlines())


def test_compare_refuses_what_would_flatter(town):
    calibration, test = town
    rng = np.random.default_rng(0)
    for same in (calibration, calibration.take(rng.permutation(600)), calibration.take(range(90))):
        with pytest.raises(InputError, match="test rows are among the calibration rows"):
            compare([Platt()], calibration, same)
    alike = it.Sample([0, 1] * 50, [0.5] * 100, {"g": ["a"] * 100})  # equal rows, but no copies
    compare([Platt()], alike, alike.take(range(80)), draws=19, slices=False)
    with pytest.raises(InputError, match="not a recalibrator"):
        compare([Platt], calibration, test)
    with pytest.raises(InputError, match="take another"):
        compare({"none": Platt()}, calibration, test)


def test_compare_leaves_the_methods_as_they_are(town):
    method = Platt()
    table = compare([method, Platt(raw=True)], *town, draws=19, rng=0, slices=False)
    assert [method.name for method in table] == ["none", "Platt", "Platt (2)"]
    assert not hasattr(method, "slope_")


def test_a_recalibrated_classifier_is_a_classifier():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"z": rng.normal(size=4_000), "x": rng.random(4_000)})
    true = 1 / (1 + np.exp(-frame.z - 24 * (frame.x - 0.5) ** 2 + 2))
    y = np.where(rng.random(4_000) < true, "yes", "no")
    plain = LogisticRegression().fit(frame[:3_000], y[:3_000])
    model = it.recalibrate.RecalibratedClassifier(LogisticRegression(), Local(), on=["x"])
    model.fit(frame[:3_000], y[:3_000])
    p = model.predict_proba(frame[3_000:])
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert list(model.classes_) == ["no", "yes"]
    truth = true[3_000:].to_numpy()
    gaps = [np.mean((q[:, 1] - truth) ** 2) for q in (p, plain.predict_proba(frame[3_000:]))]
    assert gaps[0] < gaps[1]
    assert set(model.predict(frame[3_000:])) <= {"no", "yes"}
    assert clone(model).get_params()["calibration"] == 0.3
    assert model.n_features_in_ == 2
    weighted = clone(model).set_params(on=np.array([1])).fit(frame, y, sample_weight=np.ones(4_000))
    assert list(weighted.recalibrator_.columns_) == ["x"]
    ready = it.recalibrate.RecalibratedClassifier(plain, Platt(), prefit=True)
    assert ready.fit(frame, y).classifier_ is plain


def test_a_recalibrated_classifier_refuses_with_a_sentence():
    model = it.recalibrate.RecalibratedClassifier(LogisticRegression(), Platt(), on=["w"])
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.predict_proba(np.zeros((2, 1)))
    for on, told in (("w", "no column 'w'"), (7, "no column 7")):
        model = it.recalibrate.RecalibratedClassifier(LogisticRegression(), Local(), on=[on])
        with pytest.raises(InputError, match=told):
            model.fit(np.arange(40.0)[:, None], [0, 1] * 20)


def test_mcgrad_says_that_it_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mcgrad.methods", None)
    with pytest.raises(InputError, match="pip install MCGrad"):
        it.recalibrate.MCGrad().fit(tilted(100))


@pytest.mark.slow
def test_mcgrad_itself_recalibrates_and_survives_a_pickle():
    """The package, which `make` installs without the eighty others that it names."""
    pytest.importorskip("mcgrad.methods")
    calibration, test = tilted(2_000, bias=3.0).split([0.5, 0.5], rng=0)
    fix = it.recalibrate.MCGrad().fit(calibration)
    told = fix.apply(test)
    assert it.scores.log_loss(told) < it.scores.log_loss(test) - 0.01
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fix)).apply(test).p, told.p)
    assert np.isfinite(fix.predict(test.p[:2], {"x": [np.nan, 0.5], "group": ["a", None]})).all()


def test_mcgrad_is_called_as_the_package_wants_it(monkeypatch, tmp_path):
    """A stand-in with the signatures of mcgrad 0.1.5."""

    class Stand:
        def fit(self, df_train, prediction_column_name, label_column_name, weight_column_name, **k):
            self.shift = (
                df_train[label_column_name].mean() - df_train[prediction_column_name].mean()
            )
            assert k["categorical_feature_column_names"] == ["group"]
            assert k["numerical_feature_column_names"] == ["x"]
            assert (df_train[weight_column_name] == 1).all()

        def predict(self, df, prediction_column_name, **_):
            return df[prediction_column_name].to_numpy() + self.shift

        def serialize(self):
            return json.dumps(self.shift)

        @classmethod
        def deserialize(cls, text):
            made = cls()
            made.shift = json.loads(text)
            return made

    package = type("methods", (), {"MCGrad": Stand})
    monkeypatch.setattr("itrust.recalibrate.multicalibration._package", lambda: package)
    sample = tilted(200)
    fix = it.recalibrate.MCGrad().fit(sample)
    again = pickle.loads(pickle.dumps(fix))
    np.testing.assert_array_equal(again.apply(sample).p, fix.apply(sample).p)
    with pytest.raises(InputError, match="what MCGrad learns is not saved"):
        fix.save(tmp_path / "r.json")


def test_methods_for_several_classes_alone_say_so():
    others = it.recalibrate.CLASS_METHODS.keys() - it.recalibrate.METHODS.keys()
    assert others == {"vector", "matrix", "dirichlet"}
    assert all(it.recalibrate.CLASS_METHODS[name].for_classes for name in others)


def test_a_comparison_tells_which_method_is_at_work(capsys):
    learn, judge = it.simulate.survey(400, rng=0).sample.split([0.5, 0.5], rng=0)
    compare([Platt()], learn, judge, draws=19, rng=0, slices=False, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(" (about")[0] for line in err.splitlines()] == [
        "itrust: 1 of 2: judging the probabilities as given",
        "itrust: 2 of 2: recalibrating by Platt",
    ]
