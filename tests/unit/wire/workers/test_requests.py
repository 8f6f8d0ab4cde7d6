from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.handlers import Handler
from ojs_engine.domain.job import NOTHING
from ojs_engine.domain.transitions import Failure, JobHolder
from ojs_engine.domain.worker import CompleteList, Mark, Worker
from ojs_engine.wire.members import encode
from ojs_engine.wire.workers import requests
from ojs_engine.wire.workers.requests import Ack, Deregistration, Fetch, Heartbeat, Nack
from support.tables import each

ID = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
OTHER = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e10"


def call(name: str, body: Any, *more: str) -> Any:
    raw = body if isinstance(body, bytes) else encode(body)
    return getattr(requests, f"parse_{name}")(raw, DEFAULT_LIMITS, *more)


def refused(name: str, body: Any, *more: str) -> OjsError:
    with pytest.raises(OjsError) as caught:
        call(name, body, *more)
    return caught.value


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"queues": ["a"]}, Fetch(("a",), 1, None, None, 200)),
        ({"queues": ["a", "b", "a"], "count": 10, "worker_id": "w"}, Fetch(("a", "b"), 10, "w", None, 200)),
        ({"queues": ["a"], "visibility_timeout_ms": 30_000, "wait_ms": 0}, Fetch(("a",), 1, None, 30_000, 0)),
        ({"queues": ["a"], "count": 2.0, "wait_ms": 30_000}, Fetch(("a",), 2, None, None, 30_000)),
        ({"queues": ["a"], "count": None, "worker_id": None, "wait_ms": None, "other": 1}, Fetch(("a",), 1, None, None, 200)),
    ],
)
def test_fetch(body: dict[str, Any], expected: Fetch) -> None:
    assert call("fetch", body) == expected


def test_a_fetch_with_acks_reads_each_by_itself_and_does_not_wait() -> None:
    acks = [{"job_id": ID, "attempt": 2, "result": [1]}, {"job_id": OTHER, "worker_id": "x"}, 7, {"result": 1}]
    fetch = call("fetch", {"queues": ["a"], "worker_id": "w", "wait_ms": 5_000, "acks": acks})
    assert fetch.wait_ms == 0
    assert fetch.acks[:2] == (Ack(ID, Raw(b"[1]"), JobHolder("w", 2)), Ack(OTHER, NOTHING, JobHolder("x", None)))
    assert [(ack.code, ack.details["index"]) for ack in fetch.acks[2:]] == [("invalid_payload", 2), ("invalid_request", 3)]


@pytest.mark.parametrize("acks", [None, []])
def test_a_fetch_without_acks_waits_as_it_says(acks: Any) -> None:
    assert call("fetch", {"queues": ["a"], "wait_ms": 5_000, "acks": acks}) == Fetch(("a",), 1, None, None, 5_000)


def test_how_many_acks_a_fetch_may_have() -> None:
    assert len(call("fetch", {"queues": ["a"], "acks": [{"job_id": ID}] * 1_000}).acks) == 1_000
    assert refused("fetch", {"queues": ["a"], "acks": [{"job_id": ID}] * 1_001}).code == "batch_size_exceeded"


@each(
    ("body", "field"),
    [
        ({"queues": ["a"], "wait_ms": -1, "acks": [{"job_id": ID}]}, "wait_ms"),
        ({"queues": ["a"], "visibility_timeout_ms": 0}, "visibility_timeout_ms"),
        ({"queues": ["a"], "worker_id": ""}, "worker_id"),
        ({"queues": ["a"], "worker_id": "a\nb"}, "worker_id"),
        ({"queues": ["a"], "handlers": [{"type": "b"}, {"versions": "*"}]}, "handlers[1].type"),
        ({"queues": ["a"], "handlers": [{"type": "b"}, {"type": "B"}]}, "handlers[1].type"),
        ({"queues": ["a"], "handlers": [{"type": "b", "versions": "new"}]}, "handlers[0].versions"),
        ({"queues": ["a"], "handlers": [{"type": "b", "versions": 2}]}, "handlers[0].versions"),
    ],
)
def test_a_bad_fetch_names_the_field(body: Any, field: str) -> None:
    error = refused("fetch", body)
    assert (error.code, error.details["field"]) == ("invalid_request", field)
    assert error.message.startswith(field)


