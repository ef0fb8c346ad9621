"""Audits of more than two classes: one truth on every surface, and errors over all classes."""

import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from scipy.stats import binom

import itrust as it
from itrust import auditing, render
from itrust._core import InputError
from itrust.auditing.pairs import class_matrix
from itrust.auditing.parts import Diagnosis, multiplied
from itrust.auditing.verdict import judge
from itrust.calibration import class_losses, mean_loss
from itrust.render.page import page

NAMES = ("win", "tie", "loss")


def sample_of(n, seed=0, *, moved=0.0, names=NAMES, order=None):
    """Probabilities of three classes; in the south a share of the first goes to the second."""
    rng = np.random.default_rng(seed)
    x, region = rng.normal(size=n), rng.choice(["north", "south"], n)
    logits = np.column_stack([x, -0.5 * x, 0.2 * np.ones(n)])
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = p.copy()
    south = region == "south"
    truth[south, 0] -= moved * p[south, 0]
    truth[south, 1] += moved * p[south, 0]
    codes = (rng.random(n)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    labels = [names[k] for k in codes]
    order = list(order or range(3))
    x = {"x": x, "region": region}
    return it.MulticlassSample(labels, p[:, order], x, classes=[names[k] for k in order])


@pytest.fixture(scope="module")
def sample():
    return sample_of(800, moved=0.6)


@pytest.fixture(scope="module")
def audit(sample):
    return it.audit(sample, rng=0, draws=199)


@pytest.fixture(scope="module")
def calibrated():
    return it.audit(sample_of(500, seed=3), rng=0, draws=199)


def test_where_nothing_is_rejected_there_is_nothing_to_overturn(calibrated):
    assert calibrated.robustness.untold == auditing.overturning.NOT_REJECTED
    said = "calibration is not rejected, so there is nothing to overturn"
    assert said in " ".join(str(calibrated).split())
    assert said[1:] in page(calibrated)


def test_every_surface_says_that_robustness_is_not_known_of_several_classes(audit):
    said = "probabilities of several classes cannot move one by one"
    assert audit.robustness.untold == auditing.overturning.SEVERAL_CLASSES
    facts = audit.to_dict()["robustness"]
    assert facts["untold"].startswith(said)
    assert said in facts["sentence"]
    assert said in " ".join(str(audit).split())
    assert said in audit._repr_html_()
    assert said in page(audit)
    auditing.check_json(audit.to_dict())
    without = it.audit(sample_of(120), rng=0, draws=99, robustness=False)
    assert without.to_dict()["robustness"] is None
    for text in (str(without), without._repr_html_(), page(without)):
        assert "What would overturn this" not in text


def test_the_verdict_follows_the_joint_test_and_names_the_class(audit):
    assert audit.verdict is it.Verdict.MISCALIBRATED
    assert audit.test.pvalue <= audit.alpha
    assert set(audit.shown_classes) == {"win", "tie"}
    first = audit.evidence[0]
    assert isinstance(first, auditing.ClassEvidence)
    assert first.name in ("win", "tie")
    assert repr(first.name) in audit.sentence
    (other,) = {"win", "tie"} - {first.name}
    assert repr(other) not in audit.sentence
    assert audit.sentence.count(repr(first.name)) == 3  # its level, its slope, its worst group
    assert f"the probabilities of {first.name!r} are too extreme (slope " in audit.sentence


def test_every_surface_tells_the_same(audit):
    """Text, notebook, page, JSON, Markdown and JUnit are made of one audit without withholding."""
    shown = audit
    facts = shown.to_dict()
    auditing.check_json(json.loads(json.dumps(facts)))
    made = page(facts)
    flat = " ".join(str(shown).split())
    told = {
        "text": flat,
        "notebook": unescape(shown._repr_html_()),
        "page": unescape(made),
        "markdown": unescape(render.summary_markdown(shown, "f.csv")),
        "junit": unescape(render.junit_xml(shown, "f.csv")),
    }
    for name, text in told.items():
        assert shown.verdict.value in text, name
        assert audit.sentence[:60] in text.replace("<bdi>", ""), name
    found = dict(re.findall(r'data-fact="([^"]+)" value="([^"]*)"', made))
    assert len(found) > 100
    for path, value in found.items():
        own = facts
        for step in path.split("."):
            own = own[int(step)] if isinstance(own, list) else own[step]
        assert value == ("" if own is None else json.dumps(own)), path
    for part in shown.parts:
        assert f"{part.mean.predicted:.3f} {part.mean.observed:.3f}" in flat
    assert facts["shown_classes"] == [str(name) for name in shown.shown_classes]


def test_intervals_and_pvalues_over_all_classes_agree(audit):
    own = [part.mean for part in audit.parts]
    own += [group for part in audit.parts for group in part.diagnosis.groups]
    own += [found for part in audit.parts for found in part.diagnosis.slices]
    own += list(audit.pairs.pairs)
    assert any(item.pvalue <= audit.alpha for item in own)
    for item in own:
        assert (item.pvalue <= audit.alpha) == (item.lower > 0 or item.upper < 0)


def test_a_class_is_the_binary_analysis_with_its_share_of_alpha(audit, sample):
    own = sample.one_class("tie")
    share = audit.alpha / 3
    settings = {"alpha": share, "draws": audit.draws, "rng": 0, "crossings": False}
    table = it.bias_groups(own, "region", **settings)
    found = it.bias_groups(own, "x", "region", **settings)
    part = audit["tie"]
    assert len(table) == 2
    for one, two in zip(found, part.diagnosis.groups, strict=True):
        assert (one.where, one.lower, one.upper) == (two.where, two.lower, two.upper)
        assert two.pvalue == pytest.approx(min(3 * one.pvalue, 1.0), abs=1e-12) or (
            two.pvalue == audit.alpha
        )
    assert part.mean.observed == pytest.approx(own.y.mean())
    assert part.mean.predicted == pytest.approx(own.p.mean())


def test_the_part_of_a_class_has_a_short_text(audit):
    bias = audit["tie"].mean.bias
    assert str(audit["tie"]) == f"<OutcomePart: 'tie', bias {bias:+.3f}, p 0.0005>"


def test_two_classes_are_the_binary_audit():
    two = sample_of(400, moved=0.6).one_class("win")
    p = np.column_stack([1 - two.p, two.p])
    x = {"x": two.column("x").values}
    labels = np.where(two.y == 1, "win", "other")
    several = it.MulticlassSample(labels, p, x, classes=["other", "win"])
    binary = it.Sample(two.y, two.p, x)
    settings = {"rng": 0, "draws": 99, "charts": False}
    one, other = (it.audit(own, **settings).to_dict() for own in (several, binary))
    for name in ("pvalue", "verdict", "overall", "missed", "refuted"):
        assert one[name] == other[name]
    assert one["parts"][0]["diagnosis"]["groups"] == other["parts"][0]["diagnosis"]["groups"]
    a = it.compare({"a": several, "b": several.with_predictions(p[:, ::-1])}, draws=99, rng=0)
    b = it.compare({"a": binary, "b": binary.with_predictions(p[:, 0])}, draws=99, rng=0)
    assert a.to_dict() == b.to_dict()


def test_permuting_classes_permutes_what_is_found(audit):
    order = (2, 0, 1)
    other = it.audit(sample_of(800, moved=0.6, order=order), rng=0, draws=199)
    assert other.classes == tuple(NAMES[k] for k in order)
    for part in audit.parts:
        twin = other[part.name]
        assert twin.mean == part.mean
        assert [g.to_dict() for g in twin.diagnosis.groups] == [
            g.to_dict() for g in part.diagnosis.groups
        ]
        np.testing.assert_allclose(twin.diagnosis.bias.values, part.diagnosis.bias.values)
    index = np.ix_(order, order)
    assert np.allclose(other.pairs.given, audit.pairs.given[index])
    assert np.allclose(other.pairs.expected, audit.pairs.expected[index])
    assert other.overall.mean.observed == audit.overall.mean.observed
    assert other.verdict is audit.verdict


def test_the_matrix_of_classes_is_the_double_loop(sample):
    found = class_matrix(sample, alpha=0.05, draws=199, seed=0)
    for i in range(3):
        rows = sample.codes == i
        for j in range(3):
            assert found.given[i, j] == pytest.approx(sample.p[rows, j].mean())
            expected = sum(a * b for a, b in zip(sample.p[:, i], sample.p[:, j], strict=True))
            assert found.expected[i, j] == pytest.approx(expected / sample.p[:, i].sum())
    assert found.given.sum(axis=1) == pytest.approx(1.0)
    assert found.pair("tie", "win").bias > 0


def test_a_class_that_is_taken_for_another_is_shown_with_its_group(audit):
    assert audit.pairs.pair("tie", "win").is_shown
    place = audit.pairs.places[0]
    assert (place.taken_for, place.label, str(place.where)) == ("win", "tie", "region = south")


def test_a_class_that_is_too_rare_by_a_factor_is_taken_for_none():
    """Labels of a class are thinned alike everywhere: the matrix has nothing to tell."""
    rng = np.random.default_rng(5)
    p = rng.dirichlet([2.0, 2.0, 2.0], 20_000)
    truth = np.column_stack([0.7 * p[:, 0], p[:, 1:] * (1 - 0.7 * p[:, :1]) / (1 - p[:, :1])])
    codes = (rng.random(20_000)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
    sample = it.MulticlassSample(codes, p)
    found = class_matrix(sample, alpha=0.05, draws=199, seed=0)
    row = [pair for pair in found.pairs if pair.label == 0]
    assert not any(pair.is_shown for pair in row)
    assert sample.one_class(0).y.mean() < p[:, 0].mean() - 0.05


def test_the_families_hold_their_level():
    """Any pair of classes, and any group of any class, of calibrated models."""
    pairs = groups = 0
    runs = 40
    for seed in range(runs):
        sample = sample_of(250, seed=100 + seed)
        pairs += bool(class_matrix(sample, alpha=0.2, draws=99, seed=seed).shown)
        shown = False
        for name in NAMES:
            own = sample.one_class(name)
            table = it.bias_groups(own, "region", alpha=0.2 / 3, draws=99, rng=seed)
            empty = it.bias.SliceTable(slices=(), n=own.n, regions=1, alpha=0.2 / 3, **_rest(table))
            told = multiplied(Diagnosis(None, table, empty), 3, 0.2)
            shown |= bool(told.shown_groups)
        groups += shown
    most = binom.ppf(0.999, runs, 0.2)
    assert pairs <= most
    assert groups <= most
    assert pairs + groups > 0


def _rest(table):
    known = {"slices", "n", "elapsed", "regions", "order", "alpha"}
    return {
        name: getattr(table, name)
        for name in it.bias.SliceTable.__dataclass_fields__
        if name not in known
    }


def test_a_rejection_without_any_class_says_so(calibrated):
    assert not any(part.diagnosis.shown for part in calibrated.parts)
    test = replace(calibrated.test, score=1e9)
    told = judged_again(calibrated, test)
    assert told.verdict in (it.Verdict.SIZE_NOT_ESTABLISHED, it.Verdict.WITHIN_TOLERANCE)
    assert not told.is_attributed
    assert "no single class or finding stands out" in render.sentence_of(told)


def test_a_class_that_is_shown_where_the_test_does_not_reject_is_inconclusive(audit):
    test = replace(audit.test, score=-1e9, impossible=0)
    assert test.pvalue == 1
    told = judged_again(audit, test)
    assert told.verdict is it.Verdict.INCONCLUSIVE
    assert told.is_contrary
    assert "shown by itself: 'tie' is too low" in render.sentence_of(told) or (
        "shown by itself: 'win' is too high" in render.sentence_of(told)
    )


def judged_again(audit, test):
    limits = {"alpha": audit.alpha, "tolerance": audit.tolerance}
    return judge(test, audit.parts, audit.missed, (), **limits)


def test_the_gate_has_a_check_for_each_class(audit, calibrated):
    closed, open_ = auditing.gate(audit), auditing.gate(calibrated)
    assert closed.closed
    assert not open_.closed
    outcome = {check.value.name: check.outcome for check in closed.checks if check.key == "class"}
    assert outcome == {"win": "failed", "tie": "failed", "loss": "passed"}


def test_what_is_missed_shrinks_with_the_root_of_the_rows(calibrated):
    many = it.audit(sample_of(2_000, seed=3), rng=0, draws=99)
    assert many.missed.groups.everywhere == pytest.approx(
        calibrated.missed.groups.everywhere / 2, rel=0.05
    )


def test_groups_of_few_rows_are_withheld_of_every_class(audit):
    least = 240  # above the rows of a quarter
    shown = audit.disclosed(least)
    for part in shown.parts:
        for group in (*part.diagnosis.groups, *part.diagnosis.slices):
            own = audit.sample.one_class(part.name).points
            assert group.where.rows(own).sum() >= least
    assert shown.disclosed(10).withheld == shown.withheld
    assert shown.verdict is audit.verdict
    assert "withheld" in str(shown)


@pytest.fixture(scope="module")
def rare():
    """Four classes, of which one has seven rows."""
    rng = np.random.default_rng(5)
    n, names = 600, ["common", "usual", "scarce", "rare"]
    p = rng.dirichlet([6, 4, 1, 0.05], size=n)
    p = (p + 1e-3) / (p + 1e-3).sum(axis=1, keepdims=True)
    codes = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    codes[codes == 3] = 0
    codes[::90] = 3
    x = {"region": rng.choice(["north", "south", "east"], n), "age": rng.normal(size=n)}
    sample = it.MulticlassSample([names[k] for k in codes], p, x, classes=names)
    tasks = [
        it.tasks.prevalence(label="rare"),
        it.tasks.prevalence(label="scarce"),
        it.tasks.prevalence(label="common"),
    ]
    return it.audit(sample, rng=0, draws=99, tasks=tasks)


def test_every_rendering_of_withheld_classes_can_be_read(rare):
    shown = rare.disclosed(10)
    text, html, card = str(shown), unescape(page(shown)), shown._repr_html_()
    for where in (text, html, card):
        assert "withheld" in where
        assert "nan" not in re.sub(
            r"<style>.*?</style>|<script>.*?</script>", "", where, flags=re.S
        )
    assert "rows and rates of" in text
    assert "7 rows" not in text.replace(",", "")
    assert 'value="7"' not in html
    assert str(shown.test)
    assert str(shown.parts[3])
    assert shown.to_arrow().num_rows
    assert max(map(len, render.as_text(shown, 60).splitlines())) <= 60


def test_models_are_compared_by_their_losses(sample):
    flat = sample.with_predictions(0.3 * sample.p + 0.7 / 3)
    found = it.compare({"a": sample, "flat": flat}, draws=99, rng=0)
    gap = found.differences[0]
    own = np.eye(3)[sample.codes]
    squares = [((own - s.p) ** 2).sum(axis=1) / 2 for s in (sample, flat)]
    assert gap.value == pytest.approx((squares[0] - squares[1]).mean())
    half = 1.963 * (squares[0] - squares[1]).std(ddof=1) / np.sqrt(sample.n)
    assert gap.upper - gap.value == pytest.approx(half, rel=1e-3)
    assert found["a"].test.pvalue == it.multiclass_test(sample, draws=99, rng=0).pvalue
    for text in (str(found), found._repr_html_()):
        assert "log loss" in text
    with pytest.raises(InputError, match="different classes"):
        it.compare({"a": sample, "b": sample_of(800, moved=0.6, order=(2, 0, 1))})


def test_a_model_of_several_classes_is_audited():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 600)]
    model = LogisticRegression().fit(X[:300], y[:300])
    found = it.audit(model, X[300:], y[300:], rng=0, draws=199)
    assert found.classes == ("a", "b", "c")
    assert found.n == 300


