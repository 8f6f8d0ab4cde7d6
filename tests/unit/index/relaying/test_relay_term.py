from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.domain.events.source import EventSource
from ojs_engine.domain.job import Entry, Job, Membership
from ojs_engine.jetstream.event_log import Appended, EventLog, Fenced, Outgoing
from ojs_engine.jetstream.feed import Record
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.store import Store
from ojs_features.workflows.events import creation_of
from ojs_features.workflows.plug import WORKFLOWS
from ojs_features.workflows.record import Workflow, WorkflowEntry
from ojs_index.relaying.event_sources import EventSources
from ojs_index.relaying.relay_term import RelayTerm, TermLimits
from ojs_index.sqlite.model import Seen
from support.waiting import eventually
from unit.index.samples import NOW, barrier, epoch, job, logged, seen


class Stream:
    """An event stream in memory, with the fence of the real one."""

    def __init__(self) -> None:
        self.stored: list[Outgoing] = []
        self.workflows: dict[str, Workflow] = {}
        self.batches: list[int] = []
        self.apart: list[bool] = []
        self.asked: list[str] = []
        self.refuse: OjsError | None = None
        self.limiter = asyncio.Event()
        self.limiter.set()
        self.looking = asyncio.Event()
        self.looking.set()

    async def last_of(self, job_id: str) -> Appended | None:
        self.asked.append(job_id)
        await self.looking.wait()
        of_job = [event for event in self.stored if event.subject.endswith(job_id)]
        return Appended(of_job[-1].created_at, of_job[-1].entry) if of_job else None

    async def creation(self, workflow_id: str) -> EventSource | None:
        found = self.workflows.get(workflow_id)
        return None if found is None else creation_of(found)

    async def append(self, events: Sequence[Outgoing], after: int, *, apart: bool = False) -> int:
        self.apart.append(apart)
        await self.limiter.wait()
        if self.refuse is not None:
            raise self.refuse
        if after != len(self.stored):
            raise Fenced
        self.stored += events
        self.batches.append(len(events))
        return len(self.stored)

    def entries(self, job_id: str) -> list[int]:
        return [event.entry for event in self.stored if event.subject.endswith(job_id)]


def term_on(stream: Stream, *, began_at: int = NOW, done: int = 0, **limits: int) -> RelayTerm:
    return RelayTerm(
        cast("EventLog", stream),
        StoreConfig(),
        EventSources(cast("Store", None), WORKFLOWS.followed).of,
        stream.creation,
        last=len(stream.stored),
        began_at=began_at,
        done=done,
        limits=TermLimits(pace_s=0.0, **limits),
    )


@pytest.fixture
def stream() -> Stream:
    return Stream()


Begin = Callable[..., Awaitable[RelayTerm]]


@pytest.fixture
async def begin(stream: Stream) -> AsyncIterator[Begin]:
    begun: list[RelayTerm] = []

    async def start(*, began_at: int = NOW, done: int = 0, **limits: int) -> RelayTerm:
        tenure = term_on(stream, began_at=began_at, done=done, **limits)
        tenure.start()
        begun.append(tenure)
        return tenure

    yield start
    for tenure in begun:
        await tenure.stop()


async def test_each_entry_is_relayed_once_in_order(begin: Begin, stream: Stream) -> None:
    tenure = await begin()
    await tenure.take([seen(1, logged("pushed"))])
    await tenure.take([seen(2, logged("pushed", "claimed")), seen(5, logged("pushed", "claimed", "acked"))])
    await tenure.take([seen(5, logged("pushed", "claimed", "acked"))])
    await eventually(lambda: tenure.done == 5)
    assert stream.entries("job-1") == [1, 2, 3]
    assert [event.sequence for event in stream.stored] == [1, 2, 5]


