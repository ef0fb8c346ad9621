"""The text form of tasks: a small grammar, parsed by hand, never evaluated.

    whole      = [ title ":" ] task [ "~" number ]
    task       = term { ("+" | "-") term }
    term       = factor { ("*" | "/") factor }
    factor     = number | "-" factor | "(" task ")" | call
    call       = "mean" "(" quantity [ "|" condition ] ")"
               | "share" "(" condition [ "|" condition ] ")"
               | "prevalence" "(" [ condition ] ")"
    quantity   = the same arithmetic with covariates, and log, log10, exp, sqrt, abs
    condition  = conjunction { "or" conjunction }
    conjunction = simple { "and" simple }
    simple     = "not" simple | "(" condition ")" | covariate "is" ["not"] "missing"
               | covariate ["not"] "in" "(" value { "," value } ")"
               | covariate ("==" | "!=" | "<" | "<=" | ">" | ">=") value

A title is text in quotes, or any text without quotes, backticks, "(", "|" and ":". The number after
"~" is the tolerance: the size of bias that would matter, in the unit of the task. A covariate is a
word, or anything in backticks; a value is a number, true, false, or text in
quotes (dates, too). Means and shares are among positives. A quantity also knows powers, as in
mean(10 ** log_income). Examples:

    mean(age | race == "Black") - mean(age | race == "White")
    share(age >= 65)
    prevalence(region in ("south", "west") and age < 40) / prevalence()
    Mean age of owners: mean(age) ~ 0.5
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from itrust._core import InputError, did_you_mean
from itrust.data import (
    OPERATORS,
    RESERVED,
    Compared,
    Everywhere,
    Level,
    Missing,
    Not,
    OneOf,
    Predicate,
    WrittenNumber,
)
from itrust.tasks.expressions import Combined, Fixed, Ratio, Task
from itrust.tasks.quantities import (
    FUNCTIONS,
    Covariate,
    Formula,
    Function,
    Indicator,
    NumberQuantity,
    Quantity,
)

TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)
    |(?P<text>"(?:[^"]|"")*"|'(?:[^']|'')*')
    |(?P<quoted>`(?:[^`]|``)+`)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign>\*\*|==|!=|<=|>=|[-+*/()|,<>~])
    )""",
    re.VERBOSE,
)
TITLE = re.compile(r"""\s*(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<bare>[^"`(|:]*[^"`(|:\s]))\s*:""")
CALLS = ("mean", "share", "prevalence")
MAX_NESTED = 60
MAX_TOKENS = 1_000
WINDOW = 90  # characters of a long text that are shown around an error

Part = TypeVar("Part", Task, Quantity)
Inside = TypeVar("Inside")


@dataclass(frozen=True)
class Token:
    """A piece of the text and where it begins.

    Attributes
    ----------
    kind : {"number", "text", "quoted", "word", "sign"}
        What it is.
    text : str
        As it stands there.
    at : int
        Number of its first character, from 0.
    """

    kind: str
    text: str
    at: int


