"""Audits in JSON, damaged and read: what keeps to the schema comes back, all else is refused."""

import json
import random
from pathlib import Path

from fuzz.fuzz_learned import changed
from fuzz.kit import Outcome, Target, flipped_bytes
from itrust.auditing import read_json

SAVED = Path(__file__).parents[1] / "auditing" / "saved"


def saved(_folder) -> list[bytes]:
    """The held examples of all versions; of the newest, as many as of the others together."""
    *older, newest = (path.read_bytes() for path in sorted(SAVED.glob("*.json")))
    return [*older, *([newest] * max(len(older), 1))]


def damaged(rng: random.Random, sound: bytes) -> bytes:
    kind = rng.random()
    if kind < 0.2:
        return flipped_bytes(rng, sound)
    text = changed(rng, json.loads(sound))
    if kind < 0.3:
        at = text.index(": ") + 2
        text = text[:at] + '[{"part": ' * rng.choice((50, 500, 20_000)) + text[at:]
    elif kind < 0.4:
        deep = rng.choice((10, 400, 900))
        text = text.replace('{"kind": ', '{"kind": "not", "part": ' * deep + '{"kind": ', 1)
    return text.encode(errors="surrogatepass")


def handed_in(given: bytes, folder) -> Outcome | None:
    """Read it; what was read can be written again."""
    path = folder / "damaged.json"
    path.write_bytes(given)
    found = read_json(path)
    return None if json.loads(json.dumps(found, allow_nan=False)) == found else Outcome.CHANGED


TARGETS = [Target("audits", saved, damaged, handed_in, fresh=60)]
