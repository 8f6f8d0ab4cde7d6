"""What parts of the store tell those that are built on them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from ojs_core.domain.job import Job


class Signals:
    """Who must follow up on what a part below has done. Each subscribes when it is built, and stays."""

    def __init__(self) -> None:
        self.unique_ended: list[Callable[[Job, int], None]] = []
        """Told of each unique job whose last record is stored, with the seconds until that record leaves."""
        self.checkpoints_ended: list[Callable[[str], None]] = []
        """Told the id of each job whose checkpoint, if there is one, is of no use any more."""
        self.tokens_stale: list[Callable[[Sequence[Job]], Awaitable[None]]] = []
        """Told of the jobs, as they were, whose tokens stand for nothing any more; awaited before anybody hears of it."""
        self.queue_resumed: list[Callable[[str], None]] = []
        """Told the name of each queue that may be fetched from again, by whomever it was resumed."""
