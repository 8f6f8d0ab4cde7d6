"""Dead letters for official clients."""

from __future__ import annotations

from typing import Any, Final

from ojs_api.dead_letters import RetriedDeadLetters
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import members


def _retried_for_ui(answer: RetriedDeadLetters) -> dict[str, Any]:
    """Use the words of ojs-admin-api §8.1."""
    counts = {"matched": answer.retried + answer.skipped, "succeeded": answer.retried, "failed": answer.skipped}
    return members(answer) | {"action": "retry"} | counts


SHAPES: Final[Shapes] = {RetriedDeadLetters: {"ui": _retried_for_ui}}
