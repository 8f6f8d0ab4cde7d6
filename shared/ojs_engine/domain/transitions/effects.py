"""What a transition brings about beside the record that it stores: values, for whoever commits it to go over.

A feature that is to look at a job gets a `Note`; one that ends something with a job adds a `Drop`, and names it in
`Feature.ends`.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Raw, Struct

from ojs_engine.domain.job import Job, Timer

NoteTopic = Literal["limit", "workflow"]


class CancelTimer(Struct, frozen=True):
    """The end of a timer, which the record's own message purges."""

    op: str


class Note(Struct, frozen=True):
    """A message to a limit or a workflow, stored ahead of the record: they look at the job because of it."""

    topic: NoteTopic
    scope: str
    body: str


class Token(Struct, frozen=True):
    """A new token of the job, stored ahead of the record. It carries `Job.token`."""


class Apart(Struct, frozen=True):
    """A result that is stored ahead of the record which names it, and leaves after so many seconds.
    `op` is that of `Job.result_blob`.
    """

    op: str
    body: Raw
    ttl_s: int


class StaleToken(Struct, frozen=True):
    """A token that stands for nothing any more: that of the job as it was. A claim has its token in hand."""

    job: Job


class Drop(Struct, frozen=True):
    """The end of what a job had beside its record, once that is stored. `op` is that of the ack which stored a result."""

    what: Literal["result", "checkpoint", "lock"]
    op: str = ""


Effect = Timer | CancelTimer | Note | Token | Apart | StaleToken | Drop
"""A `Timer` is one to set, ahead of the record."""
