"""Requests to every operation with nothing but what HTTP demands, as libraries send them that add no header."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from acceptance.test_access_matrix import NOWHERE
from ojs_runtime.browsers import DECIDING
from support.bodies import body_of
from support.described import Described
from support.guarded import Guarded
from support.system import Answer, System

UNTOUCHED: Final = frozenset({"adminReset", "resetSystem", "setMaintenance", "setMaintenanceAtAdminMaintenance"})
"""What would change the system for the others."""
SESSIONS: Final = frozenset({"createSession", "deleteSession"})
NO_OBJECTS: Final = (b"[]", b"{", b'{"a": NaN}', b'{"a": "\xff"}', b'"x"')
AGENTS: Final = ("", "x", "\u00e9t\u00e9/1.0 (\u2603)", "PHP/8.3", "okhttp/4", " " * 100 + "a" * 4_000)
KEEPING_NO_KEYS: Final = frozenset({"createWebhookSubscription", "triggerCronJob", "createKey"})
NO_TEXT: Final = b"\xe9\xff".decode(errors="surrogateescape")
EVERYWHERE: Final = (*map(str, DECIDING), "OJS-Version", "OJS-Requires-Extension")
"""Headers that each operation goes by."""
NOWHERE_READ: Final = ("Accept", "Accept-Encoding", "Cookie", "Forwarded", "Referer", "User-Agent", "X-Forwarded-For")
TOLD: Final = (*NOWHERE_READ, "X-Forwarded-Host", "X-Forwarded-Proto", "X-Request-Id", "traceparent", "tracestate")
"""Headers that decide nothing, or not without a proxy that is believed."""


_SOMETHING: Final = {"attempt": 1} | dict.fromkeys(("queue", "job_id", "worker", "worker_id"), NOWHERE)


class Operation(NamedTuple):
    name: str
    method: str
    path: str
    needs_body: bool
    takes_body: bool
    headers: tuple[str, ...] = ()
    """Those that its description names."""

    def sent(self, host: str, headers: Iterable[str] = (), body: bytes | None = None) -> bytes:
        """The bytes of a request."""
        path = _filled(self.path)
        lines = [f"{self.method} {path} HTTP/1.1", f"Host: {host}", *headers]
        if any(header.startswith("Host:") for header in headers):
            del lines[1]
        if body is None and self.needs_body:
            body = json.dumps(body_of(self.name, _SOMETHING)).encode()
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        elif self.method in {"POST", "PUT"}:
            lines.append("Content-Length: 0")
        return "\r\n".join([*lines, "", ""]).encode(errors="surrogateescape") + (body or b"")


def _filled(text: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: {"attempt": "1", "version": "1"}.get(found[1], NOWHERE), text)


class Raw:
    """A connection, over which one request goes after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    @asynccontextmanager
    async def to(cls, url: str) -> AsyncIterator[Raw]:
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()

    async def ask(self, request: bytes) -> Answer:
        self._writer.write(request)
        async with asyncio.timeout(60):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
            headers = dict(line.split(": ", 1) for line in head[1:])
            body = await self._reader.readexactly(int(headers.get("Content-Length", 0)))
        is_json = body and "json" in headers.get("Content-Type", "")
        return Answer(int(head[0].split()[1]), json.loads(body) if is_json else None, headers)


def operations(described: Described) -> list[Operation]:
    """All of them under all of their names, but those whose answers go on."""
    found = []
    for (method, path), about in described.operations.items():
        streams = "101" in about["responses"] or any(
            "text/event-stream" in answer.get("content", {}) and "application/json" not in answer.get("content", {})
            for answer in about["responses"].values()
        )
        if streams or about["operationId"] in UNTOUCHED:
            continue
        takes = method != "GET" and "requestBody" in about
        needs = bool(about.get("requestBody", {}).get("required"))
        named = tuple(one["name"] for one in about.get("parameters", ()) if one["in"] == "header")
        found.append(Operation(about["operationId"], method, path, needs, takes, named))
    return found


def field(answer: Answer) -> Any:
    """What an answer complains of, if it does."""
    return answer.status == 400 and answer.body and answer.body["error"].get("details", {}).get("field")


async def test_every_operation_answers_a_request_that_has_only_a_host(system: System) -> None:
    described = Described.by(system.url)
    host = urlsplit(system.url).netloc
    async with Raw.to(system.url) as raw:
        for operation in operations(described):
            answer = await raw.ask(operation.sent(host))
            assert answer.status < 500, (operation, answer)
            assert field(answer) != "Content-Type", (operation, answer)


async def test_no_name_and_no_type_of_nothing_keeps_a_client_from_an_operation_without_a_body(system: System) -> None:
    host = urlsplit(system.url).netloc
    asked = [one for one in operations(Described.by(system.url)) if one.method != "GET" and not one.needs_body]
    assert len(asked) > 40
    async with Raw.to(system.url) as raw:
        for number, operation in enumerate(asked):
            agent = AGENTS[number % len(AGENTS)]
            answer = await raw.ask(operation.sent(host, [f"User-Agent: {agent}"]))
            assert answer.status < 500, (operation, agent, answer)
            assert field(answer) != "Content-Type", (operation, agent, answer)


