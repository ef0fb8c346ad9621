"""What a page shows of a result's dict: texts that are short, numbers that know their places."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup

from itrust._core import cut, printable, rounded, signed, signed_in

MINUS = "\N{MINUS SIGN}"
RARE = 0.1  # rates below it have a digit more
LONG_NAME, LONG_LABEL, LONG_TEXT = 80, 160, 700
LABELS = ("name", "rule", "group", "by", "where", "model", "title")  # keys of what is called so
WORD = re.compile(r"\S{81,}")  # no page has room for such a word
TEXTS = ("text", "says", "note", "marked")
BESIDE = ("bias", "size", "change", "value")  # numbers with the digits that an interval can tell
SIGNS = {
    "low": ("▲", "shown: the model is too low"),
    "high": ("▼", "shown: the model is too high"),
    "none": ("○", "not shown"),
    "both": ("◆", "shown"),
}


def columns_of(spec: str) -> list[dict[str, str]]:
    """Read columns: title, key of values in a row's dict, kind, and how a style sheet finds it.

    >>> columns_of("group=name:text | rows")[0]
    {'title': 'group', 'key': 'name', 'kind': 'text', 'look': ''}
    """
    found = []
    for part in spec.split(" | "):
        name, _, kind = part.partition(":")
        title, _, key = name.partition("=")
        kind, key = kind or ("rows" if name == "rows" else "number"), key or title
        look = "num strong" if kind in ("bias", "change") and key != "interval" else "num"
        if kind in TEXTS:
            look = "" if kind in ("text", "marked") else kind
        found.append({"title": title, "key": key, "kind": kind, "look": look})
    return found


class MarkedFacts:
    """The dict of a result; its numbers as Markup that tells their places, so tests read them."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self.value = value

    def __getitem__(self, name: str) -> Any:
        return self.value[name]

    def at(self, path: str) -> Any:
        """What stands at a place, such as "tasks.0.bias"."""
        value: Any = self.value
        for step in path.split("."):
            value = value[int(step)] if isinstance(value, list) else value[step]
        return value

    def marked(self, path: str, text: str) -> Markup:
        """A number by its place, written as it was settled before."""
        value = self.at(path)
        raw = "" if value is None else value if isinstance(value, str) else json.dumps(value)
        return Markup('<data data-fact="{}" value="{}">{}</data>').format(path, raw, text)

    def number(self, path: str, kind: str = "number", of: str = "") -> Markup:
        """A number by its place; `of` is where the interval stands that tells how many digits."""
        value, kept = self.at(path), self.at(of or path.rpartition(".")[0]) if "." in path else {}
        lower, upper = (kept.get("lower"), kept.get("upper")) if isinstance(kept, dict) else (0, 0)
        if kind not in BESIDE or value is None or lower is None or upper is None:
            return self.marked(path, shown(value, "number" if kind == "value" else kind))
        if kind in ("bias", "size"):
            text = signed_in(value, lower, upper)
            text = text[1:] if value == 0 or kind == "size" else text
        else:
            text = rounded(value, lower, upper, "+" if kind == "change" else "-")
        return self.marked(path, text.replace("-", MINUS))

    def interval(self, place: str, kind: str = "bias", of: str = "") -> Markup:
        """Both ends of the interval of what stands at a place."""
        ends = (self.number(f"{place}.{name}", kind, of) for name in ("lower", "upper"))
        return Markup('<span class="nowrap">{} to {}</span>').format(*ends)

    def cell(self, place: str, column: Mapping[str, str], alpha: float) -> Markup:
        """A cell of a table whose row stands at that place."""
        row, key, kind = self.at(place), column["key"], column["kind"]
        if kind in TEXTS:
            sign = Markup("{}&nbsp;").format(mark(row, alpha)) if kind == "marked" else ""
            few = Markup(' <span class="tag">few rows</span>') if row.get("small") else ""
            return Markup("{}<bdi>{}</bdi>{}").format(sign, row[key], few)
        if key == "interval":
            return self.interval(place, kind)
        return self.number(f"{place}.{key}", kind)

    def rows(
        self,
        path: str,
        columns: Sequence[Mapping[str, str]],
        some: Sequence[int] | None,
        alpha: float,
    ) -> list[list[Markup]]:
        """Cells of the dicts in the list at a place, or of some of them."""
        places = (f"{path}.{k}" for k in (range(len(self.at(path))) if some is None else some))
        return [[self.cell(place, own, alpha) for own in columns] for place in places]


