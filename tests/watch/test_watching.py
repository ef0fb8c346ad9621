"""A watch: what it says of calibrated and drifted models, and what it refuses."""

import math
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import itrust as it


def watched(watch, drawn, batches, drift="none", first=0, n=200):
    for k in range(batches):
        watch = watch.update(drawn(10_000 + first + k, n, drift))
    return watch


def test_a_watch_before_its_first_batch_knows_nothing(begun):
    assert (begun.evalue, begun.pvalue, begun.alarm, begun.since) == (1, 1, False, None)
    assert begun.findings() == ()
    assert begun.history == ()
    assert [segment.batches for segment in begun.segments] == [0]


def test_an_update_leaves_the_watch_as_it_was(begun, drawn):
    before = begun.to_dict()
    after = begun.update(drawn(1))
    assert begun.to_dict() == before
    assert len(after.history) == 1
    assert after.history[0].rows == 200
    with pytest.raises(AttributeError):
        after.alpha = 0.2


def test_the_pvalue_is_one_over_the_largest_evidence(begun, drawn):
    watch, most = begun, 1.0
    for seed in range(8):
        watch = watch.update(drawn(seed))
        most = max(most, watch.evalue)
        assert np.isclose(watch.pvalue, 1 / most)
        assert np.isclose(watch.history[-1].evalue, watch.evalue)


@pytest.mark.parametrize(
    ("drift", "name"),
    [
        ("everywhere", "overall level"),
        ("eighth", "sex = m and region = south"),
        ("cancelling", "(sex = f) x (age"),
    ],
)
def test_drift_is_found_named_and_dated(begun, drawn, drift, name):
    watch = watched(begun, drawn, 6)
    assert not watch.alarm
    watch = watched(watch, drawn, 24, drift, first=6)
    assert watch.alarm
    assert watch.pvalue <= 0.05
    assert watch.findings()[0].name.startswith(name)
    assert watch.since.lower <= 7 <= watch.since.upper
    assert sum(record.raised for record in watch.history) == 1


def test_findings_imply_an_alarm_and_their_pvalues_follow_from_weights(begun, drawn):
    watch = watched(begun, drawn, 12, "large")
    findings = watch.findings()
    assert findings
    for one in findings:
        assert one.pvalue <= 0.05
        assert np.isclose(one.pvalue, min(1, 1 / (one.weight * one.evalue)), rtol=1e-6)
    assert findings[0].direction == 1
    assert watch.pvalue <= findings[0].pvalue * (1 + 1e-9)
    assert np.isclose(sum(check.weight for check in watch.checks()), 0.8)  # .2 recalibrations


def test_a_label_of_probability_0_is_infinite_evidence(begun, drawn):
    rows = drawn(3)
    p = rows.p.copy()
    p[0], p[1] = 1 - rows.y[0], rows.y[1]
    watch = begun.update(rows.with_predictions(p))
    assert (watch.evalue, watch.pvalue, watch.alarm, watch.impossible) == (math.inf, 0, True, 1)
    assert watch.since is None
    again = watch.update(drawn(4))
    assert again.evalue == math.inf
    lenient = it.Watch.start(drawn(9, 500), tolerance=0.05).update(rows.with_predictions(p))
    assert not lenient.alarm


def test_rows_that_came_before_are_refused_in_any_order(begun, drawn, reference):
    watch = begun.update(drawn(1), name="week 1")
    shuffled = drawn(1).take(np.random.default_rng(0).permutation(200))
    with pytest.raises(it.InputError, match=r"taken in before, as 'batch 1 \(week 1\)'"):
        watch.update(shuffled)
    with pytest.raises(it.InputError, match="those of the reference"):
        watch.update(reference)
    with pytest.raises(it.InputError, match="a batch called 'week 1' already"):
        watch.update(drawn(2), name="week 1")


