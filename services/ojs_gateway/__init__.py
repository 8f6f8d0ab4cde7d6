"""The gateway: the HTTP binding of Open Job Spec over the store. Any number of them may run; none keeps anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ojs_gateway.server import Gateway
from ojs_nats.middleware import EnqueueChain, MiddlewareProblem
from ojs_nats.problems import StartupProblem

if TYPE_CHECKING:
    from ojs_nats.settings import Settings
    from ojs_nats.store import Store

__all__ = ["Gateway", "build"]


def build(store: Store, settings: Settings) -> Gateway:
    """A gateway that is not started yet. Raises StartupProblem if an enqueue middleware can't be imported."""
    try:
        chain = EnqueueChain.load(settings.enqueue_middleware)
    except MiddlewareProblem as problem:
        raise StartupProblem(f"{problem}; correct enqueue_middleware") from problem
    return Gateway(store, settings, chain)
