"""What a release is made of agrees: bounds and the versions that test them, pins and hashes."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import charts
import check
import contents
import itrust
import smoke

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
SOURCES = Path(itrust.__file__).parents[1]  # of the package that is tested, installed or not
# Lower bounds that `make oldest` does not test.
NOT_TESTED = {
    "jsonschema": "the oracle of a checker of ours",
    "latex2mathml": "makes the site",
    "mkdocs": "makes the site",
    "mkdocs-material": "makes the site",
    "mkdocstrings": "makes the site",
    "mlflow-skinny": "it brings many packages along",
    "mypy": "reads the code and runs none of it",
    "ruff": "reads the code and runs none of it",
    "scipy-stubs": "reads the code and runs none of it",
    "svy": "needs newer versions than the core does",
    "torch": "one version can be installed here, which is not old",
}


def requirements():
    """Every requirement of the core and of the extras, by the name it is installed by."""
    extras = PROJECT["optional-dependencies"].values()
    return [Requirement(line) for line in chain(PROJECT["dependencies"], *extras)]


def lower_bounds():
    found = {}
    for requirement in requirements():
        for bound in requirement.specifier:
            if bound.operator == ">=":
                found.setdefault(canonicalize_name(requirement.name), set()).add(bound.version)
    return found


def pins(text):
    """Versions by name, of lines such as `numpy==2.4.6` with or without more behind."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", text, re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in found}


def oldest():
    """The pins that are lower bounds, and those that only go with them."""
    bounds, others = (ROOT / "constraints-oldest.txt").read_text().split("# What these need")
    return pins(bounds), pins(others)


def recipe():
    """What `make oldest` does."""
    return re.search(r"^oldest:.*?\n\n", MAKEFILE, re.M | re.S)[0]


def test_every_lower_bound_is_tested_or_has_a_reason():
    bounds, _ = oldest()
    bounds |= pins("pyreadstat==" + re.search(r"pyreadstat==(\S+)", recipe())[1])
    assert all(len(versions) == 1 for versions in lower_bounds().values()), "two bounds for one"
    allowed = {name: Version(*versions) for name, versions in lower_bounds().items()}
    assert {name: v for name, v in allowed.items() if name not in NOT_TESTED} == bounds


def test_what_is_not_tested_is_still_required():
    assert set(NOT_TESTED) <= {canonicalize_name(r.name) for r in requirements()}
    assert not set(NOT_TESTED) & set(chain(*oldest()))


def test_the_oldest_environment_has_every_bound_installed():
    extras = re.search(r"-e '\.\[([\w,]+)\]'", recipe())[1].split(",")
    lines = chain(PROJECT["dependencies"], *(PROJECT["optional-dependencies"][e] for e in extras))
    named = {canonicalize_name(Requirement(line).name) for line in lines}
    named |= {canonicalize_name(word) for word in recipe().split()}
    bounds, _ = oldest()
    assert set(bounds) <= named


def hashed():
    """Version and hashes of each package in the file for `pip install --require-hashes`."""
    text = (ROOT / "requirements-release.txt").read_text().replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {words[0]: words[1:] for words in lines}


def test_every_dependency_of_a_release_has_the_tested_version_and_hashes():
    tested = pins((ROOT / "constraints.txt").read_text())
    for package, given in hashed().items():
        ((name, version),) = pins(package).items()
        assert tested[name] == version, package
        assert given, package
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", word) for word in given), package


def test_a_release_names_every_dependency_of_the_core():
    direct = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]}
    assert direct <= set(pins("\n".join(hashed())))


@pytest.mark.parametrize(
    "name",
    ["requirements-release.txt", "constraints.txt", "constraints-oldest.txt", "pyproject.toml"],
)
def test_no_address_of_a_registry_is_written_down(name):
    text = (ROOT / name).read_text()
    text = re.sub(r"^\[project\.urls\]\n.*?\n\n", "", text, flags=re.M | re.S)
    assert not re.search(r"://|--index-url|--extra-index-url|--find-links|--trusted-host", text)


def test_the_version_is_the_same_wherever_it_is_told():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    told = subprocess.run(
        [sys.executable, "-m", "itrust", "--version"], capture_output=True, text=True, check=True
    )
    assert "version" in PROJECT["dynamic"]
    assert cited["version"] == itrust.__version__
    assert told.stdout.split()[-1] == itrust.__version__
    assert str(Version(itrust.__version__)) == itrust.__version__
    assert cited["title"] == PROJECT["name"]
    assert cited["license"] == PROJECT["license"].split(" AND ")[0]
    assert cited["preferred-citation"]["url"] == PROJECT["urls"]["Paper"]


