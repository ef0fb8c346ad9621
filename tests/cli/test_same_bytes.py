"""The same command with the same seed writes the same bytes, wherever and whenever it runs."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.nightly

AUDIT = (
    "audit in/rows.csv --prob p --prob p2 --task mean(age) --draws 39 --json audit.json --report "
    "page.html --junit junit.xml --summary summary.md"
)
RECALIBRATE = "recalibrate in/other.csv --prob p --apply in/rows.csv --save learned.json --out "
SETTINGS = 'label = "y"\non = ["age", "sex", "day"]\nrecalibrate = "in/other.csv"\n'
# The two seeds of hashes put families of checks, held in a set, into orders that round differently.
PLACES = {
    "a": {"PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1", "TZ": "UTC", "COLUMNS": "80", "LANG": "C"},
    "elsewhere/b": {
        "PYTHONHASHSEED": "11",
        "OMP_NUM_THREADS": "2",
        "TZ": "Asia/Tokyo",
        "COLUMNS": "133",
        "LANG": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "2",
    },
}


def write_rows(path: Path, seed: int, n: int = 150) -> None:
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(20, 80, n), rng.choice(["f", "m", "x"], n)
    day = np.datetime64("2024-01-01") + rng.integers(0, 90, n).astype("timedelta64[D]")
    p = rng.uniform(0.1, 0.9, n)
    y = rng.random(n) < np.clip(p + 0.5 * (age > 50), 0, 1)
    rows = zip(y.astype(int), p, p**2, age, sex, day, strict=True)
    lines = ["y,p,p2,age,sex,day", *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def written_in(folder: Path, changed: dict[str, str], commands: list[str]) -> dict[str, bytes]:
    """Run the commands in a folder; all files that they wrote."""
    (folder / "in").mkdir(parents=True)
    write_rows(folder / "in" / "rows.csv", 0)
    write_rows(folder / "in" / "other.csv", 1)
    (folder / "itrust.toml").write_text(SETTINGS, encoding="utf-8")
    for command in commands:
        subprocess.run(
            [sys.executable, "-m", "itrust", *shlex.split(command), "--quiet"],
            cwd=folder,
            env=os.environ | changed,
            check=True,
            capture_output=True,
        )
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("commands", "files"),
    [
        ([AUDIT], {"audit.json", "page.html", "junit.xml", "summary.md"}),
        (
            [
                f"{RECALIBRATE} out.csv.gz --method local",
                "recalibrate --load learned.json --apply in/rows.csv --out out.parquet",
            ],
            {"learned.json", "out.csv.gz", "out.parquet"},
        ),
    ],
    ids=["audit", "recalibrate"],
)
def test_the_same_command_writes_the_same_bytes(commands, files, tmp_path):
    first, second = (
        written_in(tmp_path / place, changed, commands) for place, changed in PLACES.items()
    )
    assert first.keys() == second.keys() == files | {"itrust.toml"}
    assert [name for name in files if first[name] != second[name]] == []
    assert not any(str(tmp_path).encode() in content for content in first.values())
