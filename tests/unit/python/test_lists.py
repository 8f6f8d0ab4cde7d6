"""Lists that come in pages, by whatever a page says of the next one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ojs_nats._operations import Operation, Request
from ojs_nats._transport import Answer, Transport
from ojs_nats.operations._subject import Subject

LIST = Operation("listThings", "GET", "/things")
ALL = list(range(450))


class Paged(Transport):
    """Answers with pages of ALL, of a length that the server decides."""

    def __init__(self, by: str, **members: Any) -> None:
        super().__init__("http://nowhere")
        self._by = by
        self._members = members
        self.sizes: list[int] = []

    async def once(self, request: Request, body: bytes | None) -> Answer:
        assert body is None
        start = int(request.parameters.get("cursor") or request.parameters["offset"])
        end = start + min(int(request.parameters["limit"]), 200)
        self.sizes.append(end - start)
        more = end < len(ALL)
        told: dict[str, Any] = {"things": ALL[start:end], **self._members}
        match self._by:
            case "cursor":
                told["pagination"] = {"has_more": more} | ({"next_cursor": str(end)} if more else {})
            case "offset":
                told["pagination"] = {"has_more": more}
            case _:
                told |= {"next_cursor": str(end)} if more else {}
        return Answer(200, msgspec.json.encode(told))

    async def close(self) -> None: ...


async def listed(transport: Transport, limit: int | None = None) -> list[int]:
    return [item async for item in Subject(transport)._each(int, "things", LIST, limit, {})]


@pytest.mark.parametrize("by", ["cursor", "offset", "nothing else"])
async def test_all_pages_are_gone_through(by: str) -> None:
    assert await listed(Paged(by)) == ALL


async def test_no_more_is_asked_for_than_is_wanted() -> None:
    transport = Paged("cursor")
    assert await listed(transport, 230) == ALL[:230]
    assert transport.sizes == [200, 30]
    assert await listed(transport, 0) == []


async def test_a_list_that_isn_t_complete_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    await listed(Paged("cursor", partial=True), 1)
    assert caplog.messages == ["the list isn't complete: the server's index is being built operation='listThings'"]
