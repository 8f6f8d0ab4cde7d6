"""The subscriptions of server-sent events and WebSockets, and how a finished job has ended."""

from __future__ import annotations

from typing import Final, NamedTuple

from ojs_engine.base.errors import not_found
from ojs_engine.domain.events.vocabulary import events_of
from ojs_engine.domain.job import TERMINAL, Job
from ojs_engine.jetstream.event_reader import EventReader, StoredEvent
from ojs_engine.wire.members import encode
from ojs_features.context import HandlerContext
from ojs_features.events.answers import Message, dropped, gap
from ojs_features.events.channels import Channel
from ojs_features.events.hub import Dropped, EventHub, HubReset, Missed, Subscription
from ojs_features.events.startup import MAX_SUBSCRIPTIONS
from ojs_features.events.timings import SubscriptionTimings
from ojs_index.known_queues import known_queue

GAP: Final = "system.gap"
DROPPED: Final = "system.events_dropped"


class Followed(NamedTuple):
    """A channel that is followed. `finished` is its job, if it is one of a job that was in a terminal state then."""

    channel: Channel
    subscription: Subscription
    finished: Job | None


class Following:
    """The subscriptions of one gateway, and what each of them needs."""

    def __init__(self, context: HandlerContext, reader: EventReader, timings: SubscriptionTimings) -> None:
        self.reader = reader
        self.again_s = timings.again_s
        self.keep_alive_s = context.keep_alive_s
        self.until_relayed = context.queries.until_relayed
        self._store = context.store
        self._queries = context.queries
        self._hub = EventHub(reader, context.setting(MAX_SUBSCRIPTIONS), timings.listens_s)

    async def open(self, channel: Channel, after: int | None = None) -> Followed:
        """Follow a channel from a cursor, or from now. Raises not_found for a job or queue that isn't there."""
        subscription = await self._hub.subscribe(channel.source, after, hears=channel.hears)
        try:
            finished = await self.finished(channel)  # after the subscription: no change can fall between
            if channel.queue is not None:
                if channel.wanted.sees is not None and not channel.wanted.sees(channel.queue, None):
                    raise not_found("queue", channel.queue)
                await known_queue(self._store, self._queries, channel.queue)
        except BaseException:
            subscription.close()
            raise
        return Followed(channel, subscription, finished)

    async def finished(self, channel: Channel) -> Job | None:
        """The channel's job if it has come to its end. Raises not_found if it is no more."""
        if channel.job_id is None:
            return None
        job = await self._store.jobs.get(channel.job_id)
        if channel.wanted.sees is not None and not channel.wanted.sees(job.queue, job.type):
            raise not_found("job", job.id)
        return job if job.state in TERMINAL else None

    def now(self) -> int:
        """Return the server's time (Unix ms)."""
        return self._store.clock.now()

    def notice(self, found: Missed | HubReset | Dropped, channel: Channel) -> tuple[str, bytes]:
        """Return the message about events that a subscriber didn't get: its type and its data (ojs-realtime §4.4, §4.5)."""
        now = self.now()
        match found:
            case Missed():
                return GAP, encode(gap(channel.name, found.kept, found.number, now))
            case HubReset():
                return GAP, encode(gap(channel.name, found.kept, None, now))
            case Dropped():
                return DROPPED, encode(dropped(channel.name, found.number, found.oldest.body, found.newest.body, now))


def final(channel: Channel, job: Job, cursor: int) -> list[Message]:
    """Return how a finished job has ended, as it was sent then; nothing if its log doesn't have that any more."""
    ended = next((entry for entry in reversed(job.transitions) if entry.after is job.state is not entry.before), None)
    messages: list[Message] = []
    cursor = max(cursor, 1)  # even if nothing is stored yet
    for event in events_of(job, ended) if ended is not None else ():
        if event.subject == job.id:
            messages += channel.messages(StoredEvent(cursor, event.type, job.queue, job.id, encode(event)), cursor)
    return messages
