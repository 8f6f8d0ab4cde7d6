from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ojs_api.webhooks import OneWebhook
from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.transitions import Moment
from ojs_engine.wire.members import bare, encode
from ojs_engine.wire.pages import Page
from ojs_features.webhooks.answers import on_page, webhook_answer, webhook_page
from ojs_features.webhooks.records import Subscription, TargetHealth
from ojs_features.webhooks.requests import parse_changes, parse_cursor, parse_status, parse_subscription
from support.tables import each

GOOD = {"url": "https://a.example/hook", "events": ["job.completed", "job.*", "*"]}


def read(**members: Any) -> Subscription:
    return parse_subscription(msgspec.json.encode(GOOD | members), DEFAULT_LIMITS, insecure=False).new("made-here")


def test_a_subscription_has_what_was_sent() -> None:
    found = read(filter={"queues": ["a", "b"], "job_types": ["x.y"]}, metadata={"n": 1}, secret="brought-along")
    assert (found.url, found.events) == (GOOD["url"], tuple(GOOD["events"]))
    assert (found.queues, found.job_types, bytes(found.metadata)) == (("a", "b"), ("x.y",), b'{"n":1}')
    assert (found.secret, found.active) == ("brought-along", True)
    assert read().secret == "made-here"


@each(
    ("members", "field"),
    [
        ({"url": "http://a.example/"}, "url"),
        ({"url": "ftp://a.example/"}, "url"),
        ({"url": "https://user:pass@a.example/"}, "url"),
        ({"url": "https://a.example/#x"}, "url"),
        ({"url": "https:///x"}, "url"),
        ({"url": "https://127.1/"}, "url"),
        ({"url": "https://0/"}, "url"),
        ({"url": "https://2130706433/"}, "url"),
        ({"url": "https://0x7f.1/"}, "url"),
        ({"url": "https://a.256/"}, "url"),
        ({"url": "https://a.example:99999/"}, "url"),
        ({"url": "https://a.example/\r\nX: y"}, "url"),
        ({"events": ["job.>"]}, "events"),
        ({"events": ["*.completed"]}, "events"),
        ({"events": ["webhook.dead"]}, "events"),
        ({"filter": {"queues": ["Not A Queue"]}}, "filter.queues[0]"),
        ({"secret": "with a blank in it"}, "secret"),
    ],
)
def test_what_can_not_be_is_refused_by_its_name(members: dict[str, Any], field: str) -> None:
    with pytest.raises(OjsError) as refused:
        read(**members)
    assert refused.value.code == "invalid_request"
    assert refused.value.details["field"] == field


def test_metadata_has_a_limit() -> None:
    with pytest.raises(OjsError) as refused:
        read(metadata={"x": "y" * 4_096})
    assert refused.value.code == "metadata_too_large"


def test_a_refused_secret_is_not_in_the_message() -> None:
    for secret in ("my secret phrase", "phrase", "phrase" * 100, ["phrase"]):
        with pytest.raises(OjsError) as refused:
            read(secret=secret)
        assert "phrase" not in str(refused.value.message)


def test_http_is_for_servers_that_allow_it() -> None:
    body = msgspec.json.encode(GOOD | {"url": "http://a.example/"})
    assert parse_subscription(body, DEFAULT_LIMITS, insecure=True).url == "http://a.example/"


def test_a_change_leaves_what_it_does_not_name_and_ends_a_pause() -> None:
    paused = msgspec.structs.replace(read(), active=False, paused="gone")
    body = msgspec.json.encode({"active": True, "events": ["job.failed"], "id": "sub_1"})
    changed = parse_changes(body, DEFAULT_LIMITS, insecure=False).apply(paused, Moment(5, "op"))
    assert (changed.active, changed.paused, changed.events, changed.url) == (True, None, ("job.failed",), GOOD["url"])
    with pytest.raises(OjsError):
        parse_changes(b'{"secret":"another-secret"}', DEFAULT_LIMITS, insecure=False)


def test_only_an_answer_that_is_asked_to_shows_a_secret() -> None:
    found = read(secret="brought-along").rotated("rotated-in", Moment(1, "op"))
    plain = encode(OneWebhook(webhook_answer(found, TargetHealth(), 1)))
    assert b"brought-along" not in plain
    assert b"rotated-in" not in plain
    assert b"old_secret_expires_at" in plain
    assert b"rotated-in" in encode(webhook_answer(found, TargetHealth(), 1, secret=True))


def test_what_a_list_of_deliveries_is_asked_for_is_checked() -> None:
    last = "del_019539a4-b68c-7def-8000-ffeeddccbbaa"
    assert (parse_status(None), parse_status("dead"), parse_cursor(None), parse_cursor(last)) == (None, "dead", None, last)
    for parse, sent in ((parse_status, "lost"), (parse_cursor, "del_*"), (parse_cursor, "17")):
        with pytest.raises(OjsError) as refused:
            parse(sent)
        assert refused.value.code == "invalid_request"


def test_a_page_of_subscriptions_goes_on_where_the_last_one_has_ended() -> None:
    every = [msgspec.structs.replace(read(), id=f"sub_{number}") for number in range(3)]
    health = {one.id: TargetHealth() for one in every}
    page = webhook_page(on_page(every, Page(2)), health, Page(2), 3, 1, whole_url=True)
    assert (page.pagination.next_cursor, page.total) == ("2", 3)
    rest = Page(2, cursor="2")
    page = webhook_page(on_page(every, rest), health, rest, 3, 1, whole_url=True)
    assert [bare(one).id for one in page.subscriptions] == ["sub_2"]
    assert not page.pagination.has_more
    for bad in ("x", "-1", "9" * 20):
        with pytest.raises(OjsError) as refused:
            on_page(every, Page(2, cursor=bad))
        assert refused.value.details["field"] == "cursor"
