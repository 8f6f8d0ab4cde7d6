"""Pushes and workflows under an Idempotency-Key: what they make is made once, however often the request is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from msgspec import Struct

from ojs_engine.api.call import Call, Response
from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.store.records.idempotency import KeptAnswer, KeyedRun
from ojs_engine.store.store import Store

HEADER: Final = "Idempotency-Key"


class Made(Struct, omit_defaults=True):
    """The ids that a request has made, in its order, and the places of jobs that were found."""

    ids: list[str]
    superfluous: list[int] = []


Make = Callable[[KeyedRun | None], Awaitable[tuple[Response, Made]]]
Again = Callable[[int, Made], Awaitable[Response]]


async def once(
    store: Store, limits: PayloadLimits, call: Call, operation: str, body: bytes, make: Make, again: Again
) -> Response:
    """Return the answer of `make`; under a key that was used before, that of `again` for the first status and ids.

    A key belongs to its principal: another's request with the same key is another request. `make` marks its run when it
    has made something: a refusal (4xx) before that frees the key.

    Raises OjsError conflict for a key that was used with another body, or whose first request still runs; and as
    `make` and `again`.
    """
    key = idempotency_key(call.header(HEADER), None, limits)
    if key is None:
        return (await make(None))[0]
    answer: Response | None = None

    async def work(run: KeyedRun) -> KeptAnswer:
        nonlocal answer
        answer, made = await make(run)
        return KeptAnswer(answer.status, msgspec.json.encode(made))

    scope = f"{operation} {call.caller}"
    status, kept = await store.idempotency.run(scope, key, body, work)
    if answer is not None:
        return answer
    call.count_pushes(0)  # it pushes nothing
    return await again(status, msgspec.json.decode(kept, type=Made))


def idempotency_key(header: str | None, sent: str | None, limits: PayloadLimits) -> str | None:
    """The key of a request; the header wins. Raises invalid_request for one that is empty or too long."""
    key = sent if header is None else header
    if key is not None and not 0 < len(key) <= limits.max_idempotency_chars:
        most = limits.max_idempotency_chars
        raise invalid("idempotency_key", f"idempotency_key must have 1 to {most} characters; this one has {len(key)}")
    return key


def refuse_key(call: Call, instead: str) -> None:
    """Raise invalid_request for a key that this operation can't keep; `instead` says what to do after a lost answer."""
    if call.header(HEADER) is not None:
        message = f"{HEADER} isn't kept by this operation, which would be done again: leave it out, and {instead}"
        raise invalid(HEADER, message)


def gone(error: OjsError, what: str) -> OjsError:
    """Return the error of a repeated request for what it made and what has been removed since."""
    if error.code != "not_found":
        return error
    return OjsError(
        "conflict",
        f"the first request with this {HEADER} made {what}, which has been removed since",
        canonical="IDEMPOTENCY_CONFLICT",
    )
