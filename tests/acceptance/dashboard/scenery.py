"""What is to be seen: something of everything that the dashboard shows."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from support.system import System

MARKUP: Final = "<img src=x onerror=\"console.error('ran')\">"
"""What names may be: they can be printed."""
HOSTILE: Final = f"{MARKUP}\u202egnp.exe\x1b[31m\x07"
"""Text that tries to be markup, to turn the direction of writing, and to colour a terminal."""
LARGEST: Final = 2**63
_WORKER: Final = "worker-1"


class Scenery(NamedTuple):
    """The ids of what was made."""

    waiting: str
    active: str
    completed: str
    dead: str
    scheduled: str
    hostile: str
    workflow: str
    group: str
    evil: str
    evil_flow: str

    @classmethod
    def made(cls, system: System) -> Scenery:
        """Fill a system that is empty; there is maintenance at the end."""

        def ask(method: str, path: str, body: object = None) -> Any:
            answer = system.request(method, f"/ojs/v1{path}", body)
            assert answer.status < 300, (method, path, answer)
            return answer.body

        def push(kind: str, queue: str, *args: object, **options: object) -> str:
            return str(system.push(kind, *args, meta={"tenant": "acme"}, queue=queue, **options)["id"])

        def fetch(queue: str) -> dict[str, Any]:
            [job] = system.fetch(queue, worker_id=_WORKER, wait_ms=10_000)
            return job

        ask("POST", "/workers/heartbeat", {"worker_id": _WORKER, "active_jobs": [], "queues": ["mail"], "hostname": "box"})
        completed = push("mail.send", "mail", "ada@example.org", {"total": LARGEST - 1})
        ask("POST", "/workers/ack", {"job_id": fetch("mail")["id"], "worker_id": _WORKER, "result": {"sent": True}})
        dead = push("mail.send", "mail", "nobody", retry={"max_attempts": 1})
        error = {
            "code": "SmtpError",
            "message": f"no route to host {HOSTILE}",
            "details": {"backtrace": ["File send.py, line 3", HOSTILE]},
        }
        ask("POST", "/workers/nack", {"job_id": fetch("mail")["id"], "worker_id": _WORKER, "error": error})
        active = push("image.scale", "images", "cat.png")
        fetch("images")
        hostile = push("report.make", "reports", HOSTILE, LARGEST, "x" * 900_000, {HOSTILE: [HOSTILE] * 500}, tags=["a<b"])
        waiting = push("report.make", "reports", *range(5))
        scheduled = push("report.make", "reports", scheduled_at="2099-01-01T00:00:00Z")
        for number in range(20):
            push("mail.send", "bulk", number)
        ask("POST", "/queues/bulk/pause")
        ask(
            "POST",
            "/cron",
            {"name": "nightly", "cron": "0 3 * * *", "timezone": "Europe/Berlin", "type": "report.make", "args": []},
        )
        ask("POST", "/cron/nightly/trigger")
        steps = [{"type": "order.check", "args": [1]}, {"type": "order.pay", "args": [1]}, {"type": "order.send", "args": [1]}]
        flow = ask("POST", "/workflows", {"type": "chain", "name": "order", "steps": steps})["workflow"]["id"]
        members = [{"type": "image.scale", "args": [number]} for number in range(60)]
        group = ask("POST", "/workflows", {"type": "group", "name": "gallery", "jobs": members})["workflow"]["id"]
        ask("PUT", "/rate-limits/smtp/override", {"concurrency": 2})
        ask("POST", "/webhooks/subscriptions", {"url": "https://example.org/hook", "events": ["job.discarded"]})
        return cls(waiting, active, completed, dead, scheduled, hostile, flow, group, *_evil(system))


def _evil(system: System) -> tuple[str, str]:
    """Put hostile text wherever the API takes it, and return the ids of a job and a workflow that are full of it."""
    beat = {"worker_id": "evil-worker", "active_jobs": [], "queues": ["evil"], "hostname": HOSTILE}
    system.call("POST", "/workers/heartbeat", beat)
    meta = {HOSTILE: HOSTILE, "long": "y" * 5_000}
    body = {"type": "evil.job", "args": [HOSTILE, LARGEST, -LARGEST, "x" * 1_000], "meta": meta}
    job = system.call("POST", "/jobs", {**body, "options": {"queue": "evil", "tags": [MARKUP], "priority": 9}}, 201)["job"][
        "id"
    ]
    system.fetch("evil", worker_id="evil-worker", wait_ms=10_000)
    held = {"job_id": job, "worker_id": "evil-worker", "attempt": 1}
    system.call("PUT", f"/jobs/{job}/progress", {**held, "progress": 0.5, "message": HOSTILE, "data": {HOSTILE: 1}})
    error = {"code": HOSTILE, "type": HOSTILE, "message": HOSTILE * 50, "backtrace": [HOSTILE] * 100}
    system.call("POST", "/workers/nack", {**held, "error": error})
    steps = [{**body, "options": {"queue": "evil.steps"}}] * 2
    made = system.call("POST", "/workflows", {"type": "chain", "name": MARKUP, "steps": steps}, 201)
    system.call("POST", "/crons", {**body, "name": "evil-cron", "cron": "0 3 * * *"}, 201)
    system.call("POST", "/queues/evil.paused/pause", {"reason": HOSTILE})
    system.call("POST", "/admin/system/maintenance", {"enabled": True, "reason": MARKUP})
    return job, made["workflow"]["id"]
