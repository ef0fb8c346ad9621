"""The page: `content` put into HTML. Nothing is computed here."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from itrust._core import write_whole
from itrust.auditing import MIN_CELL, Audit, Comparison
from itrust.recalibrate import RecalibrationTable
from itrust.render.page.content import Remade, content

MINUS = "\N{MINUS SIGN}"
# Text that would end a script element, or a line of JavaScript, when JSON stands in HTML.
HARMLESS = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


def write(
    audit: Audit,
    path: str | os.PathLike[str],
    *,
    remade: Remade | None = None,
    repair: RecalibrationTable | None = None,
    comparison: Comparison | None = None,
    min_cell: int = MIN_CELL,
) -> Path:
    """Write the page about an audit: one HTML file that needs no network.

    Parameters
    ----------
    audit : Audit
    path : str or path
        Written whole or not at all.
    remade : Remade, optional
        How to make the page again.
    repair : RecalibrationTable, optional
        Repairs compared on held-out rows (`itrust.recalibrate.compare`).
    comparison : Comparison, optional
        Of several models on the same rows.
    min_cell : int
        Groups, slices, bins, points and cells with fewer rows are not shown.

    Returns
    -------
    Path
        Of the page.
    """
    text = page(audit, remade=remade, repair=repair, comparison=comparison, min_cell=min_cell)
    return write_whole(Path(path), text)


def page(
    audit: Audit,
    *,
    remade: Remade | None = None,
    repair: RecalibrationTable | None = None,
    comparison: Comparison | None = None,
    min_cell: int = MIN_CELL,
) -> str:
    """The page as text; parameters as for `write`."""
    told = content(audit, remade=remade, repair=repair, comparison=comparison, min_cell=min_cell)
    return rendered(told)


def rendered(told: Mapping[str, Any]) -> str:
    """Put what `content` gathered into HTML."""
    scripts = [_inline(chart_library()), _inline(_own("page.js"))]
    return _template().render(
        c=told,
        a=told["audit"],
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],
        style=Markup(_own("page.css")),
        data=Markup(embedded(_chart_data(told))),
    )


def embedded(value: Any) -> str:
    r"""JSON that can stand in a script element, whatever its texts hold.

    >>> embedded({"name": "</script><!--"})
    '{"name":"\\u003c/script\\u003e\\u003c!--"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(HARMLESS)


@lru_cache(maxsize=1)
def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed from the installed package, as one script."""
    import vl_convert  # slow to load, and not needed before a page is made

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _own(name: str) -> str:
    return resources.files("itrust.render.page").joinpath(name).read_text(encoding="utf-8")


def _inline(script: str) -> str:
    """A script that cannot end its element early; the escapes mean the same inside strings."""
    return script.replace("</script", "<\\/script").replace("<!--", "\\x3c!--")


def _policy(scripts: list[str]) -> str:
    """Only these scripts run, and nothing is fetched: a planted script would stay dead."""
    hashes = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


def _chart_data(told: Mapping[str, Any]) -> dict[str, Any]:
    """What the charts draw, and no more."""
    audit = told["audit"]
    table = audit["diagnosis"]["groups"]
    return {
        "alpha": audit["alpha"],
        "tolerance": audit["tolerance"],
        "reliability": audit["reliance"]["curve"],
        "null": told["null"],
        "curves": told["curves"],
        "maps": told["maps"],
        "opening": told["opening"],
        "groups": [
            {"name": part["name"], "groups": [table["groups"][k] for k in part["places"]]}
            for part in told["groups"]
        ],
    }


@lru_cache(maxsize=1)
def _template() -> Template:
    made = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"shown": shown, "fact": fact, "cell": cell}
    return made.from_string(_own("page.html.j2"))


def shown(value: object, kind: str = "number") -> str:
    """A value for people: rates and biases with three digits, p-values with three that count.

    >>> shown(-0.0264, "bias"), shown(1595, "rows"), shown(0.0012345, "p"), shown(None)
    ('−0.026', '1,595', '0.00123', '–')
    """  # noqa: RUF002
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if kind == "cover":
        return f"{100 * value:.4g} %"
    form = {"rate": ".3f", "bias": "+.3f", "rows": ",.0f", "p": ".3g", "share": ".1%"}
    plus = {"change": "+.4g", "score": ".4f", "whole": "d"}
    told = format(value, {**form, **plus}.get(kind, ".4g"))
    if told in ("-0.000", "+0.000"):  # nothing has no sign
        told = told[1:]
    return told.replace("-", MINUS)


def fact(audit: Mapping[str, Any], path: str, kind: str = "number") -> Markup:
    """A number of the audit by its place in the dict, which tests can read back."""
    value: Any = audit
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return Markup('<data data-fact="{}" value="{}">{}</data>').format(
        path, _raw(value), shown(value, kind)
    )


def cell(audit: Mapping[str, Any], path: str, kind: str = "number") -> Markup:
    """A cell of a table with that number, sorted by its value."""
    number = fact(audit, path, kind)
    return Markup("<td class=num>{}</td>").format(number)


def _raw(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)
