"""Texts of tasks and conditions: sentences of the grammar, with rare and absurd parts, and damage.

What is accepted must also be printed, read back, copied, compared and evaluated.
"""

import copy
import pickle
import random
import warnings

import numpy as np

from fuzz.kit import Outcome, Target, flipped_bytes
from itrust import Sample
from itrust.data import parse_condition
from itrust.tasks import parse

SOUND = (
    'mean(age | race == "Black") - mean(age | race == "White")',
    "share(age >= 65)",
    'prevalence(race in ("south", "west") and age < 40) / prevalence()',
    "Mean age of owners: mean(age) ~ 0.5",
    "mean(10 ** log_age + sqrt(abs(x)) | not (age is missing or `b c` != 3))",
    "coef(age ; age + urban ; identity) - coef(age ; age + x | age > 30)",
    'coef(x:race["White"] ; x + race against "007" + x:race ; log)',
)
CONDITIONS = (
    'race in ("Black", "White") and age >= 30',
    'not (age is missing or `b c` != 3) or day < "2020-02-29"',
    "urban == true and age is not missing",
)
NUMBERS = (
    *("0", "1", "2", "65", "0.5", ".5", "1.", "1e3", "007", "1e308", "1e-308", "5e-324", "1e400"),
    *(
        "9" * 30,
        "9" * 400,
        "1" * 5000,
        "1e99999",
        "0" * 100,
        "\u0661\u0662",
        "\uff11",
        "1e",
        "1.5.2",
        "0x10",
    ),
)
NAMES = (
    *("age", "race", "x", "log_age", "`b c`", "day", "urban", "`and`", "nobody", "`a``b`", "mean"),
    *("prediction", "``", "`\x00`", "é", "年", "a" * 500, "`" + "b" * 5000 + "`", "²", "_", "p"),
)
TEXTS = (
    *('"Black"', "'White'", '""', '"say ""a"""', '"2020-02-29"', '"2020-02-30"', '"0000-01-01"'),
    *('"9999-12-31T23:59:59.999999"', '"99999-01-01"', '"\n"', '"\x00"', '"' + "z" * 3000 + '"'),
    *(
        '"\u0662\u0660\u0662\u0660-\u0660\u0661-\u0660\u0661"',
        '"{value}"',
        "true",
        "false",
        '"nan"',
        '"1e400"',
        '"2020-01-01T99:00"',
    ),
)
NOISE = ("$", "=", "\u201c", "\u2028", "\x1b[31m", "\ud800", "{", "[", ";", "`", '"', "'", "\\")


