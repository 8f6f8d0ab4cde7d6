"""Records of webhooks, and how they change. Times are Unix milliseconds."""

from __future__ import annotations

from typing import Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from ojs_api import words
from ojs_api.webhooks import PauseReason
from ojs_engine.base.errors import OjsError
from ojs_engine.base.extensions import Extensions
from ojs_engine.base.numbers import At, Whole
from ojs_engine.domain.transitions import Moment
from ojs_features.webhooks.rules import Verdict

ROTATION_MS: Final = 24 * 3_600_000
"""How long deliveries are signed with the old secret, too (ojs-webhooks §8.3)."""
_PAUSE_AFTER: Final = 50
_PAUSE_AFTER_MS: Final = 24 * 3_600_000

DeliveryStatus = words.DeliveryStatus


class Owner(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The key that has a subscription's events brought, and whether it may see what jobs carry."""

    id: str
    name: str
    payloads: bool = False


class Subscription(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where events go to: stored under `webhook.<id>`, with its secrets, which deliveries are signed with.

    `since` is the sequence of the event stream that the first event comes after. What is empty of `events`, `queues` and
    `job_types` admits all.
    """

    id: str
    url: str
    events: tuple[str, ...]
    queues: tuple[str, ...] = ()
    job_types: tuple[str, ...] = ()
    metadata: Raw = Raw(b"{}")
    extensions: Extensions = {}
    active: bool = True
    paused: PauseReason | None = None
    """Why the server has set `active` to false; None if a client has."""
    owner: Owner | None = None
    """None where no key was needed, and in records of versions that didn't note it."""
    secret: str
    old_secret: str | None = None
    old_until: At = 0
    since: Whole = 0
    created_at: At = 0
    updated_at: At = 0
    op: str = ""
    deleted: bool = False

    @property
    def hides(self) -> bool:
        """Whether its events are brought without what jobs carry."""
        return self.owner is not None and not self.owner.payloads

    def secrets(self, now: int) -> tuple[str, ...]:
        """Return the secrets that a delivery is signed with now, the newest first."""
        if self.old_secret is None or now >= self.old_until:
            return (self.secret,)
        return (self.secret, self.old_secret)

    def paused_by(self, reason: PauseReason, moment: Moment) -> Subscription | None:
        """Without further deliveries until a client sets `active` again; None if it has none anyway."""
        return self.changed(moment, active=False, paused=reason) if self.active else None

    def changed(self, moment: Moment, **members: object) -> Subscription:
        """The next revision."""
        return replace(self, updated_at=moment.now, op=moment.op, **members)

    def ended(self, moment: Moment) -> Subscription:
        """Return the record that stays for a while after the deletion, without secrets."""
        return self.changed(moment, deleted=True, active=False, secret="", old_secret=None)

    def rotated(self, secret: str, moment: Moment) -> Subscription:
        """Return the record with a new secret. The old one counts for `ROTATION_MS`."""
        return self.changed(moment, secret=secret, old_secret=self.secret, old_until=moment.now + ROTATION_MS)


class TargetHealth(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How deliveries of a subscription have gone: stored under `target.<id>`. Counts are of attempts, but for `dead`."""

    succeeded: Whole = 0
    failed: Whole = 0
    dead: Whole = 0
    in_a_row: Whole = 0
    """Failures since the last success."""
    failing_since: At = 0
    """When the first of them was; 0 without any."""
    last_at: At = 0
    last_status: Whole = 0
    """HTTP status of the last answer, 0 if there was none."""
    op: str = ""

    def noted(self, tally: Tally, moment: Moment) -> TargetHealth:
        """Return the record with the counts of a process since it last wrote them."""
        since = self.failing_since if not tally.succeeded and self.failing_since else tally.failing_since
        return TargetHealth(
            succeeded=self.succeeded + tally.succeeded,
            failed=self.failed + tally.failed,
            dead=self.dead + tally.dead,
            in_a_row=tally.in_a_row + (0 if tally.succeeded else self.in_a_row),
            failing_since=since,
            last_at=moment.now,
            last_status=tally.last_status,
            op=moment.op,
        )

    def given_up(self, changed_at: int, now: int) -> bool:
        """Whether nothing has gone through for so long that the subscription, last changed at `changed_at`, is paused.

        A change is a new beginning: what is resumed, or led elsewhere, has as much time again.
        """
        return self.in_a_row >= _PAUSE_AFTER and now - max(self.failing_since, changed_at) >= _PAUSE_AFTER_MS


class Tally(Struct, kw_only=True):
    """Counts of one process about a subscription between two writes of its `TargetHealth`."""

    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    in_a_row: int = 0
    failing_since: int = 0
    last_status: int = 0

    def count(self, status: int, now: int, *, success: bool) -> None:
        """Count an attempt."""
        self.last_status = status
        if success:
            self.succeeded += 1
            self.in_a_row = self.failing_since = 0
        else:
            self.failed += 1
            self.in_a_row += 1
            self.failing_since = self.failing_since or now

    @property
    def empty(self) -> bool:
        return not self.succeeded and not self.failed


class DeliveryRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event that did not go through at the first attempt, with the event itself: kept for seven days.

    While it is `failing` it is its own timer; a `dead` one, or one that was `delivered` later, is stored under
    `delivery.<subscription>.<id>` (docs/adr/050).
    """

    id: str
    subscription_id: str
    event_id: str
    event_type: str
    event: Raw
    status: DeliveryStatus = "failing"
    attempts: Whole = 0
    created_at: At
    updated_at: At
    next_at: At = 0
    """When it is tried again; 0 unless it is `failing`."""
    last_status: Whole = 0
    error: str = ""

    def after(self, status: int, error: str, verdict: Verdict, now: int) -> DeliveryRecord:
        """How it stands after another attempt, which was answered so."""
        outcome = verdict.outcome
        return replace(
            self,
            status="failing" if outcome == "again" else outcome,
            attempts=self.attempts + 1,
            updated_at=now,
            next_at=now + verdict.delay_ms if outcome == "again" else 0,
            last_status=status,
            error=error,
        )

    def check_dead(self) -> None:
        """Whether a client may have it tried again. Raises OjsError conflict."""
        if self.status != "dead":
            raise OjsError(
                "conflict",
                f"delivery {self.id} is {self.status}; only a dead one can be tried again",
                hint="A failing one is tried again by itself.",
                canonical="DELIVERY_NOT_DEAD",
            )
