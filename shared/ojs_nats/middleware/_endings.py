"""The end of an attempt in one word, as middleware sees it."""

from __future__ import annotations

import asyncio

from ojs_nats.errors import JobCancelled
from ojs_nats.worker._context import JobContext
from ojs_nats.worker._outcome import DeadLetter, Discard, FailedInProcess, ShutDown, Snooze, TimedOut, Unfit


def ending(error: BaseException | None, context: JobContext) -> str:
    """Return how an attempt ended, in one word.

    Args:
        error: The exception that ended it. None if it returned.
        context: The job.

    Returns:
        `completed`, `failed` (it may be tried again), `discarded`, `dead_letter`, `snoozed`, `timed_out`, `cancelled`,
        `handed_back` (the worker stops) or `lost` (another worker has the job).
    """
    why = context.stopped_by if isinstance(error, asyncio.CancelledError) else error
    members = why.members if isinstance(why, FailedInProcess) else {}
    action = members.get("error", {}).get("action")
    match why:
        case None if error is None:
            return "completed"
        case DeadLetter():
            return "dead_letter"
        case _ if action == DeadLetter.action:
            return "dead_letter"
        case Discard() | Unfit():
            return "discarded"
        case _ if action == Discard.action:
            return "discarded"
        case Snooze():
            return "snoozed"
        case _ if members.get("requeue"):
            return "snoozed"
        case TimedOut():
            return "timed_out"
        case ShutDown():
            return "handed_back"
        case JobCancelled():
            return "cancelled"
        case _:
            return "lost" if isinstance(error, asyncio.CancelledError) else "failed"
