"""Every public name is described: what it is, what it takes, what it returns, what it holds."""

import dataclasses
import importlib
import inspect
import logging
import re
from functools import cache, cached_property
from pathlib import Path

import pytest

import itrust

griffe = pytest.importorskip("griffe")

PACKAGES = ("auditing", "bias", "calibration", "data", "engines", "kernels", "nulls")
PACKAGES += ("overturn", "recalibrate", "render", "tasks", "watch")
MODULES = ("calibration.scores", "datasets", "losses", "render.figures", "simulate", "testing")
MODULES += ("integrations.mlflow",)
NEEDS = {"losses": "torch", "integrations.mlflow": "mlflow"}
# Packages whose docstrings are still being completed.
UNFINISHED = ()
FINISHED = ("calibration.scores", "render.recalibrate_text", "render.recalibrate_notebook")
REFERENCE = Path(itrust.__file__).parents[2] / "docs" / "reference"
HAS_DEFAULT = re.compile(r"\b(default|None)\b")


def namespaces():
    names = [name for name in (*PACKAGES, *MODULES) if _is_there(NEEDS.get(name, "itrust"))]
    return [itrust, *(importlib.import_module(f"itrust.{name}") for name in names)]


def _is_there(package):
    return importlib.util.find_spec(package) is not None


def is_described_fully(namespace, name):
    """Whether users meet a name: at the front door or in the reference; else a summary suffices."""
    offered = namespace is itrust or namespace.__name__.rpartition(".")[2] in itrust.__all__
    return offered or f"{namespace.__name__}.{name}" in referenced()


@cache
def referenced():
    pages = REFERENCE.glob("*.md") if REFERENCE.is_dir() else ()
    return {name for page in pages for name in re.findall(r"^::: (\S+)", page.read_text(), re.M)}


def is_unfinished(thing):
    module = getattr(thing, "__module__", None) or ""
    found = "_core" if module == "itrust" else module.removeprefix("itrust.")
    return found.split(".")[0] in UNFINISHED and found not in FINISHED


class Described:
    """A docstring by its sections: what is said about which name."""

    def __init__(self, text):
        logging.getLogger("griffe").setLevel(logging.CRITICAL)
        self.text = text or ""
        self.sections = griffe.Docstring(self.text).parse("numpy") if text else []

    @property
    def has_summary(self):
        first = self.text.split("\n\n")[0].strip()
        return bool(first) and "\n" not in first

    @property
    def has_sections(self):
        return any(section.kind.value != "text" for section in self.sections)

    def items(self, *kinds):
        """Names to (type, description); of several names with one description, each has it."""
        wanted = [section for section in self.sections if section.kind.value in kinds]
        return {
            name.strip().lstrip("*"): (str(item.annotation or ""), item.description)
            for section in wanted
            for item in section.value
            for name in item.name.split(",")
        }

    def has_default(self, name, told):
        """Whether a default of None is explained: in words, or as `name : ..., optional`."""
        is_optional = re.search(rf"^ *[*\w, ]*\b{name}\b.* optional$", self.text, re.M)
        return bool(is_optional or HAS_DEFAULT.search(told))

    @property
    def has_returns(self):
        found = [s for s in self.sections if s.kind.value in ("returns", "yields")]
        return any(item.description and item.annotation for s in found for item in s.value)


def missing_in_parameters(where, described, parameters, kinds):
    told = described.items(*kinds)
    for name, default in parameters.items():
        kind, meaning = told.get(name, ("", ""))
        if name not in told:
            yield f"{where}: {name} is not described"
        elif not (kind and meaning):
            yield f"{where}: {name} lacks its {'meaning' if kind else 'type'}"
        elif default is None and not described.has_default(name, f"{kind} {meaning}"):
            yield f"{where}: {name} does not say what its default means"


def parameters_of(function):
    found = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in found if p.name not in ("self", "cls") and p.name[:1] != "_"}


def missing_in_function(where, function, text=None):
    described = Described(text or inspect.getdoc(function))
    if not described.has_summary:
        yield f"{where}: no summary line"
    yield from missing_in_parameters(
        where, described, parameters_of(function), ("parameters", "other parameters")
    )
    if inspect.signature(function).return_annotation not in (None, "None") and not (
        described.has_returns
    ):
        yield f"{where}: what it returns is not described, with its type"


