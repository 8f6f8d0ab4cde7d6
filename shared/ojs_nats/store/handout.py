"""Hand-out: which token is next, is it still true, and the claim (architecture §5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import structlog

from ojs_nats import transitions
from ojs_nats.errors import OjsError, unavailable
from ojs_nats.job import Job, State
from ojs_nats.store.api import call
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Committer, Conflict
from ojs_nats.store.durables import Durables
from ojs_nats.store.gate import Candidate, Gate
from ojs_nats.store.jobs import Jobs
from ojs_nats.store.link import Failed, Link, Reply, status
from ojs_nats.store.names import StoreConfig
from ojs_nats.store.pools import Plan, Pools
from ojs_nats.store.queues import Queues
from ojs_nats.store.records import Records, Stored
from ojs_nats.store.wake import Wakes
from ojs_nats.transitions import Transition

__all__ = ["Handout"]

log = structlog.get_logger(__name__)

_PULL_TIMEOUT_S: Final = 2.0
_FALLBACK_LOOK_S: Final = 1.0
_SECOND_LOOK_S: Final = 0.02
"""A wake may come before its token can be pulled, so a look that it led to in vain is repeated once."""
_CONSUMER_NOT_FOUND: Final = frozenset({503, 409})
_FRUITLESS_PULLS: Final = 100

YOUNG_MS: Final = 1_000
"""A token this young may be ahead of its record; it is looked at again for up to `REREAD_S` while others are claimed."""
REREAD_S: Final = 0.25
DROP_AFTER_MS: Final = 60_000
"""A token whose record never came by then belongs to a push that never was."""
PARK_NS: Final = 5_000_000_000


class Token(NamedTuple):
    """A token in hand: what it says, where it came from and how to answer for it."""

    job_id: str
    word: str
    replaces: int
    queue: str
    priority: int
    ack: str
    stored_at: int

    @property
    def data(self) -> bytes:
        return f"{self.job_id} {self.word} {self.replaces}".encode()

    @classmethod
    def of(cls, message: Reply, queue: str) -> Token:
        job_id, word, replaces = message.data.decode().split(" ")
        priority = int(message.subject.split(b".")[3]) - 100
        ack = message.reply.decode()
        return cls(job_id, word, int(replaces), queue, priority, ack, int(ack.split(".")[-2]) // 1_000_000)


class Handout:
    """Fetching: priorities from high to low, first come first served within one, queues left to right."""

    def __init__(
        self,
        bulk: Link,
        jobs: Jobs,
        records: Records,
        committer: Committer,
        clock: ServerClock,
        queues: Queues,
        pools: Pools,
        gate: Gate,
        config: StoreConfig,
    ) -> None:
        self._bulk = bulk
        self._jobs = jobs
        self._queues = queues
        self._pools = pools
        self._gate = gate
        self._records = records
        self._committer = committer
        self._clock = clock
        self._config = config
        self._durables = Durables(bulk, queues, clock, config)
        self._given_up: set[asyncio.Task[None]] = set()
        self.wakes = Wakes(bulk, config)
        queues.went_on = self.wakes.wake_queue

    async def fetch(
        self, queues: Sequence[str], count: int, worker: str | None, lease_ms: int | None, wait_ms: int
    ) -> list[Job]:
        """Claim up to `count` jobs; waits up to `wait_ms` for the first. Returned jobs are active and stored as such."""
        if wait_ms <= 0 or self.wakes.closed:
            return await self._look(queues, count, worker, lease_ms)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_ms / 1000
        waiter = await self.wakes.join(queues)
        try:
            while True:
                woken = waiter.woken
                waiter.clear()
                jobs = await self._look(queues, count, worker, lease_ms)
                left = deadline - loop.time()
                if jobs or left <= 0 or self.wakes.closed:
                    return jobs
                await waiter.wait(min(left, _SECOND_LOOK_S if woken else _FALLBACK_LOOK_S))
        finally:
            await self.wakes.leave(waiter)

    def give_back(self, job: Job, reason: str) -> None:
        """Make a claimed job available again whose fetcher is gone before it heard of it; tried until it succeeds."""
        task = asyncio.create_task(self._give_back(job, reason), name=f"give-back-{job.id}")
        self._given_up.add(task)
        task.add_done_callback(self._given_up.discard)

    async def close(self) -> None:
        """Let those who wait go, and finish what is being given back as far as NATS allows it now."""
        self.wakes.wake_all()
        if self._given_up:
            _, late = await asyncio.wait(self._given_up, timeout=1.0)
            for task in late:
                task.cancel()

    # Looking

    async def _look(self, queues: Sequence[str], count: int, worker: str | None, lease_ms: int | None) -> list[Job]:
        taken: list[Job] = []
        plan = await self._pools.plan(queues, count)
        try:
            if plan is not None:
                await self._look_fairly(plan, taken, count, worker, lease_ms)
                return taken
            for queue in queues:
                taken += await self._look_into(queue, count - len(taken), worker, lease_ms)
                if len(taken) >= count:
                    return taken
        except OjsError:
            if not taken:
                raise
            # What is claimed goes out, since nobody else knows of it; the rest of the tokens come back by themselves.
        return taken

    async def _look_fairly(self, plan: Plan, taken: list[Job], count: int, worker: str | None, lease_ms: int | None) -> None:
        """First each queue's share, then the rest from whichever has more; adds to `taken`."""
        given = dict.fromkeys(plan.shares, 0)
        emptied: list[str] = []
        try:
            for shares in (plan.shares, dict.fromkeys(plan.shares, count)):
                for queue, share in shares.items():
                    wanted = min(share, count - len(taken))
                    if wanted <= 0 or queue in emptied:
                        continue
                    found = await self._look_into(queue, wanted, worker, lease_ms)
                    taken += found
                    given[queue] += len(found)
                    if len(found) < wanted:
                        emptied.append(queue)
        finally:
            plan.past.served(plan.weights, given, emptied)

    async def _look_into(self, queue: str, count: int, worker: str | None, lease_ms: int | None) -> list[Job]:
        """What one queue has, unless it is paused, until its own limit stops it."""
        if await self._queues.held(queue):
            return []
        count = min(count, await self._gate.room(queue))
        taken: list[Job] = []
        pulls = 0
        try:
            for subject in await self._subjects(queue) if count else ():
                while len(taken) < count and (tokens := await self._pull(subject, queue, count - len(taken))):
                    claimed, stopped = await self._claim(queue, tokens, worker, lease_ms)
                    taken += claimed
                    pulls += 1
                    # Whoever has something isn't kept waiting while the jobs of a limited key step aside one by one.
                    if stopped or (not claimed and (taken or pulls >= _FRUITLESS_PULLS)):
                        return taken
        except OjsError:
            if not taken:
                raise
        return taken

    async def _subjects(self, queue: str) -> list[str]:
        """The ready subjects of a queue that hold tokens, in the order of hand-out."""
        stream = self._config.ready_stream
        info = await call(self._bulk, f"STREAM.INFO.{stream}", {"subjects_filter": self._config.ready_of_queue(queue)})
        if "error" in info:
            raise unavailable(f"NATS refused to say what is ready: {info['error'].get('description')}")
        subjects = info["state"].get("subjects") or ()
        return sorted((subject for subject in subjects if not self._config.seat_size(subject)), key=_hand_out_order)

    async def _pull(self, subject: str, queue: str, wanted: int) -> list[Token]:
        consumer = self._config.ready_consumer(subject)
        request = msgspec.json.encode({"batch": wanted, "no_wait": True})
        pull = f"$JS.API.CONSUMER.MSG.NEXT.{self._config.ready_stream}.{consumer}"
        if not await self._durables.ready(subject, queue):
            return []
        made_again = False
        while True:
            outcome = await self._bulk.collect(pull, request, wanted, _PULL_TIMEOUT_S)
            if isinstance(outcome, Failed):
                raise unavailable(f"NATS JetStream can't be reached: {outcome.reason}")
            if outcome.messages:
                if tokens := self._tokens(outcome.messages, queue):
                    return tokens
                continue
            if outcome.closing is None:
                raise unavailable("NATS did not answer a pull")
            if made_again or status(outcome.closing) not in _CONSUMER_NOT_FOUND:
                return []
            # It was idle for an hour and left, its leader moved, or the queue was paused.
            if not await self._durables.make(subject, queue):
                return []
            made_again = True

    def _tokens(self, messages: list[Reply], queue: str) -> list[Token]:
        tokens = []
        for message in messages:
            try:
                tokens.append(Token.of(message, queue))
            except ValueError:
                log.warning("message among the tokens dropped: it is none", subject=message.subject.decode())
                self._bulk.publish(message.reply.decode(), b"+TERM")
        return tokens

    # Claiming

    async def _claim(self, queue: str, tokens: list[Token], worker: str | None, lease_ms: int | None) -> tuple[list[Job], bool]:
        """Judge tokens by their records and claim what they stand for; tokens ahead of their record get a moment.

        What is claimed is returned even if the rest fails: nobody else knows of it. Also says whether the queue's own limit
        has stopped it.
        """
        claimed: dict[str, Job] = {}
        stopped = False
        try:
            stopped = await self._claim_into(claimed, queue, tokens, worker, lease_ms)
        except OjsError:
            if not claimed:
                raise
        ids = dict.fromkeys(token.job_id for token in tokens)  # a token may be there twice, its job is handed out once
        return [claimed[job_id] for job_id in ids if job_id in claimed], stopped

    async def _claim_into(
        self, claimed: dict[str, Job], queue: str, tokens: list[Token], worker: str | None, lease_ms: int | None
    ) -> bool:
        waiting = tokens
        stopped = False
        loop = asyncio.get_running_loop()
        until = loop.time() + REREAD_S
        pause = 0.002
        while waiting:
            found = await self._records.many([token.job_id for token in waiting])
            again: list[Token] = []
            claims: list[tuple[Token, Stored, Job]] = []
            for token in waiting:
                stored = found[token.job_id]
                if stored.job is not None and _stands_for(token, stored.job):
                    claims.append((token, stored, stored.job))
                elif not await self._stale(token, stored):
                    again.append(token)
            unsettled, stopped_now = await self._swap(queue, claims, worker, lease_ms, claimed)
            again += unsettled
            stopped = stopped or stopped_now
            if again and loop.time() >= until:
                for token in again:
                    self._bulk.publish(token.ack, b"-NAK")  # at once, so it keeps its place
                break
            waiting = again
            if waiting:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.05)
        return stopped

    async def _stale(self, token: Token, stored: Stored) -> bool:
        """Answer for a token that needs no second look: its commit can't succeed any more, or it is old and has no job."""
        if not self._records.nearest_is_leader:
            stored = await self._records.leader_for_hint(token.job_id)
        if stored.job is not None and stored.sequence != token.replaces:
            if _stands_for(token, stored.job):
                return False
            await self._gate.missed(stored.job)
            self._ack(token)
            return True
        if self._clock.now() - token.stored_at <= YOUNG_MS:
            return False
        self._park(token)
        return True

    async def _swap(
        self,
        queue: str,
        claims: list[tuple[Token, Stored, Job]],
        worker: str | None,
        lease_ms: int | None,
        claimed: dict[str, Job],
    ) -> tuple[list[Token], bool]:
        """Commit claims together, as far as limits let them through.

        Returns the tokens that have to be looked at again, and whether the queue's own limit has stopped it.
        """
        commits, tokens, stopped = await self._let_through(queue, claims, worker, lease_ms)
        again: list[Token] = []
        failure: OjsError | None = None
        for token, commit, outcome in zip(tokens, commits, await self._committer.commit_all(commits), strict=True):
            job = commit[0].job
            if isinstance(outcome, int):
                if job.state is not State.ACTIVE:
                    await self._gate.missed(job)
                self._ack(token)
                if job.state is State.ACTIVE:
                    claimed[token.job_id] = job
                    self._jobs.cache.put(outcome, job)
            elif isinstance(outcome, Conflict):
                await self._gate.refused(*commit)
                again.append(token)
            else:
                failure = outcome
                if job.state is State.ACTIVE:
                    self.give_back(job, "the claim was not confirmed in time")
        if failure is not None and not claimed:
            raise failure
        return again, stopped

    async def _let_through(
        self, queue: str, claims: list[tuple[Token, Stored, Job]], worker: str | None, lease_ms: int | None
    ) -> tuple[list[tuple[Transition, int, str]], list[Token], bool]:
        """The commits that limits allow, their tokens, and whether the queue's own limit has stopped it."""
        candidates: list[Candidate] = []
        for token, stored, job in claims:
            moment = self._clock.moment()
            if transitions.expired(job, moment.now) is not None:
                transition = transitions.expire(job, moment)
            else:
                transition = transitions.claim(job, worker, lease_ms, moment)
            candidates.append(Candidate(job, transition, moment, stored.sequence, token.data))
        judged = await self._gate.judge(queue, candidates)
        commits: list[tuple[Transition, int, str]] = []
        tokens: list[Token] = []
        stopped = False
        for (token, _, _), candidate, verdict in zip(claims, candidates, judged.verdicts, strict=True):
            if verdict == "held":
                self._ack(token)
            elif verdict == "back":
                self._bulk.publish(token.ack, b"-NAK")  # at once, so it keeps its place
                stopped = True
            else:
                commits.append((verdict, candidate.expects, candidate.moment.op))
                tokens.append(token)
        if judged.opens_at is not None:
            self.wakes.wake_later(queue, (judged.opens_at - self._clock.now()) / 1_000)
        return commits, tokens, stopped

    def _ack(self, token: Token) -> None:
        self._bulk.publish(token.ack, b"+ACK")

    def _park(self, token: Token) -> None:
        """An old token without its record: there is no job yet to reorder, so it may come back later, or not at all."""
        if self._clock.now() - token.stored_at > DROP_AFTER_MS:
            log.warning("token without a job dropped", job_id=token.job_id)
            self._ack(token)
        else:
            self._bulk.publish(token.ack, b'-NAK {"delay": %d}' % PARK_NS)

    async def _give_back(self, job: Job, reason: str) -> None:
        """Undo one claim, and no other: the attempt names it."""
        attempt = job.attempt
        holder = transitions.Holder(worker=job.worker, attempt=attempt)
        failure = transitions.Failure(code="requeued", type="requeued", message=reason, requeue=True)
        pause = 0.1
        while True:
            try:
                await self._jobs.change(job.id, lambda found, moment: transitions.nack(found, failure, holder, moment))
            except OjsError as error:
                if error.code in {"conflict", "not_found"}:  # the claim was never stored, or is somebody else's by now
                    return
                await asyncio.sleep(pause)
                pause = min(pause * 2, 5.0)
            else:
                log.info("claimed job given back", job_id=job.id, attempt=attempt, reason=reason)
                return


def _stands_for(token: Token, job: Job) -> bool:
    return (
        job.state is State.AVAILABLE and job.token == token.word and job.queue == token.queue and job.priority == token.priority
    )


def _hand_out_order(subject: str) -> tuple[int, bool]:
    parts = subject.split(".")
    return -int(parts[3]), len(parts) == 4  # `front` before its own priority
