"""Folders of nats-server with what an earlier version of the server has stored: how they are made, and unpacked.

`script/stored COMMIT NAME` starts the services of a commit on a nats-server of their own, has them store something of
everything, and writes two files below tests/fixtures/stored: NAME.tar.xz, the folder that nats-server leaves, and
NAME.json, what the API said of it: its answers by their paths, and the names by which tests know jobs and workflows.

The folder ages. When a test opens it leases (30 s), delays and back-offs (a minute) are over, and the services' own
records (2 minutes). Events, progress and the workflow that has ended leave after 7 days, checkpoints and what is known
of limits after 30, the audit after as many as the server is told. Jobs and results stay for ten years, since the queues
are told so. `aged` makes of a folder what it will be in a year.
"""

from __future__ import annotations

import json
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import nats
from nats.js import JetStreamContext
from nats.js.errors import BadRequestError, NotFoundError

from support.earlier import earlier
from support.forked import completed
from support.nats import NatsServer
from support.system import Api, Services, environment
from support.waiting import until

FOLDER: Final = Path(__file__).parents[1] / "fixtures" / "stored"
QUEUES: Final = ("plain", "bounded", "paused", "pooled", "limited", "single", "flow", "cron")
LEASE_MS: Final = 30_000
DAY_S: Final = 86_400
LARGE: Final = "large" * 10_000
"""A result that has a record of its own."""
_OWN: Final[dict[str, dict[str, Any]]] = {
    "bounded": {"max_size": 2},
    "single": {"concurrency": 1},
    "pooled": {"rate_limit": {"limit": 100, "period": "PT1S"}},
}
"""What queues are set to, beside how long their jobs stay."""
_LONG: Final = "P3650D"
_LATER: Final = "+PT60S"
"""After the folder was made, and before anybody opens it but those who have just made it."""
_NO_SUCH_MESSAGE: Final = 10_043
"""An error of nats-server."""
_MOST_S: Final = 20.0
"""So long may the filling take, lest something comes due before the services stop."""
_ARGS: Final = ({"n": 1, "text": "ä"}, None, [1.5])
_JOB: Final[dict[str, Any]] = {"type": "stored.job", "args": _ARGS}


class Stored(NamedTuple):
    """What a folder's JSON says of it."""

    commit: str
    made: float
    """When: seconds since 1970."""
    token: str
    """That of a key with the role admin: the server asks for one."""
    ids: Mapping[str, str]
    """Jobs and workflows by the names that `_Filling` gives them."""
    answers: Mapping[str, Any]
    """The bodies of the API's answers to GET, by the paths below /ojs/v1."""


def names() -> list[str]:
    """Return the names of all folders."""
    return sorted(file.name.removesuffix(".tar.xz") for file in FOLDER.glob("*.tar.xz"))