@pytest.mark.parametrize(
    ("body", "result", "holder"),
    [
        ({"job_id": ID}, NOTHING, JobHolder()),
        ({"job_id": ID.upper(), "worker_id": "w", "attempt": 2}, NOTHING, JobHolder("w", 2)),
        (b'{"job_id":"%s","result":null}' % ID.encode(), Raw(b"null"), JobHolder()),
        (b'{"job_id":"%s","result":[1.0, {"a": "\xc3\xa9"}]}' % ID.encode(), Raw(b'[1.0, {"a": "\xc3\xa9"}]'), JobHolder()),
    ],
)
def test_ack(body: Any, result: Raw, holder: JobHolder) -> None:
    assert call("ack", body) == Ack(ID, result, holder)


@pytest.mark.parametrize("number", ["1" + 5_000 * "0", "1e400", "-1e400"])
def test_a_number_that_nothing_can_hold_is_left_out_of_a_report_or_refused_naming_its_member(number: str) -> None:
    report = f'{{"job_id": "{ID}", "error": {{"message": "m", "action": {number}}}}}'.encode()
    assert [warning.field for warning in call("nack", report).warnings] == ["error.action"]
    error = refused("nack", f'{{"job_id": "{ID}", "error": "m", "attempt": {number}}}'.encode())
    assert (error.code, error.details["field"]) == ("invalid_request", "attempt")


def test_the_id_in_the_path_may_be_the_only_one_but_not_another_one() -> None:
    assert call("ack", b"", ID.upper()).job_id == ID
    assert call("ack", {"job_id": ID}, ID).job_id == ID
    assert refused("ack", {"job_id": OTHER}, ID).details["field"] == "job_id"


def test_an_id_that_no_job_can_have_is_not_found() -> None:
    for name in ("ack", "nack"):
        body = {"job_id": "nope.>", "error": {"message": "m"}}
        assert (refused(name, body).code, refused(name, body).details["resource_id"]) == ("not_found", "nope.>")


@each(
    ("body", "failure"),
    [
        ({"error": {"message": "m"}}, Failure(message="m")),
        ({"error": "m"}, Failure(message="m")),
        ({"requeue": True}, Failure(message="requeued by its worker", requeue=True)),
        (
            {"error": {"code": "c", "type": "t", "message": "m", "retryable": False, "details": {"a": 1}, "backtrace": ["x"]}},
            Failure(code="c", type="t", message="m", retryable=False, details=Raw(b'{"a":1}'), backtrace=Raw(b'["x"]')),
        ),
        ({"error": {"message": "m", "retryable": None, "details": None, "code": ""}}, Failure(message="m")),
        ({"error": {"message": "m", "code": "DISCARD"}}, Failure(message="m", code="DISCARD")),
        ({"error": {"message": "m", "action": "DEAD_LETTER"}}, Failure(message="m", action="DEAD_LETTER")),
        ({"error": {"message": "m", "code": "c" * 999}}, Failure(message="m", code="c" * 255)),
    ],
)
def test_nack(body: dict[str, Any], failure: Failure) -> None:
    assert call("nack", body | {"job_id": ID, "worker_id": "w"}) == Nack(ID, failure, JobHolder("w"))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"error": {"message": "m"}}, "job_id"),
        ({"job_id": ID}, "error"),
        ({"job_id": ID, "error": {"message": "m"}, "attempt": "first"}, "attempt"),
        ({"job_id": ID, "error": {"message": 5}, "worker_id": {}}, "worker_id"),
    ],
)
def test_a_bad_nack_names_the_field(body: dict[str, Any], field: str) -> None:
    error = refused("nack", body)
    assert (error.code, error.details["field"]) == ("invalid_request", field)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ({"message": "m", "code": 500}, Failure(message="m", code="500")),
        ({"message": "m", "code": 500.0, "type": 7}, Failure(message="m", code="500", type="7")),
        ({"message": 5}, Failure(message="5")),
        ({"message": "m", "retryable": "false"}, Failure(message="m", retryable=False)),
        ({"message": "m", "retryable": 1}, Failure(message="m")),
    ],
)
def test_a_failure_is_read_as_it_is_plainly_meant(error: dict[str, Any], failure: Failure) -> None:
    assert call("nack", {"job_id": ID, "attempt": "2", "error": error}) == Nack(ID, failure, JobHolder(None, 2))


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"error": {"message": "m", "retryable": "yes"}}, "error.retryable"),
        ({"error": {"message": "m", "code": {"a": 1}}}, "error.code"),
        ({"error": {"message": "m", "action": "EXPLODE"}}, "error.action"),
        ({"error": {"message": "m", "action": ["RETRY"]}}, "error.action"),
        ({"error": {"message": "m", "rate_limit_until": "soon"}}, "error.rate_limit_until"),
        ({"error": {"message": "m", "rate_limit_until": []}}, "error.rate_limit_until"),
        ({"error": {"message": "m"}, "requeue": "perhaps"}, "requeue"),
    ],
)
def test_a_failure_is_never_refused_for_a_side_member(body: dict[str, Any], field: str) -> None:
    nack = call("nack", body | {"job_id": ID})
    assert nack.failure == Failure(message="m")
    assert [warning.field for warning in nack.warnings] == [field]
    assert field in nack.warnings[0].message


