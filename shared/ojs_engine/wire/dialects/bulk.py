"""Answers about many jobs for official clients."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.jobs.bulk import PushedBatch
from ojs_engine.wire.jobs.dead_letters import RetriedDeadLetters
from ojs_engine.wire.members import members


def _pushed_for_cli(answer: PushedBatch) -> dict[str, Any]:
    """A batch fails as a whole or not at all."""
    found = 0 if answer.deduplicated is UNSET else len(answer.deduplicated)
    return members(answer) | {"enqueued": answer.count - found, "failed": 0}


def _retried_for_ui(answer: RetriedDeadLetters) -> dict[str, Any]:
    """Use the words of ojs-admin-api §8.1."""
    counts = {"matched": answer.retried + answer.skipped, "succeeded": answer.retried, "failed": answer.skipped}
    return members(answer) | {"action": "retry"} | counts


BULK: Final[Shapes] = {
    PushedBatch: {"cli": _pushed_for_cli},
    RetriedDeadLetters: {"ui": _retried_for_ui},
}
