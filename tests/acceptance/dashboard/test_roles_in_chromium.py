"""The dashboard behind keys: signing in, and what each role sees and may do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from acceptance.dashboard.conftest import OpenScreen
from support.system import System, environment, send

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

FIRST = "ojs_sk_first_" + "0" * 64
HIDDEN = "Hidden: this needs the permission payloads."


def ask(system: System, method: str, path: str, body: object) -> Any:
    answer = send(method, f"{system.url}/ojs/v1{path}", body, headers={"Authorization": f"Bearer {FIRST}"})
    assert answer.status < 300, answer
    return answer.body


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    env = environment(OJS_API_KEY=FIRST)
    with System.started(tmp_path_factory.mktemp("guarded"), "--together", env=env) as system:
        ask(system, "POST", "/admin/keys", {"name": "first", "role": "admin"})  # the first one has to be an admin's
        yield system


@pytest.mark.parametrize(
    ("role", "sees", "offered", "kept_away"),
    [
        ("viewer", [HIDDEN], [], ["Cancel", "Priority", "Push again"]),
        ("operator", ["s3cret"], ["Cancel", "Priority", "Push again"], []),
        ("admin", ["s3cret"], ["Cancel", "Priority", "Push again"], []),
    ],
)
async def test_a_role_is_shown_what_it_may_see_and_do(
    screen: OpenScreen, guarded: System, role: str, sees: list[str], offered: list[str], kept_away: list[str]
) -> None:
    job = ask(guarded, "POST", "/jobs", {"type": "mail.send", "args": ["s3cret"]})["job"]["id"]
    key = ask(guarded, "POST", "/admin/keys", {"name": role, "role": role})["token"]
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