def unpacked(name: str, folder: Path) -> Stored:
    """Unpack a folder to where a `NatsServer` in `folder` has its files, and return what is known of it."""
    with tarfile.open(FOLDER / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return Stored(**json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


async def _deleted(context: JetStreamContext, sequence: int) -> None:
    """Delete a message of the records, which nats-server may have let go since it was read."""
    try:
        await context.delete_msg("KV_ojs", sequence)
    except BadRequestError as error:
        if error.err_code != _NO_SUCH_MESSAGE:
            raise


async def aged(nats_url: str, days: float) -> None:
    """Take away what nats-server would have, were its data so much older."""
    client = await nats.connect(nats_url)
    context = client.jetstream()
    try:
        await context.purge_stream("OJS_EVENTS")
        state = (await context.stream_info("KV_ojs")).state
        for sequence in range(state.first_seq, state.last_seq + 1):
            with suppress(NotFoundError):
                message = await context.get_msg("KV_ojs", sequence)
                life_s = (message.headers or {}).get("Nats-TTL", "never").removesuffix("s")
                if life_s.isdigit() and int(life_s) <= days * DAY_S:
                    await _deleted(context, sequence)
    finally:
        await client.close()


def make(commit: str, name: str) -> None:
    """Make a folder anew. Raises NoSuchVersion."""
    with tempfile.TemporaryDirectory(prefix="ojs-stored-") as place:
        root = Path(place)
        program = earlier(commit, root / "sources")
        server = NatsServer(root / "nats")
        with server, Services.started(root, server=server, program=program) as services:
            begun = time.monotonic()
            filling = _Filling(services)
            filling.fill()
            answers = {path: services.call("GET", path) for path in filling.paths()}
            token = _first_key(program, server.url)
            assert time.monotonic() - begun < _MOST_S, "the machine is too busy: leases may have ended"
        stored = Stored(commit, round(time.time()), token, filling.ids, answers)
        _pack(root / "nats", FOLDER / f"{name}.tar.xz")
    text = json.dumps(stored._asdict(), indent=1, sort_keys=True, ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


def _first_key(program: Sequence[str], nats_url: str) -> str:
    command = [*program, "keys", "create", "--name", "stored", "--role", "admin", "--nats", nats_url]
    said = completed(command, environment())
    assert said.returncode == 0, said
    return said.stdout.strip()


def _pack(folder: Path, file: Path) -> None:
    """Pack what nats-server has stored in `folder`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(file, "w:xz", preset=9) as archive:
        archive.add(folder / "store", "store", filter=_of_nobody)


def _of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


class _Filling:
    """Has a system store something of everything."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.ids: dict[str, str] = {}

    def fill(self) -> None:
        """Fill it. Each step leaves its jobs as their names say."""
        self._settings()
        self._jobs()
        self._limits()
        self._workflows()
        self._crons()

    def paths(self) -> list[str]:
        """Return what is to be read of it."""
        jobs = [job_id for name, job_id in self.ids.items() if not name.startswith("workflow.")]
        flows = [flow for name, flow in self.ids.items() if name.startswith("workflow.")]
        active = self.ids["active"]
        return [
            *(f"/jobs/{job_id}" for job_id in jobs if job_id != self.ids["large"]),
            *(f"/workflows/{flow}" for flow in flows),
            *(f"/queues/{queue}/config" for queue in QUEUES),
            f"/jobs/{active}/checkpoint",
            f"/jobs/{active}/progress",
            f"/jobs/{self.ids['completed']}/result",
            f"/jobs/{self.ids['retrying']}/history",
            "/dead-letter",
            "/cron",
            "/rate-limits",
            "/admin/pools",
            "/schemas",
            "/webhooks/subscriptions",
        ]

    def _settings(self) -> None:
        call = self._api.call
        retention = {"retention": dict.fromkeys(("completed", "cancelled", "discarded", "dead_letter"), _LONG)}
        for queue in QUEUES:
            call("POST", "/queues", {"name": queue, "config": {**retention, **_OWN.get(queue, {})}}, 201)
        call("PUT", "/queues/_default/config", {"default_retry": {"max_attempts": 4}})
        call("POST", "/queues/paused/pause")
        queues = {"pooled": {"weight": 2}, "plain": {}}
        call("PUT", "/admin/pools/pool", {"strategy": "weighted", "queues": queues}, 201)
        schema = {"schema": {"type": "array", "items": [{"type": "string"}]}, "validation": {"mode": "strict"}}
        call("POST", "/schemas", {"uri": "urn:stored:1", "type": "stored.schema", "version": 1, **schema}, 201)
        hook = {"url": "https://127.0.0.1:9/", "events": ["job.completed"], "secret": "stored-secret-of-a-test"}
        made = call("POST", "/webhooks/subscriptions", hook, 201)
        call("PATCH", f"/webhooks/subscriptions/{made['subscription']['id']}", {"active": False})

    def _jobs(self) -> None:
        self._push("completed", result_ttl=-1)
        job = self._take("completed")
        self._api.call("POST", "/workers/ack", {**job, "result": {"done": ["ö", 2]}})
        self._push("large")
        self._api.call("POST", "/workers/ack", {**self._take("large"), "result": LARGE})
        for name, end in (("discarded", "discard"), ("dead letter", "dead_letter")):
            self._push(name, retry={"max_attempts": 1, "on_exhaustion": end})
            self._fail(name)
        self._push("retrying", retry={"max_attempts": 3, "initial_interval": "PT60S", "jitter": False})
        self._fail("retrying")
        self._push("cancelled")
        self._api.call("DELETE", f"/jobs/{self.ids['cancelled']}", {"reason": "not needed"})
        self._push("active", retry={"max_attempts": 3, "initial_interval": "PT1S"})
        held = self._take("active")
        path, holder = f"/jobs/{self.ids['active']}", _holder(held)
        self._api.call("PUT", f"{path}/checkpoint", {"state": {"row": 5}, **holder})
        self._api.call("PUT", f"{path}/progress", {"progress": 0.25, "message": "read", **holder})
        self._push("delayed", delay_until=_LATER)
        self._push("far", delay_until="2100-01-01T00:00:00Z")
        self._push("pending", pending=True)
        self._push("expiring", expires_at=_LATER)
        self._push("plain", priority=10, tags=["a", "b"], metadata={"k": 1}, expires_at="2100-01-01T00:00:00Z")
        self._push("unique", args=["only"], unique={"keys": ["type", "args"], "period": _LONG, "on_conflict": "reject"})
        self._push("bounded", queue="bounded")
        self._push("bounded too", queue="bounded")
        self._push("paused", queue="paused")
        self._push("pooled", queue="pooled")

    def _limits(self) -> None:
        for name in ("permitted", "limited"):
            self._push(name, queue="limited", rate_limit={"key": "stored-key", "concurrency": 1})
        for name in ("single", "single too"):
            self._push(name, queue="single")
        self._take("permitted", "limited")
        self._take("single", "single")
        override = {"concurrency": 1, "expires_at": "2100-01-01T00:00:00Z"}
        self._api.call("PUT", "/rate-limits/stored-key/override", override)

    def _workflows(self) -> None:
        steps = [_step("first"), _step("second"), _step("third", delay_until="+PT1S")]
        self._flow("chain", {"type": "chain", "steps": steps})
        self._finish_next("flow")
        self._flow("group", {"type": "group", "jobs": [_step("a"), _step("b")]})
        callbacks = {"on_complete": _step("end")}
        self._flow("batch", {"type": "batch", "jobs": [_step("c"), _step("d")], "callbacks": callbacks})
        dag = [_step("root", id="root"), _step("leaf", id="leaf", depends_on=["root"])]
        self._flow("dag", {"steps": dag})
        self._flow("ended", {"type": "chain", "steps": [_step("alone")]})
        held: dict[str, Any] = {}
        while len(held) < 7:  # second, a, b, c, d, root, alone
            held |= {job["type"]: job for job in self._fetch("flow")}
        for name in ("flow.a", "flow.c", "flow.alone"):
            self._api.call("POST", "/workers/ack", {**_held(held[name]), "result": name})

        def moved_on() -> bool:
            begun = [self._progress(name) for name in ("group", "batch")]
            return self._progress("ended")["state"] == "completed" and all(one["progress"] > 0 for one in begun)

        until(moved_on)

    def _crons(self) -> None:
        often = {"name": "often", "cron": "* * * * *", **_JOB, "options": {"queue": "cron"}, "overlap_policy": "allow"}
        self._api.call("POST", "/cron", often, 201)
        yearly = {**often, "name": "yearly", "cron": "0 9 1 1 *", "timezone": "Europe/Zurich"}
        self._api.call("POST", "/cron", yearly, 201)
        self._api.call("POST", "/cron/yearly/trigger", status=201)
        queued = {**often, "name": "queued", "cron": "0 9 1 1 *", "overlap_policy": "enqueue"}
        self._api.call("POST", "/cron", queued, 201)
        self._api.call("POST", "/cron/queued/trigger", status=201)
        self._api.call("POST", "/cron/queued/trigger", status=202)  # it waits for the one before
        self._api.call("POST", "/cron", {**often, "name": "stopped"}, 201)
        self._api.call("POST", "/cron/stopped/pause")

    def _push(self, name: str, *, queue: str = "plain", args: Sequence[object] = _ARGS, **options: object) -> None:
        body = {**_JOB, "args": args, "meta": {"name": name}, "options": {"queue": queue, **options}}
        self.ids[name] = self._api.call("POST", "/jobs", body, 201)["job"]["id"]

    def _fetch(self, queue: str) -> list[Any]:
        body = {"queues": [queue], "worker_id": "worker", "count": 10, "wait_ms": 1_000}
        body["visibility_timeout_ms"] = LEASE_MS
        fetched: list[Any] = self._api.call("POST", "/workers/fetch", body)["jobs"]
        return fetched

    def _take(self, name: str, queue: str = "plain") -> dict[str, Any]:
        [job] = self._fetch(queue)
        assert job["id"] == self.ids[name]
        return _held(job)

    def _fail(self, name: str) -> None:
        error = {"message": f"no {name}", "type": "E", "details": {"a": 1}}
        self._api.call("POST", "/workers/nack", {**self._take(name), "error": error})

    def _finish_next(self, queue: str) -> None:
        [job] = self._fetch(queue)
        self._api.call("POST", "/workers/ack", {**_held(job), "result": {"from": job["type"]}})

    def _flow(self, name: str, body: dict[str, Any]) -> None:
        made = self._api.call("POST", "/workflows", {"name": name, **body}, 201)
        self.ids[f"workflow.{name}"] = made["workflow"]["id"]

    def _progress(self, name: str) -> Any:
        return self._api.call("GET", f"/workflows/{self.ids[f'workflow.{name}']}/progress")["workflow"]


def _step(name: str, *, delay_until: str | None = None, **more: object) -> dict[str, Any]:
    options: dict[str, Any] = {"queue": "flow", "retry": {"max_attempts": 3, "initial_interval": "PT1S"}}
    if delay_until is not None:
        options["delay_until"] = delay_until
    return {"type": f"flow.{name}", "args": [], "options": options, **more}


def _held(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return who holds a job, as acks and nacks have it."""
    return {"job_id": job["id"], "worker_id": "worker", "attempt": job["attempt"]}


def _holder(held: Mapping[str, Any]) -> dict[str, Any]:
    return {name: held[name] for name in ("worker_id", "attempt")}


if __name__ == "__main__":
    make(*sys.argv[1:])
