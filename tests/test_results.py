import dataclasses

import numpy as np
import pytest

import itrust as it
from itrust import Sample, nulls
from itrust.kernels import LocalKernel
from itrust.results import KLCEResult


def result(**changes):
    facts = dict(
        statistic=0.25,
        null_distribution=np.array([0.1, 0.2, 0.25, 0.3]),
        tail=None,
        n=50,
        draws=4,
        names=("age",),
        kernel=LocalKernel(),
        null=nulls.Bernoulli(),
        seed=0,
        engine="tiles of 512",
        elapsed=0.1,
        impossible=0,
        notes=(),
    )
    return KLCEResult(**{**facts, **changes})


def test_add_one_and_strict_pvalues_by_hand():
    r = result()
    assert r.pvalue == 3 / 5  # 0.25 is a tie, 0.3 is larger, and the data count too
    assert r.exceedance == 1 / 4  # Algorithm 1: strictly larger only


def test_a_tie_up_to_rounding_is_a_tie():
    assert result(statistic=0.25 * (1 + 1e-11)).at_least == 2
    assert result(statistic=0.25 * (1 + 1e-7)).at_least == 1


def test_a_formula_has_no_exceedance():
    with pytest.raises(AttributeError, match="formula instead of draws"):
        _ = result(null_distribution=None, tail=0.2, null=nulls.Hoeffding()).exceedance


def test_facts_cannot_be_changed():
    r = it.klce_test(Sample([0, 1, 1], [0.2, 0.4, 0.7]), draws=9, rng=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        r.statistic = 0
    with pytest.raises(ValueError, match="read-only"):
        r.null_distribution[0] = 0


def test_print_has_what_a_reader_needs_in_eighty_columns():
    s = it.simulate.survey(200, rng=0).sample
    text = str(it.klce_test(s, draws=99, rng=7))
    for part in (
        "KLCE^2",
        "may be negative",
        "exact",
        "of 99 draws",
        "seed 7",
        "income, age, region",
    ):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80


def test_print_tells_of_impossible_labels():
    s = Sample([1, 0, 1, 1], [0.0, 0.3, 0.5, 0.6])
    r = it.klce_test(s, draws=9, rng=0)
    assert r.impossible == 1
    assert "! 1 row has a label that the model called impossible" in str(r)
    assert "refutes the null" in str(r)


def test_repr_is_one_line():
    assert repr(result()) == "<KLCEResult: statistic 0.25, p 0.6, n 50>"
