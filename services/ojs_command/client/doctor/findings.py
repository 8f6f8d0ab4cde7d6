"""What a check has found, and how that is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from rich.text import Text

from ojs_command.client.output import Output, clean, shown
from ojs_engine.base.wording import counted
from ojs_engine.operations.finding import Finding as Judged
from ojs_link.timings import Timings

Status = Literal["ok", "warning", "problem"]


class DoctorTimings(Timings, frozen=True, kw_only=True):
    """How long a doctor waits for answers, and by how much clocks may differ."""

    retry_s: float = 3.0
    """For a server, with all tries: one that is away is a finding."""
    monitor_s: float = 3.0
    """For an answer of nats-server's monitoring port."""
    handshake_s: float = 10.0
    """For a handshake of TLS."""
    clock_s: float = 2.0
    """A difference from which on the doctor warns of clocks."""


class Finding(msgspec.Struct, frozen=True):
    """One check's result.

    `found` is what was seen; `meaning` and `remedy`, of what isn't ok, what follows and what to do.
    """

    check: str
    status: Status
    found: str
    meaning: str = ""
    remedy: str = ""
    of: str = ""
    """The part that was asked: a server, a system in NATS, or monitoring ports."""


def ok(check: str, found: str) -> Finding:
    return Finding(check, "ok", found)


def warning(check: str, found: str, meaning: str, remedy: str) -> Finding:
    """Something to know, or to see to before it becomes a problem."""
    return Finding(check, "warning", found, meaning, remedy)


def problem(check: str, found: str, meaning: str, remedy: str) -> Finding:
    """Something doesn't work, or jobs may be lost."""
    return Finding(check, "problem", found, meaning, remedy)


def told(finding: Judged) -> Finding:
    """Return a finding of the server's rules as a doctor tells it."""
    return Finding(finding.check, finding.severity, finding.message, finding.meaning, finding.remedy)


class Report(msgspec.Struct, frozen=True):
    """What was found. `status` is the worst of it."""

    server: str
    status: str
    findings: list[Finding]


def report(out: Output, server: str, findings: Sequence[Finding]) -> bool:
    """Print what was found at a server; return whether there is no problem."""
    problems = sum(finding.status == "problem" for finding in findings)
    warnings = sum(finding.status == "warning" for finding in findings)
    if out.as_json:
        out.json(Report(server, "problem" if problems else "warning" if warnings else "ok", list(findings)))
    else:
        _tell(out, findings)
        out.text()
        out.text(f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}.")
    return not problems


def _tell(out: Output, findings: Sequence[Finding]) -> None:
    width = max(len(finding.check) for finding in findings)
    several = len({finding.of for finding in findings}) > 1
    before = None
    for finding in findings:
        if several and finding.of != before:
            if before is not None:
                out.text()
            out.text(f"{finding.of}:")
            before = finding.of
        out.text(Text.assemble((f"{finding.check:<{width}}  "), _padded(finding.status), "  ", clean(finding.found)))
        if finding.meaning:
            out.text(f"{'':<{width}}           so:   {finding.meaning}")
            out.text(f"{'':<{width}}           mend: {finding.remedy}")


def _padded(status: str) -> Text:
    told = shown(status).copy()
    told.pad_right(len("problem") - len(status))
    return told
