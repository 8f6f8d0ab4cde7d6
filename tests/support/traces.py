"""Traces of operations: the bytes over HTTP, and the messages that the server's processes send to NATS.

A trace is text that is the same in every run: a file holds it, and a test compares. What differs in each run (ids,
times, secrets, sequences) is shown by its kind. `BACKGROUND` leaves out what is sent without a cause in the operation.
"""

from __future__ import annotations

import asyncio
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from ojs_engine.jetstream.connection import ConnectionTimings, ReplyOrFailure
from ojs_engine.store.store import Store
from support.outside import TappedConnection
from support.waiting import eventually

BACKGROUND: Final = re.compile(
    r"""
      [a-z]+\ (
          \$JS\.API\.INFO                            # looks for a leader
        | \$JS\.API\.STREAM\.(INFO|CREATE)\.         # how full the streams are, and whether there is room for more
        | \$JS\.API\.STREAM\.MSG\.GET\.              # the clock's comparison with that of nats-server
        | \$JS\.API\.CONSUMER\.(INFO|LIST|NAMES)\.   # looks at consumers
        | \$JS\.API\.CONSUMER\.MSG\.NEXT\.           # pulls, which are renewed by the clock
        | \$JS\.API\.CONSUMER\.CREATE\.KV_ojs\.      # what a process follows or takes due messages from, made once
        | \$KV\.ojs\.(service|relay|probe|ring)\.     # beats of services, and what they keep of themselves
        | \$JS\.API\.DIRECT\.GET\.KV_ojs\ .*\$KV\.ojs\.service\.   # looks for living services
        | \$JS\.API\.CONSUMER\.\w+\.OJS_READY\.ready-(letters|parcels)-\d+-\d+   # consumers of earlier traces' queues
        | ojs\.query\.building\.                      # asked while no projector has read all records
        | ojs\.reset                                 # between two traces
        | _INBOX\.                                   # answers to other processes
      )
    | (?!gateway)[a-z]+\ \$JS\.API\.DIRECT\.GET     # reads of services: how often depends on how fast others are
    | projector\                                    # follows all records, in batches of whatever is stored by then
    """,
    re.VERBOSE,
)
"""Processes and subjects of what is sent without a cause in the operation, or in numbers that depend on the machine."""

_QUIET_ROUNDS: Final = 4
"""How many round trips to NATS in a row have to bring nothing new before a step counts as over."""
_WIDTH: Final = 110
_ACK: Final = re.compile(r"[+-][A-Z]+")
_SEQUENCES: Final = ("Nats-Expected-Last-Subject-Sequence", "Nats-Expected-Last-Sequence")
_NOT_OURS: Final = frozenset({"date", "server", "content-length", "connection", "keep-alive"})
_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ID: Final = re.compile(_UUID)
_CHANGING: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)"), "<time>"),
    (re.compile(r"\bojs_[A-Za-z0-9_-]{20,}"), "<key>"),
    (re.compile(r"\b(whsec|sub|del|evt|key|req)_[A-Za-z0-9-]{8,}"), r"<\1>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<hex>"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "<hex>"),
    (re.compile(r"\b1[789]\d{11}\b"), "<ms>"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r'"mark":"\d+-'), '"mark":"<sequence>-'),
    (re.compile(r"^(\$JS\.ACK\.[^.]+\.[^.]+)\..*"), r"\1.<message>"),
)
_OP: Final = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{10,15}(?![0-9A-Za-z])")
_OWN: Final = ("letters", "parcels")
"""Names of queues in operations. In each trace they are of other queues, which its gateway has never seen."""


Awaited = tuple[str, str]
"""A process, and the beginning of a subject to which it will send."""


class Sent(NamedTuple):
    """A message that a process sent to NATS."""

    process: str
    subject: str
    headers: str
    body: str


