"""The operation of unique jobs with its handler (docs/unique.md)."""

from __future__ import annotations

from typing import Final

from ojs_api.unique import FINGERPRINTS, UNIQUE_JOBS
from ojs_engine.api.contract import part_of
from ojs_features.unique.handlers import UniqueHandlers

PART: Final = part_of(UNIQUE_JOBS, (UniqueHandlers, {FINGERPRINTS: UniqueHandlers.list}))
