"""Are labelled rows like the population? Level, power, words, gaps, files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import itrust as it
from itrust.render import resemblance_warnings
from oracles import plausible


def drawn(n, seed, **shift):
    rng = np.random.default_rng(seed)
    x = {
        "age": rng.normal(50 + shift.get("age", 0), 10, n),
        "region": rng.choice(
            ["north", "south"], n, p=[0.7 - shift.get("south", 0), 0.3 + shift.get("south", 0)]
        ),
    }
    return x, rng.random(n)


def pair(n=150, size=400, seed=0, **shift):
    (x, p), (there, q) = drawn(n, [seed, 1], **shift), drawn(size, [seed, 2])
    y = np.arange(n) % 2
    return it.Sample(y, p, x), it.Population(q, there)


def test_random_rows_are_said_to_differ_as_often_as_alpha_says():
    runs = 100
    found = [
        it.resemblance(*pair(40, 80, seed), draws=19, rng=seed, alpha=0.1) for seed in range(runs)
    ]
    assert plausible(runs - sum(one.differs for one in found), runs, 0.9)


@pytest.mark.parametrize(
    ("shift", "name", "words"),
    [
        ({"age": -8}, "age", "labelled rows have a lower age: mean 4"),
        ({"south": 0.4}, "region", "labelled rows are "),
    ],
)
def test_a_difference_is_found_and_named(shift, name, words):
    found = it.resemblance(*pair(**shift), draws=199, rng=0)
    assert found.differs
    assert found.pvalue == 1 / 200
    assert found.differences[0].name == name
    assert words in str(found)
    assert f"'{name}'" in resemblance_warnings(found)[0]
    assert found.effective < 140
    assert "differ" in found._repr_html_()
    assert next(row["name"] for row in found.to_arrow().to_pylist()) == name
    assert found.to_dict()["differences"][0]["pvalue"] <= 0.05


def test_labels_are_not_looked_at():
    labelled, population = pair(age=-3)
    flipped = it.Sample(
        1 - labelled.y, labelled.p, {c.name: c.values for c in labelled.columns[:1]}
    )
    kept = labelled.only("age")
    facts = [it.resemblance(one, population, draws=99, rng=0).to_dict() for one in (kept, flipped)]
    assert facts[0] == facts[1]


def test_a_level_and_a_range_without_labelled_rows_are_named():
    labelled, _ = pair()
    x, p = drawn(400, 5)
    x["region"] = np.where(np.arange(400) < 40, "island", x["region"])
    x["age"][40:60] = 120.0
    found = it.resemblance(labelled, it.Population(p, x), draws=99, rng=0)
    told = {(gap.name, gap.side): gap.share for gap in found.gaps}
    assert told["region", "level"] == 0.1
    assert told["age", "above"] >= 0.05
    assert 0.15 <= found.unlike < 0.2
    assert "region = island" in str(found)


def test_every_part_of_a_random_population_is_resembled():
    found = it.resemblance(*pair(500, 2_000), draws=19, rng=0)
    assert found.unlike < 0.01
    assert found.effective > 450


def test_weights_that_make_rows_alike_make_them_so():
    rng = np.random.default_rng(0)
    age = rng.choice([20.0, 60.0], 600, p=[0.8, 0.2])
    weights = np.where(age == 20, 0.25, 1.0)  # half and half, as in the population
    population = it.Population(np.full(800, 0.5), {"age": rng.choice([20.0, 60.0], 800)})
    plain = it.Sample(rng.integers(0, 2, 600), np.full(600, 0.5), {"age": age})
    weighted = it.Sample(plain.y, plain.p, {"age": age}, weights=weights)
    assert it.resemblance(plain, population, draws=199, rng=0).differs
    found = it.resemblance(weighted, population, draws=199, rng=0)
    assert found.pvalue > 0.05
    assert "weights" in found.notes[0]
    assert found.tested[0] < 400


def test_of_every_cluster_one_row_is_tested():
    (x, p), (there, q) = drawn(60, 1), drawn(300, 2)
    five = np.repeat(np.arange(60), 5)
    copies = it.Sample(
        np.arange(300) % 2, p[five], {k: v[five] for k, v in x.items()}, cluster=five
    )
    found = it.resemblance(copies, it.Population(q, there), draws=99, rng=0)
    assert found.tested[0] == 60
    assert "cluster" in found.notes[0]


def test_clusters_whose_size_goes_with_a_covariate_are_no_difference():
    """Households of 1 to 6 people, drawn at random; the large ones are young."""

    def people(households, seed):
        rng = np.random.default_rng(seed)
        size = rng.integers(1, 7, households)
        home = np.repeat(np.arange(households), size)
        age = 60 - 5 * size[home] + rng.normal(0, 5, home.size)
        return home, {"age": age}, rng.random(home.size)

    runs, differs = 40, 0
    for seed in range(runs):
        home, x, p = people(60, [seed, 1])
        _, there, q = people(150, [seed, 2])
        few = it.Sample(np.arange(p.size) % 2, p, x, cluster=home)
        differs += it.resemblance(few, it.Population(q, there), draws=19, alpha=0.1).differs
    assert plausible(runs - differs, runs, 0.9)


def test_results_do_not_depend_on_the_order_of_many_covariates():
    """Rows chosen by the product of two of fourteen covariates: the first two, or the last."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3_000, 14))
    pvalues, effective = [], []
    for order in (np.arange(14), np.arange(14)[::-1]):
        own = x[:, order]
        chosen = np.flatnonzero(
            rng.random(3_000) < 0.3 * np.exp(0.5 * np.clip(x[:, 0] * x[:, 1], -2, 2))
        )
        few = it.Sample(np.arange(chosen.size) % 2, np.full(chosen.size, 0.5), own[chosen])
        found = it.resemblance(few, it.Population(np.full(3_000, 0.5), own), draws=99, rng=0)
        pvalues.append(found.pvalue)
        effective.append(found.effective / chosen.size)
    assert max(pvalues) <= 0.02
    assert abs(effective[0] - effective[1]) < 0.05


