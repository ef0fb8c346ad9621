"""JUnit XML, as build servers read it: one test case for each condition and task."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as Xml

from itrust.auditing import Asked, Audit, Check, gate, watch_checks
from itrust.render.text.auditing import check_lines
from itrust.render.text.watch import watch_check_lines
from itrust.watch import WatchReport

# XML 1.0 has no way to write these, not even escaped.
UNWRITABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def writable(text: str) -> str:
    r"""Text that XML can hold; other characters are spelt out.

    >>> writable("a\x00<b>")
    'a\\x00<b>'
    """
    return UNWRITABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def junit_xml(
    audit: Audit, name: str, asked: Asked = "any", robust_to: Mapping[str, float] | None = None
) -> str:
    """Write the checks of the gate as one test suite.

    A check that the rows do not decide, or that the gate was not asked about, is a skipped test
    case.
    """
    checks = gate(audit, asked, robust_to).checks
    return _suite("audit", name, [(check, check_lines(check, audit)) for check in checks])


def watch_junit_xml(report: WatchReport, name: str, asked: Asked = "any") -> str:
    """Write the checks of the gate of a watch as one test suite."""
    checks = watch_checks(report, asked)
    return _suite("watch", name, [(check, watch_check_lines(check, report)) for check in checks])


FAILURES = {"audit": "miscalibrated", "watch": "alarm"}  # kinds, of what is no task


def _suite(command: str, name: str, cases: Sequence[tuple[Check, list[str]]]) -> str:
    outcomes = [check.outcome for check, _ in cases]
    counts = {
        "tests": len(outcomes),
        "failures": outcomes.count("failed"),
        "errors": 0,
        "skipped": outcomes.count("skipped"),
    }
    # Readers expect a time; a true one would make every file another.
    about = {key: str(value) for key, value in counts.items()} | {"time": "0"}
    root = Xml.Element("testsuites", about)
    suite = Xml.SubElement(
        root, "testsuite", {"name": writable(f"itrust {command} {name}"), **about}
    )
    for check, lines in cases:
        where = {"classname": f"itrust.{command}", "name": writable(check.name), "time": "0"}
        case = Xml.SubElement(suite, "testcase", where)
        first, *rest = (writable(line) for line in lines)
        if check.outcome == "failed":
            kind = "biased" if check.key == "task" else FAILURES[command]
            about_it = {"message": first, "type": kind}
            Xml.SubElement(case, "failure", about_it).text = "\n".join(rest)
        elif check.outcome == "skipped":
            Xml.SubElement(case, "skipped", {"message": first}).text = "\n".join(rest) or None
        else:
            Xml.SubElement(case, "system-out").text = "\n".join([first, *rest])
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'
