"""Columns as people have them: codes, meanings, missing-value codes, conditions, forms of text."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import itrust as it
from itrust import InputError, Population, Sample
from itrust.data import Kinds, TextForm

N = 400
RNG = np.random.default_rng(5)
RACE = RNG.integers(1, 6, N)
AGE = RNG.integers(18, 90, N)
P = RNG.uniform(0.1, 0.9, N)
Y = (RNG.random(N) < P).astype(int)
MEANING = {1: "White", 2: "Black", 3: "Asian", 4: "Native", 5: "Other"}
FRAME = pd.DataFrame({"y": Y, "p": P, "age": AGE.astype(float), "race": RACE})
ROLES = {"label": "y", "prob": "p", "on": ["age", "race"]}


def framed(frame=FRAME, **settings):
    return Sample.from_frame(frame, **{**ROLES, **settings})


def test_a_column_of_codes_is_a_category_with_its_numbers_as_levels():
    column = framed(categories="race").column("race")
    assert column.is_category
    assert column.levels == (1, 2, 3, 4, 5)
    assert (np.array(column.levels)[column.values] == RACE).all()
    # Files hold whole numbers as decimals; these are the same codes.
    decimal = framed(FRAME.assign(race=RACE.astype(float)), categories="race")
    assert decimal.column("race").levels == (1, 2, 3, 4, 5)


def test_value_labels_name_the_levels_in_the_order_of_the_codes():
    s = framed(value_labels={"race": MEANING})
    assert s.column("race").levels == tuple(MEANING.values())
    for condition in ('race == "Black"', "race == 2", 'race == "2"'):
        assert s.where(condition).n == (RACE == 2).sum()
    told = it.tasks.mean("age", where={"race": 2}).evaluate(s, draws=19, rng=0)
    named = it.tasks.mean("age", where={"race": "Black"}).evaluate(s, draws=19, rng=0)
    assert told.bias == named.bias


def test_codes_without_a_meaning_keep_their_number_and_equal_meanings_are_told_apart():
    s = framed(value_labels={"race": {1: "White", 2: "other", "3": "other"}})
    assert s.column("race").levels == ("White", "other (2)", "other (3)", "4", "5")


def test_meanings_of_the_label_are_shown_and_may_be_asked_for():
    frame = FRAME.assign(y=Y + 1)
    labels = {"y": {1: "no", 2: "yes"}}
    for positive in (2, "yes"):
        s = framed(frame, value_labels=labels, positive=positive)
        assert (s.y == Y).all()
        assert s.positives == "y = yes"


def test_text_that_holds_numbers_is_a_number_if_somebody_says_so():
    frame = FRAME.assign(age=[f" {age} " for age in AGE])
    assert framed(frame).column("age").is_category
    assert (framed(frame, numbers=["age"]).column("age").values == AGE).all()
    frame.loc[[3, 7], "age"] = "old"
    with pytest.raises(InputError, match=r"row 3 has 'old', and so have 1 more; .*na_values"):
        framed(frame, numbers=["age"])
    s = framed(frame, numbers=["age"], na_values="old", missing="drop")
    assert s.n == N - 2


def test_a_note_names_the_choice_until_it_is_made():
    (note,) = framed().notes
    assert "'race' is a number with few values" in note
    assert "categories=['race']" in note
    assert "numbers=['race']" in note
    for choice in (
        {"categories": "race"},
        {"numbers": "race"},
        {"value_labels": {"race": MEANING}},
    ):
        assert framed(**choice).notes == ()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"categories": "rase"}, "categories: there is no column 'rase'; did you mean 'race'"),
        ({"categories": "race", "numbers": "race"}, "'race' cannot be numbers and categories"),
        ({"value_labels": {"race": {}}}, "value_labels must say by column what each code means"),
        ({"categories": [1]}, "categories takes the name of a column"),
        ({"na_values": [None]}, "na_values must be numbers or texts"),
        ({"where": "agee > 3"}, "where: there is no column 'agee'; did you mean 'age'"),
        ({"where": "age > 300"}, "where: 0 rows of 400 satisfy 'age > 300'"),
        ({"where": 'race == "x"'}, "race is a number|compare it with one"),
    ],
)
def test_what_cannot_be_is_one_sentence(said, message):
    with pytest.raises(InputError, match=message):
        framed(**said)


def with_holes(seed=1):
    rng = np.random.default_rng(seed)
    frame = FRAME.assign(w=rng.uniform(1, 2, N), unit=RNG.integers(0, 40, N).astype(float))
    frame["y"] = frame["y"].astype(float)
    for name in ("y", "p", "age", "w", "unit"):
        frame.loc[rng.random(N) < 0.05, name] = np.nan
    return frame


def test_rows_that_lack_anything_are_dropped_as_pandas_drops_them():
    frame = with_holes()
    roles = {"weights": "w", "cluster": "unit"}
    kept = frame.dropna()
    s = framed(frame, missing="drop", **roles)
    whole = framed(kept.reset_index(drop=True), **roles)
    for name in ("y", "p", "weights", "cluster"):
        assert (getattr(s, name) == getattr(whole, name)).all()
    lacking = frame.isna().sum()
    assert f"left out {N - len(kept)} rows of {N} with missing values" in s.notes[0]
    for name in ("y", "p", "age", "w", "unit"):
        assert f"{lacking[name]} lack '{name}'" in s.notes[0]
    arrays = Sample(
        frame["y"],
        frame["p"],
        frame[["age", "race"]],
        weights=frame["w"],
        cluster=frame["unit"],
        missing="drop",
    )
    assert (arrays.p == s.p).all()
    assert (arrays.cluster == s.cluster).all()
    population = Population.from_frame(frame, prob="p", on="age", weights="w", missing="drop")
    assert population.n == frame[["p", "age", "w"]].dropna().shape[0]


def test_an_error_after_rows_were_left_out_names_the_row_of_the_frame():
    frame = with_holes()
    row = int(np.flatnonzero(frame.notna().all(axis=1))[200])
    frame.loc[row, "p"] = 1.7
    with pytest.raises(InputError, match=rf"row {row} has 1.7") as caught:
        framed(frame, missing="drop", where="age >= 20")
    assert caught.value.row == row


def test_without_drop_the_sentence_counts_and_names_the_cure():
    frame = with_holes()
    lacking = frame["p"].isna()
    with pytest.raises(InputError, match=rf"{lacking.sum()} rows have no p \(first: row") as caught:
        framed(frame.assign(y=Y))
    assert "missing='drop' leaves them out" in str(caught.value)
    assert caught.value.count == lacking.sum()


def test_codes_outside_0_and_1_are_taken_for_missing_values_not_for_logits():
    p = P.copy()
    p[:36] = -0.01
    with pytest.raises(InputError, match=r"looks like a missing-value code: na_values=-0.01"):
        framed(FRAME.assign(p=p))
    with pytest.raises(InputError, match="pass logits through"):
        framed(FRAME.assign(p=np.log(P / (1 - P))))
    with pytest.raises(InputError, match="percentages"):
        framed(FRAME.assign(p=100 * P))
    s = framed(FRAME.assign(p=p), na_values=-0.01, missing="drop")
    assert s.n == N - 36
    assert "missing-value codes: 36 of 'p'" in s.notes


@given(
    low=st.integers(10, 90),
    race=st.sets(st.integers(1, 5), min_size=1),
    code=st.sampled_from([-99, "-99", 17, "NA"]),
)
@settings(max_examples=25, deadline=None)
def test_conditions_and_codes_are_those_of_pandas(low, race, code):
    frame = FRAME.assign(age=np.where(AGE == 20, -99.0, AGE))
    asked = f"age >= {low} and race in ({', '.join(map(str, sorted(race)))})"
    blank = frame.replace(float(code) if code != "NA" else "NA", np.nan)
    expected = blank[(blank["age"] >= low) & blank["race"].isin(race)]
    if len(expected) < 2:
        with pytest.raises(InputError, match="a sample needs at least 2"):
            framed(frame, where=asked, na_values=code, missing="drop")
    else:
        s = framed(frame, where=asked, na_values=code, missing="drop")
        assert s.p.tolist() == expected["p"].tolist()


def test_a_condition_may_read_columns_without_a_role_and_the_prediction():
    frame = FRAME.assign(wave=[1, 2] * (N // 2))
    assert (framed(frame, where="wave == 2").p == P[1::2]).all()
    assert (framed(frame, where="prediction > 0.5").p == P[P > 0.5]).all()
    assert (framed(frame, where={"wave": 2}).p == P[1::2]).all()


def test_a_stratum_with_a_single_cluster_is_refused_although_rows_are_left_out():
    frame = FRAME.assign(unit=np.arange(N) // 4, stratum=np.where(np.arange(N) < 4, "lonely", "b"))
    with pytest.raises(InputError, match="stratum 'lonely' of strata has a single cluster"):
        framed(frame, cluster="unit", strata="stratum", where="age >= 20")
    half = FRAME.assign(unit=np.arange(N) // 4, stratum=np.arange(N) // 200)
    assert framed(half, cluster="unit", strata="stratum", where="unit < 51").n == 204


def test_one_label_against_the_rest():
    frame = FRAME.assign(y=RACE)
    s = framed(frame, positive=3, on="age")
    assert (s.y == (RACE == 3)).all()
    assert s.notes[0] == "the label 3 counts as 1, all others (1, 2, 4, 5) as 0"
    with pytest.raises(InputError, match=r"positive=7 is not among the labels 1, 2, 3, 4, 5"):
        framed(frame, positive=7, on="age")
    with pytest.raises(InputError, match=r"for one class against the rest: positive=1"):
        framed(frame, on="age")


def test_files_take_the_same_choices_and_give_the_same_test(tmp_path):
    frame = with_holes().assign(y=np.where(Y == 1, "yes", np.where(AGE > 60, "no", "dead")))
    frame["age"] = frame["age"].fillna(-9)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=90)
    said = {
        "positive": "yes",
        "missing": "drop",
        "na_values": [-9],
        "where": "race != 5 and age >= 25",
        "value_labels": {"race": MEANING},
    }
    scanned = it.scan(tmp_path / "a.parquet", **ROLES, **said)
    s = framed(frame, **said)
    loaded = scanned.load()
    assert (loaded.p == s.p).all()
    assert scanned.n == s.n
    streamed = it.klce_test(scanned, draws=39, rng=0)
    assert streamed.pvalue == it.klce_test(s, draws=39, rng=0).pvalue
    assert "all labels but the positive one ('dead', 'no') count as 0" in streamed.notes


def text_of(frame, sep=",", decimal=".", dates="%Y-%m-%d"):
    return frame.to_csv(sep=sep, decimal=decimal, date_format=dates, index=False)


DATED = FRAME.assign(day=pd.Timestamp("2024-01-01") + pd.to_timedelta(AGE, "D"))


@pytest.mark.parametrize(
    "form",
    [
        {"sep": ";", "decimal": ",", "dates": "%d.%m.%Y"},
        {"sep": ";", "decimal": ".", "dates": "%d/%m/%Y"},
        {"sep": "\t", "decimal": ",", "dates": "%m/%d/%Y"},
        {"sep": "|", "decimal": ".", "dates": "%d-%m-%Y"},
        {"sep": ",", "decimal": ".", "dates": "%d.%m.%y"},
    ],
    ids=str,
)
def test_forms_of_text_are_seen_and_give_the_same_rows(tmp_path, form):
    file = tmp_path / "a.csv"
    file.write_text(text_of(DATED, **form))
    scanned = it.scan(file, label="y", prob="p", on=["age", "race", "day"])
    s, plain = scanned.load(), Sample.from_frame(DATED, **{**ROLES, "on": ["age", "race", "day"]})
    assert (s.p == plain.p).all()
    for one, other in zip(s.columns, plain.columns, strict=True):
        assert one.kind == other.kind
        assert (one.values == other.values).all()
    told = " ".join(scanned.notes)
    assert ("separated by" in told) == (form["sep"] != ",")
    assert ("with a comma" in told) == (form["decimal"] == ",")
    assert "first" in told


def test_dates_that_may_be_read_either_way_stay_text_until_somebody_says(tmp_path):
    days = pd.to_datetime([f"2024-{1 + k % 12:02d}-{1 + k % 9:02d}" for k in range(N)])
    file = tmp_path / "a.csv"
    file.write_text(text_of(FRAME.assign(day=days), dates="%d/%m/%Y"))
    roles = {"label": "y", "prob": "p", "on": "day"}
    unclear = it.scan(file, **roles)
    assert unclear.load().column("day").is_category
    assert "dates of day may have the day or the month first" in unclear.notes[0]
    assert "dates='dmy' or dates='mdy'" in unclear.notes[0]
    said = it.scan(file, **roles, form=TextForm(dates="dmy"))
    assert (said.load().column("day").values == (days - pd.Timestamp(0)).days).all()
    assert said.notes == ()


def test_words_for_missing_values_do_not_turn_a_column_into_text(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(text_of(FRAME).replace("\n0,", "\n0,", 1))
    lines = file.read_text().splitlines()
    lines[5] = ",".join([*lines[5].split(",")[:2], "refused", "3"])
    file.write_text("\n".join(lines))
    assert it.scan(file, **ROLES, missing="drop").load().column("age").is_category
    s = it.scan(file, **ROLES, missing="drop", form=TextForm(na_values=("refused",))).load()
    assert s.column("age").kind == "number"
    assert s.n == N - 1


def test_a_column_of_a_text_file_may_stay_text(tmp_path):
    file = tmp_path / "zip.csv"
    file.write_text("y,p,zip,age\n" + "1,0.5,007,30\n0,0.4,7,40\n1,0.6,,50\n")
    form = TextForm(texts=("zip", "no such column"))
    s = it.scan(file, label="y", prob="p", on=["zip", "age"], missing="level", form=form).load()
    assert s.column("zip").levels == ("007", "7", "(missing)")
    assert s.column("age").kind == "number"


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"separator": "ab"}, "sep takes one ASCII sign, or tab, not 'ab'"),
        ({"decimal": ";"}, "decimal must be one of"),
        ({"separator": ",", "decimal": ","}, "decimal and sep= cannot both be ','"),
        ({"dates": "ymd"}, "dates must be one of"),
    ],
)
def test_forms_that_cannot_be_are_one_sentence(form, message):
    with pytest.raises(InputError, match=message):
        TextForm(**form)


def test_a_recalibrator_reads_codes_as_it_did_in_the_fit(tmp_path):
    y = RNG.random(N) < np.clip(P + np.where(RACE == 2, 0.3, 0.0), 0, 1)
    for said in ({"categories": "race"}, {"value_labels": {"race": MEANING}}):
        s = framed(FRAME.assign(y=y.astype(int)), **said)
        fit = it.recalibrate.Multicalibration().fit(s)
        fit.save(tmp_path / "fit.json")
        again = it.recalibrate.load(tmp_path / "fit.json")
        x = FRAME[["age", "race"]]
        assert (again.predict(P, x) == fit.apply(s).p).all()
        assert (again.predict(P, x.astype(float)) == fit.apply(s).p).all()


def test_kinds_of_columns_that_are_no_covariates_are_refused_for_arrays():
    with pytest.raises(InputError, match="categories: there is no column 'sex'"):
        Sample(Y, P, {"age": AGE}, categories=["sex"])
    assert Kinds.of("a", ["b"]).of_columns(["b"])["numbers"] == ["b"]


def test_codes_of_units_and_weights_are_missing_before_the_design_is_checked():
    frame = FRAME.assign(w=1.0, unit=np.arange(N) // 8, part=np.where(np.arange(N) < 200, "a", "b"))
    frame.loc[4, "w"] = -9
    s = framed(frame, weights="w", cluster="unit", missing="drop", na_values=-9)
    assert s.n == N - 1
    frame.loc[9, "part"] = "NA"
    drawn = {"cluster": "unit", "strata": "part", "na_values": [-9, "NA"], "missing": "drop"}
    assert framed(frame, weights="w", **drawn).n == N - 2


def test_names_of_levels_are_those_of_all_meanings_in_every_part_of_a_file(tmp_path):
    order = np.argsort(RACE, kind="stable")
    table = pa.Table.from_pandas(FRAME.iloc[order], preserve_index=False)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    said = {"value_labels": {"race": {1: "same", 5: "same", 2: "Black"}}}
    scanned = it.scan(tmp_path / "a.parquet", **{**ROLES, "on": "race"}, **said)
    loaded = scanned.load()
    assert loaded.column("race").levels == ("same (1)", "Black", "3", "4", "same (5)")
    kernel = it.kernels.LocalKernel(x=it.kernels.Delta().on("race"))
    assert it.klce2(scanned, kernel) == pytest.approx(it.klce2(loaded, kernel), rel=0.01)


def test_labels_and_matrices_in_odd_forms():
    labels = {"y": {"0": "no", "1": "yes"}}
    assert (framed(value_labels=labels, positive="yes").y == Y).all()
    gaps = [[1 - p, p] for p in P]
    gaps[3] = [float("nan")] * 2
    s = Sample(Y, gaps, {"prob": AGE.astype(float)}, positive=1, missing="drop")
    assert s.n == N - 1
    matrix = np.array([[0.5, 0.5], [0.1, 0.9]])
    assert it.scores.brier([0, 1], matrix, pos_label=0) == pytest.approx(0.13)
    with pytest.raises(InputError, match="row 2 has '1_000'"):
        Sample([0, 1, 1], [0.2, 0.3, 0.4], {"x": ["1", "2", "1_000"]}, numbers="x")
    kept = Sample(Y, P, {"race": RACE}, categories=(name for name in ["race"]))
    assert kept.column("race").is_category


def test_text_that_is_no_unicode_is_refused_in_a_sentence():
    p = [[0.3, 0.3, 0.4]] * 3
    with pytest.raises(it.InputError, match="surrogates not allowed"):
        it.MulticlassSample(["a\ud800", "b", "c"], p, classes=["a\ud800", "b", "c"])
    with pytest.raises(it.InputError, match="surrogates not allowed"):
        it.Sample([0, 1, 1], [0.3, 0.3, 0.4], {"g": ["a\ud800", "b", "c"]})
