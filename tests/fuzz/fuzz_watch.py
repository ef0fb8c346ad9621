"""Files of watches, damaged, loaded, shown and updated with rows of all kinds, by both doors."""

import base64
import json
import math
import random
import warnings

import numpy as np

from fuzz.command import run
from fuzz.fuzz_learned import HOSTILE, HOSTILE_P, changed, leaves, rows
from fuzz.kit import Outcome, Target, flipped_bytes
from itrust import Sample, Watch

NUMBERS = (0.0, 1.0, -1.0, 1e149, -1e149, 1e308, math.nan, math.inf, -math.inf, 5e-324, 40.0)


def sample(n: int, seed: int) -> Sample:
    p, x = rows(n, seed)
    y = np.random.default_rng(seed).random(n) < p
    return Sample(y, p, x, missing="level")


def saved(folder) -> list[bytes]:
    """A watch of each promise, and one with a tolerance."""
    found = []
    for settings in ({}, {"promise": "run length"}, {"tolerance": 0.05}):
        watch = Watch.start(
            sample(300, 0), ['share(region == "north")', "prevalence(urban == true)"], **settings
        )
        for seed in (1, 2):
            watch = watch.update(sample(60, seed), name=f"week {seed}")
        found.append(watch.save(folder / "watch.json").read_bytes())
    return found


def nudged(rng: random.Random, facts) -> str:
    """JSON of facts in which numbers of some arrays are others."""
    for _ in range(rng.choice((1, 2, 4))):
        ways = [way for way in leaves(facts["wealth"]) if way and way[-1] == "data"]
        *before, _ = rng.choice(ways)
        holder = facts["wealth"]
        for name in before:
            holder = holder[name]
        values = np.frombuffer(base64.b64decode(holder["data"]), dtype=holder["type"]).copy()
        if values.size:
            with np.errstate(over="ignore"):
                values[rng.randrange(values.size)] = rng.choice(NUMBERS)
        holder["data"] = base64.b64encode(values.tobytes()).decode()
    return json.dumps(facts)


def damaged(rng: random.Random, sound: bytes) -> bytes:
    kind = rng.random()
    if kind < 0.2:
        return flipped_bytes(rng, sound)
    if kind < 0.6:
        return nudged(rng, json.loads(sound)).encode()
    return changed(rng, json.loads(sound)).encode()


def handed_in(given: bytes, folder) -> Outcome | None:
    """Load it, tell it and go on with it; the evidence is a number that is not below 0."""
    path = folder / "damaged.json"
    path.write_bytes(given)
    labels = [0, 1] * 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        watch = Watch.load(path)
        watch.to_dict()
        hostile = Sample(labels, np.clip(HOSTILE_P, 0.1, 0.9), HOSTILE, missing="level")
        for batch in (sample(30, 9), hostile):
            watch = watch.update(batch)
            json.dumps(watch.to_dict(), allow_nan=False)
        watch.save(folder / "again.json")
        assert repr(Watch.load(folder / "again.json")) == repr(watch)
    return None if watch.evalue >= 0 else Outcome.CHANGED


CSV = "\n".join(
    [
        "y,p,home,closes",
        *(f"{k % 2},0.{k % 8 + 1},0{k % 3},2026-11-0{k % 9 + 1}" for k in range(60)),
    ]
)


def begun(folder) -> list[bytes]:
    """What the command keeps with a watch of a file, some rows of which wait."""
    (folder / "reference.csv").write_text(CSV)
    columns = ["--label", "y", "--prob", "p", "--on", "home", "--date-column", "closes"]
    text = {"--where": "p < 0.9", "--category": "home", "--na-values": "-9", "--missing": "level"}
    more = [word for pair in text.items() for word in pair]
    state = ["--state", str(folder / "watch.json"), "--quiet"]
    reference = str(folder / "reference.csv")
    assert run(folder, "watch", "start", reference, *columns, *more, *state) is Outcome.ACCEPTED
    batch = [*_batch(folder), "--closed-before", "2026-11-05"]
    assert run(folder, "watch", "update", *batch, *state) is Outcome.ACCEPTED
    return [(folder / "watch.json").read_bytes()]


def _batch(folder) -> list[str]:
    (folder / "batch.csv").write_text(CSV.replace("0.1", "0.15"))
    return [str(folder / "batch.csv"), "--name", "batch"]


def changed_source(rng: random.Random, sound: bytes) -> bytes:
    facts = json.loads(sound)
    source = changed(rng, facts["source"])
    return (
        json.dumps({**facts, "source": "what is kept"}).replace('"what is kept"', source).encode()
    )


def updated(given: bytes, folder) -> Outcome:
    (folder / "watch.json").write_bytes(given)
    state = ["--state", str(folder / "watch.json"), "--quiet"]
    return run(folder, "watch", "update", *_batch(folder), "--late", *state)


TARGETS = [
    Target("watch", saved, damaged, handed_in, fresh=50),
    Target("watch-command", begun, changed_source, updated, fresh=8),
]
