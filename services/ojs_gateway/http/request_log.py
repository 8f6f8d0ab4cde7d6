"""The log of requests: off, those that failed, or all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import structlog
from aiohttp import web

from ojs_gateway.http.request import HttpCall
from ojs_runtime.proxies import Visit
from ojs_runtime.settings import RequestLogMode


class AnsweredRequest(NamedTuple):
    """A request over HTTP, and what is known of it once it is answered."""

    request: web.BaseRequest
    call: HttpCall | None
    """None if it was refused before there was one."""
    visit: Visit | None
    """The client as a trusted proxy names it; None where none does."""
    route: str
    """The template of its path."""
    status: int
    seconds: float
    request_id: str


RequestLog = Callable[[AnsweredRequest], None]

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


def _failed(answered: AnsweredRequest) -> None:
    if answered.status >= 400:
        _any(answered)


def _any(answered: AnsweredRequest) -> None:
    request, call, visit, route, status, seconds, request_id = answered
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
