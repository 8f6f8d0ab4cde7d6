"""Hooks of a client: what its pushes and the results that it reads go through."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from ojs_nats.jobs import JobRequest

R = TypeVar("R")


class Codec(Protocol):
    """A decoder of results that middleware has encoded."""

    def decoded(self, value: Any) -> Any:
        """Return the value as its handler returned it; plain values as they are."""


class ClientHooks:
    """The hooks of a client by itself, which change nothing.

    Every job that a client pushes goes through `prepared`, also those of workflows and of cron entries; every result that it
    reads goes through `decoded`.
    """

    async def prepared(self, new: JobRequest[R]) -> JobRequest[R]:
        """Return the job as it is to be pushed. Raises JobDropped."""
        return new

    def decoded(self, value: Any) -> Any:
        """Return the result as its handler returned it."""
        return value
