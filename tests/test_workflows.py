"""What runs on other machines: workflows, the action, hooks before a commit, templates."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from itrust.auditing import read_json

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".github"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TEXTS = {path.stem: path.read_text() for path in sorted((FOLDER / "workflows").glob("*.yml"))}
WORKFLOWS = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
JOBS = [(name, job) for name, whole in WORKFLOWS.items() for job in whole["jobs"]]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([\w./-]+):(?!=)", MAKEFILE, re.MULTILINE))


def job_of(name: str, job: str) -> dict[str, Any]:
    return WORKFLOWS[name]["jobs"][job]


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every step of the workflows and of the action, with where it stands."""
    for name, job in JOBS:
        yield from ((f"{name}/{job}", step) for step in job_of(name, job)["steps"])
    yield from (("action", step) for step in ACTION["runs"]["steps"])


def commands(text: str) -> Iterator[list[str]]:
    """The words of every command that calls make."""
    for line in text.splitlines():
        if found := re.match(r"\s*make (.*?)(?: >.*)?$", line):
            yield found[1].split()


def test_there_are_tests_docs_a_release_and_a_schedule():
    assert set(WORKFLOWS) == {"tests", "docs", "release", "scheduled"}
    on = {name: set(whole[True]) for name, whole in WORKFLOWS.items()}  # YAML reads `on` as true
    assert {"push", "pull_request"} <= on["tests"] & on["docs"]
    assert on["release"] == {"push"}
    assert WORKFLOWS["release"][True]["push"] == {"tags": ["v*"]}
    assert "schedule" in on["scheduled"]


@pytest.mark.parametrize(("name", "job"), JOBS)
def test_jobs_end_and_their_names_lead_somewhere(name, job):
    found = job_of(name, job)
    assert found["timeout-minutes"] <= 90
    matrix = found.get("strategy", {}).get("matrix", {})
    assert set(re.findall(r"matrix\.([\w-]+)", json.dumps(found))) == set(matrix)
    needs = found.get("needs", [])
    assert {*([needs] if isinstance(needs, str) else needs)} <= set(WORKFLOWS[name]["jobs"])


def test_rights_are_given_one_by_one_and_only_one_job_may_publish():
    for name, whole in WORKFLOWS.items():
        assert whole["permissions"] == ({} if name == "release" else {"contents": "read"})
    given = {f"{name}/{job}": job_of(name, job).get("permissions") for name, job in JOBS}
    assert {place: own for place, own in given.items() if own is not None} == {
        "release/build": {"contents": "read"},
        "release/publish": {"id-token": "write", "attestations": "write"},
    }
    publish = job_of("release", "publish")
    assert publish["environment"] == "pypi"
    assert not [step for step in publish["steps"] if "run" in step], "code with rights to publish"


def test_no_token_is_used_and_none_is_kept():
    for place, step in steps():
        assert "secrets." not in json.dumps(step), place
        assert "password" not in json.dumps(step), place
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, place


@pytest.mark.parametrize("name", [*TEXTS, "action"])
def test_actions_are_pinned_to_a_commit_of_a_named_version(name):
    text = TEXTS.get(name) or (ROOT / "action.yml").read_text()
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert [one for one in used if not PINNED.fullmatch(one)] == []


def test_an_action_has_one_pin_everywhere():
    text = "".join(TEXTS.values()) + (ROOT / "action.yml").read_text()
    used = set(re.findall(r"uses: (.*)", text))
    assert len({one.split("@")[0] for one in used}) == len(used)


@pytest.mark.parametrize("path", ["action.yml", ".pre-commit-config.yaml", *(
    f".github/workflows/{name}.yml" for name in TEXTS)])  # fmt: skip
def test_no_address_is_written_down(path):
    assert not re.search(r"://|index-url|find-links", (ROOT / path).read_text())


def test_what_is_made_is_in_the_makefile():
    found = [words for _, step in steps() for words in commands(step.get("run", ""))]
    assert len(found) >= 8
    for words in found:
        wanted = {word for word in words if "=" not in word}
        given = {word.partition("=")[0] for word in words if "=" in word}
        assert wanted <= TARGETS, words
        assert all(re.search(rf"\b{name}\b\s*[?:]?=", MAKEFILE) for name in given), words
        # Otherwise make takes whichever python3.11 it finds, not the one of the matrix.
        assert "PYTHON=python" in words, words
    made = {word for words in found for word in words}
    assert {"lint", "types", "unit", "docs", "oldest", "smoke", "data", "fuzz"} <= made


