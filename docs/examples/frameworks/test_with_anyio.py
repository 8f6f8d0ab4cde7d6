"""Tests with anyio's plugin, on its backend of asyncio. On trio a push is a RuntimeError that says so."""

from __future__ import annotations

import pytest
from jobs import send_welcome

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("ojs_worker")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("email", ["ada@example.org", "bob@example.org"])
async def test_a_welcome_is_sent(email: str) -> None:
    handle = await send_welcome.push(email)
    assert await handle.result(timeout="1m") == f"sent to {email}"