@given(cuts=st.lists(st.integers(1, 9), max_size=9), turns=st.lists(st.integers(0, 3), max_size=9))
def test_no_entry_is_lost_or_doubled_however_revisions_are_coalesced_and_tenures_change(
    cuts: list[int], turns: list[int]
) -> None:
    """Revisions of one job, any of them skipped, over tenures that each begin with a part read again."""

    async def run() -> list[int]:
        stream = Stream()
        revisions = sorted({*cuts, 9})
        tenures = 0
        tenure: RelayTerm | None = None
        for place, length in enumerate(revisions):
            if tenure is None or (place < len(turns) and turns[place] == 0):
                if tenure is not None:
                    await tenure.drain(1.0)
                    await tenure.stop()
                tenure = term_on(stream)
                tenure.start()
                tenures += 1
                if place:
                    await tenure.take([seen(revisions[place - 1], of_length(revisions[place - 1]))])
            await tenure.take([seen(length, of_length(length))])
        assert tenure is not None
        await tenure.drain(1.0)
        await tenure.stop()
        return stream.entries("job-1")

    def of_length(length: int) -> Job:
        words = ["pushed"] + ["claimed", "requeued"] * 4
        return logged(*words[:length])

    assert asyncio.run(run()) == list(range(1, 10))


DELETED = ("pushed", "claimed", "failed", "deleted")


async def test_a_job_in_a_deleted_ones_place_goes_on_behind_what_was_told_of_that(begin: Begin, stream: Stream) -> None:
    tenure = await begin()
    await tenure.take([seen(3, logged(*DELETED[:3]))])
    await tenure.take([seen(5, logged(*DELETED, "pushed", created_at=NOW + 100))])
    await eventually(lambda: tenure.done == 5)
    assert stream.entries("job-1") == [1, 2, 3, 3, 3, 4, 5]  # the failure is three events
    heir = await begin(began_at=NOW - 60_000)
    await heir.take([seen(6, logged(*DELETED, "pushed", "claimed", created_at=NOW + 100))])
    await eventually(lambda: heir.done == 6)
    assert stream.entries("job-1") == [1, 2, 3, 3, 3, 4, 5, 6]


async def test_a_successor_asks_what_was_told_of_a_deleted_job_however_young_the_next_is(begin: Begin, stream: Stream) -> None:
    stream.stored.append(Outgoing("ojs.events.job.started.default.job-1", b"", NOW, 2, 2))
    tenure = await begin(began_at=NOW - 60_000)
    await tenure.take([seen(5, logged(*DELETED, "pushed", created_at=NOW + 100))])
    await eventually(lambda: tenure.done == 5)
    assert stream.asked == ["job-1"]
    assert stream.entries("job-1")[0] == 2
    assert set(stream.entries("job-1")[1:]) == {3, 4, 5}


async def test_a_job_first_met_goes_on_behind_its_last_stored_event(begin: Begin, stream: Stream) -> None:
    stream.stored.append(Outgoing("ojs.events.job.started.default.job-1", b"", NOW, 2, 2))
    tenure = await begin()
    await tenure.take([seen(3, logged("pushed", "claimed", "acked"))])
    await eventually(lambda: tenure.done == 3)
    assert stream.entries("job-1") == [2, 3]


async def test_another_job_under_the_same_id_begins_anew(begin: Begin, stream: Stream) -> None:
    stream.stored.append(Outgoing("ojs.events.job.started.default.job-1", b"", NOW - 10**6, 7, 2))
    tenure = await begin()
    await tenure.take([seen(3, logged("pushed"))])
    await eventually(lambda: tenure.done == 3)
    assert stream.entries("job-1") == [7, 1]
    await tenure.take([seen(9, logged("pushed", created_at=NOW + 5))])
    await eventually(lambda: tenure.done == 9)
    assert stream.entries("job-1") == [7, 1, 1]


async def test_only_jobs_that_a_predecessor_may_have_met_are_looked_up(begin: Begin, stream: Stream) -> None:
    stream.stored.append(Outgoing("ojs.events.job.started.default.other", b"", NOW, 1, 1))
    tenure = await begin()
    late = logged("pushed", id="late", created_at=NOW + 60_000)
    await tenure.take([seen(1, logged("pushed", id="early")), seen(2, late)])
    await tenure.take([seen(3, logged("pushed", "claimed", id="early"))])
    assert stream.asked == ["early"]


