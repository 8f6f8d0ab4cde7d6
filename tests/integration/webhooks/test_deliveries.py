from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from integration.conftest import OpenStore
from integration.samples import timed, unreachable
from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.api import purge, put
from ojs_engine.jetstream.event_consumer import consumer_names
from ojs_engine.jetstream.event_reader import EventFilter, EventReader, StoredEvent
from ojs_engine.store.announce import announce
from ojs_engine.store.store import Store
from ojs_features.webhooks.deliverer import Deliverer
from ojs_features.webhooks.deliveries import DeliveryTimings
from ojs_features.webhooks.records import DeliveryRecord, DeliveryStatus, Subscription, Tally, TargetHealth
from ojs_features.webhooks.rules import DELAYS_MS
from ojs_features.webhooks.subjects import CONSUMER, Subjects
from ojs_features.webhooks.subscriber import SubscriberTimings
from ojs_features.webhooks.subscriptions import Webhooks
from ojs_features.webhooks.targets import Targets
from support.nats import NatsServer
from support.waiting import eventually
from support.webhook_target import Got, WebhookTarget


@pytest.fixture
def target() -> Iterator[WebhookTarget]:
    with WebhookTarget.started() as target:
        yield target


@asynccontextmanager
async def delivering(store: Store, timings: SubscriberTimings | None = None) -> AsyncIterator[Deliverer]:
    deliverer = Deliverer(store, Targets(insecure=True, private=True), timings or SubscriberTimings())
    await deliverer.start()
    try:
        yield deliverer
    finally:
        await deliverer.stop()


async def subscribe(store: Store, url: str, *events: str, **members: tuple[str, ...]) -> Subscription:
    wanted = Subscription(id="", url=url, events=events, secret="some-secret", **members)  # type: ignore[arg-type]
    return await store.of(Webhooks).create(wanted)


async def happens(store: Store, event_type: str, subject: str, queue: str, job_type: str = "a.b") -> None:
    await announce(store, event_type, scope=queue, subject=subject, data={"job_type": job_type})


async def arrived(target: WebhookTarget, *subjects: str) -> None:
    def all_there() -> bool:
        return set(subjects) <= set(target.subjects)

    await eventually(all_there)


async def of(store: Store, made: Subscription, status: DeliveryStatus | None = None) -> list[DeliveryRecord]:
    return (await store.of(Webhooks).deliveries.page(made.id, status, None, 0, 200)).deliveries


async def events(store: Store, event_type: str, subject: str) -> list[StoredEvent]:
    wanted = EventFilter(types=(event_type,), subject_id=subject)
    return (await EventReader(store.nats, store.config).read(0, wanted, 10)).events


async def one_that_is(store: Store, made: Subscription, status: DeliveryStatus) -> DeliveryRecord:
    async def there() -> list[DeliveryRecord]:
        return await of(store, made, status)

    return (await eventually(there))[0]


async def test_events_that_match_are_delivered_signed_and_others_are_not(
    store: Store, queue: str, target: WebhookTarget
) -> None:
    made = await subscribe(store, target.url, "job.*", "job.completed", queues=(queue,), job_types=("a.b",))
    async with delivering(store):
        await happens(store, "job.completed", "elsewhere", "another")
        await happens(store, "job.completed", "other-type", queue, "c.d")
        await happens(store, "queue.paused", "other-event", queue)
        await happens(store, "job.failed", "first", queue)
        await happens(store, "job.completed", "second", queue)
        await arrived(target, "first", "second")
    assert sorted(target.subjects) == ["first", "second"]
    assert all(got.signed_by(made.secret) for got in target.got)
    await store.of(Webhooks).delete(made.id)


