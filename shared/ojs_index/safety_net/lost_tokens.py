"""Available jobs that have no token (docs/adr/028).

Three steps, from what costs nothing to what is certain. The index names jobs that became available long before the
first token of their kind that is still to be handed out; tokens are handed out in order, so theirs should have gone.
Their records say whether that is so now. Then the tokens of the queue are looked through: a job whose token isn't
among them, and that nobody is about to give one, has lost it, however busy or late anybody may be.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, get_args

from ojs_engine.base.portions import in_portions
from ojs_engine.domain.job import Job, Service, State
from ojs_engine.jetstream.contents import message
from ojs_engine.store.records.records import job_reader
from ojs_engine.store.records.tokens import Tokens, read_token
from ojs_engine.store.store import Store
from ojs_index.reading import lists
from ojs_index.reading.lists import FIRST, WaitingJob
from ojs_index.sqlite.model import Model
from ojs_link.timings import Timings

_AT_ONCE: Final = 100
"""Jobs of a kind that a round reads first; the next round goes on behind them."""
_MORE: Final = 1_000
"""Jobs of a kind that a round reads next, if some of the first had lost their tokens: a batch may have lost all."""
_READS: Final = 100
"""Records that are read together."""
_SERVICES: Final = get_args(Service)


class LostTokenTimings(Timings, frozen=True, kw_only=True):
    """How long a token is waited for, and how many are searched in a round."""

    grace_ms: int = 5_000
    """How long a record has to be stored before its token is missed: whoever stored it tries for 3 s to store the
    token as well, should that have been refused.
    """
    page: int = 1_000
    """Tokens that one read brings."""
    pages: int = 20
    """Pages of a queue's tokens that are searched in one round; the next goes on behind them."""


class LostToken(NamedTuple):
    """An available job, and the word of the token that it has lost."""

    job_id: str
    word: str


@dataclass(slots=True)
class _Search:
    """Tokens that are looked for among those of a queue: their words by job, and how far that has come."""

    wanted: dict[str, str] = field(default_factory=dict)
    after: int = 0


class LostTokens:
    """Remembers from round to round how far it has come."""

    def __init__(self, store: Store, model: Model, timings: LostTokenTimings) -> None:
        self._timings = timings
        self._store = store
        self._model = model
        self._tokens = Tokens(store.nats, store.bulk, store.config)
        self._after: dict[WaitingJob, tuple[int, str]] = {}
        self._searches: dict[str, _Search] = {}

    async def look(self) -> AsyncIterator[list[LostToken]]:
        """Look for lost tokens once, and yield those of a queue together, in the order in which their jobs became
        available.

        Raises OjsError backend_unavailable.
        """
        queues: dict[str, list[WaitingJob]] = {}
        for kind in lists.waiting_kinds(self._model):
            queues.setdefault(kind.queue, []).append(kind)
        for gone in self._searches.keys() - queues.keys():
            del self._searches[gone]
        self._after = {kind: at for kind, at in self._after.items() if kind.queue in queues}
        for queue, kinds in queues.items():
            # Nobody can fetch from a paused queue, so nothing waits for a token there.
            if await self._store.queues.held(queue):
                continue
            most = _AT_ONCE
            while lost := await self._look_at(queue, kinds, most):
                yield lost
                most = _MORE
                if all(self._after.get(kind, FIRST) == FIRST for kind in kinds):
                    break

    async def _look_at(self, queue: str, kinds: list[WaitingJob], most: int) -> list[LostToken]:
        """The lost tokens among those of up to `most` jobs of each kind; none while their search isn't at its end."""
        search = self._searches.pop(queue, None) or await self._begin(queue, kinds, most)
        if not search.wanted:
            return []
        if not await self._go_on(queue, search):
            self._searches[queue] = search
            return []
        return [LostToken(job_id, word) for job_id, word in search.wanted.items()]

    async def _begin(self, queue: str, kinds: list[WaitingJob], most: int) -> _Search:
        """What to look for in a queue.

        All that could still give a job its token is ruled out before its tokens are read.
        """
        search = _Search()
        for kind in kinds:
            suspects = await self._without_held(await self._suspects(kind, most))
            due = await self._due([job.id for job in suspects])
            search.wanted |= {job.id: job.token or "" for job in suspects if job.id not in due}
        if search.wanted:
            await self._tokens.settle(queue)
        return search

    async def _suspects(self, kind: WaitingJob, most: int) -> list[Job]:
        """Up to `most` jobs that became available before the first token of their kind was stored, the oldest first."""
        late = self._store.clock.now() - self._timings.grace_ms
        if not lists.waiting_before(self._model, kind, late, 1):
            self._after[kind] = FIRST
            return []
        # The first token is read before the list: one that comes later can only be newer.
        first = await self._tokens.first_at(*kind)
        before = late if first is None else min(first - self._timings.grace_ms, late)
        found = lists.waiting_before(self._model, kind, before, most, self._after.get(kind, FIRST))
        self._after[kind] = found[-1] if len(found) == most else FIRST
        ids = [job_id for _, job_id in found]
        jobs = await in_portions(ids, partial(self._long_available, kind=kind, late=late), _READS)
        return [job for job in jobs if job is not None]

    async def _long_available(self, job_id: str, kind: WaitingJob, late: int) -> Job | None:
        """The job as the leader has it, if it is of the kind and stored since before `late`."""
        config = self._store.config
        found = await message(self._store.nats, config.records_stream, {"last_by_subj": config.job(job_id)}, "a record")
        if found is None or not found.data or found.at >= late:
            return None
        job = job_reader.read(job_id, found.seq, found.data)
        waits = job is not None and job.state is State.AVAILABLE and not job.deleted and (job.queue, job.priority) == kind
        return job if waits else None

    async def _without_held(self, suspects: list[Job]) -> list[Job]:
        """Return the jobs whose tokens no gate holds."""
        gate = self._store.start_gate
        asking = [] if gate is None else [job for job in suspects if gate.asks(job)]
        if gate is None or not asking:
            return suspects
        held = await gate.held(asking, self._timings.grace_ms)
        return [job for job in suspects if job.id not in held]

    async def _due(self, job_ids: list[str]) -> set[str]:
        """Return the jobs whose due message waits: it comes again, and the token is stored again with it."""
        config, records = self._store.config, self._store.records
        subjects = {config.due(service, job_id): job_id for job_id in job_ids for service in _SERVICES}
        if records.nearest_is_leader:
            return {subjects[subject] for subject in (await records.many_raw(list(subjects)) if subjects else ())}
        found = await in_portions(list(subjects), records.leader_raw, _READS)
        return {job_id for job_id, one in zip(subjects.values(), found, strict=True) if one is not None}

    async def _go_on(self, queue: str, search: _Search) -> bool:
        """Take out what is found among the tokens of a queue; whether the end has been reached."""
        held = self._store.start_gate is not None  # without a gate nobody lets those go on that one has held before
        for _ in range(self._timings.pages):
            page = await self._tokens.page(queue, search.after, self._timings.page, held=held)
            for token in page.tokens:
                search.after = token.sequence
                if (said := _said(token.data)) is not None:
                    _take_out(search.wanted, *said)
            if page.end or not search.wanted:
                return True
        return False


def _said(token: bytes) -> tuple[str, str] | None:
    """The job and the word of a token; None for what is none."""
    try:
        job_id, word, _ = read_token(token)
    except ValueError:
        return None
    return job_id, word


def _take_out(wanted: dict[str, str], job_id: str, word: str) -> None:
    if wanted.get(job_id) == word:
        del wanted[job_id]
