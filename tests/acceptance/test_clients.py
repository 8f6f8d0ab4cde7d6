"""What the official clients send and what they read from the answers, replayed against the running system.

Each file in `fixtures/clients` is one client's session. A call sends method, path and body; `reads` are the members its code
uses, by dotted path, with a value or the kind of value that it needs; `keeps` names values for later calls, `nulls`
members that may be null, `headers` what this call has in place of the session's, null for one that it doesn't send. What it
does in brackets sets the scene. A call that `streams` sends these headers instead, and reads server-sent events to their
end: the data of each under its type, with `_` for `.`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ojs_engine.base.times import parse_timestamp
from support.event_streams import Stream
from support.guarded import API, Guarded
from support.system import Answer

FILES = sorted((Path(__file__).parents[1] / "fixtures" / "clients").glob("*.json"))
SESSIONS: dict[str, Any] = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
KEPT = re.compile(r"\{(\w+)\}")
ABSENT = object()
STREAMED = {"Content-Type": "text/event-stream*", "OJS-Version": "1.0"}
SENT_BY_ITSELF = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


def is_time(value: Any) -> bool:
    return isinstance(value, str) and parse_timestamp(value) > 0


KINDS: dict[str, Callable[[Any], bool]] = {
    "<absent>": lambda value: value is ABSENT,
    "<uuid>": lambda value: isinstance(value, str) and UUID.fullmatch(value) is not None,
    "<time>": is_time,
    "<text>": lambda value: isinstance(value, str) and value != "",
    "<number>": lambda value: type(value) is int,
    "<decimal>": lambda value: type(value) in (int, float),
    "<object>": lambda value: isinstance(value, dict),
    "<list>": lambda value: isinstance(value, list),
}


def member(body: Any, path: str) -> Any:
    for name in path.split("."):
        if isinstance(body, dict) and name in body:
            body = body[name]
        elif isinstance(body, list) and name.isdigit() and int(name) < len(body):
            body = body[int(name)]
        else:
            return ABSENT
    return body


def filled(value: Any, kept: Mapping[str, str]) -> Any:
    """`value` with every `{name}` in it replaced by what was kept under that name."""
    if isinstance(value, str):
        return KEPT.sub(lambda match: kept[match[1]], value)
    if isinstance(value, list):
        return [filled(item, kept) for item in value]
    if isinstance(value, dict):
        return {name: filled(item, kept) for name, item in value.items()}
    return value


def nulls(value: Any, path: str = "") -> list[str]:
    """Paths of null members in a job, outside of what users put there: clients stumble over them."""
    if isinstance(value, dict):
        own = ("args", "meta", "result", "metadata")
        return [hit for name, item in value.items() if name not in own for hit in nulls(item, f"{path}.{name}")]
    if isinstance(value, list):
        return [hit for index, item in enumerate(value) for hit in nulls(item, f"{path}.{index}")]
    return [path] if value is None else []


def complaints(call: Mapping[str, Any], answer: Answer, session: Mapping[str, Any], kept: Any) -> list[str]:
    """What a client doesn't find in an answer; its headers are found by any case of their names."""
    body = answer.body
    found = [] if answer.status == call["status"] else [f"status {answer.status}, not {call['status']}: {body}"]
    for name, pattern in (session["answers"] if "streams" not in call else STREAMED).items():
        if not fnmatchcase(answer.headers.get(name, ""), pattern):
            found.append(f"header {name} is {answer.headers.get(name)!r}, not {pattern!r}")
    for path, expected in filled(call["reads"], kept).items():
        value = member(body, path)
        fits = KINDS[expected](value) if isinstance(expected, str) and expected in KINDS else value == expected
        if not fits:
            shown = "absent" if value is ABSENT else repr(value)
            found.append(f"{path} is {shown}, not {expected!r}")
    return found + [f"{path} is null" for path in nulls(body) if path.lstrip(".") not in call.get("nulls", ())]


Headers = Callable[[Mapping[str, Any]], Mapping[str, str]]


async def replay(http: aiohttp.ClientSession, name: str, more: Headers = lambda _: {}) -> None:
    """Send what a client sends, with `more` headers by call, and hold the answers to what it reads."""
    session = SESSIONS[name]
    kept: dict[str, str] = {}
    for call in session["calls"]:
        method, target, body = filled(call["send"], kept)
        data = None if body is None else json.dumps(body)
        headers = call.get("streams") or (
            session["headers"] | (session.get("body_headers", {}) if data is not None else {}) | call.get("headers", {})
        )
        sent = {name: value for name, value in headers.items() if value is not None} | dict(more(call))
        async with http.request(method, target, data=data, headers=sent, skip_auto_headers=SENT_BY_ITSELF) as answer:
            if "streams" in call:
                frames = await Stream(answer).rest()
                received = {frame["event"].replace(".", "_"): json.loads(frame["data"]) for frame in frames}
            else:
                received = await answer.json(content_type=None)
            found = complaints(call, Answer(answer.status, received, answer.headers), session, kept)
            assert found == [], f"{session['client']} {call['does']}"
        kept |= {key: member(received, where) for key, where in call.get("keeps", {}).items()}


@pytest.mark.parametrize("name", SESSIONS)
async def test_an_official_client_finds_what_it_reads(http: aiohttp.ClientSession, name: str) -> None:
    await replay(http, name)


@pytest.mark.slow
async def test_the_admin_ui_works_by_a_session_where_keys_are_asked_for(guarded: Guarded) -> None:
    """It sends no key, so it needs the cookie of the server's own origin. What sets the scene has a key."""
    token = guarded.tokens["admin"]
    signed_in = SimpleCookie((await guarded.ask("POST", "/session", token=token))[2]["Set-Cookie"])
    [cookie] = signed_in.values()
    page = {"Cookie": f"{cookie.key}={cookie.value}", "Sec-Fetch-Site": "same-origin", "Origin": guarded.url}
    key = {"Authorization": f"Bearer {token}"}

    def shown(call: Mapping[str, Any]) -> Mapping[str, str]:
        return key if call["does"].startswith("(") else page

    async with aiohttp.ClientSession(guarded.url, cookie_jar=aiohttp.DummyCookieJar()) as http:
        await replay(http, "admin_ui", shown)
        async with http.get(f"{API}/admin/stats") as answer:
            assert answer.status == 401


def test_there_is_a_session_of_every_client() -> None:
    assert list(SESSIONS) == ["admin_ui", "go_sdk", "js_sdk", "ojs_cli", "python_sdk"]
