"""A worker as a process of its own: `python worker.py URL WORKER_ID QUEUE COUNT LEASE_MS`.

It registers, fetches until it holds COUNT jobs, beats every second and never finishes any. Each line it prints is one
JSON object: `{"held": [{"id": …, "attempt": …}]}` once, then `{"extended": […]}` for every heartbeat.
"""

from __future__ import annotations

import json
import sys
import time

from support.system import send

BEAT_S = 1.0


def main(url: str, worker_id: str, queue: str, count: int, lease_ms: int) -> None:
    send("POST", f"{url}/ojs/v1/workers/register", {"worker_id": worker_id, "queues": [queue], "concurrency": count})
    held: list[dict[str, object]] = []
    while len(held) < count:
        body = {"queues": [queue], "count": count, "worker_id": worker_id, "visibility_timeout_ms": lease_ms}
        jobs = send("POST", f"{url}/ojs/v1/workers/fetch", body).body["jobs"]
        held += [{"id": job["id"], "attempt": job["attempt"]} for job in jobs]
    say({"held": held})
    while True:
        body = {"worker_id": worker_id, "active_jobs": [job["id"] for job in held], "visibility_timeout_ms": lease_ms}
        say({"extended": send("POST", f"{url}/ojs/v1/workers/heartbeat", body).body["jobs_extended"]})
        time.sleep(BEAT_S)


def say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _, to, me, named, wanted, lease = sys.argv
    main(to, me, named, int(wanted), int(lease))
