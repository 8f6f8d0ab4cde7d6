"""What a gateway tells of itself and the projector behind it, for debugging."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from ojs_engine.wire.members import Count
from ojs_gateway.answers.health import ServicesHealth
from ojs_index.asking.messages import ProjectorStatus


class ProjectorAnswer(Struct, kw_only=True):
    """One projector. `index_progress` is below 1 while its index is built; `lag_ms` is how far it is behind."""

    instance: str
    index_progress: float
    lag_ms: Count
    applied: Count
    relaying: bool
    relayed: Count
    repaired: dict[str, Count]


class DebugStatus(Struct, kw_only=True, omit_defaults=True):
    """The state of one gateway: whichever answers. `error` says why there is no `projector`."""

    instance: str
    uptime_seconds: Count
    nats_server_version: str
    services: ServicesHealth
    projector: ProjectorAnswer | UnsetType = UNSET
    error: str | UnsetType = UNSET


def projector_answer(status: ProjectorStatus) -> ProjectorAnswer:
    """What a projector says of itself."""
    return ProjectorAnswer(
        instance=status.instance,
        index_progress=round(status.progress, 3),
        lag_ms=status.lag_ms,
        applied=status.applied,
        relaying=status.relaying,
        relayed=status.relayed,
        repaired=dict(status.repaired),
    )
