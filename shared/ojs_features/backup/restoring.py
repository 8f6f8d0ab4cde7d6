"""Restoring a backup: into an empty installation, whose streams say until the end that they aren't whole
(docs/adr/085).

So no service works with half of it, and an interrupted restore begins anew. The stream of records, by whose mark
services go, is there from the beginning to the end, also when one begins anew: a service that waits would make it in
between. Each restore has a mark of its own and ends when it finds another's. Hints are made of each record as it is
written.
"""

from __future__ import annotations

import asyncio
import secrets
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.queues.config import MAINTENANCE
from ojs_engine.domain.queues.record import RestoreMark
from ojs_engine.jetstream.api import call, parse_ack, refused
from ojs_engine.jetstream.clock import ServerClock
from ojs_engine.jetstream.connection import Connection, Failed, ReplyOrFailure
from ojs_engine.jetstream.contents import subjects_of
from ojs_engine.jetstream.lease import Lease
from ojs_engine.jetstream.streams import RESTORING, create, error_code, is_restoring
from ojs_engine.jetstream.subjects import REST, StoreConfig
from ojs_engine.store.backup import BackupProblem, FeatureBackup, Kept, Tell
from ojs_features.backup.archive import Archive, Part
from ojs_features.backup.revival import Revival, Revived, Standing
from ojs_link.timings import Timings

_STREAM_NOT_FOUND: Final = 10059
_MESSAGES: Final = 2_000
_BYTES: Final = 8 * 1024 * 1024
"""The messages, and their bytes, that may be on their way unanswered."""
_STEP: Final = 1_000


class RestoreTimings(Timings, frozen=True, kw_only=True):
    """How long a restore waits for others."""

    beats_s: float = 6.0
    """For services that run: they store a beat every five seconds, and try each second while they can't."""
    answer_s: float = 30.0
    """How long NATS may take for one answer."""


class Restored(Struct, frozen=True, kw_only=True):
    """Counts of a restore. `ended` counts messages whose time was over."""

    namespace: str
    taken_at: int
    jobs: int
    waiting: int
    requeued: int
    timers: int
    features: dict[str, int]
    """Counts of features, by their names."""
    keys: int
    events: int
    audit: int
    ended: int
    unreadable: int
    messages: int
    seconds: float
    waits_for_release: bool
    """Whether nothing in the system acts until it is released."""


class _Places:
    """Where messages are now that had other sequences."""

    def __init__(self) -> None:
        self._before: list[int] = []
        self._after: list[int] = []

    def add(self, before: int, after: int) -> None:
        """Note one; they are added in order."""
        if not self._before or after - before != self._after[-1] - self._before[-1]:
            self._before.append(before)
            self._after.append(after)

    def of(self, before: int) -> int:
        """Return the place of the last message up to a sequence; 0 if there is none."""
        place = bisect_right(self._before, before) - 1
        if place < 0:
            return 0
        after = self._after[place] + before - self._before[place]
        return after if place == len(self._after) - 1 else min(after, self._after[place + 1] - 1)


