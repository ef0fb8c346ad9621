"""How rows were drawn: what is read, what is refused, and what parts of a sample keep."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import itrust as it
from itrust import InputError, Sample
from itrust.data import Design, Replication

N = 12
Y, P = [0, 1] * 6, [0.3, 0.6] * 6
STRATUM = np.repeat(["a", "b", "c"], 4)
PSU = np.tile([1, 1, 2, 2], 3)  # numbered anew in each stratum
FRAME = {
    "y": Y,
    "p": P,
    "stratum": STRATUM.tolist(),
    "psu": PSU.tolist(),
    "w": [2.0, 4.0] * 6,
    **{f"rw{k}": np.where((np.arange(N) + k) % 2, 0.0, 2.0).tolist() for k in (10, 2, 1)},
}
ROLES = dict(label="y", prob="p")


def refused(**settings):
    with pytest.raises(InputError) as caught:
        Sample(Y, P, **settings)
    return str(caught.value)


def refused_frame(frame=FRAME, **settings):
    with pytest.raises(InputError) as caught:
        Sample.from_frame(frame, **ROLES, **settings)
    return str(caught.value)


@pytest.mark.parametrize(
    "both",
    [
        {"stratum": STRATUM, "psu": PSU},
        pd.DataFrame({"stratum": STRATUM, "psu": PSU}),
        pl.DataFrame({"stratum": STRATUM, "psu": PSU}),
        pa.table({"stratum": STRATUM, "psu": PSU}),
        np.column_stack([np.repeat([0, 1, 2], 4), PSU]),
        list(zip(STRATUM.tolist(), PSU.tolist(), strict=True)),
    ],
)
def test_several_columns_are_crossed_in_every_form(both):
    s = Sample(Y, P, cluster=both, strata=STRATUM)
    assert s.cluster.tolist() == np.repeat(np.arange(6), 2).tolist()
    assert s.strata.tolist() == np.repeat([0, 1, 2], 4).tolist()
    assert (s.clusters, s.design.stratum_count) == (6, 3)


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_every_frame_gives_the_same_design(make):
    s = Sample.from_frame(
        make(FRAME),
        **ROLES,
        weights="w",
        cluster=["stratum", "psu"],
        strata="stratum",
        replicate_weights="rw*",
        replicate_method="brr",
    )
    assert s.clusters == 6
    assert s.design.replicate_weights[0].tolist() == [0.0, 4.0, 4.0]  # rw1, rw2, rw10
    assert str(s.design.replication) == "brr"
    assert s.units == ()


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc")), min_size=2, max_size=30))
def test_crossing_tells_the_same_rows_apart_as_tuples_do(rows):
    first, second = zip(*rows, strict=True)
    if len(set(rows)) == 1:
        return
    n = len(rows)
    s = Sample([0, 1] * n, [0.5] * 2 * n, cluster={"i": first * 2, "j": second * 2})
    same = s.cluster[:, None] == s.cluster[None, :]
    doubled = rows * 2
    assert same.tolist() == [[one == other for other in doubled] for one in doubled]


def test_a_missing_id_names_the_row_and_how_many_there_are():
    ids = PSU.astype(float)
    ids[[3, 5, 7]] = np.nan
    assert refused(cluster=ids) == (
        "3 rows have no cluster (first: row 3); missing='drop' leaves them out"
    )
    assert "3 rows have no strata (first: row 3)" in refused(strata=ids)
    told = refused_frame({**FRAME, "psu": ids}, cluster=["stratum", "psu"])
    assert "3 rows have no psu (first: row 3)" in told


def test_a_cluster_in_two_strata_names_both_and_the_cure():
    assert refused(cluster=PSU, strata=STRATUM) == (
        "cluster 1 lies in two strata, 'a' (row 0) and 'b' (row 4), and so does 1 other cluster; "
        "where clusters are numbered anew in each stratum, name them by both columns, "
        "cluster={'stratum': strata, 'cluster': cluster}"
    )
    told = refused_frame(cluster="psu", strata="stratum")
    assert told.endswith("name them by both columns, cluster=['stratum', 'psu']")


def test_a_stratum_with_a_single_cluster_is_named_with_the_cures():
    strata = np.array(["a"] * 4 + ["b"] * 2 + ["c"] * 2 + ["d"] * 4)
    units = np.arange(N) // 2
    assert refused(cluster=units, strata=strata) == (
        "stratum 'b' of strata has a single cluster (row 4), as in 1 other of 4 strata, which "
        "gives no variance; collapse it with a neighbouring stratum; if it was sure to be drawn "
        "(a certainty unit), give its rows or lower units as clusters"
    )
    assert "has a single row (row 0), which gives no variance" in refused(strata=[9] + [1] * 11)


def test_one_cluster_in_all_is_refused():
    assert refused(cluster=["x"] * N) == (
        "all 12 rows belong to one cluster, 'x'; cluster needs two clusters or more, or leave it "
        "out"
    )


def test_a_stratum_without_weight_is_refused():
    told = refused(weights=[0.0] * 4 + [1.0] * 8, strata=STRATUM)
    assert told == (
        "all rows of stratum 'a' have weight 0 (row 0 is the first); leave them out, or collapse "
        "it with a neighbouring stratum"
    )


def test_rows_and_clusters_of_weight_0_stay_with_a_note():
    s = Sample(Y, P, weights=[0.0, 0.0, 0.0] + [1.0] * 9, cluster=np.arange(N) // 2)
    assert s.n == N
    assert s.notes == (
        "weight 0 in 3 rows, which stay in the sample but count for nothing",
        "weight 0 in every row of 1 cluster",
    )


def test_every_row_its_own_cluster_is_the_same_as_independent_rows():
    (note,) = Sample(Y, P, cluster=range(N)).notes
    assert note.startswith("every row is a cluster of its own")
    assert Sample(Y, P, cluster=PSU).notes == ()


def replicates(n=N, sets=4):
    return np.where(np.random.default_rng(0).random((n, sets)) < 0.5, 0.0, 2.0)


@pytest.mark.parametrize("scale", [1.0, 1000.0, 1e-3])
def test_multiples_and_full_weights_come_to_the_same_design(scale):
    w = np.linspace(1, 3, N) * scale * 1.7
    times = np.tile([[0.0, 2.0], [2.0, 0.0]], (N // 2, 2))
    short = Sample(Y, P, weights=w, replicate_weights=times, replicate_method="brr")
    full = Sample(Y, P, weights=w, replicate_weights=times * w[:, None], replicate_method="brr")
    assert np.allclose(short.design.replicate_weights, full.design.replicate_weights)
    assert "multiples of the weights" in short.notes[0]
    assert (short.design.were_multiples, full.design.were_multiples) == (True, False)
    assert "as weights in full" in full.notes[0]


def test_replicates_that_copy_the_weights_are_noted():
    w = np.linspace(10, 30, N)
    sets = np.column_stack([w, w[:, None] * replicates(sets=3)])
    s = Sample(Y, P, weights=w, replicate_weights=sets, replicate_method="brr")
    assert "1 set of replicate weights equal the weights" in s.notes[-1]


WRONG_REPLICATES = [
    (dict(replicate_weights="rw*"), "must be a column of values, not a str .* Sample.from_frame"),
    (dict(replicate_weights=replicates()), "replicate_weights needs replicate_method; say what"),
    (dict(replicate_method="brr"), "replicate_method needs replicate_weights; name them with"),
    (dict(replicate_weights=replicates(9)), "column 'x1' of replicate_weights has 9 rows, but"),
    (dict(replicate_weights=replicates(sets=1)), "two sets of weights or more, one a column; this"),
    (
        dict(replicate_weights=-replicates()),
        "of replicate_weights must not be negative; row 0 has -2",
    ),
    (
        dict(replicate_weights=replicates() * np.nan),
        "12 rows have no column 'x1' of replicate_weights",
    ),
    (dict(replicate_weights=replicates() * 0), "column 'x1' of replicate_weights is 0 in every"),
    (dict(replicate_weights=replicates(), replicate_method="jkn"), "must be one of jk1, jk2, brr"),
    (dict(replicate_weights=replicates() * 90), "but no weights are given, .* with weights=..."),
]


@pytest.mark.parametrize(("settings", "told"), WRONG_REPLICATES)
def test_wrong_replicates_are_refused_in_one_sentence(settings, told):
    if "replicate_weights" in settings and not told.startswith("replicate_weights needs repl"):
        settings = {"replicate_method": "brr", **settings}
    assert re.search(told, refused(**settings))


def test_a_pattern_that_matches_nothing_names_the_columns_that_look_alike():
    told = refused_frame(replicate_weights="RW*", replicate_method="brr")
    assert told == "replicate_weights: no column matches 'RW*'; did you mean 'rw*'?"
    told = refused_frame(replicate_weights="rw3", replicate_method="brr")
    assert "there is no column 'rw3'; did you mean 'rw" in told
    told = refused_frame(weights="w", replicate_weights="*w*", replicate_method="brr")
    assert told.startswith("replicate_weights: 'w' is weights already; name the replicates alone")


def test_columns_that_are_not_there_or_have_a_role_are_refused():
    assert (
        refused_frame(cluster=["stratum", "psv"])
        == "cluster: there is no column 'psv'; did you mean 'psu'?"
    )
    assert refused_frame(cluster="y") == "'y' cannot be label and cluster at once"
    for role in ("cluster", "strata", "replicate_weights"):
        assert refused_frame(**{role: 5}) == (
            f"{role} takes the name of a column or a list of names, not 5"
        )
    assert "strata names 'psu' more than once" in refused_frame(strata=["psu", "psu"])
    told = refused_frame(on="rw1", replicate_weights="rw*", replicate_method="brr")
    assert told == "'rw1' is the replicate_weights column; take it out of `on`"


def test_parts_of_a_sample_are_never_refused():
    s = Sample(Y, P, cluster={"s": STRATUM, "u": PSU}, strata=STRATUM)
    part = s.take([0, 4, 8])
    assert part.design.stratum_count == 1  # single clusters are put together
    assert s.take([0, 1]).clusters == 1


def test_split_takes_one_of_two_clusters_in_every_stratum():
    strata = np.repeat(np.arange(20), 6)
    units = np.arange(120) // 3
    s = Sample([0, 1] * 60, [0.5] * 120, cluster=units, strata=strata)
    a, b = s.split([0.5, 0.5], rng=3)
    assert not set(a.cluster) & set(b.cluster)
    for part in (a, b):
        assert np.bincount(part.strata).tolist() == [3] * 20
    assert s.split([0.5, 0.5], rng=4)[0].cluster.tolist() != a.cluster.tolist()
    assert s.split([0.5, 0.5], rng=3)[0].cluster.tolist() == a.cluster.tolist()


@given(
    st.lists(st.integers(2, 7), min_size=1, max_size=12),
    st.sampled_from([(0.5, 0.5), (0.3, 0.7), (0.2, 0.3), (0.6, 0.2, 0.2)]),
    st.integers(0, 5),
)
def test_parts_have_their_share_of_every_stratum(sizes, shares, seed):
    strata = np.repeat(np.arange(len(sizes)), sizes)
    part = Design(strata.size, strata=strata).parts(np.array(shares), seed)
    for k, share in enumerate(shares):
        within = np.bincount(strata[part == k], minlength=len(sizes))
        assert (np.abs(within - share * np.array(sizes)) <= 2).all()
        assert abs(within.sum() - share * strata.size) <= 1.5


def test_a_sample_says_how_it_was_drawn():
    s = Sample.from_frame(FRAME, **ROLES, weights="w", cluster=["stratum", "psu"], strata="stratum")
    assert "weighted, 6 clusters, 3 strata" in str(s)
    r = Sample.from_frame(
        FRAME, **ROLES, weights="w", replicate_weights="rw*", replicate_method="fay:0.5"
    )
    assert "3 sets of replicate weights (fay:0.5)" in str(r)


def test_dropped_rows_do_not_make_a_stratum_single():
    x = [1.0] * 10 + [None] * 2
    s = Sample(Y, P, x, cluster=np.arange(N) // 2, strata=STRATUM, missing="drop")
    assert s.n == 10


def test_nhanes2_has_the_design_that_its_documentation_gives(data_file):
    frame = pd.read_csv(data_file("nhanes2.csv"))
    frame["p"] = 0.4
    s = Sample.from_frame(
        frame,
        label="highbp",
        prob="p",
        weights="finalwgt",
        cluster=["stratum", "psu"],
        strata="stratum",
        replicate_weights="brr_*",
        replicate_method="brr",
    )
    assert (s.clusters, s.design.stratum_count) == (62, 31)
    assert s.design.replicate_weights.shape == (10351, 32)
    assert s.design.were_multiples
    told = refused_frame(
        frame.rename(columns={"highbp": "y"}), weights="finalwgt", cluster="psu", strata="stratum"
    )
    assert "cluster=['stratum', 'psu']" in told


def test_blocks_of_time_are_named_like_columns():
    dates = np.arange("2024-01-01", "2024-01-13", dtype="datetime64[D]")
    frame = {**FRAME, "date": dates, "shop": ["u", "v"] * 6}
    weeks = Sample.from_frame(frame, **ROLES, cluster="week(date)")
    assert weeks.cluster.tolist() == [0] * 7 + [1] * 5
    assert Sample.from_frame(frame, **ROLES, cluster=["shop", "week(date)"]).clusters == 4
    assert Sample.from_frame(frame, **ROLES, cluster="blocks(date, 2)").clusters == 6
    assert Sample.from_frame(frame, **ROLES, cluster="blocks(date)").clusters == 12
    named = {**frame, "week(date)": ["u", "v", "w"] * 4}
    assert Sample.from_frame(named, **ROLES, cluster="week(date)").clusters == 3
    told = refused_frame(frame, cluster="week(psu)")
    assert told.startswith("cluster: blocks of time need dates, but row 0 of 'psu' has 1 (convert")
    assert "no such block of time; blocks are day(date)" in refused_frame(frame, cluster="hour(p)")
    assert "no column 'dat'; did you mean 'date'?" in refused_frame(frame, cluster="week(dat)")


def test_weeks_by_hand_and_by_name_are_the_same():
    dates = np.arange("2024-01-01", "2024-01-13", dtype="datetime64[D]")
    s = Sample(Y, P, cluster=it.blocks(dates, "week"))
    assert s.cluster.tolist() == [0] * 7 + [1] * 5


def test_a_stratum_that_is_left_with_one_cluster_still_varies():
    """It joins another: alone it would have no variance at all."""
    strata, cluster = np.array([0, 0, 1, 1, 2]), np.arange(5)
    design = Design(5, cluster=cluster, strata=strata)
    only = np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    assert design.stratum_count == 2
    assert design.linearised_variance(only) > 0


def test_replicate_weights_tell_which_rows_are_drawn_together():
    sets = np.array([[0.0, 2.0, 1.0], [0.0, 2.0, 1.0], [2.0, 0.0, 1.0], [2.0, 0.0, 1.0]])
    design = Design(4, replicate_weights=sets, replication=Replication("brr"))
    assert (design.drawn_together == [0, 0, 1, 1]).all() or (
        design.drawn_together == [1, 1, 0, 0]
    ).all()
    parts = design.parts(np.array([0.5, 0.5]), rng=0)
    assert parts[0] == parts[1] != parts[2] == parts[3]


def clustered_rows(n=6_000, seed=0):
    """Clusters of 1 to 9 rows in three strata."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n), rng.integers(1, 10, n))[:n]
    p = rng.uniform(0.1, 0.9, n)
    return it.Sample(
        rng.random(n) < p, p, {"age": rng.normal(size=n)}, cluster=cluster, strata=cluster % 3
    )


