"""The running system beside a small model: whatever a client does, both answer the same and show the same jobs.

Every example works on queues of its own, so nothing has to be emptied in between. What happens by itself (delays, back-off,
leases, expiry) is waited for where it is made to happen, so that the model always knows what comes next.
"""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from ojs_engine.base.ids import new_job_id
from support.examples import examples
from support.model import ABSENT, LATER, ModelJob, Refusal, Server, shown
from support.system import System
from support.waiting import until

pytestmark = [
    pytest.mark.timeout(600),  # hypothesis makes a failure small for up to five minutes
    pytest.mark.hypothesis,  # it takes what its examples take
]

EXAMPLES = examples(500, costly=True)
ROUND = 25
STEPS = 25
BUDGET_S = 60.0
"""No other round of examples begins after this. An example takes a quarter of a second, on a busy machine many times that."""
LONG_S = 60.0
"""How long a busy machine may take for what is waited for."""
SOON_MS = 25
"""A time that is waited for."""
FAR = "+PT1H"
"""A time that doesn't come here."""
WAITS = st.sampled_from([2, 0, 0])
"""Times waited for in an example: NATS fires its timers up to 250 ms late, and that is what costs time here."""

EXAMPLE = itertools.count(1)
WORKERS = st.sampled_from(["anna", "bert", None])
HOLDERS = st.sampled_from(["the holder", "the holder", "the holder", "anna", None])
PICK = st.integers(0, 50)
Push = tuple[int, int, int, str, str, str]
"""Queue, priority, most attempts, what follows the last, when to try again, and what the job waits for."""
PUSHES: st.SearchStrategy[Push] = st.tuples(
    st.integers(0, 1),
    st.sampled_from([-100, 0, 0, 0, 7, 100]),
    st.integers(0, 3),
    st.sampled_from(["discard", "dead_letter"]),
    st.sampled_from(["soon", "far"]),
    st.sampled_from(["now", "now", "now", "later", "pending", "expires later"]),
)


