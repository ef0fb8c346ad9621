"""The README's first example prints what it says; the others are doctests."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def without_time(text):
    return re.sub(r"[\d.e-]+ s$", "(time) s", text.strip(), flags=re.MULTILINE)


def test_the_first_example_prints_what_it_says(capsys):
    pattern = r"```python\n((?:(?!>>>).)*?)```\n\n```text\n(.*?)```"
    code, promised = re.search(pattern, README.read_text(), re.DOTALL).groups()
    exec(code, {})
    assert without_time(capsys.readouterr().out) == without_time(promised)


def test_the_first_screen_shows_both_commands():
    top = README.read_text()[:1200]
    assert "make demo" in top
    assert "make test" in top
