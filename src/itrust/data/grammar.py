"""Conditions on covariates as text: a small grammar, parsed by hand, never evaluated.

    condition  = conjunction { "or" conjunction }
    conjunction = simple { "and" simple }
    simple     = "not" simple | "(" condition ")" | covariate "is" ["not"] "missing"
               | covariate ["not"] "in" "(" value { "," value } ")"
               | covariate ("==" | "!=" | "<" | "<=" | ">" | ">=") value

A covariate is a word, or anything in backticks; a value is a number, true, false, or text in
quotes (dates, too). The grammar of tasks (`itrust.tasks.parser`) is built upon it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeVar

from itrust._core import InputError, shown
from itrust.data.predicates import (
    OPERATORS,
    RESERVED,
    Compared,
    Level,
    Missing,
    OneOf,
    Predicate,
    WrittenNumber,
    as_predicate,
)

TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?)
    |(?P<text>"(?:[^"]|"")*"|'(?:[^']|'')*')
    |(?P<quoted>`(?:[^`]|``)+`)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign>\*\*|==|!=|<=|>=|[-+*/()|,<>~])
    )""",
    re.VERBOSE,
)
SIGNS = "==, !=, <, <=, > or >="
CURES = {"&": "write and", "[": "use ( )"}
CURES |= dict.fromkeys("\u201c\u201d\u2018\u2019", "use straight quotes")
MAX_NESTED = 60
MAX_TOKENS = 1_000
MAX_CHARACTERS = 100_000
HALF = re.compile("[\ud800-\udfff]")  # surrogates: bytes of a shell that are no text
WINDOW = 90  # characters of a long text that are shown around an error

Inside = TypeVar("Inside")


class Token(NamedTuple):
    """A piece of the text and where it begins."""

    kind: str
    text: str
    at: int


