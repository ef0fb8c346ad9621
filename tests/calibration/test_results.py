import dataclasses

import numpy as np
import pytest

import itrust as it
from itrust import Sample, nulls
from itrust.calibration import CalibrationResult, Dictionary
from itrust.kernels import LocalKernel


def result(**changes):
    facts = dict(
        statistic=0.25,
        score=0.25,
        null_distribution=np.array([0.1, 0.2, 0.25, 0.3]),
        statistic_draws=np.array([0.1, 0.2, 0.25, 0.3]),
        tail=None,
        findings=(),
        checks=1,
        dictionary=Dictionary.of_one(LocalKernel(), ("age",)),
        is_adaptive=False,
        n=50,
        draws=4,
        names=("age",),
        kernel=LocalKernel(),
        null=nulls.Bernoulli(),
        seed=0,
        engine="tiles of 512",
        certificate=None,
        elapsed=0.1,
        weighted=False,
        clusters=None,
        impossible=0,
        assumption_warnings=(),
        notes=(),
    )
    return CalibrationResult(**{**facts, **changes})


def test_add_one_and_strict_pvalues_by_hand():
    r = result()
    assert r.pvalue == 3 / 5  # 0.25 is a tie, 0.3 is larger, and the data count too
    assert r.exceedance == 1 / 4  # Algorithm 1: strictly larger only


def test_a_tie_up_to_rounding_is_a_tie():
    assert result(score=0.25 * (1 + 1e-11)).at_least == 2
    assert result(score=0.25 * (1 + 1e-7)).at_least == 1


def test_a_formula_has_no_exceedance():
    with pytest.raises(AttributeError, match="formula instead of draws"):
        _ = result(null_distribution=None, tail=0.2, null=nulls.Hoeffding()).exceedance


def test_facts_cannot_be_changed():
    r = it.klce_test(Sample([0, 1, 1], [0.2, 0.4, 0.7]), draws=9, rng=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        r.statistic = 0
    with pytest.raises(ValueError, match="read-only"):
        r.null_distribution[0] = 0


def test_print_has_what_a_reader_needs_in_88_columns():
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
    assert max(map(len, text.splitlines())) <= 88


def test_print_tells_of_impossible_labels():
    s = Sample([1, 0, 1, 1], [0.0, 0.3, 0.5, 0.6])
    r = it.klce_test(s, draws=9, rng=0)
    assert r.impossible == 1
    assert "! 1 row with a label that the model called impossible" in str(r)
    assert "refutes the null" in " ".join(str(r).split())


def test_print_says_how_rows_were_counted():
    assert "rows            50, weighted, 7 clusters" in str(result(weighted=True, clusters=7))


def test_print_without_covariates_asks_about_calibration():
    assert "Is the model calibrated?" in str(result(names=()))


def test_assumption_warnings_take_the_word_exact_back():
    text = " ".join(str(result(assumption_warnings=("rows look like twins",))).split())
    assert "! rows look like twins" in text
    assert "exact if its assumptions hold, see !" in text


def test_a_null_that_cannot_vary_is_an_alarm():
    still = result(score=0.0, null_distribution=np.zeros(4))
    assert "cannot detect anything" in " ".join(still.warnings)
    assert not result().warnings


def test_kernels_are_described_width_by_width():
    s = it.simulate.survey(100, rng=0).sample
    text = " ".join(str(it.klce_test(s, LocalKernel(), draws=9, rng=0)).split())
    assert " for income, " in text
    assert "; Delta() on region" in text


def test_repr_is_one_line():
    assert repr(result()) == "<CalibrationResult: statistic 0.25, p 0.6, n 50>"


@pytest.mark.parametrize(
    "null", [nulls.Bernoulli(), nulls.Spectral(), nulls.Hoeffding(), nulls.Permutation()]
)
def test_one_kernel_is_a_dictionary_of_one_check(null):
    s = it.simulate.survey(120, rng=0).sample
    r = it.klce_test(s, LocalKernel(), null, draws=19, rng=0)
    (finding,) = r.findings
    assert (finding.pvalue, finding.unadjusted_pvalue, finding.score) == (
        r.pvalue,
        r.pvalue,
        r.statistic,
    )
    assert r.score == r.statistic
    assert bool(r.evidence(alpha=0.05)) == (r.pvalue <= 0.05)
    assert len(r.dictionary.entries) == 1
    if r.null_distribution is not None:
        np.testing.assert_array_equal(r.null_distribution, r.statistic_draws)
    assert r.to_dict()["findings"][0]["pvalue"] == r.pvalue


def test_a_result_is_a_table_of_findings():
    r = it.klce_test(it.simulate.survey(300, rng=0).sample, draws=19, rng=0)
    rows = r.to_arrow()
    assert rows["name"].to_pylist() == [finding.name for finding in r.findings]
    assert rows["sentence"][0].as_py() == str(r.findings[0])
    assert "p-value" in r._repr_html_()
