"""The page that says of each document of the specification whether it is served, for the documentation.

`python -m script.pages.conformance > docs/conformance.md` renews it from `conformance.toml`. What that says is held to
a running server by `tests/acceptance/test_conformance_page.py`, and to the cases by `script/conformance --verdicts`.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from script.pages.endpoints import specification

Status = Literal["served", "in part", "for clients", "text", "not served"]
Side = Literal["suite", "not served", "ours"]

_MEANINGS: Final[dict[Status, str]] = {
    "served": "everything that it demands of a server, but for what stands beside it",
    "in part": "what stands beside it is missing",
    "for clients": "it is for those who write clients or workers; what they send is kept and handed on",
    "text": "it demands nothing of a server",
    "not served": "nothing of it; requests are answered 404, and members of jobs are kept and handed on",
}
_SIDES: Final[dict[Side, str]] = {
    "suite": "the case contradicts the specification or itself, or no runner reads it; the server does what is meant",
    "not served": "it is about something that is not served",
    "ours": "the server should pass",
}


class Document(Struct, frozen=True, forbid_unknown_fields=True):
    """One document of the specification, by its file's name.

    `lacks` says what is missing or different, `page` is where it is described here. `extension` is its name in the manifest,
    which only a document that is served has. `operations` are there (method and path, as the API's description writes them),
    `absent` are not. `suites` are the folders of its cases.
    """

    name: str
    status: Status
    lacks: str = ""
    page: str = ""
    extension: str = ""
    operations: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()


class Failing(Struct, frozen=True, forbid_unknown_fields=True):
    """Cases that don't pass, by their files' names in a suite, and why."""

    suite: str
    cases: tuple[str, ...]
    side: Side
    why: str


class Suites(Struct, frozen=True, forbid_unknown_fields=True):
    """Which version of the official cases was run, when, and how many each folder has."""

    version: str
    commit: str
    date: str
    cases: dict[str, int]


class Conformance(Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of the specification's documents and cases."""

    suites: Suites
    documents: tuple[Document, ...]
    failing: tuple[Failing, ...]

    def failures(self, suite: str) -> int:
        """How many cases of a folder don't pass."""
        return sum(len(entry.cases) for entry in self.failing if entry.suite == suite)

    def passed(self, suite: str) -> int:
        """How many cases of a folder pass."""
        return self.suites.cases[suite] - self.failures(suite)


def conformance() -> Conformance:
    """As it was when it was last run."""
    text = Path(__file__).with_name("conformance.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Conformance)


def differences() -> str:
    """Return the sections that are written by hand: later documents, and differences by decision."""
    return Path(__file__).with_name("conformance_differences.md").read_text(encoding="utf-8")


def page(known: Conformance) -> str:
    """The page in Markdown."""
    specified = specification()
    suites = known.suites
    levels = [name for name in suites.cases if name.startswith("level-")]
    passed = sum(known.passed(name) for name in levels)
    total = sum(suites.cases[name] for name in levels)
    return f"""\
# Conformance

What of the [Open Job Spec](https://openjobspec.org) this server does. The documents are those of github.com/openjobspec/spec,
commit `{specified.commit[:12]}` of {specified.date}, and
[what April 2026 added](#the-specification-of-april-2026); the cases those of github.com/openjobspec/ojs-conformance
{suites.version}, commit `{suites.commit}`, run on {suites.date}.

**{passed} of {total} cases of levels 0 to 4 pass.** The manifest (`GET /ojs/manifest`) says to programs what this page says to
people. Where a text and the cases differ, the cases count.

## Documents

{_lines(f"- *{status}*: {meaning}." for status, meaning in _MEANINGS.items())}

| Document | Status | What is missing or different | Cases passed |
|---|---|---|---:|
{_lines(_document(known, document) for document in known.documents)}

{differences()}
## Cases

Each folder of the official suites, by a runner that checks every assertion. (The official one passes files without a look at
their steps where they say `expect` in place of `assertions`.)

| Folder | Cases | Pass |
|---|---:|---:|
{_lines(f"| {name} | {number} | {known.passed(name)} |" for name, number in suites.cases.items())}

## Cases that don't pass

{_lines(f"- *{side}*: {meaning}." for side, meaning in _SIDES.items())}

Of those on the suite's side, twelve pass with a runner that reads flat member names or
`status_in`. No server can pass `retry-error-history-tracked`.

| Folder | Cases | On whose side | Why |
|---|---|---|---|
{_lines(_failing(known))}

## The smallest arrangement

`script/conformance --arrangement bare` runs the cases of levels 0 and 1 against a gateway, a
scheduler, a reaper and a projector, one of each. Without the scheduler no retry comes due, without
the reaper no lease ends, and without the projector there are no lists of dead letters and events.
Bare has the three features that some of these cases need: dead letters, events and unique jobs.
Without them (`--without dead_letters,events,unique`) it passes the others. It runs as if every other
folder of `ojs_features` had been deleted, and leaves out the dashboard, the API over NATS, keys
and TLS.

This page is made by `python -m script.pages.conformance`. `script/conformance --verdicts` runs all cases and says
where it is wrong.
"""


def _document(known: Conformance, document: Document) -> str:
    name = f"[{document.name}]({document.page})" if document.page else document.name
    cases = ", ".join(f"{known.passed(suite)} of {known.suites.cases[suite]}" for suite in document.suites)
    declared = f", `{document.extension}` in the manifest" if document.extension else ""
    return f"| {name} | {document.status}{declared} | {document.lacks} | {cases} |"


def _failing(known: Conformance) -> Iterator[str]:
    for entry in known.failing:
        cases = ", ".join(f"`{case}`" for case in entry.cases)
        yield f"| {entry.suite} | {cases} | {entry.side} | {entry.why} |"


def _lines(rows: Iterable[str]) -> str:
    return "\n".join(rows)


if __name__ == "__main__":
    sys.stdout.write(page(conformance()))
