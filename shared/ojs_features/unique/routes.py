"""The operation of unique jobs (docs/unique.md)."""

from __future__ import annotations

from typing import Final

from ojs_engine.api.common import NUMBERED
from ojs_engine.api.route import Part, Route
from ojs_features.unique.answers import UniqueJobPage
from ojs_features.unique.handlers import UniqueHandlers

PART: Final = Part(
    "Unique jobs",
    "Fingerprints that jobs hold",
    (
        Route(
            UniqueHandlers,
            UniqueHandlers.list,
            ("GET /unique-jobs listUniqueJobs",),
            "payloads",
            "List fingerprints of unique jobs",
            {200: UniqueJobPage},
            "Those that jobs hold which have not ended.",
            query=NUMBERED,
        ),
    ),
)
