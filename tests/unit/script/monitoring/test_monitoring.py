"""The alerts and the dashboard: made of the metrics that there are, all of them, and each alert with a way out."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest

from script.monitoring import alerts, grafana
from script.monitoring.queries import metrics_of, names
from support.promtool import promtool, promtool_program
from support.tables import each

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "deploy" / "monitoring"

needs_promtool = pytest.mark.skipif(
    promtool_program() is None and "CI" not in os.environ, reason="there is no promtool here; CI has one"
)

FIRING: dict[str, list[tuple[str, str]]] = {
    "OjsServiceMissing": [('ojs_service_up{role="reaper",instance="a"}', "0x40")],
    "OjsProcessUnreachable": [('up{job="ojs-nats",instance="a"}', "0x40")],
    "OjsWritesFail": [('ojs_commits_total{outcome="failed"}', "0+60x40")],
    "OjsStorageFillsUp": [('ojs_storage_used_bytes{of="server"}', "90x40"), ('ojs_storage_limit_bytes{of="server"}', "100x40")],
    "OjsStorageFull": [("ojs_storage_full", "1x40")],
    "OjsProjectorBehind": [("ojs_projector_lag_seconds", "60x40")],
    "OjsNobodyRelaysEvents": [("ojs_projector_relaying", "0x40")],
    "OjsJobsWaitLong": [('ojs_queue_oldest_seconds{queue="mail"}', "1000x40")],
    "OjsManyJobsFail": [
        ('ojs_job_failed_total{queue="mail",type="a"}', "0+30x40"),
        ('ojs_job_completed_total{queue="mail",type="a"}', "0+60x40"),
    ],
    "OjsLeasesExpire": [('ojs_job_lease_expired_total{queue="mail",type="a"}', "0+5x40")],
    "OjsDeadlinesLate": [
        ('ojs_due_lateness_seconds_bucket{service="reaper",le="5"}', "0+1x40"),
        ('ojs_due_lateness_seconds_bucket{service="reaper",le="30"}', "0+60x40"),
        ('ojs_due_lateness_seconds_bucket{service="reaper",le="+Inf"}', "0+60x40"),
    ],
    "OjsHintsLost": [('ojs_safety_net_finds_total{kind="token"}', "0+1x40")],
    "OjsRecordsUnreadable": [('ojs_unreadable_records_total{kind="job"}', "0+1x40")],
    "OjsRecordsLost": [('ojs_lost_records_total{kind="queue"}', "0+1x40")],
    "OjsConsumersRunOut": [
        ('ojs_nats_consumers{stream="OJS_READY"}', "90x40"),
        ('ojs_nats_consumers_limit{stream="OJS_READY"}', "100x40"),
    ],
    "OjsWebhooksGivenUp": [('ojs_webhook_delivery_total{event_type="job.failed",status="dead"}', "0+1x40")],
    "OjsCertificateEnds": [('ojs_tls_certificate_end_seconds{instance="a"}', "90000x80")],
    "OjsAuditLost": [('ojs_audit_entries_total{outcome="lost"}', "0+1x40")],
    "OjsAuditFills": [("ojs_audit_fill_ratio", "0.9x40")],
    "OjsAuditRollsOver": [
        ("ojs_audit_fill_ratio", "1x40"),
        ("ojs_audit_oldest_entry_age_seconds", "86400x40"),
        ("ojs_audit_promised_age_seconds", "7776000x40"),
    ],
    "OjsBackupOld": [('ojs_backup_age_seconds{instance="a"}', "700000x40")],
}
"""Series, at a minute's distance, that an alert fires for."""
CALM: list[tuple[str, str]] = [
    ('ojs_service_up{role="reaper",instance="a"}', "1x80"),
    ('up{job="ojs-nats",instance="a"}', "1x80"),
    ('ojs_commits_total{outcome="failed"}', "3x80"),
    ('ojs_commits_total{outcome="conflict"}', "0+60x80"),
    ('ojs_storage_used_bytes{of="server"}', "70x80"),
    ('ojs_storage_limit_bytes{of="server"}', "100x80"),
    ("ojs_storage_full", "0x80"),
    ('ojs_projector_lag_seconds{instance="a"}', "0x80"),
    ('ojs_projector_lag_seconds{instance="b"}', "90x80"),
    ('ojs_projector_relaying{instance="a"}', "1x80"),
    ('ojs_projector_relaying{instance="b"}', "0x80"),
    ('ojs_queue_oldest_seconds{queue="mail"}', "30x80"),
    ('ojs_job_failed_total{queue="mail",type="a"}', "0+3x80"),
    ('ojs_job_completed_total{queue="mail",type="a"}', "0+60x80"),
    ('ojs_job_lease_expired_total{queue="mail",type="a"}', "0+0x80"),
    ('ojs_safety_net_finds_total{kind="token"}', "7x80"),
    ('ojs_nats_consumers{stream="OJS_READY"}', "10x80"),
    ('ojs_nats_consumers_limit{stream="OJS_READY"}', "100x80"),
    ('ojs_tls_certificate_end_seconds{instance="a"}', "0x80"),
    ('ojs_tls_certificate_end_seconds{instance="b"}', "9000000x80"),
    ('ojs_audit_entries_total{outcome="late"}', "0+60x80"),
    ("ojs_audit_fill_ratio", "0.5x80"),
    ("ojs_audit_oldest_entry_age_seconds", "86400x80"),
    ("ojs_audit_promised_age_seconds", "7776000x80"),
    ('ojs_backup_age_seconds{instance="a"}', "600000x80"),
]
"""What a system shows that is well: no alert fires."""


