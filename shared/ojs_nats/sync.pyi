import ssl
from collections.abc import Iterator
from typing import Literal, TypeVar, type_check_only

from ojs_nats._clients import Clients
from ojs_nats._closing import SyncClosing
from ojs_nats.tls import Tls

__all__ = ["SyncClient", "SyncJobHandle", "SyncWorkflowHandle"]

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Unpack

from ojs_api.crons import Cron, CronRun, TriggeredCron
from ojs_api.findings import Explanation
from ojs_api.jobs import ChangedPriority, JobDetail, JobResult, JobsQuery
from ojs_api.keys import Key, KeyLimits, MadeKey
from ojs_api.limits import Limit
from ojs_api.pools import ListedPool, Pool, SchedulingStats
from ojs_api.progress import Progress
from ojs_api.queues import (
    ConfiguredQueue,
    DeletedQueue,
    PriorityStats,
    PurgedQueue,
    Queue,
    QueueDetail,
    QueueStats,
    SwitchedQueue,
)
from ojs_api.schemas import Compatibility, Mode, Schema, SchemaHead, SchemaVersion
from ojs_api.webhooks import Delivery, RotatedWebhook, Webhook, WebhookTest
from ojs_api.workers import DirectedWorkers, FleetSummary, Worker, WorkerDetail, WorkerHealth
from ojs_api.workflows import CancelledWorkflow, Workflow, WorkflowHead, WorkflowProgress
from ojs_nats._durations import Duration
from ojs_nats.errors import (
    RefusedError,
)
from ojs_nats.jobs import Checkpoint, Job, JobRequest
from ojs_nats.models.dead_letters import DeadLetterStats, DeletedDeadLetters, RetriedDeadLetters
from ojs_nats.models.events import Event, EventPage
from ojs_nats.models.jobs import AttemptTrace, ChangedSelection, Failure, HistoryEvent, JobLineage, JobRetries, UniqueJob
from ojs_nats.models.statistics import Statistics
from ojs_nats.models.system import (
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
from ojs_nats.operations.crons import Overlap
from ojs_nats.operations.dead_letters import DeadLetterFilter
from ojs_nats.operations.jobs import JobFilter, Priority
from ojs_nats.operations.keys import Role
from ojs_nats.operations.queues import Period, Prevention, QueueOptions
from ojs_nats.operations.schemas import Version
from ojs_nats.operations.workers import Directive
from ojs_nats.options import Options, Rate, Retry
from ojs_nats.workflows import Flow

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

class SyncClient(SyncClosing):
    url: str
    jobs: SyncJobs
    queues: SyncQueues
    dead_letters: SyncDeadLetters
    crons: SyncCrons
    events: SyncEvents
    workflows: SyncWorkflows
    workers: SyncWorkers
    webhooks: SyncWebhooks
    schemas: SyncSchemas
    rate_limits: SyncRateLimits
    pools: SyncPools
    keys: SyncKeys
    system: SyncServerSystem
    def __init__(
        self,
        url: str | None = None,
        *,
        retry_for: Duration = 30.0,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        tls: Tls | ssl.SSLContext | None = None,
        clients: Clients | None = None,
    ) -> None: ...
    def close(self) -> None: ...
    def push(self, new: JobRequest[R]) -> SyncJobHandle[R]: ...
    def push_all(self, jobs: Sequence[JobRequest[R]]) -> list[SyncJobHandle[R]]: ...
    def push_each(self, jobs: Sequence[JobRequest[R]]) -> list[SyncJobHandle[R] | RefusedError]: ...

@type_check_only
class SyncJobs:
    def get(self, job_id: str, *, queue: str | None = None) -> Job: ...
    def detail(self, job_id: str) -> JobDetail: ...
    def list(
        self, *, meta: Mapping[str, str] | None = None, limit: int | None = None, **query: Unpack[JobsQuery]
    ) -> Iterator[Job]: ...
    def cancel(self, job_id: str, *, reason: str | None = None, queue: str | None = None) -> Job: ...
    def retry(self, job_id: str) -> Job: ...
    def run_now(self, job_id: str) -> Job: ...
    def why(self, job_id: str) -> Explanation: ...
    def activate(self, job_id: str) -> Job: ...
    def set_priority(self, job_id: str, priority: Priority) -> ChangedPriority: ...
    def progress(self, job_id: str) -> Progress: ...
    def checkpoint(self, job_id: str) -> Checkpoint: ...
    def delete_checkpoint(self, job_id: str) -> bool: ...
    def history(self, job_id: str, *, limit: int | None = None) -> Iterator[HistoryEvent]: ...
    def lineage(self, job_id: str) -> JobLineage: ...
    def attempts(self, job_id: str) -> Sequence[AttemptTrace]: ...
    def attempt(self, job_id: str, number: int) -> AttemptTrace: ...
    def retries(self, job_id: str) -> JobRetries: ...
    def unique(self, *, limit: int | None = None) -> Iterator[UniqueJob]: ...
    def result(self, job_id: str) -> JobResult: ...
    def results(self, job_ids: Sequence[str]) -> dict[str, JobResult]: ...
    def wait(self, job_id: str, timeout: Duration | None = None, *, queue: str | None = None) -> Job: ...
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
    ) -> ChangedSelection: ...
    def retry_many(
        self,
        jobs: Sequence[str] | JobFilter,
        *,
        atomic: bool = False,
        dry_run: bool = False,
        confirm: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ChangedSelection: ...
    def delete_many(
        self,
        jobs: Sequence[str] | JobFilter,
        *,
        atomic: bool = False,
        dry_run: bool = False,
        confirm: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ChangedSelection: ...
    def set_priority_many(
        self,
        jobs: Sequence[str] | JobFilter,
        priority: Priority,
        *,
        atomic: bool = False,
        dry_run: bool = False,
        confirm: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> ChangedSelection: ...

@type_check_only
class SyncQueues:
    def list(self, *, limit: int | None = None) -> Iterator[Queue]: ...
    def get(self, queue: str) -> QueueDetail: ...
    def create(self, queue: str, **options: Unpack[QueueOptions]) -> ConfiguredQueue: ...
    def delete(
        self, queue: str, *, strategy: Literal["reject", "discard", "move"] = "reject", target_queue: str | None = None
    ) -> DeletedQueue: ...
    def pause(self, queue: str) -> SwitchedQueue: ...
    def resume(self, queue: str) -> SwitchedQueue: ...
    def stats(self, queue: str) -> QueueStats: ...
    def priority_stats(self, queue: str) -> PriorityStats: ...
    def history(
        self, queue: str, *, period: Period = "1h", since: datetime | None = None, until: datetime | None = None
    ) -> Statistics: ...
    def config(self, queue: str = ...) -> ConfiguredQueue: ...
    def configure(self, queue: str = ..., **options: Unpack[QueueOptions]) -> ConfiguredQueue: ...
    def limit(
        self, queue: str, *, concurrency: int | None = None, rate: Rate | None = None, throttle: Rate | None = None
    ) -> ConfiguredQueue: ...
    def purge(self, queue: str, *, states: Sequence[str] | None = None, older_than: Duration | None = None) -> PurgedQueue: ...

@type_check_only
class SyncDeadLetters:
    def list(
        self,
        *,
        queue: str | None = None,
        type: str | None = None,
        error_type: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> Iterator[Job]: ...
    def get(self, job_id: str) -> JobDetail: ...
    def stats(self, queue: str | None = None) -> DeadLetterStats: ...
    def retry(
        self,
        job_id: str,
        *,
        args: Sequence[Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        queue: str | None = None,
        retry: Retry | None = None,
    ) -> Job: ...
    def retry_all(self, which: DeadLetterFilter) -> RetriedDeadLetters: ...
    def delete(self, job_id: str) -> None: ...
    def purge(self, which: DeadLetterFilter) -> DeletedDeadLetters: ...

@type_check_only
class SyncCrons:
    def list(self, *, enabled: bool | None = None, limit: int | None = None) -> Iterator[Cron]: ...
    def register(
        self,
        name: str,
        expression: str,
        job: JobRequest[Any],
        *,
        timezone: str | None = None,
        overlap: Overlap | None = None,
        enabled: bool | None = None,
        description: str | None = None,
    ) -> Cron: ...
    def get(self, name: str) -> Cron: ...
    def update(
        self,
        name: str,
        *,
        expression: str | None = None,
        job: JobRequest[Any] | None = None,
        timezone: str | None = None,
        overlap: Overlap | None = None,
        enabled: bool | None = None,
        description: str | None = None,
    ) -> Cron: ...
    def delete(self, name: str) -> Cron: ...
    def trigger(self, name: str) -> TriggeredCron: ...
    def pause(self, name: str) -> Cron: ...
    def resume(self, name: str) -> Cron: ...
    def coming(self, name: str, *, count: int | None = None) -> Sequence[datetime]: ...
    def preview(self, expression: str, *, timezone: str | None = None, count: int | None = None) -> Sequence[datetime]: ...
    def history(self, name: str, *, limit: int | None = None) -> Sequence[CronRun]: ...

@type_check_only
class SyncEvents:
    def __call__(
        self,
        *,
        types: Sequence[str] = (),
        queue: str | None = None,
        job_type: str | None = None,
        job_id: str | None = None,
        workflow_id: str | None = None,
        after: str | None = None,
    ) -> Iterator[Event]: ...
    def poll(
        self,
        *,
        after: str = "0",
        types: Sequence[str] = (),
        queue: str | None = None,
        job_type: str | None = None,
        limit: int = 100,
    ) -> EventPage: ...
    def recent(self, *, type: str | None = None, queue: str | None = None, limit: int = 50) -> list[Event]: ...
    def cursor(self) -> str: ...

@type_check_only
class SyncWorkflows:
    def start(self, flow: Flow[R], *, id: str | None = None, defaults: Options | None = None) -> SyncWorkflowHandle[R]: ...
    def list(
        self, *, state: Literal["running", "completed", "failed", "cancelled"] | None = None, limit: int | None = None
    ) -> Iterator[WorkflowHead]: ...
    def get(self, workflow_id: str) -> Workflow: ...
    def progress(self, workflow_id: str) -> WorkflowProgress: ...
    def cancel(self, workflow_id: str) -> CancelledWorkflow: ...
    def retry(self, workflow_id: str) -> Workflow: ...
    def wait(self, workflow_id: str, timeout: Duration | None = None) -> Workflow: ...
    def jobs(self, workflow_id: str) -> Iterator[Job]: ...

@type_check_only
class SyncWorkers:
    def list(
        self, *, state: Literal["running", "quiet", "drain", "terminate", "stale"] | None = None, limit: int | None = None
    ) -> Iterator[Worker]: ...
    def summary(self) -> FleetSummary: ...
    def get(self, worker_id: str) -> WorkerDetail: ...
    def health(self, worker_id: str) -> WorkerHealth: ...
    def send_directive(self, worker_id: str, directive: Directive) -> Worker: ...
    def send_directive_to_all(self, directive: Directive) -> DirectedWorkers: ...
    def remove(self, worker_id: str) -> None: ...

@type_check_only
class SyncWebhooks:
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
    ) -> Webhook: ...
    def list(self, *, limit: int | None = None) -> Iterator[Webhook]: ...
    def get(self, webhook_id: str) -> Webhook: ...
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
    ) -> Webhook: ...
    def delete(self, webhook_id: str) -> None: ...
    def test(self, webhook_id: str) -> WebhookTest: ...
    def rotate_secret(self, webhook_id: str) -> RotatedWebhook: ...
    def deliveries(
        self,
        *,
        webhook_id: str | None = None,
        status: Literal["failing", "dead", "delivered"] | None = None,
        limit: int | None = None,
    ) -> Iterator[Delivery]: ...
    def delivery(self, delivery_id: str) -> Delivery: ...
    def retry_delivery(self, delivery_id: str) -> Delivery: ...

@type_check_only
class SyncSchemas:
    def list(self, *, limit: int | None = None) -> Iterator[SchemaHead]: ...
    def documents(self, *, limit: int | None = None) -> Iterator[Schema]: ...
    def register(
        self,
        job_type: str,
        version: Version,
        schema: Mapping[str, Any],
        *,
        uri: str | None = None,
        mode: Mode | None = None,
        compatibility: Compatibility | None = None,
    ) -> Schema: ...
    def put(
        self,
        job_type: str,
        version: Version,
        schema: Mapping[str, Any],
        *,
        uri: str | None = None,
        mode: Mode | None = None,
        compatibility: Compatibility | None = None,
    ) -> Schema: ...
    def get(self, schema: str) -> Schema: ...
    def version(self, job_type: str, version: Version) -> Schema: ...
    def versions(self, job_type: str) -> Sequence[SchemaVersion]: ...
    def delete(self, uri: str) -> None: ...
    def delete_version(self, job_type: str, version: Version) -> None: ...

@type_check_only
class SyncRateLimits:
    def list(self, *, limit: int | None = None) -> Iterator[Limit]: ...
    def get(self, key: str) -> Limit: ...
    def override(
        self,
        key: str,
        *,
        concurrency: int | None = None,
        rate: Rate | None = None,
        throttle: Rate | None = None,
        expires_at: datetime | None = None,
    ) -> Limit: ...
    def restore(self, key: str) -> Limit: ...

@type_check_only
class SyncPools:
    def list(self) -> Sequence[ListedPool]: ...
    def get(self, pool: str) -> Pool: ...
    def put(
        self,
        pool: str,
        queues: Sequence[str],
        *,
        strategy: Literal["weighted", "round-robin", "strict"] | None = None,
        weights: Mapping[str, int] | None = None,
        starvation_prevention: Prevention | None = None,
        isolated: bool = False,
    ) -> Pool: ...
    def delete(self, pool: str) -> None: ...
    def scheduling_stats(self) -> SchedulingStats: ...

@type_check_only
class SyncKeys:
    def list(self, *, every: bool = False) -> Sequence[Key]: ...
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
    ) -> MadeKey: ...
    def get(self, key_id: str) -> Key: ...
    def rotate(self, key_id: str, *, overlap: Duration | None = None) -> MadeKey: ...
    def limit(self, key_id: str, limits: KeyLimits) -> Key: ...
    def revoke(self, key_id: str) -> Key: ...

@type_check_only
class SyncServerSystem:
    def manifest(self) -> Manifest: ...
    def health(self) -> Health: ...
    def stats(self) -> SystemStats: ...
    def findings(self) -> Findings: ...
    def services(self) -> Sequence[Service]: ...
    def history(
        self, *, period: Period = "1h", since: datetime | None = None, until: datetime | None = None, queue: str | None = None
    ) -> Statistics: ...
    def config(self) -> SystemConfig: ...
    def status(self) -> DebugStatus: ...
    def middleware(self) -> Sequence[MiddlewareEntry]: ...
    def failures(self, *, queue: str | None = None, limit: int | None = None) -> Iterator[Failure]: ...
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
    ) -> Iterator[AuditEntry]: ...
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
    ) -> AuditPage: ...
    def maintenance(self) -> Maintenance: ...
    def begin_maintenance(
        self, *, reason: str | None = None, duration: Duration | None = None, estimated: Duration | None = None
    ) -> Maintenance: ...
    def end_maintenance(self) -> Maintenance: ...
    def unreadable(self, *, kind: str | None = None, limit: int | None = None) -> Iterator[UnreadableRecord]: ...
    def remove_unreadable(self, kind: str, key: str) -> None: ...

class SyncJobHandle(Generic[R_co]):
    id: str
    def job(self) -> Job: ...
    def cancel(self) -> Job: ...
    def result(self, timeout: Duration | None = None) -> R_co: ...

class SyncWorkflowHandle(Generic[R_co]):
    id: str
    def state(self) -> str: ...
    def progress(self) -> WorkflowProgress: ...
    def cancel(self) -> CancelledWorkflow: ...
    def retry(self) -> Workflow: ...
    def jobs(self) -> Iterator[Job]: ...
    def result(self, timeout: Duration | None = None) -> R_co: ...
