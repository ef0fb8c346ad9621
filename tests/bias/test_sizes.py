"""Sizes that are quoted are those of the place, although it was singled out."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

import itrust as it
from itrust.bias import beyond, halves_of, measured_places, most_rows


def town(seed: int, shift: float) -> tuple[it.Sample, np.ndarray]:
    rng = np.random.default_rng([5, seed])
    x = {"g": rng.choice(list("ab"), 600), "age": rng.uniform(20, 80, 600)}
    p = rng.uniform(0.2, 0.6, 600)
    bias = shift * (x["g"] == "a")
    return it.Sample(rng.random(600) < p + bias, p, x), bias


def test_the_near_end():
    group = it.bias_groups(town(0, 0.3)[0], "g", draws=39, rng=0)[0]
    assert group.at_least == group.lower > 0
    assert replace(group, lower=-0.2, upper=-0.1).at_least == -0.1
    assert replace(group, lower=-0.2, upper=0.1).at_least == 0.0


def test_an_estimate_lies_between_the_near_end_and_the_bias():
    group = it.bias_groups(town(0, 0.3)[0], "g", draws=39, rng=0)[0]
    just = replace(group, stderr=0.02, lower=group.bias - 0.05)
    assert just.estimate(just.at_least) == pytest.approx(just.at_least)
    assert just.at_least < just.estimate(just.at_least - 0.01) < just.bias
    assert just.estimate(0.0) == pytest.approx(just.bias, abs=1e-6)  # far beyond
    assert just.estimate(1.0) == just.estimate(0.0)  # told for its interval alone
    assert replace(just, lower=-0.1).estimate() == just.bias  # not told
    turned = replace(
        just, lower=-just.upper, upper=-just.lower, predicted=just.observed, observed=just.predicted
    )
    assert turned.estimate(0.1) == pytest.approx(-just.estimate(0.1))


@pytest.mark.parametrize("power", [0.02, 0.1, 0.3, 0.5, 0.8, 0.99])
def test_what_being_singled_out_adds_is_taken_back(power):
    """A normal mean that is told where it exceeds a bound: raw, up to 2.4 standard errors off."""
    reach, needed = 3.0, 4.0  # standard errors: of the interval, of the estimate to be told
    truth = needed + float(ndtri(power))
    told = truth + ndtri(1 - power * (np.arange(500) + 0.5) / 500)  # values above what is needed
    group = it.bias_groups(town(0, 0.3)[0], "g", draws=39, rng=0)[0]
    unit = 0.01
    estimates = [
        replace(
            group,
            predicted=0.0,
            observed=unit * value,
            lower=unit * (value - reach),
            upper=unit * (value + reach),
            stderr=unit,
        ).estimate(unit * (needed - reach))
        for value in told.tolist()
    ]
    assert abs(np.mean(estimates) / unit - truth) < 0.75
    if power < 0.5:
        assert told.mean() - truth > 0.8


def test_the_place_is_measured_by_the_half_that_did_not_choose_it():
    sample, _ = town(1, 0.35)
    bias = it.local_bias(sample, draws=79, rng=1)
    found = measured_places(bias, 0.05)
    ((sign, (point, numbers)),) = found.items()
    assert sign == 1
    assert numbers["lower"] >= 0.05
    assert found == measured_places(bias, 0.05)
    # Labels of the half that did not choose move the bias and nothing else.
    rows = bias.sample
    _, measuring = halves_of(rows, bias.redraws.seed, purpose=3)
    turned = np.where(np.isin(rows.p, measuring.p), 1 - rows.y, rows.y)
    changed = it.Sample(turned, rows.p).with_columns(rows.columns)
    again = measured_places(replace(bias, redraws=replace(bias.redraws, sample=changed)), 0.05)
    ((same, others),) = again.values()
    assert same == point
    assert others | {"bias": numbers["bias"]} == numbers
    assert abs(others["bias"] - numbers["bias"]) > 0.1
    assert numbers["neighbours"] < bias.size[point]


def test_estimates_of_places_are_those_of_the_place():
    """Raw values of the place that is told were .1 and more above the truth here."""
    gaps, raw, above = [], [], 0
    for seed in range(12):
        sample, truth = town(seed, 0.25)
        bias = it.local_bias(sample, at=sample.take(np.arange(80)), draws=39, rng=seed)
        shown = beyond(bias, 1, 0.05)
        if shown.any():
            k = int(np.nanargmax(bias.values))
            raw.append(bias.values[k] - _smoothed(bias, truth)[k])
            above += bias.band.lower[most_rows(bias, shown)] > _smoothed(bias, truth).max()
        places = measured_places(bias, 0.05).values()
        gaps += [own["bias"] - _smoothed(bias, truth)[point] for point, own in places]
    assert len(gaps) >= 5
    assert abs(np.mean(gaps)) < 0.045  # about two standard errors
    assert np.mean(raw) > 0.06
    assert above == 0


def _smoothed(bias, truth):
    gram = bias.kernel.gram(bias.points, bias.sample.points).block(slice(None), slice(None))
    weights = np.maximum(gram - bias.cut, 0)
    return weights @ truth / weights.sum(axis=1)


def test_too_few_rows_to_halve_are_no_trouble():
    bias = it.local_bias(it.simulate.survey(3, rng=0).sample, draws=39, rng=0)
    assert measured_places(bias, 0.01) == {}
