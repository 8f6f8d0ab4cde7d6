"""A server that asks for keys, as its clients see it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import pytest
from multidict import CIMultiDict
from yarl import URL

from ojs_nats import App, Client, Worker
from ojs_nats.errors import NotFoundError, PermissionDeniedError, UnauthorizedError
from ojs_nats.jobs import JobRequest
from support.cli import Cli
from support.guarded import API, Guarded
from support.system import send
from support.waiting import eventually

ALL: Final = ("enqueue", "work", "read", "payloads", "control", "configure", "destroy", "admin")
MAY: Final = {
    "producer": {"enqueue"},
    "worker": {"work"},
    "viewer": {"read"},
    "operator": {"enqueue", "read", "payloads", "control"},
    "admin": set(ALL),
}
SAMPLES: Final[dict[str, tuple[str, str, object]]] = {
    "enqueue": ("POST", "/jobs", {"type": "a.b", "args": []}),
    "work": ("POST", "/workers/fetch", {"queues": ["empty"], "wait_ms": 0}),
    "read": ("GET", "/queues", None),
    "payloads": ("POST", "/jobs/results", {"job_ids": ["019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"]}),
    "control": ("POST", "/queues/sample/pause", {}),
    "configure": ("PUT", "/admin/pools/sample", {"queues": ["a", "b"]}),
    "destroy": ("POST", "/jobs/bulk/delete", {"job_ids": ["019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"]}),
    "admin": ("GET", "/admin/keys", None),
}


@pytest.mark.parametrize("role", MAY)
async def test_a_role_may_do_what_it_says_and_is_told_what_it_lacks(guarded: Guarded, role: str) -> None:
    token = await guarded.token(role)
    for permission, (method, path, body) in SAMPLES.items():
        status, answer, _ = await guarded.ask(method, path, body, token=token)
        if permission in MAY[role]:
            assert status not in {401, 403}, (permission, answer)
        else:
            assert (status, answer["error"]["code"]) == (403, "permission_denied"), (permission, answer)
            assert answer["error"]["details"]["permission"] == permission
            assert repr(permission) in answer["error"]["message"]


async def test_without_a_right_key_nobody_gets_in_but_to_health_and_description(guarded: Guarded) -> None:
    wrong = guarded.tokens["admin"][:-1] + ("0" if guarded.tokens["admin"][-1] != "0" else "1")
    for token in (None, wrong, "x"):
        status, answer, headers = await guarded.ask("GET", "/jobs", token=token)
        assert (status, headers["WWW-Authenticate"], answer["error"]["code"]) == (401, "Bearer", "unauthenticated")
        assert wrong not in str(answer)
    open_paths = ("/healthz", "/readyz", "/ojs/manifest", f"{API}/health", f"{API}/openapi.json")
    assert [send("GET", guarded.url + path).status for path in open_paths] == [200] * len(open_paths)
    assert send("GET", f"{guarded.url}/metrics").status == 401
    assert send("GET", f"{guarded.url}{API}/nowhere").status == 404


async def test_a_refusal_doesn_t_tell_whether_the_thing_is_there(guarded: Guarded) -> None:
    _, pushed, _ = await guarded.ask("POST", "/jobs", {"type": "a.b", "args": []}, token=guarded.tokens["admin"])
    there, nowhere = pushed["job"]["id"], "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
    token = await guarded.token("producer")
    messages = set()
    for job_id in (there, nowhere):
        status, answer, _ = await guarded.ask("GET", f"/jobs/{job_id}", token=token)
        messages.add((status, answer["error"]["message"]))
    assert len(messages) == 1


async def test_a_revoked_key_is_turned_away_and_its_streams_end(guarded: Guarded) -> None:
    made = await guarded.made("passing", "viewer")
    token, key_id = made["token"], made["key"]["id"]
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{guarded.url}{API}/events/stream") as stream,
        session.ws_connect(f"{guarded.url}{API}/ws") as socket,
    ):
        assert stream.status == 200
        status, answer, _ = await guarded.ask("DELETE", f"/admin/keys/{key_id}", token=guarded.tokens["admin"])
        assert (status, answer["key"]["state"]) == (200, "revoked")

        async def turned_away() -> bool:
            return (await guarded.ask("GET", "/jobs", token=token))[0] == 401

        await eventually(turned_away)
        async with asyncio.timeout(60):
            with suppress(aiohttp.ClientError):  # it is cut off
                while await stream.content.readany():
                    pass
            while not socket.closed:
                await socket.receive()
    _, listed, _ = await guarded.ask("GET", "/admin/keys", token=guarded.tokens["admin"])
    assert key_id not in {key["id"] for key in listed["keys"]}
    _, listed, _ = await guarded.ask("GET", "/admin/keys?all=true", token=guarded.tokens["admin"])
    assert key_id in {key["id"] for key in listed["keys"]}
    assert token not in str(listed)


async def test_who_waits_for_a_result_is_told_nothing_once_its_key_was_revoked(guarded: Guarded) -> None:
    made = await guarded.made("waiting", "custom", permissions=["read", "payloads"], limits={"waiting": 1})
    admin = guarded.tokens["admin"]
    queue = f"waited.{made['key']['id']}"
    _, pushed, _ = await guarded.ask("POST", "/jobs", {"type": "a.b", "args": [], "options": {"queue": queue}}, token=admin)
    job_id = pushed["job"]["id"]

    async def result(timeout: int) -> tuple[int, Any, object]:
        return await guarded.ask("GET", f"/jobs/{job_id}/result?wait=true&timeout={timeout}", token=made["token"])

    async def waited_for() -> tuple[int, Any, object]:
        while (answer := await result(30))[0] == 429:  # the question whether this waits has the place
            pass
        return answer

    waiting = asyncio.create_task(waited_for())

    async def it_waits() -> bool:
        return (await result(0))[0] == 429

    await eventually(it_waits)
    fetch = {"queues": [queue], "worker_id": "w", "wait_ms": 5_000}
    [job] = (await guarded.ask("POST", "/workers/fetch", fetch, token=admin))[1]["jobs"]
    await guarded.ask("DELETE", f"/admin/keys/{made['key']['id']}", token=admin)

    async def turned_away() -> bool:
        return (await guarded.ask("GET", "/session", token=made["token"]))[0] == 401

    await eventually(turned_away)
    await guarded.ask("POST", "/workers/ack", {"job_id": job["id"], "worker_id": "w", "result": "secret"}, token=admin)
    status, answer, _ = await waiting
    assert (status, "secret" in str(answer)) == (401, False), answer


@pytest.mark.parametrize("end", ["revoked", "expires"])
async def test_a_wait_for_a_result_ends_with_its_key(guarded: Guarded, end: str) -> None:
    admin = guarded.tokens["admin"]
    more = {"expires_in": "PT3S"} if end == "expires" else {}
    made = await guarded.made("awaiting", "custom", permissions=["payloads"], limits={"waiting": 1}, **more)
    job = {"type": "a.b", "args": [], "options": {"queue": "unending"}}
    _, pushed, _ = await guarded.ask("POST", "/jobs", job, token=admin)

    async def result(timeout: int) -> tuple[int, Any, object]:
        path = f"/jobs/{pushed['job']['id']}/result?wait=true&timeout={timeout}"
        return await guarded.ask("GET", path, token=made["token"])

    async def waited_for() -> tuple[int, Any, object]:
        while (answer := await result(60))[0] == 429:  # the question whether this waits has the place
            pass
        return answer

    async def it_waits() -> bool:
        return (await result(0))[0] == 429

    async with asyncio.timeout(50):
        waiting = asyncio.create_task(waited_for())
        if end == "revoked":
            await eventually(it_waits)
            await guarded.ask("DELETE", f"/admin/keys/{made['key']['id']}", token=admin)
        status, answer, _ = await waiting
    assert (status, answer["error"]["code"]) == (401, "unauthenticated")


async def test_two_keys_in_one_request_let_nobody_in(guarded: Guarded) -> None:
    """What stands before the server may go by one of them, and the server by the other."""
    right = guarded.tokens["admin"]
    for tokens in ((right, "x"), ("x", right), (right, right)):
        headers = CIMultiDict([("Authorization", f"Bearer {token}") for token in tokens])
        async with aiohttp.ClientSession() as session, session.get(f"{guarded.url}{API}/queues", headers=headers) as answer:
            assert answer.status == 401


async def test_no_way_of_writing_a_request_gets_past_the_door(guarded: Guarded) -> None:
    paths = (
        "/v1/queues",
        "/ojs/v1/ojs/v1/queues",
        "//ojs/v1/queues",
        "/ojs/v1//queues",
        "/ojs/v1/queues/",
        "/ojs/v1/%71ueues",
        "/ojs%2fv1%2fqueues",
        "/OJS/V1/QUEUES",
        "/healthz/../ojs/v1/queues",
        "/ojs/v1/health/..;/queues",
        "/ojs/v1/health/..%2fqueues",
        "/ojs/v1/queues;/healthz",
        "/ui/x/..%2f..%2f..%2fpyproject.toml",
    )
    asked = [URL(guarded.url + path, encoded=True) for path in paths]
    ways = [{name: "/healthz"} for name in ("X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Path")]
    ways += [{name: "DELETE"} for name in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override")]
    ways += [{"X-Forwarded-User": "first"}, {"X-Forwarded-For": "127.0.0.1"}, {"Cookie": "ojs_session="}]
    _, pushed, _ = await guarded.ask("POST", "/jobs", {"type": "a.b", "args": []}, token=guarded.tokens["admin"])
    job = f"{guarded.url}{API}/jobs/{pushed['job']['id']}"
    shown = {"Authorization": f"Bearer {await guarded.token('viewer')}"}
    async with aiohttp.ClientSession() as nobody, aiohttp.ClientSession(headers=shown) as viewer:
        for url in asked:
            for method in ("GET", "HEAD", "OPTIONS", "POST"):
                async with nobody.request(method, url, headers={"OJS-Version": "1.0"}) as answer:
                    assert answer.status in {401, 404, 405}, (method, url)
        for headers in ways:
            async with nobody.get(job, headers=headers) as answer:
                assert answer.status == 401, headers
            async with viewer.get(job, headers=headers) as answer:
                assert answer.status == 200, headers
            async with viewer.post(f"{job}/cancel", headers={"OJS-Version": "1.0"} | headers) as answer:
                assert answer.status == 403, headers


@pytest.mark.parametrize(
    "head",
    [
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer\r\n {token}\r\n\r\n",
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\x00\r\n\r\n",
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nBearer {token}\r\n\r\n",
        "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization : Bearer {token}\r\n\r\n",
        "Bearer {token} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        (
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n{token}\r\n"
        ),
    ],
)
async def test_what_is_no_http_is_refused_without_what_was_sent(guarded: Guarded, head: str) -> None:
    url, token = urlsplit(guarded.url), guarded.tokens["admin"]
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        writer.write(head.format(path=f"{API}/jobs", token=token).encode())
        async with asyncio.timeout(60):
            told = (await reader.readuntil(b"request_id")).decode()
    finally:
        writer.close()
    assert told.split()[1] in {"400", "405"}, told
    assert not [part for part in token.split("_")[3:] if part in told], told


async def test_a_narrowed_key_reaches_its_own_queues_and_types_alone(guarded: Guarded) -> None:
    admin = guarded.tokens["admin"]
    made = await guarded.made("shop", "custom", permissions=["enqueue", "work", "read"], queues=["shop.*"], types=["order.*"])
    token = made["token"]

    async def push(queue: str, job_type: str, key: str = token) -> tuple[int, Any]:
        body = {"type": job_type, "args": [], "options": {"queue": queue}}
        return (await guarded.ask("POST", "/jobs", body, token=key))[:2]

    status, own = await push("shop.eu", "order.paid")
    assert status == 201
    assert [(await push(*place))[0] for place in (("mail", "order.paid"), ("shop.eu", "mail.send"))] == [403, 403]
    others = [(await push(*place, key=admin))[1]["job"]["id"] for place in (("mail", "order.paid"), ("shop.eu", "mail.send"))]
    seen = [(await guarded.ask("GET", f"/jobs/{job_id}", token=token))[0] for job_id in (own["job"]["id"], *others)]
    assert seen == [200, 404, 404]
    batch = {"jobs": [{"type": "order.paid", "args": [], "options": {"queue": queue}} for queue in ("shop.eu", "mail")]}
    for path in ("/jobs/batch", "/jobs/bulk"):
        assert (await guarded.ask("POST", path, batch, token=token))[0] == 403
    for path in ("/queues/mail", "/queues/shop.eu", "/admin/stats"):
        status, answer, _ = await guarded.ask("GET", path, token=token)
        assert (status, answer["error"]["code"]) == (403, "permission_denied")

    fetch = {"queues": ["shop.eu"], "worker_id": "w", "count": 10, "wait_ms": 0}
    everything = await guarded.ask("POST", "/workers/fetch", fetch, token=token)
    assert everything[0] == 403
    fitting = {**fetch, "handlers": [{"type": "order.paid"}]}
    _, answer, _ = await guarded.ask("POST", "/workers/fetch", fitting, token=token)
    assert {job["type"] for job in answer["jobs"]} == {"order.paid"}
    assert (await guarded.ask("POST", "/workers/fetch", {**fitting, "queues": ["mail"]}, token=token))[0] == 403
    ack = {"job_id": others[0], "worker_id": "w"}
    assert (await guarded.ask("POST", "/workers/ack", ack, token=token))[0] == 404


NO_KEYS: Final[list[tuple[object, str]]] = [
    ({"name": "x", "role": "custom"}, "permissions"),
    ({"name": "x", "role": "viewer", "permissions": ["admin"]}, "permissions"),
    ({"name": "x", "role": "viewer", "queues": ["A"]}, "queues[0]"),
    ({"name": "x", "role": "viewer", "types": ["a b"]}, "types[0]"),
    ({"name": "x", "role": "viewer", "expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
    ({"name": "x", "role": "viewer", "expires_at": "2101-01-01T00:00:00Z", "expires_in": "1h"}, "expires_in"),
]


async def test_a_key_that_makes_no_sense_is_refused_by_its_field(guarded: Guarded) -> None:
    for body, field in NO_KEYS:
        status, answer, _ = await guarded.ask("POST", "/admin/keys", body, token=guarded.tokens["admin"])
        assert (status, answer["error"]["details"]["field"]) == (400, field), body


async def test_a_browser_signs_in_asks_from_its_own_pages_and_signs_out(guarded: Guarded) -> None:
    made = await guarded.made("person", "operator")
    status, answer, headers = await guarded.ask("POST", "/session", token=made["token"])
    assert (status, answer["name"], answer["signed_in"]) == (201, "person", True)
    cookie: SimpleCookie = SimpleCookie(headers["Set-Cookie"])
    [morsel] = cookie.values()
    assert (morsel["httponly"], morsel["samesite"], morsel["path"], morsel["max-age"]) == (True, "Strict", "/", "43200")
    assert not morsel["secure"]
    _, _, invented = await guarded.ask("POST", "/session", token=made["token"], X_Forwarded_Proto="https")
    assert "Secure" not in invented["Set-Cookie"]
    shown = {"Cookie": f"{morsel.key}={morsel.value}"}
    assert (await guarded.ask("GET", "/session", **shown))[1]["name"] == "person"
    assert (await guarded.ask("GET", "/queues", **shown))[0] == 200
    push = ("POST", "/jobs", {"type": "a.b", "args": []})
    own = f"http://{urlsplit(guarded.url).netloc}"
    assert (await guarded.ask(*push, **shown))[0] == 403
    assert (await guarded.ask(*push, **shown, Sec_Fetch_Site="same-origin"))[0] == 201
    assert (await guarded.ask(*push, **shown, Origin=own))[0] == 201
    assert (await guarded.ask(*push, **shown, Sec_Fetch_Site="none"))[0] == 403
    assert (await guarded.ask(*push, **shown, Origin="http://evil.example"))[0] == 403
    again = await guarded.ask("POST", "/session", **shown, Sec_Fetch_Site="same-origin")
    assert again[0] == 401  # a session doesn't begin another
    assert (await guarded.ask("GET", "/session", Cookie=f"{morsel.key}=forged.1.x"))[0] == 401
    status, _, headers = await guarded.ask("DELETE", "/session", **shown, Sec_Fetch_Site="same-origin")
    assert (status, "Max-Age=0" in headers["Set-Cookie"]) == (204, True)
    status, answer, _ = await guarded.ask("GET", "/session", **shown)
    assert (status, answer["error"]["message"]) == (401, "the session was ended: sign in again")
    assert (await guarded.ask("GET", "/queues", token=made["token"]))[0] == 200, "the key itself goes on"
    await guarded.ask("DELETE", f"/admin/keys/{made['key']['id']}", token=guarded.tokens["admin"])

    async def over() -> bool:
        return (await guarded.ask("GET", "/session", **shown))[0] == 401

    await eventually(over)


@pytest.mark.parametrize("way", ["http", "nats"])
async def test_the_python_client_shows_its_key(guarded: Guarded, way: str) -> None:
    address = guarded.url if way == "http" else guarded.system.nats_url
    async with Client(address, token=guarded.tokens["admin"]) as client:
        made = await client.keys.create(f"py-{way}", "viewer")
        assert made.token not in repr(made)
        assert made.key.id in {key.id for key in await client.keys.list()}
        rotated = await client.keys.rotate(made.key.id, overlap="1h")
        assert (await client.keys.get(made.key.id)).replaced_by == rotated.key.id
        assert (await client.keys.revoke(rotated.key.id)).state == "revoked"
        with pytest.raises(NotFoundError):
            await client.keys.get("nobody")
    async with Client(address, token=made.token) as viewer:
        assert (await viewer.system.stats()).queues >= 0
        with pytest.raises(PermissionDeniedError) as error:
            await viewer.keys.list()
        assert error.value.details["permission"] == "admin"
    async with Client(address) as nobody:
        with pytest.raises(UnauthorizedError):
            await nobody.system.stats()


async def test_answers_are_those_of_the_description(guarded: Guarded) -> None:
    admin = {"Authorization": f"Bearer {guarded.tokens['admin']}"}
    one = f"{API}/admin/keys"
    asked: list[tuple[str, str, object]] = [
        ("POST", one, {"name": "d", "role": "viewer", "queues": ["a.*"], "expires_in": "PT1H"}),
        ("GET", one, None),
        ("GET", f"{API}/session", None),
        ("POST", f"{API}/session", None),
        ("DELETE", f"{API}/session", None),
    ]
    key_id = (await guarded.made("described", "worker"))["key"]["id"]
    asked += [("GET", f"{one}/{key_id}", None), ("POST", f"{one}/{key_id}/rotate", {}), ("DELETE", f"{one}/{key_id}", None)]
    for method, path, body in asked:
        answer = send(method, guarded.url + path, body, headers=admin)
        assert answer.status < 300, (method, path, answer)
        guarded.described.check(method, path, answer, strict=True)
        if body is not None:
            guarded.described.check_request(method, path, body)


def test_the_commands_make_list_rotate_and_revoke_keys(guarded: Guarded, tmp_path: Path) -> None:
    cli = Cli(tmp_path, guarded.url)
    refused = cli("keys")
    assert (refused.code, "--token-file" in refused.err, "OJS_AUTH_TOKEN" in refused.err) == (1, True, True)
    file = tmp_path / "viewer.key"
    file.write_text(cli("keys", "create", "--name", "looks", "--role", "viewer", "--nats", guarded.system.nats_url_by_role).out)
    refused = cli("keys", "--token-file", str(file))
    assert (refused.code, "--token-file" in refused.err, "'admin'" in refused.err) == (1, True, True)
    file = tmp_path / "admin.key"
    file.write_text(guarded.tokens["admin"] + "\n")
    shown = ("--token-file", str(file))
    created = cli("keys", "create", "--name", "cli", "--role", "producer", "--queues", "a.*,b", "--expires", "90d", *shown)
    assert (created.code, created.out.startswith("ojs_sk_")) == (0, True), created
    listed = cli("keys", "--json", *shown).json
    key = next(one for one in listed if one["name"] == "cli")
    assert (key["role"], key["queues"]) == ("producer", ["a.*", "b"])
    rotated = cli("keys", "rotate", key["id"], "--overlap", "1h", "--json", *shown).json
    assert rotated["token"].startswith(f"ojs_sk_{rotated['key']['id']}_")
    on_nats = ("--nats", guarded.system.nats_url_by_role)
    assert cli("keys", "revoke", key["id"], "--yes", *on_nats).code == 0
    states = {one["id"]: one["state"] for one in cli("keys", "--all", "--json", *on_nats).json}
    assert (states[key["id"]], states[rotated["key"]["id"]]) == ("revoked", "live")
    assert cli("context", "set", "prod", "--server", guarded.url, *shown).code == 0
    by_context = cli("queues", "--context", "prod")
    assert by_context.code == 0, by_context
    assert guarded.tokens["admin"] not in cli("context", "show", "prod").out


async def test_a_worker_whose_key_is_revoked_in_mid_run_says_so_and_keeps_what_its_jobs_bring(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    made = await guarded.made("cut off", "worker")
    admin = guarded.tokens["admin"]
    app = App(guarded.url, token=made["token"])
    begun, go_on = asyncio.Event(), asyncio.Event()

    @app.job("keyed.slow", queue="cut-off")
    async def slow() -> str:
        begun.set()
        await go_on.wait()
        return "done"

    worker = Worker(app, queues=["cut-off"], heartbeat_interval="200ms", fetch_timeout="200ms")
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(120):
        async with Client(guarded.url, token=admin) as client:
            handle = await client.push(JobRequest[None]("keyed.slow", (), {"queue": "cut-off"}))
        await begun.wait()
    await guarded.ask("DELETE", f"/admin/keys/{made['key']['id']}", token=admin)

    async def told(*events: str) -> bool:
        return all(any(record.message.startswith(event) for record in caplog.records) for event in events)

    await eventually(lambda: told("the server doesn't take this worker's key"))
    go_on.set()
    await eventually(lambda: told("how a job ended is reported again"))
    [first, *_] = [record for record in caplog.records if record.message.startswith("the server doesn't take")]
    assert first.levelname == "ERROR"
    assert "was revoked" in first.message
    assert "OJS_AUTH_TOKEN" in first.message
    assert made["token"].rpartition("_")[2] not in caplog.text
    assert not await told("a job's result was refused")
    _, job, _ = await guarded.ask("GET", f"/jobs/{handle.id}", token=admin)
    assert job["job"]["state"] == "active"
    await worker.stop(grace_period="1s")
    await running
    assert await told("how a job ended could not be reported")


async def test_a_worker_shows_its_key_and_asks_on_when_that_is_revoked(guarded: Guarded) -> None:
    made = await guarded.made("runner", "custom", permissions=["enqueue", "work", "read", "payloads"])
    app = App(guarded.url, token=made["token"])

    @app.job("keyed.hello")
    async def hello(name: str) -> str:
        return f"hello {name}"

    worker = Worker(app, heartbeat_interval="200ms", fetch_timeout="200ms")
    running = asyncio.create_task(worker.run())
    async with app:
        handle = await hello.push("ada")
        assert await handle.result(timeout="60s") == "hello ada"
    await guarded.ask("DELETE", f"/admin/keys/{made['key']['id']}", token=guarded.tokens["admin"])

    async def turned_away() -> bool:
        return (await guarded.ask("GET", "/jobs", token=made["token"]))[0] == 401

    await eventually(turned_away)
    assert not running.done()
    await worker.stop(grace_period="1s")
    await running
