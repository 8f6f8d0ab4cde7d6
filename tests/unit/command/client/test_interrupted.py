from __future__ import annotations

import argparse
import asyncio
import signal

import pytest

from ojs_command.client.running import run_command
from ojs_nats._command.entry import INTERRUPTED

pytestmark = pytest.mark.usefixtures("logging_kept", "signals_kept")


class Interrupted:
    """What is interrupted by Ctrl-C while Python lets it go."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


async def _goes_on(*_: object) -> None:
    Interrupted()
    await asyncio.sleep(60.0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_ends_a_command_that_is_letting_something_go() -> None:
    assert run_command(argparse.Namespace(run=_goes_on, offline=True)) == INTERRUPTED
