"""The stream of the audit on a real nats-server: what gets there, what nobody can take out, and trouble on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import pytest

from integration.conftest import MakeServer, OpenStore
from integration.samples import KINDS, frozen, losing_answers, unreachable
from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.api import call, purge, put
from ojs_engine.store.store import Store
from ojs_engine.telemetry.metrics import REGISTRY
from ojs_features.audit.entry import Detail, Entry, encode
from ojs_features.audit.fill import Fill, audit_fill
from ojs_features.audit.reading import AuditReader, Read, Wanted
from ojs_features.audit.repeats import Owner
from ojs_features.audit.trail import AuditTimings, Trail
from support.waiting import eventually


def audit_subjects(store: Store) -> str:
    return f"{store.config.namespace}.audit."


def entry(number: int, event_type: str = "admin.pause_queue", principal: str = "ada", queue: str = "mail") -> Entry:
    return Entry(
        timestamp="2026-01-01T00:00:00Z",
        event_type=event_type,
        principal=principal,
        source_ip="127.0.0.1",
        correlation_id=f"req_{number}",
        outcome="failure" if event_type.startswith("auth.") else "success",
        detail=Detail(operation="pauseQueue", target={"queue": queue}, principal_id=f"id-{principal}"),
    )


def counted(outcome: str) -> float:
    return REGISTRY.get_sample_value("ojs_audit_entries_total", {"outcome": outcome}) or 0.0


@asynccontextmanager
async def trail_of(store: Store, *, hold_s: float = 60.0, most: int = 1_000) -> AsyncIterator[Trail]:
    trail = Trail(store.nats, store.config, timings=AuditTimings(hold_s=hold_s, place_s=60.0), most=most)
    trail.start()
    try:
        yield trail
    finally:
        await trail.stop()


@pytest.fixture
async def reader(store: Store) -> AuditReader:
    return AuditReader(store.bulk, store.config)


async def kept(trail: Trail, one: Entry) -> None:
    """As an act has its entry kept."""
    await trail.take_place()
    await trail.keep(one)


async def place(reader: AuditReader) -> int:
    """Where the stream ends."""
    return (await reader.older(None, Wanted(), 1)).last


async def stored_at(store: Store, sequence: int) -> int:
    """When nats-server stored an entry, in Unix ms by its own clock."""
    answer = await call(store.nats, f"STREAM.MSG.GET.{store.config.audit_stream}", {"seq": sequence})
    return int(datetime.fromisoformat(answer["message"]["time"]).timestamp() * 1_000)


def numbers(reads: list[Read]) -> list[int]:
    return [int(read.entry.correlation_id.removeprefix("req_")) for read in reads]


async def test_an_entry_is_stored_when_it_was_kept(store: Store, reader: AuditReader) -> None:
    begun = await place(reader)
    async with trail_of(store) as trail:
        await kept(trail, entry(1))
        page = await reader.newer(begun, Wanted(), 10)
    assert [read.entry for read in page.entries] == [entry(1)]


async def test_nobody_can_take_an_entry_out(store: Store, reader: AuditReader) -> None:
    async with trail_of(store) as trail:
        await kept(trail, entry(1))
    last = await place(reader)
    stream = store.config.audit_stream
    error = await purge(store.nats, stream, "")
    assert error is not None
    assert "purge" in error.description
    answer = await call(store.nats, f"STREAM.MSG.DELETE.{stream}", {"seq": last})
    assert "error" in answer
    config = (await call(store.nats, f"STREAM.INFO.{stream}"))["config"]
    for member in ("deny_delete", "deny_purge"):
        assert "error" in await call(store.nats, f"STREAM.UPDATE.{stream}", config | {member: False})
    assert numbers((await reader.newer(last - 1, Wanted(), 1)).entries) == [1]


async def test_a_reset_leaves_it(store: Store, reader: AuditReader) -> None:
    begun = await place(reader)
    async with trail_of(store) as trail:
        await kept(trail, entry(7))
        await store.reset(KINDS)
        assert numbers((await reader.newer(begun, Wanted(), 10)).entries) == [7]


async def test_an_entry_whose_answer_was_lost_is_stored_once(store: Store, reader: AuditReader) -> None:
    begun = await place(reader)
    async with trail_of(store) as trail:
        with losing_answers(store.nats, audit_subjects(store), times=2) as lost:
            await asyncio.gather(*(kept(trail, entry(number)) for number in range(3)))
        assert len(lost) == 2
        assert sorted(numbers((await reader.newer(begun, Wanted(), 10)).entries)) == [0, 1, 2]


async def test_while_it_cannot_be_stored_nobody_waits_long_and_it_is_stored_later(store: Store, reader: AuditReader) -> None:
    begun, late = await place(reader), counted("late")
    async with trail_of(store, hold_s=0.01) as trail:
        with unreachable(store.nats, audit_subjects(store), times=3) as refused:
            await kept(trail, entry(1))
            assert counted("late") == late + 1

            async def stored() -> bool:
                return numbers((await reader.newer(begun, Wanted(), 10)).entries) == [1]

            await eventually(stored)
        assert len(refused) == 3


async def test_beyond_what_memory_holds_entries_are_lost_and_counted(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    lost = counted("lost")
    trail = Trail(store.nats, store.config, most=2)  # it isn't started, so all wait
    assert [trail.note(entry(number)) is not None for number in range(4)] == [True, True, False, False]
    assert counted("lost") == lost + 2
    said = capsys.readouterr()
    assert "req_3" in said.out + said.err
    await trail.stop()


async def test_very_many_acts_at_once_are_all_stored_in_a_flood_of_others(store: Store, reader: AuditReader) -> None:
    begun, lost = await place(reader), counted("lost")
    async with trail_of(store, most=20) as trail:
        for number in range(1_000, 1_020):
            trail.note(entry(number))
        await asyncio.gather(*(kept(trail, entry(number)) for number in range(500)))
        found = numbers((await reader.newer(begun, Wanted(), 1_000)).entries)
    assert counted("lost") == lost
    assert sorted(found) == [*range(500), *range(1_000, 1_020)]


async def test_an_act_that_finds_no_place_is_refused_before_it_is_done(store: Store) -> None:
    # It isn't started, so nothing leaves its place.
    trail = Trail(store.nats, store.config, timings=AuditTimings(place_s=0.01), most=2)
    await trail.take_place()
    await trail.take_place()
    with pytest.raises(OjsError, match="nothing was done") as refused:
        await trail.take_place()
    assert (refused.value.info.status, refused.value.retry_after) == (503, 2)
    trail.leave_place()
    await trail.take_place()
    trail.put(entry(1))
    trail.put(entry(2))
    await trail.stop()
    await trail.take_place()


async def test_what_waits_is_stored_at_the_end(store: Store, reader: AuditReader) -> None:
    begun = await place(reader)
    async with trail_of(store) as trail:
        trail.note(entry(1))
        for number in (2, 3, 4):
            trail.note_repeated(Owner("somebody"), "pause", entry(number))
    page = await reader.newer(begun, Wanted(), 10)
    assert numbers(page.entries) == [1, 2, 4]
    assert page.entries[-1].entry.detail.count == 2


async def test_an_end_is_not_held_up_by_a_server_that_is_silent(own_server: MakeServer, open_store: OpenStore) -> None:
    with own_server() as server:
        store = await open_store(server.url)
        lost = counted("lost")
        trail = Trail(store.nats, store.config)
        trail.start()
        async with frozen(server):
            trail.note(entry(1))
            async with asyncio.timeout(60):
                await trail.stop()
        assert counted("lost") == lost + 1


async def test_the_newest_are_read_first_page_by_page(store: Store, reader: AuditReader) -> None:
    async with trail_of(store) as trail:
        for number in range(7):
            await kept(trail, entry(number, queue="paged"))
    wanted, seen, before = Wanted(target="paged"), [], None
    while True:
        page = await reader.older(before, wanted, 3)
        seen.append(numbers(page.entries))
        if not page.entries:
            break
        before = page.place
    assert seen == [[6, 5, 4], [3, 2, 1], [0], []]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted(event_type="auth.*"), [2]),
        (Wanted(event_type="auth.login_failure"), [2]),
        (Wanted(event_type="admin.pause_queue"), [0, 1]),
        (Wanted(event_type="auth"), []),
        (Wanted(principal="bob"), [1]),
        (Wanted(principal="id-bob"), [1]),
        (Wanted(target="sms"), [1, 2]),
        (Wanted(outcome="failure"), [2]),
        (Wanted(operation="pauseQueue", outcome="success"), [0, 1]),
        (Wanted(operation="purgeQueue"), []),
    ],
)
async def test_it_is_filtered(store: Store, reader: AuditReader, wanted: Wanted, found: list[int]) -> None:
    begun = await place(reader)
    async with trail_of(store) as trail:
        await kept(trail, entry(0))
        await kept(trail, entry(1, principal="bob", queue="sms"))
        await kept(trail, entry(2, "auth.login_failure", queue="sms"))
    assert numbers((await reader.newer(begun, wanted, 10)).entries) == found
    newest = (await reader.older(None, wanted, 3)).entries
    assert numbers(newest)[: len(found)] == found[::-1]


async def test_a_time_narrows_it(store: Store, reader: AuditReader) -> None:
    begun = await place(reader)
    async with trail_of(store) as trail:
        await kept(trail, entry(0))
        await asyncio.sleep(0.01)  # the stream's times are compared to the millisecond
        await kept(trail, entry(1))
    second = await stored_at(store, await place(reader))
    since, until = Wanted(since=second), Wanted(until=second - 1)
    assert numbers((await reader.newer(begun, since, 10)).entries) == [1]
    assert numbers((await reader.newer(begun, until, 10)).entries) == [0]
    assert numbers((await reader.older(None, since, 10)).entries) == [1]
    assert numbers((await reader.older(None, until, 1)).entries) == [0]
    future = Wanted(since=store.clock.now() + 60_000)
    assert (await reader.older(None, future, 10)).entries == []


async def test_what_cannot_be_read_is_passed_over(store: Store, reader: AuditReader) -> None:
    begun = await place(reader)
    async with trail_of(store) as trail:
        await kept(trail, entry(0))
        for body in (b"", b"{", b"[]", b'{"timestamp":1}', b"\xff"):
            await put(store.nats, store.config.audit_entry("admin.pause_queue", "x"), body, None, "a test")
        await put(store.nats, store.config.audit_entry("admin.pause_queue", "x"), encode(entry(1)) + b" ", None, "a test")
    assert numbers((await reader.newer(begun, Wanted(), 10)).entries) == [0, 1]
    assert numbers((await reader.older(None, Wanted(), 2)).entries) == [1, 0]


async def test_a_question_behind_the_end_finds_nothing(reader: AuditReader) -> None:
    end = await place(reader)
    page = await reader.newer(end + 1_000, Wanted(), 10)
    assert (page.entries, page.has_more) == ([], False)
    page = await reader.older(1, Wanted(), 10)
    assert (page.entries, page.has_more) == ([], False)


async def test_entries_that_leave_before_their_time_show_in_its_fill(own_server: MakeServer, open_store: OpenStore) -> None:
    with own_server() as server:
        store = await open_store(server.url)
        stream = store.config.audit_stream
        assert await audit_fill(store.nats, store.config, store.clock.now()) == Fill(
            entries=0, most=5_000_000, age_ms=0, promised_ms=90 * 86_400_000
        )
        config = (await call(store.nats, f"STREAM.INFO.{stream}"))["config"]
        await call(store.nats, f"STREAM.UPDATE.{stream}", config | {"max_msgs": 10})
        async with trail_of(store) as trail:
            for number in range(9):
                await kept(trail, entry(number))
            fill = await audit_fill(store.nats, store.config, store.clock.now())
            assert (fill.nearly_full, fill.rolls_over) == (True, False)
            for number in range(9):
                await kept(trail, entry(number))
        fill = await audit_fill(store.nats, store.config, store.clock.now())
        assert (fill.entries, fill.nearly_full, fill.rolls_over) == (10, False, True)