def test_a_schema_that_changed_is_refused(begun, drawn):
    rows = drawn(1)
    with pytest.raises(it.InputError, match="lacks the covariate 'region'"):
        begun.update(rows.only("sex", "age"))
    x = {"sex": ["f", "m"] * 5, "age": ["old"] * 10, "region": ["east"] * 10}
    other = it.Sample([0, 1] * 5, [0.5] * 10, x)
    with pytest.raises(it.InputError, match=r"age.* is a category in the batch and a number"):
        begun.update(other)
    with pytest.raises(it.InputError, match="has weights and the reference has no weights"):
        begun.update(drawn(1, weights=np.arange(1.0, 201)))
    columns = {"sex": ["f"] * 4, "age": [30.0] * 4, "region": ["east"] * 4}
    turned = it.Sample(["yes", "no"] * 2, [0.5] * 4, columns, positive="no")
    with pytest.raises(it.InputError, match="'no' counts as positive"):
        begun.update(turned)
    wider = rows.with_columns((*rows.columns[::-1],))
    assert begun.update(wider).evalue == pytest.approx(begun.update(rows).evalue)


def test_new_levels_and_values_beyond_the_reference_are_taken(begun):
    n = 20
    x = {"sex": ["d"] * n, "age": np.linspace(-1e6, 1e6, n), "region": ["moon"] * n}
    watch = begun.update(it.Sample([0, 1] * 10, [0.5] * n, x))
    assert math.isfinite(watch.log_evalue)


def test_batches_have_an_order_and_late_outcomes_are_declared(begun, drawn):
    watch = begun.update(drawn(1), at=("2026-03-01", "2026-03-31"))
    watch = watch.update(drawn(2), at=date(2026, 4, 2))
    with pytest.raises(it.InputError, match=r"before the last one ends.*late=True"):
        watch.update(drawn(3), at="2026-03-15")
    with pytest.raises(it.InputError, match="for all batches of a model, or for none"):
        watch.update(drawn(3))
    late = watch.update(drawn(3), at="2026-03-15", late=True)
    assert late.history[-1].late
    assert late.update(drawn(4), at="2026-04-03").history[-1].start == "2026-04-03T00:00:00"
    with pytest.raises(it.InputError, match="ends before it begins"):
        watch.update(drawn(3), at=("2026-05-02", "2026-05-01"))
    with pytest.raises(it.InputError, match="a date such as"):
        watch.update(drawn(3), at="Easter")


def test_a_new_model_begins_a_segment_and_keeps_the_history(begun, drawn):
    watch = watched(begun, drawn, 8, "large")
    assert watch.alarm
    renewed = watch.new_model(drawn(77, 1_000), name="second")
    assert (renewed.evalue, renewed.alarm, renewed.since) == (1, False, None)
    assert len(renewed.history) == 8
    after = watched(renewed, drawn, 2, first=50)
    assert [segment.batches for segment in after.segments] == [8, 2]
    assert any(record.raised for record in after.history[:8])
    assert [record.segment for record in after.history] == [0] * 8 + [1] * 2
    assert after.tasks[0].batches == 2
    with pytest.raises(it.InputError, match="taken in before"):
        after.update(drawn(10_000, 200, "large"))


def test_a_run_length_restarts_after_every_alarm(reference, drawn):
    watch = it.Watch.start(reference, promise="run length", alpha=0.01)
    assert (watch.evalue, watch.pvalue) == (0, None)
    alarms = 0
    for seed in range(12):
        watch = watch.update(drawn(seed, 200, "large"))
        alarms += watch.alarm
        assert watch.alarm == (watch.evalue >= 100)
        assert (watch.since is not None) == watch.alarm
    assert alarms == sum(record.raised for record in watch.history) >= 3
    assert watch.promise == "run length"
    assert all(finding.pvalue is None for finding in watch.checks())


def test_a_tolerance_lets_small_biases_pass_and_not_large_ones(reference, drawn):
    watch = it.Watch.start(reference, tolerance=0.08)
    small = watched(watch, drawn, 25, "everywhere")
    assert not small.alarm
    assert small.evalue < 1
    assert watched(watch, drawn, 15, "large").alarm


