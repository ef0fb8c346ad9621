"""The JSON of an audit: its schema, and whether a file keeps to it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from itrust._core import Code, InputError, counted, inside, json_of, mended_by, shown

SCHEMA = "itrust-audit/5"
MAX_FAULTS = 1_000  # that are counted
MADE_BY = Code("audit.to_dict()", "'itrust audit --json'")
# Of JSON Schema, draft 2020-12, what our schemas need; `NOTES` say nothing about the value.
NOTES = ("$schema", "title", "description", "$defs")
KINDS: dict[str, tuple[str, tuple[type, ...]]] = {
    "object": ("an object", (dict,)),
    "array": ("a list", (list,)),
    "string": ("a text", (str,)),
    "boolean": ("true or false", (bool,)),
    "number": ("a number", (int, float)),
    "integer": ("a whole number", (int, float)),
    "null": ("null", (type(None),)),
}


def json_schema() -> dict[str, Any]:
    """Give the JSON Schema of what `audit.to_dict()` returns.

    It is the file `schema/itrust-audit-5.json` of this package, for draft 2020-12. Every entry has
    a type; what may be null says so. Entries that it does not name are allowed, because entries
    may be added while the number stays.

    Returns
    -------
    dict
        A copy, which may be changed.

    Examples
    --------
    >>> from itrust.auditing import json_schema
    >>> json_schema()["title"]
    'itrust-audit/5'
    """
    file = files("itrust.auditing") / "schema" / f"{SCHEMA.replace('/', '-')}.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


_schema = cache(json_schema)


def check_json(found: Mapping[str, Any]) -> None:
    """Refuse what is not the JSON of an audit in the form of this version.

    Parameters
    ----------
    found : mapping
        What `audit.to_dict()` gives, or what was read from a file of `itrust audit --json`.

    Raises
    ------
    InputError
        Where an entry is missing or has another type: the sentence names the place; or where it is
        the form of another version.

    Examples
    --------
    >>> import itrust as it
    >>> from itrust.auditing import check_json
    >>> sample = it.simulate.survey(200, rng=0).sample
    >>> found = it.audit(sample, draws=79, rng=0, charts=False).to_dict()
    >>> check_json(found)
    >>> check_json(found | {"pvalue": "small"})
    Traceback (most recent call last):
    ...
    itrust.InputError: pvalue must be a number or null, not the text 'small'
    """
    said = found.get("schema") if isinstance(found, Mapping) else None
    if said != SCHEMA:
        raise InputError(
            "it has {what}, not {ours}; give what comes from {made} of this version",
            argument="found",
            what="no entry 'schema'" if said is None else f"the schema {shown(said)}",
            ours=SCHEMA,
            made=MADE_BY,
        )
    try:
        wrong = list(islice(faults(dict(found), _schema()), MAX_FAULTS))
    except RecursionError:
        raise InputError("it is nested too deeply for an audit", argument="found") from None
    if not wrong:
        return
    place, problem = wrong[0]
    others = len({own for own, _ in wrong} - {place})
    more = f" (and {counted(others, 'other place')} in it)" if others else ""
    raise InputError(
        "{place} {problem}{more}",
        argument="found",
        details={"place": place or "it", "problem": problem, "more": more},
    )


def read_json(path: str | os.PathLike[str] | BinaryIO) -> dict[str, Any]:
    """Read the JSON of an audit, and refuse what is not in the form of this version.

    It is read as data, strictly: no entry twice, no NaN or Infinity, at most 64 MB.

    Parameters
    ----------
    path : str, path or open file of bytes
        What `itrust audit --json` wrote.

    Returns
    -------
    dict
        As `audit.to_dict()` gives it; `itrust.render.page.write` makes a page of it.

    Examples
    --------
    >>> import itrust as it
    >>> from itrust.auditing import read_json
    >>> read_json("nowhere.json")
    Traceback (most recent call last):
    ...
    itrust.InputError: cannot read nowhere.json: No such file or directory
    """
    source = Path(path) if isinstance(path, str | os.PathLike) else path
    name = str(source) if isinstance(source, Path) else _name_of(source)
    with mended_by("give what comes from {}", MADE_BY):
        found: Any = json_of(source, name)
    try:
        check_json(found)
    except InputError as error:
        raise error.at(file=name) from None
    return dict(found)


def _name_of(stream: object) -> str:
    """What an open file is called."""
    name = getattr(stream, "name", None)
    if name == "<stdin>":
        return "standard input"
    return name if isinstance(name, str) and not name.startswith("<") else "the open file"


def faults(
    value: Any, schema: Mapping[str, Any], place: str = "", root: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, str]]:
    """Places where a value of JSON is not as a schema says, and what is wrong there, in its order.

    The package jsonschema is the oracle, which is not needed here.

    >>> schema = {"type": "object", "required": ["a"], "properties": {"b": {"type": "number"}}}
    >>> list(faults({"b": "x"}, schema))
    [('', "lacks the entry 'a'"), ('b', "must be a number, not the text 'x'")]
    """
    root = schema if root is None else root
    entries = value if isinstance(value, dict) else {}
    for keyword, rule in schema.items():
        match keyword:
            case "$ref":
                yield from faults(value, root["$defs"][rule.removeprefix("#/$defs/")], place, root)
            case "type":
                kinds = [rule] if isinstance(rule, str) else rule
                if not any(_is_a(value, kind) for kind in kinds):
                    wanted = " or ".join(KINDS[kind][0] for kind in kinds)
                    yield place, f"must be {wanted}, not {_in_words(value)}"
            case "const" | "enum":
                known = [rule] if keyword == "const" else rule
                if value not in known:
                    wanted = f"{'one of ' * (len(known) > 1)}{', '.join(map(shown, known))}"
                    yield place, f"must be {wanted}, not {_in_words(value)}"
            case "required":
                if isinstance(value, dict):
                    lacking = (name for name in rule if name not in value)
                    yield from ((place, f"lacks the entry {n!r}") for n in lacking)
            case "properties":
                for name, part in rule.items():
                    if name in entries:
                        yield from faults(entries[name], part, inside(place, name), root)
            case "additionalProperties":
                for name in entries:
                    if name not in schema.get("properties", ()):
                        yield from faults(entries[name], rule, inside(place, name), root)
            case "items":
                for number, item in enumerate(value if isinstance(value, list) else ()):
                    yield from faults(item, rule, inside(place, number), root)
            case "allOf":
                for part in rule:
                    yield from faults(value, part, place, root)
            case "anyOf":  # what is wrong with the form that the value comes closest to
                tried = [list(faults(value, part, place, root)) for part in rule]
                if all(tried):
                    yield from max(tried, key=lambda wrong: len(wrong[0][0]))
            case "if":
                if next(faults(value, rule, place, root), None) is None:
                    yield from faults(value, schema["then"], place, root)
            case _ if keyword not in (*NOTES, "then"):
                raise KeyError(keyword)  # a mistake of ours


def _is_a(value: Any, kind: str) -> bool:
    """JSON knows one kind of number, of which 2.0 is a whole one, and true is none."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, KINDS[kind][1])


def _in_words(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return f"the text {shown(value)}" if isinstance(value, str) else shown(value)
