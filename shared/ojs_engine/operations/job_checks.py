"""The checks of a job before it is pushed, whoever pushes it: those of features, and strict mode."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job
from ojs_engine.domain.strict import Strict
from ojs_engine.store.gates import Asks
from ojs_engine.store.store import Store


class JobWarning(Struct, frozen=True):
    """A fault of a job: its place in the job, and what it is. No values are in it."""

    path: str
    message: str


class CheckedTypes:
    """The job types whose jobs a feature checks, as this process knows them."""

    def __init__(self, learn: Callable[[], Awaitable[None]]) -> None:
        """`learn` returns when the types are known. It raises OjsError backend_unavailable."""
        self.learn = learn
        self.names: AbstractSet[str] | None = None
        """None while the types aren't known."""


class FeatureCheck(Struct, frozen=True, kw_only=True):
    """A feature's check of new jobs. It isn't called for a job of another type that doesn't ask for it.

    In strict mode a type that a feature checks counts as registered.
    """

    types: Callable[[Store], CheckedTypes]
    asks: Asks
    check: Callable[[Store, Job], Awaitable[Sequence[JobWarning]]]
    """Returns what the sender is warned of. Raises OjsError for a job that isn't taken."""


JobCheck = Callable[[Job], Awaitable[Sequence[JobWarning]]]
"""Returns what the sender is warned of. Raises OjsError for a job that isn't taken."""


def job_check(store: Store, checks: Iterable[FeatureCheck], strict: Strict | None, not_honoured: Sequence[str]) -> JobCheck:
    """Return the check of every job before it is pushed: strict mode where that is on, then those of features.

    `not_honoured` are the members of features that were left out: a job with one is refused.
    """
    every = [(one.types(store), one.asks, one.check) for one in checks]

    async def check(draft: Job) -> Sequence[JobWarning]:
        found: list[JobWarning] = []
        for types, _, _ in every:
            if types.names is None:
                await types.learn()
        for name in not_honoured:
            if getattr(draft, name):
                raise OjsError(
                    "unsupported",
                    f"{name} is not supported: this server runs without the feature; leave it out",
                    details={"field": name},
                )
        if strict is not None:
            strict.require(draft, registered=any(draft.type in (types.names or ()) for types, _, _ in every))
        for types, asks, judge in every:
            if draft.type in (types.names or ()) or asks(draft):
                found += await judge(store, draft)
        return found

    return check
