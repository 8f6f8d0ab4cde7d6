"""The base of all groups of operations: requests with typed answers, and lists that come in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from ojs_api.queues import PreventionRequest
from ojs_nats._durations import Duration, milliseconds, moment
from ojs_nats._json import decoded
from ojs_nats._logging import get_logger
from ojs_nats._operations import AnyOperation, Request
from ojs_nats._transport import Transport

log = get_logger("ojs_nats.operations.subject")

T = TypeVar("T")

_PAGE: Final = 200
"""The most that the server puts into a page."""

Asked = str | int | float | bool | datetime | Sequence[str] | None
"""The types of a query parameter."""


class _Pagination(msgspec.Struct):
    has_more: bool = False
    next_cursor: str | None = None


class _Place(msgspec.Struct):
    """Where a page is in its list; some lists say it without a member for it."""

    pagination: _Pagination | None = None
    next_cursor: str | None = None
    partial: bool = False


class Subject:
    """A group of operations on one kind of thing, such as `client.jobs`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def _asked(self, kind: type[T], request: Request, member: str | None = None) -> T:
        """The answer, or what it has under `member`."""
        return part(await self._transport.send(request), kind, member)

    async def _each(
        self,
        kind: type[T],
        member: str,
        operation: AnyOperation,
        limit: int | None,
        asked: Mapping[str, str],
        queue: str | None = None,
    ) -> AsyncIterator[T]:
        """The items of a list, at most `limit`; a page is asked for when the one before has been gone through."""
        seen, where = 0, {"offset": "0"}
        while limit is None or seen < limit:
            size = _PAGE if limit is None else min(limit - seen, _PAGE)
            answer = await self._transport.send(Request(operation, {**asked, **where, "limit": str(size)}, queue=queue))
            items = part(answer, list[kind], member)  # type: ignore[valid-type]  # it is a type where it runs
            for item in items:
                yield item
            seen += len(items)
            place = decoded(answer, _Place)
            if place.partial:
                log.warning("the list isn't complete: the server's index is being built", operation=operation.name)
            page = place.pagination or _Pagination(next_cursor=place.next_cursor)
            if page.next_cursor:
                where = {"cursor": page.next_cursor}
            elif page.has_more and items:
                where = {"offset": str(seen)}
            else:
                return


def part(answer: bytes, kind: type[T], member: str | None = None) -> T:
    """Return an answer, decoded.

    Args:
        answer: The answer, as JSON.
        kind: The type to decode it to.
        member: The member of the answer to decode. None means the whole answer.
    """
    if member is None:
        return decoded(answer, kind)
    return decoded(decoded(answer, dict[str, msgspec.Raw])[member], kind)


def parameters(**asked: Asked) -> dict[str, str]:
    """Return query parameters as they are sent, without those that are None."""
    return {name: _text(name, value) for name, value in asked.items() if value is not None}


def body(**members: object) -> dict[str, object]:
    """Return the members of a request as they are sent, without those that are None."""
    return {name: value for name, value in members.items() if value is not None}


def sent(request: msgspec.Struct) -> dict[str, object]:
    """Return a request of the contract as it is sent, without the members that are absent."""
    fields = {field.encode_name: (getattr(request, field.name), field.default) for field in msgspec.structs.fields(request)}
    return {
        name: sent(value) if isinstance(value, msgspec.Struct) else value
        for name, (value, default) in fields.items()
        if value is not default
    }


def seconds(duration: Duration | None) -> float | None:
    """Return a duration as it is sent. None stays None."""
    return None if duration is None else milliseconds(duration) / 1_000


def prevention(*, enabled: bool, interval: Duration | None, share: float | None) -> PreventionRequest:
    """Return a guarantee against starvation as the contract has it."""
    return PreventionRequest(enabled=enabled, rotation_interval=seconds(interval), min_dispatch_ratio=share)


def _text(name: str, value: Asked) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case datetime():
            return moment(value, name)
        case int() | float():
            return f"{value:.15g}"
        case _:
            return ",".join(value or ())
