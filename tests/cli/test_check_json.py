"""`itrust check-json`: 0 and one line for the JSON of an audit, 2 and one sentence otherwise."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SAVED = Path(__file__).parents[1] / "auditing" / "saved"
NEWEST = SAVED / "itrust-audit-5.json"


def check(*given, **settings):
    command = [sys.executable, "-m", "itrust", "check-json", *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
    return done.returncode, done.stdout, " ".join(done.stderr.split())


def test_an_audit_is_told_in_a_line():
    line = f"{NEWEST.name}: itrust-audit/5 of itrust 0.1.0.dev0, 240 rows, miscalibrated"
    code, out, err = check(NEWEST.name, cwd=SAVED)
    assert (code, err) == (0, "")
    assert out.startswith(line)
    assert out.count("\n") == 1


def test_standard_input_is_read():
    code, out, _ = check("-", input=NEWEST.read_text())
    assert code == 0
    assert out.startswith("standard input: itrust-audit/5")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_older_version_is_named(number):
    code, out, err = check(f"itrust-audit-{number}.json", cwd=SAVED)
    assert (code, out) == (2, "")
    assert f"it has the schema itrust-audit/{number} of an earlier version" in err


def test_a_damaged_audit_is_refused_with_the_place(tmp_path):
    found = json.loads(NEWEST.read_text())
    del found["tasks"][1]["pvalue"]
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(found))
    code, out, err = check(path.name, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err == "itrust: audit.json: tasks[1] lacks the entry 'pvalue'"


def test_what_cannot_be_read_is_refused(tmp_path):
    code, _, err = check("nowhere.json", cwd=tmp_path)
    assert (code, err) == (2, "itrust: cannot read nowhere.json: No such file or directory")
    code, _, err = check("-", stdin=subprocess.DEVNULL)
    assert code == 2
    assert err.startswith("itrust: standard input is not JSON: expecting value in line 1; give")
