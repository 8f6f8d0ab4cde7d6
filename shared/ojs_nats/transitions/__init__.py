"""The state machine of a job as pure functions: `(job, command, moment) -> Transition`, or a refusal as `OjsError`.

Nothing here reads a clock, draws a random number or talks to anybody; `Moment` brings what a decision needs.
"""

from __future__ import annotations

from ojs_nats.transitions.claim import Holder, claim, extend
from ojs_nats.transitions.clearance import WAITING, Clearance, drop, move, postpone, remove
from ojs_nats.transitions.deadlines import DEFAULT_LEASE_MS, DEFAULT_TIMEOUT_MS, LIVENESS_MS, expired, next_deadline
from ojs_nats.transitions.due import Liveness, LivenessNeededError, due, expire, needs_liveness
from ojs_nats.transitions.failure import Action, Failure
from ojs_nats.transitions.finish import ack, nack
from ojs_nats.transitions.log import Event, leading_to
from ojs_nats.transitions.manual import (
    Override,
    cancel,
    delete,
    prune,
    reissue,
    reprioritise,
    retry_by_hand,
    retry_discarded,
    retry_now,
    retry_one,
)
from ojs_nats.transitions.push import activate, push, stillborn, waits_at_once
from ojs_nats.transitions.result import Moment, Rearm, Transition

__all__ = [
    "DEFAULT_LEASE_MS",
    "DEFAULT_TIMEOUT_MS",
    "LIVENESS_MS",
    "WAITING",
    "Action",
    "Clearance",
    "Event",
    "Failure",
    "Holder",
    "Liveness",
    "LivenessNeededError",
    "Moment",
    "Override",
    "Rearm",
    "Transition",
    "ack",
    "activate",
    "cancel",
    "claim",
    "delete",
    "drop",
    "due",
    "expire",
    "expired",
    "extend",
    "leading_to",
    "move",
    "nack",
    "needs_liveness",
    "next_deadline",
    "postpone",
    "prune",
    "push",
    "reissue",
    "remove",
    "reprioritise",
    "retry_by_hand",
    "retry_discarded",
    "retry_now",
    "retry_one",
    "stillborn",
    "waits_at_once",
]
