"""Pure rules of deliveries: signatures, what an answer means, when the next attempt is (ojs-webhooks §5, §7, §8)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from ojs_engine.base.ids import derived_job_id

DELAYS_MS: Final = (30_000, 120_000, 600_000, 3_600_000, 14_400_000, 43_200_000, 86_400_000)
"""From each failed attempt to the next; after the one behind the last a delivery is dead (ojs-webhooks §7.2)."""
OWN: Final = "webhook."
"""How the types of events about webhooks begin: they are not delivered, or each delivery would be followed by another."""

_LONGEST_WAIT_S: Final = 86_400
_GONE: Final = 410
_TOO_MANY: Final = 429


class Verdict(NamedTuple):
    """The outcome of an attempt. `delay_ms` is for `again`; `gone`: the target wants nothing any more."""

    outcome: Literal["delivered", "again", "dead"]
    delay_ms: int = 0
    gone: bool = False


def judge(status: int, attempt: int, retry_after_s: int | None = None) -> Verdict:
    """Return what an HTTP status (0: no answer) means at the `attempt`th try, counted from 1 (ojs-webhooks §7.1).

    A redirect counts as a failure that may pass: it isn't followed (docs/adr/050).
    """
    if 200 <= status < 300:
        return Verdict("delivered")
    if 400 <= status < 500 and status != _TOO_MANY:
        return Verdict("dead", gone=status == _GONE)
    if attempt > len(DELAYS_MS):
        return Verdict("dead")
    delay = DELAYS_MS[attempt - 1]
    if status == _TOO_MANY and retry_after_s is not None:
        delay = min(retry_after_s, _LONGEST_WAIT_S) * 1_000
    return Verdict("again", delay)


def signature(secrets: Sequence[str], timestamp_s: int, body: bytes) -> str:
    """The header `X-OJS-Signature`: one signature for each secret, separated by commas (ojs-webhooks §8.1, §8.3)."""
    signed = b"%d." % timestamp_s + body
    return ",".join(f"sha256={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}" for secret in secrets)


def delivery_id(subscription_id: str, event_id: str, at: int) -> str:
    """Return the id of a delivery, the same for every attempt to send an event to a subscription (ojs-webhooks §7.5).

    The event was stored `at` (Unix ms). Ids of later events come after it.
    """
    return f"del_{derived_job_id(at, 'delivery', subscription_id, event_id)}"