def test_some_clusters_are_whole_of_every_stratum_and_the_same_again(monkeypatch):
    monkeypatch.setattr("itrust.data.rows.MIN_CLUSTERS_KEPT", 100)
    rows = clustered_rows()
    kept = rows.some_clusters(1_500)
    assert 1_300 < kept.n < 1_700
    sizes, all_sizes = (np.bincount(s.cluster, minlength=rows.n) for s in (kept, rows))
    assert (sizes[sizes > 0] == all_sizes[sizes > 0]).all()
    strata = np.bincount(kept.design.strata) / np.bincount(rows.design.strata)
    assert np.ptp(strata) < 0.05
    assert np.array_equal(kept.p, rows.some_clusters(1_500).p)
    other = it.Sample(1 - rows.y, rows.p, cluster=rows.cluster, strata=rows.design.strata)
    assert np.array_equal(kept.p, other.some_clusters(1_500).p)  # labels have no say
    (note,) = [note for note in kept.notes if "random clusters" in note]
    assert f"{kept.n:,} of 6,000 rows" in note
    assert rows.some_clusters(6_000) is rows


def test_strata_of_two_clusters_keep_them_all():
    """One of a pair has nobody to differ from: strata would be pooled."""
    unit = np.arange(6_000) // 2
    rows = clustered_rows()
    pairs = it.Sample(rows.y, rows.p, cluster=unit, strata=unit // 2)
    assert pairs.some_clusters(2_000) is pairs


def test_few_clusters_are_all_kept():
    rows = clustered_rows()
    assert rows.some_clusters(10).design.clusters >= 1_000
    few = it.Sample(rows.y, rows.p, cluster=np.arange(6_000) % 900)
    assert few.some_clusters(10) is few


def test_replicate_weights_keep_all_rows():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 3_000)
    sets = rng.integers(0, 2, (3_000, 8)) * 2.0 + 0.1
    rows = it.Sample(rng.random(3_000) < p, p, replicate_weights=sets, replicate_method="brr")
    assert rows.some_clusters(1_500) is rows


@pytest.mark.parametrize("clusters", [2, 3, 5])
@pytest.mark.parametrize("share", [0.25, 0.5, 0.1])
def test_rounding_favours_no_strata_whatever_their_order(clusters, share):
    """Rural and urban strata in turn: every second one would have got what rounding owes."""
    strata = np.arange(1_000 * clusters) // clusters
    design = Design(strata.size, strata=strata)
    chosen = design.parts(np.array([share]), rng=0) == 0
    urban = strata % 2 == 1
    assert chosen.mean() == pytest.approx(share, abs=0.01)
    spread = np.sqrt(share * (1 - share) / urban.sum())
    assert abs(chosen[urban].mean() - chosen[~urban].mean()) < 4 * np.sqrt(2) * spread
