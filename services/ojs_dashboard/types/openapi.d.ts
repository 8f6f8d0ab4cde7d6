// Made by script/dashboard_types.py from the description of the API; don't change it by hand.

/** A member of a query string; those without a value are left out. */
export type Value = string | number | boolean | null | undefined;

/** A body as it is made of what somebody typed: texts may be any, and what isn't there is left out. */
export type Sent<T> = T extends string
	? string
	: T extends Array<infer Item>
		? ReadonlyArray<Sent<Item>>
		: T extends object
			? { [Name in keyof T]: Sent<T[Name]> | undefined }
			: T;

export type Ack = { id: string; state: State; attempt: number; max_attempts: number; job: Job; acknowledged: boolean; completed_at?: string; discarded_at?: string; next_attempt_at?: string };

export type AckJobBody = { job_id?: string; result?: unknown; worker_id?: string; attempt?: number };

export type AckJobsBody = { jobs: Array<{ job_id: string; result?: unknown; worker_id?: string; attempt?: number }>; worker_id?: string };

export type AckedItem = { index: number; status: "acknowledged" | "failed"; job_id?: string; error?: ItemError };

export type Acks = { total: number; succeeded: number; failed: number; items: Array<AckedItem> };

export type Actor = { type: "client" | "system" | "worker"; id?: string };

