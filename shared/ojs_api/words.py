"""The words that clients and servers say to each other, each list once.

Checks, choices of the command line and of the dashboard, and the description of the API take them from here. What each
means is said where it acts.
"""

from __future__ import annotations

from typing import Literal

JobState = Literal["scheduled", "available", "pending", "active", "retryable", "completed", "cancelled", "discarded"]
WorkflowState = Literal["running", "completed", "failed", "cancelled"]
WorkerState = Literal["running", "quiet", "drain", "terminate", "stale"]

Backoff = Literal["none", "constant", "linear", "exponential", "polynomial"]
Exhaustion = Literal["discard", "dead_letter"]
FailureAction = Literal["RETRY", "DISCARD", "DEAD_LETTER", "FAIL"]
Identity = Literal["type", "queue", "args", "meta"]
OnConflict = Literal["reject", "replace", "replace_except_schedule", "ignore"]
OnLimit = Literal["wait", "reschedule", "drop"]
PriorityName = Literal["high", "normal", "low"]

Directive = Literal["running", "quiet", "terminate"]
Overflow = Literal["reject", "drop_oldest"]
Overlap = Literal["skip", "allow", "cancel_previous", "enqueue"]
PoolStrategy = Literal["weighted", "round-robin", "strict"]
RemovalStrategy = Literal["reject", "discard", "move"]
Role = Literal["producer", "worker", "viewer", "operator", "admin", "custom"]

AuditOutcome = Literal["success", "failure"]
Binding = Literal["http", "nats"]
DeliveryStatus = Literal["failing", "dead", "delivered"]
LogFormat = Literal["auto", "console", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
Mechanism = Literal["api_key", "session"]
Order = Literal["desc", "asc"]
Period = Literal["1m", "5m", "1h", "1d"]
Severity = Literal["problem", "warning"]
Sort = Literal["created_at", "scheduled_at", "priority"]
