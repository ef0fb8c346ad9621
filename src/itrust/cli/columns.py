"""What options say of columns and rows: kinds, codes, conditions, and how text is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from itrust._core import InputError, listed
from itrust.cli.inputs import InputFiles
from itrust.cli.options import Options
from itrust.data import PREDICTION, Kinds, Predicate, TextForm, parse_condition


@dataclass(frozen=True, eq=False)
class Said:
    """What options say of the columns of a file."""

    kinds: Kinds
    na_values: tuple[Any, ...]
    where: Predicate | None

    def condition_columns(self, source: InputFiles, probs: Sequence[str]) -> list[str]:
        """The columns that the condition reads, all of them there."""
        names = sorted(self.where.names) if self.where is not None else []
        found = []
        for name in names:
            if name == PREDICTION and name not in source.columns:
                if len(probs) > 1:
                    raise InputError(
                        "{argument}: with several models it is not clear which prediction is "
                        "meant; name its column",
                        argument="where",
                    )
                continue
            found.append(source.require("where", name))
        return found


def said_of_columns(source: InputFiles, options: Options) -> Said:
    """Read the options; refuses names of columns that are not there."""
    by_option = {
        option: split_names(source, option, getattr(options, option))
        for option in ("category", "number")
    }
    labels: dict[str, dict[Any, str]] = {}
    for text in options.value_labels:
        name, meanings = _labels(source, text)
        labels[name] = {**labels.get(name, {}), **meanings}
    kinds = Kinds.of(by_option["category"], by_option["number"], labels)
    where = None if options.where is None else _condition(options.where)
    return Said(kinds, na_values(options), where)


def _condition(text: str) -> Predicate:
    try:
        return parse_condition(text)
    except InputError as error:
        raise error.at(argument="where") from None


def split_names(source: InputFiles, option: str, given: Sequence[str]) -> tuple[str, ...]:
    """Names from options that repeat or hold several; a column whose name has a comma wins."""
    found: list[str] = []
    for text in given:
        parts = [text] if text in source.columns else [part.strip() for part in text.split(",")]
        found.extend(source.require(option, part) for part in parts if part)
    twice = [name for name in dict.fromkeys(found) if found.count(name) > 1]
    if twice:
        raise InputError(
            "{argument} names {twice} more than once",
            argument=option,
            details={"twice": listed(twice)},
        )
    return tuple(found)


def na_values(options: Options) -> tuple[Any, ...]:
    """Codes of missing values, between commas."""
    parts = [part.strip() for text in options.na_values for part in text.split(",")]
    return tuple(dict.fromkeys(part for part in parts if part))


def text_form(options: Options) -> TextForm:
    """How text files are written, as far as options say."""
    return TextForm(options.sep, options.decimal, options.dates, na_values(options))


def _labels(source: InputFiles, text: str) -> tuple[str, dict[Any, str]]:
    """A column and what its codes mean, from a text such as 'race: 1=White, 2=Black'."""
    name, colon, pairs = text.partition(":")
    found: dict[Any, str] = {}
    for pair in pairs.split(","):
        code, sign, meaning = (part.strip() for part in pair.partition("="))
        if pair.strip() and (not sign or not code or not meaning):
            colon = ""
        elif pair.strip():
            found[code] = meaning
    if not colon or not found:
        raise InputError(
            "{argument} takes a column and what its codes mean, such as 'race: 1=White, 2=Black', "
            "not {value}",
            argument="value_labels",
            value=text,
        )
    return source.require("value_labels", name.strip()), found
