"""What `make paper` kept: whole, as printed where that can be, and the page made from it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest, fisher_exact

import figure3
import figure4
import kit
import lcb
import paper
import table1
import type1

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "studies" / "pages" / "paper"
BY_NAME = {study.name: study for study in paper.STUDIES}


def kept(name):
    return json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", BY_NAME)
def test_kept_results_are_of_full_size_and_complete(name):
    record = kept(name)
    assert record["sizes"] == json.loads(kit.as_json(BY_NAME[name].full))
    assert all(line["papers_way"] or line["exact"] for line in record["lines"])
    assert (KEPT / f"{name}.svg").exists()
    assert (KEPT / f"{name}.png").exists()


def test_texts_and_page_follow_from_the_kept_results():
    """Nothing on the page was written by hand: all of it comes back from the JSON files."""
    for study in paper.STUDIES:
        record = kept(study.name)
        item = study.describe(record["results"], record["sizes"])
        assert json.loads(kit.as_json([vars(line) for line in item.lines])) == record["lines"]
        assert item.finding == record["finding"]
    items = paper.records(KEPT)
    assert paper.markdown(items) == (ROOT / "studies" / "pages" / "paper.md").read_text(
        encoding="utf-8"
    )


def test_the_page_needs_no_network_and_shows_every_item():
    page = paper.html(paper.records(KEPT), KEPT)
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    for study in paper.STUDIES:
        assert f'<section id="{study.name}">' in page


def test_names_are_escaped_on_the_page():
    items = paper.records(KEPT)
    items[0]["finding"] = "<script>alert(1)</script>"
    assert "<script>" not in paper.html(items, KEPT)


def test_figure_1_and_2_agree_with_the_published_code():
    models = kept("figure1")["results"]["models"]
    ages = {name: np.mean(values["average age of owners"]) for name, values in models.items()}
    assert ages["Model 1, without age"] == pytest.approx(53.26, abs=0.04)
    assert ages["Model 2, with age"] == pytest.approx(56.14, abs=0.04)
    gaps = {
        name: np.mean(values["gap in ownership"])
        for name, values in kept("figure2")["results"]["models"].items()
    }
    assert gaps["forest"] == pytest.approx(0.1958, abs=0.004)
    assert gaps["logistic, without race"] == pytest.approx(0.1328, abs=0.004)
    assert gaps["logistic, with race"] == pytest.approx(0.2406, abs=0.004)


def test_figure_3_comes_back_with_the_published_null():
    """Ours and the printed shares, of 1,000 runs, are compared as two samples."""
    record = kept("figure3")
    runs = record["sizes"]["runs"]
    for n, printed in figure3.PRINTED.items():
        for d, error in printed.items():
            ours, theirs = (
                round(record["results"][n][d][figure3.PERMUTED] * runs),
                round(1_000 * error),
            )
            table = [[ours, runs - ours], [theirs, 1_000 - theirs]]
            assert fisher_exact(table).pvalue > 1e-3, (n, d)


def test_figure_4_comes_back_to_the_printed_digit():
    methods = kept("figure4")["results"]["methods"]
    for name, (brier, ece, mce, published, equation) in figure4.PRINTED.items():
        found = methods[name]
        for key, printed, digits in (
            ("Brier score", brier, 3),
            ("ECE", ece, 3),
            ("MCE", mce, 3),
            ("published statistic", published, 4),
        ):
            assert kit.decimal(found[key], digits) == printed, (name, key)
        assert found[figure4.EQUATION] == pytest.approx(float(equation), rel=2e-3)
        assert found["p permuted"] == 1 / kept("figure4")["sizes"]["draws"]


def test_the_exact_nulls_of_the_type_one_figure_hold_their_level():
    results = kept("type1")["results"]
    cells = [*results["by width"].values(), *results["by rows"].values()]
    for name in ("Bernoulli (exact)", type1.ADAPTIVE):
        for cell in cells:
            if name in cell:
                hits = round(cell[name] * results["runs"])
                assert binomtest(hits, results["runs"], 0.05).pvalue > 1e-3


def test_all_24_numbers_of_the_lcb_figure_come_back():
    cubics = kept("lcb")["results"]["cubics"]["the picture's kernel"]
    for group, printed in lcb.PRINTED.items():
        ours = [cubics[group]["cubic at"][str(age)] for age in lcb.AGES]
        assert ours == pytest.approx(printed, abs=6e-4)


def test_table_1_comes_back_where_it_is_deterministic():
    models = kept("table1")["results"]["models"]
    assert kit.decimal(models["constant"]["none"]["published statistic"], 6) == ".002815"
    for model in ("constant", "logistic"):
        for variant in ("MC", "PMC"):
            printed = float(table1.PRINTED[model][variant])
            assert models[model][variant]["published statistic"] == pytest.approx(printed, rel=0.06)


def test_table_2_brier_scores_are_those_of_the_paper_within_seed_noise():
    sets = kept("table2")["results"]["sets"]
    assert sets["Home"]["XE"]["Brier score"] == pytest.approx([0.1694] * 3, abs=0.001)
    assert sets["Adult"]["XE"]["Brier score"] == pytest.approx([0.1076] * 3, abs=0.002)
    assert sets["Heart"]["XE"]["Brier score"] == pytest.approx([0.116] * 3, abs=0.002)