def test_what_is_for_two_classes_is_refused_in_words(sample):
    with pytest.raises(InputError, match="grades is for two classes"):
        it.audit(sample, grades="region", draws=99)
    with pytest.raises(InputError, match="no covariate 'regoin'"):
        it.audit(sample, on=["regoin"], draws=99)
    with pytest.raises(InputError, match="there is no class 'tje'"):
        it.audit(sample, draws=59, rng=0, on=["region"])["tje"]


@pytest.mark.parametrize("width", [40, 60, 88])
def test_lines_fit_a_narrow_terminal(audit, width):
    lines = render.as_text(audit, width).splitlines()
    assert max(map(len, lines)) <= width
    assert lines.index(next(line for line in lines if line.startswith("VERDICT"))) < 12


def test_names_from_the_file_cannot_become_markup():
    names = ("<script>alert(1)</script>", "a|b", "@you")
    found = it.audit(sample_of(300, names=names), draws=79, rng=0)
    made = page(found)
    assert "<script>alert" not in made
    assert "<script>alert" not in found._repr_html_()
    assert "a|b" not in render.summary_markdown(found, "f")


def test_all_parts_are_rows_of_a_table(audit):
    table = audit.to_arrow().to_pylist()
    kinds = {row["part"] for row in table}
    assert {"verdict", "test", "overall", "class", "group", "taken for"} <= kinds
    assert sum(row["part"] == "class" for row in table) == 3


