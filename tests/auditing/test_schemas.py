"""The JSON of an audit keeps to its schema; one example of every version of the form is held."""

import copy
import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import itrust as it
from itrust.auditing import Provenance, check_json, json_schema, read_json
from itrust.auditing.schemas import SCHEMA, faults
from itrust.auditing.verdict import KINDS, Verdict
from itrust.balance import FeatureKind
from itrust.data import Predicate
from itrust.render.page import page
from itrust.tasks import TaskFinding

SAVED = Path(__file__).parent / "saved"
NEWEST = json.loads((SAVED / "itrust-audit-5.json").read_text())
DRAWS = {"draws": 79, "rng": 0}


def rows(n: int = 200, seed: int = 0):
    """Labels, predictions and covariates of every kind; the south is miscalibrated."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    x = {
        "age": rng.integers(18, 90, n).astype(float),
        "urban": rng.random(n) < 0.5,
        "region": rng.choice(["north", "south"], n),
        "seen": np.datetime64("2024-01-01") + np.arange(n) // 4,
    }
    y = rng.random(n) < np.clip(p + np.where(x["region"] == "south", 0.3, -0.2), 0, 1)
    return y, p, x


Y, P, X = rows()
FEW = {name: X[name] for name in ("age", "region")}
CLUSTERS = np.repeat(np.arange(40), 5)
TASKS = ["mean(age)", 'prevalence(region == "south") ~ 0.05']


def replicated() -> it.Sample:
    rng = np.random.default_rng(1)
    base = rng.exponential(size=200)
    sets = base[:, None] * rng.exponential(size=(200, 30))
    design = {"replicate_weights": sets, "replicate_method": "bootstrap"}
    return it.Sample(Y, P, FEW, weights=base, **design)


def everything() -> it.auditing.Audit:
    """An audit with all that can stand beside it; of the models, one has an infinite log loss."""
    other = np.where(Y & (np.arange(200) < 20), 0.0, P)
    models = {"a": it.Sample(Y, P, FEW), "b": it.Sample(Y, other, FEW)}
    y, p, x = rows(seed=1)
    fit = it.Sample(y, p, {name: x[name] for name in FEW})
    methods = [it.recalibrate.Platt(), it.recalibrate.Local()]
    return it.audit(models["a"], TASKS, **DRAWS).extended(
        comparison=it.compare(models, TASKS, **DRAWS),
        recalibration=it.recalibrate.compare(methods, fit, models["a"], **DRAWS),
        provenance=Provenance("itrust audit homes.csv"),
    )


DESIGNS = {
    "every kind of covariate": lambda: it.audit(it.Sample(Y, P, X), TASKS, **DRAWS),
    "no covariates": lambda: it.audit(it.Sample(Y, P), **DRAWS),
    "no charts": lambda: it.audit(it.Sample(Y, P, FEW), charts=False, **DRAWS),
    "missing values": lambda: it.audit(
        it.Sample(Y, P, {"age": np.where(X["urban"], np.nan, X["age"])}, missing="level"), **DRAWS
    ),
    "clusters": lambda: it.audit(it.Sample(Y, P, FEW, cluster=CLUSTERS), TASKS, **DRAWS),
    "too few clusters": lambda: it.audit(
        it.Sample(Y, P, FEW, cluster=CLUSTERS // 10), TASKS, **DRAWS
    ),
    "clusters in strata": lambda: it.audit(
        it.Sample(Y, P, FEW, cluster=CLUSTERS, strata=CLUSTERS // 10, weights=P + 1), **DRAWS
    ),
    "replicate weights": lambda: it.audit(replicated(), TASKS, **DRAWS),
    "infinite log loss": lambda: it.audit(
        it.Sample(Y, np.where(np.arange(200) < 20, 0.0, P), FEW), TASKS, **DRAWS
    ),
    "no label can vary": lambda: it.audit(it.Sample(np.ones(30), np.ones(30)), **DRAWS),
    "two rows": lambda: it.audit(it.Sample([0, 1], [0.4, 0.6], {"a": [1.0, 2.0]}), **DRAWS),
    "other models and recalibrations": everything,
    "a population": lambda: it.audit(
        it.Sample(Y, P, FEW).take(np.flatnonzero(X["age"] < 60)),
        [*TASKS, "coef(age ; age)"],
        population=it.Population(P, FEW | {"region": np.where(P > 0.8, "west", X["region"])}),
        **DRAWS,
    ),
}


@pytest.fixture(scope="module", params=DESIGNS)
def audit(request) -> it.auditing.Audit:
    return DESIGNS[request.param]()


def undescribed(value, schema, root, place="") -> Iterator[str]:
    """Entries that no schema names."""
    parts = list(schemas_of(value, schema, root))
    known = {name: part for own in parts for name, part in own.get("properties", {}).items()}
    others = next(
        (own["additionalProperties"] for own in parts if "additionalProperties" in own), None
    )
    if isinstance(value, dict):
        for name, own in value.items():
            if name in known:
                yield from undescribed(own, known[name], root, f"{place}.{name}")
            elif others is not None:
                yield from undescribed(own, others, root, f"{place}.*")
            else:
                yield f"{place}.{name}"
    elif isinstance(value, list):
        items = next((own["items"] for own in parts if "items" in own), None)
        for own in value if items is not None else ():
            yield from undescribed(own, items, root, f"{place}[]")


def schemas_of(value, schema, root) -> Iterator[dict]:
    """A schema, with all those that it refers to for this value."""
    yield schema
    inner = [*schema.get("allOf", ()), *schema.get("anyOf", ())]
    if "$ref" in schema:
        inner.append(root["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    if "if" in schema and value["kind"] == schema["if"]["properties"]["kind"]["const"]:
        inner.append(schema["then"])
    for part in inner:
        yield from schemas_of(value, part, root)


def test_every_audit_keeps_to_the_schema_and_the_schema_names_every_entry(audit):
    root = json_schema()
    for least in (None, 10, 60, 10_000):
        found = (audit if least is None else audit.disclosed(least)).to_dict()
        check_json(found)
        # A new entry of an audit goes into src/itrust/auditing/schema/, without "required".
        assert sorted(set(undescribed(found, root, root))) == []


def test_audits_come_back_from_a_file_as_they_were(audit, tmp_path):
    found = audit.to_dict()
    path = tmp_path / "audit.json"
    path.write_text(json.dumps(found, allow_nan=False))
    assert read_json(path) == found
    assert read_json(io.BytesIO(path.read_bytes())) == found
    assert page(read_json(path)) == page(audit)


def test_the_package_jsonschema_agrees(audit):
    oracle = pytest.importorskip("jsonschema").Draft202012Validator
    oracle.check_schema(json_schema())
    oracle(json_schema()).validate(audit.to_dict())


def test_the_schema_uses_what_the_checker_knows():
    def keywords(schema):
        yield from schema
        for name in {"items", "additionalProperties", "if", "then"} & set(schema):
            yield from keywords(schema[name])
        for name in ("properties", "$defs"):
            for part in schema.get(name, {}).values():
                yield from keywords(part)
        for name in ("allOf", "anyOf"):
            for part in schema.get(name, ()):
                yield from keywords(part)

    root = json_schema()
    values = {"anyOf": [{}], "allOf": [], "if": {}, "$ref": "#/$defs/a"}
    for keyword in set(keywords(root)):
        schema = {"$defs": {"a": {}}, keyword: values.get(keyword, {}), "then": {}}
        list(faults(1, schema))
    named = {line.split('"')[0] for line in json.dumps(root).split('"#/$defs/')[1:]}
    assert named == set(root["$defs"]), "a part that nothing refers to, or that is not there"


def test_words_of_the_schema_are_those_of_the_package():
    root = json_schema()
    parts = root["$defs"]
    assert root["title"] == root["properties"]["schema"]["const"] == SCHEMA
    assert root["properties"]["verdict"]["enum"] == [verdict.value for verdict in Verdict]
    assert parts["evidence"]["properties"]["kind"]["enum"] == list(KINDS.values())
    assert parts["row_difference"]["properties"]["kind"]["enum"] == [
        kind.value for kind in FeatureKind
    ]
    assert parts["task"]["properties"]["finding"]["enum"] == [found.value for found in TaskFinding]

    def kinds(cls):
        own = {cls.kind} if "kind" in vars(cls) else set()
        return own.union(*(kinds(part) for part in cls.__subclasses__()))

    assert set(parts["predicate"]["properties"]["kind"]["enum"]) == kinds(Predicate)


def test_every_required_entry_is_described():
    root = json_schema()
    for part in (root, *root["$defs"].values()):
        assert set(part.get("required", ())) <= set(part.get("properties", {}))


def cut(value):
    """The same with one part of each list."""
    if isinstance(value, dict):
        return {name: cut(own) for name, own in value.items()}
    return [cut(own) for own in value[:1]] if isinstance(value, list) else value


SHORT = cut(NEWEST)


def entries(value, place=()) -> Iterator[tuple]:
    """Ways to the entries of objects."""
    if isinstance(value, dict):
        for name, own in value.items():
            yield (*place, name)
            yield from entries(own, (*place, name))
    elif isinstance(value, list) and value:
        yield from entries(value[0], (*place, 0))


def damaged(place, change) -> dict:
    found = copy.deepcopy(SHORT)
    holder = found
    for name in place[:-1]:
        holder = holder[name]
    change(holder, place[-1])
    return found


# Settings that only some kernels and nulls have, and what is kept by the names of users.
FREE = [
    *(("test", "kernel", side) for side in ("prob", "x")),
    *(("parts", 0, "diagnosis", "local_bias", "kernel", side) for side in ("prob", "x")),
    ("test", "dictionary"),
]
# Entries that came while the number stayed: files without them keep to the form.
ADDED: list[tuple] = []
PLACES = [place for place in entries(SHORT) if place != ("schema",)]
STRICT = [
    place
    for place in PLACES
    if not any(place[: len(free)] == free and len(place) > len(free) for free in FREE)
    and "where" not in place[:-1]
    and place not in ADDED
]


def test_an_entry_that_is_gone_or_has_another_name_is_missed():
    def rename(holder, name):
        holder[f"{name}_"] = holder.pop(name)

    assert len(STRICT) > 300
    for place in STRICT:
        for change in (dict.pop, rename):
            with pytest.raises(it.InputError, match=rf"lacks the entry '{place[-1]}'"):
                check_json(damaged(place, change))


def test_an_entry_of_another_type_is_named_with_its_place():
    def another(holder, name):
        holder[name] = [{}] if not isinstance(holder[name], list) else "a text"

    for place in PLACES:
        if place[-1] in ("width",):
            continue  # has a form of its own for each kernel
        last = str(place[-1])
        with pytest.raises(it.InputError, match=r" must be ") as caught:
            check_json(damaged(place, another))
        assert last in str(caught.value).split(" must be ")[0]


def test_entries_may_be_added():
    found = copy.deepcopy(NEWEST)
    found["later"] = found["overall"]["slope"] = found["tasks"][0]["more"] = {"a": 1}
    check_json(found)


def test_the_held_example_of_this_version_has_every_part():
    assert read_json(SAVED / "itrust-audit-5.json") == NEWEST
    parts = ("comparison", "recalibration", "provenance", "withheld", "tasks", "evidence")
    parts += ("validation",)
    assert all(NEWEST[part] for part in parts)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([], "it has no entry 'schema', not itrust-audit/5; give what comes from"),
        ({"schema": None}, "has no entry 'schema'"),
        ({"schema": "itrust-recalibration/2"}, "has the schema 'itrust-recalibration/2', not"),
        ({"schema": "itrust-audit/4"}, "'itrust-audit/4', not itrust-audit/5.*of this version"),
        ({"schema": SCHEMA}, "it lacks the entry 'version'$"),
        (NEWEST | {"n": 1.5, "seed": None}, r"^n must be .* not 1.5 \(and 1 other place in it\)$"),
    ],
)
def test_other_things_are_refused_in_a_sentence(found, said):
    with pytest.raises(it.InputError, match=said):
        check_json(found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON: expecting value in line 1"),
        ("{" * 200_000, "is not JSON: "),
        ("[" * 200_000, "is not JSON: it is nested too deeply"),
        ('{"n": NaN}', "is damaged: NaN is no number"),
        ('{"n": 1, "n": 2}', "is damaged: the entry 'n' stands there twice"),
        ("\udcff", "is not JSON: it is not UTF-8 text at byte 1"),
    ],
)
def test_what_is_no_json_is_refused_in_a_sentence(text, said, tmp_path):
    path = tmp_path / "audit.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(it.InputError, match=rf"audit.json {said}.*; give what comes from"):
        read_json(path)


def test_an_open_file_is_called_by_its_name(tmp_path):
    path = tmp_path / "found.json"
    path.write_text("nothing")
    with path.open("rb") as file, pytest.raises(it.InputError, match=r"found\.json is not JSON"):
        read_json(file)
    with pytest.raises(it.InputError, match="the open file is not JSON"):
        read_json(io.BytesIO(b"nothing"))


def test_deep_predicates_are_refused():
    found = copy.deepcopy(NEWEST)
    deep = {"kind": "everywhere"}
    for _ in range(2_000):
        deep = {"kind": "not", "part": deep}
    found["parts"][0]["diagnosis"]["groups"]["groups"][0]["where"] = deep
    with pytest.raises(it.InputError, match="nested too deeply"):
        check_json(found)


def test_a_copy_of_the_schema_may_be_changed():
    json_schema()["properties"].clear()
    check_json(NEWEST)
    assert json_schema()["properties"]
