"""Answers about many jobs for official clients."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import members
from ojs_features.bulk.answers import PushedBatch


def _pushed_for_cli(answer: PushedBatch) -> dict[str, Any]:
    """A batch fails as a whole or not at all."""
    found = 0 if answer.deduplicated is UNSET else len(answer.deduplicated)
    return members(answer) | {"enqueued": answer.count - found, "failed": 0}


SHAPES: Final[Shapes] = {PushedBatch: {"cli": _pushed_for_cli}}
