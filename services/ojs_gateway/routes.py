"""Every path of the API (requirements §2; aliases: clients.md 4.3)."""

from __future__ import annotations

from ojs_gateway.admin import Admin
from ojs_gateway.batch import Batch
from ojs_gateway.bulk import Bulk
from ojs_gateway.context import Context
from ojs_gateway.crons import Crons
from ojs_gateway.dead_letter import DeadLetter
from ojs_gateway.events import Events
from ojs_gateway.fleet import Fleet
from ojs_gateway.jobs import Jobs
from ojs_gateway.limits import RateLimits
from ojs_gateway.lists import Lists
from ojs_gateway.measurements import Measurements
from ojs_gateway.operations import Operations
from ojs_gateway.pools import Pools
from ojs_gateway.queues import Queues
from ojs_gateway.router import Handler, Router
from ojs_gateway.system import System
from ojs_gateway.workers import Workers
from ojs_gateway.workflows import Workflows

__all__ = ["router"]


def router(context: Context) -> Router:
    """The routes of one gateway; `/admin/reset` exists in test mode only."""
    system, jobs, workers, dead_letter = System(context), Jobs(context), Workers(context), DeadLetter(context)
    lists, events, measurements = Lists(context), Events(context), Measurements(context)
    queues, batch, bulk = Queues(context), Batch(context), Bulk(context)
    api: dict[tuple[str, str], Handler] = {
        ("GET", "/health"): system.health,
        ("GET", "/metrics"): measurements.summary,
        ("POST", "/jobs"): jobs.push,
        ("POST", "/jobs/batch"): batch.push,
        ("POST", "/jobs/bulk"): bulk.enqueue,
        ("POST", "/jobs/bulk/cancel"): bulk.cancel,
        ("POST", "/jobs/bulk/retry"): bulk.retry,
        ("POST", "/jobs/bulk/delete"): bulk.delete,
        ("POST", "/jobs/results"): jobs.results,
        ("POST", "/jobs/fetch"): workers.fetch,
        ("GET", "/jobs/{}"): jobs.read,
        ("PATCH", "/jobs/{}"): jobs.reprioritise,
        ("PATCH", "/admin/jobs/{}"): jobs.reprioritise,
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
        ("GET", "/workers/{}/health"): workers.health,
        ("GET", "/jobs"): lists.jobs,
        ("GET", "/jobs/{}/events"): events.of_job,
        ("GET", "/queues"): lists.queues,
        ("POST", "/queues"): queues.create,
        ("GET", "/queues/{}"): queues.read,
        ("DELETE", "/queues/{}"): queues.delete,
        ("GET", "/queues/{}/stats"): lists.queue_stats,
        ("GET", "/queues/{}/priority-stats"): lists.priority_stats,
        ("POST", "/queues/{}/purge"): queues.purge,
        ("DELETE", "/admin/queues/{}/jobs"): queues.purge_states,
        ("GET", "/admin/queues"): lists.admin_queues,
        ("GET", "/admin/queues/{}"): queues.read,
        ("GET", "/queues/{}/events"): events.of_queue,
        ("GET", "/events"): events.poll,
        ("GET", "/events/stream"): events.stream,
        ("GET", "/ws"): events.socket,
        ("GET", "/dead-letter"): dead_letter.list,
        ("DELETE", "/dead-letter/{}"): dead_letter.delete,
        ("GET", "/admin/dead-letter"): dead_letter.admin_list,
        ("DELETE", "/admin/dead-letter/{}"): dead_letter.admin_delete,
        ("GET", "/admin/jobs"): lists.admin_jobs,
        ("GET", "/admin/jobs/{}"): lists.detail,
    }
    for prefix in ("/dead-letter", "/admin/dead-letter"):
        api |= {
            ("DELETE", prefix): dead_letter.clear,
            ("POST", f"{prefix}/retry"): dead_letter.retry_all,
            ("POST", f"{prefix}/purge"): dead_letter.purge,
            ("GET", f"{prefix}/stats"): dead_letter.stats,
            ("GET", f"{prefix}/{{}}"): dead_letter.read,
            ("POST", f"{prefix}/{{}}/retry"): dead_letter.retry,
        }
    crons = Crons(context)
    for base in ("/cron", "/crons"):  # the admin UI's plural
        api |= {
            ("POST", base): crons.register,
            ("GET", base): crons.list,
            ("GET", f"{base}/{{}}"): crons.read,
            ("PATCH", f"{base}/{{}}"): crons.patch,
            ("DELETE", f"{base}/{{}}"): crons.delete,
            ("POST", f"{base}/{{}}/trigger"): crons.run,
            ("POST", f"{base}/{{}}/pause"): crons.pause,
            ("POST", f"{base}/{{}}/resume"): crons.resume,
            ("GET", f"{base}/{{}}/history"): crons.history,
        }
    admin, fleet = Admin(context), Fleet(context)
    api |= {
        ("GET", "/admin/stats"): admin.stats,
        ("POST", "/admin/jobs/{}/retry"): admin.retry,
        ("POST", "/admin/jobs/{}/cancel"): admin.cancel,
        ("GET", "/jobs/{}/retries"): admin.retries,
        ("GET", "/admin/jobs/{}/trace"): admin.trace,
        ("GET", "/events/{}/history"): admin.trace,
        ("POST", "/admin/jobs/bulk/retry"): bulk.confirmed_retry,
        ("POST", "/admin/jobs/bulk/cancel"): bulk.confirmed_cancel,
        ("POST", "/admin/jobs/bulk/delete"): bulk.confirmed_delete,
        ("GET", "/admin/workers"): fleet.list,
        ("GET", "/workers"): fleet.list,
        ("POST", "/admin/workers/directive"): fleet.direct_all,
        ("GET", "/admin/workers/{}"): fleet.read,
        ("DELETE", "/admin/workers/{}"): fleet.remove,
        ("POST", "/admin/workers/{}/quiet"): fleet.quiet,
        ("POST", "/admin/workers/{}/directive"): fleet.direct,
    }
    operations = Operations(context)
    api |= {
        ("GET", "/unique-jobs"): lists.unique_jobs,
        ("GET", "/middleware"): operations.middleware,
    }
    for prefix in ("/admin/system", "/admin"):  # the specification's and the admin UI's, the CLI's
        api |= {
            ("GET", f"{prefix}/maintenance"): operations.maintenance,
            ("POST", f"{prefix}/maintenance"): operations.maintain,
            ("GET", f"{prefix}/config"): operations.config,
        }
    workflows = Workflows(context)
    api |= {
        ("POST", "/workflows"): workflows.create,
        ("GET", "/workflows"): workflows.list,
        ("GET", "/workflows/{}"): workflows.read,
        ("DELETE", "/workflows/{}"): workflows.cancel,
        ("POST", "/workflows/{}/cancel"): workflows.cancel,
        ("POST", "/workflows/{}/retry"): workflows.retry,
        ("GET", "/workflows/{}/progress"): workflows.progress,
    }
    for prefix in ("/queues/{}", "/admin/queues/{}"):
        api |= {
            ("POST", f"{prefix}/pause"): queues.pause,
            ("POST", f"{prefix}/resume"): queues.resume,
            ("GET", f"{prefix}/config"): queues.read_config,
            ("PUT", f"{prefix}/config"): queues.configure,
        }
    pools = Pools(context)
    api |= {
        ("GET", "/admin/pools"): pools.list,
        ("GET", "/admin/pools/{}"): pools.read,
        ("PUT", "/admin/pools/{}"): pools.put,
        ("DELETE", "/admin/pools/{}"): pools.delete,
        ("GET", "/admin/scheduling/stats"): pools.stats,
    }
    limits = RateLimits(context)
    api |= {
        ("GET", "/rate-limits"): limits.list,
        ("GET", "/rate-limits/{}"): limits.read,
        ("PUT", "/rate-limits/{}"): limits.override,
        ("PUT", "/rate-limits/{}/override"): limits.override,
        ("DELETE", "/rate-limits/{}/override"): limits.restore,
        ("PUT", "/admin/queues/{}/rate-limit"): queues.limit,
    }
    if context.test_mode:
        api["POST", "/admin/reset"] = system.reset
    routes = Router()
    for (method, path), handler in api.items():
        routes.add(method, "/ojs/v1" + path, handler)
    routes.add("GET", "/ojs/manifest", system.manifest)
    routes.add("GET", "/healthz", system.alive)
    routes.add("GET", "/metrics", measurements.exposition)
    for path in ("/readyz", "/health", "/ready"):
        routes.add("GET", path, system.health)
    return routes
