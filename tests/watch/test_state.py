"""The file of a watch: small, exact, and checked as input of strangers is."""

import contextlib
import copy
import datetime
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import itrust as it
from watch_rows import make_rows


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A watch with an alarm in its second segment, and its file."""
    start = it.Watch.start(make_rows(1, 400), ["mean(age)", "prevalence()"], name="first")
    watch = start.update(make_rows(2), name="a", at="2026-01-01").new_model(make_rows(3, 400))
    for seed in range(4, 12):
        watch = watch.update(make_rows(seed, 200, "large"))
    assert watch.alarm
    path = tmp_path_factory.mktemp("watch") / "watch.json"
    watch.with_source({"label": "y"}).save(path)
    return watch, path


def test_a_watch_read_back_is_the_same(saved, tmp_path):
    watch, path = saved
    again = it.Watch.load(path)
    assert again.to_dict() == watch.to_dict()
    assert again.source == {"label": "y"}
    assert again.save(tmp_path / "again.json").read_text() == path.read_text()


@pytest.mark.parametrize("settings", [{}, {"tolerance": 0.03}, {"promise": "run length"}])
def test_saved_and_read_after_every_batch_it_goes_on_to_the_bit(tmp_path, drawn, settings):
    straight = stopped = it.Watch.start(drawn(1, 400), ["mean(age)"], **settings)
    path = tmp_path / "watch.json"
    for seed in range(2, 8):
        batch = drawn(seed, 120, "large" if seed > 4 else "none")
        straight = straight.update(batch)
        stopped.save(path)
        stopped = it.Watch.load(path).update(batch)
    first, second = straight.save(tmp_path / "a.json"), stopped.save(tmp_path / "b.json")
    assert first.read_bytes() == second.read_bytes()
    with pytest.raises(it.InputError, match="taken in before"):
        it.Watch.load(path).update(drawn(2, 120))


def test_infinite_evidence_and_classes_of_many_kinds_are_kept(tmp_path):
    rng = np.random.default_rng(0)
    days = [datetime.date(2026, 1, 1 + k % 3) for k in range(90)]
    p = np.full((90, 3), 1 / 3)
    p[0] = [0, 0.5, 0.5]
    sample = it.MulticlassSample(
        [1, 1, 2] * 30, p, {"day": days, "level": rng.choice(["a", "b"], 90)}, classes=[1, 2, 3]
    )
    watch = it.Watch.start(sample.take(np.arange(1, 60))).update(sample.take(np.arange(0, 30)))
    watch.save(tmp_path / "w.json")
    again = it.Watch.load(tmp_path / "w.json")
    assert again.evalue == np.inf
    assert again.to_dict() == watch.to_dict()


def ways(facts, way=()):
    """All places of a file."""
    yield way
    if isinstance(facts, dict):
        for name, own in facts.items():
            yield from ways(own, (*way, name))
    elif isinstance(facts, list):
        for k, own in enumerate(facts[:3]):
            yield from ways(own, (*way, k))


ODD = st.sampled_from(
    [None, True, -1, 0, 1e308, 10**30, "", "x", "\ud800", [], {}, [[]], {"type": "<f8"}, "AAAA"]
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(number=st.integers(0, 10**6), odd=ODD, is_changed=st.booleans())
def test_a_damaged_file_is_refused_in_a_sentence_or_still_a_watch(
    saved, tmp_path, number, odd, is_changed
):
    facts = json.loads(saved[1].read_text())
    known = [way for way in ways(facts) if way]
    way = known[number % len(known)]
    changed = copy.deepcopy(facts)
    holder = changed
    for step in way[:-1]:
        holder = holder[step]
    if is_changed:
        holder[way[-1]] = copy.deepcopy(odd)
    elif isinstance(holder, dict):
        del holder[way[-1]]
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(changed))
    try:
        watch = it.Watch.load(path)
    except it.InputError as error:
        assert "damaged.json" in str(error)  # noqa: PT017
        return
    watch.to_dict()


@pytest.mark.slow
def test_an_empty_list_anywhere_is_refused_in_a_sentence_or_still_a_watch(saved, tmp_path):
    path = tmp_path / "damaged.json"
    for way in ways(json.loads(saved[1].read_text())):
        changed = holder = json.loads(saved[1].read_text())
        for step in way[:-1]:
            holder = holder[step]
        if way:
            holder[way[-1]] = []
        path.write_text(json.dumps(changed))
        with contextlib.suppress(it.InputError):
            it.Watch.load(path).to_dict()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", "it must be a record"),
        ("{}", "it lacks the entry 'schema'"),
        ('{"schema": "itrust-watch/9"}', "schema must be 'itrust-watch/2', not 'itrust-watch/9'"),
        ('{"schema": "itrust-watch/2", "schema": 1}', "twice"),
        ("NaN", "NaN is no number"),
    ],
)
def test_what_is_no_watch_is_refused_and_the_file_named(tmp_path, text, message):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(it.InputError, match=message) as caught:
        it.Watch.load(path)
    assert "other.json" in str(caught.value)
    with pytest.raises(it.InputError, match="cannot read"):
        it.Watch.load(tmp_path / "none.json")


def test_counters_that_contradict_each_other_are_refused(saved, tmp_path):
    facts = json.loads(saved[1].read_text())
    facts["segments"][0]["batches"] = 2
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(facts))
    with pytest.raises(it.InputError, match="fits the history"):
        it.Watch.load(path)


@pytest.mark.nightly
def test_a_thousand_batches_take_less_than_2_megabytes(tmp_path):
    rng = np.random.default_rng(0)

    def rows(n):
        x = {f"x{k}": rng.normal(size=n) for k in range(6)} | {"c": rng.choice(list("abcd"), n)}
        p = rng.uniform(0.1, 0.9, n)
        return it.Sample(rng.random(n) < p, p, x)

    watch = it.Watch.start(rows(2_000), ["mean(x0)"])
    for k in range(1_000):
        watch = watch.update(rows(10), name=f"batch of the day {k}", at="2026-01-01")
    path = watch.save(tmp_path / "watch.json")
    assert path.stat().st_size < 2_000_000
    assert len(it.Watch.load(path).history) == 1_000


def test_weighted_batches_of_ones_alone_can_be_read_again(tmp_path):
    rng = np.random.default_rng(0)

    def rows(n, y):
        weights = rng.uniform(0.5, 3, n)
        return it.Sample(y, np.full(n, 0.9), {"g": rng.choice(["a", "b"], n)}, weights=weights)

    watch = it.Watch.start(rows(100, rng.random(100) < 0.9))
    for _ in range(12):
        watch = watch.update(rows(40, np.ones(40)))
    assert max(record.mean_label for record in watch.history) == 1.0
    again = it.Watch.load(watch.save(tmp_path / "w.json"))
    assert again.history == watch.history


def test_the_onset_names_its_class_and_keeps_it(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2, 2, 2], 900)
    codes = np.array([rng.choice(3, p=own) for own in p])
    codes[300:] = np.where(rng.random(600) < 0.5, 2, codes[300:])
    sample = it.MulticlassSample(codes, p, {"x": rng.normal(size=900)}, classes=[0, 1, 2])
    watch = it.Watch.start(sample.take(np.arange(300))).update(sample.take(np.arange(300, 900)))
    assert watch.since.label == 2
    assert "of 2" in str(watch.since)
    again = it.Watch.load(watch.save(tmp_path / "w.json"))
    assert next(r for r in again.history if r.raised).since.label == 2
    assert again.to_dict() == watch.to_dict()


def test_a_state_that_would_not_be_read_is_not_written_over_one_that_is(
    saved, tmp_path, monkeypatch
):
    watch, path = saved
    kept = tmp_path / "watch.json"
    kept.write_bytes(path.read_bytes())
    monkeypatch.setattr("itrust.watch.state.MAX_JSON_BYTES", path.stat().st_size - 100)
    with pytest.raises(it.InputError, match="is not read again; watch fewer classes"):
        watch.save(kept)
    assert it.Watch.load(kept).to_dict() == watch.to_dict()


@pytest.mark.parametrize(
    ("settings", "name", "message"),
    [
        ({"alpha": 1e-310}, "a", "a file cannot hold this watch: alpha must be a number from"),
        ({}, "\ud800", r"cannot hold this watch: history\[0\].name must be text of whole"),
    ],
)
def test_whatever_would_not_be_read_is_refused_before_it_is_written(
    tmp_path, settings, name, message
):
    watch = it.Watch.start(make_rows(1, 60).with_columns(()), **settings)
    with pytest.raises(it.InputError, match=message):
        watch.update(make_rows(2, 20).with_columns(()), name=name).save(tmp_path / "watch.json")
    assert not (tmp_path / "watch.json").exists()


def test_the_smallest_numbers_leave_the_evidence_finite(tmp_path):
    rows = make_rows(1, 120)
    tiny = it.Sample(rows.y, rows.p, {"x": np.linspace(-1, 1, 120) * 1e-320})
    watch = it.Watch.start(tiny.take(np.arange(60))).update(tiny.take(np.arange(60, 120)))
    assert np.isfinite(watch.log_evalue)
    assert it.Watch.load(watch.save(tmp_path / "w.json")).to_dict() == watch.to_dict()
