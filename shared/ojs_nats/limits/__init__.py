"""Limits as pure functions: policies, permits, and what has become of who holds one (ojs-rate-limiting)."""

from __future__ import annotations

from ojs_nats.limits.policy import MAX_CONCURRENCY, OnLimit, Policy, policy_of, policy_of_queue, read_policy
from ojs_nats.limits.record import (
    COMING_MS,
    MANY,
    Holder,
    LimitRecord,
    Override,
    Room,
    Standing,
    effective,
    forgotten,
    granted,
    room,
    standing,
    taken,
)

__all__ = [
    "COMING_MS",
    "MANY",
    "MAX_CONCURRENCY",
    "Holder",
    "LimitRecord",
    "OnLimit",
    "Override",
    "Policy",
    "Room",
    "Standing",
    "effective",
    "forgotten",
    "granted",
    "policy_of",
    "policy_of_queue",
    "read_policy",
    "room",
    "standing",
    "taken",
]
