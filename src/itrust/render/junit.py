"""JUnit XML, as build servers read it: one test case for each condition and task."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree as Xml

from itrust.auditing import Audit
from itrust.render.gate import checks

# XML 1.0 has no way to write these, not even escaped.
UNWRITABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def writable(text: str) -> str:
    r"""Text that XML can hold; other characters are spelt out.

    >>> writable("a\x00<b>")
    'a\\x00<b>'
    """
    return UNWRITABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def junit_xml(audit: Audit, name: str, words: Callable[[str], str]) -> str:
    """The checks of the gate as one test suite; `words` hides names of small groups."""
    found = [check._replace(says=words(check.says)) for check in checks(audit)]
    counts = {
        "tests": len(found),
        "failures": sum(check.outcome == "failed" for check in found),
        "errors": 0,
        "skipped": sum(check.outcome == "skipped" for check in found),
    }
    about = {key: str(value) for key, value in counts.items()} | {"time": f"{audit.elapsed:.3f}"}
    root = Xml.Element("testsuites", about)
    suite = Xml.SubElement(root, "testsuite", {"name": writable(f"itrust audit {name}"), **about})
    for check in found:
        where = {"classname": "itrust.audit", "name": writable(check.name), "time": "0"}
        case = Xml.SubElement(suite, "testcase", where)
        first, _, rest = writable(check.says).partition("\n")
        if check.outcome == "failed":
            Xml.SubElement(case, "failure", {"message": first, "type": "untrustworthy"}).text = rest
        elif check.outcome == "skipped":
            Xml.SubElement(case, "skipped", {"message": first})
        else:
            Xml.SubElement(case, "system-out").text = writable(check.says)
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'
