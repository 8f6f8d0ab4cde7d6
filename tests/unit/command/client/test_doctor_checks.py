"""States of a server that a test can't bring about: what its doctor makes of the figures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ojs_command.client.doctor import server
from ojs_command.client.doctor.findings import Finding as Told
from ojs_nats import Client
from ojs_nats.models.system import Finding


def client(**subjects: Any) -> Client:
    """One whose operations answer with these."""

    def answering(answers: dict[str, Any]) -> SimpleNamespace:
        def operation(answer: Any) -> Any:
            async def asked(*_asked: Any) -> Any:
                return answer() if callable(answer) else answer

            return asked

        return SimpleNamespace(**{name: operation(answer) for name, answer in answers.items()})

    return cast("Client", SimpleNamespace(**{name: answering(answers) for name, answers in subjects.items()}))


async def test_what_the_server_found_is_told_with_what_is_well() -> None:
    found = Finding(check="nats", severity="problem", message="it is slow", meaning="all wait", remedy="a faster disk")
    answer = SimpleNamespace(findings=[found], checks=["nats", "storage"])
    told = await server.check_server(client(system={"findings": answer}))
    assert [(one.check, one.status, one.found) for one in told] == [
        ("nats", "problem", "it is slow"),
        ("storage", "ok", "the server found nothing wrong"),
    ]


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, None), (1.9, None), (-60, "1m ahead of the"), (60, "behind the"), (-3, "ahead of")]
)
async def test_clocks(seconds: float, said: str | None) -> None:
    def stats() -> SimpleNamespace:
        return SimpleNamespace(computed_at=datetime.now(UTC) + timedelta(seconds=seconds))

    [found] = await server.check_clock(client(queues={"stats": stats}))
    assert found.status == ("ok" if said is None else "warning")
    assert said is None or said in found.found.replace("59s", "1m")


@pytest.mark.parametrize(("name", "version", "warned"), [("ojs-nats", "0.0.1", ["versions"]), ("other", "1", ["versions"])])
async def test_versions(name: str, version: str, warned: list[str]) -> None:
    manifest = SimpleNamespace(implementation=SimpleNamespace(name=name, version=version))
    status = SimpleNamespace(nats_server_version="2.14.0")
    assert _warned(await server.check_versions(client(system={"manifest": manifest, "status": status}))) == warned


def _warned(findings: list[Told]) -> list[str]:
    return [finding.check for finding in findings if finding.status == "warning"]
