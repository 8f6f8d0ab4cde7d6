"""Who did what, as operators read of it: over the API, in Python, and by `ojs-nats audit`."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import nats
import pytest

from ojs_nats import Client
from support.cli import Cli
from support.guarded import API, Guarded
from support.system import System
from support.waiting import eventually, until

REPEATS = 40
AT_ONCE = 2_400


class Audited(Guarded):
    """A system with keys, and its audit. `ids` are those of the keys, by role."""

    def __init__(self, system: System, admin: str) -> None:
        super().__init__(system, admin)
        self.ids: dict[str, str] = {}

    async def as_role(
        self, method: str, path: str, body: object = None, *, role: str | None = "admin", token: str | None = None, **more: str
    ) -> tuple[int, Any]:
        """Status and body of an answer to who has the key of a role, or of nobody."""
        shown = self.tokens[role] if token is None and role is not None else token
        return (await self.ask(method, path, body, token=shown, **more))[:2]

    async def entries(self, query: str) -> list[dict[str, Any]]:
        """Those that are found, the newest first."""
        status, page = await self.as_role("GET", f"/admin/audit?{query}")
        assert status == 200, page
        found: list[dict[str, Any]] = page["entries"]
        return found

    async def one(self, query: str) -> dict[str, Any]:
        """The only one that is found, once it is there: refusals are written behind the answer."""

        async def there() -> list[dict[str, Any]]:
            return await self.entries(query)

        found: list[dict[str, Any]] = await eventually(there)
        assert len(found) == 1, found
        return found[0]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    folder = tmp_path_factory.mktemp("audited")
    with Audited.started(folder) as started:
        for role in ("admin", "operator", "viewer"):
            made = Cli(folder).json(
                "keys", "create", "--name", f"the-{role}", "--role", role, "--nats", started.system.nats_url_by_role
            )
            started.tokens[role], started.ids[role] = made["token"], made["key"]["id"]
        yield started


async def test_what_somebody_does_is_told_with_who_whence_what_and_to_what(audited: Audited) -> None:
    sent = {"X-Request-Id": "req_pause_1", "User-Agent": "deploy/2"}
    assert (await audited.as_role("POST", "/queues/told/pause", {"reason": "hunter2"}, role="operator", **sent))[0] == 200
    [entry] = await audited.entries("target=told")
    assert entry | {"id": "", "timestamp": ""} == {
        "id": "",
        "timestamp": "",
        "event_type": "admin.pause_queue",
        "principal": "the-operator",
        "source_ip": "127.0.0.1",
        "correlation_id": "req_pause_1",
        "outcome": "success",
        "detail": {
            "operation": "pauseQueue",
            "permission": "control",
            "target": {"queue": "told"},
            "binding": "http",
            "principal_id": audited.ids["operator"],
            "mechanism": "api_key",
            "status": 200,
            "user_agent": "deploy/2",
        },
    }
    assert "hunter2" not in str(await audited.entries(""))


async def test_what_fails_is_told_as_well(audited: Audited) -> None:
    job_id = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
    assert (await audited.as_role("DELETE", f"/jobs/{job_id}"))[0] == 404
    entry = await audited.one(f"target={job_id}&outcome=failure")
    assert (entry["detail"]["status"], entry["detail"]["reason"]) == (404, "not_found")


async def test_a_request_over_nats_is_told_too(audited: Audited) -> None:
    async with Client(audited.system.nats_url, token=audited.tokens["admin"]) as client:
        await client.queues.pause("by-nats")
    [entry] = await audited.entries("target=by-nats")
    detail = entry["detail"]
    assert (entry["principal"], entry["source_ip"], detail["binding"]) == ("the-admin", "unknown", "nats")


async def test_wrong_keys_are_told_once_however_often_they_are_tried(audited: Audited) -> None:
    secret = "f" * 64
    wrong = f"ojs_sk_{audited.ids['viewer']}_{secret}"
    asked = [audited.as_role("GET", "/workflows", token=wrong) for _ in range(REPEATS)]
    assert {status for status, _ in await asyncio.gather(*asked)} == {401}
    entry = await audited.one("event_type=auth.login_failure&operation=listWorkflows")
    assert (entry["principal"], entry["outcome"]) == ("unknown", "failure")
    detail = entry["detail"]
    assert (detail["mechanism"], detail["key_prefix"]) == ("api_key", f"ojs_sk_{audited.ids['viewer']}_…")
    assert secret not in str(await audited.entries(""))


async def test_who_may_not_is_told_by_name_and_only_admins_read_of_it(audited: Audited) -> None:
    assert (await audited.as_role("POST", "/queues/denied/purge", {}, role="viewer"))[0] == 403
    entry = await audited.one("event_type=auth.permission_denied&target=denied")
    assert (entry["principal"], entry["detail"]["permission"], entry["detail"]["status"]) == ("the-viewer", "destroy", 403)
    for role in ("operator", "viewer"):
        assert (await audited.as_role("GET", "/admin/audit", role=role))[0] == 403
    assert (await audited.as_role("GET", "/admin/audit", role=None))[0] == 401


async def test_keys_and_sign_ins_are_told(audited: Audited) -> None:
    _, made = await audited.as_role("POST", "/admin/keys", {"name": "short", "role": "viewer"})
    key_id = made["key"]["id"]
    assert (await audited.as_role("POST", "/session", token=made["token"]))[0] == 201
    assert (await audited.as_role("POST", f"/admin/keys/{key_id}/rotate", {}))[0] in {200, 201}
    assert (await audited.as_role("DELETE", f"/admin/keys/{key_id}"))[0] == 200
    told = await audited.entries(f"target={key_id}&event_type=auth.*")
    assert [entry["event_type"] for entry in told] == ["auth.key_revoked", "auth.key_rotated", "auth.key_created"]
    [entry] = await audited.entries(f"event_type=auth.login_success&principal={key_id}")
    assert entry["principal"] == "short"
    assert made["token"] not in str(await audited.entries(""))


async def test_who_signs_out_is_told_and_who_was_not_signed_in_is_not(audited: Audited) -> None:
    made = await audited.made("leaver", "viewer")
    _, _, headers = await audited.ask("POST", "/session", token=made["token"])
    shown = {"Cookie": headers["Set-Cookie"].partition(";")[0]}
    forged = f"{shown['Cookie'].partition('=')[0]}=forged.1.x"
    assert (await audited.ask("DELETE", "/session", Cookie=forged, Sec_Fetch_Site="same-origin"))[0] == 204
    assert (await audited.ask("DELETE", "/session"))[0] == 204
    assert (await audited.ask("DELETE", "/session", **shown, Sec_Fetch_Site="cross-site"))[0] == 403
    assert (await audited.ask("DELETE", "/session", **shown, Sec_Fetch_Site="same-origin"))[0] == 204
    entry = await audited.one("event_type=auth.logout")
    assert (entry["principal"], entry["outcome"]) == ("leaver", "success")
    assert (entry["detail"]["principal_id"], entry["detail"]["mechanism"]) == (made["key"]["id"], "session")


async def test_keys_that_are_changed_straight_on_nats_are_told(audited: Audited, tmp_path: Path) -> None:
    def keys(*words: str) -> Any:
        return Cli(tmp_path).json("keys", *words, "--nats", audited.system.nats_url_by_role)

    made = await asyncio.to_thread(keys, "create", "--name", "by-hand", "--role", "viewer")
    key_id = made["key"]["id"]
    await asyncio.to_thread(keys, "limit", key_id, "--streams", "3")
    rotated = await asyncio.to_thread(keys, "rotate", key_id)
    await asyncio.to_thread(keys, "revoke", key_id, "--yes")
    told = await audited.entries(f"target={key_id}&event_type=auth.*")
    types = [entry["event_type"] for entry in told]
    assert types == ["auth.key_revoked", "auth.key_rotated", "auth.key_limited", "auth.key_created"]
    assert {(entry["principal"], entry["detail"]["binding"]) for entry in told} == {("operator", "nats")}
    assert told[1]["detail"]["target"] == {"key_id": key_id, "made_key": rotated["key"]["id"]}
    everything = str(await audited.entries(""))
    assert made["token"].rpartition("_")[2] not in everything
    assert rotated["token"].rpartition("_")[2] not in everything


async def test_pushes_work_and_reading_leave_nothing(audited: Audited) -> None:
    [newest] = (await audited.entries("limit=1"))[:1]
    _, pushed = await audited.as_role("POST", "/jobs", {"type": "a.b", "args": [], "options": {"queue": "quiet"}})
    _, fetched = await audited.as_role("POST", "/workers/fetch", {"queues": ["quiet"], "worker_id": "w", "wait_ms": 5_000})
    assert [job["id"] for job in fetched["jobs"]] == [pushed["job"]["id"]]
    await audited.as_role("POST", "/workers/ack", {"job_id": pushed["job"]["id"], "worker_id": "w"})
    await audited.as_role("GET", f"/jobs/{pushed['job']['id']}")
    await audited.as_role("POST", "/queues/quiet/pause", {})
    _, page = await audited.as_role("GET", f"/admin/audit?after={newest['id']}")
    operations = [entry["detail"]["operation"] for entry in page["entries"]]
    assert set(operations) <= {"pauseQueue", "listAuditEntries"}
    assert "pauseQueue" in operations


async def test_it_is_read_page_by_page_and_followed(audited: Audited) -> None:
    for number in range(5):
        await audited.as_role("POST", f"/queues/page-{number}/pause", {})
    query = "operation=pauseQueue&limit=2"
    status, first = await audited.as_role("GET", f"/admin/audit?{query}")
    _, second = await audited.as_role("GET", f"/admin/audit?{query}&cursor={first['pagination']['next_cursor']}")
    seen = [entry["detail"]["target"]["queue"] for page in (first, second) for entry in page["entries"]]
    assert (status, seen) == (200, ["page-4", "page-3", "page-2", "page-1"])
    await audited.as_role("POST", "/queues/page-5/pause", {})
    _, later = await audited.as_role("GET", f"/admin/audit?{query}&after={first['after']}")
    assert [entry["detail"]["target"]["queue"] for entry in later["entries"]] == ["page-5"]
    assert int(later["after"]) >= int(later["entries"][-1]["id"])


NO_QUESTIONS = [
    ("outcome=maybe", "outcome"),
    ("since=yesterday", "since"),
    ("cursor=x", "cursor"),
    ("after=-1", "after"),
    ("after=1&cursor=2", "after"),
    ("offset=5", "offset"),
    ("page=2", "page"),
    ("limit=x", "limit"),
]


async def test_a_question_that_cannot_be_read_is_refused_by_its_member(audited: Audited) -> None:
    for query, field in NO_QUESTIONS:
        status, answer = await audited.as_role("GET", f"/admin/audit?{query}")
        assert (status, answer["error"]["details"]["field"]) == (400, field), query


async def test_the_client_reads_it(audited: Audited) -> None:
    async with Client(audited.system.url, token=audited.tokens["admin"]) as client:
        await client.queues.pause("by-client")
        found = [entry async for entry in client.system.audit(target="by-client")]
    assert [(entry.principal, entry.detail.operation, entry.outcome) for entry in found] == [
        ("the-admin", "pauseQueue", "success")
    ]


async def test_the_command_shows_and_follows_it(audited: Audited, tmp_path: Path) -> None:
    cli = Cli(tmp_path, audited.system.url)
    token = tmp_path / "token"
    token.write_text(audited.tokens["admin"], encoding="utf-8")
    own = ("--token-file", str(token))
    await audited.as_role("POST", "/queues/by-command/pause", {})
    shown = await asyncio.to_thread(cli.asked, "audit", "--target", "by-command", *own)
    [line] = shown.splitlines()
    assert line.split()[2:] == ["admin.pause_queue", "the-admin", "127.0.0.1", "pauseQueue", "queue=by-command"]
    shown = await asyncio.to_thread(cli.asked, "audit", "--target", "by-command", "--json", *own)
    assert [json.loads(line)["detail"]["operation"] for line in shown.splitlines()] == ["pauseQueue"]
    with cli.piped("audit", "--follow", "--target", "by-command", "--json", *own) as process:
        before = json.loads(await asyncio.to_thread(process.stdout.readline))
        await audited.as_role("POST", "/queues/by-command/resume", {})
        after = json.loads(await asyncio.to_thread(process.stdout.readline))
    assert [entry["detail"]["operation"] for entry in (before, after)] == ["pauseQueue", "resumeQueue"]


def test_without_keys_it_tells_of_everybody(system: System) -> None:
    system.call("POST", "/queues/of-everybody/pause", {})

    def told() -> list[Any]:
        found: list[Any] = system.call("GET", "/admin/audit?target=of-everybody")["entries"]
        return found

    entry = until(told)[0]
    assert (entry["principal"], entry["detail"]["operation"]) == ("everybody", "pauseQueue")
    assert "mechanism" not in entry["detail"]


async def everything(audited: Audited, query: str) -> list[dict[str, Any]]:
    """Return all entries that a query finds, page by page."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        _, page = await audited.as_role("GET", f"/admin/audit?{query}&limit=200{cursor}")
        found += page["entries"]
        if not page["pagination"]["has_more"]:
            return found
        cursor = f"&cursor={page['pagination']['next_cursor']}"


