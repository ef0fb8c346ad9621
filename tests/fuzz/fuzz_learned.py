"""Saved recalibrations of every method, damaged, loaded and applied to rows of all kinds."""

import json
import random
import warnings

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
            continue  # a target of its own, where it is installed
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
            holder.insert(last, holder[last])
        elif kind == 2 and isinstance(holder, dict):
            holder[rng.choice(("extra", "slope", "", "\ud800"))] = holder[last]
        elif kind == 3 and isinstance(holder[last], list) and holder[last]:
            rng.shuffle(holder[last])
        elif kind == 4 and isinstance(holder[last], float | int):
            holder[last] = holder[last] * rng.choice((-1, 0, 2, 1e10, 1e90, 1e300, 1e-300))
        elif kind == 5:
            said = rng.choice(LITERALS)
            holder[last] = json.loads(SAID)
        else:
            holder[last] = rng.choice(ABSURD)
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
        warnings.filterwarnings("ignore", r"\s*Dask dataframe query", FutureWarning)  # of LightGBM
        learned = load(path)
        told = learned.predict(HOSTILE_P, HOSTILE)
        usual, x = rows(50, 2)
        told = np.concatenate([told, learned.predict(usual, x)])
        learned.outside(HOSTILE_P, HOSTILE)
        learned.save(folder / "again.json")
        assert repr(learned)
    return None if ((told >= 0) & (told <= 1)).all() else Outcome.CHANGED


TREE = """Tree={number}
num_leaves=4
num_cat=1
split_feature=1 0 2
split_gain=5.3 4.6 1
threshold=48750.000000000007 0 0.5
decision_type=2 1 10
left_child=1 -1 -2
right_child=2 -3 -4
leaf_value=0.0091 -0.0029 -0.0155 0.0130
leaf_weight=141.5 596.9 66.9 151.9
leaf_count=631 2958 293 670
internal_value=-0.0009 0.0008 0.004
internal_weight=1281.5 684.5 218.9
internal_count=6000 3042 963
cat_boundaries=0 1
cat_threshold=4
is_linear=0
shrinkage=0.0287298

"""
HEADER = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=3
objective=binary sigmoid:1
feature_names=region age income prediction
feature_infos=-1:0:1:2 [20:84] [7000:249800] [-2.9:2.9]
tree_sizes=692 689

"""


def of_trees(_folder) -> list[bytes]:
    """A file of MCGrad with two small trees, as that package and LightGBM write them."""
    trees = HEADER + TREE.format(number=0) + "\n" + TREE.format(number=1) + "\nend of trees\n"
    model = {
        "schema_version": 2,
        "mcgrad": [{"booster": trees + "\nparameters:\n[boosting: gbdt]", "unshrink_factor": 1.07}],
        "params": {"num_rounds": 100, "early_stopping": True},
        "has_encoder": True,
        "encoder": "{0: {'north': 0, 'south': 1, 'it\\'s': 2}}",
        "categorical_feature_names": ["region"],
        "numerical_feature_names": ["age", "income"],
    }
    facts = {
        "schema": "itrust-recalibration/2",
        "version": "0.1",
        "method": "MCGrad",
        "settings": {},
        "columns": {"age": "number", "income": "number", "region": "category"},
        "missing_levels": {"age": None, "income": None, "region": None},
        "seen_levels": {"region": ["it's", "north", "south"]},
        "meanings": {},
        "prob": "p",
        "rows": 6000,
        "available_rows": 6000,
        "learned": {"model": json.dumps(model)},
    }
    return [json.dumps(facts).encode()]


def damaged_trees(rng: random.Random, sound: bytes) -> bytes:
    """The file, the model in it, or the trees in that."""
    facts = json.loads(sound)
    kind = rng.random()
    if kind < 0.1:
        return changed(rng, facts).encode()
    model = json.loads(facts["learned"]["model"])
    if kind < 0.3:
        facts["learned"]["model"] = changed(rng, model)
        return json.dumps(facts).encode()
    part = model["mcgrad"][0]
    if kind < 0.5:
        part["booster"] = flipped_bytes(rng, part["booster"].encode()).decode("utf-8", "replace")
    else:
        lines = part["booster"].split("\n")
        for _ in range(rng.choice((1, 1, 2, 3))):
            at = rng.randrange(len(lines))
            name, sign, values = lines[at].partition("=")
            words = values.split(" ")
            new = ("-1", "0", "1", "2", "9999999", "-9999999", "nan", "", "1e400", "99", "inf")
            words[rng.randrange(len(words))] = rng.choice((*new, "2147483648", "-0", "1e5", "x"))
            lines[at] = name + sign + " ".join(words)
        part["booster"] = "\n".join(lines)
    facts["learned"]["model"] = json.dumps(model)
    return json.dumps(facts).encode()


TARGETS = [
    Target("learned", saved, damaged, handed_in, fresh=15),
    Target("trees", of_trees, damaged_trees, handed_in),
]
