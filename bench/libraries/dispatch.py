"""From a push to the beginning of its handler, on an idle server with an idle worker: `python -m bench.libraries.dispatch`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.libraries.servers import served
from ojs_nats import App
from ojs_nats.client import JobHandle
from ojs_nats.jobs import JobRequest

HERE: Final = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.libraries.dispatch", description=__doc__)
    parser.add_argument("--jobs", type=int, default=400, help="[400]")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between them [0.05]")
    parser.add_argument("--rounds", type=int, default=3, help="[3]")
    given = parser.parse_args()
    print("| over | round | p50 ms | p95 ms | push answered p50 ms |\n| --- | --- | --- | --- | --- |")
    for number in range(given.rounds):
        for way in ("http", "nats"):
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch) / "server"
                folder.mkdir()
                with served("ojs-nats", folder) as found:
                    begun, answered = _measured(found[way], Path(scratch) / "done", given.jobs, given.pause)
            p50, p95 = statistics.median(begun), statistics.quantiles(begun, n=20)[-1]
            print(f"| {way} | {number + 1} | {p50:.2f} | {p95:.2f} | {statistics.median(answered):.2f} |", flush=True)
    return 0


def _measured(url: str, done: Path, jobs: int, pause_s: float) -> tuple[list[float], list[float]]:
    """Milliseconds from each push to its handler, and to its answer."""
    env = {**os.environ, "OJS_URL": url, "JOBS": str(jobs), "DONE": str(done)}
    command = [sys.executable, "-m", "ojs_command", "worker", "contenders.ojs", "--queues", "clock", "--log-level", "warning"]
    worker = subprocess.Popen(command, env=env, cwd=HERE)
    try:
        answered = asyncio.run(_pushed(url, jobs, pause_s))
        return json.loads(done.read_text(encoding="utf-8")), answered
    finally:
        worker.terminate()
        worker.wait()


async def _pushed(url: str, jobs: int, pause_s: float) -> list[float]:
    """The milliseconds to each answer; returns when the last job has ended."""
    answered: list[float] = []
    handles: list[JobHandle[None]] = []
    async with App(url) as app:
        for _ in range(jobs):
            await asyncio.sleep(pause_s)
            began = time.monotonic_ns()
            handles.append(await app.client.push(JobRequest[None]("clock", (began,), {"queue": "clock"})))
            answered.append((time.monotonic_ns() - began) / 1e6)
        await handles[-1].result("30s")
    return answered


if __name__ == "__main__":
    sys.exit(main())
