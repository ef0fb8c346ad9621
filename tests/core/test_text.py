"""Values in sentences."""

import numpy as np
import pytest

from itrust._core import (
    closest,
    counted,
    cut,
    did_you_mean,
    first_line,
    is_blank,
    listed,
    printable,
    rounded,
    rounded_up,
    shown,
    shown_name,
    signed,
    signed_in,
    two_digits,
    wrapped,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (shown("x" * 100, max_length=10), "'xxxxxx..."),
        (shown(np.float64(0.5)), "0.5"),
        (shown(16**9000), "a number of very many digits"),
        (shown([16**9000]), "a value too long to be shown"),
        (counted(1, "row"), "1 row"),
        (counted(2_000, "row"), "2,000 rows"),
        (counted(3, "batch"), "3 batches"),
        (signed(0.0712), "+0.071"),
        (signed(-0.0004), "-0.0004"),
        (signed(-8.4e-06), "-0.000008"),
        (signed(-1e-12), "-0.000"),
        (signed_in(-0.257, -0.339, -0.164), "-0.257"),
        (signed_in(0.0124, 0.0081, 0.0172), "+0.0124"),
        (rounded(0.039214, 0.0171, 0.0613), "0.039"),
        (rounded(55.9604, 55.1, 56.8), "56.0"),
        (rounded(12.0, 3.0, 21_003.0, "+"), "+12"),
        (rounded(0.0004, 0.0004, 0.0613, "+"), "+0.0004"),
        (rounded_up(0.8312), "0.84"),
        (rounded_up(12.01), "13"),
        (rounded_up(0.0), "0"),
        (two_digits(12_345), 13_000),
        (two_digits(87), 87),
        (listed(["a", "b", 3], max_items=2), "'a', 'b', ... (3 in all)"),
        (shown_name("age"), "age"),
        (shown_name("\N{BRAILLE PATTERN BLANK}"), "(no name)"),
        (is_blank("\N{IDEOGRAPHIC SPACE}"), True),
        (is_blank("a "), False),
        (closest("Incom", ["income", "race"]), "income"),
        (closest("zip", ["income", "race"]), None),
        (did_you_mean("incom", ["income", "race"]), "did you mean 'income'?"),
        (printable("a\x1b[31m\nb"), "a\\x1b[31m\nb"),
        (printable("a\nb", lines=False), "a\\nb"),
        (first_line(ValueError("X has NaN.\nTake another one.")), "X has NaN"),
        (first_line(KeyError()), "KeyError"),
        (cut("abcdefghijkl", 8), "abcde…kl"),
        (wrapped("judged on re\ngion", 40), ["judged on re\\ngion"]),
        (wrapped("one two three four five", 20, "  ", "  "), ["  one two three four", "    five"]),
    ],
)
def test_values_are_written_for_people(value, text):
    assert value == text


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
