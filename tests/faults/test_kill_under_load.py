"""Processes are killed again and again under load; no promise to a client may break, and nobody has to lend a hand."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.examples import amount, examples
from support.history import Fault, Outcome
from support.load import Load
from support.recorder import session
from support.system import Services, System, send
from support.verdict import judge
from support.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

ROUNDS = examples(4, least=1)
"""In each round every process is killed once, in an order of the round's own, and then all of them at the same time."""
KILLS = 5 * ROUNDS
PATIENCE_S = 20.0
"""Longer than a lease, a supervisor's pause and a round of the safety net together."""
PRODUCERS, WORKERS = 3, 6
"""Each producer pushes 20 jobs a second, and a worker has one in its hands nearly always: every kill meets some of each."""


@pytest.fixture
def system(tmp_path: Path) -> Iterator[Services | System]:
    """With `all` it is `ojs-nats dev`, which starts again what was killed. Else the test does, for a third of the CPU."""
    ground = System if amount() == "all" else Services
    with ground.started(tmp_path / "system") as system:
        yield system


async def test_no_promise_breaks_while_processes_are_killed(system: Services | System, seed: int) -> None:
    chance = random.Random(seed)
    async with session(system.url) as http:
        load = Load(http, seed, producers=PRODUCERS, workers=WORKERS)

        async def disturb() -> None:
            everybody = sorted(system.children)
            for _ in range(ROUNDS):
                for victims in (*([victim] for victim in chance.sample(everybody, len(everybody))), everybody):
                    await asyncio.sleep(chance.uniform(0.5, 1.5))
                    load.history.faults.append(await asyncio.to_thread(kill, system, victims))

        await load.run(disturb)
        finals = await load.drain(PATIENCE_S)
    print(load.history.summary(finals))  # noqa: T201
    violations = judge(load.history, finals)
    assert not violations, f"{len(violations)} violations\n" + "\n".join(map(str, violations[:20]))
    # What nobody was told to be done may have lost a hint that the safety net has to replace; nothing else may.
    undecided = {call.job_id for call in load.history.calls if call.outcome is Outcome.UNKNOWN}
    assert {line["job_id"] for line in system.events("a lost hint was issued again")} <= undecided
    assert tracebacks(system) == []
    assert len(load.history.faults) >= KILLS
    assert len(load.history.plans) > 125 * ROUNDS, "the load was too small to prove anything"


def tracebacks(system: Services | System) -> list[str]:
    """What the services logged about errors that they did not expect."""
    return [line for line in system.output.splitlines() if '"exception"' in line or line.startswith("Traceback")]


def kill(system: Services | System, victims: list[str]) -> Fault:
    """SIGKILL processes and wait until the system is ready again."""
    started = time.time()
    system.restart(*victims)

    def ready() -> bool:
        try:
            return send("GET", f"{system.url}/readyz", seconds=3.0).status == 200
        except OSError:
            return False

    until(ready)
    return Fault("+".join(victims), started, time.time())
