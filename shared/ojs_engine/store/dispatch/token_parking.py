"""Holding tokens many at a time when a gate lets none of their jobs start, while the fetch goes on with other jobs
(docs/adr/014).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.base.loops import stop_tasks
from ojs_engine.domain.transitions import Transition
from ojs_engine.jetstream.subjects import REST
from ojs_engine.store.dispatch.in_hand import InHand, TokensInHand
from ojs_engine.store.dispatch.token_reader import TokenReader
from ojs_engine.store.dispatch.wakeups import Wakeups
from ojs_engine.store.gates import Candidate, StartGate
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.tokens import Token

log = structlog.get_logger(__name__)

_FIRST: Final = 16
_MOST: Final = 50
"""Tokens in hand together: the more only blocked ones are met, the more. What they cost delays others' fetches."""
_TOLD: Final = 1_000
"""So many are worth a line in the log."""


class TokenParking:
    """Clears the heads of lanes until a job is met that may start, or nothing is left; one task for each lane."""

    def __init__(self, bucket: Bucket, gate: StartGate, reader: TokenReader, in_hand: TokensInHand, wakeups: Wakeups) -> None:
        self._gate = gate
        self._reader = reader
        self._in_hand = in_hand
        self._wakeups = wakeups
        self._records = bucket.records
        self._committer = bucket.committer
        self._clock = bucket.clock
        self._config = bucket.config
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def busy(self) -> bool:
        """Whether any lane is being cleared."""
        return bool(self._tasks)

    def usable(self, lanes: Sequence[str]) -> list[str]:
        """Return the lanes of one priority that are not being cleared."""
        return [subject for subject in lanes if subject not in self._tasks]

    def begin(self, queue: str, subject: str) -> None:
        """Have a lane cleared, unless it is being."""
        if subject not in self._tasks:
            self._tasks[subject] = asyncio.create_task(self._clear(queue, subject), name=f"clear-{subject}")

    async def done(self, subject: str, patience_s: float) -> None:
        """Wait until a lane is cleared, or patience is at an end."""
        if task := self._tasks.get(subject):
            await asyncio.wait({task}, timeout=patience_s)

    async def settled(self, queues: Iterable[str], patience_s: float) -> bool:
        """Wait until no lane of some queues is being cleared, if any is; whether one has been done with."""
        prefixes = tuple(self._config.ready_of_queue(queue).removesuffix(REST) for queue in queues)
        tasks = [task for subject, task in self._tasks.items() if subject.startswith(prefixes)]
        if not tasks:
            return False
        done, _ = await asyncio.wait(tasks, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)

    async def close(self) -> None:
        """Leave the rest to others; tokens in hand come back by themselves."""
        await stop_tasks(self._tasks.values())

    async def _clear(self, queue: str, subject: str) -> None:
        number, held = _FIRST, 0
        try:
            while tokens := await self._reader.pull(subject, queue, number, much=True):
                if not await self._hold(queue, tokens):
                    break
                held += len(tokens)
                number = min(2 * number, _MOST)
        except OjsError as error:
            log.debug("tokens of blocked jobs stay in their lane for now", queue=queue, reason=error.message)
        finally:
            del self._tasks[subject]
            if held > _TOLD:
                log.info("tokens of blocked jobs were put aside", queue=queue, tokens=held)
            self._wakeups.wake_queue(queue)

    async def _hold(self, queue: str, tokens: list[Token]) -> bool:
        """Have the gate hold tokens whose jobs can't start, drop those that stand for nothing, and put the others
        back in their places. Return whether none is left.
        """
        found = await self._records.many([token.job_id for token in tokens])
        candidates: dict[Token, Candidate] = {}
        for token in tokens:
            stored = found[token.job_id]
            if stored.job is not None and token.stands_for(stored.job):
                candidates[token] = InHand(token, stored, stored.job).candidate(self._clock.moment())
        verdicts = dict(zip(candidates, await self._gate.turn_away(list(candidates.values())), strict=True))
        done = {token for token, verdict in verdicts.items() if verdict == "held"}
        written = {token: verdict for token, verdict in verdicts.items() if isinstance(verdict, Transition)}
        commits = [(verdict, candidates[token].expects, candidates[token].moment.op) for token, verdict in written.items()]
        outcomes = await self._committer.commit_all(commits) if commits else []
        done.update(token for token, outcome in zip(written, outcomes, strict=True) if isinstance(outcome, int))
        await self._in_hand.done(queue, [token for token in tokens if token in done])
        left = False
        for token in tokens:
            if token not in done and (token in candidates or not await self._in_hand.stale(token, found[token.job_id])):
                self._reader.back(token)
                left = True
        return not left
