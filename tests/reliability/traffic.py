"""Producers and workers of a run: everything that the server promises something about, side by side, into one ledger."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Final

from ojs_engine.base.ids import new_job_id
from reliability.ledger import Asked, Flow, Hold, Kind, Ledger, Verdict
from reliability.web import Answer, Web

LEASE_S: Final = 5.0
RETRY_S: Final = 0.3
CONCURRENCY: Final = 3
KEY_CONCURRENCY: Final = 2
RATE: Final = 20
RATE_S: Final = 2.0
BOUND: Final = 40
_BATCH: Final = 15
_CRONS: Final = {"every-second": 1.0, "every-other": 2.0}
_PATIENT: Final = 0.7
"""The part of clients that repeat what got no answer until they have one. The others never learn it."""
_OPEN_AT_MOST: Final = 150
"""Requests of producers under way at once: an outage must not pile them up without end."""
_MIXED: Final = ("mixed-a", "mixed.b", "unique", "flows", "ticks", "groups", "three-at-once", "keyed")
_PACED: Final = ("rated", "bounded")
_RETRY: Final = {
    "max_attempts": 50,
    "initial_interval_ms": round(RETRY_S * 1000),
    "max_interval_ms": round(RETRY_S * 1000),
    "backoff_strategy": "constant",
    "jitter": False,
}
_QUEUES: Final[dict[Kind, str]] = {
    Kind.UNIQUE: "unique",
    Kind.CONCURRENT: "three-at-once",
    Kind.KEYED: "keyed",
    Kind.RATED: "rated",
    Kind.BOUNDED: "bounded",
    Kind.BATCH: "groups",
    Kind.BULK: "groups",
    Kind.STEP: "flows",
    Kind.TICK: "ticks",
}
_SINGLE: Final = {
    Kind.PLAIN: 40,
    Kind.DELAYED: 15,
    Kind.UNIQUE: 10,
    Kind.CONCURRENT: 8,
    Kind.KEYED: 8,
    Kind.RATED: 7,
    Kind.BOUNDED: 6,
}
_MANY: Final = {Kind.BATCH: 2, Kind.BULK: 2, Kind.STEP: 3}
"""Requests that ask for several jobs at once, in proportion to the others."""


Step = Callable[[], Coroutine[Any, Any, object]]


class Traffic:
    """`rate` requests of producers a second, and `workers` that take what comes. `seed` decides what they do."""

    def __init__(self, web: Web, ledger: Ledger, seed: int, *, rate: float = 40.0, workers: int = 12) -> None:
        self._web = web
        self.ledger = ledger
        self._chance = random.Random(seed)
        self._rate = rate
        self._workers = workers
        self._over = False
        self._idle = False

    async def begin(self) -> None:
        """Set up queues with limits and cron entries."""
        for name, config in (
            ("three-at-once", {"concurrency": CONCURRENCY}),
            ("rated", {"rate_limit": {"limit": RATE, "period": f"PT{RATE_S:g}S"}}),
            ("bounded", {"max_size": BOUND}),
        ):
            answer = await self._web.insist("POST", "/ojs/v1/queues", {"name": name, "config": config})
            assert answer.done or answer.status == 409, answer
        for name, every_s in _CRONS.items():
            body: dict[str, Any] = {"name": name, "cron": f"@every {every_s:g}s", "overlap_policy": "allow"}
            body |= {"type": "reliability", "args": [Kind.TICK, name], "options": {"queue": "ticks", "retry": _RETRY}}
            answer = await self._web.insist("POST", "/ojs/v1/cron", body)
            assert answer.done, answer
            self.ledger.crons[name] = every_s

    async def run(self, disturb: Step, settled: Step) -> None:
        """Keep the system busy while `disturb` runs, then let the workers go on until `settled` returns."""
        async with asyncio.TaskGroup() as group:
            producing = group.create_task(self._produce())
            for number in range(self._workers):
                group.create_task(self._work(f"worker-{number}", _MIXED, paced=False))
            for number in range(2):
                group.create_task(self._work(f"paced-{number}", _PACED, paced=True))
            try:
                await disturb()
            finally:
                self._over = True
            await producing
            for name in self.ledger.crons:
                await self._web.insist("POST", f"/ojs/v1/cron/{name}/pause", {})
            await settled()
            self._idle = True

    # Producers

    async def _produce(self) -> None:
        under_way: set[asyncio.Task[None]] = set()
        kinds = _SINGLE | _MANY
        began = time.monotonic()
        number = 0
        async with asyncio.TaskGroup() as group:
            while not self._over:
                number += 1
                await asyncio.sleep(max(0.0, began + number / self._rate - time.monotonic()))
                if len(under_way) >= _OPEN_AT_MOST:
                    began = time.monotonic() - number / self._rate  # what was held up isn't made up for
                    continue
                task = group.create_task(self._ask_for(self._chance.choices(list(kinds), list(kinds.values()))[0]))
                under_way.add(task)
                task.add_done_callback(under_way.discard)

    async def _ask_for(self, kind: Kind) -> None:
        match kind:
            case Kind.STEP:
                await self._flow()
            case Kind.BATCH:
                await self._batch()
            case Kind.BULK:
                await self._bulk()
            case _:
                await self._single(kind)

    def _job(self, kind: Kind, group: str | None = None) -> tuple[Asked, dict[str, Any]]:
        queue = _QUEUES.get(kind) or self._chance.choice(_MIXED[:2])
        now = time.time()
        asked = Asked(job_id=new_job_id(int(now * 1000)), kind=kind, queue=queue, sent=now, group=group)
        options: dict[str, Any] = {"queue": queue, "retry": _RETRY}
        match kind:
            case Kind.DELAYED:
                asked.not_before = round(now + self._chance.uniform(0.3, 4.0), 3)
                options["delay_until"] = _timestamp(asked.not_before)
            case Kind.UNIQUE:
                asked.key = f"unique-{self._chance.randrange(12)}"
                options["unique"] = {"keys": ["type", "args"]}
            case Kind.KEYED:
                asked.key = f"key-{self._chance.randrange(3)}"
                options["rate_limit"] = {"key": asked.key, "concurrency": KEY_CONCURRENCY}
            case _:
                pass
        return asked, {"id": asked.job_id, "type": "reliability", "args": [kind, asked.key], "options": options}

    async def _single(self, kind: Kind) -> None:
        asked, body = self._job(kind)
        self.ledger.asked[asked.job_id] = asked
        answer, tries = await self._repeated("/ojs/v1/jobs", body)
        self._settle(asked, answer, tries, asked.job_id)

    async def _batch(self) -> None:
        group = f"batch-{new_job_id(int(time.time() * 1000))}"
        jobs = [self._job(Kind.BATCH, group) for _ in range(_BATCH)]
        self.ledger.asked.update({asked.job_id: asked for asked, _ in jobs})
        answer, tries = await self._repeated("/ojs/v1/jobs/batch", {"jobs": [body for _, body in jobs]})
        for asked, _ in jobs:
            self._settle(asked, answer, tries, jobs[0][0].job_id)

    async def _bulk(self) -> None:
        """Jobs without ids of the client's own: the idempotency key makes it safe to repeat."""
        key = f"bulk-{new_job_id(int(time.time() * 1000))}"
        options = {"queue": _QUEUES[Kind.BULK], "retry": _RETRY}
        jobs = [{"type": "reliability", "args": [Kind.BULK, key, number], "options": options} for number in range(_BATCH)]
        self.ledger.bulks[key] = (_BATCH, Verdict.OPEN)
        patient = self._chance.random() < _PATIENT
        while not (there := await self._all_there({"jobs": jobs, "idempotency_key": key})) and patient:
            await self._web.pause()
        if there:
            self.ledger.bulks[key] = (_BATCH, Verdict.DONE)
            self.ledger.pushed.append(time.time())

    async def _all_there(self, body: object) -> bool:
        """Push in bulk; True if the answer says that each of the jobs is there."""
        answer = await self._web.post("/ojs/v1/jobs/bulk", body)
        self._note(answer, "bulk push")
        return answer.done and all(item["status"] in {"created", "duplicate"} for item in answer.body["items"])

    async def _flow(self) -> None:
        now = time.time()
        flow_id = new_job_id(int(now * 1000))
        body, steps, after = _shape(flow_id, self._chance.randrange(4))
        flow = Flow(flow_id=flow_id, steps=steps, after=after, sent=now)
        self.ledger.flows[flow_id] = flow
        answer, _ = await self._repeated("/ojs/v1/workflows", body)
        # 409 says that it is there: nobody else uses this id.
        if answer.done or answer.status == 409:
            flow.verdict = Verdict.DONE
            self.ledger.pushed.append(time.time())
        elif answer.sure:
            flow.verdict = Verdict.REFUSED
            self.ledger.failures.append(f"workflow {flow_id}: {answer}")

    async def _repeated(self, path: str, body: object) -> tuple[Answer, int]:
        """Ask until the outcome is known, or just once; the last answer, and how often it was asked."""
        patient = self._chance.random() < _PATIENT
        tries = 0
        while True:
            tries += 1
            answer = await self._web.post(path, body)
            self._note(answer, path)
            if answer.sure or not patient:
                return answer, tries
            await self._web.pause()

    def _note(self, answer: Answer, what: str) -> None:
        if answer.status == 500:
            self.ledger.failures.append(f"{what}: {answer.body}")

    def _settle(self, asked: Asked, answer: Answer, tries: int, own: str) -> None:
        now = time.time()
        taken = answer.status == 409 and answer.body["error"].get("details", {}).get("existing_job_id") == own
        if answer.done or taken:
            asked.verdict, asked.answered = Verdict.DONE, now
            self.ledger.pushed.append(now)
        elif answer.sure and tries == 1:
            asked.verdict, asked.answered = Verdict.REFUSED, now

    # Workers

    async def _work(self, name: str, queues: tuple[str, ...], *, paced: bool) -> None:
        """Fetch some, handle them at the same time, and so on. `paced` asks without waiting, now and then."""
        chance = random.Random(self._chance.getrandbits(64))
        while not self._idle:
            order = chance.sample(queues, len(queues))
            wait_ms = 0 if paced else chance.choice([0, 200, 1_000])
            body = {"queues": order, "count": chance.randint(1, 6), "worker_id": name, "wait_ms": wait_ms}
            asked = time.time()
            answer = await self._web.post("/ojs/v1/workers/fetch", body | {"visibility_timeout_ms": LEASE_S * 1000})
            got = time.time()
            if not answer.done:
                await self._web.pause()
                continue
            holds = [_hold(job, name, asked, got) for job in answer.body["jobs"]]
            self.ledger.holds += holds
            await asyncio.gather(*(self._handle(hold, chance) for hold in holds))
            if paced:
                await asyncio.sleep(chance.uniform(0.05, 0.3))

    async def _handle(self, hold: Hold, chance: random.Random) -> None:
        drawn = chance.random()
        await asyncio.sleep(chance.uniform(0.0, 0.05))
        if drawn < 0.04:
            await self._finish(hold, "nack")
        elif drawn < 0.05 and not self._over:
            await asyncio.sleep(LEASE_S + chance.uniform(0.5, 1.5))  # away for so long that the job is another's
            await self._finish(hold, "ack")
        elif drawn < 0.06:
            await self._hold_on(hold, chance)
        else:
            await self._finish(hold, "ack")

    async def _hold_on(self, hold: Hold, chance: random.Random) -> None:
        """Work that takes longer than the lease, kept by heartbeats."""
        for _ in range(chance.randint(4, 6)):
            await asyncio.sleep(LEASE_S / 4)
            sent = time.time()
            body = {"worker_id": hold.worker, "active_jobs": [hold.job_id], "visibility_timeout_ms": LEASE_S * 1000}
            answer = await self._web.post("/ojs/v1/workers/heartbeat", body)
            if answer.done and hold.job_id in answer.body["jobs_extended"]:
                hold.lease_ends = max(hold.lease_ends, sent + LEASE_S / 2)  # docs/adr/016: or it isn't renewed yet
        await self._finish(hold, "ack")

    async def _finish(self, hold: Hold, op: str) -> None:
        body: dict[str, Any] = {"job_id": hold.job_id, "worker_id": hold.worker, "attempt": hold.attempt}
        if op == "ack":
            body["result"] = result_of(hold)
        else:
            body["error"] = {"code": "boom", "message": "as the run wants it"}
            hold.retry_s = RETRY_S
        hold.finish, hold.finish_sent = op, time.time()
        tries = 0
        while True:
            tries += 1
            answer = await self._web.post(f"/ojs/v1/workers/{op}", body)
            self._note(answer, op)
            if answer.sure:
                break
            await self._web.pause()
        if answer.done:
            hold.verdict = Verdict.DONE
        elif tries == 1:
            hold.verdict = Verdict.REFUSED


