"""Regressions from files: the same as in memory, in audits, at the command line, disclosed."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import expit

import itrust as it
from itrust import tasks
from itrust._core import InputError
from itrust.bias import Redraws
from itrust.engines import run_together
from itrust.tasks import task_part
from shell import invoke

TEXTS = (
    "coef(age ; age + region)",
    'coef(region["rare"] ; age + region against "west" ; identity)',
    'coef(age:region["south"] ; age + region + age:region | age < 70)',
    "mean(age) + coef(log(age) ; log(age) + region ; log | region != 'rare')",
    "prevalence()",
)


def drawn(n=3_000, seed=0):
    rng = np.random.default_rng(seed)
    region = rng.permutation(
        ["rare"] * 25 + rng.choice(["north", "south", "west"], n - 25).tolist()
    )
    age = rng.uniform(20, 80, n)
    p = expit(-2 + 0.04 * age + rng.normal(0, 0.5, n))
    y = rng.random(n) < expit(-2 + 0.04 * age + 0.5 * (region == "south"))
    return {"y": y.astype(int), "p": p, "age": age, "region": region.astype(str)}


def as_sample(data, **beside):
    x = {name: data[name] for name in data if name not in ("y", "p")}
    return it.Sample(data["y"], data["p"], x, **beside)


def evaluated(sample, texts, at_hand=None):
    """Results in memory, or by passes with some rows at hand."""
    redraws = Redraws.of(sample, alpha=0.05, draws=99, rng=0)
    if at_hand is not None:
        redraws = Redraws.of_extract(
            sample.extract(at_hand), alpha=0.05, draws=99, seed=redraws.seed, engine=redraws.engine
        )
    part = task_part(redraws, tuple(tasks.parse(text) for text in texts))
    assert (part.passes is None) == (at_hand is None)
    (sums,) = run_together(
        redraws.engine, redraws.survey, [part], redraws.null, redraws.draws, redraws.seed
    )
    return part.results(sums)


@pytest.mark.parametrize("weights", [None, "unequal"])
def test_passes_give_what_memory_gives(weights):
    w = None if weights is None else np.random.default_rng(1).uniform(0.5, 2, 3_000)
    sample = as_sample(drawn(), weights=w)
    for memory, passes in zip(evaluated(sample, TEXTS), evaluated(sample, TEXTS, 400), strict=True):
        for name in ("plugin", "from_labels"):
            assert getattr(passes, name) == pytest.approx(getattr(memory, name), rel=1e-7, abs=1e-9)
        assert passes.stderr == pytest.approx(memory.stderr, rel=0.02)
        assert passes.pvalue == pytest.approx(memory.pvalue, rel=0.02)
        assert passes.notes == memory.notes
        assert passes.few_labels == memory.few_labels


def test_what_no_row_at_hand_shows_is_refused_all_the_same():
    data = drawn()
    data["y"] = np.where(data["region"] == "rare", 1, data["y"])
    data["twin"] = 2 * data["age"] + 1
    sample = as_sample(data)
    for text, words in {
        'coef(region["rare"] ; age + region)': "without an exception|few rows have",
        "coef(age ; age + twin)": "twin is told by 'age'",
        "coef(age ; age | region == 'rare')": "it needs at least",
    }.items():
        with pytest.raises(InputError, match=words):
            evaluated(sample, [text], 200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("rows")
    pq.write_table(pa.table(drawn(1_500)), where / "homes.parquet")
    return where


def test_an_audit_of_a_scan_tells_coefficients(folder):
    scan = it.scan(folder / "homes.parquet", label="y", prob="p", on=["age", "region"])
    task = tasks.parse('coef(region["south"] ; age + region) ~ 0.9')
    found = it.audit(scan, [task], draws=99, rng=0)
    memory = it.audit(as_sample(drawn(1_500)), [task], draws=99, rng=0)
    assert found.tasks[0].bias == pytest.approx(memory.tasks[0].bias, rel=1e-9)
    assert found.tasks[0].finding is tasks.TaskFinding.SAFE
    assert "coefficient of region = south in a logistic regression" in str(found)


def test_the_command_takes_coefficients_and_disclosure_control_withholds_small_levels(folder):
    args = ["audit", folder / "homes.parquet", "--label", "y", "--prob", "p"]
    args += [
        "--on",
        "age,region",
        "--draws",
        "99",
        "--seed",
        "0",
        "--min-cell",
        "30",
        "--json",
        "-",
    ]
    args += ["--task", "coef(age ; age)", "--task", "coef(age ; age + region)"]
    done = invoke(*args)
    told = json.loads(done.stdout)["tasks"]
    assert told[0]["withheld"] is None
    assert told[1]["withheld"] == 30  # a level has 25 rows
    wrong = invoke(*args, "--task", "coef(age ; age + p)")
    assert wrong.exit_code == 2
    assert "'p' is the label or a probability, no covariate" in wrong.stderr
