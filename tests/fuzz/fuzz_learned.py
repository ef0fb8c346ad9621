"""Saved recalibrations of every method, damaged, loaded and applied to rows of all kinds."""

import json
import random
import warnings
from copy import deepcopy

import numpy as np

from fuzz.kit import Outcome, Target, flipped_bytes
from itrust import Sample
from itrust.recalibrate import METHODS, load

CALIBRATION_ROWS = 300
ABSURD = (
    *(None, True, False, 0, 1, -1, 2, 7, 0.5, -0.5, 1e308, -1e308, 5e-324, 1e100, 1e101, 10**30),
    *(2**53, 2**64 + 1, 10**500, "", "x", "nan", "1", "\ud800", "\x00", "a" * 3000, [], {}),
    *([1], [[]], {"a": 1}, [None], [0.5] * 50, {"date": "2020-02-30"}, {"datetime": "x"}),
)
LITERALS = ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000, "0." + "1" * 999, "--1")
SAID = '"itrust: a literal"'  # stands for what json does not write


def rows(n: int, seed: int) -> tuple[np.ndarray, dict]:
    """Predictions and covariates of every kind."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n).astype(float)
    x = {
        "age": np.where(rng.random(n) < 0.1, np.nan, age),
        "income": rng.lognormal(10, 1, n),
        "region": rng.choice(["north", "south", None], n).tolist(),
        "urban": rng.random(n) < 0.5,
        "few": rng.integers(0, 3, n).astype(float),
    }
    return rng.uniform(0.02, 0.98, n), x


HOSTILE_P = np.array([0, 1, 0.5, 5e-324, 1e-300, 1e-17, 1 - 2.0**-53, 0.02, 0.3, 0.98])
HOSTILE = {
    "age": [1e308, -1e308, 5e-324, 0.0, np.nan, 50.0, 18.0, 90.0, 1e15, -40.0],
    "income": [-1.7e308, 1.7e308, 0.0, np.nan, 1.0, 1e4, 1e5, -0.0, 1e-308, 3e4],
    "region": ["north", "south", None, "moon", "north", "", "south", "north", None, "x"],
    "urban": [True, False, True, True, False, True, False, True, False, True],
    "few": [0.0, 1.0, 2.0, 3.0, -1.0, np.nan, 0.5, 1e300, 2.0, 1.0],
}


def saved(folder) -> list[bytes]:
    """A file of each method that is installed, of a fit that changes something."""
    p, x = rows(CALIBRATION_ROWS, 0)
    rng = np.random.default_rng(1)
    y = rng.random(p.size) < np.clip(p + np.where(np.nan_to_num(x["age"]) > 50, 0.3, -0.3), 0, 1)
    sample = Sample(y, p, x, missing="level")
    found = []
    for name, method in METHODS.items():
        if name == "mcgrad":
            continue  # what it learns is not saved
        made = method(min_bins=2, max_bins=12) if name == "bbq" else method()
        made.fit(sample).save(folder / f"{name}.json")
        found.append((folder / f"{name}.json").read_bytes())
    return found


def leaves(facts, way=()) -> list[tuple]:
    """The ways to all entries of nested records and lists."""
    if isinstance(facts, dict):
        entries = list(facts.items())
    elif isinstance(facts, list):
        entries = list(enumerate(facts))
    else:
        return [way]
    return [way, *(leaf for name, own in entries for leaf in leaves(own, (*way, name)))]


def changed(rng: random.Random, facts) -> str:
    """JSON of facts in which an entry, or some, are something else."""
    said = None
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        ways = [way for way in leaves(facts) if way]
        if not ways:
            break
        # Long lists of numbers would otherwise take nearly all of the damage.
        top = rng.choice(sorted({way[:2] for way in ways}, key=str))
        *before, last = rng.choice([way for way in ways if way[:2] == top])
        holder = facts
        for name in before:
            holder = holder[name]
        kind = rng.randrange(8)
        if kind == 0:
            del holder[last]
        elif kind == 1 and isinstance(holder, list):
            holder.insert(last, deepcopy(holder[last]))
        elif kind == 2 and isinstance(holder, dict):
            holder[rng.choice(("extra", "slope", "", "\ud800"))] = deepcopy(holder[last])
        elif kind == 3 and isinstance(holder[last], list) and holder[last]:
            rng.shuffle(holder[last])
        elif kind == 4 and isinstance(holder[last], float | int):
            holder[last] = holder[last] * rng.choice((-1, 0, 2, 1e10, 1e90, 1e300, 1e-300))
        elif kind == 5:
            said = rng.choice(LITERALS)
            holder[last] = json.loads(SAID)
        else:
            holder[last] = deepcopy(rng.choice(ABSURD))
    text = json.dumps(facts)
    return text if said is None else text.replace(SAID, said)


def nudged(rng: random.Random, facts) -> str:
    """JSON of facts in which some learned numbers are others, most of them possible ones."""
    ways = [way for way in leaves(facts["learned"]) if way]
    for _ in range(rng.choice((1, 2, 4, 16))):
        top = rng.choice(sorted({way[:2] for way in ways}, key=str))
        *before, last = rng.choice([way for way in ways if way[:2] == top])
        holder = facts["learned"]
        for name in before:
            holder = holder[name]
        value = holder[last]
        if isinstance(value, float):
            sizes = (0.0, 1.0, 0.5, -value, value * 2, value / 2, 1e99, -1e99, 1e308, 5e-324, 1e6)
            holder[last] = rng.choice(sizes)
        elif isinstance(value, int) and not isinstance(value, bool):
            holder[last] = rng.choice((value + 1, value - 1, 0))
    return json.dumps(facts)


def damaged(rng: random.Random, sound: bytes) -> bytes:
    kind = rng.random()
    if kind < 0.2:
        return flipped_bytes(rng, sound)
    if kind < 0.6:
        return nudged(rng, json.loads(sound)).encode()
    text = changed(rng, json.loads(sound))
    if kind < 0.65:
        at = text.index(": ") + 2
        text = text[:at] + "[" * rng.choice((50, 500, 100_000)) + text[at:]
    elif kind < 0.7:
        text = text.replace("{", '{"method": "Platt", ', 1)
    return text.encode()


def handed_in(given: bytes, folder) -> Outcome | None:
    """Load it and recalibrate hostile rows; every probability is a number within [0, 1]."""
    path = folder / "damaged.json"
    path.write_bytes(given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learned = load(path)
        told = learned.predict(HOSTILE_P, HOSTILE)
        usual, x = rows(50, 2)
        told = np.concatenate([told, learned.predict(usual, x)])
        learned.outside(HOSTILE_P, HOSTILE)
        learned.save(folder / "again.json")
        assert repr(learned)
    return None if ((told >= 0) & (told <= 1)).all() else Outcome.CHANGED


TARGETS = [Target("learned", saved, damaged, handed_in, fresh=15)]
