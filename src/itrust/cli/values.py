"""Values of options as they are typed: numbers within bounds, and text that is text."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

import click

from itrust._core import InputError
from itrust.cli.options import BY_KEY, Kind, Option, Options


class NumberType(click.ParamType):  # type: ignore[type-arg]  # a plain class before click 8.2
    """A number, whole or not; anything else is one sentence."""

    def __init__(self, option: Option) -> None:
        self.option = option
        self.name = option.kind.value

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """The number that a text holds."""
        try:
            # As text in any case: more digits than Python turns into text are of no use to anybody.
            number = int(str(value)) if self.option.kind is Kind.COUNT else finite_number(value)
        except (ValueError, OverflowError):
            raise self._refused(f"takes {self.name}, not {{value}}", value) from None
        if self.option.at_most and number > self.option.at_most:
            raise self._refused(f"takes at most {self.option.at_most:,}, not {{value}}", value)
        return number

    def _refused(self, problem: str, value: Any) -> InputError:
        return InputError(f"{{argument}} {problem}", argument=self.option.key, value=value)


def finite_number(value: Any) -> float:
    """The number that a text holds; a ValueError where it holds none, or no finite one."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def refuse_odd_texts(options: Options) -> None:
    """Raise on text that is none, and on names of files that are empty or of folders."""
    for name, text in _texts(options):
        option = BY_KEY.get(name)
        is_file = option is None or option.is_file
        if is_file and not text:
            raise InputError("{argument} names no file: its value is empty", argument=name)
        if option is not None and option.kind is Kind.WRITTEN:
            _refuse_lost_folder(name, text)
        try:
            text.encode()
        except UnicodeEncodeError:  # bytes of the command line that Python could not read
            cure = "; rename the file" if is_file else ""
            raise InputError(
                f"{{argument}} must be UTF-8 text, not {{value}}{cure}", argument=name, value=text
            ) from None


def _refuse_lost_folder(name: str, text: str) -> None:
    """Raise on an output that ends as a folder does, which there is not: paths drop the ending."""
    if os.path.basename(text) in ("", ".") and not os.path.isdir(text):
        folder = os.path.dirname(text).rstrip(os.sep)
        raise InputError("{argument}: there is no folder {value}", argument=name, value=folder)


def _texts(options: Options) -> Iterator[tuple[str, str]]:
    """Every text that was given, with what it was given for."""
    for name, value in _given(options).items():
        for part in value if isinstance(value, list | tuple) else [value]:
            if isinstance(part, str):
                yield name, part


def _given(options: Options) -> dict[str, Any]:
    """Files and values by what they were given for."""
    if options.population is None:
        return {"FILE": options.file, **options.values}
    return {"LABELLED": options.file, "POPULATION": options.population, **options.values}