def test_pythons_are_named_that_are_tried():
    tried = re.search(r"^PYTHONS \?= (.*)$", MAKEFILE, re.M)[1].split()
    classified = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if ":: 3." in line]
    assert classified == tried
    assert PROJECT["requires-python"] == f">={tried[0]}"


def test_every_file_of_licences_is_there_and_every_licence_is_named():
    own, other = PROJECT["license-files"]
    texts = (ROOT / own).read_text() + (SOURCES / other.removeprefix("src/")).read_text()
    titles = re.findall(r"^([\w.-]+)\n-+$", texts, re.M)
    assert set(titles) <= set(PROJECT["license"].split(" AND "))
    assert set(PROJECT["license"].split(" AND ")) == {"BSD-3-Clause", *titles}


def test_the_chart_library_is_of_the_pinned_version():
    place = charts.FOLDER.relative_to(ROOT / "src") / "charts.json"
    record = json.loads((SOURCES / place).read_text())
    pinned = f"vl-convert-python=={record['vl-convert-python']}"
    extras = PROJECT["optional-dependencies"]
    assert extras["charts"] == [pinned]
    assert pinned in extras["test"]
    assert pinned in (ROOT / "constraints.txt").read_text().splitlines()
    assert not any(line.startswith("vl-convert") for line in PROJECT["dependencies"])


def wheel(folder, *more):
    made = folder / "itrust-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for name in (*contents.NEEDED, "itrust-0.1.0.dist-info/METADATA", *more):
            archive.writestr(name, "")
    return made


def test_every_file_of_the_package_may_be_in_a_wheel():
    files = (path for path in (SOURCES / "itrust").rglob("*") if path.is_file())
    names = [path.relative_to(SOURCES).as_posix() for path in files]
    names = [name for name in names if "__pycache__" not in name]
    assert contents.strays(names) == []
    assert set(contents.NEEDED) <= set(names)


def test_every_python_has_the_packages_that_the_oldest_environment_has():
    installed = set((ROOT / "release/pythons.sh").read_text().split())
    named = recipe().split("fairlearn", 1)[1].split(".venv-oldest", 1)[0].split()
    assert {"fairlearn", *named} - {"\\"} <= installed


def test_a_wheel_with_what_it_needs_is_no_complaint(tmp_path):
    assert contents.complaints(wheel(tmp_path)) == []


@pytest.mark.parametrize(
    "stray", ["itrust/notes.md", "itrust/data/rows.csv", "tests/x.py", "itrust-0.1.0.dist-info/x"]
)
def test_a_stray_file_in_a_wheel_is_named(tmp_path, stray):
    (told,) = contents.complaints(wheel(tmp_path, stray))
    assert told.endswith(stray)


def test_a_wheel_without_its_charts_is_refused(tmp_path):
    made = tmp_path / "itrust-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("itrust/__init__.py", "")
    assert len(contents.complaints(made)) == len(contents.NEEDED) - 1


def test_every_step_of_the_release_is_a_target_and_comes_after_what_it_needs():
    seen = [""]
    for step in check.STEPS:
        assert re.search(rf"^{step.target}:", MAKEFILE, re.M), step
        assert step.needs in seen, step
        seen.append(step.target)


def test_a_failed_step_is_told_and_the_others_are_run_all_the_same(monkeypatch, capsys):
    run = []
    monkeypatch.setattr(check, "make", lambda target: run.append(target) or target != "dist")
    became = check.checked(check.chosen(["lint", "dist", "smoke", "fuzz"]))
    assert run == ["lint", "dist", "fuzz"]
    assert [outcome.split(" in ")[0] for outcome in became.values()] == [
        *("passed", "FAILED", "NOT RUN: it needs dist", "passed")
    ]
    assert "=== 2 of 4: dist" in capsys.readouterr().out


def test_a_step_that_does_not_exist_is_refused():
    with pytest.raises(SystemExit, match="there is no step tea; there are committed, "):
        check.chosen(["tea"])


PAGE = "```python\nprint({})\n```\n\n```text\n2\n```\n"


def test_an_example_that_prints_something_else_ends_the_smoke_test():
    assert len(smoke.run(PAGE.format("1 + 1"))) == 3
    with pytest.raises(SystemExit, match="and not\n3"):
        smoke.run(PAGE.format("1 + 2"))
    with pytest.raises(SystemExit, match="the README's session"):
        smoke.run(">>> 1 + 1\n3\n")