def test_rows_of_clusters_are_audited_by_the_design(sample):
    rows = {column.name: column.values for column in sample.columns}
    given = {"classes": NAMES, "cluster": np.arange(800) // 10}
    labels = [NAMES[k] for k in sample.codes]
    found = it.audit(it.MulticlassSample(labels, sample.p, rows, **given), draws=199, rng=0)
    assert found.test.clusters == 80
    assert found.missed.groups is None
    assert np.isnan(found.overall.pvalue)
    assert "not known" in str(found)
    assert str(found).startswith("800 rows in 80 clusters, 3 classes; ")
    few = {"classes": NAMES, "cluster": np.arange(800) // 200}
    refused = it.audit(it.MulticlassSample(labels, sample.p, rows, **few), draws=199, rng=0)
    assert refused.verdict is it.Verdict.INCONCLUSIVE
    assert "no p-value" in refused.sentence
    assert str(refused).count(" none\n") == len(NAMES)


def test_a_row_of_weight_0_counts_nothing_even_where_its_label_was_impossible():
    p = np.tile([0.5, 0.3, 0.2], (60, 1))
    p[0] = [1.0, 0.0, 0.0]
    y, w = np.arange(60) % 3, np.ones(60)
    y[0], w[0] = 1, 0.0
    rows = it.MulticlassSample(y, p, weights=w)
    squares, logs = class_losses(rows)
    assert np.isinf(logs[0])
    assert mean_loss(rows, logs) == pytest.approx(logs[1:].mean())
    assert mean_loss(rows, squares) == pytest.approx(squares[1:].mean())


def test_a_rare_class_in_clusters_is_audited():
    """Forty clusters of five rows, one class with 3 % of them: an answer, and not a refusal."""
    rng = np.random.default_rng(2)
    p = rng.dirichlet([4, 4, 1], 200) * [1, 1, 0.3]
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random(200)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    x = {"x": rng.normal(size=200)}
    rows = it.Sample(y, p, x, classes=[0, 1, 2], cluster=np.arange(200) // 5)
    found = it.audit(rows, draws=39, rng=0)
    assert 0 < found.test.pvalue <= 1
    assert found.test.refused is None
    assert "approximate, by clusters" in str(found).replace("\n    ", " ")
    assert found.to_dict()["test"]["clusters"] == 40