@pytest.mark.parametrize(
    ("cancels", "resumes"), [(150, 50), pytest.param(10_000, 2_000, marks=pytest.mark.slow)], ids=["many", "very many"]
)
async def test_a_crowd_of_calls_hides_no_act(audited: Audited, cancels: int, resumes: int) -> None:
    """Failures and successes of one key at once, and a purge among them: all are there, and nothing is lost."""
    key = await audited.made(f"crowd-{cancels}", "admin")
    headers = {"Authorization": f"Bearer {key['token']}"}
    purged = f"payments-{cancels}"
    calls = [("DELETE", f"/jobs/019461a8-1a2b-7c3d-8e4f-{number:012x}") for number in range(cancels)]
    calls += [("POST", f"/queues/crowd-{cancels}-{number}/resume") for number in range(resumes)]
    calls.insert(len(calls) // 2, ("POST", f"/queues/{purged}/purge"))
    statuses: dict[str, set[int]] = {}
    waits = aiohttp.ClientTimeout(total=240)  # all of them at once, on a machine that may be busy
    connector = aiohttp.TCPConnector(limit=AT_ONCE)
    async with aiohttp.ClientSession(headers=headers, connector=connector, timeout=waits) as session:

        async def ask(method: str, path: str) -> None:
            status = 503
            while status in {408, 503}:  # a busy machine has no place for it in time, or doesn't read it in time
                async with session.request(method, f"{audited.url}{API}{path}", json={}) as answer:
                    await answer.read()
                    status = answer.status
            statuses.setdefault(path.rpartition("/")[2] if method == "POST" else "cancel", set()).add(status)

        await asyncio.gather(*(ask(*call) for call in calls))
        metrics = await (await session.get(f"{audited.url}/metrics")).text()
    assert statuses == {"cancel": {404}, "purge": {200}, "resume": {200}}
    by = f"principal={key['key']['id']}"
    cancelled = await everything(audited, f"{by}&operation=cancelJob")
    assert len([entry for entry in cancelled if entry["detail"]["status"] == 404]) in {1, 2}  # and what was cut off by itself
    [entry] = await audited.entries(f"target={purged}&outcome=success")
    assert (entry["principal"], entry["event_type"]) == (f"crowd-{cancels}", "admin.purge_queue")
    assert 'ojs_audit_entries_total{outcome="lost"}' not in metrics
    seen = {entry["detail"]["target"]["queue"] for entry in await everything(audited, f"{by}&operation=resumeQueue")}
    assert len(seen) == resumes


async def test_a_stranger_who_is_refused_everywhere_hides_nothing_of_a_key(audited: Audited) -> None:
    """As a scanner does that asks for all there is."""
    paths = [f"/{name}" for name in ("jobs", "queues", "workflows", "cron", "events", "dead-letter", "schemas")]
    paths += [f"/admin/{name}" for name in ("jobs", "queues", "workers", "stats", "keys", "pools", "audit", "findings")]
    calls = [(method, path) for path in paths for method in ("GET", "POST", "PUT", "DELETE", "PATCH")]
    calls += [(method, f"{path}/x") for method, path in calls]
    statuses = [(await audited.ask(method, path, {}))[0] for method, path in calls]
    assert statuses.count(401) > 31
    thief = await audited.made("thief", "producer")
    assert (await audited.as_role("POST", "/queues/payroll/purge", {}, token=thief["token"]))[0] == 403
    wanted = {"name": "x", "role": "admin"}
    assert (await audited.as_role("POST", "/admin/keys", wanted, token=thief["token"]))[0] == 403
    by = f"event_type=auth.permission_denied&principal={thief['key']['id']}"
    purge = await audited.one(f"{by}&operation=purgeQueue")
    assert (purge["principal"], purge["detail"]["target"]) == ("thief", {"queue": "payroll"})
    assert (await audited.one(f"{by}&operation=createKey"))["principal"] == "thief"


async def test_a_session_that_another_page_used_is_told_by_its_name(audited: Audited) -> None:
    made = await audited.made("victim", "operator")
    _, _, headers = await audited.ask("POST", "/session", token=made["token"])
    shown = {"Cookie": headers["Set-Cookie"].partition(";")[0]}
    status, _, _ = await audited.ask("POST", "/queues/forged/pause", {}, **shown)
    assert status == 403
    entry = await audited.one("target=forged")
    assert (entry["event_type"], entry["principal"]) == ("auth.permission_denied", "victim")
    assert (entry["detail"]["mechanism"], entry["detail"]["principal_id"]) == ("session", made["key"]["id"])


async def test_without_its_stream_everything_goes_on_and_what_is_not_stored_is_counted(audited: Audited) -> None:
    """The last one of this file: it takes the stream of the audit away."""

    async def late() -> float:
        async with session.get("/metrics") as answer:
            found = re.search(r'^ojs_audit_entries_total\{outcome="late"\} (\S+)$', await answer.text(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    headers = {"Authorization": f"Bearer {audited.tokens['admin']}"}
    client = await nats.connect(audited.system.nats_url)
    async with aiohttp.ClientSession(audited.url, headers=headers) as session:
        before = await late()
        try:
            await client.jetstream().delete_stream("OJS_AUDIT")
        finally:
            await client.close()
        async with session.post(f"{API}/queues/anyway/pause", json={}) as answer:
            assert answer.status == 200
        assert await late() == before + 1
        async with session.get(f"{API}/admin/audit") as answer:
            assert answer.status == 503
