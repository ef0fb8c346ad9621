"""What `audit` is called with: a slip is answered with the call that was meant."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import itrust as it
from itrust import InputError

TOWN = it.simulate.survey(60, rng=0).sample
Y, P = TOWN.y, TOWN.p
X = np.column_stack([TOWN.column("age").values, TOWN.column("income").values / 1e4])
FRAME = pd.DataFrame(X, columns=["age", "income"])
MODEL = LogisticRegression().fit(X, Y)

SLIPS = {
    "labels, probabilities, covariates": ((Y, P, X), "it.audit(it.Sample(y, p, X))"),
    "labels and probabilities": ((Y, P), "it.audit(it.Sample(y, p))"),
    "lists": ((list(Y), list(P)), "it.audit(it.Sample(y, p))"),
    "a frame": ((FRAME,), "it.audit(it.Sample.from_frame(frame, label=..., prob=..., on=[...]))"),
    "a polars frame": ((pl.from_pandas(FRAME),), "its columns 'age', 'income'"),
    "a mapping": (({"y": Y},), "it.audit(it.Sample.from_frame(frame, "),
    "a model alone": ((MODEL,), "it.audit(model, X, y)"),
    "a model without labels": ((MODEL, X), "it.audit(model, X, y)"),
    "rows and labels": ((X, Y), "it.audit(model, X, y)"),
    "a frame and labels": ((FRAME, Y), "it.audit(model, X, y)"),
    "the model last": ((X, Y, MODEL), "it.audit(model, X, y)"),
    "a method": ((MODEL.predict_proba, X, Y), "it.audit(model, X, y)"),
    "a file": (("homes.csv",), "it.audit(it.scan(path, label=..., prob=..., on=[...]).load())"),
    "labels alone": ((Y,), "it.audit(it.Sample(y, p, x))"),
}


@pytest.mark.parametrize(("given", "cure"), SLIPS.values(), ids=list(SLIPS))
def test_a_slip_is_answered_with_the_right_call(given, cure):
    with pytest.raises(InputError, match=re.escape(cure)):
        it.audit(*given)


@pytest.mark.parametrize("given", [{"y": Y}, {"weights": Y}, {"missing": "drop"}, {"cv": 5}])
def test_what_goes_with_a_model_is_refused_beside_a_sample(given):
    with pytest.raises(InputError, match=f"^{next(iter(given))} goes with a model"):
        it.audit(TOWN, **given)


def test_tasks_stand_by_position_or_by_name_but_not_twice():
    settings = {"draws": 39, "rng": 0, "charts": False, "progress": False}
    first = it.audit(TOWN, ["mean(age)"], **settings)
    second = it.audit(TOWN, tasks=["mean(age)"], **settings)
    assert first.tasks[0].to_dict() == second.tasks[0].to_dict()
    with pytest.raises(InputError, match="twice"):
        it.audit(TOWN, ["mean(age)"], tasks=["mean(age)"])
