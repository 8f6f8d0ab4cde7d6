"""A key needs the rights of what it makes happen later, and its webhooks end with it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli import Cli
from support.guarded import Guarded
from support.system import System, send
from support.waiting import eventually, until
from support.webhook_target import WebhookTarget

SUBSCRIPTIONS = "/webhooks/subscriptions"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A system with keys that sends to targets of this machine."""
    folder = tmp_path_factory.mktemp("outliving")
    with System.started(folder, "--together", "--webhook-insecure", "--webhook-private") as system:
        said = Cli(folder)("keys", "create", "--name", "first", "--role", "admin", "--nats", system.nats_url_by_role)
        until(lambda: send("GET", f"{system.url}/ojs/v1/queues").status == 401)
        yield Guarded(system, said.out.strip())


@pytest.fixture
def target() -> Iterator[WebhookTarget]:
    with WebhookTarget.started() as target:
        yield target


async def key(guarded: Guarded, *permissions: str) -> tuple[str, str]:
    """Return the id and the token of a new key."""
    made = await guarded.made(uuid.uuid4().hex[:8], "custom", permissions=permissions)
    return made["key"]["id"], made["token"]


async def ask(guarded: Guarded, method: str, path: str, body: object = None, *, token: str) -> Any:
    status, answer, _ = await guarded.ask(method, path, body, token=token)
    assert status in {200, 201}, answer
    return answer


async def done(guarded: Guarded, queue: str, result: str) -> str:
    """Return the id of a job that has ended with a result."""
    token = guarded.tokens["admin"]
    pushed = {"type": "a.b", "args": [], "options": {"queue": queue}}
    job_id: str = (await ask(guarded, "POST", "/jobs", pushed, token=token))["job"]["id"]
    fetch = {"queues": [queue], "worker_id": "w", "wait_ms": 20_000}
    assert [job["id"] for job in (await ask(guarded, "POST", "/workers/fetch", fetch, token=token))["jobs"]] == [job_id]
    await ask(guarded, "POST", "/workers/ack", {"job_id": job_id, "worker_id": "w", "result": result}, token=token)
    return job_id


def brought(target: WebhookTarget, job_id: str) -> str:
    return next((got.body.decode() for got in target.got if job_id in got.body.decode()), "")


@pytest.mark.parametrize("permissions", [["configure"], ["configure", "payloads"], ["configure", "enqueue", "control"]])
async def test_a_subscription_takes_the_right_to_read(guarded: Guarded, target: WebhookTarget, permissions: list[str]) -> None:
    _, token = await key(guarded, *permissions)
    wanted = {"url": target.url, "events": ["*"]}
    theirs = (await ask(guarded, "POST", SUBSCRIPTIONS, wanted, token=guarded.tokens["admin"]))["subscription"]
    one = f"{SUBSCRIPTIONS}/{theirs['id']}"
    for method, path, body in (
        ("POST", SUBSCRIPTIONS, wanted),
        ("PATCH", one, {"events": ["job.*"]}),
        ("POST", f"{one}/test", {}),
        ("POST", f"{one}/rotate-secret", {}),
    ):
        status, answer, _ = await guarded.ask(method, path, body, token=token)
        assert (status, answer["error"]["details"]["permission"]) == (403, "read"), path
    await ask(guarded, "DELETE", one, token=guarded.tokens["admin"])


async def test_events_have_what_the_key_of_their_subscription_may_see(guarded: Guarded, target: WebhookTarget) -> None:
    queue, secret = f"q{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    key_id, token = await key(guarded, "configure", "read")
    wanted = {"url": target.url, "events": ["job.completed"], "filter": {"queues": [queue]}}
    made = (await ask(guarded, "POST", SUBSCRIPTIONS, wanted, token=guarded.tokens["admin"]))["subscription"]
    one = f"{SUBSCRIPTIONS}/{made['id']}"
    assert made["key"]["payloads"]
    first = await done(guarded, queue, secret)
    await eventually(lambda: brought(target, first))
    assert secret in brought(target, first)
    # A key that leads them elsewhere has them brought as it may see them.
    changed = (await ask(guarded, "PATCH", one, {"url": f"{target.url}?two"}, token=token))["subscription"]
    assert (changed["key"]["id"], changed["key"]["payloads"]) == (key_id, False)
    second = await done(guarded, queue, secret)
    await eventually(lambda: brought(target, second))
    assert secret not in brought(target, second)
    assert "result" in brought(target, second), "it is named among what is redacted"
    # What it doesn't say of where events go changes no owner.
    kept = await ask(guarded, "PATCH", one, {"metadata": {"a": 1}, "active": False}, token=guarded.tokens["admin"])
    assert kept["subscription"]["key"]["id"] == key_id
    await ask(guarded, "DELETE", one, token=guarded.tokens["admin"])


