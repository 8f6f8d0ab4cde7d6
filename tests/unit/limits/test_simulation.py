"""The rules of permits, holds and hints, walked through crashes between any two steps, in many random orders.

The world is a model: records with revisions, tokens that come back when they aren't acknowledged, hints that are repeated.
The decisions are the product's own (`ojs_engine.domain.rate_limits`).
"""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Final

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.rate_limits.policy import LimitPolicy
from ojs_engine.domain.transitions import JobHolder as Claimant
from ojs_engine.domain.transitions import Moment
from ojs_features.limits.rules import COMING_MS, LimitRecord, PermitHolder, forgotten, room, standing, taken

Step = Generator[None, None, None]

TOKEN_BACK_MS: Final = 3_000
HINT_BACK_MS: Final = 5_000
LEASE_MS: Final = 20_000


class World:
    """One limited key, its jobs, and processes that advance by single messages."""

    def __init__(self, seed: int, jobs: int, limit: int) -> None:
        self.chance = random.Random(seed)
        self.now = 1_000_000
        self.sequence = 0
        self.ops = 0
        self.policy = LimitPolicy(key="k", concurrency=limit)
        self.jobs: dict[str, tuple[int, Job]] = {}
        self.limit: tuple[int, LimitRecord] = (0, LimitRecord(name="k"))
        self.ready: list[tuple[str, str, int, int]] = []  # job, word, the sequence that its record replaces, invisible until
        self.hold: list[tuple[str, str, int]] = []
        self.hints: list[tuple[str, str, int]] = []  # job, claim, invisible until
        self.running: list[Step] = []
        self.leases: dict[str, int] = {}
        self.most = 0
        for n in range(jobs):
            draft = Job(id=f"j{n}", type="t", args=Raw(b"[]"), state=State.AVAILABLE)
            self.write(f"j{n}", 0, transitions.push(draft, self.moment()).job)
            self.ready.append((f"j{n}", self.jobs[f"j{n}"][1].token or "", 0, 0))

    def moment(self) -> Moment:
        self.ops += 1
        return Moment(self.now, f"op{self.ops}")

    def write(self, job_id: str, expected: int, job: Job) -> bool:
        if (self.jobs[job_id][0] if job_id in self.jobs else 0) != expected:
            return False
        self.sequence += 1
        self.jobs[job_id] = (self.sequence, job)
        active = sum(job.state is State.ACTIVE for _, job in self.jobs.values())
        self.most = max(self.most, active)
        return True

    def swap_limit(self, expected: int, record: LimitRecord) -> bool:
        if self.limit[0] != expected:
            return False
        self.sequence += 1
        self.limit = (self.sequence, record)
        return True

    # What the processes do; each `yield` is a moment at which one may die

    def pruned(self) -> Generator[None, None, tuple[int, LimitRecord, int | None]]:
        """The limit's record without the holders that are over, and when a claim that doesn't come is given up."""
        sequence, record = self.limit
        over: list[PermitHolder] = []
        later: int | None = None
        for holder in record.holders:
            yield
            at, job = self.jobs[holder.job]
            found = standing(holder, at, job, self.now)
            if found == "over":
                over.append(holder)
            elif found == "coming":
                later = min(later or holder.at + COMING_MS, holder.at + COMING_MS)
            elif found == "stuck":
                reissued = transitions.reissue(job, self.moment()).job
                self.ready.append((holder.job, reissued.token or "", at, 0))
                yield
                if self.write(holder.job, at, reissued):
                    over.append(holder)
        return sequence, forgotten(record, over, "prune"), later

    def fetch(self) -> Step:
        visible = [token for token in self.ready if token[3] <= self.now]
        if not visible:
            return
        token = visible[0]
        place = self.ready.index(token)
        self.ready[place] = held = (*token[:3], self.now + TOKEN_BACK_MS)
        yield
        sequence, job = self.jobs[token[0]]
        if job.state is not State.AVAILABLE or job.token != token[1]:
            if sequence != token[2]:  # else it is ahead of its record, and comes back
                self.hints.append(("", "", 0))  # it may have been taken from the hold in another's place
                yield
                self.acked(held)
            return
        moment = self.moment()
        claim = PermitHolder(job.id, moment.op, sequence, self.now)
        while True:
            expected, record = self.limit
            yield
            if not room(record, self.policy, self.now).number:
                expected, record, _ = yield from self.pruned()
            if not room(record, self.policy, self.now).number:
                yield from self.park(held)
                return
            yield
            if self.swap_limit(expected, taken(record, [claim], self.policy, self.now, moment.op)):
                break
        yield
        active = transitions.claim(job, "w", None, replace(moment, now=self.now)).job
        if self.write(job.id, sequence, active):
            self.leases[job.id] = self.now + LEASE_MS
            yield
            self.acked(held)
            yield from self.finish(job.id)

    def park(self, token: tuple[str, str, int, int]) -> Step:
        yield
        self.hold.append(token[:3])
        yield
        _, record, later = yield from self.pruned()
        if room(record, self.policy, self.now).number:
            yield
            self.hints.append(("", "", 0))
        elif later is not None:
            yield
            self.hints.append(("", "", later))
        yield
        self.acked(token)

    def acked(self, token: tuple[str, str, int, int]) -> None:
        if token in self.ready:
            self.ready.remove(token)

    def finish(self, job_id: str) -> Step:
        for _ in range(self.chance.randint(0, 6)):
            yield
        sequence, job = self.jobs[job_id]
        if job.state is not State.ACTIVE:
            return
        claim = next(entry.op for entry in reversed(job.transitions) if entry.event == "claimed")
        self.hints.append((job_id, claim, 0))
        yield
        requeue = self.chance.random() < 0.3 and job.attempt < 3
        moment = self.moment()
        if requeue:
            failure = transitions.Failure(message="no", requeue=True)
            new = transitions.nack(job, failure, Claimant(), moment).job
            self.ready.append((job_id, new.token or "", sequence, 0))
            yield
        else:
            new = transitions.ack(job, Raw(b"1"), Claimant(), moment).job
        self.write(job_id, sequence, new)

    def schedule(self) -> Step:
        visible = [hint for hint in self.hints if hint[2] <= self.now]
        if not visible:
            return
        hint = visible[0]
        place = self.hints.index(hint)
        self.hints[place] = held = (hint[0], hint[1], self.now + HINT_BACK_MS)
        yield
        if hint[0]:
            job = self.jobs[hint[0]][1]
            claims = [entry.op for entry in job.transitions if entry.event == "claimed"]
            if job.state is State.ACTIVE and claims[-1] == hint[1]:  # ahead of its record
                if held in self.hints:
                    self.hints[self.hints.index(held)] = (hint[0], hint[1], self.now + 20)
                return
        _, record, later = yield from self.pruned()
        number = room(record, self.policy, self.now).number
        if not number and later is not None and self.hold:
            yield
            self.hints.append(("", "", later))
        for parked in list(self.hold):
            yield
            at, job = self.jobs[parked[0]]
            if (job.state is State.AVAILABLE and job.token == parked[1]) or at == parked[2]:
                if not number:
                    break
                number -= 1
                self.ready.insert(0, (*parked, 0))
                yield
            if parked in self.hold:
                self.hold.remove(parked)
        yield
        if held in self.hints:
            self.hints.remove(held)

    def reap(self) -> Step:
        late = [job_id for job_id, at in self.leases.items() if at <= self.now and self.jobs[job_id][1].state is State.ACTIVE]
        for job_id in late:
            yield from self.finish(job_id)

    # The walk

    def walk(self, steps: int, crashes: float) -> None:
        for _ in range(steps):
            if len(self.running) < 10 and self.chance.random() < 0.5:
                self.running.append(self.chance.choice((self.fetch, self.fetch, self.schedule, self.reap))())
            if self.running:
                one = self.chance.choice(self.running)
                if self.chance.random() < crashes or next(one, self) is self:
                    self.running.remove(one)
            self.now += self.chance.choice((0, 1, 1, 5))
            if self.chance.random() < 0.01:
                self.now += 2_000

    @property
    def done(self) -> bool:
        return all(job.terminal for _, job in self.jobs.values())


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_the_limit_holds_and_every_job_ends_through_crashes_at_any_step(limit: int) -> None:
    walked = 0
    for seed in range(150):
        world = World(seed, jobs=9, limit=limit)
        world.walk(600, crashes=0.04)
        assert world.most <= limit, seed
        for _ in range(40):  # nobody dies any more, and time goes on
            world.walk(400, crashes=0.0)
            if world.done:
                break
            world.now += 6_000
        assert world.done, (seed, [job.state for _, job in world.jobs.values()], world.hold, world.ready)
        assert world.most <= limit, seed
        walked += world.most == limit
    assert walked > 60  # the limit was reached, so it was tried
