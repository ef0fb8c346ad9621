"""Several classes: exact level, closed-form variance, per-class answers, clear refusals."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import itrust as it
from itrust import InputError, MulticlassSample
from itrust.calibration import (
    class_laws,
    joint_form,
    joint_points,
    prepare_classes,
    score,
    top_label,
    trace_of_products,
)
from itrust.engines import Auto, Drawing, Engine, accumulate_all
from itrust.nulls import Bernoulli, Copula, Rademacher, classes_alike, redrawn_classes
from oracles import plausible


def checks_of(sample, draws):
    return prepare_classes(sample.extract(), Auto(), draws)


def three(n=300, seed=0, *, wrong=0.0):
    """Softmax of one covariate; with `wrong`, the first class is too likely for x > 0."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    p = np.column_stack([np.exp(x), np.exp(-x), np.ones(n)])
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    told = p.copy()
    told[:, 0] += wrong * (x > 0)
    return MulticlassSample(y, told / told.sum(axis=1, keepdims=True), x)


@pytest.mark.slow
def test_the_level_is_exact():
    runs = 60
    count = sum(
        it.multiclass_test(three(60, run), draws=59, rng=run).pvalue <= 0.05 for run in range(runs)
    )
    assert plausible(count, runs)


def test_draws_are_categorical_and_shared():
    s = three(400)
    codes = redrawn_classes(s.p, range(400), range(300), 7)
    drawn = [codes == k for k in range(3)]
    np.testing.assert_array_equal(sum(d.astype(int) for d in drawn), 1)
    rates = np.column_stack([d.mean(axis=1) for d in drawn])
    z = (rates - s.p) / np.sqrt(s.p * (1 - s.p) / 300)
    assert np.abs(z).max() < 5
    assert z.std() == pytest.approx(1, abs=0.1)