async def test_nothing_is_looked_up_where_nothing_is_stored(begin: Begin, stream: Stream) -> None:
    tenure = await begin()
    await tenure.take([seen(1, logged("pushed"))])
    await eventually(lambda: tenure.done == 1)
    assert (stream.asked, stream.entries("job-1")) == ([], [1])


async def test_what_the_predecessor_has_done_is_not_even_looked_at(begin: Begin, stream: Stream) -> None:
    stream.stored.append(Outgoing("ojs.events.job.started.default.other", b"", NOW, 1, 1))
    tenure = await begin(done=5)
    await tenure.take([seen(5, logged("pushed", id="old")), seen(6, logged("pushed", id="new"))])
    await eventually(lambda: tenure.done == 6)
    assert (stream.asked, stream.entries("old"), stream.entries("new")) == (["new"], [], [1])


async def test_forgotten_jobs_are_looked_up_again(begin: Begin, stream: Stream) -> None:
    tenure = await begin(known=2)
    for n in range(3):
        await tenure.take([seen(n + 1, logged("pushed", id=f"job-{n}", created_at=NOW + 60_000))])
    await tenure.drain(1.0)
    await tenure.take([seen(9, logged("pushed", "claimed", id="job-0", created_at=NOW + 60_000))])
    await eventually(lambda: tenure.done == 9)
    assert stream.asked == ["job-0"]
    assert stream.entries("job-0") == [1, 2]


async def test_events_of_one_entry_stay_together(begin: Begin, stream: Stream) -> None:
    tenure = await begin(batch=3)
    stream.limiter.clear()
    retried = [Entry(n=1, op="op", event="retried", at=NOW, reason="dead_letter")]
    await tenure.take([seen(n, job(f"job-{n}", transitions=tuple(retried))) for n in range(1, 5)])
    stream.limiter.set()
    await eventually(lambda: tenure.done == 4)
    assert stream.batches == [2, 2, 2, 2]


async def test_events_of_different_entries_may_be_stored_apart(begin: Begin, stream: Stream) -> None:
    tenure = await begin()
    await tenure.take([seen(1, logged("pushed", "claimed"))])
    await eventually(lambda: tenure.done == 1)
    await tenure.take(
        [seen(2, job("other", transitions=(Entry(n=1, op="op", event="retried", at=NOW, reason="dead_letter"),)))]
    )
    await eventually(lambda: tenure.done == 2)
    assert stream.apart == [True, False]


async def test_done_never_claims_what_is_still_waiting(begin: Begin, stream: Stream) -> None:
    tenure = await begin()
    stream.limiter.clear()
    await tenure.take([seen(3, logged("pushed")), seen(4, logged("pushed", id="job-2")), barrier(7)])
    assert tenure.done == 2
    stream.limiter.set()
    await eventually(lambda: tenure.done == 7)


async def test_records_without_news_move_done_on(begin: Begin) -> None:
    tenure = await begin(done=5)
    await tenure.take([barrier(9)])
    assert tenure.done == 9


async def test_reading_waits_while_writing_is_behind(begin: Begin, stream: Stream) -> None:
    tenure = await begin(waiting=2)
    stream.limiter.clear()
    taking = asyncio.create_task(tenure.take([seen(n, logged("pushed", id=f"job-{n}")) for n in range(1, 6)]))
    await eventually(lambda: tenure._waiting > 2)
    assert not taking.done()
    stream.limiter.set()
    await asyncio.wait_for(taking, 60.0)


# Workflows


def member(job_id: str, *events: str, opens: int = 0) -> Job:
    place = Membership(id="flow", node=0, kind="chain", step="s", index=0, size=1, opens=opens)
    return logged(*events, id=job_id, workflow=place)


def flow(*events: str) -> Workflow:
    log = tuple(WorkflowEntry(n=n, op=f"op{n}", event=event, at=NOW + n) for n, event in enumerate(events, 1))
    return Workflow(id="flow", name="flow", kind="chain", states="q", created_at=NOW, log=log)


