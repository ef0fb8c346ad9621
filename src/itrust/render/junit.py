"""JUnit XML, as build servers read it: one test case for each condition and task."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from xml.etree import ElementTree as Xml

from itrust.auditing import Asked, Audit, gate
from itrust.render.text import check_lines, watch_check_lines
from itrust.watch import WatchReport, watch_gate

# XML 1.0 has no way to write these, not even escaped.
UNWRITABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def writable(text: str) -> str:
    r"""Text that XML can hold; other characters are spelt out.

    >>> writable("a\x00<b>")
    'a\\x00<b>'
    """
    return UNWRITABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def junit_xml(
    audit: Audit,
    name: str,
    asked: Asked = "any",
    robust_to: Mapping[str, float] | None = None,
) -> str:
    """Write the checks of the gate as one test suite.

    A check that the rows do not decide, or that the gate was not asked about, is a skipped test
    case.
    """
    checks = gate(audit, asked, robust_to).checks
    cases = [
        _Case(
            check.name,
            check.outcome,
            "biased" if check.key == "task" else "miscalibrated",
            check_lines(check, audit),
        )
        for check in checks
    ]
    return _suite("audit", name, cases)


def watch_junit_xml(report: WatchReport, name: str, asked: Asked = "any") -> str:
    """Write the checks of the gate of a watch as one test suite."""
    cases = [
        _Case(
            check.name,
            check.outcome,
            "biased" if check.key == "task" else "alarm",
            watch_check_lines(check, report),
        )
        for check in watch_gate(report, asked).checks
    ]
    return _suite("watch", name, cases)


class _Case(NamedTuple):
    """A test case: its name, what became of it, the kind of failure, and what was found."""

    name: str
    outcome: str
    failure: str
    lines: list[str]


def _suite(command: str, name: str, checks: list[_Case]) -> str:
    counts = {
        "tests": len(checks),
        "failures": sum(check.outcome == "failed" for check in checks),
        "errors": 0,
        "skipped": sum(check.outcome == "skipped" for check in checks),
    }
    # Readers expect a time; a true one would make every file another.
    about = {key: str(value) for key, value in counts.items()} | {"time": "0"}
    root = Xml.Element("testsuites", about)
    suite = Xml.SubElement(
        root, "testsuite", {"name": writable(f"itrust {command} {name}"), **about}
    )
    for check in checks:
        where = {"classname": f"itrust.{command}", "name": writable(check.name), "time": "0"}
        case = Xml.SubElement(suite, "testcase", where)
        first, *rest = (writable(line) for line in check.lines)
        if check.outcome == "failed":
            about_it = {"message": first, "type": check.failure}
            Xml.SubElement(case, "failure", about_it).text = "\n".join(rest)
        elif check.outcome == "skipped":
            Xml.SubElement(case, "skipped", {"message": first}).text = "\n".join(rest) or None
        else:
            Xml.SubElement(case, "system-out").text = "\n".join([first, *rest])
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'
