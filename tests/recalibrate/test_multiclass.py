"""Several classes: closed forms, scikit-learn and SciPy as oracles, properties, files, refusals."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import itrust as it
from itrust._core import InputError
from itrust.recalibrate import (
    CLASS_METHODS,
    METHODS,
    DirichletCalibration,
    Isotonic,
    Local,
    MatrixScaling,
    Multicalibration,
    OneVsRest,
    Platt,
    RecalibratedClassifier,
    Temperature,
    TemperatureScaling,
    VectorScaling,
    compare,
    load,
)
from itrust.recalibrate.rows import edge_of

QUICK = Local(rounds=1, features=30, widths=(0.4,), ridges=(2.0, 32.0), draws=49)
OURS = {name: method() for name, method in CLASS_METHODS.items() if name != "mcgrad"}
OURS |= {"local": QUICK, "one-vs-rest": OneVsRest(Platt())}
every_method = pytest.mark.parametrize("method", OURS.values(), ids=OURS)
SCALINGS = (TemperatureScaling, VectorScaling, MatrixScaling, DirichletCalibration)


def votes(n, seed, classes=("win", "tie", "loss"), weights=None):
    """A model that is too sure, and takes ties for losses in the south."""
    rng = np.random.default_rng(seed)
    age, south = rng.uniform(20, 80, n), rng.random(n) < 0.5
    z = np.column_stack([(age - 50) / 20, 0.3 * rng.normal(size=n), (50 - age) / 25])
    shift = np.outer(south, [0.0, 1.3, -1.3])
    truth, told = softmax(0.7 * z + shift, axis=1), softmax(1.4 * z, axis=1)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    x = pd.DataFrame({"age": age, "region": np.where(south, "south", "north")})
    return it.MulticlassSample([classes[k] for k in y], told, x, list(classes), weights=weights)


def log_loss(sample, p):
    return -np.log(p[np.arange(sample.n), sample.codes]).mean()


@pytest.fixture(scope="module")
def town():
    return votes(500, 0), votes(300, 2)


@pytest.fixture(scope="module")
def fitted(town):
    return {name: clone(method).fit(town[0]) for name, method in OURS.items()}


# --- what all methods have in common ---------------------------------------------------------


@pytest.mark.parametrize("name", OURS)
def test_rows_are_probabilities_and_files_give_them_again(name, fitted, town, tmp_path):
    fix, test = fitted[name], town[1]
    told = fix.predict(test.p, test)
    assert told.shape == test.p.shape
    assert told.min() >= 0
    np.testing.assert_allclose(told.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(fix.apply(test).p, told)
    assert fix.classes_ == test.classes
    fix.save(tmp_path / "a.json")
    json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail)
    again = load(tmp_path / "a.json")
    assert repr(again) == repr(fix)
    np.testing.assert_array_equal(again.predict(test.p, test), told)
    assert again.to_dict() == fix.to_dict()
    assert again.n_rows_ == 500


@pytest.mark.parametrize("name", OURS)
def test_certainty_stays_finite_and_one_row_is_enough(name, fitted):
    certain = np.eye(3)
    x = {"age": [30.0, 50.0, 70.0], "region": ["south", "north", "south"]}
    told = fitted[name].predict(certain, x)
    assert np.isfinite(told).all()
    np.testing.assert_allclose(told.sum(axis=1), 1)
    one = {key: own[:1] for key, own in x.items()}
    np.testing.assert_allclose(fitted[name].predict(certain[:1], one), told[:1], atol=1e-12)


@pytest.mark.parametrize("name", OURS)
def test_another_order_of_the_classes_permutes_the_answer(name, fitted, town):
    order = [2, 0, 1]
    calibration, test = town
    names = [calibration.classes[k] for k in order]
    x = {
        "age": calibration.one_class("win").column("age").values,
        "region": np.take(*_levels(calibration, "region")),
    }
    labels = [calibration.classes[k] for k in calibration.codes]
    turned = it.MulticlassSample(labels, calibration.p[:, order], x, names)
    told = clone(OURS[name]).fit(turned).predict(test.p[:, order], test)
    expected = fitted[name].predict(test.p, test)[:, order]
    np.testing.assert_allclose(told, expected, atol=1e-4)


def _levels(sample, name):
    column = sample.one_class(sample.classes[0]).column(name)
    return column.levels, column.values


@every_method
def test_zeros_in_calibration_rows_stay_finite(method):
    few = votes(200, 5)
    p = few.p.copy()
    p[:30] = np.eye(3)[few.codes[:30]]
    p[0] = np.eye(3)[(few.codes[0] + 1) % 3]  # the label was called impossible
    x = {"age": few.one_class("win").column("age").values}
    labels = [few.classes[k] for k in few.codes]
    fix = clone(method).fit(it.MulticlassSample(labels, p, x, few.classes))
    assert np.isfinite(fix.predict(p, x)).all()


# --- closed forms and oracles ----------------------------------------------------------------


def test_temperature_is_the_optimum_that_scipy_finds(fitted, town):
    rows = town[0]
    z = np.log(rows.p)

    def loss(inverse):
        return -log_softmax(inverse * z, axis=1)[np.arange(rows.n), rows.codes].mean()

    best = minimize_scalar(loss, bounds=(0, 5), method="bounded", options={"xatol": 1e-10}).x
    assert fitted["temperature"].inverse_ == pytest.approx(best, abs=1e-6)
    assert fitted["temperature"].temperature_ == pytest.approx(1 / best, abs=1e-6)


def test_temperature_of_several_classes_is_one_number_for_all(fitted, town):
    calibration, test = town
    fix = Temperature().fit(calibration)
    assert fix.inverse_ == fitted["temperature"].inverse_
    np.testing.assert_array_equal(fix.predict(test.p), fitted["temperature"].predict(test.p))


def test_two_classes_of_temperature_scaling_are_those_of_temperature():
    binary = it.simulate.survey(800, rng=2).sample
    both = it.MulticlassSample(binary.y.astype(int), np.column_stack([1 - binary.p, binary.p]))
    scaled, known = TemperatureScaling().fit(both), Temperature().fit(binary)
    assert scaled.inverse_ == pytest.approx(known.inverse_, abs=1e-9)


@pytest.mark.parametrize("name", ["vector", "matrix", "dirichlet"])
def test_the_gradient_of_the_penalised_loss_is_zero(name, fitted, town):
    """By finite differences of the loss as the docstring writes it."""
    rows, fix = town[0], fitted[name]
    z = np.log(rows.p)
    if name == "matrix":
        z = z - z.mean(axis=1, keepdims=True)

    def loss(matrix, intercepts):
        told = log_softmax(z @ matrix.T + intercepts, axis=1)
        mean = -told[np.arange(rows.n), rows.codes].mean()
        left = matrix - np.eye(3)
        if name == "vector":
            return mean
        if name == "dirichlet":
            left = left - np.diag(np.diag(left))
        return mean + fix.ridge_ / 2 * (np.sum(left**2) + np.sum(intercepts**2))

    free = np.eye(3, dtype=bool) if name == "vector" else np.ones((3, 3), dtype=bool)
    step = 1e-5
    for j, k in zip(*np.nonzero(free), strict=True):
        up, down = fix.matrix_.copy(), fix.matrix_.copy()
        up[j, k] += step
        down[j, k] -= step
        slope = (loss(up, fix.intercepts_) - loss(down, fix.intercepts_)) / (2 * step)
        assert slope == pytest.approx(0, abs=2e-6)
    for k in range(3):
        move = step * np.eye(3)[k]
        up, down = (loss(fix.matrix_, fix.intercepts_ + s * move) for s in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(0, abs=2e-6)


def test_dirichlet_on_logarithms_equals_scikit_learn_where_nothing_is_shrunk():
    rows = votes(2_000, 3)
    fix = DirichletCalibration(ridges=(1e-9,)).fit(rows)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=20_000)
    model.fit(np.log(rows.p), rows.codes)
    np.testing.assert_allclose(fix.predict(rows.p), model.predict_proba(np.log(rows.p)), atol=1e-4)


@pytest.mark.parametrize("method", SCALINGS)
def test_weights_count_as_repeated_rows(method):
    rows = votes(300, 4)
    w = np.random.default_rng(0).integers(0, 3, rows.n)
    labels = np.array(rows.classes)[rows.codes]
    settings = {"ridges": (0.01,)} if method in SCALINGS[2:] else {}
    weighted = method(**settings).fit(
        it.MulticlassSample(labels, rows.p, None, rows.classes, weights=w)
    )
    times = np.repeat(np.arange(rows.n), w)
    repeated = it.MulticlassSample(labels[times], rows.p[times], None, rows.classes)
    np.testing.assert_allclose(
        weighted.predict(rows.p), method(**settings).fit(repeated).predict(rows.p), atol=1e-6
    )


def test_one_against_the_rest_divides_what_the_binary_method_gives(town):
    calibration, test = town
    own = [
        Platt().fit(calibration.one_class(c)).predict(test.p[:, k])
        for k, c in enumerate(test.classes)
    ]
    expected = np.column_stack(own) / np.sum(own, axis=0)[:, None]
    np.testing.assert_allclose(OneVsRest(Platt()).fit(calibration).predict(test.p), expected)
    np.testing.assert_array_equal(
        OneVsRest().fit(calibration).predict(test.p), Isotonic().fit(calibration).predict(test.p)
    )


# --- two classes -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in METHODS if name != "mcgrad"])
def test_two_classes_give_the_bits_of_the_binary_method(name):
    method = clone(QUICK) if name == "local" else METHODS[name]()
    binary, test = it.simulate.survey(1_000, rng=3).sample.split([0.5, 0.5], rng=0)
    x = {
        "age": binary.column("age").values,
        "region": np.take(binary.column("region").levels, binary.column("region").values),
    }
    both = np.column_stack([1 - binary.p, binary.p])
    two = it.MulticlassSample(np.where(binary.y == 1, "yes", "no"), both, x, ["no", "yes"])
    told = clone(method).fit(two).predict(np.column_stack([1 - test.p, test.p]), test)
    expected = clone(method).fit(it.Sample(binary.y, binary.p, x)).predict(test.p, test)
    np.testing.assert_array_equal(told[:, 1], expected)
    np.testing.assert_array_equal(told[:, 0], 1 - expected)


def test_a_fit_on_two_labels_forgets_the_classes(town):
    fix = Platt().fit(town[0])
    fix.fit(town[0].one_class("tie"))
    assert fix.classes_ is None
    assert fix.predict([0.2, 0.4]).shape == (2,)


# --- Local -----------------------------------------------------------------------------------


def test_local_finds_what_x_tells_and_scalings_cannot(fitted, town):
    test = town[1]
    told = {
        "none": test.p,
        "matrix": fitted["matrix"].predict(test.p),
        "local": fitted["local"].predict(test.p, test),
    }
    left = {
        name: it.multiclass_test(test.with_predictions(p), draws=9, rng=0).statistic
        for name, p in told.items()
    }
    assert left["local"] < min(left["none"], left["matrix"]) / 2
    names = ("temperature", "vector", "matrix", "dirichlet")
    losses = [log_loss(test, fitted[name].predict(test.p)) for name in names]
    assert log_loss(test, fitted["local"].predict(test.p, test)) < min(losses) - 0.05
    assert fitted["local"].steps_[0].pvalue <= fitted["local"].needed_
    assert [step.stage for step in fitted["local"].steps_][2] == "local 1"


def test_local_changes_nothing_where_the_model_is_calibrated():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([1, 2, 3], 300)
    y = (rng.random((300, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    rows = it.MulticlassSample(y, truth, rng.normal(size=300))
    fix = clone(QUICK).fit(rows)
    assert fix.unchanged_
    np.testing.assert_allclose(fix.predict(rows.p, rows), truth, atol=1e-12)


def test_local_fades_outside_the_calibration_rows(fitted):
    p = [[0.5, 0.2, 0.3]] * 3
    x = {"age": [50.0, 500.0, 50.0], "region": ["south", "south", "mars"]}
    np.testing.assert_array_equal(fitted["local"].outside(p, x), [False, True, True])
    told = fitted["local"].predict(p, x)
    np.testing.assert_allclose(told[1:], p[1:], atol=1e-9)
    assert np.abs(told[0] - p[0]).max() > 0.05
    assert fitted["local"].unseen(x) == {"region": 1}


def test_edge_is_half_of_the_smallest_probability():
    assert edge_of(np.array([[0.0, 0.1, 0.9], [0.3, 0.3, 0.4]])) == 0.01
    assert edge_of(np.array([[0.0, 0.01, 0.99], [0.3, 0.3, 0.4]])) == 0.005


def test_rows_of_weight_zero_are_left_out():
    w = np.ones(100)
    w[:40] = 0
    assert VectorScaling().fit(votes(100, 0, weights=w)).n_rows_ == 60


# --- refusals --------------------------------------------------------------------------------


def refused(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_wrong_classes_are_refused_in_words(fitted, town):
    fix, test = fitted["temperature"], town[1]
    turned = votes(50, 0, ("tie", "win", "loss"))
    other = votes(50, 0, ("a", "b", "c"))
    refused(lambda: fix.apply(turned), "in another order than in the fit.*'win', 'tie', 'loss'")
    refused(lambda: fix.apply(other), "'a', 'b', 'c', which are not those of the fit")
    refused(lambda: fix.predict([[0.5, 0.5]]), "one column for each of the classes 'win'")
    refused(lambda: fix.predict([[0.5, 0.1, 0.1]]), "sum to 1; those of row 0 sum to 0.7")
    refused(lambda: fix.predict([[1.5, -0.5, 0.0]]), "must lie in")
    refused(lambda: fix.predict(test), "use .apply")
    refused(lambda: fix.apply(test.one_class("tie")), "several classes")
    refused(lambda: Platt().fit(test.one_class("tie")).apply(test), "the fit is on two labels")
    named = dict(zip(test.classes, test.p.T, strict=True))
    for columns in (named, dict(reversed(named.items()))):
        np.testing.assert_array_equal(fix.predict(columns), fix.predict(test.p))


def test_methods_say_what_they_are_for(town):
    rows = town[0]
    refused(lambda: TemperatureScaling().fit(rows.one_class("tie")), "several classes")
    refused(lambda: OneVsRest(TemperatureScaling()).fit(rows), "method for two labels")
    refused(lambda: OneVsRest("isotonic").fit(rows), "with its brackets")
    refused(lambda: MatrixScaling(ridges=(0.0,)).fit(rows), "must be a finite number above 0")
    refused(lambda: Local(alpha=2).fit(rows), "alpha")
    one = it.MulticlassSample(["win"] * 20, rows.p[:20], None, rows.classes)
    refused(lambda: VectorScaling().fit(one), "every label is 'win'")


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("vector", lambda f: f["classes"].pop(), "learned.matrix must be as long as classes"),
        (
            "vector",
            lambda f: f["learned"]["matrix"][0].pop(),
            r"learned.matrix must be as long as classes, which has 3, not 0",
        ),
        ("temperature", lambda f: f.pop("classes"), "classes"),
        ("temperature", lambda f: f["learned"].update(inverse=-1), "learned.inverse"),
        ("one-vs-rest", lambda f: f["learned"]["fits"].pop(), "learned.fits must be as long"),
        ("isotonic", lambda f: f["learned"]["fits"][0].update(method="Beta"), "learned.fits"),
        ("local", lambda f: f["learned"]["supports"].pop(), "learned.supports must"),
        ("local", lambda f: f["learned"]["map"].update(classes=["a", "b", "c"]), "learned.map"),
        ("local", lambda f: f.update(classes=["a"]), "classes must have 2 or more"),
    ],
)
def test_damaged_files_are_refused_with_the_place(name, change, words, fitted, tmp_path):
    fitted[name].save(tmp_path / "a.json")
    facts = json.loads((tmp_path / "a.json").read_text())
    if name == "local" and facts["learned"]["map"] is None:
        facts["learned"]["map"] = fitted["temperature"].to_dict()
    change(facts)
    (tmp_path / "a.json").write_text(json.dumps(facts))
    refused(lambda: load(tmp_path / "a.json"), words)


# --- the comparison and the classifier -------------------------------------------------------


def test_compare_judges_several_classes(town):
    table = compare([TemperatureScaling()], *town, draws=49, rng=0, progress=False)
    assert [row.name for row in table] == ["none", "TemperatureScaling"]
    test = town[1]
    told = TemperatureScaling().fit(town[0]).predict(test.p)
    assert table[1].log_loss == pytest.approx(log_loss(test, told))
    onehot = np.eye(3)[test.codes]
    assert table[1].brier == pytest.approx(np.mean(np.sum((told - onehot) ** 2, axis=1)) / 2)
    top = it.Sample(test.codes == told.argmax(axis=1), told.max(axis=1))
    assert table[1].ece == pytest.approx(it.scores.ece(top))
    assert (
        table[1].pvalue == it.multiclass_test(table[1].fitted.apply(test), draws=49, rng=0).pvalue
    )
    words = " ".join(str(table).split())
    assert "largest probability" in words
    assert "slice" not in words.replace("slices were not searched", "")
    json.dumps(table.to_dict())
    refused(lambda: compare([Platt()], town[0], town[0], draws=49), "among the calibration rows")
    refused(lambda: compare([Platt()], town[0], town[1].one_class("tie")), "MulticlassSample")
    refused(lambda: compare([Platt()], town[0].one_class("tie"), town[1]), "two labels")
    refused(lambda: compare([Platt()], town[0], votes(50, 0, ("a", "b", "c"))), "not those")


def test_the_classifier_takes_several_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.array(["a", "b", "c"])[(X[:, 0] + rng.normal(size=600) > 0).astype(int) + (X[:, 1] > 1)]
    for method in (Isotonic(), TemperatureScaling(), clone(QUICK)):
        model = RecalibratedClassifier(LogisticRegression(), method).fit(X, y)
        told = model.predict_proba(X)
        assert told.shape == (600, 3)
        np.testing.assert_allclose(told.sum(axis=1), 1)
        np.testing.assert_array_equal(model.predict(X), model.classes_[told.argmax(axis=1)])
        assert model.score(X, y) > 0.5
    two = RecalibratedClassifier(LogisticRegression(), TemperatureScaling()).fit(X, y == "a")
    assert two.predict_proba(X).shape == (600, 2)


def test_a_right_model_of_two_classes_is_said_to_be_unchanged():
    rng = np.random.default_rng(12)
    p, other = rng.random(200), rng.random(60)
    right, test = (
        it.MulticlassSample(
            np.where(rng.random(q.size) < q, "yes", "no"),
            np.column_stack([1 - q, q]),
            rng.normal(size=q.size),
            ["no", "yes"],
        )
        for q in (p, other)
    )
    table = compare([clone(QUICK)], right, test, draws=19, rng=0)
    assert table["Local"].unchanged
    assert any("Local: nothing was changed: the exact test" in note for note in table.notes)


def test_files_of_several_classes_are_fitted_applied_and_compared(town, tmp_path):
    files = []
    for rows, name in zip(town, ("fit", "new"), strict=True):
        columns = {f"p_{c}": rows.p[:, k] for k, c in enumerate(rows.classes)}
        columns["y"] = np.array(rows.classes)[rows.codes]
        columns["age"] = rows.column("age").values
        files.append(tmp_path / f"{name}.csv")
        pd.DataFrame(columns).to_csv(files[-1], index=False)
    fit, new = (it.scan(file, label="y", prob="p_*", on=["age"]) for file in files)
    fix = Multicalibration().fit(fit)
    written = fix.apply(new, tmp_path / "out.csv", column="q")
    assert written.classes == fit.classes
    np.testing.assert_allclose(written.load().p, fix.apply(new.load()).p, rtol=0, atol=1e-12)
    some = compare([TemperatureScaling()], fit, new, draws=19, rng=0)
    same = compare([TemperatureScaling()], fit.load(), new.load(), draws=19, rng=0)
    assert some[1].log_loss == same[1].log_loss
    other = TemperatureScaling().fit(votes(50, 0, ("a", "b", "c")))
    refused(lambda: other.apply(new, tmp_path / "x.csv"), "not those of the fit")


def test_local_learns_from_clusters_with_a_rare_class():
    rng = np.random.default_rng(1)
    p = rng.dirichlet([4, 4, 1], 240) * [1, 1, 0.3]
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random(240)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    x = {"x": rng.normal(size=240)}
    rows = it.Sample(y, p, x, classes=[0, 1, 2], cluster=np.arange(240) // 4)
    told = QUICK.fit(rows).apply(rows)
    np.testing.assert_allclose(told.p.sum(axis=1), 1.0)
