"""The checks of a watch: as many covariates as possible have one of their own."""

import numpy as np

import itrust as it
from itrust.watch import watch_report
from itrust.watch.components import settled_panel


def wide(columns, n=60, constant=0):
    rng = np.random.default_rng(0)
    x = {f"x{k}": rng.normal(size=n) for k in range(columns)}
    x |= {f"c{k}": np.ones(n) for k in range(constant)}
    return it.Sample(np.arange(n) % 2, rng.uniform(0.2, 0.8, n), x)


def test_every_covariate_has_a_check_before_any_has_several():
    checks = settled_panel(wide(60).pilot(60), most=80).checks
    assert len(checks) == 80
    assert sum(check.family == "trends" for check in checks) == 60
    assert {"curved", "parts", "contrasts"} <= {check.family for check in checks}
    fewer = settled_panel(wide(60).pilot(60), most=40).checks
    assert len({check.covariates for check in fewer if check.covariates}) == 40 - 3


def test_covariates_without_a_check_of_their_own_are_told():
    watch = it.Watch.start(wide(4, constant=2))
    assert watch.unchecked == ("c0", "c1")
    assert watch_report(watch).to_dict()["unchecked"] == ["c0", "c1"]
    told = " ".join(str(watch).split())
    assert "vary too little in the reference: 2 of 6 ('c0', 'c1')" in told


def test_the_largest_families_are_cut_to_the_same_number():
    """As leaving out the last check of the largest family, one at a time, does."""
    panel = settled_panel(wide(8, 300).pilot(300), most=90)
    counts = {}
    for check in panel.checks:
        counts[check.family] = counts.get(check.family, 0) + 1
    assert len(panel.checks) == 90
    assert (counts["overall"], counts["prediction"], counts["trends"]) == (1, 2, 8)
    assert counts["curved"] == 16
    assert {counts["contrasts"], counts["parts"]} <= {31, 32}
