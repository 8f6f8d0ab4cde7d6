"""A whole system whose processes have a NATS user each, with the rights of `ojs-nats nats-conf --users` and no others."""

from __future__ import annotations

import asyncio
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import nats
import pytest

from ojs_command.services import BACKGROUND, SERVICES
from ojs_engine.jetstream.grants import Grants, Team, all_grants
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_features.all import GRANTS
from ojs_link.login import read_login
from ojs_nats import App, Client, JobContext, Retry, Worker
from ojs_nats.errors import PermissionDeniedError
from ojs_nats.jobs import JobRequest
from ojs_nats.worker._lifecycle import Trigger
from support import users
from support.forked import OJS_NATS, completed
from support.nats import NatsServer
from support.scrape import scrape
from support.system import Command, Processes, environment, send
from support.waiting import eventually, until
from support.webhook_target import WebhookTarget

PAGE = Path(__file__).parents[2] / "docs" / "nats-users.md"
[COMMAND] = re.findall(r"^ojs-nats (nats-conf --users --team .*) >", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
TEAMS = [Team(name, tuple(queues.split(","))) for name, queues in re.findall(r"--team (\w+)=(\S+)", COMMAND)]
ROWS = all_grants(StoreConfig(), GRANTS, TEAMS, test_mode=True)
V1 = "/ojs/v1"


class Guarded(NamedTuple):
    """A nats-server with these users, and the services on it."""

    server: NatsServer
    processes: Processes
    url: str

    def as_user(self, user: str) -> str:
        return users.by_role(f"nats://127.0.0.1:{self.server.port}", user)

    def call(self, method: str, path: str, body: object = None) -> Any:
        answer = send(method, f"{self.url}{V1}{path}", body)
        assert answer.status < 300, answer
        return answer.body

    @property
    def violations(self) -> list[str]:
        return [line for line in self.server.log.splitlines() if "iolation" in line]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("users")
    with NatsServer(folder / "nats", more=users.section(*TEAMS)) as server:
        address = users.all_rights(f"127.0.0.1:{server.port}")
        users.make_streams(address)
        processes = Processes(folder / "processes", address, with_users=True)
        try:
            for entry in SERVICES:
                local = ("--webhook-insecure", "--webhook-private") if entry.name in {"gateway", "webhooks"} else ()
                processes.start(entry.name, *local)
            ready = {command.arguments[0]: command.ready() for command in processes.commands}
            yield Guarded(server, processes, str(ready["gateway"]["url"]))
        finally:
            processes.stop()


def state_of(guarded: Guarded, job_id: str) -> str:
    return str(guarded.call("GET", f"/jobs/{job_id}")["job"]["state"])


async def test_a_whole_life_needs_no_more_than_the_rows(guarded: Guarded) -> None:
    before = len(guarded.violations)
    app = App(guarded.as_user("shop-worker"))
    tried: list[int] = []

    @app.job("email.send", queue="email", retry=Retry(initial_interval=0.5))
    async def send_mail(ctx: JobContext, number: int) -> int:
        await ctx.progress(0.5)
        await ctx.save({"sent": number})
        tried.append(number)
        if number == 1 and tried.count(1) == 1:
            raise RuntimeError("once more")
        return number

    worker = Worker(app, fetch_timeout="200ms")
    running = asyncio.create_task(worker.run())
    with WebhookTarget.started() as target:
        await asyncio.to_thread(_everything_over_http, guarded, target)
        async with Client(guarded.as_user("shop-client")) as client:
            one = await client.push(JobRequest[int]("email.send", (0,), {"queue": "email"}))
            assert await one.result("60s") == 0
            handles = await client.push_all(
                [JobRequest[int]("email.send", (number,), {"queue": "email"}) for number in range(1, 5)]
            )
            assert [await handle.result("60s") for handle in handles] == [1, 2, 3, 4]
        await eventually(lambda: one.id in target.subjects)
    worker.notify(Trigger.SIGTERM)
    await running
    await asyncio.to_thread(guarded.call, "POST", "/admin/reset")
    assert guarded.violations[before:] == []
    assert all("iolation" not in command.output for command in guarded.processes.commands)


@pytest.mark.parametrize("user", ["{role}", "services"])
def test_all_services_in_one_process_work_as_their_users_or_as_one(guarded: Guarded, user: str) -> None:
    before = len(guarded.violations)
    services = guarded.processes.start("services", "--nats", guarded.as_user(user))

    def ready() -> bool:
        assert services.process.poll() is None, services.output
        return any("services" in line for line in services.events("ready"))

    until(ready, 180.0)
    [line] = [line for line in services.events("ready") if "services" in line]
    until(lambda: send("GET", f"{line['url']}/readyz").status == 200)
    delayed = guarded.call("POST", "/jobs", {"type": "t", "args": [], "options": {"queue": "nobodys", "delay": "1s"}})
    until(lambda: state_of(guarded, delayed["job"]["id"]) == "available")
    assert services.stop() == 0
    assert guarded.violations[before:] == []
    assert "iolation" not in services.output


def _everything_over_http(guarded: Guarded, target: WebhookTarget) -> None:
    call = guarded.call
    call("POST", "/webhooks/subscriptions", {"url": target.url, "events": ["job.completed"]})
    _a_limit_is_reached_and_left(guarded)
    call("PUT", "/queues/email/config", {"max_size": 100})
    call("PUT", "/queues/broken/config", {"dead_letter": {"retention": {"max_count": 1}}})
    for _ in range(2):
        _fails_for_good(guarded, "broken")
    mail = {"type": "email.send", "args": [7], "options": {"queue": "email"}}
    call(
        "POST",
        "/cron",
        {"name": "mails", "cron": "* * * * * *", "type": "email.send", "args": [8], "options": {"queue": "email"}},
    )
    unique = {"queue": "email", "unique": {"keys": ["type", "args"]}}
    call("POST", "/jobs", mail | {"options": unique})
    flow = call("POST", "/workflows", {"type": "chain", "steps": [mail, mail]})
    delayed = call("POST", "/jobs", mail | {"options": {"queue": "email", "delay": "1s"}})["job"]["id"]
    expiring = call("POST", "/jobs", mail | {"options": {"queue": "nobodys", "expires_at": "2026-01-01T00:00:00Z"}})
    cancelled = call("POST", "/jobs", mail | {"options": {"queue": "nobodys"}})["job"]["id"]
    call("DELETE", f"/jobs/{cancelled}")
    assert expiring is not None

    def all_have_ended() -> bool:
        done = call("GET", f"/workflows/{flow['workflow']['id']}")["workflow"]["state"] == "completed"
        pruned = call("GET", "/dead-letter/stats?queue=broken")["total"] == 1
        ended = done and pruned and state_of(guarded, delayed) == "completed"
        return ended and call("GET", "/cron/mails/history")["executions"] != []

    until(all_have_ended, 120.0)
    call("DELETE", "/cron/mails")
    call("POST", "/queues/email/pause")
    call("POST", "/queues/email/resume")
    assert call("GET", "/jobs?limit=5")["jobs"] != []
    assert call("GET", "/events?types=job.completed&limit=5")["events"] != []
    call("GET", "/queues/email/stats")


def _a_limit_is_reached_and_left(guarded: Guarded) -> None:
    """A gateway sees the one, the scheduler the other."""
    limited = {"queue": "limited", "rate_limit": {"key": "api", "concurrency": 1}}
    for _ in range(2):
        guarded.call("POST", "/jobs", {"type": "t", "args": [], "options": limited})
    [job] = guarded.call("POST", "/workers/fetch", {"queues": ["limited"], "worker_id": "w", "count": 2})["jobs"]
    guarded.call("POST", "/workers/ack", {"job_id": job["id"]})
    told = ["rate_limit.exceeded", "rate_limit.released"]
    until(lambda: [event["type"] for event in guarded.call("GET", "/events?types=rate_limit.*")["events"]] == told)


def _fails_for_good(guarded: Guarded, queue: str) -> None:
    options = {"queue": queue, "retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}
    made = guarded.call("POST", "/jobs", {"type": "t", "args": [], "options": options})["job"]["id"]
    asked = {"queues": [queue], "worker_id": "w", "wait_ms": 10_000}
    assert [job["id"] for job in guarded.call("POST", "/workers/fetch", asked)["jobs"]] == [made]
    failed = {"job_id": made, "worker_id": "w", "error": {"code": "no", "message": "no"}}
    guarded.call("POST", "/workers/nack", failed)


def covers(pattern: str, subject: str) -> bool:
    """Whether every subject that `subject` stands for is one of `pattern`'s."""
    wanted, found = pattern.split("."), subject.split(".")
    for place, word in enumerate(wanted):
        if word == ">":
            return len(found) > place
        if place == len(found) or (word != "*" and word != found[place]) or (word == "*" and found[place] == ">"):
            return False
    return len(wanted) == len(found)


def allows(row: Grants, subject: str) -> bool:
    denied = any(covers(pattern, subject) for pattern in row.not_publish)
    return not denied and any(covers(pattern, subject) for pattern in row.publish)


def one_of(pattern: str) -> str:
    """A subject that the pattern stands for."""
    return ".".join({"*": "x", ">": "x"}.get(word, word) for word in pattern.split("."))


PUBLIC = {"operator", *(name for team in TEAMS for name in (team.client, team.worker))}


@functools.cache
def of_others(user: str) -> dict[str, str]:
    """A subject of each other user's row that isn't in this one's."""
    found = {}
    for other, row in ROWS.items():
        foreign = (one_of(pattern) for pattern in row.publish if not allows(ROWS[user], one_of(pattern)))
        if other != user and (subject := next(foreign, None)) is not None:
            found[other] = subject
    return found


def test_every_row_has_what_no_other_has() -> None:
    lacking = {(user, other) for user in ROWS for other in ROWS if other != user and other not in of_others(user)}
    # What people may ask of the API includes what clients and workers may.
    # The user `services` may what its services may between them.
    of_services = {("services", entry.name) for entry in BACKGROUND}
    assert lacking == {("operator", name) for name in PUBLIC - {"operator"}} | of_services


@pytest.mark.parametrize("user", ROWS)
async def test_a_user_is_refused_a_subject_of_each_other_row(guarded: Guarded, user: str) -> None:
    refused: list[str] = []

    async def note(error: Exception) -> None:
        refused.append(str(error).lower())

    seed = users.folder() / f"{user}.nk"
    client = await nats.connect(f"nats://127.0.0.1:{guarded.server.port}", nkeys_seed=str(seed), error_cb=note)
    subjects = [
        *of_others(user).values(),
        "$JS.API.STREAM.CREATE.OTHER",
        "$SYS.REQ.SERVER.PING",
    ]
    if user != "restore":  # which takes away what it didn't finish
        subjects.append("$JS.API.STREAM.DELETE.KV_ojs")
    for subject in subjects:
        await client.publish(subject, b"")
    other = "scheduler" if user != "scheduler" else "reaper"
    await client.subscribe(f"_INBOX_ojs_{other}.>", cb=_nothing)
    wanted = [f'nats: permissions violation for publish to "{subject.lower()}"' for subject in subjects]
    wanted.append(f'nats: permissions violation for subscription to "_inbox_ojs_{other}.>"')
    await eventually(lambda: len(refused) >= len(wanted))
    assert refused == wanted
    await client.close()


async def _nothing(_: object) -> None:
    pass


async def test_teams_work_in_their_own_queues_alone(guarded: Guarded) -> None:
    app = App(guarded.as_user("media-worker"))
    ran = asyncio.Event()

    @app.job("thumbnail.make", queue="thumbnails")
    async def make() -> str:
        ran.set()
        return "made"

    worker = Worker(app, fetch_timeout="200ms")
    running = asyncio.create_task(worker.run())
    async with Client(guarded.as_user("media-client")) as media, Client(guarded.as_user("shop-client")) as shop:
        made = await media.push(JobRequest[str]("thumbnail.make", (), {"queue": "thumbnails"}))
        assert await made.result("60s") == "made"
        for client, queue in ((media, "email"), (shop, "thumbnails"), (shop, "default")):
            with pytest.raises(PermissionDeniedError, match="NATS doesn't let this user ask on"):
                await client.push(JobRequest[None]("any", (), {"queue": queue}))
        with pytest.raises(PermissionDeniedError):
            await shop.jobs.get(made.id)
        with pytest.raises(PermissionDeniedError):
            await shop.queues.pause("email")
        with pytest.raises(PermissionDeniedError):
            await shop.workflows.get(made.id)
    worker.notify(Trigger.SIGTERM)
    await running


def of_namespace(row: Grants) -> set[str]:
    """Return a row's subjects, without those that are of no namespace."""
    return {*row.publish, *row.not_publish, *row.subscribe} - {"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$SRV.>"}


def test_the_rows_of_two_namespaces_have_nothing_in_common() -> None:
    here, there = (all_grants(StoreConfig(namespace=name), GRANTS, test_mode=True) for name in ("ojs", "shop"))
    all_here, all_there = (set().union(*map(of_namespace, rows.values())) for rows in (here, there))
    assert not [(one, two) for one in all_here for two in all_there if covers(one, two) or covers(two, one)]


def test_a_gateway_in_a_namespace_has_keys_and_an_audit(tmp_path: Path) -> None:
    with NatsServer(tmp_path / "nats", more=users.section(namespace="shop")) as server:
        url = users.by_role(f"nats://127.0.0.1:{server.port}", namespace="shop")
        env = environment(OJS_NATS=url, OJS_NAMESPACE="shop", OJS_AUDIT_DAYS="7", OJS_STORAGE_LIMIT=str(4 << 30))
        keys = ("keys", "create", "--name", "ops", "--role", "admin", "--nats", url)

        def run(*arguments: str) -> str:
            ran = completed([*OJS_NATS, *arguments], env, folder=tmp_path)
            assert ran.returncode == 0, ran
            return ran.stdout

        assert "SHOP_AUDIT" in run("setup")
        token = run(*keys).strip()
        answering = ("--nats-api-url", url)
        gateway = Command(tmp_path, "gateway", "--port", "0", "--log-format", "json", *answering, env=env)
        try:
            address = f"{gateway.ready()['url']}{V1}"
            shown = {"Authorization": f"Bearer {token}"}
            assert send("GET", f"{address}/jobs/any").status == 401
            made = send("POST", f"{address}/admin/keys", {"name": "shop", "role": "producer"}, headers=shown)
            assert made.status == 201

            def told() -> list[str]:
                entries = send("GET", f"{address}/admin/audit", headers=shown).body["entries"]
                return [entry["principal"] for entry in entries if entry["event_type"] == "auth.key_created"]

            until(told)
        finally:
            gateway.stop()
        assert [line for line in server.log.splitlines() if "iolation" in line] == []


@pytest.mark.slow
def test_who_may_back_up_reads_and_who_may_restore_writes(guarded: Guarded, tmp_path: Path) -> None:
    before = len(guarded.violations)
    made = guarded.call("POST", "/jobs", {"type": "a.b", "args": [1], "options": {"queue": "kept"}})["job"]["id"]
    nats = f"nats://127.0.0.1:{guarded.server.port}?inbox_prefix=_INBOX_ojs_{{role}}&creds={users.folder()}/{{role}}.nk"

    def run(*words: str, url: str = nats) -> None:
        done = completed([*OJS_NATS, *words, "--nats", url], environment(), folder=tmp_path)
        assert done.returncode == 0, done.stderr

    def ages() -> list[float]:
        found = guarded.call("GET", "/admin/findings")  # one look is for all who ask within a second
        assert "backup" not in {one["check"] for one in found["findings"]}
        return list(scrape(guarded.url).of("ojs_backup_age_seconds").values())

    assert "backup" in guarded.call("GET", "/admin/findings")["checks"]
    assert ages() == []
    run("backup", "kept")
    assert guarded.violations[before:] == []
    [age] = until(ages)
    assert 0 <= age < 3_600
    with NatsServer(tmp_path / "empty", more=users.section(*TEAMS)) as server:
        there = nats.replace(str(guarded.server.port), str(server.port))
        run("restore", "kept", "--quiet", url=there)
        run("release", "--yes", url=there)
        assert [line for line in server.log.splitlines() if "iolation" in line] == []
    with pytest.raises(AssertionError, match="is in use"):
        run("restore", "kept")
    assert state_of(guarded, made) == "available"


def test_a_backup_whose_user_may_not_note_its_time_is_made_with_a_warning(tmp_path: Path) -> None:
    lacking = ("backup", StoreConfig().last_backup)
    with NatsServer(tmp_path / "nats", more=users.section(unsaid=lacking)) as server:
        address = users.all_rights(f"127.0.0.1:{server.port}")
        users.make_streams(address)
        words = ("backup", "kept", "--nats", users.by_role(address), "--json")
        done = completed([*OJS_NATS, *words], environment(), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert lines[-1]["namespace"] == "ojs"
    assert (tmp_path / "kept").is_dir()
    [told] = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert "print the users again with 'ojs-nats nats-conf --users'" in told


def test_the_command_prints_users_and_keeps_their_seeds(tmp_path: Path) -> None:
    def printed() -> subprocess.CompletedProcess[str]:
        command = [*OJS_NATS, "nats-conf", "--users", "--account", "OJS", "--team", "shop=email"]
        return completed(command, environment(), folder=tmp_path)

    text = printed().stdout
    assert text.startswith("# Written by")
    seeds = sorted((tmp_path / "nats-users").iterdir())
    assert {file.stem for file in seeds} == {
        *(entry.name for entry in SERVICES),
        "services",
        "gateway-api",
        "operator",
        "backup",
        "restore",
        "shop-client",
        "shop-worker",
    }
    for file in seeds:
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.read_text(encoding="utf-8").strip() not in text
        assert str(read_login(str(file)).public_key) in text
    assert printed().stdout == text
    (tmp_path / "nats-users" / "reaper.nk").write_text("a:b", encoding="utf-8")
    failed = printed()
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "reaper.nk is no nkey seed: move it away" in failed.stderr


def test_a_service_is_told_what_its_user_lacks(guarded: Guarded, tmp_path: Path) -> None:
    url = users.by_role(f"nats://127.0.0.1:{guarded.server.port}", "shop-client")
    command = Command(tmp_path, "reaper", env=environment(OJS_NATS=url))
    assert command.process.wait(60) == 1
    assert "the NATS user of this process may not look at stream KV_ojs" in command.output
    assert "ojs-nats setup" in command.output
    assert "Traceback" not in command.output


def test_a_password_on_the_command_line_is_warned_of(tmp_path: Path) -> None:
    command = Command(tmp_path, "reaper", "--nats", "nats://a:secret@127.0.0.1:1", "--connect-timeout", "0")
    assert command.process.wait(60) == 1
    assert "warning: a password on the command line" in command.output
    assert "secret" not in command.output