def result_of(hold: Hold) -> str:
    """What an ack reports, so that the record shows whose it was."""
    return f"{hold.worker}#{hold.attempt}"


def _hold(job: dict[str, Any], worker: str, asked: float, got: float) -> Hold:
    kind, key = Kind(job["args"][0]), job["args"][1]
    return Hold(
        job_id=job["id"],
        attempt=job["attempt"],
        worker=worker,
        kind=kind,
        key=key,
        asked=asked,
        got=got,
        lease_ends=asked + LEASE_S,
    )


def _shape(flow_id: str, number: int) -> tuple[dict[str, Any], tuple[str, ...], tuple[tuple[str, str], ...]]:
    """One of four workflows: its definition, the names of its steps, and which come after which."""

    def step(name: str) -> dict[str, Any]:
        return {"type": name, "args": [Kind.STEP, flow_id], "options": {"queue": _QUEUES[Kind.STEP], "retry": _RETRY}}

    a, b, c = step("a"), step("b"), step("c")
    match number:
        case 0:
            return {"id": flow_id, "type": "chain", "steps": [a, b, c]}, ("a", "b", "c"), (("a", "b"), ("b", "c"))
        case 1:
            return {"id": flow_id, "type": "group", "jobs": [a, b, c]}, ("a", "b", "c"), ()
        case 2:
            called = {"on_complete": step("done"), "on_success": step("praise"), "on_failure": step("alarm")}
            after = tuple((first, last) for first in "ab" for last in ("done", "praise"))
            return {"id": flow_id, "type": "batch", "jobs": [a, b], "callbacks": called}, ("a", "b", "done", "praise"), after
        case _:
            steps = [{"id": one["type"], **one} for one in (a, b, c, step("d"))]
            steps[2]["depends_on"] = ["a", "b"]
            steps[3]["depends_on"] = ["c"]
            return {"id": flow_id, "steps": steps}, ("a", "b", "c", "d"), (("a", "c"), ("b", "c"), ("c", "d"))


def _timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
