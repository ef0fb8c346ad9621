"""Words of the command line: every option of the table, with values that nobody meant."""

import os
import random
from pathlib import Path

from fuzz.command import run
from fuzz.kit import Outcome, Target
from itrust.cli.options import AUDIT, DEMO, RECALIBRATE, Kind, options_of

SOUND = (
    "audit homes.csv --label y --prob p --on age,race --json - --draws 99",
    "audit homes.csv --label y --prob p --on all --gate --task mean(age) --report page.html",
    "audit - --label y --prob p --on age --recalibrate other.csv --quiet",
    "recalibrate homes.csv --label y --prob p --on age --method platt --save learned.json",
    "recalibrate homes.csv --label y --prob p --apply other.csv --out better.csv",
    "recalibrate --load learned.json --apply other.csv --out better.csv",
    "demo --report page.html --rows rows.csv",
    "tasks mean(age)",
    "--version",
)
VALUES = (
    *("", " ", "-", "--", "-1", "0", "1", "0.05", "1e400", "nan", "-inf", "9" * 20, "9" * 5000),
    *("y", "p", "age", "race", "all", "none", "age,race", ",", ",,", "y,y", "'", '"', "`", "\\"),
    *("homes.csv", "other.csv", ".", "..", "/", "~", "~nobody/x", "/dev/null", "/dev/full"),
    *("loop.csv", "pipe.csv", "folder", "folder/", "homes.csv/x.csv", "x" * 300, "x/" * 3000),
    *("*.csv", "**", "[", "[a", "homes.csv::t", "::", "a::", "new.csv", "new.json", "new.gz"),
    *("\udce9", "caf\udce9.csv", "é", "\u202e", "\x1b[31m", "\n", "{value}", "%s", "x" * 100_000),
    *("mean(age)", "mean(", "mean(age) ~ -1", "share(age > 1e999)", "week(age)", "week(age,0)"),
    *("age >= 18", "age >=", "race == 'a'", "race: 1=White, 2=", "race: a=A", "jk1", "fay:9"),
    *("tab", ";", ";;", "model", "tasks", "modle", "platt", "local", "error", "drop", "dmy"),
)
LOOSE = ("--help", "-h", "-q", "--quiet", "--stream", "--settings", "--nonsense", "-x", "--", "-")


def lines(_folder: Path) -> list[bytes]:
    return [b"\0".join(os.fsencode(word) for word in text.split()) for text in SOUND]


def damaged(rng: random.Random, sound: bytes) -> bytes:
    words = [os.fsdecode(word) for word in sound.split(b"\0")]
    command = words[0] if words[0] in (AUDIT, RECALIBRATE, DEMO) else AUDIT
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        at, kind = rng.randrange(len(words) + 1), rng.randrange(6)
        if kind < 3:
            option = rng.choice(options_of(command))
            value = [] if option.kind is Kind.SWITCH else [rng.choice(VALUES)]
            made = (
                [option.flag, *value] if rng.random() < 0.8 else ["=".join([option.flag, *value])]
            )
            words[max(at, 1) : max(at, 1)] = made
        elif kind == 3 and words[at : at + 1]:
            words[at] = rng.choice(VALUES)
        elif kind == 4:
            words.insert(at, rng.choice(LOOSE))
        else:
            del words[at : at + 1]
    return b"\0".join(os.fsencode(word) for word in words)


def typed(given: bytes, folder: Path) -> Outcome:
    if not (folder / "folder").is_dir():
        (folder / "folder").mkdir()
        (folder / "loop.csv").symlink_to("loop.csv")
        os.mkfifo(folder / "pipe.csv")
    words = [os.fsdecode(word) for word in given.split(b"\0")] if given else []
    return run(folder, *words)


TARGETS = [Target("arguments", lines, damaged, typed)]
