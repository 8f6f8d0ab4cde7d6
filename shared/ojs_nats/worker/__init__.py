"""Workers, and what their handlers are given and may raise.

`worker` says when jobs are fetched and when it stops (by the states of `lifecycle`), `places` how many, `fetching` gets them,
`execution` runs their handlers, `reports` reports how they ended, `heartbeats` that the worker lives. `attempts` is a job that
runs, `context` what its handler is given, `outcome` what the handler's end means, `process` the command.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ojs_nats.worker.context import JobContext
    from ojs_nats.worker.outcome import DeadLetter, Discard, RetryLater, Snooze, SoftTimeout
    from ojs_nats.worker.worker import Worker

__all__ = ["DeadLetter", "Discard", "JobContext", "RetryLater", "Snooze", "SoftTimeout", "Worker"]

if not TYPE_CHECKING:  # type checkers know each name by its import

    def __getattr__(name: str) -> object:
        from importlib import import_module  # noqa: PLC0415  # a handler's module needs no worker

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = {"JobContext": "context", "Worker": "worker"}.get(name, "outcome")
        return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