def test_the_newest_versions_are_tried_without_pins():
    (line,) = [
        s["run"] for s in job_of("scheduled", "newest")["steps"] if "make" in s.get("run", "")
    ]
    assert line.endswith(" PIP_CONSTRAINT=")  # what is said on the command line wins
    assert re.search(r"^export PIP_CONSTRAINT :=", MAKEFILE, re.MULTILINE)


def test_paths_that_steps_name_are_there():
    for place, step in steps():
        for path in re.findall(r"\btests/[\w/.]+", step.get("run", "")):
            assert (ROOT / path).exists(), (place, path)


def test_scripts_are_shell():
    for place, step in steps():
        if "run" in step:
            told = subprocess.run(["bash", "-n"], input=step["run"], text=True, capture_output=True)
            assert told.returncode == 0, (place, told.stderr)
            # Values of others would become code; variables do not.
            assert "${{" not in step["run"], place


def test_the_matrix_is_what_the_project_promises():
    versions = job_of("tests", "unit")["strategy"]["matrix"]["python-version"]
    asked = SpecifierSet(PROJECT["requires-python"])
    assert all(isinstance(version, str) for version in versions), "3.10 without quotes is 3.1"
    assert versions == sorted(versions, key=Version)
    assert all(Version(version) in asked for version in versions)
    major, minor = versions[0].split(".")
    assert Version(f"{major}.{int(minor) - 1}") not in asked, "an older one is allowed, not tested"
    told = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line)
            for line in PROJECT["classifiers"]]  # fmt: skip
    classified = [found[1] for found in told if found]
    assert classified in ([], versions)
    newest = job_of("scheduled", "newest")["strategy"]["matrix"]["python-version"]
    assert newest == [versions[0], versions[-1]]


def test_other_jobs_use_versions_of_the_matrix():
    versions = job_of("tests", "unit")["strategy"]["matrix"]["python-version"]
    for place, step in steps():
        version = step.get("with", {}).get("python-version", versions[0])
        assert version in versions or version.startswith("${{ matrix."), place


def test_what_is_published_is_what_was_built():
    build, publish = job_of("release", "build"), job_of("release", "publish")
    (kept,) = [s["with"] for s in build["steps"] if "upload-artifact" in s.get("uses", "")]
    fetch, attest, upload = publish["steps"]
    assert publish["needs"] == "build"
    assert fetch["with"]["name"] == kept["name"]
    assert attest["with"]["subject-path"] == f"{fetch['with']['path']}/*"
    assert upload["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert upload["with"] == {"attestations": True}


@pytest.mark.parametrize(("tag", "code"), [("v1.2.3", 0), ("v1.2.4", 1), ("v", 1)])
def test_a_tag_that_names_another_version_stops_the_release(tag, code, tmp_path):
    (script,) = [s["run"] for s in job_of("release", "build")["steps"] if "TAG" in s.get("env", {})]
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "itrust-1.2.3-py3-none-any.whl").touch()
    done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env={"TAG": tag}, check=False)
    assert done.returncode == code


def test_data_are_fetched_where_tests_want_them_and_nowhere_else():
    sets = [place for place, step in steps() if "ITRUST_DATA" in step.get("run", "")]
    assert sets == ["tests/unit"]
    assert "ITRUST_REQUIRE_DATA" not in "".join(TEXTS.values()), "a clone does not have all files"


# The action


SHIM = '#!/bin/sh\nexec "{python}" -m itrust "$@"\n'


@pytest.fixture
def job(tmp_path) -> Path:
    """A folder with 300 rows of a model that does not know that age counts the other way round."""
    rng = np.random.default_rng(0)
    age, sex = rng.integers(20, 80, 300), rng.choice(["f", "m"], 300)
    truth = 1 / (1 + np.exp(-(age - 50) / 15 * np.where(sex == "f", 1.0, -1.0)))
    rows = {
        "y": (rng.random(300) < truth).astype(int),
        "p": np.full(300, 0.5),
        "age": age,
        "sex": sex,
    }
    pyarrow.csv.write_csv(pa.table(rows), tmp_path / "scores.csv")
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin" / "itrust"
    shim.write_text(SHIM.format(python=sys.executable))
    shim.chmod(0o755)
    return tmp_path


