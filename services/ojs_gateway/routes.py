"""Every path of the API (requirements §2; aliases: clients.md 4.3)."""

from __future__ import annotations

from ojs_gateway.context import Context
from ojs_gateway.dead_letter import DeadLetter
from ojs_gateway.jobs import Jobs
from ojs_gateway.router import Router
from ojs_gateway.system import System
from ojs_gateway.workers import Workers

__all__ = ["router"]


def router(context: Context) -> Router:
    """The routes of one gateway; `/admin/reset` exists in test mode only."""
    system, jobs, workers, dead_letter = System(context), Jobs(context), Workers(context), DeadLetter(context)
    api = {
        ("GET", "/health"): system.health,
        ("POST", "/jobs"): jobs.push,
        ("POST", "/jobs/results"): jobs.results,
        ("POST", "/jobs/fetch"): workers.fetch,
        ("GET", "/jobs/{}"): jobs.read,
        ("DELETE", "/jobs/{}"): jobs.cancel,
        ("POST", "/jobs/{}/cancel"): jobs.cancel,
        ("POST", "/jobs/{}/activate"): jobs.activate,
        ("GET", "/jobs/{}/result"): jobs.result,
        ("POST", "/jobs/{}/ack"): workers.ack,
        ("POST", "/jobs/{}/nack"): workers.nack,
        ("POST", "/jobs/{}/fail"): workers.nack,
        ("POST", "/workers/fetch"): workers.fetch,
        ("POST", "/workers/ack"): workers.ack,
        ("POST", "/workers/nack"): workers.nack,
        ("POST", "/workers/fail"): workers.nack,
        ("POST", "/workers/heartbeat"): workers.heartbeat,
        ("POST", "/workers/beat"): workers.heartbeat,
        ("POST", "/workers/register"): workers.register,
        ("POST", "/workers/deregister"): workers.deregister,
        ("DELETE", "/workers/{}"): workers.deregister,
        ("POST", "/dead-letter/{}/retry"): dead_letter.retry,
        ("DELETE", "/dead-letter/{}"): dead_letter.delete,
    }
    if context.test_mode:
        api["POST", "/admin/reset"] = system.reset
    routes = Router()
    for (method, path), handler in api.items():
        routes.add(method, "/ojs/v1" + path, handler)
    routes.add("GET", "/ojs/manifest", system.manifest)
    routes.add("GET", "/healthz", system.alive)
    for path in ("/readyz", "/health", "/ready"):
        routes.add("GET", path, system.health)
    return routes
