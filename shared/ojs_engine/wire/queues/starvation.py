"""`starvation_prevention` of pools and of queues (ojs-fair-scheduling §8, docs/adr/029)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.fields import below, duration_ms, flag, is_extension, mapping, shown
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.times import format_duration
from ojs_engine.domain.fair_pools import Prevention
from ojs_engine.wire.members import Duration, OpenStruct

_MEMBERS: Final = ("enabled", "rotation_interval", "min_dispatch_ratio")
_SHORTEST_MS: Final = 1_000
_DEFAULT: Final = Prevention()


class StarvationPrevention(OpenStruct, kw_only=True, omit_defaults=True):
    """What a queue, or each queue of a pool, is guaranteed while it has jobs."""

    enabled: bool
    rotation_interval: Duration | UnsetType = UNSET
    min_dispatch_ratio: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET


def parse_prevention(value: Any, path: str, queues: int, limits: PayloadLimits) -> Prevention | None:
    """`{enabled, rotation_interval?, min_dispatch_ratio?}` of a pool of so many queues; None where it isn't enabled."""
    if value is None:
        return None
    members = _members(value, path)
    most = 1 / queues
    ratio = members.get("min_dispatch_ratio", min(_DEFAULT.ratio, most))
    if type(ratio) not in (int, float) or not 0 <= ratio <= most:
        field = f"{path}.min_dispatch_ratio"
        raise invalid(field, f"{field} must be a number from 0 to {most:g}, since {queues} queues share 1, not {shown(ratio)}")
    interval_ms = _interval_ms(members, path, limits)
    return Prevention(interval_ms=interval_ms, ratio=float(ratio)) if _enabled(members, path) else None


def parse_rotation(value: Any, path: str, limits: PayloadLimits) -> int:
    """`{enabled, rotation_interval?}` of a queue -> the interval in milliseconds, 0 where it isn't enabled."""
    members = _members(value, path)
    if members.get("min_dispatch_ratio") is not None:
        field = f"{path}.min_dispatch_ratio"
        message = (
            f"{field} belongs to pools (PUT /ojs/v1/admin/pools/{{name}}); the priorities of a queue have rotation_interval"
        )
        raise OjsError("unsupported", message, details={"field": field})
    interval_ms = _interval_ms(members, path, limits)
    return interval_ms if _enabled(members, path) else 0


def prevention_view(interval_ms: int | None, ratio: float | None = None) -> StarvationPrevention:
    """The same as it is answered; `interval_ms` None or 0 where it isn't enabled."""
    if not interval_ms:
        return StarvationPrevention(enabled=False)
    answer = StarvationPrevention(enabled=True, rotation_interval=format_duration(interval_ms))
    if ratio is not None:
        answer.min_dispatch_ratio = ratio
    return answer


def _members(value: Any, path: str) -> dict[str, Any]:
    members = mapping(value, path)
    for name in members:
        if name not in _MEMBERS and not is_extension(name):
            field = below(path, name)
            raise invalid(field, f"{field} is not a setting; settings are {', '.join(_MEMBERS)}")
    return members


def _interval_ms(members: dict[str, Any], path: str, limits: PayloadLimits) -> int:
    field = f"{path}.rotation_interval"
    interval_ms = duration_ms(members.get("rotation_interval", _DEFAULT.interval_ms / 1_000), field, 1_000, limits)
    if interval_ms < _SHORTEST_MS:
        raise invalid(field, f"{field} must be at least {format_duration(_SHORTEST_MS)}, not {format_duration(interval_ms)}")
    return interval_ms


def _enabled(members: dict[str, Any], path: str) -> bool:
    return flag(members.get("enabled", False), f"{path}.enabled")
