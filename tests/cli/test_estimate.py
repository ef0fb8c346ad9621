"""`itrust estimate` as users and scripts meet it: files in, numbers, text, JSON and page out."""

import hashlib
import json
import re
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import itrust as it
from shell import invoke

COLUMNS = ["--label", "y", "--prob", "p", "--on", "age,region"]
TASKS = ["prevalence()", 'Age in the south: mean(age | region == "south")']
WANTED = [word for task in TASKS for word in ("--task", task)]


def town(n=1_500):
    """A town, and who of it is labelled: mostly the young."""
    sample = it.simulate.survey(n, rng=1).sample
    age, region = sample.column("age").values, sample.column("region")
    chance = 0.8 / (1 + np.exp((age - 50) / 12))
    rows = pa.table(
        {
            "y": sample.y.astype(int),
            "p": sample.p,
            "age": age,
            "region": [region.levels[int(code)] for code in region.values],
            "chance": chance,
        }
    )
    return rows, np.random.default_rng(0).random(n) < chance


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("estimate")
    rows, labelled = town()
    pa.csv.write_csv(rows.filter(pa.array(labelled)), place / "few.csv")
    everyone = rows.drop_columns(["y", "chance"])
    pa.parquet.write_table(everyone, place / "all.parquet")
    (place / "parts").mkdir()
    for k in range(3):
        pa.csv.write_csv(everyone.slice(500 * k, 500), place / "parts" / f"{k}.csv")
    return place


