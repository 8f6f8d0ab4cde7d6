"""Limits in a restore: each is checked once more, since jobs may wait for it."""

from __future__ import annotations

from typing import Final

from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.backup import FeatureBackup
from ojs_engine.store.records.writer import Hint
from ojs_features.limits.asking import LIMITED_LANE
from ojs_features.limits.permits import LOOK


def _look(config: StoreConfig, scope: str) -> Hint:
    return Hint("note", config.note("limit", scope, LOOK))


BACKUP: Final = FeatureBackup(lanes=LIMITED_LANE, notes={"limit": _look})
