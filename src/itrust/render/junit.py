"""JUnit XML, as build servers read it: one test case for each condition and task."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from itrust.auditing import Asked, Audit, MulticlassAudit, gate
from itrust.render.text import check_lines

# XML 1.0 has no way to write these, not even escaped.
UNWRITABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def writable(text: str) -> str:
    r"""Text that XML can hold; other characters are spelt out.

    >>> writable("a\x00<b>")
    'a\\x00<b>'
    """
    return UNWRITABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def junit_xml(audit: Audit | MulticlassAudit, name: str, asked: Asked = "any") -> str:
    """Write the checks of the gate as one test suite.

    A check that the rows do not decide, or that the gate was not asked about, is a skipped test
    case.

    Parameters
    ----------
    audit : Audit or MulticlassAudit
        As it may be shown: apply `Disclosure` first.
    name : str
        Of the suite, such as the name of the audited file.
    asked : {"model", "tasks", "any"}
        What can close the gate.

    Returns
    -------
    str
        XML with a newline at the end.
    """
    checks = gate(audit, asked).checks
    counts = {
        "tests": len(checks),
        "failures": sum(check.outcome == "failed" for check in checks),
        "errors": 0,
        "skipped": sum(check.outcome == "skipped" for check in checks),
    }
    # Readers expect a time; a true one would make every file another.
    about = {key: str(value) for key, value in counts.items()} | {"time": "0"}
    root = Xml.Element("testsuites", about)
    suite = Xml.SubElement(root, "testsuite", {"name": writable(f"itrust audit {name}"), **about})
    for check in checks:
        where = {"classname": "itrust.audit", "name": writable(check.name), "time": "0"}
        case = Xml.SubElement(suite, "testcase", where)
        first, *rest = (writable(line) for line in check_lines(check, audit))
        if check.outcome == "failed":
            kind = "biased" if check.key == "task" else "miscalibrated"
            about_it = {"message": first, "type": kind}
            Xml.SubElement(case, "failure", about_it).text = "\n".join(rest)
        elif check.outcome == "skipped":
            Xml.SubElement(case, "skipped", {"message": first})
        else:
            Xml.SubElement(case, "system-out").text = "\n".join([first, *rest])
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'