def test_classes_of_probability_zero_are_never_drawn():
    p = np.array([[0.3, 0.7, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    codes = redrawn_classes(p, range(3), range(2000), 1)
    for k in range(3):
        drawn = codes == k
        assert not drawn[p[:, k] == 0].any()
        assert drawn[p[:, k] == 1].all()


def test_trace_of_products_equals_the_loop():
    f = np.random.default_rng(0).dirichlet([1, 2, 3, 1], 5)
    s = [np.diag(row) - np.outer(row, row) for row in f]
    naive = [[np.trace(a @ b) for b in s] for a in s]
    np.testing.assert_allclose(trace_of_products(f), naive, atol=1e-15)


def test_the_null_sd_is_that_of_many_draws_and_not_the_sum_of_binary_ones():
    s = three(200)
    joint = checks_of(s, 10).joint
    form = joint_form(s.extract(s.n), 1.0)
    gram = form.kernel.gram(joint_points(s, form.names)).block(slice(None), slice(None))
    np.fill_diagonal(gram, 0.0)
    codes = redrawn_classes(s.p, range(200), range(6000), 0)
    e = [(codes == k) - s.p[:, k, None] for k in range(3)]
    sums = sum(np.einsum("ib,ib->b", one, gram @ one) for one in e)
    assert sums.std() == pytest.approx(joint.sd, rel=0.05)
    assert joint.skewness > 0


def test_the_statistic_equals_the_double_loop():
    s = three(40)
    r = it.multiclass_test(s, draws=19, rng=0)
    x = s.one_class(0).columns[0].values
    widths = [it.kernels.Median(np.sqrt(3))(s.p[:, k]) for k in range(3)]
    wide = it.kernels.Median()(x)
    e = np.eye(3)[s.codes] - s.p
    total = 0.0
    for i in range(40):
        for j in range(40):
            if i != j:
                d = np.sum(((s.p[i] - s.p[j]) / widths) ** 2) + ((x[i] - x[j]) / wide) ** 2
                total += np.exp(-d / 2) * float(e[i] @ e[j])
    assert r.statistic == pytest.approx(total / (40 * 39), rel=1e-9)


def test_two_classes_give_the_bits_of_the_binary_test():
    s = it.simulate.survey(300, rng=0).sample
    x = {"age": s.column("age").values, "region": s.column("region").values}
    both = MulticlassSample(s.y.astype(int), np.column_stack([1 - s.p, s.p]), x)
    r, one = (it.klce_test(rows, draws=99, rng=0) for rows in (both, both.one_class(1)))
    assert (r.statistic, r.score, r.pvalue) == (one.statistic, one.score, one.pvalue)
    np.testing.assert_array_equal(r.null_distribution, one.null_distribution)
    assert [f.pvalue for f in r.classes[1].findings] == [f.pvalue for f in one.findings]
    assert [f.direction for f in r.classes[0].findings] == [-f.direction for f in one.findings]


def test_the_wrong_classes_are_named():
    r = it.multiclass_test(three(900, 1, wrong=0.3), draws=199, rng=0)
    assert r.pvalue <= 0.01
    assert r.classes[0].pvalue <= 0.05
    assert min(c.pvalue for c in (r.together, *r.classes)) == r.pvalue
    text = str(r)
    assert "all together" in text
    assert "for 0" in text
    assert json.loads(json.dumps(r.to_dict()))["classes"][0]["pvalue"] == r.classes[0].pvalue


def test_the_evidence_of_all_classes_names_the_class_and_begins_with_the_strongest():
    r = it.klce_test(three(wrong=0.9), draws=99, rng=0)
    told = r.evidence()
    own = [(part.name, f.name, f.pvalue) for part in r.classes for f in part.evidence()]
    assert len(own) > 1
    assert sorted((f.label, f.name, f.pvalue) for f in told) == sorted(own)
    assert [f.pvalue for f in told] == sorted(f.pvalue for f in told)
    assert all(str(f.label) in str(f) for f in told)
    assert told[0].to_dict()["label"] == told[0].label
    assert r.evidence(0.0) == ()


def test_named_classes_and_mappings():
    y = ["cat", "dog", "emu", "cat"]
    p = {"dog": [0.1, 0.8, 0.1, 0.2], "cat": [0.8, 0.1, 0.1, 0.8], "emu": [0.1, 0.1, 0.8, 0.0]}
    s = MulticlassSample(y, p, [1.0, 2.0, 3.0, 4.0])
    assert s.classes == ("dog", "cat", "emu")
    assert s.one_class("cat").y.tolist() == [1, 0, 0, 1]
    assert it.multiclass_test(s, draws=19, rng=0).draws == 19


def test_frames_are_read_by_the_names_of_their_columns():
    frame = pd.DataFrame({"emu": [0.1, 0.2], "cat": [0.6, 0.2], "dog": [0.3, 0.6]})
    s = MulticlassSample(["cat", "dog"], frame)
    assert s.classes == ("emu", "cat", "dog")
    assert s.one_class("cat").p.tolist() == [0.6, 0.2]
    ordered = MulticlassSample(["cat", "dog"], frame, classes=["cat", "dog", "emu"])
    assert ordered.p[0].tolist() == [0.6, 0.3, 0.1]
    assert ordered.one_class("cat").p.tolist() == [0.6, 0.2]
    table = MulticlassSample(["cat", "dog"], pa.Table.from_pandas(frame))
    assert table.one_class("emu").p.tolist() == [0.1, 0.2]
    with pytest.raises(InputError, match="different indexes"):
        MulticlassSample(pd.Series(["cat", "dog"], index=[5, 6]), frame)


def test_repeated_units_are_told():
    base = three(60, 3)
    rows = np.repeat(np.arange(60), 5)
    x = base.one_class(0).columns[0].values
    with pytest.warns(it.AssumptionWarning, match="repeated units"):
        r = it.multiclass_test(
            MulticlassSample(base.codes[rows], base.p[rows], x[rows]), draws=19, rng=0
        )
    assert "see !" in str(r)


def test_findings_are_adjusted_for_the_places_of_all_classes():
    r = it.multiclass_test(three(150, 2), draws=99, rng=0)
    assert all(f.pvalue >= r.pvalue for c in r.classes for f in c.findings)


@pytest.mark.parametrize(
    ("y", "p", "settings", "message"),
    [
        ([0, 1], [[0.5, 0.6], [0.5, 0.5]], {}, r"those of row 0 sum to 1.1 \(1 row in all\)"),
        (
            ["a", "b"],
            {"a": [0.33, 0.5], "b": [0.33, 0.25], "c": [0.33, 0.25]},
            {},
            r"the columns taken are those of 'a', 'b', 'c' \(divide each row by its sum",
        ),
        ([0, 1], [[0.5, 0.6], [0.5, 0.5]], {}, r"the columns taken are those of 0, 1$"),
        ([0, 1], [[0.5, 0.5], [1.5, -0.5]], {}, r"row 1 has 1.5 for the class 0"),
        ([0, 1], [0.5, 0.5], {}, r"one column for each class, at least two, not the shape \(2,\)"),
        ([0, 3], [[0.5, 0.5], [0.5, 0.5]], {"classes": [0, 1]}, r"row 1 has the label 3"),
        (["a", "a"], [[0.5, 0.5], [0.5, 0.5]], {}, r"1 value \('a'\) and prob has 2 columns"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.5]], {"classes": ["a"]}, r"one class only, 'a'"),
        ([0, 1, 1], [[0.5, 0.5], [0.5, 0.5]], {}, r"prob has 2 rows, but there are 3 labels"),
        ([1, 2], [[0.5, 0.5, 0], [0.5, 0.5, 0]], {}, r"2 values \(1, 2\) and prob has 3 columns"),
        ([None, 1], [[0.5, 0.5], [0.5, 0.5]], {}, r"1 row has no label \(first: row 0\)"),
        ([0, 1], {0: [0.5, 0.5], 1: [0.5]}, {}, r"same number of rows, not 2, 1"),
        (
            [0, 1],
            {0: ["x", "y"], 1: [0.5, 0.5]},
            {},
            r"class 0: prob must be numbers; row 0 has 'x'",
        ),
        ([0, 1], {0: [0.5, 0.5], 1: [0.5, 0.5]}, {"classes": [1, 2]}, r"in some order, 0, 1, not"),
        ([0, 1], [["x", 0.5], [0.5, 0.5]], {}, r"prob must be a matrix of numbers"),
    ],
)
def test_wrong_input_is_one_sentence(y, p, settings, message):
    with pytest.raises(InputError, match=message):
        MulticlassSample(y, p, **settings)


def test_what_is_no_multiclass_sample_is_refused():
    with pytest.raises(InputError, match=r"expected an itrust.MulticlassSample, not a Sample"):
        it.multiclass_test(it.simulate.papers_level_design(rng=0).sample)
    with pytest.raises(InputError, match=r"use multiclass_test\(sample\), or sample.one_class"):
        it.klce2(three())
    with pytest.raises(InputError, match="there is no class 7"):
        three().one_class(7)


@pytest.mark.parametrize("name", ["brier", "ece", "log_loss", "smooth_ece", "reliability_curve"])
def test_scores_of_several_classes_say_how_to_take_one(name):
    with pytest.raises(InputError, match=r"several classes; take one with sample.one_class\(name"):
        getattr(it.scores, name)(three(40))


def test_a_curve_of_several_classes_is_refused_before_it_is_drawn():
    with pytest.raises(InputError, match=r"several classes; take one with sample.one_class\(name"):
        it.scores.reliability_curve(three(40), it.scores.EqualMass(10))


def test_impossible_labels_are_told():
    s = MulticlassSample([0, 1, 1], [[0.5, 0.5, 0], [1.0, 0, 0], [0.2, 0.8, 0]])
    assert s.impossible.size == 1
    assert "impossible" in str(it.multiclass_test(s, draws=9, rng=0))


def test_impossible_labels_refute_their_class_and_the_one_that_was_certain():
    """Class 2 has probability 0 in a row that has it, class 0 had 1 there; class 1 is as said."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2, 2, 2], 300)
    y = redrawn_classes(p, range(300), range(1), 4)[:, 0].astype(int)
    p[7], y[7] = [1.0, 0.0, 0.0], 2
    found = it.multiclass_test(MulticlassSample(y, p, {"x": rng.normal(size=300)}), draws=39, rng=0)
    assert [own.unadjusted_pvalue == 1 / 40 for own in found.classes] == [True, False, True]
    assert [own.pvalue == 1 / 40 for own in found.classes] == [True, False, True]
    assert found.together.pvalue == found.pvalue == 1 / 40
    told = [[f.name for f in own.findings][:1] == ["impossible labels"] for own in found.classes]
    assert told == [True, False, True]
    assert [f.label for f in found.evidence() if f.name == "impossible labels"] == [0, 2]


def test_pairs_of_classes_that_are_left_out_are_told():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(11), 400)
    y = redrawn_classes(p, range(400), range(1), 4)[:, 0]
    many = MulticlassSample(np.array(list("abcdefghijk"))[y], p, classes=list("abcdefghijk"))
    (told,) = [n for n in it.multiclass_test(many, draws=9, rng=0).notes if "contrasted" in n]
    assert told.startswith("45 of 55 pairs of classes are contrasted, those that the model gives")
    together = p.T @ p
    of_pairs = {(a, b): together[a, b] for a in range(11) for b in range(a + 1, 11)}
    order = sorted(of_pairs, key=of_pairs.get, reverse=True)
    first, last = ("{} and {}".format(*("abcdefghijk"[k] for k in order[at])) for at in (0, 44))
    assert f"from {first} to {last};" in told
    few = it.multiclass_test(three(), draws=9, rng=0)
    assert not any("contrasted" in note for note in few.notes)


def test_ties_of_the_top_label_are_broken_by_lot_whatever_the_order_of_classes():
    rng = np.random.default_rng(0)
    y = rng.choice(list("abc"), 3_000, p=[0.8, 0.1, 0.1])
    p = np.tile([0.4, 0.4, 0.2], (3_000, 1))
    top = top_label(MulticlassSample(y, p, classes=list("abc")))
    assert top.y.mean() == pytest.approx((0.8 + 0.1) / 2, abs=0.03)
    assert (top.p == 0.4).all()
    turned = top_label(MulticlassSample(y, p[:, [2, 1, 0]], classes=list("cba")))
    np.testing.assert_array_equal(turned.y, top.y)
    clear = three(200, 3)
    np.testing.assert_array_equal(top_label(clear).y, clear.codes == clear.p.argmax(axis=1))


NAMES = ["win", "tie", "loss", "none"]


def confused(n=1_200, seed=0, share=0.6):
    """In the south a share of the probability of "loss" belongs to "tie"."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(4, 2.0), n)
    x = {"age": rng.normal(50, 15, n).round(), "region": rng.choice(["south", "west", "east"], n)}
    moved = share * p[:, 2] * (x["region"] == "south")
    truth = p + moved[:, None] * np.array([0, 1, -1, 0])
    y = (rng.random(n)[:, None] > truth.cumsum(axis=1)).sum(axis=1).clip(0, 3)
    return MulticlassSample(np.array(NAMES)[y], p, x, classes=NAMES)


def test_a_class_that_is_taken_for_another_is_named_with_the_group():
    r = it.klce_test(confused(), draws=199, rng=0)
    first, *others = r.taken_for()
    assert (first.actual, first.predicted, str(first.where)) == ("tie", "loss", "region = south")
    assert not others
    assert first.pvalue == r.pvalue == 0.005
    assert first.moved == pytest.approx(0.6 * 0.25, abs=0.06)
    text = str(r)
    assert "tie is taken for loss where region = south (about" in text
    assert "too low for tie where region = south" in text
    assert "too high for loss where region = south" in text
    assert first.to_dict()["sentence"] == r.to_dict()["pairs"][0]["sentence"]


def test_contrasts_have_their_null_law():
    s = confused(600, 3)
    checks = checks_of(s, 2_999)
    table = score(checks, Bernoulli(), 2_999, 1)
    drawn = table.standardised[:, 1:]
    pairs, vectors = drawn[checks.pairs], drawn[checks.vectors]
    assert np.abs(pairs.mean(axis=1)).max() < 0.15
    np.testing.assert_allclose(pairs.std(axis=1), 1, atol=0.12)
    np.testing.assert_allclose(vectors.mean(axis=1), 0, atol=0.15)
    skewness = (pairs**3).mean(axis=1)
    assert np.abs(skewness - table.skewness[checks.pairs]).max() < 0.4
    assert table.weights.sum() == pytest.approx(1)


def test_contrasts_equal_the_sums_over_rows():
    s = confused(300, 4)
    checks = checks_of(s, 9)
    table = score(checks, Bernoulli(), 9, 1)
    e = np.eye(4)[s.codes] - s.p
    south = s.one_class("tie").column("region")
    rows = south.values == south.levels.index("south")
    names = [entry.name for entry in checks.contrasts.entries]
    for at, (a, b, g) in enumerate(checks.law.pairs.tolist()):
        if names[g] == "region = south":
            p = s.p[rows]
            variance = p[:, a] + p[:, b] - (p[:, a] - p[:, b]) ** 2
            z = (e[rows, a] - e[rows, b]).sum() / np.sqrt(variance.sum())
            found = table.standardised[checks.pairs.start + at, 0]
            assert found == pytest.approx(z, rel=1e-5)


def test_the_factor_is_near_the_kernel_in_full():
    s = confused(700, 5)
    near = it.klce_test(s, draws=99, rng=0)
    form = joint_form(s.extract(s.n), 1.0)
    gram = form.kernel.gram(joint_points(s, form.names)).block(slice(None), slice(None))
    np.fill_diagonal(gram, 0.0)
    e = s.residuals
    assert near.statistic == pytest.approx(
        np.sum(e * (gram @ e)) / (700 * 699), abs=0.1 * near.null_sd
    )
    assert "factor" in near.engine


def test_batches_and_equal_weights_change_nothing(monkeypatch):
    s = confused(300, 6)
    whole = it.klce_test(s, draws=150, rng=0)
    monkeypatch.setattr("itrust.engines.plan.BATCH_BYTES", 1)
    monkeypatch.setattr("itrust.engines.plan.MIN_COLUMNS", 64)
    parts = it.klce_test(s, draws=150, rng=0)
    np.testing.assert_allclose(parts.null_distribution, whole.null_distribution, rtol=1e-9)
    x = {column.name: column.values for column in s.one_class("tie").columns}
    heavy = MulticlassSample(s.codes, s.p, x, weights=np.full(300, 7.0))
    plain = MulticlassSample(s.codes, s.p, x)
    one, other = (it.klce_test(m, draws=99, rng=0) for m in (heavy, plain))
    np.testing.assert_allclose(one.null_distribution, other.null_distribution, rtol=1e-6)
    assert one.statistic == pytest.approx(other.statistic, rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": {"a": it.kernels.RBF(1.0)}}, r"several classes take the default checks"),
        ({"null": it.nulls.Spectral()}, r"several classes take Bernoulli\(\).*not Spectral\(\)"),
        ({"null": it.nulls.Rademacher()}, r"Rademacher\(\) or Copula\(\) where rows have clusters"),
    ],
)
def test_what_is_not_for_several_classes_is_refused_in_a_sentence(settings, message):
    with pytest.raises(InputError, match=message):
        it.klce_test(three(30), draws=9, rng=0, **settings)


