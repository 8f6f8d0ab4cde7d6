from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import msgspec
import pytest

from ojs_features.webhooks.records import Subscription
from ojs_features.webhooks.targets import TargetAnswer, Targets
from support.webhook_target import WebhookTarget


def subscription(url: str) -> Subscription:
    return Subscription(id="sub_1", url=url, events=("*",), secret="some-secret")


async def deliver(url: str, *, insecure: bool = True, private: bool = True) -> TargetAnswer:
    targets = Targets(insecure=insecure, private=private)
    try:
        return await targets.deliver(subscription(url), "del_1", "job.completed", b'{"a":1}', 1_770_000_000_123)
    finally:
        await targets.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_an_address_is_checked_when_it_is_connected_to_under_whatever_name(host: str) -> None:
    with WebhookTarget.started() as target:
        answer = await deliver(target.url.replace("127.0.0.1", host), private=False)
        assert (answer.status, answer.success) == (0, False)
        assert answer.error == "its address is not one that webhooks may be sent to"
        assert not target.got


@pytest.mark.parametrize("private", [True, False])
async def test_no_error_tells_the_addresses_that_a_name_stands_for(private: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    refused = await deliver(f"http://localhost:{port}/", private=private)
    assert "127.0.0.1" not in refused.error
    assert "::1" not in refused.error
    unknown = await deliver("http://nobody.invalid/", private=private)
    assert unknown.error == "its name is not known"


async def test_http_is_refused_unless_it_is_allowed() -> None:
    with WebhookTarget.started() as target:
        answer = await deliver(target.url, insecure=False)
        assert answer.error == "its URL is not https"
        assert not target.got


async def test_a_redirect_is_not_followed() -> None:
    with WebhookTarget.started() as target:
        target.answer = lambda _got: (307, {"Location": target.url})
        answer = await deliver(target.url)
        assert (answer.status, answer.success, len(target.got)) == (307, False, 1)


async def test_a_delivery_has_the_headers_of_the_specification() -> None:
    with WebhookTarget.started() as target:
        target.answer = lambda _got: (429, {"Retry-After": "7"})
        answer = await deliver(target.url)
        assert (answer.status, answer.body, answer.retry_after_s) == (429, "OK", 7)
        [got] = target.got
    wanted = {
        "Content-Type": "application/json",
        "X-OJS-Event-Type": "job.completed",
        "X-OJS-Delivery-ID": "del_1",
        "X-OJS-Subscription-ID": "sub_1",
        "X-OJS-Timestamp": "1770000000",
    }
    assert wanted.items() <= got.headers.items()
    assert got.headers["User-Agent"].startswith("OJS-Webhook/1.0")
    assert got.headers["X-OJS-Signature"].startswith("sha256=")
    assert msgspec.json.decode(got.body) == {"a": 1}


async def test_names_that_nobody_resolves_hold_up_neither_others_nor_the_end_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()
    resolve = socket.getaddrinfo

    def look_up(host: Any, *rest: Any, **more: Any) -> Any:
        if str(host).endswith(".invalid"):
            release.wait(60)
            raise socket.gaierror("nobody knows it")
        return resolve(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    targets = Targets(insecure=True, private=True)
    with WebhookTarget.started() as target:

        async def bring(url: str) -> TargetAnswer:
            return await targets.deliver(subscription(url), "del_1", "job.completed", b"{}", 1)

        slow = [asyncio.create_task(bring(f"http://name{number}.invalid/")) for number in range(64)]
        try:
            assert (await bring(target.url.replace("127.0.0.1", "localhost"))).status == 200
            assert not any(task.done() for task in slow)
            assert all(thread.daemon for thread in threading.enumerate() if thread.name == "look-up")
        finally:
            release.set()
            answers = await asyncio.gather(*slow)
            await targets.close()
    assert {answer.status for answer in answers} == {0}


async def test_little_is_read_of_an_answer() -> None:
    with WebhookTarget.started() as target:
        target.body = b"x" * 1_000_000
        assert len((await deliver(target.url)).body) <= 1_024
        target.answer = lambda _got: (200, {"X-Long": "y" * 5_000})
        answer = await deliver(target.url)
        assert (answer.status, answer.success) == (0, False)


async def test_a_name_that_can_not_be_one_is_a_failure_like_others() -> None:
    answer = await deliver(f"http://{'x' * 64}.example/")
    assert (answer.status, answer.success) == (0, False)
    assert answer.error