async def test_what_happens_while_nobody_delivers_or_the_subscription_is_paused_is_delivered_afterwards(
    store: Store, queue: str, target: WebhookTarget
) -> None:
    made = await subscribe(store, target.url, "*", queues=(queue,))
    await happens(store, "job.completed", "before", queue)
    async with delivering(store):
        await arrived(target, "before")
    await store.of(Webhooks).change(made.id, lambda old, moment: old.changed(moment, active=False))
    async with delivering(store):
        await happens(store, "job.completed", "paused", queue)
        await store.of(Webhooks).change(made.id, lambda old, moment: old.changed(moment, active=True))
        await arrived(target, "paused")
    # One that was under way when the subscription was paused comes again, under its id.
    came = {got.headers["X-OJS-Delivery-ID"]: got.event["subject"] for got in target.got}
    assert list(came.values()) == ["before", "paused"]
    await store.of(Webhooks).delete(made.id)


async def test_a_delivery_comes_again_under_its_id_until_it_goes_through(
    store: Store, queue: str, target: WebhookTarget
) -> None:
    made = await subscribe(store, target.url, "*", queues=(queue,))
    target.answer = lambda _got: (429, {"Retry-After": "1"}) if len(target.got) < 3 else (200, {})
    async with delivering(store):
        await happens(store, "job.completed", "again", queue)

        through = await one_that_is(store, made, "delivered")
    assert len(target.got) == 3
    assert {got.headers["X-OJS-Delivery-ID"] for got in target.got} == {through.id}
    assert through.attempts == 3
    assert await of(store, made) == [through]

    async def counted() -> bool:
        seen = await store.of(Webhooks).health(made.id)
        return (seen.succeeded, seen.failed, seen.in_a_row) == (1, 2, 0)

    await eventually(counted)
    await store.of(Webhooks).delete(made.id)


async def test_a_failed_delivery_is_tried_again_when_the_stream_has_lost_its_event(
    store: Store, queue: str, target: WebhookTarget
) -> None:
    made = await subscribe(store, target.url, "*", queues=(queue,))
    target.answer = lambda _got: (429, {"Retry-After": "1"}) if len(target.got) == 1 else (200, {})
    async with delivering(store):
        await happens(store, "job.completed", "lost", queue)
        failing = await one_that_is(store, made, "failing")
        assert await purge(store.nats, store.config.events_stream, f"{store.config.namespace}.events.>") is None
        through = await one_that_is(store, made, "delivered")
    assert (failing.id, failing.attempts, through.attempts) == (through.id, 1, 2)
    assert target.subjects == ["lost", "lost"]
    assert bytes(through.event) == target.got[1].body
    await store.of(Webhooks).delete(made.id)


async def test_a_failing_delivery_waits_for_its_time_with_nobody_to_deliver_it(
    store: Store, other: Store, queue: str, target: WebhookTarget
) -> None:
    made = await subscribe(store, target.url, "*", queues=(queue,))
    target.answer = lambda _got: (503, {}) if len(target.got) == 1 else (200, {})
    async with delivering(store):
        await happens(store, "job.completed", "later", queue)
        failing = await one_that_is(store, made, "failing")
    assert failing.next_at - failing.updated_at == DELAYS_MS[0]
    await store.of(Webhooks).deliveries.store(replace(failing, next_at=store.clock.now()))
    async with delivering(other):
        through = await one_that_is(store, made, "delivered")
    assert (through.id, through.attempts) == (failing.id, 2)
    await store.of(Webhooks).delete(made.id)


async def test_a_delivery_is_dead_after_its_last_attempt(store: Store, queue: str, target: WebhookTarget) -> None:
    made = await subscribe(store, target.url, "*", queues=(queue,))
    target.answer = lambda _got: (500, {})
    async with delivering(store):
        await happens(store, "job.completed", "never", queue)
        failing = await one_that_is(store, made, "failing")
        last = replace(failing, attempts=len(DELAYS_MS), next_at=store.clock.now())
        await store.of(Webhooks).deliveries.store(last)
        lost = await one_that_is(store, made, "dead")
    assert (lost.attempts, lost.last_status, lost.next_at) == (len(DELAYS_MS) + 1, 500, 0)
    assert await of(store, made, "failing") == []
    await store.of(Webhooks).delete(made.id)


