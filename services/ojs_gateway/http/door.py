"""The door: the one place where it is decided who asks and whether they may (docs/adr/072)."""

from __future__ import annotations

from ojs_core.access.principal import EVERYBODY, Principal
from ojs_core.base.errors import OjsError
from ojs_gateway.http.call import Call, Response, StreamedResponse
from ojs_gateway.http.endpoint import Endpoint


class Door:
    """Stands between every request, over HTTP and NATS alike, and its handler."""

    async def through(self, call: Call, endpoint: Endpoint) -> Response | StreamedResponse:
        """The handler's answer, if the caller may have it. Raises OjsError unauthenticated, permission_denied."""
        principal = EVERYBODY
        _require(principal, call, endpoint)
        answer = await endpoint.handler(call)
        if call.bounded and not call.held:
            raise AssertionError(f"{endpoint.name} doesn't ask what it may be about")
        return answer


def _require(principal: Principal, call: Call, endpoint: Endpoint) -> None:
    """Raises OjsError permission_denied."""
    need = endpoint.need
    call.enter(principal)
    if need in {"nothing", "key"}:
        call.held = True
        return
    if need not in principal.permissions:
        raise OjsError(
            "permission_denied",
            f"{endpoint.name} needs the permission {need!r}, which key {principal.name!r} doesn't have",
            hint="Ask with a key that has it: roles and their permissions are in docs/reference/access.md.",
            details={"permission": need, "operation": endpoint.name},
        )
    if call.bounded:
        if "queue" in endpoint.placed:
            call.require_queue(call.parameters[endpoint.placed.index("queue")])
        elif principal.narrowed and not endpoint.by_queue:
            raise OjsError(
                "permission_denied",
                f"{endpoint.name} is about all queues, and key {principal.name!r} is narrowed to some",
                hint="Ask with a key that isn't narrowed.",
                details={"permission": need, "operation": endpoint.name},
            )
