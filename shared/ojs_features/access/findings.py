"""The check of keys: whether NATS still has those that were made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ojs_engine.operations.finding import Finding, problem
from ojs_engine.store.store import Store
from ojs_features.access.store import Keys
from ojs_index.asking.client import Queries


async def look(store: Store, _queries: Queries) -> Iterable[Finding]:
    """Check the keys that this process knows."""
    return findings(are_lost=store.of(Keys).are_lost)


def findings(*, are_lost: bool) -> Sequence[Finding]:
    """Whether every request is refused, since all keys are gone."""
    if not are_lost:
        return ()
    return (
        problem(
            "lost records",  # as of settings that are gone
            "this system has had keys, and NATS has none of them any more",
            "every request is refused, but for those with the gateway's own key",
            "make an admin key on NATS ('ojs-nats keys create --role admin --name NAME --nats URL'), then the others",
            "/system",
        ),
    )
