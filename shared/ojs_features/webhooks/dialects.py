"""Webhooks for official clients: neither the command line nor the admin UI unwraps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ojs_api.webhooks import OneWebhook, RotatedWebhook, WebhookPage, WebhookTest
from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.dialects.shaping import Shape, Shapes
from ojs_engine.wire.members import members


def _bare(answer: OneWebhook) -> dict[str, Any]:
    return members(answer.subscription) | members(answer)


def _rotated(answer: RotatedWebhook) -> dict[str, Any]:
    return members(answer.subscription) | members(answer) | {"new_secret": answer.secret}


def _page_for_ui(answer: WebhookPage) -> dict[str, Any]:
    return members(answer) | {"items": answer.subscriptions}


def _test_for_ui(answer: WebhookTest) -> dict[str, Any]:
    return members(answer) | {"status": answer.status_code}


_ONE: Final[Mapping[Reader, Shape]] = {"cli": _bare, "ui": _bare}
SHAPES: Final[Shapes] = {
    OneWebhook: _ONE,
    RotatedWebhook: {"cli": _rotated},
    WebhookPage: {"ui": _page_for_ui},
    WebhookTest: {"ui": _test_for_ui},
}
