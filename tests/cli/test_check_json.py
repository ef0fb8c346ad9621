"""`itrust check-json`: 0 and one line for the JSON of an audit, 2 and one sentence otherwise."""

import json
import subprocess
import sys
from pathlib import Path

SAVED = Path(__file__).parents[1] / "auditing" / "saved"
NEWEST = SAVED / "itrust-audit-5.json"


def check(*given, **settings):
    command = [sys.executable, "-m", "itrust", "check-json", *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)
    return done.returncode, done.stdout, " ".join(done.stderr.split())


def test_an_audit_is_told_in_a_line():
    line = f"{NEWEST.name}: itrust-audit/5 of itrust 0.1.0, 240 rows, miscalibrated"
    code, out, err = check(NEWEST.name, cwd=SAVED)
    assert (code, err) == (0, "")
    assert out.startswith(line)
    assert out.count("\n") == 1


def test_standard_input_is_read():
    code, out, _ = check("-", input=NEWEST.read_text())
    assert code == 0
    assert out.startswith("standard input: itrust-audit/5")


def test_another_version_is_named(tmp_path):
    (tmp_path / "old.json").write_text('{"schema": "itrust-audit/4"}')
    code, out, err = check("old.json", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "it has the schema 'itrust-audit/4', not itrust-audit/5" in err


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
