"""Bad input over real HTTP: each refusal has its code and names its field, and nothing a client sends makes a 5xx."""

from __future__ import annotations

import http.client
import json
import socket
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.examples import amount, examples
from support.system import System

OJS_TYPE = "application/openjobspec+json"
GOOD: dict[str, Any] = {"type": "good.job", "args": [1]}
UNKNOWN_ID = "01900000-0000-7000-8000-000000000000"
EXAMPLES = examples(2_000 if amount() == "all" else 500, costly=True)
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
"""All examples ask one system, and how fast they are drawn is the machine's affair."""
"""Drawing a body takes longer than sending it. `test_drawn_requests.py` and `test_numbers.py` send others to every path."""


class Got(NamedTuple):
    status: int
    headers: dict[str, str]
    body: Any


def ask(system: System, method: str, path: str, body: bytes | None = None, **headers: str) -> Got:
    """One raw request; header names are given with underscores."""
    address = urlsplit(system.url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
    named = {"Content-Type": OJS_TYPE} | {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, named)
        response = connection.getresponse()
        raw = response.read()
        return Got(response.status, dict(response.getheaders()), json.loads(raw) if raw else None)
    finally:
        connection.close()


def push(system: System, body: Any) -> Got:
    return ask(system, "POST", "/ojs/v1/jobs", json.dumps(body).encode())


def assert_refused(got: Got, status: int, code: str) -> dict[str, Any]:
    """The error envelope, whole."""
    assert (got.status, got.body["error"]["code"]) == (status, code), got
    error: dict[str, Any] = got.body["error"]
    assert got.headers["Content-Type"].partition(";")[0] == OJS_TYPE
    assert error["request_id"] == got.headers["X-Request-Id"]
    assert error["message"]
    assert error["hint"]
    assert error["docs_url"]
    assert isinstance(error["retryable"], bool)
    return error


def option(name: str, value: Any) -> dict[str, Any]:
    return GOOD | {"options": {name: value}}


def test_a_bad_member_of_a_push_is_named(system: System) -> None:
    for body, field in ((GOOD | {"type": 5}, "type"), (option("priority", 101), "options.priority")):
        error = assert_refused(push(system, body), 400, "invalid_request")
        assert error["message"].startswith(field)
        assert error["details"]["field"] == field


def test_a_body_that_is_no_json_object_is_refused(system: System) -> None:
    for path in ("jobs", "workers/fetch", "workers/ack", "workers/nack"):
        assert_refused(ask(system, "POST", f"/ojs/v1/{path}", b'{"args": ["\xff"]}'), 400, "invalid_payload")


def test_a_cloud_event_is_refused_as_one(system: System) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/a", "type": "a.b", "data": {}}
    for content_type in ("application/cloudevents+json", "application/cloudevents-batch+json; charset=utf-8"):
        got = ask(system, "POST", "/ojs/v1/jobs", json.dumps(event).encode(), Content_Type=content_type)
        assert (got.status, got.body["error"]["code"]) == (422, "unsupported")
        assert "a CloudEvent" in got.body["error"]["message"]
        assert "send the job that it asks for, as application/json" in got.body["error"]["message"]


def test_an_empty_body_is_no_job_and_to_worker_calls_one_without_members(system: System) -> None:
    assert_refused(ask(system, "POST", "/ojs/v1/jobs", b""), 400, "invalid_payload")
    for path, member in (("fetch", "queues"), ("ack", "job_id"), ("nack", "error"), ("heartbeat", "worker_id")):
        error = assert_refused(ask(system, "POST", f"/ojs/v1/workers/{path}", b""), 400, "invalid_request")
        assert error["details"]["field"] == member


def test_sizes_beyond_the_limits_are_413_and_say_both_sizes(system: System) -> None:
    whole = assert_refused(push(system, GOOD | {"args": ["x" * 3_000_000]}), 413, "envelope_too_large")
    assert whole["details"]["actual_bytes"] > whole["details"]["max_bytes"]
    meta = assert_refused(push(system, GOOD | {"meta": {"m": "x" * 70_000}}), 413, "metadata_too_large")
    assert meta["details"]["max_bytes"] == 65_536


def test_an_envelope_of_one_mebibyte_is_taken(system: System) -> None:
    got = push(system, GOOD | {"args": ["x" * (1_048_576 - 100)]})
    assert got.status == 201


def test_unknown_paths_methods_and_ids(system: System) -> None:
    assert_refused(ask(system, "GET", "/ojs/v1/nothing"), 404, "not_found")
    assert_refused(ask(system, "DELETE", "/ojs/v1/workers/fetch"), 405, "method_not_allowed")
    error = assert_refused(ask(system, "DELETE", f"/ojs/v1/jobs/{UNKNOWN_ID}"), 404, "not_found")
    assert error["details"] == {"resource_type": "job", "resource_id": UNKNOWN_ID}


WORKFLOW = {"type": "a.b", "args": []}
EXACT = [
    ("POST", "/jobs", GOOD | {"type": "a b"}, "invalid_request", "INVALID_JOB_TYPE", "OJS-1001"),
    ("POST", "/jobs", option("queue", "A"), "invalid_request", "INVALID_QUEUE", "OJS-1002"),
    ("POST", "/jobs", GOOD | {"args": 1}, "invalid_request", "INVALID_ARGS", "OJS-1003"),
    ("POST", "/jobs", GOOD | {"meta": 1}, "invalid_request", "INVALID_METADATA", "OJS-1004"),
    ("POST", "/jobs", option("metadata", []), "invalid_request", "INVALID_METADATA", "OJS-1004"),
    ("POST", "/jobs", option("priority", "x"), "invalid_request", "INVALID_PAYLOAD", "OJS-1000"),
    ("POST", "/jobs", option("retry", {"max_attempts": -1}), "invalid_request", "INVALID_RETRY_POLICY", "OJS-1006"),
    ("POST", "/jobs", option("unique", {"keys": ["no"]}), "invalid_request", "UNIQUE_KEY_INVALID", "OJS-7002"),
    ("POST", "/jobs", option("unique", {"args_keys": ["a"]}), "invalid_request", "UNIQUE_KEY_INVALID", "OJS-7002"),
    ("POST", "/jobs", option("unique", 1), "invalid_request", "UNIQUE_KEY_INVALID", "OJS-7002"),
    ("POST", "/cron", GOOD | {"name": "n", "cron": "x"}, "invalid_request", "INVALID_CRON_EXPRESSION", "OJS-1007"),
    ("POST", "/cron", GOOD | {"name": "n", "cron": 5}, "invalid_request", "INVALID_CRON_EXPRESSION", "OJS-1007"),
    ("POST", "/cron", GOOD | {"name": "n"}, "invalid_request", "INVALID_PAYLOAD", "OJS-1000"),
    (
        "POST",
        "/workflows",
        {"steps": [WORKFLOW | {"id": "a", "depends_on": ["b"]}, WORKFLOW | {"id": "b", "depends_on": ["a"]}]},
        "invalid_workflow",
        "CYCLIC_DEPENDENCY",
        "OJS-4004",
    ),
    ("POST", "/workflows", {"type": "chain", "steps": []}, "invalid_workflow", "INVALID_WORKFLOW", "OJS-1000"),
    ("GET", f"/workflows/{UNKNOWN_ID}", None, "not_found", "WORKFLOW_NOT_FOUND", "OJS-4000"),
    ("DELETE", "/workflows/nonsense", None, "not_found", "WORKFLOW_NOT_FOUND", "OJS-4000"),
    ("GET", f"/jobs/{UNKNOWN_ID}", None, "not_found", "NOT_FOUND", "OJS-3000"),
]


def test_a_refusal_has_the_most_exact_code_of_the_catalog_beside_the_general_one(system: System) -> None:
    for method, path, body, *codes in EXACT:
        error = ask(system, method, f"/ojs/v1{path}", None if body is None else json.dumps(body).encode()).body["error"]
        assert [error["code"], error["canonical_code"], error["ojs_code"]] == codes, (path, body)


def test_what_has_ended_is_refused_by_how_it_has_ended(system: System) -> None:
    cancelled = push(system, GOOD).body["job"]["id"]
    ask(system, "DELETE", f"/ojs/v1/jobs/{cancelled}")
    again = ask(system, "DELETE", f"/ojs/v1/jobs/{cancelled}")
    assert assert_refused(again, 409, "conflict")["ojs_code"] == "OJS-3003"
    push(system, option("queue", "how-it-ended"))
    fetch = json.dumps({"queues": ["how-it-ended"]}).encode()
    done = ask(system, "POST", "/ojs/v1/workers/fetch", fetch).body["jobs"][0]["id"]
    ack = json.dumps({"job_id": done}).encode()
    assert ask(system, "POST", "/ojs/v1/workers/ack", ack).status == 200
    twice = ask(system, "POST", "/ojs/v1/workers/ack", ack)
    assert assert_refused(twice, 409, "conflict")["ojs_code"] == "OJS-3002"


def test_illegal_transitions_are_409_with_both_states(system: System) -> None:
    job_id = push(system, GOOD).body["job"]["id"]
    body = json.dumps({"job_id": job_id, "error": {"message": "x"}}).encode()
    for path in ("ack", "nack"):
        error = assert_refused(ask(system, "POST", f"/ojs/v1/workers/{path}", body), 409, "conflict")
        assert (error["details"]["current_state"], error["details"]["expected_state"]) == ("available", "active")
    assert_refused(push(system, GOOD | {"id": job_id}), 409, "duplicate")


def test_what_is_not_http_gets_an_answer_or_a_closed_connection_and_harms_nobody(system: System) -> None:
    address = urlsplit(system.url)
    for noise in (
        b"\x00\xff\x00\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST /ojs/v1/jobs HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"A" * 20_000,
    ):
        with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
            connection.sendall(noise)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.makefile("rb").read()
        assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4"))
    assert push(system, GOOD).status == 201


# The fuzz: well-formed requests with some member replaced by anything, and bodies of any bytes, on every path.

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40)
    | st.sampled_from(
        ["", "PT1S", "+PT2S", "-PT1S", "P9999999D", "2026-11-20T10:00:00Z", "1s", "a.b", UNKNOWN_ID, "*", ">", "\r\nX: y"]
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=8,
)
OPTIONS = [
    "queue",
    "priority",
    "timeout_ms",
    "delay_until",
    "scheduled_at",
    "expires_at",
    "retry",
    "unique",
    "tags",
    "visibility_timeout_ms",
    "pending",
    "rate_limit",
    "total_timeout",
    "enqueue_ttl",
    "grace_period",
    "heartbeat_timeout",
    "result_ttl",
    "result_size_limit",
    "metadata",
]
MEMBERS = ["type", "args", "id", "meta", "options", "specversion", "schema", "x_unknown", "timeout", *OPTIONS]
WORKER_MEMBERS = [
    "queues",
    "count",
    "worker_id",
    "wait_ms",
    "visibility_timeout_ms",
    "job_id",
    "result",
    "error",
    "requeue",
    "attempt",
    "active_jobs",
    "active_job_ids",
    "state",
    "hostname",
    "pid",
    "concurrency",
    "labels",
    "started_at",
]
PATHS = [
    "/ojs/v1/jobs",
    "/ojs/v1/jobs/results",
    f"/ojs/v1/jobs/{UNKNOWN_ID}/ack",
    f"/ojs/v1/jobs/{UNKNOWN_ID}/cancel",
    "/ojs/v1/workers/fetch",
    "/ojs/v1/workers/ack",
    "/ojs/v1/workers/nack",
    "/ojs/v1/workers/heartbeat",
    "/ojs/v1/workers/register",
    "/ojs/v1/workers/deregister",
    f"/ojs/v1/dead-letter/{UNKNOWN_ID}/retry",
]
TEMPLATE = {
    "queues": ["fuzz"],
    "worker_id": "fuzz",
    "job_id": UNKNOWN_ID,
    "wait_ms": 0,
    "error": {"message": "m"},
    "ids": [UNKNOWN_ID],
}

