"""How labelled rows differ, in words: the direction is that of the test."""

import numpy as np
import pytest

import itrust as it
from itrust.balance import FeatureKind, RowDifference
from itrust.render.text.balance import difference_words, percent


def words(kind, here, there, z, **more):
    told = {"name": "age", "level": None, "other": None, "pvalue": 0.01, "rows": 99} | more
    return difference_words(
        RowDifference(kind=FeatureKind(kind), labelled=here, population=there, z=z, **told)
    )


@pytest.mark.parametrize(
    ("kind", "here", "there", "z", "said"),
    [
        ("trend", 38.2, 51.9, -4.0, "labelled rows have a lower age: mean 38.2 against 51.9"),
        ("trend", 38.2, 51.9, 4.0, "labelled rows have a higher age, by ranks"),
        ("trend", 38.2, 38.2, -4.0, "labelled rows have a lower age, by ranks"),
        ("trend", float("nan"), 38.2, -4.0, "labelled rows have a lower age, by ranks"),
        ("quadratic", 3, 4, -4.0, "labelled rows are less spread in age: standard deviation 3 a"),
        ("quadratic", 3, 4, 4.0, "labelled rows are more spread in age, by ranks"),
        ("cubic", 3, 4, 4.0, "age has another shape among labelled rows"),
        ("missing", 0.2, 0.004, 4.0, "labelled rows more often lack age: 20 % against 0.4 %"),
        ("missing", 0.2, 0.004, -4.0, "labelled rows less often lack age"),
    ],
)
def test_the_direction_is_that_of_the_test_and_numbers_never_contradict_it(
    kind, here, there, z, said
):
    told = words(kind, here, there, z)
    assert told.startswith(said)
    assert any(sign.isdigit() for sign in told) is any(sign.isdigit() for sign in said)


def test_rare_levels_have_the_digits_that_tell_them_apart():
    told = words("level", 0.0012, 0.0038, -5.0, name="job", level="judge")
    assert told == "labelled rows are less often job = judge: 0.12 % against 0.38 %"
    assert "12.3 % against 12.5 %" in words("level", 0.1232, 0.1249, -5.0, level="a")
    assert percent(1e-9) == "less than 0.001 %"
    assert percent(0.999999) == percent(1) == "100 %"


def test_a_few_huge_values_do_not_turn_the_sentence_around():
    """Labelled rows lie farther out, but for a few rows of the population: a cubic."""
    rng = np.random.default_rng(0)
    income = rng.normal(30, 5, 900)
    income[:5] = 300
    few = it.Sample(np.arange(300) % 2, rng.random(300), {"income": rng.normal(30, 8, 300)})
    everyone = it.Population(rng.random(900), {"income": income})
    (told,) = it.resemblance(few, everyone, draws=99, rng=0).differences
    assert told.labelled < told.population
    assert difference_words(told) == "income has another shape among labelled rows"
