"""What surrounds a client's pushes and the results that it reads: an app's middleware and codec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ojs_nats._errors import JobDropped
from ojs_nats._jobs import NewJob

if TYPE_CHECKING:
    from ojs_nats._app import App

R = TypeVar("R")


class Codec(Protocol):
    """What makes results readable that middleware has encoded."""

    def decoded(self, value: Any) -> Any:
        """Plain values as they are."""


class Surroundings:
    """None: a client by itself. Every job that a client pushes goes through `prepared`, also those of workflows and of cron
    entries; every result that it reads goes through `decoded`.
    """

    async def prepared(self, new: NewJob[R]) -> NewJob[R]:
        """The job as it is to be pushed. Raises JobDropped."""
        return new

    def decoded(self, value: Any) -> Any:
        """The result as its handler returned it."""
        return value


class AppSurroundings(Surroundings):
    """Those of an app."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def prepared(self, new: NewJob[R]) -> NewJob[R]:
        if not self._app.enqueue:
            return new
        left = await self._app.enqueue.run(new)
        if left is None:
            raise JobDropped(f"a middleware of the app dropped the job {new.id} ({new.type})")
        return left

    def decoded(self, value: Any) -> Any:
        return value if self._app.codec is None else self._app.codec.decoded(value)
