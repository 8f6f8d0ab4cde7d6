"""Jobs that wait for a permit of a key, and whoever lets them go on (architecture §5, docs/adr/014).

A token whose key has no permit left moves to `ojs.hold.<queue>.<key>.<priority>`, where nobody fetches it; one that had been
let go before, to `….front`, so that it keeps its place.
`ojs.step.limit.<scope>.<what>` is the hint to look whether held tokens can go on: ahead of every end of a claim that holds a
permit, after a token was held though there is room by then, after a stale token of a limited key was dropped, and as a timer
when time alone makes room.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ojs_nats import crossings, metrics
from ojs_nats import limits as pure
from ojs_nats.errors import unavailable
from ojs_nats.job import Job, State
from ojs_nats.limits import Hit, Holder, Policy
from ojs_nats.store.api import Message, delete, message, put, subjects_of
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.crossings import Crossings
from ojs_nats.store.limits import LOOK, Limits, key_of_scope
from ojs_nats.store.link import Failed, Link
from ojs_nats.store.names import StoreConfig
from ojs_nats.store.records import Records
from ojs_nats.store.swap import Alarm, Swapper
from ojs_nats.store.tokens import read_token

__all__ = ["Held"]

_AHEAD_MS: Final = 60_000
"""A hint whose claim still runs after this long was ahead of a commit that failed."""
_SOON_MS: Final = 20
_LATEST_MS: Final = 1_000
_MOST: Final = 1_000
"""Tokens that one hint moves."""
_NEAR_MS: Final = 5_000
"""A look that is due so soon is asked for by this process as well: timers of one limit fire a quarter of a second apart."""


class Held:
    """Puts tokens aside and moves them on; any number of processes may do either."""

    def __init__(
        self,
        link: Link,
        records: Records,
        limits: Limits,
        reached: Crossings,
        clock: ServerClock,
        config: StoreConfig,
    ) -> None:
        self._link = link
        self._records = records
        self._limits = limits
        self._reached = reached
        self._clock = clock
        self._config = config
        self._swapper = Swapper(link, records, config.records_stream)
        self._near: dict[str, tuple[int, asyncio.TimerHandle]] = {}
        """By scope, when this process asks for a look."""

    # Putting aside

    async def hold(self, scope: str, policy: Policy, job: Job, data: bytes, *, front: bool) -> None:
        """Put a token aside until its key has a permit; returns when somebody is sure to look at it then.

        One that comes from the `front` has waited before, and keeps its place: two looks may let more go than can start.
        """
        await put(self._link, self._config.hold(scope, job.priority, job.queue, front=front), data, None, "a token")
        _, _, room, later = await self._limits.judge(scope, policy)
        if room.hit is None:
            await self._limits.hint(scope)
            return
        untold = await self.stopped(scope, None, room.hit)
        if (at := _first(room.at, later, untold)) is not None:
            await self._wake_at(scope, at)

    async def count(self, scope: str) -> int:
        """Tokens that wait for a permit of a key."""
        return sum((await self._subjects(scope)).values())

    async def stopped(self, scope: str, queue: str | None, hit: Hit) -> int | None:
        """Note that a limit holds jobs up, of a key or of a `queue`; when that can be told if it is too soon now."""
        name = queue or key_of_scope(scope)
        metrics.LIMITED.labels(hit.strategy).inc()
        told = hit._asdict()
        return await self._reached.note(
            scope, "exceeded", lambda old, moment: crossings.exceeded(old, name, queue, told, moment)
        )

    def known_stopped(self, scope: str) -> bool:
        """Whether this process has seen it noted that a limit holds jobs up."""
        return self._reached.level(scope) == "exceeded"

    async def freed(self, scope: str, job_id: str | None) -> None:
        """Note that no job waits for a limit any more; the last that did was `job_id`."""
        await self._reached.note(scope, "calm", lambda old, moment: crossings.released(old, job_id, moment))

    async def _wake_at(self, scope: str, at: int) -> None:
        alarm = Alarm(self._config.limit_timer(scope, str(at)), self._config.limit_step(scope, LOOK), at)
        await self._swapper.set(alarm)
        left = at - self._clock.now()
        known = self._near.get(scope)
        if left > _NEAR_MS or (known is not None and known[0] <= at):
            return
        if known is not None:
            known[1].cancel()
        self._near[scope] = at, asyncio.get_running_loop().call_later(max(left, 0) / 1_000, self._ask, scope)

    def _ask(self, scope: str) -> None:
        """Ask for a look now. If that is lost, the timer asks a little later."""
        del self._near[scope]
        self._link.publish(self._config.limit_step(scope, LOOK), b"")

    # Moving on

    async def look(self, scope: str, ended: str, data: bytes, at: int) -> int | None:
        """Act on a hint: None when it is done with, or in how many ms to look again because its record isn't there yet.

        `ended` and `data` are the job and the claim that were about to end, `at` is when the hint was stored.
        """
        if data:
            job = (await self._records.leader_for_hint(ended)).job
            age = self._clock.now() - at
            if job is not None and job.state is State.ACTIVE and _claim_of(job) == data.decode() and age < _AHEAD_MS:
                return min(max(_SOON_MS, age), _LATEST_MS)
        if scope.startswith("queue."):
            self._link.publish(self._config.wake_for_limit(scope), b"")
        else:
            await self._move(scope)
        return None

    async def _move(self, scope: str) -> None:
        """Let as many held tokens go on as there are permits, by priority and age."""
        subjects = await self._subjects(scope)
        if not subjects:
            return
        _, record = await self._limits.read(scope)
        _, _, room, later = await self._limits.judge(scope, record.policy)
        left = min(room.number, _MOST)
        looked_at = 0
        last: str | None = None
        for subject in sorted(subjects, key=_order):
            while left and (token := await self._next(subject)) is not None:
                looked_at += 1
                if (moved := await self._move_one(subject, token)) is not None:
                    left -= 1
                    last = moved
        if looked_at >= sum(subjects.values()):
            await self.freed(scope, last)
        elif not left:  # there are more, for which time alone makes room once those have started
            gone = [Holder("", "", 0, self._clock.now())] * min(room.number, _MOST)
            started = pure.taken(record, gone, record.policy, self._clock.now(), "")
            after = pure.room(started, record.policy, self._clock.now()) if gone else room
            untold = None if after.hit is None else await self.stopped(scope, None, after.hit)
            if (wake := _first(after.at, later, untold)) is not None:
                await self._wake_at(scope, wake)

    async def _move_one(self, subject: str, token: Message) -> str | None:
        """Move a token, or drop it if its job has gone on; the id of a job that takes a permit."""
        job_id, word, replaces = read_token(token.data)
        stored = await self._records.leader_for_hint(job_id)
        job = stored.job
        good = job is not None and job.state is State.AVAILABLE and job.token == word
        if good or stored.sequence == replaces:
            await put(self._link, self._config.ready_of_hold(subject), token.data, None, "a token")
        answer = await delete(self._link, self._config.ready_stream, token.seq)
        if isinstance(answer, Failed):
            raise unavailable(f"NATS JetStream can't be reached: {answer.reason}")
        return job_id if good else None

    async def _next(self, subject: str) -> Message | None:
        return await message(self._link, self._config.ready_stream, {"seq": 1, "next_by_subj": subject}, "tokens")

    async def _subjects(self, scope: str) -> dict[str, int]:
        return await subjects_of(self._link, self._config.ready_stream, self._config.hold_of(scope))


def _claim_of(job: Job) -> str | None:
    return next((entry.op for entry in reversed(job.transitions) if entry.event == "claimed"), None)


def _first(*times: int | None) -> int | None:
    return min((at for at in times if at is not None), default=None)


def _order(subject: str) -> tuple[int, bool]:
    return -int(subject.split(".")[4]), not subject.endswith(".front")
