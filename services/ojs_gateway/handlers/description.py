"""The gateway's description of its own API (docs/adr/017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aiohttp import hdrs

from ojs_engine.api.call import Call, Response
from ojs_engine.api.route import Part
from ojs_gateway.context import Context
from ojs_gateway.openapi.document import document

_JSON: Final = ((hdrs.CONTENT_TYPE, "application/json"),)  # tools that read such documents know no OJS type


class SelfDescription:
    """Says what these parts are."""

    def __init__(self, context: Context, parts: Sequence[Part]) -> None:
        self._context = context
        self._parts = parts
        self._answer: Response | None = None

    async def read(self, _call: Call) -> Response:
        """GET /openapi.json: made when somebody asks first."""
        if self._answer is None:
            context = self._context
            made = document(
                self._parts, context.limits, test_mode=context.settings.test_mode, prefix=context.settings.path_prefix
            )
            self._answer = Response(200, made, _JSON)
        return self._answer