@pytest.fixture(autouse=True)
def within(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")


def estimate(*args):
    return invoke("estimate", *args)


def refused(*args):
    """One sentence on standard error, exit code 2, and nothing else."""
    result = estimate(*args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    told = " ".join(line.strip() for line in result.stderr.splitlines())
    assert told.count("itrust: ") == 1
    assert "Traceback" not in told
    return told.partition("itrust: ")[2]


@pytest.fixture(scope="module")
def files(folder):
    """All outputs of one command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        args = ["few.csv", "all.parquet", *COLUMNS, *WANTED, "--title", "A <b>town</b>"]
        result = estimate(*args, "--report", "page.html", "--json", "out.json")
    assert result.exit_code == 0, result.output
    return {
        "text": result.stdout,
        "log": result.stderr,
        "page": (folder / "page.html").read_text(),
        "facts": json.loads((folder / "out.json").read_text()),
    }


def in_python():
    rows, labelled = town()
    few = rows.filter(pa.array(labelled))
    on = ["age", "region"]
    return it.tasks.estimate_tasks(
        [it.tasks.parse(task) for task in TASKS],
        it.Population.from_frame(rows, prob="p", on=on),
        it.Sample.from_frame(few, label="y", prob="p", on=on),
    )


def test_the_json_is_what_python_gives(files, folder):
    own = in_python().to_dict()
    made = files["facts"]["provenance"]
    assert files["facts"] == {**own, "provenance": made}
    assert (made["labelled"], made["population"]) == ("few.csv", "all.parquet")
    content = (folder / "all.parquet").read_bytes()
    assert made["population_sha256"] == hashlib.sha256(content).hexdigest()


def test_the_text_says_first_whether_rows_are_alike_and_then_what_to_report(files):
    text = files["text"]
    assert text.index("labelled rows have a lower age") < text.index("share of positives: ")
    for own in files["facts"]["estimates"]:
        assert own["sentence"].split(":")[0] in text
        assert own["plugin_sentence"].split(",")[0] in text
    assert text.count(">  transported") == 2
    assert "who is labelled depends on" in text
    assert "page.html" in files["log"]
    assert "page.html" not in text


def test_every_number_of_the_page_is_a_fact(files):
    found = re.findall(r'<data data-fact="([^"]+)" value="([^"]*)">', files["page"])
    assert len(found) > 30
    for path, value in found:
        fact = files["facts"]
        for step in path.split("."):
            fact = fact[int(step)] if isinstance(fact, list) else fact[step]
        assert json.loads(value) == fact, path
    assert "estimates.1.transported.value" in dict(found)


def test_the_page_is_whole_and_shows_no_markup_of_the_user(files):
    page = files["page"]
    assert "A &lt;b&gt;town&lt;/b&gt;" in page
    assert page.count("<script") == 3  # its own
    assert page.count("script-src &#39;sha256-") == 1
    assert page.count("report this") == 2
    assert "itrust estimate few.csv all.parquet --label y" in page


def test_the_command_on_the_page_gives_the_same_bytes(files, folder, tmp_path):
    words = shlex.split(files["facts"]["provenance"]["command"])[1:]
    again = [tmp_path / "again.html", tmp_path / "again.json"]
    result = invoke(*words, "--report", again[0], "--json", again[1], "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    assert again[0].read_bytes() == (folder / "page.html").read_bytes()
    assert again[1].read_bytes() == (folder / "out.json").read_bytes()


def test_a_population_in_parts_of_another_format_gives_the_same_numbers(files):
    result = estimate("few.csv", "parts", *COLUMNS, *WANTED, "--json", "-", "--quiet")
    facts = json.loads(result.stdout)
    for one, other in zip(facts["estimates"], files["facts"]["estimates"], strict=True):
        assert one["transported"]["value"] == pytest.approx(other["transported"]["value"])
        assert one["best"] == other["best"]


def test_lines_fit_a_narrow_terminal():
    found = in_python()
    for width in (40, 80):
        lines = it.render.as_text(found, width).splitlines()
        assert max(map(len, lines)) <= width
        assert sum(line.split()[:2] == [">", "transported"] for line in lines) == 2


def test_known_probabilities_of_labelling_are_taken_and_all_means_columns_of_both():
    args = ["--label", "y", "--prob", "p", "--on", "all", "--task", "prevalence()"]
    result = estimate("few.csv", "all.parquet", *args, "--selection", "chance", "--json", "-")
    facts = json.loads(result.stdout)
    assert facts["on"] == ["age", "region"]
    (own,) = facts["estimates"]
    assert own["transported"]["assumes"] == "the probabilities of labelling are as given"
    assert "--selection chance" in facts["provenance"]["command"]


def test_numbers_that_tell_of_few_rows_are_withheld():
    tasks = ["prevalence()", "prevalence(age < 24)", "prevalence(age >= 24)"]
    wanted = [word for task in tasks for word in ("--task", task)]
    few = estimate("few.csv", "all.parquet", *COLUMNS, *wanted, "--min-cell", "200", "--json", "-")
    facts = json.loads(few.stdout)
    assert [own["task"] for own in facts["estimates"]] == tasks[::2]
    assert facts["withheld"] == {"min_cell": 200, "total": 1, "tasks": tasks[1:2]}
    assert all(gap["bound"] is None for gap in facts["resemblance"]["gaps"])


def test_a_population_unlike_all_labelled_rows_gets_no_number_and_the_cure(tmp_path):
    rows, _ = town(300)
    moon = rows.set_column(3, "region", pa.array(["moon"] * 300))
    pa.csv.write_csv(moon, tmp_path / "moon.csv")
    args = ["few.csv", tmp_path / "moon.csv", *COLUMNS, "--task", "prevalence()"]
    told = estimate(*args)
    assert told.exit_code == 0
    assert "share of positives: no number to report" in told.stdout
    assert "--support exclude" in " ".join(told.stdout.split())
    assert "not read" in told.stderr  # its labels
    assert "no labelled row resembles any row" in refused(*args, "--support", "exclude", "--quiet")


def test_wrong_input_is_one_sentence(folder, tmp_path):
    everyone = pa.parquet.read_table(folder / "all.parquet")
    pa.csv.write_csv(everyone.slice(0, 0), tmp_path / "empty.csv")
    pa.parquet.write_table(everyone.drop_columns(["age"]), tmp_path / "ageless.parquet")
    pa.parquet.write_table(everyone.drop_columns(["p"]), tmp_path / "dull.parquet")
    lacking = everyone.slice(0, 20).to_pylist()
    lacking[7]["p"] = None
    pa.csv.write_csv(pa.Table.from_pylist(lacking), tmp_path / "lacking.csv")
    own = [*COLUMNS, "--task", "prevalence()"]
    few, whole = "few.csv", "all.parquet"
    cases = [
        ([few, tmp_path / "ageless.parquet", *own], "has no column 'age'"),
        ([few, tmp_path / "dull.parquet", *own], "--prob: "),
        ([few, tmp_path / "lacking.csv", *own], "lacking.csv: 1 row has no --prob"),
        ([few, tmp_path / "empty.csv", *own], "a population needs at least 1 row"),
        ([whole, few, *own], "labelled rows come first"),
        ([few, whole, *own, "--selection", "chanc"], "did you mean 'chance'?"),
        ([few, whole, *own, "--selection", "y"], "another role"),
        ([few, whole, *own, "--where", "chance > 0.1"], "--where: all.parquet has no column"),
        ([few, whole, *own, "--population-weights", "w"], "--population-weights: all.parquet"),
        ([few, whole, *own, "--prob", "age"], "one model is used at a time"),
        ([few, whole, *own, "--task", "mean(p)"], "no covariate"),
        ([few, whole, *COLUMNS], "name the number that you want with --task"),
        (["-", "-", *own], "standard input can be read once"),
        ([few, whole, *own, "--report", "all.parquet"], "would overwrite"),
        ([few, whole, *own, "--alpha", "2"], "--alpha"),
        ([few, *own], "Missing argument 'POPULATION'"),
    ]
    for args, told in cases:
        assert told in refused(*args, "--quiet"), args


CLASSES = ["--label", "y", "--prob", "p_*", "--on", "age,region"]
NAMES = ("win", "tie", "loss")


@pytest.fixture(scope="module")
def games(folder):
    """Games with three outcomes; in the south many that are called won were tied."""
    rng = np.random.default_rng(4)
    n = 1_500
    age, region = rng.normal(50, 12, n), rng.choice(["north", "south"], n)
    height = np.column_stack([0.03 * (age - 50), -0.02 * (age - 50), np.zeros(n)])
    p = np.exp(height) / np.exp(height).sum(axis=1, keepdims=True)
    moved = 0.6 * p[:, 0] * (region == "south")
    true = p + np.column_stack([-moved, moved, 0 * moved])
    codes = (rng.random(n)[:, None] > true.cumsum(axis=1)).sum(axis=1)
    covariates = {"age": age, "region": region}
    rows = pa.table(
        {
            "y": np.array(NAMES)[codes],
            **{f"p_{name}": p[:, k] for k, name in enumerate(NAMES)},
            **covariates,
            "income": rng.normal(size=n),
        }
    )
    chosen = pa.array(rng.random(n) < 0.8 / (1 + np.exp((age - 50) / 12)))
    pa.csv.write_csv(rows.filter(chosen), folder / "games.csv")
    pa.csv.write_csv(rows.drop_columns(["y", "income"]), folder / "season.csv")
    return rows, chosen, float((codes[region == "south"] == 1).mean())


def test_several_classes_are_what_python_gives(games):
    rows, chosen, truth = games
    wanted = ['prevalence("tie" | region == "south")', 'prevalence("win") - prevalence("loss")']
    result = estimate(
        "games.csv", "season.csv", *CLASSES, *(w for t in wanted for w in ("--task", t)),
        "--json", "games.json", "--report", "games.html", "--quiet",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    with open("games.json") as file:
        told = json.load(file)
    few = rows.filter(chosen)
    prob = {name: f"p_{name}" for name in NAMES}
    sample = it.Sample.from_frame(few, label="y", prob=prob, on=["age", "region"])
    everyone = it.Population.from_frame(rows, prob=prob, on=["age", "region"])
    found = it.tasks.estimate_tasks(wanted, everyone, sample)
    for own, same in zip(told["estimates"], found, strict=True):
        for way in ("plugin", "prediction_powered", "transported", "labelled"):
            assert own[way]["value"] == pytest.approx(getattr(same, way).value, rel=1e-9)
            assert own[way]["upper"] == pytest.approx(getattr(same, way).upper, rel=1e-9)
    tie = told["estimates"][0]
    assert tie["best"] == "transported"
    assert tie["transported"]["lower"] < truth < tie["transported"]["upper"]
    assert not tie["plugin"]["lower"] < truth < tie["plugin"]["upper"]
    assert "share of y = tie where region = south" in " ".join(result.stdout.split())
    assert any("P(" in one["name"] for one in told["resemblance"]["compared"])
    with open("games.html") as file:
        page = file.read()
    assert "share of y = tie" in page


def test_one_number_that_is_refused_leaves_the_others(games):
    del games
    wanted = [
        'mean(income | y == "tie")',
        'prevalence("tie")',
        'mean(age | y == "win" and region == "west")',
        "prevalence()",
    ]
    words = [word for task in wanted for word in ("--task", task)]
    args = ["games.csv", "season.csv", *CLASSES, *words]
    result = estimate(*args, "--json", "some.json", "--report", "some.html")
    assert result.exit_code == 0, result.output
    assert "no estimate for 3 of 4 numbers" in " ".join(result.stderr.split())
    with open("some.json") as file:
        told = json.load(file)
    assert [own["task"] for own in told["estimates"]] == ['prevalence("tie")']
    assert [own["task"] for own in told["refused"]] == [wanted[0], wanted[2], wanted[3]]
    reasons = [own["reason"] for own in told["refused"]]
    for reason, part in zip(
        reasons, ("no column 'income'", "no level 'west'", "class"), strict=True
    ):
        assert part in reason
    text = " ".join(result.stdout.split())
    with open("some.html") as file:
        page = file.read()
    assert text.count("no estimate") == 3
    assert page.count("<span>No estimate</span>") == 3
    alone = estimate(*args[:-4], *args[-2:])  # without the one that has no level
    assert alone.exit_code == 0
    assert "no column 'income'" in refused("games.csv", "season.csv", *CLASSES, *words[:2])


def test_one_number_of_two_labels_that_is_refused_leaves_the_others():
    result = estimate(
        "few.csv", "all.parquet", *COLUMNS, "--task", "prevalence()",
        "--task", 'mean(age | region == "nowhere")', "--task", "mean(chance)", "--json", "-",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert [own["task"] for own in told["estimates"]] == ["prevalence()"]
    assert "no level 'nowhere'" in told["refused"][0]["reason"]
    assert "has no column 'chance'" in told["refused"][1]["reason"]


def test_wrong_input_of_several_classes_is_one_sentence(games, tmp_path):
    rows, _, _ = games
    everyone = rows.drop_columns(["y", "income"])
    pa.csv.write_csv(everyone.drop_columns(["p_tie"]), tmp_path / "two.csv")
    odd = everyone.slice(0, 30).to_pylist()
    odd[4]["p_win"] = 0.99
    pa.csv.write_csv(pa.Table.from_pylist(odd), tmp_path / "odd.csv")
    own = [*CLASSES, "--task", 'prevalence("tie")']
    gap = [*CLASSES, "--task", 'prevalence("tie") - prevalence("win")', "--support", "exclude"]
    cases = [
        (["games.csv", tmp_path / "two.csv", *own], "has no column 'p_tie'"),
        (["games.csv", tmp_path / "odd.csv", *own], "must sum to 1; those of line 6"),
        (["games.csv", "season.csv", *gap], "estimate it with --support refuse"),
        (["games.csv", "season.csv", *own, "--positive", "tie"], "--positive is for two labels"),
    ]
    for args, told in cases:
        assert told in refused(*args, "--quiet"), args
