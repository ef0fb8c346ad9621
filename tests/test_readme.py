"""The README's audit runs and prints what it says; its other examples are doctests."""

import re
import shlex
from pathlib import Path

import pytest

from itrust.cli import demo
from shell import invoke

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def homes(tmp_path, monkeypatch):
    """The folder in which `make demo` was run: its rows are there."""
    monkeypatch.chdir(tmp_path)
    demo.write_rows(Path("homes.csv"))


def without_time(text):
    return re.sub(r"[\d.e-]+ s$", "(time) s", text.strip(), flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.usefixtures("homes")
def test_the_audit_in_python_prints_what_it_says(capsys):
    pattern = r"```python\n((?:(?!>>>).)*?)```\n\n```text\n(.*?)```"
    code, promised = re.search(pattern, README.read_text(), re.DOTALL).groups()
    exec(code, {})
    assert without_time(capsys.readouterr().out) == without_time(promised)


@pytest.mark.slow
@pytest.mark.usefixtures("homes")
def test_the_audit_on_the_command_line_finds_the_same():
    text = README.read_text()
    command = re.search(r"```sh\n(itrust audit .*?)```", text, re.DOTALL)[1].replace("\\\n", " ")
    found = invoke(*shlex.split(command)[1:], "--quiet", "--draws", "39")
    assert found.exit_code == 0, found.stderr
    assert "VERDICT  miscalibrated" in found.stdout
    assert "biased: the probabilities understate it" in found.stdout
    assert Path("page.html").exists()


def test_the_first_screen_has_a_picture_the_commands_and_the_reader():
    top = README.read_text()[:1400]
    for part in ("make demo", "make test", "pip install", "docs/pictures/first.png", "You publish"):
        assert part in top


def test_the_audit_of_the_readers_file_comes_first():
    text = README.read_text()
    sections = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert sections[0] == "Audit your file"
