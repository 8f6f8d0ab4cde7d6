from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from ojs_core.telemetry import logs


@pytest.fixture
def logging_restored() -> Iterator[None]:
    """What `logs.configure` changes of the process is as before when the test has ended."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)
    logs.verbosity.debug = False
    structlog.reset_defaults()
