"""Services that `ojs-nats dev` starts as processes of their own."""

from __future__ import annotations

import socket

import pytest

from ojs_command.children import ServiceChild, start_all
from ojs_command.services import SERVICES
from ojs_engine.base.problems import StartupProblem
from ojs_runtime.settings import Settings
from support.nats import NatsServer


async def test_one_that_can_t_start_says_why_itself(shared_nats_server: NatsServer, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        settings = Settings(nats=shared_nats_server.url, port=port)
        [gateway] = [ServiceChild(entry, settings, lambda: None) for entry in SERVICES if entry.kind == "gateway"]
        with pytest.raises(StartupProblem, match=r"^gateway ended with status 1 before it was ready; it says why itself$"):
            await start_all([gateway])
        assert gateway.pid is None
        await gateway.stop(1.0)
    said = capfd.readouterr().err
    assert f"127.0.0.1:{port} is taken: stop what listens there" in said
    assert "Traceback" not in said
