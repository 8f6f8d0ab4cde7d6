"""The dashboard for Grafana. `python -m script.monitoring.grafana > deploy/monitoring/grafana.json` renews it."""

from __future__ import annotations

import sys
from typing import Any, Final, NamedTuple

import msgspec

from script.monitoring.queries import metrics_of

_WIDTH: Final = 24
_HEIGHT: Final = 8
_COLUMNS: Final = 3
_SOURCE: Final = {"type": "prometheus", "uid": "${source}"}
_QUEUES: Final = 'queue=~"$queue"'


class Panel(NamedTuple):
    """A plot of queries, each with the text of its legend. `unit` is Grafana's name of it."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    says: str = ""


def _rate(metric: str, by: str, matching: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{{{matching}}}[$__rate_interval]))"


def _quantile(share: float, metric: str, by: str, matching: str = "") -> str:
    return f"histogram_quantile({share}, sum by (le, {by}) (rate({metric}_bucket{{{matching}}}[$__rate_interval])))"


ROWS: Final[tuple[tuple[str, tuple[Panel, ...]], ...]] = (
    (
        "Jobs",
        (
            Panel(
                "What happens to jobs",
                "ops",
                tuple(
                    (f"sum(rate(ojs_job_{what}_total{{{_QUEUES}}}[$__rate_interval]))", what)
                    for what in ("enqueued", "completed", "failed", "retried", "cancelled", "expired", "lease_expired")
                ),
                "failed: discarded for good. lease_expired: attempts that ended without a word from their worker.",
            ),
            Panel("Completed by queue", "ops", ((_rate("ojs_job_completed_total", "queue", _QUEUES), "{{queue}}"),)),
            Panel("Failed by type", "ops", ((_rate("ojs_job_failed_total", "queue, type", _QUEUES), "{{queue}} {{type}}"),)),
            Panel(
                "Waited until started",
                "s",
                tuple(
                    (_quantile(share, "ojs_job_queue_time_seconds", "queue", _QUEUES), f"{{{{queue}}}} p{share * 100:g}")
                    for share in (0.5, 0.99)
                ),
            ),
            Panel(
                "Ran",
                "s",
                tuple(
                    (_quantile(share, "ojs_job_duration_seconds", "type", _QUEUES), f"{{{{type}}}} p{share * 100:g}")
                    for share in (0.5, 0.99)
                ),
            ),
        ),
    ),
    (
        "Queues",
        (
            Panel("Available", "short", ((f'max by (queue) (ojs_queue_depth{{state="available",{_QUEUES}}})', "{{queue}}"),)),
            Panel(
                "Longest wait now",
                "s",
                ((f"max by (queue) (ojs_queue_oldest_seconds{{{_QUEUES}}})", "{{queue}}"),),
                "How long the job has waited that is available and has waited longest.",
            ),
            Panel("Active", "short", ((f"max by (queue) (ojs_queue_active{{{_QUEUES}}})", "{{queue}}"),)),
            Panel(
                "Stored by state",
                "short",
                ((f"sum by (state) (max by (queue, state) (ojs_queue_depth{{{_QUEUES}}}))", "{{state}}"),),
            ),
            Panel(
                "Dead letters",
                "short",
                (
                    (f"max by (queue) (ojs_dead_letter_depth{{{_QUEUES}}})", "{{queue}}"),
                    (
                        f"sum by (queue) (increase(ojs_dead_letter_pruned_total{{{_QUEUES}}}[$__rate_interval]))",
                        "{{queue}} deleted",
                    ),
                ),
            ),
            Panel(
                "Bounds and limits",
                "short",
                (
                    (f"max by (queue) (ojs_backpressure_pressure{{{_QUEUES}}})", "{{queue}} pressure"),
                    (_rate("ojs_backpressure_rejected_total", "queue", _QUEUES), "{{queue}} rejected/s"),
                    (_rate("ojs_backpressure_dropped_total", "queue", _QUEUES), "{{queue}} dropped/s"),
                    (_rate("ojs_rate_limit_exceeded_total", "strategy"), "limited: {{strategy}}/s"),
                    (_rate("ojs_schema_violations_total", "queue, outcome", _QUEUES), "{{queue}} schema: {{outcome}}/s"),
                    (_rate("ojs_scheduling_starvation_events_total", "queue", _QUEUES), "{{queue}} starved/s"),
                ),
            ),
        ),
    ),
    (
        "Requests",
        (
            Panel(
                "By status",
                "reqps",
                (("sum by (status) (rate(ojs_http_request_duration_seconds_count[$__rate_interval]))", "{{status}}"),),
            ),
            Panel(
                "Time until answered",
                "s",
                (
                    (
                        _quantile(0.99, "ojs_http_request_duration_seconds", "method, route", 'route!="/ojs/v1/workers/fetch"'),
                        "{{method}} {{route}}",
                    ),
                ),
                "p99, fetches left out: they wait for jobs.",
            ),
            Panel(
                "Connections",
                "short",
                (
                    ("sum by (instance) (ojs_http_connections)", "{{instance}}"),
                    (_rate("ojs_http_connections_refused_total", "limit"), "refused at {{limit}}/s"),
                    (_rate("ojs_tls_handshakes_failed_total", "reason"), "no TLS: {{reason}}/s"),
                    (_rate("ojs_proxy_headers_refused_total", "reason"), "no PROXY header: {{reason}}/s"),
                    (_rate("ojs_fetch_queues_skipped_total", "instance"), "{{instance}} queues skipped/s"),
                ),
            ),
            Panel("Certificate ends in", "s", (("(ojs_tls_certificate_end_seconds > 0) - time()", "{{instance}}"),)),
        ),
    ),
    (
        "NATS and storage",
        (
            Panel(
                "Writes of job records",
                "wps",
                ((_rate("ojs_commits_total", "outcome"), "{{outcome}}"),),
                "conflict is normal under load.",
            ),
            Panel(
                "Requests to NATS",
                "s",
                ((_quantile(0.99, "ojs_nats_request_duration_seconds", "connection"), "{{connection}} p99"),),
            ),
            Panel(
                "Trouble with NATS",
                "short",
                (
                    (_rate("ojs_nats_request_timeouts_total", "connection"), "{{connection}} timeouts/s"),
                    (_rate("ojs_nats_reconnects_total", "connection"), "{{connection}} reconnects/s"),
                    (_rate("ojs_nats_replies_refused_total", "instance"), "{{instance}} replies refused/s"),
                    (_rate("ojs_nats_consumers_refused_total", "instance"), "{{instance}} consumers refused/s"),
                ),
            ),
            Panel(
                "Storage",
                "bytes",
                (
                    ("max by (of) (ojs_storage_used_bytes)", "{{of}} used"),
                    ("max by (of) (ojs_storage_limit_bytes)", "{{of}} limit"),
                    ("max by (of) (ojs_storage_reserve_bytes)", "{{of}} reserve"),
                ),
            ),
            Panel("New jobs are refused", "bool_yes_no", (("max(ojs_storage_full)", "storage is full"),)),
            Panel(
                "Consumers",
                "short",
                (
                    ("max by (stream) (ojs_nats_consumers)", "{{stream}}"),
                    ("max by (stream) (ojs_nats_consumers_limit)", "{{stream}} limit"),
                ),
            ),
        ),
    ),
    (
        "Services",
        (
            Panel("Processes by role", "short", (("max by (role) (ojs_service_up)", "{{role}}"),)),
            Panel("Versions", "short", (("count by (service, version) (ojs_build_info)", "{{service}} {{version}}"),)),
            Panel(
                "How late deadlines are", "s", ((_quantile(0.99, "ojs_due_lateness_seconds", "service"), "{{service}} p99"),)
            ),
            Panel(
                "Projectors",
                "short",
                (
                    ("ojs_projector_lag_seconds", "{{instance}} lag (s)"),
                    ("ojs_projector_progress_ratio", "{{instance}} index there"),
                    ("ojs_projector_relaying", "{{instance}} relays"),
                    (_rate("ojs_projector_relayed_events_total", "instance"), "{{instance}} events/s"),
                ),
            ),
            Panel(
                "Found again or damaged",
                "short",
                (
                    ("sum by (kind) (increase(ojs_safety_net_finds_total[$__rate_interval]))", "{{kind}} issued again"),
                    ("sum by (kind) (increase(ojs_unreadable_records_total[$__rate_interval]))", "{{kind}} unreadable"),
                    ("sum by (kind) (increase(ojs_lost_records_total[$__rate_interval]))", "{{kind}} lost"),
                ),
                "Anything but 0 deserves a look at the log.",
            ),
            Panel(
                "Audit",
                "short",
                (
                    ("sum by (outcome) (increase(ojs_audit_entries_total[$__rate_interval]))", "{{outcome}}"),
                    ("max(ojs_audit_fill_ratio)", "fill"),
                    ("max(ojs_audit_oldest_entry_age_seconds / (ojs_audit_promised_age_seconds > 0))", "age"),
                ),
            ),
            Panel("Age of the last backup", "s", (("min(ojs_backup_age_seconds)", "age"),)),
        ),
    ),
    (
        "Webhooks",
        (
            Panel(
                "Deliveries", "ops", ((_rate("ojs_webhook_delivery_total", "event_type, status"), "{{event_type}} {{status}}"),)
            ),
            Panel(
                "Time of targets",
                "s",
                ((_quantile(0.99, "ojs_webhook_delivery_duration_seconds", "event_type"), "{{event_type}} p99"),),
            ),
            Panel("Subscriptions", "short", (("max(ojs_webhook_subscriptions)", "active"),)),
        ),
    ),
)


def dashboard() -> bytes:
    """The dashboard as Grafana imports it. Raises ValueError if a panel is about a metric that no process serves."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS:
        panels.append({"type": "row", "id": len(panels) + 1, "title": title, "gridPos": _place(0, top, _WIDTH, 1)})
        top += 1
        for number, panel in enumerate(row):
            line, column = divmod(number, _COLUMNS)
            width = _WIDTH // _COLUMNS
            panels.append(_panel(panel, len(panels) + 1, _place(column * width, top + line * _HEIGHT, width, _HEIGHT)))
        top += -(-len(row) // _COLUMNS) * _HEIGHT
    described = {
        "uid": "ojs-nats",
        "title": "ojs-nats",
        "tags": ["ojs", "jobs"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": _variables()},
        "panels": panels,
    }
    return msgspec.json.format(msgspec.json.encode(described), indent=1) + b"\n"


def _place(left: int, top: int, width: int, height: int) -> dict[str, int]:
    return {"x": left, "y": top, "w": width, "h": height}


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    for expression, _ in panel.queries:
        metrics_of(expression)
    targets = [
        {"refId": chr(ord("A") + at), "datasource": _SOURCE, "expr": expression, "legendFormat": legend}
        for at, (expression, legend) in enumerate(panel.queries)
    ]
    return {
        "type": "timeseries",
        "id": number,
        "title": panel.title,
        "description": panel.says,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {
            "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull"]},
            "tooltip": {"mode": "multi"},
        },
        "targets": targets,
    }


def _variables() -> list[dict[str, Any]]:
    queues = "label_values(ojs_queue_depth, queue)"
    metrics_of(queues)
    return [
        {"name": "source", "type": "datasource", "query": "prometheus", "label": "Data source"},
        {
            "name": "queue",
            "type": "query",
            "label": "Queue",
            "datasource": _SOURCE,
            "query": queues,
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
        },
    ]


if __name__ == "__main__":
    sys.stdout.buffer.write(dashboard())
