"""Rate limit policies as clients send them (ojs-rate-limiting §6).

A policy with a `key` limits all jobs of that key, wherever they wait. One without limits its queue.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

from ojs_api import words
from ojs_api.limits import MAX_CONCURRENCY, MAX_RATE
from ojs_engine.base.errors import invalid
from ojs_engine.base.fields import milliseconds
from ojs_engine.base.numbers import Whole
from ojs_engine.base.times import parse_duration_ms
from ojs_engine.domain.job import Job
from ojs_engine.domain.queues.config import QueueConfig, Rate

OnLimit = words.OnLimit

_MAX_PERIOD_MS: Final = 366 * 86_400_000
_KEY: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._:-]{0,254}", re.ASCII)
_SECOND_MS: Final = 1_000
_NAMED_MS: Final = {"second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
_ON_LIMIT: Final = get_args(OnLimit)


class LimitPolicy(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What holds for one key or queue. `concurrency` 0 lets nothing start."""

    key: str | None = None
    concurrency: Whole | None = None
    rate: Rate | None = None
    throttle: Rate | None = None
    """Starts evenly spaced, `period_ms / limit` apart."""
    on_limit: OnLimit = "wait"

    @property
    def limits(self) -> bool:
        """Whether it limits anything."""
        return self.concurrency is not None or self.rate is not None or self.throttle is not None


POLICY_MEMBERS: Final = frozenset({"key", "concurrency", "rate", "period", "max_per_second", "throttle", "on_limit"})
"""Of a `rate_limit` object in any dialect."""

RATE_MEMBERS: Final = frozenset({"limit", "period"})
"""Of its `rate` or `throttle`, where that is an object."""


def read_policy(value: dict[str, Any], path: str) -> LimitPolicy:
    """A `rate_limit` object in any dialect; `path` is where it stands, "" for a whole body.

    Raises invalid_request naming the member.
    """
    base = f"{path}." if path else ""
    key = value.get("key")
    if key is not None:
        key = parse_key(key, f"{base}key")
    concurrency = value.get("concurrency")
    if concurrency is not None:
        concurrency = _whole(concurrency, f"{base}concurrency", 0, MAX_CONCURRENCY)
    rate = _rate(value.get("rate"), value.get("period"), f"{base}rate")
    if value.get("max_per_second") is not None:
        rate = Rate(_whole(value["max_per_second"], f"{base}max_per_second", 1, MAX_RATE), _SECOND_MS)
    on_limit = value.get("on_limit")
    if on_limit is not None and on_limit not in _ON_LIMIT:
        raise invalid(f"{base}on_limit", f"{base}on_limit must be one of {', '.join(_ON_LIMIT)}")
    return LimitPolicy(
        key=key,
        concurrency=concurrency,
        rate=rate,
        throttle=_rate(value.get("throttle"), None, f"{base}throttle"),
        on_limit=on_limit or "wait",
    )


def parse_key(value: Any, path: str) -> str:
    """The name of a limit. Raises invalid_request naming `path`."""
    if type(value) is not str or not _KEY.fullmatch(value):
        raise invalid(path, f"{path} must match ^[a-zA-Z0-9][a-zA-Z0-9._:-]*$ with at most 255 characters")
    return value


def _rate(value: Any, period: Any, path: str) -> Rate | None:
    """`{limit, period}`, or a number with a `period` beside it."""
    if value is None:
        return None
    if type(value) is not dict:
        beside = f"{path.removesuffix('rate')}period"
        return Rate(_whole(value, path, 1, MAX_RATE), _SECOND_MS if period is None else period_ms(period, beside))
    if value.get("period") is None:
        raise invalid(f"{path}.period", f"{path}.period is required: a duration such as PT1M")
    return Rate(_whole(value.get("limit"), f"{path}.limit", 1, MAX_RATE), period_ms(value["period"], f"{path}.period"))


def period_ms(value: Any, path: str) -> int:
    """Read a period. Raises invalid_request naming `path`."""
    ms = _NAMED_MS.get(value) if type(value) is str else None
    if ms is None and type(value) is str:
        try:
            ms = parse_duration_ms(value)
        except ValueError:
            ms = None
    elif ms is None:
        ms = milliseconds(value, 1_000, _MAX_PERIOD_MS)
    if ms is None or not 0 < ms <= _MAX_PERIOD_MS:
        raise invalid(path, f"{path} must be a duration such as PT1M, above 0 and at most a year")
    return ms


def _whole(value: Any, path: str, low: int, high: int) -> int:
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or not low <= value <= high:
        raise invalid(path, f"{path} must be an integer from {low} to {high}")
    return value


@lru_cache(maxsize=4_096)
def _policy(raw: bytes) -> LimitPolicy | None:
    policy = read_policy(msgspec.json.decode(raw), "rate_limit")
    return policy if policy.limits else None


def policy_of(job: Job) -> LimitPolicy | None:
    """What the job itself asked for; None if that limits nothing."""
    return _policy(bytes(job.rate_limit)) if job.rate_limit else None


def policy_of_queue(config: QueueConfig) -> LimitPolicy | None:
    """What a queue's configuration says of all its jobs; None if it limits nothing."""
    if not config.concurrency and config.rate_limit is None:
        return None
    return LimitPolicy(concurrency=config.concurrency or None, rate=config.rate_limit)