def test_rows_of_files_are_read_as_those_in_memory(tmp_path):
    labelled, population = pair(age=-4)
    x, q = drawn(400, [0, 2])
    table = pa.table({"p": q, **x})
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    files = it.Population.scan(tmp_path / "rows.parquet", prob="p", on=["age", "region"])
    found = it.resemblance(labelled, files, draws=99, rng=0)
    assert found.to_dict() == it.resemblance(labelled, population, draws=99, rng=0).to_dict()
    assert files.load().n == 400


def test_too_few_rows_and_other_things_are_refused():
    labelled, population = pair(4)
    with pytest.raises(it.InputError, match="10 are needed"):
        it.resemblance(labelled, population)
    with pytest.raises(it.InputError, match="must be a Population"):
        it.resemblance(labelled, {"age": [1, 2]})


def test_the_picture_has_a_row_for_every_covariate():
    display = it.resemblance(*pair(age=-4), draws=19, rng=0).plot()
    assert len(display.ax_.get_yticklabels()) == 3


@pytest.mark.parametrize("ones", [3, 12])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_mean_that_counts_few_rows_is_withheld(ones, is_weighted):
    """Numbers of two values are levels; weights make few rows no more than they are."""
    rng = np.random.default_rng(0)
    n = 1_500
    flag = (np.arange(n) < ones).astype(float)
    there = (np.arange(2_000) < 1_000).astype(float)
    p, q, w = rng.random(n), rng.random(2_000), np.where(flag == 1, 20.0, 1.0)
    for here, all_ in (
        (flag, there),
        (np.where(flag == 1, "yes", "no"), np.where(there == 1, "yes", "no")),
        (np.where(flag == 1, 7.5, np.nan), np.where(there == 1, 7.5, 7.6)),
    ):
        few = it.Sample(
            np.arange(n) % 2, p, {"flag": here}, weights=w if is_weighted else None, missing="level"
        )
        found = it.resemblance(few, it.Population(q, {"flag": all_}), draws=19, rng=0)
        assert {one.name: one.rows for one in found.compared} == {"flag": ones, "p": n}
        names = [one.name for one in found.disclosed(10).compared]
        assert ("flag" in names) is (ones >= 10)


def test_what_all_labelled_rows_have_is_told():
    rng = np.random.default_rng(0)
    few = it.Sample(np.arange(100) % 2, rng.random(100), {"region": ["isle"] * 100})
    everyone = it.Population(rng.random(200), {"region": ["isle", "land"] * 100})
    found = it.resemblance(few, everyone, draws=19, rng=0).disclosed(10)
    assert found.differences[0].name == "region"
