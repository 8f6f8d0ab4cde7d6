"""Whoever ends a process gives it the time that it takes: to drain, and to stop."""

from __future__ import annotations

import re
from pathlib import Path

import yaml  # type: ignore[import-untyped]  # read for tests; stubs would be one more package

from ojs_gateway.context import GatewayTimings
from ojs_runtime.settings import Settings
from ojs_runtime.stopping import StopTimings

STOP = StopTimings()
ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "chart" / "ojs-nats" / "templates"


def found(path: Path, pattern: str) -> float:
    match = re.search(pattern, path.read_text(encoding="utf-8"))
    assert match is not None, (path, pattern)
    return float(match[1])


def test_a_gateway_has_answered_its_last_requests_before_it_is_cut_off() -> None:
    timings = GatewayTimings()
    assert timings.farewell_s + 2 * timings.shutdown_s <= STOP.alone_s - STOP.close_s


def test_systemd_waits_for_a_gateway_that_drains_as_the_page_says() -> None:
    drains = found(ROOT / "docs" / "operations.md", r"`OJS_DRAIN_DELAY=(\d+)`")
    assert found(DEPLOY / "systemd" / "ojs-nats@.service", r"(?m)^TimeoutStopSec=(\d+)$") > drains + 2 * STOP.alone_s


def test_kubernetes_waits_for_a_gateway_that_drains() -> None:
    drains = found(CHART / "gateway.yaml", r'name: OJS_DRAIN_DELAY, value: "(\d+)"')
    assert found(CHART / "_helpers.tpl", r"(?m)^terminationGracePeriodSeconds: (\d+)$") > drains + 2 * STOP.alone_s


def test_haproxy_has_looked_several_times_before_a_gateway_that_drains_is_gone() -> None:
    drains = found(ROOT / "docs" / "operations.md", r"`OJS_DRAIN_DELAY=(\d+)`")
    assert found(DEPLOY / "haproxy.cfg", r"check inter (\d+)s fall 1") * 3 <= drains


def test_prometheus_looks_where_the_units_listen() -> None:
    described = yaml.safe_load((DEPLOY / "monitoring" / "prometheus.yml").read_text(encoding="utf-8"))
    (job,) = described["scrape_configs"]
    ports = [int(target.rpartition(":")[2]) for group in job["static_configs"] for target in group["targets"]]
    services = found(DEPLOY / "systemd" / "environment" / "services.environment", r"(?m)^OJS_HEALTH_PORT=(\d+)$")
    assert ports == [Settings().port, services]