def test_the_files_are_up_to_date() -> None:
    assert (FOLDER / "alerts.yml").read_text(encoding="utf-8") == alerts.rules(), (
        "run: python -m script.monitoring.alerts > deploy/monitoring/alerts.yml"
    )
    assert (FOLDER / "grafana.json").read_bytes() == grafana.dashboard(), (
        "run: python -m script.monitoring.grafana > deploy/monitoring/grafana.json"
    )


def test_the_dashboard_shows_every_metric() -> None:
    panels = msgspec.json.decode(grafana.dashboard())["panels"]
    shown = {name for panel in panels for target in panel.get("targets", ()) for name in metrics_of(target["expr"])}
    assert set(names().values()) - shown == set()


def test_a_query_for_a_metric_that_nobody_serves_is_refused() -> None:
    with pytest.raises(ValueError, match="no process serves ojs_job_completed_totl"):
        metrics_of("rate(ojs_job_completed_totl[5m])")


def test_panels_do_not_cover_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in msgspec.json.decode(grafana.dashboard())["panels"]:
        at = panel["gridPos"]
        fields = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not fields & taken, panel["title"]
        taken |= fields


@each("alert", alerts.ALERTS, ids=[alert.name for alert in alerts.ALERTS])
def test_an_alert_has_a_section_that_says_what_to_do(alert: alerts.Alert) -> None:
    page, _, anchor = alert.runbook.partition("#")
    found = re.findall(r"^### (.+)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert anchor in [heading.lower() for heading in found]


def test_every_alert_has_series_that_it_fires_for() -> None:
    assert FIRING.keys() == {alert.name for alert in alerts.ALERTS}


@needs_promtool
def test_prometheus_takes_its_configuration_and_the_rules() -> None:
    assert f"{len(alerts.ALERTS)} rules found" in promtool("check", "config", "prometheus.yml", cwd=FOLDER)


@needs_promtool
def test_alerts_fire_for_what_they_are_about_and_not_for_a_system_that_is_well(tmp_path: Path) -> None:
    def played(series: list[tuple[str, str]], firing: set[str]) -> list[dict[str, object]]:
        at = "75m" if "OjsCertificateEnds" in firing or not firing else "35m"

        def expected(name: str) -> list[dict[str, object]]:
            return [{"labels": f'{{alertname="{name}"}}', "value": 1}] if name in firing else []

        return [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series],
                "promql_expr_test": [
                    {
                        "expr": f'count by (alertname) (ALERTS{{alertstate="firing",alertname="{alert.name}"}})',
                        "eval_time": at,
                        "exp_samples": expected(alert.name),
                    }
                    for alert in alerts.ALERTS
                ],
            }
        ]

    described = {
        "rule_files": [str(FOLDER / "alerts.yml")],
        "evaluation_interval": "1m",
        "tests": [test for name, series in FIRING.items() for test in played(series, {name})] + played(CALM, set()),
    }
    (tmp_path / "rules.yml").write_bytes(msgspec.json.encode(described))  # JSON is YAML
    assert "SUCCESS" in promtool("test", "rules", "rules.yml", cwd=tmp_path)
