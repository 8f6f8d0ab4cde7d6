"""A worker dies in the middle of a job that saves checkpoints: the next goes on there, and does no step again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import support.stepper
from support.system import System, environment
from support.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

STEPS = 9


def stepper(system: System, number: int, stop: int, effects: Path) -> subprocess.Popen[str]:
    tests = str(Path(support.stepper.__file__).parents[1])
    arguments = (system.url, f"stepper-{number}", "steps", str(STEPS), str(stop), str(effects))
    return subprocess.Popen(
        [sys.executable, "-m", "support.stepper", *arguments],
        env=environment(PYTHONPATH=tests),
        stdout=subprocess.PIPE,
        text=True,
    )


def test_no_step_is_done_again_after_a_worker_was_killed(system: System, tmp_path: Path) -> None:
    """The first dies alone, the next with the gateway, the third with nats-server."""
    job_id = system.push("stepwise", queue="steps", retry={"max_attempts": 9})["id"]
    effects = tmp_path / "effects"
    killed_at: Final = {2: None, 5: "gateway", 7: "nats-server"}
    for number, (stop, also) in enumerate(killed_at.items()):
        worker = stepper(system, number, stop, effects)
        assert worker.stdout is not None
        with worker, worker.stdout:
            assert worker.stdout.readline() == "stopped\n"
            worker.kill()
        assert worker.returncode == -9
        if also is not None:
            system.wait_restarted(also, system.kill_child(also))
            until(lambda: system.request("GET", "/readyz").status == 200)
    worker = stepper(system, len(killed_at), 0, effects)
    with worker:
        assert worker.wait(60) == 0
    assert effects.read_text(encoding="utf-8").split() == [str(step) for step in range(1, STEPS + 1)]
    job = system.job(job_id)
    assert (job["state"], job["attempt"], job["result"]) == ("completed", 4, {"from": 7})
