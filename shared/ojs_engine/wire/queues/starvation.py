"""`starvation_prevention` of queues, and what pools have of it (ojs-fair-scheduling §8, docs/adr/029)."""

from __future__ import annotations

from typing import Any, Final

from ojs_api.queues import StarvationPrevention
from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.fields import below, duration_ms, flag, is_extension, mapping
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.times import format_duration
from ojs_engine.domain.starvation import USUAL_INTERVAL_MS

_MEMBERS: Final = ("enabled", "rotation_interval", "min_dispatch_ratio")
_SHORTEST_MS: Final = 1_000


def parse_rotation(value: Any, path: str, limits: PayloadLimits) -> int:
    """`{enabled, rotation_interval?}` of a queue -> the interval in milliseconds, 0 where it isn't enabled."""
    members = _members(value, path)
    if members.get("min_dispatch_ratio") is not None:
        field = f"{path}.min_dispatch_ratio"
        message = (
            f"{field} belongs to pools (PUT /ojs/v1/admin/pools/{{name}}); the priorities of a queue have rotation_interval"
        )
        raise OjsError("unsupported", message, details={"field": field})
    found_ms = interval_ms(members.get("rotation_interval"), path, limits)
    return found_ms if flag(members.get("enabled", False), f"{path}.enabled") else 0


def interval_ms(sent: Any, path: str, limits: PayloadLimits) -> int:
    """Return the `rotation_interval` of an object at a path, the usual one where none was sent. Raises invalid_request."""
    field = f"{path}.rotation_interval"
    found_ms = duration_ms(USUAL_INTERVAL_MS / 1_000 if sent is None else sent, field, 1_000, limits)
    if found_ms < _SHORTEST_MS:
        raise invalid(field, f"{field} must be at least {format_duration(_SHORTEST_MS)}, not {format_duration(found_ms)}")
    return found_ms


def prevention_view(interval_ms: int | None, ratio: float | None = None) -> StarvationPrevention:
    """The same as it is answered; `interval_ms` None or 0 where it isn't enabled."""
    if not interval_ms:
        return StarvationPrevention(enabled=False)
    return StarvationPrevention(enabled=True, rotation_interval=format_duration(interval_ms), min_dispatch_ratio=ratio)


def _members(value: Any, path: str) -> dict[str, Any]:
    members = mapping(value, path)
    for name in members:
        if name not in _MEMBERS and not is_extension(name):
            field = below(path, name)
            raise invalid(field, f"{field} is not a setting; settings are {', '.join(_MEMBERS)}")
    return members