pushes = st.builds(
    lambda flat, options: GOOD | flat | ({"options": options} if options else {}),
    st.dictionaries(st.sampled_from(MEMBERS), anything, max_size=3),
    st.dictionaries(st.sampled_from(OPTIONS), anything, max_size=3),
)
worker_calls = st.dictionaries(st.sampled_from(WORKER_MEMBERS), anything, max_size=3).map(lambda members: TEMPLATE | members)
bodies = pushes.map(json.dumps).map(str.encode) | worker_calls.map(json.dumps).map(str.encode) | st.binary(max_size=60)


@settings(max_examples=EXAMPLES, deadline=None, print_blob=True, suppress_health_check=SHARED)
@given(path=st.sampled_from(PATHS), body=bodies)
@pytest.mark.timeout(300)
def test_no_body_makes_a_5xx(system: System, path: str, body: bytes) -> None:
    got = ask(system, "POST", path, body)
    assert got.status < 500, got
    if got.status >= 400:
        assert got.body["error"]["message"], got
    elif path == "/ojs/v1/jobs":  # what was taken can be read again, and is whole
        job = got.body["job"]
        assert ask(system, "GET", f"/ojs/v1/jobs/{job['id']}").body["job"]["id"] == job["id"]


segments = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=" #"), max_size=20)


