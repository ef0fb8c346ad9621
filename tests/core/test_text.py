"""Values in sentences."""

import pytest

from itrust._core import did_you_mean, printable, shown
from itrust._core.text import closest


@pytest.mark.parametrize("sign", ["\u200e", "\u200f", "\u061c", "\xad", "\U000e0041", "\U000e007f"])
def test_marks_of_direction_and_unseen_characters_are_spelt_out(sign):
    assert printable(f"a{sign}b") == f"a{ascii(sign)[1:-1]}b"


@pytest.mark.parametrize(
    "text",
    [
        "\U0001f469\u200d\U0001f467",  # woman and girl, joined
        "\u2764\ufe0f\u200d\U0001f525",  # a heart on fire
        "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian, with a non-joiner
    ],
)
def test_emoji_and_scripts_keep_their_joiners(text):
    assert printable(text, lines=False) == text


def test_a_guess_at_a_very_long_name_comes_to_an_end():
    long = "income" * 10**6  # letter by letter this would take hours
    assert closest(long, ["income", "race"]) is None
    assert did_you_mean("ratio" + long, ["race"]) == "the names are 'race'"
    assert closest(long.upper(), ["race", long]) == long
    assert closest("x" * 150 + "y", ["x" * 151]) == "x" * 151


def test_what_python_does_not_write_has_words():
    assert shown(16**9000) == "a number of very many digits"
    assert shown([16**9000]) == "a value too long to be shown"
