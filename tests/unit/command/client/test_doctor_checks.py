"""States of a server that a test can't bring about: what its doctor makes of the figures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ojs_command.client.doctor import server, work
from ojs_command.client.doctor.findings import Finding
from ojs_nats import Client
from ojs_nats.answers.system import BackendHealth, Health, Projector, ServicesHealth, StorageHealth, StorageLevel
from ojs_nats.answers.workers import FleetSummary


def client(**subjects: Any) -> Client:
    """One whose operations answer with these."""

    def answering(answers: dict[str, Any]) -> SimpleNamespace:
        def operation(answer: Any) -> Any:
            async def asked() -> Any:
                return answer() if callable(answer) else answer

            return asked

        return SimpleNamespace(**{name: operation(answer) for name, answer in answers.items()})

    return cast("Client", SimpleNamespace(**{name: answering(answers) for name, answers in subjects.items()}))


def health(**changes: Any) -> Health:
    usual: dict[str, Any] = {
        "status": "ok",
        "version": "1.0",
        "uptime_seconds": 1,
        "backend": BackendHealth(type="nats", status="healthy", latency_ms=1),
        "storage": StorageHealth(status="healthy", levels=[]),
        "services": ServicesHealth(processes={"gateway": 1}, missing=[]),
    }
    return Health(**(usual | changes))


def level(used: int) -> StorageLevel:
    return StorageLevel(of="disk", used_bytes=used, limit_bytes=110, reserve_bytes=10)


@pytest.mark.parametrize(
    ("changes", "check", "status"),
    [
        ({}, "nats", "ok"),
        ({"backend": BackendHealth(type="nats", status="unhealthy", error="no leader")}, "nats", "problem"),
        ({"backend": BackendHealth(type="nats", status="damaged", error="lost", latency_ms=1)}, "nats", "problem"),
        ({"backend": BackendHealth(type="nats", status="healthy", latency_ms=500)}, "nats", "warning"),
        ({"storage": StorageHealth(status="healthy", levels=[level(80)])}, "storage", "ok"),
        ({"storage": StorageHealth(status="healthy", levels=[level(81)])}, "storage", "warning"),
        ({"storage": StorageHealth(status="full", levels=[level(100)])}, "storage", "problem"),
        ({"services": ServicesHealth(processes={}, missing=["reaper"])}, "services", "problem"),
    ],
)
async def test_health(changes: dict[str, Any], check: str, status: str) -> None:
    findings = await server.check_health(client(system={"health": health(**changes)}))
    assert [finding.status for finding in findings if finding.check == check] == [status]
    assert all(finding.meaning and finding.remedy for finding in findings if finding.status != "ok")


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, None), (1.9, None), (-60, "1m ahead of the"), (60, "behind the"), (-3, "ahead of")]
)
async def test_clocks(seconds: float, said: str | None) -> None:
    def stats() -> SimpleNamespace:
        return SimpleNamespace(computed_at=datetime.now(UTC) + timedelta(seconds=seconds))

    [found] = await server.check_clock(client(pools={"scheduling_stats": stats}))
    assert found.status == ("ok" if said is None else "warning")
    assert said is None or said in found.found.replace("59s", "1m")


@pytest.mark.parametrize(("lag_ms", "status"), [(0, "ok"), (5_000, "warning"), (60_000, "problem")])
async def test_a_projector_that_is_behind(lag_ms: int, status: str) -> None:
    projector = Projector(instance="p", lag_ms=lag_ms, applied=1, relaying=True, relayed=1, repaired={})
    [found] = await server.check_projector(client(system={"status": SimpleNamespace(projector=projector, error=None)}))
    assert found.status == status


async def test_a_projector_that_missed_records() -> None:
    projector = Projector(instance="p", lag_ms=0, applied=1, relaying=True, relayed=1, repaired={"record": 3})
    [found] = await server.check_projector(client(system={"status": SimpleNamespace(projector=projector, error=None)}))
    assert (found.status, found.found) == ("problem", "3 records that were stored were gone from NATS")


@pytest.mark.parametrize(("copies", "test_mode", "warned"), [(1, True, ["durability", "test mode"]), (3, False, [])])
async def test_durability(copies: int, test_mode: bool, warned: list[str]) -> None:
    config = SimpleNamespace(backend=SimpleNamespace(replicas=copies), test_mode=test_mode)
    assert _warned(await server.check_durability(client(system={"config": config}))) == warned


@pytest.mark.parametrize(("name", "version", "warned"), [("ojs-nats", "0.0.1", ["versions"]), ("other", "1", ["versions"])])
async def test_versions(name: str, version: str, warned: list[str]) -> None:
    manifest = SimpleNamespace(implementation=SimpleNamespace(name=name, version=version))
    status = SimpleNamespace(nats_server_version="2.14.0")
    assert _warned(await server.check_versions(client(system={"manifest": manifest, "status": status}))) == warned


@pytest.mark.parametrize(("queues", "warned"), [(1_600, []), (1_601, ["limits"])])
async def test_limits(queues: int, warned: list[str]) -> None:
    answers = {"manifest": SimpleNamespace(limits={"max_busy_queues": 2_000}), "stats": SimpleNamespace(queues=queues)}
    assert _warned(await server.check_limits(client(system=answers))) == warned


@pytest.mark.parametrize(("stale", "warned"), [(0, []), (2, ["workers"])])
async def test_workers_that_have_fallen_silent(stale: int, warned: list[str]) -> None:
    fleet = FleetSummary(total=5, running=4, quiet=1, terminate=0, stale=stale, active=5 - stale)
    assert _warned(await work.check_workers(client(workers={"summary": fleet}))) == warned


def _warned(findings: list[Finding]) -> list[str]:
    return [finding.check for finding in findings if finding.status == "warning"]
