"""The official admin UI beside the dashboard: it is served from the same address, and never sends a key of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from multidict import CIMultiDict

from acceptance.dashboard.conftest import OpenScreen
from acceptance.test_clients import SESSIONS, complaints, filled, member
from support.guarded import Guarded
from support.screen import Screen
from support.system import Answer

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


async def fetched(tab: Screen, method: str, path: str, body: object) -> Answer:
    """What a page gets that asks as the admin UI does: the browser adds the cookie of the dashboard's session."""
    sent = {"method": method, "headers": {"Content-Type": "application/json"}}
    if body is not None:
        sent["body"] = json.dumps(body)
    got: dict[str, Any] = await tab.page.run(f"""fetch({json.dumps(path)}, {json.dumps(sent)}).then(async (answer) => (
        {{status: answer.status, headers: [...answer.headers], text: await answer.text()}}))""")
    received = json.loads(got["text"]) if got["text"] else None
    return Answer(got["status"], received, CIMultiDict(map(tuple, got["headers"])))


async def test_the_admin_ui_does_all_it_does_with_the_session_of_the_dashboard(screen: OpenScreen, guarded: Guarded) -> None:
    session = SESSIONS["admin_ui"]
    tab = await screen(guarded.url, known=("status of 4",))
    await tab.go("/")
    assert (await fetched(tab, "GET", "/ojs/v1/admin/stats", None)).status == 401
    await tab.fill("Key", guarded.tokens["admin"])
    await tab.click("Sign in")
    await tab.shows("Sign out")
    kept: dict[str, str] = {}
    for call in session["calls"]:
        method, path, body = filled(call["send"], kept)
        answer = await fetched(tab, method, path, body)
        assert complaints(call, answer, session, kept) == [], call["does"]
        kept |= {key: member(answer.body, where) for key, where in call.get("keeps", {}).items()}
    await tab.go("/jobs")
    await tab.shows("ui.job")
