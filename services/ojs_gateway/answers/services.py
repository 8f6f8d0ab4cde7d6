"""The processes of the system, as operators read of them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, Struct, UnsetType

from ojs_engine.base.times import format_ms
from ojs_engine.store.workers.presence import ROLES, ServiceBeat
from ojs_engine.wire.members import Timestamp


class ServiceAnswer(Struct, kw_only=True, omit_defaults=True):
    """A process: there since `since` without a gap, last heard of at `at`. An older one doesn't say its `version`."""

    role: str
    instance: str
    since: Timestamp
    at: Timestamp
    version: str | UnsetType = UNSET


class ServiceList(Struct):
    """The processes that were heard of lately, by role and instance."""

    services: list[ServiceAnswer]


def service_list(beats: Sequence[ServiceBeat]) -> ServiceList:
    """Tell of processes by their beats, in the order of `ROLES`."""
    order = {role: place for place, role in enumerate(ROLES)}
    found = sorted(beats, key=lambda beat: (order.get(beat.role, len(order)), beat.role, beat.instance))
    return ServiceList(
        [
            ServiceAnswer(
                role=beat.role,
                instance=beat.instance,
                since=format_ms(beat.since),
                at=format_ms(beat.at),
                version=beat.version or UNSET,
            )
            for beat in found
        ]
    )
