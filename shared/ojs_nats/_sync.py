"""The client for code without an event loop. Made by script/sync_client.py from the other: change that."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar, Unpack

from ojs_nats import _portal
from ojs_nats._api.crons import Crons, Overlap
from ojs_nats._api.dead_letters import DeadLetterFilter, DeadLetters
from ojs_nats._api.events import Events
from ojs_nats._api.jobs import JobFilter, Jobs, Priority
from ojs_nats._api.keys import Keys, Role
from ojs_nats._api.pools import Pools
from ojs_nats._api.queues import ALL_QUEUES, Period, Prevention, QueueOptions, Queues
from ojs_nats._api.rate_limits import RateLimits
from ojs_nats._api.schemas import Compatibility, Mode, Schemas, Version
from ojs_nats._api.system import ServerSystem
from ojs_nats._api.webhooks import Webhooks
from ojs_nats._api.workers import Directive, Workers
from ojs_nats._api.workflows import WorkflowHandle, Workflows
from ojs_nats._client import Client, JobHandle
from ojs_nats._clients import Clients
from ojs_nats._closing import SyncClosing
from ojs_nats._connect import url_of
from ojs_nats._durations import Duration
from ojs_nats._errors import Refused
from ojs_nats._jobs import Checkpoint, Job, NewJob
from ojs_nats._options import Options, Rate, Retry
from ojs_nats._tls import Tls, check_scheme
from ojs_nats._workflows import Flow
from ojs_nats.answers.crons import Cron, CronRun, TriggeredCron
from ojs_nats.answers.dead_letters import DeadLetterStats, DeletedDeadLetters, RetriedDeadLetters
from ojs_nats.answers.events import Event, EventPage
from ojs_nats.answers.jobs import (
    AttemptTrace,
    ChangedPriority,
    ChangedSelection,
    Explanation,
    Failure,
    HistoryEvent,
    JobDetail,
    JobLineage,
    JobResult,
    JobRetries,
    Progress,
    UniqueJob,
)
from ojs_nats.answers.keys import Key, KeyLimits, MadeKey
from ojs_nats.answers.pools import ListedPool, Pool, SchedulingStats
from ojs_nats.answers.queues import (
    ConfiguredQueue,
    DeletedQueue,
    PriorityStats,
    PurgedQueue,
    Queue,
    QueueDetail,
    QueueStats,
    SwitchedQueue,
)
from ojs_nats.answers.rate_limits import Limit
from ojs_nats.answers.schemas import Schema, SchemaHead, SchemaVersion
from ojs_nats.answers.statistics import Statistics
from ojs_nats.answers.system import (
    AuditEntry,
    AuditPage,
    DebugStatus,
    Findings,
    Health,
    Maintenance,
    Manifest,
    MiddlewareEntry,
    Service,
    SystemConfig,
    SystemStats,
    UnreadableRecord,
)
from ojs_nats.answers.webhooks import Delivery, RotatedWebhook, Webhook, WebhookTest
from ojs_nats.answers.workers import DirectedWorkers, FleetSummary, Worker, WorkerDetail, WorkerHealth
from ojs_nats.answers.workflows import CancelledWorkflow, Workflow, WorkflowHead, WorkflowProgress

R = TypeVar("R")


class SyncClient(SyncClosing):
    """`Client` for code without an event loop: `with SyncClient() as client:` closes its connections.

    The end of the process does so, too. Many threads may use it at once, and forks of the process; an event loop would be
    blocked by it.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        patience: Duration = 30.0,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        tls: Tls | ssl.SSLContext | None = None,
        clients: Clients | None = None,
    ) -> None:
        self.url = url_of(url)
        if clients is None:
            check_scheme(self.url, tls)
        self._clients = clients or Clients(lambda: Client(self.url, patience=patience, token=token, headers=headers, tls=tls))
        self.jobs = SyncJobs(lambda: self._client().jobs)
        self.queues = SyncQueues(lambda: self._client().queues)
        self.dead_letters = SyncDeadLetters(lambda: self._client().dead_letters)
        self.crons = SyncCrons(lambda: self._client().crons)
        self.events = SyncEvents(lambda: self._client().events)
        self.workflows = SyncWorkflows(lambda: self._client().workflows)
        self.workers = SyncWorkers(lambda: self._client().workers)
        self.webhooks = SyncWebhooks(lambda: self._client().webhooks)
        self.schemas = SyncSchemas(lambda: self._client().schemas)
        self.rate_limits = SyncRateLimits(lambda: self._client().rate_limits)
        self.pools = SyncPools(lambda: self._client().pools)
        self.keys = SyncKeys(lambda: self._client().keys)
        self.system = SyncServerSystem(lambda: self._client().system)

    def _client(self) -> Client:
        return self._clients.of(_portal.loop())

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        _portal.call(self._clients.close())

    def push(self, new: NewJob[R]) -> SyncJobHandle[R]:
        """Push a job, as `send_email.s(…)` makes it.

        Raises Duplicate by the id or the identity of another job, QueueFull, TypeError for what is no `NewJob`, and
        what every operation raises.
        """
        return SyncJobHandle(_portal.call(self._client().push(new)))

    def push_many(self, jobs: Sequence[NewJob[Any]]) -> list[SyncJobHandle[Any]]:
        """Push all of them or, if one is refused, none. Raises ValueError for a job that is there twice."""
        return [SyncJobHandle(one) for one in _portal.call(self._client().push_many(jobs))]

    def push_bulk(self, jobs: Sequence[NewJob[Any]]) -> list[SyncJobHandle[Any] | Refused]:
        """Push each of them that isn't refused; of those that are, the error stands in its place.

        Raises ValueError for a job that is there twice.
        """
        return [
            SyncJobHandle(one) if isinstance(one, JobHandle) else one for one in _portal.call(self._client().push_bulk(jobs))
        ]

    def job(self, job_id: str) -> Job:
        """As it is now. Raises NotFound."""
        return _portal.call(self._client().job(job_id))

    def cancel(self, job_id: str) -> Job:
        """A worker that runs it is told to stop. Raises NotFound, Conflict if it has ended otherwise."""
        return _portal.call(self._client().cancel(job_id))

    def ended(self, job_id: str, timeout: Duration | None = None) -> Job:
        """The job once it has ended; it is listened for, not asked for. Raises ResultTimeout, NotFound."""
        return _portal.call(self._client().ended(job_id, timeout))


