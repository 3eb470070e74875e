"""A report as JUnit XML: a claim is a testcase."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from verify_rates.report import Report, checked_by, save_text, source, tightness
from verify_rates.verdicts import Result, Verdict

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML 1.0 cannot hold


def _text(value: object) -> str:
    return _FORBIDDEN.sub("?", str(value))


def _case(suite: ET.Element, r: Result) -> None:
    case = ET.SubElement(suite, "testcase", classname=_text(r.claim.method or "claims"), name=_text(r.claim.id), time=f"{r.seconds:.3f}")
    sentence = _text(r.message or r.verdict.sentence)
    if not r.as_expected:
        ET.SubElement(case, "failure", type=r.verdict.value, message=sentence).text = _text(
            f"expected: {r.claim.expect}. {r.claim.statement}"
        )
    elif r.verdict is Verdict.INCONCLUSIVE:
        ET.SubElement(case, "error", type=r.verdict.value, message=sentence).text = _text(r.claim.statement)
    elif r.verdict is Verdict.NOT_CHECKABLE:
        ET.SubElement(case, "skipped", message=_text(r.claim.not_checkable or sentence))
    told = (
        f"{r.claim.statement}\nverdict: {r.verdict.value}\nmeasured/bound: {tightness(r)}\nchecked by: {checked_by(r)}\nsource: {source(r)}"
    )
    ET.SubElement(case, "system-out").text = _text(told)


def to_junit(report: Report) -> str:
    """The report as JUnit XML text.

    A claim that is not as expected is a failure, an inconclusive one an error, one that cannot be checked is skipped; an
    internal error is an error of its own testcase.

    >>> to_junit(Report([], {})).startswith("<?xml")
    True
    """
    counts = report.counts
    unclear = sum(r.as_expected and r.verdict is Verdict.INCONCLUSIVE for r in report.results)
    suite = ET.Element(
        "testsuite",
        name="verify-rates",
        tests=str(counts["total"] + len(report.errors)),
        failures=str(counts["unexpected"]),
        errors=str(unclear + len(report.errors)),
        skipped=str(counts[Verdict.NOT_CHECKABLE.value]),
        time=f"{sum(r.seconds for r in report.results):.3f}",
    )
    for r in report.results:
        _case(suite, r)
    for e in report.errors:
        case = ET.SubElement(suite, "testcase", classname="internal error", name=_text(e.get("claim", "the run")))
        ET.SubElement(case, "error", type="internal error", message=_text(e.get("message", ""))).text = _text(e.get("traceback", ""))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def save(report: Report, path: str | Path) -> Path:
    """Write the XML; UsageError where the folder does not exist or cannot be written."""
    return save_text(path, to_junit(report))
