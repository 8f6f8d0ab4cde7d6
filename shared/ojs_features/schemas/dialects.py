"""Schemas for official clients."""

from __future__ import annotations

from typing import Any, Final

from ojs_api.schemas import OneSchema, SchemaHead, SchemaPage
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import bare, members


def _with_text(schema: SchemaHead) -> dict[str, Any]:
    return members(schema) | {"version": str(bare(schema).version)}


def _one_for_sdk(answer: OneSchema) -> dict[str, Any]:
    """All SDKs take versions for texts; Go's can't read a number (ojs-http-binding §15 has numbers)."""
    return {"schema": _with_text(answer.schema)}


def _page_for_sdk(answer: SchemaPage) -> dict[str, Any]:
    return members(answer) | {"schemas": [_with_text(schema) for schema in answer.schemas]}


SHAPES: Final[Shapes] = {OneSchema: {"sdk": _one_for_sdk}, SchemaPage: {"sdk": _page_for_sdk}}