@pytest.mark.parametrize("error", [{}, {"message": None}, {"message": []}, []])
def test_a_failure_without_a_message_says_so(error: Any) -> None:
    nack = call("nack", {"job_id": ID, "error": error})
    assert nack.failure == Failure(message="the worker gave no message")
    assert nack.warnings


@pytest.mark.parametrize(
    ("body", "ids", "active"),
    [
        ({"active_jobs": [ID, OTHER]}, (ID, OTHER), 2),
        ({"active_jobs": 2, "active_job_ids": [ID.upper(), OTHER]}, (ID, OTHER), 2),
        ({"active_jobs": [ID], "active_job_ids": [ID, OTHER]}, (ID, OTHER), 2),
        ({"active_jobs": 0}, (), 0),
        ({}, (), 0),
    ],
)
def test_heartbeats_name_their_jobs_in_every_dialect(body: dict[str, Any], ids: tuple[str, ...], active: int) -> None:
    beat = call("heartbeat", body | {"worker_id": "w", "visibility_timeout_ms": 5_000})
    assert beat == Heartbeat(Worker(id="w", active_jobs=active), ids, 5_000)


def test_a_heartbeat_carries_what_the_worker_says_of_itself() -> None:
    said: dict[str, Any] = {"hostname": "h", "pid": 5, "concurrency": 10, "started_at": "2026-01-01T00:00:00Z"}
    sent = said | {"worker_id": "w", "state": "quiet", "queues": ["a"], "labels": ["x"]}
    expected = Worker(id="w", state="quiet", queues=("a",), labels=Raw(b'["x"]'), **said)
    assert call("heartbeat", sent).worker == expected
    assert call("register", sent) == expected


MARKS = {"since": "5-1000", "until": "7-2000"}


def test_a_heartbeat_may_say_that_it_names_all_jobs() -> None:
    sent = {"worker_id": "w", "active_jobs": 2, "active_job_ids": [ID, OTHER], "complete": MARKS}
    expected = CompleteList(Mark(5, 1_000), Mark(7, 2_000), frozenset({ID, OTHER}))
    assert call("heartbeat", sent).worker.complete == expected
    nothing = {"worker_id": "w", "active_jobs": 0, "complete": MARKS}
    assert call("heartbeat", nothing).worker.complete == replace(expected, jobs=frozenset())
    assert call("heartbeat", sent | {"complete": None}).worker.complete is None


@each(
    ("members", "field"),
    [
        ({"active_jobs": 2, "active_job_ids": [ID]}, "complete"),
        ({"active_jobs": 2, "active_job_ids": [ID, 5]}, "complete"),
        ({"active_jobs": 1, "active_job_ids": ["no id"]}, "complete"),
        ({"active_jobs": [ID]}, "complete"),
        ({}, "complete"),
        ({"active_jobs": 0, "complete": {"since": "5-1000"}}, "complete.until"),
        ({"active_jobs": 0, "complete": {}}, "complete.since"),
        ({"active_jobs": 0, "complete": MARKS | {"since": "2026-11-25T00:00:00Z"}}, "complete.since"),
        ({"active_jobs": 0, "complete": MARKS | {"until": "9" * 40 + "-1"}}, "complete.until"),
        ({"active_jobs": 0, "complete": True}, "complete"),
    ],
)
def test_a_list_of_jobs_that_may_lack_one_is_not_complete(members: dict[str, Any], field: str) -> None:
    beat = call("heartbeat", {"worker_id": "w", "complete": MARKS} | members)
    assert beat.worker.complete is None
    assert [warning.field for warning in beat.warnings] == [field]


