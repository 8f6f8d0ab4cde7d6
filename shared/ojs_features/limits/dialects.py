"""Limits for official clients."""

from __future__ import annotations

from typing import Any, Final

from ojs_api.limits import Limit, LimitOverride, LimitPage
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import bare, members


def _limit_for_cli(limit: Limit) -> dict[str, Any]:
    """The command line reads `concurrency` as a number, with the rest of it beside."""
    if limit.concurrency is None:
        return members(limit) | {"active": 0}
    whole = limit.concurrency
    return members(limit) | {"concurrency": whole.limit, "active": whole.active, "available": whole.available}


def _limits_for_cli(page: LimitPage) -> dict[str, Any]:
    limits = [_limit_for_cli(limit) for limit in page.items]
    return members(page) | {"items": limits, "rate_limits": limits}


def _limit_for_ui(limit: Limit) -> dict[str, Any]:
    """The admin UI shows one number, with a period if it is that of a rate."""
    view = members(limit) | {"active": 0, "waiting": limit.waiting_count}
    if limit.concurrency is not None:
        view |= {"active": limit.concurrency.active, "limit": limit.concurrency.limit}
    if limit.rate is not None:
        view |= {"limit": limit.rate.limit, "period": limit.rate.period}
    if limit.override is not None:
        view["override"] = members(limit.override) | _one_number(bare(limit.override))
    return view


def _one_number(override: LimitOverride) -> dict[str, Any]:
    if override.rate is not None:
        return members(override.rate)
    return {} if override.concurrency is None else {"limit": override.concurrency}


def _limits_for_ui(page: LimitPage) -> dict[str, Any]:
    return members(page) | {"items": [_limit_for_ui(limit) for limit in page.items]}


SHAPES: Final[Shapes] = {
    Limit: {"cli": _limit_for_cli, "ui": _limit_for_ui},
    LimitPage: {"cli": _limits_for_cli, "ui": _limits_for_ui},
}
