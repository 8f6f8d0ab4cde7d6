"""A request that never was on a wire, for handlers."""

from __future__ import annotations

from typing import Any

import msgspec

from ojs_engine.api.call import Call, Response
from ojs_engine.api.large_bodies import LargeBodies
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.wire.queries import Queries
from ojs_gateway.dialects.layer import answer_body
from ojs_gateway.dialects.readers import dialect_of


def answered(response: Response) -> Any:
    """What an answer says to nobody in particular."""
    return msgspec.json.decode(answer_body(response.answer, "standard"))


class Request(Call):
    """One with this body, in the dialect of nobody in particular."""

    def __init__(self, body: Any = None, parameters: tuple[str, ...] = ()) -> None:
        super().__init__(dialect_of(None, None, None, None), parameters, PayloadLimits(), LargeBodies())
        self._sent = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)

    @property
    def left(self) -> bool:
        return False

    @property
    def address(self) -> str:
        return "127.0.0.1"

    async def body(self, _limit: int) -> bytes:
        return self._sent

    @property
    def queries(self) -> Queries:
        return Queries()

    def header(self, _name: str) -> str | None:
        return None

    def remark(self, name: str) -> str | None:
        return self.header(name)