async def test_an_attempt_whose_outcome_can_not_be_stored_is_made_again(
    store: Store, queue: str, target: WebhookTarget
) -> None:
    made = await subscribe(store, target.url, "*", queues=(queue,))
    target.answer = lambda _got: (429, {"Retry-After": "0"}) if len(target.got) < 4 else (200, {})
    async with delivering(store, SubscriberTimings(again_ms=100)):
        with (
            unreachable(store.nats, f"{store.config.namespace}.timer.webhook.") as event,
            unreachable(store.nats, f"$KV.{store.config.bucket}.delivery.") as record,
        ):
            await happens(store, "job.completed", "again", queue)
            through = await one_that_is(store, made, "delivered")
    assert (len(event), len(record)) == (1, 1)
    assert through.attempts == 3  # those whose outcome is known
    assert target.subjects == ["again"] * 5
    await store.of(Webhooks).delete(made.id)


async def test_a_refused_delivery_is_dead_and_later_ones_go_on(store: Store, queue: str, target: WebhookTarget) -> None:
    made = await subscribe(store, target.url, "*", queues=(queue,))
    target.answer = lambda got: (400 if got.event["subject"] == "bad" else 200, {})
    async with delivering(store):
        await happens(store, "job.completed", "bad", queue)
        await happens(store, "job.completed", "good", queue)
        await arrived(target, "bad", "good")
        lost = await one_that_is(store, made, "dead")
    assert (lost.event_type, lost.attempts, lost.last_status) == ("job.completed", 1, 400)
    assert (await store.of(Webhooks).deliveries.get(lost.id)) == lost
    await store.of(Webhooks).delete(made.id)
    assert target.subjects.count("bad") == 1


async def test_deliveries_are_listed_page_by_page_the_newest_first(store: Store, queue: str, target: WebhookTarget) -> None:
    made = await subscribe(store, target.url, "*", queues=(queue,))
    target.answer = lambda got: (400 if got.event["type"] == "job.failed" else 503, {})
    async with delivering(store):
        for number in range(4):
            await happens(store, "job.failed" if number % 2 else "job.completed", f"event-{number}", queue)

        async def all_tried() -> bool:
            return len(await of(store, made)) == 4

        await eventually(all_tried)
    every = await of(store, made)
    assert [one.id for one in every] == sorted((one.id for one in every), reverse=True)
    deliveries = store.of(Webhooks).deliveries
    first = await deliveries.page(made.id, None, None, 0, 3)
    assert (first.deliveries, first.more, first.total) == (every[:3], every[2].id, 4)
    rest = await deliveries.page(made.id, None, first.more, 0, 3)
    assert (rest.deliveries, rest.more) == (every[3:], None)
    assert (await deliveries.page(made.id, None, None, 1, 1)).deliveries == every[1:2]
    assert {one.event_type for one in await of(store, made, "dead")} == {"job.failed"}
    assert {one.event_type for one in await of(store, made, "failing")} == {"job.completed"}
    await store.of(Webhooks).delete(made.id)
    assert await of(store, made) == []


@timed(features=(DeliveryTimings(failing=3),))
async def test_a_target_with_too_many_failing_deliveries_gets_no_further_events(
    store: Store, queue: str, target: WebhookTarget
) -> None:
    made = await subscribe(store, target.url, "*", queues=(queue,))
    target.answer = lambda _got: (503, {})
    async with delivering(store) as deliverer:
        for number in range(30):
            await happens(store, "job.completed", f"event-{number}", queue)

        async def full() -> bool:
            return await store.of(Webhooks).deliveries.full(made.id)

        await eventually(full)
        await deliverer.stop()
        before = len(target.got)
        assert before <= 16  # what was in hand when the first of them failed, and once more
    async with delivering(store):
        for failing in await of(store, made, "failing"):
            await store.of(Webhooks).deliveries.store(replace(failing, next_at=store.clock.now()))
        target.answer = lambda _got: (200, {})
        await arrived(target, *(f"event-{number}" for number in range(30)))
    await store.of(Webhooks).delete(made.id)


