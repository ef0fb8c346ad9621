"""Two audits of other rows: differences, their intervals, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import itrust as it
from itrust._core import InputError
from itrust.auditing import Audit, Drift, drifting
from itrust.render import as_html, as_text
from oracles import plausible

TASKS = ["mean(age)", 'prevalence(region == "south")']
SETTINGS = {"draws": 79, "rng": 0, "charts": False}


def town(seed: int, n: int = 600, **more: object) -> it.Sample:
    return it.simulate.survey(n, rng=seed, trustworthy=True, **more).sample


def audited(sample: it.Sample, tasks: list[str] = TASKS) -> Audit:
    return it.audit(sample, tasks, **SETTINGS)


@pytest.fixture(scope="module")
def first() -> Audit:
    return audited(town(0))


@pytest.fixture(scope="module")
def second() -> Audit:
    """Of the same law, but the south has changed."""
    rows = town(1)
    south = rows.column("region").values == rows.column("region").levels.index("south")
    y = np.where(south, np.random.default_rng(0).random(rows.n) < 0.97, rows.y)
    return audited(with_labels(rows, y))


def columns_of(sample: it.Sample, rows: np.ndarray | slice = slice(None)) -> dict[str, object]:
    return {
        c.name: [c.levels[int(v)] for v in c.values[rows]] if c.is_category else c.values[rows]
        for c in sample.columns
    }


def with_labels(sample: it.Sample, y: np.ndarray, p: np.ndarray | None = None) -> it.Sample:
    return it.Sample(y.astype(float), sample.p if p is None else p, columns_of(sample))


@pytest.fixture(scope="module")
def drift(first, second) -> Drift:
    return it.drift(first, second, names=("spring", "autumn"))


def one(drift: Drift, compared: str, name: str = ""):
    (found,) = [c for c in drift.changes if c.compared == compared and c.name == name]
    return found


def by_moments(audit: Audit, what) -> tuple[float, float]:
    """Mean and its standard error by the textbook."""
    values = what(audit.sample)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


@pytest.mark.parametrize(
    ("compared", "what"),
    [
        ("brier", lambda s: (s.y - s.p) ** 2),
        ("log_loss", lambda s: -np.log(np.where(s.y == 1, s.p, 1 - s.p))),
        ("predicted", lambda s: s.p),
        ("observed", lambda s: s.y),
        ("mean_bias", lambda s: s.y - s.p),
    ],
)
def test_scores_and_means_are_compared_by_welchs_test(first, second, compared, what):
    found = one(it.drift(first, second), compared)
    (a, error_a), (b, error_b) = by_moments(first, what), by_moments(second, what)
    assert (found.first, found.second) == pytest.approx((a, b))
    assert found.difference == pytest.approx(b - a)
    assert found.stderr == pytest.approx(np.hypot(error_a, error_b), rel=0.03)
    tail = stats.ttest_ind(what(second.sample), what(first.sample), equal_var=False).pvalue
    assert found.unadjusted_pvalue == pytest.approx(tail, abs=0.02)


def test_groups_are_those_of_the_audits_by_name(drift, first, second):
    found = one(drift, "group_bias", "region = south")
    assert found.first == first.diagnosis.groups["region = south"].bias
    assert found.second == second.diagnosis.groups["region = south"].bias
    rows = [found.where.rows(own.sample.points) for own in (first, second)]
    residuals = [
        (own.sample.y - own.sample.p)[held] for own, held in zip((first, second), rows, strict=True)
    ]
    naive = np.hypot(*(e.std(ddof=1) / np.sqrt(e.size) for e in residuals))
    assert found.stderr == pytest.approx(naive, rel=0.05)
    assert found in drift.shown


def test_numbers_are_compared_from_labels_and_in_their_bias(drift, first, second):
    number, bias = (one(drift, k, "mean(age)") for k in ("number", "number_bias"))
    assert number.second == second.tasks[0].from_labels
    assert bias.difference == pytest.approx(second.tasks[0].bias - first.tasks[0].bias)
    assert bias.stderr == pytest.approx(np.hypot(first.tasks[0].stderr, second.tasks[0].stderr))


def test_marks_and_intervals_agree_for_all_comparisons_together(drift):
    assert drift.comparisons == len(drift.changes) == 12
    for part in drift.changes:
        excludes = part.lower > 0 or part.upper < 0
        assert excludes == (part.pvalue <= drift.alpha) == (part in drift.shown)
        assert part.pvalue == pytest.approx(min(1.0, 12 * part.unadjusted_pvalue))
        assert part.lower < part.difference < part.upper


def test_turned_round_it_is_the_same_with_other_signs(drift, first, second):
    turned = it.drift(second, first)
    for part, other in zip(drift.changes, turned.changes, strict=True):
        assert other.difference == pytest.approx(-part.difference)
        assert (other.lower, other.upper) == pytest.approx((-part.upper, -part.lower))
        assert other.pvalue == pytest.approx(part.pvalue)


def test_every_surface_says_that_it_is_no_monitor(drift):
    for told in (str(drift), as_html(drift), as_text(drift, 40)):
        assert "no monitor" in " ".join(told.split())
        assert "south" in told
    assert max(map(len, as_text(drift, 40).splitlines())) <= 40
    assert "show a change" in drift.to_dict()["sentence"]
    assert drift.to_arrow().num_rows == 12
    assert "no monitor" in drift.plot().figure_.get_suptitle()


def test_without_a_change_words_do_not_say_that_nothing_changed(first):
    told = str(it.drift(first, audited(town(7))))
    assert "does not show that nothing changed" in " ".join(told.split())


def test_what_an_audit_withholds_is_not_compared(first, second):
    few = second.diagnosis.groups["region = south"].rows + 1
    shown = it.drift(first, second.disclosed(few))
    assert "region = south" in shown.only_first
    hidden = one(shown, "number", TASKS[1])
    assert hidden.reason == drifting.WITHHELD
    assert np.isnan([hidden.first, hidden.second, hidden.difference]).all()
    assert "withholds" in str(shown)
    assert shown.comparisons == sum(part.reason is None for part in shown.changes)


def test_numbers_that_one_audit_lacks_are_named(first):
    alone = it.drift(first, audited(town(3), []))
    assert set(TASKS) <= set(alone.only_first)
    assert "only 'first' shows it" in " ".join(str(alone).split())


def test_an_infinite_log_loss_is_not_compared(first):
    rows = town(5)
    impossible = rows.p.copy()
    impossible[np.flatnonzero(rows.y == 1)[0]] = 0.0
    other = audited(with_labels(rows, rows.y, impossible))
    found = one(it.drift(first, other), "log_loss")
    assert found.reason == drifting.INFINITE
    assert "called impossible" in str(it.drift(first, other))


def test_what_cannot_be_compared_is_refused(first):
    with pytest.raises(InputError, match="both audits are of the same rows"):
        it.drift(first, first)
    narrow = it.audit(town(2), on=["region"], **SETTINGS)
    with pytest.raises(InputError, match="judged on other covariates: 'age'"):
        it.drift(first, narrow)
    with pytest.raises(InputError, match="two different names"):
        it.drift(first, audited(town(9), []), names=("a", "a"))
    with pytest.raises(InputError, match="True or False"):
        it.drift(first, audited(town(9), []), same_model="no")
    with pytest.raises(InputError, match="audit of two labels"):
        it.drift(first, town(0))


def test_another_model_is_said_so(first, second):
    assert "the models differ" in str(it.drift(first, second, same_model=False))


def test_rows_of_a_design_count_by_clusters(first):
    """Every row four times in a cluster: the standard error is that of the clusters."""
    rows, again = town(11, 300), np.repeat(np.arange(300), 4)
    copies = it.Sample(rows.y[again], rows.p[again], columns_of(rows, again), cluster=again)
    once, many = audited(rows, []), audited(copies, [])
    found = [one(it.drift(first, own), "mean_bias") for own in (once, many)]
    assert found[1].difference == pytest.approx(found[0].difference)
    assert found[1].stderr == pytest.approx(found[0].stderr, rel=0.02)


def lightly(template: Audit, sample: it.Sample) -> Audit:
    """An audit of other rows with the parts that drift reads, made by hand."""
    overall = replace(
        template.overall,
        brier=it.scores.brier(sample),
        log_loss=it.scores.log_loss(sample),
        mean=replace(
            template.overall.mean, predicted=float(sample.p.mean()), observed=float(sample.y.mean())
        ),
    )
    groups = template.diagnosis.groups
    made = []
    for group in groups:
        held = group.where.rows(sample.points)
        rates = {"predicted": sample.p[held].mean(), "observed": sample.y[held].mean()}
        made.append(replace(group, rows=int(held.sum()), **rates))
    diagnosis = replace(template.diagnosis, groups=replace(groups, groups=tuple(made)))
    parts = (replace(template.parts[0], diagnosis=diagnosis),)
    return replace(template, sample=sample, n=sample.n, overall=overall, parts=parts)


def test_an_audit_made_by_hand_has_the_values_of_a_real_one(first, second):
    made = lightly(first, second.sample)
    real = it.drift(first, second).changes[:8]
    assert [c.pvalue for c in it.drift(first, made).changes[:8]] == pytest.approx(
        [c.pvalue for c in real]
    )


@pytest.mark.slow
def test_two_samples_of_one_law_seldom_differ():
    """Any of all comparisons, at alpha 0.1; events are rare (3 %) in half of the runs."""
    template = audited(town(0), [])
    false = []
    for run in range(80):
        pair = []
        for side in range(2):
            rows = town(10_000 + 2 * run + side, 400)
            p = rows.p if run % 2 else 0.06 * rows.p
            drawn = np.random.default_rng(run * 2 + side).random(rows.n) < p
            pair.append(lightly(template, with_labels(rows, drawn, p)))
        false.append(bool(it.drift(*pair, alpha=0.1).shown))
    assert plausible(sum(false), len(false), 0.1, doubt=0.02) or np.mean(false) < 0.1
