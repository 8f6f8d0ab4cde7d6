"""Tests with pytest-asyncio: of a loop each, and of one loop for the session. Each loop has a client of its own."""

from __future__ import annotations

import pytest
from jobs import app, send_welcome

pytestmark = pytest.mark.usefixtures("ojs_server")


@pytest.mark.asyncio
@pytest.mark.parametrize("email", ["ada@example.org", "bob@example.org"])
async def test_in_a_loop_of_its_own(email: str) -> None:
    handle = await send_welcome.push(email)
    assert (await handle.job()).args == [email]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("email", ["ada@example.org", "bob@example.org"])
async def test_in_the_loop_of_the_session(email: str) -> None:
    handle = await send_welcome.push(email)
    assert (await app.client.jobs.get(handle.id)).args == [email]


def test_without_a_loop() -> None:
    assert send_welcome.push_sync("ada@example.org").job().state == "available"