def test_copies_of_rows_in_clusters_are_worth_one_row():
    """Each row five times in a cluster gives the evidence of single rows, bounded once more."""
    rng = np.random.default_rng(4)
    n, p = 150, rng.uniform(0.1, 0.9, 150)
    y, age = (rng.random(n) < p).astype(float), rng.normal(size=n)

    def copied(times, rows):
        own = np.repeat(rows, times)
        units = np.repeat(np.arange(rows.size), times)
        return it.Sample(y[own], p[own], {"age": age[own]}, cluster=units)

    first, second = np.arange(75), np.arange(75, 150)
    single = it.Watch.start(copied(1, first)).update(copied(1, second))
    fivefold = it.Watch.start(copied(1, first)).update(copied(5, second))
    assert fivefold.log_evalue == pytest.approx(single.log_evalue, abs=1e-9)


def test_weights_count_up_to_the_largest_of_the_reference(drawn):
    watch = it.Watch.start(drawn(1, 500, weights=np.full(500, 2.0)))
    light, heavy = np.full(200, 2.0), np.full(200, 50.0)
    same = watch.update(drawn(2, weights=light)).log_evalue
    assert watch.update(drawn(2, weights=heavy)).log_evalue == pytest.approx(same)
    assert watch.update(drawn(2, weights=light / 2)).log_evalue != pytest.approx(same)


def test_strata_are_refused_in_words(drawn):
    with pytest.raises(it.InputError, match="strata and replicate"):
        it.Watch.start(drawn(1, 100, strata=["a", "b"] * 50))


def three_classes(seed, n=300, moved=0.0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 3))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = p.copy()
    truth[:, 0] -= moved * p[:, 0]
    truth[:, 1] += moved * p[:, 0]
    y = (rng.random(n)[:, None] > truth.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    return it.MulticlassSample(
        np.array(["win", "tie", "loss"])[y],
        p,
        {"age": rng.normal(size=n)},
        classes=["win", "tie", "loss"],
    )


def test_several_classes_are_watched_one_residual_a_class():
    watch = it.Watch.start(three_classes(0, 900), ['prevalence("tie")'])
    calm = watch
    for seed in range(1, 6):
        calm = calm.update(three_classes(seed))
    assert not calm.alarm
    for seed in range(10, 22):
        watch = watch.update(three_classes(seed, moved=0.4))
    assert watch.alarm
    told = {(finding.label, finding.direction) for finding in watch.findings()}
    assert {("win", -1), ("tie", 1)} <= told
    assert watch.tasks[0].lower <= watch.tasks[0].bias
    with pytest.raises(it.InputError, match="MulticlassSample"):
        watch.update(three_classes(30).one_class("tie"))


def test_files_give_the_watch_that_memory_gives(tmp_path, reference, drawn):
    import pyarrow as pa
    import pyarrow.parquet as pq

    x = {name: [reference.column(name).cell(k) for k in range(400)] for name in reference.names}
    table = pa.table({"y": reference.y[:400], "p": reference.p[:400], **x})
    pq.write_table(table, tmp_path / "reference.parquet")
    scan = it.scan(tmp_path / "reference.parquet", label="y", prob="p", on=list(x))
    of_files = it.Watch.start(scan, ["mean(age)"])
    of_memory = it.Watch.start(reference.take(np.arange(400)), ["mean(age)"])
    batch = drawn(3)
    assert of_files.segments[0].reference_digest == of_memory.segments[0].reference_digest
    assert of_files.update(batch).evalue == of_memory.update(batch).evalue


def test_what_is_no_sample_or_setting_is_refused(reference):
    with pytest.raises(it.InputError, match=r"expected an itrust\.Sample"):
        it.Watch.start([1, 2])
    with pytest.raises(it.InputError, match="promise must be one of"):
        it.Watch.start(reference, promise="always")
    with pytest.raises(it.InputError, match="tolerance must lie"):
        it.Watch.start(reference, tolerance=0)
    with pytest.raises(it.InputError, match="alpha"):
        it.Watch.start(reference, alpha=0.7)


def test_a_model_without_covariates_and_few_rows_can_be_watched():
    tiny = it.Watch.start(it.Sample([0, 1, 1], [0.2, 0.7, 0.9]))
    watch = tiny.update(it.Sample([0, 1], [0.4, 0.6]))
    assert math.isfinite(watch.log_evalue)


def test_days_are_not_taken_for_numbers(drawn):
    rows = drawn(1, 120)
    days = [date.fromordinal(738_000 + k) for k in range(120)]
    watch = it.Watch.start(it.Sample(rows.y, rows.p, {"age": days}))
    later = drawn(2, 120)
    with pytest.raises(it.InputError, match="'age' is a number in the batch and a date"):
        watch.update(it.Sample(later.y, later.p, {"age": np.linspace(20, 80, 120)}))
    flags = it.Watch.start(it.Sample(rows.y, rows.p, {"old": np.arange(120) % 2 == 0}))
    assert flags.update(it.Sample(later.y, later.p, {"old": np.arange(120) % 2.0})).history


def test_rows_of_weight_nothing_count_nothing(drawn):
    rows = drawn(1, 120)
    watch = it.Watch.start(it.Sample(rows.y, rows.p, weights=np.ones(120)))
    p, y = rows.p.copy(), drawn(2, 120).y.copy()
    p[0], y[0] = 0, 1
    unseen = np.r_[0.0, np.ones(119)]
    found = watch.update(it.Sample(y, p, weights=unseen))
    assert (found.impossible, found.alarm) == (0, False)
    assert watch.update(it.Sample(y, p, weights=np.ones(120))).impossible == 1


def test_files_are_read_as_references_and_as_batches(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2, 2, 2], 300)
    y = np.array([rng.choice(3, p=own) for own in p])
    columns = {"y": y, **{f"p_{k}": p[:, k] for k in range(3)}, "x": rng.normal(size=300)}
    scans = []
    for part in (slice(0, 200), slice(200, 300)):
        path = tmp_path / f"{part.start}.parquet"
        pq.write_table(pa.table({name: own[part] for name, own in columns.items()}), path)
        scans.append(it.scan(path, label="y", prob="p_*", on=["x"]))
    found = it.Watch.start(scans[0]).update(scans[1])
    same = it.Watch.start(scans[0].load()).update(scans[1].load())
    assert found.history == same.history


