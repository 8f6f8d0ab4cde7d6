"""Cron entries (docs/cron.md)."""

from __future__ import annotations

from typing import Final

from ojs_core.api.common import PAGED, PUSH_REFUSALS
from ojs_core.api.route import Parameter, Part, Route
from ojs_core.api.schema import FLAG, Schema, one_of, record, text, whole
from ojs_core.domain.cron.record import OVERLAPS
from ojs_core.wire.crons.answers import CronComing, CronHistory, CronPage, CronPreview, DeletedCron, OneCron, TriggeredCron
from ojs_core.wire.crons.requests import MOST_COMING
from ojs_gateway.handlers.crons import CronHandlers


def _paths(operation_id: str, method: str, below: str = "") -> tuple[str, ...]:
    return f"{method} /cron{below} {operation_id}", f"{method} /crons{below}"  # the admin UI's plural


_SCHEDULE: Final = text("Five or six fields, an alias such as @daily, or @every with a duration.")
_CHANGES: Final[dict[str, Schema]] = {
    **dict.fromkeys(("cron", "expression", "schedule"), _SCHEDULE),
    "timezone": text("An IANA zone; UTC if left out."),
    "overlap_policy": one_of(*OVERLAPS),
    "enabled": FLAG,
    "description": text(most=1_000),
    "job_template": record({}, about="A job as it is pushed, without an id; `args` may be left out.", free=True),
}
_REQUEST: Final = record(
    {"name": text(pattern=r"^[a-z0-9][a-z0-9.\-]*$", most=255)},
    _CHANGES,
    free=True,
    about="One of `cron`, `expression` and `schedule`. The job's members stand in `job_template`, or beside `name`.",
)
_REFUSALS: Final = tuple(code for code in PUSH_REFUSALS if code not in {"duplicate", "queue_full"})
_KNOWN: Final = ("not_found", "conflict")

CRONS: Final = Part(
    "Cron",
    "Jobs on a schedule",
    (
        Route(
            CronHandlers,
            CronHandlers.register,
            _paths("registerCronJob", "POST"),
            "configure",
            "Register a cron entry",
            {200: OneCron, 201: OneCron},
            "201 for a new one, 200 for one that was there and is replaced.",
            body=_REQUEST,
            errors=_REFUSALS,
            narrowing="body",
            besides=("enqueue",),
        ),
        Route(
            CronHandlers,
            CronHandlers.list,
            _paths("listCronJobs", "GET"),
            "read",
            "List cron entries",
            {200: CronPage},
            "By name.",
            query=(Parameter("enabled", FLAG), *PAGED),
            narrowing="entry",
        ),
        Route(
            CronHandlers,
            CronHandlers.read,
            _paths("getCronJob", "GET", "/{cron}"),
            "read",
            "Read a cron entry",
            {200: OneCron},
            errors=_KNOWN[:1],
            narrowing="entry",
        ),
        Route(
            CronHandlers,
            CronHandlers.patch,
            _paths("updateCronJob", "PATCH", "/{cron}"),
            "configure",
            "Change a cron entry",
            {200: OneCron},
            "What is sent is changed, members of `options` one by one.",
            body=record({}, _CHANGES, free=True),
            errors=(*_KNOWN, *_REFUSALS),
            narrowing="entry",
            besides=("enqueue",),
        ),
        Route(
            CronHandlers,
            CronHandlers.delete,
            _paths("deleteCronJob", "DELETE", "/{cron}"),
            "configure",
            "Delete a cron entry",
            {200: DeletedCron},
            "Jobs that it has created stay.",
            errors=_KNOWN,
            narrowing="entry",
        ),
        Route(
            CronHandlers,
            CronHandlers.run,
            _paths("triggerCronJob", "POST", "/{cron}/trigger"),
            "control",
            "Run a cron entry now",
            {201: TriggeredCron, 202: TriggeredCron},
            "202 if its job is still to be created: it waits for the job before it, or for room in its queue.",
            errors=(*_KNOWN, *_REFUSALS, "queue_full"),
            narrowing="entry",
        ),
        Route(
            CronHandlers,
            CronHandlers.pause,
            _paths("pauseCronJob", "POST", "/{cron}/pause"),
            "control",
            "Pause a cron entry",
            {200: OneCron},
            errors=_KNOWN,
            narrowing="entry",
        ),
        Route(
            CronHandlers,
            CronHandlers.resume,
            _paths("resumeCronJob", "POST", "/{cron}/resume"),
            "control",
            "Resume a cron entry",
            {200: OneCron},
            errors=_KNOWN,
            narrowing="entry",
        ),
        Route(
            CronHandlers,
            CronHandlers.coming,
            _paths("listCronNextRuns", "GET", "/{cron}/next"),
            "read",
            "Read when a cron entry runs next",
            {200: CronComing},
            "Of a paused entry the runs that it would have.",
            query=(Parameter("count", whole(1, MOST_COMING)),),
            errors=_KNOWN[:1],
            narrowing="entry",
        ),
        Route(
            CronHandlers,
            CronHandlers.preview,
            ("POST /admin/cron/preview previewCron",),
            "read",
            "Read when an expression would fire",
            {200: CronPreview},
            "Ten times unless `count` says otherwise. Nothing is stored; what a registration refuses is refused.",
            body=record(
                {},
                {
                    **dict.fromkeys(("cron", "expression", "schedule"), _SCHEDULE),
                    "timezone": _CHANGES["timezone"],
                    "count": whole(1, MOST_COMING),
                },
                about="One of `cron`, `expression` and `schedule`.",
            ),
        ),
        Route(
            CronHandlers,
            CronHandlers.history,
            _paths("listCronRuns", "GET", "/{cron}/history"),
            "read",
            "Read a cron entry's last runs",
            {200: CronHistory},
            "Up to 50, the newest first.",
            query=(Parameter("limit", whole(1)),),
            errors=_KNOWN[:1],
            narrowing="entry",
        ),
    ),
)