async def test_a_target_that_is_gone_pauses_its_subscription(store: Store, queue: str, target: WebhookTarget) -> None:
    made = await subscribe(store, target.url, "*", queues=(queue,))
    target.answer = lambda _got: (410, {})
    async with delivering(store):
        await happens(store, "job.completed", "one", queue)

        async def paused() -> bool:
            found = await store.of(Webhooks).get(made.id)
            return (found.active, found.paused) == (False, "gone")

        await eventually(paused)
    await store.of(Webhooks).delete(made.id)


async def test_a_target_that_has_failed_for_a_day_pauses_its_subscription_and_an_event_tells_of_it(
    store: Store, queue: str, target: WebhookTarget
) -> None:
    made = await subscribe(store, target.url, "*", queues=(queue,))
    await store.of(Webhooks).change(made.id, lambda old, moment: replace(old, updated_at=1, op=moment.op))
    a_day_ago = store.clock.now() - 24 * 3_600_000
    await store.of(Webhooks).note(made.id, Tally(failed=49, in_a_row=49, failing_since=a_day_ago))
    target.answer = lambda _got: (503, {})
    async with delivering(store):
        await happens(store, "job.completed", "one", queue)

        async def paused() -> bool:
            return (await store.of(Webhooks).get(made.id)).paused == "failing"

        await eventually(paused)
        told = await eventually(lambda: events(store, "webhook.paused", made.id))
    assert [msgspec.json.decode(one.body)["data"] for one in told] == [{"subscription_id": made.id, "reason": "failing"}]
    resumed = await store.of(Webhooks).change(made.id, lambda old, moment: old.changed(moment, active=True, paused=None))
    health = await store.of(Webhooks).health(made.id)
    assert not health.given_up(resumed.updated_at, store.clock.now())
    await store.of(Webhooks).delete(made.id)


async def test_a_target_that_hangs_holds_up_no_other(store: Store, queue: str, target: WebhookTarget) -> None:
    release = threading.Event()

    def hang(_got: Got) -> tuple[int, dict[str, str]]:
        release.wait(60)
        return 200, {}

    with WebhookTarget.started() as slow:
        slow.answer = hang
        hanging = await subscribe(store, slow.url, "*", queues=(queue,))
        quick = await subscribe(store, target.url, "*", queues=(queue,))
        names = [f"event-{number}" for number in range(30)]
        try:
            async with delivering(store):
                for name in names:
                    await happens(store, "job.completed", name, queue)
                await arrived(target, *names)
                assert 0 < len(slow.got) <= 8
        finally:
            release.set()
        await store.of(Webhooks).delete(hanging.id)
        await store.of(Webhooks).delete(quick.id)


async def test_two_processes_share_the_events_of_a_subscription(
    store: Store, other: Store, queue: str, target: WebhookTarget
) -> None:
    made = await subscribe(store, target.url, "*", queues=(queue,))
    names = [f"event-{number}" for number in range(60)]
    async with delivering(store), delivering(other):
        for name in names:
            await happens(store, "job.completed", name, queue)
        await arrived(target, *names)
    assert sorted(target.subjects) == sorted(names)
    await store.of(Webhooks).delete(made.id)


async def test_what_is_in_hand_at_a_stop_comes_to_another_process_at_once(
    store: Store, other: Store, queue: str, target: WebhookTarget
) -> None:
    release = threading.Event()

    def hang_once(_got: Got) -> tuple[int, dict[str, str]]:
        if len(target.got) == 1:
            release.wait(60)
        return 200, {}

    target.answer = hang_once
    made = await subscribe(store, target.url, "*", queues=(queue,))
    try:
        async with delivering(store):
            await happens(store, "job.completed", "in-hand", queue)
            await arrived(target, "in-hand")
        async with delivering(other):

            def twice() -> bool:
                return target.subjects == ["in-hand", "in-hand"]

            await eventually(twice, 20.0)  # sooner than by the time of a delivery alone
    finally:
        release.set()
    await store.of(Webhooks).delete(made.id)


