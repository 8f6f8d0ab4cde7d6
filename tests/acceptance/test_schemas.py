"""Schemas over HTTP: registered by URI or by type and version, and what becomes of jobs that don't fit."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.scrape import scrape
from support.system import System
from support.waiting import until

MAIL: dict[str, Any] = {
    "type": "array",
    "prefixItems": [{"type": "string", "format": "email"}, {"enum": ["welcome", "invoice"]}],
    "minItems": 2,
}
GOOD: list[Any] = ["ada@example.com", "welcome"]
BAD: list[Any] = ["ada-hunter2", "welcome"]
FINDING = {"path": "args[0]", "message": 'the value is not a "email"', "schema_path": "prefixItems/0/format"}
WARNING = {"field": "args[0]", "message": 'the value is not a "email"'}


@pytest.fixture(autouse=True)
def quiet(system: System) -> Iterator[None]:
    """No schema outlives its test."""
    yield
    system.reset()


def register(system: System, mode: str | None, document: Any = None, version: Any = 1, job_type: str = "mail.send") -> Any:
    validation = {} if mode is None else {"mode": mode}
    body = {"schema": document or MAIL, "validation": validation}
    return system.call("PUT", f"/admin/schemas/{job_type}/{version}", body, 201)


def job(args: Any, **members: Any) -> dict[str, Any]:
    return {"type": "mail.send", "args": args} | members


def depth(system: System, queue: str = "default") -> int:
    number: int = system.call("GET", f"/queues/{queue}/stats")["queue"]["available"]
    return number


def test_a_strict_schema_refuses_what_does_not_fit_and_says_where_without_the_value(system: System) -> None:
    uri = register(system, "strict")["uri"]
    error = system.call("POST", "/jobs", job(BAD), 400)["error"]
    assert (error["code"], error["canonical_code"]) == ("schema_validation", "SCHEMA_VALIDATION_FAILED")
    assert error["details"] == {"field": "args[0]", "schema": uri, "validation_errors": [FINDING]}
    assert "hunter2" not in json.dumps(error)
    assert depth(system) == 0
    answer = system.call("POST", "/jobs", job(GOOD), 201)
    assert "warnings" not in answer


def test_by_default_a_job_that_does_not_fit_is_taken_with_a_warning_and_counted(system: System) -> None:
    register(system, None)
    before = scrape(system.url)
    answer = system.call("POST", "/jobs", job(BAD), 201)
    assert (answer["job"]["state"], answer["warnings"]) == ("available", [WARNING])
    counted = scrape(system.url) - before  # by queue, or as `other` where a system has seen many
    assert [count for name, count in counted.items() if name[:2] == ("ojs_schema_violations_total", "warned")] == [1]


def test_mode_off_says_nothing(system: System) -> None:
    register(system, "off")
    assert "warnings" not in system.call("POST", "/jobs", job(BAD), 201)


def test_a_queue_says_what_becomes_of_jobs_where_their_schema_does_not(system: System) -> None:
    register(system, None)
    config = system.call("PUT", "/queues/mail/config", {"schema_validation": "strict"})
    assert config["config"]["schema_validation"] == "strict"
    system.call("POST", "/jobs", job(BAD, options={"queue": "mail"}), 400)
    assert system.call("POST", "/jobs", job(BAD), 201)["warnings"] == [WARNING]
    refused = system.call("PUT", "/queues/mail/config", {"schema_validation": "loud"}, 400)["error"]
    assert refused["details"]["field"] == "schema_validation"


def test_a_job_that_names_its_schema_is_held_to_it(system: System) -> None:
    uri = register(system, None)["uri"]
    system.call("POST", "/jobs", job(BAD, schema=uri), 400)
    system.call("POST", "/jobs", {"type": "another.type", "args": BAD, "schema": uri}, 400)
    kept = system.call("POST", "/jobs", job(BAD, schema="urn:somewhere:else"), 201)
    assert (kept["job"]["schema"], "warnings" in kept) == ("urn:somewhere:else", False)


def test_a_batch_is_taken_as_a_whole_or_not_at_all(system: System) -> None:
    register(system, "strict")
    error = system.call("POST", "/jobs/batch", {"jobs": [job(GOOD), job(BAD)]}, 400)["error"]
    assert (error["code"], error["details"]["index"]) == ("schema_validation", 1)
    assert depth(system) == 0
    system.call("PUT", "/admin/schemas/mail.send/1", {"schema": MAIL, "validation": {"mode": "warn"}})
    answer = system.call("POST", "/jobs/batch", {"jobs": [job(GOOD), job(BAD)]}, 201)
    assert answer["warnings"] == [WARNING | {"field": "jobs[1].args[0]"}]


def test_of_a_bulk_push_each_job_has_its_own_answer(system: System) -> None:
    register(system, "strict")
    answer = system.call("POST", "/jobs/bulk", {"jobs": [job(GOOD), job(BAD)]}, 207)
    assert [one["status"] for one in answer["items"]] == ["created", "failed"]
    assert answer["items"][1]["error"]["code"] == "schema_validation"
    whole = system.call("POST", "/jobs/bulk", {"jobs": [job(GOOD), job(BAD)], "atomicity": "atomic"}, 422)
    assert whole["succeeded"] == 0
    system.call("PUT", "/admin/schemas/mail.send/1", {"schema": MAIL, "validation": {"mode": "warn"}})
    for atomicity in ("partial", "atomic"):
        answer = system.call("POST", "/jobs/bulk", {"jobs": [job(GOOD), job(BAD)], "atomicity": atomicity}, 201)
        assert [one.get("warnings") for one in answer["items"]] == [None, [WARNING]]


def test_a_workflow_with_a_job_that_does_not_fit_is_not_created(system: System) -> None:
    register(system, "strict")
    workflow = {"type": "chain", "name": "w", "steps": [job(GOOD), job(BAD)]}
    error = system.call("POST", "/workflows", workflow, 400)["error"]
    assert (error["code"], error["details"]["field"]) == ("schema_validation", "$.steps[1]")
    assert error["details"]["validation_errors"] == [FINDING]
    assert depth(system) == 0
    system.call("PUT", "/admin/schemas/mail.send/1", {"schema": MAIL, "validation": {"mode": "warn"}})
    assert system.call("POST", "/workflows", workflow, 201)["warnings"] == [WARNING | {"field": "$.steps[1].args[0]"}]


def test_a_cron_entry_is_checked_when_it_is_registered_and_its_jobs_at_each_tick(system: System) -> None:
    register(system, "strict")
    entry = {"name": "mail", "cron": "* * * * * *", "options": {"queue": "cron"}, "overlap_policy": "allow"}
    system.call("POST", "/cron", entry | job(BAD), 400)
    system.call("POST", "/cron", entry | job(GOOD), 201)

    def has_run() -> bool:
        return depth(system, "cron") > 0

    until(has_run, 60)
    system.call("PUT", "/admin/schemas/mail.send/2", {"schema": {"maxItems": 0}}, 201)
    error = system.call("POST", "/cron/mail/trigger", None, 400)["error"]
    assert error["code"] == "schema_validation"

    def has_been_refused() -> bool:
        """A run whose job is not there any more, or never was: nothing takes jobs here."""
        executions = system.call("GET", "/cron/mail/history")["executions"]
        return executions[0]["status"] == "triggered" and "job_state" not in executions[0]

    until(has_been_refused, 60)
    system.call("DELETE", "/cron/mail")


def test_a_cron_entry_that_does_not_fit_is_registered_with_a_warning(system: System) -> None:
    register(system, "warn")
    entry = {"name": "mail", "cron": "0 0 1 1 *"}
    assert system.call("POST", "/cron", entry | job(BAD), 201)["warnings"] == [WARNING]
    assert system.call("PATCH", "/cron/mail", {"description": "x"})["warnings"] == [WARNING]


def test_a_schema_of_one_object_is_about_the_only_argument(system: System) -> None:
    register(system, "strict", {"type": "object", "required": ["to"]})
    system.call("POST", "/jobs", job([{"to": "ada"}]), 201)
    system.call("POST", "/jobs", job([{}]), 400)


def test_the_versions_of_a_type(system: System) -> None:
    for version in (1, "1.1.0", 2):
        register(system, None, MAIL, version)
    system.call("PUT", "/admin/schemas/mail.send/2.0", {"schema": {"type": "array"}}, 409)
    system.call("PUT", "/admin/schemas/mail.send/2.0", {"schema": MAIL, "validation": {"mode": "off"}})
    listed = system.call("GET", "/schemas/mail.send/versions")["versions"]
    assert [(one["version"], one["is_latest"]) for one in listed] == [(2, True), ("1.1.0", False), (1, False)]
    assert system.call("GET", "/admin/schemas/mail.send")["validation"] == {"mode": "off"}
    assert system.call("GET", "/schemas/mail.send")["schema"]["version"] == 2
    assert system.call("GET", "/schemas/mail.send/1.1")["schema"]["version"] == "1.1.0"
    assert system.call("DELETE", "/schemas/mail.send/2")["deleted"] is True
    assert system.call("GET", "/schemas/mail.send")["schema"]["version"] == "1.1.0"
    page = system.call("GET", "/schemas?limit=1")
    assert (page["pagination"]["total"], page["pagination"]["has_more"]) == (2, True)
    cursor = page["pagination"]["next_cursor"]
    assert [one["version"] for one in system.call("GET", f"/schemas?limit=1&cursor={cursor}")["schemas"]] == [1]
    system.call("GET", "/schemas?cursor=nonsense", status=400)


def test_a_minor_version_that_breaks_what_was_there_is_refused(system: System) -> None:
    register(system, None, MAIL, "1.0.0")
    body = {"job_type": "mail.send", "version": "1.1.0", "schema": MAIL | {"minItems": 3}}
    error = system.call("POST", "/schemas", body, 400)["error"]
    assert error["canonical_code"] == "INCOMPATIBLE_SCHEMA"
    assert error["details"]["breaking_changes"] == ["args: minItems is 3 in 1.1.0 and 2 in 1.0.0"]
    system.call("POST", "/schemas", body | {"compatibility": "none"}, 201)


@pytest.mark.parametrize("uri", ["urn:ojs:schema:a:v1", "https://example.com/schemas/a?v=1"])
def test_a_uri_is_encoded_in_the_path(system: System, uri: str) -> None:
    body = {"uri": uri, "type": "a", "version": "1", "schema": {}}
    created = system.call("POST", "/schemas", body, 201)["schema"]
    assert (created["uri"], created["version"]) == (uri, "1")
    encoded = uri.replace(":", "%3A").replace("/", "%2F").replace("?", "%3F").replace("=", "%3D")
    connection = http.client.HTTPConnection(urlsplit(system.url).netloc)  # which leaves the path as it is
    for method, status in (("GET", 200), ("DELETE", 200), ("GET", 404)):
        connection.request(method, f"/ojs/v1/schemas/{encoded}", headers={"Content-Type": "application/json"})
        answer = connection.getresponse()
        found = json.loads(answer.read())
        assert answer.status == status, found
    connection.close()


def test_what_the_body_says_does_not_contradict_the_path(system: System) -> None:
    body = {"args_schema": MAIL, "type": "mail.send", "version": "1.0"}
    for path, field in (("/admin/schemas/mail.other/1", "type"), ("/admin/schemas/mail.send/2", "version")):
        assert system.call("PUT", path, body, 400)["error"]["details"]["field"] == field
    assert system.call("PUT", "/admin/schemas/mail.send/1", body, 201)["version"] == 1
