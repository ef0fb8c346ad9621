"""Names of columns, levels, models, tasks and files, through everything that is written without a
browser: the page, JUnit, Markdown, the terminal, a notebook and JSON."""

import json
import random
import re
from functools import lru_cache, partial
from html.parser import HTMLParser
from xml.etree import ElementTree

from fuzz.kit import Outcome, Target
from hostile_names import KNOWN, PARTS, made_up, renamed, stand_in_audit, stand_ins
from itrust._core import printable
from itrust.render import as_html, as_text, junit_xml, page, summary_markdown

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
SOME = 32  # names of one input, as many as the audit has or more
PAGE_TAGS = {"script": 3, "img": 0, "b": 0, "iframe": 0}  # how many there are on every page


class Counted(HTMLParser):
    """Elements of a page, and the data of its charts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.data, self.inside = "", False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.inside = ("id", "data") in attrs

    def handle_endtag(self, _tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.data += data


AUDITED = partial(stand_in_audit, charts=False)  # charts are for a browser, and slow


@lru_cache(maxsize=1)
def places() -> list[str]:
    return stand_ins(AUDITED().to_dict())


def lists_of_names(_folder) -> list[bytes]:
    rng = random.Random(0)
    places()  # the audit is made before the first input, whose time counts
    return [packed(rng.sample(KNOWN, SOME)) for _ in range(8)]


def distinct(names: list[str]) -> list[str]:
    """No file has two columns of one name."""
    found: dict[str, None] = {}
    for name in names:
        own = name
        while own in found:
            own += "'"
        found[own] = None
    return list(found)


def packed(names: list[str]) -> bytes:
    return json.dumps(names).encode()


def changed(rng: random.Random, sound: bytes) -> bytes:
    """Some names are others, and some have parts put into them."""
    names = json.loads(sound)
    for k in rng.sample(range(len(names)), 12):
        at = rng.randint(0, min(len(names[k]), 20))
        put_in = names[k][:at] + rng.choice(PARTS) + names[k][at:]
        names[k] = made_up(rng) if rng.random() < 0.6 else put_in
    return packed(names)


def named(given: bytes, _folder) -> Outcome | None:
    """Render an audit under the names; changed where a rendering is not sound."""
    chosen = dict(zip(places(), distinct(json.loads(given)), strict=False))
    audit = renamed(AUDITED(), chosen.__getitem__)
    facts = audit.to_dict()
    if json.loads(json.dumps(facts, allow_nan=False)) != facts:
        return Outcome.CHANGED
    sound = (
        is_sound_page(page.page(facts)),
        is_sound_xml(junit_xml(audit, chosen["zzfile0zz"])),
        is_sound_markdown(summary_markdown(audit, chosen["zzfile0zz"])),
        not CONTROLS.search(printable(as_text(audit, 80))),
        is_sound_notebook(as_html(audit)),
    )
    return None if all(sound) else Outcome.CHANGED


def is_sound_page(text: str) -> bool:
    found = Counted(text)
    json.loads(found.data)
    counts = {tag: found.tags.count(tag) for tag in PAGE_TAGS}
    return counts == PAGE_TAGS and not CONTROLS.search(found.data)


def is_sound_notebook(text: str) -> bool:
    return not {"script", "img", "b"} & set(Counted(text).tags) and not CONTROLS.search(text)


def is_sound_xml(text: str) -> bool:
    root = ElementTree.fromstring(text.encode())
    return root.tag == "testsuites" and len(root[0]) == int(root.attrib["tests"])


def is_sound_markdown(text: str) -> bool:
    """No name makes a line, a cell of a table or an element of its own."""
    rows = [line for line in text.split("\n") if line.startswith("|")]
    cells = {line.count("|") for line in rows}
    return cells <= {4, 5} and not re.search(r"<(?!br>)|`|\]\(", text) and not CONTROLS.search(text)


TARGETS = [Target("names", lists_of_names, changed, named, fresh=12)]
