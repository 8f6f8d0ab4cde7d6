"""The durations of a client in one place."""

from __future__ import annotations

from typing import ClassVar

from ojs_link.timings import Order, Timings


class TransportTimings(Timings, frozen=True, kw_only=True):
    """How long requests are tried, and their answers waited for, by HTTP and NATS."""

    first_pause_s: float = 0.1
    """The first pause between two tries; each is twice as long as the one before."""
    longest_pause_s: float = 5.0
    """The longest pause."""
    quiet_s: float = 2.0
    """How long answers may be missing before the log says so, since a program that waits seems to hang."""
    said_again_s: float = 10.0
    """The least time between two such lines."""
    unread_s: float = 0.5
    """The time that an answer which came in time may take to be read, by a process that was stopped meanwhile."""
    ask_s: float = 20.0
    """How long the server keeps a question for a result that isn't there yet."""
    beyond_s: float = 10.0
    """The time that an answer may take beyond the time that the server keeps a question, or a fetch."""
    listen_s: float = 30.0
    """How long a workflow's end is listened for before it is read again whether it has ended."""
    order: ClassVar[Order] = (("first_pause_s", "longest_pause_s", "pauses would grow shorter"),)


class HttpTimings(Timings, frozen=True, kw_only=True):
    """How long a client waits for a server by HTTP."""

    tries: TransportTimings = TransportTimings()
    """Tries of requests."""
    connect_s: float = 10.0
    """How long a connection may take."""
    answer_s: float = 30.0
    """How long an answer may take, with its connection, unless its request says so."""
    read_s: float = 30.0
    """How long a stream may be silent: longer than a server is, which says every 15 seconds that it is there."""
    kept_s: float = 60.0
    """How long a connection is kept without a request."""
    reconnect_s: tuple[float, float] = (0.1, 0.5)
    """The pause before a stream is followed again is between the two."""
    files_s: float = 10.0
    """How often, at most, files of TLS are checked whether they have changed."""
    order: ClassVar[Order] = (("connect_s", "answer_s", "a server out of reach would count as slow"),)


class NatsTimings(Timings, frozen=True, kw_only=True):
    """How long a client waits for a server by NATS."""

    tries: TransportTimings = TransportTimings()
    """Tries of requests."""
    give_up_s: float = 12.0
    """How long a first connection may take, for each server, with all tries."""
    connect_s: int = 5
    """How long one try may take."""
    reconnect_s: float = 0.25
    """The pause before a lost connection is made again."""
    ping_s: int = 5
    """How often it is checked whether NATS is there; the third time without an answer ends the connection."""
    nobody_s: float = 3.0
    """How long no gateway may listen before another server is asked: this one may be cut off from where they are."""
    answer_s: float = 5.0
    """How long an answer may take, unless its request says so: its gateway may have been killed unnoticed."""
    late_s: float = 0.5
    """The time that an answer which was sent in time may take to get here."""
    look_s: float = 1.0
    """How often events are read where no message says that there are new ones."""
    stored_s: float = 0.02
    """The time that an event may take to be stored once it was heard of."""
    close_s: float = 1.0
    """How long the end of a connection may take."""
    usual: ClassVar[Order] = (("connect_s", "give_up_s", "one try would take longer than all"),)
