"""Files of settings: damaged bytes, and sound TOML with values that nobody meant."""

import random
from pathlib import Path

from fuzz.command import run
from fuzz.kit import Outcome, Target, flipped_bytes
from itrust.cli.options import BY_NAME

SOUND = (
    'label = "y"\nprob = "p"\non = ["age", "race"]\ntask = ["mean(age)"]\njson = "a.json"\n',
    'label = "y"\nalpha = 0.1\ndraws = 199\nseed = 7\nmin-cell = 20\ngate = true\nquiet = true\n',
    '[project]\nname = "x"\n[tool.itrust]\nlabel = "y"\nprob = ["p"]\non = "all"\nstream = true\n',
    'na-values = [-99, "NA"]\npositive = 1\nwhere = """age >= 18"""\nmissing = "drop"\n',
    "apply = 'other.csv'\nout = 'o.csv'\nsave = 's.json'\nmethod = 'platt'\ncolumn = 'q'\n",
    'recalibrate = "other.csv"\nreport = "page.html"\njunit = "j.xml"\nsummary = "s.md"\n',
)
VALUES = (
    *("true", "false", "0", "-1", "1", "0.05", "1e400", "-inf", "nan", "0x" + "f" * 5000),
    *("9" * 4000, "9" * 5000, "2024-01-31", "07:32:00", "1979-05-27T00:32:00-07:00"),
    *('""', '"y"', '"p"', '"age"', '"-"', '"none"', '"all"', '"."', '".."', '"~"', '"/dev/null"'),
    *('"/dev/stdin"', '"/proc/self/mem"', '"a\\u0000b"', '"\\u202e"', '"x/y.json"', "'''\n'''"),
    *('"../../etc/passwd"', '"*"', '"**/*.csv"', '"a::b"', '"[abc]"', '"{value}"', '"%s"'),
    *(
        "[]",
        "{}",
        "[[]]",
        "[1, 'a', 2.5]",
        '["y", "y"]',
        "{a = 1}",
        "[" * 500,
        "[" * 300 + "]" * 300,
    ),
    *('"week(age)"', '"mean(age"', "'mean(age | race == \"a\") ~ 0'", '"race: 1=a, 2="', '"jk1"'),
)
TABLES = ("[tool.itrust]", "[[label]]", "[tool]\nitrust = 3", "tool = 'itrust'")
BROKEN = ("=", "label", "\ufeff", *TABLES)
PIECES = ("x", "é", "..", "{", "\U0010ffff")
# Typed where the settings do not say it, so that a command is whole.
WHOLE = {"label": "y", "prob": "p", "on": "age"}


def texts(_folder: Path) -> list[bytes]:
    return [text.encode() for text in SOUND]


def damaged(rng: random.Random, sound: bytes) -> bytes:
    if rng.random() < 0.4:
        return flipped_bytes(rng, sound)
    lines = [_line(rng) for _ in range(rng.choice((1, 1, 2, 3, 8)))]
    if rng.random() < 0.3:
        lines = [*sound.decode().splitlines(), *lines]
    if rng.random() < 0.2:
        lines.insert(0, "[tool.itrust]")
    if rng.random() < 0.2:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(BROKEN))
    made = "\n".join(lines).encode()
    return flipped_bytes(rng, made) if rng.random() < 0.1 else made


def _line(rng: random.Random) -> str:
    name, value = rng.choice([*BY_NAME]), rng.choice(VALUES)
    kind = rng.randrange(12)
    if kind == 0:
        dots, part = rng.choice((3, 90, 110, 20_000)), rng.choice(("a", "'a'", '"a."', "a "))
        name = ".".join([name, *([part] * dots)])
        name = f"[{name}]\n{name}" if rng.random() < 0.3 else name
    elif kind == 1:
        name = rng.choice((name.upper(), name.replace("-", "_"), name[1:] or "x", name * 2000))
    elif kind == 2:
        value = f"[{', '.join([value] * rng.choice((2, 50, 3000)))}]"
    elif kind == 3:
        value = (
            f'"{rng.choice(("x", "é", "..", "{", chr(0x10FFFF))) * rng.choice((1, 300, 50_000))}"'
        )
    return f"{name} = {value}"


def read(given: bytes, folder: Path) -> Outcome:
    name = "pyproject.toml" if b"[tool" in given else "itrust.toml"
    command = "recalibrate" if len(given) % 2 else "audit"
    place = folder / name
    place.write_bytes(given)
    needed = WHOLE if command == "audit" or b"out" in given else {**WHOLE, "save": "s.json"}
    words = [
        word
        for option, value in needed.items()
        if option.encode() not in given
        for word in (f"--{option}", value)
    ]
    try:
        return run(folder, command, "homes.csv", *words)
    finally:
        place.unlink()


TARGETS = [Target("settings", texts, damaged, read)]