export type AdminBulkCancelBody = { filter: { type?: string; queue?: string; state?: ("scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded") | (Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">); states?: Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">; enqueued_before?: string; enqueued_after?: string; older_than?: number | string; priority?: number | ("high" | "normal" | "low"); meta?: Record<string, unknown>; tag?: string; error_type?: string; worker?: string; since?: string; until?: string }; confirm?: boolean; dry_run?: boolean; limit?: number; cursor?: string; reason?: string; priority?: number | ("high" | "normal" | "low") };

export type AdminBulkDeleteBody = { filter: { type?: string; queue?: string; state?: ("scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded") | (Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">); states?: Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">; enqueued_before?: string; enqueued_after?: string; older_than?: number | string; priority?: number | ("high" | "normal" | "low"); meta?: Record<string, unknown>; tag?: string; error_type?: string; worker?: string; since?: string; until?: string }; confirm?: boolean; dry_run?: boolean; limit?: number; cursor?: string; reason?: string; priority?: number | ("high" | "normal" | "low") };

export type AdminBulkReprioritiseBody = { filter: { type?: string; queue?: string; state?: ("scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded") | (Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">); states?: Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">; enqueued_before?: string; enqueued_after?: string; older_than?: number | string; priority?: number | ("high" | "normal" | "low"); meta?: Record<string, unknown>; tag?: string; error_type?: string; worker?: string; since?: string; until?: string }; confirm?: boolean; dry_run?: boolean; limit?: number; cursor?: string; reason?: string; priority?: number | ("high" | "normal" | "low") };

export type AdminBulkRetryBody = { filter: { type?: string; queue?: string; state?: ("scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded") | (Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">); states?: Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">; enqueued_before?: string; enqueued_after?: string; older_than?: number | string; priority?: number | ("high" | "normal" | "low"); meta?: Record<string, unknown>; tag?: string; error_type?: string; worker?: string; since?: string; until?: string }; confirm?: boolean; dry_run?: boolean; limit?: number; cursor?: string; reason?: string; priority?: number | ("high" | "normal" | "low") };

export type AdminCancelJobBody = { reason?: string };

export type AdminChangedJob = { job: Job };

export type AdminJobPage = { items: Array<Job>; pagination: Pagination; partial?: boolean; index_progress?: number };

export type AdminPurgeQueueBody = { states: Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">; confirm: boolean; older_than?: string | number };

export type AdminPutSchemaBody = { uri?: string; validation?: { mode?: "off" | "warn" | "strict" }; compatibility?: "semver" | "none" | "backward" | "forward" | "full"; type?: string; version?: number | string; schema?: Record<string, unknown>; args_schema?: Record<string, unknown> };

export type AdminQueue = { throughput: Throughput; latency_ms: Percentiles; run_ms: Percentiles; name: string; status: "active" | "draining" | "paused"; paused: boolean; counts: Counts; pending: number; active: number; state: "active" | "draining" | "paused"; backlog: Array<number>; oldest_available_at?: string; oldest_available_age_ms?: number; created_at?: string };

export type AdminQueuePage = { items: Array<AdminQueue>; pagination: Pagination; partial?: boolean; index_progress?: number };

export type AnswerWarning = { field: string; message: string };

export type AttemptError = { code: string; type: string; redacted?: Array<string>; message?: string };

export type AttemptTrace = { attempt: number; started_at: string; worker_id?: string; ended_at?: string; duration_ms?: number; outcome?: string; state?: "active" | "available" | "cancelled" | "completed" | "discarded" | "pending" | "retryable" | "scheduled"; error?: AttemptError; retry_generation?: number };

export type AuditDetail = { operation: string; target: Record<string, string>; binding: "http" | "nats"; permission?: string; principal_id?: string; mechanism?: "api_key" | "session"; key_prefix?: string; reason?: string; status?: number; user_agent?: string; count?: number; first_at?: string; operations?: Array<string>; addresses?: Array<string> };

export type AuditEntry = { id: string; timestamp: string; event_type: string; principal: string; source_ip: string; correlation_id: string; outcome: "failure" | "success"; detail: AuditDetail };

export type AuditPage = { entries: Array<AuditEntry>; pagination: Pagination; after?: string };

export type Authentication = { required: boolean; schemes: Array<string> };

export type BackendConfig = { type: string; server_version: string; namespace: string; replicas: number; streams: Array<string> };

export type BackendHealth = { type: string; status: "damaged" | "healthy" | "unhealthy"; latency_ms?: number; error?: string };

export type BulkCancelJobsAnswer422 = BulkCancelled | Error;

export type BulkCancelJobsBody = { job_ids?: Array<string>; filter?: { type?: string; queue?: string; state?: ("scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded") | (Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">); states?: Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">; enqueued_before?: string; enqueued_after?: string; older_than?: number | string; priority?: number | ("high" | "normal" | "low"); meta?: Record<string, unknown>; tag?: string; error_type?: string; worker?: string; since?: string; until?: string }; atomicity?: "partial" | "atomic"; confirm?: boolean; dry_run?: boolean; limit?: number; cursor?: string; reason?: string; priority?: number | ("high" | "normal" | "low"); idempotency_key?: string };

export type BulkCancelled = { total_matched: number; skipped: number; failed: number; items: Array<ChangedItem>; cancelled: number; has_more?: boolean; next_cursor?: string; remaining?: number; dry_run?: boolean };

export type BulkConfirmed = { action: "cancel" | "delete" | "reprioritise" | "retry"; matched: number; succeeded: number; failed: number; errors: Array<SkippedJob>; has_more?: boolean; next_cursor?: string; remaining?: number; dry_run?: boolean; sample?: Array<JobSummary> };

export type BulkCreateJobsAnswer422 = BulkPushed | Error;

export type BulkCreateJobsBody = { jobs: Array<JobRequest>; atomicity?: "partial" | "atomic"; idempotency_key?: string };

export type BulkDeleteJobsAnswer422 = BulkDeleted | Error;

export type BulkDeleteJobsBody = { job_ids?: Array<string>; filter?: { type?: string; queue?: string; state?: ("scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded") | (Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">); states?: Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">; enqueued_before?: string; enqueued_after?: string; older_than?: number | string; priority?: number | ("high" | "normal" | "low"); meta?: Record<string, unknown>; tag?: string; error_type?: string; worker?: string; since?: string; until?: string }; atomicity?: "partial" | "atomic"; confirm?: boolean; dry_run?: boolean; limit?: number; cursor?: string; reason?: string; priority?: number | ("high" | "normal" | "low"); idempotency_key?: string };

export type BulkDeleted = { total_matched: number; skipped: number; failed: number; items: Array<ChangedItem>; deleted: number; has_more?: boolean; next_cursor?: string; remaining?: number; dry_run?: boolean };

export type BulkPushed = { total: number; succeeded: number; failed: number; items: Array<PushedItem> };

export type BulkReprioritiseJobsAnswer422 = BulkReprioritised | Error;

export type BulkReprioritiseJobsBody = { job_ids?: Array<string>; filter?: { type?: string; queue?: string; state?: ("scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded") | (Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">); states?: Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">; enqueued_before?: string; enqueued_after?: string; older_than?: number | string; priority?: number | ("high" | "normal" | "low"); meta?: Record<string, unknown>; tag?: string; error_type?: string; worker?: string; since?: string; until?: string }; atomicity?: "partial" | "atomic"; confirm?: boolean; dry_run?: boolean; limit?: number; cursor?: string; reason?: string; priority?: number | ("high" | "normal" | "low"); idempotency_key?: string };

export type BulkReprioritised = { total_matched: number; skipped: number; failed: number; items: Array<ChangedItem>; reprioritised: number; has_more?: boolean; next_cursor?: string; remaining?: number; dry_run?: boolean };

export type BulkRetried = { total_matched: number; skipped: number; failed: number; items: Array<ChangedItem>; retried: number; has_more?: boolean; next_cursor?: string; remaining?: number; dry_run?: boolean };

export type BulkRetryDeadLetterBody = { confirm: boolean; filter?: { queue?: string; type?: string; error_type?: string; since?: string; until?: string; older_than?: string | number; state?: "discarded" }; older_than?: string | number };

export type BulkRetryJobsAnswer422 = BulkRetried | Error;

export type BulkRetryJobsBody = { job_ids?: Array<string>; filter?: { type?: string; queue?: string; state?: ("scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded") | (Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">); states?: Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">; enqueued_before?: string; enqueued_after?: string; older_than?: number | string; priority?: number | ("high" | "normal" | "low"); meta?: Record<string, unknown>; tag?: string; error_type?: string; worker?: string; since?: string; until?: string }; atomicity?: "partial" | "atomic"; confirm?: boolean; dry_run?: boolean; limit?: number; cursor?: string; reason?: string; priority?: number | ("high" | "normal" | "low"); idempotency_key?: string };

export type CancelJobBody = { reason?: string };

export type CancelledWorkflow = { id: string; type: "batch" | "chain" | "dag" | "group"; name: string; state: "cancelled" | "completed" | "failed" | "running"; created_at: string; steps_cancelled: number; steps_already_completed: number; redacted?: Array<string>; steps_total?: number; steps_completed?: number; jobs_total?: number; jobs_completed?: number; started_at?: string; completed_at?: string; cancelled_at?: string; metadata?: WorkflowMetadata; retries?: number; errors?: Array<WorkflowError>; failed_step_index?: number; failed_step_id?: string };

export type ChangedItem = { index: number; job_id: string; status: "cancelled" | "deleted" | "matched" | "reprioritised" | "retried" | "skipped"; reason?: string; error?: ItemError };

export type ChangedPriority = { id: string; priority: number; previous_priority: number };

export type Checkpoint = { state: unknown; sequence: number; created_at: string; redacted?: Array<string>; step_index?: number; metadata?: Record<string, unknown> };

export type CheckpointOfJob = { state: unknown; sequence: number; created_at: string; job_id: string; redacted?: Array<string>; step_index?: number; metadata?: Record<string, unknown> };

export type ClearDeadLetterBody = { filter?: { queue?: string; type?: string; error_type?: string; since?: string; until?: string; older_than?: string | number; state?: "discarded" }; older_than?: string | number; confirm?: boolean };

export type ConcurrencyLimit = { limit: number; active: number; available: number };

export type ConfiguredQueue = { name: string; status: "active" | "draining" | "paused"; paused: boolean; config: QueueSettings; own_config: QueueSettings; created_at?: string; updated_at?: string; paused_at?: string };

export type CountedQueue = { scheduled: number; available: number; pending: number; active: number; retryable: number; completed: number; cancelled: number; discarded: number; name: string; status: "active" | "draining" | "paused"; paused: boolean; total: number };

export type Counts = { scheduled: number; available: number; pending: number; active: number; retryable: number; completed: number; cancelled: number; discarded: number };

export type CreateJobBatchBody = { jobs: Array<JobRequest> };

export type CreateKeyBody = { name: string; role: "producer" | "worker" | "viewer" | "operator" | "admin" | "custom"; permissions?: Array<"enqueue" | "work" | "read" | "payloads" | "control" | "configure" | "destroy" | "admin">; queues?: Array<string>; types?: Array<string>; limits?: { pushes_per_second?: number; streams?: number; waiting?: number }; expires_at?: string; expires_in?: number | string };

export type CreateQueueBody = { name: string; config?: QueueSettingsRequest };

export type CreateWebhookSubscriptionBody = { url: string; events: Array<string>; filter?: { queues?: Array<string>; job_types?: Array<string> }; metadata?: Record<string, unknown>; active?: boolean; secret?: string };

export type CreateWorkflowBody = { type?: "chain" | "group" | "batch" | "dag"; id?: string; name?: string; steps?: Array<Record<string, unknown>>; jobs?: Array<Record<string, unknown>>; tasks?: Array<Record<string, unknown>>; callbacks?: { on_complete?: Record<string, unknown>; on_success?: Record<string, unknown>; on_failure?: Record<string, unknown> }; on_complete?: Record<string, unknown>; on_success?: Record<string, unknown>; on_failure?: Record<string, unknown>; options?: Record<string, unknown> };

export type Cron = { name: string; expression: string; timezone: string; job_template: JobTemplate; overlap_policy: "allow" | "cancel_previous" | "enqueue" | "skip"; enabled: boolean; last_run_at: string | null; next_run_at: string | null; run_count: number; created_at: string; updated_at: string; waiting_runs?: number; description?: string };

export type CronComing = { timezone: string; runs: Array<string>; name: string; warnings?: Array<AnswerWarning> };

export type CronHistory = { name: string; executions: Array<CronRun>; run_count: number };

export type CronPage = { crons: Array<Cron>; count: number; pagination: Pagination };

export type CronPreview = { timezone: string; runs: Array<string>; warnings?: Array<AnswerWarning> };

export type CronRun = { number: number; status: "skipped" | "triggered"; scheduled_at: string; manual: boolean; triggered_at?: string; job_id?: string; job_state?: "active" | "available" | "cancelled" | "completed" | "discarded" | "pending" | "retryable" | "scheduled"; started_at?: string; completed_at?: string; skipped_at?: string; reason?: "disabled" | "dst_skip" | "overlap_skip"; occurrences?: number; existing_job_id?: string };

export type DeadLetterLimits = { max_age?: string; max_count?: number };

export type DeadLetterRetention = { max_age: string; max_count?: number; next_prune_at?: string };

export type DeadLetterSettings = { retention: DeadLetterLimits };

export type DeadLetterStats = { total: number; by_queue: Record<string, number>; by_type: Record<string, number>; by_error_type: Record<string, number>; retention: DeadLetterRetention; partial?: boolean; index_progress?: number; oldest_at?: string; newest_at?: string };

export type DebugStatus = { instance: string; uptime_seconds: number; nats_server_version: string; services: ServicesHealth; projector?: Projector; error?: string };

export type DeclaredExtension = { name: string; uri: string; version: string };

export type DeclaredExtensions = { official: Array<DeclaredExtension>; experimental: Array<DeclaredExtension> };

export type DeleteQueueBody = { strategy?: "reject" | "discard" | "move"; target_queue?: string };

export type DeletedCheckpoint = { deleted: boolean; job_id: string; existed: boolean };

export type DeletedCron = { cron: Cron; deleted: boolean };

export type DeletedDeadLetter = { job_id: string; deleted: boolean };

export type DeletedDeadLetters = { total_matched: number; skipped: number; remaining: number; errors: Array<SkippedJob>; deleted: number };

export type DeletedPool = { deleted: boolean; name: string };

export type DeletedQueue = { queue: string; strategy: "discard" | "move" | "reject"; jobs_affected: number; jobs_remaining: number; state: "deleted" | "draining"; target_queue?: string };

export type DeletedSchema = { deleted: boolean; uri: string; type: string; version: number | string };

export type DeletedWebhook = { deleted: boolean; id: string };

export type Delivery = { id: string; subscription_id: string; event_id: string; event_type: string; status: "dead" | "delivered" | "failing"; attempts: number; last_status_code: number; created_at: string; updated_at: string; event: Record<string, unknown>; error?: string; next_attempt_at?: string };

export type DeliveryPage = { deliveries: Array<Delivery>; pagination: Pagination };

export type DeregisterWorkerBody = { worker_id?: string; reason?: "shutdown" | "signal" | "error"; pid?: number; started_at?: string };

export type DeregisteredWorker = { ok: boolean; worker_id: string };

export type DirectAllWorkersBody = { directive: "running" | "quiet" | "terminate" | "resume" };

export type DirectWorkerBody = { directive: "running" | "quiet" | "terminate" | "resume" };

export type DirectedWorkers = { directive: "quiet" | "running" | "terminate"; workers: number };

export type Dispatches = { name: string; dispatch_count_1m: number; dispatch_ratio_1m: number; avg_wait_ms: number; active_jobs: number; available_jobs: number; starved: boolean; last_dispatch_at?: string; oldest_available_at?: string; pool?: string; strategy?: "round-robin" | "strict" | "weighted"; weight?: number };

export type EnqueuedJob = { job: Job; warnings?: Array<AnswerWarning> };

export type Error = { error: Refusal };

export type Event = { id: string; type: string; time: string; subject: string; source: string; data: Record<string, unknown>; specversion: string; datacontenttype: string };

export type EventPage = { events: Array<Event>; cursor: string; has_more: boolean; cursors?: Array<string>; pagination?: Pagination };

export type Explanation = { job_id: string; state: "active" | "available" | "cancelled" | "completed" | "discarded" | "pending" | "retryable" | "scheduled"; reasons: Array<Reason> };

export type FailedAttempt = { attempt: number; state: "failed" | "retryable"; code: string; type: string; failed_at: string; redacted?: Array<string>; error?: string; started_at?: string; next_retry_at?: string };

export type Failure = { job_id: string; job_type: string; queue: string; attempt: number; error: AttemptError; failed_at: string; state?: "active" | "available" | "cancelled" | "completed" | "discarded" | "pending" | "retryable" | "scheduled"; worker_id?: string; duration_ms?: number; trace_id?: string };

export type FailurePage = { failures: Array<Failure>; pagination: Pagination };

export type FetchJobsBody = { queues: Array<string>; count?: number; worker_id?: string; visibility_timeout_ms?: number | string; wait_ms?: number; pool?: string; handlers?: Array<{ type: string; versions?: string }>; acks?: Array<{ job_id: string; result?: unknown; worker_id?: string; attempt?: number }>; handlers_declared?: boolean };

export type FetchedJobs = { jobs: Array<Job>; acks?: Acks; fetch_error?: ItemError };

export type Finding = { check: string; severity: "problem" | "warning"; message: string; meaning: string; remedy: string; link?: string };

export type Findings = { findings: Array<Finding>; checks: Array<string>; checked_at: string };

export type FleetPage = { items: Array<Worker>; summary: FleetSummary; pagination: Pagination; partial?: boolean; index_progress?: number };

export type FleetSummary = { total: number; running: number; quiet: number; terminate: number; stale: number; active: number; active_jobs: number };

export type GetHealthAnswer503 = Health | Error;

export type GetJobResultsBody = { ids: Array<string> };

export type GetOpenApiAnswer = Record<string, unknown>;

export type GetWorkerHealthAnswer503 = WorkerHealth | Error;

export type Health = { status: "degraded" | "ok"; version: string; uptime_seconds: number; backend: BackendHealth; storage: StorageHealth; services: ServicesHealth };

export type Heartbeat = { acknowledged: boolean; state: string; jobs_extended: Array<string>; server_time: string; mark: string; cancelled_jobs?: Array<string>; warnings?: Array<AnswerWarning> };

export type HeldJob = { id: string; type: string; queue: string; attempt: number; started_at?: string };

export type HistoryEvent = { id: string; job_id: string; event_type: string; timestamp: string; data: Record<string, unknown>; actor?: Actor };

export type Implementation = { name: string; version: string; language: string };

export type ItemError = { code: string; message: string; retryable?: boolean; details?: Record<string, unknown>; canonical_code?: string };

export type Job = { id: string; type: string; state: State; queue: string; priority: number; tags: Array<string>; attempt: number; max_attempts: number; timeout_ms: number; visibility_timeout_ms: number; retry: RetryPolicy; created_at: string; specversion: string; redacted?: Array<string>; args?: Array<unknown>; meta?: Record<string, unknown>; enqueued_at?: string; scheduled_at?: string; expires_at?: string; started_at?: string; completed_at?: string; cancelled_at?: string; discarded_at?: string; activated_at?: string; re_enqueued_at?: string; next_attempt_at?: string; retry_delay_ms?: number; uncounted_attempts?: number; worker_id?: string; result?: unknown; result_size_bytes?: number; result_stored_at?: string; result_expires_at?: string; error?: JobError; errors?: Array<JobError>; timeout?: number; total_timeout?: number; enqueue_ttl?: number; heartbeat_timeout?: number; grace_period?: number; result_ttl?: number; result_size_limit?: number; schema?: string; version?: number | string; unique?: Record<string, unknown>; rate_limit?: Record<string, unknown>; metadata?: Record<string, unknown>; workflow_id?: string; workflow_step?: number; workflow_step_id?: string; previous_state?: State; rate_limit_until?: string; checkpoint?: Checkpoint; parent_results?: Array<unknown>; parent_results_by_index?: Record<string, unknown> };

export type JobDetail = { id: string; type: string; state: State; queue: string; priority: number; tags: Array<string>; attempt: number; max_attempts: number; timeout_ms: number; visibility_timeout_ms: number; retry: RetryPolicy; created_at: string; specversion: string; timeline: Array<TimelineEntry>; timers: Array<PlannedTransition>; dead_letter: boolean; redacted?: Array<string>; args?: Array<unknown>; meta?: Record<string, unknown>; enqueued_at?: string; scheduled_at?: string; expires_at?: string; started_at?: string; completed_at?: string; cancelled_at?: string; discarded_at?: string; activated_at?: string; re_enqueued_at?: string; next_attempt_at?: string; retry_delay_ms?: number; uncounted_attempts?: number; worker_id?: string; result?: unknown; result_size_bytes?: number; result_stored_at?: string; result_expires_at?: string; error?: JobError; errors?: Array<JobError>; timeout?: number; total_timeout?: number; enqueue_ttl?: number; heartbeat_timeout?: number; grace_period?: number; result_ttl?: number; result_size_limit?: number; schema?: string; version?: number | string; unique?: Record<string, unknown>; rate_limit?: Record<string, unknown>; metadata?: Record<string, unknown>; workflow_id?: string; workflow_step?: number; workflow_step_id?: string; previous_state?: State; rate_limit_until?: string; checkpoint?: Checkpoint; parent_results?: Array<unknown>; parent_results_by_index?: Record<string, unknown>; visible_until?: string; leaves_at?: string };

export type JobError = { code: string; type: string; attempt: number; occurred_at: string; redacted?: Array<string>; message?: string; details?: unknown; backtrace?: unknown; retryable?: boolean; retry_generation?: number };

export type JobHistory = { job_id: string; events: Array<JobHistoryEntry> };

export type JobHistoryEntry = { type: string; state: ("active" | "available" | "cancelled" | "completed" | "discarded" | "pending" | "retryable" | "scheduled") | null; timestamp: string };

export type JobHistoryPage = { events: Array<HistoryEvent>; total: number; complete: boolean; next_cursor?: string };

export type JobLineage = { job_id: string; parent_id?: string; root_id?: string; workflow_id?: string; workflow_step?: string };

export type JobPage = { jobs: Array<Job>; pagination: Pagination; partial?: boolean; index_progress?: number };

export type JobPhase = { phase: string; state: ("active" | "available" | "cancelled" | "completed" | "discarded" | "pending" | "retryable" | "scheduled") | null; at: string; duration?: string; error?: string };

export type JobRequest = { type: string; args: Array<unknown>; specversion?: "1.0"; id?: string; queue?: string; priority?: number | ("high" | "normal" | "low"); tags?: Array<string>; schema?: string; version?: number | string; pending?: boolean; delay_until?: string; scheduled_at?: string; expires_at?: string; retry?: RetryRequest; max_attempts?: number; timeout?: number | string; timeout_ms?: number | string; visibility_timeout?: number | string; visibility_timeout_ms?: number | string; total_timeout?: number | string; total_timeout_ms?: number | string; enqueue_ttl?: number | string; enqueue_ttl_ms?: number | string; heartbeat_timeout?: number | string; heartbeat_timeout_ms?: number | string; grace_period?: number | string; grace_period_ms?: number | string; result_ttl?: number; result_size_limit?: number; meta?: Record<string, unknown>; metadata?: Record<string, unknown>; unique?: Record<string, unknown>; rate_limit?: RateLimitPolicy; options?: { queue?: string; priority?: number | ("high" | "normal" | "low"); tags?: Array<string>; schema?: string; version?: number | string; pending?: boolean; delay_until?: string; scheduled_at?: string; expires_at?: string; retry?: RetryRequest; max_attempts?: number; timeout?: number | string; timeout_ms?: number | string; visibility_timeout?: number | string; visibility_timeout_ms?: number | string; total_timeout?: number | string; total_timeout_ms?: number | string; enqueue_ttl?: number | string; enqueue_ttl_ms?: number | string; heartbeat_timeout?: number | string; heartbeat_timeout_ms?: number | string; grace_period?: number | string; grace_period_ms?: number | string; result_ttl?: number; result_size_limit?: number; meta?: Record<string, unknown>; metadata?: Record<string, unknown>; unique?: Record<string, unknown>; rate_limit?: RateLimitPolicy } };

export type JobResult = { job_id: string; state: "active" | "available" | "cancelled" | "completed" | "discarded" | "not_found" | "pending" | "retryable" | "scheduled"; redacted?: Array<string>; result?: unknown; completed_at?: string; error?: JobError };

export type JobResults = { results: Record<string, JobResult> };

export type JobRetention = { completed?: string; cancelled?: string; discarded?: string; dead_letter?: string };

export type JobRetries = { job_id: string; retries: Array<FailedAttempt>; policy: RetryPolicy; attempt: number };

export type JobSummary = { id: string; state: State; type?: string; queue?: string; priority?: number; created_at?: string; scheduled_at?: string };

export type JobTemplate = { type: string; options: Record<string, unknown>; redacted?: Array<string>; args?: Array<unknown>; meta?: Record<string, unknown> };

export type JobTrace = { job_id: string; snapshots: Array<JobPhase> };

export type JobTraces = { job_id: string; traces: Array<AttemptTrace>; trace_id?: string };

export type Key = { id: string; name: string; role: "admin" | "custom" | "operator" | "producer" | "viewer" | "worker"; permissions: Array<"admin" | "configure" | "control" | "destroy" | "enqueue" | "payloads" | "read" | "work">; state: "expired" | "live" | "revoked"; created_at: string; queues?: Array<string>; types?: Array<string>; limits?: KeyLimits; expires_at?: string; revoked_at?: string; used_at?: string; replaced_by?: string; webhooks?: Array<string>; crons?: Array<string> };

export type KeyLimits = { pushes_per_second?: number; streams?: number; waiting?: number };

export type KeyList = { keys: Array<Key> };

export type Limit = { key: string; on_limit: "drop" | "reschedule" | "wait"; waiting_count: number; concurrency?: ConcurrencyLimit; rate?: RateLimit; throttle?: ThrottleLimit; rate_limit_until?: string; override?: LimitOverride };

export type LimitKeyBody = { pushes_per_second?: number; streams?: number; waiting?: number };

export type LimitOverride = { concurrency?: number; rate?: StartRate; throttle?: StartRate; expires_at?: string };

export type LimitPage = { items: Array<Limit>; pagination: Pagination };

export type ListedPool = { name: string; strategy: "round-robin" | "strict" | "weighted"; queues: Array<string>; weights: Record<string, number>; starvation_prevention: StarvationPrevention; isolated: boolean; created_at: string; updated_at: string; active_workers: number; active_jobs: number; concurrency: number };

export type Liveness = { status: "ok"; uptime_seconds: number };

export type MadeKey = { key: Key; token: string };

export type Maintenance = { maintenance: boolean; reason?: string; enabled_at?: string; ends_at?: string; estimated_end?: string; restored?: RestoredSystem };

export type Manifest = { specversion: string; implementation: Implementation; conformance_level: number; conformance_tier: "full" | "parser" | "runtime"; protocols: Array<string>; backend: string; capabilities: Record<string, boolean>; unique_job_strength: "best_effort" | "strong"; uniqueness: UniquenessStrength; schema_validation: boolean; event_delivery: "at_least_once" | "best_effort"; extensions: Array<string>; extension_details: DeclaredExtensions; authentication: Authentication; endpoints: Record<string, string>; payload_limits: PayloadLimits; limits: Record<string, number> };

export type Middleware = { enqueue: Array<MiddlewareEntry>; execution: Array<MiddlewareEntry> };

export type MiddlewareEntry = { name: string; phase: string; order: number };

export type Nack = { id: string; state: State; attempt: number; max_attempts: number; job: Job; completed_at?: string; discarded_at?: string; next_attempt_at?: string; retry_delay_ms?: number; rate_limit_until?: string; warnings?: Array<AnswerWarning> };

export type NackJobBody = { job_id?: string; error?: { message: string; code?: string; type?: string; retryable?: boolean; action?: "DEAD_LETTER" | "DISCARD" | "FAIL" | "RETRY"; details?: unknown; backtrace?: unknown; rate_limit_until?: string } | string; worker_id?: string; attempt?: number; requeue?: boolean; retry_after_ms?: number | string };

export type NumberedCheckpoint = { job_id: string; sequence: number; created_at: string };

export type OneAttemptTrace = { job_id: string; trace: AttemptTrace; trace_id?: string };

export type OneCancelledWorkflow = { workflow: CancelledWorkflow };

export type OneCheckpoint = { state: unknown; sequence: number; created_at: string; job_id: string; redacted?: Array<string>; step_index?: number; metadata?: Record<string, unknown>; checkpoint?: CheckpointOfJob };

export type OneCron = { cron: Cron; warnings?: Array<AnswerWarning> };

export type OneDelivery = { delivery: Delivery };

export type OneJob = { job: Job };

export type OneJobDetail = { job: JobDetail };

export type OneKey = { key: Key };

export type OnePool = { pool: Pool };

export type OneSchema = { schema: Schema };

export type OneWebhook = { subscription: Webhook };

export type OneWorkflow = { workflow: Workflow; warnings?: Array<AnswerWarning> };

export type OneWorkflowProgress = { workflow: WorkflowProgress };

export type OverrideRateLimitBody = { concurrency?: number; rate?: number | { limit: number; period: number | string }; throttle?: number | { limit: number; period: number | string }; expires_at?: string; limit?: number; period?: number | string };

export type Pagination = { limit: number; offset: number; has_more: boolean; total?: number; next_cursor?: string; page?: number; per_page?: number };

export type PayloadLimits = { max_envelope_bytes: number; max_meta_bytes: number; max_queue_name_bytes: number; max_job_type_bytes: number; supported_compression: Array<string>; external_references: boolean; chunking: boolean };

export type Percentiles = { p50: number; p90: number; p95: number; p99: number; max: number };

export type PlannedTransition = { due_at: string; service: string };

export type Pool = { name: string; strategy: "round-robin" | "strict" | "weighted"; queues: Array<string>; weights: Record<string, number>; starvation_prevention: StarvationPrevention; isolated: boolean; created_at: string; updated_at: string };

export type PoolList = { items: Array<ListedPool> };

export type PreviewCronBody = { cron?: string; expression?: string; schedule?: string; timezone?: string; count?: number };

export type PriorityStats = { queue: string; counts_by_priority: Record<string, number>; total: number; partial?: boolean; index_progress?: number };

export type Progress = { job_id: string; state: State; attempt: number; progress: number | null; updated_at: string | null; redacted?: Array<string>; percentage?: number; data?: Record<string, unknown> | null; message?: string };

export type Projector = { instance: string; index_progress: number; lag_ms: number; applied: number; relaying: boolean; relayed: number; repaired: Record<string, number> };

export type PurgeDeadLetterBody = { filter?: { queue?: string; type?: string; error_type?: string; since?: string; until?: string; older_than?: string | number; state?: "discarded" }; older_than?: string | number; confirm?: boolean };

export type PurgeQueueBody = { states?: Array<"scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded">; older_than?: string | number; confirm?: boolean };

export type PurgedQueue = { queue: string; purged_count: number; remaining: number; states: Array<"active" | "available" | "cancelled" | "completed" | "discarded" | "pending" | "retryable" | "scheduled"> };

export type PushedBatch = { jobs: Array<Job>; count: number; deduplicated?: Array<number>; warnings?: Array<AnswerWarning> };

export type PushedItem = { index: number; status: "created" | "duplicate" | "failed"; job?: JobSummary; error?: ItemError; warnings?: Array<AnswerWarning> };

export type PushedJob = { job: Job; deduplicated?: boolean };

export type PutJobCheckpointBody = { state: unknown; step_index?: number; metadata?: Record<string, unknown>; worker_id?: string; attempt?: number };

export type PutPoolBody = { queues: Array<string> | Record<string, { weight?: number }>; strategy?: "weighted" | "round-robin" | "strict"; weights?: Record<string, number>; name?: string; starvation_prevention?: { enabled?: boolean; rotation_interval?: number | string; min_dispatch_ratio?: number }; isolated?: boolean };

export type Queue = { throughput: Throughput; latency_ms: Percentiles; run_ms: Percentiles; name: string; status: "active" | "draining" | "paused"; paused: boolean; counts: Counts; pending: number; active: number; oldest_available_at?: string; oldest_available_age_ms?: number; created_at?: string };

export type QueueDetail = { throughput: Throughput; latency_ms: Percentiles; run_ms: Percentiles; name: string; status: "active" | "draining" | "paused"; paused: boolean; counts: Counts; pending: number; active: number; queue: QueueStatus; depth: number; config: QueueSettings; own_config: QueueSettings; oldest_available_at?: string; oldest_available_age_ms?: number; created_at?: string; updated_at?: string; paused_at?: string; partial?: boolean; index_progress?: number };

export type QueueNumbers = { throughput: Throughput; latency_ms: Percentiles; run_ms: Percentiles; queue: string; depth: number; load: number; dead: number; completed_last_hour: number; failed_last_hour: number; avg_duration_ms: number; avg_wait_ms: number; throughput_per_second: number; windows: Record<string, Window>; oldest_available_at?: string; oldest_available_age_ms?: number; max_depth?: number; pressure?: number };

export type QueuePage = { queues: Array<Queue>; pagination: Pagination; partial?: boolean; index_progress?: number };

export type QueueRate = { limit: number; period: string };

export type QueueSettings = { max_size?: number; overflow_policy?: "drop_oldest" | "reject"; warning_threshold?: number; concurrency?: number; rate_limit?: QueueRate; starvation_prevention?: StarvationPrevention; visibility_timeout?: number; default_timeout?: number; default_retry?: RetryPolicy; retention?: JobRetention; dead_letter?: DeadLetterSettings; allowed_job_types?: Array<string>; strict_pause?: boolean; schema_validation?: "off" | "strict" | "warn" };

export type QueueSettingsRequest = { max_size?: number | null; max_depth?: number | null; overflow_policy?: ("reject" | "drop_oldest") | null; warning_threshold?: number | null; backpressure?: { max_depth?: number; strategy?: "reject" | "drop_oldest"; warning_threshold?: number } | null; concurrency?: number | null; rate_limit?: (Rate | { max_per_second: number } | { rate: Rate }) | null; visibility_timeout?: (number | string) | null; default_timeout?: (number | string) | null; default_retry?: RetryRequest | null; retention?: { completed?: number | string; cancelled?: number | string; discarded?: number | string; dead_letter?: number | string } | string | null; dead_letter?: { retention?: { max_age?: (number | string) | null; max_count?: number | null } | null } | null; dead_letter_max_size?: number | null; dead_letter_ttl?: (number | string) | null; allowed_job_types?: Array<string> | null; starvation_prevention?: StarvationPreventionRequest | null; strict_pause?: boolean | null; schema_validation?: ("off" | "warn" | "strict") | null };

export type QueueStats = { queue: CountedQueue; stats: QueueNumbers; computed_at: string; partial?: boolean; index_progress?: number };

export type QueueStatus = { name: string; status: "active" | "draining" | "paused"; paused: boolean };

export type Rate = { limit: number; period?: number | string };

export type RateLimit = { limit: number; period: string; current_count: number; window_resets_at: string };

export type RateLimitPolicy = { key?: string; concurrency?: number; rate?: Rate | number; period?: number | string; max_per_second?: number; throttle?: Rate | number; on_limit?: "wait" | "reschedule" | "drop" };

export type Reason = { code: string; message: string; remedy?: string };

export type Refusal = { code: string; message: string; retryable: boolean; details: Record<string, unknown>; canonical_code: string; request_id: string; hint: string; docs_url: string; ojs_code: string; type?: string; max_batch_size?: number; queue?: string; depth?: number; bound?: number; strategy?: string; extension?: string };

export type RegisterCronJobBody = { name: string; cron?: string; expression?: string; schedule?: string; timezone?: string; overlap_policy?: "skip" | "allow" | "cancel_previous" | "enqueue"; enabled?: boolean; description?: string; job_template?: Record<string, unknown> };

export type RegisterSchemaBody = { version: number | string; schema: Record<string, unknown>; uri?: string; validation?: { mode?: "off" | "warn" | "strict" }; compatibility?: "semver" | "none" | "backward" | "forward" | "full"; type?: string; job_type?: string };

export type RegisterWorkerBody = { worker_id: string; state?: string; hostname?: string; pid?: number; queues?: Array<string>; concurrency?: number; labels?: unknown; started_at?: string; handlers?: Array<{ type: string; versions?: string }> };

export type RegisteredWorker = { ok: boolean; worker_id: string; server_time: string; mark: string; heartbeat_interval: number; heartbeat_timeout: number; visibility_timeout_default: number };

export type RemovedRecord = { removed: boolean; kind: string; key: string };

export type RemovedWorker = { deleted: boolean; worker_id: string };

export type ReportJobProgressBody = { job_id?: string; progress?: number; percentage?: number; message?: string; data?: Record<string, unknown>; worker_id?: string; attempt?: number };

export type ReportedProgress = { job_id: string; state: State; attempt: number; progress: number | null; updated_at: string | null; accepted: boolean; redacted?: Array<string>; percentage?: number; data?: Record<string, unknown> | null; message?: string };

export type RestoredSystem = { namespace: string; taken_at: string; restored_at: string };

export type Resume = { job_id: string; has_checkpoint: boolean; redacted?: Array<string>; checkpoint?: CheckpointOfJob };

export type RetriedDeadLetters = { total_matched: number; skipped: number; remaining: number; errors: Array<SkippedJob>; retried: number };

export type RetryDeadLetterJobBody = { override?: { queue?: string; meta?: Record<string, unknown>; retry?: RetryRequest; args?: Array<unknown> } };

export type RetryPolicy = { max_attempts: number; initial_interval: string; backoff_coefficient: number; max_interval: string; jitter: boolean; non_retryable_errors: Array<string>; on_exhaustion: "dead_letter" | "discard"; backoff_strategy: "constant" | "exponential" | "linear" | "none" | "polynomial" };

export type RetryRequest = { max_attempts?: number; initial_interval?: string; initial_interval_ms?: number; backoff_coefficient?: number; max_interval?: string; max_interval_ms?: number; jitter?: boolean; non_retryable_errors?: Array<string>; on_exhaustion?: "discard" | "dead_letter"; backoff_strategy?: "none" | "constant" | "linear" | "exponential" | "polynomial" };

export type RotateKeyBody = { overlap?: number | string };

export type RotatedWebhook = { subscription: Webhook; secret: string };

export type SavedCheckpoint = { job_id: string; sequence: number; created_at: string; redacted?: Array<string>; checkpoint?: NumberedCheckpoint };

export type SchedulingStats = { strategy: "mixed" | "round-robin" | "strict" | "weighted"; window: string; dispatch_count_1m: number; stats: SchedulingTotals; queues: Array<Dispatches>; computed_at: string; partial?: boolean; index_progress?: number };

export type SchedulingTotals = { queues: number; starved: number; active_jobs: number; available_jobs: number };

export type Schema = { uri: string; type: string; job_type: string; version: number | string; validation: ValidationSettings; compatibility: "backward" | "forward" | "full" | "none" | "semver"; created_at: string; schema: Record<string, unknown> };

export type SchemaHead = { uri: string; type: string; job_type: string; version: number | string; validation: ValidationSettings; compatibility: "backward" | "forward" | "full" | "none" | "semver"; created_at: string };

export type SchemaPage = { schemas: Array<SchemaHead>; pagination: Pagination };

export type SchemaVersion = { version: number | string; uri: string; created_at: string; is_latest: boolean };

export type SchemaVersions = { type: string; versions: Array<SchemaVersion> };

export type Service = { role: string; instance: string; since: string; at: string; version?: string };

export type ServiceList = { services: Array<Service> };

export type ServicesHealth = { processes: Record<string, number>; missing: Array<string> };

export type Session = { signed_in: boolean; open: boolean; id: string; name: string; role: "admin" | "custom" | "operator" | "producer" | "viewer" | "worker"; permissions: Array<"admin" | "configure" | "control" | "destroy" | "enqueue" | "payloads" | "read" | "work">; queues?: Array<string>; types?: Array<string>; expires_at?: string };

export type SetMaintenanceBody = { enabled: boolean; reason?: string; duration?: number | string; estimated_duration?: number | string };

export type SkippedJob = { job_id: string; error: string };

export type StartRate = { limit: number; period: string };

export type StarvationPrevention = { enabled: boolean; rotation_interval?: string; min_dispatch_ratio?: number };

export type StarvationPreventionRequest = { enabled?: boolean; rotation_interval?: number | string; min_dispatch_ratio?: number };

export type State = "scheduled" | "available" | "pending" | "active" | "retryable" | "completed" | "cancelled" | "discarded";

export type Statistics = { period: "1d" | "1h" | "1m" | "5m"; data: Array<StatisticsPoint>; partial?: boolean; index_progress?: number; queue?: string };

export type StatisticsPoint = { enqueued: number; started: number; processed: number; failed: number; failed_attempts: number; retried: number; cancelled: number; expired: number; avg_latency_ms: number; timestamp: string; latency_p50_ms: number; latency_p99_ms: number; wait_ms?: Percentiles; run_ms?: Percentiles };

export type StepProgress = { id: string; state: "active" | "cancelled" | "completed" | "failed" | "pending" | "running" | "waiting"; progress: number };

export type StepsPagination = { total: number; offset: number; limit: number; has_more: boolean };

export type StorageHealth = { status: "full" | "healthy" | "unwritable"; levels: Array<StorageLevel>; error?: string };

export type StorageLevel = { of: string; used_bytes: number; limit_bytes: number; reserve_bytes: number };

export type SwitchedQueue = { queue: QueueStatus; paused: boolean; paused_at?: string; resumed_at?: string };

export type SystemConfig = { version: string; backend: BackendConfig; limits: Record<string, number>; test_mode: boolean; middleware: Array<string> };

export type SystemMetrics = { uptime_seconds: number; jobs_enqueued_total: number; jobs_completed_total: number; jobs_failed_total: number; jobs_active: number; queues_active: number; workers_active: number; avg_latency_ms: number; throughput_per_second: number };

export type SystemStats = { throughput: Throughput; latency_ms: Percentiles; run_ms: Percentiles; queues: number; workers: number; workers_stale: number; jobs: Counts; dead_letter: number; windows: Record<string, Window>; uptime_seconds: number; oldest_available_at?: string; oldest_available_age_ms?: number; partial?: boolean; index_progress?: number };

export type ThrottleLimit = { limit: number; period: string; next_allowed_at: string };

export type Throughput = { processed_per_minute: number; failed_per_minute: number; enqueued_per_minute: number; avg_latency_ms: number };

export type TimelineEntry = { number: number; event: string; at: string; attempt: number; from?: State; to?: State; worker_id?: string; reason?: string };

export type TriggeredCron = { job_id: string; cron: Cron };

export type UniqueJob = { key: string; job_id: string; type: string; queue: string; state: State };

export type UniqueJobPage = { items: Array<UniqueJob>; pagination: Pagination; partial?: boolean; index_progress?: number };

export type UniquenessStrength = { strength: string; mechanism: string };

export type UnreadableRecord = { kind: string; key: string; sequence: number; stored_at: string; size: number; problem: string };

export type UnreadableRecordPage = { items: Array<UnreadableRecord>; pagination: Pagination; partial?: boolean; index_progress?: number };

export type UpdateCronJobBody = { cron?: string; expression?: string; schedule?: string; timezone?: string; overlap_policy?: "skip" | "allow" | "cancel_previous" | "enqueue"; enabled?: boolean; description?: string; job_template?: Record<string, unknown> };

export type UpdateJobPriorityBody = { priority: number | ("high" | "normal" | "low") };

export type UpdateWebhookSubscriptionBody = { url?: string; events?: Array<string>; filter?: { queues?: Array<string>; job_types?: Array<string> }; metadata?: Record<string, unknown>; active?: boolean };

export type ValidationSettings = { mode?: "off" | "strict" | "warn" };

export type Webhook = { id: string; url: string; events: Array<string>; active: boolean; created_at: string; updated_at: string; success_count: number; failure_count: number; dead_count: number; consecutive_failures: number; redacted?: Array<string>; filter?: WebhookFilter; metadata?: Record<string, unknown>; paused_reason?: "failing" | "gone" | "key_ended"; key?: WebhookKey; secret?: string; old_secret_expires_at?: string; last_delivery_at?: string; last_delivery_status?: number };

export type WebhookFilter = { queues?: Array<string>; job_types?: Array<string> };

export type WebhookKey = { id: string; name: string; payloads: boolean };

export type WebhookPage = { subscriptions: Array<Webhook>; total: number; pagination: Pagination };

export type WebhookTest = { success: boolean; status_code: number; response_time_ms: number; response_body?: string; error?: string };

export type WholeSchemaPage = { schemas: Array<Schema>; pagination: Pagination };

export type Window = { enqueued: number; started: number; processed: number; failed: number; failed_attempts: number; retried: number; cancelled: number; expired: number; avg_latency_ms: number; wait_ms?: Percentiles; run_ms?: Percentiles };

export type Worker = { id: string; state: "running" | "quiet" | "drain" | "terminate" | "stale"; directive: "none" | "running" | "quiet" | "terminate"; active_jobs: number; queues: Array<string>; last_heartbeat_at: string; hostname?: string; pid?: number; concurrency?: number; started_at?: string; labels?: unknown; handlers?: Array<WorkerHandler>; directive_at?: string };

export type WorkerDetail = { id: string; state: "running" | "quiet" | "drain" | "terminate" | "stale"; directive: "none" | "running" | "quiet" | "terminate"; active_jobs: number; queues: Array<string>; last_heartbeat_at: string; jobs: Array<HeldJob>; hostname?: string; pid?: number; concurrency?: number; started_at?: string; labels?: unknown; handlers?: Array<WorkerHandler>; directive_at?: string };

export type WorkerHandler = { type: string; versions: string };

export type WorkerHealth = { worker_id: string; state: string; status: "draining" | "healthy" | "stale"; active_jobs: number; last_heartbeat_at: string };

export type WorkerHeartbeatBody = { worker_id: string; state?: string; hostname?: string; pid?: number; queues?: Array<string>; concurrency?: number; labels?: unknown; started_at?: string; handlers?: Array<{ type: string; versions?: string }>; active_jobs?: Array<string> | number; active_job_ids?: Array<string>; visibility_timeout_ms?: number | string; complete?: { since: string; until: string } };

export type WorkerList = { workers: Array<Worker>; summary: FleetSummary; pagination: Pagination; partial?: boolean; index_progress?: number };

export type Workflow = { id: string; type: "batch" | "chain" | "dag" | "group"; name: string; state: "cancelled" | "completed" | "failed" | "running"; created_at: string; steps: Array<WorkflowStep>; redacted?: Array<string>; steps_total?: number; steps_completed?: number; jobs_total?: number; jobs_completed?: number; started_at?: string; completed_at?: string; cancelled_at?: string; metadata?: WorkflowMetadata; retries?: number; errors?: Array<WorkflowError>; failed_step_index?: number; failed_step_id?: string; callbacks?: Record<string, WorkflowStep>; steps_pagination?: StepsPagination };

export type WorkflowError = { job_id: string; step_id: string; code: string; message: string; attempt: number; occurred_at: string; callback?: "on_complete" | "on_failure" | "on_success" };

export type WorkflowHead = { id: string; type: "batch" | "chain" | "dag" | "group"; name: string; state: "cancelled" | "completed" | "failed" | "running"; created_at: string; steps_total?: number; steps_completed?: number; jobs_total?: number; jobs_completed?: number; started_at?: string; completed_at?: string; cancelled_at?: string };

export type WorkflowMetadata = { job_count: number; completed_count: number; failed_count: number; cancelled_count: number };

export type WorkflowPage = { workflows: Array<WorkflowHead>; pagination: Pagination; partial?: boolean; index_progress?: number };

export type WorkflowProgress = { id: string; type: "batch" | "chain" | "dag" | "group"; name: string; state: "cancelled" | "completed" | "failed" | "running"; created_at: string; progress: number; steps: Array<StepProgress>; redacted?: Array<string>; steps_total?: number; steps_completed?: number; jobs_total?: number; jobs_completed?: number; started_at?: string; completed_at?: string; cancelled_at?: string; metadata?: WorkflowMetadata };

export type WorkflowStep = { id: string; index: number; type: string; state: "active" | "cancelled" | "completed" | "failed" | "pending" | "running" | "waiting"; depends_on: Array<string>; redacted?: Array<string>; steps_total?: number; steps_completed?: number; jobs_total?: number; jobs_completed?: number; job_id?: string; job_state?: "active" | "available" | "cancelled" | "completed" | "discarded" | "pending" | "retryable" | "scheduled"; started_at?: string; completed_at?: string; result?: unknown; error?: JobError; name?: string; steps?: Array<WorkflowStep>; callbacks?: Record<string, WorkflowStep> };

export interface Operations {
	'GET /health': { permission: "nothing"; query: { }; body: undefined; answer: Health };
	'GET /metrics': { permission: "read"; query: { format?: Value; }; body: undefined; answer: SystemMetrics };
	'GET /debug/status': { permission: "read"; query: { }; body: undefined; answer: DebugStatus };
	'GET /admin/services': { permission: "read"; query: { }; body: undefined; answer: ServiceList };
	'GET /admin/system/config': { permission: "read"; query: { }; body: undefined; answer: SystemConfig };
	'GET /admin/config': { permission: "read"; query: { }; body: undefined; answer: SystemConfig };
	'GET /middleware': { permission: "read"; query: { }; body: undefined; answer: Middleware };
	'POST /jobs': { permission: "enqueue"; query: { }; body: JobRequest; answer: PushedJob | EnqueuedJob };
	'GET /jobs': { permission: "read"; query: { state?: Value; queue?: Value; type?: Value; tag?: Value; error_type?: Value; worker?: Value; since?: Value; until?: Value; sort?: Value; order?: Value; worker_id?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: JobPage };
	'GET /admin/jobs': { permission: "read"; query: { state?: Value; queue?: Value; type?: Value; tag?: Value; error_type?: Value; worker?: Value; since?: Value; until?: Value; sort?: Value; order?: Value; worker_id?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: AdminJobPage };
	'GET /jobs/{job_id}': { permission: "read"; query: { }; body: undefined; answer: OneJob };
	'DELETE /jobs/{job_id}': { permission: "control"; query: { }; body: CancelJobBody; answer: OneJob };
	'PATCH /jobs/{job_id}': { permission: "control"; query: { }; body: UpdateJobPriorityBody; answer: ChangedPriority };
	'GET /admin/jobs/{job_id}': { permission: "read"; query: { }; body: undefined; answer: JobDetail };
	'PATCH /admin/jobs/{job_id}': { permission: "control"; query: { }; body: UpdateJobPriorityBody; answer: ChangedPriority };
	'POST /jobs/{job_id}/cancel': { permission: "control"; query: { }; body: CancelJobBody; answer: OneJob };
	'POST /admin/jobs/{job_id}/cancel': { permission: "control"; query: { }; body: AdminCancelJobBody; answer: AdminChangedJob };
	'POST /admin/jobs/{job_id}/retry': { permission: "control"; query: { }; body: undefined; answer: AdminChangedJob };
	'POST /admin/jobs/{job_id}/run': { permission: "control"; query: { }; body: undefined; answer: AdminChangedJob };
	'POST /jobs/{job_id}/activate': { permission: "control"; query: { }; body: undefined; answer: OneJob };
	'GET /jobs/{job_id}/result': { permission: "payloads"; query: { wait?: Value; timeout?: Value; }; body: undefined; answer: JobResult };
	'POST /jobs/results': { permission: "payloads"; query: { }; body: GetJobResultsBody; answer: JobResults };
	'POST /workers/fetch': { permission: "work"; query: { }; body: FetchJobsBody; answer: FetchedJobs };
	'POST /jobs/fetch': { permission: "work"; query: { }; body: FetchJobsBody; answer: FetchedJobs };
	'POST /workers/ack': { permission: "work"; query: { }; body: AckJobBody; answer: Ack };
	'POST /jobs/{job_id}/ack': { permission: "work"; query: { }; body: AckJobBody; answer: Ack };
	'POST /workers/acks': { permission: "work"; query: { }; body: AckJobsBody; answer: Acks };
	'POST /workers/nack': { permission: "work"; query: { }; body: NackJobBody; answer: Nack };
	'POST /workers/fail': { permission: "work"; query: { }; body: NackJobBody; answer: Nack };
	'POST /jobs/{job_id}/nack': { permission: "work"; query: { }; body: NackJobBody; answer: Nack };
	'POST /jobs/{job_id}/fail': { permission: "work"; query: { }; body: NackJobBody; answer: Nack };
	'POST /workers/heartbeat': { permission: "work"; query: { }; body: WorkerHeartbeatBody; answer: Heartbeat };
	'POST /workers/beat': { permission: "work"; query: { }; body: WorkerHeartbeatBody; answer: Heartbeat };
	'POST /workers/register': { permission: "work"; query: { }; body: RegisterWorkerBody; answer: RegisteredWorker };
	'GET /workers/{worker_id}/health': { permission: "read"; query: { }; body: undefined; answer: WorkerHealth };
	'POST /workers/deregister': { permission: "work"; query: { }; body: DeregisterWorkerBody; answer: DeregisteredWorker };
	'DELETE /workers/{worker_id}': { permission: "work"; query: { }; body: DeregisterWorkerBody; answer: DeregisteredWorker };
	'GET /queues': { permission: "read"; query: { search?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: QueuePage };
	'POST /queues': { permission: "configure"; query: { }; body: CreateQueueBody; answer: ConfiguredQueue };
	'GET /admin/queues': { permission: "read"; query: { search?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: AdminQueuePage };
	'GET /queues/{queue}': { permission: "read"; query: { }; body: undefined; answer: QueueDetail };
	'DELETE /queues/{queue}': { permission: "destroy"; query: { strategy?: Value; target_queue?: Value; }; body: DeleteQueueBody; answer: DeletedQueue };
	'GET /admin/queues/{queue}': { permission: "read"; query: { }; body: undefined; answer: QueueDetail };
	'GET /queues/{queue}/stats': { permission: "read"; query: { }; body: undefined; answer: QueueStats };
	'GET /queues/{queue}/priority-stats': { permission: "read"; query: { }; body: undefined; answer: PriorityStats };
	'POST /queues/{queue}/pause': { permission: "control"; query: { }; body: undefined; answer: SwitchedQueue };
	'POST /admin/queues/{queue}/pause': { permission: "control"; query: { }; body: undefined; answer: SwitchedQueue };
	'POST /queues/{queue}/resume': { permission: "control"; query: { }; body: undefined; answer: SwitchedQueue };
	'POST /admin/queues/{queue}/resume': { permission: "control"; query: { }; body: undefined; answer: SwitchedQueue };
	'GET /queues/{queue}/config': { permission: "read"; query: { }; body: undefined; answer: ConfiguredQueue };
	'PUT /queues/{queue}/config': { permission: "configure"; query: { }; body: QueueSettingsRequest; answer: ConfiguredQueue };
	'GET /admin/queues/{queue}/config': { permission: "read"; query: { }; body: undefined; answer: ConfiguredQueue };
	'PUT /admin/queues/{queue}/config': { permission: "configure"; query: { }; body: QueueSettingsRequest; answer: ConfiguredQueue };
	'PUT /admin/queues/{queue}/rate-limit': { permission: "configure"; query: { }; body: RateLimitPolicy; answer: ConfiguredQueue };
	'POST /queues/{queue}/purge': { permission: "destroy"; query: { }; body: PurgeQueueBody; answer: PurgedQueue };
	'DELETE /admin/queues/{queue}/jobs': { permission: "destroy"; query: { }; body: AdminPurgeQueueBody; answer: PurgedQueue };
	'GET /admin/workers': { permission: "read"; query: { state?: Value; search?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: FleetPage };
	'GET /workers': { permission: "read"; query: { state?: Value; search?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: WorkerList };
	'GET /admin/workers/{worker_id}': { permission: "read"; query: { }; body: undefined; answer: WorkerDetail };
	'DELETE /admin/workers/{worker_id}': { permission: "control"; query: { }; body: undefined; answer: RemovedWorker };
	'POST /admin/workers/{worker_id}/quiet': { permission: "control"; query: { }; body: undefined; answer: Worker };
	'POST /admin/workers/{worker_id}/directive': { permission: "control"; query: { }; body: DirectWorkerBody; answer: Worker };
	'POST /admin/workers/directive': { permission: "control"; query: { }; body: DirectAllWorkersBody; answer: DirectedWorkers };
	'GET /admin/pools': { permission: "read"; query: { }; body: undefined; answer: PoolList };
	'GET /admin/pools/{pool}': { permission: "read"; query: { }; body: undefined; answer: OnePool };
	'PUT /admin/pools/{pool}': { permission: "configure"; query: { }; body: PutPoolBody; answer: OnePool };
	'DELETE /admin/pools/{pool}': { permission: "configure"; query: { }; body: undefined; answer: DeletedPool };
	'GET /admin/scheduling/stats': { permission: "read"; query: { }; body: undefined; answer: SchedulingStats };
	'PUT /jobs/{job_id}/progress': { permission: "work"; query: { }; body: ReportJobProgressBody; answer: ReportedProgress };
	'GET /jobs/{job_id}/progress': { permission: "read"; query: { }; body: undefined; answer: Progress };
	'POST /workers/progress': { permission: "work"; query: { }; body: ReportJobProgressBody; answer: ReportedProgress };
	'GET /jobs/{job_id}/progress/stream': { permission: "read"; query: { }; body: undefined; answer: null };
	'PUT /jobs/{job_id}/checkpoint': { permission: "work"; query: { }; body: PutJobCheckpointBody; answer: SavedCheckpoint };
	'POST /jobs/{job_id}/checkpoint': { permission: "work"; query: { }; body: PutJobCheckpointBody; answer: SavedCheckpoint };
	'GET /jobs/{job_id}/checkpoint': { permission: "work"; query: { }; body: undefined; answer: OneCheckpoint };
	'DELETE /jobs/{job_id}/checkpoint': { permission: "work"; query: { }; body: undefined; answer: DeletedCheckpoint };
	'POST /checkpoints/{job_id}': { permission: "work"; query: { }; body: PutJobCheckpointBody; answer: SavedCheckpoint };
	'PUT /checkpoints/{job_id}': { permission: "work"; query: { }; body: PutJobCheckpointBody; answer: SavedCheckpoint };
	'GET /checkpoints/{job_id}': { permission: "work"; query: { }; body: undefined; answer: OneCheckpoint };
	'DELETE /checkpoints/{job_id}': { permission: "work"; query: { }; body: undefined; answer: DeletedCheckpoint };
	'GET /checkpoints/{job_id}/resume': { permission: "work"; query: { }; body: undefined; answer: Resume };
	'GET /jobs/{job_id}/history': { permission: "read"; query: { limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: JobHistoryPage };
	'GET /jobs/{job_id}/lineage': { permission: "read"; query: { }; body: undefined; answer: JobLineage };
	'GET /debug/jobs/{job_id}/traces': { permission: "read"; query: { }; body: undefined; answer: JobTraces };
	'GET /debug/jobs/{job_id}/traces/{attempt}': { permission: "read"; query: { }; body: undefined; answer: OneAttemptTrace };
	'GET /jobs/{job_id}/retries': { permission: "read"; query: { }; body: undefined; answer: JobRetries };
	'GET /admin/jobs/{job_id}/trace': { permission: "read"; query: { }; body: undefined; answer: JobTrace };
	'GET /events/{job_id}/history': { permission: "read"; query: { }; body: undefined; answer: JobHistory };
	'GET /debug/failures': { permission: "read"; query: { limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; queue?: Value; }; body: undefined; answer: FailurePage };
	'GET /events': { permission: "read"; query: { after?: Value; cursor?: Value; limit?: Value; page?: Value; per_page?: Value; types?: Value; type?: Value; event_types?: Value; queues?: Value; queue?: Value; job_types?: Value; job_type?: Value; }; body: undefined; answer: EventPage };
	'GET /events/stream': { permission: "read"; query: { channel?: Value; types?: Value; type?: Value; event_types?: Value; queues?: Value; queue?: Value; job_types?: Value; job_type?: Value; last_event_id?: Value; }; body: undefined; answer: null };
	'GET /jobs/{job_id}/events': { permission: "read"; query: { types?: Value; type?: Value; event_types?: Value; queues?: Value; queue?: Value; job_types?: Value; job_type?: Value; last_event_id?: Value; }; body: undefined; answer: null };
	'GET /queues/{queue}/events': { permission: "read"; query: { types?: Value; type?: Value; event_types?: Value; queues?: Value; queue?: Value; job_types?: Value; job_type?: Value; last_event_id?: Value; }; body: undefined; answer: null };
	'GET /ws': { permission: "read"; query: { }; body: undefined; answer: null };
	'GET /admin/findings': { permission: "read"; query: { }; body: undefined; answer: Findings };
	'GET /admin/jobs/{job_id}/why': { permission: "read"; query: { }; body: undefined; answer: Explanation };
	'POST /jobs/batch': { permission: "enqueue"; query: { }; body: CreateJobBatchBody; answer: PushedBatch };
	'POST /jobs/bulk': { permission: "enqueue"; query: { }; body: BulkCreateJobsBody; answer: BulkPushed };
	'POST /jobs/bulk/cancel': { permission: "control"; query: { }; body: BulkCancelJobsBody; answer: BulkCancelled };
	'POST /jobs/bulk/retry': { permission: "control"; query: { }; body: BulkRetryJobsBody; answer: BulkRetried };
	'POST /jobs/bulk/delete': { permission: "destroy"; query: { }; body: BulkDeleteJobsBody; answer: BulkDeleted };
	'POST /jobs/bulk/reprioritise': { permission: "control"; query: { }; body: BulkReprioritiseJobsBody; answer: BulkReprioritised };
	'POST /admin/jobs/bulk/retry': { permission: "control"; query: { }; body: AdminBulkRetryBody; answer: BulkConfirmed };
	'POST /admin/jobs/bulk/cancel': { permission: "control"; query: { }; body: AdminBulkCancelBody; answer: BulkConfirmed };
	'POST /admin/jobs/bulk/delete': { permission: "destroy"; query: { }; body: AdminBulkDeleteBody; answer: BulkConfirmed };
	'POST /admin/jobs/bulk/reprioritise': { permission: "control"; query: { }; body: AdminBulkReprioritiseBody; answer: BulkConfirmed };
	'GET /dead-letter': { permission: "read"; query: { queue?: Value; type?: Value; error_type?: Value; since?: Value; until?: Value; older_than?: Value; state?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: JobPage };
	'DELETE /dead-letter': { permission: "destroy"; query: { queue?: Value; type?: Value; error_type?: Value; since?: Value; until?: Value; older_than?: Value; state?: Value; confirm?: Value; }; body: ClearDeadLetterBody; answer: DeletedDeadLetters };
	'GET /admin/dead-letter': { permission: "read"; query: { queue?: Value; type?: Value; error_type?: Value; since?: Value; until?: Value; older_than?: Value; state?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: AdminJobPage };
	'DELETE /admin/dead-letter': { permission: "destroy"; query: { queue?: Value; type?: Value; error_type?: Value; since?: Value; until?: Value; older_than?: Value; state?: Value; confirm?: Value; }; body: ClearDeadLetterBody; answer: DeletedDeadLetters };
	'GET /dead-letter/stats': { permission: "read"; query: { queue?: Value; }; body: undefined; answer: DeadLetterStats };
	'GET /admin/dead-letter/stats': { permission: "read"; query: { queue?: Value; }; body: undefined; answer: DeadLetterStats };
	'GET /dead-letter/{job_id}': { permission: "read"; query: { }; body: undefined; answer: OneJobDetail };
	'DELETE /dead-letter/{job_id}': { permission: "destroy"; query: { }; body: undefined; answer: DeletedDeadLetter };
	'GET /admin/dead-letter/{job_id}': { permission: "read"; query: { }; body: undefined; answer: OneJobDetail };
	'DELETE /admin/dead-letter/{job_id}': { permission: "destroy"; query: { }; body: undefined; answer: null };
	'POST /dead-letter/{job_id}/retry': { permission: "control"; query: { }; body: RetryDeadLetterJobBody; answer: OneJob };
	'POST /admin/dead-letter/{job_id}/retry': { permission: "control"; query: { }; body: RetryDeadLetterJobBody; answer: OneJob };
	'POST /dead-letter/retry': { permission: "control"; query: { }; body: BulkRetryDeadLetterBody; answer: RetriedDeadLetters };
	'POST /admin/dead-letter/retry': { permission: "control"; query: { }; body: BulkRetryDeadLetterBody; answer: RetriedDeadLetters };
	'POST /dead-letter/purge': { permission: "destroy"; query: { queue?: Value; type?: Value; error_type?: Value; since?: Value; until?: Value; older_than?: Value; state?: Value; confirm?: Value; }; body: PurgeDeadLetterBody; answer: DeletedDeadLetters };
	'POST /admin/dead-letter/purge': { permission: "destroy"; query: { queue?: Value; type?: Value; error_type?: Value; since?: Value; until?: Value; older_than?: Value; state?: Value; confirm?: Value; }; body: PurgeDeadLetterBody; answer: DeletedDeadLetters };
	'GET /admin/stats': { permission: "read"; query: { queue?: Value; detail?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: SystemStats };
	'GET /admin/stats/stream': { permission: "read"; query: { }; body: undefined; answer: null };
	'GET /admin/stats/history': { permission: "read"; query: { period?: Value; since?: Value; from?: Value; until?: Value; to?: Value; queue?: Value; }; body: undefined; answer: Statistics };
	'GET /queues/{queue}/stats/history': { permission: "read"; query: { period?: Value; since?: Value; from?: Value; until?: Value; to?: Value; }; body: undefined; answer: Statistics };
	'GET /admin/queues/{queue}/stats/history': { permission: "read"; query: { period?: Value; since?: Value; from?: Value; until?: Value; to?: Value; }; body: undefined; answer: Statistics };
	'GET /schemas': { permission: "read"; query: { limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: SchemaPage };
	'POST /schemas': { permission: "configure"; query: { }; body: RegisterSchemaBody; answer: OneSchema };
	'GET /schemas/{schema}': { permission: "read"; query: { }; body: undefined; answer: OneSchema };
	'DELETE /schemas/{schema}': { permission: "configure"; query: { }; body: undefined; answer: DeletedSchema };
	'GET /schemas/{schema}/versions': { permission: "read"; query: { }; body: undefined; answer: SchemaVersions };
	'GET /admin/schemas/{schema}/versions': { permission: "read"; query: { }; body: undefined; answer: SchemaVersions };
	'GET /schemas/{schema}/{version}': { permission: "read"; query: { }; body: undefined; answer: OneSchema };
	'DELETE /schemas/{schema}/{version}': { permission: "configure"; query: { }; body: undefined; answer: DeletedSchema };
	'DELETE /admin/schemas/{schema}/{version}': { permission: "configure"; query: { }; body: undefined; answer: DeletedSchema };
	'GET /admin/schemas/{schema}/{version}': { permission: "read"; query: { }; body: undefined; answer: Schema };
	'PUT /admin/schemas/{schema}/{version}': { permission: "configure"; query: { }; body: AdminPutSchemaBody; answer: Schema };
	'GET /admin/schemas': { permission: "read"; query: { limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: WholeSchemaPage };
	'GET /admin/schemas/{schema}': { permission: "read"; query: { }; body: undefined; answer: Schema };
	'POST /cron': { permission: "configure"; query: { }; body: RegisterCronJobBody; answer: OneCron };
	'GET /cron': { permission: "read"; query: { enabled?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: CronPage };
	'POST /crons': { permission: "configure"; query: { }; body: RegisterCronJobBody; answer: OneCron };
	'GET /crons': { permission: "read"; query: { enabled?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: CronPage };
	'GET /cron/{cron}': { permission: "read"; query: { }; body: undefined; answer: OneCron };
	'PATCH /cron/{cron}': { permission: "configure"; query: { }; body: UpdateCronJobBody; answer: OneCron };
	'DELETE /cron/{cron}': { permission: "configure"; query: { }; body: undefined; answer: DeletedCron };
	'GET /crons/{cron}': { permission: "read"; query: { }; body: undefined; answer: OneCron };
	'PATCH /crons/{cron}': { permission: "configure"; query: { }; body: UpdateCronJobBody; answer: OneCron };
	'DELETE /crons/{cron}': { permission: "configure"; query: { }; body: undefined; answer: DeletedCron };
	'POST /cron/{cron}/trigger': { permission: "control"; query: { }; body: undefined; answer: TriggeredCron };
	'POST /crons/{cron}/trigger': { permission: "control"; query: { }; body: undefined; answer: TriggeredCron };
	'POST /cron/{cron}/pause': { permission: "control"; query: { }; body: undefined; answer: OneCron };
	'POST /crons/{cron}/pause': { permission: "control"; query: { }; body: undefined; answer: OneCron };
	'POST /cron/{cron}/resume': { permission: "control"; query: { }; body: undefined; answer: OneCron };
	'POST /crons/{cron}/resume': { permission: "control"; query: { }; body: undefined; answer: OneCron };
	'GET /cron/{cron}/next': { permission: "read"; query: { count?: Value; }; body: undefined; answer: CronComing };
	'GET /crons/{cron}/next': { permission: "read"; query: { count?: Value; }; body: undefined; answer: CronComing };
	'POST /admin/cron/preview': { permission: "read"; query: { }; body: PreviewCronBody; answer: CronPreview };
	'GET /cron/{cron}/history': { permission: "read"; query: { limit?: Value; }; body: undefined; answer: CronHistory };
	'GET /crons/{cron}/history': { permission: "read"; query: { limit?: Value; }; body: undefined; answer: CronHistory };
	'GET /unique-jobs': { permission: "payloads"; query: { limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: UniqueJobPage };
	'GET /rate-limits': { permission: "read"; query: { search?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: LimitPage };
	'GET /rate-limits/{key}': { permission: "read"; query: { }; body: undefined; answer: Limit };
	'PUT /rate-limits/{key}': { permission: "configure"; query: { }; body: OverrideRateLimitBody; answer: Limit };
	'PUT /rate-limits/{key}/override': { permission: "configure"; query: { }; body: OverrideRateLimitBody; answer: Limit };
	'DELETE /rate-limits/{key}/override': { permission: "configure"; query: { }; body: undefined; answer: Limit };
	'POST /workflows': { permission: "enqueue"; query: { }; body: CreateWorkflowBody; answer: OneWorkflow };
	'GET /workflows': { permission: "read"; query: { state?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: WorkflowPage };
	'GET /workflows/{workflow_id}': { permission: "read"; query: { limit?: Value; offset?: Value; }; body: undefined; answer: OneWorkflow };
	'DELETE /workflows/{workflow_id}': { permission: "control"; query: { }; body: undefined; answer: OneCancelledWorkflow };
	'GET /workflows/{workflow_id}/progress': { permission: "read"; query: { }; body: undefined; answer: OneWorkflowProgress };
	'POST /workflows/{workflow_id}/cancel': { permission: "control"; query: { }; body: undefined; answer: OneCancelledWorkflow };
	'POST /workflows/{workflow_id}/retry': { permission: "control"; query: { }; body: undefined; answer: OneWorkflow };
	'POST /webhooks/subscriptions': { permission: "configure"; query: { }; body: CreateWebhookSubscriptionBody; answer: OneWebhook };
	'GET /webhooks/subscriptions': { permission: "read"; query: { limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: WebhookPage };
	'GET /webhooks/subscriptions/{subscription}': { permission: "read"; query: { }; body: undefined; answer: OneWebhook };
	'PATCH /webhooks/subscriptions/{subscription}': { permission: "configure"; query: { }; body: UpdateWebhookSubscriptionBody; answer: OneWebhook };
	'PUT /webhooks/subscriptions/{subscription}': { permission: "configure"; query: { }; body: UpdateWebhookSubscriptionBody; answer: OneWebhook };
	'DELETE /webhooks/subscriptions/{subscription}': { permission: "configure"; query: { }; body: undefined; answer: DeletedWebhook };
	'POST /webhooks/subscriptions/{subscription}/test': { permission: "configure"; query: { }; body: undefined; answer: WebhookTest };
	'POST /webhooks/subscriptions/{subscription}/rotate-secret': { permission: "configure"; query: { }; body: undefined; answer: RotatedWebhook };
	'GET /webhooks/subscriptions/{subscription}/deliveries': { permission: "read"; query: { status?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: DeliveryPage };
	'GET /webhooks/deliveries': { permission: "read"; query: { subscription_id?: Value; status?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: DeliveryPage };
	'GET /webhooks/deliveries/{delivery}': { permission: "read"; query: { }; body: undefined; answer: OneDelivery };
	'POST /webhooks/deliveries/{delivery}/retry': { permission: "control"; query: { }; body: undefined; answer: OneDelivery };
	'GET /admin/keys': { permission: "admin"; query: { all?: Value; }; body: undefined; answer: KeyList };
	'POST /admin/keys': { permission: "admin"; query: { }; body: CreateKeyBody; answer: MadeKey };
	'GET /admin/keys/{key_id}': { permission: "admin"; query: { }; body: undefined; answer: OneKey };
	'DELETE /admin/keys/{key_id}': { permission: "admin"; query: { }; body: undefined; answer: OneKey };
	'POST /admin/keys/{key_id}/rotate': { permission: "admin"; query: { }; body: RotateKeyBody; answer: MadeKey };
	'PUT /admin/keys/{key_id}/limits': { permission: "admin"; query: { }; body: LimitKeyBody; answer: OneKey };
	'POST /session': { permission: "key"; query: { }; body: undefined; answer: Session };
	'GET /session': { permission: "key"; query: { }; body: undefined; answer: Session };
	'DELETE /session': { permission: "nothing"; query: { }; body: undefined; answer: null };
	'GET /admin/audit': { permission: "admin"; query: { event_type?: Value; principal?: Value; operation?: Value; target?: Value; outcome?: Value; since?: Value; until?: Value; limit?: Value; per_page?: Value; offset?: Value; cursor?: Value; after?: Value; }; body: undefined; answer: AuditPage };
	'GET /admin/system/maintenance': { permission: "read"; query: { }; body: undefined; answer: Maintenance };
	'POST /admin/system/maintenance': { permission: "admin"; query: { }; body: SetMaintenanceBody; answer: Maintenance };
	'GET /admin/maintenance': { permission: "read"; query: { }; body: undefined; answer: Maintenance };
	'POST /admin/maintenance': { permission: "admin"; query: { }; body: SetMaintenanceBody; answer: Maintenance };
	'GET /admin/unreadable': { permission: "read"; query: { kind?: Value; limit?: Value; cursor?: Value; offset?: Value; page?: Value; per_page?: Value; }; body: undefined; answer: UnreadableRecordPage };
	'DELETE /admin/unreadable/{kind}/{record}': { permission: "destroy"; query: { }; body: undefined; answer: RemovedRecord };
	'GET /openapi.json': { permission: "nothing"; query: { }; body: undefined; answer: GetOpenApiAnswer };
}
