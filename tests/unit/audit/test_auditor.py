"""What becomes an entry of the audit, and that nothing of a request's body or query gets into one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, cast

import pytest
from msgspec import UNSET

from ojs_engine.access.admission import Admission, unauthenticated
from ojs_engine.access.permissions import Need
from ojs_engine.access.principal import EVERYBODY, Principal
from ojs_engine.api.call import Call, Response
from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.store import Store
from ojs_features.audit.auditor import Auditor
from ojs_features.audit.entry import Entry, encode
from ojs_features.audit.gauges import Gauges
from ojs_features.audit.repeats import Owner
from ojs_features.audit.trail import Trail
from ojs_gateway.http.endpoint import Endpoint, StreamedResponse
from support.call import Request
from support.fake_store import FakeStore

ADA = Principal(id="k1", name="ada", role="admin", permissions=EVERYBODY.permissions)
SECRET = "0" * 64


class Kept(Trail):
    """A trail in memory, by the way that each entry came."""

    def __init__(self) -> None:
        super().__init__(Connection("none"), StoreConfig())
        self.noted: list[Entry] = []
        self.waited_for: list[Entry] = []
        self.repeated: list[tuple[Hashable, Entry]] = []
        self.places = 0
        self.full = False

    def note(self, entry: Entry) -> asyncio.Event | None:
        self.noted.append(entry)
        return None

    async def keep(self, entry: Entry) -> None:
        self.waited_for.append(entry)
        self.places -= 1

    def note_repeated(self, owner: Owner, act: Hashable, entry: Entry) -> None:
        self.repeated.append(((owner, act), entry))

    async def take_place(self) -> None:
        if self.full:
            raise unavailable("no place")
        self.places += 1

    def leave_place(self) -> None:
        self.places -= 1

    def put(self, entry: Entry) -> asyncio.Event:
        self.noted.append(entry)
        self.places -= 1
        return asyncio.Event()


class Asked(Request):
    """A request of somebody, with headers."""

    def __init__(self, principal: Principal = ADA, *parameters: str, **headers: str) -> None:
        super().__init__({"secret": "body"}, parameters)
        self._headers = {name.lower(): value for name, value in headers.items()}
        self.request_id = "req_1"
        self.enter(Admission(principal))

    def header(self, name: str) -> str | None:
        return self._headers.get(name.lower().replace("-", "_"))


def audits(trail: Trail, now: Callable[[], int]) -> Auditor:
    return Auditor(trail, Gauges(cast("Store", FakeStore()), 60.0), now)


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def auditor(kept: Kept) -> Auditor:
    return audits(kept, lambda: 1_767_225_600_000)


Answer = Callable[[Call], Awaitable[Response | StreamedResponse]]


async def done(_call: Call) -> Response:
    return Response(200, b"{}")


def endpoint(name: str, need: Need, answer: Answer = done, placed: tuple[str, ...] = ()) -> Endpoint:
    return Endpoint(name, placed, need, answer)


def watch(auditor: Auditor, asked: Endpoint, *, reads: bool) -> Endpoint:
    return asked._replace(handler=auditor.watching(asked, asked.handler, reads=reads))


@pytest.mark.parametrize("need", ["enqueue", "work", "read", "payloads", "nothing", "key"])
def test_a_push_work_and_reading_are_left_as_they_are(auditor: Auditor, need: Need) -> None:
    plain = endpoint("createJob", need)
    assert auditor.watching(plain, plain.handler, reads=False) is plain.handler


@pytest.mark.parametrize("need", ["control", "configure", "destroy", "admin"])
async def test_what_changes_the_system_is_told_with_who_what_and_whence(auditor: Auditor, kept: Kept, need: Need) -> None:
    watched = watch(auditor, endpoint("adminPauseQueue", need, placed=("queue",)), reads=False)
    await watched.handler(Asked(ADA, "mail", user_agent="cli/1", authorization=f"Bearer ojs_sk_0123456789ab_{SECRET}"))
    [entry] = kept.waited_for
    assert (entry.timestamp, entry.event_type, entry.outcome) == ("2026-01-01T00:00:00.000Z", "admin.pause_queue", "success")
    assert (entry.principal, entry.source_ip, entry.correlation_id) == ("ada", "127.0.0.1", "req_1")
    detail = entry.detail
    assert (detail.operation, detail.permission, detail.target) == ("adminPauseQueue", need, {"queue": "mail"})
    assert (detail.principal_id, detail.mechanism, detail.status, detail.user_agent) == ("k1", "api_key", 200, "cli/1")
    assert SECRET.encode() not in encode(entry)
    assert b"body" not in encode(entry)


async def test_nobody_waits_for_the_audit_where_nobody_needs_a_key(auditor: Auditor, kept: Kept) -> None:
    watched = watch(auditor, endpoint("pauseQueue", "control"), reads=False)
    await watched.handler(Asked(EVERYBODY))
    assert ([entry.principal for entry in kept.noted], kept.waited_for) == (["everybody"], [])


async def test_who_reads_over_and_over_is_told_of_as_one(auditor: Auditor, kept: Kept) -> None:
    watched = watch(auditor, endpoint("listKeys", "admin"), reads=True)
    await watched.handler(Asked())
    [(_, entry)] = kept.repeated
    assert (entry.event_type, kept.waited_for) == ("admin.list_keys", [])


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [(unavailable("hunter2"), 503, "backend_unavailable"), (RuntimeError("args: hunter2"), 500, "backend_error")],
)
async def test_what_fails_is_told_without_its_words(
    auditor: Auditor, kept: Kept, error: Exception, status: int, reason: str
) -> None:
    async def fail(_call: Call) -> Response:
        raise error

    watched = watch(auditor, endpoint("deleteQueue", "destroy", fail), reads=False)
    with pytest.raises(type(error)):
        await watched.handler(Asked())
    [entry] = kept.waited_for
    assert (entry.outcome, entry.detail.status, entry.detail.reason) == ("failure", status, reason)
    assert b"hunter2" not in encode(entry)
    assert kept.places == 0


@pytest.mark.parametrize(("code", "status"), [("not_found", 404), ("conflict", 409), ("invalid_request", 400)])
async def test_what_changed_nothing_is_counted_with_others_of_its_operation(
    auditor: Auditor, kept: Kept, code: str, status: int
) -> None:
    async def fail(_call: Call) -> Response:
        raise OjsError(code, "no")

    watched = watch(auditor, endpoint("cancelJob", "control", fail, placed=("job_id",)), reads=False)
    for job in ("a", "b"):
        with pytest.raises(OjsError):
            await watched.handler(Asked(ADA, job))
    assert (kept.waited_for, kept.noted, kept.places) == ([], [], 0)
    [first, second] = kept.repeated
    assert first[0] == second[0]
    assert (first[1].outcome, first[1].detail.status, first[1].detail.target) == ("failure", status, {"job_id": "a"})


async def test_an_act_that_the_audit_has_no_place_for_is_not_done(auditor: Auditor, kept: Kept) -> None:
    acted: list[Call] = []

    async def act(call: Call) -> Response:
        acted.append(call)
        return Response(200, b"{}")

    kept.full = True
    watched = watch(auditor, endpoint("purgeQueue", "destroy", act), reads=False)
    with pytest.raises(OjsError) as refused:
        await watched.handler(Asked())
    assert (refused.value.info.status, acted) == (503, [])
    await watched.handler(Asked(EVERYBODY))
    assert len(acted) == 1
    [(_, entry)] = kept.repeated
    assert (entry.principal, entry.outcome, entry.detail.status) == ("ada", "failure", 503)


async def test_the_same_act_over_and_over_is_counted_by_its_target(auditor: Auditor, kept: Kept) -> None:
    watched = watch(auditor, endpoint("resumeQueue", "control", placed=("queue",)), reads=False)
    for _ in range(40):
        await watched.handler(Asked(ADA, "mail"))
    await watched.handler(Asked(ADA, "sms"))
    assert [entry.detail.target["queue"] for entry in kept.waited_for] == ["mail"] * 30 + ["sms"]
    bulk = watch(auditor, endpoint("bulkCancelJobs", "control"), reads=False)
    for _ in range(40):
        await bulk.handler(Asked(ADA))
    assert len(kept.waited_for) == 31 + 40
    assert kept.places == 0


async def test_a_request_that_is_cut_off_is_told_of_too(auditor: Auditor, kept: Kept) -> None:
    async def cut_off(_call: Call) -> Response:
        raise asyncio.CancelledError

    watched = watch(auditor, endpoint("purgeQueue", "destroy", cut_off), reads=False)
    with pytest.raises(asyncio.CancelledError):
        await watched.handler(Asked())
    assert [(entry.outcome, entry.detail.reason) for entry in kept.noted] == [("failure", "cancelled")]
    assert kept.places == 0


async def test_a_refusal_within_a_handler_is_left_to_the_door(auditor: Auditor, kept: Kept) -> None:
    async def refuse(_call: Call) -> Response:
        raise OjsError("permission_denied", "no")

    watched = watch(auditor, endpoint("purgeQueue", "destroy", refuse), reads=False)
    with pytest.raises(OjsError):
        await watched.handler(Asked())
    assert (kept.noted, kept.waited_for, kept.repeated, kept.places) == ([], [], [], 0)


@pytest.mark.parametrize(
    ("token", "prefix"),
    [(f"ojs_sk_0123456789ab_{SECRET}", "ojs_sk_0123456789ab_…"), ("hunter2", UNSET), ("", UNSET)],
)
def test_a_key_that_is_not_taken_is_told_by_its_id_alone(auditor: Auditor, kept: Kept, token: str, prefix: object) -> None:
    asked = Asked(EVERYBODY, authorization=f"Bearer {token}")
    auditor.refused(asked, endpoint("createJob", "enqueue"), unauthenticated("who?"))
    [(_, entry)] = kept.repeated
    assert (entry.event_type, entry.principal, entry.outcome) == ("auth.login_failure", "unknown", "failure")
    assert (entry.detail.key_prefix, entry.detail.principal_id, entry.detail.mechanism) == (prefix, UNSET, "api_key")
    assert SECRET.encode() not in encode(entry)
    assert b"hunter2" not in encode(entry)


def test_who_may_not_is_told_by_name(auditor: Auditor, kept: Kept) -> None:
    denied = OjsError("permission_denied", "no")
    auditor.refused(Asked(ADA, "mail"), endpoint("purgeQueue", "destroy", placed=("queue",)), denied)
    [(_, entry)] = kept.repeated
    assert (entry.event_type, entry.principal, entry.detail.target) == ("auth.permission_denied", "ada", {"queue": "mail"})


@pytest.mark.parametrize("code", ["not_found", "conflict", "backend_unavailable"])
def test_other_errors_are_no_refusals(auditor: Auditor, kept: Kept, code: str) -> None:
    auditor.refused(Asked(), endpoint("createJob", "enqueue"), OjsError(code, "x"))
    assert kept.repeated == []


@pytest.mark.parametrize(
    ("operation", "event_type"),
    [
        ("createSession", "auth.login_success"),
        ("createKey", "auth.key_created"),
        ("rotateKey", "auth.key_rotated"),
        ("revokeKey", "auth.key_revoked"),
        ("adminBulkCancel", "admin.bulk_cancel"),
        ("setQueueConfig", "admin.set_queue_config"),
    ],
)
async def test_operations_have_the_specifications_kind_of_name(
    auditor: Auditor, kept: Kept, operation: str, event_type: str
) -> None:
    await watch(auditor, endpoint(operation, "admin"), reads=False).handler(Asked())
    assert [entry.event_type for entry in kept.waited_for] == [event_type]


async def test_what_a_client_chooses_is_cut(auditor: Auditor, kept: Kept) -> None:
    long: Any = "x" * 10_000
    watched = watch(auditor, endpoint("pauseQueue", "control", placed=("queue",)), reads=False)
    await watched.handler(Asked(ADA, long, user_agent=long))
    assert len(encode(kept.waited_for[0])) < 1_000


def test_a_failed_handshake_is_told_by_address_and_reason_but_not_a_look_at_the_port() -> None:
    trail = Kept()
    auditor = audits(trail, lambda: 0)
    auditor.no_connection("203.0.113.9", "closed")
    assert not trail.repeated
    auditor.no_connection("203.0.113.9", "client_certificate")
    [(counted_by, entry)] = trail.repeated
    assert counted_by == (Owner("203.0.113.9", stranger=True), ("auth.tls_failure", "client_certificate"))
    assert (entry.event_type, entry.principal, entry.source_ip) == ("auth.tls_failure", "unknown", "203.0.113.9")
    assert (entry.outcome, entry.detail.reason) == ("failure", "client_certificate")