class Remote(Engine):
    """An engine that is none of ours."""

    def _plan(self, survey, kernel, purpose): ...

    def _pass(self, survey, job, advance):  # noqa: ARG002
        return accumulate_all(job, survey.source.chunks(1_024))


def test_engines_of_others_test_several_classes():
    ours, theirs = (it.klce_test(three(60), draws=9, rng=0, engine=e) for e in (Auto(), Remote()))
    assert theirs.pvalue == ours.pvalue
    assert theirs.statistic == pytest.approx(ours.statistic)


@pytest.mark.parametrize("m", [3, 12, 50])
def test_rare_classes_classes_that_never_occur_and_many_classes_are_tested(m):
    rng = np.random.default_rng(m)
    p = rng.dirichlet(np.r_[np.ones(m - 2), 0.01, 0.01], 200)
    p[:, -1] = 0
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random(200)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(0, m - 1)
    y = np.where(p[np.arange(200), y] > 0, y, p.argmax(axis=1))
    s = MulticlassSample(y, p, rng.normal(size=200), classes=list(range(m)))
    r = it.klce_test(s, draws=39, rng=0)
    assert 0 < r.pvalue <= 1
    assert r.classes[-1].positives == 0
    assert not r.classes[-1].findings
    assert np.isfinite(r.null_distribution).all()


