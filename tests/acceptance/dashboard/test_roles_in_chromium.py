"""The dashboard behind keys: signing in, and what each role sees and may do."""

from __future__ import annotations

import pytest

from acceptance.dashboard.conftest import OpenScreen
from support.guarded import Guarded

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

HIDDEN = "Hidden: this needs the permission payloads."


@pytest.mark.parametrize(
    ("role", "sees", "offered", "kept_away"),
    [
        ("viewer", [HIDDEN], [], ["Cancel", "Priority", "Push again"]),
        ("operator", ["s3cret"], ["Cancel", "Priority", "Push again"], []),
        ("admin", ["s3cret"], ["Cancel", "Priority", "Push again"], []),
    ],
)
async def test_a_role_is_shown_what_it_may_see_and_do(
    screen: OpenScreen, guarded: Guarded, role: str, sees: list[str], offered: list[str], kept_away: list[str]
) -> None:
    _, pushed, _ = await guarded.ask("POST", "/jobs", {"type": "mail.send", "args": ["s3cret"]}, token=guarded.tokens["admin"])
    job, key = pushed["job"]["id"], (await guarded.made(role, role))["token"]
    tab = await screen(guarded.url)
    await tab.go(f"/jobs/{job}")
    await tab.fill("Key", "ojs_sk_wrong")
    await tab.click("Sign in")
    await tab.shows("This key is not known")
    await tab.fill("Key", key)
    await tab.click("Sign in")
    await tab.shows("Timeline", f"{role} ({role})", *sees)
    assert [name for name in offered if not await tab.offers(name)] == []
    assert [name for name in kept_away if await tab.offers(name)] == []
    assert ("s3cret" in await tab.text()) == ("s3cret" in sees)
    await tab.click("Sign out")
    await tab.shows("Whoever runs the server makes keys")
