"""An audit says whether its rows are like the population, and withholds what few rows tell."""

import numpy as np

import itrust as it


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
