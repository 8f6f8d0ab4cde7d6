"""The gateway's description of its own API (docs/adr/017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aiohttp import hdrs

from ojs_gateway.call import Answer, Call
from ojs_gateway.context import Context
from ojs_gateway.openapi import Part, document

__all__ = ["SelfDescription"]

_JSON: Final = ((hdrs.CONTENT_TYPE, "application/json"),)  # tools that read such documents know no OJS type


class SelfDescription:
    """Says what these parts are."""

    def __init__(self, context: Context, parts: Sequence[Part]) -> None:
        self._context = context
        self._parts = parts
        self._answer: Answer | None = None

    async def read(self, _call: Call) -> Answer:
        """GET /openapi.json: made when somebody asks first."""
        if self._answer is None:
            made = document(self._parts, self._context.limits, test_mode=self._context.test_mode)
            self._answer = Answer(200, made, _JSON)
        return self._answer
