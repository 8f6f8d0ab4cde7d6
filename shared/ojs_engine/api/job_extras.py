"""The part of a feature in answers about jobs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import Struct

from ojs_engine.domain.job import Job
from ojs_engine.operations.finding import Reason
from ojs_engine.store.gates import Asks
from ojs_engine.store.store import Store
from ojs_engine.wire.workers.answers import Along

Headers = tuple[tuple[str, str], ...]


class JobExtras(Struct, frozen=True, kw_only=True):
    """What answers about a job say of a feature. All but `why` is for jobs that ask for it.

    Everything that waits raises OjsError backend_unavailable.
    """

    asks: Asks
    pushed: Callable[[Store, Job], Awaitable[Headers]]
    """Returns headers of the answer to a job's push."""
    show: Callable[[Store, Job, dict[str, Any]], Awaitable[None]]
    """Adds to the members of the answer that shows one job, in their written form."""
    why: Callable[[Store, Job], Awaitable[Sequence[Reason]]]
    """Returns why the feature keeps an available job back."""
    close: Callable[[Store, Job, int, str], Awaitable[int | None]]
    """Lets no other such job start before a time (Unix ms) that a failure of this one names, for a reason.

    Returns until when that is; None if it has no effect.
    """


class Inputs(Struct, frozen=True, kw_only=True):
    """What a feature hands out along with fetched jobs that ask for it."""

    asks: Asks
    of: Callable[[Store, Job], Awaitable[Along | None]]
    """Raises OjsError: of its kind backend_unavailable the job is given back, of others its attempt ends."""
    what: str
    """Its name in the error of an attempt that ends because it can't be made."""
