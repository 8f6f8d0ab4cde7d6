"""What the door costs a request: one with a key, with a session, or without while there are no keys.

The requests pass the door of a gateway in this process, as they do behind its HTTP parser, to a handler that does nothing. The
kinds take turns, so that whatever else the machine does hits all of them alike. The least of all turns counts: a busy machine
adds to CPU time, too, and takes nothing away.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from bench.plan import Bench
from bench.result import Result
from ojs_core.access.keys import make_key
from ojs_core.access.known_keys import KnownKeys
from ojs_core.access.slowing import Slowing
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.wire.dialects.readers import dialect_of
from ojs_gateway.http.call import Call, Response
from ojs_gateway.http.door import Door
from ojs_gateway.http.endpoint import Endpoint
from ojs_gateway.http.large_bodies import LargeBodies
from ojs_gateway.http.request import HttpCall, Site

_BLOCK: Final = 5_000
_REQUESTS: Final = 10
"""So many different ones, each again and again."""
_BLOCK_S: Final = 0.05
"""About how long the blocks of all kinds take: the plan's duration becomes a number of turns."""
_BARE: Final = "without a door"
_OPEN: Final = "no keys"
KEYED: Final = ("a key", "a narrowed key", "a session")


class _Kind(NamedTuple):
    """`door` is None for what goes straight to the handler, as all requests did before there were keys."""

    door: Door | None
    requests: list[web.BaseRequest]


async def _nothing(call: Call) -> Response:
    """Do what each push does for its key, and nothing else."""
    call.held = True
    call.count_pushes(1)
    return _ANSWER


_ANSWER: Final = Response(200, b"{}")
_ENDPOINT: Final = Endpoint("createJob", (), "enqueue", _nothing, "body")


def _kinds() -> dict[str, _Kind]:
    whole, narrowed = make_key("bench", "producer"), make_key("narrowed", "producer", queues=["bench.*"])
    known, none = KnownKeys(_now), KnownKeys(_now)
    known.replace([whole.key, narrowed.key])
    shut, opened = _door(known), _door(none)
    session = known.session(whole.key.principal)
    assert session is not None
    cookie = {"Cookie": f"{Site().cookie('127.0.0.1:8080')}={session[0]}", "Sec-Fetch-Site": "same-origin"}
    return {
        _BARE: _Kind(None, _requests({})),
        _OPEN: _Kind(opened, _requests({})),
        KEYED[0]: _Kind(shut, _requests({"Authorization": f"Bearer {whole.token}"})),
        KEYED[1]: _Kind(shut, _requests({"Authorization": f"Bearer {narrowed.token}"})),
        KEYED[2]: _Kind(shut, _requests(cookie)),
    }


def _requests(headers: dict[str, str]) -> list[web.BaseRequest]:
    sent = {"Host": "127.0.0.1:8080", "Content-Type": "application/json", "User-Agent": "bench", **headers}
    return [make_mocked_request("POST", "/ojs/v1/jobs", headers=sent) for _ in range(_REQUESTS)]


def _now() -> int:
    return time.time_ns() // 1_000_000


def _door(keys: KnownKeys) -> Door:
    return Door(keys, "while there are no keys", Slowing(), lambda *_: None)


async def run(bench: Bench) -> AsyncIterator[Result]:
    kinds = _kinds()
    blocks: defaultdict[str, list[float]] = defaultdict(list)
    began = time.perf_counter()
    for _ in range(max(5, round(bench.plan.duration / _BLOCK_S))):
        for name, kind in kinds.items():
            blocks[name].append(await _block(kind))
    seconds = time.perf_counter() - began
    least = {name: min(found) for name, found in blocks.items()}
    for name, found in blocks.items():
        yield Result(
            scenario="keys",
            variant=name,
            jobs=_BLOCK * len(found),
            seconds=seconds,
            more={
                "CPU µs/request": least[name],
                "µs above no keys": least[name] - least[_OPEN],
                "µs above without a door": least[name] - least[_BARE],
            },
        )


async def _block(kind: _Kind) -> float:
    """CPU time of a request, in µs."""
    dialect, limits, aside = dialect_of(None, None, None, None), PayloadLimits(), LargeBodies()
    through = kind.door.through if kind.door is not None else _straight
    began = time.thread_time_ns()
    for request in kind.requests * (_BLOCK // _REQUESTS):
        await through(HttpCall(request, dialect, (), limits, aside), _ENDPOINT)
    return (time.thread_time_ns() - began) / _BLOCK / 1_000


async def _straight(call: Call, endpoint: Endpoint) -> object:
    return await endpoint.handler(call)
