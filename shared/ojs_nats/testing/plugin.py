"""A pytest plugin: fixtures for the tests of an application (docs/testing-python.md).

Pytest loads it wherever ojs-nats is installed, so it imports nothing else before a fixture is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ojs_nats import App, Worker
    from ojs_nats.testing import Fake, Server

__all__ = ["ojs_app", "ojs_fake", "ojs_inline", "ojs_server", "ojs_worker", "pytest_addoption"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting `ojs_app`."""
    parser.addini("ojs_app", "where the App of the tests is: app.jobs:app")


@pytest.fixture
def ojs_app(pytestconfig: pytest.Config) -> Any:
    """The App of the tests. Define a fixture of this name, or name the app as `ojs_app` in pytest's settings."""
    place = pytestconfig.getini("ojs_app")
    module, _, name = place.partition(":")
    if not (module and name):
        raise pytest.UsageError('name your App for its tests, as in `ojs_app = "app.jobs:app"` below [tool.pytest.ini_options]')
    return getattr(importlib.import_module(module), name)


@pytest.fixture
def ojs_fake(ojs_app: App) -> Iterator[Fake]:
    """The app's jobs in memory, which run when the test calls `drain`."""
    from ojs_nats.testing import fake  # noqa: PLC0415

    with fake(ojs_app) as jobs:
        yield jobs


@pytest.fixture
def ojs_inline(ojs_app: App) -> Iterator[Fake]:
    """The app's jobs in memory, each of which runs when it is pushed. The push raises what its handler raises."""
    from ojs_nats.testing import inline  # noqa: PLC0415

    with inline(ojs_app) as jobs:
        yield jobs


@pytest.fixture(scope="session")
def _ojs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    from ojs_nats.testing._server import serving  # noqa: PLC0415

    with serving(tmp_path_factory.mktemp("ojs-nats")) as server:
        yield server


@pytest.fixture
def ojs_server(_ojs_server: Server, ojs_app: App) -> Iterator[Server]:
    """A real server, which the app talks to, and which is emptied for each test."""
    _ojs_server.reset()
    with ojs_app.moved(_ojs_server.url):
        yield _ojs_server
        ojs_app.sync.close()


@pytest.fixture
def ojs_worker(ojs_server: Server, ojs_app: App) -> Iterator[Worker]:
    """A worker of the real server, in an event loop of its own besides the test's."""
    from ojs_nats.testing._server import working_aside  # noqa: PLC0415

    del ojs_server  # it runs as long
    with working_aside(ojs_app) as worker:
        yield worker
