from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import structlog

from support import users
from support.nats import NatsServer
from support.system import Processes

# `quick` is for the fast lane (script/check). `ci` tries more, and the same each time: a gate is to fail for what a change
# does, not for what it happens to draw. The others draw anew; what fails is printed as a blob, and the seed stands in the
# header. How fast examples are drawn is the machine's affair.
steady = hypothesis.settings(
    deadline=None, print_blob=True, derandomize=False, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile("dev", steady)
hypothesis.settings.register_profile("ci", steady, max_examples=300, derandomize=True)
hypothesis.settings.register_profile("quick", steady, max_examples=20)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
hypothesis.settings.load_profile(PROFILE)


# With rich installed, as a tool of lint brings it, structlog's own way to show a traceback takes seconds each.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)


def pytest_xdist_auto_num_workers() -> int:
    """One test more at a time than there are processors: many wait for processes."""
    return min((os.cpu_count() or 1) + 1, 4)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--nats-users", action="store_true", help="each service has a NATS user of its own, with its role's rights"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--nats-users"):
        os.environ[users.VARIABLE] = "1"  # the processes of pytest-xdist inherit it


def pytest_report_header(config: pytest.Config) -> str:
    return f"hypothesis: profile {PROFILE}, --hypothesis-seed={config.option.hypothesis_seed or 'random'}"


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[NatsServer]:
    """A NATS server of the test's own, which it may kill and restart."""
    with NatsServer(tmp_path / "nats") as server:
        yield server


@pytest.fixture(scope="module")
def shared_nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A NATS server for all tests of a module, which leave it running."""
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture
def processes(tmp_path: Path, nats_server: NatsServer) -> Iterator[Processes]:
    """Services as separate processes beside a NATS server of the test's own."""
    started = Processes(tmp_path / "processes", nats_server.url)
    try:
        yield started
    finally:
        started.stop()
