"""Workers, and what their handlers are given and may raise.

`_worker` says when jobs are fetched and when it stops (by the states of `_lifecycle`), `_places` how many, `_fetching` gets
them, `_execution` runs their handlers, `_reports` reports how they ended, `_heartbeats` that the worker lives. `_attempts` is a
job that runs, `_context` what its handler is given, `_outcome` what the handler's end means, `_process` the command.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ojs_nats.worker._context import JobContext
    from ojs_nats.worker._lifecycle import Trigger
    from ojs_nats.worker._outcome import DeadLetter, Discard, RetryLater, Snooze, SoftTimeout
    from ojs_nats.worker._worker import Worker

__all__ = ["DeadLetter", "Discard", "JobContext", "RetryLater", "Snooze", "SoftTimeout", "Trigger", "Worker"]

if not TYPE_CHECKING:  # type checkers know each name by its import
    from ojs_nats._lazy import names as _names

    __getattr__ = _names(
        __name__,
        {
            "DeadLetter": "_outcome",
            "Discard": "_outcome",
            "JobContext": "_context",
            "RetryLater": "_outcome",
            "Snooze": "_outcome",
            "SoftTimeout": "_outcome",
            "Trigger": "_lifecycle",
            "Worker": "_worker",
        },
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
