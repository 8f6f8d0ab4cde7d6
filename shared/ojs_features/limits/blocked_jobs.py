"""Jobs that wait for a permit of a key, and moving them on (docs/adr/014).

Tokens whose key has no permit left move to `ojs.hold.<queue>.<key>.<priority>`, where nobody fetches them; those that had been
let go before, to `….front`, so that they keep their places.
`ojs.step.limit.<scope>.<what>` is the note to look whether held tokens can go on: ahead of every end of a claim that holds a
permit, after a token was held though there is room by then, after a stale token of a limited key was dropped, and as a timer
when time alone makes room.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from ojs_engine.domain.job import Job, State
from ojs_engine.domain.rate_limits.policy import LimitPolicy, policy_of
from ojs_engine.domain.threshold_alerts import Threshold
from ojs_engine.domain.transitions import claim_of
from ojs_engine.jetstream.api import delete, heard, put_all
from ojs_engine.jetstream.contents import message, messages, sequence_of, subjects_of
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.tokens import read_token
from ojs_engine.store.records.writer import alarm
from ojs_engine.store.threshold_alerts import ThresholdAlerts
from ojs_features.limits import rules
from ojs_features.limits.metrics import LIMITED
from ojs_features.limits.permits import LOOK, QUEUE_SCOPE, Permits, key_of_scope
from ojs_features.limits.rules import Hit, PermitHolder
from ojs_features.limits.subjects import Subjects
from ojs_link.timings import Timings

_PAGE: Final = 250


class BlockedJob(NamedTuple):
    """A job that has to wait, with what its token says, and whether that came from the `front`."""

    job: Job
    data: bytes
    front: bool


class _Held(NamedTuple):
    """A token on hold, by its sequence in the ready stream."""

    seq: int
    data: bytes


class BlockedJobTimings(Timings, frozen=True, kw_only=True):
    """How much of a key's backlog is checked, and when."""

    at_once: int = 1_000
    """Tokens that one note checks."""
    ahead_ms: int = 60_000
    """A note whose claim still runs after this long was ahead of a commit that failed."""
    soon_ms: int = 20
    """The shortest time until a check of a limit whose claim may be ahead of its record."""
    latest_ms: int = 1_000
    """The longest."""
    near_ms: int = 5_000
    """A look that is due so soon is asked for by this process as well: timers of one limit fire a quarter of a second
    apart.
    """


