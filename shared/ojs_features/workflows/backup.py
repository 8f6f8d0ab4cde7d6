"""Workflows in a backup: their timers and the notes of their jobs are kept as they are."""

from __future__ import annotations

from typing import Final

from ojs_engine.store.backup import Counted, FeatureBackup

BACKUP: Final = FeatureBackup(
    hints=frozenset({("timer", "workflow"), ("due", "coordinator"), ("step", "workflow")}),
    counted={"workflows": Counted(noun="workflow", kind="workflow")},
)