class Grammar:
    """Random sentences, of bounded depth, now and then with what does not belong there."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def often(self, *choices: str) -> str:
        """The first choices are the likeliest."""
        return choices[min(int(self.rng.expovariate(1.0)), len(choices) - 1)]

    def whole(self) -> str:
        title = self.rng.choice(("", "", "", "A title: ", '"Age (mean)": ', ": ", " " * 3000))
        task = self.extreme() if self.rng.random() < 0.15 else self.task(self.rng.randint(0, 4))
        end = self.rng.choice(
            ("", "", "", " ~ 0.5", " ~ 0", " ~ 1e400", " ~ -1", " ~", " ~ 1e-320")
        )
        return f"{title}{task}{end}"

    def extreme(self) -> str:
        """One thing, very many times."""
        n = self.rng.choice((20, 55, 61, 90, 99, 120, 300, 499, 700, 5000))
        inner = self.rng.choice(("mean(age)", "mean(x)", "1", "share(age > 30)"))
        return self.rng.choice(
            (
                "(" * n + inner + ")" * n,
                "-" * n + inner,
                inner + f" {self.rng.choice('+-*/')} {inner}" * n,
                f"mean({' ** '.join(['age'] * n)})",
                f"mean({' + '.join(['age'] * n)})",
                "mean(" + "log(" * n + "age" + ")" * n + ")",
                "mean(" + "-" * n + "age)",
                "share(" + "not " * n + "age > 30)",
                "share(" + "(" * n + "age > 30" + ")" * n + ")",
                "share(" + " and ".join(["age > 30"] * n) + ")",
                "share(" + "not (age > 1 or " * n + "age > 2" + ")" * n + ")",
                "prevalence(race in (" + ", ".join(['"Black"'] * n) + "))",
                "mean(age | " + "x" * n + " == 1)",
                "mean(10 ** 10 ** 10 ** age)",
                " + ".join(["mean(1e308 * x)"] * self.rng.randint(1, 4)),
                " * ".join(["1e308", inner, "1e308"]),
                f"mean(age) / {self.rng.choice(('0', '5e-324', '(mean(x) - mean(x))'))}",
                f"coef(age ; {' + '.join(f'age ** {k}' for k in range(n))} + age)",
                f"coef(age ; {' + '.join(['age'] * n)})",
                f"coef(age ; {':'.join(['age'] * n)})",
                "coef(" + "(" * n + "age" + ")" * n + " ; age)",
                "coef(age ; age" + ' against "Black"' * n + ")",
                f"coef({'9' * n} * x ; {'9' * n} * x)",
            )
        )

    def task(self, depth: int) -> str:
        if depth and self.rng.random() < 0.6:
            parts = self.task(depth - 1), self.task(depth - 1)
            joined = f" {self.rng.choice('+-*/')} ".join(parts)
            return f"({joined})" if self.rng.random() < 0.4 else joined
        return self.rng.choice(
            (
                lambda: f"mean({self.quantity(2)}{self.given()})",
                lambda: f"share({self.condition(2)}{self.given()})",
                lambda: f"prevalence({self.rng.choice(('', self.condition(2)))})",
                self.coefficient,
                lambda: self.often(*NUMBERS),
                lambda: f"-{self.task(0)}" if depth else "mean(age)",
            )
        )()

    def coefficient(self) -> str:
        """Mostly of one of its own terms."""
        terms = [self.term() for _ in range(self.rng.randint(1, 4))]
        of = self.rng.choice((*terms, *terms, "1", self.term(), 'race["Black"]', 'race["007"]:x'))
        of = of.split(" against ")[0]
        link = self.rng.choice(("", "", " ; log", " ; identity", " ; logit", " ; x", " ;"))
        return f"coef({of} ; {' + '.join(terms)}{link}{self.given()})"

    def term(self) -> str:
        one = self.rng.choice(("age", "x", "race", "urban", "day", "`b c`", self.quantity(1)))
        if self.rng.random() < 0.2:
            one += " against " + self.often('"Black"', *TEXTS)
        return (
            f"{one}:{self.rng.choice(('x', 'race', 'urban'))}" if self.rng.random() < 0.2 else one
        )

    def given(self) -> str:
        return f" | {self.condition(2)}" if self.rng.random() < 0.3 else ""

    def quantity(self, depth: int) -> str:
        if depth and self.rng.random() < 0.6:
            sign = self.rng.choice(("+", "-", "*", "/", "**"))
            return f"({self.quantity(depth - 1)}) {sign} {self.quantity(depth - 1)}"
        inner = self.often("age", "x", "y", "log_age", *NAMES)
        word = self.rng.choice(("", "", "log", "log10", "exp", "sqrt", "abs", "-"))
        inner = self.rng.choice((inner, inner, self.often("2", "10", *NUMBERS)))
        return f"{word}({inner})" if word else inner

    def condition(self, depth: int) -> str:
        if depth and self.rng.random() < 0.5:
            word = self.rng.choice((" and ", " or "))
            joined = f"{self.condition(depth - 1)}{word}{self.condition(depth - 1)}"
            return self.rng.choice((joined, f"({joined})", f"not ({joined})"))
        name = self.often("age", "race", "x", "day", *NAMES)
        value = self.rng.choice((self.often("30", *NUMBERS), self.often('"Black"', *TEXTS)))
        sign = self.rng.choice(("==", "!=", "<", "<=", ">", ">="))
        return self.rng.choice(
            (
                f"{name} {sign} {value}",
                f"{name} {sign} -{value}",
                f"{name} is missing",
                f"{name} is not missing",
                f"{name} in ({value}, {self.often(*NUMBERS)})",
                f"{name} not in ({value})",
            )
        )

    def damaged(self, text: str) -> str:
        """Left as it is, or with noise put in, words taken out, or bytes changed."""
        kind = self.rng.random()
        if kind < 0.5:
            return text
        at = self.rng.randrange(len(text) + 1)
        if kind < 0.65:
            return text[:at] + self.rng.choice(NOISE) + text[at:]
        if kind < 0.8:
            words = text.split(" ")
            del words[self.rng.randrange(len(words))]
            return " ".join(words)
        raw = flipped_bytes(self.rng, text.encode("utf-8", "surrogatepass"))
        return raw.decode("utf-8", "replace")


def of_tasks(_folder):
    return [text.encode() for text in SOUND]


def of_conditions(_folder):
    return [text.encode() for text in CONDITIONS]


def damaged_task(rng: random.Random, sound: bytes) -> bytes:
    grammar = Grammar(rng)
    text = sound.decode() if rng.random() < 0.15 else grammar.whole()
    return grammar.damaged(text).encode("utf-8", "surrogatepass")


def damaged_condition(rng: random.Random, sound: bytes) -> bytes:
    grammar = Grammar(rng)
    text = sound.decode() if rng.random() < 0.15 else grammar.condition(rng.randint(0, 6))
    return grammar.damaged(text).encode("utf-8", "surrogatepass")


def text_of(given: bytes) -> str:
    return given.decode("utf-8", "surrogatepass")


def used(part, again) -> Outcome | None:
    """Print, hash, compare and copy what was accepted, and read its text back."""
    assert str(part)
    assert repr(part)
    assert isinstance(part.names, frozenset)
    assert hash(part) == hash(pickle.loads(pickle.dumps(part))) == hash(copy.deepcopy(part))
    if again(part.formula) != part:
        return Outcome.CHANGED
    return None


def read_task(given: bytes, _folder) -> Outcome | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return used(parse(text_of(given)), parse)


def read_condition(given: bytes, _folder) -> Outcome | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = parse_condition(text_of(given))
        outcome = used(found, parse_condition)
        marked = found.rows(sample().points)
        assert marked.dtype == bool
        found.check(sample().points)
    return outcome


ROWS = 40
_SAMPLES: list[Sample] = []


def sample() -> Sample:
    """A small one with every kind of covariate, missing values and extreme numbers."""
    if not _SAMPLES:
        rng = np.random.default_rng(0)
        some = np.arange(ROWS) % 9 == 0
        covariates = {
            "age": rng.integers(18, 90, ROWS).astype(float),
            "log_age": np.where(some, np.nan, rng.normal(3, 1, ROWS)),
            "x": rng.normal(size=ROWS),
            "y": np.where(some, 1e300, rng.normal(size=ROWS)),
            "b c": rng.integers(0, 5, ROWS).astype(float),
            "race": rng.choice(["Black", "White", "007", "7"], ROWS).tolist(),
            "urban": rng.random(ROWS) < 0.5,
            "day": np.datetime64("2020-01-01") + rng.integers(0, 900, ROWS),
        }
        y = rng.integers(0, 2, ROWS)
        _SAMPLES.append(Sample(y, rng.uniform(0.05, 0.95, ROWS), covariates, missing="level"))
    return _SAMPLES[0]


def evaluate(given: bytes, _folder) -> Outcome | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = parse(text_of(given)).evaluate(sample(), draws=19, rng=0)
        assert repr(found)
        assert str(found)
        ends = [found.plugin, found.from_labels, found.lower, found.upper, found.pvalue]
        is_number = np.isfinite(found.plugin) and not np.isinf(ends).any()
        is_ordered = not found.lower > found.upper and not (found.pvalue < 0 or found.pvalue > 1)
    return None if is_number and is_ordered else Outcome.CHANGED


TARGETS = [
    Target("tasks", of_tasks, damaged_task, read_task),
    Target("conditions", of_conditions, damaged_condition, read_condition),
    Target("evaluated", of_tasks, damaged_task, evaluate),
]