class Api:
    """One connection to the system, kept open: thousands of small requests are made one after the other."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._connection = HTTPConnection(str(address.hostname), address.port, timeout=LONG_S)

    def __call__(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body)
        headers = {"OJS-Version": "1.0"} if body is None else {"Content-Type": "application/json"}
        try:
            self._connection.request(method, f"/ojs/v1{path}", data, headers)
            with self._connection.getresponse() as response:
                return response.status, json.loads(response.read())
        except BaseException:
            self.close()  # the next request opens another, and hides nothing
            raise

    def close(self) -> None:
        self._connection.close()


class Client(RuleBasedStateMachine):
    """One client of the system `api`, which says everything twice: to the system and to the model."""

    api: Api

    def __init__(self) -> None:
        super().__init__()
        number = next(EXAMPLE)
        self.queues = (f"model-{number}-a", f"model-{number}-b")
        self.server = Server()
        self.waits = 0

    def teardown(self) -> None:
        for job in self.server.jobs.values():
            self.look(job)

    # Asking both

    def expect(self, answer: tuple[int, Any], status: int, decide: Callable[[], Any]) -> Any:
        """The model's answer, if both agree whether the request is refused, and how; None if it is."""
        expected: Any = None
        told: tuple[int, str | None] = (answer[0], answer[1]["error"]["code"] if answer[0] >= 400 else None)
        wanted: tuple[int, str | None] = (status, None)
        try:
            expected = decide()
        except Refusal as refusal:
            wanted = (refusal.status, refusal.code)
        assert told == wanted, answer
        return expected

    def look(self, job: ModelJob) -> None:
        """Both show the same job."""
        status, body = self.api("GET", f"/jobs/{job.id}")
        if job.deleted:
            assert status == 404
        else:
            assert shown(body["job"]) == job.view()

    def wait_for(self, job: ModelJob, state: str) -> None:
        self.waits -= 1

        def reached() -> bool:
            return bool(self.api("GET", f"/jobs/{job.id}")[1]["job"]["state"] == state)

        until(reached, LONG_S, every=0.004)

    def pick(self, number: int, likely: Callable[[ModelJob], bool] = lambda _: True) -> ModelJob:
        """Some job; three times out of four one of the likely ones, if there are any."""
        jobs = list(self.server.jobs.values())
        if number % 4:
            jobs = list(filter(likely, jobs)) or jobs
        return jobs[number % len(jobs)]

    def has_jobs(self) -> bool:
        return bool(self.server.jobs)

    def may_wait(self) -> bool:
        return self.waits > 0

    # Pushing

    def push(self, job: ModelJob, *, soon: bool = False, **more: object) -> bool:
        """Whether it was accepted. A job that waits for a time that comes `soon` may have waited for it already."""
        retry = {
            "max_attempts": job.max_attempts,
            "on_exhaustion": job.on_exhaustion,
            "initial_interval_ms": SOON_MS if job.args == ["soon"] else 3_600_000,
            "max_interval_ms": 3_600_000,
            "backoff_strategy": "constant",
            "jitter": False,
        }
        options = {"queue": job.queue, "priority": job.priority, "retry": retry} | more
        body = {"id": job.id, "type": "model.test", "args": job.args, "options": options}
        answer = self.api("POST", "/jobs", body)
        known = self.server.jobs.get(job.id)
        self.expect(answer, 201, lambda: self.server.push(job))
        if answer[0] != 201:
            return False
        assert known is None or known.deleted
        if soon and answer[1]["job"]["state"] == "available":
            self.server.available(job)
        assert shown(answer[1]["job"]) == job.view()
        return True

    def draft(self, queue: int, state: str = "available", **more: Any) -> ModelJob:
        job_id = new_job_id(int(time.time() * 1000))
        return ModelJob(id=job_id, queue=self.queues[queue], state=state, **more)

    @initialize(waits=WAITS, pushes=st.lists(PUSHES, min_size=2, max_size=5))
    def begin(self, waits: int, pushes: list[Push]) -> None:
        self.waits = waits
        for push in pushes:
            self.push_one(push)

    @rule(push=PUSHES)
    def push_another(self, push: Push) -> None:
        self.push_one(push)

    def push_one(self, push: Push) -> None:
        queue, priority, attempts, exhaustion, retry, kind = push
        if not self.may_wait():
            retry = "far"
        state = {"later": "scheduled", "pending": "pending"}.get(kind, "available")
        job = self.draft(queue, state, priority=priority, max_attempts=attempts, on_exhaustion=exhaustion, args=[retry])
        match kind:
            case "later":
                job.times["scheduled_at"] = LATER
                self.push(job, delay_until=FAR)
            case "pending":
                self.push(job, pending=True)
            case "expires later":
                job.times["expires_at"] = LATER
                self.push(job, expires_at=FAR)
            case _:
                self.push(job)

    @precondition(has_jobs)
    @rule(which=PICK, queue=st.integers(0, 1))
    def push_an_id_again(self, which: int, queue: int) -> None:
        job = self.draft(queue)
        job.id = self.pick(which).id
        self.push(job)

    @precondition(may_wait)
    @rule(queue=st.integers(0, 1))
    def push_for_soon(self, queue: int) -> None:
        job = self.draft(queue, "scheduled", times={"scheduled_at": LATER})
        if self.push(job, soon=True, delay_until=f"+PT{SOON_MS / 1000}S"):
            self.wait_for(job, "available")
            if job.state != "available":
                self.server.available(job)
            self.look(job)

    @precondition(may_wait)
    @rule(queue=st.integers(0, 1), kind=st.sampled_from(["available", "pending", "scheduled"]))
    def push_what_expires_soon(self, queue: int, kind: str) -> None:
        times = {"scheduled_at": LATER} if kind == "scheduled" else {}
        more: dict[str, dict[str, Any]] = {"available": {}, "pending": {"pending": True}, "scheduled": {"delay_until": FAR}}
        job = self.draft(queue, kind, times=times | {"expires_at": LATER})
        if self.push(job, expires_at=f"+PT{SOON_MS / 1000}S", **more[kind]):
            self.wait_for(job, "discarded")
            self.server.expire(job)
            self.look(job)

    # Working

    def fetch(self, queues: tuple[str, ...], count: int, worker: str | None, lease_ms: int) -> list[ModelJob]:
        body = {"queues": queues, "count": count, "worker_id": worker, "visibility_timeout_ms": lease_ms, "wait_ms": 0}
        answer = self.api("POST", "/workers/fetch", body)
        taken: list[ModelJob] = self.expect(answer, 200, lambda: self.server.fetch(queues, count, worker))
        told = [shown(job) for job in answer[1]["jobs"]]
        # What is claimed for so short a time may be over before the answer, which then leaves it out.
        assert told == [job.view() for job in taken] or (lease_ms == SOON_MS and not told)
        return taken

    @rule(order=st.sampled_from([(0,), (1,), (0, 1), (1, 0)]), count=st.integers(1, 4), worker=WORKERS)
    def fetch_some(self, order: tuple[int, ...], count: int, worker: str | None) -> None:
        self.fetch(tuple(self.queues[n] for n in order), count, worker, 600_000)

    @precondition(lambda self: self.may_wait() and self.server.waiting(self.queues))
    @rule(worker=WORKERS)
    def fetch_and_lose(self, worker: str | None) -> None:
        (job,) = self.fetch(self.queues, 1, worker, SOON_MS)
        self.server.lose(job)
        self.wait_for(job, job.state)
        self.look(job)

    @precondition(has_jobs)
    @rule(
        which=PICK,
        holder=HOLDERS,
        attempt=st.sampled_from([None, 0, 0, 0, -1]),
        result=st.sampled_from([ABSENT, None, {"a": 1}]),
    )
    def ack(self, which: int, holder: str | None, attempt: int | None, result: Any) -> None:
        job = self.pick(which, is_active)
        worker = job.worker if holder == "the holder" else holder
        named = None if attempt is None else job.attempt + attempt
        body = {"job_id": job.id, "worker_id": worker, "attempt": named} | ({} if result is ABSENT else {"result": result})
        answer = self.api("POST", "/workers/ack", body)
        if self.expect(answer, 200, lambda: self.server.ack(job.id, worker, named, result)):
            assert answer[1]["state"] == "completed"
            assert shown(answer[1]["job"]) == job.view()

    @precondition(has_jobs)
    @rule(
        which=PICK,
        holder=HOLDERS,
        code=st.sampled_from(["boom", "boom", "RETRY", "DISCARD", "DEAD_LETTER", "FAIL"]),
        action=st.sampled_from([None, None, None, "RETRY", "DEAD_LETTER"]),
        retryable=st.sampled_from([True, True, False]),
        requeue=st.sampled_from([False, False, False, True]),
    )
    def nack(self, which: int, holder: str | None, code: str, action: str | None, retryable: bool, requeue: bool) -> None:
        job = self.pick(which, is_active)
        worker = job.worker if holder == "the holder" else holder
        error = {"code": code, "message": "as the test wants it", "retryable": retryable, "action": action}
        body = {"job_id": job.id, "worker_id": worker, "error": error, "requeue": requeue}
        answer = self.api("POST", "/workers/nack", body)
        if self.expect(answer, 200, lambda: self.server.nack(job.id, worker, None, error | {"requeue": requeue})):
            assert (answer[1]["state"], answer[1]["attempt"]) == (job.state, job.attempt)
            assert shown(answer[1]["job"]) == job.view()
            if job.state == "retryable" and job.args == ["soon"]:
                self.wait_for(job, "available")
                self.server.available(job)
                self.look(job)

    @precondition(has_jobs)
    @rule(which=st.lists(PICK, max_size=4), worker=st.sampled_from(["anna", "bert"]))
    def heartbeat(self, which: list[int], worker: str) -> None:
        ids = sorted({self.pick(number, is_active).id for number in which})
        body = {"worker_id": worker, "active_jobs": ids, "visibility_timeout_ms": 600_000}
        status, answer = self.api("POST", "/workers/heartbeat", body)
        extended, cancelled = self.server.heartbeat(worker, ids)
        assert status == 200
        assert set(answer["jobs_extended"]) == extended
        assert set(answer.get("cancelled_jobs", ())) == cancelled

    # Deciding from outside

    @precondition(has_jobs)
    @rule(which=PICK)
    def cancel(self, which: int) -> None:
        job = self.pick(which)
        before = job.state
        answer = self.api("DELETE", f"/jobs/{job.id}")
        if self.expect(answer, 200, lambda: self.server.cancel(job.id)):
            assert answer[1]["job"]["previous_state"] == before
            assert shown(answer[1]["job"]) == job.view()

    @precondition(has_jobs)
    @rule(which=PICK)
    def activate(self, which: int) -> None:
        job = self.pick(which, lambda job: job.state == "pending")
        answer = self.api("POST", f"/jobs/{job.id}/activate")
        if self.expect(answer, 200, lambda: self.server.activate(job.id)):
            assert shown(answer[1]["job"]) == job.view()

    @precondition(has_jobs)
    @rule(which=PICK)
    def retry(self, which: int) -> None:
        job = self.pick(which, is_dead)
        answer = self.api("POST", f"/dead-letter/{job.id}/retry")
        if self.expect(answer, 200, lambda: self.server.retry(job.id)):
            assert shown(answer[1]["job"]) == job.view()

    @precondition(has_jobs)
    @rule(which=PICK)
    def delete(self, which: int) -> None:
        job = self.pick(which, is_dead)
        answer = self.api("DELETE", f"/dead-letter/{job.id}")
        self.expect(answer, 200, lambda: self.server.delete(job.id))

    @precondition(has_jobs)
    @rule(which=PICK)
    def get(self, which: int) -> None:
        self.look(self.pick(which))

    @rule()
    def get_what_never_was(self) -> None:
        status, body = self.api("GET", f"/jobs/{new_job_id(0)}")
        assert (status, body["error"]["code"]) == (404, "not_found")


def is_active(job: ModelJob) -> bool:
    return job.state == "active"


def is_dead(job: ModelJob) -> bool:
    return job.dead and not job.deleted


@pytest.mark.hypothesis
def test_the_system_does_what_the_model_does(system: System, pytestconfig: pytest.Config) -> None:
    api = Api(system.url)

    class ThisClient(Client):
        pass

    ThisClient.api = api
    drawn = 0 if settings().derandomize else random.SystemRandom().getrandbits(32)
    first = pytestconfig.getoption("--hypothesis-seed") or drawn
    print(f"--hypothesis-seed={first}")  # noqa: T201  # pytest shows it when the test fails
    chance = random.Random(str(first))
    end = time.monotonic() + BUDGET_S
    try:
        for number in range(EXAMPLES // ROUND):
            if number and time.monotonic() > end:
                break
            run_state_machine_as_test(
                seed(chance.getrandbits(64))(ThisClient),
                settings=settings(
                    max_examples=ROUND,
                    stateful_step_count=STEPS,
                    deadline=None,
                    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
                ),
            )
    finally:
        api.close()
