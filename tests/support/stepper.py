"""A worker that works in steps, as a process of its own: `python stepper.py URL WORKER_ID QUEUE STEPS STOP EFFECTS`.

It fetches one job, goes on from its checkpoint, and does each step by appending its number to the file EFFECTS, then saves
the checkpoint. After step STOP it waits to be killed; without one (0) it acknowledges the job, and ends.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from support.system import send

LEASE_MS = 2_000


def main(url: str, worker_id: str, queue: str, steps: int, stop: int, effects: Path) -> None:
    base = f"{url}/ojs/v1"
    body = {"queues": [queue], "worker_id": worker_id, "visibility_timeout_ms": LEASE_MS, "wait_ms": 1_000}
    while not (jobs := send("POST", f"{base}/workers/fetch", body).body.get("jobs")):  # a server may be busy: 503
        pass
    [job] = jobs
    done = job["checkpoint"]["state"]["done"] if "checkpoint" in job else 0
    mine = {"worker_id": worker_id, "attempt": job["attempt"]}
    for step in range(done + 1, steps + 1):
        with effects.open("a", encoding="utf-8") as file:
            file.write(f"{step}\n")
        saved = send("PUT", f"{base}/jobs/{job['id']}/checkpoint", {"state": {"done": step}, "step_index": step} | mine)
        assert saved.status == 200, saved
        if step == stop:
            sys.stdout.write("stopped\n")
            sys.stdout.flush()
            time.sleep(3_600)
    acked = send("POST", f"{base}/workers/ack", {"job_id": job["id"], "result": {"from": done}} | mine)
    assert acked.status == 200, acked


if __name__ == "__main__":
    _, to, me, named, number, last, file = sys.argv
    main(to, me, named, int(number), int(last), Path(file))
