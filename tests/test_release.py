"""What a release is made of agrees: bounds and the versions that test them, pins and hashes."""

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Lower bounds that `make oldest` does not test.
NOT_TESTED = {
    "latex2mathml": "makes the site",
    "mkdocs": "makes the site",
    "mkdocs-material": "makes the site",
    "mkdocstrings": "makes the site",
    "mlflow-skinny": "it brings many packages along",
    "mypy": "reads the code and runs none of it",
    "ruff": "reads the code and runs none of it",
    "scipy-stubs": "reads the code and runs none of it",
    "svy": "needs newer versions than the core does",
    "torch": "one version is allowed, which is not old",
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
    return re.search(r"^oldest:.*?\n\n", (ROOT / "Makefile").read_text(), re.M | re.S)[0]


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
    assert not re.search(r"://|--index-url|--extra-index-url|--find-links|--trusted-host", text)
