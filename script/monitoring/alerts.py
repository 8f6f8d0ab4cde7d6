"""The alerts of Prometheus. `python -m script.monitoring.alerts > deploy/monitoring/alerts.yml` renews them.

Each has a section of its name in docs/debugging.md that says what to do.
"""

from __future__ import annotations

import sys
from textwrap import indent
from typing import Final, Literal, NamedTuple

from script.monitoring.queries import metrics_of

Severity = Literal["page", "ticket"]
"""`page` wakes somebody up, `ticket` can wait for the morning."""

RUNBOOK: Final = "docs/debugging.md"


class Alert(NamedTuple):
    """An alert: it fires when `expression` has had a result for `lasting`. `summary` may use Prometheus' templates."""

    name: str
    severity: Severity
    expression: str
    lasting: str
    summary: str

    @property
    def runbook(self) -> str:
        """The section of the page that says what to do."""
        return f"{RUNBOOK}#{self.name.lower()}"


ALERTS: Final = (
    Alert(
        "OjsServiceMissing",
        "page",
        "max by (role) (ojs_service_up) == 0",
        "1m",
        "No process of the role {{ $labels.role }} runs, so its work waits.",
    ),
    Alert(
        "OjsProcessUnreachable",
        "ticket",
        'up{job="ojs-nats"} == 0',
        "5m",
        "Prometheus can't reach {{ $labels.instance }}.",
    ),
    Alert(
        "OjsWritesFail",
        "page",
        'sum(rate(ojs_commits_total{outcome="failed"}[5m])) > 0',
        "2m",
        "NATS doesn't store job records: {{ $value | humanize }} writes a second fail.",
    ),
    Alert(
        "OjsStorageFillsUp",
        "ticket",
        "max by (of) (ojs_storage_used_bytes / (ojs_storage_limit_bytes > 0)) > 0.8",
        "10m",
        "{{ $value | humanizePercentage }} of the storage ({{ $labels.of }}) is used.",
    ),
    Alert(
        "OjsStorageFull",
        "page",
        "max(ojs_storage_full) > 0",
        "1m",
        "New jobs are refused, because there is no room for them.",
    ),
    Alert(
        "OjsProjectorBehind",
        "ticket",
        "min(ojs_projector_lag_seconds) > 30",
        "5m",
        "Events, lists and statistics are {{ $value | humanizeDuration }} late.",
    ),
    Alert(
        "OjsNobodyRelaysEvents",
        "page",
        "sum(ojs_projector_relaying) == 0",
        "2m",
        "No projector publishes events: subscribers and webhooks get nothing.",
    ),
    Alert(
        "OjsJobsWaitLong",
        "ticket",
        "max by (queue) (ojs_queue_oldest_seconds) > 900",
        "5m",
        "A job in the queue {{ $labels.queue }} has waited for {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "OjsManyJobsFail",
        "ticket",
        "sum by (queue) (rate(ojs_job_failed_total[15m]))"
        " / (sum by (queue) (rate(ojs_job_completed_total[15m])) + sum by (queue) (rate(ojs_job_failed_total[15m])))"
        " > 0.1",
        "15m",
        "{{ $value | humanizePercentage }} of the jobs that end in the queue {{ $labels.queue }} fail for good.",
    ),
    Alert(
        "OjsLeasesExpire",
        "ticket",
        "sum by (queue) (increase(ojs_job_lease_expired_total[15m])) > 10",
        "5m",
        "{{ $value | humanize }} attempts in the queue {{ $labels.queue }} ended without a word from their worker.",
    ),
    Alert(
        "OjsDeadlinesLate",
        "ticket",
        "histogram_quantile(0.99, sum by (le, service) (rate(ojs_due_lateness_seconds_bucket[5m]))) > 5",
        "5m",
        "What is due happens {{ $value | humanizeDuration }} late in the {{ $labels.service }}.",
    ),
    Alert(
        "OjsHintsLost",
        "ticket",
        "sum by (kind) (increase(ojs_safety_net_finds_total[15m])) > 0",
        "0m",
        "The safety net issued {{ $value | humanize }} lost hints of the kind {{ $labels.kind }} again.",
    ),
    Alert(
        "OjsRecordsUnreadable",
        "ticket",
        "sum by (kind) (increase(ojs_unreadable_records_total[15m])) > 0",
        "0m",
        "Records of the kind {{ $labels.kind }} can't be read: they are damaged, or of a newer version.",
    ),
    Alert(
        "OjsRecordsLost",
        "page",
        "sum by (kind) (increase(ojs_lost_records_total[15m])) > 0",
        "0m",
        "NATS has lost records of the kind {{ $labels.kind }} that running processes know. Don't stop these processes.",
    ),
    Alert(
        "OjsConsumersRunOut",
        "ticket",
        "max by (stream) (ojs_nats_consumers / (ojs_nats_consumers_limit > 0)) > 0.8",
        "15m",
        "{{ $value | humanizePercentage }} of the consumers that {{ $labels.stream }} may have are in use.",
    ),
    Alert(
        "OjsWebhooksGivenUp",
        "ticket",
        'sum(increase(ojs_webhook_delivery_total{status="dead"}[15m])) > 0',
        "0m",
        "{{ $value | humanize }} deliveries of webhooks were given up.",
    ),
    Alert(
        "OjsCertificateEnds",
        "ticket",
        "0 < ojs_tls_certificate_end_seconds < time() + 14 * 86400",
        "1h",
        "The certificate of {{ $labels.instance }} ends within two weeks.",
    ),
    Alert(
        "OjsAuditLost",
        "page",
        'sum(increase(ojs_audit_entries_total{outcome="lost"}[15m])) > 0',
        "0m",
        "{{ $value | humanize }} entries of the audit could not be stored; only the logs have them.",
    ),
    Alert(
        "OjsAuditFills",
        "ticket",
        "0.8 < max(ojs_audit_fill_ratio) < 0.99",
        "15m",
        "The audit has {{ $value | humanizePercentage }} of the entries that it may have.",
    ),
    Alert(
        "OjsAuditRollsOver",
        "page",
        "max(ojs_audit_fill_ratio) >= 0.99 and "
        "max(ojs_audit_oldest_entry_age_seconds) < max(ojs_audit_promised_age_seconds) * 0.99",
        "0m",
        "The audit is full, and its entries leave before their time.",
    ),
    Alert(
        "OjsBackupOld",
        "ticket",
        "min(ojs_backup_age_seconds) > 8 * 86400",
        "15m",
        "The last backup is {{ $value | humanizeDuration }} old.",
    ),
)

_HEAD: Final = """\
# Alerts for Prometheus. Made by `python -m script.monitoring.alerts`; the thresholds are a start, change them in
# a copy. severity: page wakes somebody up, ticket can wait for the morning.
groups:
  - name: ojs-nats
    rules:
"""


def rules() -> str:
    """The file of rules, in YAML. Raises ValueError if an alert is about a metric that no process serves."""
    return _HEAD + "\n".join(indent(_rule(alert), " " * 6) for alert in ALERTS)


def _rule(alert: Alert) -> str:
    metrics_of(alert.expression)
    return f"""\
- alert: {alert.name}
  expr: {_quoted(alert.expression)}
  for: {alert.lasting}
  labels:
    severity: {alert.severity}
  annotations:
    summary: {_quoted(alert.summary)}
    runbook: {alert.runbook}
"""


def _quoted(text: str) -> str:
    """A scalar of YAML between single quotes, in which nothing but the quote is special."""
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    sys.stdout.write(rules())
