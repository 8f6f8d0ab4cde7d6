"""What a gateway says of itself for debugging, whatever else is away."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ojs_engine.base.errors import unavailable
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_gateway.handlers.system import SystemHandlers
from ojs_index.asking.messages import ProjectorStatus
from support.call import Request, answered

STATUS = ProjectorStatus(
    instance="p", applied=7, lag_ms=3, relaying=True, relayed=6, events=2, repaired={"token": 1}, partial=True, progress=0.51234
)


class Projectors:
    """One that answers, or none."""

    def __init__(self, found: ProjectorStatus | None) -> None:
        self._found = found

    async def status(self) -> ProjectorStatus:
        if self._found is None:
            raise unavailable("no projector answers")
        return self._found


async def told(found: ProjectorStatus | None) -> dict[str, Any]:
    store = SimpleNamespace(bulk=None, config=None, instance="g", server_version="2.12.1")
    roles = SimpleNamespace(processes={"gateway": 1}, missing=("reaper",))
    context: Any = SimpleNamespace(store=store, queries=Projectors(found), limits=PayloadLimits(), roles=roles, uptime_s=5)
    answer: dict[str, Any] = answered(await SystemHandlers(context).status(Request()))
    return answer


GATEWAY = {
    "instance": "g",
    "uptime_seconds": 5,
    "nats_server_version": "2.12.1",
    "services": {"processes": {"gateway": 1}, "missing": ["reaper"]},
}


async def test_a_gateway_tells_how_far_a_projector_is() -> None:
    projector = {"instance": "p", "index_progress": 0.512, "lag_ms": 3, "applied": 7, "relaying": True, "relayed": 6}
    assert await told(STATUS) == GATEWAY | {"projector": projector | {"repaired": {"token": 1}}}


async def test_a_gateway_without_a_projector_still_tells_of_itself() -> None:
    assert await told(None) == GATEWAY | {"error": "no projector answers"}