def biased(seed, bias, n=100):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.3, 0.7, n)
    return it.Sample(rng.random(n) < p + bias, p)


def test_a_finding_tells_the_direction_of_its_evidence_whatever_came_later(tmp_path):
    watch = it.Watch.start(biased(0, 0.0, 300))
    for seed, bias in enumerate([0.25] * 4 + [-0.25] * 3, start=1):
        watch = watch.update(biased(seed, bias))
    found = next(one for one in watch.findings() if one.name == "overall level")
    assert found.direction == 1
    assert str(found).startswith("the predictions are too low overall")
    again = it.Watch.load(watch.save(tmp_path / "watch.json"))
    assert again.to_dict() == watch.to_dict()


def test_since_when_is_that_of_the_alarm_and_later_batches_do_not_move_it(tmp_path):
    watch = it.Watch.start(biased(0, 0.0, 300))
    for seed, bias in enumerate([0.0] * 3 + [0.3] * 2 + [0.0] * 5 + [-0.25] * 3, start=1):
        watch = watch.update(biased(seed, bias))
        if watch.history[-1].raised:
            told = watch.since
    (raised,) = (record for record in watch.history if record.raised)
    assert raised.number in (4, 5)
    assert told.batch <= told.upper <= raised.number
    assert watch.since == raised.since == told
    facts = watch.to_dict()
    assert facts["since"] == facts["history"][raised.number - 1]["since"]
    assert it.Watch.load(watch.save(tmp_path / "watch.json")).since == told


def test_the_positive_value_of_files_is_the_one_of_their_rows(tmp_path):
    rng = np.random.default_rng(0)
    rows = {"y": rng.choice(["no", "yes"], 200), "p": rng.uniform(0.1, 0.9, 200)}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    scan = it.scan(tmp_path / "rows.parquet", label="y", prob="p", positive="no")
    watch = it.Watch.start(scan)
    assert watch.schema.positive == "no"
    assert len(watch.update(scan.load().take(np.arange(50))).history) == 1