async def test_a_key_is_proof_enough_whatever_a_client_calls_itself(guarded: Guarded) -> None:
    host = urlsplit(guarded.url).netloc
    shown = [f"Authorization: Bearer {guarded.tokens['admin']}", "User-Agent: Mozilla/5.0 (compatible; acme)"]
    async with Raw.to(guarded.url) as raw:
        for operation in operations(guarded.described):
            if operation.method == "GET" or operation.needs_body or operation.name in SESSIONS:
                continue
            answer = await raw.ask(operation.sent(host, shown))
            assert answer.status < 500, (operation, answer)
            assert field(answer) != "Content-Type", (operation, answer)
            answer = await raw.ask(operation.sent(host))
            assert answer.status == 401, (operation, answer)


async def test_a_body_that_no_operation_needs_is_sound_or_refused(system: System) -> None:
    host = urlsplit(system.url).netloc
    asked = [one for one in operations(Described.by(system.url)) if one.method != "GET" and not one.takes_body]
    assert {"pauseQueue", "resumeQueue", "activateJob"} < {one.name for one in asked}
    async with Raw.to(system.url) as raw:
        for number, operation in enumerate(asked):
            body = NO_OBJECTS[number % len(NO_OBJECTS)]
            answer = await raw.ask(operation.sent(host, body=body))
            assert (answer.status, answer.body["error"]["code"]) == (400, "invalid_payload"), (operation, body, answer)
        paused = Operation("pauseQueue", "POST", "/ojs/v1/queues/raw/pause", needs_body=False, takes_body=False)
        assert [(await raw.ask(paused.sent(host, body=body))).status for body in NO_OBJECTS] == [400] * len(NO_OBJECTS)
        assert (await raw.ask(paused.sent(host, body=b'{"reason": "of a later version"}'))).status == 200


async def test_a_header_whose_bytes_are_no_text_is_named_where_it_counts(system: System) -> None:
    host = urlsplit(system.url).netloc
    asked = operations(Described.by(system.url))
    assert {"Idempotency-Key"} <= {header for one in asked for header in one.headers}
    async with Raw.to(system.url) as raw:
        for number, operation in enumerate(asked):
            for header in (EVERYWHERE[number % len(EVERYWHERE)], *operation.headers):
                sent = json.dumps(body_of(operation.name, _SOMETHING)).encode() if header in operation.headers else None
                answer = await raw.ask(operation.sent(host, [f"{header}: {NO_TEXT}"], sent))
                assert (answer.status, field(answer)) == (400, header), (operation, header, answer)


async def test_a_header_whose_bytes_are_no_text_is_passed_over_where_it_decides_nothing(system: System) -> None:
    host = urlsplit(system.url).netloc
    asked = operations(Described.by(system.url))
    elsewhere = {header for one in asked for header in one.headers} | {"Last-Event-ID", "Authorization"}
    async with Raw.to(system.url) as raw:
        for operation in asked:
            keeps_none = {"Idempotency-Key"} if operation.name.partition("At")[0] in KEEPING_NO_KEYS else set()
            passed_over = [*TOLD, *elsewhere.difference(operation.headers, keeps_none)]
            answer = await raw.ask(operation.sent(host, [f"{header}: {NO_TEXT}" for header in passed_over]))
            assert answer.status < 500, (operation, answer)
            assert field(answer) not in passed_over, (operation, answer)


async def test_a_key_whose_bytes_are_no_text_opens_nothing(guarded: Guarded) -> None:
    host = urlsplit(guarded.url).netloc
    open_to_all = {"getHealth", "getLiveness", "getReadiness", "getManifest", "getOpenApi", "deleteSession"}
    async with Raw.to(guarded.url) as raw:
        for operation in operations(guarded.described):
            answer = await raw.ask(operation.sent(host, [f"Authorization: Bearer {NO_TEXT}"]))
            assert answer.status < 500, (operation, answer)
            if answer.status != 400 or field(answer) != "Authorization":
                assert operation.name.partition("At")[0] in open_to_all, (operation, answer)


async def test_the_audit_has_an_act_of_a_client_whose_name_is_no_text(guarded: Guarded) -> None:
    pause = Operation("pauseQueue", "POST", "/ojs/v1/queues/no-text/pause", needs_body=False, takes_body=False)
    shown = [f"Authorization: Bearer {guarded.tokens['admin']}", f"User-Agent: {NO_TEXT}", f"Cookie: a={NO_TEXT}"]
    async with Raw.to(guarded.url) as raw:
        assert (await raw.ask(pause.sent(urlsplit(guarded.url).netloc, shown))).status == 200
    _, audit, _ = await guarded.ask("GET", "/admin/audit?per_page=100", token=guarded.tokens["admin"])
    [entry] = [one for one in audit["entries"] if one["detail"].get("target") == {"queue": "no-text"}]
    assert entry["detail"]["user_agent"] == "\N{REPLACEMENT CHARACTER}" * 2
