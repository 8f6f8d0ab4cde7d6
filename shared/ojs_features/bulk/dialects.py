"""Answers about many jobs for official clients."""

from __future__ import annotations

from typing import Any, Final

from ojs_api.bulk import PushedBatch
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import members


def _pushed_for_cli(answer: PushedBatch) -> dict[str, Any]:
    """A batch fails as a whole or not at all."""
    found = len(answer.deduplicated or ())
    return members(answer) | {"enqueued": answer.count - found, "failed": 0}


SHAPES: Final[Shapes] = {PushedBatch: {"cli": _pushed_for_cli}}