class _UpTo:
    """Where the last of the messages up to a sequence is now."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.place = 0

    def add(self, before: int, after: int) -> None:
        """Note one; they are added in order."""
        if before <= self._limit:
            self.place = after


class _Pipeline:
    """Messages on their way into the streams, in order and many at a time."""

    def __init__(self, nats: Connection, timings: RestoreTimings) -> None:
        self._timings = timings
        self._nats = nats
        self._answers: deque[tuple[asyncio.Future[ReplyOrFailure], int, int, _Places | _UpTo | None]] = deque()
        self._bytes = 0
        self.stored = 0

    async def put(self, message: Revived, before: int = 0, places: _Places | _UpTo | None = None) -> None:
        """Send one, once there is room; `places` is to have where it went, by its sequence `before`."""
        size = len(message.data) + len(message.headers)
        while self._answers and (len(self._answers) >= _MESSAGES or self._bytes + size > _BYTES):
            await self._take()
        answer = self._nats.request(message.subject, message.data, message.headers, self._timings.answer_s)
        self._answers.append((answer, size, before, places))
        self._bytes += size

    async def drain(self) -> None:
        """Wait until all are stored."""
        while self._answers:
            await self._take()

    async def _take(self) -> None:
        answer, size, before, places = self._answers.popleft()
        self._bytes -= size
        found = await answer
        if isinstance(found, Failed):
            raise BackupProblem(f"NATS didn't store a message ({found.reason}): mend that, and run the same restore again")
        ack = parse_ack(found.data)
        if ack.error is not None:
            reason = refused("a message of the backup", ack.error).message
            raise BackupProblem(f"{reason}: mend that, and run the same restore again")
        self.stored += 1
        if places is not None:
            places.add(before, ack.seq)


class Restore:
    """One restore of an archive into a namespace."""

    def __init__(
        self,
        nats: Connection,
        config: StoreConfig,
        archive: Archive,
        tell: Tell,
        features: Sequence[FeatureBackup],
        timings: RestoreTimings = RestoreTimings(),
        *,
        quiet: bool | None = None,
    ) -> None:
        """Prepare it. `quiet` says whether the system waits for its release.

        With None it waits in another namespace than that of the backup, and as it did when it was backed up.
        """
        if quiet is None and config.namespace != archive.manifest.namespace:
            quiet = True
        self._quiet = quiet
        self._nats = nats
        self._config = config
        self._features = features
        self._archive = archive
        self._tell = tell
        self._timings = timings
        self._source = StoreConfig(namespace=archive.manifest.namespace)
        self._pipeline = _Pipeline(nats, timings)
        self._mark = {RESTORING: secrets.token_hex(8)}

    async def run(self) -> Restored:
        """Do it. Raises BackupProblem, OjsError backend_unavailable: nothing of it is in use then."""
        began = asyncio.get_running_loop().time()
        manifest = self._archive.manifest
        await self._unfinished()
        self._tell("verify", 0, 0)
        await asyncio.to_thread(self._archive.verify)
        latest = await asyncio.to_thread(self._latest)
        left = await self._take_place()
        await self._check_alone()
        await self._make_others(left)
        events, audit = _Places(), _Places()
        await self._copy("events", events)
        await self._copy("audit", audit)
        clock = ServerClock()
        await clock.measure(self._nats, self._config.records_stream)
        moment = clock.moment()
        mark = RestoreMark(namespace=manifest.namespace, taken_at=manifest.taken_at, at=moment.now)
        standing = Standing(moment, mark if self._quiet else None, lift=self._quiet is False)
        await self._put_mark(standing)
        revival = Revival(
            self._nats, self._config, self._source, clock, manifest.delivered, events.of, standing, self._features
        )
        relayed = _UpTo(manifest.relayed)
        await self._records(revival, latest, relayed)
        await self._hand_over_relay(relayed.place)
        await self._refuse_company()
        await self._finish()
        counts = revival.counts
        return Restored(
            namespace=self._config.namespace,
            taken_at=manifest.taken_at,
            jobs=counts["jobs"],
            waiting=counts["token"],
            requeued=counts["requeued"],
            timers=counts["timer"],
            features={name: counts[one.kind] for feature in self._features for name, one in feature.counted.items()},
            keys=counts["key"],
            events=manifest.parts["events"].messages,
            audit=manifest.parts["audit"].messages,
            ended=counts["ended"],
            unreadable=counts["unreadable"],
            messages=self._pipeline.stored,
            seconds=round(asyncio.get_running_loop().time() - began, 3),
            waits_for_release=standing.waits,
        )

    # Where it goes

    async def _unfinished(self) -> dict[str, dict[str, Any]]:
        """Return the configurations of the streams that an interrupted restore has left, by their names.

        The mark of the records counts for all: it comes before the others, and goes after them. Raises BackupProblem if
        streams are there that aren't of a restore.
        """
        found: dict[str, dict[str, Any]] = {}
        for name in self._streams:
            answer = await self._look(name)
            if error_code(answer) == _STREAM_NOT_FOUND:
                continue
            if "error" in answer:
                raise BackupProblem(f"stream {name} can't be looked at: {answer['error'].get('description')}")
            found[name] = answer["config"]
        if found and not is_restoring(found.get(self._config.records_stream, {})):
            raise BackupProblem(
                f"namespace {self._config.namespace} is in use: there is a stream {next(iter(found))}, and nothing is restored "
                "over another installation. Name another --namespace or --nats, or stop all services, back up what is there, "
                f"and remove its streams (nats stream rm {next(iter(found))} …)"
            )
        return found

    @property
    def _streams(self) -> list[str]:
        return [str(stream["name"]) for stream in self._config.streams()]

    async def _take_place(self) -> list[str]:
        """Have the stream of records, empty and with the mark of this restore; returns what an interrupted one has left."""
        left, wanted = await self._unfinished(), self._wanted()[0]
        found = left.pop(self._config.records_stream, None)
        if found is None:
            await self._create(wanted)
        else:
            marked = found | {member: wanted[member] for member in ("metadata", "num_replicas")}
            await self._ask(f"STREAM.UPDATE.{wanted['name']}", marked, f"stream {wanted['name']} can't be taken over")
            await self._empty(wanted)
        return list(left)

    async def _make_others(self, left: list[str]) -> None:
        """Make the other streams anew, and empty that of the records once more: who restored before has ended by now."""
        records, *others = self._wanted()
        await self._empty(records)
        for wanted in others:
            if wanted["name"] in left:
                await self._remove(wanted["name"])
            await self._create(wanted)

    def _wanted(self) -> list[dict[str, Any]]:
        """The streams, that of the records first, each with a mark that says that it isn't whole.

        Sequences go on where those of the backup ended.
        """
        parts = self._archive.manifest.parts
        first = {
            self._config.records_stream: parts["records"].settled + 1,
            self._config.events_stream: max(1, parts["events"].first),
            self._config.audit_stream: max(1, parts["audit"].first),
        }
        return [one | {"metadata": self._mark, "first_seq": first.get(one["name"], 0)} for one in self._config.streams()]

    async def _create(self, wanted: dict[str, Any]) -> None:
        answer = await create(self._nats, wanted)
        if "error" in answer:
            raise BackupProblem(
                f"nats-server refused stream {wanted['name']} ({answer['error'].get('description')}): check its JetStream "
                f"limits, and that it has {self._config.replicas} server(s) for the replicas asked for"
            )

    async def _empty(self, wanted: dict[str, Any]) -> None:
        """Empty a stream, and have it begin where it has to, or behind what it had."""
        for purge in ({"seq": wanted["first_seq"]}, {}):
            await self._ask(f"STREAM.PURGE.{wanted['name']}", purge, f"stream {wanted['name']} can't be emptied")

    async def _remove(self, name: str) -> None:
        await self._ask(f"STREAM.DELETE.{name}", None, f"stream {name} can't be removed")

    async def _check_alone(self) -> None:
        """Give services that run time to show themselves. Raises BackupProblem if one does; then nothing is there again."""
        self._tell("look for services", 0, 0)
        await asyncio.sleep(self._timings.beats_s)
        await self._refuse_company()

    async def _refuse_company(self) -> None:
        """Raise BackupProblem if another restore has begun meanwhile, or if services run: then nothing is there again."""
        await self._refuse_another()
        beats = await subjects_of(self._nats, self._config.records_stream, self._config.record("service", REST))
        if not beats:
            return
        for name in reversed(await self._unfinished()):  # the stream of records, whose mark services go by, last
            await self._remove(name)
        roles = ", ".join(sorted({subject.split(".")[3] for subject in beats}))
        raise BackupProblem(
            f"services of namespace {self._config.namespace} run ({roles}): stop all of them, and run the same restore again"
        )

    async def _refuse_another(self) -> None:
        """Raise BackupProblem if another restore has taken over."""
        answer = await self._look(self._config.records_stream)
        if "error" in answer or not self._mark.items() <= (answer["config"].get("metadata") or {}).items():
            raise BackupProblem(
                f"another restore into namespace {self._config.namespace} has begun meanwhile, so this one ends: "
                "let that one come to its end"
            )

    async def _finish(self) -> None:
        """Take the marks away; that of the stream of records, by which services go first, is the last."""
        for wanted in reversed(self._config.streams()):
            name = str(wanted["name"])
            answer = await self._look(name)
            if "error" in answer:
                raise BackupProblem(f"stream {name} has gone: run the same restore again")
            metadata = {member: said for member, said in answer["config"]["metadata"].items() if member != RESTORING}
            config = answer["config"] | {"metadata": metadata}
            await self._ask(f"STREAM.UPDATE.{name}", config, f"stream {name} can't be released")

    async def _look(self, stream: str) -> dict[str, Any]:
        return await call(self._nats, f"STREAM.INFO.{stream}", None, self._timings.answer_s)

    async def _ask(self, subject: str, payload: dict[str, Any] | None, problem: str) -> None:
        answer = await call(self._nats, subject, payload, self._timings.answer_s)
        if "error" in answer:
            raise BackupProblem(f"{problem}: {answer['error'].get('description')}")

    # What goes there

    async def _put_mark(self, standing: Standing) -> None:
        """Store that the system waits for its release, before any other record."""
        if standing.mark is not None:
            body = msgspec.json.encode(standing.of(None))
            await self._pipeline.put(Revived(self._config.queue(MAINTENANCE), body, ""))
            await self._pipeline.drain()

    def _latest(self) -> dict[str, int]:
        """The last sequence of each record that was stored while it was backed up."""
        settled = self._archive.manifest.parts["records"].settled
        return {kept.subject: kept.sequence for kept in self._archive.messages("records") if kept.sequence > settled}

    async def _copy(self, part: Part, places: _Places) -> None:
        renamed = f"{self._config.namespace}.", f"{self._source.namespace}."
        total = self._archive.manifest.parts[part].messages
        for number, kept in enumerate(self._archive.messages(part)):
            if not number % _STEP:
                await self._go_on(part, number, total)
            subject = renamed[0] + kept.subject.removeprefix(renamed[1])
            await self._pipeline.put(Revived(subject, kept.data, _own(kept)), kept.sequence, places)
        await self._pipeline.drain()
        self._tell(part, total, total)

    async def _records(self, revival: Revival, latest: dict[str, int], relayed: _UpTo) -> None:
        total = self._archive.manifest.parts["records"].messages
        for number, kept in enumerate(self._archive.messages("records")):
            if not number % _STEP:
                await self._go_on("records", number, total)
            if latest.get(kept.subject, kept.sequence) != kept.sequence:
                continue
            for message in revival.of(kept):
                await self._pipeline.put(message, kept.sequence, relayed if message.record else None)
        await self._pipeline.drain()
        self._tell("records", total, total)

    async def _go_on(self, part: Part, number: int, total: int) -> None:
        self._tell(part, number, total)
        with suppress(OjsError):  # it is slow: whether messages are stored is told by their own answers
            await self._refuse_another()

    async def _hand_over_relay(self, done: int) -> None:
        """Have the next relay go on behind the records whose events are in the event stream."""
        lease = Lease(self._nats, self._config, "events")
        if await lease.write(0, "", done) is None:
            raise BackupProblem("a projector runs: stop all services, and run the same restore again")


def _own(kept: Kept) -> str:
    """The headers of an event or an entry that aren't NATS' own."""
    lines = kept.headers.decode(errors="replace").split("\r\n")[1:]
    return "".join(f"{line}\r\n" for line in lines if line and not line.lower().startswith("nats-"))
