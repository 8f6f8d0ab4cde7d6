"""The places where dead letters are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.wire.system.extensions import Extension
from ojs_features.dead_letters.routes import PART
from ojs_features.plug import Feature

DEAD_LETTERS: Final = Feature(
    name="dead_letters",
    parts=(PART,),
    extensions=(Extension("dead-letter", capability="dead_letter"),),
)
