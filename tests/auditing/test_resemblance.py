"""An audit says whether its rows are like the population, and withholds what few rows tell."""

import json
import re
from html import unescape

import numpy as np

import itrust as it
from itrust.render import resemblance_warnings
from itrust.render.page import page
from itrust.render.text.balance import difference_words


def test_an_audit_warns_where_rows_are_unlike_the_population():
    town = it.simulate.survey(600, rng=0).sample
    age = town.column("age").values
    young = town.only("age").take(np.flatnonzero(age < 60))
    population = it.Population(town.p, {"age": age})
    found = it.audit(young, draws=79, rng=0, charts=False, population=population)
    assert found.resemblance.differs
    assert "The population of 600 rows" in str(found)
    assert "labelled rows have a lower age" in str(found)
    assert found.to_dict()["resemblance"]["gaps"][0]["bound"] == 59
    assert found.disclosed(10).to_dict()["resemblance"]["gaps"][0]["bound"] is None
    assert it.audit(young, draws=79, rng=0, charts=False).to_dict()["resemblance"] is None


def test_the_page_of_an_audit_says_what_the_terminal_says_of_the_population():
    rng = np.random.default_rng(0)
    town = it.simulate.survey(700, rng=0).sample
    age, flag = town.column("age").values, (np.arange(700) % 200 == 0).astype(float)
    sample = it.Sample(town.y, town.p, {"age": age, "flag": flag})
    young = sample.take(np.flatnonzero(age < 60))
    there = {"age": age, "flag": (rng.random(700) < 0.4).astype(float)}
    found = it.audit(young, draws=79, rng=0, charts=False, population=it.Population(town.p, there))
    shown = found.disclosed(10)
    looked = shown.resemblance
    pages = page(shown), page(shown.to_dict()), page(json.loads(json.dumps(shown.to_dict())))
    assert pages[0] == pages[1] == pages[2]
    told = " ".join(re.sub("<[^>]*>", "", pages[0]).split())
    assert "Are these rows like the population of 700 rows?" in told
    for text in (*resemblance_warnings(looked), *map(difference_words, looked.compared)):
        assert text in unescape(told)
    facts = dict(re.findall(r'data-fact="(resemblance[^"]*)" value="([^"]*)"', pages[0]))
    assert float(facts["resemblance.pvalue"]) == looked.pvalue
    assert float(facts["resemblance.compared.0.z"]) == looked.compared[0].z
    # Four labelled rows have the flag: neither page nor JSON tell of them, and that is counted.
    assert "flag" in {one.name for one in found.resemblance.compared}
    assert "in flag" not in told
    assert "a lower flag" not in told
    assert "flag" not in json.dumps(shown.to_dict()["resemblance"])
    assert "a lower flag" in page(found)


def test_a_page_without_a_population_says_nothing_of_one():
    young = it.simulate.survey(300, rng=0).sample.only("age")
    text = page(it.audit(young, draws=79, rng=0, charts=False))
    assert 'id="population"' not in text
