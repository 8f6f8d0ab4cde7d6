"""Members of extensions (`ext_…`, `x_…`) pass in every request that the server describes; misspelt members don't."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from support.system import System

_EXTENSIONS = {"ext_vendor": {"a": [1]}, "x_vendor": "b"}
_DANGEROUS = ("maintenance", "reset", "/admin/keys", "/auth")


def bodies_of(system: System) -> list[tuple[str, str]]:
    """The methods and paths of all requests with a body, but of those that change the whole system."""
    document = system.call("GET", "/openapi.json")
    return [
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if method in {"post", "put", "patch"} and "requestBody" in operation
        if not any(part in path for part in _DANGEROUS)
    ]


def test_members_of_extensions_pass_everywhere(system: System) -> None:
    asked = bodies_of(system)
    assert len(asked) > 40
    refused = []
    for method, path in asked:
        filled = re.sub(r"\{\w+\}", "ext-nothing", path)
        answer = system.request(method, filled if filled.startswith("/ojs") else f"/ojs/v1{filled}", _EXTENSIONS)
        said = json.dumps(answer.body)
        if answer.status >= 400 and "_vendor" in said:
            refused.append((method, path, said))
    assert not refused


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("PUT /queues/ext.a/config", {"concurrency": 5}),
        ("PUT /admin/queues/ext.a/rate-limit", {"concurrency": 5}),
        ("POST /queues/ext.a/purge", {"states": ["available"]}),
        ("POST /admin/jobs/bulk/cancel", {"filter": {"queue": "ext.a"}, "confirm": True}),
        ("POST /dead-letter/retry", {"filter": {"queue": "ext.a"}, "confirm": True}),
        ("POST /webhooks/subscriptions", {"url": "https://example.org/hook", "events": ["job.completed"]}),
    ],
)
def test_a_request_is_the_same_with_them_and_refused_with_a_misspelt_member(
    system: System, path: str, body: dict[str, Any]
) -> None:
    method, place = path.split()
    plain = system.request(method, f"/ojs/v1{place}", body)
    extended = system.request(method, f"/ojs/v1{place}", body | _EXTENSIONS)
    assert (plain.status, extended.status) == (extended.status, plain.status), extended
    assert plain.status < 300, plain
    wrong = system.request(method, f"/ojs/v1{place}", body | {"concurency": 1})
    assert wrong.status in {400, 422}
    assert "concurency" in wrong.body["error"]["message"]


def test_a_filter_takes_extensions_beside_its_members_and_keeps_those_of_metadata(system: System) -> None:
    for tenant in ("a", "b"):
        system.push("ext.job", meta={"x_tenant": tenant}, queue="ext.b")
    wanted = {"queue": "ext.b", "meta": {"x_tenant": "a"}, "ext_vendor": 1}
    found = system.call("POST", "/admin/jobs/bulk/cancel", {"filter": wanted, "confirm": True})
    assert found["matched"] == 1


def test_policies_take_extensions_and_keep_them(system: System) -> None:
    unique = {"keys": ["type"], "x_scope": "tenant"}
    job = system.push("ext.unique", queue="ext.c", unique=unique, retry={"max_attempts": 2, "x_policy": "gentle"})
    assert system.job(str(job["id"]))["unique"]["x_scope"] == "tenant"


def test_members_of_an_error_that_the_specification_lacks_are_kept_in_its_details(system: System) -> None:
    cases: list[tuple[dict[str, Any], Any]] = [
        ({"context": {"user": 5}, "http_status": 502}, {"context": {"user": 5}, "http_status": 502}),
        ({"ext_vendor": 1, "details": {"a": 2, "ext_vendor": 3}}, {"ext_vendor": 3, "a": 2}),
        ({"details": [1]}, [1]),
    ]
    for more, kept in cases:
        job_id = system.push("ext.fails", queue="ext.d", retry={"max_attempts": 1})["id"]
        system.fetch("ext.d", worker_id="w")
        error = {"code": "no", "message": "it failed", **more}
        system.call("POST", "/workers/nack", {"job_id": job_id, "worker_id": "w", "error": error})
        [found] = system.job(str(job_id))["errors"]
        assert (found["code"], found["message"], found["details"]) == ("no", "it failed", kept)
    job_id = system.push("ext.fails", queue="ext.d", retry={"max_attempts": 1})["id"]
    system.fetch("ext.d", worker_id="w")
    huge = {"message": "it failed", "context": "x" * 50_000, "http_status": 502}
    system.call("POST", "/workers/nack", {"job_id": job_id, "worker_id": "w", "error": huge})
    [found] = system.job(str(job_id))["errors"]
    assert found["details"]["http_status"] == 502
    assert "cut here" in found["details"]["context"]
