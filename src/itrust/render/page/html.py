"""The page: `content` put into HTML. Nothing is computed here."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from itrust._core import counted, rounded, shown_name, signed, signed_in, write_whole
from itrust.auditing import TONES, Audit
from itrust.render.page.classes import classes_content, is_of_classes
from itrust.render.page.content import content
from itrust.render.page.library import CompiledTemplates, chart_library
from itrust.render.page.words import MINUS, WORDS

# Of the template.
SETTINGS: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
RARE = 0.1  # rates below it have a digit more
RECALIBRATED = ("name", "ece", "smooth_ece", "curve")  # what its charts draw
# Text that would end a script element, or a line of JavaScript, when JSON stands in HTML.
HARMLESS = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def write(
    audit: Audit | Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    min_cell: int | None = None,
) -> Path:
    """Write the page about an audit: one HTML file that needs no network.

    Parameters
    ----------
    audit : Audit or dict
        What was found, or `audit.to_dict()` as it was kept in a file.
    path : str or path
        Where to write; written whole or not at all.
    min_cell : int, optional
        Applies disclosure control first, as `Audit.disclosed` does; a dict that it was not applied
        to with as many rows is refused. Default: the audit is shown as it is.

    Returns
    -------
    Path
        Of the page.

    Examples
    --------
    >>> import itrust as it
    >>> from itrust.render.page import page
    >>> found = it.audit(it.simulate.survey(300, rng=0).sample, draws=79, rng=0, charts=False)
    >>> page(found)[:15]
    '<!doctype html>'
    """
    return write_whole(Path(path), page(audit, min_cell=min_cell))


def page(audit: Audit | Mapping[str, Any], *, min_cell: int | None = None) -> str:
    """Make the page as text.

    Parameters
    ----------
    audit : Audit or dict
        What was found, or `audit.to_dict()` as it was kept in a file.
    min_cell : int, optional
        As for `write`.

    Returns
    -------
    str
        HTML.
    """
    if is_of_classes(audit):
        told = classes_content(audit, min_cell=min_cell)
        script = _inline(own_file("classes.js"))
        return assembled("classes.html.j2", told, told["audit"], own_file("classes.css"), [script])
    return rendered(content(audit, min_cell=min_cell))


def rendered(told: Mapping[str, Any]) -> str:
    """Put what `content` gathered into HTML."""
    scripts = [_inline(chart_library()), _inline(own_file("page.js"))]
    return _template().render(
        c=told,
        a=told["audit"],
        words=WORDS,
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],
        style=Markup(_style()),
        data=Markup(embedded(_chart_data(told))),
    )


def assembled(
    template: str,
    told: Mapping[str, Any],
    facts: Mapping[str, Any],
    style: str = "",
    scripts: Sequence[str] = (),
) -> str:
    """Put what was gathered into a template of a page that needs no chart library."""
    return _template(template).render(
        c=told,
        a=facts,
        policy=_policy(list(scripts)),
        style=Markup(_style() + own_file("estimates.css") + style),
        scripts=[Markup(script) for script in scripts],
    )


def embedded(value: Any) -> str:
    r"""JSON that can stand in a script element, whatever its texts hold.

    >>> embedded({"name": "</script><!--"})
    '{"name":"\\u003c/script\\u003e\\u003c!--"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(HARMLESS)


def own_file(name: str) -> str:
    """The text of a file that stands beside this module: a template, a style sheet or a script."""
    return resources.files("itrust.render.page").joinpath(name).read_text(encoding="utf-8")


def _inline(script: str) -> str:
    """A script that cannot end its element early; the escapes mean the same inside strings."""
    return script.replace("</script", "<\\/script").replace("<!--", "\\x3c!--")


def _policy(scripts: list[str]) -> str:
    """Only these scripts run, and nothing is fetched: a planted script would stay dead."""
    hashes = (hashlib.sha256(script.encode()).digest() for script in scripts)
    known = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes]
    allowed = " ".join(known or ["'none'"])
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


