"""Checks that add up: many covariates at once, uncorrelated under the null."""

import numpy as np
import pytest
from scipy.special import expit

import itrust as it
from itrust import Sample
from itrust.calibration import Shape, make_bank, prepared_test
from itrust.calibration.dictionary import FEW_EVENTS, RIDGE


def correlated(n=400, d=4, seed=0, weights=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) + rng.normal(size=(n, 1))
    p = expit(x.sum(axis=1) / 4)
    return Sample(rng.random(n) < p, p, x, weights=weights)


def entry_of(sample, name):
    return next(e for e in it.default_dictionary(sample).entries if e.name == name)


def bank_of(sample, *entries):
    return make_bank(entries, sample.pilot(sample.n), 1.0)


def test_whitened_trends_are_a_score_test_with_a_ridge():
    s = correlated()
    entry = entry_of(s, "all trends together")
    assert entry.scaling == "whitened"
    assert entry.shape is Shape.JOINT
    bank = bank_of(s, entry)
    f, v, e = bank.matrix(s.points), s.p * (1 - s.p), s.residuals
    plain, mixed = f[:4], f[4:]
    sd = np.sqrt(np.square(plain) @ v)
    plain = plain / sd[:, None]
    c = (plain * v) @ plain.T
    assert np.abs(c - np.eye(4)).max() > 0.3  # there is something to take out
    by_hand = (plain @ e) @ np.linalg.solve(c + RIDGE * np.eye(4), plain @ e)
    assert np.square(mixed @ e).sum() == pytest.approx(by_hand)


def test_whitened_features_are_uncorrelated_under_the_null():
    s = correlated(d=6)
    bank = bank_of(s, entry_of(s, "all quadratics together"))
    mixed = bank.matrix(s.points)[len(bank.features) :]
    c = (mixed * (s.p * (1 - s.p))) @ mixed.T
    np.testing.assert_allclose(c - np.diag(np.diag(c)), 0, atol=1e-9)
    assert (np.diag(c) <= 1 + 1e-9).all()


def test_a_turn_of_the_covariates_changes_little_and_a_copy_nothing():
    """What a covariate says twice counts once."""
    s = correlated(d=3)
    x = np.column_stack([c.values for c in s.columns])
    twice = Sample(s.y, s.p, np.column_stack([x, x[:, 0]]))

    def value(sample):
        bank = bank_of(sample, entry_of(sample, "all trends together"))
        return np.square(bank.matrix(sample.points)[len(bank.features) :] @ sample.residuals).sum()

    assert value(twice) == pytest.approx(value(s), rel=0.05)


def test_levels_together_are_summed_in_units_of_their_null_variance():
    rng = np.random.default_rng(0)
    group = rng.choice(list("abcde"), 2_000)
    p = rng.uniform(0.2, 0.8, 2_000)
    s = Sample(rng.random(2_000) < p, p, {"g": group})
    entry = entry_of(s, "g alone")
    assert entry.family == "group effects"
    bank = bank_of(s, entry)
    forms = bank.matrix(s.points) @ s.residuals
    value = float((bank.selector @ np.square(forms))[0])
    v, e = s.p * (1 - s.p), s.residuals
    shares = {g: v[group == g].sum() / v.sum() for g in "abcde"}
    by_hand = sum(
        (e[group == g].sum() - share * e.sum()) ** 2 / (v.sum() * share * (1 - share))
        for g, share in shares.items()
    )
    assert value == pytest.approx(by_hand, rel=0.05)
    assert 0.05 * v[group == "a"].sum() > FEW_EVENTS


def test_what_has_no_variance_is_left_out():
    """A covariate that says nothing, or what another says, leaves finite checks."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    s = Sample(rng.random(200) < 0.5, np.full(200, 0.5), {"a": x, "b": -x, "c": np.full(200, 3.0)})
    r = it.klce_test(s, draws=99, rng=0)
    assert np.isfinite([f.score for f in r.findings]).all()


@pytest.mark.parametrize("engine", [it.engines.Tiles(), it.engines.Factor()])
def test_every_engine_gives_the_same_joint_scores(engine):
    s = correlated(300, 3, weights=np.random.default_rng(1).uniform(0.5, 2, 300))
    both = [prepared_test(s, draws=19, rng=0, engine=e).scores for e in (engine, "auto")]
    at = [e.name for e in both[0].entries].index("all trends together")
    np.testing.assert_allclose(both[0].log_tails[at], both[1].log_tails[at], rtol=1e-6)


def test_drift_of_all_coefficients_is_seen_where_no_single_trend_is():
    """Power against thin bias: twenty slopes that are all a little off."""
    rejected = {"linear": 0, "joint": 0}
    for seed in range(24):
        rng = np.random.default_rng([seed, 3])
        x = rng.normal(size=(400, 20))
        score = x.sum(axis=1) / np.sqrt(20)
        truth = expit(score + x @ rng.normal(scale=0.12, size=20))
        s = Sample(rng.random(400) < truth, expit(score), x)
        for family in rejected:
            d = it.default_dictionary(s).only(families=[family])
            rejected[family] += it.klce_test(s, d, draws=39, rng=seed).pvalue <= 0.05
    assert rejected["joint"] >= rejected["linear"] + 3


def test_rare_events_that_come_true_too_often_are_not_divided_away():
    """A score divided by the variance of the labels would hide what is looked for."""
    rng = np.random.default_rng(4)
    group, p = rng.integers(0, 10, 1_000), np.full(1_000, 0.03)
    y = rng.random(1_000) < p
    y[np.flatnonzero(group == 7)[:12]] = True  # about three are expected
    s = Sample(y, p, {"g": group.astype(str)})
    found = prepared_test(s, draws=19, rng=0).scores
    at = [e.name for e in found.entries].index("g = 7")
    e, inside = s.residuals, (group == 7) - np.mean(group == 7)
    z = (inside @ e) / np.sqrt(np.sum(np.square(inside) * p * (1 - p)))
    assert found.standardised[at, 0] == pytest.approx(z)
    assert z > 1.5 * (inside @ e) / np.sqrt(np.sum(np.square(inside * e)))