class BlockedJobs:
    """Holds tokens and moves them on; any number of processes may do either."""

    def __init__(self, bucket: Bucket, permits: Permits, alerts: ThresholdAlerts, limits: BlockedJobTimings) -> None:
        self._limits = limits
        self._nats = bucket.nats
        self._records = bucket.records
        self._permits = permits
        self._alerts = alerts
        self._clock = bucket.clock
        self._config = bucket.config
        self._subjects = Subjects(bucket.config)
        self._writer = bucket.writer
        self._near: dict[str, tuple[int, asyncio.TimerHandle]] = {}
        """By scope, when this process asks for a look."""

    # Holding

    async def hold(self, scope: str, policy: LimitPolicy, waiting: Sequence[BlockedJob]) -> None:
        """Hold tokens until their key has a permit; returns when a scheduler is sure to check them then.

        One that comes from the `front` has waited before, and keeps its place: two looks may let more go than can
        start.
        """
        places = [(self._subjects.hold(scope, job.priority, job.queue, front=front), data) for job, data, front in waiting]
        await put_all(self._nats, places, "tokens")
        sequence, _, room, later = await self._permits.judge(scope, policy)
        if not sequence:  # so that a scheduler knows the policy, and an operator the key
            await self._permits.remember(scope, policy)
        if room.hit is None:
            await self._permits.send_note(scope)
            return
        await self.stopped(scope, None, room.hit, len(waiting))
        if (at := _first(room.at, later)) is not None:
            await self._wake_at(scope, at)

    async def count(self, scope: str) -> int:
        """Tokens that wait for a permit of a key."""
        return sum((await subjects_of(self._nats, self._config.ready_stream, self._subjects.hold_of(scope))).values())

    async def stopped(self, scope: str, queue: str | None, hit: Hit, jobs: int = 1) -> None:
        """Note that a limit holds jobs up, of a key or of a `queue`."""
        LIMITED.labels(hit.strategy).inc(jobs)
        await self._alerts.exceeded(_threshold(scope, queue), hit._asdict())

    def known_stopped(self, scope: str) -> bool:
        """Return whether this process has seen it announced that a key's limit holds jobs up."""
        return self._alerts.level(_threshold(scope)) == "exceeded"

    async def freed(self, scope: str, queue: str | None, job_id: str | None) -> None:
        """Note that no job waits for a limit any more, of a key or of a `queue`; the last that did was `job_id`."""
        await self._alerts.released(_threshold(scope, queue), job_id)

    async def _wake_at(self, scope: str, at: int) -> None:
        look = alarm(self._subjects.timer(scope, str(at)), self._config.note("limit", scope, LOOK), at)
        await self._writer.set(look)
        left = at - self._clock.now()
        known = self._near.get(scope)
        if left > self._limits.near_ms or (known is not None and known[0] <= at):
            return
        if known is not None:
            known[1].cancel()
        self._near[scope] = at, asyncio.get_running_loop().call_later(max(left, 0) / 1_000, self._ask, scope)

    def _ask(self, scope: str) -> None:
        """Ask for a look now. If that is lost, the timer asks a little later."""
        del self._near[scope]
        self._nats.publish(self._config.note("limit", scope, LOOK), b"")

    # Moving on

    async def look(self, scope: str, ended: str, data: bytes, at: int) -> int | None:
        """Act on a note: None when it is done with, or in how many ms to look again because its record isn't there yet.

        `ended` and `data` are the job and the claim that were about to end, `at` is when the note was stored.
        """
        if data:
            job = (await self._records.leader_for_hint(ended)).job
            age = self._clock.now() - at
            if job is not None and job.state is State.ACTIVE and claim_of(job) == data.decode() and age < self._limits.ahead_ms:
                return min(max(self._limits.soon_ms, age), self._limits.latest_ms)
        if scope.startswith(QUEUE_SCOPE):
            self._nats.publish(self._config.wake_for_room(scope.removeprefix(QUEUE_SCOPE)), b"")
        else:
            await self._move(scope)
        return None

    async def _move(self, scope: str) -> None:
        """Let as many held tokens go on as there are permits, by priority and age."""
        subjects = await subjects_of(self._nats, self._config.ready_stream, self._subjects.hold_of(scope))
        if not subjects:
            return
        order = sorted(subjects, key=_order)
        _, record = await self._permits.read(scope)
        policy = record.policy if record.op else await self._policy_of_first(order[0])
        _, _, room, later = await self._permits.judge(scope, policy)
        most = left = min(room.number, self._limits.at_once)
        looked_at = 0
        last: str | None = None
        for subject in order:
            while left and looked_at < self._limits.at_once and (page := await self._page(subject, min(left, _PAGE))):
                looked_at += len(page)
                moved = await self._move_all(subject, page)
                left -= len(moved)
                last = moved[-1] if moved else last
        if looked_at >= sum(subjects.values()):
            await self.freed(scope, None, last)
            return
        after = room
        if gone := [PermitHolder("", "", 0, self._clock.now())] * (most - left):
            started = rules.taken(record, gone, policy, self._clock.now(), "")
            after = rules.room(started, policy, self._clock.now())
        if after.hit is None:  # there are more than one look moves
            await self._permits.send_note(scope)
            return
        await self.stopped(scope, None, after.hit)
        if (wake := _first(after.at, later)) is not None:  # time alone makes room once those have started
            await self._wake_at(scope, wake)

    async def _policy_of_first(self, subject: str) -> LimitPolicy:
        """Return the policy of the first held job: the limit's record is not there yet, or was forgotten."""
        page = await self._page(subject, 1)
        job = (await self._records.leader_for_hint(read_token(page[0].data)[0])).job if page else None
        return (policy_of(job) if job is not None else None) or LimitPolicy()

    async def _move_all(self, subject: str, tokens: Sequence[_Held]) -> list[str]:
        """Move tokens, in order, or drop those whose jobs have gone on; the ids of jobs that take a permit."""
        said = [read_token(token.data) for token in tokens]
        found = await self._records.surely([job_id for job_id, _, _ in said])
        moved: list[str] = []
        onward: list[tuple[str, bytes]] = []
        for token, (job_id, word, replaces) in zip(tokens, said, strict=True):
            stored = found[job_id]
            good = stored.job is not None and stored.job.state is State.AVAILABLE and stored.job.token == word
            if good:
                moved.append(job_id)
            if good or stored.sequence == replaces:
                onward.append((self._subjects.ready_of_hold(subject), token.data))
        await put_all(self._nats, onward, "tokens")
        for answer in await asyncio.gather(*(delete(self._nats, self._config.ready_stream, token.seq) for token in tokens)):
            heard(answer)
        return moved

    async def _page(self, subject: str, number: int) -> list[_Held]:
        """The first of a subject's tokens, as the leader has them: a look that misses one might be the last."""
        if self._config.replicas == 1:
            which = {"seq": 1, "next_by_subj": subject, "batch": number}
            read, _ = await messages(self._nats, self._config.ready_stream, which, "tokens")
            return [_Held(sequence_of(token), token.data) for token in read]
        found: list[_Held] = []
        following = 1
        while len(found) < number:
            which = {"seq": following, "next_by_subj": subject}
            token = await message(self._nats, self._config.ready_stream, which, "tokens")
            if token is None:
                break
            found.append(_Held(token.seq, token.data))
            following = token.seq + 1
        return found


def _first(*times: int | None) -> int | None:
    return min((at for at in times if at is not None), default=None)


def _threshold(scope: str, queue: str | None = None) -> Threshold:
    return Threshold(queue or key_of_scope(scope), queue)


def _order(subject: str) -> tuple[int, bool]:
    return -int(subject.split(".")[4]), not subject.endswith(".front")
