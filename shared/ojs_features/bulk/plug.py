"""The places where requests about many jobs are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.wire.system.extensions import Extension
from ojs_features.bulk.routes import PART
from ojs_features.plug import Feature

BULK: Final = Feature(
    name="bulk",
    parts=(PART,),
    extensions=(Extension("bulk-operations"),),
    capabilities=("batch_enqueue",),
)
