"""The door: who waits there, and what is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import cast

import pytest
from aiohttp import web

from ojs_engine.access.permissions import PERMISSIONS, Need
from ojs_engine.api.call import Call, Response
from ojs_engine.base.errors import OjsError
from ojs_features.access.allowances import KeyLimits
from ojs_features.access.keys import NewKey, make_key
from ojs_features.access.known_keys import KnownKeys
from ojs_features.access.slowing import Slowing
from ojs_gateway.http.door import Door
from ojs_gateway.http.endpoint import Endpoint, StreamedResponse
from support.call import Request

STREAMED = cast("web.StreamResponse", object())
Handler = Callable[[Call], Awaitable[Response | StreamedResponse]]


class Keyed(Request):
    """A request with a key, from an address."""

    def __init__(self, token: str, address: str = "203.0.113.9") -> None:
        super().__init__()
        self._token = token
        self._address = address

    @property
    def address(self) -> str:
        return self._address

    def header(self, name: str) -> str | None:
        return f"Bearer {self._token}" if name == "Authorization" else None


def door_of(new: NewKey, slowing: Slowing | None = None) -> Door:
    known = KnownKeys(lambda: 0, clock=lambda: 0.0)
    known.replace([new.key])
    return Door(
        known, "while there are no keys", (slowing or Slowing(lambda: 0.0)).pause, lambda _call, _endpoint, _error: None
    )


def key(**limits: int) -> NewKey:
    return make_key("shop", "custom", permissions=PERMISSIONS, limits=KeyLimits(**limits))


def endpoint(handler: Handler, need: Need = "read", *, streams: bool = False) -> Endpoint:
    return Endpoint("sample", (), need, handler, streams=streams)


async def answered(_call: Call) -> Response:
    return Response(200, b"{}")


async def test_wrong_keys_wait_by_address_while_right_ones_and_other_addresses_pass() -> None:
    slowing = Slowing(lambda: 0.0)
    for _ in range(20):
        slowing.pause("203.0.113.9")
    new = key()
    door = door_of(new, slowing)
    wrong = asyncio.create_task(door.through(Keyed("ojs_sk_wrong"), endpoint(answered)))
    assert await door.through(Keyed(new.token), endpoint(answered)) == Response(200, b"{}")
    with pytest.raises(OjsError, match="not known"):
        await door.through(Keyed("ojs_sk_wrong", "198.51.100.7"), endpoint(answered))
    assert not wrong.done()
    with pytest.raises(OjsError, match="not known"):
        await wrong


async def test_a_stream_has_its_place_until_it_ends_and_what_fails_takes_none() -> None:
    new = key(streams=1)
    door = door_of(new)
    go_on = asyncio.Event()

    async def serve(_request: web.BaseRequest, _headers: Mapping[str, str]) -> web.StreamResponse:
        await go_on.wait()
        return STREAMED

    async def streamed(_call: Call) -> StreamedResponse:
        return StreamedResponse(serve)

    async def failing(_call: Call) -> StreamedResponse:
        raise OjsError("not_found", "there is no such job")

    for _ in range(3):
        with pytest.raises(OjsError, match="no such job"):
            await door.through(Keyed(new.token), endpoint(failing, streams=True))
        assert await door.through(Keyed(new.token), endpoint(answered, streams=True)) == Response(200, b"{}")
    first = await door.through(Keyed(new.token), endpoint(streamed, streams=True))
    assert isinstance(first, StreamedResponse)
    following = asyncio.ensure_future(first.serve(cast("web.BaseRequest", None), {}))
    with pytest.raises(OjsError) as refused:
        await door.through(Keyed(new.token), endpoint(streamed, streams=True))
    assert (refused.value.code, refused.value.details["limit"]) == ("rate_limited", "streams")
    assert await door.through(Keyed(new.token), endpoint(answered)) == Response(200, b"{}")
    go_on.set()
    assert await following is STREAMED
    assert isinstance(await door.through(Keyed(new.token), endpoint(streamed, streams=True)), StreamedResponse)


async def test_who_only_looks_is_told_nothing_once_its_key_has_ended_meanwhile() -> None:
    new = key()
    door = door_of(new)

    async def ends(call: Call) -> Response:
        call.admission.over = True
        call.count_pushes(1)
        return Response(200, b"{}")

    for need in ("read", "payloads"):
        with pytest.raises(OjsError, match="ended meanwhile") as refused:
            await door.through(Keyed(new.token), endpoint(ends, need))
        assert refused.value.info.status == 401
    door = door_of(new)
    assert await door.through(Keyed(new.token), endpoint(ends, "enqueue")) == Response(200, b"{}"), "it was done"


async def test_a_handler_that_pushes_and_does_not_count_answers_nothing_to_a_key() -> None:
    new = key()
    door = door_of(new)

    async def counts(call: Call) -> Response:
        call.count_pushes(1)
        return Response(201, b"{}")

    assert (await door.through(Keyed(new.token), endpoint(counts, "enqueue"))) == Response(201, b"{}")
    with pytest.raises(AssertionError, match="doesn't count"):
        await door.through(Keyed(new.token), endpoint(answered, "enqueue"))


async def test_where_the_door_is_open_nothing_is_counted() -> None:
    known = KnownKeys(lambda: 0, limits=KeyLimits(pushes_per_second=1, streams=1, waiting=1), clock=lambda: 0.0)
    door = Door(known, "while there are no keys", Slowing().pause, lambda _call, _endpoint, _error: None)

    async def counts(call: Call) -> Response:
        call.count_pushes(1_000)
        with call.waiting(), call.waiting():
            return Response(201, b"{}")

    for _ in range(3):
        assert await door.through(Request(), endpoint(counts, "enqueue", streams=True)) == Response(201, b"{}")
