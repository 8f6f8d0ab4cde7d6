"""Limits as pure functions: policies, permits, and what has become of who holds one (ojs-rate-limiting)."""

from __future__ import annotations

from ojs_nats.limits.policy import MAX_CONCURRENCY, OnLimit, Policy, parse_key, policy_of, policy_of_queue, read_policy
from ojs_nats.limits.record import (
    COMING_MS,
    MANY,
    Hit,
    Holder,
    LimitRecord,
    Override,
    Room,
    Standing,
    closed,
    effective,
    forgotten,
    granted,
    next_start,
    room,
    standing,
    taken,
)

__all__ = [
    "COMING_MS",
    "MANY",
    "MAX_CONCURRENCY",
    "Hit",
    "Holder",
    "LimitRecord",
    "OnLimit",
    "Override",
    "Policy",
    "Room",
    "Standing",
    "closed",
    "effective",
    "forgotten",
    "granted",
    "next_start",
    "parse_key",
    "policy_of",
    "policy_of_queue",
    "read_policy",
    "room",
    "standing",
    "taken",
]
