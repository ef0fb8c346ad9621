"""Disclosure control: no label follows from what is shown; same rows, same numbers."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import itrust as it
from itrust.auditing import Audit, Overlooked
from itrust.bias import PartBias
from itrust.data import Cell, CellKeys, Everywhere, Level
from itrust.render import as_html, as_text, junit_xml, page, summary_markdown
from itrust.watch import watch_report

LEAST = 10


def test_counts_are_off_by_whole_numbers_of_mean_0_at_most_4():
    off = np.array([Cell(500, key).count - 500 for key in range(4_000)])
    assert (np.abs(off).max(), Cell(0, 1).count) == (4, 0)
    assert abs(off.mean()) < 4 * off.std() / math.sqrt(off.size)
    assert min(Cell(1, key).count for key in range(200)) >= 1


@pytest.mark.parametrize("rows", [10, 99, 100, 250, 400, 5_000])
def test_means_are_off_by_at_most_4_rows_and_a_hundredth_of_100_rows(rows):
    off = np.array([Cell(rows, key).rate(0.5) - 0.5 for key in range(2_000)])
    assert abs(off.mean()) < 4 * off.std() / math.sqrt(off.size)
    assert np.abs(off).max() <= min(4 / rows, 0.01 if rows >= 100 else 1)
    assert off.std() > 0.2 / rows
    assert {Cell(rows, key).rate(0.0) >= 0 for key in range(99)} == {True}


def test_keys_belong_to_rows_and_not_to_their_places():
    sample = simulated(0, 80)[0]
    order = np.random.default_rng(1).permutation(sample.n)
    keys, moved = CellKeys.of(sample, 5), CellKeys.of(sample.take(order), 5)
    some = np.arange(sample.n) < 30
    assert keys.cell(some) == moved.cell(some[order])
    assert CellKeys.of(sample, 5, seed=1).cell(some) != CellKeys.of(sample, 5, seed=2).cell(some)
    assert CellKeys.of(sample, 5, seed=1).cell(some) == CellKeys.of(sample, 9, seed=1).cell(some)
    other = it.Sample(1 - sample.y, sample.p, {c.name: c.values for c in sample.columns})
    assert CellKeys.of(other, 5, seed=1).cell(some) != CellKeys.of(sample, 5, seed=1).cell(some)


# What an attacker forms who knows every covariate, every prediction and every exact count.


def simulated(seed, n=None):
    """Rows of two labels or three classes, with tasks whose conditions differ in one row."""
    rng = np.random.default_rng([7, seed])
    n = n or int(rng.choice([60, 150, 400]))
    x = {
        "g": rng.choice(["a", "b", "c"], n, p=[0.5, 0.35, 0.15]),
        "h": rng.choice(["u", "v"], n),
        "rank": rng.permutation(n).astype(float),
    }
    if seed % 3 == 2:
        p = rng.dirichlet([2, 2, 2], n)
        y = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
        sample, of = it.Sample(y, p, x), "1 | "
    else:
        p = rng.choice([0.2, 0.5, 0.7], n) if seed % 3 else rng.uniform(0.05, 0.95, n)
        sample, of = it.Sample(rng.random(n) < p, p, x), ""
    ends = rng.choice(np.arange(20, n - 10), 2, replace=False)
    tasks = [f"prevalence({of}rank < {end + more})" for end in ends for more in (0, 1)]
    return sample, [*tasks, f"prevalence({of}g == 'a') - prevalence({of}g == 'b')"]


def told_sums(audit, sample):
    """Sets of rows with the sums of labels that surfaces tell of them, by outcome."""
    whole = np.ones(sample.n, dtype=bool)
    for k, part in enumerate(audit.parts):
        one = sample.outcome(k) if sample.several else sample

        def told(where, rate, k=k, one=one):
            inside = whole if isinstance(where, Everywhere) else where.rows(one.points)
            return k, np.asarray(inside), rate * inside.sum()

        yield told(Everywhere(), part.mean.observed)
        for group in part.diagnosis.groups or ():
            yield told(group.where, group.observed)
        for chart in part.charts.maps if part.charts else ():
            places = [(a, u) for u in chart.up.where or () for a in chart.across.where or ()]
            for (across, up), bias in zip(places, chart.bias, strict=False):
                if bias is not None:
                    inside = (across & up).rows(one.points)
                    yield told(across & up, bias + one.p[inside].mean())
        if audit.validation is not None and part.charts is not None:
            ends = np.cumsum([0, *(grade.rows for grade in audit.validation.grades)])
            order = np.argsort(one.p, kind="stable")
            for grade, begin, end in zip(audit.validation.grades, ends[:-1], ends[1:], strict=True):
                inside = np.isin(np.arange(sample.n), order[begin:end])
                yield k, inside, grade.observed * (end - begin)
    for result in audit.tasks:
        for leaf in result.task.leaves() if "-" not in result.name else ():
            k = 0 if leaf.label is None else audit.classes.index(leaf.label)
            inside = leaf.where.rows(sample.points)
            yield k, np.asarray(inside), result.from_labels * inside.sum()


def exact_labels(sums, sample):
    """Labels of single rows, of sums of labels that are subtracted: rows and what they would be."""
    found = []
    for k, one, total in sums:
        y = (sample.codes == (k if sample.several else 1)).astype(float)
        parts = [(inside, own) for j, inside, own in sums if j == k and not (inside & ~one).any()]
        pairs = [(a, u) for a, u in parts if 0 < one.sum() - a.sum() <= 1]
        pairs += [
            (a | b, u + v)
            for i, (a, u) in enumerate(parts)
            for b, v in parts[:i]
            if not (a & b).any() and 0 < one.sum() - a.sum() - b.sum() <= 1
        ]
        for inside, own in pairs:
            row = int(np.argmax(one & ~inside))
            if abs(total - own - y[row]) < 1e-6:
                found.append(row)
    return found


def attacked(seeds):
    """Labels found in audits that are shown as they are, and in those that are disclosed."""
    plain = hidden = 0
    for seed in seeds:
        sample, tasks = simulated(seed)
        found = it.audit(sample, tasks, draws=159, rng=seed, charts=seed % 10 == 0)
        plain += len(exact_labels(list(told_sums(found, sample)), sample))
        shown = found.disclosed(LEAST)
        hidden += len(exact_labels(list(told_sums(shown, sample)), sample))
    return plain, hidden


def test_no_difference_of_what_is_shown_is_a_label():
    plain, hidden = attacked(range(9))
    assert plain >= 9  # as they are, differences are labels
    assert hidden == 0


@pytest.mark.nightly
def test_no_difference_of_what_is_shown_is_a_label_in_200_designs():
    plain, hidden = attacked(range(200))
    assert plain >= 200
    assert hidden == 0


def test_estimates_on_a_population_and_watches_tell_no_label_either():
    for seed in (0, 1, 3):
        sample, tasks = simulated(seed, 300)
        x = {column.name: column for column in sample.columns}
        population = it.Population(sample.p, {"rank": x["rank"].values})
        asked = [it.tasks.parse(text) for text in tasks[:4]]
        found = it.tasks.estimate_tasks(asked, population, sample, rng=0)
        watch = it.Watch.start(simulated(seed + 30, 300)[0]).update(sample)
        for shows, least in ((True, None), (False, LEAST)):
            sums = []
            for own in found.disclosed(least):
                (leaf,) = own.task.leaves()
                inside = leaf.where.rows(sample.points)
                sums.append((0, np.asarray(inside), own.labelled.value * inside.sum()))
            assert bool(exact_labels(sums, sample)) is shows
            levels = watch_report(watch, min_cell=least).levels
            excess = [own.excess + sample.p[own.where.rows(sample.points)].sum() for own in levels]
            whole = [abs(own - round(own)) < 1e-6 for own in excess]
            assert all(whole) if shows else not any(whole)
            (record,) = watch_report(watch, min_cell=least).history
            events = record.mean_label * sample.n
            assert (abs(events - round(events)) < 1e-6) is shows


def test_groups_of_100_rows_and_more_move_by_at_most_a_hundredth():
    for seed in (0, 1, 2):
        sample, tasks = simulated(seed, 900)
        found = it.audit(sample, tasks, draws=159, rng=0, charts=False)
        shown = found.disclosed(LEAST)
        for before, after in zip(found.parts, shown.parts, strict=True):
            names = {group.name: group for group in before.diagnosis.groups}
            for own in (*after.diagnosis.groups, after.mean):
                exact = names[own.name] if isinstance(own, PartBias) else before.mean
                for name in ("observed", "predicted", "bias"):
                    assert abs(getattr(own, name) - getattr(exact, name)) <= 0.01
                assert own.lower <= exact.lower + 1e-12 or exact.lower > 0
                assert own.upper >= exact.upper - 1e-12 or exact.upper < 0
                assert (own.pvalue <= 0.05) == (exact.pvalue <= 0.05)
        assert shown.verdict is found.verdict
        assert shown.test.pvalue == found.test.pvalue


# One truth, also where it is noisy.


@pytest.mark.parametrize("seed", [0, 2])
def test_the_same_rows_show_the_same_numbers_on_every_surface(seed):
    sample, _ = simulated(seed, 400)
    of = "1 | " if sample.several else ""
    tasks = [f"prevalence({of}g == 'a')", f"prevalence({of}h == 'u')", f"prevalence({of[:-3]})"]
    found = it.audit(sample, tasks, draws=159, rng=0)
    shown = found.disclosed(LEAST)
    part = shown.parts[1 if sample.several else 0]
    by_name = {group.name: group for group in part.diagnosis.groups}
    g, h, everyone = shown.tasks
    for group, task in ((by_name["g = a"], g), (by_name["h = u"], h), (part.mean, everyone)):
        both = pytest.approx((group.observed, group.predicted), abs=1e-12)
        assert (task.from_labels, task.plugin) == both
    for item in shown.evidence:
        own = getattr(item, "item", item)
        if isinstance(own, PartBias) and own.where in {g.where for g in by_name.values()}:
            name = getattr(item, "name", part.name)
            groups = next(p for p in shown.parts if p.name == name).diagnosis.groups
            assert own in tuple(groups)
    other = it.audit(sample, tasks[:1], draws=159, rng=5, charts=False).disclosed(LEAST)
    assert other.tasks[0].from_labels == g.from_labels
    again = found.disclosed(LEAST)
    assert again.to_dict() == shown.to_dict()
    assert found.disclosed(LEAST, seed=3).tasks[0].from_labels != g.from_labels


def test_what_a_map_tells_of_two_levels_is_what_a_task_tells():
    sample, _ = simulated(3, 400)
    shown = it.audit(sample, ['prevalence(g == "a" and h == "u")'], draws=159, rng=0).disclosed(5)
    (chart,) = (c for c in shown.charts.maps if {c.across.name, c.up.name} == {"g", "h"})
    both = Level("g", "a"), Level("h", "u")
    places = [{a, u} for u in chart.up.where for a in chart.across.where]
    assert chart.bias[places.index(set(both))] == pytest.approx(shown.tasks[0].bias, abs=1e-4)


def test_nothing_changes_where_nobody_asked():
    sample, tasks = simulated(1, 150)
    found = it.audit(sample, tasks, draws=79, rng=0)
    assert found.disclosed(None) is found
    assert page.page(found) == page.page(found.to_dict())
    assert found.to_dict()["withheld"] is None
    assert "Disclosure control was not applied" in page.page(found)


def test_what_is_added_after_disclosure_is_disclosed_too_and_never_with_less_care():
    sample, tasks = simulated(0, 400)
    found = it.audit(sample, tasks, draws=79, rng=0, charts=False)
    other = simulated(9, 400)[0]
    table = it.recalibrate.compare([it.recalibrate.Platt()], other, sample, draws=79, rng=0)
    before = found.extended(recalibration=table).disclosed(LEAST)
    after = found.disclosed(LEAST).extended(recalibration=table)
    assert before.to_dict() == after.to_dict()
    assert after.recalibration[0].brier != table[0].brier
    assert after.disclosed(2).to_dict() == after.to_dict()
    assert (
        after.disclosed(200).to_dict()
        == found.extended(recalibration=table).disclosed(200).to_dict()
    )


# Sets of few rows.


@pytest.fixture(scope="module")
def rare() -> Audit:
    rng = np.random.default_rng(5)
    n = 1_200
    place = rng.choice(["north", "south", "centre"], n).astype(object)
    place[:6] = "Tinyville"
    p = rng.uniform(0.2, 0.8, n)
    x = {"place": place, "age": rng.integers(20, 80, n)}
    y = rng.random(n) < np.clip(p + 0.2 * (x["age"] > 60), 0, 1)
    return it.audit(it.Sample(y, p, x), ["mean(age)"], draws=99, rng=0)


RENDERINGS = {
    "json": lambda audit: json.dumps(audit.to_dict()),
    "terminal": as_text,
    "notebook": as_html,
    "page": page.page,
    "markdown": lambda audit: summary_markdown(audit, "file"),
    "junit": lambda audit: junit_xml(audit, "file"),
    "table": lambda audit: str(audit.to_arrow().to_pylist()),
}


@pytest.mark.parametrize("name", RENDERINGS)
def test_groups_of_few_rows_are_in_no_rendering(name, rare):
    assert any("Tinyville" in group.name for group in rare.diagnosis.groups)
    assert any("Tinyville" in found.name for found in rare.test.findings)
    assert "Tinyville" not in RENDERINGS[name](rare.disclosed(LEAST))


def test_notes_and_refusals_name_no_level_of_few_rows():
    rng = np.random.default_rng(2)
    n = 600
    region = np.where(np.arange(n) < 4, "aaisle", rng.choice(["north", "south"], n))
    age, p = rng.uniform(20, 80, n), rng.uniform(0.2, 0.8, n)
    sample = it.Sample(rng.random(n) < p, p, {"region": region, "age": age})
    found = it.audit(sample, ["coef(age ; age + region)"], draws=79, rng=0, charts=False)
    assert "aaisle" in str(found)
    assert "aaisle" not in str(found.disclosed(LEAST))
    tasks = [it.tasks.parse(text) for text in ("prevalence()", "mean(age | region == 'aaisle')")]
    few = it.Sample(
        np.where(np.arange(n) < 4, False, sample.y > 0), p, {"region": region, "age": age}
    )
    population = it.Population(p, {"region": region, "age": age})
    told = it.tasks.estimate_tasks(tasks, population, few, refusals="keep").disclosed(LEAST)
    assert [str(task) for task in told.withheld] == [str(tasks[1])]
    assert not told.refused


def test_what_was_left_out_is_counted(rare):
    shown = rare.disclosed(LEAST)
    hidden = shown.withheld
    assert len(rare.diagnosis.groups) - len(shown.diagnosis.groups) == 1
    assert hidden.findings == len(rare.test.findings) - len(shown.test.findings) > 0
    assert hidden.total >= 1 + hidden.findings
    assert "seed" not in hidden.to_dict()
    text = " ".join(page.page(rare, min_cell=LEAST).split())
    assert f"{hidden.total} results rest on fewer than 10 rows" in text
    assert f"{hidden.total} results on fewer than 10 rows withheld" in " ".join(str(shown).split())
    assert rare.withheld is None  # the audit itself is as it was
    assert len(rare.diagnosis.groups) == 4


def test_points_of_curves_and_maps_rest_on_enough_rows(rare):
    def near(audit):
        charts = audit.charts
        parts = [part for curve in charts.curves for part in curve.parts] + list(charts.maps)
        pairs = [zip(part.bias, part.neighbours, strict=True) for part in parts]
        return [size for some in pairs for bias, size in some if bias is not None]

    assert min(near(rare)) < 60 - 4 <= min(near(rare.disclosed(60)))


def test_no_finding_or_region_of_few_rows_is_named(rare):
    def rows(where):
        return int(where.rows(rare.sample.points).sum())

    least = 1 + min(rows(own.where) for own in rare.missed.detectable.pairs)
    shown = rare.disclosed(least)
    assert min(rows(found.where) for found in rare.test.findings) < least
    assert min(rows(found.where) for found in shown.test.findings) >= least
    found = shown.missed.detectable
    assert min(rows(region.where) for region in (*found.regions, *found.pairs)) >= least
    small = next(own for own in rare.missed.detectable.pairs if rows(own.where) < least)
    missed = Overlooked(0.2, small.where, small.share)
    judged = replace(rare, judgement=replace(rare.judgement, overlooked=missed))
    assert judged.disclosed(least).judgement.overlooked.where is None


def test_the_number_of_checks_is_that_of_the_test(rare):
    checks = len(rare.test.findings)
    shown = rare.disclosed(LEAST)
    assert len(shown.test.findings) < checks == shown.test.checks
    assert f"{checks} checks, p-values adjusted" in " ".join(as_text(shown).split())


def test_no_number_of_rows_is_refused(rare):
    for wrong in (0, True, 2.5, "ten"):
        with pytest.raises(it.InputError, match="min_cell"):
            rare.disclosed(wrong)


def test_a_large_group_keeps_its_name_beside_a_small_one_that_begins_it():
    rng = np.random.default_rng(0)
    g = np.array(["White"] * 5 + ["White British"] * 300 + ["Other"] * 295, dtype=object)
    p = np.full(600, 0.5)
    y = rng.random(600) < np.where(g == "White British", 0.85, 0.45)
    found = it.audit(it.Sample(y, p, {"g": g}), draws=199, rng=0)
    told = json.dumps(found.disclosed(LEAST).to_dict())
    assert "g = White British" in told
    assert not re.search(r"White(?! British)", told)


def test_a_class_of_few_rows_is_told_by_its_prediction_alone():
    rng = np.random.default_rng(4)
    p = rng.dirichlet([6, 4, 0.05], 400)
    y = (rng.random((400, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    y[:6] = 2
    sample = it.Sample(y, p, {"g": rng.choice(["a", "b"], 400)})
    shown = it.audit(sample, draws=159, rng=0).disclosed(40)
    few = shown.parts[2]
    assert few.rows is None
    assert math.isnan(few.mean.observed)
    assert not few.diagnosis.groups.groups
    assert not few.diagnosis.slices.slices
    assert not few.curve.rows.size
    assert all(2 not in (pair.label,) for pair in shown.pairs.pairs)
    for text in (str(shown), page.page(shown), as_html(shown), summary_markdown(shown, "f")):
        assert "withheld" in text


def test_no_noise_is_known_to_who_lacks_the_seed():
    """Else whoever reads a page could try which exact number gives the one that is shown."""
    sample, tasks = simulated(3, 400)
    found = it.audit(sample, tasks, draws=159, rng=0)
    one, other = (found.disclosed(5, seed=seed).to_dict() for seed in (1, 2))

    def told(facts):
        part = facts["parts"][0]
        charts = part["charts"]
        points = [own for curve in charts["curves"] for own in curve["parts"]] + charts["maps"]
        yield from [part["curve"]["observed"], [own["bias"] for own in points]]
        yield [own["observed"] for own in facts["validation"]["grades"]]
        yield [own["true_positives"] for own in facts["validation"]["decision"]]
        yield [own["observed"] for own in part["diagnosis"]["groups"]["groups"]]
        yield [own["from_labels"] for own in facts["tasks"]]
        yield from [charts["histogram"]["counts"], facts["overall"]["brier"]]

    for first, second in zip(told(one), told(other), strict=True):
        assert first != second


def test_what_is_shown_in_full_would_tell_labels_and_is_not():
    """Sixteen digits of a function of the labels tell many labels at once, whatever the seed."""
    whole = it.audit(simulated(0, 400)[0], draws=99, rng=0, charts=False)
    audit = whole.disclosed(10, seed=7)
    facts = audit.to_dict()
    assert audit.test.pvalue == whole.test.pvalue == facts["pvalue"]
    told = [own["pvalue"] for own in facts["validation"]["statistics"] if own["pvalue"] is not None]
    assert told
    assert all(float(f"{p:.2g}") == pytest.approx(p, rel=1e-9) for p in told)
    assert float(f"{facts['test']['score']:.3g}") == facts["test"]["score"]
    assert "seed" not in repr(audit.withheld)


def test_all_ways_to_write_a_mean_carry_one_noise():
    x = {"age": np.arange(300.0), "region": np.repeat(["s", "t"], 150)}
    sample = it.Sample(np.tile([0, 1, 1], 100), np.full(300, 0.6), x)
    names = [
        'mean(age | region == "s")',
        'mean(age + 0 | region != "t")',
        "mean(2 * age | age < 150)",
        "mean(0 - age | age < 150)",
    ]
    tasks = it.audit(sample, names, draws=99, rng=0, charts=False).disclosed(10, seed=3).tasks
    shown = [task.from_labels for task in tasks]
    assert shown[1] == pytest.approx(shown[0], rel=1e-9)
    assert shown[2] == pytest.approx(2 * shown[0], rel=1e-9)
    assert shown[3] == pytest.approx(-shown[0], rel=1e-9)  # half the difference is not the mean


def test_a_grade_is_its_group():
    rng = np.random.default_rng(0)
    region = rng.choice(["e", "w"], 400)
    sample = it.Sample(rng.random(400) < 0.4, np.full(400, 0.4), {"region": region})
    audit = it.audit(sample, draws=99, rng=0, grades="region").disclosed(10, seed=3)
    groups = {group.name: group for group in audit.diagnosis.groups}
    for grade in audit.validation.grades:
        group = groups[f"region = {grade.name}"]
        assert (grade.rows, grade.observed) == (group.rows, pytest.approx(group.observed))


def test_an_error_names_no_level_of_few_rows():
    rng = np.random.default_rng(0)
    region = np.array(["QUOKKA", *rng.choice(["s", "t"], 399)])
    y = np.r_[0, rng.random(399) < 0.5]
    sample = it.Sample(y, np.r_[0.4, rng.uniform(0.2, 0.8, 399)], {"region": region})
    with pytest.raises(it.InputError, match="a level that few rows have") as error:
        it.audit(sample, ["coef(region['t'] ; region against 's')"], draws=99, rng=0)
    assert "QUOKKA" not in str(error.value)


def test_two_disclosed_audits_are_compared_in_two_digits():
    settings = {"draws": 99, "charts": False}
    one, two = (
        it.audit(it.simulate.survey(500, rng=k).sample, rng=k, **settings).disclosed(10, seed=5)
        for k in range(2)
    )
    for change in it.drift(one, two).changes:
        if change.reason is None:
            assert float(f"{change.stderr:.2g}") == change.stderr
