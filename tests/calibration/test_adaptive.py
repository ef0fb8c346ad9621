"""The adaptive test: level, power, the evidence it finds, and the same answer on every path."""

import json
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import itrust as it
from itrust import Sample, nulls, simulate
from itrust.calibration import Shape, prepared_test
from itrust.engines import Factor, Tiles
from itrust.kernels import LocalKernel
from oracles import holds_level, plausible


def rejects(design, run, draws=99):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", it.AssumptionWarning)
        return it.klce_test(design(rng=run).sample, draws=draws, rng=run).pvalue <= 0.05


def rejections(design, runs, draws=99):
    return sum(rejects(design, run, draws) for run in range(runs))


@pytest.mark.parametrize(
    ("design", "runs"),
    [
        pytest.param(lambda rng: simulate.tight_clusters(250, rng), 120, id="tight clusters"),
        pytest.param(lambda rng: simulate.rare_events(250, rng), 120, id="rare events"),
        pytest.param(lambda rng: simulate.weighted_rows(150, rng), 60, id="weights from x"),
        pytest.param(lambda rng: simulate.papers_level_design(30, rng), 100, id="thirty rows"),
        pytest.param(lambda rng: simulate.normal_covariates(100, 20, rng), 25, id="20 covariates"),
    ],
)
@pytest.mark.slow
def test_the_level_is_plausible(design, runs):
    """A few runs of slow designs; `make study NAME=power` has many."""
    assert plausible(rejections(design, runs), runs, doubt=0.02)


@pytest.mark.slow
def test_the_level_is_exact():
    assert holds_level(lambda run: rejects(simulate.papers_level_design, run))


@pytest.mark.slow
def test_fifty_covariates_are_no_obstacle():
    """Type-II error of the paper's design; its own test has .53 and .15 here."""
    runs = 8
    missed = runs - rejections(lambda rng: simulate.papers_power_design(500, 50, rng), runs)
    assert missed <= 3  # a true rate of .10 gives more with probability .005, .53 with .76
    assert rejections(lambda rng: simulate.papers_power_design(1000, 50, rng), 2) == 2


@pytest.mark.parametrize("name", simulate.ALTERNATIVES)
@pytest.mark.slow
def test_local_alternatives_are_seen(name):
    runs = 6
    seen = rejections(lambda rng: simulate.local_alternative(name, rng=rng), runs)
    assert seen >= 4


def test_the_score_is_the_largest_of_the_entries_and_so_is_its_pvalue():
    r = it.klce_test(simulate.survey(500, rng=1).sample, draws=199, rng=0)
    assert r.score == max(f.score for f in r.findings)
    assert r.pvalue <= min(f.pvalue for f in r.findings)
    assert all(f.pvalue >= f.unadjusted_pvalue - 1e-12 for f in r.findings)
    assert [f.score for f in r.findings] == sorted((f.score for f in r.findings), reverse=True)
    assert sum(f.weight for f in r.findings) == pytest.approx(1)
    assert r.null_distribution.size == r.statistic_draws.size == 199


def test_the_statistic_is_that_of_the_default_kernel():
    s = simulate.survey(400, rng=2).sample
    adaptive = it.klce_test(s, draws=99, rng=0)
    alone = it.klce_test(s, LocalKernel(), draws=99, rng=0)
    assert adaptive.statistic == pytest.approx(alone.statistic, rel=1e-9)
    np.testing.assert_allclose(adaptive.statistic_draws, alone.null_distribution, rtol=1e-7)


def naive_scores(sample, prepared, residuals):
    """Standardised single-feature values by a plain loop."""
    bank = prepared.bank
    f = bank.matrix(sample.points)
    w, v = sample.weights_or_ones / bank.unit, sample.p * (1 - sample.p)
    found = {}
    for entry, single in zip(bank.entries, bank.single, strict=True):
        if single >= 0:
            top = np.sum(w * f[single] * residuals)
            seen = np.sum((w * f[single] * residuals) ** 2)
            expected = np.sum((w * f[single]) ** 2 * v)
            unit = max(seen, expected) if bank.is_studentised else expected
            found[entry.name] = top / np.sqrt(unit)
    return found


