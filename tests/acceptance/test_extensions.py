"""Members of extensions (`ext_…`, `x_…`) pass in every request, and are kept with every document that is stored."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

import nats
import pytest

from support.system import Answer, System, send

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


# Kept wherever a document is stored

SENT: dict[str, Any] = {"ext_vendor": {"a": [1, 2.5, None]}, "x_vendor": "b"}
INNER = {"x_inner": [True]}


class Document(NamedTuple):
    """A request that stores a document, where that is read, and where in the answer its members stand.

    `inner` is an object of it that has members of extensions, too. A list reads all of its documents.
    """

    store: str
    body: dict[str, Any]
    read: str
    place: tuple[str, ...]
    inner: str = ""
    all_of_them: str = ""


PERIOD = {"limit": 5, "period": "PT1S"}
HOOK = {"url": "https://example.org/hook", "events": ["job.completed"]}
SCHEMA = {"type": "ext.typed", "version": 1, "schema": {"type": "array"}}
DOCUMENTS = {
    "settings": Document(
        "PUT /queues/ext.k/config", {"rate_limit": PERIOD}, "/queues/ext.k/config", ("own_config",), "rate_limit"
    ),
    "settings of all": Document("PUT /queues/_default/config", {"max_size": 9}, "/queues/ext.l/config", ("config",)),
    "created queue": Document(
        "POST /queues", {"name": "ext.m", "retention": {"completed": "P1D"}}, "/queues/ext.m", ("config",), "retention"
    ),
    "limit of a queue": Document(
        "PUT /admin/queues/ext.n/rate-limit",
        {"concurrency": 4},
        "/queues/ext.n/config",
        ("config",),
    ),
    "override": Document(
        "PUT /rate-limits/ext-key/override",
        {"rate": PERIOD},
        "/rate-limits/ext-key",
        ("override",),
        "rate",
        "/rate-limits",
    ),
    "pool": Document(
        "PUT /admin/pools/ext-pool",
        {"queues": ["ext.o"], "starvation_prevention": {"enabled": True}},
        "/admin/pools/ext-pool",
        ("pool",),
        "starvation_prevention",
        "/admin/pools",
    ),
    "webhook": Document(
        "POST /webhooks/subscriptions",
        HOOK | {"filter": {"queues": ["ext.p"]}},
        "/webhooks/subscriptions/{id}",
        ("subscription",),
        "filter",
        "/webhooks/subscriptions",
    ),
    "schema": Document(
        "POST /schemas",
        SCHEMA | {"validation": {"mode": "warn"}},
        "/schemas/ext.typed",
        ("schema",),
        "validation",
        "/admin/schemas",
    ),
    "cron entry": Document(
        "POST /cron",
        {"name": "ext-cron", "expression": "@daily", "job_template": {"type": "ext.run", "args": []}},
        "/cron/ext-cron",
        ("cron",),
        all_of_them="/cron",
    ),
    "workflow": Document(
        "POST /workflows",
        {"type": "chain", "steps": [{"type": "ext.step", "args": [], "options": {"queue": "ext.r"}}]},
        "/workflows/{id}",
        ("workflow",),
    ),
    "job": Document(
        "POST /jobs", {"type": "ext.job", "args": [], "retry": {"max_attempts": 2}}, "/jobs/{id}", ("job",), "retry"
    ),
    "maintenance": Document("POST /admin/system/maintenance", {"enabled": True}, "/admin/system/maintenance", ()),
}

Asked = Callable[[str, str, Any], Answer]


async def _over_nats(system: System, operation: str, parameters: dict[str, str], body: Any) -> Answer:
    link = await nats.connect(system.nats_url)
    sent = b"" if body is None else json.dumps(body).encode()
    headers = {"OJS-Parameters": urlencode(parameters)}
    answer = await link.request(f"ojs.api.{operation}._", sent, timeout=60, headers=headers)
    await link.close()
    told = answer.headers or {}
    return Answer(int(told["OJS-Status"]), json.loads(answer.data), told)


def over_nats(system: System, method: str, path: str, body: Any) -> Answer:
    """Ask for what HTTP has at a place by the operation that is there."""
    for template, operations in system.call("GET", "/openapi.json")["paths"].items():
        found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template.removeprefix("/ojs/v1")), path)
        operation = operations.get(method.lower())
        if found is None or operation is None or "x-another-name-of" in operation:
            continue

        return asyncio.run(_over_nats(system, operation["operationId"], found.groupdict(), body))
    raise AssertionError(f"no operation is {method} {path}")


@pytest.fixture(params=["HTTP", "NATS"])
def ask(system: System, request: pytest.FixtureRequest) -> Asked:
    """Ask over HTTP or over NATS: by method, path and body."""
    if request.param == "HTTP":
        return lambda method, path, body: system.request(method, f"/ojs/v1{path}", body)
    return lambda method, path, body: over_nats(system, method, path, body)


def inside(answer: Any, place: Sequence[str]) -> Any:
    for name in place:
        answer = answer[name]
    return answer


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_members_of_extensions_are_kept_wherever_a_document_is_stored(ask: Asked, kind: str) -> None:
    document = DOCUMENTS[kind]
    body: dict[str, Any] = document.body | SENT
    if document.inner:
        body[document.inner] = document.body[document.inner] | INNER
    method, path = document.store.split()
    made = ask(method, path, body)
    assert made.status < 300, made
    try:
        ids = [made.body[name]["id"] for name in ("subscription", "workflow", "job") if name in made.body]
        read = ask("GET", document.read.format(id=ids[0] if ids else ""), None)
        found = inside(read.body, document.place)
        assert {name: found[name] for name in SENT} == SENT
        if document.inner:
            assert found[document.inner]["x_inner"] == [True]
        if document.all_of_them:
            listed = ask("GET", document.all_of_them, None)
            assert json.dumps(SENT["ext_vendor"]) in json.dumps(listed.body)
            assert not document.inner or '"x_inner": [true]' in json.dumps(listed.body)
    finally:
        if kind == "maintenance":
            ask("POST", path, {"enabled": False})


def test_a_workflow_keeps_those_of_its_steps_and_hands_them_to_the_jobs(system: System, ask: Asked) -> None:
    options = {"queue": "ext.s"}
    own: dict[str, Any] = {"ext_step": {"n": 1}}
    definition = {
        "type": "chain",
        "steps": [
            {"type": "ext.one", "args": [], "options": options, **own},
            {
                "type": "batch",
                "ext_inner": "group",
                "jobs": [{"type": "ext.two", "args": [], "options": options | {"x_within": 2}}],
                "callbacks": {
                    "x_beside": 3,
                    "on_complete": {"type": "ext.called", "args": [], "options": options, **own},
                },
            },
        ],
        **SENT,
    }
    workflow_id = ask("POST", "/workflows", definition).body["workflow"]["id"]
    found = ask("GET", f"/workflows/{workflow_id}", None).body["workflow"]
    first, batch = found["steps"]
    assert (first["ext_step"], batch["ext_inner"], batch["x_beside"]) == ({"n": 1}, "group", 3)
    assert batch["steps"][0]["x_within"] == 2, "of a job that isn't there yet"
    assert batch["callbacks"]["on_complete"]["ext_step"] == {"n": 1}
    assert "ext_step" not in batch["steps"][0]
    handed = []
    for _ in range(3):
        [job] = system.fetch("ext.s", worker_id="w", wait_ms=20_000)
        handed.append({name: value for name, value in job.items() if name.startswith(("ext_", "x_"))})
        system.call("POST", "/workers/ack", {"job_id": job["id"], "worker_id": "w"})
    assert handed == [own, {"x_within": 2}, own], "those of the workflow are its own"
    for reader in ({"User-Agent": "Go-http-client/1.1"}, {"User-Agent": "Mozilla/5.0"}, {"OJS-Version": "1.0"}):
        answer = send("GET", f"{system.url}/ojs/v1/workflows/{workflow_id}", headers=reader)
        other = answer.body["workflow"]
        assert (other["ext_vendor"], other["steps"][0]["ext_step"]) == (SENT["ext_vendor"], {"n": 1})
    cancelled = ask("POST", "/workflows", definition).body["workflow"]["id"]
    assert ask("DELETE", f"/workflows/{cancelled}", None).body["workflow"]["x_vendor"] == "b"


def test_a_cron_entry_hands_them_to_its_jobs_and_they_can_be_changed(system: System) -> None:
    entry = {"name": "ext-daily", "expression": "@daily", "job_template": {"type": "ext.run", "args": [], "x_own": 1}}
    system.call("POST", "/cron", entry | SENT, 201)
    changed = system.call("PATCH", "/cron/ext-daily", {"x_vendor": None, "ext_more": 5})["cron"]
    assert (changed["ext_vendor"], changed["ext_more"], "x_vendor" in changed) == (SENT["ext_vendor"], 5, False)
    job = system.job(str(system.call("POST", "/cron/ext-daily/trigger", {}, 201)["job_id"]))
    kept = {name: job[name] for name in job if name.startswith(("ext_", "x_"))}
    assert kept == {"ext_vendor": SENT["ext_vendor"], "ext_more": 5, "x_own": 1}
    assert system.call("POST", "/cron", {**changed, "ext_more": 6})["cron"]["ext_more"] == 6
    assert "ext_more" not in system.call("POST", "/cron", entry)["cron"], "a registration replaces the entry"


def test_settings_change_one_by_one_and_null_takes_one_back(system: System) -> None:
    def configured(body: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = system.call("PUT", "/queues/ext.t/config", body)["own_config"]
        return found

    configured(SENT | {"rate_limit": PERIOD | INNER, "retention": {"completed": "P1D"} | INNER})
    assert configured({"concurrency": 3})["ext_vendor"] == SENT["ext_vendor"]
    assert "x_vendor" not in configured({"x_vendor": None})
    assert configured({"retention": {"discarded": "P2D"}})["retention"]["x_inner"] == [True]
    assert "x_inner" not in configured({"rate_limit": PERIOD})["rate_limit"], "a rate is replaced as a whole"
    assert "retention" not in configured({"retention": None})
    system.call("PUT", "/queues/_default/config", {"ext_vendor": 1, "ext_common": 2})
    found = system.call("GET", "/queues/ext.t/config")
    assert (found["config"]["ext_vendor"], found["config"]["ext_common"]) == (SENT["ext_vendor"], 2)
    assert "ext_common" not in found["own_config"]
    limited = system.call("PUT", "/admin/queues/ext.t/rate-limit", {"rate": PERIOD | INNER})["own_config"]
    assert (limited["rate_limit"]["x_inner"], limited["ext_vendor"]) == ([True], SENT["ext_vendor"])
    sent_back = system.call("PUT", "/queues/ext.t/config", limited)["own_config"]
    assert sent_back == limited


def test_a_webhook_changes_those_that_are_sent(system: System) -> None:
    made = system.call("POST", "/webhooks/subscriptions", HOOK | SENT | {"filter": INNER}, 201)["subscription"]
    place = f"/webhooks/subscriptions/{made['id']}"
    changed = system.call("PATCH", place, {"ext_vendor": None, "x_more": 1})["subscription"]
    assert (changed["x_vendor"], changed["x_more"], changed["filter"]) == ("b", 1, INNER)
    assert "ext_vendor" not in changed
    changed = system.call("PATCH", place, {"filter": {"queues": ["ext.u"]}})["subscription"]
    assert changed["filter"] == {"queues": ["ext.u"]}
    assert system.call("PATCH", place, {"active": False})["subscription"]["x_more"] == 1


def test_a_schema_that_is_put_again_has_those_of_the_last_request(system: System) -> None:
    body = {"version": 1, "schema": {"type": "array"}}
    assert system.call("PUT", "/admin/schemas/ext.put/1", body | SENT, 201)["x_vendor"] == "b"
    assert "x_vendor" not in system.call("PUT", "/admin/schemas/ext.put/1", body | {"ext_other": 1})
    assert system.call("GET", "/admin/schemas/ext.put/1")["ext_other"] == 1


def test_a_checkpoint_has_them_for_the_next_attempt(system: System) -> None:
    made = system.push("ext.saves", queue="ext.v", retry={"initial_interval": "PT0.001S"})
    [job] = system.fetch("ext.v", worker_id="w")
    held = {"worker_id": "w", "attempt": job["attempt"]}
    system.call("PUT", f"/jobs/{made['id']}/checkpoint", {"state": {"at": 5}, **held, **SENT})
    read = system.call("GET", f"/jobs/{made['id']}/checkpoint")
    assert (read["ext_vendor"], read["checkpoint"]["x_vendor"]) == (SENT["ext_vendor"], "b")
    system.call("POST", "/workers/nack", {"job_id": made["id"], "error": {"message": "again"}, **held})
    [again] = system.fetch("ext.v", worker_id="w", wait_ms=20_000)
    assert (again["checkpoint"]["state"], again["checkpoint"]["ext_vendor"]) == ({"at": 5}, SENT["ext_vendor"])


@pytest.mark.parametrize("kind", [kind for kind in DOCUMENTS if kind != "maintenance"])
def test_their_size_is_bounded_and_the_refusal_says_which_and_what_helps(ask: Asked, kind: str) -> None:
    document = DOCUMENTS[kind]
    method, path = document.store.split()
    large = ask(method, path, document.body | {"x_small": 1, "ext_large": "v" * 65_536})
    assert (large.status, large.body["error"]["code"]) == (413, "metadata_too_large")
    error = large.body["error"]
    assert "most of them in ext_large; the limit is 65536 bytes" in error["message"]
    assert error["hint"] == "Keep what is large in ext_large elsewhere, and send where it is."
    many = ask(method, path, document.body | {f"x_{number}": 1 for number in range(101)})
    assert many.status == 400
    assert "x_100 is one of 101 members that OJS does not define; the limit is 100" in many.body["error"]["message"]


def test_the_bound_counts_what_is_there_already(system: System) -> None:
    system.call("PUT", "/queues/ext.w/config", {"ext_first": "v" * 40_000})
    refused = system.request("PUT", "/ojs/v1/queues/ext.w/config", {"ext_second": "v" * 40_000})
    assert (refused.status, refused.body["error"]["code"]) == (413, "metadata_too_large")
    system.call("PUT", "/queues/ext.w/config", {"ext_first": None, "ext_second": "v" * 40_000})