def shown(value: object, kind: str = "number") -> str:
    """A value for people: rates and biases with three digits, p-values with three that count.

    >>> shown(-0.0264, "bias"), shown(1595, "rows"), shown(0.0012345, "p"), shown(None)
    ('−0.026', '1,595', '0.00123', '–')
    """  # noqa: RUF002
    if value is None:
        return "infinite" if kind == "loss" else "\N{EN DASH}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if kind == "cover":
        return f"{100 * value:.4g} %"
    form = {"rate": ".3f" if value >= RARE else ".4f", "rows": ",.0f", "p": ".3g", "share": ".1%"}
    plus = {"change": "+.4g", "score": ".4f", "loss": ".4f", "whole": "d", "deviation": "+.1f"}
    if kind == "size":  # of a bias whose direction is told in words
        return signed(abs(value))[1:]
    told = signed(value) if kind == "bias" else format(value, {**form, **plus}.get(kind, ".4g"))
    if told in ("-0.000", "+0.000"):  # nothing has no sign
        told = told[1:]
    return told.replace("-", MINUS)


def is_shown(part: Mapping[str, Any], alpha: float) -> bool:
    """Whether a bias is shown."""
    return part["pvalue"] is not None and bool(part["pvalue"] <= alpha)


def mark(part: Mapping[str, Any], alpha: float) -> Markup:
    """The sign that says whether a bias is shown, and on which side."""
    return sign(("low" if part["bias"] > 0 else "high") if is_shown(part, alpha) else "none")


def sign(side: str) -> Markup:
    """One of the four signs."""
    text = Markup('<span class="mark {}" role="img" aria-label="{}">{}</span>')
    return text.format(side, SIGNS[side][1], SIGNS[side][0])


def shortened(names: Iterable[str]) -> Callable[[str], str]:
    """Cut long names of covariates and long words wherever they occur, then what is too long."""
    cuts = _cut_names(sorted((name for name in names if len(name) > LONG_NAME), key=len))

    def short(text: str) -> str:
        if len(text) > LONG_NAME:
            for name, shorter in reversed(cuts.items()):  # the longest may hold others
                text = text.replace(name, shorter)
        told = WORD.sub(lambda word: cut(word[0], LONG_NAME), printable(text, lines=False))
        return cut(told, LONG_TEXT)

    return short


def _cut_names(names: Iterable[str]) -> dict[str, str]:
    """Long names cut, with a number where others are cut to the same.

    >>> list(_cut_names(["a" * 99 + "b" * 30, "a" * 98 + "b" * 30]).values())[1][-8:]
    'bbbb (2)'
    """
    found: dict[str, str] = {}
    times: Counter[str] = Counter()
    for name in names:
        shorter = cut(name, LONG_NAME)
        times[shorter] += 1
        number = f" ({times[shorter]})" if times[shorter] > 1 else ""
        found[name] = cut(name, LONG_NAME - len(number)) + number
    return found


def tidy(value: Any, short: Callable[[str], str]) -> Any:
    """Every text as a page can show it; keys that are names stay, since no page shows those."""
    if isinstance(value, str):
        return short(value)
    if isinstance(value, dict):
        found = {name: tidy(part, short) for name, part in value.items()}
        labels = (name for name in LABELS if isinstance(found.get(name), str))
        return found | {name: cut(found[name], LONG_LABEL) for name in labels}
    if isinstance(value, list | tuple):
        return [tidy(part, short) for part in value]
    return value


def tidy_facts(found: Mapping[str, Any]) -> MarkedFacts:
    """A result's dict as a page shows it; a command that is cut would make nothing again."""
    made = found.get("provenance")
    if made is not None:
        command = printable(made["command"])
        made = {**tidy(made, partial(printable, lines=False)), "command": command}
    rest = {name: part for name, part in found.items() if name != "provenance"}
    names = [*found["on"], *map(str, found.get("classes", ()))]
    return MarkedFacts({**tidy(rest, shortened(names)), "provenance": made})