@pytest.mark.parametrize("null", [it.nulls.Bernoulli(), it.nulls.Rademacher()])
def test_standardised_values_equal_a_plain_loop(null):
    """Redraws are divided by what is expected; flips, which keep sizes, by what is seen."""
    s = simulate.weighted_rows(200, rng=0).sample
    made = prepared_test(s, null=null, draws=19, rng=0)
    assert made.prepared.bank.is_studentised is not null.exact
    expected = naive_scores(s, made.prepared, s.residuals)
    assert expected
    for entry, values in zip(made.scores.entries, made.scores.standardised, strict=True):
        if entry.name in expected:
            # Kept in single precision.
            assert values[0] == pytest.approx(expected[entry.name], rel=1e-6)


def test_seeds_threads_batches_and_order_of_draws(monkeypatch):
    s = simulate.survey(3000, rng=0).sample
    one = it.klce_test(s, draws=150, rng=5, engine=Factor(threads=1))
    two = it.klce_test(s, draws=150, rng=5, engine=Factor(threads=2))
    np.testing.assert_array_equal(one.null_distribution, two.null_distribution)
    monkeypatch.setattr("itrust.engines.plan.BATCH_BYTES", 1)  # 256 draws at a time
    many = it.klce_test(s, draws=600, rng=5, engine=Factor(threads=2))
    np.testing.assert_allclose(many.statistic_draws[:150], one.statistic_draws, rtol=1e-9)
    assert many.draws == many.null_distribution.size == 600
    monkeypatch.undo()  # the scale of regions is that of all draws together
    whole = it.klce_test(s, draws=600, rng=5, engine=Factor(threads=2))
    np.testing.assert_allclose(many.null_distribution, whole.null_distribution, rtol=1e-9)


def test_tiles_and_factor_find_the_same_evidence():
    s = simulate.survey(2500, rng=0).sample
    exact, fast = (it.klce_test(s, draws=99, rng=1, engine=e) for e in (Tiles(), Factor()))
    assert exact.evidence()[0].name == fast.evidence()[0].name
    by_name = {f.name: f.score for f in fast.findings}
    for f in exact.findings:
        assert by_name[f.name] == pytest.approx(f.score, abs=0.15 * abs(f.score) + 0.5), f.name


def test_files_give_the_answer_of_memory(tmp_path):
    s = simulate.survey(3000, rng=4).sample
    region = s.column("region")
    rows = pa.table(
        {
            "y": s.y,
            "p": s.p,
            "income": s.column("income").values,
            "age": s.column("age").values,
            "region": [region.levels[k] for k in region.values],
        }
    )
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=700)
    scan = it.scan(tmp_path, label="y", prob="p", on=["income", "age", "region"])
    theirs = it.klce_test(scan, draws=99, rng=0)
    mine = it.klce_test(s, draws=99, rng=0, engine=Factor())
    assert theirs.pvalue == mine.pvalue
    assert [f.name for f in theirs.evidence()] == [f.name for f in mine.evidence()]
    np.testing.assert_allclose(theirs.null_distribution, mine.null_distribution, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("shift", "overall level: the predictions are too low overall"),
        ("calibration slope", "prediction: slope: the predictions are not extreme enough"),
        ("one level", "group = y: the bias is higher where group = y than elsewhere"),
        ("interaction of c and d", "c x d"),
        ("bump in c", "c "),
    ],
)
@pytest.mark.slow
def test_the_evidence_names_what_is_miscalibrated(name, words):
    samples = [simulate.local_alternative(name, 3000, rng).sample for rng in range(3)]
    """First, or right behind the level and the prediction, whose turn is first."""
    told = [
        [f"{own.name}: {own}" for own in it.klce_test(sample, draws=99, rng=0).evidence()[:2]]
        for sample in samples
    ]
    assert sum(any(text.startswith(words) for text in own) for own in told) >= 2, told
    if not words.startswith("c") and "group" not in words:
        assert sum(own[0].startswith(words) for own in told) >= 2, told


def test_redundant_entries_are_told_once():
    s = simulate.local_alternative("shift", 4000, 0, strength=1.5).sample
    r = it.klce_test(s, draws=199, rng=0)
    told = [f.name for f in r.evidence()]
    assert told[0] == "overall level"
    said = [name for f in r.findings for name in f.alike]
    assert not set(told) & set(said)
    assert len(said) == len(set(said))
    assert "everything together" not in told


