"""What there is behind keys: one of each thing that a role may change."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from support.guarded import Guarded

BEAT: Final = {"worker_id": "worker-1", "active_jobs": [], "queues": ["mail"]}


class Stage(NamedTuple):
    """What there is behind keys."""

    waiting: str
    dead: str
    workflow: str

    @classmethod
    async def made(cls, guarded: Guarded) -> Stage:
        async def ask(method: str, path: str, body: object = None) -> Any:
            status, answer, _ = await guarded.ask(method, path, body, token=guarded.tokens["admin"])
            assert status < 300, (method, path, answer)
            return answer

        job = {"type": "mail.send", "args": ["s3cret"], "options": {"queue": "mail", "retry": {"max_attempts": 1}}}
        dead = (await ask("POST", "/jobs", job))["job"]["id"]
        await ask("POST", "/workers/heartbeat", BEAT)
        await ask("POST", "/workers/fetch", {"queues": ["mail"], "worker_id": "worker-1", "wait_ms": 10_000})
        await ask("POST", "/workers/nack", {"job_id": dead, "error": {"code": "no", "message": "s3cret"}})
        waiting = (await ask("POST", "/jobs", job))["job"]["id"]
        await ask("POST", "/jobs", {**job, "type": "image.scale", "options": {"queue": "images"}})
        flow = (await ask("POST", "/workflows", {"type": "chain", "steps": [job, job]}))["workflow"]["id"]
        await ask("PUT", "/rate-limits/smtp/override", {"concurrency": 2})
        await ask("POST", "/crons", {"name": "nightly", "cron": "0 3 * * *", "type": "report.make", "args": []})
        await ask("POST", "/webhooks/subscriptions", {"url": "https://example.org/hook", "events": ["job.discarded"]})
        return cls(waiting, dead, flow)