class SyncJobs:
    """`client.jobs`. What is about one job raises NotFound, once it has left as well; what changes it raises Conflict if its
    state forbids that.
    """

    def __init__(self, its: Callable[[], Jobs]) -> None:
        self._its = its

    def get(self, job_id: str, *, queue: str | None = None) -> Job:
        """As it is now. Here and below `queue` is the job's: over NATS, for those who are granted that queue alone."""
        return _portal.call(self._its().get(job_id, queue=queue))

    def detail(self, job_id: str) -> JobDetail:
        """With what happened to it, and what will happen by itself."""
        return _portal.call(self._its().detail(job_id))

    def list(
        self,
        *,
        state: str | None = None,
        queue: str | None = None,
        type: str | None = None,
        tag: str | None = None,
        error_type: str | None = None,
        worker: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        text: str | None = None,
        meta: Mapping[str, str] | None = None,
        sort: Literal["created_at", "scheduled_at", "priority"] = "created_at",
        order: Literal["desc", "asc"] = "desc",
        limit: int | None = None,
    ) -> Iterator[Job]:
        """The newest first, unless told otherwise: `for job in client.jobs.list(state="discarded", limit=50)`.

        `type` may end in `*`; `since` and `until` are about when they were created; `text` is words of their arguments, which
        the server only knows if it is set to.
        """
        return _portal.each(
            self._its().list(
                state=state,
                queue=queue,
                type=type,
                tag=tag,
                error_type=error_type,
                worker=worker,
                since=since,
                until=until,
                text=text,
                meta=meta,
                sort=sort,
                order=order,
                limit=limit,
            )
        )

    def cancel(self, job_id: str, *, reason: str | None = None, queue: str | None = None) -> Job:
        """A worker that runs it is told to stop."""
        return _portal.call(self._its().cancel(job_id, reason=reason, queue=queue))

    def retry(self, job_id: str) -> Job:
        """A new life for one that has failed or was cancelled, the next attempt now for one that waits for it."""
        return _portal.call(self._its().retry(job_id))

    def run_now(self, job_id: str) -> Job:
        """Make one available that is scheduled, pending, or waits for its next attempt."""
        return _portal.call(self._its().run_now(job_id))

    def why(self, job_id: str) -> Explanation:
        """Why it is where it is, what matters most first."""
        return _portal.call(self._its().why(job_id))

    def activate(self, job_id: str) -> Job:
        """Make a pending one available."""
        return _portal.call(self._its().activate(job_id))

    def reprioritise(self, job_id: str, priority: Priority) -> ChangedPriority:
        """-100 to 100, the highest first; until it is fetched."""
        return _portal.call(self._its().reprioritise(job_id, priority))

    def progress(self, job_id: str) -> Progress:
        """How far its attempt has come, as it has told."""
        return _portal.call(self._its().progress(job_id))

    def checkpoint(self, job_id: str) -> Checkpoint:
        """What was saved last. Raises NotFound if nothing was."""
        return _portal.call(self._its().checkpoint(job_id))

    def delete_checkpoint(self, job_id: str) -> bool:
        """Let the next attempt begin anew. Says whether there was one."""
        return _portal.call(self._its().delete_checkpoint(job_id))

    def history(self, job_id: str, *, limit: int | None = None) -> Iterator[HistoryEvent]:
        """What happened to it, the oldest first, as far as its log goes back."""
        return _portal.each(self._its().history(job_id, limit=limit))

    def lineage(self, job_id: str) -> JobLineage:
        """Where it comes from."""
        return _portal.call(self._its().lineage(job_id))

    def attempts(self, job_id: str) -> Sequence[AttemptTrace]:
        """The oldest first, as far as its log goes back."""
        return _portal.call(self._its().attempts(job_id))

    def attempt(self, job_id: str, number: int) -> AttemptTrace:
        """The latest of that number, if the job was retried by hand."""
        return _portal.call(self._its().attempt(job_id, number))

    def retries(self, job_id: str) -> JobRetries:
        """Its failed attempts, and the policy that says what follows."""
        return _portal.call(self._its().retries(job_id))

    def unique(self, *, limit: int | None = None) -> Iterator[UniqueJob]:
        """The fingerprints that jobs hold which haven't ended."""
        return _portal.each(self._its().unique(limit=limit))

    def result(self, job_id: str) -> JobResult:
        """As it is now; `result` is None while there is none. Raises ResultGone if it wasn't kept."""
        return _portal.call(self._its().result(job_id))

    def results(self, job_ids: Sequence[str]) -> dict[str, JobResult]:
        """By id; the `state` of one that isn't there is `not_found`."""
        return _portal.call(self._its().results(job_ids))

    def ended(self, job_id: str, timeout: Duration | None = None, *, queue: str | None = None) -> Job:
        """The job once it has ended; the server keeps the question, so nobody polls. Raises ResultTimeout."""
        return _portal.call(self._its().ended(job_id, timeout, queue=queue))

    def cancel_many(
        self,
        jobs: Sequence[str] | JobFilter,
        *,
        reason: str | None = None,
        atomic: bool = False,
        dry_run: bool = False,
        confirm: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ChangedSelection:
        """Those with these ids, or up to `limit` of those that fit; the answer tells of each job what became of it.

        `next_cursor` of the answer leads to the rest. `atomic` is all or none; `dry_run` changes nothing; `confirm` is needed
        for a filter by states and times alone.
        """
        return _portal.call(
            self._its().cancel_many(
                jobs, reason=reason, atomic=atomic, dry_run=dry_run, confirm=confirm, limit=limit, cursor=cursor
            )
        )

    def retry_many(
        self,
        jobs: Sequence[str] | JobFilter,
        *,
        atomic: bool = False,
        dry_run: bool = False,
        confirm: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ChangedSelection:
        """A new life for those; told as `cancel_many` tells."""
        return _portal.call(
            self._its().retry_many(jobs, atomic=atomic, dry_run=dry_run, confirm=confirm, limit=limit, cursor=cursor)
        )

    def delete_many(
        self,
        jobs: Sequence[str] | JobFilter,
        *,
        atomic: bool = False,
        dry_run: bool = False,
        confirm: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ChangedSelection:
        """Remove those that have ended; told as `cancel_many` tells."""
        return _portal.call(
            self._its().delete_many(jobs, atomic=atomic, dry_run=dry_run, confirm=confirm, limit=limit, cursor=cursor)
        )

    def reprioritise_many(
        self,
        jobs: Sequence[str] | JobFilter,
        priority: Priority,
        *,
        atomic: bool = False,
        dry_run: bool = False,
        confirm: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ChangedSelection:
        """Give another priority to those that were not fetched yet; told as `cancel_many` tells."""
        return _portal.call(
            self._its().reprioritise_many(
                jobs, priority, atomic=atomic, dry_run=dry_run, confirm=confirm, limit=limit, cursor=cursor
            )
        )


class SyncQueues:
    """`client.queues`. A queue exists once a job is pushed to it; settings may be given to it before."""

    def __init__(self, its: Callable[[], Queues]) -> None:
        self._its = its

    def list(self, *, limit: int | None = None) -> Iterator[Queue]:
        """By name."""
        return _portal.each(self._its().list(limit=limit))

    def get(self, queue: str) -> QueueDetail:
        """Its settings and numbers. Raises NotFound."""
        return _portal.call(self._its().get(queue))

    def create(self, queue: str, **options: Unpack[QueueOptions]) -> ConfiguredQueue:
        """Not needed to push to it. Raises Conflict if it is there."""
        return _portal.call(self._its().create(queue, **options))

    def delete(
        self, queue: str, *, strategy: Literal["reject", "discard", "move"] = "reject", target_queue: str | None = None
    ) -> DeletedQueue:
        """`strategy` is what becomes of jobs that wait in it: with `reject` it is refused, `move` takes them to `target_queue`.

        `jobs_remaining` tells of those that are left: ask again. Raises NotFound, Conflict.
        """
        return _portal.call(self._its().delete(queue, strategy=strategy, target_queue=target_queue))

    def pause(self, queue: str) -> SwitchedQueue:
        """Once this is answered, nothing is fetched from it."""
        return _portal.call(self._its().pause(queue))

    def resume(self, queue: str) -> SwitchedQueue:
        """Ends a pause, and a drain."""
        return _portal.call(self._its().resume(queue))

    def stats(self, queue: str) -> QueueStats:
        """Its numbers, now and lately."""
        return _portal.call(self._its().stats(queue))

    def priority_stats(self, queue: str) -> PriorityStats:
        """How many jobs wait, by priority."""
        return _portal.call(self._its().priority_stats(queue))

    def history(
        self, queue: str, *, period: Period = "1h", since: datetime | None = None, until: datetime | None = None
    ) -> Statistics:
        """What happened in each `period` of that time."""
        return _portal.call(self._its().history(queue, period=period, since=since, until=until))

    def config(self, queue: str = ALL_QUEUES) -> ConfiguredQueue:
        """Its settings; without a name, those of all queues."""
        return _portal.call(self._its().config(queue))

    def configure(self, queue: str = ALL_QUEUES, **options: Unpack[QueueOptions]) -> ConfiguredQueue:
        """Set what is named; what isn't stays. Jobs that are there keep what they have."""
        return _portal.call(self._its().configure(queue, **options))

    def limit(
        self, queue: str, *, concurrency: int | None = None, rate: Rate | None = None, throttle: Rate | None = None
    ) -> ConfiguredQueue:
        """How many of its jobs may run at once, and start within a time. What isn't named is taken back."""
        return _portal.call(self._its().limit(queue, concurrency=concurrency, rate=rate, throttle=throttle))

    def purge(self, queue: str, *, states: Sequence[str] | None = None, older_than: Duration | None = None) -> PurgedQueue:
        """Remove jobs that wait, or those in these states."""
        return _portal.call(self._its().purge(queue, states=states, older_than=older_than))


class SyncDeadLetters:
    """`client.dead_letters`."""

    def __init__(self, its: Callable[[], DeadLetters]) -> None:
        self._its = its

    def list(
        self,
        *,
        queue: str | None = None,
        type: str | None = None,
        error_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> Iterator[Job]:
        """Those that failed last first."""
        return _portal.each(
            self._its().list(queue=queue, type=type, error_type=error_type, since=since, until=until, limit=limit)
        )

    def get(self, job_id: str) -> JobDetail:
        """Raises NotFound."""
        return _portal.call(self._its().get(job_id))

    def stats(self, queue: str | None = None) -> DeadLetterStats:
        """How many there are, by queue, type and error."""
        return _portal.call(self._its().stats(queue))

    def retry(
        self,
        job_id: str,
        *,
        args: Sequence[Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        queue: str | None = None,
        retry: Retry | None = None,
    ) -> Job:
        """A new life for one; what is named replaces what it had. Raises NotFound, Conflict, Duplicate."""
        return _portal.call(self._its().retry(job_id, args=args, meta=meta, queue=queue, retry=retry))

    def retry_all(self, which: DeadLetterFilter) -> RetriedDeadLetters:
        """A new life for those that fit; `remaining` are left to the next request."""
        return _portal.call(self._its().retry_all(which))

    def delete(self, job_id: str) -> None:
        """Raises NotFound."""
        _portal.call(self._its().delete(job_id))

    def purge(self, which: DeadLetterFilter) -> DeletedDeadLetters:
        """Delete those that fit; `remaining` are left to the next request."""
        return _portal.call(self._its().purge(which))


class SyncCrons:
    """`client.crons`. What is about one entry raises NotFound."""

    def __init__(self, its: Callable[[], Crons]) -> None:
        self._its = its

    def list(self, *, enabled: bool | None = None, limit: int | None = None) -> Iterator[Cron]:
        """By name."""
        return _portal.each(self._its().list(enabled=enabled, limit=limit))

    def register(
        self,
        name: str,
        expression: str,
        job: NewJob[Any],
        *,
        timezone: str | None = None,
        overlap: Overlap | None = None,
        enabled: bool | None = None,
        description: str | None = None,
    ) -> Cron:
        """Run `job`, as `send_report.s("daily")` makes it, by `expression`: five or six fields, `@daily`, `@every 5m`.

        An entry of that name is replaced. `timezone` is an IANA name, else UTC; `overlap` is what is done while the run before
        hasn't ended.
        """
        return _portal.call(
            self._its().register(
                name, expression, job, timezone=timezone, overlap=overlap, enabled=enabled, description=description
            )
        )

    def get(self, name: str) -> Cron:

        return _portal.call(self._its().get(name))

    def update(
        self,
        name: str,
        *,
        expression: str | None = None,
        job: NewJob[Any] | None = None,
        timezone: str | None = None,
        overlap: Overlap | None = None,
        enabled: bool | None = None,
        description: str | None = None,
    ) -> Cron:
        """Change what is named."""
        return _portal.call(
            self._its().update(
                name,
                expression=expression,
                job=job,
                timezone=timezone,
                overlap=overlap,
                enabled=enabled,
                description=description,
            )
        )

    def delete(self, name: str) -> Cron:
        """What it was."""
        return _portal.call(self._its().delete(name))

    def trigger(self, name: str) -> TriggeredCron:
        """Run it now, besides its schedule."""
        return _portal.call(self._its().trigger(name))

    def pause(self, name: str) -> Cron:

        return _portal.call(self._its().pause(name))

    def resume(self, name: str) -> Cron:

        return _portal.call(self._its().resume(name))

    def coming(self, name: str, *, count: int | None = None) -> Sequence[datetime]:
        """When it runs next, or would if it weren't paused."""
        return _portal.call(self._its().coming(name, count=count))

    def preview(self, expression: str, *, timezone: str | None = None, count: int | None = None) -> Sequence[datetime]:
        """When an expression would fire; nothing is stored."""
        return _portal.call(self._its().preview(expression, timezone=timezone, count=count))

    def history(self, name: str, *, limit: int | None = None) -> Sequence[CronRun]:
        """Its last runs, the newest first."""
        return _portal.call(self._its().history(name, limit=limit))


class SyncEvents:
    """`client.events`."""

    def __init__(self, its: Callable[[], Events]) -> None:
        self._its = its

    def __call__(
        self,
        *,
        types: Sequence[str] = (),
        queue: str | None = None,
        job_type: str | None = None,
        job_id: str | None = None,
        workflow_id: str | None = None,
        after: str | None = None,
    ) -> Iterator[Event]:
        """`for event in client.events(types=["job.failed"], queue="email"):` from now on, or behind a cursor.

        `types` may end in `.*`. Connections that break are made anew without losing any event; one may come twice, with the
        same `id`. Those of `job_id` end with the job, raising NotFound if there is none; those of `workflow_id` are the events
        whose type begins with `workflow.`.
        """
        return _portal.each(
            self._its()(types=types, queue=queue, job_type=job_type, job_id=job_id, workflow_id=workflow_id, after=after)
        )

    def poll(
        self,
        *,
        after: str = "0",
        types: Sequence[str] = (),
        queue: str | None = None,
        job_type: str | None = None,
        limit: int = 100,
    ) -> EventPage:
        """Those behind a cursor, the oldest first, beginning with the oldest that is kept."""
        return _portal.call(self._its().poll(after=after, types=types, queue=queue, job_type=job_type, limit=limit))

    def recent(self, *, type: str | None = None, queue: str | None = None, limit: int = 50) -> list[Event]:
        """The last `limit`, the newest first; `type` is one in full."""
        return _portal.call(self._its().recent(type=type, queue=queue, limit=limit))

    def cursor(self) -> str:
        """Where all that has happened is behind: events after it are those from now on."""
        return _portal.call(self._its().cursor())


class SyncWorkflows:
    """`client.workflows`. What is about one workflow raises NotFound."""

    def __init__(self, its: Callable[[], Workflows]) -> None:
        self._its = its

    def start(self, flow: Flow[R], *, id: str | None = None, defaults: Options | None = None) -> SyncWorkflowHandle[R]:
        """Its first jobs are in their queues when this returns. `defaults` are options of all its jobs that say nothing else.

        `id`, a UUIDv7, is made here unless you give one, so that a start that wasn't answered can be repeated: one that is
        there already is what you get. Raises InvalidRequest for what can't run, naming the place; Duplicate, QueueFull and
        QueueClosed as a push of its jobs.
        """
        return SyncWorkflowHandle(_portal.call(self._its().start(flow, id=id, defaults=defaults)))

    def list(
        self, *, state: Literal["running", "completed", "failed", "cancelled"] | None = None, limit: int | None = None
    ) -> Iterator[WorkflowHead]:
        """The newest first, without their steps."""
        return _portal.each(self._its().list(state=state, limit=limit))

    def get(self, workflow_id: str) -> Workflow:
        """With all of its direct steps, and those nested in them as far as 1,000 together go."""
        return _portal.call(self._its().get(workflow_id))

    def progress(self, workflow_id: str) -> WorkflowProgress:
        """Numbers alone."""
        return _portal.call(self._its().progress(workflow_id))

    def cancel(self, workflow_id: str) -> CancelledWorkflow:
        """Jobs that wait are cancelled, active ones may end. Raises Conflict if it has ended."""
        return _portal.call(self._its().cancel(workflow_id))

    def retry(self, workflow_id: str) -> Workflow:
        """Go on where it failed or was cancelled. Raises Conflict in another state."""
        return _portal.call(self._its().retry(workflow_id))

    def ended(self, workflow_id: str, timeout: Duration | None = None) -> Workflow:
        """The workflow once it has ended; its events are listened to. Raises ResultTimeout."""
        return _portal.call(self._its().ended(workflow_id, timeout))

    def jobs(self, workflow_id: str) -> Iterator[Job]:
        """Those that there are by now, in the order of their steps."""
        return _portal.each(self._its().jobs(workflow_id))


class SyncWorkers:
    """`client.workers`. What is about one worker raises NotFound."""

    def __init__(self, its: Callable[[], Workers]) -> None:
        self._its = its

    def list(
        self, *, state: Literal["running", "quiet", "drain", "terminate", "stale"] | None = None, limit: int | None = None
    ) -> Iterator[Worker]:
        """By id."""
        return _portal.each(self._its().list(state=state, limit=limit))

    def summary(self) -> FleetSummary:
        """How many there are, by state."""
        return _portal.call(self._its().summary())

    def get(self, worker_id: str) -> WorkerDetail:
        """With the jobs that it holds."""
        return _portal.call(self._its().get(worker_id))

    def health(self, worker_id: str) -> WorkerHealth:
        """Whether it takes jobs: `status` is `healthy`, `draining` or `stale`."""
        return _portal.call(self._its().health(worker_id))

    def direct(self, worker_id: str, directive: Directive) -> Worker:
        """What it hears with its next heartbeat: to fetch, to fetch no more, or to end."""
        return _portal.call(self._its().direct(worker_id, directive))

    def direct_all(self, directive: Directive) -> DirectedWorkers:
        """The same for all that are there now."""
        return _portal.call(self._its().direct_all(directive))

    def remove(self, worker_id: str) -> None:
        """Forget one that is stale. Raises Conflict for another."""
        _portal.call(self._its().remove(worker_id))


class SyncWebhooks:
    """`client.webhooks`. What is about one subscription or delivery raises NotFound."""

    def __init__(self, its: Callable[[], Webhooks]) -> None:
        self._its = its

    def subscribe(
        self,
        url: str,
        events: Sequence[str],
        *,
        queues: Sequence[str] = (),
        job_types: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        secret: str | None = None,
        active: bool = True,
    ) -> Webhook:
        """Have events of these types (`job.failed`, `job.*`) sent to `url`. Only this answer tells the secret, which is made
        for you unless you give one.
        """
        return _portal.call(
            self._its().subscribe(
                url, events, queues=queues, job_types=job_types, metadata=metadata, secret=secret, active=active
            )
        )

    def list(self, *, limit: int | None = None) -> Iterator[Webhook]:
        """The oldest first."""
        return _portal.each(self._its().list(limit=limit))

    def get(self, webhook_id: str) -> Webhook:

        return _portal.call(self._its().get(webhook_id))

    def update(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        events: Sequence[str] | None = None,
        queues: Sequence[str] | None = None,
        job_types: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        active: bool | None = None,
    ) -> Webhook:
        """Change what is named; `active=False` pauses it. `queues` and `job_types` replace the filter together."""
        return _portal.call(
            self._its().update(
                webhook_id, url=url, events=events, queues=queues, job_types=job_types, metadata=metadata, active=active
            )
        )

    def delete(self, webhook_id: str) -> None:
        """Its deliveries go with it."""
        _portal.call(self._its().delete(webhook_id))

    def test(self, webhook_id: str) -> WebhookTest:
        """What its target answers to an event of type `webhook.test`."""
        return _portal.call(self._its().test(webhook_id))

    def rotate_secret(self, webhook_id: str) -> RotatedWebhook:
        """A new secret; deliveries are signed with the old one, too, for a day."""
        return _portal.call(self._its().rotate_secret(webhook_id))

    def deliveries(
        self,
        *,
        webhook_id: str | None = None,
        status: Literal["failing", "dead", "delivered"] | None = None,
        limit: int | None = None,
    ) -> Iterator[Delivery]:
        """Those that didn't go through at once, the newest event first."""
        return _portal.each(self._its().deliveries(webhook_id=webhook_id, status=status, limit=limit))

    def delivery(self, delivery_id: str) -> Delivery:

        return _portal.call(self._its().delivery(delivery_id))

    def retry_delivery(self, delivery_id: str) -> Delivery:
        """Try one that was given up again."""
        return _portal.call(self._its().retry_delivery(delivery_id))


class SyncSchemas:
    """`client.schemas`. What is about one schema raises NotFound."""

    def __init__(self, its: Callable[[], Schemas]) -> None:
        self._its = its

    def list(self, *, limit: int | None = None) -> Iterator[SchemaHead]:
        """By type, the newest version of each first; without the documents."""
        return _portal.each(self._its().list(limit=limit))

    def documents(self, *, limit: int | None = None) -> Iterator[Schema]:
        """The same with the documents."""
        return _portal.each(self._its().documents(limit=limit))

    def register(
        self,
        job_type: str,
        version: Version,
        schema: Mapping[str, Any],
        *,
        uri: str | None = None,
        mode: Mode | None = None,
        compatibility: Compatibility | None = None,
    ) -> Schema:
        """A new version; `schema` is a JSON Schema of the list of arguments. Raises Conflict if version or URI are taken."""
        return _portal.call(self._its().register(job_type, version, schema, uri=uri, mode=mode, compatibility=compatibility))

    def put(
        self,
        job_type: str,
        version: Version,
        schema: Mapping[str, Any],
        *,
        uri: str | None = None,
        mode: Mode | None = None,
        compatibility: Compatibility | None = None,
    ) -> Schema:
        """A new version, or other settings for one that is there; its document can't be changed."""
        return _portal.call(self._its().put(job_type, version, schema, uri=uri, mode=mode, compatibility=compatibility))

    def get(self, schema: str) -> Schema:
        """By its URI, or the newest of a job type."""
        return _portal.call(self._its().get(schema))

    def version(self, job_type: str, version: Version) -> Schema:

        return _portal.call(self._its().version(job_type, version))

    def versions(self, job_type: str) -> Sequence[SchemaVersion]:
        """The newest first."""
        return _portal.call(self._its().versions(job_type))

    def delete(self, uri: str) -> None:
        """Jobs that are there already stay."""
        _portal.call(self._its().delete(uri))

    def delete_version(self, job_type: str, version: Version) -> None:

        _portal.call(self._its().delete_version(job_type, version))


class SyncRateLimits:
    """`client.rate_limits`. What is about one key raises NotFound."""

    def __init__(self, its: Callable[[], RateLimits]) -> None:
        self._its = its

    def list(self, *, limit: int | None = None) -> Iterator[Limit]:

        return _portal.each(self._its().list(limit=limit))

    def get(self, key: str) -> Limit:

        return _portal.call(self._its().get(key))

    def override(
        self,
        key: str,
        *,
        concurrency: int | None = None,
        rate: Rate | None = None,
        throttle: Rate | None = None,
        expires_at: datetime | None = None,
    ) -> Limit:
        """What holds in place of what its jobs say, until `expires_at` or `restore`. At least one limit is needed."""
        return _portal.call(
            self._its().override(key, concurrency=concurrency, rate=rate, throttle=throttle, expires_at=expires_at)
        )

    def restore(self, key: str) -> Limit:
        """What its jobs say holds again."""
        return _portal.call(self._its().restore(key))


class SyncPools:
    """`client.pools`. What is about one pool raises NotFound."""

    def __init__(self, its: Callable[[], Pools]) -> None:
        self._its = its

    def list(self) -> Sequence[ListedPool]:
        """By name, with what works for them."""
        return _portal.call(self._its().list())

    def get(self, pool: str) -> Pool:

        return _portal.call(self._its().get(pool))

    def put(
        self,
        pool: str,
        queues: Sequence[str],
        *,
        strategy: Literal["weighted", "round-robin", "strict"] | None = None,
        weights: Mapping[str, int] | None = None,
        starvation_prevention: Prevention | None = None,
        isolated: bool = False,
    ) -> Pool:
        """Make it, or set it anew. With `isolated`, its queues give jobs to workers of this pool alone."""
        return _portal.call(
            self._its().put(
                pool, queues, strategy=strategy, weights=weights, starvation_prevention=starvation_prevention, isolated=isolated
            )
        )

    def delete(self, pool: str) -> None:
        """Its queues are served like any others."""
        _portal.call(self._its().delete(pool))

    def scheduling_stats(self) -> SchedulingStats:
        """What each queue gave within the last minute."""
        return _portal.call(self._its().scheduling_stats())


class SyncKeys:
    """`client.keys`. What is about one key raises NotFound; who may not see keys gets PermissionDenied."""

    def __init__(self, its: Callable[[], Keys]) -> None:
        self._its = its

    def list(self, *, every: bool = False) -> Sequence[Key]:
        """Those that have not ended, or `every` one, by the time they were made."""
        return _portal.call(self._its().list(every=every))

    def create(
        self,
        name: str,
        role: Role,
        *,
        permissions: Sequence[str] = (),
        queues: Sequence[str] = (),
        types: Sequence[str] = (),
        limits: KeyLimits | None = None,
        expires_at: datetime | None = None,
    ) -> MadeKey:
        """Make one. `permissions` are for the role `custom`; `queues` and `types` narrow it, and may have `*` in them."""
        return _portal.call(
            self._its().create(
                name, role, permissions=permissions, queues=queues, types=types, limits=limits, expires_at=expires_at
            )
        )

    def get(self, key_id: str) -> Key:

        return _portal.call(self._its().get(key_id))

    def rotate(self, key_id: str, *, overlap: Duration | None = None) -> MadeKey:
        """Make a new one for the same; the old one goes on for `overlap`, a day if it isn't named. Raises Conflict."""
        return _portal.call(self._its().rotate(key_id, overlap=overlap))

    def limit(self, key_id: str, limits: KeyLimits) -> Key:
        """Change all of its limits; what is under way goes on. Raises Conflict for one that has ended."""
        return _portal.call(self._its().limit(key_id, limits))

    def revoke(self, key_id: str) -> Key:
        """It lets nobody in from now on."""
        return _portal.call(self._its().revoke(key_id))


class SyncServerSystem:
    """`client.system`."""

    def __init__(self, its: Callable[[], ServerSystem]) -> None:
        self._its = its

    def manifest(self) -> Manifest:
        """What the server supports."""
        return _portal.call(self._its().manifest())

    def health(self) -> Health:
        """Whether it can work: `status` is `ok` or `degraded`, and that is an answer, not an error."""
        return _portal.call(self._its().health())

    def stats(self) -> SystemStats:
        """Its totals."""
        return _portal.call(self._its().stats())

    def findings(self) -> Findings:
        """What is wrong with it, the worst first."""
        return _portal.call(self._its().findings())

    def services(self) -> Sequence[Service]:
        """The processes that were heard of lately, by role."""
        return _portal.call(self._its().services())

    def history(
        self, *, period: Period = "1h", since: datetime | None = None, until: datetime | None = None, queue: str | None = None
    ) -> Statistics:
        """What happened in each `period` of that time."""
        return _portal.call(self._its().history(period=period, since=since, until=until, queue=queue))

    def config(self) -> SystemConfig:
        """What the gateway that answers is set to."""
        return _portal.call(self._its().config())

    def status(self) -> DebugStatus:
        """How the gateway that answers is, and what it sees of other services."""
        return _portal.call(self._its().status())

    def middleware(self) -> Sequence[MiddlewareEntry]:
        """The chain around pushes, the outermost first."""
        return _portal.call(self._its().middleware())

    def failures(self, *, queue: str | None = None, limit: int | None = None) -> Iterator[Failure]:
        """Failed attempts of all jobs, the latest first, as long as events are kept."""
        return _portal.each(self._its().failures(queue=queue, limit=limit))

    def audit(
        self,
        *,
        event_type: str | None = None,
        principal: str | None = None,
        operation: str | None = None,
        target: str | None = None,
        outcome: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> Iterator[AuditEntry]:
        """Who did what, the newest first; `event_type` may end in `.*`."""
        return _portal.each(
            self._its().audit(
                event_type=event_type,
                principal=principal,
                operation=operation,
                target=target,
                outcome=outcome,
                since=since,
                until=until,
                limit=limit,
            )
        )

    def audit_page(
        self,
        *,
        after: str | None = None,
        event_type: str | None = None,
        principal: str | None = None,
        operation: str | None = None,
        target: str | None = None,
        outcome: str | None = None,
        limit: int | None = None,
    ) -> AuditPage:
        """The newest entries, or those `after` an earlier page, the oldest first: for who follows the audit."""
        return _portal.call(
            self._its().audit_page(
                after=after,
                event_type=event_type,
                principal=principal,
                operation=operation,
                target=target,
                outcome=outcome,
                limit=limit,
            )
        )

    def maintenance(self) -> Maintenance:
        """Whether there is any."""
        return _portal.call(self._its().maintenance())

    def begin_maintenance(
        self, *, reason: str | None = None, duration: Duration | None = None, estimated: Duration | None = None
    ) -> Maintenance:
        """It ends by itself after `duration`; `estimated` is what is told of how long it takes."""
        return _portal.call(self._its().begin_maintenance(reason=reason, duration=duration, estimated=estimated))

    def end_maintenance(self) -> Maintenance:

        return _portal.call(self._its().end_maintenance())

    def unreadable(self, *, kind: str | None = None, limit: int | None = None) -> Iterator[UnreadableRecord]:
        """By kind and key."""
        return _portal.each(self._its().unreadable(kind=kind, limit=limit))

    def remove_unreadable(self, kind: str, key: str) -> None:
        """Raises NotFound, Conflict for one that can be read."""
        _portal.call(self._its().remove_unreadable(kind, key))


class SyncJobHandle(Generic[R]):
    """A job that was pushed."""

    def __init__(self, handle: JobHandle[R]) -> None:
        self._handle = handle
        self.id = handle.id

    def __repr__(self) -> str:
        return f"SyncJobHandle({self.id})"

    def job(self) -> Job:
        """As it is now."""
        return _portal.call(self._handle.job())

    def cancel(self) -> Job:

        return _portal.call(self._handle.cancel())

    def result(self, timeout: Duration | None = None) -> R:
        """What its handler returned, as the type that its definition names. Raises JobFailed, JobCancelled, ResultTimeout;
        ResultGone if it isn't kept any more, OjsError if it isn't of that type.
        """
        return _portal.call(self._handle.result(timeout))


class SyncWorkflowHandle(Generic[R]):
    """A workflow that was started."""

    def __init__(self, handle: WorkflowHandle[R]) -> None:
        self._handle = handle
        self.id = handle.id

    def __repr__(self) -> str:
        return f"SyncWorkflowHandle({self.id})"

    def state(self) -> str:
        """`running`, `completed`, `failed` or `cancelled`."""
        return _portal.call(self._handle.state())

    def progress(self) -> WorkflowProgress:

        return _portal.call(self._handle.progress())

    def cancel(self) -> CancelledWorkflow:
        """Raises Conflict if it has ended."""
        return _portal.call(self._handle.cancel())

    def retry(self) -> Workflow:
        """Go on where it failed or was cancelled. Raises Conflict in another state."""
        return _portal.call(self._handle.retry())

    def jobs(self) -> Iterator[Job]:
        """Those that there are by now, in the order of their steps."""
        return _portal.each(self._handle.jobs())

    def result(self, timeout: Duration | None = None) -> R:
        """Of a chain the last step's, of a group or batch a list, of a `Dag` those of its steps by id.

        Raises WorkflowFailed, WorkflowCancelled, ResultTimeout; ResultGone if one of them isn't kept any more, OjsError if one
        isn't of the type that its definition names.
        """
        return _portal.call(self._handle.result(timeout))
