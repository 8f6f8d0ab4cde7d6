"""Queries that several operations have."""

from __future__ import annotations

from ojs_engine.api.call import Call
from ojs_engine.base.fields import short_text
from ojs_engine.base.payload_limits import PayloadLimits


def searched(call: Call, limits: PayloadLimits) -> str | None:
    """A part of the names of what is listed, if there is one. Raises invalid_request."""
    text = call.query("search")
    return short_text(text, "search", limits) if text else None
