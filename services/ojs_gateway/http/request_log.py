"""The log of requests: off, those that failed, or all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog
from aiohttp import web

from ojs_core.runtime.proxies import Visit
from ojs_core.runtime.settings import RequestLogMode
from ojs_gateway.http.request import HttpCall

RequestLog = Callable[[web.BaseRequest, HttpCall | None, Visit | None, str, int, float, str], None]
"""Takes the request, its call once there is one, its client as a trusted proxy names it, the route's template, the
status, the seconds and the request's id.
"""

log: Final = structlog.get_logger(__name__)


def request_log(mode: RequestLogMode) -> RequestLog | None:
    """The log of a mode; None where there is none to write.

    A line has the template of the path and never its parameters, the query, a header or a body: ids and filters are the
    callers' own. 5xx are errors, 4xx warnings.
    """
    match mode:
        case "off":
            return None
        case "errors":
            return _failed
        case "all":
            return _any


def _failed(
    request: web.BaseRequest,
    call: HttpCall | None,
    visit: Visit | None,
    route: str,
    status: int,
    seconds: float,
    request_id: str,
) -> None:
    if status >= 400:
        _any(request, call, visit, route, status, seconds, request_id)


def _any(
    request: web.BaseRequest,
    call: HttpCall | None,
    visit: Visit | None,
    route: str,
    status: int,
    seconds: float,
    request_id: str,
) -> None:
    write = log.error if status >= 500 else log.warning if status >= 400 else log.info
    write(
        "request",
        method=request.method,
        route=route,
        status=status,
        ms=round(seconds * 1_000, 1),
        address=request.remote if visit is None else visit.address,
        key=None if call is None or status == 401 else call.principal.name,
        request_id=request_id,
    )
