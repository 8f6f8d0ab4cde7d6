"""Statistics for official clients."""

from __future__ import annotations

from typing import Any, Final

from ojs_api.statistics import Statistics, SystemStats
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import members
from ojs_features.statistics.totals import AskedStats
from ojs_index.asking.messages import WorkerPage
from ojs_index.asking.numbers import QueuePage, Totals
from ojs_index.lists.fleet import fleet_summary, worker_answer
from ojs_index.lists.lately import latest

_STATES_SHOWN: Final = ("available", "active", "scheduled", "retryable")


def _plain(answer: AskedStats) -> SystemStats:
    return answer.stats


def _for_cli(answer: AskedStats) -> dict[str, Any]:
    """`queues` and `workers` are objects, and with `detail` the queues are listed; rates are whole numbers, too."""
    stats = answer.stats
    throughput = members(stats.throughput) | {
        "completed_per_min": round(stats.throughput.processed_per_minute),
        "failed_per_min": round(stats.throughput.failed_per_minute),
    }
    queues = {"total": stats.queues, "active": stats.queues - answer.paused, "paused": answer.paused}
    return members(stats) | {
        "queues": queues if answer.queues is None else answer.queues,
        "workers": fleet_summary(answer.workers),
        "throughput": throughput,
    }


def metrics(totals: Totals, queues: QueuePage, workers: WorkerPage) -> dict[str, Any]:
    """Return the event `metrics` of the statistics stream for the admin UI; `error_rate` is in percent of what ended."""
    last = latest(totals)
    ended = last.completed + last.discarded
    return {
        "queues": [
            {"queue": queue.name} | {state: getattr(queue.counts, state) for state in _STATES_SHOWN} for queue in queues.queues
        ],
        "throughput": {
            "processed_per_second": round(totals.throughput_per_second, 3),
            "failed_per_second": round(totals.failed_per_second, 3),
            "enqueued_per_second": round(totals.pushed_per_second, 3),
        },
        "workers": {
            "total": fleet_summary(workers.summary).active,
            "active": [
                {
                    "id": worker.id,
                    "state": worker.state,
                    "activeJobs": worker.active_jobs,
                    "lastHeartbeatAt": worker.last_heartbeat_at,
                }
                for worker in (worker_answer(row, None) for row in workers.workers)
            ],
        },
        "error_rate": round(100 * last.discarded / ended, 3) if ended else 0.0,
    }


def _with_data_points(answer: Statistics) -> dict[str, Any]:
    points = [members(point) | {"completed": point.processed} for point in answer.data]
    return members(answer) | {"data_points": points}


SHAPES: Final[Shapes] = {
    Statistics: {"cli": _with_data_points},
    AskedStats: {"standard": _plain, "sdk": _plain, "cli": _for_cli, "ui": _plain},
}
