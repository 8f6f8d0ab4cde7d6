"""Purging a queue that holds more jobs than one request removes."""

from __future__ import annotations

from typing import Any

from ojs_engine.domain.job import State
from ojs_gateway.queue_removal import QueueRemoval
from ojs_index.asking.messages import JobPage, JobRow, JobsAsk

PAGE = 4


class Index:
    """Jobs by state, created at 1, 2, 3 …, each ended ten later if it has."""

    def __init__(self, **numbers: int) -> None:
        self.rows = {State(state): [row(State(state), at) for at in range(1, number + 1)] for state, number in numbers.items()}
        self.asked: list[JobsAsk] = []

    async def jobs(self, ask: JobsAsk) -> JobPage:
        self.asked.append(ask)
        assert ask.state is not None
        assert ask.ascending
        rows = [row for row in self.rows.get(ask.state, ()) if ask.until is None or row.created_at <= ask.until]
        start = int(ask.cursor or 0)
        more = str(start + PAGE) if start + PAGE < len(rows) else None
        return JobPage(jobs=rows[start : start + PAGE], total=len(rows), next_cursor=more)


def row(state: State, at: int) -> JobRow:
    finished_at = at + 10 if state is State.COMPLETED else None
    return JobRow(id=f"{state}-{at}", type="t", queue="q", state=state, created_at=at, finished_at=finished_at)


async def removed(
    index: Index, *states: State, before: int | None = None, max_jobs: int = 5_000
) -> tuple[list[str], tuple[int, int]]:
    nothing: Any = None
    queries: Any = index
    ids: list[str] = []

    async def act(job_id: str) -> None:
        ids.append(job_id)

    return ids, await QueueRemoval(nothing, queries, max_jobs)._all("q", states, act, before, at_once=1)


async def test_the_oldest_go_first_and_the_rest_is_counted() -> None:
    ids, outcome = await removed(Index(available=15, scheduled=3), State.AVAILABLE, State.SCHEDULED, max_jobs=6)
    assert ids == [f"available-{at}" for at in range(1, 7)]
    assert outcome == (6, 12)


async def test_all_states_are_gone_through_while_there_is_room() -> None:
    ids, outcome = await removed(Index(available=5, scheduled=3), State.AVAILABLE, State.SCHEDULED)
    assert (len(ids), outcome) == (8, (8, 0))


async def test_only_what_ended_before_goes_and_what_is_younger_is_not_read() -> None:
    index = Index(completed=100)
    ids, outcome = await removed(index, State.COMPLETED, before=20)
    assert ids == [f"completed-{at}" for at in range(1, 10)]
    assert outcome == (9, 0)
    assert all(ask.until == 19 for ask in index.asked)
    assert (await removed(Index(completed=100), State.COMPLETED, before=20, max_jobs=4))[1] == (4, 15)