def _chart_data(told: Mapping[str, Any]) -> dict[str, Any]:
    """What the charts draw: the charts of the audit, rows of its tables, and where to begin."""
    audit = told["audit"]
    settings = {name: audit[name] for name in ("alpha", "tolerance")}
    chosen = {name: told[name] for name in ("opening", "forest")}
    methods = (audit["recalibration"] or {"recalibrations": []})["recalibrations"]
    drawn = [{name: row[name] for name in RECALIBRATED} for row in methods]
    return {**settings, **chosen, "recalibrations": drawn, **audit["parts"][0]["charts"]}


def _style() -> str:
    """The style sheet, and the colours of verdicts on light and dark ground."""
    light, dark = (
        ":root {" + " ".join(f"--{tone.name}: {getattr(tone, ground)};" for tone in TONES) + "}"
        for ground in ("light", "dark")
    )
    tones = " ".join(f".{tone.name} {{ --tone: var(--{tone.name}); }}" for tone in TONES)
    in_the_dark = f"@media screen and (prefers-color-scheme: dark) {{ {dark} }}"
    return "\n".join([light, in_the_dark, tones, own_file("page.css")])


@lru_cache(maxsize=6)
def _template(name: str = "page.html.j2") -> Template:
    made = Environment(
        **SETTINGS,
        undefined=StrictUndefined,
        loader=FunctionLoader(own_file),
        bytecode_cache=CompiledTemplates(SETTINGS),
    )
    made.filters |= {"shown": shown, "fact": fact, "cell": cell, "told": told_fact, "at": _at}
    made.filters |= {"bias": bias_fact, "counted": counted, "named": shown_name}
    made.filters |= {"marked": marked_fact}
    return made.get_template(name)


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
    plus = {"change": "+.4g", "score": ".4f", "loss": ".4f", "whole": "d"}
    if kind == "size":  # of a bias whose direction is told in words
        return signed(abs(value))[1:]
    told = signed(value) if kind == "bias" else format(value, {**form, **plus}.get(kind, ".4g"))
    if told in ("-0.000", "+0.000"):  # nothing has no sign
        told = told[1:]
    return told.replace("-", MINUS)


def fact(audit: Mapping[str, Any], path: str, kind: str = "number") -> Markup:
    """A number of the audit by its place in the dict, which tests can read back."""
    value = _at(audit, path)
    return _marked(path, value, shown(value, kind))


def _at(audit: Mapping[str, Any], path: str) -> Any:
    value: Any = audit
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _marked(path: str, value: object, text: str) -> Markup:
    return Markup('<data data-fact="{}" value="{}">{}</data>').format(path, _raw(value), text)


def marked_fact(facts: Mapping[str, Any], path: str, text: str) -> Markup:
    """A number by its place in the dict, written as it was settled before."""
    return _marked(path, _at(facts, path), text)


def told_fact(audit: Mapping[str, Any], path: str, name: str, sign: str = "-") -> Markup:
    """A number that stands beside its interval, with the digits that this can tell."""
    found = _at(audit, path)
    value, lower, upper = (found[key] for key in (name, "lower", "upper"))
    if value is None or lower is None or upper is None:
        return fact(audit, f"{path}.{name}", "change" if sign == "+" else "number")
    return _marked(f"{path}.{name}", value, rounded(value, lower, upper, sign).replace("-", MINUS))


def bias_fact(audit: Mapping[str, Any], path: str, name: str, kind: str = "bias") -> Markup:
    """A bias, its "size", or an end of its interval, with the digits that the interval can tell."""
    found = _at(audit, path)
    value, lower, upper = (found[key] for key in (name, "lower", "upper"))
    if value is None or lower is None or upper is None:
        return fact(audit, f"{path}.{name}", kind)
    told = signed_in(value, lower, upper)
    if value == 0 or kind == "size":
        told = told[1:]
    return _marked(f"{path}.{name}", value, told.replace("-", MINUS))


def cell(audit: Mapping[str, Any], path: str, kind: str = "number", label: str = "") -> Markup:
    """A cell of a table with that number, sorted by its value; `label` names it on a phone."""
    number = fact(audit, path, kind)
    return Markup('<td class="num" data-label="{}">{}</td>').format(label, number)


def _raw(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
