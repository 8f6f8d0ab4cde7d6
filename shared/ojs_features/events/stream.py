"""Events as a stream of server-sent ones."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from ojs_engine.api.call import Call
from ojs_engine.api.streams import KEEP_ALIVE, frame
from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.event_reader import StoredEvent
from ojs_engine.wire.errors import error_body
from ojs_features.events.answers import Message
from ojs_features.events.channels import ends
from ojs_features.events.dialects import message_body
from ojs_features.events.following import Followed, Following, final
from ojs_features.events.hub import Found, HubReset, Missed


class ChannelStream:
    """One stream of server-sent events. That of a job ends with it, behind all events of its end."""

    def __init__(self, following: Following, followed: Followed, call: Call, *, replays: bool) -> None:
        self._following = following
        self._channel, self._subscription, self._job = followed
        self._reader = call.dialect.reader
        self._hides = call.hides
        self._replays = replays
        self._ended = False
        """Whether the last change of state that was read is the job's end."""

    async def frames(self) -> AsyncGenerator[bytes]:
        """Yield what the client is sent."""
        if self._job is not None:
            if not self._replays:
                yield self._frames(final(self._channel, self._job, self._subscription.cursor))
                return
            with contextlib.suppress(OjsError):  # its end is sent in any case
                await self._following.until_relayed()
        surely_last = False
        while True:
            finished = self._ended or self._job is not None
            try:
                found = await self._subscription.next(0 if finished else self._following.keep_alive_s)
            except OjsError as error:
                yield frame("error", error_body(error, ""))
                return  # the client connects again with its Last-Event-ID
            if found is not None:
                surely_last = False
                if data := self._sent(found):
                    yield data
            elif not finished:
                if await self._gone():
                    return
                yield KEEP_ALIVE
            elif not surely_last:  # an entry's events are stored at once, and may have been read in two parts
                surely_last = True
                self._subscription.resume()
            else:
                if self._job is not None and not self._ended:
                    yield self._frames(final(self._channel, self._job, self._subscription.cursor))
                return

    def _sent(self, found: Found) -> bytes:
        number = str(self._subscription.cursor)
        if not isinstance(found, StoredEvent):
            notice = frame(*self._following.notice(found, self._channel), number)
            if isinstance(found, Missed):
                notice = b'event: missed\ndata: {"missed":%d}\n\n' % found.number + notice
            elif isinstance(found, HubReset):
                notice = b'event: reset\ndata: {"last":"%d"}\n\n' % found.kept.last + notice
            else:
                notice = b":events-dropped %d\n\n" % found.number + notice
            return notice
        if self._channel.job_id is not None and (end := ends(found.type)) is not None:
            self._ended = end
        return self._frames(self._channel.messages(found, self._subscription.cursor))

    def _frames(self, messages: list[Message]) -> bytes:
        return b"".join(frame(one.type, message_body(one, self._reader, hides=self._hides), one.id) for one in messages)

    async def _gone(self) -> bool:
        """Look whether the job is there, while nothing comes: it may have been removed, or no event may say its end."""
        try:
            self._job = await self._following.finished(self._channel)
        except OjsError as error:
            return error.code == "not_found"
        return False
