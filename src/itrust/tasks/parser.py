"""The text form of tasks: a small grammar, parsed by hand, never evaluated.

    whole      = [ title ":" ] task [ "~" number ]
    task       = term { ("+" | "-") term }
    term       = factor { ("*" | "/") factor }
    factor     = number | "-" factor | "(" task ")" | call
    call       = "mean" "(" quantity [ "|" condition ] ")"
               | "share" "(" condition [ "|" condition ] ")"
               | "prevalence" "(" [ condition ] ")"
               | "prevalence" "(" class [ "|" condition ] ")"
               | "coef" "(" [ class "~" ] coefficient ";" terms [ ";" link ] [ "|" condition ] ")"
    class      = value
    coefficient = "1" | part [ ":" part ]
    part       = covariate "[" value "]" | product
    terms      = term { "+" term }
    term       = product [ reference ] [ ":" product [ reference ] ]
    reference  = "against" value
    link       = "logit" | "identity" | "log"
    product    = what stands between the signs + and - of a quantity
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
mean(10 ** log_income). A coefficient is that of a regression of the label on the terms and a
constant (coef(1 ; ...) is the constant's): logistic unless a link is named; identity gives
differences of rates, log gives logs of ratios of rates. A category has a coefficient for each level
but the reference, which is the one after "against", or the first that occurs; ":" multiplies two
terms. Where labels have several classes, every number names its class: prevalence("tie") is the
rate of it, the condition of a mean or a share has y == "tie" joined to the rest by "and", and
coef("tie" ~ age ; ...) is of a regression of "is it tie?" (a condition would choose rows by their
label). The label is called y, or what its column is called. Covariates are observed ones: the
model's prediction is no term. A text has at most 100,000 characters and 1,000 words and signs, with
60 levels of parentheses and 95 parts within each other, such as terms of a sum; all numbers are
finite. Examples:

    mean(age | race == "Black") - mean(age | race == "White")
    share(age >= 65)
    prevalence(region in ("south", "west") and age < 40) / prevalence()
    Mean age of owners: mean(age) ~ 0.5
    coef(age ; age + race + log(income))
    coef(race["Black"] ; age + race against "White" ; identity | region == "south")
    coef(age:urban ; age + urban + age:urban)
    prevalence("win" | region == "south") - prevalence("loss" | region == "south")
    mean(age | y == "tie" and region == "south")
    coef("tie" ~ age ; age + region)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

from itrust._core import InputError, did_you_mean, shown
from itrust.data import (
    MAX_CHARACTERS,
    RESERVED,
    TOKEN,
    ConditionReader,
    Everywhere,
    Predicate,
    Token,
    shown_part,
)
from itrust.tasks.arithmetic import FUNCTIONS, MAX_DEPTH, Covariate, Function, Indicator, Quantity
from itrust.tasks.expressions import LABEL, Combined, FixedNumber, Ratio, Task
from itrust.tasks.regressions import Coefficient
from itrust.tasks.terms import LevelOf, Regression, RegressionTerm
from itrust.terms import LINKS

TITLE = re.compile(r"""\s*(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<bare>[^"`(|:]*[^"`(|:\s]))\s*:""")
CALLS = ("mean", "share", "prevalence", "coef")
# Signs that only regressions have; elsewhere they are refused with what may have been meant.
OF_REGRESSIONS = ";:[]"
TOKENS = re.compile(TOKEN.pattern.replace("[-+*/()|,<>~]", r"[-+*/()|,<>~;:\[\]]"), re.VERBOSE)
BOOLEANS = ("true", "false")
MOST_PARTS = MAX_DEPTH - 5  # a mean, a sign and a title may come around them

Made = TypeVar("Made")


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
        problem = "a task is text such as 'mean(age)', not {value}"
        raise InputError(problem, argument="text", value=text)
    if len(text) > MAX_CHARACTERS:
        return _Parser(text).whole()  # which refuses it; looking for a title would take long
    text = text.lstrip()
    title = TITLE.match(text)
    if title is None:
        return _Parser(text).whole()
    named = title["bare"] or title["quoted"].replace('""', '"')
    return _Parser(text, title.end()).whole(named)


def parse_term(text: str) -> RegressionTerm:
    """Read what a coefficient is of, or a term of a regression, from text.

    >>> str(parse_term('race["b"]')), str(parse_term("age:log(income)"))
    ('race["b"]', 'age:log(income)')
    """
    reader = _Parser(text)
    found = reader.coefficient_term()
    if reader.peek is not None:
        reader.refuse(f"the term ends before {reader.ahead()}")
    return found


class _Parser(ConditionReader):
    """Tasks around conditions, by the same recursive descent."""

    WHOLE = "task"
    TOKENS = TOKENS

    def whole(self, title: str | None = None) -> Task:
        if not any(token.kind == "word" and token.text == "coef" for token in self.tokens):
            for token in self.tokens:
                if token.kind == "sign" and token.text in OF_REGRESSIONS:
                    self._refuse_character(token.at)
        task: Task = self.task()
        tolerance = self.tolerance() if self.accept("~") else None
        if self.peek is not None:
            self.refuse(f"the task ends before {self.ahead()}")
        if title is None:
            return task if tolerance is None else task.matters_at(tolerance)
        return task.named(title, tolerance)

    def tolerance(self) -> float:
        token = self.peek
        if token is None or token.kind != "number" or not 0 < float(token.text) < math.inf:
            self.refuse(f"expected the tolerance, a number above 0, after ~, not {self.ahead()}")
        self.position += 1
        return float(token.text)

    def _arithmetic(self, factor: Callable[[], Any]) -> Any:
        """Sums of products of factors, from left to right."""
        left = self._product(factor)
        while sign := self.accept("+", "-"):
            left = self._joined(left, sign, self._product(factor))
        return left

    def _product(self, factor: Callable[[], Any]) -> Any:
        """Products of factors, from left to right."""
        left = factor()
        while sign := self.accept("*", "/"):
            left = self._joined(left, sign, factor())
        return left

    def _joined(self, left: Any, sign: Token, right: Any) -> Combined:
        """Two parts with a sign between them, which is pointed at where they are too many."""
        self._refuse_depth(max(left.depth, right.depth), sign)
        return Combined(left, sign.text, right)

    def _refuse_depth(self, depth: int, token: Token) -> None:
        if depth >= MOST_PARTS:
            self.refuse(f"more than {MOST_PARTS} parts lie within each other", token.at)

    def task(self) -> Any:
        return self._arithmetic(self.factor)

    def factor(self) -> Any:
        def negative() -> Task:
            inner = self.factor()
            if isinstance(inner, FixedNumber):
                return FixedNumber(-inner.value)
            return Combined(FixedNumber(0.0), "-", inner)

        return self._smallest("task", self.task, negative, self.call)

    def _smallest(
        self,
        word: str,
        whole: Callable[[], Any],
        negative: Callable[[], Any],
        other: Callable[[], Any],
    ) -> Any:
        """What signs stand between: a negative, parentheses, a number, or something else."""
        with self.deeper():
            if self.accept("-"):
                return negative()
            if self.accept("("):
                return self.closed(word, whole())
            token = self.peek
            if token is not None and token.kind == "number":
                self.position += 1
                return FixedNumber(float(token.text))
            return other()

    def call(self) -> Task:
        token = self.peek
        if token is None or token.kind != "word":
            self.refuse(
                f"expected mean(...), share(...), prevalence(...), coef(...) or a number, "
                f"not {self.ahead()}"
            )
        if token.text not in CALLS:
            guess = did_you_mean(token.text, CALLS)
            self.refuse(f"there is no task {shown(token.text)}; {guess}")
        self.position += 1
        self.expect("(", f"after {token.text}")
        task: Task
        if token.text == "prevalence":
            task = self.rate()
        elif token.text == "share":
            task = Ratio.among(Indicator(self.condition()), self.given())
        elif token.text == "coef":
            task = self.coefficient()
        else:
            quantity = self.quantity()
            if not quantity.names:
                self.refuse("mean needs a covariate", token.at)
            task = Ratio.among(quantity, self.given())
        self.expect(")", f"to close {token.text}(")
        return task

    def rate(self) -> Ratio:
        """The rate of a class, or of positives, among rows that count."""
        label = self.label("|", ")")
        if label is not None:
            where = self.given()
        else:
            empty = self.peek is not None and self.peek.text == ")"
            self._refuse_bare_class()
            where = Everywhere() if empty else self.condition()
        return Ratio(Indicator(Everywhere()), where, among_positives=False, label=label)

    def _refuse_bare_class(self) -> None:
        """Refuse a word alone where a class or a condition should stand."""
        following = self.tokens[self.position : self.position + 2]
        if len(following) == 2 and following[0].kind == "word" and following[1].text in ("|", ")"):
            word = following[0].text
            if word not in RESERVED:
                self.position += 1
                self.refuse(
                    f"expected ==, !=, <, <=, > or >= after {shown_part(word)}, not "
                    f'{self.ahead()} (a class stands in quotes: "{shown_part(word)}")'
                )

    def label(self, *after: str) -> Any:
        """A class, if a value stands here and one of some signs after it; else None."""
        at = self.position + (self.peek is not None and self.peek.text == "-")
        following = self.tokens[at : at + 2]
        if len(following) < 2 or following[1].text not in after:
            return None
        is_value = following[0].kind in ("number", "text") or following[0].text in BOOLEANS
        return self.value() if is_value else None

    def coefficient(self) -> Coefficient:
        """A coefficient, the terms of its regression, the link, and the rows that count."""
        label = self.label("~")
        if label is not None:
            self.expect("~", "after the class")
        token = self.peek
        is_constant = self._two_ahead() == ["1", ";"]
        self.position += is_constant
        of = None if is_constant else self.coefficient_term()
        self.expect(";", "and the terms of the regression after the coefficient")
        references: dict[str, Any] = {}
        terms = [self.term(references)]
        while self.accept("+"):
            terms.append(self.term(references))
        link = "logit"
        if self.accept(";"):
            named = self.accept(*LINKS)
            if named is None:
                self.refuse(f"expected logit, identity or log after ;, not {self.ahead()}")
            link = named.text
        at = len(self.text) if token is None else token.at
        regression = self._made(
            at, Regression, tuple(terms), link, self.given(), tuple(references.items())
        )
        return self._made(at, Coefficient, of, regression, label)

    def _made(self, at: int, kind: Callable[..., Made], *parts: Any) -> Made:
        """Something that refuses parts which do not go together: pointed at in the text."""
        try:
            return kind(*parts)
        except InputError as error:
            self.refuse(str(error), at)

    def _two_ahead(self) -> list[str]:
        """The next two words or signs."""
        return [token.text for token in self.tokens[self.position : self.position + 2]]

    def coefficient_term(self) -> RegressionTerm:
        """One or two parts; levels stand in brackets."""
        return self._term(self.coefficient_part)

    def coefficient_part(self) -> Any:
        if self._two_ahead()[1:] == ["["]:
            name = self.covariate()
            self.expect("[", f"after {shown(name)}")
            found = LevelOf(name, self.value())
            self.expect("]", "after the level")
            return found
        return self.product()

    def term(self, references: dict[str, Any]) -> RegressionTerm:
        """A term of a regression; a category may name the level that others are compared with."""

        def part() -> Any:
            found = self.product()
            sign = self.accept("against")
            if sign is not None:
                if not isinstance(found, Covariate):
                    self.refuse("only a covariate by itself has a reference level", sign.at)
                level = self.value()
                if references.setdefault(found.name, level) != level:
                    self.refuse("a category has one reference level", sign.at)
            return found

        return self._term(part)

    def _term(self, part: Callable[[], Any]) -> RegressionTerm:
        first = self.peek
        factors = [part()]
        while self.accept(":"):
            factors.append(part())
        at = self.end if first is None else first.at
        return self._made(at, RegressionTerm, tuple(factors))

    def product(self) -> Any:
        """A quantity without sums, which would stand in parentheses."""
        return self._product(self.quantity_factor)

    def given(self) -> Predicate:
        if not self.accept("|"):
            return Everywhere()
        token = self.peek
        if token is not None and token.kind == "text":
            class_named = f"{LABEL} == {shown_part(token.text)}"
            self.refuse(f"expected a covariate, not {self.ahead()} (for a class: {class_named})")
        return self.condition()

    def quantity(self) -> Any:
        return self._arithmetic(self.quantity_factor)

    def quantity_factor(self) -> Any:
        base = self._smallest(
            "formula",
            self.quantity,
            lambda: Combined(FixedNumber(0.0), "-", self.quantity_factor()),
            self.function,
        )
        sign = self.accept("**")
        if sign is None:
            return base
        with self.deeper():
            return self._joined(base, sign, self.quantity_factor())

    def function(self) -> Quantity:
        """A function of a quantity, or a covariate, which may be called like a function."""
        token = self.peek
        if token is None or token.text not in FUNCTIONS or self._two_ahead()[1:] != ["("]:
            return Covariate(self.covariate())
        self.position += 2
        inside = self.quantity()
        self.expect(")", f"to close {token.text}(")
        self._refuse_depth(inside.depth, token)
        return Function(token.text, inside)
