"""The checker of JSON Schema: by hand, and against the package jsonschema."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itrust.auditing.schemas import faults

WORDS = st.sampled_from(["", "a", "b"])  # no other constants are in our schemas
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.5, 1.0, -2.0]), WORDS,
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=8,
)
KINDS = ["object", "array", "string", "boolean", "number", "integer", "null"]
LEAVES = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(KINDS)}),
    st.fixed_dictionaries({"type": st.lists(st.sampled_from(KINDS), min_size=1, unique=True)}),
    st.fixed_dictionaries({"const": WORDS}),
    st.fixed_dictionaries({"enum": st.lists(WORDS, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"required": st.lists(st.sampled_from("abc"), unique=True)}),
    st.just({"$ref": "#/$defs/tree"}),
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"properties": st.dictionaries(st.sampled_from("abc"), inner)},
            optional={"additionalProperties": inner, "required": st.just(["a"])},
        ),
        st.fixed_dictionaries({"items": inner}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"if": inner, "then": inner}),
    ),
    max_leaves=6,
)
TREE = {
    "type": ["object", "null"],
    "properties": {"a": {"$ref": "#/$defs/tree"}},
    "additionalProperties": {"type": "integer"},
}


@settings(max_examples=400, deadline=None)
@given(value=VALUES, schema=SCHEMAS)
def test_accepts_what_the_package_jsonschema_accepts(value, schema):
    oracle = pytest.importorskip("jsonschema").Draft202012Validator
    whole = {"$defs": {"tree": TREE}, **schema}
    assert (not list(faults(value, whole))) == oracle(whole).is_valid(value)


@pytest.mark.parametrize(
    ("value", "schema", "said"),
    [
        (True, {"type": "integer"}, "it must be a whole number, not true"),
        (1.5, {"type": ["integer", "null"]}, "it must be a whole number or null, not 1.5"),
        ({"a": [1, "x"]}, {"properties": {"a": {"items": {"type": "number"}}}},
         "a[1] must be a number, not the text 'x'"),
        ({}, {"required": ["a"]}, "it lacks the entry 'a'"),
        ("c", {"enum": ["a", "b"]}, "it must be one of 'a', 'b', not the text 'c'"),
        ({"x y": []}, {"additionalProperties": {"type": "null"}},
         "'x y' must be null, not a list"),
        ({"a": {}}, {"properties": {"a": {"anyOf": [{"required": ["b"]}, {"type": "null"}]}}},
         "a lacks the entry 'b'"),
    ],
)  # fmt: skip
def test_says_what_is_wrong_and_where(value, schema, said):
    ((place, problem),) = faults(value, schema)
    assert f"{place or 'it'} {problem}" == said


@pytest.mark.parametrize(
    ("value", "kinds"), [(2.0, {"integer", "number"}), (True, {"boolean"}), (None, {"null"})]
)
def test_whole_floats_are_integers_and_booleans_are_no_numbers(value, kinds):
    assert {kind for kind in KINDS if not list(faults(value, {"type": kind}))} == kinds


def test_a_keyword_that_is_not_known_is_a_mistake_of_ours():
    with pytest.raises(KeyError, match="minimum"):
        list(faults(1, {"minimum": 0}))


def test_places_of_others_cannot_write_to_the_terminal():
    schema = {"additionalProperties": {"required": ["a"]}}
    ((place, _),) = faults({"b\x1b[2J": {}}, schema)
    assert place == r"'b\x1b[2J'"