@pytest.mark.parametrize("way", ["gateway", "nats"])
async def test_webhooks_end_with_their_key_and_cron_entries_are_named(
    guarded: Guarded, target: WebhookTarget, tmp_path: Path, way: str
) -> None:
    queue, name = f"q{uuid.uuid4().hex[:8]}", f"nightly-{uuid.uuid4().hex[:8]}"
    key_id, token = await key(guarded, "configure", "read", "enqueue")
    wanted = {"url": target.url, "events": ["job.completed"], "filter": {"queues": [queue]}}
    made = (await ask(guarded, "POST", SUBSCRIPTIONS, wanted, token=token))["subscription"]
    entry = {"name": name, "cron": "0 3 1 1 *", "job_template": {"type": "a.b", "args": []}}
    await ask(guarded, "POST", "/cron", entry, token=token)
    on_nats = ("--nats", guarded.system.nats_url_by_role) if way == "nats" else ()
    cli = Cli(tmp_path, guarded.url, {"OJS_AUTH_TOKEN": guarded.tokens["admin"]})
    said = cli("keys", "revoke", key_id, "--yes", *on_nats)
    assert (said.code, name in said.out + said.err) == (0, True), said
    assert (made["id"] in said.out + said.err) is (way == "gateway")
    one = f"{SUBSCRIPTIONS}/{made['id']}"

    async def paused() -> bool:
        found = (await ask(guarded, "GET", one, token=guarded.tokens["admin"]))["subscription"]
        return (found["active"], found.get("paused_reason")) == (False, "key_ended")

    await eventually(paused)
    late = await done(guarded, queue, "late")
    assert (await ask(guarded, "GET", f"/cron/{name}", token=guarded.tokens["admin"]))["cron"]["enabled"]
    assert not brought(target, late)
    resumed = (await ask(guarded, "PATCH", one, {"active": True}, token=guarded.tokens["admin"]))["subscription"]
    assert resumed["key"]["id"] != key_id
    await eventually(lambda: brought(target, late))
    await ask(guarded, "DELETE", one, token=guarded.tokens["admin"])


async def test_a_key_that_was_rotated_goes_on_with_its_webhooks(guarded: Guarded, target: WebhookTarget) -> None:
    key_id, token = await key(guarded, "configure", "read")
    wanted = {"url": target.url, "events": ["*"]}
    made = (await ask(guarded, "POST", SUBSCRIPTIONS, wanted, token=token))["subscription"]
    admin = guarded.tokens["admin"]
    await ask(guarded, "POST", f"/admin/keys/{key_id}/rotate", {"overlap": 0}, token=admin)
    gone = await ask(guarded, "DELETE", f"/admin/keys/{key_id}", token=admin)
    assert "webhooks" not in gone["key"]
    assert (await ask(guarded, "GET", f"{SUBSCRIPTIONS}/{made['id']}", token=admin))["subscription"]["active"]
    await ask(guarded, "DELETE", f"{SUBSCRIPTIONS}/{made['id']}", token=admin)


async def test_jobs_that_are_made_later_take_the_right_to_push(guarded: Guarded) -> None:
    _, token = await key(guarded, "configure", "read", "control")
    entry = {"name": f"n{uuid.uuid4().hex[:8]}", "cron": "0 3 1 1 *", "job_template": {"type": "a.b", "args": []}}
    await ask(guarded, "POST", "/cron", entry, token=guarded.tokens["admin"])
    for method, path, body in (
        ("POST", "/cron", entry),
        ("PATCH", f"/cron/{entry['name']}", {"job_template": {"args": [1]}}),
    ):
        status, answer, _ = await guarded.ask(method, path, body, token=token)
        assert (status, answer["error"]["details"]["permission"]) == (403, "enqueue"), path


async def test_the_answer_from_inside_a_network_is_for_admins(guarded: Guarded, target: WebhookTarget) -> None:
    _, token = await key(guarded, "configure", "read", "payloads")
    wanted = {"url": target.url, "events": ["*"]}
    made = (await ask(guarded, "POST", SUBSCRIPTIONS, wanted, token=token))["subscription"]
    one = f"{SUBSCRIPTIONS}/{made['id']}"
    tested = await ask(guarded, "POST", f"{one}/test", {}, token=token)
    assert (tested["success"], "response_body" in tested) == (True, False)
    assert (await ask(guarded, "POST", f"{one}/test", {}, token=guarded.tokens["admin"]))["response_body"] == "OK"
    await ask(guarded, "DELETE", one, token=guarded.tokens["admin"])


async def test_a_key_that_only_reads_sees_no_path_of_a_url(guarded: Guarded, target: WebhookTarget) -> None:
    admin = guarded.tokens["admin"]
    wanted = {"url": f"{target.url}/services/T0/B0?token=secret", "events": ["job.expired"]}
    made = (await ask(guarded, "POST", SUBSCRIPTIONS, wanted, token=admin))["subscription"]
    _, reader = await key(guarded, "read", "payloads")
    _, changer = await key(guarded, "read", "configure")
    for token, shown in ((reader, target.url.removesuffix("hook") + "***"), (changer, wanted["url"])):
        one = (await ask(guarded, "GET", f"{SUBSCRIPTIONS}/{made['id']}", token=token))["subscription"]
        every = (await ask(guarded, "GET", f"{SUBSCRIPTIONS}?limit=200", token=token))["subscriptions"]
        assert [one["url"], *(found["url"] for found in every if found["id"] == made["id"])] == [shown, shown]
    await ask(guarded, "DELETE", f"{SUBSCRIPTIONS}/{made['id']}", token=admin)
