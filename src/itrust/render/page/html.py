"""The page: a result's dict put into HTML. Nothing is computed here."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from itrust._core import write_whole
from itrust.render.document import DARK, LIGHT
from itrust.render.page.facts import MarkedFacts
from itrust.render.page.library import chart_library, own_file, template
from itrust.render.page.pictures import Picture, audit_pictures, estimates_pictures, watch_pictures
from itrust.render.page.results import KINDS, Shown, facts_of

# Text that would end a script element, or a line of JavaScript, when JSON stands in HTML.
HARMLESS = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
PICTURES = {"audit": audit_pictures, "estimates": estimates_pictures, "watch": watch_pictures}


def write(found: Shown, path: str | os.PathLike[str], *, min_cell: int | None = None) -> Path:
    """Write the page about a result: one HTML file that needs no network.

    Parameters
    ----------
    found : Audit, TaskEstimates, Watch, WatchReport or dict
        What was found, or its `to_dict()` as it was kept in a file.
    path : str or path
        Where to write; written whole or not at all.
    min_cell : int, optional
        Applies disclosure control first, as `Audit.disclosed` does; a dict that it was not applied
        to with as many rows is refused, and reports of a watch have theirs. Default: the result is
        shown as it is.

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
    return write_whole(Path(path), page(found, min_cell=min_cell))


def page(found: Shown, *, min_cell: int | None = None) -> str:
    """Make the page as text.

    Parameters
    ----------
    found : Audit, TaskEstimates, Watch, WatchReport or dict
        As for `write`.
    min_cell : int, optional
        As for `write`.

    Returns
    -------
    str
        HTML.
    """
    facts = facts_of(found, min_cell)
    pictures = pictures_of(facts)
    scripts = [_inline(chart_library()), _inline(own_file("page.js"))]
    return template().render(
        a=facts,
        about=KINDS[facts["schema"]],
        pictures=pictures,
        menu=[],
        policy=_policy(scripts),
        scripts=[Markup(script) for script in scripts],
        style=Markup(_style()),
        data=Markup(embedded({key: own.data for key, own in pictures.items()})),
    )


def pictures_of(facts: MarkedFacts) -> dict[str, Picture]:
    """The charts of a page, by key."""
    return PICTURES[KINDS[facts["schema"]]](facts)


def embedded(value: Any) -> str:
    r"""JSON that can stand in a script element, whatever its texts hold.

    >>> embedded({"name": "</script><!--"})
    '{"name":"\\u003c/script\\u003e\\u003c!--"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(HARMLESS)


def _inline(script: str) -> str:
    """A script that cannot end its element early; the escapes mean the same inside strings."""
    return script.replace("</script", "<\\/script").replace("<!--", "\\x3c!--")


def _policy(scripts: Sequence[str]) -> str:
    """Only these scripts run, and nothing is fetched: a planted script would stay dead."""
    hashes = (hashlib.sha256(script.encode()).digest() for script in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


def _style() -> str:
    """The style sheet, and the colours of verdicts on light and dark ground."""
    light, dark = (
        ":root {" + " ".join(f"--{tone}: {colour};" for tone, colour in ground.items()) + "}"
        for ground in (LIGHT, DARK)
    )
    tones = " ".join(f".{tone} {{ --tone: var(--{tone}); }}" for tone in LIGHT)
    in_the_dark = f"@media screen and (prefers-color-scheme: dark) {{ {dark} }}"
    return "\n".join([light, in_the_dark, tones, own_file("page.css")])