def missing_in_class(where, cls):
    described = Described(cls.__doc__)
    if not described.has_summary:
        yield f"{where}: no summary line"
    if dataclasses.is_dataclass(cls):
        held = {f.name: f.default for f in dataclasses.fields(cls) if not f.name.startswith("_")}
        inherited = [other for other in cls.__mro__[1:] if dataclasses.is_dataclass(other)]
        others = [Described(other.__doc__) for other in inherited]
        told = {name for other in others for name in other.items("parameters", "attributes")}
        held = {name: default for name, default in held.items() if name not in told}
        yield from missing_in_parameters(where, described, held, ("parameters", "attributes"))
    elif "__init__" in vars(cls):
        yield from missing_in_parameters(
            where, described, parameters_of(cls.__init__), ("parameters", "attributes")
        )
    for base in cls.__mro__:
        if base.__module__.startswith("itrust") and not is_unfinished(base):
            yield from missing_in_members(f"{base.__module__}.{base.__qualname__}", base, cls)


def missing_in_members(where, base, cls):
    """What bases that users never meet do for the library needs no more than a summary."""
    public = {*itrust.__all__, *(name.rpartition(".")[2] for name in referenced())}
    for name, member in vars(base).items():
        if name.startswith("_"):
            continue
        text = inherited_text(cls, name)
        is_brief = base.__name__ not in public and not Described(text).has_sections
        is_function = isinstance(member, classmethod | staticmethod) or inspect.isfunction(member)
        if isinstance(member, property | cached_property) or (is_function and is_brief):
            if not Described(text).has_summary:
                yield f"{where}.{name}: no summary line"
        elif is_function:
            yield from missing_in_function(f"{where}.{name}", getattr(cls, name), text)


def inherited_text(cls, name):
    """The docstring of a member or, where it has none, of the one that it overrides."""
    found = (vars(base)[name].__doc__ for base in cls.__mro__ if name in vars(base))
    return inspect.cleandoc(next((text for text in found if text), ""))


def offered(namespace):
    """What users are offered: `__all__`, or what the reference has of an internal package."""
    names = [name for name in vars(namespace) if f"{namespace.__name__}.{name}" in referenced()]
    return getattr(namespace, "__all__", names)


def missing(namespace):
    for name in offered(namespace):
        thing = getattr(namespace, name)
        if is_unfinished(thing):
            continue
        where = f"{getattr(thing, '__module__', namespace.__name__)}.{name}"
        if inspect.isclass(thing) and is_described_fully(namespace, name):
            yield from missing_in_class(where, thing)
        elif inspect.isfunction(thing) and is_described_fully(namespace, name):
            yield from missing_in_function(where, thing)
        elif has_docstring(thing) and not Described(inspect.getdoc(thing)).has_summary:
            yield f"{where}: no summary line"


def has_docstring(thing):
    """Constants and aliases of types cannot have one."""
    return inspect.isclass(thing) or inspect.isroutine(thing) or inspect.ismodule(thing)


@pytest.mark.parametrize("namespace", namespaces(), ids=lambda found: found.__name__)
def test_every_public_name_is_described(namespace):
    found = "\n".join(sorted(set(missing(namespace))))
    assert not found, f"\n{found}"


def clear(a: int, b: float | None = None, *others: str) -> int:
    """Add two numbers.

    Parameters
    ----------
    a : int
        The first.
    b : float
        The second.
    *others : str
        What else there is.

    Returns
    -------
    int
        Their sum.
    """


def unclear(a: int, b: float = 0.0, c: int = 0) -> int:
    """Add two numbers
    and more.

    Parameters
    ----------
    a
        The first.
    b : float
    """


def test_what_is_missing_is_named():
    assert [*missing_in_function("clear", clear)] == [
        "clear: b does not say what its default means"
    ]
    assert [*missing_in_function("unclear", unclear)] == [
        "unclear: no summary line",
        "unclear: a lacks its type",
        "unclear: b lacks its meaning",
        "unclear: c is not described",
        "unclear: what it returns is not described, with its type",
    ]