def types_of(stream: Stream) -> list[str]:
    return [".".join(event.subject.split(".")[2:4]) for event in stream.stored]


async def test_a_workflow_is_created_ahead_of_what_its_jobs_do_though_its_record_comes_later(
    begin: Begin, stream: Stream
) -> None:
    stream.workflows["flow"] = record = flow("created", "completed")
    tenure = await begin()
    await tenure.take([seen(1, member("first", "pushed")), seen(2, member("second", "pushed"))])
    await tenure.take([Seen(Record("workflow", 3, NOW + 3, "flow", b"{}", None), None, record)])
    await eventually(lambda: tenure.done == 3)
    assert types_of(stream) == ["workflow.created", "job.enqueued", "job.enqueued", "workflow.completed"]
    assert stream.entries("flow") == [1, 2]


async def test_a_workflow_that_was_told_of_before_the_tenure_is_not_created_again(begin: Begin, stream: Stream) -> None:
    stream.workflows["flow"] = flow("created")
    stream.stored.append(Outgoing("ojs.events.workflow.created.workflow.flow", b"", NOW, 1, 1))
    tenure = await begin()
    await tenure.take([seen(2, member("first", "pushed"))])
    await eventually(lambda: tenure.done == 2)
    assert types_of(stream) == ["workflow.created", "job.enqueued"]


# The end of a tenure


async def test_a_fenced_append_ends_the_tenure_and_nothing_follows(begin: Begin, stream: Stream) -> None:
    stopped = await begin()
    rival = await begin()
    await rival.take([seen(1, logged("pushed"))])
    await eventually(lambda: rival.done == 1)
    await stopped.take([seen(1, logged("pushed")), seen(2, logged("pushed", id="job-2"))])
    await eventually(lambda: stopped.over is not None)
    await stopped.take([seen(3, logged("pushed", id="job-3"))])
    await asyncio.sleep(0)
    assert [event.subject.rpartition(".")[2] for event in stream.stored] == ["job-1"]
    assert stopped.done == 0


async def test_an_end_amid_a_batch_claims_nothing_of_it(begin: Begin, stream: Stream) -> None:
    stream.stored.append(Outgoing("ojs.events.job.started.default.other", b"", NOW, 1, 1))
    stream.refuse = unavailable("no answer")
    stream.looking.clear()
    tenure = await begin()
    await tenure.take([seen(1, logged("pushed", id="new", created_at=NOW + 60_000))])
    taking = asyncio.create_task(tenure.take([seen(2, logged("pushed"))]))
    await eventually(lambda: tenure.over == "no answer")
    stream.looking.set()
    await taking
    assert tenure.done == 0


async def test_an_append_that_may_or_may_not_be_stored_ends_the_tenure(begin: Begin, stream: Stream) -> None:
    stream.refuse = unavailable("no answer")
    tenure = await begin()
    await tenure.take([seen(1, logged("pushed"))])
    await eventually(lambda: tenure.over == "no answer")
    assert tenure.done == 0


# A reset


async def test_a_reset_waits_for_the_append_under_way_and_drops_the_rest(begin: Begin, stream: Stream) -> None:
    tenure = await begin()
    stream.limiter.clear()
    await tenure.take([seen(1, logged("pushed"))])
    await eventually(tenure._appending.locked)
    await tenure.take([seen(2, logged("pushed", id="job-2"))])
    holding = asyncio.create_task(tenure.hold())
    await eventually(lambda: tenure.held)
    assert not holding.done()
    stream.limiter.set()
    await asyncio.wait_for(holding, 60.0)
    stored = len(stream.stored)
    stream.stored.clear()  # the reset's purge; sequences go on
    tenure._last = 0  # in memory they begin anew
    await tenure.take([seen(3, logged("pushed", id="job-3"))])
    assert stream.stored == []
    again = logged("pushed", id="job-1")
    await tenure.take([epoch(4), seen(5, again)])
    await eventually(lambda: tenure.done == 5)
    assert stored >= 1
    assert [event.subject.rpartition(".")[2] for event in stream.stored] == ["job-1"]