class Tape:
    """What the processes of one namespace have sent, in order, without the background."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._number = 0
        self.sent: list[Sent] = []
        self.waiting = 0
        """Requests without an answer yet."""

    def begin(self) -> None:
        """Forget what was sent, and give the queues new names."""
        self._number += 1
        self.sent.clear()

    def own(self, text: str) -> str:
        """Return a text with this trace's queues in the place of those that operations name."""
        return re.sub("|".join(_OWN), rf"\g<0>-{self._number}", text)

    def plain(self, text: str) -> str:
        """Return a text as it is in the default namespace, and with the queues that operations name."""
        found = text.replace(self._namespace, "ojs").replace(self._namespace.upper(), "OJS")
        return re.sub(rf"({'|'.join(_OWN)})-{self._number}\b", r"\1", found)

    def counts(self, process: str, subject: str, payload: bytes) -> bool:
        """Return whether a message is of an operation."""
        asked = payload.decode() if subject.startswith("$JS.API.") else ""
        return BACKGROUND.match(f"{process} {self.plain(f'{subject} {asked}')}") is None

    def note(self, process: str, subject: str, payload: bytes, headers: str) -> None:
        """Keep a message, unless it is of the background. A service's -NAK is: its message came ahead of the record that it
        tells of, by chance, and comes again.
        """
        if self.counts(process, subject, payload) and not (process != "gateway" and payload.startswith(b"-NAK")):
            body = self.plain(payload.decode(errors="backslashreplace"))
            self.sent.append(Sent(process, self.plain(subject), self.plain(headers), body))

    def connector(self, process: str) -> Callable[[str, ConnectionTimings], TappedConnection]:
        """Return what makes the connections of a process's store."""
        return lambda name, timings: TracedConnection(self, process, name, timings)


class TracedConnection(TappedConnection):
    """A connection that puts down what it sends."""

    def __init__(self, tape: Tape, process: str, name: str, timings: ConnectionTimings) -> None:
        super().__init__(name, timings)
        self._tape = tape
        self._process = process

    def publish(self, subject: str, payload: bytes, headers: str = "", reply: str = "", *, along: bool = False) -> None:
        self._tape.note(self._process, subject, payload, headers)
        super().publish(subject, payload, headers, reply, along=along)

    def request(
        self, subject: str, payload: bytes = b"", headers: str = "", timeout_s: float | None = None
    ) -> asyncio.Future[ReplyOrFailure]:
        future = super().request(subject, payload, headers, timeout_s)
        if self._tape.counts(self._process, subject, payload):
            self._tape.waiting += 1
            future.add_done_callback(self._answered_one)
        return future

    def _answered_one(self, _future: asyncio.Future[ReplyOrFailure]) -> None:
        self._tape.waiting -= 1


class Exchange(NamedTuple):
    """A request over HTTP and its answer."""

    request: str
    body: str
    status: str
    headers: Sequence[tuple[str, str]]
    answer: str


class Step(NamedTuple):
    """One request, or a wait, with what was sent from then on."""

    exchange: Exchange | str
    sent: Sequence[Sent]
    shown: bool