def parse_condition(text: str) -> Predicate:
    """Read a condition on covariates from text; never evaluates code.

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
    >>> from itrust.data import parse_condition
    >>> sorted(parse_condition('age >= 65 and race == "Black"').names)
    ['age', 'race']
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            "a condition is text such as 'age >= 65', not {value}", argument="text", value=text
        )
    reader = ConditionReader(text)
    condition = reader.condition()
    if reader.peek is not None:
        reader.refuse(f"the condition ends before {reader.ahead()}")
    return condition


def as_condition(where: object) -> Predicate:
    """A condition as text, as a mapping of covariates to values, or as a predicate."""
    return parse_condition(where) if isinstance(where, str) else as_predicate(where)


class ConditionReader:
    """Recursive descent over tokens; every refusal points at a character."""

    WHOLE: ClassVar[str] = "condition"  # what a text is, in refusals
    TOKENS: ClassVar[re.Pattern[str]] = TOKEN

    def __init__(self, text: str, start: int = 0) -> None:
        self.text = text
        self.end = len(text.rstrip())
        self.position = self.depth = 0
        self.tokens: list[Token] = []
        if self.end > MAX_CHARACTERS:
            self.refuse(f"the {self.WHOLE} is too long", MAX_CHARACTERS)
        if half := HALF.search(text):
            self.refuse("there is half a character", half.start())
        self._split(start)

    def _split(self, at: int) -> None:
        """Fill the list of tokens."""
        while at < self.end:
            match = self.TOKENS.match(self.text, at)
            if match is None:
                self._refuse_character(self.end - len(self.text[at : self.end].lstrip()))
            kind = str(match.lastgroup)
            token = Token(kind, match[kind], match.start(kind))
            self.tokens.append(token)
            if len(self.tokens) > MAX_TOKENS:
                self.refuse(f"the {self.WHOLE} is too long", token.at)
            if kind == "number" and not math.isfinite(float(token.text)):
                self.refuse(f"the number {shown_part(token.text)} is too large", token.at)
            at = match.end()

    def _refuse_character(self, at: int) -> NoReturn:
        character = self.text[at]
        if character == "=":
            last = self.text[max(0, at - WINDOW) : at].split() or [""]
            before = last[-1].rsplit("(", 1)[-1]
            self.refuse(f"expected {SIGNS} after {before}, not '=' (did you mean ==?)", at)
        if character in "\"'`":
            self.refuse(f"the text that begins with {character} has no end", at)
        cure = f": {CURES[character]}" if character in CURES else ""
        self.refuse(f"there is no use for {character!r} in a {self.WHOLE}{cure}", at)

    def refuse(self, what: str, at: int | None = None) -> NoReturn:
        """Say what is wrong and point at it; the error's value is what stands there."""
        if at is None:
            at = self.end if self.peek is None else self.peek.at
        start = max(0, at - WINDOW // 2) if len(self.text) > WINDOW else 0
        window = self.text[start : start + WINDOW]
        raise InputError(
            "{what} at character {position}:\n  {text}\n  {pointer}",
            value=next((t.text for t in self.tokens if t.at == at), self.text[at : at + 1]),
            what=what,
            position=at + 1,
            text="".join(c if c.isprintable() else " " for c in window),
            pointer=" " * (at - start) + "^",
        )

    @property
    def peek(self) -> Token | None:
        """The next token; None at the end."""
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def accept(self, *texts: str) -> Token | None:
        """Step over the next token if it is one of these words or signs."""
        token = self.peek
        if token is not None and token.kind in ("sign", "word") and token.text in texts:
            self.position += 1
            return token
        return None

    def expect(self, text: str, where: str) -> Token:
        """Step over a word or sign that must stand here."""
        token = self.accept(text)
        if token is None:
            self.refuse(f"expected {text!r} {where}, not {self.ahead()}")
        return token

    def ahead(self) -> str:
        """What stands next, as a refusal quotes it."""
        return "the end" if self.peek is None else shown(self.peek.text)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """One level deeper; refuse what is nested too deeply."""
        self.depth += 1
        if self.depth > MAX_NESTED:
            self.refuse(f"the {self.WHOLE} is nested too deeply")
        yield
        self.depth -= 1

    def closed(self, word: str, inside: Inside) -> Inside:
        """What stands in parentheses, once they are closed."""
        self.expect(")", f"after the {word} in parentheses")
        return inside

    def covariate(self) -> str:
        """A plain word, or anything in backticks."""
        token = self.peek
        is_word = token is not None and token.kind == "word" and token.text not in RESERVED
        if token is None or not (is_word or token.kind == "quoted"):
            self.refuse(f"expected a covariate, not {self.ahead()}")
        self.position += 1
        return token.text if is_word else token.text[1:-1].replace("``", "`")

    def condition(self) -> Predicate:
        """Conjunctions with "or" between them."""
        left = self.conjunction()
        while self.accept("or"):
            left |= self.conjunction()
        return left

    def conjunction(self) -> Predicate:
        """Simple conditions with "and" between them."""
        left = self.simple()
        while self.accept("and"):
            left &= self.simple()
        return left

    def simple(self) -> Predicate:
        """A comparison, a negation, or a condition in parentheses."""
        with self.deeper():
            if self.accept("not"):
                return ~self.simple()
            if self.accept("("):
                return self.closed("condition", self.condition())
            return self.comparison(self.covariate())

    def comparison(self, name: str) -> Predicate:
        """What is asked of one covariate."""
        if self.accept("is"):
            negated = self.accept("not")
            self.expect("missing", "after is")
            return ~Missing(name) if negated else Missing(name)
        negated = self.accept("not")
        if self.accept("in"):
            self.expect("(", "after in")
            values = [self.value()]
            while self.accept(","):
                values.append(self.value())
            self.expect(")", "after the values")
            one_of = OneOf(name, tuple(values))
            return ~one_of if negated else one_of
        if negated:
            self.expect("in", "after not")
        sign = self.accept(*OPERATORS)
        if sign is None:
            self.refuse(f"expected {SIGNS} after {shown_part(name)}, not {self.ahead()}")
        value = self.value()
        return Level(name, value) if sign.text == "==" else Compared(name, sign.text, value)

    def value(self) -> Any:
        """A number, a text in quotes, true or false."""
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
            self.refuse(f'a value of text stands in quotes: "{shown_part(token.text)}"')
        return self.refuse(f"expected a value, not {self.ahead()}")


def shown_part(text: str) -> str:
    """A name or number as it stands in a sentence, cut where it is long."""
    return text if len(text) <= WINDOW and text.isprintable() else shown(text)[1:]
