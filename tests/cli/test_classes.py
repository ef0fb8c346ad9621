"""Several classes on the command line: columns by class, outputs, the gate, recalibration."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

from itrust.auditing import read_json
from shell import invoke

NAMES = ("win", "tie", "loss")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 400
    x, region = rng.normal(size=n), rng.choice(["north", "south"], n)
    p = np.exp(np.column_stack([x, -x, np.zeros(n)]))
    p /= p.sum(axis=1, keepdims=True)
    truth = p.copy()
    south = region == "south"
    truth[south] = p[south][:, [1, 0, 2]]
    codes = (rng.random(n)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    columns = {"y": [NAMES[k] for k in codes], "x": x, "region": region}
    columns |= {f"p_{name}": p[:, k] for k, name in enumerate(NAMES)}
    path = tmp_path_factory.mktemp("classes") / "games.csv"
    csv.write_csv(pa.table(columns), path)
    return path


def _all(done):
    return done.stdout + done.stderr


COMMON = ("--label", "y", "--on", "x,region", "--draws", "119")


def test_a_file_of_several_classes_is_audited_everywhere(file, tmp_path):
    outputs = {name: tmp_path / f"a.{name}" for name in ("html", "json", "md", "xml")}
    flags = {"html": "--report", "json": "--json", "md": "--summary", "xml": "--junit"}
    places = [part for name, path in outputs.items() for part in (flags[name], str(path))]
    by_name = "win=p_win,tie=p_tie,loss=p_loss"
    done = invoke("audit", str(file), *COMMON, "--prob", by_name, "--gate", "model", *places)
    assert done.exit_code == 1, _all(done)
    facts = json.loads(outputs["json"].read_text())
    assert facts["schema"] == "itrust-audit/5"
    assert facts["classes"] == list(NAMES)
    assert facts["verdict"] == "miscalibrated"
    assert f"--prob {by_name}" in facts["provenance"]["command"]
    for path in outputs.values():
        assert "miscalibrated" in path.read_text().lower()
    assert read_json(outputs["json"])["schema"] == "itrust-audit/5"


@pytest.mark.parametrize(
    ("prob", "said"),
    [
        (["win=p_win,tie=p_tie,loss=p_los"], "there is no column 'p_los'; did you mean 'p_loss'?"),
        (["q_*"], "no column matches 'q_*'"),
        (["p_*", "--prob", "p_win"], "name one column for every model"),
        (["p_*", "--positive", "win"], "--positive is for two labels"),
        (["p_*", "--grades", "region"], "--grades is for two labels"),
    ],
)
def test_slips_are_answered_in_one_sentence(file, prob, said):
    done = invoke("audit", str(file), *COMMON, "--prob", *prob)
    assert done.exit_code == 2
    assert said in " ".join(_all(done).split())
    assert "Traceback" not in _all(done)


def test_files_of_classes_that_are_streamed_give_the_same(file, tmp_path):
    columns = ["--label", "y", "--prob", "p_*", "--on", "x,region", "--draws", "79"]
    found = []
    for more in ([], ["--stream"]):
        place = tmp_path / "a.json"
        assert invoke("audit", file, *columns, *more, "--json", place).exit_code == 0
        learned = tmp_path / "r.json"
        fit = ["recalibrate", file, *columns[:6], "--method", "vector", "--save", learned]
        assert invoke(*fit, *more).exit_code == 0
        found.append((place.read_text(), learned.read_bytes()))
    assert found[0] == found[1]


def test_recalibrated_probabilities_have_a_column_for_each_class(file, tmp_path):
    out, kept = tmp_path / "r.csv", tmp_path / "m.json"
    learn = ("--prob", "p_*", "--label", "y", "--on", "x,region", "--method", "vector")
    apply_to = ("--apply", str(file), "--column", "r")
    done = invoke(
        "recalibrate", str(file), *learn, *apply_to, "--out", str(out), "--save", str(kept)
    )
    assert done.exit_code == 0, _all(done)
    assert "rows that are fitted on are recalibrated, too" in " ".join(done.stderr.split())
    assert '"' not in out.read_text()  # as columns that are added to text
    table = csv.read_csv(out)
    after = np.column_stack([table[f"r_{name}"].to_numpy() for name in NAMES])
    assert after.sum(axis=1) == pytest.approx(1.0)
    again = tmp_path / "again.csv"
    load = ("recalibrate", "--load", str(kept), *apply_to, "--out", str(again))
    for more in ((), ("--prob", "p_*")):
        loaded = invoke(*load, *more)
        assert loaded.exit_code == 0, _all(loaded)
        assert again.read_bytes() == out.read_bytes()
        assert "fitted on" not in loaded.stderr
    for more, told in (
        (("--method", "matrix"), "--method: with --load nothing is fitted"),
        (("--prob", "p_win"), "what was learned is about several classes; name the columns"),
    ):
        refused = invoke(*load, *more)
        assert refused.exit_code == 2
        assert told in " ".join(refused.stderr.split())


def test_methods_for_classes_say_so_where_two_labels_are_named(file):
    asked = ("--label", "y", "--positive", "win", "--prob", "p_win", "--method", "vector")
    told = invoke("recalibrate", str(file), *asked, "--save", "never.json")
    assert told.exit_code == 2
    assert "--method: 'vector' is for several classes" in " ".join(told.stderr.split())


def test_columns_that_are_named_without_their_classes_are_told_how(file):
    asked = ("--label", "y", "--on", "x")
    told = invoke("audit", str(file), *asked, "--prob", "p_win,p_tie,p_loss")
    assert told.exit_code == 2
    cure = "for all at once: --prob win=p1,tie=pt,loss=p2 or 'p_*'"
    assert cure in " ".join(told.stderr.split())


def test_columns_of_two_models_that_a_pattern_takes_are_told(tmp_path):
    rows = ["y,p_a,p_b,p_again_a,p_again_b", *["a,0.25,0.75,0.5,0.5", "b,0.25,0.75,0.5,0.5"] * 9]
    (tmp_path / "twice.csv").write_text("\n".join(rows) + "\n")
    told = invoke(
        "audit", str(tmp_path / "twice.csv"), "--label", "y", "--prob", "p_*", "--on", "none"
    )
    assert told.exit_code == 2
    assert "are these columns of more than one model?" in " ".join(told.stderr.split())


def test_rows_that_the_fit_has_not_seen_are_told_of_several_classes_too(file, tmp_path):
    kept, out = tmp_path / "m.json", tmp_path / "r.csv"
    learn = ("--prob", "p_*", "--label", "y", "--on", "x,region", "--method", "multicalibration")
    done = invoke("recalibrate", str(file), *learn, "--save", str(kept))
    assert done.exit_code == 0, _all(done)
    head, *rows = file.read_text().splitlines()
    other = tmp_path / "other.csv"

    def applied(changed, *more):
        other.write_text("\n".join([head, *rows[:6], changed]) + "\n")
        places = ("--load", str(kept), "--apply", str(other), "--out", str(out))
        found = invoke("recalibrate", *places, *more)
        assert out.exists() == (found.exit_code == 0)
        return found.exit_code, " ".join(_all(found).split())

    last = rows[6].split(",")
    code, told = applied(",".join([*last[:2], "east", *last[3:]]))
    assert code == 0
    assert "with a level of 'region' that the fit has not seen" in told
    out.unlink()
    code, told = applied(",".join([*last[:2], "", *last[3:]]))
    assert code == 2
    assert "covariates have missing values: 'region' in 1 row (first: line 8)" in told
    code, told = applied(",".join([*last[:3], "", *last[4:]]))
    assert code == 2
    assert "1 row has no p_win (first: line 8); fill it in, or leave such rows out" in told
    assert applied(",".join([*last[:2], "", *last[3:]]), "--missing", "level")[0] == 0


def test_of_two_classes_the_one_that_counts_as_1_is_said_and_chosen(tmp_path):
    rng = np.random.default_rng(1)
    p, x = rng.random(200), rng.normal(size=200)
    labels = np.where(rng.random(200) < p, "win", "loss")
    path = tmp_path / "two.csv"
    csv.write_csv(pa.table({"y": labels, "x": x, "p_win": p, "p_loss": 1 - p}), path)

    def audited(*more):
        kept, page = tmp_path / "a.json", tmp_path / "a.html"
        two = ("--label", "y", "--on", "x", "--draws", "119", "--prob", "win=p_win,loss=p_loss")
        outputs = ("--json", str(kept), "--report", str(page))
        done = invoke("audit", str(path), *two, *outputs, *more)
        text = " ".join(_all(done).split())
        return done.exit_code, text, kept.read_text(), page.read_text()

    code, text, kept, page = audited()
    assert code == 0, text
    for told in (text, kept, page):
        assert "'loss' count as 1, 'win' as 0" in told.replace("&#x27;", "'").replace("&#39;", "'")
    code, text, kept, page = audited("--positive", "win")
    assert code == 0, text
    assert "labels 'win' count as 1, 'loss' as 0" in text
    assert f"mean prediction {p.mean():.2f}" in text
    code, text, *_ = audited("--positive", "tie")
    assert code == 2
    assert "--positive 'tie' is not among the classes 'win', 'loss'" in text


def test_help_tells_how_several_classes_are_named():
    told = " ".join(invoke("audit", "--help").stdout.split())
    assert "two values, or several classes" in told
    assert "Of several classes win=p1,tie=pt,loss=p2" in told
    grammar = invoke("tasks").stdout
    for task in ('prevalence("tie" | region == "south")', 'mean(age | y == "tie")'):
        assert task in grammar
        assert invoke("tasks", task).exit_code == 0
