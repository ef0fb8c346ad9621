"""What a verdict promises, in words: which regions it is about, and which it is not."""

import math
import re
from dataclasses import replace

import pytest

from itrust.auditing import Judgement, Overlooked, Verdict
from itrust.auditing.parts import FEW_CLUSTERS
from itrust.calibration import Clustering, Coverage, IntraClusterCorrelation, Refusal
from itrust.data import Everywhere, Level
from itrust.render import action_of, sentence_of
from itrust.render.text.verdict import clustering_words

GROUPS = Coverage(60, 16, 0, 57, paired_groups=True, paired_fifths=False)
PAIR = Level("a", "x") & Level("b", "y")


def judged(verdict, missed, tolerance=0.05):
    return Judgement(verdict, (), ("a", "b"), 0.4, False, tolerance, overlooked=missed)


@pytest.mark.parametrize(
    ("coverage", "words"),
    [
        (GROUPS, "in every single group and every pair of groups with at least 60 rows"),
        (
            Coverage(30, 0, 20, 25, paired_groups=False, paired_fifths=True),
            "in every tenth of a number and every pair of fifths of numbers with at least 30 rows",
        ),
        (
            Coverage(20, 3, 10, 15, paired_groups=True, paired_fifths=True),
            "number and every pair of groups or fifths of numbers with at least 20 rows",
        ),
        (
            Coverage(1, 3, 0, 0, paired_groups=False, paired_fifths=False),
            "in every single group with at least 1 row",
        ),
        (Coverage(20, 0, 0, 0, paired_groups=False, paired_fifths=False), "if all rows had it"),
        (
            Coverage(20, 9, 0, 9, paired_groups=True, paired_fifths=False, uncrossed=("c", "d")),
            "every pair of groups with at least 20 rows; pairs with c and d were not looked at",
        ),
        (
            Coverage(20, 9, 0, 9, paired_groups=True, paired_fifths=False, uncrossed=(*"cdefghi",)),
            "with at least 20 rows; pairs with the last 7 covariates were not looked at",
        ),
        (
            Coverage(
                20,
                9,
                0,
                9,
                paired_groups=True,
                paired_fifths=False,
                uncrossed=(*"cdefghi",),
                uncut=("h", "i"),
            ),
            "20 rows; h and i, and pairs with the last 7 covariates, were not looked at",
        ),
    ],
)
def test_a_promise_names_what_was_looked_at(coverage, words):
    told = sentence_of(judged(Verdict.NO_EVIDENCE, Overlooked(0.04, PAIR, coverage=coverage)))
    assert re.search(r"and a bias of 0.05 would have been seen (in|if) ", told)
    assert told.endswith(f"{words}.")


def test_what_could_have_gone_unseen_is_told_with_what_would_decide():
    missed = Overlooked(0.118, PAIR, 0.11, GROUPS, seen=15, seen_pairs=2, rows_needed=23_000)
    told = sentence_of(judged(Verdict.INCONCLUSIVE, missed))
    words = "a bias up to 0.12 where a = x and b = y (11 % of the rows) could have gone unseen"
    assert f"No evidence was found against the model given a and b (p = 0.4), but {words}." in told
    counts = "in 15 of 16 single groups and in 2 of 57 pairs of them with at least 60 rows."
    assert told.endswith(f" A bias of 0.05 would have been seen {counts}")
    assert action_of(judged(Verdict.INCONCLUSIVE, missed)) == (
        "About 23,000 rows like these would show a bias of 0.05 there; these suffice for a "
        "tolerance of 0.12."
    )
    none = judged(Verdict.INCONCLUSIVE, Overlooked(math.inf, PAIR, 0.01, GROUPS))
    assert "but a bias of any size where a = x and b = y (1 % of the rows)" in sentence_of(none)
    assert "Label more rows there" in action_of(none)
    hidden = sentence_of(judged(Verdict.INCONCLUSIVE, Overlooked(0.118, None, 0.1, GROUPS)))
    assert "a bias up to 0.12 in a group that is not shown could have gone unseen" in hidden
    unknown = sentence_of(judged(Verdict.INCONCLUSIVE, Overlooked(math.nan, PAIR, 1.0, GROUPS)))
    assert "is not known" in unknown


def test_clusters_are_named_beside_what_they_allow_to_say():
    correlation = IntraClusterCorrelation(0.12, 0.05, 0.2, 0.03, 60, 11_400)
    own = Clustering(0.2, 0.0, 60, 59, 4.8, correlation)
    missed = Overlooked(0.04, PAIR, 0.1, GROUPS, clustering=own)
    beside = "(approximate, by 60 clusters with an intra-cluster correlation of at most 0.2)."
    assert sentence_of(judged(Verdict.NO_EVIDENCE, missed)).endswith(f"60 rows {beside}")
    assert f"gone unseen {beside}" in sentence_of(judged(Verdict.INCONCLUSIVE, missed))
    assert clustering_words(own, 3_000) == (
        "rows of a cluster go together (intra-cluster correlation 0.12, at most 0.2): 3,000 rows "
        "count as 625"
    )
    stated = replace(missed, clustering=replace(own, correlation=None))
    assert "correlation of 0.2)." in sentence_of(judged(Verdict.NO_EVIDENCE, stated))


def test_why_it_is_not_known_what_was_missed_is_said():
    unknown = replace(judged(Verdict.INCONCLUSIVE, None), unknown=FEW_CLUSTERS)
    assert sentence_of(unknown).endswith(
        "is not known: fewer than 10 clusters cannot tell how far rows of a cluster go together."
    )


def test_too_few_clusters_are_the_reason():
    few = replace(judged(Verdict.INCONCLUSIVE, None), refused=Refusal(5, 4.9, 7.0), names=("", "b"))
    assert sentence_of(few) == (
        "The test gives no p-value given (no name) and b: there are 5 clusters, and at least 7 are "
        "needed."
    )
    assert action_of(few).startswith("Label rows of more clusters")


def test_every_verdict_has_a_sentence_and_something_to_do():
    missed = Overlooked(0.04, PAIR, 0.1, GROUPS)
    for verdict in Verdict:
        judgement = replace(judged(verdict, missed), share_within=0.97)
        assert sentence_of(judgement).endswith(".")
        assert action_of(judgement).endswith(".")


@pytest.mark.parametrize(
    ("rate", "is_told"), [(0.2, False), (0.11, False), (0.099, True), (0.03, True)]
)
def test_a_tolerance_of_half_the_rate_or_more_is_called_large(rate, is_told):
    missed = Overlooked(0.02, Everywhere())
    told = action_of(replace(judged(Verdict.NO_EVIDENCE, missed), rate=rate))
    assert ("is large beside a rate of" in told) == is_told