@settings(max_examples=EXAMPLES // 2, deadline=None, print_blob=True, suppress_health_check=SHARED)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "ASSERT"]),
    path=st.lists(segments, max_size=3).map(lambda parts: "/" + "/".join(parts))
    | st.builds(lambda base, part: f"{base}/{part}", st.sampled_from(PATHS), segments),
)
def test_no_path_or_method_makes_a_5xx(system: System, method: str, path: str) -> None:
    got = ask(system, method, path)
    assert got.status < 500, got


def test_a_misspelt_member_is_told_and_one_that_takes_the_limit_away_refused(system: System) -> None:
    got = push(system, GOOD | {"retry": {"max_atempts": 9}, "options": {"delay": "PT5S"}, "ext_own": 1})
    assert got.status == 201
    assert {one["field"] for one in got.body["warnings"]} == {"retry.max_atempts", "options.delay"}
    assert "warnings" not in push(system, GOOD | {"retry": {"max_attempts": 9}}).body
    assert_refused(push(system, GOOD | {"rate_limit": {"key": "a", "concurency": 1}}), 400, "invalid_request")


def test_a_cursor_of_another_making_is_refused(system: System) -> None:
    for path, cursor in product(("/jobs", "/dead-letter", "/admin/dead-letter", "/workflows"), ("zzz", "5~1.a", "1")):
        error = assert_refused(ask(system, "GET", f"/ojs/v1{path}?cursor={cursor}"), 400, "invalid_request")
        assert error["details"]["field"] == "cursor"