def test_a_calibrated_model_has_no_evidence_against_it():
    r = it.klce_test(simulate.survey(800, rng=0, trustworthy=True).sample, draws=199, rng=0)
    assert r.evidence() == ()
    assert "most striking" in str(r)


@pytest.mark.slow
def test_an_entry_without_bias_beside_wrong_ones_is_seldom_blamed():
    """Weak null: errors that cancel along x1, elsewhere large; flips keep the blame small."""
    runs, blamed = 80, 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        x = rng.normal(size=(300, 2))
        p = np.where(x[:, 1] > 0, 0.1, 0.9)
        truth = np.where(x[:, 1] > 0, 0.3, 0.7)  # too bold along x2, right on average along x1
        s = Sample(rng.random(300) < truth, p, x)
        r = it.klce_test(s, it.default_dictionary(s).only(families=["linear"]), draws=99, rng=run)
        blamed += r.finding("x1: trend").pvalue <= 0.05
    assert blamed <= 8  # by redraws alone about 19


def several_categories(n, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    x = {f"c{k}": rng.choice(list("abcdef"), n) for k in range(4)}
    x |= {f"n{k}": rng.normal(size=n) for k in range(4)}
    p = rng.uniform(0.1, 0.9, n)
    return Sample(rng.random(n) < np.clip(p + shift, 0, 1), p, x)


@pytest.mark.parametrize("engine", [Tiles(), Factor()])
@pytest.mark.slow
def test_every_entry_has_the_spread_it_is_given(engine):
    """1,296 cells and few matches: no entry may own the maximum by being badly scaled."""
    scores = prepared_test(several_categories(1500), draws=300, rng=0, engine=engine).scores
    spread = scores.standardised[~scores.is_region, 1:].std(axis=1)
    tails = scores.log_tails[scores.is_region, 1:]
    assert np.exp(-tails).mean(axis=1) == pytest.approx(0.5, abs=0.07)  # regions: even p-values
    assert spread.min() > 0.7
    assert spread.max() < 1.4
    assert np.quantile(scores.combined[1:], 0.95) < 5


@pytest.mark.slow
def test_many_cells_do_not_drown_a_shift():
    seen = sum(
        it.klce_test(several_categories(1500, k, 0.06), draws=99, rng=k).pvalue <= 0.05
        for k in range(3)
    )
    assert seen == 3


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.slow
def test_plain_findings_are_not_hidden_behind_everything_together(d):
    for run in range(2):
        rng = np.random.default_rng(run)
        x = rng.normal(size=(3000, d))
        p = rng.uniform(0.2, 0.6, 3000)
        s = Sample(rng.random(3000) < p + 0.08 + 0.06 * np.clip(x[:, 0], -2, 2), p, x)
        found = it.klce_test(s, draws=99, rng=0)
        told = [f.name for f in found.evidence()]
        assert "overall level" in told
        assert any("x1" in name or name == "x: trend" for name in told)
        trend = found.finding("x1: trend")
        assert (trend.shape, trend.direction) == (Shape.TREND, 1)
        assert str(trend).startswith("the bias rises with x1 (most too low where x1 ")


@pytest.mark.slow
def test_evidence_needs_a_rejection_and_nearly_always_follows_one():
    rejected = told = 0
    for run in range(60):
        s = simulate.papers_power_design(60, 3, run).sample
        r = it.klce_test(s, draws=39, rng=run)
        assert r.pvalue <= 0.05 or not r.evidence()
        rejected += r.pvalue <= 0.05
        told += bool(r.evidence())
    assert rejected > 10
    assert told >= 0.9 * rejected


def test_a_precomputed_matrix_can_be_an_entry():
    s = simulate.survey(700, rng=0).sample
    matrix = np.exp(-0.5 * np.square(np.subtract.outer(s.p, s.p)) / 0.1**2)
    kernel = LocalKernel(it.kernels.Constant(), it.kernels.Precomputed(matrix))
    r = it.klce_test(s, {"mine": kernel}, draws=49, rng=0)
    assert r.findings[0].name == "mine"
    with pytest.raises(it.InputError, match="cannot say what other rows would show"):
        it.detectable(s, dictionary={"mine": kernel}, draws=49)


def test_results_print_and_serialise():
    r = it.klce_test(simulate.survey(2000, rng=0).sample, draws=199, rng=0)
    text = str(r)
    assert "evidence" in text
    assert max(len(line) for line in text.splitlines()) <= 88
    facts = json.loads(json.dumps(r.to_dict()))
    assert facts["score"] == r.score
    assert facts["findings"][0]["name"] == r.findings[0].name
    assert facts["dictionary"]["linear"]["entries"] == 5
    with pytest.raises(it.InputError, match=r"no check 'age: trent'; did you mean 'age: trend'"):
        r.finding("age: trent")


def test_rows_that_cannot_vary_leave_nothing_to_look_at():
    r = it.klce_test(Sample([0, 1, 1], [0.0, 1.0, 1.0], [1.0, 2.0, 3.0]), draws=19, rng=0)
    assert r.pvalue == 1.0
    assert r.findings == ()
    assert any("cannot detect anything" in warning for warning in r.warnings)


def test_labels_called_impossible_refute_whatever_else_is_found():
    rng = np.random.default_rng(0)
    classes = Sample([0, 1, 1, 0], [0.0, 0.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0])
    r = it.klce_test(classes, draws=99, rng=0)
    assert r.pvalue == 0.01
    assert str(r.evidence()[0]) == "labels occurred that the model gave probability 0"
    assert any(warning.startswith("2 rows with a label") for warning in r.warnings)
    p = rng.uniform(size=300)
    y = rng.random(300) < p
    p[0], y[0] = 0.0, True
    one = it.klce_test(Sample(y, p, rng.normal(size=300)), draws=99, rng=0)
    assert (one.pvalue, one.evidence()[0].name) == (0.01, "impossible labels")
    json.dumps(one.to_dict())


@pytest.mark.parametrize("share", [0.4, 0.6, 0.9])
def test_words_about_groups_are_relative(share):
    """Women are right, men too low: women must not be called too high."""
    rng = np.random.default_rng(0)
    sex = np.where(rng.random(4000) < share, "men", "women")
    p = rng.uniform(0.1, 0.5, 4000)
    s = Sample(rng.random(4000) < p + 0.12 * (sex == "men"), p, {"sex": sex})
    told = {f.name: str(f) for f in it.klce_test(s, draws=99, rng=0).evidence()}
    assert told.get("sex = women", "the bias is lower").startswith("the bias is lower")
    assert told.get("sex = men", "the bias is higher").startswith("the bias is higher")


def test_main_effects_are_not_told_as_pairs_and_levels_by_name():
    rng = np.random.default_rng(0)
    n = 4000
    x = {
        "sex": rng.choice(["f", "m"], n),
        "clinic": rng.choice([f"C{k:02d}" for k in range(12)], n),
        "age": rng.integers(20, 90, n),
    }
    p = rng.uniform(0.1, 0.6, n)
    s = Sample(rng.random(n) < p + 0.3 * (x["clinic"] == "C03"), p, x)
    told = [f.name for f in it.klce_test(s, draws=99, rng=0).evidence()]
    assert told[0] == "clinic = C03"
    assert not [name for name in told if " x " in name or "," in name]


def test_a_dictionary_for_other_covariates_is_refused():
    town = simulate.survey(200, rng=0).sample
    d = it.default_dictionary(town)
    bare = Sample(town.y, town.p, {"age": town.column("age").values})
    with pytest.raises(it.InputError, match=r"reads 'income', which the sample lacks"):
        it.klce_test(bare, d, draws=9)
    text = str(it.klce_test(town, d.only(covariates=["age"]), draws=19, rng=0))
    assert "on age only" in text
    assert "calibrated given age, evidence" in " ".join(text.split())


def test_clusters_take_flipped_signs():
    s = simulate.repeated_units(80, rng=0).sample
    named = Sample(s.y, s.p, s.columns[0].values, cluster=np.repeat(np.arange(80), 5))
    r = it.klce_test(named, draws=99, rng=0)
    assert r.null == nulls.Rademacher()
    assert "approximate" in str(r)
