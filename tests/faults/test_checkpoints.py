"""A worker dies in the middle of a job that saves checkpoints: the next goes on there, and does no step again."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from support import modules
from support.forked import Forked
from support.system import Services
from support.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

STEPS = 9


def stepper(system: Services, number: int, stop: int, folder: Path) -> Forked:
    arguments = (system.url, f"stepper-{number}", "steps", str(STEPS), str(stop), str(folder / "effects"))
    with said(folder, number).open("wb") as output:
        return modules.started("support.stepper", *arguments, output=output)


def said(folder: Path, number: int) -> Path:
    """What a stepper has printed."""
    return folder / f"stepper-{number}.out"


def test_no_step_is_done_again_after_a_worker_was_killed(system: Services, tmp_path: Path) -> None:
    """The first dies alone, the next with the gateway, the third with nats-server."""
    job_id = system.push("stepwise", queue="steps", retry={"max_attempts": 9})["id"]
    killed_at: Final = {2: None, 5: "gateway", 7: "nats-server"}
    for number, (stop, also) in enumerate(killed_at.items()):
        worker = stepper(system, number, stop, tmp_path)
        until(lambda number=number: said(tmp_path, number).read_text(encoding="utf-8") == "stopped\n")  # type: ignore[misc]
        worker.kill()
        assert worker.wait(60) == -9
        if also is not None:
            system.restart(also)
            until(lambda: system.request("GET", "/readyz").status == 200)
    worker = stepper(system, len(killed_at), 0, tmp_path)
    assert worker.wait(60) == 0, said(tmp_path, len(killed_at)).read_text(encoding="utf-8")
    assert (tmp_path / "effects").read_text(encoding="utf-8").split() == [str(step) for step in range(1, STEPS + 1)]
    job = system.job(job_id)
    assert (job["state"], job["attempt"], job["result"]) == ("completed", 4, {"from": 7})