def test_a_worker_that_leaves_may_say_which_process_it_was() -> None:
    sent = {"worker_id": "w", "reason": "error", "pid": 5, "started_at": "2026-01-01T00:00:00Z"}
    assert call("deregister", sent) == Deregistration("w", "error", 5, "2026-01-01T00:00:00Z")
    assert call("deregister", {"worker_id": "w"}) == Deregistration("w", "shutdown")


def test_a_state_that_no_worker_has_counts_as_running() -> None:
    assert call("register", {"worker_id": "w", "state": "stopped"}).state == "running"


def test_a_heartbeat_is_read_as_it_is_plainly_meant() -> None:
    sent = {"worker_id": 7, "pid": "12", "active_jobs": 1.0, "started_at": 1_700_000_000, "hostname": 5}
    beat = call("heartbeat", sent)
    expected = Worker(id="7", pid=12, active_jobs=1, started_at="2023-11-14T22:13:20.000Z", hostname="5")
    assert beat == Heartbeat(expected, (), None)


@each(
    ("name", "value"),
    [
        ("labels", {"x": "y" * 20_000}),
        ("pid", "main"),
        ("started_at", 1e300),
        ("visibility_timeout_ms", 0),
    ],
)
def test_a_heartbeat_is_never_refused_for_a_side_member(name: str, value: Any) -> None:
    beat = call("heartbeat", {"worker_id": "w", "active_job_ids": [ID], name: value})
    assert (beat.worker, beat.job_ids, beat.lease_ms) == (Worker(id="w", active_jobs=1), (ID,), None)
    assert [warning.field for warning in beat.warnings] == [name]


def test_a_worker_says_what_it_can_run_and_may_take_it_back() -> None:
    sent = [{"type": "invoice.generate", "versions": ">=1.0 <3.0"}, {"type": "email.send"}, {"type": "a", "versions": None}]
    declared = (Handler("invoice.generate", ">=1.0 <3.0"), Handler("email.send", "*"), Handler("a", "*"))
    assert call("heartbeat", {"worker_id": "w", "handlers": sent}).worker.handlers == declared
    assert call("register", {"worker_id": "w", "handlers": sent}).handlers == declared
    assert call("fetch", {"queues": ["q"], "handlers": sent}).handled.declared == declared
    assert call("heartbeat", {"worker_id": "w", "handlers": []}).worker.handlers == ()
    assert call("heartbeat", {"worker_id": "w"}).worker.handlers is None
    assert call("fetch", {"queues": ["q"], "handlers": []}).handled is None


def test_what_a_heartbeat_says_wrongly_of_a_handler_leaves_what_was_said_before() -> None:
    for wrong, field in (({"type": "b", "versions": "latest"}, "versions"), ({"versions": "1.0"}, "type")):
        beat = call("heartbeat", {"worker_id": "w", "handlers": [{"type": "a"}, wrong]})
        assert beat.worker.handlers is None
        assert [warning.field for warning in beat.warnings] == [f"handlers[1].{field}"]


def test_a_fetch_of_no_job_is_one_of_one() -> None:
    assert call("fetch", {"queues": ["a"], "count": 0}).count == 1


def test_cancellation_may_give_a_reason() -> None:
    assert call("cancel", b"") is None
    assert call("cancel", {"reason": "by hand"}) == "by hand"


def test_ids_of_results_are_bounded_and_counted_once() -> None:
    assert call("result_ids", {"ids": [ID, OTHER, ID]}) == (ID, OTHER)


@each("name", ["fetch", "ack", "nack", "heartbeat", "register", "cancel", "result_ids"])
@each("body", [b"{", b"[]", b"null", b'{"worker_id":"\xff"}', b"  ", b'{"x":' + b"[" * 5_000 + b"]" * 5_000 + b"}"])
def test_a_body_that_is_no_sound_json_object_is_an_invalid_payload(name: str, body: bytes) -> None:
    assert refused(name, body).code == "invalid_payload"