def run_action(job: Path, **inputs: str) -> subprocess.CompletedProcess:
    """The step of the action as a runner runs it: bash -e -o pipefail, inputs as variables."""
    (step,) = [step for step in ACTION["runs"]["steps"] if step.get("id") == "audit"]
    given = {name: own.get("default", "") for name, own in ACTION["inputs"].items()} | inputs
    named = {
        key: re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", value)[1]
        for key, value in step["env"].items()
    }
    environment = os.environ | {key: given[name] for key, name in named.items()}
    environment |= {
        "PATH": f"{job / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(job / "summary.md"),
        "GITHUB_OUTPUT": str(job / "output"),
    }
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
    return subprocess.run(
        command, cwd=job, env=environment, capture_output=True, text=True, check=False
    )


OPTIONS = "--label=y\n--prob=p\n--on=age,sex\n--draws=79\n--quiet\n"


def test_the_action_closes_the_gate_and_shows_why(job):
    done = run_action(job, file="scores.csv", options=OPTIONS)
    assert done.returncode == 1, done.stderr
    assert "miscalibrated" in (job / "summary.md").read_text()
    assert (job / "output").read_text() == "code=1\n"
    made = sorted(path.name for path in (job / "itrust-audit").iterdir())
    assert made == ["audit.html", "audit.json", "audit.md", "audit.xml"]
    assert read_json(job / "itrust-audit" / "audit.json")["n"] == 300
    assert "<failure" in (job / "itrust-audit" / "audit.xml").read_text()


def test_the_action_lets_pass_where_no_gate_is_asked_for(job):
    done = run_action(job, file="scores.csv", options=OPTIONS, gate="none")
    assert done.returncode == 0, done.stderr
    assert (job / "output").read_text() == "code=0\n"


def test_the_action_fails_on_wrong_input_and_shows_nothing(job):
    done = run_action(job, file="nowhere.csv", options=OPTIONS)
    assert done.returncode == 2
    assert "nowhere.csv" in done.stderr
    assert not (job / "summary.md").exists()
    assert (job / "output").read_text() == "code=2\n"


def test_options_are_words_and_never_code(job):
    (job / "a b.csv").write_bytes((job / "scores.csv").read_bytes())
    hostile = f'{OPTIONS}--task=mean(age | sex == "f")\n--title=$(touch harm); `touch harm` *\n'
    done = run_action(job, file="a b.csv", options=hostile, gate="none", folder="out put")
    assert done.returncode == 0, done.stderr
    assert not (job / "harm").exists()
    made = read_json(job / "out put" / "audit.json")
    assert made["provenance"]["title"] == "$(touch harm); `touch harm` *"
    assert made["tasks"][0]["task"].startswith("mean(age")


def test_the_action_describes_what_it_takes():
    assert ACTION["runs"]["using"] == "composite"
    assert all(own["description"] for own in ACTION["inputs"].values())
    used = set(re.findall(r"inputs\.(\w+)", json.dumps(ACTION["runs"])))
    assert used == set(ACTION["inputs"])


# Before a commit, and templates


def test_hooks_have_the_tools_and_versions_of_the_tests():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"]
    pins = set((ROOT / "constraints.txt").read_text().splitlines())
    found = {hook["id"]: hook for hook in hooks[0]["hooks"]}
    assert set(found) == {"ruff-check", "ruff-format", "mypy"}
    for hook in found.values():
        assert set(hook.get("additional_dependencies", ())) <= pins, hook["id"]
    tools = re.search(r"^lint:.*?\n\n", MAKEFILE, re.MULTILINE | re.DOTALL)[0]
    for name in ("ruff-check", "ruff-format"):
        assert found[name]["additional_dependencies"]
        entry = found[name]["entry"].removesuffix(" --force-exclude")
        assert f"$(BIN)/{entry} ." in tools
    assert found["mypy"]["entry"] == "make types"


def test_issue_forms_ask_for_what_a_report_needs():
    forms = {
        path.stem: yaml.safe_load(path.read_text())
        for path in (FOLDER / "ISSUE_TEMPLATE").glob("*.yml")
    }
    assert set(forms) == {"config", "problem", "idea"}
    for name in ("problem", "idea"):
        assert forms[name]["name"]
        assert forms[name]["description"]
        ids = [part["id"] for part in forms[name]["body"] if part["type"] != "markdown"]
        assert len(set(ids)) == len(ids)
    assert "itrust doctor" in json.dumps(forms["problem"])


def test_links_of_the_templates_lead_somewhere():
    page = FOLDER / "pull_request_template.md"
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        assert (page.parent / target).resolve().exists(), target


def test_security_says_how_to_report_without_naming_anybody():
    text = (ROOT / "SECURITY.md").read_text()
    assert "## How to report a problem" in text
    assert "private security advisory" in text
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"):
        assert not re.search(r"[\w.]+@[\w-]+\.\w+", (ROOT / name).read_text()), name
