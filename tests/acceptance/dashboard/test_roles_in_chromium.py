"""The dashboard behind keys: signing in, and what each role sees and may do on every page."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
import pytest_asyncio

from acceptance.dashboard.conftest import REFUSED, OpenScreen, busy
from acceptance.dashboard.scenery import HOSTILE, MARKUP
from acceptance.dashboard.stage import BEAT, Stage
from ojs_engine.access.permissions import ROLES, Permission, Role
from support.guarded import Guarded
from support.proxy import Proxy, Trouble
from support.screen import Screen
from support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

HIDDEN = "Hidden: this needs the permission payloads."
FOR_ADMINS = {"/system?part=keys", "/system?part=audit"}
SIGNED_OUT = ("status of 401",)

BUTTONS: dict[str, dict[str, Permission]] = {
    "/jobs": {
        "Push a job": "enqueue",
        "Cancel all that match": "control",
        "Set priority of all that match": "control",
        "Retry all that match": "control",
        "Delete all that match": "destroy",
    },
    "/jobs/{waiting}": {"Cancel": "control", "Priority": "control", "Push again": "enqueue"},
    "/jobs/{dead}": {"Retry": "control", "Push again": "enqueue"},
    "/queues": {"New queue": "configure", "Pause": "control"},
    "/queues/mail": {"Pause": "control", "Configure": "configure", "Limit": "configure", "Purge": "destroy"},
    "/workflows/{workflow}": {"Cancel": "control"},
    "/crons": {"New entry": "configure", "Run now": "control", "Pause": "control"},
    "/crons/nightly": {"Run now": "control", "Pause": "control", "Edit": "configure", "Delete": "destroy"},
    "/workers": {"Direct all": "control", "Quiet": "control", "Terminate": "control"},
    "/limits": {"Override a key": "configure", "Override": "configure", "End override": "configure"},
    "/webhooks": {
        "Subscribe a URL": "configure",
        "Test": "configure",
        "Pause": "configure",
        "Rotate secret": "configure",
        "Delete": "destroy",
    },
    "/system": {"Begin maintenance": "admin"},
    "/system?part=keys": {"New key": "admin", "Rotate": "admin", "Revoke": "admin"},
    "/system?part=audit": {},
    "/system?part=config": {},
    "/system?part=unreadable": {},
    "/workflows": {},
    "/events": {},
    "/": {},
}
"""The buttons that act on each page, with the permission that each needs."""


@pytest.fixture(scope="module")
def site(guarded: Guarded) -> System:
    """The system with keys, in place of one without."""
    return guarded.system


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def there(guarded: Guarded) -> Stage:
    return await Stage.made(guarded)


async def signed_in(tab: Screen, guarded: Guarded, role: str, **narrowed: object) -> None:
    key = (await guarded.made(f"{role} {len(narrowed)}", role, **narrowed))["token"]
    await tab.fill("Key", key)
    await tab.click("Sign in")
    await tab.shows("Sign out")
    await tab.settled()


@pytest.mark.parametrize(
    ("role", "sees", "may"),
    [
        ("viewer", HIDDEN, set()),
        ("operator", "s3cret", {"Cancel", "Priority", "Push again"}),
        ("admin", "s3cret", {"Cancel", "Priority", "Push again"}),
    ],
)
async def test_a_role_is_shown_on_every_page_what_it_may_see_and_do_and_nothing_else(
    screen: OpenScreen, guarded: Guarded, there: Stage, role: Role, sees: str, may: set[str]
) -> None:
    tab = await screen(guarded.url, known=SIGNED_OUT)
    await tab.go(f"/jobs/{there.waiting}")
    await tab.fill("Key", "ojs_sk_wrong")
    await tab.click("Sign in")
    await tab.shows("This key is not known")
    await signed_in(tab, guarded, role)
    await tab.shows("Timeline", f"{role} 0 ({role})", sees)
    assert await tab.offered() & {"Cancel", "Priority", "Push again"} == may
    assert ("s3cret" in await tab.text()) == (sees == "s3cret")
    for path, buttons in BUTTONS.items():
        if path in FOR_ADMINS and role != "admin":
            continue
        await guarded.ask("POST", "/workers/heartbeat", BEAT, token=guarded.tokens["admin"])  # or it is stale by and by
        await tab.follow(path.format(**there._asdict()))
        fitting = {name for name, need in buttons.items() if need in ROLES[role]}

        async def the_buttons_are_there(fitting: set[str] = fitting) -> bool:
            return fitting <= await tab.offered()

        await tab.until(the_buttons_are_there, f"{path} offers {fitting}")
        assert await tab.offered() & buttons.keys() == fitting, path
        assert "s3cret" not in await tab.text() or "payloads" in ROLES[role], path
    await tab.follow("/system")
    assert ("Keys" in await tab.links()) == ("Audit" in await tab.links()) == (role == "admin")
    if role == "admin":  # who sees all that others do
        assert await tab.barriers() == []
    await tab.click("Sign out")
    await tab.shows("Whoever runs the server makes keys")


async def test_a_narrowed_key_sees_its_queues_alone_and_is_told_what_it_may_not(
    screen: OpenScreen, guarded: Guarded, there: Stage
) -> None:
    del there
    tab = await screen(guarded.url, known=(*SIGNED_OUT, "status of 403", "status of 404"))
    await tab.go("/jobs")
    await signed_in(tab, guarded, "operator", queues=["images"])
    await tab.shows("1 job", "images")
    assert "mail" not in await tab.text()
    await tab.follow("/queues")
    await tab.shows("images")
    assert "mail" not in await tab.text()
    for path in BUTTONS:
        if "{" in path or path in FOR_ADMINS:
            continue
        await tab.follow(path)
        assert "can't be shown" not in await tab.text(), path
        assert "mail.send" not in (await tab.text()), path


async def test_a_session_that_ends_asks_for_the_key_and_goes_on_where_it_was(
    screen: OpenScreen, guarded: Guarded, there: Stage
) -> None:
    made = await guarded.made("short", "operator")
    tab = await screen(guarded.url, known=(*SIGNED_OUT, "ERR_INCOMPLETE_CHUNKED_ENCODING"))
    await tab.go(f"/jobs/{there.waiting}")
    await tab.fill("Key", made["token"])
    await tab.click("Sign in")
    await tab.shows("Timeline")
    await guarded.ask("DELETE", f"/admin/keys/{made['key']['id']}", token=guarded.tokens["admin"])
    await tab.shows("Whoever runs the server makes keys")
    await signed_in(tab, guarded, "viewer")
    await tab.shows("Timeline", "viewer")


async def test_keys_are_made_rotated_and_revoked(screen: OpenScreen, guarded: Guarded) -> None:
    tab = await screen(guarded.url, known=SIGNED_OUT)
    await tab.go("/system?part=keys")
    await signed_in(tab, guarded, "admin")
    await tab.click("New key")
    await tab.fill("Name", "made on the page")
    await tab.fill("Role", "producer")
    await tab.click("New key")
    token = await tab.secret("ojs_sk_[A-Za-z0-9_-]{20,}")
    job = {"type": "a.b", "args": []}
    assert [(await guarded.ask("POST", "/jobs", job, token=token))[0], (await guarded.ask("GET", "/jobs", token=token))[0]] == [
        201,
        403,
    ]
    await tab.click("Revoke", row="made on the page")
    await tab.click("Revoke")
    await tab.closes()

    async def it_is_refused() -> bool:
        return (await guarded.ask("POST", "/jobs", job, token=token))[0] == 401

    await tab.until(it_is_refused, "a revoked key is refused")


async def test_the_old_key_of_one_that_was_rotated_is_revoked(screen: OpenScreen, guarded: Guarded) -> None:
    made = await guarded.made("worn", "producer")
    tab = await screen(guarded.url, known=SIGNED_OUT)
    await tab.go("/system?part=keys")
    await signed_in(tab, guarded, "admin")
    await tab.click("Rotate", row="worn")
    await tab.click("Rotate")
    fresh = await tab.secret("ojs_sk_[A-Za-z0-9_-]{20,}")

    async def answers() -> list[int]:
        job = {"type": "a.b", "args": []}
        return [(await guarded.ask("POST", "/jobs", job, token=token))[0] for token in (made["token"], fresh)]

    assert await answers() == [201, 201], "the old one goes on for a day"
    await tab.click("Revoke", row=made["key"]["id"])
    await tab.click("Revoke")
    await tab.closes()

    async def the_old_one_is_refused_alone() -> bool:
        return await answers() == [401, 201]

    await tab.until(the_old_one_is_refused_alone, "the old key is refused, the new one is not")


async def test_hostile_text_in_the_name_of_a_key_stays_text_there_and_in_the_audit(
    screen: OpenScreen, guarded: Guarded
) -> None:
    name = f"{MARKUP}\u202egnp"
    made = await guarded.made(name, "operator")
    status, _, _ = await guarded.ask("POST", "/queues/audited/pause", {"reason": HOSTILE}, token=made["token"])
    assert status == 200
    tab = await screen(guarded.url, known=SIGNED_OUT)
    await tab.go("/system?part=keys")
    await signed_in(tab, guarded, "admin")
    await tab.shows(MARKUP)
    assert await tab.escaped() == {}
    await tab.go("/system?part=audit")
    await tab.shows("pauseQueue", MARKUP)
    assert await tab.escaped() == {}
    await tab.go(f"/system?part=audit&principal={quote(name)}")
    await tab.shows("pauseQueue")
    assert await tab.escaped() == {}


async def test_who_looks_is_asked_until_it_is_known(screen: OpenScreen, guarded: Guarded) -> None:
    key = (await guarded.made("late", "viewer"))["token"]
    with Proxy.before(guarded.url, keeps_host=True) as proxy:
        tab = await screen(proxy.url, known=REFUSED)
        await tab.go("/")
        await tab.fill("Key", key)
        await tab.click("Sign in")
        await tab.shows("Sign out")
        proxy.trouble("session", busy("1"), busy("1"))
        await tab.page.go(proxy.url + "/queues")
        await tab.shows("late (viewer)", "Sign out")
        assert not await tab.offers("New queue")
        assert proxy.left() == 0


NO_CLIPBOARD = "Object.defineProperty(Navigator.prototype, 'clipboard', { value: undefined })"
"""What a page over plain HTTP finds."""


async def test_a_key_that_is_shown_once_stays_until_its_dialog_is_closed_by_its_button(
    screen: OpenScreen, guarded: Guarded
) -> None:
    pattern = "ojs_sk_[A-Za-z0-9_-]{20,}"
    tab = await screen(guarded.url, known=SIGNED_OUT, own=True)
    await tab.page.command("Page.addScriptToEvaluateOnNewDocument", {"source": NO_CLIPBOARD})
    await tab.go("/system")
    await signed_in(tab, guarded, "admin")
    await tab.click("Keys")
    await tab.click("New key")
    await tab.fill("Name", "kept on the page")
    await tab.click("New key")
    token = await tab.kept_secret(pattern)
    assert await tab.page.run("getSelection().toString()") == token, "it can be copied by a key at once"
    for key in ("Enter", "Escape", "Escape", "Escape", "Enter"):
        await tab.press(key)
        assert await tab.kept_secret(pattern) == token, key
    await tab.shows("It can't be read again.")
    await tab.click("Copy")
    await tab.shows("This browser gives the page no clipboard.")
    assert await tab.page.run("getSelection().toString()") == token
    await tab.press("Escape")
    await tab.hides("This browser gives the page no clipboard.")
    await tab.page.run("history.back()")
    assert await tab.kept_secret(pattern) == token
    await tab.click("Close")
    await tab.closes()
    assert (await guarded.ask("GET", "/queues", token=token))[0] == 200


async def test_the_hint_of_a_refusal_is_shown_with_it(screen: OpenScreen, guarded: Guarded) -> None:
    error = {"code": "permission_denied", "message": "not from this origin", "hint": "Set --allowed-origins."}
    with Proxy.before(guarded.url, keeps_host=True) as proxy:
        tab = await screen(proxy.url, known=REFUSED)
        proxy.trouble("session", None, Trouble(status=403, text=json.dumps({"error": error})))
        await tab.go("/")
        await tab.fill("Key", guarded.tokens["admin"])
        await tab.click("Sign in")
        await tab.shows("not from this origin Set --allowed-origins.")
        await tab.leave()


async def test_a_secret_is_gone_with_who_it_was_shown_to(screen: OpenScreen, guarded: Guarded) -> None:
    tab, other = await screen(guarded.url, known=REFUSED), await screen(guarded.url, known=REFUSED)
    await tab.go("/system?part=keys")
    await tab.fill("Key", guarded.tokens["admin"])
    await tab.click("Sign in")
    await tab.click("New key")
    await tab.fill("Name", "shown once")
    await tab.click("New key")
    await tab.shows("It is shown this once.")
    await other.go("/")
    await other.click("Sign out")
    await tab.shows("Whoever runs the server makes keys")
    await tab.fill("Key", await guarded.token("viewer"))
    await tab.click("Sign in")
    await tab.shows("Sign out")
    assert "It is shown this once." not in await tab.text()
    await tab.closes()
