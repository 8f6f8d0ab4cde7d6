// Made by script/dashboard_types.py from ojs_engine.domain.members and ojs_api.words; don't change it by hand.
export const FOUND_BY = ["tag", "error_type", "worker"];
export const OF_SERVER = ["activated_at", "attempt", "cancelled_at", "checkpoint", "completed_at", "created_at", "dead_letter", "discarded_at", "enqueued_at", "error", "errors", "leaves_at", "next_attempt_at", "next_retry_at", "parent_results", "parent_results_by_index", "previous_state", "rate_limit_until", "re_enqueued_at", "result", "result_expires_at", "result_size_bytes", "result_stored_at", "retry_delay_ms", "started_at", "state", "timeline", "timers", "uncounted_attempts", "visible_until", "worker_id", "workflow_id", "workflow_step", "workflow_step_id"];
export const OPTIONS = ["queue", "priority", "max_attempts", "timeout_ms", "visibility_timeout_ms", "scheduled_at", "expires_at", "retry", "unique", "rate_limit", "tags", "schema", "version", "meta", "metadata", "result_ttl", "result_size_limit", "timeout", "total_timeout", "enqueue_ttl", "heartbeat_timeout", "grace_period"];
export const JOB_STATES = ["scheduled", "available", "pending", "active", "retryable", "completed", "cancelled", "discarded"];
export const OVERLAPS = ["skip", "allow", "cancel_previous", "enqueue"];
export const ROLES = ["producer", "worker", "viewer", "operator", "admin"];
export const WORKFLOW_STATES = ["running", "completed", "failed", "cancelled"];
export const TEXTS = ["tags"];