async def test_a_subscription_goes_on_with_other_events_and_another_target(
    store: Store, queue: str, target: WebhookTarget
) -> None:
    made = await subscribe(store, target.url, "job.completed", queues=(queue,))
    async with delivering(store):
        await happens(store, "job.completed", "first", queue)
        await arrived(target, "first")
        with WebhookTarget.started() as another:
            wanted = {"url": another.url, "events": ("job.failed", "job.failed.*", "queue.*")}
            await store.of(Webhooks).change(made.id, lambda old, moment: old.changed(moment, **wanted))

            async def changed() -> bool:
                await happens(store, "job.failed", "second", queue)
                return "second" in another.subjects

            await eventually(changed)
            await happens(store, "job.completed", "third", queue)
            await happens(store, "queue.paused", "fourth", queue)
            await arrived(another, "fourth")
            assert set(another.subjects) == {"second", "fourth"}
    assert target.subjects == ["first"]
    await store.of(Webhooks).delete(made.id)


async def test_an_event_that_can_not_be_read_holds_up_no_other(store: Store, queue: str, target: WebhookTarget) -> None:
    made = await subscribe(store, target.url, "*", queues=(queue,))
    async with delivering(store):
        with capture_logs() as logs:
            await put(store.nats, store.config.event("job.completed", queue, "torn"), b'{"id": 1}', None, "an event")
            await happens(store, "job.completed", "sound", queue)
            await arrived(target, "sound")

            def told() -> bool:
                return "an event can't be read and is brought to no webhook" in [one["event"] for one in logs]

            await eventually(told)
    assert target.subjects == ["sound"]
    await store.of(Webhooks).delete(made.id)


async def test_a_restart_of_nats_loses_neither_an_event_nor_a_failed_delivery(
    nats_server: NatsServer, open_store: OpenStore, queue: str, target: WebhookTarget
) -> None:
    store = await open_store(nats_server.url)
    made = await subscribe(store, target.url, "*", queues=(queue,))
    fails = ["fails"]
    target.answer = lambda got: (503 if got.event["subject"] in fails else 200, {})
    async with delivering(store):
        await happens(store, "job.completed", "fails", queue)
        failing = await one_that_is(store, made, "failing")
        await store.of(Webhooks).deliveries.store(replace(failing, next_at=store.clock.now() + 2_000))
        await store.of(Webhooks).change(made.id, lambda old, moment: old.changed(moment, active=False))
        await happens(store, "job.completed", "meanwhile", queue)
        nats_server.restart()
        fails.clear()

        async def resumed() -> bool:
            try:
                await store.of(Webhooks).change(made.id, lambda old, moment: old.changed(moment, active=True))
            except OjsError:
                return False
            return True

        await eventually(resumed)
        await arrived(target, "meanwhile")
        through = await one_that_is(store, made, "delivered")
    assert (through.id, through.attempts) == (failing.id, 2)


async def test_a_deleted_subscription_leaves_nothing(store: Store, queue: str, target: WebhookTarget) -> None:
    target.answer = lambda _got: (503, {})
    made = await subscribe(store, target.url, "*", queues=(queue,))
    name = Subjects(store.config).consumer(made.id)
    streams = (store.config.events_stream, store.config.records_stream)
    async with delivering(store):
        await happens(store, "job.completed", "one", queue)
        failing = await one_that_is(store, made, "failing")
        for stream in streams:
            assert name in await consumer_names(store.nats, stream, CONSUMER)
        with unreachable(store.nats, "$JS.API.CONSUMER.DELETE.", 2) as refused:  # a cluster is about to make them
            await store.of(Webhooks).delete(made.id)
        assert len(refused) == 2
        # What somebody had in hand when it was deleted.
        await store.of(Webhooks).note(made.id, Tally(failed=1, in_a_row=1))
        await store.of(Webhooks).deliveries.store(failing)

        async def gone() -> bool:
            await store.of(Webhooks).tidy()
            left = [name in await consumer_names(store.nats, stream, CONSUMER) for stream in streams]
            return not any(left) and await of(store, made) == [] and await store.of(Webhooks).health(made.id) == TargetHealth()

        await eventually(gone)
    assert made.id not in [one.id for one in await store.of(Webhooks).all()]