def parse(text: str) -> Task:
    """Read a task from text; never evaluates code.

    Parameters
    ----------
    text : str
        Such as `100 * share(age >= 65 | race == "Black")`; the grammar is in
        `help(itrust.tasks.parser)`, and `itrust tasks` shows examples.

    Returns
    -------
    Task
        The number; its text is read back to the same task.

    Examples
    --------
    >>> from itrust.tasks import parse
    >>> parse("Mean age of owners: mean(age) ~ 0.5").tolerance
    0.5
    >>> task = parse('mean(age | race == "Black") - mean(age | race == "White")')
    >>> sorted(task.names)
    ['age', 'race']
    >>> parse("mean(age | race = 1)")
    Traceback (most recent call last):
    itrust.InputError: expected ==, !=, <, <=, > or >= after race, not '=' (...
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            "a task is text such as 'mean(age)', not {value}", argument="text", value=text
        )
    title = TITLE.match(text)
    if title is None:
        return _Parser(text).whole()
    named = title["bare"] or title["quoted"].replace('""', '"')
    return _Parser(text, title.end()).whole(named)


def parse_condition(text: str) -> Predicate:
    """Read a condition on covariates from text.

    Parameters
    ----------
    text : str
        Such as `age >= 65 and race == "Black"`.

    Returns
    -------
    Predicate
        Which rows; its `formula` is read back to the same rows.

    Examples
    --------
    >>> from itrust.tasks import parse_condition
    >>> sorted(parse_condition('age >= 65 and race == "Black"').names)
    ['age', 'race']
    """
    parser = _Parser(text)
    found = parser.condition()
    if parser.peek is not None:
        parser.refuse(f"the condition ends before {parser.peek.text!r}")
    return found


class _Parser:
    """Recursive descent over tokens; every refusal points at a character."""

    def __init__(self, text: str, start: int = 0) -> None:
        self.text = text.replace("\n", " ").replace("\r", " ")
        self.start = start
        self.position = 0
        self.tokens: list[Token] = []
        self.tokens.extend(self._tokens())
        if len(self.tokens) > MAX_TOKENS:
            self.refuse("the task is too long", self.tokens[MAX_TOKENS].at)
        self.depth = 0

    def _tokens(self) -> Any:
        at = self.start
        while at < len(self.text.rstrip()):
            found = TOKEN.match(self.text, at)
            if found is None:
                start = at + len(self.text[at:]) - len(self.text[at:].lstrip())
                self._refuse_character(start)
            kind = str(found.lastgroup)
            yield Token(kind, found.group(kind), found.start(kind))
            at = found.end()

    def _refuse_character(self, at: int) -> NoReturn:
        character = self.text[at]
        cures = {"&": "write and", "\u201c": "use straight quotes", "\u201d": "use straight quotes"}
        cures |= {"\u2018": "use straight quotes", "\u2019": "use straight quotes", "[": "use ( )"}
        if character in cures:
            self.refuse(f"there is no use for {character!r} in a task: {cures[character]}", at)
        before = self.text[:at].rstrip().rsplit(" ", 1)[-1].rsplit("(", 1)[-1]
        if character == "=":
            signs = "==, !=, <, <=, > or >="
            self.refuse(f"expected {signs} after {before}, not '=' (did you mean ==?)", at)
        if character in "\"'`":
            self.refuse(f"the text that begins with {character} has no end", at)
        self.refuse(f"there is no use for {character!r} in a task", at)

    def refuse(self, what: str, at: int | None = None) -> NoReturn:
        """Say what is wrong and point at it; the error's value is what stands there."""
        if at is None:
            at = len(self.text.rstrip()) if self.peek is None else self.peek.at
        there = next(
            (token.text for token in self.tokens if token.at == at), self.text[at : at + 1]
        )
        start = max(0, at - WINDOW // 2) if len(self.text) > WINDOW else 0
        raise InputError(
            "{what} at character {position}:\n  {text}\n  {pointer}",
            value=there,
            details={
                "what": what,
                "position": at + 1,
                "text": self.text[start : start + WINDOW],
                "pointer": " " * (at - start) + "^",
            },
        )

    @property
    def peek(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def accept(self, *texts: str) -> Token | None:
        token = self.peek
        if token is not None and token.kind in ("sign", "word") and token.text in texts:
            self.position += 1
            return token
        return None

    def expect(self, text: str, where: str) -> Token:
        token = self.accept(text)
        if token is None:
            self.refuse(f"expected {text!r} {where}, not {self._next()}")
        return token

    def _next(self) -> str:
        return "the end" if self.peek is None else repr(self.peek.text)

    def whole(self, title: str | None = None) -> Task:
        task = self.task()
        tolerance = self.tolerance() if self.accept("~") else None
        if self.peek is not None:
            self.refuse(f"the task ends before {self._next()}")
        if title is None:
            return task if tolerance is None else task.matters_at(tolerance)
        return task.named(title, tolerance)

    def tolerance(self) -> float:
        token = self.peek
        if token is None or token.kind != "number" or not 0 < float(token.text) < math.inf:
            self.refuse(f"expected the tolerance, a number above 0, after ~, not {self._next()}")
        self.position += 1
        return float(token.text)

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        """One level deeper; refuse what is nested too deeply."""
        self.depth += 1
        if self.depth > MAX_NESTED:
            self.refuse("parentheses are nested too deeply")
        yield
        self.depth -= 1

    def _arithmetic(
        self, factor: Callable[[], Part], join: Callable[[Part, str, Part], Part]
    ) -> Part:
        """Sums of products of factors, from left to right."""

        def product() -> Part:
            left = factor()
            while sign := self.accept("*", "/"):
                left = join(left, sign.text, factor())
            return left

        left = product()
        while sign := self.accept("+", "-"):
            left = join(left, sign.text, product())
        return left

    def task(self) -> Task:
        return self._arithmetic(self.factor, Combined)

    def factor(self) -> Task:
        def negative() -> Task:
            return Combined(Fixed(0.0), "-", self.factor())

        return self._smallest("task", self.task, Fixed, negative, self.call)

    def _smallest(
        self,
        word: str,
        whole: Callable[[], Part],
        number: Callable[[float], Part],
        negative: Callable[[], Part],
        other: Callable[[], Part],
    ) -> Part:
        """What signs stand between: a negative, parentheses, a number, or something else."""
        with self._deeper():
            if self.accept("-"):
                return negative()
            if self.accept("("):
                return self._closed(word, whole())
            token = self.peek
            if token is not None and token.kind == "number":
                self.position += 1
                return number(float(token.text))
            return other()

    def _closed(self, word: str, inside: Inside) -> Inside:
        """What stands in parentheses, once they are closed."""
        self.expect(")", f"after the {word} in parentheses")
        return inside

    def call(self) -> Task:
        token = self.peek
        if token is None or token.kind != "word":
            self.refuse(
                f"expected mean(...), share(...), prevalence(...) or a number, not {self._next()}"
            )
        if token.text not in CALLS:
            self.refuse(f"there is no task {token.text!r}; {did_you_mean(token.text, CALLS)}")
        self.position += 1
        self.expect("(", f"after {token.text}")
        task: Task
        if token.text == "prevalence":
            empty = self.peek is not None and self.peek.text == ")"
            where = Everywhere() if empty else self.condition()
            task = Ratio(Indicator(Everywhere()), where, among_positives=False)
        elif token.text == "share":
            what = Indicator(self.condition())
            task = Ratio(what, self.given(), among_positives=True)
        else:
            quantity = self.quantity()
            if not quantity.names:
                self.refuse("mean needs a covariate", token.at)
            task = Ratio(quantity, self.given(), among_positives=True)
        self.expect(")", f"to close {token.text}(")
        return task

    def given(self) -> Predicate:
        return self.condition() if self.accept("|") else Everywhere()

    def quantity(self) -> Quantity:
        return self._arithmetic(self.quantity_factor, Formula)

    def quantity_factor(self) -> Quantity:
        base = self.quantity_base()
        return Formula(base, "**", self.quantity_factor()) if self.accept("**") else base

    def quantity_base(self) -> Quantity:
        def negative() -> Quantity:
            return Formula(NumberQuantity(0.0), "-", self.quantity_factor())

        return self._smallest("formula", self.quantity, NumberQuantity, negative, self.function)

    def function(self) -> Quantity:
        """A function of a quantity, or a covariate, which may be called like a function."""
        token, following = self.peek, self.tokens[self.position + 1 : self.position + 2]
        called = bool(following) and following[0].text == "("
        if token is None or token.text not in FUNCTIONS or not called:
            return Covariate(self.covariate())
        self.position += 2
        inside = self.quantity()
        self.expect(")", f"to close {token.text}(")
        return Function(token.text, inside)

    def covariate(self) -> str:
        token = self.peek
        if token is not None and token.kind == "quoted":
            self.position += 1
            return token.text[1:-1].replace("``", "`")
        if token is None or token.kind != "word" or token.text in RESERVED:
            self.refuse(f"expected a covariate, not {self._next()}")
        self.position += 1
        return token.text

    def condition(self) -> Predicate:
        left = self.conjunction()
        while self.accept("or"):
            left = left | self.conjunction()
        return left

    def conjunction(self) -> Predicate:
        left = self.simple()
        while self.accept("and"):
            left = left & self.simple()
        return left

    def simple(self) -> Predicate:
        with self._deeper():
            if self.accept("not"):
                return Not(self.simple())
            if self.accept("("):
                return self._closed("condition", self.condition())
            return self.comparison(self.covariate())

    def comparison(self, name: str) -> Predicate:
        if self.accept("is"):
            negated = self.accept("not")
            self.expect("missing", "after is")
            return Not(Missing(name)) if negated else Missing(name)
        negated = self.accept("not")
        if negated or (self.peek is not None and self.peek.text == "in"):
            self.expect("in", "after not")
            self.expect("(", "after in")
            values = [self.value()]
            while self.accept(","):
                values.append(self.value())
            self.expect(")", "after the values")
            found = OneOf(name, tuple(values))
            return Not(found) if negated else found
        sign = self.accept(*OPERATORS)
        if sign is None:
            self.refuse(f"expected ==, !=, <, <=, > or >= after {name}, not {self._next()}")
        value = self.value()
        return Level(name, value) if sign.text == "==" else Compared(name, sign.text, value)

    def value(self) -> Any:
        negative = self.accept("-")
        token = self.peek
        if token is not None and token.kind == "number":
            self.position += 1
            return WrittenNumber(f"-{token.text}" if negative else token.text)
        if token is not None and not negative and token.kind == "text":
            self.position += 1
            quote = token.text[0]
            return token.text[1:-1].replace(2 * quote, quote)
        if not negative and (word := self.accept("true", "false")):
            return word.text == "true"
        if token is not None and token.kind == "word":
            self.refuse(f'a value of text stands in quotes: "{token.text}"')
        return self.refuse(f"expected a value, not {self._next()}")
