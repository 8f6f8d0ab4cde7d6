"""The places where progress is plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_api.progress import GET, REPORT
from ojs_engine.jetstream.grants import FeatureGrants
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.wire.system.extensions import Extension
from ojs_features.plug import Feature
from ojs_features.progress.routes import PART
from ojs_features.progress.store import progress_reader

PROGRESS: Final = Feature(
    name="progress",
    parts=(PART,),
    extensions=(Extension("progress"),),
    records=(progress_reader,),
    grants=FeatureGrants(
        writes={"gateway": (progress_reader.kind,)},
        hears=lambda config, role: [config.record(progress_reader.kind, ANY)] if role == "gateway" else [],
        clients=(GET.name,),
        workers=(REPORT.name,),
    ),
)
