"""Workers as operators see and direct them (docs/admin.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct

from ojs_api import words
from ojs_api.members import Count, Moment, OpenRequest, Text, Uuid
from ojs_api.operations import Operation, Parameter, Subject
from ojs_api.pages import NUMBERED, Indexed, Pagination

STATES: Final = get_args(words.WorkerState)
DIRECTIVES: Final = get_args(words.Directive)


class SendDirective(OpenRequest, kw_only=True):
    """What workers are told by their next heartbeat. `resume` is another word for `running`."""

    directive: Literal["running", "quiet", "terminate", "resume"]


class WorkerHandler(Struct, frozen=True, kw_only=True):
    """A job type, and which versions of it: `*`, `2.0`, or bounds that all have to hold, such as `>=1.0 <3.0`."""

    type: str
    versions: str


class Worker(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A worker. `state` is its own word, or `stale`."""

    id: str
    state: Annotated[str, Meta(extra_json_schema={"enum": [*STATES]})]
    directive: Annotated[
        str, Meta(description="What an operator has told it.", extra_json_schema={"enum": ["none", *DIRECTIVES]})
    ]
    active_jobs: Count
    queues: list[str]
    last_heartbeat_at: Moment
    hostname: str | None = None
    pid: int | None = None
    concurrency: int | None = None
    started_at: str | None = None
    labels: Any = None
    handlers: Annotated[list[WorkerHandler], Meta(description="What it can run, if it says so.")] = []
    directive_at: Moment | None = None


class HeldJob(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that a worker holds, in short."""

    id: Uuid
    type: str
    queue: str
    attempt: Count
    started_at: Moment | None = None


class WorkerDetail(Worker, frozen=True, kw_only=True):
    """A worker with the jobs that it holds."""

    jobs: list[HeldJob]


class FleetSummary(Struct, frozen=True, kw_only=True):
    """All workers by state; those that drain count as quiet.

    `active` workers are all that are not stale. `active_jobs` are the jobs that all workers hold.
    """

    total: Count
    running: Count
    quiet: Count
    terminate: Count
    stale: Count
    active: Count
    active_jobs: Count = 0


class FleetPage(Indexed, frozen=True, kw_only=True):
    """A page of the workers. The summary counts all of them, whatever the list shows."""

    items: list[Worker]
    summary: FleetSummary
    pagination: Pagination


class WorkerList(Indexed, frozen=True, kw_only=True):
    """The same for those who ask for them outside of the admin API."""

    workers: list[Worker]
    summary: FleetSummary
    pagination: Pagination


class WorkerHealth(Struct, frozen=True, kw_only=True):
    """Whether a worker takes jobs. `state` is its own word (ojs-graceful-shutdown §10)."""

    worker_id: str
    state: str
    status: Annotated[str, Meta(extra_json_schema={"enum": ["draining", "healthy", "stale"]})]
    active_jobs: Count
    last_heartbeat_at: Moment


class DirectedWorkers(Struct, frozen=True):
    """How many workers were told so."""

    directive: Annotated[str, Meta(extra_json_schema={"enum": sorted(DIRECTIVES)})]
    workers: Count


class RemovedWorker(Struct, frozen=True):
    """The worker is forgotten."""

    deleted: bool
    worker_id: str


_QUERY: Final = (
    Parameter("state", words.WorkerState),
    Parameter("search", Text, "A part of the id, the host or the name of a queue, in capital or small letters."),
    *NUMBERED,
)
_ALL: Final = "By id. The summary counts all of them."
_NEXT: Final = "By its next heartbeat."

# fmt: off
ADMIN_LIST: Final = Operation(
    "adminListWorkers", "GET /admin/workers", "read", "List workers", {200: FleetPage}, _ALL, query=_QUERY,
)
LIST: Final = Operation(
    "listWorkers", "GET /workers", "read", "List workers outside of the admin API", {200: WorkerList}, _ALL, query=_QUERY,
)
GET: Final = Operation(
    "getWorker", "GET /admin/workers/{worker_id}", "read", "Read a worker", {200: WorkerDetail},
    "With up to 200 of the jobs that it holds.", errors=("not_found",),
)
REMOVE: Final = Operation(
    "removeWorker", "DELETE /admin/workers/{worker_id}", "control", "Forget a stale worker", {200: RemovedWorker},
    errors=("not_found", "conflict"),
)
QUIET: Final = Operation(
    "adminQuietWorker", "POST /admin/workers/{worker_id}/quiet", "control", "Tell a worker to fetch no more",
    {200: Worker}, _NEXT, errors=("not_found",),
)
DIRECT: Final = Operation(
    "directWorker", "POST /admin/workers/{worker_id}/directive", "control", "Direct a worker", {200: Worker}, _NEXT,
    body=SendDirective, errors=("not_found",),
)
DIRECT_ALL: Final = Operation(
    "directAllWorkers", "POST /admin/workers/directive", "control", "Direct all workers that are there",
    {200: DirectedWorkers}, body=SendDirective,
)
FLEET: Final = Subject(
    "Fleet", "Workers as operators see and direct them",
    (ADMIN_LIST, LIST, GET, REMOVE, QUIET, DIRECT, DIRECT_ALL),
)
