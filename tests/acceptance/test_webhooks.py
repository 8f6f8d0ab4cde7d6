from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.nats import NatsServer
from support.system import TOGETHER, Answer, Gateway, Processes, System, send
from support.waiting import until
from support.webhook_target import Got, WebhookTarget

LOCAL = ("--webhook-insecure", "--webhook-private")
SUBSCRIPTIONS = "/ojs/v1/webhooks/subscriptions"


@pytest.fixture
def target() -> Iterator[WebhookTarget]:
    with WebhookTarget.started() as target:
        yield target


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system that sends to targets of this machine."""
    with System.started(tmp_path_factory.mktemp("local"), TOGETHER, *LOCAL) as system:
        yield system


def subscribe(url: str, target: WebhookTarget, *events: str) -> Any:
    answer = send("POST", url + SUBSCRIPTIONS, {"url": target.url, "events": events})
    assert answer.status == 201, answer
    return answer.body["subscription"]


def test_a_subscription_over_http_gets_signed_events_until_it_is_deleted(local: System, target: WebhookTarget) -> None:
    made = subscribe(local.url, target, "job.enqueued")
    one = f"{local.url}{SUBSCRIPTIONS}/{made['id']}"
    first = local.push("a.b")["id"]

    def first_came() -> bool:
        return first in target.subjects

    until(first_came)
    assert target.got[0].signed_by(made["secret"])
    rotated = send("POST", f"{one}/rotate-secret").body
    tested = send("POST", f"{one}/test").body
    assert (tested["success"], tested["status_code"], tested["response_body"]) == (True, 200, "OK")
    assert target.got[-1].headers["X-OJS-Event-Type"] == "webhook.test"
    assert target.got[-1].signed_by(made["secret"])
    assert target.got[-1].signed_by(rotated["secret"])
    for shown in (send("GET", one), send("GET", local.url + SUBSCRIPTIONS), send("PATCH", one, {"active": True})):
        assert "whsec_" not in str(shown.body)

    def counted() -> bool:
        return bool(send("GET", one).body["subscription"]["success_count"] == 1)

    until(counted)
    assert "whsec_" not in local.output
    assert send("DELETE", one).status == 200
    assert send("GET", one).status == 404


def test_a_dead_delivery_can_be_tried_again(local: System, target: WebhookTarget) -> None:
    target.answer = lambda _got: (400, {})
    made = subscribe(local.url, target, "job.enqueued")
    local.push("a.b")

    def dead() -> Any:
        return send("GET", f"{local.url}{SUBSCRIPTIONS}/{made['id']}/deliveries?status=dead").body["deliveries"]

    [lost] = until(dead)
    again = f"{local.url}/ojs/v1/webhooks/deliveries/{lost['id']}/retry"
    assert send("POST", again).body["delivery"]["status"] == "dead"
    target.answer = lambda _got: (200, {})
    assert send("POST", again).body["delivery"]["status"] == "delivered"
    assert send("POST", again).status == 409
    assert len({got.headers["X-OJS-Delivery-ID"] for got in target.got}) == 1


@pytest.mark.slow
def test_killing_the_process_in_the_middle_of_deliveries_loses_nothing(
    tmp_path: Path, nats_server: NatsServer, target: WebhookTarget
) -> None:
    release = threading.Event()

    def slow_at_first(_got: Got) -> tuple[int, dict[str, str]]:
        if len(target.got) <= 8:
            release.wait(60)
        return 200, {}

    target.answer = slow_at_first
    processes = Processes(tmp_path, nats_server.url)
    try:
        gateway = processes.start("gateway", *LOCAL)
        processes.start("projector", "--projector-data", str(tmp_path / "index"))
        victim = processes.start("webhooks", *LOCAL)
        url = str(gateway.ready()["url"])
        victim.ready()
        subscribe(url, target, "job.enqueued")
        jobs = {Gateway(url).push("a.b")["id"] for _ in range(20)}

        def in_the_middle() -> bool:
            return len(target.got) >= 8

        until(in_the_middle)
        victim.kill()
        release.set()
        processes.start("webhooks", *LOCAL).ready()

        def all_came() -> bool:
            return jobs <= set(target.subjects[8:])

        until(all_came, 60)
    finally:
        release.set()
        processes.stop()


GOOD = {"url": "https://127.0.0.1:9/", "events": ["job.nothing"]}
BAD_BODIES: list[tuple[Any, str]] = [
    (GOOD | {"url": "http://a.example/"}, "url"),
    (GOOD | {"events": ["job.>"]}, "events"),
    (GOOD | {"filter": {"queues": ["*"]}}, "filter.queues[0]"),
    (GOOD | {"headers": {}}, "headers"),
]


def refused(answer: Answer, status: int, code: str) -> Any:
    assert (answer.status, answer.body["error"]["code"]) == (status, code), answer
    assert answer.body["error"]["hint"]
    return answer.body["error"].get("details", {})


def test_a_subscription_that_can_not_be_is_refused_and_not_stored(system: System) -> None:
    for body, field in BAD_BODIES:
        assert refused(send("POST", system.url + SUBSCRIPTIONS, body), 400, "invalid_request")["field"] == field
    assert send("GET", system.url + SUBSCRIPTIONS).body["subscriptions"] == []


def test_a_change_that_can_not_be_is_refused_and_changes_nothing(system: System) -> None:
    made = send("POST", system.url + SUBSCRIPTIONS, GOOD).body["subscription"]
    one = f"{system.url}{SUBSCRIPTIONS}/{made['id']}"
    before = send("GET", one).body
    for body, field in (*BAD_BODIES, ({"secret": "another-secret"}, "secret")):
        for method in ("PATCH", "PUT"):
            assert refused(send(method, one, body), 400, "invalid_request")["field"] == field
    large = {"metadata": {"x": "y" * 5_000}}
    refused(send("PATCH", one, large), 413, "metadata_too_large")
    assert send("GET", one).body == before


PLACES = [
    ("GET", "subscriptions/{}"),
    ("PATCH", "subscriptions/{}"),
    ("DELETE", "subscriptions/{}"),
    ("POST", "subscriptions/{}/test"),
    ("POST", "subscriptions/{}/rotate-secret"),
    ("GET", "subscriptions/{}/deliveries"),
    ("GET", "deliveries/{}"),
    ("POST", "deliveries/{}/retry"),
]


def test_what_is_not_there_is_not_found_and_a_wildcard_is_no_name(system: System) -> None:
    made = send("POST", system.url + SUBSCRIPTIONS, GOOD).body["subscription"]
    for method, path in PLACES:
        body = {"active": False} if method == "PATCH" else None
        for name in ("sub_none", "x" * 300):
            refused(send(method, f"{system.url}/ojs/v1/webhooks/{path.format(name)}", body), 404, "not_found")
        for name in ("%3E", f"{made['id'][:-1]}*"):
            refused(send(method, f"{system.url}/ojs/v1/webhooks/{path.format(name)}", body), 400, "invalid_request")
    assert send("GET", system.url + SUBSCRIPTIONS).body["subscriptions"][0]["active"] is True


def test_a_list_that_can_not_be_is_refused(system: System) -> None:
    for query, field in (
        ("deliveries?status=lost", "status"),
        ("deliveries?cursor=17", "cursor"),
        ("deliveries?subscription_id=*", "id"),
        ("deliveries?limit=x", "limit"),
        ("subscriptions?cursor=del_1", "cursor"),
        ("subscriptions?limit=-1", "limit"),
    ):
        answer = send("GET", f"{system.url}/ojs/v1/webhooks/{query}")
        assert refused(answer, 400, "invalid_request")["field"] == field


def test_there_are_a_hundred_subscriptions_at_most(system: System) -> None:
    for _ in range(100):
        assert system.request("POST", SUBSCRIPTIONS, GOOD).status == 201
    refused(send("POST", system.url + SUBSCRIPTIONS, GOOD), 409, "conflict")
    page = send("GET", system.url + SUBSCRIPTIONS + "?limit=60").body
    rest = send("GET", f"{system.url}{SUBSCRIPTIONS}?limit=60&cursor={page['pagination']['next_cursor']}").body
    assert len({one["id"] for one in page["subscriptions"] + rest["subscriptions"]}) == page["total"] == 100


def test_a_target_inside_the_servers_network_gets_nothing_unless_a_setting_allows_it(
    system: System, target: WebhookTarget
) -> None:
    secure = target.url.replace("http:", "https:")
    made = send("POST", system.url + SUBSCRIPTIONS, GOOD | {"url": secure.replace("127.0.0.1", "localhost")}).body
    tested = send("POST", f"{system.url}{SUBSCRIPTIONS}/{made['subscription']['id']}/test").body
    assert (tested["success"], tested["status_code"]) == (False, 0)
    assert "not one that webhooks may be sent to" in tested["error"]
    assert target.got == []