def test_each_job_of_a_request_is_told_of_its_misspelt_members(system: System) -> None:
    good, odd = {"type": "a.b", "args": []}, {"type": "a.b", "args": [], "retry": {"max_atempts": 9}}
    batch = system.call("POST", "/jobs/batch", {"jobs": [good, odd]}, 201)
    assert [one["field"] for one in batch["warnings"]] == ["jobs[1].retry.max_atempts"]
    assert "warnings" not in system.call("POST", "/jobs/batch", {"jobs": [good]}, 201)
    many = system.call("POST", "/jobs/batch", {"jobs": [odd] * 300}, 201)
    assert len(many["warnings"]) == 100
    for atomicity in ("partial", "atomic"):
        bulk = system.call("POST", "/jobs/bulk", {"jobs": [good, odd], "atomicity": atomicity}, 201)
        assert [[one["field"] for one in item.get("warnings", [])] for item in bulk["items"]] == [[], ["retry.max_atempts"]]
    steps = [good | {"id": "a"}, odd | {"id": "b", "depends_on": ["a"]}, good | {"id": "c", "depend_on": ["a"]}]
    flow = system.call("POST", "/workflows", {"name": "w", "steps": steps}, 201)
    assert [one["field"] for one in flow["warnings"]] == ["$.steps[1].retry.max_atempts", "$.steps[2].depend_on"]