class Trace:
    """The steps of one operation, as they are taken and as text."""

    def __init__(self, url: str, tape: Tape, stores: list[Store]) -> None:
        """`stores` are those of all processes that run; it may grow."""
        address = urlsplit(url)
        self._host, self._port = str(address.hostname), int(address.port or 0)
        self._tape = tape
        self._stores = stores
        self._steps: list[Step] = []
        self.key: str | None = None
        """What requests are allowed by."""

    async def prepare(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that the trace doesn't show; returns the body of the answer."""
        return await self._ask(method, path, body, shown=False)

    async def call(self, method: str, path: str, body: Any = None, *, until: Awaited | None = None) -> Any:
        """Send a request that the trace shows, with all that is sent for it; returns the body of the answer.

        `until` names a process and the beginning of a subject: what it sends there for the request is waited for.
        """
        return await self._ask(method, path, body, shown=True, until=until)

    async def later(self, what: str, process: str, subject: str) -> None:
        """Wait until a process has sent to a subject with this beginning, and show what all have sent by then."""
        await self._heard(process, subject)
        await self._settle()
        self._take(what, shown=True)

    async def _heard(self, process: str, subject: str) -> None:
        def it_was_sent() -> bool:
            return any(one.process == process and one.subject.startswith(subject) for one in self._tape.sent)

        await eventually(it_was_sent, every=0.005)

    async def _ask(self, method: str, path: str, body: Any, *, shown: bool, until: Awaited | None = None) -> Any:
        sent = "" if body is None else json.dumps(body)
        exchange = await self._exchanged(method, f"/ojs/v1{path}", sent)
        if until is not None:
            await self._heard(*until)
        await self._settle()
        self._take(exchange, shown=shown)
        return json.loads(exchange.answer) if exchange.answer else None

    async def _exchanged(self, method: str, path: str, body: str) -> Exchange:
        sent = self._tape.own(body)
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            typed = f"Content-Type: application/json\r\nContent-Length: {len(sent.encode())}\r\n" if sent else ""
            key = "" if self.key is None else f"Authorization: Bearer {self.key}\r\n"
            line = f"{method} {self._tape.own(path)} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            writer.write(f"{line}Connection: close\r\n{key}{typed}\r\n{sent}".encode())
            answer = self._tape.plain((await reader.read()).decode())
        finally:
            writer.close()
        top, _, content = answer.partition("\r\n\r\n")
        status, *lines = top.split("\r\n")
        headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
        ours = [(name, value) for name, value in headers if name.lower() not in _NOT_OURS]
        return Exchange(f"{method} {path}", body, status.removeprefix("HTTP/1.1 "), ours, content)

    async def _settle(self) -> None:
        """Return when nothing more is under way: NATS has all that was sent, and nobody waits for an answer."""
        quiet, known = 0, -1
        while quiet < _QUIET_ROUNDS:
            for store in self._stores:
                await store.nats.flush()
                await store.bulk.flush()
            still = len(self._tape.sent) == known and not self._tape.waiting
            quiet, known = quiet + 1 if still else 0, len(self._tape.sent)

    def _take(self, exchange: Exchange | str, *, shown: bool) -> None:
        sent, self._tape.sent[:] = list(self._tape.sent), []
        self._steps.append(Step(exchange, sent, shown))

    def text(self, title: str) -> str:
        """Return all that was shown: each request, what each process sent for it, and the answer."""
        names = _Names()
        lines = [f"# {title}"]
        for step in self._steps:
            lines += [""] if step.shown else []
            shown = list(_lines(step, names))
            lines += shown if step.shown else []
        return "\n".join(lines) + "\n"


class _Names:
    """Stable names of ids, by the order in which they are met."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def __call__(self, text: str) -> str:
        found = _ID.sub(lambda met: self._name("id", met[0]), text)
        for pattern, name in _CHANGING:
            found = pattern.sub(name, found)
        return _OP.sub(lambda met: self._name("op", met[0]), found)

    def _name(self, kind: str, value: str) -> str:
        if (name := self._of.get(value)) is None:
            self._counts[kind] = number = self._counts.get(kind, 0) + 1
            name = self._of[value] = f"<{kind}-{number}>"
        return name


def _lines(step: Step, names: _Names) -> Iterator[str]:
    exchange = step.exchange
    if isinstance(exchange, str):
        yield f"-- {exchange}"
    else:
        yield f"> {names(exchange.request)}"
        yield from _indented(names(exchange.body))
    for process in dict.fromkeys(sorted(one.process for one in step.sent)):
        yield f"  {process}:"
        for one in step.sent:
            if one.process == process:
                yield from _message(one, names)
    if isinstance(exchange, Exchange):
        yield f"< {exchange.status}"
        yield from (f"  {name}: {names(value)}" for name, value in exchange.headers)
        yield from _indented(names(exchange.answer))


def _message(sent: Sent, names: _Names) -> Iterator[str]:
    yield f"    {names(sent.subject)}"
    for line in filter(None, sent.headers.split("\r\n")):
        yield f"      {_header(names(line))}"
    if sent.body:
        yield from textwrap.wrap(
            shape(sent.body), _WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 8, break_on_hyphens=False
        )


def _header(line: str) -> str:
    name, _, value = line.partition(":")
    value = value.strip()
    if name in _SEQUENCES and value != "0":
        value = "<sequence>"
    if name == "Nats-Msg-Id":
        value = re.sub(r"=20(?:reset=20)?\d+$", "=20<sequence>", value)
    return f"{name}: {value}"


def _indented(text: str) -> Iterator[str]:
    """Break JSON after its outer members, and leave every byte of it."""
    depth, start, quoted, place = 0, 0, False, 0
    while place < len(text):
        letter = text[place]
        if letter == "\\" and quoted:
            place += 1
        elif letter == '"':
            quoted = not quoted
        elif not quoted and letter in "{[":
            depth += 1
        elif not quoted and letter in "}]":
            depth -= 1
        elif not quoted and letter == "," and depth <= 2:
            yield f"  {text[start : place + 1].strip()}"
            start = place + 1
        place += 1
    if text[start:]:
        yield f"  {text[start:].strip()}"


def shape(body: str) -> str:
    """Return the members of a message's body, sorted, with what each is."""
    try:
        return _shape(json.loads(body))
    except ValueError:
        return body if _ACK.match(body) else "text"


def _shape(value: Any) -> str:
    if isinstance(value, dict):
        named = (f"{_ID.sub('<id>', name)}: {_shape(member)}" for name, member in sorted(value.items()))
        return "{" + ", ".join(named) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(dict.fromkeys(map(_shape, value))) + "]"
    if isinstance(value, bool):
        return "bool"
    return {str: "text", int: "int", float: "float"}.get(type(value), "null")