def in_clusters(n=120, seed=0, rare=0.0, **settings):
    """Three classes in clusters of four rows, the last one as rare as wanted; no dependence."""
    base, units = three(n, seed), np.repeat(np.arange(n // 4), 4)
    p = base.p * np.array([1, 1, 1 - rare])
    p /= p.sum(axis=1, keepdims=True)
    y = redrawn_classes(p, range(n), range(1), seed)[:, 0]
    x = base.one_class(0).columns[0].values
    return MulticlassSample(y, p, x, cluster=units, classes=[0, 1, 2], **settings)


def test_signs_of_clusters_are_flipped_for_all_classes_at_once():
    rows = in_clusters()
    checks = checks_of(rows, 20).for_null(Rademacher())
    drawing = Drawing(Rademacher(), range(20), 3)
    sums = Auto().run(checks.survey, [], drawing, [checks.contrasts]).works[0]
    signs = 1 - 2 * Rademacher().flips(rows.outcome(0), range(20), 3).astype(float)
    assert (signs[0::4] == signs[3::4]).all()
    e = np.eye(3)[rows.codes] - rows.p
    np.testing.assert_allclose(sums[:, 0, 0], e.sum(axis=0), atol=1e-5)
    np.testing.assert_allclose(sums[:, 0, 1:], e.T @ signs, atol=1e-5)


def test_signs_are_flipped_where_classes_are_frequent_and_classes_redrawn_where_one_is_rare():
    sample = in_clusters(400)
    assert isinstance(class_laws(None, sample, 0)[0][0], Rademacher)
    sample = in_clusters(400, rare=0.98)
    laws, even = class_laws(None, sample, 0)
    assert {type(law) for law in laws} == {Copula}
    assert even.tolist() == [True, True, False]
    assert len(laws) > 1
    fixed, _ = class_laws(it.nulls.Copula(0.3), sample, 0)
    assert [own.rho for own in fixed] == [0.3]


def test_a_rare_class_in_clusters_has_an_answer_and_the_largest_p_value_of_all_laws():
    sample = in_clusters(400, rare=0.98)
    found = it.multiclass_test(sample, draws=39, rng=0)
    assert 0 < found.pvalue <= 1
    assert found.refused is None
    assert not found.is_exact
    assert found.clusters == 100
    assert any("approximate, by clusters" in note for note in found.notes)
    checks, (laws, even) = checks_of(sample, 39), class_laws(None, sample, 0)
    pvalues = []
    for law in laws:
        table = score(replace(checks, even=even), law, 39, 0)
        pvalues.append(np.mean(table.combined >= table.combined[0] - 1e-9))
    assert found.pvalue == pytest.approx(max(pvalues))
    assert {own.pvalue > 0 for own in found.classes} == {True}


def test_correlation_within_clusters_is_no_miscalibration_and_a_bias_is_one():
    """One label a cluster: redraws of independent rows would reject nearly always."""
    n, units = 400, np.repeat(np.arange(80), 5)
    p = np.tile([0.6, 0.36, 0.04], (n, 1))
    x = np.random.default_rng(1).normal(size=80)[units]
    shared, alone = [], []
    for seed in range(4):
        y = classes_alike(p, units, 1.0, range(n), range(1), 50 + seed)[:, 0]
        sample = MulticlassSample(y, p, {"x": x}, cluster=units, classes=[0, 1, 2])
        shared.append(it.multiclass_test(sample, draws=39, rng=seed).pvalue)
        alone.append(
            it.multiclass_test(sample, null=it.nulls.Bernoulli(), draws=39, rng=seed).pvalue
        )
    assert sum(own <= 0.05 for own in alone) >= 3
    assert sum(own <= 0.05 for own in shared) <= 1
    wrong = p[:, [2, 1, 0]]
    biased = MulticlassSample(y, wrong, {"x": x}, cluster=units, classes=[0, 1, 2])
    assert it.multiclass_test(biased, draws=39, rng=0).pvalue == 1 / 40


@pytest.mark.slow
@pytest.mark.parametrize("is_shared", [True, False])
def test_the_level_holds_with_clusters_and_a_rare_class(is_shared):
    """Labels alike along an order of classes that each cluster has anew, or independent."""
    units, pvalues, alone = np.repeat(np.arange(60), 5), [], []
    for run in range(6):
        rng = np.random.default_rng([run, 7])
        x = rng.normal(size=300)
        p = np.exp(np.outer(x, [0.5, -0.5, 0.0]) + rng.normal(size=(300, 3)) * 0.5) * [1, 1, 0.04]
        p /= p.sum(axis=1, keepdims=True)
        order = np.argsort(rng.random((60, 3)), axis=1)[units]
        u = rng.random(60)[units] if is_shared else rng.random(300)
        edges = np.take_along_axis(p, order, axis=1).cumsum(axis=1)
        y = order[np.arange(300), (u[:, None] > edges).sum(axis=1).clip(0, 2)]
        sample = MulticlassSample(y, p, {"x": x}, cluster=units, classes=[0, 1, 2])
        pvalues.append(it.multiclass_test(sample, draws=39, rng=run).pvalue)
        by_rows = it.multiclass_test(sample, null=it.nulls.Bernoulli(), draws=39, rng=run)
        alone.append(by_rows.pvalue)
    assert np.count_nonzero(np.array(pvalues) <= 0.05) <= 1
    if is_shared:  # so few runs are enough to show a null that does not hold
        assert np.count_nonzero(np.array(alone) <= 0.05) >= 2


def test_redraws_by_rows_are_not_called_exact_where_rows_have_clusters():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2, 2, 2], 120)
    y = np.array([rng.choice(3, p=row) for row in p])
    rows = it.MulticlassSample(y, p, {"x": rng.normal(size=120)}, cluster=np.repeat(range(40), 3))
    assert not it.klce_test(rows, null=it.nulls.Bernoulli(), draws=19, rng=0).is_exact
    alone = it.MulticlassSample(y, p, {"x": rng.normal(size=120)})
    assert it.klce_test(alone, draws=19, rng=0).is_exact


def test_pairs_are_told_only_where_both_classes_are_shown():
    """One class of six is moved to another in a group; calibrated ones are taken for none."""
    wrong = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.ones(6) * 2, 900)
        group = rng.choice(["a", "b"], 900)
        truth = p.copy()
        moved = 0.6 * truth[:, 1] * (group == "a")
        truth[:, 0] += moved
        truth[:, 1] -= moved
        y = (rng.random(900)[:, None] > truth.cumsum(axis=1)).sum(axis=1).clip(0, 5)
        found = it.klce_test(it.MulticlassSample(y, p, {"g": group}), draws=99, rng=seed)
        wrong += any({pair.actual, pair.predicted} != {0, 1} for pair in found.taken_for())
    assert wrong <= 2
