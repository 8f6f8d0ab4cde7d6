"""Available jobs that have no token (docs/adr/028).

Three steps, from what costs nothing to what is certain. The index names jobs that became available long before the first token
of their kind that is still to be handed out; tokens are handed out in order, so theirs should have gone. Their records say
whether that is so now. Then the tokens of the queue are looked through: a job whose token isn't among them, and that nobody is
about to give one, has lost it, however busy or late anybody may be.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msgspec import Struct

from ojs_core.domain.job import Job, State
from ojs_core.domain.rate_limits.policy import policy_of
from ojs_core.jetstream.contents import message
from ojs_core.jetstream.subjects import ANY
from ojs_core.store.capacity.stale_tokens import available_at
from ojs_core.store.rate_limits.permits import key_scope
from ojs_core.store.records.atomic import tokens_of
from ojs_core.store.records.records import job_reader
from ojs_core.store.records.tokens import Tokens, read_token
from ojs_core.store.store import Store
from ojs_projector.index.model import Model
from ojs_projector.reading import lists
from ojs_projector.reading.lists import FIRST, WaitingJob

_AT_ONCE: Final = 100
"""Jobs of a kind that are looked at in one round; the next goes on behind them."""
_SERVICES: Final = ("scheduler", "reaper")


class LostTokenTimings(Struct, frozen=True, kw_only=True):
    """How long a token is waited for, and how many are looked through in a round."""

    grace_ms: int = 5_000
    """How long a record has to be stored before its token is missed: whoever stored it tries for 3 s to store the token as
    well, should that have been refused."""
    page: int = 1_000
    pages: int = 20
    """Pages of a queue's tokens that are looked through in one round; the next goes on behind them."""


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

    async def look(self) -> AsyncIterator[LostToken]:
        """One round. Raises OjsError backend_unavailable."""
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
            search = self._searches.pop(queue, None) or await self._begin(queue, kinds)
            if not search.wanted:
                continue
            if not await self._go_on(queue, search):
                self._searches[queue] = search
                continue
            for job_id, word in search.wanted.items():
                yield LostToken(job_id, word)

    async def _begin(self, queue: str, kinds: list[WaitingJob]) -> _Search:
        """What to look for in a queue. All that could still give a job its token is ruled out before its tokens are read."""
        search = _Search()
        hinted: set[str] = set()
        for kind in kinds:
            for job in await self._suspects(kind):
                if not await self._is_put_aside(job, hinted) and not await self._is_due(job.id):
                    search.wanted[job.id] = job.token or ""
        if search.wanted:
            await self._leave_to_outboxes(search.wanted)
            await self._tokens.settle(queue)
        return search

    async def _suspects(self, kind: WaitingJob) -> list[Job]:
        """Jobs that became available before the first token of their kind was stored, the oldest first."""
        late = self._store.clock.now() - self._timings.grace_ms
        if not lists.waiting_before(self._model, kind, late, 1):
            return []
        # The first token is read before the list: one that comes later can only be newer.
        first = await self._tokens.first_at(*kind)
        before = late if first is None else min(first - self._timings.grace_ms, late)
        found = lists.waiting_before(self._model, kind, before, _AT_ONCE, self._after.get(kind, FIRST))
        self._after[kind] = found[-1] if len(found) == _AT_ONCE else FIRST
        jobs = [await self._long_available(job_id, kind, late) for _, job_id in found]
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

    async def _is_put_aside(self, job: Job, hinted: set[str]) -> bool:
        """Whether tokens of the job's key wait for a permit that its own may well be among. They are in order, too.

        A look at the limit is hinted at, once in a round: that hint may be what was lost.
        """
        policy = policy_of(job) if job.rate_limit else None
        if policy is None or policy.key is None:
            return False
        scope = key_scope(policy.key)
        held = [self._store.config.hold(scope, job.priority, job.queue, front=front) for front in (True, False)]
        first = [said for subject in held if (said := await self._tokens.first(subject)) is not None]
        if not first:
            return False
        if scope not in hinted:
            hinted.add(scope)
            await self._store.permits.hint(scope)
        others = [await self._store.records.leader_for_hint(token[0]) for said in first if (token := _said(said)) is not None]
        times = [available_at(other.job) for other in others if other.job is not None]
        return len(times) < len(first) or available_at(job) >= min(times) - self._timings.grace_ms

    async def _is_due(self, job_id: str) -> bool:
        """Whether a message waits whose handling made the job available: when it comes again, the token is stored again."""
        config = self._store.config
        found = [await self._store.records.leader_raw(config.due(service, job_id)) for service in _SERVICES]
        return any(found)

    async def _leave_to_outboxes(self, wanted: dict[str, str]) -> None:
        """Take out what the outboxes of batches are to hand out. One that fires is stored as due before its timer leaves."""
        config, records = self._store.config, self._store.records
        for pattern in (config.batch_timer(ANY), config.batch_due(ANY)):
            for subject in await records.subjects(pattern):
                found = await records.leader_raw(subject)
                for said in tokens_of(found[1]).items() if found is not None else ():
                    _take_out(wanted, *said)

    async def _go_on(self, queue: str, search: _Search) -> bool:
        """Take out what is found among the tokens of a queue; whether the end has been reached."""
        for _ in range(self._timings.pages):
            page = await self._tokens.page(queue, search.after, self._timings.page)
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
