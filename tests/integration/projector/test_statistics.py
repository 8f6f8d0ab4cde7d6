"""Statistics over time equal what was done: whoever keeps them, whatever has left meanwhile, from whichever index."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import force_setattr

from integration.conftest import OpenStore
from integration.projector.conftest import StartProjector
from integration.projector.samples import ENDS, crash, lives, patient
from integration.samples import KINDS, draft, message, put_raw, subjects
from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import TERMINAL
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.subjects import REST
from ojs_engine.store.store import Store
from ojs_features.statistics.activity import COUNTED, Activity
from ojs_features.statistics.keeper import StatisticsTimings, StatisticsWriter
from ojs_features.statistics.records import HOUR_MS, MINUTE_MS, Span
from ojs_features.statistics.series import QUESTION, History, HistoryAsk
from ojs_projector.projector import Projector, ProjectorTimings
from support.nats import NatsServer
from support.system import Command, Processes
from support.waiting import PATIENCE_S, eventually

EACH = Counter(pushed=7, started=7, completed=2, failed=2, retried=1, discarded=1, cancelled=1)
"""What the lives of one job for each of `ENDS` are."""

Done = Counter[tuple[str, str]]


def done_by(*lived: tuple[str, int]) -> Done:
    """By queue and what, for so many rounds of `ENDS` in each queue."""
    found: Done = Counter()
    for queue, rounds in lived:
        found.update({(queue, name): number * rounds for name, number in EACH.items()})
    return found


@contextlib.contextmanager
def ago(store: Store, minutes: float) -> Iterator[None]:
    """What is done through `store` meanwhile says that it was done so long ago."""
    clock = store.clock
    present = clock.now
    clock.now = lambda: present() - round(minutes * MINUTE_MS)  # type: ignore[method-assign]
    try:
        yield
    finally:
        del clock.now


async def told(store: Store, step: int = MINUTE_MS) -> Done:
    now = store.clock.now()
    found: Done = Counter()
    for queue in "abcdef":
        ask = HistoryAsk(queue=queue, step_ms=step, since=now - 6 * HOUR_MS, until=now + MINUTE_MS)
        series = await patient(store).ask(QUESTION, ask, History)
        assert not series.partial
        for point in series.points:
            found.update({(queue, name): n for name in COUNTED if (n := getattr(point, name))})
    return found


async def kept(store: Store) -> list[str]:
    """Names of the records that are there."""
    prefix = len(store.config.record("stats", ""))
    every = await subjects(store, store.config.records_stream, store.config.record("stats", REST))
    return sorted(subject[prefix:] for subject in every)


async def let_records_leave(store: Store, ids: list[str]) -> None:
    """As when their TTL is over: nothing stays."""
    for job_id in ids:
        await call(store.nats, f"STREAM.PURGE.{store.config.records_stream}", {"filter": store.config.job(job_id)})


async def read_by(store: Store, *projectors: Projector) -> None:
    """Wait until all of them have read what is stored."""
    sequence = await put_raw(store, store.config.record("barrier", "test"), b"", "Nats-TTL: 60s\r\n")
    await eventually(lambda: all(projector.status().applied >= sequence for projector in projectors))


class Keeping:
    """Times of a writer that a test changes: with `steady_ms` at 0 minutes are kept as soon as they are over; not while a test
    pretends to be in them.
    """

    def __init__(self) -> None:
        self.timings = StatisticsTimings(look_s=0.05, steady_ms=10**15)

    def let(self, now: bool) -> None:
        force_setattr(self.timings, "steady_ms", 0 if now else 10**15)

    def wait(self, grace_ms: int) -> None:
        """Keep a minute so long after its end."""
        force_setattr(self.timings, "grace_ms", grace_ms)


@pytest.fixture
def keeping() -> Keeping:
    return Keeping()


@pytest.fixture
def projector_timings(keeping: Keeping) -> ProjectorTimings:
    return ProjectorTimings(wait_s=PATIENCE_S, features=(keeping.timings,))


async def test_counts_survive_takeover_rebuild_and_the_end_of_jobs(
    keeping: Keeping, start_projector: StartProjector, store: Store, tmp_path: Path
) -> None:
    # An hour that is kept is closed, with the minute that something is added to below. Now no such hour is over.
    keeping.wait(4 * MINUTE_MS)
    first = await start_projector()
    second = await start_projector()
    with ago(store, 70):
        old = await lives(store, len(ENDS), queues="ab")
    with ago(store, 6):
        await lives(store, 2 * len(ENDS), queues="cd")
    await read_by(store, first, second)
    keeping.let(True)

    async def minutes_and_an_hour() -> bool:
        names = await kept(store)
        return sum(name.startswith("minute") for name in names) >= 2 and any(name.startswith("hour") for name in names)

    await eventually(minutes_and_an_hour)
    await eventually(lambda: first.status().relaying or second.status().relaying)
    leader, other = (first, second) if first.status().relaying else (second, first)
    await crash(leader)
    removed = []
    for job_id in old:
        job = await store.jobs.get(job_id)
        if job.state in TERMINAL:
            await store.jobs.change(job_id, transitions.remove)
            removed.append(job_id)
    await lives(store, len(ENDS), queues="e")
    expected = done_by(("a", 1), ("b", 1), ("c", 2), ("d", 2), ("e", 1))
    assert await told(store) == expected
    await let_records_leave(store, removed)
    await eventually(lambda: other.status().relaying)
    keeping.let(False)
    with ago(store, 3):
        late = await lives(store, len(ENDS), queues="f")
    expected += done_by(("f", 1))
    before = len(await kept(store))
    await read_by(store, other)
    keeping.wait(MINUTE_MS // 2)
    keeping.let(True)

    async def kept_by_the_successor() -> bool:
        return len(await kept(store)) > before

    await eventually(kept_by_the_successor)
    await let_records_leave(store, late)
    assert await told(store) == expected
    await other.stop()
    await leader.stop()
    shutil.rmtree(tmp_path / "index")
    third = await start_projector()
    await eventually(lambda: not third.status().partial)
    assert await told(store) == expected
    assert await told(store, HOUR_MS) == expected


async def test_the_records_say_what_was_counted_and_leave_by_themselves(
    keeping: Keeping, projector: Projector, store: Store
) -> None:
    with ago(store, 2):
        await lives(store, len(ENDS), queues="ab")
    await read_by(store, projector)
    keeping.let(True)
    stored: dict[str, tuple[Span, int]] = {}
    """By name, with their TTL in seconds."""

    async def all_is_kept() -> bool:
        """In one minute or in two; their hour is kept as well if it is over."""
        for name in await kept(store):
            found = await message(store, store.config.record("stats", name)) if name.startswith("minute") else None
            if found is not None:
                stored[name] = msgspec.json.decode(found[0], type=Span), int(found[1]["Nats-TTL"].rstrip("s"))
        return sum(activity.pushed for span, _ in stored.values() for activity in span.queues.values()) == 2 * len(ENDS)

    await eventually(all_is_kept)
    found: Done = Counter()
    for name, (span, ttl_s) in stored.items():
        assert f"minute.{span.start // 1_000}.0" == name
        assert 86_400 - 240 < ttl_s <= 86_400
        for queue, activity in span.queues.items():
            found.update({(queue, member): n for member in COUNTED if (n := getattr(activity, member))})
    assert found == done_by(("a", 1), ("b", 1))
    assert projector.status().relaying


async def test_a_minute_that_somebody_has_kept_stays_as_it_is(projector: Projector, store: Store) -> None:
    start = (store.clock.now() // MINUTE_MS - 4) * MINUTE_MS
    span = Span(start=start, length=MINUTE_MS, queues={"a": Activity(pushed=42)})
    await put_raw(store, store.config.record("stats", f"minute.{start // 1_000}.0"), msgspec.json.encode(span))
    [keeper] = projector._keepers
    assert isinstance(keeper, StatisticsWriter)
    await keeper._keep(start, MINUTE_MS, {"a": Activity(pushed=7)})
    assert await told(store) == {("a", "pushed"): 42}


@pytest.mark.parametrize("early_ms", [1, 0])
async def test_a_minute_is_not_kept_before_it_is_surely_over(projector: Projector, store: Store, early_ms: int) -> None:
    assert projector._model is not None
    times = StatisticsTimings()
    writer = StatisticsWriter(store, projector._model, lambda: True, times)
    await store.enqueue.push(draft(queue="a"))
    now = store.clock.now()
    await told(store)
    at = now - now % MINUTE_MS + MINUTE_MS + times.grace_ms - early_ms
    for since in range(times.steady_ms, 0, -1_000):
        writer.caught_up(at - since)
        await writer.look()
        assert await kept(store) == [], "records have not come for long enough"
    writer.caught_up(at)
    await writer.look()
    assert len(await kept(store)) == (0 if early_ms else 1)


async def test_a_reset_empties_the_statistics(keeping: Keeping, projector: Projector, store: Store) -> None:
    with ago(store, 2):
        await lives(store, len(ENDS), queues="ab")
    await read_by(store, projector)
    keeping.let(True)

    async def there() -> list[str]:
        return await kept(store)

    await eventually(there)
    await store.reset(KINDS)
    assert await told(store) == {}
    assert await kept(store) == []
    await lives(store, len(ENDS), queues="a")
    assert await told(store) == done_by(("a", 1))
    assert projector.status().repaired == {}


# Whole processes


async def test_counts_survive_sigkill_and_an_empty_disk(
    processes: Processes, nats_server: NatsServer, open_store: OpenStore
) -> None:
    store = await open_store(nats_server.url)

    def projector(folder: str) -> Command:
        return processes.start("projector", "--projector-data", str(processes.folder / folder))

    with ago(store, 4):
        gone = await lives(store, len(ENDS), queues="ab")
    first = projector("one")
    await asyncio.to_thread(first.ready)
    second = projector("two")
    await asyncio.to_thread(second.ready)

    async def minute_is_kept() -> bool:
        return bool(await kept(store))

    await eventually(minute_is_kept)
    working = asyncio.create_task(lives(store, 3 * len(ENDS), queues="cd"))
    await asyncio.sleep(0)
    first.kill()
    await working
    await let_records_leave(store, gone)
    third = projector("three")
    await asyncio.to_thread(third.ready)
    second.kill()
    expected = done_by(("a", 1), ("b", 1), ("c", 3), ("d", 3))

    async def exact() -> bool:
        with contextlib.suppress(OjsError, AssertionError):
            return await told(store) == expected
        return False

    await eventually(exact)
