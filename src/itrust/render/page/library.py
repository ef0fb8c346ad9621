"""The files beside this module: the chart library, words, and templates with what they call."""

from __future__ import annotations

import gzip
import json
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from importlib.metadata import version
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from itrust import __version__
from itrust._core import counted, shown_name
from itrust.auditing import tone_of
from itrust.calibration import Autocorrelation
from itrust.render.page.facts import columns_of, is_shown, mark, shown, sign
from itrust.render.page.pictures import biased_parts, log_of
from itrust.render.text.auditing import in_time, marked_pictures
from itrust.render.text.overturning import NAMES, size_words
from itrust.render.text.tasks import INSIDE, NONE, OUTSIDE, WAYS
from itrust.render.text.validation import (
    ALONE,
    TITLES,
    calibrated_value,
    validation_head,
    validation_notes,
)
from itrust.render.text.verdict import in_words
from itrust.render.text.watch import NUMBERS, evidence_text
from itrust.tasks import MAX_NEW, MAX_UNLIKE

LIBRARIES = ("numpy", "scipy", "scikit-learn", "pyarrow")
TONES = {"biased": "bad", "safe to report": "good", NONE: "bad", OUTSIDE: "fair", INSIDE: "good"}


def own_file(name: str) -> str:
    """The text of a file that stands beside this module."""
    return resources.files("itrust.render.page").joinpath(name).read_text(encoding="utf-8")


WORDS: dict[str, dict[str, str]] = json.loads(own_file("words.json"))  # name and meaning


@lru_cache(maxsize=1)
def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, behind their licences (`make charts`)."""
    kept = resources.files("itrust.render.page").joinpath("charts", "charts.js.gz")
    return gzip.decompress(kept.read_bytes()).decode("utf-8")


@lru_cache(maxsize=1)
def template() -> Template:
    """The template of all pages, which escapes whatever it is given."""
    made = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(own_file),
        extensions=["jinja2.ext.do"],
    )
    made.filters |= {"shown": shown, "counted": counted, "named": shown_name, "own": own_text}
    made.filters["capital"] = capital
    callables: Sequence[Callable[..., object]] = (
        *(columns_of, is_shown, mark, sign, word, tone_of, biased_parts, log_of, in_words),
        *(marked_pictures, size_words, calibrated_value, validation_head, validation_notes),
        *(evidence_text, evidence_of, versions, by_design, along_time),
    )
    made.globals |= {own.__name__: own for own in callables}
    made.globals |= {"WORDS": WORDS, "TONES": TONES, "WAYS": WAYS, "NAMES": NAMES}
    made.globals |= {"TITLES": TITLES, "NUMBERS": NUMBERS, "ALONE": ALONE}
    made.globals |= json.loads(own_file("validation.json"))  # what statistics ask and cannot see
    made.globals |= {"MAX_NEW": MAX_NEW, "MAX_UNLIKE": MAX_UNLIKE}
    return made.get_template("page.html.j2")


def capital(text: str) -> str:
    """A sentence with a large first letter."""
    return f"{text[:1].upper()}{text[1:]}"


def own_text(text: str) -> Markup:
    """A text of the user's file, whose direction stays its own."""
    return Markup("<bdi>{}</bdi>").format(text)


def word(key: str, text: str = "") -> Markup:
    """A word with its explanation, which stands at the end of the page, too."""
    link = Markup('<a class="word" href="#word-{}" title="{}">{}</a>')
    return link.format(key, WORDS[key]["meaning"], text or WORDS[key]["name"])


def by_design(design: dict[str, object]) -> bool:
    """Whether rows come in clusters, or their draw is known by replicate weights."""
    return any(design[name] is not None for name in ("clusters", "replicates"))


def along_time(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Whether residuals of one day go with those of the next."""
    return in_time({name: Autocorrelation(**own) for name, own in found.items()})


def evidence_of(evalue: float | None) -> str:
    """Evidence for people; none is infinite."""
    return evidence_text(math.inf if evalue is None else math.log(evalue) if evalue else -math.inf)


def versions() -> dict[str, str]:
    """Versions of what numbers depend on."""
    own = {"itrust": __version__, "Python": platform.python_version()}
    return own | {name: version(name) for name in LIBRARIES}
