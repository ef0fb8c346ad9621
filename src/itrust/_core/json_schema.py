"""Values checked against a JSON Schema, as far as ours go: `KEYWORDS` of draft 2020-12.

`tests/core/test_json_schema.py` compares with the package jsonschema, which is not needed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from itrust._core.text import shown

Schema = Mapping[str, Any]
Place = tuple[str | int, ...]
NOTES = ("$schema", "title", "description", "$defs")  # say nothing about the value
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "number": (int, float),
    "integer": (int, float),
    "null": (type(None),),
}
WORDS = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "boolean": "true or false",
    "number": "a number",
    "integer": "a whole number",
    "null": "null",
}


class SchemaFault(NamedTuple):
    """A place of a value that is not as the schema says, and what is wrong there."""

    place: Place
    problem: str

    @property
    def where(self) -> str:
        """The place in words.

        >>> SchemaFault(("tasks", 0, "my entry"), "").where, SchemaFault((), "").where
        ("tasks[0]['my entry']", 'it')
        """
        words = ""
        for step in self.place:
            if isinstance(step, str) and step.isascii() and step.isidentifier() and len(step) < 60:
                words += f".{step}"
            else:
                words += f"[{shown(step)}]"
        return words.removeprefix(".") or "it"


def faults(value: Any, schema: Schema) -> Iterator[SchemaFault]:
    """Where a value of JSON is not as a schema says, in the order of the schema.

    >>> schema = {"type": "object", "required": ["a"], "properties": {"b": {"type": "number"}}}
    >>> for fault in faults({"b": "x"}, schema):
    ...     print(fault.where, fault.problem)
    it lacks the entry 'a'
    b must be a number, not the text 'x'
    """
    return _Check(schema).of(value, schema, ())


class _Check:
    """One schema, whose parts refer to each other."""

    def __init__(self, root: Schema) -> None:
        self.root = root

    def of(self, value: Any, schema: Schema, place: Place) -> Iterator[SchemaFault]:
        for keyword, rule in schema.items():
            if keyword not in NOTES:
                yield from KEYWORDS[keyword](self, value, rule, place, schema)

    def ref(self, value: Any, rule: str, place: Place, _: Schema) -> Iterator[SchemaFault]:
        named = self.root["$defs"][rule.removeprefix("#/$defs/")]
        yield from self.of(value, named, place)

    def type(
        self, value: Any, rule: str | list[str], place: Place, _: Schema
    ) -> Iterator[SchemaFault]:
        allowed = [rule] if isinstance(rule, str) else rule
        if not any(_is_a(value, name) for name in allowed):
            wanted = " or ".join(WORDS[name] for name in allowed)
            yield SchemaFault(place, f"must be {wanted}, not {_told(value)}")

    def const(self, value: Any, rule: Any, place: Place, schema: Schema) -> Iterator[SchemaFault]:
        yield from self.enum(value, [rule], place, schema)

    def enum(self, value: Any, rule: list[Any], place: Place, _: Schema) -> Iterator[SchemaFault]:
        if not any(_equal(value, known) for known in rule):
            known = ", ".join(map(shown, rule))
            one = "" if len(rule) == 1 else "one of "
            yield SchemaFault(place, f"must be {one}{known}, not {_told(value)}")

    def required(
        self, value: Any, rule: list[str], place: Place, _: Schema
    ) -> Iterator[SchemaFault]:
        if isinstance(value, dict):
            for name in rule:
                if name not in value:
                    yield SchemaFault(place, f"lacks the entry {name!r}")

    def properties(
        self, value: Any, rule: Mapping[str, Schema], place: Place, _: Schema
    ) -> Iterator[SchemaFault]:
        if isinstance(value, dict):
            for name, part in rule.items():
                if name in value:
                    yield from self.of(value[name], part, (*place, name))

    def others(
        self, value: Any, rule: Schema, place: Place, schema: Schema
    ) -> Iterator[SchemaFault]:
        """Entries that `properties` does not name."""
        if isinstance(value, dict):
            for name in value:
                if name not in schema.get("properties", ()):
                    yield from self.of(value[name], rule, (*place, name))

    def items(self, value: Any, rule: Schema, place: Place, _: Schema) -> Iterator[SchemaFault]:
        if isinstance(value, list):
            for number, part in enumerate(value):
                yield from self.of(part, rule, (*place, number))

    def all_of(
        self, value: Any, rule: list[Schema], place: Place, _: Schema
    ) -> Iterator[SchemaFault]:
        for part in rule:
            yield from self.of(value, part, place)

    def any_of(
        self, value: Any, rule: list[Schema], place: Place, _: Schema
    ) -> Iterator[SchemaFault]:
        """Tells what is wrong with the form that the value comes closest to."""
        tried = [list(self.of(value, part, place)) for part in rule]
        if all(tried):
            yield from max(tried, key=lambda found: len(found[0].place))

    def when(self, value: Any, rule: Schema, place: Place, schema: Schema) -> Iterator[SchemaFault]:
        """What `then` says, where `if` holds."""
        if next(self.of(value, rule, place), None) is None:
            yield from self.of(value, schema["then"], place)

    def nothing(self, *_: Any) -> Iterator[SchemaFault]:
        """`then` is read with its `if`."""
        return iter(())


KEYWORDS: dict[str, Callable[[_Check, Any, Any, Place, Schema], Iterator[SchemaFault]]] = {
    "$ref": _Check.ref,
    "type": _Check.type,
    "const": _Check.const,
    "enum": _Check.enum,
    "required": _Check.required,
    "properties": _Check.properties,
    "additionalProperties": _Check.others,
    "items": _Check.items,
    "allOf": _Check.all_of,
    "anyOf": _Check.any_of,
    "if": _Check.when,
    "then": _Check.nothing,
}


def _is_a(value: Any, name: str) -> bool:
    """JSON knows one kind of number, of which 2.0 is a whole one, and true is none."""
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[name])


def _equal(value: Any, known: Any) -> bool:
    """Whether two scalars are one: true is not 1, but 1.0 is."""
    return isinstance(value, bool) == isinstance(known, bool) and bool(value == known)


def _told(value: Any) -> str:
    """A value that was found, in words."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return f"the text {shown(value)}" if isinstance(value, str) else shown(value)
