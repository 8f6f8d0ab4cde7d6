"""Coordinators are killed again and again while workflows run; every step and callback is still created exactly once."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from support.examples import examples
from support.recorder import session
from support.system import Services
from support.waiting import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

WORKFLOWS = examples(60, least=15)
KILLS = 5
WORKERS = 4


def job(name: str) -> dict[str, Any]:
    return {"type": name, "args": [], "options": {"queue": "wf", "retry": {"max_attempts": 1}}}


def definition(number: int) -> tuple[dict[str, Any], int]:
    """A workflow and the number of jobs that it takes; some of them fail on purpose, to be called back for."""
    jobs = [job(f"j{index}") for index in range(6)]
    nested: dict[str, Any] = {"type": "chain", "steps": [jobs[0], {"type": "group", "jobs": jobs[1:5]}, jobs[5]]}
    called = {"on_complete": job("done"), "on_failure": job("alarm"), "on_success": job("praise")}
    kinds: list[tuple[dict[str, Any], int]] = [
        ({"type": "chain", "steps": jobs}, 6),
        ({"type": "group", "jobs": jobs}, 6),
        ({"type": "batch", "jobs": jobs, "callbacks": called}, 8),
        ({"type": "batch", "jobs": [*jobs[1:], job("bad")], "callbacks": called}, 8),
        (nested, 6),
    ]
    return kinds[number % len(kinds)]


async def test_steps_are_created_once_while_coordinators_are_killed(system: Services, seed: int) -> None:
    chance = random.Random(seed)
    fetched: Counter[str] = Counter()
    steps: Counter[tuple[str, str]] = Counter()
    async with session(system.url) as http:

        async def ask(method: str, path: str, body: object = None) -> Any:
            async with http.request(method, f"/ojs/v1{path}", json=body) as answer:
                assert answer.status < 300, await answer.text()
                return await answer.json(content_type=None)

        expected: dict[str, int] = {}
        for number in range(WORKFLOWS):
            body, jobs = definition(number)
            expected[(await ask("POST", "/workflows", body))["workflow"]["id"]] = jobs

        async def work() -> None:
            while True:
                found = await ask("POST", "/workers/fetch", {"queues": ["wf"], "count": 3, "wait_ms": 200, "worker_id": "w"})
                for one in found["jobs"]:
                    fetched[one["id"]] += 1
                    steps[one["workflow_id"], one["type"]] += 1
                    await asyncio.sleep(chance.uniform(0, 0.03))
                    if one["type"] == "bad":
                        error = {"code": "no", "message": "on purpose", "retryable": False}
                        await ask("POST", "/workers/nack", {"job_id": one["id"], "error": error})
                    else:
                        await ask("POST", "/workers/ack", {"job_id": one["id"], "result": one["type"]})

        workers = [asyncio.create_task(work()) for _ in range(WORKERS)]
        for number in range(1, KILLS + 1):
            due = sum(expected.values()) * number // (KILLS + 1)
            await eventually(lambda due=due: len(fetched) >= due)  # type: ignore[misc]
            await asyncio.to_thread(system.restart, "coordinator")

        async def all_have_ended() -> bool:
            while running and (await ask("GET", f"/workflows/{running[-1]}/progress"))["workflow"]["state"] == "completed":
                running.pop()
            return not running

        running = list(expected)
        await eventually(all_have_ended)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

        async def all_are_told() -> bool:
            found = (await ask("GET", "/events?types=workflow.completed&limit=1000"))["events"]
            return Counter(event["data"]["workflow_id"] for event in found) == Counter(expected)

        assert not [name for name, times in fetched.items() if times > 1], "no job was handed out twice"
        assert not [step for step, times in steps.items() if times > 1], "no step was created twice"
        assert Counter(name for name, _ in steps.elements()) == Counter(expected), "no step is missing"
        expected = dict.fromkeys(expected, 1)
        await eventually(all_are_told)
